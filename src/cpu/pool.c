/* Solver "pool": a fold of few elements, of which the last ones touch and so do their columns', as poolings of planes:
 * out[p, c] = fold over r and j of x[place(p) + row(r) + c * J + j], j < J;
 * or of pixels of C channels, J a power of two:
 * out[p, w, c] = fold over r and j of x[place(p) + row(r) + (w * J + j) * C + c].
 *
 * The rows of a position are folded as they lie, all columns' elements beside each other, by one call of the chain
 * kernel; then the J neighbours of each column, of many positions together, by that of rows, those of pixels by that of
 * pairs, halves of them at a time. Sums and products of
 * floats meet in the contract's order (numerics.md: an element is a lane): lanes that are J or more apart, which are
 * rows, before those that are less. Short integers stay short in between. Solvers outer and few begin anew at every
 * position.
 * Cost: each element once from memory, its rows' fold twice by way of the nearest cache. */
#include <stdio.h>

#include "cpu.h"
#include "finish.h"
#include "lanes.h"
#include "pool.h"

enum {
    MOST_NEIGHBOURS = 64,
    MOST_ADDED = 255,  /* of sums that widen: chains of more of them pay (solver outer) */
    MOST_ROWS = STEPS, /* of a chain */
    VALUES = 2048,     /* that are in the nearest cache meanwhile */
    BATCHES = 8        /* of them, of one task */
};

struct pool_plan {
    chain_fn *chain, *join; /* of memory's type, of values */
    rows_fn *fold;
    pair_fn *pair;
    enum dtype between; /* what values are between the two */
    int input, rows, is_tree;
    int asks;                 /* the operand is large */
    int64_t item, size;       /* bytes of an element, of a value */
    int64_t neighbours;       /* J */
    int64_t inside;           /* C, or 1 */
    int64_t columns, piece;   /* of a position, those of them that are folded at once */
    int64_t positions, group; /* all, those that are folded together */
    int64_t pieces, tasks;    /* of a position, of all */
    int64_t row[MOST_ROWS];   /* elements from a position to each of its rows */
    struct walk walk;         /* of positions */
    struct finish_plan finish;
    size_t finish_bytes, values_bytes, spare_bytes, worker_bytes;
};

int mf_is_long_pool(const struct problem *problem, int input)
{
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    const int64_t most = mf_reducer_adds(reducer) || mf_cls_is_float(reducer->cls) ? VALUES : VALUES / 2;
    const int last = nest->kept + nest->reduced - 1;
    const int64_t run = nest->size[last];
    return nest->reduced > 1 && nest->in[input][last] == 1 && run > 1 && nest->in[input][nest->kept - 1] == run &&
           (run & (run - 1)) == 0 && run * nest->size[nest->kept - 1] > most;
}

int mf_has_many_channels(enum dtype type, int64_t channels, int64_t elements)
{
    enum { MANY = 64, MANY_SHORT = 128, FEW = 64, FEW_SHORT = 16, FEW_COPIED = 1 << 15 };
    const int is_class = mf_is_class_type(type), is_short = mf_cls_is_float(mf_dtypes[type].cls);
    return channels * elements <= FEW_COPIED && ((is_class && channels >= MANY && elements <= FEW) ||
                                                 (is_short && channels >= MANY_SHORT && elements <= FEW_SHORT));
}

/* Extremes that others do faster: of many channels of 16 bits, few (of wider ones on some processors only); of pixels
 * that are less than a vector, and of 2 x 2 short integers, sliding: max of 2 x 2 of u8[128,64,64,8] 13.6 GB/s for 5.9
 * on a Xeon of 2023, with AVX2 13.1 for 1.3, of planes of 112 x 112 bytes 11.7 for 6.2. */
static int loses(const struct mf_plan *plan, int input, int64_t inside, int64_t neighbours, int64_t rows)
{
    enum { VECTOR = 64, MOST_NARROW = 4 };
    const enum dtype type = plan->problem.in_type[input];
    const int64_t item = mf_dtypes[type].size;
    if (mf_reducer_adds(&plan->problem.program.reducer[0]))
        return 0;
    if (inside > 1 && !mf_is_class_type(type) && mf_has_many_channels(type, inside, neighbours * rows))
        return mf_solver_few.applicable(plan);
    return (inside == 1 ? item <= 2 && !mf_cls_is_float(mf_dtypes[type].cls) && neighbours == 2 && rows == 2
                        : inside * item < VECTOR && (neighbours <= MOST_NARROW || item == 1)) &&
           mf_solver_sliding.applicable(plan);
}

/* The kernels, and the bytes of a value between them; whether there are such. */
static int find_kernels(const struct mf_plan *plan, struct pool_plan *data)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct kernels *k = plan->device->kernels;
    const enum dtype type = problem->in_type[data->input];
    const struct fold_kernels *values = &k->fold[reducer->fold][reducer->cls],
                              *from = &k->fold_from[reducer->fold][type];
    const int is_short = !mf_is_class_type(type), is_float = mf_cls_is_float(reducer->cls);
    const enum cls cls = reducer->cls;
    data->between = cls == CLS_F32 ? DT_f32 : cls == CLS_F64 ? DT_f64 : cls == CLS_I64 ? DT_i64 : DT_u64;
    data->chain = is_short ? from->chain : values->chain;
    data->join = values->chain;
    data->fold = values->rows;
    if (is_short && !is_float && !mf_reducer_adds(reducer)) {
        data->chain = k->narrow[reducer->fold == FOLD_MAX][type].chain;
        data->fold = from->rows;
        data->between = type;
    } else if (reducer->fold == FOLD_SUM && k->byte_sums[type]) {
        data->chain = k->byte_sums[type];
        data->between = type == DT_i8 ? DT_i16 : DT_u16;
        data->fold = k->fold_from[FOLD_SUM][data->between].rows;
    }
    data->size = mf_dtypes[data->between].size;
    const enum pair extreme = reducer->fold == FOLD_MAX ? PAIR_MAX : PAIR_MIN;
    const enum pair pair = !mf_reducer_adds(reducer) ? extreme : reducer->fold == FOLD_SUM ? PAIR_ADD : PAIR_MUL;
    data->pair = k->pair[pair][data->between];
    return data->chain && (data->inside > 1 ? data->pair != NULL : data->fold != NULL) && type != DT_bool;
}

/* C, of pixels, or 1; 0: neighbours do not touch so. */
static int64_t find_inside(const struct nest *nest, int input, int64_t rows)
{
    enum { LEAST = 8, LEAST_ROW = 12 };
    const int last = nest->kept + nest->reduced - 1;
    const int64_t *stride = nest->in[input], run = nest->size[last], inside = nest->size[nest->kept - 1];
    const int is_power = (run & (run - 1)) == 0; /* else solver outer does not apply, and inner is faster */
    if (stride[last] == 1 && stride[nest->kept - 1] == run)
        return is_power || rows < 3 || run * inside >= LEAST_ROW;
    return nest->kept > 1 && stride[nest->kept - 1] == 1 && stride[last] == inside && inside >= LEAST &&
                   stride[nest->kept - 2] == inside * run && is_power && inside * run <= VALUES
               ? inside
               : 0;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    if (problem->program.reducer_count != 1 || reducer->kind != RED_FOLD || reducer->fold > FOLD_MAX ||
        node->op != OP_OPERAND || nest->window_count || nest->kept < 1 || nest->reduced < 2 || !problem->kept_total ||
        !problem->reduced_total)
        return 0;
    const int last = nest->kept + nest->reduced - 1,
              is_tree = mf_reducer_adds(reducer) && mf_cls_is_float(reducer->cls);
    const int64_t neighbours = nest->size[last], rows = problem->reduced_total / neighbours;
    const int64_t most = is_tree ? LANES / neighbours : MOST_ROWS;
    struct pool_plan data = {.input = node->index, .inside = find_inside(nest, node->index, rows)};
    return data.inside && mf_dtypes[problem->in_type[node->index]].cls == reducer->cls && neighbours >= 2 &&
           neighbours <= MOST_NEIGHBOURS && rows <= most && rows <= MOST_ROWS &&
           !(is_tree && (neighbours & (neighbours - 1))) &&
           (is_tree || !mf_reducer_adds(reducer) || problem->reduced_total <= MOST_ADDED) &&
           !mf_is_long_pool(problem, node->index) && find_kernels(plan, &data) &&
           !loses(plan, node->index, data.inside, neighbours, rows);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    struct pool_plan *data = plan->data = mf_calloc(sizeof *data);
    struct walk rows;
    if (!data)
        return MF_ERROR_MEMORY;
    data->input = problem->program.map.node[reducer->arg[0]].index;
    data->neighbours = nest->size[nest->kept + nest->reduced - 1];
    data->rows = (int)(problem->reduced_total / data->neighbours);
    data->inside = find_inside(nest, data->input, data->rows);
    find_kernels(plan, data);
    data->item = mf_dtypes[problem->in_type[data->input]].size;
    data->is_tree = mf_reducer_adds(reducer) && mf_cls_is_float(reducer->cls);
    data->asks = mf_reads_memory(problem);
    const int kept = nest->kept - (data->inside > 1);
    data->columns = nest->size[kept - 1] * data->inside;
    data->positions = problem->kept_total / data->columns;
    const int64_t most = VALUES / data->neighbours / data->inside * data->inside;
    data->piece = data->columns < most ? data->columns : most;
    data->pieces = (data->columns - 1) / data->piece + 1;
    data->group = data->pieces > 1 ? 1 : most / data->columns;
    data->tasks = ((data->positions - 1) / data->group * data->pieces + data->pieces - 1) / BATCHES + 1;
    mf_walk_make(&data->walk, kept - 1, nest->size, nest->in[data->input]);
    mf_walk_make(&rows, nest->reduced - 1, nest->size + nest->kept, nest->in[data->input] + nest->kept);
    mf_walk_offsets(&rows, 0, 1, data->rows, data->row);
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    data->finish_bytes = mf_finish_memory(&data->finish, problem, data->group * data->piece);
    data->values_bytes = mf_array_bytes(VALUES);
    data->spare_bytes = data->is_tree && data->rows > 2 ? mf_array_bytes(data->piece * data->neighbours) : 0;
    data->worker_bytes =
        data->finish_bytes + data->values_bytes + LANE_ROWS * data->spare_bytes + mf_array_bytes(data->group);
    return MF_OK;
}

struct pool_job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory;
};

/* What lies behind a position's rows, and is read soon: processors do not see rows beside each other coming when they
 * are short. Into the second cache: on a Zen 4 max of 2 x 2 of f32[16,64,224,224] .23 of the limit without it, .54 so,
 * .38 to .43 into the nearest cache. (Inlined, for a compiler leaves calls out that do nothing else.) */
static inline __attribute__((always_inline)) void ask_ahead(const struct pool_plan *data, const char *from,
                                                            int64_t bytes)
{
    enum { DISTANCE = 8192, LINE = 64 };
    for (int r = 0; r < data->rows; r++)
        for (int64_t at = 0; at < bytes; at += LINE)
            __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)(data->row[r] * data->item + DISTANCE + at)),
                               0, 2);
}

/* The rows' fold, n values. */
static void fold_rows(const struct pool_plan *data, const char *from, int64_t n, char *to, char *spare)
{
    const void *x[MOST_ROWS];
    for (int r = 0; r < data->rows; r++)
        x[r] = (const void *)((uintptr_t)from + (uintptr_t)(data->row[r] * data->item));
    if (data->is_tree)
        mf_fold_lanes(&(struct lanes){data->chain, data->join, n, (int64_t)data->spare_bytes}, x, 0, 1, data->rows, to,
                      spare);
    else
        data->chain(to, NULL, x, data->rows, n, NULL);
}

/* n columns' neighbours. */
static void fold_neighbours(const struct mf_plan *plan, char *values, int64_t n, char *to)
{
    const struct pool_plan *data = plan->data;
    if (data->inside == 1) {
        data->fold(to, values, n, data->neighbours, data->neighbours);
        return;
    }
    const int is_class = mf_is_class_type(data->between);
    char *const last = is_class ? to : values + VALUES * 4; /* short ones leave half of their room */
    for (int64_t half = data->neighbours / 2; half; half /= 2) {
        const int64_t pitch = data->neighbours * data->inside, one = half * data->inside;
        const struct pair_rows rows = {.rows = n / data->inside,
                                       .n = one,
                                       .out_pitch = half > 1 ? pitch : one,
                                       .x_pitch = pitch,
                                       .y_pitch = pitch,
                                       .x_unit = 1,
                                       .y_unit = 1};
        data->pair(half > 1 ? values : last, values, values + one * data->size, &rows);
    }
    if (!is_class)
        plan->device->kernels->load[data->between](to, last, n);
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct pool_job *job = context;
    const struct pool_plan *data = job->plan->data;
    char *const memory = job->memory + (size_t)thread * data->worker_bytes;
    char *const values = memory + data->finish_bytes, *const spare = values + data->values_bytes;
    int64_t *const offset = (int64_t *)(void *)(spare + LANE_ROWS * data->spare_bytes);
    struct finish finish;
    mf_finish_start(&finish, &data->finish, job->plan, job->pointers, memory, data->group * data->piece);
    for (int64_t b = task * BATCHES; b < (task + 1) * BATCHES; b++) {
        const int64_t first = b / data->pieces * data->group, left = data->positions - first;
        if (left < 1)
            return;
        const int64_t count = left < data->group ? left : data->group, column = b % data->pieces * data->piece;
        const int64_t here = data->columns - column < data->piece ? data->columns - column : data->piece;
        const int64_t n = here * data->neighbours;
        mf_walk_offsets(&data->walk, first, 1, count, offset);
        for (int64_t p = 0; p < count; p++) {
            const int64_t at = (offset[p] + column * data->neighbours) * data->item;
            const char *const from = (const char *)((uintptr_t)job->pointers->in[data->input] + (uintptr_t)at);
            if (data->asks)
                ask_ahead(data, from, n * data->item);
            fold_rows(data, from, n, values + p * n * data->size, spare);
        }
        fold_neighbours(job->plan, values, count * here, finish.results.part[0][0]);
        mf_finish_store(&finish, first * data->columns + column, count * here, NULL);
    }
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct pool_plan *data = plan->data;
    const int threads = data->tasks < plan->threads ? (int)data->tasks : plan->threads;
    struct pool_job job = {plan, pointers, mf_alloc_aligned((size_t)threads * data->worker_bytes)};
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, data->tasks, run_task, &job);
    mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct pool_plan *data = plan->data;
    snprintf(text, size, "%d rows of %lld, %lld columns, %lld at once", data->rows, (long long)data->neighbours,
             (long long)data->piece, (long long)data->group);
}

const struct solver mf_solver_pool = {
    "pool", "neighbours touch: rows first", applicable, make, execute, print, NULL,
};
