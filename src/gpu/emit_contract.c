/* A contraction's product as text: its factors, the term they make, what a thread keeps of an output. */
#include "emit_contract.h"

#include <stdio.h>

#include "emit_reducers.h"
#include "texts.h"

static const char side_name[FACTORS] = {'x', 'y'};

/* ---- loops ---- */

void mf_emit_loops(const struct factor_loops *loops, struct gpu_text *to)
{
    mf_text_append(to, "static inline int list_loops(int list)\n{\n");
    mf_text_add(to, "    return list == 0 ? %d : list == 1 ? %d : %d;\n}\n\n", loops->count[0], loops->count[1],
                loops->count[2]);
    mf_text_append(to, "static inline int list_loop(int list, int i)\n{\n");
    for (int list = 0; list <= FACTORS; list++)
        for (int i = 0; i < loops->count[list]; i++)
            mf_text_add(to, "    if (list == %d && i == %d)\n        return %d;\n", list, i, loops->loop[list][i]);
    mf_text_append(to, "    return 0;\n}\n\n");
}

/* ---- nodes ---- */

static void mark_operands(const struct pool *pool, int node, char *operand)
{
    const struct node *n = &pool->node[node];
    if (n->op == OP_OPERAND)
        operand[n->index] = 1;
    for (int k = 0; k < 3; k++)
        if (n->arg[k] >= 0)
            mark_operands(pool, n->arg[k], operand);
}

/* The nodes that root needs beside the factors'. */
static void mark_between(const struct pool *pool, int root, const int node[FACTORS], char *used)
{
    if (root == node[0] || root == node[1])
        return;
    used[root] = 1;
    for (int k = 0; k < 3; k++)
        if (pool->node[root].arg[k] >= 0)
            mark_between(pool, pool->node[root].arg[k], node, used);
}

/* The windows of a factor's operands; what is put for a value outside; which of the other's values show it. Where no
 * windows are checked, values show that are not finite. */
static void emit_windows(const struct problem *problem, const char *operand, const struct gpu_contraction *contraction,
                         int f, struct gpu_text *to)
{
    const struct nest *nest = &problem->memory;
    const struct reducer *reducer = &problem->program.reducer[0];
    const char side = side_name[f], *type = mf_class_type[reducer->cls];
    const int subtracts = problem->program.map.node[reducer->arg[0]].op == OP_sub;
    const int extreme = nest->window_count && reducer->fold != FOLD_SUM;
    const int lowest = (reducer->fold == FOLD_MAX) !=
                       (subtracts && contraction->node[f] == problem->program.map.node[reducer->arg[0]].arg[1]);
    int count = 0;
    mf_text_add(to, "#define FOR_WINDOWS_%c(X)", side);
    for (int w = 0; w < nest->window_count; w++)
        if (operand[nest->window[w].input]) {
            mf_text_add(to, " X(%d)", w);
            count++;
        }
    mf_text_add(to, "\n#define WINDOWED_%c %d\n", side, count > 0);
    if (extreme) {
        mf_text_add(to, "#define outside_%c %s\n", side,
                    mf_emit_fold_identity(lowest ? FOLD_MAX : FOLD_MIN, reducer->cls));
        mf_text_add(to, "#define shows_%c(v) (!((v) %c %s))\n", side, lowest ? '<' : '>',
                    mf_emit_fold_identity(lowest ? FOLD_MIN : FOLD_MAX, reducer->cls));
    } else {
        mf_text_add(to, "#define outside_%c (%s)0\n#define shows_%c(v) (!((v) - (v) == 0))\n", side, type, side);
    }
}

void mf_emit_factor(const struct problem *problem, const struct gpu_slots *slots,
                    const struct gpu_contraction *contraction, int f, struct gpu_text *to)
{
    const int node = contraction->node[f];
    const struct pool *pool = &problem->program.map;
    char used[MAX_NODES] = {0}, operand[MF_MAX_INPUTS] = {0};
    mark_operands(pool, node, operand);
    mf_emit_mark(pool, node, used);
    mf_text_add(to, "#define FOR_INPUTS_%c(X)", side_name[f]);
    for (int s = 0; s < slots->count; s++)
        if (operand[slots->input[s]])
            mf_text_add(to, " X(%d)", s);
    mf_text_append(to, "\n");
    emit_windows(problem, operand, contraction, f, to);
    mf_text_add(to, "typedef %s value_t_%c;\n", mf_class_type[pool->node[node].cls], side_name[f]);
    mf_text_add(to, "static inline value_t_%c factor_%c(struct raw r)\n{\n", side_name[f], side_name[f]);
    mf_emit_pool(problem, slots, pool, used, 'v', to);
    mf_text_add(to, "    return %sv%d;\n}\n\n", contraction->negate[f] ? "-" : "", node);
}

/* number: "" for the only one. */
static void emit_term(const struct problem *problem, const struct gpu_slots *slots,
                      const struct gpu_contraction *contraction, int r, const char *number, struct gpu_text *to)
{
    const struct pool *pool = &problem->program.map;
    const int root = problem->program.reducer[r].arg[0];
    char used[MAX_NODES] = {0};
    mark_between(pool, root, contraction->node, used);
    mf_text_add(to, "static inline %s term%s_of(value_t_x v%d, value_t_y v%d)\n{\n",
                mf_class_type[problem->program.reducer[r].cls], number, contraction->node[0], contraction->node[1]);
    mf_emit_pool(problem, slots, pool, used, 'v', to);
    mf_text_add(to, "    return v%d;\n}\n\n", root);
}

/* ---- what a thread keeps ---- */

static void emit_fold(const struct reducer *reducer, struct gpu_text *to)
{
    const char *type = mf_class_type[reducer->cls], *function = mf_emit_fold_function(reducer->fold);
    const char *cls = mf_class_name[reducer->cls];
    mf_text_add(
        to,
        "typedef %s acc_t;\nstatic inline acc_t acc_empty(int number)\n{\n    (void)number;\n    return %s;\n}\n\n"
        "static inline acc_t acc_join(acc_t left, acc_t right) { return %s_%s(left, right); }\n\n",
        type, mf_emit_fold_identity(reducer->fold, reducer->cls), function, cls);
    mf_text_append(to, "static inline void accumulate(acc_t *a, value_t_x x, value_t_y y, int number, int plain)\n{\n"
                       "    (void)number;\n    (void)plain;\n");
    if (reducer->fold == FOLD_ANY)
        mf_text_append(to, "    *a = term_of(x, y) != 0 ? 1 : *a;\n");
    else
        mf_text_add(to, "    *a = %s_%s(*a, term_of(x, y));\n", function, cls);
    mf_text_append(to, "}\n\nstatic inline struct state acc_state(shape_ptr S, acc_t a)\n{\n    struct state s;\n"
                       "    s.r0 = a;\n    return s;\n}\n\n");
}

/* The greatest sum or difference, or what is the same, the negative of the least one's: of factors with these signs. */
static void emit_greatest(const struct problem *problem, const struct gpu_contraction *contraction, struct gpu_text *to)
{
    const struct reducer *reducer = &problem->program.reducer[0];
    const struct node *term = &problem->program.map.node[reducer->arg[0]];
    const char *turned = reducer->fold == FOLD_MIN ? "-" : "";
    mf_text_append(to, "typedef float acc_t;\nstatic inline acc_t acc_empty(int number)\n{\n    (void)number;\n"
                       "    return mf_bits_f32(0xff800000u);\n}\n\n");
    for (int f = 0; f < FACTORS; f++) {
        const int minus = (reducer->fold == FOLD_MIN) ^ (term->op == OP_sub && contraction->node[f] == term->arg[1]);
        mf_text_add(to, "static inline float signed_%c(float v) { return %sv; }\n", side_name[f], minus ? "-" : "");
    }
    mf_text_add(to,
                "\nstatic inline void accumulate(acc_t *a, value_t_x x, value_t_y y, int number, int plain)\n{\n"
                "    (void)number;\n    (void)plain;\n    *a = fold_max_f32(*a, signed_x(x) + signed_y(y));\n}\n\n"
                "static inline struct state acc_state(shape_ptr S, acc_t a)\n{\n    struct state s;\n"
                "    s.r0 = %sa;\n    return s;\n}\n\n",
                turned);
}

/* The best term and its number; the first one stays, whatever equals it. plain: no term is a NaN. */
static void emit_argument(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    const struct reducer *reducer = &program->reducer[0];
    const char *type = mf_class_type[reducer->cls], *worse = reducer->fold == FOLD_MAX ? "<=" : ">=";
    mf_text_add(to,
                "typedef struct {\n    %s best;\n    int at;\n} acc_t;\n\n"
                "static inline acc_t acc_empty(int number)\n{\n    acc_t a;\n    a.best = %s;\n    a.at = number;\n"
                "    return a;\n}\n\n",
                type, mf_emit_fold_identity(reducer->fold, reducer->cls));
    mf_text_append(to, "static inline void accumulate(acc_t *a, value_t_x x, value_t_y y, int number, int plain)\n{\n");
    mf_text_add(to,
                "    const %s t = term_of(x, y);\n"
                "    const int better = plain ? t %c a->best : !(t %s a->best) && a->best == a->best;\n"
                "    a->best = better ? t : a->best;\n    a->at = better ? number : a->at;\n}\n\n",
                type, reducer->fold == FOLD_MAX ? '>' : '<', worse);
    mf_text_append(to, "static inline struct state acc_state(shape_ptr S, acc_t a)\n{\n    struct state s;\n");
    for (int r = 0; r < program->reducer_count; r++) {
        mf_text_add(to, "    s.r%d = a.best;\n", r);
        if (program->reducer[r].kind == RED_ARG)
            mf_text_add(to, "    s.r%d_at = index_of(S, a.at);\n", r);
    }
    mf_text_append(to, "    return s;\n}\n\n");
}

static void emit_several_step(const struct reducer *reducer, int r, struct gpu_text *to)
{
    const char *type = mf_class_type[reducer->cls];
    mf_text_add(to, "    const %s t%d = term%d_of(x, y);\n", type, r, r);
    if (reducer->kind == RED_ARG) {
        mf_text_add(to, "    const int better%d = plain ? t%d %c a->v%d : !(t%d %s a->v%d) && a->v%d == a->v%d;\n", r,
                    r, reducer->fold == FOLD_MAX ? '>' : '<', r, r, reducer->fold == FOLD_MAX ? "<=" : ">=", r, r, r);
        mf_text_add(to, "    a->v%d = better%d ? t%d : a->v%d;\n    a->at%d = better%d ? number : a->at%d;\n", r, r, r,
                    r, r, r, r);
    } else if (reducer->fold == FOLD_ANY) {
        mf_text_add(to, "    a->v%d = t%d != 0 ? 1 : a->v%d;\n", r, r, r);
    } else {
        mf_text_add(to, "    a->v%d = %s_%s(a->v%d, t%d);\n", r, mf_emit_fold_function(reducer->fold),
                    mf_class_name[reducer->cls], r, r);
    }
}

/* A value for every reducer that is not the extreme of an argmin's or argmax's, and theirs as in emit_argument. */
static void emit_several(const struct problem *problem, const struct gpu_slots *slots,
                         const struct gpu_contraction *contraction, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    char number[16];
    int arguments = 0;
    for (int r = 0; r < program->reducer_count; r++) {
        snprintf(number, sizeof number, "%d", r);
        emit_term(problem, slots, contraction, r, number, to);
    }
    mf_text_append(to, "typedef struct {\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (mf_factors_leader(program, r) == r) {
            arguments += program->reducer[r].kind == RED_ARG;
            mf_text_add(to, "    %s v%d;\n", mf_class_type[program->reducer[r].cls], r);
            if (program->reducer[r].kind == RED_ARG)
                mf_text_add(to, "    int at%d;\n", r);
        }
    mf_text_append(to, "} acc_t;\n\nstatic inline acc_t acc_empty(int number)\n{\n    acc_t a;\n    (void)number;\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (mf_factors_leader(program, r) == r) {
            mf_text_add(to, "    a.v%d = %s;\n", r,
                        mf_emit_fold_identity(program->reducer[r].fold, program->reducer[r].cls));
            if (program->reducer[r].kind == RED_ARG)
                mf_text_add(to, "    a.at%d = number;\n", r);
        }
    mf_text_append(to, "    return a;\n}\n\n");
    if (!arguments)
        mf_text_append(to, "static inline acc_t acc_join(acc_t left, acc_t right)\n{\n");
    for (int r = 0; r < program->reducer_count && !arguments; r++)
        mf_text_add(to, "    left.v%d = %s_%s(left.v%d, right.v%d);\n", r,
                    mf_emit_fold_function(program->reducer[r].fold), mf_class_name[program->reducer[r].cls], r, r);
    mf_text_append(to, arguments ? "" : "    return left;\n}\n\n");
    mf_text_append(to, "static inline void accumulate(acc_t *a, value_t_x x, value_t_y y, int number, int plain)\n{\n"
                       "    (void)number;\n    (void)plain;\n");
    for (int r = 0; r < program->reducer_count; r++)
        if (mf_factors_leader(program, r) == r)
            emit_several_step(&program->reducer[r], r, to);
    mf_text_append(to, "}\n\nstatic inline struct state acc_state(shape_ptr S, acc_t a)\n{\n    struct state s;\n");
    for (int r = 0; r < program->reducer_count; r++) {
        mf_text_add(to, "    s.r%d = a.v%d;\n", r, mf_factors_leader(program, r));
        if (program->reducer[r].kind == RED_ARG)
            mf_text_add(to, "    s.r%d_at = index_of(S, a.at%d);\n", r, r);
    }
    mf_text_append(to, "    return s;\n}\n\n");
}

/* m: the greatest term so far, or one that is not much less (contract_copied.cl); s is the sum of e^(term - m), or of
 * e^term where m is -inf, but for the tile that is looked at. before: what s refers to (acc_before). So s is rescaled
 * once a tile, exactly (by 1) where m stays. scaled: of float32 log2 e times that, so that a term takes two sums, a
 * product and a power; where it would overflow (acc_between), a sum more. What s is where m is no number does not
 * matter. */
static void emit_log(const struct reducer *reducer, struct gpu_text *to)
{
    const char *type = mf_class_type[reducer->cls], *cls = mf_class_name[reducer->cls];
    const char *lowest = mf_emit_fold_identity(FOLD_MAX, reducer->cls);
    mf_text_add(to,
                "typedef struct {\n    %s m, before, scaled, s;\n} acc_t;\n\nstatic inline acc_t acc_empty(int number)"
                "\n{\n    acc_t a;\n    (void)number;\n    a.m = %s;\n    a.before = a.scaled = a.s = 0;\n"
                "    return a;\n}\n\n#define LOWEST %s\n",
                type, lowest, lowest);
    mf_text_add(to,
                "static inline %s origin_of(%s m) { return m == %s ? 0 : m; }\n\n"
                "static inline void acc_before(acc_t *a) { a->before = origin_of(a->m); }\n\n"
                "static inline int acc_between(acc_t *a)\n{\n    const %s origin = origin_of(a->m);\n"
                "    a->s = a->s == 0 ? 0 : a->s * EXP_BELOW_%s(a->before - origin);\n"
                "    a->scaled = SCALED_%s(origin);\n    return !(a->scaled - a->scaled == 0);\n}\n\n",
                type, type, lowest, type, cls, cls);
    mf_text_add(to,
                "static inline void accumulate(acc_t *a, value_t_x x, value_t_y y, int number, int pass)\n{\n"
                "    (void)number;\n    if (pass == 0)\n        a->m = fold_max_%s(a->m, x + y);\n"
                "    else if (pass == 1)\n        a->s += EXP_SCALED_%s(x + y, a->scaled);\n"
                "    else\n        a->s += EXP_BELOW_%s(x + y - origin_of(a->m));\n}\n\n",
                cls, cls, cls);
    mf_text_add(to,
                "static inline void acc_join_greatest(acc_t *a, acc_t of) { a->m = fold_max_%s(a->m, of.m); }\n\n"
                "static inline void acc_join_sum(acc_t *a, acc_t of)\n{\n"
                "    a->s += of.s == 0 ? 0 : of.s * EXP_BELOW_%s(origin_of(of.m) - origin_of(a->m));\n}\n\n",
                cls, cls);
    mf_text_add(to,
                "static inline struct state acc_state(shape_ptr S, acc_t a)\n{\n    struct state s;\n"
                "    s.r0_m = a.m;\n    s.r0_s = a.m - a.m == 0 ? a.s * sum_unit_%s(a.m) : 0;\n    return s;\n}\n\n",
                cls);
    mf_text_add(to, "static inline %s logarithm(%s s) { return log_of_sum_%s(s); }\n\n", type, type, cls);
}

/* Sums of products, and the logarithm that becomes of one. */
static void emit_log_product(const struct reducer *reducer, struct gpu_text *to)
{
    const char *type = mf_class_type[reducer->cls], *cls = mf_class_name[reducer->cls];
    mf_text_add(
        to,
        "typedef %s acc_t;\n\nstatic inline acc_t acc_empty(int number)\n{\n    (void)number;\n    return 0;\n}\n\n"
        "static inline void accumulate(acc_t *a, value_t_x x, value_t_y y, int number, int plain)\n{\n"
        "    (void)number;\n    (void)plain;\n    *a = mf_fma_%s(x, y, *a);\n}\n\n",
        type, cls);
    mf_text_add(to,
                "static inline acc_t logarithm(acc_t s) { return CERTIFIED ? log_of_sum_%s(s) : mf_log_%s(s); }\n\n"
                "static inline acc_t greater(acc_t a, acc_t b) { return fold_max_%s(a, b); }\n\n"
                "static inline acc_t exponential(acc_t d) { return EXP_BELOW_%s(d); }\n\n"
                "static inline struct state acc_state(shape_ptr S, acc_t a)\n{\n    struct state s;\n"
                "    s.r0_m = a;\n    s.r0_s = 0;\n    return s;\n}\n\n"
                "#define LOWEST %s\n",
                cls, cls, cls, cls, mf_emit_fold_identity(FOLD_MAX, reducer->cls));
}

void mf_emit_contraction(const struct problem *problem, const struct gpu_slots *slots,
                         const struct gpu_contraction *contraction, struct gpu_text *to)
{
    const struct reducer *reducer = &problem->program.reducer[0];
    mf_emit_loops(&contraction->loops, to);
    mf_text_append(to, mf_text_terms_cl);
    for (int f = 0; f < FACTORS; f++)
        mf_emit_factor(problem, slots, contraction, f, to);
    switch (contraction->kind) {
    case CONTRACT_FOLD:
        if (contraction->by_bits) {
            emit_greatest(problem, contraction, to);
            break;
        }
        emit_term(problem, slots, contraction, 0, "", to);
        emit_fold(reducer, to);
        break;
    case CONTRACT_ARGUMENT:
        emit_term(problem, slots, contraction, 0, "", to);
        emit_argument(problem, to);
        break;
    case CONTRACT_SEVERAL:
        emit_several(problem, slots, contraction, to);
        break;
    case CONTRACT_LOG:
        emit_log(reducer, to);
        break;
    default:
        emit_log_product(reducer, to);
    }
}

/* Vectors where each thread has whole ones. */
static int at_a_time(const struct gpu_contraction *contraction, int f, const struct contract_tile *tile, int positions)
{
    const int threads = tile->threads ? tile->threads : tile->rows / tile->row_own * (tile->columns / tile->column_own);
    return positions * tile->step % (threads * contraction->at_a_time[f]) ? 1 : contraction->at_a_time[f];
}

static void emit_copied(const struct problem *problem, const struct gpu_slots *slots,
                        const struct gpu_contraction *contraction, const struct contract_tile *tile,
                        struct gpu_text *to)
{
    const int positions[FACTORS] = {tile->rows, tile->columns}, own[FACTORS] = {tile->row_own, tile->column_own};
    for (int f = 0; f < FACTORS; f++) {
        const int slot = slots->of[problem->program.map.node[contraction->node[f]].index];
        mf_text_add(to,
                    "#define SIDE %c\n#define LIST %d\n#define POSITIONS %d\n#define ALONG_TERMS %d\n#define OWN %d\n"
                    "#define TOGETHER %d\n#define ELEMENTS in%d\n#define PLACE i%d\n#define RAW x%d\n",
                    side_name[f], f, positions[f], contraction->along_terms[f], own[f], own[f] < 4 ? own[f] : 4, slot,
                    slot, slot);
        mf_text_append(to, mf_text_copied_side_cl);
    }
}

void mf_emit_factors(const struct problem *problem, const struct gpu_slots *slots,
                     const struct gpu_contraction *contraction, const struct contract_tile *tile, struct gpu_text *to)
{
    const int positions[FACTORS] = {tile->rows, tile->columns}, own[FACTORS] = {tile->row_own, tile->column_own};
    if (contraction->copied) {
        emit_copied(problem, slots, contraction, tile, to);
        return;
    }
    for (int f = 0; f < FACTORS; f++) {
        int size = (int)mf_cls_size(problem->program.map.node[contraction->node[f]].cls);
        int together = own[f] * size <= 16 ? own[f] : 16 / size;
        mf_text_add(
            to,
            "#define SIDE %c\n#define LIST %d\n#define POSITIONS %d\n#define ALONG_TERMS %d\n#define OWN %d\n"
            "#define VALUES_TOGETHER %d\n#define BYTES_TOGETHER %d\n#define AT_A_TIME %d\n#define FAST_LOOP %d\n",
            side_name[f], f, positions[f], contraction->along_terms[f], own[f], together, together * size,
            at_a_time(contraction, f, tile, positions[f]), contraction->fast_loop[f]);
        mf_text_append(to, mf_text_factor_cl);
    }
}
