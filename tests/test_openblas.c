/* Solver openblas: the products it takes, and those it must not take; skipped where there is no OpenBLAS. */
#include <float.h>
#include <math.h>
#include <pthread.h>

#include "check.h"
#include "modefold.h"

enum { MOST = 40, THREADS = 8, CALLS = 50 };

static double a64[3 * MOST * MOST], b64[3 * MOST * MOST], o64[3 * MOST * MOST];
static float a32[3 * MOST * MOST], b32[3 * MOST * MOST], o32[3 * MOST * MOST];
static uint64_t seed = 1;

static int64_t random_below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

static mf_status execute(mf_plan *plan, const DLTensor *in, const DLTensor *out)
{
    const void *from[] = {in[0].data, in[1].data};
    void *to[] = {out->data};
    return mf_plan_execute(plan, from, to, NULL);
}

static void fill(void)
{
    for (int i = 0; i < 3 * MOST * MOST; i++) {
        a64[i] = a32[i] = (float)random_below(2001) / 1000 - 1;
        b64[i] = b32[i] = (float)random_below(2001) / 1000 - 1;
    }
}

static DLTensor tensor(void *data, int is_double, const int64_t *shape, const int64_t *strides)
{
    DLTensor t = mf_tensor(data, is_double ? MF_F64 : MF_F32, 3, shape);
    t.strides = (int64_t *)strides;
    return t;
}

/* Strides of a batch of matrices, stored by rows or by columns, with some room after each of these. */
static void matrix(int64_t rows, int64_t columns, int by_columns, int64_t *strides)
{
    const int64_t pitch = (by_columns ? rows : columns) + random_below(3);
    strides[0] = MOST * MOST;
    strides[1] = by_columns ? 1 : pitch;
    strides[2] = by_columns ? pitch : 1;
}

/* Within (k + 1) units in the last place of the sum of the terms' magnitudes. */
static void check_product(int is_double, const int64_t *size, int64_t as[3], int64_t bs[3], int64_t os[3])
{
    int wrong = 0;
    for (int64_t p = 0; p < size[0]; p++)
        for (int64_t i = 0; i < size[1]; i++)
            for (int64_t j = 0; j < size[3]; j++) {
                double sum = 0, bound = 0;
                for (int64_t k = 0; k < size[2]; k++) {
                    const double term = a64[p * as[0] + i * as[1] + k * as[2]] * b64[p * bs[0] + k * bs[1] + j * bs[2]];
                    sum += term;
                    bound += fabs(term);
                }
                bound *= (double)(size[2] + 1) * (is_double ? DBL_EPSILON : (double)FLT_EPSILON);
                const int64_t at = p * os[0] + i * os[1] + j * os[2];
                wrong += !(fabs((is_double ? o64[at] : (double)o32[at]) - sum) <= bound);
            }
    CHECK_MSG(wrong == 0, "%d of the outputs are wrong: %lld x %lld x %lld x %lld", wrong, (long long)size[0],
              (long long)size[1], (long long)size[2], (long long)size[3]);
}

static void test_products(mf_device *device)
{
    const mf_options options = {.solver = "openblas"};
    for (int round = 0; round < 300; round++) {
        const int is_double = round % 2;
        const int64_t size[] = {1 + random_below(3), 2 + random_below(MOST - 5), 2 + random_below(MOST - 5),
                                2 + random_below(MOST - 5)};
        int64_t as[3], bs[3], os[3];
        matrix(size[1], size[2], (int)random_below(2), as);
        matrix(size[2], size[3], (int)random_below(2), bs);
        matrix(size[1], size[3], (int)random_below(2), os);
        fill();
        DLTensor in[] = {tensor(is_double ? (void *)a64 : a32, is_double, (int64_t[]){size[0], size[1], size[2]}, as),
                         tensor(is_double ? (void *)b64 : b32, is_double, (int64_t[]){size[0], size[2], size[3]}, bs)};
        DLTensor out = tensor(is_double ? (void *)o64 : o32, is_double, (int64_t[]){size[0], size[1], size[3]}, os);
        mf_plan *plan;
        if (CHECK_MSG(mf_plan_create(device, "bik,bkj->bij", "sum(a*b)", in, &out, &options, &plan) == MF_OK, "%s",
                      mf_error()))
            CHECK(execute(plan, in, &out) == MF_OK);
        mf_plan_destroy(plan);
        check_product(is_double, size, as, bs, os);
    }
}

/* What looks like a product of matrices and is none. */
static void test_refused(mf_device *device)
{
    static const char *const cases[][2] = {
        {"ik,kj->ij", "sum(a*b*2)"}, {"ik,kj->ij", "sum(a*b)+1"},   {"ik,kj->ij", "sum(a+b)"},
        {"ik,kj->ij", "mean(a*b)"},  {"ik,kj->ij", "max(a*b)"},     {"ik,kj->ij", "sum(a*b*a)"},
        {"ik,kj->ij", "-sum(a*b)"},  {"ik,ij->ij", "sum(a*b)"},     {"ik,kj->i", "sum(a*b)"},
        {"ik,kj->ij", "sum(a*a*b)"}, {"ik,kj->ij", "sum(a*abs(b))"}};
    const int64_t square[] = {8, 8}, row[] = {8};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const mf_options options = {.solver = "openblas"};
        DLTensor in[] = {mf_tensor(a32, MF_F32, 2, square), mf_tensor(b32, MF_F32, 2, square)};
        DLTensor out = mf_tensor(o32, MF_F32, 2, square);
        if (cases[i][0][strlen(cases[i][0]) - 2] == '>')
            out = mf_tensor(o32, MF_F32, 1, row);
        mf_plan *plan = NULL;
        CHECK_MSG(mf_plan_create(device, cases[i][0], cases[i][1], in, &out, &options, &plan) == MF_ERROR_UNSUPPORTED,
                  "%s %s: %s", cases[i][0], cases[i][1], mf_error());
        mf_plan_destroy(plan);
    }
    const mf_options options = {.solver = "openblas"};
    DLTensor in[] = {mf_tensor(a64, MF_I64, 2, square), mf_tensor(b64, MF_I64, 2, square)};
    DLTensor out = mf_tensor(o64, MF_I64, 2, square);
    mf_plan *plan = NULL;
    CHECK(mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_ERROR_UNSUPPORTED);
    mf_plan_destroy(plan);
}

/* Plans of different numbers of threads, with and without copies, each executed by two callers at the same time, give
 * what they give alone. */
struct caller {
    mf_plan *plan;
    int stride;
    float alone[MOST * MOST], out[MOST * MOST];
    int different;
};

static void tensors(const struct caller *c, float *out, int64_t strides[2], DLTensor in[2], DLTensor *to)
{
    static const int64_t square[] = {MOST, MOST};
    strides[0] = MOST * c->stride;
    strides[1] = c->stride;
    in[0] = mf_tensor(a32, MF_F32, 2, square);
    in[1] = mf_tensor(b32, MF_F32, 2, square);
    in[0].strides = in[1].strides = strides;
    *to = mf_tensor(out, MF_F32, 2, square);
}

static void *call(void *context)
{
    struct caller *c = context;
    int64_t strides[2];
    DLTensor in[2], out;
    tensors(c, c->out, strides, in, &out);
    for (int i = 0; i < CALLS; i++) {
        c->different += execute(c->plan, in, &out) != MF_OK;
        c->different += memcmp(c->out, c->alone, sizeof c->out) != 0;
    }
    return NULL;
}

static void test_callers(mf_device *device)
{
    static struct caller caller[THREADS];
    pthread_t thread[THREADS];
    fill();
    for (int t = 0; t < THREADS; t++) {
        const mf_options options = {.solver = "openblas", .threads = 1 + t % 2};
        struct caller *c = &caller[t];
        int64_t strides[2];
        DLTensor in[2], out;
        c->stride = 1 + t / 2 % 2;
        tensors(c, c->alone, strides, in, &out);
        if (t < THREADS / 2)
            CHECK(mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &c->plan) == MF_OK);
        else
            c->plan = caller[t - THREADS / 2].plan;
        CHECK(execute(c->plan, in, &out) == MF_OK);
    }
    for (int t = 0; t < THREADS; t++)
        CHECK(pthread_create(&thread[t], NULL, call, &caller[t]) == 0);
    for (int t = 0; t < THREADS; t++) {
        pthread_join(thread[t], NULL);
        CHECK(caller[t].different == 0);
    }
    for (int t = 0; t < THREADS / 2; t++)
        mf_plan_destroy(caller[t].plan);
}

int main(void)
{
    mf_device *device;
    if (!CHECK(mf_device_open("cpu", &device) == MF_OK))
        return check_done("test_openblas");
    test_refused(device);
    const int64_t square[] = {8, 8};
    const DLTensor in[] = {mf_tensor(a32, MF_F32, 2, square), mf_tensor(b32, MF_F32, 2, square)};
    DLTensor out = mf_tensor(o32, MF_F32, 2, square);
    const mf_options options = {.solver = "openblas"};
    mf_plan *plan = NULL;
    mf_status status = mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan);
    mf_plan_destroy(plan);
    if (status == MF_ERROR_DEVICE) {
        CHECK(strstr(mf_error(), "libopenblas") != NULL);
        check_skip("products by OpenBLAS", mf_error());
    } else {
        test_products(device);
        test_callers(device);
    }
    mf_device_close(device);
    return check_done("test_openblas");
}
