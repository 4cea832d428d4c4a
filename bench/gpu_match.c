/* Speed of mf_match on a GPU, by solver: comparisons of two rows of bits, in 10^9 a second, the two nearest.
 *
 *   bench_gpu_match [device [rows [bits]]]    cuda:0; rows x rows, else 10,000, 100,000 and 270,000; 512, or so many
 *                                             bits in words of 64
 *   bench_gpu_match --tune [device [rows [bits]]]
 *                                             solver tensor with numbers of its own: splits, blocks beside each other
 *                                             on a multiprocessor, 16 queries of a warp and 8 rows so many times
 *
 * A time is that of calls with a workspace, one after the other for half a second (--tune: less), until the device has
 * done them; host: until they were asked for. --tune compares what they find with solver popc's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <modefold_match.h>

enum { WORDS = 8 /* of 64 bits, where nobody says */, KEEP = 2, MOST_CALLS = 1000 };

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct sides {
    mf_device *device;
    void *queries, *train, *indices, *distances, *matches;
    int64_t rows, words;
    double enough; /* seconds of a measurement */
};

/* Of one solver. */
struct result {
    mf_status status;
    double call, host; /* seconds */
    int64_t bytes;     /* of workspace */
};

static DLTensor tensor(const struct sides *s, void *memory, mf_type type, int ndim, const int64_t *shape)
{
    DLTensor t = mf_tensor(memory, type, ndim, shape);
    t.device.device_type = (DLDeviceType)mf_device_kind(s->device);
    return t;
}

static struct result measure(const struct sides *s, const char *solver, int cross_check)
{
    const int64_t rows[2] = {s->rows, s->words}, out[2] = {s->rows, KEEP};
    const DLTensor q = tensor(s, s->queries, MF_U64, 2, rows), t = tensor(s, s->train, MF_U64, 2, rows),
                   i = tensor(s, s->indices, MF_I32, 2, out), d = tensor(s, s->distances, MF_I32, 2, out),
                   m = tensor(s, s->matches, MF_I32, 1, rows);
    const mf_match_input input = {.queries = &q, .train = &t};
    const mf_match_output output = {.indices = &i, .distances = &d, .matches = &m};
    mf_match_options options = {.solver = solver, .tests = cross_check ? MF_MATCH_CROSS_CHECK : 0};
    mf_status status = mf_match_workspace(s->device, &input, &output, &options, &options.workspace_bytes);
    if (status == MF_OK)
        status = mf_memory_create(s->device, options.workspace_bytes, &options.workspace);
    if (status == MF_OK)
        status = mf_match(s->device, &input, &output, &options, NULL);
    if (status == MF_OK)
        status = mf_device_wait(s->device, NULL);
    const double start = seconds();
    int calls = 0;
    double time = 0, host = 0;
    for (int batch = 1; status == MF_OK && time < s->enough && calls < MOST_CALLS; batch *= 2) {
        const double begin = seconds();
        for (int c = 0; c < batch && status == MF_OK; c++, calls++)
            status = mf_match(s->device, &input, &output, &options, NULL);
        host += seconds() - begin;
        if (status == MF_OK)
            status = mf_device_wait(s->device, NULL);
        time = seconds() - start;
    }
    mf_memory_destroy(s->device, options.workspace);
    return (struct result){status, time / calls, host / calls, options.workspace_bytes};
}

static double comparisons(const struct sides *s, const struct result *r)
{
    return 1e-9 * (double)s->rows * (double)s->rows / r->call;
}

static void print(const struct sides *s, const char *solver, int cross_check)
{
    const struct result r = measure(s, solver, cross_check);
    if (r.status == MF_OK)
        printf("%7lld rows  %-7s%s %10.1f us a call %9.3f\n", (long long)s->rows, solver,
               cross_check ? " cross" : "      ", 1e6 * r.call, comparisons(s, &r));
    else
        printf("%7lld rows  %-7s %s\n", (long long)s->rows, solver, mf_error());
    fflush(stdout);
}

static mf_status fill(const struct sides *s, void *memory, uint64_t seed)
{
    const size_t words = (size_t)(s->rows * s->words);
    uint64_t *bits = malloc(8 * words), x = seed;
    for (size_t w = 0; bits && w < words; w++) { /* Marsaglia's xorshift */
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bits[w] = x;
    }
    const mf_status status = bits ? mf_memory_write(s->device, memory, 0, bits, (int64_t)(8 * words)) : MF_ERROR_MEMORY;
    free(bits);
    return status;
}

static void measure_solvers(const struct sides *s)
{
    static const char *const solvers[] = {"popc", "multi", "tensor"};
    for (int v = 0; v < 6; v++)
        print(s, solvers[v % 3], v / 3);
}

/* ---- --tune ---- */

/* Indices and distances as they lie in the device's memory; null: not read. */
static int32_t *read_found(const struct sides *s)
{
    const int64_t bytes = s->rows * 4 * KEEP;
    int32_t *found = malloc(2 * (size_t)bytes);
    if (found && mf_memory_read(s->device, s->indices, 0, found, bytes) == MF_OK &&
        mf_memory_read(s->device, s->distances, 0, found + s->rows * KEEP, bytes) == MF_OK)
        return found;
    free(found);
    return NULL;
}

static void tune_one(const struct sides *s, const char *solver, const int32_t *expected)
{
    const struct result r = measure(s, solver, 0);
    int32_t *found = r.status == MF_OK ? read_found(s) : NULL;
    if (found)
        printf("| %lld | %s | %.1f | %.0f | %.1f | %.1f | %s |\n", (long long)s->rows, solver, 1e6 * r.call,
               comparisons(s, &r), 1e6 * r.host, 1e-6 * (double)r.bytes,
               expected && !memcmp(found, expected, (size_t)s->rows * 8 * KEEP) ? "right" : "WRONG");
    else
        printf("| %lld | %s | %s |\n", (long long)s->rows, solver, mf_error());
    fflush(stdout);
    free(found);
}

static void tune(const struct sides *s)
{
    static const char *const kernels[] = {"4:4:1", "3:4:1", "5:4:1", "3:4:2", "2:4:2", "5:2:1", "6:2:1",
                                          "4:2:2", "5:2:2", "3:2:4", "2:8:1", "4:1:1", "4:2:1", "3:2:1",
                                          "2:2:1", "2:4:1", "1:4:1", "4:4:1", "5:4:1", "3:4:2", "4:2:2"};
    enum { KERNELS = sizeof kernels / sizeof *kernels, WITH_SPLITS = 4 };
    static const int splits[] = {1, 2, 3, 4, 6, 8, 10, 13, 16, 20, 26, 32};
    char solver[40];
    const struct result popc = measure(s, "popc", 0);
    int32_t *expected = popc.status == MF_OK ? read_found(s) : NULL;
    printf(
        "| rows | solver | us | 10^9/s | host, us | workspace, MB | as popc |\n|---:|---|---:|---:|---:|---:|---|\n");
    for (int k = 0; k < KERNELS; k++) /* the last four with other splits, where there are few queries */
        for (int i = 0; i < (k < KERNELS - WITH_SPLITS ? 1 : s->rows < 20000 ? 12 : 0); i++) {
            snprintf(solver, sizeof solver, "tensor:%d:%s", k < KERNELS - WITH_SPLITS ? 0 : splits[i], kernels[k]);
            tune_one(s, solver, expected);
        }
    free(expected);
}

static void with_rows(mf_device *device, int64_t rows, int64_t words, int tunes)
{
    struct sides s = {device, NULL, NULL, NULL, NULL, NULL, rows, words, tunes ? 0.1 : 0.5};
    void **const memory[] = {&s.queries, &s.train, &s.indices, &s.distances, &s.matches};
    mf_status status = MF_OK;
    for (int i = 0; i < 5 && status == MF_OK; i++)
        status = mf_memory_create(device, rows * (i < 2 ? 8 * words : 4 * KEEP), memory[i]);
    if (status == MF_OK)
        status = fill(&s, s.queries, 88172645463325252u);
    if (status == MF_OK)
        status = fill(&s, s.train, 1234567890123456789u);
    if (status == MF_OK)
        (tunes ? tune : measure_solvers)(&s);
    else
        printf("%s\n", mf_error());
    for (int i = 0; i < 5; i++)
        mf_memory_destroy(device, *memory[i]);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {10000, 100000, 270000};
    const int tunes = argc > 1 && !strcmp(argv[1], "--tune");
    mf_device *device;
    argc -= tunes;
    argv += tunes;
    const int64_t words = argc > 3 && atoll(argv[3]) >= 64 ? atoll(argv[3]) / 64 : WORDS;
    if (mf_device_open(argc > 1 ? argv[1] : "cuda:0", &device) != MF_OK) {
        printf("bench_gpu_match: %s\n", mf_error()); /* not an error of make bench on other machines */
        return 0;
    }
    printf("%s; 10^9 comparisons of %lld bits a second\n", mf_device_describe(device), (long long)(64 * words));
    for (int i = 0; i < (argc > 2 ? 1 : 3); i++)
        with_rows(device, argc > 2 ? atoll(argv[2]) : sizes[i], words, tunes);
    mf_device_close(device);
    return 0;
}
