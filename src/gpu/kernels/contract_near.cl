/* Contractions of so few terms that tiles would leave most of the device idle: out[m, n] = fold over k of x[m, k] o
 * y[k, n], in any order. A thread has ROW_OWN outputs, below each other; a warp's threads take columns beside each other,
 * and its WARPS warps the terms in turn, HELD of them at a time, all read at once and from the caches, where tiles would
 * go through shared memory step by step. What the warps have is joined in shared memory.
 *
 * p[0]: positions, (batch, ROW_OWN rows, column); p[1]: groups of rows; p[7]: rows * 2^32 + columns.
 * Cost of a term: one product, one fold, 1 + 1/ROW_OWN values from the L1 cache. */

/* A thread's HELD terms from t on; past the last one it is read again, and not folded. */
static inline void add_held(struct tensors T, shape_ptr S, const struct place start[ROW_OWN], int t, int terms,
                            acc_t acc[ROW_OWN])
{
    value_t_x x[ROW_OWN][HELD];
    value_t_y y[HELD];
    UNROLL
    for (int h = 0; h < HELD; h++) {
        const struct place k = element_place(S, no_place(), EXACT || t + h < terms ? t + h : terms - 1);
        struct raw r;
#define X(s) r.x##s = T.in##s[start[0].i##s + k.i##s];
        FOR_INPUTS_y(X)
#undef X
        y[h] = factor_y(r);
        UNROLL
        for (int i = 0; i < ROW_OWN; i++) {
#define X(s) r.x##s = T.in##s[start[i].i##s + k.i##s];
            FOR_INPUTS_x(X)
#undef X
            x[i][h] = factor_x(r);
        }
    }
    LOADED();
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        int pass = 0;
#if TWICE
        acc_before(&acc[i]);
        UNROLL
        for (int h = 0; h < HELD; h++)
            if (EXACT || t + h < terms)
                accumulate(&acc[i], x[i][h], y[h], t + h, 0);
        pass = acc_between(&acc[i]) ? 2 : 1;
#endif
        UNROLL
        for (int h = 0; h < HELD; h++)
            if (EXACT || t + h < terms)
                accumulate(&acc[i], x[i][h], y[h], t + h, pass);
    }
}

/* Of what the warps have of an output. */
static inline acc_t join_warps(SHARED_POINTER const acc_t *values)
{
    acc_t all = values[0];
#if TWICE
    UNROLL
    for (int l = 1; l < WARPS; l++)
        acc_join_greatest(&all, values[l * ROW_OWN * WARP]);
    all.s = 0;
    UNROLL
    for (int l = 0; l < WARPS; l++)
        acc_join_sum(&all, values[l * ROW_OWN * WARP]);
#else
    UNROLL
    for (int l = 1; l < WARPS; l++)
        all = acc_join(all, values[l * ROW_OWN * WARP]);
#endif
    return all;
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
#if WARPS > 1
    SHARED acc_t joined[WARPS * ROW_OWN * WARP];
#endif
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t rows = (uint32_t)(S->p[7] >> 32), columns = (uint32_t)S->p[7], groups = (uint32_t)S->p[1];
    const int terms = (int)S->reduced_total, warp = THREAD / WARP, across = THREAD % WARP;
    const uint32_t all = (uint32_t)S->p[0], mine = (uint32_t)BLOCK * WARP + across, here = mine < all ? mine : all - 1;
    const uint32_t above = here / columns, column = here - above * columns, batch = above / groups,
                   row = (above - batch * groups) * ROW_OWN;
    const struct place right = move_place(S, move_place(S, no_place(), batch, 2), column, 1);
    struct place start[ROW_OWN];
    acc_t acc[ROW_OWN];
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        start[i] = move_place(S, right, row + i < rows ? row + i : rows - 1, 0);
        acc[i] = acc_empty(0);
    }
    NO_UNROLL
    for (int t = warp * HELD; t < terms; t += WARPS * HELD)
        add_held(T, S, start, t, terms, acc);
#if WARPS > 1
    UNROLL
    for (int i = 0; i < ROW_OWN; i++)
        joined[(warp * ROW_OWN + i) * WARP + across] = acc[i];
    BARRIER();
#endif
    const struct target to = move_target(S, move_target(S, no_target(), batch, 2), column, 1);
    UNROLL
    for (int i = 0; i < ROW_OWN; i++)
        if (i % WARPS == warp && mine < all && row + i < rows) {
#if WARPS > 1
            acc[i] = join_warps(joined + i * WARP + across);
#endif
            finish_at(T, move_target(S, to, row + i, 0), acc_state(S, acc[i]), S->reduced_total);
        }
}
