/* One level of a long sum by recurrence on tensor cores (Navarro et al., section 5.1, algorithms 1 and 2): a warp's
 * chain of CHAIN products makes column sums, which as elements of the operand's type become the first factor of one
 * more product, by ones: every element of that is the sum of all. It is an element of the next level, of the
 * operand's type again, so sums that the type cannot hold overflow, as in the paper.
 *
 * p[0]: elements here, p[1]: where they lie in the workspace, in bytes, or -1: they are the operand, p[2]: where the
 * next level's go, or -1: this is the last one, p[3]: how many it has. */
static inline uint32_t pair_of(float low, float high)
{
    return (uint32_t)STORE(high) << 16 | STORE(low);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    MMA_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t group = BLOCK * WARPS + THREAD / WARP;
    GLOBAL const bits_t *from = elements_of(T, S, 0);
    if (S->p[1] >= 0)
        from = (GLOBAL const bits_t *)(workspace + S->p[1]);
    const struct chain_pieces pieces =
        pieces_from(from, group * CHAIN * STEP, S->p[0], S->p[1] >= 0 || b.vectors != 0);
    struct column_sums s = no_sums();
    UNROLL
    for (int r = 0; r < CHAIN; r++)
        add_piece(mma_, &s, pieces.f[r]);
    sum_t all[4] = {0, 0, 0, 0};
    MMA(mma_, all, pair_of(s.c[0][0], s.c[0][1]), pair_of(s.c[0][2], s.c[0][3]), pair_of(s.c[1][0], s.c[1][1]),
        pair_of(s.c[1][2], s.c[1][3]), ONES, ONES);
    if (THREAD % WARP == 0 && group < S->p[3]) {
        if (S->p[2] >= 0) {
            ((GLOBAL bits_t *)(workspace + S->p[2]))[group] = STORE(all[0]);
        } else {
            struct state sum = state_identity();
            sum.r0 = all[0];
            finish_output(T, S, 0, sum, S->reduced_total);
        }
    }
}
