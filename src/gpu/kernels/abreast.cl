/* Rows of 65 to 1024 elements, wherever they begin: a warp takes ROWS of them, thread t elements t, t + 32, t + 64 ...,
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

/* The second phase of a thread's lane j. */
static inline void second_phase(const struct raw r[SLOTS], int j, int t, int n, struct lane *l)
{
    if (j + OWN_LANES >= SLOTS) {
        chain_only(l, j < FULL || j * WARP + t < n);
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
static inline void lanes_of_row(shape_ptr S, const struct raw r[SLOTS], int t, int n, struct state s[4])
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
    if (MERGE_WEIGHTS)
        BARRIER();
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        lanes_of_row(S, r[m], t, n, s[m]);
        own_levels(weights_, t, n, 0, OWN_LANES, FULL, SLOTS, s[m]);
    }
    int rows = ROWS, mine = 0;
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
                s[m][0] = across_level(weights_, keep, give, level, t, n, 1);
            }
    }
#if HAS_COUNT
    s[0][0].n = n;
#endif
    if (t % (WARP / ROWS) == 0 && first + mine >= past)
        finish_output(T, S, first + mine, s[0][0], n);
}
