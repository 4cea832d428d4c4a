/* out[m, n] = sum over k of x[m, k] y[k, n] on tensor cores, in the order of their instruction (tensor_mma.cu). A block
 * computes ROWS x COLUMNS outputs, WARPS_DOWN x WARPS_RIGHT warps a part each (product_multiply.cl). Tiles of both
 * factors go through STAGES places of shared memory, by copies that pass no registers: while one tile is multiplied the
 * next ones come.
 *
 * EVEN_STEPS: whole tiles of terms lie in one run of the innermost reduced loop, so copies move on by a distance.
 *
 * p[0], p[1]: blocks along rows and columns; p[2]: parts of the terms, a block each: a cluster (CLUSTER = p[2]), or joined by the last one; p[3]: terms of a part; p[4]: bytes
 * of the parts' sums in the workspace, before their counters; p[7]: rows * 2^32 + columns.
 * Cost of a term of a block: (ROWS + COLUMNS) ITEM bytes from the cache, and as many into the warps' registers times
 * the warps beside and below each other; ROWS COLUMNS multiplications (times 3). */
/* Where a block's outputs begin, and its terms. */
struct corner {
    int64_t batch, row, column, rows, columns;
    int first, end;
};

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
    enum { NEXT = CLUSTER * (THREADS / GROUPS) };
    BARRIER();
    EVERY_SUM mine[(16 * i + e / 2 * 8) * PITCH + j * 8 + e % 2] = sum[i][j][e];
    WAIT_FOR_ALL();
    if (!hand_in(rows, parts, part, S->p[2], counter))
        return;
    const struct taken taken = take_once(T, S, at.column + column, at.columns);
    NO_UNROLL
    for (int first = CLUSTER * (THREAD / GROUPS) + (CLUSTER > 1 ? (int)part : 0); first < ROWS; first += TURNS * NEXT) {
        struct group group[TURNS];
        int there[TURNS];
        UNROLL
        for (int u = 0; u < TURNS; u++) {
            const int r = first + u * NEXT;
            const int64_t m = at.row + r, n = at.column + column;
            float all[VECTOR];
            there[u] = r < ROWS && m < at.rows && n < at.columns;
            if (!there[u])
                continue;
            join_group(rows + r * PITCH + column, parts + r * COLUMNS + column, S->p[2], all);
            group[u] = finish_group(T, S, move_target(S, origin, m, 0), n, at.columns - n, &taken, all);
        }
        UNROLL
        for (int u = 0; u < TURNS; u++)
            if (there[u])
                store_group(T, S, &group[u]);
    }
    if (CLUSTER > 1)
        WAIT_FOR_ALL(); /* nobody goes while others read from it */
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
    for (int s = 0; s < BROUGHT; s++)
        bring_tile(T, S, at, tiles, vectors, &b);
    NO_UNROLL
    for (int t = at.first; t < at.end; t += AT_ONCE * STEP) {
        AWAIT(BROUGHT - AT_ONCE);
        SHOW_COPIES();
        BARRIER();
        if (!GROUPED)
            bring_tile(T, S, at, tiles, vectors, &b);
        UNROLL
        for (int q = 0; q < AT_ONCE; q++) {
            if (t + q * STEP < at.end)
                multiply_tile(mma, rows_of(tiles + stage * STAGE_BYTES, down), tiles + stage * STAGE_BYTES + X_BYTES,
                              right, sum);
            stage = stage + 1 < STAGES ? stage + 1 : 0;
            if (GROUPED) /* it is multiplied meanwhile */
                bring_tile(T, S, at, tiles, vectors, &b);
        }
    }
#else
    struct words words[DEPTHS];
    NO_UNROLL
    for (int s = 0; s < STAGES; s++)
        bring_tile(T, S, at, tiles, vectors, &b);
    AWAIT(STAGES - 1);
    BARRIER();
    take_words(rows_of(tiles, down), tiles + X_BYTES, right, 0, &words[0]);
    NO_UNROLL
    for (int t = at.first; t < at.end; t += STEP) {
        take_words(rows_of(tiles + stage * STAGE_BYTES, down), tiles + stage * STAGE_BYTES + X_BYTES, right, 1,
                   &words[1]);
        multiply_all_words(mma, &words[0], sum);
        AWAIT(STAGES - 2);
        BARRIER(); /* the next tile is there, and nobody reads this one any more */
        bring_tile(T, S, at, tiles, vectors, &b);
        stage = stage + 1 < STAGES ? stage + 1 : 0;
        take_words(rows_of(tiles + stage * STAGE_BYTES, down), tiles + stage * STAGE_BYTES + X_BYTES, right, 0,
                   &words[0]);
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
    const int parts = (int)S->p[2], part = (int)BLOCK % parts, block = (int)BLOCK / parts;
    const int down = (int)S->p[0], right = (int)S->p[1];
    struct corner at;
    at.row = (int64_t)(block % down) * ROWS;
    at.column = (int64_t)(block / down % right) * COLUMNS;
    at.batch = block / down / right;
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
    store_sums(T, S, at, tiles, part, (GLOBAL sum_t *)workspace + (int64_t)block * parts * (ROWS * COLUMNS),
               (GLOBAL uint32_t *)(workspace + S->p[4]) + block, sum);
}
