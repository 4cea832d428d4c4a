/* Solver "straddle" of a GPU: sums of bytes down many columns whose rows begin anywhere (kernels/straddle.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum {
    VECTOR = 8, /* columns of a thread */
    BLOCK_THREADS = 128,
    SHORTEST_ROW = 64, /* columns */
    LEAST_ROWS = 16,
    MOST_ROWS = 1 << 23 /* their sum is below 2^31 */
};

static int64_t threads_of(const struct problem *problem)
{
    const int64_t row = problem->memory.size[problem->memory.kept - 1];
    return problem->kept_total / row * ((row + VECTOR - 1) / VECTOR);
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int operand = mf_emit_bytes_operand(problem);
    if (operand < 0 || !mf_gpu_is_columns(problem) || nest->window_count || nest->reduced != 1)
        return 0;
    const int64_t stride = nest->in[operand][nest->kept];
    return (stride < 0 ? -stride : stride) >= VECTOR + 4 &&
           mf_gpu_vector_along(problem, nest->kept - 1, VECTOR) < VECTOR &&
           nest->size[nest->kept - 1] >= SHORTEST_ROW && problem->reduced_total >= LEAST_ROWS &&
           problem->reduced_total < MOST_ROWS && problem->kept_total < 1 << 30;
}

/* Of fewer threads too little is loaded at once. (Measured on an H200.) */
int mf_gpu_straddle_pays(const struct mf_plan *plan)
{
    enum { LEAST_THREADS = 400 /* of a multiprocessor */ };
    return applicable(plan) &&
           threads_of(&plan->problem) >= (int64_t)LEAST_THREADS * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int operand = mf_emit_bytes_operand(problem);
    const int64_t row = nest->size[nest->kept - 1], threads = threads_of(problem);
    struct gpu_choice choice = {
        .kernel = mf_text_straddle_cl,
        .threads = BLOCK_THREADS,
        .beside = GPU_ROOM / BLOCK_THREADS,
        .vector = VECTOR,
        .vector_loop = nest->kept - 1,
        .reads_once = mf_gpu_reads_once(problem, VECTOR, READ_WORDS),
        .blocks = (threads + BLOCK_THREADS - 1) / BLOCK_THREADS,
        .own = {(row + VECTOR - 1) / VECTOR, mf_gpu_divisor((row + VECTOR - 1) / VECTOR), threads, 0, 0, 0, 0, 1}};
    for (int l = 0; l < nest->kept + nest->reduced; l++) {
        const int64_t reach = nest->in[operand][l] * (nest->size[l] - 1);
        choice.own[reach > 0 ? 7 : 6] += reach;
    }
    mf_text_append(&choice.macros, "#define BATCH 8\n");
    snprintf(choice.text, sizeof choice.text, "%d columns a thread", VECTOR);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_straddle = {
    "straddle",     "sums of bytes down many columns whose rows begin anywhere",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
