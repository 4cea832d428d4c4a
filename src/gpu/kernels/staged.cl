/* Short rows that lie one after the other, of a length that is no whole number of vectors: a block copies its rows into
 * shared memory as they lie, in vectors, and each thread folds a row of ROW elements there. (Threads that read such rows
 * from memory themselves would ask for every cache line several times.) */
enum { SPAN_ELEMENTS = THREADS * ROW, SPAN_VECTORS = SPAN_ELEMENTS / VECTOR };

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct raws span[SPAN_VECTORS];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t o = BLOCK * THREADS + THREAD, start = BLOCK * SPAN_ELEMENTS, all = S->kept_total * ROW;
    UNROLL
    for (int i = 0; i < (SPAN_VECTORS + THREADS - 1) / THREADS; i++) {
        const int v = i * THREADS + THREAD;
        if ((SPAN_VECTORS % THREADS == 0 || v < SPAN_VECTORS) && start + (v + 1) * VECTOR <= all) {
            struct place p = kept_place(S, 0);
#define X(s) p.i##s = start + v * VECTOR;
            FOR_MAP_INPUTS(X)
#undef X
            span[v] = fetch_vector(T, S, p, LOOPS - 1, b.vectors != 0);
        } else if (v < SPAN_VECTORS) {
            for (int e = 0; e < VECTOR; e++) {
#define X(s) span[v].x##s[e] = start + v * VECTOR + e < all ? T.in##s[start + v * VECTOR + e] : 0;
                FOR_MAP_INPUTS(X)
#undef X
            }
        }
    }
    BARRIER();
    if (o >= S->kept_total)
        return;
    struct state s[HELD];
    UNROLL
    for (int j = 0; j < HELD; j++) {
        struct lane l = empty_lane();
        if (j < ROW) {
            const int at = THREAD * ROW + j;
            struct raw r;
#define X(s) r.x##s = ((SHARED_POINTER const in##s##_t *)span)[at];
            FOR_MAP_INPUTS(X)
#undef X
            struct element x = map_element(r);
            chain(S, &l, x, 0, j, weights_of(0), 1);
            if (TWO_PHASES)
                chain_second(&l, x, 1);
        }
        s[j] = lane_state(S, l, j, j < ROW);
    }
    UNROLL
    for (int reach = HELD / 2; reach; reach /= 2)
        UNROLL
        for (int j = 0; j < HELD / 2; j++)
            if (j < reach && j + reach < ROW)
                s[j] = combine(s[j], s[j + reach]);
    finish_output(T, S, o, s[0], ROW);
}
