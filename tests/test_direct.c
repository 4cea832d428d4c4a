/* Solver direct: sums of products in any order, against sums in double within the proven bound, on every instruction
 * set; and what the flag MF_ORDER_FREE does where the solver does not apply. */
#include <float.h>
#include <math.h>

#include <modefold.h>

#include "check.h"

enum { ROOM = 1 << 21, MOST_RANK = 6 };

static float a[ROOM], b[ROOM], c[4096], out[ROOM];

struct test {
    const char *modes, *expression;
    int64_t a[MOST_RANK], b[MOST_RANK], out[MOST_RANK];
    int64_t terms;
};

/* One convolution in two forms, products of matrices, batches; runs and blocks of terms cut, tiles of all sizes. */
static const struct test tests[] = {
    {"(h+i)(w+j)c,ijcp,p->hwp", "leaky(sum(a*b)+c)", {15, 15, 40}, {3, 3, 40, 32}, {13, 13, 32}, 360},
    {"(h+i)(w+j)c,oijcp,op->hwop", "relu(sum(a*b)+c)", {9, 34, 20}, {3, 3, 3, 20, 32}, {7, 32, 3, 32}, 180},
    {"n(2h+i)(2w+j)c,ijcp,p->nhwp", "leaky(sum(a*b)+c,0.25)", {2, 17, 21, 5}, {5, 5, 5, 16}, {2, 7, 9, 16}, 125},
    {"ik,kj->ij", "sum(a*b)", {29, 3000}, {3000, 48}, {29, 48}, 3000},
    {"ik,kj,j->ij", "c+sum(a*b)", {14, 9}, {9, 96}, {14, 96}, 9},
    {"bik,bkj,bj->bij", "sum(a*b)+c", {3, 5, 70}, {3, 70, 32}, {3, 5, 32}, 70},
    {"(h+i)(w+j)gc,gijcp,gp->hwgp", "sum(a*b)+c", {8, 9, 3, 7}, {3, 3, 3, 7, 16}, {6, 7, 3, 16}, 63},
};

static int rank_of(const int64_t *shape)
{
    int rank = 0;
    while (rank < MOST_RANK && shape[rank])
        rank++;
    return rank;
}

/* The bound, for every output the sum of |a b| that goes with it: found by the same fold in double, of magnitudes. */
static void check_error(const struct test *test, const DLTensor *in, mf_device *device, const char *what)
{
    static double wide[3][ROOM], sum[ROOM], size[ROOM];
    const float *const from[3] = {a, b, c};
    char exact[64], *inner;
    DLTensor input[3],
        output[2] = {mf_tensor(sum, MF_F64, in[3].ndim, in[3].shape), mf_tensor(size, MF_F64, in[3].ndim, in[3].shape)};
    const int three = strstr(test->expression, "c") != NULL;
    int64_t outputs = 1;
    double worst = 0;
    for (int i = 0; i < 2 + three; i++) {
        int64_t count = 1;
        for (int d = 0; d < in[i].ndim; d++)
            count *= in[i].shape[d];
        for (int64_t e = 0; e < count; e++)
            wide[i][e] = (double)from[i][e];
        input[i] = mf_tensor(wide[i], MF_F64, in[i].ndim, in[i].shape);
    }
    for (int d = 0; d < in[3].ndim; d++)
        outputs *= in[3].shape[d];
    snprintf(exact, sizeof exact, "%s; sum(abs(a*b))%s", test->expression, three ? "+abs(c)" : "");
    inner = strstr(exact, "leaky(sum(a*b)+c)"); /* double's own 0.1 is another slope */
    if (inner)
        snprintf(exact, sizeof exact, "leaky(sum(a*b)+c,%.17g); sum(abs(a*b))+abs(c)", (double)0.1f);
    CHECK_MSG(mf_fold(device, test->modes, exact, input, output) == MF_OK, "%s: %s", exact, mf_error());
    for (int64_t o = 0; o < outputs; o++)
        worst = fmax(worst, fabs((double)out[o] - sum[o]) / (size[o] * FLT_EPSILON / 2));
    CHECK_MSG(worst <= (double)test->terms + 3, "%s, %s: %.1f roundings, more than %lld", what, test->modes, worst,
              (long long)test->terms + 3);
}

static void check_test(const struct test *test, mf_device *device, const char *isa)
{
    const int rank = rank_of(test->out), first = !strcmp(test->modes, "bik,bkj,bj->bij") ? 0 : -1;
    int64_t bias_shape[2] = {first == 0 ? test->out[0] : test->out[rank - 2], test->out[rank - 1]};
    const int bias_rank = strstr(test->modes, ",op") || strstr(test->modes, ",gp") || first == 0 ? 2 : 1;
    DLTensor in[4] = {mf_tensor(a, MF_F32, rank_of(test->a), test->a), mf_tensor(b, MF_F32, rank_of(test->b), test->b),
                      mf_tensor(c, MF_F32, bias_rank, bias_shape + 2 - bias_rank),
                      mf_tensor(out, MF_F32, rank, test->out)};
    mf_plan *plan = NULL;
    const void *const from[3] = {a, b, c};
    void *const to[1] = {out};
    memset(out, 0xff, sizeof out);
    if (!CHECK_MSG(mf_plan_create(device, test->modes, test->expression, in, &in[3],
                                  &(mf_options){NULL, MF_ORDER_FREE, 0}, &plan) == MF_OK,
                   "%s: %s", test->modes, mf_error()))
        return;
    CHECK_MSG(!strcmp(mf_plan_solver(plan), "direct") && strstr(mf_plan_describe(plan), "order: free"), "%s: %s",
              test->modes, mf_plan_describe(plan));
    CHECK(mf_plan_execute(plan, from, to, NULL) == MF_OK);
    mf_plan_destroy(plan);
    check_error(test, in, device, isa);
}

/* The flag allows, it does not ask: other folds are what they are without it. */
static void check_flag(mf_device *cpu)
{
    static const struct {
        const char *modes, *expression;
        int64_t b[2];
    } other[] = {
        {"ik,kj->ij", "sum(a*b)", {20, 7}},  /* no whole vectors of columns */
        {"ik,kj->ij", "max(a*b)", {20, 32}}, /* no sum */
        {"ik,kj->ij", "sum(a+b)", {20, 32}}, /* no product */
        {"ki,kj->ij", "sum(a*b)", {10, 32}}, /* rows do not run along their terms */
        {"ik,kj->ij", "sigmoid(sum(a*b))", {20, 32}},
        {"(i+u-1)k,uj->ikj", "sum(a*b)", {3, 32}}, /* a window that leaves its tensor */
    };
    for (size_t t = 0; t < sizeof other / sizeof other[0]; t++) {
        const int64_t a_shape[2] = {10, 20};
        DLTensor in[2] = {mf_tensor(a, MF_F32, 2, a_shape), mf_tensor(b, MF_F32, 2, other[t].b)}, to;
        int64_t shape[MF_MAX_RANK];
        int rank;
        mf_plan *plan = NULL;
        CHECK(mf_fold_shape(other[t].modes, 2, in, &rank, shape) == MF_OK);
        to = mf_tensor(out, MF_F32, rank, shape);
        CHECK_MSG(mf_plan_create(cpu, other[t].modes, other[t].expression, in, &to,
                                 &(mf_options){NULL, MF_ORDER_FREE, 0}, &plan) == MF_OK &&
                      strcmp(mf_plan_solver(plan), "direct") != 0,
                  "%s %s", other[t].modes, other[t].expression);
        mf_plan_destroy(plan);
        CHECK(mf_plan_create(cpu, other[t].modes, other[t].expression, in, &to, &(mf_options){"direct", 0, 0}, &plan) ==
              MF_ERROR_UNSUPPORTED);
        CHECK(mf_plan_create(cpu, other[t].modes, other[t].expression, in, &to,
                             &(mf_options){NULL, MF_ORDER_FREE | MF_ORDER_CONTRACT, 0}, &plan) == MF_ERROR_ARGUMENT);
    }
}

int main(void)
{
    static const char *const isas[] = {"avx512", "avx2", "sse2", "neon", "scalar"};
    unsigned state = 7;
    mf_device *device;
    for (int i = 0; i < ROOM; i++) {
        state = state * 1664525u + 1013904223u;
        a[i] = (float)(state >> 8) / 8388608.0f - 1;
        state = state * 1664525u + 1013904223u;
        b[i] = (float)(state >> 8) / 8388608.0f - 1;
        c[i % 4096] = a[i] * 3;
    }
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        setenv("MODEFOLD_ISA", isas[i], 1);
        if (mf_device_open("cpu:2", &device) != MF_OK) {
            check_skip(isas[i], "this build or processor does not have it");
            continue;
        }
        for (size_t t = 0; t < sizeof tests / sizeof tests[0]; t++)
            check_test(&tests[t], device, isas[i]);
        mf_device_close(device);
    }
    unsetenv("MODEFOLD_ISA");
    if (CHECK(mf_device_open("cpu", &device) == MF_OK))
        check_flag(device);
    mf_device_close(device);
    return check_done("direct");
}
