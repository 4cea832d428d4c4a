/* What reducers do where a map's function would say more than they need, or in 32 bits; two 16-bit floats as a word. */
#ifndef MF_FOLD_HARDWARE
static inline float fold_min_f32(float x, float y) { return mf_min_f32(x, y); }
static inline float fold_max_f32(float x, float y) { return mf_max_f32(x, y); }
/* sum + four bytes, lowest first, by as many factors of 0 or 1 */
static inline int fold_bytes_i8(int sum, uint32_t bytes, uint32_t factors)
{
    for (int b = 0; b < 32; b += 8)
        sum += (int8_t)(bytes >> b & 255u) * (int)(factors >> b & 255u);
    return sum;
}
static inline int fold_bytes_u8(int sum, uint32_t bytes, uint32_t factors)
{
    for (int b = 0; b < 32; b += 8)
        sum += (int)(bytes >> b & 255u) * (int)(factors >> b & 255u);
    return sum;
}
/* the sum of four bytes' squares */
static inline int square_bytes_i8(uint32_t bytes)
{
    int sum = 0;
    for (int b = 0; b < 32; b += 8)
        sum += (int8_t)(bytes >> b & 255u) * (int8_t)(bytes >> b & 255u);
    return sum;
}
/* of two halves of 16 bits without a sign, each */
static inline uint32_t greater_of_pairs(uint32_t a, uint32_t b)
{
    const uint32_t low_a = a & 0xffffu, low_b = b & 0xffffu;
    return ((a < b ? b : a) & 0xffff0000u) | (low_a < low_b ? low_b : low_a);
}
static inline uint32_t lesser_of_pairs(uint32_t a, uint32_t b)
{
    const uint32_t low_a = a & 0xffffu, low_b = b & 0xffffu;
    return ((a < b ? a : b) & 0xffff0000u) | (low_a < low_b ? low_a : low_b);
}
#define GREATER_OF_PAIRS(a, b) greater_of_pairs(a, b)
#define LESSER_OF_PAIRS(a, b) lesser_of_pairs(a, b)
#endif
static inline double fold_min_f64(double x, double y) { return mf_min_f64(x, y); }
static inline double fold_max_f64(double x, double y) { return mf_max_f64(x, y); }
static inline int64_t fold_min_i64(int64_t x, int64_t y) { return x < y ? x : y; }
static inline int64_t fold_max_i64(int64_t x, int64_t y) { return x > y ? x : y; }
static inline uint64_t fold_min_u64(uint64_t x, uint64_t y) { return x < y ? x : y; }
static inline uint64_t fold_max_u64(uint64_t x, uint64_t y) { return x > y ? x : y; }
static inline int fold_min_i32(int x, int y) { return x < y ? x : y; }
static inline int fold_max_i32(int x, int y) { return x > y ? x : y; }
static inline int mf_add_i32(int x, int y) { return x + y; }
static inline int mf_and_i32(int x, int y) { return x & y; }
static inline int mf_or_i32(int x, int y) { return x | y; }
static inline int mf_xor_i32(int x, int y) { return x ^ y; }
#ifndef MF_QUOTIENT_OF_COUNTS
#define MF_QUOTIENT_OF_COUNTS(x, y) MF_QUOTIENT(x, y)
#endif
#ifndef MF_STORE_PAIRS
static inline uint32_t store_pair_f16(float low, float high)
{
    return (uint32_t)mf_store_f16_f32(high) << 16 | mf_store_f16_f32(low);
}
static inline uint32_t store_pair_bf16(float low, float high)
{
    return (uint32_t)mf_store_bf16_f32(high) << 16 | mf_store_bf16_f32(low);
}
#endif
/* An index of an argument, and whether there is none: a kernel whose outputs have few elements, and whose states all
 * have some, says SHORT_INDICES. LANE_PITCH: from an element of a lane to its next. */
#if SHORT_INDICES
typedef int index_t;
#define IS_MISSING(at) 0
#else
typedef int64_t index_t;
#define IS_MISSING(at) ((at) < 0)
#endif
#ifndef LANE_PITCH
#define LANE_PITCH LANES
#endif
