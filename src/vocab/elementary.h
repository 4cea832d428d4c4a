/* exp, log, tanh, sigmoid and pow, float and double, with the same bits on every compiler, instruction set and device.
 *
 * Only IEEE + - * /, comparisons, selects, integer operations and bit casts: no libm, no tables, and no fma but in
 * exp2, exp_near and exp_below. All is straight-line code without 64-bit integer conversions, so that loops vectorise
 * from SSE2 upwards (pow in double only under clang). The build says -ffp-contract=off and evaluates in the types
 * themselves (no x87).
 *   exp      reduction by n ln 2 in two parts with exact products (Cody and Waite 1980), minimax polynomial (Remez),
 *            2^n in two factors so that gradual underflow rounds once
 *   log      x = 2^k m, m in [sqrt(1/2), sqrt 2); float: a polynomial in f = m - 1; double: one in s = f / (f + 2),
 *            arranged as in fdlibm (Ng 1993) so that f itself is not rounded
 *   tanh     e / (e + 2) with e = exp(2|x|) - 1 from the polynomial of exp
 *   sigmoid  1 / (1 + exp(-|x|)), or exp(-|x|) over it, so that neither side overflows
 *   pow      float: exp(y log x) in double; double: the logarithm in double-double (Dekker 1971)
 * Polynomials are summed in pairs of coefficients, for a shorter chain of dependences.
 * Greatest error in units in the last place: measured (float: all arguments; pow and double: random), then promised:
 *   float    exp 1.02 (1.5)  log 0.86 (1.5)  tanh 2.61 (3)  sigmoid 2.41 (3)  pow 0.501 (0.51)
 *   double   exp 0.98 (1.5)  log 0.82 (1.5)  tanh 2.69 (3)  sigmoid 2.25 (3)  pow 1.22 (2)
 * A NaN result is any NaN: storing it makes it canonical (convert.h).
 *
 * The text is also OpenCL C and CUDA C. There a prelude names the integer types and supplies the four bit casts and
 * MF_VOCAB_BITS, and the build must keep subnormals, divide correctly and not contract: --fmad=false --ftz=false
 * --prec-div=true; -cl-fp32-correctly-rounded-divide-sqrt and FP_CONTRACT OFF. MF_VOCAB_NO_F64 leaves out what needs
 * double, pow among it. */
#ifndef MF_VOCAB_ELEMENTARY_H
#define MF_VOCAB_ELEMENTARY_H

#if !defined(__OPENCL_VERSION__) && !defined(__CUDACC_RTC__)
#include <math.h>
#include <stdint.h>
#include <string.h>
#endif

/* Where a compiler does not round quotients of floats correctly, its prelude says how to. */
#ifndef MF_QUOTIENT
#define MF_QUOTIENT(x, y) ((x) / (y))
#endif

#ifndef MF_VOCAB_BITS
#define MF_VOCAB_BITS

static inline uint32_t mf_f32_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline float mf_bits_f32(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static inline uint64_t mf_f64_bits(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static inline double mf_bits_f64(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif

/* ---- float ---- */

/* exp(r) - 1 for |r| <= ln(2)/2, relative error 2^-27.9 before rounding. */
static inline float mf_expm1_core_f32(float r)
{
    float z = r * r;
    float q = (0.00836748257f * r + 0.0416672379f) + 0.00138637808f * z;
    q = q * z + (0.166665345f * r + 0.5f);
    return q * z + r;
}

/* exp(x) for -104 <= x <= 89 or NaN, else anything. t = 1.5 * 2^23 + 254 + n has n + 254 in its low 9 bits: shifted by
 * 22 and masked they are the float 2^(n/2 rounded down); what is left of the exponent makes the second factor. */
static inline float mf_exp_core_f32(float x)
{
    float t = x * 1.44269502f + 12583166.0f;
    float n = t - 12583166.0f;
    float r = (x - n * 0.693145752f) - n * 1.42860677e-06f;
    float p = mf_expm1_core_f32(r) + 1.0f;
    uint32_t moved = mf_f32_bits(t) << 22;
    uint32_t first = moved & 0x7f800000u;
    uint32_t second = (moved + moved) - first;
    return p * mf_bits_f32(first) * mf_bits_f32(second);
}

/* Selecting the result rather than clamping x keeps the comparisons out of the chain of dependences. */
static inline float mf_exp_f32(float x)
{
    float y = mf_exp_core_f32(x);
    y = x < -104.0f ? 0.0f : y;
    return x > 89.0f ? mf_bits_f32(0x7f800000u) : y;
}

/* exp(x) for x <= 0, for sums whose largest term is exp(0): terms below exp(-87), and NaN (of inf - inf, where the
 * sum does not matter), give exp(-87), which is far below the sum's rounding. So nothing has to be selected
 * afterwards, and the exponent can be added as an integer. It is 2^n 2^f with n + f = x log2 e rounded once, whose
 * constant costs |x| 0.3 * 2^-24 of the result (the rounding of x, a difference, has cost up to |x| 2^-24 already); and
 * 2^f = 1 + ... + c0 f^5 for |f| <= 1/2 with a relative error of 2^-23.3. exp_below(0) == 1 exactly.
 *
 * Log-space products consist of it, and logsumexp of its polynomial (exp_unit of ops_float.inc; src/cpu/fold_lse.inc
 * has that in vectors, with these constants), so products are fused with the sums behind them, and the polynomial's
 * error is as large as the roundings'. fma is one rounding wherever it runs; where the processor has no instruction for
 * it (SSE2) it is a slow call. exp_near is exp_below where -87 <= x is known. */
#define MF_LEAST_f32 (-87.0f)
#define MF_REACH_f32 86.0f
#define MF_LEAST_POWER_f32 (-125.0f)
#define MF_NEAR_f32 2097152.0f
#define MF_FAR_f32 1073741824.0f
#define MF_COARSE_f32 6442450944.0f
#define MF_LOG2E_f32 1.44269502f
#define MF_MAGIC_f32 12582912.0f
#define MF_EXP2_f32                                                                     \
    {                                                                                   \
        1.32640719e-3f, 9.67132673e-3f, 0.0555072173f, 0.240222469f, 0.693147004f, 1.0f \
    }

/* The polynomial: 2^f. */
static inline float mf_exp2_f32(float f)
{
    const float c[] = MF_EXP2_f32;
    float p = fmaf(fmaf(c[0], f, c[1]), f, c[2]);
    return fmaf(fmaf(fmaf(p, f, c[3]), f, c[4]), f, c[5]);
}

static inline float mf_exp_near_f32(float x)
{
    float t = fmaf(x, MF_LOG2E_f32, MF_MAGIC_f32);
    float p = mf_exp2_f32(fmaf(x, MF_LOG2E_f32, MF_MAGIC_f32 - t));
    return mf_bits_f32(mf_f32_bits(p) + (mf_f32_bits(t) << 23));
}

static inline float mf_exp_below_f32(float x)
{
    return mf_exp_near_f32(x > MF_LEAST_f32 ? x : MF_LEAST_f32);
}

/* 0x3f3504f3 is sqrt(1/2): subtracting it makes the exponent field k for m in [sqrt(1/2), sqrt 2). */
static inline float mf_log_f32(float x)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    float bias = x < 1.17549435e-38f ? 8388759.0f : 8388736.0f;
    uint32_t u = mf_f32_bits(scaled) - 0x3f3504f3u;
    float k = mf_bits_f32(((u + 0x40000000u) >> 23) | 0x4b000000u) - bias;
    float f = mf_bits_f32((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float z = f * f;
    float q = 0.127619594f - 0.0763448328f * f;
    q = q * z + (0.142017201f - 0.131603643f * f);
    q = q * z + (0.200012282f - 0.166233361f * f);
    q = q * z + (0.333333313f - 0.250008225f * f);
    float y = (q * (f * z) + k * 1.42860677e-06f) - 0.5f * z;
    y = (y + f) + k * 0.693145752f;
    float special = x == 0.0f ? mf_bits_f32(0xff800000u) : mf_bits_f32(0x7fc00000u);
    y = x > 0.0f ? y : special;
    return x == mf_bits_f32(0x7f800000u) ? x : y;
}

/* expm1(2a) = 2^n (1 + p) - 1 = 2^n p + (2^n - 1), whose last part is exact; for small a it is p itself. */
static inline float mf_tanh_f32(float x)
{
    uint32_t sign = mf_f32_bits(x) & 0x80000000u;
    float a = mf_bits_f32(mf_f32_bits(x) ^ sign);
    a = a > 10.0f ? 10.0f : a;
    float t = a * 2.88539004f + 12583039.0f;
    float n = t - 12583039.0f;
    float r = ((a + a) - n * 0.693145752f) - n * 1.42860677e-06f;
    float p = mf_expm1_core_f32(r);
    float scale = mf_bits_f32(mf_f32_bits(t) << 23);
    float e = p * scale + (scale - 1.0f);
    return mf_bits_f32(mf_f32_bits(MF_QUOTIENT(e, e + 2.0f)) | sign);
}

static inline float mf_sigmoid_f32(float x)
{
    float a = mf_bits_f32(mf_f32_bits(x) | 0x80000000u);
    float e = mf_exp_core_f32(a);
    e = a < -104.0f ? 0.0f : e;
    return MF_QUOTIENT(x < 0.0f ? e : 1.0f, 1.0f + e);
}

#ifndef MF_VOCAB_NO_F64

/* ---- double ---- */

/* exp(r) - 1 for |r| <= ln(2)/2, relative error 2^-57.2 before rounding. */
static inline double mf_expm1_core_f64(double r)
{
    double z = r * r;
    double q = 2.49783858508884e-08 * r + 2.762518989503759e-07;
    q = q * z + (2.755764086201335e-06 * r + 2.4801508675668876e-05);
    q = q * z + (0.0001984126946620955 * r + 0.0013888888926801082);
    q = q * z + (0.0083333333335000471 * r + 0.041666666666603951);
    q = q * z + (0.16666666666666433 * r + 0.5);
    return q * z + r;
}

/* exp(x + tail) for -746 <= x <= 710 or NaN, and a small tail; as in float, with t = 1.5 * 2^52 + 2046 + n. */
static inline double mf_exp_core_f64(double x, double tail)
{
    double t = x * 1.4426950408889634 + 6755399441057790.0;
    double n = t - 6755399441057790.0;
    double r = (x - n * 0.69314718055989033) - (n * 5.4979230187083712e-14 - tail);
    double p = mf_expm1_core_f64(r) + 1.0;
    uint64_t moved = mf_f64_bits(t) << 51;
    uint64_t first = moved & 0x7ff0000000000000u;
    uint64_t second = (moved + moved) - first;
    return p * mf_bits_f64(first) * mf_bits_f64(second);
}

static inline double mf_exp_f64(double x)
{
    double y = mf_exp_core_f64(x, 0.0);
    y = x < -746.0 ? 0.0 : y;
    return x > 710.0 ? mf_bits_f64(0x7ff0000000000000u) : y;
}

/* As in float; |x| 0.2 * 2^-53 of the result, and 1 + ... + c0 f^11 with a relative error of 2^-56.6. */
#define MF_LEAST_f64 (-708.0)
#define MF_REACH_f64 707.0
#define MF_LEAST_POWER_f64 (-1021.0)
#define MF_NEAR_f64 1125899906842624.0
#define MF_FAR_f64 4611686018427387904.0
#define MF_COARSE_f64 27670116110564327424.0
#define MF_LOG2E_f64 1.4426950408889634
#define MF_MAGIC_f64 6755399441055744.0
#define MF_EXP2_f64                                                                                       \
    {                                                                                                     \
        4.4389409585403782e-10, 7.0732633008428005e-09, 1.0178159665137614e-07, 1.321543864113879e-06,    \
            1.5252733634453211e-05, 0.00015403530449476462, 0.0013333558146546381, 0.0096181291076012001, \
            0.055504108664821722, 0.24022650695910108, 0.69314718055994529, 1.0                           \
    }

static inline double mf_exp2_f64(double f)
{
    const double c[] = MF_EXP2_f64;
    double p = fma(fma(fma(c[0], f, c[1]), f, c[2]), f, c[3]);
    p = fma(fma(fma(fma(p, f, c[4]), f, c[5]), f, c[6]), f, c[7]);
    return fma(fma(fma(fma(p, f, c[8]), f, c[9]), f, c[10]), f, c[11]);
}

static inline double mf_exp_below_f64(double x)
{
    double y = x > MF_LEAST_f64 ? x : MF_LEAST_f64;
    double t = fma(y, MF_LOG2E_f64, MF_MAGIC_f64);
    double p = mf_exp2_f64(fma(y, MF_LOG2E_f64, MF_MAGIC_f64 - t));
    return mf_bits_f64(mf_f64_bits(p) + (mf_f64_bits(t) << 52));
}

/* Splits x > 0, finite, into 2^k m with m in [sqrt(1/2), sqrt 2): gives m, and k in *exponent. */
static inline double mf_split_f64(double x, double *exponent)
{
    double scaled = x < 2.2250738585072014e-308 ? x * 18014398509481984.0 : x;
    double bias = x < 2.2250738585072014e-308 ? 4503599627371574.0 : 4503599627371520.0;
    uint64_t u = mf_f64_bits(scaled) - 0x3fe6a09e667f3bcdu;
    *exponent = mf_bits_f64(((u + 0x4000000000000000u) >> 52) | 0x4330000000000000u) - bias;
    return mf_bits_f64((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
}

static inline double mf_log_f64(double x)
{
    double k;
    double f = mf_split_f64(x, &k) - 1.0;
    double s = f / (f + 2.0);
    double z = s * s;
    double w = z * z;
    double q = 0.14795866747829775 * w + (0.15314063849731552 * z + 0.18183563569976308);
    q = q * w + (0.22222198593478507 * z + 0.28571428742114524);
    q = q * w + (0.39999999999416408 * z + 0.6666666666666734);
    double h = 0.5 * f * f;
    double y = k * 0.69314718055989033 - ((h - (s * (h + q * z) + k * 5.4979230187083712e-14)) - f);
    double special = x == 0.0 ? mf_bits_f64(0xfff0000000000000u) : mf_bits_f64(0x7ff8000000000000u);
    y = x > 0.0 ? y : special;
    return x == mf_bits_f64(0x7ff0000000000000u) ? x : y;
}

static inline double mf_tanh_f64(double x)
{
    uint64_t sign = mf_f64_bits(x) & 0x8000000000000000u;
    double a = mf_bits_f64(mf_f64_bits(x) ^ sign);
    a = a > 20.0 ? 20.0 : a;
    double t = a * 2.8853900817779268 + 6755399441056767.0;
    double n = t - 6755399441056767.0;
    double r = ((a + a) - n * 0.69314718055989033) - n * 5.4979230187083712e-14;
    double p = mf_expm1_core_f64(r);
    double scale = mf_bits_f64(mf_f64_bits(t) << 52);
    double e = p * scale + (scale - 1.0);
    return mf_bits_f64(mf_f64_bits(e / (e + 2.0)) | sign);
}

static inline double mf_sigmoid_f64(double x)
{
    double a = mf_bits_f64(mf_f64_bits(x) | 0x8000000000000000u);
    double e = mf_exp_core_f64(a, 0.0);
    e = a < -746.0 ? 0.0 : e;
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

/* ---- pow ---- */

/* a * b = the result + *tail exactly, short of overflow and underflow: Dekker's product on Veltkamp's 26-bit halves. */
static inline double mf_product_f64(double a, double b, double *tail)
{
    double p = a * b, ca = a * 134217729.0, cb = b * 134217729.0;
    double ah = ca - (ca - a), bh = cb - (cb - b);
    double al = a - ah, bl = b - bh;
    *tail = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    return p;
}

/* a + b = the result + *tail exactly, for |a| >= |b| or a = 0 (Dekker). */
static inline double mf_sum_f64(double a, double b, double *tail)
{
    double s = a + b;
    *tail = b - (s - a);
    return s;
}

/* log(x) = the result + *tail with about 65 bits, for x > 0, finite. With s = (m - 1) / (m + 1) and z = s^2,
 * log m = s (2 + z (2/3 + z Q(z))); everything but z Q(z) is kept in two parts. */
static inline double mf_log_parts_f64(double x, double *tail)
{
    double k, e, sl, zl, ul, vl, wl, ll, lh;
    double m = mf_split_f64(x, &k);
    double f = m - 1.0, d = m + 1.0, dl = m - (d - 1.0);
    double s = f / d, back = mf_product_f64(s, d, &e);
    sl = (((f - back) - e) - s * dl) / d;
    double z = mf_product_f64(s, s, &zl);
    zl = zl + 2.0 * s * sl;
    double z2 = z * z;
    double q = 0.11981972065835594 * z + 0.11675755819330413;
    q = q * z2 + (0.13336265642674991 * z + 0.15384558401534293);
    q = q * z2 + (0.18181818844336278 * z + 0.22222222217787529);
    q = q * z2 + (0.28571428571443847 * z + 0.3999999999999998);
    double u = mf_sum_f64(0.66666666666666663, q * z, &ul);
    ul = ul + 3.7007434154171883e-17;
    double w = mf_product_f64(z, u, &wl);
    double v = mf_sum_f64(2.0, w, &vl);
    vl = vl + (wl + (z * ul + zl * u));
    lh = mf_product_f64(s, v, &ll);
    ll = ll + (s * vl + sl * v);
    double h = mf_sum_f64(k * 0.69314718055989033, lh, &e);
    return mf_sum_f64(h, e + (k * 5.4979230187083712e-14 + ll), tail);
}

/* C99's table of pow (F.9.4.4) around r = |x|^y, in selects. From 2^53 every double is even, from 2^52 an integer;
 * below, adding 2^52 rounds to an integer. */
static inline double mf_pow_special_f64(double x, double y, double r)
{
    double a = mf_bits_f64(mf_f64_bits(x) & 0x7fffffffffffffffu), b = mf_bits_f64(mf_f64_bits(y) & 0x7fffffffffffffffu);
    double h = 0.5 * b, top = 4503599627370496.0;
    double fraction = b < top ? ((b + top) - top) - b : 0.0;
    double uneven = h < top ? ((h + top) - top) - h : 0.0;
    uint64_t sign = fraction == 0.0 ? mf_f64_bits(x) & 0x8000000000000000u : 0u;
    sign = uneven == 0.0 ? 0u : sign;
    double one = y == y ? 1.0 : r;
    r = a == 1.0 ? one : r;
    r = mf_bits_f64(mf_f64_bits(r) ^ sign);
    double broken = a < mf_bits_f64(0x7ff0000000000000u) ? mf_bits_f64(0x7ff8000000000000u) : r;
    broken = x < 0.0 ? broken : r;
    r = fraction == 0.0 ? r : broken;
    r = x == 1.0 ? 1.0 : r;
    return y == 0.0 ? 1.0 : r;
}

/* 2^66 |log x| is beyond all overflow and underflow unless |x| = 1, and no larger y makes the splits overflow. */
static inline double mf_pow_f64(double x, double y)
{
    double a = mf_bits_f64(mf_f64_bits(x) & 0x7fffffffffffffffu), infinity = mf_bits_f64(0x7ff0000000000000u);
    double c = y > 73786976294838206464.0 ? 73786976294838206464.0 : y;
    c = c < -73786976294838206464.0 ? -73786976294838206464.0 : c;
    double ll, pl, lh = mf_log_parts_f64(a, &ll);
    lh = a < infinity ? lh : a;
    lh = a == 0.0 ? -infinity : lh;
    double p = mf_product_f64(c, lh, &pl);
    double r = mf_exp_core_f64(p, pl + c * ll);
    r = p < -746.0 ? 0.0 : r;
    r = p > 710.0 ? infinity : r;
    return mf_pow_special_f64(x, y, r);
}

/* A double has bits enough for the logarithm and the product. */
static inline float mf_pow_f32(float x, float y)
{
    double a = mf_bits_f32(mf_f32_bits(x) & 0x7fffffffu);
    return (float)mf_pow_special_f64(x, y, mf_exp_f64((double)y * mf_log_f64(a)));
}

#endif
#endif
