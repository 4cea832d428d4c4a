/* out[m, n] = sum over k of x[m, k] y[k, n] on tensor cores, in the order of their instruction (tensor_mma.cu). A block
 * computes ROWS x COLUMNS outputs, WARPS_DOWN x WARPS_RIGHT warps a part each. Tiles of both factors go through STAGES
 * places of shared memory, by copies that pass no registers: while one tile is multiplied the next ones come.
 *
 * f32: THREE products of numbers of 11 bits, each factor being the sum of two such (Ootomo and Yokota, Recovering single
 * precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance, sections 3 and 4): x y =
 * xh yh + (xh yl + xl yh), what is left out is below 2^-22 of it. As the instruction truncates its sums, those of the
 * great products of a tile are rounded to nearest into the block's. Sums of the small ones stay apart to the end: where
 * the great one is not finite they do not count (inf 0 would be one of them). Else ONE product of factors rounded to 11
 * bits.
 *
 * EVEN_STEPS: whole tiles of terms lie in one run of the innermost reduced loop, so copies move on by a distance.
 *
 * p[0], p[1]: blocks along rows and columns; p[2]: parts of the terms, a block each: a cluster (CLUSTER = p[2]), or joined by the last one; p[3]: terms of a part; p[4]: bytes
 * of the parts' sums in the workspace, before their counters; p[7]: rows * 2^32 + columns.
 * Cost of a term of a block: (ROWS + COLUMNS) ITEM bytes from the cache, and as many into the warps' registers times
 * the warps beside and below each other; ROWS COLUMNS multiplications (times 3). */
/* Half of the last place is added to x's size; the bits behind the 11 are the instruction's to ignore. A NaN is kept from
 * becoming something else by being one with few bits first: two minima, which take fewer registers than a comparison. */
static inline uint32_t nearest_11_bits(uint32_t x)
{
    const int32_t above = (int32_t)x < 0x7fc00000 ? (int32_t)x : 0x7fc00000;
    return ((uint32_t)above < 0xffc00000u ? (uint32_t)above : 0xffc00000u) + 0x1000u;
}

/* x becomes its upper part; returns the lower one. */
static inline uint32_t split_off(uint32_t *x)
{
    const uint32_t upper = nearest_11_bits(*x) & 0xffffe000u;
    const float rest = mf_bits_f32(*x) - mf_bits_f32(upper);
    *x = upper;
    return mf_f32_bits(rest);
}

#define EVERY_SUM                                \
    UNROLL                                       \
    for (int i = 0; i < DOWN; i++)               \
        UNROLL                                   \
        for (int j = 0; j < RIGHT; j++)          \
            UNROLL                               \
            for (int e = 0; e < 4; e++)

/* c (fresh: nothing) and the products of 16 rows and 8 columns. */
static inline void multiply_words(MMA_TYPE mma, sum_t c[4], const uint32_t x[4], const uint32_t y[2], int fresh)
{
    if (fresh)
        MMA_NEW(mma, c, x[0], x[1], x[2], x[3], y[0], y[1]);
    else
        MMA(mma, c, x[0], x[1], x[2], x[3], y[0], y[1]);
}

#if PRODUCTS == 3
enum { SMALL = RIGHT };
/* Adds the products of one tile to the warp's sums: the great ones, and behind them the small ones. */
static inline void multiply_tile(MMA_TYPE mma, SHARED_POINTER const char *tile, int down, int right,
                                 sum_t sum[DOWN][2 * RIGHT][4])
{
    uint32_t y[DEPTHS][RIGHT / 2][4], y_rest[DEPTHS][RIGHT / 2][4];
    UNROLL
    for (int d = 0; d < DEPTHS; d++)
        UNROLL
        for (int j = 0; j < RIGHT / 2; j++) {
            take_y(tile + X_BYTES, right + 16 * j, d, 0, y[d][j]);
            UNROLL for (int e = 0; e < 4; e++) y_rest[d][j][e] = split_off(&y[d][j][e]);
        }
    UNROLL
    for (int i = 0; i < DOWN; i++) {
        sum_t great[RIGHT][4];
        UNROLL
        for (int d = 0; d < DEPTHS; d++) {
            uint32_t x[4], x_rest[4];
            take_x(tile, down + 16 * i, d, 1, x);
            UNROLL for (int e = 0; e < 4; e++) x_rest[e] = split_off(&x[e]);
            UNROLL
            for (int j = 0; j < RIGHT; j++) {
                multiply_words(mma, great[j], x, y[d][j / 2] + j % 2 * 2, !d);
                multiply_words(mma, sum[i][SMALL + j], x_rest, y[d][j / 2] + j % 2 * 2, 0);
                multiply_words(mma, sum[i][SMALL + j], x, y_rest[d][j / 2] + j % 2 * 2, 0);
            }
        }
        UNROLL for (int j = 0; j < RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] += great[j][e];
    }
}

static inline void add_small(sum_t sum[DOWN][2 * RIGHT][4])
{
    EVERY_SUM sum[i][j][e] += sum[i][j][e] - sum[i][j][e] == 0 ? sum[i][SMALL + j][e] : 0;
}
#else
enum { SMALL = 0 };
/* A warp's words of both factors, of one step of the instruction. */
struct words {
    uint32_t x[DOWN][4], y[RIGHT / 2][4];
};

static inline void take_words(SHARED_POINTER const char *tile, int down, int right, int depth, struct words *w)
{
    UNROLL
    for (int i = 0; i < DOWN; i++)
        take_x(tile, down + 16 * i, depth, 1, w->x[i]);
    UNROLL
    for (int j = 0; j < RIGHT / 2; j++)
        take_y(tile + X_BYTES, right + 16 * j, depth, 0, w->y[j]);
#if ITEM == 4
    UNROLL
    for (int e = 0; e < 4; e++) {
        UNROLL for (int i = 0; i < DOWN; i++) w->x[i][e] = nearest_11_bits(w->x[i][e]);
        UNROLL for (int j = 0; j < RIGHT / 2; j++) w->y[j][e] = nearest_11_bits(w->y[j][e]);
    }
#endif
}

/* Adds the products of the words. */
static inline void multiply_all_words(MMA_TYPE mma, const struct words *w, sum_t sum[DOWN][RIGHT][4])
{
    UNROLL
    for (int i = 0; i < DOWN; i++)
        UNROLL
        for (int j = 0; j < RIGHT; j++)
            multiply_words(mma, sum[i][j], w->x[i], w->y[j / 2] + j % 2 * 2, 0);
}

static inline void multiply_tile(MMA_TYPE mma, SHARED_POINTER const char *tile, int down, int right,
                                 sum_t sum[DOWN][RIGHT][4])
{
    UNROLL
    for (int d = 0; d < DEPTHS; d++) {
        struct words w;
        take_words(tile, down, right, d, &w);
        multiply_all_words(mma, &w, sum);
    }
}

static inline void add_small(sum_t sum[DOWN][RIGHT][4]) { (void)sum; }
#endif

/* Where a block's outputs begin, and its terms. */
struct corner {
    int64_t batch, row, column, rows, columns;
    int first, end;
};

/* A group of outputs beside each other, in one store where they are neighbours in memory; `count` of them exist. */
static inline void store_group(struct tensors T, shape_ptr S, struct target left, int64_t column, int64_t count,
                               const float sums[VECTOR])
{
    struct results y[VECTOR];
    struct target first = sum_of_targets(left, move_target(S, no_target(), column, 1));
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        struct state s;
        struct target at = first;
        if (j >= count)
            continue;
        s.r0 = sums[j];
#if EVEN_COLUMNS
#define X(s) at.f##s += j * in_stride(S, s, COLUMN_LOOP);
        FOR_FINISH_INPUTS(X)
#undef X
#else
        at = sum_of_targets(left, move_target(S, no_target(), column + j, 1));
#endif
        y[j] = results_at(T, at, s, S->reduced_total);
#if !EVEN_COLUMNS
#define X(k) T.out##k[at.o##k] = y[j].y##k;
        FOR_OUTPUTS(X)
#undef X
#endif
    }
#if EVEN_COLUMNS
#define X(k)                                                                                                   \
    if (out_stride(S, k, COLUMN_LOOP) == 1 &&                                                                  \
        (uint64_t)(T.out##k + first.o##k) % (sizeof(struct out##k##_vector) < 16 ? sizeof(struct out##k##_vector) : 16) == 0) { \
        struct out##k##_vector v;                                                                              \
        UNROLL for (int j = 0; j < VECTOR; j++) v.v[j] = y[j].y##k;                                            \
        *(GLOBAL struct out##k##_vector *)(T.out##k + first.o##k) = v;                                         \
    } else                                                                                                     \
        UNROLL for (int j = 0; j < VECTOR; j++)                                                                \
            T.out##k[first.o##k + j * out_stride(S, k, COLUMN_LOOP)] = y[j].y##k;
    FOR_OUTPUTS(X)
#undef X
#endif
}

enum { PITCH = SUM_PITCH /* floats of a row in shared memory: for the banks */, GROUPS = COLUMNS / VECTOR };

/* Adds the parts' sums of a group in their order: each from its block's shared memory in a cluster, from the workspace
 * if PARTED, else there is one. */
static inline void join_group(SHARED_POINTER const sum_t *sums, GLOBAL const sum_t *parts, int64_t count,
                              float all[VECTOR])
{
#if CLUSTER > 1
    float v[CLUSTER][VECTOR];
    UNROLL for (int q = 0; q < CLUSTER; q++)
        UNROLL for (int j = 0; j < VECTOR; j += 4) read_from(q, sums + j, v[q] + j);
    UNROLL
    for (int j = 0; j < VECTOR; j++) {
        all[j] = v[0][j];
        UNROLL for (int q = 1; q < CLUSTER; q++) all[j] += v[q][j];
    }
#elif PARTED
    enum { AT_ONCE = 4 };
    UNROLL for (int j = 0; j < VECTOR; j++) all[j] = 0;
    for (int64_t p = 0; p < count; p += AT_ONCE) {
        float v[AT_ONCE][VECTOR];
        UNROLL for (int q = 0; q < AT_ONCE; q++)
            UNROLL for (int j = 0; j < VECTOR; j += 4)
                read_fresh(parts + (p + q < count ? p + q : p) * (ROWS * COLUMNS) + j, v[q] + j);
        UNROLL for (int q = 0; q < AT_ONCE; q++)
            UNROLL for (int j = 0; j < VECTOR; j++) all[j] += p + q < count ? v[q][j] : 0;
    }
#else
    UNROLL for (int j = 0; j < VECTOR; j++) all[j] = sums[j];
#endif
}

/* Stores the block's sums, which go through shared memory, so that threads beside each other have groups of columns
 * beside each other. In a cluster every part has a share of the rows; else the last part has all. */
static inline void store_sums(struct tensors T, shape_ptr S, struct corner at, SHARED_POINTER char *tiles, int64_t part,
                              GLOBAL sum_t *parts, GLOBAL uint32_t *counter, sum_t sum[DOWN][SMALL + RIGHT][4])
{
    SHARED_POINTER sum_t *const rows = (SHARED_POINTER sum_t *)tiles;
    const int warp = THREAD / WARP, lane = THREAD % WARP, column = THREAD % GROUPS * VECTOR;
    SHARED_POINTER sum_t *const mine = rows + (warp / WARPS_RIGHT * WARP_ROWS + lane / 4) * PITCH +
                                       warp % WARPS_RIGHT * WARP_COLUMNS + lane % 4 * 2;
    const struct target origin = move_target(S, no_target(), at.batch, 2);
    BARRIER();
    EVERY_SUM mine[(16 * i + e / 2 * 8) * PITCH + j * 8 + e % 2] = sum[i][j][e];
    WAIT_FOR_ALL();
#if PARTED
    for (int r = THREAD / GROUPS; r < ROWS; r += THREADS / GROUPS)
        UNROLL for (int j = 0; j < VECTOR; j += 4)
            *(GLOBAL struct sixteen *)(parts + (part * ROWS + r) * COLUMNS + column + j) =
                *(SHARED_POINTER const struct sixteen *)(rows + r * PITCH + column + j);
    BARRIER(); /* nobody reads shared memory any more: the flag may lie there */
    if (!last_to_arrive(counter, S->p[2], (SHARED_POINTER int *)tiles))
        return;
#endif
    NO_UNROLL
    for (int r = CLUSTER * (THREAD / GROUPS) + (CLUSTER > 1 ? (int)part : 0); r < ROWS;
         r += CLUSTER * (THREADS / GROUPS)) {
        const int64_t m = at.row + r, n = at.column + column;
        float all[VECTOR];
        if (m >= at.rows || n >= at.columns)
            continue;
        join_group(rows + r * PITCH + column, parts + r * COLUMNS + column, S->p[2], all);
        store_group(T, S, move_target(S, origin, m, 0), n, at.columns - n, all);
    }
    if (CLUSTER > 1)
        WAIT_FOR_ALL(); /* nobody goes while others read from it */
}

/* How far the factors' elements of the tile after the one at t are from its own. fast: t's place in the innermost
 * reduced loop. */
struct step {
    int64_t x, y;
};

static inline struct step step_from(shape_ptr S, int t, int end, int *fast)
{
    struct step step;
    *fast += STEP;
    if (*fast < S->size[LOOPS - 1] || t + STEP >= end) {
        step.x = STEP * in_stride(S, SLOT_X, LOOPS - 1);
        step.y = STEP * in_stride(S, SLOT_Y, LOOPS - 1);
    } else {
        const struct place here = element_place(S, no_place(), t), next = element_place(S, no_place(), t + STEP);
        step.x = next.PLACE_X - here.PLACE_X;
        step.y = next.PLACE_Y - here.PLACE_Y;
        *fast = 0;
    }
    return step;
}

/* What brings tiles of terms into shared memory. */
struct bringing {
    struct pieces_x x;
    struct pieces_y y;
    int next, fast, stage; /* the next tile's first term, its place in the innermost loop, where it goes */
};

/* Begins to copy the next tile, if there is one. vectors is a constant. */
static inline void bring_tile(struct tensors T, shape_ptr S, struct corner at, SHARED_POINTER char *tiles, int vectors,
                              struct bringing *b)
{
    if (b->next < at.end) {
        SHARED_POINTER char *const to = tiles + b->stage * STAGE_BYTES;
        const struct step step = step_from(S, b->next, at.end, &b->fast);
        copy_x(T, S, &b->x, at.batch, at.row, at.rows, b->next, at.end, vectors, step.x, to);
        copy_y(T, S, &b->y, at.batch, at.column, at.columns, b->next, at.end, vectors, step.y, to + X_BYTES);
    }
    COMMIT();
    b->next += STEP;
    b->stage = b->stage + 1 < STAGES ? b->stage + 1 : 0;
}

/* All tiles of terms. AHEAD: what is multiplied next is read from shared memory before what is there already is
 * multiplied; one more tile is then on its way. */
static inline void multiply_all(MMA_TYPE mma, struct tensors T, shape_ptr S, struct corner at,
                                SHARED_POINTER char *tiles, int vectors, sum_t sum[DOWN][SMALL + RIGHT][4])
{
    const int down = THREAD / WARP / WARPS_RIGHT * WARP_ROWS, right = THREAD / WARP % WARPS_RIGHT * WARP_COLUMNS;
    struct bringing b;
    int stage = 0;
    find_pieces_x(T, S, at.batch, at.row, at.rows, at.first, &b.x);
    find_pieces_y(T, S, at.batch, at.column, at.columns, at.first, &b.y);
    b.next = at.first;
    b.fast = (int)(at.first % S->size[LOOPS - 1]);
    b.stage = 0;
#if !AHEAD
    NO_UNROLL
    for (int s = 0; s < STAGES - 1; s++)
        bring_tile(T, S, at, tiles, vectors, &b);
    NO_UNROLL
    for (int t = at.first; t < at.end; t += STEP) {
        AWAIT(STAGES - 2);
        BARRIER();
        bring_tile(T, S, at, tiles, vectors, &b);
        multiply_tile(mma, tiles + stage * STAGE_BYTES, down, right, sum);
        stage = stage + 1 < STAGES ? stage + 1 : 0;
    }
#else
    struct words words[DEPTHS];
    NO_UNROLL
    for (int s = 0; s < STAGES; s++)
        bring_tile(T, S, at, tiles, vectors, &b);
    AWAIT(STAGES - 1);
    BARRIER();
    take_words(tiles, down, right, 0, &words[0]);
    NO_UNROLL
    for (int t = at.first; t < at.end; t += STEP) {
        take_words(tiles + stage * STAGE_BYTES, down, right, 1, &words[1]);
        multiply_all_words(mma, &words[0], sum);
        AWAIT(STAGES - 2);
        BARRIER(); /* the next tile is there, and nobody reads this one any more */
        bring_tile(T, S, at, tiles, vectors, &b);
        stage = stage + 1 < STAGES ? stage + 1 : 0;
        take_words(tiles + stage * STAGE_BYTES, down, right, 0, &words[0]);
        multiply_all_words(mma, &words[1], sum);
    }
#endif
    add_small(sum);
}

KERNEL TOGETHER void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(struct sixteen, stages, SHARED_BYTES / PIECE);
    MMA_MEMORY
    SHARED_POINTER char *const tiles = (SHARED_POINTER char *)stages;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t parts = S->p[2], part = BLOCK % parts, block = BLOCK / parts;
    struct corner at;
    at.row = block % S->p[0] * ROWS;
    at.column = block / S->p[0] % S->p[1] * COLUMNS;
    at.batch = block / (S->p[0] * S->p[1]);
    at.rows = S->p[7] >> 32;
    at.columns = S->p[7] & 0xffffffff;
    at.first = (int)(part * S->p[3]);
    at.end = (int)(at.first + S->p[3] < S->reduced_total ? at.first + S->p[3] : S->reduced_total);
    sum_t sum[DOWN][SMALL + RIGHT][4];
    UNROLL
    for (int i = 0; i < DOWN; i++)
        UNROLL for (int j = 0; j < SMALL + RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    if (b.vectors)
        multiply_all(mma_, T, S, at, tiles, 1, sum);
    else
        multiply_all(mma_, T, S, at, tiles, 0, sum);
    store_sums(T, S, at, tiles, part, (GLOBAL sum_t *)workspace + block * parts * (ROWS * COLUMNS),
               (GLOBAL uint32_t *)(workspace + S->p[4]) + block, sum);
}
