/* Matching with AVX2: a byte of a vector is half a byte of one row, so 32 rows lie beside each other. The bits in which
 * it differs from a query's half byte come from that half byte's table of 16, by one shuffle; a second operation adds
 * them. 256 operations for 32 comparisons of 512 bits: 2.7 cycles for one, where exclusive or and the two halves of
 * every byte would take 5. */
#include <immintrin.h>
#include <string.h>

#include "tile.h"

enum { LANES = 8, UNIT = 32, WORD = 8 /* half bytes */, DEEP = 7 /* words whose differences fit in a byte */ };

#define PICK_LANES LANES
#define pick_vec __m256i
#define pick_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define pick_store(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define pick_set(x) _mm256_set1_epi32((int)(x))
#define pick_min(a, b) _mm256_min_epu32(a, b)
#define pick_max(a, b) _mm256_max_epu32(a, b)
#define pick_or(a, b) _mm256_or_si256(a, b)
#define pick_shift(v, n) _mm256_sll_epi32(v, _mm_cvtsi32_si128(n))
#define pick_any_below(v, limit) any_below(v, limit)
static inline int any_below(__m256i v, uint32_t limit)
{
    const __m256i least = _mm256_max_epu32(v, _mm256_set1_epi32((int)limit));
    return _mm256_movemask_epi8(_mm256_cmpeq_epi32(least, v)) != -1;
}
#include "select.inc"

/* Row n: popcount(n ^ i), i = 0 ... 15, twice. */
#define D4(n, i) (char)(((n ^ i) & 1) + ((n ^ i) >> 1 & 1) + ((n ^ i) >> 2 & 1) + ((n ^ i) >> 3 & 1))
#define D16(n)                                                                                                     \
    D4(n, 0), D4(n, 1), D4(n, 2), D4(n, 3), D4(n, 4), D4(n, 5), D4(n, 6), D4(n, 7), D4(n, 8), D4(n, 9), D4(n, 10), \
        D4(n, 11), D4(n, 12), D4(n, 13), D4(n, 14), D4(n, 15)
#define D32(n)         \
    {                  \
        D16(n), D16(n) \
    }
static const _Alignas(32) char differences[16][UNIT] = {D32(0),  D32(1),  D32(2),  D32(3), D32(4),  D32(5),
                                                        D32(6),  D32(7),  D32(8),  D32(9), D32(10), D32(11),
                                                        D32(12), D32(13), D32(14), D32(15)};

static int64_t unit_bytes(int64_t words)
{
    return words * WORD * UNIT;
}

static int64_t query_bytes(int64_t words)
{
    return words * WORD * (int64_t)sizeof(uint16_t);
}

static inline int word_of(const char *row, int64_t w)
{
    int word = 0;
    if (row)
        memcpy(&word, row + 4 * w, 4);
    return word;
}

/* Words w of rows 4i ... 4i+3 and 16+4i ... 16+4i+3. */
static inline __m256i words_of(const char *const *rows, int i, int64_t w)
{
    const char *const *low = rows + 4 * i, *const *high = low + 16;
    return _mm256_setr_epi32(word_of(low[0], w), word_of(low[1], w), word_of(low[2], w), word_of(low[3], w),
                             word_of(high[0], w), word_of(high[1], w), word_of(high[2], w), word_of(high[3], w));
}

/* For each word: four vectors with one byte of all 32 rows, each as its low and its high halves. */
static void pack(const char *const *rows, int64_t words, void *unit)
{
    const __m256i bytes = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9,
                                           13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i half = _mm256_set1_epi8(15);
    __m256i *to = unit;
    for (int64_t w = 0; w < words; w++, to += WORD) {
        __m256i v[4], t[4], b[4];
        for (int i = 0; i < 4; i++)
            v[i] = _mm256_shuffle_epi8(words_of(rows, i, w), bytes);
        t[0] = _mm256_unpacklo_epi32(v[0], v[1]);
        t[1] = _mm256_unpacklo_epi32(v[2], v[3]);
        t[2] = _mm256_unpackhi_epi32(v[0], v[1]);
        t[3] = _mm256_unpackhi_epi32(v[2], v[3]);
        b[0] = _mm256_unpacklo_epi64(t[0], t[1]);
        b[1] = _mm256_unpackhi_epi64(t[0], t[1]);
        b[2] = _mm256_unpacklo_epi64(t[2], t[3]);
        b[3] = _mm256_unpackhi_epi64(t[2], t[3]);
        for (int i = 0; i < 4; i++) {
            _mm256_store_si256(to + 2 * i, _mm256_and_si256(b[i], half));
            _mm256_store_si256(to + 2 * i + 1, _mm256_and_si256(_mm256_srli_epi16(b[i], 4), half));
        }
    }
}

/* Each half byte as the place of its table. */
static void prepare(const char *row, int64_t words, void *query)
{
    uint16_t *to = query;
    for (int64_t i = 0; i < 4 * words; i++) {
        const unsigned byte = (unsigned char)row[i];
        to[2 * i] = (uint16_t)((byte & 15) * UNIT);
        to[2 * i + 1] = (uint16_t)((byte >> 4) * UNIT);
    }
}

enum { PAIR = 2 }; /* queries at once */

/* Sums of 32 rows as two vectors of 16 bits. */
struct wide {
    __m256i half[2];
};

static inline void widen(__m256i counts, struct wide *sum)
{
    const __m256i low = _mm256_cvtepu8_epi16(_mm256_castsi256_si128(counts)),
                  high = _mm256_cvtepu8_epi16(_mm256_extracti128_si256(counts, 1));
    sum->half[0] = _mm256_add_epi16(sum->half[0], low);
    sum->half[1] = _mm256_add_epi16(sum->half[1], high);
}

/* Adds them to 32 distances, or stores them there. */
static inline void put(struct wide sum, int is_first, uint32_t *distance)
{
    for (int h = 0; h < 2; h++) {
        __m256i *const to = (__m256i *)(distance + 16 * h);
        __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(sum.half[h])),
                high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(sum.half[h], 1));
        if (!is_first) {
            low = _mm256_add_epi32(low, _mm256_loadu_si256(to));
            high = _mm256_add_epi32(high, _mm256_loadu_si256(to + 1));
        }
        _mm256_storeu_si256(to, low);
        _mm256_storeu_si256(to + 1, high);
    }
}

/* Counts of `halves` half bytes, at most DEEP words, for two queries and `units` units (a constant). */
static inline __attribute__((always_inline)) void count(const uint16_t *const *place, const char *at, int64_t stride,
                                                        int units, int64_t halves, __m256i (*sum)[4])
{
    for (int q = 0; q < PAIR; q++)
        for (int u = 0; u < units; u++)
            sum[q][u] = _mm256_setzero_si256();
    for (int64_t i = 0; i < halves; i++)
        for (int q = 0; q < PAIR; q++) {
            const __m256i table = _mm256_load_si256((const __m256i *)((const char *)differences + place[q][i]));
            for (int u = 0; u < units; u++) {
                const __m256i rows = _mm256_load_si256((const __m256i *)(at + UNIT * i + u * stride));
                sum[q][u] = _mm256_add_epi8(sum[q][u], _mm256_shuffle_epi8(table, rows));
            }
        }
}

/* Two queries and `units` (1 or 4) units. Sums stay in 16 bits for SPAN words, whose bits they can hold. */
static inline __attribute__((always_inline)) void few(const uint16_t *const *query, const char *at, int units,
                                                      int64_t words, uint32_t *distance)
{
    enum { SPAN = 280 * DEEP };
    __m256i sum[PAIR][4];
    for (int64_t begin = 0; begin < words; begin += SPAN) {
        const int64_t end = words - begin < SPAN ? words : begin + SPAN;
        struct wide wide[PAIR][4];
        memset(wide, 0, sizeof wide);
        for (int64_t w = begin; w < end; w += DEEP) {
            const int64_t now = end - w < DEEP ? end - w : DEEP;
            const uint16_t *const place[PAIR] = {query[0] + w * WORD, query[1] + w * WORD};
            count(place, at + w * WORD * UNIT, unit_bytes(words), units, now * WORD, sum);
            for (int q = 0; q < PAIR; q++)
                for (int u = 0; u < units; u++)
                    widen(sum[q][u], &wide[q][u]);
        }
        for (int q = 0; q < PAIR; q++)
            for (int u = 0; u < units; u++)
                put(wide[q][u], begin == 0, distance + q * MATCH_ROWS + u * UNIT);
    }
}

static inline __attribute__((always_inline)) void all(const void *const *queries, const char *at, int count_units,
                                                      int64_t words, uint32_t *distance)
{
    for (int q = 0; q < MATCH_QUERIES; q += PAIR) {
        const uint16_t *const two[PAIR] = {queries[q], queries[q + 1]};
        int u = 0;
        for (; u + 4 <= count_units; u += 4)
            few(two, at + u * unit_bytes(words), 4, words, distance + q * MATCH_ROWS + u * UNIT);
        for (; u < count_units; u++)
            few(two, at + u * unit_bytes(words), 1, words, distance + q * MATCH_ROWS + u * UNIT);
    }
}

static void distances(const void *const *queries, const void *units, int count_units, int64_t words, uint32_t *distance)
{
    if (words == 16)
        all(queries, units, count_units, 16, distance);
    else
        all(queries, units, count_units, words, distance);
}

void mf_match_kernels_avx2(struct match_kernels *k)
{
    *k = (struct match_kernels){"avx2",  LANES,     UNIT,     unit_bytes, query_bytes, pack,
                                prepare, distances, best_two, columns,    next_below};
}
