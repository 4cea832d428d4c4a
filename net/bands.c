/* A convolution and the 2 x 2 pool behind it, band by band of rows: a thread folds some rows into memory of its own and
 * pools them while they are in its second cache. The folds are those of the layers, with their bits; the convolution's
 * output, the largest of many a network, is never in memory. */
#include <stdio.h>

#include "../src/cpu/cpu.h"
#include "plan.h"

enum { BAND_BYTES = 128 << 10, LEAST_BANDS = 4 /* for a thread */, LINE_FLOATS = 16 };

struct band_step {
    mf_plan *conv, *pool;
    const void *weights, *bias;
    struct plane from, to, band; /* band: at a thread's memory */
    int64_t rows, bands;         /* rows of the convolution in a band, bands of a picture */
    int64_t stride, before;      /* of the convolution's windows */
    int64_t room;                /* floats of a thread */
};

void mf_bands_forget(struct step *step)
{
    struct band_step *b = step->bands;
    if (!b)
        return;
    mf_plan_destroy(b->conv);
    mf_plan_destroy(b->pool);
    mf_free(b);
    step->bands = NULL;
}

/* ---- running ---- */

struct job {
    const mf_net_plan *plan;
    const struct band_step *bands;
    int failed; /* atomic: who sets it says what happened in his thread */
    mf_status status;
    char text[512];
};

static void run_band(void *context, int64_t number, int thread)
{
    struct job *job = context;
    const struct band_step *b = job->bands;
    const int64_t image = number / b->bands, y = number % b->bands * b->rows;
    float *band = (float *)job->plan->scratch + thread * b->room;
    const float *in = (const float *)b->from.memory + b->from.first + image * b->from.image +
                      (y * b->stride - b->before) * b->from.row - b->before * b->from.pitch;
    float *out = (float *)b->to.memory + b->to.first + image * b->to.image + y / 2 * b->to.row;
    mf_status status =
        mf_plan_execute(b->conv, (const void *const[]){in, b->weights, b->bias}, (void *const[]){band}, NULL);
    if (status == MF_OK)
        status = mf_plan_execute(b->pool, (const void *const[]){band}, (void *const[]){out}, NULL);
    if (status != MF_OK && !__atomic_exchange_n(&job->failed, 1, __ATOMIC_RELAXED)) {
        job->status = status;
        snprintf(job->text, sizeof job->text, "%s", mf_error());
    }
}

static mf_status run(const mf_net_plan *plan, const struct step *step, void *stream)
{
    (void)stream;
    struct job job = {plan, step->bands, 0, MF_OK, ""};
    mf_parallel(plan->device->threads, mf_net_threads(plan), plan->batch * step->bands->bands, run_band, &job);
    return job.status == MF_OK ? MF_OK : mf_fail(job.status, "%s", job.text);
}

/* ---- planning ---- */

/* Whole bands of two or more rows. */
int mf_bands_fit(const mf_net_plan *plan, int layer)
{
    return mf_device_kind(plan->device) == kDLCPU && plan->way == MF_NET_FOLDS && plan->precision == MF_NET_F32 &&
           plan->net->layer[layer].h % 2 == 0;
}

/* As many rows as fit in the cache, and go into the picture. */
static void choose_rows(struct band_step *b, int64_t h, int64_t row_bytes, int64_t most_bands)
{
    b->rows = 2;
    for (int64_t pairs = h / 2; pairs > 1; pairs--)
        if (h / 2 % pairs == 0 && 2 * pairs * row_bytes <= BAND_BYTES && h / 2 / pairs >= most_bands) {
            b->rows = 2 * pairs;
            break;
        }
    b->bands = h / b->rows;
}

/* The folds of one band, on one thread each. */
static mf_status plan_folds(mf_net_plan *plan, struct step *step, struct band_step *b)
{
    mf_net_plan one = *plan;
    struct step conv = *step, pool = *step;
    one.options.threads = 1;
    one.batch = 1;
    b->from.h = (b->rows - 1) * b->stride + plan->net->layer[step->layer].size - 2 * b->before;
    b->to.h = b->rows / 2;
    mf_status status = mf_step_conv_fold(&one, &conv, &b->from, &b->band);
    b->conv = conv.fold;
    pool.layer++;
    if (status == MF_OK)
        status = mf_step_pool_fold(&one, &pool, &b->band, &b->to);
    b->pool = pool.fold;
    return status;
}

mf_status mf_bands_add_conv(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    struct step *step = mf_step_add(plan, layer, STEP_CONV);
    struct band_step *b = step->bands = mf_calloc(sizeof *b);
    if (!b)
        return MF_ERROR_MEMORY;
    b->weights = plan->numbers[layer].weights;
    b->bias = plan->numbers[layer].bias;
    b->from = *mf_plane(plan, l->source[0]);
    b->to = *mf_plane(plan, layer + 1);
    b->stride = l->stride;
    b->before = l->before;
    const int64_t pitch = mf_layer_columns(l), threads = mf_net_threads(plan);
    choose_rows(b, l->h, l->w * pitch * (int64_t)sizeof(float), LEAST_BANDS * threads);
    b->room = (b->rows * l->w * pitch + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    b->band = (struct plane){.h = b->rows,
                             .w = l->w,
                             .c = l->c,
                             .pitch = pitch,
                             .type = MF_F32,
                             .row = l->w * pitch,
                             .image = b->rows * l->w * pitch};
    b->band.memory = (void *)(uintptr_t)64; /* until it runs, for the views: scratch memory is made last */
    mf_net_scratch(plan, threads * b->room);
    step->run = run;
    snprintf(step->text, sizeof step->text, "solver folds: bands of %lld rows, and the pool", (long long)b->rows);
    return plan_folds(plan, step, b);
}
