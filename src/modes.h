/* The modes string: which mode each dimension of each operand is, and which modes are kept. */
#ifndef MF_MODES_H
#define MF_MODES_H

#include "error.h"

/* One dimension's index: offset + sum of coefficient * mode. A plain letter is one part with coefficient 1. */
struct mode_term {
    int parts;
    int mode[MF_MAX_WINDOW];
    int64_t coefficient[MF_MAX_WINDOW];
    int64_t offset;
};

struct mode_list {
    int rank;
    struct mode_term term[MF_MAX_RANK];
};

struct modes {
    int input_count, mode_count, output_rank;
    char letter[MF_MAX_MODES];      /* of each mode, in the order of first appearance */
    int64_t set_size[MF_MAX_MODES]; /* from "with j=32"; -1 where not set */
    int output_mode[MF_MAX_RANK];
    struct mode_list input[MF_MAX_INPUTS];
};

/* Parses text. Errors: MF_ERROR_MODES with the position. */
mf_status mf_modes_parse(const char *text, struct modes *modes);

/* The size of every mode, from the inputs' shapes, "with", the outputs' shape (null: inferred from windows).
 * size has room for MF_MAX_MODES. Errors: MF_ERROR_SHAPE, MF_ERROR_OVERFLOW. */
mf_status mf_modes_sizes(const struct modes *modes, const DLTensor *inputs, const DLTensor *output, int64_t *size);

/* Whether operand i has the mode. */
int mf_modes_has(const struct modes *modes, int input, int mode);

#endif
