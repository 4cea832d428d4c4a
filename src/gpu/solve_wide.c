/* Solver "wide" of a GPU: many columns of few elements (kernels/wide.cl). */
#include <stdio.h>
#include <stdlib.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum {
    LEAST_ELEMENTS = 16,
    MOST_ELEMENTS = 1023, /* with 4 to 7 in each of LANES leaves */
    MOST_WORDS = 4,       /* of a column's state */
    LEAST_THREADS = 320,  /* of a multiprocessor */
    BLOCK_THREADS = 128
};

/* Columns of a thread: 4 bytes. */
static int vector_of(const struct problem *problem)
{
    const int item = mf_gpu_widest_item(problem);
    int v = item < 4 ? 4 / item : 1;
    if (getenv("MF_WIDE_V"))
        v = atoi(getenv("MF_WIDE_V")) / item;
    if (mf_gpu_only_operand(problem) < 0)
        return 1;
    return mf_gpu_vector_along(problem, problem->memory.kept - 1, v);
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int64_t least = LEAST_THREADS * (int64_t)MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    return mf_gpu_is_columns(problem) && nest->reduced == 1 && !nest->window_count &&
           problem->reduced_total >= LEAST_ELEMENTS && problem->reduced_total <= MOST_ELEMENTS &&
           problem->program.reducer_count && !mf_emit_has_kind(problem, RED_USER) &&
           mf_emit_bytes_operand(problem) < 0 && mf_nest_is_as_written(nest) &&
           mf_emit_lane_words(problem) <= MOST_WORDS && problem->kept_total / vector_of(problem) >= least;
}

static mf_status make(struct mf_plan *plan)
{
    enum { LEAST_LEAF = 4, ROWS = 16 };
    const struct problem *problem = &plan->problem;
    const int vector = vector_of(problem), ordered = mf_emit_is_ordered(problem);
    const int64_t reduced = problem->reduced_total;
    const int parts = mf_power_below(reduced / LEAST_LEAF), leaf = (int)(reduced / parts);
    const int lanes = reduced <= LANES ? 2 * LEAST_LEAF : LANES / parts;
    int batch = ordered ? 2 : ROWS, threads = BLOCK_THREADS, beside = GPU_ROOM / BLOCK_THREADS;
    if (getenv("MF_WIDE_B"))
        sscanf(getenv("MF_WIDE_B"), "%d,%d,%d", &batch, &threads, &beside);
    if (!ordered)
        batch = getenv("MF_WIDE_R") ? atoi(getenv("MF_WIDE_R")) : ROWS;
    const int64_t columns = (int64_t)threads * vector;
    struct gpu_choice choice = {.kernel = mf_text_wide_cl,
                                .threads = threads,
                                .beside = beside,
                                .vector = vector,
                                .vector_loop = problem->memory.kept - 1,
                                .reads_once = mf_gpu_reads_once(problem, vector),
                                .blocks = (problem->kept_total + columns - 1) / columns,
                                .own = {parts, reduced % parts}};
    mf_text_add(&choice.macros,
                "#define KNOWN_COUNTS 1\n#define LANE_STEP %d\n#define STORES_VECTORS %d\n#define BATCH %d\n"
                "#define Q %d\n#define OF_LEAF %d\n#define LEVELS %d\n#define ITEM %d\n",
                ordered ? LANES : 1, vector > 1, batch, leaf, lanes, parts < 16 ? 4 : parts < 32 ? 4 : parts < 64 ? 5 : parts < 128 ? 6 : 7, vector * mf_gpu_widest_item(problem) >= 4 && mf_gpu_widest_item(problem) < 4 ? mf_gpu_widest_item(problem) : 0);
    snprintf(choice.text, sizeof choice.text, "%d columns a thread, %d leaves of %d elements or one more", vector, parts,
             leaf);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_wide = {
    "wide",        "many columns of few elements, by a thread each", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
