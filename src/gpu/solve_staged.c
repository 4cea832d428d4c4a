/* Solver "staged" of a GPU: short rows by way of shared memory (kernels/staged.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum { MOST_BYTES = 256, VECTOR_BYTES = 16 };

/* Whether rows of whole vectors are faster here than by several threads each: states of several words are, whose trees
 * across threads take long; logsumexp is only where those threads would have uneven shares, or a few integers each.
 * (H200, GB/s by solver rows or abreast and here: var of bf16, 24 a row, 310 and 3,740, 32 a row 1,600 and 4,090, u8,
 * 128 a row, 1,290 and 3,790; argmax of i16, 64 a row, 1,600 and 3,620; logsumexp of bf16, 24 a row, 1,070 and 1,440,
 * 32 a row 1,880 and 1,470, of i16, 32 a row, 110 and 580; var of f32, 4 a row, 4,330 and 3,970.) */
static int vectors_pay(const struct problem *problem, int64_t row, enum dtype type)
{
    enum { SHORT = LANES / 2 };
    const int item = mf_dtypes[type].size;
    if (mf_gpu_has_logsums(problem))
        return row < SHORT && ((row & (row - 1)) || !mf_cls_is_float(mf_dtypes[type].cls));
    if (row * item == VECTOR_BYTES)
        return item == 1 ? mf_emit_lane_words(problem) > 1
                         : item == 2 && (mf_emit_has_kind(problem, RED_MOMENTS) || mf_emit_has_kind(problem, RED_ARG));
    return mf_emit_lane_words(problem) > 1;
}

/* One operand inside the reducers, whose rows of at most a step lie one after the other. */
static int applicable(const struct mf_plan *plan)
{
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
    int64_t row = nest->size[1], bytes = row * mf_dtypes[problem->in_type[used]].size;
    return row > 2 && row <= LANES && bytes <= MOST_BYTES && nest->in[used][1] == 1 && nest->in[used][0] == row &&
           (bytes % VECTOR_BYTES || vectors_pay(problem, row, problem->in_type[used]));
}

static mf_status make(struct mf_plan *plan)
{
    enum { BYTES = 64 }; /* that a thread copies at once, where rows are shorter */
    const struct problem *problem = &plan->problem;
    int row = (int)problem->reduced_total, item = mf_gpu_widest_item(problem), held = (int)mf_power_above(row);
    const int any_order = !mf_emit_is_ordered(problem);
    int each = mf_clamp(mf_power_below(BYTES / (row * item)), 1, 8), part = 1;
    while (row % (2 * part) == 0 && 2 * part * item <= 8)
        part *= 2;
    struct gpu_choice choice = {.kernel = mf_text_staged_cl,
                                .threads = row * item * each > 96 ? 128 : 256,
                                .vector = mf_clamp(VECTOR_BYTES / item, 2, 16),
                                .vector_loop = 1,
                                .flat = 1};
    choice.reads_once = mf_gpu_reads_once(problem, choice.vector, READ_BY_ROWS);
    choice.blocks = (problem->kept_total + choice.threads * each - 1) / (choice.threads * each);
    /* threads that read neighbouring rows at once are to find them in different banks of the memory */
    const int apart = row * item % VECTOR_BYTES ? 0 : part;
    mf_text_add(&choice.macros, "#define APART %d\n", apart);
    mf_text_add(&choice.macros,
                "#define ROW %d\n#define HELD %d\n#define EACH %d\n#define PART %d\n#define PART_BYTES %d\n"
                "#define ANY_ORDER %d\n#define SHORT_INDICES 1\n#define LANE_PITCH %d\n",
                row, held, each, part, part * item, any_order, any_order ? 1 : LANES);
    snprintf(choice.text, sizeof choice.text, "%d rows a thread, from shared memory", each);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_staged = {
    "staged", "short rows by way of shared memory", applicable, make, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};
