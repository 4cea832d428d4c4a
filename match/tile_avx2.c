/* Matching with AVX2: a byte of a vector is half a byte of one row, so 32 rows lie beside each other. The bits in which
 * it differs from a query's half byte come from that half byte's table of 16, by one shuffle; a second operation adds
 * them. 256 operations for 32 comparisons of 512 bits: 2.7 cycles for one, where exclusive or and the two halves of
 * every byte would take 5. */
#include <immintrin.h>
#include <string.h>

#include "tile.h"

enum {
    LANES = 8,
    WIDE = 32,        /* rows of a vector of half bytes */
    VECTORS = 4,      /* of them beside each other, so that a table is read once for all */
    UNIT = 128,       /* rows */
    WORD = 8,         /* half bytes */
    DEEP = 7,         /* words whose differences fit in a byte */
    SPAN = 280 * DEEP /* words whose differences fit in 16 bits */
};

#define PICK_LANES LANES
#define PICK_SHIFT 8
#define pick_vec __m256i
#define pick_load(p) _mm256_loadu_si256((const __m256i *)(p))
#define pick_store(p, v) _mm256_storeu_si256((__m256i *)(p), v)
#define pick_number(x, n) _mm256_set1_epi32((int)(x))
#define pick_min(a, b) _mm256_min_epu32(a, b)
#define pick_max(a, b) _mm256_max_epu32(a, b)
#define pick_add(a, b) _mm256_add_epi32(a, b)
#define pick_key(v, number, n) _mm256_or_si256(_mm256_slli_epi32(v, n), number)
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
static const _Alignas(32) char differences[16][WIDE] = {D32(0),  D32(1),  D32(2),  D32(3), D32(4),  D32(5),
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

/* Word w of 32 rows: four vectors with one byte of all of them, each as its low and its high halves. */
static inline void pack_word(const char *const *rows, int64_t w, __m256i *to)
{
    const __m256i bytes = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8, 12, 1, 5, 9,
                                           13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i half = _mm256_set1_epi8(15);
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
        _mm256_store_si256(to + 2 * i * VECTORS, _mm256_and_si256(b[i], half));
        _mm256_store_si256(to + (2 * i + 1) * VECTORS, _mm256_and_si256(_mm256_srli_epi16(b[i], 4), half));
    }
}

/* Half byte by half byte, VECTORS vectors of it. */
static void pack(const char *const *rows, int64_t words, void *unit)
{
    __m256i *to = unit;
    for (int64_t w = 0; w < words; w++)
        for (int u = 0; u < VECTORS; u++)
            pack_word(rows + u * WIDE, w, to + w * WORD * VECTORS + u);
}

/* Each half byte as the place of its table. */
static void prepare(const char *row, int64_t words, void *query)
{
    uint16_t *to = query;
    for (int64_t i = 0; i < 4 * words; i++) {
        const unsigned byte = (unsigned char)row[i];
        to[2 * i] = (uint16_t)((byte & 15) * WIDE);
        to[2 * i + 1] = (uint16_t)((byte >> 4) * WIDE);
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

/* The sums of `words` words, at most DEEP, for two queries. at: the unit's rows; sums begin at 0. */
static inline __attribute__((always_inline)) void count(const uint16_t *const *place, const __m256i *at, int64_t words,
                                                        __m256i (*sum)[VECTORS])
{
    __m256i s0[VECTORS], s1[VECTORS];
    for (int u = 0; u < VECTORS; u++)
        s0[u] = s1[u] = _mm256_setzero_si256();
    const uint16_t *p0 = place[0], *p1 = place[1];
    for (int64_t w = 0; w < words; w++, at += WORD * VECTORS, p0 += WORD, p1 += WORD) {
#pragma GCC unroll 8
        for (int i = 0; i < WORD; i++) {
            const __m256i t0 = _mm256_load_si256((const __m256i *)((const char *)differences + p0[i])),
                          t1 = _mm256_load_si256((const __m256i *)((const char *)differences + p1[i]));
#pragma GCC unroll 4
            for (int u = 0; u < VECTORS; u++) {
                __m256i rows = _mm256_load_si256(at + i * VECTORS + u);
                __asm__("" : "+x"(rows)); /* one load for both */
                s0[u] = _mm256_add_epi8(s0[u], _mm256_shuffle_epi8(t0, rows));
                s1[u] = _mm256_add_epi8(s1[u], _mm256_shuffle_epi8(t1, rows));
                /* else they are added up in another order, which needs more registers than there are */
                __asm__("" : "+x"(s0[u]), "+x"(s1[u]));
            }
        }
    }
    for (int u = 0; u < VECTORS; u++) {
        sum[0][u] = s0[u];
        sum[1][u] = s1[u];
    }
}

/* Two queries and a unit. */
static inline __attribute__((always_inline)) void few(const uint16_t *const *query, const __m256i *at, int64_t words,
                                                      uint32_t *distance)
{
    __m256i sum[PAIR][VECTORS];
    for (int64_t begin = 0; begin < words; begin += SPAN) {
        const int64_t end = words - begin < SPAN ? words : begin + SPAN;
        struct wide wide[PAIR][VECTORS];
        memset(wide, 0, sizeof wide);
        for (int64_t w = begin; w < end; w += DEEP) {
            const uint16_t *const place[PAIR] = {query[0] + w * WORD, query[1] + w * WORD};
            count(place, at + w * WORD * VECTORS, end - w < DEEP ? end - w : DEEP, sum);
            for (int q = 0; q < PAIR; q++)
                for (int u = 0; u < VECTORS; u++)
                    widen(sum[q][u], &wide[q][u]);
        }
        for (int q = 0; q < PAIR; q++)
            for (int u = 0; u < VECTORS; u++)
                put(wide[q][u], begin == 0, distance + q * MATCH_ROWS + u * WIDE);
    }
}

static void distances(const void *const *queries, const void *units, int count_units, int64_t words, uint32_t *distance)
{
    for (int u = 0; u < count_units; u++)
        for (int q = 0; q < MATCH_QUERIES; q += PAIR) {
            const uint16_t *const two[PAIR] = {queries[q], queries[q + 1]};
            few(two, (const __m256i *)units + u * words * WORD * VECTORS, words, distance + q * MATCH_ROWS + u * UNIT);
        }
}

void mf_match_kernels_avx2(struct match_kernels *k)
{
    *k = (struct match_kernels){"avx2", LANES,   PICK_SHIFT, UNIT,     unit_bytes, query_bytes,
                                pack,   prepare, distances,  best_two, columns,    next_below};
}
