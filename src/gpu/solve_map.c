/* Solver "map" of a GPU: no reducer; outputs in units of 16 bytes (kernels/map.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    return !plan->problem.program.reducer_count && !plan->problem.program.uses_count;
}

/* ---- rows of whole units ---- */

/* Whether units are vectors, as far as strides say (launch.c: can_use_vectors). */
static int has_vectors(const struct problem *problem, int vector)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    if (last < 0 || nest->size[last] % vector)
        return 0;
    for (int t = 0; t < problem->input_count + problem->output_count; t++) {
        const int k = t - problem->input_count;
        const int64_t *stride = k < 0 ? nest->in[t] : nest->out[k];
        if ((k < 0 && !problem->finish_uses[t]) || (k < 0 && !stride[last]))
            continue;
        if (stride[last] != 1)
            return 0;
        for (int l = 0; l < last; l++)
            if (stride[l] % vector)
                return 0;
    }
    return 1;
}

/* Loop l becomes two: the inner one has so many positions. */
static void split(struct problem *problem, int l, int64_t inner)
{
    struct nest *nest = &problem->memory;
    int64_t *rows[MF_MAX_INPUTS + MF_MAX_OUTPUTS];
    int count = 0;
    for (int i = 0; i < problem->input_count; i++)
        rows[count++] = nest->in[i];
    for (int k = 0; k < problem->output_count; k++)
        rows[count++] = nest->out[k];
    for (int r = 0; r < count; r++) {
        memmove(&rows[r][l + 1], &rows[r][l], sizeof(int64_t) * (size_t)(nest->kept - l));
        rows[r][l] *= inner;
    }
    memmove(&nest->size[l + 1], &nest->size[l], sizeof(int64_t) * (size_t)(nest->kept - l));
    nest->size[l] /= inner;
    nest->size[l + 1] = inner;
    nest->kept++;
}

/* Makes a loop for a thread's units, as far inside as a warp's units still lie beside each other; -1: there is none. */
static int make_across(struct problem *problem, int vector, int units)
{
    enum { MOST_LOOPS = 16 };
    struct nest *nest = &problem->memory;
    int64_t inside = 1;
    if (nest->kept > MOST_LOOPS)
        return -1;
    for (int l = nest->kept - 1; l >= 0; inside *= nest->size[l--]) {
        const int64_t wanted = (GPU_WARP * vector + inside - 1) / inside, least = mf_power_above(wanted);
        int64_t inner = nest->size[l] / units;
        if (nest->size[l] % units || inner < wanted)
            continue;
        if (inner % least == 0)
            inner = least;
        if (l == nest->kept - 1 && inner % vector)
            continue;
        if (inner * units < nest->size[l])
            split(problem, l++, inner * units);
        if (inner > 1)
            split(problem, l, inner);
        return l;
    }
    return -1;
}

/* ---- rows of anything else ---- */

enum { OF_UNIT = 16 /* bytes */, MOST_TABLE = 128 /* units */ };

/* How operand i is read then: MODE of kernels/map.cl. */
static int mode_over_rows(const struct problem *problem, int i, int64_t table)
{
    const struct nest *nest = &problem->memory;
    int outer = 0;
    for (int l = 0; l < nest->kept - 1; l++)
        outer |= nest->in[i][l] != 0;
    if (!outer && !nest->in[i][nest->kept - 1])
        return 0;
    return mf_emit_is_flat(nest, nest->in[i]) ? 1 : !outer && table <= MOST_TABLE ? 3 : 2;
}

/* ---- both ---- */

/* Whole units of a row, or, where rows are no whole units and outputs are flat, units of the flat outputs. */
static void map_form(const struct problem *problem, int item, struct gpu_choice *choice)
{
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    choice->vector = OF_UNIT / item;
    choice->vector_loop = last;
    while (choice->vector > 2 && choice->vector * item > 8 && last >= 0 && nest->size[last] % choice->vector)
        choice->vector /= 2;
    choice->flat = last >= 0 && nest->size[last] % choice->vector != 0;
    for (int k = 0; k < problem->output_count; k++)
        choice->flat = choice->flat && mf_emit_is_flat(nest, nest->out[k]);
    if (choice->flat)
        choice->vector = OF_UNIT / item;
}

/* What a block does for its units' sake. */
struct effort {
    int64_t written; /* elements written out */
    int one_by_one;  /* an operand is read element by element */
};

static struct effort add_modes(const struct problem *problem, struct gpu_choice *choice)
{
    const int64_t n = problem->memory.size[problem->memory.kept - 1], power = n & -n, vector = choice->vector;
    const int64_t table = n / (power < vector ? power : vector); /* units until a row begins where one does */
    struct effort effort = {0, 0};
    int slot = 0;
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i]) {
            const int mode = mode_over_rows(problem, i, table);
            effort.one_by_one |= mode == 2;
            if (mode == 3)
                effort.written = table * choice->vector;
            mf_text_add(&choice->macros, "#define MODE_%d %d\n", slot++, mode);
        }
    mf_text_add(&choice->macros, "#define TABLE %d\n", effort.written ? (int)mf_power_above(table) : 0);
    choice->own[0] = n;
    choice->own[1] = mf_gpu_divisor(n);
    choice->own[2] = table;
    choice->own[3] = mf_gpu_divisor(table);
    return effort;
}

/* Whether places in all tensors, from their first elements on, are numbers of 31 bits. */
static int is_near(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    for (int t = 0; t < problem->input_count + problem->output_count; t++) {
        const int64_t *stride = t < problem->input_count ? nest->in[t] : nest->out[t - problem->input_count];
        int64_t reach = 0, part;
        for (int l = 0; l < nest->kept; l++)
            if (!mf_mul(stride[l] < 0 ? -stride[l] : stride[l], nest->size[l], &part) || !mf_add(reach, part, &reach) ||
                reach > INT32_MAX)
                return 0;
    }
    return 1;
}

/* Bytes that are read and written for an output, but for operands of fewer elements than half the outputs. */
static int64_t bytes_moved(const struct problem *problem)
{
    const struct nest *nest = &problem->memory;
    int64_t bytes = 0;
    for (int k = 0; k < problem->output_count; k++)
        bytes += mf_dtypes[problem->out_type[k]].size;
    for (int i = 0; i < problem->input_count; i++) {
        int64_t elements = 1;
        for (int l = 0; l < nest->kept; l++)
            elements *= nest->in[i][l] ? nest->size[l] : 1;
        bytes +=
            problem->finish_uses[i] && elements >= problem->kept_total / 2 ? mf_dtypes[problem->in_type[i]].size : 0;
    }
    return bytes;
}

/* Whether a unit takes next to no time beside its memory: sums and products of few operands. (16-bit operands that are
 * read one by one take some, others not: measured on an H200.) */
static int is_light(const struct problem *problem, const struct gpu_choice *choice, struct effort effort)
{
    const struct pool *pool = &problem->program.finish;
    int operands = 0;
    for (int i = 0; i < pool->count; i++) {
        if (pool->node[i].op > OP_mul || pool->node[i].op == OP_CAST)
            return 0;
        operands += pool->node[i].op == OP_OPERAND;
    }
    return operands <= choice->vector && effort.written <= choice->threads &&
           !(effort.one_by_one && choice->vector == 8);
}

/* Units of a thread. Small blocks keep the memory busy, as some read while others write; but a multiprocessor begins a
 * block every 160 cycles at most: of 2 KB they moved 3,200 GB/s on an H200, of 4 KB what memory does, half a percent
 * more than of 8 KB. Else what is done once a thread is shared by two units, which is up to a tenth faster, or more. */
static int units_of(const struct mf_plan *plan, const struct gpu_choice *choice, int vectors, struct effort effort)
{
    enum { BLOCK = 4096, MOST = 4, FULL = 32 /* blocks of a multiprocessor, twice over */ };
    const struct problem *problem = &plan->problem;
    const int64_t outputs = (int64_t)choice->threads * choice->vector;
    const int64_t all = outputs * FULL * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    const int light = vectors && is_light(problem, choice, effort);
    const int least = light ? 1 : effort.written > MOST * choice->threads ? MOST : 2;
    const int64_t wanted = mf_power_above((BLOCK - 1) / (outputs * bytes_moved(problem)) + 1);
    return mf_power_below(mf_clamp((problem->kept_total + all - 1) / all, 1, mf_clamp(wanted, least, MOST)));
}

static mf_status make(struct mf_plan *plan)
{
    enum { THREADS = 128 };
    struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_map_cl, .threads = THREADS};
    struct gpu_slots slots;
    map_form(problem, mf_gpu_widest_outside(problem, problem->memory.kept - 1), &choice);
    const struct effort effort = choice.flat ? add_modes(problem, &choice) : (struct effort){0, 0};
    const int vectors = choice.flat || has_vectors(problem, choice.vector);
    int units = units_of(plan, &choice, vectors, effort), across = -1;
    while (vectors && !choice.flat && units > 1 && (across = make_across(problem, choice.vector, units)) < 0)
        units /= 2;
    choice.vector_loop = problem->memory.kept - 1;
    const int64_t block = (int64_t)THREADS * choice.vector * units;
    choice.blocks = (problem->kept_total + block - 1) / block;
    mf_text_add(&choice.macros,
                "#define UNITS %d\n#define ACROSS %d\n#define OVER_ROWS %d\n#define HAS_VECTORS %d\n#define NEAR %d\n",
                units, across, choice.flat, vectors, is_near(problem));
    mf_emit_slots(problem, &slots);
    for (int s = 0; s < slots.count; s++)
        mf_text_add(&choice.macros, "#define STILL_%d %d\n", s,
                    across >= 0 && !problem->memory.in[slots.input[s]][across]);
    if (!vectors || !mf_emit_packed(problem, &slots, &choice.functions))
        mf_text_append(&choice.functions, "#define PACKED 0\n");
    snprintf(choice.text, sizeof choice.text, "vectors of %d outputs%s, %d a thread", choice.vector,
             choice.flat ? " across rows" : "", units);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_map = {
    "map", "outputs in units of 16 bytes", applicable, make, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};
