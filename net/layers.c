/* The sections of a .cfg as layers: what each reads, and the shape of its output, by darknet's rules. */
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const mf_layer_names[LAYER_KINDS] = {"convolutional", "maxpool", "route",  "shortcut",
                                                 "upsample",      "dropout", "region", "yolo"};

/* What is at hand while one section is read. */
struct reading {
    const struct cfg *cfg;
    const struct cfg_section *section;
    struct mf_net *net;
    struct layer *layer;
    int number;
    int64_t h, w, c; /* of the layer before, which most layers read */
};

void mf_net_shape(const struct mf_net *net, int layer, int64_t shape[3])
{
    const struct layer *l = layer < 0 ? NULL : &net->layer[layer];
    shape[0] = l ? l->h : net->h;
    shape[1] = l ? l->w : net->w;
    shape[2] = l ? l->c : net->c;
}

static mf_status get(const struct reading *r, const char *key, int64_t missing, int64_t least, int64_t most,
                     int64_t *value)
{
    return mf_cfg_int(r->cfg, r->section, key, missing, least, most, value);
}

/* An option that is right in darknet and not here. */
static mf_status only(const struct reading *r, const char *key, int64_t value)
{
    int64_t found;
    MF_TRY(get(r, key, value, INT32_MIN, INT32_MAX, &found));
    if (found == value)
        return MF_OK;
    return mf_cfg_fail(r->cfg, r->section, mf_cfg_find(r->cfg, r->section, key)->line,
                       "%s=%lld is not supported, only %s=%lld", key, (long long)found, key, (long long)value);
}

/* The output's side of windows over a side: (side + both paddings - size) / stride + 1. */
static mf_status window_shape(const struct reading *r, int64_t padding)
{
    struct layer *l = r->layer;
    if (r->h + padding < l->size || r->w + padding < l->size)
        return mf_cfg_fail(r->cfg, r->section, l->line,
                           "the input is %lld x %lld, and with %lld of padding smaller than the window, %lld",
                           (long long)r->h, (long long)r->w, (long long)padding, (long long)l->size);
    l->h = (r->h + padding - l->size) / l->stride + 1;
    l->w = (r->w + padding - l->size) / l->stride + 1;
    return MF_OK;
}

static mf_status read_activation(const struct reading *r, enum activation *activation)
{
    static const char *const names[ACTIVATIONS] = {"linear", "leaky", "relu", "logistic", "tanh"};
    const struct cfg_option *option = mf_cfg_find(r->cfg, r->section, "activation");
    const char *name = option ? option->value : "logistic"; /* darknet's default */
    for (int a = 0; a < ACTIVATIONS; a++)
        if (!strcmp(name, names[a])) {
            *activation = (enum activation)a;
            return MF_OK;
        }
    return mf_cfg_fail(r->cfg, r->section, option->line,
                       "activation %.40s is unknown; there are linear, leaky, relu, logistic and tanh", name);
}

static mf_status convolutional(struct reading *r)
{
    struct layer *l = r->layer;
    int64_t filters, pad, padding, normalize;
    MF_TRY(get(r, "filters", 1, 1, NET_MAX_SIZE, &filters));
    MF_TRY(get(r, "size", 1, 1, 1024, &l->size));
    MF_TRY(get(r, "stride", 1, 1, NET_MAX_SIZE, &l->stride));
    MF_TRY(get(r, "pad", 0, 0, 1, &pad));
    MF_TRY(get(r, "padding", 0, 0, 1024, &padding));
    MF_TRY(get(r, "groups", 1, 1, NET_MAX_SIZE, &l->groups));
    MF_TRY(get(r, "batch_normalize", 0, 0, 1, &normalize));
    MF_TRY(only(r, "binary", 0));
    MF_TRY(only(r, "xnor", 0));
    MF_TRY(only(r, "dilation", 1));
    MF_TRY(read_activation(r, &l->activation));
    if (r->c % l->groups || filters % l->groups)
        return mf_cfg_fail(r->cfg, r->section, l->line, "%lld channels and %lld filters do not go into %lld groups",
                           (long long)r->c, (long long)filters, (long long)l->groups);
    l->batch_normalize = (int)normalize;
    l->before = pad ? l->size / 2 : padding;
    l->c = filters;
    l->panel = l->groups > 1 ? filters / l->groups : filters <= PANEL / 2 ? PANEL / 2 : PANEL;
    l->panels = l->groups > 1 ? 1 : (filters + l->panel - 1) / l->panel;
    l->parameters = filters * (l->batch_normalize ? 4 : 1) + filters * l->size * l->size * (r->c / l->groups);
    return window_shape(r, 2 * l->before);
}

static mf_status maxpool(struct reading *r)
{
    struct layer *l = r->layer;
    int64_t padding;
    MF_TRY(get(r, "stride", 1, 1, NET_MAX_SIZE, &l->stride));
    MF_TRY(get(r, "size", l->stride, 1, 1024, &l->size));
    MF_TRY(get(r, "padding", l->size - 1, 0, 1024, &padding));
    MF_TRY(only(r, "maxpool_depth", 0));
    if (padding >= 2 * l->size)
        return mf_cfg_fail(r->cfg, r->section, l->line, "padding=%lld puts whole windows of size=%lld outside",
                           (long long)padding, (long long)l->size);
    l->before = padding / 2;
    l->c = r->c;
    return window_shape(r, padding);
}

/* A layer's number in route and shortcut: from 0 on, or counted backwards from this one. */
static mf_status find_source(const struct reading *r, const struct cfg_option *option, double number, int *source)
{
    const double at = number < 0 ? r->number + number : number;
    if (!(at >= 0 && at < r->number) || at != (double)(int)at)
        return mf_cfg_fail(r->cfg, r->section, option->line, "%s: there is no layer %g before layer %d", option->key,
                           number, r->number);
    *source = (int)at;
    return MF_OK;
}

static mf_status read_sources(const struct reading *r, const char *key, int most, int *sources, int *count)
{
    float number[NET_MAX_SOURCES];
    const struct cfg_option *option = mf_cfg_find(r->cfg, r->section, key);
    MF_TRY(mf_cfg_reals(r->cfg, r->section, key, most, number, count));
    if (!*count)
        return mf_cfg_fail(r->cfg, r->section, r->layer->line, "%s says no layer", key);
    for (int i = 0; i < *count; i++)
        MF_TRY(find_source(r, option, number[i], &sources[i]));
    return MF_OK;
}

static mf_status route(struct reading *r)
{
    struct layer *l = r->layer;
    MF_TRY(read_sources(r, "layers", NET_MAX_SOURCES, l->source, &l->source_count));
    MF_TRY(get(r, "groups", 1, 1, NET_MAX_SIZE, &l->parts));
    MF_TRY(get(r, "group_id", 0, 0, l->parts - 1, &l->part));
    for (int s = 0; s < l->source_count; s++) {
        int64_t shape[3];
        mf_net_shape(r->net, l->source[s], shape);
        if (s && (shape[0] != l->h || shape[1] != l->w))
            return mf_cfg_fail(r->cfg, r->section, l->line,
                               "layer %d is %lld x %lld and layer %d is %lld x %lld: they do not go beside each other",
                               l->source[0], (long long)l->h, (long long)l->w, l->source[s], (long long)shape[0],
                               (long long)shape[1]);
        if (shape[2] % l->parts)
            return mf_cfg_fail(r->cfg, r->section, l->line, "layer %d has %lld channels, which are no %lld groups",
                               l->source[s], (long long)shape[2], (long long)l->parts);
        l->h = shape[0];
        l->w = shape[1];
        l->c += shape[2] / l->parts;
    }
    return l->c <= NET_MAX_SIZE ? MF_OK
                                : mf_cfg_fail(r->cfg, r->section, l->line, "more than %d channels", NET_MAX_SIZE);
}

static mf_status shortcut(struct reading *r)
{
    struct layer *l = r->layer;
    int64_t shape[3];
    int count;
    l->source[0] = r->number - 1;
    MF_TRY(read_sources(r, "from", 1, l->source + 1, &count));
    l->source_count = 2;
    l->activation = LINEAR;
    if (mf_cfg_find(r->cfg, r->section, "activation"))
        MF_TRY(read_activation(r, &l->activation));
    mf_net_shape(r->net, l->source[1], shape);
    l->h = r->h;
    l->w = r->w;
    l->c = r->c;
    if (shape[0] == l->h && shape[1] == l->w && shape[2] == l->c)
        return MF_OK;
    return mf_cfg_fail(r->cfg, r->section, l->line,
                       "layer %d is %lld x %lld x %lld and layer %d is %lld x %lld x %lld; only equal ones are added",
                       r->number - 1, (long long)l->h, (long long)l->w, (long long)l->c, l->source[1],
                       (long long)shape[0], (long long)shape[1], (long long)shape[2]);
}

static mf_status upsample(struct reading *r)
{
    struct layer *l = r->layer;
    MF_TRY(get(r, "stride", 2, 1, 1024, &l->stride));
    l->h = r->h * l->stride;
    l->w = r->w * l->stride;
    l->c = r->c;
    return MF_OK;
}

static void keep_shape(struct reading *r)
{
    r->layer->h = r->h;
    r->layer->w = r->w;
    r->layer->c = r->c;
}

static mf_status dropout(struct reading *r)
{
    keep_shape(r);
    return MF_OK;
}

/* Channels are boxes x (4 + 1 + classes). */
static mf_status check_boxes(const struct reading *r, int64_t numbers)
{
    const struct layer *l = r->layer;
    if (l->boxes * (5 + l->classes) != r->c)
        return mf_cfg_fail(r->cfg, r->section, l->line,
                           "%lld boxes of %lld classes want %lld channels and there are %lld", (long long)l->boxes,
                           (long long)l->classes, (long long)(l->boxes * (5 + l->classes)), (long long)r->c);
    if (numbers != 2 * l->boxes)
        return mf_cfg_fail(r->cfg, r->section, l->line, "%lld boxes want %lld anchors and there are %lld",
                           (long long)l->boxes, (long long)(2 * l->boxes), (long long)numbers);
    return MF_OK;
}

static mf_status region(struct reading *r)
{
    struct layer *l = r->layer;
    int64_t softmax;
    int numbers;
    keep_shape(r);
    MF_TRY(get(r, "num", 1, 1, NET_MAX_ANCHORS, &l->boxes));
    MF_TRY(get(r, "classes", 20, 1, NET_MAX_SIZE, &l->classes));
    MF_TRY(get(r, "softmax", 0, 0, 1, &softmax));
    MF_TRY(only(r, "coords", 4));
    MF_TRY(only(r, "background", 0));
    if (mf_cfg_find(r->cfg, r->section, "tree"))
        return mf_cfg_fail(r->cfg, r->section, l->line, "trees of classes are not supported");
    MF_TRY(mf_cfg_reals(r->cfg, r->section, "anchors", 2 * NET_MAX_ANCHORS, l->anchor, &numbers));
    l->softmax = (int)softmax;
    return check_boxes(r, numbers);
}

/* [yolo] has anchors for several layers; its mask says which are its own. */
static mf_status yolo(struct reading *r)
{
    struct layer *l = r->layer;
    float anchor[2 * NET_MAX_ANCHORS], mask[NET_MAX_ANCHORS];
    int numbers, masks;
    int64_t all;
    keep_shape(r);
    MF_TRY(get(r, "num", 1, 1, NET_MAX_ANCHORS, &all));
    MF_TRY(get(r, "classes", 20, 1, NET_MAX_SIZE, &l->classes));
    MF_TRY(mf_cfg_reals(r->cfg, r->section, "anchors", 2 * NET_MAX_ANCHORS, anchor, &numbers));
    MF_TRY(mf_cfg_reals(r->cfg, r->section, "mask", NET_MAX_ANCHORS, mask, &masks));
    if (!mf_cfg_find(r->cfg, r->section, "mask"))
        for (masks = 0; masks < all; masks++)
            mask[masks] = (float)masks;
    l->boxes = masks;
    for (int m = 0; m < masks; m++) {
        if (!(mask[m] >= 0 && 2 * mask[m] + 1 < (float)numbers))
            return mf_cfg_fail(r->cfg, r->section, l->line, "mask: there is no pair %g of %d anchors", (double)mask[m],
                               numbers);
        l->anchor[2 * m] = anchor[2 * (int)mask[m]];
        l->anchor[2 * m + 1] = anchor[2 * (int)mask[m] + 1];
    }
    return check_boxes(r, 2 * masks);
}

static mf_status read_layer(struct reading *r)
{
    static mf_status (*const readers[LAYER_KINDS])(struct reading *) = {convolutional, maxpool, route,  shortcut,
                                                                        upsample,      dropout, region, yolo};
    struct layer *l = r->layer;
    int64_t elements;
    int kind = 0;
    while (kind < LAYER_KINDS && strcmp(r->section->name, mf_layer_names[kind]) != 0)
        kind++;
    if (!strcmp(r->section->name, "conv"))
        kind = LAYER_CONVOLUTIONAL;
    if (!strcmp(r->section->name, "max"))
        kind = LAYER_MAXPOOL;
    if (kind == LAYER_KINDS)
        return mf_cfg_fail(r->cfg, r->section, r->section->line,
                           "is no layer that modefold has; there are convolutional, maxpool, route, shortcut, "
                           "upsample, dropout, region and yolo");
    *l = (struct layer){.kind = (enum layer_kind)kind, .line = r->section->line, .source_count = 1};
    l->source[0] = r->number - 1;
    MF_TRY(readers[kind](r));
    if (l->h > NET_MAX_SIZE || l->w > NET_MAX_SIZE || !mf_mul(l->h * l->w, l->c, &elements) || elements > 1LL << 34)
        return mf_cfg_fail(r->cfg, r->section, l->line, "an output of %lld x %lld x %lld is too large", (long long)l->h,
                           (long long)l->w, (long long)l->c);
    return l->parameters <= 1LL << 36
               ? MF_OK
               : mf_cfg_fail(r->cfg, r->section, l->line, "%lld weights are too many", (long long)l->parameters);
}

static mf_status read_input(const struct cfg *cfg, struct mf_net *net)
{
    const struct cfg_section *section = &cfg->section[0];
    if (strcmp(section->name, "net") != 0 && strcmp(section->name, "network") != 0)
        return mf_cfg_fail(cfg, section, section->line, "stands first, where [net] should");
    MF_TRY(mf_cfg_int(cfg, section, "height", 0, 1, 1 << 14, &net->h));
    MF_TRY(mf_cfg_int(cfg, section, "width", 0, 1, 1 << 14, &net->w));
    MF_TRY(mf_cfg_int(cfg, section, "channels", 0, 1, 1 << 10, &net->c));
    if (!net->h || !net->w || !net->c)
        return mf_cfg_fail(cfg, section, section->line, "height, width or channels are missing");
    return MF_OK;
}

mf_status mf_net_layers(const struct cfg *cfg, struct mf_net *net)
{
    struct reading r = {cfg, NULL, net, NULL, 0, 0, 0, 0};
    MF_TRY(read_input(cfg, net));
    const int count = cfg->section_count - 1;
    if (count < 1 || count > NET_MAX_LAYERS)
        return mf_fail(MF_ERROR_FILE, "%.100s: there are %d layers, and 1 to %d can be read", cfg->file, count,
                       NET_MAX_LAYERS);
    net->layer = mf_calloc(sizeof *net->layer * (size_t)count);
    if (!net->layer)
        return MF_ERROR_MEMORY;
    for (; r.number < count; r.number++) {
        int64_t shape[3];
        mf_net_shape(net, r.number - 1, shape);
        r.h = shape[0];
        r.w = shape[1];
        r.c = shape[2];
        r.section = &cfg->section[r.number + 1];
        r.layer = &net->layer[r.number];
        MF_TRY(read_layer(&r));
        net->layer_count = r.number + 1;
    }
    return MF_OK;
}
