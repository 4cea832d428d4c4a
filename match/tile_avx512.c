/* Matching with AVX-512 VPOPCNTDQ and VBMI2: 16 rows beside each other, word by word. Three operations (exclusive or,
 * count, add) for 16 words, on two ports: 1.5 cycles for a comparison of 512 bits; a tenth more for the two nearest. */
#include <immintrin.h>
#include <string.h>

#include "tile.h"

enum { LANES = 16, PAIR = 2 }; /* PAIR: units at once, so that a query's word is read once for both */

#define PICK_LANES LANES
#define PICK_SHIFT 7
#define pick_vec __m512i
#define pick_load(p) _mm512_loadu_si512(p)
#define pick_store(p, v) _mm512_storeu_si512(p, v)
#define pick_number(x, n) _mm512_set1_epi32((int)((x) << (32 - (n))))
#define pick_min(a, b) _mm512_min_epu32(a, b)
#define pick_max(a, b) _mm512_max_epu32(a, b)
#define pick_add(a, b) _mm512_add_epi32(a, b)
#define pick_key(v, number, n) _mm512_shldi_epi32(v, number, n)
#define pick_any_below(v, limit) _mm512_cmplt_epu32_mask(v, _mm512_set1_epi32((int)(limit)))
#include "pack.inc"
#include "select.inc"

/* `units` (1 or PAIR) units; words and units are constants where this is inlined. */
static inline __attribute__((always_inline)) void few(const void *const *queries, const char *at, int units,
                                                      int64_t words, uint32_t *distance)
{
    __m512i sum[MATCH_QUERIES][PAIR];
    for (int q = 0; q < MATCH_QUERIES; q++)
        for (int u = 0; u < units; u++)
            sum[q][u] = _mm512_setzero_si512();
    for (int64_t w = 0; w < words; w++) {
        __m512i row[PAIR];
        for (int u = 0; u < units; u++)
            row[u] = _mm512_load_si512(at + 64 * (w + u * words));
        for (int q = 0; q < MATCH_QUERIES; q++) {
            const __m512i word = _mm512_set1_epi32(((const int *)queries[q])[w]);
            for (int u = 0; u < units; u++)
                sum[q][u] = _mm512_add_epi32(sum[q][u], _mm512_popcnt_epi32(_mm512_xor_si512(word, row[u])));
        }
    }
    for (int q = 0; q < MATCH_QUERIES; q++)
        for (int u = 0; u < units; u++)
            _mm512_storeu_si512(distance + q * MATCH_ROWS + u * LANES, sum[q][u]);
}

static inline __attribute__((always_inline)) void all(const void *const *queries, const char *at, int count,
                                                      int64_t words, uint32_t *distance)
{
    int u = 0;
    for (; u + PAIR <= count; u += PAIR)
        few(queries, at + u * unit_bytes(words), PAIR, words, distance + u * LANES);
    for (; u < count; u++)
        few(queries, at + u * unit_bytes(words), 1, words, distance + u * LANES);
}

static void distances(const void *const *queries, const void *units, int count, int64_t words, uint32_t *distance)
{
    if (words == 8)
        all(queries, units, count, 8, distance);
    else if (words == 16)
        all(queries, units, count, 16, distance);
    else
        all(queries, units, count, words, distance);
}

void mf_match_kernels_avx512(struct match_kernels *k)
{
    *k = (struct match_kernels){"avx512 vpopcntdq", LANES,       PICK_SHIFT, LANES,
                                unit_bytes,         query_bytes, pack,       prepare,
                                distances,          best_two,    columns,    next_below};
}
