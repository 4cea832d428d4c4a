/* Solver "outer", the plan: which rows its kernels read themselves, and how many of them, where columns are few, make
 * one strip. */
#include "habits.h"
#include "outer.h"

enum { NARROW_COLUMNS = 32, MIN_WIDTH = 16, LONG_RUNS = 1024, FEW_RUNS = 8 };

static const struct nest *nest_of(const struct mf_plan *plan)
{
    return &plan->problem.memory;
}

int mf_outer_adds_squares(const struct mf_plan *plan, const struct reducer *reducer)
{
    const struct problem *problem = &plan->problem;
    return mf_reducer_is_squares(problem, reducer) && !mf_cls_is_float(reducer->cls) &&
           plan->device->kernels->summary_chain[problem->in_type[mf_reducer_operand(problem, reducer)]];
}

enum term_kind mf_outer_term(const struct mf_plan *plan, const struct reducer *reducer, int operand[2])
{
    enum { FEWEST = 32 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    const int column = nest->kept - 1;
    const enum term_kind term = mf_reducer_term(problem, reducer, operand);
    if (!term || nest->size[column] < FEWEST || !plan->device->kernels->products[problem->in_type[operand[0]]].chain)
        return NO_TERM;
    if (nest->in[operand[0]][column] != 1) {
        const int other = operand[0];
        operand[0] = operand[1];
        operand[1] = other;
    }
    const int64_t unit = nest->in[operand[1]][column];
    return nest->in[operand[0]][column] == 1 && (unit == 0 || unit == 1) ? term : NO_TERM;
}

int mf_outer_operand(const struct mf_plan *plan, const struct reducer *reducer)
{
    int operand[2];
    return mf_outer_term(plan, reducer, operand) ? operand[0] : mf_reducer_operand(&plan->problem, reducer);
}

/* Whether reducer r's kernels read its argument's rows from memory: an operand with neighbouring columns. */
int mf_outer_reads_memory(const struct mf_plan *plan, const struct reducer *reducer)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    int factor[2];
    if (nest->kept < 1)
        return 0;
    const struct kernels *k = plan->device->kernels;
    if (mf_reducer_is_lse_of_bytes(problem, reducer))
        return k->lse_chain_from[problem->in_type[mf_reducer_operand(problem, reducer)]] != NULL;
    if (node->op != OP_OPERAND)
        return mf_outer_adds_squares(plan, reducer) || mf_outer_term(plan, reducer, factor);
    enum dtype type = problem->in_type[node->index];
    return mf_is_class_type(type) || (reducer->kind == RED_FOLD && k->fold_from[reducer->fold][type].chain) ||
           (reducer->kind == RED_MOMENTS && k->moments_chain_from[type]) ||
           (reducer->kind == RED_LSE && k->lse_chain_from[type]) ||
           (reducer->kind == RED_ARG && k->arg_chain_from[reducer->fold == FOLD_MAX][type]);
}

/* All reducers read memory, from operands whose column loop and last reduced loop have these strides; argmin and argmax
 * only alone. */
static int all_have_strides(const struct mf_plan *plan, int64_t column, int64_t element, int only_folds)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    int last = nest->kept + nest->reduced - 1;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        int factor[2], input = mf_outer_operand(plan, reducer);
        if (!mf_outer_reads_memory(plan, reducer) || (reducer->kind == RED_ARG && problem->program.reducer_count > 1) ||
            (only_folds && reducer->kind != RED_FOLD))
            return 0;
        if (nest->in[input][nest->kept - 1] != column || nest->in[input][last] != element)
            return 0;
        if (mf_outer_term(plan, reducer, factor) && nest->in[factor[1]][nest->kept - 1] &&
            nest->in[factor[1]][last] != element)
            return 0;
    }
    return 1;
}

int mf_outer_is_ordered(const struct reducer *reducer)
{
    const int adds = reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD;
    return reducer->kind != RED_FOLD || (adds && mf_cls_is_float(reducer->cls));
}

/* Whether all reducers are folds whose order does not matter. */
int mf_outer_in_any_order(const struct problem *problem)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (mf_outer_is_ordered(&problem->program.reducer[r]))
            return 0;
    return 1;
}

int mf_outer_takes_terms(const struct mf_plan *plan, const struct reducer *reducer)
{
    enum { FEW = 256 }; /* more rows are chains, whose states cost little */
    const struct node *node = &plan->problem.program.map.node[reducer->arg[0]];
    return reducer->kind == RED_LSE && plan->problem.reduced_total <= FEW && node->op == OP_OPERAND &&
           plan->device->kernels->lse_terms[plan->problem.in_type[node->index]];
}

int mf_outer_may_join_several(const struct mf_plan *plan)
{
    enum { FEW = 512 }; /* of more, rows are better read as wide as they are */
    const struct problem *problem = &plan->problem;
    if (mf_outer_takes_terms(plan, &problem->program.reducer[0]))
        return 1;
    return problem->program.reducer_count > 1 && problem->reduced_total <= FEW &&
           plan->device->kernels->moments_lanes && !mf_outer_in_any_order(problem);
}

int mf_outer_stays_narrow(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct reducer *reducer = &problem->program.reducer[0];
    return problem->program.reducer_count == 1 && reducer->kind == RED_FOLD && mf_outer_reads_memory(plan, reducer) &&
           (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX) &&
           plan->device->kernels
               ->narrow[reducer->fold == FOLD_MAX][problem->in_type[problem->program.map.node[reducer->arg[0]].index]]
               .chain;
}

/* Most elements of a strip: as many as give rows of 64 KB or more, or what integer chains hold in a part of their
 * columns. Chains of elements of one or two bytes, which widen them, read short rows as one stream where the second
 * cache is small (fold_chain.inc); integers widen for sums, floats for the others: their sums are joined. The chain of
 * squares of bytes has few columns at a time; argmin and argmax keep them in registers. */
int64_t mf_outer_strip_elements(const struct mf_plan *plan)
{
    enum { ONE_STREAM = 4096, IN_REGISTERS = 64, OF_SEVERAL = 8192 };
    const struct problem *problem = &plan->problem;
    int64_t most = mf_outer_may_join_several(plan) ? OF_SEVERAL : WIDTH_BYTES / 2;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        const int is_squares = mf_reducer_is_squares(problem, reducer), is_float = mf_cls_is_float(reducer->cls);
        int factor[2];
        const int straight = problem->program.map.node[reducer->arg[0]].op == OP_OPERAND || is_squares ||
                             mf_outer_term(plan, reducer, factor);
        const int adds = reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD;
        const int64_t size = straight ? mf_dtypes[problem->in_type[mf_reducer_operand(problem, reducer)]].size : 8;
        int64_t here = is_float && size <= 2 ? WIDTH_BYTES / size : STRIP_ELEMENTS;
        if (!mf_habits.large_cache || (is_squares && size == 1))
            here = reducer->kind != RED_FOLD || !straight || size > 2 ? STRIP_ELEMENTS
                   : adds != is_float                                 ? ONE_STREAM
                   : is_float && size == 2                            ? WIDTH_BYTES / size
                                                                      : STRIP_ELEMENTS;
        if (reducer->kind == RED_ARG)
            here = IN_REGISTERS;
        if (!mf_outer_reads_memory(plan, reducer))
            here = BLOCK; /* is evaluated at once */
        most = here < most ? here : most;
    }
    return most;
}

/* The largest power of two that divides n (or, of ragged ends, any) and keeps P x columns elements in a strip; at most
 * the lanes, where there are lanes. */
static int64_t strip_length(const struct mf_plan *plan, int64_t n, int64_t columns, int ragged)
{
    const int64_t elements = mf_outer_strip_elements(plan);
    int64_t p = 1, most = mf_outer_in_any_order(&plan->problem) && !ragged ? elements : LANES;
    while (p < most && (ragged || n % (2 * p) == 0) && 2 * p * columns <= elements)
        p *= 2;
    return p;
}

/* Whether the last strip may end before its last row: where there are tiles enough that it does not matter how long
 * the last one takes (outer_lanes.c). */
static int takes_ragged_strips(const struct nest *nest, int64_t n, int64_t columns)
{
    enum { MANY_TILES = 16, FEW_COLUMNS = 64 };
    return nest->reduced == 1 && n % LANES != 0 && n >= MANY_TILES * TILE && columns <= FEW_COLUMNS;
}

/* How many runs of STRIP_COLUMNS of all columns, a power of two, lie together and make one strip. */
static int64_t runs_in_strip(const struct mf_plan *plan, int64_t run, int64_t columns)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    const int loop = nest->kept + nest->reduced - 2;
    int64_t runs = 1;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (nest->in[mf_reducer_operand(problem, &problem->program.reducer[r])][loop] != columns * run)
            return 1;
    const int64_t elements = mf_outer_strip_elements(plan);
    const int is_free = mf_outer_in_any_order(problem) && mf_habits.large_cache;
    while (2 * runs * run <= (is_free ? elements : LANES) && 2 * runs * run * columns <= elements &&
           nest->size[loop] % (2 * runs) == 0)
        runs *= 2;
    return runs;
}

/* Neighbouring blocks whose strips, which hold all elements of the last reduced loop, touch: how many are folded as
 * one, a power of two. */
int64_t mf_outer_blocks_beside(const struct mf_plan *plan, const struct outer_plan *data)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    const int loop = nest->kept - 2;
    const int64_t elements = data->strip * nest->size[nest->kept - 1];
    if (data->strip == 1 || data->layout != STRIP_ROWS || loop < 0 || problem->program.reducer[0].kind == RED_ARG ||
        data->strip != nest->size[nest->kept + nest->reduced - 1])
        return 1;
    int64_t item = 1, beside = 1;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        int factor[2];
        const int input = mf_reducer_operand(problem, &problem->program.reducer[r]);
        if (!mf_outer_reads_memory(plan, &problem->program.reducer[r]) || nest->in[input][loop] != elements ||
            mf_outer_term(plan, &problem->program.reducer[r], factor))
            return 1;
        item = mf_dtypes[problem->in_type[input]].size > item ? mf_dtypes[problem->in_type[input]].size : item;
    }
    const int64_t outputs = problem->kept_total / nest->size[nest->kept - 1];
    while (2 * beside * elements * item <= WIDTH_BYTES && nest->size[loop] % (2 * beside) == 0 &&
           outputs / (2 * beside) >= 4 * plan->threads)
        beside *= 2;
    return beside;
}

/* Whether it is folds of values that are computed, and of rows that touch: short rows are evaluated as strips, for each
 * takes longer to begin with than to compute; but where outputs have few elements, blocks do. */
static int may_evaluate_strips(const struct mf_plan *plan, int64_t columns)
{
    enum { FEW = 4096 };
    const struct problem *problem = &plan->problem;
    const struct nest *nest = nest_of(plan);
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        if (reducer->kind != RED_FOLD)
            return 0;
        if (!mf_outer_reads_memory(plan, reducer))
            continue;
        const int64_t *stride = nest->in[mf_outer_operand(plan, reducer)];
        int factor[2];
        if (mf_outer_term(plan, reducer, factor) && nest->in[factor[1]][nest->kept - 1])
            return 0;
        if (stride[nest->kept - 1] != 1 || stride[nest->kept + nest->reduced - 1] != columns)
            return 0;
    }
    return columns >= MIN_WIDTH || problem->reduced_total * columns >= FEW;
}

/* Rows that are few and long: the kernels take eight of them together, and combine each element once. */
static int takes_rows_together(const struct problem *problem, int64_t columns)
{
    enum { LONG = 256 };
    const int64_t n = problem->reduced_total;
    return problem->program.reducer_count == 1 && problem->program.reducer[0].kind == RED_FOLD && n <= LANES &&
           (n & (n - 1)) == 0 && columns >= LONG;
}

/* Whether threads would have nothing to do but to share the columns, which strips keep together. */
static int shares_columns(const struct mf_plan *plan, int64_t columns)
{
    const struct problem *problem = &plan->problem;
    return problem->kept_total / columns < plan->threads &&
           problem->reduced_total < 2 * plan->threads * (int64_t)TILE &&
           columns >= plan->threads * (int64_t)SHARED_WIDTH;
}

/* Chooses strip and layout; 0 where rows would be too short to be worth it. */
int mf_outer_choose_strip(const struct mf_plan *plan, int64_t *strip, int64_t *inside, enum strip *layout)
{
    const struct nest *nest = nest_of(plan);
    int64_t columns = nest->size[nest->kept - 1], run = nest->size[nest->kept + nest->reduced - 1];
    *strip = 1;
    *layout = STRIP_ROWS;
    if (all_have_strides(plan, run, 1, 1) && nest->reduced > 1 && run <= LANES && (run & (run - 1)) == 0) {
        /* where order is free, long runs are better neighbours in a chain than in a strip, whose halves must join */
        const int alone = run * columns >= LONG_RUNS &&
                          (mf_outer_stays_narrow(plan) ||
                           (mf_outer_in_any_order(&plan->problem) && plan->problem.reduced_total <= FEW_RUNS * run));
        *strip = run * (alone ? 1 : runs_in_strip(plan, run, columns));
        *inside = run;
        *layout = STRIP_COLUMNS;
        return 1;
    }
    if (nest->reduced == 1 && columns >= NARROW_COLUMNS && columns < LONG_RUNS && plan->problem.kept_total > columns &&
        mf_outer_stays_narrow(plan) && all_have_strides(plan, 1, columns, 1)) {
        *inside = 1; /* a chain of rows: strips would widen before they join */
        *layout = STRIP_COLUMNS;
        return 1;
    }
    if (columns < WIDTH_BYTES / 8 && !takes_rows_together(&plan->problem, columns) && !shares_columns(plan, columns) &&
        (all_have_strides(plan, 1, columns, 0) || may_evaluate_strips(plan, columns)))
        *strip = strip_length(plan, run, columns, takes_ragged_strips(nest, run, columns));
    return *strip * columns >= MIN_WIDTH;
}

/* Whether a reducer is one of those that one kernel finds down an operand's rows. */
static int is_in_summary(const struct mf_plan *plan, const struct outer_plan *data, int r, int operand)
{
    const struct reducer *reducer = &plan->problem.program.reducer[r];
    const int adds = reducer->kind == RED_FOLD && reducer->fold == FOLD_SUM;
    const int finds = reducer->kind == RED_FOLD && (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX);
    if (!data->straight[r] || data->factor[r] >= 0 || mf_reducer_operand(&plan->problem, reducer) != operand)
        return 0;
    return mf_cls_is_float(reducer->cls) ? adds || finds || reducer->kind == RED_MOMENTS
                                         : adds || (finds && reducer->fold == FOLD_MAX);
}

/* How many such reducers an operand has; 0 where there are too few: of bytes no sum of squares, of floats one. */
static int count_summary(const struct mf_plan *plan, const struct outer_plan *data, int operand)
{
    const struct reducer *reducers = plan->problem.program.reducer;
    int count = 0, squares = 0, floats = 0;
    if (operand < 0 || !plan->device->kernels->summary_chain[plan->problem.in_type[operand]])
        return 0;
    for (int q = 0; q < data->lane_count; q++) {
        const int r = data->lane[q], is_in = is_in_summary(plan, data, r, operand);
        count += is_in;
        squares |= is_in && mf_outer_adds_squares(plan, &reducers[r]);
        floats |= is_in && mf_cls_is_float(reducers[r].cls);
    }
    return (floats ? count > 1 : squares) ? count : 0;
}

int mf_outer_plan_together(const struct mf_plan *plan, struct outer_plan *data)
{
    int operand = -1, most = 0, together = 0;
    for (int q = 0; q < data->lane_count; q++) {
        const int at = mf_reducer_operand(&plan->problem, &plan->problem.program.reducer[data->lane[q]]);
        const int count = count_summary(plan, data, at);
        operand = count > most ? at : operand;
        most = count > most ? count : most;
    }
    for (int q = 0; q < data->lane_count && operand >= 0; q++)
        if (is_in_summary(plan, data, data->lane[q], operand)) {
            const int r = data->lane[q];
            data->lane[q] = data->lane[together];
            data->lane[together++] = r;
        }
    return together;
}
