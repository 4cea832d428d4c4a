/* Solver "multi" of a GPU: outputs of a tile or less by multi-reduction, in every form of Parker and MacKinnon's paper
 * (kernels/multi.cl). By name, "multi:FORM:VALUES:SPAN:PASSES": the forms are there to be measured beside each other
 * (bench/gpu_ladder.py); what folds take by themselves, kernels/rows.cl, is the swap form on vectors. */
#include <stdio.h>

#include "emit_reducers.h"
#include "form.h"
#include "texts.h"

enum { MULTI_THREADS = 256, MOST_HELD = 16, MOST_PASSES = 1 << 16 };

/* How outputs are merged, and how many sets of registers take them as they come (0: all at once). */
static const struct multi_kind {
    const char *name, *kind;
    int sets;
} kinds[] = {{"naive", "NAIVE", 0},   {"merge", "MERGED", 0}, {"online", "MERGED", 1},
             {"double", "MERGED", 2}, {"swap", "SWAPPED", 0}, {"shared", "SHARING", 0}};
enum { KINDS = sizeof kinds / sizeof kinds[0], DOUBLE = 3 };

struct multi_form {
    const struct multi_kind *kind;
    int values, span, passes, lanes;
};

/* Whether all reducers are users' that keep their elements' order, or none is; -1: some are. */
static int keeps_order(const struct program *program)
{
    int ordered = 0;
    for (int r = 0; r < program->reducer_count; r++)
        ordered += mf_emit_keeps_order(&program->reducer[r]);
    return !ordered ? 0 : ordered == program->reducer_count ? 1 : -1;
}

/* Outputs of at most a tile; of what keeps its order at most as many elements as lanes. */
static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    if (!problem->program.reducer_count)
        return 0;
    int ordered = keeps_order(&problem->program);
    return ordered == 1 ? problem->reduced_total <= LANES
                        : !ordered && problem->reduced_total <= TILE && mf_gpu_any_order(plan);
}

static int is_power(int n)
{
    return n > 0 && !(n & (n - 1));
}

/* FORM[:VALUES[:SPAN[:PASSES]]], 0 for the solver's own choice. */
static mf_status read_form(const char *text, struct multi_form *form)
{
    char name[16];
    int number[3] = {0, 0, 0};
    const int reads = !text || mf_gpu_read_form(text, name, 3, number);
    form->kind = text ? NULL : &kinds[DOUBLE];
    for (int k = 0; text && reads && k < KINDS; k++)
        if (!strcmp(name, kinds[k].name))
            form->kind = &kinds[k];
    form->values = number[0];
    form->span = number[1];
    form->passes = number[2];
    if (form->kind && (!form->values || is_power(form->values)) && (!form->span || is_power(form->span)) &&
        form->passes >= 0 && form->passes <= MOST_PASSES)
        return MF_OK;
    return mf_fail(
        MF_ERROR_ARGUMENT,
        "solver multi has no form \"%.40s\"; a form is one of naive, merge, online, double, swap and shared, "
        "then perhaps :VALUES:SPAN:PASSES, of which the first two are powers of two and the last is at most "
        "%d",
        text, MOST_PASSES);
}

/* What was not asked for: whole warps as far as there are lanes; as many outputs as threads, as far as their states
 * stay in registers. */
static mf_status complete_form(const struct problem *problem, struct multi_form *form)
{
    enum { WORDS = 32 };
    const int64_t reduced = problem->reduced_total;
    form->lanes = (int)mf_power_above(reduced < 1 ? 1 : reduced < LANES ? reduced : LANES);
    const int most = mf_clamp(form->lanes, 1, GPU_WARP), least = mf_clamp(form->lanes / MOST_HELD, 1, GPU_WARP);
    if (!form->span)
        form->span = most;
    const int held = mf_clamp(form->lanes / form->span, 1, LANES); /* a span may be too wide, which is said below */
    const int words = mf_emit_state_words(problem) * held;
    if (!form->values)
        form->values = form->kind->sets ? form->span : mf_clamp(mf_power_below(WORDS / words), 1, form->span);
    if (!form->passes)
        form->passes = 1;
    if (form->span >= least && form->span <= most && form->values <= form->span)
        return MF_OK;
    return mf_fail(MF_ERROR_UNSUPPORTED,
                   "solver multi cannot fold %d outputs in a span of %d threads; of %lld elements spans are from %d to "
                   "%d threads, with at most as many outputs",
                   form->values, form->span, (long long)reduced, least, most);
}

static mf_status make(struct mf_plan *plan)
{
    struct problem *problem = &plan->problem;
    const struct gpu_limits *limits = MF_GPU_LIMITS(plan->device->gpu);
    const int neighbours = keeps_order(&problem->program), is_long = problem->reduced_total > LANES;
    struct multi_form form;
    MF_TRY(read_form(plan->form, &form));
    plan->form = NULL;
    MF_TRY(complete_form(problem, &form));
    if (neighbours)
        problem->memory = problem->written;
    struct gpu_choice choice = {.kernel = mf_text_multi_cl,
                                .threads = MULTI_THREADS,
                                .vector = 1,
                                .vector_loop = problem->memory.kept + problem->memory.reduced - 1};
    while (choice.threads > GPU_WARP && 2 * choice.threads * mf_emit_state_bytes(problem) > limits->shared)
        choice.threads /= 2; /* the shared form */
    const int sets = form.kind->sets > 1 ? form.kind->sets : 1;
    const int64_t block_rows = (int64_t)choice.threads / form.span * form.values * sets * form.passes;
    choice.blocks = (problem->kept_total + block_rows - 1) / block_rows;
    choice.own[0] = form.passes;
    int levels = 0, value_levels = 0;
    while (1 << levels < form.span)
        levels++;
    while (1 << value_levels < form.values)
        value_levels++;
    mf_text_add(&choice.macros,
                "#define KIND %s\n#define SETS %d\n#define VALUES %d\n#define VALUE_LEVELS %d\n#define SPAN %d\n"
                "#define LEVELS %d\n#define HELD %d\n#define NEIGHBOURS %d\n#define LONG %d\n#define EXACT %d\n"
                "#define FEW %d\n",
                form.kind->kind, form.kind->sets, form.values, value_levels, form.span, levels, form.lanes / form.span,
                neighbours, is_long, problem->reduced_total == form.lanes,
                problem->kept_total < GPU_WARP / form.span * form.values * sets);
    snprintf(choice.text, sizeof choice.text, "form %s, %d outputs of %d threads, %d lanes of each, %d passes",
             form.kind->name, form.values * sets, form.span, form.lanes / form.span, form.passes);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_multi = {
    "multi",        "outputs of at most a tile, several merged in one butterfly; by name",
    applicable,     make,
    mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
