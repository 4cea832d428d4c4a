/* Outputs of few elements, ELEMENTS, which their neighbours share or which lie among theirs: pools and other windows. A
 * thread takes OUTS outputs, a block's threads apart, and all elements of each: what neighbours read is side by side,
 * what several read is in the nearest cache; or VECTOR outputs, channels of a pixel, whose elements are read together.
 * The tree over them is solve_patches.c's; where any order gives the same (ANY_ORDER), they are one chain. */
/* near, a constant: logsumexp's exponentials in the unit 1. */
static inline struct state fold_elements(shape_ptr S, const struct raw r[ELEMENTS], const int there[ELEMENTS],
                                         const int near)
{
    struct state s[ELEMENTS];
    struct lane all = empty_lane();
    const struct origins in_1 = no_origins();
    UNROLL
    for (int e = 0; e < ELEMENTS; e++)
        if (ANY_ORDER)
            chain(S, &all, map_element(r[e]), e, 0, weights_of(e), there[e]);
        else if (near)
            s[e] = one_near_0(S, r[e], e, there[e]);
        else
            s[e] = one_element(S, r[e], e, there[e]);
    if (ANY_ORDER)
        return lane_state(S, all, 0, ELEMENTS);
    struct state y = tree(s, !WINDOWS, near);
    if (near)
        settle_at(&y, &in_1);
    return y;
}

static inline int are_near_0(const struct raw r[ELEMENTS], const int there[ELEMENTS])
{
    struct lane extents = empty_lane();
    UNROLL
    for (int e = 0; e < ELEMENTS; e++)
        gather_extent(&extents, map_element(r[e]), there[e]);
    return extents_are_small(extents);
}

static inline void read_elements(struct tensors T, shape_ptr S, struct place start, struct raw r[ELEMENTS],
                                 int there[ELEMENTS])
{
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const struct place p = element_place(S, start, e);
        there[e] = inside(S, p);
        if (there[e])
            r[e] = fetch(T, p);
    }
}

/* Outputs o, o + step ... of `count`, before `end`, one after the other: of elements that are not near 0. */
static inline void fold_again(struct tensors T, shape_ptr S, int64_t o, int count, int step, int64_t end)
{
    NO_UNROLL
    for (int k = 0; k < count && o < end; k++, o += step) {
        struct raw r[ELEMENTS];
        int there[ELEMENTS];
        read_elements(T, S, kept_place(S, o), r, there);
        finish_output(T, S, o, fold_elements(S, r, there, 0), ELEMENTS);
    }
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
    int near = LOGSUMS;
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
        struct raw own[ELEMENTS];
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            own[e] = one_of_vector(r[e], c);
        y[c] = fold_elements(S, own, there, LOGSUMS);
        near &= are_near_0(own, there);
    }
    if (LOGSUMS && !near) {
        fold_again(T, S, o, VECTOR, 1, S->kept_total);
        return;
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
        read_elements(T, S, kept_place(S, o < last ? o : last), r[k], there[k]);
    }
    LOADED();
    int near = LOGSUMS;
    UNROLL
    for (int k = 0; k < OUTS; k++)
        near &= are_near_0(r[k], there[k]);
    if (LOGSUMS && !near) {
        fold_again(T, S, first, OUTS, THREADS, last + 1);
        return;
    }
    UNROLL
    for (int k = 0; k < OUTS; k++) {
        const int64_t o = first + k * THREADS;
        const struct state s = fold_elements(S, r[k], there[k], LOGSUMS);
        if (o <= last)
            finish_output(T, S, o, s, ELEMENTS);
    }
}
#endif
