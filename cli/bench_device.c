/* Times of folds on a GPU. */
#include "bench_device.h"

#include <stdlib.h>
#include <string.h>

#include "progress.h"

enum { FEWEST_RUNS = 7 };
static const double batch_seconds = 0.02;

/* One thing to measure: a plan, or (null) one-shot calls. */
struct work {
    mf_device *device;
    const mf_plan *plan;
    const struct problem_line *line;
    const DLTensor *input, *output;
    int times; /* executions of a batch */
};

/* The library's map "a" over 64-bit words. */
struct copy {
    mf_device *device;
    mf_plan *plan;
    void *memory[2];
    int64_t shape[1];
    DLTensor tensor[2];
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return count % 2 ? values[count / 2] : 0.5 * (values[count / 2 - 1] + values[count / 2]);
}

/* Seconds of one execution, as a part of a batch. */
static mf_status run_batch(const struct work *work, double *seconds)
{
    double start = seconds_now();
    mf_status status = MF_OK;
    for (int i = 0; i < work->times && status == MF_OK; i++)
        status = work->plan
                     ? mf_plan_execute_tensors(work->plan, work->input, work->output, NULL)
                     : mf_fold(work->device, work->line->modes, work->line->expression, work->input, work->output);
    mf_status waited = mf_device_wait(work->device, NULL);
    *seconds = (seconds_now() - start) / work->times;
    return status != MF_OK ? status : waited;
}

/* As many executions as a batch needs; the first ones warm up. */
static mf_status choose_times(struct work *work)
{
    double seconds = 0;
    mf_status status = MF_OK;
    work->times = 1;
    for (int i = 0; i < 2 && status == MF_OK; i++)
        status = run_batch(work, &seconds);
    while (status == MF_OK && seconds * work->times < batch_seconds && work->times < 1 << 20) {
        work->times *= 2;
        status = run_batch(work, &seconds);
    }
    return status;
}

static void close_copy(struct copy *copy)
{
    mf_plan_destroy(copy->plan);
    for (int i = 0; i < 2; i++)
        if (copy->memory[i])
            mf_memory_destroy(copy->device, copy->memory[i]);
}

static mf_status open_copy(mf_device *device, double bytes, struct copy *copy)
{
    memset(copy, 0, sizeof *copy);
    copy->device = device;
    copy->shape[0] = (int64_t)(bytes / 16) + 1;
    mf_status status = MF_OK;
    for (int i = 0; i < 2 && status == MF_OK; i++) {
        status = mf_memory_create(device, 8 * copy->shape[0], &copy->memory[i]);
        copy->tensor[i] = mf_tensor(copy->memory[i], MF_U64, 1, copy->shape);
        copy->tensor[i].device.device_type = (DLDeviceType)mf_device_kind(device);
    }
    if (status == MF_OK)
        status = mf_plan_create(device, "i->i", "a", &copy->tensor[0], &copy->tensor[1], NULL, &copy->plan);
    return status;
}

/* Fold and copy take turns, so that both meet the same machine. */
static mf_status take_turns(struct work *fold, struct work *copy, double seconds, struct device_times *times)
{
    mf_status status = choose_times(fold);
    if (status == MF_OK && copy)
        status = choose_times(copy);
    double start = seconds_now();
    int n = 0;
    while (status == MF_OK && n < DEVICE_RUNS && (n < FEWEST_RUNS || seconds_now() - start < seconds)) {
        status = run_batch(fold, &times->fold_time[n]);
        if (status == MF_OK && copy)
            status = run_batch(copy, &times->copy_time[n]);
        if (copy)
            times->ratios[n] = times->copy_time[n] / times->fold_time[n];
        n++;
    }
    times->runs = n;
    if (status != MF_OK)
        return status;
    times->fold = median_of(times->fold_time, n);
    times->copy = copy ? median_of(times->copy_time, n) : 0;
    times->ratio = copy ? median_of(times->ratios, n) : 0;
    return MF_OK;
}

mf_status device_measure(const struct problem_line *line, const struct problem_there *there, const mf_plan *plan,
                         int one_shot, double seconds, double copy_bytes, struct device_times *times)
{
    struct work fold = {there->device, one_shot ? NULL : plan, line, there->input, there->output, 1};
    if (copy_bytes <= 0)
        return take_turns(&fold, NULL, seconds, times);
    struct copy copy;
    mf_status status = open_copy(there->device, copy_bytes, &copy);
    struct work copying = {there->device, copy.plan, line, &copy.tensor[0], &copy.tensor[1], 1};
    if (status == MF_OK)
        status = take_turns(&fold, &copying, seconds, times);
    close_copy(&copy);
    return status;
}
