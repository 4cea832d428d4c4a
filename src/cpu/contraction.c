/* Solver "contract": out[m, n] = fold over k of x[m, k] o y[k, n], for any modes, strides and types: a product of two
 * factors that have kept modes of their own, and one reducer whose state is one number.
 *
 * A task is a block of outputs. Both factors are packed for a few hundred terms at a time, in the order in which the
 * contract folds them; kernels hold a tile of outputs in registers. So each element is read once for every block of
 * outputs beside it, and no operand is copied or expanded as a whole.
 * Cost: M N K terms; packing M K (N / block) + N K (M / block) values. (Goto and van de Geijn, "Anatomy of
 * high-performance matrix multiplication", 2008, for the blocks; the order of terms is contraction_order.c's.) */
#include "contraction.h"

struct contract_plan {
    struct contraction contraction; /* at its beginning */
    contraction_fn *tile[2];        /* where no term is a NaN; else */
};

static int in_any_order(const struct reducer *reducer)
{
    return !mf_cls_is_float(reducer->cls) || (reducer->fold != FOLD_SUM && reducer->fold != FOLD_PROD);
}

static int applicable(const struct mf_plan *plan)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    struct product_form form;
    return mf_contraction_fits(plan, &form) && reducer->kind == RED_FOLD &&
           plan->device->kernels->contractions->tile[form.product][reducer->fold][reducer->cls][1];
}

static mf_status make(struct mf_plan *plan)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    struct contract_plan *data = plan->data = mf_calloc(sizeof *data);
    struct product_form form;
    if (!data)
        return MF_ERROR_MEMORY;
    mf_contraction_fits(plan, &form);
    for (int any = 0; any < 2; any++)
        data->tile[any] = plan->device->kernels->contractions->tile[form.product][reducer->fold][reducer->cls][any];
    for (int f = 0; f < FACTORS; f++)
        data->contraction.factor[f].looks_for_nans = data->tile[0] != NULL;
    return mf_contraction_plan(plan, &data->contraction, &form, in_any_order(reducer), 0);
}

static void forget(struct mf_plan *plan)
{
    struct contract_plan *data = plan->data;
    if (data)
        mf_free(data->contraction.order.block);
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
        mf_contraction_tiles(w, block, data->tile[0] && !not_finite ? data->tile[0] : data->tile[1],
                             mf_contraction_values(w, top));
        for (int32_t j = 0; j < block->joins; j++, top--)
            mf_contraction_join(w, fold, mf_contraction_values(w, top - 1), mf_contraction_values(w, top));
        top++;
    }
    mf_contraction_store(w, w->values, NULL);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct contract_plan *data = plan->data;
    return mf_contraction_run(plan, &data->contraction, pointers, task);
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct contract_plan *data = plan->data;
    mf_contraction_print(&data->contraction, text, size);
}

const struct solver mf_solver_contract = {
    "contract", "a product of two factors, folded: tiles of outputs over packed panels",
    applicable, make,
    execute,    print,
    forget,
};
