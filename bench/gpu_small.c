/* What a small fold costs on a CUDA device:
 *
 *   bench_gpu_small
 *
 * - the first result, from mf_fold to the end of mf_device_wait, with an empty cache of kernels and (in a second
 *   device handle) with that kernel in the cache; opening the device, which makes the CUDA context, is told beside it
 * - the host's time for one mf_plan_execute, 200 in a row
 * - a 2^16-element sum replayed in a CUDA graph: 100 in one graph, and one a graph
 * - beside them what the driver takes for a kernel that does nothing
 * Medians; prints that it skips where there is no device. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <modefold.h>

#include "../tests/cuda_driver.h"
#include "measure.h"

enum { COUNT = 1 << 16, RUNS = 101, IN_A_GRAPH = 100, EXECUTIONS = 200 };

static double microseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static DLTensor on_device(CUdeviceptr memory, mf_type type, int rank, const int64_t *shape)
{
    DLTensor t = mf_tensor((void *)(uintptr_t)memory, type, rank, shape); /* NOLINT: pointers travel as void * */
    t.device.device_type = kDLCUDA;
    return t;
}

static int check(mf_status status, const char *what)
{
    if (status != MF_OK)
        printf("%s: %s\n", what, mf_error());
    return status == MF_OK;
}

static void first_result(const char *expression, const DLTensor *x, const DLTensor *y)
{
    for (int round = 0; round < 2; round++) {
        mf_device *device;
        double begun = microseconds();
        if (!check(mf_device_open("cuda:0", &device), "opening"))
            return;
        double opened = microseconds();
        int done = check(mf_fold(device, "ij->i", expression, x, y), expression) &&
                   check(mf_device_wait(device, NULL), expression);
        double end = microseconds();
        if (done)
            printf("%-34s %-22s first result %8.1f ms (device opened in %.1f ms)\n", expression,
                   round ? "kernel in the cache" : "empty cache", (end - opened) * 1e-3, (opened - begun) * 1e-3);
        mf_device_close(device);
    }
}

static void execution(const mf_plan *plan, const DLTensor *x, const DLTensor *y, CUstream stream)
{
    double times[RUNS];
    for (int r = 0; r < RUNS; r++) {
        /* few enough that the driver's queue, of about a thousand launches, does not make the host wait */
        double start = microseconds();
        for (int i = 0; i < EXECUTIONS; i++)
            mf_plan_execute_tensors(plan, x, y, stream);
        times[r] = (microseconds() - start) / EXECUTIONS;
        cu.StreamSynchronize(stream);
    }
    printf("%-57s %8.2f us\n", "host's time of one execution", median(times, RUNS));
}

static void time_graph(CUgraphExec graph, CUstream stream, int in_a_graph, const char *what)
{
    double times[RUNS];
    CUevent start, end;
    char text[64];
    cu.EventCreate(&start, 0);
    cu.EventCreate(&end, 0);
    for (int r = 0; r < RUNS; r++) {
        float milliseconds = 0;
        cu.EventRecord(start, stream);
        cu.GraphLaunch(graph, stream);
        cu.EventRecord(end, stream);
        cu.EventSynchronize(end);
        cu.EventElapsedTime(&milliseconds, start, end);
        times[r] = milliseconds * 1e3 / in_a_graph;
    }
    snprintf(text, sizeof text, "%s, %d in a graph, time of each", what, in_a_graph);
    printf("%-57s %8.2f us\n", text, median(times, RUNS));
    cu.EventDestroy(start);
    cu.EventDestroy(end);
    cu.GraphExecDestroy(graph);
}

static void replayed(const mf_plan *plan, const DLTensor *x, const DLTensor *y, CUstream stream, int in_a_graph)
{
    CUgraphExec graph;
    if (!cuda_capture_begin(stream))
        return;
    for (int i = 0; i < in_a_graph; i++)
        mf_plan_execute_tensors(plan, x, y, stream);
    if (cuda_capture_end(stream, &graph))
        time_graph(graph, stream, in_a_graph, "sum of 2^16 floats");
    else
        printf("a graph cannot be made\n");
}

/* The driver's part: a kernel that does nothing, launched, and replayed in a graph. */
static void empty_kernel(CUstream stream)
{
    static const char text[] = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry nothing() { ret; }\n";
    struct CUmod_st *module;
    struct CUfunc_st *function;
    double times[RUNS];
    if (cu.ModuleLoadData(&module, text) || cu.ModuleGetFunction(&function, module, "nothing"))
        return;
    for (int r = 0; r < RUNS; r++) {
        double start = microseconds();
        for (int i = 0; i < EXECUTIONS; i++)
            cu.LaunchKernel(function, 132, 1, 1, 256, 1, 1, 0, stream, NULL, NULL);
        times[r] = (microseconds() - start) / EXECUTIONS;
        cu.StreamSynchronize(stream);
    }
    printf("%-57s %8.2f us\n", "host's time of one cuLaunchKernel of an empty kernel", median(times, RUNS));
    if (!cuda_capture_begin(stream))
        return;
    CUgraphExec graph;
    cu.LaunchKernel(function, 2, 1, 1, 256, 1, 1, 0, stream, NULL, NULL);
    if (cuda_capture_end(stream, &graph))
        time_graph(graph, stream, 1, "empty kernel");
}

static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    for (struct dirent *file = dir ? readdir(dir) : NULL; file; file = readdir(dir)) {
        char path[600];
        snprintf(path, sizeof path, "%.300s/%.255s", folder, file->d_name);
        if (file->d_name[0] != '.')
            unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

int main(void)
{
    char cache[] = "/tmp/modefold-bench-XXXXXX";
    static const int64_t shape[2] = {16, COUNT / 16}, all[1] = {COUNT};
    if (!cuda_driver_open()) {
        printf("skipped: there is no CUDA device\n");
        return 0;
    }
    if (!mkdtemp(cache) || setenv("MODEFOLD_CACHE", cache, 1))
        return 1;
    CUdeviceptr in = 0, out = 0;
    CUstream stream = NULL;
    mf_device *device = NULL;
    mf_plan *plan = NULL;
    if (cu.MemAlloc(&in, COUNT * 4) || cu.MemAlloc(&out, 4096) || cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return 1;
    DLTensor rows = on_device(in, MF_F32, 2, shape), sums = on_device(out, MF_F32, 1, shape);
    static const char *const expressions[] = {"sum(a)", "max(a)", "var(a)", "logsumexp(a)", "sum(exp(a)*2)"};
    for (size_t i = 0; i < sizeof expressions / sizeof expressions[0]; i++)
        first_result(expressions[i], &rows, &sums);
    DLTensor x = on_device(in, MF_F32, 1, all), y = on_device(out, MF_F32, 0, NULL);
    if (check(mf_device_open("cuda:0", &device), "opening") &&
        check(mf_plan_create(device, "i->", "sum(a)", &x, &y, NULL, &plan), "planning")) {
        printf("%s\n", mf_plan_describe(plan));
        empty_kernel(stream);
        execution(plan, &x, &y, stream);
        replayed(plan, &x, &y, stream, 1);
        replayed(plan, &x, &y, stream, IN_A_GRAPH);
    }
    mf_plan_destroy(plan);
    mf_device_close(device);
    remove_folder(cache);
    return 0;
}
