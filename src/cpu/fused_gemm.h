/* c = a b or c += a b of matrices as a BLAS has them, by the fused tiles of contraction_kernels.h. */
#ifndef MF_CPU_FUSED_GEMM_H
#define MF_CPU_FUSED_GEMM_H

#include "strided_gemm.h"

/* Who multiplies, and where panels are packed: mf_fused_memory() bytes, aligned to 64. */
struct fused_gemm {
    const struct mf_plan *plan;
    char *memory;
};

size_t mf_fused_memory(const struct mf_plan *plan, enum dtype type);
/* A strided_multiply; context is a struct fused_gemm. Uses the plan's threads. */
void mf_fused_multiply(void *context, enum dtype type, const struct strided_block *block);

#endif
