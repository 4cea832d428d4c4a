/* Operands from files; the shapes and types of results. */
#include "fold_files.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lists.h"

/* Splits "PATH:TYPE"; 1 and the type when there is one. path has room for the whole argument. */
static int split_type(const char *argument, char *path, DLDataType *dtype)
{
    const char *colon = strrchr(argument, ':');
    strcpy(path, argument);
    if (!colon || !list_type_named(colon + 1, dtype))
        return 0;
    path[colon - argument] = 0;
    return 1;
}

static int open_operand(const char *argument, struct array *array, DLTensor *tensor)
{
    DLDataType dtype;
    char error[512], *path = malloc(strlen(argument) + 1);
    if (!path)
        return complain(1, "out of memory");
    int retyped = split_type(argument, path, &dtype);
    int failed = array_open(path, array, error, sizeof error);
    if (failed) {
        complain(1, "%s", error);
    } else {
        *tensor = *array->tensor;
        if (retyped && dtype.bits != tensor->dtype.bits) {
            failed = complain(1,
                              "%s has elements of %d bits and %s has %d; only types of the same size can be read as "
                              "each other",
                              path, tensor->dtype.bits, mf_type_name(dtype), dtype.bits);
        } else if (retyped) {
            tensor->dtype = dtype;
        }
    }
    free(path);
    return failed;
}

int operands_open(const char *const *paths, int count, struct operands *operands)
{
    memset(operands, 0, sizeof *operands);
    if (count > MF_MAX_INPUTS)
        return complain(2, "%d operands were given and the most is %d", count, MF_MAX_INPUTS);
    for (int i = 0; i < count; i++) {
        operands->count = i + 1;
        if (open_operand(paths[i], &operands->array[i], &operands->tensor[i])) {
            operands_close(operands);
            return 1;
        }
    }
    return 0;
}

void operands_close(struct operands *operands)
{
    for (int i = 0; i < operands->count; i++)
        array_close(&operands->array[i]);
    operands->count = 0;
}

int define_operations(const struct option_list *texts, mf_device *device)
{
    for (int i = 0; texts && i < texts->count; i++)
        if (mf_operation_define_text(device, texts->item[i]) != MF_OK)
            return complain(2, "--define: %s", mf_error());
    return 0;
}

int device_open(const char *name, int64_t threads, const struct option_list *define, mf_device **device)
{
    char cpu[32];
    if (threads > 256)
        return complain(2, "--threads is %" PRId64 " and the most is 256", threads);
    snprintf(cpu, sizeof cpu, threads ? "cpu:%d" : "cpu", (int)threads);
    return mf_device_open(name ? name : cpu, device) == MF_OK ? define_operations(define, *device) : complain_library();
}

char *modes_with_settings(const char *modes, const char *set)
{
    size_t size = strlen(modes) + (set ? strlen(set) : 0) + 8;
    char *text = malloc(size);
    if (!text) {
        complain(1, "out of memory");
        return NULL;
    }
    if (set && *set)
        snprintf(text, size, "%s%s%s", modes, strchr(modes, '=') ? "," : " with ", set);
    else
        strcpy(text, modes);
    return text;
}

int is_written_tensor(const char *text)
{
    const char *equals = text + (text[0] == 'o' && isdigit((unsigned char)text[1]) ? 2 : 1);
    return islower((unsigned char)text[0]) &&
           (*equals == '=' || (isdigit((unsigned char)*equals) && equals[1] == '=')) && strchr(equals, '[');
}

int problem_of_arguments(const char *modes, const struct option_list *arguments, struct problem_line *line)
{
    char text[PROBLEM_TEXT], error[512];
    size_t n = (size_t)snprintf(text, sizeof text, "%s | %s |", modes, arguments->item[1]);
    for (int i = 2; i < arguments->count && n < sizeof text; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, " %s", arguments->item[i]);
    if (n >= sizeof text)
        return complain(1, "the problem is too long");
    return problem_parse(text, line, error, sizeof error) ? complain(2, "%s", error) : 0;
}

/* One type for all results, or as many as there are. */
static int parse_types(const char *text, struct results *results)
{
    int count = 0;
    for (const char *at = text; at;) {
        char name[16];
        const char *comma = strchr(at, ',');
        snprintf(name, sizeof name, "%.*s", (int)(comma ? comma - at : 15), at);
        if (count == MF_MAX_OUTPUTS || !list_type_named(name, &results->dtype[count]))
            return complain(2, "--dtype: there is no type \"%s\"; 'modefold info' lists them", name);
        count++;
        at = comma ? comma + 1 : NULL;
    }
    if (count == 1)
        for (int k = 1; k < results->count; k++)
            results->dtype[k] = results->dtype[0];
    else if (count != results->count)
        return complain(2, "--dtype has %d types and the expression has %d result%s", count, results->count,
                        results->count == 1 ? "" : "s");
    return 0;
}

int results_infer(mf_device *device, const char *modes, const char *expression, const struct operands *operands,
                  const char *dtypes, struct results *results)
{
    results->count = mf_expression_outputs(expression);
    if (results->count < 0 ||
        mf_fold_shape(modes, operands->count, operands->tensor, &results->ndim, results->shape) != MF_OK)
        return complain_library();
    /* an expression that is wrong is told so even when --dtype makes its type needless */
    for (int k = 0; k < results->count; k++)
        if (mf_fold_type(device, expression, operands->count, operands->tensor, k, &results->dtype[k]) != MF_OK)
            return complain_library();
    return dtypes ? parse_types(dtypes, results) : 0;
}
