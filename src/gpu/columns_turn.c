/* Forms of solver columns where a thread folds its lanes one after the other. */
#include "columns_form.h"
#include "emit_reducers.h"

int mf_columns_float_moments(const struct problem *problem)
{
    const int operand = mf_gpu_only_operand(problem);
    return mf_emit_has_kind(problem, RED_MOMENTS) && operand >= 0 &&
           mf_cls_is_float(mf_dtypes[problem->in_type[operand]].cls);
}

/* Whether sums are of pairs: then most elements are read where all lanes have as many, and few at once elsewhere. */
static int has_pairs(const struct problem *problem, int vector)
{
    return vector > 1 && mf_gpu_has_paired_sums(problem) && problem->memory.reduced == 1 &&
           !problem->memory.window_count;
}

/* How many of their steps at once; `batch` where they are few. (Measured on an H200.) */
static int whole_batch(int64_t reduced, int batch)
{
    return reduced >= 16 * LANES ? 16 : reduced > 4 * LANES ? 8 : batch;
}

/* Threads of a block of 64 columns of sums of pairs: 256, four blocks of which are at once, of which some join while
 * others read, unless 512 leave less of the last wave empty. (H100, bf16: 32768 by 4096 at 2,870 GB/s, by 512 threads
 * 2,770; 2048 by 50,000 at 2,320 and 2,540.) */
static int pair_threads(const struct problem *problem, const struct gpu_limits *limits)
{
    enum { COLUMNS = 64, THREADS = 512, MANY = 32 };
    const int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    const int64_t blocks = (problem->kept_total + COLUMNS - 1) / COLUMNS * tiles;
    const int64_t at_once = GPU_ROOM / THREADS * limits->multiprocessors;
    const int64_t waves = (blocks + at_once - 1) / at_once;
    return problem->reduced_total < TILE / 2 || waves % 2 == 0 || waves >= MANY ? THREADS / 2 : THREADS;
}

/* Bytes of the states that wait in all threads' turns, one for each of the tree's levels and columns. */
static int waiting_bytes(const struct problem *problem, const struct columns_form *form)
{
    int bytes = 0;
    for (int lanes = 1; lanes < form->held; lanes *= 2)
        bytes += mf_columns_threads(form) * form->vector * mf_emit_state_bytes(problem);
    return bytes;
}

/* Whether states wait in memory, where registers for them leave few warps; of one sum that of pairs, and in F64, which
 * computes all the time, of bytes. (H100, 32768 by 4096 f32: var and argmax, 222 registers, 2,500 GB/s, now 90, 2,710;
 * mean, var, max, min and argmax 1,740 and 2,670; but argmax alone 2,850 and 2,720.) */
static int states_wait(const struct problem *problem, const struct columns_form *form)
{
    enum { LEAST_WORDS = 4, MOST_WORDS = 14 /* larger ones take registers: a block would have few lanes */ };
    const int words = mf_emit_state_words(problem);
    if (!form->in_turn || words > MOST_WORDS)
        return 0;
    if (!mf_gpu_has_logsums(problem))
        return words >= LEAST_WORDS;
    return problem->program.reducer_count > 1 || mf_gpu_widest_item(problem) == 1 || has_pairs(problem, form->vector);
}

/* Where states wait: narrower blocks where there are few, and fewer lanes beside each other until they have room.
 * (H100: var of i16, 8000 by 8000, 1,250 GB/s, with 64 columns and half the lanes 1,050, with 32 columns 1,770.) */
static void make_room(const struct problem *problem, const struct gpu_limits *limits, struct columns_form *form)
{
    enum { FEW = 3 /* blocks of a multiprocessor */, WIDE = 128 /* bytes */, LEAST_THREADS = 128 };
    const int64_t tiles = (problem->reduced_total + TILE - 1) / TILE;
    const int item = mf_gpu_widest_item(problem), one = problem->program.reducer_count == 1;
    if (!states_wait(problem, form) || (one && mf_gpu_has_logsums(problem)))
        return;
    for (;;) {
        const int columns = form->column_threads * form->vector;
        if (problem->kept_total * tiles < columns * FEW * (int64_t)limits->multiprocessors && columns * item >= WIDE &&
            form->lane_threads < LANES) {
            form->column_threads /= 2;
            form->lane_threads *= 2;
        } else if (waiting_bytes(problem, form) > COLUMNS_SHARED && mf_columns_threads(form) > LEAST_THREADS) {
            form->lane_threads /= 2;
        } else {
            return;
        }
        form->present = form->held = LANES / form->lane_threads;
    }
}

struct columns_form mf_columns_turn_form(const struct problem *problem, int widest, const struct gpu_limits *limits)
{
    int item = mf_gpu_widest_item(problem), words = mf_emit_state_words(problem);
    const int64_t reduced = problem->reduced_total;
    int steps = (int)((reduced + LANES - 1) / LANES), threads = 256, vector, beside, batch;
    const int at_once = mf_gpu_lanes_at_once(problem, problem->memory.kept - 1);
    const int alone = words <= 4; /* else there would be too few registers */
    if (at_once) {
        vector = at_once;
        beside = vector * GPU_WARP;
        batch = TILE / LANES;
        /* of 16 bits twice as many where tiles are not whole, or blocks few (H200, argmax of bf16: 2048 by 50,000,
         * 2,730 and 3,180 GB/s, 4096 by 16,384, 3,140 and 4,020; but 32768 by 4096, 4,090 and 3,990) */
        enum { FEW_BLOCKS = 3 /* of a multiprocessor */ };
        const int64_t blocks = problem->kept_total / beside * (reduced / TILE);
        const int uneven = reduced % TILE || blocks < FEW_BLOCKS * (int64_t)limits->multiprocessors;
        threads = item == 2 && reduced >= COLUMNS_INDEX_ROWS && uneven ? 256 : 128;
    } else if (mf_gpu_has_logsums(problem)) {
        const int pairs = has_pairs(problem, widest);
        vector = pairs && alone && widest >= 4 ? 4 : 2;
        beside = item < 4 && alone ? 64 : GPU_WARP;
        batch = pairs ? 4 : item < 4 ? 16 : item > 4 ? 8 : TILE / LANES;
        threads = item < 4 && alone && words != 3 ? 512 : 256;
        if (vector == 4)
            threads = pair_threads(problem, limits);
    } else if (widest > 1) {
        /* H100, argmax of u8, 32768 by 4096: 64 columns by 256 threads 1,320 GB/s, 32 by 128 1,410, and whole tiles at
         * once 2,000 */
        const int bytes =
            item == 1 && words <= 4 && reduced >= COLUMNS_INDEX_ROWS && mf_emit_has_kind(problem, RED_ARG);
        vector = words > 8 ? 1 : words > 3 && !bytes ? 2 : 4;
        beside = bytes ? GPU_WARP : mf_clamp(256 / item, 1, 64);
        batch = item > 4 && words > 8 ? 8 : bytes && reduced % TILE == 0 ? TILE / LANES : 16;
        threads = bytes || (item == 4 && mf_emit_has_kind(problem, RED_MOMENTS)) ? 128 : 256;
    } else {
        vector = 1;
        beside = GPU_WARP;
        threads = item == 4 ? 128 : 256;
        batch = item > 4 || words > 2 ? 16 : 32;
    }
    if (!mf_gpu_has_logsums(problem) && (problem->memory.reduced > 1 || problem->memory.window_count))
        batch = 8; /* each place has divisions of its own */
    struct columns_form form = {.vector = mf_clamp(vector, 1, widest), .in_turn = 1, .groups = 1};
    form.batch = mf_clamp(mf_power_above(steps), 1, batch);
    form.column_threads = mf_clamp(mf_power_above(problem->kept_total), 1, beside / form.vector);
    form.lane_threads = mf_clamp(threads / form.column_threads, 2, LANES);
    while (mf_columns_threads(&form) * form.vector * mf_emit_state_bytes(problem) > COLUMNS_SHARED)
        *(form.lane_threads > 2 ? &form.lane_threads : &form.column_threads) /= 2;
    form.present = form.held = LANES / form.lane_threads;
    if (!at_once)
        make_room(problem, limits, &form);
    /* 128 registers (H200, sum, max, mean and var of f32, 16384 by 16384: 3,620 and 4,330) */
    if (item == 4 && form.vector > 1 && problem->program.reducer_count > 1 && mf_columns_float_moments(problem) &&
        mf_emit_lane_words(problem) <= 5 && !mf_gpu_has_logsums(problem))
        form.room = 512 / mf_columns_threads(&form);
    const int one_of_vectors = problem->program.reducer_count == 1 && form.vector > 1;
    if (mf_gpu_has_logsums(problem) && alone && threads == mf_columns_threads(&form)) /* where columns are enough */
        form.room = item > 4 ? 512 / threads : item == 4 && one_of_vectors ? GPU_ONE_BLOCK : GPU_ROOM / threads;
    return form;
}

void mf_columns_define_turns(const struct problem *problem, const struct columns_form *form, struct gpu_text *macros)
{
    const int64_t reduced = problem->reduced_total;
    const int sums = form->in_turn && mf_gpu_has_logsums(problem), item = mf_gpu_widest_item(problem);
    const int pairs = sums && has_pairs(problem, form->vector);
    const int waits = states_wait(problem, form), shared = waits && waiting_bytes(problem, form) <= COLUMNS_SHARED;
    mf_text_add(
        macros,
        "#define FLOWING %d\n#define GATHERED %d\n#define WHOLE_BATCH BATCH_OF(%d)\n#define WAITS_IN_SHARED %d\n"
        "#define WAITS_IN_MEMORY (%d || ONE_BLOCK > 1)\n",
        sums && item > 4 && reduced >= TILE && problem->memory.reduced == 1 && !problem->memory.window_count,
        sums && item == 4, pairs ? whole_batch(reduced, form->batch) : form->batch, shared, sums && waits && !shared);
}
