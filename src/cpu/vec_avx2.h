/* Vector verbs, part two, for AVX2 with F16C. */
#ifndef MF_CPU_VEC_AVX2_H
#define MF_CPU_VEC_AVX2_H

#include <immintrin.h>

#include "vec.h"

#define vkeep(v) __asm__("" : "+x"(v))
#define vread(v) __asm__ volatile("" : "+x"(v))
#define vapart(p) ((void)(p))
#define vstay(p) __asm__ volatile("" : : "r"(p) : "memory")
#define MF_HAVE_FMA
#define numbers_f32 vec_i32
#define numbers_f64 vec_i64
#define vall_f32(numbers) (vbits_32(~(numbers)) == 0)
#define vall_f64(numbers) (vbits_64(~(numbers)) == 0)
#define vmark_f32 vmark_plain_f32
#define vmark_f64 vmark_plain_f64
#define vscale_f32 vscale_plain_f32
#define vscale_f64 vscale_plain_f64

static inline vec_f32 vfma_f32(vec_f32 x, vec_f32 y, vec_f32 z)
{
    return (vec_f32)_mm256_fmadd_ps((__m256)x, (__m256)y, (__m256)z);
}

static inline vec_f64 vfma_f64(vec_f64 x, vec_f64 y, vec_f64 z)
{
    return (vec_f64)_mm256_fmadd_pd((__m256d)x, (__m256d)y, (__m256d)z);
}

static inline vec_f32 vadd_scaled_f32(vec_f32 sum, vec_f32 v, vec_f32 n, vec_f32 t)
{
    (void)n;
    return vfma_f32(v, (vec_f32)((vec_u32)t << 23), sum);
}

static inline vec_f64 vadd_scaled_f64(vec_f64 sum, vec_f64 v, vec_f64 n, vec_f64 t)
{
    (void)n;
    return vfma_f64(v, (vec_f64)((vec_u64)t << 52), sum);
}

static inline vec_i8 vmin_i8(vec_i8 a, vec_i8 b)
{
    return (vec_i8)_mm256_min_epi8((__m256i)a, (__m256i)b);
}

static inline vec_i8 vmax_i8(vec_i8 a, vec_i8 b)
{
    return (vec_i8)_mm256_max_epi8((__m256i)a, (__m256i)b);
}

static inline vec_u8 vmin_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm256_min_epu8((__m256i)a, (__m256i)b);
}

static inline vec_u8 vmax_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm256_max_epu8((__m256i)a, (__m256i)b);
}

static inline vec_i16 vmin_i16(vec_i16 a, vec_i16 b)
{
    return (vec_i16)_mm256_min_epi16((__m256i)a, (__m256i)b);
}

static inline vec_i16 vmax_i16(vec_i16 a, vec_i16 b)
{
    return (vec_i16)_mm256_max_epi16((__m256i)a, (__m256i)b);
}

static inline vec_u16 vmin_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)_mm256_min_epu16((__m256i)a, (__m256i)b);
}

static inline vec_u16 vmax_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)_mm256_max_epu16((__m256i)a, (__m256i)b);
}

static inline vec_i32 vmin_i32(vec_i32 a, vec_i32 b)
{
    return (vec_i32)_mm256_min_epi32((__m256i)a, (__m256i)b);
}

static inline vec_i32 vmax_i32(vec_i32 a, vec_i32 b)
{
    return (vec_i32)_mm256_max_epi32((__m256i)a, (__m256i)b);
}

static inline vec_u32 vmin_u32(vec_u32 a, vec_u32 b)
{
    return (vec_u32)_mm256_min_epu32((__m256i)a, (__m256i)b);
}

static inline vec_u32 vmax_u32(vec_u32 a, vec_u32 b)
{
    return (vec_u32)_mm256_max_epu32((__m256i)a, (__m256i)b);
}

#define vmin_i64 vlesser_i64
#define vmax_i64 vgreater_i64
#define vmin_u64 vlesser_u64
#define vmax_u64 vgreater_u64

static inline vec_f32 vabove_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm256_max_ps((__m256)a, (__m256)b);
}

static inline vec_f64 vabove_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm256_max_pd((__m256d)a, (__m256d)b);
}

static inline vec_f32 vbelow_f32(vec_f32 a, vec_f32 b)
{
    return (vec_f32)_mm256_min_ps((__m256)a, (__m256)b);
}

static inline vec_f64 vbelow_f64(vec_f64 a, vec_f64 b)
{
    return (vec_f64)_mm256_min_pd((__m256d)a, (__m256d)b);
}

static inline vec_i32 vnumbers_f32(vec_i32 so_far, vec_f32 a, vec_f32 b)
{
    return so_far & (vec_i32)_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_ORD_Q);
}

static inline vec_i64 vnumbers_f64(vec_i64 so_far, vec_f64 a, vec_f64 b)
{
    return so_far & (vec_i64)_mm256_cmp_pd((__m256d)a, (__m256d)b, _CMP_ORD_Q);
}

/* VMINPS and VMAXPS give b when either is NaN; or-ing in the mask of a's NaNs (all ones is a NaN) mends the rest. */
static inline vec_f32 vmin_f32(vec_f32 a, vec_f32 b)
{
    const __m256 nan = _mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q);
    return (vec_f32)_mm256_or_ps(_mm256_min_ps((__m256)a, (__m256)b), nan);
}

static inline vec_f32 vmax_f32(vec_f32 a, vec_f32 b)
{
    const __m256 nan = _mm256_cmp_ps((__m256)a, (__m256)a, _CMP_UNORD_Q);
    return (vec_f32)_mm256_or_ps(_mm256_max_ps((__m256)a, (__m256)b), nan);
}

static inline vec_f64 vmin_f64(vec_f64 a, vec_f64 b)
{
    const __m256d nan = _mm256_cmp_pd((__m256d)a, (__m256d)a, _CMP_UNORD_Q);
    return (vec_f64)_mm256_or_pd(_mm256_min_pd((__m256d)a, (__m256d)b), nan);
}

static inline vec_f64 vmax_f64(vec_f64 a, vec_f64 b)
{
    const __m256d nan = _mm256_cmp_pd((__m256d)a, (__m256d)a, _CMP_UNORD_Q);
    return (vec_f64)_mm256_or_pd(_mm256_max_pd((__m256d)a, (__m256d)b), nan);
}

/* The mask of the first m lanes. */
static inline __m256i vfirst_32(int64_t m)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)m), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline __m256i vfirst_64(int64_t m)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(m), _mm256_setr_epi64x(0, 1, 2, 3));
}

/* The masked load gives zeros past m; or-ing in the fill there is the cheapest blend. */
static inline vec_i32 vload_part_i32(const int32_t *p, int64_t m, vec_i32 fill)
{
    const __m256i first = vfirst_32(m);
    return (vec_i32)_mm256_or_si256(_mm256_maskload_epi32(p, first), _mm256_andnot_si256(first, (__m256i)fill));
}

static inline vec_i64 vload_part_i64(const int64_t *p, int64_t m, vec_i64 fill)
{
    const __m256i first = vfirst_64(m), rest = _mm256_andnot_si256(first, (__m256i)fill);
    return (vec_i64)_mm256_or_si256(_mm256_maskload_epi64((const long long *)(const void *)p, first), rest);
}

static inline vec_u32 vload_part_u32(const uint32_t *p, int64_t m, vec_u32 fill)
{
    return (vec_u32)vload_part_i32((const int32_t *)p, m, (vec_i32)fill);
}

static inline vec_u64 vload_part_u64(const uint64_t *p, int64_t m, vec_u64 fill)
{
    return (vec_u64)vload_part_i64((const int64_t *)p, m, (vec_i64)fill);
}

static inline vec_f32 vload_part_f32(const float *p, int64_t m, vec_f32 fill)
{
    const __m256i first = vfirst_32(m);
    const __m256 rest = _mm256_andnot_ps(_mm256_castsi256_ps(first), (__m256)fill);
    return (vec_f32)_mm256_or_ps(_mm256_maskload_ps(p, first), rest);
}

#define MASKED(s, bits, T)                                                        \
    static inline void vput_##s(type_##s *p, int64_t m, vec_##s v)                \
    {                                                                             \
        _mm256_maskstore_epi##bits((T *)(void *)p, vfirst_##bits(m), (__m256i)v); \
    }
MASKED(i32, 32, int)
MASKED(u32, 32, int)
MASKED(i64, 64, long long)
MASKED(u64, 64, long long)
MASKED(f32, 32, int)
MASKED(f64, 64, long long)
#undef MASKED
#define vstore_part_i32 vput_i32
#define vstore_part_u32 vput_u32
#define vstore_part_i64 vput_i64
#define vstore_part_u64 vput_u64
#define vstore_part_f32 vput_f32
#define vstore_part_f64 vput_f64
#define vput_i8 vstore_part_i8
#define vput_u8 vstore_part_u8
#define vput_i16 vstore_part_i16
#define vput_u16 vstore_part_u16

static inline vec_f64 vload_part_f64(const double *p, int64_t m, vec_f64 fill)
{
    const __m256i first = vfirst_64(m);
    const __m256d rest = _mm256_andnot_pd(_mm256_castsi256_pd(first), (__m256d)fill);
    return (vec_f64)_mm256_or_pd(_mm256_maskload_pd(p, first), rest);
}

/* Short integers have no masks, and are rare here: ends of rows. */
MF_APART vec_u8 vload_part_u8(const uint8_t *p, int64_t m, vec_u8 fill)
{
    memcpy(&fill, p, (size_t)m);
    return fill;
}

static inline vec_i8 vload_part_i8(const int8_t *p, int64_t m, vec_i8 fill)
{
    return (vec_i8)vload_part_u8((const uint8_t *)p, m, (vec_u8)fill);
}

static inline vec_u16 vload_part_u16(const uint16_t *p, int64_t m, vec_u16 fill)
{
    return (vec_u16)vload_part_u8((const uint8_t *)p, 2 * m, (vec_u8)fill);
}

static inline vec_i16 vload_part_i16(const int16_t *p, int64_t m, vec_i16 fill)
{
    return (vec_i16)vload_part_u8((const uint8_t *)p, 2 * m, (vec_u8)fill);
}

static inline vec_u32 vpermute_32(vec_u32 v, vec_u32 index)
{
    return (vec_u32)_mm256_permutevar8x32_epi32((__m256i)v, (__m256i)index);
}

/* AVX2 has no such instruction; nothing on a hot path asks for it. */
static inline vec_u64 vpermute_64(vec_u64 v, vec_u64 index)
{
    return (vec_u64){v[index[0]], v[index[1]], v[index[2]], v[index[3]]};
}

static inline uint64_t vbits_8(vec_i8 mask)
{
    return (uint32_t)_mm256_movemask_epi8((__m256i)mask);
}

static inline unsigned vbits_32(vec_i32 mask)
{
    return (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps((__m256i)mask));
}

static inline unsigned vbits_64(vec_i64 mask)
{
    return (unsigned)_mm256_movemask_pd(_mm256_castsi256_pd((__m256i)mask));
}

static inline vec_i16 vwiden_i8(vec_half_i8 v)
{
    return (vec_i16)_mm256_cvtepi8_epi16((__m128i)v);
}

static inline vec_u16 vwiden_u8(vec_half_u8 v)
{
    return (vec_u16)_mm256_cvtepu8_epi16((__m128i)v);
}

static inline vec_i32 vwiden_i16(vec_half_i16 v)
{
    return (vec_i32)_mm256_cvtepi16_epi32((__m128i)v);
}

static inline vec_u32 vwiden_u16(vec_half_u16 v)
{
    return (vec_u32)_mm256_cvtepu16_epi32((__m128i)v);
}

static inline vec_i64 vwiden_i32(vec_half_i32 v)
{
    return (vec_i64)_mm256_cvtepi32_epi64((__m128i)v);
}

static inline vec_u64 vwiden_u32(vec_half_u32 v)
{
    return (vec_u64)_mm256_cvtepu32_epi64((__m128i)v);
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
    return (vec_i64)_mm256_cvtepi16_epi64(_mm_loadu_si64(p));
}

static inline vec_u64 vload_long_u16(const uint16_t *p)
{
    return (vec_u64)_mm256_cvtepu16_epi64(_mm_loadu_si64(p));
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
    if (bytes == 32)
        return vload_u8(p);
    const __m128i second = _mm_loadu_si128((const void *)((const char *)p + step));
    return (vec_u8)_mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(p)), second, 1);
}

/* A piece of 16 bytes has two words. */
static inline vec_u64 vload_words(const void *p, int64_t step)
{
    const __m128i second = _mm_set1_epi64x(0x0706050403020100 + step * 0x0101010101010101);
    const __m128i index = _mm_unpacklo_epi64(_mm_set1_epi64x(0x0706050403020100), second);
    return (vec_u64)_mm256_shuffle_epi8((__m256i)vload_pieces(p, 2 * step, 16), _mm256_broadcastsi128_si256(index));
}

/* The first m of half a vector, m < 8, as overlapping loads of 8 or 4 bytes; then zeros. */
static inline vec_half_u16 vload_few_half_u16(const uint16_t *p, int64_t m)
{
    uint64_t low = 0, high = 0;
    if (m > 4) {
        memcpy(&low, p, 8);
        memcpy(&high, p + m - 4, 8);
        high >>= 16 * (8 - m);
    } else if (m >= 2) {
        uint32_t first, last;
        memcpy(&first, p, 4);
        memcpy(&last, p + m - 2, 4);
        low = first | (uint64_t)last << (16 * (m - 2));
    } else if (m == 1) {
        low = p[0];
    }
    return (vec_half_u16)_mm_set_epi64x((long long)high, (long long)low);
}

static inline vec_u64 vload_part_long_i32(const int32_t *p, int64_t m, vec_u64 fill)
{
    const __m128i first = _mm_cmpgt_epi32(_mm_set1_epi32((int)m), _mm_setr_epi32(0, 1, 2, 3));
    return vfill_after_u64((vec_u64)vwiden_i32((vec_half_i32)_mm_maskload_epi32(p, first)), m, fill);
}

static inline vec_u64 vload_part_long_u32(const uint32_t *p, int64_t m, vec_u64 fill)
{
    const __m128i first = _mm_cmpgt_epi32(_mm_set1_epi32((int)m), _mm_setr_epi32(0, 1, 2, 3));
    return vfill_after_u64(vwiden_u32((vec_half_u32)_mm_maskload_epi32((const int *)p, first)), m, fill);
}

/* The empty statement hides where v comes from: clang 14 would move a later test for NaN to the 16-bit value, and do
 * it one element at a time. */
static inline vec_f32 vwiden_f16(vec_half_u16 h)
{
    vec_f32 v = (vec_f32)_mm256_cvtph_ps((__m128i)h);
    __asm__("" : "+x"(v));
    return v;
}

#define MF_HAVE_F16C

static inline vec_u16 vjoin_u16(vec_half_u16 a, vec_half_u16 b)
{
    return (vec_u16)_mm256_inserti128_si256(_mm256_castsi128_si256((__m128i)a), (__m128i)b, 1);
}

static inline vec_half_u16 vnarrow_f16(vec_f32 v)
{
    return (vec_half_u16)_mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

static inline vec_f32 vload_f16(const uint16_t *p)
{
    return vwiden_f16(vload_half_u16(p));
}

static inline vec_f32 vload_part_f16(const uint16_t *p, int64_t m, vec_f32 fill)
{
    return vfill_after_f32(vwiden_f16(vload_few_half_u16(p, m)), m, fill);
}

static inline vec_f32 vload_part_bf16(const uint16_t *p, int64_t m, vec_f32 fill)
{
    return vfill_after_f32(vwiden_bf16(vload_few_half_u16(p, m)), m, fill);
}

static inline vec_u64 vsum_bytes(vec_u8 v)
{
    return (vec_u64)_mm256_sad_epu8((__m256i)v, _mm256_setzero_si256());
}

static inline vec_i32 vpair_sum_i16(vec_i16 v)
{
    return (vec_i32)_mm256_madd_epi16((__m256i)v, _mm256_set1_epi16(1));
}

static inline vec_u16 vpair_sum_u8(vec_u8 v)
{
    return (vec_u16)_mm256_maddubs_epi16((__m256i)v, _mm256_set1_epi8(1));
}

static inline vec_u16 vmean_u16(vec_u16 a, vec_u16 b)
{
    return (vec_u16)_mm256_avg_epu16((__m256i)a, (__m256i)b);
}

static inline vec_u32 vpair_squares_u16(vec_u16 v)
{
    return (vec_u32)_mm256_madd_epi16((__m256i)v, (__m256i)v);
}

static inline vec_u8 vzip_low_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm256_unpacklo_epi8((__m256i)a, (__m256i)b);
}

static inline vec_u8 vzip_high_u8(vec_u8 a, vec_u8 b)
{
    return (vec_u8)_mm256_unpackhi_epi8((__m256i)a, (__m256i)b);
}

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) _mm256_stream_si256((__m256i *)(to), (__m256i)(v))

#endif
