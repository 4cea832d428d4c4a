/* Solvers "slide" and "slide-shared" of a GPU, by name: broadcasts whose threads reuse what they have read
 * (kernels/slide.cl). Solver "map" reads it again from the cache, which is faster on an
 * H200 (bench/results/gpu-h200-figures.md). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum { THREADS = 256, COLUMN_THREADS = 32, SLIDE = 8 };

/* Whether operand i stays where it is along a kept loop; loop -1 is one row that there always is. */
static int is_still(const struct problem *problem, int i, int loop)
{
    return loop < 0 || problem->memory.in[i][loop] == 0;
}

static int still_count(const struct problem *problem, int loop)
{
    int count = 0;
    for (int i = 0; i < problem->input_count; i++)
        count += problem->finish_uses[i] && is_still(problem, i, loop);
    return count;
}

/* The loop to slide along: the last but one where an operand stands still there, else the last. */
static int slide_loop(const struct problem *problem)
{
    int last = problem->memory.kept - 1;
    return last > 0 && still_count(problem, last - 1) ? last - 1 : last;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    return !problem->program.reducer_count && !problem->program.uses_count && problem->memory.kept > 0 &&
           problem->kept_total > 0 && still_count(problem, slide_loop(problem)) > 0;
}

static mf_status make(struct mf_plan *plan, int in_shared)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    int last = nest->kept - 1, loop = slide_loop(problem), slot = 0, by_rows = loop < last;
    struct gpu_choice choice = {.kernel = mf_text_slide_cl, .threads = THREADS, .vector_loop = last};
    choice.vector = 16 / mf_gpu_widest_outside(problem, -1);
    while (choice.vector > 1 && nest->size[last] % choice.vector)
        choice.vector /= 2;
    int64_t columns = (int64_t)COLUMN_THREADS * choice.vector * (by_rows ? 1 : SLIDE);
    int64_t rows = (int64_t)THREADS / COLUMN_THREADS * (by_rows ? SLIDE : 1);
    int64_t all_rows = last > 0 ? nest->size[last - 1] : 1;
    choice.own[0] = (nest->size[last] + columns - 1) / columns;
    choice.own[1] = (all_rows + rows - 1) / rows;
    choice.blocks = choice.own[0] * choice.own[1] * (problem->kept_total / nest->size[last] / all_rows);
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i])
            mf_text_add(&choice.macros, "#define STILL_%d %d\n", slot++, is_still(problem, i, loop));
    mf_text_add(&choice.macros,
                "#define COLUMN_THREADS %d\n#define SLIDE %d\n#define SLIDE_ROWS %d\n"
                "#define IN_SHARED %d\n",
                COLUMN_THREADS, SLIDE, by_rows, in_shared);
    snprintf(choice.text, sizeof choice.text, "vectors of %d outputs, sliding %d times along %s, %s", choice.vector,
             SLIDE, by_rows ? "the rows" : "a row", in_shared ? "shared memory" : "registers");
    return mf_gpu_make(plan, &choice);
}

static mf_status make_in_registers(struct mf_plan *plan)
{
    return make(plan, 0);
}

static mf_status make_in_shared(struct mf_plan *plan)
{
    return make(plan, 1);
}

const struct solver mf_gpu_slide = {
    "slide",        "a broadcast whose threads keep what repeats in registers",
    applicable,     make_in_registers,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
const struct solver mf_gpu_slide_shared = {
    "slide-shared", "a broadcast whose blocks keep what repeats in shared memory",
    applicable,     make_in_shared,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
