/* PNG and JPEG by stb. Its two headers are compiled here, cut down to what is used, rather than linked from
 * libstb: the formats that nobody asked for cannot be reached, and the reasons of failures read as sentences. */
#include "picture.h"

#include "../src/types.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define STB_IMAGE_IMPLEMENTATION
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_NO_STDIO
#define STBI_FAILURE_USERMSG
/* stb 2.27 (Debian 12, Ubuntu 22.04) decodes with Huffman tables that the JPEG never defined: let them be zeros. */
#define STBI_MALLOC(size) calloc(1, size)
#define STBI_REALLOC(old, size) realloc(old, size)
#define STBI_FREE(old) free(old)
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>

enum { SHAPE_TEXT = 32 * 22 };

static void set_tensor(struct picture *picture, int ndim, const int64_t *shape)
{
    assert(ndim == 2 || ndim == 3);
    int64_t product = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        picture->shape[d] = shape[d];
        picture->strides[d] = product;
        product *= shape[d];
    }
    picture->tensor = (DLTensor){.data = picture->pixels,
                                 .device = {kDLCPU, 0},
                                 .ndim = ndim,
                                 .dtype = {MF_DL_UINT, 8, 1},
                                 .shape = picture->shape,
                                 .strides = picture->strides};
}

/* Whether a DHT segment's tables have at most 256 codes each. Table: one byte, 16 counts, then as many values. */
static bool huffman_is_safe(const unsigned char *at, size_t size)
{
    while (size >= 17) {
        size_t codes = 0;
        for (int i = 1; i <= 16; i++)
            codes += at[i];
        if (codes > 256 || 17 + codes > size)
            return false;
        at += 17 + codes;
        size -= 17 + codes;
    }
    return size == 0;
}

/* Whether each component's sampling factors divide the largest of all. Frame: six bytes, then three a component. */
static bool frame_is_safe(const unsigned char *at, size_t size)
{
    int h_max = 1, v_max = 1;
    if (size < 6 || size != 6 + 3 * (size_t)at[5])
        return false;
    for (size_t i = 7; i < size; i += 3) {
        h_max = at[i] >> 4 > h_max ? at[i] >> 4 : h_max;
        v_max = (at[i] & 15) > v_max ? at[i] & 15 : v_max;
    }
    for (size_t i = 7; i < size; i += 3)
        if (at[i] >> 4 == 0 || (at[i] & 15) == 0 || h_max % (at[i] >> 4) != 0 || v_max % (at[i] & 15) != 0)
            return false;
    return true;
}

/* Walks a JPEG's segments for what stb 2.27 writes out of bounds on (stb issues 1289 and 1178, mended in 2.28). */
static bool jpeg_is_safe(const unsigned char *bytes, size_t size)
{
    if (size < 2 || bytes[0] != 0xff || bytes[1] != 0xd8)
        return true; /* not a JPEG */
    for (size_t at = 2; at + 4 <= size; at++) {
        const unsigned char marker = bytes[at + 1];
        if (bytes[at] != 0xff || marker == 0 || marker == 0xff || (marker >= 0xd0 && marker <= 0xd9))
            continue; /* entropy-coded data, fill bytes, or a marker without a segment */
        const size_t length = (size_t)bytes[at + 2] << 8 | bytes[at + 3];
        const bool huffman = marker == 0xc4, frame = marker >= 0xc0 && marker <= 0xc2;
        if (length < 2 || length > size - at - 2)
            return !huffman && !frame; /* malformed or cut: stb stops here too, but after using what there is */
        const unsigned char *segment = bytes + at + 4;
        if ((huffman && !huffman_is_safe(segment, length - 2)) || (frame && !frame_is_safe(segment, length - 2)))
            return false;
        at += 1 + length;
    }
    return true;
}

/* Decodes into picture->pixels. */
static int decode(const char *name, const struct file_bytes *bytes, struct picture *out, char *error, size_t error_size)
{
    int width, height, channels;
    if (bytes->size > INT_MAX)
        return file_fail(error, error_size, "%s: the picture file has %zu bytes, but at most %d are read", name,
                         bytes->size, INT_MAX);
    const int size = (int)bytes->size;
    if (!jpeg_is_safe(bytes->data, bytes->size))
        return file_fail(error, error_size, "%s: the JPEG has a cut or malformed Huffman table or frame header", name);
    if (stbi_is_16_bit_from_memory(bytes->data, size))
        return file_fail(error, error_size, "%s: the PNG has 16 bits a sample, but only 8 are read", name);
    /* Where this first look fails, loading fails as well and knows the better reason. */
    if (stbi_info_from_memory(bytes->data, size, &width, &height, &channels) &&
        (int64_t)width * height > PICTURE_READ_MAX_PIXELS)
        return file_fail(error, error_size, "%s: the picture is %d x %d, but at most %d pixels are read", name, height,
                         width, PICTURE_READ_MAX_PIXELS);
    out->pixels = stbi_load_from_memory(bytes->data, size, &width, &height, &channels, 0);
    if (!out->pixels)
        return file_fail(error, error_size, "%s: the picture cannot be decoded: %s", name, stbi_failure_reason());
    set_tensor(out, 3, (const int64_t[]){height, width, channels});
    return 0;
}

int picture_open_bytes(const char *path, struct file_bytes *bytes, struct picture *out, char *error, size_t error_size)
{
    *out = (struct picture){.target.fd = -1};
    const int status = decode(file_in_name(path), bytes, out, error, error_size);
    file_release(bytes);
    return status;
}

int picture_open(const char *path, struct picture *out, char *error, size_t error_size)
{
    struct file_bytes bytes;
    *out = (struct picture){.target.fd = -1};
    return file_read(path, &bytes, error, error_size) || picture_open_bytes(path, &bytes, out, error, error_size);
}

int picture_create(const char *path, DLDataType dtype, int ndim, const int64_t *shape, struct picture *out, char *error,
                   size_t error_size)
{
    char text[SHAPE_TEXT];
    *out = (struct picture){.target.fd = -1};
    if (dtype.code != MF_DL_UINT || dtype.bits != 8 || dtype.lanes != 1)
        return file_fail(error, error_size, "%s: a PNG holds u8, not the type with DLPack code %d and %d bits", path,
                         dtype.code, dtype.bits);
    file_shape_text(text, sizeof text, ndim, shape);
    if (ndim < 2 || ndim > 3 || shape[0] < 1 || shape[1] < 1 || (ndim == 3 && (shape[2] < 1 || shape[2] > 4)))
        return file_fail(error, error_size,
                         "%s: a PNG holds height x width x 1 to 4 channels, or height x width, "
                         "but the shape is %s",
                         path, text);
    int64_t bytes = ndim == 3 ? shape[2] : 1;
    if (__builtin_mul_overflow(bytes, shape[0], &bytes) || __builtin_mul_overflow(bytes, shape[1], &bytes) ||
        bytes > PICTURE_WRITE_MAX_BYTES)
        return file_fail(error, error_size,
                         "%s: the shape is %s, but PNG files of at most %d bytes of pixels are "
                         "written",
                         path, text, PICTURE_WRITE_MAX_BYTES);
    out->pixels = calloc((size_t)bytes, 1);
    if (!out->pixels)
        return file_fail(error, error_size, "%s: no memory for %lld bytes of pixels", path, (long long)bytes);
    set_tensor(out, ndim, shape);
    if (!file_out_open(path, &out->target, error, error_size))
        return 0;
    picture_close(out);
    return 1;
}

/* What stb's callback needs to write. */
struct sink {
    struct file_out *target;
    char *error;
    size_t error_size;
    int status;
};

static void write_bytes(void *context, void *bytes, int size)
{
    struct sink *sink = context;
    if (!sink->status)
        sink->status = file_out_write(sink->target, bytes, (size_t)size, sink->error, sink->error_size);
}

int picture_commit(struct picture *picture, char *error, size_t error_size)
{
    assert(picture->pixels && picture->target.path);
    struct sink sink = {&picture->target, error, error_size, 0};
    const int height = (int)picture->shape[0], width = (int)picture->shape[1];
    const int channels = picture->tensor.ndim == 3 ? (int)picture->shape[2] : 1;
    const int stride = width * channels;
    if (!stbi_write_png_to_func(write_bytes, &sink, width, height, channels, picture->pixels, stride))
        sink.status = file_fail(error, error_size, "%s: no memory to encode the picture", picture->target.path);
    if (!sink.status)
        return file_out_commit(&picture->target, error, error_size);
    file_out_discard(&picture->target);
    return 1;
}

void picture_discard(struct picture *picture)
{
    picture_close(picture);
}

void picture_close(struct picture *picture)
{
    free(picture->pixels); /* stb allocates with malloc */
    file_out_discard(&picture->target);
    *picture = (struct picture){.target.fd = -1};
}
