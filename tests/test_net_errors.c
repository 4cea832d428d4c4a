/* What is wrong with a network's files, and with calls: the status, and a sentence that says where. */
#include <math.h>

#include <modefold_net.h>

#include "check.h"
#include "error.h"
#include "net_small.h"

#define NET "[net]\nheight=8\nwidth=9\nchannels=3\n"

static mf_device *cpu;

static void expect(mf_status status, mf_status want, const char *part, const char *what)
{
    CHECK_MSG(status == want && strstr(mf_error(), part), "%s: %s, \"%s\", not %s with \"%s\"", what,
              mf_status_name(status), mf_error(), mf_status_name(want), part);
}

/* ---- .cfg ---- */

static void check_cfg(void)
{
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"", "there is no section"},
        {"width=3\n[net]\n", ":1: \"width=3\" stands before the first section"},
        {"[net\n", ":1: \"[net\" is no section"},
        {NET "[convolutional]\nfilters\n", ":6: [convolutional] \"filters\" is neither key=value"},
        {"[convolutional]\n", ":1: [convolutional] stands first"},
        {"[net]\nheight=8\nwidth=9\n[dropout]\n", ":1: [net] height, width or channels are missing"},
        {"[net]\nheight=0\n[dropout]\n", ":2: [net] height=0 is not from 1 to"},
        {NET, "there are 0 layers"},
        {NET "[lstm]\n", ":5: [lstm] is no layer that modefold has"},
        {NET "[convolutional]\nfilters=x\n", ":6: [convolutional] filters=x is no whole number"},
        {NET "[convolutional]\n\n# more\nfilters=0\n", ":8: [convolutional] filters=0 is not from 1"},
        {NET "[convolutional]\nactivation=swash\n", ":6: [convolutional] activation swash is unknown"},
        {NET "[convolutional]\ngroups=2\nfilters=4\n", ":5: [convolutional] 3 channels and 4 filters do not go into 2"},
        {NET "[convolutional]\nsize=11\n", ":5: [convolutional] the input is 8 x 9, and with 0 of padding smaller"},
        {NET "[convolutional]\nxnor=1\n", ":6: [convolutional] xnor=1 is not supported"},
        {NET "[maxpool]\nsize=2\npadding=4\n", "padding=4 puts whole windows"},
        {NET "[dropout]\n[route]\n", ":6: [route] layers says no layer"},
        {NET "[dropout]\n[route]\nlayers=-2\n", ":7: [route] layers: there is no layer -2 before layer 1"},
        {NET "[dropout]\n[route]\nlayers=0.5\n", "there is no layer 0.5"},
        {NET "[dropout]\n[route]\nlayers=0,x\n", ":7: [route] layers: \"x\" is no number"},
        {NET "[dropout]\n[route]\nlayers=0,0,0,0,0,0,0,0,0\n", "layers has more than 8 numbers"},
        {NET "[dropout]\n[route]\nlayers=0\ngroups=2\n", "layer 0 has 3 channels, which are no 2 groups"},
        {NET "[dropout]\n[maxpool]\nsize=2\nstride=2\n[route]\nlayers=0,1\n", "do not go beside each other"},
        {NET "[dropout]\n[maxpool]\nsize=2\nstride=2\n[shortcut]\nfrom=0\n", "only equal ones are added"},
        {NET "[upsample]\nstride=1000\n[upsample]\nstride=1000\n", ":7: [upsample] an output of"},
        {NET "[region]\nnum=2\nclasses=2\n", "2 boxes of 2 classes want 14 channels and there are 3"},
        {"[net]\nheight=8\nwidth=9\nchannels=14\n[region]\nnum=2\nclasses=2\nanchors=1,2\n", "want 4 anchors"},
        {NET "[region]\ncoords=5\n", "coords=5 is not supported"},
        {NET "[yolo]\nnum=2\nmask=5\nanchors=1,2,3,4\n", "mask: there is no pair 5 of 4 anchors"},
    };
    static const int32_t header[5] = {0, 2, 0, 0, 0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mf_net *net = (mf_net *)1;
        expect(mf_net_parse(wrong[i].text, strlen(wrong[i].text), header, sizeof header, 0, &net), MF_ERROR_FILE,
               wrong[i].part, wrong[i].text);
        CHECK(!net);
    }
    mf_net *net;
    expect(mf_net_parse("[net]\n\0x", 8, header, sizeof header, 0, &net), MF_ERROR_FILE, ":2: there is a zero byte",
           "a zero byte");
}

/* ---- .weights ---- */

static void check_weights(void)
{
    static const char cfg[] = NET "[dropout]\n[convolutional]\nfilters=2\nsize=3\n";
    static float file[5 + 2 + 2 * 27 + 1];
    const size_t right = sizeof file - 4;
    mf_net *net = NULL;
    int32_t version[3] = {0, 2, 0};
    memcpy(file, version, sizeof version);
    expect(mf_net_parse(cfg, strlen(cfg), file, 11, 0, &net), MF_ERROR_FILE, "11 bytes, which are no header", "short");
    expect(mf_net_parse(cfg, strlen(cfg), file, 18, 0, &net), MF_ERROR_FILE, "18 bytes, which are no header", "seen");
    expect(mf_net_parse(cfg, strlen(cfg), file, right - 4, 0, &net), MF_ERROR_FILE,
           "ends after 240 bytes, in the weights of layer 1, [convolutional], the cfg:6, which want bytes up to 244",
           "truncated");
    expect(mf_net_parse(cfg, strlen(cfg), file, right + 4, 0, &net), MF_ERROR_FILE,
           "has 248 bytes, and 244 are the network's", "oversized");
    CHECK(!net && mf_net_parse(cfg, strlen(cfg), file, right, 0, &net) == MF_OK && net);
    mf_net_destroy(net);
    version[1] = 1; /* an older file's header is 4 bytes shorter */
    memcpy(file, version, sizeof version);
    CHECK(mf_net_parse(cfg, strlen(cfg), file, right - 4, 0, &net) == MF_OK);
    mf_net_destroy(net);
    version[0] = 0x04034b50;
    memcpy(file, version, sizeof version);
    expect(mf_net_parse(cfg, strlen(cfg), file, right, 0, &net), MF_ERROR_FILE, "this is no weights file", "a zip");
}

static void check_files(void)
{
    mf_net *net;
    mf_net_names *names;
    expect(mf_net_load("missing.cfg", "missing.weights", 0, &net), MF_ERROR_FILE, "missing.cfg cannot be opened",
           "cfg");
    FILE *file = fopen("there.cfg", "wb");
    CHECK(file && fputs(NET "[dropout]\n", file) > 0 && !fclose(file));
    expect(mf_net_load("there.cfg", "missing.weights", 0, &net), MF_ERROR_FILE, "missing.weights cannot be opened",
           "w");
    expect(mf_net_load("there.cfg", "there.cfg", 0, &net), MF_ERROR_FILE, "there.cfg begins with version",
           "a cfg twice");
    expect(mf_net_names_load("missing.names", &names), MF_ERROR_FILE, "missing.names cannot be opened", "names");
    expect(mf_net_names_parse(" \n\n", 3, &names), MF_ERROR_FILE, "has 0 names", "no names");
    expect(mf_net_names_parse("a\0b", 3, &names), MF_ERROR_FILE, "zero byte", "no text");
    CHECK(mf_net_names_parse(" cat \r\n\ndog\n\n", 13, &names) == MF_OK && mf_net_names_count(names) == 3);
    CHECK(!strcmp(mf_net_names_get(names, 0), "cat") && !strcmp(mf_net_names_get(names, 1), "") &&
          !strcmp(mf_net_names_get(names, 2), "dog") && !mf_net_names_get(names, 3) && !mf_net_names_get(NULL, 0));
    mf_net_names_destroy(names);
}

/* ---- calls ---- */

static void check_calls(const mf_net *net)
{
    static float values[26 * 30 * 3], small[10];
    int64_t shape[4] = {26, 30, 3, 1}, count;
    mf_net_plan *plan;
    mf_net_layer info;
    mf_net_step step;
    mf_net *none;
    DLTensor input = mf_tensor(values, MF_F32, 3, shape);
    expect(mf_net_parse(NULL, 0, values, 0, 0, &none), MF_ERROR_ARGUMENT, "the .cfg is null", "null");
    expect(mf_net_parse("", 0, values, 0, 8, &none), MF_ERROR_ARGUMENT, "the flags are 0x8", "flags");
    expect(mf_net_layer_get(net, 19, &info), MF_ERROR_ARGUMENT, "no such layer", "layer");
    expect(mf_net_plan_create(NULL, cpu, NULL, &plan), MF_ERROR_ARGUMENT, "the network is null", "null");
    expect(mf_net_plan_create(net, cpu, &(mf_net_options){.way = (mf_net_way)7}, &plan), MF_ERROR_ARGUMENT, "way 7",
           "way");
    expect(mf_net_plan_create(net, cpu, &(mf_net_options){.solver = "best"}, &plan), MF_ERROR_ARGUMENT,
           "there is no solver \"best\"", "a solver");
    expect(mf_net_plan_create(net, cpu, &(mf_net_options){.solver = "direct", .order_contract = 1}, &plan),
           MF_ERROR_ARGUMENT, "solver direct was asked for, which goes with MF_NET_FOLDS, not with order_contract",
           "both");
    expect(mf_net_plan_create(net, cpu, &(mf_net_options){.solver = "direct", .way = MF_NET_BLAS}, &plan),
           MF_ERROR_ARGUMENT, "not with MF_NET_BLAS", "a solver and BLAS");
    expect(mf_net_plan_create(net, cpu, &(mf_net_options){.batch = 1LL << 52}, &plan), MF_ERROR_OVERFLOW, "too large",
           "n");
    CHECK(mf_net_plan_create(net, cpu, NULL, &plan) == MF_OK);
    expect(mf_net_plan_read(plan, 0, values, 9360), MF_ERROR_ARGUMENT, "layer 0's output is not kept, its step makes",
           "pooled");
    expect(mf_net_plan_read(plan, 5, values, 9360), MF_ERROR_ARGUMENT, "layer 5's output is not kept, others have",
           "used again");
    mf_net_plan_destroy(plan);
    CHECK(mf_net_plan_create(net, cpu, &(mf_net_options){.keep = 1}, &plan) == MF_OK);
    expect(mf_net_plan_run(NULL, &input), MF_ERROR_ARGUMENT, "the plan is null", "null");
    expect(mf_net_plan_run(plan, NULL), MF_ERROR_ARGUMENT, "the input is null", "null");
    shape[0] = 27;
    expect(mf_net_plan_run(plan, &input), MF_ERROR_SHAPE, "27 x 30 x 3 came and the plan is for 1 of 26 x 30 x 3",
           "27");
    shape[0] = 26;
    input.ndim = 2;
    expect(mf_net_plan_run(plan, &input), MF_ERROR_SHAPE, "2 dimensions", "rank");
    input = mf_tensor(values, MF_I32, 3, shape);
    expect(mf_net_plan_run(plan, &input), MF_ERROR_TYPE, "of type i32", "type");
    expect(mf_net_plan_read(plan, 0, small, 10), MF_ERROR_ARGUMENT, "layer 0 has 9360 numbers", "room");
    expect(mf_net_plan_read(plan, 77, small, 10), MF_ERROR_ARGUMENT, "no such layer", "layer");
    expect(mf_net_plan_step(plan, 99, &step), MF_ERROR_ARGUMENT, "no such step", "step");
    expect(mf_net_plan_detect(plan, 1, NULL, NULL, 0, &count), MF_ERROR_ARGUMENT, "no picture 1 of 1", "item");
    expect(mf_net_plan_detect(plan, 0, &(mf_net_detecting){.rules = (mf_net_rules)5}, NULL, 0, &count),
           MF_ERROR_ARGUMENT, "rules 5", "rules");
    mf_net_plan_destroy(plan);
    input = mf_tensor(values, MF_U8, 3, shape);
    expect(mf_net_fit(&input, 0, 0, 4, values), MF_ERROR_ARGUMENT, "0 x 4 is no size", "size");
    input = mf_tensor(values, MF_F32, 3, shape);
    expect(mf_net_fit(&input, 0, 4, 4, small), MF_ERROR_TYPE, "of type f32", "type");
    shape[2] = 5;
    input = mf_tensor(values, MF_U8, 3, shape);
    expect(mf_net_fit(&input, 0, 4, 4, small), MF_ERROR_SHAPE, "no height x width x 1 to 4", "channels");
}

/* A network without [region] and [yolo]. */
static void check_nothing_to_detect(void)
{
    static const int32_t header[5] = {0, 2, 0, 0, 0};
    mf_net *net;
    mf_net_plan *plan;
    int64_t count;
    CHECK(mf_net_parse(NET "[dropout]\n", strlen(NET "[dropout]\n"), header, sizeof header, 0, &net) == MF_OK);
    CHECK(mf_net_plan_create(net, cpu, NULL, &plan) == MF_OK);
    expect(mf_net_plan_detect(plan, 0, NULL, NULL, 0, &count), MF_ERROR_UNSUPPORTED, "detects nothing", "dropout");
    mf_net_plan_destroy(plan);
    mf_net_destroy(net);
}

/* ---- memory ---- */

/* A small network whose convolutions are Winograd's and bands, each with its pool. */
static mf_status make_steps(void)
{
    static const char cfg[] = NET "[convolutional]\nfilters=16\nsize=3\npad=1\nactivation=leaky\n[maxpool]\nsize=2\n"
                                  "stride=2\n[convolutional]\nfilters=8\nsize=3\npadding=2\nactivation=relu\n";
    static float weights[5 + 16 + 16 * 27 + 8 + 8 * 16 * 9], values[8 * 9 * 3];
    static const int32_t version[2] = {0, 2};
    const int64_t shape[3] = {8, 9, 3};
    const DLTensor input = mf_tensor(values, MF_F32, 3, shape);
    mf_net *net = NULL;
    mf_net_plan *plan = NULL;
    mf_net_step step = {.description = ""};
    memcpy(weights, version, sizeof version);
    mf_status status = mf_net_parse(cfg, strlen(cfg), weights, sizeof weights, 0, &net);
    if (status == MF_OK)
        status = mf_net_plan_create(net, cpu, NULL, &plan);
    if (status == MF_OK)
        status = mf_net_plan_run(plan, &input);
    if (status == MF_OK) {
        CHECK(mf_net_plan_step(plan, 0, &step) == MF_OK && strstr(step.description, "bands"));
        CHECK(mf_net_plan_step(plan, 1, &step) == MF_OK && strstr(step.description, "Winograd"));
    }
    mf_net_plan_destroy(plan);
    mf_net_destroy(net);
    return status;
}

static mf_status everything_in(mf_net_precision precision)
{
    static float values[26 * 30 * 3];
    const int64_t shape[3] = {26, 30, 3};
    const DLTensor input = mf_tensor(values, MF_F32, 3, shape);
    static const char cfg[] = "[net]\nheight=26\nwidth=30\nchannels=3\n[convolutional]\nbatch_normalize=1\nfilters=7\n"
                              "size=1\nactivation=leaky\n[region]\nclasses=2\nanchors=1,2\n";
    static float weights[5 + 4 * 7 + 21];
    static const int32_t version[2] = {0, 2};
    mf_net *net = NULL;
    mf_net_plan *plan = NULL;
    mf_net_names *names = NULL;
    int64_t count;
    memcpy(weights, version, sizeof version);
    mf_status status = mf_net_parse(cfg, strlen(cfg), weights, sizeof weights, MF_NET_UNFUSED, &net);
    if (status == MF_OK)
        status = mf_net_plan_create(net, cpu, &(mf_net_options){.precision = precision}, &plan);
    if (status == MF_OK)
        status = mf_net_plan_run(plan, &input);
    if (status == MF_OK)
        status = mf_net_plan_detect(plan, 0, NULL, NULL, 0, &count);
    if (status == MF_OK)
        status = mf_net_names_parse("a\nb\n", 4, &names);
    mf_net_names_destroy(names);
    mf_net_plan_destroy(plan);
    mf_net_destroy(net);
    return status;
}

static mf_status everything(void)
{
    return everything_in(MF_NET_F32);
}

static mf_status everything_f16(void)
{
    return everything_in(MF_NET_F16);
}

static void check_memory(mf_status (*everything_of)(void))
{
    mf_status status = MF_ERROR_MEMORY;
    int k = 0;
    for (; k < 300 && status != MF_OK; k++) {
        mf_alloc_budget = k;
        status = everything_of();
        mf_alloc_budget = -1;
        CHECK_MSG(status == MF_OK || (status == MF_ERROR_MEMORY && strstr(mf_error(), "memory")),
                  "with %d allocations: %s, %s", k, mf_status_name(status), mf_error());
    }
    CHECK_MSG(status == MF_OK && k > 20, "%d allocations", k);
}

int main(void)
{
    mf_net *net = net_small(0);
    if (!CHECK_MSG(net && mf_device_open("cpu:2", &cpu) == MF_OK, "%s", mf_error()))
        return check_done("net_errors");
    CHECK(!strcmp(mf_status_name(MF_ERROR_FILE), "MF_ERROR_FILE"));
    check_cfg();
    check_weights();
    check_files();
    check_calls(net);
    check_nothing_to_detect();
    check_memory(everything);
    check_memory(everything_f16);
    check_memory(make_steps);
    mf_net_destroy(NULL);
    mf_net_plan_destroy(NULL);
    mf_net_names_destroy(NULL);
    mf_device_close(cpu);
    mf_net_destroy(net);
    return check_done("net_errors");
}
