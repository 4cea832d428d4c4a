/* Log-space products (solvers log-certified, log-exact) against plain double loops, on data where the unchecked trick
 * is right and on data where it is wrong; MODEFOLD_TABLE=1 prints the table of docs/numerics.md. */
#include "gpu_test.h"

#include <float.h>
#include <math.h>

#include "logspace_data.h"
#include "modefold.h"

enum { FLOATS_BOUND = 4 };

static float a32[ROWS * TERMS], b32[TERMS * COLUMNS], out32[ROWS * COLUMNS], again32[ROWS * COLUMNS];
static double a64[ROWS * TERMS], b64[TERMS * COLUMNS], out64[ROWS * COLUMNS];
static double expected[ROWS * COLUMNS], magnitude[ROWS * COLUMNS];

static void fill(int set)
{
    for (int i = 0; i < ROWS * TERMS; i++)
        a64[i] = a32[i] = (float)value(set, 0, i / TERMS, i % TERMS);
    for (int i = 0; i < TERMS * COLUMNS; i++)
        b64[i] = b32[i] = (float)value(set, 1, i % COLUMNS, i / COLUMNS);
}

/* The naive formula in double; magnitude: |a| + |b| of the greatest term. */
static void compute(void)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double most = -INFINITY, sum = 0, size = 0;
            for (int k = 0; k < TERMS; k++) {
                double x = a64[i * TERMS + k], y = b64[k * COLUMNS + j];
                if (most == most && !(x + y <= most)) { /* a NaN stays */
                    most = x + y;
                    size = fabs(x) + fabs(y);
                }
            }
            for (int k = 0; k < TERMS; k++)
                sum += exp(a64[i * TERMS + k] + b64[k * COLUMNS + j] - most);
            expected[i * COLUMNS + j] = isfinite(most) ? most + log(sum) : most;
            magnitude[i * COLUMNS + j] = isfinite(size) ? size : 0;
        }
}

/* In memory of the device; out: the last of the results. */
static mf_status execute(mf_device *device, const mf_plan *plan, const void *const *in, const int64_t *bytes, void *out,
                         int copies)
{
    void *memory[3] = {NULL, NULL, NULL};
    mf_status status = MF_OK;
    for (int i = 0; i < 3 && status == MF_OK; i++)
        status = mf_memory_create(device, bytes[i] * (i < 2 ? 1 : copies), &memory[i]);
    for (int i = 0; i < 2 && status == MF_OK; i++)
        status = mf_memory_write(device, memory[i], 0, in[i], bytes[i]);
    if (status == MF_OK)
        status = mf_plan_execute(plan, (const void *const *)memory, &memory[2], NULL);
    if (status == MF_OK)
        status = mf_memory_read(device, memory[2], bytes[2] * (copies - 1), out, bytes[2]);
    for (int i = 0; i < 3; i++)
        mf_memory_destroy(device, memory[i]);
    return status;
}

static DLTensor tensor_on(const mf_device *device, const void *data, mf_type type, const int64_t *shape,
                          int64_t *strides)
{
    DLTensor tensor = mf_tensor(data, type, 3, shape);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    tensor.strides = strides;
    return tensor;
}

/* How often the same product is computed in one call: a GPU takes other ways where there is much to do. */
static int copies = 1;

static mf_status plan_product(mf_device *device, const char *expression, const char *solver, mf_type type,
                              mf_plan **plan)
{
    const int64_t as[] = {copies, ROWS, TERMS}, bs[] = {copies, TERMS, COLUMNS}, os[] = {copies, ROWS, COLUMNS};
    int64_t a_strides[] = {0, TERMS, 1}, b_strides[] = {0, COLUMNS, 1};
    DLTensor in[2] = {tensor_on(device, NULL, type, as, a_strides), tensor_on(device, NULL, type, bs, b_strides)};
    DLTensor o = tensor_on(device, NULL, type, os, NULL);
    mf_options options = {solver, 0, 0};
    return mf_plan_create(device, "bik,bkj->bij", expression, in, &o, &options, plan);
}

static mf_status run(mf_device *device, const char *solver, mf_type type, const void *a, const void *b, void *out)
{
    const int64_t item = type == MF_F32 ? 4 : 8;
    const int64_t bytes[] = {ROWS * TERMS * item, TERMS * COLUMNS * item, ROWS * COLUMNS * item};
    const void *from[] = {a, b};
    mf_plan *plan = NULL;
    mf_status status = plan_product(device, "logsumexp(a+b)", solver, type, &plan);
    if (status == MF_OK)
        status = execute(device, plan, from, bytes, out, copies);
    mf_plan_destroy(plan);
    return status;
}

/* Outputs further off than the bound, and the greatest error in bounds. */
static int count_wrong(mf_type type, double *worst)
{
    const double unit = type == MF_F32 ? 0x1p-24 : 0x1p-53, floor = type == MF_F32 ? 1e-5 : 1e-13;
    int wrong = 0;
    *worst = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        double got = type == MF_F32 ? (double)out32[i] : out64[i], size = fabs(expected[i]);
        size = magnitude[i] > size || isinf(size) ? magnitude[i] : size;
        if (got == expected[i] || (got != got && expected[i] != expected[i]))
            continue;
        double error = fabs(got - expected[i]) / (floor + FLOATS_BOUND * unit * size);
        wrong += !(error <= 1);
        *worst = error > *worst || error != error ? error : *worst;
    }
    return wrong;
}

static void test_sets(mf_device *device, int on_gpu)
{
    static const char *const solvers[] = {"log-certified", "log-exact", "log-running", "log-two-pass", "log-fast"};
    int fast_is_wrong = 0, table = getenv("MODEFOLD_TABLE") != NULL;
    if (table)
        printf("on a %s\n", on_gpu ? "GPU" : "processor");
    for (int set = 0; set < SETS; set++) {
        fill(set);
        compute();
        for (int s = 0; s < 5; s++)
            for (int t = 0; t < 2; t++) {
                mf_type type = t ? MF_F64 : MF_F32;
                double worst;
                CHECK_MSG(run(device, solvers[s], type, t ? (void *)a64 : a32, t ? (void *)b64 : b32,
                              t ? (void *)out64 : out32) == MF_OK,
                          "%s", mf_error());
                int wrong = count_wrong(type, &worst);
                if (s < 4)
                    CHECK_MSG(!wrong, "%s, %s, %s: %d of %d outputs are wrong, at worst %g bounds", set_names[set],
                              solvers[s], t ? "f64" : "f32", wrong, ROWS * COLUMNS, worst);
                else if (!t)
                    fast_is_wrong += wrong > 0;
                if (table)
                    printf("| %s | %s | %s | %d of %d | %.2g |\n", set_names[set], solvers[s], t ? "f64" : "f32", wrong,
                           ROWS * COLUMNS, worst);
            }
    }
    CHECK(fast_is_wrong >= 2); /* else these data show nothing */
}

/* Infinities and NaNs anywhere, whole rows and columns of them. */
static void test_special(mf_device *device)
{
    static const float special[] = {INFINITY, -INFINITY, NAN, 3e38F, -3e38F, 0, 1e-40F};
    for (int round = 0; round < 40; round++) {
        fill(0);
        for (int q = 0; q < 12; q++) {
            float x = special[(int)(uniform() * 7)];
            sow(x, q % 2 ? a32 : NULL, b32);
        }
        for (int i = 0; i < ROWS * TERMS; i++)
            a64[i] = a32[i];
        for (int i = 0; i < TERMS * COLUMNS; i++)
            b64[i] = b32[i];
        compute();
        for (int s = 0; s < 4; s++) {
            static const char *const solvers[] = {"log-certified", "log-exact", "log-running", "log-two-pass"};
            double worst;
            CHECK(run(device, solvers[s], MF_F32, a32, b32, out32) == MF_OK);
            for (int i = 0; i < ROWS * COLUMNS; i++) /* sums of floats overflow where those of doubles do not */
                if (fabs(expected[i]) > FLT_MAX)
                    expected[i] = expected[i] > 0 ? INFINITY : -INFINITY;
            int wrong = count_wrong(MF_F32, &worst);
            CHECK_MSG(!wrong, "special values, round %d: %d outputs are wrong, at worst %g bounds", round, wrong,
                      worst);
        }
    }
}

/* The same bits with any number of threads, which changes blocks: where few outputs are computed again, and many. */
static void test_repeats(void)
{
    for (int set = 0; set < SETS; set++) {
        fill(set);
        for (int threads = 1; threads <= 6; threads++) {
            char name[16];
            mf_device *device = NULL;
            snprintf(name, sizeof name, "cpu:%d", threads);
            if (!CHECK(mf_device_open(name, &device) == MF_OK))
                continue;
            CHECK(run(device, "log-certified", MF_F32, a32, b32, threads == 1 ? again32 : out32) == MF_OK);
            CHECK_MSG(threads == 1 || !memcmp(out32, again32, sizeof out32), "%s with %d threads", set_names[set],
                      threads);
            mf_device_close(device);
        }
    }
}

/* Whether log-certified multiplies for so many outputs, or they are too few. */
static int makes_products(mf_device *device, int64_t rows, int64_t columns)
{
    const int64_t as[] = {rows, TERMS}, bs[] = {TERMS, columns}, os[] = {rows, columns};
    const mf_options options = {"log-certified", 0, 0};
    DLTensor in[2] = {mf_tensor(NULL, MF_F32, 2, as), mf_tensor(NULL, MF_F32, 2, bs)},
             o = mf_tensor(NULL, MF_F32, 2, os);
    mf_plan *plan = NULL;
    in[0].device.device_type = in[1].device.device_type = o.device.device_type = (DLDeviceType)mf_device_kind(device);
    CHECK(mf_plan_create(device, "ik,kj->ij", "logsumexp(a+b)", in, &o, &options, &plan) == MF_OK);
    const int products =
        plan && (mf_device_kind(device) == kDLCPU || strstr(mf_plan_describe(plan), "exponentials in"));
    mf_plan_destroy(plan);
    return products;
}

/* Which way outputs took, over all executions; a plan of something else counts nothing. On a large
 * GPU with more terms than are computed exactly because they are few. */
static void test_tiers(mf_device *device)
{
    static const char *const solvers[] = {"log-certified", "log-exact", "log-fast", "rows"};
    const int gpu = mf_device_kind(device) != 1, many = !makes_products(device, ROWS, COLUMNS);
    const int64_t m = many ? 640 : ROWS, n = many ? 512 : COLUMNS, k = many ? 512 : TERMS;
    const int64_t as[] = {m, k}, bs[] = {k, n}, os[] = {m, n}, bytes[3] = {m * k * 4, k * n * 4, m * n * 4};
    float *host[3];
    void *memory[3];
    DLTensor tensor[3] = {mf_tensor(NULL, MF_F32, 2, as), mf_tensor(NULL, MF_F32, 2, bs),
                          mf_tensor(NULL, MF_F32, 2, os)};
    for (int t = 0; t < 3; t++) {
        tensor[t].device.device_type = (DLDeviceType)mf_device_kind(device);
        memory[t] = host[t] = calloc((size_t)bytes[t], 1);
    }
    for (int64_t i = 0; i < m * k; i++)
        host[0][i] = (float)(i % 7);
    for (int64_t i = 0; i < k; i++) { /* the last output of the first row fails, and a GPU's block around it */
        host[0][i] = i ? 0 : -300;
        host[1][i * n + n - 1] = i ? -300 : 0;
    }
    for (int t = 0; gpu && t < 3; t++)
        CHECK(mf_memory_create(device, bytes[t], &memory[t]) == MF_OK &&
              mf_memory_write(device, memory[t], 0, host[t], bytes[t]) == MF_OK);
    const void *from[] = {memory[0], memory[1]};
    void *to[] = {memory[2]};
    for (int s = 0; s < 4; s++) {
        const mf_options options = {s == 3 && !gpu ? "reference" : solvers[s], 0, 0};
        mf_plan *plan = NULL;
        int64_t count[4];
        CHECK(mf_plan_create(device, "ik,kj->ij", "logsumexp(a+b)", tensor, &tensor[2], &options, &plan) == MF_OK);
        for (int runs = 0; runs < 3; runs++) {
            for (int t = 0; t < 4; t++)
                count[t] = mf_plan_tier_count(plan, (mf_tier)t);
            CHECK(count[0] + count[1] + count[2] + count[3] == (s < 3 ? runs * m * n : 0) && !count[1]);
            CHECK_MSG(s || !runs || (count[MF_TIER_CERTIFIED] > 0 && count[MF_TIER_EXACT] > 0),
                      "%s: after %d runs %lld outputs are certified, %lld exact", mf_plan_describe(plan), runs,
                      (long long)count[MF_TIER_CERTIFIED], (long long)count[MF_TIER_EXACT]);
            CHECK(s != 1 || count[MF_TIER_EXACT] == runs * m * n);
            CHECK(s != 2 || count[MF_TIER_UNCHECKED] == runs * m * n);
            CHECK(mf_plan_execute(plan, from, to, NULL) == MF_OK);
        }
        if (gpu)
            CHECK(mf_memory_read(device, memory[2], 0, host[2], bytes[2]) == MF_OK);
        CHECK_MSG(s == 2 || fabs((double)host[2][n - 1] - (log((double)k) - 300)) < 1e-3,
                  "%s: the output that fails is %g", solvers[s], (double)host[2][n - 1]);
        CHECK(mf_plan_tier_count(plan, (mf_tier)4) == 0 && mf_plan_tier_count(NULL, MF_TIER_EXACT) == 0);
        mf_plan_destroy(plan);
    }
    for (int t = 0; t < 3; t++) {
        if (gpu)
            mf_memory_destroy(device, memory[t]);
        free(host[t]);
    }
}

/* The tiers as flags: which solver they mean, and that they mean nothing to other folds. */
static void test_flags(mf_device *device)
{
    const int gpu = mf_device_kind(device) != kDLCPU;
    static const struct {
        uint32_t flags;
        const char *expression, *solver;
    } cases[] = {{MF_LOG_EXACT, "logsumexp(a+b)", "log-exact"},
                 {MF_LOG_CERTIFIED, "logsumexp(a+b)", "log-certified"},
                 {MF_LOG_FAST, "logsumexp(a-b)", "log-fast"},
                 {MF_LOG_CERTIFIED | MF_ORDER_FREE, "logsumexp(a+b)", "log-certified"},
                 {MF_LOG_FAST, "max(a+b)", "contract"},
                 {MF_LOG_EXACT | MF_ORDER_AS_WRITTEN, "max(a+b)", "contract"}};
    const int64_t as[] = {8, TERMS}, bs[] = {TERMS, 9}, os[] = {8, 9}; /* too few for the library's own choice */
    DLTensor in[2] = {mf_tensor(a32, MF_F32, 2, as), mf_tensor(b32, MF_F32, 2, bs)},
             o = mf_tensor(out32, MF_F32, 2, os);
    in[0].device.device_type = in[1].device.device_type = o.device.device_type = (DLDeviceType)mf_device_kind(device);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const mf_options wish = {NULL, cases[c].flags, 0};
        mf_plan *plan = NULL;
        CHECK(mf_plan_create(device, "ik,kj->ij", cases[c].expression, in, &o, &wish, &plan) == MF_OK);
        CHECK_MSG(!strcmp(mf_plan_solver(plan),
                          gpu && !strcmp(cases[c].solver, "contract") ? "contract-near" : cases[c].solver),
                  "%s with flags %u: %s", cases[c].expression, cases[c].flags, mf_plan_solver(plan));
        mf_plan_destroy(plan);
    }
    const mf_options contract = {NULL, MF_LOG_EXACT | MF_ORDER_CONTRACT, 0};
    mf_plan *plan = NULL;
    CHECK(mf_plan_create(device, "ik,kj->ij", "logsumexp(a+b)", in, &o, &contract, &plan) == MF_OK);
    CHECK(strncmp(mf_plan_solver(plan), "log-", 4)); /* the contract's bits */
    mf_plan_destroy(plan);
}

/* What is chosen; by name only for what they can do. */
static void test_choice(mf_device *device, int on_gpu)
{
    mf_plan *plan = NULL;
    if (on_gpu) {
        CHECK(plan_product(device, "logsumexp(a+b)", NULL, MF_F32, &plan) == MF_OK);
        CHECK(!strcmp(mf_plan_solver(plan), "log-certified"));
    } else {
        const int64_t as[] = {ROWS, TERMS}, bs[] = {TERMS, COLUMNS}, os[] = {ROWS, COLUMNS};
        DLTensor in[2] = {mf_tensor(a32, MF_F32, 2, as), mf_tensor(b32, MF_F32, 2, bs)},
                 o = mf_tensor(out32, MF_F32, 2, os);
        for (uint32_t flags = 0; flags < 4; flags++) { /* certified, but where another order is asked for */
            const mf_options wish = {NULL, flags, 0};
            CHECK(mf_plan_create(device, "ik,kj->ij", "logsumexp(a+b)", in, &o, &wish, &plan) == MF_OK);
            CHECK(!strcmp(mf_plan_solver(plan), "log-certified") == !flags);
            mf_plan_destroy(plan);
        }
        const int64_t few[] = {8, TERMS}, few_out[] = {8, 8};
        DLTensor small[2] = {mf_tensor(a32, MF_F32, 2, few), mf_tensor(a32, MF_F32, 2, few)},
                 small_out = mf_tensor(out32, MF_F32, 2, few_out);
        CHECK(mf_plan_create(device, "ik,jk->ij", "logsumexp(a+b)", small, &small_out, NULL, &plan) == MF_OK);
        CHECK(strncmp(mf_plan_solver(plan), "log-", 4)); /* too few outputs */
    }
    mf_plan_destroy(plan);
    CHECK(plan_product(device, "logsumexp(a*b)", "log-certified", MF_F32, &plan) == MF_ERROR_UNSUPPORTED);
    CHECK(!strcmp(mf_error(), "solver log-certified does not apply to this fold"));
    CHECK(plan_product(device, "max(a+b)", "log-certified", MF_F32, &plan) == MF_ERROR_UNSUPPORTED);
}

/* On "cpu", and on a GPU: the argument, or opencl:0. */
int main(int argc, char **argv)
{
    const char *const names[] = {"cpu", argc > 1 ? argv[1] : "opencl:0"};
    gpu_test_environment("off");
    for (int d = 0; d < 2; d++) {
        mf_device *device = NULL;
        mf_status status = mf_device_open(names[d], &device);
        if (d && status != MF_OK) {
            check_skip(names[d], mf_error());
            continue;
        }
        if (!CHECK(status == MF_OK))
            continue;
        test_sets(device, d > 0);
        test_special(device);
        test_choice(device, d > 0);
        test_tiers(device);
        test_flags(device);
        if (d && argc > 1) { /* as much as cuBLAS is asked for */
            copies = 16;
            test_sets(device, 1);
            copies = 1;
        }
        mf_device_close(device);
    }
    test_repeats();
    return check_done("test_logspace");
}
