/* Products of matrices by NVIDIA's cuBLAS, opened at run time. */
#ifndef MF_GPU_CUBLAS_H
#define MF_GPU_CUBLAS_H

#include "../types.h"
#include "gpu.h"

/* c[m, n] = sum over k of a[m, k] b[k, n], `batch` times. Matrices are stored by columns, or, where transposed, by
 * rows; pitch: elements from column to column (row to row); step: from one of the batch to the next. All up to
 * 2^31 - 1. */
struct gemm {
    enum dtype in, out;
    int tensor_floats; /* f32: factors are rounded to the 11 bits of TF32, sums stay f32 */
    int64_t m, n, k, batch;
    int a_transposed, b_transposed;
    int64_t a_pitch, b_pitch, c_pitch, a_step, b_step, c_step;
};

struct cublas;

/* A handle with its workspace. Errors: MF_ERROR_DEVICE where there is no cuBLAS, or no CUDA. */
mf_status mf_cublas_open(struct gpu *gpu, struct cublas **cublas);
void mf_cublas_close(struct cublas *cublas);
/* Puts the product into the stream; with add, c is added to. Several threads may call it. */
mf_status mf_cublas_multiply(struct cublas *cublas, const struct gemm *gemm, const void *a, const void *b, void *c,
                             int add, void *stream);

#endif
