/* Plans of networks: making and freeing them, reading outputs. */
#include "plan.h"

#include "../src/gpu/launch.h"
#include "../src/plan.h"
#include "../src/vocab/convert.h"

#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 4 /* of a layer, but for routes */ };

mf_status mf_net_memory(mf_net_plan *plan, int64_t bytes, void **memory)
{
    MF_TRY(mf_memory_create(plan->device, bytes, memory));
    plan->bytes += bytes;
    return MF_OK;
}

void mf_net_count(mf_net_plan *plan, const mf_plan *fold, int times)
{
    if (fold && plan->device->api)
        plan->bytes += times * mf_gpu_memory(fold);
}

void mf_net_scratch(mf_net_plan *plan, int64_t floats)
{
    const int64_t bytes = floats * (int64_t)sizeof(float);
    plan->scratch_bytes = bytes > plan->scratch_bytes ? bytes : plan->scratch_bytes;
}

int mf_net_threads(const mf_net_plan *plan)
{
    const int wanted = plan->options.threads, there = plan->device->thread_count;
    return wanted && wanted < there ? wanted : there;
}

/* ---- making and freeing ---- */

static mf_status check_precision(const mf_device *device, const mf_net_options *o)
{
    static const char *const names[] = {"f32", "tf32", "f16"};
    if ((int)o->precision < 0 || o->precision > MF_NET_F16)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_create: precision %d is not 0 to 2", (int)o->precision);
    if (o->precision != MF_NET_F32 && o->way != MF_NET_FOLDS)
        return mf_fail(MF_ERROR_UNSUPPORTED, "precision %s is for way MF_NET_FOLDS, and the plan's is %s",
                       names[o->precision], o->way == MF_NET_BLAS ? "MF_NET_BLAS" : "MF_NET_SCALAR");
    if (o->precision == MF_NET_TF32 && mf_device_kind(device) == kDLCPU)
        return mf_fail(MF_ERROR_UNSUPPORTED, "precision tf32 is for GPUs, not for %s", mf_device_describe(device));
    if (o->precision == MF_NET_TF32 && o->order_contract)
        return mf_fail(MF_ERROR_ARGUMENT, "precision tf32 and order_contract, which wants every bit of f32, were asked "
                                          "for together");
    return MF_OK;
}

static mf_status check_solver(const mf_net_options *o)
{
    if (o->solver && (o->way != MF_NET_FOLDS || o->order_contract))
        return mf_fail(MF_ERROR_ARGUMENT, "solver %.40s was asked for, which goes with MF_NET_FOLDS, not with %s",
                       o->solver,
                       o->way == MF_NET_BLAS     ? "MF_NET_BLAS"
                       : o->way == MF_NET_SCALAR ? "MF_NET_SCALAR"
                                                 : "order_contract");
    return MF_OK;
}

static mf_status check_options(const mf_net *net, const mf_device *device, const mf_net_options *o, mf_net_plan **plan)
{
    if (!net || !device || !plan)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_create: %s is null",
                       !net      ? "the network"
                       : !device ? "the device"
                                 : "the result");
    *plan = NULL;
    if ((int)o->way < 0 || o->way > MF_NET_SCALAR || o->batch < 0 || o->threads < 0)
        return mf_fail(MF_ERROR_ARGUMENT,
                       "mf_net_plan_create: way %d is not 0 to 2, or a batch of %lld or %d threads "
                       "are negative",
                       (int)o->way, (long long)o->batch, o->threads);
    if (o->way == MF_NET_SCALAR && mf_device_kind(device) != kDLCPU)
        return mf_fail(MF_ERROR_UNSUPPORTED, "plain loops run on the CPU, not on %s", mf_device_describe(device));
    MF_TRY(check_solver(o));
    return check_precision(device, o);
}

static mf_status make(mf_net_plan *plan)
{
    const int layers = plan->net->layer_count;
    plan->step_room = 0;
    for (int l = 0; l < layers; l++)
        plan->step_room +=
            plan->net->layer[l].source_count > MOST_STEPS ? plan->net->layer[l].source_count : MOST_STEPS;
    plan->planes = mf_calloc(sizeof *plan->planes * (size_t)(layers + 1));
    plan->numbers = mf_calloc(sizeof *plan->numbers * (size_t)layers);
    plan->step = mf_calloc(sizeof *plan->step * (size_t)plan->step_room);
    plan->winograd = mf_calloc((size_t)layers);
    plan->pooled = mf_calloc((size_t)layers);
    if (!plan->planes || !plan->numbers || !plan->step || !plan->winograd || !plan->pooled)
        return MF_ERROR_MEMORY;
    MF_TRY(mf_planes_make(plan));
    MF_TRY(mf_net_plan_inputs(plan));
    MF_TRY(mf_numbers_make(plan));
    MF_TRY(mf_net_plan_steps(plan));
    return plan->scratch_bytes ? mf_net_memory(plan, plan->scratch_bytes, &plan->scratch) : MF_OK;
}

mf_status mf_net_plan_create(const mf_net *net, mf_device *device, const mf_net_options *options, mf_net_plan **result)
{
    const mf_net_options o = options ? *options : (mf_net_options){.way = MF_NET_FOLDS};
    MF_TRY(check_options(net, device, &o, result));
    struct mf_net_plan *plan = mf_calloc(sizeof *plan);
    if (!plan)
        return MF_ERROR_MEMORY;
    plan->net = net;
    plan->device = device;
    plan->way = o.way;
    plan->batch = o.batch ? o.batch : 1;
    plan->precision = o.precision;
    plan->solver = o.solver;
    plan->direct = o.direct || o.solver;
    plan->keep = o.keep;
    plan->rounds = o.precision == MF_NET_TF32 && mf_device_kind(device) == kDLCUDA && !(net->flags & MF_NET_UNFUSED);
    plan->shares = !o.keep;
    plan->options = (mf_options){NULL, o.order_contract ? MF_ORDER_CONTRACT : MF_ORDER_FREE, o.threads};
    mf_status status = make(plan);
    plan->solver = NULL;
    if (status == MF_OK)
        *result = plan;
    else
        mf_net_plan_destroy(plan);
    return status;
}

void mf_net_plan_destroy(mf_net_plan *plan)
{
    if (!plan)
        return;
    for (int s = 0; s < plan->step_count; s++) {
        mf_plan_destroy(plan->step[s].fold);
        mf_blas_forget(plan, &plan->step[s]);
        mf_winograd_forget(&plan->step[s]);
        mf_bands_forget(&plan->step[s]);
    }
    mf_arena_forget(plan);
    mf_numbers_forget(plan);
    mf_net_forget_inputs(plan);
    if (plan->scratch)
        mf_memory_destroy(plan->device, plan->scratch);
    mf_free(plan->winograd);
    mf_free(plan->pooled);
    mf_free(plan->planes);
    mf_free(plan->step);
    mf_free(plan);
}

/* ---- reading ---- */

/* Floats of a row's channels. */
static void take_row(const struct plane *plane, const char *from, float *to)
{
    const int64_t item = mf_item_bytes(plane->type);
    for (int64_t x = 0; x < plane->w; x++, to += plane->c, from += plane->pitch * item) {
        if (plane->type == MF_F32) {
            memcpy(to, from, (size_t)(plane->c * item));
            continue;
        }
        const uint16_t *half = (const uint16_t *)(const void *)from;
        for (int64_t c = 0; c < plane->c; c++)
            to[c] = mf_f16_to_f32(half[c]);
    }
}

/* One copy a picture: from its first pixel to its last, with what of the border is between them. */
mf_status mf_net_read(mf_net_plan *plan, int layer, int64_t first, int64_t count, float *values)
{
    const struct plane *plane = mf_plane(plan, layer);
    const int64_t item = mf_item_bytes(plane->type);
    const int64_t bytes = ((plane->h - 1) * plane->row + (plane->w - 1) * plane->pitch + plane->c) * item;
    char *picture = mf_alloc((size_t)bytes);
    mf_status status = picture ? MF_OK : MF_ERROR_MEMORY;
    for (int64_t n = first; status == MF_OK && n < first + count; n++) {
        status = mf_memory_read(plan->device, plane->memory, (plane->first + n * plane->image) * item, picture, bytes);
        for (int64_t y = 0; status == MF_OK && y < plane->h; y++, values += plane->w * plane->c)
            take_row(plane, picture + y * plane->row * item, values);
    }
    mf_free(picture);
    return status;
}

mf_status mf_net_plan_read(mf_net_plan *plan, int layer, float *values, int64_t capacity)
{
    if (!plan || !values || layer < -1 || layer >= plan->net->layer_count)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_read: %s",
                       !plan || !values ? "a pointer is null" : "there is no such layer");
    const struct plane *plane = mf_plane(plan, layer);
    const int64_t wanted = plan->batch * plane->h * plane->w * plane->c;
    if (plane->used_again || !plane->memory)
        return mf_fail(MF_ERROR_ARGUMENT,
                       "mf_net_plan_read: layer %d's output is not kept%s; a plan with keep = 1 keeps all of them",
                       layer,
                       plane->memory ? ", others have its memory after it" : ", its step makes the pool behind it");
    if (capacity < wanted)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_read: layer %d has %lld numbers and there is room for %lld",
                       layer, (long long)wanted, (long long)capacity);
    return mf_net_read(plan, layer, 0, plan->batch, values);
}

int mf_net_plan_step_count(const mf_net_plan *plan)
{
    return plan ? plan->step_count : 0;
}

mf_status mf_net_plan_step(const mf_net_plan *plan, int number, mf_net_step *info)
{
    static const char *const kinds[] = {"Conv2D",    "BatchNorm", "BiasAdd",  "Activation",
                                        "MaxPool2D", "Route",     "Shortcut", "Upsample"};
    if (!plan || !info || number < 0 || number >= plan->step_count)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_step: %s",
                       !plan || !info ? "a pointer is null" : "there is no such step");
    const struct step *step = &plan->step[number];
    *info = (mf_net_step){step->layer, kinds[step->kind], step->seconds,
                          step->fold        ? mf_plan_describe(step->fold)
                          : step->described ? mf_plan_describe(step->described)
                                            : step->text};
    return MF_OK;
}

void mf_net_plan_measure(mf_net_plan *plan, int measure)
{
    if (!plan)
        return;
    plan->measure = measure;
    for (int s = 0; s < plan->step_count; s++)
        plan->step[s].seconds = 0;
}

int64_t mf_net_plan_bytes(const mf_net_plan *plan)
{
    return plan ? plan->bytes : 0;
}
