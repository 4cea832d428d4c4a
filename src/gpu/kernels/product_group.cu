/* multiply_tile of product_multiply.cl for four warps together: wgmma (PTX manual, "Asynchronous Warpgroup Level Matrix
 * Instructions"), inline PTX, for sm_90a alone. A warp gives its 16 rows of x from registers, as for mma, and gets their
 * sums as from there; columns of y are read from the tile in shared memory by the instruction itself, all of the
 * block's. Before this text multiply_columns is emitted, the instruction for so many columns.
 *
 * It runs while its warps go on. A step of a tile has words of its own, whose registers it reads until the next but one
 * begins: two steps, all of the last tile, are on their way when warps wait for the next ones. So its memory is not free
 * then: one tile less is brought ahead than stages are there. What copies wrote is shown to the instruction by each
 * thread before the barrier. */
#define SHOW_COPIES() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")

/* Words and sums are as they should be, and are the instruction's now. */
static inline void begin_group(void)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

static inline void end_group(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

/* Until at most one group, the last, still runs. */
static inline void wait_for_others(void)
{
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
}

static inline void add_small(sum_t sum[DOWN][RIGHT][4])
{
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    EVERY_SUM asm volatile("" : "+f"(sum[i][j][e])::"memory");
}

/* Where columns lie, as the instruction wants to have it ("Matrix Descriptor"): the address, distances in 16 bytes, and
 * how pieces are exchanged, which product_side.cl does in the same way: by 3 bits within 128 bytes, 2 within 64, 1
 * within 32. Along terms 8 columns of 64 bytes follow each other; else rows of at most 64 columns, 8 terms at a time. */
static inline uint64_t columns_at(SHARED_POINTER const char *columns, int depth)
{
    enum {
        ROW = Y_ALONG_TERMS ? 64 : COLUMNS * ITEM < 128 ? COLUMNS * ITEM : 128,
        EXCHANGE_KIND = ROW == 128 ? 1 : ROW == 64 ? 2 : 3,
        BESIDE = Y_ALONG_TERMS ? 1 : STEP * ROW / 16,
        BELOW = 8 * ROW / 16,
        NEXT = Y_ALONG_TERMS ? 32 : 32 / ITEM * ROW
    };
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(columns) + depth * NEXT;
    return (uint64_t)EXCHANGE_KIND << 62 | (uint64_t)BELOW << 32 | (uint64_t)BESIDE << 16 | (at & 0x3ffff) >> 4;
}

enum { SMALL = 0 };

static inline void multiply_tile(MMA_TYPE mma, struct rows_from rows, SHARED_POINTER const char *columns, int right,
                                 sum_t sum[DOWN][RIGHT][4])
{
    UNROLL
    for (int d = 0; d < DEPTHS; d++) {
        uint32_t x[DOWN][4];
        wait_for_others();
        UNROLL for (int i = 0; i < DOWN; i++) take_rows(rows, i, d, x[i]);
        begin_group();
        UNROLL for (int i = 0; i < DOWN; i++) multiply_columns(sum[i], x[i], columns_at(columns, d));
        end_group();
    }
    (void)mma;
    (void)right;
}
