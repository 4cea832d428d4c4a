/* Matching with NEON: four rows beside each other, word by word; bits are counted in bytes, three operations for four
 * words, and bytes are added up every 31 words. */
#include <arm_neon.h>
#include <string.h>

#include "tile.h"

enum { LANES = 4, PAIR = 2, DEEP = 31 /* words whose counts fit in a byte */ };

#define PICK_LANES LANES
#define PICK_SHIFT 9
#define pick_vec uint32x4_t
#define pick_load(p) vld1q_u32(p)
#define pick_store(p, v) vst1q_u32(p, v)
#define pick_number(x, n) vdupq_n_u32(x)
#define pick_min(a, b) vminq_u32(a, b)
#define pick_max(a, b) vmaxq_u32(a, b)
#define pick_add(a, b) vaddq_u32(a, b)
#define pick_key(v, number, n) vorrq_u32(vshlq_n_u32(v, n), number)
#define pick_any_below(v, limit) (vminvq_u32(v) < (limit))
#include "pack.inc"
#include "select.inc"

/* `units` (1 or PAIR, a constant) units. */
static inline __attribute__((always_inline)) void few(const void *const *queries, const uint32_t *at, int units,
                                                      int64_t words, uint32_t *distance)
{
    uint32x4_t sum[MATCH_QUERIES][PAIR];
    for (int q = 0; q < MATCH_QUERIES; q++)
        for (int u = 0; u < units; u++)
            sum[q][u] = vdupq_n_u32(0);
    for (int64_t w = 0; w < words; w += DEEP) {
        const int64_t end = words - w < DEEP ? words : w + DEEP;
        uint8x16_t bytes[MATCH_QUERIES][PAIR];
        for (int q = 0; q < MATCH_QUERIES; q++)
            for (int u = 0; u < units; u++)
                bytes[q][u] = vdupq_n_u8(0);
        for (int64_t i = w; i < end; i++)
            for (int q = 0; q < MATCH_QUERIES; q++) {
                const uint32x4_t word = vld1q_dup_u32((const uint32_t *)queries[q] + i);
                for (int u = 0; u < units; u++) {
                    const uint32x4_t x = veorq_u32(word, vld1q_u32(at + LANES * (i + u * words)));
                    bytes[q][u] = vaddq_u8(bytes[q][u], vcntq_u8(vreinterpretq_u8_u32(x)));
                }
            }
        for (int q = 0; q < MATCH_QUERIES; q++)
            for (int u = 0; u < units; u++)
                sum[q][u] = vaddq_u32(sum[q][u], vpaddlq_u16(vpaddlq_u8(bytes[q][u])));
    }
    for (int q = 0; q < MATCH_QUERIES; q++)
        for (int u = 0; u < units; u++)
            vst1q_u32(distance + q * MATCH_ROWS + u * LANES, sum[q][u]);
}

static void distances(const void *const *queries, const void *units, int count, int64_t words, uint32_t *distance)
{
    const uint32_t *at = units;
    int u = 0;
    for (; u + PAIR <= count; u += PAIR)
        few(queries, at + u * words * LANES, PAIR, words, distance + u * LANES);
    for (; u < count; u++)
        few(queries, at + u * words * LANES, 1, words, distance + u * LANES);
}

void mf_match_kernels_neon(struct match_kernels *k)
{
    *k = (struct match_kernels){"neon", LANES,   PICK_SHIFT, LANES,    unit_bytes, query_bytes,
                                pack,   prepare, distances,  best_two, columns,    next_below};
}
