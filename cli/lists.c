/* The library's tables, read where they are written. */
#include "lists.h"

#include <string.h>

#include "gpu/launch.h" /* src/ */

int list_type_count(void)
{
    return DT_COUNT;
}

DLDataType list_type(int number)
{
    return (DLDataType){mf_dtypes[number].code, mf_dtypes[number].bits, 1};
}

int list_type_named(const char *name, DLDataType *dtype)
{
    int found = mf_dtype_named(name, strlen(name));
    if (found < 0)
        return 0;
    *dtype = list_type(found);
    return 1;
}

static const struct solver *const *solvers_of(int kind)
{
    return kind == kDLCPU ? mf_solvers : mf_gpu_solvers;
}

const char *list_solver(int kind, int number)
{
    const struct solver *const *table = solvers_of(kind);
    return table[number] ? table[number]->name : NULL;
}

const char *list_solver_what(int kind, int number)
{
    const struct solver *const *table = solvers_of(kind);
    return table[number] ? table[number]->what : NULL;
}

const char *list_solver_by_name(int kind, int number)
{
    const struct solver *const *table = kind == kDLCPU ? mf_solvers_by_name : mf_gpu_solvers_by_name;
    return table[number] ? table[number]->name : NULL;
}

int list_is_solver(const char *listed, const char *asked)
{
    return mf_solver_is_named(listed, asked);
}

const char *list_reducer(int number)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "mean",  "var",    "std",    "norm",     "any",
                                        "all", "and",  "or",  "xor", "count", "argmin", "argmax", "logsumexp"};
    return number < (int)(sizeof names / sizeof names[0]) ? names[number] : NULL;
}

const char *list_cuda_compiler(void)
{
    static char text[256];
    mf_nvrtc_version(text, sizeof text);
    return text;
}

int list_kernel_folder(char *path, size_t size)
{
    return mf_cache_folder(path, size);
}

int list_kernel_count(const mf_device *device)
{
    return mf_gpu_kernel_count(device);
}

/* Operators stand as they are written. */
const char *list_map(int number)
{
    static const char *const names[] = {
        "+",     "-",        "*",     "/",        "//",    "%",    "**",    "^",     "<",       "<=",
        ">",     ">=",       "==",    "!=",       "&",     "|",    "~",     "<<",    ">>",      "where",
        "min",   "max",      "abs",   "sqrt",     "exp",   "log",  "pow",   "tanh",  "sigmoid", "relu",
        "leaky", "popcount", "isnan", "isfinite", "floor", "ceil", "trunc", "round", "sign",    "fma",
    };
    return number < (int)(sizeof names / sizeof names[0]) ? names[number] : NULL;
}
