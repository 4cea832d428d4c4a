/* Solver "framed": of a fold whose windows leave their tensor, for which no other solver is but inner, row by row, the
 * box of outputs whose windows do not, by a solver that such a fold has; and what is around that box, slab by slab, by
 * solver inner where it goes, else as solver reference does.
 *
 * Every window has to move along one kept loop at most, so that the outputs with all elements inside are a box. */
#include <stdio.h>
#include <string.h>

#include "cpu.h"

enum { MOST_PARTS = 2 * MAX_LOOPS + 1, LEAST_INSIDE = 4 /* at least one output of so many is in the box */ };

/* Windows that start or end further away are left to reference, lest differences of their places overflow. */
static const int64_t FAR = INT64_MAX / 4;

/* Outputs from..to-1 of every kept loop. */
struct box {
    int64_t from[MAX_LOOPS], to[MAX_LOOPS];
};

struct part {
    struct mf_plan *plan;
    int64_t in[MF_MAX_INPUTS], out[MF_MAX_OUTPUTS]; /* bytes to its first output */
};

struct framed_plan {
    int count; /* the first one is the box */
    struct part part[MOST_PARTS];
};

/* ---- the box ---- */

/* The least and the greatest place of a window's first output; both fit, as those of all outputs do. */
static void find_span(const struct nest *nest, const struct window *window, int64_t *low, int64_t *high)
{
    *low = *high = window->offset;
    for (int l = nest->kept; l < nest->kept + nest->reduced; l++) {
        const int64_t far = window->step[l] * (nest->size[l] - 1);
        *(far < 0 ? low : high) += far;
    }
}

/* Outputs k with low <= step * k < high, of those that `from` and `to` leave. */
static void clip(int64_t step, int64_t low, int64_t high, int64_t *from, int64_t *to)
{
    if (step < 0) { /* the same of -step * k */
        const int64_t least = 1 - high;
        high = 1 - low;
        low = least;
        step = -step;
    }
    const int64_t least = low > 0 ? (low - 1) / step + 1 : 0, past = high > 0 ? (high - 1) / step + 1 : 0;
    *from = least > *from ? least : *from;
    *to = past < *to ? past : *to;
}

static int64_t outputs_of(const struct nest *nest, const struct box *box)
{
    int64_t outputs = 1;
    for (int l = 0; l < nest->kept; l++)
        outputs *= box->to[l] - box->from[l];
    return outputs;
}

static int find_box(const struct problem *problem, struct box *box)
{
    const struct nest *nest = &problem->memory;
    for (int l = 0; l < nest->kept; l++) {
        box->from[l] = 0;
        box->to[l] = nest->size[l];
    }
    for (int w = 0; w < nest->window_count; w++) {
        const struct window *window = &nest->window[w];
        int64_t low, high;
        int along = -1;
        for (int l = 0; l < nest->kept; l++) {
            if (window->step[l] && along >= 0)
                return 0;
            along = window->step[l] ? l : along;
        }
        find_span(nest, window, &low, &high);
        if (low < -FAR || high > FAR || window->extent > FAR)
            return 0;
        if (along < 0 && (low < 0 || high >= window->extent))
            return 0;
        if (along >= 0)
            clip(window->step[along], -low, window->extent - high, &box->from[along], &box->to[along]);
    }
    for (int l = 0; l < nest->kept; l++)
        if (box->from[l] >= box->to[l])
            return 0;
    return outputs_of(nest, box) >= problem->kept_total / LEAST_INSIDE;
}

/* ---- the parts ---- */

/* Leaves the box's positions of the kept loops, which are the same in both nests; loops that have one are none, pixels
 * and their channels one. */
static void restrict_nest(struct nest *nest, const struct box *box, int has_windows)
{
    int to = 0;
    nest->window_count = has_windows ? nest->window_count : 0;
    for (int l = 0; l < nest->kept; l++)
        for (int w = 0; w < nest->window_count; w++)
            nest->window[w].offset += nest->window[w].step[l] * box->from[l];
    for (int l = 0; l < nest->kept + nest->reduced; l++) {
        const int64_t size = l < nest->kept ? box->to[l] - box->from[l] : nest->size[l];
        if (l < nest->kept && size == 1)
            continue;
        mf_nest_copy_loop(nest, to, nest, l);
        nest->size[to++] = size;
        if (!has_windows && l < nest->kept && to > 1 && mf_nest_mergeable(nest, to - 2, to - 1, 1)) {
            const int64_t both = nest->size[to - 2] * size;
            mf_nest_copy_loop(nest, to - 2, nest, to - 1);
            nest->size[--to - 1] = both;
        }
    }
    nest->kept = to - nest->reduced;
}

/* The problem of the box's outputs alone, from its first one; `part` is to have the bytes to that. */
static struct mf_plan *plan_of(const struct mf_plan *plan, const struct box *box, int has_windows, struct part *part)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    struct mf_plan *own = mf_calloc(sizeof *own);
    if (!own)
        return NULL;
    own->device = plan->device;
    own->threads = plan->threads;
    own->problem = *problem;
    own->problem.framed = 1;
    own->problem.kept_total = outputs_of(nest, box);
    for (int l = 0; l < nest->kept; l++) {
        for (int i = 0; i < problem->input_count; i++) {
            const int64_t elements = box->from[l] * nest->in[i][l];
            own->problem.in_base[i] += elements;
            part->in[i] += elements * mf_dtypes[problem->in_type[i]].size;
        }
        for (int k = 0; k < problem->output_count; k++)
            part->out[k] += box->from[l] * nest->out[k][l] * mf_dtypes[problem->out_type[k]].size;
    }
    restrict_nest(&own->problem.memory, box, has_windows);
    restrict_nest(&own->problem.written, box, has_windows);
    if (has_windows) {
        own->solver = mf_solver_inner.applicable(own) ? &mf_solver_inner : &mf_solver_reference;
        return own;
    }
    const struct solver *const *solver = mf_solvers;
    while (*solver == &mf_solver_framed || !(*solver)->applicable(own)) /* reference is for all */
        solver++;
    own->solver = *solver;
    return own;
}

static mf_status add_part(const struct mf_plan *plan, const struct box *box, int has_windows)
{
    struct framed_plan *data = plan->data;
    struct part *part = &data->part[data->count++];
    part->plan = plan_of(plan, box, has_windows, part);
    if (!part->plan)
        return MF_ERROR_MEMORY;
    return part->plan->solver->plan ? part->plan->solver->plan(part->plan) : MF_OK;
}

/* ---- the solver ---- */

/* Whether the box has a faster solver than inner, which would be for the whole. (Without memory, make says so.) */
static int is_faster(const struct mf_plan *plan, const struct box *box)
{
    struct part part = {.plan = NULL};
    struct mf_plan *own = plan_of(plan, box, 0, &part);
    const int faster = !own || (own->solver != &mf_solver_inner && own->solver != &mf_solver_reference);
    mf_free(own);
    return faster;
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    struct box box;
    return !plan->device->api && problem->memory.window_count && problem->program.reducer_count &&
           problem->kept_total && problem->reduced_total && find_box(problem, &box) &&
           (!mf_solver_inner.applicable(plan) || is_faster(plan, &box));
}

static mf_status make(struct mf_plan *plan)
{
    const struct nest *nest = &plan->problem.memory;
    struct box inside, slab;
    plan->data = mf_calloc(sizeof(struct framed_plan));
    if (!plan->data)
        return MF_ERROR_MEMORY;
    find_box(&plan->problem, &inside);
    MF_TRY(add_part(plan, &inside, 0));
    for (int l = 0; l < nest->kept; l++) /* what is before and behind it along loop l, of what loops before leave */
        for (int behind = 0; behind < 2; behind++) {
            slab = inside;
            slab.from[l] = behind ? inside.to[l] : 0;
            slab.to[l] = behind ? nest->size[l] : inside.from[l];
            for (int m = l + 1; m < nest->kept; m++) {
                slab.from[m] = 0;
                slab.to[m] = nest->size[m];
            }
            if (slab.from[l] < slab.to[l])
                MF_TRY(add_part(plan, &slab, 1));
        }
    return MF_OK;
}

static struct pointers move(const struct problem *problem, const struct part *part, const struct pointers *pointers)
{
    struct pointers own = *pointers;
    for (int i = 0; i < problem->input_count; i++)
        own.in[i] = (const char *)((uintptr_t)own.in[i] + (uintptr_t)part->in[i]);
    for (int k = 0; k < problem->output_count; k++)
        own.out[k] += part->out[k];
    return own;
}

/* What the slabs need at least is there before the box is written. */
static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct framed_plan *data = plan->data;
    struct scratch *scratch = mf_reference_open(plan);
    if (!scratch)
        return MF_ERROR_MEMORY;
    const struct pointers first = move(&plan->problem, &data->part[0], pointers);
    const mf_status status = data->part[0].plan->solver->execute(data->part[0].plan, &first);
    for (int p = 1; p < data->count && status == MF_OK; p++) {
        const struct pointers own = move(&plan->problem, &data->part[p], pointers);
        const struct mf_plan *slab = data->part[p].plan;
        if (slab->solver == &mf_solver_reference || slab->solver->execute(slab, &own) != MF_OK)
            mf_reference_run(slab, &own, scratch);
    }
    mf_reference_close(scratch);
    return status;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct framed_plan *data = plan->data;
    const struct mf_plan *box = data->part[0].plan;
    snprintf(text, size, "%lld outputs by solver %s, %lld around them in %d slabs", (long long)box->problem.kept_total,
             box->solver->name, (long long)(plan->problem.kept_total - box->problem.kept_total), data->count - 1);
}

static void forget(struct mf_plan *plan)
{
    struct framed_plan *data = plan->data;
    for (int p = 0; data && p < data->count; p++)
        mf_plan_destroy(data->part[p].plan);
}

const struct solver mf_solver_framed = {
    "framed",   "windows that leave their tensor: outputs whose windows do not, then those around",
    applicable, make,
    execute,    print,
    forget,
};
