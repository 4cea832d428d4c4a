/* Solver "columns" of a GPU: neighbouring outputs by neighbouring threads (kernels/columns.cl). */
#include <stdio.h>

#include "columns_form.h"
#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum { MUCH_WORDS = 4 /* of a lane, whose registers are then few; of bytes 8 */ };

/* Whether neighbouring columns are a few elements apart in all operands, and so many that a warp's share lines. */
static int are_apart(const struct problem *problem)
{
    enum { MOST_APART = 8, LEAST_COLUMNS = 64 };
    const struct nest *nest = &problem->memory;
    if (!nest->kept || !nest->reduced || nest->window_count || nest->size[nest->kept - 1] < LEAST_COLUMNS)
        return 0;
    for (int i = 0; i < problem->input_count; i++) {
        const int64_t column = nest->in[i][nest->kept - 1], element = nest->in[i][nest->kept + nest->reduced - 1];
        const int64_t apart = column < 0 ? -column : column, down = element < 0 ? -element : element;
        if (problem->map_uses[i] && column && (apart > MOST_APART || down <= MOST_APART))
            return 0;
    }
    return 1;
}

static int applicable(const struct mf_plan *plan)
{
    return mf_gpu_any_order(plan) && (mf_gpu_is_columns(&plan->problem) || are_apart(&plan->problem)) &&
           GPU_WARP * mf_emit_state_bytes(&plan->problem) <= COLUMNS_SHARED && !mf_gpu_patches_pay(plan);
}

enum { MOST_THREADS = 512, LOADED_BYTES = 128, MOST_ACCUMULATORS = 32 };

/* Words of a thread's lanes. Sums of bytes need one for all of a column's: any order will do. */
static int accumulators_of(const struct problem *problem, int vector, int held)
{
    return vector * mf_emit_lane_words(problem) * (mf_emit_bytes_operand(problem) >= 0 ? 1 : held);
}

/* Registers of a thread: accumulators, what is loaded, and some. Of one step what is loaded are the accumulators. */
static int registers_of(const struct problem *problem, const struct columns_form *form)
{
    int lanes = accumulators_of(problem, form->vector, form->held);
    int loaded = (form->vector * form->present * form->batch * mf_gpu_widest_item(problem) + 3) / 4;
    return (problem->reduced_total > LANES ? lanes + loaded : lanes > loaded ? lanes : loaded) + 28;
}

/* The block that a vector, lanes held by a thread, and threads beside each other give. */
struct columns_form mf_columns_form(const struct problem *problem, int vector, int held, int beside)
{
    int64_t reduced = problem->reduced_total, state = mf_emit_state_bytes(problem);
    int lanes = (int)mf_power_above(reduced < LANES ? reduced : LANES), item = mf_gpu_widest_item(problem);
    beside = mf_clamp(mf_power_above((problem->kept_total + vector - 1) / vector), 1, beside);
    struct columns_form form = {.vector = vector, .column_threads = beside, .groups = 1};
    form.held = held < lanes ? held : lanes;
    form.lane_threads = lanes / form.held;
    /* of larger blocks large states would be spilled */
    const int most_alone = mf_emit_lane_words(problem) > (item > 1 ? 1 : 2) * MUCH_WORDS ? 256 : MOST_THREADS;
    while ((mf_columns_threads(&form) * vector * state > COLUMNS_SHARED || mf_columns_threads(&form) > most_alone) &&
           form.lane_threads > 1) {
        form.lane_threads /= 2;
        form.held *= 2;
    }
    /* places in windows take registers: of large blocks there would be room for one */
    const int most_threads = problem->memory.window_count ? 128 : 256;
    while (mf_columns_threads(&form) < GPU_WARP ||
           (mf_columns_threads(&form) < most_threads &&
            2 * mf_columns_threads(&form) * vector * state <= COLUMNS_SHARED &&
            form.groups * form.column_threads * (int64_t)vector < problem->kept_total / 4096))
        form.groups *= 2;
    int64_t steps = ((reduced < TILE ? reduced : TILE) + LANES - 1) / LANES;
    int most = (int)mf_power_above(steps < 8 ? steps : 8);
    int present = (int)((reduced + form.lane_threads - 1) / form.lane_threads);
    form.present = reduced >= LANES ? form.held
                   : present <= 8   ? present
                                    : mf_clamp((present + 3) / 4 * 4, 1, form.held);
    form.batch = mf_clamp(mf_power_below(LOADED_BYTES / (form.held * vector * item)), 1, most);
    while (form.batch > 1 && registers_of(problem, &form) * mf_columns_threads(&form) > 40000)
        form.batch /= 2;
    return form;
}

/* Blocks that a multiprocessor has registers for. */
static int blocks_at_once(const struct problem *problem, const struct columns_form *form,
                          const struct gpu_limits *limits)
{
    int threads = mf_columns_threads(form), most = mf_clamp(limits->threads / threads, 1, 32);
    return form->room ? form->room : mf_clamp(65536 / (registers_of(problem, form) * threads), 1, most);
}

/* How good a form is: the part of the device that its blocks keep busy (they come in waves, the last of which may be
 * nearly empty), times the part of 32 KB that a multiprocessor has in flight; accesses of less than 128 bytes count
 * for less, and those that start anywhere for what they touch. The factors are guesses that chose well on an H200.
 * 0: too many registers. */
static double worth_of(const struct problem *problem, const struct columns_form *form, int64_t tiles,
                       const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), threads = mf_columns_threads(form);
    int loaded = form->vector * form->present * form->batch * item, registers = registers_of(problem, form);
    int64_t columns = (int64_t)form->column_threads * form->groups * form->vector;
    int64_t blocks = (problem->kept_total + columns - 1) / columns * tiles;
    int accumulators = accumulators_of(problem, form->vector, form->held);
    int most = problem->reduced_total <= LANES ? 64 : MOST_ACCUMULATORS;
    if (item == 1 && form->vector < 4 && mf_emit_lane_words(problem) > 2) /* products of bytes take registers too */
        most = 16;
    if ((registers > 128 || registers * threads > 65536 || accumulators > most) && form->vector * form->held > 1)
        return 0;
    int at_once = blocks_at_once(problem, form, limits);
    double warps = (double)at_once * threads / GPU_WARP;
    double each = (double)blocks / limits->multiprocessors, waves = each / at_once;
    double busy = waves < 1 ? each : waves; /* all at once: how evenly they are spread is what counts */
    busy /= (double)(int64_t)(busy + 0.999999);
    double in_flight = (each < at_once ? each : at_once) * threads * loaded / (32 << 10);
    int64_t row = problem->memory.size[problem->memory.kept - 1], beside = form->column_threads * (int64_t)form->vector;
    int64_t bytes = (beside < row ? beside : row) * item;
    double wide = bytes >= 128 || beside >= row ? 1 : bytes >= 64 ? 0.93 : 0.8;
    if (row * item % 32)
        wide = (double)bytes / (double)(bytes + 32);
    /* a block's start and end are taken for a microsecond, in which others go on; an H200's multiprocessor reads its
     * share of 4 TB/s, 30 KB, in one */
    double span = at_once * (double)columns * (double)(problem->reduced_total < TILE ? problem->reduced_total : TILE) *
                  item / (30 << 10);
    return busy * (in_flight < 1 ? in_flight : 1) * span / (span + 1) * wide * warps / (warps + 8);
}

/* What is best where there are columns enough: 128 bytes beside each other, four lanes a thread. */
struct columns_form mf_columns_usual_form(const struct problem *problem, int widest)
{
    enum { HELD = 4 };
    int item = mf_gpu_widest_item(problem), vector = widest;
    while (vector > 1 && accumulators_of(problem, vector, HELD) > MOST_ACCUMULATORS)
        vector /= 2;
    struct columns_form form = mf_columns_form(problem, vector, HELD, mf_clamp(128 / (vector * item), 1, 4 * GPU_WARP));
    form.batch = item < 4 ? 2 : 1;
    form.together = problem->memory.reduced == 1 && mf_emit_bytes_operand(problem) >= 0;
    if (item == 2 && vector == 8 && mf_columns_threads(&form) == 256 && mf_gpu_only_operand(problem) >= 0 &&
        !problem->memory.window_count)
        form.room = 2;
    return form;
}

/* Few columns, or few elements: as many threads as go, with all that they read in flight, 128 bytes each. Blocks are
 * narrow, so that all multiprocessors have some. */
static struct columns_form small_form(const struct problem *problem, int widest, const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), bytes = item > 4 && problem->reduced_total > TILE ? 16 : 8;
    int vector = mf_clamp(bytes / item, 1, widest < 4 ? widest : 4);
    int narrow = problem->kept_total < 16 * 2 * (int64_t)limits->multiprocessors, beside = narrow ? 8 / vector : 8;
    while (vector > 1 && item >= 4 && 2 * (int64_t)vector > problem->kept_total)
        vector /= 2;
    struct columns_form form = mf_columns_form(problem, vector, item == 4 && narrow && problem->kept_total >= 8 ? 2 : 1,
                                               mf_clamp(mf_power_above(problem->kept_total) / vector, 1, beside));
    int64_t steps = (problem->reduced_total < TILE ? problem->reduced_total : TILE) / LANES;
    int registers = vector * item > 4 ? vector * item : 4; /* bytes of those that one load takes */
    form.batch = item >= 4 ? 8 / form.held : mf_clamp(mf_power_below(steps), 1, LOADED_BYTES / (form.held * registers));
    form.groups = mf_columns_threads(&form) < GPU_WARP ? GPU_WARP / mf_columns_threads(&form) : 1;
    form.together = item == 2 || (item < 8 && problem->reduced_total <= TILE);
    return form;
}

/* Very few elements and many columns, as where pictures are pooled: a thread has all of its columns' elements and
 * stores them as one; or one of vector 0. */
static struct columns_form pool_form(const struct problem *problem, int widest, const struct gpu_limits *limits)
{
    enum { MOST_ELEMENTS = 8 };
    const int lanes = (int)mf_power_above(problem->reduced_total);
    struct columns_form none = {.vector = 0};
    int vector = widest;
    while (vector > 1 && accumulators_of(problem, vector, lanes) > MOST_ACCUMULATORS)
        vector /= 2;
    if (problem->reduced_total > MOST_ELEMENTS || vector == 1 ||
        problem->kept_total / vector < 2 * (int64_t)limits->multiprocessors * GPU_WARP)
        return none;
    return mf_columns_form(problem, vector, lanes, GPU_WARP);
}

/* A column's tiles, as far as they stand for more columns: threads enough then read wide blocks. Not of states of
 * several words where elements are wide or columns few, nor where a block of arguments would have few columns: there
 * narrow blocks of many threads are faster. (Measured on an H100.) */
static int64_t tiles_that_count(const struct problem *problem, int64_t tiles)
{
    enum { FEW_TILES = 4, FEW_COLUMNS = 64 };
    const int64_t kept = problem->kept_total, blocks = (kept + FEW_COLUMNS - 1) / FEW_COLUMNS;
    const int words = mf_emit_lane_words(problem), item = mf_gpu_widest_item(problem);
    const int uneven = mf_emit_has_kind(problem, RED_ARG) && 5 * blocks * FEW_COLUMNS > 6 * kept;
    const int narrow = words > 1 && (item >= 4 || kept < FEW_COLUMNS || uneven);
    return narrow && tiles > FEW_TILES ? FEW_TILES : tiles;
}

/* All lanes together where there are columns enough: moments of up to four bytes and two reducers of 16-bit floats in
 * wide blocks, which take all of a thread's 128 registers (NVRTC 13.0 spills some where it compiles for others than
 * sm_90); several reducers of 16-bit floats, of whose states one lane at a time would keep less in flight; or one of
 * vector 0. (Measured on an H100.) */
static struct columns_form together_form(const struct problem *problem, int64_t tiles, int widest,
                                         const struct gpu_limits *limits)
{
    enum { SEVERAL = 4 /* words: sum, max, mean and var */, VECTOR = 4, HELD = 8 };
    const int item = mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    const int one = problem->program.reducer_count == 1, many = words == SEVERAL && !one;
    const int fits = !limits->architecture || limits->architecture == 90;
    const int pays = one ? fits && words == 2 && (item == 4 || item == 2) && mf_emit_has_kind(problem, RED_MOMENTS)
                         : item == 2 && (words == 2 || many);
    const int beside = many ? GPU_WARP / 4 : GPU_WARP;
    struct columns_form form = {.vector = 0};
    if (!pays || mf_gpu_only_operand(problem) < 0 || mf_emit_has_kind(problem, RED_ARG) ||
        mf_emit_has_kind(problem, RED_USER) || widest < VECTOR || problem->memory.reduced > 1 ||
        problem->memory.window_count ||
        2 * problem->kept_total * tiles_that_count(problem, tiles) <
            (int64_t)3 * limits->multiprocessors * beside * VECTOR)
        return form;
    form = mf_columns_form(problem, VECTOR, many ? HELD / 2 : HELD, beside);
    form.batch = one ? 4 / item : many ? 2 : 1;
    return form;
}

/* One reducer with a state of several words that is faster with all lanes together than in turn: an index of f64,
 * moments of 16-bit floats (measured on an H200); or one of vector 0. */
static struct columns_form form_of_one(const struct problem *problem, int widest)
{
    const int item = mf_gpu_widest_item(problem), one = problem->program.reducer_count == 1;
    const int moments = mf_emit_has_kind(problem, RED_MOMENTS), words = mf_emit_lane_words(problem);
    struct columns_form form = {.vector = 0};
    if (one && item == 8 && widest == 2 && mf_emit_has_kind(problem, RED_ARG)) {
        form = mf_columns_form(problem, 2, 4, 8);
        form.batch = 1;
        form.room = 4;
    } else if (one && item == 2 && words == 2 && widest >= 4 && moments) {
        form = mf_columns_form(problem, 4, 2, 16);
        form.batch = 4;
    }
    return form;
}

/* A fold and moments of one operand, as a mean and a variance: of f32, and of 16-bit floats of few columns, two columns
 * a thread with all lanes together; or one of vector 0. (H200, mean and var, us by the forms below and so: f32 20000 by
 * 10000 249 and 206, 1,605,632 by 64 125 and 107; bf16 of the latter 78 and 69, but 65,536 by 4096 157 and 165.) */
static struct columns_form form_of_two(const struct problem *problem, int64_t tiles, int widest,
                                       const struct gpu_limits *limits)
{
    enum { WORDS = 3, VECTOR = 2, HELD = 4, FEW_COLUMNS = 256, BATCH = 4 };
    const int item = mf_gpu_widest_item(problem);
    const int64_t kept = problem->kept_total, blocks = (kept + GPU_WARP * VECTOR - 1) / (GPU_WARP * VECTOR) * tiles;
    struct columns_form form = {.vector = 0};
    if (problem->program.reducer_count != 2 || mf_emit_lane_words(problem) != WORDS || widest < VECTOR ||
        !mf_columns_float_moments(problem) || problem->memory.window_count || problem->reduced_total < TILE ||
        (item != 4 && (item != 2 || kept > FEW_COLUMNS)) || kept < GPU_WARP * VECTOR ||
        blocks < limits->multiprocessors)
        return form;
    form = mf_columns_form(problem, VECTOR, HELD, GPU_WARP);
    form.batch = BATCH;
    return form;
}

/* Whether this is an index of bytes or 16-bit floats, and each multiprocessor has a block. (H200, bf16, 401,408 by 128,
 * 2,380 GB/s, in turn 2,890; H100, u8, 8000 by 8000, 840 and 1,040; but bf16, 12,544 by 2048, 2,050 and 1,960.) */
static int is_index_in_turn(const struct problem *problem, int64_t tiles, int widest, const struct gpu_limits *limits)
{
    const int item = mf_gpu_widest_item(problem);
    const int fits = item == 1   ? problem->memory.reduced == 1 && !problem->memory.window_count
                     : item == 2 ? mf_gpu_lanes_at_once(problem, problem->memory.kept - 1) != 0
                                 : 0;
    return fits && widest > 1 && problem->program.reducer_count == 1 && mf_emit_has_kind(problem, RED_ARG) &&
           problem->reduced_total >= COLUMNS_INDEX_ROWS &&
           problem->kept_total * tiles_that_count(problem, tiles) >= 2 * (int64_t)GPU_WARP * limits->multiprocessors;
}

/* The form that is known to be best for this problem, or one of vector 0. */
static struct columns_form known_form(const struct problem *problem, int64_t tiles, int widest,
                                      const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    const int one = problem->program.reducer_count == 1;
    const struct columns_form none = {.vector = 0};
    struct columns_form form = mf_columns_usual_form(problem, widest);
    int64_t columns = widest > 1 ? form.column_threads * (int64_t)form.vector : GPU_WARP;
    int many = 2 * problem->kept_total * tiles_that_count(problem, tiles) >= 3 * limits->multiprocessors * columns;
    const struct columns_form pool = pool_form(problem, widest, limits);
    if (pool.vector)
        return pool;
    if (problem->reduced_total <= LANES) /* a column a thread, or two */
        return problem->reduced_total > 16 && problem->reduced_total <= 64 && widest == 1 &&
                       words == (item > 4 ? 2 : 1) && problem->kept_total >= 256 * limits->multiprocessors
                   ? mf_columns_form(problem, 1, item > 4 ? 32 : 64, GPU_WARP)
                   : none;
    if (mf_gpu_has_logsums(problem) || is_index_in_turn(problem, tiles, widest, limits))
        return mf_columns_turn_form(problem, widest, limits);
    const struct columns_form two = form_of_two(problem, tiles, widest, limits);
    if (two.vector)
        return two;
    const struct columns_form few = mf_columns_few_form(problem, tiles, widest, limits->multiprocessors, many);
    if (few.vector)
        return few;
    if (!many && item > 1 && words > MUCH_WORDS &&
        problem->kept_total * tiles >= (int64_t)GPU_WARP * limits->multiprocessors)
        return mf_columns_turn_form(problem, widest, limits);
    if (!many)
        return problem->reduced_total >= 8 * LANES && words <= 2 ? small_form(problem, widest, limits) : none;
    if ((item > 4 || (words == 4 && one)) && mf_emit_has_kind(problem, RED_MOMENTS) && form.vector > 1 &&
        accumulators_of(problem, form.vector, form.held) <= MOST_ACCUMULATORS) {
        form.batch = 2;
        form.room = mf_columns_threads(&form) == 256 ? 2 : 0;
        return form;
    }
    if (mf_gpu_lanes_at_once(problem, problem->memory.kept - 1))
        return mf_columns_turn_form(problem, widest, limits);
    const struct columns_form together = together_form(problem, tiles, widest, limits);
    const struct columns_form all_lanes = together.vector ? together : form_of_one(problem, widest);
    if (all_lanes.vector)
        return all_lanes;
    if ((words > 1 && mf_emit_state_words(problem) > 2) || (widest == 1 && item > 1))
        return mf_columns_turn_form(problem, widest, limits);
    if (widest == 1) {
        form = mf_columns_form(problem, 1, 8, GPU_WARP);
        form.batch = 1;
    }
    return accumulators_of(problem, form.vector, form.held) <= MOST_ACCUMULATORS ? form : none;
}

/* The known form, or the best of up to 16 bytes a thread, 256 to 32 bytes beside each other, and a thread's lanes. */
static struct columns_form columns_form(const struct problem *problem, int64_t tiles, const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), last = problem->memory.kept - 1, words = mf_emit_lane_words(problem);
    int widest = mf_gpu_vector_along(problem, last, mf_power_below(16 / item));
    while (widest > 1 && widest * words > 16)
        widest /= 2;
    struct columns_form best = known_form(problem, tiles, widest, limits);
    double best_worth = 0;
    if (best.vector)
        return best;
    best = mf_columns_form(problem, 1, 1, 8);
    for (int vector = widest; vector >= 1 && (vector == widest || vector * item >= 4); vector /= 2)
        for (int beside = 4 * GPU_WARP; beside >= 1; beside /= 2)
            for (int held = problem->reduced_total <= LANES ? 64 : 8; held >= 1; held /= 2) {
                int64_t bytes = (int64_t)beside * vector * item;
                if (bytes > 256 || (beside > 1 && beside / 2 * (int64_t)vector >= problem->kept_total))
                    continue;
                if (bytes < 32 && beside * (int64_t)vector < problem->memory.size[last])
                    continue;
                struct columns_form form = mf_columns_form(problem, vector, held, beside);
                double worth = worth_of(problem, &form, tiles, limits);
                if (worth > best_worth) {
                    best = form;
                    best_worth = worth;
                }
            }
    return best;
}

/* Fewer threads to a block, if it may not have as many. */
static void fit_block(struct columns_form *form, int most)
{
    while (mf_columns_threads(form) > most && form->groups > 1)
        form->groups /= 2;
    while (mf_columns_threads(form) > most && form->lane_threads > 1) {
        form->lane_threads /= 2;
        form->held *= 2;
        form->present *= 2;
    }
}

/* Tiles of a block: as few as make blocks enough, but as many as take the same time where blocks come in waves. A block
 * that goes on with its next tile begins no other, and fewer meet at the end: 1 to 5 % of the time on an H200, but for
 * forms in turn. Where it is not known how many blocks there are at once they become one wave, which fewer make too. */
static int64_t tiles_of_block(const struct problem *problem, const struct columns_form *form, int64_t tiles,
                              int64_t column_blocks, const struct gpu_limits *limits)
{
    enum { MOST_TILES = 16, ENOUGH = 32 /* blocks of a multiprocessor */ };
    const int64_t parts = ENOUGH * (int64_t)limits->multiprocessors / column_blocks;
    const int64_t least = parts < 1 ? tiles : parts < tiles ? (tiles + parts - 1) / parts : 1;
    const int64_t at_once = (int64_t)limits->multiprocessors * blocks_at_once(problem, form, limits);
    int64_t best = least, least_time = 0;
    if (form->in_turn || tiles > MOST_TILES)
        return least;
    for (int64_t share = least; share <= tiles; share++) {
        const int64_t blocks = (tiles + share - 1) / share * column_blocks;
        const int64_t time = (blocks + at_once - 1) / at_once * share;
        if (!form->room && share > least && blocks > at_once)
            continue;
        if (share == least)
            least_time = time;
        if (16 * time <= 17 * least_time)
            best = share;
    }
    return best;
}

/* Whether moments merge without dividing, 2: in every tile. Not beside so much else in turn that registers are
 * spilled by it (NVRTC 13.0, sm_100). */
static int merges_by_weights(const struct problem *problem, int in_turn, int whole)
{
    enum { MOST_WORDS = 4 };
    const int much = mf_gpu_has_logsums(problem) || mf_emit_lane_words(problem) > MOST_WORDS;
    const int merges = mf_emit_has_kind(problem, RED_MOMENTS) && !problem->memory.window_count &&
                       problem->reduced_total >= LANES && !whole && !(in_turn && much);
    return !merges ? 0 : (problem->reduced_total - 1) % TILE + 1 >= LANES ? 2 : 1;
}

/* Whether what joins tiles stays in a kernel for one tile, where its registers make NVRTC 13.0 load a batch together:
 * without them it aims at more warps. Where a bound does that better they go: in turn, of few steps, and of sums and
 * the like and moments of floats, of short maps. (But of f64, 16 rows a column, 4,400 and 4,180 GB/s on an H200.) */
static int keeps_join(const struct problem *problem, const struct columns_form *form)
{
    const int64_t reduced = problem->reduced_total;
    if (form->in_turn)
        return 0;
    if (reduced <= 2 * LANES)
        return reduced <= GPU_WARP && mf_gpu_widest_item(problem) > 4;
    const int sum = problem->program.reducer_count == 1 && problem->program.reducer[0].kind == RED_FOLD;
    return mf_gpu_has_long_maps(problem) || (!sum && !mf_columns_float_moments(problem));
}

/* Blocks that a multiprocessor is to have room for, without what joins tiles; or 0. (H200, sum of f32, 4096 by
 * 32,768: 3,870 GB/s, so 4,430; but where steps are few, squares of 2000 by 100 by 640 f32, 4,200 and 3,610.) */
static int room_of_one_tile(const struct problem *problem, const struct columns_form *form, int64_t blocks,
                            const struct gpu_limits *limits)
{
    if (keeps_join(problem, form) || mf_gpu_widest_item(problem) < 4 || problem->reduced_total <= 2 * LANES)
        return 0;
    int loaded = 0; /* operands: of two there are registers for half as many */
    for (int i = 0; i < problem->input_count; i++)
        loaded += problem->map_uses[i] && problem->memory.in[i][problem->memory.kept - 1];
    const int most = GPU_ROOM / (loaded > 1 ? 2 : 1) / mf_columns_threads(form);
    const int64_t each = (blocks + limits->multiprocessors - 1) / limits->multiprocessors;
    return mf_columns_float_moments(problem) ? GPU_ONE_BLOCK : each < most ? (int)each : most;
}

static mf_status make(struct mf_plan *plan)
{
    enum { ROOM_WIDE = GPU_ROOM * 3 / 4 };
    const struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    int64_t reduced = problem->reduced_total, tiles = (reduced + TILE - 1) / TILE;
    struct columns_form form = columns_form(problem, tiles, limits);
    fit_block(&form, mf_gpu_most_threads(plan, MOST_THREADS));
    const int whole = form.in_turn && mf_gpu_lanes_at_once(problem, problem->memory.kept - 1) == form.vector;
    int64_t block_columns = (int64_t)form.column_threads * form.groups * form.vector;
    int64_t column_blocks = (problem->kept_total + block_columns - 1) / block_columns;
    const int64_t share = tiles_of_block(problem, &form, tiles, column_blocks, limits);
    const int64_t parts = (tiles + share - 1) / share;
    struct gpu_choice choice = {.kernel = mf_text_columns_cl,
                                .fold = mf_text_fold_cl,
                                .threads = mf_columns_threads(&form),
                                .vector = form.vector,
                                .vector_loop = problem->memory.kept - 1,
                                .reads_once = mf_gpu_reads_once(problem, form.vector, READ_BY_COLUMNS),
                                .beside = form.room};
    if (form.in_turn && choice.threads == 256 && mf_gpu_widest_item(problem) < 4 && !mf_gpu_has_logsums(problem))
        choice.beside = 2; /* a few registers more, and there is room for one */
    if (tiles == 1 && !form.in_turn && !form.room)
        choice.beside = room_of_one_tile(problem, &form, column_blocks, limits);
    choice.blocks = column_blocks * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.own[4] = column_blocks;
    if (tiles > 1)
        choice.workspace_bytes =
            problem->kept_total * mf_levels(tiles) * mf_emit_state_bytes(problem) + GPU_COUNTERS * 4 * column_blocks;
    /* without the kernel for whole tiles; so too where the last tile would take others' time */
    const int one_part = whole && (tiles == 1 ? reduced < form.batch * LANES : reduced % TILE > TILE / 2);
    if (whole) {
        choice.most_beside = GPU_ROOM / choice.threads; /* fewer warps: solve_rows.c */
        choice.reads_once = choice.reads_once && mf_gpu_widest_item(problem) == 4;
        choice.beside = (mf_gpu_widest_item(problem) > 4 || one_part ? ROOM_WIDE : GPU_ROOM) / choice.threads;
        mf_gpu_define_lanes(problem, form.vector, &choice.macros);
        mf_text_append(&choice.functions, mf_text_lanes_cl);
    }
    if (form.in_turn && form.vector > 1 && mf_gpu_has_paired_sums(problem))
        mf_text_append(&choice.macros, "#define PAIRED_FOLDS HAS_PAIRS\n");
    mf_columns_define_turns(problem, &form, &choice.macros);
    mf_text_append(&choice.functions, mf_text_weights_cl);
    mf_text_append(&choice.functions, mf_text_parts_cl);
    mf_text_add(&choice.macros,
                "#define MERGE_WEIGHTS %d\n#define WEIGHT_SETS 2\n"
                "#define COLUMN_THREADS %d\n#define LANE_THREADS %d\n#define HELD %d\n#define BATCH %s(%d)\n"
                "#define TEAM_VECTOR 1\n#define IN_TURN %d\n#define PRESENT %d\n#define ONE_STEP %d\n"
                "#define TOGETHER %d\n#define WHOLE_LANES %d\n#define ONE_PART %d\n#define ALONE %d\n"
                "#define SEVERAL_TILES %d\n#define KEEPS_JOIN %d\n"
                "#define STORES_VECTORS (VECTOR > LANE_THREADS)\n#define JOIN_STATES (THREADS * VECTOR)\n",
                merges_by_weights(problem, form.in_turn, whole), form.column_threads, form.lane_threads, form.held,
                form.in_turn ? "BATCH_OF" : "BATCH_OR_HALF", form.batch, form.in_turn, form.present, reduced <= LANES,
                form.together, whole, one_part, tiles > 1 && parts == 1, tiles > 1 && mf_columns_float_moments(problem),
                keeps_join(problem, &form));
    mf_gpu_define_join(problem, block_columns, tiles, share, &choice.macros);
    snprintf(choice.text, sizeof choice.text,
             "%d columns a block, %d a thread, %d threads of %d lanes each%s, %lld parts of %lld tiles",
             (int)block_columns, form.vector, form.lane_threads, form.held, form.in_turn ? " in turn" : "",
             (long long)parts, (long long)share);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_columns = {
    "columns",     "neighbouring outputs by neighbouring threads", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
