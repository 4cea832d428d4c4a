/* Solver pixels: convolutions of few channels whose windows may leave the picture; types, pictures' layouts, odd sizes,
 * many columns; the 2 x 2 pool in its store. On "opencl:0" its instruction is emulated by ordinary arithmetic; sums of
 * products of small integers, which are exact in any order, are compared with the reference's bits. Its kernels are
 * compiled for sm_80, sm_90 and sm_100, without spills. */
#include "../src/plan.h"
#include "../src/vocab/convert.h"

#include "gpu_line.h"

static struct gpu_line on = {.excuse = "nothing is excused"};

static const char *const lines[] = {
    "n(h+i-1)(w+j-1)c,ijcp,p->nhwp with h=20,w=37 | leaky(sum(f16(a)*b)+c) | a=f32[2,20,37,3] b=f16[3,3,3,16] "
    "c=f32[16] o=f16[2,20,37,16] | data=integers solver=pixels",
    "n(h+i-1)(w+j-1)c,ijcp,p->nhwp with h=20,w=37 | leaky(sum(f16(f32(a))*b)+c) | a=u8[2,20,37,3] b=f16[3,3,3,24] "
    "c=f32[24] o=f32[2,20,37,24] | data=integers solver=pixels",
    "n(h+i-1)(w+j-1)c,ijcp->nhwp with h=17,w=33 | sum(bf16(a)*b) | a=f32[1,17,33,4] b=bf16[3,3,4,40] "
    "o=f32[1,17,33,40] | data=integers solver=pixels:full",
    "n(h+i-1)(w+j-1)c,pijc->nhwp with h=40,w=33 | relu(sum(a*b)) | a=f32[2,40,33,3] b=f32[16,3,3,3] "
    "o=f32[2,40,33,16] | data=integers solver=pixels:rounded",
    "nc(h+i-1)(w+j-1),pcij->nphw with h=40,w=33 | sum(a*b) | a=f32[2,2,40,33] b=f32[16,2,3,3] o=f32[2,16,40,33] | "
    "data=integers solver=pixels:rounded",
    "(h+i-1)(w+j-1),ijp->hwp with h=31,w=18 | sum(f16(a)*b) | a=u8[31,20] b=f16[2,3,17] o=f16[31,18,17] | "
    "data=integers solver=pixels",
    "ijcp,(h+i+1)(w+j-2)c->hwp with h=31,w=18 | sum(a*f16(b+1)) | a=f16[2,3,3,5] b=f32[31,20,3] o=f16[31,18,5] | "
    "data=integers solver=pixels",
    "n(h+i-1)(w+j-1)c,ijcp->nhwp with h=3,w=2 | sum(f16(a)*b) | a=f16[300,3,2,3]+1 b=f16[2,3,3,16] o=f16[300,3,2,16] | "
    "data=integers solver=pixels",
    "(w+j-1)c(h+i-1),ijcp->hwp with h=50,w=19 | sum(bf16(a)*b) | a=f64[19,4,50]:(-200,50,1) b=bf16[3,3,4,16] "
    "o=bf16[50,19,16] | data=integers solver=pixels",
};

/* ---- with the pool ---- */

enum { H = 34, W = 70, C = 3, P = 24, N = 2, PITCH = 32, OPERANDS = 4 };

struct pooled_numbers {
    float picture[N * H * W * C], weights[9 * C * P], bias[P], all[N * H * W * P];
    uint16_t half[9 * C * P];
    char out[4 * N * (H / 2 + 2) * (W / 2 + 2) * PITCH];
};

static DLTensor tensor_of(const mf_device *device, void *memory, mf_type type, int rank, const int64_t *shape)
{
    DLTensor tensor = mf_tensor(memory, type, rank, shape);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    return tensor;
}

static const int64_t shape_a[] = {N, H, W, C}, shape_b[] = {3, 3, C, P}, shape_c[] = {P}, shape_o[] = {N, H, W, P};
static const int64_t pool[3] = {(H / 2 + 2) * (W / 2 + 2) * PITCH, (W / 2 + 2) * PITCH, PITCH};
static const char modes[] = "n(h+i-1)(w+j-1)c,ijcp,p->nhwp with i=3,j=3";

/* Integers whose sums are exact, and the convolution without the pool, on the CPU. */
static int make_numbers(struct pooled_numbers *x)
{
    uint32_t state = 5;
    float *const list[] = {x->picture, x->weights, x->bias};
    const int count[] = {N * H * W * C, 9 * C * P, P};
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < count[k]; i++) {
            state = state * 1664525u + 1013904223u;
            list[k][i] = (float)((int)(state >> 29) - 3);
        }
    for (int i = 0; i < count[1]; i++)
        x->half[i] = mf_f32_to_f16(x->weights[i]);
    DLTensor in[3] = {mf_tensor(x->picture, MF_F32, 4, shape_a), mf_tensor(x->weights, MF_F32, 4, shape_b),
                      mf_tensor(x->bias, MF_F32, 1, shape_c)};
    DLTensor out = mf_tensor(x->all, MF_F32, 4, shape_o);
    return mf_fold(on.reference, modes, "leaky(sum(a*b)+c)", in, &out) == MF_OK;
}

/* The greatest of 2 x 2 where they belong, and nothing beside them. */
static void compare(const struct pooled_numbers *x, mf_type type)
{
    int64_t others = 0;
    for (int64_t i = 0; i < N * pool[0]; i++) {
        const int64_t n = i / pool[0], p = i % PITCH, h = i % pool[0] / pool[1] - 1, w = i % pool[1] / PITCH - 1;
        const float found = type == MF_F16 ? mf_f16_to_f32(((const uint16_t *)(const void *)x->out)[i])
                                           : ((const float *)(const void *)x->out)[i];
        if (h < 0 || h >= H / 2 || w < 0 || w >= W / 2 || p >= P) {
            others += found != 0;
            continue;
        }
        float most = -1e30f;
        for (int64_t d = 0; d < 4; d++) {
            const float one = x->all[((n * H + 2 * h + d / 2) * W + 2 * w + d % 2) * P + p];
            most = one > most ? one : most;
        }
        most = type == MF_F16 ? mf_f16_to_f32(mf_f32_to_f16(most)) : most;
        CHECK_MSG(found == most, "picture %d, %d, %d, filter %d: %g, not %g", (int)n, (int)h, (int)w, (int)p,
                  (double)found, (double)most);
    }
    CHECK_MSG(!others, "%d places beside the output were written", (int)others);
}

static void check_pooled(struct pooled_numbers *x, mf_type type)
{
    const int half = type == MF_F16;
    const int64_t bytes[OPERANDS] = {sizeof x->picture, half ? sizeof x->half : sizeof x->weights, sizeof x->bias,
                                     N * pool[0] * (half ? 2 : 4)};
    void *const from[OPERANDS] = {x->picture, half ? (void *)x->half : x->weights, x->bias, x->out};
    void *there[OPERANDS] = {NULL};
    mf_plan *plan = NULL;
    int good = 1;
    memset(x->out, 0, sizeof x->out);
    for (int k = 0; k < OPERANDS; k++)
        good = good && mf_memory_create(on.device, bytes[k], &there[k]) == MF_OK &&
               mf_memory_write(on.device, there[k], 0, from[k], bytes[k]) == MF_OK;
    DLTensor in[3] = {tensor_of(on.device, there[0], MF_F32, 4, shape_a),
                      tensor_of(on.device, there[1], type, 4, shape_b),
                      tensor_of(on.device, there[2], MF_F32, 1, shape_c)};
    DLTensor out = tensor_of(on.device, there[3], type, 4, shape_o);
    out.byte_offset = (uint64_t)((pool[1] + pool[2]) * (half ? 2 : 4));
    if (CHECK_MSG(good &&
                      mf_plan_create_pooled(on.device, modes, half ? "leaky(sum(f16(a)*b)+c)" : "leaky(sum(a*b)+c)", in,
                                            &out, pool, half ? "pixels" : "pixels:rounded", &plan) == MF_OK &&
                      mf_plan_execute_tensors(plan, in, &out, NULL) == MF_OK &&
                      mf_memory_read(on.device, there[3], 0, x->out, bytes[3]) == MF_OK,
                  "%s", mf_error()))
        compare(x, type);
    mf_plan_destroy(plan);
    for (int k = 0; k < OPERANDS; k++)
        mf_memory_destroy(on.device, there[k]);
}

static void check_pools(void)
{
    struct pooled_numbers *x = calloc(1, sizeof *x);
    if (CHECK(x) && CHECK_MSG(make_numbers(x), "%s", mf_error())) {
        check_pooled(x, MF_F16);
        check_pooled(x, MF_F32);
    }
    free(x);
}

/* ---- plans ---- */

/* A convolution of a picture's channels; text: what it is, or the error. */
static mf_status plan(mf_device *there, const char *fold, const char *expression, mf_type type, const char *solver,
                      char *text, size_t size)
{
    const int64_t a[] = {2, 64, 64, 3}, b[] = {3, 3, 3, 16}, o[] = {2, 64, 64, 16};
    const mf_options options = {.solver = solver};
    DLTensor in[2] = {tensor_of(there, NULL, MF_F32, 4, a), tensor_of(there, NULL, type, 4, b)};
    DLTensor out = tensor_of(there, NULL, MF_F16, 4, o);
    mf_plan *made = NULL;
    const mf_status status = mf_plan_create(there, fold, expression, in, &out, &options, &made);
    snprintf(text, size, "%s", status == MF_OK ? mf_plan_describe(made) : mf_error());
    mf_plan_destroy(made);
    return status;
}

static const char conv[] = "n(h+i-1)(w+j-1)c,ijcp->nhwp with i=3,j=3";

static void check_compiled(int architecture)
{
    static const struct {
        const char *expression, *solver;
        mf_type type;
    } tests[] = {{"leaky(sum(f16(a/255)*b))", "pixels", MF_F16},
                 {"leaky(sum(bf16(a)*b))", "pixels:full", MF_BF16},
                 {"leaky(sum((a*8193-(a*8193-a))*b))", "pixels:rounded", MF_F32}};
    char name[32], text[2048];
    mf_device *there;
    snprintf(name, sizeof name, "sm:%d", architecture);
    if (mf_device_open(name, &there) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (CHECK_MSG(plan(there, conv, tests[i].expression, tests[i].type, tests[i].solver, text, sizeof text) ==
                          MF_OK,
                      "%s", text))
            CHECK_MSG(strstr(text, " 0 spilled"), "%s spills:\n%s", tests[i].expression, text);
    gpu_test_keep_compiled(0);
    mf_device_close(there);
}

static void check_mistakes(void)
{
    static const struct {
        const char *modes, *expression, *solver;
        mf_type type;
        mf_status status;
        const char *sentence;
    } tests[] = {
        {conv, "sum(f16(a)*b)", "pixels:tf32", MF_F16, MF_ERROR_ARGUMENT, "no form \"tf32\" for f16; the form is full"},
        {conv, "sum(a*b)", "pixels", MF_F32, MF_ERROR_ARGUMENT, "no form \"\" for f32; the form is rounded"},
        {conv, "sum(a*b)", "pixels", MF_F16, MF_ERROR_UNSUPPORTED, "does not apply"}, /* a is no f16 */
        {conv, "max(f16(a)*b)", "pixels", MF_F16, MF_ERROR_UNSUPPORTED, "does not apply"},
        {conv, "sum(f16(a)*b*2)", "pixels", MF_F16, MF_ERROR_UNSUPPORTED, "does not apply"},
        {"n(h+i-1)wc,iwcp->nhwp with i=3,h=64", "sum(f16(a)*b)", "pixels", MF_F16, MF_ERROR_SHAPE, "mode w"},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        const mf_status status =
            plan(on.device, tests[i].modes, tests[i].expression, tests[i].type, tests[i].solver, text, sizeof text);
        CHECK_MSG(status == tests[i].status && strstr(text, tests[i].sentence), "%s, %s: status %d, %s",
                  tests[i].solver, tests[i].expression, (int)status, text);
    }
}

int main(void)
{
    static const int architectures[] = {80, 90, 100};
    static const char *const names[] = {"opencl:0", "cuda:0"};
    gpu_test_environment("off");
    if (!CHECK_MSG(mf_device_open("cpu", &on.reference) == MF_OK, "%s", mf_error()))
        return check_done("test_gpu_pixels");
    for (int a = 0; a < 3; a++)
        check_compiled(architectures[a]);
    for (int d = 0; d < 2; d++) {
        if (mf_device_open(names[d], &on.device) != MF_OK) {
            check_skip(names[d], mf_error());
            continue;
        }
        check_mistakes();
        for (size_t l = 0; l < sizeof lines / sizeof *lines; l++)
            gpu_line_check(&on, lines[l], NULL);
        check_pools();
        mf_device_close(on.device);
    }
    mf_device_close(on.reference);
    return check_done("test_gpu_pixels");
}
