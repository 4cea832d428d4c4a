/* Both gradients of a logsumexp over few terms as one kernel, kernels/gradient_near.cl: one exp a term, in an order of
 * its own. Folds of their own would take a launch each, and products of matrices several. */
#include <stdio.h>

#include "../gradient.h"
#include "form.h"
#include "launch.h"
#include "texts.h"

enum {
    THREADS = 256,
    WARPS = THREADS / GPU_WARP,
    MOST_OWN = 8,
    OWN_GRADIENTS = 1024, /* times the square of OWN: as many there are to be */
    MOST_STRIDE = 1 << 20,
    MOST_SUMMED = 1024, /* terms of a gradient: the sum has no tree */
    SIDES = 2
};

/* As in kernels/gradient_near.cl. */
struct near_side {
    int32_t p_size, k_size, q_size, groups, chunks, across;
    int32_t u_p, u_k, v_k, v_q, out_p, out_q, d_p, d_q, g_p, g_k;
    int64_t batch, blocks, u_b, v_b, out_b, d_b, g_b;
};
struct near {
    struct near_side side[SIDES];
    int64_t a, b, out, d, da, db;
};

struct gpu_gradient_near {
    const struct gpu_kernel *kernel;
    struct near shape;
    int own;
};

/* ---- which gradients ---- */

static int64_t stride_of(const struct gradient_maker *maker, int place, char letter)
{
    const struct place_view *view = &maker->view[place];
    const char *at = letter ? strchr(view->letters, letter) : NULL;
    int64_t strides[MF_MAX_RANK];
    mf_gradient_strides(&view->tensor, 0, strides);
    return at ? strides[at - view->letters] : 0;
}

/* Whether a size times a stride, and a group's end, fit in 31 bits. */
static int are_near(const struct gradient_maker *maker, const struct gradient_letters *l)
{
    static const int places[] = {AT_OPERAND, AT_OPERAND + 1, AT_OUTPUT, AT_GIVEN, AT_GRADIENT, AT_GRADIENT + 1};
    const char letters[] = {l->own[0], l->own[1], l->summed};
    for (size_t p = 0; p < sizeof places / sizeof *places; p++)
        for (size_t m = 0; m < sizeof letters; m++) {
            const int64_t stride = stride_of(maker, places[p], letters[m]);
            if (stride > MOST_STRIDE || stride < -MOST_STRIDE)
                return 0;
        }
    return 1;
}

static int are_floats(const struct gradient_maker *maker)
{
    const struct gradient *data = maker->data;
    int floats = 1;
    for (int f = 0; f < FACTORS_MOST; f++)
        floats = floats && data->wanted[f] && data->argument.operand[f] == f &&
                 mf_dtype_find(maker->view[AT_OPERAND + f].tensor.dtype) == DT_f32 &&
                 mf_dtype_find(maker->view[AT_GRADIENT + f].tensor.dtype) == DT_f32;
    return floats && mf_dtype_find(maker->view[AT_OUTPUT].tensor.dtype) == DT_f32 &&
           mf_dtype_find(maker->view[AT_GIVEN].tensor.dtype) == DT_f32;
}

int mf_gpu_gradient_near_pays(const struct gradient_maker *maker)
{
    const struct gradient *data = maker->data;
    const struct mf_device *device = maker->plan->device;
    struct gradient_letters l;
    return device->api && !maker->exact && !maker->products && data->argument.count == FACTORS_MOST &&
           data->input_count == FACTORS_MOST && (data->argument.op == OP_add || data->argument.op == OP_sub) &&
           !(maker->options.flags & (MF_ORDER_CONTRACT | MF_ORDER_AS_WRITTEN)) && mf_gradient_find_letters(maker, &l) &&
           mf_gradient_size_of(maker, l.own[0]) <= MOST_SUMMED && mf_gradient_size_of(maker, l.own[1]) <= MOST_SUMMED &&
           mf_gradient_size_of(maker, l.summed) <= MOST_SUMMED && are_floats(maker) && are_near(maker, &l) &&
           maker->kept_total && maker->reduced_total &&
           mf_gpu_has_few_terms(device, maker->kept_total, maker->reduced_total);
}

/* ---- plans ---- */

/* Gradient f: p is its operand's own mode, q the other's. */
static struct near_side side_of(const struct gradient_maker *maker, const struct gradient_letters *l, int f, int own)
{
    const char p = l->own[f], q = l->own[!f], k = l->summed, b = l->batch;
    const int u = AT_OPERAND + f, v = AT_OPERAND + !f, g = AT_GRADIENT + f;
    struct near_side side = {.p_size = (int32_t)mf_gradient_size_of(maker, p),
                             .k_size = (int32_t)mf_gradient_size_of(maker, k),
                             .q_size = (int32_t)mf_gradient_size_of(maker, q),
                             .u_p = (int32_t)stride_of(maker, u, p),
                             .u_k = (int32_t)stride_of(maker, u, k),
                             .v_k = (int32_t)stride_of(maker, v, k),
                             .v_q = (int32_t)stride_of(maker, v, q),
                             .out_p = (int32_t)stride_of(maker, AT_OUTPUT, p),
                             .out_q = (int32_t)stride_of(maker, AT_OUTPUT, q),
                             .d_p = (int32_t)stride_of(maker, AT_GIVEN, p),
                             .d_q = (int32_t)stride_of(maker, AT_GIVEN, q),
                             .g_p = (int32_t)stride_of(maker, g, p),
                             .g_k = (int32_t)stride_of(maker, g, k),
                             .batch = b ? mf_gradient_size_of(maker, b) : 1,
                             .u_b = stride_of(maker, u, b),
                             .v_b = stride_of(maker, v, b),
                             .out_b = stride_of(maker, AT_OUTPUT, b),
                             .d_b = stride_of(maker, AT_GIVEN, b),
                             .g_b = stride_of(maker, g, b)};
    side.groups = (side.k_size + own - 1) / own;
    side.across = side.out_p == 1 || side.d_p == 1;
    side.chunks = side.across ? (side.p_size + GPU_WARP - 1) / GPU_WARP : side.p_size;
    side.blocks = side.batch * side.groups * side.chunks;
    if (!side.across)
        side.blocks = (side.blocks + WARPS - 1) / WARPS;
    return side;
}

/* Terms at once of the sides that go this way: as many as a thread has, and registers for. */
static int held(const struct near *near, int own, int across)
{
    const int threads = across ? WARPS : GPU_WARP;
    int most = 1;
    for (int s = 0; s < SIDES; s++)
        if (near->side[s].across == across && near->side[s].q_size > most)
            most = near->side[s].q_size;
    return mf_clamp(mf_power_above((most + threads - 1) / threads), 1, own > 4 ? 2 : 4);
}

mf_status mf_gpu_gradient_near_plan(struct gradient_maker *maker)
{
    struct gpu_gradient_near *near = maker->data->near = mf_calloc(sizeof *near);
    struct gpu_text text = {NULL, 0, 0, 0};
    struct gradient_letters l;
    if (!near)
        return MF_ERROR_MEMORY;
    mf_gradient_find_letters(maker, &l);
    const int64_t gradients = maker->reduced_total * maker->kept_total /
                              (mf_gradient_size_of(maker, l.own[0]) + mf_gradient_size_of(maker, l.own[1])) * 2;
    for (near->own = 1; near->own < MOST_OWN && gradients >= (int64_t)OWN_GRADIENTS * 4 * near->own * near->own;)
        near->own *= 2;
    for (int s = 0; s < SIDES; s++)
        near->shape.side[s] = side_of(maker, &l, s, near->own);
    mf_text_add(&text,
                "#define THREADS %d\n#define LAUNCH_BOUNDS THREADS, 3\n#define OWN %d\n#define HELD_ALONG %d\n"
                "#define HELD_ACROSS %d\n#define SIGN %s\n",
                THREADS, near->own, held(&near->shape, near->own, 0), held(&near->shape, near->own, 1),
                maker->data->argument.op == OP_sub ? "-1.0f" : "1.0f");
    mf_text_append(&text, mf_text_gradient_near_cl);
    mf_status status = text.failed ? MF_ERROR_MEMORY : mf_gpu_kernel(maker->plan->device, text.text, &near->kernel);
    mf_free(text.text);
    return status;
}

/* ---- execution ---- */

mf_status mf_gpu_gradient_near_run(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct gradient *data = plan->data;
    const struct gpu_gradient_near *near = data->near;
    const int64_t *in = pointers->in_offset, *out = pointers->out_offset;
    struct near shape = near->shape;
    const int da = data->output[0], db = data->output[1];
    shape.a = in[0];
    shape.b = in[1];
    shape.out = in[2];
    shape.d = in[3];
    shape.da = out[da];
    shape.db = out[db];
    const struct gpu_argument arguments[] = {{pointers->in[0], 0},  {pointers->in[1], 0},   {pointers->in[2], 0},
                                             {pointers->in[3], 0},  {pointers->out[da], 0}, {pointers->out[db], 0},
                                             {&shape, sizeof shape}};
    const struct gpu_launch work = {
        near->kernel, shape.side[0].blocks + shape.side[1].blocks, THREADS, 7, arguments, 0, 1};
    return plan->device->api->launch(plan->device->gpu, &work, pointers->stream);
}

int mf_gpu_gradient_near_print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct gradient *data = plan->data;
    const struct gpu_gradient_near *near = data->near;
    const struct gpu_usage *usage = MF_GPU_USAGE(near->kernel);
    int n = snprintf(text, size, "both gradients in one kernel, %d of a thread: %lld and %lld blocks of %d threads",
                     near->own, (long long)near->shape.side[0].blocks, (long long)near->shape.side[1].blocks, THREADS);
    if (usage->registers && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " with %d registers, %d bytes on the stack, %d spilled",
                      usage->registers, usage->stack, usage->spilled);
    return n;
}
