/* Loading networks, and what they say about themselves. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CFG_BYTES = 1 << 24 };

void mf_net_destroy(mf_net *net)
{
    if (!net)
        return;
    for (int l = 0; l < net->layer_count; l++) {
        mf_free(net->layer[l].weights);
        mf_free(net->layer[l].bias);
        mf_free(net->layer[l].scale);
        mf_free(net->layer[l].mean);
    }
    mf_free(net->layer);
    mf_free(net->file);
    mf_free(net);
}

static mf_status load(const char *file, const char *text, size_t bytes, struct weight_source *source,
                      struct mf_net *net)
{
    struct cfg cfg;
    const size_t length = strlen(file);
    net->file = mf_alloc(length + 1);
    if (!net->file)
        return MF_ERROR_MEMORY;
    memcpy(net->file, file, length + 1);
    mf_status status = mf_cfg_read(net->file, text, bytes, &cfg);
    if (status == MF_OK)
        status = mf_net_layers(&cfg, net);
    mf_cfg_forget(&cfg);
    net->bytes = (int64_t)sizeof *net + (int64_t)sizeof *net->layer * net->layer_count;
    return status == MF_OK ? mf_net_weights(net, source) : status;
}

static mf_status make(const char *file, const char *text, size_t bytes, struct weight_source *source, uint32_t flags,
                      mf_net **result)
{
    struct mf_net *net = mf_calloc(sizeof *net);
    if (!net)
        return MF_ERROR_MEMORY;
    net->flags = flags;
    mf_status status = load(file, text, bytes, source, net);
    if (status == MF_OK)
        *result = net;
    else
        mf_net_destroy(net);
    return status;
}

static mf_status check(const char *function, const void *cfg, const void *weights, uint32_t flags, mf_net **net)
{
    if (!cfg || !weights || !net)
        return mf_fail(MF_ERROR_ARGUMENT, "%s: %s is null", function,
                       !cfg       ? "the .cfg"
                       : !weights ? "the weights"
                                  : "the result");
    *net = NULL;
    if (flags & ~(uint32_t)MF_NET_UNFUSED)
        return mf_fail(MF_ERROR_ARGUMENT, "%s: the flags are 0x%x, and there is only MF_NET_UNFUSED", function,
                       (unsigned)flags);
    return MF_OK;
}

mf_status mf_net_parse(const char *cfg, size_t cfg_bytes, const void *weights, size_t weights_bytes, uint32_t flags,
                       mf_net **net)
{
    MF_TRY(check("mf_net_parse", cfg, weights, flags, net));
    struct weight_source source = {"the weights", NULL, weights, (int64_t)weights_bytes, 0};
    return make("the cfg", cfg, cfg_bytes, &source, flags, net);
}

/* The size of a file that can be wound back. */
static mf_status find_size(FILE *file, const char *path, int64_t *size)
{
    *size = fseek(file, 0, SEEK_END) ? -1 : ftell(file);
    if (*size >= 0 && !fseek(file, 0, SEEK_SET))
        return MF_OK;
    return mf_fail(MF_ERROR_FILE, "%.200s has no size: %s", path, strerror(errno));
}

mf_status mf_net_load(const char *cfg_path, const char *weights_path, uint32_t flags, mf_net **net)
{
    char *text;
    size_t bytes;
    int64_t size = 0;
    MF_TRY(check("mf_net_load", cfg_path, weights_path, flags, net));
    MF_TRY(mf_file_read(cfg_path, CFG_BYTES, &text, &bytes));
    FILE *file = fopen(weights_path, "rb");
    mf_status status = file ? find_size(file, weights_path, &size)
                            : mf_fail(MF_ERROR_FILE, "%.200s cannot be opened: %s", weights_path, strerror(errno));
    struct weight_source source = {mf_file_name(weights_path), file, NULL, size, 0};
    if (status == MF_OK)
        status = make(mf_file_name(cfg_path), text, bytes, &source, flags, net);
    if (file)
        fclose(file);
    mf_free(text);
    return status;
}

int mf_net_layer_count(const mf_net *net)
{
    return net ? net->layer_count : 0;
}

int64_t mf_net_bytes(const mf_net *net)
{
    return net ? net->bytes : 0;
}

mf_status mf_net_layer_get(const mf_net *net, int layer, mf_net_layer *info)
{
    int64_t shape[3];
    if (!net || !info || layer < -1 || layer >= net->layer_count)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_layer_get: %s",
                       !net || !info ? "a pointer is null" : "there is no such layer");
    const struct layer *l = layer < 0 ? NULL : &net->layer[layer];
    mf_net_shape(net, layer, shape);
    *info = (mf_net_layer){l ? mf_layer_names[l->kind] : "input",
                           l ? l->line : 1,
                           shape[0],
                           shape[1],
                           shape[2],
                           l ? l->parameters : 0,
                           l && l->kind == LAYER_CONVOLUTIONAL ? 2 * l->h * l->w * l->c * mf_layer_terms(net, l) : 0};
    return MF_OK;
}
