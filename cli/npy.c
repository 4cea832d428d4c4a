/* Reading and writing .npy: a strict parser of the header, then memory maps.
 *
 *   \x93NUMPY  major minor  length of the text (2 bytes in version 1, else 4, little-endian)  text  data
 *
 * The text is a Python dictionary: {'descr': '<f4', 'fortran_order': False, 'shape': (10, 100), } and white space.
 * Format: numpy/lib/format.py (NEP 1). Nothing from the file is believed before it is compared with the file's size. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "npy.h"

#include "../src/types.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define NATIVE_ORDER '<'
#else
#define NATIVE_ORDER '>'
#endif

enum { ALIGNMENT = 64, HEADER_MAX = 1024, SHAPE_TEXT = 22 * NPY_MAX_RANK };

static const struct {
    char name[3];
    uint8_t code, bits;
} types[] = {
    {"b1", MF_DL_BOOL, 8},    {"i1", MF_DL_INT, 8},     {"i2", MF_DL_INT, 16},    {"i4", MF_DL_INT, 32},
    {"i8", MF_DL_INT, 64},    {"u1", MF_DL_UINT, 8},    {"u2", MF_DL_UINT, 16},   {"u4", MF_DL_UINT, 32},
    {"u8", MF_DL_UINT, 64},   {"f2", MF_DL_FLOAT, 16},  {"f4", MF_DL_FLOAT, 32},  {"f8", MF_DL_FLOAT, 64},
    {"V2", MF_DL_BFLOAT, 16}, {"V1", MF_DL_F8_E4M3, 8}, {"f1", MF_DL_F8_E5M2, 8},
};
enum { TYPES = sizeof types / sizeof types[0] };

/* What the kinds that are not read hold, for the message. */
static const struct {
    char letter;
    const char *meaning;
} kinds[] = {
    {'c', "complex numbers"},
    {'O', "Python objects"},
    {'S', "byte strings"},
    {'a', "byte strings"},
    {'U', "text"},
    {'M', "dates"},
    {'m', "time spans"},
    {'V', "raw bytes"},
    {'f', "a float size"},
    {'i', "an integer size"},
    {'u', "an integer size"},
};

/* The parser's place in the text. */
struct cursor {
    const unsigned char *start, *at, *end;
    char *error;
    size_t error_size;
};

/* A word of the file for a message: clipped, and with nothing that a terminal would obey. */
static const char *quote(char out[32], const unsigned char *text, size_t length)
{
    const size_t shown = length < 24 ? length : 24;
    for (size_t i = 0; i < shown; i++)
        out[i] = text[i] >= ' ' && text[i] < 127 ? (char)text[i] : '?';
    snprintf(out + shown, 32 - shown, "%s", length > shown ? "..." : "");
    return out;
}

/* Skips white space; the next byte, or -1 at the end. */
static int peek(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || (*c->at >= '\t' && *c->at <= '\r')))
        c->at++;
    return c->at < c->end ? *c->at : -1;
}

static int unexpected(struct cursor *c, const char *expected)
{
    char found[32];
    const int next = peek(c);
    if (next < 0)
        return file_fail(c->error, c->error_size, "the header ends where %s is expected", expected);
    return file_fail(c->error, c->error_size, "header byte %zu: %s is expected, found \"%s\"",
                     (size_t)(c->at - c->start), expected, quote(found, c->at, (size_t)(c->end - c->at)));
}

static int take(struct cursor *c, char wanted, const char *expected)
{
    if (peek(c) != wanted)
        return unexpected(c, expected);
    c->at++;
    return 0;
}

/* A string without escapes, as NumPy's always are. */
static int take_string(struct cursor *c, const char *expected, const unsigned char **text, size_t *length)
{
    const int mark = peek(c);
    if (mark != '\'' && mark != '"')
        return unexpected(c, expected);
    const unsigned char *begin = c->at + 1, *at = begin;
    while (at < c->end && *at != mark && *at != '\\' && *at != '\n')
        at++;
    if (at == c->end || *at != mark) {
        char found[32];
        return file_fail(c->error, c->error_size, "header byte %zu: string \"%s\" %s", (size_t)(c->at - c->start),
                         quote(found, begin, (size_t)(at - begin)),
                         at < c->end && *at == '\\' ? "has an escape" : "is not closed");
    }
    *text = begin;
    *length = (size_t)(at - begin);
    c->at = at + 1;
    return 0;
}

static int take_bool(struct cursor *c, bool *value)
{
    peek(c);
    const size_t left = (size_t)(c->end - c->at);
    *value = left >= 4 && memcmp(c->at, "True", 4) == 0;
    if (!*value && (left < 5 || memcmp(c->at, "False", 5) != 0))
        return unexpected(c, "True or False for fortran_order");
    c->at += *value ? 4 : 5;
    return 0;
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* One length of the shape. Python 2 wrote long integers with an L behind. */
static int take_extent(struct cursor *c, int64_t *value)
{
    const int first = peek(c);
    if (first == '-')
        return unexpected(c, "a length of at least 0");
    if (!is_digit(first))
        return unexpected(c, "a length or ')'");
    const unsigned char *begin = c->at;
    bool over = false;
    for (*value = 0; c->at < c->end && is_digit(*c->at); c->at++) {
        over = over || __builtin_mul_overflow(*value, 10, value);
        over = over || __builtin_add_overflow(*value, *c->at - '0', value);
    }
    char digits[32];
    quote(digits, begin, (size_t)(c->at - begin));
    if (over)
        return file_fail(c->error, c->error_size, "the length %s in the shape needs more than 63 bits", digits);
    if (first == '0' && c->at - begin > 1)
        return file_fail(c->error, c->error_size, "the length %s in the shape begins with 0", digits);
    if (c->at < c->end && *c->at == 'L')
        c->at++;
    return 0;
}

/* A tuple: () or (3,) or (3, 4) or (3, 4, ). */
static int take_shape(struct cursor *c, struct npy_header *out)
{
    if (take(c, '(', "the shape's '('"))
        return 1;
    bool comma = false;
    for (out->ndim = 0; peek(c) != ')'; out->ndim++) {
        if (out->ndim > 0 && !comma)
            return unexpected(c, "',' or ')' in the shape");
        if (out->ndim == NPY_MAX_RANK)
            return file_fail(c->error, c->error_size, "the shape has more than %d lengths", NPY_MAX_RANK);
        if (take_extent(c, &out->shape[out->ndim]))
            return 1;
        comma = peek(c) == ',';
        c->at += comma;
    }
    if (out->ndim == 1 && !comma)
        return unexpected(c, "',' (one length alone is no tuple)");
    c->at++;
    return 0;
}

static int take_descr(struct cursor *c, const unsigned char **descr, size_t *length)
{
    const int next = peek(c);
    if (next == '[' || next == '(') {
        char found[32];
        return file_fail(c->error, c->error_size, "descr %s is a structured type, which is not read",
                         quote(found, c->at, (size_t)(c->end - c->at)));
    }
    return take_string(c, "a string for descr", descr, length);
}

/* What the dictionary holds beside the shape. */
struct fields {
    const unsigned char *descr;
    size_t descr_length;
    bool fortran;
};

/* One "key: value". seen has a bit for each key met. */
static int take_entry(struct cursor *c, struct npy_header *out, struct fields *fields, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    const unsigned char *key;
    size_t length;
    unsigned which = 0;
    if (take_string(c, "a key in quotes or '}'", &key, &length))
        return 1;
    while (which < 3 && (length != strlen(keys[which]) || memcmp(key, keys[which], length) != 0))
        which++;
    if (which == 3) {
        char found[32];
        return file_fail(c->error, c->error_size, "the header has the unknown key '%s'", quote(found, key, length));
    }
    if (*seen & 1U << which)
        return file_fail(c->error, c->error_size, "the header has the key '%s' twice", keys[which]);
    *seen |= 1U << which;
    if (take(c, ':', "':' after a key"))
        return 1;
    return which == 0   ? take_descr(c, &fields->descr, &fields->descr_length)
           : which == 1 ? take_bool(c, &fields->fortran)
                        : take_shape(c, out);
}

static int take_dictionary(struct cursor *c, struct npy_header *out, struct fields *fields)
{
    unsigned seen = 0;
    if (take(c, '{', "the header's '{'"))
        return 1;
    for (bool comma = true; peek(c) != '}';) {
        if (!comma)
            return unexpected(c, "',' or '}'");
        if (take_entry(c, out, fields, &seen))
            return 1;
        comma = peek(c) == ',';
        c->at += comma;
    }
    c->at++;
    if (peek(c) >= 0)
        return unexpected(c, "nothing after '}'");
    if (seen != 7)
        return file_fail(c->error, c->error_size, "the header lacks the key '%s'",
                         !(seen & 1)   ? "descr"
                         : !(seen & 2) ? "fortran_order"
                                       : "shape");
    return 0;
}

/* Finds the type of descr, such as '<f4'; returns its row, or TYPES with the error set. */
static int find_type(const struct cursor *c, const struct fields *fields, struct npy_header *out)
{
    const unsigned char *descr = fields->descr;
    char text[32];
    quote(text, descr, fields->descr_length);
    if (fields->descr_length < 2 || !memchr("<>|=", descr[0], 4)) {
        file_fail(c->error, c->error_size, "descr '%s' does not begin with a byte order (one of < > | =)", text);
        return TYPES;
    }
    int row = 0;
    while (row < TYPES && (fields->descr_length != 3 || memcmp(descr + 1, types[row].name, 2) != 0))
        row++;
    if (row == TYPES) {
        const char *meaning = "a type";
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
            meaning = kinds[i].letter == descr[1] ? kinds[i].meaning : meaning;
        file_fail(c->error, c->error_size,
                  "descr '%s' stands for %s, not read here (b1 i1 i2 i4 i8 u1 u2 u4 u8 "
                  "f2 f4 f8, V2 as bf16, V1 as f8e4m3 and f1 as f8e5m2 are)",
                  text, meaning);
        return TYPES;
    }
    out->dtype = (DLDataType){types[row].code, types[row].bits, 1};
    const bool wide = types[row].bits > 8;
    if (wide && descr[0] == '|' && types[row].name[0] != 'V') {
        file_fail(c->error, c->error_size, "descr '%s' leaves the byte order open", text);
        return TYPES;
    }
    out->swapped = wide && (descr[0] == '<' || descr[0] == '>') && descr[0] != NATIVE_ORDER;
    return row;
}

/* Strides and the size in bytes of a compact array; true if they overflow. Lengths of 0 count as 1 in the product, so
 * that strides never overflow either (NumPy has the same limit). */
static bool lay_out(int ndim, const int64_t *shape, bool fortran, int item_bytes, int64_t *strides, size_t *bytes)
{
    int64_t product = 1, total;
    bool empty = false;
    for (int i = 0; i < ndim; i++) {
        const int d = fortran ? i : ndim - 1 - i;
        strides[d] = product;
        empty = empty || shape[d] == 0;
        if (__builtin_mul_overflow(product, shape[d] > 0 ? shape[d] : 1, &product))
            return true;
    }
    if (__builtin_mul_overflow(product, item_bytes, &total) || total > PTRDIFF_MAX)
        return true;
    *bytes = empty ? 0 : (size_t)total;
    return false;
}

/* Magic, version and length: finds the text. */
static int find_text(const unsigned char *bytes, size_t size, struct cursor *c)
{
    if (size < 6 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return file_fail(c->error, c->error_size, "it does not begin with \\x93NUMPY, so it is no .npy file");
    const size_t preamble = size > 6 && bytes[6] == 1 ? 10 : 12;
    if (size >= 8 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0))
        return file_fail(c->error, c->error_size, "format version %d.%d is not known (1.0, 2.0 and 3.0 are)", bytes[6],
                         bytes[7]);
    if (size < preamble)
        return file_fail(c->error, c->error_size, "the file ends after %zu bytes, inside the first %zu", size,
                         preamble);
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (preamble == 12)
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (length > size - preamble)
        return file_fail(c->error, c->error_size, "the header says it is %zu bytes long but the file has %zu for it",
                         length, size - preamble);
    c->start = bytes;
    c->at = bytes + preamble;
    c->end = c->at + length;
    return 0;
}

int npy_parse(const void *bytes, size_t size, struct npy_header *out, char *error, size_t error_size)
{
    struct cursor c = {.error = error, .error_size = error_size};
    struct fields fields = {0};
    char shape[SHAPE_TEXT];
    *out = (struct npy_header){0};
    if (find_text(bytes, size, &c) || take_dictionary(&c, out, &fields))
        return 1;
    const int row = find_type(&c, &fields, out);
    if (row == TYPES)
        return 1;
    file_shape_text(shape, sizeof shape, out->ndim, out->shape);
    if (lay_out(out->ndim, out->shape, fields.fortran, out->dtype.bits / 8, out->strides, &out->data_bytes))
        return file_fail(error, error_size, "shape %s of %s is too large to count its bytes", shape, types[row].name);
    out->data_offset = (size_t)(c.end - c.start);
    const size_t left = size - out->data_offset;
    if (left != out->data_bytes)
        return file_fail(error, error_size,
                         "the header says %zu bytes of data (shape %s, %s) but the file has %zu after it",
                         out->data_bytes, shape, types[row].name, left);
    assert(out->data_offset <= size && out->data_bytes == size - out->data_offset);
    return 0;
}

/* Zeroed memory on a page boundary. */
static bool map_memory(size_t size, struct file_bytes *out)
{
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return false;
    *out = (struct file_bytes){data, size, true};
    return true;
}

/* Copies elements of 1, 2, 4 or 8 bytes, each turned end for end. */
static void copy_swapped(unsigned char *restrict to, const unsigned char *restrict from, size_t bytes, size_t item)
{
    for (size_t i = 0; i < bytes; i += item)
        for (size_t b = 0; b < item; b++)
            to[i + b] = from[i + item - 1 - b];
}

/* Moves the data to memory of their own when they are swapped, or not aligned for their type. */
static int settle(struct npy *npy, const struct npy_header *header)
{
    const size_t item = header->dtype.bits / 8;
    npy->tensor.data = npy->bytes.data + header->data_offset;
    if ((!header->swapped && (uintptr_t)npy->tensor.data % item == 0) || header->data_bytes == 0)
        return 0;
    struct file_bytes copy;
    if (!map_memory(header->data_bytes, &copy))
        return 1;
    if (header->swapped)
        copy_swapped(copy.data, npy->tensor.data, header->data_bytes, item);
    else
        memcpy(copy.data, npy->tensor.data, header->data_bytes);
    file_release(&npy->bytes);
    npy->bytes = copy;
    npy->tensor.data = copy.data;
    return 0;
}

static void set_tensor(struct npy *npy, DLDataType dtype, int ndim)
{
    npy->tensor.device = (DLDevice){kDLCPU, 0};
    npy->tensor.dtype = dtype;
    npy->tensor.ndim = ndim;
    npy->tensor.shape = npy->shape;
    npy->tensor.strides = npy->strides;
}

int npy_open_bytes(const char *path, struct file_bytes *bytes, struct npy *out, char *error, size_t error_size)
{
    struct npy_header header;
    char why[1024];
    *out = (struct npy){.bytes = *bytes};
    *bytes = (struct file_bytes){0};
    int status = npy_parse(out->bytes.data, out->bytes.size, &header, why, sizeof why);
    if (status) {
        file_fail(error, error_size, "%s: %s", file_in_name(path), why);
    } else {
        memcpy(out->shape, header.shape, sizeof out->shape);
        memcpy(out->strides, header.strides, sizeof out->strides);
        set_tensor(out, header.dtype, header.ndim);
        if (settle(out, &header))
            status = file_fail(error, error_size, "%s: no memory for a copy of its %zu bytes of data",
                               file_in_name(path), header.data_bytes);
    }
    if (status)
        npy_close(out);
    return status;
}

int npy_open(const char *path, struct npy *out, char *error, size_t error_size)
{
    struct file_bytes bytes;
    *out = (struct npy){0};
    return file_read(path, &bytes, error, error_size) || npy_open_bytes(path, &bytes, out, error, error_size);
}

/* Writes preamble and header text; their length, a multiple of ALIGNMENT, or 0 for a type that .npy cannot name. */
static size_t format_header(char header[HEADER_MAX], DLDataType dtype, int ndim, const int64_t *shape)
{
    int row = 0;
    while (row < TYPES && (types[row].code != dtype.code || types[row].bits != dtype.bits || dtype.lanes != 1))
        row++;
    if (row == TYPES)
        return 0;
    const char kind = types[row].name[0];
    const bool no_order = kind == 'V' || (dtype.bits == 8 && kind != 'f');
    size_t used = 10;
    used += (size_t)snprintf(header + used, HEADER_MAX - used, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                             no_order ? '|' : NATIVE_ORDER, types[row].name);
    for (int d = 0; d < ndim; d++)
        used += (size_t)snprintf(header + used, HEADER_MAX - used, "%lld%s", (long long)shape[d],
                                 d + 1 < ndim ? ", "
                                 : ndim == 1  ? ","
                                              : "");
    used += (size_t)snprintf(header + used, HEADER_MAX - used, "), }");
    const size_t length = (used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    assert(length <= HEADER_MAX);
    memset(header + used, ' ', length - used);
    header[length - 1] = '\n';
    memcpy(header, "\x93NUMPY\x01\x00", 8);
    header[8] = (char)((length - 10) & 255);
    header[9] = (char)((length - 10) >> 8);
    return length;
}

/* Gives the new file its length, with its blocks: a full disk shows here and not as SIGBUS at some store. */
static int reserve(int fd, size_t size)
{
    int status;
    do
        status = posix_fallocate(fd, 0, (off_t)size);
    while (status == EINTR);
    if (status == EOPNOTSUPP || status == EINVAL)
        status = ftruncate(fd, (off_t)size) ? errno : 0;
    return status;
}

/* The memory of a new array: its temporary file, or plain memory if it has none. 0 or an errno. */
static int map_output(struct npy *npy, size_t size)
{
    if (!npy->target.temporary)
        return map_memory(size, &npy->bytes) ? 0 : errno;
    const int status = reserve(npy->target.fd, size);
    if (status)
        return status;
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, npy->target.fd, 0);
    if (data == MAP_FAILED)
        return errno;
    npy->bytes = (struct file_bytes){data, size, true};
    return 0;
}

int npy_create(const char *path, DLDataType dtype, int ndim, const int64_t *shape, struct npy *out, char *error,
               size_t error_size)
{
    char header[HEADER_MAX], text[SHAPE_TEXT];
    size_t data_bytes = 0;
    *out = (struct npy){.target.fd = -1};
    if (ndim < 0 || ndim > NPY_MAX_RANK)
        return file_fail(error, error_size, "%s: rank %d, but .npy holds 0 to %d", path, ndim, NPY_MAX_RANK);
    file_shape_text(text, sizeof text, ndim, shape);
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 0)
            return file_fail(error, error_size, "%s: shape %s has a negative length", path, text);
    const size_t offset = format_header(header, dtype, ndim, shape);
    if (offset == 0)
        return file_fail(error, error_size, "%s: .npy has no name for the type with DLPack code %d, %d bits, %d lanes",
                         path, dtype.code, dtype.bits, dtype.lanes);
    if (lay_out(ndim, shape, false, dtype.bits / 8, out->strides, &data_bytes) || data_bytes > PTRDIFF_MAX - offset)
        return file_fail(error, error_size, "%s: shape %s is too large to count its bytes", path, text);
    if (file_out_open(path, &out->target, error, error_size))
        return 1;
    const int status = map_output(out, offset + data_bytes);
    if (status) {
        file_fail(error, error_size, "%s: no room for %zu bytes (shape %s): %s", path, offset + data_bytes, text,
                  strerror(status));
        npy_close(out);
        return 1;
    }
    memcpy(out->bytes.data, header, offset);
    if (ndim > 0)
        memcpy(out->shape, shape, (size_t)ndim * sizeof *shape);
    set_tensor(out, dtype, ndim);
    out->tensor.data = out->bytes.data + offset;
    return 0;
}

int npy_commit(struct npy *npy, char *error, size_t error_size)
{
    assert(npy->target.path && npy->bytes.data);
    if (!npy->target.temporary && file_out_write(&npy->target, npy->bytes.data, npy->bytes.size, error, error_size)) {
        file_out_discard(&npy->target);
        return 1;
    }
    return file_out_commit(&npy->target, error, error_size);
}

void npy_discard(struct npy *npy)
{
    npy_close(npy);
}

void npy_close(struct npy *npy)
{
    file_release(&npy->bytes);
    file_out_discard(&npy->target);
    *npy = (struct npy){.target.fd = -1};
}
