/* Solver "map" of a GPU: no reducer; outputs in units of 16 bytes (kernels/map.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    return !plan->problem.program.reducer_count && !plan->problem.program.uses_count;
}

/* How the kernel reads and writes: whole units of a row, or, where rows are no whole units and outputs are flat, units
 * of the flat outputs. */
static void map_form(const struct problem *problem, int item, struct gpu_choice *choice)
{
    const struct nest *nest = &problem->memory;
    int last = nest->kept - 1, slot = 0;
    choice->vector = 16 / item;
    choice->vector_loop = last;
    while (choice->vector > 2 && choice->vector * item > 8 && last >= 0 && nest->size[last] % choice->vector)
        choice->vector /= 2;
    choice->flat = last >= 0 && nest->size[last] % choice->vector != 0;
    for (int k = 0; k < problem->output_count; k++)
        choice->flat = choice->flat && mf_emit_is_flat(nest, nest->out[k]);
    if (choice->flat)
        choice->vector = 16 / item;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i]) {
            int repeated = 1;
            for (int l = 0; l < nest->kept; l++)
                repeated = repeated && nest->in[i][l] == 0;
            int mode = !choice->flat || repeated ? 0 : mf_emit_is_flat(nest, nest->in[i]) ? 1 : 2;
            mf_text_add(&choice->macros, "#define MODE_%d %d\n", slot++, mode);
        }
}

/* Whether an operand has about as many elements as there are outputs. */
static int reads_much(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    for (int i = 0; i < problem->input_count; i++) {
        int64_t elements = 1;
        if (!problem->finish_uses[i])
            continue;
        for (int l = 0; l < nest->kept; l++)
            elements *= nest->in[i][l] ? nest->size[l] : 1;
        if (elements >= problem->kept_total / 2)
            return 1;
    }
    return 0;
}

/* Small blocks keep the memory busy, as some read while others write: on an H200 two units a thread move 2 to 3 % more
 * a second than four in blocks of 256 threads; where next to nothing is read four move 6 % more than two. */
static mf_status make(struct mf_plan *plan)
{
    enum { THREADS = 128, READING = 2, WRITING = 4, FULL = 32 /* blocks of a multiprocessor, twice over */ };
    const struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_map_cl, .threads = THREADS};
    const int item = mf_gpu_widest_outside(problem, problem->memory.kept - 1);
    map_form(problem, item, &choice);
    const int64_t block = (int64_t)THREADS * choice.vector;
    const int64_t most = block * FULL * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    const int units = mf_clamp((problem->kept_total + most - 1) / most, 1,
                               reads_much(problem) ? READING : WRITING); /* few outputs: one each */
    choice.blocks = (problem->kept_total + block * units - 1) / (block * units);
    mf_text_add(&choice.macros, "#define UNITS %d\n", units);
    snprintf(choice.text, sizeof choice.text, "vectors of %d outputs%s, %d a thread", choice.vector,
             choice.flat ? " across rows" : "", units);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_map = {
    "map", "outputs in units of 16 bytes", applicable, make, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};
