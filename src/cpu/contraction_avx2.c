/* The contraction kernels of this instruction set. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#define MF_HAVE_FMA
#define vfma_f32(x, y, z) ((vec_f32)_mm256_fmadd_ps((__m256)(x), (__m256)(y), (__m256)(z)))
#define vfma_f64(x, y, z) ((vec_f64)_mm256_fmadd_pd((__m256d)(x), (__m256d)(y), (__m256d)(z)))

#include "contraction_kernels.inc"

void mf_contractions_avx2(struct contraction_kernels *k);

void mf_contractions_avx2(struct contraction_kernels *k)
{
    fill_contractions(k);
}
