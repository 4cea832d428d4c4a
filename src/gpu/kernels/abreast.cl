/* Rows of 65 elements to a few hundred, whose length is no whole number of lanes or vectors: a warp takes ROWS of them,
 * thread t elements t, t + 32, t + 64 ..., SLOTS of each row, and reads all before it computes. The tree's upper levels
 * are then inside a thread, and the lower ones a multi-reduction: at each a thread gives away half of its rows and takes
 * over the other half, so that 8 rows of 128 lanes take 33 merges a thread, where the tree has 32.
 *
 * LANE_PITCH: where the order of elements is the contract's a thread has four lanes, t, t + 32 ...; else one, of all its
 * elements. FULL: slots that are full in every row of as many slots.
 *
 * Moments are merged by weights that are the same for all rows: of n elements the first n % (2 d) of the 2 d states at
 * the level that joins l and l + d have one more than the others. So in the first n % d merges of that level both sides
 * have equal counts, or the left one has one more, and in the others it is the other way round. */
enum { OWN_LANES = LANE_PITCH / WARP, CHAIN = (SLOTS + OWN_LANES - 1) / OWN_LANES, LEVELS = 7 };

#if MERGE_WEIGHTS
#define MERGE(left, right, w) combine_weighted(left, right, w)
#define WEIGHTS_MEMORY SHARED struct merge_weights weights_[2 * LEVELS];
typedef SHARED_POINTER struct merge_weights *weights_type;

/* Both kinds of every level: 2 i and 2 i + 1 are of the one that joins l and l + 2^i. */
static inline void make_weights(weights_type weights_, int n)
{
    if (THREAD < LEVELS) {
        const int reach = 1 << THREAD, least = n / (2 * reach), more = n % (2 * reach) >= reach;
        weights_[2 * THREAD] = merge_weights_of(least + 1, least + more);
        weights_[2 * THREAD + 1] = merge_weights_of(least + more, least);
    }
    BARRIER();
}

/* Of the merge of `lane` and the one 2^level behind it. */
static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    return weights_[2 * level + (lane < (n & ((1 << level) - 1)) ? 0 : 1)];
}
#else
#define MERGE(left, right, w) combine(left, right)
#define WEIGHTS_MEMORY const int weights_ = 0;
typedef int weights_type;
struct merge_weights {
    int none;
};

static inline void make_weights(weights_type weights_, int n)
{
}

static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    const struct merge_weights w = {0};
    return w;
}
#endif

static inline struct raw no_raw(void)
{
    struct raw r;
#define X(s) r.x##s = 0;
    FOR_MAP_INPUTS(X)
#undef X
    r.none = 0;
    return r;
}

/* From a row to the next one, where these are one loop. */
static inline struct place next_row(shape_ptr S, struct place p)
{
#define X(s) p.i##s += in_stride(S, s, 0);
    FOR_MAP_INPUTS(X)
#undef X
    return p;
}

/* The second phase of a thread's lane j. */
static inline void second_phase(const struct raw r[SLOTS], int j, int t, int n, struct lane *l)
{
    if (j + OWN_LANES >= SLOTS) {
        chain_only(l);
    } else if (j + 2 * OWN_LANES >= SLOTS) {
        const int i = j + OWN_LANES;
        chain_two(l, map_element(r[j]), map_element(r[i]), i < FULL || i * WARP + t < n);
    } else {
        UNROLL
        for (int i = j; i < SLOTS; i += OWN_LANES)
            chain_second(l, map_element(r[i]), i < FULL || i * WARP + t < n);
    }
}

/* A thread's lanes of a row, from its elements. */
static inline void lanes_of_row(shape_ptr S, const struct raw r[SLOTS], int t, int n, struct state s[OWN_LANES])
{
    UNROLL
    for (int j = 0; j < OWN_LANES; j++) {
        struct lane l = empty_lane();
        UNROLL
        for (int k = 0; k < CHAIN; k++) {
            const int i = k * OWN_LANES + j;
            if (i < SLOTS)
                chain(S, &l, map_element(r[i]), k, j * WARP + t, weights_of(k), i < FULL || i * WARP + t < n);
        }
        if (TWO_PHASES)
            second_phase(r, j, t, n, &l);
        s[j] = lane_state(S, l, j * WARP + t, j < FULL || j * WARP + t < n);
    }
}

/* The upper levels, of lanes of one thread; the result is s[0]. */
static inline void own_lanes(weights_type weights_, int t, int n, struct state s[OWN_LANES])
{
    UNROLL
    for (int reach = OWN_LANES / 2; reach; reach /= 2)
        UNROLL
        for (int j = 0; j < OWN_LANES / 2; j++)
            if (j < reach && j + reach < SLOTS) {
                const struct state c =
                    MERGE(s[j], s[j + reach], level_weights(weights_, reach + 4, j * WARP + t, n)); /* 6 and 5 */
                s[j] = choose(j + reach < FULL || (j + reach) * WARP + t < n, c, s[j]);
            }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    WEIGHTS_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % WARP, n = (int)S->reduced_total;
    /* the last warps may take rows that others take too: cheaper than conditions */
    const int64_t past = (BLOCK * (THREADS / WARP) + THREAD / WARP) * ROWS, last = S->kept_total - ROWS;
    const int64_t first = past < last ? past : last;
    struct raw r[ROWS][SLOTS];
    struct state s[ROWS][OWN_LANES];
    struct place start = element_place(S, kept_place(S, first), t);
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        if (m && KEPT == 1)
            start = next_row(S, start);
        else if (m)
            start = element_place(S, kept_place(S, first + m), t);
        UNROLL
        for (int i = 0; i < SLOTS; i++) {
            r[m][i] = no_raw();
            if (i < FULL || i * WARP + t < n)
                r[m][i] = fetch(T, element_place(S, start, i * WARP));
        }
    }
    LOADED();
    make_weights(weights_, n);
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        lanes_of_row(S, r[m], t, n, s[m]);
        own_lanes(weights_, t, n, s[m]);
    }
    int rows = ROWS, mine = 0;
    UNROLL
    for (int level = 4; level >= 0; level--) {
        const int distance = 1 << level, upper = (t & distance) != 0;
        const struct merge_weights w = level_weights(weights_, level, t & (distance - 1), n);
        const int halves = rows > 1;
        rows = halves ? rows / 2 : 1;
        mine += halves && upper ? rows : 0;
        UNROLL
        for (int m = 0; m < BOUND(rows, ROWS > 1 ? ROWS / 2 : 1); m++)
            if (GUARD(m < rows)) {
                struct state keep = s[m][0], give = keep;
                if (halves) {
                    keep = choose(upper, s[m + rows][0], s[m][0]);
                    give = choose(upper, s[m][0], s[m + rows][0]);
                }
                give = exchange_state(exchange_, give, distance, 1);
                s[m][0] = COMMUTES ? combine(keep, give)
                                   : MERGE(choose(upper, give, keep), choose(upper, keep, give), w);
            }
    }
#if HAS_COUNT
    s[0][0].n = n;
#endif
    if (t % (WARP / ROWS) == 0)
        finish_output(T, S, first + mine, s[0][0], n);
}
