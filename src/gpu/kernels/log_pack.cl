/* Both factors of a logsumexp as exponentials: blocks before p[6] take x, the others y.
 * p[2], p[3], p[4], p[5]: bytes of the workspace before the maxima of x and of y, the exponentials of x and of y. */
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    SHARED struct spot_x spots_x[PACKED];
    SHARED struct spot_y spots_y[PACKED];
    SHARED struct sixteen shared_x[SIXTEENS(HELD_TILES * STEP * (PACKED + 1) * sizeof(acc_t))];
    SHARED acc_t maxima[THREADS];
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int64_t rows = S->p[7] >> 32, columns = S->p[7] & 0xffffffff;
    SHARED_POINTER acc_t *const tile = (SHARED_POINTER acc_t *)shared_x;
    if (BLOCK < S->p[6])
        pack_x(T, S, (uint32_t)BLOCK, rows, b.vectors != 0, (GLOBAL acc_t *)(workspace + S->p[2]),
               (GLOBAL acc_t *)(workspace + S->p[4]), spots_x, tile, maxima);
    else
        pack_y(T, S, (uint32_t)(BLOCK - S->p[6]), columns, b.vectors != 0, (GLOBAL acc_t *)(workspace + S->p[3]),
               (GLOBAL acc_t *)(workspace + S->p[5]), spots_y, tile, maxima);
}
