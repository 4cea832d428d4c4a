/* Solver window: tiles, types, steps, batches and groups; what stays in shared memory and what comes in stages; the
 * 2 x 2 pool in its store. On "opencl:0" its instruction is emulated by ordinary arithmetic; on both devices sums of
 * products of small integers, which are exact in any order, are compared with the reference's bits. Its kernels are
 * compiled for sm_80, sm_90 and sm_100, without spills. */
#include "../src/plan.h"
#include "../src/vocab/convert.h"

#include "gpu_line.h"
#include "lists.h"

static struct gpu_line on = {.excuse = "bytes of shared memory, too few for"};

static const char *const lines[] = {
    "n(h+i)(w+j)c,ijcp,p->nhwp | leaky(sum(a*b)+c) | a=f16[2,9,21,8] b=f16[3,3,8,24] c=f32[24] o=f16[2,7,19,24] | "
    "data=integers solver=window",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f32[1,9,11,4] b=f32[3,3,4,16] o=f32[1,7,9,16] | data=integers "
    "solver=window:full:128:16:8",
    "n(h+i)(w+j)c,ijcp,p->nhwp | sum(a*b)+c | a=f32[1,15,15,64] b=f32[3,3,64,40] c=f32[40] o=f32[1,13,13,40] | "
    "data=integers solver=window:tf32",
    "n(h+i)(w+j)c,ijcp,p->nhwp | sum(a*b)+c | a=f32[1,15,15,64] b=f32[3,3,64,40] c=f32[40] o=f32[1,13,13,40] | "
    "data=integers solver=window:rounded:64:64:13",
    "n(2h+i)(2w+j)c,ijcp->nhwp | relu(sum(a*b)) | a=bf16[1,16,15,32] b=bf16[2,2,32,33] o=f32[1,8,7,33] | "
    "data=integers solver=window",
    "n(2h+i)(2w+j)c,ijcp->nhwp | sum(a*b) | a=f16[1,23,25,16] b=f16[5,5,16,8] o=f32[1,10,11,8] | data=integers "
    "solver=window:full:64:64:8",
    "n(h+i)(w+j)c,ijcp,nhwp->nhwp | sum(a*b)+c | a=f16[3,10,12,24] b=f16[3,3,24,72] c=f16[3,8,10,72] "
    "o=f16[3,8,10,72] | data=integers solver=window:full:128:32:8",
    "n(h+i)(w+j)gc,gijcp->nhwgp | sum(a*b) | a=f16[2,8,10,3,16] b=f16[3,3,3,16,16] o=f32[2,6,8,3,16] | data=integers "
    "solver=window",
    "(h+i)(w+j)c,ijcp->hwp | sum(a*b); -sum(a*b) | a=f16[12,12,8] b=f16[3,3,8,16] | data=integers solver=window",
    "(h+i)(w+j)c,ijcp->hwp | sum(a*b) | a=f16[12,12,8]+1 b=f16[3,3,8,16]+3 o=f32[10,10,16] | data=integers "
    "solver=window",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f16[1,8,32,128] b=f16[3,3,128,128] o=f32[1,6,30,128] | data=integers "
    "solver=window:full:128:128:30",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f16[40,18,18,8] b=f16[3,3,8,16] o=f32[40,16,16,16] | data=integers "
    "solver=window",
    "n(h+i)(w+j)c,ijcp,p->nhwp | leaky(sum(a*b)+c) | a=f16[2,15,15,64] b=f16[3,3,64,72] c=f32[72] o=f16[2,13,13,72] | "
    "data=integers solver=window:full:64:64:8:2",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f32[1,9,11,64] b=f32[3,3,64,40] o=f32[1,7,9,40] | data=integers "
    "solver=window:full:64:64:9:4",
    "n(2h+i)(w+j)c,pijc->nhwp | sum(a*b) | a=f32[1,16,11,48] b=f32[40,3,2,48] o=f32[1,7,10,40] | data=integers "
    "solver=window:rounded:128:32:0:3",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f16[1,15,15,512] b=f16[3,3,512,72] o=f32[1,13,13,72] | data=integers "
    "solver=window:full:192:64:13:8",
    "n(h+i)(w+j)c,pijc->nhwp | sum(a*b) | a=f32[20,18,18,16] b=f32[72,3,3,16] o=f32[20,16,16,72] | data=integers "
    "solver=window",
    "n(h+i)(w+j)c,pijc->nhwp | sum(a*b) | a=f16[20,18,18,32] b=f16[64,3,3,32] o=f32[20,16,16,64] | data=integers "
    "solver=window",
    "n(h+i)(w+j)c,ijcp,p->nhwp | leaky(sum(a*b)+c) | a=f16[2,9,21,8] b=f16[3,3,8,72] c=f32[72] o=f16[2,7,19,72] | "
    "data=integers solver=window:weights",
    "n(h+i)(w+j)c,ijcp,p->nhwp | sum(a*b)+c | a=f32[3,15,15,16] b=f32[3,3,16,40] c=f32[40] o=f32[3,13,13,40] | "
    "data=integers solver=window:weights:tf32",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f32[3,11,13,8] b=f32[3,3,8,40] o=f32[3,9,11,40] | data=integers "
    "solver=window:weights:full:128:16:11",
    "n(h+i)(w+j)c,ijcp,p->nhwp | leaky(sum(a*b)+c) | a=f16[2,9,21,8] b=f16[3,3,8,200] c=f32[200] o=f16[2,7,19,200] | "
    "data=integers solver=window:inputs",
    "n(h+i)(w+j)c,ijcp,p->nhwp | sum(a*b)+c | a=f32[2,15,15,16] b=f32[3,3,16,104] c=f32[104] o=f32[2,13,13,104] | "
    "data=integers solver=window:inputs:full:128:32:13",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f32[1,11,13,36] b=f32[3,3,36,72] o=f32[1,9,11,72] | data=integers "
    "solver=window:inputs:tf32:64:64",
    "n(2h+i)(2w+j)c,ijcp->nhwp | relu(sum(a*b)) | a=bf16[1,16,15,32] b=bf16[2,2,32,133] o=f32[1,8,7,133] | "
    "data=integers solver=window:inputs:full:32:64",
    "n(h+i)(w+j)gc,gijcp->nhwgp | sum(a*b) | a=f16[2,8,10,3,16] b=f16[3,3,3,16,72] o=f32[2,6,8,3,72] | data=integers "
    "solver=window:inputs:full:128:32",
    "(h+i)(w+j)c,ijcp->hwp | sum(a*b) | a=f16[12,12,8]+1 b=f16[3,3,8,80]+3 o=f32[10,10,80] | data=integers "
    "solver=window:inputs:full:64:64",
};
enum { LINES = sizeof lines / sizeof *lines };

/* With the tiles for four warps. */
static void check_grouped(void)
{
    static const char *const tiles[] = {"256:128", "128:256", "128:128", "192:128", "192:64", "128:64"};
    char solver[64];
    for (int l = 0; l < LINES * 6; l++) {
        snprintf(solver, sizeof solver, "window:%s:%s", strstr(lines[l / 6], "a=f32") ? "rounded" : "full",
                 tiles[l % 6]);
        if (gpu_line_may_group(&on, lines[l / 6]))
            gpu_line_check(&on, lines[l / 6], solver);
    }
}

/* ---- with the pool ---- */

struct pooled_case {
    mf_type type;
    int64_t n, h, w, c, p;
    const char *solver;
};

static float small(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)((int)(*state >> 30) - 1);
}

static void put(void *numbers, int64_t i, mf_type type, float value)
{
    if (type == MF_F16)
        ((uint16_t *)numbers)[i] = mf_f32_to_f16(value);
    else
        ((float *)numbers)[i] = value;
}

static float get(const void *numbers, int64_t i, mf_type type)
{
    return type == MF_F16 ? mf_f16_to_f32(((const uint16_t *)numbers)[i]) : ((const float *)numbers)[i];
}

/* The greatest of 2 x 2 of the 3 x 3 convolution plus its bias, by loops: exact. */
static float expected_at(const struct pooled_case *t, const float *a, const float *b, const float *bias, int64_t n,
                         int64_t y, int64_t x, int64_t p)
{
    float most = 0;
    for (int64_t d = 0; d < 4; d++) {
        float sum = bias[p];
        for (int64_t i = 0; i < 3; i++)
            for (int64_t j = 0; j < 3; j++)
                for (int64_t c = 0; c < t->c; c++)
                    sum += a[((n * (t->h + 2) + 2 * y + d / 2 + i) * (t->w + 2) + 2 * x + d % 2 + j) * t->c + c] *
                           b[((i * 3 + j) * t->c + c) * t->p + p];
        sum = sum > 0 ? sum : 0;
        most = sum > most ? sum : most;
    }
    return most;
}

static DLTensor tensor_of(void *memory, mf_type type, int rank, const int64_t *shape)
{
    DLTensor tensor = mf_tensor(memory, type, rank, shape);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(on.device);
    return tensor;
}

/* What the border and the places between pixels have to keep, and pixels their greatest. */
static void compare(const struct pooled_case *t, const void *got, float *const value[3], const int64_t pool[3])
{
    const int64_t first = pool[1] + pool[2];
    int64_t others = t->n * pool[0];
    for (int64_t i = 0; i < t->n * (t->h / 2) * (t->w / 2) * t->p; i++) {
        const int64_t p = i % t->p, x = i / t->p % (t->w / 2), y = i / t->p / (t->w / 2) % (t->h / 2);
        const int64_t n = i / t->p / (t->w / 2) / (t->h / 2);
        const int64_t at = first + n * pool[0] + y * pool[1] + x * pool[2] + p;
        const float wanted = expected_at(t, value[0], value[1], value[2], n, y, x, p), found = get(got, at, t->type);
        CHECK_MSG(found == wanted, "pooled, picture %d, %d, %d, filter %d: %g, not %g", (int)n, (int)y, (int)x, (int)p,
                  (double)found, (double)wanted);
        others -= found != 0;
    }
    for (int64_t i = 0; i < t->n * pool[0]; i++)
        others -= get(got, i, t->type) == 0;
    CHECK_MSG(!others, "pooled: something was written beside the output");
}

enum { OPERANDS = 4 };

static void run_pooled(const struct pooled_case *t, void *const there[OPERANDS], const int64_t pool[3], void *result,
                       int64_t bytes, float *const value[3])
{
    const int64_t shape_a[] = {t->n, t->h + 2, t->w + 2, t->c}, shape_b[] = {3, 3, t->c, t->p};
    const int64_t shape_o[] = {t->n, t->h, t->w, t->p}, item = t->type == MF_F16 ? 2 : 4;
    DLTensor in[3] = {tensor_of(there[0], t->type, 4, shape_a), tensor_of(there[1], t->type, 4, shape_b),
                      tensor_of(there[2], MF_F32, 1, &t->p)};
    DLTensor out = tensor_of(there[3], t->type, 4, shape_o);
    mf_plan *plan = NULL;
    out.byte_offset = (uint64_t)((pool[1] + pool[2]) * item);
    if (CHECK_MSG(mf_plan_create_pooled(on.device, "n(h+i)(w+j)c,ijcp,p->nhwp", "relu(sum(a*b)+c)", in, &out, pool,
                                        t->solver, &plan) == MF_OK &&
                      mf_plan_execute_tensors(plan, in, &out, NULL) == MF_OK &&
                      mf_memory_read(on.device, there[3], 0, result, bytes) == MF_OK,
                  "%s", mf_error()))
        compare(t, result, value, pool);
    mf_plan_destroy(plan);
}

/* The output lies inside a border, and its pixels are a few elements apart. */
static void check_pooled(const struct pooled_case *t)
{
    enum { APART = 8 };
    const int64_t pitch = t->p + APART, row = (t->w / 2 + 2) * pitch, pool[3] = {(t->h / 2 + 2) * row, row, pitch};
    const int64_t count[OPERANDS] = {t->n * (t->h + 2) * (t->w + 2) * t->c, 9 * t->c * t->p, t->p, t->n * pool[0]};
    void *numbers[OPERANDS], *there[OPERANDS] = {NULL};
    float *value[OPERANDS];
    uint32_t state = 7;
    int64_t bytes = 0;
    int good = 1;
    for (int k = 0; k < OPERANDS; k++) {
        const mf_type type = k == 2 ? MF_F32 : t->type;
        numbers[k] = calloc((size_t)count[k], sizeof(float));
        value[k] = calloc((size_t)count[k], sizeof(float));
        for (int64_t i = 0; i < count[k] && k < 3; i++)
            put(numbers[k], i, type, value[k][i] = small(&state));
        bytes = count[k] * (type == MF_F16 ? 2 : 4);
        good = good && mf_memory_create(on.device, bytes, &there[k]) == MF_OK &&
               mf_memory_write(on.device, there[k], 0, numbers[k], bytes) == MF_OK;
    }
    if (CHECK_MSG(good, "%s", mf_error()))
        run_pooled(t, there, pool, numbers[3], bytes, value);
    for (int k = 0; k < OPERANDS; k++) {
        mf_memory_destroy(on.device, there[k]);
        free(numbers[k]);
        free(value[k]);
    }
}

static void check_pools(void)
{
    static const struct pooled_case tests[] = {
        {MF_F16, 1, 16, 16, 8, 16, "window"},
        {MF_F32, 2, 6, 22, 4, 24, "window:full:64:64:8"},
        {MF_F32, 2, 14, 18, 16, 40, "window:rounded:128:32:18"},
        {MF_F16, 1, 52, 52, 64, 32, "window:full:64:64:26"},
        {MF_F16, 30, 12, 20, 8, 16, "window:full:128:16:16"},
        {MF_F16, 2, 12, 20, 64, 40, "window:full:64:64:8:2"},
        {MF_F32, 1, 14, 14, 32, 40, "window:full:64:64:14:2"},
        {MF_F16, 2, 12, 20, 8, 72, "window:inputs:full:128:32:20"},
        {MF_F32, 2, 12, 20, 8, 72, "window:weights:tf32"},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        check_pooled(&tests[i]);
}

/* Where pictures and their rows are one loop the pool would write to wrong places. */
static void check_merged_rows(void)
{
    const int64_t a[] = {2, 8, 32, 8}, b[] = {2, 2, 8, 16}, o[] = {2, 4, 16, 16}, pool[3] = {640, 160, 16};
    const DLTensor in[2] = {tensor_of(NULL, MF_F32, 4, a), tensor_of(NULL, MF_F32, 4, b)};
    const DLTensor out = tensor_of(NULL, MF_F32, 4, o);
    mf_plan *made = NULL;
    CHECK(mf_plan_create_pooled(on.device, "n(2h+i)(2w+j)c,ijcp->nhwp", "sum(a*b)", in, &out, pool, "window:full:64:64",
                                &made) == MF_ERROR_UNSUPPORTED &&
          !made);
    CHECK(mf_plan_create_pooled(on.device, "n(2h+i)(2w+j)c,ijcp->nhwp", "sum(a*b)", in, &out, pool, "product", &made) ==
              MF_ERROR_ARGUMENT &&
          strstr(mf_error(), "solver product"));
}

/* ---- plans ---- */

static const char conv[] = "n(h+i)(w+j)c,ijcp->nhwp";

/* A 3 x 3 convolution; text: what it is, or the error. */
static mf_status plan_channels(mf_device *there, const char *solver, const char *type, int64_t side, int64_t c,
                               char *text, size_t size)
{
    const int64_t a[] = {1, side + 2, side + 2, c}, b[] = {3, 3, c, 128}, o[] = {1, side, side, 128};
    const mf_options options = {.solver = solver, .flags = MF_ORDER_FREE};
    DLTensor in[2], out;
    mf_plan *made = NULL;
    in[0] = mf_tensor(NULL, MF_F32, 4, a);
    in[1] = mf_tensor(NULL, MF_F32, 4, b);
    out = mf_tensor(NULL, MF_F32, 4, o);
    for (int k = 0; k < 2; k++) {
        list_type_named(type, &in[k].dtype);
        in[k].device.device_type = (DLDeviceType)mf_device_kind(there);
    }
    out.device.device_type = in[0].device.device_type;
    const mf_status status = mf_plan_create(there, conv, "sum(a*b)", in, &out, &options, &made);
    snprintf(text, size, "%s", status == MF_OK ? mf_plan_describe(made) : mf_error());
    mf_plan_destroy(made);
    return status;
}

/* The same of 64 channels. */
static mf_status plan(mf_device *there, const char *solver, const char *type, int64_t side, char *text, size_t size)
{
    return plan_channels(there, solver, type, side, 64, text, size);
}

/* Filters that are no whole pieces are read one by one, for which there have to be registers. */
static void check_gathered(mf_device *there)
{
    static const int64_t cases[][4] = {{4, 104, 32, 125}, {16, 52, 64, 255}}; /* pictures, side, channels, filters */
    static const char *const forms[] = {"window", "window:inputs"};
    for (int k = 0; k < 4; k++) {
        const int64_t *size = cases[k / 2], n = size[0], side = size[1], c = size[2], p = size[3];
        const int64_t a[] = {n, side + 2, side + 2, c}, b[] = {3, 3, c, p}, o[] = {n, side, side, p};
        const mf_options options = {.solver = forms[k % 2]};
        DLTensor in[2] = {mf_tensor(NULL, MF_F16, 4, a), mf_tensor(NULL, MF_F16, 4, b)},
                 out = mf_tensor(NULL, MF_F16, 4, o);
        mf_plan *made = NULL;
        in[0].device.device_type = in[1].device.device_type = out.device.device_type =
            (DLDeviceType)mf_device_kind(there);
        if (CHECK_MSG(mf_plan_create(there, conv, "leaky(sum(a*b))", in, &out, &options, &made) == MF_OK, "%s",
                      mf_error()))
            CHECK_MSG(strstr(mf_plan_describe(made), " 0 spilled"), "%s spills:\n%s", options.solver,
                      mf_plan_describe(made));
        mf_plan_destroy(made);
    }
}

/* What stays, where it fits: the solver's choice, and what is asked for. */
static void check_stays(mf_device *there)
{
    const int64_t a[] = {8, 8, 3, 16}, b[] = {3, 3, 3, 16, 16}, o[] = {6, 6, 3, 16};
    char text[2048];
    DLTensor in[2] = {mf_tensor(NULL, MF_F16, 4, a), mf_tensor(NULL, MF_F16, 5, b)},
             out = mf_tensor(NULL, MF_F16, 4, o);
    mf_plan *made = NULL;
    in[0].device.device_type = in[1].device.device_type = out.device.device_type = (DLDeviceType)mf_device_kind(there);
    CHECK_MSG(plan(there, "window:weights", "f16", 64, text, sizeof text) == MF_OK && strstr(text, ", weights stay,") &&
                  plan(there, "window:inputs", "f16", 64, text, sizeof text) == MF_OK &&
                  strstr(text, " for all columns,"),
              "%s", text);
    CHECK_MSG(plan_channels(there, "window", "f16", 256, 8, text, sizeof text) == MF_OK && strstr(text, "weights stay"),
              "many positions: %s", text);
    CHECK_MSG(plan_channels(there, "window:weights", "f32", 16, 1024, text, sizeof text) == MF_ERROR_UNSUPPORTED &&
                  strstr(text, "too few for weights that stay there, 9216 terms of 16 columns or more (589824 bytes)"),
              "%s", text);
    CHECK_MSG(plan_channels(there, "window:weights:full:64:64", "f32", 16, 1024, text, sizeof text) ==
                      MF_ERROR_UNSUPPORTED &&
                  strstr(text, "9216 terms of 64 columns (2359296 bytes), and for what positions read"),
              "%s", text);
    CHECK_MSG(plan_channels(there, "window:inputs", "f32", 16, 1024, text, sizeof text) == MF_ERROR_UNSUPPORTED &&
                  strstr(text, "too few for what a block would read"),
              "%s", text);
    CHECK_MSG(
        mf_plan_create(there, "(h+i)(w+j)gc,ijgcp->hwgp", "sum(a*b)", in, &out,
                       &(mf_options){.solver = "window:weights"}, &made) == MF_ERROR_UNSUPPORTED &&
            strstr(mf_error(), "keeps one operand for all 108 positions, and here every 36 of them have their own"),
        "%s", mf_error());
}

static void check_compiled(int architecture)
{
    static const char *const forms[][2] = {
        {"window", "f16"},
        {"window", "f32"},
        {"window:tf32", "f32"},
        {"window:full:128:128", "bf16"},
        {"window:full:64:64", "f16"},
        {"window:rounded:128:32", "f32"},
        {"window:weights", "f16"},
        {"window:weights", "f32"},
        {"window:inputs", "f16"},
        {"window:inputs", "f32"},
        {"window:inputs:tf32", "f32"},
    };
    char name[32], text[2048];
    mf_device *there;
    snprintf(name, sizeof name, "sm:%d", architecture);
    if (mf_device_open(name, &there) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        if (CHECK_MSG(plan(there, forms[f][0], forms[f][1], 64, text, sizeof text) == MF_OK, "%s", text))
            CHECK_MSG(strstr(text, " 0 spilled"), "%s of %s spills:\n%s", forms[f][0], forms[f][1], text);
    /* by itself where blocks are many enough without parts of the terms */
    for (int64_t side = 16; architecture == 90 && side <= 64; side += 48)
        if (CHECK_MSG(plan(there, NULL, "f16", side, text, sizeof text) == MF_OK, "%s", text))
            CHECK_MSG(strstr(text, side == 64 ? "solver window" : "solver product"), "side %d: %s", (int)side, text);
    check_gathered(there);
    if (architecture == 90)
        check_stays(there);
    gpu_test_keep_compiled(0);
    mf_device_close(there);
}

static void check_mistakes(void)
{
    static const struct {
        const char *solver, *type;
        int64_t side;
        mf_status status;
        const char *sentence;
    } tests[] = {
        {"window:half", "f32", 16, MF_ERROR_ARGUMENT, "solver window has no form \"half\" for f32"},
        {"window:weight", "f32", 16, MF_ERROR_ARGUMENT, "a form is weights or inputs, for what stays, or neither"},
        {"window:inputs:full:64:64:16:2", "f32", 16, MF_ERROR_ARGUMENT, "2 parts of the channels were asked for"},
        {"window:inputs:half", "f32", 16, MF_ERROR_ARGUMENT, "has no form \"inputs:half\" for f32"},
        {"window:weights:tf32", "f16", 16, MF_ERROR_ARGUMENT, "has no form \"weights:tf32\" for f16"},
        {"window:inputs:full:64:64:60", "f32", 16, MF_ERROR_UNSUPPORTED, "60 positions beside each other in a block"},
        {"window:tf32", "f16", 16, MF_ERROR_ARGUMENT, "solver window has no form \"tf32\" for f16"},
        {"window", "f64", 16, MF_ERROR_UNSUPPORTED, "solver window does not apply"},
        {"window:full:64:64:60", "f32", 16, MF_ERROR_UNSUPPORTED, "were asked for, and here there are 1 to 16"},
        {"window:weights:full:64:64:17", "f32", 16, MF_ERROR_UNSUPPORTED, "17 positions beside each other in a block"},
        {"window:full:64:64:0:3", "f32", 16, MF_ERROR_UNSUPPORTED, "3 parts of the channels were asked for, and 64"},
        {"window:full:64:64:8:99999", "f16", 16, MF_ERROR_UNSUPPORTED, "64 channels are not so many times 32"},
    };
    char text[2048];
    const int64_t shape[] = {1, 4, 4, 8}, pool[3] = {1, 1, 1};
    DLTensor any[3];
    mf_plan *made;
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        const mf_status status = plan(on.device, tests[i].solver, tests[i].type, tests[i].side, text, sizeof text);
        CHECK_MSG(status == tests[i].status && strstr(text, tests[i].sentence), "%s: status %d, %s", tests[i].solver,
                  (int)status, text);
    }
    for (int k = 0; k < 3; k++)
        any[k] = mf_tensor(NULL, MF_F32, 4, shape);
    CHECK(mf_plan_create_pooled(on.reference, conv, "sum(a*b)", any, &any[2], pool, "window", &made) ==
          MF_ERROR_UNSUPPORTED);
    CHECK(!made);
}

int main(void)
{
    static const int architectures[] = {80, 90, 100};
    static const char *const names[] = {"opencl:0", "cuda:0"};
    gpu_test_environment("off");
    if (!CHECK_MSG(mf_device_open("cpu", &on.reference) == MF_OK, "%s", mf_error()))
        return check_done("test_gpu_window");
    for (int a = 0; a < 3; a++)
        check_compiled(architectures[a]);
    for (int d = 0; d < 2; d++) {
        if (mf_device_open(names[d], &on.device) != MF_OK) {
            check_skip(names[d], mf_error());
            continue;
        }
        check_mistakes();
        for (int l = 0; l < LINES; l++)
            gpu_line_check(&on, lines[l], NULL);
        check_grouped();
        check_pools();
        check_merged_rows();
        mf_device_close(on.device);
    }
    mf_device_close(on.reference);
    return check_done("test_gpu_window");
}
