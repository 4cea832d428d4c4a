/* Pieces of packed panels, whose term k begins at k * width: runs of what lies beside each other, and four rows that
 * lie along the terms, transposed in vectors of 16 bytes, which every processor of ours has. */
#ifndef MF_CPU_PANEL_H
#define MF_CPU_PANEL_H

#include <stdint.h>
#include <string.h>

#include "shuffle.h"

typedef uint32_t quad __attribute__((vector_size(16)));
typedef uint64_t couple __attribute__((vector_size(16)));

static inline quad load_quad(const void *from)
{
    quad q;
    memcpy(&q, from, sizeof q);
    return q;
}

static inline couple load_couple(const void *from)
{
    couple c;
    memcpy(&c, from, sizeof c);
    return c;
}

static inline void transpose_four_32(uint32_t *to, int64_t width, const uint32_t *from, int64_t across)
{
    const quad a = load_quad(from), b = load_quad(from + across), c = load_quad(from + 2 * across),
               d = load_quad(from + 3 * across);
    const couple ab = (couple)MF_SHUFFLE(int32_t, a, b, 0, 4, 1, 5), cd = (couple)MF_SHUFFLE(int32_t, c, d, 0, 4, 1, 5),
                 ab2 = (couple)MF_SHUFFLE(int32_t, a, b, 2, 6, 3, 7),
                 cd2 = (couple)MF_SHUFFLE(int32_t, c, d, 2, 6, 3, 7);
    const couple line[4] = {MF_SHUFFLE(int64_t, ab, cd, 0, 2), MF_SHUFFLE(int64_t, ab, cd, 1, 3),
                            MF_SHUFFLE(int64_t, ab2, cd2, 0, 2), MF_SHUFFLE(int64_t, ab2, cd2, 1, 3)};
    for (int k = 0; k < 4; k++)
        memcpy(to + k * width, &line[k], sizeof line[k]);
}

static inline void transpose_four_64(uint64_t *to, int64_t width, const uint64_t *from, int64_t across)
{
    for (int k = 0; k < 4; k += 2)
        for (int r = 0; r < 4; r += 2) {
            const couple a = load_couple(from + r * across + k), b = load_couple(from + (r + 1) * across + k);
            const couple line[2] = {MF_SHUFFLE(int64_t, a, b, 0, 2), MF_SHUFFLE(int64_t, a, b, 1, 3)};
            memcpy(to + k * width + r, &line[0], sizeof line[0]);
            memcpy(to + (k + 1) * width + r, &line[1], sizeof line[1]);
        }
}

/* What the next four rows go on with; such an address may lie past the last one. */
static inline void panel_fetch_rows(uintptr_t from, int64_t across)
{
    for (int64_t r = 4; r < 8; r++)
        __builtin_prefetch((const void *)(from + (uintptr_t)(r * across)));
}

/* to[k * width + r] = rows[r * across + k] for r < 4: what is written together lies together. */
#define DEFINE_PANEL_ROWS(bits)                                                                              \
    static inline void panel_four_rows_##bits(uint##bits##_t *to, int64_t width, const uint##bits##_t *rows, \
                                              int64_t across, int64_t terms)                                 \
    {                                                                                                        \
        int64_t k = 0;                                                                                       \
        for (; k + 4 <= terms; k += 4) {                                                                     \
            panel_fetch_rows((uintptr_t)(rows + k), across *(bits / 8));                                     \
            transpose_four_##bits(to + k * width, width, rows + k, across);                                  \
        }                                                                                                    \
        for (; k < terms; k++)                                                                               \
            for (int64_t r = 0; r < 4; r++)                                                                  \
                to[k * width + r] = rows[r * across + k];                                                    \
    }
DEFINE_PANEL_ROWS(32)
DEFINE_PANEL_ROWS(64)
#undef DEFINE_PANEL_ROWS

/* Whole pieces of 4 bytes, inline: panels are narrow. */
static inline void panel_copy(char *to, const char *from, int64_t bytes)
{
    int64_t b = 0;
    for (; b + 32 <= bytes; b += 32)
        memcpy(to + b, from + b, 32);
    for (; b < bytes; b += 4)
        memcpy(to + b, from + b, 4);
}

#endif
