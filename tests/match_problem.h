/* Random problems of matching, and the plain double loop that says what is right. */
#ifndef MF_TESTS_MATCH_PROBLEM_H
#define MF_TESTS_MATCH_PROBLEM_H

#include <stdint.h>

#include <modefold_match.h>

enum { MATCH_TENSORS = 10, MATCH_SETS = 8 };

/* Everything of one call, on the host. Outputs have a guard of 0x5a behind them. */
struct match_problem {
    uint64_t seed;
    int64_t words, pairs, start[2][MATCH_SETS + 1];
    DLTensor tensor[MATCH_TENSORS]; /* in the order of struct match_names; unused ones have ndim -1 */
    int64_t shape[MATCH_TENSORS][2], strides[MATCH_TENSORS][2];
    char *memory[MATCH_TENSORS];
    int64_t bytes[MATCH_TENSORS];
    mf_match_input input;
    mf_match_output output;
    mf_match_options options;
    int32_t *expected[5]; /* of the outputs */
};

/* small: for devices that are slow. */
void match_problem_make(uint64_t seed, int small, struct match_problem *p);
void match_problem_free(struct match_problem *p);
/* What the outputs have to be, by a double loop. */
void match_problem_solve(struct match_problem *p);
/* Runs it on the device and compares: 0, or 1 with a sentence. On odd seeds with a workspace, if one is wanted. */
int match_problem_run(struct match_problem *p, mf_device *device, char *error, int error_size);

#endif
