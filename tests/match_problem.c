/* Random problems of matching. */
#include "match_problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES, TRAIN, QUERY_MASK, TRAIN_MASK, PAIR_MASK, INDICES, DISTANCES, MATCHES, TRAIN_INDICES, TRAIN_DISTANCES };
enum { GUARD = 64, GUARD_BYTE = 0x5a };
static const char *const names[MATCH_TENSORS] = {"queries",       "train",          "query_mask", "train_mask",
                                                 "pair_mask",     "indices",        "distances",  "matches",
                                                 "train_indices", "train_distances"};

/* ---- chance ---- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t below(uint64_t *state, int64_t n)
{
    return (int64_t)(next(state) % (uint64_t)n);
}

static int one_in(uint64_t *state, int64_t n)
{
    return below(state, n) == 0;
}

/* ---- making ---- */

static void add_tensor(struct match_problem *p, int i, mf_type type, int64_t rows, int64_t columns, int64_t gap)
{
    const int64_t item = (type & 0xff) / 8;
    p->shape[i][0] = rows;
    p->shape[i][1] = columns < 0 ? 1 : columns;
    p->strides[i][0] = p->shape[i][1] + gap;
    p->strides[i][1] = 1;
    p->bytes[i] = rows * p->strides[i][0] * item;
    p->memory[i] = malloc((size_t)p->bytes[i] + GUARD);
    memset(p->memory[i], GUARD_BYTE, (size_t)p->bytes[i] + GUARD);
    p->tensor[i] = mf_tensor(p->memory[i], type, columns < 0 ? 1 : 2, p->shape[i]);
    p->tensor[i].strides = gap ? p->strides[i] : NULL;
}

/* Rows that are random, few different ones, all alike, or neighbours of earlier ones. */
static void fill_rows(struct match_problem *p, int i, int kind, uint64_t *state)
{
    const int64_t rows = p->shape[i][0], item = p->tensor[i].dtype.bits / 8, step = p->strides[i][0] * item,
                  bytes = 4 * p->words;
    for (int64_t r = 0; r < rows; r++) {
        char *row = p->memory[i] + r * step;
        for (int64_t b = 0; b < bytes; b++)
            row[b] = (char)(kind == 1 ? below(state, 2) * (b == 0) : kind == 2 ? 7 : (int)(next(state) >> 40));
        if (kind < 3)
            continue;
        const char *from = i == TRAIN && p->shape[QUERIES][0] && one_in(state, 2)
                               ? p->memory[QUERIES] + below(state, p->shape[QUERIES][0]) * p->strides[QUERIES][0] *
                                                          (p->tensor[QUERIES].dtype.bits / 8)
                               : p->memory[i] + below(state, r + 1) * step;
        memmove(row, from, (size_t)bytes);
        for (int64_t flips = below(state, 8); flips > 0; flips--)
            row[below(state, bytes)] ^= (char)(1 << below(state, 8));
    }
}

static void fill_mask(struct match_problem *p, int i, uint64_t *state)
{
    const int64_t zeros = below(state, 4);
    for (int64_t b = 0; b < p->bytes[i]; b++)
        p->memory[i][b] =
            (char)(below(state, 4) >= zeros ? 1 + below(state, p->tensor[i].dtype.code == 6 ? 1 : 100) : 0);
}

/* Cuts rows into sets, some of them empty. */
static void cut(int64_t *start, int64_t pairs, int64_t rows, uint64_t *state)
{
    start[0] = 0;
    for (int64_t s = 1; s < pairs; s++)
        start[s] = one_in(state, 4) ? start[s - 1] : start[s - 1] + below(state, rows - start[s - 1] + 1);
    start[pairs] = rows;
}

static void add_rows(struct match_problem *p, int small, uint64_t *state)
{
    static const int64_t words[] = {1, 2, 3, 7, 8, 9, 16, 16, 16, 24, 31, 33, 64, 70};
    static const int64_t sizes[] = {0, 1, 2, 5, 17, 40, 100, 300, 900, 2500, 5000};
    static const mf_type types[] = {MF_U8, MF_I8, MF_U16, MF_I32, MF_U32, MF_U64, MF_I64};
    p->words = words[below(state, 14)];
    for (int i = 0; i < 2; i++) {
        mf_type type = types[below(state, 7)];
        if ((type & 0xff) == 64 && p->words % 2)
            type = MF_U32;
        const int64_t item = (type & 0xff) / 8,
                      gap = one_in(state, 4) ? (item < 4 ? 4 / item : 1) * below(state, 3) : 0;
        add_tensor(p, i, type, sizes[below(state, small ? 8 : 8 + 3 * i)], 4 * p->words / item, gap);
        fill_rows(p, i, (int)below(state, 5), state);
    }
}

static void add_masks(struct match_problem *p, uint64_t *state)
{
    static const mf_type types[] = {MF_BOOL, MF_U8, MF_I8};
    const DLTensor **const place[] = {&p->input.query_mask, &p->input.train_mask, &p->input.pair_mask};
    for (int i = QUERY_MASK; i <= PAIR_MASK; i++) {
        const int64_t rows = p->shape[i == TRAIN_MASK][0];
        if (!one_in(state, 4))
            continue;
        add_tensor(p, i, types[below(state, 3)], rows, i == PAIR_MASK ? p->shape[TRAIN][0] : -1,
                   i == PAIR_MASK ? below(state, 3) : 0);
        fill_mask(p, i, state);
        *place[i - QUERY_MASK] = &p->tensor[i];
    }
}

static void add_outputs(struct match_problem *p, uint64_t *state)
{
    static const int ks[] = {1, 2, 2, 2, 3, 4, 5, 8, 16};
    const DLTensor **const place[] = {&p->output.indices, &p->output.distances, &p->output.matches,
                                      &p->output.train_indices, &p->output.train_distances};
    const int64_t k = ks[below(state, 9)];
    for (int i = INDICES; i < MATCH_TENSORS; i++) {
        if (one_in(state, 3))
            continue;
        add_tensor(p, i, MF_I32, p->shape[i >= TRAIN_INDICES][0], i <= DISTANCES ? k : -1, 0);
        *place[i - INDICES] = &p->tensor[i];
        p->expected[i - INDICES] = malloc((size_t)p->bytes[i] + 1);
    }
}

void match_problem_make(uint64_t seed, int small, struct match_problem *p)
{
    uint64_t state = seed * 2 + 1;
    memset(p, 0, sizeof *p);
    p->seed = seed;
    add_rows(p, small, &state);
    p->input.queries = &p->tensor[QUERIES];
    p->input.train = &p->tensor[TRAIN];
    add_masks(p, &state);
    add_outputs(p, &state);
    p->pairs = 1;
    p->start[0][1] = p->shape[QUERIES][0];
    p->start[1][1] = p->shape[TRAIN][0];
    if (one_in(&state, 3)) {
        p->input.pairs = p->pairs = 1 + below(&state, MATCH_SETS);
        for (int i = 0; i < 2; i++)
            cut(p->start[i], p->pairs, p->shape[i][0], &state);
        p->input.query_start = p->start[0];
        p->input.train_start = p->start[1];
    }
    p->options.tests = (uint32_t)below(&state, 16);
    p->options.difference = below(&state, 2 + p->words);
    p->options.max_distance = below(&state, 20 * p->words);
    p->options.ratio = (double)below(&state, 1001) / 1000;
    p->options.threads = (int)below(&state, 4);
}

void match_problem_free(struct match_problem *p)
{
    for (int i = 0; i < MATCH_TENSORS; i++)
        free(p->memory[i]);
    for (int i = 0; i < 5; i++)
        free(p->expected[i]);
}

/* ---- the double loop ---- */

static const char *row_of(const struct match_problem *p, int i, int64_t r)
{
    return p->memory[i] + r * p->strides[i][0] * (p->tensor[i].dtype.bits / 8);
}

static int64_t distance_of(const struct match_problem *p, int64_t q, int64_t t)
{
    const char *a = row_of(p, QUERIES, q), *b = row_of(p, TRAIN, t);
    int64_t sum = 0;
    for (int64_t i = 0; i < 4 * p->words; i++)
        sum += __builtin_popcount((unsigned char)(a[i] ^ b[i]));
    return sum;
}

static int takes_part(const struct match_problem *p, int64_t q, int64_t t, int64_t set_t)
{
    return (!p->input.query_mask || *row_of(p, QUERY_MASK, q)) && (!p->input.train_mask || *row_of(p, TRAIN_MASK, t)) &&
           (!p->input.pair_mask || row_of(p, PAIR_MASK, q)[set_t]);
}

struct nearest {
    int64_t count, distance[MF_MATCH_MAX_K], index[MF_MATCH_MAX_K];
};

/* Keeps the order by distance, then by arrival. */
static void consider(struct nearest *n, int64_t distance, int64_t index)
{
    int64_t i = n->count < MF_MATCH_MAX_K ? n->count++ : MF_MATCH_MAX_K;
    for (; i > 0 && n->distance[i - 1] > distance; i--)
        if (i < MF_MATCH_MAX_K) {
            n->distance[i] = n->distance[i - 1];
            n->index[i] = n->index[i - 1];
        }
    if (i < MF_MATCH_MAX_K) {
        n->distance[i] = distance;
        n->index[i] = index;
    }
}

static int passes(const mf_match_options *o, const struct nearest *n)
{
    if (!n->count || ((o->tests & MF_MATCH_MAX_DISTANCE) && n->distance[0] > o->max_distance))
        return 0;
    if (n->count == 1)
        return 1;
    if ((o->tests & MF_MATCH_DIFFERENCE) && n->distance[1] - n->distance[0] < o->difference)
        return 0;
    const int64_t ratio = (int64_t)(o->ratio * 65536 + 0.5);
    return !(o->tests & MF_MATCH_RATIO) || n->distance[0] * 65536 < ratio * n->distance[1];
}

static void expect(struct match_problem *p, int output, int64_t at, int64_t value)
{
    if (p->expected[output - INDICES])
        p->expected[output - INDICES][at] = (int32_t)value;
}

static void solve_pair(struct match_problem *p, int64_t pair, struct nearest *rows, struct nearest *columns)
{
    const int64_t q0 = p->start[0][pair], t0 = p->start[1][pair];
    for (int64_t q = q0; q < p->start[0][pair + 1]; q++)
        for (int64_t t = t0; t < p->start[1][pair + 1]; t++)
            if (takes_part(p, q, t, t - t0)) {
                const int64_t distance = distance_of(p, q, t);
                consider(&rows[q], distance, t - t0);
                consider(&columns[t], distance, q - q0);
            }
    for (int64_t q = q0; q < p->start[0][pair + 1]; q++) {
        const struct nearest *n = &rows[q];
        int good = passes(&p->options, n);
        if (good && (p->options.tests & MF_MATCH_CROSS_CHECK))
            good = columns[t0 + n->index[0]].index[0] == q - q0;
        expect(p, MATCHES, q, good ? n->index[0] : -1);
        for (int o = INDICES; o <= DISTANCES; o++)
            for (int64_t i = 0, k = p->shape[o][1]; i < k; i++)
                expect(p, o, q * k + i,
                       i >= n->count ? (o == INDICES ? -1 : INT32_MAX) : (o == INDICES ? n->index[i] : n->distance[i]));
    }
    for (int64_t t = t0; t < p->start[1][pair + 1]; t++) {
        expect(p, TRAIN_INDICES, t, columns[t].count ? columns[t].index[0] : -1);
        expect(p, TRAIN_DISTANCES, t, columns[t].count ? columns[t].distance[0] : INT32_MAX);
    }
}

void match_problem_solve(struct match_problem *p)
{
    struct nearest *rows = calloc((size_t)(p->shape[QUERIES][0] + 1), sizeof *rows),
                   *columns = calloc((size_t)(p->shape[TRAIN][0] + 1), sizeof *columns);
    for (int64_t pair = 0; pair < p->pairs; pair++)
        solve_pair(p, pair, rows, columns);
    free(rows);
    free(columns);
}

/* ---- running ---- */

static int say(char *error, int size, const struct match_problem *p, const char *what)
{
    snprintf(error, (size_t)size,
             "seed %" PRIu64 " (%" PRId64 " x %" PRId64 " rows of %" PRId64 " words, %" PRId64 " pairs): %s", p->seed,
             p->shape[0][0], p->shape[1][0], p->words, p->pairs, what);
    return 1;
}

static int compare(const struct match_problem *p, int i, const char *got, char *error, int size)
{
    const int32_t *expected = p->expected[i - INDICES];
    char text[200];
    for (int64_t e = 0; e < p->bytes[i] / 4; e++) {
        int32_t value;
        memcpy(&value, got + 4 * e, 4);
        if (value == expected[e])
            continue;
        snprintf(text, sizeof text, "%s element %" PRId64 " of %" PRId64 " columns is %d and should be %d", names[i], e,
                 p->shape[i][1], value, expected[e]);
        return say(error, size, p, text);
    }
    for (int g = 0; g < GUARD; g++)
        if (got[p->bytes[i] + g] != GUARD_BYTE)
            return say(error, size, p, "bytes behind an output were written");
    return 0;
}

/* Sends a tensor to the device; on the CPU it stays where it is. */
static mf_status there(struct match_problem *p, int i, mf_device *device, void **memory)
{
    if (mf_device_kind(device) == 1 || !p->memory[i])
        return MF_OK;
    mf_status status = mf_memory_create(device, p->bytes[i] + GUARD, memory);
    if (status == MF_OK)
        status = mf_memory_write(device, *memory, 0, p->memory[i], p->bytes[i] + GUARD);
    memset(&p->tensor[i].device, 0, sizeof p->tensor[i].device);
    p->tensor[i].data = *memory;
    return status;
}

static mf_status call(struct match_problem *p, mf_device *device)
{
    mf_match_options options = p->options;
    void *workspace = NULL;
    mf_status status = mf_match_workspace(device, &p->input, &p->output, &options, &options.workspace_bytes);
    if (status == MF_OK && p->seed % 2 && options.workspace_bytes)
        status = mf_memory_create(device, options.workspace_bytes, &workspace);
    options.workspace = workspace;
    if (status == MF_OK)
        status = mf_match(device, &p->input, &p->output, &options, NULL);
    const mf_status waited = mf_device_wait(device, NULL);
    mf_memory_destroy(device, workspace);
    return status == MF_OK ? waited : status;
}

int match_problem_run(struct match_problem *p, mf_device *device, char *error, int error_size)
{
    void *memory[MATCH_TENSORS] = {NULL};
    mf_status status = MF_OK;
    int wrong = 0;
    for (int i = 0; i < MATCH_TENSORS && status == MF_OK; i++)
        status = there(p, i, device, &memory[i]);
    if (status == MF_OK)
        status = call(p, device);
    if (status != MF_OK)
        wrong = say(error, error_size, p, mf_error());
    for (int i = INDICES; i < MATCH_TENSORS; i++) {
        if (memory[i] && status == MF_OK)
            mf_memory_read(device, memory[i], 0, p->memory[i], p->bytes[i] + GUARD);
        if (p->memory[i] && !wrong)
            wrong = compare(p, i, p->memory[i], error, error_size);
    }
    for (int i = 0; i < MATCH_TENSORS; i++) {
        if (memory[i])
            mf_memory_destroy(device, memory[i]);
        p->tensor[i].data = p->memory[i];
    }
    return wrong;
}
