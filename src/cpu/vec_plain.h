/* What 16-byte vectors do in plain C on every machine: included by vec_generic.h and vec_sse2.h. */
#ifndef MF_CPU_VEC_PLAIN_H
#define MF_CPU_VEC_PLAIN_H

#include "../vocab/convert.h"

#define vmin_i32 vlesser_i32
#define vmax_i32 vgreater_i32
#define vmin_u32 vlesser_u32
#define vmax_u32 vgreater_u32
#define vmin_i64 vlesser_i64
#define vmax_i64 vgreater_i64
#define vmin_u64 vlesser_u64
#define vmax_u64 vgreater_u64

#define vload_part_i8 vload_few_i8
#define vload_part_u8 vload_few_u8
#define vload_part_i16 vload_few_i16
#define vload_part_u16 vload_few_u16
#define vload_part_i32 vload_few_i32
#define vload_part_u32 vload_few_u32
#define vload_part_i64 vload_few_i64
#define vload_part_u64 vload_few_u64
#define vload_part_f32 vload_few_f32
#define vload_part_f64 vload_few_f64
#define vput_u8 vstore_part_u8
#define vput_i8 vstore_part_i8
#define vput_u16 vstore_part_u16
#define vput_i16 vstore_part_i16
#define vput_u32 vstore_part_u32
#define vput_i32 vstore_part_i32
#define vput_u64 vstore_part_u64
#define vput_i64 vstore_part_i64
#define vput_f32 vstore_part_f32
#define vput_f64 vstore_part_f64

static inline vec_u32 vpermute_32(vec_u32 v, vec_u32 index)
{
    vec_u32 r = v;
    MF_UNROLLED
    for (int i = 0; i < VLEN_u32; i++)
        r[i] = v[index[i]];
    return r;
}

static inline vec_u64 vpermute_64(vec_u64 v, vec_u64 index)
{
    vec_u64 r = v;
    MF_UNROLLED
    for (int i = 0; i < VLEN_u64; i++)
        r[i] = v[index[i]];
    return r;
}

static inline uint64_t vbits_8(vec_i8 mask)
{
    uint64_t bits = 0;
    for (int i = 0; i < MF_VEC_BYTES; i++)
        bits |= (uint64_t)(mask[i] & 1) << i;
    return bits;
}

static inline unsigned vbits_32(vec_i32 mask)
{
    unsigned bits = 0;
    MF_UNROLLED
    for (int i = 0; i < VLEN_i32; i++)
        bits |= (unsigned)(mask[i] & 1) << i;
    return bits;
}

static inline unsigned vbits_64(vec_i64 mask)
{
    unsigned bits = 0;
    MF_UNROLLED
    for (int i = 0; i < VLEN_i64; i++)
        bits |= (unsigned)(mask[i] & 1) << i;
    return bits;
}

static inline vec_i16 vwiden_i8(vec_half_i8 v)
{
    return __builtin_convertvector(v, vec_i16);
}

static inline vec_u16 vwiden_u8(vec_half_u8 v)
{
    return __builtin_convertvector(v, vec_u16);
}

static inline vec_i32 vwiden_i16(vec_half_i16 v)
{
    return __builtin_convertvector(v, vec_i32);
}

static inline vec_u32 vwiden_u16(vec_half_u16 v)
{
    return __builtin_convertvector(v, vec_u32);
}

static inline vec_i64 vwiden_i32(vec_half_i32 v)
{
    return __builtin_convertvector(v, vec_i64);
}

static inline vec_u64 vwiden_u32(vec_half_u32 v)
{
    return __builtin_convertvector(v, vec_u64);
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
    return (vec_i64){p[0], p[1]};
}

static inline vec_u64 vload_long_u16(const uint16_t *p)
{
    return (vec_u64){p[0], p[1]};
}

static inline vec_u64 vload_long_i32(const int32_t *p)
{
    return (vec_u64)vwiden_i32(vload_half_i32(p));
}

static inline vec_u64 vload_long_u32(const uint32_t *p)
{
    return vwiden_u32(vload_half_u32(p));
}

static inline vec_u16 vmean_u16(vec_u16 a, vec_u16 b)
{
    return (a | b) - ((a ^ b) >> 1);
}

MF_INLINE vec_u8 vload_pieces(const void *p, int64_t step, int bytes)
{
    (void)step, (void)bytes; /* the only piece of 16 bytes */
    return vload_u8(p);
}

static inline vec_u64 vload_words(const void *p, int64_t step)
{
    uint64_t word[2];
    memcpy(&word[0], p, 8);
    memcpy(&word[1], (const char *)p + step, 8);
    return (vec_u64){word[0], word[1]};
}

/* The first m of half a vector, m < VLEN_u32; then zeros. */
static inline vec_half_u16 vload_few_half_u16(const uint16_t *p, int64_t m)
{
    vec_half_u16 v = {0};
    MF_UNROLLED
    for (int i = 0; i < VLEN_u32; i++)
        if (i < m)
            v[i] = p[i];
    return v;
}

static inline vec_u64 vload_part_long_i32(const int32_t *p, int64_t m, vec_u64 fill)
{
    MF_UNROLLED
    for (int i = 0; i < VLEN_u64; i++)
        if (i < m)
            fill[i] = (uint64_t)p[i];
    return fill;
}

static inline vec_u64 vload_part_long_u32(const uint32_t *p, int64_t m, vec_u64 fill)
{
    MF_UNROLLED
    for (int i = 0; i < VLEN_u64; i++)
        if (i < m)
            fill[i] = p[i];
    return fill;
}

/* Exponent and mantissa move into place; the product with 2^112 sets the bias and is exact, denormals included. */
static inline vec_f32 vwiden_f16(vec_half_u16 v)
{
    const vec_u32 h = __builtin_convertvector(v, vec_u32);
    const vec_u32 magnitude = (h & 0x7fff) << 13;
    const vec_u32 scaled = (vec_u32)((vec_f32)magnitude * 0x1p112f);
    const vec_u32 special = (vec_u32)(magnitude >= (0x7c00u << 13)) & (magnitude | 0x7f800000u);
    return (vec_f32)(((h & 0x8000) << 16) | scaled | special);
}

static inline vec_u16 vjoin_u16(vec_half_u16 a, vec_half_u16 b)
{
    const vec_half_u16 both[2] = {a, b};
    vec_u16 v;
    memcpy(&v, both, sizeof v);
    return v;
}

MF_APART vec_half_u16 vnarrow_f16(vec_f32 v)
{
    vec_half_u16 h = {0};
    MF_UNROLLED
    for (int i = 0; i < VLEN_f32; i++)
        h[i] = mf_f32_to_f16(v[i]);
    return h;
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

#endif
