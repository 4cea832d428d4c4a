/* Pictures as DLPack tensors of u8, row by row: height x width x channels. PNG and JPEG are read, PNG is written,
 * through stb_image and stb_image_write (package libstb-dev).
 *
 * Read, the tensor always has three axes; the channels are 1 (gray), 2 (gray, alpha), 3 (red, green, blue) or
 * 4 (with alpha). Palettes and 1, 2 and 4 bit samples are expanded; CMYK JPEG becomes RGB. 16-bit PNG is an error,
 * since its low bits would be lost. stb checks no checksums, and fills the missing part of a cut JPEG.
 *
 * Written are u8 tensors of height x width (gray) or height x width x 1 to 4 channels.
 *
 * Every function here returns 0, or 1 with a sentence in error. */
#ifndef MF_CLI_PICTURE_H
#define MF_CLI_PICTURE_H

#include "array.h"

/* stb counts in int; within these limits no product of its own overflows. */
enum { PICTURE_READ_MAX_PIXELS = 1 << 28, PICTURE_WRITE_MAX_BYTES = 1 << 29 };

/* An open picture. tensor points into this struct, so it must not be copied or moved. */
struct picture {
    DLTensor tensor;
    int64_t shape[3];
    int64_t strides[3];
    unsigned char *pixels;
    struct file_out target; /* of picture_create */
};

int picture_open(const char *path, struct picture *out, char *error, size_t error_size);

/* The same from bytes already read. Takes them over, on failure too. */
int picture_open_bytes(const char *path, struct file_bytes *bytes, struct picture *out, char *error, size_t error_size);

/* Makes a black picture to be filled; nothing is seen at path before picture_commit. dtype must be u8. */
int picture_create(const char *path, DLDataType dtype, int ndim, const int64_t *shape, struct picture *out, char *error,
                   size_t error_size);

/* Encodes as PNG and puts the file in place. The tensor stays valid until picture_close, needed on failure too. */
int picture_commit(struct picture *picture, char *error, size_t error_size);

/* Gives up a created picture; like picture_close. */
void picture_discard(struct picture *picture);

/* Frees everything; a created picture not committed is discarded. Fine on a closed or zeroed struct. */
void picture_close(struct picture *picture);

#endif
