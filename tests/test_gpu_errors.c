/* What goes wrong with GPUs is a status and a sentence, and the device works on. On "opencl:0", and what CUDA says
 * where it is missing. */
#include "cache_folder.h"
#include "gpu_test.h"

#include <modefold.h>
#include <stdint.h>

enum { ROWS = 6, COLUMNS = 5 };

static mf_device *device;
static void *in_memory, *out_memory;
static int64_t shape[2] = {ROWS, COLUMNS};
static DLTensor input, output;

/* The status, and a part of its sentence. */
#define FAILS(call, status, part)                                                                               \
    do {                                                                                                        \
        mf_status got = (call);                                                                                 \
        CHECK_MSG(got == (status) && strstr(mf_error(), part), "%s: %s \"%s\", and should be %s \"%s\"", #call, \
                  mf_status_name(got), mf_error(), mf_status_name(status), part);                               \
    } while (0)

static DLTensor on_device(void *memory, mf_type type, int ndim, int64_t *sizes)
{
    DLTensor tensor = mf_tensor(memory, type, ndim, sizes);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    return tensor;
}

/* The sums of the rows, there and back. */
static int works(void)
{
    float x[ROWS][COLUMNS], y[ROWS] = {0}, zero[ROWS] = {0};
    int right = 1;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            x[i][j] = (float)(i * 10 + j);
    right &= mf_memory_write(device, in_memory, 0, x, sizeof x) == MF_OK;
    right &= mf_memory_write(device, out_memory, 0, zero, sizeof zero) == MF_OK;
    right &= mf_fold(device, "ij->i", "sum(a)", &input, &output) == MF_OK;
    right &= mf_memory_read(device, out_memory, 0, y, sizeof y) == MF_OK;
    for (int i = 0; i < ROWS; i++)
        right &= y[i] == (float)(i * 50 + 10);
    return right;
}

static void test_host_memory(void)
{
    float x[ROWS * COLUMNS] = {0}, y[ROWS] = {7};
    DLTensor here = input, there = output;
    mf_plan *plan;
    const void *in[1] = {x};
    void *out[1] = {out_memory};
    if (!CHECK(mf_plan_create(device, "ij->i", "sum(a)", &input, &output, NULL, &plan) == MF_OK))
        return;
    FAILS(mf_plan_execute(plan, in, out, NULL), MF_ERROR_ARGUMENT, "operand a is not an OpenCL buffer");
    in[0] = in_memory;
    out[0] = y;
    FAILS(mf_plan_execute(plan, in, out, NULL), MF_ERROR_ARGUMENT, "output 0 is not an OpenCL buffer");
    out[0] = NULL;
    FAILS(mf_plan_execute(plan, in, out, NULL), MF_ERROR_ARGUMENT, "the pointer of output 0 is null");
    in[0] = NULL;
    out[0] = out_memory;
    FAILS(mf_plan_execute(plan, in, out, NULL), MF_ERROR_ARGUMENT, "the pointer of operand a is null");
    in[0] = in_memory;
    CHECK(mf_plan_execute(plan, in, out, NULL) == MF_OK && mf_device_wait(device, NULL) == MF_OK);
    here.data = x;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &here, &output), MF_ERROR_ARGUMENT, "operand a is not an OpenCL buffer");
    CHECK(works());
    there.data = y;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &input, &there), MF_ERROR_ARGUMENT, "output 0 is not an OpenCL buffer");
    CHECK(y[0] == 7 && works());
    mf_plan_destroy(plan);
}

static void test_other_devices(mf_device *cpu)
{
    DLTensor here = input, there = output;
    mf_plan *plan;
    here.device.device_type = kDLCPU;
    FAILS(mf_plan_create(device, "ij->i", "sum(a)", &here, &output, NULL, &plan), MF_ERROR_UNSUPPORTED,
          "operand 0 is in the memory of DLPack device type 1, not of opencl:0");
    here.device.device_type = kDLCUDA;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &here, &output), MF_ERROR_UNSUPPORTED, "device type 2, not of opencl:0");
    there.device.device_type = kDLVulkan;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &input, &there), MF_ERROR_UNSUPPORTED, "output 0 is in the memory");
    FAILS(mf_fold(cpu, "ij->i", "sum(a)", &input, &output), MF_ERROR_UNSUPPORTED, "not of the CPU");
    mf_device *second;
    void *other;
    if (CHECK(mf_device_open("opencl:0", &second) == MF_OK && mf_memory_create(second, 1000, &other) == MF_OK)) {
        here = input;
        here.data = other;
        FAILS(mf_fold(device, "ij->i", "sum(a)", &here, &output), MF_ERROR_ARGUMENT, "of another context");
        mf_memory_destroy(second, other);
    }
    mf_device_close(second);
    CHECK(works());
}

static void test_places(void)
{
    DLTensor off = input, over = output;
    off.byte_offset = 2;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &off, &output), MF_ERROR_ARGUMENT,
          "operand 0 is not aligned to the 4 bytes of its type f32");
    over.byte_offset = 1;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &input, &over), MF_ERROR_ARGUMENT, "output 0 is not aligned");
    CHECK(works());
    over = output;
    over.data = in_memory;
    over.byte_offset = 8;
    FAILS(mf_fold(device, "ij->i", "sum(a)", &input, &over), MF_ERROR_OVERLAP, "output 0");
    over.byte_offset = ROWS * COLUMNS * sizeof(float); /* behind it */
    CHECK(mf_fold(device, "ij->i", "sum(a)", &input, &over) == MF_OK);
    CHECK(works());
    DLTensor square = on_device(in_memory, MF_F32, 2, shape);
    CHECK(mf_fold(device, "ij->ij", "a*2", &input, &square) == MF_OK); /* exactly its input */
    CHECK(mf_device_wait(device, NULL) == MF_OK && works());
}

static void nothing(void *context, int64_t n, void *states)
{
    (void)context, (void)n, (void)states;
}
static void nothing_lifted(void *context, int64_t n, const void *const *values, void *states)
{
    (void)context, (void)n, (void)values, (void)states;
}
static void nothing_combined(void *context, int64_t n, void *left, int64_t left_stride, const void *right,
                             int64_t right_stride)
{
    (void)context, (void)n, (void)left, (void)left_stride, (void)right, (void)right_stride;
}
static void nothing_finished(void *context, int64_t n, const void *states, void *const *results)
{
    (void)context, (void)n, (void)states, (void)results;
}

static void test_plans(void)
{
    const mf_operation operation = {
        "own", 1, 1, MF_F32, MF_F32, 4, 1, nothing, nothing_lifted, nothing_combined, nothing_finished, NULL};
    mf_plan *plan;
    mf_options options = {"outer", 0, 0};
    CHECK(mf_operation_define(device, &operation) == MF_OK);
    FAILS(mf_fold(device, "ij->i", "own(a)", &input, &output), MF_ERROR_UNSUPPORTED,
          "operations given as callbacks run on the CPU, not on opencl:0");
    CHECK(works());
    FAILS(mf_plan_create(device, "ij->i", "sum(a)", &input, &output, &options, &plan), MF_ERROR_ARGUMENT,
          "there is no solver \"outer\"; there are turned map ordered contract-near contract contract-arg "
          "contract-several quads sliding bytes wide slanted columns straddle interleaved abreast staged runs patches "
          "rows small tiles slide slide-shared multi");
    options.solver = "map";
    FAILS(mf_plan_create(device, "ij->i", "sum(a)", &input, &output, &options, &plan), MF_ERROR_UNSUPPORTED,
          "solver map does not apply");
    int64_t none[2] = {ROWS, 0};
    DLTensor empty = on_device(in_memory, MF_F32, 2, none);
    FAILS(mf_fold(device, "ij->i", "mean(a)", &empty, &output), MF_ERROR_EMPTY, "mean");
    FAILS(mf_fold(device, "ij->j", "sum(a)", &input, &output), MF_ERROR_SHAPE, "");
    CHECK(works());
}

static void test_memory(mf_device *cpu)
{
    mf_device *both[2] = {device, cpu};
    char bytes[16] = "fifteen letters", back[16] = "";
    for (int i = 0; i < 2; i++) {
        void *memory = bytes;
        FAILS(mf_memory_create(NULL, 4, &memory), MF_ERROR_ARGUMENT, "the device is null");
        FAILS(mf_memory_create(both[i], 4, NULL), MF_ERROR_ARGUMENT, "the result is null");
        FAILS(mf_memory_create(both[i], -1, &memory), MF_ERROR_ARGUMENT, "-1 bytes is negative");
        FAILS(mf_memory_create(both[i], (int64_t)1 << 50, &memory), MF_ERROR_MEMORY, "");
        CHECK(!memory);
        if (!CHECK(mf_memory_create(both[i], 0, &memory) == MF_OK && memory)) /* something to destroy */
            continue;
        mf_memory_destroy(both[i], memory);
        if (!CHECK(mf_memory_create(both[i], 32, &memory) == MF_OK))
            continue;
        FAILS(mf_memory_write(NULL, memory, 0, bytes, 4), MF_ERROR_ARGUMENT, "mf_memory_write");
        FAILS(mf_memory_write(both[i], NULL, 0, bytes, 4), MF_ERROR_ARGUMENT, "mf_memory_write");
        FAILS(mf_memory_write(both[i], memory, 0, NULL, 4), MF_ERROR_ARGUMENT, "mf_memory_write");
        FAILS(mf_memory_write(both[i], memory, -4, bytes, 4), MF_ERROR_ARGUMENT, "offset -4");
        FAILS(mf_memory_write(both[i], memory, 0, bytes, -4), MF_ERROR_ARGUMENT, "size -4");
        FAILS(mf_memory_read(both[i], memory, 0, NULL, 4), MF_ERROR_ARGUMENT, "mf_memory_read");
        FAILS(mf_memory_read(both[i], memory, -1, back, 4), MF_ERROR_ARGUMENT, "offset -1");
        CHECK(mf_memory_write(both[i], memory, 0, NULL, 0) == MF_OK);
        CHECK(mf_memory_write(both[i], memory, 9, bytes, sizeof bytes) == MF_OK);
        CHECK(mf_memory_read(both[i], memory, 9, back, sizeof back) == MF_OK && !memcmp(back, bytes, sizeof back));
        CHECK(mf_memory_read(both[i], memory, 0, back, 9) == MF_OK && !memcmp(back, "\0\0\0\0\0\0\0\0\0", 9));
        mf_memory_destroy(both[i], memory);
        mf_memory_destroy(both[i], NULL);
    }
    FAILS(mf_device_wait(NULL, NULL), MF_ERROR_ARGUMENT, "the device is null");
    CHECK(mf_device_wait(cpu, NULL) == MF_OK);
    void *memory;
    if (CHECK(mf_memory_create(device, 32, &memory) == MF_OK)) { /* beyond its end: the driver's own word */
        FAILS(mf_memory_read(device, memory, 1000, back, 8), MF_ERROR_DEVICE, "a copy to the host failed");
        mf_memory_destroy(device, memory);
    }
    CHECK(works());
}

static void test_names(void)
{
    static const char *const wrong[] = {"gpu",      "cuda0",   "cuda:",     "cuda:x",     "cuda:-1",
                                        "cuda:256", "opencl:", "opencl:1x", "opencl:256", "opencl0",
                                        "cuda:0 ",  "sm90",    "opencl:-",  "OPENCL:0",   ""};
    mf_device *opened = NULL;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        mf_status status = mf_device_open(wrong[i], &opened);
        CHECK_MSG(status == MF_ERROR_ARGUMENT && !opened && strstr(mf_error(), wrong[i]), "\"%s\": %s %s", wrong[i],
                  mf_status_name(status), mf_error());
    }
    FAILS(mf_device_open("opencl:250", &opened), MF_ERROR_DEVICE, "there is no OpenCL device 250");
    if (mf_device_open("cuda:0", &opened) == MF_OK)
        check_skip("cuda:0 without a driver", "there is one");
    else
        CHECK_MSG(!opened && strstr(mf_error(), "CUDA"), "\"%s\"", mf_error());
    mf_device_close(opened);
    if (CHECK(mf_device_open("auto", &opened) == MF_OK))
        CHECK(!strncmp(mf_device_describe(opened), "cuda", 4) || !strncmp(mf_device_describe(opened), "cpu", 3));
    mf_device_close(opened);
}

/* An architecture without its GPU plans and does nothing else. */
static void test_architecture(void)
{
    mf_device *there;
    if (mf_device_open("sm:90", &there) != MF_OK) {
        CHECK_MSG(strstr(mf_error(), "NVRTC") || strstr(mf_error(), "libnvrtc"), "\"%s\"", mf_error());
        check_skip("device sm:90", mf_error());
        return;
    }
    mf_device *none;
    FAILS(mf_device_open("sm:13", &none), MF_ERROR_UNSUPPORTED, "does not compile for sm_13");
    mf_plan *plan;
    DLTensor x = mf_tensor(NULL, MF_F32, 2, shape), y = mf_tensor(NULL, MF_F32, 1, shape);
    x.device.device_type = y.device.device_type = kDLCUDA;
    void *memory = NULL;
    float host[4] = {0};
    CHECK(mf_memory_create(there, 1000, &memory) == MF_OK);
    CHECK(mf_memory_write(there, memory, 0, host, sizeof host) == MF_OK);
    FAILS(mf_memory_read(there, memory, 0, host, sizeof host), MF_ERROR_UNSUPPORTED, "no GPU behind it");
    x.data = y.data = memory;
    if (CHECK_MSG(mf_plan_create(there, "ij->i", "sum(a)", &x, &y, NULL, &plan) == MF_OK, "%s", mf_error())) {
        FAILS(mf_plan_execute_tensors(plan, &x, &y, NULL), MF_ERROR_UNSUPPORTED, "no GPU behind it");
        CHECK(strstr(mf_plan_describe(plan), " registers"));
        mf_plan_destroy(plan);
    }
    mf_memory_destroy(there, memory);
    mf_device_close(there);
}

/* Kernels are compiled, though they cannot be kept. */
static void test_cache_folders(void)
{
    mf_device *before = device;
    CHECK(mkdir("cache-readonly", 0500) == 0 && system("echo text >cache-file") == 0);
    static const char *const folders[] = {"cache-readonly", "cache-file", "/proc/none/cache", "off", ""};
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        setenv("MODEFOLD_CACHE", folders[i], 1);
        CHECK(mf_device_open("opencl:0", &device) == MF_OK);
        void *kept[2] = {in_memory, out_memory};
        CHECK(mf_memory_create(device, 1000, &in_memory) == MF_OK &&
              mf_memory_create(device, 1000, &out_memory) == MF_OK);
        input.data = in_memory;
        output.data = out_memory;
        CHECK_MSG(works(), "MODEFOLD_CACHE=%s: %s", folders[i], mf_error());
        mf_memory_destroy(device, in_memory);
        mf_memory_destroy(device, out_memory);
        mf_device_close(device);
        device = before;
        input.data = in_memory = kept[0];
        output.data = out_memory = kept[1];
    }
    if (geteuid() == 0)
        check_skip("a read-only cache folder", "root may write everywhere");
    else
        CHECK(count_entries("cache-readonly") == 0);
    rmdir("cache-readonly");
    CHECK(works());
}

int main(void)
{
    mf_device *cpu;
    gpu_test_environment("cache-errors");
    test_names();
    test_architecture();
    if (mf_device_open("opencl:0", &device) != MF_OK) {
        check_skip("errors on opencl:0", mf_error());
        return check_done("test_gpu_errors");
    }
    if (!CHECK(mf_device_open("cpu:1", &cpu) == MF_OK && mf_memory_create(device, 1000, &in_memory) == MF_OK &&
               mf_memory_create(device, 1000, &out_memory) == MF_OK))
        return check_done("test_gpu_errors");
    input = on_device(in_memory, MF_F32, 2, shape);
    output = on_device(out_memory, MF_F32, 1, shape);
    CHECK(works());
    test_host_memory();
    test_other_devices(cpu);
    test_places();
    test_plans();
    test_memory(cpu);
    test_cache_folders();
    mf_memory_destroy(device, in_memory);
    mf_memory_destroy(device, out_memory);
    mf_device_close(device);
    mf_device_close(cpu);
    return check_done("test_gpu_errors");
}
