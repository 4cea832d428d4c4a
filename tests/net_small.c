/* The tool that writes the small networks' weights, in darknet's format. */
#include "net_small.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../net/net.h"

char *net_text(const char *path, size_t *bytes)
{
    char whole[1024];
    const char *root = getenv("MODEFOLD_SOURCE");
    snprintf(whole, sizeof whole, "%s/%s", root && *root ? root : MODEFOLD_SOURCE_DIR, path);
    FILE *file = fopen(whole, "rb");
    char *text = malloc(1 << 16);
    *bytes = file && text ? fread(text, 1, (1 << 16) - 1, file) : 0;
    if (text)
        text[*bytes] = 0;
    if (file)
        fclose(file);
    return text;
}

/* From -1 to 1. */
static float draw(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return (float)(*state >> 8) / 8388608.0f - 1;
}

static float *fill(float *to, int64_t n, float middle, float by, unsigned *state)
{
    for (int64_t i = 0; i < n; i++)
        *to++ = middle + by * draw(state);
    return to;
}

static void *write_weights(const struct mf_net *net, int lively, unsigned seed, size_t *bytes)
{
    static const int32_t header[5] = {0, 2, 0, 1000, 0};
    int64_t numbers = 0;
    for (int l = 0; l < net->layer_count; l++)
        numbers += net->layer[l].parameters;
    *bytes = sizeof header + (size_t)numbers * sizeof(float);
    char *file = malloc(*bytes);
    float *to = (float *)(void *)(file + sizeof header);
    if (!file)
        return NULL;
    memcpy(file, header, sizeof header);
    for (int l = 0; l < net->layer_count; l++) {
        const struct layer *layer = &net->layer[l];
        if (layer->kind != LAYER_CONVOLUTIONAL)
            continue;
        const int64_t terms = mf_layer_terms(net, layer);
        const float some = lively ? 0.1f : 0.5f, most = lively ? 0.1f : 0.8f;
        const float by = lively ? sqrtf(6.0f / (float)terms) : 3.0f / (float)(terms > 9 ? terms / 3 : 3);
        to = fill(to, layer->c, 0, 0.3f, &seed);
        if (layer->batch_normalize) {
            to = fill(to, layer->c, 1, some, &seed); /* scales, */
            to = fill(to, layer->c, 0, some, &seed); /* means, */
            to = fill(to, layer->c, 1, most, &seed); /* variances */
        }
        to = fill(to, layer->c * terms, 0, by, &seed);
    }
    return file;
}

static void *weights_for(const char *cfg_text, size_t cfg_bytes, int lively, unsigned seed, size_t *bytes)
{
    struct cfg cfg;
    struct mf_net net = {.file = NULL};
    void *file = NULL;
    if (mf_cfg_read("small", cfg_text, cfg_bytes, &cfg) == MF_OK && mf_net_layers(&cfg, &net) == MF_OK)
        file = write_weights(&net, lively, seed, bytes);
    mf_free(net.layer);
    mf_cfg_forget(&cfg);
    return file;
}

void *net_random_weights(const char *cfg, size_t cfg_bytes, unsigned seed, size_t *bytes)
{
    return weights_for(cfg, cfg_bytes, 0, seed, bytes);
}

void *net_lively_weights(const char *cfg, size_t cfg_bytes, unsigned seed, size_t *bytes)
{
    return weights_for(cfg, cfg_bytes, 1, seed, bytes);
}

mf_net *net_small(uint32_t flags)
{
    size_t cfg_bytes, bytes;
    mf_net *net = NULL;
    char *cfg = net_text("tests/nets/small.cfg", &cfg_bytes);
    void *weights = cfg ? net_random_weights(cfg, cfg_bytes, 1, &bytes) : NULL;
    if (weights)
        mf_net_parse(cfg, cfg_bytes, weights, bytes, flags, &net);
    free(weights);
    free(cfg);
    return net;
}
