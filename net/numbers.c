/* A plan's weights, biases and what batch norm leaves: on the CPU the network's own, on GPUs copies. So are weights
 * that are to be f16.
 *
 * A GPU's kernels read matrices, terms x filters, from memory in pieces of 16 bytes: there a group's filters are one
 * panel, and channels are as many as such a piece begins. Instructions that four warps execute together read tf32 along
 * the terms only: for them a filter's terms lie beside each other. Filters and channels that are no layer's have
 * weights of zero. */
#include "../src/gpu/launch.h"
#include "../src/vocab/convert.h"
#include "plan.h"

#include <math.h>
#include <string.h>

struct weight_shape mf_weight_shape(const mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    const struct plane *from = mf_plane(plan, l->source[0]);
    struct weight_shape shape = {l->panels, l->panel, from->c / l->groups,
                                 plan->precision == MF_NET_F16 ? MF_F16 : MF_F32, 0};
    if (mf_device_kind(plan->device) == kDLCPU || l->groups > 1)
        return shape;
    shape.panels = 1;
    shape.panel = mf_up_to(l->c, GPU_FILTERS);
    shape.by_filter = plan->rounds && plan->way == MF_NET_FOLDS && MF_GPU_LIMITS(plan->device->gpu)->warpgroups;
    if (plan->reads_pictures && !layer)
        return shape;
    if (from->owns && !(plan->options.flags & MF_ORDER_CONTRACT)) /* whose order counts the terms */
        shape.channels = mf_up_to(from->c, GPU_PIECE / mf_item_bytes(from->type));
    return shape;
}

/* Number i of them. */
static void store(void *numbers, int64_t i, float value, mf_type type)
{
    if (type == MF_F16)
        ((uint16_t *)numbers)[i] = mf_f32_to_f16(value);
    else
        ((float *)numbers)[i] = value;
}

/* To 11 bits, the nearest such number. */
static float rounded(float value)
{
    enum { LAST = 1 << 13 };
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (isnan(value))
        return value;
    if (isfinite(value))
        bits += LAST / 2;
    bits &= ~(uint32_t)(LAST - 1);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static float in_type(float value, mf_type type)
{
    return type == MF_F16 ? mf_f16_to_f32(mf_f32_to_f16(value)) : rounded(value);
}

/* A weight in fewer bits. What rounding took from the channel's weight before, *left, is added first: pixels beside
 * each other are alike, so a filter's errors mostly cancel (error diffusion; Floyd and Steinberg, An adaptive algorithm
 * for spatial greyscale, 1976). A weight is off by half a unit of its own last place and half a one of its
 * neighbour's. */
static float shortened(float weight, mf_type type, float *left)
{
    float wanted = weight + *left, stored = in_type(wanted, type);
    if (!isfinite(stored)) { /* perhaps what was added is why */
        wanted = weight;
        stored = in_type(weight, type);
    }
    *left = isfinite(stored) ? wanted - stored : 0;
    return stored;
}

/* The network's weights [group][panel][tap][channel][filter] in the plan's shape; `to` is zero. left: room for a number
 * of each channel, or null: they are stored as they are. */
static void lay_weights(const struct layer *l, int64_t channels, const struct weight_shape *shape, float *left,
                        void *to)
{
    const int64_t taps = l->size * l->size, filters = l->c / l->groups, terms = taps * shape->channels;
    for (int64_t f = 0; f < l->c; f++) {
        const int64_t group = f / filters, in_group = f % filters;
        const int64_t panel = group * l->panels + in_group / l->panel;
        const float *from = l->weights + panel * taps * channels * l->panel + in_group % l->panel;
        const int64_t place = group * shape->panels + in_group / shape->panel;
        const int64_t panel_at = place * terms * shape->panel, column = in_group % shape->panel;
        for (int64_t c = 0; left && c < channels; c++)
            left[c] = 0;
        for (int64_t t = 0; t < taps; t++)
            for (int64_t c = 0; c < channels; c++) {
                const float weight = from[(t * channels + c) * l->panel];
                const int64_t term = t * shape->channels + c;
                store(to, panel_at + (shape->by_filter ? column * terms + term : term * shape->panel + column),
                      left ? shortened(weight, shape->type, &left[c]) : weight, shape->type);
            }
    }
}

int64_t mf_weight_bytes(const mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    if (l->kind != LAYER_CONVOLUTIONAL)
        return 0;
    const struct weight_shape shape = mf_weight_shape(plan, layer);
    return l->groups * shape.panels * l->size * l->size * shape.channels * shape.panel * mf_item_bytes(shape.type);
}

static mf_status copy_weights(mf_net_plan *plan, int layer, void **there)
{
    const struct layer *l = &plan->net->layer[layer];
    const struct weight_shape shape = mf_weight_shape(plan, layer);
    const int64_t bytes = mf_weight_bytes(plan, layer), channels = mf_plane(plan, l->source[0])->c / l->groups;
    const int shortens = plan->rounds || shape.type == MF_F16;
    MF_TRY(mf_net_memory(plan, bytes, there));
    void *weights = mf_calloc((size_t)bytes);
    float *left = shortens ? mf_calloc((size_t)channels * sizeof *left) : NULL;
    mf_status status = weights && (left || !shortens) ? MF_OK : MF_ERROR_MEMORY;
    if (status == MF_OK) {
        lay_weights(l, channels, &shape, left, weights);
        status = mf_memory_write(plan->device, *there, 0, weights, bytes);
    }
    mf_free(left);
    mf_free(weights);
    return status;
}

/* Numbers of each filter; those that fill up a panel are zero. */
static mf_status copy_numbers(mf_net_plan *plan, int layer, const float *from, void **there)
{
    const struct layer *l = &plan->net->layer[layer];
    const struct weight_shape shape = mf_weight_shape(plan, layer);
    const int64_t item = (int64_t)sizeof(float);
    if (!from)
        return MF_OK;
    MF_TRY(mf_net_memory(plan, l->groups * shape.panels * shape.panel * item, there));
    return mf_memory_write(plan->device, *there, 0, from, l->c * item);
}

static int copies_weights(const mf_net_plan *plan)
{
    return (mf_device_kind(plan->device) != kDLCPU && plan->way != MF_NET_BLAS /* which has a matrix of its own */) ||
           plan->precision == MF_NET_F16;
}

mf_status mf_numbers_make(mf_net_plan *plan)
{
    for (int l = 0; l < plan->net->layer_count; l++) {
        const struct layer *layer = &plan->net->layer[l];
        struct numbers *numbers = &plan->numbers[l];
        if (layer->kind != LAYER_CONVOLUTIONAL)
            continue;
        if (mf_device_kind(plan->device) == kDLCPU)
            *numbers = (struct numbers){layer->weights, layer->bias, layer->scale, layer->mean};
        if (copies_weights(plan)) {
            numbers->weights = NULL;
            MF_TRY(copy_weights(plan, l, &numbers->weights));
        }
        if (mf_device_kind(plan->device) == kDLCPU)
            continue;
        MF_TRY(copy_numbers(plan, l, layer->bias, &numbers->bias));
        MF_TRY(copy_numbers(plan, l, layer->scale, &numbers->scale));
        MF_TRY(copy_numbers(plan, l, layer->mean, &numbers->mean));
    }
    return MF_OK;
}

void mf_numbers_forget(mf_net_plan *plan)
{
    for (int l = 0; plan->numbers && l < plan->net->layer_count; l++) {
        const struct numbers *numbers = &plan->numbers[l];
        if (copies_weights(plan))
            mf_memory_destroy(plan->device, numbers->weights);
        if (mf_device_kind(plan->device) == kDLCPU)
            continue;
        mf_memory_destroy(plan->device, numbers->bias);
        mf_memory_destroy(plan->device, numbers->scale);
        mf_memory_destroy(plan->device, numbers->mean);
    }
    mf_free(plan->numbers);
}
