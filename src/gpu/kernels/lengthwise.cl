/* Rows of more than 1024 elements, up to a few tiles: a warp takes a row, a tile after the other.
 *
 * TILES: of a row. CHAIN: elements of a lane of its last tile, at most; FULL: and at least. */
KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    EXCHANGE_MEMORY
    WEIGHTS_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int n = (int)S->reduced_total, last = n - (TILES - 1) * TILE;
    /* the last warps may read another's row, and do not store it */
    const int64_t row = BLOCK * (THREADS / WARP) + THREAD / WARP, o = row < S->kept_total ? row : S->kept_total - 1;
    const struct place start = kept_place(S, o);
    const int shift = row_shift(T, start);
    struct state s[TILES], lanes[4];
    make_weights(weights_, last);
#if TILES > 1 && MERGE_WEIGHTS
    make_weights(weights_ + 2 * LEVELS, TILE);
#endif
    if (MERGE_WEIGHTS)
        BARRIER();
    tile_lanes(T, S, start, (TILES - 1) * TILE, last, shift, CHAIN, FULL, lanes);
    s[TILES - 1] = tile_levels(exchange_, weights_, last, shift, FULL, lanes);
#if TILES > 1
    UNROLL
    for (int i = 0; i < TILES - 1; i++)
        s[i] = s[TILES - 1];
    NO_UNROLL
    for (int tile = 0; tile < TILES - 1; tile++) {
        tile_lanes(T, S, start, tile * TILE, TILE, shift, STEPS_OF_TILE, STEPS_OF_TILE, lanes);
        const struct state a =
            tile_levels(exchange_, weights_ + (MERGE_WEIGHTS ? 2 * LEVELS : 0), TILE, shift, STEPS_OF_TILE, lanes);
        UNROLL
        for (int i = 0; i < TILES - 1; i++)
            s[i] = choose(i == tile, a, s[i]);
    }
    UNROLL
    for (int reach = TILES > 2 ? 2 : 1; reach; reach /= 2)
        UNROLL
        for (int i = 0; i < TILES / 2; i++)
            if (i < reach && i + reach < TILES)
                s[i] = combine(s[i], s[i + reach]);
#endif
    if (THREAD % WARP == 0 && row < S->kept_total)
        finish_output(T, S, o, s[0], n);
}
