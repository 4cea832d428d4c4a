/* A thread's ROW_OWN x COLUMN_OWN outputs of a block's ROWS x COLUMNS, in registers. p[0], p[1]: blocks along rows and
 * columns; p[7]: rows * 2^32 + columns. */
enum {
    COLUMN_THREADS = COLUMNS / COLUMN_OWN,
    BESIDE = 8 /* blocks of rows that take the same columns one after the other, from the cache */
};

/* Where a block's outputs begin. */
struct corner {
    int64_t batch, row, column;
};

static inline struct corner corner_of(shape_ptr S, uint32_t block)
{
    const uint32_t down = (uint32_t)S->p[0], right = (uint32_t)S->p[1]; /* a launch has fewer than 2^31 blocks */
    const uint32_t batch = block / (down * right), here = block - batch * (down * right);
    /* where there is a second band, right is below 2^28 */
    const uint32_t band = down > BESIDE ? here / (BESIDE * right) : 0, inside_band = here - band * BESIDE * right;
    const uint32_t height = down - band * BESIDE < BESIDE ? down - band * BESIDE : BESIDE;
    struct corner c;
    c.batch = batch;
    c.row = (int64_t)(band * BESIDE + inside_band % height) * ROWS;
    c.column = (int64_t)(inside_band / height) * COLUMNS;
    return c;
}

#if FLAG_ROWS
/* Blocks of FLAG_ROWS x FLAG_COLUMNS outputs have a flag each: the number of the one in which these lie. */
static inline int64_t flag_of(shape_ptr S, struct corner at)
{
    const int64_t down = ((S->p[7] >> 32) + FLAG_ROWS - 1) / FLAG_ROWS;
    const int64_t right = ((S->p[7] & 0xffffffff) + FLAG_COLUMNS - 1) / FLAG_COLUMNS;
    return (at.batch * down + at.row / FLAG_ROWS) * right + at.column / FLAG_COLUMNS;
}
#endif

#define EVERY_OUTPUT                  \
    UNROLL                            \
    for (int i = 0; i < ROW_OWN; i++) \
        UNROLL                        \
        for (int j = 0; j < COLUMN_OWN; j++)

#if COPIED
/* n terms of a tile, TAKEN at a time. number: of the first one. */
static inline void add_run(acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER const float *x,
                           SHARED_POINTER const float *y, int n, int number, int plain)
{
    const int down = THREAD / COLUMN_THREADS, right = THREAD % COLUMN_THREADS;
    int t = 0;
    NO_UNROLL
    for (; t + TAKEN <= n; t += TAKEN) {
        value_t_x row[TAKEN][ROW_OWN];
        value_t_y column[TAKEN][COLUMN_OWN];
        take_x(x, t, down, row);
        take_y(y, t, right, column);
        UNROLL
        for (int u = 0; u < TAKEN; u++)
            EVERY_OUTPUT accumulate(&acc[i][j], row[u][i], column[u][j], number + t + u, plain);
    }
    NO_UNROLL
    for (; t < n; t++) {
        value_t_x row[ROW_OWN];
        value_t_y column[COLUMN_OWN];
        take_one_x(x, t, down, row);
        take_one_y(y, t, right, column);
        EVERY_OUTPUT accumulate(&acc[i][j], row[i], column[j], number + t, plain);
    }
}

#if BY_BITS
/* Positive floats compare like the integers with their bits, and of those and negative ones the greater integer (with a
 * sign) is positive too: where all outputs are positive so far, integers find the greatest term, two terms at a time
 * (Hopper's VIMNMX3), which floats do one at a time and at half the rate. A sum that is no number is the canonical NaN
 * there, which is greater than all. Floats that are not positive compare like integers without a sign, turned round (+0
 * is 0, -0 is 2^31): that will do where the outputs and the tile's terms are such. */
static inline void add_bits(acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER const float *x,
                            SHARED_POINTER const float *y, int n, int negative)
{
    const int down = THREAD / COLUMN_THREADS, right = THREAD % COLUMN_THREADS;
    NO_UNROLL
    for (int t = 0; t < n; t += TAKEN) { /* n is a multiple */
        float row[TAKEN][ROW_OWN], column[TAKEN][COLUMN_OWN];
        take_x(x, t, down, row);
        take_y(y, t, right, column);
        UNROLL
        for (int u = 0; u < TAKEN; u += 2)
            EVERY_OUTPUT
            {
                const uint32_t one = mf_f32_bits(signed_x(row[u][i]) + signed_y(column[u][j]));
                const uint32_t two = mf_f32_bits(signed_x(row[u + 1][i]) + signed_y(column[u + 1][j]));
                const uint32_t so_far = mf_f32_bits(acc[i][j]);
                acc[i][j] = mf_bits_f32(negative ? MIN_OF_3_UNSIGNED(so_far, one, two)
                                                 : (uint32_t)MAX_OF_3((int)so_far, (int)one, (int)two));
            }
    }
}

/* Whether all outputs of the thread have this sign. */
static inline int have_sign(acc_t acc[ROW_OWN][COLUMN_OWN], int negative)
{
    uint32_t all = negative ? ~0u : 0;
    EVERY_OUTPUT all = negative ? all & mf_f32_bits(acc[i][j]) : all | mf_f32_bits(acc[i][j]);
    return (int)(all >> 31) == negative;
}

/* A tile, as fast as its signs allow. falling: none of its values is positive or no number, so no term is; nothing is
 * greater than 0 before it either, if *low. positive: all outputs are. */
static inline void add_by_bits(acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER const float *x,
                               SHARED_POINTER const float *y, int n, int falling, int *low, int *positive)
{
    const int whole = n % TAKEN == 0;
    *positive = *positive || have_sign(acc, 0);
    if (*positive && whole) {
        add_bits(acc, x, y, n, 0);
    } else if (falling && whole && (*low || have_sign(acc, 1))) {
        add_bits(acc, x, y, n, 1);
    } else {
        add_run(acc, x, y, n, 0, 1);
        *low = 0;
    }
}
#endif
#else
/* One term of every output of the thread. */
static inline void add_term(acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER const value_t_x *x,
                            SHARED_POINTER const value_t_y *y, int number, int plain)
{
    value_t_x row[ROW_OWN];
    value_t_y column[COLUMN_OWN];
    get_x(x, THREAD / COLUMN_THREADS, row);
    get_y(y, THREAD % COLUMN_THREADS, column);
    EVERY_OUTPUT accumulate(&acc[i][j], row[i], column[j], number, plain);
}

/* Terms from ... to-1 of a tile. number: of the tile's first term. */
static inline void add_run(acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER const value_t_x *x,
                           SHARED_POINTER const value_t_y *y, int from, int to, int number, int plain)
{
    int t = from;
    NO_UNROLL
    for (; t + AT_ONCE <= to; t += AT_ONCE)
        UNROLL
        for (int u = 0; u < AT_ONCE; u++)
            add_term(acc, x + (t + u) * PITCH_x, y + (t + u) * PITCH_y, number + t + u, plain);
    NO_UNROLL
    for (; t < to; t++)
        add_term(acc, x + t * PITCH_x, y + t * PITCH_y, number + t, plain);
}
#endif

static inline void start_run(acc_t acc[ROW_OWN][COLUMN_OWN], int number)
{
    EVERY_OUTPUT acc[i][j] = acc_empty(number);
}

#if TWICE
/* Before a tile is summed: the first pass, in which ADD(0) looks for greater terms. Whether the terms of an output are
 * to be added with accumulate's 2, not 1. */
#define LOOK_FIRST(acc, ADD, other)                           \
    do {                                                      \
        EVERY_OUTPUT acc_before(&(acc)[i][j]);                \
        ADD(0);                                               \
        EVERY_OUTPUT(other) |= acc_between(&(acc)[i][j]);     \
    } while (0)
#endif

/* Stores the thread's outputs, as far as they exist. */
static inline void store_outputs(struct tensors T, shape_ptr S, struct corner at, acc_t acc[ROW_OWN][COLUMN_OWN])
{
    const int64_t rows = S->p[7] >> 32, columns = S->p[7] & 0xffffffff;
    const struct target origin = move_target(S, no_target(), at.batch, 2);
    const int down = THREAD / COLUMN_THREADS, own = own_position_x(down, 0);
    const struct target first = move_target(S, origin, at.row + own, 0);
    struct target right[COLUMN_OWN];
    UNROLL
    for (int j = 0; j < COLUMN_OWN; j++)
        right[j] = move_target(S, no_target(), at.column + own_position_y(THREAD % COLUMN_THREADS, j), 1);
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        const int64_t m = at.row + own_position_x(down, i);
        const struct target left = /* along one loop distances are constant */
            list_loops(0) == 1 ? move_target(S, first, own_position_x(down, i) - own, 0) : move_target(S, origin, m, 0);
        UNROLL
        for (int j = 0; j < COLUMN_OWN; j++)
            if (m < rows && at.column + own_position_y(THREAD % COLUMN_THREADS, j) < columns)
                finish_at(T, sum_of_targets(left, right[j]), acc_state(S, acc[i][j]), S->reduced_total);
    }
}
