/* Solver "sliding" of a GPU, sums, products, moments and logarithms of sums of floats over windows along two loops in
 * the contract's order: strips of columns, whose outputs share the parts of their trees (kernels/sliding_strips.cl).
 *
 * A part is the combination of a few others, so many rows back and columns further, or of elements;
 * src/cpu/sliding_strips.c finds them: 11 x 11 elements are 22 parts with 56 inputs. A thread has one column of each
 * part, the same from the part's first one on; 32 of the inputs are then its own and wait in registers. Others' wait in
 * shared memory, where an access takes a warp a cycle of the multiprocessor: 24 reads and 8 writes. Threads meet once a
 * step, and before the first read of a level's parts. */
#include <math.h>
#include <stdio.h>

#include "../cpu/sliding.h"
#include "emit_reducers.h"
#include "sliding_stages.h"

enum { MOST_FIELDS = 8, MOST_BLOCKS = INT32_MAX / 2 /* of strips, and of outputs that are cut */ };

/* kept: rows of a part that wait in registers; ring: blocks of rows in shared memory, 0 where no other column reads it;
 * reach: columns that others read beyond the threads' own. level: how often threads meet before they make it. */
struct layout {
    int kept[MOST_PARTS], ring[MOST_PARTS], reach[MOST_PARTS], level[MOST_PARTS];
    int in_registers, joins, accesses; /* of shared memory, for a row of outputs; of all fields */
    int64_t cells;
};

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static struct layout find_layout(const struct sliding_strip *strip, int threads, int at_once)
{
    const struct strips *strips = strip->strips;
    struct layout l = {.joins = strips->inputs * strip->cost};
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
    l.in_registers *= strip->fields;
    l.accesses *= strip->fields;
    l.cells *= strip->fields;
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

/* What a thread is likely to have (fitted to kernels for sm_90), of which compilers give 8 at a time. */
static int likely_registers(const struct sliding_strip *strip, const struct form *form, int size)
{
    enum { OTHERS = 32, OF_ROW = 8, OF_STATES = 8, UNIT = 8 };
    const int kept = form->layout.in_registers, of_rows = OF_ROW * form->at_once * strip->fields;
    const int most = strip->states ? kept : 2 * kept, others = strip->states ? OF_STATES : 0;
    return (OTHERS + (kept + (of_rows < most ? of_rows : most) + others) * size / 4 + UNIT - 1) / UNIT * UNIT;
}

/* Whether there is room for blocks of so many threads and rows at once. */
static int fit_form(const struct sliding_strip *strip, const struct gpu_limits *limits, int size, struct form *form)
{
    enum { SHARED = 227 << 10, REGISTERS = 65536, RESIDENT = 2048, MOST_REGISTERS = 208, OTHERS = 32, OF_ROW = 8 };
    enum { MOST_BESIDE = 32, LEAST_BUSY = 3, OF_STATES = 24, SPARE = 16 /* of each thread, that this is short of */ };
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
    const int others = strip->states ? OTHERS + OF_STATES : OTHERS;
    const int registers = (form->layout.in_registers + OF_ROW * form->at_once * strip->fields) * size / 4 + others;
    if (form->shared > SHARED || form->shared > limits->shared_most || registers > MOST_REGISTERS ||
        (registers + SPARE) * threads > REGISTERS)
        return 0;
    const int likely = likely_registers(strip, form, size);
    int beside = form->shared * MOST_BESIDE > SHARED ? (int)(SHARED / form->shared) : MOST_BESIDE;
    beside = beside > REGISTERS / (likely * threads) ? REGISTERS / (likely * threads) : beside;
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
    if (at_once > 1 && (l->accesses + l->joins + OF_ROW) * at_once > MOST_CODE)
        return 0;
    const double issued = l->accesses + l->joins + OF_ROW + (double)l->in_registers / at_once;
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
    enum { MOST_AT_ONCE = 4 };
    const int64_t sms = limits->multiprocessors > 0 ? limits->multiprocessors : 1;
    struct form form;
    double best = 0;
    for (form.threads = 32; form.threads <= most_threads; form.threads *= 2)
        for (form.at_once = MOST_AT_ONCE; form.at_once; form.at_once /= 2) {
            if (!fit_form(strip, limits, size, &form) || planes * form.blocks > MOST_BLOCKS)
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

/* Whether windows leave the tensor by no more than they are long, along the strip's loops alone: they cut few. */
static int are_few_cut(const struct nest *nest, const struct sliding_strip *strip)
{
    for (int w = 0; w < nest->window_count; w++) {
        const struct window *window = &nest->window[w];
        const struct sliding_side *side = window->step[strip->down->reduced] ? strip->down : strip->across;
        const double along = (double)window->step[side->reduced] * (double)(side->elements - 1);
        const double first = (double)window->offset, step = (double)window->step[side->kept];
        const double last = first + along + step * (double)(nest->size[side->kept] - 1);
        const double middle = (double)(window->extent - 1) / 2, reach = middle + fabs(along);
        if (fabs(first - middle) > reach || fabs(last - middle) > reach)
            return 0;
        for (int l = 0; l < nest->kept; l++)
            if (l != side->kept && window->step[l])
                return 0;
    }
    return 1;
}

/* Blocks for a plane's outputs that windows cut: a thread for each of as many as windows as large as their padding
 * cut. An int numbers them. */
static int64_t blocks_of_cuts(const struct sliding_strip *strip, int64_t planes)
{
    const struct sliding_side *down = strip->down, *across = strip->across;
    const int64_t rows = (down->elements - 1) * down->gap, columns = (across->elements - 1) * across->gap;
    const int64_t cut = rows * across->outputs + columns * down->outputs;
    const int64_t blocks = cut * strip->inside / strip->threads + 1;
    const int64_t most = MOST_BLOCKS / (planes > strip->threads ? planes : strip->threads);
    return !strip->cuts ? 0 : blocks < most ? blocks : most;
}

/* Whether strips can have such states: of floats of one class, sums, products, moments, logarithms of sums. */
static int find_fields(const struct problem *problem, struct sliding_strip *strip)
{
    enum { OF_MOMENTS = 8, OF_LOGSUMS = 16 };
    const struct program *program = &problem->program;
    const int moments = mf_emit_has_kind(problem, RED_MOMENTS), logsums = mf_emit_has_kind(problem, RED_LSE);
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        if ((reducer->kind != RED_MOMENTS && reducer->kind != RED_LSE && reducer->kind != RED_FOLD) ||
            (reducer->kind == RED_FOLD && reducer->fold != FOLD_SUM && reducer->fold != FOLD_PROD) ||
            !mf_cls_is_float(reducer->cls) || reducer->cls != program->reducer[0].cls)
            return 0;
    }
    strip->fields = mf_emit_field_names(problem, 0, NULL);
    strip->cuts = moments && problem->memory.window_count;
    strip->states = moments || logsums;
    strip->in_1 = logsums && !moments;
    for (int i = 0; i < problem->input_count; i++)
        strip->in_1 = strip->in_1 && !problem->finish_uses[i];
    strip->cost = strip->in_1 ? 2 * program->reducer_count
                  : logsums   ? OF_LOGSUMS
                  : moments   ? OF_MOMENTS
                              : program->reducer_count;
    return program->reducer_count > 0 && strip->fields <= MOST_FIELDS && !mf_gpu_has_long_maps(problem) &&
           (!strip->cuts || are_few_cut(&problem->memory, strip));
}

int mf_sliding_find_strip(const struct mf_plan *plan, int64_t planes, struct sliding_strip *strip)
{
    enum { MOST_INSIDE = 16, MOST_WINDOWS = 31 /* bits of of_rows */, LEAST_OUTPUTS = 1 << 16 };
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = problem->program.reducer;
    const struct sliding_side *down = strip->down, *across = strip->across;
    if (!find_fields(problem, strip) || problem->memory.window_count > MOST_WINDOWS || strip->inside > MOST_INSIDE ||
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
    const int found = choose_form(MF_GPU_LIMITS(plan->device->gpu), mf_gpu_most_threads(plan, 512), planes,
                                  reducer->cls == CLS_F64 ? 8 : 4, strip);
    strip->cut_blocks = found ? blocks_of_cuts(strip, planes) : 0;
    return found;
}

/* ---- the parts as text ---- */

struct writer {
    const struct strips *strips;
    struct layout layout;
    int at_once, threads;
    int base[MOST_PARTS], elements[MOST_PARTS];
    struct gpu_text *to;
};

/* The cell of part p's row number `row` of the step, those before it below 0, `column` further than the thread's. */
static void add_cell(const struct writer *w, int p, int row, int column)
{
    const struct layout *l = &w->layout;
    const int h = w->at_once, ring = l->ring[p], back = row < 0 ? (h - 1 - row) / h : 0;
    const int pitch = w->threads + l->reach[p];
    mf_text_add(w->to, "(cells + %d", w->base[p] + (row + back * h) * pitch + column);
    if (ring > 1)
        mf_text_add(w->to, " + (step + %d) %% %d * %d", ring - back, ring, h * pitch);
}

/* What an input is of the step's row k. */
static void add_input(const struct writer *w, const struct input *input, int k)
{
    const int p = input->part, row = k - input->row;
    if (input->column) {
        mf_text_append(w->to, "taken");
        add_cell(w, p, row, input->column);
        mf_text_append(w->to, ")");
    } else if (row < 0) {
        mf_text_add(w->to, "kept->p%d[%d]", p, row + w->layout.kept[p]);
    } else {
        mf_text_add(w->to, "p%d_%d", p, row);
    }
}

static void add_part(struct writer *w, int p)
{
    const struct part *part = &w->strips->part[p];
    const struct input *input = &w->strips->input[part->first];
    w->elements[p] = !part->count;
    for (int k = 0; k < w->at_once; k++) {
        mf_text_add(w->to, "const struct held p%d_%d = ", p, k);
        for (int n = 1; n < part->count; n++)
            mf_text_append(w->to, "both(");
        int elements = 0;
        for (int n = 0; n < part->count; n++) {
            const int of_input = w->elements[input[n].part];
            if (n)
                mf_text_add(w->to, ", %d, ", elements);
            add_input(w, &input[n], k);
            if (n)
                mf_text_add(w->to, ", %d)", of_input);
            elements += of_input;
        }
        w->elements[p] = part->count ? elements : 1;
        mf_text_add(w->to, part->count ? "; " : "held_of(x[%d]); ", k);
    }
    for (int k = 0; k < w->at_once && w->layout.ring[p]; k++) {
        mf_text_append(w->to, "put");
        add_cell(w, p, k, 0);
        mf_text_add(w->to, ", p%d_%d); ", p, k);
    }
}

void mf_sliding_define_parts(const struct mf_plan *plan, const struct sliding_strip *strip, struct gpu_text *to)
{
    const struct strips *strips = strip->strips;
    struct writer w = {.strips = strips,
                       .layout = find_layout(strip, strip->threads, strip->at_once),
                       .at_once = strip->at_once,
                       .threads = strip->threads,
                       .to = to};
    const struct layout *l = &w.layout;
    const int last = strips->parts - 1;
    int lane_bits = 1;
    while (1 << lane_bits < LANES && 1 << lane_bits < plan->problem.reduced_total)
        lane_bits++;
    char name[MOST_FIELDS][16];
    mf_emit_field_names(&plan->problem, MOST_FIELDS, name);
    mf_text_add(to, "#define BEFORE %d\n#define ROWS_OF_STEP %d\n#define OF_ROWS %d\n#define CELLS %d\n",
                strips->before, w.at_once, strip->of_rows, (int)l->cells);
    mf_text_add(to, "#define CUTS %d\n#define CUT_BLOCKS %d\n#define LANE_BITS %d\n#define IN_1 %d\n", strip->cuts,
                (int)strip->cut_blocks, lane_bits, strip->in_1);
    mf_text_add(to, "#define FIELDS %d\n#define FOR_FIELDS(X)", strip->fields);
    for (int f = 0; f < strip->fields; f++)
        mf_text_add(to, " X(%s, %d)", name[f], f);
    mf_text_append(to, "\n#define KEPT_ROWS ");
    for (int p = 0, base = 0; p <= last; p++) {
        w.base[p] = base;
        base += l->ring[p] * w.at_once * (w.threads + l->reach[p]);
        if (l->kept[p] || !p)
            mf_text_add(to, "struct held p%d[%d]; ", p, larger(l->kept[p], 1));
    }
    mf_text_append(to, "\n#define MAKE_PARTS ");
    for (int level = 0; level <= l->level[last]; level++) {
        mf_text_append(to, "BARRIER(); ");
        for (int p = 0; p <= last; p++)
            if (l->level[p] == level)
                add_part(&w, p);
    }
    for (int p = 0; p < last; p++)
        for (int j = 0; j < l->kept[p]; j++) { /* what the next step finds */
            mf_text_add(to, "kept->p%d[%d] = ", p, j);
            add_input(&w, &(struct input){.part = (short)p, .row = (short)(l->kept[p] - w.at_once)}, j);
            mf_text_append(to, "; ");
        }
    for (int k = 0; k < w.at_once; k++)
        mf_text_add(to, "x[%d] = state_held(p%d_%d); ", k, last, k);
    mf_text_append(to, "\n");
}
