/* The steps as plain loops on one thread, one picture and one number after the other: what the ways that are fast are
 * compared with. They know nothing of folds, plans and kernels. */
#include "plan.h"

#include <math.h>
#include <string.h>

/* Channel 0 of a pixel, also of the border. */
static float *pixel(const struct plane *plane, int64_t n, int64_t y, int64_t x)
{
    return (float *)plane->memory + plane->first + n * plane->image + y * plane->row + x * plane->pitch;
}

static float activate(enum activation activation, float x)
{
    switch (activation) {
    case LEAKY:
        return x > 0 ? x : 0.1f * x;
    case RELU:
        return x > 0 ? x : 0;
    case LOGISTIC:
        return 1 / (1 + expf(-x));
    case TANH:
        return tanhf(x);
    default:
        return x;
    }
}

/* sum[p] of the filters of a panel at one place of the output: windows over the border read its zeros. */
static void convolve(const struct layer *l, const struct plane *from, int64_t n, int64_t y, int64_t x, int64_t o,
                     float *sum)
{
    const int64_t channels = from->c / l->groups, group = o / l->panels;
    const float *weight = l->weights + o * l->size * l->size * channels * l->panel;
    for (int64_t p = 0; p < l->panel; p++)
        sum[p] = 0;
    for (int64_t i = 0; i < l->size; i++)
        for (int64_t j = 0; j < l->size; j++) {
            const float *in =
                pixel(from, n, y * l->stride + i - l->before, x * l->stride + j - l->before) + group * channels;
            for (int64_t c = 0; c < channels; c++, weight += l->panel)
                for (int64_t p = 0; p < l->panel; p++)
                    sum[p] += in[c] * weight[p];
        }
}

static mf_status conv(const mf_net_plan *plan, const struct step *step, void *stream)
{
    (void)stream;
    const struct layer *l = &plan->net->layer[step->layer];
    const struct plane *from = mf_plane(plan, l->source[0]), *to = mf_plane(plan, step->layer);
    const int fused = !(plan->net->flags & MF_NET_UNFUSED);
    float *sum = mf_alloc((size_t)l->panel * sizeof(float));
    if (!sum)
        return MF_ERROR_MEMORY;
    for (int64_t n = 0; n < plan->batch; n++)
        for (int64_t y = 0; y < l->h; y++)
            for (int64_t x = 0; x < l->w; x++)
                for (int64_t o = 0; o < l->groups * l->panels; o++) {
                    float *out = pixel(to, n, y, x) + o * l->panel;
                    convolve(l, from, n, y, x, o, sum);
                    for (int64_t p = 0; p < l->panel; p++)
                        out[p] = fused ? activate(l->activation, sum[p] + l->bias[o * l->panel + p]) : sum[p];
                }
    mf_free(sum);
    return MF_OK;
}

/* One number of an output from what is there, and the same place of a source. */
static float change(const struct layer *l, enum step_kind kind, int64_t c, float x, float other)
{
    switch (kind) {
    case STEP_BATCH_NORM:
        return (x - l->mean[c]) * l->scale[c];
    case STEP_BIAS:
        return x + l->bias[c];
    case STEP_ACTIVATION:
        return activate(l->activation, x);
    default:
        return activate(l->activation, x + other);
    }
}

static mf_status map(const mf_net_plan *plan, const struct step *step, void *stream)
{
    (void)stream;
    const struct layer *l = &plan->net->layer[step->layer];
    const struct plane *to = mf_plane(plan, step->layer);
    const int two = step->kind == STEP_SHORTCUT;
    for (int64_t n = 0; n < plan->batch; n++)
        for (int64_t y = 0; y < l->h; y++)
            for (int64_t x = 0; x < l->w; x++) {
                float *out = pixel(to, n, y, x);
                const float *a = two ? pixel(mf_plane(plan, l->source[0]), n, y, x) : out;
                const float *b = two ? pixel(mf_plane(plan, l->source[1]), n, y, x) : out;
                for (int64_t c = 0; c < l->c; c++)
                    out[c] = change(l, step->kind, c, a[c], b[c]);
            }
    return MF_OK;
}

/* The greatest of a window's elements that are inside. */
static float greatest(const struct layer *l, const struct plane *from, int64_t n, int64_t y, int64_t x, int64_t c)
{
    float most = -INFINITY;
    for (int64_t i = y * l->stride - l->before; i < y * l->stride - l->before + l->size; i++)
        for (int64_t j = x * l->stride - l->before; j < x * l->stride - l->before + l->size; j++)
            if (i >= 0 && i < from->h && j >= 0 && j < from->w) {
                const float value = pixel(from, n, i, j)[c];
                most = value > most || isnan(value) ? value : most;
            }
    return most;
}

static mf_status maxpool(const mf_net_plan *plan, const struct step *step, void *stream)
{
    (void)stream;
    const struct layer *l = &plan->net->layer[step->layer];
    const struct plane *to = mf_plane(plan, step->layer), *from = mf_plane(plan, l->source[0]);
    for (int64_t n = 0; n < plan->batch; n++)
        for (int64_t y = 0; y < l->h; y++)
            for (int64_t x = 0; x < l->w; x++)
                for (int64_t c = 0; c < l->c; c++)
                    pixel(to, n, y, x)[c] = greatest(l, from, n, y, x, c);
    return MF_OK;
}

/* Views of equal shape: a route's, an upsampling's. */
static void copy(const struct view *from, const struct view *to, int d, int64_t from_at, int64_t to_at)
{
    const DLTensor *a = &from->tensor, *b = &to->tensor;
    if (d == a->ndim) {
        ((float *)b->data)[(int64_t)(b->byte_offset / sizeof(float)) + to_at] =
            ((const float *)a->data)[(int64_t)(a->byte_offset / sizeof(float)) + from_at];
        return;
    }
    for (int64_t i = 0; i < a->shape[d]; i++)
        copy(from, to, d + 1, from_at + i * a->strides[d], to_at + i * b->strides[d]);
}

static mf_status copy_step(const mf_net_plan *plan, const struct step *step, void *stream)
{
    (void)stream;
    (void)plan;
    copy(&step->in[0], &step->out, 0, 0, 0);
    return MF_OK;
}

step_fn *mf_scalar_step(enum step_kind kind)
{
    switch (kind) {
    case STEP_CONV:
        return conv;
    case STEP_MAXPOOL:
        return maxpool;
    case STEP_ROUTE:
    case STEP_UPSAMPLE:
        return copy_step;
    default:
        return map;
    }
}
