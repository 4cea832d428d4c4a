/* Darknet's .weights: int32 major, minor, revision; how many pictures were seen, an int64 (int32 before version 0.2);
 * then, little-endian floats without gaps, for each convolution in the .cfg's order: biases, with batch norm scales,
 * means and variances, and filters x channels x rows x columns weights.
 *
 * Batch norm, y = (x - mean) / (sqrt(variance) + 1e-6) * scale + bias, is linear in the weights: it is multiplied into
 * them (in double, one rounding each), unless the network is to stay unfused. */
#include "net.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static mf_status fell_short(const struct weight_source *source, const struct mf_net *net, int layer, int64_t bytes)
{
    if (layer < 0)
        return mf_fail(MF_ERROR_FILE, "%.100s has %lld bytes, which are no header of a weights file", source->name,
                       (long long)source->size);
    return mf_fail(MF_ERROR_FILE,
                   "%.100s ends after %lld bytes, in the weights of layer %d, [convolutional], %.100s:%d,"
                   " which want bytes up to %lld",
                   source->name, (long long)source->size, layer, net->file, net->layer[layer].line,
                   (long long)(source->at + bytes));
}

static mf_status take(struct weight_source *source, const struct mf_net *net, int layer, void *to, int64_t bytes)
{
    if (bytes > source->size - source->at)
        return fell_short(source, net, layer, bytes);
    if (!source->file)
        memcpy(to, source->bytes + source->at, (size_t)bytes);
    else if (fread(to, 1, (size_t)bytes, source->file) != (size_t)bytes)
        return mf_fail(MF_ERROR_FILE, "%.100s cannot be read: %s", source->name,
                       ferror((FILE *)source->file) ? strerror(errno) : "it became shorter");
    source->at += bytes;
    return MF_OK;
}

static mf_status take_header(struct weight_source *source, const struct mf_net *net)
{
    int32_t version[3];
    unsigned char seen[8];
    MF_TRY(take(source, net, -1, version, sizeof version));
    if (version[0] < 0 || version[0] > 100 || version[1] < 0 || version[1] > 100)
        return mf_fail(MF_ERROR_FILE, "%.100s begins with version %d.%d: this is no weights file of darknet",
                       source->name, (int)version[0], (int)version[1]);
    return take(source, net, -1, seen, version[0] * 10 + version[1] >= 2 ? 8 : 4);
}

/* How many filters' memory of one layer: biases and, unfused, scales and means. */
static mf_status make_memory(struct mf_net *net, struct layer *layer, int64_t terms)
{
    const int64_t columns = mf_layer_columns(layer), apart = layer->batch_normalize && net->flags & MF_NET_UNFUSED;
    const int64_t bytes = columns * terms * (int64_t)sizeof(float);
    layer->weights = mf_alloc_aligned((size_t)bytes);
    layer->bias = mf_alloc_aligned((size_t)columns * sizeof(float));
    if (apart) {
        layer->scale = mf_alloc_aligned((size_t)columns * sizeof(float));
        layer->mean = mf_alloc_aligned((size_t)columns * sizeof(float));
    }
    if (!layer->weights || !layer->bias || (apart && (!layer->scale || !layer->mean)))
        return MF_ERROR_MEMORY;
    memset(layer->weights, 0, (size_t)bytes);
    memset(layer->bias, 0, (size_t)columns * sizeof(float));
    for (int64_t f = 0; apart && f < columns; f++)
        layer->scale[f] = layer->mean[f] = 0;
    net->bytes += bytes + columns * (int64_t)sizeof(float) * (apart ? 3 : 1);
    return MF_OK;
}

/* The numbers of all filters: bias, scale, mean, variance, and one filter's weights. */
struct filters {
    float *bias, *scale, *mean, *variance, *weights;
};

static float normalizer(const struct filters *from, int64_t f)
{
    return (float)(from->scale[f] / (sqrt((double)from->variance[f]) + 1e-6));
}

static void put_numbers(struct layer *layer, const struct filters *from)
{
    for (int64_t f = 0; f < layer->c; f++) {
        layer->bias[f] = from->bias[f];
        if (layer->scale) {
            layer->scale[f] = normalizer(from, f);
            layer->mean[f] = from->mean[f];
        } else if (layer->batch_normalize) {
            layer->bias[f] = (float)(from->bias[f] -
                                     (double)from->mean[f] * from->scale[f] / (sqrt((double)from->variance[f]) + 1e-6));
        }
    }
}

/* One filter, channels x rows x columns, to its column of its panel: rows x columns x channels. */
static void put_filter(struct layer *layer, const struct filters *from, int64_t f, int64_t terms)
{
    const int64_t a_group = layer->c / layer->groups, in_group = f % a_group;
    const int64_t panel = f / a_group * layer->panels + in_group / layer->panel;
    const int64_t taps = layer->size * layer->size, channels = terms / taps;
    const double by =
        layer->batch_normalize && !layer->scale ? from->scale[f] / (sqrt((double)from->variance[f]) + 1e-6) : 1;
    float *to = layer->weights + panel * terms * layer->panel + in_group % layer->panel;
    for (int64_t c = 0; c < channels; c++)
        for (int64_t t = 0; t < taps; t++)
            to[(t * channels + c) * layer->panel] = (float)(from->weights[c * taps + t] * by);
}

static mf_status take_layer(struct weight_source *source, struct mf_net *net, int number, float *room)
{
    struct layer *layer = &net->layer[number];
    const int64_t n = layer->c, terms = mf_layer_terms(net, layer), item = (int64_t)sizeof(float);
    const struct filters from = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n};
    MF_TRY(take(source, net, number, from.bias, n * item));
    if (layer->batch_normalize)
        MF_TRY(take(source, net, number, from.scale, 3 * n * item));
    put_numbers(layer, &from);
    for (int64_t f = 0; f < n; f++) {
        MF_TRY(take(source, net, number, from.weights, terms * item));
        put_filter(layer, &from, f, terms);
    }
    return MF_OK;
}

/* Whether the file has as many numbers as the network, before anything large is made. */
static mf_status check_size(const struct weight_source *source, const struct mf_net *net)
{
    int64_t wanted = source->at;
    for (int l = 0; l < net->layer_count; l++) {
        int64_t bytes = net->layer[l].parameters * (int64_t)sizeof(float);
        if (bytes > source->size - wanted) {
            const struct weight_source here = {source->name, NULL, NULL, source->size, wanted};
            return fell_short(&here, net, l, bytes);
        }
        wanted += bytes;
    }
    if (wanted == source->size)
        return MF_OK;
    return mf_fail(MF_ERROR_FILE,
                   "%.100s has %lld bytes, and %lld are the network's of %.100s: they do not belong together",
                   source->name, (long long)source->size, (long long)wanted, net->file);
}

mf_status mf_net_weights(struct mf_net *net, struct weight_source *source)
{
    MF_TRY(take_header(source, net));
    MF_TRY(check_size(source, net));
    for (int l = 0; l < net->layer_count; l++) {
        struct layer *layer = &net->layer[l];
        if (layer->kind != LAYER_CONVOLUTIONAL)
            continue;
        int64_t terms = mf_layer_terms(net, layer);
        MF_TRY(make_memory(net, layer, terms));
        float *room = mf_alloc((size_t)(4 * layer->c + terms) * sizeof(float));
        mf_status status = room ? take_layer(source, net, l, room) : MF_ERROR_MEMORY;
        mf_free(room);
        MF_TRY(status);
    }
    return MF_OK;
}
