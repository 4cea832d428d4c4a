/* Builds typed nodes: NumPy's promotion rules, literals that take the other side's type, equal nodes shared. */
#include "expr_build.h"

enum domain { ANY, FLOAT, INTEGER };
enum result { SAME, TRUTH };

struct map_info {
    const char *name;
    int arity;
    enum domain domain;
    enum result result;
};

static const struct map_info maps[OP_END] = {
#define MAP(name, arity, domain, result) [OP_##name] = {#name, arity, domain, result},
#include "ops.def"
#undef MAP
};

static int same_node(const struct node *a, const struct node *b)
{
    return a->op == b->op && a->cls == b->cls && a->dtype == b->dtype && a->weak == b->weak && a->arg[0] == b->arg[0] &&
           a->arg[1] == b->arg[1] && a->arg[2] == b->arg[2] && a->index == b->index && a->part == b->part &&
           a->value.u64 == b->value.u64;
}

int mf_node_add(struct pool *pool, struct node node)
{
    for (int i = 0; i < pool->count; i++)
        if (same_node(&pool->node[i], &node))
            return i;
    if (pool->count == MAX_NODES) {
        mf_fail(MF_ERROR_EXPRESSION, "the expression has more than %d steps", MAX_NODES);
        return -1;
    }
    pool->node[pool->count] = node;
    return pool->count++;
}

struct node mf_node_blank(enum op op, enum cls cls, enum dtype type)
{
    struct node node;
    memset(&node, 0, sizeof node);
    node.op = op;
    node.cls = cls;
    node.dtype = type;
    node.arg[0] = node.arg[1] = node.arg[2] = -1;
    return node;
}

int mf_node_operand(struct pool *pool, int index, enum dtype type)
{
    struct node node = mf_node_blank(OP_OPERAND, mf_dtypes[type].cls, type);
    node.index = index;
    return mf_node_add(pool, node);
}

int mf_node_integer(struct pool *pool, int64_t value)
{
    struct node node = mf_node_blank(OP_CONST, CLS_I64, DT_i64);
    node.weak = 1;
    node.value.i64 = value;
    return mf_node_add(pool, node);
}

int mf_node_real(struct pool *pool, double value)
{
    struct node node = mf_node_blank(OP_CONST, CLS_F64, DT_f64);
    node.weak = 1;
    node.value.f64 = value;
    return mf_node_add(pool, node);
}

/* A literal's value in another class. */
static union value convert_value(const struct node *node, enum cls cls)
{
    int real = node->cls == CLS_F64 || node->cls == CLS_F32;
    double f = node->cls == CLS_F64   ? node->value.f64
               : node->cls == CLS_F32 ? (double)node->value.f32
               : node->cls == CLS_I64 ? (double)node->value.i64
                                      : (double)node->value.u64;
    union value value;
    value.u64 = 0;
    if (cls == CLS_F32)
        value.f32 = real ? (float)f : node->cls == CLS_I64 ? (float)node->value.i64 : (float)node->value.u64;
    else if (cls == CLS_F64)
        value.f64 = f;
    else
        value = node->value; /* integers reinterpret; reals never become integers without a cast */
    return value;
}

int mf_node_convert(struct pool *pool, int n, enum cls cls)
{
    const struct node *from = &pool->node[n];
    if (from->cls == cls)
        return n;
    if (from->op == OP_CONST && (mf_cls_is_float(cls) || !mf_cls_is_float(from->cls))) {
        struct node node = *from;
        node.value = convert_value(from, cls);
        node.cls = cls;
        return mf_node_add(pool, node);
    }
    struct node node = mf_node_blank(OP_CONVERT, cls, from->dtype);
    node.arg[0] = n;
    return mf_node_add(pool, node);
}

/* n == 0 or n != 0. */
static int compare_zero(struct pool *pool, enum op op, int n)
{
    enum cls cls = pool->node[n].cls;
    int zero = mf_node_integer(pool, 0);
    if (zero < 0 || (zero = mf_node_convert(pool, zero, cls)) < 0)
        return -1;
    struct node node = mf_node_blank(op, cls, DT_bool);
    node.arg[0] = n;
    node.arg[1] = zero;
    return mf_node_add(pool, node);
}

int mf_node_truth(struct pool *pool, int n)
{
    return pool->node[n].dtype == DT_bool ? n : compare_zero(pool, OP_ne, n);
}

int mf_node_cast(struct pool *pool, int n, enum dtype type)
{
    if (type == DT_bool)
        return mf_node_truth(pool, n);
    int is_class = type == DT_f32 || type == DT_f64 || type == DT_i64 || type == DT_u64;
    int is_exact = is_class || pool->node[n].op == OP_OPERAND || pool->node[n].op == OP_CAST; /* a+b of u8 may be 300 */
    if (pool->node[n].dtype == type && !pool->node[n].weak && is_exact)
        return n;
    struct node node = mf_node_blank(is_class ? OP_CONVERT : OP_CAST, mf_dtypes[type].cls, type);
    node.arg[0] = n;
    return mf_node_add(pool, node);
}

/* The common type of two operands; a literal takes the other's. */
static enum dtype common_type(const struct node *a, const struct node *b)
{
    if (a->weak == b->weak)
        return mf_dtype_promote(a->dtype, b->dtype);
    const struct node *literal = a->weak ? a : b, *other = a->weak ? b : a;
    if (mf_cls_is_float(mf_dtypes[other->dtype].cls))
        return other->dtype;
    if (literal->dtype == DT_f64)
        return DT_f64;
    return other->dtype == DT_bool ? DT_i64 : other->dtype;
}

/* The type in which a map works: the common type of args[first ...], moved into the map's domain. */
static int working_type(const struct pool *pool, const struct map_info *map, const int *args, int first, int count)
{
    enum dtype type = pool->node[args[first]].dtype;
    struct node common = pool->node[args[first]];
    for (int i = first + 1; i < count; i++) {
        const struct node *next = &pool->node[args[i]];
        type = common_type(&common, next);
        common.dtype = type;
        common.weak = common.weak && next->weak;
    }
    if (map->domain == FLOAT && !mf_cls_is_float(mf_dtypes[type].cls))
        return (int)(map->arity > 1 ? DT_f64 : mf_dtype_float(type));
    if (map->domain == INTEGER && mf_cls_is_float(mf_dtypes[type].cls)) {
        mf_fail(MF_ERROR_TYPE, "%s works on integers and bool; its operand is %s", map->name, mf_dtypes[type].name);
        return -1;
    }
    return (int)type;
}

/* Maps of bool: + is or, * is and, as in NumPy; comparisons and selections stay; other arithmetic counts 0 and 1
 * (OP_END), and what leaves 0 and 1 alone is no step at all (OP_OPERAND). */
static enum op truth_form(enum op op)
{
    switch (op) {
    case OP_add:
    case OP_or:
        return OP_max;
    case OP_mul:
    case OP_and:
        return OP_min;
    case OP_xor:
        return OP_ne;
    case OP_min:
    case OP_max:
    case OP_lt:
    case OP_le:
    case OP_eq:
    case OP_ne:
    case OP_where:
        return op;
    case OP_abs:
    case OP_floor:
    case OP_ceil:
    case OP_trunc:
    case OP_round:
    case OP_relu:
        return OP_OPERAND;
    default:
        return OP_END;
    }
}

/* The type of arithmetic of two bools that counts: NumPy's i8; i64 where NumPy refuses or has no such operation. */
static enum dtype counting_type(enum op op)
{
    int small = op == OP_floordiv || op == OP_mod || op == OP_pow || op == OP_shl || op == OP_shr;
    return small ? DT_i8 : DT_i64;
}

/* popcount counts the bits that the type has; ~ of an unsigned type stays in it. */
static int fit_to_type(struct pool *pool, enum op op, int n, enum dtype type)
{
    static const enum dtype unsigned_form[DT_COUNT] = {
        [DT_i8] = DT_u8, [DT_i16] = DT_u16, [DT_i32] = DT_u32, [DT_u8] = DT_u8, [DT_u16] = DT_u16, [DT_u32] = DT_u32};
    if (op == OP_popcount && unsigned_form[type])
        return mf_node_cast(pool, n, unsigned_form[type]);
    return n;
}

int mf_map_arity(enum op op)
{
    return maps[op].arity;
}

/* x ** 2 with the whole number 2, or of floats: the product is nearer to it than a power, and contractions know it. */
static int is_square(const struct pool *pool, enum op op, const int *args, int arg_count)
{
    if (op != OP_pow || arg_count != 2)
        return 0;
    const struct node *base = &pool->node[args[0]], *two = &pool->node[args[1]];
    if (two->op != OP_CONST || !two->weak || base->weak || base->dtype == DT_bool)
        return 0;
    return two->cls == CLS_I64   ? two->value.i64 == 2
           : two->cls == CLS_U64 ? two->value.u64 == 2
                                 : mf_cls_is_float(base->cls) && two->cls == CLS_F64 && two->value.f64 == 2;
}

int mf_node_map(struct pool *pool, enum op op, const int *args, int arg_count)
{
    if (is_square(pool, op, args, arg_count))
        return mf_node_map(pool, OP_mul, (const int[]){args[0], args[0]}, 2);
    const struct map_info *map = &maps[op];
    if (arg_count != map->arity) {
        mf_fail(MF_ERROR_EXPRESSION, "%s takes %d operand%s and has %d", map->name, map->arity,
                map->arity == 1 ? "" : "s", arg_count);
        return -1;
    }
    int first = op == OP_where, type = working_type(pool, map, args, first, arg_count);
    if (type < 0)
        return -1;
    enum cls cls = mf_dtypes[type].cls;
    int all_weak = 1;
    for (int i = first; i < arg_count; i++)
        all_weak = all_weak && pool->node[args[i]].weak;
    if (type == DT_bool) {
        if (op == OP_not)
            return compare_zero(pool, OP_eq, args[0]);
        enum op form = truth_form(op);
        if (form == OP_OPERAND)
            return args[0];
        if (form == OP_END)
            type = (int)counting_type(op);
        else
            op = form;
        cls = form == OP_END ? CLS_I64 : pool->node[args[first]].cls;
    }
    struct node node = mf_node_blank(op, cls, maps[op].result == TRUTH ? DT_bool : (enum dtype)type);
    node.weak = all_weak && maps[op].result == SAME;
    for (int i = 0; i < arg_count; i++) {
        int arg = i < first ? mf_node_truth(pool, args[i]) : fit_to_type(pool, op, args[i], (enum dtype)type);
        if (arg < 0 || (node.arg[i] = mf_node_convert(pool, arg, cls)) < 0)
            return -1;
    }
    int made = mf_node_add(pool, node);
    if (made >= 0 && op == OP_not && type >= DT_u8 && type <= DT_u32) {
        struct node cast = mf_node_blank(OP_CAST, mf_dtypes[type].cls, (enum dtype)type);
        cast.arg[0] = made;
        return mf_node_add(pool, cast);
    }
    return made;
}
