/* ARM NEON: the tables of this instruction set. */
#define MF_VEC_BYTES 16
#include "vec_generic.h"

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) vstore_u8((uint8_t *)(to), (vec_u8)(v))

#include "fold_kernels.inc"
#include "map_kernels.inc"
#include "full_folds.inc"
#include "full_maps.inc"

void mf_kernels_neon(struct kernels *k);

void mf_kernels_neon(struct kernels *k)
{
    k->name = "neon";
    fill_fold_kernels(k);
    fill_map_kernels(k);
    fill_full_folds(k);
    fill_full_maps(k);
}
