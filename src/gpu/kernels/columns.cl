/* Outputs that lie next to each other in the operands: neighbouring threads take neighbouring columns, VECTOR each, and
 * LANE_THREADS threads share a column's lanes (t, t + LANE_THREADS ...), HELD of them each. The tree's upper levels stay
 * inside a thread; the rest goes through shared memory.
 *
 * p[0]: tiles of a column, p[1]: blocks that share them, p[2]: tiles of one block, p[4]: blocks side by side.
 * workspace: p[3] states for every column, tile by tile, then a counter for every block side by side. */
enum { SPAN = COLUMN_THREADS * VECTOR, BLOCK_COLUMNS = THREADS / LANE_THREADS * VECTOR };

/* Steps k ... k+steps-1: the loads first. */
static inline void column_batch(struct tensors T, shape_ptr S, struct place start, int64_t first, int k, int n, int full,
                                int steps, int vectors, int second, struct lane l[HELD][VECTOR])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    struct raws r[BATCH][HELD];
    struct place p[BATCH][HELD];
    UNROLL
    for (int u = 0; u < BATCH; u++)
        UNROLL
        for (int i = 0; i < HELD; i++) {
            const int e = (k + u) * LANES + own + LANE_THREADS * i;
            r[u][i] = no_elements();
            if (u < steps && (full || e < n)) {
                p[u][i] = element_place(S, start, first + e);
                if (inside(S, p[u][i]))
                    r[u][i] = fetch_vector(T, S, p[u][i], KEPT - 1, vectors);
            }
        }
    LOADED();
    UNROLL
    for (int u = 0; u < BATCH; u++)
        UNROLL
        for (int i = 0; i < HELD; i++) {
            const int e = (k + u) * LANES + own + LANE_THREADS * i;
            const struct weights w = weights_of(k + u);
            const int present = PRESENCE(u < steps && (full || e < n), inside(S, p[u][i]));
            if (u < steps)
                UNROLL
                for (int c = 0; c < VECTOR; c++) {
                    struct element x = map_element(one_of_vector(r[u][i], c));
                    if (second)
                        chain_second(&l[i][c], x, present);
                    else
                        chain(S, &l[i][c], x, k + u, first + own + LANE_THREADS * i, w, present);
                }
        }
}

/* The lanes of elements first ... first+n-1, n <= TILE. */
static inline void column_lanes(struct tensors T, shape_ptr S, struct place start, int64_t first, int n, int vectors,
                                struct state s[HELD][VECTOR])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    struct lane l[HELD][VECTOR];
    UNROLL
    for (int i = 0; i < HELD; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            l[i][c] = empty_lane();
    NO_UNROLL
    for (int second = 0; second <= TWO_PHASES && n > 0; second++) {
        if (VECTOR > 1 && !vectors) { /* rare, so it is short */
            NO_UNROLL
            for (int k = 0; k * LANES < n; k++)
                column_batch(T, S, start, first, k, n, 0, 1, 0, second, l);
        } else if (n == TILE) {
            NO_UNROLL
            for (int k = 0; k < TILE / LANES; k += BATCH)
                column_batch(T, S, start, first, k, n, 1, BATCH, 1, second, l);
        } else {
            NO_UNROLL
            for (int k = 0; k * LANES < n; k += BATCH)
                column_batch(T, S, start, first, k, n, 0, BATCH, 1, second, l);
        }
    }
    UNROLL
    for (int i = 0; i < HELD; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++) {
            const int lane = own + LANE_THREADS * i;
            s[i][c] = lane_state(S, l[i][c], first + lane, lane_count(n, lane));
        }
}

/* The halving tree; the result is s[0] of a column's first lane thread. */
static inline void column_tree(SHARED_POINTER struct state *shared, struct state s[HELD][VECTOR])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    UNROLL
    for (int reach = HELD / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < HELD / 2; i++)
            UNROLL
            for (int c = 0; c < VECTOR; c++)
                if (i < reach)
                    s[i][c] = combine(s[i][c], s[i + reach][c]);
    NO_UNROLL
    for (int reach = LANE_THREADS / 2; reach; reach /= 2) {
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            shared[c * THREADS + THREAD] = s[0][c];
        BARRIER();
        if (own < reach)
            UNROLL
            for (int c = 0; c < VECTOR; c++)
                s[0][c] = combine(s[0][c], shared[c * THREADS + THREAD + reach * COLUMN_THREADS]);
        BARRIER();
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    SHARED struct state shared[THREADS * VECTOR];
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t part = BLOCK / S->p[4], columns = BLOCK % S->p[4] * BLOCK_COLUMNS, tiles = S->p[0];
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    const int64_t o =
        columns + THREAD / (COLUMN_THREADS * LANE_THREADS) * SPAN + THREAD % COLUMN_THREADS * VECTOR;
    const int64_t end = (part + 1) * S->p[2] < tiles ? (part + 1) * S->p[2] : tiles;
    const struct place start = kept_place(S, o < S->kept_total ? o : 0);
    GLOBAL struct state *states = (GLOBAL struct state *)workspace;
    for (int64_t tile = part * S->p[2]; tile < end; tile++) {
        const int64_t left = S->reduced_total - tile * TILE;
        const int n = o >= S->kept_total ? 0 : left < TILE ? (int)left : TILE;
        struct state s[HELD][VECTOR];
        column_lanes(T, S, start, tile * TILE, n, b.vectors != 0, s);
        column_tree(shared, s);
        if (own == 0 && o < S->kept_total)
            UNROLL
            for (int c = 0; c < VECTOR; c++) {
                if (tiles == 1)
                    finish_output(T, S, o + c, s[0][c], S->reduced_total);
                else
                    states[tile * S->kept_total + o + c] = s[0][c];
            }
    }
    if (tiles == 1)
        return;
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)(states + S->kept_total * S->p[3]);
    if (!last_to_arrive(counters + BLOCK % S->p[4], S->p[1], &flag))
        return;
    const int64_t count = S->kept_total - columns < BLOCK_COLUMNS ? S->kept_total - columns : BLOCK_COLUMNS;
    states = block_fold(exchange_, states, S->kept_total, tiles, columns, count);
    for (int c = THREAD; c < count; c += THREADS)
        finish_output(T, S, columns + c, load_state(states + columns + c), S->reduced_total);
}
