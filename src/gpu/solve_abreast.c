/* Solver "abreast" of a GPU: rows of no whole lanes or vectors, several to a warp (kernels/abreast.cl). */
#include <stdio.h>
#include <stdlib.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    enum { LEAST = 65, MOST = 1024 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int operand = mf_gpu_only_operand(problem);
    const int64_t n = problem->reduced_total;
    if (!mf_gpu_any_order(plan) || operand < 0 || nest->window_count || nest->reduced != 1 || n < LEAST || n > MOST ||
        n % LANES == 0 || nest->in[operand][nest->kept] != 1 || mf_emit_has_kind(problem, RED_USER))
        return 0;
    if (mf_gpu_row_vector(problem) > 1 && !mf_emit_has_kind(problem, RED_MOMENTS))
        return 0;
    return getenv("MF_TEST_ALL") || mf_emit_state_words(problem) > 1;
}

static mf_status make(struct mf_plan *plan)
{
    enum { MOST_VALUES = 40, MOST_ROWS = 8, WARPS = 32 /* of a multiprocessor */ };
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int n = (int)problem->reduced_total, ordered = mf_emit_is_ordered(problem);
    const int step = n > 512 ? 2 : 1, least = (n + GPU_WARP - 1) / GPU_WARP, slots = (least + step - 1) / step * step;
    const int wide = mf_gpu_widest_item(problem) > 4 ? 2 : 1;
    int rows = mf_clamp(mf_power_below(MOST_VALUES / (slots * wide)), 1, MOST_ROWS);
    while (rows > 1 && problem->kept_total / rows < WARPS * (int64_t)limits->multiprocessors)
        rows /= 2;
    struct gpu_choice choice = {
        .kernel = mf_text_abreast_cl, .threads = 128, .vector = 1, .vector_loop = problem->memory.kept};
    if (getenv("MF_TEST_ROWS"))
        rows = atoi(getenv("MF_TEST_ROWS"));
    if (getenv("MF_TEST_THREADS"))
        choice.threads = atoi(getenv("MF_TEST_THREADS"));
    choice.beside = (getenv("MF_TEST_ROOM") ? atoi(getenv("MF_TEST_ROOM")) : GPU_ROOM) / choice.threads;
    const int64_t block_rows = (int64_t)choice.threads / GPU_WARP * rows;
    choice.blocks = (problem->kept_total + block_rows - 1) / block_rows;
    mf_text_add(&choice.macros,
                "#define ROWS %d\n#define SLOTS %d\n#define FULL %d\n#define LANE_PITCH %d\n#define SHORT_INDICES 1\n"
                "#define MERGE_WEIGHTS %d\n",
                rows, slots, slots - step, ordered ? LANES : GPU_WARP, mf_emit_has_kind(problem, RED_MOMENTS));
    snprintf(choice.text, sizeof choice.text, "%d rows a warp, %d elements a thread of each", rows, slots);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_abreast = {
    "abreast",      "rows of no whole lanes or vectors, several to a warp",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
