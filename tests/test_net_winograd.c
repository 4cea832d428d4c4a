/* Convolutions by Winograd's algorithm, of any shape, against sums in double: the difference is within the bound that
 * docs/networks.md states. On every instruction set, and the same bits for any number of threads. */
#include <math.h>

#include <modefold_net.h>

#include "check.h"
#include "net_small.h"

enum { MOST_IN = 2 * 40 * 60 * 40, MOST_OUT = 2 * 40 * 60 * 64, POINTS = 36 };

struct shape {
    int64_t batch, h, w, c, filters, pad;
    int pool; /* 2 x 2, behind it */
    const char *activation;
};

/* Tiles that are whole and that are not; windows that leave; panels and blocks of channels that are not full. */
static const struct shape shapes[] = {
    {1, 13, 13, 16, 32, 1, 0, "leaky"},  {1, 12, 16, 32, 16, 1, 1, "leaky"},  {2, 9, 11, 17, 33, 1, 0, "relu"},
    {2, 9, 11, 17, 33, 1, 1, "relu"},    {1, 13, 26, 130, 40, 1, 1, "leaky"}, {1, 10, 12, 64, 8, 0, 0, "linear"},
    {1, 11, 9, 65, 5, 2, 1, "linear"},   {1, 38, 57, 20, 12, 1, 1, "leaky"},  {2, 40, 60, 16, 50, 1, 0, "linear"},
    {1, 13, 13, 512, 16, 1, 0, "leaky"},
};

/* Random numbers from -1 to 1, half of them from 0 to 1. */
static float draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    const float x = (float)(*state >> 8) / 8388608.0f - 1;
    return *state >> 31 ? x : fabsf(x);
}

/* ---- what the network should give, and how far from it Winograd's sums may be ---- */

static const double root = 1.4142135623730951;

/* |B'|, |G| and |A'| of the points 0, 1/sqrt(2), -1/sqrt(2), sqrt(2), -sqrt(2), infinity. */
static void absolute_matrices(double (*in)[6], double (*filter)[3], double (*out)[6])
{
    const double a = root / 2, b = root;
    const double in_rows[6][6] = {{1, 0, 2.5, 0, 1, 0},     {0, 2 * a, 2, a, 1, 0},   {0, 2 * a, 2, a, 1, 0},
                                  {0, b / 2, 0.5, b, 1, 0}, {0, b / 2, 0.5, b, 1, 0}, {0, 1, 0, 2.5, 0, 1}};
    const double out_rows[4][6] = {
        {1, 1, 1, 1, 1, 0}, {0, a, a, b, b, 0}, {0, .5, .5, 2, 2, 0}, {0, a / 2, a / 2, 2 * b, 2 * b, 1}};
    memcpy(in, in_rows, sizeof in_rows);
    memcpy(out, out_rows, sizeof out_rows);
    for (int p = 0; p < 6; p++) {
        const double point = p == 0 || p == 5 ? 0
                             : p < 3          ? a
                                              : b,
                     by = p == 0 || p == 5 ? 1
                          : p < 3          ? 1 / 1.5
                                           : 1 / 6.0;
        for (int k = 0; k < 3; k++)
            filter[p][k] = p == 5 ? k == 2 : by * pow(point, k); /* pow(0, 0) is 1 */
    }
}

/* to = left from right', n x n from m x m. */
static void both_sides(const double *left, int n, int m, const double *from, double *to)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < m; k++)
                for (int l = 0; l < m; l++)
                    sum += left[i * m + k] * from[k * m + l] * left[j * m + l];
            to[i * n + j] = sum;
        }
}

struct expected {
    const struct shape *s;
    const float *picture, *bias, *weights; /* weights[filter][channel][3][3], as the file has them */
    int64_t h, w;                          /* of the convolution */
    double *value, *bound;                 /* [batch][h][w][filters] */
};

static double pixel(const struct expected *e, int64_t n, int64_t y, int64_t x, int64_t c)
{
    const struct shape *s = e->s;
    y -= s->pad;
    x -= s->pad;
    return y < 0 || x < 0 || y >= s->h || x >= s->w ? 0 : (double)e->picture[((n * s->h + y) * s->w + x) * s->c + c];
}

/* One tile of one filter: sums, and the same with all numbers' sizes through the transforms. */
static void expect_tile(const struct expected *e, int64_t n, int64_t top, int64_t left, int64_t f)
{
    double in[6][6], filter[6][3], out[4][6], d[POINTS], g[9], v[POINTS], u[POINTS], m[POINTS] = {0}, bound[16];
    double value[16] = {0};
    absolute_matrices(in, filter, out);
    for (int64_t c = 0; c < e->s->c; c++) {
        for (int i = 0; i < POINTS; i++)
            d[i] = pixel(e, n, top + i / 6, left + i % 6, c);
        for (int k = 0; k < 9; k++)
            g[k] = (double)e->weights[(f * e->s->c + c) * 9 + k];
        for (int i = 0; i < 16; i++)
            for (int k = 0; k < 9; k++)
                value[i] += d[(i / 4 + k / 3) * 6 + i % 4 + k % 3] * g[k];
        for (int i = 0; i < POINTS; i++)
            d[i] = fabs(d[i]);
        for (int k = 0; k < 9; k++)
            g[k] = fabs(g[k]);
        both_sides(&in[0][0], 6, 6, d, v);
        both_sides(&filter[0][0], 6, 3, g, u);
        for (int p = 0; p < POINTS; p++)
            m[p] += u[p] * v[p];
    }
    both_sides(&out[0][0], 4, 6, m, bound);
    for (int i = 0; i < 16; i++) {
        const int64_t y = top + i / 4, x = left + i % 4, at = ((n * e->h + y) * e->w + x) * e->s->filters + f;
        if (y >= e->h || x >= e->w)
            continue;
        e->value[at] = value[i] + (double)e->bias[f];
        e->bound[at] = bound[i] + fabs(e->value[at]);
    }
}

static void finish(const struct expected *e)
{
    const double slope = strcmp(e->s->activation, "leaky") ? 0 : 0.1;
    const int64_t size = e->s->batch * e->h * e->w * e->s->filters;
    for (int64_t i = 0; i < size; i++) {
        e->bound[i] *= (double)(e->s->c + 31) * 0x1p-24;
        if (e->value[i] < 0 && strcmp(e->s->activation, "linear") != 0)
            e->value[i] *= slope;
    }
}

/* ---- the comparison ---- */

/* The greatest of a window of 1 or 2 x 2, and the greatest bound. */
static void window_of(const struct expected *e, int64_t n, int64_t y, int64_t x, int64_t f, double *value,
                      double *bound)
{
    const int64_t size = e->s->pool ? 2 : 1;
    *value = -INFINITY;
    *bound = 0;
    for (int64_t i = y * size; i < (y + 1) * size && i < e->h; i++)
        for (int64_t j = x * size; j < (x + 1) * size && j < e->w; j++) {
            const int64_t at = ((n * e->h + i) * e->w + j) * e->s->filters + f;
            *value = fmax(*value, e->value[at]);
            *bound = fmax(*bound, e->bound[at]);
        }
}

static void compare(const struct expected *e, const float *found, const char *isa, const char *way)
{
    const int64_t size = e->s->pool ? 2 : 1, h = (e->h + size - 1) / size, w = (e->w + size - 1) / size;
    const int64_t count = e->s->batch * h * w * e->s->filters;
    double most = 0, squares = 0, values = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t f = i % e->s->filters, x = i / e->s->filters % w, y = i / e->s->filters / w % h;
        double value, bound;
        window_of(e, i / e->s->filters / w / h, y, x, f, &value, &bound);
        const double off = fabs((double)found[i] - value) / bound;
        most = isnan(off) || off > most ? off : most;
        squares += ((double)found[i] - value) * ((double)found[i] - value);
        values += value * value;
    }
    CHECK_MSG(sqrt(squares / values) < 5e-7, "%s, %s: %d x %d x %d: off by %g of the outputs (root mean square)", isa,
              way, (int)e->s->h, (int)e->s->w, (int)e->s->c, sqrt(squares / values));
    if (e->s->c == 512)
        printf("%s, %s: the error of 512 channels is %.2g of the outputs (root mean square), %.2g of the bound\n", isa,
               way, sqrt(squares / values), most);
    CHECK_MSG(most <= 1, "%s: %d x %d x %d, %d filters: %g times the bound", isa, (int)e->s->h, (int)e->s->w,
              (int)e->s->c, (int)e->s->filters, most);
}

/* Runs the network: the last layer's output. Says whether Winograd's algorithm did it. */
static int run(const mf_net *net, const struct expected *e, mf_device *device, const mf_net_options *given,
               float *found)
{
    const int64_t shape[4] = {e->s->batch, e->s->h, e->s->w, e->s->c};
    const DLTensor input = mf_tensor((void *)(uintptr_t)e->picture, MF_F32, 4, shape);
    mf_net_options options = *given;
    mf_net_plan *plan = NULL;
    mf_net_step step = {.description = ""};
    options.batch = e->s->batch;
    CHECK_MSG(mf_net_plan_create(net, device, &options, &plan) == MF_OK && mf_net_plan_step(plan, 0, &step) == MF_OK &&
                  mf_net_plan_run(plan, &input) == MF_OK &&
                  mf_net_plan_read(plan, mf_net_layer_count(net) - 1, found, MOST_OUT) == MF_OK,
              "%s", mf_error());
    const int winograd = strstr(step.description, "Winograd") != NULL;
    CHECK(!winograd || mf_net_plan_step_count(plan) == 1 + (options.keep && e->s->pool));
    mf_net_plan_destroy(plan);
    return winograd;
}

static void check_isa(const mf_net *net, const struct expected *e, const char *isa)
{
    static float found[MOST_OUT], again[MOST_OUT];
    const int64_t size = e->s->pool ? 2 : 1;
    const size_t bytes =
        sizeof *found * (size_t)(e->s->batch * ((e->h + size - 1) / size) * ((e->w + size - 1) / size) * e->s->filters);
    mf_device *device;
    setenv("MODEFOLD_ISA", isa, 1);
    const int here = mf_device_open("cpu:3", &device) == MF_OK;
    unsetenv("MODEFOLD_ISA");
    if (!here)
        return;
    CHECK(run(net, e, device, &(mf_net_options){0}, found));
    compare(e, found, isa, "Winograd");
    CHECK(run(net, e, device, &(mf_net_options){.threads = 1}, again) && !memcmp(found, again, bytes));
    CHECK(run(net, e, device, &(mf_net_options){.keep = 1}, again) && !memcmp(found, again, bytes));
    CHECK(!run(net, e, device, &(mf_net_options){.direct = 1}, again));
    compare(e, again, isa, "direct");
    CHECK(!run(net, e, device, &(mf_net_options){.order_contract = 1}, again));
    mf_device_close(device);
}

static void check_shape(const struct shape *s)
{
    static const char *const isas[] = {"avx512", "avx2", "sse2", "neon", "scalar"};
    static float picture[MOST_IN];
    static double value[MOST_OUT], bound[MOST_OUT];
    char cfg[400];
    size_t bytes;
    unsigned state = 7;
    mf_net *net = NULL;
    const int length = snprintf(cfg, sizeof cfg,
                                "[net]\nheight=%d\nwidth=%d\nchannels=%d\n[convolutional]\nfilters=%d\nsize=3\n"
                                "padding=%d\nactivation=%s\n%s",
                                (int)s->h, (int)s->w, (int)s->c, (int)s->filters, (int)s->pad, s->activation,
                                s->pool ? "[maxpool]\nsize=2\nstride=2\n" : "");
    char *file = net_random_weights(cfg, (size_t)length, 3, &bytes);
    for (int64_t i = 0; i < s->batch * s->h * s->w * s->c; i++)
        picture[i] = draw(&state);
    if (!CHECK(file && mf_net_parse(cfg, (size_t)length, file, bytes, 0, &net) == MF_OK))
        return;
    const float *numbers = (const float *)(const void *)(file + 20);
    const struct expected e = {
        s, picture, numbers, numbers + s->filters, s->h + 2 * s->pad - 2, s->w + 2 * s->pad - 2, value, bound};
    for (int64_t n = 0; n < s->batch; n++)
        for (int64_t y = 0; y < e.h; y += 4)
            for (int64_t x = 0; x < e.w; x += 4)
                for (int64_t f = 0; f < s->filters; f++)
                    expect_tile(&e, n, y, x, f);
    finish(&e);
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++)
        check_isa(net, &e, isas[i]);
    mf_net_destroy(net);
    free(file);
}

int main(void)
{
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_shape(&shapes[i]);
    return check_done("net_winograd");
}
