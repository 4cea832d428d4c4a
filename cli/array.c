/* Opening and creating an array file of either format; whole files in, whole files out. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "array.h"

#include "npy.h"
#include "picture.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* How files begin that users may well pass. The first three are read, the others named in the error. */
static const struct {
    size_t size;
    const char *magic, *name;
} magics[] = {
    {6, "\x93NUMPY", "a .npy file"},
    {8, "\x89PNG\r\n\x1a\n", "a PNG picture"},
    {3, "\xff\xd8\xff", "a JPEG picture"},
    {4, "PK\3\4", "a zip archive (if it is an .npz, unpack it and pass one of its .npy files)"},
    {8, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {4, "GIF8", "a GIF picture"},
    {4, "RIFF", "a RIFF file (WebP, WAV or AVI)"},
    {2, "BM", "a BMP picture"},
    {4, "II*\0", "a TIFF picture"},
    {4, "MM\0*", "a TIFF picture"},
    {2, "\x1f\x8b", "gzip data (decompress it first)"},
    {4, "\x28\xb5\x2f\xfd", "Zstandard data (decompress it first)"},
    {6,
     "\xfd"
     "7zXZ\0",
     "xz data (decompress it first)"},
    {5, "%PDF-", "a PDF document"},
    {2, "\x80\x04", "a Python pickle"},
};
enum { MAGICS = sizeof magics / sizeof magics[0], READABLE = 3 };

/* Says what a file that cannot be read is. */
static int refuse(const char *path, const struct file_bytes *bytes, const char *found, char *error, size_t error_size)
{
    char start[64] = "empty";
    if (!found && bytes->size > 0) {
        size_t used = (size_t)snprintf(start, sizeof start, "unknown: it begins with the bytes");
        for (size_t i = 0; i < 8 && i < bytes->size; i++)
            used += (size_t)snprintf(start + used, sizeof start - used, " %02x", bytes->data[i]);
    }
    return file_fail(error, error_size, "%s: .npy, PNG and JPEG files are read, but this one is %s", file_in_name(path),
                     found ? found : start);
}

int array_open(const char *path, struct array *out, char *error, size_t error_size)
{
    struct file_bytes bytes;
    *out = (struct array){0};
    if (file_read(path, &bytes, error, error_size))
        return 1;
    int which = 0, status;
    while (which < MAGICS &&
           (bytes.size < magics[which].size || memcmp(bytes.data, magics[which].magic, magics[which].size) != 0))
        which++;
    if (which >= READABLE) {
        status = refuse(path, &bytes, which < MAGICS ? magics[which].name : NULL, error, error_size);
    } else if (which == 0 && (out->npy = calloc(1, sizeof *out->npy))) {
        out->tensor = &out->npy->tensor;
        status = npy_open_bytes(path, &bytes, out->npy, error, error_size);
    } else if (which > 0 && (out->picture = calloc(1, sizeof *out->picture))) {
        out->tensor = &out->picture->tensor;
        status = picture_open_bytes(path, &bytes, out->picture, error, error_size);
    } else {
        status = file_fail(error, error_size, "%s: no memory", file_in_name(path));
    }
    file_release(&bytes);
    if (status)
        array_close(out);
    return status;
}

static bool ends_in(const char *path, const char *extension)
{
    const size_t length = strlen(path), tail = strlen(extension);
    return length > tail && strcasecmp(path + length - tail, extension) == 0;
}

int array_create(const char *path, DLDataType dtype, int ndim, const int64_t *shape, struct array *out, char *error,
                 size_t error_size)
{
    int status;
    *out = (struct array){0};
    if (ends_in(path, ".jpg") || ends_in(path, ".jpeg"))
        return file_fail(error, error_size, "%s: .npy and .png files are written, JPEG is only read", path);
    if (ends_in(path, ".png") && (out->picture = calloc(1, sizeof *out->picture))) {
        out->tensor = &out->picture->tensor;
        status = picture_create(path, dtype, ndim, shape, out->picture, error, error_size);
    } else if (!ends_in(path, ".png") && (out->npy = calloc(1, sizeof *out->npy))) {
        out->tensor = &out->npy->tensor;
        status = npy_create(path, dtype, ndim, shape, out->npy, error, error_size);
    } else {
        status = file_fail(error, error_size, "%s: no memory", path);
    }
    if (status)
        array_close(out);
    return status;
}

int array_commit(struct array *array, char *error, size_t error_size)
{
    assert(array->npy || array->picture);
    return array->npy ? npy_commit(array->npy, error, error_size) : picture_commit(array->picture, error, error_size);
}

void array_discard(struct array *array)
{
    array_close(array);
}

void array_close(struct array *array)
{
    if (array->npy)
        npy_close(array->npy);
    if (array->picture)
        picture_close(array->picture);
    free(array->npy);
    free(array->picture);
    *array = (struct array){0};
}

/* ---- What the formats share ---- */

int file_fail(char *error, size_t error_size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, error_size, format, args);
    va_end(args);
    return 1;
}

char *file_shape_text(char *text, size_t text_size, int ndim, const int64_t *shape)
{
    size_t used = 0;
    snprintf(text, text_size, "()");
    for (int d = 0; d < ndim && used < text_size; d++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%lld", d > 0 ? " x " : "", (long long)shape[d]);
    return text;
}

const char *file_in_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard input" : path;
}

static int read_all(int fd, struct file_bytes *out)
{
    size_t capacity = 0;
    for (;;) {
        if (out->size == capacity) {
            capacity = capacity ? 2 * capacity : 65536;
            unsigned char *grown = capacity < PTRDIFF_MAX ? realloc(out->data, capacity) : NULL;
            if (!grown) {
                errno = ENOMEM;
                return 1;
            }
            out->data = grown;
        }
        const ssize_t got = read(fd, out->data + out->size, capacity - out->size);
        if (got == 0)
            return 0;
        if (got < 0 && errno != EINTR)
            return 1;
        out->size += got > 0 ? (size_t)got : 0;
    }
}

/* Maps fd's whole file, or fails in silence (then it is read instead). */
static bool map_file(int fd, struct file_bytes *out)
{
    struct stat info;
    if (fstat(fd, &info) || !S_ISREG(info.st_mode) || info.st_size <= 0 || (uintmax_t)info.st_size > PTRDIFF_MAX)
        return false;
    void *data = mmap(NULL, (size_t)info.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return false;
    *out = (struct file_bytes){data, (size_t)info.st_size, true};
    return true;
}

int file_read(const char *path, struct file_bytes *out, char *error, size_t error_size)
{
    const bool standard = strcmp(path, "-") == 0;
    *out = (struct file_bytes){0};
    const int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return file_fail(error, error_size, "%s: cannot be opened: %s", path, strerror(errno));
    int status = 0;
    /* The standard input may already be part read, so it is not mapped. */
    if ((standard || !map_file(fd, out)) && read_all(fd, out)) {
        status = file_fail(error, error_size, "%s: cannot be read: %s", file_in_name(path), strerror(errno));
        file_release(out);
    }
    if (!standard)
        close(fd);
    return status;
}

void file_release(struct file_bytes *bytes)
{
    if (bytes->mapped)
        munmap(bytes->data, bytes->size);
    else
        free(bytes->data);
    *bytes = (struct file_bytes){0};
}

/* Opens path.tmp.PID beside the file that path leads to. */
static int open_temporary(const char *path, bool exists, struct file_out *out)
{
    out->path = exists ? realpath(path, NULL) : strdup(path);
    if (!out->path)
        return 1;
    const size_t size = strlen(out->path) + 32;
    out->temporary = malloc(size);
    if (!out->temporary)
        return 1;
    snprintf(out->temporary, size, "%s.tmp.%ld", out->path, (long)getpid());
    out->fd = open(out->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out->fd >= 0)
        return 0;
    free(out->temporary); /* not ours to remove */
    out->temporary = NULL;
    return 1;
}

int file_out_open(const char *path, struct file_out *out, char *error, size_t error_size)
{
    struct stat info;
    *out = (struct file_out){.fd = -1};
    if (strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0) {
        out->path = strdup("standard output");
        out->fd = out->path ? STDOUT_FILENO : -1;
    } else {
        const bool exists = stat(path, &info) == 0;
        if (!exists || S_ISREG(info.st_mode)) {
            open_temporary(path, exists, out);
        } else {
            out->path = strdup(path);
            out->fd = out->path ? open(path, O_WRONLY | O_CLOEXEC) : -1;
        }
    }
    if (out->fd >= 0)
        return 0;
    file_fail(error, error_size, "%s: cannot be created: %s", path, strerror(errno));
    file_out_discard(out);
    return 1;
}

int file_out_write(struct file_out *out, const void *bytes, size_t size, char *error, size_t error_size)
{
    const unsigned char *at = bytes;
    while (size > 0) {
        const ssize_t done = write(out->fd, at, size);
        if (done < 0 && errno != EINTR)
            return file_fail(error, error_size, "%s: cannot be written: %s", out->path, strerror(errno));
        at += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    return 0;
}

int file_out_commit(struct file_out *out, char *error, size_t error_size)
{
    int status = 0;
    if (out->fd != STDOUT_FILENO && close(out->fd))
        status = file_fail(error, error_size, "%s: cannot be written: %s", out->path, strerror(errno));
    out->fd = -1;
    if (!status && out->temporary) {
        if (rename(out->temporary, out->path))
            status = file_fail(error, error_size, "%s: cannot be renamed to %s: %s", out->temporary, out->path,
                               strerror(errno));
        else
            out->temporary[0] = 0;
    }
    file_out_discard(out);
    return status;
}

void file_out_discard(struct file_out *out)
{
    if (!out->path)
        return;
    if (out->fd >= 0 && out->fd != STDOUT_FILENO)
        close(out->fd);
    if (out->temporary && out->temporary[0])
        unlink(out->temporary);
    free(out->temporary);
    free(out->path);
    *out = (struct file_out){.fd = -1};
}
