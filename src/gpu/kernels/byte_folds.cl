/* Least and greatest of bytes, four a word, and sums of their squares (emit_bytes.c). Two halves of 16 bits have two
 * bytes; those of i8, whose sign is flipped, are in order as those of u8 are. */
static inline uint32_t greater_halves(uint32_t a, uint32_t b)
{
#ifdef GREATER_OF_PAIRS
    return GREATER_OF_PAIRS(a, b);
#else
    const uint32_t low = (a & 0xffffu) > (b & 0xffffu) ? a & 0xffffu : b & 0xffffu;
    return ((a > b ? a : b) & 0xffff0000u) | low;
#endif
}

static inline uint32_t lesser_halves(uint32_t a, uint32_t b)
{
#ifdef GREATER_OF_PAIRS
    return LESSER_OF_PAIRS(a, b);
#else
    const uint32_t low = (a & 0xffffu) < (b & 0xffffu) ? a & 0xffffu : b & 0xffffu;
    return ((a < b ? a : b) & 0xffff0000u) | low;
#endif
}

static inline int greatest_bytes(int of, uint32_t word)
{
    return (int)greater_halves(greater_halves((uint32_t)of, word & 0x00ff00ffu), word >> 8 & 0x00ff00ffu);
}

static inline int least_bytes(int of, uint32_t word)
{
    return (int)lesser_halves(lesser_halves((uint32_t)of, word & 0x00ff00ffu), word >> 8 & 0x00ff00ffu);
}

/* The byte that a lane ends with. */
static inline int greatest_of_u8(int of) { return (int)(greater_halves((uint32_t)of, (uint32_t)of >> 16) & 255u); }
static inline int least_of_u8(int of) { return (int)(lesser_halves((uint32_t)of, (uint32_t)of >> 16) & 255u); }
static inline int greatest_of_i8(int of) { return greatest_of_u8(of) - 128; }
static inline int least_of_i8(int of) { return least_of_u8(of) - 128; }
