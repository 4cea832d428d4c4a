/* Solver product: tiles, parts, types and layouts. On "opencl:0" its instruction is emulated by ordinary arithmetic; on
 * both devices sums of products of small integers, which are exact in any order, are compared with the reference's
 * bits, and those of normal numbers with a bound. Its kernels are compiled for sm_80, sm_90 and sm_100, without spills.
 */
#include <math.h>

#include "gpu_line.h"
#include "lists.h"

/* What a sanitizer looks at is the same for all lines, and PoCL's compiler takes minutes under one. */
#if defined __SANITIZE_ADDRESS__
enum { EVERY = 4 };
#elif defined __has_feature
#if __has_feature(address_sanitizer)
enum { EVERY = 4 };
#else
enum { EVERY = 1 };
#endif
#else
enum { EVERY = 1 };
#endif

static struct gpu_line on = {.excuse = "too few for these blocks"};

/* Convolutions whose terms come in whole tiles and do not, channels that are pieces and are not, factors along terms
 * and along positions, batches, outputs by columns and by rows, a finish part with an operand of its own, two outputs.
 */
static const char *const lines[] = {
    "n(h+i)(w+j)c,ijcp,p->nhwp | leaky(sum(a*b)+c) | a=f16[2,9,11,8] b=f16[3,3,8,24] c=f32[24] o=f16[2,7,9,24] | "
    "data=integers",
    "n(h+i)(w+j)c,ijcp,p->nhwp | leaky(sum(a*b)+c) | a=f16[1,9,11,3] b=f16[3,3,3,16] c=f32[16] o=f32[1,7,9,16] | "
    "data=integers",
    "n(h+i)(w+j)c,ijcp->nhwp | sum(a*b) | a=f32[1,9,11,4] b=f32[3,3,4,16] o=f32[1,7,9,16] | data=integers",
    "n(h+i)(w+j)c,ijcp,p->nhwp | sum(a*b)+c | a=f32[1,15,15,64] b=f32[3,3,64,40] c=f32[40] o=f32[1,13,13,40] | "
    "data=integers",
    "n(h+i)(w+j)c,ijcp,p->nhwp | sum(a*b)+c | a=f16[1,15,15,64] b=f16[3,3,64,40] c=f32[40] o=f32[1,13,13,40] | "
    "data=integers",
    "n(2h+i)(2w+j)c,ijcp->nhwp | relu(sum(a*b)) | a=bf16[1,16,15,32] b=bf16[2,2,32,33] o=f32[1,8,7,33] | data=integers",
    "nhwc,cp,p->nhwp | sum(a*b)+c | a=f16[1,7,8,24] b=f16[24,21] c=f32[21] o=f32[1,7,8,21] | data=integers",
    "ik,kj->ij | sum(a*b) | a=bf16[70,200] b=bf16[200,50] o=f32[70,50] | data=integers",
    "bik,bkj->bij | sum(a*b); -sum(a*b) | a=f32[3,40,70] b=f32[3,70,50] | data=integers",
    "ik,jk->ji | sum(a*b) | a=f16[70,200] b=f16[90,200] o=f32[90,70] | data=integers",
    "ki,kj->ij | sum(a*b) | a=f32[130,136] b=f32[130,72] o=f32[136,72] | data=integers",
    "ki,jk->ij | sum(a*b) | a=f16[96,40]:(1,97) b=f16[24,96]:(97,1)+1 o=f32[40,24] | data=integers",
    "ik,kj->ij | sum(a*b) | a=f32[9,700] b=f32[700,8] o=f32[9,8] | data=integers",
    "ik,jk->ij | sum(a*b) | a=f32[300,200] b=f32[150,200] o=f32[300,150] | data=integers",
    "ik,kj->ij | sum(a*b) | a=f16[300,520] b=f16[520,264] o=f32[300,264] | data=integers",
    "n(h+i)(w+j)c,pijc,p->nhwp | sum(a*b)+c | a=f32[2,15,15,64] b=f32[72,3,3,64] c=f32[72] o=f32[2,13,13,72] | "
    "data=integers",
};
enum { LINES = sizeof lines / sizeof *lines };

/* Tiles for four warps together. */
static const char *const grouped[] = {"256:128", "128:256", "128:128", "192:128", "192:64", "128:64"};
enum { GROUPED = sizeof grouped / sizeof *grouped };

/* The library's own tiles, and another tile for every line, in one part or several: clusters, and more than a cluster
 * takes. All tiles come. */
static void check_exact(void)
{
    static const char *const halves[] = {"128:128", "64:64", "128:32", "128:16", "32:64", "64:32", "32:32"};
    static const char *const singles[] = {"192:64", "64:64", "128:32", "128:16", "32:64", "64:32", "32:32"};
    static const int parts[] = {1, 2, 3, 4, 6};
    char solver[64];
    for (int l = 0; l < LINES * GROUPED; l++) {
        snprintf(solver, sizeof solver, "product:%s:%s:%d", strstr(lines[l / GROUPED], "a=f32") ? "rounded" : "full",
                 grouped[l % GROUPED], parts[l % 5]);
        if (gpu_line_may_group(&on, lines[l / GROUPED]))
            gpu_line_check(&on, lines[l / GROUPED], solver);
    }
    for (int l = 0; l < LINES; l += EVERY) {
        const int single = strstr(lines[l], "a=f32") != NULL, tf32 = single && l % 2;
        const char *tile = (single && !tf32 ? singles : halves)[l % 7];
        snprintf(solver, sizeof solver, "product:%s:%s:%d", tf32 ? "tf32" : "full", tile, parts[l % 5]);
        gpu_line_check(&on, lines[l], "product");
        gpu_line_check(&on, lines[l], solver);
    }
}

/* The greatest |got - expected| of the only output. */
static double difference_of(const struct problem_line *line, const struct problem_memory *memory, int64_t count)
{
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    double most = 0;
    problem_pointers(line, memory, in, out);
    const struct problem_block *block = &memory->block[MF_MAX_INPUTS];
    const float *got = out[0];
    problem_guards_open(block);
    for (int64_t i = 0; i < count; i++) {
        float expected;
        memcpy(&expected, block->expected + ((unsigned char *)out[0] - block->base) + 4 * i, sizeof expected);
        const double d = fabs((double)got[i] - (double)expected);
        most = isfinite(got[i]) ? fmax(most, d) : 1e9;
    }
    problem_guards_close(block);
    return most;
}

/* Normal numbers: 1,000 products, whose sizes add up to 640 on the average. A product in three is 2^-21 off at most,
 * one of factors of 11 bits 2^-10; additions 2^-23, in tiles of 16 terms. */
static void check_near(void)
{
    static const char text[] = "ik,jk->ij | sum(a*b) | a=f32[40,1000] b=f32[40,1000] o=f32[40,40] | data=normal";
    static const struct {
        const char *solver;
        double bound;
    } tests[] = {{"product", 1000 * (0x1p-21 + 0x1p-23)},
                 {"product:full:64:64:5", 1000 * (0x1p-21 + 0x1p-23)},
                 {"product:tf32", 1000 * 0x1p-10}};
    static struct problem_line line;
    struct problem_memory memory;
    for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
        if (gpu_line_run(&on, text, tests[t].solver, &line, &memory)) {
            const double d = difference_of(&line, &memory, 1600);
            CHECK_MSG(d <= tests[t].bound && (t < 2 || d > 1e-5), "%s differs by %g, and %g is allowed",
                      tests[t].solver, d, tests[t].bound);
            problem_memory_free(&memory);
        }
}

/* An infinity makes its own row's sums infinite, a NaN, whatever its bits are, NaN, and no others. */
static void check_special(const char *solver, uint32_t bits)
{
    enum { N = 32 };
    static float a[N * N], b[N * N], out[N * N];
    static const int64_t shape[2] = {N, N};
    const int64_t bytes = sizeof a;
    void *there[3] = {NULL, NULL, NULL};
    mf_plan *plan = NULL;
    const mf_options options = {.solver = solver};
    for (int i = 0; i < N * N; i++) {
        a[i] = 1 + 0.001f * (float)(i % 37);
        b[i] = 1 + (float)(i % 2);
    }
    memcpy(&a[5 * N + 7], &bits, sizeof bits);
    int good = 1;
    DLTensor tensor[3];
    for (int k = 0; k < 3; k++) {
        good &= mf_memory_create(on.device, bytes, &there[k]) == MF_OK;
        tensor[k] = mf_tensor(there[k], MF_F32, 2, shape);
        tensor[k].device.device_type = (DLDeviceType)mf_device_kind(on.device);
    }
    good &= mf_memory_write(on.device, there[0], 0, a, bytes) == MF_OK &&
            mf_memory_write(on.device, there[1], 0, b, bytes) == MF_OK;
    good &= mf_plan_create(on.device, "ik,kj->ij", "sum(a*b)", tensor, &tensor[2], &options, &plan) == MF_OK;
    good &= plan && mf_plan_execute_tensors(plan, tensor, &tensor[2], NULL) == MF_OK &&
            mf_memory_read(on.device, there[2], 0, out, bytes) == MF_OK;
    if (CHECK_MSG(good, "%s", mf_error()))
        for (int i = 0; i < N; i++)
            for (int j = 0; j < N; j++) {
                const float got = out[i * N + j], there_is = a[5 * N + 7];
                const int right = i != 5 ? isfinite(got) : isnan(there_is) ? isnan(got) : got == there_is;
                CHECK_MSG(right, "%s, %08x: row %d, column %d: %g", solver, (unsigned)bits, i, j, (double)got);
            }
    mf_plan_destroy(plan);
    for (int k = 0; k < 3; k++)
        mf_memory_destroy(on.device, there[k]);
}

/* ---- plans ---- */

static mf_status plan_of(mf_device *there, const char *expression, const char *solver, const char *type, int64_t n,
                         uint32_t flags, char *text, size_t size)
{
    const int64_t shape[2] = {n, n};
    DLTensor in[2], out = mf_tensor(NULL, MF_F32, 2, shape);
    mf_options options = {.solver = solver, .flags = flags};
    mf_plan *made = NULL;
    for (int k = 0; k < 2; k++) {
        in[k] = mf_tensor(NULL, MF_F32, 2, shape);
        list_type_named(type, &in[k].dtype);
        in[k].device.device_type = (DLDeviceType)mf_device_kind(there);
    }
    out.device.device_type = in[0].device.device_type;
    mf_status status = mf_plan_create(there, "ik,kj->ij", expression, in, &out, &options, &made);
    snprintf(text, size, "%s", status == MF_OK ? mf_plan_describe(made) : mf_error());
    mf_plan_destroy(made);
    return status;
}

static mf_status plan(mf_device *there, const char *solver, const char *type, int64_t n, uint32_t flags, char *text,
                      size_t size)
{
    return plan_of(there, "sum(a*b)", solver, type, n, flags, text, size);
}

static void check_kernel(mf_device *there, const char *solver, const char *type)
{
    char text[2048];
    if (CHECK_MSG(plan(there, solver, type, 4096, 0, text, sizeof text) == MF_OK, "%s of %s: %s", solver, type, text))
        CHECK_MSG(strstr(text, " 0 spilled"), "%s of %s spills:\n%s", solver, type, text);
}

static void check_compiled(int architecture)
{
    static const char *const full[] = {"product:full:64:64:4", "product:full:32:64:8", "product:full:128:16"};
    char name[32], text[2048];
    mf_device *there;
    snprintf(name, sizeof name, "sm:%d", architecture);
    if (mf_device_open(name, &there) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    for (int s = 0; s < 3; s++) {
        check_kernel(there, full[s], "f32");
        check_kernel(there, full[s], s ? "f16" : "bf16");
    }
    check_kernel(there, "product:full:128:128:1", "f16");
    for (int g = 0; architecture == 90 && g < GROUPED; g++) {
        snprintf(text, sizeof text, "product:full:%s", grouped[g]);
        check_kernel(there, text, "f16");
    }
    check_kernel(there, "product:full:192:64:1", "f32");
    check_kernel(there, "product:tf32:128:128:1", "f32");
    if (CHECK_MSG(plan(there, NULL, "f32", 1024, MF_ORDER_FREE, text, sizeof text) == MF_OK, "%s", text))
        CHECK_MSG(strstr(text, "solver product"), "in any order: %s", text);
    if (CHECK_MSG(plan(there, NULL, "f32", 1024, 0, text, sizeof text) == MF_OK, "%s", text))
        CHECK_MSG(!strstr(text, "solver product"), "in the contract's order: %s", text);
    gpu_test_keep_compiled(0);
    mf_device_close(there);
}

static void check_mistakes(void)
{
    static const struct {
        const char *solver, *type;
        mf_status status;
        const char *sentence;
    } tests[] = {
        {"product:half", "f32", MF_ERROR_ARGUMENT, "solver product has no form \"half\" for f32"},
        {"product:tf32", "f16", MF_ERROR_ARGUMENT, "solver product has no form \"tf32\" for f16"},
        {"product:full:48:64", "f32", MF_ERROR_ARGUMENT, "has no form \"full:48:64\""},
        {"product:full:64:64:65", "f32", MF_ERROR_ARGUMENT, "at most 64 parts"},
        {"product", "f64", MF_ERROR_UNSUPPORTED, "solver product does not apply"},
        {"product", "i8", MF_ERROR_UNSUPPORTED, "solver product does not apply"},
    };
    char text[2048];
    static const char *const others[] = {"sum(a*b*2)", "sum(2*max(a,b))", "sum((a*b)*(a*b))", "sum(abs(a-b)*2)",
                                         "max(a*b)"};
    mf_device *old;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_MSG(plan_of(on.device, others[i], "product", "f32", 100, 0, text, sizeof text) != MF_OK, "%s: %s",
                  others[i], text);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        const mf_status status = plan(on.device, tests[i].solver, tests[i].type, 100, 0, text, sizeof text);
        CHECK_MSG(status == tests[i].status && strstr(text, tests[i].sentence), "%s: status %d, %s", tests[i].solver,
                  (int)status, text);
    }
    if (mf_device_open("sm:75", &old) == MF_OK) {
        CHECK(plan(old, "product", "f16", 100, 0, text, sizeof text) == MF_ERROR_UNSUPPORTED);
        mf_device_close(old);
    }
}

int main(void)
{
    static const int architectures[] = {80, 90, 100};
    static const char *const names[] = {"opencl:0", "cuda:0"};
    static const uint32_t specials[] = {0x7f800000, 0xff800000, 0x7fc00000, 0x7fffffff,
                                        0xffffffff, 0x7ffff000, 0x7f802000, 0xff803fff};
    gpu_test_environment("off");
    if (!CHECK_MSG(mf_device_open("cpu", &on.reference) == MF_OK, "%s", mf_error()))
        return check_done("test_gpu_product");
    for (int a = EVERY > 1 ? 2 : 0; a < 3; a++)
        check_compiled(architectures[a]);
    for (int d = 0; d < 2; d++) {
        if (mf_device_open(names[d], &on.device) != MF_OK) {
            check_skip(names[d], mf_error());
            continue;
        }
        check_mistakes();
        check_exact();
        check_near();
        for (int s = 0; s < 2; s++)
            for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
                check_special(s ? "product:tf32:64:64:1" : "product:full:64:64:1", specials[i]);
        mf_device_close(on.device);
    }
    mf_device_close(on.reference);
    return check_done("test_gpu_product");
}
