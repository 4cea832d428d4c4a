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

/* Greatest power of two that is at most n, or 1. */
static int power_below(int64_t n)
{
    int p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

/* ---- map ---- */

static int map_applicable(const struct mf_plan *plan)
{
    return !plan->problem.program.reducer_count && !plan->problem.program.uses_count;
}

/* Whether a tensor's outputs lie one after the other in the outputs' own order. */
static int is_flat(const struct nest *nest, const int64_t *stride)
{
    int64_t step = 1;
    for (int l = nest->kept - 1; l >= 0; l--) {
        if (stride[l] != step)
            return 0;
        step *= nest->size[l];
    }
    return 1;
}

/* How the kernel reads and writes: whole units of a row, or, where rows are no whole units and outputs are flat, units of
 * the flat outputs. */
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
        choice->flat = choice->flat && is_flat(nest, nest->out[k]);
    if (choice->flat)
        choice->vector = 16 / item;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i]) {
            int repeated = 1;
            for (int l = 0; l < nest->kept; l++)
                repeated = repeated && nest->in[i][l] == 0;
            int mode = !choice->flat || repeated ? 0 : is_flat(nest, nest->in[i]) ? 1 : 2;
            mf_text_add(&choice->macros, "#define MODE_%d %d\n", slot++, mode);
        }
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
    map_form(problem, item, &choice);
    int64_t unit = (int64_t)THREADS * choice.vector * UNITS;
    choice.blocks = (problem->kept_total + unit - 1) / unit;
    mf_text_add(&choice.macros, "#define UNITS %d\n", UNITS);
    snprintf(choice.text, sizeof choice.text, "vectors of %d outputs%s, %d a thread", choice.vector,
             choice.flat ? " across rows" : "", UNITS);
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

/* How many elements, a power of two up to `most`, all operands inside the reducers have together along a loop: strides of
 * 0 or 1 there, and all other strides and the loop itself in whole vectors. */
static int vector_along(const struct problem *problem, int loop, int most)
{
    const struct nest *nest = &problem->memory;
    int64_t n = loop < nest->kept || nest->reduced > 1 ? nest->size[loop] : problem->reduced_total;
    while (n % most)
        most /= 2;
    if (nest->window_count)
        return 1;
    for (int i = 0; i < problem->input_count; i++) {
        if (!problem->map_uses[i] || nest->in[i][loop] == 0)
            continue;
        if (nest->in[i][loop] != 1)
            return 1;
        for (int l = 0; l < nest->kept + nest->reduced; l++)
            while (l != loop && nest->in[i][l] % most)
                most /= 2;
    }
    return most;
}

/* The most bytes of an element inside the reducers. */
static int widest_item(const struct problem *problem)
{
    int item = 1;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && mf_dtypes[problem->in_type[i]].size > item)
            item = mf_dtypes[problem->in_type[i]].size;
    return item;
}

/* Threads of a block of columns: beside each other, for a column's lanes, columns and lanes of one. */
struct columns_form {
    int vector, held, lane_threads, column_threads, groups, batch;
};

/* The block that a vector, lanes held by a thread, and threads beside each other give. */
static struct columns_form make_form(const struct problem *problem, int vector, int held, int beside)
{
    enum { SHARED_BYTES = 40 << 10, MOST_THREADS = 512, LOADED_BYTES = 128 };
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
            form.groups * form.column_threads * (int64_t)vector < problem->kept_total / 4096))
        form.groups *= 2;
    int64_t steps = ((reduced < TILE ? reduced : TILE) + LANES - 1) / LANES;
    int most = (int)mf_power_above(steps < 8 ? steps : 8);
    int item = widest_item(problem) < 4 ? 4 : widest_item(problem); /* elements that are shorter get a register too */
    form.batch = clamp(power_below(LOADED_BYTES / (form.held * vector * item)), 1, most);
    return form;
}

/* How good a form is: the part of the device that its blocks keep busy (they come in waves, the last of which may be
 * nearly empty), times the part of 32 KB that a multiprocessor has in flight; accesses of less than 128 bytes cost a
 * little. Registers: the accumulators, what is loaded, and some. 0: too many. */
static double worth_of(const struct problem *problem, const struct columns_form *form, int64_t tiles,
                       const struct gpu_limits *limits)
{
    int words = mf_emit_state_words(problem), item = widest_item(problem);
    int threads = form->column_threads * form->lane_threads * form->groups;
    int loaded = form->vector * form->held * form->batch * item;
    int registers = form->vector * form->held * (words + form->batch * (item < 4 ? 4 : item) / 4) + 20;
    int64_t columns = (int64_t)form->column_threads * form->groups * form->vector;
    int64_t blocks = (problem->kept_total + columns - 1) / columns * tiles;
    if (registers > 160 && form->vector * form->held > 1)
        return 0;
    int at_once = clamp(65536 / (registers * threads), 1, clamp(limits->threads / threads, 1, 32));
    double each = (double)blocks / limits->multiprocessors, waves = each / at_once;
    double busy = waves < 1 ? each : waves; /* all at once: how evenly they are spread is what counts */
    busy /= (double)(int64_t)(busy + 0.999999);
    double in_flight = (each < at_once ? each : at_once) * threads * loaded / (32 << 10);
    int64_t row = problem->memory.size[problem->memory.kept - 1], beside = form->column_threads * (int64_t)form->vector;
    int64_t bytes = (beside < row ? beside : row) * item;
    return busy * (in_flight < 1 ? in_flight : 1) * (bytes >= 128 || beside >= row ? 1 : bytes >= 64 ? 0.93 : 0.8);
}

/* Up to 16 bytes a thread, 256 to 32 bytes beside each other, and the lanes of a thread: the best of these. */
static struct columns_form columns_form(const struct problem *problem, int64_t tiles, const struct gpu_limits *limits)
{
    int item = widest_item(problem), last = problem->memory.kept - 1;
    int widest = mf_emit_state_words(problem) > 2 ? 1 : vector_along(problem, last, power_below(16 / item));
    struct columns_form best = make_form(problem, 1, 1, 8);
    double best_worth = 0;
    for (int vector = widest; vector >= 1 && (vector == widest || vector * item >= 4); vector /= 2)
        for (int beside = GPU_WARP; beside >= 1; beside /= 2)
            for (int held = 8; held >= 1; held /= 2) {
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

static mf_status columns_plan(struct mf_plan *plan)
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
    mf_text_add(&choice.macros,
                "#define COLUMN_THREADS %d\n#define LANE_THREADS %d\n#define HELD %d\n#define BATCH %d\n#define MOST %d\n"
                "#define TEAM_VECTOR 1\n",
                form.column_threads, form.lane_threads, form.held, form.batch, TILE);
    snprintf(choice.text, sizeof choice.text,
             "%d columns a block, %d a thread, %d threads of %d lanes each, %lld parts of %lld tiles", (int)block_columns,
             form.vector, form.lane_threads, form.held, (long long)parts, (long long)share);
    return mf_gpu_make(plan, &choice);
}

static const struct solver columns = {
    "columns",      "neighbouring outputs by neighbouring threads", columns_applicable, columns_plan,
    mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};

/* ---- staged ---- */

/* One operand inside the reducers, whose rows of at most 32 elements lie one after the other and are no whole vectors. */
static int staged_applicable(const struct mf_plan *plan)
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
    if (count != 1 || !no_user_operation(plan) || nest->window_count || nest->kept != 1 || nest->reduced != 1)
        return 0;
    int64_t row = nest->size[1], item = mf_dtypes[problem->in_type[used]].size;
    return row <= MOST && row * item <= BYTES && row % 4 && nest->in[used][1] == 1 && nest->in[used][0] == row;
}

static mf_status staged_plan(struct mf_plan *plan)
{
    enum { THREADS = 256 };
    const struct problem *problem = &plan->problem;
    int row = (int)problem->reduced_total, held = (int)mf_power_above(row);
    struct gpu_choice choice = {.kernel = mf_text_staged_cl,
                                .threads = THREADS,
                                .vector = clamp(16 / widest_item(problem), 2, 16),
                                .vector_loop = 1,
                                .flat = 1};
    choice.blocks = (problem->kept_total + THREADS - 1) / THREADS;
    mf_text_add(&choice.macros, "#define ROW %d\n#define HELD %d\n", row, held);
    snprintf(choice.text, sizeof choice.text, "a row a thread, from shared memory");
    return mf_gpu_make(plan, &choice);
}

static const struct solver staged = {
    "staged",       "short rows by way of shared memory", staged_applicable, staged_plan,
    mf_gpu_execute, mf_gpu_print,                         mf_gpu_forget,
};

/* ---- rows ---- */

static int rows_applicable(const struct mf_plan *plan)
{
    return plan->problem.reduced_total <= TILE && no_user_operation(plan);
}

/* The vector that rows and tiles read along the last reduced loop: 16 bytes, but 4 to 16 elements, or one; rows of one
 * step have shorter ones too. */
static int row_vector(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    int item = widest_item(problem), short_rows = problem->reduced_total <= LANES;
    if (!nest->reduced)
        return 1;
    int most = clamp(16 / item, 4, mf_emit_state_words(problem) > 2 ? 4 : short_rows ? 8 : 16);
    int vector = vector_along(problem, nest->kept + nest->reduced - 1, most);
    return vector >= 4 || (vector == 2 && problem->reduced_total == 2) ? vector : 1;
}

/* Steps that a team reads before it computes: 128 bytes a thread; where elements are needed twice and fit in registers,
 * all steps. */
static int steps_at_once(const struct problem *problem, int vector)
{
    int bytes = 0, two_phases = 0;
    int64_t most = problem->reduced_total < TILE ? problem->reduced_total : TILE, steps = (most + LANES - 1) / LANES;
    for (int i = 0; i < problem->input_count; i++)
        bytes += problem->map_uses[i] ? (vector > 1 ? vector : 4) * mf_dtypes[problem->in_type[i]].size : 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        two_phases |= problem->program.reducer[r].kind == RED_LSE;
    if (two_phases && bytes * steps <= 512 && vector > 1)
        return (int)steps;
    return power_below(clamp(128 / (bytes ? bytes : 1), 1, (int)(steps < 8 ? 8 : steps)));
}

static mf_status rows_plan(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    int words = mf_emit_state_words(problem), inputs = 0;
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    int64_t reduced = problem->reduced_total;
    int lanes = (int)mf_power_above(reduced < 1 ? 1 : reduced < LANES ? reduced : LANES);
    int vector = row_vector(problem), steps = (int)((reduced + LANES - 1) / LANES);
    int width = vector > 1 ? (lanes + vector - 1) / vector : clamp(lanes, 1, GPU_WARP), held = vector > 1 ? vector : lanes / width;
    if (held == 1 && width >= 4) { /* levels inside a thread cost no exchange */
        held = width >= 16 ? 4 : 2;
        width /= held;
    }
    int rows = steps > 1 ? 1 : clamp(power_below(32 / (words * held * (inputs > 1 ? 2 : 1))), 1, vector > 1 ? 8 : width > 4 ? width : 4);
    const int batch = steps_at_once(problem, vector), threads = batch > 16 ? 128 : 256;
    struct gpu_choice choice = {.kernel = mf_text_rows_cl,
                                .fold = mf_text_fold_cl,
                                .threads = threads,
                                .vector = vector,
                                .vector_loop = problem->memory.kept + problem->memory.reduced - 1};
    int64_t block_rows = (int64_t)threads / width * rows;
    choice.blocks = (problem->kept_total + block_rows - 1) / block_rows;
    mf_text_add(&choice.macros,
                "#define WIDTH %d\n#define HELD %d\n#define ROWS %d\n#define STEPS %d\n#define BATCH %d\n#define MOST %d\n"
                "#define EXACT %d\n",
                width, held, rows, steps > 1 ? 2 : 1, batch, steps * LANES, reduced == width * held);
    mf_text_add(&choice.macros, "#define TEAM_VECTOR %d\n", steps > 1 ? vector : 1);
    snprintf(choice.text, sizeof choice.text, "%d threads of %d lanes a row, vectors of %d, %d rows at once", width, held,
             vector, rows);
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
    struct gpu_choice choice = {.kernel = mf_text_tiles_cl,
                                .fold = mf_text_fold_cl,
                                .vector = row_vector(problem),
                                .vector_loop = problem->memory.kept + problem->memory.reduced - 1};
    int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    int batch = steps_at_once(problem, choice.vector), team = LANES / (choice.vector > 1 ? choice.vector : 4);
    choice.threads = clamp(mf_power_above(tiles) * team, GPU_WARP, batch > 16 ? 128 : 256);
    int teams = choice.threads / team;
    int64_t wanted = 16 * (int64_t)limits->multiprocessors, parts = wanted / problem->kept_total;
    int64_t most = (tiles + teams - 1) / teams;
    parts = parts < 1 ? 1 : parts > most ? most : parts;
    int64_t share = parts == 1 ? tiles : mf_power_above(((tiles + parts - 1) / parts + teams - 1) / teams * teams);
    if (share > TILE && parts > 1)
        share = TILE;
    parts = (tiles + share - 1) / share;
    choice.blocks = problem->kept_total * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.workspace_bytes =
        problem->kept_total * (mf_levels(tiles) * mf_emit_state_bytes(problem) +
                               ((tiles + TILE - 1) / TILE + 1) * (int64_t)sizeof(uint32_t));
    mf_text_add(&choice.macros, "#define BATCH %d\n#define MOST %d\n#define TEAM_VECTOR %d\n", batch, TILE, choice.vector);
    snprintf(choice.text, sizeof choice.text, "%lld tiles, %lld a block, vectors of %d", (long long)tiles,
             (long long)share, choice.vector);
    return mf_gpu_make(plan, &choice);
}

static const struct solver tiles = {
    "tiles",        "outputs of several tiles, a warp each, by as many blocks as the device wants", tiles_applicable,
    tiles_plan,     mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};

const struct solver *const mf_gpu_solvers[] = {&map, &columns, &staged, &rows, &tiles, NULL};
