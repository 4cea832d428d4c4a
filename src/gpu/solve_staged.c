/* Solver "staged" of a GPU: short rows by way of shared memory (kernels/staged.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

/* One operand inside the reducers, whose rows of at most 32 elements lie one after the other, no whole vectors. */
static int applicable(const struct mf_plan *plan)
{
    enum { MOST = 32, BYTES = 160 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    int used = -1, count = 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i]) {
            used = i;
            count++;
        }
    if (count != 1 || !mf_gpu_any_order(plan) || nest->window_count || nest->kept != 1 || nest->reduced != 1)
        return 0;
    int64_t row = nest->size[1], item = mf_dtypes[problem->in_type[used]].size;
    return row <= MOST && row * item <= BYTES && row % 4 && nest->in[used][1] == 1 && nest->in[used][0] == row;
}

static mf_status make(struct mf_plan *plan)
{
    enum { THREADS = 256 };
    const struct problem *problem = &plan->problem;
    int row = (int)problem->reduced_total, held = (int)mf_power_above(row);
    struct gpu_choice choice = {.kernel = mf_text_staged_cl,
                                .threads = THREADS,
                                .vector = mf_clamp(16 / mf_gpu_widest_item(problem), 2, 16),
                                .vector_loop = 1,
                                .flat = 1};
    choice.blocks = (problem->kept_total + THREADS - 1) / THREADS;
    mf_text_add(&choice.macros, "#define ROW %d\n#define HELD %d\n", row, held);
    snprintf(choice.text, sizeof choice.text, "a row a thread, from shared memory");
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_staged = {
    "staged", "short rows by way of shared memory", applicable, make, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};
