/* Reducers as text: their states between tiles, their lanes within one, and the functions on both. What they compute is
 * scalar.c's. */
#include <stdio.h>

#include "emit_reducers.h"

const char *const mf_class_type[] = {"float", "double", "int64_t", "uint64_t"};
const char *const mf_class_name[] = {"f32", "f64", "i64", "u64"};

int mf_emit_has_kind(const struct problem *problem, enum reducer_kind kind)
{
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == kind)
            return 1;
    return 0;
}

/* Whether states count their elements: moments merge by counts, and windows may leave out some that are to be
 * counted. */
int mf_emit_has_count(const struct problem *problem)
{
    return mf_emit_has_kind(problem, RED_MOMENTS) ||
           (problem->program.reducer_count && problem->program.uses_count && problem->memory.window_count);
}

int mf_emit_is_ordered(const struct problem *problem)
{
    for (int r = 0; r < problem->program.reducer_count; r++) {
        const struct reducer *reducer = &problem->program.reducer[r];
        int rounds = mf_cls_is_float(reducer->cls) && (reducer->fold == FOLD_SUM || reducer->fold == FOLD_PROD);
        if (reducer->kind == RED_MOMENTS || reducer->kind == RED_LSE || reducer->kind == RED_USER ||
            (reducer->kind == RED_FOLD && rounds))
            return 1;
    }
    return 0;
}

/* fold_min and fold_max: kernels/reducers.cl. */
const char *mf_emit_fold_function(enum fold fold)
{
    static const char *const names[FOLD_COUNT] = {
        [FOLD_SUM] = "mf_add", [FOLD_PROD] = "mf_mul", [FOLD_MIN] = "fold_min", [FOLD_MAX] = "fold_max",
        [FOLD_AND] = "mf_and", [FOLD_OR] = "mf_or",    [FOLD_XOR] = "mf_xor",   [FOLD_ANY] = "fold_max"};
    return names[fold];
}

/* Whether a node's value is 0 or 1: a bool's, of any class. */
int mf_emit_is_truth(const struct pool *pool, int i)
{
    return pool->node[i].op == OP_CONVERT ? mf_emit_is_truth(pool, pool->node[i].arg[0])
                                          : pool->node[i].dtype == DT_bool;
}

/* Whether a lane of this reducer fits in an int: 32 sums of 16 bits or of truths, or no sum at all of 32. The element
 * is then an operand as it is. (64-bit integers take two registers and two or more instructions.) */
int mf_emit_is_narrow(const struct problem *problem, int r)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const struct node *node = &problem->program.map.node[reducer->arg[0]];
    if (reducer->kind != RED_FOLD || reducer->cls != CLS_I64 || reducer->fold == FOLD_PROD)
        return 0;
    if (mf_emit_is_truth(&problem->program.map, reducer->arg[0]))
        return 1;
    if (node->op != OP_OPERAND)
        return 0;
    enum dtype type = problem->in_type[node->index];
    if (type == DT_i32)
        return reducer->fold != FOLD_SUM;
    return mf_dtypes[type].size <= 2;
}

int mf_emit_bytes_operand(const struct problem *problem)
{
    const struct program *program = &problem->program;
    const struct reducer *reducer = &program->reducer[0];
    if (program->reducer_count != 1 || problem->memory.window_count || !mf_emit_is_narrow(problem, 0) ||
        reducer->fold != FOLD_SUM || program->map.node[reducer->arg[0]].op != OP_OPERAND)
        return -1;
    int operand = program->map.node[reducer->arg[0]].index;
    return problem->in_type[operand] == DT_i8 || problem->in_type[operand] == DT_u8 ? operand : -1;
}

static const char *lane_identity(const struct problem *problem, int r)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    if (mf_emit_is_narrow(problem, r) && (reducer->fold == FOLD_MIN || reducer->fold == FOLD_MAX))
        return mf_emit_extreme_identity(problem, reducer->fold);
    return mf_emit_is_narrow(problem, r) && reducer->fold == FOLD_AND
               ? "-1"
               : mf_emit_fold_identity(reducer->fold, reducer->cls);
}

/* The neutral value of a fold as text: the states of no elements. */
const char *mf_emit_fold_identity(enum fold fold, enum cls cls)
{
    static const char *const infinity[2][2] = {
        {"mf_bits_f32(0x7f800000u)", "mf_bits_f32(0xff800000u)"},
        {"mf_bits_f64(0x7ff0000000000000ul)", "mf_bits_f64(0xfff0000000000000ul)"}};
    int low = fold == FOLD_MAX;
    if (fold == FOLD_MIN || fold == FOLD_MAX)
        return mf_cls_is_float(cls) ? infinity[cls == CLS_F64][low]
               : cls == CLS_I64     ? (low ? "INT64_MIN" : "INT64_MAX")
                                    : (low ? "0" : "UINT64_MAX");
    return fold == FOLD_PROD ? "1" : fold == FOLD_AND ? "~(uint64_t)0" : "0";
}

/* The fields of reducer r, as many as there are. in_order: whether two states of as many elements, merged the other way
 * round, differ by it. */
struct field {
    const char *type;
    char name[16];
    int in_order;
};

/* A user's state has up to 8; a state has these of all reducers, a count, and whether there was any element. */
enum { REDUCER_FIELDS = MAX_REDUCER_ARGS, MAX_FIELDS = REDUCER_FIELDS * MAX_REDUCERS + 2 };

static int fields_of(const struct problem *problem, int r, struct field *field)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const char *type = mf_class_type[reducer->cls];
    static const char *const suffix[][2] = {
        [RED_FOLD] = {"", NULL}, [RED_MOMENTS] = {"_mean", "_m2"}, [RED_LSE] = {"_m", "_s"}, [RED_ARG] = {"", "_at"}};
    int n = 0;
    for (; reducer->kind == RED_USER && n < reducer->user->recipe->part_count; n++) {
        field[n].type = type;
        field[n].in_order = 1;
        snprintf(field[n].name, sizeof field[n].name, "r%d.p%d", r & 31, n & 7);
    }
    for (; reducer->kind != RED_USER && n < 2 && suffix[reducer->kind][n]; n++) {
        field[n].type = n && reducer->kind == RED_ARG ? "index_t" : type;
        field[n].in_order = !n && reducer->kind == RED_MOMENTS;
        snprintf(field[n].name, sizeof field[n].name, "r%d%s", r, suffix[reducer->kind][n]);
    }
    return n;
}

/* All fields of the state. */
static int all_fields(const struct problem *problem, struct field *field)
{
    int n = 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        n += fields_of(problem, r, field + n);
    if (mf_emit_has_count(problem) || !n) {
        field[n].type = "int64_t";
        field[n].in_order = 0;
        snprintf(field[n++].name, sizeof field->name, "n");
    }
    if (mf_emit_has_kind(problem, RED_USER)) {
        field[n].type = "int";
        field[n].in_order = 0;
        snprintf(field[n++].name, sizeof field->name, "some");
    }
    return n;
}

static int is_long(const char *type)
{
    return strcmp(type, "float") && strcmp(type, "int");
}

int mf_emit_field_names(const struct problem *problem, int most, char name[][16])
{
    struct field field[MAX_FIELDS];
    int n = all_fields(problem, field);
    n -= mf_emit_has_count(problem);
    for (int i = 0; i < n && i < most; i++)
        memcpy(name[i], field[i].name, sizeof field[i].name);
    return n;
}

int mf_emit_state_words(const struct problem *problem)
{
    struct field field[MAX_FIELDS];
    int n = all_fields(problem, field), words = 0;
    for (int i = 0; i < n; i++)
        words += is_long(field[i].type) ? 2 : 1;
    return words;
}

int mf_emit_state_bytes(const struct problem *problem)
{
    struct field field[MAX_FIELDS];
    int n = all_fields(problem, field), bytes = 0, align = 4;
    for (int nested = 1; nested >= 0; nested--) /* users' states stand first */
        for (int i = 0; i < n; i++)
            if ((strchr(field[i].name, '.') != NULL) == nested) {
                int size = is_long(field[i].type) ? 8 : 4;
                align = size > align ? size : align;
                bytes = (bytes + size - 1) / size * size + size;
            }
    return (bytes + align - 1) / align * align;
}

int mf_emit_lane_words(const struct problem *problem)
{
    int words = 0;
    for (int r = 0; r < problem->program.reducer_count; r++) {
        struct field field[REDUCER_FIELDS];
        int n = fields_of(problem, r, field);
        for (int i = 0; i < n; i++)
            words += is_long(field[i].type) && !(i && problem->program.reducer[r].kind == RED_ARG) &&
                             !mf_emit_is_narrow(problem, r)
                         ? 2
                         : 1;
    }
    return words;
}

static void emit_empty(const struct reducer *reducer, int r, const char *identity, struct gpu_text *to)
{
    if (reducer->kind == RED_FOLD)
        mf_text_add(to, "    s.r%d = %s;\n", r, identity);
    else if (reducer->kind == RED_MOMENTS)
        mf_text_add(to, "    s.r%d_mean = s.r%d_m2 = 0;\n", r, r);
    else if (reducer->kind == RED_USER)
        mf_text_add(to, "    s.r%d = user%d_identity();\n", r, r);
    else if (reducer->kind == RED_LSE)
        mf_text_add(to, "    s.r%d_m = %s;\n    s.r%d_s = 0;\n", r, mf_emit_fold_identity(FOLD_MAX, reducer->cls), r);
    else
        mf_text_add(to, "    s.r%d = 0;\n    s.r%d_at = -1;\n", r, r);
}

static void emit_identity(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    mf_text_append(to, "static inline struct state state_identity(void)\n{\n    struct state s;\n");
    for (int r = 0; r < program->reducer_count; r++)
        emit_empty(&program->reducer[r], r, mf_emit_fold_identity(program->reducer[r].fold, program->reducer[r].cls),
                   to);
    if (mf_emit_has_count(problem) || !program->reducer_count)
        mf_text_append(to, "    s.n = 0;\n");
    if (mf_emit_has_kind(problem, RED_USER))
        mf_text_append(to, "    s.some = 0;\n");
    mf_text_append(to, "    return s;\n}\n\n");
}

/* ---- lanes: states under way, of a chain of single elements ---- */

/* A lane's fields: an argument reducer keeps the step, which is made an index at the end; counts are known unless a
 * window leaves elements out. */
static void emit_lane(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    mf_text_append(to, "struct lane {\n");
    for (int r = 0; r < program->reducer_count; r++) {
        struct field field[REDUCER_FIELDS];
        int n = fields_of(problem, r, field);
        if (program->reducer[r].kind == RED_USER)
            mf_text_add(to, "    struct user%d r%d;\n", r, r);
        for (int i = 0; i < n && program->reducer[r].kind != RED_USER; i++)
            mf_text_add(to, "    %s %s;\n",
                        (i && program->reducer[r].kind == RED_ARG) || mf_emit_is_narrow(problem, r) ? "int"
                                                                                                    : field[i].type,
                        field[i].name);
        if (program->reducer[r].kind == RED_LSE)
            mf_text_add(to, "    %s r%d_origin, r%d_lowest;\n    uint32_t r%d_gray;\n",
                        mf_class_type[program->reducer[r].cls], r, r, r);
    }
    mf_text_append(to,
                   "    int n, may_be_low;\n};\n\nstatic inline struct lane empty_lane(void)\n{\n    struct lane s;\n");
    for (int r = 0; r < program->reducer_count; r++) {
        emit_empty(&program->reducer[r], r, lane_identity(problem, r), to);
        if (program->reducer[r].kind == RED_LSE)
            mf_text_add(to,
                        "    s.r%d_origin = MF_MAGIC_%s;\n    s.r%d_lowest = lowest_at_%s(MF_MAGIC_%s);\n"
                        "    s.r%d_gray = ~(uint32_t)0;\n",
                        r, mf_class_name[program->reducer[r].cls], r, mf_class_name[program->reducer[r].cls],
                        mf_class_name[program->reducer[r].cls], r);
    }
    mf_text_append(to, "    s.n = 0;\n    s.may_be_low = 1;\n    return s;\n}\n\n");
}

static void emit_chain_argument(const struct problem *problem, int r, struct gpu_text *to)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    int less = reducer->fold == FOLD_MIN;
    if (mf_nest_is_as_written(&problem->memory)) {
        /* of equal ones the first stays; not (x <= best), which a NaN is, unless the best is one already */
        mf_text_add(to, "    if (present && (before == 0 || (!(x.a%d %s s->r%d) && s->r%d == s->r%d))) {\n", r,
                    less ? ">=" : "<=", r, r, r);
    } else {
        mf_text_add(
            to,
            "    if (present && (before == 0 || better_%s_%s(x.a%d, index_of(S, first + (int64_t)step * LANE_PITCH), "
            "s->r%d,\n            index_of(S, first + (int64_t)s->r%d_at * LANE_PITCH)))) {\n",
            less ? "min" : "max", mf_class_name[reducer->cls], r, r, r);
    }
    mf_text_add(to, "        s->r%d = x.a%d;\n        s->r%d_at = step;\n    }\n", r, r, r);
}

/* One reducer's step in a lane: element x, `before` elements before it in this lane. */
static void emit_chain_step(const struct problem *problem, int r, struct gpu_text *to)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const char *cls = mf_class_name[reducer->cls], *type = mf_class_type[reducer->cls];
    switch (reducer->kind) {
    case RED_FOLD:
        if (reducer->fold == FOLD_ANY)
            mf_text_add(to, "    s->r%d = present && x.a%d != 0 ? 1 : s->r%d;\n", r, r, r);
        else
            mf_text_add(to, "    s->r%d = %s_%s(s->r%d, present ? x.a%d : %s);\n", r,
                        mf_emit_fold_function(reducer->fold), mf_emit_is_narrow(problem, r) ? "i32" : cls, r, r,
                        lane_identity(problem, r));
        break;
    case RED_MOMENTS:
        mf_text_add(to,
                    "    {\n        const %s d = before ? x.a%d - s->r%d_mean : 0;\n"
                    "        const %s mean = before ? s->r%d_mean + d * w.one_%s : x.a%d, m2 = s->r%d_m2 + d * d * "
                    "w.others_%s;\n"
                    "        s->r%d_mean = present ? mean : s->r%d_mean;\n"
                    "        s->r%d_m2 = present ? m2 : s->r%d_m2;\n    }\n",
                    type, r, r, type, r, cls, r, r, cls, r, r, r, r);
        break;
    case RED_LSE:
        mf_emit_sum_step(problem, r, to);
        break;
    case RED_USER:
        if (!reducer->user->recipe->ordered)
            mf_emit_user_chain(problem, r, to);
        break;
    default:
        emit_chain_argument(problem, r, to);
    }
}

/* The classes in which moments are merged. */
static void classes_of_moments(const struct problem *problem, int wanted[2])
{
    wanted[0] = wanted[1] = 0;
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_MOMENTS)
            wanted[problem->program.reducer[r].cls == CLS_F64] = 1;
}

/* 1 / (n + 1) and n / (n + 1) for n = 0 ... 31, the weights of a chain's elements: divisions are too slow. */
static void emit_weights(const struct problem *problem, struct gpu_text *to)
{
    int wanted[2];
    classes_of_moments(problem, wanted);
    for (int c = 0; c < 2; c++)
        for (int others = 0; wanted[c] && others < 2; others++) {
            mf_text_add(to, "CONSTANT %s weight_%d_%s[%d] = {", mf_class_type[c], others, mf_class_name[c], STEPS);
            for (int n = 0; n < STEPS; n++) {
                float f = (float)(others ? n : 1) / (float)(n + 1);
                double d = (double)(others ? n : 1) / (double)(n + 1);
                mf_text_add(to, c == 0 ? "%s%.9ef" : "%s%.17e", n ? ", " : "", c == 0 ? (double)f : d);
            }
            mf_text_append(to, "};\n");
        }
    mf_text_add(to, "#define WEIGHTS_f32 %d\n#define WEIGHTS_f64 %d\nstruct weights {\n", wanted[0], wanted[1]);
    for (int c = 0; c < 2; c++)
        if (wanted[c])
            mf_text_add(to, "    %s one_%s, others_%s;\n", mf_class_type[c], mf_class_name[c], mf_class_name[c]);
    mf_text_append(
        to, "    int none;\n};\n\nstatic inline struct weights weights_of(int before)\n{\n    struct weights w;\n"
            "    before &= 31;\n");
    for (int c = 0; c < 2; c++)
        if (wanted[c])
            mf_text_add(to, "    w.one_%s = weight_0_%s[before];\n    w.others_%s = weight_1_%s[before];\n",
                        mf_class_name[c], mf_class_name[c], mf_class_name[c], mf_class_name[c]);
    mf_text_append(to, "    w.none = before;\n    return w;\n}\n\n");
    /* of a state of before * n elements and one of n, a power of two: exact products and quotients by it */
    mf_text_append(to, "#if MERGE_WEIGHTS\nstatic inline struct merge_weights chain_weights(int before, int64_t n)\n{\n"
                       "    struct merge_weights w;\n    const struct weights one = weights_of(before);\n");
    for (int c = 0; c < 2; c++)
        if (wanted[c])
            mf_text_add(to, "    w.step_%s = one.one_%s;\n    w.both_%s = one.others_%s * (%s)n;\n", mf_class_name[c],
                        mf_class_name[c], mf_class_name[c], mf_class_name[c], mf_class_type[c]);
    mf_text_append(to, "    return w;\n}\n#endif\n\n");
}

void mf_emit_chain(const struct problem *problem, struct gpu_text *to)
{
    const struct program *program = &problem->program;
    emit_weights(problem, to);
    mf_text_append(
        to, "static inline void chain_behind(shape_ptr S, struct lane *s, struct element x, int step, int before, "
            "int64_t first, struct weights w, int present)\n{\n");
    if (mf_emit_has_kind(problem, RED_USER))
        mf_text_append(to, "    const int there = present != 0;\n    present = present > 0;\n");
    if (problem->memory.window_count)
        mf_text_append(to, "    before = s->n;\n    s->n += present;\n    w = weights_of(before);\n");
    for (int r = 0; r < program->reducer_count; r++) {
        const int paired = mf_emit_paired_type(problem, r) != DT_COUNT;
        mf_text_append(to, paired ? "#if !PAIRED_FOLDS\n" : "");
        emit_chain_step(problem, r, to);
        mf_text_append(to, paired ? "#endif\n" : "");
    }
    mf_text_append(to,
                   "    (void)before;\n    (void)present;\n}\n\n"
                   "static inline void chain(shape_ptr S, struct lane *s, struct element x, int step, int64_t first, "
                   "struct weights w, int present)\n{\n    chain_behind(S, s, x, step, step, first, w, present);\n}"
                   "\n\n");
    mf_emit_sum_lanes(problem, to);
    mf_emit_pairs(problem, to);
}

/* A lane of `count` elements, of which `first` is the number of the first. */
void mf_emit_lane_state(const struct problem *problem, struct gpu_text *to)
{
    mf_text_append(to,
                   "static inline struct state lane_state(shape_ptr S, struct lane l, int64_t first, int count)\n{\n"
                   "    struct state s;\n");
    if (mf_emit_has_kind(problem, RED_USER))
        mf_text_append(to, "    s.some = count > 0;\n");
    if (problem->memory.window_count)
        mf_text_append(to, "    count = l.n;\n");
    for (int r = 0; r < problem->program.reducer_count; r++) {
        struct field field[REDUCER_FIELDS];
        const enum fold fold = problem->program.reducer[r].fold;
        int n = fields_of(problem, r, field);
        for (int i = 0; i < n; i++)
            if (i && problem->program.reducer[r].kind == RED_ARG)
                mf_text_add(to, "    s.%s = count > 0 ? index_of(S, first + (int64_t)l.%s * LANE_PITCH) : -1;\n",
                            field[i].name, field[i].name);
            else if (mf_emit_is_narrow(problem, r) && (fold == FOLD_MIN || fold == FOLD_MAX)) /* see lane_identity */
                mf_emit_extreme_end(problem, r, field[i].name, to);
            else
                mf_text_add(to, "    s.%s = l.%s;\n", field[i].name, field[i].name);
    }
    if (mf_emit_has_count(problem) || !problem->program.reducer_count)
        mf_text_append(to, "    s.n = count;\n");
    mf_text_append(to, "    return s;\n}\n\n");
}

static void emit_merged_moments(int r, enum cls cls, int weighted, struct gpu_text *to)
{
    const char *type = mf_class_type[cls], *name = mf_class_name[cls];
    mf_text_add(to, "    {\n        const %s d = b.r%d_mean - a.r%d_mean;\n", type, r, r);
    if (weighted) {
        mf_text_add(to,
                    "        c.r%d_mean = a.r%d_mean + d * w.step_%s;\n"
                    "        c.r%d_m2 = a.r%d_m2 + b.r%d_m2 + d * d * w.both_%s;\n    }\n",
                    r, r, name, r, r, r, name);
        return;
    }
    mf_text_add(to,
                "        const %s na = (%s)a.n, nb = (%s)b.n, n = (%s)(a.n + b.n);\n"
                "        const int same = a.n == b.n && a.n <= 4096; /* exact, without dividing */\n"
                "        const %s step = d * (same ? (%s)0.5 : MF_QUOTIENT_OF_COUNTS(nb, n));\n"
                "        const %s weight = same ? na * (%s)0.5 : MF_QUOTIENT_OF_COUNTS(na * nb, n);\n"
                "        c.r%d_mean = !a.n ? b.r%d_mean : !b.n ? a.r%d_mean : a.r%d_mean + step;\n"
                "        c.r%d_m2 = !a.n ? b.r%d_m2 : !b.n ? a.r%d_m2 : a.r%d_m2 + b.r%d_m2 + d * d * weight;\n"
                "    }\n",
                type, type, type, type, type, type, type, type, r, r, r, r, r, r, r, r, r);
}

static void emit_combine_step(const struct problem *problem, int r, int weighted, enum sums_known known,
                              struct gpu_text *to)
{
    const struct reducer *reducer = &problem->program.reducer[r];
    const char *cls = mf_class_name[reducer->cls];
    switch (reducer->kind) {
    case RED_FOLD:
        mf_text_add(to, "    c.r%d = %s_%s(a.r%d, b.r%d);\n", r, mf_emit_fold_function(reducer->fold), cls, r, r);
        break;
    case RED_MOMENTS:
        emit_merged_moments(r, reducer->cls, weighted, to);
        break;
    case RED_LSE:
        mf_emit_joined_sums(reducer, r, known, to);
        break;
    case RED_USER:
        if (reducer->user->recipe->ordered)
            mf_text_add(to, "    c.r%d = a.r%d;\n", r, r);
        else
            mf_emit_user_combine(r, to);
        break;
    default:
        mf_text_add(to,
                    "    {\n        const int first = IS_MISSING(b.r%d_at) || (!IS_MISSING(a.r%d_at) && "
                    "better_%s_%s(a.r%d, a.r%d_at, b.r%d, b.r%d_at));\n"
                    "        c.r%d = first ? a.r%d : b.r%d;\n        c.r%d_at = first ? a.r%d_at : b.r%d_at;\n    }\n",
                    r, r, reducer->fold == FOLD_MIN ? "min" : "max", cls, r, r, r, r, r, r, r, r, r, r);
    }
}

/* known: of sums of logsumexp (emit_sums.c). */
static void emit_combine(const struct problem *problem, int weighted, enum sums_known known, struct gpu_text *to)
{
    static const char *const suffix[] = {"", "_near", "_plain"};
    const char *name = weighted ? "combine_weighted" : "combine";
    if (known && !mf_emit_has_kind(problem, RED_LSE)) {
        mf_text_add(to, "#define %s%s %s\n", name, suffix[known], name);
        return;
    }
    mf_text_add(to, "static inline struct state %s%s(struct state a, struct state b%s)\n{\n    struct state c;\n", name,
                suffix[known], weighted ? ", struct merge_weights w" : "");
    for (int r = 0; r < problem->program.reducer_count; r++)
        emit_combine_step(problem, r, weighted, known, to);
    if (mf_emit_has_count(problem) || !problem->program.reducer_count)
        mf_text_append(to, "    c.n = a.n + b.n;\n");
    if (mf_emit_has_kind(problem, RED_USER))
        mf_text_append(to, "    c.some = a.some | b.some;\n");
    mf_text_append(to, "    return c;\n}\n\n");
}

/* What moments of a and b elements are merged by, and combine with it, where both states have some; joining: where the
 * compiler sees the numbers, and divides them. */
static void emit_merge_weights(const struct problem *problem, struct gpu_text *to)
{
    int wanted[2];
    classes_of_moments(problem, wanted);
    mf_text_append(to, "#if MERGE_WEIGHTS\nstruct ALIGNED(8) merge_weights {\n");
    for (int c = 0; c < 2; c++)
        if (wanted[c])
            mf_text_add(to, "    %s step_%s, both_%s;\n", mf_class_type[c], mf_class_name[c], mf_class_name[c]);
    if (!wanted[0] && !wanted[1])
        mf_text_append(to, "    int none;\n");
    mf_text_append(to, "};\n\n");
    for (int seen = 0; seen < 2; seen++) {
        const char *divide = seen ? "MF_QUOTIENT" : "MF_QUOTIENT_OF_COUNTS";
        mf_text_add(to, "static inline struct merge_weights %s(int a, int b)\n{\n    struct merge_weights w;\n",
                    seen ? "joining" : "merge_weights_of");
        for (int c = 0; c < 2; c++) {
            const char *type = mf_class_type[c], *name = mf_class_name[c];
            if (wanted[c])
                mf_text_add(to,
                            "    w.step_%s = %s((%s)b, (%s)(a + b));\n"
                            "    w.both_%s = %s((%s)a * (%s)b, (%s)(a + b));\n",
                            name, divide, type, type, name, divide, type, type, type);
        }
        mf_text_append(to, "    return w;\n}\n\n");
    }
    for (int known = SUMS_ANY; known <= SUMS_PLAIN; known++)
        emit_combine(problem, 1, (enum sums_known)known, to);
    mf_text_append(to, "#endif\n");
}

/* Whether (x, at) is better than (y, in): NaN before numbers, then the value, then the smaller index. in < 0: nothing
 * was there yet. */
static void emit_better(const struct problem *problem, struct gpu_text *to)
{
    for (int f = 0; f < 2; f++)
        for (int c = 0; c <= CLS_U64; c++) {
            int wanted = 0;
            for (int r = 0; r < problem->program.reducer_count; r++) {
                const struct reducer *reducer = &problem->program.reducer[r];
                wanted |= reducer->kind == RED_ARG && (int)reducer->cls == c && (reducer->fold == FOLD_MIN) == (f == 0);
            }
            if (!wanted)
                continue;
            const char *type = mf_class_type[c];
            mf_text_add(to,
                        "static inline int better_%s_%s(%s x, index_t at, %s y, index_t in)\n{\n"
                        "    const int nan_x = x != x, nan_y = y != y, tie = (nan_x && nan_y) || x == y;\n"
                        "    return IS_MISSING(in) || (tie ? at < in : nan_x || (!nan_y && x %c y));\n}\n\n",
                        f ? "max" : "min", mf_class_name[c], type, type, f ? '>' : '<');
        }
}

void mf_emit_states(const struct problem *problem, struct gpu_text *to)
{
    struct field field[MAX_FIELDS];
    int n = all_fields(problem, field);
    mf_text_append(to, "struct state {\n");
    for (int r = 0; r < problem->program.reducer_count; r++)
        if (problem->program.reducer[r].kind == RED_USER)
            mf_text_add(to, "    struct user%d r%d;\n", r, r);
    for (int i = 0; i < n; i++)
        if (!strchr(field[i].name, '.')) /* not a part of such a struct */
            mf_text_add(to, "    %s %s;\n", field[i].type, field[i].name);
    mf_text_append(to, "};\n\n");
    emit_identity(problem, to);
    mf_emit_sums(problem, to);
    emit_better(problem, to);
    emit_lane(problem, to);
    mf_emit_byte_folds(problem, to);
    for (int known = SUMS_ANY; known <= SUMS_PLAIN; known++)
        emit_combine(problem, 0, (enum sums_known)known, to);
    emit_merge_weights(problem, to);
    mf_text_append(to, "static inline struct state exchange_state(EXCHANGE_TYPE exchange_, struct state s, int "
                       "distance, int even)\n{\n    struct state c;\n");
    for (int i = 0; i < n; i++)
        if (!strcmp(field[i].name, "n")) /* even: all have as many elements */
            mf_text_append(to, "    if (even)\n        c.n = s.n;\n    else\n"
                               "        EXCHANGE(int64_t, c.n, s.n, distance);\n");
        else
            mf_text_add(to, "    EXCHANGE(%s, c.%s, s.%s, distance);\n", field[i].type, field[i].name, field[i].name);
    mf_text_append(to,
                   "    return c;\n}\n\nstatic inline struct state choose(int first, struct state a, struct state b)"
                   "\n{\n    struct state c;\n");
    for (int i = 0; i < n; i++)
        mf_text_add(to, "    c.%s = first ? a.%s : b.%s;\n", field[i].name, field[i].name, field[i].name);
    mf_text_append(to,
                   "    return c;\n}\n\nstatic inline struct state choose_ordered(int first, struct state a, struct "
                   "state b)\n{\n    struct state c = b;\n");
    for (int i = 0; i < n; i++)
        if (field[i].in_order)
            mf_text_add(to, "    c.%s = first ? a.%s : b.%s;\n", field[i].name, field[i].name, field[i].name);
    mf_text_append(to, "    return c;\n}\n\nstatic inline struct state load_state(GLOBAL const struct state *s)\n{\n"
                       "    struct state c;\n");
    for (int i = 0; i < n; i++)
        mf_text_add(to, "    c.%s = FRESH(s->%s);\n", field[i].name, field[i].name);
    mf_text_append(to, "    return c;\n}\n\n");
}
