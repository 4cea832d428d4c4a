/* Reducers as typed nodes: what each needs of the folds, and its finish. */
#include "expr_build.h"

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
    struct node node = mf_node_blank(OP_STATE, cls, type);
    node.index = index;
    node.part = part;
    return mf_node_add(&program->finish, node);
}

/* a op b in the finish pool, both of a's class and type. */
static int finish_map(struct program *program, enum op op, int a, int b)
{
    if (a < 0 || b < 0)
        return -1;
    int args[2] = {a, b};
    return mf_node_map(&program->finish, op, args, mf_map_arity(op));
}

/* The number of elements that took part, minus ddof (not below 0), in the class and type of finish node `like`. */
static int count_node(struct program *program, int like, int64_t ddof)
{
    if (like < 0)
        return -1;
    enum cls cls = program->finish.node[like].cls;
    struct node node = mf_node_blank(OP_COUNT, cls, program->finish.node[like].dtype);
    program->uses_count = 1;
    int count = mf_node_add(&program->finish, node);
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

/* Whether a map node's values surely fit in 8 bits: a+b of two bytes may not. */
static int is_byte(const struct node *node)
{
    return node->dtype == DT_bool ||
           ((node->dtype == DT_i8 || node->dtype == DT_u8) && (node->op == OP_OPERAND || node->op == OP_CAST));
}

/* The exact sum of a byte's values, of its squares if wanted, as a finish node in F64. */
static int byte_sum(struct program *program, int arg, int of_squares)
{
    if (of_squares && program->map.node[arg].dtype != DT_bool) { /* 0 and 1 are their own squares */
        int args[2] = {arg, arg};
        arg = mf_node_map(&program->map, OP_mul, args, 2);
    }
    enum dtype type;
    int sum = arg < 0 ? -1 : reduce_sum(program, FOLD_SUM, arg);
    return sum < 0 ? -1 : float_arg(&program->finish, sum, &type);
}

/* m2 of bytes from their exact sums (numerics.md): all but the last three operations are exact. */
static int byte_m2(struct program *program, int arg)
{
    int sum = byte_sum(program, arg, 0), squares = byte_sum(program, arg, 1), n = count_node(program, sum, 0);
    int center = finish_map(program, OP_round, finish_map(program, OP_div, sum, n), 0);
    int rest = finish_map(program, OP_sub, sum, finish_map(program, OP_mul, center, n));
    if (squares < 0 || rest < 0)
        return -1;
    int shift = finish_map(program, OP_mul, center, finish_map(program, OP_add, sum, rest));
    int around = finish_map(program, OP_sub, squares, shift);
    int part = finish_map(program, OP_mul, rest, finish_map(program, OP_div, rest, n));
    return finish_map(program, OP_sub, around, part);
}

static int reduce_var(struct program *program, int arg, int64_t ddof, int root)
{
    if (is_byte(&program->map.node[arg])) {
        int m2 = byte_m2(program, arg), var = finish_map(program, OP_div, m2, count_node(program, m2, ddof));
        return root ? finish_map(program, OP_sqrt, var, 0) : var;
    }
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
    if (is_byte(&program->map.node[arg]))
        return finish_map(program, OP_sqrt, byte_sum(program, arg, 1), 0);
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
    struct node node = mf_node_blank(OP_lt, cls, DT_bool);
    node.arg[0] = zero;
    node.arg[1] = state;
    return mf_node_add(&program->finish, node);
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
    return finish_map(program, OP_logsum, m, s);
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
    struct node node = mf_node_blank(OP_STATE, mf_dtypes[out].cls, out);
    node.index = index;
    node.part = part;
    return mf_node_add(&program->finish, node);
}
