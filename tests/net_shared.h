/* Where the real networks and what they should compute lie: MODEFOLD_SHARED, or ../shared beside the source tree. They
 * are no part of the project; tests that want them skip without them. */
#ifndef MF_TESTS_NET_SHARED_H
#define MF_TESTS_NET_SHARED_H

#include <stdint.h>
#include <sys/stat.h>

#include <modefold_net.h>

#include "check.h"

__attribute__((unused)) static const char *shared_path(const char *name)
{
    static char path[4][1024];
    static int turn;
    const char *folder = getenv("MODEFOLD_SHARED");
    turn = (turn + 1) % 4;
    if (folder && *folder)
        snprintf(path[turn], sizeof path[0], "%s/data/yolo/%s", folder, name);
    else
        snprintf(path[turn], sizeof path[0], "%s/../shared/data/yolo/%s", MODEFOLD_SOURCE_DIR, name);
    return path[turn];
}

__attribute__((unused)) static int shared_exists(const char *name)
{
    struct stat st;
    return stat(shared_path(name), &st) == 0;
}

/* A file of floats; null where it has not `count` of them. */
__attribute__((unused)) static float *shared_floats(const char *name, int64_t count)
{
    float *values = malloc((size_t)(count + 1) * sizeof *values);
    FILE *file = fopen(shared_path(name), "rb");
    size_t read = file && values ? fread(values, sizeof *values, (size_t)count + 1, file) : 0;
    if (file)
        fclose(file);
    if (read == (size_t)count)
        return values;
    free(values);
    return NULL;
}

#endif
