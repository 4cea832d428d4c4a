/* A fold as loops: what every solver sees. No user order, no size-1 modes, no mergeable neighbours. */
#ifndef MF_LAYOUT_H
#define MF_LAYOUT_H

#include "expr.h"
#include "modes.h"

enum { MAX_LOOPS = MF_MAX_MODES, MAX_WINDOWS = 64 };

/* An index of an operand's dimension that may leave it: offset + sum of step[loop] * position must lie in 0 ...
 * extent-1. */
struct window {
    int input;
    int64_t offset, extent;
    int64_t step[MAX_LOOPS];
};

/* Loops 0 ... kept-1 are kept, outermost first; kept ... kept+reduced-1 are reduced, in the order in which the elements
 * are numbered (the last one fastest). Strides count elements; an operand without the mode has stride 0. */
struct nest {
    int kept, reduced;
    int64_t size[MAX_LOOPS];
    int64_t in[MF_MAX_INPUTS][MAX_LOOPS];
    int64_t out[MF_MAX_OUTPUTS][MAX_LOOPS]; /* kept loops */
    int64_t index[MAX_LOOPS];               /* reduced loops: weight in the index as written (argmin, argmax) */
    int window_count;
    struct window window[MAX_WINDOWS];
};

struct problem {
    struct program program;
    int input_count, output_count;
    enum dtype in_type[MF_MAX_INPUTS], out_type[MF_MAX_OUTPUTS];
    int64_t in_base[MF_MAX_INPUTS]; /* elements from the pointer to position 0 of every loop */
    int64_t kept_total, reduced_total;
    struct nest memory;  /* elements numbered by decreasing stride: the contract's order */
    struct nest written; /* elements numbered as the modes string says: for non-commutative operations */
    /* For the overlap checks, per tensor (inputs, then outputs): bytes from the pointer to its first and past its
     * last. */
    int64_t low[MF_MAX_INPUTS + MF_MAX_OUTPUTS], high[MF_MAX_INPUTS + MF_MAX_OUTPUTS];
    int finish_uses[MF_MAX_INPUTS], map_uses[MF_MAX_INPUTS];
    int framed; /* no window leaves its tensor here, but some do elsewhere in the fold that this is a part of */
};

/* Checks everything that does not depend on pointers and fills the problem (zeroed by the caller).
 * as_written numbers all reduced elements as written. */
mf_status mf_problem_make(const struct modes *modes, const DLTensor *inputs, const DLTensor *outputs, int as_written,
                          struct problem *problem);

/* A tensor's strides in elements, row-major where it has none, and its reach in bytes. what: for errors. */
mf_status mf_tensor_layout(const DLTensor *tensor, const char *what, int64_t item, int64_t *stride, int64_t *low,
                           int64_t *high);

/* Loop f of `from` becomes loop t of `to`, which has as many windows, and may be the same. */
void mf_nest_copy_loop(struct nest *to, int t, const struct nest *from, int f);

/* Whether a loop's stride continues that of the one inside over its whole size. */
int mf_stride_continues(int64_t outer, int64_t inner, int64_t size);

/* Whether loops `outer` and `inner`, beside each other, are one; kept: both are kept, else reduced. */
int mf_nest_mergeable(const struct nest *nest, int outer, int inner, int kept);

/* Whether the nest numbers its reduced elements in the order as written. */
int mf_nest_is_as_written(const struct nest *nest);

/* Whether every part of a sum of strides fits in 63 bits, not only the sums of positions inside their tensors. */
int mf_nest_parts_fit(const struct nest *nest, const int64_t *stride, int64_t offset);

/* Whether the bytes from the first to the last of tensor a (an operand, or MF_MAX_INPUTS + an output) at pa and b at pb
 * meet. */
int mf_problem_near(const struct problem *problem, int a, const void *pa, int b, const void *pb);
/* MF_ERROR_OVERLAP if these pointers overlap in a way that the fold cannot bear; cheap when nothing is near. */
mf_status mf_problem_check_overlap(const struct problem *problem, const void *const *inputs, void *const *outputs);

/* The greatest common divisor; of a and 0, a. */
int64_t mf_gcd(int64_t a, int64_t b);
/* Whether two strided sets of bytes share one: base_a + sum of sa[i]*[0, na[i]) + [0, bytes_a), and b likewise.
 * Strides in bytes. 1 shared, 0 not; 1 also when the search would take too long. */
int mf_sets_meet(int64_t base_a, int ranks_a, const int64_t *na, const int64_t *sa, int64_t bytes_a, int64_t base_b,
                 int ranks_b, const int64_t *nb, const int64_t *sb, int64_t bytes_b);
/* Whether two different positions of one strided set share a byte. */
int mf_set_overlaps_itself(int rank, const int64_t *n, const int64_t *s, int64_t bytes);

#endif
