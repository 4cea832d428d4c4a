/* The columns' keys become the nearest query of every row of train and its distance: a thread a row. */
KERNEL void modefold(GLOBAL char *workspace, GLOBAL char *indices, GLOBAL char *distances, const struct match_results p)
{
    const int64_t row = BLOCK * THREADS + THREAD;
    if (row >= p.rows)
        return;
    const uint32_t key = ((GLOBAL const uint32_t *)(workspace + p.columns))[row];
    const int none = key == 0xffffffffu;
    const int32_t index = none ? -1 : (int32_t)(key & ((1u << p.column_shift) - 1u));
    ((GLOBAL int32_t *)(workspace + p.back))[row] = index;
    if (p.has_indices)
        ((GLOBAL int32_t *)(indices + p.indices))[row] = index;
    if (p.has_distances)
        ((GLOBAL int32_t *)(distances + p.distances))[row] = none ? 0x7fffffff : (int32_t)(key >> p.column_shift);
}
