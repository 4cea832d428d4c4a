/* The halving tree over rows, by chains: a lane first meets the one that is furthest away, then those that others have
 * made, each nearer than the one before. So a node's left descendants and their right neighbours are one chain. */
#include "lanes.h"

void mf_fold_lanes(const struct lanes *lanes, const void *const *x, int row, int step, int count, char *to, char *spare)
{
    enum { MOST = 8 };
    const void *lane[MOST], *joined[MOST];
    int made = 0, steps = 0, n = 1;
    for (; row + 3 * (step << made) < count; made++) /* the longest first, so that it needs no more room */
        mf_fold_lanes(lanes, x, row + (step << made), step << (made + 1), count, spare + made * lanes->spare_bytes,
                      spare + (made + 1) * lanes->spare_bytes);
    while (row + (step << steps) < count)
        steps++;
    lane[0] = x[row];
    for (int k = steps - 1; k >= made; k--)
        lane[n++] = x[row + (step << k)];
    for (int k = 0; k < made; k++)
        joined[k] = spare + (made - 1 - k) * lanes->spare_bytes;
    lanes->chain(to, NULL, lane, n, lanes->n, NULL);
    if (made)
        lanes->join(to, to, joined, made, lanes->n, NULL);
}
