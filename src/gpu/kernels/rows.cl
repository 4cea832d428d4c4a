/* Outputs of few elements, one tile or less. WIDTH threads take a row, each HELD of its lanes: neighbours, read as one
 * vector, or (VECTOR 1) t, t + WIDTH ... A thread works on ROWS rows at once. The tree over the threads is a
 * multi-reduction: at each level a thread gives away half of its rows and takes over the other half, so that in the end
 * each has rows of its own.
 *
 * STEPS: elements of a lane, where a thread works on rows at once, or 0: one row a team, of any length. EXACT: a row has
 * as many elements as its lanes have in these steps.
 *
 * (The predicated merge of "multi-reduction": many reductions over the same lanes take little longer than one.) */
enum { GROUPS = WARP / WIDTH, WARP_ROWS = GROUPS * ROWS, LEFT = ROWS > WIDTH ? ROWS / WIDTH : 1, FETCHED = HELD / VECTOR };

/* The row's lane that j is, of the row's thread t. */
static inline int row_lane(int t, int j)
{
    return VECTOR > 1 ? t * HELD + j : t + WIDTH * j;
}

#if STEPS
/* What a thread's elements show before they are summed: there are gray ones in the unit 1; of some, one for each row,
 * the greatest is neither too low there nor too high. */
enum { GRAY_ONES = 1, NOTABLE_ONES = 2 };

/* Whether a lane has an element, or its vector elements, in step number k: all have but of the last. */
static inline int step_has(const int k, int lane, int count)
{
    return EXACT || k < STEPS - 1 || k * LANES + lane < count;
}

/* The states of ROWS rows' lanes, sums in the unit 1. low: whether some elements may be too low for them. */
static inline void lanes_of_step(shape_ptr S, struct raws r[ROWS][STEPS * FETCHED], struct place p[ROWS][STEPS * FETCHED],
                                 const int low, struct state s[ROWS][HELD])
{
    const int t = THREAD % WIDTH, count = (int)S->reduced_total;
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int j = 0; j < HELD; j++) {
            const int e = row_lane(t, j);
            struct lane l = empty_lane();
            l.may_be_low = low;
            UNROLL
            for (int k = 0; k < STEPS; k++) {
                const int f = k * FETCHED + j / VECTOR;
                const int present = PRESENCE(step_has(k, row_lane(t, j / VECTOR * VECTOR), count), inside(S, p[m][f]));
                const struct element x = map_element(one_of_vector(r[m][f], j % VECTOR));
                chain(S, &l, x, k, e, weights_of(k), present);
                only_element(&l, x, present);
            }
            s[m][j] = lane_state(S, l, e, EXACT ? STEPS : STEPS > 1 ? lane_count(count, e) : e < count);
        }
}

/* The lanes of ROWS rows, and what they show. */
static inline int short_lanes(EXCHANGE_TYPE exchange_, struct tensors T, shape_ptr S, int64_t first, int vectors,
                              struct state s[ROWS][HELD])
{
    const int t = THREAD % WIDTH, count = (int)S->reduced_total;
    struct raws r[ROWS][STEPS * FETCHED];
    struct place p[ROWS][STEPS * FETCHED];
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        /* rows past the end read the last one, and are not stored: cheaper than not reading */
        const int64_t o = first + m * GROUPS < S->kept_total ? first + m * GROUPS : S->kept_total - 1;
        const struct place start = kept_place(S, o);
        UNROLL
        for (int f = 0; f < STEPS * FETCHED; f++) {
            const int lane = row_lane(t, f % FETCHED * VECTOR), k = f / FETCHED;
            r[m][f] = no_elements();
            p[m][f] = element_place(S, start, step_has(k, lane, count) ? k * LANES + lane : count - VECTOR);
            if ((EXACT || count > 0) && inside(S, p[m][f]))
                r[m][f] = fetch_vector(T, S, p[m][f], LOOPS - 1, vectors);
        }
    }
    LOADED();
#if BYTES
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        struct lane l = empty_lane();
        UNROLL
        for (int f = 0; f < STEPS * FETCHED; f++)
            add_vector(&l, r[m][f], EXACT, f / FETCHED * LANES + row_lane(t, f % FETCHED * VECTOR), count);
        UNROLL
        for (int j = 0; j < HELD; j++)
            s[m][j] = j ? state_identity() : lane_state(S, l, 0, 1);
    }
    return 1;
#endif
    struct lane all = empty_lane(), extents = empty_lane();
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int j = 0; j < HELD; j++) /* sums have one step */
            gather_extent(&extents, map_element(one_of_vector(r[m][j / VECTOR], j % VECTOR)),
                          PRESENCE(EXACT || row_lane(t, j) < count, inside(S, p[m][j / VECTOR])));
    if (!LOGSUMS || !ANY_OF_WARP(!extents_are_small(extents))) {
        lanes_of_step(S, r, p, 0, s);
        return NOTABLE_ONES;
    }
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int j = 0; j < HELD; j++)
            gather_in_1(&all, map_element(one_of_vector(r[m][j / VECTOR], j % VECTOR)),
                        PRESENCE(EXACT || row_lane(t, j) < count, inside(S, p[m][j / VECTOR])), j == m % HELD);
    lanes_of_step(S, r, p, 1, s);
    return (all_are_clear(all) ? 0 : GRAY_ONES) | (all_are_notable(all) ? NOTABLE_ONES : 0);
}

static inline int lanes_of_rows(EXCHANGE_TYPE exchange_, struct tensors T, shape_ptr S, int64_t first, int vectors,
                                struct state s[ROWS][HELD])
{
    if (BY_CASES && VECTOR > 1 && !vectors)
        return short_lanes(exchange_, T, S, first, 0, s);
    return short_lanes(exchange_, T, S, first, BY_CASES || VECTOR == 1 || vectors, s);
}
#endif

/* Tree levels among a thread's own lanes; the result is s[m][0]. */
static inline void own_levels(struct state s[ROWS][HELD], int rows, int even)
{
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int reach = HELD / 2; reach; reach /= 2)
            UNROLL
            for (int j = 0; j < HELD / 2; j++)
                if (m < rows && j < reach)
                    s[m][j] = combine_these(s[m][j], s[m][j + reach], even);
}

#if STEPS
/* The trees of ROWS rows; which of them the thread has then. */
static inline int row_trees(EXCHANGE_TYPE exchange_, struct state s[ROWS][HELD], int even)
{
    const int carried = VECTOR == 1 || !ORDERED ? 1 : HELD; /* states of a row that go through the tree */
    if (carried == 1)
        own_levels(s, ROWS, even);
    int rows = ROWS, mine = 0;
    UNROLL
    for (int distance = WIDTH / 2; distance; distance /= 2) {
        if (rows > 1) {
            rows /= 2;
            mine += THREAD & distance ? rows : 0;
            UNROLL
            for (int m = 0; m < BOUND(rows, ROWS / 2); m++)
                UNROLL
                for (int j = 0; j < BOUND(carried, HELD); j++)
                    if (GUARD(m < rows && j < carried))
                        s[m][j] = halved(exchange_, s[m][j], s[m + rows][j], distance, even);
        } else {
            UNROLL
            for (int j = 0; j < BOUND(carried, HELD); j++)
                if (GUARD(j < carried))
                    s[0][j] = exchanged_combine(exchange_, s[0][j], distance, even);
        }
    }
    if (carried > 1)
        own_levels(s, rows, even);
    return mine;
}

#if STEPS == 1
/* The same of sums without gray elements, unless some row's is not plain: -1. */
static inline int plain_trees(EXCHANGE_TYPE exchange_, struct state s[ROWS][HELD], int even)
{
    const struct origins in_1 = no_origins();
    const int mine = row_trees(exchange_, s, even | PLAIN_STATES);
    int sound = 1;
    UNROLL
    for (int m = 0; m < LEFT; m++)
        sound &= settle_at(&s[m][0], &in_1);
    return LOGSUMS && ANY_OF_WARP(!sound) ? -1 : mine;
}

/* The same of elements that are not plain, unless some are far: -1. */
static inline int near_trees(EXCHANGE_TYPE exchange_, struct state s[ROWS][HELD], int even)
{
    int far = 0;
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int j = 0; j < HELD; j++) {
            settle_near(&s[m][j]);
            far |= state_is_far(s[m][j]);
        }
    if (!ANY_OF_WARP(far))
        return row_trees(exchange_, s, even | NEAR_STATES);
    return -1;
}

/* One row after the other, from memory: where some are far. */
static inline void sure_rows(EXCHANGE_TYPE exchange_, struct tensors T, shape_ptr S, int64_t first)
{
    const int t = THREAD % WIDTH, count = (int)S->reduced_total;
    NO_UNROLL
    for (int m = 0; m < ROWS; m++) {
        const int64_t o = first + m * GROUPS < S->kept_total ? first + m * GROUPS : S->kept_total - 1;
        const struct place start = kept_place(S, o);
        struct state s[HELD];
        NO_UNROLL
        for (int i = 0; i < HELD; i++) {
            const int e = row_lane(t, i);
            const struct place p = element_place(S, start, e < count ? e : count - 1);
            struct lane l = empty_lane();
            const int present = PRESENCE(e < count, inside(S, p));
            const struct raw r = present ? fetch(T, p) : one_of_vector(no_elements(), 0);
            chain(S, &l, map_element(r), 0, e, weights_of(0), present);
            settle_one(&l, present);
            const struct state one = lane_state(S, l, e, e < count);
            UNROLL
            for (int j = 0; j < HELD; j++)
                s[j] = choose(i == j, one, s[j]);
        }
        NO_UNROLL
        for (int distance = WIDTH / 2; distance && VECTOR > 1 && ORDERED; distance /= 2)
            UNROLL
            for (int j = 0; j < HELD; j++)
                s[j] = exchanged_combine(exchange_, s[j], distance, EXACT && !WINDOWS);
        UNROLL
        for (int reach = HELD / 2; reach; reach /= 2)
            UNROLL
            for (int j = 0; j < HELD / 2; j++)
                if (j < reach)
                    s[j] = combine(s[j], s[j + reach]);
        NO_UNROLL
        for (int distance = WIDTH / 2; distance && (VECTOR == 1 || !ORDERED); distance /= 2)
            s[0] = exchanged_combine(exchange_, s[0], distance, EXACT && !WINDOWS);
        if (t == 0 && first + m * GROUPS < S->kept_total)
            finish_output(T, S, o, s[0], S->reduced_total);
    }
}
#endif
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % WARP, lane = t % WIDTH;
    const int64_t first = (BLOCK * (THREADS / WARP) + THREAD / WARP) * WARP_ROWS + t / WIDTH;
    struct state s[ROWS][HELD];
#if STEPS == 0
    struct origins origins = no_origins();
    team_lanes(exchange_, &origins, T, S, kept_place(S, first), 0, first < S->kept_total ? (int)S->reduced_total : 0,
               b.vectors != 0, s[0]);
    s[0][0] = team_tree(exchange_, s[0], WHOLE_BATCHES && !WINDOWS, &origins);
    if (lane == 0 && first < S->kept_total)
        finish_output(T, S, first, s[0][0], S->reduced_total);
#else
    enum { EVEN = EXACT && !WINDOWS };
    const int found = lanes_of_rows(exchange_, T, S, first, b.vectors != 0, s);
#if STEPS > 1
    (void)found;
    const int mine = row_trees(exchange_, s, EVEN);
#else
    const int plain = !LOGSUMS || (!ANY_OF_WARP(found & GRAY_ONES) && ANY_OF_WARP(found & NOTABLE_ONES));
    const int mine = plain ? plain_trees(exchange_, s, EVEN) : near_trees(exchange_, s, EVEN);
    if (LOGSUMS && mine < 0) {
        sure_rows(exchange_, T, S, first);
        return;
    }
#endif
    UNROLL
    for (int m = 0; m < LEFT; m++) {
        const int64_t o = first + (mine + m) * GROUPS;
        if (lane % (WIDTH * LEFT / ROWS > 0 ? WIDTH * LEFT / ROWS : 1) == 0 && o < S->kept_total)
            finish_output(T, S, o, s[m][0], S->reduced_total);
    }
#endif
}
