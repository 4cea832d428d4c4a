/* libFuzzer target for networks: a .cfg, a byte 0xff, the .weights; without that byte the weights are made to fit. What
 * is accepted must say what it is, and small networks must run; what is refused must come with a sentence. */
#include <stdlib.h>
#include <string.h>

#include <modefold_net.h>

#include "../../net/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { SMALL = 1 << 14, MOST_OPERATIONS = 1 << 20 };

static void require(int condition)
{
    if (!condition)
        abort();
}

/* As many bytes as the .cfg wants, zeros behind the header; null where it is wrong or large. */
static unsigned char *make_weights(const char *cfg_text, size_t cfg_bytes, size_t *bytes)
{
    struct cfg cfg;
    struct mf_net net = {.file = NULL};
    int64_t numbers = 0;
    unsigned char *weights = NULL;
    if (mf_cfg_read("fuzz", cfg_text, cfg_bytes, &cfg) == MF_OK && mf_net_layers(&cfg, &net) == MF_OK) {
        for (int l = 0; l < net.layer_count && numbers < SMALL; l++)
            numbers += net.layer[l].parameters;
        *bytes = 16 + 4 * (size_t)numbers;
        weights = numbers < SMALL ? calloc(1, *bytes) : NULL;
    }
    mf_free(net.layer);
    mf_cfg_forget(&cfg);
    return weights;
}

static int is_small(const mf_net *net)
{
    int64_t operations = 0;
    for (int l = -1; l < mf_net_layer_count(net); l++) {
        mf_net_layer info;
        require(mf_net_layer_get(net, l, &info) == MF_OK && info.height > 0 && info.width > 0 && info.channels > 0);
        const int64_t window = l >= 0 && net->layer[l].size > 0 ? net->layer[l].size : 1;
        operations += info.operations + info.height * info.width * info.channels * window * window;
        if (operations > MOST_OPERATIONS)
            return 0;
    }
    return mf_net_layer_count(net) < 40;
}

static void run(const mf_net *net, mf_device *cpu)
{
    mf_net_plan *plan = NULL;
    mf_net_box box[4];
    int64_t count;
    const int64_t shape[3] = {net->h, net->w, net->c};
    float *picture = calloc((size_t)(net->h * net->w * net->c), sizeof *picture);
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    require(picture && mf_net_plan_create(net, cpu, NULL, &plan) == MF_OK);
    require(mf_net_plan_run(plan, &input) == MF_OK);
    require(mf_net_plan_detect(plan, 0, NULL, box, 4, &count) == MF_OK || mf_error()[0]);
    mf_net_plan_destroy(plan);
    free(picture);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static mf_device *cpu;
    const uint8_t *cut = size ? memchr(bytes, 0xff, size) : NULL;
    const size_t cfg_bytes = cut ? (size_t)(cut - bytes) : size;
    size_t weight_bytes = cut ? size - cfg_bytes - 1 : 0;
    unsigned char *made = cut ? NULL : make_weights((const char *)bytes, cfg_bytes, &weight_bytes);
    mf_net *net = NULL;
    if (!cpu)
        require(mf_device_open("cpu:1", &cpu) == MF_OK);
    if (!cut && !made)
        return 0;
    if (mf_net_parse((const char *)bytes, cfg_bytes, made ? made : cut + 1, weight_bytes, 0, &net) != MF_OK)
        require(!net && mf_error()[0] != 0);
    else if (is_small(net))
        run(net, cpu);
    mf_net_destroy(net);
    free(made);
    return 0;
}
