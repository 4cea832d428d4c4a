/* Solver "wide" of a GPU: many columns of few elements (kernels/wide.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum {
    LEAST_ELEMENTS = 16,
    MOST_ELEMENTS = 1023, /* in order: with 4 to 7 in each of LANES leaves, or up to 32 where that pays */
    MOST_WORDS = 4,       /* of a column's state */
    BLOCK_THREADS = 128
};

/* Bytes of one element of each column, for each multiprocessor. */
static int64_t bytes_of(const struct mf_plan *plan)
{
    return plan->problem.kept_total * mf_gpu_widest_item(&plan->problem) /
           MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
}

/* Columns of a thread: 4 bytes, or 8 where they are many and a chain each. */
static int vector_of(const struct mf_plan *plan)
{
    enum { MANY = 7200 };
    const struct problem *problem = &plan->problem;
    const int item = mf_gpu_widest_item(problem);
    const int bytes = mf_emit_is_ordered(problem) || bytes_of(plan) < MANY ? 4 : 8;
    return item < bytes && mf_gpu_only_operand(problem) >= 0
               ? mf_gpu_vector_along(problem, problem->memory.kept - 1, bytes / item)
               : 1;
}

/* Whether all columns are wide enough, for each multiprocessor: of fewer bytes too little is loaded at once, which is
 * still faster than solver columns with moments. That one is as fast with numbers of 4 bytes or more, but for columns
 * of little more than a step or two, and with one number of 16 bits where there are few and rows begin anywhere
 * (columns or slanted). Fewer beside each other than LEAST_BESIDE were not measured; where long sums of 16 bits are in
 * order, they are to be whole lines. (An H100; rows of less than 256 bytes an H200: max of u8, 64 by 64, 3,340 GB/s, by
 * columns 940; argmax of f32, 128 by 32, 4,260 and 1,350; sums of bf16, 512 by 32, 2,350 and 3,310.) */
static int is_wide(const struct mf_plan *plan)
{
    enum {
        LINE_VECTOR = 16 /* bytes */,
        LEAST_BYTES = 1300,
        LEAST_OF_MOMENTS = 900,
        LEAST_NUMBERS = 700 /* columns */,
        LEAST_BESIDE = 32,
        LINE = 128 /* bytes */
    };
    const struct problem *problem = &plan->problem;
    const int item = mf_gpu_widest_item(problem);
    const int64_t bytes = bytes_of(plan), reduced = problem->reduced_total;
    const int64_t beside = problem->memory.size[problem->memory.kept - 1];
    const int short_sums = mf_emit_is_ordered(problem) && mf_emit_lane_words(problem) == 1 && item == 2;
    if (beside < LEAST_BESIDE || (short_sums && reduced > LANES && beside * item < LINE))
        return 0;
    if (mf_emit_lane_words(problem) == 1 && item == 2 && reduced <= LANES &&
        mf_gpu_vector_along(problem, problem->memory.kept - 1, LINE_VECTOR / item) < LINE_VECTOR / item)
        return 0;
    if (mf_emit_lane_words(problem) <= (item > 4 ? 2 : 1))
        return bytes >= LEAST_NUMBERS * item && bytes >= LEAST_BYTES &&
               (item < 4 || (reduced > LANES && reduced < 4 * LANES && reduced % LANES));
    return bytes >= (mf_emit_has_kind(problem, RED_MOMENTS) ? LEAST_OF_MOMENTS : LEAST_BYTES);
}

/* How many elements a column may have. In leaves of more than 7 each moments and sums of 16 bits are faster here than
 * by columns, whose blocks wait for each other, up to a whole tile; logsumexp is not, nor f32 of few columns. (H200,
 * GB/s here and by columns: var of bf16, 1024 by 131,072, 3,210 and 2,080, mean and std of 1500 by 90,112 2,840 and
 * 690, sums of 1024 by 131,072 3,790 and 3,410; var of f32, 1024 by 32,768, 2,490 and 3,340.) */
static int64_t most_elements(const struct mf_plan *plan)
{
    enum { LEAST_BYTES = 1300 };
    const struct problem *problem = &plan->problem;
    const int item = mf_gpu_widest_item(problem), moments = mf_emit_has_kind(problem, RED_MOMENTS);
    if (!mf_emit_is_ordered(problem))
        return TILE;
    if (item > 4 || mf_gpu_only_operand(problem) < 0 || mf_gpu_has_logsums(problem) || (!moments && item > 2))
        return MOST_ELEMENTS;
    return item < 4 ? TILE : bytes_of(plan) >= LEAST_BYTES ? TILE - 1 : MOST_ELEMENTS;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int64_t most = most_elements(plan), reduced = problem->reduced_total;
    return mf_gpu_is_columns(problem) && nest->reduced == 1 && !nest->window_count && reduced >= LEAST_ELEMENTS &&
           reduced <= most && problem->program.reducer_count && !mf_emit_has_kind(problem, RED_USER) &&
           mf_emit_bytes_operand(problem) < 0 && mf_nest_is_as_written(nest) &&
           mf_emit_lane_words(problem) <= MOST_WORDS && is_wide(plan);
}

enum { LEAST_LEAF = 4 };

/* Leaves in a turn, of so many elements. */
static int leaves_of(int leaf)
{
    return leaf < 2 * LEAST_LEAF ? 4 : 2;
}

/* Threads that a multiprocessor is to have room for: of a thread's registers its states take many, and what it has
 * loaded; compiled for more threads a kernel would spill (seen with NVRTC 13.0). */
static int room_of(const struct problem *problem, int vector, int leaf, int levels)
{
    enum { MANY = 24, ALL_LEVELS = 7 };
    const int words = mf_emit_lane_words(problem) * vector, exponentials = mf_gpu_has_logsums(problem);
    const int loaded = leaves_of(leaf) * (leaf + 1) * vector * mf_gpu_widest_item(problem) / 4,
              all = levels == ALL_LEVELS;
    if (!mf_emit_is_ordered(problem))
        return GPU_ROOM;
    if (words > 3)
        return words > 4 || exponentials || (all && loaded > 2 * MANY) ? GPU_ROOM * 3 / 8 : GPU_ROOM / 2;
    return loaded >= 40            ? GPU_ROOM / 2
           : all || loaded >= MANY ? GPU_ROOM * 5 / 8
           : words > 2             ? GPU_ROOM * 3 / 4
                                   : GPU_ROOM;
}

static mf_status make(struct mf_plan *plan)
{
    enum { IN_FLIGHT = 40 << 10 };
    const struct problem *problem = &plan->problem;
    const int item = mf_gpu_widest_item(problem), vector = vector_of(plan), ordered = mf_emit_is_ordered(problem);
    const int64_t columns = (int64_t)BLOCK_THREADS * vector, reduced = problem->reduced_total;
    const int parts = mf_clamp(mf_power_below(reduced / LEAST_LEAF), 1, LANES);
    const int leaf = (int)(reduced / parts);
    const int rows = (int)(IN_FLIGHT / bytes_of(plan));
    int levels = 4; /* where lanes have one element each, and fewer levels are walked as well */
    while (1 << levels < parts)
        levels++;
    struct gpu_choice choice = {.kernel = mf_text_wide_cl,
                                .threads = BLOCK_THREADS,
                                .beside = room_of(problem, vector, leaf, levels) / BLOCK_THREADS,
                                .vector = vector,
                                .vector_loop = problem->memory.kept - 1,
                                .reads_once = mf_gpu_reads_once(problem, vector, READ_BY_COLUMNS),
                                .blocks = (problem->kept_total + columns - 1) / columns,
                                .own = {parts, reduced % parts}};
    mf_text_append(&choice.functions, mf_text_taken_cl);
    mf_text_add(
        &choice.macros,
        "#define MERGE_WEIGHTS 1\n#define LANE_PITCH %d\n#define STORES_VECTORS %d\n#define BATCH BATCH_OF(%d)\n"
        "#define ITEM %d\n",
        ordered ? LANES : 1, vector > 1, ordered ? leaves_of(leaf) : mf_clamp(mf_power_above(rows), 8, 32),
        item < 4 && vector * item >= 4 ? item : 0);
    if (vector == 2 && mf_gpu_has_paired_sums(problem))
        mf_text_append(&choice.macros, "#define PAIRED_FOLDS HAS_PAIRS\n");
    mf_text_add(&choice.macros, "#define SUMS_ALONE %d\n",
                problem->program.reducer_count == 1 && mf_gpu_has_logsums(problem));
    if (ordered)
        mf_text_add(&choice.macros, "#define Q %d\n#define OF_LEAF %d\n#define LEVELS %d\n", leaf,
                    reduced <= LANES ? 2 * LEAST_LEAF : LANES / parts, levels);
    snprintf(choice.text, sizeof choice.text, "%d columns a thread", vector);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_wide = {
    "wide", "many columns of few elements", applicable, make, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};
