/* Few columns that lie one beside the other, COLUMNS of them: the elements of a row of LANES follow each other in
 * memory, whatever column they are of, and are whole vectors. So a team's thread reads VECTOR of a step's elements, and
 * those in the same places of every other step: each of them is a lane of some column, chained in registers. The tree
 * over a column's lanes goes through shared memory, where lane l of column c is state l * COLUMNS + c.
 *
 * A block takes TEAMS tiles at a time. WHOLE_LANES: it has a lane of the sequence of tiles, as in tiles.cl: of a group of
 * TILE tiles every LANES-th. The block that arrives last joins the lanes of each group, and the groups. Else tiles are
 * dealt out one by one, and that block chains the lanes too.
 *
 * PICTURES (WHOLE_LANES, two kept loops): the same for each picture of a batch, by blocks of its own.
 *
 * Of a picture: p[0]: tiles; p[1]: blocks; p[2]: states in the workspace, COLUMNS of every block, or tile. After all of
 * these a counter each; p[3]: pictures. */
#if WHOLE_LANES
#define TILES_POINTER SHARED_POINTER
#define DONE_PLACE ((tile - w.begin) / LANES * COLUMNS + t)
#else
#define TILES_POINTER GLOBAL
#define DONE_PLACE (place_of_tile(tile) + t * FOUR)
#endif
enum {
    STEP = COLUMNS * LANES,
    TEAM = STEP / VECTOR,
    TEAMS = THREADS / TEAM,
    ROUND = BATCH * LANES, /* rows */
    JOINED = STATE_WORDS > 2 ? 4 : 8 /* states that a thread joins at a time */
};

/* Element number e of all, in the operands. */
static inline struct place flat_place(int64_t e)
{
    struct place p;
#define X(s) p.i##s = e;
    FOR_MAP_INPUTS(X)
#undef X
    p.none = 0;
    return p;
}

/* The first n of VECTOR elements from p on. */
static inline struct taken take_first(struct tensors T, struct place p, int n)
{
    struct taken r = no_taken();
    UNROLL
    for (int j = 0; j < VECTOR; j++)
        if (j < n) {
#if ITEM
#define X(s) r.v[j * ITEM / 4] |= word_of_element(T.in##s[p.i##s + j], j);
#else
#define X(s) r.x##s[j] = T.in##s[p.i##s + j];
#endif
            FOR_MAP_INPUTS(X)
#undef X
        }
    return r;
}

/* Of the tile whose first row is `first`, the thread's elements of step k. */
static inline struct place step_place(int64_t first, int k)
{
    return flat_place((first + k * LANES) * COLUMNS + THREAD % TEAM * VECTOR);
}

/* BATCH whole steps of a tile, from step k on. */
static inline void load_steps(struct tensors T, shape_ptr S, int64_t first, int k, struct taken r[BATCH])
{
    const struct place from = step_place(first, k);
    UNROLL
    for (int u = 0; u < BATCH; u++) {
        struct place p = from;
#define X(s) p.i##s += u * STEP;
        FOR_MAP_INPUTS(X)
#undef X
        r[u] = take(T, S, p, 1);
    }
}

/* One step into the lanes; the tile has n rows. */
static inline void add_step(shape_ptr S, int64_t first, int k, struct taken r, int full, int n, struct lane l[VECTOR])
{
    const struct weights w = weights_of(k);
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        const int lane = (THREAD % TEAM * VECTOR + j) / COLUMNS, present = PRESENCE(full || k * LANES + lane < n, 1);
        chain(S, &l[j], map_element(one_taken(r, j)), k, first + lane, w, present);
    }
}

/* The first `steps` steps of a tile, whole batches. r: the first of them; then those of the next tile, if it has a batch,
 * so that they are on their way while the tree is walked. */
static inline void whole_steps(struct tensors T, shape_ptr S, int64_t first, int64_t next, int steps, struct taken r[BATCH],
                               struct lane l[VECTOR])
{
    NO_UNROLL
    for (int k = 0; k < steps; k += BATCH) {
        LOADED_TOGETHER();
        UNROLL
        for (int u = 0; u < BATCH; u++)
            add_step(S, first, k + u, r[u], 1, TILE, l);
        if (k + BATCH < steps)
            load_steps(T, S, first, k + BATCH, r);
        else if (next >= 0)
            load_steps(T, S, next, 0, r);
    }
}

/* Stores the states of a tile's lanes, which has n elements. */
static inline void store_lanes(shape_ptr S, int64_t first, int n, const struct lane l[VECTOR],
                               SHARED_POINTER struct state *states)
{
    const int own = THREAD % TEAM * VECTOR;
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        const int lane = (own + j) / COLUMNS;
        states[own + j] = lane_state(S, l[j], first + lane, lane_count(n, lane));
    }
}

/* The halving tree over the lanes of every column, by a team; the results are the first states, each by the
 * thread of that number. */
static inline void columns_tree(SHARED_POINTER struct state *states)
{
    UNROLL
    for (int lanes = LANES; lanes > 1; lanes = lanes > JOINED ? lanes / JOINED : 1) {
        const int left = lanes > JOINED ? lanes / JOINED : 1, taken = lanes / left;
        BARRIER();
        for (int v = THREAD % TEAM; v < left * COLUMNS; v += TEAM) {
            struct state s[JOINED];
            UNROLL
            for (int i = 0; i < JOINED; i++)
                if (i < taken)
                    s[i] = states[v + i * left * COLUMNS];
            UNROLL
            for (int reach = JOINED / 2; reach; reach /= 2)
                UNROLL
                for (int i = 0; i < JOINED / 2; i++)
                    if (i < reach && reach < taken)
                        s[i] = combine(s[i], s[i + reach]);
            states[v] = s[0];
        }
    }
}

#if WHOLE_LANES
/* The first `count` lanes of every column from the workspace, and no more. */
static inline void take_lanes(SHARED_POINTER struct state *states, GLOBAL const struct state *from, int count)
{
    enum { BESIDE = VECTOR < 4 ? VECTOR : 4 };
    NO_UNROLL
    for (int first = THREAD % TEAM; first < STEP; first += BESIDE * TEAM) {
        struct state s[BESIDE];
        UNROLL
        for (int i = 0; i < BESIDE; i++) {
            s[i] = state_identity();
            if (first + i * TEAM < count * COLUMNS)
                s[i] = load_state(from + first + i * TEAM);
        }
        UNROLL
        for (int i = 0; i < BESIDE; i++)
            states[first + i * TEAM] = s[i];
    }
}
#else
/* States of a lane's tiles, four beside each other, which one access reads. */
enum { FOUR = 4, FOURS = TILE / LANES / FOUR, TOGETHER = FOURS / STATE_WORDS > 1 ? FOURS / STATE_WORDS : 1 };
struct ALIGNED(16) four {
    struct state s[FOUR];
};

/* Where a tile's state of column 0 is; those of other columns are FOUR away each. */
static inline int64_t place_of_tile(int tile)
{
    return ((int64_t)(tile / (FOUR * LANES)) * STEP + tile % LANES * COLUMNS) * FOUR + tile / LANES % FOUR;
}

/* The lanes of n tiles' states, TILE at most, of every column, by the whole block. (Behind a fence, so these are fresh.) */
static inline void chain_lanes(SHARED_POINTER struct state *states, GLOBAL const struct four *from, int n)
{
    NO_UNROLL
    for (int v = THREAD; v < STEP; v += THREADS) {
        const int lane = v / COLUMNS;
        struct state s = state_identity();
        NO_UNROLL
        for (int first = 0; first * FOUR * LANES < n; first += TOGETHER) {
            struct four next[TOGETHER];
            UNROLL
            for (int i = 0; i < TOGETHER; i++)
                if ((first + i) * FOUR * LANES < n)
                    next[i] = from[(first + i) * STEP + v];
            UNROLL
            for (int k = 0; k < TOGETHER * FOUR; k++)
                if ((first * FOUR + k) * LANES + lane < n)
                    s = combine(s, next[k / FOUR].s[k % FOUR]);
        }
        states[v] = s;
    }
}
#endif

/* The picture of the batch that the block works on. */
static inline int64_t picture_of(shape_ptr S)
{
    return PICTURES ? BLOCK / S->p[1] : 0;
}

/* The block's tiles: every `apart`-th, TEAMS of them at a time. */
struct share {
    int begin, end, apart;
};

static inline struct share block_share(shape_ptr S)
{
    const int tiles = (int)S->p[0], block = (int)(BLOCK - picture_of(S) * S->p[1]), group = block / LANES;
    struct share w;
    w.begin = WHOLE_LANES ? group * TILE + block % LANES : block;
    w.end = WHOLE_LANES && (group + 1) * TILE < tiles ? (group + 1) * TILE : tiles;
    w.apart = WHOLE_LANES ? LANES : (int)S->p[1];
    return w;
}

/* The states of the block's tiles: in `done`, one after the other, or of all in their order. */
static inline void block_rows(struct tensors T, shape_ptr S, struct share w, int vectors, SHARED_POINTER struct state *shared,
                              TILES_POINTER struct state *done)
{
    const int t = THREAD % TEAM, team = THREAD / TEAM;
    const int64_t rows = S->reduced_total, apart = (int64_t)TEAMS * w.apart * TILE;
    SHARED_POINTER struct state *const mine = shared + team * STEP;
    struct taken r[BATCH];
    int tile = w.begin + team * w.apart;
    if (vectors && tile < w.end && (int64_t)tile * TILE + ROUND <= rows)
        load_steps(T, S, (int64_t)tile * TILE, 0, r);
    for (int at = w.begin; at < w.end; at += TEAMS * w.apart, tile += TEAMS * w.apart) {
        const int64_t first = (int64_t)tile * TILE, next = first + apart;
        const int n = tile >= w.end ? 0 : rows - first < TILE ? (int)(rows - first) : TILE;
        const int steps = vectors ? n / ROUND * BATCH : 0;
        struct lane l[VECTOR];
        UNROLL
        for (int j = 0; j < VECTOR; j++)
            l[j] = empty_lane();
        if (steps)
            whole_steps(T, S, first, tile + TEAMS * w.apart < w.end && next + ROUND <= rows ? next : -1, steps, r, l);
        NO_UNROLL
        for (int i = steps; i * LANES < n; i++) /* rare, so it is short */
            add_step(S, first, i, take_first(T, step_place(first, i), (n - i * LANES) * COLUMNS - t * VECTOR), 0, n, l);
        store_lanes(S, first, n, l, mine);
        columns_tree(mine);
        if (t < COLUMNS && tile < w.end)
            done[DONE_PLACE] = mine[t];
        BARRIER();
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct state shared[TEAMS * STEP];
    SHARED struct state done[STEP]; /* of a block's tiles, then of the groups */
    SHARED int flag;
    shape_ptr S = SHAPE;
    const struct tensors T = TENSORS(b);
    struct tensors read = T;
    SHARED_POINTER struct state *const mine = shared + THREAD / TEAM * STEP;
    const int64_t picture = picture_of(S);
    GLOBAL struct state *const all_states = (GLOBAL struct state *)workspace, *const states = all_states + picture * S->p[2];
    const struct share w = block_share(S);
#if PICTURES
#define X(s) read.in##s += picture * in_stride(S, s, 0);
    FOR_MAP_INPUTS(X)
#undef X
#endif
    const int t = THREAD % TEAM;
#if WHOLE_LANES
    const int count = (int)S->p[1], team = THREAD / TEAM, groups = (count + LANES - 1) / LANES;
    block_rows(read, S, w, b.vectors != 0, shared, done);
    if (THREAD < COLUMNS) {
        struct state s = done[THREAD];
        for (int k = 1; k < (w.end - w.begin + LANES - 1) / LANES; k++)
            s = combine(s, done[k * COLUMNS + THREAD]);
        states[(BLOCK - picture * count) * COLUMNS + THREAD] = s;
    }
#else
    const int count = (int)S->p[0], groups = (count + TILE - 1) / TILE;
    block_rows(read, S, w, b.vectors != 0, shared, states);
#endif
    if (!last_to_arrive((GLOBAL uint32_t *)(all_states + S->p[3] * S->p[2]) + picture, S->p[1], &flag))
        return;
#if WHOLE_LANES
    for (int first = 0; first < groups; first += TEAMS) {
        const int g = first + team, left = g < groups ? count - g * LANES : 0;
        take_lanes(mine, states + (left > 0 ? (int64_t)g * STEP : 0), left < LANES ? left : LANES);
        columns_tree(mine);
        if (t < COLUMNS && g < groups)
            done[g * COLUMNS + t] = mine[t];
        BARRIER();
    }
#else
    for (int g = 0; g < groups; g++) {
        const int left = count - g * TILE;
        chain_lanes(shared, (GLOBAL const struct four *)states + (int64_t)g * FOURS * STEP, left < TILE ? left : TILE);
        columns_tree(mine);
        if (THREAD < COLUMNS)
            done[g * COLUMNS + THREAD] = shared[THREAD];
        BARRIER();
    }
#endif
    for (int v = t; v < STEP; v += TEAM)
        mine[v] = v < groups * COLUMNS ? done[v] : state_identity();
    columns_tree(mine);
    if (THREAD < COLUMNS)
        finish_output(T, S, picture * COLUMNS + THREAD, shared[THREAD], S->reduced_total);
}
