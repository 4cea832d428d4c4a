/* Where a warp's rows of x lie for product_multiply.cl: in a tile, which product_side.cl filled. */
struct rows_from {
    SHARED_POINTER const char *tile;
    int first;
};

static inline struct rows_from rows_of(SHARED_POINTER const char *tile, int first)
{
    struct rows_from rows;
    rows.tile = tile;
    rows.first = first;
    return rows;
}

/* Rows 16 i and the next of the warp, step `depth` of the tile's terms. */
static inline void take_rows(struct rows_from rows, int i, int depth, uint32_t words[4])
{
    take_x(rows.tile, rows.first + 16 * i, depth, 1, words);
}
