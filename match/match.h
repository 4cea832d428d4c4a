/* A checked call of mf_match, as the CPU's and the GPU's code see it. */
#ifndef MF_MATCH_INTERNAL_H
#define MF_MATCH_INTERNAL_H

#include <modefold_match.h>

#include "gpu/gpu.h"
#include "plan.h"

/* One tensor: where element 0 is, and the bytes from row to row. data null: not there. */
struct match_rows {
    const char *data;
    int64_t stride;
    uint64_t offset; /* already in data on the CPU; on a GPU behind it */
};

enum { MATCH_NO_DISTANCE = INT32_MAX, MATCH_RATIO_ONE = 1 << 16 };

struct match {
    mf_device *device;
    int64_t query_count, train_count, words; /* 32-bit words of a row */
    struct match_rows queries, train, query_mask, train_mask, pair_mask;
    int64_t pairs; /* at least 1 */
    const int64_t *query_start, *train_start;
    int64_t whole[2][2]; /* the starts of the one pair when there is no batch */
    int k;               /* columns of the outputs: 0 when neither is wanted */
    int keep;            /* neighbours to find: k, or more for the tests */
    struct match_rows indices, distances, matches, train_indices, train_distances;
    int columns; /* whether the nearest queries of train's rows are needed */
    int matches_wanted;
    uint32_t tests;
    int64_t difference, max_distance, ratio; /* ratio: in 1/65536 */
    int threads;
    const char *solver;
};

/* A neighbour as one number, ordered as neighbours are: distance, then index. */
#define MATCH_NONE UINT64_MAX
static inline uint64_t match_key(uint32_t distance, uint32_t index)
{
    return (uint64_t)distance << 32 | index;
}

mf_status mf_match_on_cpu(const struct match *match);
mf_status mf_match_on_gpu(const struct match *match, void *workspace, int64_t bytes, void *stream);
/* Compiles what the call would launch, and says the most registers and stack of a kernel and the spills of all. */
mf_status mf_match_gpu_compile(const struct match *match, struct gpu_usage *usage);
/* The same of a call as mf_match gets it, for tests. */
mf_status mf_match_compile(mf_device *device, const mf_match_input *input, const mf_match_output *output,
                           const mf_match_options *options, struct gpu_usage *usage);
mf_status mf_match_gpu_workspace(const struct match *match, int64_t *bytes);

#endif
