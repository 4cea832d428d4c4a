/* Columns whose tiles several blocks share: their states lie in the workspace, tile by tile, and the block that arrives
 * last joins them. FEW: at least how many tiles a column has, where one thread joins them; else 1. GROUPED: parts are tiles,
 * and so many, TILE at most, that the last of every GROUPS-th's blocks joins those first, while other blocks do the same
 * for theirs. JOIN_STATES: states that shared memory has room for. Blocks side by side have COUNTERS. ALONE: no others
 * have tiles of a block's columns. */
#ifndef ALONE
#define ALONE 0
#endif
enum { GROUPS = 16, COUNTERS = GROUPS + 1 };

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
#elif GROUPED
enum { CHAINED = 4 /* tiles' states that are loaded together */ };

/* A lane of a column's n tiles, of which number `lane` is the first. */
static inline struct state lane_of_tiles(shape_ptr S, GLOBAL const struct state *from, int lane, int n)
{
    struct state s = load_state(from + lane * S->kept_total);
    NO_UNROLL
    for (int k = lane + LANES; k < n; k += CHAINED * LANES) {
        struct state next[CHAINED];
        UNROLL
        for (int i = 0; i < CHAINED; i++) {
            next[i] = state_identity();
            if (k + i * LANES < n)
                next[i] = load_state(from + (k + i * LANES) * S->kept_total);
        }
        UNROLL
        for (int i = 0; i < CHAINED; i++)
            if (k + i * LANES < n)
                s = combine(s, next[i]);
    }
    return s;
}

/* Lanes base, base + apart ... of n tiles, `lanes` of them at most, and the tree's levels over them, of `count` columns: by
 * the whole block, as many columns at a time as shared memory has room for. They are one of GROUPS, whose state takes the
 * place of its first tile's; or, not apart, the groups' states. shared: JOIN_STATES states. */
static inline void join_lanes(struct tensors T, shape_ptr S, GLOBAL struct state *states, int64_t columns, int64_t count,
                              int base, int apart, int lanes, int n, SHARED_POINTER struct state *shared)
{
    const int room = JOIN_STATES / lanes;
    NO_UNROLL
    for (int64_t first = 0; first < count; first += room) {
        const int here = count - first < room ? (int)(count - first) : room;
        GLOBAL struct state *at = states + columns + first;
        NO_UNROLL
        for (int i = THREAD; i < lanes * here; i += THREADS) {
            const int lane = base + i / here * apart;
            if (lane < n)
                shared[i] = lane_of_tiles(S, at + i % here, lane, n);
        }
        BARRIER();
        NO_UNROLL
        for (int reach = lanes / 2; reach; reach /= 2) {
            NO_UNROLL
            for (int i = THREAD; i < reach * here; i += THREADS)
                if (base + (i / here + reach) * apart < n)
                    shared[i] = combine(shared[i], shared[i + reach * here]);
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
#else
enum { /* of states that are not large 16 columns, 64 bytes or more, by 8 lanes a thread; else half of both */
    JOIN_LARGE = STATE_WORDS > 2 ? 2 : 1,
    JOIN_BESIDE = (THREADS < 64 ? 2 : THREADS < 128 ? 4 : THREADS < 256 ? 8 : 16) / JOIN_LARGE,
    JOIN_THREADS = 16 * JOIN_LARGE,
    JOIN_HELD = LANES / JOIN_THREADS
};

/* Columns of n <= TILE tiles, JOIN_BESIDE of them at a time by the whole block, so that states beside each other are read
 * together: a thread has the lanes own, own + JOIN_THREADS ... of one. shared: THREADS states. */
static inline void join_beside(struct tensors T, shape_ptr S, GLOBAL const struct state *states, int64_t columns,
                               int count, int n, SHARED_POINTER struct state *shared)
{
    const int own = THREAD / JOIN_BESIDE, c = THREAD % JOIN_BESIDE;
    NO_UNROLL
    for (int first = 0; first < count; first += JOIN_BESIDE) {
        const int end = own < JOIN_THREADS && first + c < count ? n : 0;
        GLOBAL const struct state *from = states + columns + first + c;
        struct state s[JOIN_HELD];
        UNROLL
        for (int i = 0; i < JOIN_HELD; i++)
            s[i] = state_identity();
        NO_UNROLL
        for (int k = own; k < end; k += LANES) {
            struct state next[JOIN_HELD];
            UNROLL
            for (int i = 0; i < JOIN_HELD; i++) {
                next[i] = state_identity();
                if (k + JOIN_THREADS * i < end)
                    next[i] = load_state(from + (k + JOIN_THREADS * i) * S->kept_total);
            }
            UNROLL
            for (int i = 0; i < JOIN_HELD; i++)
                s[i] = combine(s[i], next[i]);
        }
        UNROLL
        for (int reach = JOIN_HELD / 2; reach; reach /= 2)
            UNROLL
            for (int i = 0; i < JOIN_HELD / 2; i++)
                if (i < reach && (i + reach) * JOIN_THREADS < n)
                    s[i] = combine(s[i], s[i + reach]);
        NO_UNROLL
        for (int reach = JOIN_THREADS / 2; reach; reach /= 2) {
            shared[THREAD] = s[0];
            BARRIER();
            if (own < reach && reach < n)
                s[0] = combine(s[0], shared[THREAD + reach * JOIN_BESIDE]);
            BARRIER();
        }
        if (own == 0 && first + c < count)
            finish_output(T, S, columns + first + c, s[0], S->reduced_total);
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
    join_lanes(T, S, states, columns, count, group, GROUPS, LANES / GROUPS, n, shared);
    if (last_to_arrive(counters, GROUPS, flag))
        join_lanes(T, S, states, columns, count, 0, 1, GROUPS, GROUPS, shared);
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
    if (S->p[0] <= TILE) {
        join_beside(T, S, states, columns, (int)count, n, shared);
        return;
    }
    states = block_fold(exchange_, states, S->kept_total, S->p[0], columns, count);
    for (int c = THREAD; c < count; c += THREADS)
        finish_output(T, S, columns + c, load_state(states + columns + c), S->reduced_total);
#endif
#endif
}
