/* Solvers "log-certified", "log-fast", "log-exact" and "log-running": out[m, n] = logsumexp over k of
 * x[m, k] + y[k, n], as a product of matrices.
 *
 *     r[m] = max over k of x[m, k], c[n] = max over k of y[k, n], S = exp(x - r) exp(y - c), out = r + c + log S
 *
 * One exp an element instead of one a term. Where the greatest terms do not lie where both factors are great, S
 * underflows; a certificate finds that: every product that was lost, or that E's floor made (docs/numerics.md, section
 * 3), is below e^-87, so S >= K * 2^-101 (f64: e^-708, K * 2^-967) has lost less than one rounding. Outputs that fail
 * it and rows or columns with +inf or NaN are computed again, one exp a term. "log-fast" looks for no certificate and
 * is wrong without a word where S underflows; "log-exact" computes every output with one exp a term, in two passes: the
 * greatest term, then the sum. "log-running" needs one, with a state that is merged block by block.
 *
 * Terms are summed in an order of their own (and fused where there are instructions for it), so these solvers run where
 * the contract's bits are not asked for; results are the same from run to run. */
#include "contraction.h"

#include <math.h>

enum tier { FAST, CERTIFIED, EXACT, RUNNING };

struct log_plan {
    struct contraction contraction;
    enum tier tier;
};

enum { SUMS, INCOMING, MARKS, EXACT_MOST, EXACT_SUMS, EXACT_PART, ARRAYS };
enum { MOST_POSITIONS = BLOCK_COLUMN_BYTES / 4, CHAIN = 32, FEW = 8 };
_Static_assert((int)BLOCK_ROWS <= (int)MOST_POSITIONS, "shifts of a block's rows have room");

static int applicable(const struct mf_plan *plan)
{
    struct product_form form;
    return plan->problem.program.reducer_count == 1 && mf_contraction_fits(plan, 0, &form) &&
           plan->problem.program.reducer[0].kind == RED_LSE && form.product == PRODUCT_ADD &&
           !plan->problem.memory.window_count;
}

/* One exp an element instead of one a term does not pay where outputs are few. (modefold bench, batches of f32: 8 x 8
 * outputs of 8 terms are slower than solver inner's, 16 x 16 of 16 and 4 x 64 of 4 faster.) Of GPUs too, which have no
 * tables of kernels. */
int mf_log_products_pay(const struct mf_plan *plan)
{
    enum { LEAST_OWN = 4, LEAST_OUTPUTS = 128, LEAST_OF_GPU = 64, TINY_TERMS = 16, MOST_TINY = 4096 };
    const struct problem *problem = &plan->problem;
    struct product_form form;
    struct factor_loops loops;
    if (problem->program.reducer_count != 1 || problem->program.reducer[0].kind != RED_LSE || !problem->kept_total ||
        !mf_product_find(&problem->program.map, problem->program.reducer[0].arg[0], &form) ||
        form.product != PRODUCT_ADD)
        return 0;
    if (plan->device->api && problem->reduced_total <= TINY_TERMS && problem->kept_total <= MOST_TINY)
        return 1; /* one launch is all that counts */
    mf_factors_loops(problem, form.node, &loops);
    const int64_t rows = mf_factors_positions(problem, &loops, ROW_FACTOR);
    const int64_t columns = mf_factors_positions(problem, &loops, COLUMN_FACTOR);
    return rows >= LEAST_OWN && columns >= LEAST_OWN &&
           rows * columns >= (plan->device->api ? LEAST_OF_GPU : LEAST_OUTPUTS);
}

static mf_status make(struct mf_plan *plan, enum tier tier)
{
    struct log_plan *data = plan->data = mf_calloc(sizeof *data);
    struct product_form form;
    if (!data)
        return MF_ERROR_MEMORY;
    data->tier = tier;
    MF_TRY(mf_plan_start_tiers(plan));
    mf_contraction_fits(plan, 0, &form);
    return mf_contraction_plan(plan, &data->contraction, &form, ANY_ORDER, ARRAYS);
}

static mf_status make_certified(struct mf_plan *plan)
{
    return make(plan, CERTIFIED);
}

static mf_status make_fast(struct mf_plan *plan)
{
    return make(plan, FAST);
}

static mf_status make_exact(struct mf_plan *plan)
{
    return make(plan, EXACT);
}

static mf_status make_running(struct mf_plan *plan)
{
    return make(plan, RUNNING);
}

/* ---- a value of either class ---- */

static double value_at(const void *array, int64_t i, int64_t size)
{
    return size == 4 ? (double)((const float *)array)[i] : ((const double *)array)[i];
}

static void set_value(void *array, int64_t i, int64_t size, double value)
{
    if (size == 4)
        ((float *)array)[i] = (float)value;
    else
        ((double *)array)[i] = value;
}

/* ---- one block of outputs ---- */

/* The maxima of each factor, and what is subtracted: the maximum, or 0 where it is no finite number. */
struct shifts {
    _Alignas(64) char most[FACTORS][MOST_POSITIONS * 8], shift[FACTORS][MOST_POSITIONS * 8];
};

/* Maxima over the terms of the packed block, on top of those so far. */
static void raise_maxima(struct contraction_worker *w, const struct term_block *block, int first, struct shifts *shifts)
{
    const struct contraction *c = w->contraction;
    const struct reducer *reducer = &w->plan->problem.program.reducer[0];
    chain_fn *chain = w->plan->device->kernels->fold[FOLD_MAX][reducer->cls].chain;
    for (int f = 0; f < FACTORS; f++) {
        const int64_t width = c->factor[f].width;
        for (int64_t p = 0; p < w->count[f]; p += width)
            for (int64_t k = 0; k < block->terms; k += CHAIN) {
                const void *x[CHAIN];
                int64_t n = block->terms - k < CHAIN ? block->terms - k : CHAIN;
                char *to = shifts->most[f] + p * c->size;
                for (int64_t q = 0; q < n; q++)
                    x[q] = w->panel[f] + (p * block->terms + (k + q) * width) * c->size;
                chain(to, first && !k ? NULL : to, x, n, width, NULL);
            }
    }
}

static void find_shifts(struct contraction_worker *w, struct shifts *shifts)
{
    const struct contraction *c = w->contraction;
    memset(shifts, 0, sizeof *shifts);
    for (int64_t b = 0; b < c->order.block_count; b++) {
        mf_contraction_pack(w, &c->order.block[b]);
        raise_maxima(w, &c->order.block[b], b == 0, shifts);
    }
    for (int f = 0; f < FACTORS; f++)
        for (int64_t p = 0; p < w->count[f]; p++) {
            double most = value_at(shifts->most[f], p, c->size);
            set_value(shifts->shift[f], p, c->size, isfinite(most) ? most : 0);
        }
}

/* Panels of exp(value - shift): a few terms' worth of shifts beside each other, so that loops are long enough. */
static void exponentiate(struct contraction_worker *w, const struct term_block *block, const struct shifts *shifts)
{
    enum { REPEAT = 4 };
    const struct contraction *c = w->contraction;
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    for (int f = 0; f < FACTORS; f++) {
        const int64_t width = c->factor[f].width, bytes = width * c->size;
        for (int64_t p = 0; p < w->count[f]; p += width) {
            _Alignas(64) char pattern[REPEAT * MOST_POSITIONS * 8];
            for (int q = 0; q < REPEAT; q++)
                memcpy(pattern + q * bytes, shifts->shift[f] + p * c->size, (size_t)bytes);
            w->plan->device->kernels->contractions->exp_shifted[cls](w->panel[f] + p * block->terms * c->size,
                                                                     block->terms * width, pattern, REPEAT * width);
        }
    }
}

static void sum_products(struct contraction_worker *w, const struct shifts *shifts)
{
    const struct contraction *c = w->contraction;
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    char *sums = mf_contraction_values(w, SUMS), *incoming = mf_contraction_values(w, INCOMING);
    for (int64_t b = 0; b < c->order.block_count; b++) {
        const struct term_block *block = &c->order.block[b];
        mf_contraction_pack(w, block);
        exponentiate(w, block, shifts);
        mf_contraction_tiles(w, block, w->plan->device->kernels->contractions->fused[cls], b ? incoming : sums);
        if (b)
            mf_contraction_join(w, FOLD_SUM, sums, incoming);
    }
}

/* What becomes of one sum: the greatest term's scale, or to be computed again (marked). */
static int is_certified(const struct contraction_worker *w, double sum, double row, double column, double least)
{
    const struct log_plan *data = w->plan->data;
    const double greatest = row > column ? row : column;
    if (row != row || column != column || greatest == INFINITY)
        return 0;
    if (row == -INFINITY || column == -INFINITY)
        return 1; /* -inf, whatever the sum */
    return data->tier == FAST || sum >= least;
}

/* Sums become results in SUMS and 0 in INCOMING: a state whose logsum is that result. Returns how many outputs are
 * marked, whose state take_marked has. */
static int64_t certify(struct contraction_worker *w, const struct shifts *shifts)
{
    const struct contraction *c = w->contraction;
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    const double terms = (double)w->plan->problem.reduced_total, least = ldexp(terms, cls == CLS_F32 ? -101 : -967);
    char *sums = mf_contraction_values(w, SUMS), *logs = mf_contraction_values(w, INCOMING);
    char *mark = mf_contraction_values(w, MARKS);
    const int64_t columns = c->block[COLUMN_FACTOR];
    int64_t marked = 0;
    for (int64_t i = 0; i < w->count[ROW_FACTOR]; i++) {
        const double row = value_at(shifts->most[ROW_FACTOR], i, c->size);
        w->plan->device->kernels->map[MAP_log][cls](logs, sums + i * columns * c->size, NULL, NULL, columns);
        for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j++) {
            const int64_t at = i * columns + j;
            const double column = value_at(shifts->most[COLUMN_FACTOR], j, c->size);
            const int good = is_certified(w, value_at(sums, at, c->size), row, column, least);
            const double scale = row + column; /* exact in double for floats, once rounded for doubles */
            set_value(sums, at, c->size, good ? scale + value_at(logs, j, c->size) : -INFINITY);
            mark[at] = !good;
            marked += !good;
        }
    }
    memset(logs, 0, c->value_bytes);
    return marked;
}

/* One output's terms x + y of one packed block. */
static void add_factors(const struct contraction_worker *w, const struct term_block *block, int64_t i, int64_t j,
                        void *terms)
{
    const struct contraction *c = w->contraction;
    const int64_t row_width = c->factor[ROW_FACTOR].width, column_width = c->factor[COLUMN_FACTOR].width;
    const char *x = w->panel[ROW_FACTOR] + (i / row_width * row_width * block->terms + i % row_width) * c->size;
    const char *y =
        w->panel[COLUMN_FACTOR] + (j / column_width * column_width * block->terms + j % column_width) * c->size;
    if (c->size == 4)
        for (int64_t k = 0; k < block->terms; k++)
            ((float *)terms)[k] =
                ((const float *)(const void *)x)[k * row_width] + ((const float *)(const void *)y)[k * column_width];
    else
        for (int64_t k = 0; k < block->terms; k++)
            ((double *)terms)[k] =
                ((const double *)(const void *)x)[k * row_width] + ((const double *)(const void *)y)[k * column_width];
}

/* The greater of most[at] and all terms; a NaN stays. */
static void raise_most(const struct contraction_worker *w, int64_t at, const void *terms, int64_t n)
{
    const int64_t size = w->contraction->size;
    char *most = mf_contraction_values(w, EXACT_MOST);
    double m = value_at(most, at, size);
    for (int64_t k = 0; k < n; k++) {
        const double term = value_at(terms, k, size);
        if (m == m && !(term <= m))
            m = term;
    }
    set_value(most, at, size, m);
}

/* sums[at] += the sum of E(term - most[at]), added one after the other as exp_sums does. */
static void add_exponentials(const struct contraction_worker *w, int64_t at, void *terms, int64_t n)
{
    enum { REPEAT = 64 };
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    const int64_t size = w->contraction->size;
    char *sums = mf_contraction_values(w, EXACT_SUMS);
    const double most = value_at(mf_contraction_values(w, EXACT_MOST), at, size);
    _Alignas(64) double shift[REPEAT];
    float part = 0;
    double part_wide = 0;
    for (int64_t q = 0; q < REPEAT; q++)
        set_value(shift, q, size, most);
    w->plan->device->kernels->contractions->exp_shifted[cls](terms, n, shift, REPEAT);
    for (int64_t k = 0; k < n && size == 4; k++)
        part += ((const float *)terms)[k];
    for (int64_t k = 0; k < n && size != 4; k++)
        part_wide += ((const double *)terms)[k];
    if (size == 4)
        ((float *)(void *)sums)[at] += part;
    else
        ((double *)(void *)sums)[at] += part_wide;
}

/* As compute_all and with its bits, for the marked outputs: so nothing depends on which blocks there are. */
static void compute_marked(struct contraction_worker *w)
{
    const struct contraction *c = w->contraction;
    const char *mark = mf_contraction_values(w, MARKS);
    const int64_t columns = c->block[COLUMN_FACTOR], blocks = c->order.block_count;
    _Alignas(64) double terms[PANEL_TERMS];
    for (int64_t i = 0; i < w->count[ROW_FACTOR] * columns; i++)
        set_value(mf_contraction_values(w, EXACT_MOST), i, c->size, -INFINITY);
    memset(mf_contraction_values(w, EXACT_SUMS), 0, c->value_bytes);
    for (int64_t pass = 0; pass < 2 * blocks; pass++) {
        const struct term_block *block = &c->order.block[pass % blocks];
        mf_contraction_pack(w, block);
        for (int64_t i = 0; i < w->count[ROW_FACTOR]; i++)
            for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j++) {
                const int64_t at = i * columns + j;
                if (!mark[at])
                    continue;
                add_factors(w, block, i, j, terms);
                if (pass < blocks)
                    raise_most(w, at, terms, block->terms);
                else
                    add_exponentials(w, at, terms, block->terms);
            }
    }
}

/* The greatest term of every output in one packed block, with what tiles are given. */
static void find_most(struct contraction_worker *w, const struct term_block *block, char *most)
{
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    mf_contraction_tiles(w, block, w->plan->device->kernels->contractions->tile[PRODUCT_ADD][FOLD_MAX][cls][1], most);
}

/* sums = the sum of E(term - most) over one packed block, for every output. */
static void sum_below(struct contraction_worker *w, const struct term_block *block, const char *most, char *sums)
{
    const struct contraction *c = w->contraction;
    const struct contraction_kernels *k = w->plan->device->kernels->contractions;
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    const int64_t pitch = c->block[COLUMN_FACTOR], bytes = block->terms * c->size;
    memset(sums, 0, c->value_bytes);
    for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j += c->factor[COLUMN_FACTOR].width)
        for (int64_t i = 0; i < w->count[ROW_FACTOR]; i += c->factor[ROW_FACTOR].width) {
            const int64_t at = (i * pitch + j) * c->size;
            k->exp_sums[cls](sums + at, most + at, pitch, w->panel[ROW_FACTOR] + i * bytes,
                             w->panel[COLUMN_FACTOR] + j * bytes, block->terms);
        }
}

/* Every output: the greatest term, then the sum of what is below it. */
static void compute_all(struct contraction_worker *w)
{
    const struct contraction *c = w->contraction;
    char *most = mf_contraction_values(w, EXACT_MOST), *sums = mf_contraction_values(w, EXACT_SUMS);
    char *part = mf_contraction_values(w, EXACT_PART); /* chains are short: rounding errors grow with their length */
    for (int64_t b = 0; b < c->order.block_count; b++) {
        mf_contraction_pack(w, &c->order.block[b]);
        find_most(w, &c->order.block[b], b ? sums : most);
        if (b)
            mf_contraction_join(w, FOLD_MAX, most, sums);
    }
    memset(sums, 0, c->value_bytes);
    for (int64_t b = 0; b < c->order.block_count; b++) {
        mf_contraction_pack(w, &c->order.block[b]);
        sum_below(w, &c->order.block[b], most, part);
        mf_contraction_join(w, FOLD_SUM, sums, part);
    }
}

/* Of all outputs: the greatest term and sum of one more block, next and part, into most and sums; joint is room. */
static void merge_block(const struct contraction_worker *w, char *most, char *sums, char *next, const char *part,
                        char *joint)
{
    const struct contraction *c = w->contraction;
    const struct contraction_kernels *k = w->plan->device->kernels->contractions;
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    const int64_t n = w->count[ROW_FACTOR] * c->block[COLUMN_FACTOR];
    for (int64_t i = 0; i < n; i++) {
        const double a = value_at(most, i, c->size), b = value_at(next, i, c->size);
        set_value(joint, i, c->size, a == a && !(b <= a) ? b : a);
    }
    k->exp_shifted[cls](most, n, joint, n);
    k->exp_shifted[cls](next, n, joint, n);
    for (int64_t i = 0; i < n; i++) {
        const double a = value_at(sums, i, c->size) * value_at(most, i, c->size);
        set_value(sums, i, c->size, a + value_at(part, i, c->size) * value_at(next, i, c->size));
    }
    memcpy(most, joint, c->value_bytes);
}

/* Every output, reading the operands once: a block's greatest term and sum, merged into those of the blocks before. */
static void compute_running(struct contraction_worker *w)
{
    const struct contraction *c = w->contraction;
    char *most = mf_contraction_values(w, EXACT_MOST), *sums = mf_contraction_values(w, EXACT_SUMS);
    char *next = mf_contraction_values(w, SUMS), *part = mf_contraction_values(w, EXACT_PART);
    for (int64_t b = 0; b < c->order.block_count; b++) {
        mf_contraction_pack(w, &c->order.block[b]);
        find_most(w, &c->order.block[b], b ? next : most);
        sum_below(w, &c->order.block[b], b ? next : most, b ? part : sums);
        if (b)
            merge_block(w, most, sums, next, part, mf_contraction_values(w, INCOMING));
    }
}

/* The greatest term and the sum become the result and 0, for n outputs: a state whose logsum is that result. */
static void settle(const struct contraction_worker *w, int64_t at, int64_t n)
{
    const int64_t size = w->contraction->size;
    const enum cls cls = w->plan->problem.program.reducer[0].cls;
    char *most = mf_contraction_values(w, EXACT_MOST) + at * size;
    char *sums = mf_contraction_values(w, EXACT_SUMS) + at * size;
    for (int64_t i = 0; i < n; i++)
        if (!(value_at(sums, i, size) > 1))
            set_value(sums, i, size, 1); /* where the greatest is infinite or NaN */
    w->plan->device->kernels->map[MAP_log][cls](sums, sums, NULL, NULL, n);
    for (int64_t i = 0; i < n; i++) {
        set_value(most, i, size, value_at(sums, i, size) + value_at(most, i, size));
        set_value(sums, i, size, 0);
    }
}

/* Marked outputs take the exact state. */
static void take_marked(struct contraction_worker *w)
{
    const struct contraction *c = w->contraction;
    const size_t size = (size_t)c->size;
    const char *mark = mf_contraction_values(w, MARKS);
    for (int64_t i = 0; i < w->count[ROW_FACTOR]; i++)
        for (int64_t j = 0; j < w->count[COLUMN_FACTOR]; j++) {
            const size_t at = (size_t)(i * c->block[COLUMN_FACTOR] + j);
            if (!mark[at])
                continue;
            settle(w, (int64_t)at, 1);
            memcpy(mf_contraction_values(w, SUMS) + at * size, mf_contraction_values(w, EXACT_MOST) + at * size, size);
        }
}

static void point_to(struct contraction_worker *w, int most, int sums, int64_t at)
{
    w->finish.block.state[0][0] = mf_contraction_values(w, most) + at * w->contraction->size;
    w->finish.block.state[0][1] = mf_contraction_values(w, sums) + at * w->contraction->size;
}

static void set_states(struct contraction_worker *w, int64_t at, int64_t n)
{
    (void)n;
    point_to(w, SUMS, INCOMING, at);
}

static void set_exact_states(struct contraction_worker *w, int64_t at, int64_t n)
{
    (void)n;
    point_to(w, EXACT_MOST, EXACT_SUMS, at);
}

static void task(struct contraction_worker *w)
{
    const struct log_plan *data = w->plan->data;
    const int64_t outputs = w->count[ROW_FACTOR] * w->count[COLUMN_FACTOR];
    struct shifts shifts;
    if (data->tier == EXACT || data->tier == RUNNING) {
        (data->tier == EXACT ? compute_all : compute_running)(w);
        settle(w, 0, w->count[ROW_FACTOR] * w->contraction->block[COLUMN_FACTOR]);
        mf_plan_count_tier(w->plan, MF_TIER_EXACT, outputs);
        mf_contraction_store(w, set_exact_states);
        return;
    }
    find_shifts(w, &shifts);
    sum_products(w, &shifts);
    const int64_t marked = certify(w, &shifts);
    if (marked > outputs / FEW)
        compute_all(w);
    else if (marked)
        compute_marked(w);
    if (marked)
        take_marked(w);
    mf_plan_count_tier(w->plan, MF_TIER_EXACT, marked);
    mf_plan_count_tier(w->plan, data->tier == FAST ? MF_TIER_UNCHECKED : MF_TIER_CERTIFIED, outputs - marked);
    mf_contraction_store(w, set_states);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    return mf_contraction_run(plan, pointers, task, NULL);
}

const struct solver mf_solver_log_certified = {
    "log-certified",
    "a logarithm of a product of exponentials; what underflows is computed again",
    applicable,
    make_certified,
    execute,
    mf_contraction_print,
    mf_contraction_forget,
};
const struct solver mf_solver_log_fast = {
    "log-fast",
    "a logarithm of a product of exponentials, unchecked",
    applicable,
    make_fast,
    execute,
    mf_contraction_print,
    mf_contraction_forget,
};
const struct solver mf_solver_log_exact = {
    "log-exact",          "one exp a term, in tiles", applicable, make_exact, execute,
    mf_contraction_print, mf_contraction_forget,
};
const struct solver mf_solver_log_running = {
    "log-running",
    "one exp a term, in tiles, the operands read once",
    applicable,
    make_running,
    execute,
    mf_contraction_print,
    mf_contraction_forget,
};
/* The ladder's name for it, on every device. */
const struct solver mf_solver_log_two_pass = {
    "log-two-pass",
    "log-exact by another name: the greatest term first, then one exp a term",
    applicable,
    make_exact,
    execute,
    mf_contraction_print,
    mf_contraction_forget,
};
