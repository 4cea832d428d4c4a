/* Outputs of several tiles. Each team of a block folds a tile at a time; the tiles of an output belong to p[1] blocks,
 * p[2] tiles to each; whoever finishes last folds the tiles' states.
 *
 * FEW: at least how many tiles an output has, where that is LANES or less and they belong to one block: their states stay
 * in shared memory. Else 0. FEW_EXACT: it has as many.
 *
 * Moments of full tiles (WHOLE_TILES) are merged by weights that are known: those of a chain's steps (chain_weights).
 *
 * AWAITED: instead of counting who has finished, the block of an output's last tiles folds the states of the output
 * p[4] before, waiting for those that are not there yet: whose low word is AWAITED, the bits of a NaN that no 16-bit
 * float becomes, nor any operation makes; a sum of a tile's bytes is smaller. It waits for blocks before it only, and a
 * GPU begins blocks in their order.
 *
 * p[0]: tiles of an output; p[2] divides TILE, so that a block's tiles are of one group of TILE. workspace: p[3] states
 * for every output, then for every output a counter for each group, and one. */

/* team_tree as a loop around OWN / 2 merges, for what is rare: those of moments are long to compile. (As long as a thread
 * has several lanes it exchanges halves of them, then the one that is left.) */
static inline struct state rare_tree(EXCHANGE_TYPE exchange_, struct state s[OWN])
{
    int own = OWN, distance = TEAM / 2;
    NO_UNROLL
    for (int reach = LANES / 2; reach; reach /= 2) {
        const int halves = own > 1, upper = halves && THREAD & distance;
        own = halves ? own / 2 : 1;
        UNROLL
        for (int j = 0; j < OWN / 2; j++) {
            struct state mine = s[j], second = mine;
            UNROLL
            for (int n = OWN / 2; n > j; n /= 2)
                second = choose(halves && own == n, s[j + n], second);
            s[j] = combine_across(choose(upper, second, mine),
                                  exchange_state(exchange_, choose(upper, mine, second), distance, 0), distance, 0);
        }
        distance = distance > 1 ? distance / 2 : TEAM / 2;
    }
    return s[0];
}

/* The tree of a tile. whole: all lanes of the block's tiles are full, and the number of their elements, which the compiler
 * then knows, makes that moments are merged without dividing. */
static inline struct state tile_tree(EXCHANGE_TYPE exchange_, struct state s[OWN], int whole,
                                     const struct origins *origins)
{
#if MOMENTS && !WINDOWS
    if (whole || WHOLE_TILES) {
        UNROLL
        for (int j = 0; j < OWN; j++)
            s[j].n = TILE / LANES;
        return team_tree(exchange_, s, 1, origins);
    }
    if (!FEW && TEAM_VECTOR > 1 && LEFT_OVER == 1)
        return rare_tree(exchange_, s);
#endif
    return team_tree(exchange_, s, 0, origins);
}

#if ALONG
/* A tile of a warp, of the row that begins at `start`. weights_: of the last tile, then of full ones. */
static inline struct state warp_tile(EXCHANGE_TYPE exchange_, weights_type weights_, struct tensors T, shape_ptr S,
                                     struct place start, int64_t first, int n)
{
    const int shift = row_shift(T, start);
    struct state s[4];
    if (n == TILE)
        tile_lanes(T, S, start, first, n, shift, STEPS_OF_TILE, STEPS_OF_TILE, s);
    else
        tile_lanes(T, S, start, first, n, shift, STEPS_OF_TILE, 0, s);
    return tile_levels(exchange_, weights_ + (MERGE_WEIGHTS && n == TILE ? 2 * LEVELS : 0), n, shift, 0, s);
}
#define FOLD_TILE(first, n, whole) warp_tile(exchange_, weights_, T, S, start, first, n)
#else
#define WEIGHTS_MEMORY
#define FOLD_TILE(first, n, whole) \
    (team_lanes(exchange_, &origins, T, S, start, first, n, b.vectors != 0, s), \
     tile_tree(exchange_, s, whole, &origins))
#endif

#ifndef FEW_EXACT
#define FEW_EXACT 0
#endif

/* Of moments few states are joined by one thread: a warp's exchanges would be all warps'. */
#define FEW_BY_ONE (FEW && (OUTPUTS_BESIDE > 1 || (MOMENTS && !ALONG && FEW * STATE_WORDS <= 40)))
#if FEW_BY_ONE
/* The halving tree over an output's few tiles, in shared memory, by one thread. */
static inline struct state few_tiles(SHARED_POINTER const struct state *states, int count)
{
    struct state s[FEW];
    UNROLL
    for (int i = 0; i < FEW; i++)
        s[i] = states[FEW_EXACT || i < count ? i : 0];
    UNROLL
    for (int reach = FEW / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < FEW / 2; i++)
            if (i < reach && (FEW_EXACT || i + reach < count))
#if FEW_EXACT
                s[i] = combine_weighted(s[i], s[i + reach], chain_weights(1, FEW / 2 / reach * TILE));
#else
                s[i] = combine(s[i], s[i + reach]);
#endif
    return s[0];
}
#endif

#if OUTPUTS_BESIDE > 1
/* OUTPUTS_BESIDE neighbouring outputs a block: what neighbouring teams read at a time lies beside each other. */
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    struct origins origins = no_origins();
    SHARED struct state shared[OUTPUTS_BESIDE * FEW];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % TEAM, team = THREAD / TEAM, output = team % OUTPUTS_BESIDE, tiles = (int)S->p[0];
    const int64_t o = BLOCK * OUTPUTS_BESIDE + output;
    const struct place start = kept_place(S, o < S->kept_total ? o : 0);
    for (int first = 0; first < tiles; first += TEAMS / OUTPUTS_BESIDE) {
        const int tile = first + team / OUTPUTS_BESIDE;
        const int64_t left = S->reduced_total - (int64_t)tile * TILE;
        struct state s[OWN];
        team_lanes(exchange_, &origins, T, S, start, (int64_t)tile * TILE,
                   tile >= tiles ? 0 : left < TILE ? (int)left : TILE, b.vectors != 0, s);
        const struct state a = team_tree(exchange_, s, 0, &origins);
        if (t == 0 && tile < tiles)
            shared[output * FEW + tile] = a;
    }
    BARRIER();
    if (THREAD < OUTPUTS_BESIDE && BLOCK * OUTPUTS_BESIDE + THREAD < S->kept_total)
        finish_output(T, S, BLOCK * OUTPUTS_BESIDE + THREAD, few_tiles(shared + THREAD * FEW, tiles), S->reduced_total);
}
#elif BY_LANE
#if KNOWN_WEIGHTS
/* warp_tree of LANES states of n elements each, a power of two. */
static inline struct state even_tree(EXCHANGE_TYPE exchange_, struct state s[ON_WARP], int64_t n)
{
    UNROLL
    for (int reach = ON_WARP / 2; reach; reach /= 2, n *= 2)
        UNROLL
        for (int j = 0; j < ON_WARP / 2; j++)
            if (j < reach)
                s[j] = combine_weighted(s[j], s[j + reach], chain_weights(1, n));
    NO_UNROLL
    for (int distance = WARP / 2; distance; distance /= 2, n *= 2) {
        const int swap = (THREAD & distance) != 0;
        const struct state other = exchange_state(exchange_, s[0], distance, 1);
        s[0] = combine_weighted(choose_ordered(swap, other, s[0]), choose_ordered(swap, s[0], other),
                                chain_weights(1, n));
    }
    return s[0];
}
#define LANES_TREE(s, count, even) \
    ((even) ? even_tree(exchange_, s, (int64_t)(TILE / LANES) * TILE) : warp_tree(exchange_, s, count, LANES))
#else
#define LANES_TREE(s, count, even) warp_tree(exchange_, s, count, LANES)
#endif

/* The fold of an output's lanes, LANES for each group of TILE tiles: of a group by a warp, of the groups' results by one.
 * The first thread gets the result. shared: a state for each group. */
static inline struct state lanes_fold(EXCHANGE_TYPE exchange_, SHARED_POINTER struct state *shared,
                                      GLOBAL const struct state *lanes, int64_t tiles)
{
    const int groups = (int)((tiles + TILE - 1) / TILE), t = THREAD % WARP;
    struct state s[ON_WARP];
    for (int first = 0; first < groups; first += WARPS) {
        const int group = first + THREAD / WARP;
        const int64_t left = tiles - (int64_t)group * TILE;
        const int count = group >= groups ? 0 : left < LANES ? (int)left : LANES;
        UNROLL
        for (int j = 0; j < ON_WARP; j++) {
            s[j] = state_identity();
            if (t + j * WARP < count)
                s[j] = load_state(lanes + group * LANES + t + j * WARP);
        }
        const struct state a = LANES_TREE(s, count, WHOLE_TILES && tiles % TILE == 0);
        if (t == 0 && group < groups)
            shared[group] = a;
    }
    BARRIER();
    UNROLL
    for (int j = 0; j < ON_WARP; j++) {
        s[j] = state_identity();
        if (t + j * WARP < groups)
            s[j] = shared[t + j * WARP];
    }
    return warp_tree(exchange_, s, groups, LANES);
}

/* A block has a lane of the tiles' sequence: of a group of TILE tiles every LANES-th. It chains them itself, so that
 * little is left to do for the block that arrives last. */
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    struct origins origins = no_origins();
    WEIGHTS_MEMORY
    SHARED int flag;
    SHARED struct state shared[LANES];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % TEAM, team = THREAD / TEAM;
    const int64_t parts = S->p[1], o = block_over(parts), tiles = S->p[0], part = block_past(parts);
    const int64_t first = part / LANES * TILE + part % LANES, left_of_group = tiles - first;
    const int mine = (int)((left_of_group < TILE ? left_of_group : TILE - part % LANES) + LANES - 1) / LANES;
    GLOBAL struct state *states = (GLOBAL struct state *)workspace + o * S->p[3];
    const struct place start = kept_place(S, o);
#if ALONG && MERGE_WEIGHTS
    make_weights(weights_, (int)(S->reduced_total - (tiles - 1) * TILE));
    make_weights(weights_ + 2 * LEVELS, TILE);
    BARRIER();
#endif
    for (int k = 0; k < mine; k += TEAMS) {
        const int64_t at = (first + (int64_t)(k + team) * LANES) * TILE, left = S->reduced_total - at;
        const int n = k + team >= mine ? 0 : left < TILE ? (int)left : TILE;
        struct state s[OWN];
        const struct state a =
            FOLD_TILE(at, n, k + TEAMS <= mine && first + (int64_t)(k + TEAMS - 1) * LANES < tiles - 1);
        if (t == 0 && k + team < mine)
            shared[k + team] = a;
    }
    BARRIER();
    if (THREAD == 0) {
        struct state a = shared[0];
        for (int k = 1; k < mine; k++)
            a = chained(a, shared[k], k, WHOLE_TILES || first + k * LANES < tiles - 1 ? TILE : 0);
        states[part] = a;
    }
    GLOBAL uint32_t *counters = (GLOBAL uint32_t *)((GLOBAL struct state *)workspace + S->kept_total * S->p[3]);
    if (!last_to_arrive(counters + o, parts, &flag))
        return;
    const struct state a = lanes_fold(exchange_, shared, states, tiles);
    if (THREAD == 0)
        finish_output(T, S, o, a, S->reduced_total);
}
#else
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    struct origins origins = no_origins();
    WEIGHTS_MEMORY
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % TEAM, team = THREAD / TEAM;
    const int64_t parts = FEW && (MOMENTS || LOGSUMS) ? 1 : S->p[1], o = block_over(parts), tiles = S->p[0];
    const int64_t first = block_past(parts) * S->p[2], end = first + S->p[2] < tiles ? first + S->p[2] : tiles;
    GLOBAL struct state *states = (GLOBAL struct state *)workspace + o * S->p[3];
    const struct place start = kept_place(S, o);
    SHARED struct state shared[FEW ? FEW : FOLD_THREADS];
#if ALONG && MERGE_WEIGHTS
    make_weights(weights_, (int)(S->reduced_total - (tiles - 1) * TILE));
    make_weights(weights_ + 2 * LEVELS, TILE);
    BARRIER();
#endif
    for (int64_t tile = first; tile < end; tile += TEAMS) {
        const int64_t mine = tile + team, left = S->reduced_total - mine * TILE;
        const int n = mine >= end ? 0 : left < TILE ? (int)left : TILE;
        struct state s[OWN];
        const struct state a =
            FOLD_TILE(mine * TILE, n, tile + TEAMS <= end && (tile + TEAMS) * TILE <= S->reduced_total);
        if (t == 0 && mine < end) {
#if FEW
            shared[mine] = a;
#else
            states[mine] = a;
#endif
        }
    }
#if FEW_BY_ONE
    BARRIER();
    if (THREAD == 0)
        finish_output(T, S, o, few_tiles(shared, (int)tiles), S->reduced_total);
#elif FEW
    struct state s[ON_WARP];
    BARRIER();
    UNROLL
    for (int j = 0; j < ON_WARP; j++) {
        const int i = THREAD % WARP + j * WARP;
        s[j] = state_identity();
        if (i < FEW && i < tiles)
            s[j] = shared[i];
    }
    struct state a = warp_tree(exchange_, s, (int)tiles, FEW);
    if (THREAD == 0)
        finish_output(T, S, o, a, S->reduced_total);
#else
    /* level by level; of the first one, where several blocks have tiles of the output, the last block of each TILE tiles
     * folds these, and the last of these blocks goes on */
#if AWAITED
    if (end < tiles)
        return;
    /* nobody comes behind the last outputs */
    for (int64_t of = o < S->p[4] ? o : o - S->p[4]; of == o - S->p[4] || (of == o && o + S->p[4] >= S->kept_total);
         of += S->p[4]) {
        states = (GLOBAL struct state *)workspace + of * S->p[3];
        const struct state a = group_fold(exchange_, shared, states, (int)tiles, 0);
        if (THREAD == 0)
            finish_output(T, S, of, a, S->reduced_total);
    }
#else
    int64_t count = tiles, groups = (tiles + TILE - 1) / TILE, group = 0, last = groups;
    GLOBAL uint32_t *counters =
        (GLOBAL uint32_t *)((GLOBAL struct state *)workspace + S->kept_total * S->p[3]) + o * (groups + 1);
    if (parts > 1) {
        group = first / TILE;
        last = group + 1;
        const int64_t mine = last < groups ? TILE : tiles - group * TILE;
        if (!last_to_arrive(counters + group, (uint32_t)(mine + S->p[2] - 1) / (uint32_t)S->p[2], &flag))
            return;
    } else {
        FENCE();
        BARRIER();
    }
    struct state a = state_identity();
    for (;;) {
        for (; group < last; group++) {
            const int64_t left = count - group * TILE;
            a = group_fold(exchange_, shared, states + group * TILE, left < TILE ? (int)left : TILE,
                           WHOLE_TILES && count == tiles ? TILE : 0);
            if (THREAD == 0 && groups > 1)
                states[count + group] = a;
        }
        if (groups == 1)
            break;
        if (parts > 1 && count == tiles && !last_to_arrive(counters + groups, groups, &flag))
            return;
        states += count;
        count = groups;
        groups = (count + TILE - 1) / TILE;
        group = 0;
        last = groups;
        FENCE();
        BARRIER();
    }
    if (THREAD == 0)
        finish_output(T, S, o, a, S->reduced_total);
#endif
#endif
}
#endif
