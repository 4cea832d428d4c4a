/* Columns whose tiles several blocks share: their states lie in the workspace, tile by tile, and the block that arrives
 * last joins them. FEW: at least how many tiles a column has, where one thread joins them; else 1. */
#if FEW > 1
/* A column's few tiles, by one thread. */
static inline struct state few_tiles(GLOBAL const struct state *states, int64_t stride, int count)
{
    struct state s[FEW];
    UNROLL
    for (int i = 0; i < FEW; i++) {
        s[i] = state_identity();
        if (i < count)
            s[i] = load_state(states + i * stride);
    }
    UNROLL
    for (int reach = FEW / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < FEW / 2; i++)
            if (i < reach && i + reach < count)
                s[i] = combine(s[i], s[i + reach]);
    return s[0];
}
#endif

/* The outputs of `count` columns from number `columns` on; counter: whose blocks these are. */
static inline void join_columns(EXCHANGE_TYPE exchange_, struct tensors T, shape_ptr S, GLOBAL struct state *states,
                                int64_t columns, int64_t count, int64_t counter, SHARED_POINTER int *flag)
{
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)(states + S->kept_total * S->p[3]);
    if (!last_to_arrive(counters + counter, S->p[1], flag))
        return;
#if FEW > 1
    for (int c = THREAD; c < count; c += THREADS)
        finish_output(T, S, columns + c, few_tiles(states + columns + c, S->kept_total, (int)S->p[0]), S->reduced_total);
#else
    states = block_fold(exchange_, states, S->kept_total, S->p[0], columns, count);
    for (int c = THREAD; c < count; c += THREADS)
        finish_output(T, S, columns + c, load_state(states + columns + c), S->reduced_total);
#endif
}
