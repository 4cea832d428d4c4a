/* Vector verbs, part two, for x86-64's base instructions. */
#ifndef MF_CPU_VEC_SSE2_H
#define MF_CPU_VEC_SSE2_H

#include <emmintrin.h>

#include "vec.h"

#define vkeep(v) __asm__("" : "+x"(v))
#define vread(v) __asm__ volatile("" : "+x"(v))
#define vapart(p) ((void)(p))
#define vstay(p) __asm__ volatile("" : : "r"(p) : "memory")
#define numbers_f32 vec_i32
#define numbers_f64 vec_i64
#define vall_f32(numbers) (vbits_32(~(numbers)) == 0)
#define vall_f64(numbers) (vbits_64(~(numbers)) == 0)
#define vmark_f32 vmark_plain_f32
#define vmark_f64 vmark_plain_f64
#define vscale_f32 vscale_plain_f32
#define vscale_f64 vscale_plain_f64
#define vadd_scaled_f32 vadd_scaled_plain_f32
#define vadd_scaled_f64 vadd_scaled_plain_f64

#define vmin_i8 vlesser_i8
#define vmax_i8 vgreater_i8
#define vmin_u16 vlesser_u16
#define vmax_u16 vgreater_u16

/* The C library's function, once a lane. */
MF_APART vec_f32 vfma_f32(vec_f32 x, vec_f32 y, vec_f32 z)
{
    return vfma_plain_f32(x, y, z);
}

MF_APART vec_f64 vfma_f64(vec_f64 x, vec_f64 y, vec_f64 z)
{
    return vfma_plain_f64(x, y, z);
}

static inline vec_u8 vmin_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm_min_epu8((__m128i)a, (__m128i)b);
}

static inline vec_u8 vmax_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm_max_epu8((__m128i)a, (__m128i)b);
}

static inline vec_i16 vmin_i16(vec_i16 a, vec_i16 b)
{
    return (vec_i16)_mm_min_epi16((__m128i)a, (__m128i)b);
}

static inline vec_i16 vmax_i16(vec_i16 a, vec_i16 b)
{
    return (vec_i16)_mm_max_epi16((__m128i)a, (__m128i)b);
}

static inline vec_f32 vabove_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm_max_ps((__m128)a, (__m128)b);
}

static inline vec_f64 vabove_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm_max_pd((__m128d)a, (__m128d)b);
}

static inline vec_f32 vbelow_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm_min_ps((__m128)a, (__m128)b);
}

static inline vec_f64 vbelow_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm_min_pd((__m128d)a, (__m128d)b);
}

static inline vec_i32 vnumbers_f32(vec_i32 so_far, vec_f32 a, vec_f32 b)
{
    return so_far & (vec_i32)_mm_cmpord_ps((__m128)a, (__m128)b);
}

static inline vec_i64 vnumbers_f64(vec_i64 so_far, vec_f64 a, vec_f64 b)
{
    return so_far & (vec_i64)_mm_cmpord_pd((__m128d)a, (__m128d)b);
}

/* MINPS and MAXPS give b when either is NaN; or-ing in the mask of a's NaNs (all ones is a NaN) mends the rest. */
static inline vec_f32 vmin_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm_or_ps(_mm_min_ps((__m128)a, (__m128)b), _mm_cmpunord_ps((__m128)a, (__m128)a));
}

static inline vec_f32 vmax_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm_or_ps(_mm_max_ps((__m128)a, (__m128)b), _mm_cmpunord_ps((__m128)a, (__m128)a));
}

static inline vec_f64 vmin_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm_or_pd(_mm_min_pd((__m128d)a, (__m128d)b), _mm_cmpunord_pd((__m128d)a, (__m128d)a));
}

static inline vec_f64 vmax_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm_or_pd(_mm_max_pd((__m128d)a, (__m128d)b), _mm_cmpunord_pd((__m128d)a, (__m128d)a));
}

#include "vec_plain.h"

static inline vec_u64 vsum_bytes(vec_u8 v)
{
    return (vec_u64)_mm_sad_epu8((__m128i)v, _mm_setzero_si128());
}

static inline vec_i32 vpair_sum_i16(vec_i16 v)
{
    return (vec_i32)_mm_madd_epi16((__m128i)v, _mm_set1_epi16(1));
}

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) _mm_stream_si128((__m128i *)(to), (__m128i)(v))

#endif
