/* Columns whose rows begin anywhere, read in aligned vectors all the same. Where a row's first column is number `shift` of
 * its vector, a thread's value c belongs to column v * VECTOR + c - shift. Rows LANE_THREADS apart have the same shift
 * (LANE_THREADS elements are whole vectors), so a thread's lanes do; lanes of different shift meet in shared memory, by
 * column. A row costs 16 bytes a vector, and up to one vector more than it has.
 *
 * A thread has HELD lanes of a vector, PRESENT of which have elements, BATCH steps at once.
 *
 * p[0]: tiles of a column, p[1]: blocks that share them, p[2]: tiles of one block, p[4]: columns of a block, p[5]: blocks
 * side by side in a row, p[6], p[7]: where the operand's memory begins and ends, p[8]: blocks side by side in all, p[9]:
 * 2^16 / vectors of a row, rounded up.
 * workspace: two vectors, p[3] states for every column, tile by tile, then COUNTERS for every block side by side (parts.cl). */
enum {
    LAST_LANES = STATE_WORDS <= 2 ? (LANE_THREADS < 16 ? LANE_THREADS : 16) : (LANE_THREADS < 8 ? LANE_THREADS : 8)
};

/* What is joined in shared memory: sums of bytes stay narrow. */
#if BYTES
struct part {
    int r0;
};
static inline struct part joined(struct part a, struct part b)
{
    a.r0 += b.r0;
    return a;
}
#else
#define part state
#define joined combine
#endif

/* The only operand inside the reducers, and what its vectors are read as. */
#if ITEM
#define X(s)                     \
    typedef in##s##_t item;      \
    typedef struct taken packed; \
    enum { SLOT = s };
#else
#define X(s)                               \
    typedef in##s##_t item;                \
    typedef struct in##s##_vector packed;  \
    enum { SLOT = s };
#endif
FOR_MAP_INPUTS(X)
#undef X

/* A thread's vector: its column, its first element, the distance to the row of its next lane; where the operand's memory
 * begins and ends, and copies of the vectors that lie partly outside of it. */
struct slant {
    int column, own, v, shift, used;
    GLOBAL const item *at, *begin, *end;
    GLOBAL const packed *edges;
    int64_t step;
};

/* The first and the last vector of the operand's memory, which may lie partly outside of it, are read from copies. Every
 * block that may need one makes them, by its first threads. */
static inline void copy_edges(GLOBAL const item *begin, GLOBAL const item *end, GLOBAL packed *edges)
{
    for (int side = 0; side < 2; side++) {
        GLOBAL const item *at = side ? end - 1 : begin;
        at = at - (int)((size_t)at / sizeof(item) & (VECTOR - 1)) + THREAD;
        if (THREAD < VECTOR && at >= begin && at < end)
            ((GLOBAL item *)(edges + side))[THREAD] = *at;
    }
}

static inline struct taken fetch_slanted(struct slant const *w, GLOBAL const item *at, int edge)
{
    GLOBAL const packed *from = (GLOBAL const packed *)at;
    if (edge) {
        from = at < w->begin ? w->edges : from;
        from = at + VECTOR > w->end ? w->edges + 1 : from;
    }
#if ITEM
    return READ_VECTOR(from);
#else
    struct raws r;
    const packed v = READ_VECTOR(from);
    UNROLL
    for (int i = 0; i < VECTOR; i++) {
#define X(s) r.x##s[i] = v.v[i];
        FOR_MAP_INPUTS(X)
#undef X
    }
    return r;
#endif
}

/* Whether a vector of these columns may lie partly outside. */
static inline int at_edge(shape_ptr S, struct slant const *w, GLOBAL const item *first, int count)
{
    const int64_t all = (S->reduced_total - 1) * in_stride(S, SLOT, KEPT);
    return first + (all < 0 ? all : 0) < w->begin + VECTOR || first + (all > 0 ? all : 0) + count + VECTOR > w->end;
}

/* The thread's vector of a tile whose first element and column is at `first`, of which the block has `count` columns. */
static inline void begin_slant(struct slant *w, GLOBAL const item *first, int64_t stride, int count)
{
    GLOBAL const item *row = first + w->own * stride;
    w->shift = (int)((size_t)row / sizeof(item) & (VECTOR - 1));
    w->column = w->v * VECTOR - w->shift;
    w->at = row + w->column;
    w->step = LANE_THREADS * stride;
    w->used = w->own < LANE_THREADS && w->column < count;
}

/* The elements of step k into the thread's lane i. */
static inline void add_slanted(shape_ptr S, struct slant const *w, struct taken r, int64_t first, int k, int i, int present,
                               struct lane l[HELD][VECTOR])
{
    const struct weights weights = weights_of(k);
    UNROLL
    for (int c = 0; c < VECTOR; c++) {
#if BYTES /* any lane will do */
        l[0][c].r0 = FOLD_BYTES(l[0][c].r0, r.v[c / 4], (uint32_t)(present != 0) << 8 * (c % 4));
        continue;
#endif
        struct element x = map_element(one_taken(r, c));
        chain(S, &l[i][c], x, k, first + w->own + LANE_THREADS * i, weights, present);
    }
}

/* Step k: the loads first; at: where the first of them is, which is moved on. Of one step all but the last of a thread's
 * lanes have an element. */
static inline void slant_step(shape_ptr S, struct slant const *w, GLOBAL const item **at, int64_t first, int k, int n,
                              int edge, struct lane l[HELD][VECTOR])
{
    struct taken r[PRESENT];
    UNROLL
    for (int i = 0; i < PRESENT; i++) {
        const int e = k * LANES + w->own + LANE_THREADS * i;
        r[i] = no_taken();
        if (ONE_STEP) /* missing ones read the first: a condition would keep loads apart */
            r[i] = fetch_slanted(w, i < PRESENT - 1 || e < n ? *at : w->at, edge);
        else if (e < n)
            r[i] = fetch_slanted(w, *at, edge);
        *at += w->step;
    }
    LOADED();
    UNROLL
    for (int i = 0; i < PRESENT; i++) {
        const int e = k * LANES + w->own + LANE_THREADS * i;
        add_slanted(S, w, r[i], first, k, i, PRESENCE((ONE_STEP && i < PRESENT - 1) || e < n, 1), l);
    }
}

#if !ONE_STEP
/* Steps k ... end - 1, whole ones, BATCH at once and a multiple of that: those after them are loaded meanwhile. */
static inline void slant_batches(shape_ptr S, struct slant const *w, GLOBAL const item **at, int64_t first, int k, int end,
                                 struct lane l[HELD][VECTOR])
{
    struct taken r[BATCH][PRESENT];
    UNROLL
    for (int u = 0; u < BATCH; u++)
        UNROLL
        for (int i = 0; i < PRESENT; i++) {
            r[u][i] = fetch_slanted(w, *at, 0);
            *at += w->step;
        }
    LOADED();
    NO_UNROLL
    for (; k < end; k += BATCH)
        UNROLL
        for (int u = 0; u < BATCH; u++)
            UNROLL
            for (int i = 0; i < PRESENT; i++) {
                add_slanted(S, w, r[u][i], first, k + u, i, 1, l);
                if (k + BATCH < end) {
                    r[u][i] = fetch_slanted(w, *at, 0);
                    *at += w->step;
                }
                LOADED();
            }
}
#endif

/* The thread's lanes of a tile, joined as far as they are its own: s[0]. edge: vectors of its first and last rows may lie
 * partly outside; those of other rows do not, whose distance from these is a vector at least. */
static inline void slant_lanes(shape_ptr S, struct slant const *w, int64_t first, int n, int edge,
                               struct part s[HELD][VECTOR])
{
    struct lane l[HELD][VECTOR];
    GLOBAL const item *at = w->at;
    UNROLL
    for (int i = 0; i < HELD; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            l[i][c] = empty_lane();
#if ONE_STEP
    slant_step(S, w, &at, first, 0, n, edge, l);
#else
    int k = 0;
    if (edge)
        slant_step(S, w, &at, first, k++, n, 1, l);
    const int end = k + (n - edge - k * LANES) / LANES / BATCH * BATCH;
    if (k < end)
        slant_batches(S, w, &at, first, k, end, l);
    NO_UNROLL
    for (k = k < end ? end : k; k * LANES < n; k++)
        slant_step(S, w, &at, first, k, n, 1, l);
#endif
    UNROLL
    for (int i = 0; i < PRESENT; i++)
        UNROLL
        for (int c = 0; c < VECTOR; c++) {
#if BYTES
            s[i][c].r0 = l[i][c].r0;
#else
            s[i][c] = lane_state(S, l[i][c], first + w->own + LANE_THREADS * i, lane_count(n, w->own + LANE_THREADS * i));
#endif
        }
    UNROLL
    for (int reach = BYTES ? 0 : HELD / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < HELD / 2; i++)
            UNROLL
            for (int c = 0; c < VECTOR; c++)
                if (i < reach && i + reach < PRESENT)
                    s[i][c] = joined(s[i][c], s[i + reach][c]);
}

/* Where a column's part of a lane stands: with a gap after every vector, so that threads beside each other use other
 * banks. */
static inline int place_of(int lane, int pitch, int column)
{
    return lane * pitch + column + column / VECTOR;
}

static inline void keep_parts(struct slant const *w, struct part s[VECTOR], int count, int pitch,
                              SHARED_POINTER struct part *shared)
{
    if (w->column >= 0 && w->column + VECTOR <= count) {
        SHARED_POINTER struct part *to = shared + w->own * pitch + w->column + w->v - 1;
        UNROLL
        for (int c = 0; c < VECTOR; c++)
            to[c + (c >= w->shift)] = s[c];
        return;
    }
    UNROLL
    for (int c = 0; c < VECTOR; c++)
        if (w->column + c >= 0 && w->column + c < count)
            shared[place_of(w->own, pitch, w->column + c)] = s[c];
}

/* The halving tree over LANE_THREADS lanes of a column, its upper levels by all threads together. */
static inline void slant_levels(SHARED_POINTER struct part *shared, int pitch)
{
    NO_UNROLL
    for (int reach = LANE_THREADS / 2; reach >= LAST_LANES; reach /= 2) {
        NO_UNROLL
        for (int i = THREAD; i < reach * pitch; i += THREADS)
            shared[i] = joined(shared[i], shared[i + reach * pitch]);
        BARRIER();
    }
}

static inline struct state slant_column(SHARED_POINTER const struct part *shared, int pitch, int column)
{
    struct part s[LAST_LANES];
    UNROLL
    for (int i = 0; i < LAST_LANES; i++)
        s[i] = shared[place_of(i, pitch, column)];
    UNROLL
    for (int reach = LAST_LANES / 2; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < LAST_LANES / 2; i++)
            if (i < reach)
                s[i] = joined(s[i], s[i + reach]);
#if BYTES
    struct state whole;
    whole.r0 = s[0].r0;
    return whole;
#else
    return s[0];
#endif
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    SHARED ALIGNED(16) struct part shared[SHARED_PARTS]; /* then of states */
    SHARED int flag;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const number share = ONE_TILE ? 0 : (number)BLOCK / (number)S->p[8], block = (number)BLOCK - share * (number)S->p[8];
    const number row = block / (number)S->p[5];
    const int wide = (int)S->p[4], piece = (int)(block - row * (number)S->p[5]), pitch = wide + wide / VECTOR + 1;
    const int64_t length = S->size[KEPT - 1], columns = (int64_t)row * length + (int64_t)piece * wide;
    const int count = length - (int64_t)piece * wide < wide ? (int)(length - (int64_t)piece * wide) : wide;
    const int64_t tiles = ONE_TILE ? 1 : S->p[0], stride = in_stride(S, SLOT, KEPT);
    const int64_t end = ONE_TILE ? 1 : (share + 1) * S->p[2] < tiles ? (share + 1) * S->p[2] : tiles;
    GLOBAL packed *edges = (GLOBAL packed *)workspace;
    GLOBAL struct state *states = (GLOBAL struct state *)(edges + 2);
    GLOBAL const item *from;
    struct slant w;
    w.edges = edges;
#define X(s)                                             \
    from = T.in##s + kept_place(S, columns).i##s;        \
    w.begin = T.in##s + S->p[6];                         \
    w.end = T.in##s + S->p[7];
    FOR_MAP_INPUTS(X)
#undef X
    w.own = (int)((uint32_t)THREAD * (uint32_t)S->p[9] >> 16);
    w.v = THREAD - w.own * ((wide + 2 * (VECTOR - 1)) / VECTOR);
    const int edge = at_edge(S, &w, from, count);
    if (edge) {
        copy_edges(w.begin, w.end, edges);
        BARRIER();
    }
    for (int64_t tile = share * S->p[2]; tile < end; tile++) {
        const int64_t left = S->reduced_total - tile * TILE;
        const int n = ONE_TILE || left < TILE ? (int)left : TILE;
        begin_slant(&w, from + tile * TILE * stride, stride, count);
        if (w.used) {
            struct part s[HELD][VECTOR];
            if (ONE_STEP && !edge) /* then the compiler knows */
                slant_lanes(S, &w, tile * TILE, n, 0, s);
            else
                slant_lanes(S, &w, tile * TILE, n, edge, s);
            keep_parts(&w, s[0], count, pitch, shared);
        }
        BARRIER();
        slant_levels(shared, pitch);
        NO_UNROLL
        for (int c = THREAD; c < count; c += THREADS) {
            const struct state s = slant_column(shared, pitch, c);
            if (ONE_TILE)
                finish_output(T, S, columns + c, s, S->reduced_total);
            else
                states[tile * S->kept_total + columns + c] = s;
        }
        if (!ONE_TILE)
            BARRIER();
    }
#if !ONE_TILE
    join_columns(exchange_, T, S, states, columns, count, block, share, (SHARED_POINTER struct state *)shared, &flag);
#endif
}
