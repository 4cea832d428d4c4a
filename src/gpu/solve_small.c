/* Solver "small" of a GPU: few outputs of few tiles each, in a launch that takes little time (kernels/small.cu). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum { MOST_CLUSTER = 8, MOST_TILES = 32, ARCHITECTURE = 90 };

/* Whether all reducers are ours, with states of few words. */
static int is_simple(const struct problem *problem)
{
    enum { MOST_WORDS = 8 };
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER)
            return 0;
    return mf_emit_state_words(problem) <= MOST_WORDS;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int operand = mf_gpu_only_operand(problem);
    return limits->architecture >= ARCHITECTURE && !plan->condition && operand >= 0 && is_simple(problem) &&
           problem->program.reducer_count && mf_gpu_widest_item(problem) > 1 && problem->memory.reduced == 1 &&
           !problem->memory.window_count && problem->memory.in[operand][problem->memory.kept] == 1 &&
           problem->reduced_total > TILE && problem->reduced_total <= (int64_t)TILE * MOST_TILES &&
           problem->kept_total * MOST_CLUSTER <= limits->multiprocessors;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const int tiles = (int)((problem->reduced_total + TILE - 1) / TILE), all = (int)mf_power_above(tiles);
    const int cluster = all < MOST_CLUSTER ? all : MOST_CLUSTER;
    struct gpu_choice choice = {.kernel = mf_text_small_cu,
                                .fold = mf_text_fold_cl,
                                .threads = all / cluster * LANES,
                                .vector = 1,
                                .vector_loop = -1,
                                .blocks = problem->kept_total * cluster};
    choice.own[0] = tiles;
    mf_gpu_define_lanes(problem, 1, &choice.macros);
    mf_text_append(&choice.functions, mf_text_lanes_cl);
    mf_text_add(&choice.macros, "#define CLUSTER %d\n#define BATCH 1\n#define TEAM_VECTOR 1\n", cluster);
    snprintf(choice.text, sizeof choice.text, "%d tiles, clusters of %d", tiles, cluster);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_small = {
    "small",       "few outputs of few tiles, a cluster of blocks each", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
