/* What the library has, as lists of names. */
#ifndef MF_CLI_LISTS_H
#define MF_CLI_LISTS_H

#include <modefold.h>

int list_type_count(void);
DLDataType list_type(int number);
/* 1 and the type of this name, or 0. */
int list_type_named(const char *name, DLDataType *dtype);

/* Null past the end. A device's solvers (of a kind as mf_device_kind tells it) come in the order of preference; the
 * processor's last one is "reference". */
const char *list_solver(int kind, int number);
const char *list_solver_what(int kind, int number);
/* Those that run by name only, since they add in an order of their own. */
const char *list_solver_by_name(int kind, int number);
/* Whether the name that was asked for is this solver's, maybe with a form: multi, multi:swap. */
int list_is_solver(const char *listed, const char *asked);
const char *list_reducer(int number);
const char *list_map(int number);

/* "NVRTC 13.0", or the sentence why there is none. */
const char *list_cuda_compiler(void);
/* Where compiled kernels are kept; 0 when they are not. */
int list_kernel_folder(char *path, size_t size);
/* Kernels that a device has. */
int list_kernel_count(const mf_device *device);

#endif
