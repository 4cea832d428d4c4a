/* Matching in plain C: the specification of the others. Rows lie as they are; bits are counted in the bytes of a
 * 64-bit word at once, 13 operations for 64 bits. */
#include <string.h>

#include "tile.h"

#define PICK_LANES 1
#define PICK_SHIFT 11
#define pick_vec uint32_t
#define pick_load(p) (*(p))
#define pick_store(p, v) (*(p) = (v))
#define pick_number(x, n) (uint32_t)(x)
#define pick_min(a, b) ((a) < (b) ? (a) : (b))
#define pick_max(a, b) ((a) > (b) ? (a) : (b))
#define pick_add(a, b) ((a) + (b))
#define pick_key(v, number, n) ((v) << (n) | (number))
#define pick_any_below(v, limit) ((v) < (limit))
#include "select.inc"

static int64_t row_bytes(int64_t words)
{
    return 4 * words;
}

static void pack(const char *const *rows, int64_t words, void *unit)
{
    if (rows[0])
        memcpy(unit, rows[0], (size_t)(4 * words));
    else
        memset(unit, 0, (size_t)(4 * words));
}

static void prepare(const char *row, int64_t words, void *query)
{
    memcpy(query, row, (size_t)(4 * words));
}

/* The bits of each byte, in that byte. */
static inline uint64_t count_bytes(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
}

static uint32_t distance_of(const char *a, const char *b, int64_t words)
{
    enum { MOST = 31 }; /* counts of 8 that a byte can add up */
    uint64_t x, y;
    uint32_t sum = 0, last, other;
    int64_t w = 0;
    while (w + 2 <= words) {
        uint64_t bytes = 0;
        for (int i = 0; i < MOST && w + 2 <= words; i++, w += 2) {
            memcpy(&x, a + 4 * w, 8);
            memcpy(&y, b + 4 * w, 8);
            bytes += count_bytes(x ^ y);
        }
        bytes = (bytes & 0x00ff00ff00ff00ffu) + (bytes >> 8 & 0x00ff00ff00ff00ffu);
        sum += (uint32_t)(bytes * 0x0001000100010001u >> 48);
    }
    if (w == words)
        return sum;
    memcpy(&last, a + 4 * w, 4);
    memcpy(&other, b + 4 * w, 4);
    return sum + (uint32_t)(count_bytes(last ^ other) * 0x0101010101010101u >> 56);
}

static void distances(const void *const *queries, const void *units, int count, int64_t words, uint32_t *distance)
{
    for (int r = 0; r < count; r++)
        for (int q = 0; q < MATCH_QUERIES; q++)
            distance[q * MATCH_ROWS + r] = distance_of(queries[q], (const char *)units + 4 * words * r, words);
}

void mf_match_kernels_scalar(struct match_kernels *k)
{
    *k = (struct match_kernels){"scalar", 1,       PICK_SHIFT, 1,        row_bytes, row_bytes,
                                pack,     prepare, distances,  best_two, columns,   next_below};
}
