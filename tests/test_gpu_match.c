/* mf_match on opencl:0 (PoCL where there is no GPU) and, where there is one, cuda:0: random problems with each solver
 * against a double loop; the errors of GPUs; and for CUDA without a GPU, that the kernels compile and do not spill.
 * MODEFOLD_GPU_MATCH_COUNT and _SEED take other problems. */
#include "gpu_test.h"

#include <modefold_match.h>

#include "cache_folder.h"
#include "error.h"
#include "match_problem.h"
#include "warm_match.h"

/* The last one with numbers of its own: splits of few rows, two tiles of rows together. */
static const char *const solvers[] = {NULL, "popc", "multi", "tensor", "tensor:3:4:1:2"};
enum { SOLVERS = sizeof solvers / sizeof *solvers };

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

/* Whether the solver does this problem; if not it says so. */
static int does(mf_device *device, struct match_problem *p, const char *solver)
{
    int64_t bytes;
    p->options.solver = solver;
    for (int i = 0; i < MATCH_TENSORS; i++) /* wherever the device is */
        memset(&p->tensor[i].device, 0, sizeof p->tensor[i].device);
    const mf_status status = mf_match_workspace(device, &p->input, &p->output, &p->options, &bytes);
    if (status == MF_ERROR_UNSUPPORTED)
        CHECK(strstr(mf_error(), "does not do rows of"));
    return status != MF_ERROR_UNSUPPORTED;
}

static void test_random(const char *name)
{
    mf_device *device;
    char error[400];
    if (mf_device_open(name, &device) != MF_OK) {
        check_skip(name, mf_error());
        return;
    }
    const int64_t count = number_of("MODEFOLD_GPU_MATCH_COUNT", 200), seed = number_of("MODEFOLD_GPU_MATCH_SEED", 1);
    for (int s = 0; s < SOLVERS; s++) {
        const int64_t wanted = s ? (count + 3) / 4 : count; /* the library's own choice, then those by name */
        int64_t done = 0, right = 0;
        for (int64_t n = 0; done < wanted && n < 100 * count; n++) {
            struct match_problem p;
            match_problem_make((uint64_t)(seed + n), 1, &p);
            if (does(device, &p, solvers[s])) {
                match_problem_solve(&p);
                right += CHECK_MSG(!match_problem_run(&p, device, error, sizeof error), "%s %s: %s", name,
                                   solvers[s] ? solvers[s] : "by itself", error);
                done++;
            }
            match_problem_free(&p);
        }
        CHECK(done == wanted);
        printf("%s, %s: %lld of %lld problems right\n", name, solvers[s] ? solvers[s] : "by itself", (long long)right,
               (long long)done);
    }
    mf_device_close(device);
}

/* ---- errors ---- */

/* Ten queries and rows of so many words on the device. */
static struct call {
    void *memory[3];
    int64_t shape[2], strides[2], out_shape[2];
    DLTensor queries, train, indices;
    mf_match_input in;
    mf_match_output out;
    mf_match_options options;
} c;

static void make_call(int64_t words)
{
    c.shape[0] = c.out_shape[0] = 10;
    c.shape[1] = c.strides[0] = words;
    c.strides[1] = 1;
    c.out_shape[1] = 2;
    c.queries = mf_tensor(c.memory[0], MF_U32, 2, c.shape);
    c.train = mf_tensor(c.memory[1], MF_U32, 2, c.shape);
    c.indices = mf_tensor(c.memory[2], MF_I32, 2, c.out_shape);
    c.queries.device.device_type = c.train.device.device_type = c.indices.device.device_type = kDLOpenCL;
    c.in = (mf_match_input){.queries = &c.queries, .train = &c.train};
    c.out = (mf_match_output){.indices = &c.indices};
    c.options = (mf_match_options){0};
}

static void fails(mf_device *device, mf_status status, const char *part, int line)
{
    const mf_status got = mf_match(device, &c.in, &c.out, &c.options, NULL);
    check_at(got == status && strstr(mf_error(), part), __FILE__, line, "%s says \"%s\", not %s with \"%s\"",
             mf_status_name(got), mf_error(), mf_status_name(status), part);
    make_call(16);
}
#define FAILS(status, part) fails(device, status, part, __LINE__)

static void test_errors(void)
{
    mf_device *device;
    int64_t bytes = 0;
    if (mf_device_open("opencl:0", &device) != MF_OK) {
        check_skip("errors of opencl:0", mf_error());
        return;
    }
    for (int i = 0; i < 3; i++)
        CHECK(mf_memory_create(device, 10 * 64 * 4, &c.memory[i]) == MF_OK);
    make_call(16);
    CHECK(mf_match(device, &c.in, &c.out, NULL, NULL) == MF_OK);
    CHECK(mf_match_workspace(device, &c.in, &c.out, NULL, &bytes) == MF_OK && bytes >= 10 * 2 * 8);
    c.options.solver = "sorting";
    FAILS(MF_ERROR_ARGUMENT, "there is no solver \"sorting\"");
    c.options.solver = "tensor:0:0:3";
    FAILS(MF_ERROR_ARGUMENT, "number 3 of solver \"tensor:0:0:3\" is 3; splits go up to 32767, blocks up to 8, tiles");
    make_call(9);
    c.options.solver = "multi";
    FAILS(MF_ERROR_UNSUPPORTED, "solver multi does not do rows of 288 bits");
    c.out_shape[1] = 3;
    c.options.solver = "tensor";
    FAILS(MF_ERROR_UNSUPPORTED, "solver tensor does not do rows of 512 bits with 3 neighbours");
    c.options.workspace = c.memory[1];
    c.options.workspace_bytes = bytes - 1;
    FAILS(MF_ERROR_ARGUMENT, "255 bytes and 256 are needed");
    c.queries.dtype = c.train.dtype = mf_dtype(MF_U8);
    c.queries.strides = c.strides;
    c.strides[0] = 17;
    FAILS(MF_ERROR_ARGUMENT, "17 apart; a GPU wants multiples of 4");
    c.train.byte_offset = 2;
    FAILS(MF_ERROR_ARGUMENT, "begin at byte 2");
    c.indices.device.device_type = kDLCPU;
    FAILS(MF_ERROR_UNSUPPORTED, "indices is in the memory of DLPack device type 1, not of opencl:0");
    c.queries.data = NULL;
    FAILS(MF_ERROR_ARGUMENT, "the data of queries are null");
    c.indices.data = c.memory[0];
    FAILS(MF_ERROR_OVERLAP, "indices overlaps queries");
    for (int i = 0; i < 3; i++)
        mf_memory_destroy(device, c.memory[i]);
    mf_device_close(device);
}

/* A device of its own, whose kernels are not compiled yet, and this many allocations in the call. */
static mf_status call_with(int allocations)
{
    mf_device *device;
    if (mf_device_open("opencl:0", &device) != MF_OK)
        return MF_ERROR_DEVICE;
    for (int i = 0; i < 3; i++)
        CHECK(mf_memory_create(device, 10 * 64 * 4, &c.memory[i]) == MF_OK);
    make_call(16);
    mf_alloc_budget = allocations;
    const mf_status status = mf_match(device, &c.in, &c.out, NULL, NULL);
    mf_alloc_budget = -1;
    for (int i = 0; i < 3; i++)
        mf_memory_destroy(device, c.memory[i]);
    mf_device_close(device);
    return status;
}

static void test_memory(void)
{
    mf_status status = MF_ERROR_MEMORY;
    int allocations = 0;
    while (status == MF_ERROR_MEMORY && allocations < 200)
        status = call_with(allocations++);
    if (status == MF_ERROR_DEVICE)
        check_skip("allocations that fail on opencl:0", mf_error());
    else
        CHECK_MSG(status == MF_OK && allocations > 3, "with %d allocations: %s", allocations, mf_error());
}

/* ---- CUDA's compiler ---- */

static struct {
    uint32_t q[64], t[64];
    int32_t out[64], more[4];
    uint8_t mask[4];
} data;

/* All kernels of a call on sm:N. */
static void compile(mf_device *device, int words, int k, const char *solver, int columns, int masks)
{
    const int64_t shape[2] = {1, words}, outs[2] = {1, k}, one[1] = {1};
    DLTensor q = mf_tensor(data.q, MF_U32, 2, shape), t = mf_tensor(data.t, MF_U32, 2, shape),
             i = mf_tensor(data.out, MF_I32, 2, outs), m = mf_tensor(data.more, MF_I32, 1, one),
             mask = mf_tensor(data.mask, MF_BOOL, 1, one);
    q.device.device_type = t.device.device_type = i.device.device_type = m.device.device_type = kDLCUDA;
    mask.device = q.device;
    const mf_match_input in = {
        .queries = &q, .train = &t, .query_mask = masks ? &mask : NULL, .train_mask = masks ? &mask : NULL};
    const mf_match_output out = {.indices = &i, .matches = &m};
    const mf_match_options options = {.tests = columns ? MF_MATCH_CROSS_CHECK : 0, .solver = solver};
    struct gpu_usage usage = {0};
    const mf_status status = mf_match_compile(device, &in, &out, &options, &usage);
    /* more is what compiling again after spills gives, as popc for sm_100; tensor takes what two blocks leave it */
    const int all = !strncmp(solver, "tensor", 6) || strstr(mf_device_describe(device), "sm_100"),
              most = all ? 255 : 192;
    CHECK_MSG(status == MF_OK && usage.registers > 0 && usage.registers <= most && usage.spilled == 0,
              "%s, %s, %d words, k %d: %s; %d spilled", mf_device_describe(device), solver, words, k,
              status == MF_OK ? "" : mf_error(), usage.spilled);
    printf("    %-7s %3d words k %2d%s: %d registers, %d bytes of stack\n", solver, words, k, columns ? " columns" : "",
           usage.registers, usage.stack);
}

/* The tensor kernel keeps a row's place in 18 bits beside distances of 2048: more rows are more splits, of 16 bytes a
 * query each. */
static void test_large(mf_device *device)
{
    const int64_t query_shape[2] = {1000000, 64}, train_shape[2] = {(int64_t)5 << 18, 64}, out_shape[2] = {1000000, 2};
    DLTensor q = mf_tensor(NULL, MF_U32, 2, query_shape), t = mf_tensor(NULL, MF_U32, 2, train_shape),
             i = mf_tensor(NULL, MF_I32, 2, out_shape);
    q.device.device_type = t.device.device_type = i.device.device_type = kDLCUDA;
    const mf_match_input in = {.queries = &q, .train = &t};
    const mf_match_output out = {.indices = &i};
    mf_match_options options = {.solver = "tensor:1"};
    int64_t bytes[2] = {0};
    CHECK(mf_match_workspace(device, &in, &out, &options, &bytes[0]) == MF_OK);
    options.solver = "tensor:6";
    CHECK(mf_match_workspace(device, &in, &out, &options, &bytes[1]) == MF_OK);
    CHECK_MSG(bytes[1] - bytes[0] == 16 * query_shape[0], "%lld and %lld bytes", (long long)bytes[0],
              (long long)bytes[1]);
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
            for (int columns = 0; columns < 2; columns++)
                compile(device, words[w], ks[k], "popc", columns, 0);
        for (int s = 2; s < SOLVERS && words[w] <= 64; s++)
            for (int masks = 0; masks < 2; masks++)
                compile(device, words[w], 2, solvers[s], 0, masks);
    }
    for (int words_between = 24; words_between < 64; words_between += 8) /* by itself, every length of tensor's */
        for (int masks = 0; masks < 2; masks++)
            compile(device, words_between, 2, "tensor", 0, masks);
    test_large(device);
    mf_device_close(device);
}

/* What modefold warm compiles is what calls look for. */
static void test_warm(void)
{
    static const char *const chosen[] = {"tensor", "popc"};
    static const int words[] = {8, 16, 64};
    struct gpu_usage usage;
    mf_device *device;
    if (mf_device_open("sm:90", &device) != MF_OK) {
        check_skip("modefold warm's kernels", mf_error());
        return;
    }
    use_cache("cache-match");
    for (int i = 0; warm_match_name(i); i++)
        CHECK_MSG(warm_match(device, i, &usage) == MF_OK && !usage.spilled, "%s: %d spilled, %s", warm_match_name(i),
                  usage.spilled, mf_error());
    mf_device_close(device);
    const int entries = count_entries("cache-match");
    CHECK(entries > 0 && mf_device_open("sm:90", &device) == MF_OK);
    for (int w = 0; w < 3; w++)
        for (int columns = 0; columns < 2; columns++)
            for (int s = 0; s < 2; s++)
                compile(device, words[w], 1 + columns, chosen[s], columns, 0);
    CHECK_MSG(count_entries("cache-match") == entries, "%d kernels after the calls, %d before",
              count_entries("cache-match"), entries);
    mf_device_close(device);
    use_cache("cache-match");
    setenv("MODEFOLD_CACHE", "off", 1);
}

int main(void)
{
    gpu_test_environment("off");
    test_errors();
    test_memory();
    gpu_test_keep_compiled(1);
    test_compile(80);
    test_compile(90);
    test_compile(100);
    gpu_test_keep_compiled(0);
    test_warm();
    test_random("opencl:0");
    test_random("cuda:0");
    return check_done("test_gpu_match");
}
