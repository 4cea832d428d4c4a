/* out[n, h, w, p] = sum over i, ... of x[n, ROW_STEP h + i, w, ...] y[i, ..., p] on tensor cores, in the order of their
 * instruction: sums of products whose rows are positions with windows. A block computes ROWS x COLUMNS outputs, of
 * which TILE_DOWN x TILE_ACROSS rows exist; what they need of x is copied once (window_rows.cl), tiles of y go through
 * STAGES places, as in product.cl. RESIDENT: all of y stays there instead, and a block computes one tile of positions
 * after the other; while one is multiplied, x for the next one comes. INPUTS_STAY: a block has one tile of positions, and goes
 * over all columns; what it has of x stays.
 *
 * POOL = 2: the greatest of 2 x 2 positions is an output, which is finished then; output strides are those of the
 * pooled positions. The finish part must not fall where the sum rises, nor differ between the four.
 *
 * PARTS: of the terms, by channels, a block each, which join their sums as in product.cl.
 *
 * p[0]: blocks along the columns; p[1], p[2]: tiles along positions across and down, p[6], p[8]: these as divisors;
 * p[3]: the rows' other positions; p[4], p[5]: RESIDENT: tiles of positions, and how many a block goes on by; else
 * p[4]: bytes of the parts' sums in the workspace, before their counters; p[7]: columns. */
struct corner {
    int64_t batch, outer, column, columns;
    int down, across, part;
};

static inline struct corner corner_of(shape_ptr S, uint32_t tile)
{
    const uint32_t across = (uint32_t)S->p[1], down = (uint32_t)S->p[2];
    const uint32_t line = divide_by(S->p[6], tile), others = divide_by(S->p[8], line);
    const int64_t positions = S->size[LOOP_DOWN] * S->size[LOOP_ACROSS];
    struct corner at;
    at.part = (int)((uint32_t)BLOCK % PARTS);
    at.column = (uint32_t)BLOCK / PARTS % (uint32_t)S->p[0] * (int64_t)COLUMNS;
    at.columns = S->p[7];
    at.across = (int)((tile - line * across) * TILE_ACROSS);
    at.down = (int)((line - others * down) * TILE_DOWN);
    at.batch = RESIDENT ? 0 : others / (uint32_t)S->p[3];
    at.outer = (others - at.batch * S->p[3]) * positions;
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
    copy_spans((GLOBAL const bits_t *)T.ELEMENTS_X + first.PLACE_X + at.part * PART_CHANNELS, pitch,
               left_of(S->size[LOOP_DOWN], at.down, TILE_DOWN), left_of(S->size[LOOP_ACROSS], at.across, TILE_ACROSS),
               vectors, spans);
}

/* What brings tiles of y into shared memory. */
struct bringing {
    struct pieces_y y;
    int next, fast, stage; /* the next tile's first term, its place in the innermost loop, where it goes */
};

/* As step_from of product_store.cl, in a part's terms: a tile's are in one run of its channels. */
static inline struct step next_step(shape_ptr S, int part, int t, int end, int *fast)
{
#if PARTS > 1
    struct step step;
    step.y = STEP * in_stride(S, SLOT_Y, LOOPS - 1);
    if ((t + STEP) % PART_CHANNELS == 0 && t + STEP < end)
        step.y = element_place(S, no_place(), term_of(t + STEP, part)).PLACE_Y -
                 element_place(S, no_place(), term_of(t, part)).PLACE_Y;
    return step;
#else
    return step_from(S, t, end, fast);
#endif
}

static inline void bring_tile(struct tensors T, shape_ptr S, struct corner at, SHARED_POINTER char *tiles, int vectors,
                              struct bringing *b)
{
    const int end = part_terms(S);
    if (b->next < end) {
        const struct step step = next_step(S, at.part, b->next, end, &b->fast);
        copy_y(T, S, &b->y, at.batch, at.column, at.columns, term_of(b->next, at.part), (int)S->reduced_total, vectors,
               step.y, tiles + b->stage * STAGE_BYTES);
    }
    COMMIT();
    b->next += STEP;
    b->stage = b->stage + 1 < STAGES ? b->stage + 1 : 0;
}

static inline struct rows_from first_rows(SHARED_POINTER const char *spans, SHARED_POINTER const int *offsets)
{
    struct rows_from rows;
    rows.spans = spans;
    rows.offsets = offsets;
    rows.first = THREAD / WARP / WARPS_RIGHT * WARP_ROWS;
    return rows;
}

static inline struct bringing begin_tiles(struct tensors T, shape_ptr S, struct corner at)
{
    struct bringing b;
    find_pieces_y(T, S, at.batch, at.column, at.columns, term_of(0, at.part), &b.y);
    b.next = b.fast = b.stage = 0;
    return b;
}

static inline void clear(sum_t sum[DOWN][SMALL + RIGHT][4])
{
    UNROLL
    for (int i = 0; i < DOWN; i++)
        UNROLL for (int j = 0; j < SMALL + RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
}

#if !RESIDENT
static inline void multiply_all(MMA_TYPE mma, struct tensors T, shape_ptr S, struct corner at,
                                SHARED_POINTER char *spans, int vectors, sum_t sum[DOWN][SMALL + RIGHT][4])
{
    const int right = THREAD / WARP % WARPS_RIGHT * WARP_COLUMNS;
    SHARED_POINTER int *const offsets = (SHARED_POINTER int *)(spans + SPAN_BYTES);
    SHARED_POINTER char *const tiles = spans + BEFORE_STAGES;
    struct rows_from rows = first_rows(spans, offsets);
    struct bringing b = begin_tiles(T, S, at);
    int stage = 0;
    clear(sum);
    if (!INPUTS_STAY || !at.column) {
        bring_spans(T, S, at, vectors, spans);
        write_offsets(S, at.part, (int)in_stride(S, SLOT_X, LOOP_TAPS), offsets);
    }
    NO_UNROLL
    for (int s = 0; s < BROUGHT; s++)
        bring_tile(T, S, at, tiles, vectors, &b);
    NO_UNROLL
    for (int t = 0; t < part_terms(S); t += AT_ONCE * STEP) {
        AWAIT(BROUGHT - AT_ONCE);
        SHOW_COPIES();
        BARRIER();
        if (!GROUPED)
            bring_tile(T, S, at, tiles, vectors, &b);
        UNROLL
        for (int q = 0; q < AT_ONCE; q++) {
            if (t + q * STEP < part_terms(S))
                multiply_tile(mma, rows, tiles + stage * STAGE_BYTES, right, sum);
            rows.offsets += STEP / PER;
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            if (GROUPED) /* it is multiplied meanwhile */
                bring_tile(T, S, at, tiles, vectors, &b);
        }
    }
    add_small(sum);
}
#endif

/* Stores the block's sums, which go through shared memory, so that threads beside each other have groups of columns
 * beside each other; POOLS_EARLY: the greatest of four alone. In a cluster every part has a share of the positions; else the last part has all. */
static inline void store_sums(struct tensors T, shape_ptr S, struct corner at, SHARED_POINTER sum_t *rows,
                              GLOBAL sum_t *parts, GLOBAL uint32_t *counter, sum_t sum[DOWN][SMALL + RIGHT][4])
{
    const int warp = THREAD / WARP, lane = THREAD % WARP, column = THREAD % GROUPS * VECTOR;
    SHARED_POINTER sum_t *const mine = rows + (warp / WARPS_RIGHT * (POOLS_EARLY ? WARP_ROWS / 4 : WARP_ROWS) + lane / 4) * PITCH +
                                       warp % WARPS_RIGHT * WARP_COLUMNS + lane % 4 * 2;
    const struct target origin = move_target(S, move_target(S, no_target(), at.batch, 2), at.outer, 0);
    enum { NEXT = CLUSTER * (THREADS / GROUPS) };
    if (!RESIDENT)
        BARRIER(); /* other things lie there */
#if POOLS_EARLY
    UNROLL
    for (int i = 0; i < DOWN; i += 2)
        UNROLL for (int j = 0; j < RIGHT; j++)
            UNROLL for (int e = 0; e < 2; e++) mine[4 * i * PITCH + j * 8 + e] =
                fold_max_f32(fold_max_f32(sum[i][j][e], sum[i][j][e + 2]),
                             fold_max_f32(sum[i + 1][j][e], sum[i + 1][j][e + 2]));
#else
    EVERY_SUM mine[(16 * i + e / 2 * 8) * PITCH + j * 8 + e % 2] = sum[i][j][e];
#endif
    WAIT_FOR_ALL();
    if (!hand_in(rows, parts, at.part, PARTS, counter))
        return;
    const struct taken taken = take_once(T, S, at.column + column, at.columns);
    NO_UNROLL
    for (int first = CLUSTER * (THREAD / GROUPS) + (CLUSTER > 1 ? at.part : 0); first < POSITIONS / (POOL * POOL);
         first += TURNS * NEXT) {
        struct group group[TURNS];
        int there[TURNS];
        UNROLL
        for (int u = 0; u < TURNS; u++) {
            const int p = first + u * NEXT, y = p / (TILE_ACROSS / POOL), x = p % (TILE_ACROSS / POOL);
            const int64_t h = at.down / POOL + y, w = at.across / POOL + x, n = at.column + column;
            struct target left = origin;
            float all[VECTOR];
            there[u] = p < POSITIONS / (POOL * POOL) && h * POOL < S->size[LOOP_DOWN] &&
                       w * POOL < S->size[LOOP_ACROSS] && n < at.columns;
            if (!there[u])
                continue;
#define X(s) left.f##s += h * in_stride(S, s, LOOP_DOWN) + w * in_stride(S, s, LOOP_ACROSS);
            FOR_FINISH_INPUTS(X)
#undef X
#define X(k) left.o##k += h * out_stride(S, k, LOOP_DOWN) + w * out_stride(S, k, LOOP_ACROSS);
            FOR_OUTPUTS(X)
#undef X
            UNROLL
            for (int d = 0; d < (POOLS_EARLY ? 1 : POOL * POOL); d++) {
                const int row = POOLS_EARLY ? p : (POOL * y + d / POOL) * TILE_ACROSS + POOL * x + d % POOL;
                float one[VECTOR];
                join_group(rows + row * PITCH + column, parts + row * COLUMNS + column, PARTS, one);
                UNROLL for (int j = 0; j < VECTOR; j++) all[j] = d ? fold_max_f32(all[j], one[j]) : one[j];
            }
            group[u] = finish_group(T, S, left, n, at.columns - n, &taken, all);
        }
        UNROLL
        for (int u = 0; u < TURNS; u++)
            if (there[u])
                store_group(T, S, &group[u]);
    }
    if (CLUSTER > 1)
        WAIT_FOR_ALL(); /* nobody goes while others read from it */
}

#if RESIDENT
#if STAGES <= 5
#define SOME_UNROLL UNROLL
#else
#define SOME_UNROLL NO_UNROLL
#endif
static inline void fold_tiles(MMA_TYPE mma, struct tensors T, shape_ptr S, SHARED_POINTER char *shared, int vectors)
{
    const int right = THREAD / WARP % WARPS_RIGHT * WARP_COLUMNS;
    const uint32_t tiles = (uint32_t)S->p[4], by = (uint32_t)S->p[5];
    SHARED_POINTER int *const offsets = (SHARED_POINTER int *)(shared + 2 * SPAN_BYTES);
    SHARED_POINTER char *const staged = shared + BEFORE_STAGES;
    uint32_t tile = (uint32_t)BLOCK / (uint32_t)S->p[0];
    struct corner at = corner_of(S, tile);
    struct bringing b = begin_tiles(T, S, at);
    int place = 0;
    bring_spans(T, S, at, vectors, shared);
    NO_UNROLL
    for (int s = 0; s < STAGES; s++)
        bring_tile(T, S, at, staged, vectors, &b);
    write_offsets(S, 0, (int)in_stride(S, SLOT_X, LOOP_TAPS), offsets);
    NO_UNROLL
    for (; tile < tiles; tile += by) {
        const struct corner next = corner_of(S, tile + by);
        struct rows_from rows = first_rows(shared + place * SPAN_BYTES, offsets);
        sum_t sum[DOWN][SMALL + RIGHT][4];
        AWAIT(0);
        SHOW_COPIES();
        BARRIER(); /* this tile's spans are there, the last one's and its sums are not read any more */
        place = 1 - place;
        if (tile + by < tiles)
            bring_spans(T, S, next, vectors, shared + place * SPAN_BYTES);
        COMMIT();
        clear(sum);
        SOME_UNROLL
        for (int s = 0; s < STAGES; s++) {
            multiply_tile(mma, rows, staged + s * STAGE_BYTES, right, sum);
            rows.offsets += STEP / PER;
        }
        add_small(sum);
        store_sums(T, S, at, (SHARED_POINTER sum_t *)(shared + ALL_BYTES), 0, 0, sum);
        at = next;
    }
}
#endif

#if INPUTS_STAY
static inline void fold_columns(MMA_TYPE mma, struct tensors T, shape_ptr S, SHARED_POINTER char *shared, int vectors)
{
    struct corner at = corner_of(S, (uint32_t)BLOCK);
    NO_UNROLL
    for (; at.column < at.columns; at.column += COLUMNS) {
        sum_t sum[DOWN][SMALL + RIGHT][4];
        multiply_all(mma, T, S, at, shared, vectors, sum);
        store_sums(T, S, at, (SHARED_POINTER sum_t *)(shared + SUMS_AT), 0, 0, sum);
        BARRIER(); /* tiles come where sums were */
    }
}
#endif

KERNEL TOGETHER void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    LAUNCH_SHARED(struct sixteen, places, SHARED_BYTES / PIECE);
    MMA_MEMORY
    SHARED_POINTER char *const shared = (SHARED_POINTER char *)places;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
#if RESIDENT
    if (b.vectors)
        fold_tiles(mma_, T, S, shared, 1);
    else
        fold_tiles(mma_, T, S, shared, 0);
#elif INPUTS_STAY
    if (b.vectors)
        fold_columns(mma_, T, S, shared, 1);
    else
        fold_columns(mma_, T, S, shared, 0);
#else
    const uint32_t block = (uint32_t)BLOCK / PARTS;
    const struct corner at = corner_of(S, block / (uint32_t)S->p[0]);
    sum_t sum[DOWN][SMALL + RIGHT][4];
    if (b.vectors)
        multiply_all(mma_, T, S, at, shared, 1, sum);
    else
        multiply_all(mma_, T, S, at, shared, 0, sum);
    store_sums(T, S, at, (SHARED_POINTER sum_t *)shared,
               (GLOBAL sum_t *)workspace + (int64_t)block * PARTS * (ROWS * COLUMNS),
               (GLOBAL uint32_t *)(workspace + S->p[4]) + block, sum);
#endif
}
