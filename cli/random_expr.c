/* Random expression trees that fit their operands' types; every operation has its own parentheses. */
#include "random.h"

#include <stdio.h>
#include <stdarg.h>

#include "lists.h"

/* What an operation asks of its operands and gives. */
enum rule { SAME, NUMBER, FLOATS, TRUTHS, BITS };

struct form {
    const char *before, *between; /* "(" "+", "min(" "," */
    int operands;
    enum rule
        rule; /* BITS: integers in, the same out. NUMBER: bool becomes integer. FLOATS, TRUTHS: the result's kind */
};

static const struct form forms[] = {
    {"(", "+", 2, SAME},       {"(", "*", 2, SAME},        {"(", "-", 2, NUMBER},      {"(", "/", 2, FLOATS},
    {"(", "//", 2, NUMBER},    {"(", "%", 2, NUMBER},      {"(", "**", 2, NUMBER},     {"pow(", ",", 2, NUMBER},
    {"(", "<", 2, TRUTHS},     {"(", "<=", 2, TRUTHS},     {"(", ">", 2, TRUTHS},      {"(", ">=", 2, TRUTHS},
    {"(", "==", 2, TRUTHS},    {"(", "!=", 2, TRUTHS},     {"min(", ",", 2, SAME},     {"max(", ",", 2, SAME},
    {"(", "&", 2, BITS},       {"(", "|", 2, BITS},        {"(", "^", 2, BITS},        {"(", "<<", 2, BITS},
    {"(", ">>", 2, BITS},      {"(~", "", 1, BITS},        {"popcount(", "", 1, BITS}, {"(-", "", 1, NUMBER},
    {"abs(", "", 1, NUMBER},   {"sign(", "", 1, NUMBER},   {"relu(", "", 1, NUMBER},   {"floor(", "", 1, NUMBER},
    {"ceil(", "", 1, NUMBER},  {"trunc(", "", 1, NUMBER},  {"round(", "", 1, NUMBER},  {"sqrt(", "", 1, FLOATS},
    {"exp(", "", 1, FLOATS},   {"log(", "", 1, FLOATS},    {"tanh(", "", 1, FLOATS},   {"sigmoid(", "", 1, FLOATS},
    {"leaky(", "", 1, FLOATS}, {"leaky(", ",", 2, FLOATS}, {"isnan(", "", 1, TRUTHS},  {"isfinite(", "", 1, TRUTHS},
    {"fma(", ",", 3, FLOATS},  {"where(", ",", 3, SAME},
};

/* A reducer's result: SAME, NUMBER (a sum: integers become 64 bits), FLOATS, TRUTHS; BITS wants integers. */
static const struct {
    const char *name;
    enum rule rule;
    int index; /* the result is a position or a count */
} reducers[] = {
    {"sum(", NUMBER, 0},  {"sum(", NUMBER, 0}, {"sum(", NUMBER, 0},  {"prod(", NUMBER, 0},  {"min(", SAME, 0},
    {"max(", SAME, 0},    {"max(", SAME, 0},   {"mean(", FLOATS, 0}, {"var(", FLOATS, 0},   {"std(", FLOATS, 0},
    {"norm(", FLOATS, 0}, {"any(", TRUTHS, 0}, {"all(", TRUTHS, 0},  {"count(", NUMBER, 1}, {"argmin(", SAME, 1},
    {"argmax(", SAME, 1}, {"and(", BITS, 0},   {"or(", BITS, 0},     {"xor(", BITS, 0},     {"logsumexp(", FLOATS, 0},
};

/* Operations given as text: their order counts or not, every type, up to four numbers. */
static const struct {
    const char *name, *text;
    int arguments, results;
    enum value_kind kind;
} owns[EXPR_OWNS] = {
    {"affine",
     "f64 ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t; combine p = p1*p2, q = q1*p2 + q2; "
     "finish q, p",
     2, 2, KIND_FLOAT},
    {"spread",
     "spread(x): identity n = 0, m = 0, s = 0; lift n = 1, m = x, s = 0; combine d = m2 - m1, n = n1 + n2, "
     "m = m1 + d*(n2/max(n,1)), s = s1 + s2 + d*d*(n1*n2/max(n,1)); finish m, sqrt(s/n), n",
     1, 3, KIND_FLOAT},
    {"matrix",
     "ordered u64 matrix(x, y): identity a = 1, b = 0, c = 0, d = 1; lift a = x, b = y, c = 1, d = 3; combine a = "
     "a1*a2 + b1*c2, b = a1*b2 + b1*d2, c = c1*a2 + d1*c2, d = c1*b2 + d1*d2",
     2, 4, KIND_U64},
    {"late",
     "i64 late(x): identity m = 0 - 1000, n = 0; lift m = x, n = 1; combine m = max(m1, m2), "
     "n = where(m1 == m, n1, 0) + where(m2 == m, n2, 0); finish n*7 + (m & 3), m",
     1, 2, KIND_SIGNED},
};

const char *expr_own(int number)
{
    return owns[number].text;
}

enum { FORMS = sizeof forms / sizeof forms[0], REDUCERS = sizeof reducers / sizeof reducers[0] };

__attribute__((format(printf, 2, 3))) static void put(struct expr_maker *m, const char *format, ...)
{
    va_list args;
    size_t room = m->length < m->size ? m->size - m->length : 0;
    va_start(args, format);
    int n = vsnprintf(room ? m->text + m->length : NULL, room, format, args);
    va_end(args);
    m->length += n > 0 ? (size_t)n : 0;
}

enum value_kind expr_kind_of_type(DLDataType dtype)
{
    switch (dtype.code) {
    case kDLInt:
        return KIND_SIGNED;
    case kDLUInt:
        return dtype.bits == 64 ? KIND_U64 : KIND_UNSIGNED;
    case 6:
        return KIND_TRUTH; /* DLPack's bool, which Debian's header lacks */
    default:
        return KIND_FLOAT;
    }
}

/* The kind of two together, as NumPy promotes them. */
static enum value_kind together(enum value_kind a, enum value_kind b)
{
    if (a == KIND_FLOAT || b == KIND_FLOAT)
        return KIND_FLOAT;
    if ((a == KIND_U64 && b == KIND_SIGNED) || (a == KIND_SIGNED && b == KIND_U64))
        return KIND_FLOAT;
    if (a == KIND_TRUTH || b == KIND_TRUTH)
        return a == KIND_TRUTH ? b : a;
    if (a == b)
        return a;
    return a == KIND_U64 || b == KIND_U64 ? KIND_U64 : KIND_SIGNED;
}

static enum value_kind result_kind(enum rule rule, enum value_kind kind)
{
    switch (rule) {
    case FLOATS:
        return KIND_FLOAT;
    case TRUTHS:
        return KIND_TRUTH;
    case NUMBER:
        return kind == KIND_TRUTH ? KIND_SIGNED : kind;
    default:
        return kind;
    }
}

/* A number that stands beside a value of this kind. */
static enum value_kind make_literal(struct expr_maker *m, enum value_kind beside)
{
    static const char *const reals[] = {"0.5", "2.25", "1e-3", "(-1.5)", "0.1", "inf", "3.0", "1e30"};
    static const char *const wholes[] = {"0", "1", "2", "3", "5", "7", "31", "100", "4096", "(-1)", "(-2)"};
    if (beside == KIND_FLOAT && dice_percent(m->dice, 70)) {
        put(m, "%s", reals[dice_below(m->dice, 8)]);
        return KIND_FLOAT;
    }
    int unsigned_only = beside == KIND_UNSIGNED || beside == KIND_U64;
    put(m, "%s", wholes[dice_below(m->dice, unsigned_only ? 9 : 11)]);
    return beside == KIND_TRUTH ? KIND_SIGNED : beside;
}

/* One of the operands that may stand here. */
static enum value_kind make_operand(struct expr_maker *m, int finish)
{
    int allowed[MF_MAX_INPUTS], count = 0;
    for (int i = 0; i < m->operand_count; i++)
        if (finish ? m->in_finish[i] : !m->finish_only[i])
            allowed[count++] = i;
    if (!count) {
        put(m, "%d", 1 + dice_below(m->dice, 4));
        return KIND_SIGNED;
    }
    int i = allowed[dice_below(m->dice, count)];
    put(m, "%c", 'a' + i);
    return m->operand[i];
}

static enum value_kind make_reducer(struct expr_maker *m);

/* Inside and outside of reducers; finish: leaves may be reducers. */
static enum value_kind make_leaf(struct expr_maker *m, int finish, int reducing)
{
    if (finish && reducing && dice_percent(m->dice, 60))
        return make_reducer(m);
    return make_operand(m, finish);
}

static enum value_kind make_tree(struct expr_maker *m, int depth, int finish, int reducing);

/* A subtree of integers: bits are taken of nothing else. A float becomes one by a cast. */
static enum value_kind make_integer_tree(struct expr_maker *m, int depth, int finish, int reducing)
{
    static const enum value_kind kinds[4] = {KIND_SIGNED, KIND_UNSIGNED, KIND_SIGNED, KIND_U64};
    static const char *const casts[4] = {"i32(", "u8(", "i64(", "u64("};
    size_t start = m->length;
    uint64_t thrown = m->dice->thrown;
    enum value_kind kind = make_tree(m, depth, finish, reducing);
    if (kind != KIND_FLOAT)
        return kind;
    int to = dice_below(m->dice, 4);
    m->length = start;
    uint64_t after = m->dice->thrown;
    m->dice->thrown = thrown; /* the same tree again, with the cast before it */
    put(m, "%s", casts[to]);
    make_tree(m, depth, finish, reducing);
    put(m, ")");
    m->dice->thrown = after;
    return kinds[to];
}

static enum value_kind make_cast(struct expr_maker *m, int depth, int finish, int reducing)
{
    DLDataType dtype = list_type(dice_below(m->dice, list_type_count()));
    put(m, "%s(", mf_type_name(dtype));
    make_tree(m, depth - 1, finish, reducing);
    put(m, ")");
    return expr_kind_of_type(dtype);
}

static enum value_kind make_form(struct expr_maker *m, const struct form *form, int depth, int finish, int reducing)
{
    enum value_kind kind = KIND_TRUTH;
    int is_where = form->before[0] == 'w', first = 1;
    put(m, "%s", form->before);
    for (int i = 0; i < form->operands; i++) {
        enum value_kind next;
        if (i)
            put(m, "%s", form->between);
        if (i == 1 && form->operands == 2 && dice_percent(m->dice, m->operand_count > 1 ? 30 : 60))
            next = make_literal(m, kind);
        else if (form->rule == BITS)
            next = make_integer_tree(m, depth - 1, finish, reducing);
        else
            next = make_tree(m, depth - 1, finish, reducing);
        if (is_where && i == 0)
            continue;
        kind = first ? next : together(kind, next);
        first = 0;
    }
    put(m, ")");
    return result_kind(form->rule, kind);
}

/* Signed with u64 makes a float, which has no bits: such a pair is made again with both of one kind. */
static enum value_kind make_bits(struct expr_maker *m, const struct form *form, int depth, int finish, int reducing)
{
    size_t start = m->length;
    enum value_kind kind = make_form(m, form, depth, finish, reducing);
    if (kind != KIND_FLOAT)
        return kind;
    m->length = start;
    put(m, "%si64(", form->before);
    make_tree(m, depth - 1, finish, reducing);
    put(m, ")%s", form->between);
    if (form->operands == 2)
        put(m, "%d", dice_below(m->dice, 9));
    put(m, ")");
    return KIND_SIGNED;
}

static enum value_kind make_tree(struct expr_maker *m, int depth, int finish, int reducing)
{
    if (depth <= 0 || m->length > m->size / 2)
        return make_leaf(m, finish, reducing);
    if (dice_percent(m->dice, 8))
        return make_cast(m, depth, finish, reducing);
    const struct form *form = &forms[dice_percent(m->dice, 35) ? dice_below(m->dice, 4) : dice_below(m->dice, FORMS)];
    return form->rule == BITS ? make_bits(m, form, depth, finish, reducing)
                              : make_form(m, form, depth, finish, reducing);
}

/* Mostly shallow. */
static int throw_depth(struct dice *dice)
{
    static const int depths[10] = {0, 0, 0, 0, 1, 1, 1, 2, 2, 3};
    return depths[dice_below(dice, 10)];
}

static enum value_kind make_own(struct expr_maker *m)
{
    int own = dice_below(m->dice, EXPR_OWNS);
    m->reducers++;
    m->own |= 1 << own;
    put(m, dice_percent(m->dice, 40) ? "%s(" : "%s.%d(", owns[own].name, dice_below(m->dice, owns[own].results));
    for (int a = 0; a < owns[own].arguments; a++) {
        put(m, "%s", a ? "," : "");
        make_tree(m, m->plain ? 0 : throw_depth(m->dice), 0, 0);
    }
    put(m, ")");
    return owns[own].kind;
}

static enum value_kind make_reducer(struct expr_maker *m)
{
    if (dice_percent(m->dice, 8))
        return make_own(m);
    int r = dice_below(m->dice, REDUCERS);
    enum value_kind kind;
    m->reducers++;
    put(m, "%s", reducers[r].name);
    int depth = m->plain ? 0 : throw_depth(m->dice);
    if (reducers[r].rule == BITS)
        kind = make_integer_tree(m, depth, 0, 0);
    else
        kind = make_tree(m, depth, 0, 0);
    if ((reducers[r].name[0] == 'v' || reducers[r].name[1] == 't') && dice_percent(m->dice, 40))
        put(m, ",%d", dice_below(m->dice, 3));
    put(m, ")");
    if (reducers[r].index)
        return KIND_SIGNED;
    kind = result_kind(reducers[r].rule, kind);
    return reducers[r].rule == NUMBER && kind == KIND_UNSIGNED ? KIND_U64 : kind;
}

enum value_kind expr_make_map(struct expr_maker *m, int depth)
{
    return make_tree(m, depth + throw_depth(m->dice), 1, 0);
}

enum value_kind expr_make_reduction(struct expr_maker *m)
{
    size_t start = m->length;
    int has_finish = 0;
    for (int i = 0; i < m->operand_count; i++)
        has_finish |= m->finish_only[i];
    m->reducers = 0;
    if (!dice_percent(m->dice, has_finish ? 90 : 25))
        return make_reducer(m);
    enum value_kind kind = make_tree(m, 1 + dice_below(m->dice, 2), 1, 1);
    if (m->reducers)
        return kind;
    m->length = start;
    return make_reducer(m);
}
