/* Solver "inner", the inside: from flat positions to values, from values to states. */
#include "inner.h"

#include "../user.h"

size_t mf_inner_state_size(const struct reducer *reducer)
{
    return reducer->kind == RED_FOLD   ? mf_cls_size(reducer->cls)
           : reducer->kind == RED_USER ? (reducer->user->is.state_size + 15) / 16 * 16
                                       : sizeof(struct state);
}

/* Evaluates positions f ... f+n-1 of the pass's roots into w->rows, a block at a time. */
static void evaluate(struct worker *w, int p, int64_t f, int64_t n)
{
    const struct pass *pass = &w->inner->pass[p];
    struct block *block = &w->block[p];
    for (int64_t done = 0; done < n; done += pass->limit) {
        int64_t here = n - done < pass->limit ? n - done : pass->limit;
        for (int r = 0; r < pass->root_count; r++)
            block->redirect[pass->root[r]] = w->rows[pass->root[r]] + done * pass->row_size[r];
        mf_block_evaluate(block, w->pointers->in, f + done, here);
        for (int r = 0; r < pass->root_count; r++) {
            int node = pass->root[r];
            if (block->reg[node] == block->redirect[node])
                continue;
            const struct node *root = &pass->block.pool->node[node];
            const int64_t ahead =
                root->op == OP_OPERAND ? mf_walk_ahead(&pass->block.walk[root->index], pass->row_size[r]) : 0;
            mf_copy_run(block->redirect[node], block->reg[node], here * pass->row_size[r], ahead);
        }
    }
}

/* How many of `rows` rows of n elements from flat position f lie at one pitch in memory, and where. */
static int64_t straight_rows(const struct walk *walk, int item, const char *base, int64_t f, int64_t rows, int64_t n,
                             struct source *source)
{
    int last = walk->loops - 1;
    int64_t run = walk->size[last], left = (run - f % run) / n;
    source->item = item;
    source->pitch = n;
    source->x = (const char *)((uintptr_t)base + (uintptr_t)(mf_walk_offset(walk, f) * item));
    if (last > 0 && run == n) {
        int64_t size = walk->size[last - 1];
        left = size - f / run % size;
        source->pitch = walk->stride[last - 1];
    }
    return left < rows ? left : rows;
}

int64_t mf_inner_find_rows(const struct worker *w, int p, int r, int64_t f, int64_t rows, int64_t n,
                           struct source *source)
{
    const struct problem *problem = &w->plan->problem;
    const struct walk *walk = w->inner->pass[p].block.walk;
    const int operand = mf_reducer_operand(problem, &problem->program.reducer[r]), factor = w->inner->factor[r];
    const int item = mf_dtypes[problem->in_type[operand]].size;
    struct source other;
    if (factor >= 0) {
        rows = straight_rows(&walk[factor], item, w->pointers->in[factor], f, rows, n, &other);
        source->y = other.x;
        source->y_pitch = other.pitch;
    }
    return straight_rows(&walk[operand], item, w->pointers->in[operand], f, rows, n, source);
}

/* Counts the positions that take part, for rows of n elements of outputs i ... */
static void count_valid(struct worker *w, int p, int64_t f, int64_t rows, int64_t n, int64_t i)
{
    mf_window_valid(w->inner->pass[p].nest, f, rows * n, w->valid);
    for (int64_t row = 0; row < rows; row++) {
        int64_t count = 0;
        for (int64_t e = 0; e < n; e++)
            count += w->valid[row * n + e];
        w->counts[i + row] += count;
    }
}

/* Reducer r's n evaluated values with its identity where they take no part: combining with it changes nothing. */
static char *mask(struct worker *w, int r, int64_t n)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    const char *rows = w->rows[reducer->arg[0]];
    union value identity = mf_state_identity(reducer).v[0];
    size_t size = mf_cls_size(reducer->cls);
    for (int64_t i = 0; i < n; i++)
        memcpy(w->masked + (size_t)i * size, w->valid[i] ? rows + (size_t)i * size : (const char *)&identity, size);
    return w->masked;
}

/* Where the evaluated values of reducer r's argument are. */
static const char *evaluated(struct worker *w, int r, int64_t n)
{
    return w->inner->windows ? mask(w, r, n) : w->rows[w->plan->problem.program.reducer[r].arg[0]];
}

char *mf_inner_part(struct worker *w, int r, int p, int64_t i, size_t size)
{
    char *array = w->finish.results.part[r][p];
    return array ? array + (size_t)i * size : NULL;
}

int mf_inner_keeps_value(const struct worker *w, const struct reducer *reducer)
{
    return reducer->kind == RED_FOLD || w->inner->by_value;
}

void mf_inner_fold_rows(void *first, void *second, const struct worker *w, int r, const struct source *source, int from,
                        int64_t rows, int64_t n)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    const struct kernels *k = w->kernels;
    enum cls cls = reducer->cls;
    if (w->inner->factor[r] >= 0) {
        const enum dtype type = w->plan->problem.in_type[w->inner->factor[r]];
        k->products[type].rows(first, source->x, source->y, rows, n, source->pitch, source->y_pitch, w->inner->term[r]);
        return;
    }
    switch (mf_inner_keeps_value(w, reducer) ? RED_FOLD : reducer->kind) {
    case RED_FOLD:
        (w->inner->squares[r] ? k->squares[w->plan->problem.in_type[mf_reducer_operand(&w->plan->problem, reducer)]]
         : from >= 0          ? k->fold_from[reducer->fold][from].rows
                              : k->fold[reducer->fold][cls].rows)(first, source->x, rows, n, source->pitch);
        break;
    case RED_MOMENTS:
        (from >= 0 ? k->moments_from[from] : k->moments[cls].rows)(first, second, source->x, rows, n, source->pitch);
        break;
    case RED_LSE:
        (from >= 0 ? k->lse_from[from] : k->lse[cls].rows)(first, second, source->x, rows, n, source->pitch);
        break;
    default:
        (from >= 0 ? k->arg_from[reducer->fold == FOLD_MAX][from]
                   : k->arg[reducer->fold == FOLD_MAX][cls].rows)(first, second, source->x, rows, n, source->pitch);
        break;
    }
}

/* The same, to index i of the worker's results. */
static void fold_rows(struct worker *w, int r, const struct source *source, int from, int64_t rows, int64_t n,
                      int64_t i)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    size_t size = mf_cls_size(reducer->cls);
    void *second = reducer->kind == RED_FOLD ? NULL : mf_inner_part(w, r, 1, i, reducer->kind == RED_ARG ? 8 : size);
    mf_inner_fold_rows(mf_inner_part(w, r, 0, i, size), second, w, r, source, from, rows, n);
}

void mf_inner_user_finish(struct worker *w, int r, const char *states, int64_t n, int64_t i)
{
    const mf_operation *op = &w->plan->problem.program.reducer[r].user->is;
    void *to[MAX_REDUCER_ARGS];
    size_t size = op->output_type == MF_F32 ? 4 : 8;
    for (int k = 0; k < op->output_count; k++)
        to[k] = mf_inner_part(w, r, k, i, size);
    op->finish(op->context, n, states, to);
}

/* The states of `rows` evaluated rows of n elements, in w->user. */
static void user_rows(struct worker *w, int r, int64_t rows, int64_t n)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    const mf_operation *op = &reducer->user->is;
    const void *values[MAX_REDUCER_ARGS];
    for (int a = 0; a < reducer->arg_count; a++)
        values[a] = w->rows[reducer->arg[a]];
    op->lift(op->context, rows * n, values, w->user);
    mf_user_fold_rows(op, w->user, rows, n);
}

int mf_inner_memory_type(const struct worker *w, int r)
{
    const struct problem *problem = &w->plan->problem;
    const enum dtype type = problem->in_type[mf_reducer_operand(problem, &problem->program.reducer[r])];
    return mf_dtypes[type].size == (int)mf_cls_size(mf_dtypes[type].cls) ? -1 : (int)type;
}

/* Reducers after the first read what is in the cache already; memory may bring the next rows meanwhile: share q of
 * them, n elements from flat position f on. */
static void fetch_ahead(const struct worker *w, int p, int64_t f, int64_t n, int q)
{
    const struct pass *pass = &w->inner->pass[p];
    const struct reducer *reducer = &w->plan->problem.program.reducer[pass->reducer[0]];
    if (!pass->evaluates || !w->inner->straight[pass->reducer[0]])
        return;
    int input = mf_reducer_operand(&w->plan->problem, reducer);
    int64_t item = mf_dtypes[w->plan->problem.in_type[input]].size, share = n * item / (pass->reducer_count - 1);
    uintptr_t at = (uintptr_t)w->pointers->in[input] + (uintptr_t)(mf_walk_offset(&pass->block.walk[input], f) * item);
    for (int64_t i = share * (q - 1); i < share * q; i += 64)
        __builtin_prefetch((const void *)(at + (uintptr_t)i), 0, 2);
}

/* All reducers of a summary: `rows` rows of n elements from flat position f. */
static void summarize(struct worker *w, int64_t f, int64_t rows, int64_t n, int64_t i)
{
    const struct program *program = &w->plan->problem.program;
    const int operand = mf_reducer_operand(&w->plan->problem, &program->reducer[0]);
    const enum dtype type = w->plan->problem.in_type[operand];
    const size_t size = mf_cls_size(program->reducer[0].cls);
    for (int64_t done = 0; done < rows;) {
        struct source source;
        struct summary out = {NULL, NULL, NULL, NULL, NULL, NULL};
        int64_t here = straight_rows(&w->inner->pass[0].block.walk[operand], mf_dtypes[type].size,
                                     w->pointers->in[operand], f + done * n, rows - done, n, &source);
        for (int r = 0; r < program->reducer_count; r++) {
            const struct reducer *reducer = &program->reducer[r];
            void *second = reducer->kind == RED_MOMENTS ? mf_inner_part(w, r, 1, i + done, size) : NULL;
            mf_summary_place(&out, &w->plan->problem, reducer, mf_inner_part(w, r, 0, i + done, size), second);
        }
        w->kernels->summary[type](&out, source.x, here, n, source.pitch);
        done += here;
    }
}

void mf_inner_rows(struct worker *w, int p, int64_t f, int64_t rows, int64_t n, int64_t i)
{
    const struct pass *pass = &w->inner->pass[p];
    if (w->inner->summary) {
        summarize(w, f, rows, n, i);
        return;
    }
    if (pass->evaluates)
        evaluate(w, p, f, rows * n);
    if (w->inner->windows)
        count_valid(w, p, f, rows, n, i);
    for (int q = 0; q < pass->reducer_count; q++) {
        int r = pass->reducer[q];
        const struct reducer *reducer = &w->plan->problem.program.reducer[r];
        if (q)
            fetch_ahead(w, p, f + rows * n, rows * n, q);
        if (reducer->kind == RED_USER) {
            user_rows(w, r, rows, n);
            mf_inner_user_finish(w, r, w->user, rows, i);
            continue;
        }
        if (!w->inner->straight[r]) {
            struct source source = {evaluated(w, r, rows * n), n, 0, NULL, 0};
            fold_rows(w, r, &source, w->inner->row_type[r], rows, n, i);
            continue;
        }
        const int from = mf_inner_memory_type(w, r);
        for (int64_t done = 0; done < rows;) {
            struct source source;
            const int64_t here = mf_inner_find_rows(w, p, r, f + done * n, rows - done, n, &source);
            fold_rows(w, r, &source, from, here, n, i + done);
            done += here;
        }
    }
}

/* Answers by way of states, a piece of them at a time, which stays in the nearest cache. */
static void answers_by_piece(struct worker *w, char *to, const char *from, int64_t n, int type, int item)
{
    enum { PIECE = 512 };
    const struct inner_plan *data = w->inner;
    const enum dtype out = w->plan->problem.out_type[0];
    const int64_t row = data->elements * item;
    _Alignas(64) union value piece[PIECE];
    for (int64_t i = 0; i < n; i += PIECE, from += PIECE * row, to += PIECE * mf_dtypes[out].size) {
        const int64_t here = n - i < PIECE ? n - i : PIECE;
        const struct source source = {from, data->elements, item, NULL, 0};
        const int direct = mf_is_class_type(out) && !data->past_cache;
        mf_inner_fold_rows(direct ? (void *)to : piece, NULL, w, 0, &source, type, here, data->elements);
        if (!mf_is_class_type(out))
            w->kernels->sums[out](to, piece, here, data->past_cache);
        else if (!direct)
            w->kernels->stream(to, piece, here * mf_dtypes[out].size);
    }
}

void mf_inner_answers(struct worker *w, int64_t o, int64_t n)
{
    const struct inner_plan *data = w->inner;
    const struct problem *problem = &w->plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    const enum dtype type = problem->out_type[0];
    const int from = mf_inner_memory_type(w, 0), operand = mf_reducer_operand(problem, reducer);
    const int item = mf_dtypes[problem->in_type[operand]].size;
    const struct walk *walk = &data->pass[0].block.walk[operand], *out = &data->finish.out.walk[0];
    const char *x = w->pointers->in[operand] + mf_walk_offset(walk, o * data->elements) * item;
    char *to = w->pointers->out[0] + mf_walk_offset(out, o) * mf_dtypes[type].size;
    answers_fn *answers = w->kernels->fold[reducer->fold][reducer->cls].answers;
    if (answers && mf_is_class_type(type))
        answers(to, x, n, data->elements, data->answers, data->past_cache);
    else
        answers_by_piece(w, to, x, n, from, item);
}

void mf_inner_keep_state(struct worker *w, int r, int64_t n, int64_t e, int64_t t, const void *first,
                         const void *second)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    size_t size = mf_inner_state_size(reducer), value = mf_cls_size(reducer->cls);
    if (mf_inner_keeps_value(w, reducer)) {
        mf_copy_value(w->states.of[r] + (size_t)t * value, first, value);
        return;
    }
    char *to = w->states.of[r] + (size_t)t * size;
    struct state state;
    memset(&state, 0, sizeof state);
    mf_copy_value(&state.v[0], first, value);
    state.n = n;
    if (reducer->kind == RED_ARG)
        state.n = *(const int64_t *)second + e;
    else
        mf_copy_value(&state.v[1], second, value);
    memcpy(to, &state, sizeof state);
}

void mf_inner_tile(struct worker *w, int p, int64_t f, int64_t n, int64_t e, int64_t t, int64_t i)
{
    const struct pass *pass = &w->inner->pass[p];
    if (pass->evaluates)
        evaluate(w, p, f, n);
    if (w->inner->windows)
        count_valid(w, p, f, 1, n, i);
    for (int q = 0; q < pass->reducer_count; q++) {
        int r = pass->reducer[q];
        const struct reducer *reducer = &w->plan->problem.program.reducer[r];
        if (q)
            fetch_ahead(w, p, f + n, n, q);
        if (reducer->kind == RED_USER) {
            user_rows(w, r, 1, n);
            memcpy(w->states.of[r] + (size_t)t * mf_inner_state_size(reducer), w->user, reducer->user->is.state_size);
            continue;
        }
        struct source source = {NULL, n, 0, NULL, 0};
        int from = -1;
        if (!w->inner->straight[r]) {
            source.x = evaluated(w, r, n);
            from = w->inner->row_type[r];
        } else {
            from = mf_inner_memory_type(w, r);
            mf_inner_find_rows(w, p, r, f, 1, n, &source);
        }
        union value first, second;
        mf_inner_fold_rows(&first, &second, w, r, &source, from, 1, n);
        mf_inner_keep_state(w, r, n, e, t, &first, &second);
    }
}

enum { SUMMARY_REDUCERS = 4 }; /* at most: sum, min, max, moments */

void mf_inner_fold_tiles(struct worker *w, int r, int end, const struct source *source, int64_t n, int64_t tiles,
                         int64_t t, int64_t run, int64_t first)
{
    const struct program *program = &w->plan->problem.program;
    union value buffer[SUMMARY_REDUCERS][2][MOST_TILES], (*results)[2][MOST_TILES] = buffer;
    void *to[SUMMARY_REDUCERS];
    for (int q = r; q < end; q++) {
        const struct reducer *reducer = &program->reducer[q];
        const size_t at = (size_t)(first * w->inner->tiles + t) * mf_cls_size(reducer->cls);
        to[q - r] =
            run == tiles && mf_inner_keeps_value(w, reducer) ? (void *)(w->states.of[q] + at) : (void *)&results[q - r];
    }
    if (end - r > 1) {
        struct summary out = {NULL, NULL, NULL, NULL, NULL, NULL};
        for (int q = 0; q < end; q++)
            mf_summary_place(&out, &w->plan->problem, &program->reducer[q], to[q], results[q][1]);
        const int operand = mf_reducer_operand(&w->plan->problem, &program->reducer[0]);
        w->kernels->summary[w->plan->problem.in_type[operand]](&out, source->x, tiles, n, source->pitch);
    } else {
        mf_inner_fold_rows(to[0], results[0][1], w, r, source, mf_inner_memory_type(w, r), tiles, n);
    }
    for (int q = r; q < end; q++, results++) {
        if (to[q - r] != (void *)results)
            continue;
        const size_t size = mf_cls_size(program->reducer[q].cls);
        const size_t second = program->reducer[q].kind == RED_ARG ? 8 : size;
        for (int64_t k = 0, tile = t, output = first; k < tiles; k++) {
            mf_inner_keep_state(w, q, n, tile * TILE, output * w->inner->tiles + tile,
                                (char *)results[0][0] + (size_t)k * size, (char *)results[0][1] + (size_t)k * second);
            if (++tile == t + run) {
                tile = t;
                output++;
            }
        }
    }
}

void mf_inner_beside(struct worker *w, int64_t o, int64_t outputs, int64_t i)
{
    enum { START_BYTES = 4096 }; /* of the next run, to which no prefetcher jumps; asked for a run earlier */
    const struct inner_plan *data = w->inner;
    const int operand = mf_reducer_operand(&w->plan->problem, &w->plan->problem.program.reducer[0]);
    const struct walk *walk = &data->pass[0].block.walk[operand];
    const int item = mf_dtypes[w->plan->problem.in_type[operand]].size;
    uintptr_t next = (uintptr_t)w->pointers->in[operand] + (uintptr_t)(mf_walk_offset(walk, o * data->elements) * item);
    for (int64_t t = 0; t < data->tiles; t += data->run_tiles) {
        const struct source source = {(const char *)next, TILE, item, (const char *)next, TILE}; /* or its squares */
        if (t + data->run_tiles < data->tiles)
            next = (uintptr_t)w->pointers->in[operand] +
                   (uintptr_t)(mf_walk_offset(walk, o * data->elements + (t + data->run_tiles) * TILE) * item);
        for (uintptr_t j = 0; j < START_BYTES; j += 64)
            __builtin_prefetch((const void *)(next + j), 0, 2);
        mf_inner_fold_tiles(w, 0, w->plan->problem.program.reducer_count, &source, TILE, outputs * data->run_tiles, t,
                            data->run_tiles, i);
    }
}

void mf_inner_rows_beside(struct worker *w, int64_t o, int64_t n)
{
    const struct inner_plan *data = w->inner;
    const int count = w->plan->problem.program.reducer_count;
    for (int r = 0, end; r < count; r = end) {
        end = data->summary ? count : r + 1;
        for (int64_t done = 0, rows; done < n; done += rows) {
            struct source source;
            rows = mf_inner_find_rows(w, 0, r, (o + done) * data->elements, n - done, data->elements, &source);
            source.pitch = source.y_pitch = TILE;
            mf_inner_fold_tiles(w, r, end, &source, TILE, rows * data->tiles, 0, data->tiles, done);
        }
    }
}

/* The states of tiles t ... t+n-1 of a long row lie where nothing was read for long: stores to them would wait for
 * memory, and all later ones for these. */
static void fetch_states(const struct worker *w, int64_t t, int64_t n)
{
    const struct program *program = &w->plan->problem.program;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        const size_t size = mf_inner_keeps_value(w, reducer) ? mf_cls_size(reducer->cls) : mf_inner_state_size(reducer);
        for (size_t i = 0; i < (size_t)n * size; i += 64)
            __builtin_prefetch(w->states.of[r] + (size_t)t * size + i, 1);
    }
}

int64_t mf_inner_tiles(struct worker *w, int64_t f, int64_t most, int64_t t)
{
    const struct inner_plan *data = w->inner;
    const int count = w->plan->problem.program.reducer_count;
    const int64_t e = f % data->elements, rest = data->elements - e, n = rest < TILE ? rest : TILE;
    const int64_t limit = n < TILE ? 1 : count == 1 || data->summary ? MOST_TILES : SEVERAL_TILES;
    if (data->pass_count > 1 || data->pass[0].evaluates)
        return 0;
    most = most > rest / n ? rest / n : most;
    most = most < limit ? most : limit;
    fetch_states(w, t, most);
    for (int r = 0, end; r < count; r = end) {
        end = data->summary && n >= LANES ? count : r + 1; /* of a step at least */
        for (int64_t done = 0, here; done < most; done += here) {
            struct source source;
            here = mf_inner_find_rows(w, 0, r, f + done * TILE, most - done, n, &source);
            mf_inner_fold_tiles(w, r, end, &source, n, here, e / TILE + done, here, (t - e / TILE) / data->tiles);
        }
    }
    return most;
}
