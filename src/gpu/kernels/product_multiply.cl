/* What a warp multiplies on tensor cores: sums of products of its rows of x and columns of y. A kernel's file says where
 * rows of x lie: struct rows_from, and take_rows, which reads 16 of them.
 *
 * f32: THREE products of numbers of 11 bits, each factor being the sum of two such (Ootomo and Yokota, Recovering single
 * precision accuracy from Tensor Cores while surpassing the FP32 theoretical peak performance, sections 3 and 4): x y =
 * xh yh + (xh yl + xl yh), what is left out is below 2^-22 of it. As the instruction truncates its sums, those of the
 * great products of a tile are rounded to nearest into the block's. Sums of the small ones stay apart to the end: where
 * the great one is not finite they do not count (inf 0 would be one of them). Else ONE product of factors rounded to 11
 * bits (ROUNDS; else they have no more). */
/* Half of the last place is added to x, by its exponent alone; the bits behind the 11 are the instruction's to ignore. A
 * NaN becomes the one that addition gives, which has its bits in front. */
static inline uint32_t nearest_11_bits(uint32_t x)
{
    return mf_f32_bits(fmaf(mf_bits_f32(x & 0xff800000u), 0x1p-11f, mf_bits_f32(x)));
}

/* x becomes its upper part; returns the lower one. */
static inline uint32_t split_off(uint32_t *x)
{
    const uint32_t upper = nearest_11_bits(*x) & 0xffffe000u;
    const float rest = mf_bits_f32(*x) - mf_bits_f32(upper);
    *x = upper;
    return mf_f32_bits(rest);
}

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
static inline void multiply_tile(MMA_TYPE mma, struct rows_from rows, SHARED_POINTER const char *columns, int right,
                                 sum_t sum[DOWN][2 * RIGHT][4])
{
    uint32_t y[DEPTHS][RIGHT / 2][4], y_rest[DEPTHS][RIGHT / 2][4];
    UNROLL
    for (int d = 0; d < DEPTHS; d++)
        UNROLL
        for (int j = 0; j < RIGHT / 2; j++) {
            take_y(columns, right + 16 * j, d, 0, y[d][j]);
            UNROLL for (int e = 0; e < 4; e++) y_rest[d][j][e] = split_off(&y[d][j][e]);
        }
    UNROLL
    for (int i = 0; i < DOWN; i++) {
        sum_t great[RIGHT][4];
        UNROLL
        for (int d = 0; d < DEPTHS; d++) {
            uint32_t x[4], x_rest[4];
            take_rows(rows, i, d, x);
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

static inline void take_words(struct rows_from rows, SHARED_POINTER const char *columns, int right, int depth,
                              struct words *w)
{
    UNROLL
    for (int i = 0; i < DOWN; i++)
        take_rows(rows, i, depth, w->x[i]);
    UNROLL
    for (int j = 0; j < RIGHT / 2; j++)
        take_y(columns, right + 16 * j, depth, 0, w->y[j]);
#if ITEM == 4 && ROUNDS
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

static inline void multiply_tile(MMA_TYPE mma, struct rows_from rows, SHARED_POINTER const char *columns, int right,
                                 sum_t sum[DOWN][RIGHT][4])
{
    UNROLL
    for (int d = 0; d < DEPTHS; d++) {
        struct words w;
        take_words(rows, columns, right, d, &w);
        multiply_all_words(mma, &w, sum);
    }
}

static inline void add_small(sum_t sum[DOWN][RIGHT][4]) { (void)sum; }
#endif
