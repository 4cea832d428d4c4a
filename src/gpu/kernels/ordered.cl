/* Reducers whose elements keep their order: neighbours are combined in pairs, left with right, a balanced tree over each
 * tile and then over the tiles. WIDTH threads take a tile, CHUNK consecutive elements each at a time; SPAN elements become
 * one state, and these are joined as a binary counter counts. A block's teams take BESIDE outputs next to each other.
 * The other reducers of the expression (OTHERS) are folded behind them, in the order that they have everywhere.
 *
 * p[0]: tiles of an output, p[1]: blocks that share them, p[2]: tiles of one block, p[4]: blocks side by side.
 * workspace: p[3] states for every output, tile by tile, then a counter for every block side by side. */
enum { ORDERED_TEAMS = THREADS / WIDTH, SPAN = WIDTH * CHUNK, TILES_AT_ONCE = ORDERED_TEAMS / BESIDE };

/* p moved to element e in the order as written. */
static inline struct place ordered_place(shape_ptr S, struct place p, int64_t e)
{
#ifdef MOVE_AS_WRITTEN
    MOVE_AS_WRITTEN(e, p)
    return p;
#else
    return element_place(S, p, e);
#endif
}

/* The CHUNK elements of the tile from number `from` on, of n. */
static inline struct state chunk_of_elements(struct tensors T, shape_ptr S, struct place start, int64_t first, int from,
                                             int n, int vectors)
{
    struct raws r[CHUNK / VECTOR];
    struct place p[CHUNK / VECTOR];
    struct state s[CHUNK];
    s[0] = state_identity();
    UNROLL
    for (int f = 0; f < CHUNK / VECTOR; f++) {
        const int e = from + f * VECTOR;
        r[f] = no_elements();
        if (e < n) {
            p[f] = ordered_place(S, start, first + e);
            if (inside(S, p[f]))
                r[f] = fetch_vector(T, S, p[f], LOOPS - 1, vectors);
        }
    }
    LOADED();
    UNROLL
    for (int i = 0; i < CHUNK; i++)
        s[i] = ordered_state(map_element(one_of_vector(r[i / VECTOR], i % VECTOR)),
                             PRESENCE(from + i < n, inside(S, p[i / VECTOR])));
    UNROLL
    for (int gap = 1; gap < CHUNK; gap *= 2)
        UNROLL
        for (int i = 0; i + gap < CHUNK; i += 2 * gap)
            s[i] = combine_ordered(s[i], s[i + gap]);
    return s[0];
}

/* As many tiles' states. */
static inline struct state chunk_of_states(GLOBAL const struct state *states, int64_t stride, int from, int n)
{
    struct state s[CHUNK];
    s[0] = state_identity();
    UNROLL
    for (int i = 0; i < CHUNK; i++) {
        s[i] = state_identity();
        if (from + i < n)
            s[i] = load_state(states + (from + i) * stride);
    }
    UNROLL
    for (int gap = 1; gap < CHUNK; gap *= 2)
        UNROLL
        for (int i = 0; i + gap < CHUNK; i += 2 * gap)
            s[i] = combine_ordered(s[i], s[i + gap]);
    return s[0];
}

/* Counts span number k: two states of equal height become one; whatever number of spans is a power of two ends in one. */
static inline struct state count_span(struct state pending[SPAN_LEVELS + 1], struct state s, int k)
{
    int carries = 1;
    UNROLL
    for (int l = 0; l < SPAN_LEVELS; l++) {
        if (carries && (k >> l & 1))
            s = combine_ordered(pending[l], s);
        else if (carries) {
            pending[l] = s;
            carries = 0;
        }
    }
    return s;
}

/* The team's chunks, left to right; every thread gets the result. */
static inline struct state span_of(EXCHANGE_TYPE exchange_, struct state s)
{
    NO_UNROLL
    for (int distance = 1; distance < WIDTH; distance *= 2) {
        struct state other = exchange_state(exchange_, s, distance, 0);
        s = combine_ordered(choose(THREAD & distance, other, s), choose(THREAD & distance, s, other));
    }
    return s;
}

/* A tile's elements, n of them; the last step of the counter has all. */
static inline struct state fold_elements(EXCHANGE_TYPE exchange_, struct tensors T, shape_ptr S, struct place start,
                                         int64_t first, int n, int vectors)
{
    struct state pending[SPAN_LEVELS + 1], s = state_identity();
    NO_UNROLL
    for (int k = 0; k < (1 << SPAN_LEVELS); k++) {
        const int from = k * SPAN + THREAD % WIDTH * CHUNK;
        if (VECTOR == 1 || vectors)
            s = chunk_of_elements(T, S, start, first, from, n, 1);
        else
            s = chunk_of_elements(T, S, start, first, from, n, 0);
        s = count_span(pending, span_of(exchange_, s), k);
    }
    return s;
}

static inline struct state fold_states(EXCHANGE_TYPE exchange_, GLOBAL const struct state *states, int64_t stride, int n)
{
    struct state pending[SPAN_LEVELS + 1], s = state_identity();
    NO_UNROLL
    for (int k = 0; k < (1 << SPAN_LEVELS); k++)
        s = count_span(pending,
                       span_of(exchange_, chunk_of_states(states, stride, k * SPAN + THREAD % WIDTH * CHUNK, n)), k);
    return s;
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int team = THREAD / WIDTH;
    const int64_t part = block_over(S->p[4]), side = block_past(S->p[4]) * BESIDE, o = side + team % BESIDE, tiles = S->p[0];
    const int64_t end = (part + 1) * S->p[2] < tiles ? (part + 1) * S->p[2] : tiles, all = S->kept_total;
    const struct place start = kept_place(S, o < all ? o : 0);
    GLOBAL struct state *states = (GLOBAL struct state *)workspace;
    for (int64_t tile = part * S->p[2]; tile < end; tile += TILES_AT_ONCE) {
        const int64_t mine = tile + team / BESIDE, left = S->reduced_total - mine * TILE;
        const int n = mine >= end || o >= all ? 0 : left < TILE ? (int)left : TILE;
        struct state s = fold_elements(exchange_, T, S, start, mine * TILE, n, b.vectors != 0);
#if OTHERS
        struct state lanes[OWN];
        struct origins origins = no_origins();
        team_lanes(exchange_, &origins, T, S, start, mine * TILE, n, b.vectors != 0, lanes);
        s = with_others(s, team_tree(exchange_, lanes, 0, &origins));
#endif
        if (THREAD % WIDTH == 0 && mine < end && o < all) {
            if (tiles == 1)
                finish_output(T, S, o, s, S->reduced_total);
            else
                states[mine * all + o] = s;
        }
    }
    if (tiles == 1)
        return;
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)(states + all * S->p[3]);
    if (!last_to_arrive(counters + block_past(S->p[4]), S->p[1], &flag))
        return;
    for (int64_t n = tiles, groups; n > 1; n = groups) {
        groups = (n + TILE - 1) / TILE;
        for (int64_t first = 0; first < groups * BESIDE; first += ORDERED_TEAMS) {
            const int64_t unit = first + team, group = unit / BESIDE, at = side + unit % BESIDE, left = n - group * TILE;
            const int count = group >= groups || at >= all ? 0 : left < TILE ? (int)left : TILE;
            GLOBAL struct state *from = states + group * TILE * all + at;
            struct state s = fold_states(exchange_, from, all, count);
#if OTHERS
            s = with_others(s, warp_fold(exchange_, from, all, count));
#endif
            if (THREAD % WIDTH == 0 && count)
                states[(n + group) * all + at] = s;
        }
        FENCE();
        BARRIER();
        states += n * all;
    }
    for (int64_t c = side + THREAD; c < side + BESIDE && c < all; c += THREADS)
        finish_output(T, S, c, load_state(states + c), S->reduced_total);
}
