/* Matching on the CPU.
 *
 * All rows of train that take part are packed (tile.h). A task is a chunk of queries of one pair of sets. It goes
 * through the train set in segments that stay in the second cache, within one four queries at a time, and within these
 * tile by tile: distances into the first cache, then the least keys of every lane, or all distances below the worst
 * neighbour so far where more than two are kept. Keys are 32 bits, distance before number in the segment, so that ties
 * go to the smallest index; the segments' keys meet in 64 bits. The same distances give the least key of every row of
 * train over the chunk's queries, which goes to the thread's own columns.
 *
 * Memory: the packed rows; for columns, 8 bytes for each row of train and thread. */
#include <pthread.h>

#include "cpu/cpu.h"
#include "match.h"
#include "tile.h"

enum {
    CHUNK = 1 << MATCH_CHUNK_BITS, /* queries of a task, at most */
    SMALL_CHUNK = CHUNK / 4,
    CACHE = 1 << 18, /* bytes of a packed segment, about */
    PACK_UNITS = 16  /* of a packing task */
};

/* ---- instruction sets ---- */

#ifdef MF_HAVE_X86
static int has_popcount(void)
{
    return __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512vbmi2");
}
#endif
static int always(void)
{
    return 1;
}

/* By the names of the device's instruction set, best first. */
static const struct {
    const char *isa;
    void (*fill)(struct match_kernels *k);
    int (*here)(void);
} sets[] = {
#ifdef MF_HAVE_X86
    {"avx512", mf_match_kernels_avx512, has_popcount},
    {"avx512", mf_match_kernels_avx2, always},
    {"avx2", mf_match_kernels_avx2, always},
#endif
#ifdef MF_HAVE_NEON
    {"neon", mf_match_kernels_neon, always},
#endif
};

static struct match_kernels kernels_of(const struct mf_device *device)
{
    struct match_kernels kernels;
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        if (!strcmp(sets[i].isa, mf_cpu_isa_name(device)) && sets[i].here()) {
            sets[i].fill(&kernels);
            return kernels;
        }
    mf_match_kernels_scalar(&kernels);
    return kernels;
}

/* ---- one call ---- */

struct work {
    const struct match *m;
    struct match_kernels k;
    int segment;          /* rows of a segment, a multiple of MATCH_ROWS */
    int64_t chunk;        /* queries of a task */
    int64_t query_bytes;  /* of a prepared query, rounded up to whole cache lines */
    int64_t *unit_start;  /* pairs + 1: units before each pair's */
    int64_t *task_start;  /* pairs + 1: tasks before each pair's */
    int64_t *active;      /* pairs: rows of train that take part */
    int32_t *row;         /* where train is masked: the active rows' positions in their sets, from train_start[p] on */
    char *packed;         /* unit by unit */
    char *prepared;       /* a worker's MATCH_QUERIES queries */
    uint64_t *columns;    /* a worker's keys of all rows of train */
    const char **pointer; /* a worker's rows of one unit */
};

static int64_t position_of(const struct work *w, int64_t pair, int64_t row)
{
    return w->row ? w->row[w->m->train_start[pair] + row] : row;
}

/* The p with start[p] <= i < start[p + 1]. */
static int64_t find_pair(const int64_t *start, int64_t pairs, int64_t i)
{
    int64_t low = 0, high = pairs;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (start[middle] <= i)
            low = middle;
        else
            high = middle;
    }
    while (start[low + 1] <= i)
        low++;
    return low;
}

/* ---- packing ---- */

static void pack_unit(const struct work *w, int64_t unit, const char **rows)
{
    const struct match *m = w->m;
    const int64_t pair = find_pair(w->unit_start, m->pairs, unit);
    const int64_t first = (unit - w->unit_start[pair]) * w->k.unit;
    for (int l = 0; l < w->k.unit; l++)
        rows[l] = first + l < w->active[pair]
                      ? m->train.data + (m->train_start[pair] + position_of(w, pair, first + l)) * m->train.stride
                      : NULL;
    w->k.pack(rows, m->words, w->packed + unit * w->k.unit_bytes(m->words));
}

static void pack_some(void *context, int64_t i, int worker)
{
    const struct work *w = context;
    const int64_t units = w->unit_start[w->m->pairs], end = (i + 1) * PACK_UNITS < units ? (i + 1) * PACK_UNITS : units;
    for (int64_t u = i * PACK_UNITS; u < end; u++)
        pack_unit(w, u, w->pointer + (int64_t)worker * w->k.unit);
}

/* ---- one chunk ---- */

/* What a task works with; it lies on the stack. */
struct chunk {
    int64_t pair, first; /* its first query, of all */
    int count, active;
    int worker;
    int number[CHUNK + MATCH_QUERIES]; /* the active queries in it, and room to fill up */
    uint64_t best[CHUNK][MF_MATCH_MAX_K];
    _Alignas(64) uint32_t distance[MATCH_QUERIES * MATCH_ROWS];
    _Alignas(64) uint32_t least[MATCH_SEGMENT]; /* keys of the segment's rows: distance, then number in the chunk */
};

static void insert(uint64_t *best, int keep, uint64_t key)
{
    int i = keep - 1;
    if (key >= best[i])
        return;
    for (; i > 0 && best[i - 1] > key; i--)
        best[i] = best[i - 1];
    best[i] = key;
}

/* The lanes' two least keys of one query and a segment that begins at row `first`. */
static void merge_lanes(const struct work *w, const uint32_t *state, int64_t pair, int64_t first, uint64_t *best)
{
    const uint32_t none = UINT32_MAX >> w->k.shift, low = ((uint32_t)1 << w->k.shift) - 1;
    for (int i = 0; i < 2 * w->k.lanes; i++) {
        const uint32_t distance = state[i] >> w->k.shift;
        if (distance >= none || distance > best[w->m->keep - 1] >> 32)
            continue;
        const int64_t row = first + (int64_t)(state[i] & low) * w->k.lanes + i % w->k.lanes;
        insert(best, w->m->keep, match_key(distance, (uint32_t)position_of(w, pair, row)));
    }
}

/* Every distance of a tile below that of the worst neighbour; equal ones have larger indices. */
static void insert_below(const struct work *w, const uint32_t *distance, int rows, int64_t pair, int64_t first,
                         uint64_t *best)
{
    const int keep = w->m->keep;
    const uint32_t none = UINT32_MAX >> w->k.shift;
    uint32_t limit = best[keep - 1] == MATCH_NONE ? none : (uint32_t)(best[keep - 1] >> 32);
    for (int r = 0; (r = w->k.next_below(distance, r, rows, limit)) < rows; r++) {
        insert(best, keep, match_key(distance[r], (uint32_t)position_of(w, pair, first + r)));
        limit = best[keep - 1] == MATCH_NONE ? none : (uint32_t)(best[keep - 1] >> 32);
    }
}

/* What does not take part: rows behind the last one, and those that the pairs' mask leaves out. */
static void blank(const struct work *w, struct chunk *c, const int *number, int64_t first, int rows)
{
    const struct match *m = w->m;
    const uint32_t none = UINT32_MAX >> w->k.shift;
    const int64_t here = w->active[c->pair] - first;
    for (int q = 0; q < MATCH_QUERIES; q++) {
        uint32_t *distance = c->distance + q * MATCH_ROWS;
        for (int64_t r = here < rows ? here : rows; r < rows; r++)
            distance[r] = none;
        if (!m->pair_mask.data)
            continue;
        const char *mask = m->pair_mask.data + (c->first + number[q]) * m->pair_mask.stride;
        for (int64_t r = 0; r < rows && r < here; r++)
            if (!mask[position_of(w, c->pair, first + r)])
                distance[r] = none;
    }
}

/* Queries number[0 ... count - 1] of the chunk (number has MATCH_QUERIES) with one segment. */
static void match_few(const struct work *w, struct chunk *c, const int *number, int count, int64_t begin, int64_t end)
{
    const struct match *m = w->m;
    const int two = m->keep <= 2;
    const void *query[MATCH_QUERIES];
    _Alignas(64) uint32_t state[MATCH_QUERIES][32];
    memset(state, 0xff, sizeof state);
    for (int q = 0; q < MATCH_QUERIES; q++) {
        char *to = w->prepared + (c->worker * MATCH_QUERIES + q) * w->query_bytes;
        w->k.prepare(m->queries.data + (c->first + number[q]) * m->queries.stride, m->words, to);
        query[q] = to;
    }
    for (int64_t r = begin; r < end; r += MATCH_ROWS) {
        const int64_t left = (end - r + w->k.unit - 1) / w->k.unit;
        const int units = left * w->k.unit < MATCH_ROWS ? (int)left : MATCH_ROWS / w->k.unit, rows = units * w->k.unit;
        const int64_t unit = w->unit_start[c->pair] + r / w->k.unit;
        w->k.distances(query, w->packed + unit * w->k.unit_bytes(m->words), units, m->words, c->distance);
        if (m->pair_mask.data || r + rows > w->active[c->pair])
            blank(w, c, number, r, rows);
        for (int q = 0; q < count; q++) {
            const uint32_t *distance = c->distance + q * MATCH_ROWS;
            if (m->keep && two)
                w->k.best_two(distance, rows, (uint32_t)((r - begin) / w->k.lanes), state[q]);
            else if (m->keep)
                insert_below(w, distance, rows, c->pair, r, c->best[number[q]]);
            if (m->columns)
                w->k.columns(distance, rows, (uint32_t)number[q], c->least + (r - begin));
        }
    }
    for (int q = 0; m->keep && two && q < count; q++)
        merge_lanes(w, state[q], c->pair, begin, c->best[number[q]]);
}

static void merge_columns(const struct work *w, const struct chunk *c, int64_t begin, int64_t end)
{
    const struct match *m = w->m;
    const uint32_t none = UINT32_MAX >> w->k.shift;
    uint64_t *columns = w->columns + c->worker * m->train_count + m->train_start[c->pair];
    const int64_t first = c->first - m->query_start[c->pair];
    for (int64_t r = begin; r < end; r++) {
        const uint32_t distance = c->least[r - begin] >> MATCH_CHUNK_BITS;
        const uint64_t key = match_key(distance, (uint32_t)(first + (c->least[r - begin] & (CHUNK - 1))));
        uint64_t *column = columns + position_of(w, c->pair, r);
        if (distance < none && key < *column)
            *column = key;
    }
}

static int passes(const struct match *m, uint64_t first, uint64_t second)
{
    const int64_t d1 = (int64_t)(first >> 32), d2 = (int64_t)(second >> 32);
    if (first == MATCH_NONE || ((m->tests & MF_MATCH_MAX_DISTANCE) && d1 > m->max_distance))
        return 0;
    if (second == MATCH_NONE)
        return 1;
    return !((m->tests & MF_MATCH_DIFFERENCE) && d2 - d1 < m->difference) &&
           !((m->tests & MF_MATCH_RATIO) && d1 * MATCH_RATIO_ONE >= m->ratio * d2);
}

static void store(const struct match *m, int64_t query, const uint64_t *best)
{
    int32_t *indices = (int32_t *)(uintptr_t)m->indices.data, *distances = (int32_t *)(uintptr_t)m->distances.data,
            *matches = (int32_t *)(uintptr_t)m->matches.data;
    for (int i = 0; i < m->k; i++) {
        const int none = best[i] == MATCH_NONE;
        if (indices)
            indices[query * m->k + i] = none ? -1 : (int32_t)(best[i] & UINT32_MAX);
        if (distances)
            distances[query * m->k + i] = none ? MATCH_NO_DISTANCE : (int32_t)(best[i] >> 32);
    }
    if (matches)
        matches[query] = passes(m, best[0], m->keep > 1 ? best[1] : MATCH_NONE) ? (int32_t)(best[0] & UINT32_MAX) : -1;
}

static void match_chunk(void *context, int64_t i, int worker)
{
    const struct work *w = context;
    const struct match *m = w->m;
    struct chunk c;
    c.pair = find_pair(w->task_start, m->pairs, i);
    c.first = m->query_start[c.pair] + (i - w->task_start[c.pair]) * w->chunk;
    c.worker = worker;
    const int64_t left = m->query_start[c.pair + 1] - c.first;
    c.count = left < w->chunk ? (int)left : (int)w->chunk;
    c.active = 0;
    memset(c.best, 0xff, sizeof c.best);
    for (int q = 0; q < c.count; q++)
        if (!m->query_mask.data || m->query_mask.data[c.first + q])
            c.number[c.active++] = q;
    for (int q = 0; q < MATCH_QUERIES && c.active; q++)
        c.number[c.active + q] = c.number[0];
    for (int64_t begin = 0; begin < w->active[c.pair] && c.active; begin += w->segment) {
        const int64_t end = begin + w->segment < w->active[c.pair] ? begin + w->segment : w->active[c.pair];
        if (m->columns)
            memset(c.least, 0xff, sizeof c.least);
        for (int q = 0; q < c.active; q += MATCH_QUERIES)
            match_few(w, &c, c.number + q, c.active - q < MATCH_QUERIES ? c.active - q : MATCH_QUERIES, begin, end);
        if (m->columns)
            merge_columns(w, &c, begin, end);
    }
    for (int q = 0; q < c.count; q++)
        store(m, c.first + q, c.best[q]);
}

/* ---- columns ---- */

static void store_columns(const struct work *w)
{
    const struct match *m = w->m;
    int32_t *indices = (int32_t *)(uintptr_t)m->train_indices.data,
            *distances = (int32_t *)(uintptr_t)m->train_distances.data;
    for (int64_t t = 0; t < m->train_count; t++) {
        uint64_t least = w->columns[t];
        for (int worker = 1; worker < m->threads; worker++)
            if (w->columns[worker * m->train_count + t] < least)
                least = w->columns[worker * m->train_count + t];
        w->columns[t] = least;
        if (indices)
            indices[t] = least == MATCH_NONE ? -1 : (int32_t)(least & UINT32_MAX);
        if (distances)
            distances[t] = least == MATCH_NONE ? MATCH_NO_DISTANCE : (int32_t)(least >> 32);
    }
}

static void cross_check(const struct work *w)
{
    const struct match *m = w->m;
    int32_t *matches = (int32_t *)(uintptr_t)m->matches.data;
    for (int64_t p = 0; p < m->pairs; p++)
        for (int64_t q = m->query_start[p]; q < m->query_start[p + 1]; q++)
            if (matches[q] >= 0 &&
                (w->columns[m->train_start[p] + matches[q]] & UINT32_MAX) != (uint64_t)(q - m->query_start[p]))
                matches[q] = -1;
}

/* ---- the whole ---- */

static mf_status get(void *pointer, int64_t count, int64_t item)
{
    int64_t bytes;
    if (!mf_mul(count, item, &bytes))
        return mf_fail(MF_ERROR_OVERFLOW, "mf_match: %lld times %lld bytes of scratch memory", (long long)count,
                       (long long)item);
    void *memory = mf_alloc_aligned((size_t)bytes);
    memcpy(pointer, &memory, sizeof memory);
    return memory ? MF_OK : MF_ERROR_MEMORY;
}

/* Which rows of train take part, and where their units and the tasks begin. */
static void count_all(struct work *w)
{
    const struct match *m = w->m;
    w->unit_start[0] = w->task_start[0] = 0;
    for (int64_t p = 0; p < m->pairs; p++) {
        const int64_t first = m->train_start[p], rows = m->train_start[p + 1] - first;
        w->active[p] = rows;
        if (w->row) {
            w->active[p] = 0;
            for (int64_t t = 0; t < rows; t++)
                if (m->train_mask.data[first + t])
                    w->row[first + w->active[p]++] = (int32_t)t;
        }
        w->unit_start[p + 1] = w->unit_start[p] + (w->active[p] + w->k.unit - 1) / w->k.unit;
        w->task_start[p + 1] = w->task_start[p] + (m->query_start[p + 1] - m->query_start[p] + w->chunk - 1) / w->chunk;
    }
}

static mf_status prepare(struct work *w)
{
    const struct match *m = w->m;
    const int64_t threads = m->threads;
    MF_TRY(get(&w->unit_start, m->pairs + 1, sizeof *w->unit_start));
    MF_TRY(get(&w->task_start, m->pairs + 1, sizeof *w->task_start));
    MF_TRY(get(&w->active, m->pairs, sizeof *w->active));
    if (m->train_mask.data)
        MF_TRY(get(&w->row, m->train_count, sizeof *w->row));
    count_all(w);
    MF_TRY(get(&w->packed, w->unit_start[m->pairs], w->k.unit_bytes(m->words)));
    MF_TRY(get(&w->prepared, threads * MATCH_QUERIES, w->query_bytes));
    MF_TRY(get(&w->pointer, threads * w->k.unit, sizeof *w->pointer));
    if (!m->columns)
        return MF_OK;
    MF_TRY(get(&w->columns, m->train_count * threads, sizeof *w->columns));
    memset(w->columns, 0xff, (size_t)(m->train_count * threads) * sizeof *w->columns);
    return MF_OK;
}

static void choose(struct work *w)
{
    const struct match *m = w->m;
    const int64_t fit = CACHE / (w->k.unit_bytes(m->words) / w->k.unit) / MATCH_ROWS * MATCH_ROWS;
    w->segment = fit < MATCH_ROWS ? MATCH_ROWS : fit > MATCH_SEGMENT ? MATCH_SEGMENT : (int)fit;
    w->query_bytes = (w->k.query_bytes(m->words) + 63) / 64 * 64;
    /* Several threads have more tasks, so that they end together: where columns are merged after each, four a thread;
     * else of a few queries, as a task costs nothing beside them. */
    const int64_t share = m->query_count / (4 * m->threads) / MATCH_QUERIES * MATCH_QUERIES,
                  most = m->threads == 1 || m->columns ? CHUNK : SMALL_CHUNK;
    w->chunk = m->threads == 1 || share > most ? most : share < MATCH_QUERIES ? MATCH_QUERIES : share;
}

mf_status mf_match_on_cpu(const struct match *m)
{
    struct work w = {.m = m, .k = kernels_of(m->device)};
    choose(&w);
    mf_status status = prepare(&w);
    if (status == MF_OK) {
        struct threads *pool = m->device->threads;
        mf_parallel(pool, m->threads, (w.unit_start[m->pairs] + PACK_UNITS - 1) / PACK_UNITS, pack_some, &w);
        mf_parallel(pool, m->threads, w.task_start[m->pairs], match_chunk, &w);
        if (m->columns)
            store_columns(&w);
        if (m->matches.data && (m->tests & MF_MATCH_CROSS_CHECK))
            cross_check(&w);
    }
    mf_free(w.unit_start);
    mf_free(w.task_start);
    mf_free(w.active);
    mf_free(w.row);
    mf_free(w.packed);
    mf_free(w.prepared);
    mf_free(w.columns);
    mf_free(w.pointer);
    return status;
}
