/* Solver "map": no reduced mode. out[o] = map(a[o], b[o], ...), a broadcast where an operand lacks a mode.
 *
 * The kept loops are cut into blocks of flat positions; each block is evaluated in the nearest cache and stored.
 * Outputs much larger than the cache are written past it, which saves reading them first.
 * Cost: every operand's elements once, every output's once. */
#include "block.h"

#include <stdio.h>

struct map_plan {
    struct block_plan block;
    struct walk out[MF_MAX_OUTPUTS];
    int64_t step;  /* positions of one block: whole runs of the last loops where that helps repeated operands */
    int64_t grain; /* blocks of one task */
    int stream;
};

enum { STREAM_BYTES = 4 << 20, TASK_BYTES = 256 << 10 };

static int applicable(const struct mf_plan *plan)
{
    return plan->problem.program.reducer_count == 0;
}

/* The largest product of inner loops that fits in a block, times what of the next loop fits. */
static int64_t block_step(const struct nest *nest)
{
    int64_t inner = 1;
    for (int l = nest->kept - 1; l >= 0; l--) {
        if (inner * nest->size[l] > BLOCK)
            return inner * (BLOCK / inner);
        inner *= nest->size[l];
    }
    return inner;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct map_plan *data = plan->data = mf_calloc(sizeof *data);
    int64_t bytes = 0;
    if (!data)
        return MF_ERROR_MEMORY;
    mf_block_plan(&data->block, &problem->program.finish, problem->program.output, problem->output_count,
                  problem->in_type);
    for (int i = 0; i < problem->input_count; i++)
        mf_walk_make(&data->block.walk[i], nest->kept, nest->size, nest->in[i]);
    for (int k = 0; k < problem->output_count; k++) {
        mf_walk_make(&data->out[k], nest->kept, nest->size, nest->out[k]);
        bytes += mf_dtypes[problem->out_type[k]].size;
    }
    data->step = block_step(nest);
    data->stream = problem->kept_total > STREAM_BYTES / bytes;
    data->grain = 1 + TASK_BYTES / (data->step * bytes);
    return MF_OK;
}

struct job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory; /* per worker */
    size_t memory_size;
    int copy_operands;
};

static void task(void *context, int64_t t, int worker)
{
    const struct job *job = context;
    const struct problem *problem = &job->plan->problem;
    const struct map_plan *data = job->plan->data;
    const struct kernels *kernels = job->plan->device->kernels;
    char *spare = job->memory + (size_t)worker * job->memory_size;
    struct block block;
    mf_block_start(&block, &data->block, kernels, spare + mf_array_bytes(data->step), data->step);
    block.fetch_ahead = data->stream;
    block.copy_operands = job->copy_operands;
    int64_t first = t * data->grain * data->step, last = first + data->grain * data->step;
    if (last > problem->kept_total)
        last = problem->kept_total;
    for (int64_t f = first; f < last; f += data->step) {
        int64_t n = last - f < data->step ? last - f : data->step;
        mf_block_evaluate(&block, job->pointers->in, f, n);
        for (int k = 0; k < problem->output_count; k++) {
            int node = problem->program.output[k];
            mf_block_store(kernels, &data->out[k], problem->out_type[k], problem->program.finish.node[node].cls,
                           job->pointers->out[k], f, n, block.reg[node], spare, data->stream);
        }
    }
}

/* Whether storing one output could change an operand that another output still reads in place. */
static int outputs_touch_inputs(const struct problem *problem, const struct pointers *pointers)
{
    for (int k = 0; problem->output_count > 1 && k < problem->output_count; k++)
        for (int i = 0; i < problem->input_count; i++)
            if (pointers->out[k] == pointers->in[i])
                return 1;
    return 0;
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct map_plan *data = plan->data;
    struct job job = {plan, pointers, NULL, 0, outputs_touch_inputs(&plan->problem, pointers)};
    _Alignas(64) char small[32 << 10];
    int64_t per_task = data->grain * data->step, tasks = (plan->problem.kept_total + per_task - 1) / per_task;
    int threads = tasks < plan->threads ? (int)tasks : plan->threads;
    job.memory_size = mf_array_bytes(data->step) + mf_block_memory(&data->block, data->step);
    size_t all = job.memory_size * (size_t)threads;
    job.memory = all <= sizeof small ? small : mf_alloc_aligned(all);
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, tasks, task, &job);
    if (job.memory != small)
        mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct map_plan *data = plan->data;
    snprintf(text, size, "blocks of %lld positions%s", (long long)data->step,
             data->stream ? ", stored past the cache" : "");
}

const struct solver mf_solver_map = {
    "map", "nothing is reduced: blocks of outputs", applicable, make, execute, print,
};
