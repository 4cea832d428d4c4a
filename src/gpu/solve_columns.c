/* Solver "columns" of a GPU: neighbouring outputs by neighbouring threads (kernels/columns.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

/* Bytes of shared memory that a block's states may take. */
enum { SHARED_BYTES = 40 << 10 };

static int applicable(const struct mf_plan *plan)
{
    return mf_gpu_any_order(plan) && mf_gpu_is_columns(&plan->problem) &&
           GPU_WARP * mf_emit_state_bytes(&plan->problem) <= SHARED_BYTES;
}

/* Threads of a block of columns: beside each other, for a column's lanes, columns and lanes of one. */
struct columns_form {
    int vector, held, lane_threads, column_threads, groups, batch;
};

/* The block that a vector, lanes held by a thread, and threads beside each other give. */
static struct columns_form make_form(const struct problem *problem, int vector, int held, int beside)
{
    enum { MOST_THREADS = 512, LOADED_BYTES = 128 };
    int64_t reduced = problem->reduced_total, state = mf_emit_state_bytes(problem);
    int lanes = (int)mf_power_above(reduced < LANES ? reduced : LANES);
    struct columns_form form = {.vector = vector, .column_threads = beside, .groups = 1};
    form.held = held < lanes ? held : lanes;
    form.lane_threads = lanes / form.held;
    while ((form.column_threads * form.lane_threads * vector * state > SHARED_BYTES ||
            form.column_threads * form.lane_threads > MOST_THREADS) &&
           form.lane_threads > 1) {
        form.lane_threads /= 2;
        form.held *= 2;
    }
    while (form.groups * form.column_threads * form.lane_threads < GPU_WARP ||
           (form.groups * form.column_threads * form.lane_threads < 256 &&
            2 * form.groups * form.column_threads * form.lane_threads * vector * state <= SHARED_BYTES &&
            form.groups * form.column_threads * (int64_t)vector < problem->kept_total / 4096))
        form.groups *= 2;
    int64_t steps = ((reduced < TILE ? reduced : TILE) + LANES - 1) / LANES;
    int most = (int)mf_power_above(steps < 8 ? steps : 8);
    int item = mf_gpu_widest_item(problem) < 4
                   ? 4
                   : mf_gpu_widest_item(problem); /* elements that are shorter get a register too */
    form.batch = mf_clamp(mf_power_below(LOADED_BYTES / (form.held * vector * item)), 1, most);
    /* compilers give 512 threads 64 registers, and spill others */
    int words = mf_emit_state_words(problem);
    while (form.batch > 1 && form.groups * form.column_threads * form.lane_threads >= MOST_THREADS &&
           vector * form.held * (words + form.batch * item / 4) > 40)
        form.batch /= 2;
    return form;
}

/* How good a form is: the part of the device that its blocks keep busy (they come in waves, the last of which may be
 * nearly empty), times the part of 32 KB that a multiprocessor has in flight; accesses of less than 128 bytes count
 * for less. The factors are guesses that chose well on an H200. Registers: the accumulators, what is loaded, and some.
 * 0: too many. */
static double worth_of(const struct problem *problem, const struct columns_form *form, int64_t tiles,
                       const struct gpu_limits *limits)
{
    int words = mf_emit_state_words(problem), item = mf_gpu_widest_item(problem);
    int threads = form->column_threads * form->lane_threads * form->groups;
    int loaded = form->vector * form->held * form->batch * item;
    int registers = form->vector * form->held * (words + form->batch * (item < 4 ? 4 : item) / 4) + 20;
    int64_t columns = (int64_t)form->column_threads * form->groups * form->vector;
    int64_t blocks = (problem->kept_total + columns - 1) / columns * tiles;
    if ((registers > 160 || form->vector * form->held * words > 32) && form->vector * form->held > 1)
        return 0;
    int at_once = mf_clamp(65536 / (registers * threads), 1, mf_clamp(limits->threads / threads, 1, 32));
    double each = (double)blocks / limits->multiprocessors, waves = each / at_once;
    double busy = waves < 1 ? each : waves; /* all at once: how evenly they are spread is what counts */
    busy /= (double)(int64_t)(busy + 0.999999);
    double in_flight = (each < at_once ? each : at_once) * threads * loaded / (32 << 10);
    int64_t row = problem->memory.size[problem->memory.kept - 1], beside = form->column_threads * (int64_t)form->vector;
    int64_t bytes = (beside < row ? beside : row) * item;
    /* a block's start and end are taken for a microsecond, in which others go on; an H200's multiprocessor reads its
     * share of 4 TB/s, 30 KB, in one */
    double span = at_once * (double)columns * (double)(problem->reduced_total < TILE ? problem->reduced_total : TILE) *
                  item / (30 << 10);
    return busy * (in_flight < 1 ? in_flight : 1) * span / (span + 1) *
           (bytes >= 128 || beside >= row ? 1
            : bytes >= 64                 ? 0.93
                                          : 0.8);
}

/* Whether a column is too long for its elements to be in flight at once, so that a second phase reads them again. */
static int reads_again(const struct problem *problem)
{
    return problem->reduced_total > 8 * LANES;
}

/* Up to 16 bytes a thread, 256 to 32 bytes beside each other, and the lanes of a thread: the best of these. */
static struct columns_form columns_form(const struct problem *problem, int64_t tiles, const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), last = problem->memory.kept - 1;
    int widest = mf_emit_state_words(problem) > 2 ? 1 : mf_gpu_vector_along(problem, last, mf_power_below(16 / item));
    struct columns_form best = make_form(problem, 1, 1, 8);
    double best_worth = 0;
    if (mf_gpu_two_phases(problem) &&
        reads_again(problem)) /* 32 bytes beside each other: 128 KB, which the cache holds */
        return make_form(problem, mf_clamp(widest, 1, 8 / item), 1, 4);
    for (int vector = widest; vector >= 1 && (vector == widest || vector * item >= 4); vector /= 2)
        for (int beside = GPU_WARP; beside >= 1; beside /= 2)
            for (int held = problem->reduced_total <= LANES ? 32 : 8; held >= 1; held /= 2) {
                int64_t bytes = (int64_t)beside * vector * item;
                if (bytes > 256 || (beside > 1 && beside / 2 * (int64_t)vector >= problem->kept_total))
                    continue;
                if (bytes < 32 && beside * (int64_t)vector < problem->memory.size[last])
                    continue;
                struct columns_form form = make_form(problem, vector, held, beside);
                double worth = worth_of(problem, &form, tiles, limits);
                if (worth > best_worth) {
                    best = form;
                    best_worth = worth;
                }
            }
    return best;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    int64_t reduced = problem->reduced_total, tiles = (reduced + TILE - 1) / TILE;
    int64_t wanted = 2 * (int64_t)limits->multiprocessors;
    const struct columns_form form = columns_form(problem, tiles, limits);
    int64_t block_columns = (int64_t)form.column_threads * form.groups * form.vector;
    int64_t column_blocks = (problem->kept_total + block_columns - 1) / block_columns;
    int64_t parts = tiles > 1 ? 16 * wanted / column_blocks : 1;
    parts = parts < 1 ? 1 : parts > tiles ? tiles : parts;
    int64_t share = (tiles + parts - 1) / parts;
    struct gpu_choice choice = {.kernel = mf_text_columns_cl,
                                .fold = mf_text_fold_cl,
                                .threads = form.column_threads * form.lane_threads * form.groups,
                                .vector = form.vector,
                                .vector_loop = problem->memory.kept - 1};
    parts = (tiles + share - 1) / share;
    choice.blocks = column_blocks * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.own[4] = column_blocks;
    if (tiles > 1)
        choice.workspace_bytes =
            problem->kept_total * mf_levels(tiles) * mf_emit_state_bytes(problem) + 4 * column_blocks;
    mf_text_add(
        &choice.macros,
        "#define COLUMN_THREADS %d\n#define LANE_THREADS %d\n#define HELD %d\n#define BATCH %d\n#define MOST %d\n"
        "#define TEAM_VECTOR 1\n",
        form.column_threads, form.lane_threads, form.held, form.batch, TILE);
    snprintf(choice.text, sizeof choice.text,
             "%d columns a block, %d a thread, %d threads of %d lanes each, %lld parts of %lld tiles",
             (int)block_columns, form.vector, form.lane_threads, form.held, (long long)parts, (long long)share);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_columns = {
    "columns",     "neighbouring outputs by neighbouring threads", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
