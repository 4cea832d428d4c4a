/* AVX2, FMA, F16C: maps and conversions. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

#include "map_kernels.inc"

void mf_maps_avx2(struct kernels *k);

void mf_maps_avx2(struct kernels *k)
{
    fill_map_kernels(k);
}
