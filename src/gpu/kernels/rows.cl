/* Outputs of few elements, one tile or less. WIDTH threads take a row, each HELD of its lanes (t, t + WIDTH ...); a
 * thread works on ROWS rows at once. The tree over the threads is a multi-reduction: at each level a thread gives away
 * half of its rows and takes over the other half, so that in the end each of ROWS threads has a row of its own.
 *
 * (Seed: "multi-reduction", the predicated merge.) */
enum { GROUPS = WARP / WIDTH, WARP_ROWS = GROUPS * ROWS };

/* The lanes of ROWS rows that have no more elements than lanes. */
static inline void short_lanes(struct tensors T, shape_ptr S, int64_t first, struct state s[ROWS][HELD])
{
    const int lane = THREAD % WIDTH, count = (int)S->reduced_total;
    struct raw r[ROWS][HELD];
    struct place p[ROWS][HELD];
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        const int64_t o = first + m * GROUPS;
        const struct place start = kept_place(S, o);
        UNROLL
        for (int j = 0; j < HELD; j++) {
            p[m][j] = element_place(S, start, lane + WIDTH * j);
            if (lane + WIDTH * j < count && o < S->kept_total && inside(S, p[m][j]))
                r[m][j] = fetch(T, p[m][j]);
        }
    }
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        const int present = first + m * GROUPS < S->kept_total;
        UNROLL
        for (int j = 0; j < HELD; j++) {
            const int e = lane + WIDTH * j;
            struct lane l = empty_lane();
            if (e < count && present && inside(S, p[m][j])) {
                struct element x = map_element(r[m][j]);
                chain(S, &l, x, 0, e);
                if (TWO_PHASES)
                    chain_second(&l, x);
            }
            s[m][j] = lane_state(S, l, e, e < count);
        }
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % WARP, lane = t % WIDTH;
    const int64_t first = (BLOCK * WARPS + THREAD / WARP) * WARP_ROWS + t / WIDTH;
    struct state s[ROWS][HELD], a[ROWS];
#if STEPS == 1
    short_lanes(T, S, first, s);
#else /* one row a warp */
    warp_lanes(T, S, kept_place(S, first), 0, first < S->kept_total ? (int)S->reduced_total : 0, s[0]);
#endif
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        UNROLL
        for (int reach = HELD / 2; reach; reach /= 2)
            UNROLL
            for (int j = 0; j < HELD / 2; j++)
                if (j < reach)
                    s[m][j] = combine(s[m][j], s[m][j + reach]);
        a[m] = s[m][0];
    }
    int rows = ROWS, mine = 0;
    UNROLL
    for (int distance = WIDTH / 2; distance; distance /= 2) {
        const int upper = (t & distance) != 0;
        if (rows > 1) {
            rows /= 2;
            UNROLL
            for (int m = 0; m < ROWS / 2; m++)
                if (m < rows) {
                    struct state keep = choose(upper, a[m + rows], a[m]), give = choose(upper, a[m], a[m + rows]);
                    struct state got = exchange_state(exchange_, give, distance);
                    a[m] = COMMUTES ? combine(keep, got)
                                    : combine(choose(upper, got, keep), choose(upper, keep, got));
                }
            mine += upper ? rows : 0;
        } else {
            a[0] = exchanged_combine(exchange_, a[0], distance);
        }
    }
    const int64_t o = first + mine * GROUPS;
    if (lane % (WIDTH / ROWS) == 0 && o < S->kept_total)
        finish_output(T, S, o, a[0], S->reduced_total);
}
