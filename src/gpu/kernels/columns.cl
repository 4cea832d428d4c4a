/* Outputs that lie next to each other in the operands: neighbouring threads take neighbouring columns, VECTOR each, and
 * LANE_THREADS threads share a column's lanes (t, t + LANE_THREADS ...), HELD of them each. The tree's upper levels stay
 * inside a thread; the rest goes through shared memory.
 *
 * IN_TURN: a thread's lanes one after the other, all elements of one at once, with the tree walked depth first; else all
 * its lanes together, BATCH steps at once (WHOLE_BATCH: in turn, where all lanes have them). WHOLE_LANES: that is all of
 * one, by lanes.cl; ONE_PART: no tile is taken to be full. PRESENT: how many of the HELD have elements at all. FLOWING:
 * in turn, while the next elements of a whole tile are loaded. GATHERED: what sums are asked at last is kept of all
 * lanes, not asked of each; which is faster is the assembler's chance (4 % of f32 on an H200). In turn, where registers
 * for the tree's states that wait too would leave fewer warps, or be spilled, WAITS_IN_SHARED memory, or WAITS_IN_MEMORY
 * of the thread's own, which what streams past pushes out of the cache (logsumexp of bf16, 32768 by 4096, on an H100).
 * MERGE_WEIGHTS: moments merge by them where all lanes have elements, 2: as they have in every tile. SEVERAL_TILES: of
 * moments, which are faster so; what one tile alone needs is left out.
 *
 * p[0]: tiles of a column, p[1]: blocks that share them, p[2]: tiles of one block, p[4]: blocks side by side.
 * workspace: p[3] states for every column, tile by tile, then COUNTERS for every block side by side (parts.cl). */
enum { SPAN = COLUMN_THREADS * VECTOR, BLOCK_COLUMNS = THREADS / LANE_THREADS * VECTOR };

/* The number of the tree's level that joins lanes so far apart. */
static inline int level_of(int apart)
{
    int level = 0;
    UNROLL
    for (int l = 1; l < LEVELS; l++)
        level += apart >> l != 0;
    return level;
}

/* Lanes `lane` and the one `apart` behind it, or what is joined to them, of a tile of n elements; weighed: that all lanes
 * have some, so that moments merge without dividing. */
static inline struct state join_lanes(weights_type weights_, struct state a, struct state b, int apart, int lane, int n,
                                      const int weighed, const int plain)
{
#if MERGE_WEIGHTS
    if (weighed) {
        const struct merge_weights w = level_weights(weights_, level_of(apart), lane, n);
        return plain ? combine_weighted_plain(a, b, w) : combine_weighted(a, b, w);
    }
#endif
    return plain ? combine_plain(a, b) : combine(a, b);
}

/* Elements at constant distances: where one is, and how to come to the next. (Multiplying for each takes longer than
 * loading does.) */
struct walk {
    struct place at, step;
    int64_t e, distance;
};

static inline struct walk walk_from(shape_ptr S, struct place start, int64_t e, int64_t distance)
{
    struct walk w;
    w.e = e;
    w.distance = distance;
    w.at = w.step = element_place(S, start, e);
#if REDUCED == 1 && !WINDOWS
#define X(s) w.step.i##s = distance * in_stride(S, s, KEPT);
    FOR_MAP_INPUTS(X)
#undef X
#endif
    return w;
}

/* The place of the next element; the first time, of the first. */
static inline struct place walked(shape_ptr S, struct place start, struct walk *w, int more)
{
#if REDUCED == 1 && !WINDOWS
    if (more) {
#define X(s) w->at.i##s += w->step.i##s;
        FOR_MAP_INPUTS(X)
#undef X
    }
    return w->at;
#else
    if (more)
        w->e += w->distance;
    return more ? element_place(S, start, w->e) : w->at;
#endif
}

#if !IN_TURN
/* Steps k ... k+steps-1: the loads first. */
static inline void column_batch(struct tensors T, shape_ptr S, struct place start, int64_t first, int k, int n, int full,
                                const int steps, int vectors, struct lane l[HELD][VECTOR])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    struct raws r[BATCH][PRESENT];
    struct place p[BATCH][PRESENT];
    struct walk walk = walk_from(S, start, first + k * LANES + own, LANE_THREADS);
    UNROLL
    for (int u = 0; u < steps; u++)
        UNROLL
        for (int i = 0; i < PRESENT; i++) {
            const int e = (k + u) * LANES + own + LANE_THREADS * i;
            r[u][i] = no_elements();
            p[u][i] = walked(S, start, &walk, u + i > 0);
            if ((full || e < n) && inside(S, p[u][i]))
                r[u][i] = fetch_vector(T, S, p[u][i], KEPT - 1, vectors);
        }
    BATCH_LOADED();
    UNROLL
    for (int u = 0; u < steps; u++)
        UNROLL
        for (int i = 0; i < PRESENT; i++) {
            const int e = (k + u) * LANES + own + LANE_THREADS * i;
            const struct weights w = weights_of(k + u);
            const int present = PRESENCE(full || e < n, inside(S, p[u][i]));
            UNROLL
            for (int c = 0; c < VECTOR; c++) {
#if BYTES /* any lane will do */
                l[0][c].r0 = FOLD_BYTES(l[0][c].r0, r[u][i].words[c / 4], (uint32_t)(present != 0) << 8 * (c % 4));
                continue;
#endif
                chain(S, &l[i][c], map_element(one_of_vector(r[u][i], c)), k + u, first + own + LANE_THREADS * i, w,
                      present);
            }
        }
}

/* The tree's levels inside a thread; the result is s[0]. here: elements of the tile. */
static inline void own_levels(weights_type weights_, int here, const int weighed, struct state s[HELD][VECTOR])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    UNROLL
    for (int reach = HELD / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < HELD / 2; i++)
            UNROLL
            for (int c = 0; c < VECTOR; c++)
                if (i < reach && i + reach < PRESENT)
                    s[i][c] = join_lanes(weights_, s[i][c], s[i + reach][c], LANE_THREADS * reach,
                                         own + LANE_THREADS * i, here, weighed, 0);
}

/* settle, of lanes of one element too. */
static inline void settle_of_step(struct tensors T, shape_ptr S, struct place start, struct lane *l, int64_t first,
                                  int count)
{
    if (ONE_STEP)
        settle_one(l, WINDOWS ? l->n : count);
    else
        settle(T, S, start, l, first, count);
}

/* The states of a thread's lanes of n elements. */
static inline void own_states(struct tensors T, shape_ptr S, struct place start, int64_t first, int n,
                              struct lane l[HELD][VECTOR], struct state s[HELD][VECTOR])
{
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    UNROLL
    for (int i = 0; i < HELD; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++) {
            const int lane = own + LANE_THREADS * i;
            if (LOGSUMS)
                settle_of_step(T, S, place_beside(S, start, KEPT - 1, c), &l[i][c], first + lane, lane_count(n, lane));
            s[i][c] = lane_state(S, l[i][c], first + lane, lane_count(n, lane));
        }
}

/* The lanes of elements first ... first+n-1, n <= TILE. */
static inline void column_lanes(struct tensors T, shape_ptr S, struct place start, int64_t first, int n, int vectors,
                                struct state s[HELD][VECTOR])
{
    struct lane l[HELD][VECTOR];
    UNROLL
    for (int i = 0; i < HELD; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            l[i][c] = empty_lane();
    /* a loop of one turn, in which the compiler (NVRTC 13.0) keeps the loads together: f64 of 37 elements a column is
     * a fifth faster */
    NO_UNROLL
    for (int turn = 0; turn < 1 && n > 0; turn++) {
        if (VECTOR > 1 && !vectors) { /* rare, so it is short */
            NO_UNROLL
            for (int k = 0; k * LANES < n; k++)
                column_batch(T, S, start, first, k, n, 0, 1, 0, l);
        } else if (n == (ONE_STEP ? PRESENT * LANE_THREADS : TILE)) {
            NO_UNROLL
            for (int k = 0; k < (ONE_STEP ? 1 : TILE / LANES); k += BATCH)
                column_batch(T, S, start, first, ONE_STEP ? 0 : k, n, 1, BATCH, 1, l);
        } else {
            NO_UNROLL
            for (int k = 0; ONE_STEP ? k < 1 : k * LANES < n; k += BATCH)
                column_batch(T, S, start, first, ONE_STEP ? 0 : k, n, 0, BATCH, 1, l);
        }
    }
    own_states(T, S, start, first, n, l, s);
}
#else
enum { TURN_LEVELS = HELD > 32 ? 6 : HELD > 16 ? 5 : HELD > 8 ? 4 : HELD > 4 ? 3 : HELD > 2 ? 2 : HELD > 1 ? 1 : 0 };

/* Of tiles that are not full: more of what sums ask of elements that may be missing is spilled. */
enum { PART_BATCH = LOGSUMS && BATCH > 8 ? 8 : BATCH };

/* One lane's elements, `steps` at once. */
static inline void turn_batch(struct tensors T, shape_ptr S, struct place start, int64_t first, int k,
                              int n, int full, int lane, const int steps, struct lane l[VECTOR])
{
    struct raws r[WHOLE_BATCH];
    struct place p[WHOLE_BATCH];
    struct walk walk = walk_from(S, start, first + k * LANES + lane, LANES);
    UNROLL
    for (int u = 0; u < steps; u++) {
        r[u] = no_elements();
        p[u] = walked(S, start, &walk, u > 0);
        if ((full || (k + u) * LANES + lane < n) && inside(S, p[u]))
            r[u] = fetch_vector(T, S, p[u], KEPT - 1, 1);
    }
    LOADED();
    UNROLL
    for (int u = 0; u < steps; u++) {
        const struct weights w = weights_of(k + u);
        const int present = PRESENCE(full || (k + u) * LANES + lane < n, inside(S, p[u]));
        chain_lanes(S, r[u], k + u, first + lane, w, present, l);
    }
}

/* A lane; often: as a constant, whether steps that all lanes have are worth a text of their own. */
static inline void turn_lane(struct tensors T, shape_ptr S, struct place start, int64_t first, int n, int lane,
                             const int often, struct lane l[VECTOR])
{
#if WHOLE_LANES
    const struct place at = element_place(S, start, first + lane);
    if (!ONE_PART && n == ALL_STEPS * LANES)
        whole_lanes(T, S, at, step_of_lane(S), KEPT - 1, first + lane, 0, lane, n, 1, l);
    else if (!ONE_PART && !AS_PAIRS) /* pairs have registers for both */
        part_lanes(T, S, at, KEPT - 1, first + lane, 0, lane, n, 1, l);
    else if (lane < n)
        whole_lanes(T, S, at, step_of_lane(S), KEPT - 1, first + lane, 0, lane, n, 0, l);
    return;
#endif
    const int at_once = WHOLE_BATCH * LANES == TILE; /* then what is left of a tile goes the other way */
    int k = 0;
    if (often && at_once && n == TILE) {
        turn_batch(T, S, start, first, 0, n, 1, lane, WHOLE_BATCH, l);
        return;
    }
    NO_UNROLL
    for (; often && !at_once && (k + WHOLE_BATCH) * LANES <= n; k += WHOLE_BATCH)
        turn_batch(T, S, start, first, k, n, 1, lane, WHOLE_BATCH, l);
    NO_UNROLL
    for (; k * LANES + lane < n; k += PART_BATCH)
        turn_batch(T, S, start, first, k, n, 0, lane, PART_BATCH, l);
}

/* The same, element by element: where vectors are not aligned. */
static inline void turn_slowly(struct tensors T, shape_ptr S, struct place start, int64_t first, int n, int lane,
                               struct lane l[VECTOR])
{
    NO_UNROLL
    for (int k = 0; k * LANES + lane < n; k++) {
        const struct place p = element_place(S, start, first + k * LANES + lane);
        if (!inside(S, p))
            continue;
        const struct raws r = fetch_vector(T, S, p, KEPT - 1, 0);
        chain_lanes(S, r, k, first + lane, weights_of(k), 1, l);
    }
}

/* The lane that a thread has in turn number i: the bits of i reversed. */
static inline int lane_in_turn(int i)
{
    int lane = THREAD / COLUMN_THREADS % LANE_THREADS;
    UNROLL
    for (int b = 0; b < TURN_LEVELS; b++)
        lane += (i >> b & 1) * (LANE_THREADS << (TURN_LEVELS - 1 - b));
    return lane;
}

#if FLOWING
/* Where all operands have what lies at a place. */
static inline struct tensors tensors_from(struct tensors T, struct place p)
{
#define X(s) T.in##s += p.i##s;
    FOR_MAP_INPUTS(X)
#undef X
    return T;
}

static inline void take_next(struct tensors *next, shape_ptr S, int64_t distance, struct raws *r)
{
    struct place here;
#define X(s) here.i##s = 0;
    FOR_MAP_INPUTS(X)
#undef X
    here.none = 0;
    *r = fetch_vector(*next, S, here, KEPT - 1, 1);
#define X(s) next->in##s += distance * in_stride(S, s, KEPT);
    FOR_MAP_INPUTS(X)
#undef X
}

/* A whole tile's lane in turn number i, whose first BATCH elements are under way: behind each half of a batch those BATCH
 * steps on are asked for, at last the next lane's. */
enum { CHUNK = BATCH / 2 };

static inline void flowing_lane(struct tensors T, shape_ptr S, struct place start, int64_t first, int i,
                                struct tensors *next, struct raws r[BATCH], struct lane l[VECTOR])
{
    NO_UNROLL
    for (int k = 0; k < TILE / LANES; k += BATCH) {
        const int ends = k + BATCH == TILE / LANES, more = !ends || i + 1 < HELD;
        if (ends)
            *next = tensors_from(T, element_place(S, start, first + lane_in_turn(more ? i + 1 : i)));
        UNROLL
        for (int c = 0; c < BATCH; c += CHUNK) {
            UNROLL
            for (int u = c; u < c + CHUNK; u++)
                chain_lanes(S, r[u], k + u, first + lane_in_turn(i), weights_of(k + u), 1, l);
            UNROLL
            for (int u = c; u < c + CHUNK; u++)
                take_next(next, S, more ? LANES : 0, &r[u]);
            LOADED();
        }
    }
}
#endif

/* Where a state waits when not in a register, because the elements, other states, or what sums ask take these. */
#if WHOLE_LANES || WAITS_IN_SHARED
#define WAITING(level, c) waiting[((level) * VECTOR + (c)) * THREADS + THREAD]
#elif WAITS_IN_MEMORY
#define WAITING(level, c) pending[level][c]
#endif

/* A thread's lanes in the order in which the tree joins them: the numbers' bits reversed. Two subtrees of equal height
 * become one as soon as both are there; the last lane completes them all. plain: whether sums are taken to be plain
 * together; the result: whether they were. */
static inline int turns_of_columns(weights_type weights_, struct tensors T, shape_ptr S, struct place start,
                                   int64_t first, int n, int here, int vectors, const int weighed, const int plain,
                                   SHARED_POINTER struct state *waiting, struct state s[VECTOR])
{
    int central = 1;
    struct lane all[VECTOR];
    struct origins origins = no_origins();
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        all[c] = empty_lane();
#if !WHOLE_LANES && !WAITS_IN_SHARED
    struct state pending[TURN_LEVELS + 1][VECTOR];
#endif
#if LOGSUMS && !WINDOWS && !PAIRED_FOLDS
    const struct element x = map_element(fetch(T, element_place(S, start, n > 0 ? first : 0)));
#endif
#if FLOWING
    const int flows = plain && n == TILE && (VECTOR == 1 || vectors);
    struct tensors next = tensors_from(T, element_place(S, start, flows ? first + lane_in_turn(0) : 0));
    struct raws r[BATCH];
    UNROLL
    for (int u = 0; u < BATCH; u++) {
        r[u] = no_elements();
        if (flows)
            take_next(&next, S, LANES, &r[u]);
    }
    LOADED();
#endif
    NO_UNROLL
    for (int i = 0; i < HELD; i++) {
        const int lane = lane_in_turn(i);
        int waits = 0;
        struct lane l[VECTOR];
        start_lanes(l);
#if LOGSUMS && !WINDOWS && !PAIRED_FOLDS
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            set_origin(&l[c], x);
#endif
#if FLOWING
        if (flows)
            flowing_lane(T, S, start, first, i, &next, r, l);
        else
#endif
        if (VECTOR > 1 && !vectors)
            turn_slowly(T, S, start, first, n, lane, l);
        else
            turn_lane(T, S, start, first, n, lane, plain && !FLOWING, l);
        end_lanes(l);
        UNROLL
        for (int c = 0; c < VECTOR; c++) {
            if (GATHERED)
                gather(&all[c], l[c]);
            else
                central &= lane_is_clear(l[c]);
            if (LOGSUMS && !plain)
                settle(T, S, place_beside(S, start, KEPT - 1, c), &l[c], first + lane, lane_count(n, lane));
            s[c] = lane_state(S, l[c], first + lane, lane_count(n, lane));
        }
        keep_origins(&origins, l[0]);
#ifdef WAITING
        int level = 0;
        NO_UNROLL
        for (; i >> level & 1; level++) {
            const int apart = LANE_THREADS << (TURN_LEVELS - 1 - level);
            UNROLL
            for (int c = 0; c < VECTOR; c++)
                s[c] = join_lanes(weights_, WAITING(level, c), s[c], apart, lane & (apart - 1), here, weighed, plain);
        }
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            if (level < TURN_LEVELS)
                WAITING(level, c) = s[c];
        (void)waits;
#else
        UNROLL
        for (int b = 0; b < TURN_LEVELS; b++) {
            if (!waits && (i >> b & 1)) {
                UNROLL
                for (int c = 0; c < VECTOR; c++)
                    s[c] = join_lanes(weights_, pending[b][c], s[c], LANE_THREADS << (TURN_LEVELS - 1 - b),
                                      lane & ((LANE_THREADS << (TURN_LEVELS - 1 - b)) - 1), here, weighed, plain);
            } else if (!waits) {
                UNROLL
                for (int c = 0; c < VECTOR; c++)
                    pending[b][c] = s[c];
                waits = 1;
            }
        }
#endif
    }
    (void)waiting;
    if (plain)
        UNROLL
        for (int c = 0; c < VECTOR; c++) {
            const int settled = settle_at(&s[c], &origins);
            central &= GATHERED ? lane_is_clear(all[c]) && all_are_notable(all[c]) : settled;
        }
    return central;
}

static inline void column_turns(weights_type weights_, struct tensors T, shape_ptr S, struct place start, int64_t first,
                                int n, int here, int vectors, const int weighed,
                                SHARED_POINTER struct state *waiting, struct state s[VECTOR])
{
    const int central = turns_of_columns(weights_, T, S, start, first, n, here, vectors, weighed, 1, waiting, s);
    if (LOGSUMS && !LIKELY(central))
        turns_of_columns(weights_, T, S, start, first, n, here, vectors, weighed, 0, waiting, s);
}
#endif

/* The halving tree over a column's threads. With lane threads enough each takes VECTOR of one column's lanes over from
 * shared memory, the tree's upper levels, and shares the rest with the threads next to it: everything goes through
 * shared memory once. Else a level at a time. The result is s[0] or s of the threads that keep one. */
#if WHOLE_LANES || WAITS_IN_SHARED
enum { OWN_STATES = THREADS * VECTOR * (TURN_LEVELS > 1 ? TURN_LEVELS : 1) };
#else
enum { OWN_STATES = THREADS * VECTOR };
#endif
#define ONE_COLUMN (LANE_THREADS >= VECTOR)
enum { BESIDE = ONE_COLUMN ? LANE_THREADS / VECTOR : LANE_THREADS, OF_COLUMNS = COLUMN_THREADS * LANE_THREADS };

static inline void column_tree(EXCHANGE_TYPE exchange_, weights_type weights_, SHARED_POINTER struct state *shared,
                               int here, const int weighed, struct state s[VECTOR])
{
#if ONE_COLUMN
    const int in_turn = THREAD % OF_COLUMNS, first = THREAD - in_turn, c = in_turn / (COLUMN_THREADS * BESIDE);
    const int beside = in_turn % (COLUMN_THREADS * BESIDE), own = beside / COLUMN_THREADS;
    if (VECTOR > 1) {
        UNROLL
        for (int i = 0; i < VECTOR; i++)
            shared[i * THREADS + THREAD] = s[i];
        BARRIER();
        UNROLL
        for (int i = 0; i < VECTOR; i++)
            s[i] = shared[c * THREADS + first + beside + COLUMN_THREADS * BESIDE * i];
        BARRIER();
        UNROLL
        for (int reach = VECTOR / 2; reach; reach /= 2)
            UNROLL
            for (int i = 0; i < VECTOR / 2; i++)
                if (i < reach)
                    s[i] = join_lanes(weights_, s[i], s[i + reach], BESIDE * reach, own + BESIDE * i, here, weighed, 0);
    }
    UNROLL
    for (int reach = BESIDE / 2; reach; reach /= 2) {
        const int distance = reach * COLUMN_THREADS, upper = THREAD & distance;
        if (2 * distance <= WARP) {
            const struct state other = exchange_state(exchange_, s[0], distance, 0);
            s[0] = COMMUTES ? combine(s[0], other)
                            : join_lanes(weights_, choose(upper, other, s[0]), choose(upper, s[0], other), reach,
                                         own & (reach - 1), here, weighed, 0);
            continue;
        }
        shared[THREAD] = s[0];
        BARRIER();
        if (beside < distance)
            s[0] = join_lanes(weights_, s[0], shared[THREAD + distance], reach, own, here, weighed, 0);
        BARRIER();
    }
#else
    const int own = THREAD / COLUMN_THREADS % LANE_THREADS;
    NO_UNROLL
    for (int reach = LANE_THREADS / 2; reach; reach /= 2) {
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            shared[c * THREADS + THREAD] = s[c];
        BARRIER();
        if (own < reach)
            UNROLL
            for (int c = 0; c < VECTOR; c++)
                s[c] = join_lanes(weights_, s[c], shared[c * THREADS + THREAD + reach * COLUMN_THREADS], reach, own,
                                  here, weighed, 0);
        BARRIER();
    }
#endif
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    SHARED struct state shared[OWN_STATES];
    SHARED int flag;
    WEIGHTS_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    /* the last tile first: it may have fewer elements, which then takes longer */
    const int64_t part = S->p[1] - 1 - block_over(S->p[4]), columns = block_past(S->p[4]) * BLOCK_COLUMNS;
    const int64_t tiles = ONE_TILE ? 1 : S->p[0];
    const int only = !SEVERAL_TILES && tiles == 1;
    const int64_t o = columns + THREAD / (COLUMN_THREADS * LANE_THREADS) * SPAN + THREAD % COLUMN_THREADS * VECTOR;
    const int64_t end = (part + 1) * S->p[2] < tiles ? (part + 1) * S->p[2] : tiles;
    const struct place start = kept_place(S, o < S->kept_total ? o : 0);
    GLOBAL struct state *states = (GLOBAL struct state *)workspace;
#if MERGE_WEIGHTS
    make_weights(weights_, (int)(S->reduced_total - (tiles - 1) * TILE));
    if (!ONE_TILE)
        make_weights(weights_ + 2 * LEVELS, TILE);
    BARRIER();
#endif
    for (int64_t tile = part * S->p[2]; tile < end; tile++) {
        const int64_t left = S->reduced_total - tile * TILE;
        const int here = left < TILE ? (int)left : TILE, n = o >= S->kept_total ? 0 : here;
        const int weighed = MERGE_WEIGHTS > 1 || (MERGE_WEIGHTS && here >= LANES);
        const weights_type weights = weights_ + (MERGE_WEIGHTS && tile < tiles - 1 ? 2 * LEVELS : 0);
#if IN_TURN
        struct state s[1][VECTOR];
        if (weighed)
            column_turns(weights, T, S, start, tile * TILE, n, here, b.vectors != 0, 1, shared, s[0]);
        else
            column_turns(weights, T, S, start, tile * TILE, n, here, b.vectors != 0, 0, shared, s[0]);
#else
        struct state s[HELD][VECTOR];
        column_lanes(T, S, start, tile * TILE, n, b.vectors != 0, s);
        if (weighed)
            own_levels(weights, here, 1, s);
        else
            own_levels(weights, here, 0, s);
#endif
        if (weighed)
            column_tree(exchange_, weights, shared, here, 1, s[0]);
        else
            column_tree(exchange_, weights, shared, here, 0, s[0]);
        if (THREAD % OF_COLUMNS % (COLUMN_THREADS * BESIDE) < COLUMN_THREADS) {
#if STORES_VECTORS
            if (only) {
                if (o < S->kept_total)
                    finish_vector(T, S, o, s[0]);
                continue;
            }
#endif
            UNROLL
            for (int c = 0; c < (ONE_COLUMN ? 1 : VECTOR); c++) {
                const int64_t at = o + (ONE_COLUMN ? THREAD % OF_COLUMNS / (COLUMN_THREADS * BESIDE) : c);
                if (at >= S->kept_total)
                    continue;
                if (only)
                    finish_output(T, S, at, s[0][c], S->reduced_total);
                else
                    states[tile * S->kept_total + at] = s[0][c];
            }
        }
    }
#if !ONE_TILE
    if (only)
        return;
    const int64_t count = S->kept_total - columns < BLOCK_COLUMNS ? S->kept_total - columns : BLOCK_COLUMNS;
    join_columns(exchange_, T, S, states, columns, count, block_past(S->p[4]), part, shared, &flag);
#endif
}
