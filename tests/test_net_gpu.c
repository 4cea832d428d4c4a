/* Networks on GPUs, by OpenCL where it is here: work that is put into a stream, precisions, and what is refused. */
#include <math.h>

#include <modefold_net.h>

#include "gpu_test.h"
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
    gpu_test_environment("cache");
    mf_net *net = net_small(0);
    if (!CHECK_MSG(net && mf_device_open("cpu", &cpu) == MF_OK, "%s", mf_error()))
        return check_done("net_gpu");
    make_pictures();
    check_refused(net);
    check_enqueue(net, cpu);
    if (mf_device_open("opencl:0", &device) == MF_OK)
        check_enqueue(net, device);
    else
        check_skip("OpenCL", mf_error());
    mf_device_close(device);
    mf_device_close(cpu);
    mf_net_destroy(net);
    return check_done("net_gpu");
}
