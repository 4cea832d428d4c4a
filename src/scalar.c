/* One element at a time: loads, stores, maps, and the monoids of the reducers. Plain on purpose: the oracle. */
#include "scalar.h"

#include "vocab/memory.h"
#include "vocab/ops.h"

union value mf_value_load(enum dtype type, const void *from)
{
    union value value;
    value.u64 = 0;
    switch (type) {
#define DTYPE(name, bytes, code, bits, cls, storage)    \
    case DT_##name: {                                   \
        storage stored;                                 \
        memcpy(&stored, from, sizeof stored);           \
        MF_VALUE_##cls(value) = mf_load_##name(stored); \
        break;                                          \
    }
#define MF_VALUE_F32(v) (v).f32
#define MF_VALUE_F64(v) (v).f64
#define MF_VALUE_I64(v) (v).i64
#define MF_VALUE_U64(v) (v).u64
#include "dtypes.def"
#undef DTYPE
    default:
        break;
    }
    return value;
}

void mf_value_store(enum dtype type, enum cls cls, union value value, void *to)
{
    switch (type) {
#define DTYPE(name, bytes, code, bits, own_class, storage)                    \
    case DT_##name: {                                                         \
        storage stored = cls == CLS_F32   ? mf_store_##name##_f32(value.f32)  \
                         : cls == CLS_F64 ? mf_store_##name##_f64(value.f64)  \
                         : cls == CLS_I64 ? mf_store_##name##_i64(value.i64)  \
                                          : mf_store_##name##_u64(value.u64); \
        memcpy(to, &stored, sizeof stored);                                   \
        break;                                                                \
    }
#include "dtypes.def"
#undef DTYPE
    default:
        break;
    }
}

union value mf_value_convert(enum cls from, enum cls to, union value x)
{
    union value y;
    y.u64 = 0;
    switch (to) {
    case CLS_F32:
        y.f32 = from == CLS_F32   ? x.f32
                : from == CLS_F64 ? mf_convert_f64_f32(x.f64)
                : from == CLS_I64 ? mf_convert_i64_f32(x.i64)
                                  : mf_convert_u64_f32(x.u64);
        break;
    case CLS_F64:
        y.f64 = from == CLS_F32   ? mf_convert_f32_f64(x.f32)
                : from == CLS_F64 ? x.f64
                : from == CLS_I64 ? mf_convert_i64_f64(x.i64)
                                  : mf_convert_u64_f64(x.u64);
        break;
    case CLS_I64:
        y.i64 = from == CLS_F32 ? mf_convert_f32_i64(x.f32) : from == CLS_F64 ? mf_convert_f64_i64(x.f64) : x.i64;
        break;
    default:
        y.u64 = from == CLS_F32 ? mf_convert_f32_u64(x.f32) : from == CLS_F64 ? mf_convert_f64_u64(x.f64) : x.u64;
        break;
    }
    return y;
}

/* One function a class: the map table as a switch. OPS_n expands an operation of n operands. */
#define ARGS_1 args[0].FIELD
#define ARGS_2 args[0].FIELD, args[1].FIELD
#define ARGS_3 args[0].FIELD, args[1].FIELD, args[2].FIELD
#define CASE_CALL(name, cls, arity)                 \
    case OP_##name:                                 \
        y.FIELD = MF_NAME(name, cls)(ARGS_##arity); \
        break;

static union value map_f32(enum op op, const union value *args)
{
    union value y = {.u64 = 0};
    switch (op) {
#define FIELD f32
#define MAP(name, arity, domain, result) FLOATS_##domain(name, f32, arity)
#define FLOATS_ANY CASE_CALL
#define FLOATS_FLOAT CASE_CALL
#define FLOATS_INTEGER(name, cls, arity)
#include "ops.def"
#undef FIELD
#undef MAP
    default:
        break;
    }
    return y;
}

static union value map_f64(enum op op, const union value *args)
{
    union value y = {.u64 = 0};
    switch (op) {
#define FIELD f64
#define MAP(name, arity, domain, result) FLOATS_##domain(name, f64, arity)
#include "ops.def"
#undef FIELD
#undef MAP
    default:
        break;
    }
    return y;
}

#define INTEGERS_ANY CASE_CALL
#define INTEGERS_INTEGER CASE_CALL
#define INTEGERS_FLOAT(name, cls, arity)

static union value map_i64(enum op op, const union value *args)
{
    union value y = {.u64 = 0};
    switch (op) {
#define FIELD i64
#define MAP(name, arity, domain, result) INTEGERS_##domain(name, i64, arity)
#include "ops.def"
#undef FIELD
#undef MAP
    default:
        break;
    }
    return y;
}

static union value map_u64(enum op op, const union value *args)
{
    union value y = {.u64 = 0};
    switch (op) {
#define FIELD u64
#define MAP(name, arity, domain, result) INTEGERS_##domain(name, u64, arity)
#include "ops.def"
#undef FIELD
#undef MAP
    default:
        break;
    }
    return y;
}

union value mf_value_map(enum op op, enum cls cls, const union value *args)
{
    return cls == CLS_F32   ? map_f32(op, args)
           : cls == CLS_F64 ? map_f64(op, args)
           : cls == CLS_I64 ? map_i64(op, args)
                            : map_u64(op, args);
}

static union value count_value(int64_t count, enum cls cls)
{
    union value value = {.i64 = count};
    return mf_value_convert(CLS_I64, cls, value);
}

void mf_pool_evaluate(const struct pool *pool, const struct leaves *leaves, union value *values)
{
    for (int i = 0; i < pool->count; i++) {
        const struct node *node = &pool->node[i];
        union value args[3] = {{.u64 = 0}, {.u64 = 0}, {.u64 = 0}};
        for (int k = 0; k < 3; k++)
            if (node->arg[k] >= 0)
                args[k] = values[node->arg[k]];
        switch (node->op) {
        case OP_OPERAND:
            values[i] = mf_value_load(leaves->types[node->index], leaves->operand[node->index]);
            break;
        case OP_CONST:
            values[i] = node->value;
            break;
        case OP_CONVERT:
            values[i] = mf_value_convert(pool->node[node->arg[0]].cls, node->cls, args[0]);
            break;
        case OP_CAST: {
            char stored[8];
            mf_value_store(node->dtype, pool->node[node->arg[0]].cls, args[0], stored);
            values[i] = mf_value_load(node->dtype, stored);
            break;
        }
        case OP_STATE:
            values[i] = leaves->state[node->index][node->part];
            break;
        case OP_COUNT:
            values[i] = count_value(leaves->count, node->cls);
            break;
        default:
            values[i] = mf_value_map(node->op, node->cls, args);
            break;
        }
    }
}

/* ---- monoids ---- */

static union value fold_identity(enum fold fold, enum cls cls)
{
    union value v = {.u64 = 0};
    int high = fold == FOLD_MIN;
    if (fold == FOLD_PROD)
        return count_value(1, cls);
    if (fold == FOLD_AND)
        v.u64 = ~(uint64_t)0;
    if (fold != FOLD_MIN && fold != FOLD_MAX)
        return v;
    switch (cls) {
    case CLS_F32:
        v.f32 = high ? INFINITY : -INFINITY;
        break;
    case CLS_F64:
        v.f64 = high ? (double)INFINITY : -(double)INFINITY;
        break;
    case CLS_I64:
        v.i64 = high ? INT64_MAX : INT64_MIN;
        break;
    default:
        v.u64 = high ? UINT64_MAX : 0;
        break;
    }
    return v;
}

struct state mf_state_identity(const struct reducer *reducer)
{
    union value value = {.u64 = 0};
    if (reducer->kind == RED_FOLD)
        value = fold_identity(reducer->fold, reducer->cls);
    if (reducer->kind == RED_LSE)
        value = fold_identity(FOLD_MAX, reducer->cls);
    return (struct state){.empty = 1, .v = {value, {.u64 = 0}}, .n = reducer->kind == RED_ARG ? -1 : 0};
}

int mf_reducer_of_nothing(const struct program *program, const struct reducer *reducer, int64_t *from, int64_t *to)
{
    int low = reducer->fold == FOLD_MAX;
    if (reducer->kind != RED_FOLD || reducer->cls != CLS_I64 || (reducer->fold != FOLD_MIN && !low))
        return 0;
    enum dtype type = program->map.node[reducer->arg[0]].dtype;
    int bits = mf_dtypes[type].bits;
    if (type == DT_bool || bits == 64)
        return 0;
    *from = fold_identity(reducer->fold, CLS_I64).i64;
    if (type >= DT_u8 && type <= DT_u64)
        *to = low ? 0 : ((int64_t)1 << bits) - 1;
    else
        *to = low ? -((int64_t)1 << (bits - 1)) : ((int64_t)1 << (bits - 1)) - 1;
    return 1;
}

static int is_true(enum cls cls, union value x)
{
    return cls == CLS_F32 ? x.f32 != 0 : cls == CLS_F64 ? x.f64 != 0 : x.u64 != 0;
}

/* exp(x) in units of its own power of two. */
static union value exp_unit(enum cls cls, union value x)
{
    if (cls == CLS_F32)
        return (union value){.f32 = mf_exp_unit_f32(x.f32)};
    return (union value){.f64 = mf_exp_unit_f64(x.f64)};
}

void mf_state_lift(const struct reducer *reducer, union value x, int64_t index, struct state *state)
{
    if (reducer->kind == RED_FOLD && reducer->fold == FOLD_ANY)
        x = count_value(is_true(reducer->cls, x), reducer->cls);
    *state = (struct state){.empty = 0, .v = {x, {.u64 = 0}}, .n = reducer->kind == RED_ARG ? index : 1};
    if (reducer->kind == RED_LSE)
        state->v[1] = exp_unit(reducer->cls, x);
}

static const enum op fold_ops[FOLD_COUNT] = {
    [FOLD_SUM] = OP_add, [FOLD_PROD] = OP_mul, [FOLD_MIN] = OP_min, [FOLD_MAX] = OP_max,
    [FOLD_AND] = OP_and, [FOLD_OR] = OP_or,    [FOLD_XOR] = OP_xor, [FOLD_ANY] = OP_max};

static union value apply2(enum op op, enum cls cls, union value a, union value b)
{
    union value args[2] = {a, b};
    return mf_value_map(op, cls, args);
}

static int is_nan(enum cls cls, union value x)
{
    return cls == CLS_F32 ? x.f32 != x.f32 : cls == CLS_F64 ? x.f64 != x.f64 : 0;
}

/* The better value; of equal ones the smaller index. A NaN is better than every number. */
static struct state better(const struct reducer *reducer, struct state a, struct state b)
{
    enum cls cls = reducer->cls;
    int nan_a = is_nan(cls, a.v[0]), nan_b = is_nan(cls, b.v[0]);
    if (nan_a || nan_b)
        return nan_a && nan_b ? (a.n < b.n ? a : b) : nan_a ? a : b;
    union value low = reducer->fold == FOLD_MIN ? a.v[0] : b.v[0], high = reducer->fold == FOLD_MIN ? b.v[0] : a.v[0];
    if (is_true(cls, apply2(OP_lt, cls, low, high)))
        return a;
    if (is_true(cls, apply2(OP_lt, cls, high, low)))
        return b;
    return a.n < b.n ? a : b;
}

/* Chan, Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979, eq. 1.5. */
static struct state merge_moments(enum cls cls, struct state a, struct state b)
{
    union value na = count_value(a.n, cls), nb = count_value(b.n, cls), n = count_value(a.n + b.n, cls);
    union value d = apply2(OP_sub, cls, b.v[0], a.v[0]);
    union value step = apply2(OP_mul, cls, d, apply2(OP_div, cls, nb, n));
    union value weight = apply2(OP_div, cls, apply2(OP_mul, cls, na, nb), n);
    union value square = apply2(OP_mul, cls, apply2(OP_mul, cls, d, d), weight);
    a.v[0] = apply2(OP_add, cls, a.v[0], step);
    a.v[1] = apply2(OP_add, cls, apply2(OP_add, cls, a.v[1], b.v[1]), square);
    a.n += b.n;
    return a;
}

/* What a sum in units of x's power of two is multiplied by to be in units of m's. */
static union value exp_step(enum cls cls, union value x, union value m)
{
    if (cls == CLS_F32)
        return (union value){.f32 = mf_exp_step_f32(x.f32, m.f32)};
    return (union value){.f64 = mf_exp_step_f64(x.f64, m.f64)};
}

static struct state merge_lse(enum cls cls, struct state a, struct state b)
{
    union value m = apply2(OP_max, cls, a.v[0], b.v[0]);
    union value sa = apply2(OP_mul, cls, a.v[1], exp_step(cls, a.v[0], m));
    union value sb = apply2(OP_mul, cls, b.v[1], exp_step(cls, b.v[0], m));
    a.v[0] = m;
    a.v[1] = apply2(OP_add, cls, sa, sb);
    return a;
}

/* a becomes the state of both. In place: a state that is passed by value is copied by wide loads, which wait for the
 * narrow stores before them longer than a fold takes. */
static void combine_into(const struct reducer *reducer, struct state *a, const struct state *b)
{
    if (a->empty) {
        *a = *b;
        return;
    }
    if (b->empty)
        return;
    switch (reducer->kind) {
    case RED_FOLD:
        a->v[0] = apply2(fold_ops[reducer->fold], reducer->cls, a->v[0], b->v[0]);
        break;
    case RED_MOMENTS:
        *a = merge_moments(reducer->cls, *a, *b);
        break;
    case RED_LSE:
        *a = merge_lse(reducer->cls, *a, *b);
        break;
    default:
        *a = better(reducer, *a, *b);
        break;
    }
}

struct state mf_state_combine(const struct reducer *reducer, struct state a, struct state b)
{
    combine_into(reducer, &a, &b);
    return a;
}

struct state mf_state_fold_tile(const struct reducer *reducer, const struct state *x, int64_t n)
{
    struct state lane[LANES];
    int lanes = n < LANES ? (int)n : LANES;
    for (int l = 0; l < lanes; l++) {
        lane[l] = mf_state_identity(reducer);
        for (int64_t e = l; e < n; e += LANES)
            combine_into(reducer, &lane[l], &x[e]);
    }
    for (int half = LANES / 2; half; half /= 2)
        for (int l = 0; l < half && l + half < lanes; l++)
            combine_into(reducer, &lane[l], &lane[l + half]);
    return lane[0];
}

struct state mf_state_fold(const struct reducer *reducer, struct state *states, int64_t n)
{
    while (n > 1) {
        int64_t tiles = (n + TILE - 1) / TILE;
        for (int64_t t = 0; t < tiles; t++)
            states[t] = mf_state_fold_tile(reducer, states + t * TILE, n - t * TILE < TILE ? n - t * TILE : TILE);
        n = tiles;
    }
    return n ? states[0] : mf_state_identity(reducer);
}
