/* The contraction kernels of this instruction set. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#define MF_HAVE_FMA
#define vfma_f32(x, y, z) ((vec_f32)_mm512_fmadd_ps((__m512)(x), (__m512)(y), (__m512)(z)))
#define vfma_f64(x, y, z) ((vec_f64)_mm512_fmadd_pd((__m512d)(x), (__m512d)(y), (__m512d)(z)))

#include "contraction_kernels.inc"

void mf_contractions_avx512(struct contraction_kernels *k);

void mf_contractions_avx512(struct contraction_kernels *k)
{
    fill_contractions(k);
}
