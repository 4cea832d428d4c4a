/* Sets the columns' keys to the greatest: a thread a row. */
KERNEL void modefold(GLOBAL char *workspace, const struct match_rows p)
{
    const int64_t row = BLOCK * THREADS + THREAD;
    if (row < p.rows)
        ((GLOBAL uint32_t *)(workspace + p.place))[row] = 0xffffffffu;
}
