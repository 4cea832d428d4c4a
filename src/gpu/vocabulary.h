/* src/vocab/ as text for a kernel. */
#ifndef MF_GPU_VOCABULARY_H
#define MF_GPU_VOCABULARY_H

#include "text.h"

/* Appends the functions of the vocabulary that this text calls, and what they need; then the text. */
void mf_vocabulary_add(const char *text, struct gpu_text *to);

#endif
