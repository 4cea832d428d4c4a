/* What an instruction set gives for matching: the distances of a few queries to a tile of rows, and picking from them.
 *
 * Rows lie "vertically": a unit of rows is packed so that a vector has the same part of each of them, and one
 * instruction works on that many comparisons. Distances go to a tile in the nearest cache; the rest finds them
 * there. */
#ifndef MF_MATCH_TILE_H
#define MF_MATCH_TILE_H

#include <stdint.h>

enum {
    MATCH_QUERIES = 4,    /* queries of a tile */
    MATCH_ROWS = 256,     /* rows of a tile: a multiple of every unit */
    MATCH_SEGMENT = 2048, /* rows that are numbered in the low bits of a 32-bit key */
    MATCH_CHUNK_BITS = 6  /* of the number of a query among those that share the rows' keys */
};

struct match_kernels {
    const char *name;
    int lanes; /* rows a vector of distances has */
    int shift; /* MATCH_SEGMENT = lanes << shift */
    int unit;  /* rows packed together, a multiple of lanes */
    int64_t (*unit_bytes)(int64_t words);
    int64_t (*query_bytes)(int64_t words);
    /* Packs `unit` rows; null pointers are rows of zeros. unit is aligned to 64 bytes. */
    void (*pack)(const char *const *rows, int64_t words, void *unit);
    /* What distances reads of a query. */
    void (*prepare)(const char *row, int64_t words, void *query);
    /* distance[q * MATCH_ROWS + r] for MATCH_QUERIES queries and the rows of so many units one after the other. */
    void (*distances)(const void *const *queries, const void *units, int count, int64_t words, uint32_t *distance);
    /* For every lane the two least keys, distance << shift | number of the vector, `first` being that of the first;
     * state: lanes least ones, then lanes second ones. rows: a multiple of lanes. */
    void (*best_two)(const uint32_t *distance, int rows, uint32_t first, uint32_t *state);
    /* least[r] = min(least[r], distance[r] << MATCH_CHUNK_BITS | query). */
    void (*columns)(const uint32_t *distance, int rows, uint32_t query, uint32_t *least);
    /* The first r >= from with distance[r] < limit, or rows. */
    int (*next_below)(const uint32_t *distance, int from, int rows, uint32_t limit);
};

void mf_match_kernels_scalar(struct match_kernels *k);
void mf_match_kernels_avx2(struct match_kernels *k);
void mf_match_kernels_avx512(struct match_kernels *k);
void mf_match_kernels_neon(struct match_kernels *k);

#endif
