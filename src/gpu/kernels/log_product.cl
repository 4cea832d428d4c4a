/* logsumexp over k of x[m, k] + y[k, n] as a product of matrices of exponentials, which log_pack.cl has made: S = sum
 * E(x - r) E(y - c), out = r + c + log S. FROM_SUMS: S is there already, by rows that lie p[9] numbers apart: p[6] bytes
 * into the workspace, or (SUMS_IN_OUTPUT) where the outputs will be, p[6] numbers from one of the batch to the next. A
 * block reads there what it will write, and nothing else.
 *
 * The certificate (docs/numerics.md, section 10): where S < K LEAST, what underflowed might show. A block with such an
 * output, or one whose greatest terms are +inf or NaN, stores nothing and sets its flag: it is computed by contract.cl,
 * one exp a term. p[2], p[3], p[4], p[5]: as in log_pack.cl. The workspace begins with the flags. */
#if !FROM_SUMS
struct ALIGNED(16) four {
    acc_t v[4];
};

enum { SLOTS_ROW = ROWS * STEP / 4 / THREADS, SLOTS_COLUMN = COLUMNS * STEP / 4 / THREADS };

/* The thread's share of STEP terms of one side, from term t on: vectors of 4 positions. Past the ends it is the last
 * one again. */
static inline void fetch_powers(GLOBAL const acc_t *powers, int64_t pitch, int64_t first, int64_t t, int64_t terms,
                                int positions, int slots, struct four *r)
{
    UNROLL
    for (int i = 0; i < slots; i++) {
        const int e = (THREAD + i * THREADS) * 4;
        const int64_t term = t + e / positions, at = first + e % positions;
        r[i] = *(GLOBAL const struct four *)(powers + (term < terms ? term : terms - 1) * pitch +
                                             (at < pitch ? at : pitch - 4));
    }
}

static inline void put_powers(const struct four *r, int slots, SHARED_POINTER acc_t *tile)
{
    UNROLL
    for (int i = 0; i < slots; i++)
        *(SHARED_POINTER struct four *)(tile + (THREAD + i * THREADS) * 4) = r[i];
}

#endif

/* What the sum of products of an output becomes; or *failed is set. */
static inline acc_t certified(acc_t sum, acc_t row, acc_t column, acc_t least, int *failed)
{
    const acc_t scale = row + column, back = scale - row, rest = (row - (scale - back)) + (column - back);
    const int nothing = (row == LOWEST) | (column == LOWEST), sound = (scale - scale == 0) & (sum >= least);
    *failed |= (nothing & !((row < -LOWEST) & (column < -LOWEST))) /* the other one is +inf or NaN */
               | (!nothing & !sound);
    return nothing ? LOWEST : scale + (rest + logarithm(sum));
}

/* The greatest values of a thread's rows and columns; past the ends those of the last ones. */
struct greatest {
    acc_t row[ROW_OWN], column[COLUMN_OWN];
};

static inline struct greatest take_greatest(shape_ptr S, struct corner at, GLOBAL const char *workspace)
{
    const int rows = (int)(S->p[7] >> 32), columns = (int)(S->p[7] & 0xffffffff);
    GLOBAL const acc_t *row_most = (GLOBAL const acc_t *)(workspace + S->p[2]) + at.batch * rows;
    GLOBAL const acc_t *column_most = (GLOBAL const acc_t *)(workspace + S->p[3]) + at.batch * columns;
    struct greatest g;
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        const int m = (int)at.row + own_position_x(THREAD / COLUMN_THREADS, i);
        g.row[i] = row_most[m < rows ? m : rows - 1];
    }
    UNROLL
    for (int j = 0; j < COLUMN_OWN; j++) {
        const int n = (int)at.column + own_position_y(THREAD % COLUMN_THREADS, j);
        g.column[j] = column_most[n < columns ? n : columns - 1];
    }
    return g;
}

static inline int certify(shape_ptr S, struct greatest g, acc_t acc[ROW_OWN][COLUMN_OWN])
{
    const acc_t least = CERTIFIED ? (acc_t)S->reduced_total * LEAST : 0;
    int failed = 0;
    EVERY_OUTPUT acc[i][j] = certified(acc[i][j], g.row[i], g.column[j], least, &failed);
    return failed;
}

#if !FROM_SUMS
/* The sums of products of all terms. */
static inline void multiply(shape_ptr S, struct corner at, GLOBAL const char *workspace, SHARED_POINTER acc_t *tile_x,
                            SHARED_POINTER acc_t *tile_y, acc_t acc[ROW_OWN][COLUMN_OWN])
{
    const int64_t rows = PITCHED(S->p[7] >> 32), columns = PITCHED(S->p[7] & 0xffffffff), terms = S->reduced_total;
    GLOBAL const acc_t *x = (GLOBAL const acc_t *)(workspace + S->p[4]) + at.batch * terms * rows;
    GLOBAL const acc_t *y = (GLOBAL const acc_t *)(workspace + S->p[5]) + at.batch * terms * columns;
    struct four row[SLOTS_ROW], column[SLOTS_COLUMN];
    int phase = 0;
    fetch_powers(x, rows, at.row, 0, terms, ROWS, SLOTS_ROW, row);
    fetch_powers(y, columns, at.column, 0, terms, COLUMNS, SLOTS_COLUMN, column);
    NO_UNROLL
    for (int64_t t = 0; t < terms; t += STEP, phase ^= 1) {
        SHARED_POINTER acc_t *const to_x = tile_x + phase * (STEP * ROWS);
        SHARED_POINTER acc_t *const to_y = tile_y + phase * (STEP * COLUMNS);
        put_powers(row, SLOTS_ROW, to_x);
        put_powers(column, SLOTS_COLUMN, to_y);
        BARRIER();
        if (t + STEP < terms) {
            fetch_powers(x, rows, at.row, t + STEP, terms, ROWS, SLOTS_ROW, row);
            fetch_powers(y, columns, at.column, t + STEP, terms, COLUMNS, SLOTS_COLUMN, column);
        }
        add_run(acc, to_x, to_y, 0, terms - t < STEP ? (int)(terms - t) : STEP, 0, 1);
    }
}

#else
static inline GLOBAL acc_t *sums_at(struct tensors T, shape_ptr S, struct corner at, GLOBAL char *workspace)
{
#if SUMS_IN_OUTPUT
    return (GLOBAL acc_t *)T.out0 + at.batch * S->p[6];
#else
    return (GLOBAL acc_t *)(workspace + S->p[6]) + at.batch * (S->p[7] >> 32) * (S->p[7] & 0xffffffff);
#endif
}

static inline void take_sums(shape_ptr S, struct corner at, GLOBAL const acc_t *sums, acc_t acc[ROW_OWN][COLUMN_OWN])
{
    const int rows = (int)(S->p[7] >> 32), columns = (int)(S->p[7] & 0xffffffff);
    EVERY_OUTPUT
    {
        const int m = (int)at.row + own_position_x(THREAD / COLUMN_THREADS, i);
        const int n = (int)at.column + own_position_y(THREAD % COLUMN_THREADS, j);
        acc[i][j] = sums[(m < rows ? m : rows - 1) * S->p[9] + (n < columns ? n : columns - 1)];
    }
}

/* Outputs where the sums are, four columns of float32 to a thread: whole blocks read and write vectors of four. */
#if SUMS_IN_OUTPUT
enum { FOURS = COLUMN_OWN == 4 && sizeof(acc_t) == 4 };

struct ALIGNED(16) four {
    acc_t v[4];
};

static inline int is_whole(shape_ptr S, struct corner at, GLOBAL const acc_t *sums)
{
    return FOURS && at.row + ROWS <= (int64_t)(S->p[7] >> 32) && at.column + COLUMNS <= (S->p[7] & 0xffffffff) &&
           !(((uint64_t)sums | (uint64_t)S->p[9] * 4) & 15);
}

/* A thread's vector of row i. */
static inline GLOBAL struct four *four_at(shape_ptr S, struct corner at, GLOBAL acc_t *sums, int i)
{
    const int64_t row = at.row + own_position_x(THREAD / COLUMN_THREADS, i);
    return (GLOBAL struct four *)(sums + row * S->p[9] + at.column + own_position_y(THREAD % COLUMN_THREADS, 0));
}

static inline void take_fours(shape_ptr S, struct corner at, GLOBAL acc_t *sums, acc_t acc[ROW_OWN][COLUMN_OWN])
{
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        const struct four v = *four_at(S, at, sums, i);
        UNROLL
        for (int j = 0; j < COLUMN_OWN; j++)
            acc[i][j] = v.v[j % 4];
    }
}

static inline void store_fours(struct tensors T, shape_ptr S, struct corner at, GLOBAL acc_t *sums,
                               acc_t acc[ROW_OWN][COLUMN_OWN])
{
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        uint32_t v[4] = {0};
        UNROLL
        for (int j = 0; j < COLUMN_OWN; j++)
            v[j % 4] = mf_f32_bits((float)results_at(T, no_target(), acc_state(S, acc[i][j]), S->reduced_total).y0);
        store_four(four_at(S, at, sums, i), v[0], v[1], v[2], v[3]);
    }
}
#endif
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
#if !FROM_SUMS
    SHARED struct four shared_x[2 * STEP * ROWS / 4];
    SHARED struct four shared_y[2 * STEP * COLUMNS / 4];
#endif
    SHARED int refused;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const struct corner at = corner_of(S, (uint32_t)BLOCK);
    acc_t acc[ROW_OWN][COLUMN_OWN];
    start_run(acc, 0);
    if (THREAD == 0)
        refused = 0;
#if FROM_SUMS
    LET_FOLLOW();
    const struct greatest g = take_greatest(S, at, workspace); /* on their way with the sums */
    GLOBAL acc_t *const sums = sums_at(T, S, at, workspace);
#if SUMS_IN_OUTPUT
    const int whole = is_whole(S, at, sums);
    if (whole)
        take_fours(S, at, sums, acc);
    else
#endif
        take_sums(S, at, sums, acc);
    BARRIER();
#else
    BARRIER();
    multiply(S, at, workspace, (SHARED_POINTER acc_t *)shared_x, (SHARED_POINTER acc_t *)shared_y, acc);
    const struct greatest g = take_greatest(S, at, workspace);
#endif
    if (certify(S, g, acc))
        refused = 1;
    BARRIER();
    if (THREAD == 0) {
        ((GLOBAL int *)workspace)[flag_of(S, at)] = refused;
        if (refused)
            ((GLOBAL int64_t *)(workspace + S->p[8]))[flag_of(S, at)]++; /* in all executions */
    }
#if FROM_SUMS && SUMS_IN_OUTPUT
    if (!refused && whole) {
        store_fours(T, S, at, sums, acc);
        return;
    }
#endif
    if (!refused)
        store_outputs(T, S, at, acc);
}
