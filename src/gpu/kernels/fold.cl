/* Folds of tiles by teams of threads, OWN lanes to each. With TEAM_VECTOR they are neighbours, which one access reads; else
 * four, of which lane t + 32 j is thread t's lane j, so that a step's accesses are coalesced whatever the alignment, and
 * the tree's first two levels stay inside a thread. Functions that exchange are called by all threads of a block
 * together. */
enum {
    OWN = TEAM_VECTOR > 1 ? TEAM_VECTOR : 4,
    TEAM = LANES / OWN,
    TEAMS = THREADS / TEAM,
    FETCHES = TEAM_VECTOR > 1 ? 1 : OWN,
    LEFT_OVER = OWN > TEAM ? OWN / TEAM : 1 /* lanes that a thread still has when each level has halved them */
};

/* The lane that j is, of the team's thread t. */
static inline int lane_of(int t, int j)
{
    return TEAM_VECTOR > 1 ? t * OWN + j : t + j * TEAM;
}

/* mine and other, the one of the thread whose number has not this bit first. */
static inline struct state combine_across(struct state mine, struct state other, int distance)
{
    if (COMMUTES)
        return combine(mine, other);
    return combine(choose(THREAD & distance, other, mine), choose(THREAD & distance, mine, other));
}

static inline struct state exchanged_combine(EXCHANGE_TYPE exchange_, struct state s, int distance)
{
    return combine_across(s, exchange_state(exchange_, s, distance), distance);
}

/* Two states become one: the thread keeps the second if it has the bit, and gets the other's. */
static inline struct state halved(EXCHANGE_TYPE exchange_, struct state a, struct state b, int distance)
{
    const int upper = (THREAD & distance) != 0;
    struct state keep = choose(upper, b, a), give = choose(upper, a, b);
    return combine_across(keep, exchange_state(exchange_, give, distance), distance);
}

/* The halving tree over a team's lanes; every thread gets the result. */
static inline struct state team_tree(EXCHANGE_TYPE exchange_, struct state s[OWN])
{
    int own = OWN;
    if (TEAM_VECTOR == 1 || !ORDERED) { /* the upper levels, or any, inside the thread */
        UNROLL
        for (; own > 1; own /= 2)
            UNROLL
            for (int j = 0; j < BOUND(own / 2, OWN / 2); j++)
                if (GUARD(j < own / 2))
                    s[j] = combine(s[j], s[j + own / 2]);
    }
    /* threads share the neighbours at the upper levels ... */
    UNROLL
    for (int distance = TEAM / 2; distance; distance /= 2) {
        if (own > 1) {
            own /= 2;
            UNROLL
            for (int j = 0; j < BOUND(own, OWN / 2); j++)
                if (GUARD(j < own))
                    s[j] = halved(exchange_, s[j], s[j + own], distance);
        } else {
            s[0] = exchanged_combine(exchange_, s[0], distance);
        }
    }
    /* ... and are combined at the lower ones, among those neighbours */
    if (TEAM_VECTOR > 1 && ORDERED) {
        UNROLL
        for (int distance = TEAM / 2; distance && distance * OWN >= TEAM; distance /= 2)
            UNROLL
            for (int j = 0; j < LEFT_OVER; j++)
                s[j] = exchanged_combine(exchange_, s[j], distance);
        UNROLL
        for (int j = LEFT_OVER / 2; j; j /= 2) /* at most two */
            s[0] = combine(s[0], s[j]);
    }
    return s[0];
}

/* Both phases of a tile from one reading, where a batch holds it. */
enum { ONE_READING = TWO_PHASES && BATCH * LANES >= MOST };

/* `steps` steps: the loads first, so that they are in flight together. Elements from n on are missing; there vectors
 * read the last ones before, which are not used: conditions would keep loads apart. */
static inline void batch(struct tensors T, shape_ptr S, struct place start, int64_t first, int k, int n, int full,
                         int steps, int vectors, int second, struct lane s[OWN])
{
    const int t = THREAD % TEAM;
    struct raws r[BATCH][FETCHES];
    struct place p[BATCH][FETCHES];
    UNROLL
    for (int u = 0; u < BATCH; u++)
        UNROLL
        for (int f = 0; f < FETCHES; f++) {
            const int e = (k + u) * LANES + lane_of(t, f);
            r[u][f] = no_elements();
            if (u < steps && (full || TEAM_VECTOR > 1 || e < n)) {
                p[u][f] = element_place(S, start, first + (full || e < n ? e : n - OWN / FETCHES));
                if (inside(S, p[u][f]))
                    r[u][f] = fetch_vector(T, S, p[u][f], LOOPS - 1, vectors);
            }
        }
    LOADED();
    UNROLL
    for (int phase = 0; phase <= (ONE_READING && steps > 1); phase++)
        UNROLL
        for (int u = 0; u < BATCH; u++) {
            const struct weights w = weights_of(k + u);
            UNROLL
            for (int j = 0; j < OWN; j++) {
                const int e = (k + u) * LANES + lane_of(t, j), f = FETCHES == 1 ? 0 : j, v = FETCHES == 1 ? j : 0;
                if (u < steps) {
                    const int present = PRESENCE(full || e < n, inside(S, p[u][f]));
                    struct element x = map_element(one_of_vector(r[u][f], v));
                    if (second || phase)
                        chain_second(&s[j], x, present);
                    else
                        chain(S, &s[j], x, k + u, first + lane_of(t, j), w, present);
                }
            }
        }
}

/* How many of n elements a lane has. */
static inline int lane_count(int n, int lane)
{
    return n > lane ? (n - lane + LANES - 1) / LANES : 0;
}

/* Elements first ... first+n-1 of the output that starts at `start`, n <= TILE (and whole vectors): the lanes. */
static inline void team_lanes(struct tensors T, shape_ptr S, struct place start, int64_t first, int n, int vectors,
                              struct state s[OWN])
{
    struct lane l[OWN];
    UNROLL
    for (int j = 0; j < OWN; j++)
        l[j] = empty_lane();
    if (n > 0) {
        if (ONE_READING && (TEAM_VECTOR == 1 || vectors)) {
            if (n == BATCH * LANES)
                batch(T, S, start, first, 0, n, 1, BATCH, 1, 0, l);
            else
                batch(T, S, start, first, 0, n, 0, BATCH, 1, 0, l);
        } else {
            NO_UNROLL
            for (int second = 0; second <= TWO_PHASES; second++) {
                if (TEAM_VECTOR > 1 && !vectors) { /* rare, so it is short */
                    NO_UNROLL
                    for (int k = 0; k * LANES < n; k++)
                        batch(T, S, start, first, k, n, 0, 1, 0, second, l);
                } else if (!ONE_READING && n == TILE) {
                    NO_UNROLL
                    for (int k = 0; k < TILE / LANES; k += BATCH)
                        batch(T, S, start, first, k, n, 1, BATCH, 1, second, l);
                } else if (!ONE_READING) {
                    NO_UNROLL
                    for (int k = 0; k * LANES < n; k += BATCH)
                        batch(T, S, start, first, k, n, 0, BATCH, 1, second, l);
                }
            }
        }
    }
    UNROLL
    for (int j = 0; j < OWN; j++) {
        const int lane = lane_of(THREAD % TEAM, j);
        s[j] = lane_state(S, l[j], first + lane, lane_count(n, lane));
    }
}

enum { AT_ONCE = STATE_WORDS > 4 ? 1 : 8 / STATE_WORDS, WARPS = THREADS / WARP, ON_WARP = LANES / WARP };

/* The fold of count <= TILE states, state i at from[i * stride], by a warp: lane t + 32 j is thread t's state j. Levels of
 * the tree that have nothing to combine are left out. */
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
    if (count > 2 * WARP) {
        s[0] = combine(s[0], s[2]);
        s[1] = combine(s[1], s[3]);
    }
    if (count > WARP)
        s[0] = combine(s[0], s[1]);
    NO_UNROLL
    for (int distance = WARP / 2; distance; distance /= 2) {
        struct state other = exchange_state(exchange_, s[0], distance);
        if (distance < count)
            s[0] = combine_across(s[0], other, distance);
    }
    return s[0];
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
