/* Parts of the sequence of terms, a block each: p[2], how many; p[4], p[5], p[6]: bytes of the workspace before the table
 * of parts, their states, their counters. LEVELS: values that wait for others, at most. */
/* The block that finishes last joins the parts' states of its outputs, in their order. */
static inline struct state join_parts(GLOBAL const struct state *states, GLOBAL const struct part *table, int64_t parts)
{
    struct state waiting[LEVELS];
    int top = 1;
    waiting[0] = load_state(states); /* the first part has nothing to join */
    for (int64_t p = 1; p < parts; p++) {
        struct state s = load_state(states + p * (ROWS * COLUMNS));
        for (int joins = IN_TREE ? table[p].joins : 1; joins > 0 && top > 0; joins--)
            s = combine(waiting[--top], s);
        waiting[top++] = s;
    }
    return waiting[0];
}

static inline void store_parts(struct tensors T, shape_ptr S, struct corner at, GLOBAL const struct state *states,
                               GLOBAL const struct part *table)
{
    const int64_t rows = S->p[7] >> 32, columns = S->p[7] & 0xffffffff;
    const struct target origin = move_target(S, no_target(), at.batch, 2);
    NO_UNROLL
    for (int e = 0; e < ROW_OWN * COLUMN_OWN; e++) {
        const int64_t m = at.row + own_position_x(THREAD / COLUMN_THREADS, e / COLUMN_OWN);
        const int64_t n = at.column + own_position_y(THREAD % COLUMN_THREADS, e % COLUMN_OWN);
        if (m < rows && n < columns)
            finish_at(T, move_target(S, move_target(S, origin, m, 0), n, 1),
                      join_parts(states + e * THREADS + THREAD, table, S->p[2]), S->reduced_total);
    }
}

/* A part's outputs: stored if it is the only one; else its states are, and the block that finishes last joins them. */
static inline void end_part(struct tensors T, shape_ptr S, struct corner at, GLOBAL char *workspace, uint32_t block,
                            uint32_t part, acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER int *flag)
{
    const int64_t parts = S->p[2];
    if (parts == 1) {
        store_outputs(T, S, at, acc);
        return;
    }
    GLOBAL struct state *states = (GLOBAL struct state *)(workspace + S->p[5]) + block * parts * (ROWS * COLUMNS);
    EVERY_OUTPUT states[part * (ROWS * COLUMNS) + (i * COLUMN_OWN + j) * THREADS + THREAD] = acc_state(S, acc[i][j]);
    if (last_to_arrive((GLOBAL uint32_t *)(workspace + S->p[6]) + block, parts, flag))
        store_parts(T, S, at, states, (GLOBAL const struct part *)(workspace + S->p[4]));
}
