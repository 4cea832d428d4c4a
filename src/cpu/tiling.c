#include "tiling.h"

void mf_tiling_start(struct tiling *tiling, int sides)
{
    tiling->sides = sides;
    tiling->dims = 0;
    tiling->tiles = 1;
}

void mf_tiling_add(struct tiling *tiling, int64_t size, int64_t chunk, const int64_t *strides)
{
    int d = tiling->dims++;
    tiling->size[d] = (size + chunk - 1) / chunk;
    tiling->tiles *= tiling->size[d];
    for (int side = 0; side < tiling->sides; side++)
        tiling->step[side][d] = (int64_t)((uint64_t)strides[side] * (uint64_t)chunk); /* unused where size[d] is 1 */
}

void mf_place_set(const struct tiling *tiling, int64_t tile, struct place *place)
{
    memset(place->offset, 0, sizeof place->offset[0] * (size_t)tiling->sides);
    for (int d = tiling->dims - 1; d >= 0; d--) {
        place->at[d] = tile % tiling->size[d];
        tile /= tiling->size[d];
        for (int side = 0; side < tiling->sides; side++)
            place->offset[side] += place->at[d] * tiling->step[side][d];
    }
}

void mf_place_next(const struct tiling *tiling, struct place *place)
{
    for (int d = tiling->dims - 1; d >= 0; d--) {
        int wraps = ++place->at[d] == tiling->size[d];
        int64_t steps = wraps ? 1 - tiling->size[d] : 1;
        for (int side = 0; side < tiling->sides; side++)
            place->offset[side] += steps * tiling->step[side][d];
        if (!wraps)
            return;
        place->at[d] = 0;
    }
}
