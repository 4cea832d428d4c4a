/* The conversions: every 8- and 16-bit value both ways, every tie between neighbours, double roundings, integers. */
#include "../src/vocab/convert.h"
#include "check.h"

#include <math.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * 2685821657736338717u;
}

/* ---- the small types, as data ---- */

/* The functions over arrays, so that the vectorised code is what is tested. */
struct small {
    const char *name;
    int bytes, mantissa, bias;
    uint32_t greatest; /* the bits of the greatest finite number */
    uint32_t overflow; /* what follows it: infinity, or NaN */
    uint32_t nan;
    void (*decode32)(float *, const uint16_t *, int);
    void (*decode64)(double *, const uint16_t *, int);
    void (*encode32)(uint16_t *, const float *, int);
    void (*encode64)(uint16_t *, const double *, int);
};

#define EACH(n, statement)          \
    for (int i = 0; i < (n); i++) { \
        statement;                  \
    }
#define MAP(name, f, T, S, cast)                                        \
    __attribute__((noinline)) static void name(T *o, const S *x, int n) \
    {                                                                   \
        EACH(n, o[i] = f((cast)x[i]))                                   \
    }
#define DECODE(name, f, T, storage) MAP(name, f, T, uint16_t, storage)
#define ENCODE(name, f, S) MAP(name, f, uint16_t, S, S)
DECODE(decode32_f16, mf_f16_to_f32, float, uint16_t)
DECODE(decode64_f16, mf_f16_to_f64, double, uint16_t)
ENCODE(encode32_f16, mf_f32_to_f16, float)
ENCODE(encode64_f16, mf_f64_to_f16, double)
DECODE(decode32_bf16, mf_bf16_to_f32, float, uint16_t)
DECODE(decode64_bf16, mf_bf16_to_f64, double, uint16_t)
ENCODE(encode32_bf16, mf_f32_to_bf16, float)
ENCODE(encode64_bf16, mf_f64_to_bf16, double)
DECODE(decode32_f8e4m3, mf_f8e4m3_to_f32, float, uint8_t)
DECODE(decode64_f8e4m3, mf_f8e4m3_to_f64, double, uint8_t)
ENCODE(encode32_f8e4m3, mf_f32_to_f8e4m3, float)
ENCODE(encode64_f8e4m3, mf_f64_to_f8e4m3, double)
DECODE(decode32_f8e5m2, mf_f8e5m2_to_f32, float, uint8_t)
DECODE(decode64_f8e5m2, mf_f8e5m2_to_f64, double, uint8_t)
ENCODE(encode32_f8e5m2, mf_f32_to_f8e5m2, float)
ENCODE(encode64_f8e5m2, mf_f64_to_f8e5m2, double)

static const struct small types[] = {
    {"f16", 2, 10, 15, 0x7bffu, 0x7c00u, 0x7e00u, decode32_f16, decode64_f16, encode32_f16, encode64_f16},
    {"bf16", 2, 7, 127, 0x7f7fu, 0x7f80u, 0x7fc0u, decode32_bf16, decode64_bf16, encode32_bf16, encode64_bf16},
    {"f8e4m3", 1, 3, 7, 0x7eu, 0x7fu, 0x7fu, decode32_f8e4m3, decode64_f8e4m3, encode32_f8e4m3, encode64_f8e4m3},
    {"f8e5m2", 1, 2, 15, 0x7bu, 0x7cu, 0x7eu, decode32_f8e5m2, decode64_f8e5m2, encode32_f8e5m2, encode64_f8e5m2},
};

static uint32_t sign_of(const struct small *t)
{
    return t->bytes == 2 ? 0x8000u : 0x80u;
}

/* The value of the magnitude bits, written from the definition; past the greatest it is what would follow it. */
static double value_of(const struct small *t, uint32_t bits)
{
    int exponent = (int)(bits >> t->mantissa), significand = (int)(bits & ((1u << t->mantissa) - 1u));
    if (exponent)
        return ldexp(significand + (1 << t->mantissa), exponent - t->bias - t->mantissa);
    return ldexp(significand, 1 - t->bias - t->mantissa);
}

/* ---- decoding, and there and back ---- */

static void round_trip(const struct small *t)
{
    enum { MOST = 1 << 16 };
    static uint16_t h[MOST], a[MOST], b[MOST];
    static float f[MOST];
    static double d[MOST];
    int n = 1 << 8 * t->bytes;
    for (int i = 0; i < n; i++)
        h[i] = (uint16_t)i;
    t->decode32(f, h, n);
    t->decode64(d, h, n);
    t->encode32(a, f, n);
    t->encode64(b, d, n);
    for (int i = 0; i < n; i++) {
        uint32_t magnitude = (uint32_t)i & (sign_of(t) - 1u);
        int negative = ((uint32_t)i & sign_of(t)) != 0;
        if (magnitude > t->greatest && (magnitude > t->overflow || t->overflow == t->nan)) {
            CHECK_MSG(isnan(f[i]) && isnan(d[i]), "%s %x is no NaN", t->name, (unsigned)i);
            CHECK_MSG(a[i] == t->nan && b[i] == t->nan, "%s NaN %x became %x, %x", t->name, (unsigned)i, a[i], b[i]);
            continue;
        }
        double value = magnitude > t->greatest ? (double)INFINITY : value_of(t, magnitude);
        CHECK_MSG(fabs(d[i]) == value && !signbit(d[i]) == !negative, "%s %x is %a", t->name, (unsigned)i, d[i]);
        CHECK_MSG(mf_f64_bits((double)f[i]) == mf_f64_bits(d[i]), "%s %x is %a", t->name, (unsigned)i, (double)f[i]);
        CHECK_MSG(a[i] == i && b[i] == i, "%s %x came back as %x, %x", t->name, (unsigned)i, a[i], b[i]);
    }
}

/* ---- encoding ---- */

/* Both signs of x, from double and, where it is one, from float. */
static void expect(const struct small *t, double x, uint32_t want)
{
    for (int k = 0; k < 2; k++) {
        double d = k ? -x : x;
        float f = (float)d;
        uint16_t a, b;
        t->encode32(&a, &f, 1);
        t->encode64(&b, &d, 1);
        uint32_t bits = want == t->nan ? want : want | (k ? sign_of(t) : 0u);
        CHECK_MSG(b == bits, "%s of double %a is %x, not %x", t->name, d, b, bits);
        CHECK_MSG(a == bits || (double)f != d, "%s of float %a is %x, not %x", t->name, d, a, bits);
    }
}

/* Around the middle of every two neighbours, a double's and a float's unit apart: the tie goes to the even one. */
static void ties(const struct small *t)
{
    for (uint32_t low = 0; low <= t->greatest; low++) {
        uint32_t high = low == t->greatest ? t->overflow : low + 1u;
        double middle = 0.5 * (value_of(t, low) + value_of(t, low + 1u));
        expect(t, middle, low & 1u ? high : low);
        expect(t, nextafter(middle, 0.0), low);
        expect(t, nextafter(middle, (double)INFINITY), high);
        if ((double)(float)middle == middle) {
            expect(t, (double)nextafterf((float)middle, 0.0f), low);
            expect(t, (double)nextafterf((float)middle, INFINITY), high);
        }
    }
}

static void extremes(const struct small *t)
{
    expect(t, 0.0, 0u);
    expect(t, 0x1p-149, 0u);
    expect(t, 0x1p-1074, 0u);
    expect(t, 0x1.fffffffffffffp1023, t->overflow);
    expect(t, (double)INFINITY, t->overflow);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t u = random_bits(), v = random_bits();
        double d = mf_bits_f64((u & 0x800fffffffffffffu) | 0x7ff0000000000001u);
        float f = mf_bits_f32((uint32_t)(v & 0x807fffffu) | 0x7f800001u);
        uint16_t a, b;
        t->encode32(&a, &f, 1);
        t->encode64(&b, &d, 1);
        CHECK(a == t->nan && b == t->nan);
    }
}

/* Float's path and double's share no code beyond the method. */
static void float_and_double_agree(const struct small *t)
{
    enum { PIECE = 4096 };
    static float f[PIECE];
    static double d[PIECE];
    static uint16_t a[PIECE], b[PIECE];
    long differ = 0;
    for (uint64_t u = 0; u <= 0xffffffffu;) {
        int n = 0;
        for (; n < PIECE && u <= 0xffffffffu; n++, u += 997) {
            f[n] = mf_bits_f32((uint32_t)u);
            d[n] = (double)f[n];
        }
        t->encode32(a, f, n);
        t->encode64(b, d, n);
        for (int i = 0; i < n; i++)
            differ += a[i] != b[i];
    }
    CHECK_MSG(differ == 0, "%s: %ld floats differ from their doubles", t->name, differ);
}

/* ---- from 64-bit integers ---- */

/* v rounded to that many bits, to nearest even, in integers only; exact as a double for up to 53. */
static double rounded(uint64_t v, int bits)
{
    int drop = 0;
    while (v >> drop >> bits)
        drop++;
    if (!drop)
        return (double)v;
    uint64_t kept = v >> drop, rest = v - (kept << drop), half = (uint64_t)1 << (drop - 1);
    kept += rest > half || (rest == half && (kept & 1u));
    return ldexp((double)kept, drop);
}

static void from_integer(uint64_t v)
{
    int negative = v >> 63 != 0;
    uint64_t a = negative ? 0u - v : v;
    double sign = negative ? -1.0 : 1.0;
    int64_t s = (int64_t)v;
    CHECK_MSG(mf_u64_to_f64(v) == rounded(v, 53), "u64 %llx to f64", (unsigned long long)v);
    CHECK_MSG((double)mf_u64_to_f32(v) == rounded(v, 24), "u64 %llx to f32", (unsigned long long)v);
    CHECK_MSG(mf_i64_to_f64(s) == sign * rounded(a, 53), "i64 %llx to f64", (unsigned long long)v);
    CHECK_MSG((double)mf_i64_to_f32(s) == sign * rounded(a, 24), "i64 %llx to f32", (unsigned long long)v);
    CHECK(mf_u64_to_bf16(v) == mf_f64_to_bf16(rounded(v, 8)));
    CHECK(mf_i64_to_bf16(s) == mf_f64_to_bf16(sign * rounded(a, 8)));
    CHECK(mf_u64_to_f16(v) == mf_f64_to_f16(rounded(v, 11)));
    CHECK(mf_i64_to_f16(s) == mf_f64_to_f16(sign * rounded(a, 11)));
    CHECK(mf_u64_to_f8e4m3(v) == mf_f64_to_f8e4m3(rounded(v, 4)));
    CHECK(mf_i64_to_f8e4m3(s) == mf_f64_to_f8e4m3(sign * rounded(a, 4)));
    CHECK(mf_u64_to_f8e5m2(v) == mf_f64_to_f8e5m2(rounded(v, 3)));
    CHECK(mf_i64_to_f8e5m2(s) == mf_f64_to_f8e5m2(sign * rounded(a, 3)));
}

/* Ties of every target, at every size, one off in both directions: where rounding twice goes wrong. */
static void from_integers(void)
{
    static const int bits[] = {3, 4, 8, 11, 24, 53};
    for (uint64_t v = 0; v < 70000; v += v < 2000 ? 1 : 7)
        from_integer(v), from_integer(0u - v);
    for (int i = 0; i < 100000; i++)
        from_integer(random_bits() >> (i & 63));
    for (int k = 0; k < 6; k++)
        for (int top = bits[k] + 1; top <= 64; top++)
            for (uint64_t odd = 0; odd < 2; odd++)
                for (uint64_t off = 0; off < 3; off++) {
                    uint64_t unit = (uint64_t)1 << (top - bits[k] - 1);
                    uint64_t v = ((uint64_t)1 << (top - 1)) + (odd * 2u + 1u) * unit + off - 1u;
                    from_integer(v), from_integer(0u - v);
                }
}

/* ---- to 64-bit integers ---- */

static void to_integer(double x)
{
    int64_t i = x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
    uint64_t u = x != x || x <= -1.0 ? 0 : x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
    CHECK_MSG(mf_f64_to_i64(x) == i, "%a to i64 is %lld", x, (long long)mf_f64_to_i64(x));
    CHECK_MSG(mf_f64_to_u64(x) == u, "%a to u64 is %llu", x, (unsigned long long)mf_f64_to_u64(x));
    if ((double)(float)x == x || x != x)
        CHECK(mf_f32_to_i64((float)x) == i && mf_f32_to_u64((float)x) == u);
}

static void to_integers(void)
{
    static const double values[] = {0.0,    0.5,    0.99,   1.0,       1.5,          2.5,
                                    0x1p31, 0x1p32, 0x1p33, 0x1p52,    0x1p53,       0x1p62,
                                    0x1p63, 0x1p64, 1e300,  0x1p-1074, 0x1p32 * 7.5, 0x1p31 + 0.5};
    for (size_t k = 0; k < sizeof values / sizeof *values; k++)
        for (int sign = -1; sign < 2; sign += 2) {
            double x = sign * values[k];
            to_integer(x), to_integer(nextafter(x, (double)INFINITY)), to_integer(nextafter(x, (double)-INFINITY));
        }
    to_integer((double)INFINITY), to_integer((double)-INFINITY), to_integer((double)NAN);
    for (int i = 0; i < 200000; i++) {
        uint64_t exponent = 1023u - 4u + random_bits() % 72u;
        to_integer(mf_bits_f64((random_bits() & 0x800fffffffffffffu) | exponent << 52));
        to_integer((double)(float)mf_bits_f64((random_bits() & 0x800fffffffffffffu) | exponent << 52));
    }
    for (uint32_t h = 0; h < 65536; h++) {
        CHECK(mf_f16_to_i64((uint16_t)h) == mf_f32_to_i64(mf_f16_to_f32((uint16_t)h)));
        CHECK(mf_bf16_to_u64((uint16_t)h) == mf_f32_to_u64(mf_bf16_to_f32((uint16_t)h)));
    }
    CHECK(mf_f8e4m3_to_i64(0xfeu) == -448 && mf_f8e4m3_to_u64(0x7eu) == 448 && mf_f8e4m3_to_i64(0x7fu) == 0);
    CHECK(mf_f8e5m2_to_i64(0xfbu) == -57344 && mf_f8e5m2_to_u64(0x7bu) == 57344);
    CHECK(mf_f8e5m2_to_i64(0xfcu) == INT64_MIN && mf_f8e5m2_to_u64(0xfcu) == 0);
    CHECK(mf_f16_to_u64(0x7c00u) == UINT64_MAX && mf_bf16_to_i64(0x7f80u) == INT64_MAX);
}

/* ---- canonical NaN ---- */

static void canonical(void)
{
    for (uint32_t sign = 0; sign < 2; sign++) {
        float f = mf_bits_f32(0x7f800001u | sign << 31);
        double d = mf_bits_f64(0x7ff0000000000001u | (uint64_t)sign << 63);
        CHECK(mf_f32_bits(mf_canon_f32(f)) == 0x7fc00000u && mf_f64_bits(mf_canon_f64(d)) == 0x7ff8000000000000u);
        CHECK(mf_f32_bits(mf_f64_to_f32(d)) == 0x7fc00000u && mf_f64_bits(mf_f32_to_f64(f)) == 0x7ff8000000000000u);
    }
    CHECK(mf_f32_bits(mf_canon_f32(-0.0f)) == 0x80000000u && mf_f64_bits(mf_canon_f64(-0.0)) == 0x8000000000000000u);
    CHECK(mf_canon_f32(-INFINITY) == -INFINITY && mf_canon_f64(1.5) == 1.5);
    CHECK(mf_f64_to_f32(1.0 + 0x1p-24) == 1.0f && mf_f64_to_f32(1.0 + 0x1.8p-24) == 1.0f + 0x1p-23f);
    CHECK(mf_f64_to_f32(1e300) == INFINITY && mf_f64_to_f32(0x1p-150) == 0.0f);
}

int main(void)
{
    for (int i = 0; i < 4; i++) {
        round_trip(&types[i]);
        ties(&types[i]);
        extremes(&types[i]);
        float_and_double_agree(&types[i]);
    }
    from_integers();
    to_integers();
    canonical();
    return check_done("test_convert");
}
