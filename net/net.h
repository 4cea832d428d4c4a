/* Networks inside: what the .cfg says, layers, weights. */
#ifndef MF_NET_H
#define MF_NET_H

#include <modefold_net.h>

#include "../src/error.h"

/* ---- cfg.c: sections of key=value lines ---- */

struct cfg_option {
    const char *key, *value;
    int line;
};
struct cfg_section {
    const char *name;
    int line, first, count; /* its options */
};
struct cfg {
    const char *file; /* its name, for errors */
    char *text;
    int section_count, option_count;
    struct cfg_section *section;
    struct cfg_option *option;
};

/* Splits a text of `bytes` characters, which is copied. cfg is to be forgotten afterwards, whatever the status. */
mf_status mf_cfg_read(const char *file, const char *text, size_t bytes, struct cfg *cfg);
void mf_cfg_forget(struct cfg *cfg);
/* MF_ERROR_FILE: "FILE:LINE: [SECTION] ..." */
mf_status mf_cfg_fail(const struct cfg *cfg, const struct cfg_section *section, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The option's text; null where the section has none. The last one counts. */
const struct cfg_option *mf_cfg_find(const struct cfg *cfg, const struct cfg_section *section, const char *key);
/* A whole number from least to most, or `missing` where there is none. */
mf_status mf_cfg_int(const struct cfg *cfg, const struct cfg_section *section, const char *key, int64_t missing,
                     int64_t least, int64_t most, int64_t *value);
/* Numbers between commas, at most `most`; *count 0 where there are none. */
mf_status mf_cfg_reals(const struct cfg *cfg, const struct cfg_section *section, const char *key, int most,
                       float *values, int *count);
/* The whole file, from mf_alloc; at most `most` bytes. */
mf_status mf_file_read(const char *path, size_t most, char **text, size_t *bytes);
/* A path without its folders, for errors. */
const char *mf_file_name(const char *path);

/* ---- layers.c ---- */

enum layer_kind {
    LAYER_CONVOLUTIONAL,
    LAYER_MAXPOOL,
    LAYER_ROUTE,
    LAYER_SHORTCUT,
    LAYER_UPSAMPLE,
    LAYER_DROPOUT,
    LAYER_REGION,
    LAYER_YOLO,
    LAYER_KINDS
};
enum activation { LINEAR, LEAKY, RELU, LOGISTIC, TANH, ACTIVATIONS };

enum {
    NET_MAX_LAYERS = 1000,
    NET_MAX_SIZE = 1 << 16, /* of a picture's side, of channels, of a window's side */
    NET_MAX_SOURCES = 8,    /* a fold adds or copies few tensors */
    NET_MAX_ANCHORS = 32,
    PANEL = 32 /* filters whose weights lie beside each other: two vectors of the widest instructions */
};

struct layer {
    enum layer_kind kind;
    int line;
    int64_t h, w, c;                           /* of the output */
    int source[NET_MAX_SOURCES], source_count; /* layers that it reads, -1 the input */
    int64_t size, stride, before;              /* windows; rows and columns by which they begin outside */
    /* Convolution. Weights are [groups][panels][size][size][c_in / groups][panel]; filters are in groups of filters,
     * these in panels, of which the last one is filled up with zeros. */
    int64_t groups, panels, panel;
    int batch_normalize;
    enum activation activation;
    float *weights, *bias; /* by filter, filled up as panels are */
    float *scale, *mean;   /* unfused with batch norm: (x - mean) * scale, then bias; else null */
    int64_t parameters;
    /* Route: of every source part number `part` of `parts`. */
    int64_t part, parts;
    /* Detections: boxes a cell, each with x y w h, whether there is an object, and classes */
    int64_t boxes, classes;
    int softmax;
    float anchor[2 * NET_MAX_ANCHORS]; /* w and h of each box: in cells ([region]) or pixels ([yolo]) */
};

struct mf_net {
    char *file; /* the .cfg's name */
    uint32_t flags;
    int64_t h, w, c;
    int layer_count;
    struct layer *layer;
    int64_t bytes;
};

extern const char *const mf_layer_names[LAYER_KINDS];

/* Layers of the sections: shapes and sources, without weights. */
mf_status mf_net_layers(const struct cfg *cfg, struct mf_net *net);
/* The shape of a layer's output; -1: the input's. */
void mf_net_shape(const struct mf_net *net, int layer, int64_t shape[3]);
/* Channels of the weights' order: filters, filled up to whole panels. */
static inline int64_t mf_layer_columns(const struct layer *layer)
{
    return layer->groups * layer->panels * layer->panel;
}
/* Numbers of a filter. */
static inline int64_t mf_layer_terms(const struct mf_net *net, const struct layer *layer)
{
    int64_t shape[3];
    mf_net_shape(net, layer->source[0], shape);
    return layer->size * layer->size * (shape[2] / layer->groups);
}

/* ---- weights.c ---- */

/* Where weights come from: a file (a FILE), or memory. */
struct weight_source {
    const char *name;
    void *file;
    const unsigned char *bytes;
    int64_t size, at;
};
/* Reads all of them into the layers. */
mf_status mf_net_weights(struct mf_net *net, struct weight_source *source);

#endif
