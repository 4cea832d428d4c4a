/* AVX2, FMA, F16C: the tables of this instruction set. */
#define MF_VEC_BYTES 32
#include "vec_avx2.h"

/* A store past the cache, to an aligned address. */
#define MF_STREAM(to, v) _mm256_stream_si256((__m256i *)(to), (__m256i)(v))

#include "fold_kernels.inc"
#include "map_kernels.inc"
#include "full_folds.inc"
#include "full_maps.inc"

void mf_kernels_avx2(struct kernels *k);

void mf_kernels_avx2(struct kernels *k)
{
    k->name = "avx2";
    fill_fold_kernels(k);
    fill_map_kernels(k);
    fill_full_folds(k);
    fill_full_maps(k);
}
