/* Vector verbs, part two, for AVX-512 F, BW, DQ, VL. */
#ifndef MF_CPU_VEC_AVX512_H
#define MF_CPU_VEC_AVX512_H

#include <immintrin.h>

#include "vec.h"

#define vkeep(v) __asm__("" : "+v"(v))
#define vread(v) __asm__ volatile("" : "+v"(v))
#define vkeep4(a, b, c, d) __asm__("" : "+v"(a), "+v"(b), "+v"(c), "+v"(d))
#define vapart(p) __asm__("" : "+r"(p))
#define vstay(p) __asm__ volatile("" : : "r"(p) : "memory")

static inline vec_i8 vmin_i8(vec_i8 a, vec_i8 b)
{
    return (vec_i8)_mm512_min_epi8((__m512i)a, (__m512i)b);
}

static inline vec_i8 vmax_i8(vec_i8 a, vec_i8 b)
{
    return (vec_i8)_mm512_max_epi8((__m512i)a, (__m512i)b);
}

static inline vec_u8 vmin_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm512_min_epu8((__m512i)a, (__m512i)b);
}

static inline vec_u8 vmax_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm512_max_epu8((__m512i)a, (__m512i)b);
}

static inline vec_i16 vmin_i16(vec_i16 a, vec_i16 b)
{
    return (vec_i16)_mm512_min_epi16((__m512i)a, (__m512i)b);
}

static inline vec_i16 vmax_i16(vec_i16 a, vec_i16 b)
{
    return (vec_i16)_mm512_max_epi16((__m512i)a, (__m512i)b);
}

static inline vec_u16 vmin_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)_mm512_min_epu16((__m512i)a, (__m512i)b);
}

static inline vec_u16 vmax_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)_mm512_max_epu16((__m512i)a, (__m512i)b);
}

static inline vec_i32 vmin_i32(vec_i32 a, vec_i32 b)
{
    return (vec_i32)_mm512_min_epi32((__m512i)a, (__m512i)b);
}

static inline vec_i32 vmax_i32(vec_i32 a, vec_i32 b)
{
    return (vec_i32)_mm512_max_epi32((__m512i)a, (__m512i)b);
}

static inline vec_u32 vmin_u32(vec_u32 a, vec_u32 b)
{
    return (vec_u32)_mm512_min_epu32((__m512i)a, (__m512i)b);
}

static inline vec_u32 vmax_u32(vec_u32 a, vec_u32 b)
{
    return (vec_u32)_mm512_max_epu32((__m512i)a, (__m512i)b);
}

static inline vec_i64 vmin_i64(vec_i64 a, vec_i64 b)
{
    return (vec_i64)_mm512_min_epi64((__m512i)a, (__m512i)b);
}

static inline vec_i64 vmax_i64(vec_i64 a, vec_i64 b)
{
    return (vec_i64)_mm512_max_epi64((__m512i)a, (__m512i)b);
}

static inline vec_u64 vmin_u64(vec_u64 a, vec_u64 b)
{
    return (vec_u64)_mm512_min_epu64((__m512i)a, (__m512i)b);
}

static inline vec_u64 vmax_u64(vec_u64 a, vec_u64 b)
{
    return (vec_u64)_mm512_max_epu64((__m512i)a, (__m512i)b);
}

static inline vec_f32 vabove_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm512_max_ps((__m512)a, (__m512)b);
}

static inline vec_f64 vabove_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm512_max_pd((__m512d)a, (__m512d)b);
}

static inline vec_f32 vbelow_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm512_min_ps((__m512)a, (__m512)b);
}

static inline vec_f64 vbelow_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm512_min_pd((__m512d)a, (__m512d)b);
}

#define MF_HAVE_FMA

static inline vec_f32 vfma_f32(vec_f32 x, vec_f32 y, vec_f32 z)
{
    return (vec_f32)_mm512_fmadd_ps((__m512)x, (__m512)y, (__m512)z);
}

static inline vec_f64 vfma_f64(vec_f64 x, vec_f64 y, vec_f64 z)
{
    return (vec_f64)_mm512_fmadd_pd((__m512d)x, (__m512d)y, (__m512d)z);
}

static inline vec_f32 vscale_f32(vec_f32 v, vec_f32 n, vec_f32 t)
{
    (void)t;
    return (vec_f32)_mm512_scalef_ps((__m512)v, (__m512)n);
}

static inline vec_f64 vscale_f64(vec_f64 v, vec_f64 n, vec_f64 t)
{
    (void)t;
    return (vec_f64)_mm512_scalef_pd((__m512d)v, (__m512d)n);
}

static inline vec_f32 vadd_scaled_f32(vec_f32 sum, vec_f32 v, vec_f32 n, vec_f32 t)
{
    return sum + vscale_f32(v, n, t);
}

static inline vec_f64 vadd_scaled_f64(vec_f64 sum, vec_f64 v, vec_f64 n, vec_f64 t)
{
    return sum + vscale_f64(v, n, t);
}

/* VMINPS and VMAXPS give b when either is NaN: lanes where a is NaN keep a. */
static inline vec_f32 vmin_f32(vec_f32 a, vec_f32 b)
{
    const __mmask16 number = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q);
    return (vec_f32)_mm512_mask_min_ps((__m512)a, number, (__m512)a, (__m512)b);
}

static inline vec_f32 vmax_f32(vec_f32 a, vec_f32 b)
{
    const __mmask16 number = _mm512_cmp_ps_mask((__m512)a, (__m512)a, _CMP_ORD_Q);
    return (vec_f32)_mm512_mask_max_ps((__m512)a, number, (__m512)a, (__m512)b);
}

static inline vec_f64 vmin_f64(vec_f64 a, vec_f64 b)
{
    const __mmask8 number = _mm512_cmp_pd_mask((__m512d)a, (__m512d)a, _CMP_ORD_Q);
    return (vec_f64)_mm512_mask_min_pd((__m512d)a, number, (__m512d)a, (__m512d)b);
}

static inline vec_f64 vmax_f64(vec_f64 a, vec_f64 b)
{
    const __mmask8 number = _mm512_cmp_pd_mask((__m512d)a, (__m512d)a, _CMP_ORD_Q);
    return (vec_f64)_mm512_mask_max_pd((__m512d)a, number, (__m512d)a, (__m512d)b);
}

typedef __mmask16 numbers_f32;
typedef __mmask8 numbers_f64;

#define vall_f32(numbers) ((numbers) == 0xffff)
#define vall_f64(numbers) ((numbers) == 0xff)

static inline numbers_f32 vnumbers_f32(numbers_f32 so_far, vec_f32 a, vec_f32 b)
{
    return _mm512_mask_cmp_ps_mask(so_far, (__m512)a, (__m512)b, _CMP_ORD_Q);
}

static inline numbers_f64 vnumbers_f64(numbers_f64 so_far, vec_f64 a, vec_f64 b)
{
    return _mm512_mask_cmp_pd_mask(so_far, (__m512d)a, (__m512d)b, _CMP_ORD_Q);
}

static inline vec_f32 vmark_f32(vec_f32 v, numbers_f32 numbers)
{
    return (vec_f32)_mm512_mask_mov_ps(_mm512_set1_ps(__builtin_nanf("")), numbers, (__m512)v);
}

static inline vec_f64 vmark_f64(vec_f64 v, numbers_f64 numbers)
{
    return (vec_f64)_mm512_mask_mov_pd(_mm512_set1_pd(__builtin_nan("")), numbers, (__m512d)v);
}

/* The mask of the first m of 32 lanes at most. */
static inline uint64_t vfirst(int64_t m)
{
    return (UINT64_C(1) << m) - 1;
}

#define MASKED(s, mask, load)                                                        \
    static inline vec_##s vload_part_##s(const type_##s *p, int64_t m, vec_##s fill) \
    {                                                                                \
        return (vec_##s)_mm512_mask_loadu_##load((__m512i)fill, (mask)vfirst(m), p); \
    }                                                                                \
    static inline void vput_##s(type_##s *p, int64_t m, vec_##s v)                   \
    {                                                                                \
        _mm512_mask_storeu_##load(p, (mask)vfirst(m), (__m512i)v);                   \
    }
MASKED(i8, __mmask64, epi8)
MASKED(u8, __mmask64, epi8)
MASKED(i16, __mmask32, epi16)
MASKED(u16, __mmask32, epi16)
MASKED(i32, __mmask16, epi32)
MASKED(u32, __mmask16, epi32)
MASKED(i64, __mmask8, epi64)
MASKED(u64, __mmask8, epi64)
MASKED(f32, __mmask16, epi32)
MASKED(f64, __mmask8, epi64)
#undef MASKED
#define vstore_part_i8 vput_i8
#define vstore_part_u8 vput_u8
#define vstore_part_i16 vput_i16
#define vstore_part_u16 vput_u16
#define vstore_part_i32 vput_i32
#define vstore_part_u32 vput_u32
#define vstore_part_i64 vput_i64
#define vstore_part_u64 vput_u64
#define vstore_part_f32 vput_f32
#define vstore_part_f64 vput_f64

static inline vec_u32 vpermute_32(vec_u32 v, vec_u32 index)
{
    return (vec_u32)_mm512_permutexvar_epi32((__m512i)index, (__m512i)v);
}

static inline vec_u64 vpermute_64(vec_u64 v, vec_u64 index)
{
    return (vec_u64)_mm512_permutexvar_epi64((__m512i)index, (__m512i)v);
}

static inline uint64_t vbits_8(vec_i8 mask)
{
    return _mm512_movepi8_mask((__m512i)mask);
}

static inline unsigned vbits_32(vec_i32 mask)
{
    return _mm512_movepi32_mask((__m512i)mask);
}

static inline unsigned vbits_64(vec_i64 mask)
{
    return _mm512_movepi64_mask((__m512i)mask);
}

static inline vec_i16 vwiden_i8(vec_half_i8 v)
{
    return (vec_i16)_mm512_cvtepi8_epi16((__m256i)v);
}

static inline vec_u16 vwiden_u8(vec_half_u8 v)
{
    return (vec_u16)_mm512_cvtepu8_epi16((__m256i)v);
}

static inline vec_i32 vwiden_i16(vec_half_i16 v)
{
    return (vec_i32)_mm512_cvtepi16_epi32((__m256i)v);
}

static inline vec_u32 vwiden_u16(vec_half_u16 v)
{
    return (vec_u32)_mm512_cvtepu16_epi32((__m256i)v);
}

static inline vec_i64 vwiden_i32(vec_half_i32 v)
{
    return (vec_i64)_mm512_cvtepi32_epi64((__m256i)v);
}

static inline vec_u64 vwiden_u32(vec_half_u32 v)
{
    return (vec_u64)_mm512_cvtepu32_epi64((__m256i)v);
}

static inline vec_f32 vwiden_bf16(vec_half_u16 v)
{
    return (vec_f32)(vwiden_u16(v) << 16);
}

static inline vec_f32 vload_bf16(const uint16_t *p)
{
    return vwiden_bf16(vload_half_u16(p));
}

static inline vec_i64 vload_long_i16(const int16_t *p)
{
    return (vec_i64)_mm512_cvtepi16_epi64(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vec_u64 vload_long_u16(const uint16_t *p)
{
    return (vec_u64)_mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(const void *)p));
}

static inline vec_u64 vload_long_i32(const int32_t *p)
{
    return (vec_u64)vwiden_i32(vload_half_i32(p));
}

static inline vec_u64 vload_long_u32(const uint32_t *p)
{
    return vwiden_u32(vload_half_u32(p));
}

/* Byte index[i] of 16, or 0 where that is 128. */
#define MF_HAVE_LOOKUP
typedef uint8_t vec_piece __attribute__((vector_size(16)));
MF_INLINE vec_piece vlookup(vec_piece v, vec_piece index)
{
    return (vec_piece)_mm_shuffle_epi8((__m128i)v, (__m128i)index);
}

MF_INLINE vec_u8 vload_pieces(const void *p, int64_t step, int bytes)
{
    const char *const at = p;
    if (bytes == 64)
        return vload_u8(p);
    if (bytes == 32)
        return (vec_u8)_mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(p)),
                                          _mm256_loadu_si256((const void *)(at + step)), 1);
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128(p));
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(at + step)), 1);
    v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(at + 2 * step)), 2);
    return (vec_u8)_mm512_inserti32x4(v, _mm_loadu_si128((const void *)(at + 3 * step)), 3);
}

/* A piece of 16 bytes has two words. */
static inline vec_u64 vload_words(const void *p, int64_t step)
{
    const __m128i second = _mm_set1_epi64x(0x0706050403020100 + step * 0x0101010101010101);
    const __m128i index = _mm_unpacklo_epi64(_mm_set1_epi64x(0x0706050403020100), second);
    return (vec_u64)_mm512_shuffle_epi8((__m512i)vload_pieces(p, 2 * step, 16), _mm512_broadcast_i32x4(index));
}

static inline vec_u64 vload_part_long_i32(const int32_t *p, int64_t m, vec_u64 fill)
{
    const __mmask8 first = (__mmask8)vfirst(m);
    return (vec_u64)_mm512_mask_cvtepi32_epi64((__m512i)fill, first, _mm256_maskz_loadu_epi32(first, p));
}

static inline vec_u64 vload_part_long_u32(const uint32_t *p, int64_t m, vec_u64 fill)
{
    const __mmask8 first = (__mmask8)vfirst(m);
    return (vec_u64)_mm512_mask_cvtepu32_epi64((__m512i)fill, first, _mm256_maskz_loadu_epi32(first, p));
}

/* The empty statement hides where v comes from: clang 14 would move a later test for NaN to the 16-bit value, and do
 * it one element at a time. */
static inline vec_f32 vwiden_f16(vec_half_u16 h)
{
    vec_f32 v = (vec_f32)_mm512_cvtph_ps((__m256i)h);
    __asm__("" : "+v"(v));
    return v;
}

#define MF_HAVE_F16C

static inline vec_u16 vjoin_u16(vec_half_u16 a, vec_half_u16 b)
{
    return (vec_u16)_mm512_inserti64x4(_mm512_castsi256_si512((__m256i)a), (__m256i)b, 1);
}

static inline vec_half_u16 vnarrow_f16(vec_f32 v)
{
    return (vec_half_u16)_mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec_f32 vload_f16(const uint16_t *p)
{
    return vwiden_f16(vload_half_u16(p));
}

static inline vec_f32 vload_part_f16(const uint16_t *p, int64_t m, vec_f32 fill)
{
    const __mmask16 first = (__mmask16)vfirst(m);
    const vec_f32 v = vwiden_f16((vec_half_u16)_mm256_maskz_loadu_epi16(first, p));
    return (vec_f32)_mm512_mask_mov_ps((__m512)fill, first, (__m512)v);
}

static inline vec_f32 vload_part_bf16(const uint16_t *p, int64_t m, vec_f32 fill)
{
    const __mmask16 first = (__mmask16)vfirst(m);
    const vec_f32 v = vwiden_bf16((vec_half_u16)_mm256_maskz_loadu_epi16(first, p));
    return (vec_f32)_mm512_mask_mov_ps((__m512)fill, first, (__m512)v);
}

static inline vec_u64 vsum_bytes(vec_u8 v)
{
    return (vec_u64)_mm512_sad_epu8((__m512i)v, _mm512_setzero_si512());
}

static inline vec_i32 vpair_sum_i16(vec_i16 v)
{
    return (vec_i32)_mm512_madd_epi16((__m512i)v, _mm512_set1_epi16(1));
}

static inline vec_u16 vpair_sum_u8(vec_u8 v)
{
    return (vec_u16)_mm512_maddubs_epi16((__m512i)v, _mm512_set1_epi8(1));
}

static inline vec_u16 vmean_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)_mm512_avg_epu16((__m512i)a, (__m512i)b);
}

static inline vec_u32 vpair_squares_u16(vec_u16 v)
{
    return (vec_u32)_mm512_madd_epi16((__m512i)v, (__m512i)v);
}

static inline vec_u8 vzip_low_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm512_unpacklo_epi8((__m512i)a, (__m512i)b);
}

static inline vec_u8 vzip_high_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm512_unpackhi_epi8((__m512i)a, (__m512i)b);
}

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) _mm512_stream_si512((__m512i *)(to), (__m512i)(v))

#endif
