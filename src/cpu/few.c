/* Solver "few": the least or greatest of few elements for many outputs that lie beside each other, as max pooling over
 * channels: out[p, c] = max over r of x[place(p) + step(r) + c]. Windows may leave their tensor.
 *
 * A group of positions p at a time: for each the rows of its elements inside are folded by one call of the chain kernel
 * (extremes have the same value in any order), the group's results are finished together. Solver outer plans its work
 * for long columns, and pays for it at every position.
 * Cost: each element read as often as windows overlap, from the nearest cache but for the first time. */
#include <math.h>
#include <stdio.h>

#include "cpu.h"
#include "finish.h"

enum { MOST_ELEMENTS = 32, LEAST_COLUMNS = 4, MOST_COLUMNS = 4096, GROUP = 4096 };

struct few_window {
    int64_t extent, element[MOST_ELEMENTS]; /* the index' part of each element */
    struct walk walk;                       /* and of the positions */
    int64_t offset;
};

struct few_plan {
    chain_fn *chain;
    int input, elements, windows;
    int64_t item, size; /* bytes of an element, of a value */
    int64_t columns, positions, group, tasks;
    int64_t element[MOST_ELEMENTS]; /* elements from a position to each of its elements */
    struct walk walk;
    struct few_window window[MAX_WINDOWS];
    struct finish_plan finish;
    size_t finish_bytes, worker_bytes;
    union value nothing;
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

/* Whether windows say the same of a whole row, and are this operand's. */
static int windows_fit(const struct nest *nest, int input)
{
    for (int w = 0; w < nest->window_count; w++)
        if (nest->window[w].input != input || nest->window[w].step[nest->kept - 1])
            return 0;
    return 1;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct nest *nest = &problem->memory;
    if (problem->program.reducer_count != 1 || reducer->kind != RED_FOLD || !mf_cls_is_float(reducer->cls) ||
        (reducer->fold != FOLD_MIN && reducer->fold != FOLD_MAX) || problem->program.uses_count || nest->kept < 2 ||
        !problem->kept_total || problem->reduced_total < 1 || problem->reduced_total > MOST_ELEMENTS)
        return 0;
    const int input = plain_operand(problem);
    return input >= 0 && nest->in[input][nest->kept - 1] == 1 && nest->size[nest->kept - 1] >= LEAST_COLUMNS &&
           nest->size[nest->kept - 1] <= MOST_COLUMNS && windows_fit(nest, input) && find_chain(plan, input);
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
    data->columns = nest->size[nest->kept - 1];
    data->positions = problem->kept_total / data->columns;
    data->group = GROUP / data->columns;
    data->tasks = (data->positions + data->group - 1) / data->group;
    data->windows = nest->window_count;
    mf_walk_make(&data->walk, nest->kept - 1, nest->size, nest->in[data->input]);
    element_offsets(nest, nest->in[data->input], data->elements, data->element);
    for (int w = 0; w < nest->window_count; w++) {
        data->window[w].extent = nest->window[w].extent;
        data->window[w].offset = nest->window[w].offset;
        mf_walk_make(&data->window[w].walk, nest->kept - 1, nest->size, nest->window[w].step);
        element_offsets(nest, nest->window[w].step, data->elements, data->window[w].element);
    }
    const double nothing = reducer->fold == FOLD_MAX ? -INFINITY : INFINITY;
    if (reducer->cls == CLS_F32)
        data->nothing.f32 = (float)nothing;
    else
        data->nothing.f64 = nothing;
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    data->finish_bytes = mf_finish_memory(&data->finish, problem, data->group * data->columns);
    data->worker_bytes = (data->finish_bytes + (size_t)(data->group * 8 * (1 + data->windows)) + 63) / 64 * 64;
    return MF_OK;
}

struct few_job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory;
};

/* Whether an element is inside all windows; at: the windows' indices at the position, `group` apart. */
static int is_inside(const struct few_plan *data, const int64_t *at, int e)
{
    for (int w = 0; w < data->windows; w++) {
        const int64_t index = data->window[w].offset + at[w * data->group] + data->window[w].element[e];
        if (index < 0 || index >= data->window[w].extent)
            return 0;
    }
    return 1;
}

/* The fold at one position, to `to`. */
static void fold(const struct few_plan *data, const char *row, const int64_t *at, char *to)
{
    const void *x[MOST_ELEMENTS];
    int count = 0;
    for (int e = 0; e < data->elements; e++)
        if (!data->windows || is_inside(data, at, e))
            x[count++] = row + data->element[e] * data->item;
    if (count)
        data->chain(to, NULL, x, count, data->columns, NULL);
    for (int64_t c = 0; !count && c < data->columns; c++)
        memcpy(to + c * data->size, &data->nothing, (size_t)data->size);
}

static void run_task(void *context, int64_t number, int thread)
{
    const struct few_job *job = context;
    const struct few_plan *data = job->plan->data;
    char *memory = job->memory + (size_t)thread * data->worker_bytes;
    int64_t *offset = (int64_t *)(void *)(memory + data->finish_bytes), *at = offset + data->group;
    const int64_t first = number * data->group, left = data->positions - first;
    const int64_t n = left < data->group ? left : data->group;
    struct finish finish;
    mf_finish_start(&finish, &data->finish, job->plan, job->pointers, memory, data->group * data->columns);
    mf_walk_offsets(&data->walk, first, 1, n, offset);
    for (int w = 0; w < data->windows; w++)
        mf_walk_offsets(&data->window[w].walk, first, 1, n, at + w * data->group);
    for (int64_t p = 0; p < n; p++)
        fold(data, job->pointers->in[data->input] + offset[p] * data->item, at + p,
             (char *)finish.results.part[0][0] + p * data->columns * data->size);
    mf_finish_store(&finish, first * data->columns, n * data->columns, NULL);
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
    "few", "the extreme of few rows: rows of outputs, position by position", applicable, make, execute, print, NULL,
};
