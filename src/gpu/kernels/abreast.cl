/* Rows of 32 to 1024 elements, wherever they begin: a warp takes ROWS of them, thread t elements t, t + 32, t + 64 ...,
 * SLOTS of each row, and reads all before it computes. The tree's upper levels are then inside a thread, and the lower
 * ones a multi-reduction: at each a thread gives away half of its rows and takes over the other half, so that 8 rows of
 * 128 lanes take 33 merges a thread, where their trees have 32.
 *
 * LANE_PITCH: where the order of elements is the contract's a thread has four lanes, t, t + 32 ...; else one, of all
 * its elements. FULL: slots that are full in every row of as many slots. */
enum { OWN_LANES = LANE_PITCH / WARP, CHAIN = (SLOTS + OWN_LANES - 1) / OWN_LANES };

/* From a row to the next one, where these are one loop. */
static inline struct place next_row(shape_ptr S, struct place p)
{
#define X(s) p.i##s += in_stride(S, s, 0);
    FOR_MAP_INPUTS(X)
#undef X
    return p;
}

/* A thread's lanes of a row, from its elements. */
static inline void lanes_of_row(shape_ptr S, const struct raw r[SLOTS], int t, int n, struct lane l[OWN_LANES])
{
    UNROLL
    for (int j = 0; j < OWN_LANES; j++) {
        l[j] = empty_lane();
        UNROLL
        for (int k = 0; k < CHAIN; k++) {
            const int i = k * OWN_LANES + j;
            if (i < SLOTS)
                chain(S, &l[j], map_element(r[i]), k, j * WARP + t, weights_of(k), i < FULL || i * WARP + t < n);
            if (j + OWN_LANES >= SLOTS && !k && i < SLOTS)
                only_element(&l[j], map_element(r[i]), i < FULL || i * WARP + t < n);
        }
    }
}

static inline void states_of_row(shape_ptr S, const struct lane l[OWN_LANES], int t, int n, struct state s[4])
{
    UNROLL
    for (int j = 0; j < OWN_LANES; j++)
        s[j] = lane_state(S, l[j], j * WARP + t, j < FULL || j * WARP + t < n);
}

/* Whether sums are found before it is known that they will do: where some slots have gaps, and of doubles, that is 3 to
 * 17 % faster on an H200. */
enum { EARLY = FULL < SLOTS || sizeof(struct state) > 8 };

static inline void states_of_rows(shape_ptr S, struct raw r[ROWS][SLOTS], int t, int n, struct state s[ROWS][4])
{
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        struct lane l[OWN_LANES];
        lanes_of_row(S, r[m], t, n, l);
        states_of_row(S, l, t, n, s[m]);
    }
}

/* The trees of ROWS rows; which of them the thread has then. */
static inline int row_trees(EXCHANGE_TYPE exchange_, weights_type weights_, int t, int n, const int known,
                            struct state s[ROWS][4])
{
    int rows = ROWS, mine = 0;
    UNROLL
    for (int m = 0; m < ROWS; m++)
        own_levels(weights_, t, n, 0, OWN_LANES, FULL, SLOTS, known, s[m]);
    UNROLL
    for (int level = 4; level >= 0; level--) {
        const int distance = 1 << level, upper = (t & distance) != 0;
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
                s[m][0] = across_level(weights_, keep, give, level, t, n, 1, known);
            }
    }
    return mine;
}

/* Rows whose sums are not all plain, one after the other: elements are read again. */
static inline void sure_rows(EXCHANGE_TYPE exchange_, weights_type weights_, struct tensors T, shape_ptr S,
                             int64_t first, int64_t past, int t, int n)
{
    NO_UNROLL
    for (int m = 0; m < ROWS; m++) {
        const struct place row = kept_place(S, first + m);
        struct raw r[SLOTS];
        struct lane l[OWN_LANES];
        struct state s[4];
        UNROLL
        for (int i = 0; i < SLOTS; i++) {
            r[i] = no_raw();
            if (i < FULL || i * WARP + t < n)
                r[i] = fetch(T, element_place(S, row, t + i * WARP));
        }
        lanes_of_row(S, r, t, n, l);
        SETTLING
        for (int j = 0; j < OWN_LANES; j++) {
            if (j + OWN_LANES >= SLOTS)
                settle_one(&l[0], j < FULL || j * WARP + t < n);
            else
                settle(T, S, row, &l[0], j * WARP + t, lane_count(n, j * WARP + t));
            turn_lanes(l, OWN_LANES);
        }
        states_of_row(S, l, t, n, s);
        own_levels(weights_, t, n, 0, OWN_LANES, FULL, SLOTS, SURE, s);
        NO_UNROLL
        for (int level = 4; level >= 0; level--)
            s[0] = across_level(weights_, s[0], exchange_state(exchange_, s[0], 1 << level, 1), level, t, n, 1, SURE);
#if HAS_COUNT
        s[0].n = n;
#endif
        if (t == 0 && first + m >= past)
            finish_output(T, S, first + m, s[0], n);
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    WEIGHTS_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % WARP, n = (int)S->reduced_total;
    /* the last warps read rows of others too, which is cheaper than conditions, and do not store them */
    const int64_t past = (BLOCK * (THREADS / WARP) + THREAD / WARP) * ROWS, last = S->kept_total - ROWS;
    const int64_t first = past < last ? past : last;
    struct raw r[ROWS][SLOTS];
    struct state s[ROWS][4];
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
    if (MERGE_WEIGHTS && !EVEN_ELEMENTS)
        BARRIER();
    struct lane all = empty_lane();
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int i = 0; i < SLOTS; i++)
            gather_in_1(&all, map_element(r[m][i]), i < FULL || i * WARP + t < n, 0);
    if (EARLY)
        states_of_rows(S, r, t, n, s);
    int plain = !LOGSUMS || !ANY_OF_WARP(!all_are_clear(all)), mine = 0;
    if (plain) {
        if (!EARLY)
            states_of_rows(S, r, t, n, s);
        mine = row_trees(exchange_, weights_, t, n, PLAIN_SUMS, s);
        struct origins in_1 = no_origins();
        plain = settle_at(&s[0][0], &in_1);
    }
    if (LOGSUMS && ANY_OF_WARP(!plain)) {
        sure_rows(exchange_, weights_, T, S, first, past, t, n);
        return;
    }
#if HAS_COUNT
    s[0][0].n = n;
#endif
    if (t % (WARP / ROWS) == 0 && first + mine >= past)
        finish_output(T, S, first + mine, s[0][0], n);
}
