/* Solver contract against the reference, bit for bit: every length at which the order of terms changes its shape, every
 * edge of a tile, special values, threads; and which folds it takes. */
#include "check.h"

#include <math.h>

#include "modefold.h"

enum { MOST = 1 << 18 };

static float a[MOST], b[MOST], got[MOST], expected[MOST];

static void fill(unsigned seed)
{
    for (int i = 0; i < MOST; i++) {
        seed = seed * 1103515245u + 12345u;
        a[i] = (float)((int)(seed >> 8) % 20001 - 10000) / 1000;
        b[i] = (float)((int)(seed >> 12) % 20001 - 10000) / 1000;
    }
}

static mf_status run(mf_device *device, const char *solver, const char *expression, int64_t m, int64_t n, int64_t k,
                     float *out)
{
    const int64_t as[] = {m, k}, bs[] = {k, n}, os[] = {m, n};
    DLTensor in[2] = {mf_tensor(a, MF_F32, 2, as), mf_tensor(b, MF_F32, 2, bs)}, o = mf_tensor(out, MF_F32, 2, os);
    mf_options options = {solver, 0, 0};
    mf_plan *plan = NULL;
    mf_status status = mf_plan_create(device, "ik,kj->ij", expression, in, &o, &options, &plan);
    if (status == MF_OK) {
        const void *from[] = {a, b};
        void *to[] = {out};
        status = mf_plan_execute(plan, from, to, NULL);
    }
    mf_plan_destroy(plan);
    return status;
}

static void compare_with(mf_device *device, const char *solver, const char *expression, int64_t m, int64_t n, int64_t k)
{
    CHECK(run(device, "reference", expression, m, n, k, expected) == MF_OK);
    memset(got, 0xee, sizeof got);
    CHECK_MSG(run(device, solver, expression, m, n, k, got) == MF_OK, "%s: %s", expression, mf_error());
    CHECK_MSG(!memcmp(got, expected, (size_t)(m * n) * sizeof *got), "%s of %lld x %lld, %lld terms", expression,
              (long long)m, (long long)n, (long long)k);
}

static void compare(mf_device *device, const char *expression, int64_t m, int64_t n, int64_t k)
{
    compare_with(device, "contract", expression, m, n, k);
}

static void test_lengths(mf_device *device)
{
    static const int64_t lengths[] = {1,    2,    3,    31,   32,   33,   63,   64,    65,   127,  128,
                                      129,  130,  191,  192,  255,  256,  257,  383,   384,  511,  512,
                                      513,  640,  1023, 1024, 1025, 2047, 2048, 2049,  4094, 4095, 4096,
                                      4097, 4223, 4224, 4225, 8191, 8192, 8193, 12288, 12289};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        compare(device, "sum(a*b)", 9, 17, lengths[i]);
        compare(device, "max(a+b)", 9, 17, lengths[i]);
    }
    compare(device, "prod(a*b)", 2, 2, 300);
}

static void test_edges(mf_device *device)
{
    for (int64_t m = 2; m <= 26; m += 3)
        for (int64_t n = 2; n <= 70; n += 11) {
            compare(device, "sum(a*b)", m, n, 70);
            compare(device, "min(max(a,b))", m, n, 70);
        }
    compare(device, "sum(abs(a-b))", 200, 300, 20); /* several blocks of outputs */
    compare(device, "sum((a-b)**2)", 300, 13, 140);
}

/* Several reducers: each in its own order, the best and its number beside sums; blocks of outputs, threads. */
static void test_several(mf_device *device)
{
    static const int64_t lengths[] = {1, 2, 33, 128, 129, 255, 256, 257, 4096, 4097, 8193};
    static const char *const expressions[] = {"sum(a*b)-max(a+b)", "min(a-b)*argmin(a-b)+sum(a*b)",
                                              "max(a*b)+argmax(a*b)+min(a*b)*sum(abs(a-b))"};
    for (int e = 0; e < 3; e++) {
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
            compare_with(device, "contract-several", expressions[e], 9, 17, lengths[i]);
        compare_with(device, "contract-several", expressions[e], 300, 13, 140);
        compare_with(device, "contract-several", expressions[e], 3, 1100, 50);
    }
    CHECK(run(device, "contract-several", "sum(a*b)+mean(a*b)", 9, 17, 30, got) == MF_ERROR_UNSUPPORTED);
    CHECK(run(device, "contract-several", "sum(a*b)+sum(a+b)+max(a*b)+min(a*b)+max(a+b)", 9, 17, 30, got) ==
          MF_ERROR_UNSUPPORTED); /* more than four passes */
    CHECK(run(device, "contract-several", "sum(a*b)+sum(a)", 9, 17, 30, got) == MF_ERROR_UNSUPPORTED);
}

static void test_special(mf_device *device)
{
    static const float special[] = {INFINITY, -INFINITY, NAN, 0, -0.0F, 1e-40F, 3e38F};
    static const char *const expressions[] = {"max(a+b)",      "min(a-b)", "max(a*b)",
                                              "max(min(a,b))", "sum(a*b)", "max(abs(a-b))"};
    for (int e = 0; e < 6; e++)
        for (int s = 0; s < 7; s++) {
            fill((unsigned)(7 * e + s));
            for (int i = 0; i < 12; i++) {
                a[(i * 7919 + s) % 1000] = special[s];
                b[(i * 104729 + e) % 1000] = special[(s + i) % 7];
            }
            compare(device, expressions[e], 10, 20, 50);
            compare_with(device, "contract-several", "min(a+b)+max(a+b)*argmax(a+b)", 10, 20, 50);
        }
}

static void test_choice(mf_device *device)
{
    static const struct {
        const char *modes, *expression;
        int is_contract;
    } cases[] = {{"ik,kj->ij", "sum(a*b)", 1},      {"ik,kj->ij", "sum((a-b)^2)", 1},
                 {"ik,jk->ij", "sum((a-b)**2)", 1}, {"ik,kj->ji", "mean(a*exp(b))", 1},
                 {"ik,kj->ij", "sum(a/b)", 0},      {"ik,kj->ij", "sum(a*b); max(a+b)", 2},
                 {"ik,ik->i", "sum(a*b)", 0},       {"ik,kj->ij", "logsumexp(a+b)", 0}};
    const int64_t shape[] = {16, 16};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        DLTensor in[2] = {mf_tensor(a, MF_F32, 2, shape), mf_tensor(b, MF_F32, 2, shape)};
        DLTensor out[2] = {mf_tensor(got, MF_F32, strlen(cases[c].modes) == 8 ? 1 : 2, shape), in[0]};
        out[1].data = expected;
        mf_plan *plan = NULL;
        CHECK(mf_plan_create(device, cases[c].modes, cases[c].expression, in, out, NULL, &plan) == MF_OK);
        CHECK_MSG((strcmp(mf_plan_solver(plan), "contract") == 0) == (cases[c].is_contract == 1) &&
                      (strcmp(mf_plan_solver(plan), "contract-several") == 0) == (cases[c].is_contract == 2),
                  "%s %s takes solver %s", cases[c].modes, cases[c].expression, mf_plan_solver(plan));
        mf_plan_destroy(plan);
    }
}

static void test_threads(void)
{
    fill(5);
    for (int threads = 1; threads <= 7; threads += 2) {
        char name[16];
        mf_device *device = NULL;
        snprintf(name, sizeof name, "cpu:%d", threads);
        if (!CHECK(mf_device_open(name, &device) == MF_OK))
            continue;
        CHECK(run(device, "contract", "sum(a*b)", 100, 100, 600, threads == 1 ? expected : got) == MF_OK);
        CHECK(threads == 1 || !memcmp(got, expected, 10000 * sizeof *got));
        compare_with(device, "contract-several", "sum(a*b)-max(a+b)*argmax(a+b)", 100, 90, 300);
        CHECK(run(device, "contract", "sum(a*b)", 100, 100, 600, expected) == MF_OK);
        mf_device_close(device);
    }
}

int main(void)
{
    mf_device *device = NULL;
    fill(1);
    if (CHECK(mf_device_open("cpu", &device) == MF_OK)) {
        test_lengths(device);
        test_edges(device);
        test_choice(device);
        test_several(device);
        test_special(device);
        test_threads();
        mf_device_close(device);
    }
    return check_done("test_contraction");
}
