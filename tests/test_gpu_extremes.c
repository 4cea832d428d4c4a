/* Greatest and least sums and differences on a GPU, the argument or "opencl:0", against the CPU's bits: where all
 * terms have one sign, where that changes on the way, with zeros, infinities and NaNs (kernels/tile.cl compares bits
 * there). */
#include "gpu_test.h"

#include <math.h>

#include "modefold.h"

enum { ROWS = 70, COLUMNS = 68, TERMS = 200, A = ROWS * TERMS, B = TERMS * COLUMNS, O = ROWS * COLUMNS };

static const int64_t as[] = {ROWS, TERMS}, bs[] = {TERMS, COLUMNS}, os[] = {ROWS, COLUMNS};
static float a[A], b[B], o[2][O];
static unsigned state = 1;

static double uniform(void)
{
    state = state * 1664525u + 1013904223u;
    return (double)(state >> 8) / (1 << 24);
}

static void fill(float *x, int n, double low, double high)
{
    for (int i = 0; i < n; i++)
        x[i] = (float)(low + (high - low) * uniform());
}

static DLTensor on(mf_device *device, const float *x, const int64_t *shape)
{
    DLTensor tensor = mf_tensor(x, MF_F32, 2, shape);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    return tensor;
}

static mf_status fold(mf_device *device, const char *expression, float *out)
{
    const float *from[] = {a, b};
    const int64_t bytes[] = {sizeof a, sizeof b, sizeof o[0]};
    const DLTensor in[2] = {on(device, a, as), on(device, b, bs)}, result = on(device, out, os);
    void *memory[3] = {NULL, NULL, NULL};
    mf_plan *plan = NULL;
    mf_status status = mf_plan_create(device, "ik,kj->ij", expression, in, &result, NULL, &plan);
    for (int m = 0; m < 3 && status == MF_OK; m++)
        status = mf_memory_create(device, bytes[m], &memory[m]);
    for (int m = 0; m < 2 && status == MF_OK; m++)
        status = mf_memory_write(device, memory[m], 0, from[m], bytes[m]);
    if (status == MF_OK)
        status = mf_plan_execute(plan, (const void *const *)memory, memory + 2, NULL);
    if (status == MF_OK)
        status = mf_memory_read(device, memory[2], 0, out, bytes[2]);
    for (int m = 0; m < 3; m++)
        mf_memory_destroy(device, memory[m]);
    mf_plan_destroy(plan);
    return status;
}

static void compare(mf_device *cpu, mf_device *gpu, const char *what)
{
    static const char *const expressions[] = {"max(a+b)", "min(a+b)", "max(a-b)", "min(a-b)", "max(b-a)", "min(b-a)"};
    for (int e = 0; e < 6; e++) {
        const DLTensor in[2] = {on(cpu, a, as), on(cpu, b, bs)}, result = on(cpu, o[0], os);
        CHECK(mf_fold(cpu, "ik,kj->ij", expressions[e], in, &result) == MF_OK);
        CHECK_MSG(fold(gpu, expressions[e], o[1]) == MF_OK, "%s", mf_error());
        CHECK_MSG(!memcmp(o[0], o[1], sizeof o[0]), "%s, %s: not the CPU's bits", expressions[e], what);
    }
}

static void test_signs(mf_device *cpu, mf_device *gpu)
{
    static const double ranges[][4] = {{-9, -1, -9, -1}, {1, 9, 1, 9},   {-9, -1, 1, 9}, {1, 9, -9, -1},
                                       {-1, 1, -1, 1},   {-9, 1, -9, 1}, {-9, 0, -9, 0}};
    char what[120];
    for (int r = 0; r < 7; r++) {
        const double *range = ranges[r];
        fill(a, A, range[0], range[1]);
        fill(b, B, range[2], range[3]);
        snprintf(what, sizeof what, "%g to %g and %g to %g", range[0], range[1], range[2], range[3]);
        compare(cpu, gpu, what);
        for (int i = 0; i < ROWS; i++)
            for (int k = 150; k < TERMS; k++)
                a[i * TERMS + k] = -a[i * TERMS + k];
        compare(cpu, gpu, "then other signs");
    }
}

static void test_special(mf_device *cpu, mf_device *gpu)
{
    static const float special[] = {INFINITY, -INFINITY, NAN, -NAN, 0, -0.0F, 3e38F, -3e38F, 1e-45F, -1e-45F};
    for (int round = 0; round < 15; round++) {
        const double most = round % 3 == 0 ? -1 : 9, least = round % 3 == 1 ? 1 : -9;
        fill(a, A, least, most);
        fill(b, B, least, most);
        for (int q = 0; q < 1 + round % 7; q++) {
            a[(int)(uniform() * A)] = special[(int)(uniform() * 10)];
            b[(int)(uniform() * B)] = special[(int)(uniform() * 10)];
        }
        compare(cpu, gpu, "with special values");
    }
    for (int e = 0; e < A; e++)
        a[e] = (float)(int)(uniform() * 3) - 1;
    for (int e = 0; e < B; e++)
        b[e] = uniform() < 0.5 ? -0.0F : (float)(int)(uniform() * 3) - 1;
    compare(cpu, gpu, "many zeros");
}

int main(int argc, char **argv)
{
    mf_device *cpu = NULL, *gpu = NULL;
    gpu_test_environment("off");
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gpu_extremes");
    if (mf_device_open(argc > 1 ? argv[1] : "opencl:0", &gpu) != MF_OK) {
        check_skip("greatest and least sums on a GPU", mf_error());
    } else {
        test_signs(cpu, gpu);
        test_special(cpu, gpu);
        mf_device_close(gpu);
    }
    mf_device_close(cpu);
    return check_done("test_gpu_extremes");
}
