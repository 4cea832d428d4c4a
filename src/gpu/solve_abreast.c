/* Solver "abreast" of a GPU: rows of no whole lanes or vectors, several to a warp (kernels/abreast.cl). */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum {
    MOST_AT_ONCE = 1024, /* elements of a row that a warp reads at once */
    WARPS = 32           /* of a multiprocessor */
};

/* The operands inside the reducers, if the elements of each are neighbours, or one that repeats itself; else 0. */
static int operands_along(const struct problem *problem)
{
    int count = 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i]) {
            if (problem->memory.in[i][problem->memory.kept] & ~(int64_t)1)
                return 0;
            count++;
        }
    return count;
}

/* Whether it is all sums, extremes and the like, which are read in shifted vectors where rows begin anywhere
 * (mf_gpu_shifted_vector), and fast as they are. */
static int has_folds_only(const struct problem *problem)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind != RED_FOLD)
            return 0;
    return 1;
}

/* Where those are faster element by element: several of long types; of short types, short rows, whose shifted vectors
 * have much around them. */
static int folds_pay(const struct problem *problem)
{
    enum { FEW = 5 * GPU_WARP, SOME = 10 * GPU_WARP };
    const int item = mf_gpu_widest_item(problem), aligned = mf_gpu_row_vector(problem) > 1;
    const int one = problem->program.reducer_count == 1;
    const int64_t n = problem->reduced_total;
    if (item > 2)
        return !one && !aligned;
    if (item == 2)
        return !aligned && n <= SOME;
    const int words = mf_emit_bytes_operand(problem) >= 0 || mf_emit_packed_bytes(problem) >= 0; /* four a word */
    return one && !words ? n % LANES != 0 : !aligned && n <= FEW;
}

/* Rows that a warp reads at once. */
static int short_row_pays(const struct problem *problem)
{
    enum { FEW_BYTES = 112, SOME_BYTES = 10 * GPU_WARP };
    const int item = mf_gpu_widest_item(problem), aligned = mf_gpu_row_vector(problem) > 1;
    const int64_t n = problem->reduced_total;
    if (mf_gpu_only_operand(problem) < 0)
        return !has_folds_only(problem) && (!aligned || (n % LANES && mf_emit_has_kind(problem, RED_MOMENTS)));
    if (item == 1 && n <= FEW_BYTES)
        return 0;
    if (has_folds_only(problem))
        return folds_pay(problem);
    if (item == 1 && aligned && (n % LANES == 0 || n > SOME_BYTES))
        return 0;
    return item > 2 || n < MOST_AT_ONCE || mf_emit_has_kind(problem, RED_MOMENTS);
}

/* Longer ones: logsumexp, but not of whole batches of vectors or tiles, and states of several values. */
static int long_row_pays(const struct mf_plan *plan)
{
    enum { MOST_TILES = 4 };
    const struct problem *problem = &plan->problem;
    const int item = mf_gpu_widest_item(problem), aligned = mf_gpu_row_vector(problem) > 1;
    const int64_t n = problem->reduced_total, multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    if (item > 4 || n > MOST_TILES * TILE || (n > TILE && problem->kept_total < WARPS / 2 * multiprocessors))
        return 0;
    if (mf_gpu_has_logsums(problem))
        return n > TILE ? !aligned || n % TILE : !aligned || (item <= 2 && n % (8 * LANES));
    return !aligned && !has_folds_only(problem) && (n <= TILE ? item <= 2 : n <= TILE + TILE / (item < 2 ? 2 : item));
}

/* Rows of at most half of the lanes: moments and logsumexp, whose trees across threads take longer elsewhere; but not
 * what shared memory gives to one thread (solver staged). (H200, GB/s by solver rows and here: mean and std of f32, 64
 * a row, 1,470 and 3,580, var of bf16, 40 a row, 190 and 1,430, logsumexp of f64, 48 a row, 1,710 and 2,220; var of
 * f32, 32 a row, 3,460 and 3,260. By staged: var of bf16, 50 a row, 3,870 and 1,770, logsumexp 1,190 and 1,340.) */
static int few_elements_pay(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    return problem->reduced_total >= (mf_gpu_widest_item(problem) > 4 ? GPU_WARP : GPU_WARP + 1) &&
           (mf_gpu_has_logsums(problem) || (mf_emit_has_kind(problem, RED_MOMENTS) && !mf_gpu_staged.applicable(plan)));
}

/* Rows whose elements are neighbours. (Measured on an H100, as what pays is.) */
static int applicable(const struct mf_plan *plan)
{
    enum { SHORT = LANES / 2 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    if (!mf_gpu_any_order(plan) || nest->window_count || nest->reduced != 1 || !problem->kept_total ||
        mf_emit_has_kind(problem, RED_USER) || (problem->reduced_total <= SHORT && !few_elements_pay(plan)))
        return 0;
    const int operands = operands_along(problem);
    if (operands == 1 && problem->reduced_total > MOST_AT_ONCE)
        return long_row_pays(plan);
    return operands && problem->reduced_total * operands <= MOST_AT_ONCE && short_row_pays(problem);
}

static mf_status make_choice(struct mf_plan *plan, struct gpu_choice *choice, int rows)
{
    enum { MOST_WORDS = 64 /* of states, beside the elements */ };
    const struct problem *problem = &plan->problem;
    const int64_t multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    choice->threads = 128;
    while (choice->threads > 64 && problem->kept_total / rows * GPU_WARP < 4 * multiprocessors * choice->threads)
        choice->threads /= 2; /* few rows: a part of them to every multiprocessor */
    const int64_t block_rows = (int64_t)choice->threads / GPU_WARP * rows;
    choice->fold = mf_text_weights_cl;
    choice->vector = 1;
    choice->vector_loop = problem->memory.kept;
    /* elements of two registers, or large states: with fewer for a thread they would spill */
    const int large = mf_gpu_widest_item(problem) > 4 || rows * mf_emit_state_words(problem) > MOST_WORDS;
    choice->beside = GPU_ROOM / (large ? 2 : 1) / choice->threads;
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
    const int shifts = mf_gpu_has_logsums(&plan->problem) || n > 3 * MOST_AT_ONCE; /* measured on an H100 */
    struct gpu_choice choice = {.kernel = mf_text_lengthwise_cl};
    mf_text_append(&choice.functions, mf_text_merges_cl);
    mf_text_append(&choice.functions, mf_text_tile_lanes_cl);
    mf_text_add(&choice.macros,
                "#define ROWS_SHIFT %d\n#define TILES %d\n#define CHAIN %d\n#define FULL %d\n#define WEIGHT_SETS %d\n",
                shifts, tiles, chain, chain - (rough > 1 ? rough : 1), tiles > 1 ? 2 : 1);
    snprintf(choice.text, sizeof choice.text, "a row a warp, lanes of %d elements", tiles > 1 ? TILE / LANES : chain);
    return make_choice(plan, &choice, 1);
}

static mf_status make(struct mf_plan *plan)
{
    enum { MOST_VALUES = 40, MOST_EVEN = 48, MOST_ROWS = 8 };
    const struct problem *problem = &plan->problem;
    const int64_t multiprocessors = MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    if (problem->reduced_total > MOST_AT_ONCE)
        return make_long(plan);
    /* Whole lanes have a kernel for each number of them, whose weights are constants; of others two share one where
     * they are many. (H100, mean and var of bf16 rows of 768: 2,460 GB/s without that, 2,660, and 2,840 with two rows;
     * of 384, 2,360, 2,560, 2,780 with four; of 1024, 2,660, 2,840, 2,790 with two.) */
    const int n = (int)problem->reduced_total, even = n % LANES == 0, rough = n > MOST_AT_ONCE / 2 && !even ? 2 : 1;
    const int slots = ((n + GPU_WARP - 1) / GPU_WARP + rough - 1) / rough * rough;
    const int wide = operands_along(problem) * (mf_gpu_widest_item(problem) > 4 ? 2 : 1);
    int rows = mf_clamp(mf_power_below((even ? MOST_EVEN : MOST_VALUES) / (slots * wide)), 1, MOST_ROWS);
    while (rows > 1 && problem->kept_total / rows < WARPS * multiprocessors)
        rows /= 2;
    struct gpu_choice choice = {.kernel = mf_text_abreast_cl};
    mf_text_append(&choice.functions, mf_text_merges_cl);
    mf_text_add(&choice.macros,
                "#define ROWS %d\n#define SLOTS %d\n#define FULL %d\n#define LANE_PITCH %d\n#define WEIGHT_SETS 1\n"
                "#define EVEN_ELEMENTS %d\n",
                rows, slots, slots - (n % GPU_WARP || rough > 1 ? rough : 0),
                mf_emit_is_ordered(problem) ? LANES : GPU_WARP, even ? n : 0);
    snprintf(choice.text, sizeof choice.text, "%d rows a warp, %d elements a thread of each", rows, slots);
    return make_choice(plan, &choice, rows);
}

const struct solver mf_gpu_abreast = {
    "abreast",      "rows of no whole lanes or vectors, several to a warp",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
