/* Contractions: out[m, n] = fold over k of x[m, k] o y[k, n]. A block computes ROWS x COLUMNS outputs, a thread
 * ROW_OWN x COLUMN_OWN of them, in registers. Both factors go through shared memory, STEP terms at a time: while one
 * tile is folded the next one is on its way.
 *
 * The sequence of terms is cut into runs, after which values are joined: IN_TREE the contract's chains and halving
 * tree, depth first, so that few values wait (src/term_order.c); else it is one run.
 *
 * p[2], p[4], p[5], p[6]: contract_parts.cl; p[3]: terms of a part (if not IN_TREE). The workspace begins with the table
 * of terms. FLAGGED: p[4] bytes before the flags of blocks that are to be computed at all.
 * TWICE: every tile is gone through twice (tile.cl); PASSES = 2: so are all terms.
 * Where a factor has windows that leave its tensor, what lies outside is a value that changes no output beside any that
 * does not show, and once a block has met one that does it asks for every term whether it is inside.
 * Cost of a term: one product, one fold, and 1/ROW_OWN + 1/COLUMN_OWN values from shared memory. */
/* The values that wait for their right neighbours. */
struct waiting {
    acc_t value[LEVELS][ROW_OWN][COLUMN_OWN];
};

/* How many wait, and whether there is a youngest one beside them. */
struct count {
    int waiting, youngest;
};

#if IN_TREE
/* Ends a run: joins the value at hand with those before it, as often as is said, and lets it wait: after no join in
 * `youngest`, if it has registers (HAS_YOUNGEST): half of all values are joined again soon. */
static inline void end_run(acc_t acc[ROW_OWN][COLUMN_OWN], acc_t youngest[ROW_OWN][COLUMN_OWN],
                           struct waiting *waiting, struct count *count, int joins)
{
    if (HAS_YOUNGEST && count->youngest) {
        if (joins) {
            EVERY_OUTPUT acc[i][j] = acc_join(youngest[i][j], acc[i][j]);
            joins--;
        } else {
            EVERY_OUTPUT waiting->value[count->waiting][i][j] = youngest[i][j];
            count->waiting++;
        }
        count->youngest = 0;
    } else if (HAS_YOUNGEST && !joins) {
        EVERY_OUTPUT youngest[i][j] = acc[i][j];
        count->youngest = 1;
        return;
    }
    NO_UNROLL
    for (; joins > 0 && count->waiting > 0; joins--) {
        count->waiting--;
        EVERY_OUTPUT acc[i][j] = acc_join(waiting->value[count->waiting][i][j], acc[i][j]);
    }
    EVERY_OUTPUT waiting->value[count->waiting][i][j] = acc[i][j];
    count->waiting++;
}
#endif

#if WINDOWS
/* add_run, of terms inside alone. first: the tile's, in the sequence. */
static inline void add_inside(shape_ptr S, terms_t terms, acc_t acc[ROW_OWN][COLUMN_OWN],
                              SHARED_POINTER const value_t_x *x, SHARED_POINTER const value_t_y *y,
                              SHARED_POINTER const struct spot_x *spots_x, SHARED_POINTER const struct spot_y *spots_y,
                              int from, int to, int first)
{
    NO_UNROLL
    for (int t = from; t < to; t++) {
        const struct place term = element_place(S, no_place(), term_number(terms, first + t));
        value_t_x row[ROW_OWN];
        value_t_y column[COLUMN_OWN];
        int rows = 0, columns = 0;
        get_x(x + t * PITCH_x, THREAD / COLUMN_THREADS, row);
        get_y(y + t * PITCH_y, THREAD % COLUMN_THREADS, column);
        UNROLL
        for (int i = 0; i < ROW_OWN; i++)
            rows |= is_inside_x(S, &spots_x[own_position_x(THREAD / COLUMN_THREADS, i)], term) << i;
        UNROLL
        for (int j = 0; j < COLUMN_OWN; j++)
            columns |= is_inside_y(S, &spots_y[own_position_y(THREAD % COLUMN_THREADS, j)], term) << j;
        EVERY_OUTPUT if (rows >> i & columns >> j & 1)
            accumulate(&acc[i][j], row[i], column[j], first + t, 1);
    }
}
#define ADD(from, to, pass)                                                             \
    do {                                                                                \
        if (odd[phase])                                                                 \
            add_inside(S, terms, acc, x, y, spots_x, spots_y, from, to, t);             \
        else                                                                            \
            add_run(acc, x, y, from, to, t, pass);                                      \
    } while (0)
#else
#define ADD(from, to, pass) add_run(acc, x, y, from, to, t, pass)
#endif
#define ADD_ALL(pass) ADD(0, n, pass)
#define REMEMBERS (LOOKS_FOR_NANS || WINDOWED_x || WINDOWED_y) /* what the tiles before showed */

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct spot_x spots_x[ROWS];
    SHARED struct spot_y spots_y[COLUMNS];
    SHARED struct sixteen shared_x[SIXTEENS(2 * STEP * PITCH_x * sizeof(value_t_x))];
    SHARED struct sixteen shared_y[SIXTEENS(2 * STEP * PITCH_y * sizeof(value_t_y))];
    SHARED int runs[2 * STEP], flag, odd[2]; /* by phase: the next tile's is set while this one's is read */
    SHARED_POINTER value_t_x *const tile_x = (SHARED_POINTER value_t_x *)shared_x;
    SHARED_POINTER value_t_y *const tile_y = (SHARED_POINTER value_t_y *)shared_y;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t parts = (uint32_t)S->p[2], part = (uint32_t)BLOCK % parts, block = (uint32_t)BLOCK / parts;
    const struct corner at = corner_of(S, block);
    GLOBAL const struct part *const table = (GLOBAL const struct part *)(workspace + S->p[4]);
#if IN_TREE
    const terms_t terms = (terms_t)workspace;
    const int first = table[part].first, end = table[part].end;
    struct waiting waiting;
    struct count count;
    acc_t youngest[ROW_OWN][COLUMN_OWN]; /* unused, it takes no registers */
    count.waiting = count.youngest = 0;
#else
    const terms_t terms = 0;
    const int first = (int)((int64_t)part * S->p[3]);
    const int end = (int)(first + S->p[3] < S->reduced_total ? first + S->p[3] : S->reduced_total);
#endif
#if FLAGGED
    LET_FOLLOW(); /* this one is through at once, nearly always */
    if (!((GLOBAL const int *)(workspace + S->p[4]))[flag_of(S, at)])
        return;
#endif
    struct raw raw_x[SLOTS_x], raw_y[SLOTS_y];
    acc_t acc[ROW_OWN][COLUMN_OWN];
    find_spots_x(S, move_place(S, no_place(), at.batch, 2), at.row, S->p[7] >> 32, spots_x);
    find_spots_y(S, move_place(S, no_place(), at.batch, 2), at.column, S->p[7] & 0xffffffff, spots_y);
    start_run(acc, first);
    if (THREAD == 0)
        odd[0] = odd[1] = 0;
    BARRIER();
    int phase = 0;
    NO_UNROLL
    for (int pass = 0; pass < PASSES; pass++) {
        int other = 0;
#if PASSES == 2
        if (pass) {
            EVERY_OUTPUT other |= acc_between(&acc[i][j]);
        }
#endif
        load_x(T, S, terms, spots_x, first, end, b.vectors != 0, raw_x);
        load_y(T, S, terms, spots_y, first, end, b.vectors != 0, raw_y);
        NO_UNROLL
        for (int t = first; t < end; t += STEP) {
            SHARED_POINTER value_t_x *const x = tile_x + phase * (STEP * PITCH_x);
            SHARED_POINTER value_t_y *const y = tile_y + phase * (STEP * PITCH_y);
            const int n = end - t < STEP ? end - t : STEP;
            const int of_x = put_x(raw_x, x), of_y = put_y(raw_y, y);
            if (LOOKS_FOR_NANS ? of_x | of_y : (WINDOWED_y && of_x) | (WINDOWED_x && of_y))
                odd[phase] = 1;
            if (REMEMBERS && odd[phase ^ 1])
                odd[phase] = 1;
#if IN_TREE
            if (THREAD < n)
                runs[phase * STEP + THREAD] = terms[t + THREAD].run;
#endif
            BARRIER();
            if (t + STEP < end) {
                load_x(T, S, terms, spots_x, t + STEP, end, b.vectors != 0, raw_x);
                load_y(T, S, terms, spots_y, t + STEP, end, b.vectors != 0, raw_y);
            }
#if IN_TREE
            NO_UNROLL
            for (int from = 0; from < n;) {
                const int run = runs[phase * STEP + from], to = from + run / 16;
                ADD(from, to, 1);
                from = to;
                if (run % 16) {
                    end_run(acc, youngest, &waiting, &count, run % 16 - 1);
                    start_run(acc, 0);
                }
            }
#elif TWICE || PASSES == 2
#if TWICE
            other = 0;
            LOOK_FIRST(acc, ADD_ALL, other);
#endif
            if (PASSES == 2 && !pass)
                ADD_ALL(0);
            else if (other)
                ADD_ALL(2);
            else
                ADD_ALL(1);
#else
            if (LOOKS_FOR_NANS && odd[phase])
                ADD_ALL(0);
            else
                ADD_ALL(1);
#endif
            phase ^= 1;
        }
    }
#if IN_TREE
    if (!HAS_YOUNGEST || count.waiting) /* else it is the only one */
        EVERY_OUTPUT acc[i][j] = waiting.value[0][i][j];
    else
        EVERY_OUTPUT acc[i][j] = youngest[i][j];
#endif
    end_part(T, S, at, workspace, block, part, acc, &flag);
}
