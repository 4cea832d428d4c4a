/* modefold_match: nearest neighbours of bit strings by Hamming distance.
 *
 * For every row of queries the k nearest rows of train, in one pass that keeps no table of distances; on a GPU nothing
 * grows with queries x train. The same results on every instruction set, thread count and device: distances are exact,
 * and of rows at the same distance the one with the smallest index is nearer.
 *
 *     #include <modefold_match.h>
 *
 *     uint64_t q[1000][8], t[5000][8];                         // 512 bits a row
 *     int32_t match[1000];
 *     int64_t qs[2] = {1000, 8}, ts[2] = {5000, 8};
 *     DLTensor queries = mf_tensor(q, MF_U64, 2, qs), train = mf_tensor(t, MF_U64, 2, ts);
 *     DLTensor matches = mf_tensor(match, MF_I32, 1, qs);
 *     mf_match_input in = {&queries, &train};
 *     mf_match_output out = {.matches = &matches};
 *     mf_match_options options = {.tests = MF_MATCH_DIFFERENCE, .difference = 25};
 *     mf_match(cpu, &in, &out, &options, NULL);                // match[i]: a row of t, or -1
 *
 * Statuses, sentences, devices and tensors are those of modefold.h. */
#ifndef MODEFOLD_MATCH_H
#define MODEFOLD_MATCH_H

#include <modefold.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    MF_MATCH_MAX_K = 16,        /* the most neighbours of one row */
    MF_MATCH_MAX_BITS = 1 << 20 /* of one row */
};

/* What is compared. Start from {0}.
 *
 * queries, train  Q x V and T x W elements of any integer types: a row is a string of bits, 32 to MF_MATCH_MAX_BITS of
 *                 them, a multiple of 32, as many in both. A row's elements lie one after the other; rows may have
 *                 any stride, on a GPU a multiple of 4 bytes. Q and T may be 0, and are below 2^31.
 * query_mask, train_mask   Q and T elements of bool, u8 or i8, one after the other: rows whose element is 0 take no
 *                 part. Null: all do.
 * pair_mask       Q x C of the same types, C at least the rows of every train set: where it is 0, this query and this
 *                 row of its train set are not compared. Its rows may have any stride. Null: all are.
 * pairs           0: all queries are compared with all of train. Else a batch of that many pairs of sets: queries
 *                 query_start[p] ... query_start[p + 1] - 1 with the rows of train from train_start[p] on. Both have
 *                 pairs + 1 numbers, in the CPU's memory, from 0 up to Q and T; sets may be empty. */
typedef struct mf_match_input {
    const DLTensor *queries, *train;
    const DLTensor *query_mask, *train_mask, *pair_mask;
    int64_t pairs;
    const int64_t *query_start, *train_start;
} mf_match_input;

/* What is wanted; null: not. All are i32, row-major without gaps. Indices are positions in the pair's other set.
 *
 * indices, distances   Q x k, 1 <= k <= MF_MATCH_MAX_K: the nearest first. Where there are fewer than k rows to compare
 *                      with, the index is -1 and the distance INT32_MAX.
 * matches              Q: the nearest row if it passes all tests of the options, else -1.
 * train_indices, train_distances   T: the nearest query of every row of train. */
typedef struct mf_match_output {
    const DLTensor *indices, *distances;
    const DLTensor *matches;
    const DLTensor *train_indices, *train_distances;
} mf_match_output;

/* The tests of matches. d1 and d2 are the distances of the nearest and the second nearest row; where there is no second
 * one, the difference and the ratio pass. */
enum {
    MF_MATCH_DIFFERENCE = 1,   /* d2 - d1 >= difference (Parker and MacKinnon, Multi-Reduction, section 8) */
    MF_MATCH_RATIO = 2,        /* d1 < ratio * d2, with the ratio rounded to 16 binary places */
    MF_MATCH_MAX_DISTANCE = 4, /* d1 <= max_distance */
    MF_MATCH_CROSS_CHECK = 8   /* and the query is the nearest of that row of train */
};

/* Wishes. Start from {0}: no test, the library chooses. */
typedef struct mf_match_options {
    uint32_t tests;                   /* MF_MATCH_DIFFERENCE and so on, added */
    int64_t difference, max_distance; /* bits, not negative */
    double ratio;                     /* 0 to 1 */
    int threads;                      /* on the CPU at most this many; 0: the device's */
    const char *solver; /* on a GPU "popc", "multi" or "tensor" (CUDA from sm_80 on); null: the library chooses */
    void *workspace;    /* on a GPU: memory of the device; null: the call allocates, waits and frees */
    int64_t workspace_bytes;
} mf_match_options;

/* Finds them. options may be null. On the CPU stream is null. On a GPU it is as in mf_plan_execute, all tensors are in
 * the device's memory, 4-byte aligned, and with a workspace the call only puts work into the stream: nothing is
 * allocated and nobody waits once its kernels are compiled, which the first call of a kind does.
 * Outputs overlap nothing.
 * Errors: MF_ERROR_ARGUMENT a null, an option, starts that decrease or end elsewhere; MF_ERROR_SHAPE; MF_ERROR_TYPE;
 * MF_ERROR_OVERLAP; MF_ERROR_OVERFLOW rows or a workspace beyond what is said above; MF_ERROR_MEMORY;
 * MF_ERROR_UNSUPPORTED a solver that does not do this; MF_ERROR_DEVICE. */
MF_API mf_status mf_match(mf_device *device, const mf_match_input *input, const mf_match_output *output,
                          const mf_match_options *options, void *stream);

/* The bytes of workspace that the same call of mf_match wants: 0 on the CPU. Tensors' data are not looked at. */
MF_API mf_status mf_match_workspace(mf_device *device, const mf_match_input *input, const mf_match_output *output,
                                    const mf_match_options *options, int64_t *bytes);

#ifdef __cplusplus
}
#endif

#endif
