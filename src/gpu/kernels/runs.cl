/* Folds of all runs of RUN neighbours, a power of two: run i has the elements i ... i + RUN - 1 of its row. The halving
 * tree's parts are shared: with s[i] = x[i] + x[i + 16], then s[i] += s[i + 8], and so on, a run of 32 costs 5 additions,
 * where it begins does not matter. A block puts the states of its single elements into shared memory; a thread takes
 * OWN_RUNS + RUN - 1 of them and makes OWN_RUNS runs, which go back the same way, so that memory is read and written in
 * order.
 *
 * p[0]: blocks of a row. */
enum {
    SPAN_RUNS = THREADS * OWN_RUNS,
    SPAN_ELEMENTS = SPAN_RUNS + RUN - 1,
    /* states lie with gaps, so that threads OWN_RUNS apart meet different banks */
    THREAD_STATES = OWN_RUNS + PAD,
    SHARED_STATES = (SPAN_ELEMENTS + OWN_RUNS - 1) / OWN_RUNS * THREAD_STATES,
    ROUND_STATES = THREADS / OWN_RUNS * THREAD_STATES /* THREADS of them */
};

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    enum { READS = (SPAN_ELEMENTS + THREADS - 1) / THREADS };
    SHARED ALIGNED(16) struct state shared[SHARED_STATES];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t row = block_over(S->p[0]), first = block_past(S->p[0]) * SPAN_RUNS, runs = S->size[KEPT - 1];
    const int here = runs - first < SPAN_RUNS ? (int)(runs - first) : SPAN_RUNS, last = here + RUN - 2;
    const struct place start = element_place(S, kept_place(S, row * runs), first);
    SHARED_POINTER struct state *const mine = shared + THREAD * THREAD_STATES,
                                *const turn = shared + THREAD / OWN_RUNS * THREAD_STATES + THREAD % OWN_RUNS;
    struct raw r[READS];
    UNROLL
    for (int i = 0; i < READS; i++) {
        const int e = i * THREADS + THREAD;
        r[i] = fetch(T, element_place(S, start, e < last ? e : last));
    }
    LOADED();
    UNROLL
    for (int i = 0; i < READS; i++) {
        const int e = i * THREADS + THREAD;
        if (e < SPAN_ELEMENTS)
            turn[i * ROUND_STATES] = one_element(S, r[i], 0, 1);
    }
    BARRIER();
    struct state s[OWN_RUNS + RUN - 1];
    UNROLL
    for (int i = 0; i < OWN_RUNS + RUN - 1; i++)
        s[i] = mine[i + i / OWN_RUNS * PAD];
    UNROLL
    for (int reach = RUN / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < OWN_RUNS + RUN / 2 - 1; i++)
            if (i < OWN_RUNS + reach - 1)
                s[i] = combine(s[i], s[i + reach]);
    BARRIER();
    UNROLL
    for (int i = 0; i < OWN_RUNS; i++)
        mine[i] = s[i];
    BARRIER();
    UNROLL
    for (int i = 0; i < OWN_RUNS; i++) {
        const int e = i * THREADS + THREAD;
        if (e < here)
            finish_output(T, S, row * runs + first + e, turn[i * ROUND_STATES], RUN);
    }
}
