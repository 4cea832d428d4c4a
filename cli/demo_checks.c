/* Plain loops, in double precision where the fold computes in single.
 *
 * A float32 sum's bound is 2^-24 sum|x| for every rounding on the longest way to the result (docs/numerics.md): the
 * additions along a lane and the levels of its join, once for each level of tiles. */
#include "demo_checks.h"

#include <math.h>
#include <stdlib.h>

static double sum_bound(double magnitude, int64_t terms)
{
    int roundings = 0;
    for (; terms > 1; terms = (terms + 4095) / 4096) {
        int64_t tile = terms < 4096 ? terms : 4096;
        roundings += (int)((tile + 127) / 128 - 1) + (int)ceil(log2((double)(tile < 128 ? tile : 128)));
    }
    return roundings * 0x1p-24 * magnitude;
}

static void within(struct demo_verdict *v, double got, double expected, double bound)
{
    double error = fabs(got - expected);
    v->checked++;
    v->wrong += !(error <= bound);
    if (bound > 0 && error / bound > v->worst)
        v->worst = error / bound;
}

static void equal(struct demo_verdict *v, int same)
{
    v->checked++;
    v->wrong += !same;
}

void check_sum_all(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *o = arrays->out[0];
    double sum = 0, magnitude = 0;
    for (int64_t i = 0; i < arrays->n[0]; i++) {
        sum += a[i];
        magnitude += fabs(a[i]);
    }
    within(verdict, o[0], sum, sum_bound(magnitude, arrays->n[0]));
}

void check_sum_rows(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *o = arrays->out[0];
    for (int64_t i = 0; i < arrays->n[0]; i++) {
        double sum = 0, magnitude = 0;
        for (int64_t j = 0; j < arrays->n[1]; j++) {
            sum += a[i * arrays->n[1] + j];
            magnitude += fabs(a[i * arrays->n[1] + j]);
        }
        within(verdict, o[i], sum, sum_bound(magnitude, arrays->n[1]));
    }
}

void check_sum_columns(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *o = arrays->out[0];
    int64_t rows = arrays->n[0], columns = arrays->n[1];
    double *sum = calloc((size_t)columns, sizeof *sum), *magnitude = calloc((size_t)columns, sizeof *magnitude);
    for (int64_t i = 0; sum && magnitude && i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            sum[j] += a[i * columns + j];
            magnitude[j] += fabs(a[i * columns + j]);
        }
    for (int64_t j = 0; sum && magnitude && j < columns; j++)
        within(verdict, o[j], sum[j], sum_bound(magnitude[j], rows));
    free(sum);
    free(magnitude);
}

/* abcde->bd: the modes a, c and e are summed. */
void check_sum_interleaved(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *o = arrays->out[0];
    const int64_t *n = arrays->n;
    for (int64_t b = 0; b < n[1]; b++)
        for (int64_t d = 0; d < n[3]; d++) {
            double sum = 0, magnitude = 0;
            for (int64_t i = 0; i < n[0]; i++)
                for (int64_t c = 0; c < n[2]; c++)
                    for (int64_t e = 0; e < n[4]; e++) {
                        double x = a[(((i * n[1] + b) * n[2] + c) * n[3] + d) * n[4] + e];
                        sum += x;
                        magnitude += fabs(x);
                    }
            within(verdict, o[b * n[3] + d], sum, sum_bound(magnitude, n[0] * n[2] * n[4]));
        }
}

/* Ones have one right sum: how many there are. */
void check_ones(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *o = arrays->out[0];
    for (int64_t j = 0; j < arrays->n[1]; j++)
        equal(verdict, (double)o[j] == (double)arrays->n[0]);
}

/* 32 terms are added in a tree of 5 levels. */
void check_runs(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *o = arrays->out[0];
    for (int64_t i = 0; i + 31 < arrays->n[0]; i++) {
        double sum = 0, magnitude = 0;
        for (int j = 0; j < 32; j++) {
            sum += a[i + j];
            magnitude += fabs(a[i + j]);
        }
        within(verdict, o[i], sum, 5 * 0x1p-24 * magnitude + 0x1p-149);
    }
}

/* nchw->c: mean, variance and maximum of every channel. */
void check_channels(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *mean = arrays->out[0], *var = arrays->out[1], *max = arrays->out[2];
    const int64_t *n = arrays->n;
    int64_t plane = n[2] * n[3], terms = n[0] * plane;
    for (int64_t c = 0; c < n[1]; c++) {
        double sum = 0, magnitude = 0, squares = 0;
        float greatest = -INFINITY;
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t p = 0; p < plane; p++) {
                float x = a[(i * n[1] + c) * plane + p];
                sum += x;
                magnitude += fabs(x);
                greatest = x > greatest ? x : greatest;
            }
        double middle = sum / (double)terms;
        for (int64_t i = 0; i < n[0]; i++)
            for (int64_t p = 0; p < plane; p++) {
                double d = a[(i * n[1] + c) * plane + p] - middle;
                squares += d * d;
            }
        within(verdict, mean[c], middle, sum_bound(magnitude, terms) / (double)terms + fabs(middle) * 0x1p-24);
        /* a merge of two states rounds about six times; twice as many levels as a sum for good measure */
        within(verdict, var[c], squares / (double)terms, 12 * sum_bound(squares, terms) / (double)terms);
        equal(verdict, max[c] == greatest);
    }
}

void check_add_row(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0], *b = arrays->in[1], *o = arrays->out[0];
    for (int64_t i = 0; i < arrays->n[0]; i++)
        for (int64_t j = 0; j < arrays->n[1]; j++)
            equal(verdict, o[i * arrays->n[1] + j] == a[i * arrays->n[1] + j] + b[j]);
}

/* The first of the greatest. */
void check_argmax(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const float *a = arrays->in[0];
    const int64_t *o = arrays->out[0];
    for (int64_t i = 0; i < arrays->n[0]; i++) {
        const float *row = a + i * arrays->n[1];
        int64_t best = 0;
        for (int64_t j = 1; j < arrays->n[1]; j++)
            if (row[j] > row[best])
                best = j;
        equal(verdict, o[i] == best);
    }
}

/* hwc->c: exact. */
void check_bytes(const struct demo_arrays *arrays, struct demo_verdict *verdict)
{
    const uint8_t *a = arrays->in[0];
    const uint64_t *o = arrays->out[0];
    int64_t channels = arrays->n[2], pixels = arrays->n[0] * arrays->n[1];
    for (int64_t c = 0; c < channels; c++) {
        uint64_t sum = 0;
        for (int64_t p = 0; p < pixels; p++)
            sum += a[p * channels + c];
        equal(verdict, o[c] == sum);
    }
}
