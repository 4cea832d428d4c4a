/* Solver "outer", the tree over a tile's lanes where kernels combine what they read with what waits for it: leaf by
 * leaf from left to right, or a few at a time, each with the combinations that it completes: as many as the leaf's
 * number has ones at its end. Results that wait for their right neighbour are in buffers 0, 1 ..., one for each one in
 * that number.
 *
 * A tile of fewer elements than lanes has chains too: with L, the greatest power of two that is not more than n, the
 * tree begins by joining element l + L to element l < n - L, which is what a lane of L does. So elements are in L lanes
 * (or all 128) whose numbers, backwards, are those of the leaves.
 *
 * Several reducers take the same leaves one after the other, so few that the rows are in the second cache. */
#include "outer.h"

struct tile {
    struct columns *c;
    int64_t e, n, lanes, groups, longest; /* groups: leaves; longest: strips of the longest one */
    const char *terms;                    /* of a logsumexp: the rows of the leaves that are joined; else null */
    int64_t pitch;
};

static int64_t count_of(const struct tile *t, int64_t group)
{
    return (t->n - group * t->c->strip + t->lanes - 1) / t->lanes;
}

/* How many leaves of reducer r, from leaf number `leaf` on, the kernels take at once. */
static int64_t leaves_at_once(const struct tile *t, const struct reducer *reducer, int64_t leaf)
{
    const struct columns *c = t->c;
    int64_t leaves = 1;
    if (reducer->kind == RED_MOMENTS) {
        const int takes = c->width * c->strip >= c->kernels->moments_lanes && t->longest <= 2;
        return !takes ? 1 : t->groups < MOMENTS_LANES ? t->groups : MOMENTS_LANES;
    }
    while (t->n % t->lanes == 0 && 2 * leaves * t->longest <= MAX_LEAVES && 2 * leaves <= t->groups &&
           leaf % (2 * leaves) == 0 && (t->longest & (t->longest - 1)) == 0)
        leaves *= 2;
    return leaves;
}

/* The rows of `leaves` leaves from leaf `group` on, one leaf after the other, or their terms, from number `row` on; the
 * first row of each in first. Returns the leaf behind them. */
static int64_t leaves_rows(const struct tile *t, int r, int64_t group, int64_t leaves, int64_t row, const void **x,
                           int64_t *first)
{
    first[0] = 0;
    for (int64_t k = 0; k < leaves; k++, group = mf_outer_next_group(group, t->groups, 1)) {
        first[k + 1] = first[k] + count_of(t, group);
        for (int64_t i = first[k]; t->terms && i < first[k + 1]; i++)
            x[i] = t->terms + (row + i) * t->pitch;
        if (!t->terms)
            mf_outer_find_rows(t->c, r, t->e + group * t->c->strip, first[k + 1] - first[k], t->lanes, x + first[k]);
    }
    return group;
}

/* The rows that are read after these leaves: the first ones of leaf `group`, or as many leaves from it on. Null if they
 * are not known. */
static const void *const *leaves_ahead(const struct tile *t, int r, int64_t group, int64_t leaves, const void **rows)
{
    int64_t first[MOMENTS_LANES + 1];
    const int64_t behind = t->e + t->n;
    if (leaves == 1)
        return mf_outer_rows_ahead(t->c, r, group < t->groups ? t->e + group * t->c->strip : behind, behind, t->lanes,
                                   FEW_ROWS, rows);
    if (group == t->groups)
        return NULL;
    leaves_rows(t, r, group, leaves, 0, rows, first);
    for (int64_t k = first[leaves]; k < 2 * MOMENTS_LANES; k++)
        rows[k] = rows[k - 1];
    return rows;
}

/* The leaves j, node(group, step), whose results are moments; those of left neighbours are in buffers below `waiting`.
 */
static void join_moments(const struct tile *t, int r, struct moments_chain *j, int64_t waiting, int64_t group,
                         int64_t step)
{
    const struct columns *c = t->c;
    const int from = c->outer->from[r];
    const int64_t n = t->n / c->strip;
    char *const(*const buffer)[2] = c->buffer[r];
    for (int64_t q = 0; q < j->lefts; q++, step /= 2) {
        char *const *const left = buffer[waiting - 1 - q];
        group -= step / 2;
        j->left[q] = (struct moments_left){left[0], left[1], (n - group + step - 1) / step};
    }
    (from >= 0 ? c->kernels->moments_chain_from[from]
               : c->kernels->moments[c->plan->problem.program.reducer[r].cls].chain)(
        j, buffer[waiting][0], buffer[waiting][1], c->width * c->strip);
}

/* Reducer r's leaves number leaf ... end-1; of terms, which are summed, in the buffers of their second parts. asks: for
 * what is read; else it is in a cache. */
static void join_leaves(const struct tile *t, int r, int64_t leaf, int64_t end, int asks)
{
    struct columns *const c = t->c;
    const int from = c->outer->from[r], part = t->terms != NULL;
    const struct reducer *reducer = &c->plan->problem.program.reducer[r];
    const struct fold_kernels *kernels = part        ? &c->kernels->fold[FOLD_SUM][reducer->cls]
                                         : from >= 0 ? &c->kernels->fold_from[reducer->fold][from]
                                                     : &c->kernels->fold[reducer->fold][reducer->cls];
    int64_t group = mf_outer_next_group(0, t->groups, leaf), row = 0;
    for (int64_t leaves; leaf < end; leaf += leaves) {
        const void *x[MAX_CHAIN], *left[LEVELS], *rows[2 * MOMENTS_LANES];
        const int64_t at = group;
        struct moments_chain m = {.x = x};
        leaves = leaves_at_once(t, reducer, leaf);
        group = leaves_rows(t, r, group, leaves, row, x, m.first);
        row += m.first[leaves];

        int64_t waiting = 0, lefts = 0;
        for (int64_t ones = leaf / leaves; ones; ones /= 2)
            waiting += ones % 2;
        for (int64_t ones = leaf / leaves; ones % 2; ones /= 2, lefts++)
            left[lefts] = c->buffer[r][waiting - 1 - lefts][part];
        m.next = asks ? leaves_ahead(t, r, group, leaves, rows) : NULL;
        m.lanes = leaves;
        m.count = m.first[1];
        m.lefts = lefts;
        char *const spare = c->buffer[r][waiting][part];
        const struct joined j = {x, left, leaves, m.count, lefts, spare, m.next, asks && c->outer->fetches};
        if (reducer->kind == RED_MOMENTS)
            join_moments(t, r, &m, waiting, at, t->groups / leaves);
        else
            kernels->joined(&j, c->buffer[r][waiting - lefts][part], c->width * c->strip);
    }
}

/* A logsumexp's leaves: their greatest elements as such a fold as below, their terms as sums. 0: they are not all so
 * high that terms will do. */
static int add_terms(struct tile *t, int r, int64_t leaf, int64_t end)
{
    struct columns *const c = t->c;
    const struct problem *problem = &c->plan->problem;
    const enum cls cls = problem->program.reducer[r].cls;
    const int from = c->outer->from[r], input = mf_reducer_operand(problem, &problem->program.reducer[r]);
    const void *x[MAX_CHAIN];
    int64_t first[ROWS_TOGETHER + 1];
    const int64_t n = c->width * c->strip, pitch = (n + LSE_COLUMNS - 1) / LSE_COLUMNS * LSE_COLUMNS;
    leaves_rows(t, r, mf_outer_next_group(0, t->groups, leaf), end - leaf, 0, x, first);
    const int64_t rows = first[end - leaf];
    if (!c->kernels->lse_terms[problem->in_type[input]](c->terms, pitch, x, rows, n))
        return 0;
    char *const m = c->buffer[r][0][0];
    (from >= 0 ? c->kernels->fold_from[FOLD_MAX][from] : c->kernels->fold[FOLD_MAX][cls])
        .chain(m, leaf ? m : NULL, x, rows, n, NULL);
    t->terms = c->terms;
    t->pitch = pitch * (int64_t)mf_cls_size(cls);
    join_leaves(t, r, leaf, end, 0);
    t->terms = NULL;
    return 1;
}

/* The same of a fold whose order does not matter, into buffer 0. */
static void add_leaves(const struct tile *t, int r, int64_t leaf, int64_t end)
{
    const void *x[MAX_CHAIN];
    int64_t first[ROWS_TOGETHER + 1];
    leaves_rows(t, r, mf_outer_next_group(0, t->groups, leaf), end - leaf, 0, x, first);
    mf_outer_chain(t->c, r, x, first[end - leaf], leaf > 0);
}

/* All leaves ... end-1 of all reducers; 0: see add_terms. */
static int take_leaves(struct tile *t, int64_t leaf, int64_t end)
{
    const struct outer_plan *outer = t->c->outer;
    for (int q = 0; q < outer->lane_count; q++) {
        const struct reducer *reducer = &t->c->plan->problem.program.reducer[outer->lane[q]];
        if (!mf_outer_is_ordered(reducer))
            add_leaves(t, outer->lane[q], leaf, end);
        else if (reducer->kind != RED_LSE)
            join_leaves(t, outer->lane[q], leaf, end, q == 0);
        else if (!add_terms(t, outer->lane[q], leaf, end))
            return 0;
    }
    return 1;
}

int64_t mf_outer_joined_tree(struct columns *c, int64_t e, int64_t n)
{
    const struct outer_plan *outer = c->outer;
    struct tile t = {.c = c, .e = e, .n = n, .lanes = LANES};
    while (t.lanes > n)
        t.lanes /= 2;
    t.groups = t.lanes / c->strip;
    t.longest = count_of(&t, 0);
    if (outer->terms && t.groups == 1) /* no tree: a chain's states are made as it is read */
        return 0;
    int64_t together = t.groups;
    while ((outer->lane_count > 1 || outer->terms) && together > 1 && together * t.longest > ROWS_TOGETHER)
        together /= 2;
    for (int64_t leaf = 0; leaf < t.groups; leaf += together)
        if (!take_leaves(&t, leaf, leaf + together))
            return 0;
    for (int q = 0; q < outer->lane_count; q++) {
        const int r = outer->lane[q];
        const struct reducer *reducer = &c->plan->problem.program.reducer[r];
        if (reducer->kind == RED_LSE &&
            !c->kernels->lse[reducer->cls].plain(c->buffer[r][0][0], c->buffer[r][0][1], c->width * c->strip))
            return 0;
    }
    return n / c->strip;
}

int mf_outer_joins(const struct mf_plan *plan)
{
    const struct outer_plan *data = plan->data;
    const struct kernels *k = plan->device->kernels;
    int ordered = 0, known = data->strip < LANES && (data->lane_count == 1 || mf_outer_may_join_several(plan));
    for (int q = 0; q < data->lane_count && known; q++) {
        const int r = data->lane[q], from = data->from[r];
        const struct reducer *reducer = &plan->problem.program.reducer[r];
        ordered |= mf_outer_is_ordered(reducer);
        known = data->straight[r] && data->factor[r] < 0;
        if (reducer->kind == RED_MOMENTS)
            known &= k->moments_lanes > 0;
        else if (reducer->kind == RED_LSE)
            known &= mf_outer_takes_terms(plan, reducer);
        else if (mf_outer_is_ordered(reducer))
            known &= reducer->kind == RED_FOLD &&
                     (from >= 0 ? k->fold_from[reducer->fold][from] : k->fold[reducer->fold][reducer->cls]).joined;
    }
    return known && ordered;
}
