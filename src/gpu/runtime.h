/* What both backends share: libraries opened at run time, a compiler's complaint, texts. */
#ifndef MF_GPU_RUNTIME_H
#define MF_GPU_RUNTIME_H

#include "../error.h"

/* Opens the first of the files (a list that ends with null) that can be opened and has all symbols (likewise; one after
 * a '?' may be missing and is null then), and writes their addresses one after the other to functions. The library
 * stays open. Afterwards why is "", or a sentence that begins with name. */
void mf_library_load(const char *name, const char *const *files, const char *const *symbols, void *functions, char *why,
                     size_t why_size);

/* The first line of a compiler's log that speaks of an error, else its first line. */
void mf_log_error(const char *log, char *line, size_t size);

/* first and second in one text, from mf_alloc; null without memory. */
char *mf_text_join(const char *first, const char *second);

/* MF_ERROR_ARGUMENT, and "operand b FACT" for "operand" and 1, "output 1 FACT" for other words. */
mf_status mf_fail_tensor(const char *what, int number, const char *fact);

#endif
