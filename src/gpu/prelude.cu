/* What the kernels' text means to CUDA's compiler. With -default-device every function is one of the device. Inline PTX
 * stands here only: conversions of 16-bit floats, which the hardware has, stores past the cache, and waiting for earlier
 * kernels. */
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;

#define INT8_MIN (-128)
#define INT8_MAX 127
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define INT32_MIN (-2147483647 - 1)
#define INT32_MAX 2147483647
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295u
#define UINT64_MAX 18446744073709551615ULL

#define MF_VOCAB_BITS
static inline uint32_t mf_f32_bits(float x) { return __float_as_uint(x); }
static inline float mf_bits_f32(uint32_t u) { return __uint_as_float(u); }
static inline uint64_t mf_f64_bits(double x) { return (uint64_t)__double_as_longlong(x); }
static inline double mf_bits_f64(uint64_t u) { return __longlong_as_double((long long)u); }

/* Exact, and rounded to nearest even; the canonical NaN is the vocabulary's. */
#define MF_VOCAB_HAS_F16
static inline float mf_f16_to_f32(uint16_t h)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}

/* One instruction, whichever half of a register h is; a shift is three. */
#define MF_VOCAB_HAS_BF16
static inline float mf_bf16_to_f32(uint16_t h)
{
    float x;
    asm("mov.b32 %0, {%1, %2};" : "=f"(x) : "h"((uint16_t)0), "h"(h));
    return x;
}

static inline uint16_t mf_f32_to_f16(float x)
{
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return x == x ? h : (uint16_t)0x7e00u;
}

static inline uint16_t mf_f32_to_bf16(float x)
{
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return x == x ? h : (uint16_t)0x7fc0u;
}

/* Two of them as one word, low first. What the hardware makes of a NaN is 0x7fff, the greatest number of 16 bits, which
 * becomes the canonical one. */
#if __CUDA_ARCH__ >= 900
#define MF_STORE_PAIRS
static inline uint32_t store_pair_f16(float low, float high)
{
    uint32_t h;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;\n\tmin.s16x2 %0, %0, %3;" : "=&r"(h) : "f"(high), "f"(low), "r"(0x7e007e00u));
    return h;
}

static inline uint32_t store_pair_bf16(float low, float high)
{
    uint32_t h;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n\tmin.s16x2 %0, %0, %3;" : "=&r"(h) : "f"(high), "f"(low), "r"(0x7fc07fc0u));
    return h;
}
#endif

/* Words beside each other, aligned. (Of structs behind a condition the compiler makes a store for each word.) */
static inline void store_two(void *to, uint32_t a, uint32_t b)
{
    asm volatile("st.global.v2.b32 [%0], {%1,%2};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b) : "memory");
}

static inline void store_four(void *to, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(__cvta_generic_to_global(to)), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}

/* Waits until all that the kernels before this one in its stream have written is there (PTX manual, griddepcontrol). The
 * next kernel's blocks come when this one's are through: where they came earlier they lay unevenly over the
 * multiprocessors, and networks took longer (seen on an H200). A kernel of few blocks and little to do may let them come
 * at once (let_follow), if every thread waits all the same. */
static inline void follow_stream(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* The same once these addresses are known: else the compiler's assembler waits first, and finds them out then. */
static inline void follow_stream_knowing(uint64_t addresses)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n\t.reg .pred known;\n\tsetp.ne.u64 known, %0, 0;\n\t@known griddepcontrol.wait;\n\t}" ::"l"(addresses)
                 : "memory");
#endif
}

static inline void let_follow(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* A value chosen from two constants, then negated, became the choice of -1 and -0, and that +0 in CUDA 13.0's assembler
 * (seen on an H200). So the compiler does not see that it was chosen. */
#define MF_CHOSEN(value) chosen(value)
static inline float chosen(float x)
{
    asm("" : "+f"(x));
    return x;
}

static inline double chosen(double x)
{
    asm("" : "+d"(x));
    return x;
}

/* x / y rounded to nearest for numbers of elements: what the compiler makes of x / y, without its branch for quotients
 * out of range, which takes long to compile. (A reciprocal that is right to the last
 * place or nearly, and a quotient corrected by its remainder: Markstein, Computation of elementary functions on the IBM
 * RISC System/6000 processor, 1990.) */
#define MF_QUOTIENT_OF_COUNTS(x, y) quotient_of_counts(x, y)
static inline float quotient_of_counts(float x, float y)
{
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
    r = fmaf(r, fmaf(-y, r, 1.0f), r);
    const float q = x * r;
    return fmaf(r, fmaf(-y, q, x), q);
}

static inline double quotient_of_counts(double x, double y)
{
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(y));
    double e = fma(-y, r, 1.0);
    r = fma(r, fma(e, e, e), r);
    r = fma(r, fma(-y, r, 1.0), r);
    const double q = x * r;
    return fma(r, fma(-y, q, x), q);
}

/* min and max of reducers: a NaN sticks; which zero wins does not matter. Sums of four bytes: exact. */
#define MF_FOLD_HARDWARE
static inline float fold_min_f32(float x, float y)
{
    asm("min.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
    return x;
}

static inline float fold_max_f32(float x, float y)
{
    asm("max.NaN.f32 %0, %0, %1;" : "+f"(x) : "f"(y));
    return x;
}

/* The greater, the lesser and the least of two 16-bit floats beside each other. A NaN sticks to the greater and the
 * least. */
#if __CUDA_ARCH__ >= 800
#define HAS_PAIRS 1
#define OF_PAIRS(name, instruction)                             \
    static inline uint32_t name(uint32_t x, uint32_t y)         \
    {                                                           \
        asm(instruction " %0, %0, %1;" : "+r"(x) : "r"(y));     \
        return x;                                               \
    }
OF_PAIRS(greater_f16, "max.NaN.f16x2")
OF_PAIRS(greater_bf16, "max.NaN.bf16x2")
OF_PAIRS(lesser_f16, "min.f16x2")
OF_PAIRS(lesser_bf16, "min.bf16x2")
OF_PAIRS(least_f16, "min.NaN.f16x2")
OF_PAIRS(least_bf16, "min.NaN.bf16x2")
#undef OF_PAIRS

/* All bits of those that are equal. */
static inline uint32_t equal_f16(uint32_t x, uint32_t y)
{
    uint32_t same;
    asm("set.eq.u32.f16x2 %0, %1, %2;" : "=r"(same) : "r"(x), "r"(y));
    return same;
}

static inline uint32_t equal_bf16(uint32_t x, uint32_t y)
{
#if __CUDA_ARCH__ >= 900
    uint32_t same;
    asm("set.eq.u32.bf16x2 %0, %1, %2;" : "=r"(same) : "r"(x), "r"(y));
    return same;
#else
    return (mf_bits_f32(x << 16) == mf_bits_f32(y << 16) ? 0xffffu : 0) |
           (mf_bits_f32(x & 0xffff0000u) == mf_bits_f32(y & 0xffff0000u) ? 0xffff0000u : 0);
#endif
}
#endif

#define MAX_OF_3(a, b, c) __vimax3_s32(a, b, c)
#define MIN_OF_3_UNSIGNED(a, b, c) __vimin3_u32(a, b, c)
/* The lesser of a + b and c, of words and of both of their halves. */
#define LESSER_OF_SUM(a, b, c) __viaddmin_u32(a, b, c)
#define LESSER_OF_SUMS(a, b, c) __viaddmin_u16x2(a, b, c)
/* Both halves of words, numbers without a sign. */
#define GREATER_OF_PAIRS(a, b) __vmaxu2(a, b)
#define LESSER_OF_PAIRS(a, b) __vminu2(a, b)

/* e^x, x <= 0, of solvers that are asked for by name: 2^(x log2 e), the power at most 2^-22 off, relatively; subnormal
 * results are 0. */
#define EXP_BELOW_f32(x) power_of_two((x) * 1.44269504f)
#define EXP_BELOW_f64(x) exp_of_logarithm(x)
#define SCALED_f32(x) ((x) * 1.44269504f)
#define SCALED_f64(x) (x)
/* e^(x - y), where scaled is SCALED(y). */
#define EXP_SCALED_f32(x, scaled) power_of_two(fmaf((x), 1.44269504f, -(scaled)))
#define EXP_SCALED_f64(x, scaled) exp_of_logarithm((x) - (scaled))
static inline float power_of_two(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

static inline int fold_bytes_i8(int sum, uint32_t bytes, uint32_t factors)
{
    asm("dp4a.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(bytes), "r"(factors));
    return sum;
}

static inline int fold_bytes_u8(int sum, uint32_t bytes, uint32_t factors)
{
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(bytes), "r"(factors));
    return sum;
}

static inline int square_bytes_i8(uint32_t bytes)
{
    int sum;
    asm("dp4a.s32.s32 %0, %1, %1, 0;" : "=r"(sum) : "r"(bytes));
    return sum;
}

/* The compiler may want so few registers for many blocks that it has to spill: nvrtc.c then compiles again without, and at
 * last with half of each batch. */
#ifdef ONE_BLOCK
#define ENTRY extern "C" __global__ __launch_bounds__(THREADS, 1)
#else
#define ONE_BLOCK 0
#define ENTRY extern "C" __global__ __launch_bounds__(LAUNCH_BOUNDS)
#endif
#define KERNEL ENTRY
#define GLOBAL
#define SHARED __shared__
#define SHARED_POINTER
#define LAUNCH_SHARED(type, name, count) extern __shared__ type name[] /* as much as the launch says */
#define CONSTANT __constant__ const
#define ALIGNED(n) __align__(n)
#define THREAD ((int)threadIdx.x)
#define BLOCK ((int64_t)blockIdx.x)
#define BARRIER() __syncthreads()
#define BARRIER_AND(condition) __syncthreads_and(condition) /* whether it holds for all threads of the block */
#define WARP_BARRIER() __syncwarp() /* what threads of a warp wrote to shared memory is there for the others */
#define FENCE() __threadfence()
#define FENCE_OF_EACH() ((void)0) /* before a barrier and one thread's fence, which is for all that came before it */
#define FOLLOW_STREAM() follow_stream()
#define FOLLOW_STREAM_KNOWING(addresses) follow_stream_knowing(addresses)
#define LET_FOLLOW() let_follow()
#define ADDRESS(place) ((uint64_t)(place))
#define KNOWN(number) asm volatile("" : "+l"(number))
#define MULHI(a, b) __umulhi(a, b)
#define FRESH(place) __ldcg(&(place)) /* not from this multiprocessor's own cache */
#define POPCOUNT(x) ((uint32_t)__popc(x))
#define ATOMIC_LEAST(place, value) atomicMin((unsigned *)(place), (unsigned)(value))
#define ATOMIC_LEAST_SHARED(place, value) atomicMin((unsigned *)(place), (unsigned)(value))
#define COUNT_UP(counter) atomicAdd((unsigned *)(counter), 1u)
/* Loads before it are not moved behind it, next to their use: they are to be in flight together. */
#define LOADED() asm volatile("" ::: "memory")
/* The same, and the assembler keeps to it too: it moves no load across a meeting of the threads that are there. */
#define LOADED_TOGETHER() __syncwarp(__activemask())
#define LIKELY(condition) __builtin_expect(!!(condition), 1)
/* Copies of 4, 8 or 16 bytes into shared memory, which pass no registers and are there after COPIED(). */
#if __CUDA_ARCH__ >= 800
static inline void copy_4(uint32_t to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
static inline void copy_8(uint32_t to, const void *from)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(to), "l"(from) : "memory");
}
static inline void copy_16(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
#define COPY_(bytes) copy_##bytes
#define COPY(bytes, to, from) COPY_(bytes)((uint32_t)__cvta_generic_to_shared(to), from)
#define COPIED() asm volatile("cp.async.wait_all;" ::: "memory")
/* The same as groups, of which all but so many are there after AWAIT_COPIES. */
#define COPY_FLOATS(bytes, to, from) COPY(bytes, to, from)
#define END_COPIES() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT_COPIES(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")
#endif
/* A vector that nobody reads again, as words of 16, 8 or 4 bytes: it leaves the caches before what others wrote. */
template <int BYTES_OF_WORD> struct word_of {
    typedef uint4 type;
};
template <> struct word_of<8> {
    typedef uint2 type;
};
template <> struct word_of<4> {
    typedef uint32_t type;
};
template <typename vector> static inline vector read_once(const vector *from)
{
    typedef typename word_of<sizeof(vector) < 16 ? sizeof(vector) : 16>::type word;
    union {
        vector v;
        word words[sizeof(vector) / sizeof(word)];
    } x;
    for (int i = 0; i < (int)(sizeof(vector) / sizeof(word)); i++)
        x.words[i] = __ldcs((const word *)from + i);
    return x.v;
}
#define READ_ONCE(place) read_once(place)
#define NOT_INLINE __noinline__
#define UNROLL _Pragma("unroll")
/* A loop's bound, and the condition in it: unrolled loops need constant bounds, PoCL's barriers no conditions. */
#define BOUND(bound, most) (most)
#define GUARD(condition) (condition)
/* Whether a function is worth a copy for each value of an argument: a barrier in it makes PoCL copy all that follows. */
#define BY_CASES 1
#define NO_UNROLL _Pragma("unroll 1")

/* EXCHANGE: the value that the thread whose number differs in these bits holds. ANY_OF_WARP: whether it is so for any
 * thread of a warp. All threads of a block call both together. */
#define ANY_OF_WARP(condition) __any_sync(0xffffffffu, condition)
#define EXCHANGE_TYPE int
#define EXCHANGE_MEMORY const int exchange_ = 0;
#define EXCHANGE(T, to, from, distance) (to) = __shfl_xor_sync(0xffffffffu, (from), (distance))
