/* What the kernels' text means to OpenCL C 1.2, and to 3.0 where the driver gives kernels sub-groups of a warp
 * (SUB_GROUPS, opencl.c); without them threads exchange through local memory. */
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#pragma OPENCL FP_CONTRACT OFF

/* All that the kernels call, for a compiler whose header of 18,000 lines was left out (tests/gpu_test.h). Texts of users
 * may call more. */
#if DECLARE_BUILTINS
#define FUNCTION __attribute__((overloadable))
#define PURE __attribute__((overloadable, const))
#define PURE_FLOATS(name) \
    float PURE name(float); \
    double PURE name(double);
PURE_FLOATS(sqrt)
PURE_FLOATS(floor)
PURE_FLOATS(ceil)
PURE_FLOATS(trunc)
PURE_FLOATS(rint)
PURE_FLOATS(fabs)
float PURE fma(float, float, float);
double PURE fma(double, double, double);
float PURE fmod(float, float);
double PURE fmod(double, double);
float PURE exp2(float);
uint PURE min(uint, uint);
uint PURE mul_hi(uint, uint);
uint PURE popcount(uint);
size_t PURE get_local_id(uint);
size_t PURE get_group_id(uint);
uint FUNCTION atomic_min(volatile __global uint *, uint);
uint FUNCTION atomic_min(volatile __local uint *, uint);
uint FUNCTION atomic_inc(volatile __global uint *);
void FUNCTION mem_fence(cl_mem_fence_flags);
void FUNCTION __attribute__((convergent)) barrier(cl_mem_fence_flags);
#if __OPENCL_C_VERSION__ >= 300
void FUNCTION atomic_work_item_fence(cl_mem_fence_flags, memory_order, memory_scope);
#endif
#if SUB_GROUPS
int FUNCTION __attribute__((convergent)) sub_group_shuffle_xor(int, uint);
uint FUNCTION __attribute__((convergent)) sub_group_shuffle_xor(uint, uint);
long FUNCTION __attribute__((convergent)) sub_group_shuffle_xor(long, uint);
ulong FUNCTION __attribute__((convergent)) sub_group_shuffle_xor(ulong, uint);
float FUNCTION __attribute__((convergent)) sub_group_shuffle_xor(float, uint);
double FUNCTION __attribute__((convergent)) sub_group_shuffle_xor(double, uint);
int FUNCTION __attribute__((convergent)) sub_group_any(int);
#endif
#undef FUNCTION
#undef PURE
#undef PURE_FLOATS
#endif

typedef char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807L - 1)
#define INT64_MAX 9223372036854775807L
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615UL

#define MF_VOCAB_BITS
static inline uint32_t mf_f32_bits(float x) { return as_uint(x); }
static inline float mf_bits_f32(uint32_t u) { return as_float(u); }
static inline uint64_t mf_f64_bits(double x) { return as_ulong(x); }
static inline double mf_bits_f64(uint64_t u) { return as_double(u); }

/* Quotients and roots of floats that the driver does not round correctly (QUOTIENTS_BY_F64): those of doubles, rounded
 * once more, are right, because 53 bits are more than twice 24 and two (Figueroa, When is double rounding innocuous?,
 * SIGNUM Newsletter 30(3), 1995). */
#if QUOTIENTS_BY_F64
static inline float __attribute__((overloadable)) quotient(float x, float y) { return (float)((double)x / (double)y); }
static inline double __attribute__((overloadable)) quotient(double x, double y) { return x / y; }
static inline float root(float x) { return (float)sqrt((double)x); }
#define MF_QUOTIENT(x, y) quotient(x, y)
#define sqrtf root
#else
#define sqrtf sqrt
#endif
#define fmaf fma
#define floorf floor
#define ceilf ceil
#define truncf trunc
#define rintf rint
#define fmodf fmod
#define fabsf fabs

/* e^x, x <= 0, of solvers that are asked for by name. */
#define EXP_BELOW_f32(x) exp2((x) * 1.44269504f)
#define EXP_BELOW_f64(x) exp_of_logarithm(x)
#define SCALED_f32(x) ((x) * 1.44269504f)
#define SCALED_f64(x) (x)
/* e^(x - y), where scaled is SCALED(y). */
#define EXP_SCALED_f32(x, scaled) exp2(fmaf((x), 1.44269504f, -(scaled)))
#define EXP_SCALED_f64(x, scaled) exp_of_logarithm((x) - (scaled))

#if SUB_GROUPS
#pragma OPENCL EXTENSION cl_khr_subgroup_shuffle : enable
#pragma OPENCL EXTENSION cl_intel_required_subgroup_size : enable
#define KERNEL \
    __kernel __attribute__((reqd_work_group_size(THREADS, 1, 1))) __attribute__((intel_reqd_sub_group_size(32)))
#else
#define KERNEL __kernel __attribute__((reqd_work_group_size(THREADS, 1, 1)))
#endif
#define GLOBAL __global
#define SHARED __local
#define SHARED_POINTER __local
#define LAUNCH_SHARED(type, name, count) __local type name[count]
#define CONSTANT __constant const
#define ALIGNED(n) __attribute__((aligned(n)))
#define THREAD ((int)get_local_id(0))
#define BLOCK ((int64_t)get_group_id(0))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define WARP_BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
/* What was written before is there for other work-groups before what comes after, and the other way round. OpenCL 1.2's
 * mem_fence promises that to the own work-group only; NVIDIA's compiler takes inline PTX. */
#ifdef __NV_CL_C_VERSION
#define FENCE() asm volatile("membar.gl;" ::: "memory")
#elif __OPENCL_C_VERSION__ >= 300 && defined(__opencl_c_atomic_scope_device)
#define FENCE() atomic_work_item_fence(CLK_GLOBAL_MEM_FENCE, memory_order_acq_rel, memory_scope_device)
#else
#define FENCE() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif
#define FENCE_OF_EACH() FENCE()
#define store_two(to, a, b) (*(__global uint2 *)(to) = (uint2)(a, b))
#define store_four(to, a, b, c, d) (*(__global uint4 *)(to) = (uint4)(a, b, c, d))
#define FOLLOW_STREAM() ((void)0)
#define FOLLOW_STREAM_KNOWING(addresses) ((void)(addresses))
#define LET_FOLLOW() ((void)0)
#define ADDRESS(place) ((uint64_t)(place))
#define KNOWN(number) ((void)(number))
#define MULHI(a, b) mul_hi((uint)(a), (uint)(b))
#define FRESH(place) (place)
#define LESSER_OF_SUM(a, b, c) min((uint)((a) + (b)), (uint)(c))
#define POPCOUNT(x) popcount((uint)(x))
#define ATOMIC_LEAST(place, value) atomic_min((volatile __global uint *)(place), (uint)(value))
#define ATOMIC_LEAST_SHARED(place, value) atomic_min((volatile __local uint *)(place), (uint)(value))
#define COUNT_UP(counter) atomic_inc((volatile __global uint *)(counter))
#ifndef ONE_BLOCK
#define ONE_BLOCK 0
#endif
#define LOADED()
#define LOADED_TOGETHER()
#define LIKELY(condition) (condition)
#define NOT_INLINE __attribute__((noinline))
#define UNROLL
#define BOUND(bound, most) (bound)
#define GUARD(condition) 1
#define BY_CASES (!LOGSUMS)
#define NO_UNROLL

/* EXCHANGE: the value that the thread whose number differs in these bits holds. ANY_OF_WARP: whether it is so for any
 * thread of a warp, or, without sub-groups, of a block, whose threads then go on together. All threads of a block call
 * both together. */
#if SUB_GROUPS
#define ANY_OF_WARP(condition) sub_group_any(condition)
#define EXCHANGE_TYPE int
#define EXCHANGE_MEMORY const int exchange_ = 0;
#define EXCHANGE(T, to, from, distance) (to) = sub_group_shuffle_xor((from), (uint)(distance))
#else
#define ANY_OF_WARP(condition) any_of_block(exchange_, (condition))
static inline int any_of_block(__local uint64_t *exchange_, int condition)
{
    __local uint *none = (__local uint *)exchange_;
    if (THREAD == 0)
        *none = 1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (condition)
        ATOMIC_LEAST_SHARED(none, 0);
    barrier(CLK_LOCAL_MEM_FENCE);
    const int any = !*none;
    barrier(CLK_LOCAL_MEM_FENCE);
    return any;
}

#define EXCHANGE_TYPE __local uint64_t *
#define EXCHANGE_MEMORY __local uint64_t exchange_[THREADS];
#define EXCHANGE(T, to, from, distance)                       \
    do {                                                      \
        ((__local T *)exchange_)[THREAD] = (from);            \
        barrier(CLK_LOCAL_MEM_FENCE);                         \
        (to) = ((__local T *)exchange_)[THREAD ^ (distance)]; \
        barrier(CLK_LOCAL_MEM_FENCE);                         \
    } while (0)
#endif
