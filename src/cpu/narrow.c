/* The arithmetic of 64 bits that integers are promised (numerics.md), in as few bits as the outputs keep. Sums,
 * differences, products and bits need no more of their operands; comparisons, extremes and shifts to the right need the
 * numbers themselves, which an operand, a cast or a small result are. */
#include "narrow.h"

/* What a node's bits are: its low bits, or also the number itself, as an unsigned or a signed integer of that size. */
enum { LOW = 0, AS_UNSIGNED = 1, AS_SIGNED = 2, REFUSED = -1 };

static int fits_type(enum dtype type)
{
    return type == DT_i8 || type == DT_i16 || type == DT_i32 ? AS_SIGNED : AS_UNSIGNED;
}

static int constant_fits(const struct node *node, int bits)
{
    const int64_t value = node->value.i64;
    const int negative = node->cls == CLS_I64 && value < 0;
    return (negative                  ? LOW
            : node->value.u64 >> bits ? LOW
                                      : AS_UNSIGNED) |
           (negative ? (value >= -(INT64_C(1) << (bits - 1)) ? AS_SIGNED : LOW)
                     : (node->value.u64 >> (bits - 1) ? LOW : AS_SIGNED));
}

/* The absolute value of a difference: the greater number less the other one. */
static int is_distance(const struct block_plan *plan, const struct node *node)
{
    const struct node *of = &plan->pool->node[node->arg[0]];
    return node->op == OP_abs && of->op == OP_sub && plan->fits[of->arg[0]] & plan->fits[of->arg[1]];
}

/* What node's bits are where its operands' are x, y and z. */
static int fits(const struct block_plan *plan, const struct node *node, int bits, int x, int y, int z)
{
    const struct node *second = node->arg[1] >= 0 ? &plan->pool->node[node->arg[1]] : NULL;
    const int shifts = second && second->op == OP_CONST && second->value.u64 < (uint64_t)bits;
    switch (node->op) {
    case OP_CONVERT:
        return node->cls == CLS_U64 ? x & AS_UNSIGNED : x;
    case OP_add:
    case OP_sub:
    case OP_mul:
    case OP_neg:
        return LOW;
    case OP_and: /* one that has no higher bits leaves none */
        return x & y ? x & y : (x | y) & AS_UNSIGNED;
    case OP_or:
    case OP_xor:
        return x & y;
    case OP_not:
        return x & AS_SIGNED;
    case OP_shl:
        return shifts ? LOW : REFUSED;
    case OP_shr:
        return shifts && x ? x : REFUSED;
    case OP_min:
    case OP_max:
        return x & y ? x & y : REFUSED;
    case OP_lt:
    case OP_le:
    case OP_eq:
    case OP_ne:
        return x & y ? AS_UNSIGNED | AS_SIGNED : REFUSED;
    case OP_where:
        return x ? y & z : REFUSED;
    case OP_abs:
        return x || is_distance(plan, node) ? AS_UNSIGNED : REFUSED;
    case OP_relu:
        return x ? AS_UNSIGNED : REFUSED;
    default:
        return REFUSED;
    }
}

static int node_fits(const struct block_plan *plan, const struct node *node, int size)
{
    const int bits = 8 * size;
    int of[3];
    for (int a = 0; a < 3; a++)
        of[a] = node->arg[a] >= 0 ? plan->fits[node->arg[a]] : LOW;
    if (mf_cls_is_float(node->cls))
        return REFUSED;
    if (node->op == OP_CONST)
        return constant_fits(node, bits);
    if (node->op == OP_OPERAND || node->op == OP_CAST) {
        const enum dtype type = node->op == OP_CAST ? node->dtype : plan->types[node->index];
        const int is_known = mf_dtypes[type].size == size && mf_dtypes[type].cls == CLS_I64 && type != DT_bool;
        return is_known ? fits_type(type) : REFUSED;
    }
    return fits(plan, node, bits, of[0], of[1], of[2]);
}

/* Whether all nodes' low bits can be had in integers of `size` bytes, as all operands are (0: there is none);
 * plan->fits says of which ones that is the number itself. */
static int all_fit(struct block_plan *plan, int size, const struct kernels *kernels)
{
    if (!kernels->bits[0] || size < 1 || size > 4)
        return 0;
    for (int i = 0; i < plan->pool->count; i++) {
        const int known = plan->used[i] ? node_fits(plan, &plan->pool->node[i], size) : LOW;
        if (known == REFUSED)
            return 0;
        plan->fits[i] = (uint8_t)known;
    }
    return 1;
}

static void take(struct block_plan *plan, int size)
{
    for (int i = 0; i < plan->pool->count; i++)
        plan->direct[i] = plan->pool->node[i].op == OP_OPERAND;
    plan->narrow = size;
}

static int is_compared(const struct node *node)
{
    return node->op == OP_lt || node->op == OP_le || node->op == OP_eq || node->op == OP_ne;
}

int mf_narrow_plan(struct block_plan *plan, const struct problem *problem, const struct kernels *kernels)
{
    const struct program *program = &problem->program;
    const int size = mf_dtypes[problem->out_type[0]].size;
    for (int k = 0; k < problem->output_count; k++) {
        const enum dtype type = problem->out_type[k];
        const int is_truth = is_compared(&program->finish.node[program->output[k]]);
        if (mf_dtypes[type].size != size || mf_dtypes[type].cls != CLS_I64 || (type == DT_bool && !is_truth))
            return 0;
    }
    if (!all_fit(plan, size, kernels))
        return 0;
    take(plan, size);
    return 1;
}

static enum dtype type_of(int size, int is_signed)
{
    return size == 1   ? (is_signed ? DT_i8 : DT_u8)
           : size == 2 ? (is_signed ? DT_i16 : DT_u16)
                       : (is_signed ? DT_i32 : DT_u32);
}

/* The memory type in which a fold's argument can be had; -1: none. size: bytes of integers in which all
 * can; 0: none. */
static int row_type(const struct block_plan *plan, const struct mf_plan *of, const struct reducer *reducer, int size)
{
    const struct node *root = &plan->pool->node[reducer->arg[0]];
    if (reducer->kind != RED_FOLD || reducer->cls != CLS_I64)
        return -1;
    int type = -1;
    if (!size && root->op == OP_CONVERT && is_compared(&plan->pool->node[root->arg[0]]))
        type = DT_bool;
    else if (size && plan->fits[reducer->arg[0]] != LOW)
        type = (int)type_of(size, !(plan->fits[reducer->arg[0]] & AS_UNSIGNED));
    const struct fold_kernels *k = type < 0 ? NULL : &of->device->kernels->fold_from[reducer->fold][type];
    return k && k->rows && k->chain ? type : -1;
}

int mf_narrow_rows(struct block_plan *plan, const struct mf_plan *of, const int *reducer, int count,
                   const int *straight, int *type)
{
    const struct reducer *reducers = of->problem.program.reducer;
    int size = 0, all = 1, any = 0;
    for (int i = 0; i < plan->pool->count; i++)
        if (plan->used[i] && plan->pool->node[i].op == OP_OPERAND)
            size = mf_dtypes[plan->types[plan->pool->node[i].index]].size;
    size = all_fit(plan, size, of->device->kernels) ? size : 0;
    for (int q = 0; q < count; q++) {
        const int r = reducer[q];
        type[r] = straight[r] ? -1 : row_type(plan, of, &reducers[r], size);
        all &= straight[r] || type[r] >= 0;
        any |= !straight[r];
    }
    for (int q = 0; q < count; q++) {
        if (!all)
            type[reducer[q]] = -1;
        else if (!straight[reducer[q]])
            plan->truths[reducers[reducer[q]].arg[0]] = !size;
    }
    if (size && all && any)
        take(plan, size);
    return !all || !any ? 0 : size ? size : 1;
}

pair_fn *mf_narrow_last(const struct block_plan *plan, int root, const struct kernels *kernels)
{
    const struct node *node = &plan->pool->node[root];
    const int pair = mf_pair_of(node->op), is_extreme = node->op == OP_min || node->op == OP_max;
    const int is_signed = is_extreme && !(plan->fits[node->arg[0]] & plan->fits[node->arg[1]] & AS_UNSIGNED);
    return pair < 0 ? NULL : kernels->pair[pair][type_of(plan->narrow, is_signed)];
}

/* to = x o y; where one is null, it is `number` in all places. */
static void run_pair(const struct block *block, enum pair pair, int is_signed, void *to, const void *x, const void *y,
                     int64_t number, int64_t n)
{
    const struct pair_rows rows = {.rows = 1, .n = n, .period = 1, .x_unit = x != NULL, .y_unit = y != NULL};
    block->kernels->pair[pair][type_of(block->plan->narrow, is_signed)](to, x ? x : (const void *)&number,
                                                                        y ? y : (const void *)&number, &rows);
}

static void run_distance(const struct block *block, const struct node *of, void *to, int64_t n)
{
    const struct block_plan *plan = block->plan;
    const struct pair_rows rows = {.rows = 1, .n = n, .x_unit = 1, .y_unit = 1};
    const enum dtype type = type_of(plan->narrow, !(plan->fits[of->arg[0]] & plan->fits[of->arg[1]] & AS_UNSIGNED));
    const void *x = block->reg[of->arg[0]], *y = block->reg[of->arg[1]];
    block->kernels->pair[PAIR_MIN][type](block->memory, x, y, &rows);
    block->kernels->pair[PAIR_MAX][type](to, x, y, &rows);
    block->kernels->pair[PAIR_SUB][type](to, to, block->memory, &rows);
}

static void run_map(const struct block *block, const struct node *node, enum narrow_map map, void *to,
                    const void *const *x, int64_t n)
{
    const struct block_plan *plan = block->plan;
    const int second = map == NARROW_LT || map == NARROW_EQ ? plan->fits[node->arg[1]] : AS_UNSIGNED | AS_SIGNED;
    const uint32_t sign = plan->fits[node->arg[0]] & second & AS_UNSIGNED ? 0 : UINT32_C(1) << (8 * plan->narrow - 1);
    const uint32_t a =
        map <= NARROW_SHR ? (uint32_t)plan->pool->node[node->arg[1]].value.u64 : node->op == OP_le || node->op == OP_ne;
    const int size = plan->narrow / 2, turns = node->op == OP_le;
    block->kernels->narrow_map[map][size](to, x[turns], x[!turns], x[2], n, a, sign);
}

static enum narrow_map map_of(enum op op)
{
    return op == OP_shl                   ? NARROW_SHL
           : op == OP_shr                 ? NARROW_SHR
           : op == OP_where               ? NARROW_WHERE
           : (op == OP_eq || op == OP_ne) ? NARROW_EQ
                                          : NARROW_LT;
}

const void *mf_narrow_node(const struct block *block, int i, void *to, int64_t n)
{
    const struct node *node = &block->plan->pool->node[i];
    const void *x[3] = {NULL, NULL, NULL};
    for (int a = 0; a < 3; a++)
        if (node->arg[a] >= 0)
            x[a] = block->reg[node->arg[a]];
    const int is_unsigned = block->plan->fits[node->arg[0]] & AS_UNSIGNED;
    pair_fn *pair = mf_narrow_last(block->plan, i, block->kernels);
    if (node->op == OP_CONVERT || node->op == OP_CAST || (is_unsigned && (node->op == OP_abs || node->op == OP_relu)))
        return x[0];
    if (pair) {
        const struct pair_rows rows = {.rows = 1, .n = n, .x_unit = 1, .y_unit = 1};
        pair(to, x[0], x[1], &rows);
    } else if (node->op == OP_and || node->op == OP_or || node->op == OP_xor) {
        const enum bits bits = node->op == OP_and ? BITS_AND : node->op == OP_or ? BITS_OR : BITS_XOR;
        block->kernels->bits[bits](to, x[0], x[1], n * block->plan->narrow);
    } else if (node->op == OP_neg || node->op == OP_not) {
        run_pair(block, PAIR_SUB, 0, to, NULL, x[0], node->op == OP_not ? -1 : 0, n);
    } else if (node->op == OP_relu) {
        run_pair(block, PAIR_MAX, 1, to, x[0], NULL, 0, n);
    } else if (is_distance(block->plan, node)) {
        run_distance(block, &block->plan->pool->node[node->arg[0]], to, n);
    } else if (node->op == OP_abs) {
        run_pair(block, PAIR_SUB, 0, to, NULL, x[0], 0, n);
        run_pair(block, PAIR_MAX, 1, to, to, x[0], 0, n);
    } else {
        run_map(block, node, map_of(node->op), to, x, n);
    }
    return to;
}
