/* Matching on a GPU: which kernels, with which numbers, in which order.
 *
 *     search   (popc, multi or tensor) each split of a train set against a block of queries: lists of the nearest
 *     columns  what the search found for the rows of train; or a search with both sides changed, and its join
 *     join     the splits' lists, the outputs, the tests
 *
 * The workspace: lists of queries x splits, and three numbers for each row of train; splits are there only to fill the
 * GPU where queries are few. Batches go 32 pairs a launch, so that their sizes are arguments and nothing is copied. */
#include <stdio.h>

#include "gpu/launch.h"
#include "gpu/texts.h"
#include "match.h"

enum { GROUP = 32, THREADS = 128, MOST_SPLITS = 64, SPLIT_ROWS = 256, NO_MASK = 0, KEY_BITS = 29 };

/* As in kernels/match.cl. */
struct match_sets {
    int64_t queries, train, query_mask, train_mask, query_stride, train_stride, keys, columns, counts, limits;
    int64_t pair_at[GROUP], pair_stride, pair_step;
    int32_t count, words, splits, column_shift;
    int32_t block[GROUP + 1], query[GROUP], query_count[GROUP], row[GROUP], row_count[GROUP];
};
struct counted_rows {
    int64_t rows, words, train, stride, place, limits, limit_place;
};
struct match_results {
    int64_t rows, columns, back, indices, distances, matches, difference, max_distance, ratio;
    int32_t has_indices, has_distances, has_matches, writes_back, k, tests, column_shift, unused;
};

enum kind { POPC, MULTI, TENSOR };

/* One search: queries are what lists are made for. */
struct side {
    int64_t query_count, row_count;
    const int64_t *query_start, *row_start;
    const struct match_rows *queries, *rows, *query_mask, *row_mask;
    int swapped; /* queries are rows of train */
    int keep;    /* KEEP of the kernels: 2, 4, 8 or 16 */
    int splits;
    int64_t keys; /* bytes in the workspace */
};

struct plan {
    const struct match *m;
    enum kind kind;
    int m_tiles, n_tiles, held; /* of the tensor kernel: its numbers, and blocks that a multiprocessor has room for */
    int splits;                 /* asked for, or 0 */
    int64_t block;              /* queries of a search's block */
    struct side forward, backward;
    int same_pass, shift; /* columns: found by the forward search, as keys with this many bits for the query */
    int64_t columns, back, counts, limits, bytes;
    char *workspace;
    void *stream;
    struct gpu_usage *usage; /* to compile only: the most that a kernel takes */
};

/* ---- numbers ---- */

enum {
    POPC_WORDS = 16,      /* of a query that are in registers at once */
    ALL_IN_REGISTERS = 48 /* words of a row: four tiles of queries are, on every architecture */
};

static int bits_of(int64_t n)
{
    int bits = 0;
    while (n >> bits)
        bits++;
    return bits;
}

static int64_t largest(int64_t pairs, const int64_t *start)
{
    int64_t most = 0;
    for (int64_t p = 0; p < pairs; p++)
        most = start[p + 1] - start[p] > most ? start[p + 1] - start[p] : most;
    return most;
}

static int fits(const struct match *m, enum kind kind)
{
    return kind == POPC ||
           (m->words % 8 == 0 && m->words <= 64 && (kind == MULTI || (m->keep <= 2 && !m->pair_mask.stride)));
}

/* By itself tensor where it goes, several times as fast as popc (bench/results/gpu-h200-match.md); else, on CUDA, multi
 * for rows that popc has to read in pieces, which took it twice as long; else popc. */
static mf_status choose_kind(const struct match *m, enum kind *kind)
{
    static const char *const names[] = {"popc", "multi", "tensor"};
    const size_t length = m->solver ? strcspn(m->solver, ":") : 0;
    const int architecture = MF_GPU_LIMITS(m->device->gpu)->architecture;
    *kind = fits(m, TENSOR) && architecture >= 80                     ? TENSOR
            : architecture && m->words > POPC_WORDS && fits(m, MULTI) ? MULTI
                                                                      : POPC;
    for (int k = 0; m->solver && k < 3; k++)
        if (strlen(names[k]) == length && !memcmp(m->solver, names[k], length)) {
            *kind = (enum kind)k;
            return fits(m, *kind)
                       ? MF_OK
                       : mf_fail(MF_ERROR_UNSUPPORTED,
                                 "mf_match: solver %s does not do rows of %lld bits with %d neighbours%s", names[k],
                                 (long long)m->words * 32, m->keep, m->pair_mask.stride ? " and a mask of pairs" : "");
        }
    return m->solver ? mf_fail(MF_ERROR_ARGUMENT,
                               "mf_match: there is no solver \"%.40s\"; there are popc, multi and tensor", m->solver)
                     : MF_OK;
}

/* The numbers of the kernels; "SOLVER:SPLITS:HELD:M_TILES:N_TILES" asks for them, for measurements; 0 and what is
 * missing leave the choice. */
static mf_status choose_numbers(struct plan *plan)
{
    const struct match *m = plan->m;
    const char *form = m->solver ? strchr(m->solver, ':') : NULL;
    int asked[4] = {0};
    const int architecture = MF_GPU_LIMITS(m->device->gpu)->architecture;
    /* fewer would read train more often; measured on an H200 for 512, 1024 and 2048 bits, whose queries just stay in
     * registers there, and do not on others */
    plan->m_tiles = m->words > ALL_IN_REGISTERS && architecture && architecture != 90 ? 2 : 4;
    plan->n_tiles = m->words <= 16 ? 1 : 2;
    plan->held = m->words <= 16 ? 4 : 2;
    if (!form)
        return MF_OK;
    sscanf(form, ":%d:%d:%d:%d", &asked[0], &asked[1], &asked[2], &asked[3]);
    for (int i = 0; i < 4; i++)
        if (asked[i] < 0 || asked[i] > (i ? 8 : INT16_MAX) || (i > 1 && (asked[i] & (asked[i] - 1))))
            return mf_fail(MF_ERROR_ARGUMENT,
                           "mf_match: number %d of solver \"%.40s\" is %d; splits go up to 32767, blocks up to 8, "
                           "tiles are 1, 2, 4 or 8",
                           i + 1, m->solver, asked[i]);
    plan->splits = asked[0];
    plan->held = asked[1] ? asked[1] : plan->held;
    plan->m_tiles = asked[2] ? asked[2] : plan->m_tiles;
    plan->n_tiles = asked[3] ? asked[3] : plan->n_tiles;
    return MF_OK;
}

/* Of the tensor kernel: a row's place in its split is part of a number of KEY_BITS bits. */
static int row_bits(const struct match *m)
{
    return bits_of(32 * m->words - 1);
}

static int64_t least_splits(const struct plan *plan, int64_t rows)
{
    const int place_bits = KEY_BITS - row_bits(plan->m);
    return plan->kind == TENSOR ? (rows + (1 << place_bits) - 1) >> place_bits : 1;
}

/* Splits of SPLIT_ROWS rows at least: popc and multi are to have many blocks for every multiprocessor, tensor whole
 * waves of those that it holds at once, as few as that takes. */
static int choose_splits(const struct plan *plan, const struct side *side)
{
    enum { BLOCKS = 16 };
    const struct match *m = plan->m;
    const int64_t blocks = (side->query_count + plan->block - 1) / plan->block + m->pairs - 1,
                  rows = largest(m->pairs, side->row_start),
                  most = rows / SPLIT_ROWS < MOST_SPLITS ? rows / SPLIT_ROWS : MOST_SPLITS;
    const int64_t multiprocessors = MF_GPU_LIMITS(m->device->gpu)->multiprocessors, wave = plan->held * multiprocessors,
                  least = least_splits(plan, rows);
    int64_t best = (BLOCKS * multiprocessors + blocks - 1) / (blocks ? blocks : 1);
    if (plan->kind == TENSOR) {
        double best_worth = 0;
        for (int64_t splits = 1; splits <= most; splits++) {
            const int64_t waves = (blocks * splits + wave - 1) / wave;
            const double worth = (double)(blocks * splits) / (double)(waves * wave) - 0.01 * (double)splits;
            if (worth > best_worth) {
                best_worth = worth;
                best = splits;
            }
        }
    }
    best = plan->splits ? plan->splits : best > most ? most : best;
    return (int)(best < least ? least : best < 1 ? 1 : best);
}

static int keep_of(int keep)
{
    return keep <= 2 ? 2 : keep <= 4 ? 4 : keep <= 8 ? 8 : 16;
}

/* Takes count times size bytes of the workspace. */
static mf_status take(struct plan *plan, int64_t count, int64_t size, int64_t *place)
{
    int64_t bytes;
    *place = plan->bytes;
    if (mf_mul(count, size, &bytes) && mf_add(bytes, 255, &bytes) &&
        mf_add(plan->bytes, bytes / 256 * 256, &plan->bytes))
        return MF_OK;
    return mf_fail(MF_ERROR_OVERFLOW, "mf_match: a workspace of more than 2^63 bytes");
}

static mf_status make_side(struct plan *plan, int swapped, struct side *side)
{
    const struct match *m = plan->m;
    *side = swapped ? (struct side){m->train_count,
                                    m->query_count,
                                    m->train_start,
                                    m->query_start,
                                    &m->train,
                                    &m->queries,
                                    &m->train_mask,
                                    &m->query_mask,
                                    1,
                                    2,
                                    1,
                                    0}
                    : (struct side){m->query_count,
                                    m->train_count,
                                    m->query_start,
                                    m->train_start,
                                    &m->queries,
                                    &m->train,
                                    &m->query_mask,
                                    &m->train_mask,
                                    0,
                                    keep_of(m->keep),
                                    1,
                                    0};
    side->splits = choose_splits(plan, side);
    return take(plan, side->query_count * side->splits, 8 * side->keep, &side->keys);
}

static mf_status make_plan(const struct match *m, struct plan *plan)
{
    *plan = (struct plan){.m = m};
    MF_TRY(choose_kind(m, &plan->kind));
    MF_TRY(choose_numbers(plan));
    plan->block = plan->kind == TENSOR ? THREADS / 32 * 16 * plan->m_tiles : THREADS;
    plan->shift = bits_of(largest(m->pairs, m->query_start));
    plan->same_pass = plan->kind == POPC && bits_of(32 * m->words) + plan->shift <= 32;
    MF_TRY(make_side(plan, 0, &plan->forward));
    if (m->columns && !plan->same_pass)
        MF_TRY(make_side(plan, 1, &plan->backward));
    if (m->columns) {
        MF_TRY(take(plan, m->train_count, 4, &plan->columns));
        MF_TRY(take(plan, m->train_count, 4, &plan->back));
    }
    if (plan->kind != TENSOR)
        return MF_OK;
    const int64_t most = m->query_count > m->train_count ? m->query_count : m->train_count;
    MF_TRY(take(plan, m->columns ? most : m->train_count, 4, &plan->counts));
    return take(plan, m->columns ? most : m->query_count, 4, &plan->limits);
}

/* ---- kernels ---- */

/* What a quarter of every row is aligned to: 4, 8 or 16 bytes. */
static int alignment(const struct side *side, int words)
{
    const uint64_t all = (uint64_t)(uintptr_t)side->queries->data | side->queries->offset |
                         (uint64_t)side->queries->stride | (uint64_t)(uintptr_t)side->rows->data | side->rows->offset |
                         (uint64_t)side->rows->stride | (uint64_t)words;
    return all % 16 == 0 ? 16 : all % 8 == 0 ? 8 : 4;
}

static mf_status kernel_of(const struct plan *plan, const struct side *side, const char *kernel, int columns,
                           const struct gpu_kernel **found)
{
    const struct match *m = plan->m;
    struct gpu_text text = {NULL, 0, 0, 0};
    const int words = (int)m->words, chunk = words <= 8 ? 8 : POPC_WORDS;
    mf_text_add(&text, "#define THREADS %d\n#define KEEP %d\n#define COLUMNS %d\n", THREADS, side ? side->keep : 2,
                columns);
    /* popc: else some take 250 registers, to have a tile's words in flight */
    if (kernel == mf_text_match_popc_cl || kernel == mf_text_match_tensor_cl)
        mf_text_add(&text, "#define LAUNCH_BOUNDS THREADS, %d\n", kernel == mf_text_match_popc_cl ? 4 : plan->held);
    else
        mf_text_append(&text, "#define LAUNCH_BOUNDS THREADS\n");
    mf_text_add(&text, "#define HAS_QUERY_MASK %d\n#define HAS_TRAIN_MASK %d\n#define HAS_PAIR_MASK %d\n",
                side && side->query_mask->stride, side && side->row_mask->stride, m->pair_mask.stride != NO_MASK);
    if (kernel == mf_text_match_popc_cl)
        mf_text_add(&text, "#define CHUNK %d\n#define ONE_CHUNK %d\n", chunk, words <= chunk);
    if (kernel == mf_text_match_multi_cl)
        mf_text_add(&text, "#define PART %d\n", words / 8);
    mf_text_append(&text, mf_text_match_cl);
    if (kernel == mf_text_match_tensor_cl) {
        mf_text_add(&text, "#define STEPS %d\n#define ROW_BITS %d\n#define ALIGNMENT %d\n", words / 8, row_bits(m),
                    alignment(side, words));
        mf_text_add(&text, "#define M_TILES %d\n#define N_TILES %d\n", plan->m_tiles, plan->n_tiles);
        mf_text_append(&text, MF_GPU_LIMITS(m->device->gpu)->dlpack == 2 ? mf_text_match_mma_cu : mf_text_match_mma_cl);
    }
    mf_text_append(&text, kernel);
    mf_status status = text.failed ? MF_ERROR_MEMORY : mf_gpu_kernel(m->device, text.text, found);
    mf_free(text.text);
    return status;
}

static void note_usage(const struct plan *plan, const struct gpu_kernel *kernel)
{
    const struct gpu_usage *one = MF_GPU_USAGE(kernel);
    struct gpu_usage *all = plan->usage;
    all->registers = one->registers > all->registers ? one->registers : all->registers;
    all->stack = one->stack > all->stack ? one->stack : all->stack;
    all->spilled += one->spilled;
}

static mf_status launch(const struct plan *plan, const struct gpu_kernel *kernel, int64_t blocks,
                        const struct gpu_argument *arguments, int count)
{
    const struct gpu_launch work = {kernel, blocks, THREADS, count, arguments, 0, 0};
    struct mf_device *device = plan->m->device;
    if (plan->usage) {
        note_usage(plan, kernel);
        return MF_OK;
    }
    return blocks ? device->api->launch(device->gpu, &work, plan->stream) : MF_OK;
}

/* Memory as an argument; where there is none, some that is not read. */
static struct gpu_argument memory(const struct plan *plan, const void *data)
{
    return (struct gpu_argument){data ? data : plan->workspace, 0};
}

/* Pairs from `first` on; each has `per_block` queries a block, and `splits` blocks for them. */
static struct match_sets sets_of(const struct plan *plan, const struct side *side, int64_t first, int64_t per_block,
                                 int splits)
{
    const struct match *m = plan->m;
    struct match_sets s = {(int64_t)side->queries->offset,
                           (int64_t)side->rows->offset,
                           (int64_t)side->query_mask->offset,
                           (int64_t)side->row_mask->offset,
                           side->queries->stride,
                           side->rows->stride,
                           side->keys,
                           plan->columns,
                           plan->counts,
                           plan->limits,
                           {0},
                           side->swapped ? 1 : m->pair_mask.stride,
                           side->swapped ? m->pair_mask.stride : 1,
                           0,
                           (int32_t)m->words,
                           side->splits,
                           plan->shift,
                           {0},
                           {0},
                           {0},
                           {0},
                           {0}};
    for (int64_t p = first; p < m->pairs && s.count < GROUP; p++, s.count++) {
        const int64_t queries = side->query_start[p + 1] - side->query_start[p];
        s.query[s.count] = (int32_t)side->query_start[p];
        s.query_count[s.count] = (int32_t)queries;
        s.row[s.count] = (int32_t)side->row_start[p];
        s.row_count[s.count] = (int32_t)(side->row_start[p + 1] - side->row_start[p]);
        s.pair_at[s.count] = (int64_t)m->pair_mask.offset + m->query_start[p] * m->pair_mask.stride;
        s.block[s.count + 1] = s.block[s.count] + (int32_t)((queries + per_block - 1) / per_block * splits);
    }
    return s;
}

/* ---- steps ---- */

static mf_status count_rows(const struct plan *plan, const struct side *side)
{
    const struct gpu_kernel *kernel;
    const struct counted_rows rows = {side->row_count,    plan->m->words, (int64_t)side->rows->offset,
                                      side->rows->stride, plan->counts,   side->query_count,
                                      plan->limits};
    const int64_t threads = rows.rows > rows.limits ? rows.rows : rows.limits;
    const struct gpu_argument arguments[] = {memory(plan, side->rows->data), memory(plan, NULL), {&rows, sizeof rows}};
    MF_TRY(kernel_of(plan, NULL, mf_text_match_count_cl, 0, &kernel));
    return launch(plan, kernel, (threads + THREADS - 1) / THREADS, arguments, 3);
}

static mf_status fill_columns(const struct plan *plan)
{
    const struct gpu_kernel *kernel;
    const struct counted_rows rows = {.rows = plan->m->train_count, .place = plan->columns};
    const struct gpu_argument arguments[] = {memory(plan, NULL), {&rows, sizeof rows}};
    MF_TRY(kernel_of(plan, NULL, mf_text_match_fill_cl, 0, &kernel));
    return launch(plan, kernel, (rows.rows + THREADS - 1) / THREADS, arguments, 2);
}

static mf_status search(const struct plan *plan, const struct side *side, int columns)
{
    static const char *const kernels[] = {mf_text_match_popc_cl, mf_text_match_multi_cl, mf_text_match_tensor_cl};
    const struct gpu_kernel *kernel;
    if (plan->kind == TENSOR)
        MF_TRY(count_rows(plan, side));
    MF_TRY(kernel_of(plan, side, kernels[plan->kind], columns, &kernel));
    for (int64_t p = 0; p < plan->m->pairs; p += GROUP) {
        const struct match_sets s = sets_of(plan, side, p, plan->block, side->splits);
        const struct gpu_argument arguments[] = {memory(plan, side->queries->data),
                                                 memory(plan, side->rows->data),
                                                 memory(plan, side->query_mask->data),
                                                 memory(plan, side->row_mask->data),
                                                 memory(plan, plan->m->pair_mask.data),
                                                 memory(plan, NULL),
                                                 {&s, sizeof s}};
        MF_TRY(launch(plan, kernel, s.block[s.count], arguments, 7));
    }
    return MF_OK;
}

static mf_status join(const struct plan *plan, const struct side *side)
{
    const struct match *m = plan->m;
    const struct match_rows none = {NULL, 0, 0}, *indices = side->swapped ? &m->train_indices : &m->indices,
                            *distances = side->swapped ? &m->train_distances : &m->distances,
                            *matches = side->swapped ? &none : &m->matches;
    const struct match_results r = {
        .back = plan->back,
        .indices = (int64_t)indices->offset,
        .distances = (int64_t)distances->offset,
        .matches = (int64_t)matches->offset,
        .difference = m->difference,
        .max_distance = m->max_distance,
        .ratio = m->ratio,
        .has_indices = indices->data != NULL,
        .has_distances = distances->data != NULL,
        .has_matches = matches->data != NULL,
        .writes_back = side->swapped,
        .k = side->swapped ? 1 : m->k,
        .tests = (int32_t)m->tests,
    };
    const struct gpu_kernel *kernel;
    MF_TRY(kernel_of(plan, side, mf_text_match_join_cl, 0, &kernel));
    for (int64_t p = 0; p < m->pairs; p += GROUP) {
        const struct match_sets s = sets_of(plan, side, p, THREADS, 1);
        const struct gpu_argument arguments[] = {memory(plan, NULL),
                                                 memory(plan, indices->data),
                                                 memory(plan, distances->data),
                                                 memory(plan, matches->data),
                                                 {&s, sizeof s},
                                                 {&r, sizeof r}};
        MF_TRY(launch(plan, kernel, s.block[s.count], arguments, 6));
    }
    return MF_OK;
}

static mf_status store_columns(const struct plan *plan)
{
    const struct match *m = plan->m;
    const struct gpu_kernel *kernel;
    const struct match_results r = {
        .rows = m->train_count,
        .columns = plan->columns,
        .back = plan->back,
        .indices = (int64_t)m->train_indices.offset,
        .distances = (int64_t)m->train_distances.offset,
        .has_indices = m->train_indices.data != NULL,
        .has_distances = m->train_distances.data != NULL,
        .column_shift = plan->shift,
    };
    const struct gpu_argument arguments[] = {
        memory(plan, NULL), memory(plan, m->train_indices.data), memory(plan, m->train_distances.data), {&r, sizeof r}};
    MF_TRY(kernel_of(plan, NULL, mf_text_match_columns_cl, 0, &kernel));
    return launch(plan, kernel, (r.rows + THREADS - 1) / THREADS, arguments, 4);
}

static mf_status run(const struct plan *plan)
{
    const struct match *m = plan->m;
    const int same = m->columns && plan->same_pass;
    if (same)
        MF_TRY(fill_columns(plan));
    MF_TRY(search(plan, &plan->forward, same));
    if (same) {
        MF_TRY(store_columns(plan));
    } else if (m->columns) {
        MF_TRY(search(plan, &plan->backward, 0));
        MF_TRY(join(plan, &plan->backward));
    }
    return join(plan, &plan->forward);
}

mf_status mf_match_gpu_workspace(const struct match *m, int64_t *bytes)
{
    struct plan plan;
    MF_TRY(make_plan(m, &plan));
    *bytes = plan.bytes;
    return MF_OK;
}

mf_status mf_match_on_gpu(const struct match *m, void *workspace, int64_t bytes, void *stream)
{
    struct plan plan;
    struct mf_device *device = m->device;
    MF_TRY(make_plan(m, &plan));
    if (workspace && bytes < plan.bytes)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: the workspace has %lld bytes and %lld are needed",
                       (long long)bytes, (long long)plan.bytes);
    plan.stream = stream;
    plan.workspace = workspace;
    if (workspace)
        return run(&plan);
    void *own = NULL;
    MF_TRY(device->api->alloc(device->gpu, plan.bytes ? plan.bytes : 1, &own));
    plan.workspace = own;
    mf_status status = run(&plan);
    const mf_status waited = device->api->wait(device->gpu, stream);
    device->api->release(device->gpu, own);
    return status == MF_OK ? waited : status;
}

mf_status mf_match_gpu_compile(const struct match *m, struct gpu_usage *usage)
{
    struct plan plan;
    MF_TRY(make_plan(m, &plan));
    *usage = (struct gpu_usage){0};
    plan.usage = usage;
    return run(&plan);
}
