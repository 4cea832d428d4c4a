/* Solver "few": a fold of few elements for many outputs that lie beside each other, as max pooling:
 * out[p, c] = fold over r of x[place(p) + step(r) + c * stride]. Windows may leave their tensor.
 *
 * A group of positions p at a time: for each the rows of its elements inside are folded by one call of the chain kernel
 * (where any order has the same value), or pair by pair (sums of floats, whose elements are a lane each); the group's
 * results are finished together. Rows whose columns are apart, or leave a window, are copied first, with what changes
 * no value outside. Solver outer plans its work for long columns, and pays for it at every position.
 * Cost: each element read as often as windows overlap, from the nearest cache but for the first time. */
#include <math.h>
#include <stdio.h>

#include "../scalar.h"
#include "cpu.h"
#include "finish.h"
#include "pool.h"

enum {
    MOST_ELEMENTS = 64,
    LEAST_COLUMNS = 4,
    MOST_COLUMNS = 4096,
    MOST_CHECKED = 65536, /* where solver outer does not apply */
    GROUP = 4096,
    LEAST_COPIED = 8,
    MOST_PAIRS = 24, /* of a sum that nobody checks */
    FEW_COLUMNS = 5,
    COPIES_BYTES = 256 << 10
};

struct few_window {
    int64_t extent, element[MOST_ELEMENTS]; /* the index' part of each element */
    struct walk walk;                       /* and of the positions */
    int64_t offset, step;                   /* from a column to the next */
};

struct few_plan {
    chain_fn *chain;
    int input, elements, windows;
    int loops;          /* of the columns */
    int in_pairs;       /* a sum of floats */
    int64_t item, size; /* bytes of an element, of a value */
    int64_t columns, positions, group, tasks;
    int64_t element[MOST_ELEMENTS]; /* elements from a position to each of its elements */
    struct walk walk, row;          /* the columns of one */
    struct few_window window[MAX_WINDOWS];
    struct finish_plan finish;
    size_t finish_bytes, copy_bytes, worker_bytes;
    union value nothing, outside; /* of no elements; what stands for one in memory */
};

/* The operand whose elements are folded as they are; -1 where there is none. */
static int plain_operand(const struct problem *problem)
{
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    return node->op == OP_OPERAND && mf_dtypes[problem->in_type[node->index]].cls == reducer->cls ? node->index : -1;
}

static chain_fn *find_chain(const struct mf_plan *plan, int input)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    const enum dtype type = plan->problem.in_type[input];
    return mf_is_class_type(type) ? plan->device->kernels->fold[reducer->fold][reducer->cls].chain
                                  : plan->device->kernels->fold_from[reducer->fold][type].chain;
}

/* The last kept loops that are columns: two where the last one has few, as the colours of pixels, and no window asks
 * for either. */
static int column_loops(const struct nest *nest)
{
    if (nest->kept < 3 || nest->size[nest->kept - 1] >= FEW_COLUMNS)
        return 1;
    for (int w = 0; w < nest->window_count; w++)
        if (nest->window[w].step[nest->kept - 1] || nest->window[w].step[nest->kept - 2])
            return 1;
    return 2;
}

static int64_t count_columns(const struct nest *nest, int loops)
{
    return nest->size[nest->kept - 1] * (loops > 1 ? nest->size[nest->kept - 2] : 1);
}

/* Whether rows are read where they are: windows say the same of a whole one. */
static int reads_rows(const struct nest *nest, int input)
{
    for (int w = 0; w < nest->window_count; w++)
        if (nest->window[w].step[nest->kept - 1])
            return 0;
    return nest->in[input][nest->kept - 1] == 1 && nest->size[nest->kept - 1] >= LEAST_COLUMNS;
}

static int is_extreme(const struct reducer *reducer)
{
    return reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX;
}

/* The extremes of floats that are read where they are. */
static int is_plain(const struct problem *problem, int input)
{
    const struct reducer *reducer = &problem->program.reducer[0];
    return reads_rows(&problem->memory, input) && mf_cls_is_float(reducer->cls) && is_extreme(reducer) &&
           !problem->program.uses_count;
}

/* Whether copies of rows are worth it, and known what is outside: where windows leave their tensor, which costs solver
 * inner a question at each element, of floats whose columns are a few elements apart, and of pixels. */
static int copies_rows(const struct problem *problem, int input)
{
    const struct nest *nest = &problem->memory;
    const enum dtype type = problem->in_type[input];
    const int loops = column_loops(nest);
    const int64_t columns = count_columns(nest, loops), step = nest->in[input][nest->kept - 1];
    const int is_short = is_extreme(&problem->program.reducer[0]) || problem->reduced_total <= MOST_PAIRS;
    const int is_near = step > 1 && step <= LEAST_COPIED && mf_cls_is_float(mf_dtypes[type].cls) && is_short;
    return (nest->window_count || is_near || (loops > 1 && step == 1)) && columns >= LEAST_COPIED &&
           columns <= 4 * MOST_COLUMNS && type != DT_bool &&
           columns * problem->reduced_total * mf_dtypes[type].size <= COPIES_BYTES;
}

/* Whether an element is beside the one before, and no column's: what solver inner reads as it lies, in less time. */
static int is_run(const struct problem *problem, int input)
{
    const struct nest *nest = &problem->memory;
    return nest->reduced == 1 && !nest->window_count && nest->in[input][nest->kept] == 1 &&
           nest->in[input][nest->kept - 1] > 1 && mf_is_class_type(problem->in_type[input]);
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct nest *nest = &problem->memory;
    if (problem->program.reducer_count != 1 || reducer->kind != RED_FOLD || nest->kept < 2 || !problem->kept_total ||
        problem->reduced_total < 1 || problem->reduced_total > MOST_ELEMENTS)
        return 0;
    const int input = plain_operand(problem), is_float = mf_cls_is_float(reducer->cls);
    if (input < 0 || nest->size[nest->kept - 1] > (nest->window_count ? MOST_CHECKED : MOST_COLUMNS) ||
        !find_chain(plan, input) || is_run(problem, input) || (!nest->window_count && mf_is_long_pool(problem, input)))
        return 0;
    if (!mf_nest_parts_fit(nest, nest->in[input], problem->in_base[input])) /* nor do differences of these overflow */
        return 0;
    for (int w = 0; w < nest->window_count; w++) {
        const struct window *window = &nest->window[w];
        if (window->input != input || window->extent > INT64_MAX / 2 ||
            !mf_nest_parts_fit(nest, window->step, window->offset))
            return 0;
    }
    if (is_plain(problem, input))
        return 1;
    const int adds = reducer->fold == FOLD_SUM && (!is_float || mf_is_class_type(problem->in_type[input]));
    return (is_extreme(reducer) || adds) && copies_rows(problem, input);
}

/* The reduced loops' offsets by these strides. */
static void element_offsets(const struct nest *nest, const int64_t *stride, int64_t count, int64_t *offset)
{
    struct walk walk;
    mf_walk_make(&walk, nest->reduced, nest->size + nest->kept, stride + nest->kept);
    for (int64_t e = 0; e < count; e++)
        offset[e] = mf_walk_offset(&walk, e);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    struct few_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    data->input = plain_operand(problem);
    data->chain = find_chain(plan, data->input);
    data->item = mf_dtypes[problem->in_type[data->input]].size;
    data->size = (int64_t)mf_cls_size(reducer->cls);
    data->elements = (int)problem->reduced_total;
    data->loops = is_plain(problem, data->input) ? 1 : column_loops(nest);
    data->columns = count_columns(nest, data->loops);
    data->positions = problem->kept_total / data->columns;
    data->group = GROUP / data->columns > 1 ? GROUP / data->columns : 1;
    data->tasks = (data->positions + data->group - 1) / data->group;
    data->windows = nest->window_count;
    data->in_pairs = reducer->fold == FOLD_SUM && mf_cls_is_float(reducer->cls);
    const int around = nest->kept - data->loops;
    mf_walk_make(&data->row, data->loops, nest->size + around, nest->in[data->input] + around);
    mf_walk_make(&data->walk, around, nest->size, nest->in[data->input]);
    element_offsets(nest, nest->in[data->input], data->elements, data->element);
    for (int w = 0; w < nest->window_count; w++) {
        data->window[w].extent = nest->window[w].extent;
        data->window[w].offset = nest->window[w].offset;
        data->window[w].step = nest->window[w].step[nest->kept - 1];
        mf_walk_make(&data->window[w].walk, around, nest->size, nest->window[w].step);
        element_offsets(nest, nest->window[w].step, data->elements, data->window[w].element);
    }
    data->nothing = mf_state_identity(reducer).v[0];
    data->outside = mf_reducer_outside(reducer, problem->in_type[data->input]);
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    data->finish_bytes = mf_finish_memory(&data->finish, problem, data->group * data->columns);
    data->copy_bytes = ((size_t)(data->columns * data->item) + 63) / 64 * 64;
    const int reads = data->loops == 1 && reads_rows(nest, data->input) && !data->in_pairs;
    const int copies = reads ? 0 : data->elements;
    const int64_t counts = problem->program.uses_count ? data->columns : 0;
    data->worker_bytes = data->finish_bytes + (size_t)copies * data->copy_bytes +
                         ((size_t)(data->group * 8 * (1 + data->windows + counts)) + 63) / 64 * 64;
    return MF_OK;
}

struct few_job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory;
};

/* The columns at which an element is inside all windows: low ... high-1; at: the windows' indices at the position,
 * `group` apart. */
static void find_columns(const struct few_plan *data, const int64_t *at, int e, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = data->columns;
    for (int w = 0; w < data->windows; w++) {
        const struct few_window *window = &data->window[w];
        int64_t first = window->offset + at[w * data->group] + window->element[e], step = window->step;
        const int64_t last = first + (data->columns - 1) * step;
        if (first >= 0 && first < window->extent && last >= 0 && last < window->extent)
            continue;
        if (step < 0) { /* counted from the other end */
            first = window->extent - 1 - first;
            step = -step;
        }
        const int64_t from = first >= 0 ? 0 : step ? -(first + 1) / step + 1 : data->columns;
        const int64_t to = first >= window->extent ? 0 : step ? (window->extent - 1 - first) / step + 1 : data->columns;
        *low = from > *low ? from : *low;
        *high = to < *high ? to : *high;
    }
}

static void fill(char *to, const union value *value, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * size, value, (size_t)size);
}

/* The columns' elements, `outside` where they are not inside; in `copy` where they do not lie so. */
static const char *find_row(const struct few_plan *data, uintptr_t at, int64_t low, int64_t high, char *copy)
{
    const char *const row = (const char *)at;
    if (low == 0 && high == data->columns && data->row.loops == 1 && data->row.stride[0] == 1)
        return row;
    const int item = (int)data->item;
    fill(copy, &data->outside, low, item);
    mf_walk_gather(&data->row, item, row, low, high - low, copy + low * item);
    fill(copy + high * item, &data->outside, data->columns - high, item);
    return copy;
}

/* Sums of floats: the halving tree of lanes that have an element each, of which some may be missing. */
static void add_pairs(const struct few_plan *data, const void **row, char *to, char *copies)
{
    for (int half = MOST_ELEMENTS / 2; half; half /= 2)
        for (int l = 0; l < half && l + half < data->elements; l++) {
            char *const sum = half == 1 ? to : copies + (size_t)l * data->copy_bytes;
            if (row[l] && row[l + half])
                data->chain(sum, row[l], row + l + half, 1, data->columns, NULL);
            row[l] = row[l] && row[l + half] ? sum : row[l] ? row[l] : row[l + half];
        }
    if (row[0] && row[0] != to)
        memcpy(to, row[0], (size_t)(data->columns * data->size));
}

/* Columns that no element reaches. */
static void fill_missing(const struct few_plan *data, const int64_t *low, const int64_t *high, char *to)
{
    for (int64_t c = 0, reached; c < data->columns; c = reached) {
        reached = c;
        for (int e = 0; e < data->elements; e++)
            if (low[e] <= c && high[e] > reached)
                reached = high[e];
        if (reached == c)
            fill(to + reached++ * data->size, &data->nothing, 1, data->size);
    }
}

static void count_inside(int64_t *counts, int64_t low, int64_t high)
{
    for (int64_t c = low; c < high; c++)
        counts[c]++;
}

/* The fold at one position, to `to`; counts: null where nobody asks for them. */
static void fold(const struct few_plan *data, uintptr_t row, const int64_t *at, char *to, char *copies, int64_t *counts)
{
    const void *x[MOST_ELEMENTS];
    int64_t low[MOST_ELEMENTS], high[MOST_ELEMENTS];
    int count = 0;
    for (int e = 0; e < data->elements; e++) {
        find_columns(data, at, e, &low[e], &high[e]);
        const int is_inside = low[e] < high[e];
        if (is_inside || data->in_pairs)
            x[count++] = is_inside ? find_row(data, row + (uintptr_t)(data->element[e] * data->item), low[e], high[e],
                                              copies + (size_t)e * data->copy_bytes)
                                   : NULL;
        if (counts)
            count_inside(counts, low[e], high[e]);
    }
    if (data->in_pairs)
        add_pairs(data, x, to, copies);
    else if (count)
        data->chain(to, NULL, x, count, data->columns, NULL);
    if (data->windows)
        fill_missing(data, low, high, to);
}

static void run_task(void *context, int64_t number, int thread)
{
    const struct few_job *job = context;
    const struct few_plan *data = job->plan->data;
    char *memory = job->memory + (size_t)thread * data->worker_bytes;
    int64_t *offset = (int64_t *)(void *)(memory + data->finish_bytes), *at = offset + data->group;
    int64_t *counts = job->plan->problem.program.uses_count ? at + data->windows * data->group : NULL;
    char *const copies = (char *)(at + (data->windows + (counts ? data->columns : 0)) * data->group);
    const int64_t first = number * data->group, left = data->positions - first;
    const int64_t n = left < data->group ? left : data->group;
    struct finish finish;
    mf_finish_start(&finish, &data->finish, job->plan, job->pointers, memory, data->group * data->columns);
    mf_walk_offsets(&data->walk, first, 1, n, offset);
    for (int w = 0; w < data->windows; w++)
        mf_walk_offsets(&data->window[w].walk, first, 1, n, at + w * data->group);
    if (counts)
        memset(counts, 0, (size_t)(n * data->columns) * sizeof *counts);
    for (int64_t p = 0; p < n; p++)
        fold(data, (uintptr_t)job->pointers->in[data->input] + (uintptr_t)(offset[p] * data->item), at + p,
             (char *)finish.results.part[0][0] + p * data->columns * data->size, copies,
             counts ? counts + p * data->columns : NULL);
    mf_finish_store(&finish, first * data->columns, n * data->columns, counts);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct few_plan *data = plan->data;
    const int threads = data->tasks < plan->threads ? (int)data->tasks : plan->threads;
    struct few_job job = {plan, pointers, mf_alloc_aligned((size_t)threads * data->worker_bytes)};
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, data->tasks, run_task, &job);
    mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct few_plan *data = plan->data;
    snprintf(text, size, "%d elements for rows of %lld outputs, %lld rows a task", data->elements,
             (long long)data->columns, (long long)data->group);
}

const struct solver mf_solver_few = {
    "few", "few rows: position by position", applicable, make, execute, print, NULL,
};
