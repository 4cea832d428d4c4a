/* The bits of every row of train, and the queries' limits, which are not known yet: a thread a row and a query. p: rows,
 * words of a row, bytes as in struct match_sets, and how many limits there are, and where. */
KERNEL void modefold(GLOBAL const char *train, GLOBAL char *workspace, const struct match_rows p)
{
    const int64_t row = BLOCK * THREADS + THREAD;
    if (row < p.limits)
        ((GLOBAL uint32_t *)(workspace + p.limit_place))[row] = NO_DISTANCE;
    if (row >= p.rows)
        return;
    GLOBAL const uint32_t *from = (GLOBAL const uint32_t *)(train + p.train + row * p.stride);
    int32_t sum = 0;
    for (int64_t w = 0; w < p.words; w++)
        sum += (int32_t)POPCOUNT(from[w]);
    ((GLOBAL int32_t *)(workspace + p.place))[row] = sum;
}
