/* C += A B for 16 rows of A and 8 columns of B, 32 bytes deep: m16n8k16 of 16-bit elements, m16n8k32 of 8-bit ones.
 * Inline PTX, for sm_80 and later, 8-bit floats for sm_89 and later. Fragments as in the PTX manual: a thread has
 * group = lane / 4 and place = lane % 4; a0 is row group, its place's four bytes of the first 16, a1 row group + 8,
 * a2 and a3 the same of the second 16; b0 and b1 column group; c[0] and c[1] row group, columns 2 place and 2 place +
 * 1, c[2] and c[3] row group + 8. MMA_NAME has shape and types. */
#define MMA_TYPE int
#define MMA_MEMORY const int mma_ = 0;
/* What only some warps do. */
#define ONLY_WARPS(condition) if (condition)
#define MMA(mma_, c, a0, a1, a2, a3, b0, b1) multiply_add(c, a0, a1, a2, a3, b0, b1)

static inline void multiply_add(sum_t c[4], uint32_t a0, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                uint32_t b1)
{
    asm volatile("mma.sync.aligned." MMA_NAME " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : MMA_SUM(c[0]), MMA_SUM(c[1]), MMA_SUM(c[2]), MMA_SUM(c[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
