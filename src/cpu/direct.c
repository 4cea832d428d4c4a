/* Solver "direct": out[m, n] = end(sum over k of x[m, k] * y[k, n] + c[n]) of f32, where any order of terms will do:
 * convolutions and products of matrices whose columns lie beside each other.
 *
 * Nothing is packed: y, the weights, is read as panels of neighbouring columns, best kept that way by the caller
 * (modes "oijcp" with p the columns of a panel), and x, windows too, term by term where it lies. Terms are cut into
 * blocks, so that a block of y stays in the second cache while all tiles of rows pass by it; the block that comes next
 * is fetched meanwhile. Sums of earlier blocks wait in the output.
 * Cost: M N K fused multiply-adds, which are the bound; y is read once for each chunk of rows from memory, x once for
 * each panel from the second cache. Error: docs/numerics.md, section 13. */
#include <stdio.h>

#include "../factors.h"
#include "contraction.h"
#include "cpu.h"
#include "direct_kernels.h"

enum { RUN_TERMS = 1024, Y_BLOCK_BYTES = 128 << 10, CHUNK_ROWS = 338, MOST_RUNS = 1 << 14, MOST_PLACES = 1 << 22 };

/* The finish part: leaky or relu, or none, of the sum, or the sum plus an operand. */
struct direct_finish {
    enum direct_end end;
    float slope;
    int bias; /* operand, or -1 */
};

/* Whose loops are whose. */
struct direct_form {
    struct product_form product;
    struct factor_loops loops;
    int x, y;         /* lists of loops */
    int operand[2];   /* by list */
    int columns, row; /* the loops of a tile */
    struct direct_finish finish;
};

struct direct_plan {
    int x, y, bias; /* operands */
    enum direct_end end;
    float slope;
    int64_t x_pitch, y_pitch, out_pitch;
    int64_t row_size, row_tiles;       /* of the loop that tiles' rows count */
    int64_t lines, columns, batch;     /* other positions of x; tiles of columns; positions of both */
    int64_t chunk, chunks;             /* lines of a task */
    int64_t tile_columns, column_size; /* of a tile, of the column loop */
    struct direct_run *run;
    int64_t run_count, *block, block_count; /* first run of every block; one more */
    int64_t *line_x, *line_out;
    struct walk y_walk[3], batch_walk[4]; /* of y, out, bias; of x, y, out, bias */
    struct direct_run runs[];
};

static const struct node *finish_node(const struct problem *problem, int n)
{
    return &problem->program.finish.node[n];
}

/* A sum is its state + 0, so that no zero is negative; ours begins at 0. */
static const struct node *without_zero(const struct problem *problem, const struct node *n)
{
    const struct node *zero = n->op == OP_add ? finish_node(problem, n->arg[1]) : n;
    return zero->op == OP_CONST && zero->value.f32 == 0 ? finish_node(problem, n->arg[0]) : n;
}

static int find_finish(const struct problem *problem, struct direct_finish *f)
{
    const struct node *n = finish_node(problem, problem->program.output[0]);
    *f = (struct direct_finish){DIRECT_PLAIN, 0, -1};
    if (n->op == OP_leaky && finish_node(problem, n->arg[1])->op == OP_CONST) {
        f->end = DIRECT_LEAKY;
        f->slope = finish_node(problem, n->arg[1])->value.f32;
    } else if (n->op == OP_relu) {
        f->end = DIRECT_RELU;
    }
    if (f->end != DIRECT_PLAIN)
        n = finish_node(problem, n->arg[0]);
    n = without_zero(problem, n);
    if (n->op == OP_add) {
        const struct node *left = finish_node(problem, n->arg[0]), *right = finish_node(problem, n->arg[1]);
        const struct node *operand = left->op == OP_OPERAND ? left : right;
        if (operand->op != OP_OPERAND || problem->in_type[operand->index] != DT_f32)
            return 0;
        f->bias = operand->index;
        n = without_zero(problem, operand == left ? right : left);
    }
    return n->op == OP_STATE && n->cls == CLS_F32;
}

/* The last loop of a list with this stride in an output or an operand; -1 where there is none. */
static int last_with(const struct factor_loops *loops, int list, const int64_t *stride, int64_t wanted)
{
    int found = -1;
    for (int l = 0; l < loops->count[list]; l++)
        if (stride[loops->loop[list][l]] == wanted)
            found = loops->loop[list][l];
    return found;
}

/* Which factor has columns, and which loop they are. */
static int find_columns(const struct problem *problem, int64_t vector, struct direct_form *form)
{
    const struct nest *nest = &problem->memory;
    for (form->y = 0; form->y < FACTORS; form->y++) {
        const struct node *node = &problem->program.map.node[form->product.node[form->y]];
        form->columns = last_with(&form->loops, form->y, nest->out[0], 1);
        if (form->columns >= 0 && nest->in[node->index][form->columns] == 1 && nest->size[form->columns] % vector == 0)
            break;
    }
    form->x = 1 - form->y;
    return form->y < FACTORS;
}

/* The bias repeats along x, and its columns lie beside each other. */
static int bias_fits(const struct problem *problem, const struct direct_form *form)
{
    const int bias = form->finish.bias;
    if (bias < 0)
        return 1;
    for (int l = 0; l < form->loops.count[form->x]; l++)
        if (problem->memory.in[bias][form->loops.loop[form->x][l]])
            return 0;
    return problem->memory.in[bias][form->columns] == 1;
}

static int is_plain(const struct problem *problem, const struct direct_form *form, int f)
{
    const struct node *node = &problem->program.map.node[form->product.node[f]];
    return node->op == OP_OPERAND && problem->in_type[node->index] == DT_f32;
}

static int find_form(const struct mf_plan *plan, struct direct_form *form)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    if (!(problem->program.reducer_count == 1 && problem->output_count == 1 && problem->out_type[0] == DT_f32 &&
          reducer->kind == RED_FOLD && reducer->fold == FOLD_SUM && reducer->cls == CLS_F32 && nest->reduced &&
          problem->reduced_total && problem->kept_total && !nest->window_count &&
          mf_product_find(&problem->program.map, reducer->arg[0], &form->product) &&
          form->product.product == PRODUCT_MUL && is_plain(problem, form, 0) && is_plain(problem, form, 1) &&
          find_finish(problem, &form->finish)))
        return 0;
    mf_factors_loops(problem, form->product.node, &form->loops);
    if (!form->loops.count[0] || !form->loops.count[1] ||
        !find_columns(problem, plan->device->kernels->contractions->direct_columns / 2, form))
        return 0;
    for (int f = 0; f < FACTORS; f++)
        form->operand[f] = problem->program.map.node[form->product.node[f]].index;
    if (nest->in[form->operand[form->x]][nest->kept + nest->reduced - 1] != 1)
        return 0; /* rows are read along their terms */
    form->row = form->loops.loop[form->x][form->loops.count[form->x] - 1];
    return bias_fits(problem, form);
}

/* Runs of terms: the last reduced loop in pieces, for every position of the others. */
static int64_t count_runs(const struct nest *nest)
{
    const int last = nest->kept + nest->reduced - 1;
    int64_t runs = (nest->size[last] + RUN_TERMS - 1) / RUN_TERMS;
    for (int l = nest->kept; l < last && runs <= MOST_RUNS; l++)
        runs = nest->size[l] > MOST_RUNS ? MOST_RUNS + 1 : runs * nest->size[l];
    return runs;
}

static int64_t count_lines(const struct problem *problem, const struct direct_form *form)
{
    return mf_factors_positions(problem, &form->loops, form->x) / problem->memory.size[form->row];
}

static int applicable(const struct mf_plan *plan)
{
    struct direct_form form;
    return find_form(plan, &form) && count_runs(&plan->problem.memory) <= MOST_RUNS &&
           count_lines(&plan->problem, &form) <= MOST_PLACES;
}

/* ---- planning ---- */

static void plan_runs(const struct nest *nest, const int operand[2], int x, struct direct_plan *data)
{
    const int first = nest->kept, last = nest->kept + nest->reduced - 1, y = 1 - x;
    const int64_t *x_stride = nest->in[operand[x]], *y_stride = nest->in[operand[y]];
    struct walk x_walk, y_walk;
    int64_t others = 1;
    for (int l = first; l < last; l++)
        others *= nest->size[l];
    mf_walk_make(&x_walk, last - first, nest->size + first, x_stride + first);
    mf_walk_make(&y_walk, last - first, nest->size + first, y_stride + first);
    data->y_pitch = y_stride[last];
    data->run = data->runs;
    for (int64_t o = 0; o < others; o++)
        for (int64_t k = 0; k < nest->size[last]; k += RUN_TERMS) {
            const int64_t left = nest->size[last] - k;
            data->run[data->run_count++] =
                (struct direct_run){mf_walk_offset(&x_walk, o) + k, mf_walk_offset(&y_walk, o) + k * data->y_pitch,
                                    left < RUN_TERMS ? left : RUN_TERMS};
        }
}

/* Blocks of runs whose y fits into a part of the second cache. */
static void plan_blocks(struct direct_plan *data)
{
    const int64_t most = Y_BLOCK_BYTES / (data->tile_columns * (int64_t)sizeof(float));
    int64_t terms = 0;
    for (int64_t r = 0; r < data->run_count; r++) {
        if (!r || terms + data->run[r].terms > most) {
            data->block[data->block_count++] = r;
            terms = 0;
        }
        terms += data->run[r].terms;
    }
    data->block[data->block_count] = data->run_count;
}

/* Some of a list's loops, without one. */
static int without(const struct factor_loops *loops, int list, int loop, int *rest)
{
    int count = 0;
    for (int l = 0; l < loops->count[list]; l++)
        if (loops->loop[list][l] != loop)
            rest[count++] = loops->loop[list][l];
    return count;
}

static void plan_places(const struct problem *problem, const struct direct_form *form, struct direct_plan *data)
{
    static const int64_t nothing[MAX_LOOPS];
    const struct nest *nest = &problem->memory;
    const int64_t *x = nest->in[data->x], *y = nest->in[data->y], *out = nest->out[0];
    const int64_t *bias = data->bias < 0 ? nothing : nest->in[data->bias];
    const int64_t *const y_stride[3] = {y, out, bias}, *const batch_stride[4] = {x, y, out, bias};
    int rest[MAX_LOOPS], count = without(&form->loops, form->x, form->row, rest);
    struct walk x_walk, out_walk;
    mf_walk_choose(&x_walk, nest->size, x, count, rest);
    mf_walk_choose(&out_walk, nest->size, out, count, rest);
    for (int64_t l = 0; l < data->lines; l++) {
        data->line_x[l] = mf_walk_offset(&x_walk, l);
        data->line_out[l] = mf_walk_offset(&out_walk, l);
    }
    count = without(&form->loops, form->y, form->columns, rest);
    for (int i = 0; i < 3; i++)
        mf_walk_choose(&data->y_walk[i], nest->size, y_stride[i], count, rest);
    for (int i = 0; i < 4; i++)
        mf_walk_choose(&data->batch_walk[i], nest->size, batch_stride[i], form->loops.count[FACTORS],
                       form->loops.loop[FACTORS]);
}

/* Tiles of rows and columns, and chunks of lines, as many that every thread has several. */
static void plan_tiles(const struct mf_plan *plan, const struct direct_form *form, struct direct_plan *data)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const struct contraction_kernels *kernels = plan->device->kernels->contractions;
    data->row_size = nest->size[form->row];
    data->row_tiles = (data->row_size + kernels->direct_rows - 1) / kernels->direct_rows;
    data->lines = count_lines(problem, form);
    data->column_size = nest->size[form->columns];
    data->tile_columns = kernels->direct_columns < data->column_size ? kernels->direct_columns : data->column_size;
    data->columns = mf_factors_positions(problem, &form->loops, form->y) / data->column_size *
                    ((data->column_size + data->tile_columns - 1) / data->tile_columns);
    data->batch = mf_factors_positions(problem, &form->loops, FACTORS);
    data->chunk = CHUNK_ROWS / data->row_size > 1 ? CHUNK_ROWS / data->row_size : 1;
    data->chunks = (data->lines + data->chunk - 1) / data->chunk;
    while (data->chunk > 1 && data->chunks * data->columns * data->batch < 4 * plan->threads) {
        data->chunk = (data->chunk + 1) / 2;
        data->chunks = (data->lines + data->chunk - 1) / data->chunk;
    }
}

static mf_status make(struct mf_plan *plan)
{
    const struct nest *nest = &plan->problem.memory;
    struct direct_form form;
    find_form(plan, &form);
    const int64_t runs = count_runs(nest), lines = count_lines(&plan->problem, &form);
    struct direct_plan *data = plan->data =
        mf_calloc(sizeof *data + (size_t)runs * sizeof *data->runs + (size_t)(runs + 1 + 2 * lines) * sizeof(int64_t));
    if (!data)
        return MF_ERROR_MEMORY;
    data->block = (int64_t *)(void *)(data->runs + runs);
    data->line_x = data->block + runs + 1;
    data->line_out = data->line_x + lines;
    data->x = form.operand[form.x];
    data->y = form.operand[form.y];
    data->bias = form.finish.bias;
    data->end = form.finish.end;
    data->slope = form.finish.slope;
    data->x_pitch = nest->in[data->x][form.row];
    data->out_pitch = nest->out[0][form.row];
    plan_tiles(plan, &form, data);
    plan_runs(nest, form.operand, form.x, data);
    plan_blocks(data);
    plan_places(&plan->problem, &form, data);
    return MF_OK;
}

/* ---- executing ---- */

struct direct_job {
    const struct mf_plan *plan;
    const struct direct_plan *data;
    const float *x, *y, *bias;
    float *out;
    direct_fn *kernel;
};

/* All tiles of some lines over one block of terms. */
static void run_block(const struct direct_job *job, struct direct_tile *tile, const struct direct_tile *at,
                      int64_t first_line, int64_t lines)
{
    const struct direct_plan *d = job->data;
    const int64_t each = d->row_size / d->row_tiles, longer = d->row_size % d->row_tiles;
    for (int64_t l = first_line; l < first_line + lines; l++) {
        tile->x = at->x + d->line_x[l];
        tile->out = at->out + d->line_out[l];
        for (int64_t t = 0; t < d->row_tiles; t++) {
            tile->rows = (int)(each + (t < longer));
            job->kernel(tile);
            tile->x += tile->rows * d->x_pitch;
            tile->out += tile->rows * d->out_pitch;
            tile->fetch += tile->fetch_step * tile->fetches;
        }
    }
}

/* Where a tile of columns begins, in a batch. */
static void place(const struct direct_job *job, int64_t batch, int64_t column, struct direct_tile *at)
{
    const struct direct_plan *d = job->data;
    const int64_t tiles = (d->column_size + d->tile_columns - 1) / d->tile_columns;
    const int64_t panel = column / tiles, inside = column % tiles * d->tile_columns;
    at->x = job->x + mf_walk_offset(&d->batch_walk[0], batch);
    at->y = job->y + mf_walk_offset(&d->batch_walk[1], batch) + mf_walk_offset(&d->y_walk[0], panel) + inside;
    at->out = job->out + mf_walk_offset(&d->batch_walk[2], batch) + mf_walk_offset(&d->y_walk[1], panel) + inside;
    at->bias =
        job->bias ? job->bias + mf_walk_offset(&d->batch_walk[3], batch) + mf_walk_offset(&d->y_walk[2], panel) + inside
                  : NULL;
    at->half = d->column_size - inside <= d->tile_columns / 2 ||
               d->column_size <= job->plan->device->kernels->contractions->direct_columns / 2;
}

/* The block of y that comes after this one; after the last, that of the panel this thread will probably have next.
 * Where panels are no blocks of memory of their own, nothing. */
static void plan_fetch(const struct direct_job *job, int64_t number, int64_t block, int64_t lines,
                       struct direct_tile *tile)
{
    const struct direct_plan *d = job->data;
    const int64_t next = block + 1 < d->block_count ? block + 1 : 0, item = (int64_t)sizeof(float);
    const int64_t column = number % d->columns + (next ? 0 : job->plan->threads);
    int64_t terms = 0;
    tile->fetch = (const char *)tile->y;
    tile->fetch_step = tile->fetches = 0;
    if (d->y_pitch != d->tile_columns || d->column_size != d->tile_columns || column >= d->columns)
        return;
    for (int64_t r = d->block[block]; r < d->block[block + 1]; r++) {
        tile->fetches += d->run[r].terms / DIRECT_STEP;
        terms += d->run[r].terms;
    }
    tile->fetch = (const char *)(tile->y + mf_walk_offset(&d->y_walk[0], column) -
                                 mf_walk_offset(&d->y_walk[0], number % d->columns) + d->run[d->block[next]].y);
    if (tile->fetches)
        tile->fetch_step = terms * d->tile_columns * item / (tile->fetches * lines * d->row_tiles) + 1;
}

static void run_task(void *context, int64_t number, int thread)
{
    const struct direct_job *job = context;
    const struct direct_plan *d = job->data;
    const int64_t column = number % d->columns, chunk = number / d->columns % d->chunks;
    const int64_t first = chunk * d->chunk, left = d->lines - first, lines = left < d->chunk ? left : d->chunk;
    struct direct_tile at, tile;
    (void)thread;
    place(job, number / d->columns / d->chunks, column, &at);
    tile = at;
    tile.x_pitch = d->x_pitch;
    tile.y_pitch = d->y_pitch;
    tile.out_pitch = d->out_pitch;
    tile.end = d->end;
    tile.slope = d->slope;
    for (int64_t b = 0; b < d->block_count; b++) {
        tile.run = d->run + d->block[b];
        tile.runs = d->block[b + 1] - d->block[b];
        tile.goes_on = b > 0;
        tile.ends = b + 1 == d->block_count;
        plan_fetch(job, number, b, lines, &tile);
        run_block(job, &tile, &at, first, lines);
    }
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct direct_plan *d = plan->data;
    struct direct_job job = {plan,
                             d,
                             (const float *)(const void *)pointers->in[d->x],
                             (const float *)(const void *)pointers->in[d->y],
                             d->bias < 0 ? NULL : (const float *)(const void *)pointers->in[d->bias],
                             (float *)(void *)pointers->out[0],
                             plan->device->kernels->contractions->direct};
    mf_parallel(plan->device->threads, plan->threads, d->columns * d->chunks * d->batch, run_task, &job);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct direct_plan *d = plan->data;
    snprintf(text, size,
             "%lld x %lld rows in chunks of %lld, %lld tile%s of %lld columns, %lld runs of terms in %lld block%s; "
             "order: free",
             (long long)d->lines, (long long)d->row_size, (long long)(d->chunk * d->row_size), (long long)d->columns,
             d->columns == 1 ? "" : "s", (long long)d->tile_columns, (long long)d->run_count, (long long)d->block_count,
             d->block_count == 1 ? "" : "s");
}

const struct solver mf_solver_direct = {
    "direct",   "sums of products in any order, read in place: tiles of outputs in registers",
    applicable, make,
    execute,    print,
    NULL,
};
