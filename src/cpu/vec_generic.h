/* Vector verbs, part two, in plain C: the specification, and the verbs of "scalar" and "neon". */
#ifndef MF_CPU_VEC_GENERIC_H
#define MF_CPU_VEC_GENERIC_H

#include "vec.h"

#define vmin_i8 vlesser_i8
#define vmax_i8 vgreater_i8
#define vmin_u8 vlesser_u8
#define vmax_u8 vgreater_u8
#define vmin_i16 vlesser_i16
#define vmax_i16 vgreater_i16
#define vmin_u16 vlesser_u16
#define vmax_u16 vgreater_u16

#define vmin_f32 vlesser_f32
#define vmax_f32 vgreater_f32
#define vmin_f64 vlesser_f64
#define vmax_f64 vgreater_f64
#define vabove_f32 vabove_plain_f32
#define vabove_f64 vabove_plain_f64
#define vbelow_f32 vbelow_plain_f32
#define vbelow_f64 vbelow_plain_f64
#define numbers_f32 vec_i32
#define numbers_f64 vec_i64
#define vall_f32(numbers) (vbits_32(~(numbers)) == 0)
#define vall_f64(numbers) (vbits_64(~(numbers)) == 0)
#define vnumbers_f32 vnumbers_plain_f32
#define vnumbers_f64 vnumbers_plain_f64
#define vmark_f32 vmark_plain_f32
#define vmark_f64 vmark_plain_f64
#define vfma_f32 vfma_plain_f32
#define vfma_f64 vfma_plain_f64
#define vscale_f32 vscale_plain_f32
#define vscale_f64 vscale_plain_f64
#define vadd_scaled_f32 vadd_scaled_plain_f32
#define vadd_scaled_f64 vadd_scaled_plain_f64

#define vkeep(v) ((void)(v))
#define vread(v) ((void)(v))
#define vapart(p) ((void)(p))
#define vstay(p) ((void)(p))

#include "vec_plain.h"

static inline vec_u64 vsum_bytes(vec_u8 v)
{
    const vec_u16 a = ((vec_u16)v & 0xff) + ((vec_u16)v >> 8);
    const vec_u32 b = ((vec_u32)a & 0xffff) + ((vec_u32)a >> 16);
    return ((vec_u64)b & 0xffffffff) + ((vec_u64)b >> 32);
}

static inline vec_i32 vpair_sum_i16(vec_i16 v)
{
    const vec_i32 w = (vec_i32)v;
    return ((w << 16) >> 16) + (w >> 16);
}

static inline vec_u16 vpair_sum_u8(vec_u8 v)
{
    return ((vec_u16)v & 0xff) + ((vec_u16)v >> 8);
}

static inline vec_u32 vpair_squares_u16(vec_u16 v)
{
    const vec_u32 w = (vec_u32)(v * v);
    return (w & 0xffff) + (w >> 16);
}

/* Vectors of 16 bytes. */
static inline vec_u8 vzip_low_u8(vec_u8 a, vec_u8 b)
{
    return MF_SHUFFLE(int8_t, a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}

static inline vec_u8 vzip_high_u8(vec_u8 a, vec_u8 b)
{
    return MF_SHUFFLE(int8_t, a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) vstore_u8((uint8_t *)(to), (vec_u8)(v))

#endif
