/* Solver "patches" of a GPU: outputs of few elements that lie among their neighbours' (kernels/patches.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

/* MOST_APART: elements from an output's first to its neighbour's. */
enum { THREADS = 128, MOST_ELEMENTS = 36, MOST_APART = 4, STATE_WORDS = 4, LEAST_OUTPUTS = 4096, LEAST_BESIDE = 32 };

/* Whether operand i's elements for neighbouring outputs lie close to each other, and are not a row of each alone. */
static int are_near(const struct problem *problem, int i)
{
    const struct nest *nest = &problem->memory;
    const int64_t beside = nest->in[i][nest->kept - 1], apart = beside < 0 ? -beside : beside;
    const int64_t along = nest->in[i][nest->kept + nest->reduced - 1];
    return apart <= MOST_APART && (nest->reduced > 1 || !along || apart < problem->reduced_total);
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    if (!problem->program.reducer_count || problem->reduced_total < 2 || problem->reduced_total > MOST_ELEMENTS ||
        problem->kept_total < LEAST_OUTPUTS || !nest->kept || nest->size[nest->kept - 1] < LEAST_BESIDE ||
        !mf_gpu_any_order(plan) || mf_gpu_is_columns(problem) || mf_emit_state_words(problem) > STATE_WORDS)
        return 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER || problem->program.reducer[r].kind == RED_ARG)
            return 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && !are_near(problem, i))
            return 0;
    return 1;
}

static mf_status make(struct mf_plan *plan)
{
    enum { MOST_LOADED = 40, MOST_OUTS = 4 };
    const struct problem *problem = &plan->problem;
    const int count = (int)problem->reduced_total;
    int inputs = 0;
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    const int outs = mf_power_below(mf_clamp(MOST_LOADED / (count * (inputs > 1 ? inputs : 1)), 1, MOST_OUTS));
    struct gpu_choice choice = {.kernel = mf_text_patches_cl, .threads = THREADS, .vector = 1, .vector_loop = -1};
    choice.blocks = (problem->kept_total + THREADS * outs - 1) / (THREADS * outs);
    mf_text_add(&choice.macros, "#define COUNT %d\n#define REACH %d\n#define OUTS %d\n", count,
                (int)mf_power_above(count) / 2, outs);
    snprintf(choice.text, sizeof choice.text, "%d outputs of %d elements a thread", outs, count);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_patches = {
    "patches",      "few elements each, which lie among their neighbours'",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
