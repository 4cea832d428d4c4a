/* Forms of solver columns for a few hundred or thousand columns of many rows: too few for usual blocks to keep all
 * multiprocessors busy, too much to read for the narrow ones of small folds. Figures are GB/s on an H200. */
#include "columns_form.h"
#include "emit_reducers.h"

static const struct columns_form none = {.vector = 0};

/* All of a thread's lanes together. */
static struct columns_form lanes_form(const struct problem *problem, int vector, int held, int beside, int batch,
                                      int together)
{
    struct columns_form form = mf_columns_form(problem, vector, held, beside);
    form.batch = batch;
    form.together = together;
    return form;
}

/* Bytes: 64 columns a block. (Before and so: sum of u8, 32768 by 2048, 1,130 and 3,340; max 1,000 and 2,860; min and
 * max of 65536 by 1024, 990 and 1,800.) */
static struct columns_form few_bytes(const struct problem *problem, int widest, int64_t wide, int multiprocessors,
                                     int many)
{
    const int sum = mf_emit_bytes_operand(problem) >= 0;
    if (many || 4 * wide < 3 * (int64_t)multiprocessors || widest < (sum ? 8 : 4) ||
        problem->program.reducer_count > 2 || mf_emit_has_kind(problem, RED_MOMENTS) ||
        mf_emit_has_kind(problem, RED_ARG))
        return none;
    return sum ? lanes_form(problem, 8, 4, 8, 2, 0)
               : lanes_form(problem, 4, 2, 16, mf_emit_lane_words(problem) > 1 ? 4 : 8, 0);
}

/* 16 bits an element: 64 columns a block where that makes a block for most multiprocessors, else 32. (Of bf16: sum,
 * 32768 by 1024, 1,780 and 3,530, 16384 by 1024, 1,740 and 4,640; var, 12544 by 2048, 1,340 and 2,760; mean and var,
 * 401408 by 256, 1,740 and 2,660, 16384 by 16384, 2,790 and 3,180. On an H100: sum, 802816
 * by 64, 1,490 and 2,350, mean and var of it 1,830 and 2,080; var, 262144 by 128, 1,920 and 2,140; sum, max, mean and
 * var, 32768 by 1024, 1,710 and 2,210.) */
static struct columns_form few_halves(const struct problem *problem, int widest, int64_t narrow, int64_t wide,
                                      int multiprocessors, int many)
{
    enum { LEAST = 48 /* blocks */, MOST_COLUMNS = 8192, VERY_FEW = 128 };
    const int64_t kept = problem->kept_total;
    const int words = mf_emit_lane_words(problem), most = 4 * wide >= 3 * (int64_t)multiprocessors;
    if (mf_emit_has_kind(problem, RED_ARG) && !mf_cls_is_float(problem->program.reducer[0].cls))
        return none; /* registers would be spilled (sm_100) */
    if (kept <= VERY_FEW && narrow >= LEAST && !mf_emit_has_kind(problem, RED_ARG)) {
        if (words < 3 && widest == 8 && (words == 2 || kept < VERY_FEW))
            return lanes_form(problem, 8, 1, 4, 2, 1);
        if (words == 3 && kept < VERY_FEW)
            return lanes_form(problem, 4, 1, 4, 4, 1);
    }
    if (words == 1 && !many && narrow >= LEAST)
        return wide > multiprocessors ? mf_columns_usual_form(problem, 8)
                                      : lanes_form(problem, 8, 2, most ? 8 : 4, 4, 0);
    if (words == 2 && narrow >= LEAST && kept <= MOST_COLUMNS)
        return lanes_form(problem, 4, 2, most ? 16 : 8, 4, !mf_emit_has_kind(problem, RED_ARG));
    if (words == 3 && 4 * narrow >= 3 * (int64_t)multiprocessors)
        return wide > 2 * (int64_t)multiprocessors     ? lanes_form(problem, 4, 2, 16, 4, 1)
               : narrow > 2 * (int64_t)multiprocessors ? lanes_form(problem, 4, 4, 8, 2, 1)
                                                       : lanes_form(problem, 4, 2, 8, 4, 1);
    if (words == 4 && problem->program.reducer_count > 1 && 4 * narrow >= 3 * (int64_t)multiprocessors)
        return lanes_form(problem, 4, 4, 8, 2, 0);
    return none;
}

/* Mean and var of 32 bits, where there is more than the cache holds, and a row is long: in turn, unless there are many
 * blocks. (12544 by 2048, 1,380 and 3,380; 100352 by 512, 2,140 and 2,930.) */
static struct columns_form few_pairs(const struct problem *problem, int64_t tiles, int64_t blocks, int multiprocessors)
{
    enum { LEAST_ROW = 512, MUCH = 96 << 20 /* bytes */, FEW_TILES = 4 };
    const int64_t kept = problem->kept_total;
    if (kept < LEAST_ROW || problem->reduced_total <= MUCH / 4 / kept)
        return none;
    if (tiles > FEW_TILES && blocks > 2 * (int64_t)multiprocessors)
        return lanes_form(problem, 4, 4, 8, 1, 0);
    return (struct columns_form){.vector = 4,
                                 .held = 4,
                                 .lane_threads = LANES / 4,
                                 .column_threads = 8,
                                 .groups = 1,
                                 .batch = 8,
                                 .present = 4,
                                 .in_turn = 1};
}

/* Moments of f32 beside others: in turn, more threads where there are few blocks. (Sum, max, mean and var,
 * 100352 by 512, 2,120 and 3,360; 12544 by 2048, 3,090 and 3,340; where blocks are fewer, 2,700 and 2,390.) */
static struct columns_form few_moments(int64_t blocks, int64_t multiprocessors)
{
    const int many = 2 * blocks >= 5 * multiprocessors, lane_threads = many ? 8 : 16, lanes = LANES / lane_threads;
    if (2 * blocks < 3 * multiprocessors || blocks >= 6 * multiprocessors)
        return none;
    return (struct columns_form){.vector = 2,
                                 .held = lanes,
                                 .lane_threads = lane_threads,
                                 .column_threads = 16,
                                 .groups = 1,
                                 .batch = 16,
                                 .present = lanes,
                                 .in_turn = 1,
                                 .room = many ? 4 : 2};
}

/* 32 bits an element, 32 columns a block. (Of f32: sum, 6272 by 2048, 2,840 and 3,780; var, 200704 by 256, 2,730 and
 * 3,620; argmax 2,800 and 3,670; sum and max 2,840 and 4,060; sum of i32, 65536 by 1024, 3,150 and 4,200.) */
static struct columns_form few_words(const struct problem *problem, int64_t blocks, int multiprocessors, int many)
{
    enum { LEAST = 48 };
    const int words = mf_emit_lane_words(problem), one = problem->program.reducer_count == 1;
    const int moments = mf_emit_has_kind(problem, RED_MOMENTS), arg = mf_emit_has_kind(problem, RED_ARG);
    const int wide = 4 * blocks > (moments ? 5 : 8) * (int64_t)multiprocessors, long_sum = one && !moments && !arg;
    if ((words == 1 || (words == 2 && long_sum && !many)) && blocks >= LEAST && !wide)
        return lanes_form(problem, 2, 4, 16, 4, 0);
    if (words == 4 && !one && !arg && mf_columns_float_moments(problem))
        return few_moments(blocks, multiprocessors);
    if (words != 2 || 2 * blocks < multiprocessors || (many && !moments))
        return none;
    if (long_sum)
        return lanes_form(problem, 4, 2, 8, 2, 0);
    if (!one && problem->reduced_total <= TILE)
        return none;
    return wide ? lanes_form(problem, 4, 4, 8, 1, 0) : lanes_form(problem, 4, 2, 8, 2, 0);
}

/* Several operands, sums and the like: eight lanes and columns of 16 bits a thread, four of 32. (Of bf16: sums of a and
 * a b, 12544 by 2048, 1,490 and 3,240; sum(a b) / sum(b) over 2048 of 32 by 768, 2,400 and 2,890. Of f32: sums of a and
 * a b, 50176 by 512, 3,020 and 4,100.) */
static struct columns_form few_of_several(const struct problem *problem, int item, int widest, int many)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind != RED_FOLD)
            return none;
    if (mf_emit_lane_words(problem) > 2)
        return none;
    return item == 2 && widest == 8            ? lanes_form(problem, 8, 2, 8, 2, 0)
           : item == 4 && widest == 4 && !many ? lanes_form(problem, 4, 4, 8, 1, 0)
                                               : none;
}

struct columns_form mf_columns_few_form(const struct problem *problem, int64_t tiles, int widest, int multiprocessors,
                                        int many)
{
    enum { LEAST_COLUMNS = 128 /* of fewer nobody has measured, but */, LEAST_HALVES = 64, MOST_COLUMNS = 8192 };
    enum { NARROW = 32, WIDE = 64 };
    const int item = mf_gpu_widest_item(problem), words = mf_emit_lane_words(problem);
    const int64_t kept = problem->kept_total, narrow = (kept + NARROW - 1) / NARROW * tiles;
    const int64_t wide = (kept + WIDE - 1) / WIDE * tiles;
    const int one = problem->program.reducer_count == 1;
    const int one_operand = mf_gpu_only_operand(problem) >= 0;
    if (kept < (item == 2 && one_operand ? LEAST_HALVES : LEAST_COLUMNS) || problem->memory.reduced > 1 ||
        problem->memory.window_count || problem->reduced_total < 4 * LANES || mf_emit_has_kind(problem, RED_USER))
        return none;
    if (!one_operand)
        return narrow >= multiprocessors ? few_of_several(problem, item, widest, many) : none;
    if (problem->reduced_total < 8 * LANES)
        return none;
    switch (item) {
    case 1:
        return few_bytes(problem, widest, wide, multiprocessors, many);
    case 2:
        return widest >= (words == 1 ? 8 : 4) ? few_halves(problem, widest, narrow, wide, multiprocessors, many) : none;
    case 4:
        if (widest < 4 || kept > MOST_COLUMNS)
            return none;
        return words == 3 && !one ? few_pairs(problem, tiles, narrow, multiprocessors)
                                  : few_words(problem, narrow, multiprocessors, many);
    default: /* 64 bits, 16 columns a block. (Sum of f64, 65536 by 512, 3,490 and 4,320; var 3,540 and 4,010.) */
        return widest == 2 && one && !many && narrow > multiprocessors ? lanes_form(problem, 2, 4, 8, 2, 0) : none;
    }
}
