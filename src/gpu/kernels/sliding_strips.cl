/* Sums, products, moments and logarithms of sums of floats over windows along two loops in the contract's order
 * (docs/numerics.md, section 2), whose outputs share the parts of their trees (src/cpu/sliding_strips.c): a block goes
 * down a strip of OUT_COLUMNS pixels, ROWS_OF_STEP rows a step; a thread has a number of a pixel of all parts.
 * MAKE_PARTS (sliding_strips.c) makes a step's rows of the parts from those of the elements, which are read a step
 * ahead. BEFORE: rows until the first output. OF_ROWS: a bit for each window that moves down; the others move across.
 * CUTS: moments, which merge by how many elements parts have; outputs whose windows are cut then get their own tree, in
 * p[9] blocks before those of strips, CUT_BLOCKS a plane: they take longest.
 * IN_1: sums of logsumexp are in the unit 1 at first, and a block that meets an element that is not near 0 begins anew.
 * The finish part then reads no operand, which may be where the outputs are. */
enum {
    NUMBERS = OUT_COLUMNS * INSIDE,
    STEPS = (BEFORE + OUT_ROWS + ROWS_OF_STEP - 1) / ROWS_OF_STEP,
    FIELD_CELLS = CELLS / FIELDS
};

/* A part's state. */
struct held {
#define X(name, k) VALUE name;
    FOR_FIELDS(X)
#undef X
};

static inline struct held held_of(struct state s)
{
    struct held h = {0};
#define X(name, k) h.name = s.name;
    FOR_FIELDS(X)
#undef X
    return h;
}

static inline struct state state_held(struct held h)
{
    struct state s = state_identity();
#define X(name, k) s.name = h.name;
    FOR_FIELDS(X)
#undef X
    return s;
}

/* in_1, a constant: sums of logsumexp are in the unit 1. */
static inline struct held both_held(struct held a, int of_a, struct held b, int of_b, const int in_1)
{
    return held_of(merged(state_held(a), of_a, state_held(b), of_b, 1, in_1));
}
#define both(a, of_a, b, of_b) both_held(a, of_a, b, of_b, in_1)

static inline struct held taken(SHARED_POINTER const VALUE *c)
{
    struct held h = {0};
#define X(name, k) h.name = c[k * FIELD_CELLS];
    FOR_FIELDS(X)
#undef X
    return h;
}

static inline void put(SHARED_POINTER VALUE *c, struct held h)
{
#define X(name, k) c[k * FIELD_CELLS] = h.name;
    FOR_FIELDS(X)
#undef X
}

struct kept {
    KEPT_ROWS
};

/* cells: the thread's first one. */
static inline void make_parts(SHARED_POINTER VALUE *cells, uint32_t step, struct state x[ROWS_OF_STEP],
                              struct kept *kept, const int in_1)
{
    MAKE_PARTS
}

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

#if CUTS
/* Whether windows leave out elements of an output, down or across, in any channel. */
static inline int is_cut(shape_ptr S, struct place p, const int down)
{
    const int last = (int)S->size[down ? DOWN_REDUCED : ACROSS_REDUCED] - 1;
    int yes = 0;
    UNROLL
    for (int channel = 0; channel < INSIDE; channel += INSIDE > 1 ? INSIDE - 1 : 1) {
        const struct spot at = {0, 0, 0, channel};
        yes |= !is_position(S, p, at, 0, down) || !is_position(S, p, at, last, down);
    }
    return yes;
}

/* Which of some rows' or columns' outputs are not cut: `from` and what is behind the last one. */
struct range {
    int from, to;
};

static inline struct range uncut(shape_ptr S, int64_t output, int outputs, int64_t apart, const int down)
{
    struct range r = {0, outputs};
    NO_UNROLL
    while (r.from < r.to && is_cut(S, kept_place(S, output + r.from * apart), down))
        r.from++;
    NO_UNROLL
    while (r.from < r.to && is_cut(S, kept_place(S, output + (r.to - 1) * apart), down))
        r.to--;
    return r;
}

/* An output by itself: its lanes by their numbers' bits reversed, so that few states wait. */
static inline struct state fold_cut(struct tensors T, shape_ptr S, struct place first)
{
    struct state waiting[LANE_BITS + 1], s;
    NO_UNROLL
    for (int k = 0; k < 1 << LANE_BITS; k++) {
        int lane = 0, q = 0;
        UNROLL
        for (int bit = 0; bit < LANE_BITS; bit++)
            lane |= (k >> bit & 1) << (LANE_BITS - 1 - bit);
        s = state_identity();
        NO_UNROLL
        for (int e = lane; e < ELEMENTS_OF_WINDOW; e += 1 << LANE_BITS) {
            const struct spot at = {0, e / ALONG * DOWN_GAP, e % ALONG * ACROSS_GAP, 0};
            const struct place p = cell_place(S, first, at);
            if (inside(S, p)) {
                const struct state x = one_element(S, fetch(T, p), 0, 1);
                s = e == lane ? x : combine(s, x);
            }
        }
        NO_UNROLL
        for (; k >> q & 1; q++)
            s = combine(waiting[q], s);
        waiting[q] = s;
    }
    return s;
}

/* Outputs of a plane that are cut, rows of them before what is left of columns, as number `block` of CUT_BLOCKS. */
static inline void fold_cuts(struct tensors T, shape_ptr S, uint32_t block)
{
    const int64_t first = block / CUT_BLOCKS * S->p[8];
    const struct range down = uncut(S, first, HEIGHT, S->p[7], 1), across = uncut(S, first, WIDTH, DEPTH, 0);
    const int rows = down.to - down.from, columns = across.to - across.from, left = WIDTH - columns;
    const int64_t of_rows = (int64_t)(HEIGHT - rows) * WIDTH;
    NO_UNROLL
    for (int64_t n = block % CUT_BLOCKS * THREADS + THREAD; n < (of_rows + (int64_t)rows * left) * DEPTH;
         n += CUT_BLOCKS * THREADS) {
        const int64_t place = n / DEPTH, beside = place - of_rows;
        int64_t row = place / WIDTH, column = place % WIDTH;
        if (beside < 0) {
            row += row < down.from ? 0 : rows;
        } else {
            row = down.from + beside / left;
            column = beside % left;
            column += column < across.from ? 0 : columns;
        }
        const int64_t o = first + row * S->p[7] + column * DEPTH + n % DEPTH;
        finish_output(T, S, o, fold_cut(T, S, kept_place(S, o)), S->reduced_total);
    }
}
#else
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
#endif

/* A block's outputs; whether all elements that the thread has read are near 0, as those in the unit 1 have to be. */
static inline int fold_strip(struct tensors T, shape_ptr S, struct tile t, SHARED_POINTER VALUE *cells, const int in_1)
{
    const struct place first = kept_place(S, t.output);
    struct spot at = {0, 0, THREAD / INSIDE, THREAD % INSIDE};
    struct place p = cell_place(S, first, at);
    int left = THREAD < COLUMNS * INSIDE && at.column < t.columns && inside_some(S, p, OF_ROWS, 0) ? t.rows : 0;
    const int rows = t.out_rows < OUT_ROWS ? t.out_rows : OUT_ROWS;
    const int columns = t.out_columns < OUT_COLUMNS ? t.out_columns : OUT_COLUMNS;
#if CUTS
    const struct range down = uncut(S, t.output, rows, S->p[7], 1), across = uncut(S, t.output, columns, DEPTH, 0);
    const int from = down.from, out_rows = at.column >= across.from && at.column < across.to ? down.to - from : 0;
#else
    const int from = 0, out_rows = at.column < columns ? rows : 0;
#if HAS_COUNT
    const int inside_across = out_rows ? positions_inside(S, first, at, 0) : 0;
#endif
#endif
    struct rows next;
    read_rows(T, S, &p, left, &next);
    struct kept kept = {{{0}}};
    struct lane extents = empty_lane();
    const struct origins origins = no_origins();
    int64_t o = t.output + moved(at, S->p[8], S->p[7], DEPTH, 1) - BEFORE * S->p[7];
    at.row = -BEFORE;
    NO_UNROLL
    for (int step = 0; step < STEPS; step++) {
        struct state x[ROWS_OF_STEP];
        UNROLL
        for (int k = 0; k < ROWS_OF_STEP; k++)
            x[k] = in_1 ? one_near_0(S, next.r[k], 0, next.there[k])
                        : one_element(S, next.r[k], 0, CUTS || next.there[k]);
        UNROLL
        for (int k = 0; in_1 && k < ROWS_OF_STEP; k++)
            gather_extent(&extents, map_element(next.r[k]), next.there[k]);
        left -= ROWS_OF_STEP;
        read_rows(T, S, &p, left, &next);
        make_parts(cells + THREAD, (uint32_t)step, x, &kept, in_1);
#if HAS_COUNT && !CUTS
        const int all = is_whole_step(S, first, at);
#endif
        UNROLL
        for (int k = 0; k < ROWS_OF_STEP; k++) {
            if ((uint32_t)(at.row - from) < (uint32_t)out_rows) {
#if HAS_COUNT && CUTS
                x[k].n = S->reduced_total;
#elif HAS_COUNT
                x[k].n = inside_across * (all ? (int)S->size[DOWN_REDUCED] : positions_inside(S, first, at, 1));
#endif
                if (in_1)
                    settle_at(&x[k], &origins);
                finish_output(T, S, o, x[k], S->reduced_total);
            }
            at.row++;
            o += S->p[7];
        }
    }
    return extents_are_small(extents);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(VALUE, cells, CELLS);
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t cut_blocks = CUTS ? (uint32_t)S->p[9] : 0;
#if CUTS
    if ((uint32_t)BLOCK < cut_blocks) {
        fold_cuts(T, S, (uint32_t)BLOCK);
        return;
    }
#endif
    const struct tile t = find_tile(S, (uint32_t)BLOCK - cut_blocks);
#if IN_1
    const int near = fold_strip(T, S, t, cells, 1);
    BARRIER();
    if (!THREAD)
        cells[0] = 0;
    BARRIER();
    if (!near)
        cells[0] = 1;
    BARRIER();
    if (cells[0] == 0)
        return;
    BARRIER();
#endif
    fold_strip(T, S, t, cells, 0);
}
