/* Arrays as text. */
#include "show.h"

#include <inttypes.h>
#include <string.h>

#include "values.h"

enum { LINE = 79, EDGE = 3, TEXT = 64 };

int64_t tensor_elements(const DLTensor *tensor)
{
    int64_t count = 1;
    for (int d = 0; d < tensor->ndim; d++)
        count *= tensor->shape[d];
    return count;
}

double tensor_bytes(const DLTensor *tensor)
{
    double bytes = (tensor->dtype.bits + 7) / 8;
    for (int d = 0; d < tensor->ndim; d++)
        if (!tensor->strides || tensor->strides[d] || !tensor->shape[d])
            bytes *= (double)tensor->shape[d];
    return bytes;
}

/* What is the same for every bracket. */
struct shower {
    FILE *out;
    const DLTensor *tensor;
    int64_t stride[32];
    int shorten, column;
    int width, left, right; /* of all elements; before the point, and from it on */
    int scientific;         /* some element has an exponent: the points are not aligned */
};

static int is_float(DLDataType dtype)
{
    return dtype.code == kDLFloat || dtype.code == 4 || dtype.code >= 8; /* bf16 and the 8-bit floats of DLPack 1.1 */
}

/* One element; a whole float has its point, as in NumPy. */
static char *element_text(const struct shower *s, int64_t at, char *text)
{
    const char *base = (const char *)s->tensor->data + s->tensor->byte_offset;
    values_decimal(base + at * ((s->tensor->dtype.bits + 7) / 8), s->tensor->dtype, text);
    if (is_float(s->tensor->dtype) && !strpbrk(text, ".einf"))
        strcat(text, ".");
    return text;
}

static void start(struct shower *s, FILE *out, const DLTensor *tensor)
{
    int64_t count = 1;
    memset(s, 0, sizeof *s);
    s->out = out;
    s->tensor = tensor;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        s->stride[d] = tensor->strides ? tensor->strides[d] : count;
        count *= tensor->shape[d];
    }
    s->shorten = count > SHOW_ELEMENTS;
}

/* Index after i; over the middle of a long dimension. *gap says that something was left out. */
static int64_t next_index(const struct shower *s, int d, int64_t i, int *gap)
{
    int64_t n = s->tensor->shape[d];
    *gap = s->shorten && n > 2 * EDGE && i == EDGE - 1;
    return *gap ? n - EDGE : i + 1;
}

static void measure(struct shower *s, int d, int64_t at)
{
    char text[TEXT];
    int gap;
    if (d == s->tensor->ndim) {
        int width = (int)strlen(element_text(s, at, text)), left = (int)strcspn(text, ".");
        s->scientific |= is_float(s->tensor->dtype) && strchr(text, 'e');
        s->width = width > s->width ? width : s->width;
        if (text[left]) {
            s->left = left > s->left ? left : s->left;
            s->right = width - left > s->right ? width - left : s->right;
        }
        return;
    }
    for (int64_t i = 0; i < s->tensor->shape[d]; i = next_index(s, d, i, &gap))
        measure(s, d + 1, at + i * s->stride[d]);
}

static void put(struct shower *s, const char *text, int width)
{
    s->column += fprintf(s->out, "%*s", width, text);
}

/* The points of a column stand below each other; what has none (nan, integers) stands at the right. */
static void put_element(struct shower *s, const char *text)
{
    int left = (int)strcspn(text, ".");
    if (s->scientific || !text[left] || s->left + s->right < s->width) {
        put(s, text, s->width);
        return;
    }
    put(s, "", s->left - left);
    s->column += fprintf(s->out, "%-*s", s->left + s->right - (s->left - left), text);
}

static void new_line(struct shower *s, int lines, int indent)
{
    while (lines--)
        fputc('\n', s->out);
    s->column = fprintf(s->out, "%*s", indent, "");
}

static void show_row(struct shower *s, int d, int64_t at)
{
    char text[TEXT];
    int gap = 0;
    put(s, "[", 0);
    for (int64_t i = 0; i < s->tensor->shape[d];) {
        if (i && s->column + 1 + s->width >= LINE)
            new_line(s, 1, d + 1);
        else if (i)
            put(s, " ", 0);
        put_element(s, element_text(s, at + i * s->stride[d], text));
        i = next_index(s, d, i, &gap);
        if (gap)
            put(s, " ...", 0);
    }
    put(s, "]", 0);
}

static void show_level(struct shower *s, int d, int64_t at)
{
    int gap = 0;
    if (d == s->tensor->ndim - 1) {
        show_row(s, d, at);
        return;
    }
    put(s, "[", 0);
    for (int64_t i = 0; i < s->tensor->shape[d];) {
        if (i)
            new_line(s, s->tensor->ndim - 1 - d, d + 1);
        show_level(s, d + 1, at + i * s->stride[d]);
        i = next_index(s, d, i, &gap);
        if (gap) {
            new_line(s, 1, d + 1);
            put(s, "...", 0);
        }
    }
    put(s, "]", 0);
}

void show_array(FILE *out, const DLTensor *tensor)
{
    struct shower s;
    char text[TEXT];
    start(&s, out, tensor);
    if (!tensor->ndim) {
        fprintf(out, "%s\n", element_text(&s, 0, text));
        return;
    }
    if (!tensor_elements(tensor)) {
        fputs("[] of shape ", out);
        show_shape(out, tensor, 0);
        fputc('\n', out);
        return;
    }
    measure(&s, 0, 0);
    s.width = s.scientific || s.left + s.right < s.width ? s.width : s.left + s.right;
    show_level(&s, 0, 0);
    fputc('\n', out);
}

static void json_element(const struct shower *s, int64_t at)
{
    const char *base = (const char *)s->tensor->data + s->tensor->byte_offset;
    char text[TEXT];
    values_decimal(base + at * ((s->tensor->dtype.bits + 7) / 8), s->tensor->dtype, text);
    if (!strcmp(text, "True") || !strcmp(text, "False"))
        fputs(text[0] == 'T' ? "true" : "false", s->out);
    else if (strpbrk(text, "n")) /* nan, inf, -inf */
        fprintf(s->out, "\"%s\"", text);
    else
        fputs(text, s->out);
}

static void json_level(const struct shower *s, int d, int64_t at)
{
    if (d == s->tensor->ndim) {
        json_element(s, at);
        return;
    }
    fputc('[', s->out);
    for (int64_t i = 0; i < s->tensor->shape[d]; i++) {
        if (i)
            fputs(", ", s->out);
        json_level(s, d + 1, at + i * s->stride[d]);
    }
    fputc(']', s->out);
}

void show_json_array(FILE *out, const DLTensor *tensor)
{
    struct shower s;
    start(&s, out, tensor);
    json_level(&s, 0, 0);
}

void show_json_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < 32)
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

void show_shape(FILE *out, const DLTensor *tensor, int json)
{
    fputc(json ? '[' : '(', out);
    for (int d = 0; d < tensor->ndim; d++)
        fprintf(out, "%s%" PRId64, d ? ", " : "", tensor->shape[d]);
    fputs(json ? "]" : tensor->ndim == 1 ? ",)" : ")", out);
}
