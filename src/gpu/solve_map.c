/* Solver "map" of a GPU: no reducer; outputs in units of 16 bytes (kernels/map.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

static int applicable(const struct mf_plan *plan)
{
    return !plan->problem.program.reducer_count && !plan->problem.program.uses_count;
}

/* ---- rows of whole units ---- */

/* Neighbouring outputs whose elements are no neighbours in an operand, or that are none themselves: a colour's in
 * pixels. input: that operand, or -1: the outputs are pixels; along: the loop over pixels; across: over colours (-1:
 * there is one). vector: pixels read together, 0 if there are none. */
struct pixels {
    int input, along, across, vector;
};

/* Whether units are vectors, as far as strides say (launch.c: can_use_vectors), and pixels as many of them. */
static int has_vectors(const struct problem *problem, int vector, const struct pixels *pixels)
{
    const struct nest *nest = &problem->memory;
    if (pixels->along < 0 || nest->size[pixels->along] % vector)
        return 0;
    for (int t = 0; t < problem->input_count + problem->output_count; t++) {
        const int k = t - problem->input_count, pitched = pixels->vector && (k < 0 ? t : -1) == pixels->input;
        const int64_t *stride = k < 0 ? nest->in[t] : nest->out[k];
        if (k < 0 && (!problem->finish_uses[t] || !stride[pixels->along]))
            continue;
        if (stride[pixels->along] != 1 && !pitched)
            return 0;
        for (int l = 0; l < nest->kept; l++)
            if (l != pixels->along && stride[l] % vector && !(pitched && l == pixels->across))
                return 0;
    }
    return 1;
}

/* The rows of a nest that have a number for each loop. */
static int loops_of(struct problem *problem, int64_t *rows[MF_MAX_INPUTS + MF_MAX_OUTPUTS])
{
    int count = 0;
    for (int i = 0; i < problem->input_count; i++)
        rows[count++] = problem->memory.in[i];
    for (int k = 0; k < problem->output_count; k++)
        rows[count++] = problem->memory.out[k];
    return count;
}

/* Loop l becomes two: the inner one has so many positions. */
static void split(struct problem *problem, int l, int64_t inner)
{
    struct nest *nest = &problem->memory;
    int64_t *rows[MF_MAX_INPUTS + MF_MAX_OUTPUTS];
    const int count = loops_of(problem, rows);
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

/* ---- pixels ---- */

/* One operand's, of which a thread reads some, with all their colours or most of them. */
static struct pixels pixels_read(const struct problem *problem)
{
    enum { MOST_BYTES = 128, MOST_SPARE = 2 /* to one that is wanted */, MOST_OF_ONE = 4 };
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    struct pixels pixels = {.input = -1, .along = last, .across = -1};
    for (int i = 0; i < problem->input_count; i++)
        if (problem->finish_uses[i] && nest->in[i][last] > 1 &&
            nest->in[i][last] <= MOST_BYTES / mf_dtypes[problem->in_type[i]].size) {
            if (pixels.input >= 0)
                return (struct pixels){.vector = 0};
            pixels.input = i;
        }
    if (pixels.input < 0)
        return pixels;
    const int64_t *stride = nest->in[pixels.input];
    for (int l = 0; l < last; l++)
        if (stride[l] > 0 && (nest->size[l] - 1) * stride[l] < stride[last])
            pixels.across = l;
    pixels.vector =
        pixels.across < 0 ? stride[last] <= MOST_OF_ONE : stride[last] <= MOST_SPARE * nest->size[pixels.across];
    return pixels;
}

/* The outputs', of which a thread writes some, reading each colour's side by side. (An H200: 3 bytes 3,310 GB/s, one by
 * one 1,890; 3 floats, which are written in parts of sectors, 3,100 and 4,010.) */
static struct pixels pixels_written(const struct problem *problem)
{
    enum { MOST = 4 };
    const struct nest *nest = &problem->memory;
    const int last = nest->kept - 1;
    const struct pixels none = {.vector = 0}, pixels = {.input = -1, .along = last - 1, .across = last, .vector = 1};
    int apart = 0;
    for (int i = 0; i < problem->input_count && last > 0; i++)
        apart |= problem->finish_uses[i] && nest->in[i][last - 1] == 1 && nest->in[i][last] != 0;
    for (int k = 0; k < problem->output_count; k++)
        if (!apart || nest->size[last] > MOST || mf_dtypes[problem->out_type[k]].size > 1 || nest->out[k][last] != 1 ||
            nest->out[k][last - 1] != nest->size[last])
            return none;
    return pixels;
}

/* Instructions of an output, roughly. */
static int64_t work_of(const struct problem *problem)
{
    enum { HEAVY = 8 };
    const struct pool *pool = &problem->program.finish;
    int64_t work = 0;
    for (int i = 0; i < pool->count; i++)
        work += pool->node[i].op > OP_mul && pool->node[i].op != OP_CAST ? HEAVY : 1;
    return work;
}

/* As many pixels as make colours of 16 bytes, but a thread has registers for so much only, and compilers take more
 * than a minute for the remainders of hundreds of outputs. */
static struct pixels find_pixels(const struct problem *problem)
{
    enum { OF_COLOUR = 16, LEAST = 4, MOST_READ = 512 /* bytes */, MOST_WRITTEN = 64 /* elements */, MOST_WORK = 1024 };
    const struct nest *nest = &problem->memory;
    struct pixels pixels = {.vector = 0};
    if (nest->kept)
        pixels = pixels_written(problem);
    if (nest->kept && !pixels.vector)
        pixels = pixels_read(problem);
    if (!pixels.vector)
        return pixels;
    const int i = pixels.input, item = mf_gpu_widest_outside(problem, pixels.along);
    const int64_t one =
        i < 0 ? nest->size[pixels.across] : nest->in[i][pixels.along] * mf_dtypes[problem->in_type[i]].size;
    const int64_t work = work_of(problem) * (pixels.across < 0 ? 1 : nest->size[pixels.across]);
    pixels.vector = OF_COLOUR / item;
    while (pixels.vector > 1 && (pixels.vector * one > (i < 0 ? MOST_WRITTEN : MOST_READ) ||
                                 pixels.vector * work > MOST_WORK || !has_vectors(problem, pixels.vector, &pixels)))
        pixels.vector /= 2;
    if (pixels.vector == 1 || pixels.vector * item < LEAST)
        pixels.vector = 0;
    return pixels;
}

int mf_gpu_pixels_pay(const struct mf_plan *plan)
{
    enum { ENOUGH = 62 /* threads of a multiprocessor */ };
    const struct problem *problem = &plan->problem;
    const struct pixels pixels = find_pixels(problem);
    const int64_t colours = pixels.vector && pixels.across >= 0 ? problem->memory.size[pixels.across] : 1;
    return pixels.vector &&
           problem->kept_total >= ENOUGH * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors * colours * pixels.vector;
}

/* The loop over the pixels that are written becomes the last one. */
static void turn_pixels(struct problem *problem, struct pixels *pixels)
{
    int64_t *rows[MF_MAX_INPUTS + MF_MAX_OUTPUTS + 1];
    const int last = problem->memory.kept - 1;
    int count = loops_of(problem, rows);
    rows[count++] = problem->memory.size;
    for (int r = 0; r < count; r++) {
        const int64_t along = rows[r][last - 1];
        rows[r][last - 1] = rows[r][last];
        rows[r][last] = along;
    }
    pixels->along = last;
    pixels->across = last - 1;
}

/* How they lie: see kernels/map.cl. */
static void add_pixels(const struct problem *problem, const struct gpu_slots *slots, const struct pixels *pixels,
                       struct gpu_choice *choice)
{
    const struct nest *nest = &problem->memory;
    const int i = pixels->vector ? pixels->input : -1;
    mf_text_add(&choice->macros, "#define PITCHED %d\n#define WRITES_PIXELS %d\n", i >= 0, pixels->vector && i < 0);
    if (i < 0)
        return;
    const int64_t pitch = nest->in[i][pixels->along], apart = pixels->across < 0 ? 0 : nest->in[i][pixels->across];
    const int64_t colours = pixels->across < 0 ? 1 : nest->size[pixels->across];
    choice->own[4] = problem->high[i] / mf_dtypes[problem->in_type[i]].size - problem->in_base[i];
    mf_text_add(&choice->macros, "#define SPARE %d\n", (colours - 1) * apart < pitch - 1);
    for (int s = 0; s < slots->count; s++)
        mf_text_add(&choice->macros, "#define PITCH_%d %d\n#define APART_%d %d\n", s,
                    slots->input[s] == i ? (int)pitch : 1, s, slots->input[s] == i ? (int)apart : 0);
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

/* Units of a thread, and the loop over them. */
static int choose_units(struct mf_plan *plan, int vectors, struct effort effort, const struct pixels *pixels,
                        struct gpu_choice *choice)
{
    struct problem *problem = &plan->problem;
    const int of_pixels = pixels->across < 0 ? 1 : (int)problem->memory.size[pixels->across];
    int units = pixels->vector ? of_pixels : units_of(plan, choice, vectors, effort), across = -1;
    if (pixels->vector)
        across = pixels->across;
    else
        while (vectors && !choice->flat && units > 1 && (across = make_across(problem, choice->vector, units)) < 0)
            units /= 2;
    choice->vector_loop = problem->memory.kept - 1;
    const int64_t block = (int64_t)choice->threads * choice->vector * units;
    choice->blocks = (problem->kept_total + block - 1) / block;
    mf_text_add(&choice->macros,
                "#define UNITS %d\n#define ACROSS %d\n#define OVER_ROWS %d\n#define HAS_VECTORS %d\n#define NEAR %d\n",
                units, across, choice->flat, vectors, is_near(problem));
    snprintf(choice->text, sizeof choice->text, "vectors of %d outputs%s, %d a thread", choice->vector,
             choice->flat ? " across rows" : "", units);
    return across;
}

static mf_status make(struct mf_plan *plan)
{
    enum { THREADS = 128 };
    struct problem *problem = &plan->problem;
    struct gpu_choice choice = {.kernel = mf_text_map_cl, .threads = THREADS};
    struct gpu_slots slots;
    struct pixels pixels = find_pixels(problem);
    struct effort effort = {0, 0};
    choice.vector = pixels.vector;
    if (pixels.vector && pixels.input < 0)
        turn_pixels(problem, &pixels);
    if (!pixels.vector) {
        pixels.along = problem->memory.kept - 1;
        map_form(problem, mf_gpu_widest_outside(problem, pixels.along), &choice);
        if (choice.flat)
            effort = add_modes(problem, &choice);
    }
    const int vectors = choice.flat || has_vectors(problem, choice.vector, &pixels);
    const int across = choose_units(plan, vectors, effort, &pixels, &choice);
    mf_emit_slots(problem, &slots);
    add_pixels(problem, &slots, &pixels, &choice);
    for (int s = 0; s < slots.count; s++)
        mf_text_add(&choice.macros, "#define STILL_%d %d\n", s,
                    across >= 0 && !problem->memory.in[slots.input[s]][across]);
    if (!vectors || (pixels.vector && pixels.input < 0) || !mf_emit_packed(problem, &slots, &choice.functions))
        mf_text_append(&choice.functions, "#define PACKED 0\n");
    choice.flat |= pixels.vector > 0; /* the launch knows only vectors whose elements are neighbours */
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_map = {
    "map", "outputs in units of 16 bytes", applicable, make, mf_gpu_execute, mf_gpu_print, mf_gpu_forget,
};
