/* A string that grows. A failed allocation is remembered and makes every later addition do nothing. */
#ifndef MF_GPU_TEXT_H
#define MF_GPU_TEXT_H

#include "../error.h"

struct gpu_text {
    char *text;
    size_t length, capacity;
    int failed;
};

__attribute__((format(printf, 2, 3))) void mf_text_add(struct gpu_text *to, const char *format, ...);
void mf_text_append(struct gpu_text *to, const char *text);
void mf_text_append_some(struct gpu_text *to, const char *text, size_t size);

#endif
