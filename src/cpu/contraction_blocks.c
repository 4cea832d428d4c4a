/* What all contraction solvers share: which folds are a product of two factors, the blocks of outputs that are tasks,
 * and a thread's work on one: packed panels, tiles, stored rows. */
#include "contraction.h"

#include <stdio.h>

enum { TASKS_A_THREAD = 4 };

/* ---- which folds ---- */

int mf_product_find(const struct pool *pool, int root, struct product_form *form)
{
    static const struct {
        enum op op;
        enum product product;
    } simple[] = {{OP_add, PRODUCT_ADD}, {OP_sub, PRODUCT_ADD}, {OP_mul, PRODUCT_MUL}, {OP_min, PRODUCT_MIN},
                  {OP_max, PRODUCT_MAX}, {OP_eq, PRODUCT_EQ},   {OP_ne, PRODUCT_NE},   {OP_and, PRODUCT_AND},
                  {OP_or, PRODUCT_OR},   {OP_xor, PRODUCT_XOR}};
    const struct node *node = &pool->node[root];
    memset(form, 0, sizeof *form);
    form->product = PRODUCTS;
    for (size_t s = 0; s < sizeof simple / sizeof simple[0]; s++)
        if (node->op == simple[s].op)
            form->product = simple[s].product;
    form->negate[1] = node->op == OP_sub;
    const struct node *inner = node->arg[0] >= 0 ? &pool->node[node->arg[0]] : node;
    enum product nested = node->op == OP_mul && node->arg[0] == node->arg[1] && inner->op == OP_sub ? PRODUCT_SQDIFF
                          : node->op == OP_abs && inner->op == OP_sub                               ? PRODUCT_ABSDIFF
                          : node->op == OP_popcount && inner->op == OP_xor                          ? PRODUCT_XORCOUNT
                                                                                                    : PRODUCTS;
    if (nested != PRODUCTS) {
        form->product = nested;
        node = inner;
    }
    form->node[0] = node->arg[0];
    form->node[1] = node->arg[1];
    /* |x - y| of unsigned numbers is x - y, which does not commute */
    return form->product != PRODUCTS && !(nested == PRODUCT_ABSDIFF && node->cls == CLS_U64);
}

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Whether a tile would be nearly empty, and its sums long: solver inner reads such rows at the speed of memory, on all
 * threads. */
static int wastes_tiles(const struct mf_plan *plan, enum cls cls, const struct factor_loops *loops)
{
    enum { WASTE = 4 };
    const struct problem *problem = &plan->problem;
    const struct contraction_kernels *kernels = plan->device->kernels->contractions;
    const int64_t columns = kernels->columns[cls];
    const int64_t x = mf_factors_positions(problem, loops, 0), y = mf_factors_positions(problem, loops, 1),
                  most = kernels->rows * columns;
    return problem->reduced_total > TILE && x < most && y < most &&
           x * y * WASTE < round_up(x, kernels->rows) * columns;
}

int mf_contraction_fits(const struct mf_plan *plan, int r, struct product_form *form)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[r];
    struct factor_loops loops;
    if (r >= problem->program.reducer_count || !problem->reduced_total || !problem->kept_total ||
        reducer->cls > CLS_U64 || problem->reduced_total > (int64_t)TILE * TILE || /* tiles of tiles of tiles */
        !mf_product_find(&problem->program.map, reducer->arg[0], form))
        return 0;
    mf_factors_loops(problem, form->node, &loops);
    return loops.count[0] && loops.count[1] && !wastes_tiles(plan, reducer->cls, &loops);
}

/* ---- planning ---- */

/* What the thread with the most to do has, in panels, where tasks of so many, `others` of them beside each other, go to
 * whoever is free; the other factor's panels are packed for each task, which counts as a fifth of a panel. */
static double share_of(int64_t panels, int64_t own, int64_t others, int threads)
{
    const int64_t whole = panels / own * others, rest = panels % own, left = whole % threads;
    const int64_t idle = threads - left, rests = rest ? others : 0, last = (rests + idle - 1) / idle * rest;
    const int64_t most = whole / threads * own + (left && own > last ? own : last);
    return (double)most * (1 + 0.2 / (double)own);
}

/* Of a factor's panels, so many a block that the threads are done soonest: in at most TASKS_A_THREAD tasks each, or
 * as many as there have to be. */
static int64_t choose_own(int64_t panels, int64_t least_blocks, int64_t others, int threads)
{
    int64_t best = (panels + least_blocks - 1) / least_blocks;
    double shortest = share_of(panels, best, others, threads);
    for (int64_t own = best - 1; own > 0 && (panels + own - 1) / own * others <= (int64_t)TASKS_A_THREAD * threads;
         own--) {
        const double share = share_of(panels, own, others, threads);
        if (share < shortest) {
            shortest = share;
            best = own;
        }
    }
    return best;
}

/* Blocks of whole panels; more of them while there are too few tasks for the threads: of rows, then of columns too. */
static void plan_blocks(const struct mf_plan *plan, struct contraction *c)
{
    const int64_t most[FACTORS] = {BLOCK_ROWS, BLOCK_COLUMN_BYTES / c->size};
    c->tasks = c->batch;
    for (int f = 0; f < FACTORS; f++) {
        c->blocks[f] = (c->factor[f].total + most[f] - 1) / most[f];
        c->tasks *= c->blocks[f];
    }
    for (int f = 0; f < FACTORS; f++) {
        const struct factor *factor = &c->factor[f];
        const int64_t panels = (factor->total + factor->width - 1) / factor->width;
        const int64_t blocks = c->blocks[f];
        if (plan->threads > 1 && c->tasks < (int64_t)TASKS_A_THREAD * plan->threads)
            c->block[f] = choose_own(panels, blocks, c->tasks / blocks, plan->threads) * factor->width;
        else
            c->block[f] = round_up((factor->total + blocks - 1) / blocks, factor->width);
        c->blocks[f] = (factor->total + c->block[f] - 1) / c->block[f];
        c->tasks = c->tasks / blocks * c->blocks[f];
    }
}

static size_t lines(int64_t bytes)
{
    return (size_t)round_up(bytes, 64);
}

static void plan_memory(const struct mf_plan *plan, struct contraction *c, int arrays)
{
    c->worker_bytes = 0;
    for (int f = 0; f < FACTORS; f++) {
        c->panel_bytes[f] = lines(c->block[f] * PANEL_TERMS * c->size);
        c->flat_bytes[f] = lines(c->block[f] * 8);
        c->packer_bytes[f] = mf_packer_memory(&c->factor[f], c->block[f]);
        c->worker_bytes += c->panel_bytes[f] + c->flat_bytes[f] + c->packer_bytes[f];
    }
    c->value_bytes = lines(c->block[ROW_FACTOR] * c->block[COLUMN_FACTOR] * c->size);
    c->finish_bytes = mf_finish_memory(&c->finish, &plan->problem, c->block[COLUMN_FACTOR]);
    c->worker_bytes += c->value_bytes * (size_t)arrays + c->finish_bytes;
}

static void plan_factors(const struct mf_plan *plan, struct contraction *c, const struct product_form *form,
                         const struct nest *order)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const enum cls cls = problem->program.reducer[0].cls;
    const struct contraction_kernels *kernels = plan->device->kernels->contractions;
    struct factor_loops loops;
    int64_t weight[MAX_LOOPS], total = 1;
    mf_factors_loops(problem, form->node, &loops);
    for (int l = nest->kept - 1; l >= 0; total *= nest->size[l--])
        weight[l] = total;
    /* outputs are stored along the columns */
    int swap = loops.loop[0][loops.count[0] - 1] > loops.loop[1][loops.count[1] - 1];
    for (int f = 0; f < FACTORS; f++) {
        struct factor *factor = &c->factor[f];
        int from = f ^ swap;
        factor->node = form->node[from];
        factor->negate = form->negate[from];
        factor->width = f == ROW_FACTOR ? kernels->rows : kernels->columns[cls];
        mf_factor_plan(factor, problem, order, loops.count[from], loops.loop[from], loops.count[FACTORS],
                       loops.loop[FACTORS]);
        mf_walk_choose(&c->flat[f], nest->size, weight, loops.count[from], loops.loop[from]);
    }
    mf_walk_choose(&c->flat_batch, nest->size, weight, loops.count[FACTORS], loops.loop[FACTORS]);
    c->batch = problem->kept_total / c->factor[0].total / c->factor[1].total;
}

/* The kept loops in this order: those of the batch, of the rows, of the columns. So a row of a block's outputs is one
 * run, wherever its elements lie, which is finished together. */
static void group_loops(struct problem *problem, const struct product_form *form)
{
    struct nest *nest = &problem->memory;
    const struct nest old = *nest;
    struct factor_loops loops;
    mf_factors_loops(problem, form->node, &loops);
    const int swap = loops.loop[0][loops.count[0] - 1] > loops.loop[1][loops.count[1] - 1];
    const int lists[] = {FACTORS, ROW_FACTOR ^ swap, COLUMN_FACTOR ^ swap};
    int to = 0;
    for (int list = 0; list <= FACTORS; list++)
        for (int i = 0; i < loops.count[lists[list]]; i++, to++) {
            const int from = loops.loop[lists[list]][i];
            nest->size[to] = old.size[from];
            for (int o = 0; o < problem->input_count; o++)
                nest->in[o][to] = old.in[o][from];
            for (int k = 0; k < problem->output_count; k++)
                nest->out[k][to] = old.out[k][from];
            for (int w = 0; w < nest->window_count; w++)
                nest->window[w].step[to] = old.window[w].step[from];
        }
}

mf_status mf_contraction_plan(struct mf_plan *plan, struct contraction *c, const struct product_form *form,
                              enum term_numbers numbers, int arrays)
{
    group_loops(&plan->problem, form);
    c->size = (int64_t)mf_cls_size(plan->problem.program.reducer[0].cls);
    plan_factors(plan, c, form, numbers == WRITTEN_ORDER ? &plan->problem.written : &plan->problem.memory);
    MF_TRY(mf_term_order_make(&c->order, plan->problem.reduced_total, numbers != CONTRACT_ORDER));
    mf_finish_plan(&c->finish, &plan->problem, plan->device->kernels);
    plan_blocks(plan, c);
    plan_memory(plan, c, arrays > c->order.levels ? arrays : c->order.levels);
    return MF_OK;
}

void mf_contraction_print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct contraction *c = plan->data;
    snprintf(text, size,
             "%lld x %lld outputs in blocks of %lld x %lld, %lld of them; tiles of %lld x %lld; %lld block%s of terms",
             (long long)c->factor[ROW_FACTOR].total, (long long)c->factor[COLUMN_FACTOR].total,
             (long long)c->block[ROW_FACTOR], (long long)c->block[COLUMN_FACTOR], (long long)c->tasks,
             (long long)c->factor[ROW_FACTOR].width, (long long)c->factor[COLUMN_FACTOR].width,
             (long long)c->order.block_count, c->order.block_count == 1 ? "" : "s");
}

void mf_contraction_forget(struct mf_plan *plan)
{
    struct contraction *c = plan->data;
    if (c)
        mf_free(c->order.block);
}

/* ---- a thread's work on one block of outputs ---- */

struct job {
    const struct mf_plan *plan;
    const struct contraction *pass;
    int passes;
    const struct pointers *pointers;
    contraction_task *task;
    char *memory;
    size_t bytes; /* of a thread */
    atomic_int refused;
};

static void start_worker(struct contraction_worker *w, struct job *job, const struct contraction *c, char *memory)
{
    w->contraction = c;
    w->plan = job->plan;
    w->pointers = job->pointers;
    w->refused = &job->refused;
    for (int f = 0; f < FACTORS; f++) {
        w->panel[f] = memory;
        memory += c->panel_bytes[f];
        w->flat[f] = (int64_t *)(void *)memory;
        memory += c->flat_bytes[f];
        mf_packer_start(&w->packer[f], &c->factor[f], &w->plan->problem, w->plan->device->kernels, memory, c->block[f]);
        memory += c->packer_bytes[f];
    }
    mf_finish_start(&w->finish, &c->finish, w->plan, w->pointers, memory, c->block[COLUMN_FACTOR]);
    w->values = memory + c->finish_bytes;
}

static void place(struct contraction_worker *w, int64_t task)
{
    const struct contraction *c = w->contraction;
    const int64_t at[FACTORS] = {task / c->blocks[COLUMN_FACTOR] % c->blocks[ROW_FACTOR],
                                 task % c->blocks[COLUMN_FACTOR]};
    const int64_t batch = task / c->blocks[COLUMN_FACTOR] / c->blocks[ROW_FACTOR];
    const int64_t base = mf_walk_offset(&c->flat_batch, batch);
    for (int f = 0; f < FACTORS; f++) {
        int64_t first = at[f] * c->block[f], left = c->factor[f].total - first;
        w->count[f] = left < c->block[f] ? left : c->block[f];
        mf_packer_place(&w->packer[f], batch, first, w->count[f]);
        mf_walk_offsets(&c->flat[f], first, 1, w->count[f], w->flat[f]);
        for (int64_t p = 0; f == ROW_FACTOR && p < w->count[f]; p++)
            w->flat[f][p] += base;
    }
}

int mf_contraction_pack(struct contraction_worker *w, const struct term_block *block)
{
    int found = 0;
    for (int f = 0; f < FACTORS; f++)
        found |= mf_pack(&w->packer[f], w->pointers->in, &w->contraction->order, block, w->count[f], w->panel[f]) << f;
    return found;
}

void mf_contraction_tiles(struct contraction_worker *w, const struct term_block *block, contraction_fn *tile,
                          char *values)
{
    const struct contraction *c = w->contraction;
    const struct factor *row = &c->factor[ROW_FACTOR], *column = &c->factor[COLUMN_FACTOR];
    const int64_t pitch = c->block[COLUMN_FACTOR], terms = block->terms * c->size;
    for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j += column->width)
        for (int64_t i = 0; i < w->count[ROW_FACTOR]; i += row->width)
            tile(values + (i * pitch + j) * c->size, pitch, w->panel[ROW_FACTOR] + i * terms,
                 w->panel[COLUMN_FACTOR] + j * terms, c->order.leaf + block->leaf, block->leaves);
}

char *mf_contraction_values(const struct contraction_worker *w, int64_t array)
{
    return w->values + (size_t)array * w->contraction->value_bytes;
}

void mf_contraction_join(const struct contraction_worker *w, enum fold fold, char *left, const char *right)
{
    const struct contraction *c = w->contraction;
    const int64_t rows = round_up(w->count[ROW_FACTOR], c->factor[ROW_FACTOR].width);
    const void *x = right;
    w->plan->device->kernels->fold[fold][w->plan->problem.program.reducer[0].cls].chain(
        left, left, &x, 1, rows * c->block[COLUMN_FACTOR], NULL);
}

int64_t mf_contraction_fold(struct contraction_worker *w, const struct term_block *block, contraction_fn *tile,
                            enum fold fold, int64_t top)
{
    mf_contraction_tiles(w, block, tile, mf_contraction_values(w, top));
    for (int32_t j = 0; j < block->joins; j++, top--)
        mf_contraction_join(w, fold, mf_contraction_values(w, top - 1), mf_contraction_values(w, top));
    return top + 1;
}

/* Rows of outputs, as far as they lie beside each other. */
void mf_contraction_store(struct contraction_worker *w, contraction_states *states)
{
    const struct contraction *c = w->contraction;
    const int64_t *flat = w->flat[COLUMN_FACTOR], columns = w->count[COLUMN_FACTOR];
    for (int64_t i = 0; i < w->count[ROW_FACTOR]; i++)
        for (int64_t j = 0, n; j < columns; j += n) {
            for (n = 1; j + n < columns && flat[j + n] == flat[j] + n; n++) {
            }
            states(w, i * c->block[COLUMN_FACTOR] + j, n);
            mf_finish_store(&w->finish, w->flat[ROW_FACTOR][i] + flat[j], n, NULL);
        }
}

static void run_task(void *context, int64_t number, int thread)
{
    struct job *job = context;
    struct contraction_worker w[CONTRACTION_PASSES];
    char *memory = job->memory + (size_t)thread * job->bytes;
    if (atomic_load(&job->refused))
        return;
    for (int p = 0; p < job->passes; memory += job->pass[p++].worker_bytes) {
        start_worker(&w[p], job, &job->pass[p], memory);
        place(&w[p], number);
    }
    job->task(w);
}

mf_status mf_contraction_run_passes(const struct mf_plan *plan, const struct contraction *pass, int passes,
                                    const struct pointers *pointers, contraction_task *task, int *refused)
{
    const int threads = pass->tasks < plan->threads ? (int)pass->tasks : plan->threads;
    struct job job = {plan, pass, passes, pointers, task, NULL, 0, 0};
    for (int p = 0; p < passes; p++)
        job.bytes += pass[p].worker_bytes;
    job.memory = mf_alloc_aligned((size_t)threads * job.bytes);
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, pass->tasks, run_task, &job);
    if (refused)
        *refused = atomic_load(&job.refused);
    mf_free(job.memory);
    return MF_OK;
}

mf_status mf_contraction_run(const struct mf_plan *plan, const struct pointers *pointers, contraction_task *task,
                             int *refused)
{
    return mf_contraction_run_passes(plan, plan->data, 1, pointers, task, refused);
}
