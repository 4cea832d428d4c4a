/* Speed of mf_match on a GPU, by solver: comparisons of two rows of 512 bits, in 10^9 a second, the two nearest.
 *
 *   bench_gpu_match [device [rows]]        cuda:0; rows x rows, else 10,000, 100,000 and 270,000
 *
 * A time is that of calls with a workspace, one after the other for half a second, until the device has done them. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <modefold_match.h>

enum { WORDS = 8 /* of 64 bits */, KEEP = 2, MOST_CALLS = 1000 };
#define ENOUGH 0.5 /* seconds */

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct sides {
    mf_device *device;
    void *queries, *train, *indices, *distances, *matches;
    int64_t rows;
};

static DLTensor tensor(const struct sides *s, void *memory, mf_type type, int ndim, const int64_t *shape)
{
    DLTensor t = mf_tensor(memory, type, ndim, shape);
    t.device.device_type = (DLDeviceType)mf_device_kind(s->device);
    return t;
}

static void measure(const struct sides *s, const char *solver, int cross_check)
{
    const int64_t rows[2] = {s->rows, WORDS}, out[2] = {s->rows, KEEP};
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
    double time = 0;
    for (int batch = 1; status == MF_OK && time < ENOUGH && calls < MOST_CALLS; batch *= 2) {
        for (int c = 0; c < batch && status == MF_OK; c++, calls++)
            status = mf_match(s->device, &input, &output, &options, NULL);
        if (status == MF_OK)
            status = mf_device_wait(s->device, NULL);
        time = seconds() - start;
    }
    if (status == MF_OK)
        printf("%7lld rows  %-7s%s %10.1f us a call %9.3f\n", (long long)s->rows, solver,
               cross_check ? " cross" : "      ", 1e6 * time / calls,
               1e-9 * (double)s->rows * (double)s->rows * calls / time);
    else
        printf("%7lld rows  %-7s %s\n", (long long)s->rows, solver, mf_error());
    fflush(stdout);
    mf_memory_destroy(s->device, options.workspace);
}

static mf_status fill(const struct sides *s, void *memory, uint64_t seed)
{
    const size_t words = (size_t)s->rows * WORDS;
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

static void measure_all(mf_device *device, int64_t rows)
{
    static const char *const solvers[] = {"popc", "multi", "tensor"};
    struct sides s = {device, NULL, NULL, NULL, NULL, NULL, rows};
    void **const memory[] = {&s.queries, &s.train, &s.indices, &s.distances, &s.matches};
    mf_status status = MF_OK;
    for (int i = 0; i < 5 && status == MF_OK; i++)
        status = mf_memory_create(device, rows * (i < 2 ? 8 * WORDS : 4 * KEEP), memory[i]);
    if (status == MF_OK)
        status = fill(&s, s.queries, 88172645463325252u);
    if (status == MF_OK)
        status = fill(&s, s.train, 1234567890123456789u);
    for (int v = 0; v < 6 && status == MF_OK; v++)
        measure(&s, solvers[v % 3], v / 3);
    if (status != MF_OK)
        printf("%s\n", mf_error());
    for (int i = 0; i < 5; i++)
        mf_memory_destroy(device, *memory[i]);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {10000, 100000, 270000};
    mf_device *device;
    if (mf_device_open(argc > 1 ? argv[1] : "cuda:0", &device) != MF_OK) {
        printf("bench_gpu_match: %s\n", mf_error()); /* not an error of make bench on other machines */
        return 0;
    }
    printf("%s; 10^9 comparisons a second\n", mf_device_describe(device));
    for (int i = 0; i < (argc > 2 ? 1 : 3); i++)
        measure_all(device, argc > 2 ? atoll(argv[2]) : sizes[i]);
    mf_device_close(device);
    return 0;
}
