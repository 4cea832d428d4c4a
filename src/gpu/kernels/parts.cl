/* Columns whose tiles several blocks share: their states lie in the workspace, tile by tile, and the block that arrives
 * last joins them. FEW: at least how many tiles a column has, where one thread joins them; else 1. GROUPED: parts are tiles,
 * and so many, TILE at most, that the last of every GROUPS-th's blocks joins those first, while other blocks do the same
 * for theirs. JOIN_STATES: states that shared memory has room for. JOIN_LANES: that a column's tiles have,
 * JOIN_CHAINED: several in one. JOIN_COLUMNS: of a block. Blocks side by side have COUNTERS. ALONE: no others have tiles of a
 * block's columns. */
#ifndef ALONE
#define ALONE 0
#endif
/* KEEPS_JOIN: of columns of one tile whose registers what joins tiles decides (solve_columns.c). */
#ifndef KEEPS_JOIN
#define KEEPS_JOIN 0
#endif
#define ONE_TILE (JOIN_LANES == 1 && !KEEPS_JOIN)
enum { GROUPS = 16, COUNTERS = GROUPS + 1 };

#if !ONE_TILE
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
#else
/* States that a thread loads together: of so many lanes, and behind their first ones so many of each. */
enum {
    LANES_AT_ONCE = GROUPED ? 1 : STATE_WORDS > 2 ? 4 : 8,
    CHAINED = GROUPED ? 4 : 1,
    SHORT_JOIN = STATE_WORDS <= 2 && !LOGSUMS
};

/* The state of tile number t of column c, if there is one. */
static inline struct state state_of_tile(shape_ptr S, GLOBAL const struct state *from, int t, int n, int c, int columns)
{
    struct state s = state_identity();
    if (t < n && c < columns)
        s = load_state(from + c + t * S->kept_total);
    return s;
}

/* A thread's states number i, i + THREADS ... of join_tiles. */
static inline void load_lanes(shape_ptr S, GLOBAL const struct state *from, int i, int base, const int apart,
                              const int room, int n, int columns, struct state s[LANES_AT_ONCE])
{
    UNROLL
    for (int u = 0; u < LANES_AT_ONCE; u++)
        s[u] = state_of_tile(S, from, base + (i + u * THREADS) / room * apart, n, (i + u * THREADS) % room, columns);
    NO_UNROLL
    for (int k = LANES; JOIN_CHAINED && k < n; k += CHAINED * LANES) {
        struct state next[CHAINED][LANES_AT_ONCE];
        UNROLL
        for (int j = 0; j < CHAINED; j++)
            UNROLL
            for (int u = 0; u < LANES_AT_ONCE; u++)
                next[j][u] = state_of_tile(S, from, base + (i + u * THREADS) / room * apart + k + j * LANES, n,
                                           (i + u * THREADS) % room, columns);
        UNROLL
        for (int j = 0; j < CHAINED; j++)
            UNROLL
            for (int u = 0; u < LANES_AT_ONCE; u++)
                if (base + (i + u * THREADS) / room * apart + k + j * LANES < n)
                    s[u] = combine(s[u], next[j][u]);
    }
}

/* Lanes base, base + apart ... of n tiles, `lanes` of them at most (a constant), and the tree's levels over them, of
 * `count` columns: by the whole block, as many columns at a time as shared memory has room for, so that one access
 * brings all of a thread's states, and no thread joins what is not there. What is apart is one of GROUPS, whose state
 * takes the place of its first tile's; else these are outputs. shared: JOIN_STATES states. */
static inline void join_tiles(struct tensors T, shape_ptr S, GLOBAL struct state *states, int64_t columns, int64_t count,
                              int base, const int apart, const int lanes, int n, SHARED_POINTER struct state *shared)
{
    const int most = JOIN_STATES / lanes, room = most < 1 ? 1 : most < JOIN_COLUMNS ? most : JOIN_COLUMNS;
    /* a thread's lanes of one column, which it joins itself where that is a short text */
    const int each = lanes * room / THREADS, joined = SHORT_JOIN && lanes * room % THREADS == 0 && THREADS % room == 0 &&
                                                      (each == 2 || each == 4 || each == 8) && each <= LANES_AT_ONCE;
    NO_UNROLL
    for (int64_t first = 0; first < count; first += room) {
        const int here = count - first < room ? (int)(count - first) : room;
        GLOBAL struct state *at = states + columns + first;
        NO_UNROLL
        for (int i = THREAD; i < lanes * room; i += LANES_AT_ONCE * THREADS) {
            struct state s[LANES_AT_ONCE];
            load_lanes(S, at, i, base, apart, room, n, here, s);
            UNROLL
            for (int reach = LANES_AT_ONCE / 2; reach; reach /= 2)
                UNROLL
                for (int u = 0; u < LANES_AT_ONCE / 2; u++)
                    if (joined && reach < each && u < reach &&
                        base + (i + (u + reach) * THREADS) / room * apart < n)
                        s[u] = combine(s[u], s[u + reach]);
            UNROLL
            for (int u = 0; u < LANES_AT_ONCE; u++)
                if (joined ? u == 0 : i + u * THREADS < lanes * room)
                    shared[i + u * THREADS] = s[u];
        }
        BARRIER();
        NO_UNROLL
        for (int reach = (joined ? lanes / each : lanes) / 2; reach; reach /= 2) {
            NO_UNROLL
            for (int i = THREAD; i < reach * room; i += THREADS)
                if (base + (i / room + reach) * apart < n)
                    shared[i] = combine(shared[i], shared[i + reach * room]);
            BARRIER();
        }
        NO_UNROLL
        for (int c = THREAD; c < here; c += THREADS)
            if (apart > 1)
                at[base * S->kept_total + c] = shared[c];
            else
                finish_output(T, S, columns + first + c, shared[c], S->reduced_total);
        BARRIER();
    }
}
#endif

/* The outputs of `count` columns from number `columns` on, of whose tiles the block has part number `part`; counter: whose
 * blocks these are. shared: THREADS states, and JOIN_STATES. */
static inline void join_columns(EXCHANGE_TYPE exchange_, struct tensors T, shape_ptr S, GLOBAL struct state *states,
                                int64_t columns, int64_t count, int64_t counter, int64_t part,
                                SHARED_POINTER struct state *shared, SHARED_POINTER int *flag)
{
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)(states + S->kept_total * S->p[3]) + counter * COUNTERS;
    const int n = (int)S->p[0];
    (void)shared;
    (void)counters;
#if GROUPED
    const int group = (int)part % GROUPS;
    if (!last_to_arrive(counters + 1 + group, (n - group + GROUPS - 1) / GROUPS, flag))
        return;
    join_tiles(T, S, states, columns, count, group, GROUPS, LANES / GROUPS, n, shared);
    if (last_to_arrive(counters, GROUPS, flag))
        join_tiles(T, S, states, columns, count, 0, 1, GROUPS, GROUPS, shared);
#else
#if ALONE
    BARRIER();
#else
    if (!last_to_arrive(counters, S->p[1], flag))
        return;
#endif
#if FEW > 1
    for (int c = THREAD; c < count; c += THREADS)
        finish_output(T, S, columns + c, few_tiles(states + columns + c, S->kept_total, n), S->reduced_total);
#else
    if (S->p[0] <= TILE && JOIN_LANES <= JOIN_STATES) {
        join_tiles(T, S, states, columns, count, 0, 1, JOIN_LANES, n, shared);
        return;
    }
    states = block_fold(exchange_, states, S->kept_total, S->p[0], columns, count);
    for (int c = THREAD; c < count; c += THREADS)
        finish_output(T, S, columns + c, load_state(states + columns + c), S->reduced_total);
#endif
#endif
}
#endif
