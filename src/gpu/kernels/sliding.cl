/* What kernels of windows that overlap along one loop, or two, share (sliding_stages.cl, sliding_tree.cl): a block has
 * PLANES x ROWS x COLUMNS positions of windows' elements, INSIDE channels of each, as cells in shared memory, one after
 * the other.
 *
 * p[0], p[1], p[2]: blocks along the channels, the columns, and the rows. p[3]: planes. p[4], p[5], p[6]: rows,
 * columns and channels of outputs. p[7], p[8]: outputs of a row, and of a plane. */
enum {
    PITCH = COLUMNS * INSIDE,
    POSITIONS = PLANES * ROWS * PITCH,
    AT_ONCE = 8
};

#define HEIGHT (HAS_ROWS ? (int)S->p[4] : 1)
#define WIDTH ((int)S->p[5])
#define DEPTH (HAS_CHANNELS ? (int)S->p[6] : 1)

/* Where a block begins: its first output, and how many planes, rows, columns of positions and channels there are from
 * there. */
struct tile {
    int64_t output;
    int planes, rows, columns, channels, out_rows, out_columns;
};

/* Positions of n outputs' windows. */
static inline int positions(int n, int step, int elements, int gap)
{
    return (n - 1) * step + (elements - 1) * gap + 1;
}

static inline struct tile find_tile(shape_ptr S, uint32_t block)
{
    struct tile t;
    const uint32_t of_columns = block / (uint32_t)S->p[0], of_rows = of_columns / (uint32_t)S->p[1];
    const uint32_t of_planes = of_rows / (uint32_t)S->p[2];
    const int channel = (int)(block % (uint32_t)S->p[0]) * INSIDE;
    const int column = (int)(of_columns - of_rows * (uint32_t)S->p[1]) * OUT_COLUMNS;
    const int row = (int)(of_rows - of_planes * (uint32_t)S->p[2]) * OUT_ROWS;
    const int64_t plane = (int64_t)of_planes * PLANES;
    t.output = ((plane * HEIGHT + row) * WIDTH + column) * DEPTH + channel;
    t.planes = S->p[3] - plane < PLANES ? (int)(S->p[3] - plane) : PLANES;
    t.out_rows = HEIGHT - row;
    t.out_columns = WIDTH - column;
    t.rows = HAS_ROWS ? positions(t.out_rows, DOWN_STEP, (int)S->size[DOWN_REDUCED], DOWN_GAP) : 1;
    t.columns = positions(t.out_columns, ACROSS_STEP, (int)S->size[ACROSS_REDUCED], ACROSS_GAP);
    t.channels = DEPTH - channel;
    return t;
}

/* Numbers within a tile: 32 bits where all fit. */
#if SHORT_OFFSETS
typedef int offset;
#else
typedef int64_t offset;
#endif

/* A position of a tile, or an output. */
struct spot {
    int plane, row, column, channel;
};

static inline struct spot spot_of(int e, const int rows, const int columns)
{
    struct spot at;
    at.channel = e % INSIDE;
    e /= INSIDE;
    at.column = HAS_ROWS || PLANES > 1 ? e % columns : e;
    e = HAS_ROWS || PLANES > 1 ? e / columns : 0;
    at.row = HAS_ROWS && PLANES > 1 ? e % rows : HAS_ROWS ? e : 0;
    at.plane = PLANES == 1 ? 0 : HAS_ROWS ? e / rows : e;
    return at;
}

enum {
    ROW_LOOP = DOWN_GAP > 1 ? DOWN_LOOP : DOWN_REDUCED,
    COLUMN_LOOP = ACROSS_GAP > 1 ? ACROSS_LOOP : ACROSS_REDUCED
};

/* How far a position is from the tile's first one, by what a step along each loop moves. */
static inline offset moved(struct spot at, int64_t planes, int64_t rows, int64_t columns, int64_t channels)
{
    return (PLANES > 1 ? at.plane * (offset)planes : 0) + (HAS_ROWS ? at.row * (offset)rows : 0) +
           at.column * (offset)columns + (HAS_CHANNELS ? at.channel * (offset)channels : 0);
}

static inline struct place cell_place(shape_ptr S, struct place p, struct spot at)
{
#define X(s)                                                                                                     \
    p.i##s += moved(at, in_stride(S, s, 0), in_stride(S, s, ROW_LOOP), in_stride(S, s, COLUMN_LOOP),             \
                    in_stride(S, s, CHANNEL_LOOP));
    FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
    UNROLL
    for (int w = 0; w < WINDOWS; w++)
        p.window[w] += (WINDOW)moved(at, window_step(S, w, 0), window_step(S, w, ROW_LOOP),
                                     window_step(S, w, COLUMN_LOOP), window_step(S, w, CHANNEL_LOOP));
#endif
    return p;
}

/* Whether all positions of a tile are there, inside all windows: what moves those is least and greatest at corners. */
static inline int is_whole(shape_ptr S, struct tile t, struct place first)
{
    int yes = t.planes >= PLANES && t.rows >= ROWS && t.columns >= COLUMNS && t.channels >= INSIDE;
    UNROLL
    for (int corner = 0; corner < 16; corner++) {
        struct spot at;
        at.plane = corner & 1 ? PLANES - 1 : 0;
        at.row = corner & 2 ? ROWS - 1 : 0;
        at.column = corner & 4 ? COLUMNS - 1 : 0;
        at.channel = corner & 8 ? INSIDE - 1 : 0;
        yes = yes && inside(S, cell_place(S, first, at));
    }
    return yes;
}

/* A cell: a state, or (SIMPLE) the only reducer's value of 32 bits, and how many elements it has. */
#if SIMPLE
typedef struct {
    VALUE r0;
#if HAS_COUNT
    int n;
#endif
} cell;

static inline cell joined(cell a, int of_a, cell b, int of_b)
{
    a.r0 = JOINED(a.r0, b.r0);
#if HAS_COUNT
    a.n += b.n;
#endif
    return a;
}
#else
typedef struct state cell;
#define joined(a, of_a, b, of_b) merged(a, of_a, b, of_b, 1, 0)
#endif

static inline cell cell_of(shape_ptr S, struct raw r, int present)
{
#if NARROW
    struct lane l = empty_lane();
    chain(S, &l, map_element(r), 0, 0, weights_of(0), present);
#else
    const struct state l = one_element(S, r, 0, present);
#endif
#if SIMPLE
    cell c;
    c.r0 = l.r0;
#if HAS_COUNT
    c.n = present;
#endif
    return c;
#else
    return l;
#endif
}

static inline struct state state_of(shape_ptr S, cell c)
{
#if NARROW /* extremes of nothing are another value as a state than as a lane */
    struct lane l = empty_lane();
    const VALUE nothing = l.r0;
    l.r0 = c.r0;
    l.n = c.r0 != nothing;
#if HAS_COUNT
    l.n = c.n;
#endif
    return lane_state(S, l, 0, 1);
#elif SIMPLE
    struct state s = state_identity();
    s.r0 = c.r0;
#if HAS_COUNT
    s.n = c.n;
#endif
    return s;
#else
    return c;
#endif
}

/* Cells are read a thread apart, so that memory is read in order. whole: a constant, is_whole. */
static inline void read_those(struct tensors T, shape_ptr S, struct tile t, struct place first, const int whole,
                              SHARED_POINTER cell *cells)
{
    NO_UNROLL
    for (int from = THREAD; from < POSITIONS; from += AT_ONCE * THREADS) {
        struct raw r[AT_ONCE];
        int there[AT_ONCE];
        UNROLL
        for (int i = 0; i < AT_ONCE; i++) {
            const int e = from + i * THREADS;
            const struct spot at = spot_of(e, ROWS, COLUMNS);
            const struct place p = cell_place(S, first, at);
            there[i] = e < POSITIONS;
            if (!whole)
                there[i] = there[i] && at.plane < t.planes && at.row < t.rows && at.column < t.columns &&
                           at.channel < t.channels && inside(S, p);
            r[i] = no_raw();
            if (there[i])
                r[i] = fetch(T, p);
        }
        LOADED();
        UNROLL
        for (int i = 0; i < AT_ONCE; i++)
            if (from + i * THREADS < POSITIONS)
                cells[from + i * THREADS] = cell_of(S, r[i], whole || there[i]);
    }
}

static inline void read_cells(struct tensors T, shape_ptr S, struct tile t, SHARED_POINTER cell *cells)
{
    const struct place first = kept_place(S, t.output);
    if (is_whole(S, t, first))
        read_those(T, S, t, first, 1, cells);
    else
        read_those(T, S, t, first, 0, cells);
    BARRIER();
}

/* Finishes the output there, if it is. */
static inline void finish_spot(struct tensors T, shape_ptr S, struct tile t, struct spot at, cell c)
{
    if (at.plane < t.planes && at.row < t.out_rows && at.column < t.out_columns && at.channel < t.channels)
        finish_output(T, S, t.output + moved(at, S->p[8], S->p[7], DEPTH, 1), state_of(S, c), S->reduced_total);
}

/* The cell of an output's first element. */
static inline int first_cell(struct spot at)
{
    return ((at.plane * ROWS + at.row * DOWN_STEP) * COLUMNS + at.column * ACROSS_STEP) * INSIDE + at.channel;
}
