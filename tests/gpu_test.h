/* What tests of GPUs set before a driver or compiler is loaded: folders of their own, and quick compilation by PoCL. */
#ifndef MF_TESTS_GPU_TEST_H
#define MF_TESTS_GPU_TEST_H

#include "check.h"

#include <sys/stat.h>

/* cache: MODEFOLD_CACHE for this test. */
__attribute__((unused)) static void gpu_test_environment(const char *cache)
{
    mkdir("pocl-cache", 0700); /* PoCL's own, not the user's */
    setenv("POCL_CACHE_DIR", "pocl-cache", 0);
    setenv("MODEFOLD_OPENCL_OPTIONS", "-cl-opt-disable", 0); /* 0.5 s a kernel instead of 2 to 6 s */
    setenv("MODEFOLD_CACHE", cache, 1);
    unsetenv("MODEFOLD_SOLVER");
}

/* A file of the sources: below MODEFOLD_SOURCE, for programs that were carried to another machine. */
__attribute__((unused)) static const char *source_file(const char *name)
{
    static char path[1024];
    const char *root = getenv("MODEFOLD_SOURCE");
    snprintf(path, sizeof path, "%s/%s", root && *root ? root : MODEFOLD_SOURCE_DIR, name);
    return path;
}

#endif
