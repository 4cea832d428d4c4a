/* The solvers of a GPU, chosen by shape. Each has its kernel in kernels/; here are its hypothesis and its numbers. */
#include <stdio.h>

#include "launch.h"
#include "texts.h"

static int no_user_operation(const struct mf_plan *plan)
{
    for (int r = 0; r < plan->problem.program.reducer_count; r++)
        if (plan->problem.program.reducer[r].kind == RED_USER)
            return 0;
    return 1;
}

static int clamp(int64_t value, int low, int high)
{
    return value < low ? low : value > high ? high : (int)value;
}

/* ---- map ---- */

static int map_applicable(const struct mf_plan *plan)
{
    return !plan->problem.program.reducer_count && !plan->problem.program.uses_count;
}

static mf_status map_plan(struct mf_plan *plan)
{
    enum { THREADS = 256, UNITS = 4 };
    const struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_map_cl, .threads = THREADS};
    int item = 1;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i] && mf_dtypes[problem->in_type[i]].size > item)
            item = mf_dtypes[problem->in_type[i]].size;
    for (int k = 0; k < problem->output_count; k++)
        if (mf_dtypes[problem->out_type[k]].size > item)
            item = mf_dtypes[problem->out_type[k]].size;
    choice.vector = 16 / item;
    int64_t unit = (int64_t)THREADS * choice.vector * UNITS;
    choice.blocks = (problem->kept_total + unit - 1) / unit;
    mf_text_add(&choice.macros, "#define UNITS %d\n", UNITS);
    snprintf(choice.text, sizeof choice.text, "vectors of %d outputs, %d a thread", choice.vector, UNITS);
    return mf_gpu_make(plan, &choice);
}

static const struct solver map = {
    "map", "outputs in units of 16 bytes", map_applicable, map_plan, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};

/* ---- columns ---- */

/* Neighbouring outputs are neighbours in the operands, and there is more than one reduced element. */
static int columns_applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    if (!no_user_operation(plan) || !nest->kept || !nest->reduced || nest->size[nest->kept - 1] < 2)
        return 0;
    int unit = 0;
    for (int i = 0; i < problem->input_count; i++) {
        if (!problem->map_uses[i])
            continue;
        unit |= nest->in[i][nest->kept - 1] == 1 && nest->in[i][nest->kept + nest->reduced - 1] != 1;
        if (nest->in[i][nest->kept + nest->reduced - 1] == 1)
            return 0;
    }
    return unit;
}

static mf_status columns_plan(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    int words = mf_emit_state_words(problem);
    int64_t reduced = problem->reduced_total, tiles = (reduced + TILE - 1) / TILE;
    int64_t lanes = mf_power_above(reduced < LANES ? reduced : LANES), row = problem->memory.size[problem->memory.kept - 1];
    int column_threads = clamp(mf_power_above(row), 1, GPU_WARP);
    /* enough blocks for the device, as far as 8 columns go */
    int64_t wanted = 2 * (int64_t)limits->multiprocessors;
    while (column_threads > 8 && (problem->kept_total / column_threads) * tiles < wanted)
        column_threads /= 2;
    int held = clamp(lanes, 1, words > 8 ? 2 : words > 2 ? 4 : 16);
    int lane_threads = (int)(lanes / held);
    while (lane_threads * column_threads > 512 && column_threads > 4)
        column_threads /= 2;
    int threads = lane_threads * column_threads;
    int groups = threads < 256 ? 256 / threads : 1;
    threads *= groups;
    struct gpu_choice choice = {
        .kernel = mf_text_columns_cl, .fold = mf_text_fold_cl, .threads = threads, .vector = 1};
    int64_t block_columns = (int64_t)column_threads * groups, column_blocks =
        (problem->kept_total + block_columns - 1) / block_columns;
    int64_t parts = 1;
    if (tiles > 1) {
        parts = 8 * wanted / column_blocks;
        parts = parts < 1 ? 1 : parts > tiles ? tiles : parts;
    }
    int64_t share = (tiles + parts - 1) / parts;
    parts = tiles ? (tiles + share - 1) / share : 1;
    choice.blocks = column_blocks * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.own[4] = column_blocks;
    if (tiles > 1)
        choice.workspace_bytes = problem->kept_total * mf_levels(tiles) * mf_emit_state_bytes(problem) + 4 * column_blocks;
    int steps = (int)((reduced < TILE ? reduced : TILE) / LANES);
    int batch = clamp(32 / (held * words), 1, steps < 2 ? 1 : 8);
    mf_text_add(&choice.macros, "#define COLUMN_THREADS %d\n#define LANE_THREADS %d\n#define HELD %d\n#define BATCH %d\n",
                column_threads, lane_threads, held, (int)mf_power_above(batch));
    snprintf(choice.text, sizeof choice.text,
             "%d columns a block, %d threads of %d lanes each, %lld parts of %lld tiles", (int)block_columns,
             lane_threads, held, (long long)parts, (long long)share);
    return mf_gpu_make(plan, &choice);
}

static const struct solver columns = {
    "columns",      "neighbouring outputs by neighbouring threads", columns_applicable, columns_plan,
    mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};

/* ---- rows ---- */

static int rows_applicable(const struct mf_plan *plan)
{
    return plan->problem.reduced_total <= TILE && no_user_operation(plan);
}

static mf_status rows_plan(struct mf_plan *plan)
{
    enum { THREADS = 256 };
    const struct problem *problem = &plan->problem;
    int words = mf_emit_state_words(problem), inputs = 0;
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    int64_t reduced = problem->reduced_total;
    int lanes = (int)mf_power_above(reduced < 1 ? 1 : reduced < LANES ? reduced : LANES);
    int width = clamp(lanes, 1, GPU_WARP), held = lanes / width;
    if (held == 1 && width >= 4) { /* levels inside a thread cost no exchange */
        held = width >= 16 ? 4 : 2;
        width /= held;
    }
    int room = 32 / (words * held * (inputs > 1 ? 2 : 1));
    int rows = clamp(room, 1, width), steps = (int)((reduced + LANES - 1) / LANES);
    if (steps > 1)
        rows = 1;
    while (rows & (rows - 1))
        rows &= rows - 1;
    int batch = clamp(8 / (words > 2 ? 2 : 1) / (inputs > 1 ? 2 : 1), 1, 8);
    struct gpu_choice choice = {.kernel = mf_text_rows_cl, .fold = mf_text_fold_cl, .threads = THREADS, .vector = 1};
    int64_t block_rows = (int64_t)THREADS / width * rows;
    choice.blocks = (problem->kept_total + block_rows - 1) / block_rows;
    mf_text_add(&choice.macros,
                "#define WIDTH %d\n#define HELD %d\n#define ROWS %d\n#define STEPS %d\n#define BATCH %d\n", width, held,
                rows, steps > 1 ? 2 : 1, batch);
    snprintf(choice.text, sizeof choice.text, "%d threads of %d lanes a row, %d rows at once", width, held, rows);
    return mf_gpu_make(plan, &choice);
}

static const struct solver rows = {
    "rows",         "outputs of at most a tile, by a warp or some of its threads", rows_applicable, rows_plan,
    mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};

/* ---- tiles ---- */

static int tiles_applicable(const struct mf_plan *plan)
{
    return plan->problem.reduced_total > TILE && no_user_operation(plan);
}

static mf_status tiles_plan(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    int words = mf_emit_state_words(problem), warps = clamp(mf_power_above(tiles), 1, 8);
    int64_t wanted = 16 * (int64_t)limits->multiprocessors, parts = wanted / problem->kept_total;
    int64_t most = (tiles + warps - 1) / warps;
    parts = parts < 1 ? 1 : parts > most ? most : parts;
    int64_t share = ((tiles + parts - 1) / parts + warps - 1) / warps * warps;
    parts = (tiles + share - 1) / share;
    struct gpu_choice choice = {
        .kernel = mf_text_tiles_cl, .fold = mf_text_fold_cl, .threads = warps * GPU_WARP, .vector = 1};
    choice.blocks = problem->kept_total * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.workspace_bytes =
        problem->kept_total * (mf_levels(tiles) * mf_emit_state_bytes(problem) + (int64_t)sizeof(uint32_t));
    mf_text_add(&choice.macros, "#define BATCH %d\n", clamp(8 / (words > 2 ? 2 : 1), 1, 8));
    snprintf(choice.text, sizeof choice.text, "%lld tiles, %lld a block", (long long)tiles, (long long)share);
    return mf_gpu_make(plan, &choice);
}

static const struct solver tiles = {
    "tiles",        "outputs of several tiles, a warp each, by as many blocks as the device wants", tiles_applicable,
    tiles_plan,     mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};

const struct solver *const mf_gpu_solvers[] = {&map, &columns, &rows, &tiles, NULL};
