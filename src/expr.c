/* Parses expressions by recursive descent.
 *
 *   expression = compare { ';' compare }
 *   compare = bits [ ('<'|'<='|'>'|'>='|'=='|'!=') bits ]
 *   bits    = shift { ('&'|'|') shift }      (one kind in a row)
 *   shift   = sum { ('<<'|'>>') sum }        sum = term { ('+'|'-') term }
 *   term    = unary { ('*'|'/'|'//'|'%') unary }      unary = ('-'|'+'|'~') unary | power
 *   power   = primary [ '**' unary ] | primary '^' primary
 *   primary = number | 'inf' | 'nan' | operand | name ['.' digits] '(' [compare {',' compare}] ')' | '(' compare ')'
 *
 * x^y is exclusive or of integers and a power of floats, so it takes no part in precedence: around it another operator
 * needs parentheses. */
#include "expr_build.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "text.h"

enum { MAX_DEPTH = 200, MAX_ARGS = 8 };

struct parser {
    const char *text, *at;
    int input_count;
    const enum dtype *types;
    const struct operation *operations;
    struct program *program;
    const char *reducer; /* the reducer whose operands are being read, or null */
    int depth;
    int caret;                 /* the last power was an unparenthesised x^y */
    const struct scope *scope; /* in an operation's text: its names are the operands. Else null */
};

static int parse_compare(struct parser *p);

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n')
        p->at++;
}

static long position(const struct parser *p)
{
    return (long)(p->at - p->text) + 1;
}

static int unexpected(const struct parser *p, const char *wanted)
{
    char buffer[16] = "the end";
    if (mf_is_printable(*p->at))
        snprintf(buffer, sizeof buffer, "'%c'", *p->at);
    else if (*p->at)
        snprintf(buffer, sizeof buffer, "byte 0x%02x", (unsigned char)*p->at);
    mf_fail(MF_ERROR_EXPRESSION, "expression \"%.100s\": expected %s at character %ld, found %s", p->text, wanted,
            position(p), buffer);
    return -1;
}

static struct pool *pool_of(struct parser *p)
{
    if (p->scope)
        return p->scope->pool;
    return p->reducer ? &p->program->map : &p->program->finish;
}

/* Takes the symbol if it is next. */
static int take(struct parser *p, const char *symbol)
{
    skip_blanks(p);
    size_t n = strlen(symbol);
    if (strncmp(p->at, symbol, n) != 0)
        return 0;
    p->at += n;
    return 1;
}

/* strtod with a decimal point, whatever the decimal sign of the program's locale. 0 when memory is out. */
static int read_real(const char *text, char **end, double *value)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) {
        mf_fail(MF_ERROR_MEMORY, "no memory for the C locale, in which numbers are read");
        return 0;
    }
    locale_t before = uselocale(plain);
    *value = strtod(text, end);
    uselocale(before);
    freelocale(plain);
    return 1;
}

static int parse_number(struct parser *p)
{
    char *end;
    const char *start = p->at;
    int whole = 1;
    for (const char *c = start; mf_is_letter(*c) || mf_is_digit(*c) || *c == '.' ||
                                ((*c == '+' || *c == '-') && (c[-1] == 'e' || c[-1] == 'E'));
         c++)
        if (!mf_is_digit(*c))
            whole = 0;
    errno = 0;
    if (whole) {
        long long value = strtoll(start, &end, 10);
        if (errno == ERANGE) {
            mf_fail(MF_ERROR_EXPRESSION, "expression \"%.100s\": the number at character %ld does not fit in 63 bits",
                    p->text, position(p));
            return -1;
        }
        p->at = end;
        return mf_node_integer(pool_of(p), value);
    }
    if (start[0] == '0' && (start[1] == 'x' || start[1] == 'X'))
        return unexpected(p, "a decimal number");
    double value;
    if (!read_real(start, &end, &value))
        return -1;
    if (end == start || mf_is_word(*end) || *end == '.') {
        p->at = end;
        return unexpected(p, "an operator after the number");
    }
    p->at = end;
    return mf_node_real(pool_of(p), value);
}

static int scan_name(struct parser *p, char name[NAME_SIZE])
{
    int n = 0;
    for (; mf_is_word(*p->at); p->at++)
        if (n < NAME_SIZE - 1)
            name[n++] = *p->at;
    name[n] = 0;
    return n;
}

static int parse_operand(struct parser *p, char letter)
{
    int index = letter - 'a';
    if (index < 0 || index >= p->input_count) {
        mf_fail(MF_ERROR_EXPRESSION, "expression \"%.100s\" uses operand %c and the modes string has %d operand%s",
                p->text, letter, p->input_count, p->input_count == 1 ? "" : "s");
        return -1;
    }
    return mf_node_operand(pool_of(p), index, p->types[index]);
}

/* A name of an operation's text. */
static int parse_name(struct parser *p, const char *name)
{
    char known[160] = "";
    for (int i = 0; i < p->scope->count; i++) {
        size_t n = strlen(known);
        if (!strcmp(p->scope->entry[i].name, name))
            return p->scope->entry[i].node;
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", p->scope->entry[i].name);
    }
    mf_fail(MF_ERROR_EXPRESSION, "operation %s: %s uses \"%s\" and %s %s", p->scope->operation, p->scope->step, name,
            *known ? "can use" : "has numbers only,", *known ? known : "no names");
    return -1;
}

static int parse_args(struct parser *p, int args[MAX_ARGS])
{
    int count = 0;
    if (take(p, ")"))
        return 0;
    for (;;) {
        if (count == MAX_ARGS) {
            mf_fail(MF_ERROR_EXPRESSION, "expression \"%.100s\": more than %d operands at character %ld", p->text,
                    MAX_ARGS, position(p));
            return -1;
        }
        if ((args[count++] = parse_compare(p)) < 0)
            return -1;
        if (take(p, ")"))
            return count;
        if (!take(p, ","))
            return unexpected(p, "',' or ')'");
    }
}

static const struct {
    const char *name;
    enum op op;
} functions[] = {
    {"where", OP_where}, {"min", OP_min},     {"max", OP_max},           {"abs", OP_abs},     {"sqrt", OP_sqrt},
    {"exp", OP_exp},     {"log", OP_log},     {"pow", OP_pow},           {"tanh", OP_tanh},   {"sigmoid", OP_sigmoid},
    {"relu", OP_relu},   {"leaky", OP_leaky}, {"popcount", OP_popcount}, {"isnan", OP_isnan}, {"isfinite", OP_isfinite},
    {"floor", OP_floor}, {"ceil", OP_ceil},   {"trunc", OP_trunc},       {"round", OP_round}, {"sign", OP_sign},
    {"fma", OP_fma},
};

static int find_function(const char *name)
{
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strcmp(functions[i].name, name))
            return (int)functions[i].op;
    return -1;
}

static const struct operation *find_operation(const struct parser *p, const char *name)
{
    for (const struct operation *o = p->operations; o; o = o->next)
        if (!strcmp(o->name, name))
            return o;
    return NULL;
}

static int is_reducer_name(const char *name)
{
    static const char *const names = " sum prod mean var std norm any all and or xor count argmin argmax logsumexp "
                                     "min max ";
    char key[NAME_SIZE + 2];
    snprintf(key, sizeof key, " %s ", name);
    return strstr(names, key) != NULL;
}

/* min(x) and max(x) reduce, min(x,y) and max(x,y) do not: counts the commas of this call ahead of reading it. */
static int has_one_operand(const char *after_parenthesis)
{
    int depth = 1;
    for (const char *c = after_parenthesis; *c && depth; c++) {
        depth += (*c == '(') - (*c == ')');
        if (depth == 1 && *c == ',')
            return 0;
    }
    return 1;
}

static int parse_reducer(struct parser *p, const char *name, const struct operation *user, int part)
{
    int args[MAX_ARGS];
    if (p->reducer) {
        mf_fail(MF_ERROR_EXPRESSION, "expression \"%.100s\": reducer %s stands inside reducer %s; reducers do not nest",
                p->text, name, p->reducer);
        return -1;
    }
    p->reducer = name;
    int count = parse_args(p, args);
    p->reducer = NULL;
    if (count < 0)
        return -1;
    return user ? mf_node_reduce_user(p->program, user, part, args, count)
                : mf_node_reduce(p->program, name, args, count);
}

static int parse_map_call(struct parser *p, const char *name)
{
    int args[MAX_ARGS], op = find_function(name), type = mf_dtype_named(name, strlen(name));
    int count = parse_args(p, args);
    if (count < 0)
        return -1;
    if (type >= 0) {
        if (count == 1)
            return mf_node_cast(pool_of(p), args[0], (enum dtype)type);
        mf_fail(MF_ERROR_EXPRESSION, "cast %s takes 1 operand and has %d", name, count);
        return -1;
    }
    if (op == OP_leaky && count == 1 && (args[count++] = mf_node_real(pool_of(p), 0.1)) < 0)
        return -1;
    return mf_node_map(pool_of(p), (enum op)op, args, count);
}

static int parse_call(struct parser *p, const char *name)
{
    int part = 0;
    const struct operation *user = find_operation(p, name);
    if (user && *p->at == '.') {
        p->at++;
        if (!mf_is_digit(*p->at))
            return unexpected(p, "a result's number");
        part = *p->at++ - '0';
    }
    if (!take(p, "("))
        return unexpected(p, "'('");
    int both = !strcmp(name, "min") || !strcmp(name, "max");
    if (user || (is_reducer_name(name) && (!both || has_one_operand(p->at))))
        return parse_reducer(p, name, user, part);
    if (find_function(name) >= 0 || mf_dtype_named(name, strlen(name)) >= 0)
        return parse_map_call(p, name);
    mf_fail(MF_ERROR_EXPRESSION, "expression \"%.100s\": there is no operation \"%s\"", p->text, name);
    return -1;
}

static int parse_primary(struct parser *p)
{
    skip_blanks(p);
    p->caret = 0;
    if (take(p, "(")) {
        int inner = parse_compare(p);
        if (inner < 0)
            return -1;
        p->caret = 0;
        return take(p, ")") ? inner : unexpected(p, "')'");
    }
    if (mf_is_digit(*p->at) || *p->at == '.')
        return parse_number(p);
    if (!mf_is_letter(*p->at) && *p->at != '_')
        return unexpected(p, "an operand, a number, a name or '('");
    char name[NAME_SIZE];
    int length = scan_name(p, name);
    if (length == 1 && !p->scope)
        return parse_operand(p, name[0]);
    if (!strcmp(name, "inf") || !strcmp(name, "nan"))
        return mf_node_real(pool_of(p), name[0] == 'i' ? (double)INFINITY : (double)NAN);
    if (p->scope) {
        skip_blanks(p);
        if (*p->at != '(')
            return parse_name(p, name);
    }
    int node = parse_call(p, name);
    p->caret = 0;
    return node;
}

static int binary(struct parser *p, enum op op, int left, int right)
{
    if (left < 0 || right < 0)
        return -1;
    int args[2] = {left, right};
    return mf_node_map(pool_of(p), op, args, 2);
}

/* x^y next to another operator could be read two ways. */
static int refuse_caret(const struct parser *p)
{
    mf_fail(MF_ERROR_EXPRESSION,
            "expression \"%.100s\": write parentheses around ^ at character %ld; it is exclusive or of integers and a "
            "power of floats",
            p->text, position(p));
    return -1;
}

static int parse_unary(struct parser *p);

/* Counts one more level; 1 when they are too many. */
static int too_deep(struct parser *p)
{
    if (++p->depth <= MAX_DEPTH)
        return 0;
    mf_fail(MF_ERROR_EXPRESSION, "the expression nests deeper than %d", MAX_DEPTH);
    return 1;
}

static int parse_power(struct parser *p)
{
    int left = parse_primary(p);
    if (left < 0)
        return -1;
    if (take(p, "**")) {
        if (too_deep(p))
            return -1;
        int power = parse_unary(p);
        p->depth--;
        return binary(p, OP_pow, left, power);
    }
    if (!take(p, "^"))
        return left;
    int right = parse_primary(p);
    if (right < 0)
        return -1;
    const struct node *l = &pool_of(p)->node[left], *r = &pool_of(p)->node[right];
    int real = mf_cls_is_float(mf_dtypes[l->dtype].cls) || mf_cls_is_float(mf_dtypes[r->dtype].cls);
    int node = binary(p, real ? OP_pow : OP_xor, left, right);
    p->caret = 1;
    return node;
}

static int parse_unary(struct parser *p)
{
    static const struct {
        const char *symbol;
        enum op op;
    } signs[] = {{"-", OP_neg}, {"+", OP_END}, {"~", OP_not}};
    for (size_t i = 0; i < 3; i++)
        if (take(p, signs[i].symbol)) {
            if (too_deep(p))
                return -1;
            int arg = parse_unary(p);
            p->depth--;
            if (arg < 0)
                return -1;
            if (p->caret)
                return refuse_caret(p);
            return signs[i].op == OP_END ? arg : mf_node_map(pool_of(p), signs[i].op, &arg, 1);
        }
    return parse_power(p);
}

/* The binary operators, loosest first. A longer symbol stands before the shorter one it begins with. */
static const struct {
    const char *symbol;
    int level;
    enum op op;
    int swap; /* x > y is y < x */
} operators[] = {
    {"<=", 0, OP_le, 0},  {">=", 0, OP_le, 1}, {"==", 0, OP_eq, 0},  {"!=", 0, OP_ne, 0}, {"<<", 3, OP_shl, 0},
    {">>", 3, OP_shr, 0}, {"<", 0, OP_lt, 0},  {">", 0, OP_lt, 1},   {"|", 1, OP_or, 0},  {"&", 2, OP_and, 0},
    {"+", 4, OP_add, 0},  {"-", 4, OP_sub, 0}, {"**", 9, OP_pow, 0}, {"*", 5, OP_mul, 0}, {"//", 5, OP_floordiv, 0},
    {"/", 5, OP_div, 0},  {"%", 5, OP_mod, 0},
};

/* The operator that stands next, or -1. */
static int next_operator(struct parser *p)
{
    skip_blanks(p);
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++)
        if (!strncmp(p->at, operators[i].symbol, strlen(operators[i].symbol)))
            return (int)i;
    return -1;
}

/* Operators of this level and tighter ones, left to right; comparisons do not chain. */
static int parse_level(struct parser *p, int level)
{
    if (level == 6)
        return parse_unary(p);
    int left = parse_level(p, level + 1);
    int caret = p->caret;
    for (int i; left >= 0 && (i = next_operator(p)) >= 0 && operators[i].level == level;) {
        if (caret)
            return refuse_caret(p);
        p->at += strlen(operators[i].symbol);
        int right = parse_level(p, level + 1);
        if (right < 0)
            return -1;
        if (p->caret)
            return refuse_caret(p);
        left = operators[i].swap ? binary(p, operators[i].op, right, left) : binary(p, operators[i].op, left, right);
        if (level == 0) {
            if ((i = next_operator(p)) >= 0 && operators[i].level == 0)
                return unexpected(p, "the end of a comparison (comparisons do not chain)");
            break;
        }
    }
    return left;
}

static int parse_compare(struct parser *p)
{
    if (too_deep(p))
        return -1;
    int node = parse_level(p, 0);
    p->depth--;
    return node;
}

static mf_status parse_outputs(struct parser *p)
{
    struct program *program = p->program;
    for (;;) {
        if (program->output_count == MF_MAX_OUTPUTS)
            return mf_fail(MF_ERROR_EXPRESSION, "the expression has more than %d results", MF_MAX_OUTPUTS);
        int node = parse_compare(p);
        if (node < 0)
            return mf_fail_again();
        program->output[program->output_count++] = node;
        if (!take(p, ";"))
            break;
    }
    skip_blanks(p);
    if (!*p->at)
        return MF_OK;
    unexpected(p, "an operator, ';' or the end");
    return MF_ERROR_EXPRESSION;
}

mf_status mf_expr_parse(const char *text, int input_count, const enum dtype *types, const struct operation *operations,
                        struct program *program)
{
    memset(program, 0, sizeof *program);
    struct parser p = {text, text, input_count, types, operations, program, NULL, 0, 0, NULL};
    return parse_outputs(&p);
}

int mf_expr_parse_in(const char *text, const char **at, const struct scope *scope)
{
    struct parser p = {text, *at, 0, NULL, NULL, NULL, scope->operation, 0, 0, scope};
    int node = parse_compare(&p);
    *at = p.at;
    return node;
}

int mf_expr_name_taken(const char *name)
{
    return is_reducer_name(name) || find_function(name) >= 0 || mf_dtype_named(name, strlen(name)) >= 0 ||
           !strcmp(name, "inf") || !strcmp(name, "nan");
}

int mf_expression_outputs(const char *expression)
{
    if (!expression) {
        mf_fail(MF_ERROR_ARGUMENT, "the expression is null");
        return -1;
    }
    int count = 1;
    for (const char *c = expression; *c; c++)
        count += *c == ';';
    if (count <= MF_MAX_OUTPUTS)
        return count;
    mf_fail(MF_ERROR_EXPRESSION, "the expression has %d results and the most is %d", count, MF_MAX_OUTPUTS);
    return -1;
}
