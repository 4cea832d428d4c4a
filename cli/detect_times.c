/* The ways to run a network, and their times by kind of layer: the rows of tables 3.1 and 3.2 of Tandon and Kim, "CS492
 * Project 3 Report", 2020. */
#include "detect_times.h"

#include <stdio.h>
#include <string.h>

#include "options.h"
#include "progress.h"

static const struct {
    const char *backend, *device;
    mf_net_way way;
} backends[] = {{"scalar", "cpu:1", MF_NET_SCALAR}, {"openblas", "cpu", MF_NET_BLAS},
                {"simd", "cpu", MF_NET_FOLDS},      {"cublas", "cuda:0", MF_NET_BLAS},
                {"cuda", "cuda:0", MF_NET_FOLDS},   {"opencl", "opencl:0", MF_NET_FOLDS}};
enum { BACKENDS = sizeof backends / sizeof backends[0] };

int net_way_open(struct net_way *way, const mf_net *net, const char *backend, const mf_net_options *options,
                 int measure)
{
    int b = 0;
    while (b < BACKENDS && strcmp(backend, backends[b].backend) != 0)
        b++;
    if (b == BACKENDS)
        return complain(2, "there is no backend \"%s\"; there are scalar, openblas, simd, cublas, cuda and opencl",
                        backend);
    mf_net_options chosen = *options;
    chosen.way = backends[b].way;
    *way = (struct net_way){.backend = backends[b].backend, .pending = measure};
    if (mf_device_open(backends[b].device, &way->device) != MF_OK ||
        mf_net_plan_create(net, way->device, &chosen, &way->plan) != MF_OK)
        return complain_library();
    return 0;
}

mf_status net_way_run(struct net_way *way, const DLTensor *input)
{
    const double start = seconds_now();
    mf_status status = mf_net_plan_run(way->plan, input);
    if (!way->pending)
        way->inference += seconds_now() - start;
    return status;
}

void net_way_count(struct net_way *way, double seconds)
{
    if (way->pending) {
        way->pending--;
        mf_net_plan_measure(way->plan, 1);
        return;
    }
    way->whole += seconds;
    way->runs++;
}

void net_way_close(struct net_way *way)
{
    mf_net_plan_destroy(way->plan);
    mf_device_close(way->device);
    way->plan = NULL;
    way->device = NULL;
}

static double *cell(struct net_times *times, const char *kind)
{
    int k = 0;
    while (k < times->kinds && strcmp(times->kind[k], kind) != 0)
        k++;
    if (k == times->kinds)
        times->kind[times->kinds++] = kind;
    return &times->seconds[k][times->ways];
}

int net_times_add(struct net_times *times, const struct net_way *way)
{
    const double runs = way->runs;
    if (times->ways == TIME_WAYS)
        return complain(2, "more than %d backends", TIME_WAYS);
    if (!way->runs)
        return complain(2, "the first run does not count for --times: it wants --trials 2 or more, or more pictures");
    times->way[times->ways] = way->backend;
    *cell(times, "End-to-end") = way->whole / runs;
    *cell(times, "DNN inference") = way->inference / runs;
    for (int s = 0; s < mf_net_plan_step_count(way->plan); s++) {
        mf_net_step step;
        if (mf_net_plan_step(way->plan, s, &step) == MF_OK)
            *cell(times, step.kind) += step.seconds / runs;
    }
    times->ways++;
    return 0;
}

void net_times_show(const struct net_times *times, int json)
{
    if (json)
        printf(", \"times\": {");
    else
        printf("\n%-16s", "ms");
    for (int w = 0; w < times->ways && !json; w++)
        printf(" %10s", times->way[w]);
    printf(json ? "" : "\n");
    for (int k = 0; k < times->kinds; k++) {
        char name[32];
        snprintf(name, sizeof name, "%s%s", times->kind[k], k < 2 ? "" : " summed");
        if (json)
            printf("%s\"%s\": %.6g", k ? ", " : "", name, times->seconds[k][0]);
        else
            printf("%-16s", name);
        for (int w = 0; w < times->ways && !json; w++)
            printf(" %10.3f", 1e3 * times->seconds[k][w]);
        printf(json ? "" : "\n");
    }
    printf(json ? "}" : "");
}
