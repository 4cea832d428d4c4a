/* Contractions: out[m, n] = fold over k of x[m, k] o y[k, n]. A block computes ROWS x COLUMNS outputs, a thread
 * ROW_OWN x COLUMN_OWN of them, in registers. Both factors go through shared memory, STEP terms at a time: while one
 * tile is folded the next one is on its way.
 *
 * The sequence of terms is cut into runs, after which values are joined: IN_TREE the contract's chains and halving
 * tree, depth first, so that few values wait (src/term_order.c); else it is one run.
 *
 * p[2], p[4], p[5], p[6]: contract_parts.cl; p[3]: terms of a part (if not IN_TREE). The workspace begins with the table
 * of terms. FLAGGED: p[4] bytes before the flags of blocks that are to be computed at all.
 * TWICE: every tile is gone through twice (tile.cl).
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

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct spot_x spots_x[ROWS];
    SHARED struct spot_y spots_y[COLUMNS];
    SHARED struct sixteen shared_x[SIXTEENS(2 * STEP * PITCH_x * sizeof(value_t_x))];
    SHARED struct sixteen shared_y[SIXTEENS(2 * STEP * PITCH_y * sizeof(value_t_y))];
    SHARED int runs[2 * STEP], flag, odd;
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
    if (!((GLOBAL const int *)(workspace + S->p[4]))[flag_of(S, at)])
        return;
#endif
    struct raw raw_x[SLOTS_x], raw_y[SLOTS_y];
    acc_t acc[ROW_OWN][COLUMN_OWN];
    find_spots_x(S, move_place(S, no_place(), at.batch, 2), at.row, S->p[7] >> 32, spots_x);
    find_spots_y(S, move_place(S, no_place(), at.batch, 2), at.column, S->p[7] & 0xffffffff, spots_y);
    start_run(acc, first);
    if (THREAD == 0)
        odd = 0;
    BARRIER();
    int phase = 0;
    load_x(T, S, terms, spots_x, first, end, b.vectors != 0, raw_x);
    load_y(T, S, terms, spots_y, first, end, b.vectors != 0, raw_y);
    NO_UNROLL
    for (int t = first; t < end; t += STEP) {
        SHARED_POINTER value_t_x *const x = tile_x + phase * (STEP * PITCH_x);
        SHARED_POINTER value_t_y *const y = tile_y + phase * (STEP * PITCH_y);
        const int n = end - t < STEP ? end - t : STEP;
        const int not_finite = put_x(raw_x, x) | put_y(raw_y, y);
        if (LOOKS_FOR_NANS && not_finite)
            odd = 1;
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
            add_run(acc, x, y, from, to, t, 1);
            from = to;
            if (run % 16) {
                end_run(acc, youngest, &waiting, &count, run % 16 - 1);
                start_run(acc, 0);
            }
        }
#else
#define ADD(pass) add_run(acc, x, y, 0, n, t, pass)
#if TWICE
        int other = 0;
        LOOK_FIRST(acc, ADD, other);
        if (other)
            ADD(2);
        else
            ADD(1);
#else
        if (LOOKS_FOR_NANS && odd)
            ADD(0);
        else
            ADD(1);
#endif
#endif
        phase ^= 1;
    }
#if IN_TREE
    if (!HAS_YOUNGEST || count.waiting) /* else it is the only one */
        EVERY_OUTPUT acc[i][j] = waiting.value[0][i][j];
    else
        EVERY_OUTPUT acc[i][j] = youngest[i][j];
#endif
    end_part(T, S, at, workspace, block, part, acc, &flag);
}
