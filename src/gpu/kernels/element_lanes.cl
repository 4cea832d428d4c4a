/* Outputs of few elements, ELEMENTS, a lane each, and the tree over them, REACH at its top, as straight-line code. */
static inline struct state tree(struct state s[ELEMENTS])
{
    UNROLL
    for (int reach = REACH; reach; reach /= 2)
        UNROLL
        for (int e = 0; e < REACH; e++)
            if (e < reach && e + reach < ELEMENTS)
                s[e] = combine(s[e], s[e + reach]);
    return s[0];
}
