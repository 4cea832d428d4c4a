/* What reducers do where a map's function would say more than they need, or in 32 bits. */
#ifndef MF_FOLD_EXTREMES
static inline float fold_min_f32(float x, float y) { return mf_min_f32(x, y); }
static inline float fold_max_f32(float x, float y) { return mf_max_f32(x, y); }
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
