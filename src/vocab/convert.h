/* Conversions between the element types and the classes, with the same bits everywhere: branch-free, so loops over them
 * vectorise, and without the 64-bit conversion instructions that SSE2 and AVX2 lack.
 *
 *   f16, bf16, f8e4m3, f8e5m2 are raw bits. f8e4m3 is the "fn" kind: no infinities, NaN is S.1111.111, greatest 448.
 *   to a float type    one rounding, to nearest even, whatever the source. Overflow gives infinity, in f8e4m3 NaN.
 *                      A NaN becomes the canonical one, whose sign is plus: f32 0x7fc00000, f64 0x7ff8000000000000,
 *                      f16 0x7e00, bf16 0x7fc0, f8e4m3 0x7f, f8e5m2 0x7e.
 *   from a small one   exact; a NaN is some NaN, which storing makes canonical.
 *   to an integer      towards zero, saturating, NaN to 0.
 *
 * Narrowing adds half a unit less one plus the last kept bit; below the least normal number it adds a power of two with
 * the type's unit (Giesen, "Float->half variants", 2012). 64-bit integers pass in two halves through the significands
 * of 2^52, 2^84 and 1.5 * 2^52. On the way through double to a shorter type they are rounded to odd (Boldo and
 * Melquiond 2008), so that only the second rounding counts. The build must keep subnormals, as for elementary.h. */
/* one line a conversion */
/* clang-format off */
#ifndef MF_VOCAB_CONVERT_H
#define MF_VOCAB_CONVERT_H

#if !defined(__OPENCL_VERSION__) && !defined(__CUDACC_RTC__)
#include "elementary.h" /* the bit casts */
#endif

/* ---- canonical NaN ---- */

static inline float mf_canon_f32(float x)
{
    return x == x ? x : mf_bits_f32(0x7fc00000u);
}

/* ---- the small types and f32 ---- */

#ifndef MF_VOCAB_HAS_F16 /* a prelude may have instructions for f16 and bf16 */
/* The exponent is moved by 112 = 127 - 15; a subnormal gets a leading one to be subtracted again. */
static inline float mf_f16_to_f32(uint16_t h)
{
    uint32_t a = (uint32_t)(h & 0x7fffu) << 13;
    uint32_t normal = a + (a < 0x0f800000u ? 0x38000000u : 0x70000000u);
    uint32_t tiny = mf_f32_bits(mf_bits_f32(a + 0x38800000u) - mf_bits_f32(0x38800000u));
    return mf_bits_f32((a < 0x00800000u ? tiny : normal) | (uint32_t)(h & 0x8000u) << 16);
}
#endif

#ifndef MF_VOCAB_HAS_BF16
static inline float mf_bf16_to_f32(uint16_t h)
{
    return mf_bits_f32((uint32_t)h << 16);
}
#endif

/* As f16, with 120 = 127 - 7. */
static inline float mf_f8e4m3_to_f32(uint8_t h)
{
    uint32_t a = (uint32_t)(h & 0x7fu) << 20;
    uint32_t normal = a < 0x07f00000u ? a + 0x3c000000u : 0x7fc00000u;
    uint32_t tiny = mf_f32_bits(mf_bits_f32(a + 0x3c800000u) - mf_bits_f32(0x3c800000u));
    return mf_bits_f32((a < 0x00800000u ? tiny : normal) | (uint32_t)(h & 0x80u) << 24);
}

/* f8e5m2 is the upper half of f16. */
static inline float mf_f8e5m2_to_f32(uint8_t h)
{
    return mf_f16_to_f32((uint16_t)(h << 8));
}

/* |x| rounded to a type of that many mantissa bits and that exponent bias, as its bits. cap is the least value whose
 * bits mean overflow; larger ones get the same. */
static inline uint32_t mf_f32_round(float x, uint32_t mantissa, uint32_t bias, float cap)
{
    uint32_t shift = 23u - mantissa;
    float a = mf_bits_f32(mf_f32_bits(x) & 0x7fffffffu);
    a = a < cap ? a : cap;
    uint32_t u = mf_f32_bits(a);
    uint32_t moved = u - ((127u - bias) << 23);
    uint32_t normal = (moved + ((1u << (shift - 1u)) - 1u) + ((u >> shift) & 1u)) >> shift;
    float unit = mf_bits_f32((128u - bias + shift) << 23);
    uint32_t tiny = mf_f32_bits(a + unit) - mf_f32_bits(unit);
    return a < mf_bits_f32((128u - bias) << 23) ? tiny : normal;
}

#ifndef MF_VOCAB_HAS_F16
static inline uint16_t mf_f32_to_f16(float x)
{
    uint32_t r = mf_f32_round(x, 10u, 15u, 65536.0f) | (mf_f32_bits(x) >> 16 & 0x8000u);
    return (uint16_t)(x == x ? r : 0x7e00u);
}

/* The carry of the rounding runs into the exponent, and from the largest into infinity. */
static inline uint16_t mf_f32_to_bf16(float x)
{
    uint32_t u = mf_f32_bits(x);
    u = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
    return (uint16_t)(x == x ? u : 0x7fc0u);
}
#endif

static inline uint8_t mf_f32_to_f8e4m3(float x)
{
    uint32_t r = mf_f32_round(x, 3u, 7u, 480.0f);
    r = r < 0x7fu ? r | (mf_f32_bits(x) >> 24 & 0x80u) : 0x7fu;
    return (uint8_t)(x == x ? r : 0x7fu);
}

static inline uint8_t mf_f32_to_f8e5m2(float x)
{
    uint32_t r = mf_f32_round(x, 2u, 15u, 65536.0f) | (mf_f32_bits(x) >> 24 & 0x80u);
    return (uint8_t)(x == x ? r : 0x7eu);
}

#ifndef MF_VOCAB_NO_F64

static inline double mf_canon_f64(double x)
{
    return x == x ? x : mf_bits_f64(0x7ff8000000000000u);
}

static inline float mf_f64_to_f32(double x)
{
    return mf_canon_f32((float)x);
}

static inline double mf_f32_to_f64(float x)
{
    return mf_canon_f64((double)x);
}

/* ---- the small types and f64 ---- */

static inline double mf_f16_to_f64(uint16_t h) { return (double)mf_f16_to_f32(h); }
static inline double mf_bf16_to_f64(uint16_t h) { return (double)mf_bf16_to_f32(h); }
static inline double mf_f8e4m3_to_f64(uint8_t h) { return (double)mf_f8e4m3_to_f32(h); }
static inline double mf_f8e5m2_to_f64(uint8_t h) { return (double)mf_f8e5m2_to_f32(h); }

/* As mf_f32_round. */
static inline uint32_t mf_f64_round(double x, uint32_t mantissa, uint32_t bias, double cap)
{
    uint32_t shift = 52u - mantissa;
    double a = mf_bits_f64(mf_f64_bits(x) & 0x7fffffffffffffffu);
    a = a < cap ? a : cap;
    uint64_t u = mf_f64_bits(a), one = 1u;
    uint64_t moved = u - ((uint64_t)(1023u - bias) << 52);
    uint64_t normal = (moved + ((one << (shift - 1u)) - one) + ((u >> shift) & one)) >> shift;
    double unit = mf_bits_f64((uint64_t)(1024u - bias + shift) << 52);
    uint64_t tiny = mf_f64_bits(a + unit) - mf_f64_bits(unit);
    return (uint32_t)(a < mf_bits_f64((uint64_t)(1024u - bias) << 52) ? tiny : normal);
}

/* The sign bit of x, as bit 15. */
static inline uint32_t mf_f64_sign16(double x)
{
    return (uint32_t)(mf_f64_bits(x) >> 48) & 0x8000u;
}

static inline uint16_t mf_f64_to_f16(double x)
{
    uint32_t r = mf_f64_round(x, 10u, 15u, 65536.0) | mf_f64_sign16(x);
    return (uint16_t)(x == x ? r : 0x7e00u);
}

static inline uint16_t mf_f64_to_bf16(double x)
{
    uint32_t r = mf_f64_round(x, 7u, 127u, 340282366920938463463374607431768211456.0) | mf_f64_sign16(x);
    return (uint16_t)(x == x ? r : 0x7fc0u);
}

static inline uint8_t mf_f64_to_f8e4m3(double x)
{
    uint32_t r = mf_f64_round(x, 3u, 7u, 480.0);
    r = r < 0x7fu ? r | mf_f64_sign16(x) >> 8 : 0x7fu;
    return (uint8_t)(x == x ? r : 0x7fu);
}

static inline uint8_t mf_f64_to_f8e5m2(double x)
{
    uint32_t r = mf_f64_round(x, 2u, 15u, 65536.0) | mf_f64_sign16(x) >> 8;
    return (uint8_t)(x == x ? r : 0x7eu);
}

/* ---- from 64-bit integers ---- */

/* Each half sits in the significand of a power of two; the high one is exact when both powers are taken off it. */
static inline double mf_u64_to_f64(uint64_t v)
{
    double low = mf_bits_f64((v & 0xffffffffu) | 0x4330000000000000u);
    double high = mf_bits_f64((v >> 32) | 0x4530000000000000u);
    return (high - 19342813118337666422669312.0) + low;
}

/* The sign bit flipped adds 2^63. */
static inline double mf_i64_to_f64(int64_t v)
{
    uint64_t u = (uint64_t)v ^ 0x8000000000000000u;
    double low = mf_bits_f64((u & 0xffffffffu) | 0x4330000000000000u);
    double high = mf_bits_f64((u >> 32) | 0x4530000000000000u);
    return (high - 19342822341709703277445120.0) + low;
}

/* Rounded to odd where double is too short: the low 11 bits of a large one become one bit, set if any of them was. */
static inline double mf_u64_to_odd(uint64_t v)
{
    uint64_t sticky = (v | ((v & 0x7ffu) + 0x7ffu)) & ~(uint64_t)0x7ffu;
    return mf_u64_to_f64(v >> 53 ? sticky : v);
}

static inline double mf_i64_to_odd(int64_t v)
{
    uint64_t u = (uint64_t)v;
    uint64_t sticky = (u | ((u & 0x7ffu) + 0x7ffu)) & ~(uint64_t)0x7ffu;
    uint64_t kept = (u + 0x0020000000000000u) >> 54 ? sticky : u;
    return mf_i64_to_f64((int64_t)kept);
}

static inline float mf_i64_to_f32(int64_t v) { return (float)mf_i64_to_odd(v); }
static inline uint16_t mf_i64_to_f16(int64_t v) { return mf_f64_to_f16(mf_i64_to_odd(v)); }
static inline uint16_t mf_i64_to_bf16(int64_t v) { return mf_f64_to_bf16(mf_i64_to_odd(v)); }
static inline uint8_t mf_i64_to_f8e4m3(int64_t v) { return mf_f64_to_f8e4m3(mf_i64_to_odd(v)); }
static inline uint8_t mf_i64_to_f8e5m2(int64_t v) { return mf_f64_to_f8e5m2(mf_i64_to_odd(v)); }

static inline float mf_u64_to_f32(uint64_t v) { return (float)mf_u64_to_odd(v); }
static inline uint16_t mf_u64_to_f16(uint64_t v) { return mf_f64_to_f16(mf_u64_to_odd(v)); }
static inline uint16_t mf_u64_to_bf16(uint64_t v) { return mf_f64_to_bf16(mf_u64_to_odd(v)); }
static inline uint8_t mf_u64_to_f8e4m3(uint64_t v) { return mf_f64_to_f8e4m3(mf_u64_to_odd(v)); }
static inline uint8_t mf_u64_to_f8e5m2(uint64_t v) { return mf_f64_to_f8e5m2(mf_u64_to_odd(v)); }

/* ---- to 64-bit integers ---- */

/* The integer part of 0 <= a < 2^64. Adding 1.5 * 2^52 rounds a / 2^32, then what is left of a, to integers and puts
 * them in the low bits as two's complement; where the second was rounded up, one is taken off. */
static inline uint64_t mf_f64_whole(double a)
{
    double magic = 6755399441055744.0;
    double high = a * 2.3283064365386963e-10 + magic;
    double rest = a - (high - magic) * 4294967296.0;
    double low = rest + magic;
    uint64_t up = low - magic > rest ? 1u : 0u;
    return ((mf_f64_bits(high) - mf_f64_bits(magic)) << 32) + (mf_f64_bits(low) - mf_f64_bits(magic)) - up;
}

static inline int64_t mf_f64_to_i64(double x)
{
    double a = mf_bits_f64(mf_f64_bits(x) & 0x7fffffffffffffffu);
    uint64_t v = mf_f64_whole(a);
    v = x < 0.0 ? 0u - v : v;
    v = a < 9223372036854775808.0 ? v : 0x7fffffffffffffffu;
    v = x <= -9223372036854775808.0 ? 0x8000000000000000u : v;
    return (int64_t)(x == x ? v : 0u);
}

static inline uint64_t mf_f64_to_u64(double x)
{
    uint64_t v = mf_f64_whole(x);
    v = x < 18446744073709551616.0 ? v : 0xffffffffffffffffu;
    return x >= 1.0 ? v : 0u;
}

static inline int64_t mf_f32_to_i64(float x) { return mf_f64_to_i64((double)x); }
static inline int64_t mf_f16_to_i64(uint16_t h) { return mf_f64_to_i64(mf_f16_to_f64(h)); }
static inline int64_t mf_bf16_to_i64(uint16_t h) { return mf_f64_to_i64(mf_bf16_to_f64(h)); }
static inline int64_t mf_f8e4m3_to_i64(uint8_t h) { return mf_f64_to_i64(mf_f8e4m3_to_f64(h)); }
static inline int64_t mf_f8e5m2_to_i64(uint8_t h) { return mf_f64_to_i64(mf_f8e5m2_to_f64(h)); }

static inline uint64_t mf_f32_to_u64(float x) { return mf_f64_to_u64((double)x); }
static inline uint64_t mf_f16_to_u64(uint16_t h) { return mf_f64_to_u64(mf_f16_to_f64(h)); }
static inline uint64_t mf_bf16_to_u64(uint16_t h) { return mf_f64_to_u64(mf_bf16_to_f64(h)); }
static inline uint64_t mf_f8e4m3_to_u64(uint8_t h) { return mf_f64_to_u64(mf_f8e4m3_to_f64(h)); }
static inline uint64_t mf_f8e5m2_to_u64(uint8_t h) { return mf_f64_to_u64(mf_f8e5m2_to_f64(h)); }

#endif
#endif
