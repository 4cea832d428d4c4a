/* The files of a kernel cache of a test's own. */
#ifndef MF_TESTS_CACHE_FOLDER_H
#define MF_TESTS_CACHE_FOLDER_H

#include "check.h"

#include <dirent.h>
#include <unistd.h>

static char entry_name[600]; /* of the last entry that count_entries saw */

__attribute__((unused)) static int count_entries(const char *folder)
{
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *file = dir ? readdir(dir) : NULL; file; file = readdir(dir)) {
        if (file->d_name[0] == '.')
            continue;
        snprintf(entry_name, sizeof entry_name, "%.300s/%.255s", folder, file->d_name);
        count++;
    }
    if (dir)
        closedir(dir);
    return count;
}

/* A fresh cache of this name. */
__attribute__((unused)) static void use_cache(const char *folder)
{
    while (count_entries(folder) && !unlink(entry_name))
        ;
    rmdir(folder);
    setenv("MODEFOLD_CACHE", folder, 1);
}

__attribute__((unused)) static long read_entry(char *data, size_t size)
{
    FILE *file = fopen(entry_name, "rb");
    long n = file ? (long)fread(data, 1, size, file) : -1;
    if (file)
        fclose(file);
    return n;
}

__attribute__((unused)) static void write_entry(const char *data, long size)
{
    FILE *file = fopen(entry_name, "wb");
    if (!CHECK(file != NULL))
        return;
    CHECK(fwrite(data, 1, (size_t)size, file) == (size_t)size);
    fclose(file);
}

#endif
