/* Solver "turned": no reduced mode, and operands that lie side by side along another loop than the outputs do:
 * transposed copies and what is computed with them.
 *
 * Outputs are cut into patches of rows along that loop and columns along the last one. A turned operand's patch is
 * turned into a copy in the second cache, 16 bytes of as many columns at a time; its rows are then read as if the
 * operand had been the other way round. So what comes from memory is whole lines, and each of them once. The few rows
 * of pixels, whose columns follow each other, are taken apart by a kernel. */
#include "block.h"
#include "tiling.h"
#include "turn.h"

#include <stdio.h>

enum {
    ROW_BYTES = 2048, /* of a patch's copy */
    MOST_COLUMNS = 1024,
    COLUMN_BYTES = 256, /* of an operand's patch: a few lines */
    MOST_TURNED = 4,
    LINE = 64,
    LEAST_ROWS = 4,
    LEAST_COLUMNS = 16,
    TOGETHER = 2048, /* positions of short rows */
    TASK_BYTES = 256 << 10
};

struct turned_plan {
    struct block_plan block;
    struct block_outputs out;
    struct tiling tiling; /* the loops outside, then patches along the turned loop and along the last one */
    int loop, last;       /* the turned loop and the outputs' */
    int turned[MF_MAX_INPUTS];
    int64_t rows, columns; /* of a patch */
    int64_t together;      /* rows that are computed together, since the outputs' touch */
    int64_t grain;         /* patches of one task */
    size_t copies;         /* bytes of all turned operands' */
};

/* ---- the plan ---- */

static int is_turned(const struct problem *problem, int i, int loop)
{
    const int64_t *stride = problem->memory.in[i], along = stride[problem->memory.kept - 1];
    return problem->finish_uses[i] && stride[loop] == 1 && along != 0 && along != 1;
}

/* The loop along which operands are turned, and how many are; -1 where there is none. */
static int find_loop(const struct problem *problem, int *count)
{
    for (int l = problem->memory.kept - 2; l >= 0; l--) {
        *count = 0;
        for (int i = 0; i < problem->input_count; i++)
            *count += is_turned(problem, i, l);
        if (*count)
            return l;
    }
    return -1;
}

/* Whether a kernel takes apart what is turned: the loop is the few elements of pixels that follow each other. Every
 * second element is read faster by solver map. */
static int are_pixels(const struct mf_plan *plan, int loop)
{
    const struct nest *nest = &plan->problem.memory;
    if (!plan->device->kernels->weave)
        return 0;
    for (int i = 0; i < plan->problem.input_count; i++) {
        const int64_t along = nest->in[i][nest->kept - 1];
        if (is_turned(&plan->problem, i, loop) && (along < nest->size[loop] || along < 3 || along > WEAVE_PARTS))
            return 0;
    }
    return 1;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    int count, loop;
    return !problem->program.reducer_count && !nest->window_count && (loop = find_loop(problem, &count)) >= 0 &&
           count <= MOST_TURNED && (nest->size[loop] >= LEAST_ROWS || are_pixels(plan, loop)) &&
           nest->size[nest->kept - 1] >= LEAST_COLUMNS;
}

/* The rows of a copy touch, or lie so far apart that they do not meet in a set of the nearest cache. */
static int64_t pitch_of(const struct turned_plan *data, int item)
{
    return data->together > 1 ? data->columns * item : ((data->columns * item + LINE - 1) / LINE | 1) * LINE;
}

/* Bytes of a copy, whole lines. Of pixels all elements are taken apart, wanted or not. */
static int64_t copy_bytes(const struct turned_plan *data, int item)
{
    const int64_t rows = data->rows > WEAVE_PARTS ? data->rows : WEAVE_PARTS;
    return (rows * pitch_of(data, item) + LINE - 1) / LINE * LINE;
}

static int64_t rows_together(const struct problem *problem, const struct turned_plan *data)
{
    const int64_t columns = problem->memory.size[data->last];
    for (int k = 0; k < problem->output_count; k++)
        if (problem->memory.out[k][data->last] != 1 || problem->memory.out[k][data->loop] != columns)
            return 1;
    return columns < TOGETHER ? TOGETHER / columns : 1;
}

/* One tensor's loops over rows that are computed together. */
static void make_walk(const struct turned_plan *data, struct walk *walk, int64_t of_rows, int64_t of_columns)
{
    const int64_t size[2] = {data->together, data->columns}, stride[2] = {of_rows, of_columns};
    mf_walk_make(walk, 2, size, stride);
}

static void cut_loops(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct turned_plan *data = plan->data;
    const int inputs = problem->input_count, sides = inputs + problem->output_count;
    int item = 1;
    for (int i = 0; i < inputs; i++) {
        data->turned[i] = is_turned(problem, i, data->loop);
        if (data->turned[i] && mf_dtypes[problem->in_type[i]].size > item)
            item = mf_dtypes[problem->in_type[i]].size;
    }
    const int64_t rows = nest->size[data->loop], columns = nest->size[data->last];
    const int64_t most = ROW_BYTES / item < MOST_COLUMNS ? ROW_BYTES / item : MOST_COLUMNS;
    data->rows = rows < COLUMN_BYTES / item ? rows : COLUMN_BYTES / item;
    data->columns = columns < most ? columns : most;
    data->together = data->columns == columns ? rows_together(problem, data) : 1;
    data->together = data->together < data->rows ? data->together : data->rows;
    mf_tiling_start(&data->tiling, sides);
    for (int l = 0; l <= nest->kept; l++) {
        const int of = l == nest->kept ? data->last : l == data->last ? data->loop : l;
        int64_t stride[MAX_SIDES];
        for (int side = 0; side < sides; side++)
            stride[side] = side < inputs ? nest->in[side][of] : nest->out[side - inputs][of];
        if (l != data->loop)
            mf_tiling_add(&data->tiling, nest->size[of],
                          of == data->last   ? data->columns
                          : of == data->loop ? data->rows
                                             : 1,
                          stride);
    }
    for (int i = 0; i < inputs; i++) {
        make_walk(data, &data->block.walk[i], data->turned[i] ? data->columns : nest->in[i][data->loop],
                  data->turned[i] ? 1 : nest->in[i][data->last]);
        if (data->turned[i])
            data->copies += (size_t)copy_bytes(data, mf_dtypes[problem->in_type[i]].size);
    }
    for (int k = 0; k < problem->output_count; k++)
        make_walk(data, &data->out.walk[k], nest->out[k][data->loop], nest->out[k][data->last]);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct turned_plan *data = plan->data = mf_calloc(sizeof *data);
    int count;
    if (!data)
        return MF_ERROR_MEMORY;
    data->loop = find_loop(problem, &count);
    data->last = problem->memory.kept - 1;
    mf_block_plan(&data->block, &problem->program.finish, problem->program.output, problem->output_count,
                  problem->in_type);
    cut_loops(plan);
    mf_block_plan_outputs(&data->out, &data->block, problem, plan->device->kernels);
    int64_t bytes = 0;
    for (int k = 0; k < problem->output_count; k++)
        bytes += mf_dtypes[problem->out_type[k]].size;
    data->grain = 1 + TASK_BYTES / (data->rows * data->columns * bytes);
    return MF_OK;
}

/* ---- execution ---- */

struct job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory; /* per worker: the copies, room for a row, the block's */
    size_t memory_size;
};

static void *side_at(int64_t offset, const void *base, enum dtype type)
{
    return (void *)((uintptr_t)base + (uintptr_t)(offset * mf_dtypes[type].size));
}

static void do_patch(const struct job *job, struct block *block, const struct place *p, char *copies, char *spare)
{
    const struct problem *problem = &job->plan->problem;
    const struct nest *nest = &problem->memory;
    const struct turned_plan *data = job->plan->data;
    const int64_t *at = p->at + data->tiling.dims;
    const int64_t rows = mf_tile_length(nest->size[data->loop], data->rows, at[-2]);
    const int64_t columns = mf_tile_length(nest->size[data->last], data->columns, at[-1]);
    const char *copy[MF_MAX_INPUTS] = {NULL};
    for (int i = 0; i < problem->input_count; i++) {
        const int item = mf_dtypes[problem->in_type[i]].size;
        if (!data->turned[i])
            continue;
        const struct patch patch = {side_at(p->offset[i], job->pointers->in[i], problem->in_type[i]),
                                    nest->in[i][data->last] * item, rows, columns};
        mf_turn(job->plan->device->kernels, copies, pitch_of(data, item), patch, item);
        copy[i] = copies;
        copies += copy_bytes(data, item);
    }
    memset(block->cached, 0, sizeof block->cached); /* what the copies held is gone */
    for (int64_t r = 0; r < rows; r += data->together) {
        const int64_t n = (rows - r < data->together ? rows - r : data->together) * columns;
        const char *base[MF_MAX_INPUTS];
        char *to[MF_MAX_OUTPUTS];
        for (int i = 0; i < problem->input_count; i++)
            base[i] = data->turned[i] ? copy[i] + r * pitch_of(data, mf_dtypes[problem->in_type[i]].size)
                                      : side_at(p->offset[i] + r * nest->in[i][data->loop], job->pointers->in[i],
                                                problem->in_type[i]);
        for (int k = 0; k < problem->output_count; k++)
            to[k] = side_at(p->offset[problem->input_count + k] + r * nest->out[k][data->loop], job->pointers->out[k],
                            problem->out_type[k]);
        mf_block_run(block, &data->out, base, to, 0, n, spare);
    }
}

static void task(void *context, int64_t t, int worker)
{
    const struct job *job = context;
    const struct turned_plan *data = job->plan->data;
    char *copies = job->memory + (size_t)worker * job->memory_size, *spare = copies + data->copies;
    const int64_t first = t * data->grain, end = first + data->grain;
    const int64_t last = end < data->tiling.tiles ? end : data->tiling.tiles;
    struct block block;
    struct place p;
    const int64_t most = data->together * data->columns;
    mf_block_start(&block, &data->block, job->plan->device->kernels, spare + mf_array_bytes(most), most);
    block.copy_operands = mf_outputs_touch_inputs(&job->plan->problem, job->pointers);
    mf_place_set(&data->tiling, first, &p);
    for (int64_t patch = first; patch < last; patch++, mf_place_next(&data->tiling, &p))
        do_patch(job, &block, &p, copies, spare);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct turned_plan *data = plan->data;
    const int64_t tasks = (data->tiling.tiles + data->grain - 1) / data->grain;
    const int threads = tasks < plan->threads ? (int)tasks : plan->threads;
    struct job job = {plan, pointers, NULL, 0};
    const int64_t most = data->together * data->columns;
    job.memory_size = data->copies + mf_array_bytes(most) + mf_block_memory(&data->block, most);
    job.memory = mf_alloc_aligned(job.memory_size * (size_t)threads);
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, tasks, task, &job);
    mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct turned_plan *data = plan->data;
    snprintf(text, size, "%lld patches of %lld rows and %lld columns%s", (long long)data->tiling.tiles,
             (long long)data->rows, (long long)data->columns, data->out.stream ? ", stored past the cache" : "");
}

const struct solver mf_solver_turned = {
    "turned", "nothing is reduced: patches of operands that lie the other way round", applicable, make, execute, print,
    NULL,
};
