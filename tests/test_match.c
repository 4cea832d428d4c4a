/* mf_match on the CPU, against a plain double loop: 1,000 random problems with every instruction set; what each error
 * says; and allocations that fail. MODEFOLD_MATCH_COUNT and MODEFOLD_MATCH_SEED take other problems. */
#include "check.h"

#include <modefold_match.h>

#include "error.h"
#include "match_problem.h"

static int64_t number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? atoll(text) : otherwise;
}

/* ---- random problems ---- */

static mf_device *device_of(const char *isa)
{
    mf_device *device = NULL;
    setenv("MODEFOLD_ISA", isa, 1);
    const mf_status status = mf_device_open("cpu:3", &device);
    unsetenv("MODEFOLD_ISA");
    if (status != MF_OK)
        check_skip(isa, mf_error());
    return device;
}

static void test_random(void)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    enum { ISAS = 4 };
    const int64_t count = number_of("MODEFOLD_MATCH_COUNT", 1000), seed = number_of("MODEFOLD_MATCH_SEED", 1);
    mf_device *device[ISAS];
    int64_t right[ISAS] = {0};
    char error[400];
    for (int i = 0; i < ISAS; i++)
        device[i] = device_of(isas[i]);
    for (int64_t n = 0; n < count; n++) {
        struct match_problem p;
        match_problem_make((uint64_t)(seed + n), n % 8 != 0, &p);
        match_problem_solve(&p);
        for (int i = 0; i < ISAS; i++)
            if (device[i])
                right[i] += CHECK_MSG(!match_problem_run(&p, device[i], error, sizeof error), "%s: %s", isas[i], error);
        match_problem_free(&p);
    }
    for (int i = 0; i < ISAS; i++) {
        if (device[i])
            printf("%s: %lld of %lld problems right\n", isas[i], (long long)right[i], (long long)count);
        mf_device_close(device[i]);
    }
}

/* The longest rows, whose distances need most bits: nothing, everything, and one bit between them. */
static void test_longest(mf_device *cpu)
{
    enum { BYTES = MF_MATCH_MAX_BITS / 8, ROWS = 5 };
    char *rows = malloc(ROWS * BYTES);
    int64_t shape[2] = {ROWS, BYTES}, two[2] = {ROWS, 2};
    int32_t index[ROWS][2], distance[ROWS][2], back[ROWS];
    if (!CHECK(rows != NULL))
        return;
    memset(rows, 0, BYTES);
    memset(rows + BYTES, 0xff, BYTES);
    memcpy(rows + 2 * BYTES, rows, 2 * BYTES);
    memcpy(rows + 4 * BYTES, rows + BYTES, BYTES);
    rows[2 * BYTES + 77] = 4;
    const DLTensor t = mf_tensor(rows, MF_U8, 2, shape), q = t, i = mf_tensor(index, MF_I32, 2, two),
                   d = mf_tensor(distance, MF_I32, 2, two), b = mf_tensor(back, MF_I32, 1, shape);
    const mf_match_input in = {.queries = &q, .train = &t};
    const mf_match_output out = {.indices = &i, .distances = &d, .train_indices = &b};
    CHECK(mf_match(cpu, &in, &out, NULL, NULL) == MF_OK);
    static const int32_t indices[ROWS][2] = {{0, 2}, {1, 3}, {2, 0}, {1, 3}, {1, 3}},
                         distances[ROWS][2] = {{0, 1}, {0, 0}, {0, 1}, {0, 0}, {0, 0}}, backs[ROWS] = {0, 1, 2, 1, 1};
    CHECK(!memcmp(index, indices, sizeof index) && !memcmp(distance, distances, sizeof distance));
    CHECK(!memcmp(back, backs, sizeof back));
    free(rows);
}

/* ---- errors ---- */

/* A call that is right, and its parts to make wrong. */
static struct call {
    int64_t rows[2], wide[2], two[2], strides[2];
    uint64_t q[20], t[20];
    char mask[20];
    int32_t index[20], more[20];
    int64_t start[3], other_start[3];
    DLTensor queries, train, query_mask, pair_mask, indices, distances, matches;
    mf_match_input in;
    mf_match_output out;
    mf_match_options options;
} c;

static void make_call(void)
{
    memset(&c, 0, sizeof c);
    c.rows[0] = 10;
    c.rows[1] = 2;
    c.wide[0] = c.wide[1] = 10;
    c.two[0] = 10;
    c.two[1] = 2;
    c.start[1] = c.other_start[1] = 4;
    c.start[2] = c.other_start[2] = 10;
    c.queries = mf_tensor(c.q, MF_U64, 2, c.rows);
    c.train = mf_tensor(c.t, MF_U64, 2, c.rows);
    c.query_mask = mf_tensor(c.mask, MF_BOOL, 1, c.rows);
    c.pair_mask = mf_tensor(c.mask, MF_U8, 2, c.wide);
    c.indices = mf_tensor(c.index, MF_I32, 2, c.two);
    c.distances = mf_tensor(c.more, MF_I32, 2, c.two);
    c.matches = mf_tensor(c.more, MF_I32, 1, c.rows);
    c.in.queries = &c.queries;
    c.in.train = &c.train;
    c.in.query_start = c.start;
    c.in.train_start = c.other_start;
    c.out.indices = &c.indices;
}

/* The call fails so, and says this; then everything is right again. */
static void fails(mf_device *cpu, mf_status status, const char *part, int line)
{
    const mf_status got = mf_match(cpu, &c.in, &c.out, &c.options, NULL);
    check_at(got == status && strstr(mf_error(), part), __FILE__, line, "%s says \"%s\", not %s with \"%s\"",
             mf_status_name(got), mf_error(), mf_status_name(status), part);
    make_call();
}
#define FAILS(status, part) fails(cpu, status, part, __LINE__)

static void test_argument_errors(mf_device *cpu)
{
    mf_match_input in = {0};
    int64_t bytes;
    make_call();
    CHECK(mf_match(NULL, &c.in, &c.out, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "the device is null"));
    CHECK(mf_match(cpu, NULL, &c.out, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "the input is null"));
    CHECK(mf_match(cpu, &c.in, NULL, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "the output is null"));
    CHECK(mf_match(cpu, &in, &c.out, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "queries is null"));
    in.queries = &c.queries;
    CHECK(mf_match(cpu, &in, &c.out, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "train is null"));
    CHECK(mf_match(cpu, &c.in, &c.out, NULL, &c) == MF_ERROR_ARGUMENT && strstr(mf_error(), "no streams"));
    CHECK(mf_match_workspace(cpu, &c.in, &c.out, NULL, NULL) == MF_ERROR_ARGUMENT);
    CHECK(mf_match_workspace(cpu, &c.in, &c.out, NULL, &bytes) == MF_OK && bytes == 0);
    CHECK(mf_match(cpu, &c.in, &c.out, NULL, NULL) == MF_OK);
    c.options.tests = 16;
    FAILS(MF_ERROR_ARGUMENT, "the tests are 0x10");
    c.options.difference = -1;
    FAILS(MF_ERROR_ARGUMENT, "difference -1");
    c.options.max_distance = -5;
    FAILS(MF_ERROR_ARGUMENT, "max_distance -5");
    c.options.ratio = 1.5;
    FAILS(MF_ERROR_ARGUMENT, "ratio 1.5");
    c.options.ratio = -1;
    FAILS(MF_ERROR_ARGUMENT, "ratio -1");
    c.options.threads = -1;
    FAILS(MF_ERROR_ARGUMENT, "-1 threads");
    c.options.workspace_bytes = -1;
    FAILS(MF_ERROR_ARGUMENT, "-1 bytes of workspace");
    c.options.solver = "popc";
    FAILS(MF_ERROR_UNSUPPORTED, "solver \"popc\"");
    c.queries.data = NULL;
    FAILS(MF_ERROR_ARGUMENT, "the data of queries are null");
    c.indices.data = (char *)c.index + 1;
    FAILS(MF_ERROR_ARGUMENT, "indices is not aligned");
    c.train.shape = NULL;
    FAILS(MF_ERROR_ARGUMENT, "the shape of train is null");
    c.train.device.device_type = kDLOpenCL;
    FAILS(MF_ERROR_UNSUPPORTED, "train is in the memory of DLPack device type 4");
    c.in.pairs = -1;
    FAILS(MF_ERROR_ARGUMENT, "-1 pairs");
    c.in.pairs = 2;
    c.in.train_start = NULL;
    FAILS(MF_ERROR_ARGUMENT, "train_start is null");
    c.in.pairs = 2;
    c.start[1] = 11;
    FAILS(MF_ERROR_ARGUMENT, "query_start goes from 11 back to 10");
    c.in.pairs = 2;
    c.other_start[2] = 9;
    FAILS(MF_ERROR_ARGUMENT, "train_start goes from 0 to 9 and there are 10 rows");
    c.in.pairs = 2;
    c.start[0] = 1;
    FAILS(MF_ERROR_ARGUMENT, "query_start goes from 1 to 10");
}

static void test_tensor_errors(mf_device *cpu)
{
    make_call();
    c.queries.dtype = mf_dtype(MF_F32);
    FAILS(MF_ERROR_TYPE, "queries has DLPack type code 2 with 32 bits and wants an integer type");
    c.in.query_mask = &c.query_mask;
    c.query_mask.dtype = mf_dtype(MF_I32);
    FAILS(MF_ERROR_TYPE, "query_mask has DLPack type code 0 with 32 bits and wants bool, u8 or i8");
    c.indices.dtype = mf_dtype(MF_I64);
    FAILS(MF_ERROR_TYPE, "wants i32");
    c.queries.ndim = 1;
    FAILS(MF_ERROR_SHAPE, "queries has 1 dimensions and wants 2");
    c.train.shape = c.two; /* the same, then another */
    c.two[0] = -3;
    FAILS(MF_ERROR_SHAPE, "size -3");
    c.queries.strides = c.strides;
    c.strides[0] = c.strides[1] = 2;
    FAILS(MF_ERROR_SHAPE, "a row of queries has stride 2");
    c.indices.strides = c.strides;
    c.strides[0] = 3;
    c.strides[1] = 1;
    FAILS(MF_ERROR_SHAPE, "indices has stride 3 between its rows and wants 2");
    c.train.strides = c.strides;
    c.strides[0] = INT64_MAX / 8 - 1;
    c.strides[1] = 1;
    FAILS(MF_ERROR_OVERFLOW, "train covers more than 2^63 bytes");
    c.train.dtype = mf_dtype(MF_U32);
    FAILS(MF_ERROR_SHAPE, "128 bits in queries and 64 in train");
    c.train.dtype = c.queries.dtype = mf_dtype(MF_U8);
    FAILS(MF_ERROR_SHAPE, "16 bits, which is no multiple of 32");
    c.queries.dtype = c.train.dtype = mf_dtype(MF_U8);
    c.rows[1] = MF_MATCH_MAX_BITS / 8 + 4;
    FAILS(MF_ERROR_OVERFLOW, "the most is 1048576");
    c.in.query_mask = &c.query_mask;
    c.query_mask.shape = c.wide;
    c.wide[0] = 9;
    FAILS(MF_ERROR_SHAPE, "query_mask has size 9 and there are 10 queries");
    c.two[1] = 17;
    FAILS(MF_ERROR_SHAPE, "indices has 17 columns");
    c.out.distances = &c.distances;
    c.distances.shape = c.rows;
    c.two[1] = 1;
    FAILS(MF_ERROR_SHAPE, "indices have 1 columns and distances 2");
    c.in.pair_mask = &c.pair_mask;
    c.wide[1] = 9;
    FAILS(MF_ERROR_SHAPE, "pair_mask has 9 columns and train set 0 has 10 rows");
    c.indices.data = c.q;
    FAILS(MF_ERROR_OVERLAP, "indices overlaps queries");
    c.out.distances = &c.distances;
    c.out.matches = &c.matches;
    FAILS(MF_ERROR_OVERLAP, "matches overlaps distances");
}

/* ---- allocations ---- */

static void test_memory(mf_device *cpu)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct match_problem p;
        char error[400];
        match_problem_make(seed, 1, &p);
        match_problem_solve(&p);
        mf_status status = MF_ERROR_MEMORY;
        for (int k = 0; k < 20 && status == MF_ERROR_MEMORY; k++) {
            mf_alloc_budget = k;
            status = mf_match(cpu, &p.input, &p.output, &p.options, NULL);
            mf_alloc_budget = -1;
            int touched = 0;
            for (int i = 5; i < MATCH_TENSORS && status != MF_OK; i++)
                for (int64_t b = 0; b < p.bytes[i]; b++)
                    touched |= p.memory[i][b] != 0x5a;
            CHECK_MSG(!touched, "seed %d wrote before it failed", (int)seed);
        }
        CHECK_MSG(status == MF_OK, "seed %d with allocations that fail: %s", (int)seed, mf_error());
        CHECK_MSG(!match_problem_run(&p, cpu, error, sizeof error), "%s", error);
        match_problem_free(&p);
    }
}

int main(void)
{
    mf_device *cpu;
    if (CHECK(mf_device_open("cpu:2", &cpu) == MF_OK)) {
        test_argument_errors(cpu);
        test_tensor_errors(cpu);
        test_longest(cpu);
        test_memory(cpu);
        mf_device_close(cpu);
    }
    test_random();
    return check_done("test_match");
}
