/* ARM NEON: maps and conversions. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

#include "map_kernels.inc"

void mf_maps_neon(struct kernels *k);

void mf_maps_neon(struct kernels *k)
{
    fill_map_kernels(k);
}
