/* Least and greatest of bytes, four a word, and sums of their squares (emit_bytes.c). Two halves of 16 bits have two
 * bytes; those of i8, whose sign is flipped, are in order as those of u8 are. */
static inline int square_bytes_u8(uint32_t bytes) { return fold_bytes_u8(0, bytes, bytes); }

static inline int greatest_bytes(int of, uint32_t word)
{
    return (int)GREATER_OF_PAIRS(GREATER_OF_PAIRS((uint32_t)of, word & 0x00ff00ffu), word >> 8 & 0x00ff00ffu);
}

static inline int least_bytes(int of, uint32_t word)
{
    return (int)LESSER_OF_PAIRS(LESSER_OF_PAIRS((uint32_t)of, word & 0x00ff00ffu), word >> 8 & 0x00ff00ffu);
}

/* The byte that a lane ends with. */
static inline int greatest_of_u8(int of) { return (int)(GREATER_OF_PAIRS((uint32_t)of, (uint32_t)of >> 16) & 255u); }
static inline int least_of_u8(int of) { return (int)(LESSER_OF_PAIRS((uint32_t)of, (uint32_t)of >> 16) & 255u); }
static inline int greatest_of_i8(int of) { return greatest_of_u8(of) - 128; }
static inline int least_of_i8(int of) { return least_of_u8(of) - 128; }
