/* Arrays as text, as NumPy prints them, and as JSON. */
#ifndef MF_CLI_SHOW_H
#define MF_CLI_SHOW_H

#include <dlpack/dlpack.h>
#include <stdio.h>

enum { SHOW_ELEMENTS = 1000 }; /* larger arrays are shortened */

/* Nested brackets; a long dimension of a large array is cut to its three first and last. Ends with a newline. */
void show_array(FILE *out, const DLTensor *tensor);
/* Nested lists; NaN and infinities, which JSON lacks, as strings. */
void show_json_array(FILE *out, const DLTensor *tensor);
/* A string in quotes. */
void show_json_text(FILE *out, const char *text);
/* "(3, 4)", "(3,)", "()", for people; "[3, 4]" for JSON. */
void show_shape(FILE *out, const DLTensor *tensor, int json);

int64_t tensor_elements(const DLTensor *tensor);
/* Bytes of its elements; broadcast dimensions (stride 0) count once. */
double tensor_bytes(const DLTensor *tensor);

#endif
