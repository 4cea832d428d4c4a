/* The sizes of kernels/product.cl: a tile has 64 bytes of terms, and a warp's part of it is multiplied in 32 of them
 * at a time. */
#define AHEAD (PRODUCTS == 1 && ROWS / WARPS_DOWN * (COLUMNS / WARPS_RIGHT) <= 2048) /* registers for it */
enum {
    PIECE = 16,             /* bytes */
    PER = PIECE / ITEM,     /* elements of one */
    STEP = 64 / ITEM,       /* terms of a tile */
    DEPTHS = 2,             /* steps of the instruction in them */
    WARP_ROWS = ROWS / WARPS_DOWN,
    WARP_COLUMNS = COLUMNS / WARPS_RIGHT,
    DOWN = WARP_ROWS / 16,  /* products of a warp along its rows, */
    RIGHT = WARP_COLUMNS / 8, /* and along its columns */
    X_BYTES = ROWS * STEP * ITEM,
    STAGE_BYTES = (ROWS + COLUMNS) * STEP * ITEM,
    SUM_PITCH = COLUMNS + 8, /* floats of a row of sums, which lie where the stages were */
    SHARED_BYTES = STAGES * STAGE_BYTES > ROWS * SUM_PITCH * 4 ? STAGES * STAGE_BYTES : ROWS * SUM_PITCH * 4
};
