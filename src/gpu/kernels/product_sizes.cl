/* The sizes of kernels/product.cl and window.cl: a tile has 64 bytes of terms, and a warp's part of it is multiplied in
 * 32 of them at a time. X_STAGED: rows of x come in tiles; BEFORE_STAGES: bytes of shared memory before all tiles;
 * RESIDENT: tiles stay there, and sums have memory of their own. */
#ifndef SUMS_AT
#define SUMS_AT 0 /* bytes of shared memory before sums that lie where stages were */
#endif
/* There are registers for what is multiplied next. */
#define AHEAD (!GROUPED && X_STAGED && PRODUCTS == 1 && ROWS / WARPS_DOWN * (COLUMNS / WARPS_RIGHT) <= 2048)
enum {
    PIECE = 16,             /* bytes */
    PER = PIECE / ITEM,     /* elements of one */
    STEP = 64 / ITEM,       /* terms of a tile */
    DEPTHS = 2,             /* steps of the instruction in them */
    WARP_ROWS = ROWS / WARPS_DOWN,
    WARP_COLUMNS = COLUMNS / WARPS_RIGHT,
    DOWN = WARP_ROWS / 16,  /* products of a warp along its rows, */
    RIGHT = WARP_COLUMNS / 8, /* and along its columns */
    X_BYTES = X_STAGED * ROWS * STEP * ITEM,
    STAGE_BYTES = X_BYTES + COLUMNS * STEP * ITEM,
    PITCH = COLUMNS + 8, /* floats of a row of sums, which lie where the stages were: for the banks */
    GROUPS = COLUMNS / VECTOR,
    AT_ONCE = GROUPED ? 2 : 1,            /* tiles that are multiplied before the block waits for all of it again */
    BROUGHT = STAGES - AT_ONCE - GROUPED, /* on their way: if GROUPED the tile before may still be multiplied, too */
    ALL_BYTES = BEFORE_STAGES + STAGES * STAGE_BYTES,
    SUM_BYTES = (POOLS_EARLY ? ROWS / 4 : ROWS) * PITCH * 4,
    SUMS_END = SUMS_AT + SUM_BYTES,
    SHARED_BYTES = RESIDENT ? ALL_BYTES + SUM_BYTES : ALL_BYTES > SUMS_END ? ALL_BYTES : SUMS_END
};

#define EVERY_SUM                                \
    UNROLL                                       \
    for (int i = 0; i < DOWN; i++)               \
        UNROLL                                   \
        for (int j = 0; j < RIGHT; j++)          \
            UNROLL                               \
            for (int e = 0; e < 4; e++)

#if !GROUPED
#define SHOW_COPIES()
#endif
