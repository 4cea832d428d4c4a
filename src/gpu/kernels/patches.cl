/* Outputs of few elements, COUNT, which their neighbours share or which lie among theirs: pools and other windows. A
 * thread takes OUTS outputs, a block's threads apart, and all elements of each: what neighbours read is side by side,
 * what several read is in the nearest cache. The tree over the elements, a lane each, is straight-line code. */
static inline struct state one_element(shape_ptr S, struct raw r, int e, int present)
{
    struct lane l = empty_lane();
    chain(S, &l, map_element(r), 0, e, weights_of(0), present);
    if (LOGSUMS)
        settle_one(&l, present);
    return lane_state(S, l, e, present);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t first = BLOCK * (THREADS * OUTS) + THREAD, last = S->kept_total - 1;
    struct raw r[OUTS][COUNT];
    int there[OUTS][COUNT];
    UNROLL
    for (int k = 0; k < OUTS; k++) {
        const int64_t o = first + k * THREADS;
        const struct place start = kept_place(S, o < last ? o : last);
        UNROLL
        for (int e = 0; e < COUNT; e++) {
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
        struct state s[COUNT];
        UNROLL
        for (int e = 0; e < COUNT; e++)
            s[e] = one_element(S, r[k][e], e, there[k][e]);
        UNROLL
        for (int reach = REACH; reach; reach /= 2)
            UNROLL
            for (int e = 0; e < REACH; e++)
                if (e < reach && e + reach < COUNT)
                    s[e] = combine(s[e], s[e + reach]);
        if (o <= last)
            finish_output(T, S, o, s[0], COUNT);
    }
}
