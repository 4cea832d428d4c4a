/* Lanes whose elements are all in registers at once, of VECTOR neighbouring ones: because all are to be in flight, or
 * because two 16-bit floats that come as one word are then compared as one.
 *
 * LOW_HALF, HIGH_HALF: of the element's type, where all that is asked for is one argument of 16-bit floats as they are.
 * BEST: the greatest or the least, with NaNs; its step is the first that has as much (EQUAL). NO_PAIR: two that change
 * nothing. ALL_STEPS: of a tile. LANE_STEP: int, which one instruction adds to a pointer, or int64_t, where a lane's
 * elements are further apart. */

#if defined(LOW_HALF) && HAS_PAIRS
#define AS_PAIRS 1

/* Where the best ones are, a bit for each step: a word's low half has the first lane's of one half of the tile. */
static inline void pair_steps(const uint32_t word[ALL_STEPS], uint32_t best, int nan, struct lane l[2])
{
    enum { BITS = 16 };
    uint32_t at[2] = {0, 0};
    UNROLL
    for (int u = 0; u < ALL_STEPS; u++) {
        uint32_t same = EQUAL(word[u], best);
        if (nan)
            same |= ~EQUAL(word[u], word[u]);
        at[u / BITS] |= same & (0x10001u << u % BITS);
    }
    const uint32_t low = (at[0] & 0xffffu) | at[1] << BITS, high = at[0] >> BITS | (at[1] & 0xffff0000u);
    l[0].r0_at = (int)POPCOUNT(~low & (low - 1));
    l[1].r0_at = (int)POPCOUNT(~high & (high - 1));
}

static inline void pair_lanes(const uint32_t word[ALL_STEPS], struct lane l[2])
{
    uint32_t best = word[0];
    UNROLL
    for (int u = 1; u < ALL_STEPS; u++)
        best = BEST(best, word[u]);
    l[0].r0 = LOW_HALF(best);
    l[1].r0 = HIGH_HALF(best);
    if (LIKELY(l[0].r0 == l[0].r0 && l[1].r0 == l[1].r0))
        pair_steps(word, best, 0, l);
    else
        pair_steps(word, best, 1, l);
}
#else
#define AS_PAIRS 0
#endif

/* From an element of a lane to its next. */
static inline struct place step_of_lane(shape_ptr S)
{
    struct place step;
#define X(s) step.i##s = LANES * in_stride(S, s, KEPT);
    FOR_MAP_INPUTS(X)
#undef X
    step.none = 0;
    return step;
}

/* settle, of VECTOR lanes of `count` elements each. */
static inline void settle_beside(struct tensors T, shape_ptr S, struct place from, int loop, int count,
                                 struct lane l[VECTOR])
{
    UNROLL
    for (int j = 0; j < VECTOR; j++)
        if (LOGSUMS)
            settle(T, S, place_beside(S, from, loop, j), &l[j], 0, count);
}

/* VECTOR lanes with all their elements: from a place on, `step` away from each other. number: of the first lane's first
 * element, and across: how much greater it is of the next one's. Where the tile is not full, it has n elements, and
 * number `lane` is one of them. */
static inline void whole_lanes(struct tensors T, shape_ptr S, struct place from, struct place step, int loop, int64_t number,
                               int across, int lane, int n, int full, struct lane l[VECTOR])
{
#if AS_PAIRS
    uint32_t word[ALL_STEPS];
#define X(s) GLOBAL const in##s##_t *at##s = T.in##s + from.i##s;
    FOR_MAP_INPUTS(X)
#undef X
#else
    struct raws r[ALL_STEPS];
    struct place p = from;
#endif
    UNROLL
    for (int u = 0; u < ALL_STEPS; u++) {
        const int present = full || u * LANES + lane < n;
#if AS_PAIRS
        word[u] = NO_PAIR;
#define X(s)     \
    if (present) \
        word[u] = READ_VECTOR((GLOBAL const uint32_t *)at##s);
        FOR_MAP_INPUTS(X)
#undef X
#define X(s) at##s += (LANE_STEP)step.i##s;
        FOR_MAP_INPUTS(X)
#undef X
#else
        r[u] = no_elements();
        if (present)
            r[u] = fetch_vector(T, S, p, loop, 1);
#define X(s) p.i##s += step.i##s;
        FOR_MAP_INPUTS(X)
#undef X
#endif
    }
    LOADED();
#if LOGSUMS
    UNROLL
    for (int j = 0; j < VECTOR; j++)
        set_origin(&l[j], map_element(one_of_vector(r[0], j)));
#endif
#if AS_PAIRS
    pair_lanes(word, l);
#else
    UNROLL
    for (int u = 0; u < ALL_STEPS; u++)
        UNROLL
        for (int j = 0; j < VECTOR; j++)
            chain(S, &l[j], map_element(one_of_vector(r[u], j)), u, number + j * across, weights_of(u),
                  full || u * LANES + lane < n);
    settle_beside(T, S, from, loop, full ? ALL_STEPS : lane_count(n, lane), l);
#endif
}

/* whole_lanes where there are n elements of the tile, or where vectors are not aligned: some at once, because all
 * would take more registers than a whole tile's. lane: the first one's number. */
static inline void part_lanes(struct tensors T, shape_ptr S, struct place from, int loop, int64_t number, int across,
                              int lane, int n, int vectors, struct lane l[VECTOR])
{
    enum { AT_A_TIME = 8 };
    NO_UNROLL
    for (int k = 0; k * LANES + lane < n; k += AT_A_TIME) {
        struct raws r[AT_A_TIME];
        UNROLL
        for (int u = 0; u < AT_A_TIME; u++) /* past the end the step before */
            r[u] = fetch_vector(T, S, element_place(S, from, ((k + u) * LANES + lane < n ? k + u : k) * LANES), loop,
                                vectors);
        UNROLL
        for (int u = 0; u < AT_A_TIME; u++)
            UNROLL
            for (int j = 0; j < VECTOR; j++)
                chain(S, &l[j], map_element(one_of_vector(r[u], j)), k + u, number + j * across, weights_of(k + u),
                      (k + u) * LANES + lane < n);
    }
    settle_beside(T, S, from, loop, lane_count(n, lane), l);
}
