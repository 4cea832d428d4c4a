/* What the solvers ask about a problem before they choose a form for it. */
#include "form.h"

#include <stdlib.h>
#include <string.h>

int mf_gpu_any_order(const struct mf_plan *plan)
{
    for (int r = 0; r < plan->problem.program.reducer_count; r++) {
        const struct reducer *reducer = &plan->problem.program.reducer[r];
        if (reducer->kind == RED_USER && (!reducer->user->recipe || reducer->user->recipe->ordered))
            return 0;
    }
    return 1;
}

/* Neighbouring outputs are neighbours in the operands, or one place, and there is more than one reduced element. */
int mf_gpu_is_columns(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    if (!nest->kept || !nest->reduced || nest->size[nest->kept - 1] < 2)
        return 0;
    int unit = 0;
    for (int i = 0; i < problem->input_count; i++) {
        if (!problem->map_uses[i])
            continue;
        unit |= nest->in[i][nest->kept - 1] == 1 && nest->in[i][nest->kept + nest->reduced - 1] != 1;
        if (nest->in[i][nest->kept - 1] != 0 && nest->in[i][nest->kept + nest->reduced - 1] == 1)
            return 0;
    }
    return unit;
}

int mf_gpu_has_logsums(const struct problem *problem)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_LSE)
            return 1;
    return 0;
}

/* The most bytes of an element inside the reducers. */
int mf_gpu_widest_item(const struct problem *problem)
{
    int item = 1;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i] && mf_dtypes[problem->in_type[i]].size > item)
            item = mf_dtypes[problem->in_type[i]].size;
    return item;
}

int mf_gpu_widest_outside(const struct problem *problem, int loop)
{
    int item = 1;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i] && (loop < 0 || problem->memory.in[i][loop]) &&
            mf_dtypes[problem->in_type[i]].size > item)
            item = mf_dtypes[problem->in_type[i]].size;
    for (int k = 0; k < problem->output_count; k++)
        if (mf_dtypes[problem->out_type[k]].size > item)
            item = mf_dtypes[problem->out_type[k]].size;
    return item;
}

/* How many elements, a power of two up to `most`, all operands inside the reducers have together along a loop: strides
 * of 0 or 1 there, and all other strides and the loop itself in whole vectors. */
int mf_gpu_vector_along(const struct problem *problem, int loop, int most)
{
    const struct nest *nest = &problem->memory;
    int64_t n = loop < nest->kept || nest->reduced > 1 ? nest->size[loop] : problem->reduced_total;
    while (n % most)
        most /= 2;
    for (int w = 0; w < nest->window_count; w++)
        if (loop >= nest->kept || nest->window[w].step[loop]) /* else a vector is inside as its first element is */
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

/* The vector that rows and tiles read along the last reduced loop: 16 bytes, at least 4 elements, or one element. (A
 * thread has a lane for each: too many words of them do not stay in registers.) */
int mf_gpu_row_vector(const struct problem *problem)
{
    enum { LANE_WORDS = 48 };
    const struct nest *nest = &problem->memory;
    int item = mf_gpu_widest_item(problem), words = mf_emit_state_words(problem);
    if (!nest->reduced)
        return 1;
    int most = mf_clamp(16 / item, 4, mf_gpu_has_logsums(problem) ? 8 : 16);
    while (most > 4 && most * words > LANE_WORDS)
        most /= 2;
    int vector = mf_gpu_vector_along(problem, nest->kept + nest->reduced - 1, most);
    return vector >= 4 || (vector == 2 && problem->reduced_total == 2) ? vector : 1;
}

int mf_gpu_crosses(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept + nest->reduced - 1;
    for (int i = 0; i < problem->input_count && nest->reduced; i++)
        if (problem->map_uses[i] && last && nest->in[i][last - 1] == 1 && nest->in[i][last] > 1)
            return 1;
    return 0;
}

int mf_gpu_only_operand(const struct problem *problem)
{
    int used = -1;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->map_uses[i]) {
            if (used >= 0)
                return -1;
            used = i;
        }
    return used;
}

int mf_gpu_has_long_maps(const struct problem *problem)
{
    const struct pool *map = &problem->program.map;
    for (int n = 0; n < map->count; n++) {
        const enum op op = map->node[n].op;
        if (op == OP_exp || op == OP_log || op == OP_tanh || op == OP_sigmoid || op == OP_pow)
            return 1;
    }
    return 0;
}

int mf_gpu_shifted_vector(const struct problem *problem, int64_t bounds[2])
{
    const struct nest *nest = &problem->memory;
    int used = mf_gpu_only_operand(problem), item = mf_gpu_widest_item(problem);
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        /* others have left and right; or indices that steps alone do not give, or too many registers */
        if (reducer->kind != RED_FOLD &&
            (reducer->kind != RED_ARG || item < 2 || !mf_cls_is_float(reducer->cls) || !mf_nest_is_as_written(nest)))
            return 1;
    }
    if (used < 0 || nest->reduced != 1 || nest->window_count || nest->in[used][nest->kept] != 1 || item > 2)
        return 1;
    bounds[0] = 0;
    bounds[1] = 1;
    for (int l = 0; l < nest->kept + nest->reduced; l++) {
        int64_t reach = nest->in[used][l] * (nest->size[l] - 1);
        bounds[reach > 0] += reach;
    }
    return 16 / item;
}

/* Whether a reducer of this kind, of 16-bit floats as they are, is all that is asked for. */
static int is_of_halves(const struct problem *problem, enum reducer_kind kind)
{
    const struct program *program = &problem->program;
    const struct node *node = &program->map.node[program->reducer[0].arg[0]];
    return program->reducer_count == 1 && program->reducer[0].kind == kind && node->op == OP_OPERAND &&
           (problem->in_type[node->index] == DT_f16 || problem->in_type[node->index] == DT_bf16);
}

/* Elements that are read once, more of them than the caches hold, beside few outputs, need not push out what kernels
 * before this one wrote: that is then written back later. Folds of 64 to 256 MB are up to a tenth faster behind a
 * kernel that filled the cache, sums of bytes down columns a fifth, else no slower; but columns of 64 MB are. Larger
 * ones read a thirtieth slower that way, unless few warps do. (Measured on an H200 and an H100.) */
int mf_gpu_reads_once(const struct problem *problem, int vector, enum gpu_reader reader)
{
    enum { LEAST = 1 << 26, MOST = 1 << 28 };
    const struct nest *nest = &problem->memory;
    const int operand = mf_gpu_only_operand(problem), item = mf_gpu_widest_item(problem);
    const int64_t least = reader == READ_BY_COLUMNS ? 2 * LEAST : LEAST;
    const int64_t most = reader == READ_BY_FEW_WARPS ? 2 * (int64_t)MOST : MOST;
    int64_t elements, written = 0;
    if (operand < 0 || nest->window_count || vector * item < 4 ||
        !mf_mul(problem->kept_total, problem->reduced_total, &elements) || elements < least / item ||
        elements > most / item)
        return 0;
    for (int l = 0; l < nest->kept + nest->reduced; l++)
        if (!nest->in[operand][l])
            return 0;
    for (int k = 0; k < problem->output_count; k++)
        written += problem->kept_total * mf_dtypes[problem->out_type[k]].size;
    return written * (reader == READ_WORDS ? 4 : 7) <= elements * item;
}

int mf_gpu_lanes_at_once(const struct problem *problem, int loop)
{
    enum { MOST_WORDS = 4 /* of a lane's state */ };
    const struct nest *nest = &problem->memory;
    const int operand = mf_gpu_only_operand(problem);
    const int arguments = loop < nest->kept && mf_nest_is_as_written(nest) && is_of_halves(problem, RED_ARG);
    return arguments && operand >= 0 && nest->reduced == 1 && !nest->window_count && nest->in[operand][loop] == 1 &&
                   mf_emit_lane_words(problem) <= MOST_WORDS && problem->reduced_total > LANES &&
                   mf_gpu_vector_along(problem, loop, 2) == 2
               ? 2
               : 0;
}

int mf_gpu_folds_halves(const struct problem *problem)
{
    return is_of_halves(problem, RED_FOLD);
}

int mf_gpu_has_paired_sums(const struct problem *problem)
{
    return is_of_halves(problem, RED_LSE);
}

void mf_gpu_define_lanes(const struct problem *problem, int vector, struct gpu_text *macros)
{
    const int arguments = is_of_halves(problem, RED_ARG);
    const int64_t of_tile = problem->reduced_total < TILE ? problem->reduced_total : TILE;
    const int operand = mf_gpu_only_operand(problem);
    const int64_t step = operand < 0 ? 0 : problem->memory.in[operand][problem->memory.kept];
    mf_text_add(macros, "#define ALL_STEPS %d\n#define LANE_STEP %s\n",
                (int)mf_power_above((of_tile + LANES - 1) / LANES),
                step > INT32_MAX / LANES || step < -(INT32_MAX / LANES) ? "int64_t" : "int");
    if (vector != 2 || !arguments)
        return;
    const struct reducer *reducer = &problem->program.reducer[0];
    const int brain = problem->in_type[problem->program.map.node[reducer->arg[0]].index] == DT_bf16;
    const int least = reducer->fold == FOLD_MIN;
    const char *type = brain ? "bf16" : "f16";
    if (brain)
        mf_text_add(macros,
                    "#define LOW_HALF(word) mf_bits_f32((word) << 16)\n"
                    "#define HIGH_HALF(word) mf_bits_f32((word) & 0xffff0000u)\n#define NO_PAIR %su\n",
                    least ? "0x7f807f80" : "0xff80ff80");
    else
        mf_text_add(macros,
                    "#define LOW_HALF(word) mf_f16_to_f32((uint16_t)(word))\n"
                    "#define HIGH_HALF(word) mf_f16_to_f32((uint16_t)((word) >> 16))\n#define NO_PAIR %su\n",
                    least ? "0x7c007c00" : "0xfc00fc00");
    mf_text_add(macros, "#define BEST %s_%s\n#define EQUAL equal_%s\n", least ? "least" : "greater", type, type);
}

/* A second meeting of blocks costs a few microseconds; what groups save grows with the states that the last block would
 * read alone. (Measured on an H100: mean and var of bf16, 401408 by 256, 2,090 GB/s without groups, 2,460 with them,
 * 100352 by 512, 1,980 and 1,950.) */
int mf_gpu_joins_groups(const struct problem *problem, int64_t block_columns, int64_t tiles, int64_t tiles_of_block)
{
    enum { LEAST = 17, MANY = 40, MANY_SMALL = 300, WIDE = 64 };
    const int large = mf_emit_state_words(problem) > 2;
    return tiles_of_block == 1 && tiles >= LEAST && tiles <= TILE &&
           (tiles > (large ? MANY : MANY_SMALL) || (large && block_columns > WIDE));
}

void mf_gpu_define_join(const struct problem *problem, int64_t block_columns, int64_t tiles, int64_t tiles_of_block,
                        struct gpu_text *macros)
{
    enum { MOST_FEW = 8 /* tiles of a column that one thread joins */ };
    mf_text_add(macros,
                "#define FEW %d\n#define GROUPED %d\n#define JOIN_LANES %d\n#define JOIN_CHAINED %d\n"
                "#define JOIN_COLUMNS %d\n",
                tiles > MOST_FEW ? 1 : (int)mf_power_above(tiles),
                mf_gpu_joins_groups(problem, block_columns, tiles, tiles_of_block),
                tiles < LANES ? (int)mf_power_above(tiles) : LANES, tiles > LANES, (int)block_columns);
}

/* The most threads of a block that is to have so many: NVIDIA's OpenCL says that it runs groups of 1024, then runs none
 * of more than 256. */
int mf_gpu_most_threads(const struct mf_plan *plan, int wanted)
{
    return MF_GPU_LIMITS(plan->device->gpu)->dlpack == kDLOpenCL && wanted > 256 ? 256 : wanted;
}

/* Steps that a team reads before it computes: 128 bytes a thread. */
int mf_gpu_steps_at_once(const struct problem *problem, int vector)
{
    int bytes = 0;
    int64_t most = problem->reduced_total < TILE ? problem->reduced_total : TILE, steps = (most + LANES - 1) / LANES;
    for (int i = 0; i < problem->input_count; i++)
        bytes += problem->map_uses[i] ? (vector > 1 ? vector : 4) * mf_dtypes[problem->in_type[i]].size : 0;
    return mf_power_below(mf_clamp(128 / (bytes < 8 ? 8 : bytes), 1, 8 < steps ? (bytes < 8 ? 16 : 8) : 8));
}

int mf_gpu_read_form(const char *text, char name[16], int most, int *number)
{
    const size_t letters = strcspn(text, ":");
    memset(name, 0, 16);
    memset(number, 0, (size_t)most * sizeof *number);
    if (letters > 15)
        return 0;
    memcpy(name, text, letters);
    const char *at = text + letters;
    for (int i = 0; i < most && *at == ':'; i++) {
        const size_t digits = strspn(at + 1, "0123456789");
        if (!digits || digits > 5)
            return 0;
        number[i] = (int)strtol(at + 1, NULL, 10);
        at += 1 + digits;
    }
    return !*at;
}

void mf_gpu_pool_output(struct mf_plan *plan, int down, int across)
{
    struct nest *nest = &plan->problem.memory;
    int64_t *stride = nest->out[0], *high = &plan->problem.high[MF_MAX_INPUTS];
    const int64_t item = mf_dtypes[plan->problem.out_type[0]].size;
    const int64_t image = stride[down] * nest->size[down];
    for (int l = 0; l < nest->kept; l++) {
        const int64_t pooled = l == down ? plan->pool[1] : l == across ? plan->pool[2] : plan->pool[0];
        const int64_t size = l == down || l == across ? nest->size[l] / 2 : nest->size[l];
        if (stride[l] < stride[across] || (l != down && l != across && stride[l] != image))
            continue;
        *high += ((size - 1) * pooled - (nest->size[l] - 1) * stride[l]) * item;
        stride[l] = pooled;
    }
}

int mf_gpu_finish_varies(const struct problem *problem, int loop)
{
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i] && problem->memory.in[i][loop])
            return 1;
    return 0;
}

int mf_gpu_has_few_terms(const struct mf_device *device, int64_t outputs, int64_t terms_of_one)
{
    enum { FEW_TERMS = 1 << 17 };
    int64_t terms;
    return mf_mul(outputs, terms_of_one, &terms) &&
           terms <= (int64_t)FEW_TERMS * MF_GPU_LIMITS(device->gpu)->multiprocessors;
}
