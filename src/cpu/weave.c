/* Pixels to planes and back, 16 bytes of each plane at a time: every piece of 16 bytes to write is made of bytes of all
 * pieces that are read, in an order that a table for the kernel says. Cost: a shuffle for every pair of pieces. */
#include "weave.h"

#include <stdint.h>

/* mask[k][i]: which byte of piece i of the pixels (k, i exchanged: of plane i) goes where in plane k (in piece k of the
 * pixels). Divisions by 2, 3 and 4 of numbers below 64 are multiplications. */
static void fill_masks(struct weave *w, int item, int together)
{
    const unsigned size = (unsigned)item, parts = (unsigned)w->parts, by = (128 + parts - 1) / parts;
    const unsigned shift = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    for (unsigned k = 0; k < parts; k++) {
        uint8_t piece[WEAVE_PIECE], byte[WEAVE_PIECE];
        for (unsigned j = 0; j < WEAVE_PIECE; j++) {
            const unsigned at = k * WEAVE_PIECE + j, element = at >> shift, pixel = element * by >> 7;
            const unsigned of_pixels = ((j >> shift) * parts + k) * size + (j & (size - 1));
            piece[j] = (uint8_t)(together ? element - pixel * parts : of_pixels / WEAVE_PIECE);
            byte[j] = (uint8_t)(together ? pixel * size + (j & (size - 1)) : of_pixels % WEAVE_PIECE);
        }
        for (unsigned i = 0; i < parts; i++)
            for (unsigned j = 0; j < WEAVE_PIECE; j++)
                w->mask[k][i][j] = piece[j] == i ? byte[j] : 0x80;
    }
}

int64_t mf_weave_apart(const struct kernels *k, char *to, int64_t apart, const char *from, int64_t count, int parts,
                       int used, int item)
{
    const int64_t each = WEAVE_PIECE / item, whole = used < parts ? count - 1 : count;
    struct weave w = {from, to, WEAVE_PIECE, parts * WEAVE_PIECE, apart, WEAVE_PIECE, whole / each, parts, {{{0}}}};
    if (!k->weave || parts < 2 || parts > WEAVE_PARTS || w.units < 1)
        return 0;
    fill_masks(&w, item, 0);
    k->weave(&w);
    return w.units * each;
}

int64_t mf_weave_together(const struct kernels *k, char *to, const char *from, int64_t apart, int64_t count, int parts,
                          int item)
{
    const int64_t each = WEAVE_PIECE / item;
    struct weave w = {from, to, apart, WEAVE_PIECE, WEAVE_PIECE, parts * WEAVE_PIECE, count / each, parts, {{{0}}}};
    if (!k->weave || parts < 2 || parts > WEAVE_PARTS || w.units < 1)
        return 0;
    fill_masks(&w, item, 1);
    k->weave(&w);
    return w.units * each;
}
