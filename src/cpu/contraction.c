/* Solver "contract": out[m, n] = fold over k of x[m, k] o y[k, n], for any modes, strides and types: a product of two
 * factors that have kept modes of their own, and one reducer whose state is one number.
 *
 * Where a window leaves its tensor, a value is packed that changes nothing: 0 in sums of products, an infinity in
 * extremes of sums. That is right as long as the other factor is finite; where it is not, the fold is done again by
 * solver inner.
 *
 * A task is a block of outputs. Both factors are packed for a few hundred terms at a time, in the order in which the
 * contract folds them; kernels hold a tile of outputs in registers. So each element is read once for every block of
 * outputs beside it, and no operand is copied or expanded as a whole.
 * Cost: M N K terms; packing M K (N / block) + N K (M / block) values. (Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication", 2008, for the blocks; the order of terms is src/term_order.c's.) */
#include "contraction.h"

#include <math.h>

struct contract_plan {
    struct contraction contraction;
    contraction_fn *tile[2]; /* where no term is a NaN; else */
    struct mf_plan *general; /* solver inner's plan of the same fold, where there are windows; else null */
};

static int in_any_order(const struct reducer *reducer)
{
    return !mf_cls_is_float(reducer->cls) || (reducer->fold != FOLD_SUM && reducer->fold != FOLD_PROD);
}

/* Whether windows can be packed: of operands of the product, in a fold to which a packed value can make no difference,
 * and nobody counts. */
static int packs_windows(const struct problem *problem, const struct product_form *form)
{
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct nest *nest = &problem->memory;
    if (!nest->window_count)
        return 1;
    for (int w = 0; w < nest->window_count; w++)
        if (!problem->map_uses[nest->window[w].input] ||
            !mf_nest_parts_fit(nest, nest->window[w].step, nest->window[w].offset) ||
            !mf_nest_parts_fit(nest, nest->in[nest->window[w].input], 0))
            return 0;
    return nest->window_count <= FACTOR_WINDOWS && !problem->program.uses_count &&
           ((form->product == PRODUCT_MUL && reducer->fold == FOLD_SUM) ||
            (form->product == PRODUCT_ADD && mf_cls_is_float(reducer->cls) &&
             (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX)));
}

static int applicable(const struct mf_plan *plan)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    struct product_form form;
    return plan->problem.program.reducer_count == 1 && mf_contraction_fits(plan, 0, &form) &&
           reducer->kind == RED_FOLD &&
           plan->device->kernels->contractions->tile[form.product][reducer->fold][reducer->cls][1] &&
           packs_windows(&plan->problem, &form);
}

/* The plan for factors that are not finite. */
static mf_status plan_general(struct mf_plan *plan, struct contract_plan *data)
{
    struct mf_plan *general = data->general = mf_calloc(sizeof *general);
    if (!general)
        return MF_ERROR_MEMORY;
    *general = *plan;
    general->solver = &mf_solver_inner;
    general->data = NULL;
    return mf_solver_inner.plan(general);
}

/* What is packed outside of windows: it is added, or it loses. */
static union value outside(const struct reducer *reducer)
{
    const double loses = reducer->fold == FOLD_MAX ? -INFINITY : reducer->fold == FOLD_MIN ? INFINITY : 0;
    union value value = {.u64 = 0};
    if (reducer->cls == CLS_F32)
        value.f32 = (float)loses;
    else if (reducer->cls == CLS_F64)
        value.f64 = loses;
    return value;
}

static mf_status make(struct mf_plan *plan)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    struct contract_plan *data = plan->data = mf_calloc(sizeof *data);
    struct product_form form;
    int windows = plan->problem.memory.window_count > 0;
    if (!data)
        return MF_ERROR_MEMORY;
    mf_contraction_fits(plan, 0, &form);
    for (int any = 0; any < 2; any++)
        data->tile[any] = plan->device->kernels->contractions->tile[form.product][reducer->fold][reducer->cls][any];
    for (int f = 0; f < FACTORS; f++) {
        data->contraction.factor[f].looks_for_nans =
            data->tile[0] != NULL || (windows && mf_cls_is_float(reducer->cls));
        data->contraction.factor[f].outside = outside(reducer);
    }
    if (windows)
        MF_TRY(plan_general(plan, data));
    return mf_contraction_plan(plan, &data->contraction, &form, in_any_order(reducer) ? ANY_ORDER : CONTRACT_ORDER, 0);
}

static void forget(struct mf_plan *plan)
{
    struct contract_plan *data = plan->data;
    if (!data)
        return;
    mf_contraction_forget(plan);
    if (!data->general)
        return;
    if (data->general->solver->forget)
        data->general->solver->forget(data->general);
    mf_free(data->general->data);
    mf_free(data->general);
}

/* Whether what is packed outside of windows could show. */
static int shows_outside(const struct contraction *c, int not_finite)
{
    return (c->factor[ROW_FACTOR].window_count && not_finite >> COLUMN_FACTOR & 1) ||
           (c->factor[COLUMN_FACTOR].window_count && not_finite >> ROW_FACTOR & 1);
}

static void set_states(struct contraction_worker *w, int64_t at, int64_t n)
{
    (void)n;
    w->finish.block.state[0][0] = w->values + at * w->contraction->size;
}

static void task(struct contraction_worker *w)
{
    const struct contract_plan *data = w->plan->data;
    const struct term_order *order = &data->contraction.order;
    const enum fold fold = w->plan->problem.program.reducer[0].fold;
    int64_t top = 0;
    for (int64_t b = 0; b < order->block_count; b++) {
        const struct term_block *block = &order->block[b];
        int not_finite = mf_contraction_pack(w, block);
        if (shows_outside(&data->contraction, not_finite)) {
            atomic_store(w->refused, 1);
            return;
        }
        top = mf_contraction_fold(w, block, data->tile[0] && !not_finite ? data->tile[0] : data->tile[1], fold, top);
    }
    mf_contraction_store(w, set_states);
}

/* Whether an output may share memory with an operand (of the finish part: others may not): then the fold cannot be done
 * twice. */
static int is_in_place(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct problem *problem = &plan->problem;
    for (int i = 0; i < problem->input_count; i++) {
        const uintptr_t base = (uintptr_t)(problem->in_base[i] * mf_dtypes[problem->in_type[i]].size);
        const void *in = (const void *)((uintptr_t)pointers->in[i] - base);
        for (int k = 0; k < problem->output_count; k++)
            if (problem->finish_uses[i] && mf_problem_near(problem, i, in, MF_MAX_INPUTS + k, pointers->out[k]))
                return 1;
    }
    return 0;
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct contract_plan *data = plan->data;
    int refused = data->general && is_in_place(plan, pointers);
    if (!refused)
        MF_TRY(mf_contraction_run(plan, pointers, task, &refused));
    return refused ? data->general->solver->execute(data->general, pointers) : MF_OK;
}

const struct solver mf_solver_contract = {
    "contract", "a product of two factors, folded: tiles of outputs over packed panels",
    applicable, make,
    execute,    mf_contraction_print,
    forget,
};
