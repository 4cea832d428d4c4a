/* What fold each layer is. */
#include "plan.h"

#include "../src/plan.h"

#include <stdio.h>
#include <string.h>

struct step *mf_step_add(mf_net_plan *plan, int layer, enum step_kind kind)
{
    struct step *step = &plan->step[plan->step_count++];
    *step = (struct step){.layer = layer, .kind = kind};
    return step;
}

static mf_status plan_fold(mf_net_plan *plan, struct step *step, const char *modes, const char *expression,
                           const mf_options *options)
{
    DLTensor in[STEP_INPUTS];
    for (int i = 0; i < step->input_count; i++)
        in[i] = step->in[i].tensor;
    MF_TRY(step->pool[0]
               ? mf_plan_create_pooled(plan->device, modes, expression, in, &step->out.tensor, step->pool,
                                       step->pool_solver, &step->fold)
               : mf_plan_create(plan->device, modes, expression, in, &step->out.tensor, options, &step->fold));
    mf_net_count(plan, step->fold, 1);
    return MF_OK;
}

/* Whether what the layer reads has 11 bits. */
static int reads_rounded(const mf_net_plan *plan, int layer)
{
    return plan->rounds && !mf_plane(plan, plan->net->layer[layer].source[0])->result;
}

mf_status mf_step_fold(mf_net_plan *plan, struct step *step, const char *modes, const char *expression)
{
    mf_options asked = plan->options, rounded = plan->options;
    rounded.solver = reads_rounded(plan, step->layer) ? "product:rounded" : "product:tf32";
    mf_status status = MF_ERROR_UNSUPPORTED;
    asked.solver = plan->solver;
    if (plan->solver && step->kind == STEP_CONV)
        status = plan_fold(plan, step, modes, expression, &asked);
    if (status != MF_ERROR_UNSUPPORTED)
        return status;
    if (plan->precision == MF_NET_TF32 && !step->pool[0] && step->kind == STEP_CONV &&
        mf_device_kind(plan->device) == kDLCUDA)
        status = plan_fold(plan, step, modes, expression, &rounded);
    if (status != MF_ERROR_UNSUPPORTED && status != MF_ERROR_ARGUMENT) /* the solver is not there, or not for this */
        return status;
    return plan_fold(plan, step, modes, expression, &plan->options);
}

void mf_activation_text(enum activation activation, const char *inner, char *text, size_t size)
{
    static const char *const form[ACTIVATIONS] = {"%s", "leaky(%s)", "relu(%s)", "sigmoid(%s)", "tanh(%s)"};
    const char *before = form[activation], *hole = strstr(before, "%s");
    snprintf(text, size, "%.*s%s%s", (int)(hole - before), before, inner, hole + 2);
}

/* C v - (C v - v) with C = 2^13 + 1 is the number of 11 bits next to v, for |v| < 2^114 (Dekker, A floating-point
 * technique for extending the available precision, 1971, section 5). */
void mf_rounded_text(const mf_net_plan *plan, const struct plane *plane, char *text, size_t size)
{
    char whole[MF_STEP_TEXT];
    if (!plan->rounds || plane->result)
        return;
    snprintf(whole, sizeof whole, "%.*s", MF_STEP_TEXT - 1, text);
    snprintf(text, size, "(%s)*8193-((%s)*8193-(%s))", whole, whole, whole);
}

/* The same where values only move from one plane to another: others than results have their bits already. */
static void copied_text(const mf_net_plan *plan, const struct plane *from, const struct plane *to, char *text,
                        size_t size)
{
    if (from->result)
        mf_rounded_text(plan, to, text, size);
}

/* Either the fold, or the same as loops. */
static mf_status finish_step(mf_net_plan *plan, struct step *step, const char *modes, const char *expression)
{
    if (plan->way != MF_NET_SCALAR)
        return mf_step_fold(plan, step, modes, expression);
    step->run = mf_scalar_step(step->kind);
    snprintf(step->text, sizeof step->text, "plain loops");
    return MF_OK;
}

/* The layer's numbers by filter, as an operand of c channels. */
static void view_channels(struct view *view, const mf_net_plan *plan, void *numbers, int64_t c)
{
    const int64_t one = 1;
    mf_view_make(view, plan, MF_F32, numbers, 0, 1, &c, &one);
}

/* A map of a layer's output into itself. */
static mf_status add_map(mf_net_plan *plan, int layer, enum step_kind kind, const char *modes, const char *expression)
{
    const struct layer *l = &plan->net->layer[layer];
    const struct numbers *numbers = &plan->numbers[layer];
    struct step *step = mf_step_add(plan, layer, kind);
    mf_view_plane(&step->in[0], plan, mf_plane(plan, layer), 0);
    mf_view_plane(&step->out, plan, mf_plane(plan, layer), 0);
    step->input_count = kind == STEP_BATCH_NORM ? 3 : kind == STEP_BIAS ? 2 : 1;
    view_channels(&step->in[1], plan, kind == STEP_BATCH_NORM ? numbers->mean : numbers->bias, l->c);
    view_channels(&step->in[2], plan, numbers->scale, l->c);
    return finish_step(plan, step, modes, expression);
}

/* What an unfused convolution leaves to do. */
static mf_status add_rest(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    char text[32];
    if (l->scale)
        MF_TRY(add_map(plan, layer, STEP_BATCH_NORM, "nhwc,c,c->nhwc", "(a-b)*c"));
    MF_TRY(add_map(plan, layer, STEP_BIAS, "nhwc,c->nhwc", "a+b"));
    mf_activation_text(l->activation, "a", text, sizeof text);
    return l->activation == LINEAR ? MF_OK : add_map(plan, layer, STEP_ACTIVATION, "nhwc->nhwc", text);
}

/* "(2h+i)", or "(h+i-1)" with before = 1. */
static void window_text(char *text, size_t size, const struct layer *l, char mode, char offset, int64_t before)
{
    char stride[16] = "", outside[16] = "";
    if (l->stride > 1)
        snprintf(stride, sizeof stride, "%d", (int)l->stride);
    if (before)
        snprintf(outside, sizeof outside, "-%d", (int)before);
    snprintf(text, size, "(%s%c+%c%s)", stride, mode, offset, outside);
}

/* Weights, biases and output of a convolution. */
static void view_conv(mf_net_plan *plan, struct step *step, const struct plane *to)
{
    const struct layer *l = &plan->net->layer[step->layer];
    const struct numbers *numbers = &plan->numbers[step->layer];
    const struct weight_shape shape = mf_weight_shape(plan, step->layer);
    const int64_t in = shape.channels, taps = l->size * l->size, p = shape.panel, o = l->groups * shape.panels;
    if (shape.by_filter)
        mf_view_make(&step->in[1], plan, shape.type, numbers->weights, 0, 5, (int64_t[]){o, p, l->size, l->size, in},
                     (int64_t[]){taps * in * p, taps * in, l->size * in, in, 1});
    else
        mf_view_make(&step->in[1], plan, shape.type, numbers->weights, 0, 5, (int64_t[]){o, l->size, l->size, in, p},
                     (int64_t[]){taps * in * p, l->size * in * p, in * p, p, 1});
    mf_view_make(&step->in[2], plan, MF_F32, numbers->bias, 0, 2, (int64_t[]){o, p}, (int64_t[]){p, 1});
    mf_view_make(&step->out, plan, to->type, to->memory, to->first, 5, (int64_t[]){plan->batch, to->h, to->w, o, p},
                 (int64_t[]){to->image, to->row, to->pitch, p, 1});
    step->input_count = plan->net->flags & MF_NET_UNFUSED ? 2 : 3;
}

static const char *weight_modes(const mf_net_plan *plan, int layer)
{
    return mf_weight_shape(plan, layer).by_filter ? "opijc" : "oijcp";
}

mf_status mf_step_conv_fold(mf_net_plan *plan, struct step *step, const struct plane *from, const struct plane *to)
{
    const struct layer *l = &plan->net->layer[step->layer];
    const int fused = !(plan->net->flags & MF_NET_UNFUSED);
    char h[48], w[48], modes[160], expression[4 * MF_STEP_TEXT];
    window_text(h, sizeof h, l, 'h', 'i', 0);
    window_text(w, sizeof w, l, 'w', 'j', 0);
    /* a group's filters are one panel where there are several groups */
    mf_view_groups(&step->in[0], plan, from, l->before, l->groups, mf_weight_shape(plan, step->layer).channels);
    view_conv(plan, step, to);
    snprintf(modes, sizeof modes, "n%s%s%cc,%s%s->nhwop", h, w, l->groups > 1 ? 'o' : 'g',
             weight_modes(plan, step->layer), fused ? ",op" : "");
    mf_activation_text(l->activation, "sum(a*b)+c", expression, sizeof expression);
    mf_rounded_text(plan, to, expression, sizeof expression);
    return finish_step(plan, step, modes, fused ? expression : "sum(a*b)");
}

/* The layer's output as if it were in memory, where the pooled one is; the step makes that. */
static struct plane before_pool(const mf_net_plan *plan, struct step *step)
{
    const struct layer *l = &plan->net->layer[step->layer];
    const struct plane *pooled = mf_plane(plan, step->layer + 1);
    struct plane dense = *pooled;
    dense.h = l->h;
    dense.w = l->w;
    dense.row = l->w * dense.pitch;
    dense.image = l->h * dense.row;
    step->pool[0] = pooled->image;
    step->pool[1] = pooled->row;
    step->pool[2] = pooled->pitch;
    return dense;
}

mf_status mf_step_picture_fold(mf_net_plan *plan, struct step *step, const struct view *picture)
{
    const struct layer *l = &plan->net->layer[step->layer];
    const int f16 = plan->precision == MF_NET_F16;
    mf_options by_name = plan->options;
    char h[48], w[48], modes[160], value[4 * MF_STEP_TEXT], sum[2 * MF_STEP_TEXT], expression[4 * MF_STEP_TEXT];
    const struct plane to = plan->pooled[step->layer] ? before_pool(plan, step) : *mf_plane(plan, step->layer);
    window_text(h, sizeof h, l, 'h', 'i', l->before);
    window_text(w, sizeof w, l, 'w', 'j', l->before);
    step->in[0] = *picture;
    view_conv(plan, step, &to);
    by_name.solver = step->pool_solver = f16 ? "pixels" : "pixels:rounded";
    snprintf(modes, sizeof modes, "n%s%sc,%s,op->nhwop", h, w, weight_modes(plan, step->layer));
    snprintf(value, sizeof value, "f32(a)%s", picture->tensor.dtype.code == kDLUInt ? "/255" : "");
    mf_rounded_text(plan, mf_plane(plan, -1), value, sizeof value);
    snprintf(sum, sizeof sum, "sum(%s(%.*s)*b)+c", f16 ? "f16" : "", MF_STEP_TEXT, value);
    mf_activation_text(l->activation, sum, expression, sizeof expression);
    mf_rounded_text(plan, &to, expression, sizeof expression);
    /* a view's tensor refers to the view, which is a copy here */
    step->in[0].tensor.shape = step->in[0].shape;
    step->in[0].tensor.strides = step->in[0].stride;
    return plan_fold(plan, step, modes, expression, &by_name);
}

static mf_status add_picture_conv(mf_net_plan *plan, int layer)
{
    struct step *step = mf_step_add(plan, layer, STEP_CONV);
    const struct plane to = plan->pooled[layer] ? before_pool(plan, step) : *mf_plane(plan, layer);
    view_conv(plan, step, &to);
    step->run = mf_step_run_pictures;
    step->described = mf_net_picture_fold(plan);
    return MF_OK;
}

/* The convolution and the pool behind it in one fold. */
static mf_status add_pooled_conv(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    struct step *step = mf_step_add(plan, layer, STEP_CONV);
    const struct plane dense = before_pool(plan, step);
    step->pool_solver = plan->precision != MF_NET_TF32 ? "window"
                        : reads_rounded(plan, layer)   ? "window:rounded"
                                                       : "window:tf32";
    return mf_step_conv_fold(plan, step, mf_plane(plan, l->source[0]), &dense);
}

mf_status mf_step_try_pooled(mf_net_plan *plan, int layer, char *pooled)
{
    const int count = plan->step_count;
    const mf_status status = add_pooled_conv(plan, layer);
    mf_net_count(plan, plan->step[count].fold, -1);
    mf_plan_destroy(plan->step[count].fold);
    plan->step_count = count;
    *pooled = status == MF_OK;
    return status == MF_ERROR_UNSUPPORTED ? MF_OK : status;
}

static mf_status add_conv(mf_net_plan *plan, int layer)
{
    if (plan->way == MF_NET_BLAS)
        return mf_blas_add_conv(plan, layer);
    if (plan->reads_pictures && !layer)
        return add_picture_conv(plan, layer);
    if (plan->winograd[layer])
        return mf_winograd_add_conv(plan, layer);
    if (plan->pooled[layer] && mf_device_kind(plan->device) == kDLCPU)
        return mf_bands_add_conv(plan, layer);
    if (plan->pooled[layer])
        return add_pooled_conv(plan, layer);
    struct step *step = mf_step_add(plan, layer, STEP_CONV);
    return mf_step_conv_fold(plan, step, mf_plane(plan, plan->net->layer[layer].source[0]), mf_plane(plan, layer));
}

mf_status mf_step_pool_fold(mf_net_plan *plan, struct step *step, const struct plane *from, const struct plane *to)
{
    const struct layer *l = &plan->net->layer[step->layer];
    char h[48], w[48], modes[160];
    window_text(h, sizeof h, l, 'h', 'i', l->before);
    window_text(w, sizeof w, l, 'w', 'j', l->before);
    mf_view_plane(&step->in[0], plan, from, 0);
    mf_view_plane(&step->out, plan, to, 0);
    step->input_count = 1;
    snprintf(modes, sizeof modes, "n%s%sc->nhwc with i=%d,j=%d", h, w, (int)l->size, (int)l->size);
    char text[4 * MF_STEP_TEXT] = "max(a)";
    copied_text(plan, from, to, text, sizeof text);
    return finish_step(plan, step, modes, text);
}

static mf_status add_maxpool(mf_net_plan *plan, int layer)
{
    const int from = plan->net->layer[layer].source[0];
    if (from >= 0 && plan->pooled[from])
        return MF_OK; /* the convolution's step does it */
    struct step *step = mf_step_add(plan, layer, STEP_MAXPOOL);
    return mf_step_pool_fold(plan, step, mf_plane(plan, from), mf_plane(plan, layer));
}

/* Every source's channels, one after the other. */
static mf_status add_route(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    char text[4 * MF_STEP_TEXT];
    struct plane to = *mf_plane(plan, layer);
    if (!to.owns)
        return MF_OK;
    for (int s = 0; s < l->source_count; s++, to.first += to.c) {
        struct plane from = *mf_plane(plan, l->source[s]);
        struct step *step = mf_step_add(plan, layer, STEP_ROUTE);
        to.c = from.c /= l->parts;
        from.first += l->part * from.c;
        mf_view_plane(&step->in[0], plan, &from, 0);
        mf_view_plane(&step->out, plan, &to, 0);
        step->input_count = 1;
        snprintf(text, sizeof text, "a");
        copied_text(plan, &from, &to, text, sizeof text);
        MF_TRY(finish_step(plan, step, "nhwc->nhwc", text));
    }
    return MF_OK;
}

static mf_status add_shortcut(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    struct step *step = mf_step_add(plan, layer, STEP_SHORTCUT);
    char text[4 * MF_STEP_TEXT];
    mf_view_plane(&step->in[0], plan, mf_plane(plan, l->source[0]), 0);
    mf_view_plane(&step->in[1], plan, mf_plane(plan, l->source[1]), 0);
    mf_view_plane(&step->out, plan, mf_plane(plan, layer), 0);
    step->input_count = 2;
    mf_activation_text(l->activation, "a+b", text, sizeof text);
    mf_rounded_text(plan, mf_plane(plan, layer), text, sizeof text);
    return finish_step(plan, step, "nhwc,nhwc->nhwc", text);
}

/* Every pixel stride x stride times: modes s and t are in the output, and have stride 0 in the input. */
static mf_status add_upsample(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    const struct plane *from = mf_plane(plan, l->source[0]), *to = mf_plane(plan, layer);
    struct step *step = mf_step_add(plan, layer, STEP_UPSAMPLE);
    const int64_t shape[] = {plan->batch, from->h, l->stride, from->w, l->stride, l->c};
    mf_view_make(&step->in[0], plan, from->type, from->memory, from->first, 6, shape,
                 (int64_t[]){from->image, from->row, 0, from->pitch, 0, 1});
    mf_view_make(&step->out, plan, to->type, to->memory, to->first, 6, shape,
                 (int64_t[]){to->image, l->stride * to->row, to->row, l->stride * to->pitch, to->pitch, 1});
    step->input_count = 1;
    char text[4 * MF_STEP_TEXT] = "a";
    copied_text(plan, from, to, text, sizeof text);
    return finish_step(plan, step, "nhswtc->nhswtc", text);
}

static mf_status add_layer(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    switch (l->kind) {
    case LAYER_CONVOLUTIONAL:
        MF_TRY(add_conv(plan, layer));
        return plan->net->flags & MF_NET_UNFUSED ? add_rest(plan, layer) : MF_OK;
    case LAYER_MAXPOOL:
        return add_maxpool(plan, layer);
    case LAYER_ROUTE:
        return add_route(plan, layer);
    case LAYER_SHORTCUT:
        return add_shortcut(plan, layer);
    case LAYER_UPSAMPLE:
        return add_upsample(plan, layer);
    default:
        return MF_OK; /* its output is its input */
    }
}

mf_status mf_net_plan_steps(mf_net_plan *plan)
{
    for (int l = 0; l < plan->net->layer_count; l++) {
        const int first = plan->step_count;
        MF_TRY(add_layer(plan, l));
        if (plan->step_count > first)
            plan->step[first].begins = mf_plane(plan, l + plan->pooled[l]);
    }
    return MF_OK;
}
