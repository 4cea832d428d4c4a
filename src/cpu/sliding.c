/* Solver "sliding": windows that overlap along rows, and mostly down them, as poolings with a step of 1, boxes of
 * pictures, moving averages: with C channels a pixel, or planes (C = 1),
 * out[p, h, w, c] = fold over i < I and j < J of x[place(p) + row(h * s + i * d) + (w * t + j * e) * C + c].
 *
 * A fold that is the same in any order goes down first, from memory to rows beside each other, with what changes no
 * value at their ends that are outside of the tensor; then across all rows at once, as if t were 1, and for nothing
 * from one row to the next; then every t-th one is taken. More than a few columns of an extreme are doubled. Sums and
 * products of floats are the halving tree: rows are copied, those that are s apart beside each other, so that an
 * element of all the block's outputs is one row of numbers, from a place of its own on; along rows alone, and down
 * rows one apart where that pays, outputs share what their trees have in common (sliding_strips.c). Extremes of short
 * integers stay short, and go where they belong if the output is they.
 * Cost: each element once from memory; then I + J passes (of doubled ones log2 J), or as many as elements (or as the
 * trees' parts: 22 for 11 x 11, about J / 128 + 14 for J in a row), of the near caches. */
#include <stdio.h>

#include "cpu.h"
#include "finish.h"
#include "lanes.h"
#include "pool.h"
#include "sliding.h"

enum {
    MOST_STEP = 8,
    MOST_AT_ONCE = 12, /* columns of an extreme; more are doubled */
    BYTES = 16 << 10,  /* of a block's rows, */
    TREE_BYTES = 64 << 10,
    LEAST_ROWS = 8,   /* if a position has no more rows than these, beside those that others read too */
    COPIED = 2048,    /* bytes of a row, and */
    MOST_COPIED = 12, /* rows of a window, below which */
    MOST_HALO = 1024, /* elements from a window's first to its last one */
    BATCH = 8,        /* blocks of one task */
    LEAST_SHARED = 9, /* elements of a tree along rows whose parts are shared; */
    PASSES_SHARED = 24,
    SHARED_LEAST = 8 << 10, /* bytes of a block's row then, */
    SHARED_MOST = 16 << 10,
    SHARED_REACHES = 4 /* or so many times what windows reach */
};

/* Takes a checked window's tensor, if it is about loops `kept`, which may be -1, and `reduced` alone, and as the
 * strides say. */
static int take_window(const struct nest *nest, const struct window *window, int kept, int reduced, struct side *side)
{
    for (int l = 0; l < nest->kept + nest->reduced; l++)
        if (window->step[l] != (l == kept ? side->step : l == reduced ? side->gap : 0))
            return 0;
    if (side->checked)
        return 0;
    side->checked = 1;
    side->offset = window->offset;
    side->extent = window->extent;
    return 1;
}

/* Pixels across: C channels if those are the last kept loop, else one. */
static int find_across(const struct nest *nest, int input, struct shape *shape)
{
    const int64_t *in = nest->in[input];
    const int j = nest->kept + nest->reduced - 1, last = nest->kept - 1;
    const int64_t channels = nest->size[last];
    const int pixels = last > 0 && in[last] == 1 && in[j] % channels == 0 && in[last - 1] % channels == 0;
    const int w = pixels ? last - 1 : last;
    shape->inside = pixels ? channels : 1;
    shape->across = (struct side){nest->size[w], in[w] / shape->inside, nest->size[j], in[j] / shape->inside, 0, 0, 0};
    return w;
}

/* Rows down: of loops h and i, or of i alone, or one row. Returns the first loop that is no position. */
static int find_down(const struct nest *nest, int input, int w, const struct window *window, struct shape *shape)
{
    const int64_t *in = nest->in[input];
    const int i = nest->kept, h = w - 1;
    struct side *down = &shape->down;
    *down = (struct side){1, 1, 1, 1, 0, 0, 0};
    if (nest->reduced < 2)
        return w;
    down->elements = nest->size[i];
    shape->row = in[i];
    int joins = h >= 0 && in[h] > 0 && in[i] > 0;
    if (window) {
        joins = joins && window->step[h];
        down->gap = window->step[i];
        shape->row = down->gap > 0 ? in[i] / down->gap : 0;
    } else if (joins) {
        shape->row = mf_gcd(in[h], in[i]);
        joins = in[h] / shape->row <= MOST_STEP;
        if (!joins)
            shape->row = in[i];
        down->gap = in[i] / shape->row;
    }
    if (!joins || shape->row < 1)
        return w;
    down->step = in[h] / shape->row;
    down->outputs = nest->size[h];
    return h;
}

static int find_shape(const struct problem *problem, int input, struct shape *shape)
{
    const struct nest *nest = &problem->memory;
    const int i = nest->reduced > 1 ? nest->kept : -1, j = nest->kept + nest->reduced - 1;
    const struct window *down = NULL;
    *shape = (struct shape){0};
    const int w = find_across(nest, input, shape);
    for (int n = 0; n < nest->window_count; n++)
        if (i >= 0 && nest->window[n].step[i])
            down = &nest->window[n];
    shape->around = find_down(nest, input, w, down, shape);
    const int h = shape->around < w ? shape->around : -1;
    for (int n = 0; n < nest->window_count; n++) {
        const struct window *window = &nest->window[n];
        if (window->input != input || !(window == down ? take_window(nest, window, h, i, &shape->down)
                                                       : take_window(nest, window, w, j, &shape->across)))
            return 0;
    }
    const int64_t *in = nest->in[input], row = shape->row;
    return (h < 0 || in[h] == shape->down.step * row) && (i < 0 || in[i] == shape->down.gap * row);
}

enum { SHORT_ROW = 128, SHORT_RUN = 16 };

/* Whether windows along rows alone, `step` elements after each other, which nobody checks, are faster here than in
 * solver inner: those of pixels, as channels are folded beside each other (max of j < 3 of (2w+j)c of u8[1000000,4] 0.6
 * ms for 7.4 on a Xeon of 2023, sum of f32 2.9 for 9.1); of types that inner widens, those of short rows, and at each
 * second element but for sums that are wider; of others, few elements or many, at each second one too. */
static int gains_along_rows(const struct mf_plan *plan, const struct sliding_plan *data)
{
    enum { FEW = 4, VERY_SHORT_ROW = 32 };
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    const enum dtype type = plan->problem.in_type[data->input];
    const struct side *a = &data->shape.across;
    if (data->shape.inside > 1)
        return 1;
    if (!mf_is_class_type(type))
        return a->outputs <= SHORT_ROW ||
               (a->step == 2 && a->elements > 2 && (!mf_reducer_adds(reducer) || mf_cls_is_float(reducer->cls)));
    return a->step == 2 &&
           (a->elements > SHORT_RUN || (type == DT_f32 && (a->elements <= FEW || a->outputs <= VERY_SHORT_ROW)));
}

/* Whether others do as well: runs along rows that nobody checks are faster in solvers outer and inner, but for short
 * rows and what is said above; long rows of neighbours that touch in outer; what no window leaves in inner where
 * outputs are few for what is folded between them, or elements many; far steps of many channels in few. */
static int loses(const struct mf_plan *plan, const struct sliding_plan *data)
{
    enum { LONG_RUN = 128, MOST_WORK = 64, MOST_WASTE = 32, MOST_WASTED_STRIP = 8, SEVERAL = 8 };
    const struct side *a = &data->shape.across, *d = &data->shape.down;
    const int64_t row = mf_sliding_row(&data->shape, a->outputs), columns = a->outputs * data->shape.inside;
    const int is_narrow = data->first == data->then && !mf_is_class_type(data->value);
    const int is_short = columns <= SHORT_ROW && a->elements < SHORT_RUN;
    const int is_run = a->elements <= LONG_RUN && (a->elements & (a->elements - 1)) == 0;
    const int64_t waste = row / columns;
    const int64_t elements = a->elements * d->elements;
    const int64_t passes = data->shares || (data->is_strip && elements > PASSES_SHARED) ? PASSES_SHARED
                           : data->is_tree                                              ? elements
                           : data->doubles                                              ? MOST_AT_ONCE
                                                                                        : a->elements;
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    const int is_checked = a->checked || d->checked, adds = mf_reducer_adds(reducer), pixels = data->shape.inside > 1;
    const enum dtype type = plan->problem.in_type[data->input];
    if (a->step > 1 && mf_has_many_channels(type, data->shape.inside, elements) &&
        (is_checked && mf_is_class_type(type) ? reducer->fold != FOLD_PROD : !adds) &&
        !plan->problem.program.uses_count && mf_solver_few.applicable(plan))
        return 1;
    if (is_checked)
        return waste > MOST_WASTE;
    if (mf_is_long_pool(&plan->problem, data->input))
        return 1;
    if (d->elements == 1)
        return !(a->step == 1 ? is_short || is_narrow || ((data->doubles || data->shares) && !is_run)
                              : gains_along_rows(plan, data)) ||
               waste * passes > MOST_WORK;
    if (data->is_strip)
        return waste > MOST_WASTED_STRIP;
    return waste * passes > MOST_WORK &&
           !(data->is_tree && d->outputs >= SEVERAL && 4 * row <= (pixels ? 16 : 9) * columns);
}

/* Whether outputs may share parts of their trees in strips, which read all rows: those between elements, too. */
static int has_strips(const struct sliding_plan *data)
{
    enum { LEAST = 8 };
    const struct side *a = &data->shape.across, *d = &data->shape.down;
    return data->is_tree && d->elements > 1 && d->step == 1 && (d->gap == 1 || d->checked || d->outputs >= d->gap) &&
           a->outputs * data->shape.inside >= LEAST;
}

/* Whether windows overlap or touch, and are not too large; and what is between their elements others read, or a window
 * says that it is the tensor's (else steps of several pixels may be those of a part of a larger tensor). */
static int fits(const struct sliding_plan *data)
{
    const struct shape *const shape = &data->shape;
    const struct side *a = &shape->across, *d = &shape->down;
    return shape->inside <= MOST_HALO && a->step >= 1 && a->step <= MOST_STEP && a->gap >= 1 && a->gap <= MOST_HALO &&
           a->elements <= MOST_ACROSS && (a->elements - 1) * a->gap * shape->inside <= MOST_HALO &&
           a->step <= a->elements * a->gap && (a->checked || mf_gcd(a->step, a->gap) == 1) && d->step >= 1 &&
           d->step <= MOST_STEP && d->gap >= 1 && d->gap <= MOST_STEP && d->elements <= MOST_DOWN &&
           (d->elements - 1) * d->gap <= MOST_DOWN &&
           (!data->is_tree || a->elements * d->elements <= (has_strips(data) ? TILE : TREE_ELEMENTS));
}

/* The kernels, and what values are between and after them; whether there are such. */
static int find_kernels(const struct mf_plan *plan, struct sliding_plan *data)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    const struct kernels *k = plan->device->kernels;
    const enum dtype type = plan->problem.in_type[data->input];
    const enum cls cls = reducer->cls;
    const int is_short = !mf_is_class_type(type);
    data->between = cls == CLS_F32 ? DT_f32 : cls == CLS_F64 ? DT_f64 : cls == CLS_I64 ? DT_i64 : DT_u64;
    data->first = is_short ? k->fold_from[reducer->fold][type].chain : k->fold[reducer->fold][cls].chain;
    data->then = k->fold[reducer->fold][cls].chain;
    data->value = data->between;
    data->pair = k->map[reducer->fold == FOLD_SUM ? MAP_add : MAP_mul][cls];
    data->is_tree = mf_reducer_adds(reducer) && mf_cls_is_float(cls);
    data->shares = data->is_tree && data->shape.down.elements == 1 && data->shape.across.elements >= LEAST_SHARED;
    data->doubles = !mf_reducer_adds(reducer) && data->shape.across.elements > MOST_AT_ONCE;
    if (is_short && !mf_cls_is_float(cls) && !mf_reducer_adds(reducer)) {
        data->first = data->then = k->narrow[reducer->fold == FOLD_MAX][type].chain;
        data->between = data->value = type;
    } else if (reducer->fold == FOLD_SUM && k->byte_sums[type]) {
        data->first = k->byte_sums[type];
        data->between = type == DT_i8 ? DT_i16 : DT_u16;
        data->then = k->fold_from[FOLD_SUM][data->between].chain;
    }
    return data->first && data->then && type != DT_bool;
}

/* Whether strips are faster than each output's own tree: those of long rows are, if there are rows enough for what the
 * first one needs; few rows must take half as long, for others are fast there. Else the time is, in .1 ns of a Xeon of
 * 2023, COLUMN a part's input and column, PART beside it, ROW to store a row, and COUNT a pixel for how many elements
 * are inside, where that changes. */
static int pays_in_strips(const struct sliding_plan *data, int is_counted)
{
    enum { LONG = 512, TIMES = 4, LEAST_COUNTED = 24, PART = 80, ROW = 1000, COUNT = 100, COUNT_CHANNEL = 15 };
    const double COLUMN = 1.2;
    const struct side *a = &data->shape.across, *d = &data->shape.down;
    const struct strips *s = &data->strips;
    const double width = (double)a->outputs, columns = width * (double)data->shape.inside, rows = (double)d->outputs;
    if (columns >= LONG && rows >= TIMES * s->before && (!is_counted || rows >= LEAST_COUNTED))
        return 1;
    const double changes = !is_counted ? 0 : rows < s->before + 2 ? rows : s->before + 2;
    double time = ROW * rows + changes * (COUNT * width + COUNT_CHANNEL * columns);
    for (const struct part *p = s->part + 1; p < s->part + s->parts; p++)
        time += (PART + COLUMN * p->count * columns) * (rows + p->row - p->first_row);
    return (rows < s->before ? 2 : 1) * time <=
           (double)(a->elements * d->elements * mf_sliding_row(&data->shape, a->outputs)) * rows;
}

/* The parts of trees, where outputs share them. */
static int find_parts(const struct mf_plan *plan, struct sliding_plan *data)
{
    const struct side *a = &data->shape.across, *d = &data->shape.down;
    const int is_counted = plan->problem.program.uses_count && (a->checked || d->checked);
    data->is_strip =
        has_strips(data) && mf_sliding_strips(&data->shape, &data->strips) && pays_in_strips(data, is_counted);
    if (data->shares)
        return mf_sliding_strips(&data->shape, &data->strips);
    return data->is_strip || !data->is_tree || a->elements * d->elements <= TREE_ELEMENTS;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    struct sliding_plan data = {.input = node->index};
    return problem->program.reducer_count == 1 && reducer->kind == RED_FOLD && reducer->fold <= FOLD_MAX &&
           node->op == OP_OPERAND && mf_dtypes[problem->in_type[node->index]].cls == reducer->cls && nest->kept >= 1 &&
           nest->reduced >= 1 && nest->reduced <= 2 && problem->kept_total && problem->reduced_total &&
           find_shape(problem, node->index, &data.shape) && find_kernels(plan, &data) && fits(&data) &&
           find_parts(plan, &data) && !loses(plan, &data);
}

/* Bytes of a block's rows of values. */
static int64_t block_bytes(const struct sliding_plan *data)
{
    const struct side *a = &data->shape.across;
    if (!data->shares)
        return data->is_tree ? TREE_BYTES : BYTES;
    const int64_t wanted =
        SHARED_REACHES * (a->elements - 1) * a->gap * data->shape.inside * mf_dtypes[data->value].size;
    return wanted < SHARED_LEAST ? SHARED_LEAST : wanted < SHARED_MOST ? wanted : SHARED_MOST;
}

/* Strips of columns, and of high ones so many rows that what two blocks have is little beside them. */
static void choose_strips(struct sliding_plan *data)
{
    enum { STRIP_BYTES = 192 << 10, LEAST_COLUMNS = 128, BEFORE = 16 /* times the rows before the first output */ };
    const struct shape *shape = &data->shape;
    const struct side *a = &shape->across, *d = &shape->down;
    const struct strips *s = &data->strips;
    int64_t columns = STRIP_BYTES / mf_dtypes[data->value].size / s->rows - s->reach;
    columns = ((columns < LEAST_COLUMNS ? LEAST_COLUMNS : columns) / shape->inside - 1) / a->step + 1;
    columns = columns < 1 ? 1 : columns < a->outputs ? columns : a->outputs;
    data->rows = d->outputs < BEFORE * s->before ? d->outputs : BEFORE * s->before;
    data->blocks[0] = data->positions;
    data->blocks[1] = (d->outputs - 1) / data->rows + 1;
    data->rows = (d->outputs - 1) / data->blocks[1] + 1;
    data->blocks[2] = (a->outputs - 1) / columns + 1;
    data->columns = (a->outputs - 1) / data->blocks[2] + 1;
    data->together = 1;
    data->pitch = mf_sliding_row(shape, data->columns);
}

/* Blocks: some positions, some rows of one, or some columns of few rows; so many that what other blocks have too is no
 * more than what these have alone. */
static void choose_blocks(struct sliding_plan *data, int64_t item)
{
    const struct shape *shape = &data->shape;
    const struct side *a = &shape->across, *d = &shape->down;
    const int64_t whole = mf_sliding_row(shape, a->outputs), reach = (a->elements - 1) * a->gap;
    data->copies = data->is_tree || (whole * item < COPIED && d->elements < MOST_COPIED);
    data->halo = data->copies ? (d->elements - 1) * d->gap / d->step : 0;
    const int64_t halo = data->halo, wanted = !halo ? 1 : halo > LEAST_ROWS ? 2 * halo : halo + LEAST_ROWS;
    int64_t values = block_bytes(data) / mf_dtypes[data->value].size, columns = a->outputs;
    int64_t rows = values / whole - halo;
    if (rows < wanted && rows < d->outputs) {
        rows = wanted < d->outputs ? wanted : d->outputs;
        columns = (values / (rows + halo) / shape->inside - reach - 1) / a->step + 1;
        columns = columns * a->step < 2 * reach ? 2 * reach / a->step : columns;
        columns = columns < 1 ? 1 : columns < a->outputs ? columns : a->outputs;
    }
    data->rows = rows < d->outputs ? rows : d->outputs;
    data->blocks[1] = (d->outputs - 1) / data->rows + 1;
    data->rows = (d->outputs - 1) / data->blocks[1] + 1;
    data->blocks[2] = (a->outputs - 1) / columns + 1;
    data->columns = (a->outputs - 1) / data->blocks[2] + 1;
    data->pitch = mf_sliding_row(shape, data->columns);
    values /= (data->rows + halo) * data->pitch;
    data->together = data->blocks[1] * data->blocks[2] > 1 || values < 1 ? 1
                     : values < data->positions                          ? values
                                                                         : data->positions;
    data->blocks[0] = (data->positions - 1) / data->together + 1;
}

/* From a window's first row to those that one further down, by SLIDING_AHEAD at least, is the first to read. */
static int64_t find_ahead(const struct shape *shape, int64_t item)
{
    const struct side *down = &shape->down;
    int64_t row, step, ahead;
    if (!mf_mul(shape->row, item, &row) || !mf_mul(row, down->step, &step) || step < 1 ||
        !mf_mul(row, (down->elements - 1) * down->gap + 1, &ahead) ||
        !mf_add(ahead, (SLIDING_AHEAD - 1) / step * step, &ahead))
        return SLIDING_AHEAD;
    return ahead;
}

/* A worker's memory. */
static void lay_out(struct sliding_plan *data, const struct problem *problem)
{
    const struct strips *s = &data->strips;
    const int64_t rows = data->together * (data->rows + data->halo), step = data->copies ? data->shape.down.step : 1;
    const int64_t line = 64 / sizeof(float); /* that a part's row may have more */
    data->group = data->together * (data->is_strip ? 1 : data->rows) * data->columns * data->shape.inside;
    data->finish_bytes = mf_finish_memory(&data->finish, problem, data->group);
    data->offset_bytes = mf_array_bytes(data->together);
    data->count_bytes = problem->program.uses_count ? mf_array_bytes(data->group) : 0;
    data->rows_most = rows * step;
    data->rows_bytes = data->is_strip ? 0 : mf_array_bytes(data->rows_most * data->pitch);
    data->value_bytes = mf_array_bytes(data->is_strip ? (data->pitch - s->part[0].high + s->reach + line) * s->rows
                                       : data->shares ? (rows * data->pitch + line) * s->parts
                                                      : rows * data->pitch);
    data->spare_bytes = data->is_strip || data->shares ? 0
                        : data->is_tree                ? LANE_ROWS * mf_array_bytes(TREE_PIECE)
                                                       : data->value_bytes;
    data->worker_bytes = data->finish_bytes + data->offset_bytes + data->count_bytes + data->rows_bytes +
                         data->value_bytes + data->spare_bytes + mf_array_bytes(data->pitch);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    struct sliding_plan *data = plan->data = mf_calloc(sizeof *data);
    const struct shape *shape;
    if (!data)
        return MF_ERROR_MEMORY;
    data->input = problem->program.map.node[reducer->arg[0]].index;
    find_shape(problem, data->input, &data->shape);
    find_kernels(plan, data);
    find_parts(plan, data);
    shape = &data->shape;
    data->positions = problem->kept_total / (shape->down.outputs * shape->across.outputs * shape->inside);
    if (data->is_strip)
        choose_strips(data);
    else
        choose_blocks(data, mf_dtypes[problem->in_type[data->input]].size);
    data->batch = data->is_strip ? 1 : BATCH;
    data->asks = mf_reads_memory(problem);
    data->ahead = find_ahead(shape, mf_dtypes[problem->in_type[data->input]].size);
    const enum dtype type = data->is_strip ? data->value : data->copies ? problem->in_type[data->input] : data->between;
    data->outside = mf_reducer_outside(reducer, type);
    mf_walk_make(&data->walk, shape->around, nest->size, nest->in[data->input]);
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    const struct walk *out = &data->finish.out.walk[0];
    data->is_output = !mf_cls_is_float(reducer->cls) && mf_finish_answers(plan) == ANSWERS_AS_THEY_ARE &&
                      problem->out_type[0] == data->value && out->loops == 1 && out->stride[0] == 1;
    lay_out(data, problem);
    return MF_OK;
}

struct sliding_job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory;
};

/* The part of `count` that block number b of them has: its first one, and how many. */
static int64_t part(int64_t b, int64_t each, int64_t count, int64_t *first)
{
    *first = b * each;
    return count - *first < each ? count - *first : each;
}

static void run_task(void *context, int64_t task, int thread)
{
    const struct sliding_job *job = context;
    const struct sliding_plan *data = job->plan->data;
    const struct side *across = &data->shape.across, *down = &data->shape.down;
    const int64_t *blocks = data->blocks, all = blocks[0] * blocks[1] * blocks[2];
    char *memory = job->memory + (size_t)thread * data->worker_bytes;
    struct sliding_worker w = {.data = data, .pointers = job->pointers};
    mf_finish_start(&w.finish, &data->finish, job->plan, job->pointers, memory, data->group);
    w.item = mf_dtypes[job->plan->problem.in_type[data->input]].size;
    w.size = data->is_strip ? mf_dtypes[data->value].size : data->copies ? w.item : mf_dtypes[data->between].size;
    w.offset = (int64_t *)(void *)(memory += data->finish_bytes);
    memory += data->offset_bytes;
    w.counts = data->count_bytes ? (int64_t *)(void *)memory : NULL;
    w.rows = memory + data->count_bytes;
    w.value = w.rows + data->rows_bytes;
    w.outside = w.value + data->value_bytes + data->spare_bytes;
    const struct walk repeat = {1, {data->pitch}, {0}};
    mf_walk_gather(&repeat, (int)w.size, (const char *)&data->outside, 0, data->pitch, w.outside);
    for (int64_t b = task * data->batch; b < (task + 1) * data->batch && b < all; b++) {
        w.height = part(b % blocks[1], data->rows, down->outputs, &w.row);
        w.width = part(b / blocks[1] % blocks[2], data->columns, across->outputs, &w.column);
        w.positions = part(b / blocks[2] / blocks[1], data->together, data->positions, &w.position);
        mf_sliding_block(&w);
    }
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct sliding_plan *data = plan->data;
    const int64_t tasks = (data->blocks[0] * data->blocks[1] * data->blocks[2] - 1) / data->batch + 1;
    const int threads = tasks < plan->threads ? (int)tasks : plan->threads;
    struct sliding_job job = {plan, pointers, mf_alloc_aligned((size_t)threads * data->worker_bytes)};
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, tasks, run_task, &job);
    mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct sliding_plan *data = plan->data;
    snprintf(text, size, "%lld x %lld elements, %lld positions of %lld x %lld outputs at once",
             (long long)data->shape.down.elements, (long long)data->shape.across.elements, (long long)data->together,
             (long long)data->rows, (long long)data->columns);
}

const struct solver mf_solver_sliding = {
    "sliding", "windows overlap: down, then across", applicable, make, execute, print, NULL,
};
