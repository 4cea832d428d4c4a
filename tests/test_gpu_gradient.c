/* Gradients on a GPU, the argument or "opencl:0": the bits that the CPU gives term by term; as products, near a loop in
 * double, where all outputs take part, where some are left and where nothing is a number; what is not for GPUs. */
#include "gpu_test.h"

#include <math.h>

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

static void run_on_cpu(mf_device *cpu, const char *expression, const char *solver)
{
    const mf_options options = {solver, 0, 0};
    DLTensor in[2] = {mf_tensor(a, MF_F32, 2, as), mf_tensor(b, MF_F32, 2, bs)}, out = mf_tensor(o, MF_F32, 2, os);
    const void *from[] = {a, b, o, d};
    void *to[] = {ga[0], gb[0]};
    mf_plan *plan = NULL;
    CHECK(mf_fold(cpu, "ik,kj->ij", expression, in, &out) == MF_OK);
    CHECK(plan_on(cpu, expression, &options, &plan) == MF_OK && mf_plan_execute(plan, from, to, NULL) == MF_OK);
    mf_plan_destroy(plan);
}

static void run_on_gpu(mf_device *gpu, const char *expression, const char *solver)
{
    const mf_options options = {solver, 0, 0};
    mf_plan *plan = NULL;
    void *memory[] = {put(gpu, a, A), put(gpu, b, B),     put(gpu, o, O),
                      put(gpu, d, O), put(gpu, ga[1], A), put(gpu, gb[1], B)};
    CHECK_MSG(plan_on(gpu, expression, &options, &plan) == MF_OK &&
                  mf_plan_execute(plan, (const void *const *)memory, memory + 4, NULL) == MF_OK,
              "%s: %s", expression, mf_error());
    CHECK(mf_memory_read(gpu, memory[4], 0, ga[1], sizeof ga[1]) == MF_OK);
    CHECK(mf_memory_read(gpu, memory[5], 0, gb[1], sizeof gb[1]) == MF_OK);
    mf_plan_destroy(plan);
    for (int m = 0; m < 6; m++)
        mf_memory_destroy(gpu, memory[m]);
}

static void compare(mf_device *cpu, mf_device *gpu, const char *expression, const char *solver, const char *on_cpu)
{
    run_on_cpu(cpu, expression, on_cpu);
    run_on_gpu(gpu, expression, solver);
    CHECK_MSG(!memcmp(ga[0], ga[1], sizeof ga[0]) && !memcmp(gb[0], gb[1], sizeof gb[0]), "%s differs", expression);
}

/* Sums of d p and of |d| (p + 2^-44), and whether an element is off by more than 2e-5 of the latter. */
static int is_wrong(double sum, double size, double got)
{
    if (sum != sum || got != got || isinf(size))
        return (sum != sum) != (got != got);
    return !(fabs(got - sum) <= 2e-5 * size);
}

/* logsumexp(a+b) or (a-b) as products: o is what the CPU has left there. */
static int count_wrong(int sign)
{
    static double sum[2][A + B], size[2][A + B];
    int wrong = 0;
    memset(sum, 0, sizeof sum);
    memset(size, 0, sizeof size);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < TERMS; k++)
            for (int j = 0; j < COLUMNS; j++) {
                const int at_a = i * TERMS + k, at_b = k * COLUMNS + j, at = i * COLUMNS + j;
                const double x = (double)a[at_a] + sign * (double)b[at_b];
                const double given = o[at] == -INFINITY ? 0 : (double)d[at];
                const double w = o[at] == -INFINITY ? 0 : given * exp(x - (double)o[at]);
                const double bound = fabs(w) + fabs(given) * 0x1p-44;
                sum[0][at_a] += w;
                size[0][at_a] += bound;
                sum[1][at_b] += sign * w;
                size[1][at_b] += bound;
            }
    for (int e = 0; e < A; e++)
        wrong += is_wrong(sum[0][e], size[0][e], (double)ga[1][e]);
    for (int e = 0; e < B; e++)
        wrong += is_wrong(sum[1][e], size[1][e], (double)gb[1][e]);
    return wrong;
}

static void compare_near(mf_device *cpu, mf_device *gpu, const char *expression, int sign, const char *what)
{
    run_on_cpu(cpu, expression, "gradient-exact");
    run_on_gpu(gpu, expression, "gradient-products");
    const int wrong = count_wrong(sign);
    CHECK_MSG(!wrong, "%s as products, %s: %d of %d elements are wrong", expression, what, wrong, A + B);
}

/* The solver that multiplies for them where there is cuBLAS: its one form. */
static void test_cublas(mf_device *gpu)
{
    const DLTensor in[2] = {on(gpu, a, as), on(gpu, b, bs)}, out = on(gpu, o, os);
    mf_options options = {"cublas:tf32", 0, 0};
    mf_plan *plan = NULL;
    CHECK_MSG(mf_plan_create(gpu, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_OK, "%s", mf_error());
    mf_plan_destroy(plan);
    options.solver = "cublas:half";
    CHECK(mf_plan_create(gpu, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_ERROR_ARGUMENT &&
          !strcmp(mf_error(), "solver cublas has no form \"half\" for f32; the only one is tf32, for f32"));
}

static void test_products(mf_device *cpu, mf_device *gpu, int same_order)
{
    if (same_order)
        compare(cpu, gpu, "logsumexp(a+b)", "gradient-products", "gradient");
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, "all outputs take part");
    compare_near(cpu, gpu, "logsumexp(a-b)", -1, "all outputs take part");
    for (int e = 0; e < A; e += 3)
        a[e] *= 12; /* greatest terms that do not lie on each other */
    for (int e = 0; e < B; e += 7)
        b[e] *= 12;
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, "some outputs are left");
    compare_near(cpu, gpu, "logsumexp(a-b)", -1, "some outputs are left");
    for (int k = 0; k < TERMS; k++)
        a[2 * TERMS + k] = -INFINITY; /* outputs that nothing leads to */
    b[5 * COLUMNS + 3] = -INFINITY;
    d[2 * COLUMNS + 1] = NAN;
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, "with outputs of -inf");
    a[4 * TERMS + 7] = NAN;
    b[9 * COLUMNS + 8] = INFINITY;
    d[5 * COLUMNS] = 1e20F;
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, "with NaN and inf");
}

int main(int argc, char **argv)
{
    const char *const name = argc > 1 ? argv[1] : "opencl:0";
    mf_device *cpu = NULL, *gpu = NULL;
    mf_plan *plan = NULL;
    char message[100];
    gpu_test_environment("off");
    fill(a, A, 1);
    fill(b, B, 2);
    fill(d, O, 3);
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gpu_gradient");
    if (mf_device_open(name, &gpu) != MF_OK) {
        check_skip("gradients on a GPU", mf_error());
    } else {
        const mf_options unknown = {"gradient-guess", 0, 0};
        compare(cpu, gpu, "sum(a*b)", NULL, "gradient-exact");
        compare(cpu, gpu, "logsumexp(a+b)", NULL, "gradient-exact");
        compare(cpu, gpu, "logsumexp(a+b)", "gradient-exact", "gradient-exact");
        snprintf(message, sizeof message, "gradients of max and min are for the CPU, not for %s", name);
        CHECK(plan_on(gpu, "max(a+b)", NULL, &plan) == MF_ERROR_UNSUPPORTED && !strcmp(mf_error(), message));
        CHECK(plan_on(gpu, "logsumexp(a+b)", &unknown, &plan) == MF_ERROR_ARGUMENT &&
              !strcmp(mf_error(), "there is no solver \"gradient-guess\" for gradients; there are gradient "
                                  "gradient-exact gradient-products"));
        test_products(cpu, gpu, !strncmp(name, "opencl", 6));
        if (!strncmp(name, "cuda", 4))
            test_cublas(gpu);
        mf_device_close(gpu);
    }
    mf_device_close(cpu);
    return check_done("test_gpu_gradient");
}
