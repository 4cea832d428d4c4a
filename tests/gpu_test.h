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
    /* Without its optimiser PoCL takes 0.3 s for a kernel instead of 2 to 6 s, and 0.2 s without its header of all
     * built-in functions: prelude.cl declares those that our kernels call. */
    setenv("MODEFOLD_OPENCL_OPTIONS", "-cl-opt-disable", 0);
    setenv("POCL_EXTRA_BUILD_FLAGS", "-D_OPENCL_H_=1 -DDECLARE_BUILTINS=1", 0);
    setenv("MODEFOLD_CACHE", cache, 1);
    unsetenv("MODEFOLD_SOLVER");
}

/* From here on what sm:N compiles is kept in the folder MODEFOLD_TEST_KERNELS, if there is one, for tests of another
 * build: they find it if their text is the same to the last character. PoCL's kernels are not, for it has a cache of
 * its own and takes longer to make a binary than a kernel. */
__attribute__((unused)) static void gpu_test_keep_compiled(int keep)
{
    const char *folder = getenv("MODEFOLD_TEST_KERNELS");
    setenv("MODEFOLD_CACHE", keep && folder && *folder ? folder : "off", 1);
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
