/* Solver "contract-arg": argmax or argmin over k of x[m, k] + y[k, n] (or x * y), alone or with the extreme itself in
 * one pass: the Viterbi step. As solver contract, with the terms one after the other as written, so that of equal terms
 * the first stays. */
#include "contraction.h"

struct arg_plan {
    struct contraction contraction;
    contraction_arg_fn *tile[2]; /* where no term is a NaN (may be null); else */
};

contraction_arg_fn *mf_contraction_arg_tile(const struct mf_plan *plan, int r, const struct product_form *form, int any)
{
    const struct reducer *reducer = &plan->problem.program.reducer[r];
    return plan->device->kernels->contractions->arg[form->product][reducer->fold == FOLD_MAX][reducer->cls][any];
}

static int applicable(const struct mf_plan *plan)
{
    struct product_form form;
    return !plan->problem.memory.window_count && mf_factors_argument(&plan->problem.program) >= 0 &&
           mf_cls_is_float(plan->problem.program.reducer[0].cls) && mf_contraction_fits(plan, 0, &form) &&
           mf_contraction_arg_tile(plan, 0, &form, 1);
}

static mf_status make(struct mf_plan *plan)
{
    struct arg_plan *data = plan->data = mf_calloc(sizeof *data);
    struct product_form form;
    if (!data)
        return MF_ERROR_MEMORY;
    mf_contraction_fits(plan, 0, &form);
    for (int any = 0; any < 2; any++)
        data->tile[any] = mf_contraction_arg_tile(plan, 0, &form, any);
    for (int f = 0; f < FACTORS; f++)
        data->contraction.factor[f].looks_for_nans = data->tile[0] != NULL;
    return mf_contraction_plan(plan, &data->contraction, &form, WRITTEN_ORDER, CONTRACTION_ARG_ARRAYS);
}

static void add_block(struct contraction_worker *w, contraction_arg_fn *const tiles[2], const struct term_block *block,
                      int64_t first)
{
    const struct contraction *c = w->contraction;
    const int not_finite = mf_contraction_pack(w, block);
    contraction_arg_fn *tile = tiles[0] && !not_finite ? tiles[0] : tiles[1];
    const int64_t pitch = c->block[COLUMN_FACTOR], terms = block->terms * c->size;
    for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j += c->factor[COLUMN_FACTOR].width)
        for (int64_t i = 0; i < w->count[ROW_FACTOR]; i += c->factor[ROW_FACTOR].width) {
            const int64_t at = (i * pitch + j) * c->size;
            tile(mf_contraction_values(w, CONTRACTION_BEST) + at, mf_contraction_values(w, CONTRACTION_NUMBERS) + at,
                 pitch, w->panel[ROW_FACTOR] + i * terms, w->panel[COLUMN_FACTOR] + j * terms, block->terms, first);
        }
}

void mf_contraction_find_best(struct contraction_worker *w, contraction_arg_fn *const tile[2])
{
    const struct term_order *order = &w->contraction->order;
    for (int64_t b = 0, first = 0; b < order->block_count; first += order->block[b++].terms)
        add_block(w, tile, &order->block[b], first);
}

int64_t *mf_contraction_numbers(struct contraction_worker *w, int64_t at, int64_t n)
{
    const int64_t size = w->contraction->size;
    const char *numbers = mf_contraction_values(w, CONTRACTION_NUMBERS) + at * size;
    int64_t *wide = (int64_t *)(void *)mf_contraction_values(w, CONTRACTION_WIDE);
    for (int64_t i = 0; i < n; i++)
        wide[i] = size == 4 ? ((const int32_t *)(const void *)numbers)[i] : ((const int64_t *)(const void *)numbers)[i];
    return wide;
}

static void set_states(struct contraction_worker *w, int64_t at, int64_t n)
{
    const struct program *program = &w->plan->problem.program;
    int64_t *wide = mf_contraction_numbers(w, at, n);
    for (int r = 0; r < program->reducer_count; r++) {
        w->finish.block.state[r][0] = mf_contraction_values(w, CONTRACTION_BEST) + at * w->contraction->size;
        w->finish.block.state[r][1] = wide;
    }
}

static void task(struct contraction_worker *w)
{
    const struct arg_plan *data = w->plan->data;
    mf_contraction_find_best(w, data->tile);
    mf_contraction_store(w, set_states);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    return mf_contraction_run(plan, pointers, task, NULL);
}

const struct solver mf_solver_contract_arg = {
    "contract-arg",
    "the best of products of two factors, and which it is, in tiles",
    applicable,
    make,
    execute,
    mf_contraction_print,
    mf_contraction_forget,
};
