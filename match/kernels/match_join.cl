/* The lists of a query's splits become one, then the outputs; the tests. A thread a query. */
static inline int passes(const struct match_results *p, uint64_t first, uint64_t second)
{
    const int64_t d1 = (int64_t)(first >> 32), d2 = (int64_t)(second >> 32);
    if (first == NO_KEY || ((p->tests & 4) && d1 > p->max_distance))
        return 0;
    if (second == NO_KEY)
        return 1;
    return !((p->tests & 1) && d2 - d1 < p->difference) && !((p->tests & 2) && d1 * 65536 >= p->ratio * d2);
}

KERNEL void modefold(GLOBAL char *workspace, GLOBAL char *indices, GLOBAL char *distances, GLOBAL char *matches,
                     const struct match_sets s, const struct match_results p)
{
    const int set = set_of(&s, (int32_t)BLOCK);
    const int32_t number = ((int32_t)BLOCK - s.block[set]) * THREADS + THREAD;
    if (number >= s.query_count[set])
        return;
    const int64_t query = (int64_t)s.query[set] + number;
    GLOBAL const uint64_t *keys = (GLOBAL const uint64_t *)(workspace + s.keys) + query * s.splits * KEEP;
    uint64_t best[KEEP + 1];
    UNROLL
    for (int i = 0; i <= KEEP; i++)
        best[i] = NO_KEY;
    for (int n = 0; n < s.splits * KEEP; n++) {
        uint64_t key = keys[n];
        UNROLL
        for (int i = 0; i < KEEP; i++) {
            const uint64_t other = best[i];
            best[i] = key < other ? key : other;
            key = key < other ? other : key;
        }
    }
    UNROLL
    for (int i = 0; i < KEEP; i++)
        if (i < p.k) {
            const int none = best[i] == NO_KEY;
            if (p.has_indices)
                ((GLOBAL int32_t *)(indices + p.indices))[query * p.k + i] = none ? -1 : (int32_t)(uint32_t)best[i];
            if (p.has_distances)
                ((GLOBAL int32_t *)(distances + p.distances))[query * p.k + i] =
                    none ? 0x7fffffff : (int32_t)(best[i] >> 32);
        }
    if (p.writes_back)
        ((GLOBAL int32_t *)(workspace + p.back))[query] = best[0] == NO_KEY ? -1 : (int32_t)(uint32_t)best[0];
    if (p.has_matches) {
        const int32_t row = (int32_t)(uint32_t)best[0];
        int good = passes(&p, best[0], best[1]);
        if (good && (p.tests & 8))
            good = ((GLOBAL const int32_t *)(workspace + p.back))[s.row[set] + row] == number;
        ((GLOBAL int32_t *)(matches + p.matches))[query] = good ? row : -1;
    }
}
