/* Solver "gradient": runs the steps of a gradient's plan.
 *
 * Steps allocate on the CPU, so they may fail. Therefore all but the last write into the workspace, and what they have
 * found is delivered when nothing can fail any more. */
#include "gradient.h"

#include <stdio.h>

#include "scalar.h"

/* Which of the plan's inputs a place is. */
static int input_of(const struct gradient *data, int place)
{
    return place < AT_OUTPUT ? place : data->input_count + (place == AT_GIVEN);
}

void *mf_gradient_place(const struct gradient_run *run, int place)
{
    const struct gradient *data = run->plan->data;
    if (place == AT_SLOT + SLOT_COUNT && data->count)
        return data->count;
    if (place >= AT_SLOT && run->plan->device->api)
        return data->memory;
    if (place >= AT_SLOT) /* there is no workspace where all slots are empty */
        return run->workspace ? run->workspace + data->slot_at[place - AT_SLOT] : NULL;
    if (place >= AT_GRADIENT)
        return run->pointers->out[data->output[place - AT_GRADIENT]];
    return (void *)(uintptr_t)run->pointers->in[input_of(data, place)];
}

/* Bytes from what mf_gradient_place gives to the tensor's first element: on GPUs. */
static uint64_t bytes_behind(const struct gradient_run *run, int place)
{
    const struct gradient *data = run->plan->data;
    const struct problem *problem = &run->plan->problem;
    if (!run->plan->device->api || place == AT_SLOT + SLOT_COUNT)
        return 0;
    if (place >= AT_SLOT)
        return (uint64_t)data->slot_at[place - AT_SLOT];
    const int k = place >= AT_GRADIENT ? data->output[place - AT_GRADIENT] : 0;
    if (place >= AT_GRADIENT)
        return (uint64_t)(run->pointers->out_offset[k] * mf_dtypes[problem->out_type[k]].size);
    const int i = input_of(data, place);
    return (uint64_t)(run->pointers->in_offset[i] * mf_dtypes[problem->in_type[i]].size);
}

static mf_status run_step(const struct gradient_run *run, const struct gradient_step *step)
{
    const void *in[MF_MAX_INPUTS];
    void *out[GRADIENT_RESULTS];
    uint64_t in_bytes[MF_MAX_INPUTS], out_bytes[GRADIENT_RESULTS];
    for (int i = 0; i < step->input_count; i++) {
        in[i] = mf_gradient_place(run, step->in[i]);
        in_bytes[i] = bytes_behind(run, step->in[i]);
    }
    for (int k = 0; k < step->output_count; k++) {
        out[k] = mf_gradient_place(run, step->out[k]);
        out_bytes[k] = bytes_behind(run, step->out[k]) + (uint64_t)step->out_more[k];
    }
    const struct given given = {in, out, in_bytes, out_bytes, run->pointers->stream};
    return mf_plan_run(step->plan, &given);
}

/* A gradient in the workspace, row-major, becomes the caller's: dimensions from d on. */
static const char *deliver(const struct place_view *view, const int64_t *strides, enum dtype from_type,
                           enum dtype to_type, int d, const char *from, char *to)
{
    const int64_t item = mf_dtypes[from_type].size, n = d < view->tensor.ndim ? view->shape[d] : 1;
    const int64_t step = d < view->tensor.ndim ? strides[d] * mf_dtypes[to_type].size : 0;
    if (d + 1 < view->tensor.ndim) {
        for (int64_t i = 0; i < n; i++)
            from = deliver(view, strides, from_type, to_type, d + 1, from, to + i * step);
        return from;
    }
    if (n > 0 && from_type == to_type && step == item) {
        memcpy(to, from, (size_t)(n * item));
        return from + n * item;
    }
    for (int64_t i = 0; i < n; i++, from += item)
        mf_value_store(to_type, mf_dtypes[from_type].cls, mf_value_load(from_type, from), to + i * step);
    return from;
}

/* The steps, up to the first for which nothing is left; counts which outputs took which tier. */
static mf_status run_steps(const struct gradient_run *run)
{
    const struct gradient *data = run->plan->data;
    /* null where no step asks, or the steps themselves look */
    const int64_t *left = run->plan->device->api ? NULL : mf_gradient_place(run, AT_SLOT + SLOT_COUNT);
    int64_t before = data->outputs;
    mf_tier tier = MF_TIER_CERTIFIED;
    for (int s = 0; s < data->step_count; s++) {
        if (data->step[s].if_left && left && !*left)
            break;
        MF_TRY(run_step(run, &data->step[s]));
        if (!left || data->step[s].out[0] != AT_SLOT + SLOT_COUNT)
            continue;
        mf_plan_count_tier(run->plan, tier, before - *left);
        tier = MF_TIER_WIDE;
        before = *left;
    }
    if (run->plan->tiers) /* a GPU knows what was left of all */
        mf_plan_count_tier(run->plan, run->plan->refused ? MF_TIER_CERTIFIED : MF_TIER_EXACT, before);
    return MF_OK;
}

static mf_status run_all(const struct gradient_run *run)
{
    const struct gradient *data = run->plan->data;
    if (data->near) {
        MF_TRY(mf_gpu_gradient_near_run(run->plan, run->pointers));
        mf_plan_count_tier(run->plan, MF_TIER_EXACT, data->outputs);
        return MF_OK;
    }
    MF_TRY(run_steps(run));
    if (mf_gradient_has_winners(data) && run->plan->device->api)
        return mf_gpu_winners_send(run->plan, run->pointers);
    if (mf_gradient_has_winners(data))
        mf_gradient_send(run);
    for (int f = 0; f < data->argument.count; f++)
        if (data->wanted[f] && data->delivered[f])
            deliver(&data->gradient[f], data->strides[f], data->slot_type[f],
                    run->plan->problem.out_type[data->output[f]], 0,
                    mf_gradient_place(run, AT_SLOT + SLOT_GRADIENT + f), mf_gradient_place(run, AT_GRADIENT + f));
    return MF_OK;
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct gradient *data = plan->data;
    struct gradient_run run = {plan, pointers, NULL};
    if (!plan->device->api && data->workspace_bytes &&
        !(run.workspace = mf_alloc_aligned((size_t)data->workspace_bytes)))
        return MF_ERROR_MEMORY;
    mf_status status = run_all(&run);
    mf_free(run.workspace);
    return status;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct gradient *data = plan->data;
    if (data->near) {
        mf_gpu_gradient_near_print(plan, text, size);
        return;
    }
    int n = snprintf(text, size, "workspace of %lld bytes; steps", (long long)data->workspace_bytes);
    for (int s = 0; s < data->step_count && n > 0 && (size_t)n < size; s++)
        n += snprintf(text + n, size - (size_t)n, " %s%s", mf_plan_solver(data->step[s].plan),
                      data->step[s].if_left ? "?" : "");
    if (mf_gradient_has_winners(data) && plan->device->api && n > 0 && (size_t)n < size)
        mf_gpu_winners_print(plan, text + n, size - (size_t)n);
}

static void forget(struct mf_plan *plan)
{
    struct gradient *data = plan->data;
    for (int s = 0; data && s < data->step_count; s++)
        mf_plan_destroy(data->step[s].plan);
    if (data && plan->device->api) {
        mf_free(data->near);
        mf_gpu_winners_forget(plan);
        mf_memory_destroy(plan->device, data->memory);
        mf_memory_destroy(plan->device, data->count);
    }
}

const struct solver mf_solver_gradient = {
    "gradient", "a fold's gradients, by folds", NULL, NULL, execute, print, forget,
};
