/* Outputs of few elements, ELEMENTS, which their neighbours share or which lie among theirs: pools and other windows. A
 * thread takes OUTS outputs, a block's threads apart, and all elements of each: what neighbours read is side by side,
 * what several read is in the nearest cache; or VECTOR outputs, channels of a pixel, whose elements are read together.
 * The tree over them is solve_patches.c's; where any order gives the same (ANY_ORDER), they are one chain. */
static inline struct state fold_elements(shape_ptr S, const struct raw r[ELEMENTS], const int there[ELEMENTS])
{
    struct state s[ELEMENTS];
    struct lane all = empty_lane();
    UNROLL
    for (int e = 0; e < ELEMENTS; e++)
        if (ANY_ORDER)
            chain(S, &all, map_element(r[e]), e, 0, weights_of(e), there[e]);
        else
            s[e] = one_element(S, r[e], e, there[e]);
    return ANY_ORDER ? lane_state(S, all, 0, ELEMENTS) : tree(s, !WINDOWS);
}

#if VECTOR > 1
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t o = (BLOCK * THREADS + THREAD) * VECTOR;
    if (o >= S->kept_total)
        return;
    const struct place start = kept_place(S, o);
    struct raws r[ELEMENTS];
    struct state y[VECTOR];
    int there[ELEMENTS];
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const struct place p = element_place(S, start, e);
        there[e] = inside(S, p);
        r[e] = no_elements();
        if (there[e])
            r[e] = fetch_vector(T, S, p, KEPT - 1, b.vectors != 0);
    }
    LOADED();
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
        struct raw own[ELEMENTS];
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            own[e] = one_of_vector(r[e], c);
        y[c] = fold_elements(S, own, there);
    }
    finish_vector(T, S, o, y);
}
#else
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t first = BLOCK * (THREADS * OUTS) + THREAD, last = S->kept_total - 1;
    struct raw r[OUTS][ELEMENTS];
    int there[OUTS][ELEMENTS];
    UNROLL
    for (int k = 0; k < OUTS; k++) {
        const int64_t o = first + k * THREADS;
        const struct place start = kept_place(S, o < last ? o : last);
        UNROLL
        for (int e = 0; e < ELEMENTS; e++) {
            const struct place p = element_place(S, start, e);
            there[k][e] = inside(S, p);
            if (there[k][e])
                r[k][e] = fetch(T, p);
        }
    }
    LOADED();
    UNROLL
    for (int k = 0; k < OUTS; k++) {
        const int64_t o = first + k * THREADS;
        const struct state s = fold_elements(S, r[k], there[k]);
        if (o <= last)
            finish_output(T, S, o, s, ELEMENTS);
    }
}
#endif
