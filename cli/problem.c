/* One problem as one line of text: read and written. */
#include "problem.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expr.h" /* src/: the element types */

struct reader {
    const char *at, *end; /* of the field that is being read */
    struct problem_line *line;
    int operands; /* of the modes string; with more than 14 the first "o" is an operand */
    char *error;
    size_t error_size;
};

__attribute__((format(printf, 2, 3))) static int fail(const struct reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, r->error_size, format, args);
    va_end(args);
    return 1;
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static int take(struct reader *r, char symbol)
{
    if (r->at >= r->end || *r->at != symbol)
        return 0;
    r->at++;
    return 1;
}

/* The letters, digits and '_' that stand next. */
static size_t word(struct reader *r, char *text, size_t size)
{
    size_t n = 0;
    for (; r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_'); r->at++)
        if (n + 1 < size)
            text[n++] = *r->at;
    text[n] = 0;
    return n;
}

static int number(struct reader *r, int64_t *value)
{
    int negative = take(r, '-'), digits = 0;
    *value = 0;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++, digits++)
        if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *r->at - '0', value))
            return fail(r, "a number in the problem does not fit in 63 bits");
    if (!digits)
        return fail(r, "expected a number at \"%.20s\"", r->at);
    if (negative)
        *value = -*value;
    return 0;
}

/* Numbers with commas up to the closing bracket. */
static int numbers(struct reader *r, char close, int64_t *values, int *count)
{
    *count = 0;
    if (take(r, close))
        return 0;
    for (;;) {
        if (*count == MF_MAX_RANK)
            return fail(r, "a tensor has more than %d dimensions", MF_MAX_RANK);
        if (number(r, &values[(*count)++]))
            return 1;
        if (take(r, close))
            return 0;
        if (!take(r, ','))
            return fail(r, "expected ',' or '%c' at \"%.20s\"", close, r->at);
    }
}

/* ---- tensors ---- */

char *problem_tensor_name(int index, char *name)
{
    if (index < MF_MAX_INPUTS)
        snprintf(name, 8, "%c", 'a' + index);
    else if (index == MF_MAX_INPUTS)
        strcpy(name, "o");
    else
        snprintf(name, 8, "o%d", (index - MF_MAX_INPUTS) & 31);
    return name;
}

static int named_tensor(const char *name)
{
    char *end;
    if (name[0] >= 'a' && name[0] < 'a' + MF_MAX_INPUTS && !name[1] && name[0] != 'o')
        return name[0] - 'a';
    if (name[0] != 'o')
        return -1;
    if (!name[1])
        return MF_MAX_INPUTS;
    long k = strtol(name + 1, &end, 10);
    return isdigit((unsigned char)name[1]) && !*end && k > 0 && k < MF_MAX_OUTPUTS ? MF_MAX_INPUTS + (int)k : -1;
}

int64_t problem_elements(const struct problem_tensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->ndim; d++)
        if (__builtin_mul_overflow(count, tensor->shape[d], &count))
            count = INT64_MAX;
    return count;
}

static int is_empty(const struct problem_tensor *tensor)
{
    for (int d = 0; d < tensor->ndim; d++)
        if (!tensor->shape[d])
            return 1;
    return 0;
}

int problem_set_row_major(struct problem_tensor *tensor)
{
    int64_t count = 1;
    tensor->row_major = 1;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        tensor->strides[d] = count;
        if (!tensor->shape[d] || !__builtin_mul_overflow(count, tensor->shape[d], &count))
            continue;
        if (!is_empty(tensor))
            return 1;
        count = 1; /* the strides of no elements say nothing */
    }
    return problem_least_offset(tensor, &tensor->offset);
}

int problem_least_offset(const struct problem_tensor *tensor, int64_t *offset)
{
    int64_t reach;
    *offset = 0;
    for (int d = 0; d < tensor->ndim && !is_empty(tensor); d++)
        if (tensor->strides[d] < 0 && tensor->shape[d] > 1 &&
            (__builtin_mul_overflow(tensor->strides[d], 1 - tensor->shape[d], &reach) ||
             __builtin_add_overflow(*offset, reach, offset)))
            return 1;
    return 0;
}

int64_t problem_extent(const struct problem_tensor *tensor)
{
    int64_t least, last = tensor->offset, reach;
    if (problem_least_offset(tensor, &least) || tensor->offset < least)
        return -1;
    if (is_empty(tensor))
        return tensor->offset;
    for (int d = 0; d < tensor->ndim; d++)
        if (tensor->strides[d] > 0 && (__builtin_mul_overflow(tensor->strides[d], tensor->shape[d] - 1, &reach) ||
                                       __builtin_add_overflow(last, reach, &last)))
            return -1;
    return last + 1;
}

static int tensor_layout(struct reader *r, struct problem_tensor *tensor, const char *name)
{
    int count;
    for (int d = 0; d < tensor->ndim; d++)
        if (tensor->shape[d] < 0)
            return fail(r, "tensor %s: dimension %d has the negative size %" PRId64, name, d, tensor->shape[d]);
    if (take(r, ':')) {
        if (!take(r, '(') || numbers(r, ')', tensor->strides, &count))
            return fail(r, "tensor %s: expected (STRIDE,...) after ':'", name);
        if (count != tensor->ndim)
            return fail(r, "tensor %s has %d dimensions and %d strides", name, tensor->ndim, count);
        tensor->row_major = 0;
        if (problem_least_offset(tensor, &tensor->offset))
            return fail(r, "tensor %s reaches over more than 2^63 elements", name);
    } else if (problem_set_row_major(tensor)) {
        return fail(r, "tensor %s has more than 2^63 elements", name);
    }
    if (take(r, '+') && number(r, &tensor->offset))
        return 1;
    if (problem_extent(tensor) < 0)
        return fail(r, "tensor %s leaves its memory: offset %" PRId64, name, tensor->offset);
    return 0;
}

/* @NAME: what stands there must be a tensor read before, with memory of its own. */
static int tensor_memory(struct reader *r, int index, const char *name)
{
    char owner[8];
    struct problem_tensor *tensor = &r->line->tensor[index];
    tensor->memory = index;
    if (!take(r, '@'))
        return 0;
    word(r, owner, sizeof owner);
    int other = named_tensor(owner);
    int known =
        other >= 0 && other < index && r->line->tensor[other].item > 0 && r->line->tensor[other].memory == other;
    if (index < MF_MAX_INPUTS || !known)
        return fail(
            r,
            "tensor %s cannot lie in the memory of \"%s\": only an output can, in an operand's or in an earlier "
            "output's that has memory of its own",
            name, owner);
    tensor->memory = other;
    return 0;
}

static int read_tensor(struct reader *r)
{
    char name[8], type[16];
    const char *start = r->at;
    word(r, name, sizeof name);
    if (!take(r, '='))
        return fail(r, "expected NAME=TYPE[SHAPE] at \"%.30s\"", start);
    int output = name[0] == 'o' && r->line->input_count >= r->operands;
    int index = !output && !strcmp(name, "o") ? 'o' - 'a' : named_tensor(name);
    int *count = output ? &r->line->output_count : &r->line->input_count;
    if (index < 0 || index != (output ? MF_MAX_INPUTS : 0) + *count)
        return fail(r, "tensor \"%s\" stands where the next %s should", name, output ? "output" : "operand");
    struct problem_tensor *tensor = &r->line->tensor[index];
    size_t length = word(r, type, sizeof type);
    int dtype = mf_dtype_named(type, length);
    if (dtype < 0)
        return fail(r, "tensor %s has type \"%s\", which modefold does not have", name, type);
    tensor->dtype = (DLDataType){mf_dtypes[dtype].code, mf_dtypes[dtype].bits, 1};
    tensor->item = mf_dtypes[dtype].size;
    if (!take(r, '[') || numbers(r, ']', tensor->shape, &tensor->ndim))
        return fail(r, "tensor %s: expected its shape in brackets after the type", name);
    if (tensor_layout(r, tensor, name) || tensor_memory(r, index, name))
        return 1;
    ++*count;
    return 0;
}

/* ---- options ---- */

/* define="TEXT" */
static int read_definition(struct reader *r)
{
    const char *end = r->at < r->end && *r->at == '"' ? memchr(r->at + 1, '"', (size_t)(r->end - r->at - 1)) : NULL;
    size_t length = end ? (size_t)(end - r->at - 1) : 0;
    if (!length)
        return fail(r, "option define has no text in \"...\" at \"%.30s\"", r->at);
    if (r->line->define_count == PROBLEM_DEFINES || length >= sizeof r->line->define[0])
        return fail(r, "a problem has up to %d definitions of up to %zu characters", PROBLEM_DEFINES,
                    sizeof r->line->define[0] - 1);
    memcpy(r->line->define[r->line->define_count++], r->at + 1, length); /* the line was zeroed */
    r->at = end + 1;
    return 0;
}

static int read_option(struct reader *r)
{
    char key[16], value[32];
    const char *start = r->at;
    int64_t n = 0;
    word(r, key, sizeof key);
    if (!take(r, '='))
        return fail(r, "expected OPTION=VALUE at \"%.30s\"", start);
    if (!strcmp(key, "define"))
        return read_definition(r);
    int is_number = r->at < r->end && isdigit((unsigned char)*r->at);
    size_t length = 0;
    int wrong = is_number && number(r, &n);
    if (!is_number)
        length = word(r, value, sizeof value);
    if (wrong || (!is_number && !length))
        return fail(r, "option %s has no good value at \"%.30s\"", key, start);
    for (char c; !is_number && length + 1 < sizeof value && r->at < r->end && (*r->at == '-' || *r->at == ':');) {
        take(r, c = *r->at); /* solvers' names have them: contract-arg, multi:swap */
        value[length++] = c;
        length += word(r, value + length, sizeof value - length);
    }
    if (!strcmp(key, "seed") && is_number) {
        r->line->seed = (uint64_t)n;
    } else if (!strcmp(key, "threads") && is_number && n <= 256) {
        r->line->threads = (int)n;
    } else if (!strcmp(key, "solver") && !is_number) {
        snprintf(r->line->solver, sizeof r->line->solver, "%s", value);
    } else if (!strcmp(key, "order") && !is_number &&
               (!strcmp(value, "written") || !strcmp(value, "memory") || !strcmp(value, "contract"))) {
        r->line->order = value[0] == 'w' ? MF_ORDER_AS_WRITTEN : value[0] == 'c' ? MF_ORDER_CONTRACT : 0;
    } else if (!strcmp(key, "data") && !is_number) {
        int kind = 0;
        while (kind < VALUES_COUNT && strcmp(value, values_kind_names[kind]) != 0)
            kind++;
        if (kind == VALUES_COUNT)
            return fail(r, "there is no kind of data \"%s\"", value);
        r->line->data = (enum values_kind)kind;
    } else {
        return fail(r, "unknown option or value at \"%.30s\"", start);
    }
    return 0;
}

static int read_list(struct reader *r, const char *from, const char *to, int (*read_one)(struct reader *r))
{
    r->at = from;
    r->end = to;
    for (skip_blanks(r); r->at < r->end; skip_blanks(r)) {
        if (read_one(r))
            return 1;
        if (r->at < r->end && !isspace((unsigned char)*r->at))
            return fail(r, "expected a blank at \"%.20s\"", r->at);
    }
    return 0;
}

/* ---- the line ---- */

/* from ... to without the blanks around it. */
static int copy_field(const struct reader *r, const char *what, const char *from, const char *to, char *field,
                      size_t size)
{
    while (from < to && isspace((unsigned char)*from))
        from++;
    while (to > from && isspace((unsigned char)to[-1]))
        to--;
    if ((size_t)(to - from) >= size)
        return fail(r, "the %s has more than %zu characters", what, size - 1);
    memcpy(field, from, (size_t)(to - from));
    field[to - from] = 0;
    return 0;
}

/* Bars between quotes do not count. */
static const char *last_bar(const char *from, const char *to)
{
    for (int quoted = 0; to > from && (quoted || to[-1] != '|'); to--)
        quoted ^= to[-1] == '"';
    return to > from ? to - 1 : NULL;
}

/* Whether the field begins as tensors do; an expression may itself contain '|'. */
static int begins_tensors(const char *at, const char *end)
{
    while (at < end && isspace((unsigned char)*at))
        at++;
    if (at + 2 < end && at[0] == 'a' && at[1] == '=' && isalpha((unsigned char)at[2])) {
        const char *bracket = at + 2;
        while (bracket < end && isalnum((unsigned char)*bracket))
            bracket++;
        return bracket < end && *bracket == '[';
    }
    return 0;
}

int problem_parse(const char *text, struct problem_line *line, char *error, size_t error_size)
{
    struct reader r = {text, text, line, 0, error, error_size};
    const char *end = text + strlen(text), *options_end = end;
    memset(line, 0, sizeof *line);
    line->seed = 1;
    const char *first = strchr(text, '|'), *tensors = last_bar(text, end), *options = NULL;
    if (tensors && !begins_tensors(tensors + 1, end)) {
        options = tensors;
        tensors = last_bar(text, options);
        end = options;
    }
    if (!first || !tensors || tensors == first || !begins_tensors(tensors + 1, end))
        return fail(&r, "a problem is MODES | EXPRESSION | a=TYPE[SHAPE] ... o=TYPE[SHAPE] | OPTIONS, not \"%.60s\"",
                    text);
    if (copy_field(&r, "modes string", text, first, line->modes, sizeof line->modes) ||
        copy_field(&r, "expression", first + 1, tensors, line->expression, sizeof line->expression))
        return 1;
    r.operands = mf_modes_inputs(line->modes);
    int results = mf_expression_outputs(line->expression);
    if (r.operands < 0 || results < 0)
        return fail(&r, "%s", mf_error());
    if (read_list(&r, tensors + 1, end, read_tensor) ||
        (options && read_list(&r, options + 1, options_end, read_option)))
        return 1;
    if (r.operands != line->input_count || (line->output_count && results != line->output_count))
        return fail(&r, "the problem has %d operands and %d outputs; its modes string has %d, its expression %d",
                    line->input_count, line->output_count, r.operands, results);
    return 0;
}

int problem_complete(mf_device *device, struct problem_line *line, char *error, size_t error_size)
{
    DLTensor inputs[MF_MAX_INPUTS];
    int results = mf_expression_outputs(line->expression);
    struct reader r = {NULL, NULL, line, 0, error, error_size};
    if (problem_define(device, line) != MF_OK)
        return fail(&r, "%s", mf_error());
    if (line->output_count)
        return 0;
    for (int i = 0; i < line->input_count; i++)
        inputs[i] = problem_dltensor(&line->tensor[i]);
    for (int k = 0; k < results; k++) {
        struct problem_tensor *t = &line->tensor[MF_MAX_INPUTS + k];
        if (mf_fold_shape(line->modes, line->input_count, inputs, &t->ndim, t->shape) != MF_OK ||
            mf_fold_type(device, line->expression, line->input_count, inputs, k, &t->dtype) != MF_OK)
            return fail(&r, "%s", mf_error());
        t->item = t->dtype.bits / 8;
        t->memory = MF_MAX_INPUTS + k;
        if (problem_set_row_major(t))
            return fail(&r, "output %d has more than 2^63 elements", k);
    }
    line->output_count = results;
    return 0;
}

mf_status problem_define(mf_device *device, const struct problem_line *line)
{
    mf_status status = MF_OK;
    for (int i = 0; i < line->define_count && status == MF_OK; i++)
        status = mf_operation_define_text(device, line->define[i]);
    return status;
}

/* Appends to a text that may already be full. */
struct writer {
    char *text;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    size_t room = w->length < w->size ? w->size - w->length : 0;
    va_start(args, format);
    int n = vsnprintf(room ? w->text + w->length : NULL, room, format, args);
    va_end(args);
    w->length += n > 0 ? (size_t)n : 0;
}

static void put_tensor(struct writer *w, const struct problem_line *line, int index)
{
    const struct problem_tensor *t = &line->tensor[index];
    char name[8];
    int64_t least = 0;
    put(w, "%s=%s[", problem_tensor_name(index, name), mf_type_name(t->dtype));
    for (int d = 0; d < t->ndim; d++)
        put(w, "%s%" PRId64, d ? "," : "", t->shape[d]);
    put(w, "]");
    for (int d = 0; d < t->ndim && !t->row_major; d++)
        put(w, "%s%" PRId64, d ? "," : ":(", t->strides[d]);
    if (!t->row_major)
        put(w, t->ndim ? ")" : ":()");
    if (!problem_least_offset(t, &least) && t->offset != least)
        put(w, "+%" PRId64, t->offset);
    if (t->memory != index)
        put(w, "@%s", problem_tensor_name(t->memory, name));
    put(w, " ");
}

char *problem_print(const struct problem_line *line, char *text, size_t size)
{
    struct writer w = {text, size, 0};
    put(&w, "%s | %s | ", line->modes, line->expression);
    for (int i = 0; i < line->input_count; i++)
        put_tensor(&w, line, i);
    for (int k = 0; k < line->output_count; k++)
        put_tensor(&w, line, MF_MAX_INPUTS + k);
    put(&w, "| seed=%" PRIu64 " data=%s", line->seed, values_kind_names[line->data]);
    if (line->order)
        put(&w, " order=%s", line->order & MF_ORDER_AS_WRITTEN ? "written" : "contract");
    if (line->threads)
        put(&w, " threads=%d", line->threads);
    if (line->solver[0])
        put(&w, " solver=%s", line->solver);
    for (int i = 0; i < line->define_count; i++)
        put(&w, " define=\"%s\"", line->define[i]);
    return text;
}
