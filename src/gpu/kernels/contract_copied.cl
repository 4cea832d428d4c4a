/* Contractions of two operands of floats as they are, in one run of terms: contract.cl without registers for what is on
 * its way, so that a multiprocessor has room for a second block, which folds while the first one waits. STAGES tiles of
 * both factors lie in shared memory, one of them at work.
 *
 * p[2], p[4], p[5], p[6]: contract_parts.cl; p[3]: terms of a part. FLAGGED: p[4] bytes of the workspace before the flags
 * of blocks that are to be computed at all. TWICE: a tile is looked at for greater terms (tile.cl) only where the sum of
 * its row's and column's greatest values says that there may be some, greater by e^SLACK than what the sum refers to.
 * Cost of a term: one product, one fold, and 1/ROW_OWN + 1/COLUMN_OWN values from shared memory. */
#if TWICE
enum { SIDES = ROWS + COLUMNS, SHARES = THREADS / SIDES, SLACK = 8 };

/* The greatest values of the tile's rows and columns, of n terms; each in SHARES. */
static inline void find_most(SHARED_POINTER const float *tile, int n, SHARED_POINTER float *most)
{
    const int position = THREAD % SIDES, share = THREAD / SIDES;
    float best = LOWEST;
    if (share < SHARES) {
        NO_UNROLL
        for (int t = share; t < n; t += SHARES)
            best = fold_max_f32(best, position < ROWS ? value_at_x(tile, t, position)
                                                      : value_at_y(tile + STAGE_x, t, position - ROWS));
        most[THREAD] = best;
    }
}

/* Whether no term of the thread's outputs can be much greater than what their sums refer to; not where one is NaN. */
static inline int is_below(acc_t acc[ROW_OWN][COLUMN_OWN], SHARED_POINTER const float *most)
{
    float row[ROW_OWN], column[COLUMN_OWN];
    int below = 1;
    UNROLL
    for (int i = 0; i < ROW_OWN; i++) {
        const int position = own_position_x(THREAD / COLUMN_THREADS, i);
        row[i] = most[position];
        for (int share = 1; share < SHARES; share++)
            row[i] = fold_max_f32(row[i], most[share * SIDES + position]);
    }
    UNROLL
    for (int j = 0; j < COLUMN_OWN; j++) {
        const int position = ROWS + own_position_y(THREAD % COLUMN_THREADS, j);
        column[j] = most[position];
        for (int share = 1; share < SHARES; share++)
            column[j] = fold_max_f32(column[j], most[share * SIDES + position]);
    }
    EVERY_OUTPUT below &= (row[i] + column[j] - acc[i][j].m <= SLACK) & (acc[i][j].scaled - acc[i][j].scaled == 0);
    return below;
}
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    enum { TILE_FLOATS = STAGE_x + STAGE_y };
    LAUNCH_SHARED(struct sixteen, room, SIXTEENS(STAGES * TILE_FLOATS * 4));
    SHARED int flag;
#if TWICE
    SHARED float most[THREADS];
#endif
    SHARED_POINTER float *const tiles = (SHARED_POINTER float *)room;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t parts = (uint32_t)S->p[2], part = (uint32_t)BLOCK % parts, block = (uint32_t)BLOCK / parts;
    const struct corner at = corner_of(S, block);
    const int first = (int)((int64_t)part * S->p[3]), vectors = b.vectors != 0;
    const int end = (int)(first + S->p[3] < S->reduced_total ? first + S->p[3] : S->reduced_total);
#if FLAGGED
    LET_FOLLOW(); /* this one is through at once, nearly always */
    if (!((GLOBAL const int *)(workspace + S->p[4]))[flag_of(S, at)])
        return;
#endif
    struct pieces_x x;
    struct pieces_y y;
    acc_t acc[ROW_OWN][COLUMN_OWN];
    find_pieces_x(T, S, at.batch, at.row, S->p[7] >> 32, &x);
    find_pieces_y(T, S, at.batch, at.column, S->p[7] & 0xffffffff, &y);
    start_run(acc, first);
    NO_UNROLL
    for (int s = 0; s < STAGES - 1; s++) {
        if (first + s * STEP < end) {
            copy_x(S, &x, first + s * STEP, end, vectors, tiles + s * TILE_FLOATS);
            copy_y(S, &y, first + s * STEP, end, vectors, tiles + s * TILE_FLOATS + STAGE_x);
        }
        END_COPIES();
    }
    int stage = 0;
#if BY_BITS
    int positive = 0, low = 1;
#endif
    NO_UNROLL
    for (int t = first; t < end; t += STEP) {
        SHARED_POINTER const float *const tile = tiles + stage * TILE_FLOATS;
        const int next = t + (STAGES - 1) * STEP, n = end - t < STEP ? end - t : STEP;
        AWAIT_COPIES(STAGES - 2);
#if BY_BITS
        const int falling = BARRIER_AND(positive || (fall_x(tile) && fall_y(tile + STAGE_x))); /* its own pieces' */
#else
        BARRIER();
#endif
        if (next < end) {
            SHARED_POINTER float *const to = tiles + (stage ? stage - 1 : STAGES - 1) * TILE_FLOATS;
            copy_x(S, &x, next, end, vectors, to);
            copy_y(S, &y, next, end, vectors, to + STAGE_x);
        }
        END_COPIES();
#define ADD(pass) add_run(acc, tile, tile + STAGE_x, n, t, pass)
#if TWICE
        int other = 0;
        find_most(tile, n, most);
        BARRIER();
        if (!is_below(acc, most))
            LOOK_FIRST(acc, ADD, other);
        if (other)
            ADD(2);
        else
            ADD(1);
#elif BY_BITS
        add_by_bits(acc, tile, tile + STAGE_x, n, falling, &low, &positive);
#else
        ADD(1);
#endif
        stage = stage + 1 < STAGES ? stage + 1 : 0;
    }
    end_part(T, S, at, workspace, block, part, acc, &flag);
}
