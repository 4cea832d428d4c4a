/* Vector verbs, part one: what every instruction set writes the same way, in GNU vector types.
 *
 * An isa_<isa>.c defines MF_VEC_BYTES (16, 32 or 64) and includes vec_<isa>.h, which includes this file and adds
 * the verbs that need instructions of their own. vec_generic.h adds them in plain C: it is the specification.
 * Arithmetic and comparison are the operators; the verbs are
 *
 *   vload vstore vsplat vselect       any address
 *   vload_part vstore_part            only the first m elements; the rest of a load comes from a fill vector
 *   vput                              vstore_part of floats, without a call where there are masked stores
 *   vmin vmax                         a NaN sticks
 *   vabove vbelow                     a > b ? a : b, a < b ? a : b
 *   vnumbers(so_far, a, b)            the lanes of so_far where neither a nor b is a NaN, in a form of its own
 *                                     (numbers_f32, numbers_f64); ~0 are all
 *   vmark(v, numbers)                 v there, elsewhere a NaN
 *   vall(numbers)                     whether these are all lanes
 *   vfma(x, y, z)                     x * y + z with one rounding
 *   vscale(v, n, t)                   v * 2^n, which is normal; t is n + 1.5 * 2^23 (double: 2^52), and the one of both
 *                                     that is not used costs nothing
 *   vadd_scaled(sum, v, n, t)         sum + v * 2^n, a product that is exact; t is n + 127 + 1.5 * 2^23 (double:
 *                                     n + 1023 + 1.5 * 2^52). NaNs stay
 *   vkeep                             nothing; v is computed here, where its statement stands, not where it is used
 *   vread                             nothing; v is loaded here, before what is loaded after it: the processor's
 *                                     prefetchers want addresses that grow
 *   vapart                            nothing; where instructions can broadcast what they read from memory, the
 *                                     compiler takes pointer p for another one than it was, and does not share loads
 *   vkeep4(a, b, c, d)                (AVX-512) nothing; all four are computed before one of them is used
 *   vpermute                          v[index[i]]
 *   vlane                             0, 1, 2 ...
 *   vbits                             one bit a lane of a mask
 *   vwiden                            half a vector to one of integers twice as wide (and bf16 to float)
 *   vload_f16 vload_bf16 (_part)      16-bit floats, to float
 *   vjoin_u16                         a vector from its halves
 *   vnarrow_f16                       to 16-bit floats, to the nearest even
 *   vload_long_i32 _u32 (_part)       32-bit integers, to 64; _i16, _u16 from 16
 *   vload_pieces(p, step, bytes)      16 (32, 64) bytes at p, p + step ..., as one vector; bytes is a constant
 *   vload_words(p, step)              8 bytes at p, p + step ..., 0 < step <= 8; may read 16 at each
 *   vsum_bytes vpair_sum_i16 _u8      sums of 8 bytes, of 2 16-bit integers, of 2 bytes
 *   vmean_u16                         half the sum, rounded up
 *   vpair_squares_u16                 sums of 2 squares of 16-bit integers below 256
 *   vzip_low_u8 vzip_high_u8          of each 16 bytes of two vectors the lower, upper 8 in turns
 */
#ifndef MF_CPU_VEC_H
#define MF_CPU_VEC_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "habits.h"
#include "shuffle.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define MF_INLINE static inline __attribute__((always_inline))

/* MF_APART: what is rare, or long against its call, so that one copy serves all its callers. Before a loop, MF_ROLLED:
 * it has few passes, but is not worth a copy of its body for each of them; MF_UNROLLED: it is, and its vectors stay in
 * registers (clang finds that out, and remarks on loops that it cannot unroll). An isa_<isa>.c for size
 * defines that one as nothing. */
#if defined(__clang__)
#define MF_APART static __attribute__((noinline, unused))
#define MF_ROLLED _Pragma("clang loop unroll(disable)")
#define MF_UNROLLED
#else
#define MF_APART static __attribute__((noinline, noclone, unused))
#define MF_ROLLED _Pragma("GCC unroll 1")
#if defined(MF_SMALL) && !defined(MF_UNROLLED) /* as many as the lanes of a row that wait in registers */
#define MF_UNROLLED _Pragma("GCC unroll 8")
#elif !defined(MF_UNROLLED)
#define MF_UNROLLED _Pragma("GCC unroll 16")
#endif
#endif

/* Asks for what the kernel will read, into the second cache: while it computes, memory keeps working. An address past
 * the data does no harm. How far ahead: habits.c. */
MF_INLINE void ahead(const void *p, int64_t distance, int64_t bytes)
{
    if (__builtin_constant_p(bytes)) {
        MF_UNROLLED
        for (int64_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(distance + i)), 0, 2);
    } else {
        for (int64_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(distance + i)), 0, 2);
    }
}

/* Asks for what is read sooner, into the nearest cache. */
MF_INLINE void fetch_soon(const void *p, int64_t distance, int64_t bytes)
{
    if (__builtin_constant_p(bytes)) {
        MF_UNROLLED
        for (int64_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(distance + i)), 0, 3);
    } else {
        for (int64_t i = 0; i < bytes; i += 64)
            __builtin_prefetch((const void *)((uintptr_t)p + (uintptr_t)(distance + i)), 0, 3);
    }
}

/* Rows that are read together are asked for together, `far` elements, no more than a row has, after the one that is
 * read; behind a row's end is what is read after it: `next`, if there is such. Without that, 2 KB ahead, an eighth of
 * rows of 16 KB was read twice. soon (a constant): into the nearest cache. */
MF_INLINE void ask_rows(const void *const *row, const void *const *next, int rows, int64_t i, int64_t n, int64_t far,
                        int size, int64_t bytes, int soon)
{
    const int behind = next && i + far >= n;
    const void *const *const at = behind ? next : row;
    const int64_t place = (behind ? i + far - n : i + far) * size;
    MF_UNROLLED
    for (int k = 0; k < rows; k++)
        if (soon)
            fetch_soon(at[k], place, bytes);
        else
            ahead(at[k], place, bytes);
}

/* `bytes` of data after element i of a row is a place i < edge ? near : far bytes away. */
struct place {
    int64_t near, far, edge;
};

/* Where what is read next lies: some kilobytes later, for the second cache; less, for the nearest one. */
struct ahead {
    struct place far, soon;
};

static inline struct place place_after(int64_t bytes, int64_t n, int64_t gap, int size)
{
    const int64_t later = bytes / size, rows = later / n;
    return (struct place){bytes + rows * gap, bytes + (rows + 1) * gap, n - later % n};
}

/* For rows of n elements. Rows at a distance: what comes after a row's last element is in the next row. A kernel of
 * rows asks between its loads, not for many lines at once; for the nearest cache only where that helps. */
static inline struct ahead ahead_of_rows(int64_t n, int64_t pitch, int size)
{
    const int64_t gap = (pitch - n) * size;
    return (struct ahead){place_after(mf_habits.row, n, gap, size), place_after(mf_habits.row_soon, n, gap, size)};
}

/* The same for n elements that lie together, and others a gap of bytes after them. */
static inline struct ahead ahead_of_stream(int64_t n, int64_t gap, int size)
{
    const int64_t far = size < 4 ? mf_habits.narrow : mf_habits.stream;
    const int64_t soon = size < 4 ? mf_habits.narrow_soon : mf_habits.stream_soon;
    return (struct ahead){{far, far + gap, n - far / size}, {soon, soon + gap, n - soon / size}};
}

/* The same for short elements without an end. */
static inline struct ahead ahead_in_stream(void)
{
    const int64_t far = mf_habits.narrow, soon = mf_habits.narrow_soon;
    return (struct ahead){{far, far, 0}, {soon, soon, 0}};
}

/* Fetches what is read after `bytes` bytes at p, which belong to element i of a row, into the second cache; ahead_soon,
 * into the nearest one. */
MF_INLINE void ahead_far(const void *p, int64_t bytes, const struct ahead *next, int64_t i)
{
    ahead(p, i < next->far.edge ? next->far.near : next->far.far, bytes);
}

/* Where ahead_far looks. A kernel with much to compute asks there for one line whenever it has read one, at its `at`
 * bytes: of many lines at once, its own loads would have to wait for room. */
MF_INLINE const char *far_of(const void *p, const struct ahead *next, int64_t i)
{
    return (const char *)((uintptr_t)p + (uintptr_t)(i < next->far.edge ? next->far.near : next->far.far));
}

MF_INLINE void ahead_line(const char *far, int64_t at)
{
    if (at % 64 == 0)
        __builtin_prefetch((const void *)((uintptr_t)far + (uintptr_t)at), 0, 2);
}

MF_INLINE void ahead_soon(const void *p, int64_t bytes, const struct ahead *next, int64_t i)
{
    fetch_soon(p, i < next->soon.edge ? next->soon.near : next->soon.far, bytes);
}

/* The same at the beginning of a row, into the nearest cache only where that helps. */
MF_INLINE void ahead_of_start(const void *p, int64_t bytes, const struct ahead *next)
{
    ahead(p, next->far.near, bytes);
    if (mf_habits.row_soon)
        fetch_soon(p, next->soon.near, bytes);
}

/* The same beside stores past the cache. */
MF_INLINE void ahead_of_copy(const void *p, int64_t bytes)
{
    ahead(p, mf_habits.copy, bytes);
    if (mf_habits.copy_soon)
        fetch_soon(p, mf_habits.copy_soon, bytes);
}

#define NAME i8
#define TYPE int8_t
#define MASK i8
#include "vec_type.inc"
#define NAME u8
#define TYPE uint8_t
#define MASK i8
#include "vec_type.inc"
#define NAME i16
#define TYPE int16_t
#define MASK i16
#include "vec_type.inc"
#define NAME u16
#define TYPE uint16_t
#define MASK i16
#include "vec_type.inc"
#define NAME i32
#define TYPE int32_t
#define MASK i32
#include "vec_type.inc"
#define NAME u32
#define TYPE uint32_t
#define MASK i32
#include "vec_type.inc"
#define NAME i64
#define TYPE int64_t
#define MASK i64
#include "vec_type.inc"
#define NAME u64
#define TYPE uint64_t
#define MASK i64
#include "vec_type.inc"
#define NAME f32
#define TYPE float
#define MASK i32
#include "vec_type.inc"
#define NAME f64
#define TYPE double
#define MASK i64
#include "vec_type.inc"

/* Two-vector shuffles: VPICK(32, RULE, u, v, w) takes lane RULE(i, w, length) of u followed by v for each
 * lane i; 32 or 64 is the size of an element in bits.
 * The rules work on vectors that hold several rows of w lanes each, w a power of two:
 *
 *   u = a.low a.high b.low b.high ...      v = c.low c.high d.low d.high ...      (w = one low and one high)
 *   LOW    a.low  c.low  b.low  d.low      HIGH   a.high c.high b.high d.high
 *   STAY   a.low  c.high b.low  d.high     CROSS  a.high c.low  b.high d.low
 *
 * LOW o HIGH, or STAY o CROSS where o commutes (STAY is a blend, which is cheaper), halves every row and keeps both
 * vectors' rows in one. ORDER undoes what this does to the order when the rows came w lanes wide from memory. */
#define PICK_IN(i, length) ((i) % (2 * (length)))
#define PICK_IS_LOW(i, w) ((i) % (w) < (w) / 2)
#define PICK_LOW(i, w, length) PICK_IN(PICK_IS_LOW(i, w) ? (i) : (length) + (i) - (w) / 2, length)
#define PICK_HIGH(i, w, length) PICK_IN(PICK_IS_LOW(i, w) ? (i) + (w) / 2 : (length) + (i), length)
#define PICK_STAY(i, w, length) (PICK_IS_LOW(i, w) ? (i) : (length) + (i))
#define PICK_CROSS(i, w, length) PICK_IN(PICK_IS_LOW(i, w) ? (i) + (w) / 2 : (length) + (i) - (w) / 2, length)
#define PICK_ROWS(w, length) ((w) < (length) ? (length) / (w) : 1)
#define PICK_EVERY(i, w, length) ((2 * (i) + (w)) % (2 * (length))) /* lanes w, w+2, w+4 ... of both */
#define PICK_ORDER(i, w, length) ((i) % PICK_ROWS(w, length) * (w) + (i) / PICK_ROWS(w, length))

#define EACH_2(RULE, w) RULE(0, w, 2), RULE(1, w, 2)
#define EACH_4_OF(RULE, w, i, length) \
    RULE((i), w, length), RULE((i) + 1, w, length), RULE((i) + 2, w, length), RULE((i) + 3, w, length)
#define EACH_4(RULE, w) EACH_4_OF(RULE, w, 0, 4)
#define EACH_8(RULE, w) EACH_4_OF(RULE, w, 0, 8), EACH_4_OF(RULE, w, 4, 8)
#define EACH_16_OF(RULE, w, i) EACH_4_OF(RULE, w, i, 16), EACH_4_OF(RULE, w, (i) + 4, 16)
#define EACH_16(RULE, w) EACH_16_OF(RULE, w, 0), EACH_16_OF(RULE, w, 8)

#define PICK_ZIP(i, w, length) ((i) % 2 * (length) + (i) / 2 + (w)) /* one lane of each, in turns, from lane w on */

#if MF_VEC_BYTES == 64
#define EACH_OF_32 EACH_16
#define EACH_OF_64 EACH_8
#elif MF_VEC_BYTES == 32
#define EACH_OF_32 EACH_8
#define EACH_OF_64 EACH_4
#else
#define EACH_OF_32 EACH_4
#define EACH_OF_64 EACH_2
#endif

#define VPICK(bits, RULE, u, v, w) MF_SHUFFLE(CAT(CAT(int, bits), _t), u, v, CAT(EACH_OF_, bits)(RULE, w))

/* A vector of 16-bit floats, whose bits are a float's upper half: those with even numbers and those with odd ones, for
 * which there is nothing to move; and both in order. */
MF_INLINE void vload_two_bf16(vec_f32 *two, const uint16_t *p)
{
    const vec_u32 both = (vec_u32)vload_u16(p);
    two[0] = (vec_f32)(both << 16);
    two[1] = (vec_f32)(both & 0xffff0000u);
}

MF_INLINE void vorder_two_bf16(vec_f32 *two)
{
    const vec_f32 even = two[0], odd = two[1];
    two[0] = VPICK(32, PICK_ZIP, even, odd, 0);
    two[1] = VPICK(32, PICK_ZIP, even, odd, VLEN_f32 / 2);
}

/* Vectors in order to those that vload_two gives. */
MF_INLINE void vsplit_two_bf16(vec_f32 *two)
{
    const vec_f32 low = two[0], high = two[1];
    two[0] = VPICK(32, PICK_EVERY, low, high, 0);
    two[1] = VPICK(32, PICK_EVERY, low, high, 1);
}

/* 0, 1, 2 ... */
static inline vec_i32 vlane_i32(void)
{
    vec_i32 lane;
    MF_UNROLLED
    for (int i = 0; i < VLEN_i32; i++)
        lane[i] = i;
    return lane;
}

static inline vec_i64 vlane_i64(void)
{
    vec_i64 lane;
    MF_UNROLLED
    for (int i = 0; i < VLEN_i64; i++)
        lane[i] = i;
    return lane;
}

/* Lane by lane, which the compiler makes one instruction of or, where there is none, calls of the C library's. */
static inline vec_f32 vfma_plain_f32(vec_f32 x, vec_f32 y, vec_f32 z)
{
    MF_UNROLLED
    for (int i = 0; i < VLEN_f32; i++)
        z[i] = fmaf(x[i], y[i], z[i]);
    return z;
}

static inline vec_f64 vfma_plain_f64(vec_f64 x, vec_f64 y, vec_f64 z)
{
    MF_UNROLLED
    for (int i = 0; i < VLEN_f64; i++)
        z[i] = fma(x[i], y[i], z[i]);
    return z;
}

/* The low bits of t are n's. */
static inline vec_f32 vscale_plain_f32(vec_f32 v, vec_f32 n, vec_f32 t)
{
    (void)n;
    return (vec_f32)((vec_u32)v + ((vec_u32)t << 23));
}

static inline vec_f64 vscale_plain_f64(vec_f64 v, vec_f64 n, vec_f64 t)
{
    (void)n;
    return (vec_f64)((vec_u64)v + ((vec_u64)t << 52));
}

/* Without fma, which may be a call: the product is exact anyway. */
static inline vec_f32 vadd_scaled_plain_f32(vec_f32 sum, vec_f32 v, vec_f32 n, vec_f32 t)
{
    (void)n;
    return sum + v * (vec_f32)((vec_u32)t << 23);
}

static inline vec_f64 vadd_scaled_plain_f64(vec_f64 sum, vec_f64 v, vec_f64 n, vec_f64 t)
{
    (void)n;
    return sum + v * (vec_f64)((vec_u64)t << 52);
}

/* fill where lane >= m. */
static inline vec_f32 vfill_after_f32(vec_f32 v, int64_t m, vec_f32 fill)
{
    return vselect_f32((vec_i32)(vlane_i32() < vsplat_i32((int32_t)m)), v, fill);
}

static inline vec_u64 vfill_after_u64(vec_u64 v, int64_t m, vec_u64 fill)
{
    return vselect_u64((vec_i64)(vlane_i64() < vsplat_i64(m)), v, fill);
}

#endif
