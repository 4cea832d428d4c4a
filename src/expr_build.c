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

static int add_node(struct pool *pool, struct node node)
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

static struct node blank(enum op op, enum cls cls, enum dtype type)
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
    struct node node = blank(OP_OPERAND, mf_dtypes[type].cls, type);
    node.index = index;
    return add_node(pool, node);
}

int mf_node_integer(struct pool *pool, int64_t value)
{
    struct node node = blank(OP_CONST, CLS_I64, DT_i64);
    node.weak = 1;
    node.value.i64 = value;
    return add_node(pool, node);
}

int mf_node_real(struct pool *pool, double value)
{
    struct node node = blank(OP_CONST, CLS_F64, DT_f64);
    node.weak = 1;
    node.value.f64 = value;
    return add_node(pool, node);
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
        return add_node(pool, node);
    }
    struct node node = blank(OP_CONVERT, cls, from->dtype);
    node.arg[0] = n;
    return add_node(pool, node);
}

/* n == 0 or n != 0. */
static int compare_zero(struct pool *pool, enum op op, int n)
{
    enum cls cls = pool->node[n].cls;
    int zero = mf_node_integer(pool, 0);
    if (zero < 0 || (zero = mf_node_convert(pool, zero, cls)) < 0)
        return -1;
    struct node node = blank(op, cls, DT_bool);
    node.arg[0] = n;
    node.arg[1] = zero;
    return add_node(pool, node);
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
    struct node node = blank(is_class ? OP_CONVERT : OP_CAST, mf_dtypes[type].cls, type);
    node.arg[0] = n;
    return add_node(pool, node);
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

int mf_node_map(struct pool *pool, enum op op, const int *args, int arg_count)
{
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
    struct node node = blank(op, cls, maps[op].result == TRUTH ? DT_bool : (enum dtype)type);
    node.weak = all_weak && maps[op].result == SAME;
    for (int i = 0; i < arg_count; i++) {
        int arg = i < first ? mf_node_truth(pool, args[i]) : fit_to_type(pool, op, args[i], (enum dtype)type);
        if (arg < 0 || (node.arg[i] = mf_node_convert(pool, arg, cls)) < 0)
            return -1;
    }
    int made = add_node(pool, node);
    if (made >= 0 && op == OP_not && type >= DT_u8 && type <= DT_u32) {
        struct node cast = blank(OP_CAST, mf_dtypes[type].cls, (enum dtype)type);
        cast.arg[0] = made;
        return add_node(pool, cast);
    }
    return made;
}

/* ---- reducers ---- */

static int add_reducer(struct program *program, struct reducer reducer)
{
    for (int i = 0; i < program->reducer_count; i++)
        if (!memcmp(&program->reducer[i], &reducer, sizeof reducer))
            return i;
    if (program->reducer_count == MAX_REDUCERS) {
        mf_fail(MF_ERROR_EXPRESSION, "the expression has more than %d reducers", MAX_REDUCERS);
        return -1;
    }
    program->reducer[program->reducer_count] = reducer;
    return program->reducer_count++;
}

/* A finish node for one part of a reducer's state. */
static int state_node(struct program *program, enum reducer_kind kind, enum fold fold, int arg, int part, enum cls cls,
                      enum dtype type)
{
    struct reducer reducer;
    memset(&reducer, 0, sizeof reducer);
    reducer.kind = kind;
    reducer.fold = fold;
    reducer.cls = program->map.node[arg].cls;
    reducer.arg_count = 1;
    reducer.arg[0] = arg;
    int index = add_reducer(program, reducer);
    if (index < 0)
        return -1;
    struct node node = blank(OP_STATE, cls, type);
    node.index = index;
    node.part = part;
    return add_node(&program->finish, node);
}

/* a op b in the finish pool, both of a's class and type. */
static int finish_map(struct program *program, enum op op, int a, int b)
{
    if (a < 0 || b < 0)
        return -1;
    int args[2] = {a, b};
    return mf_node_map(&program->finish, op, args, maps[op].arity);
}

/* The number of elements that took part, minus ddof (not below 0), in the class and type of finish node `like`. */
static int count_node(struct program *program, int like, int64_t ddof)
{
    if (like < 0)
        return -1;
    enum cls cls = program->finish.node[like].cls;
    struct node node = blank(OP_COUNT, cls, program->finish.node[like].dtype);
    program->uses_count = 1;
    int count = add_node(&program->finish, node);
    if (!ddof)
        return count;
    int less = finish_map(program, OP_sub, count, mf_node_integer(&program->finish, ddof));
    return finish_map(program, OP_max, less, mf_node_integer(&program->finish, 0));
}

/* The argument as a float: itself, or f64 for integers (sums of them are exact to 2^53). */
static int float_arg(struct pool *pool, int arg, enum dtype *type)
{
    *type = pool->node[arg].dtype;
    if (mf_cls_is_float(mf_dtypes[*type].cls))
        return arg;
    *type = DT_f64;
    return mf_node_cast(pool, arg, DT_f64);
}

static int reduce_sum(struct program *program, enum fold fold, int arg)
{
    enum dtype type = program->map.node[arg].dtype;
    if (type == DT_bool && (arg = mf_node_convert(&program->map, arg, CLS_I64)) < 0)
        return -1;
    enum cls cls = program->map.node[arg].cls;
    if (type >= DT_u8 && type <= DT_u64) { /* the sum's bits are the same in i64 and u64 */
        int sum = state_node(program, RED_FOLD, fold, arg, 0, cls, DT_i64);
        return sum < 0 ? -1 : mf_node_cast(&program->finish, sum, DT_u64);
    }
    if (!mf_cls_is_float(cls))
        return state_node(program, RED_FOLD, fold, arg, 0, cls, DT_i64);
    int state = state_node(program, RED_FOLD, fold, arg, 0, cls, type);
    return fold == FOLD_SUM && state >= 0 ? finish_map(program, OP_add, state, mf_node_integer(&program->finish, 0))
                                          : state;
}

static int reduce_mean(struct program *program, int arg)
{
    enum dtype type = program->map.node[arg].dtype;
    int sum;
    if (!mf_cls_is_float(mf_dtypes[type].cls) && mf_dtypes[type].size <= 4) { /* the sum is exact, and faster */
        sum = reduce_sum(program, FOLD_SUM, arg);
        sum = sum < 0 ? -1 : float_arg(&program->finish, sum, &type);
    } else {
        arg = float_arg(&program->map, arg, &type);
        sum = arg < 0 ? -1 : reduce_sum(program, FOLD_SUM, arg);
    }
    return finish_map(program, OP_div, sum, count_node(program, sum, 0));
}

static int reduce_var(struct program *program, int arg, int64_t ddof, int root)
{
    enum dtype type;
    arg = float_arg(&program->map, arg, &type);
    if (arg < 0)
        return -1;
    enum cls cls = mf_dtypes[type].cls;
    int mean = state_node(program, RED_MOMENTS, FOLD_SUM, arg, 0, cls, type);
    int m2 = state_node(program, RED_MOMENTS, FOLD_SUM, arg, 1, cls, type);
    int var = finish_map(program, OP_div, m2, count_node(program, m2, ddof));
    /* an infinite or NaN mean makes the variance NaN, as in NumPy */
    int nothing = mean < 0 ? -1 : finish_map(program, OP_mul, mean, mf_node_integer(&program->finish, 0));
    var = finish_map(program, OP_add, var, nothing);
    return root ? finish_map(program, OP_sqrt, var, 0) : var;
}

static int reduce_norm(struct program *program, int arg)
{
    enum dtype type;
    arg = float_arg(&program->map, arg, &type);
    int args[2] = {arg, arg};
    int square = arg < 0 ? -1 : mf_node_map(&program->map, OP_mul, args, 2);
    int sum = square < 0 ? -1 : reduce_sum(program, FOLD_SUM, square);
    return finish_map(program, OP_sqrt, sum, 0);
}

static int reduce_truth(struct program *program, enum fold fold, int arg)
{
    arg = mf_node_truth(&program->map, arg);
    int state = arg < 0 ? -1 : state_node(program, RED_FOLD, fold, arg, 0, program->map.node[arg].cls, DT_bool);
    if (state < 0)
        return -1;
    /* of no elements min is the greatest value and max the least: above 0 or not is 1 or 0 */
    enum cls cls = program->finish.node[state].cls;
    int zero = mf_node_integer(&program->finish, 0);
    if (zero < 0 || (zero = mf_node_convert(&program->finish, zero, cls)) < 0)
        return -1;
    struct node node = blank(OP_lt, cls, DT_bool);
    node.arg[0] = zero;
    node.arg[1] = state;
    return add_node(&program->finish, node);
}

static int reduce_extreme(struct program *program, enum fold fold, int arg)
{
    const struct node *node = &program->map.node[arg];
    if (node->dtype == DT_bool)
        return reduce_truth(program, fold, arg);
    int state = state_node(program, RED_FOLD, fold, arg, 0, node->cls, node->dtype);
    if (state < 0 || !mf_cls_is_float(node->cls))
        return state;
    return finish_map(program, OP_add, state, mf_node_integer(&program->finish, 0)); /* -0 becomes 0 */
}

static int reduce_bits(struct program *program, enum fold fold, const char *name, int arg)
{
    enum dtype type = program->map.node[arg].dtype;
    if (mf_cls_is_float(mf_dtypes[type].cls)) {
        mf_fail(MF_ERROR_TYPE, "%s reduces integers and bool; its operand is %s", name, mf_dtypes[type].name);
        return -1;
    }
    if (type == DT_bool && fold == FOLD_AND)
        return reduce_truth(program, FOLD_MIN, arg);
    if (type == DT_bool && (arg = mf_node_convert(&program->map, arg, CLS_I64)) < 0)
        return -1;
    return state_node(program, RED_FOLD, fold, arg, 0, program->map.node[arg].cls, type);
}

static int reduce_logsumexp(struct program *program, int arg)
{
    enum dtype type;
    arg = float_arg(&program->map, arg, &type);
    if (arg < 0)
        return -1;
    enum cls cls = mf_dtypes[type].cls;
    int m = state_node(program, RED_LSE, FOLD_SUM, arg, 0, cls, type);
    int s = state_node(program, RED_LSE, FOLD_SUM, arg, 1, cls, type);
    /* s is at least 1 where m is finite; where it is not, s says nothing and m is the answer */
    s = finish_map(program, OP_max, s, mf_node_integer(&program->finish, 1));
    return finish_map(program, OP_add, finish_map(program, OP_log, s, 0), m);
}

/* The literal that is var's and std's second operand; -1 when it is not a whole number from 0 on. */
static int64_t literal_ddof(const struct program *program, const int *args, int arg_count)
{
    if (arg_count < 2)
        return 0;
    const struct node *node = &program->map.node[args[1]];
    return node->op == OP_CONST && node->cls == CLS_I64 && node->value.i64 >= 0 ? node->value.i64 : -1;
}

enum reducer_id {
    R_sum,
    R_prod,
    R_min,
    R_max,
    R_mean,
    R_var,
    R_std,
    R_norm,
    R_any,
    R_all,
    R_and,
    R_or,
    R_xor,
    R_count,
    R_argmin,
    R_argmax,
    R_logsumexp,
    R_END
};

static const struct {
    const char *name;
    int needs_element; /* has no identity */
} reducers[R_END] = {
    [R_sum] = {"sum", 0},
    [R_prod] = {"prod", 0},
    [R_min] = {"min", 0},
    [R_max] = {"max", 0},
    [R_mean] = {"mean", 1},
    [R_var] = {"var", 1},
    [R_std] = {"std", 1},
    [R_norm] = {"norm", 0},
    [R_any] = {"any", 0},
    [R_all] = {"all", 0},
    [R_and] = {"and", 0},
    [R_or] = {"or", 0},
    [R_xor] = {"xor", 0},
    [R_count] = {"count", 0},
    [R_argmin] = {"argmin", 1},
    [R_argmax] = {"argmax", 1},
    [R_logsumexp] = {"logsumexp", 0},
};

static int reduce_count(struct program *program, int arg)
{
    arg = mf_node_truth(&program->map, arg);
    arg = arg < 0 ? -1 : mf_node_convert(&program->map, arg, CLS_I64);
    return arg < 0 ? -1 : state_node(program, RED_FOLD, FOLD_SUM, arg, 0, CLS_I64, DT_i64);
}

static int reduce_by_id(struct program *program, enum reducer_id id, int arg, int64_t ddof)
{
    switch (id) {
    case R_sum:
        return reduce_sum(program, FOLD_SUM, arg);
    case R_prod:
        return reduce_sum(program, FOLD_PROD, arg);
    case R_min:
        return reduce_extreme(program, FOLD_MIN, arg);
    case R_max:
        return reduce_extreme(program, FOLD_MAX, arg);
    case R_mean:
        return reduce_mean(program, arg);
    case R_var:
        return reduce_var(program, arg, ddof, 0);
    case R_std:
        return reduce_var(program, arg, ddof, 1);
    case R_norm:
        return reduce_norm(program, arg);
    case R_any:
        return state_node(program, RED_FOLD, FOLD_ANY, arg, 0, program->map.node[arg].cls, DT_bool);
    case R_all:
        return reduce_truth(program, FOLD_MIN, arg);
    case R_and:
        return reduce_bits(program, FOLD_AND, "and", arg);
    case R_or:
        return reduce_bits(program, FOLD_OR, "or", arg);
    case R_xor:
        return reduce_bits(program, FOLD_XOR, "xor", arg);
    case R_count:
        return reduce_count(program, arg);
    case R_argmin:
        return state_node(program, RED_ARG, FOLD_MIN, arg, 1, CLS_I64, DT_i64);
    case R_argmax:
        return state_node(program, RED_ARG, FOLD_MAX, arg, 1, CLS_I64, DT_i64);
    default:
        return reduce_logsumexp(program, arg);
    }
}

int mf_node_reduce(struct program *program, const char *name, const int *args, int arg_count)
{
    int id = 0;
    while (id < R_END && strcmp(reducers[id].name, name) != 0)
        id++;
    if (id == R_END)
        return -2;
    int most = id == R_var || id == R_std ? 2 : 1;
    if (arg_count < 1 || arg_count > most) {
        mf_fail(MF_ERROR_EXPRESSION, "reducer %s takes %s and has %d", name,
                most == 2 ? "one operand and, if wanted, the degrees of freedom" : "one operand", arg_count);
        return -1;
    }
    int64_t ddof = literal_ddof(program, args, arg_count);
    if (ddof < 0) {
        mf_fail(MF_ERROR_EXPRESSION, "the second operand of %s, the degrees of freedom, must be a number 0, 1, 2 ...",
                name);
        return -1;
    }
    enum dtype type = program->map.node[args[0]].dtype;
    int no_identity = reducers[id].needs_element ||
                      ((id == R_min || id == R_max) && (type == DT_bool || !mf_cls_is_float(mf_dtypes[type].cls)));
    if (no_identity && !program->needs_element)
        program->needs_element = reducers[id].name;
    return reduce_by_id(program, (enum reducer_id)id, args[0], ddof);
}

int mf_node_reduce_user(struct program *program, const struct operation *operation, int part, const int *args,
                        int arg_count)
{
    const mf_operation *is = &operation->is;
    if (arg_count != is->input_count || part < 0 || part >= is->output_count) {
        mf_fail(MF_ERROR_EXPRESSION,
                "%s takes %d operand%s and has %d results (result %d of %d operands was asked for)", operation->name,
                is->input_count, is->input_count == 1 ? "" : "s", is->output_count, part, arg_count);
        return -1;
    }
    enum dtype in = (enum dtype)mf_dtype_find(mf_dtype(is->input_type));
    enum dtype out = (enum dtype)mf_dtype_find(mf_dtype(is->output_type));
    struct reducer reducer;
    memset(&reducer, 0, sizeof reducer);
    reducer.kind = RED_USER;
    reducer.cls = mf_dtypes[in].cls;
    reducer.user = operation;
    reducer.arg_count = arg_count;
    for (int i = 0; i < arg_count; i++)
        if ((reducer.arg[i] = mf_node_convert(&program->map, args[i], reducer.cls)) < 0)
            return -1;
    int index = add_reducer(program, reducer);
    if (index < 0)
        return -1;
    struct node node = blank(OP_STATE, mf_dtypes[out].cls, out);
    node.index = index;
    node.part = part;
    return add_node(&program->finish, node);
}
