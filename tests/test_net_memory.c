/* Memory of networks: what a plan allocates on its device is what it says, and no more than 1.3 times the weights and
 * the two largest outputs; memory that is used again changes no results, run after run. Kernels' workspaces and
 * pictures that were uploaded count. On "sm:90" plans are made as on CUDA, and nothing runs. */
#include <math.h>

#include <modefold_net.h>

#include "../net/plan.h"
#include "../src/gpu/gpu.h"
#include "../src/plan.h"

#include "gpu_test.h"
#include "net_small.h"

enum { NETS = 3, SIDE = 416, MOST_BLOCKS = 4096, SMALL_ROOM = 1 << 17 };
static const char *const precisions[] = {"f32", "tf32", "f16"};

/* ---- a device whose allocations are counted ---- */

static struct {
    struct gpu_api api;
    mf_status (*alloc)(struct gpu *gpu, int64_t bytes, void **memory);
    void (*release)(struct gpu *gpu, void *memory);
    const void *block[MOST_BLOCKS];
    int64_t size[MOST_BLOCKS], taken;
} counted;

static mf_status counting_alloc(struct gpu *gpu, int64_t bytes, void **memory)
{
    const mf_status status = counted.alloc(gpu, bytes, memory);
    int b = 0;
    while (b < MOST_BLOCKS - 1 && counted.block[b])
        b++;
    if (status == MF_OK) {
        counted.block[b] = *memory;
        counted.size[b] = bytes;
        counted.taken += bytes;
    }
    return status;
}

/* On sm:90 all memory is at one address: any of the blocks there goes, and what is left means nothing. */
static void counting_release(struct gpu *gpu, void *memory)
{
    int b = 0;
    while (b < MOST_BLOCKS - 1 && counted.block[b] != memory)
        b++;
    if (memory && counted.block[b] == memory) {
        counted.taken -= counted.size[b];
        counted.block[b] = NULL;
    }
    counted.release(gpu, memory);
}

static mf_device *open_counted(const char *name)
{
    mf_device *device;
    if (mf_device_open(name, &device) != MF_OK) {
        check_skip(name, mf_error());
        return NULL;
    }
    counted.api = *device->api;
    counted.alloc = device->api->alloc;
    counted.release = device->api->release;
    counted.api.alloc = counting_alloc;
    counted.api.release = counting_release;
    device->api = &counted.api;
    return device;
}

/* ---- the limit ---- */

/* 1.3 times the weights and the two largest outputs; item: bytes of a number. */
static double limit_of(const mf_net *net, int64_t batch, int64_t item)
{
    int64_t first = 0, second = 0, parameters = 0;
    for (int l = -1; l < mf_net_layer_count(net); l++) {
        mf_net_layer info;
        CHECK(mf_net_layer_get(net, l, &info) == MF_OK);
        const int64_t bytes = item * batch * info.height * info.width * info.channels;
        second = bytes > first ? first : bytes > second ? bytes : second;
        first = bytes > first ? bytes : first;
        parameters += info.parameters;
    }
    return 1.3 * (double)(item * parameters) + (double)(first + second);
}

/* runs: a picture of the CPU is uploaded too. */
static void check_limit(const mf_net *net, const char *what, mf_device *device, int64_t batch,
                        mf_net_precision precision, int runs)
{
    const int64_t shape[3] = {SIDE, SIDE, 3}, before = counted.taken;
    const mf_net_options options = {.batch = batch, .precision = precision};
    mf_net_plan *plan = NULL;
    if (!CHECK_MSG(mf_net_plan_create(net, device, &options, &plan) == MF_OK, "%s", mf_error()))
        return;
    unsigned char *picture = calloc(1, (size_t)SIDE * SIDE * 3);
    const DLTensor input = mf_tensor(picture, MF_U8, 3, shape);
    if (runs)
        CHECK_MSG(mf_net_plan_run(plan, &input) == MF_OK, "%s", mf_error());
    const int is_compiled_only = !strncmp(mf_device_describe(device), "sm", 2);
    const double limit = limit_of(net, batch, precision == MF_NET_F16 ? 2 : 4);
    const int64_t taken = is_compiled_only ? mf_net_plan_bytes(plan) : counted.taken - before;
    printf("%.8s, %s, batch %d, %s: %.1f MB of at most %.1f\n", mf_device_describe(device), what, (int)batch,
           precisions[precision], (double)taken / 1e6, limit / 1e6);
    CHECK_MSG(taken == mf_net_plan_bytes(plan), "%lld bytes are taken and the plan says %lld", (long long)taken,
              (long long)mf_net_plan_bytes(plan));
    CHECK_MSG((double)taken <= limit, "%lld bytes of at most %.0f", (long long)taken, limit);
    free(picture);
    mf_net_plan_destroy(plan);
    CHECK_MSG(is_compiled_only || counted.taken == before, "%lld bytes are not given back",
              (long long)(counted.taken - before));
}

/* ---- run after run ---- */

enum { PICTURE_MOST = 26 * 30 * 3 };
static const char deep[] = "[net]\nheight=16\nwidth=16\nchannels=3\n"
                           "[convolutional]\nfilters=12\nsize=3\npad=1\nactivation=leaky\n"
                           "[maxpool]\nsize=2\nstride=2\n"
                           "[convolutional]\nfilters=64\nsize=3\npad=1\nactivation=leaky\n"
                           "[convolutional]\nfilters=64\nsize=3\npad=1\nactivation=logistic\n"
                           "[convolutional]\nfilters=64\nsize=3\npad=1\nactivation=leaky\n"
                           "[convolutional]\nfilters=60\nsize=3\npad=1\nactivation=leaky\n"
                           "[convolutional]\nfilters=9\nsize=1\nactivation=linear\n";

/* Run number r: one picture, another, one with an infinity, the first again. */
static void make_picture(int r, float *picture)
{
    for (int i = 0; i < PICTURE_MOST; i++)
        picture[i] = (float)(i * (r == 1 ? 7001 : 7919) % 10007) / 10007.0f;
    if (r == 2)
        picture[100] = INFINITY;
}

/* Outputs of `layer`, which detections are made of, with all outputs kept and with memory used again: the same bits in
 * the contract's order, about the same in any. What a picture leaves in memory is nothing to the next one. */
static void check_runs(const mf_net *net, mf_device *device, mf_net_options options, int layer, int refills)
{
    enum { RUNS = 4 };
    static float picture[PICTURE_MOST], kept[SMALL_ROOM], found[SMALL_ROOM];
    mf_net_layer in, out;
    mf_net_plan *keeping = NULL, *sharing = NULL;
    mf_net_options keep = options;
    keep.keep = 1;
    if (!CHECK_MSG(mf_net_plan_create(net, device, &keep, &keeping) == MF_OK &&
                       mf_net_plan_create(net, device, &options, &sharing) == MF_OK,
                   "%s", mf_error()))
        return;
    CHECK(mf_net_layer_get(net, -1, &in) == MF_OK && mf_net_layer_get(net, layer, &out) == MF_OK);
    CHECK(mf_net_plan_bytes(sharing) < mf_net_plan_bytes(keeping) && sharing->refills == refills);
    const int64_t shape[3] = {in.height, in.width, in.channels}, count = out.height * out.width * out.channels;
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    for (int r = 0; r < RUNS; r++) {
        double most = 0, error = 0;
        make_picture(r, picture);
        CHECK_MSG(mf_net_plan_run(keeping, &input) == MF_OK && mf_net_plan_run(sharing, &input) == MF_OK &&
                      mf_net_plan_read(keeping, layer, kept, SMALL_ROOM) == MF_OK &&
                      mf_net_plan_read(sharing, layer, found, SMALL_ROOM) == MF_OK,
                  "%s", mf_error());
        for (int64_t i = 0; i < count && r != 2; i++) {
            most = fmax(most, fabs((double)kept[i]));
            error = fmax(error, isnan(found[i]) ? 1e9 : fabs((double)found[i] - kept[i]));
        }
        CHECK_MSG(error <= (options.order_contract ? 0 : 2e-3 * most), "%s, run %d: differs by %g of %g",
                  mf_device_describe(device), r, error, most);
    }
    mf_net_plan_destroy(keeping);
    mf_net_plan_destroy(sharing);
}

/* The small network's outputs are large beside its weights, so its borders are made zero again and again; those of the
 * deep one are not. */
static void check_both_places(mf_device *device)
{
    size_t bytes;
    void *weights = net_lively_weights(deep, strlen(deep), 1, &bytes);
    mf_net *net[2] = {net_small(0), NULL};
    if (weights)
        mf_net_parse(deep, strlen(deep), weights, bytes, 0, &net[1]);
    for (int n = 0; n < 2 && CHECK(net[0] && net[1]); n++) {
        const int layer = n ? 6 : 14;
        check_runs(net[n], device, (mf_net_options){.order_contract = 1}, layer, !n);
        check_runs(net[n], device, (mf_net_options){.batch = 0}, layer, !n);
        check_runs(net[n], device, (mf_net_options){.precision = MF_NET_F16}, layer, !n);
    }
    mf_net_destroy(net[0]);
    mf_net_destroy(net[1]);
    free(weights);
}

/* YOLOv2-tiny in every precision, with 1 and 16 pictures; others in the one that takes most. */
static void check_limits(mf_net *const net[NETS], mf_device *device, int runs)
{
    for (int p = MF_NET_F32; p <= MF_NET_F16; p++)
        for (int64_t batch = 1; batch <= 16; batch += 15)
            check_limit(net[0], "YOLOv2-tiny", device, batch, (mf_net_precision)p, runs && batch == 1);
    check_limit(net[1], "YOLOv2-tiny unfused", device, 1, MF_NET_F32, runs);
    check_limit(net[2], "YOLOv3-tiny", device, 1, MF_NET_F32, runs);
}

int main(void)
{
    static const char *const names[] = {"opencl:0", "sm:90", "cuda:0"};
    gpu_test_environment("off");
    mf_net *net[NETS] = {net_tiny(2, SIDE, 0), net_tiny(2, SIDE, MF_NET_UNFUSED), net_tiny(3, SIDE, 0)};
    if (!CHECK_MSG(net[0] && net[1] && net[2], "%s", mf_error()))
        return check_done("net_memory");
    for (int d = 0; d < 3; d++) {
        mf_device *device = open_counted(names[d]);
        if (device && d != 1)
            check_both_places(device);
        gpu_test_keep_compiled(d == 1);
        if (device)
            check_limits(net, device, d == 2);
        mf_device_close(device);
    }
    for (int n = 0; n < NETS; n++)
        mf_net_destroy(net[n]);
    return check_done("net_memory");
}
