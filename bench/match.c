/* Speed of mf_match on the CPU: comparisons of two rows, in 10^9 a second; the best of 15 runs after a first
 * one, since what disturbs a run only makes it longer.
 *
 *   bench_match [isa [queries [train]]]        all of them, 10,000 x 10,000
 *
 * A line: instruction set, threads, bits of a row, neighbours, whether the nearest queries of train's rows are found
 * too, and the speed. bench/match_table.py makes a table of it, beside OpenCV's matcher. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <modefold_match.h>

enum { RUNS = 15, MOST_BITS = 2048 };

static uint64_t *queries, *train;
static int32_t *indices, *distances, *back;

static double seconds(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void measure(mf_device *device, const char *isa, int threads, int64_t q, int64_t t, int bits, int k, int both)
{
    const int64_t qs[2] = {q, bits / 64}, ts[2] = {t, bits / 64}, out_shape[2] = {q, k};
    const DLTensor a = mf_tensor(queries, MF_U64, 2, qs), b = mf_tensor(train, MF_U64, 2, ts),
                   i = mf_tensor(indices, MF_I32, 2, out_shape), d = mf_tensor(distances, MF_I32, 2, out_shape),
                   c = mf_tensor(back, MF_I32, 1, ts);
    const mf_match_input in = {.queries = &a, .train = &b};
    const mf_match_output out = {.indices = &i, .distances = &d, .train_indices = both ? &c : NULL};
    const mf_match_options options = {.threads = threads};
    double best = 1e9;
    for (int r = 0; r <= RUNS; r++) {
        const double start = seconds();
        if (mf_match(device, &in, &out, &options, NULL) != MF_OK) {
            printf("%s\n", mf_error());
            return;
        }
        const double time = seconds() - start;
        best = r && time < best ? time : best;
    }
    printf("%-7s %d threads %5d bits k %2d%s %7.3f\n", isa, threads, bits, k, both ? " both" : "     ",
           1e-9 * (double)q * (double)t / best);
    fflush(stdout);
}

static void measure_all(const char *isa, int64_t q, int64_t t)
{
    mf_device *device;
    setenv("MODEFOLD_ISA", isa, 1);
    if (mf_device_open("cpu:2", &device) != MF_OK)
        return; /* not this machine's */
    measure(device, isa, 1, q, t, 512, 2, 0);
    measure(device, isa, 2, q, t, 512, 2, 0);
    measure(device, isa, 1, q, t, 512, 2, 1);
    measure(device, isa, 1, q, t, 512, 1, 0);
    measure(device, isa, 1, q, t, 512, 16, 0);
    measure(device, isa, 1, q, t, 256, 2, 0);
    measure(device, isa, 1, q, t, 2048, 2, 0);
    mf_device_close(device);
}

int main(int argc, char **argv)
{
    static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};
    const int64_t q = argc > 2 ? atoll(argv[2]) : 10000, t = argc > 3 ? atoll(argv[3]) : 10000;
    if (q < 1 || t < 1 || q > 1 << 24 || t > 1 << 24) {
        printf("usage: bench_match [isa [queries [train]]], rows 1 to 2^24\n");
        return 2;
    }
    queries = malloc((size_t)q * MOST_BITS / 8);
    train = malloc((size_t)t * MOST_BITS / 8);
    indices = malloc((size_t)q * MF_MATCH_MAX_K * sizeof *indices);
    distances = malloc((size_t)q * MF_MATCH_MAX_K * sizeof *distances);
    back = malloc((size_t)t * sizeof *back);
    if (!queries || !train || !indices || !distances || !back)
        return 1;
    uint64_t x = 88172645463325252u; /* Marsaglia's xorshift */
    for (int64_t i = 0; i < (q + t) * MOST_BITS / 64; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        *(i < q * MOST_BITS / 64 ? &queries[i] : &train[i - q * MOST_BITS / 64]) = x;
    }
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        if (argc < 2 || !strcmp(argv[1], isas[i]) || !strcmp(argv[1], "all"))
            measure_all(isas[i], q, t);
    free(queries);
    free(train);
    free(indices);
    free(distances);
    free(back);
    return 0;
}
