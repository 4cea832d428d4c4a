/* Solver "outer": the fastest mode in memory is kept. Blocks of columns are folded down their rows, tile by tile
 * (outer_lanes.c).
 *
 * Hypothesis: every operand inside the reducers steps through the last kept loop (the columns) with a small stride
 * or not at all; few columns (down to 1) are fine when consecutive rows, or runs of a power of two up to 128
 * elements, lie together, or values are computed (strips). Cost: every element once, read in pieces of a block's
 * width; temporaries: one block of states for each tile. */
#include "narrow.h"
#include "outer.h"

#include <stdio.h>
#include <stdlib.h>

/* LONG_TILE: elements that an argmin or argmax numbers in 32 bits. */
/* MOST_APART: elements from a column to the next that still share lines; such columns are to be so many. */
enum { NEAREST_BYTES = 32768, LEAST_EVALUATED = 4, MOST_APART = 16, LEAST_APART = 64 };
enum { STATES_BYTES = 131072, SPLIT_TILES = 4, LONG_TILE = 1 << 30 };
/* What is worth the threads' start; a thread's shares of few columns whose folds have no order. */
enum { SHARED_ELEMENTS = 1 << 17, RUNS_BLOCKS = 16, RUNS_WIDTH = 2048, SHARES = 8 };
enum { ANSWER_BYTES = 2 << 20 }; /* least outputs that runs store themselves, past the cache */

static const struct nest *nest_of(const struct mf_plan *plan)
{
    return &plan->problem.memory;
}

/* No operand inside a reducer has a reduced loop with a smaller stride than its columns have. */
static int columns_are_fastest(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    int found = 0;
    for (int i = 0; i < problem->input_count; i++) {
        int64_t column = llabs(nest->in[i][nest->kept - 1]);
        if (!problem->map_uses[i] || !column)
            continue;
        found |= column == 1 || (column <= MOST_APART && nest->size[nest->kept - 1] >= LEAST_APART);
        for (int l = nest->kept; l < nest->kept + nest->reduced; l++)
            if (nest->in[i][l] && llabs(nest->in[i][l]) < column)
                return 0;
    }
    return found;
}

static int same_element_order(const struct problem *problem)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_ARG)
            return mf_nest_is_as_written(&problem->memory);
    return 1;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    int64_t strip, inside;
    enum strip layout;
    if (!problem->program.reducer_count || !problem->reduced_total || nest->window_count || !nest->kept ||
        !nest->reduced)
        return 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER)
            return 0;
    return same_element_order(problem) && mf_outer_choose_strip(plan, &strip, &inside, &layout) &&
           (layout == STRIP_COLUMNS || columns_are_fastest(plan));
}

/* ---- planning ---- */

/* The kept loops but the columns', in steps of `beside`. */
static void plan_kept(const struct nest *nest, int64_t beside, const int64_t *strides, struct walk *walk)
{
    int64_t size[MAX_LOOPS], stride[MAX_LOOPS];
    for (int l = 0; l < nest->kept - 1; l++) {
        const int64_t step = l == nest->kept - 2 ? beside : 1;
        size[l] = nest->size[l] / step;
        stride[l] = strides[l] * step;
    }
    mf_walk_make(walk, nest->kept - 1, size, stride);
}

/* What the rows that are evaluated hold. */
static void plan_rows(struct mf_plan *plan)
{
    struct outer_plan *data = plan->data;
    const struct program *program = &plan->problem.program;
    int all[MAX_REDUCERS], type[MAX_REDUCERS];
    for (int r = 0; r < program->reducer_count; r++)
        all[r] = r;
    const int size = mf_narrow_rows(&data->block, plan, all, program->reducer_count, data->straight, type);
    data->row_size = size ? size : 8;
    for (int r = 0; r < program->reducer_count; r++)
        data->from[r] = data->straight[r] ? data->from[r] : type[r];
}

static void plan_arguments(struct mf_plan *plan)
{
    struct outer_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        const int operand = data->operand[r] = mf_outer_operand(plan, reducer);
        int factor[2];
        data->straight[r] = mf_outer_reads_memory(plan, reducer) &&
                            (data->layout == STRIP_COLUMNS || nest->in[operand][nest->kept - 1] == 1);
        data->from[r] =
            data->straight[r] && !mf_is_class_type(problem->in_type[operand]) ? (int)problem->in_type[operand] : -1;
        data->term[r] = data->straight[r] ? mf_outer_term(plan, reducer, factor) : NO_TERM;
        data->factor[r] = data->term[r] ? factor[1] : -1;
        if (reducer->kind == RED_ARG)
            data->arg[data->arg_count++] = r;
        else
            data->lane[data->lane_count++] = r;
        int known = data->straight[r];
        for (int q = 0; q < data->root_count; q++)
            known |= data->root[q] == reducer->arg[0];
        if (!known)
            data->root[data->root_count++] = reducer->arg[0];
    }
    mf_block_plan(&data->block, &problem->program.map, data->root, data->root_count, problem->in_type);
    plan_rows(plan);
    const int last = nest->kept + nest->reduced - 1;
    for (int i = 0; i < problem->input_count; i++) {
        const int64_t size[2] = {data->layout == STRIP_ROWS ? data->strip : 1, nest->size[nest->kept - 1]};
        mf_walk_make(&data->block.walk[i], 2, size, (const int64_t[]){nest->in[i][last], nest->in[i][nest->kept - 1]});
        mf_walk_make(&data->row[i], nest->reduced, nest->size + nest->kept, nest->in[i] + nest->kept);
        plan_kept(nest, data->beside, nest->in[i], &data->kept[i]);
    }
}

/* Bytes of a state's first or second part; a fold's state has one part, an argument's second one is its index. */
static size_t part_size(const struct reducer *reducer, int part)
{
    if (part == 0)
        return mf_cls_size(reducer->cls);
    return reducer->kind == RED_FOLD ? 0 : reducer->kind == RED_ARG ? 8 : mf_cls_size(reducer->cls);
}

static size_t state_size(const struct reducer *reducer)
{
    return part_size(reducer, 0) + part_size(reducer, 1);
}

/* Whether the only reducer adds bytes, so many that it is worth to add a chain's in 16 bits first. */
static int adds_bytes(const struct mf_plan *plan)
{
    const struct outer_plan *data = plan->data;
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    return plan->problem.program.reducer_count == 1 && reducer->kind == RED_FOLD && reducer->fold == FOLD_SUM &&
           !mf_reducer_is_squares(&plan->problem, reducer) && data->straight[0] && data->from[0] >= 0 &&
           plan->device->kernels->byte_sums[data->from[0]] && data->elements >= 2 * FEW_ROWS;
}

/* Whether the only output is the only fold's result, for neighbouring columns, and a kernel can store it: what joins
 * the elements inside strips, or runs. */
static enum answers stores_answers(const struct mf_plan *plan)
{
    const struct outer_plan *data = plan->data;
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    const enum dtype type = plan->problem.out_type[0];
    const struct kernels *k = plan->device->kernels;
    const int from = data->from[0], floats = mf_cls_is_float(reducer->cls);
    const int touch = nest_of(plan)->out[0][nest_of(plan)->kept - 1] == 1;
    const int whole = touch && data->tiles == 1 && !data->split && data->layout == STRIP_COLUMNS;
    if (whole && (data->narrow ? (int)type == from
                               : data->strip == data->inside && !data->runs && mf_is_class_type(type) &&
                                     k->fold[reducer->fold][reducer->cls].answers))
        return mf_finish_answers(plan);
    if (!data->runs || data->runs < 2 || !touch ||
        !(from >= 0 ? k->fold_from[reducer->fold][from].runs && (floats ? (int)type == from : mf_is_class_type(type))
                    : k->fold[reducer->fold][reducer->cls].runs && mf_is_class_type(type)) ||
        plan->problem.kept_total < ANSWER_BYTES / mf_dtypes[type].size)
        return NO_ANSWERS;
    return mf_finish_answers(plan);
}

/* Columns of a block: a few kilobytes of each row and of states, all blocks of about the same width. */
static void plan_width(struct mf_plan *plan)
{
    struct outer_plan *data = plan->data;
    const struct nest *nest = nest_of(plan);
    const struct problem *problem = &plan->problem;
    int64_t value = 0, item = 8;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        int64_t state = (int64_t)state_size(reducer), size = (int64_t)mf_cls_size(reducer->cls);
        if (data->straight[r])
            size = mf_dtypes[problem->in_type[data->operand[r]]].size;
        else if (data->from[r] >= 0)
            size = data->row_size;
        if (data->from[r] >= 0 && !mf_cls_is_float(reducer->cls))
            state = 2 * size; /* integer kernels keep their states short while they go down the rows */
        value += state;
        item = size < item ? size : item;
    }
    data->columns = nest->size[nest->kept - 1] * data->beside;
    const int64_t states = STATES_BYTES / (value > 0 ? value : 1);
    int64_t most = WIDTH_BYTES / item < states ? WIDTH_BYTES / item : states;
    if (mf_outer_may_join_several(plan) && most > PIECE_BYTES / item)
        most = PIECE_BYTES / item;
    if (data->strip > 1)
        most = data->beside > 1 ? data->columns : mf_outer_strip_elements(plan) / data->strip;
    const int64_t at_once = data->block.narrow ? TILE : BLOCK;
    if (data->root_count && most > at_once / data->strip)
        most = at_once / data->strip;
    if (data->runs && data->from[0] >= 0 && !stores_answers(plan) && most > RUNS_WIDTH)
        most = RUNS_WIDTH; /* the nearest cache has room for all that is between memory and memory */
    int64_t others = problem->kept_total / data->columns, share = data->columns * others / plan->threads;
    if (problem->kept_total * problem->reduced_total >= SHARED_ELEMENTS && data->strip == 1 &&
        data->tiles < 2 * plan->threads && share < most && share >= SHARED_WIDTH)
        most = share; /* something for every thread */
    data->blocks = (data->columns + most - 1) / most;
    data->width = (data->columns + data->blocks - 1) / data->blocks;
    if (data->blocks > 1)
        data->width = (data->width + 15) / 16 * 16;
    data->blocks = (data->columns + data->width - 1) / data->width;
}

static size_t round64(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Levels of states below which n of them are folded as a tree. */
static int levels_of(int64_t n)
{
    int levels = 0;
    while (n > (int64_t)1 << levels && levels < LEVELS - 2)
        levels++;
    return levels;
}

static void plan_memory(struct mf_plan *plan)
{
    struct outer_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    const size_t columns = (size_t)(data->width * data->strip + (data->runs ? LANES : 0));
    const int lanes = data->any_order ? 0 : levels_of(data->elements), tiles = levels_of(data->tiles);
    data->levels = 2 + (lanes > tiles ? lanes : tiles);
    data->rows_bytes = round64((size_t)(data->width * data->strip * data->row_size));
    data->finish_bytes = mf_finish_memory(&data->finish, problem, data->width < BLOCK ? data->width : BLOCK);
    size_t buffers = 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        for (int p = 0; p < 2; p++) {
            const size_t size = part_size(&problem->program.reducer[r], p);
            data->part_bytes[r][p] = round64(columns * size);
            data->tiles_bytes[r][p] = data->tiles > 1 ? round64((size_t)(data->tiles * data->width) * size) : 0;
            buffers += data->part_bytes[r][p] * (size_t)data->levels;
            data->states_bytes += data->tiles_bytes[r][p];
        }
    const size_t terms = (columns + LSE_COLUMNS - 1) / LSE_COLUMNS * LSE_COLUMNS * 8;
    data->terms_bytes = data->terms ? ROWS_TOGETHER * terms : 0;
    data->worker_bytes = buffers + data->finish_bytes + data->terms_bytes +
                         (data->root_count ? mf_block_memory(&data->block, data->width * data->strip) : 0) +
                         (size_t)data->root_count * MAX_CHAIN * data->rows_bytes;
    if (!data->split)
        data->worker_bytes += data->states_bytes;
}

static void plan_lanes(struct mf_plan *plan)
{
    struct outer_plan *data = plan->data;
    data->together = mf_outer_plan_together(plan, data);
    const struct reducer *reducers = plan->problem.program.reducer, *first = &reducers[data->lane[0]];
    int same = data->lane_count > 0, folds = 1;
    data->any_order = mf_outer_in_any_order(&plan->problem);
    for (int q = 0; q < data->lane_count; q++) {
        const struct reducer *reducer = &reducers[data->lane[q]];
        same = same && reducer->kind != RED_LSE && data->factor[data->lane[q]] < 0 &&
               reducer->arg[0] == first->arg[0] && data->straight[data->lane[q]] &&
               data->from[data->lane[q]] == data->from[data->lane[0]];
        folds = folds && reducer->kind == RED_FOLD;
    }
    data->pairs = folds && data->strip == 1;
    data->joins = !data->any_order && mf_outer_joins(plan);
    for (int q = 0; q < data->lane_count && data->joins; q++)
        data->terms |= reducers[data->lane[q]].kind == RED_LSE;
    data->gathers = same && data->lane_count > data->together && data->lane_count > 1 && !data->any_order;
    data->fetches = mf_reads_memory(&plan->problem);
    data->evaluated = MAX_ROWS;
    if (data->root_count && folds && !data->gathers) {
        const int64_t rows = NEAREST_BYTES / (data->width * data->strip * data->row_size);
        data->evaluated = rows < LEAST_EVALUATED ? LEAST_EVALUATED : rows < MAX_CHAIN ? rows : MAX_CHAIN;
    }
}

/* Whether all elements are in one chain of strips, which such sums allow to be as long. */
static int joins_bytes(const struct outer_plan *data)
{
    return data->strip > 1 && data->layout == STRIP_ROWS && data->tiles == 1 && data->elements % data->strip == 0 &&
           data->elements / data->strip <= LONG_CHAIN;
}

/* Whether elements and columns step through the same memory, and the number of elements is a power of two up to 128;
 * kernels of runs fold what they read, not its squares. */
static int shares_runs(const struct mf_plan *plan)
{
    const struct outer_plan *data = plan->data;
    const struct nest *nest = nest_of(plan);
    int shares = nest->reduced == 1 && data->elements <= LANES && (data->elements & (data->elements - 1)) == 0;
    for (int r = 0; r < plan->problem.program.reducer_count; r++) {
        const struct reducer *reducer = &plan->problem.program.reducer[r];
        int input = mf_reducer_operand(&plan->problem, reducer);
        shares = shares && reducer->kind == RED_FOLD && data->straight[r] && data->factor[r] < 0 &&
                 !mf_reducer_is_squares(&plan->problem, reducer) &&
                 (data->from[r] < 0 || mf_cls_is_float(reducer->cls) ||
                  plan->device->kernels->fold_from[reducer->fold][data->from[r]].runs) &&
                 reducer->fold != FOLD_ANY && nest->in[input][nest->kept - 1] == 1 && nest->in[input][nest->kept] == 1;
    }
    return shares;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct outer_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    data->elements = problem->reduced_total;
    data->tiles = (data->elements + TILE - 1) / TILE;
    mf_outer_choose_strip(plan, &data->strip, &data->inside, &data->layout);
    data->beside = mf_outer_blocks_beside(plan, data);
    plan_arguments(plan);
    data->runs = shares_runs(plan) ? data->elements : 0;
    plan_width(plan);
    int64_t tasks = problem->kept_total / data->columns * data->blocks;
    data->split = plan->threads > 1 && data->tiles >= 2 * plan->threads && tasks < 4 * plan->threads;
    data->split_tiles = data->tiles >= 8 * SPLIT_TILES * plan->threads ? SPLIT_TILES : 1;
    plan_lanes(plan);
    data->tile = TILE;
    if (data->any_order || !data->lane_count) { /* the contract's tiles are about order */
        const int64_t share = (data->elements - 1) / (SHARES * plan->threads) + 1;
        const int64_t most = data->lane_count ? INT64_MAX : LONG_TILE;
        data->tile = data->split ? ((share - 1) / TILE + 1) * TILE : data->elements;
        data->tile = data->tile < most ? data->tile : most;
        data->tiles = (data->elements - 1) / data->tile + 1;
        data->split_tiles = 1;
    }
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    data->narrow = data->layout == STRIP_COLUMNS && data->strip == data->inside && mf_outer_stays_narrow(plan);
    data->byte_sums = adds_bytes(plan) && !data->runs && joins_bytes(data);
    data->answers = stores_answers(plan);
    /* what runs fetch ahead at a block's end is the next block's */
    int64_t share = tasks / (4 * plan->threads), batch = share < RUNS_BLOCKS ? share : RUNS_BLOCKS;
    data->batch = data->runs && batch > 1 ? batch : 1;
    mf_walk_make(&data->answer, nest_of(plan)->kept - 1, nest_of(plan)->size, nest_of(plan)->out[0]);
    plan_memory(plan);
    return MF_OK;
}

/* ---- execution ---- */

struct job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory;
    char *states[MAX_REDUCERS][2]; /* shared, when split */
    int64_t blocks;                /* all of them */
    int64_t block;                 /* the block whose tiles are the tasks, when split */
};

struct worker {
    struct columns columns;
    struct finish finish;
    char *states_memory;
};

/* Where the operands' element 0 and first column of a block are; null where there is no such block. */
static void find_block(const struct job *job, int64_t block, const char *base[MF_MAX_INPUTS])
{
    const struct outer_plan *data = job->plan->data;
    const struct problem *problem = &job->plan->problem;
    const struct nest *nest = nest_of(job->plan);
    int64_t kept = block / data->blocks, first = block % data->blocks * data->width;
    int is_there = kept < problem->kept_total / data->columns;
    for (int i = 0; i < problem->input_count; i++) {
        int64_t offset = is_there ? mf_walk_offset(&data->kept[i], kept) + first * nest->in[i][nest->kept - 1] : 0;
        base[i] = is_there ? (const char *)((uintptr_t)job->pointers->in[i] +
                                            (uintptr_t)(offset * mf_dtypes[problem->in_type[i]].size))
                           : NULL;
    }
}

static void start_columns(struct worker *w, const struct job *job, int64_t block, char *memory)
{
    const struct outer_plan *data = job->plan->data;
    const struct problem *problem = &job->plan->problem;
    struct columns *c = &w->columns;
    int64_t kept = block / data->blocks, first = block % data->blocks * data->width;
    c->plan = job->plan;
    c->outer = data;
    c->kernels = job->plan->device->kernels;
    c->strip = data->strip;
    c->width = data->columns - first < data->width ? data->columns - first : data->width;
    find_block(job, block, c->base);
    find_block(job, block + 1, c->after);
    size_t item = (size_t)mf_dtypes[problem->out_type[0]].size;
    c->answer =
        data->answers ? job->pointers->out[0] + (mf_walk_offset(&data->answer, kept) + first) * (int64_t)item : NULL;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        for (int l = 0; l < data->levels; l++)
            for (int p = 0; p < 2; p++) {
                c->buffer[r][l][p] = data->part_bytes[r][p] ? memory : c->buffer[r][l][0];
                memory += data->part_bytes[r][p];
            }
    }
    c->terms = memory;
    memory += data->terms_bytes;
    if (!data->root_count)
        return;
    mf_block_start(&c->block, &data->block, c->kernels, memory, c->width * c->strip);
    memory += mf_block_memory(&data->block, data->width * data->strip);
    for (int q = 0; q < data->root_count; q++, memory += MAX_CHAIN * data->rows_bytes)
        c->rows[data->root[q]] = memory;
}

static void lay_out_states(const struct outer_plan *data, int reducers, char *memory, char *states[MAX_REDUCERS][2])
{
    for (int r = 0; r < reducers; r++)
        for (int p = 0; p < 2; p++) {
            states[r][p] = data->tiles_bytes[r][p] ? memory : states[r][0];
            memory += data->tiles_bytes[r][p];
        }
}

/* Copies the states of the tile just folded to row t. */
static void keep_tile(const struct columns *c, char *states[MAX_REDUCERS][2], int64_t t)
{
    for (int r = 0; r < c->plan->problem.program.reducer_count; r++) {
        const struct reducer *reducer = &c->plan->problem.program.reducer[r];
        size_t value = mf_cls_size(reducer->cls), second = reducer->kind == RED_ARG ? 4 : value;
        memcpy(states[r][0] + (size_t)(t * c->width) * value, c->buffer[r][0][0], (size_t)c->width * value);
        if (reducer->kind != RED_FOLD)
            memcpy(states[r][1] + (size_t)(t * c->width) * second, c->buffer[r][0][1], (size_t)c->width * second);
    }
}

/* Finishes the block's outputs from buffer[r][0], in groups that the finish part can take. */
static void finish_block(struct worker *w, const struct job *job, int64_t block, char *memory)
{
    const struct outer_plan *data = job->plan->data;
    struct columns *c = &w->columns;
    int64_t first = block / data->blocks * data->columns + block % data->blocks * data->width;
    mf_finish_start(&w->finish, &data->finish, job->plan, job->pointers, memory, c->width < BLOCK ? c->width : BLOCK);
    for (int64_t i = 0; i < c->width; i += BLOCK) {
        int64_t n = c->width - i < BLOCK ? c->width - i : BLOCK;
        for (int r = 0; r < job->plan->problem.program.reducer_count; r++) {
            const struct reducer *reducer = &job->plan->problem.program.reducer[r];
            size_t value = mf_cls_size(reducer->cls), second = reducer->kind == RED_ARG ? 8 : value;
            w->finish.block.state[r][0] = c->buffer[r][0][0] + (size_t)i * value;
            w->finish.block.state[r][1] = c->buffer[r][0][1] + (size_t)i * second;
        }
        mf_finish_store(&w->finish, first + i, n, NULL);
    }
}

/* The tile's 32-bit indices become the answer's 64 bits. */
static void widen_indices(struct columns *c)
{
    for (int q = 0; q < c->outer->arg_count; q++) {
        char *index = c->buffer[c->outer->arg[q]][0][1];
        for (int64_t i = c->width - 1; i >= 0; i--) {
            int32_t narrow;
            memcpy(&narrow, index + 4 * i, 4);
            int64_t wide = narrow;
            memcpy(index + 8 * i, &wide, 8);
        }
    }
}

static void one_block(const struct job *job, int64_t block, int number)
{
    const struct outer_plan *data = job->plan->data;
    char *memory = job->memory + (size_t)number * data->worker_bytes, *states[MAX_REDUCERS][2];
    struct worker w;
    start_columns(&w, job, block, memory + data->finish_bytes + data->states_bytes);
    if (data->tiles == 1) {
        mf_outer_tile(&w.columns, 0, data->elements);
        widen_indices(&w.columns);
    } else {
        lay_out_states(data, job->plan->problem.program.reducer_count, memory + data->finish_bytes, states);
        for (int64_t t = 0; t < data->tiles; t++) {
            int64_t e = t * data->tile;
            mf_outer_tile(&w.columns, e, data->elements - e < data->tile ? data->elements - e : data->tile);
            keep_tile(&w.columns, states, t);
        }
        mf_outer_join(&w.columns, states, data->tiles);
    }
    if (!data->answers)
        finish_block(&w, job, block, memory);
}

static void block_task(void *context, int64_t task, int number)
{
    const struct job *job = context;
    const struct outer_plan *data = job->plan->data;
    const int64_t first = task * data->batch, left = job->blocks - first;
    for (int64_t i = 0; i < data->batch && i < left; i++)
        one_block(job, first + i, number);
}

static void tile_task(void *context, int64_t task, int number)
{
    struct job *job = context;
    const struct outer_plan *data = job->plan->data;
    struct worker w;
    start_columns(&w, job, job->block, job->memory + (size_t)number * data->worker_bytes + data->finish_bytes);
    for (int64_t t = task * data->split_tiles; t < (task + 1) * data->split_tiles && t < data->tiles; t++) {
        int64_t e = t * data->tile;
        mf_outer_tile(&w.columns, e, data->elements - e < data->tile ? data->elements - e : data->tile);
        keep_tile(&w.columns, job->states, t);
    }
}

static void run_split(struct job *job, int threads, int64_t blocks)
{
    const struct outer_plan *data = job->plan->data;
    for (job->block = 0; job->block < blocks; job->block++) {
        struct worker w;
        const int64_t tasks = (data->tiles + data->split_tiles - 1) / data->split_tiles;
        mf_parallel(job->plan->device->threads, threads, tasks, tile_task, job);
        start_columns(&w, job, job->block, job->memory + data->finish_bytes);
        mf_outer_join(&w.columns, job->states, data->tiles);
        finish_block(&w, job, job->block, job->memory);
    }
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct outer_plan *data = plan->data;
    int64_t blocks = plan->problem.kept_total / data->columns * data->blocks;
    int threads = data->split || blocks > plan->threads ? plan->threads : (int)blocks;
    struct job job;
    job.plan = plan;
    job.pointers = pointers;
    job.blocks = blocks;
    size_t workers = (size_t)threads * data->worker_bytes;
    job.memory = mf_alloc_aligned(workers + (data->split ? data->states_bytes : 0));
    if (!job.memory)
        return MF_ERROR_MEMORY;
    if (data->split) {
        lay_out_states(data, plan->problem.program.reducer_count, job.memory + workers, job.states);
        run_split(&job, threads, blocks);
    } else {
        mf_parallel(plan->device->threads, threads, (blocks + data->batch - 1) / data->batch, block_task, &job);
    }
    mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct outer_plan *data = plan->data;
    snprintf(text, size,
             "%lld block%s of %lld columns, strips of %lld%s%s, %lld tile%s; %d arguments evaluated; %ss shared by all "
             "threads",
             (long long)data->blocks, data->blocks == 1 ? "" : "s", (long long)data->width, (long long)data->strip,
             data->layout == STRIP_COLUMNS ? " (inside)" : "", data->beside > 1 ? " with neighbours beside" : "",
             (long long)data->tiles, data->tiles == 1 ? "" : "s", data->root_count, data->split ? "tile" : "block");
}

const struct solver mf_solver_outer = {
    "outer", "blocks of columns down their rows", applicable, make, execute, print, NULL,
};
