/* A plan of a GPU solver: a kernel for the problem's program, its shape, a workspace, and how many blocks. */
#ifndef MF_GPU_LAUNCH_H
#define MF_GPU_LAUNCH_H

#include "../plan.h"
#include "emit.h"
#include "gpu.h"

enum { GPU_WARP = 32, GPU_SHAPE_WORDS = 4096, GPU_OWN = 10 };

/* What a solver decides. */
struct gpu_choice {
    const char *kernel;               /* text of its kernel file */
    const char *fold;                 /* text of kernels/fold.cl where it is used, or null */
    int threads, vector, vector_loop; /* elements read together, along this loop */
    int flat;                         /* vectors run over the loops' ends: only bases have to be aligned */
    int beside;                       /* blocks that a multiprocessor is to have room for, or 0 */
    int most_beside;                  /* blocks that it is to have at most, or 0 */
    int64_t shared;                   /* bytes of LAUNCH_SHARED memory */
    int shifted;                      /* rows begin anywhere: kernels/fold.cl */
    int packed;                       /* the kernel can fold bytes four at a time: mf_emit_packed_bytes */
    int reads_once;                   /* mf_gpu_reads_once */
    int64_t blocks;
    int64_t own[GPU_OWN];    /* struct shape's p */
    int64_t workspace_bytes; /* 0: none */
    const void *table;       /* on the host: what the workspace begins with, or null */
    int64_t table_bytes;
    struct gpu_text macros;    /* #define lines of its own */
    struct gpu_text functions; /* text of its own, before the kernel file's */
    char text[256];            /* its choices, for people */
};

/* A stage that is no kernel of ours: puts its work into the stream, as a launch does. */
struct gpu_call {
    const char *what; /* for people */
    mf_status (*run)(const struct mf_plan *plan, const void *context, void *workspace, const struct pointers *pointers);
    void (*forget)(void *context);
    void *context;
};

/* A stage of the plan, after those that it has: compiles (or finds) the kernel; the first one makes the workspace,
 * which is for all. Fills plan->data. Takes over choice->macros and choice->functions. */
mf_status mf_gpu_make(struct mf_plan *plan, struct gpu_choice *choice);
/* The same of a call; where that fails, its context is forgotten. */
mf_status mf_gpu_add_call(struct mf_plan *plan, const struct gpu_call *call);
mf_status mf_gpu_execute(const struct mf_plan *plan, const struct pointers *pointers);
void mf_gpu_print(const struct mf_plan *plan, char *text, size_t size);
void mf_gpu_forget(struct mf_plan *plan);
/* Reads a part of the workspace, after all that is in the device's own stream. */
mf_status mf_gpu_read_workspace(const struct mf_plan *plan, int64_t offset, void *to, int64_t bytes);
/* Bytes of the device's memory that the plan has. */
int64_t mf_gpu_memory(const struct mf_plan *plan);

/* The kernel of this text (without its prelude), which the device keeps. */
mf_status mf_gpu_kernel(struct mf_device *device, const char *text, const struct gpu_kernel **kernel);

int mf_gpu_kernel_count(const struct mf_device *device);

/* The device's kernels, which plans share: freed when it is closed. */
void mf_gpu_discard_programs(struct mf_device *device);

/* A number from 1 to 2^30 as a kernel's divide_by takes it (kernels/common.cl). */
int64_t mf_gpu_divisor(int64_t size);

/* Least power of two that is at least n >= 1. */
static inline int64_t mf_power_above(int64_t n)
{
    int64_t p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* States of a column of n tiles with all levels above it: the last one included. */
static inline int64_t mf_levels(int64_t tiles)
{
    int64_t all = tiles;
    while (tiles > 1)
        all += tiles = (tiles + TILE - 1) / TILE;
    return all;
}

extern const struct solver *const mf_gpu_solvers[], *const mf_gpu_solvers_by_name[];

#endif
