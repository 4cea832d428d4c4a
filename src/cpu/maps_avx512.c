/* AVX-512 F, BW, DQ, VL: maps and conversions. */
#define MF_VEC_BYTES 64
#include "vec_avx512.h"

#include "map_kernels.inc"

void mf_maps_avx512(struct kernels *k);

void mf_maps_avx512(struct kernels *k)
{
    fill_map_kernels(k);
}
