/* Solver "contract-arg": argmax or argmin over k of x[m, k] + y[k, n] (or x * y), alone or with the extreme itself in
 * one pass: the Viterbi step. As solver contract, with the terms one after the other as written, so that of equal terms
 * the first stays. */
#include "contraction.h"

struct arg_plan {
    struct contraction contraction;
    contraction_arg_fn *tile[2]; /* where no term is a NaN (may be null); else */
};

enum { BEST, NUMBERS, WIDE, ARRAYS };

static contraction_arg_fn *find_tile(const struct mf_plan *plan, const struct product_form *form, int any)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    return plan->device->kernels->contractions->arg[form->product][reducer->fold == FOLD_MAX][reducer->cls][any];
}

static int applicable(const struct mf_plan *plan)
{
    struct product_form form;
    return !plan->problem.memory.window_count && mf_factors_argument(&plan->problem.program) >= 0 &&
           mf_cls_is_float(plan->problem.program.reducer[0].cls) && mf_contraction_fits(plan, &form) &&
           find_tile(plan, &form, 1);
}

static mf_status make(struct mf_plan *plan)
{
    struct arg_plan *data = plan->data = mf_calloc(sizeof *data);
    struct product_form form;
    if (!data)
        return MF_ERROR_MEMORY;
    mf_contraction_fits(plan, &form);
    for (int any = 0; any < 2; any++)
        data->tile[any] = find_tile(plan, &form, any);
    for (int f = 0; f < FACTORS; f++)
        data->contraction.factor[f].looks_for_nans = data->tile[0] != NULL;
    return mf_contraction_plan(plan, &data->contraction, &form, WRITTEN_ORDER, ARRAYS);
}

static void add_block(struct contraction_worker *w, const struct term_block *block, int64_t first)
{
    const struct arg_plan *data = w->plan->data;
    const struct contraction *c = w->contraction;
    const int not_finite = mf_contraction_pack(w, block);
    contraction_arg_fn *tile = data->tile[0] && !not_finite ? data->tile[0] : data->tile[1];
    const int64_t pitch = c->block[COLUMN_FACTOR], terms = block->terms * c->size;
    for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j += c->factor[COLUMN_FACTOR].width)
        for (int64_t i = 0; i < w->count[ROW_FACTOR]; i += c->factor[ROW_FACTOR].width) {
            const int64_t at = (i * pitch + j) * c->size;
            tile(mf_contraction_values(w, BEST) + at, mf_contraction_values(w, NUMBERS) + at, pitch,
                 w->panel[ROW_FACTOR] + i * terms, w->panel[COLUMN_FACTOR] + j * terms, block->terms, first);
        }
}

/* Numbers as wide as the finish part takes them. */
static void set_states(struct contraction_worker *w, int64_t at, int64_t n)
{
    const struct program *program = &w->plan->problem.program;
    const int64_t size = w->contraction->size;
    const char *numbers = mf_contraction_values(w, NUMBERS) + at * size;
    int64_t *wide = (int64_t *)(void *)mf_contraction_values(w, WIDE);
    for (int64_t i = 0; i < n; i++)
        wide[i] = size == 4 ? ((const int32_t *)(const void *)numbers)[i] : ((const int64_t *)(const void *)numbers)[i];
    for (int r = 0; r < program->reducer_count; r++) {
        w->finish.block.state[r][0] = mf_contraction_values(w, BEST) + at * size;
        w->finish.block.state[r][1] = wide;
    }
}

static void task(struct contraction_worker *w)
{
    const struct term_order *order = &w->contraction->order;
    for (int64_t b = 0, first = 0; b < order->block_count; first += order->block[b++].terms)
        add_block(w, &order->block[b], first);
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
