/* out[n, h, w, p] = sum over i, ... of x[n, ROW_STEP h + i, w, ...] y[i, ..., p] on tensor cores, in the order of their
 * instruction: sums of products whose rows are positions with windows. A block computes ROWS x COLUMNS outputs, of
 * which TILE_DOWN x TILE_ACROSS rows exist; what they need of x is copied once (window_rows.cl), tiles of y go through
 * STAGES places, as in product.cl.
 *
 * POOL = 2: the greatest of 2 x 2 positions is an output, which is finished then; output strides are those of the
 * pooled positions. The finish part must not fall where the sum rises, nor differ between the four.
 *
 * p[0]: blocks along the columns; p[1], p[2]: tiles along positions across and down; p[3]: the rows' other positions;
 * p[7]: columns. */
struct corner {
    int64_t batch, outer, column, columns;
    int down, across;
};

static inline struct corner corner_of(shape_ptr S)
{
    const int right = (int)S->p[0], across = (int)S->p[1], down = (int)S->p[2], outer = (int)S->p[3];
    const int tile = (int)BLOCK / right, line = tile / across, others = line / down;
    struct corner at;
    at.column = (int)BLOCK % right * (int64_t)COLUMNS;
    at.columns = S->p[7];
    at.across = tile % across * TILE_ACROSS;
    at.down = line % down * TILE_DOWN;
    at.outer = others % outer * (S->size[LOOP_DOWN] * S->size[LOOP_ACROSS]);
    at.batch = others / outer;
    return at;
}

static inline int left_of(int64_t size, int first, int most)
{
    return size - first < most ? (int)(size - first) : most;
}

/* Begins to copy what the block needs of x. */
static inline void bring_spans(struct tensors T, shape_ptr S, struct corner at, int vectors, SHARED_POINTER char *spans)
{
    const int64_t position = at.outer + at.down * S->size[LOOP_ACROSS] + at.across;
    const struct place first = move_place(S, move_place(S, no_place(), at.batch, 2), position, 0);
    const int64_t pitch = in_stride(S, SLOT_X, LOOP_TAPS);
    copy_spans((GLOBAL const bits_t *)T.ELEMENTS_X + first.PLACE_X, pitch,
               left_of(S->size[LOOP_DOWN], at.down, TILE_DOWN), left_of(S->size[LOOP_ACROSS], at.across, TILE_ACROSS),
               vectors, spans);
    write_offsets(S, (int)pitch, (SHARED_POINTER int *)(spans + SPAN_BYTES));
}

/* What brings tiles of y into shared memory. */
struct bringing {
    struct pieces_y y;
    int next, fast, stage; /* the next tile's first term, its place in the innermost loop, where it goes */
};

static inline void bring_tile(struct tensors T, shape_ptr S, struct corner at, SHARED_POINTER char *tiles, int vectors,
                              struct bringing *b)
{
    const int end = (int)S->reduced_total;
    if (b->next < end) {
        const struct step step = step_from(S, b->next, end, &b->fast);
        copy_y(T, S, &b->y, at.batch, at.column, at.columns, b->next, end, vectors, step.y,
               tiles + b->stage * STAGE_BYTES);
    }
    COMMIT();
    b->next += STEP;
    b->stage = b->stage + 1 < STAGES ? b->stage + 1 : 0;
}

static inline void multiply_all(MMA_TYPE mma, struct tensors T, shape_ptr S, struct corner at,
                                SHARED_POINTER char *spans, int vectors, sum_t sum[DOWN][SMALL + RIGHT][4])
{
    const int right = THREAD / WARP % WARPS_RIGHT * WARP_COLUMNS;
    SHARED_POINTER char *const tiles = spans + BEFORE_STAGES;
    struct rows_from rows;
    struct bringing b;
    int stage = 0;
    rows.spans = spans;
    rows.offsets = (SHARED_POINTER const int *)(spans + SPAN_BYTES);
    rows.first = THREAD / WARP / WARPS_RIGHT * WARP_ROWS;
    find_pieces_y(T, S, at.batch, at.column, at.columns, 0, &b.y);
    b.next = b.fast = b.stage = 0;
    bring_spans(T, S, at, vectors, spans);
    NO_UNROLL
    for (int s = 0; s < STAGES - 1; s++)
        bring_tile(T, S, at, tiles, vectors, &b);
    NO_UNROLL
    for (int t = 0; t < (int)S->reduced_total; t += STEP) {
        AWAIT(STAGES - 2);
        BARRIER();
        bring_tile(T, S, at, tiles, vectors, &b);
        multiply_tile(mma, rows, tiles + stage * STAGE_BYTES, right, sum);
        rows.offsets += STEP / PER;
        stage = stage + 1 < STAGES ? stage + 1 : 0;
    }
    add_small(sum);
}

/* The greater; a NaN stays. */
static inline float pooled(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* Stores the block's sums, which go through shared memory, so that threads beside each other have groups of columns
 * beside each other. */
static inline void store_sums(struct tensors T, shape_ptr S, struct corner at, SHARED_POINTER char *tiles,
                              sum_t sum[DOWN][SMALL + RIGHT][4])
{
    SHARED_POINTER sum_t *const rows = (SHARED_POINTER sum_t *)tiles;
    const int warp = THREAD / WARP, lane = THREAD % WARP, column = THREAD % GROUPS * VECTOR;
    SHARED_POINTER sum_t *const mine = rows + (warp / WARPS_RIGHT * WARP_ROWS + lane / 4) * PITCH +
                                       warp % WARPS_RIGHT * WARP_COLUMNS + lane % 4 * 2;
    const struct target origin = move_target(S, move_target(S, no_target(), at.batch, 2), at.outer, 0);
    BARRIER();
    EVERY_SUM mine[(16 * i + e / 2 * 8) * PITCH + j * 8 + e % 2] = sum[i][j][e];
    BARRIER();
    NO_UNROLL
    for (int p = THREAD / GROUPS; p < POSITIONS / (POOL * POOL); p += THREADS / GROUPS) {
        const int y = p / (TILE_ACROSS / POOL), x = p % (TILE_ACROSS / POOL);
        const int64_t h = at.down / POOL + y, w = at.across / POOL + x, n = at.column + column;
        struct target left = origin;
        float all[VECTOR];
        if (h * POOL >= S->size[LOOP_DOWN] || w * POOL >= S->size[LOOP_ACROSS] || n >= at.columns)
            continue;
#define X(s) left.f##s += h * in_stride(S, s, LOOP_DOWN) + w * in_stride(S, s, LOOP_ACROSS);
        FOR_FINISH_INPUTS(X)
#undef X
#define X(k) left.o##k += h * out_stride(S, k, LOOP_DOWN) + w * out_stride(S, k, LOOP_ACROSS);
        FOR_OUTPUTS(X)
#undef X
        UNROLL
        for (int j = 0; j < VECTOR; j++) {
#if POOL == 2
            SHARED_POINTER const sum_t *const first = rows + (2 * y * TILE_ACROSS + 2 * x) * PITCH + column + j;
            all[j] = pooled(pooled(first[0], first[PITCH]),
                            pooled(first[TILE_ACROSS * PITCH], first[(TILE_ACROSS + 1) * PITCH]));
#else
            all[j] = rows[p * PITCH + column + j];
#endif
        }
        store_group(T, S, left, n, at.columns - n, all);
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(struct sixteen, places, SHARED_BYTES / PIECE);
    MMA_MEMORY
    SHARED_POINTER char *const shared = (SHARED_POINTER char *)places;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const struct corner at = corner_of(S);
    sum_t sum[DOWN][SMALL + RIGHT][4];
    UNROLL
    for (int i = 0; i < DOWN; i++)
        UNROLL for (int j = 0; j < SMALL + RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    if (b.vectors)
        multiply_all(mma_, T, S, at, shared, 1, sum);
    else
        multiply_all(mma_, T, S, at, shared, 0, sum);
    store_sums(T, S, at, shared, sum);
}
