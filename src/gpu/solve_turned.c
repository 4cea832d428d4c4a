/* Solver "turned" of a GPU: no reducer, and operands that lie side by side along another loop than the outputs do:
 * transposed copies and what is computed with them (kernels/turned.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

/* 128 rows of 64 columns of 16 bits, in units of 8 bytes, were as fast as any other on an H200, and of 32 bits faster
 * than with more threads: 0.84 to 0.90 and 0.92 to 0.99 of a copy. Of bytes 32 columns leave registers for more blocks:
 * 3,200 GB/s, 64 columns 2,590. */
enum { THREADS = 128, MOST_COLUMNS = 64, MOST_OF_BYTES = 32, UNIT_BYTES = 8, MOST_TURNED = 2, LEAST_OUTPUTS = 4096 };

/* What is decided: the loop along which operands are turned, the elements of a unit, and the columns of a block. */
struct turned {
    int loop, vector, columns;
};

/* Columns of a block: no more than there are, but a unit for each warp. (16 of bf16: 3,680 GB/s, of 64 1,350.) */
static int columns_of(const struct problem *problem, int vector)
{
    const int64_t columns = mf_power_above(problem->memory.size[problem->memory.kept - 1]);
    return mf_clamp(columns, THREADS / GPU_WARP * vector, vector == UNIT_BYTES ? MOST_OF_BYTES : MOST_COLUMNS);
}

static int is_turned(const struct problem *problem, int i, int loop)
{
    const int64_t *stride = problem->memory.in[i], along = stride[problem->memory.kept - 1];
    return problem->finish_uses[i] && stride[loop] == 1 && along != 0 && along != 1;
}

static int turned_item(const struct problem *problem, int loop)
{
    int item = 0;
    for (int i = 0; i < problem->input_count; i++)
        if (is_turned(problem, i, loop) && mf_dtypes[problem->in_type[i]].size > item)
            item = mf_dtypes[problem->in_type[i]].size;
    return item;
}

/* Whether a tensor's other strides are whole units. */
static int has_units(const struct nest *nest, const int64_t *stride, int along, int vector)
{
    for (int l = 0; l < nest->kept; l++)
        if (l != along && stride[l] % vector)
            return 0;
    return stride[along] == 1;
}

static int is_whole(const struct problem *problem, int loop, int vector)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    int whole = nest->size[loop] % vector == 0 && nest->size[last] % vector == 0;
    for (int i = 0; i < problem->input_count; i++)
        whole = whole && (!is_turned(problem, i, loop) || has_units(nest, nest->in[i], loop, vector));
    for (int k = 0; k < problem->output_count; k++)
        whole = whole && has_units(nest, nest->out[k], last, vector);
    return whole;
}

/* Whether a quarter of the places in blocks are outputs, and columns enough: of fewer solver map reads its operands
 * element by element about as fast. */
static int is_filled(const struct problem *problem, int loop, int vector)
{
    enum { LEAST_COLUMNS = 16, LEAST_OF_UNITS = 8 };
    const int64_t rows = problem->memory.size[loop], columns = problem->memory.size[problem->memory.kept - 1];
    const int64_t block = (int64_t)GPU_WARP * vector;
    const double down = (double)((rows + block - 1) / block * block);
    const int of_block = columns_of(problem, vector), words = vector == 2 || vector == 4;
    const double across = (double)((columns + of_block - 1) / of_block * of_block);
    if (columns < (words && vector * turned_item(problem, loop) == UNIT_BYTES ? LEAST_OF_UNITS : LEAST_COLUMNS))
        return 0;
    return 4.0 * (double)rows * (double)columns >= down * across;
}

/* The bytes of units kept for all turned operands. */
static int64_t kept_bytes(const struct problem *problem, const struct turned *t)
{
    int64_t bytes = 0;
    for (int i = 0; i < problem->input_count; i++)
        if (is_turned(problem, i, t->loop))
            bytes += (int64_t)GPU_WARP * t->vector * (t->columns + t->vector) * mf_dtypes[problem->in_type[i]].size;
    return bytes;
}

static int find(const struct mf_plan *plan, struct turned *t)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    int count = 0, item = 0;
    if (problem->program.reducer_count || problem->program.uses_count || last < 1 ||
        problem->kept_total < LEAST_OUTPUTS || mf_gpu_pixels_pay(plan))
        return 0;
    for (t->loop = last - 1; t->loop >= 0 && !(item = turned_item(problem, t->loop));)
        t->loop--;
    for (int k = 0; k < problem->output_count; k++)
        if (nest->out[k][last] != 1)
            return 0;
    if (t->loop < 0)
        return 0;
    for (int i = 0; i < problem->input_count; i++)
        count += is_turned(problem, i, t->loop);
    t->vector = UNIT_BYTES / item;
    while (t->vector > 1 && !(is_whole(problem, t->loop, t->vector) && is_filled(problem, t->loop, t->vector)))
        t->vector /= 2;
    t->columns = columns_of(problem, t->vector);
    return count <= MOST_TURNED && is_filled(problem, t->loop, t->vector) &&
           kept_bytes(problem, t) <= MF_GPU_LIMITS(plan->device->gpu)->shared;
}

static int applicable(const struct mf_plan *plan)
{
    struct turned t;
    return find(plan, &t);
}

/* Loop l becomes the last but one. */
static void move_loop(struct problem *problem, int l)
{
    struct nest *nest = &problem->memory;
    int64_t *rows[MF_MAX_INPUTS + MF_MAX_OUTPUTS + 1] = {nest->size};
    int count = 1;
    for (int i = 0; i < problem->input_count; i++)
        rows[count++] = nest->in[i];
    for (int k = 0; k < problem->output_count; k++)
        rows[count++] = nest->out[k];
    for (int r = 0; r < count; r++) {
        const int64_t moved = rows[r][l];
        memmove(&rows[r][l], &rows[r][l + 1], sizeof(int64_t) * (size_t)(nest->kept - 2 - l));
        rows[r][nest->kept - 2] = moved;
    }
}

static mf_status make(struct mf_plan *plan)
{
    struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    struct turned t;
    int slot = 0;
    find(plan, &t);
    move_loop(problem, t.loop);
    struct gpu_choice choice = {
        .kernel = mf_text_turned_cl, .threads = THREADS, .vector = t.vector, .vector_loop = last, .flat = 1};
    const int64_t rows = (int64_t)GPU_WARP * t.vector;
    choice.own[0] = (nest->size[last - 1] + rows - 1) / rows;
    choice.own[1] = (nest->size[last] + t.columns - 1) / t.columns;
    choice.blocks = choice.own[0] * choice.own[1] * (problem->kept_total / nest->size[last] / nest->size[last - 1]);
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i])
            mf_text_add(&choice.macros, "#define TURNED_%d %d\n", slot++, is_turned(problem, i, last - 1));
    mf_text_add(&choice.macros, "#define COLUMNS %d\n", t.columns);
    snprintf(choice.text, sizeof choice.text, "%lld by %d outputs a block, turned in units of %d", (long long)rows,
             t.columns, t.vector);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_turned = {
    "turned",       "operands that lie side by side where outputs do not, by way of shared memory",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
