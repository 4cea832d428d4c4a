/* product_mma.cu by ordinary reads and writes: for tests of what is around it on devices without tensor cores. */
#define MMA_NEW(mma_, c, a0, a1, a2, a3, b0, b1)         \
    do {                                                 \
        for (int new_i_ = 0; new_i_ < 4; new_i_++)       \
            (c)[new_i_] = 0;                             \
        MMA(mma_, c, a0, a1, a2, a3, b0, b1);            \
    } while (0)
#define COPY_PIECE(to, from, inside) copy_piece((to), (from), (inside))
#define TOGETHER
#define WAIT_FOR_ALL() BARRIER()
#define COMMIT()
#define AWAIT(groups)
#define LOAD_MATRICES(r, tile, ADDRESS)    \
    for (int m_ = 0; m_ < 4; m_++)         \
        (r)[m_] = *(SHARED_POINTER const uint32_t *)((tile) + ADDRESS(m_, THREAD % 32 / 4) + THREAD % 4 * 4);
#define LOAD_TRANSPOSED(r, tile, ADDRESS)                                            \
    for (int m_ = 0; m_ < 4; m_++)                                                   \
        (r)[m_] = HALF_WORD((tile) + ADDRESS(m_, THREAD % 4 * 2)) |                  \
                  (uint32_t)HALF_WORD((tile) + ADDRESS(m_, THREAD % 4 * 2 + 1)) << 16;
#define HALF_WORD(row) ((SHARED_POINTER const uint16_t *)(row))[THREAD % 32 / 4]

static inline void copy_piece(SHARED_POINTER char *to, GLOBAL const void *from, int inside)
{
    struct sixteen v;
    for (int i = 0; i < 4; i++)
        v.v[i] = inside ? ((GLOBAL const int *)from)[i] : 0;
    *(SHARED_POINTER struct sixteen *)to = v;
}

static inline void read_fresh(GLOBAL const float *place, float v[4])
{
    for (int i = 0; i < 4; i++)
        v[i] = place[i];
}
