/* A network layer by layer, beside the fused multiply-adds that the cores can do, measured in the same run:
 *
 *     bench_net [NET.cfg NET.weights [RUNS [BACKEND [DEVICE [PRECISION]]]]]
 *
 * BACKEND is simd (the default: folds), direct (without Winograd), unfused, openblas (cuBLAS on CUDA) or scalar. DEVICE
 * is cpu (the default), or a GPU such as cuda:0, whose peak is not measured; PRECISION f32 (the default), tf32 or f16.
 * Without files a convolution like those of YOLOv2-tiny is timed, with weights of zeros. Times are medians of all runs.
 * The floor of a layer is its multiplications and additions at the measured peak, the median of one trial before each
 * run: processors, and what shares them, change their speed. Winograd's algorithm has fewer multiplications, and can be
 * below it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <modefold_net.h>

#include "cpu/cpu.h"
#include "measure.h"

enum { CHAINS = 12, ROUNDS = 1000000, MOST_THREADS = 256, MOST_STEPS = 200, MOST_RUNS = 1000 };

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- the peak: chains of fused multiply-adds that depend on nothing but themselves ---- */

#ifdef MF_HAVE_X86
#include <immintrin.h>

__attribute__((target("avx512f"))) static double chains_512(void)
{
    __m512 sum[CHAINS], by = _mm512_set1_ps(0.5f), plus = _mm512_set1_ps(1);
    for (int c = 0; c < CHAINS; c++)
        sum[c] = _mm512_set1_ps((float)c);
    for (int i = 0; i < ROUNDS; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            sum[c] = _mm512_fmadd_ps(sum[c], by, plus);
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm512_add_ps(sum[0], sum[c]);
    return (double)_mm512_reduce_add_ps(sum[0]);
}

__attribute__((target("avx2,fma"))) static double chains_256(void)
{
    __m256 sum[CHAINS], by = _mm256_set1_ps(0.5f), plus = _mm256_set1_ps(1);
    float out[8];
    for (int c = 0; c < CHAINS; c++)
        sum[c] = _mm256_set1_ps((float)c);
    for (int i = 0; i < ROUNDS; i++)
#pragma GCC unroll 16
        for (int c = 0; c < CHAINS; c++)
            sum[c] = _mm256_fmadd_ps(sum[c], by, plus);
    for (int c = 1; c < CHAINS; c++)
        sum[0] = _mm256_add_ps(sum[0], sum[c]);
    _mm256_storeu_ps(out, sum[0]);
    return (double)out[0];
}

static int peak_width(const char *isa)
{
    return !strcmp(isa, "avx512") ? 16 : !strcmp(isa, "avx2") ? 8 : 0;
}

static double chains(int width)
{
    return width == 16 ? chains_512() : chains_256();
}
#else
static int peak_width(const char *isa)
{
    (void)isa;
    return 0;
}
static double chains(int width)
{
    return width;
}
#endif

struct chaining {
    int width;
    double result;
};

static void *chain(void *context)
{
    struct chaining *c = context;
    c->result = chains(c->width);
    return NULL;
}

/* Multiplications and additions a second of all threads together; 0 where it is not known how. */
static double measure_peak(int threads, const char *isa)
{
    static pthread_t thread[MOST_THREADS];
    static struct chaining each[MOST_THREADS];
    const int width = peak_width(isa);
    const double start = seconds_now();
    for (int t = 0; width && t < threads; t++) {
        each[t].width = width;
        if (pthread_create(&thread[t], NULL, chain, &each[t]))
            return 0;
    }
    for (int t = 0; width && t < threads; t++)
        pthread_join(thread[t], NULL);
    return 2.0 * width * CHAINS * ROUNDS * threads / (seconds_now() - start);
}

/* ---- the network ---- */

static const struct backend {
    const char *name;
    uint32_t flags;
    mf_net_options options;
} backends[] = {
    {"simd", 0, {.way = MF_NET_FOLDS}},
    {"direct", 0, {.way = MF_NET_FOLDS, .direct = 1}},
    {"unfused", MF_NET_UNFUSED, {.way = MF_NET_FOLDS}},
    {"openblas", 0, {.way = MF_NET_BLAS}},
    {"scalar", 0, {.way = MF_NET_SCALAR}},
};

static const struct backend *find_backend(const char *name)
{
    for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++)
        if (!strcmp(name, backends[b].name))
            return &backends[b];
    return NULL;
}

/* By mf_net_precision; -1: no name of one. */
static int find_precision(const char *name)
{
    return !strcmp(name, "f32")    ? MF_NET_F32
           : !strcmp(name, "tf32") ? MF_NET_TF32
           : !strcmp(name, "f16")  ? MF_NET_F16
                                   : -1;
}

static mf_net *load(int argc, char **argv, uint32_t flags)
{
    static const char own[] = "[net]\nheight=52\nwidth=52\nchannels=128\n[convolutional]\nfilters=128\nsize=3\npad=1\n"
                              "activation=leaky\n[maxpool]\nsize=2\nstride=2\n";
    const size_t bytes = 16 + 4 * (128 + 128 * 128 * 9);
    mf_net *net = NULL;
    void *weights = calloc(1, bytes);
    mf_status status = argc > 2  ? mf_net_load(argv[1], argv[2], flags, &net)
                       : weights ? mf_net_parse(own, strlen(own), weights, bytes, flags, &net)
                                 : MF_ERROR_MEMORY;
    free(weights);
    if (status != MF_OK)
        fprintf(stderr, "%s\n", mf_error());
    return net;
}

static void show(const mf_net *net, mf_net_plan *plan, double (*seconds)[MOST_RUNS], double *whole, int runs,
                 double peak)
{
    double floor = 0, sum = 0;
    printf("%5s %-11s %9s %9s %9s  %s\n", "layer", "kind", "ms", "GFLOP/s", "of peak", "how");
    for (int s = 0; s < mf_net_plan_step_count(plan); s++) {
        mf_net_step step;
        mf_net_layer layer;
        if (mf_net_plan_step(plan, s, &step) != MF_OK || mf_net_layer_get(net, step.layer, &layer) != MF_OK)
            return;
        const double time = median(seconds[s], runs), work = strcmp(step.kind, "Conv2D") ? 0 : (double)layer.operations;
        const char *solver = strstr(step.description, "solver ");
        sum += time;
        floor += peak > 0 ? work / peak : 0;
        printf("%5d %-11s %9.3f %9.1f %9.2f  %.*s\n", step.layer, step.kind, 1e3 * time, 1e-9 * work / time,
               peak > 0 ? work / time / peak : 0, solver ? (int)strcspn(solver + 7, ":") : 48,
               solver ? solver + 7 : step.description);
    }
    const double run = median(whole, runs);
    printf("all steps %.3f ms, a run unmeasured %.3f ms; direct floor %.3f ms; run / floor %.3f\n", 1e3 * sum,
           1e3 * run, 1e3 * floor, floor > 0 ? run / floor : 0);
}

/* One run as it is and one measured, for each of `runs` after two. */
static int measure(mf_device *device, mf_net_plan *plan, const DLTensor *input, int runs, double (*seconds)[MOST_RUNS],
                   double *whole, double *peaks)
{
    int good = 1;
    for (int r = -2; good && r < runs; r++) {
        if (mf_device_kind(device) == kDLCPU)
            peaks[r < 0 ? 0 : r] = measure_peak(device->thread_count, mf_cpu_isa_name(device));
        mf_net_plan_measure(plan, 0);
        const double start = seconds_now();
        good = mf_net_plan_run(plan, input) == MF_OK;
        whole[r < 0 ? 0 : r] = seconds_now() - start;
        mf_net_plan_measure(plan, 1);
        good &= mf_net_plan_run(plan, input) == MF_OK;
        for (int s = 0; s < mf_net_plan_step_count(plan); s++) {
            mf_net_step step;
            good &= mf_net_plan_step(plan, s, &step) == MF_OK;
            seconds[s][r < 0 ? 0 : r] = step.seconds;
        }
    }
    if (!good)
        fprintf(stderr, "%s\n", mf_error());
    return good;
}

int main(int argc, char **argv)
{
    static double seconds[MOST_STEPS][MOST_RUNS], whole[MOST_RUNS], peaks[MOST_RUNS];
    const int runs = argc > 3 ? atoi(argv[3]) : 20, precision = find_precision(argc > 6 ? argv[6] : "f32");
    const struct backend *backend = find_backend(argc > 4 ? argv[4] : "simd");
    mf_net_options options = backend ? backend->options : (mf_net_options){.way = MF_NET_FOLDS};
    mf_device *device = NULL;
    mf_net_plan *plan = NULL;
    mf_net_layer in;
    mf_net *net = backend && precision >= 0 ? load(argc, argv, backend->flags) : NULL;
    options.precision = (mf_net_precision)precision;
    if (!net || runs < 1 || runs > MOST_RUNS || mf_net_layer_get(net, -1, &in) != MF_OK ||
        mf_device_open(argc > 5 ? argv[5] : "cpu", &device) != MF_OK ||
        mf_net_plan_create(net, device, &options, &plan) != MF_OK || mf_net_plan_step_count(plan) > MOST_STEPS) {
        fprintf(stderr, "%s\n", backend && precision >= 0 ? mf_error() : "there is no such backend or precision");
        return 1;
    }
    const int64_t shape[3] = {in.height, in.width, in.channels};
    float *picture = calloc((size_t)(shape[0] * shape[1] * shape[2]), sizeof *picture);
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    const int good = picture && measure(device, plan, &input, runs, seconds, whole, peaks);
    const double peak = median(peaks, runs);
    printf("%s; peak %.1f GFLOP/s; medians of %d runs\n", mf_device_describe(device), 1e-9 * peak, runs);
    if (good)
        show(net, plan, seconds, whole, runs, peak);
    free(picture);
    mf_net_plan_destroy(plan);
    mf_device_close(device);
    mf_net_destroy(net);
    return !good;
}
