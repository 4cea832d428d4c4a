/* Gradients of log-space products against plain double loops, on the ten data sets and on special values;
 * MODEFOLD_TABLE=1 prints the table of docs/numerics.md. */
#include "check.h"

#include <float.h>
#include <math.h>

#include "logspace_data.h"
#include "modefold.h"

enum { A = ROWS * TERMS, B = TERMS * COLUMNS, O = ROWS * COLUMNS, FLOATS_BOUND = 4 };

static double a64[A], b64[B], out64[O], given64[O], ga64[A], gb64[B];
static float a32[A], b32[B], out32[O], given32[O], ga32[A], gb32[B], again32[A + B];
static double ga_exact[A], gb_exact[B], ga_bound[A], gb_bound[B];

static void copy_to_doubles(void)
{
    for (int i = 0; i < A; i++)
        a64[i] = a32[i];
    for (int i = 0; i < B; i++)
        b64[i] = b32[i];
    for (int i = 0; i < O; i++)
        given64[i] = given32[i];
}

static void fill(int set)
{
    for (int i = 0; i < A; i++)
        a32[i] = (float)value(set, 0, i / TERMS, i % TERMS);
    for (int i = 0; i < B; i++)
        b32[i] = (float)value(set, 1, i % COLUMNS, i / COLUMNS);
    for (int i = 0; i < O; i++)
        given32[i] = (float)normal(1);
    copy_to_doubles();
}

/* A term in the type, which may overflow. */
static double add(double x, double y, mf_type type)
{
    return type == MF_F32 && fabs(x + y) > (double)FLT_MAX ? copysign(INFINITY, x + y) : x + y;
}

/* The formula in double. An output's error moves all its terms: 1e-5 + 4 u max(|o|, |a| + |b|), times |d| times the
 * term's weight (f64: 1e-13); a term whose factors underflow has no more than 2^-60 of |d|. */
static void compute(mf_type type)
{
    const double unit = type == MF_F32 ? 0x1p-24 : 0x1p-53, floor = type == MF_F32 ? 1e-5 : 1e-13;
    memset(ga_exact, 0, sizeof ga_exact);
    memset(gb_exact, 0, sizeof gb_exact);
    memset(ga_bound, 0, sizeof ga_bound);
    memset(gb_bound, 0, sizeof gb_bound);
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            double most = -INFINITY, sum = 0, size = 0, d = given64[i * COLUMNS + j];
            for (int k = 0; k < TERMS; k++) {
                double x = a64[i * TERMS + k], y = b64[k * COLUMNS + j], term = add(x, y, type);
                if (most == most && !(term <= most)) { /* a NaN stays */
                    most = term;
                    size = fabs(x) + fabs(y);
                }
            }
            for (int k = 0; k < TERMS; k++)
                sum += exp(add(a64[i * TERMS + k], b64[k * COLUMNS + j], type) - most);
            const double o = isfinite(most) ? most + log(sum) : most;
            size = isfinite(o) ? fmax(fabs(o), isfinite(size) ? size : 0) : 0;
            for (int k = 0; k < TERMS && o != -INFINITY; k++) {
                double p = exp(add(a64[i * TERMS + k], b64[k * COLUMNS + j], type) - o);
                double bound = fabs(d) * (p * (floor + FLOATS_BOUND * unit * size) + 0x1p-60);
                ga_exact[i * TERMS + k] += d * p;
                gb_exact[k * COLUMNS + j] += d * p;
                ga_bound[i * TERMS + k] += bound;
                gb_bound[k * COLUMNS + j] += bound;
            }
        }
}

static int64_t tiers[4];       /* of the last run */
static uint32_t forward_order; /* of every forward fold */

/* Forward, then backward with one of the gradient's solvers. */
static mf_status run(mf_device *device, const char *solver, mf_type type)
{
    static const int64_t as[] = {ROWS, TERMS}, bs[] = {TERMS, COLUMNS}, os[] = {ROWS, COLUMNS};
    const int f32 = type == MF_F32;
    void *a = f32 ? (void *)a32 : a64, *b = f32 ? (void *)b32 : b64, *out = f32 ? (void *)out32 : out64;
    void *given = f32 ? (void *)given32 : given64, *ga = f32 ? (void *)ga32 : ga64, *gb = f32 ? (void *)gb32 : gb64;
    DLTensor in[2] = {mf_tensor(a, type, 2, as), mf_tensor(b, type, 2, bs)}, o = mf_tensor(out, type, 2, os);
    const int flag = solver && !strcmp(solver, "flag");
    const mf_options options = {flag ? NULL : solver, flag ? MF_LOG_EXACT : 0, 0}, forward = {NULL, forward_order, 0};
    const void *from[] = {a, b, out, given};
    void *to[] = {ga, gb}, *to_out[] = {out};
    mf_plan *plan = NULL;
    mf_status status = mf_plan_create(device, "ik,kj->ij", "logsumexp(a+b)", in, &o, &forward, &plan);
    if (status == MF_OK)
        status = mf_plan_execute(plan, from, to_out, NULL);
    mf_plan_destroy(plan);
    plan = NULL;
    if (status == MF_OK)
        status = mf_plan_gradient(device, "ik,kj->ij", "logsumexp(a+b)", in, &o, &o, in, &options, &plan);
    if (status == MF_OK)
        status = mf_plan_execute(plan, from, to, NULL);
    for (int t = 0; t < 4; t++)
        tiers[t] = mf_plan_tier_count(plan, (mf_tier)t);
    CHECK(status != MF_OK || tiers[0] + tiers[1] + tiers[2] == O);
    mf_plan_destroy(plan);
    return status;
}

/* Elements further off than the bound, and the greatest error in bounds. */
static int count_wrong(mf_type type, double *worst)
{
    int wrong = 0;
    *worst = 0;
    for (int i = 0; i < A + B; i++) {
        const int in_a = i < A, e = in_a ? i : i - A;
        double got = type == MF_F32 ? (double)(in_a ? ga32[e] : gb32[e]) : in_a ? ga64[e] : gb64[e];
        double expected = in_a ? ga_exact[e] : gb_exact[e], bound = in_a ? ga_bound[e] : gb_bound[e];
        if (got == expected || (got != got && expected != expected))
            continue;
        double error = fabs(got - expected) / bound;
        wrong += !(error <= 1);
        *worst = error > *worst || error != error ? error : *worst;
    }
    return wrong;
}

static const char *const solvers[] = {"gradient", "gradient-exact"};

/* The flag is the solver's name. */
static void test_flag(mf_device *device)
{
    fill(0);
    compute(MF_F32);
    CHECK(run(device, "flag", MF_F32) == MF_OK && tiers[MF_TIER_EXACT] == O);
}

static void test_sets(mf_device *device)
{
    for (int set = 0; set < SETS; set++)
        for (int t = 0; t < 2; t++) {
            const mf_type type = t ? MF_F64 : MF_F32;
            fill(set);
            compute(type);
            for (int s = 0; s < 2; s++) {
                double worst;
                CHECK_MSG(run(device, solvers[s], type) == MF_OK, "%s", mf_error());
                CHECK(!s || tiers[MF_TIER_EXACT] == O); /* N(0,30) and the kernels need f64 here and there */
                CHECK(s || t || (tiers[MF_TIER_WIDE] > 0) == (set == 2 || set == 3 || (set >= 5 && set <= 8)));
                int wrong = count_wrong(type, &worst);
                CHECK_MSG(!wrong, "%s, %s, %s: %d of %d elements are wrong, at worst %g bounds", set_names[set],
                          solvers[s], t ? "f64" : "f32", wrong, A + B, worst);
                if (getenv("MODEFOLD_TABLE"))
                    printf("| %s | %s | %s | %d of %d | %.2g |\n", set_names[set], solvers[s], t ? "f64" : "f32", wrong,
                           A + B, worst);
            }
        }
}

/* Infinities and NaNs anywhere, whole rows and columns of them, in the output's gradient too. */
static void test_special(mf_device *device)
{
    static const float special[] = {INFINITY, -INFINITY, NAN, 3e38F, -3e38F, 0, 1e-40F};
    for (int round = 0; round < 20; round++) {
        fill(0);
        for (int q = 0; q < 12; q++) {
            float x = special[(int)(uniform() * (round < 10 ? 2 : 7))];
            sow(x, q % 2 ? a32 : NULL, b32);
            given32[(int)(uniform() * O)] = special[(int)(uniform() * 7)];
        }
        copy_to_doubles();
        compute(MF_F32);
        for (int s = 0; s < 2; s++) {
            double worst;
            CHECK(run(device, solvers[s], MF_F32) == MF_OK);
            int wrong = count_wrong(MF_F32, &worst);
            CHECK_MSG(!wrong, "special values, round %d, %s: %d elements are wrong, at worst %g bounds", round,
                      solvers[s], wrong, worst);
        }
    }
}

/* Outputs of -inf give zero, whatever comes back to them. */
static void test_nothing(mf_device *device)
{
    for (int s = 0; s < 2; s++) {
        fill(0);
        for (int k = 0; k < TERMS; k++)
            a32[7 * TERMS + k] = b32[k * COLUMNS + 5] = -INFINITY;
        for (int j = 0; j < COLUMNS; j++)
            given32[7 * COLUMNS + j] = j % 2 ? NAN : INFINITY;
        CHECK(run(device, solvers[s], MF_F32) == MF_OK);
        for (int k = 0; k < TERMS; k++)
            CHECK(ga32[7 * TERMS + k] == 0 && gb32[k * COLUMNS + 5] == 0);
        int bad = 0;
        for (int i = 0; i < A; i++)
            bad += !isfinite(ga32[i]);
        for (int i = 0; i < B; i++)
            bad += !isfinite(gb32[i]);
        CHECK_MSG(!bad, "%d elements are not finite", bad);
    }
}

/* The same bits with any number of threads and every instruction set, of an output that has the same bits there. */
static void test_repeats(void)
{
    static const char *const isas[] = {NULL, "scalar", "sse2", "avx2", "avx512", "neon"};
    int first = 1;
    fill(2);
    forward_order = MF_ORDER_CONTRACT;
    for (int r = 0; r < 8; r++) {
        char name[16];
        mf_device *device = NULL;
        snprintf(name, sizeof name, "cpu:%d", r < 3 ? r + 1 : 2);
        if (r >= 3)
            setenv("MODEFOLD_ISA", isas[r - 2], 1);
        if (mf_device_open(name, &device) == MF_OK && CHECK(run(device, NULL, MF_F32) == MF_OK)) {
            if (first) {
                memcpy(again32, ga32, sizeof ga32);
                memcpy(again32 + A, gb32, sizeof gb32);
            }
            CHECK(!memcmp(again32, ga32, sizeof ga32) && !memcmp(again32 + A, gb32, sizeof gb32));
            first = 0;
        }
        mf_device_close(device);
        unsetenv("MODEFOLD_ISA");
    }
}

int main(void)
{
    mf_device *device = NULL;
    if (CHECK(mf_device_open("cpu", &device) == MF_OK)) {
        test_sets(device);
        test_special(device);
        test_nothing(device);
        test_flag(device);
        mf_device_close(device);
    }
    test_repeats();
    return check_done("test_gradient_log");
}
