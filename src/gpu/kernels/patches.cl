/* Outputs of few elements, ELEMENTS, which their neighbours share or which lie among theirs: pools and other windows. A
 * thread takes OUTS outputs, a block's threads apart, and all elements of each: what neighbours read is side by side,
 * what several read is in the nearest cache. The tree over them is element_lanes.cl's. */
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
        struct state s[ELEMENTS];
        UNROLL
        for (int e = 0; e < ELEMENTS; e++)
            s[e] = one_element(S, r[k][e], e, there[k][e]);
        if (o <= last)
            finish_output(T, S, o, tree(s), ELEMENTS);
    }
}
