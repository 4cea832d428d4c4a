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

static inline void start_run(acc_t acc[ROW_OWN][COLUMN_OWN], int number)
{
    EVERY_OUTPUT acc[i][j] = acc_empty(number);
}

/* Stores the thread's outputs, as far as they exist. */
static inline void store_outputs(struct tensors T, shape_ptr S, struct corner at, acc_t acc[ROW_OWN][COLUMN_OWN])
{
    const int64_t rows = S->p[7] >> 32, columns = S->p[7] & 0xffffffff;
    const struct target origin = move_target(S, no_target(), at.batch, 2);
    struct target right[COLUMN_OWN];
    UNROLL
    for (int j = 0; j < COLUMN_OWN; j++)
        right[j] = move_target(S, no_target(), at.column + own_position_y(THREAD % COLUMN_THREADS, j), 1);
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        const int64_t m = at.row + own_position_x(THREAD / COLUMN_THREADS, i);
        const struct target left = move_target(S, origin, m, 0);
        UNROLL
        for (int j = 0; j < COLUMN_OWN; j++)
            if (m < rows && at.column + own_position_y(THREAD % COLUMN_THREADS, j) < columns)
                finish_at(T, sum_of_targets(left, right[j]), acc_state(S, acc[i][j]), S->reduced_total);
    }
}
