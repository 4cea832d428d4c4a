/* Sums and differences of four bytes, or of two integers of 16 bits, as one word: each wraps by itself. (Warren, Hacker's
 * Delight, 2nd edition, section 2-18.) */
#define TOP_BITS (PACKED == 1 ? 0x80808080u : 0x80008000u)
static inline uint32_t packed_add(uint32_t x, uint32_t y)
{
    return ((x & ~TOP_BITS) + (y & ~TOP_BITS)) ^ ((x ^ y) & TOP_BITS);
}

static inline uint32_t packed_sub(uint32_t x, uint32_t y)
{
    return ((x | TOP_BITS) - (y & ~TOP_BITS)) ^ ((x ^ ~y) & TOP_BITS);
}

static inline uint32_t packed_and(uint32_t x, uint32_t y)
{
    return x & y;
}

static inline uint32_t packed_or(uint32_t x, uint32_t y)
{
    return x | y;
}

static inline uint32_t packed_xor(uint32_t x, uint32_t y)
{
    return x ^ y;
}
