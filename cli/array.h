/* Arrays in files, whatever their format: .npy (npy.h) and pictures (picture.h); and the file verbs both share.
 * Every function that returns int returns 0, or 1 with a sentence in error. */
#ifndef MF_CLI_ARRAY_H
#define MF_CLI_ARRAY_H

#include <dlpack/dlpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct npy;
struct picture;

/* An open array; one of the formats is not NULL. All zero is a closed one. */
struct array {
    DLTensor *tensor;
    struct npy *npy;
    struct picture *picture;
};

/* Opens for reading; the format is told by the file's first bytes, not by its name. */
int array_open(const char *path, struct array *out, char *error, size_t error_size);

/* Makes an array of zeros to be filled: a PNG if path ends in .png, else .npy. Nothing is at path before the commit. */
int array_create(const char *path, DLDataType dtype, int ndim, const int64_t *shape, struct array *out, char *error,
                 size_t error_size);

/* Puts the created file in place. The tensor stays valid until array_close, which is needed on failure too. */
int array_commit(struct array *array, char *error, size_t error_size);

/* Gives up a created file; like array_close. */
void array_discard(struct array *array);

/* Frees everything; a created file not committed is discarded. Fine on a closed struct. */
void array_close(struct array *array);

/* ---- What the formats share ---- */

/* The bytes of a file: mapped (read-only if it is an input) or from malloc. All zero is an empty value. */
struct file_bytes {
    unsigned char *data;
    size_t size;
    bool mapped;
};

/* Maps a regular file; reads anything else ("-" and /dev/stdin are the standard input) into memory. */
int file_read(const char *path, struct file_bytes *out, char *error, size_t error_size);
void file_release(struct file_bytes *bytes);

/* An output that appears whole or not at all: bytes go to path.tmp.PID, which is renamed at the end. A path that is
 * no regular file ("-" and /dev/stdout are the standard output) has no temporary and is written directly. */
struct file_out {
    char *path; /* NULL: nothing is open */
    char *temporary;
    int fd;
};

int file_out_open(const char *path, struct file_out *out, char *error, size_t error_size);
int file_out_write(struct file_out *out, const void *bytes, size_t size, char *error, size_t error_size);
/* Closes and renames; on failure the temporary is removed. */
int file_out_commit(struct file_out *out, char *error, size_t error_size);
void file_out_discard(struct file_out *out); /* does nothing after a commit */

/* The name of an input path in messages. */
const char *file_in_name(const char *path);
/* Puts the sentence into error; returns 1. */
int file_fail(char *error, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* "10 x 100", or "()" for rank 0; returns text. */
char *file_shape_text(char *text, size_t text_size, int ndim, const int64_t *shape);

#endif
