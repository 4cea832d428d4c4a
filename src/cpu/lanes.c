/* The halving tree over rows, by chains: a lane of one row first meets the one that is furthest away, then those that
 * others have made, each nearer than the one before. So a node's left descendants and their right neighbours are one
 * chain. */
#include "lanes.h"

void mf_fold_lanes(const struct lanes *lanes, const void *const *x, int row, int step, int count, char *to, char *spare)
{
    const void *lane[STEPS], *joined[LANE_ROWS];
    const int is_long = count > LANES, all = is_long ? LANES : count;
    int made = 0, n = 0;
    for (; row + (is_long ? 1 : 3) * (step << made) < all;
         made++) /* the longest first, so that it needs no more room */
        mf_fold_lanes(lanes, x, row + (step << made), step << (made + 1), count, spare + made * lanes->spare_bytes,
                      spare + (made + 1) * lanes->spare_bytes);
    for (int e = row; e < count; e += LANES)
        lane[n++] = x[e];
    int k = made;
    while (row + (step << k) < all)
        k++;
    while (--k >= made)
        lane[n++] = x[row + (step << k)];
    for (k = 0; k < made; k++)
        joined[k] = spare + (made - 1 - k) * lanes->spare_bytes;
    lanes->chain(to, NULL, lane, n, lanes->n, NULL);
    if (made)
        lanes->join(to, to, joined, made, lanes->n, NULL);
}
