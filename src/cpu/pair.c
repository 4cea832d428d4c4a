/* Solver "pair": out[o] = a[o] + b[o], or - * / min max, of two operands (or an operand and a number) of the output's
 * type: the everyday broadcast.
 *
 * Elements go from memory to memory in one pass of one kernel. A tile is a number of rows of the last loop (or a part
 * of one) small enough that what several rows share stays in the nearest caches; where rows start is counted on from
 * tile to tile, without divisions.
 *
 * Where rows are short, loops over which the output lies together are one row, if one operand lies as it does there, or
 * repeats each of its elements, which are written out then, and the other one repeats itself: a power of two of
 * elements stays in the kernel's registers; others, where they nowhere move on, are written out a few kilobytes long.
 * Cost: each operand's elements once as far as the caches reach, the output's once, past the cache when it is large. */
#include "../scalar.h"
#include "cpu.h"
#include "tiling.h"

#include <stdio.h>

enum { OUT, X, Y, SIDES };
enum {
    TILE_BYTES = 64 << 10,
    SHARED_BYTES = 16 << 10,
    TASK_BYTES = 256 << 10,
    LONG_ROW = 256,
    VERY_LONG_ROW = 1024,
    LINE = 64
};
enum { PATTERN_BYTES = 12 << 10, MOST_PERIOD_BYTES = 2 << 10 };

/* LONG_ROWS: of the last loop. PERIODS: of all loops from `first` on, where one side repeats `period` elements and the
 * other one has its own, or, where it is `stretched`, each element as often. WRITTEN_OUT: of all loops that the output
 * and one side have together, as the other one repeats itself written out. */
enum kind { NO_ROWS, LONG_ROWS, PERIODS, WRITTEN_OUT };
struct form {
    enum kind kind;
    int repeats;     /* the side that repeats itself, X or Y */
    int period_loop; /* the first loop of a period */
    int64_t period;  /* elements */
    int first;
    int stretched; /* X or Y; OUT: neither */
};

struct pair_plan {
    pair_fn *kernel;
    int input[SIDES]; /* operand's number; -1 for a number, which is here in the output's type: */
    int64_t number[SIDES];
    int64_t item;
    struct pair_rows rows;     /* of a whole tile */
    int64_t row_count, length; /* all rows of the loop around them, and their elements */
    struct tiling tiling;      /* the loops outside the tiles, then tiles of rows, then parts of a row */
    int64_t grain;             /* tiles of one task */
    int long_rows;             /* or rows of whole lines: stored past the cache where lines are aligned */
    struct form form;
};

static const struct node *root(const struct mf_plan *plan)
{
    return &plan->problem.program.finish.node[plan->problem.program.output[0]];
}

/* A number of the operation's class in the output's type; 0 where that has no such value. */
static int number(const struct mf_plan *plan, const struct node *leaf, void *to)
{
    const enum dtype type = plan->problem.out_type[0];
    mf_value_store(type, leaf->cls, leaf->value, to);
    const union value back = mf_value_load(type, to);
    return leaf->cls == CLS_F32   ? back.f32 == leaf->value.f32
           : leaf->cls == CLS_F64 ? back.f64 == leaf->value.f64
                                  : back.i64 == leaf->value.i64;
}

int mf_pair_of(enum op op)
{
    switch (op) {
    case OP_add:
        return PAIR_ADD;
    case OP_sub:
        return PAIR_SUB;
    case OP_mul:
        return PAIR_MUL;
    case OP_div:
        return PAIR_DIV;
    case OP_min:
        return PAIR_MIN;
    case OP_max:
        return PAIR_MAX;
    default:
        return -1;
    }
}

/* The operand's strides, all 0 for a number. */
static const int64_t *strides(const struct mf_plan *plan, int side)
{
    static const int64_t none[MAX_LOOPS];
    const struct node *node = root(plan);
    if (side == OUT)
        return plan->problem.memory.out[0];
    const struct node *leaf = &plan->problem.program.finish.node[node->arg[side - X]];
    return leaf->op == OP_OPERAND ? plan->problem.memory.in[leaf->index] : none;
}

/* The first of the last loops over which this side's elements and the output's follow each other. */
static int together_from(const struct mf_plan *plan, int side)
{
    const struct nest *nest = &plan->problem.memory;
    int64_t step = 1;
    int l = nest->kept;
    while (l > 0 && nest->out[0][l - 1] == step && strides(plan, side)[l - 1] == step)
        step *= nest->size[--l];
    return l;
}

/* The elements of the loops from l to `end`. */
static int64_t elements(const struct mf_plan *plan, int l, int end)
{
    int64_t n = 1;
    for (; l < end; l++)
        n *= plan->problem.memory.size[l];
    return n;
}

static int64_t bytes(const struct mf_plan *plan, int64_t n)
{
    return n * mf_dtypes[plan->problem.out_type[0]].size;
}

static int are_worth_it(int64_t row_bytes)
{
    return row_bytes >= LONG_ROW || row_bytes % LINE == 0;
}

/* Whether form->repeats repeats itself over loops that the other one and the output have together. */
static int finds_written_out(const struct mf_plan *plan, struct form *form)
{
    const int kept = plan->problem.memory.kept, from = together_from(plan, form->repeats == X ? Y : X);
    int moving = 0;
    while (moving < kept && strides(plan, form->repeats)[moving] == 0)
        moving++;
    form->kind = WRITTEN_OUT;
    form->period_loop = moving;
    form->period = elements(plan, moving, kept);
    return moving > from && moving < kept && bytes(plan, form->period) <= MOST_PERIOD_BYTES;
}

/* Whether form->repeats has periods that registers hold, and the other side fits. */
static int finds_periods(const struct mf_plan *plan, struct form *form)
{
    const struct nest *nest = &plan->problem.memory;
    const int other = form->repeats == X ? Y : X, moving = together_from(plan, form->repeats);
    const int together = together_from(plan, other);
    const int64_t period = form->period = elements(plan, moving, nest->kept);
    form->kind = PERIODS;
    form->period_loop = form->first = moving;
    if (moving == nest->kept || (period & (period - 1)) ||
        bytes(plan, period) > plan->device->kernels->pair_bytes[plan->problem.out_type[0]])
        return 0;
    while (form->first > together && strides(plan, form->repeats)[form->first - 1] == 0)
        form->first--;
    const int row = moving - 2; /* the loop around rows of stretched elements */
    if (together == nest->kept && moving > 0 && nest->out[0][moving - 1] == period &&
        strides(plan, form->repeats)[moving - 1] == 0 && (row < 0 || strides(plan, other)[row] == 0)) {
        form->stretched = other;
        form->first = moving - 1;
        for (int l = moving; l < nest->kept; l++)
            if (strides(plan, other)[l])
                return 0;
    }
    return form->first < moving && are_worth_it(bytes(plan, elements(plan, form->first, nest->kept)));
}

/* Whether every operand is one, or a number, that the output's type has. */
static int sides_fit(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const enum dtype type = problem->out_type[0];
    for (int side = X; side <= Y; side++) {
        const struct node *leaf = &problem->program.finish.node[root(plan)->arg[side - X]];
        int64_t value;
        if (leaf->op == OP_CONST ? !number(plan, leaf, &value)
                                 : leaf->op != OP_OPERAND || problem->in_type[leaf->index] != type)
            return 0;
    }
    return 1;
}

static int has_long_rows(const struct mf_plan *plan)
{
    const struct nest *nest = &plan->problem.memory;
    const int last = nest->kept - 1;
    const int64_t x = strides(plan, X)[last], y = strides(plan, Y)[last];
    return (x == 0 || x == 1) && (y == 0 || y == 1) && x + y && nest->out[0][last] == 1 &&
           are_worth_it(bytes(plan, nest->size[last]));
}

/* Long rows, or such of whole lines, are as good as what is written out. */
static struct form choose_form(const struct mf_plan *plan)
{
    const struct nest *nest = &plan->problem.memory;
    for (int side = X; side <= Y; side++) {
        struct form form = {.repeats = side};
        if (finds_periods(plan, &form))
            return form;
    }
    const int64_t row = bytes(plan, nest->size[nest->kept - 1]);
    const int has_rows = has_long_rows(plan), good = has_rows && (row >= VERY_LONG_ROW || row % LINE == 0);
    for (int side = X; side <= Y && !good; side++) {
        struct form form = {.repeats = side};
        if (finds_written_out(plan, &form))
            return form;
    }
    return (struct form){
        .kind = has_rows ? LONG_ROWS : NO_ROWS, .period = 1, .period_loop = nest->kept, .first = nest->kept - 1};
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const enum dtype type = problem->out_type[0];
    if (problem->program.reducer_count || problem->output_count != 1 || nest->window_count || !nest->kept)
        return 0;
    const int pair = mf_pair_of(root(plan)->op);
    if (pair < 0 || !plan->device->kernels->pair[pair][type] || root(plan)->cls != mf_dtypes[type].cls)
        return 0;
    return sides_fit(plan) && choose_form(plan).kind != NO_ROWS;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The loop over tiles of `chunk` steps of loop l. */
static void add_dim(const struct mf_plan *plan, int l, int64_t size, int64_t chunk)
{
    struct pair_plan *data = plan->data;
    int64_t stride[SIDES] = {0};
    for (int side = OUT; side < SIDES && l >= 0; side++)
        stride[side] = strides(plan, side)[l];
    mf_tiling_add(&data->tiling, size, chunk, stride);
}

/* Whether all rows read the same elements of an operand: parts of rows that leave it in the nearest cache are
 * better. */
static int shares_row(const struct mf_plan *plan, int first)
{
    int last = plan->problem.memory.kept - 1, shares = 0;
    for (int side = X; first > 0 && side <= Y; side++)
        shares |= strides(plan, side)[last] && !strides(plan, side)[first - 1];
    return shares;
}

/* Rows of the last loop, or of periods. */
static void plan_rows(struct mf_plan *plan)
{
    const struct nest *nest = &plan->problem.memory;
    struct pair_plan *data = plan->data;
    struct pair_rows *rows = &data->rows;
    const struct form *form = &data->form;
    const int last = nest->kept - 1, row = form->first - 1;
    const int64_t most = TILE_BYTES / data->item;
    data->length = elements(plan, form->first, nest->kept);
    data->row_count = row < 0 ? 1 : nest->size[row];
    rows->n = at_most(data->length, form->stretched             ? PATTERN_BYTES / data->item
                                    : shares_row(plan, row + 1) ? SHARED_BYTES / data->item
                                                                : most);
    rows->rows = at_most(data->row_count, most / rows->n);
    rows->out_pitch = row < 0 ? 0 : nest->out[0][row];
    rows->x_pitch = row < 0 ? 0 : strides(plan, X)[row];
    rows->y_pitch = row < 0 ? 0 : strides(plan, Y)[row];
    rows->period = form->period;
    rows->x_unit = form->repeats ? form->repeats != X : (int)strides(plan, X)[last];
    rows->y_unit = form->repeats ? form->repeats != Y : (int)strides(plan, Y)[last];
    rows->x_once = rows->x_unit && (row < 0 || rows->x_pitch);
    rows->y_once = rows->y_unit && (row < 0 || rows->y_pitch);
    data->long_rows = data->length * data->item >= LONG_ROW;
    for (int l = 0; l < row; l++)
        add_dim(plan, l, nest->size[l], 1);
    add_dim(plan, row, data->row_count, rows->rows);
    /* a loop of periods, each of the last one's steps; elements are periods of one */
    int64_t stride[SIDES] = {[OUT] = form->period};
    for (int side = X; side <= Y; side++)
        stride[side] = form->stretched == side || !form->repeats ? strides(plan, side)[form->period_loop - 1]
                       : form->repeats == side                   ? 0
                                                                 : form->period;
    mf_tiling_add(&data->tiling, data->length / form->period, rows->n / form->period, stride);
}

/* Rows over all loops that the output and the other side have together; parts of them are as long as the pattern. */
static void plan_repeats(struct mf_plan *plan)
{
    const struct nest *nest = &plan->problem.memory;
    struct pair_plan *data = plan->data;
    struct pair_rows *rows = &data->rows;
    const int from = together_from(plan, data->form.repeats == X ? Y : X);
    int64_t stride[SIDES] = {[OUT] = 1, [X] = data->form.repeats != X, [Y] = data->form.repeats != Y};
    data->row_count = data->length = 1;
    for (int l = from; l < nest->kept; l++)
        data->length *= nest->size[l];
    const int64_t most = PATTERN_BYTES / data->item / data->form.period * data->form.period;
    rows->n = at_most(data->length, most);
    rows->rows = rows->period = rows->x_unit = rows->y_unit = 1;
    rows->x_once = data->form.repeats != X;
    rows->y_once = data->form.repeats != Y;
    data->long_rows = rows->n * data->item >= LONG_ROW;
    for (int l = 0; l < from; l++)
        add_dim(plan, l, nest->size[l], 1);
    add_dim(plan, -1, 1, 1);
    mf_tiling_add(&data->tiling, data->length, rows->n, stride);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct pair_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    const struct node *node = root(plan);
    data->kernel = plan->device->kernels->pair[mf_pair_of(node->op)][problem->out_type[0]];
    data->item = mf_dtypes[problem->out_type[0]].size;
    for (int side = X; side <= Y; side++) {
        const struct node *leaf = &problem->program.finish.node[node->arg[side - X]];
        data->input[side] = leaf->op == OP_OPERAND ? leaf->index : -1;
        if (leaf->op == OP_CONST)
            number(plan, leaf, &data->number[side]);
    }
    mf_tiling_start(&data->tiling, SIDES);
    data->form = choose_form(plan);
    if (data->form.kind == WRITTEN_OUT)
        plan_repeats(plan);
    else
        plan_rows(plan);
    data->rows.past_cache = mf_stores_past_cache(problem, data->item);
    data->grain = 1 + TASK_BYTES / (data->rows.rows * data->rows.n * data->item);
    return MF_OK;
}

struct job {
    const struct mf_plan *plan;
    char *base[SIDES];
    int past_cache;
};

static void *element(const struct job *job, const struct place *p, int side)
{
    const struct pair_plan *data = job->plan->data;
    return (void *)((uintptr_t)job->base[side] + (uintptr_t)(p->offset[side] * data->item));
}

static void task(void *context, int64_t t, int worker)
{
    const struct job *job = context;
    const struct pair_plan *data = job->plan->data;
    struct pair_rows rows = data->rows;
    struct place p;
    int64_t first = t * data->grain, last = at_most(first + data->grain, data->tiling.tiles);
    const int stretched = data->form.stretched;
    const int64_t period = data->form.period;
    const int64_t step = stretched ? strides(job->plan, stretched)[data->form.first] * data->item : 0;
    const struct kernels *const kernels = job->plan->device->kernels;
    _Alignas(LINE) char row[PATTERN_BYTES + STRETCH_ROOM];
    (void)worker;
    rows.past_cache = job->past_cache;
    if (!data->rows.past_cache) /* caches have it, or soon will */
        rows.x_once = rows.y_once = 0;
    mf_place_set(&data->tiling, first, &p);
    for (int64_t tile = first; tile < last; tile++, mf_place_next(&data->tiling, &p)) {
        rows.rows = mf_tile_length(data->row_count, data->rows.rows, p.at[data->tiling.dims - 2]);
        rows.n = mf_tile_length(data->length, data->rows.n, p.at[data->tiling.dims - 1]);
        const void *side[SIDES] = {NULL, element(job, &p, X), element(job, &p, Y)};
        if (stretched) {
            kernels->stretch(row, side[stretched], rows.n / period, step, data->item, period * data->item);
            side[stretched] = row;
        }
        data->kernel(element(job, &p, OUT), side[X], side[Y], &rows);
    }
}

/* Whether every row starts where a line does. */
static int rows_are_lines(const struct pair_plan *data, const char *out)
{
    int64_t steps = data->rows.out_pitch;
    for (int d = 0; d < data->tiling.dims; d++)
        steps |= data->tiling.step[OUT][d];
    return (uintptr_t)out % LINE == 0 && steps * data->item % LINE == 0;
}

/* Writes a tile's length of what is repeated. */
static void write_pattern(const struct mf_plan *plan, const char *from, char *pattern)
{
    const struct pair_plan *data = plan->data;
    const struct nest *nest = &plan->problem.memory;
    const int64_t *stride = strides(plan, data->form.repeats), size = data->item;
    const size_t all = (size_t)(data->rows.n * size);
    for (int64_t k = 0; k < data->form.period && k < data->rows.n; k++) {
        int64_t at = 0, left = k;
        for (int l = nest->kept - 1; l >= data->form.period_loop; left /= nest->size[l--])
            at += left % nest->size[l] * stride[l];
        memcpy(pattern + k * size, (const void *)((uintptr_t)from + (uintptr_t)(at * size)), (size_t)size);
    }
    for (size_t done = (size_t)(data->form.period * size); done < all; done *= 2)
        memcpy(pattern + done, pattern, done < all - done ? done : all - done);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct pair_plan *data = plan->data;
    struct job job = {plan, {pointers->out[0], NULL, NULL}, data->rows.past_cache};
    for (int side = X; side <= Y; side++)
        job.base[side] = (char *)(uintptr_t)(data->input[side] < 0 ? &data->number[side]
                                                                   : (const void *)pointers->in[data->input[side]]);
    _Alignas(LINE) char pattern[PATTERN_BYTES];
    if (data->form.kind == WRITTEN_OUT) {
        write_pattern(plan, job.base[data->form.repeats], pattern);
        job.base[data->form.repeats] = pattern;
    }
    if (!data->long_rows && !rows_are_lines(data, pointers->out[0]))
        job.past_cache = 0;
    int64_t tasks = (data->tiling.tiles + data->grain - 1) / data->grain;
    mf_parallel(plan->device->threads, (int)at_most(tasks, plan->threads), tasks, task, &job);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct pair_plan *data = plan->data;
    int n = snprintf(text, size, "%lld tiles of %lld rows of %lld%s", (long long)data->tiling.tiles,
                     (long long)data->rows.rows, (long long)data->rows.n,
                     data->rows.past_cache ? ", stored past the cache" : "");
    if (data->form.repeats && n >= 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", one operand's %lld elements %s", (long long)data->form.period,
                 data->form.kind == PERIODS ? "in registers" : "written out");
}

const struct solver mf_solver_pair = {
    "pair", "one operation on two elements: memory to memory, row by row", applicable, make, execute, print, NULL,
};
