/* Solver "slanted" of a GPU: columns whose rows begin anywhere (kernels/slanted.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

/* Bytes of a vector, of shared memory, and of the least row, or piece of one. */
enum { VECTOR_BYTES = 16, MOST_ACCUMULATORS = 32, MOST_THREADS = 640, SHARED_BYTES = 47 << 10, SHORTEST_ROW = 64 };
/* Elements of a column of 16 bits. (Measured on an H100.) */
enum { LEAST_OF_HALVES = 24 };

/* Bytes of what is joined in shared memory. */
static int part_bytes(const struct problem *problem)
{
    return mf_emit_bytes_operand(problem) >= 0 ? (int)sizeof(int) : mf_emit_state_bytes(problem);
}

/* Elements of a vector: 16 bytes, or less where states take more registers. */
static int vector_of(const struct problem *problem)
{
    int vector = VECTOR_BYTES / mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    if (problem->reduced_total <= LANES && vector > 8) /* every element goes through shared memory soon */
        vector = 8;
    while (vector > 2 && vector * words > MOST_ACCUMULATORS / 2)
        vector /= 2;
    return vector;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    int operand = mf_gpu_only_operand(problem), item = mf_gpu_widest_item(problem);
    if (operand < 0 || !mf_gpu_any_order(plan) || !mf_gpu_is_columns(problem) || nest->window_count ||
        nest->reduced != 1 || mf_gpu_has_logsums(problem))
        return 0;
    int vector = vector_of(problem);
    /* a state of two words; of few elements one, and only where reading one by one is too slow */
    const int words = mf_emit_lane_words(problem);
    if (words > 2 || (problem->reduced_total <= LANES && (item > 2 || words > 1)) ||
        (item == 2 && problem->reduced_total < LEAST_OF_HALVES))
        return 0;
    int64_t stride = nest->in[operand][nest->kept];
    return (stride < 0 ? -stride : stride) >= vector && mf_gpu_vector_along(problem, nest->kept - 1, vector) < vector &&
           vector * item > 4 && problem->reduced_total >= vector && nest->size[nest->kept - 1] * item >= SHORTEST_ROW;
}

/* How a block's threads share its columns and their lanes. */
struct slanted_form {
    int vector, lane_threads, held, present, batch, threads;
    int64_t columns, pieces; /* of a block; of a row */
};

static int registers_of(const struct problem *problem, const struct slanted_form *form)
{
    int item = mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    int lanes = form->vector * words *
                (mf_emit_bytes_operand(problem) >= 0 || problem->reduced_total <= LANES ? 1 : form->held);
    return lanes + form->vector * form->present * form->batch * item / 4 + (problem->reduced_total <= LANES ? 14 : 42);
}

/* Rows are cut into pieces so that blocks are even, and pieces need few vectors more than they have elements. */
static double worth_of(const struct problem *problem, const struct slanted_form *form, int64_t tiles,
                       const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), units = (int)((form->columns + 2 * (form->vector - 1)) / form->vector);
    int64_t row = problem->memory.size[problem->memory.kept - 1];
    double blocks = (double)(problem->kept_total / row * form->pieces) * (double)tiles;
    int registers = registers_of(problem, form);
    if (registers > 128 || registers * form->threads > 65536)
        return 0;
    int at_once = mf_clamp(65536 / (registers * form->threads), 1, limits->threads / form->threads);
    double each = blocks / limits->multiprocessors, waves = each / at_once;
    double busy = waves < 1 ? each : waves;
    busy /= (double)(int64_t)(busy + 0.999999);
    double loaded = (double)(form->vector * form->present * form->batch * item * units * form->lane_threads);
    double in_flight = (each < at_once ? each : at_once) * loaded / (48 << 10);
    double useful = (double)form->columns / (double)(units * form->vector), even = (double)row;
    even /= (double)(form->columns * form->pieces);
    return busy * even * (in_flight < 1 ? in_flight : 1) * useful * form->threads / (form->threads + 32);
}

/* The best form. A thread's lanes have one shift: they are lane_threads apart, which is a vector or several. */
static struct slanted_form slanted_form(const struct problem *problem, int64_t tiles, int most,
                                        const struct gpu_limits *limits)
{
    enum { ALONE = 480 }; /* threads */
    int vector = vector_of(problem), item = mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    int64_t reduced = problem->reduced_total, row = problem->memory.size[problem->memory.kept - 1];
    int lanes = (int)mf_power_above(reduced < LANES ? reduced : LANES);
    struct slanted_form form = {.vector = vector, .lane_threads = vector, .batch = 1}, best = {.vector = 0};
    double best_worth = 0;
    if (reduced <= LANES) {
        while ((reduced + form.lane_threads - 1) / form.lane_threads > 6)
            form.lane_threads *= 2;
    } else {
        int held = mf_emit_bytes_operand(problem) >= 0 ? 4 : mf_clamp(MOST_ACCUMULATORS / (vector * words), 1, 4);
        while (lanes / form.lane_threads > held)
            form.lane_threads *= 2;
        form.batch = (words > 1 && item < 4 ? 6 : 4) / held; /* of more, two blocks have too few registers */
    }
    form.held = lanes / form.lane_threads;
    form.present = (int)(reduced < LANES ? (reduced + form.lane_threads - 1) / form.lane_threads : form.held);
    int64_t steps = ((reduced < TILE ? reduced : TILE) + LANES - 1) / LANES;
    form.batch = mf_clamp(form.batch, 1, (int)mf_power_above(steps));
    /* pieces as wide as threads allow, and narrower ones, to a cache line's half where that goes */
    int64_t widest = (reduced <= LANES ? most / 2 : most) / form.lane_threads * vector - vector + 1;
    for (int64_t columns = widest < row ? widest : row; columns > 0; columns = form.columns - 1) {
        form.pieces = (row + columns - 1) / columns;
        form.columns = (row + form.pieces - 1) / form.pieces;
        if (best.vector && form.columns * item < SHORTEST_ROW)
            break;
        int units = (int)((form.columns + 2 * (vector - 1)) / vector) * form.lane_threads;
        form.threads = (units + GPU_WARP - 1) / GPU_WARP * GPU_WARP;
        if (form.threads * (vector + 1) * part_bytes(problem) > SHARED_BYTES)
            continue;
        double worth = worth_of(problem, &form, tiles, limits) * (double)(units + 128) / (double)(form.threads + 128);
        if (!best.vector || worth > best_worth) {
            best = form;
            best_worth = worth;
        }
    }
    if (reduced > LANES && item == 4 && words == 1 && best.threads >= 256 && best.threads < 320)
        best.batch = mf_clamp(8 / best.held, 1, (int)mf_power_above(steps)); /* there is room for it */
    /* one small block a multiprocessor loads too little at once */
    if (reduced > LANES && mf_emit_bytes_operand(problem) >= 0 && best.threads < ALONE &&
        problem->kept_total / row * best.pieces * tiles <= limits->multiprocessors)
        best.batch = mf_clamp(2, 1, (int)mf_power_above(steps));
    return best;
}

/* Blocks that a multiprocessor is to have room for. With a number, even 1, the compiler keeps a batch's loads together
 * (seen with NVRTC 13.0). Of one step a thread has so little to do that many are wanted; else so many threads that two
 * blocks have 80 to 96 registers. (Measured on an H100.) */
static int blocks_beside(const struct problem *problem, const struct slanted_form *form)
{
    enum { ROOM = 640, ROOM_WIDE = 800 };
    if (problem->reduced_total > LANES)
        return mf_clamp((mf_gpu_widest_item(problem) < 4 ? ROOM : ROOM_WIDE) / form->threads, 1, 16);
    return mf_clamp((mf_emit_bytes_operand(problem) >= 0 ? 2048 : 1536) / form->threads, 1, 16);
}

/* Large blocks leave a thread 96 registers, of which long functions spill some. */
static int most_threads(const struct mf_plan *plan)
{
    enum { FEWER_THREADS = 384 };
    return mf_gpu_most_threads(plan, mf_gpu_has_long_maps(&plan->problem) ? FEWER_THREADS : MOST_THREADS);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    int operand = mf_gpu_only_operand(problem);
    int64_t reduced = problem->reduced_total, tiles = (reduced + TILE - 1) / TILE;
    const struct slanted_form form = slanted_form(problem, tiles, most_threads(plan), limits);
    int64_t column_blocks = problem->kept_total / nest->size[nest->kept - 1] * form.pieces;
    int64_t parts = tiles > 1 ? 32 * (int64_t)limits->multiprocessors / column_blocks : 1;
    parts = parts < 1 ? 1 : parts > tiles ? tiles : parts;
    int64_t share = (tiles + parts - 1) / parts;
    struct gpu_choice choice = {.kernel = mf_text_slanted_cl,
                                .fold = mf_text_fold_cl,
                                .threads = form.threads,
                                .beside = blocks_beside(problem, &form),
                                .vector = form.vector,
                                .vector_loop = nest->kept - 1,
                                .reads_once = mf_emit_lane_words(problem) == 1 &&
                                              mf_gpu_reads_once(problem, form.vector, READ_BY_ROWS)};
    parts = (tiles + share - 1) / share;
    choice.blocks = column_blocks * parts;
    choice.own[0] = tiles;
    choice.own[1] = parts;
    choice.own[2] = share;
    choice.own[3] = mf_levels(tiles);
    choice.own[4] = form.columns;
    choice.own[5] = form.pieces;
    choice.own[7] = 1;
    choice.own[8] = column_blocks;
    choice.own[9] = (1 << 16) / ((form.columns + 2 * (form.vector - 1)) / form.vector) + 1;
    for (int l = 0; l < nest->kept + nest->reduced; l++) {
        int64_t reach = nest->in[operand][l] * (nest->size[l] - 1);
        choice.own[reach > 0 ? 7 : 6] += reach;
    }
    choice.workspace_bytes = 2 * VECTOR_BYTES;
    if (tiles > 1)
        choice.workspace_bytes +=
            problem->kept_total * mf_levels(tiles) * mf_emit_state_bytes(problem) + GPU_COUNTERS * 4 * column_blocks;
    mf_text_append(&choice.functions, mf_text_taken_cl);
    mf_text_append(&choice.functions, mf_text_parts_cl);
    mf_text_add(&choice.macros,
                "#define LANE_THREADS %d\n#define HELD %d\n#define BATCH BATCH_OF(%d)\n#define TEAM_VECTOR 1\n"
                "#define PRESENT %d\n#define ONE_STEP %d\n#define ITEM %d\n"
                "#define SHARED_PARTS (THREADS * (VECTOR + 1))\n#define JOIN_STATES (SHARED_PARTS / (BYTES ? 2 : "
                "1))\n",
                form.lane_threads, form.held, form.batch, form.present, reduced <= LANES,
                mf_gpu_widest_item(problem) < 4 ? mf_gpu_widest_item(problem) : 0);
    mf_gpu_define_join(problem, form.columns, tiles, share, &choice.macros);
    snprintf(choice.text, sizeof choice.text,
             "%lld columns a block, vectors of %d, %d threads of %d lanes each, %lld parts of %lld tiles",
             (long long)form.columns, form.vector, form.lane_threads, form.held, (long long)parts, (long long)share);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_slanted = {
    "slanted",      "columns whose rows begin anywhere, in aligned vectors",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
