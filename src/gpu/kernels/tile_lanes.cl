/* Tiles that a warp folds element by element, its lanes in turns, so that a thread has as many elements in flight as
 * fit in its registers. A row's accesses begin where lines of
 * memory do, or their halves: what two turns read of one would be read twice. ROWS_SHIFT: whether they do. */
enum { IN_FLIGHT = 32, STEPS_OF_TILE = TILE / LANES };

/* How many elements before the row begins its first access does. */
static inline int row_shift(struct tensors T, struct place start)
{
    int shift = 0;
#define X(s) shift = (int)((size_t)(T.in##s + start.i##s) / sizeof(in##s##_t) % WARP);
    FOR_MAP_INPUTS(X)
#undef X
    return ROWS_SHIFT ? shift : 0;
}

/* The lanes of elements from ... from + n - 1 of the row that starts at `start`, which have at most `steps`, at least
 * `full` elements. */
static inline void tile_lanes(struct tensors T, shape_ptr S, struct place start, int64_t from, int n, int shift,
                              const int steps, const int full, struct state s[4])
{
    const int turns = steps > 16 ? 4 : steps > 8 ? 2 : 1, of_turn = 4 / turns, t = THREAD % WARP;
    UNROLL
    for (int j = 0; j < 4; j++)
        s[j] = state_identity();
    NO_UNROLL
    for (int turn = 0; turn < turns; turn++) {
        struct raw r[IN_FLIGHT];
        struct place first[4];
        UNROLL
        for (int q = 0; q < of_turn; q++)
            first[q] = element_place(S, start, from + slot_lane(t, turn + q * turns, shift));
        UNROLL
        for (int i = 0; i < IN_FLIGHT; i++) {
            const int k = i / of_turn, q = i % of_turn;
            r[i] = no_raw();
            if (k < full || (k < steps && k * LANES + slot_lane(t, turn + q * turns, shift) < n))
                r[i] = fetch(T, element_place(S, first[q], k * LANES));
        }
        LOADED();
        UNROLL
        for (int q = 0; q < of_turn; q++) {
            const int j = turn + q * turns, lane = slot_lane(t, j, shift);
            struct lane l = empty_lane();
            if (LOGSUMS)
                set_origin(&l, map_element(r[q]));
            UNROLL
            for (int k = 0; k < IN_FLIGHT / of_turn; k++)
                if (k < steps)
                    chain(S, &l, map_element(r[k * of_turn + q]), k, from + lane, weights_of(k),
                          k < full || k * LANES + lane < n);
            if (LOGSUMS && steps == 1)
                settle_one(&l, lane < n);
            else if (LOGSUMS)
                settle(T, S, start, &l, from + lane, lane_count(n, lane));
            const struct state a = lane_state(S, l, from + lane, full || lane < n);
            UNROLL
            for (int i = 0; i < 4; i++)
                s[i] = choose(i == j, a, s[i]);
        }
    }
}

static inline struct state levels_of(EXCHANGE_TYPE exchange_, weights_type weights_, int n, int shift, const int full,
                                     const int known, struct state s[4])
{
    const int t = THREAD % WARP;
    own_levels(weights_, t, n, shift, 4, full ? 4 : 0, 4, known, s);
    UNROLL
    for (int level = 4; level >= 0; level--)
        s[0] = across_level(weights_, s[0], exchange_state(exchange_, s[0], 1 << level, 1), level,
                            (t - shift) & (WARP - 1), n, full > 0, known);
#if HAS_COUNT
    s[0].n = n;
#endif
    return s[0];
}

/* Their tree. */
static inline struct state tile_levels(EXCHANGE_TYPE exchange_, weights_type weights_, int n, int shift, const int full,
                                       struct state s[4])
{
    int far = 0;
    UNROLL
    for (int j = 0; j < 4; j++)
        far |= state_is_far(s[j]);
    if (LOGSUMS && ANY_OF_WARP(far))
        return levels_of(exchange_, weights_, n, shift, full, SURE, s);
    return levels_of(exchange_, weights_, n, shift, full, NEAR_SUMS, s);
}
