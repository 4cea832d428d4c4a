/* What each layer's output is in memory; arena.c says where. */
#include "plan.h"

enum { LINE_FLOATS = 16, CACHE_WAY_BYTES = 2048 };
static const int64_t MOST_ELEMENTS = 1LL << 48; /* of a plane: the bytes of all of them are a number */

int mf_plane_owner(const mf_net *net, int layer)
{
    while (layer >= 0) {
        const struct layer *l = &net->layer[layer];
        const int passes = l->kind == LAYER_DROPOUT || l->kind == LAYER_REGION || l->kind == LAYER_YOLO ||
                           (l->kind == LAYER_ROUTE && l->source_count == 1);
        if (!passes)
            break;
        layer = l->source[0];
    }
    return layer;
}

/* ---- what is computed how ---- */

static int count_readers(const mf_net *net, int layer)
{
    int count = 0;
    for (int l = layer + 1; l < net->layer_count; l++)
        for (int s = 0; s < net->layer[l].source_count; s++)
            count += net->layer[l].source[s] == layer;
    return count;
}

/* What detections are made of, or only the caller reads. */
static int is_result(const mf_net *net, int layer)
{
    const int detects = layer >= 0 && (net->layer[layer].kind == LAYER_REGION || net->layer[layer].kind == LAYER_YOLO);
    return detects || !count_readers(net, layer);
}

/* A convolution of one group whose positions come in fours, on a GPU that has tensor cores: solver window may do it. */
static int may_pool_on_gpu(const mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    return mf_device_kind(plan->device) == kDLCUDA && plan->way == MF_NET_FOLDS &&
           !(plan->options.flags & MF_ORDER_CONTRACT) && l->groups == 1 && l->h % 2 == 0 && l->w % 2 == 0;
}

/* Whether solver pixels may be for the first convolution, which alone reads the pictures. */
static int may_read_pictures(const mf_net_plan *plan)
{
    enum { MOST_CHANNELS = 4, LEAST_SIZE = 2, MOST_SIZE = 3 };
    const mf_net *net = plan->net;
    const struct layer *l = &net->layer[0];
    return mf_device_kind(plan->device) == kDLCUDA && plan->way == MF_NET_FOLDS && plan->precision != MF_NET_F32 &&
           !plan->keep && !plan->solver && !(plan->options.flags & MF_ORDER_CONTRACT) &&
           !(net->flags & MF_NET_UNFUSED) && net->layer_count && l->kind == LAYER_CONVOLUTIONAL && l->groups == 1 &&
           l->stride == 1 && l->before && l->size >= LEAST_SIZE && l->size <= MOST_SIZE && net->c <= MOST_CHANNELS &&
           count_readers(net, -1) == 1 && !mf_plane(plan, -1)->result;
}

/* Whether the next layer pools 2 x 2 of this one, the last row and column too, and nobody else reads it. */
static int is_only_pooled(const mf_net *net, int layer)
{
    const struct layer *l = &net->layer[layer], *next = l + 1;
    return layer + 1 < net->layer_count && next->kind == LAYER_MAXPOOL && next->source[0] == layer && next->size == 2 &&
           next->stride == 2 && next->before == 0 && next->h == (l->h + 1) / 2 && next->w == (l->w + 1) / 2 &&
           count_readers(net, layer) == 1;
}

static void choose(mf_net_plan *plan)
{
    const mf_net *net = plan->net;
    for (int l = 0; l < net->layer_count; l++) {
        if (net->layer[l].kind != LAYER_CONVOLUTIONAL)
            continue;
        plan->winograd[l] = (char)mf_winograd_fits(plan, l);
        plan->pooled[l] = !plan->keep && !plan->solver && !(net->flags & MF_NET_UNFUSED) && is_only_pooled(net, l) &&
                          (plan->winograd[l] || mf_bands_fit(plan, l) || may_pool_on_gpu(plan, l));
    }
}

static void choose_types(mf_net_plan *plan)
{
    const mf_net *net = plan->net;
    for (int l = -1; l < net->layer_count; l++)
        mf_plane(plan, l)->type = plan->precision == MF_NET_F16 ? MF_F16 : MF_F32;
    for (int l = -1; l < net->layer_count; l++)
        if (is_result(net, l)) {
            mf_plane(plan, mf_plane_owner(net, l))->type = MF_F32;
            mf_plane(plan, mf_plane_owner(net, l))->result = 1;
        }
}

/* ---- a plane's shape ---- */

/* Whether steps write all of a pixel, not only its channels: what fills up a panel of filters is written with them. */
static int fills_pixels(const mf_net_plan *plan, int layer)
{
    return plan->way == MF_NET_FOLDS && layer >= 0 && plan->net->layer[layer].kind == LAYER_CONVOLUTIONAL &&
           plan->net->layer[layer].groups == 1;
}

/* Elements from pixel to pixel. */
static int64_t choose_pitch(const mf_net_plan *plan, int layer, int64_t c)
{
    const int64_t item = mf_item_bytes(mf_plane(plan, layer)->type);
    const mf_net *net = plan->net;
    int64_t pitch = c;
    const int filters = layer >= 0 && net->layer[layer].kind == LAYER_CONVOLUTIONAL;
    if (mf_device_kind(plan->device) != kDLCPU)
        return mf_up_to(c, filters ? GPU_FILTERS : GPU_PIECE / item);
    if (filters)
        pitch = mf_layer_columns(&net->layer[layer]);
    else if (c >= LINE_FLOATS)
        pitch = (c + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    return pitch * item % CACHE_WAY_BYTES ? pitch : pitch + LINE_FLOATS;
}

static mf_status shape_plane(mf_net_plan *plan, int layer)
{
    struct plane *plane = mf_plane(plan, layer);
    int64_t shape[3], elements;
    mf_net_shape(plan->net, layer, shape);
    plane->h = shape[0];
    plane->w = shape[1];
    plane->c = shape[2];
    plane->pitch = choose_pitch(plan, layer, plane->c);
    if (layer > 0 && plan->pooled[layer - 1]) /* whole panels of filters are written */
        plane->pitch = choose_pitch(plan, layer - 1, plane->c);
    plane->filled = fills_pixels(plan, layer - (layer > 0 && plan->pooled[layer - 1])) ? plane->pitch : plane->c;
    plane->row = (plane->w + 2 * plane->border) * plane->pitch;
    plane->image = (plane->h + 2 * plane->border) * plane->row;
    plane->first = plane->border * (plane->row + plane->pitch);
    plane->owns = 1;
    if (!mf_mul(plane->image, plan->batch, &elements) || elements > MOST_ELEMENTS)
        return mf_fail(MF_ERROR_OVERFLOW, "%lld outputs of %lld x %lld x %lld are too large", (long long)plan->batch,
                       (long long)plane->h, (long long)plane->w, (long long)plane->c);
    return MF_OK;
}

/* Layers that only pass on what they read. */
static void pass_on(mf_net_plan *plan)
{
    for (int l = 0; l < plan->net->layer_count; l++) {
        const struct layer *layer = &plan->net->layer[l];
        struct plane *plane = mf_plane(plan, l);
        if (plane->owns)
            continue;
        *plane = *mf_plane(plan, layer->source[0]);
        plane->owns = 0;
        plane->c = layer->c;
        plane->first += layer->kind == LAYER_ROUTE ? layer->part * layer->c : 0;
    }
}

/* Convolutions that solver window does not pool after all: two steps, and memory between them. */
static mf_status try_pooled(mf_net_plan *plan)
{
    for (int l = 0; l < plan->net->layer_count && mf_device_kind(plan->device) != kDLCPU; l++) {
        if (!plan->pooled[l] || (plan->reads_pictures && !l))
            continue;
        MF_TRY(mf_step_try_pooled(plan, l, &plan->pooled[l]));
        if (!plan->pooled[l])
            MF_TRY(shape_plane(plan, l + 1));
        pass_on(plan);
    }
    return MF_OK;
}

mf_status mf_planes_make(mf_net_plan *plan)
{
    const mf_net *net = plan->net;
    choose(plan);
    choose_types(plan);
    for (int l = 0; l < net->layer_count; l++) {
        const struct layer *layer = &net->layer[l];
        struct plane *read = mf_plane(plan, mf_plane_owner(net, layer->source[0]));
        if (layer->kind == LAYER_CONVOLUTIONAL && !plan->winograd[l] && read->border < layer->before)
            read->border = layer->before;
    }
    for (int l = -1; l < net->layer_count; l++)
        if (mf_plane_owner(net, l) == l)
            MF_TRY(shape_plane(plan, l));
    pass_on(plan);
    plan->reads_pictures = may_read_pictures(plan);
    if (plan->reads_pictures)
        MF_TRY(mf_net_try_pictures(plan));
    MF_TRY(try_pooled(plan));
    MF_TRY(mf_arena_make(plan));
    pass_on(plan); /* now with the memory */
    return MF_OK;
}
