/* Solver "rows" of a GPU: outputs of one tile or less (kernels/rows.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    return plan->problem.reduced_total <= TILE && mf_gpu_any_order(plan);
}

/* Rows of few steps are read several at once, as shorter ones are, so that a thread has as much in flight: how many, or
 * 1. Of 16 bits, whose rows are short, more, but no more than two of vectors of 8, and one of four steps and vectors
 * of 4. (Measured on an H200: sums of bf16, 640 a row, 3,540 GB/s by one row at once, 4,330 by two; 300 a row 2,440,
 * 2,660 and 3,050 by one, two and four; 500 a row 3,840, 3,620 and 3,460. Of two operands, one of which all rows share:
 * f32, 300 a row, 3,450 and 4,420 by one and two, bf16, 768 a row, 3,280 and 4,010; on an H100 bf16, 300 a row, 1,850
 * and 2,100, 132 a row 1,150 and 1,250.) */
static int rows_of_steps(const struct problem *problem, int vector, int most, int inputs, int steps)
{
    enum { VECTORS = 8, MORE = 16, MANY_STEPS = 4, FEW_STEPS = 3, MOST_OF_SEVERAL = 6 /* operands */ };
    const int part = problem->reduced_total % LANES != 0, item = mf_gpu_widest_item(problem), two = item == 2;
    int rows = mf_power_below(VECTORS / steps < 1 ? 1 : VECTORS / steps);
    if (two && vector == 8 && steps > MANY_STEPS && 2 * steps <= MORE)
        rows = 2;
    else if (two && part && vector == 4)
        rows = steps < MANY_STEPS ? mf_power_below(MORE / steps) : 1;
    if (inputs > 1 && (item < 4 ? vector < 8 || part || steps > MOST_OF_SEVERAL : item > 4))
        rows = two && vector == 4 && part && steps <= FEW_STEPS && inputs == 2 ? 2 : 1;
    return mf_gpu_has_logsums(problem) ? 1 : rows < most ? rows : most;
}

/* Rows of many steps and a state of one number. Of 16 bits, and whole tiles of 8, a warp takes a row in vectors of 4,
 * so that what it reads together lies side by side; of a whole tile it reads all, or half of f64, before it computes.
 * Blocks are small: the last ones keep a multiprocessor busy for less time. (1 to 5 % on an H200.) room: threads of a
 * multiprocessor; warps: as many of it at most, or 0. What is read once is out of the cache sooner the fewer warps have
 * asked for more, and what kernels before this one wrote stays: few warps are up to 5 % faster behind a kernel that
 * filled the cache, and at most 1 % slower else. Elements that take long leave no time for what all of a tile's loads
 * cost: sum(exp(a)) of bf16 rows of 4096, 1,160 GB/s with all of a tile at once, 1,900 with a quarter, f32 2,220 and
 * 2,870. (Measured on an H100.) */
struct long_rows {
    int vector, batch, threads, room, warps;
    enum gpu_reader reader;
};

static struct long_rows long_rows(const struct problem *problem, int vector, int multiprocessors)
{
    enum { MANY = 7 * LANES, ENOUGH = 64 };
    const int item = mf_gpu_widest_item(problem), whole = problem->reduced_total == TILE;
    const int one = mf_emit_state_words(problem) <= 2;
    struct long_rows rows = {vector, 0, 256, whole && one && item <= 2 ? GPU_ROOM : 0, 0, READ_BY_ROWS};
    if (mf_gpu_has_logsums(problem) && vector >= 4 && item >= 4 && problem->reduced_total > MANY)
        rows.room = item == 4 ? GPU_ROOM : GPU_ROOM / 2;
    /* each load is lines of a row: of f64 3,170 GB/s without, 3,610 with all warps that fit, of bf16 680 and 950 */
    if (vector == 1 && one && mf_gpu_crosses(problem) && problem->reduced_total % (8 * LANES) == 0 &&
        problem->kept_total >= (int64_t)ENOUGH * multiprocessors)
        rows.room = 2 * GPU_ROOM;
    if (vector < 4 || !one || problem->reduced_total <= MANY || mf_gpu_only_operand(problem) < 0 ||
        problem->memory.reduced > 1 || problem->memory.window_count || mf_gpu_has_logsums(problem))
        return rows;
    if (item == 2 || (item == 1 && whole))
        rows.vector = 4;
    if (mf_gpu_has_long_maps(problem))
        return (struct long_rows){rows.vector, 8, 128, GPU_ROOM, 0, READ_BY_ROWS};
    if (whole && item == 8)
        return (struct long_rows){rows.vector, 16, 256, GPU_ONE_BLOCK, 0, READ_BY_ROWS};
    if (whole) {
        const int room = item == 1 ? GPU_ROOM : item == 2 ? 512 : GPU_ONE_BLOCK;
        rows = (struct long_rows){rows.vector, 32, item == 1 ? 64 : 128, room, 0, READ_BY_ROWS};
        if (mf_gpu_reads_once(problem, rows.vector, READ_BY_FEW_WARPS)) {
            rows.reader = READ_BY_FEW_WARPS;
            rows.warps = item == 1 ? 12 : item == 2 ? 6 : 8;
            rows.threads = item <= 2 ? 64 : 128;
        }
        return rows;
    }
    rows.threads = item == 2 ? 128 : 256;
    rows.room = GPU_ROOM;
    return rows;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    int words = mf_emit_state_words(problem), inputs = 0;
    for (int i = 0; i < problem->input_count; i++)
        inputs += problem->map_uses[i];
    int64_t reduced = problem->reduced_total;
    int lanes = (int)mf_power_above(reduced < 1 ? 1 : reduced < LANES ? reduced : LANES);
    const struct long_rows is_long = long_rows(problem, mf_gpu_row_vector(problem), limits->multiprocessors);
    int vector = is_long.vector, shifted = 0;
    const int steps = reduced ? (int)((reduced + LANES - 1) / LANES) : 1; /* an empty row is a short one */
    int64_t bounds[2] = {0, 0};
    if (vector == 1 && steps > 1) {
        vector = mf_gpu_shifted_vector(problem, bounds);
        shifted = vector > 1;
    }
    int width = vector > 1 ? (lanes + vector - 1) / vector : mf_clamp(lanes, 1, GPU_WARP),
        held = vector > 1 ? vector : lanes / width;
    if (held == 1 && width >= 4) { /* levels inside a thread cost no exchange */
        held = width >= 16 ? 4 : 2;
        width /= held;
    }
    /* where any order does, a thread's lanes become one at once */
    int kept = mf_emit_is_ordered(problem) ? words * held : 2 * words;
    int rows = mf_clamp(mf_power_below(32 / (kept * (inputs > 1 ? 2 : 1))), 1,
                        vector > 8   ? 4
                        : vector > 1 ? 8
                        : width > 4  ? width
                                     : 4);
    if (steps > 1)
        rows = vector > 1 && !shifted ? rows_of_steps(problem, vector, rows, inputs, steps) : 1;
    /* few rows beside each other, where there are warps for all: a thread would only take longer */
    while (rows > 1 && steps == 1 && problem->kept_total * width / rows < 32 * (int64_t)limits->multiprocessors)
        rows /= 2;
    const int together = steps == 1 || rows > 1;
    int batch = mf_gpu_steps_at_once(problem, vector);
    if (steps < batch) /* steps that no row has would be read all the same */
        batch = shifted ? (int)((reduced + vector - 1 + LANES - 1) / LANES) : (int)mf_power_above(steps);
    batch = is_long.batch ? is_long.batch : batch;
    int threads = is_long.threads;
    while (threads > 64 && problem->kept_total * width / rows < 4 * (int64_t)limits->multiprocessors * threads)
        threads /= 2; /* few rows: a part of them to every multiprocessor */
    struct gpu_choice choice = {.kernel = mf_text_rows_cl,
                                .fold = mf_text_fold_cl,
                                .packed = 1,
                                .threads = threads,
                                .vector = vector,
                                .shifted = shifted,
                                .beside = mf_clamp(is_long.room / threads, is_long.room > 0, GPU_ROOM / GPU_WARP),
                                .most_beside = is_long.warps * GPU_WARP / threads,
                                .reads_once = mf_gpu_reads_once(problem, vector, is_long.reader),
                                .vector_loop = problem->memory.kept + problem->memory.reduced - 1};
    int64_t block_rows = (int64_t)threads / width * rows;
    choice.blocks = (problem->kept_total + block_rows - 1) / block_rows;
    choice.own[6] = bounds[0];
    choice.own[7] = bounds[1];
    mf_text_add(&choice.macros,
                "#define WIDTH %d\n#define HELD %d\n#define ROWS %d\n#define STEPS %d\n#define BATCH %d\n"
                "#define EXACT %d\n#define WHOLE_BATCHES %d\n#define TOGETHER %d\n",
                width, held, rows, together ? steps : 0, batch, reduced == (int64_t)width * held * steps,
                !shifted && reduced % ((int64_t)LANES * batch) == 0,
                vector > 1 && !shifted && !mf_gpu_has_logsums(problem));
    if (!together && vector >= 4 && !shifted && mf_gpu_has_paired_sums(problem))
        mf_text_append(&choice.macros, "#define PAIRED_FOLDS HAS_PAIRS\n");
    mf_text_add(&choice.macros, "#define TEAM_VECTOR %d\n", steps > 1 ? vector : 1);
    snprintf(choice.text, sizeof choice.text, "%d threads of %d lanes a row, vectors of %d, %d rows at once", width,
             held, vector, rows);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_rows = {
    "rows",         "outputs of at most a tile, by a warp or some of its threads",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
