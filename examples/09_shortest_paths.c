/* Shortest paths between all nodes of a graph, by products of matrices over (min, +):
 *
 *     longer[i, j] = min over k of (path[i, k] + path[k, j])
 *
 * Each product doubles the number of edges that a path may have, until none gets shorter. Checked against Floyd (1962).
 * 09_shortest_paths [NODES] (300). The same product in a shell: modefold run 'ik,kj->ij' 'min(a+b)' P.npy P.npy */
#define _POSIX_C_SOURCE 199309L
#include <modefold.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { EDGES = 4 }; /* from every node */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Whole lengths, so that every sum is exact. */
static void make_graph(float *length, size_t n)
{
    unsigned state = 1;
    for (size_t i = 0; i < n * n; i++)
        length[i] = i % (n + 1) ? INFINITY : 0;
    for (size_t i = 0; i < n * EDGES; i++) {
        state = state * 1664525u + 1013904223u;
        length[i / EDGES * n + state / 65536 % n] = (float)(1 + state % 97);
        length[i / EDGES * (n + 1)] = 0;
    }
}

/* Squares path until nothing changes; spare has room for another matrix. Returns the number of products, -1: error. */
static int find_paths(mf_device *cpu, float *path, float *spare, size_t n)
{
    const int64_t shape[2] = {(int64_t)n, (int64_t)n};
    DLTensor in[2] = {mf_tensor(path, MF_F32, 2, shape), mf_tensor(path, MF_F32, 2, shape)};
    DLTensor out = mf_tensor(spare, MF_F32, 2, shape);
    mf_plan *plan;
    if (mf_plan_create(cpu, "ik,kj->ij", "min(a+b)", in, &out, NULL, &plan) != MF_OK)
        return -1;
    int products = 0, changed = 1;
    while (changed) {
        const void *from[2] = {path, path};
        void *to[1] = {spare};
        if (mf_plan_execute(plan, from, to, NULL) != MF_OK)
            break;
        products++;
        changed = memcmp(path, spare, n * n * sizeof *path) != 0;
        memcpy(path, spare, n * n * sizeof *path);
    }
    mf_plan_destroy(plan);
    return changed ? -1 : products;
}

static void floyd(float *path, size_t n)
{
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++) {
                float via = path[i * n + k] + path[k * n + j];
                path[i * n + j] = via < path[i * n + j] ? via : path[i * n + j];
            }
}

int main(int count, char **arguments)
{
    const long wanted = count > 1 ? strtol(arguments[1], NULL, 10) : 300;
    const size_t n = wanted > 1 && wanted < 20000 ? (size_t)wanted : 300, bytes = n * n * sizeof(float);
    float *path = malloc(bytes), *spare = malloc(bytes), *check = malloc(bytes);
    mf_device *cpu;
    if (!path || !spare || !check || mf_device_open("cpu", &cpu) != MF_OK)
        return 1;
    make_graph(path, n);
    make_graph(check, n);
    double start = seconds();
    int products = find_paths(cpu, path, spare, n);
    double ours = seconds() - start;
    floyd(check, n);
    double theirs = seconds() - start - ours;
    int good = products > 0 && !memcmp(path, check, bytes);
    if (products < 0)
        fprintf(stderr, "%s\n", mf_error());
    printf("%zu nodes: %d products in %.3f s (%.1f billion terms a second); Floyd's loop %.3f s; %s\n", n, products,
           ours, 1e-9 * products * (double)n * (double)n * (double)n / ours, theirs, good ? "equal" : "DIFFERENT");
    mf_device_close(cpu);
    free(path);
    free(spare);
    free(check);
    return !good;
}
