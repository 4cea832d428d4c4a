/* The library's tables, read where they are written. */
#include "lists.h"

#include <string.h>

#include "plan.h" /* src/ */

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

const char *list_solver(int number)
{
    return mf_solvers[number] ? mf_solvers[number]->name : NULL;
}

const char *list_solver_what(int number)
{
    return mf_solvers[number] ? mf_solvers[number]->what : NULL;
}

const char *list_reducer(int number)
{
    static const char *const names[] = {"sum", "prod", "min", "max", "mean",  "var",    "std",    "norm",     "any",
                                        "all", "and",  "or",  "xor", "count", "argmin", "argmax", "logsumexp"};
    return number < (int)(sizeof names / sizeof names[0]) ? names[number] : NULL;
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
