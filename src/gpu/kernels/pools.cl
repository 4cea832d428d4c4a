/* Outputs of ROWS x ALONG elements in rows of one operand, there GAP apart: pools and other windows. Neighbours along
 * the last loop are APART elements apart, those along the loop before it BELOW rows. A thread takes OUTS rows of VECTOR
 * outputs, and reads what they share once: of every line COLUMNS elements, those from number LEAD on in CHUNKS aligned
 * ones of CHUNK elements. Where the tensor begins so that these are not aligned, it puts them together from elements
 * (BY_ELEMENTS; bytes by words, IN_WORD of them), or takes its outputs one by one. PIXEL > 1: neighbours are pixels of
 * so many channels, the last loop, and a thread's rows have GROUPS vectors, of whole pixels. The tree over an output's
 * elements is solve_patches.c's. ANY_ORDER: they are one lane, in which short integers stay short, or (SHARES_COLUMNS)
 * neighbours share what becomes of their columns.
 * TELLS_WHOLE: threads to which nothing is outside have a tree of their own, whose numbers of elements are constants.
 * Exponentials of logsumexp are shared where all elements are near 0; else a thread takes its outputs one by one.
 *
 * OF_COLUMNS: a bit for each window that moves along the lines; the others move from line to line.
 * p[0], p[1]: threads of a row of outputs, and the divisor; the last one may have (SOME_COLUMNS) fewer than others.
 * p[2], p[3]: those of a column, and the divisor, where the last one may have (SOME_ROWS) fewer than OUTS. */
#define PLACE_OF(v) ((v) / PIXEL * APART + (v) % PIXEL)

enum {
    SPAN = GROUPS * VECTOR,
    ACROSS_LOOP = KEPT - 1 - (PIXEL > 1),
    COLUMNS = PLACE_OF(SPAN - 1) + (ALONG - 1) * GAP + 1,
    LINES = (OUTS - 1) * BELOW + ROWS,
    CHUNKS = (COLUMNS - LEAD) / CHUNK,
    BEHIND = LEAD + CHUNKS * CHUNK
};

/* A union costs registers where words are not wanted. */
#if IN_WORD > 1
#define CHUNK_OF(item, name) \
    typedef union ALIGNED(CHUNK * sizeof(item)) { item v[CHUNK]; uint32_t word[CHUNK / IN_WORD]; } name;
#else
#define CHUNK_OF(item, name) typedef struct ALIGNED(CHUNK * sizeof(item)) { item v[CHUNK]; } name;
#endif

#define X(s)                                                    \
    typedef in##s##_t item;                                     \
    CHUNK_OF(in##s##_t, chunk_t)                                \
    static inline struct raw raw_of(item x)                     \
    {                                                           \
        struct raw r;                                           \
        r.x##s = x;                                             \
        r.none = 0;                                             \
        return r;                                               \
    }                                                           \
    static inline GLOBAL const item *address(struct tensors T, struct place p) \
    {                                                           \
        return T.in##s + p.i##s;                                \
    }
FOR_MAP_INPUTS(X)
#undef X

static inline struct place moved(shape_ptr S, struct place p, int line, int column)
{
#define X(s) p.i##s += (REDUCED > 1 ? line * in_stride(S, s, KEPT) : 0) + column;
    FOR_MAP_INPUTS(X)
#undef X
#if WINDOWS
    UNROLL
    for (int w = 0; w < WINDOWS; w++)
        p.window[w] += OF_COLUMNS >> w & 1 ? column / PIXEL * (window_step(S, w, LOOPS - 1) / (GAP / PIXEL))
                                           : line * window_step(S, w, KEPT);
#endif
    return p;
}

static inline int lines_there(const int there[ROWS])
{
    int n = 0;
    UNROLL
    for (int l = 0; l < ROWS; l++)
        n += there[l];
    return n;
}

static inline int columns_there(const int there[(ALONG - 1) * GAP + 1])
{
    int n = 0;
    UNROLL
    for (int j = 0; j < ALONG; j++)
        n += there[j * GAP];
    return n;
}

static inline int is_whole(const int line_there[LINES], const int column_there[COLUMNS])
{
    int yes = 1;
    UNROLL
    for (int l = 0; l < LINES; l++)
        yes &= line_there[l];
    UNROLL
    for (int c = 0; c < COLUMNS; c++)
        yes &= column_there[c];
    return yes;
}

/* One output, wherever its elements are. */
static inline void fold_one(struct tensors T, shape_ptr S, int64_t o)
{
    const struct place start = kept_place(S, o);
    struct raw r[ELEMENTS];
    struct state s[ELEMENTS];
    int there[ELEMENTS];
    UNROLL
    for (int e = 0; e < ELEMENTS; e++) {
        const struct place p = moved(S, start, e / ALONG, e % ALONG * GAP);
        there[e] = inside(S, p);
        if (there[e])
            r[e] = fetch(T, p);
    }
    UNROLL
    for (int e = 0; e < ELEMENTS; e++)
        s[e] = one_element(S, r[e], e, there[e]);
    finish_output(T, S, o, tree(s, !WINDOWS, 0), ELEMENTS);
}

static inline int is_aligned(GLOBAL const item *x)
{
    return (size_t)x % sizeof(chunk_t) == 0;
}

static inline int is_line_there(shape_ptr S, struct place start, int line, int left)
{
    return (!SOME_ROWS || line < (left - 1) * BELOW + ROWS) && inside_some(S, moved(S, start, line, 0), OF_COLUMNS, 0);
}

#if BY_ELEMENTS
/* A chunk put together, of bytes by words: apart they would be a register each. */
static inline chunk_t assembled(GLOBAL const item *from)
{
    chunk_t chunk;
    UNROLL
    for (int w = 0; w < CHUNK / IN_WORD; w++) {
#if IN_WORD > 1
        chunk.word[w] = 0;
        UNROLL
        for (int i = 0; i < IN_WORD; i++)
            chunk.word[w] |= (uint32_t)(uint8_t)from[w * IN_WORD + i] << i * 8;
#else
        chunk.v[w] = from[w];
#endif
    }
    return chunk;
}

/* The lines that are there, without the elements outside. */
static inline void read_lines(struct tensors T, shape_ptr S, struct place start, int aligned,
                              const int line_there[LINES], const int column_there[COLUMNS], item x[LINES][COLUMNS],
                              chunk_t chunks[LINES][CHUNKS + 1])
{
    UNROLL
    for (int l = 0; l < LINES; l++) {
        if (!line_there[l])
            continue;
        GLOBAL const item *const line = address(T, moved(S, start, l, 0));
        UNROLL
        for (int c = 0; c < COLUMNS; c++)
            if ((c < LEAD || c >= BEHIND) && column_there[c])
                x[l][c] = line[c];
        UNROLL
        for (int k = 0; k < CHUNKS; k++)
            if (aligned)
                chunks[l][k] = *(GLOBAL const chunk_t *)(line + LEAD + k * CHUNK);
            else
                chunks[l][k] = assembled(line + LEAD + k * CHUNK);
    }
}
#endif

static inline void read_shared(struct tensors T, shape_ptr S, struct place start, int left,
                               const int column_there[COLUMNS], int line_there[LINES], item x[LINES][COLUMNS])
{
#if BY_ELEMENTS
    chunk_t chunks[LINES][CHUNKS + 1];
    UNROLL
    for (int l = 0; l < LINES; l++)
        line_there[l] = is_line_there(S, start, l, left);
    if (is_aligned(address(T, moved(S, start, 0, LEAD))))
        read_lines(T, S, start, 1, line_there, column_there, x, chunks);
    else
        read_lines(T, S, start, 0, line_there, column_there, x, chunks);
    UNROLL
    for (int l = 0; l < LINES; l++)
        UNROLL
        for (int c = LEAD; c < BEHIND; c++) /* behind all branches: of bytes words come from there */
            x[l][c] = chunks[l][(c - LEAD) / CHUNK].v[(c - LEAD) % CHUNK];
#else
    UNROLL
    for (int l = 0; l < LINES; l++) {
        line_there[l] = is_line_there(S, start, l, left);
        GLOBAL const item *const line = address(T, moved(S, start, l, 0));
        UNROLL
        for (int c = 0; c < COLUMNS; c++)
            if ((c < LEAD || c >= BEHIND) && (line_there[l] & column_there[c]))
                x[l][c] = line[c];
        UNROLL
        for (int k = 0; k < CHUNKS; k++)
            if (line_there[l]) {
                const chunk_t v = *(GLOBAL const chunk_t *)(line + LEAD + k * CHUNK);
                UNROLL
                for (int c = 0; c < CHUNK; c++)
                    x[l][LEAD + k * CHUNK + c] = v.v[c];
            }
    }
#endif
}

/* whole, a constant: every element that the thread has read is there. */
static inline void fold_shared(struct tensors T, shape_ptr S, int64_t first, int64_t across, int left, int whole,
                               const int line_there[LINES], const int column_there[COLUMNS], item x[LINES][COLUMNS])
{
    const struct origins in_1 = no_origins();
    UNROLL
    for (int k = 0; k < OUTS; k++) {
#if SHARES_COLUMNS
        struct state columns[COLUMNS];
        UNROLL
        for (int c = 0; c < COLUMNS; c++)
            UNROLL
            for (int i = 0; i < ROWS; i++) {
                const int l = k * BELOW + i;
                const struct state s = one_element(S, raw_of(x[l][c]), 0, whole || (line_there[l] & column_there[c]));
                columns[c] = i ? combine(columns[c], s) : s;
            }
#endif
        UNROLL
        for (int g = 0; g < GROUPS; g++) {
            struct state y[VECTOR];
            UNROLL
            for (int v = 0; v < VECTOR; v++) {
                const int place = PLACE_OF(g * VECTOR + v);
#if SHARES_COLUMNS
                y[v] = columns[place];
                UNROLL
                for (int j = 1; j < ALONG; j++)
                    y[v] = combine(y[v], columns[place + j * GAP]);
#else
                struct state s[ELEMENTS];
                struct lane all = empty_lane();
                UNROLL
                for (int e = 0; e < ELEMENTS; e++) {
                    const int l = k * BELOW + e / ALONG, c = place + e % ALONG * GAP;
                    const int present = whole || (line_there[l] & column_there[c]);
                    if (ANY_ORDER)
                        chain(S, &all, map_element(raw_of(x[l][c])), e, 0, weights_of(e), present);
                    else if (LOGSUMS)
                        s[e] = one_near_0(S, raw_of(x[l][c]), e, present);
                    else
                        s[e] = one_element(S, raw_of(x[l][c]), e, present);
                }
                y[v] = ANY_ORDER ? lane_state(S, all, 0, ELEMENTS) : tree(s, whole, 1);
                if (LOGSUMS)
                    settle_at(&y[v], &in_1);
#endif
#if HAS_COUNT /* the tree's counts are not computed then, but for moments */
                y[v].n = whole ? ELEMENTS : lines_there(line_there + k * BELOW) * columns_there(column_there + place);
#endif
            }
            if (k < left)
                finish_vector(T, S, first + k * across + g * VECTOR, y);
        }
    }
}

/* Whether the sums of what the thread has read may be in the unit 1. */
static inline int are_near_0(const int line_there[LINES], const int column_there[COLUMNS], item x[LINES][COLUMNS])
{
    struct lane extents = empty_lane();
    UNROLL
    for (int l = 0; l < LINES; l++)
        UNROLL
        for (int c = 0; c < COLUMNS; c++)
            gather_extent(&extents, map_element(raw_of(x[l][c])), line_there[l] & column_there[c]);
    return extents_are_small(extents);
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const uint32_t own = (uint32_t)BLOCK * THREADS + THREAD, block = divide_by(S->p[1], own);
    const uint32_t plane = SOME_ROWS ? divide_by(S->p[3], block) : 0, row = (block - plane * (uint32_t)S->p[2]) * OUTS;
    const int64_t height = SOME_ROWS ? S->size[SOME_ROWS ? ACROSS_LOOP - 1 : 0] : 0;
    const int left = SOME_ROWS ? (int)(height - row) : OUTS;
    const int64_t across = S->size[ACROSS_LOOP] * PIXEL;
    const uint32_t column = (own - block * (uint32_t)S->p[0]) * SPAN;
    const int64_t first = (plane * height + row) * across + column;
    if (first >= S->kept_total)
        return;
    const struct place start = kept_place(S, first);
    int line_there[LINES], column_there[COLUMNS];
    item x[LINES][COLUMNS];
    UNROLL
    for (int c = 0; c < COLUMNS; c++) /* those of chunks are, where we go on */
        column_there[c] = (c >= LEAD && c < BEHIND) || inside_some(S, moved(S, start, 0, c), OF_COLUMNS, 1);
    int alone = (SOME_COLUMNS && column + SPAN > across) ||
                (!BY_ELEMENTS && CHUNK > 1 && !is_aligned(address(T, moved(S, start, 0, LEAD)))) ||
                !inside_some(S, moved(S, start, 0, LEAD), OF_COLUMNS, 1) ||
                !inside_some(S, moved(S, start, 0, BEHIND - 1), OF_COLUMNS, 1);
    if (!alone) {
        read_shared(T, S, start, left, column_there, line_there, x);
        LOADED();
        alone = LOGSUMS && !are_near_0(line_there, column_there, x);
    }
    if (alone) {
        NO_UNROLL
        for (int k = 0; k < OUTS * SPAN; k++)
            if (k / SPAN < left && column + k % SPAN < across)
                fold_one(T, S, first + k / SPAN * across + k % SPAN);
        return;
    }
    if (TELLS_WHOLE && is_whole(line_there, column_there))
        fold_shared(T, S, first, across, left, 1, line_there, column_there, x);
    else
        fold_shared(T, S, first, across, left, 0, line_there, column_there, x);
}
