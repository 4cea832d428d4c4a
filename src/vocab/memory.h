/* Between memory and arithmetic: mf_load_TYPE(stored) gives the value in the type's class,
 * mf_store_TYPE_CLASS(value) the stored form, mf_convert_FROM_TO(value) a value in another class. One definition for
 * the reference and all targets.
 *
 * Rules (docs/numerics.md): to a float: nearest, ties to even, once; every NaN becomes the type's one canonical NaN.
 * Integer to integer wraps; float to integer truncates and saturates, NaN gives 0. To bool: 0 or 1, NaN is 1. */
#ifndef MF_VOCAB_MEMORY_H
#define MF_VOCAB_MEMORY_H

/* one line a conversion */
/* clang-format off */
#include "convert.h"

static inline float mf_load_f16(uint16_t x) { return mf_f16_to_f32(x); }
static inline float mf_load_bf16(uint16_t x) { return mf_bf16_to_f32(x); }
static inline float mf_load_f32(float x) { return x; }
static inline double mf_load_f64(double x) { return x; }
static inline float mf_load_f8e4m3(uint8_t x) { return mf_f8e4m3_to_f32(x); }
static inline float mf_load_f8e5m2(uint8_t x) { return mf_f8e5m2_to_f32(x); }
static inline int64_t mf_load_i8(int8_t x) { return x; }
static inline int64_t mf_load_i16(int16_t x) { return x; }
static inline int64_t mf_load_i32(int32_t x) { return x; }
static inline int64_t mf_load_i64(int64_t x) { return x; }
static inline int64_t mf_load_u8(uint8_t x) { return x; }
static inline int64_t mf_load_u16(uint16_t x) { return x; }
static inline int64_t mf_load_u32(uint32_t x) { return x; }
static inline uint64_t mf_load_u64(uint64_t x) { return x; }
static inline int64_t mf_load_bool(uint8_t x) { return x != 0; }

static inline float mf_convert_f32_f32(float x) { return x; }
static inline float mf_convert_f64_f32(double x) { return (float)x; }
static inline float mf_convert_i64_f32(int64_t x) { return (float)x; }
static inline float mf_convert_u64_f32(uint64_t x) { return (float)x; }
static inline double mf_convert_f32_f64(float x) { return (double)x; }
static inline double mf_convert_f64_f64(double x) { return x; }
static inline double mf_convert_i64_f64(int64_t x) { return (double)x; }
static inline double mf_convert_u64_f64(uint64_t x) { return (double)x; }
static inline int64_t mf_convert_f32_i64(float x) { return mf_f32_to_i64(x); }
static inline int64_t mf_convert_f64_i64(double x) { return mf_f64_to_i64(x); }
static inline int64_t mf_convert_i64_i64(int64_t x) { return x; }
static inline int64_t mf_convert_u64_i64(uint64_t x) { return (int64_t)x; }
static inline uint64_t mf_convert_f32_u64(float x) { return mf_f32_to_u64(x); }
static inline uint64_t mf_convert_f64_u64(double x) { return mf_f64_to_u64(x); }
static inline uint64_t mf_convert_i64_u64(int64_t x) { return (uint64_t)x; }
static inline uint64_t mf_convert_u64_u64(uint64_t x) { return x; }

static inline uint16_t mf_store_f16_f32(float x) { return mf_f32_to_f16(x); }
static inline uint16_t mf_store_bf16_f32(float x) { return mf_f32_to_bf16(x); }
static inline uint8_t mf_store_f8e4m3_f32(float x) { return mf_f32_to_f8e4m3(x); }
static inline uint8_t mf_store_f8e5m2_f32(float x) { return mf_f32_to_f8e5m2(x); }
static inline uint16_t mf_store_f16_f64(double x) { return mf_f64_to_f16(x); }
static inline uint16_t mf_store_bf16_f64(double x) { return mf_f64_to_bf16(x); }
static inline uint8_t mf_store_f8e4m3_f64(double x) { return mf_f64_to_f8e4m3(x); }
static inline uint8_t mf_store_f8e5m2_f64(double x) { return mf_f64_to_f8e5m2(x); }
static inline uint16_t mf_store_f16_i64(int64_t x) { return mf_i64_to_f16(x); }
static inline uint16_t mf_store_bf16_i64(int64_t x) { return mf_i64_to_bf16(x); }
static inline uint8_t mf_store_f8e4m3_i64(int64_t x) { return mf_i64_to_f8e4m3(x); }
static inline uint8_t mf_store_f8e5m2_i64(int64_t x) { return mf_i64_to_f8e5m2(x); }
static inline uint16_t mf_store_f16_u64(uint64_t x) { return mf_u64_to_f16(x); }
static inline uint16_t mf_store_bf16_u64(uint64_t x) { return mf_u64_to_bf16(x); }
static inline uint8_t mf_store_f8e4m3_u64(uint64_t x) { return mf_u64_to_f8e4m3(x); }
static inline uint8_t mf_store_f8e5m2_u64(uint64_t x) { return mf_u64_to_f8e5m2(x); }

static inline float mf_store_f32_f32(float x) { return mf_canon_f32(x); }
static inline float mf_store_f32_f64(double x) { return mf_canon_f32((float)x); }
static inline float mf_store_f32_i64(int64_t x) { return (float)x; }
static inline float mf_store_f32_u64(uint64_t x) { return (float)x; }
static inline double mf_store_f64_f32(float x) { return mf_canon_f64((double)x); }
static inline double mf_store_f64_f64(double x) { return mf_canon_f64(x); }
static inline double mf_store_f64_i64(int64_t x) { return (double)x; }
static inline double mf_store_f64_u64(uint64_t x) { return (double)x; }

/* To an integer type of N bits: wraps from integers, saturates from floats. */
static inline int64_t mf_clamp(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }
static inline int8_t mf_store_i8_i64(int64_t x) { return (int8_t)x; }
static inline int8_t mf_store_i8_u64(uint64_t x) { return (int8_t)x; }
static inline int8_t mf_store_i8_f32(float x) { return (int8_t)mf_clamp(mf_f32_to_i64(x), INT8_MIN, INT8_MAX); }
static inline int8_t mf_store_i8_f64(double x) { return (int8_t)mf_clamp(mf_f64_to_i64(x), INT8_MIN, INT8_MAX); }
static inline int16_t mf_store_i16_i64(int64_t x) { return (int16_t)x; }
static inline int16_t mf_store_i16_u64(uint64_t x) { return (int16_t)x; }
static inline int16_t mf_store_i16_f32(float x) { return (int16_t)mf_clamp(mf_f32_to_i64(x), INT16_MIN, INT16_MAX); }
static inline int16_t mf_store_i16_f64(double x) { return (int16_t)mf_clamp(mf_f64_to_i64(x), INT16_MIN, INT16_MAX); }
static inline int32_t mf_store_i32_i64(int64_t x) { return (int32_t)x; }
static inline int32_t mf_store_i32_u64(uint64_t x) { return (int32_t)x; }
static inline int32_t mf_store_i32_f32(float x) { return (int32_t)mf_clamp(mf_f32_to_i64(x), INT32_MIN, INT32_MAX); }
static inline int32_t mf_store_i32_f64(double x) { return (int32_t)mf_clamp(mf_f64_to_i64(x), INT32_MIN, INT32_MAX); }
static inline uint8_t mf_store_u8_i64(int64_t x) { return (uint8_t)x; }
static inline uint8_t mf_store_u8_u64(uint64_t x) { return (uint8_t)x; }
static inline uint8_t mf_store_u8_f32(float x) { return (uint8_t)mf_clamp(mf_f32_to_i64(x), 0, UINT8_MAX); }
static inline uint8_t mf_store_u8_f64(double x) { return (uint8_t)mf_clamp(mf_f64_to_i64(x), 0, UINT8_MAX); }
static inline uint16_t mf_store_u16_i64(int64_t x) { return (uint16_t)x; }
static inline uint16_t mf_store_u16_u64(uint64_t x) { return (uint16_t)x; }
static inline uint16_t mf_store_u16_f32(float x) { return (uint16_t)mf_clamp(mf_f32_to_i64(x), 0, UINT16_MAX); }
static inline uint16_t mf_store_u16_f64(double x) { return (uint16_t)mf_clamp(mf_f64_to_i64(x), 0, UINT16_MAX); }
static inline uint32_t mf_store_u32_i64(int64_t x) { return (uint32_t)x; }
static inline uint32_t mf_store_u32_u64(uint64_t x) { return (uint32_t)x; }
static inline uint32_t mf_store_u32_f32(float x) { return (uint32_t)mf_clamp(mf_f32_to_i64(x), 0, UINT32_MAX); }
static inline uint32_t mf_store_u32_f64(double x) { return (uint32_t)mf_clamp(mf_f64_to_i64(x), 0, UINT32_MAX); }

static inline int64_t mf_store_i64_i64(int64_t x) { return x; }
static inline int64_t mf_store_i64_u64(uint64_t x) { return (int64_t)x; }
static inline int64_t mf_store_i64_f32(float x) { return mf_f32_to_i64(x); }
static inline int64_t mf_store_i64_f64(double x) { return mf_f64_to_i64(x); }
static inline uint64_t mf_store_u64_i64(int64_t x) { return (uint64_t)x; }
static inline uint64_t mf_store_u64_u64(uint64_t x) { return x; }
static inline uint64_t mf_store_u64_f32(float x) { return mf_f32_to_u64(x); }
static inline uint64_t mf_store_u64_f64(double x) { return mf_f64_to_u64(x); }

static inline uint8_t mf_store_bool_f32(float x) { return !(x == 0); }
static inline uint8_t mf_store_bool_f64(double x) { return !(x == 0); }
static inline uint8_t mf_store_bool_i64(int64_t x) { return x != 0; }
static inline uint8_t mf_store_bool_u64(uint64_t x) { return x != 0; }

#endif
