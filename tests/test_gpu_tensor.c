/* Solver tensor-sum: every form, chain, block and type. On "opencl:0" its instruction is emulated by ordinary
 * arithmetic; there sums of small integers, which are exact in any order, are compared with the reference's bits, and
 * those of normal numbers with a bound. Every kernel is compiled for sm_80, sm_90 and sm_100, without spills. */
#include <math.h>

#include "gpu_line.h"
#include "lists.h"

static struct gpu_line on_line = {.excuse = "runs this kernel with 1 to" /* too many registers for the block */};

/* All forms, chains from 1 to 5, blocks of 32 to 1024 threads; whole chains and parts of one, of a piece, one output
 * and several, rows that are not aligned, a finish part. */
static void check_exact(void)
{
    static const char *const lines[] = {
        "i-> | sum(a) | a=f16[70000] o=f32[] | data=integers solver=tensor-sum:single",
        "i-> | sum(a) | a=f16[70001]+1 o=f32[] | data=integers solver=tensor-sum:single:4:128:1",
        "i-> | sum(a) | a=bf16[30000] o=f32[] | data=integers solver=tensor-sum:single:1:32:2",
        "ij->i | sum(a)*2+1 | a=bf16[5,9000] o=f32[5] | data=integers solver=tensor-sum:single:2:64",
        "ij->i | mean(a) | a=f16[5,9003] o=f32[5] | data=integers solver=tensor-sum:single:3:1024",
        "i-> | sum(a) | a=i8[50000] o=i64[] | solver=tensor-sum:single:5:256",
        "i-> | sum(a) | a=f8e4m3[20000] o=f32[] | data=integers solver=tensor-sum:single:2:32",
        "i-> | sum(a) | a=f8e5m2[20000] o=f32[] | data=integers solver=tensor-sum:single:2:32",
        "i-> | sum(a) | a=f16[2] o=f32[] | data=integers solver=tensor-sum",
        "i-> | sum(a) | a=f16[60000] o=f32[] | data=integers solver=tensor-sum:split:1:128:3",
        "i-> | sum(a) | a=i8[60007] o=i64[] | solver=tensor-sum:split:2:64",
        "i-> | sum(a) | a=f16[60000] o=f32[] | data=integers solver=tensor-sum:plain:4:128",
        "i-> | sum(a) | a=f8e4m3[6000] o=f32[] | data=integers solver=tensor-sum:plain:1:32:1",
        "i-> | sum(a) | a=f16[66000] o=f32[] | data=ties solver=tensor-sum:recurrence",
        "i-> | sum(a) | a=f16[40001] o=f32[] | data=ties solver=tensor-sum:recurrence:1:256",
        "i-> | sum(a) | a=bf16[9000] o=f32[] | data=ties solver=tensor-sum:recurrence:2:64",
        "i-> | sum(a) | a=f16[100] o=f16[] | data=ties solver=tensor-sum:recurrence:3:32",
        "ij->i | sum(a) | a=f16[333,16] o=f32[333] | data=integers solver=tensor-sum:rows",
        "ij->i | sum(a) | a=bf16[100,100] o=f32[100] | data=integers solver=tensor-sum:rows:1:32",
        "ij->i | sum(a) | a=f16[70,512] o=f16[70] | data=integers solver=tensor-sum",
        "ij->i | sum(a) | a=f16[70,33] o=f32[70] | data=integers solver=tensor-sum:rows",
        "hij->ih | sum(a) | a=i8[3,40,64] o=i64[40,3] | solver=tensor-sum:rows",
        "ij->i | sum(a) | a=f8e5m2[40,130] o=f32[40] | data=integers solver=tensor-sum:rows",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        gpu_line_check(&on_line, lines[i], NULL);
}

/* Normal numbers: 16 terms and what was there before are added one after the other in a product, so an element passes
 * 17 additions for each of the chain's, and the chains, the columns, the warps and the blocks; sum |a| is below n. */
static void check_near(void)
{
    static struct problem_line line;
    struct problem_memory memory;
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    if (!gpu_line_run(&on_line, "i-> | sum(a) | a=f16[70000] o=f32[] | data=normal solver=tensor-sum:single:4:128",
                      NULL, &line, &memory))
        return;
    problem_pointers(&line, &memory, in, out);
    const struct problem_block *block = &memory.block[MF_MAX_INPUTS];
    float expected;
    problem_guards_open(block);
    memcpy(&expected, block->expected + ((unsigned char *)out[0] - block->base), sizeof expected);
    problem_guards_close(block);
    const float got = *(const float *)out[0];
    CHECK_MSG(fabsf(got - expected) <= (17 * 4 + 70) * 0x1p-24f * 70000 && isfinite(got), "%.9g, not %.9g", (double)got,
              (double)expected);
    problem_memory_free(&memory);
}

static mf_status plan_in(mf_device *on, uint32_t flags, const char *solver, const char *type, int ndim,
                         const int64_t *shape, char *text, size_t size)
{
    DLTensor in = mf_tensor(NULL, MF_F32, ndim, shape), out = mf_tensor(NULL, MF_F32, ndim - 1, shape);
    mf_options options = {.solver = solver, .flags = flags};
    mf_plan *made = NULL;
    list_type_named(type, &in.dtype);
    in.device.device_type = out.device.device_type = (DLDeviceType)mf_device_kind(on);
    mf_status status = mf_plan_create(on, ndim == 1 ? "i->" : "ij->i", "sum(a)", &in, &out, &options, &made);
    snprintf(text, size, "%s", status == MF_OK ? mf_plan_describe(made) : mf_error());
    mf_plan_destroy(made);
    return status;
}

static mf_status plan(mf_device *on, const char *solver, const char *type, int ndim, const int64_t *shape, char *text,
                      size_t size)
{
    return plan_in(on, 0, solver, type, ndim, shape, text, size);
}

/* Where any order will do: great sums, and rows of 8-bit floats; on CUDA. */
static void check_choice(mf_device *on, int wanted)
{
    static const struct {
        const char *type;
        int64_t rows, length;
        int chosen;
    } tests[] = {{"f16", 1, 1 << 20, 1},  {"bf16", 1, 1 << 24, 1}, {"f16", 1, 1 << 16, 0},  {"f16", 1 << 12, 256, 0},
                 {"f8e4m3", 300, 256, 1}, {"f8e5m2", 300, 128, 1}, {"f8e5m2", 300, 256, 0}, {"f8e4m3", 300, 16, 0},
                 {"i8", 1, 1 << 22, 1},   {"f32", 1, 1 << 22, 0}};
    char text[2048];
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        for (int free = 0; free < 2; free++) {
            const int64_t shape[2] = {tests[i].rows, tests[i].length};
            const int row = tests[i].rows == 1;
            if (CHECK_MSG(plan_in(on, free ? MF_ORDER_FREE : 0, NULL, tests[i].type, row ? 1 : 2, shape + row, text,
                                  sizeof text) == MF_OK,
                          "%s", text))
                CHECK_MSG((strstr(text, "solver tensor-sum") != NULL) == (free && wanted && tests[i].chosen),
                          "%lld rows of %lld %s, %s: %s", (long long)shape[0], (long long)shape[1], tests[i].type,
                          free ? "any order" : "the contract's", text);
        }
}

static void check_kernel(mf_device *on, const char *solver, const char *type)
{
    static const int64_t row[1] = {1 << 20}, rows[2] = {1 << 16, 64};
    char text[2048];
    const int two = strstr(solver, ":rows") != NULL;
    if (CHECK_MSG(plan(on, solver, type, two ? 2 : 1, two ? rows : row, text, sizeof text) == MF_OK, "%s of %s: %s",
                  solver, type, text))
        CHECK_MSG(strstr(text, " 0 spilled"), "%s of %s spills:\n%s", solver, type, text);
}

/* Chains of 1 to 5 and blocks of 32 to 1024 for f16 on sm_90; some of every form and type elsewhere. */
static void check_compiled(int architecture)
{
    static const char *const types[] = {"f16", "bf16", "i8", "f8e4m3", "f8e5m2"}, *const forms[] = {"single:4",
                                                                                                    "split:1:128:5",
                                                                                                    "plain:4", "rows",
                                                                                                    "recurrence:5:32"};
    char name[32], solver[64];
    mf_device *on;
    snprintf(name, sizeof name, "sm:%d", architecture);
    if (mf_device_open(name, &on) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    for (int f = 0; f < 5; f++)
        for (int t = 0; t < 5; t++)
            if (!(t > 1 && f == 4) && !(t > 2 && architecture < 89)) {
                snprintf(solver, sizeof solver, "tensor-sum:%s", forms[f]);
                check_kernel(on, solver, types[t]);
            }
    for (int chain = 1; architecture == 90 && chain <= 5; chain++)
        for (int block = 32; block <= 1024; block *= 2) {
            snprintf(solver, sizeof solver, "tensor-sum:single:%d:%d", chain, block);
            check_kernel(on, solver, "f16");
        }
    if (architecture == 90)
        check_choice(on, 1);
    gpu_test_keep_compiled(0);
    mf_device_close(on);
}

static void check_mistakes(void)
{
    static const struct {
        const char *solver, *type;
        mf_status status;
        const char *sentence;
    } tests[] = {
        {"tensor-sum:double", "f16", MF_ERROR_ARGUMENT, "solver tensor-sum has no form \"double\""},
        {"tensor-sum:single:6", "f16", MF_ERROR_ARGUMENT, "has no form \"single:6\""},
        {"tensor-sum:single:4:100", "f16", MF_ERROR_ARGUMENT, "has no form \"single:4:100\""},
        {"tensor-sum:split:1:128:11", "f16", MF_ERROR_ARGUMENT, "has no form \"split:1:128:11\""},
        {"tensor-sum:recurrence", "i8", MF_ERROR_UNSUPPORTED, "makes one sum of f16 or bf16 elements"},
        {"tensor-sum", "f32", MF_ERROR_UNSUPPORTED, "solver tensor-sum does not apply"},
    };
    static const int64_t shape[1] = {5000};
    char text[2048];
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        const mf_status status = plan(on_line.device, tests[i].solver, tests[i].type, 1, shape, text, sizeof text);
        CHECK_MSG(status == tests[i].status && strstr(text, tests[i].sentence), "%s: status %d, %s", tests[i].solver,
                  (int)status, text);
    }
    mf_device *old;
    if (mf_device_open("sm:80", &old) == MF_OK) {
        CHECK(plan(old, "tensor-sum", "f8e4m3", 1, shape, text, sizeof text) == MF_ERROR_UNSUPPORTED);
        mf_device_close(old);
    }
}

int main(void)
{
    static const int architectures[] = {80, 90, 100};
    gpu_test_environment("off");
    for (int a = 0; a < 3; a++)
        check_compiled(architectures[a]);
    if (mf_device_open("opencl:0", &on_line.device) != MF_OK) {
        check_skip("sums on opencl:0", mf_error());
        return check_done("test_gpu_tensor");
    }
    if (CHECK_MSG(mf_device_open("cpu", &on_line.reference) == MF_OK, "%s", mf_error())) {
        check_mistakes();
        check_choice(on_line.device, 0);
        check_exact();
        check_near();
    }
    mf_device_close(on_line.device);
    mf_device_close(on_line.reference);
    return check_done("test_gpu_tensor");
}
