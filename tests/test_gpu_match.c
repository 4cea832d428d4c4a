/* mf_match on opencl:0 (PoCL where there is no GPU) and, where there is one, cuda:0: random problems with each solver
 * against a double loop; the errors of GPUs; and for CUDA without a GPU, that the kernels compile and do not spill.
 * MODEFOLD_GPU_MATCH_COUNT and _SEED take other problems. */
#include "gpu_test.h"

#include <modefold_match.h>

#include "error.h"
#include "../match/match.h"
#include "match_problem.h"

static const char *const solvers[] = {NULL, "multi", "tensor"};

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

/* Problems that a solver does not do say so, and are not counted. */
static void test_random(const char *name)
{
    mf_device *device;
    char error[400];
    if (mf_device_open(name, &device) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    const int64_t count = number_of("MODEFOLD_GPU_MATCH_COUNT", 1000), seed = number_of("MODEFOLD_GPU_MATCH_SEED", 1);
    int64_t done[3] = {0}, right[3] = {0}, refused[3] = {0};
    for (int64_t n = 0; n < count; n++) {
        struct match_problem p;
        match_problem_make((uint64_t)(seed + n), 1, &p);
        match_problem_solve(&p);
        for (int s = 0; s < 3; s++) {
            if (s && n % 4)
                continue;
            p.options.solver = solvers[s];
            int64_t bytes;
            if (s && mf_match_workspace(device, &p.input, &p.output, &p.options, &bytes) == MF_ERROR_UNSUPPORTED &&
                CHECK(strstr(mf_error(), "does not do rows of")))
                refused[s]++;
            else if (++done[s])
                right[s] += CHECK_MSG(!match_problem_run(&p, device, error, sizeof error), "%s %s: %s", name,
                                      solvers[s] ? solvers[s] : "popc", error);
        }
        match_problem_free(&p);
    }
    for (int s = 0; s < 3; s++)
        printf("%s, %s: %lld of %lld problems right, %lld refused\n", name, solvers[s] ? solvers[s] : "popc",
               (long long)right[s], (long long)done[s], (long long)refused[s]);
    mf_device_close(device);
}

/* ---- CUDA's compiler ---- */

static struct {
    uint32_t q[64], t[64];
    int32_t out[64], more[4];
} data;

/* All kernels of a call on sm:N. */
static void compile(mf_device *device, int words, int k, const char *solver, int columns)
{
    const int64_t shape[2] = {1, words}, outs[2] = {1, k}, one[1] = {1};
    DLTensor q = mf_tensor(data.q, MF_U32, 2, shape), t = mf_tensor(data.t, MF_U32, 2, shape),
             i = mf_tensor(data.out, MF_I32, 2, outs), m = mf_tensor(data.more, MF_I32, 1, one);
    q.device.device_type = t.device.device_type = i.device.device_type = m.device.device_type = kDLCUDA;
    const mf_match_input in = {.queries = &q, .train = &t};
    const mf_match_output out = {.indices = &i, .matches = &m};
    const mf_match_options options = {.tests = columns ? MF_MATCH_CROSS_CHECK : 0, .solver = solver};
    struct gpu_usage usage = {0};
    const mf_status status = mf_match_compile(device, &in, &out, &options, &usage);
    CHECK_MSG(status == MF_OK && usage.registers > 0 && usage.spilled == 0, "%s, %d words, k %d: %s; %d spilled",
              solver, words, k, status == MF_OK ? "" : mf_error(), usage.spilled);
    printf("    %-7s %3d words k %2d%s: %d registers, %d bytes of stack\n", solver, words, k, columns ? " columns" : "",
           usage.registers, usage.stack);
}

static void test_compile(int architecture)
{
    static const int words[] = {8, 16, 64, 70}, ks[] = {2, 16};
    char name[32];
    mf_device *device;
    snprintf(name, sizeof name, "sm:%d", architecture);
    if (mf_device_open(name, &device) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    printf("%s\n", name);
    for (int w = 0; w < 4; w++) {
        for (int k = 0; k < 2; k++)
            compile(device, words[w], ks[k], "popc", k == 0);
        for (int s = 1; s < 3 && words[w] <= 64; s++)
            compile(device, words[w], 2, solvers[s], 0);
    }
    mf_device_close(device);
}

int main(void)
{
    gpu_test_environment("off");
    test_compile(80);
    test_compile(90);
    test_random("opencl:0");
    test_random("cuda:0");
    return check_done("test_gpu_match");
}
