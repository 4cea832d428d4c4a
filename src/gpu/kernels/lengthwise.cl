/* Rows of more than 1024 elements, up to a few tiles, that are no whole vectors: a warp takes a row, element by element,
 * a tile after the other, and of a tile its lanes in turns, so that a thread has as many elements in flight as fit in its
 * registers (and, where they are needed twice, reads none again).
 *
 * TILES: of a row. CHAIN: elements of a lane of its last tile, at most; FULL: and at least. */
enum { IN_FLIGHT = 32, STEPS_OF_TILE = TILE / LANES };

/* Elements from ... from + n - 1 of the row that starts at `start`, in lanes of at most `steps`, at least `full`
 * elements. */
static inline struct state fold_tile(EXCHANGE_TYPE exchange_, weights_type weights_, struct tensors T, shape_ptr S,
                                     struct place start, int from, int n, const int steps, const int full)
{
    const int turns = steps > 16 ? 4 : steps > 8 ? 2 : 1, of_turn = 4 / turns, t = THREAD % WARP;
    struct state s[4];
    UNROLL
    for (int j = 0; j < 4; j++)
        s[j] = state_identity();
    NO_UNROLL
    for (int turn = 0; turn < turns; turn++) {
        const struct place first = element_place(S, start, from + turn * WARP + t);
        struct raw r[IN_FLIGHT];
        UNROLL
        for (int i = 0; i < IN_FLIGHT; i++) {
            const int k = i / of_turn, e = k * LANES + i % of_turn * turns * WARP;
            r[i] = no_raw();
            if (k < full || (k < steps && e + turn * WARP + t < n))
                r[i] = fetch(T, element_place(S, first, e));
        }
        LOADED();
        UNROLL
        for (int q = 0; q < of_turn; q++) {
            const int j = turn + q * turns, lane = j * WARP + t;
            struct lane l = empty_lane();
            UNROLL
            for (int second = 0; second <= (TWO_PHASES && steps > 1); second++)
                UNROLL
                for (int k = 0; k < IN_FLIGHT / of_turn; k++) {
                    const int present = k < full || k * LANES + lane < n;
                    if (k < steps && second)
                        chain_second(&l, map_element(r[k * of_turn + q]), present);
                    else if (k < steps)
                        chain(S, &l, map_element(r[k * of_turn + q]), k, from + lane, weights_of(k), present);
                }
            if (steps == 1)
                chain_only(&l, lane < n);
            const struct state a = lane_state(S, l, from + lane, full || lane < n);
            UNROLL
            for (int i = 0; i < 4; i++)
                s[i] = choose(i == j, a, s[i]);
        }
    }
    own_levels(weights_, t, n, 4, full ? 4 : 0, 4, s);
    UNROLL
    for (int level = 4; level >= 0; level--)
        s[0] = across_level(weights_, s[0], exchange_state(exchange_, s[0], 1 << level, 1), level, n, full > 0);
#if HAS_COUNT
    s[0].n = n;
#endif
    return s[0];
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    WEIGHTS_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int n = (int)S->reduced_total;
    /* the last warps may take a row that another takes too: cheaper than conditions */
    const int64_t row = BLOCK * (THREADS / WARP) + THREAD / WARP, o = row < S->kept_total ? row : S->kept_total - 1;
    const struct place start = kept_place(S, o);
    struct state s[TILES];
    make_weights(weights_, n - (TILES - 1) * TILE);
#if TILES > 1 && MERGE_WEIGHTS
    make_weights(weights_ + 2 * LEVELS, TILE);
#endif
    if (MERGE_WEIGHTS)
        BARRIER();
    s[TILES - 1] = fold_tile(exchange_, weights_, T, S, start, (TILES - 1) * TILE, n - (TILES - 1) * TILE, CHAIN, FULL);
#if TILES > 1
    UNROLL
    for (int i = 0; i < TILES - 1; i++)
        s[i] = s[TILES - 1];
    NO_UNROLL
    for (int tile = 0; tile < TILES - 1; tile++) {
        const struct state a =
            fold_tile(exchange_, weights_ + (MERGE_WEIGHTS ? 2 * LEVELS : 0), T, S, start, tile * TILE, TILE,
                      STEPS_OF_TILE, STEPS_OF_TILE);
        UNROLL
        for (int i = 0; i < TILES - 1; i++)
            s[i] = choose(i == tile, a, s[i]);
    }
    UNROLL
    for (int reach = TILES > 2 ? 2 : 1; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < TILES / 2; i++)
            if (i < reach && i + reach < TILES)
                s[i] = combine(s[i], s[i + reach]);
#endif
    if (THREAD % WARP == 0)
        finish_output(T, S, o, s[0], n);
}
