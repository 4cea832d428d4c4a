/* Solver "outer", the inside: one tile of many columns at once.
 *
 * A lane's chain runs down the rows l, l+128, l+256 ... of all columns of the block together, the partial results
 * staying in the nearest cache. The halving tree over the lanes is walked depth first, so that never more than one
 * block of states a level (8) is alive, instead of 128:
 *
 *     node(l, step) = node(l, 2 step) o node(l + step, 2 step),   node(l, 128) = lane l,   the tile = node(0, 1)
 *
 * which are the same combinations as p[l] o= p[l+64], p[l] o= p[l+32] ..., in another order of time.
 * Where columns are few, P consecutive rows form one strip of P x W contiguous elements and are chained as one row;
 * the tree's last levels are then inside the strip. */
#include "../scalar.h"
#include "outer.h"

size_t mf_outer_value_size(const struct columns *c, int r)
{
    return mf_cls_size(c->plan->problem.program.reducer[r].cls);
}

/* The places of elements e, e+gap ... : count of them. */
static void find_places(const struct walk *row, const char *base, int item, int64_t e, int64_t count, int64_t gap,
                        const void **x)
{
    int64_t offset[MAX_ROWS];
    if (row->loops == 1) { /* tiles of few columns are so short that every call counts */
        for (int64_t k = 0; k < count; k++)
            x[k] = (const void *)((uintptr_t)base + (uintptr_t)((e + k * gap) * row->stride[0] * item));
        return;
    }
    mf_walk_offsets(row, e, gap, count, offset);
    for (int64_t k = 0; k < count; k++)
        x[k] = (const void *)((uintptr_t)base + (uintptr_t)(offset[k] * item));
}

void mf_outer_find_rows(struct columns *c, int r, int64_t e, int64_t count, int64_t gap, const void **x)
{
    const struct problem *problem = &c->plan->problem;
    const int node = problem->program.reducer[r].arg[0], input = c->outer->operand[r];
    if (c->outer->straight[r])
        find_places(&c->outer->row[input], c->base[input], mf_dtypes[problem->in_type[input]].size, e, count, gap, x);
    else
        for (int64_t k = 0; k < count; k++)
            x[k] = c->rows[node] + (size_t)k * c->outer->rows_bytes;
}

/* Bytes of one element of reducer r's rows. */
static size_t row_item(const struct columns *c, int r)
{
    const struct problem *problem = &c->plan->problem;
    if (!c->outer->straight[r])
        return c->outer->from[r] >= 0 ? (size_t)c->outer->row_size : mf_outer_value_size(c, r);
    return (size_t)mf_dtypes[problem->in_type[c->outer->operand[r]]].size;
}

/* How many of the rows that come next a chain of `count` rows is told. */
static int64_t rows_wanted(const struct reducer *reducer, int64_t count)
{
    return reducer->kind == RED_LSE ? count : FEW_ROWS;
}

/* One reducer over columns i ... i+n-1 of the rows x; its rows `next` are wanted soon. append: the state of so many
 * rows is continued; after: so many rows of its chain come in later calls. */
static void chain_columns(struct columns *c, int r, const void *const *x, int64_t count, int64_t i, int64_t n,
                          int level, int64_t append, int64_t after, const void *const *next)
{
    const struct reducer *reducer = &c->plan->problem.program.reducer[r];
    const struct kernels *k = c->kernels;
    const void *beside[MAX_ROWS], *then[MAX_CHAIN], *const *at = i ? beside : x;
    const int64_t ahead = rows_wanted(reducer, count);
    size_t item = row_item(c, r), value = mf_outer_value_size(c, r);
    char *a = c->buffer[r][level][0] + (size_t)i * value, *b = c->buffer[r][level][1] + (size_t)i * value;
    int from = c->outer->from[r];
    for (int64_t row = 0; i && row < count; row++)
        beside[row] = (const char *)x[row] + (size_t)i * item;
    for (int64_t row = 0; i && next && row < ahead; row++)
        then[row] = (const void *)((uintptr_t)next[row] + (size_t)i * item);
    next = i && next ? then : next;
    if (mf_reducer_is_squares(&c->plan->problem, reducer) && from >= 0)
        k->summary_chain[from](&(struct summary){.squares = a}, append != 0, at, count, n, next);
    else if (c->outer->byte_sums)
        k->byte_sums[from](c->buffer[r][1][0], NULL, at, count, n, next);
    else if (c->outer->narrow)
        k->narrow[reducer->fold == FOLD_MAX][from].chain(a, append ? a : NULL, at, count, n, next);
    else if (reducer->kind == RED_FOLD)
        (from >= 0 ? k->fold_from[reducer->fold][from] : k->fold[reducer->fold][reducer->cls])
            .chain(a, append ? a : NULL, at, count, n, next);
    else if (reducer->kind == RED_LSE)
        (from >= 0 ? k->lse_chain_from[from] : k->lse[reducer->cls].chain)(a, b, at, count, n, next);
    else
        (from >= 0 ? k->moments_chain_from[from] : k->moments[reducer->cls].chain)(
            &(struct moments_chain){
                .x = at, .lanes = 1, .count = count, .before = append, .after = after, .next = next},
            a, b, n);
}

const void *const *mf_outer_rows_ahead(struct columns *c, int r, int64_t e, int64_t end, int64_t gap, int64_t count,
                                       const void **rows)
{
    const struct problem *problem = &c->plan->problem;
    const int input = c->outer->operand[r];
    const char *base = c->base[input];
    if (!c->outer->straight[r])
        return NULL;
    if (e >= end) {
        e = end < c->outer->elements ? end : 0;
        base = end < c->outer->elements ? base : c->after[input];
        end = c->outer->elements;
    }
    if (!base)
        return NULL;
    int64_t left = (end - e + gap - 1) / gap, here = left < count ? left : count;
    find_places(&c->outer->row[input], base, mf_dtypes[problem->in_type[input]].size, e, here, gap, rows);
    for (int64_t k = here; k < count; k++)
        rows[k] = rows[here - 1];
    return rows;
}

void mf_outer_chain(struct columns *c, int r, const void *const *x, int64_t count, int append)
{
    chain_columns(c, r, x, count, 0, c->width * c->strip, 0, append, 0, NULL);
}

/* Several reducers on the same rows, a few of them and a piece of their columns at a time, which is in the nearest
 * cache when the second reducer reads it. A lane's rows are a power of two apart as often as not: more of them would
 * push each other out of every cache. then: rows after all these. */
static void chain_pieces(struct columns *c, const void *const *x, int64_t count, int64_t width, int level,
                         const void *const *then)
{
    const struct outer_plan *outer = c->outer;
    const int64_t item = (int64_t)row_item(c, outer->lane[0]), piece = PIECE_BYTES / FEW_ROWS / item;
    for (int64_t k = 0, rows; k < count; k += rows) {
        rows = count - k < FEW_ROWS ? count - k : FEW_ROWS;
        const void *const *const after = k + rows == count ? then : k + rows + FEW_ROWS <= count ? x + k + rows : NULL;
        for (int64_t i = 0, n; i < width; i += n) {
            const void *next[FEW_ROWS];
            n = width - i < piece ? width - i : piece;
            for (int64_t row = 0; after && row < FEW_ROWS; row++) /* chain_columns adds i columns */
                next[row] = (const void *)((uintptr_t)after[row] - (uintptr_t)(i * item));
            for (int q = 0; q < outer->lane_count; q++)
                chain_columns(c, outer->lane[q], x + k, rows, i, n, level, k, count - k - rows,
                              q == 0 && i + n == width && after ? next : NULL);
        }
    }
}

/* The first lanes, a summary, over the columns of the rows x; its rows `next` are wanted soon. */
static void chain_together(struct columns *c, const void *const *x, int64_t count, int64_t width, int level, int append,
                           const void *const *next)
{
    const struct problem *problem = &c->plan->problem;
    struct summary out = {NULL, NULL, NULL, NULL, NULL, NULL};
    for (int q = 0; q < c->outer->together; q++) {
        const int r = c->outer->lane[q];
        mf_summary_place(&out, problem, &problem->program.reducer[r], c->buffer[r][level][0], c->buffer[r][level][1]);
    }
    const int operand = mf_reducer_operand(problem, &problem->program.reducer[c->outer->lane[0]]);
    c->kernels->summary_chain[problem->in_type[operand]](&out, append, x, count, width, next);
}

/* The chains of a product's rows x, of elements e, e+gap ... and columns of which each strip's rows have their own
 * weight, or all are multiplied with their own. A few rows at a time, so that each is one stream. */
static void chain_products(struct columns *c, int r, const void *const *x, int64_t e, int64_t count, int64_t gap,
                           int level, int append, const void *const *next)
{
    const struct problem *problem = &c->plan->problem;
    const struct nest *nest = &problem->memory;
    const int factor = c->outer->factor[r], unit = nest->in[factor][nest->kept - 1] != 0;
    const enum dtype type = problem->in_type[factor];
    const int64_t item = mf_dtypes[type].size, weight = nest->in[factor][nest->kept + nest->reduced - 1];
    const int64_t parts = unit ? 1 : c->strip, width = c->width * c->strip / parts;
    const size_t value = mf_outer_value_size(c, r);
    const void *y[MAX_ROWS];
    find_places(&c->outer->row[factor], c->base[factor], (int)item, e, count, gap, y);
    for (int64_t k = 0, rows; k < count; k += rows, append = 1) {
        rows = count - k < FEW_ROWS ? count - k : FEW_ROWS;
        const void *const *const then = k + rows == count ? next : k + rows + FEW_ROWS <= count ? x + k + rows : NULL;
        for (int64_t p = 0; p < parts; p++) {
            const void *a[FEW_ROWS], *b[FEW_ROWS], *soon[FEW_ROWS];
            char *const out = c->buffer[r][level][0] + (size_t)(p * width) * value;
            for (int64_t j = 0; j < rows; j++) {
                a[j] = (const char *)x[k + j] + p * width * item;
                b[j] = (const void *)((uintptr_t)y[k + j] + (uintptr_t)(p * weight * item));
                soon[j] = p + 1 < parts ? (const char *)a[j] + width * item : then ? then[j] : NULL;
            }
            c->kernels->products[type].chain(out, append ? out : NULL, a, b, unit, rows, width,
                                             p + 1 < parts || then ? soon : NULL, c->outer->term[r]);
        }
    }
}

/* The chains of elements e, e+gap ... into level `level`; those from `then` on, below end, are next. append: the states
 * are continued. */
static void chain_rows(struct columns *c, int64_t e, int64_t count, int64_t gap, int level, int append, int64_t then,
                       int64_t end)
{
    const struct outer_plan *outer = c->outer;
    int64_t width = c->width * c->strip;
    const void *x[MAX_ROWS], *ahead[MAX_CHAIN];
    for (int64_t k = 0, here; count > outer->evaluated; k += here) { /* a few rows at a time */
        here = count - k < outer->evaluated ? count - k : outer->evaluated;
        chain_rows(c, e + k * gap, here, gap, level, append || k, k + here < count ? e + (k + here) * gap : then, end);
        if (k + here == count)
            return;
    }
    if (outer->root_count)
        mf_outer_evaluate(c, e, count, gap, then, end);
    if (outer->gathers) {
        mf_outer_find_rows(c, outer->lane[0], e, count, gap, x);
        chain_pieces(c, x, count, width, level,
                     mf_outer_rows_ahead(c, outer->lane[0], then, end, gap, FEW_ROWS, ahead));
        return;
    }
    for (int q = 0; q < outer->lane_count; q++) {
        int r = outer->lane[q];
        mf_outer_find_rows(c, r, e, count, gap, x);
        if (outer->factor[r] >= 0) {
            chain_products(c, r, x, e, count, gap, level, append,
                           mf_outer_rows_ahead(c, r, then, end, gap, FEW_ROWS, ahead));
            continue;
        }
        const int64_t wanted = rows_wanted(&c->plan->problem.program.reducer[r], count);
        if (q == 0 && outer->together) {
            chain_together(c, x, count, width, level, append, mf_outer_rows_ahead(c, r, then, end, gap, wanted, ahead));
            q += outer->together - 1;
            continue;
        }
        chain_columns(c, r, x, count, 0, width, level, append, 0,
                      mf_outer_rows_ahead(c, r, then, end, gap, wanted, ahead));
    }
}

void mf_outer_merge(struct columns *c, char *const *a, char *const *b, int r, int64_t na, int64_t nb, int64_t n)
{
    const struct reducer *reducer = &c->plan->problem.program.reducer[r];
    const struct kernels *k = c->kernels;
    const void *x = b[0];
    if (reducer->kind == RED_FOLD)
        k->fold[reducer->fold][reducer->cls].chain(a[0], a[0], &x, 1, n, NULL);
    else if (reducer->kind == RED_MOMENTS)
        k->moments[reducer->cls].merge(a[0], a[1], na, b[0], b[1], nb, n);
    else
        k->lse[reducer->cls].merge(a[0], a[1], b[0], b[1], n);
}

int64_t mf_outer_next_group(int64_t group, int64_t groups, int64_t steps)
{
    int64_t backwards = 0, next = 0;
    for (int64_t bit = 1; bit < groups; bit *= 2)
        backwards = 2 * backwards + !!(group & bit);
    backwards += steps;
    if (backwards >= groups)
        return groups;
    for (int64_t bit = 1; bit < groups; bit *= 2)
        next = 2 * next + !!(backwards & bit);
    return next;
}

/* node(group, step): lanes group*P ... of the tile, into `level`; the elements of each lane in it. */
static int64_t tree(struct columns *c, int64_t e, int64_t n, int64_t group, int64_t step, int level)
{
    const struct outer_plan *outer = c->outer;
    int64_t groups = LANES / c->strip;
    if (step == groups) {
        int64_t lane = group * c->strip, count = (n - lane + LANES - 1) / LANES;
        int64_t then = mf_outer_next_group(group, groups, 1);
        chain_rows(c, e + lane, count, LANES, level, 0, then < groups ? e + then * c->strip : e + n, e + n);
        return count;
    }
    if (outer->pairs && n <= LANES &&
        group + 2 * step >= n) { /* two lanes of one row each: combined as they are read */
        int64_t count = group + step < n ? 2 : 1;
        chain_rows(c, e + group, count, step, level, 0, e + mf_outer_next_group(group, groups, 1), e + n);
        return count;
    }
    int64_t left = tree(c, e, n, group, 2 * step, level);
    if ((group + step) * c->strip >= n)
        return left;
    int64_t right = tree(c, e, n, group + step, 2 * step, level + 1);
    for (int q = 0; q < outer->lane_count; q++) {
        int r = outer->lane[q];
        mf_outer_merge(c, c->buffer[r][level], c->buffer[r][level + 1], r, left, right, c->width * c->strip);
    }
    return left + right;
}

/* What level 1 has got is the result. */
static void take_buffer(struct columns *c, int r)
{
    char *const result = c->buffer[r][1][0];
    c->buffer[r][1][0] = c->buffer[r][0][0];
    c->buffer[r][0][0] = result;
}

/* The tree's last levels, inside strips: those of all neighbours, which become neighbouring columns. count: the
 * elements of each of its states. */
static void join_strip(struct columns *c, int64_t count)
{
    const struct outer_plan *outer = c->outer;
    const int64_t width = c->width / outer->beside;
    const int64_t inside = outer->layout == STRIP_COLUMNS ? outer->inside : 1, row = width * inside;
    for (int q = 0; q < outer->lane_count; q++) {
        int r = outer->lane[q];
        const struct reducer *reducer = &c->plan->problem.program.reducer[r];
        const size_t value = mf_outer_value_size(c, r);
        for (int64_t b = 0; b < outer->beside; b++) {
            const size_t at = (size_t)(b * c->strip * width) * value, to = (size_t)(b * width) * value;
            char *strip[2] = {c->buffer[r][0][0] + at, c->buffer[r][0][1] + at};
            int64_t lanes = count;
            for (int64_t half = c->strip / inside / 2; half; half /= 2, lanes *= 2) {
                size_t shift = (size_t)(half * row) * value;
                char *upper[2] = {strip[0] + shift, strip[1] + shift};
                mf_outer_merge(c, strip, upper, r, lanes, lanes, half * row);
            }
            for (int p = 0; p < 2 && b > 0 && (!p || reducer->kind != RED_FOLD); p++)
                memcpy(c->buffer[r][0][p] + to, strip[p], (size_t)width * value);
        }
        const struct fold_kernels *kernels = &c->kernels->fold[reducer->fold][reducer->cls];
        if (inside > 1 && c->answer) {
            kernels->answers(c->answer, c->buffer[r][0][0], c->width, inside, outer->answers, outer->finish.out.stream);
        } else if (inside > 1) {
            kernels->rows(c->buffer[r][1][0], c->buffer[r][0][0], c->width, inside, inside);
            take_buffer(c, r);
        }
    }
}

/* The elements inside the strips of one min or max of short integers, which stay short until there is one a column. */
static void join_narrow(struct columns *c)
{
    const int r = c->outer->lane[0], from = c->outer->from[r], past_cache = c->outer->finish.out.stream;
    const struct reducer *reducer = &c->plan->problem.program.reducer[r];
    char *strip = c->buffer[r][0][0], *const last = c->answer && !past_cache ? c->answer : strip;
    for (int64_t half = c->outer->inside / 2; half; half /= 2)
        c->kernels->narrow[reducer->fold == FOLD_MAX][from].halves(half == 1 ? last : strip, strip, c->width * half);
    if (c->answer && past_cache)
        c->kernels->stream(c->answer, strip, c->width * mf_dtypes[from].size);
    else if (c->answer && c->outer->inside == 1)
        memcpy(c->answer, strip, (size_t)(c->width * mf_dtypes[from].size));
    if (c->answer)
        return;
    c->kernels->load[from](c->buffer[r][1][0], strip, c->width);
    take_buffer(c, r);
}

/* Sums of bytes leave their 16 bits: the rows of a strip that these are of, as many as leave whole vectors; the others
 * join as ever. count: as in join_strip. */
static void join_bytes(struct columns *c, int64_t count)
{
    enum { FEWEST = 64 };
    const int r = c->outer->lane[0], wide = c->outer->from[r] == DT_i8 ? DT_i16 : DT_u16;
    const int64_t strip = c->strip, all = c->width / c->outer->beside * strip;
    int64_t rows = strip;
    while (rows > 1 && (all / rows < FEWEST || rows > LONG_CHAIN))
        rows /= 2;
    for (int64_t b = 0; b < c->outer->beside; b++) {
        const void *x[LONG_CHAIN];
        for (int64_t k = 0; k < rows; k++)
            x[k] = c->buffer[r][1][0] + (b * all + k * (all / rows)) * 2;
        c->kernels->fold_from[FOLD_SUM][wide].chain(c->buffer[r][0][0] + b * (all / rows) * 8, NULL, x, rows,
                                                    all / rows, NULL);
    }
    c->strip = strip / rows;
    if (c->strip > 1)
        join_strip(c, count * rows);
    c->strip = strip;
}

/* Lanes i and i + half become lane i: the better one; of equals the first. */
#define JOIN_ARGS(CLASS, TYPE)                                                                       \
    static void join_args_##CLASS(TYPE *best, int32_t *index, int64_t half, int is_max)              \
    {                                                                                                \
        for (int64_t i = 0; i < half; i++) {                                                         \
            const TYPE a = best[i], b = best[half + i], same_a = a, same_b = b;                      \
            const int a_is_nan = a != same_a, b_is_nan = b != same_b, wins = is_max ? b > a : b < a; \
            const int equal = a == b || (a_is_nan && b_is_nan), first = index[half + i] < index[i];  \
            const int takes = (!a_is_nan && (wins || b_is_nan)) || (equal && first);                 \
            best[i] = takes ? b : a;                                                                 \
            index[i] = takes ? index[half + i] : index[i];                                           \
        }                                                                                            \
    }
JOIN_ARGS(f32, float)
JOIN_ARGS(f64, double)
JOIN_ARGS(i64, int64_t)
JOIN_ARGS(u64, uint64_t)
#undef JOIN_ARGS

/* The lanes of strips, which count strips, become columns, which count rows. */
static void join_arg_strip(const struct columns *c, int r)
{
    const struct reducer *reducer = &c->plan->problem.program.reducer[r];
    void *const best = c->buffer[r][0][0];
    int32_t *const index = (int32_t *)(void *)c->buffer[r][0][1];
    const int is_max = reducer->fold == FOLD_MAX;
    for (int64_t p = 0; p < c->strip; p++)
        for (int64_t i = p * c->width; i < (p + 1) * c->width; i++)
            index[i] = index[i] * (int32_t)c->strip + (int32_t)p;
    for (int64_t half = c->strip / 2 * c->width; half >= c->width; half /= 2)
        if (reducer->cls == CLS_F32)
            join_args_f32(best, index, half, is_max);
        else if (reducer->cls == CLS_F64)
            join_args_f64(best, index, half, is_max);
        else if (reducer->cls == CLS_I64)
            join_args_i64(best, index, half, is_max);
        else
            join_args_u64(best, index, half, is_max);
}

/* Rows (or strips) done ... end-1 of a tile whose first element is e, for all argmins and argmaxes. */
static void arg_chains(struct columns *c, int64_t e, int64_t strip, int64_t done, int64_t end)
{
    const struct outer_plan *outer = c->outer;
    const int64_t most = outer->root_count ? MAX_CHAIN : MAX_ROWS;
    for (; done < end; done += most) {
        const void *x[MAX_ROWS];
        int64_t count = end - done < most ? end - done : most;
        if (outer->root_count)
            mf_outer_evaluate(c, e + done * strip, count, strip, e + (done + count) * strip, e + end * strip);
        for (int q = 0; q < outer->arg_count; q++) {
            int r = outer->arg[q];
            const struct reducer *reducer = &c->plan->problem.program.reducer[r];
            char **to = c->buffer[r][0];
            const int is_max = reducer->fold == FOLD_MAX, from = outer->from[r];
            mf_outer_find_rows(c, r, e + done * strip, count, strip, x);
            (from >= 0 ? c->kernels->arg_chain_from[is_max][from] : c->kernels->arg[is_max][reducer->cls].chain)(
                to[0], (int32_t *)(void *)to[1], x, count, c->width * strip, (int32_t)done);
        }
    }
}

/* argmin and argmax take the rows one after the other; index r of the tile's best row goes to buffer[r][0][1] as
 * i32. A lone one has strips; what is left over of them goes on where their columns are. */
static void arg_rows(struct columns *c, int64_t e, int64_t n)
{
    const int64_t strips = n / c->strip;
    if (!c->outer->arg_count)
        return;
    arg_chains(c, e, c->strip, 0, strips);
    if (c->strip > 1 && strips > 0)
        join_arg_strip(c, c->outer->arg[0]);
    if (c->strip > 1)
        arg_chains(c, e, 1, strips * c->strip, n);
}

/* As many rows a call as the kernels allow, so that states are read and written seldom. If another kernel reads the
 * same ones after the first, and memory takes longer than the kernels, so few that they stay in the second cache. */
static int64_t rows_in_sequence(const struct columns *c)
{
    enum { SHORT = 2 };
    const struct outer_plan *outer = c->outer;
    const int again = outer->lane_count > 1 && outer->lane_count > outer->together;
    return outer->root_count ? FEW_ROWS : again && row_item(c, outer->lane[0]) > SHORT ? MAX_CHAIN : MAX_ROWS;
}

/* Folds whose order does not matter take the rows (strips) as they come; returns how many each state has. append: the
 * states are continued. */
static int64_t in_sequence(struct columns *c, int64_t e, int64_t n, int append)
{
    int64_t strip = c->strip, rows = n / strip, most = rows_in_sequence(c);
    for (int64_t done = 0; done < rows; done += most) {
        int64_t count = rows - done < most ? rows - done : most;
        chain_rows(c, e + done * strip, count, strip, 0, append || done > 0, e + (done + count) * strip, e + n);
    }
    return rows;
}

/* Runs of n elements that begin at every column (moving windows), n a power of two: neighbours share the parts of
 * their trees. With y = x at first, y[i] = y[i] o y[i + half] for half = n/2 ... 1 are the same combinations as each
 * run's own tree, and only log2 n of them an output. */
static void shared_runs(struct columns *c, int64_t n)
{
    const struct problem *problem = &c->plan->problem;
    for (int q = 0; q < c->outer->lane_count; q++) {
        int r = c->outer->lane[q];
        const struct reducer *reducer = &problem->program.reducer[r];
        chain_fn *chain = c->kernels->fold[reducer->fold][reducer->cls].chain;
        const char *x = c->base[mf_reducer_operand(problem, reducer)];
        char *y = c->buffer[r][0][0];
        const int from = c->outer->from[r];
        runs_fn *runs = from >= 0 ? c->kernels->fold_from[reducer->fold][from].runs : NULL;
        if (from >= 0 &&
            !(runs && (c->answer || !mf_cls_is_float(reducer->cls)))) { /* once, but every element is in n runs */
            c->kernels->load[from](c->buffer[r][1][0], x, c->width + n - 1);
            x = c->buffer[r][1][0];
            runs = NULL;
        }
        runs = runs ? runs : c->kernels->fold[reducer->fold][reducer->cls].runs;
        if (runs && n > 1) {
            runs(c->answer ? c->answer : y, x, c->width, n, c->outer->answers);
            continue;
        }
        for (int64_t half = n / 2; half; half /= 2) {
            const void *both[2] = {x, x + (size_t)half * mf_outer_value_size(c, r)};
            if (x == y)
                chain(y, y, both + 1, 1, c->width + half - 1, NULL);
            else
                chain(y, NULL, both, 2, c->width + half - 1, NULL);
            x = y;
        }
    }
}

/* Lanes, their tree and the strips' of n elements, which are whole strips. */
static void fold_lanes(struct columns *c, int64_t e, int64_t n)
{
    int64_t count = c->outer->any_order ? in_sequence(c, e, n, 0) : c->outer->joins ? mf_outer_joined_tree(c, e, n) : 0;
    if (!count)
        count = tree(c, e, n, 0, 1, 0);
    if (c->outer->narrow)
        join_narrow(c);
    else if (c->outer->byte_sums)
        join_bytes(c, count);
    else if (c->strip > 1)
        join_strip(c, count);
}

/* The same of elements that end inside a strip. Where order is free, what is left over is folded into the strips'
 * result; else the tile, the last one of many, does without strips. */
static void fold_ragged(struct columns *c, int64_t e, int64_t n)
{
    const int64_t strip = c->strip, whole = c->outer->any_order ? n - n % strip : 0;
    if (whole)
        fold_lanes(c, e, whole);
    c->strip = 1;
    if (whole)
        in_sequence(c, e + whole, n - whole, 1);
    else
        fold_lanes(c, e, n);
    c->strip = strip;
}

void mf_outer_tile(struct columns *c, int64_t e, int64_t n)
{
    if (c->outer->runs) {
        shared_runs(c, n);
        return;
    }
    if (c->outer->lane_count && n % c->strip)
        fold_ragged(c, e, n);
    else if (c->outer->lane_count)
        fold_lanes(c, e, n);
    arg_rows(c, e, n);
}
