/* A small network with every kind of layer: each way against the folds of solver reference. */
#include <math.h>

#include <modefold_net.h>

#include "gpu_test.h"
#include "net_small.h"

enum { H = 26, W = 30, C = 3, PICTURE = H * W * C, BATCH = 3, LAYERS = 19, ROOM = 1 << 17 };

static float picture[BATCH * PICTURE];
static float wanted[LAYERS + 1][ROOM];

static void make_pictures(void)
{
    for (int i = 0; i < BATCH * PICTURE; i++)
        picture[i] = (float)(i * 7919 % 10007) / 10007.0f;
}

static int64_t layer_size(const mf_net *net, int layer)
{
    mf_net_layer info;
    return mf_net_layer_get(net, layer, &info) == MF_OK ? info.height * info.width * info.channels : 0;
}

static mf_net_plan *plan_of(const mf_net *net, mf_device *device, const mf_net_options *options)
{
    mf_net_plan *plan = NULL;
    CHECK_MSG(mf_net_plan_create(net, device, options, &plan) == MF_OK, "%s", mf_error());
    return plan;
}

/* The golden outputs, of one picture. */
static void run_reference(const mf_net *net, mf_device *cpu)
{
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    setenv("MODEFOLD_SOLVER", "reference", 1);
    mf_net_plan *plan = plan_of(net, cpu, &(mf_net_options){.order_contract = 1, .keep = 1});
    CHECK_MSG(mf_net_plan_run(plan, &input) == MF_OK, "%s", mf_error());
    unsetenv("MODEFOLD_SOLVER");
    for (int l = -1; l < LAYERS; l++)
        CHECK_MSG(mf_net_plan_read(plan, l, wanted[l + 1], ROOM) == MF_OK, "%s", mf_error());
    CHECK(!memcmp(wanted[0], picture, sizeof(float) * PICTURE));
    mf_net_plan_destroy(plan);
}

/* What a plan without keep still has: what [region] and [yolo] read, and are. */
static int stays(int layer)
{
    return layer == 14 || layer == 15 || layer == 17 || layer == 18;
}

/* same: the bits must be equal, else up to a few roundings. */
static void compare(mf_net_plan *plan, const mf_net *net, const char *way, int same, int keep)
{
    static float found[BATCH * ROOM];
    for (int l = 0; l < LAYERS; l++) {
        if (!keep && !stays(l)) {
            CHECK_MSG(mf_net_plan_read(plan, l, found, BATCH * ROOM) == MF_ERROR_ARGUMENT &&
                          strstr(mf_error(), "is not kept"),
                      "%s: layer %d: %s", way, l, mf_error());
            continue;
        }
        const int64_t size = layer_size(net, l);
        double most = 0;
        CHECK_MSG(mf_net_plan_read(plan, l, found, BATCH * ROOM) == MF_OK, "%s", mf_error());
        for (int64_t i = 0; i < size; i++)
            most = fmax(most, isnan(found[i]) ? 1 : fabs((double)found[i] - wanted[l + 1][i]));
        CHECK_MSG(same ? !memcmp(found, wanted[l + 1], (size_t)size * sizeof *found) : most < 3e-5,
                  "%s: layer %d differs by up to %g", way, l, most);
    }
}

static void check_plan(const mf_net *net, const char *device_name, const mf_net_options *options, const char *way,
                       int same)
{
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    mf_device *device = NULL;
    mf_net_plan *plan = NULL;
    mf_status status = mf_device_open(device_name, &device);
    if (status == MF_OK)
        status = mf_net_plan_create(net, device, options, &plan);
    if (status == MF_ERROR_DEVICE || status == MF_ERROR_UNSUPPORTED)
        check_skip(way, mf_error());
    else if (CHECK_MSG(status == MF_OK && mf_net_plan_run(plan, &input) == MF_OK, "%s: %s", way, mf_error()))
        compare(plan, net, way, same, options->keep);
    mf_net_plan_destroy(plan);
    mf_device_close(device);
}

/* With every layer's output, and with what is left of them. */
static void check_way(const mf_net *net, const char *device_name, mf_net_options options, const char *way, int same)
{
    options.keep = 1;
    check_plan(net, device_name, &options, way, same);
    options.keep = 0;
    check_plan(net, device_name, &options, way, same);
}

/* Every picture of a batch is what it is alone; bytes are 255ths; strides do not matter. */
static void check_inputs(const mf_net *net, mf_device *cpu)
{
    static float one[ROOM], batch[BATCH * ROOM], flipped[PICTURE];
    static unsigned char bytes[PICTURE];
    const int64_t shape[4] = {BATCH, H, W, C}, last = layer_size(net, 14);
    const int64_t strides[3] = {C, C * H, 1};
    mf_net_plan *single = plan_of(net, cpu, &(mf_net_options){.order_contract = 1});
    mf_net_plan *many = plan_of(net, cpu, &(mf_net_options){.order_contract = 1, .batch = BATCH});
    DLTensor all = mf_tensor(picture, MF_F32, 4, shape), input;
    CHECK(mf_net_plan_run(many, &all) == MF_OK && mf_net_plan_read(many, 14, batch, BATCH * ROOM) == MF_OK);
    for (int n = 0; n < BATCH; n++) {
        input = mf_tensor(picture + n * PICTURE, MF_F32, 3, shape + 1);
        CHECK(mf_net_plan_run(single, &input) == MF_OK && mf_net_plan_read(single, 14, one, ROOM) == MF_OK);
        CHECK_MSG(!memcmp(one, batch + n * last, (size_t)last * sizeof *one), "picture %d of a batch differs", n);
    }
    for (int i = 0; i < PICTURE; i++) {
        bytes[i] = (unsigned char)(i * 31 % 256);
        flipped[i % C + (i / C / W + i / C % W * H) * C] = picture[i] = (float)bytes[i] / 255.0f;
    }
    input = mf_tensor(bytes, MF_U8, 3, shape + 1);
    CHECK(mf_net_plan_run(single, &input) == MF_OK && mf_net_plan_read(single, 14, one, ROOM) == MF_OK);
    input = mf_tensor(flipped, MF_F32, 3, shape + 1);
    input.strides = (int64_t *)(uintptr_t)strides;
    CHECK(mf_net_plan_run(single, &input) == MF_OK && mf_net_plan_read(single, 14, batch, ROOM) == MF_OK);
    CHECK(!memcmp(one, batch, (size_t)last * sizeof *one));
    mf_net_plan_destroy(single);
    mf_net_plan_destroy(many);
    make_pictures();
}

static void check_info(const mf_net *net)
{
    static const struct {
        const char *kind;
        int64_t h, w, c;
    } layers[] = {{"convolutional", 26, 30, 12}, {"maxpool", 13, 15, 12},       {"convolutional", 13, 15, 72},
                  {"maxpool", 13, 15, 72},       {"convolutional", 13, 15, 36}, {"convolutional", 13, 15, 36},
                  {"shortcut", 13, 15, 36},      {"convolutional", 7, 8, 20},   {"dropout", 7, 8, 20},
                  {"upsample", 14, 16, 20},      {"route", 7, 8, 20},           {"maxpool", 7, 8, 20},
                  {"route", 7, 8, 60},           {"route", 7, 8, 30},           {"convolutional", 7, 8, 21},
                  {"region", 7, 8, 21},          {"route", 14, 16, 20},         {"convolutional", 14, 16, 14},
                  {"yolo", 14, 16, 14}};
    mf_net_layer info;
    CHECK(mf_net_layer_count(net) == LAYERS && mf_net_layer_count(NULL) == 0);
    for (int l = 0; l < LAYERS; l++)
        CHECK_MSG(mf_net_layer_get(net, l, &info) == MF_OK && !strcmp(info.kind, layers[l].kind) &&
                      info.height == layers[l].h && info.width == layers[l].w && info.channels == layers[l].c,
                  "layer %d is %s %d x %d x %d", l, info.kind, (int)info.height, (int)info.width, (int)info.channels);
    CHECK(mf_net_layer_get(net, 0, &info) == MF_OK && info.line == 7 && info.parameters == 12 * 4 + 12 * 27 &&
          info.operations == 2 * 26 * 30 * 12 * 27);
    CHECK(mf_net_layer_get(net, 4, &info) == MF_OK && info.parameters == 36 + 36 * 9 * 12);
}

/* The steps of the fused and of the unfused network, and their times. */
static void check_steps(const mf_net *fused, const mf_net *unfused, mf_device *cpu)
{
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    mf_net_plan *few = plan_of(fused, cpu, &(mf_net_options){.keep = 1}), *many = plan_of(unfused, cpu, NULL);
    mf_net_plan *least = plan_of(fused, cpu, NULL);
    mf_net_step step;
    CHECK(mf_net_plan_step_count(few) == 7 + 3 + 1 + 1 + 3 && mf_net_plan_step_count(NULL) == 0);
    CHECK(mf_net_plan_step_count(least) == 7 + 2 + 1 + 1 + 3 && mf_net_plan_bytes(least) < mf_net_plan_bytes(few));
    CHECK(mf_net_plan_step_count(many) == 7 + 3 + 1 + 1 + 3 + /* norm, bias, activation */ 3 + 7 + 4);
    CHECK(mf_net_plan_step(few, 0, &step) == MF_OK && step.seconds == 0 && !strcmp(step.kind, "Conv2D"));
    mf_net_plan_measure(few, 1);
    CHECK(mf_net_plan_run(few, &input) == MF_OK);
    CHECK(mf_net_plan_step(few, 0, &step) == MF_OK && step.seconds > 0 &&
          strstr(step.description, "leaky(sum(a*b)+c)"));
    CHECK(mf_net_plan_step(many, 1, &step) == MF_OK && !strcmp(step.kind, "BatchNorm") && step.layer == 0);
    CHECK(mf_net_plan_bytes(few) > 4 * PICTURE && mf_net_bytes(fused) > 0);
    mf_net_plan_destroy(few);
    mf_net_plan_destroy(least);
    mf_net_plan_destroy(many);
}

/* All kernels of a network, for GPUs that are not here. */
static void check_compiling(const mf_net *net)
{
    mf_device *device;
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    if (mf_device_open("sm:90", &device) != MF_OK) {
        check_skip("kernels for sm:90", mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    mf_net_plan *plan = plan_of(net, device, NULL);
    CHECK(mf_net_plan_run(plan, &input) == MF_ERROR_UNSUPPORTED);
    mf_net_plan_destroy(plan);
    gpu_test_keep_compiled(0);
    mf_device_close(device);
}

int main(void)
{
    mf_device *cpu;
    gpu_test_environment("off");
    mf_net *fused = net_small(0), *unfused = net_small(MF_NET_UNFUSED);
    if (!CHECK_MSG(fused && unfused && mf_device_open("cpu", &cpu) == MF_OK, "%s", mf_error()))
        return check_done("net");
    make_pictures();
    run_reference(fused, cpu);
    check_info(fused);
    check_way(fused, "cpu", (mf_net_options){.order_contract = 1}, "folds in the contract's order", 1);
    check_way(fused, "cpu:1", (mf_net_options){.order_contract = 1}, "folds on one thread", 1);
    check_way(fused, "cpu", (mf_net_options){0}, "folds", 0);
    check_way(fused, "cpu", (mf_net_options){.direct = 1}, "folds without Winograd", 0);
    check_way(unfused, "cpu", (mf_net_options){0}, "unfused folds", 0);
    check_way(fused, "cpu", (mf_net_options){.way = MF_NET_SCALAR}, "plain loops", 0);
    check_way(unfused, "cpu", (mf_net_options){.way = MF_NET_SCALAR}, "unfused plain loops", 0);
    check_way(fused, "cpu", (mf_net_options){.way = MF_NET_BLAS}, "OpenBLAS", 0);
    check_way(unfused, "cpu", (mf_net_options){.way = MF_NET_BLAS}, "OpenBLAS, unfused", 0);
    check_way(fused, "opencl:0", (mf_net_options){.order_contract = 1}, "OpenCL", 1);
    check_way(fused, "cuda:0", (mf_net_options){.order_contract = 1}, "CUDA", 1);
    check_way(fused, "cuda:0", (mf_net_options){.way = MF_NET_BLAS}, "cuBLAS", 0);
    check_inputs(fused, cpu);
    check_steps(fused, unfused, cpu);
    check_compiling(fused);
    mf_device_close(cpu);
    mf_net_destroy(fused);
    mf_net_destroy(unfused);
    return check_done("net");
}
