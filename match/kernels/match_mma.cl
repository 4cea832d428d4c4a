/* The instruction of match_mma.cu, word by word through local memory: for tests of what is around it on devices without
 * it. All threads of a block call it together. */
/* Perhaps: exchanges want all threads. */
#define WARP_ANY(condition) 1
#define MMA_MEMORY __local uint32_t mma_[THREADS][6];
#define MMA(d, a0, a1, a2, a3, b0, b1, c0, c1, c2, c3)                        \
    do {                                                                      \
        mma_[THREAD][0] = a0;                                                 \
        mma_[THREAD][1] = a1;                                                 \
        mma_[THREAD][2] = a2;                                                 \
        mma_[THREAD][3] = a3;                                                 \
        mma_[THREAD][4] = b0;                                                 \
        mma_[THREAD][5] = b1;                                                 \
        barrier(CLK_LOCAL_MEM_FENCE);                                         \
        const int32_t mma_c_[4] = {c0, c1, c2, c3};                           \
        for (int mma_i_ = 0; mma_i_ < 4; mma_i_++)                            \
            (d)[mma_i_] = mma_c_[mma_i_] + mma_dot(mma_, THREAD, mma_i_);     \
        barrier(CLK_LOCAL_MEM_FENCE);                                         \
    } while (0)

/* Element c[i] of a thread, without C. */
static inline int32_t mma_dot(__local uint32_t (*all)[6], int thread, int i)
{
    const int warp = thread / 32 * 32, group = thread % 32 / 4, column = 2 * (thread % 4) + i % 2, second = i / 2;
    int32_t sum = 0;
    for (int place = 0; place < 4; place++) {
        __local const uint32_t *a = all[warp + 4 * group + place], *b = all[warp + 4 * column + place];
        sum += (int32_t)(POPCOUNT(a[second] & b[4]) + POPCOUNT(a[second + 2] & b[5]));
    }
    return sum;
}
