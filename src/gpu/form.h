/* What the solvers ask about a problem before they choose a form for it. */
#ifndef MF_GPU_FORM_H
#define MF_GPU_FORM_H

#include "launch.h"

/* Threads that a multiprocessor is to have room for. A kernel compiled for some such number keeps the loads of a batch
 * together; without one the compiler (seen with NVRTC 13.0) puts them next to their use, to save registers that nobody
 * needs. With this one a thread has 64. Where registers would be spilled, which is known only when all is compiled, a
 * form says at once that one block is to have them all. */
enum { GPU_ROOM = 1024, GPU_ONE_BLOCK = 1 };

/* Counters of blocks side by side whose tiles are joined by the last of them, and whether in groups: GROUPED of
 * kernels/parts.cl. */
enum { GPU_COUNTERS = 17 };
int mf_gpu_joins_groups(const struct problem *problem, int64_t block_columns, int64_t tiles, int64_t tiles_of_block);
/* What kernels/parts.cl is told: how blocks of so many columns, with so many tiles of one each, are joined. */
void mf_gpu_define_join(const struct problem *problem, int64_t block_columns, int64_t tiles, int64_t tiles_of_block,
                        struct gpu_text *macros);

/* Whether no reducer is a user's that is given as callbacks or keeps its elements' order. */
int mf_gpu_any_order(const struct mf_plan *plan);
/* Whether the columns of a fold lie next to each other in memory, and their elements do not. */
int mf_gpu_is_columns(const struct problem *problem);
/* Whether a reducer is a logsumexp. */
int mf_gpu_has_logsums(const struct problem *problem);
/* Whether an element that is reduced takes a function of some thirty operations. */
int mf_gpu_has_long_maps(const struct problem *problem);
/* The most bytes of an element inside the reducers. */
int mf_gpu_widest_item(const struct problem *problem);
/* The same outside of them: of operands of the finish part that have several along the kept loop (-1: of all), and of
 * outputs. */
int mf_gpu_widest_outside(const struct problem *problem, int loop);
/* How many elements, a power of two up to `most`, all operands inside the reducers have together along a loop. */
int mf_gpu_vector_along(const struct problem *problem, int loop, int most);
/* The vector that rows and tiles read along the last reduced loop, and the steps that a team reads at once. */
int mf_gpu_row_vector(const struct problem *problem);
/* Where that is one element because rows begin anywhere: 16 bytes of short elements, for rows that are then SHIFTED
 * (kernels/fold.cl); 1 where that does not go. bounds: where the operand's memory begins and ends, in elements from
 * position 0. */
int mf_gpu_shifted_vector(const struct problem *problem, int64_t bounds[2]);
/* Whether vectors of so many elements are read past what the caches hold of others. */
enum gpu_reader { READ_BY_ROWS, READ_BY_COLUMNS, READ_BY_FEW_WARPS /* of a multiprocessor, rows */, READ_WORDS };
int mf_gpu_reads_once(const struct problem *problem, int vector, enum gpu_reader reader);
/* Whether solver "map" reads all colours of so many pixels together that "turned" is slower. */
int mf_gpu_pixels_pay(const struct mf_plan *plan);
/* Whether solver "patches" is faster than "columns": where windows of pixels overlap. */
int mf_gpu_patches_pay(const struct mf_plan *plan);
/* How many elements it reads together where outputs share lines of elements, pixels as lines of numbers; or 0. */
int mf_gpu_patches_reads_lines(const struct mf_plan *plan);
/* Whether outputs that share lines there share exponentials of a logsumexp too: of f32, alone or with another fold. */
int mf_gpu_shares_exponentials(const struct problem *problem);
/* Whether an operand inside the reducers lies along the loop before the last, so that neighbouring rows share lines. */
int mf_gpu_crosses(const struct problem *problem);
/* The only operand inside the reducers, or -1. */
int mf_gpu_only_operand(const struct problem *problem);
/* For arguments of columns of 16-bit floats: how many neighbours along a loop a
 * thread takes with all steps of their lanes in registers (kernels/lanes.cl), or 0; and the macros of that. */
int mf_gpu_lanes_at_once(const struct problem *problem, int loop);
/* Whether all that is asked for is a sum, product or extreme of 16-bit floats as they are. */
int mf_gpu_folds_halves(const struct problem *problem);
/* Whether all that is asked for is a logsumexp of 16-bit floats as they are, two of which are compared as one. */
int mf_gpu_has_paired_sums(const struct problem *problem);
void mf_gpu_define_lanes(const struct problem *problem, int vector, struct gpu_text *macros);
int mf_gpu_most_threads(const struct mf_plan *plan, int wanted);
int mf_gpu_steps_at_once(const struct problem *problem, int vector);

static inline int mf_clamp(int64_t value, int low, int high)
{
    return value < low ? low : value > high ? high : (int)value;
}

/* Greatest power of two that is at most n, or 1. */
static inline int mf_power_below(int64_t n)
{
    int p = 1;
    while (2 * p <= n)
        p *= 2;
    return p;
}

extern const struct solver mf_gpu_patches, mf_gpu_turned, mf_gpu_map, mf_gpu_interleaved, mf_gpu_columns, mf_gpu_wide,
    mf_gpu_bytes, mf_gpu_straddle, mf_gpu_slanted, mf_gpu_abreast, mf_gpu_staged, mf_gpu_runs, mf_gpu_quads,
    mf_gpu_sliding, mf_gpu_ordered, mf_gpu_rows, mf_gpu_small, mf_gpu_tiles, mf_gpu_slide, mf_gpu_slide_shared,
    mf_gpu_multi, mf_gpu_tensor_sum, mf_gpu_contract, mf_gpu_contract_near, mf_gpu_contract_arg,
    mf_gpu_contract_several, mf_gpu_log_certified, mf_gpu_log_fast, mf_gpu_log_exact, mf_gpu_log_running,
    mf_gpu_log_two_pass, mf_gpu_cublas, mf_gpu_product, mf_gpu_window, mf_gpu_pixels;

/* Whether these solvers are worth while, where any order of adding will do: on CUDA. */
int mf_gpu_product_pays(const struct mf_plan *plan);
int mf_gpu_tensor_sum_pays(const struct mf_plan *plan);
/* Whether solver "straddle" is faster than "slanted", and "interleaved" than "columns". */
int mf_gpu_straddle_pays(const struct mf_plan *plan);
int mf_gpu_interleaved_pays(const struct mf_plan *plan);
/* Whether solver "window" is faster than "product". */
int mf_gpu_window_pays(const struct mf_plan *plan);

/* mf_plan_create_pooled describes its output as if it lay dense in memory, with an element for each position along the
 * loops down and across; now as it is. */
void mf_gpu_pool_output(struct mf_plan *plan, int down, int across);

/* Whether a fold's terms are few: at most 2^17 for each multiprocessor. */
int mf_gpu_has_few_terms(const struct mf_device *device, int64_t outputs, int64_t terms_of_one);

/* Whether an operand of the finish part differs along a kept loop. */
int mf_gpu_finish_varies(const struct problem *problem, int loop);

/* NAME and at most so many times :NUMBER, the text behind a solver's name: numbers that are not there are 0. Returns 0
 * where it is something else, or a number has more than five digits. */
int mf_gpu_read_form(const char *text, char name[16], int most, int *number);

#endif
