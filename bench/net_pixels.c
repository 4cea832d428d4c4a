/* The convolutions of a network with one product of matrices for every pixel of the output: its window, copied to a row
 * of numbers, times the weights, terms x filters, by OpenBLAS. So did Tandon and Kim, "CS492 Project 3", 2020, section
 * 2.1; a row at a time, every weight is read again for every pixel.
 *
 *     bench_net_pixels NET.cfg NET.weights [RUNS]
 *
 * Weights and inputs are made-up numbers; batch norm, bias, activation and pools are not timed. Medians of all runs. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../net/net.h"
#include "gpu/runtime.h"

enum { MOST_RUNS = 100, BY_ROWS = 101, AS_IT_IS = 111 }; /* cblas.h */

static struct {
    void (*sgemm)(int order, int a_form, int b_form, int m, int n, int k, float alpha, const float *a, int a_pitch,
                  const float *b, int b_pitch, float beta, float *c, int c_pitch);
} library;

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* A convolution's numbers: in, h + size - 1 rows and so for columns; weights [terms][filters]. */
struct conv {
    int64_t h, w, c, filters, size, stride;
    float *in, *window, *weights, *out;
};

static float *numbers(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; values && i < count; i++)
        values[i] = (float)(i % 127) / 127;
    return values;
}

static int make(const struct mf_net *net, const struct layer *l, struct conv *v)
{
    int64_t shape[3];
    mf_net_shape(net, l->source[0], shape);
    *v = (struct conv){.h = l->h, .w = l->w, .c = shape[2], .filters = l->c, .size = l->size, .stride = l->stride};
    const int64_t rows = (v->h - 1) * v->stride + v->size, columns = (v->w - 1) * v->stride + v->size;
    v->in = numbers(rows * columns * v->c);
    v->window = numbers(v->size * v->size * v->c);
    v->weights = numbers(v->size * v->size * v->c * v->filters);
    v->out = numbers(v->h * v->w * v->filters);
    return v->in && v->window && v->weights && v->out;
}

static void forget(struct conv *v)
{
    free(v->in);
    free(v->window);
    free(v->weights);
    free(v->out);
}

static void run(const struct conv *v)
{
    const int64_t row = ((v->w - 1) * v->stride + v->size) * v->c, line = v->size * v->c;
    const int terms = (int)(v->size * line), filters = (int)v->filters;
    for (int64_t y = 0; y < v->h; y++)
        for (int64_t x = 0; x < v->w; x++) {
            for (int64_t i = 0; i < v->size; i++)
                memcpy(v->window + i * line, v->in + (y * v->stride + i) * row + x * v->stride * v->c,
                       (size_t)line * sizeof(float));
            library.sgemm(BY_ROWS, AS_IT_IS, AS_IT_IS, 1, filters, terms, 1, v->window, terms, v->weights, filters, 0,
                          v->out + (y * v->w + x) * filters, filters);
        }
}

static int time_layer(const struct mf_net *net, int number, int runs, double *sum)
{
    double seconds[MOST_RUNS];
    struct conv v;
    const int good = make(net, &net->layer[number], &v);
    for (int r = -1; good && r < runs; r++) {
        const double start = seconds_now();
        run(&v);
        seconds[r < 0 ? 0 : r] = seconds_now() - start;
    }
    forget(&v);
    if (!good)
        return 0;
    qsort(seconds, (size_t)runs, sizeof *seconds, compare);
    *sum += seconds[runs / 2];
    printf("%5d Conv2D      %9.3f\n", number, 1e3 * seconds[runs / 2]);
    return 1;
}

int main(int argc, char **argv)
{
    static const char *const files[] = {"libopenblas.so.0", NULL}, *const symbols[] = {"cblas_sgemm", NULL};
    const int runs = argc > 3 ? atoi(argv[3]) : 3;
    char why[256];
    double sum = 0;
    mf_net *net = NULL;
    if (argc < 3) {
        printf("bench_net_pixels wants NET.cfg NET.weights [RUNS]\n");
        return 0;
    }
    mf_library_load("OpenBLAS, libopenblas.so.0,", files, symbols, &library, why, sizeof why);
    if (*why || runs < 1 || runs > MOST_RUNS || mf_net_load(argv[1], argv[2], 0, &net) != MF_OK) {
        fprintf(stderr, "%s\n", *why ? why : !net ? mf_error() : "runs are 1 to 100");
        return 1;
    }
    int good = 1;
    for (int l = 0; good && l < net->layer_count; l++)
        if (net->layer[l].kind == LAYER_CONVOLUTIONAL && net->layer[l].groups == 1)
            good = time_layer(net, l, runs, &sum);
    printf("one product a pixel: %.3f ms\n", 1e3 * sum);
    mf_net_destroy(net);
    return !good;
}
