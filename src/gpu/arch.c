/* Device "sm:90": an architecture of CUDA without the GPU. Plans are made for it, so kernels are compiled (into the
 * cache, to be there when a GPU is) and what they take is known; nothing can be executed. */
#include <stdio.h>

#include "gpu.h"
#include "runtime.h"
#include "texts.h"

struct gpu {
    struct gpu_common common; /* first */
};

struct gpu_kernel {
    struct gpu_usage usage; /* first */
};

/* Multiprocessors of the largest GPU that is sold with an architecture. Solvers choose by this number, so the kernels
 * of other GPUs may differ where a fold has too few outputs to fill them. */
static int multiprocessors_of(int architecture)
{
    static const struct {
        int architecture, multiprocessors;
    } known[] = {{75, 72}, {80, 108}, {86, 84}, {87, 16}, {89, 142}, {90, 132}, {100, 148}, {103, 160}, {120, 188}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].architecture == architecture)
            return known[i].multiprocessors;
    return 132;
}

static mf_status arch_open(int number, struct gpu **result)
{
    struct gpu *gpu = mf_calloc(sizeof *gpu);
    if (!gpu)
        return MF_ERROR_MEMORY;
    struct gpu_limits *limits = &gpu->common.limits;
    mf_status status = mf_nvrtc_knows(number);
    if (status != MF_OK) {
        mf_free(gpu);
        return status;
    }
    mf_nvrtc_version(limits->compiler, sizeof limits->compiler);
    gpu->common.api = &mf_gpu_arch;
    gpu->common.limits.architecture = number;
    snprintf(limits->name, sizeof limits->name, "sm_%d, to compile for only", number);
    limits->multiprocessors = multiprocessors_of(number);
    limits->threads = 2048;
    limits->warpgroups = mf_nvrtc_has_warpgroups(number);
    limits->dlpack = 2;
    limits->has_f64 = 1;
    limits->shared = 48 << 10;
    limits->shared_most = (number == 80 ? 163 : number < 90 ? 99 : number < 120 ? 227 : 99) << 10;
    limits->parameters = MF_CUDA_PARAMETERS;
    *result = gpu;
    return MF_OK;
}

static void arch_close(struct gpu *gpu)
{
    mf_free(gpu);
}

static mf_status arch_build(struct gpu *gpu, const char *text, struct gpu_kernel **kernel)
{
    char *whole = mf_text_join(mf_text_prelude_cu, text);
    *kernel = NULL;
    if (!whole)
        return MF_ERROR_MEMORY;
    struct gpu_kernel *made = mf_calloc(sizeof *made);
    mf_status status = made ? mf_nvrtc_usage(whole, gpu->common.limits.architecture, &made->usage) : MF_ERROR_MEMORY;
    mf_free(whole);
    if (status != MF_OK) {
        mf_free(made);
        return status;
    }
    *kernel = made;
    return MF_OK;
}

static void arch_discard(struct gpu *gpu, struct gpu_kernel *kernel)
{
    (void)gpu;
    mf_free(kernel);
}

static mf_status arch_launch(struct gpu *gpu, const struct gpu_launch *launch, void *stream)
{
    (void)launch;
    (void)stream;
    return mf_fail(MF_ERROR_UNSUPPORTED, "sm_%d has no GPU behind it: it can be compiled for only",
                   gpu->common.limits.architecture);
}

static mf_status arch_alloc(struct gpu *gpu, int64_t bytes, void **memory)
{
    (void)bytes;
    *memory = gpu; /* something that is not null: plans may have a workspace, and nobody reads it */
    return MF_OK;
}

static void arch_release(struct gpu *gpu, void *memory)
{
    (void)gpu;
    (void)memory;
}

static mf_status arch_copy(struct gpu *gpu, void *memory, int64_t offset, void *host, int64_t bytes, int to_host)
{
    (void)memory;
    (void)offset;
    (void)host;
    (void)bytes;
    return to_host ? arch_launch(gpu, NULL, NULL) : MF_OK;
}

static mf_status arch_wait(struct gpu *gpu, void *stream)
{
    (void)gpu;
    (void)stream;
    return MF_OK;
}

static mf_status arch_check(struct gpu *gpu, const void *memory, const char *what, int number, uintptr_t *address)
{
    (void)what;
    (void)number;
    *address = (uintptr_t)memory;
    return arch_launch(gpu, NULL, NULL);
}

const struct gpu_api mf_gpu_arch = {
    "sm",        mf_text_prelude_cu, arch_open,    arch_close, arch_build, arch_discard,
    arch_launch, arch_alloc,         arch_release, arch_copy,  arch_wait,  arch_check,
};
