/* Kernels of mf_match ahead: the two nearest of rows of 256, 512 and 2048 bits, with and without the cross-check, by
 * the solvers that the library chooses. They serve any counts of rows, where these lie one after the other. */
#include "warm_match.h"

struct call {
    const char *name, *solver;
    int words;
    uint32_t tests;
};

/* Solver tensor searches for the cross-check with the same kernel. */
static const struct call calls[] = {
    {"match, 256 bits, k 2, tensor", "tensor", 8, MF_MATCH_CROSS_CHECK},
    {"match, 512 bits, k 2, tensor", "tensor", 16, MF_MATCH_CROSS_CHECK},
    {"match, 2048 bits, k 2, tensor", "tensor", 64, MF_MATCH_CROSS_CHECK},
    {"match, 256 bits, k 2, popc", "popc", 8, 0},
    {"match, 512 bits, k 2, popc", "popc", 16, 0},
    {"match, 2048 bits, k 2, popc", "popc", 64, 0},
    {"match, 256 bits, k 2, popc, cross-check", "popc", 8, MF_MATCH_CROSS_CHECK},
    {"match, 512 bits, k 2, popc, cross-check", "popc", 16, MF_MATCH_CROSS_CHECK},
    {"match, 2048 bits, k 2, popc, cross-check", "popc", 64, MF_MATCH_CROSS_CHECK},
};

const char *warm_match_name(int number)
{
    return number < (int)(sizeof calls / sizeof *calls) ? calls[number].name : NULL;
}

mf_status warm_match(mf_device *device, int number, struct gpu_usage *usage)
{
    enum { ROWS = 1000, KEEP = 2 };
    const int64_t rows[2] = {ROWS, calls[number].words}, found[2] = {ROWS, KEEP}, one[1] = {ROWS};
    DLTensor q = mf_tensor(NULL, MF_U32, 2, rows), t = mf_tensor(NULL, MF_U32, 2, rows),
             i = mf_tensor(NULL, MF_I32, 2, found), m = mf_tensor(NULL, MF_I32, 1, one);
    q.device.device_type = t.device.device_type = i.device.device_type = m.device.device_type =
        (DLDeviceType)mf_device_kind(device);
    const mf_match_input in = {.queries = &q, .train = &t};
    const mf_match_output out = {.indices = &i, .matches = &m};
    const mf_match_options options = {.solver = calls[number].solver, .tests = calls[number].tests};
    return mf_match_compile(device, &in, &out, &options, usage);
}
