/* Solver "contract": out[m, n] = fold over k of x[m, k] o y[k, n], for any modes, strides and types: a product of two
 * factors that have kept modes of their own, and one reducer whose state is one number.
 *
 * A task is a block of outputs. Both factors are packed for a few hundred terms at a time, in the order in which the
 * contract folds them; kernels hold a tile of outputs in registers. So each element is read once for every block of
 * outputs beside it, and no operand is copied or expanded as a whole.
 * Cost: M N K terms; packing M K (N / COLUMNS) + N K (M / ROWS) values. (Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication", 2008, for the blocks; the order of terms is contraction_order.c's.) */
#include "contraction.h"

#include <stdio.h>

/* Outputs of a task: panels and values of blocks stay in the second cache. */
enum { BLOCK_ROWS = 144, BLOCK_COLUMN_BYTES = 1024, TASKS_A_THREAD = 4 };

enum { ROW_FACTOR, COLUMN_FACTOR, FACTORS };

struct contract_plan {
    struct factor factor[FACTORS];
    enum product product;
    contraction_fn *tile[2]; /* where no term is a NaN; else */
    struct term_order order;
    struct finish_plan finish;
    struct walk flat[FACTORS], flat_batch; /* flat kept positions of the outputs */
    int64_t batch, block[FACTORS], blocks[FACTORS];
    int64_t size; /* bytes of a value */
    size_t panel_bytes[FACTORS], value_bytes, flat_bytes[FACTORS], packer_bytes[FACTORS], finish_bytes, worker_bytes;
};

/* ---- which folds ---- */

/* A reducer's argument as a product of two nodes. */
struct product_form {
    enum product product;
    int node[FACTORS], negate[FACTORS];
};

static int find_form(const struct pool *pool, int root, struct product_form *form)
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

/* Whether the node's values differ along a kept loop. */
static int varies(const struct problem *problem, int node, int loop)
{
    const struct node *n = &problem->program.map.node[node];
    if (n->op == OP_OPERAND)
        return problem->memory.in[n->index][loop] != 0;
    for (int a = 0; a < 3; a++)
        if (n->arg[a] >= 0 && varies(problem, n->arg[a], loop))
            return 1;
    return 0;
}

/* The kept loops of each factor alone, and of both or none. */
struct loops {
    int count[FACTORS + 1], loop[FACTORS + 1][MAX_LOOPS];
};

static void sort_loops(const struct problem *problem, const struct product_form *form, struct loops *loops)
{
    memset(loops, 0, sizeof *loops);
    for (int l = 0; l < problem->memory.kept; l++) {
        int x = varies(problem, form->node[0], l), y = varies(problem, form->node[1], l);
        int of = x == y ? FACTORS : x ? 0 : 1;
        loops->loop[of][loops->count[of]++] = l;
    }
}

static int64_t positions(const struct problem *problem, const struct loops *loops, int of)
{
    int64_t total = 1;
    for (int l = 0; l < loops->count[of]; l++)
        total *= problem->memory.size[loops->loop[of][l]];
    return total;
}

static int in_any_order(const struct reducer *reducer)
{
    return !mf_cls_is_float(reducer->cls) || (reducer->fold != FOLD_SUM && reducer->fold != FOLD_PROD);
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    struct product_form form;
    struct loops loops;
    if (problem->program.reducer_count != 1 || reducer->kind != RED_FOLD || problem->memory.window_count ||
        !problem->reduced_total || !problem->kept_total || !find_form(&problem->program.map, reducer->arg[0], &form) ||
        reducer->cls > CLS_U64 ||
        !plan->device->kernels->contractions->tile[form.product][reducer->fold][reducer->cls][1])
        return 0;
    if (!in_any_order(reducer) && problem->reduced_total > (int64_t)TILE * TILE)
        return 0; /* tiles of tiles of tiles */
    sort_loops(problem, &form, &loops);
    return loops.count[0] && loops.count[1];
}

/* ---- planning ---- */

static int64_t round_up(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Blocks of about equal size, of whole panels; more of them while there are too few tasks for the threads. */
static void plan_blocks(const struct mf_plan *plan, struct contract_plan *data)
{
    const int64_t most[FACTORS] = {BLOCK_ROWS, BLOCK_COLUMN_BYTES / data->size};
    int64_t tasks = data->batch;
    for (int f = 0; f < FACTORS; f++) {
        const struct factor *factor = &data->factor[f];
        data->blocks[f] = (factor->total + most[f] - 1) / most[f];
        tasks *= data->blocks[f];
    }
    for (int f = 0; f < FACTORS; f++) {
        const struct factor *factor = &data->factor[f];
        int64_t panels = (factor->total + factor->width - 1) / factor->width;
        while (plan->threads > 1 && tasks < (int64_t)TASKS_A_THREAD * plan->threads && data->blocks[f] * 2 <= panels) {
            data->blocks[f] *= 2;
            tasks *= 2;
        }
        data->block[f] = round_up((factor->total + data->blocks[f] - 1) / data->blocks[f], factor->width);
        data->blocks[f] = (factor->total + data->block[f] - 1) / data->block[f];
    }
}

static size_t lines(int64_t bytes)
{
    return (size_t)round_up(bytes, 64);
}

static void plan_memory(const struct mf_plan *plan, struct contract_plan *data)
{
    data->worker_bytes = 0;
    for (int f = 0; f < FACTORS; f++) {
        data->panel_bytes[f] = lines(data->block[f] * PANEL_TERMS * data->size);
        data->flat_bytes[f] = lines(data->block[f] * 8);
        data->packer_bytes[f] = mf_packer_memory(&data->factor[f], data->block[f]);
        data->worker_bytes += data->panel_bytes[f] + data->flat_bytes[f] + data->packer_bytes[f];
    }
    data->value_bytes = lines(data->block[ROW_FACTOR] * data->block[COLUMN_FACTOR] * data->size);
    data->finish_bytes = mf_finish_memory(&data->finish, &plan->problem, data->block[COLUMN_FACTOR]);
    data->worker_bytes += data->value_bytes * (size_t)data->order.levels + data->finish_bytes;
}

static void plan_factors(const struct mf_plan *plan, struct contract_plan *data)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct contraction_kernels *kernels = plan->device->kernels->contractions;
    struct product_form form;
    struct loops loops;
    int64_t weight[MAX_LOOPS], total = 1;
    find_form(&problem->program.map, reducer->arg[0], &form);
    sort_loops(problem, &form, &loops);
    for (int l = nest->kept - 1; l >= 0; total *= nest->size[l--])
        weight[l] = total;
    data->product = form.product;
    data->tile[1] = kernels->tile[form.product][reducer->fold][reducer->cls][1];
    data->tile[0] = kernels->tile[form.product][reducer->fold][reducer->cls][0];
    /* outputs are stored along the columns */
    int swap = loops.loop[0][loops.count[0] - 1] > loops.loop[1][loops.count[1] - 1];
    for (int f = 0; f < FACTORS; f++) {
        struct factor *factor = &data->factor[f];
        int from = f ^ swap;
        factor->node = form.node[from];
        factor->negate = form.negate[from];
        factor->looks_for_nans = data->tile[0] != NULL;
        factor->width = f == ROW_FACTOR ? kernels->rows : kernels->columns[reducer->cls];
        mf_factor_plan(factor, problem, loops.count[from], loops.loop[from], loops.count[FACTORS], loops.loop[FACTORS]);
        mf_walk_choose(&data->flat[f], nest->size, weight, loops.count[from], loops.loop[from]);
    }
    mf_walk_choose(&data->flat_batch, nest->size, weight, loops.count[FACTORS], loops.loop[FACTORS]);
    data->batch = positions(problem, &loops, FACTORS);
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    struct contract_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    data->size = (int64_t)mf_cls_size(reducer->cls);
    plan_factors(plan, data);
    MF_TRY(mf_term_order_make(&data->order, problem->reduced_total, in_any_order(reducer)));
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    plan_blocks(plan, data);
    plan_memory(plan, data);
    return MF_OK;
}

static void forget(struct mf_plan *plan)
{
    struct contract_plan *data = plan->data;
    if (data)
        mf_free(data->order.block);
}

/* ---- execution ---- */

struct job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory;
};

struct worker {
    const struct contract_plan *data;
    const struct job *job;
    struct packer packer[FACTORS];
    char *panel[FACTORS], *values;
    int64_t *flat[FACTORS], count[FACTORS]; /* outputs of the task */
    struct finish finish;
};

static void start_worker(struct worker *w, const struct job *job, int number)
{
    const struct contract_plan *data = job->plan->data;
    char *memory = job->memory + (size_t)number * data->worker_bytes;
    w->data = data;
    w->job = job;
    for (int f = 0; f < FACTORS; f++) {
        w->panel[f] = memory;
        memory += data->panel_bytes[f];
        w->flat[f] = (int64_t *)(void *)memory;
        memory += data->flat_bytes[f];
        mf_packer_start(&w->packer[f], &data->factor[f], &job->plan->problem, job->plan->device->kernels, memory,
                        data->block[f]);
        memory += data->packer_bytes[f];
    }
    mf_finish_start(&w->finish, &data->finish, job->plan, job->pointers, memory, data->block[COLUMN_FACTOR]);
    w->values = memory + data->finish_bytes;
}

static void place_task(struct worker *w, int64_t task)
{
    const struct contract_plan *data = w->data;
    const int64_t at[FACTORS] = {task / data->blocks[COLUMN_FACTOR] % data->blocks[ROW_FACTOR],
                                 task % data->blocks[COLUMN_FACTOR]};
    const int64_t batch = task / data->blocks[COLUMN_FACTOR] / data->blocks[ROW_FACTOR];
    const int64_t base = mf_walk_offset(&data->flat_batch, batch);
    for (int f = 0; f < FACTORS; f++) {
        int64_t first = at[f] * data->block[f], left = data->factor[f].total - first;
        w->count[f] = left < data->block[f] ? left : data->block[f];
        mf_packer_place(&w->packer[f], batch, first, w->count[f]);
        mf_walk_offsets(&data->flat[f], first, 1, w->count[f], w->flat[f]);
        for (int64_t p = 0; f == ROW_FACTOR && p < w->count[f]; p++)
            w->flat[f][p] += base;
    }
}

/* One block of terms into values: every tile of outputs. */
static void run_block(struct worker *w, const struct term_block *block, char *values)
{
    const struct contract_plan *data = w->data;
    const struct factor *row = &data->factor[ROW_FACTOR], *column = &data->factor[COLUMN_FACTOR];
    int not_finite = 0;
    for (int f = 0; f < FACTORS; f++)
        not_finite |= mf_pack(&w->packer[f], w->job->pointers->in, &data->order, block, w->count[f], w->panel[f]);
    contraction_fn *tile = data->tile[0] && !not_finite ? data->tile[0] : data->tile[1];
    const int64_t pitch = data->block[COLUMN_FACTOR], terms = block->terms * data->size;
    for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j += column->width)
        for (int64_t i = 0; i < w->count[ROW_FACTOR]; i += row->width)
            tile(values + (i * pitch + j) * data->size, pitch, w->panel[ROW_FACTOR] + i * terms,
                 w->panel[COLUMN_FACTOR] + j * terms, data->order.leaf + block->leaf, block->leaves);
}

static void join_values(const struct worker *w, char *left, const char *right)
{
    const struct reducer *reducer = &w->job->plan->problem.program.reducer[0];
    const int64_t rows = round_up(w->count[ROW_FACTOR], w->data->factor[ROW_FACTOR].width);
    const void *x = right;
    w->job->plan->device->kernels->fold[reducer->fold][reducer->cls].chain(left, left, &x, 1,
                                                                           rows * w->data->block[COLUMN_FACTOR], NULL);
}

/* Rows of outputs, as far as they lie beside each other. */
static void store_values(struct worker *w)
{
    const struct contract_plan *data = w->data;
    const int64_t *flat = w->flat[COLUMN_FACTOR], columns = w->count[COLUMN_FACTOR];
    for (int64_t i = 0; i < w->count[ROW_FACTOR]; i++)
        for (int64_t j = 0, n; j < columns; j += n) {
            for (n = 1; j + n < columns && flat[j + n] == flat[j] + n; n++) {
            }
            w->finish.block.state[0][0] = w->values + (i * data->block[COLUMN_FACTOR] + j) * data->size;
            mf_finish_store(&w->finish, w->flat[ROW_FACTOR][i] + flat[j], n, NULL);
        }
}

static void task(void *context, int64_t number, int thread)
{
    struct worker w;
    start_worker(&w, context, thread);
    place_task(&w, number);
    int64_t top = 0;
    for (int64_t b = 0; b < w.data->order.block_count; b++) {
        const struct term_block *block = &w.data->order.block[b];
        run_block(&w, block, w.values + (size_t)top * w.data->value_bytes);
        for (int32_t j = 0; j < block->joins; j++, top--)
            join_values(&w, w.values + (size_t)(top - 1) * w.data->value_bytes,
                        w.values + (size_t)top * w.data->value_bytes);
        top++;
    }
    store_values(&w);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct contract_plan *data = plan->data;
    const int64_t tasks = data->batch * data->blocks[ROW_FACTOR] * data->blocks[COLUMN_FACTOR];
    const int threads = tasks < plan->threads ? (int)tasks : plan->threads;
    struct job job = {plan, pointers, mf_alloc_aligned((size_t)threads * data->worker_bytes)};
    if (!job.memory)
        return MF_ERROR_MEMORY;
    mf_parallel(plan->device->threads, threads, tasks, task, &job);
    mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct contract_plan *data = plan->data;
    snprintf(text, size,
             "%lld x %lld outputs in blocks of %lld x %lld, %lld of them; tiles of %lld x %lld; %lld block%s of terms",
             (long long)data->factor[ROW_FACTOR].total, (long long)data->factor[COLUMN_FACTOR].total,
             (long long)data->block[ROW_FACTOR], (long long)data->block[COLUMN_FACTOR],
             (long long)(data->batch * data->blocks[ROW_FACTOR] * data->blocks[COLUMN_FACTOR]),
             (long long)data->factor[ROW_FACTOR].width, (long long)data->factor[COLUMN_FACTOR].width,
             (long long)data->order.block_count, data->order.block_count == 1 ? "" : "s");
}

const struct solver mf_solver_contract = {
    "contract", "a product of two factors, folded: tiles of outputs over packed panels",
    applicable, make,
    execute,    print,
    forget,
};
