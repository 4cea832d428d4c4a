/* Networks on GPUs, by OpenCL where it is here: work that is put into a stream, precisions, and what is refused. */
#include <math.h>

#include <modefold_net.h>

#include "gpu_test.h"
#include "vocab/convert.h"
#include "net_small.h"

enum { H = 26, W = 30, C = 3, BATCH = 2, PICTURES = BATCH * H * W * C, ROOM = 1 << 17, GAP = 64 };

static float picture[PICTURES];
static unsigned char bytes[PICTURES];
static mf_device *cpu;

static void expect(mf_status status, mf_status want, const char *part, const char *what)
{
    CHECK_MSG(status == want && strstr(mf_error(), part), "%s: %s, \"%s\", not %s with \"%s\"", what,
              mf_status_name(status), mf_error(), mf_status_name(want), part);
}

static void make_pictures(void)
{
    for (int i = 0; i < PICTURES; i++) {
        bytes[i] = (unsigned char)(i * 31 % 256);
        picture[i] = (float)bytes[i] / 255.0f;
    }
}

static mf_net_plan *plan_of(const mf_net *net, mf_device *device, const mf_net_options *options)
{
    mf_net_plan *plan = NULL;
    CHECK_MSG(mf_net_plan_create(net, device, options, &plan) == MF_OK, "%s", mf_error());
    return plan;
}

/* ---- putting work into a stream ---- */

/* Pictures in the device's memory. */
static DLTensor on_device(mf_device *device, const void *from, mf_type type, const int64_t *shape)
{
    DLTensor tensor = mf_tensor(NULL, type, 4, shape);
    const int64_t size = PICTURES * (tensor.dtype.bits / 8);
    CHECK_MSG(mf_memory_create(device, size + GAP, &tensor.data) == MF_OK &&
                  mf_memory_write(device, tensor.data, 0, from, size) == MF_OK,
              "%s", mf_error());
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    return tensor;
}

/* The second picture lies so many floats later. */
static void move_second(mf_device *device, const DLTensor *input, const float *from, int by)
{
    const int64_t half = PICTURES / 2, item = (int64_t)sizeof(float);
    CHECK(mf_memory_write(device, input->data, (half + by) * item, from + half, half * item) == MF_OK);
}

/* What a run with these pictures gave is there again. */
static void check_same(mf_net_plan *plan, mf_device *device, const DLTensor *input, const float *wanted,
                       const char *what)
{
    static float found[ROOM];
    const int64_t bytes_wanted = BATCH * 7 * 8 * 21 * (int64_t)sizeof(float);
    CHECK_MSG(mf_net_plan_enqueue(plan, input, NULL) == MF_OK && mf_device_wait(device, NULL) == MF_OK &&
                  mf_net_plan_read(plan, 14, found, ROOM) == MF_OK,
              "%s: %s", what, mf_error());
    CHECK_MSG(!memcmp(found, wanted, (size_t)bytes_wanted), "%s: another result than a run's", what);
}

static void check_enqueue(const mf_net *net, mf_device *device)
{
    static float wanted[ROOM], turned[PICTURES];
    const int64_t shape[4] = {BATCH, H, W, C};
    int64_t strides[4] = {H * W * C, C, C * H, 1};
    mf_net_plan *plan = plan_of(net, device, &(mf_net_options){.batch = BATCH, .order_contract = 1});
    DLTensor host = mf_tensor(bytes, MF_U8, 4, shape);
    CHECK_MSG(mf_net_plan_run(plan, &host) == MF_OK && mf_net_plan_read(plan, 14, wanted, ROOM) == MF_OK, "%s",
              mf_error());
    for (int i = 0; i < PICTURES; i++)
        turned[i / (H * W * C) * strides[0] + i / (W * C) % H * C + i / C % W * C * H + i % C] = picture[i];
    DLTensor input[3] = {on_device(device, bytes, MF_U8, shape), on_device(device, picture, MF_F32, shape),
                         on_device(device, turned, MF_F32, shape)};
    input[2].strides = strides;
    check_same(plan, device, &input[0], wanted, "u8");
    check_same(plan, device, &input[1], wanted, "f32");
    for (int k = 0; k < 4; k++) { /* more forms than are kept: pictures one behind the other, or apart */
        strides[0] = (H * W + k) * C;
        if (k)
            move_second(device, &input[2], turned, k * C);
        check_same(plan, device, &input[2], wanted, "f32, columns first");
    }
    check_same(plan, device, &input[0], wanted, "u8 again");
    if (mf_device_kind(device) != kDLCPU)
        expect(mf_net_plan_enqueue(plan, &host, NULL), MF_ERROR_UNSUPPORTED, "mf_net_plan_run copies them", "a host's");
    for (int k = 0; k < 3; k++)
        mf_memory_destroy(device, input[k].data);
    mf_net_plan_destroy(plan);
}

/* ---- precisions ---- */

/* What [region] and [yolo] read. */
enum { RESULTS = 2 };
static const int results[RESULTS] = {14, 17};
static const int64_t sizes[RESULTS] = {7 * 8 * 21, 14 * 16 * 14};
static float exact[RESULTS][ROOM];

/* f32 on the CPU. */
static void make_exact(const mf_net *net)
{
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(bytes, MF_U8, 3, shape);
    mf_net_plan *plan = plan_of(net, cpu, &(mf_net_options){.order_contract = 1});
    CHECK(mf_net_plan_run(plan, &input) == MF_OK);
    for (int r = 0; r < RESULTS; r++)
        CHECK(mf_net_plan_read(plan, results[r], exact[r], ROOM) == MF_OK);
    mf_net_plan_destroy(plan);
}

/* The greatest difference is at most `bound` times the greatest number, and boxes can be found. */
static void check_precision(const mf_net *net, mf_device *device, mf_net_options options, double bound,
                            const char *what)
{
    static float found[ROOM], between[ROOM];
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(bytes, MF_U8, 3, shape);
    int64_t boxes;
    mf_net_plan *plan = plan_of(net, device, &options);
    if (!plan || !CHECK_MSG(mf_net_plan_run(plan, &input) == MF_OK, "%s: %s", what, mf_error()))
        return;
    for (int r = 0; r < RESULTS; r++) {
        double most = 0, error = 0;
        CHECK(mf_net_plan_read(plan, results[r], found, ROOM) == MF_OK);
        for (int64_t i = 0; i < sizes[r]; i++) {
            most = fmax(most, fabs((double)exact[r][i]));
            error = fmax(error, isnan(found[i]) ? 1e9 : fabs((double)found[i] - exact[r][i]));
        }
        printf("%s, layer %d: %.3g of %.3g\n", what, results[r], error, most);
        CHECK_MSG(error <= bound * most, "%s: layer %d differs by %g, and its greatest number is %g", what, results[r],
                  error, most);
    }
    if (options.keep && CHECK(mf_net_plan_read(plan, 0, between, ROOM) == MF_OK))
        CHECK_MSG(options.precision != MF_NET_F16 || fabsf(between[5] - mf_f16_to_f32(mf_f32_to_f16(between[5]))) == 0,
                  "%s: layer 0 has %.9g, which is no f16", what, (double)between[5]);
    CHECK(mf_net_plan_detect(plan, 0, NULL, NULL, 0, &boxes) == MF_OK);
    mf_net_plan_destroy(plan);
}

/* Convolutions by a solver of the caller's choice where it applies, which is some of them, and by others elsewhere. */
static void check_solver(const mf_net *unfused, mf_device *device, const char *solver)
{
    const mf_net_options options = {.solver = solver};
    mf_net_plan *plan = plan_of(unfused, device, &options);
    int by_it = 0, others = 0;
    for (int s = 0; s < mf_net_plan_step_count(plan); s++) {
        mf_net_step step;
        CHECK(mf_net_plan_step(plan, s, &step) == MF_OK);
        by_it += !strcmp(step.kind, "Conv2D") && strstr(step.description, "solver window");
        others += strcmp(step.kind, "Conv2D") && strstr(step.description, "solver window");
    }
    CHECK_MSG(by_it >= 2 && !others, "%s: %d convolutions and %d other steps by it", solver, by_it, others);
    mf_net_plan_destroy(plan);
    check_precision(unfused, device, options, 1e-5, solver);
}

/* What a convolution of one filter has in the middle, of pixels that are all 1; NaN: something failed. */
static float sum_of_weights(mf_device *device, mf_net_precision precision, const float weight[9])
{
    static const char cfg[] = "[net]\nwidth=4\nheight=4\nchannels=1\n"
                              "[convolutional]\nfilters=1\nsize=3\nstride=1\npad=1\nactivation=linear\n";
    static const int64_t shape[3] = {4, 4, 1};
    float ones[16], found[16] = {0};
    char file[5 * sizeof(int32_t) + 10 * sizeof(float)] = {0};
    const int32_t version[2] = {0, 2};
    mf_net *net = NULL;
    for (int i = 0; i < 16; i++)
        ones[i] = 1;
    memcpy(file, version, sizeof version);
    memcpy(file + 5 * sizeof(int32_t) + sizeof(float), weight, 9 * sizeof(float));
    const DLTensor input = mf_tensor(ones, MF_F32, 3, shape);
    if (!CHECK_MSG(mf_net_parse(cfg, strlen(cfg), file, sizeof file, 0, &net) == MF_OK, "%s", mf_error()))
        return NAN;
    mf_net_plan *plan = plan_of(net, device, &(mf_net_options){.precision = precision});
    const int good = plan && mf_net_plan_run(plan, &input) == MF_OK && mf_net_plan_read(plan, 0, found, 16) == MF_OK;
    mf_net_plan_destroy(plan);
    mf_net_destroy(net);
    return good ? found[5] : NAN;
}

/* The nearest number of 11 bits is 1 for each weight, nine of which are then 9 * 2^-12 off; errors that are carried on
 * leave less than half of a weight's last place. What is carried on makes no infinity. */
static void check_weights_cancel(mf_device *device, mf_net_precision precision)
{
    static const float large[9] = {65510, 65519, 65519};
    float alike[9];
    for (int i = 0; i < 9; i++)
        alike[i] = 1 + 0x1p-12f;
    const float sum = sum_of_weights(device, precision, alike), largest = sum_of_weights(device, precision, large);
    CHECK_MSG(fabsf(sum - 9 * (1 + 0x1p-12f)) <= 0x1p-11f, "nine weights of 1 + 2^-12 add up to %.9g", (double)sum);
    CHECK_MSG(isfinite(largest), "%g", (double)largest);
}

/* An f16 has 11 bits, and roundings of all layers together are half as much as this. */
static void check_precisions(const mf_net *net, const mf_net *unfused, mf_device *device)
{
    const double half = 0x1p-10, single = 1e-5;
    const int gpu = mf_device_kind(device) != kDLCPU;
    check_precision(net, device, (mf_net_options){.precision = MF_NET_F16, .keep = 1}, half, "f16");
    check_precision(net, device, (mf_net_options){.precision = MF_NET_F16}, half, "f16, memory used again");
    check_precision(unfused, device, (mf_net_options){.precision = MF_NET_F16}, half, "f16, unfused");
    check_precision(net, device, (mf_net_options){0}, single, "f32");
    check_weights_cancel(device, MF_NET_F16);
    if (mf_device_kind(device) == kDLCUDA)
        check_weights_cancel(device, MF_NET_TF32);
    const int on_tensor_cores = mf_device_kind(device) == kDLCUDA; /* others compute f32 */
    if (gpu)
        check_precision(net, device, (mf_net_options){.precision = MF_NET_TF32}, on_tensor_cores ? half : single,
                        "tf32");
}

/* Kernels of both precisions for a GPU that is not here. */
static void check_compiling(const mf_net *net)
{
    const int64_t shape[3] = {H, W, C};
    const DLTensor input = mf_tensor(bytes, MF_U8, 3, shape);
    mf_device *device;
    if (mf_device_open("sm:90", &device) != MF_OK) {
        check_skip("kernels for sm:90", mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    for (int precision = MF_NET_F32; precision <= MF_NET_F16; precision++) {
        mf_net_plan *plan = plan_of(net, device, &(mf_net_options){.precision = (mf_net_precision)precision});
        CHECK(mf_net_plan_run(plan, &input) == MF_ERROR_UNSUPPORTED);
        mf_net_plan_destroy(plan);
    }
    gpu_test_keep_compiled(0);
    mf_device_close(device);
}

static void check_refused_precisions(const mf_net *net)
{
    static const struct {
        mf_net_options options;
        mf_status status;
        const char *part;
    } wrong[] = {
        {{.precision = (mf_net_precision)3}, MF_ERROR_ARGUMENT, "precision 3 is not 0 to 2"},
        {{.precision = MF_NET_F16, .way = MF_NET_BLAS}, MF_ERROR_UNSUPPORTED, "f16 is for way MF_NET_FOLDS, and"},
        {{.precision = MF_NET_TF32, .way = MF_NET_SCALAR}, MF_ERROR_UNSUPPORTED, "the plan's is MF_NET_SCALAR"},
        {{.precision = MF_NET_TF32}, MF_ERROR_UNSUPPORTED, "precision tf32 is for GPUs, not for cpu"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mf_net_plan *plan = (mf_net_plan *)1;
        expect(mf_net_plan_create(net, cpu, &wrong[i].options, &plan), wrong[i].status, wrong[i].part, "precision");
        CHECK(!plan);
    }
}

/* What a GPU refuses. */
static void check_refused_there(const mf_net *net, mf_device *device)
{
    mf_net_plan *plan;
    expect(mf_net_plan_create(net, device, &(mf_net_options){.precision = MF_NET_TF32, .order_contract = 1}, &plan),
           MF_ERROR_ARGUMENT, "tf32 and order_contract", "both");
}

/* What is wrong on the CPU, whose plans can be enqueued too. */
static void check_refused(const mf_net *net)
{
    const int64_t shape[4] = {1, H, W, C};
    DLTensor input = mf_tensor(picture, MF_F32, 4, shape);
    mf_net_plan *plan = plan_of(net, cpu, NULL);
    expect(mf_net_plan_enqueue(NULL, &input, NULL), MF_ERROR_ARGUMENT, "mf_net_plan_enqueue: the plan is null", "null");
    expect(mf_net_plan_enqueue(plan, &input, plan), MF_ERROR_ARGUMENT, "the CPU has no streams", "a stream");
    input.device.device_type = kDLCUDA;
    expect(mf_net_plan_enqueue(plan, &input, NULL), MF_ERROR_UNSUPPORTED, "memory of DLPack device type 2", "a GPU's");
    expect(mf_net_plan_run(plan, &input), MF_ERROR_UNSUPPORTED, "memory of DLPack device type 2", "a GPU's");
    mf_net_plan_destroy(plan);
}

int main(void)
{
    mf_device *device = NULL;
    gpu_test_environment("off");
    mf_net *net = net_small(0), *unfused = net_small(MF_NET_UNFUSED);
    if (!CHECK_MSG(net && unfused && mf_device_open("cpu", &cpu) == MF_OK, "%s", mf_error()))
        return check_done("net_gpu");
    make_pictures();
    check_refused(net);
    check_refused_precisions(net);
    check_enqueue(net, cpu);
    make_exact(net);
    check_precisions(net, unfused, cpu);
    for (int d = 0; d < 2; d++) {
        const char *const name = d ? "cuda:0" : "opencl:0";
        if (mf_device_open(name, &device) == MF_OK) {
            check_enqueue(net, device);
            check_precisions(net, unfused, device);
            check_refused_there(net, device);
            check_solver(unfused, device, "window");
            check_solver(unfused, device, "window:inputs");
            check_solver(unfused, device, "window:weights");
        } else {
            check_skip(name, mf_error());
        }
        mf_device_close(device);
    }
    check_compiling(net);
    mf_device_close(cpu);
    mf_net_destroy(net);
    mf_net_destroy(unfused);
    return check_done("net_gpu");
}
