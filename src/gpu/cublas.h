/* Products of matrices by NVIDIA's cuBLAS, opened at run time. */
#ifndef MF_GPU_CUBLAS_H
#define MF_GPU_CUBLAS_H

#include "../gemm.h"
#include "gpu.h"

struct cublas;

/* A handle with a workspace of so many bytes. Errors: MF_ERROR_DEVICE where there is no cuBLAS, or no CUDA. */
mf_status mf_cublas_open(struct gpu *gpu, int64_t bytes, struct cublas **cublas);
void mf_cublas_close(struct cublas *cublas);
/* Puts the product into the stream; with add, c is added to. Several threads may call it. */
mf_status mf_cublas_multiply(struct cublas *cublas, const struct gemm *gemm, const void *a, const void *b, void *c,
                             int add, void *stream);

#endif
