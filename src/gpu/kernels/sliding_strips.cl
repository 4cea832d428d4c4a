/* Sums and products of floats over windows along two loops in the contract's order (docs/numerics.md, section 2), whose
 * outputs share the parts of their trees (src/cpu/sliding_strips.c): a block goes down a strip of OUT_COLUMNS pixels,
 * ROWS_OF_STEP rows a step; a thread has a number of a pixel of all parts. make_parts (sliding_strips.c) makes a step's
 * rows of the parts from those of the elements, which are read a step ahead. BEFORE: rows until the first output.
 * OF_ROWS: a bit for each window that moves down; the others move across. */
enum {
    NUMBERS = OUT_COLUMNS * INSIDE,
    STEPS = (BEFORE + OUT_ROWS + ROWS_OF_STEP - 1) / ROWS_OF_STEP
};

struct rows {
    struct raw r[ROWS_OF_STEP];
    int there[ROWS_OF_STEP];
};

/* This thread's next elements, of which *p is the first and `rows` are left; *p goes on to those behind. */
static inline void read_rows(struct tensors T, shape_ptr S, struct place *p, int rows, struct rows *x)
{
    const struct spot below = {0, 1, 0, 0};
    UNROLL
    for (int k = 0; k < ROWS_OF_STEP; k++) {
        x->there[k] = k < rows && inside_some(S, *p, OF_ROWS, 1);
        x->r[k] = no_raw();
        if (x->there[k])
            x->r[k] = fetch(T, *p);
        *p = cell_place(S, *p, below);
    }
}

#if HAS_COUNT
/* Whether element e of an output, counted down or across, is inside the windows that move so. */
static inline int is_position(shape_ptr S, struct place first, struct spot at, int e, const int down)
{
    at.row += down ? e * DOWN_GAP : 0;
    at.column += down ? 0 : e * ACROSS_GAP;
    return inside_some(S, cell_place(S, first, at), OF_ROWS, down);
}

static inline int positions_inside(shape_ptr S, struct place first, struct spot at, const int down)
{
    const int n = (int)S->size[down ? DOWN_REDUCED : ACROSS_REDUCED];
    int count = 0;
    NO_UNROLL
    for (int e = 0; e < n; e++)
        count += is_position(S, first, at, e, down);
    return count;
}

/* Whether that is so of all elements down of ROWS_OF_STEP outputs: of the first and the last one. */
static inline int is_whole_step(shape_ptr S, struct place first, struct spot at)
{
    struct spot last = at;
    last.row += ROWS_OF_STEP - 1;
    return is_position(S, first, at, 0, 1) && is_position(S, first, last, (int)S->size[DOWN_REDUCED] - 1, 1);
}
#endif

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(VALUE, cells, CELLS);
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const struct tile t = find_tile(S);
    const struct place first = kept_place(S, t.output);
    struct spot at = {0, 0, THREAD / INSIDE, THREAD % INSIDE};
    struct place p = cell_place(S, first, at);
    int left = THREAD < COLUMNS * INSIDE && at.column < t.columns && inside_some(S, p, OF_ROWS, 0) ? t.rows : 0;
    const int out_rows = THREAD >= NUMBERS || at.column >= t.out_columns ? 0
                         : t.out_rows < OUT_ROWS                         ? t.out_rows
                                                                         : OUT_ROWS;
#if HAS_COUNT
    const int across = out_rows ? positions_inside(S, first, at, 0) : 0;
#endif
    struct rows next;
    read_rows(T, S, &p, left, &next);
    struct kept kept = {{0}};
    int64_t o = t.output + moved(at, S->p[8], S->p[7], DEPTH, 1) - BEFORE * S->p[7];
    at.row = -BEFORE;
    NO_UNROLL
    for (int step = 0; step < STEPS; step++) {
        struct state x[ROWS_OF_STEP];
        UNROLL
        for (int k = 0; k < ROWS_OF_STEP; k++)
            x[k] = one_element(S, next.r[k], 0, next.there[k]);
        left -= ROWS_OF_STEP;
        read_rows(T, S, &p, left, &next);
        make_parts(cells, (uint32_t)step, x, &kept);
#if HAS_COUNT
        const int whole = is_whole_step(S, first, at);
#endif
        UNROLL
        for (int k = 0; k < ROWS_OF_STEP; k++) {
            if ((uint32_t)at.row < (uint32_t)out_rows) {
#if HAS_COUNT
                x[k].n = across * (whole ? (int)S->size[DOWN_REDUCED] : positions_inside(S, first, at, 1));
#endif
                finish_output(T, S, o, x[k], S->reduced_total);
            }
            at.row++;
            o += S->p[7];
        }
    }
}
