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

/* One line a class: its value as every small float type, rounded once. */
#define MF_STORE_SMALL_FLOATS(cls, T)                                                  \
    static inline uint16_t mf_store_f16_##cls(T x) { return mf_##cls##_to_f16(x); }    \
    static inline uint16_t mf_store_bf16_##cls(T x) { return mf_##cls##_to_bf16(x); }  \
    static inline uint8_t mf_store_f8e4m3_##cls(T x) { return mf_##cls##_to_f8e4m3(x); } \
    static inline uint8_t mf_store_f8e5m2_##cls(T x) { return mf_##cls##_to_f8e5m2(x); }
MF_STORE_SMALL_FLOATS(f32, float)
MF_STORE_SMALL_FLOATS(f64, double)
MF_STORE_SMALL_FLOATS(i64, int64_t)
MF_STORE_SMALL_FLOATS(u64, uint64_t)
#undef MF_STORE_SMALL_FLOATS

static inline float mf_store_f32_f32(float x) { return mf_canon_f32(x); }
static inline float mf_store_f32_f64(double x) { return mf_canon_f32((float)x); }
static inline float mf_store_f32_i64(int64_t x) { return (float)x; }
static inline float mf_store_f32_u64(uint64_t x) { return (float)x; }
static inline double mf_store_f64_f32(float x) { return mf_canon_f64((double)x); }
static inline double mf_store_f64_f64(double x) { return mf_canon_f64(x); }
static inline double mf_store_f64_i64(int64_t x) { return (double)x; }
static inline double mf_store_f64_u64(uint64_t x) { return (double)x; }

/* To an integer type of N bits: wraps from integers, saturates from floats. */
#define MF_STORE_INTEGER(name, T, low, high)                                                           \
    static inline T mf_store_##name##_i64(int64_t x) { return (T)x; }                                  \
    static inline T mf_store_##name##_u64(uint64_t x) { return (T)x; }                                 \
    static inline T mf_store_##name##_f32(float x)                                                     \
    {                                                                                                  \
        int64_t v = mf_f32_to_i64(x);                                                                  \
        return (T)(v < (low) ? (low) : v > (high) ? (high) : v);                                       \
    }                                                                                                  \
    static inline T mf_store_##name##_f64(double x)                                                    \
    {                                                                                                  \
        int64_t v = mf_f64_to_i64(x);                                                                  \
        return (T)(v < (low) ? (low) : v > (high) ? (high) : v);                                       \
    }
MF_STORE_INTEGER(i8, int8_t, INT8_MIN, INT8_MAX)
MF_STORE_INTEGER(i16, int16_t, INT16_MIN, INT16_MAX)
MF_STORE_INTEGER(i32, int32_t, INT32_MIN, INT32_MAX)
MF_STORE_INTEGER(u8, uint8_t, 0, UINT8_MAX)
MF_STORE_INTEGER(u16, uint16_t, 0, UINT16_MAX)
MF_STORE_INTEGER(u32, uint32_t, 0, (int64_t)UINT32_MAX)
#undef MF_STORE_INTEGER

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
