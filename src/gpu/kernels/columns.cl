/* Outputs that lie next to each other in the operands: neighbouring threads take neighbouring outputs, a column each,
 * and LANE_THREADS threads share a column's lanes (t, t + LANE_THREADS ...), HELD of them each. The tree's upper levels
 * stay inside a thread; the rest goes through shared memory.
 *
 * p[0]: tiles of a column, p[1]: blocks that share them, p[2]: tiles of one block.
 * workspace: p[3] states for every column, tile by tile, then a counter for every p[1] blocks. */
enum { BLOCK_COLUMNS = THREADS / LANE_THREADS, OWN_LANES = LANE_THREADS * HELD };

/* The lanes of elements first ... first+n-1, n <= TILE. */
static inline void column_lanes(struct tensors T, shape_ptr S, struct place start, int64_t first, int n,
                                struct state s[HELD])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    struct lane l[HELD];
    UNROLL
    for (int i = 0; i < HELD; i++)
        l[i] = empty_lane();
    NO_UNROLL
    for (int second = 0; second <= TWO_PHASES; second++) {
        NO_UNROLL
        for (int k = 0; k * LANES < n; k += BATCH) {
            struct raw r[BATCH][HELD];
            struct place p[BATCH][HELD];
            UNROLL
            for (int u = 0; u < BATCH; u++)
                UNROLL
                for (int i = 0; i < HELD; i++) {
                    const int e = (k + u) * LANES + own + LANE_THREADS * i;
                    p[u][i] = element_place(S, start, first + e);
                    if (e < n && inside(S, p[u][i]))
                        r[u][i] = fetch(T, p[u][i]);
                }
            UNROLL
            for (int u = 0; u < BATCH; u++)
                UNROLL
                for (int i = 0; i < HELD; i++) {
                    const int e = (k + u) * LANES + own + LANE_THREADS * i;
                    if (e < n && inside(S, p[u][i])) {
                        struct element x = map_element(r[u][i]);
                        if (second)
                            chain_second(&l[i], x);
                        else
                            chain(S, &l[i], x, k + u, first + own + LANE_THREADS * i);
                    }
                }
        }
    }
    UNROLL
    for (int i = 0; i < HELD; i++) {
        const int lane = own + LANE_THREADS * i;
        s[i] = lane_state(S, l[i], first + lane, lane_count(n, lane));
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    SHARED struct state shared[THREADS];
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t parts = S->p[1], part = BLOCK / S->p[4], columns = BLOCK % S->p[4] * BLOCK_COLUMNS, tiles = S->p[0];
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    const int64_t o = columns + THREAD / (COLUMN_THREADS * LANE_THREADS) * COLUMN_THREADS + THREAD % COLUMN_THREADS;
    const int64_t end = (part + 1) * S->p[2] < tiles ? (part + 1) * S->p[2] : tiles;
    const struct place start = kept_place(S, o < S->kept_total ? o : 0);
    GLOBAL struct state *states = (GLOBAL struct state *)workspace;
    for (int64_t tile = part * S->p[2]; tile < end; tile++) {
        const int64_t left = S->reduced_total - tile * TILE;
        struct state s[HELD];
        column_lanes(T, S, start, tile * TILE, o >= S->kept_total ? 0 : left < TILE ? (int)left : TILE, s);
        UNROLL
        for (int reach = HELD / 2; reach; reach /= 2)
            UNROLL
            for (int i = 0; i < HELD / 2; i++)
                if (i < reach)
                    s[i] = combine(s[i], s[i + reach]);
        for (int reach = LANE_THREADS / 2; reach; reach /= 2) {
            shared[THREAD] = s[0];
            BARRIER();
            if (own < reach)
                s[0] = combine(s[0], shared[THREAD + reach * COLUMN_THREADS]);
            BARRIER();
        }
        if (own == 0 && o < S->kept_total) {
            if (tiles == 1)
                finish_output(T, S, o, s[0], S->reduced_total);
            else
                states[tile * S->kept_total + o] = s[0];
        }
    }
    if (tiles == 1)
        return;
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)(states + S->kept_total * S->p[3]);
    if (!last_to_arrive(counters + BLOCK % S->p[4], parts, &flag))
        return;
    const int64_t count = S->kept_total - columns < BLOCK_COLUMNS ? S->kept_total - columns : BLOCK_COLUMNS;
    states = block_fold(exchange_, states, S->kept_total, tiles, columns, count);
    if (THREAD < count)
        finish_output(T, S, columns + THREAD, load_state(states + columns + THREAD), S->reduced_total);
}
