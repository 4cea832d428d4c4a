/* Solver "runs" of a GPU: all runs of neighbours, which share their partial results (kernels/runs.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum { STATE_WORDS = 2 }; /* that a thread can hold a run of, and more */

/* The last kept loop moves a run by one element of its own; runs are a power of two long, for which a part of the tree
 * does not depend on where it stands; an index would. */
static int applicable(const struct mf_plan *plan)
{
    enum { MOST = 64 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    int64_t run = problem->reduced_total;
    if (nest->reduced != 1 || !nest->kept || nest->window_count || !mf_gpu_any_order(plan) || run < 4 || run > MOST ||
        (run & (run - 1)) || mf_emit_state_words(problem) > STATE_WORDS)
        return 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_ARG || problem->program.reducer[r].kind == RED_USER)
            return 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && nest->in[i][nest->kept - 1] != nest->in[i][nest->kept])
            return 0;
    return 1;
}

static mf_status make(struct mf_plan *plan)
{
    enum { THREADS = 128 };
    const struct problem *problem = &plan->problem;
    int words = mf_emit_state_words(problem), run = (int)problem->reduced_total, own = 16 / words;
    int64_t runs = problem->memory.size[problem->memory.kept - 1], span = (int64_t)THREADS * own;
    struct gpu_choice choice = {
        .kernel = mf_text_runs_cl, .threads = THREADS, .vector = 1, .vector_loop = problem->memory.kept};
    choice.own[0] = (runs + span - 1) / span;
    choice.blocks = problem->kept_total / runs * choice.own[0];
    mf_text_append(&choice.functions, mf_text_single_cl);
    mf_text_add(&choice.macros, "#define RUN %d\n#define OWN_RUNS %d\n#define PAD %d\n", run, own, 4 / words);
    snprintf(choice.text, sizeof choice.text, "%d runs of %d a thread", own, run);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_runs = {
    "runs",        "runs of neighbours, with shared partial results", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
