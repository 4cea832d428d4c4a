/* Gradients on "opencl:0": the bits that the CPU gives term by term; what is not for GPUs. */
#include "gpu_test.h"

#include "modefold.h"

enum { ROWS = 6, COLUMNS = 9, TERMS = 70, A = ROWS * TERMS, B = TERMS * COLUMNS, O = ROWS * COLUMNS };

static const int64_t as[] = {ROWS, TERMS}, bs[] = {TERMS, COLUMNS}, os[] = {ROWS, COLUMNS};
static float a[A], b[B], o[O], d[O], ga[2][A], gb[2][B];

static void fill(float *x, int n, unsigned state)
{
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int)(state >> 20) / 256 - 8;
    }
}

static void *put(mf_device *device, const float *x, int n)
{
    void *memory = NULL;
    const int64_t bytes = n * (int64_t)sizeof *x;
    CHECK_MSG(mf_memory_create(device, bytes, &memory) == MF_OK &&
                  mf_memory_write(device, memory, 0, x, bytes) == MF_OK,
              "%s", mf_error());
    return memory;
}

static DLTensor on(mf_device *device, const float *x, const int64_t *shape)
{
    DLTensor tensor = mf_tensor(x, MF_F32, 2, shape);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    return tensor;
}

static mf_status plan_on(mf_device *device, const char *expression, const mf_options *options, mf_plan **plan)
{
    const DLTensor in[2] = {on(device, a, as), on(device, b, bs)}, out = on(device, o, os);
    return mf_plan_gradient(device, "ik,kj->ij", expression, in, &out, &out, in, options, plan);
}

static void run_on_cpu(mf_device *cpu, const char *expression)
{
    const mf_options options = {"gradient-exact", 0, 0};
    DLTensor in[2] = {mf_tensor(a, MF_F32, 2, as), mf_tensor(b, MF_F32, 2, bs)}, out = mf_tensor(o, MF_F32, 2, os);
    const void *from[] = {a, b, o, d};
    void *to[] = {ga[0], gb[0]};
    mf_plan *plan = NULL;
    CHECK(mf_fold(cpu, "ik,kj->ij", expression, in, &out) == MF_OK);
    CHECK(plan_on(cpu, expression, &options, &plan) == MF_OK && mf_plan_execute(plan, from, to, NULL) == MF_OK);
    mf_plan_destroy(plan);
}

static void compare(mf_device *cpu, mf_device *gpu, const char *expression)
{
    mf_plan *plan = NULL;
    run_on_cpu(cpu, expression);
    void *memory[] = {put(gpu, a, A), put(gpu, b, B),     put(gpu, o, O),
                      put(gpu, d, O), put(gpu, ga[1], A), put(gpu, gb[1], B)};
    CHECK_MSG(plan_on(gpu, expression, NULL, &plan) == MF_OK &&
                  mf_plan_execute(plan, (const void *const *)memory, memory + 4, NULL) == MF_OK,
              "%s: %s", expression, mf_error());
    CHECK(mf_memory_read(gpu, memory[4], 0, ga[1], sizeof ga[1]) == MF_OK);
    CHECK(mf_memory_read(gpu, memory[5], 0, gb[1], sizeof gb[1]) == MF_OK);
    CHECK_MSG(!memcmp(ga[0], ga[1], sizeof ga[0]) && !memcmp(gb[0], gb[1], sizeof gb[0]), "%s differs", expression);
    mf_plan_destroy(plan);
    for (int m = 0; m < 6; m++)
        mf_memory_destroy(gpu, memory[m]);
}

int main(void)
{
    mf_device *cpu = NULL, *gpu = NULL;
    mf_plan *plan = NULL;
    gpu_test_environment("off");
    fill(a, A, 1);
    fill(b, B, 2);
    fill(d, O, 3);
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gpu_gradient");
    if (mf_device_open("opencl:0", &gpu) != MF_OK) {
        check_skip("gradients on a GPU", mf_error());
    } else {
        compare(cpu, gpu, "sum(a*b)");
        compare(cpu, gpu, "logsumexp(a+b)");
        CHECK(plan_on(gpu, "max(a+b)", NULL, &plan) == MF_ERROR_UNSUPPORTED &&
              !strcmp(mf_error(), "gradients of max and min are for the CPU, not for opencl:0"));
        mf_device_close(gpu);
    }
    mf_device_close(cpu);
    return check_done("test_gpu_gradient");
}
