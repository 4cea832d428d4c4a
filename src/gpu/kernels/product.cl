/* out[m, n] = sum over k of x[m, k] y[k, n] on tensor cores, in the order of their instruction (tensor_mma.cu). A block
 * computes ROWS x COLUMNS outputs, WARPS_DOWN x WARPS_RIGHT warps a part each. Tiles of both factors go through STAGES
 * places of shared memory, by copies that pass no registers: while one tile is multiplied the next ones come.
 *
 * f32: THREE products of numbers of 11 bits, each factor being the sum of two such (Ootomo and Yokota, Recovering single
 * precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance, sections 3 and 4): x y =
 * xh yh + (xh yl + xl yh), what is left out is below 2^-22 of it. As the instruction truncates its sums, those of a
 * tile are rounded to nearest into the block's. The small products stay apart until then: where the great one is not
 * finite they do not count (inf 0 would be one of them). Else ONE product of factors rounded to 11 bits.
 *
 * p[0], p[1]: blocks along rows and columns; p[2]: parts of the terms, a block each; p[3]: terms of a part; p[4]: bytes
 * of the parts' sums in the workspace, before their counters; p[7]: rows * 2^32 + columns.
 * Cost of a term of a block: (ROWS + COLUMNS) ITEM bytes from the cache, and as many into the warps' registers times
 * the warps beside and below each other; ROWS COLUMNS multiplications (times 3). */
static inline uint32_t nearest_11_bits(uint32_t x)
{
    return x + 0x1000u & 0xffffe000u;
}

/* x becomes its upper part; returns the lower one. */
static inline uint32_t split_off(uint32_t *x)
{
    const uint32_t upper = nearest_11_bits(*x);
    const float rest = mf_bits_f32(*x) - mf_bits_f32(upper);
    *x = upper;
    return mf_f32_bits(rest);
}

/* Adds the products of one tile to the warp's sums. */
static inline void multiply_tile(MMA_TYPE mma, SHARED_POINTER const char *tile, int down, int right,
                                 sum_t sum[DOWN][RIGHT][4])
{
#if PRODUCTS == 3
    sum_t great[DOWN][RIGHT][4], small[DOWN][RIGHT][4];
    UNROLL for (int i = 0; i < DOWN; i++)
        UNROLL for (int j = 0; j < RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) great[i][j][e] = small[i][j][e] = 0;
#endif
    UNROLL
    for (int depth = 0; depth < DEPTHS; depth++) {
        uint32_t x[DOWN][4], y[RIGHT / 2][4];
        UNROLL for (int i = 0; i < DOWN; i++) take_x(tile, down + 16 * i, depth, 1, x[i]);
        UNROLL for (int j = 0; j < RIGHT / 2; j++) take_y(tile + X_BYTES, right + 16 * j, depth, 0, y[j]);
#if PRODUCTS == 3
        uint32_t x_rest[DOWN][4], y_rest[RIGHT / 2][4];
        UNROLL for (int i = 0; i < DOWN; i++)
            UNROLL for (int e = 0; e < 4; e++) x_rest[i][e] = split_off(&x[i][e]);
        UNROLL for (int j = 0; j < RIGHT / 2; j++)
            UNROLL for (int e = 0; e < 4; e++) y_rest[j][e] = split_off(&y[j][e]);
#elif ITEM == 4
        UNROLL for (int i = 0; i < DOWN; i++)
            UNROLL for (int e = 0; e < 4; e++) x[i][e] = nearest_11_bits(x[i][e]);
        UNROLL for (int j = 0; j < RIGHT / 2; j++)
            UNROLL for (int e = 0; e < 4; e++) y[j][e] = nearest_11_bits(y[j][e]);
#endif
        UNROLL
        for (int i = 0; i < DOWN; i++)
            UNROLL
            for (int j = 0; j < RIGHT; j++) {
                const int h = j % 2 * 2;
#if PRODUCTS == 3
                MMA(mma, small[i][j], x_rest[i][0], x_rest[i][1], x_rest[i][2], x_rest[i][3], y[j / 2][h],
                    y[j / 2][h + 1]);
                MMA(mma, small[i][j], x[i][0], x[i][1], x[i][2], x[i][3], y_rest[j / 2][h], y_rest[j / 2][h + 1]);
                MMA(mma, great[i][j], x[i][0], x[i][1], x[i][2], x[i][3], y[j / 2][h], y[j / 2][h + 1]);
#else
                MMA(mma, sum[i][j], x[i][0], x[i][1], x[i][2], x[i][3], y[j / 2][h], y[j / 2][h + 1]);
#endif
            }
    }
#if PRODUCTS == 3
    UNROLL for (int i = 0; i < DOWN; i++)
        UNROLL for (int j = 0; j < RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) {
        const float g = great[i][j][e];
        sum[i][j][e] += g - g == 0 ? g + small[i][j][e] : g;
    }
#endif
}

/* Number e of a thread's sums, as all parts have it, added in their order. */
static inline void join_parts(GLOBAL const float *parts, int64_t count, sum_t sum[DOWN][RIGHT][4])
{
    for (int64_t p = 0; p < count; p++) {
        UNROLL for (int i = 0; i < DOWN; i++)
            UNROLL for (int j = 0; j < RIGHT; j++)
                UNROLL for (int e = 0; e < 4; e++) {
            const float there = FRESH(parts[p * (ROWS * COLUMNS) + ((i * RIGHT + j) * 4 + e) * THREADS + THREAD]);
            sum[i][j][e] = p ? sum[i][j][e] + there : there;
        }
    }
}

static inline void store_sums(struct tensors T, shape_ptr S, int64_t batch, int64_t row, int64_t column,
                              sum_t sum[DOWN][RIGHT][4])
{
    const int64_t rows = S->p[7] >> 32, columns = S->p[7] & 0xffffffff;
    const struct target origin = move_target(S, no_target(), batch, 2);
    struct target above[RIGHT][2];
    UNROLL for (int j = 0; j < RIGHT; j++)
        UNROLL for (int e = 0; e < 2; e++) {
        const int64_t n = column + 8 * j + THREAD % 4 * 2 + e;
        above[j][e] = move_target(S, no_target(), n < columns ? n : 0, 1);
    }
    UNROLL
    for (int i = 0; i < 2 * DOWN; i++) {
        const int64_t m = row + 8 * i + THREAD % WARP / 4;
        const struct target left = move_target(S, origin, m < rows ? m : 0, 0);
        UNROLL
        for (int j = 0; j < RIGHT; j++)
            UNROLL
            for (int e = 0; e < 2; e++)
                if (m < rows && column + 8 * j + THREAD % 4 * 2 + e < columns) {
                    struct state s;
                    s.r0 = sum[i / 2][j][i % 2 * 2 + e];
                    finish_at(T, sum_of_targets(left, above[j][e]), s, S->reduced_total);
                }
    }
}

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct sixteen stages[STAGES * STAGE_BYTES / PIECE];
    MMA_MEMORY
    SHARED_POINTER char *const tiles = (SHARED_POINTER char *)stages;
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t parts = S->p[2], part = BLOCK % parts, block = BLOCK / parts;
    const int64_t row = block % S->p[0] * ROWS, column = block / S->p[0] % S->p[1] * COLUMNS;
    const int64_t batch = block / (S->p[0] * S->p[1]), rows = S->p[7] >> 32, columns = S->p[7] & 0xffffffff;
    const int first = (int)(part * S->p[3]), vectors = b.vectors != 0;
    const int end = (int)(first + S->p[3] < S->reduced_total ? first + S->p[3] : S->reduced_total);
    const int down = THREAD / WARP / WARPS_RIGHT * WARP_ROWS, right = THREAD / WARP % WARPS_RIGHT * WARP_COLUMNS;
    const struct spots_x spots_x = find_spots_x(S, batch, row, rows);
    const struct spots_y spots_y = find_spots_y(S, batch, column, columns);
    sum_t sum[DOWN][RIGHT][4];
    UNROLL for (int i = 0; i < DOWN; i++)
        UNROLL for (int j = 0; j < RIGHT; j++)
            UNROLL for (int e = 0; e < 4; e++) sum[i][j][e] = 0;
    NO_UNROLL
    for (int s = 0; s < STAGES - 1; s++) {
        SHARED_POINTER char *const to = tiles + s * STAGE_BYTES;
        copy_x(T, S, spots_x, batch, row, rows, first + s * STEP, end, vectors, to);
        copy_y(T, S, spots_y, batch, column, columns, first + s * STEP, end, vectors, to + X_BYTES);
        COMMIT();
    }
    int stage = 0;
    NO_UNROLL
    for (int t = first; t < end; t += STEP) {
        AWAIT(STAGES - 2);
        BARRIER();
        const int last = stage ? stage - 1 : STAGES - 1;
        SHARED_POINTER char *const to = tiles + last * STAGE_BYTES;
        if (t + (STAGES - 1) * STEP < end) {
            copy_x(T, S, spots_x, batch, row, rows, t + (STAGES - 1) * STEP, end, vectors, to);
            copy_y(T, S, spots_y, batch, column, columns, t + (STAGES - 1) * STEP, end, vectors, to + X_BYTES);
        }
        COMMIT();
        multiply_tile(mma_, tiles + stage * STAGE_BYTES, down, right, sum);
        stage = stage + 1 < STAGES ? stage + 1 : 0;
    }
    if (parts > 1) {
        GLOBAL float *sums = (GLOBAL float *)workspace + block * parts * (ROWS * COLUMNS);
        UNROLL for (int i = 0; i < DOWN; i++)
            UNROLL for (int j = 0; j < RIGHT; j++)
                UNROLL for (int e = 0; e < 4; e++)
                    sums[part * (ROWS * COLUMNS) + ((i * RIGHT + j) * 4 + e) * THREADS + THREAD] = sum[i][j][e];
        BARRIER(); /* nobody reads a tile any more: the flag may lie there */
        if (!last_to_arrive((GLOBAL uint32_t *)(workspace + S->p[4]) + block, parts, (SHARED_POINTER int *)tiles))
            return;
        join_parts(sums, parts, sum);
    }
    store_sums(T, S, batch, row + down, column + right, sum);
}
