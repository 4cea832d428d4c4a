/* The tool that writes YOLOv2-tiny and YOLOv3-tiny (Redmon and Farhadi, 2016 and 2018) as .cfg files, of any size, with
 * random weights: their layers and sizes, nothing of their training. */
#include "net_small.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 8192 };

/* A text that grows in ROOM bytes. */
struct text {
    char *at;
    size_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int written = vsnprintf(text->at, text->left, format, arguments);
    va_end(arguments);
    const size_t count = written < 0 || (size_t)written >= text->left ? text->left - 1 : (size_t)written;
    text->at += count;
    text->left -= count;
}

static void add_conv(struct text *text, int filters, int size)
{
    add(text, "[convolutional]\nbatch_normalize=1\nfilters=%d\nsize=%d\nstride=1\npad=1\nactivation=leaky\n", filters,
        size);
}

/* What a detection layer reads. */
static void add_last(struct text *text, int filters)
{
    add(text, "[convolutional]\nfilters=%d\nsize=1\nstride=1\npad=1\nactivation=linear\n", filters);
}

/* 16 to 512 filters, each with its pool; the last one keeps the size. */
static void add_pools(struct text *text)
{
    for (int filters = 16; filters <= 512; filters *= 2) {
        add_conv(text, filters, 3);
        add(text, "[maxpool]\nsize=2\nstride=%d\n", filters == 512 ? 1 : 2);
    }
}

static void add_yolo(struct text *text, int first)
{
    add(text,
        "[yolo]\nmask=%d,%d,%d\nanchors=10,14, 23,27, 37,58, 81,82, 135,169, 344,319\nclasses=80\nnum=6\njitter=.3\n"
        "ignore_thresh=.7\ntruth_thresh=1\nrandom=1\n",
        first, first + 1, first + 2);
}

static void add_second(struct text *text)
{
    add_pools(text);
    add_conv(text, 1024, 3);
    add_conv(text, 1024, 3);
    add_last(text, 125);
    add(text, "[region]\nanchors=1.08,1.19, 3.42,4.41, 6.63,11.38, 9.42,5.11, 16.62,10.52\nbias_match=1\nclasses=20\n"
              "coords=4\nnum=5\nsoftmax=1\n");
}

/* The second head reads the first one's features, twice as large, beside those of layer 8. */
static void add_third(struct text *text)
{
    add_pools(text);
    add_conv(text, 1024, 3);
    add_conv(text, 256, 1);
    add_conv(text, 512, 3);
    add_last(text, 255);
    add_yolo(text, 3);
    add(text, "[route]\nlayers=-4\n");
    add_conv(text, 128, 1);
    add(text, "[upsample]\nstride=2\n[route]\nlayers=-1, 8\n");
    add_conv(text, 256, 3);
    add_last(text, 255);
    add_yolo(text, 0);
}

mf_net *net_tiny(int version, int side, uint32_t flags)
{
    char cfg[ROOM];
    struct text text = {cfg, sizeof cfg};
    size_t bytes;
    mf_net *net = NULL;
    add(&text, "[net]\nbatch=1\nsubdivisions=1\nwidth=%d\nheight=%d\nchannels=3\n", side, side);
    if (version == 2)
        add_second(&text);
    else
        add_third(&text);
    void *weights = net_lively_weights(cfg, strlen(cfg), 1, &bytes);
    if (weights)
        mf_net_parse(cfg, strlen(cfg), weights, bytes, flags, &net);
    free(weights);
    return net;
}
