/* Solver "contract-several": several reducers over products of two factors, in one pass over the outputs: each is
 * folded into a block of outputs as solvers contract and contract-arg do it, with their kernels and in their order, and
 * the blocks are finished together. So nothing of the size of all terms is made, and no result waits in memory.
 * Cost: M N K terms for every pass; a pass is a fold, or an argmin or argmax with the extreme itself. */
#include "contraction.h"

#include <stdio.h>
#include <string.h>

struct pass {
    struct product_form form;
    contraction_fn *tile[2];         /* where no term is a NaN (may be null); else */
    contraction_arg_fn *arg_tile[2]; /* of an argmin or argmax, likewise; else null */
    int reducer;
};

struct several_plan {
    struct contraction contraction[CONTRACTION_PASSES];
    struct pass pass[CONTRACTION_PASSES];
    int count, pass_of[MAX_REDUCERS];
};

/* ---- which folds ---- */

/* Whether both factors of two forms have the same kept loops. */
static int are_alike(const struct problem *problem, const struct product_form *a, const struct product_form *b)
{
    struct factor_loops x, y;
    int same = 1;
    mf_factors_loops(problem, a->node, &x);
    mf_factors_loops(problem, b->node, &y);
    const int swap = x.loop[0][0] != y.loop[0][0];
    for (int f = 0; f < FACTORS; f++) {
        const int g = f ^ swap;
        same = same && x.count[f] == y.count[g] && !memcmp(x.loop[f], y.loop[g], sizeof(int) * (size_t)x.count[f]);
    }
    return same;
}

/* Fills the pass of reducer r; 0 where there is no kernel for it. */
static int find_pass(const struct mf_plan *plan, int r, struct pass *pass)
{
    const struct reducer *reducer = &plan->problem.program.reducer[r];
    const struct contraction_kernels *kernels = plan->device->kernels->contractions;
    *pass = (struct pass){.reducer = r};
    if ((reducer->kind != RED_FOLD && reducer->kind != RED_ARG) || !mf_contraction_fits(plan, r, &pass->form) ||
        (reducer->kind == RED_ARG && !mf_cls_is_float(reducer->cls)))
        return 0;
    for (int any = 0; any < 2; any++)
        if (reducer->kind == RED_ARG)
            pass->arg_tile[any] = mf_contraction_arg_tile(plan, r, &pass->form, any);
        else
            pass->tile[any] = kernels->tile[pass->form.product][reducer->fold][reducer->cls][any];
    return pass->tile[1] || pass->arg_tile[1];
}

/* The passes; 0 where the fold has none, or only one. */
static int find_passes(const struct mf_plan *plan, struct several_plan *data)
{
    const struct problem *problem = &plan->problem;
    const struct program *program = &problem->program;
    data->count = 0;
    if (program->reducer_count < 2 || problem->memory.window_count)
        return 0;
    for (int r = 0; r < program->reducer_count; r++) {
        const int leader = mf_factors_leader(program, r);
        int p = 0;
        while (p < data->count && data->pass[p].reducer != leader)
            p++;
        data->pass_of[r] = p;
        if (p < data->count)
            continue;
        if (p == CONTRACTION_PASSES || program->reducer[r].cls != program->reducer[0].cls ||
            !find_pass(plan, leader, &data->pass[p]) ||
            (p && !are_alike(problem, &data->pass[0].form, &data->pass[p].form)))
            return 0;
        data->count++;
    }
    return data->count;
}

static int applicable(const struct mf_plan *plan)
{
    struct several_plan found;
    return find_passes(plan, &found) > 1;
}

/* ---- plans ---- */

static enum term_numbers numbers_of(const struct reducer *reducer)
{
    return reducer->kind == RED_ARG                                                                     ? WRITTEN_ORDER
           : mf_cls_is_float(reducer->cls) && (reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD) ? CONTRACT_ORDER
                                                                                                        : ANY_ORDER;
}

static mf_status make(struct mf_plan *plan)
{
    struct several_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    find_passes(plan, data);
    for (int p = 0; p < data->count; p++) {
        const struct pass *pass = &data->pass[p];
        for (int f = 0; f < FACTORS; f++)
            data->contraction[p].factor[f].looks_for_nans = pass->tile[0] || pass->arg_tile[0];
        MF_TRY(mf_contraction_plan(plan, &data->contraction[p], &pass->form,
                                   numbers_of(&plan->problem.program.reducer[pass->reducer]),
                                   pass->arg_tile[1] ? CONTRACTION_ARG_ARRAYS : 0));
    }
    return MF_OK;
}

static void forget(struct mf_plan *plan)
{
    struct several_plan *data = plan->data;
    for (int p = 0; data && p < data->count; p++)
        mf_free(data->contraction[p].order.block);
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct several_plan *data = plan->data;
    const int n = snprintf(text, size, "%d passes over each block of outputs; ", data->count);
    if (n > 0 && (size_t)n < size)
        mf_contraction_print(plan, text + n, size - (size_t)n);
}

/* ---- a block of outputs ---- */

/* The worker of the first pass stores; the others lie behind it. */
static void set_states(struct contraction_worker *w, int64_t at, int64_t n)
{
    const struct several_plan *data = w->plan->data;
    const struct program *program = &w->plan->problem.program;
    void *wide[CONTRACTION_PASSES];
    for (int p = 0; p < data->count; p++)
        wide[p] = data->pass[p].arg_tile[1] ? mf_contraction_numbers(&w[p], at, n) : NULL;
    for (int r = 0; r < program->reducer_count; r++) {
        const int p = data->pass_of[r];
        w->finish.block.state[r][0] = mf_contraction_values(&w[p], 0) + at * w->contraction->size;
        if (program->reducer[r].kind == RED_ARG)
            w->finish.block.state[r][1] = wide[p];
    }
}

static void fold_pass(struct contraction_worker *w, const struct pass *pass)
{
    const struct term_order *order = &w->contraction->order;
    const enum fold fold = w->plan->problem.program.reducer[pass->reducer].fold;
    int64_t top = 0;
    for (int64_t b = 0; b < order->block_count; b++) {
        const int not_finite = mf_contraction_pack(w, &order->block[b]);
        top = mf_contraction_fold(w, &order->block[b], pass->tile[0] && !not_finite ? pass->tile[0] : pass->tile[1],
                                  fold, top);
    }
}

static void task(struct contraction_worker *w)
{
    const struct several_plan *data = w->plan->data;
    for (int p = 0; p < data->count; p++)
        if (data->pass[p].arg_tile[1])
            mf_contraction_find_best(&w[p], data->pass[p].arg_tile);
        else
            fold_pass(&w[p], &data->pass[p]);
    mf_contraction_store(w, set_states);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct several_plan *data = plan->data;
    return mf_contraction_run_passes(plan, data->contraction, data->count, pointers, task, NULL);
}

const struct solver mf_solver_contract_several = {
    "contract-several",
    "several folds of products of two factors: solver contract's tiles for each, over the same blocks of outputs",
    applicable,
    make,
    execute,
    print,
    forget,
};
