/* The operands of run and plan: files, with what the command line says about them. */
#ifndef MF_CLI_FOLD_FILES_H
#define MF_CLI_FOLD_FILES_H

#include <modefold.h>

#include "array.h"
#include "options.h"
#include "problem.h"

/* Operands opened from "PATH" or "PATH:TYPE" (the raw bits read as another type of the same size). Messages are
 * printed; every function returns the exit status. */
struct operands {
    int count;
    struct array array[MF_MAX_INPUTS];
    DLTensor tensor[MF_MAX_INPUTS];
};

int operands_open(const char *const *paths, int count, struct operands *operands);
void operands_close(struct operands *operands);

/* Opens the device; a null name is "cpu" with this many threads (0: its own choice). define: operations that it is to
 * know, the texts of --define, or null. */
int device_open(const char *name, int64_t threads, const struct option_list *define, mf_device **device);
int define_operations(const struct option_list *texts, mf_device *device);

/* The modes string with the settings of --set behind its own; from malloc, null after a message. set may be null. */
char *modes_with_settings(const char *modes, const char *set);

/* Whether an argument is a tensor as problems write them, a=f32[...]. */
int is_written_tensor(const char *text);
/* MODES EXPRESSION a=f32[...] ..., of which the modes may have got settings, put together as a problem. */
int problem_of_arguments(const char *modes, const struct option_list *arguments, struct problem_line *line);

/* The outputs' common shape and each one's type: from dtypes ("f32" for all or "f32,i64" one each) or, when null,
 * NumPy's result types. */
struct results {
    int count, ndim;
    int64_t shape[MF_MAX_RANK];
    DLDataType dtype[MF_MAX_OUTPUTS];
};

int results_infer(mf_device *device, const char *modes, const char *expression, const struct operands *operands,
                  const char *dtypes, struct results *results);

#endif
