/* The elementary functions: their error against libm in a wider type, their special cases, and their very bits. */
#include "../src/vocab/convert.h"
#include "../src/vocab/elementary.h"
#include "../src/vocab/ops.h"
#include "check.h"

#include <float.h>
#include <math.h>

/* Where long double is double, the reference itself may be wrong by a unit. */
static const double slack = LDBL_MANT_DIG > DBL_MANT_DIG ? 0.0 : 1.0;

static long double sigmoid(long double x)
{
    long double e = expl(-fabsl(x));
    return (x < 0 ? e : 1) / (1 + e);
}

/* ---- errors ---- */

/* |got - want| in units in the last place of want, in a type of that many bits and those exponents. Infinity counts as
 * the power of two that follows the greatest number. A NaN or a sign of zero that is wrong counts as 1e9. */
static double error_of(long double got, long double want, int bits, int least, int most)
{
    if (want != want || got != got)
        return want != want && got != got ? 0 : 1e9;
    if (want == 0 && !signbit(want) != !signbit(got))
        return 1e9;
    long double limit = ldexpl(1, most);
    got = fmaxl(fminl(got, limit), -limit);
    want = fmaxl(fminl(want, limit), -limit);
    int exponent;
    frexpl(want, &exponent);
    if (want == 0 || exponent < least)
        exponent = least;
    return (double)(fabsl(got - want) / ldexpl(1, exponent - bits));
}

static double error_f32(float got, double want)
{
    return error_of(got, want, 24, -125, 128);
}

static double error_f64(double got, long double want)
{
    return error_of(got, want, 53, -1021, 1024);
}

struct worst {
    double error, x, y;
};

static void note(struct worst *worst, double error, double x, double y)
{
    if (error > worst->error)
        *worst = (struct worst){error, x, y};
}

static void report(const char *name, struct worst worst, double bound)
{
    printf("%-12s %.4f ulp at %a %a\n", name, worst.error, worst.x, worst.y);
    CHECK_MSG(worst.error <= bound, "%s: %g ulp at %a %a", name, worst.error, worst.x, worst.y);
}

/* ---- one argument ---- */

struct function {
    const char *name;
    float (*f32)(float);
    double (*f64)(double);
    double (*wide32)(double);
    long double (*wide64)(long double);
    double bound;
};

static float exp_f32(float x)
{
    return mf_exp_f32(x);
}
static float log_f32(float x)
{
    return mf_log_f32(x);
}
static float tanh_f32(float x)
{
    return mf_tanh_f32(x);
}
static float sigmoid_f32(float x)
{
    return mf_sigmoid_f32(x);
}
static double exp_f64(double x)
{
    return mf_exp_f64(x);
}
static double log_f64(double x)
{
    return mf_log_f64(x);
}
static double tanh_f64(double x)
{
    return mf_tanh_f64(x);
}
static double sigmoid_f64(double x)
{
    return mf_sigmoid_f64(x);
}

static double sigmoid_wide32(double x)
{
    double e = exp(-fabs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

static const struct function functions[] = {
    {"exp", exp_f32, exp_f64, exp, expl, 1.5},
    {"log", log_f32, log_f64, log, logl, 1.5},
    {"tanh", tanh_f32, tanh_f64, tanh, tanhl, 3.0},
    {"sigmoid", sigmoid_f32, sigmoid_f64, sigmoid_wide32, sigmoid, 3.0},
};

/* Where something changes: overflow, underflow, the clamps, sqrt(1/2), the steps of n, zero, one. */
static const double edges[] = {
    0.0,
    1.0,
    2.0,
    0.70710678118654752,
    1.4142135623730951,
    0.17328679513998632,
    0.34657359027997264,
    0.51986038541995897,
    87.336544750553102,
    88.722839052068352,
    89.0,
    103.27892990343185,
    103.97207708399179,
    104.0,
    9.0109133472792,
    10.0,
    708.39641853226410,
    709.78271289338397,
    710.0,
    744.44007192138122,
    745.13321910194122,
    746.0,
    19.061547465398496,
    20.0,
    1.17549435e-38,
    1.4e-45,
    3.4028234663852886e38,
    2.2250738585072014e-308,
    4.9406564584124654e-324,
    1.7976931348623157e308,
};
enum { EDGE_COUNT = sizeof edges / sizeof *edges, NEAR = 300 };

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717u;
}

static double uniform(double low, double high)
{
    return low + (high - low) * ((double)(random_bits() >> 11) * 0x1p-53);
}

static void errors_f32(const struct function *f)
{
    struct worst worst = {0, 0, 0};
    for (uint64_t u = 0; u <= 0xffffffffu; u += 997) {
        float x = mf_bits_f32((uint32_t)u);
        note(&worst, error_f32(f->f32(x), f->wide32(x)), x, 0);
    }
    for (int i = 0; i < EDGE_COUNT; i++)
        for (uint32_t d = 0; d <= 2 * NEAR; d++)
            for (uint32_t sign = 0; sign < 2; sign++) {
                uint32_t edge = mf_f32_bits((float)edges[i]) | sign << 31;
                float x = mf_bits_f32(edge + d - NEAR);
                note(&worst, error_f32(f->f32(x), f->wide32(x)), x, 0);
            }
    report(f->name, worst, f->bound);
}

static void errors_f64(const struct function *f)
{
    struct worst worst = {0, 0, 0};
    static const double ranges[][2] = {{-746, 710}, {-40, 40}, {-1, 1}, {0.4, 3}, {0.97, 1.03}, {-0.1, 0.1}};
    for (int i = 0; i < 1000000; i++) {
        const double *range = ranges[i % 6];
        double x = i % 7 ? uniform(range[0], range[1]) : mf_bits_f64(random_bits());
        note(&worst, error_f64(f->f64(x), f->wide64(x)), x, 0);
    }
    for (int i = 0; i < EDGE_COUNT; i++)
        for (uint64_t d = 0; d <= 2 * NEAR; d++)
            for (uint64_t sign = 0; sign < 2; sign++) {
                uint64_t edge = mf_f64_bits(edges[i]) | sign << 63;
                double x = mf_bits_f64(edge + d - NEAR);
                note(&worst, error_f64(f->f64(x), f->wide64(x)), x, 0);
            }
    report(f->name, worst, f->bound + slack);
}

/* exp_below, in units of 2^-24 or 2^-53 of the result, 0.3 |x| of them left out. */
static void errors_below(void)
{
    struct worst worst32 = {0, 0, 0}, worst64 = {0, 0, 0};
    for (uint32_t u = 0x80000000u; u < mf_f32_bits(-87.0f); u += 97) {
        float x = mf_bits_f32(u);
        double want = exp(x);
        note(&worst32, fabs(mf_exp_below_f32(x) - want) / want * 0x1p24 + 0.3 * x, x, 0);
    }
    for (int i = 0; i < 1000000; i++) {
        double x = -uniform(0, i % 2 ? 2 : 708);
        long double want = expl(x);
        note(&worst64, (double)(fabsl(mf_exp_below_f64(x) - want) / want * 0x1p53L) + 0.3 * x, x, 0);
    }
    report("below f32", worst32, 3.0);
    report("below f64", worst64, 2.0 + 2 * slack);
    CHECK(mf_exp_below_f32(0.0f) == 1.0f && mf_exp_below_f32(-0.0f) == 1.0f);
    CHECK(mf_exp_below_f64(0.0) == 1.0 && mf_exp_below_f64(-0.0) == 1.0);
    CHECK(mf_exp_below_f32(-INFINITY) == mf_exp_below_f32(-87.0f));
    CHECK(mf_exp_below_f32(NAN) == mf_exp_below_f32(-87.0f));
    CHECK(mf_exp_below_f64(-INFINITY) == mf_exp_below_f64(-708.0));
    CHECK(mf_exp_below_f64(NAN) == mf_exp_below_f64(-708.0));
}

/* ---- the sums of logsumexp ---- */

/* A term in units of the greatest one's, against exp of their difference: in units of 2^-24 or 2^-53 of it, 0.3 of them
 * a unit of the difference left out, as far as a merge's factor is exact. */
static void errors_terms(void)
{
    struct worst worst32 = {0, 0, 0}, worst64 = {0, 0, 0};
    for (int i = 0; i < 1000000; i++) {
        const double reach = i % 2 ? 86 : 2, wide_reach = i % 2 ? 707 : 2, around = i % 3 ? 100 : 10000;
        const float m = (float)uniform(-around, around), x = m - (float)uniform(0, reach);
        const double d = (double)x - (double)m, want = exp(d);
        const double got = (double)mf_exp_unit_f32(x) * (double)mf_exp_step_f32(x, m) / (double)mf_exp_unit_f32(m);
        if (d > -86)
            note(&worst32, fabs(got - want) / want * 0x1p24 + 0.3 * d, d, m);
        const double y = uniform(-around, around), z = y - uniform(0, wide_reach);
        const long double e = (long double)z - y, wide = expl(e);
        const long double ratio = (long double)mf_exp_unit_f64(z) * mf_exp_step_f64(z, y) / mf_exp_unit_f64(y);
        if (e > -707)
            note(&worst64, (double)(fabsl(ratio - wide) / wide * 0x1p53L + 0.3L * e), (double)e, y);
    }
    report("terms f32", worst32, 5.0);
    report("terms f64", worst64, 4.0 + 2 * slack);
    CHECK(mf_exp_unit_f32(0) == 1 && mf_exp_step_f32(0, 0) == 1);
    CHECK(mf_exp_unit_f64(0) == 1 && mf_exp_step_f64(0, 0) == 1);
    CHECK(mf_exp_step_f32(-INFINITY, 5) <= 0x1p-123f && mf_exp_step_f32(-INFINITY, 2e9f) == 0x1p-125f);
    CHECK(mf_exp_step_f64(-INFINITY, 5) <= 0x1p-1018 && mf_exp_step_f64(-INFINITY, 5e18) == 0x1p-1021);
    CHECK(mf_logsum_f32(INFINITY, NAN) == INFINITY && mf_logsum_f32(-INFINITY, 3) == -INFINITY);
    CHECK(isnan(mf_logsum_f32(NAN, 1)) && isnan(mf_logsum_f64(NAN, 1)) && mf_logsum_f64(INFINITY, NAN) == INFINITY);
}

/* Up to 8 numbers around c, in two lanes that are merged; how far off, in units of 2^-24 or 2^-53 of |result| + 1. One
 * number alone, or beside -inf, is itself. */
#define DEFINE_SUM(s, T, unit)                                                                     \
    static double error_of_sum_##s(double c, double spread)                                        \
    {                                                                                              \
        const int n = 1 + (int)(random_bits() % 8);                                                \
        T x[8], most[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0}, greatest = -INFINITY;           \
        long double want = 0;                                                                      \
        for (int i = 0; i < n; i++) {                                                              \
            x[i] = i && random_bits() % 8 == 0 ? x[i - 1] : (T)(c + uniform(-spread, spread));     \
            if (random_bits() % 16 == 0)                                                           \
                x[i] = -INFINITY;                                                                  \
            T *const m = &most[i % 2], *const to = &sum[i % 2], h = x[i] > *m ? x[i] : *m;         \
            *to = *to * mf_exp_step_##s(*m, h) + mf_exp_unit_##s(x[i]) * mf_exp_step_##s(x[i], h); \
            *m = h;                                                                                \
        }                                                                                          \
        greatest = most[0] > most[1] ? most[0] : most[1];                                          \
        const T a = sum[0] * mf_exp_step_##s(most[0], greatest);                                   \
        const T got = mf_logsum_##s(greatest, a + sum[1] * mf_exp_step_##s(most[1], greatest));    \
        int others = 0;                                                                            \
        for (int i = 0; i < n; i++) {                                                              \
            want += expl((long double)x[i] - greatest);                                            \
            others += x[i] != -INFINITY;                                                           \
        }                                                                                          \
        if (others < 2)                                                                            \
            return got == greatest ? 0 : INFINITY;                                                 \
        want = greatest + logl(want);                                                              \
        return (double)(fabsl(got - want) / ((fabsl(want) + 1) * (long double)unit));              \
    }
DEFINE_SUM(f32, float, 0x1p-24)
DEFINE_SUM(f64, double, 0x1p-53)

/* All magnitudes, those where the units change their formula among them. */
static void errors_sums(void)
{
    static const double around[] = {0,    1,    10,   100,  1e4,    0x1p21, 0x1p22, 1e8,   0x1p30,
                                    1e10, 1e30, 3e38, 1e15, 0x1p50, 1e17,   0x1p62, 1e200, 1e308};
    static const double spreads[] = {1e-3, 1, 50, 1000, 1e6, 1e9};
    struct worst worst32 = {0, 0, 0}, worst64 = {0, 0, 0};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        for (size_t k = 0; k < sizeof spreads / sizeof *spreads; k++)
            for (int trial = 0; trial < 2000; trial++) {
                const double c = trial % 2 ? around[i] : -around[i];
                if (around[i] < 3.1e38)
                    note(&worst32, error_of_sum_f32(c, spreads[k]), c, spreads[k]);
                note(&worst64, error_of_sum_f64(c, spreads[k]), c, spreads[k]);
            }
    report("sums f32", worst32, 6.0);
    report("sums f64", worst64, 5.0 + 2 * slack);
}

/* ---- pow ---- */

static void errors_pow(void)
{
    struct worst worst32 = {0, 0, 0}, worst64 = {0, 0, 0};
    static const double ranges[][4] = {
        {0, 10, -50, 50},       {0, 10, -300, 300},     {-30, 30, -9, 9},  {0.99, 1.01, -7e4, 7e4},
        {0.7, 0.72, -2e3, 2e3}, {1.4, 1.43, -2e3, 2e3}, {0, 1e300, -1, 1}, {1 - 1e-9, 1 + 1e-9, -7e11, 7e11},
    };
    for (int i = 0; i < 1000000; i++) {
        const double *range = ranges[i % 8];
        double x = i % 9 ? uniform(range[0], range[1]) : mf_bits_f64(random_bits());
        double y = i % 3 ? uniform(range[2], range[3]) : floor(uniform(range[2], range[3]));
        float xf = i % 9 ? (float)x : mf_bits_f32((uint32_t)random_bits()), yf = (float)y;
        note(&worst64, error_f64(mf_pow_f64(x, y), powl(x, y)), x, y);
        note(&worst32, error_f32(mf_pow_f32(xf, yf), pow(xf, yf)), xf, yf);
    }
    report("pow f32", worst32, 0.51);
    report("pow f64", worst64, 2.0 + slack);
}

static void special_pow(void)
{
    static const double values[] = {
        0.0,
        0.5,
        1.0,
        1.5,
        2.0,
        3.0,
        5.0,
        1e-30,
        1e30,
        0x1p24,
        0x1p24 - 1,
        0x1p52 + 1,
        0x1p53 - 1,
        0x1p53 + 2,
        0x1p60,
        0x1p70,
        4.9406564584124654e-324,
        1e-310,
        DBL_MAX,
        DBL_EPSILON,
        1 - DBL_EPSILON,
        INFINITY,
        NAN,
    };
    enum { COUNT = sizeof values / sizeof *values };
    for (int i = 0; i < 2 * COUNT; i++)
        for (int k = 0; k < 2 * COUNT; k++) {
            double x = i % 2 ? -values[i / 2] : values[i / 2], y = k % 2 ? -values[k / 2] : values[k / 2];
            float xf = (float)x, yf = (float)y;
            double p = mf_pow_f64(x, y);
            float pf = mf_pow_f32(xf, yf);
            CHECK_MSG(error_f64(p, powl(x, y)) <= 2.0 + slack, "pow(%a, %a) = %a", x, y, p);
            CHECK_MSG(error_f32(pf, pow(xf, yf)) <= 0.51, "powf(%a, %a) = %a", (double)xf, (double)yf, (double)pf);
        }
}

/* ---- exact values ---- */

static void special_values(void)
{
    CHECK(mf_exp_f32(0.0f) == 1.0f && mf_exp_f32(-0.0f) == 1.0f && mf_exp_f64(0.0) == 1.0 && mf_exp_f64(-0.0) == 1.0);
    CHECK(mf_f32_bits(mf_log_f32(1.0f)) == 0 && mf_f64_bits(mf_log_f64(1.0)) == 0);
    CHECK(mf_exp_f32(-INFINITY) == 0.0f && mf_exp_f32(INFINITY) == INFINITY);
    CHECK(mf_exp_f64(-INFINITY) == 0.0 && mf_exp_f64(INFINITY) == INFINITY);
    CHECK(mf_log_f32(0.0f) == -INFINITY && mf_log_f32(-0.0f) == -INFINITY && isnan(mf_log_f32(-1e-45f)));
    CHECK(mf_log_f64(0.0) == -INFINITY && mf_log_f64(-0.0) == -INFINITY && isnan(mf_log_f64(-4e-324)));
    CHECK(mf_log_f32(INFINITY) == INFINITY && isnan(mf_log_f32(-INFINITY)) && mf_log_f64(INFINITY) == INFINITY);
    CHECK(mf_tanh_f32(INFINITY) == 1.0f && mf_tanh_f32(-INFINITY) == -1.0f && mf_tanh_f64(-INFINITY) == -1.0);
    CHECK(mf_f32_bits(mf_tanh_f32(-0.0f)) == 0x80000000u && mf_f64_bits(mf_tanh_f64(-0.0)) == 0x8000000000000000u);
    CHECK(mf_tanh_f32(1e-42f) == 1e-42f && mf_tanh_f32(-1e-30f) == -1e-30f && mf_tanh_f64(-4e-324) == -4e-324);
    CHECK(mf_sigmoid_f32(0.0f) == 0.5f && mf_sigmoid_f32(-INFINITY) == 0.0f && mf_sigmoid_f32(INFINITY) == 1.0f);
    CHECK(mf_sigmoid_f64(0.0) == 0.5 && mf_sigmoid_f64(-INFINITY) == 0.0 && mf_sigmoid_f64(INFINITY) == 1.0);
    for (uint32_t sign = 0; sign < 2; sign++) {
        float x = mf_bits_f32(0x7fa00000u | sign << 31);
        double y = mf_bits_f64(0x7ff4000000000000u | (uint64_t)sign << 63);
        CHECK(isnan(mf_exp_f32(x)) && isnan(mf_log_f32(x)) && isnan(mf_tanh_f32(x)) && isnan(mf_sigmoid_f32(x)));
        CHECK(isnan(mf_exp_f64(y)) && isnan(mf_log_f64(y)) && isnan(mf_tanh_f64(y)) && isnan(mf_sigmoid_f64(y)));
    }
}

/* ---- the bits ---- */

/* Loops of the library's shape, so that the vectorised code is what is hashed. */
enum { COUNT = 1 << 16 };
static float x32[COUNT], y32[COUNT], out32[COUNT];
static double x64[COUNT], y64[COUNT], out64[COUNT];

#define LOOP(name, out, call)                        \
    __attribute__((noinline)) static void name(void) \
    {                                                \
        for (int i = 0; i < COUNT; i++)              \
            out[i] = call;                           \
    }
LOOP(all_exp_f32, out32, mf_exp_f32(x32[i]))
LOOP(all_log_f32, out32, mf_log_f32(x32[i]))
LOOP(all_tanh_f32, out32, mf_tanh_f32(x32[i]))
LOOP(all_sigmoid_f32, out32, mf_sigmoid_f32(x32[i]))
LOOP(all_pow_f32, out32, mf_pow_f32(x32[i], y32[i]))
LOOP(all_exp_f64, out64, mf_exp_f64(x64[i]))
LOOP(all_log_f64, out64, mf_log_f64(x64[i]))
LOOP(all_tanh_f64, out64, mf_tanh_f64(x64[i]))
LOOP(all_sigmoid_f64, out64, mf_sigmoid_f64(x64[i]))
LOOP(all_pow_f64, out64, mf_pow_f64(x64[i], y64[i]))

/* A third of the arguments are any bits, the others lie where the functions live. No libm here: the same everywhere. */
static void fill_arguments(void)
{
    random_state = 88172645463325252u;
    for (int i = 0; i < COUNT; i++) {
        double range = i % 3 == 1 ? 120.0 : 4.0;
        x32[i] = i % 3 ? (float)uniform(-range, range) : mf_bits_f32((uint32_t)(random_bits() >> 32));
        x64[i] = i % 3 ? uniform(-6.0 * range, 6.0 * range) : mf_bits_f64(random_bits());
        y32[i] = i % 5 ? (float)uniform(-8.0, 8.0) : (float)(int)(random_bits() % 17) - 8.0f;
        y64[i] = i % 5 ? uniform(-8.0, 8.0) : (double)(int)(random_bits() % 17) - 8.0;
    }
}

/* FNV-1a over words, NaN as the canonical one. */
static uint64_t hash_f32(void)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < COUNT; i++)
        h = (h ^ mf_f32_bits(mf_canon_f32(out32[i]))) * 1099511628211u;
    return h;
}

static uint64_t hash_f64(void)
{
    uint64_t h = 14695981039346656037u;
    for (int i = 0; i < COUNT; i++)
        h = (h ^ mf_f64_bits(mf_canon_f64(out64[i]))) * 1099511628211u;
    return h;
}

static const struct {
    const char *name;
    void (*f32)(void), (*f64)(void);
    uint64_t hash32, hash64;
} loops[] = {
    {"exp", all_exp_f32, all_exp_f64, 0x83b47d17d4c27ab7u, 0x56e5ac3904d54d4au},
    {"log", all_log_f32, all_log_f64, 0xce7db65583cfeeb8u, 0x1d6c73e38e6dbe7bu},
    {"tanh", all_tanh_f32, all_tanh_f64, 0xcce59a3d50ae595bu, 0x8870206334867304u},
    {"sigmoid", all_sigmoid_f32, all_sigmoid_f64, 0x4bda70bfb96587f7u, 0x37acdee020ffb548u},
    {"pow", all_pow_f32, all_pow_f64, 0x891b3075aec2655du, 0xeebdb6b54402c5adu},
};

static void same_bits(void)
{
    fill_arguments();
    for (int k = 0; k < 5; k++) {
        loops[k].f32();
        loops[k].f64();
        uint64_t h32 = hash_f32(), h64 = hash_f64();
        CHECK_MSG(h32 == loops[k].hash32, "%s_f32 hash 0x%016llxu", loops[k].name, (unsigned long long)h32);
        CHECK_MSG(h64 == loops[k].hash64, "%s_f64 hash 0x%016llxu", loops[k].name, (unsigned long long)h64);
    }
}

int main(void)
{
    special_values();
    special_pow();
    for (int i = 0; i < 4; i++) {
        errors_f32(&functions[i]);
        errors_f64(&functions[i]);
    }
    errors_below();
    errors_terms();
    errors_sums();
    errors_pow();
    same_bits();
    return check_done("test_elementary");
}
