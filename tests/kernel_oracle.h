/* The folds of src/cpu/kernels.h as a plain program, on values of any type: what test_kernels.c compares with. */
#ifndef MF_TESTS_KERNEL_ORACLE_H
#define MF_TESTS_KERNEL_ORACLE_H

#include <math.h>
#include <string.h>

#include "../src/cpu/kernels.h"
#include "../src/vocab/convert.h"
#include "../src/vocab/ops.h"

/* ---- values of any type ---- */

union value {
    float f32;
    double f64;
    int64_t i64;
    uint64_t u64;
};

static const char *const fold_name[FOLD_COUNT] = {"sum", "prod", "min", "max", "and", "or", "xor", "any"};
static const char *const cls_name[CLS_COUNT] = {"f32", "f64", "i64", "u64"};
static const int cls_bytes[CLS_COUNT] = {4, 8, 8, 8};
static const int dtype_bytes[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, storage) [DT_##name] = (bytes),
#include "../src/dtypes.def"
#undef DTYPE
};
static const enum cls dtype_cls[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, storage) [DT_##name] = CLS_##cls,
#include "../src/dtypes.def"
#undef DTYPE
};
static const char *const dtype_name[DT_COUNT] = {
#define DTYPE(name, bytes, code, bits, cls, storage) [DT_##name] = #name,
#include "../src/dtypes.def"
#undef DTYPE
};

/* What lies in memory: a class's own type, or a dtype that one converts from. */
struct type {
    enum cls cls;
    int is_dtype;
    enum dtype dtype;
};

static int bytes_of(struct type t)
{
    return t.is_dtype ? dtype_bytes[t.dtype] : cls_bytes[t.cls];
}

static const char *name_of(struct type t)
{
    return t.is_dtype ? dtype_name[t.dtype] : cls_name[t.cls];
}

static union value load_cls(enum cls cls, const void *p)
{
    union value v = {.u64 = 0};
    memcpy(&v, p, (size_t)cls_bytes[cls]);
    return v;
}

static union value load(struct type t, const void *array, int64_t i)
{
    const char *p = (const char *)array + i * bytes_of(t);
    union value v = {.u64 = 0};
    uint16_t u16;
    int16_t i16;
    int32_t i32;
    uint32_t u32;
    memcpy(&u16, p, bytes_of(t) < 2 ? 1 : 2);
    memcpy(&i16, &u16, 2);
    if (!t.is_dtype)
        return load_cls(t.cls, p);
    if (bytes_of(t) >= 4) {
        memcpy(&i32, p, 4);
        memcpy(&u32, p, 4);
        v.i64 = t.dtype == DT_i32 ? i32 : (int64_t)u32;
        return v;
    }
    switch (t.dtype) {
    case DT_f16:
        v.f32 = mf_f16_to_f32(u16);
        break;
    case DT_bf16:
        v.f32 = mf_bf16_to_f32(u16);
        break;
    case DT_i8:
        v.i64 = *(const int8_t *)p;
        break;
    case DT_i16:
        v.i64 = i16;
        break;
    case DT_u16:
        v.i64 = u16;
        break;
    case DT_bool:
        v.i64 = *(const uint8_t *)p != 0;
        break;
    default:
        v.i64 = *(const uint8_t *)p;
        break;
    }
    if (t.cls == CLS_F64) /* integers that a reducer takes as doubles */
        v.f64 = (double)v.i64;
    return v;
}

static int is_nan(enum cls cls, union value a)
{
    return cls == CLS_F32 ? isnan(a.f32) : cls == CLS_F64 ? isnan(a.f64) : 0;
}

static int less(enum cls cls, union value a, union value b)
{
    switch (cls) {
    case CLS_F32:
        return a.f32 < b.f32;
    case CLS_F64:
        return a.f64 < b.f64;
    case CLS_I64:
        return a.i64 < b.i64;
    default:
        return a.u64 < b.u64;
    }
}

/* By bits; NaNs are all equal, and the zeros too where the fold may give either. */
static int same(enum cls cls, union value a, union value b, int zeros_equal)
{
    if (is_nan(cls, a) || is_nan(cls, b))
        return is_nan(cls, a) && is_nan(cls, b);
    if (zeros_equal && !less(cls, a, b) && !less(cls, b, a))
        return 1;
    return memcmp(&a, &b, (size_t)cls_bytes[cls]) == 0;
}

/* ---- the folds, plainly ---- */

static union value combine_int(enum fold fold, union value a, union value b)
{
    switch (fold) {
    case FOLD_SUM:
        a.u64 += b.u64;
        break;
    case FOLD_PROD:
        a.u64 *= b.u64;
        break;
    case FOLD_AND:
        a.u64 &= b.u64;
        break;
    case FOLD_OR:
        a.u64 |= b.u64;
        break;
    default:
        a.u64 ^= b.u64;
        break;
    }
    return a;
}

/* 1 where a is not 0, of the class. */
static union value truth(enum cls cls, union value a)
{
    const union value zero = {.u64 = 0};
    const int is_true = is_nan(cls, a) || less(cls, a, zero) || less(cls, zero, a);
    if (cls == CLS_F32)
        a.f32 = (float)is_true;
    else if (cls == CLS_F64)
        a.f64 = is_true;
    else
        a.i64 = is_true;
    return a;
}

static union value combine(enum fold fold, enum cls cls, union value a, union value b)
{
    if (fold == FOLD_ANY)
        return less(cls, truth(cls, a), truth(cls, b)) ? truth(cls, b) : truth(cls, a);
    if (fold == FOLD_MIN || fold == FOLD_MAX) {
        if (is_nan(cls, a) || is_nan(cls, b))
            return is_nan(cls, a) ? a : b;
        return (fold == FOLD_MIN ? less(cls, b, a) : less(cls, a, b)) ? b : a;
    }
    if (cls == CLS_F32)
        a.f32 = fold == FOLD_SUM ? a.f32 + b.f32 : a.f32 * b.f32;
    else if (cls == CLS_F64)
        a.f64 = fold == FOLD_SUM ? a.f64 + b.f64 : a.f64 * b.f64;
    else
        a = combine_int(fold, a, b);
    return a;
}

static union value fold_tile(enum fold fold, enum cls cls, const union value *x, int64_t n)
{
    union value lane[LANES];
    for (int64_t e = 0; e < n; e++)
        lane[e % LANES] = e < LANES ? x[e] : combine(fold, cls, lane[e % LANES], x[e]);
    for (int64_t h = LANES / 2; h >= 1; h /= 2)
        for (int64_t l = 0; l < h && l + h < n; l++)
            lane[l] = combine(fold, cls, lane[l], lane[l + h]);
    return fold == FOLD_ANY ? truth(cls, lane[0]) : lane[0];
}

/* Moments and logsumexp in double or float: the arithmetic of one class is T's. */
struct state {
    union value a, b; /* mean, m2; or m, s */
    int64_t n;
};

static struct state merge_moments(enum cls cls, struct state a, struct state b)
{
    if (a.n == 0 || b.n == 0)
        return a.n == 0 ? b : a;
    struct state s = {.n = a.n + b.n};
    if (cls == CLS_F32) {
        const float na = (float)a.n, nb = (float)b.n, n = (float)s.n, d = b.a.f32 - a.a.f32;
        s.a.f32 = a.a.f32 + d * (nb / n);
        s.b.f32 = (a.b.f32 + b.b.f32) + (d * d) * ((na * nb) / n);
    } else {
        const double na = (double)a.n, nb = (double)b.n, n = (double)s.n, d = b.a.f64 - a.a.f64;
        s.a.f64 = a.a.f64 + d * (nb / n);
        s.b.f64 = (a.b.f64 + b.b.f64) + (d * d) * ((na * nb) / n);
    }
    return s;
}

static union value exp_unit(enum cls cls, union value x)
{
    if (cls == CLS_F32)
        return (union value){.f32 = mf_exp_unit_f32(x.f32)};
    return (union value){.f64 = mf_exp_unit_f64(x.f64)};
}

static union value exp_step(enum cls cls, union value x, union value m)
{
    if (cls == CLS_F32)
        return (union value){.f32 = mf_exp_step_f32(x.f32, m.f32)};
    return (union value){.f64 = mf_exp_step_f64(x.f64, m.f64)};
}

static struct state merge_lse(enum cls cls, struct state a, struct state b)
{
    if (a.n == 0 || b.n == 0)
        return a.n == 0 ? b : a;
    struct state s = {.n = a.n + b.n};
    s.a = combine(FOLD_MAX, cls, a.a, b.a);
    s.b = combine(FOLD_SUM, cls, combine(FOLD_PROD, cls, a.b, exp_step(cls, a.a, s.a)),
                  combine(FOLD_PROD, cls, b.b, exp_step(cls, b.a, s.a)));
    return s;
}

/* count elements, stride apart */
static struct state chain_lse(enum cls cls, const union value *x, int64_t count, int64_t stride)
{
    struct state s = {.n = 0};
    for (int64_t k = 0; k < count; k++)
        s = merge_lse(cls, s, (struct state){.a = x[k * stride], .b = exp_unit(cls, x[k * stride]), .n = 1});
    return s;
}

static struct state chain_moments(enum cls cls, struct state s, const union value *x, int64_t count, int64_t stride)
{
    for (int64_t k = 0; k < count; k++)
        s = merge_moments(cls, s, (struct state){.a = x[k * stride], .n = 1});
    return s;
}

static struct state state_tile(enum cls cls, int is_lse, const union value *x, int64_t n)
{
    struct state lane[LANES] = {{.n = 0}};
    for (int64_t l = 0; l < LANES && l < n; l++) {
        const int64_t count = (n - l + LANES - 1) / LANES;
        lane[l] = is_lse ? chain_lse(cls, x + l, count, LANES) : chain_moments(cls, lane[l], x + l, count, LANES);
    }
    for (int64_t h = LANES / 2; h >= 1; h /= 2)
        for (int64_t l = 0; l < h; l++)
            lane[l] = is_lse ? merge_lse(cls, lane[l], lane[l + h]) : merge_moments(cls, lane[l], lane[l + h]);
    return lane[0];
}

/* x strictly better than best: 0 argmin, 1 argmax */
static int better(enum cls cls, int which, union value x, union value best)
{
    if (is_nan(cls, x) || is_nan(cls, best))
        return is_nan(cls, x) && !is_nan(cls, best);
    return which == 0 ? less(cls, x, best) : less(cls, best, x);
}

#endif
