/* Convolutions of 3 x 3 by Winograd's minimal filtering F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for Convolutional
 * Neural Networks", 2016): a tile of 4 x 4 outputs is A' [(G g G') o (B' d B)] A of the 6 x 6 inputs d it depends on,
 * 36 multiplications for each filter and channel instead of 144.
 *
 * First all tiles of a band are transformed; then, for a panel of filters and a chunk of tiles, weights are transformed
 * block by block of channels, and for each of the 36 points a product of matrices, tiles x channels x filters, is added
 * up by solver direct's kernel; at last the sums are transformed, and bias, activation and a 2 x 2 pool applied.
 *
 * Transformed weights would be four times the weights, too much to keep and, with the few tiles of a small picture, to
 * read: 1024 x 1024 filters on 16 tiles are 1.2 GFLOP and 151 MB. So they are made again whenever they are needed, in
 * the second cache, a third of the points at a time, from weights that are read once for a chunk.
 * Cost: 36 fused multiply-adds for each tile, filter and channel, which are the bound; about 100 operations and 36
 * values written for each filter and channel of every chunk; 36 values written and read for each tile and channel.
 * Error: docs/networks.md. */
#include "winograd_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../src/cpu/contraction_kernels.h"
#include "../src/cpu/cpu.h"
#include "plan.h"

enum {
    BLOCK = 128,          /* channels whose transformed weights are in the second cache together */
    CHUNK_ROWS = 4,       /* tiles of a chunk, as tiles of the kernel */
    BAND_BYTES = 1 << 19, /* transformed inputs at a time, for a thread: they wait in its second cache */
    LEAST_CHANNELS = 16,
    PAD = 16,         /* floats between points, so that they do not all fall into the same lines of a cache */
    WEIGHTS_WORK = 80 /* multiply-adds that take as long as transforming nine weights */
};

struct winograd_step {
    struct winograd_kernels kernels;
    const struct contraction_kernels *product;
    const struct layer *layer;
    struct plane from, to;
    const float *weights;
    int64_t channels, blocks, width; /* of a block, as it is kept */
    int64_t across, down, tiles;     /* of a picture, and in all */
    int64_t chunk, band;
    int64_t v_point, v_block, u_point, m_point;
    struct winograd_tile tile; /* but for its place */
    int threads;
};

static const struct {
    const char *isa;
    void (*fill)(struct winograd_kernels *);
} sets[] = {
#ifdef MF_HAVE_X86
    {"avx512", mf_winograd_avx512}, {"avx2", mf_winograd_avx2}, {"sse2", mf_winograd_sse2},
#endif
#ifdef MF_HAVE_NEON
    {"neon", mf_winograd_neon},
#endif
    {"scalar", mf_winograd_scalar},
};

static struct winograd_kernels kernels_of(const struct mf_device *device)
{
    struct winograd_kernels kernels;
    size_t s = 0;
    while (s + 1 < sizeof sets / sizeof sets[0] && strcmp(sets[s].isa, mf_cpu_isa_name(device)) != 0)
        s++;
    sets[s].fill(&kernels);
    return kernels;
}

static int64_t over(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Of a picture. */
static int64_t count_tiles(const struct layer *l)
{
    return over(l->h, WINOGRAD_OUT) * over(l->w, WINOGRAD_OUT);
}

/* Nobody asks for another order, the activation is one that the last transform has, and it is less work. */
int mf_winograd_fits(const mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    const char *solver = getenv("MODEFOLD_SOLVER");
    int64_t shape[3];
    if (l->kind != LAYER_CONVOLUTIONAL)
        return 0;
    mf_net_shape(plan->net, l->source[0], shape);
    const int activation = l->activation == LINEAR || l->activation == LEAKY || l->activation == RELU;
    const int64_t work = WINOGRAD_POINTS * count_tiles(l) + WEIGHTS_WORK;
    return mf_device_kind(plan->device) == kDLCPU && plan->way == MF_NET_FOLDS && plan->precision == MF_NET_F32 &&
           !plan->direct && plan->options.flags == MF_ORDER_FREE && !(solver && *solver) && l->size == 3 &&
           l->stride == 1 && l->groups == 1 && activation && shape[2] >= LEAST_CHANNELS &&
           3 * work < 2 * 9 * l->h * l->w;
}

/* ---- running ---- */

/* A thread's memory: transformed weights of a block, and sums of a chunk. */
struct room {
    float *u, *m;
};

struct job {
    const struct winograd_step *step;
    const float *zeros;
    float *v;
    int64_t room, first, tiles; /* of the band */
};

static float *tile_inputs(const struct job *job, int64_t block, int64_t tile)
{
    return job->v + block * job->step->v_block + (tile - job->first) * job->step->width;
}

/* Where a tile's pixels lie; what is outside of the picture is zeros. */
static void find_pixels(const struct winograd_step *s, const float *zeros, int64_t tile, const float **at)
{
    const int64_t left = tile % s->across * WINOGRAD_OUT - s->layer->before;
    const int64_t top = tile / s->across % s->down * WINOGRAD_OUT - s->layer->before;
    const float *picture = (const float *)s->from.memory + s->from.first + tile / s->across / s->down * s->from.image;
    for (int64_t y = top; y < top + WINOGRAD_IN; y++)
        for (int64_t x = left; x < left + WINOGRAD_IN; x++)
            *at++ = y >= 0 && y < s->from.h && x >= 0 && x < s->from.w ? picture + y * s->from.row + x * s->from.pitch
                                                                       : zeros;
}

static void transform_inputs(void *context, int64_t number, int thread)
{
    const struct job *job = context;
    const struct winograd_step *s = job->step;
    const float *at[WINOGRAD_POINTS];
    (void)thread;
    find_pixels(s, job->zeros, job->first + number, at);
    for (int64_t b = 0; b < s->blocks; b++) {
        const int64_t left = s->channels - b * BLOCK;
        for (int p = 0; b && p < WINOGRAD_POINTS; p++)
            at[p] += at[p] == job->zeros ? 0 : BLOCK;
        s->kernels.input(at, left < BLOCK ? left : BLOCK, tile_inputs(job, b, job->first + number), s->v_point);
    }
}

/* The products of one point: tiles x terms times terms x panel, in tiles of the kernel. */
static void multiply_point(const struct winograd_step *s, const struct direct_tile *at, int64_t tiles)
{
    const int64_t panel = s->layer->panel, half = s->product->direct_columns / 2;
    const int64_t groups = over(tiles, s->product->direct_rows);
    for (int64_t column = 0; column < panel; column += 2 * half) {
        struct direct_tile tile = *at;
        tile.y += column;
        tile.out += column;
        tile.half = panel - column <= half;
        for (int64_t g = 0; g < groups; g++) {
            tile.rows = (int)(tiles / groups + (g < tiles % groups));
            s->product->direct(&tile);
            tile.x += tile.rows * tile.x_pitch;
            tile.out += tile.rows * tile.out_pitch;
            tile.fetch += tile.fetch_step * tile.fetches;
        }
    }
}

/* The weights that this thread will transform next are fetched while the products of a point are computed: a quarter of
 * a tap's, nine times four are the points. */
static void plan_fetch(const struct winograd_step *s, const float *next, int64_t tiles, int64_t terms, int p,
                       struct direct_tile *tile)
{
    const int64_t bytes = terms * s->layer->panel, groups = over(tiles, s->product->direct_rows);
    tile->fetches = terms / DIRECT_STEP;
    tile->fetch_step = next && tile->fetches ? over(bytes, tile->fetches * groups) : 0;
    tile->fetch =
        next ? (const char *)(next + p / 4 * s->channels * s->layer->panel) + p % 4 * bytes : (const char *)tile->y;
}

/* A block of channels: the sums of all its points. */
static void multiply_block(const struct job *job, const struct room *room, int64_t block, int64_t panel, int64_t first,
                           int64_t tiles)
{
    const struct winograd_step *s = job->step;
    const int64_t columns = s->layer->panel, taps = s->channels * columns, left = s->channels - block * BLOCK;
    const int64_t terms = left < BLOCK ? left : BLOCK;
    const float *weights = s->weights + panel * 9 * taps + block * BLOCK * columns;
    const float *next = block + 1 < s->blocks          ? weights + BLOCK * columns
                        : panel + 1 < s->layer->panels ? s->weights + (panel + 1) * 9 * taps
                                                       : NULL;
    const struct direct_run run = {0, 0, terms};
    for (int p = 0; p < WINOGRAD_POINTS; p++) {
        const int third = p / WINOGRAD_THIRD, in_third = p % WINOGRAD_THIRD;
        if (!in_third)
            s->kernels.weights(weights, taps, terms * columns, third, room->u, s->u_point);
        struct direct_tile tile = {.x = tile_inputs(job, block, first) + p * s->v_point,
                                   .y = room->u + in_third * s->u_point,
                                   .out = room->m + p * s->m_point,
                                   .x_pitch = s->width,
                                   .y_pitch = columns,
                                   .out_pitch = columns,
                                   .run = &run,
                                   .runs = 1,
                                   .goes_on = block > 0};
        plan_fetch(s, next, tiles, terms, p, &tile);
        multiply_point(s, &tile, tiles);
    }
}

static void finish_tile(const struct winograd_step *s, int64_t panel, int64_t number, const float *m)
{
    struct winograd_tile tile = s->tile;
    const int64_t x = number % s->across * WINOGRAD_OUT, y = number / s->across % s->down * WINOGRAD_OUT;
    const int64_t image = number / s->across / s->down, by = tile.pool ? 2 : 1;
    tile.m = m;
    if (tile.bias)
        tile.bias += panel * s->layer->panel;
    tile.out = (float *)s->to.memory + s->to.first + image * s->to.image + y / by * s->to.row + x / by * s->to.pitch +
               panel * s->layer->panel;
    tile.rows = (int)(s->layer->h - y < WINOGRAD_OUT ? s->layer->h - y : WINOGRAD_OUT);
    tile.columns = (int)(s->layer->w - x < WINOGRAD_OUT ? s->layer->w - x : WINOGRAD_OUT);
    s->kernels.output(&tile);
}

/* A panel of filters on a chunk of tiles. */
static void multiply_chunk(void *context, int64_t number, int thread)
{
    const struct job *job = context;
    const struct winograd_step *s = job->step;
    const int64_t panel = number % s->layer->panels, first = job->first + number / s->layer->panels * s->chunk;
    const int64_t left = job->first + job->tiles - first, tiles = left < s->chunk ? left : s->chunk;
    float *u = job->v + s->blocks * s->v_block + thread * job->room;
    const struct room room = {u, u + WINOGRAD_THIRD * s->u_point};
    for (int64_t b = 0; b < s->blocks; b++)
        multiply_block(job, &room, b, panel, first, tiles);
    for (int64_t t = 0; t < tiles; t++)
        finish_tile(s, panel, first + t, room.m + t * s->layer->panel);
}

static int64_t room_floats(const struct winograd_step *s)
{
    return WINOGRAD_THIRD * s->u_point + WINOGRAD_POINTS * s->m_point;
}

static int64_t zero_floats(const struct winograd_step *s)
{
    return over(s->channels, PAD) * PAD;
}

static mf_status run(const mf_net_plan *plan, const struct step *step, void *stream)
{
    (void)stream;
    const struct winograd_step *s = step->winograd;
    struct threads *threads = plan->device->threads;
    float *zeros = plan->scratch;
    struct job job = {s, zeros, zeros + zero_floats(s), room_floats(s), 0, 0};
    memset(zeros, 0, (size_t)zero_floats(s) * sizeof *zeros);
    for (; job.first < s->tiles; job.first += job.tiles) {
        job.tiles = s->tiles - job.first < s->band ? s->tiles - job.first : s->band;
        mf_parallel(threads, s->threads, job.tiles, transform_inputs, &job);
        mf_parallel(threads, s->threads, s->layer->panels * over(job.tiles, s->chunk), multiply_chunk, &job);
    }
    return MF_OK;
}

/* ---- planning ---- */

/* Chunks alike in size, of some of the kernel's tiles; fewer where threads would have nothing to do; and as many as a
 * band may have. */
static void choose_sizes(struct winograd_step *s)
{
    const int64_t rows = s->product->direct_rows, groups = over(s->tiles, rows);
    int64_t each = over(groups, over(groups, CHUNK_ROWS));
    while (each > 1 && over(groups, each) * s->layer->panels < 4 * s->threads)
        each--;
    s->chunk = each * rows < s->tiles ? each * rows : s->tiles;
    const int64_t bytes = WINOGRAD_POINTS * s->blocks * s->width * (int64_t)sizeof(float) * s->chunk;
    s->band = s->chunk * over(s->threads * (int64_t)BAND_BYTES, bytes);
    s->band = s->band < s->tiles ? s->band : over(s->tiles, s->chunk) * s->chunk;
    s->v_point = s->band * s->width + PAD;
    s->v_block = WINOGRAD_POINTS * s->v_point;
    s->u_point = s->width * s->layer->panel + PAD;
    s->m_point = s->chunk * s->layer->panel + PAD;
}

static void choose_end(const mf_net_plan *plan, int layer, struct winograd_tile *tile)
{
    const enum activation activation = plan->net->layer[layer].activation;
    *tile = (struct winograd_tile){.filters = plan->net->layer[layer].panel};
    if (plan->net->flags & MF_NET_UNFUSED)
        return;
    tile->bias = plan->numbers[layer].bias;
    tile->end = activation == LEAKY ? DIRECT_LEAKY : activation == RELU ? DIRECT_RELU : DIRECT_PLAIN;
    tile->slope = 0.1f;
}

void mf_winograd_forget(struct step *step)
{
    mf_free(step->winograd);
    step->winograd = NULL;
}

mf_status mf_winograd_add_conv(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    struct step *step = mf_step_add(plan, layer, STEP_CONV);
    struct winograd_step *s = step->winograd = mf_calloc(sizeof *s);
    if (!s)
        return MF_ERROR_MEMORY;
    s->kernels = kernels_of(plan->device);
    s->product = plan->device->kernels->contractions;
    s->layer = l;
    s->from = *mf_plane(plan, l->source[0]);
    s->to = *mf_plane(plan, layer + plan->pooled[layer]);
    s->weights = plan->numbers[layer].weights;
    s->channels = s->from.c;
    s->blocks = over(s->channels, BLOCK);
    s->width = s->blocks > 1 ? BLOCK : over(s->channels, PAD) * PAD;
    s->across = over(l->w, WINOGRAD_OUT);
    s->down = over(l->h, WINOGRAD_OUT);
    s->tiles = plan->batch * count_tiles(l);
    s->threads = mf_net_threads(plan);
    choose_sizes(s);
    choose_end(plan, layer, &s->tile);
    s->tile.point = s->m_point;
    s->tile.row = s->to.row;
    s->tile.pixel = s->to.pitch;
    s->tile.pool = plan->pooled[layer];
    step->run = run;
    snprintf(step->text, sizeof step->text, "Winograd F(4x4, 3x3) on %lld tiles%s", (long long)s->tiles,
             plan->pooled[layer] ? ", and the pool" : "");
    mf_net_scratch(plan, zero_floats(s) + s->blocks * s->v_block + s->threads * room_floats(s));
    return MF_OK;
}
