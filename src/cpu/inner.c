/* Solver "inner": any fold, row by row. A row is the reduced elements of one output in the contract's order.
 *
 * Rows of at most one tile are folded many at a time; longer rows tile by tile, and their tiles' states once more.
 * An argument that is an operand with contiguous rows is read from memory by the fold kernels; any other one is
 * evaluated, block by block, into rows in the nearest cache first, which serves every stride, type and expression.
 * A long row's argmin or argmax is first the tiles' least or greatest values, and then an index in the first tile that
 * has the best one. A few long rows are shared by all threads tile by tile. Rows made of short runs that lie beside
 * their neighbours' are read together, run by run, so that memory is read in its order, and so are rows of a few whole
 * tiles that touch. Several reducers of one operand are one kernel's where it has them all, moments among them; else
 * they take turns over what stays in the second cache.
 * Rows of one fold that touch, and whose outputs do, need no finish part: the kernel stores the outputs.
 * Cost: every element once; where evaluated, one more pass in cache an operation. Temporaries: one state a tile, of up
 * to MOST_TILES rows that are read together. */
#include "inner.h"
#include "narrow.h"

#include <stdio.h>

enum { GROUP_BYTES = 512 << 10, STRAIGHT_BYTES = 256 << 10, SPLIT_TILES = 16 };

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    if (!problem->program.reducer_count || !problem->reduced_total)
        return 0;
    /* an identity can stand for elements outside their windows, but not in a count, an index or a user's state */
    for (int r = 0; problem->memory.window_count && r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind != RED_FOLD && problem->program.reducer[r].kind != RED_LSE)
            return 0;
    return 1;
}

static int same_order(const struct problem *problem)
{
    const struct nest *a = &problem->memory, *b = &problem->written;
    if (a->reduced != b->reduced)
        return 0;
    for (int l = a->kept; l < a->kept + a->reduced; l++) {
        if (a->size[l] != b->size[l])
            return 0;
        for (int i = 0; i < problem->input_count; i++)
            if (a->in[i][l] != b->in[i][l])
                return 0;
    }
    return 1;
}

static int wants_written(const struct reducer *reducer)
{
    return reducer->kind == RED_ARG || (reducer->kind == RED_USER && !reducer->user->is.commutative);
}

/* Whether a reducer adds the squares of an operand, and a kernel does. */
static int is_squares(const struct mf_plan *plan, const struct reducer *reducer)
{
    const struct problem *problem = &plan->problem;
    return mf_reducer_is_squares(problem, reducer) &&
           plan->device->kernels->squares[problem->in_type[mf_reducer_operand(problem, reducer)]];
}

/* The terms of two operands that a reducer adds, if a kernel does. */
static enum term_kind term_of(const struct mf_plan *plan, const struct reducer *reducer, int operand[2])
{
    const enum term_kind term = mf_reducer_term(&plan->problem, reducer, operand);
    return term && plan->device->kernels->products[plan->problem.in_type[operand[0]]].rows ? term : NO_TERM;
}

/* Whether rows of n elements of an operand, or their tiles, lie together in memory. */
static int rows_lie_together(const struct walk *walk, int64_t n)
{
    const int64_t run = walk->size[walk->loops - 1];
    return walk->stride[walk->loops - 1] == 1 && (run % n == 0 || (n > TILE && run % TILE == 0));
}

int mf_inner_kernels_read(const struct mf_plan *plan, const struct reducer *reducer, enum dtype type)
{
    const struct kernels *k = plan->device->kernels;
    return mf_is_class_type(type) || (reducer->kind == RED_FOLD && k->fold_from[reducer->fold][type].rows) ||
           (reducer->kind == RED_ARG && k->arg_from[reducer->fold == FOLD_MAX][type]) ||
           (reducer->kind == RED_MOMENTS && k->moments_from[type]) || (reducer->kind == RED_LSE && k->lse_from[type]);
}

/* Whether reducer r's kernels can read rows of n elements (or their tiles) of its argument from memory. */
static int reads_memory(const struct mf_plan *plan, const struct pass *pass, const struct reducer *reducer, int64_t n)
{
    const enum op op = plan->problem.program.map.node[reducer->arg[0]].op;
    const int squares = is_squares(plan, reducer), bytes = mf_reducer_is_lse_of_bytes(&plan->problem, reducer);
    int factor[2];
    /* shorter rows of terms that are no products are as fast evaluated, or faster */
    const enum term_kind term = pass->nest->window_count ? NO_TERM : term_of(plan, reducer, factor);
    if (term == TERM_PRODUCT || (term && n >= LANES / 2))
        return rows_lie_together(&pass->block.walk[factor[0]], n) && rows_lie_together(&pass->block.walk[factor[1]], n);
    if ((op != OP_OPERAND && !squares && !bytes) || reducer->kind == RED_USER || pass->nest->window_count)
        return 0;
    const int operand = mf_reducer_operand(&plan->problem, reducer);
    return (squares || mf_inner_kernels_read(plan, reducer, plan->problem.in_type[operand])) &&
           rows_lie_together(&pass->block.walk[operand], n);
}

static void plan_pass(struct mf_plan *plan, struct pass *pass, const struct nest *nest)
{
    struct inner_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    pass->nest = nest;
    for (int i = 0; i < problem->input_count; i++)
        mf_walk_make(&pass->block.walk[i], nest->kept + nest->reduced, nest->size, nest->in[i]);
    data->beside = mf_inner_gathers(plan, pass);
    data->gathers = data->beside > 0;
    for (int q = 0; q < pass->reducer_count; q++) {
        int r = pass->reducer[q];
        const struct reducer *reducer = &problem->program.reducer[r];
        data->straight[r] = data->gathers || reads_memory(plan, pass, reducer, data->elements);
        data->squares[r] = data->straight[r] && is_squares(plan, reducer);
        int factor[2];
        data->term[r] = data->straight[r] ? term_of(plan, reducer, factor) : NO_TERM;
        data->factor[r] = data->term[r] ? factor[1] : -1;
        for (int a = 0; a < reducer->arg_count && !data->straight[r]; a++) {
            int known = 0;
            for (int k = 0; k < pass->root_count; k++)
                known |= pass->root[k] == reducer->arg[a];
            if (!known)
                pass->root[pass->root_count++] = reducer->arg[a];
        }
    }
    pass->evaluates = pass->root_count > 0;
    pass->block.windows = nest->window_count ? nest : NULL;
    mf_block_plan(&pass->block, &problem->program.map, pass->root, pass->root_count, problem->in_type);
    const int size = nest->window_count ? 0
                                        : mf_narrow_rows(&pass->block, plan, pass->reducer, pass->reducer_count,
                                                         data->straight, data->row_type);
    for (int k = 0; k < pass->root_count; k++)
        pass->row_size[k] = size ? size : (int)mf_cls_size(problem->program.map.node[pass->root[k]].cls);
    pass->limit = pass->block.narrow ? TILE : BLOCK;
    const int64_t turned = nest->window_count ? 0 : mf_block_plan_turned(&pass->block);
    data->split_tiles = turned / TILE > data->split_tiles ? turned / TILE : data->split_tiles;
}

/* Whether all reducers are the moments of one operand, or of bytes the sum of its squares, and its sum, least or
 * greatest value (each once), in rows of a step at least, as the summary kernels want them of floats. */
static int is_summary(const struct mf_plan *plan)
{
    enum { MOMENTS = FOLD_COUNT };
    const struct inner_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    const struct program *program = &problem->program;
    if (program->reducer_count < 2 || data->pass_count > 1 || !data->straight[0])
        return 0;
    const int operand = mf_reducer_operand(problem, &program->reducer[0]);
    const int adds_squares = mf_dtypes[problem->in_type[operand]].size == 1;
    int seen[MOMENTS + 1] = {0};
    if (data->elements < LANES && !adds_squares)
        return 0;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        int is_moments = adds_squares ? data->squares[r] : reducer->kind == RED_MOMENTS;
        int is_fold = reducer->kind == RED_FOLD && !data->squares[r] && data->factor[r] < 0 &&
                      reducer->fold <= FOLD_MAX && reducer->fold != FOLD_PROD;
        if (!data->straight[r] || (!is_fold && !is_moments) || mf_reducer_operand(problem, reducer) != operand ||
            seen[is_moments ? MOMENTS : reducer->fold]++)
            return 0;
    }
    return seen[MOMENTS] && plan->device->kernels->summary[problem->in_type[operand]];
}

/* Whether rows lie one after the other, so do their outputs, and a kernel can store them: the fold's own, of 64-bit
 * integers a copy, of 16-bit floats sums. */
static enum answers rows_are_answers(const struct mf_plan *plan)
{
    const struct inner_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    if (problem->program.reducer_count != 1 || !data->straight[0] || data->squares[0] || data->factor[0] >= 0 ||
        data->tiles > 1 || data->windows)
        return NO_ANSWERS;
    const int operand = problem->program.map.node[problem->program.reducer[0].arg[0]].index;
    const struct walk *walk = &data->pass[0].block.walk[operand], *out = &data->finish.out.walk[0];
    if (walk->loops != 1 || out->loops != 1 || out->stride[0] != 1)
        return NO_ANSWERS;
    const struct reducer *reducer = &problem->program.reducer[0];
    const enum answers answers = mf_finish_answers(plan);
    const enum dtype type = problem->out_type[0];
    if (!mf_is_class_type(type))
        return data->finish.out.sums ? answers : NO_ANSWERS;
    if (reducer->cls == CLS_I64 || reducer->cls == CLS_U64)
        return answers;
    answers_fn *kernel = plan->device->kernels->fold[reducer->fold][reducer->cls].answers;
    return mf_is_class_type(problem->in_type[operand]) && kernel ? answers : NO_ANSWERS;
}

/* Whether the only reducer is an argument that its kernels read from memory in tiles. Not of bf16, where they are
 * faster than those of its extremes. */
static int wants_values(const struct mf_plan *plan)
{
    const struct inner_plan *data = plan->data;
    const struct program *program = &plan->problem.program;
    return program->reducer_count == 1 && program->reducer[0].kind == RED_ARG && data->straight[0] && data->tiles > 1 &&
           !data->gathers && plan->problem.in_type[mf_reducer_operand(&plan->problem, &program->reducer[0])] != DT_bf16;
}

/* Positions that are evaluated at once. */
static int64_t block_limit(const struct inner_plan *data, const struct pass *pass)
{
    return data->elements < pass->limit / data->unit_rows ? data->elements * data->unit_rows : pass->limit;
}

/* Whether rows that are whole tiles follow each other in memory, in all operands. */
static int rows_touch(const struct mf_plan *plan)
{
    const struct inner_plan *data = plan->data;
    int touch = data->elements % TILE == 0;
    for (int r = 0; r < plan->problem.program.reducer_count; r++) {
        const int operand[] = {mf_reducer_operand(&plan->problem, &plan->problem.program.reducer[r]), data->factor[r]};
        for (int k = 0; k < 2 && operand[k] >= 0; k++) {
            const struct walk *walk = &data->pass[0].block.walk[operand[k]];
            const int64_t run = walk->size[walk->loops - 1];
            touch &= run > data->elements && run % data->elements == 0;
        }
    }
    return touch;
}

/* Runs of a few tiles, far from an output's next run but close to its neighbour's: pages and the processor's
 * prefetcher want memory read in its order. And rows of a few tiles: between them nothing should wait. */
static void plan_beside(struct mf_plan *plan)
{
    enum { FEWEST = 4 };
    struct inner_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    const struct nest *nest = data->pass[0].nest;
    const int operand = mf_reducer_operand(&plan->problem, &problem->program.reducer[0]);
    const int several = problem->program.reducer_count > 1 && !data->summary;
    if (!data->straight[0] || data->pass[0].evaluates || data->gathers || data->pass_count > 1 || data->tiles == 1 ||
        !nest->kept)
        return;
    const struct walk *walk = &data->pass[0].block.walk[operand];
    const int64_t run = walk->size[walk->loops - 1], share = problem->kept_total / plan->threads;
    const int item = mf_dtypes[problem->in_type[operand]].size;
    data->rows_beside = rows_touch(plan);
    if (!data->rows_beside &&
        (several || run % TILE || run == data->elements || nest->in[operand][nest->kept - 1] != run ||
         data->elements % TILE || (data->factor[0] >= 0 && data->factor[0] != operand)))
        return;
    data->run_tiles = data->rows_beside ? data->tiles : run / TILE;
    const int64_t most = (several ? SEVERAL_TILES : MOST_TILES / (item < 4 ? item : 4)) / data->run_tiles;
    data->beside = most < share ? most : share;
    data->beside = data->beside < FEWEST ? 0 : data->beside;
}

static void plan_sizes(struct mf_plan *plan)
{
    struct inner_plan *data = plan->data;
    const struct problem *problem = &plan->problem;
    int64_t item = problem->input_count ? mf_dtypes[problem->in_type[0]].size : 1;
    int64_t unit = data->elements < TILE ? TILE / data->elements : 1;
    int64_t by_size = GROUP_BYTES / item / data->elements, share = problem->kept_total / (4 * plan->threads);
    data->unit_rows = unit < BLOCK ? unit : BLOCK;
    if (!data->pass[0].evaluates && !data->pass[1].evaluates) {
        /* the kernels read memory; several do it in turn, and all but the first find it in the second cache */
        unit = problem->program.reducer_count == 1 || data->summary ? BLOCK : STRAIGHT_BYTES / item / data->elements;
        data->unit_rows = unit < 1 ? 1 : unit < BLOCK ? unit : BLOCK;
    }
    if (plan->threads > 1 && by_size > share)
        by_size = share;
    by_size = by_size < 1 ? 1 : by_size;
    data->group = data->beside ? data->beside : by_size > BLOCK ? BLOCK : by_size;
    data->batch = (by_size + data->group - 1) / data->group;
    data->split = plan->threads > 1 && !data->windows && data->tiles >= 2 * data->split_tiles &&
                  problem->kept_total < 4 * plan->threads;
    int64_t rows = data->unit_rows * (data->tiles > 1 ? TILE : data->elements);
    data->row_bytes = ((size_t)rows * 8 + 63) / 64 * 64;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        size_t states = reducer->kind == RED_USER ? (size_t)rows * reducer->user->is.state_size : 0;
        data->user_bytes = states > data->user_bytes ? (states + 63) / 64 * 64 : data->user_bytes;
        if (data->tiles > 1)
            data->states_bytes +=
                ((size_t)(data->tiles * (data->beside ? data->beside : 1)) * mf_inner_state_size(reducer) + 63) / 64 *
                64;
    }
    data->finish_bytes = mf_finish_memory(&data->finish, problem, data->split ? problem->kept_total : data->group);
    data->worker_bytes = data->finish_bytes + data->user_bytes + (data->windows ? 2 * data->row_bytes : 0) +
                         (data->split ? 0 : data->states_bytes);
    if (data->gathers)
        data->worker_bytes += mf_inner_gather_bytes(plan, data->beside);
    for (int p = 0; p < data->pass_count; p++)
        data->worker_bytes += mf_block_memory(&data->pass[p].block, block_limit(data, &data->pass[p])) +
                              (size_t)data->pass[p].root_count * data->row_bytes;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct inner_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    data->elements = problem->reduced_total;
    data->tiles = (data->elements + TILE - 1) / TILE;
    data->windows = problem->memory.window_count > 0;
    data->split_tiles = SPLIT_TILES;
    memset(data->row_type, 0xff, sizeof data->row_type);
    data->fetches = mf_reads_memory(problem);
    int same = same_order(problem);
    for (int r = 0; r < problem->program.reducer_count; r++) {
        int second = !same && wants_written(&problem->program.reducer[r]);
        struct pass *pass = &data->pass[second];
        pass->reducer[pass->reducer_count++] = r;
    }
    if (!data->pass[0].reducer_count) { /* all of them want the other order */
        data->pass[0] = data->pass[1];
        data->pass_count = 1;
        plan_pass(plan, &data->pass[0], &problem->written);
    } else {
        data->pass_count = data->pass[1].reducer_count ? 2 : 1;
        plan_pass(plan, &data->pass[0], &problem->memory);
        if (data->pass_count == 2)
            plan_pass(plan, &data->pass[1], &problem->written);
    }
    data->summary = is_summary(plan);
    data->by_value = wants_values(plan);
    plan_beside(plan);
    mf_finish_plan(&data->finish, problem, plan->device->kernels);
    data->answers = rows_are_answers(plan);
    data->past_cache = data->finish.out.stream;
    plan_sizes(plan);
    return MF_OK;
}

/* ---- execution ---- */

struct job {
    const struct mf_plan *plan;
    const struct pointers *pointers;
    char *memory, *shared_states;
};

static void lay_out_states(const struct mf_plan *plan, char *memory, int64_t rows, struct tile_states *states)
{
    const struct inner_plan *data = plan->data;
    for (int r = 0; r < plan->problem.program.reducer_count; r++) {
        states->of[r] = memory;
        memory +=
            ((size_t)(rows * data->tiles) * mf_inner_state_size(&plan->problem.program.reducer[r]) + 63) / 64 * 64;
    }
}

static void start_worker(struct worker *w, const struct job *job, int number, int64_t group)
{
    const struct inner_plan *data = job->plan->data;
    char *memory = job->memory + (size_t)number * data->worker_bytes;
    w->plan = job->plan;
    w->inner = data;
    w->kernels = job->plan->device->kernels;
    w->pointers = job->pointers;
    mf_finish_start(&w->finish, &data->finish, job->plan, job->pointers, memory, group);
    memory += data->finish_bytes;
    w->user = memory;
    memory += data->user_bytes;
    if (data->windows) {
        w->masked = memory;
        w->valid = (uint8_t *)memory + data->row_bytes;
        memory += 2 * data->row_bytes;
    }
    if (data->gathers) {
        w->gathered = memory;
        memory += mf_inner_gather_bytes(job->plan, data->beside);
    }
    if (data->tiles > 1 && !data->split) {
        lay_out_states(job->plan, memory, data->beside ? data->beside : 1, &w->states);
        memory += data->states_bytes;
    }
    for (int p = 0; p < data->pass_count; p++) {
        if (!data->pass[p].evaluates)
            continue;
        mf_block_start(&w->block[p], &data->pass[p].block, w->kernels, memory, block_limit(data, &data->pass[p]));
        w->block[p].fetch_ahead = data->fetches;
        memory += mf_block_memory(&data->pass[p].block, block_limit(data, &data->pass[p]));
        for (int r = 0; r < data->pass[p].root_count; r++, memory += data->row_bytes)
            w->rows[data->pass[p].root[r]] = memory;
    }
}

/* Tiles first ... last-1 of output o, into tile states t ...; results at index i are overwritten. */
static void tiles_of_row(struct worker *w, int64_t o, int64_t first, int64_t last, int64_t t, int64_t i)
{
    const struct inner_plan *data = w->inner;
    for (int64_t tile = first; tile < last;) {
        const int64_t e = tile * TILE, done = mf_inner_tiles(w, o * data->elements + e, last - tile, t + tile - first);
        for (int p = 0; !done && p < data->pass_count; p++)
            mf_inner_tile(w, p, o * data->elements + e, data->elements - e < TILE ? data->elements - e : TILE, e,
                          t + tile - first, i);
        tile += done ? done : 1;
    }
}

/* All tiles of one output. */
static void long_row(struct worker *w, int64_t o, int64_t i)
{
    const struct inner_plan *data = w->inner;
    tiles_of_row(w, o, 0, data->tiles, 0, i);
    mf_inner_join(w, &w->states, o, 1, i);
}

/* n outputs whose runs lie together, but for those that begin a new round of the last kept loop. */
static void runs_beside(struct worker *w, int64_t first, int64_t n)
{
    const struct inner_plan *data = w->inner;
    const struct nest *nest = data->pass[0].nest;
    for (int64_t i = 0; i < n;) {
        const int64_t left = nest->size[nest->kept - 1] - (first + i) % nest->size[nest->kept - 1];
        const int64_t here = n - i < left ? n - i : left;
        if (data->gathers)
            mf_inner_gathered(w, first + i, here, i);
        else
            mf_inner_beside(w, first + i, here, i);
        i += here;
    }
}

static void group_of_rows(struct worker *w, int64_t first, int64_t n)
{
    const struct inner_plan *data = w->inner;
    if (data->windows)
        memset(w->counts, 0, sizeof w->counts);
    if (data->beside) {
        (data->rows_beside ? mf_inner_rows_beside : runs_beside)(w, first, n);
        if (data->tiles > 1)
            mf_inner_join(w, &w->states, first, n, 0);
    } else if (data->tiles > 1)
        for (int64_t i = 0; i < n; i++)
            long_row(w, first + i, i);
    else
        for (int64_t i = 0; i < n; i += data->unit_rows) {
            int64_t rows = n - i < data->unit_rows ? n - i : data->unit_rows;
            for (int p = 0; p < data->pass_count; p++)
                mf_inner_rows(w, p, (first + i) * data->elements, rows, data->elements, i);
        }
    mf_finish_store(&w->finish, first, n, data->windows ? w->counts : NULL);
}

/* Groups t * batch ... */
static void group_task(void *context, int64_t t, int number)
{
    const struct job *job = context;
    const struct inner_plan *data = job->plan->data;
    struct worker w;
    int64_t first = t * data->batch * data->group, last = first + data->batch * data->group;
    if (last > job->plan->problem.kept_total)
        last = job->plan->problem.kept_total;
    start_worker(&w, job, number, last - first < data->group ? last - first : data->group);
    if (data->answers) {
        mf_inner_answers(&w, first, last - first);
        return;
    }
    for (int64_t o = first; o < last; o += data->group)
        group_of_rows(&w, o, last - o < data->group ? last - o : data->group);
}

/* Tiles t * split_tiles ... of all rows together. */
static void split_task(void *context, int64_t t, int number)
{
    const struct job *job = context;
    const struct inner_plan *data = job->plan->data;
    struct worker w;
    start_worker(&w, job, number, 1);
    lay_out_states(job->plan, job->shared_states, job->plan->problem.kept_total, &w.states);
    int64_t last = (t + 1) * data->split_tiles, all = job->plan->problem.kept_total * data->tiles;
    last = last < all ? last : all;
    for (int64_t i = t * data->split_tiles; i < last;) {
        int64_t o = i / data->tiles, tile = i % data->tiles, left = data->tiles - tile;
        int64_t here = last - i < left ? last - i : left;
        tiles_of_row(&w, o, tile, tile + here, i, 0);
        i += here;
    }
}

static void run_split(struct job *job, int threads)
{
    const struct inner_plan *data = job->plan->data;
    int64_t kept = job->plan->problem.kept_total, all = kept * data->tiles;
    const int64_t tasks = (all + data->split_tiles - 1) / data->split_tiles;
    mf_parallel(job->plan->device->threads, threads, tasks, split_task, job);
    struct worker w;
    start_worker(&w, job, 0, kept);
    lay_out_states(job->plan, job->shared_states, kept, &w.states);
    mf_inner_join(&w, &w.states, 0, kept, 0);
    mf_finish_store(&w.finish, 0, kept, NULL);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct inner_plan *data = plan->data;
    int64_t kept = plan->problem.kept_total, per_task = data->group * data->batch,
            tasks = (kept + per_task - 1) / per_task;
    int threads = data->split || tasks > plan->threads ? plan->threads : (int)tasks;
    struct job job = {plan, pointers, NULL, NULL};
    _Alignas(64) char small[40 << 10];
    size_t states = data->split ? (size_t)kept * data->states_bytes + 64 * MAX_REDUCERS : 0;
    size_t all = (size_t)threads * data->worker_bytes + states;
    job.memory = all <= sizeof small ? small : mf_alloc_aligned(all);
    if (!job.memory)
        return MF_ERROR_MEMORY;
    job.shared_states = job.memory + (size_t)threads * data->worker_bytes;
    if (data->split)
        run_split(&job, threads);
    else
        mf_parallel(plan->device->threads, threads, tasks, group_task, &job);
    if (job.memory != small)
        mf_free(job.memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct inner_plan *data = plan->data;
    int straight = 0;
    for (int r = 0; r < plan->problem.program.reducer_count; r++)
        straight += data->straight[r];
    snprintf(
        text, size,
        "rows of %lld elements, %lld tile%s each; %d of %d reducers read memory themselves; %s shared by all threads",
        (long long)data->elements, (long long)data->tiles, data->tiles == 1 ? "" : "s", straight,
        plan->problem.program.reducer_count,
        data->split     ? "tiles"
        : data->gathers ? "outputs gathered to rows and"
        : data->beside  ? "outputs read beside each other and"
                        : "outputs");
}

const struct solver mf_solver_inner = {
    "inner", "row by row: tiles of 4096 elements, 128 lanes", applicable, make, execute, print, NULL,
};
