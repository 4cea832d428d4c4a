/* Places of equal tiles along several dimensions, in several tensors at once, counted on without divisions. */
#ifndef MF_CPU_TILING_H
#define MF_CPU_TILING_H

#include "../layout.h"

enum { MAX_DIMS = MAX_LOOPS + 2, MAX_SIDES = MF_MAX_INPUTS + MF_MAX_OUTPUTS };

/* Tensors ("sides") and the tiles along each dimension, the last one fastest. */
struct tiling {
    int sides, dims;
    int64_t tiles;
    int64_t size[MAX_DIMS];
    int64_t step[MAX_SIDES][MAX_DIMS]; /* elements from one tile to the next */
};

/* One tile: its position in every dimension, and elements from each tensor's start to the tile's. */
struct place {
    int64_t at[MAX_DIMS];
    int64_t offset[MAX_SIDES];
};

void mf_tiling_start(struct tiling *tiling, int sides);
/* A dimension inside the ones so far: of tiles of `chunk` positions of a loop of `size`; strides[side] of that loop. */
void mf_tiling_add(struct tiling *tiling, int64_t size, int64_t chunk, const int64_t *strides);
/* Tile number `tile`. */
void mf_place_set(const struct tiling *tiling, int64_t tile, struct place *place);
void mf_place_next(const struct tiling *tiling, struct place *place);

/* Positions of a dimension that was added with this size and chunk in the tile that is at `at` there. */
static inline int64_t mf_tile_length(int64_t size, int64_t chunk, int64_t at)
{
    int64_t left = size - at * chunk;
    return left < chunk ? left : chunk;
}

#endif
