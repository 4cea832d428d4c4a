/* Gradients of logsumexp over few terms, which a GPU computes in one kernel: random sizes, orders of modes and strides,
 * with and without a batch, near loops in double. The argument is the device, or "opencl:0". */
#include "gpu_test.h"

#include <math.h>
#include <stdlib.h>

#include "modefold.h"

enum { PROBLEMS = 60, MOST = 40, MODES = 4, TENSORS = 6 };

/* By tensor: a, b, out, d, da, db. */
static const char *const letters_of[TENSORS] = {"nik", "nkj", "nij", "nij", "nik", "nkj"};

static unsigned state = 9;

static int draw(int below)
{
    state = state * 1664525u + 1013904223u;
    return (int)(((uint64_t)(state >> 8) * (unsigned)below) >> 24);
}

static int64_t sizes[128];

struct held {
    char letters[MODES];
    int64_t shape[MODES], stride[MODES], elements, by_letter[128];
    DLTensor tensor;
    float *data;
    void *memory;
};

/* Modes in any order, with gaps between. */
static void hold(struct held *h, mf_device *device, const char *letters)
{
    int rank = 0;
    memset(h, 0, sizeof *h);
    for (; *letters; letters++)
        if (sizes[(int)*letters]) {
            const int at = draw(rank + 1);
            h->letters[rank] = h->letters[at];
            h->letters[at] = *letters;
            rank++;
        }
    h->elements = 1;
    for (int m = rank - 1; m >= 0; m--) {
        const int letter = h->letters[m];
        h->shape[m] = sizes[letter];
        h->stride[m] = h->by_letter[letter] = h->elements;
        h->elements = h->elements * h->shape[m] + (draw(3) ? 0 : draw(5));
    }
    h->data = calloc((size_t)h->elements, sizeof *h->data);
    h->tensor = mf_tensor(NULL, MF_F32, rank, h->shape);
    h->tensor.strides = h->stride;
    h->tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    for (int64_t e = 0; e < h->elements; e++)
        h->data[e] = (float)(draw(2001) - 1000) / 250;
}

static float *at(struct held *h, int64_t n, int64_t i, int64_t j, int64_t k)
{
    return h->data + n * h->by_letter['n'] + i * h->by_letter['i'] + j * h->by_letter['j'] + k * h->by_letter['k'];
}

static void fill_outputs(struct held *h, int sign)
{
    for (int64_t n = 0; n < (sizes['n'] ? sizes['n'] : 1); n++)
        for (int64_t i = 0; i < sizes['i']; i++)
            for (int64_t j = 0; j < sizes['j']; j++) {
                double sum = 0;
                for (int64_t k = 0; k < sizes['k']; k++)
                    sum += exp((double)*at(&h[0], n, i, j, k) + sign * (double)*at(&h[1], n, i, j, k));
                *at(&h[2], n, i, j, 0) = (float)log(sum);
            }
}

static int differs(double sum, double size, double got)
{
    return !(fabs(got - sum) <= 1e-5 * size);
}

/* How many elements of both gradients are wrong. */
static int count_wrong(struct held *h, int sign)
{
    int wrong = 0;
    for (int g = 0; g < 2; g++)
        for (int64_t n = 0; n < (sizes['n'] ? sizes['n'] : 1); n++)
            for (int64_t p = 0; p < sizes[g ? 'j' : 'i']; p++)
                for (int64_t k = 0; k < sizes['k']; k++) {
                    double sum = 0, size = 0;
                    for (int64_t q = 0; q < sizes[g ? 'i' : 'j']; q++) {
                        const int64_t i = g ? q : p, j = g ? p : q;
                        const double x = (double)*at(&h[0], n, i, j, k) + sign * (double)*at(&h[1], n, i, j, k);
                        const double term = (double)*at(&h[3], n, i, j, 0) * exp(x - (double)*at(&h[2], n, i, j, 0));
                        sum += g ? sign * term : term;
                        size += fabs(term);
                    }
                    wrong += differs(sum, size, (double)*at(&h[4 + g], n, g ? 0 : p, g ? p : 0, k));
                }
    return wrong;
}

static void write_modes(const struct held *h, char *modes)
{
    char *to = modes;
    for (int t = 0; t < 3; t++) {
        const char *const before[] = {"", ",", "->"};
        to += sprintf(to, "%s%.*s", before[t], h[t].tensor.ndim, h[t].letters);
    }
}

static void run_one(mf_device *device, int number)
{
    static const char *const named[] = {"logsumexp(a+b)", "logsumexp(a-b)"};
    const int minus = draw(2);
    struct held h[TENSORS];
    char modes[32];
    mf_plan *plan = NULL;
    sizes['n'] = draw(2) ? 1 + draw(4) : 0;
    for (const char *l = "ijk"; *l; l++)
        sizes[(int)*l] = 1 + draw(draw(3) ? MOST : 4);
    for (int t = 0; t < TENSORS; t++)
        hold(&h[t], device, letters_of[t]);
    for (int t = 3; t < TENSORS; t++) { /* a gradient has the modes of its tensor, its strides are its own */
        const struct held *like = &h[t == 3 ? 2 : t - 4];
        memcpy(h[t].letters, like->letters, sizeof like->letters);
        int64_t stride = 1;
        for (int m = h[t].tensor.ndim - 1; m >= 0; stride *= h[t].shape[m--]) {
            h[t].shape[m] = like->shape[m];
            h[t].stride[m] = h[t].by_letter[(int)h[t].letters[m]] = stride;
        }
    }
    fill_outputs(h, minus ? -1 : 1);
    write_modes(h, modes);
    const DLTensor in[] = {h[0].tensor, h[1].tensor}, gradients[] = {h[4].tensor, h[5].tensor};
    for (int t = 0; t < TENSORS; t++)
        CHECK_MSG(mf_memory_create(device, h[t].elements * 4, &h[t].memory) == MF_OK &&
                      mf_memory_write(device, h[t].memory, 0, h[t].data, h[t].elements * 4) == MF_OK,
                  "%s", mf_error());
    const void *from[] = {h[0].memory, h[1].memory, h[2].memory, h[3].memory};
    void *to[] = {h[4].memory, h[5].memory};
    CHECK_MSG(mf_plan_gradient(device, modes, named[minus], in, &h[2].tensor, &h[3].tensor, gradients, NULL, &plan) ==
                      MF_OK &&
                  mf_plan_execute(plan, from, to, NULL) == MF_OK,
              "problem %d, %s: %s", number, modes, mf_error());
    const char *const text = plan ? mf_plan_describe(plan) : "";
    CHECK_MSG(strstr(text, "both gradients in one kernel") != NULL, "problem %d, %s: %s", number, modes, text);
    mf_plan_destroy(plan);
    for (int t = 4; t < TENSORS; t++)
        CHECK(mf_memory_read(device, h[t].memory, 0, h[t].data, h[t].elements * 4) == MF_OK);
    const int wrong = count_wrong(h, minus ? -1 : 1);
    CHECK_MSG(!wrong, "problem %d, %s, %s, i=%d j=%d k=%d n=%d: %d elements are wrong", number, modes, named[minus],
              (int)sizes['i'], (int)sizes['j'], (int)sizes['k'], (int)sizes['n'], wrong);
    for (int t = 0; t < TENSORS; t++) {
        mf_memory_destroy(device, h[t].memory);
        free(h[t].data);
    }
}

/* Both gradients of 4 x 4 outputs over 2 terms, where all a and all outputs have one value, all b and d another. */
static void run_even(mf_device *device, float a, float b, float out, double expected)
{
    enum { M = 4, K = 2 };
    const int64_t as[] = {M, K}, bs[] = {K, M}, os[] = {M, M};
    const float value[TENSORS] = {a, b, out, 1, 0, 0};
    const int64_t *const shape[TENSORS] = {as, bs, os, os, as, bs};
    DLTensor tensor[TENSORS];
    void *memory[TENSORS];
    float held[M * M];
    mf_plan *plan = NULL;
    for (int t = 0; t < TENSORS; t++) {
        const int64_t bytes = shape[t][0] * shape[t][1] * 4;
        for (int e = 0; e < M * M; e++)
            held[e] = value[t];
        tensor[t] = mf_tensor(NULL, MF_F32, 2, shape[t]);
        tensor[t].device.device_type = (DLDeviceType)mf_device_kind(device);
        CHECK(mf_memory_create(device, bytes, &memory[t]) == MF_OK &&
              mf_memory_write(device, memory[t], 0, held, bytes) == MF_OK);
    }
    CHECK(mf_plan_gradient(device, "ik,kj->ij", "logsumexp(a+b)", tensor, &tensor[2], &tensor[3], tensor + 4, NULL,
                           &plan) == MF_OK &&
          mf_plan_execute(plan, (const void *const *)memory, memory + 4, NULL) == MF_OK);
    mf_plan_destroy(plan);
    for (int g = 4; g < TENSORS; g++) {
        CHECK(mf_memory_read(device, memory[g], 0, held, sizeof(float) * M * K) == MF_OK);
        for (int e = 0; e < M * K; e++)
            CHECK_MSG(fabs((double)held[e] - expected) <= 1e-5 * expected, "a %g, b %g, out %g: %g instead of %g",
                      (double)a, (double)b, (double)out, (double)held[e], expected);
    }
    for (int t = 0; t < TENSORS; t++)
        mf_memory_destroy(device, memory[t]);
}

/* Values that are far from 0, as rows that a mask takes out have. */
static void test_large(mf_device *device)
{
    static const float values[] = {-1e4F, -1e5F + 0.5F, -1e9F, 1e9F, -1e38F, -3.4028235e38F, 3e38F};
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        run_even(device, values[v], 0, values[v], 4);
        run_even(device, 0, values[v], values[v], 4);
    }
    run_even(device, 3e38F, -3e38F, 0.69314718F, 2);
    run_even(device, -INFINITY, 1, -INFINITY, 0);
    run_even(device, INFINITY, 1, -INFINITY, 0); /* no such output, but nothing comes of it */
}

int main(int argc, char **argv)
{
    mf_device *device;
    gpu_test_environment("off");
    if (mf_device_open(argc > 1 ? argv[1] : "opencl:0", &device) != MF_OK) {
        check_skip("gradients on a GPU", mf_error());
        return check_done("test_gpu_gradient_near");
    }
    for (int number = 0; number < PROBLEMS; number++)
        run_one(device, number);
    test_large(device);
    mf_device_close(device);
    return check_done("test_gpu_gradient_near");
}
