/* Sums of short rows on tensor cores: a row is a column of the factor, which four threads read, 16 bytes each at a
 * time, and a chain of products by ones adds up; eight rows are a matrix, a warp has BATCHES of them. Every row of a
 * product holds all eight sums, so that groups of four threads each keep another batch's.
 *
 * p[0]: elements of a row, p[1]: pieces of a thread. Bound: bytes. */
enum { PLACES = 4, COLUMNS = 8, WARP_ROWS = COLUMNS * BATCHES };

KERNEL void modefold(POINTERS const struct bases b, SHAPE_PARAMETER, GLOBAL char *workspace)
{
    MMA_MEMORY
    shape_ptr S = SHAPE;
    struct tensors T = TENSORS(b);
    const int group = THREAD % WARP / PLACES, place = THREAD % PLACES;
    const int64_t first = (BLOCK * WARPS + THREAD / WARP) * WARP_ROWS;
    struct column_sums s[BATCHES];
    GLOBAL const bits_t *from[BATCHES];
    UNROLL
    for (int m = 0; m < BATCHES; m++) {
        const int64_t o = first + m * COLUMNS + group; /* past the end the last row is read, and not stored */
        from[m] = elements_of(T, S, o < S->kept_total ? o : S->kept_total - 1);
        s[m] = no_sums();
    }
    const int whole = b.vectors && S->p[0] % PIECE == 0;
    NO_UNROLL
    for (int64_t k = 0; k < S->p[1]; k++) {
        const int64_t at = (k * PLACES + place) * PIECE;
        struct four_words f[BATCHES];
        if (whole) {
            UNROLL
            for (int m = 0; m < BATCHES; m++)
                f[m] = piece_at(from[m], at, S->p[0], 1);
        } else {
            UNROLL
            for (int m = 0; m < BATCHES; m++)
                f[m] = piece_at(from[m], at, S->p[0], 0);
        }
        LOADED();
        UNROLL
        for (int m = 0; m < BATCHES; m++)
            add_piece(mma_, &s[m], f[m]);
    }
    UNROLL
    for (int c = 0; c < 2; c++) {
        struct state sum = state_identity();
        const int64_t o = first + group * COLUMNS + 2 * place + c;
        UNROLL
        for (int m = 0; m < BATCHES; m++)
            sum.r0 = group == m ? (total_t)(s[m].c[0][c] + s[m].c[1][c]) : sum.r0;
        if (group < BATCHES && o < S->kept_total)
            finish_output(T, S, o, sum, S->reduced_total);
    }
}
