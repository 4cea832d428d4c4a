/* Folds of tiles by teams of threads, OWN lanes to each. With TEAM_VECTOR they are neighbours, which one access reads; else
 * four, of which lane t + 32 j is thread t's lane j, so that a step's accesses are coalesced whatever the alignment, and
 * the tree's first two levels stay inside a thread. Functions that exchange are called by all threads of a block
 * together. */
/* Whether all that are folded are whole batches, or whole tiles. IN_A_ROW: batches of a whole tile are no loop, so that
 * a step's number, and with it the weights of moments, are constants, and a batch's loads overlap the one before. */
#ifndef WHOLE_RUNS
#define WHOLE_RUNS 0
#endif
#ifndef WHOLE_BATCHES
#define WHOLE_BATCHES 0
#endif
#ifndef WHOLE_TILES
#define WHOLE_TILES 0
#endif
#if IN_A_ROW
#define UNROLL_BATCHES UNROLL
#else
#define UNROLL_BATCHES NO_UNROLL
#endif

enum {
    OWN = TEAM_VECTOR > 1 ? TEAM_VECTOR : 4,
    TEAM = LANES / OWN,
    TEAMS = THREADS / TEAM,
    FETCHES = TEAM_VECTOR > 1 ? 1 : OWN,
    LEFT_OVER = OWN > TEAM ? OWN / TEAM : 1 /* lanes that a thread still has when each level has halved them */
};

typedef char a_warp_has_room_for_a_team[TEAM <= WARP ? 1 : -1];

/* The lane that j is, of the team's thread t. */
static inline int lane_of(int t, int j)
{
    return TEAM_VECTOR > 1 ? t * OWN + j : t + j * TEAM;
}

/* What `even` says of states besides, sums.cl: that none is far, or that all are plain in one unit. */
enum { NEAR_STATES = 2, PLAIN_STATES = 4 };

static inline struct state combine_these(struct state a, struct state b, int even)
{
    return even & PLAIN_STATES ? combine_plain(a, b) : even & NEAR_STATES ? combine_near(a, b) : combine(a, b);
}

/* mine and other, the one of the thread whose number has not this bit first. even: a constant, whether both are of as
 * many elements: then few fields have to change places. */
static inline struct state combine_across(struct state mine, struct state other, int distance, int even)
{
    const int swap = (THREAD & distance) != 0;
    if (COMMUTES)
        return combine_these(mine, other, even);
    if (even & 1)
        return combine_these(choose_ordered(swap, other, mine), choose_ordered(swap, mine, other), even);
    return combine_these(choose(swap, other, mine), choose(swap, mine, other), even);
}

/* even: a constant, whether all states are of as many elements, a number that the compiler then may know. */
static inline struct state exchanged_combine(EXCHANGE_TYPE exchange_, struct state s, int distance, int even)
{
    return combine_across(s, exchange_state(exchange_, s, distance, even & 1), distance, even);
}

/* Two states become one: the thread keeps the second if it has the bit, and gets the other's. */
static inline struct state halved(EXCHANGE_TYPE exchange_, struct state a, struct state b, int distance, int even)
{
    const int upper = (THREAD & distance) != 0;
    struct state keep = choose(upper, b, a), give = choose(upper, a, b);
    return combine_across(keep, exchange_state(exchange_, give, distance, even & 1), distance, even);
}

static inline struct state tree_of(EXCHANGE_TYPE exchange_, struct state s[OWN], int even)
{
    int own = OWN;
    if (TEAM_VECTOR == 1 || !ORDERED) { /* the upper levels, or any, inside the thread */
        UNROLL
        for (; own > 1; own /= 2)
            UNROLL
            for (int j = 0; j < BOUND(own / 2, OWN / 2); j++)
                if (GUARD(j < own / 2))
                    s[j] = combine_these(s[j], s[j + own / 2], even);
    }
    /* threads share the neighbours at the upper levels ... */
    UNROLL
    for (int distance = TEAM / 2; distance; distance /= 2) {
        if (own > 1) {
            own /= 2;
            UNROLL
            for (int j = 0; j < BOUND(own, OWN / 2); j++)
                if (GUARD(j < own))
                    s[j] = halved(exchange_, s[j], s[j + own], distance, even);
        } else {
            s[0] = exchanged_combine(exchange_, s[0], distance, even);
        }
    }
    /* ... and are combined at the lower ones, among those neighbours */
    if (TEAM_VECTOR > 1 && ORDERED) {
        UNROLL
        for (int distance = TEAM / 2; distance && distance * OWN >= TEAM; distance /= 2)
            UNROLL
            for (int j = 0; j < LEFT_OVER; j++)
                s[j] = exchanged_combine(exchange_, s[j], distance, even);
        UNROLL
        for (int j = LEFT_OVER / 2; j; j /= 2) /* at most two */
            s[0] = combine_these(s[0], s[j], even);
    }
    return s[0];
}

/* The halving tree over a team's lanes, whose sums have these origins; every thread gets the result. */
static inline struct state team_tree(EXCHANGE_TYPE exchange_, struct state s[OWN], int even,
                                     const struct origins *origins)
{
    if (!LOGSUMS || !origins->plain)
        return tree_of(exchange_, s, even);
    struct state all = tree_of(exchange_, s, even | PLAIN_STATES);
    settle_at(&all, origins);
    return all;
}

/* SHIFTED: rows that begin anywhere are read in vectors all the same, those of memory: if the first element is number
 * `shift` of its vector, thread t's lane j is t * OWN + j - shift, round the circle of lanes. The tree is the same, for
 * its pairs are a power of two apart on that circle; but left and right may change places. A lane below 0 comes round
 * from step 1 on: an argument there counts steps from a first element that is not there. */
#if SHIFTED
static inline int shift_of(struct tensors T, struct place p)
{
    int shift = 0;
#define X(s) shift = (int)((size_t)(T.in##s + p.i##s) / sizeof(in##s##_t) % VECTOR);
    FOR_MAP_INPUTS(X)
#undef X
    return shift;
}

/* Whether all vectors of n elements from p on lie inside the operand's memory: from p[6] to p[7]. */
static inline int can_shift(shape_ptr S, struct place p, int n, int shift)
{
    int yes = 1;
#define X(s) yes = p.i##s - shift >= S->p[6] && p.i##s - shift + (n + shift + VECTOR - 1) / VECTOR * VECTOR <= S->p[7];
    FOR_MAP_INPUTS(X)
#undef X
    return yes;
}
#endif

/* Elements e ... e + VECTOR - 1 from p on, as far as there are n; then the last. */
static inline struct raws fetch_some(struct tensors T, struct place p, int e, int n)
{
    struct raws r = no_elements();
    UNROLL
    for (int i = 0; i < VECTOR; i++) {
        const int at = e + i < n ? e + i : n - 1;
#if BYTES
#define X(s) r.words[i / 4] |= (uint32_t)(uint8_t)T.in##s[p.i##s + at] << 8 * (i % 4);
#else
#define X(s) r.x##s[i] = T.in##s[p.i##s + at];
#endif
        FOR_MAP_INPUTS(X)
#undef X
    }
    return r;
}

/* WHOLE_RUNS: the last loop is whole tiles, so that a tile is of one run. */
#define ONE_ADDRESS (TEAM_VECTOR > 1 && (REDUCED == 1 || WHOLE_RUNS) && !WINDOWS)

/* Whether a batch's loads wait for each other, as they do not by themselves where that saves registers. */
#ifndef TOGETHER
#define TOGETHER 0
#endif
#if TOGETHER
#define BATCH_LOADED() LOADED_TOGETHER()
#else
#define BATCH_LOADED() LOADED()
#endif

/* Of a tile that is not whole, where a batch is so much that the assembler, which has its conditions and addresses too,
 * would load one after the other: fewer steps, and those together. (1000 f32 rows of 20,000: 34 us instead of 100, on an H200.) */
#define MUCH_AT_ONCE (BATCH * FETCHES * sizeof(struct raws) > 256)
#define STEPS_OF_PART (MUCH_AT_ONCE ? BATCH / 2 : BATCH)

/* VECTOR lanes before and after all steps. */
static inline void start_lanes(struct lane l[VECTOR])
{
    UNROLL
    for (int j = 0; j < VECTOR; j++)
        l[j] = empty_lane();
#if PAIRED_FOLDS
    UNROLL
    for (int j = 0; j < VECTOR; j += 2)
        start_pair(l + j);
#endif
}

static inline void end_lanes(struct lane l[VECTOR])
{
#if PAIRED_FOLDS
    UNROLL
    for (int j = 0; j < VECTOR; j += 2)
        end_pair(l + j);
#endif
}

#if PAIRED_FOLDS
/* Elements i and i + 1 of a vector as they lie in memory. */
static inline uint32_t pair_at(struct raws v, int i)
{
    uint32_t pair = 0;
#define X(s) pair = (uint32_t)v.x##s[i + 1] << 16 | v.x##s[i];
    FOR_MAP_INPUTS(X)
#undef X
    return pair;
}
#endif

/* A step of VECTOR lanes; number: of the first one's first element. */
static inline void chain_lanes(shape_ptr S, struct raws r, int step, int64_t number, struct weights w, int present,
                               struct lane l[VECTOR])
{
#if PAIRED_FOLDS
    UNROLL
    for (int j = 0; j < VECTOR; j += 2)
        chain_pair(l + j, pair_at(r, j), present);
#endif
    UNROLL
    for (int j = 0; j < VECTOR; j++)
        chain(S, &l[j], map_element(one_of_vector(r, j)), step, number, w, present);
}

/* `steps` steps: the loads first, so that they are in flight together. Elements from n on are missing; there vectors
 * read the last ones before, which are not used: conditions would keep loads apart. */
static inline void batch(struct tensors T, shape_ptr S, struct place start, int64_t first, int k, int n,
                         int full, const int steps, int vectors, int shift, struct lane s[OWN])
{
    const int t = THREAD % TEAM, last = SHIFTED ? (n + shift - 1) / OWN * OWN - shift : n - OWN / FETCHES;
    struct raws r[BATCH][FETCHES];
    struct place p[BATCH][FETCHES];
    const struct place from = element_place(S, start, first + k * LANES + lane_of(t, 0) - shift);
    UNROLL
    for (int u = 0; u < steps; u++)
        UNROLL
        for (int f = 0; f < FETCHES; f++) {
            const int e = (k + u) * LANES + lane_of(t, f) - shift;
            r[u][f] = no_elements();
            if (full || TEAM_VECTOR > 1 || e < n) {
                if (full && ONE_ADDRESS) /* the others at constant distances */
                    p[u][f] = place_beside(S, from, LOOPS - 1, u * LANES + lane_of(0, f));
                else
                    p[u][f] = element_place(S, start, first + (full || e < n ? e : last));
                if (SHIFTED && !vectors)
                    r[u][f] = fetch_some(T, element_place(S, start, first), e, n);
                else if (inside(S, p[u][f]))
                    r[u][f] = fetch_vector(T, S, p[u][f], LOOPS - 1, vectors);
            }
        }
    if (!full && MUCH_AT_ONCE)
        LOADED_TOGETHER();
    BATCH_LOADED();
#if BYTES
    UNROLL
    for (int u = 0; u < steps; u++)
        add_vector(&s[0], r[u][0], full, (k + u) * LANES + lane_of(t, 0) - shift, n);
    return;
#endif
    UNROLL
    for (int u = 0; u < steps; u++) {
        const struct weights w = weights_of(k + u);
#if PAIRED_FOLDS
        UNROLL
        for (int j = 0; j < OWN; j += 2)
            chain_pair(s + j, pair_at(r[u][0], j), full || (k + u) * LANES + lane_of(t, 0) < n);
#endif
#if SHIFTED /* only the first and the last step have gaps; behind the second all lanes have had elements */
        if (k + u > 1 && (k + u + 1) * LANES - shift <= n) {
            UNROLL
            for (int j = 0; j < OWN; j++)
                chain_behind(S, &s[j], map_element(one_of_vector(r[u][0], j)), k + u, 1, first, w, 1);
            continue;
        }
#endif
        UNROLL
        for (int j = 0; j < OWN; j++) {
            const int e = (k + u) * LANES + lane_of(t, j) - shift, f = FETCHES == 1 ? 0 : j, v = FETCHES == 1 ? j : 0;
            const int present = PRESENCE(full || (e < n && (!SHIFTED || e >= 0)), inside(S, p[u][f]));
            const int before = SHIFTED && lane_of(t, j) < shift ? k + u - 1 : k + u;
            chain_behind(S, &s[j], map_element(one_of_vector(r[u][f], v)), k + u, before, first + lane_of(t, j), w,
                         present);
        }
    }
}

/* Elements first ... first+n-1. */
static inline void batches(struct tensors T, shape_ptr S, struct place start, int64_t first, int n,
                           int vectors, int shift, struct lane s[OWN])
{
    if (TEAM_VECTOR > 1 && !LIKELY(vectors)) { /* rare, so it is short */
        NO_UNROLL
        for (int k = 0; k * LANES < n; k++)
            batch(T, S, start, first, k, n, WHOLE_TILES, 1, 0, 0, s);
    } else if (!SHIFTED && (WHOLE_BATCHES || WHOLE_TILES || n == TILE)) {
        UNROLL_BATCHES
        for (int k = 0; k < (WHOLE_BATCHES ? n : TILE) / LANES; k += BATCH)
            batch(T, S, start, first, k, n, 1, BATCH, 1, 0, s);
    } else {
        NO_UNROLL
        for (int k = 0; k * LANES < n + shift; k += STEPS_OF_PART)
            batch(T, S, start, first, k, n, 0, STEPS_OF_PART, 1, shift, s);
    }
}

/* Elements first ... first+n-1 of the output that starts at `start`, n <= TILE (and whole vectors, unless SHIFTED): the
 * lanes. */
static inline void team_lanes(EXCHANGE_TYPE exchange_, struct origins *origins, struct tensors T, shape_ptr S,
                              struct place start, int64_t first, int n, int vectors, struct state s[OWN])
{
    struct lane l[OWN];
    int shift = 0;
    UNROLL
    for (int j = 0; j < OWN; j++)
        l[j] = empty_lane();
#if PAIRED_FOLDS
    UNROLL
    for (int j = 0; j < OWN; j += 2)
        start_pair(l + j);
#endif
#if SHIFTED
    const struct place p = element_place(S, start, first);
    shift = shift_of(T, p);
    vectors = can_shift(S, p, n, shift);
    shift = vectors ? shift : 0;
#endif
#if LOGSUMS && !WINDOWS && !PAIRED_FOLDS
    if (n > 0) { /* one origin for all */
        const struct element x = map_element(fetch(T, element_place(S, start, first)));
        UNROLL
        for (int j = 0; j < OWN; j++)
            set_origin(&l[j], x);
    }
#endif
    if (n > 0) {
        batches(T, S, start, first, n, vectors, shift, l);
    }
#if PAIRED_FOLDS
    UNROLL
    for (int j = 0; j < OWN; j += 2)
        end_pair(l + j);
#endif
    struct lane all = empty_lane();
    UNROLL
    for (int j = 0; j < OWN; j++)
        gather(&all, l[j]);
    origins->plain = LOGSUMS && !MOMENTS && !ANY_OF_WARP(!(lane_is_clear(all) && all_are_notable(all)));
    if (origins->plain)
        keep_origins(origins, l[0]);
    else if (LOGSUMS) {
#define X(s) KNOWN(start.i##s); /* lanes' places are computed here: kept for what is rare they were spilled */
        FOR_MAP_INPUTS(X)
#undef X
        SETTLING
        for (int j = 0; j < OWN; j++) {
            settle(T, S, start, &l[0], first + lane_of(THREAD % TEAM, j), lane_count(n, lane_of(THREAD % TEAM, j)));
            turn_lanes(l, OWN);
        }
    }
    UNROLL
    for (int j = 0; j < OWN; j++) {
        const int lane = (lane_of(THREAD % TEAM, j) - shift) & (LANES - 1);
        /* of whole batches all lanes have as many, a number that the compiler sees is small */
        s[j] = lane_state(S, l[j], SHIFTED ? first + lane_of(THREAD % TEAM, j) - shift : first + lane,
                          WHOLE_BATCHES ? n / LANES & (2 * TILE / LANES - 1)
                          : WHOLE_TILES || n == TILE ? TILE / LANES
                                                     : lane_count(n, lane));
    }
}

/* AT_ONCE and READ_AT_ONCE: joins of sums have calls, and few registers for what waits. */
enum { AT_ONCE = STATE_WORDS > 4 || LOGSUMS ? 1 : 8 / STATE_WORDS };
enum { WARPS = THREADS / WARP, ON_WARP = LANES / WARP };

/* The halving tree over count lanes of a warp, `most` at most: lane t + 32 j is thread t's state j. Levels that have
 * nothing to combine are left out. */
static inline struct state warp_tree(EXCHANGE_TYPE exchange_, struct state s[ON_WARP], int count, int most)
{
    if (most > 2 * WARP && count > 2 * WARP) {
        s[0] = combine(s[0], s[2]);
        s[1] = combine(s[1], s[3]);
    }
    if (most > WARP && count > WARP)
        s[0] = combine(s[0], s[1]);
    NO_UNROLL
    for (int distance = (most < WARP ? most : WARP) / 2; distance; distance /= 2) {
        struct state other = exchange_state(exchange_, s[0], distance, 0);
        if (distance < count)
            s[0] = combine_across(s[0], other, distance, 0);
    }
    return s[0];
}

/* The fold of count <= TILE states, state i at from[i * stride], by a warp. */
static inline struct state warp_fold(EXCHANGE_TYPE exchange_, GLOBAL struct state *from, int64_t stride, int count)
{
    const int t = THREAD % WARP;
    struct state s[ON_WARP];
    UNROLL
    for (int j = 0; j < ON_WARP; j++)
        s[j] = state_identity();
    NO_UNROLL
    for (int k = 0; k * LANES < count; k += AT_ONCE) {
        struct state next[AT_ONCE][ON_WARP];
        UNROLL
        for (int u = 0; u < AT_ONCE; u++)
            UNROLL
            for (int j = 0; j < ON_WARP; j++) {
                const int e = (k + u) * LANES + t + j * WARP;
                next[u][j] = state_identity();
                if (e < count)
                    next[u][j] = load_state(from + e * stride);
            }
        UNROLL
        for (int u = 0; u < AT_ONCE; u++)
            UNROLL
            for (int j = 0; j < ON_WARP; j++)
                if ((k + u) * LANES + j * WARP < count)
                    s[j] = combine(s[j], next[u][j]);
    }
    return warp_tree(exchange_, s, count, LANES);
}

/* The fold of sequences of n states by one block: state i of column c is at states[i * stride + c]; each level's results
 * lie behind its operands, and the last level's are returned. (The contract's tiles of tiles.) */
static inline GLOBAL struct state *block_fold(EXCHANGE_TYPE exchange_, GLOBAL struct state *states, int64_t stride,
                                              int64_t n, int64_t column, int64_t columns)
{
    while (n > 1) {
        const int64_t groups = (n + TILE - 1) / TILE, units = groups * columns;
        GLOBAL struct state *next = states + n * stride;
        for (int64_t first = 0; first < units; first += WARPS) {
            const int64_t unit = first + THREAD / WARP, group = unit / columns, left = n - group * TILE;
            const int64_t at = column + unit % columns;
            const int count = unit >= units ? 0 : left < TILE ? (int)left : TILE;
            struct state a = warp_fold(exchange_, states + group * TILE * stride + at, stride, count);
            if (THREAD % WARP == 0 && unit < units)
                next[group * stride + at] = a;
        }
        FENCE();
        BARRIER();
        states = next;
        n = groups;
    }
    return states;
}

enum {
    FOLD_THREADS = THREADS < LANES ? THREADS : LANES,
    ON_THREAD = LANES / FOLD_THREADS,
    FOLDED_WORDS = STATE_WORDS * ON_THREAD,
    READ_AT_ONCE = FOLDED_WORDS > 16                                 ? 2
                   : LOGSUMS || FOLDED_WORDS > 8 || STATE_WORDS > 3 ? 4
                   : FOLDED_WORDS > 2                               ? 8
                                                                    : 16
};

/* Whether chains of states that have as many elements each, a power of two, are merged without dividing. */
#if MOMENTS && MERGE_WEIGHTS && !WINDOWS && !ALONG
#define KNOWN_WEIGHTS 1
#else
#define KNOWN_WEIGHTS 0
#endif

/* A chain's state of `before` states and the next one; n: elements of each, or 0 if that is not known. */
static inline struct state chained(struct state s, struct state next, int before, int64_t n)
{
#if KNOWN_WEIGHTS
    if (n)
        return before ? combine_weighted(s, next, chain_weights(before, n)) : next;
#endif
    return combine(s, next);
}

#ifndef AWAITED
#define AWAITED 0
#endif
#if AWAITED
static inline uint32_t low_word(float x)
{
    return mf_f32_bits(x);
}

static inline uint32_t low_word(int64_t x)
{
    return (uint32_t)x;
}

/* A state, once it is there, which was read before; its place waits for the next launch's then. (A kernel of CUDA.) */
static inline struct state awaited(struct state s, struct state *place)
{
    while (low_word(s.r0) == AWAITED)
        s.r0 = *(volatile decltype(s.r0) *)&place->r0;
    *(uint32_t *)place = AWAITED;
    return s;
}
#else
#define awaited(s, place) (s)
#endif

/* The fold of count <= TILE states that lie one after the other, by a block: its first thread gets the result. shared:
 * FOLD_THREADS states. n: as chained. */
static inline struct state group_fold(EXCHANGE_TYPE exchange_, SHARED_POINTER struct state *shared,
                                      GLOBAL struct state *from, int count, int64_t n)
{
    struct state s[ON_THREAD];
    UNROLL
    for (int j = 0; j < ON_THREAD; j++)
        s[j] = state_identity();
    NO_UNROLL
    for (int k = 0; k * LANES < count && THREAD < FOLD_THREADS; k += READ_AT_ONCE) {
        struct state next[READ_AT_ONCE][ON_THREAD];
        UNROLL
        for (int u = 0; u < READ_AT_ONCE; u++)
            UNROLL
            for (int j = 0; j < ON_THREAD; j++) {
                const int e = (k + u) * LANES + THREAD + j * FOLD_THREADS;
                next[u][j] = state_identity();
                if (e < count)
                    next[u][j] = load_state(from + e);
            }
        UNROLL
        for (int u = 0; u < READ_AT_ONCE; u++)
            UNROLL
            for (int j = 0; j < ON_THREAD; j++)
                if ((k + u) * LANES + j * FOLD_THREADS + (KNOWN_WEIGHTS || AWAITED ? THREAD : 0) < count) {
                    const struct state one = awaited(next[u][j], from + (k + u) * LANES + THREAD + j * FOLD_THREADS);
                    s[j] = chained(s[j], one, k + u, n);
                }
    }
    UNROLL
    for (int reach = ON_THREAD / 2; reach; reach /= 2)
        UNROLL
        for (int j = 0; j < ON_THREAD / 2; j++)
            if (j < reach && (j + reach) * FOLD_THREADS < count)
                s[j] = combine(s[j], s[j + reach]);
    NO_UNROLL
    for (int reach = FOLD_THREADS / 2; reach >= WARP; reach /= 2) {
        if (THREAD < 2 * reach)
            shared[THREAD] = s[0];
        BARRIER();
        if (THREAD < reach && reach < count)
            s[0] = combine(s[0], shared[THREAD + reach]);
        BARRIER();
    }
    return warp_tree(exchange_, s, count, WARP);
}
