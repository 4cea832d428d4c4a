/* Compiled kernels on disk, one file each, named after a hash of what compiled and what was compiled.
 *
 * A file is written under a name of its own and renamed, so readers see whole entries only and the last of several
 * writers wins; there are no locks. A reader compares the whole key and a checksum: an entry that was cut off, damaged,
 * or whose hash is another key's by chance, is as good as none, and is replaced by the next keep. */
#include "gpu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "mfkern1";
enum { MAX_PATH = 4096 };

/* What an entry begins with. Compiler, text and binary follow, without zeros between them. */
struct entry {
    char magic[8];
    uint64_t compiler_size, text_size, binary_size;
    uint64_t checksum; /* of what stands before it and all that follows */
};

/* ---- FNV-1a, 128 bits: http://www.isthe.com/chongo/tech/comp/fnv ---- */

typedef unsigned __int128 hash128;
#define FNV_BASIS ((hash128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d)

static hash128 fnv(hash128 hash, const void *data, size_t size)
{
    const hash128 prime = (hash128)1 << 88 | 0x13b;
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * prime;
    return hash;
}

static uint64_t folded(hash128 hash)
{
    return (uint64_t)(hash >> 64) ^ (uint64_t)hash;
}

static hash128 hash_head(const struct entry *entry)
{
    return fnv(FNV_BASIS, entry, offsetof(struct entry, checksum));
}

/* ---- Where entries are ---- */

int mf_cache_folder(char *path, size_t size)
{
    const char *own = getenv("MODEFOLD_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n;
    if (own)
        n = !*own || !strcmp(own, "off") ? -1 : snprintf(path, size, "%s", own);
    else if (cache && *cache == '/') /* the XDG specification ignores relative paths */
        n = snprintf(path, size, "%s/modefold", cache);
    else
        n = home && *home ? snprintf(path, size, "%s/.cache/modefold", home) : -1;
    return n > 0 && (size_t)n < size;
}

int mf_cache_is_on(void)
{
    char folder[MAX_PATH];
    return mf_cache_folder(folder, sizeof folder);
}

/* The path of an entry; 0 when there is to be none. */
static int entry_path(const char *compiler, const char *text, char *path, size_t size)
{
    char folder[MAX_PATH];
    if (!mf_cache_folder(folder, sizeof folder))
        return 0;
    /* with the zero at its end, so that no end of the one can be a start of the other */
    hash128 hash = fnv(FNV_BASIS, compiler, strlen(compiler) + 1);
    hash = fnv(hash, text, strlen(text));
    int n =
        snprintf(path, size, "%s/%016llx%016llx", folder, (unsigned long long)(hash >> 64), (unsigned long long)hash);
    return n > 0 && (size_t)n < size;
}

/* Makes the folders that path lies in, as far as they are missing; others do not see what a user compiles. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        mkdir(path, 0700); /* where that fails, open will */
        *slash = '/';
    }
}

/* ---- Reading ---- */

/* Size bytes of a file from its beginning; 0 when they cannot be had. */
static int read_all(int file, char *data, size_t size)
{
    while (size) {
        ssize_t n = read(file, data, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        data += n;
        size -= (size_t)n;
    }
    return 1;
}

/* A whole regular file, from mf_alloc; null when there is none. */
static char *read_file(const char *path, size_t *size)
{
    struct stat about;
    char *data = NULL;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NULL;
    if (!fstat(file, &about) && S_ISREG(about.st_mode) && about.st_size >= (off_t)sizeof(struct entry)) {
        *size = (size_t)about.st_size;
        data = mf_alloc(*size);
    }
    if (data && !read_all(file, data, *size)) {
        mf_free(data);
        data = NULL;
    }
    close(file);
    return data;
}

/* Whether these bytes are the whole entry of this key. */
static int is_entry(const char *data, size_t size, const char *compiler, const char *text, struct entry *entry)
{
    size_t compiler_size = strlen(compiler), text_size = strlen(text);
    const char *body = data + sizeof *entry;
    memcpy(entry, data, sizeof *entry);
    size -= sizeof *entry;
    return !memcmp(entry->magic, magic, sizeof magic) && entry->compiler_size == compiler_size &&
           entry->text_size == text_size && size >= compiler_size && size - compiler_size >= text_size &&
           entry->binary_size == size - compiler_size - text_size && !memcmp(body, compiler, compiler_size) &&
           !memcmp(body + compiler_size, text, text_size) &&
           entry->checksum == folded(fnv(hash_head(entry), body, size));
}

int mf_cache_find(const char *compiler, const char *text, char **binary, size_t *size)
{
    char path[MAX_PATH + 64];
    struct entry entry;
    size_t file_size = 0;
    if (!entry_path(compiler, text, path, sizeof path))
        return 0;
    char *data = read_file(path, &file_size);
    if (!data)
        return 0;
    if (!is_entry(data, file_size, compiler, text, &entry)) {
        mf_free(data);
        return 0;
    }
    *size = (size_t)entry.binary_size;
    memmove(data, data + (file_size - *size), *size); /* the binary is an entry's end */
    *binary = data;
    return 1;
}

/* ---- Writing ---- */

static int write_all(int file, const void *data, size_t size)
{
    const char *bytes = data;
    while (size) {
        ssize_t n = write(file, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        bytes += n;
        size -= (size_t)n;
    }
    return 1;
}

void mf_cache_keep(const char *compiler, const char *text, const char *binary, size_t size)
{
    static int counter; /* no two threads of this process write the same file */
    char path[MAX_PATH + 64], temporary[MAX_PATH + 128];
    if (!entry_path(compiler, text, path, sizeof path))
        return;
    make_folders(path);
    snprintf(temporary, sizeof temporary, "%s.tmp.%ld.%d", path, (long)getpid(),
             __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED));
    int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    struct entry entry = {.compiler_size = strlen(compiler), .text_size = strlen(text), .binary_size = size};
    memcpy(entry.magic, magic, sizeof magic);
    hash128 hash = fnv(hash_head(&entry), compiler, (size_t)entry.compiler_size);
    hash = fnv(hash, text, (size_t)entry.text_size);
    entry.checksum = folded(fnv(hash, binary, size));
    int whole = write_all(file, &entry, sizeof entry) && write_all(file, compiler, (size_t)entry.compiler_size) &&
                write_all(file, text, (size_t)entry.text_size) && write_all(file, binary, size);
    if (close(file))
        whole = 0;
    if (!whole || rename(temporary, path))
        unlink(temporary);
}
