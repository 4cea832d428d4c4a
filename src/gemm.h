/* Contractions that are a product of matrices as a BLAS has it. */
#ifndef MF_GEMM_H
#define MF_GEMM_H

#include "factors.h"

/* c[m, n] = sum over k of a[m, k] b[k, n], `batch` times. Matrices are stored by columns, or, where transposed, by
 * rows; pitch: elements from column to column (row to row); step: from one of the batch to the next. Sizes and pitches
 * are up to 2^31 - 1. */
struct gemm {
    enum dtype in, out;
    int tensor_floats; /* f32: factors are rounded to the 11 bits of TF32, sums stay f32 */
    int64_t m, n, k, batch;
    int a_transposed, b_transposed;
    int64_t a_pitch, b_pitch, c_pitch, a_step, b_step, c_step;
    int a, b; /* the operands */
};

/* Whether a fold is sum(a*b) of two operands, each of which has kept loops of its own, and of floats. */
int mf_gemm_factors(const struct problem *problem, int factor[FACTORS], struct factor_loops *loops);

/* One matrix: the strides along its rows' and columns' numbers become a pitch, and whether it is stored by rows. 0
 * where a BLAS cannot read it. */
int mf_gemm_pitch(int64_t along, int64_t across, int64_t length, int64_t other, int *transposed, int64_t *pitch);

/* Whether a fold is sum(a*b) of floats, with a product of matrices' loops and strides; fills gemm. */
int mf_gemm_find(const struct problem *problem, struct gemm *gemm);

#endif
