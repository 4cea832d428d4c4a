/* Solver "sliding" of a GPU, sums and products of floats over windows along two loops in the contract's order: strips
 * of columns, whose outputs share the parts of their trees (kernels/sliding_strips.cl).
 *
 * A part is the combination of a few others, so many rows back and columns further, or of elements;
 * src/cpu/sliding_strips.c finds them: 11 x 11 elements are 22 parts with 56 inputs. A thread has one column of each
 * part, the same from the part's first one on; 32 of the inputs are then its own and wait in registers. Others' wait in
 * shared memory, where an access takes a warp a cycle of the multiprocessor: 24 reads and 8 writes. Threads meet once a
 * step, and before the first read of a level's parts. */
#include <stdio.h>

#include "../cpu/sliding.h"
#include "emit_reducers.h"
#include "sliding_stages.h"

/* kept: rows of a part that wait in registers; ring: blocks of rows in shared memory, 0 where no other column reads it;
 * reach: columns that others read beyond the threads' own. level: how often threads meet before they make it. */
struct layout {
    int kept[MOST_PARTS], ring[MOST_PARTS], reach[MOST_PARTS], level[MOST_PARTS];
    int in_registers, inputs, accesses; /* of shared memory, for a row of outputs; all of all reducers */
    int64_t cells;
};

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static struct layout find_layout(const struct sliding_strip *strip, int threads, int at_once)
{
    const struct strips *strips = strip->strips;
    struct layout l = {.inputs = strips->inputs * strip->reducers};
    for (int p = 1; p < strips->parts; p++)
        for (int k = 0; k < strips->part[p].count; k++) {
            const struct input *input = &strips->input[strips->part[p].first + k];
            const int of = input->part;
            if (input->column) {
                l.ring[of] = larger(l.ring[of], (input->row + at_once - 1) / at_once + 1);
                l.reach[of] = larger(l.reach[of], input->column);
                l.accesses++;
            } else {
                l.kept[of] = larger(l.kept[of], input->row);
            }
            l.level[p] = larger(l.level[p], l.level[of] + (input->column != 0));
        }
    for (int p = 0; p < strips->parts; p++) {
        l.in_registers += l.kept[p];
        l.accesses += l.ring[p] != 0;
        l.cells += (int64_t)l.ring[p] * at_once * (threads + l.reach[p]);
    }
    l.in_registers *= strip->reducers;
    l.accesses *= strip->reducers;
    l.cells *= strip->reducers;
    return l;
}

/* Parts of a strip, a block each, with which multiprocessors that have `beside` blocks each take least. */
static int64_t choose_blocks(int64_t strips, int64_t rows, int before, int64_t slots)
{
    int64_t best = 1;
    double least = 0;
    for (int64_t parts = 1; parts == 1 || (parts <= rows && strips * (parts - 1) < 4 * slots); parts++) {
        const int64_t rounds = (strips * parts - 1) / slots + 1;
        const double time = (double)rounds * (double)((rows - 1) / parts + 1 + before);
        if (parts == 1 || time < least) {
            best = parts;
            least = time;
        }
    }
    return best;
}

/* A block's form: `beside` of them are on a multiprocessor. */
struct form {
    struct layout layout;
    int threads, at_once, columns, beside;
    int64_t blocks, shared; /* blocks beside each other in a row */
};

/* Whether there is room for blocks of so many threads and rows at once. */
static int fit_form(const struct sliding_strip *strip, const struct gpu_limits *limits, int size, struct form *form)
{
    enum { SHARED = 227 << 10, REGISTERS = 65536, RESIDENT = 2048, MOST_REGISTERS = 208, OTHERS = 32, OF_ROW = 8 };
    enum { MOST_BESIDE = 32, LEAST_BUSY = 3, SPARE = 16 /* of each thread, that this is short of */ };
    const struct strips *strips = strip->strips;
    const int threads = form->threads, fitting = (threads - strips->reach) / strip->inside;
    if (threads <= strips->reach || fitting < 1)
        return 0;
    form->layout = find_layout(strip, threads, form->at_once);
    form->blocks = (strip->across->outputs - 1) / fitting + 1;
    form->columns = (int)((strip->across->outputs - 1) / form->blocks + 1);
    if (form->columns * strip->inside * LEAST_BUSY < threads) /* 8 of 32 are slower than each output's own tree */
        return 0;
    form->shared = form->layout.cells * size;
    const int registers = (form->layout.in_registers + OF_ROW * form->at_once * strip->reducers) * size / 4 + OTHERS;
    if (form->shared > SHARED || form->shared > limits->shared_most || registers > MOST_REGISTERS ||
        (registers + SPARE) * threads > REGISTERS)
        return 0;
    int beside = form->shared * MOST_BESIDE > SHARED ? (int)(SHARED / form->shared) : MOST_BESIDE;
    beside = beside > REGISTERS / (registers * threads) ? REGISTERS / (registers * threads) : beside;
    form->beside = beside > RESIDENT / threads ? RESIDENT / threads : beside;
    return 1;
}

/* Cycles that an output takes. A multiprocessor takes up an access of shared memory of a warp in one, or four other
 * operations; and a block waits where its threads meet. (11 x 11 of f32 on an H200, us of 8192^2 outputs: rows at once
 * 1 651, 2 479 to 492, 4 432 to 449; 15 x 15 with four, which is more code than most caches hold, up to 928, with two
 * 742.) 0: too much code. */
static double time_of(const struct strips *strips, int inside, int size, const struct form *form)
{
    enum { OF_LEVEL = 100, OF_ROW = 40, OF_MEETING = 4, MOST_CODE = 640 };
    const struct layout *l = &form->layout;
    const int at_once = form->at_once, levels = l->level[strips->parts - 1] + 1;
    if (at_once > 1 && (l->accesses + l->inputs + OF_ROW) * at_once > MOST_CODE)
        return 0;
    const double issued = l->accesses + l->inputs + OF_ROW + (double)l->in_registers / at_once;
    const double accesses = l->accesses * size / 4;
    const double of_warp = (accesses > issued / 4 ? accesses : issued / 4) * at_once + OF_MEETING * levels;
    const double busy = of_warp * form->beside * form->threads / 32;
    const double waiting = (double)levels * OF_LEVEL + issued * at_once;
    const double longer = busy > waiting ? busy : waiting, shorter = busy + waiting - longer;
    return (longer + shorter / form->beside) / ((double)form->beside * at_once * form->columns * inside);
}

/* Rows at once, threads and rows of outputs of a block that take least; 0 where no block has room. */
static int choose_form(const struct gpu_limits *limits, int most_threads, int64_t planes, int size,
                       struct sliding_strip *strip)
{
    enum { MOST_AT_ONCE = 4, MOST_STRIPS = 1 << 30 };
    const int64_t sms = limits->multiprocessors > 0 ? limits->multiprocessors : 1;
    struct form form;
    double best = 0;
    for (form.threads = 32; form.threads <= most_threads; form.threads *= 2)
        for (form.at_once = MOST_AT_ONCE; form.at_once; form.at_once /= 2) {
            if (!fit_form(strip, limits, size, &form) || planes * form.blocks > MOST_STRIPS)
                continue;
            const double time = time_of(strip->strips, strip->inside, size, &form);
            const int64_t parts =
                choose_blocks(planes * form.blocks, strip->down->outputs, strip->strips->before, sms * form.beside);
            const int64_t rows = (strip->down->outputs - 1) / parts + 1;
            if (time <= 0 || (best > 0 && time >= best) ||
                (rows + strip->strips->before) * form.threads > INT32_MAX) /* positions of a block */
                continue;
            best = time;
            strip->threads = form.threads;
            strip->at_once = form.at_once;
            strip->columns = form.columns;
            strip->rows = (int)rows;
            strip->shared = form.shared;
        }
    return best > 0;
}

int mf_sliding_find_strip(const struct mf_plan *plan, int64_t planes, struct sliding_strip *strip)
{
    enum { MOST_INSIDE = 16, MOST_WINDOWS = 31 /* bits of of_rows */, LEAST_OUTPUTS = 1 << 16 };
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = problem->program.reducer;
    const struct sliding_side *down = strip->down, *across = strip->across;
    strip->reducers = problem->program.reducer_count;
    for (int r = 0; r < strip->reducers; r++)
        if (reducer[r].kind != RED_FOLD || (reducer[r].fold != FOLD_SUM && reducer[r].fold != FOLD_PROD) ||
            !mf_cls_is_float(reducer[r].cls) || reducer[r].cls != reducer->cls)
            return 0;
    if (mf_gpu_has_long_maps(problem) || problem->memory.window_count > MOST_WINDOWS || strip->inside > MOST_INSIDE ||
        down->step != 1 || across->step != 1 || across->reduced < down->reduced ||
        problem->kept_total < LEAST_OUTPUTS ||
        across->elements * across->gap * strip->inside > INT16_MAX /* of struct part */)
        return 0;
    strip->of_rows = 0;
    for (int w = 0; w < problem->memory.window_count; w++) {
        const int64_t *step = problem->memory.window[w].step;
        if (step[down->reduced] && step[across->reduced])
            return 0;
        strip->of_rows |= (step[down->reduced] != 0) << w;
    }
    const struct shape shape = {.down = {.step = 1, .elements = down->elements, .gap = down->gap},
                                .across = {.step = 1, .elements = across->elements, .gap = across->gap},
                                .inside = strip->inside};
    if (!mf_sliding_strips(&shape, strip->strips))
        return 0;
    return choose_form(MF_GPU_LIMITS(plan->device->gpu), mf_gpu_most_threads(plan, 512), planes,
                       reducer->cls == CLS_F64 ? 8 : 4, strip);
}

/* ---- the parts as text ---- */

struct writer {
    const struct strips *strips;
    struct layout layout;
    const struct program *program;
    int at_once, threads, reducers;
    int base[MOST_PARTS];
    struct gpu_text *to;
};

/* The cell of reducer r's part p, row number `row` of the step, those before it below 0, `column` further than the
 * thread's. */
static void add_cell(const struct writer *w, int r, int p, int row, int column)
{
    const struct layout *l = &w->layout;
    const int h = w->at_once, ring = l->ring[p], back = row < 0 ? (h - 1 - row) / h : 0;
    const int pitch = w->threads + l->reach[p];
    mf_text_add(w->to, "cells[%d", w->base[p] + (r * ring * h + row + back * h) * pitch + column);
    if (ring > 1)
        mf_text_add(w->to, " + (step + %d) %% %d * %d", ring - back, ring, h * pitch);
    mf_text_append(w->to, "]");
}

/* The same of the thread's own column. */
static void add_own(const struct writer *w, int r, int p, int row)
{
    if (row < 0)
        mf_text_add(w->to, "kept->p%d[%d][%d]", p, r, row + w->layout.kept[p]);
    else
        mf_text_add(w->to, "p%d_%d_%d", p, r, row);
}

static void add_part(const struct writer *w, int r, int p)
{
    const struct part *part = &w->strips->part[p];
    const struct reducer *reducer = &w->program->reducer[r];
    for (int k = 0; k < w->at_once; k++) {
        mf_text_add(w->to, "    const VALUE p%d_%d_%d = ", p, r, k);
        for (int n = 1; n < part->count; n++)
            mf_text_add(w->to, "%s_%s(", mf_emit_fold_function(reducer->fold), mf_class_name[reducer->cls]);
        for (int n = 0; n < part->count; n++) {
            const struct input *input = &w->strips->input[part->first + n];
            mf_text_append(w->to, n ? ", " : "");
            if (input->column)
                add_cell(w, r, input->part, k - input->row, input->column);
            else
                add_own(w, r, input->part, k - input->row);
            mf_text_append(w->to, n ? ")" : "");
        }
        if (!part->count)
            mf_text_add(w->to, "x[%d].r%d", k, r);
        mf_text_append(w->to, ";\n");
    }
    for (int k = 0; k < w->at_once && w->layout.ring[p]; k++) {
        mf_text_append(w->to, "    ");
        add_cell(w, r, p, k, 0);
        mf_text_add(w->to, " = p%d_%d_%d;\n", p, r, k);
    }
}

/* What the next step finds of part p's rows. */
static void add_kept(const struct writer *w, int r, int p)
{
    const int kept = w->layout.kept[p];
    for (int j = 0; j < kept; j++) {
        mf_text_add(w->to, "    kept->p%d[%d][%d] = ", p, r, j);
        add_own(w, r, p, j + w->at_once - kept);
        mf_text_append(w->to, ";\n");
    }
}

void mf_sliding_add_parts(const struct mf_plan *plan, const struct sliding_strip *strip, struct gpu_text *to)
{
    const struct strips *strips = strip->strips;
    struct writer w = {.strips = strips,
                       .layout = find_layout(strip, strip->threads, strip->at_once),
                       .program = &plan->problem.program,
                       .at_once = strip->at_once,
                       .threads = strip->threads,
                       .reducers = strip->reducers,
                       .to = to};
    const struct layout *l = &w.layout;
    const int last = strips->parts - 1;
    mf_text_append(to, "struct kept {\n");
    for (int p = 0, base = 0; p <= last; p++) {
        w.base[p] = base;
        base += w.reducers * l->ring[p] * w.at_once * (w.threads + l->reach[p]);
        if (l->kept[p] || !p)
            mf_text_add(to, "    VALUE p%d[%d][%d];\n", p, w.reducers, larger(l->kept[p], 1));
    }
    mf_text_append(to, "};\nstatic inline void make_parts(SHARED_POINTER VALUE *cells, uint32_t step, "
                       "struct state x[ROWS_OF_STEP], struct kept *kept)\n{\n    cells += THREAD;\n");
    for (int level = 0; level <= l->level[last]; level++) {
        mf_text_append(to, "    BARRIER();\n");
        for (int p = 0; p <= last; p++)
            for (int r = 0; r < w.reducers && l->level[p] == level; r++)
                add_part(&w, r, p);
    }
    for (int r = 0; r < w.reducers; r++) {
        for (int p = 0; p < last; p++)
            add_kept(&w, r, p);
        for (int k = 0; k < w.at_once; k++)
            mf_text_add(to, "    x[%d].r%d = p%d_%d_%d;\n", k, r, last, r, k);
    }
    mf_text_append(to, "}\n");
}
