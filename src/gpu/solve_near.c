/* Solver "contract-near" of a GPU: contractions of few terms, in any order, without tiles (kernels/contract_near.cl).
 * Solver "log-exact" takes it too. By name, "contract-near:form:ROWS:WARPS:TERMS" says how many outputs a thread has,
 * how many warps share the terms, and how many of these are read at once; 0 is the solver's own choice. With "early"
 * for "form" the kernel finds its addresses before it waits for others, where the warps read all terms at once. */
#include <stdio.h>

#include "solve_contract.h"
#include "texts.h"

enum {
    MOST_WARPS = 8,
    MOST_HELD = 8,
    MOST_ROWS = 4,
    MOST_ASKED = 32,
    LEAST_OUTPUTS = 24, /* where there are more than TINY_TERMS: else a warp an output */
    TINY_TERMS = 16,
    MOST_OUTPUTS = 512, /* of a multiprocessor: tiles read less */
    MOST_TERMS = 1024,  /* of an output: a few warps take them one after the other */
    BUSY = 1024         /* threads of a multiprocessor */
};

/* Outputs of a thread, warps of a block, terms at once; EARLY of the kernel. */
struct near {
    int rows, warps, held, early;
};

/* ---- which folds ---- */

static int fits(const struct problem *problem, const struct gpu_contraction *c)
{
    return !problem->memory.window_count && !c->in_tree && !c->two_passes && problem->kept_total <= INT32_MAX &&
           (c->kind == CONTRACT_FOLD || c->kind == CONTRACT_LOG);
}

int mf_gpu_near_pays(const struct mf_plan *plan, const struct gpu_contraction *c)
{
    const struct problem *problem = &plan->problem;
    return fits(problem, c) && (problem->kept_total >= LEAST_OUTPUTS || problem->reduced_total <= TINY_TERMS) &&
           problem->kept_total <= (int64_t)MOST_OUTPUTS * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors &&
           problem->reduced_total <= MOST_TERMS &&
           mf_gpu_has_few_terms(plan->device, problem->kept_total, problem->reduced_total);
}

static int applicable(const struct mf_plan *plan)
{
    const struct reducer *reducer = &plan->problem.program.reducer[0];
    struct gpu_contraction c = {.kind = CONTRACT_FOLD};
    return plan->problem.program.reducer_count == 1 && reducer->kind == RED_FOLD &&
           !(mf_cls_is_float(reducer->cls) && (reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD)) &&
           mf_gpu_contraction_fits(plan, &c) && mf_gpu_near_pays(plan, &c);
}

/* ---- plans ---- */

static int64_t blocks_of(const struct problem *problem, const struct gpu_contraction *c, const struct near *near)
{
    const int64_t rows = mf_factors_positions(problem, &c->loops, 0);
    return (problem->kept_total / rows * ((rows + near->rows - 1) / near->rows) + GPU_WARP - 1) / GPU_WARP;
}

/* Rows of a thread where there are threads enough, then warps for the terms until there are, then terms at once. So few
 * terms that joining warps would take longer than reading them stay with one warp; so few blocks as leave most
 * multiprocessors to what comes next let it come early. */
static struct near choose(const struct problem *problem, const struct gpu_contraction *c, int multiprocessors)
{
    enum { OF_ONE_WARP = 8, EARLY_SHARE = 4 };
    const int64_t busy = (int64_t)multiprocessors * BUSY, outputs = problem->kept_total,
                  rows = mf_factors_positions(problem, &c->loops, 0), terms = problem->reduced_total;
    struct near near = {.rows = mf_clamp(mf_power_below(16 * outputs / busy), 1, MOST_ROWS), .held = MOST_HELD};
    while (near.rows > rows)
        near.rows /= 2;
    near.warps = mf_clamp(mf_power_below(busy * near.rows / outputs), 1, MOST_WARPS);
    if (near.warps > terms / 4)
        near.warps = mf_power_below(terms / (terms < 16 ? 2 : 4));
    if (near.held > (terms + near.warps - 1) / near.warps)
        near.held = (int)mf_power_above((terms + near.warps - 1) / near.warps);
    if (terms <= OF_ONE_WARP && EARLY_SHARE * blocks_of(problem, c, &near) <= multiprocessors) {
        near.warps = 1;
        near.held = (int)terms;
    }
    near.early = near.warps * near.held == terms && EARLY_SHARE * blocks_of(problem, c, &near) <= multiprocessors;
    return near;
}

/* What the form asks for, instead. */
static mf_status read_form(struct mf_plan *plan, struct near *near)
{
    int number[3], *const to[] = {&near->rows, &near->warps, &near->held};
    char name[16];
    if (!plan->form)
        return MF_OK;
    if (!mf_gpu_read_form(plan->form, name, 3, number) || (strcmp(name, "form") && strcmp(name, "early")) ||
        number[0] > MOST_ROWS || number[1] > MOST_ASKED || number[2] > MOST_ASKED)
        return mf_fail(MF_ERROR_ARGUMENT,
                       "solver %s has no form \"%.40s\"; a form is form:ROWS:WARPS:TERMS or early:ROWS:WARPS:TERMS, "
                       "up to %d, %d and %d",
                       plan->solver->name, plan->form, MOST_ROWS, MOST_ASKED, MOST_ASKED);
    for (int i = 0; i < 3; i++)
        *to[i] = number[i] ? number[i] : *to[i];
    near->early = !strcmp(name, "early") && near->warps * near->held == plan->problem.reduced_total;
    plan->form = NULL;
    return MF_OK;
}

mf_status mf_gpu_make_near(struct mf_plan *plan, const struct gpu_contraction *c)
{
    const struct problem *problem = &plan->problem;
    struct near near = choose(problem, c, MF_GPU_LIMITS(plan->device->gpu)->multiprocessors);
    MF_TRY(read_form(plan, &near));
    if (plan->condition) /* kernels/conditional.cu looks at it before the kernel's own text */
        near.early = 0;
    const int64_t rows = mf_factors_positions(problem, &c->loops, 0),
                  columns = mf_factors_positions(problem, &c->loops, 1), groups = (rows + near.rows - 1) / near.rows;
    struct gpu_choice choice = {
        .kernel = mf_text_contract_near_cl, .threads = GPU_WARP * near.warps, .vector = 1, .flat = 1};
    struct gpu_slots slots;
    choice.own[0] = problem->kept_total / rows * groups;
    choice.own[1] = groups;
    choice.own[2] = mf_gpu_divisor(columns);
    choice.own[3] = mf_gpu_divisor(groups);
    choice.own[7] = rows * ((int64_t)1 << 32) + columns;
    choice.blocks = blocks_of(problem, c, &near);
    mf_emit_slots(problem, &slots);
    mf_text_add(&choice.macros,
                "#define ROW_OWN %d\n#define WARPS %d\n#define HELD %d\n#define EXACT %d\n#define WHOLE %d\n"
                "#define EARLY %d\n#define TWICE %d\n#define IN_TREE 0\n",
                near.rows, near.warps, near.held, problem->reduced_total % ((int64_t)near.warps * near.held) == 0,
                problem->reduced_total == (int64_t)near.warps * near.held, near.early, c->kind == CONTRACT_LOG);
    mf_emit_contraction(problem, &slots, c, &choice.functions);
    snprintf(choice.text, sizeof choice.text, "%lld x %lld outputs, %d by a thread, %d warps of %d terms at once%s",
             (long long)rows, (long long)columns, near.rows, near.warps, near.held, near.early ? ", early" : "");
    return mf_gpu_make(plan, &choice);
}

static mf_status make(struct mf_plan *plan)
{
    struct gpu_contraction c = {.kind = CONTRACT_FOLD};
    mf_gpu_contraction_fits(plan, &c);
    return mf_gpu_make_near(plan, &c);
}

const struct solver mf_gpu_contract_near = {
    "contract-near", "a product of two factors, folded: few terms, read from the caches",
    applicable,      make,
    mf_gpu_execute,  mf_gpu_print,
    mf_gpu_forget,
};
