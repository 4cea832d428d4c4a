/* The bits of every row of train: a thread a row. p: rows, words of a row, and bytes as in struct match_sets. */
KERNEL void modefold(GLOBAL const char *train, GLOBAL char *workspace, const struct match_rows p)
{
    const int64_t row = BLOCK * THREADS + THREAD;
    if (row >= p.rows)
        return;
    GLOBAL const uint32_t *from = (GLOBAL const uint32_t *)(train + p.train + row * p.stride);
    int32_t sum = 0;
    for (int64_t w = 0; w < p.words; w++)
        sum += (int32_t)POPCOUNT(from[w]);
    ((GLOBAL int32_t *)(workspace + p.place))[row] = sum;
}
