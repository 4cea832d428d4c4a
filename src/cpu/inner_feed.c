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

/* Where rows lie: values of the class, or of memory's type when `from` is set; and a product's other factor's. */
struct source {
    const char *x;
    int64_t pitch;
    int item;
    const char *y;
    int64_t y_pitch;
};

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

/* The same of the operand, or operands, that reducer r of pass p reads straight from memory. */
static int64_t find_rows(const struct worker *w, int p, int r, int64_t f, int64_t rows, int64_t n,
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

static char *part(struct worker *w, int r, int p, int64_t i, size_t size)
{
    char *array = w->finish.results.part[r][p];
    return array ? array + (size_t)i * size : NULL;
}

/* Whether reducer's state of a tile is one value. */
static int keeps_value(const struct worker *w, const struct reducer *reducer)
{
    return reducer->kind == RED_FOLD || w->inner->by_value;
}

/* Built-in reducer r over `rows` rows of n elements at a pitch, to the two arrays of its results. */
static void fold_rows_to(void *first, void *second, const struct worker *w, int r, const struct source *source,
                         int from, int64_t rows, int64_t n)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    const struct kernels *k = w->kernels;
    enum cls cls = reducer->cls;
    if (w->inner->factor[r] >= 0) {
        const enum dtype type = w->plan->problem.in_type[w->inner->factor[r]];
        k->products[type].rows(first, source->x, source->y, rows, n, source->pitch, source->y_pitch);
        return;
    }
    switch (keeps_value(w, reducer) ? RED_FOLD : reducer->kind) {
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
    void *second = reducer->kind == RED_FOLD ? NULL : part(w, r, 1, i, reducer->kind == RED_ARG ? 8 : size);
    fold_rows_to(part(w, r, 0, i, size), second, w, r, source, from, rows, n);
}

/* The results of n states, to index i of the worker's results. */
static void user_finish(struct worker *w, int r, const char *states, int64_t n, int64_t i)
{
    const mf_operation *op = &w->plan->problem.program.reducer[r].user->is;
    void *to[MAX_REDUCER_ARGS];
    size_t size = op->output_type == MF_F32 ? 4 : 8;
    for (int k = 0; k < op->output_count; k++)
        to[k] = part(w, r, k, i, size);
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

/* The memory type that reducer r's kernels read themselves; -1: they read the class. */
static int memory_type(const struct worker *w, int r)
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
    if (!w->inner->straight[pass->reducer[0]])
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
            void *second = reducer->kind == RED_MOMENTS ? part(w, r, 1, i + done, size) : NULL;
            mf_summary_place(&out, &w->plan->problem, reducer, part(w, r, 0, i + done, size), second);
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
            user_finish(w, r, w->user, rows, i);
            continue;
        }
        if (!w->inner->straight[r]) {
            struct source source = {evaluated(w, r, rows * n), n, 0, NULL, 0};
            fold_rows(w, r, &source, w->inner->row_type[r], rows, n, i);
            continue;
        }
        const int from = memory_type(w, r);
        for (int64_t done = 0; done < rows;) {
            struct source source;
            const int64_t here = find_rows(w, p, r, f + done * n, rows - done, n, &source);
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
        fold_rows_to(direct ? (void *)to : piece, NULL, w, 0, &source, type, here, data->elements);
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
    const int from = memory_type(w, 0), operand = mf_reducer_operand(problem, reducer);
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

/* Of 4 or 8 bytes, without a call: a tile of bytes is read in the time of a few. */
static void copy_value(void *to, const void *from, size_t size)
{
    if (size == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, 8);
}

/* Reducer r's results for the n elements from e on as tile t's state. */
static void keep_state(struct worker *w, int r, int64_t n, int64_t e, int64_t t, const void *first, const void *second)
{
    const struct reducer *reducer = &w->plan->problem.program.reducer[r];
    size_t size = mf_inner_state_size(reducer), value = mf_cls_size(reducer->cls);
    if (keeps_value(w, reducer)) {
        copy_value(w->states.of[r] + (size_t)t * value, first, value);
        return;
    }
    char *to = w->states.of[r] + (size_t)t * size;
    struct state state;
    memset(&state, 0, sizeof state);
    copy_value(&state.v[0], first, value);
    state.n = n;
    if (reducer->kind == RED_ARG)
        state.n = *(const int64_t *)second + e;
    else
        copy_value(&state.v[1], second, value);
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
            from = memory_type(w, r);
            find_rows(w, p, r, f, 1, n, &source);
        }
        union value first, second;
        fold_rows_to(&first, &second, w, r, &source, from, 1, n);
        keep_state(w, r, n, e, t, &first, &second);
    }
}

enum { SUMMARY_REDUCERS = 4 }; /* at most: sum, min, max, moments */

/* Whole tiles, MOST_TILES at most, of all reducers of a summary or of the only one. Tile k is tile t + k % run of
 * the output `first` + k / run in the group. */
static void fold_tiles(struct worker *w, const struct source *source, int from, int64_t tiles, int64_t t, int64_t run,
                       int64_t first)
{
    const struct program *program = &w->plan->problem.program;
    union value results[SUMMARY_REDUCERS][2][MOST_TILES];
    void *to[SUMMARY_REDUCERS];
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        const size_t at = (size_t)(first * w->inner->tiles + t) * mf_cls_size(reducer->cls);
        to[r] = run == tiles && keeps_value(w, reducer) ? (void *)(w->states.of[r] + at) : (void *)&results[r];
    }
    if (w->inner->summary) {
        struct summary out = {NULL, NULL, NULL, NULL, NULL, NULL};
        for (int r = 0; r < program->reducer_count; r++)
            mf_summary_place(&out, &w->plan->problem, &program->reducer[r], to[r], results[r][1]);
        const int operand = mf_reducer_operand(&w->plan->problem, &program->reducer[0]);
        w->kernels->summary[w->plan->problem.in_type[operand]](&out, source->x, tiles, TILE, source->pitch);
    } else {
        fold_rows_to(to[0], results[0][1], w, 0, source, from, tiles, TILE);
    }
    for (int r = 0; r < program->reducer_count; r++) {
        if (to[r] != (void *)&results[r])
            continue;
        const size_t size = mf_cls_size(program->reducer[r].cls);
        const size_t second = program->reducer[r].kind == RED_ARG ? 8 : size;
        for (int64_t k = 0, tile = t, output = first; k < tiles; k++) {
            keep_state(w, r, TILE, tile * TILE, output * w->inner->tiles + tile,
                       (char *)results[r][0] + (size_t)k * size, (char *)results[r][1] + (size_t)k * second);
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
    const int from = memory_type(w, 0),
              operand = mf_reducer_operand(&w->plan->problem, &w->plan->problem.program.reducer[0]);
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
        fold_tiles(w, &source, from, outputs * data->run_tiles, t, data->run_tiles, i);
    }
}

/* The states of tiles t ... t+n-1 of a long row lie where nothing was read for long: stores to them would wait for
 * memory, and all later ones for these. */
static void fetch_states(const struct worker *w, int64_t t, int64_t n)
{
    const struct program *program = &w->plan->problem.program;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        const size_t size = keeps_value(w, reducer) ? mf_cls_size(reducer->cls) : mf_inner_state_size(reducer);
        for (size_t i = 0; i < (size_t)n * size; i += 64)
            __builtin_prefetch(w->states.of[r] + (size_t)t * size + i, 1);
    }
}

int64_t mf_inner_tiles(struct worker *w, int64_t f, int64_t most, int64_t t)
{
    const struct program *program = &w->plan->problem.program;
    const struct reducer *reducer = &program->reducer[0];
    if ((program->reducer_count > 1 && !w->inner->summary) || !w->inner->straight[0] || most < 1)
        return 0;
    struct source source;
    const int from = memory_type(w, 0);
    const int64_t tiles = find_rows(w, 0, 0, f, most < MOST_TILES ? most : MOST_TILES, TILE, &source);
    fetch_states(w, t, tiles);
    if (program->reducer_count == 1 && keeps_value(w, reducer)) {
        fold_rows_to(w->states.of[0] + (size_t)t * mf_cls_size(reducer->cls), NULL, w, 0, &source, from, tiles, TILE);
        return tiles;
    }
    const int64_t tile = f % w->inner->elements / TILE;
    fold_tiles(w, &source, from, tiles, tile, tiles, (t - tile) / w->inner->tiles);
    return tiles;
}

/* Tiles of tiles with the row kernel, in place. */
static void join_values(struct worker *w, const struct reducer *reducer, char *values, int64_t n)
{
    size_t size = mf_cls_size(reducer->cls);
    while (n > 1) {
        int64_t tiles = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < tiles; t++) {
            char value[8];
            int64_t here = n - t * TILE < TILE ? n - t * TILE : TILE;
            w->kernels->fold[reducer->fold][reducer->cls].rows(value, values + (size_t)(t * TILE) * size, 1, here,
                                                               here);
            memcpy(values + (size_t)t * size, value, size);
        }
        n = tiles;
    }
}

/* Lanes of moments: mean, m2 and count of each. */
struct moments_lanes {
    char mean[LANES * 8], m2[LANES * 8];
    int64_t n[LANES];
};

/* Lanes 0 ... of a with those of b from `first` on, lanes of them, whose neighbours' counts mostly agree. */
static void merge_lanes(const struct kernels *k, enum cls cls, struct moments_lanes *a, const struct moments_lanes *b,
                        int64_t first, int64_t lanes)
{
    const size_t size = mf_cls_size(cls);
    for (int64_t l = 0, run; l < lanes; l += run) {
        const int64_t na = a->n[l], nb = b->n[first + l];
        for (run = 0; l + run < lanes && a->n[l + run] == na && b->n[first + l + run] == nb; run++)
            ;
        k->moments[cls].merge(a->mean + (size_t)l * size, a->m2 + (size_t)l * size, na,
                              b->mean + (size_t)(first + l) * size, b->m2 + (size_t)(first + l) * size, nb, run);
        for (int64_t i = l; i < l + run; i++)
            a->n[i] = na + nb;
    }
}

/* n states as lanes. */
static void take_lanes(struct moments_lanes *to, const struct state *states, int64_t n, size_t size)
{
    for (int64_t l = 0; l < n; l++) {
        copy_value(to->mean + (size_t)l * size, &states[l].v[0], size);
        copy_value(to->m2 + (size_t)l * size, &states[l].v[1], size);
        to->n[l] = states[l].n;
    }
}

/* n tiles' moments, at most TILE, in the contract's order: mf_state_fold_tile, with all lanes at once. */
static struct state fold_moments(const struct kernels *k, enum cls cls, const struct state *states, int64_t n)
{
    const size_t size = mf_cls_size(cls);
    const int64_t lanes = n < LANES ? n : LANES;
    struct moments_lanes lane, next;
    struct state all = states[0];
    take_lanes(&lane, states, lanes, size);
    for (int64_t e = LANES; e < n; e += LANES) {
        const int64_t here = n - e < LANES ? n - e : LANES;
        take_lanes(&next, states + e, here, size);
        merge_lanes(k, cls, &lane, &next, 0, here);
    }
    for (int64_t half = LANES / 2; half; half /= 2)
        if (half < lanes)
            merge_lanes(k, cls, &lane, &lane, half, lanes - half < half ? lanes - half : half);
    copy_value(&all.v[0], lane.mean, size);
    copy_value(&all.v[1], lane.m2, size);
    all.n = lane.n[0];
    return all;
}

/* Tiles of tiles, in place. */
static struct state join_moments(const struct kernels *k, enum cls cls, struct state *states, int64_t n)
{
    while (n > 1) {
        const int64_t tiles = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < tiles; t++)
            states[t] = fold_moments(k, cls, states + t * TILE, n - t * TILE < TILE ? n - t * TILE : TILE);
        n = tiles;
    }
    return states[0];
}

/* A user's states lie padded to 16 bytes; the fold wants them close together. */
static void join_user(struct worker *w, int r, char *states, int64_t n, int64_t i)
{
    const mf_operation *op = &w->plan->problem.program.reducer[r].user->is;
    size_t padded = mf_inner_state_size(&w->plan->problem.program.reducer[r]);
    if (padded != op->state_size)
        for (int64_t t = 1; t < n; t++)
            memmove(states + (size_t)t * op->state_size, states + (size_t)t * padded, op->state_size);
    mf_user_fold(op, states, n);
    user_finish(w, r, states, 1, i);
}

/* The first tile of output o that has the best of the tiles' values, and where it is there. */
static struct state join_arg(struct worker *w, const struct reducer *reducer, const char *values, int64_t o)
{
    const struct inner_plan *data = w->inner;
    const int is_max = reducer->fold == FOLD_MAX;
    arg_rows_fn *rows = w->kernels->arg[is_max][reducer->cls].rows;
    struct state best = mf_state_identity(reducer);
    for (int64_t t = 0; t < data->tiles; t += TILE) {
        struct state of_tiles = best;
        const int64_t n = data->tiles - t < TILE ? data->tiles - t : TILE;
        rows(&of_tiles.v[0], &of_tiles.n, values + (size_t)t * mf_cls_size(reducer->cls), 1, n, n);
        of_tiles.n += t;
        best = t ? mf_state_combine(reducer, best, of_tiles) : of_tiles;
    }
    struct source source;
    const int from = memory_type(w, 0);
    const int64_t e = best.n * TILE, n = data->elements - e < TILE ? data->elements - e : TILE;
    find_rows(w, 0, 0, o * data->elements + e, 1, n, &source);
    (from >= 0 ? w->kernels->arg_from[is_max][from] : rows)(&best.v[0], &best.n, source.x, 1, n, n);
    best.n += e;
    return best;
}

void mf_inner_join(struct worker *w, const struct tile_states *states, int64_t first, int64_t o, int64_t i)
{
    const struct program *program = &w->plan->problem.program;
    int64_t tiles = w->inner->tiles;
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        size_t value = mf_cls_size(reducer->cls);
        char *of = states->of[r] + (size_t)first * (keeps_value(w, reducer) ? value : mf_inner_state_size(reducer));
        if (reducer->kind == RED_USER) {
            join_user(w, r, of, tiles, i);
        } else if (reducer->kind == RED_FOLD) {
            join_values(w, reducer, of, tiles);
            memcpy(part(w, r, 0, i, value), of, value);
        } else {
            struct state *const x = (struct state *)(void *)of;
            const struct state state = w->inner->by_value             ? join_arg(w, reducer, of, o)
                                       : reducer->kind == RED_MOMENTS ? join_moments(w->kernels, reducer->cls, x, tiles)
                                                                      : mf_state_fold(reducer, x, tiles);
            memcpy(part(w, r, 0, i, value), &state.v[0], value);
            if (reducer->kind == RED_ARG)
                memcpy(part(w, r, 1, i, 8), &state.n, 8);
            else
                memcpy(part(w, r, 1, i, value), &state.v[1], value);
        }
    }
}
