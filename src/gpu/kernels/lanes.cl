/* Lanes whose elements are all in registers at once, of VECTOR neighbouring ones: because they are needed twice, or because
 * two 16-bit floats that come as one word are then compared as one.
 *
 * LOW_HALF, HIGH_HALF: of the element's type, where all that is asked for is one reducer of 16-bit floats as they are.
 * GREATER, LESSER: of logsumexp, whose greatest is then found without converting, and so is the least: where that is
 * near, no difference has to be kept from falling below what exp_below takes. BEST: of an argument, the greatest or the
 * least, with NaNs; its step is the first that has as much (EQUAL). NO_PAIR: two that change neither. ALL_STEPS: of a
 * tile. LANE_STEP: int, which one instruction adds to a pointer, or int64_t, where a lane's elements are further apart. */

#if defined(LOW_HALF) && HAS_PAIRS
#define AS_PAIRS 1

#ifdef BEST
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
static inline void pair_sums(const uint32_t word[ALL_STEPS], float high0, float high1, int near, struct lane l[2])
{
    UNROLL
    for (int u = 0; u < ALL_STEPS; u++) {
        const float x = LOW_HALF(word[u]) - high0, y = HIGH_HALF(word[u]) - high1;
        l[0].r0_s = l[0].r0_s + (near ? mf_exp_near_f32(x) : mf_exp_below_f32(x));
        l[1].r0_s = l[1].r0_s + (near ? mf_exp_near_f32(y) : mf_exp_below_f32(y));
    }
}

static inline void pair_lanes(const uint32_t word[ALL_STEPS], struct lane l[2])
{
    uint32_t high = word[0], low = word[0];
    UNROLL
    for (int u = 1; u < ALL_STEPS; u++) {
        high = GREATER(high, word[u]);
        low = LESSER(low, word[u]);
    }
    l[0].r0_m = LOW_HALF(high);
    l[1].r0_m = HIGH_HALF(high);
    if (LIKELY(LOW_HALF(low) - l[0].r0_m > MF_LEAST_f32 && HIGH_HALF(low) - l[1].r0_m > MF_LEAST_f32))
        pair_sums(word, l[0].r0_m, l[1].r0_m, 1, l);
    else
        pair_sums(word, l[0].r0_m, l[1].r0_m, 0, l);
}
#endif

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

/* VECTOR lanes with all their elements: from a place on, `step` away from each other. number: of the first lane's first
 * element, and across: how much greater it is of the next one's. Where the tile is not full, it has n elements, and
 * number `lane` is one of them. */
static inline void whole_lanes(struct tensors T, shape_ptr S, struct place p, struct place step, int loop, int64_t number,
                               int across, int lane, int n, int full, struct lane l[VECTOR])
{
#if AS_PAIRS
    uint32_t word[ALL_STEPS];
#define X(s) GLOBAL const in##s##_t *at##s = T.in##s + p.i##s;
    FOR_MAP_INPUTS(X)
#undef X
#else
    struct raws r[ALL_STEPS];
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
#if AS_PAIRS
    pair_lanes(word, l);
#else
    UNROLL
    for (int second = 0; second <= TWO_PHASES; second++)
        UNROLL
        for (int u = 0; u < ALL_STEPS; u++)
            UNROLL
            for (int j = 0; j < VECTOR; j++) {
                const struct element x = map_element(one_of_vector(r[u], j));
                const int present = full || u * LANES + lane < n;
                if (second)
                    chain_second(&l[j], x, present);
                else
                    chain(S, &l[j], x, u, number + j * across, weights_of(u), present);
            }
#endif
}

/* whole_lanes where there are n elements of the tile, or where vectors are not aligned: they are read twice, some at once,
 * because all would take more registers than a whole tile's. lane: the first one's number. */
static inline void part_lanes(struct tensors T, shape_ptr S, struct place from, int loop, int64_t number, int across,
                              int lane, int n, int vectors, struct lane l[VECTOR])
{
    enum { AT_A_TIME = 8 };
    NO_UNROLL
    for (int second = 0; second <= TWO_PHASES; second++)
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
                for (int j = 0; j < VECTOR; j++) {
                    const struct element x = map_element(one_of_vector(r[u], j));
                    const int present = (k + u) * LANES + lane < n;
                    if (second)
                        chain_second(&l[j], x, present);
                    else
                        chain(S, &l[j], x, k + u, number + j * across, weights_of(k + u), present);
                }
        }
}
