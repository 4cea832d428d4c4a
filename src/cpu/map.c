/* Solver "map": no reduced mode. out[o] = map(a[o], b[o], ...), a broadcast where an operand lacks a mode.
 *
 * The kept loops are cut into tiles: the innermost loops that fit, and a part of the next one. Each tile is evaluated
 * in the nearest cache and stored; what an operand repeats from tile to tile is gathered once. Outputs much larger
 * than the cache are written past it, which saves reading them first.
 * Cost: every operand's elements once, every output's once. */
#include "block.h"
#include "tiling.h"

#include <stdio.h>

struct map_plan {
    struct block_plan block;
    struct block_outputs out;
    struct tiling tiling; /* the loops outside the tiles, then the loop that tiles cut */
    int64_t inner;        /* positions of the loops inside the cut one */
    int64_t cut, chunk;   /* the cut loop's size and what of it a tile takes */
    int64_t grain;        /* tiles of one task */
};

enum { TASK_BYTES = 256 << 10, FEW_BUFFERS = 4, LANES_OF_LINE = 16, REPEATED_BYTES = 4096 };

static int applicable(const struct mf_plan *plan)
{
    return plan->problem.program.reducer_count == 0;
}

/* Tiles are the innermost loops that fit, and a part of the next one: whole lines of the output if possible. */
static void cut_loops(struct mf_plan *plan, int64_t most)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct map_plan *data = plan->data;
    int cut = nest->kept - 1, inputs = problem->input_count, outputs = problem->output_count;
    data->inner = 1;
    while (cut > 0 && data->inner * nest->size[cut] <= most)
        data->inner *= nest->size[cut--];
    data->cut = cut < 0 ? 1 : nest->size[cut];
    data->chunk = most / data->inner < data->cut ? most / data->inner : data->cut;
    if (data->chunk >= LANES_OF_LINE && data->chunk < data->cut)
        data->chunk -= data->chunk % LANES_OF_LINE;
    mf_tiling_start(&data->tiling, inputs + outputs);
    for (int l = 0; l <= cut; l++) {
        int64_t stride[MAX_SIDES];
        for (int side = 0; side < inputs + outputs; side++)
            stride[side] = side < inputs ? nest->in[side][l] : nest->out[side - inputs][l];
        mf_tiling_add(&data->tiling, nest->size[l], l == cut ? data->chunk : 1, stride);
    }
    cut = cut < 0 ? 0 : cut; /* the walks of no loops at all */
    int64_t size[MAX_LOOPS];
    memcpy(size, nest->size, sizeof size);
    size[cut] = data->chunk;
    for (int i = 0; i < inputs; i++)
        mf_walk_make(&data->block.walk[i], nest->kept - cut, size + cut, nest->in[i] + cut);
    for (int k = 0; k < outputs; k++)
        mf_walk_make(&data->out.walk[k], nest->kept - cut, size + cut, nest->out[k] + cut);
}

/* Of a tile: so few that what an operand repeats stays in the nearest cache, which all other elements pass through. */
static int64_t most_positions(const struct problem *problem, const struct block_plan *block)
{
    const int64_t fit = REPEATED_BYTES / mf_dtypes[problem->out_type[0]].size;
    return block->buffers > FEW_BUFFERS * (block->narrow ? 2 : 1) ? BLOCK : fit < 4 * BLOCK ? fit : 4 * BLOCK;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct map_plan *data = plan->data = mf_calloc(sizeof *data);
    int64_t bytes = 0;
    if (!data)
        return MF_ERROR_MEMORY;
    mf_block_plan(&data->block, &problem->program.finish, problem->program.output, problem->output_count,
                  problem->in_type);
    for (int k = 0; k < problem->output_count; k++)
        bytes += mf_dtypes[problem->out_type[k]].size;
    mf_block_plan_outputs(&data->out, &data->block, problem, plan->device->kernels);
    cut_loops(plan, most_positions(problem, &data->block));
    data->grain = 1 + TASK_BYTES / (data->chunk * data->inner * bytes);
    return MF_OK;
}

struct job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory; /* per worker */
    size_t memory_size;
    int copy_operands;
};

static void *side_at(const struct place *p, int side, const void *base, enum dtype type)
{
    return (void *)((uintptr_t)base + (uintptr_t)(p->offset[side] * mf_dtypes[type].size));
}

static void task(void *context, int64_t t, int worker)
{
    const struct job *job = context;
    const struct problem *problem = &job->plan->problem;
    const struct map_plan *data = job->plan->data;
    char *spare = job->memory + (size_t)worker * job->memory_size;
    int64_t most = data->chunk * data->inner;
    struct block block;
    struct place p;
    mf_block_start(&block, &data->block, job->plan->device->kernels, spare + mf_array_bytes(most), most);
    block.fetch_ahead = data->out.stream;
    block.copy_operands = job->copy_operands;
    int64_t first = t * data->grain, last = first + data->grain;
    last = last < data->tiling.tiles ? last : data->tiling.tiles;
    mf_place_set(&data->tiling, first, &p);
    for (int64_t tile = first; tile < last; tile++, mf_place_next(&data->tiling, &p)) {
        const char *base[MF_MAX_INPUTS];
        char *to[MF_MAX_OUTPUTS];
        int64_t at = data->tiling.dims ? p.at[data->tiling.dims - 1] : 0;
        int64_t n = mf_tile_length(data->cut, data->chunk, at) * data->inner;
        for (int i = 0; i < problem->input_count; i++)
            base[i] = side_at(&p, i, job->pointers->in[i], problem->in_type[i]);
        for (int k = 0; k < problem->output_count; k++)
            to[k] = side_at(&p, problem->input_count + k, job->pointers->out[k], problem->out_type[k]);
        mf_block_run(&block, &data->out, base, to, 0, n, spare);
    }
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct map_plan *data = plan->data;
    struct job job = {plan, pointers, NULL, 0, mf_outputs_touch_inputs(&plan->problem, pointers)};
    _Alignas(64) char small[32 << 10];
    int64_t most = data->chunk * data->inner, tasks = (data->tiling.tiles + data->grain - 1) / data->grain;
    int threads = tasks < plan->threads ? (int)tasks : plan->threads;
    job.memory_size = mf_array_bytes(most) + mf_block_memory(&data->block, most);
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
    snprintf(text, size, "%lld tiles of %lld positions%s%s", (long long)data->tiling.tiles,
             (long long)(data->chunk * data->inner),
             data->out.last ? ", the last operation done as they are stored" : "",
             data->out.stream ? ", stored past the cache" : "");
}

const struct solver mf_solver_map = {
    "map", "nothing is reduced: blocks of outputs", applicable, make, execute, print, NULL,
};
