/* The contraction kernels of this instruction set. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

/* Where a better instruction set is always there, only tests compare with this one. */
#if defined(MF_HAVE_X86) || defined(MF_HAVE_NEON)
#define MF_SMALL_TILES
#endif
#include "contraction_kernels.inc"

void mf_contractions_scalar(struct contraction_kernels *k);

void mf_contractions_scalar(struct contraction_kernels *k)
{
    fill_contractions(k);
}
