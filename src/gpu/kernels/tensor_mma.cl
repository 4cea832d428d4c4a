/* The instruction of tensor_mma.cu, element by element through local memory: for tests of what is around it on
 * devices without it. Sums of floats are one chain, each addition rounded to nearest. All threads of a block call it
 * together. */
typedef uint32_t six_words[6];
#define MMA_TYPE __local six_words *
#define MMA_MEMORY __local six_words mma_[THREADS];
/* All warps: they call it together. What the others get is not used. */
#define ONLY_WARPS(condition)
#define MMA(mma_, c, a0, a1, a2, a3, b0, b1)                                              \
    do {                                                                                  \
        mma_[THREAD][0] = a0;                                                             \
        mma_[THREAD][1] = a1;                                                             \
        mma_[THREAD][2] = a2;                                                             \
        mma_[THREAD][3] = a3;                                                             \
        mma_[THREAD][4] = b0;                                                             \
        mma_[THREAD][5] = b1;                                                             \
        barrier(CLK_LOCAL_MEM_FENCE);                                                     \
        for (int mma_i_ = 0; mma_i_ < 4; mma_i_++)                                        \
            (c)[mma_i_] = mma_chain((mma_), (c)[mma_i_], THREAD, mma_i_);                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                                     \
    } while (0)

/* Element c[i] of a thread. */
static inline sum_t mma_chain(__local const six_words *all, sum_t c, int thread, int i)
{
    enum { PER = 4 / ITEM, HALF = 4 * PER };
    const int warp = thread / 32 * 32, row = thread % 32 / 4, second = i / 2, column = 2 * (thread % 4) + i % 2;
    for (int k = 0; k < 2 * HALF; k++) {
        const int place = k % HALF / PER, shift = 8 * ITEM * (k % PER);
        const uint32_t a = all[warp + 4 * row + place][second + k / HALF * 2];
        const uint32_t b = all[warp + 4 * column + place][4 + k / HALF];
        c += (sum_t)LOAD((bits_t)(a >> shift)) * (sum_t)LOAD((bits_t)(b >> shift));
    }
    return c;
}
