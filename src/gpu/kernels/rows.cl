/* Outputs of few elements, one tile or less. WIDTH threads take a row, each HELD of its lanes (t, t + WIDTH ...); a
 * thread works on ROWS rows at once. The tree over the threads is a multi-reduction: at each level a thread gives away
 * half of its rows and takes over the other half, so that in the end each of ROWS threads has a row of its own.
 *
 * (Seed: "multi-reduction", the predicated merge.) */
enum { GROUPS = WARP / WIDTH, WARP_ROWS = GROUPS * ROWS };

/* The lanes of ROWS rows that have no more elements than lanes. */
static inline void short_lanes(struct tensors T, shape_ptr S, const int64_t *output, struct state s[ROWS][HELD])
{
    const int lane = THREAD % WIDTH;
    struct raw r[ROWS][HELD];
    struct place p[ROWS][HELD];
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        struct place start = kept_place(S, output[m]);
        UNROLL
        for (int j = 0; j < HELD; j++) {
            const int e = lane + WIDTH * j;
            p[m][j] = element_place(S, start, e);
            if (e < S->reduced_total && output[m] < S->kept_total && inside(S, p[m][j]))
                r[m][j] = fetch(T, p[m][j]);
        }
    }
    UNROLL
    for (int m = 0; m < ROWS; m++)
        UNROLL
        for (int j = 0; j < HELD; j++) {
            s[m][j] = state_identity();
            if (lane + WIDTH * j < S->reduced_total && output[m] < S->kept_total && inside(S, p[m][j])) {
                struct element x = map_element(r[m][j]);
                chain(&s[m][j], x, INDEX(p[m][j]), 0);
                if (TWO_PHASES)
                    chain_second(&s[m][j], x);
            }
        }
}

/* The lanes of rows with several steps. */
static inline void long_lanes(struct tensors T, shape_ptr S, const int64_t *output, struct state s[ROWS][HELD])
{
#if HELD == 4 && WIDTH == 32
    UNROLL
    for (int m = 0; m < ROWS; m++)
        warp_lanes(T, S, kept_place(S, output[m]), 0, output[m] < S->kept_total ? (int)S->reduced_total : 0, s[m]);
#endif
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int t = THREAD % WARP, lane = t % WIDTH;
    const int64_t first = (BLOCK * WARPS + THREAD / WARP) * WARP_ROWS + t / WIDTH;
    int64_t output[ROWS];
    struct state s[ROWS][HELD], a[ROWS];
    UNROLL
    for (int m = 0; m < ROWS; m++)
        output[m] = first + m * GROUPS;
    if (STEPS == 1)
        short_lanes(T, S, output, s);
    else
        long_lanes(T, S, output, s);
    UNROLL
    for (int m = 0; m < ROWS; m++) {
        UNROLL
        for (int reach = HELD / 2; reach; reach /= 2)
            UNROLL
            for (int j = 0; j < reach; j++)
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
                    a[m] = combine(choose(upper, got, keep), choose(upper, keep, got));
                }
            mine += upper ? rows : 0;
        } else {
            struct state got = exchange_state(exchange_, a[0], distance);
            a[0] = combine(choose(upper, got, a[0]), choose(upper, a[0], got));
        }
    }
    const int64_t o = first + mine * GROUPS;
    if (lane % (WIDTH / ROWS) == 0 && o < S->kept_total)
        finish_output(T, S, o, a[0], S->reduced_total);
}
