/* What the library has, as lists of names. */
#ifndef MF_CLI_LISTS_H
#define MF_CLI_LISTS_H

#include <dlpack/dlpack.h>

int list_type_count(void);
DLDataType list_type(int number);
/* 1 and the type of this name, or 0. */
int list_type_named(const char *name, DLDataType *dtype);

/* Null past the end. The solvers come in the order of preference; the last is "reference". */
const char *list_solver(int number);
const char *list_solver_what(int number);
const char *list_reducer(int number);
const char *list_map(int number);

#endif
