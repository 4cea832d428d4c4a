/* What a GPU has to give: ten operations, behind which are CUDA's driver (cuda.c) and OpenCL (opencl.c). Everything
 * else in src/gpu/ is the same for both. Both libraries are opened at run time, so one build serves machines with and
 * without them.
 *
 * Every operation that can fail returns a status and records a sentence; the handle stays usable. All may be called by
 * several threads at once. Memory is a device pointer (CUDA) or a cl_mem (OpenCL), always with an offset beside it. */
#ifndef MF_GPU_H
#define MF_GPU_H

#include "../error.h"

struct gpu;        /* an open device; each backend's own struct begins with struct gpu_common */
struct gpu_kernel; /* a function compiled for it */

/* What the solvers and the texts have to know of a device. */
struct gpu_limits {
    char name[128];     /* "NVIDIA H200" */
    char compiler[128]; /* what compiles, with version and target: part of every cache key */
    int multiprocessors;
    int threads;      /* resident on one of them */
    int dlpack;       /* DLPack's device type of its memory: 2 CUDA, 4 OpenCL */
    int architecture; /* of CUDA: 90 for sm_90; else 0 */
    int warpgroups;   /* it has instructions that four warps execute together, and the compiler knows them */
    int has_f64;
    int64_t shared;      /* bytes of shared (local) memory of a block, */
    int64_t shared_most; /* and with what its launch asks for (gpu_launch.shared) */
    int64_t parameters;  /* bytes of arguments that a kernel can take */
};

/* One argument of a kernel: size bytes at value, or, with size 0, device memory. */
struct gpu_argument {
    const void *value;
    size_t size;
};

enum {
    MF_GPU_ARGUMENTS = 64,    /* the most of one kernel */
    MF_CUDA_PARAMETERS = 4000 /* bytes, of the 4096 that every architecture of CUDA takes */
};

struct gpu_launch {
    const struct gpu_kernel *kernel;
    int64_t blocks; /* 0: nothing is done */
    int threads;    /* of one block */
    int argument_count;
    const struct gpu_argument *arguments;
    int64_t shared; /* bytes of LAUNCH_SHARED memory; 0: none */
    int follows;    /* the kernel waits for those before it in the stream itself (FOLLOW_STREAM) */
};

struct gpu_api {
    const char *name, *prelude; /* "cuda", and the text that goes before every kernel's */

    /* Opens device number n. */
    mf_status (*open)(int number, struct gpu **gpu);
    void (*close)(struct gpu *gpu);
    /* Compiles text (with its prelude), or takes it from the cache on disk. The function is called "modefold". */
    mf_status (*build)(struct gpu *gpu, const char *text, struct gpu_kernel **kernel);
    void (*discard)(struct gpu *gpu, struct gpu_kernel *kernel);
    /* Puts a launch into the stream (null: the device's own), without waiting or allocating. */
    mf_status (*launch)(struct gpu *gpu, const struct gpu_launch *launch, void *stream);
    /* Device memory, zeroed. */
    mf_status (*alloc)(struct gpu *gpu, int64_t bytes, void **memory);
    void (*release)(struct gpu *gpu, void *memory);
    /* Copies between the host and device memory, after all work of the device's own stream; waits. */
    mf_status (*copy)(struct gpu *gpu, void *memory, int64_t offset, void *host, int64_t bytes, int to_host);
    /* Waits for the stream (null: the device's own), and says what went wrong in it. */
    mf_status (*wait)(struct gpu *gpu, void *stream);
    /* Whether kernels can read this memory; *address is where it lies, comparable within one call. */
    mf_status (*check)(struct gpu *gpu, const void *memory, const char *what, int number, uintptr_t *address);
};

/* The beginning of struct gpu in both backends. */
struct gpu_common {
    const struct gpu_api *api;
    struct gpu_limits limits;
};
/* The beginning of struct gpu_kernel in every backend: what a thread takes, zeros where nobody tells. */
struct gpu_usage {
    int registers;
    int stack;   /* bytes of local memory: arrays that did not become registers, and what was spilled */
    int spilled; /* bytes of spill stores and loads, as instructions in the text */
};
#define MF_GPU_USAGE(kernel) ((const struct gpu_usage *)(kernel))
#define MF_GPU_LIMITS(gpu) (&((const struct gpu_common *)(gpu))->limits)

extern const struct gpu_api mf_gpu_cuda, mf_gpu_opencl, mf_gpu_arch;

/* ---- cuda.c, for NVIDIA's libraries: makes the device's context the thread's, and takes it away again ---- */

mf_status mf_cuda_enter(const struct gpu *gpu);
void mf_cuda_leave(void);

/* ---- nvrtc.c: the CUDA compiler, which needs no GPU ---- */

/* Compiles text, which has its prelude, for an architecture such as 90 (sm_90), or takes it from the cache. *binary is
 * from mf_alloc. With usage (null: nobody asks) it is compiled even if the cache has it. */
mf_status mf_nvrtc_compile(const char *text, int architecture, struct gpu_usage *usage, char **binary, size_t *size);
/* What text takes. The cache has its binary then, if there is a cache, and what it takes. */
mf_status mf_nvrtc_usage(const char *text, int architecture, struct gpu_usage *usage);
/* What a log of the assembler says of a kernel and of all that it calls. */
void mf_nvrtc_read_usage(const char *log, struct gpu_usage *usage);
/* Whether it does that, with a sentence if not. */
mf_status mf_nvrtc_knows(int architecture);
/* Whether it compiles wgmma for this architecture. */
int mf_nvrtc_has_warpgroups(int architecture);
/* Opens the library now, so that what comes later need not wait for it. */
void mf_nvrtc_load(void);
/* "NVRTC 13.0", or the sentence why there is none. */
mf_status mf_nvrtc_version(char *text, size_t size);

/* ---- cache.c: compiled kernels on disk ---- */

/* MODEFOLD_CACHE, else XDG_CACHE_HOME/modefold, else ~/.cache/modefold; "off" or "" switches it off. An entry holds its
 * whole key, which is compared, so that no two texts can be taken for each other, and a checksum. Nothing here fails:
 * what cannot be read is compiled, what cannot be written is not kept. */
int mf_cache_find(const char *compiler, const char *text, char **binary, size_t *size);
void mf_cache_keep(const char *compiler, const char *text, const char *binary, size_t size);
/* The folder's path; 0 when there is to be no cache. */
int mf_cache_folder(char *path, size_t size);
/* Whether there is to be one: a driver may take as long for a kernel's binary as for the kernel (PoCL compiles it once
 * more, for work-groups of any size). */
int mf_cache_is_on(void);

#endif
