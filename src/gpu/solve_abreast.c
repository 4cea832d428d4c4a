/* Solver "abreast" of a GPU: rows of no whole lanes or vectors, several to a warp (kernels/abreast.cl). */
#include <stdio.h>
#include <stdlib.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum {
    MOST_AT_ONCE = 1024, /* elements of a row that a warp reads at once */
    MOST_TILES = 4,      /* of a row that a warp takes */
    WARPS = 32           /* of a multiprocessor */
};

/* Where one fold of one value is read faster element by element: short types, whose shifted vectors (kernels/fold.cl)
 * have much around them in short rows. (Measured on an H100.) */
static int one_value_pays(const struct problem *problem)
{
    enum { SOME = 10 * GPU_WARP, FEW = 5 * GPU_WARP, FEWEST = 100 };
    const int item = mf_gpu_widest_item(problem), vector = mf_gpu_row_vector(problem);
    const int64_t n = problem->reduced_total;
    if (vector > 1 && (item > 1 || mf_emit_bytes_operand(problem) >= 0))
        return 0;
    if (mf_emit_bytes_operand(problem) >= 0)
        return n > FEWEST && n <= FEW;
    return (item == 2 && n <= SOME) || (item == 1 && n <= MOST_AT_ONCE);
}

/* Where a warp takes a long row: elements that are needed twice, and states of several values of short types. */
static int long_row_pays(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const int item = mf_gpu_widest_item(problem);
    if (getenv("MF_TEST_TILES") && problem->reduced_total > TILE)
        return 0;
    if (mf_gpu_row_vector(problem) > 1 && !getenv("MF_TEST_VECTOR"))
        return 0;
    if (problem->reduced_total > TILE &&
        problem->kept_total < WARPS * (int64_t)MF_GPU_LIMITS(plan->device->gpu)->multiprocessors / 2)
        return 0;
    return (item <= 4 && (mf_gpu_two_phases(problem) || getenv("MF_TEST_LONG"))) ||
           (item <= 2 && mf_emit_state_words(problem) > 1);
}

static int applicable(const struct mf_plan *plan)
{
    enum { LEAST = 65 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int operand = mf_gpu_only_operand(problem);
    const int64_t n = problem->reduced_total;
    if (!mf_gpu_any_order(plan) || operand < 0 || nest->window_count || nest->reduced != 1 || n < LEAST ||
        n > MOST_TILES * TILE || nest->in[operand][nest->kept] != 1 ||
        mf_emit_has_kind(problem, RED_USER) || problem->kept_total == 0)
        return 0;
    if (n > MOST_AT_ONCE)
        return long_row_pays(plan);
    return n % LANES || mf_gpu_two_phases(problem) ? mf_emit_state_words(problem) > 1 || one_value_pays(problem) : 0;
}

static mf_status make_choice(struct mf_plan *plan, struct gpu_choice *choice, int rows)
{
    const struct problem *problem = &plan->problem;
    const int64_t block_rows = (int64_t)choice->threads / GPU_WARP * rows;
    choice->fold = mf_text_merges_cl;
    choice->vector = 1;
    choice->vector_loop = problem->memory.kept;
    choice->beside = (getenv("MF_TEST_ROOM") ? atoi(getenv("MF_TEST_ROOM")) : GPU_ROOM) / choice->threads;
    choice->blocks = (problem->kept_total + block_rows - 1) / block_rows;
    mf_text_add(&choice->macros, "#define SHORT_INDICES 1\n#define MERGE_WEIGHTS %d\n",
                mf_emit_has_kind(problem, RED_MOMENTS));
    return mf_gpu_make(plan, choice);
}

/* A warp takes a row, a tile after the other. */
static mf_status make_long(struct mf_plan *plan)
{
    const int n = (int)plan->problem.reduced_total, tiles = (n + TILE - 1) / TILE, last = n - (tiles - 1) * TILE;
    const int steps = (last + LANES - 1) / LANES, above = (int)mf_power_above(steps);
    const int rough = tiles > 1 ? above / 2 : above / 8; /* every number of steps would be a kernel of its own */
    const int chain = rough > 1 ? (steps + rough - 1) / rough * rough : steps;
    struct gpu_choice choice = {.kernel = mf_text_lengthwise_cl, .threads = 128};
    mf_text_append(&choice.functions, mf_text_tile_lanes_cl);
    mf_text_add(&choice.macros, "#define NO_SHIFT %d\n#define TILES %d\n#define CHAIN %d\n#define FULL %d\n#define WEIGHT_SETS %d\n", getenv("MF_TEST_NOSHIFT") != 0, tiles,
                chain, chain - (rough > 1 ? rough : 1), tiles > 1 ? 2 : 1);
    snprintf(choice.text, sizeof choice.text, "a row a warp, lanes of %d elements", tiles > 1 ? TILE / LANES : chain);
    return make_choice(plan, &choice, 1);
}

static mf_status make(struct mf_plan *plan)
{
    enum { MOST_VALUES = 40, MOST_ROWS = 8 };
    const struct problem *problem = &plan->problem;
    const int64_t multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    if (problem->reduced_total > MOST_AT_ONCE)
        return make_long(plan);
    const int n = (int)problem->reduced_total, rough = n > MOST_AT_ONCE / 2 ? 2 : 1;
    const int slots = ((n + GPU_WARP - 1) / GPU_WARP + rough - 1) / rough * rough;
    const int wide = mf_gpu_widest_item(problem) > 4 ? 2 : 1;
    int rows = mf_clamp(mf_power_below(MOST_VALUES / (slots * wide)), 1, MOST_ROWS);
    while (rows > 1 && problem->kept_total / rows < WARPS * multiprocessors)
        rows /= 2;
    struct gpu_choice choice = {.kernel = mf_text_abreast_cl, .threads = 128};
    mf_text_add(&choice.macros,
                "#define ROWS %d\n#define SLOTS %d\n#define FULL %d\n#define LANE_PITCH %d\n#define WEIGHT_SETS 1\n", rows,
                slots, slots - (n % GPU_WARP || rough > 1 ? rough : 0), mf_emit_is_ordered(problem) ? LANES : GPU_WARP);
    snprintf(choice.text, sizeof choice.text, "%d rows a warp, %d elements a thread of each", rows, slots);
    return make_choice(plan, &choice, rows);
}

const struct solver mf_gpu_abreast = {
    "abreast",      "rows of no whole lanes or vectors, several to a warp",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
