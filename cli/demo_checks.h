/* The plain loops that modefold demo compares with. */
#ifndef MF_CLI_DEMO_CHECKS_H
#define MF_CLI_DEMO_CHECKS_H

#include <stdint.h>

/* What a check sees: the operands, the results and the sizes of the operand a. */
struct demo_arrays {
    const void *in[2];
    const void *out[4];
    const int64_t *n;
};

/* How far the results are from the loops'. */
struct demo_verdict {
    int64_t checked, wrong;
    double worst; /* largest error as a part of the bound; 0 where equality was asked for */
};

typedef void demo_check(const struct demo_arrays *arrays, struct demo_verdict *verdict);

demo_check check_sum_all, check_sum_rows, check_sum_columns, check_sum_interleaved, check_ones, check_runs,
    check_channels;
demo_check check_add_row, check_argmax, check_bytes;

#endif
