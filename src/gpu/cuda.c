/* CUDA by its driver: libcuda.so.1, opened at run time, and binaries from nvrtc.c.
 *
 * Contexts: where the process already computes on the device, its context is ours too, so memory and streams of the
 * user's libraries can be used; otherwise the device's primary context, which is what they will use. Every call makes
 * the context current for itself and leaves the thread as it found it. */
#include "gpu.h"
#include "runtime.h"
#include "texts.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The types and numbers of cuda.h, which is not needed to build. Enumerations are ints to the driver. */
typedef int CUresult, CUdevice, CUdevice_attribute, CUfunction_attribute, CUpointer_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

enum { /* CUresult, CUDA_ERROR_... */
       OUT_OF_MEMORY = 2,
       NO_DEVICE = 100,
       INVALID_IMAGE = 200,
       NO_BINARY_FOR_GPU = 209,
       INVALID_PTX = 218,
       UNSUPPORTED_PTX_VERSION = 222,
       ILLEGAL_ADDRESS = 700,
       LAUNCH_TIMEOUT = 702,
       HARDWARE_STACK_ERROR = 714,
       LAUNCH_FAILED = 719
};
enum { /* CU_DEVICE_ATTRIBUTE_... */
       MAX_SHARED_MEMORY_PER_BLOCK = 8,
       MULTIPROCESSOR_COUNT = 16,
       MAX_THREADS_PER_MULTIPROCESSOR = 39,
       COMPUTE_CAPABILITY_MAJOR = 75,
       COMPUTE_CAPABILITY_MINOR = 76,
       MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
};
/* CU_FUNC_ATTRIBUTE_... */
enum {
    FUNCTION_MAX_THREADS_PER_BLOCK = 0,
    FUNCTION_SHARED_BYTES = 1,
    FUNCTION_LOCAL_BYTES = 3,
    FUNCTION_REGISTERS = 4,
    FUNCTION_MAX_DYNAMIC_SHARED_BYTES = 8
};
enum { POINTER_MEMORY_TYPE = 2, POINTER_IS_MANAGED = 8, POINTER_DEVICE_ORDINAL = 9, MEMORY_TYPE_DEVICE = 2 };
enum { OLDEST_DRIVER = 11020 };

struct gpu {
    struct gpu_common common;
    CUdevice device;
    CUcontext context;
    int retained; /* the context is the device's primary one, and we hold it */
    int driver;
};

struct gpu_kernel {
    struct gpu_usage usage; /* first */
    CUmodule module;
    CUfunction function;
    int threads_max;
};

/* CUlaunchAttribute and CUlaunchConfig. */
struct launch_attribute {
    int id, padding;
    union {
        char bytes[64];
        int value;
    };
};

struct launch_config {
    unsigned grid[3], block[3], shared;
    CUstream stream;
    struct launch_attribute *attributes;
    unsigned count;
};
enum { PROGRAMMATIC_STREAM_SERIALIZATION = 6 };

static struct {
#define FUNCTION(name, symbol, arguments) CUresult(*name) arguments;
#define OPTIONAL FUNCTION
#include "cuda.def"
#undef FUNCTION
} cuda;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[256]; /* there is no driver; "" when there is one */

static void load(void)
{
    static const char *const files[] = {"libcuda.so.1", NULL};
    static const char *const symbols[] = {
#define FUNCTION(name, symbol, arguments) #symbol,
#undef OPTIONAL
#define OPTIONAL(name, symbol, arguments) "?" #symbol,
#include "cuda.def"
#undef OPTIONAL
#undef FUNCTION
        NULL};
    mf_library_load("the CUDA driver, libcuda.so.1,", files, symbols, &cuda, why, sizeof why);
}

/* ---- What went wrong ---- */

/* After these the driver refuses everything in the context: a kernel did what it must not. */
static int is_fault(CUresult result)
{
    return result == ILLEGAL_ADDRESS || result == LAUNCH_TIMEOUT ||
           (result >= HARDWARE_STACK_ERROR && result <= LAUNCH_FAILED);
}

/* "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)" */
static void say_result(CUresult result, char *text, size_t size)
{
    const char *name = NULL, *sentence = NULL;
    if (cuda.GetErrorName(result, &name) || !name || cuda.GetErrorString(result, &sentence) || !sentence)
        snprintf(text, size, "CUDA error %d", result);
    else
        snprintf(text, size, "%s (%s)", sentence, name);
}

static mf_status failed(const struct gpu *gpu, CUresult result, const char *what)
{
    char text[200];
    say_result(result, text, sizeof text);
    if (is_fault(result))
        return mf_fail(MF_ERROR_DEVICE,
                       "a kernel failed on %s, found by %s: %s; its CUDA context is lost to this process",
                       gpu->common.limits.name, what, text);
    return mf_fail(MF_ERROR_DEVICE, "%s failed on %s: %s", what, gpu->common.limits.name, text);
}

/* ---- The context ---- */

static mf_status enter(const struct gpu *gpu)
{
    CUresult result = cuda.CtxPushCurrent(gpu->context);
    return result ? failed(gpu, result, "entering the CUDA context") : MF_OK;
}

static void leave(void)
{
    CUcontext left;
    cuda.CtxPopCurrent(&left);
}

/* In every execution, where the context is mostly the thread's already: asking costs less than entering and leaving. */
static int is_entered(const struct gpu *gpu)
{
    CUcontext current = NULL;
    return !cuda.CtxGetCurrent(&current) && current == gpu->context;
}

mf_status mf_cuda_enter(const struct gpu *gpu)
{
    return enter(gpu);
}

void mf_cuda_leave(void)
{
    leave();
}

/* The thread's current context, if it is one on this device. */
static CUcontext current_context(CUdevice device)
{
    CUcontext context = NULL;
    CUdevice of_context = -1;
    if (cuda.CtxGetCurrent(&context) || !context || cuda.CtxGetDevice(&of_context) || of_context != device)
        return NULL;
    return context;
}

/* Takes the current context, and holds it if it is the primary one; without any, makes the primary one. */
static mf_status take_context(struct gpu *gpu)
{
    CUcontext current = current_context(gpu->device), primary = NULL;
    unsigned int flags;
    int active = 0;
    if (current && (cuda.DevicePrimaryCtxGetState(gpu->device, &flags, &active) || !active)) {
        gpu->context = current;
        return MF_OK;
    }
    CUresult result = cuda.DevicePrimaryCtxRetain(&primary, gpu->device);
    if (result)
        return failed(gpu, result, "making a CUDA context");
    gpu->retained = !current || current == primary;
    gpu->context = current ? current : primary;
    if (!gpu->retained)
        cuda.DevicePrimaryCtxRelease(gpu->device);
    return MF_OK;
}

/* ---- Opening ---- */

/* The driver sees device number n. */
static mf_status find_device(int number, struct gpu *gpu)
{
    char text[200];
    int count = 0;
    if (cuda.DriverGetVersion(&gpu->driver) || gpu->driver < OLDEST_DRIVER)
        return mf_fail(MF_ERROR_DEVICE, "the CUDA driver is too old: it is of CUDA %d.%d, and 11.2 is the oldest",
                       gpu->driver / 1000, gpu->driver % 1000 / 10);
    CUresult result = cuda.Init(0);
    if (!result)
        result = cuda.DeviceGetCount(&count);
    if (result && result != NO_DEVICE) {
        say_result(result, text, sizeof text);
        return mf_fail(MF_ERROR_DEVICE, "the CUDA driver does not start: %s", text);
    }
    if (number < 0 || number >= count || cuda.DeviceGet(&gpu->device, number))
        return mf_fail(MF_ERROR_DEVICE, "there is no CUDA device %d: the driver sees %d%s", number, count,
                       count ? ", numbered from 0" : "");
    return MF_OK;
}

static mf_status find_limits(struct gpu *gpu)
{
    struct gpu_limits *limits = &gpu->common.limits;
    int shared = 0, shared_most = 0, major = 0, minor = 0;
    const struct {
        CUdevice_attribute attribute;
        int *value;
    } wanted[] = {{MULTIPROCESSOR_COUNT, &limits->multiprocessors},
                  {MAX_THREADS_PER_MULTIPROCESSOR, &limits->threads},
                  {MAX_SHARED_MEMORY_PER_BLOCK, &shared},
                  {MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared_most},
                  {COMPUTE_CAPABILITY_MAJOR, &major},
                  {COMPUTE_CAPABILITY_MINOR, &minor}};
    snprintf(limits->name, sizeof limits->name, "CUDA device %d", gpu->device);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        CUresult result = cuda.DeviceGetAttribute(wanted[i].value, wanted[i].attribute, gpu->device);
        if (result)
            return failed(gpu, result, "asking for the device's attributes");
    }
    if (cuda.DeviceGetName(limits->name, (int)sizeof limits->name, gpu->device))
        snprintf(limits->name, sizeof limits->name, "CUDA device %d", gpu->device);
    gpu->common.limits.architecture = major * 10 + minor;
    limits->dlpack = 2;
    limits->has_f64 = 1;
    limits->shared = shared;
    limits->shared_most = shared_most > shared ? shared_most : shared;
    limits->parameters = MF_CUDA_PARAMETERS;
    return MF_OK;
}

static mf_status find_compiler(struct gpu *gpu)
{
    struct gpu_limits *limits = &gpu->common.limits;
    char version[sizeof limits->compiler - 16];
    MF_TRY(mf_nvrtc_version(version, sizeof version));
    snprintf(limits->compiler, sizeof limits->compiler, "%s sm_%d", version, limits->architecture);
    limits->warpgroups = mf_nvrtc_has_warpgroups(limits->architecture);
    return MF_OK;
}

static void *load_compiler(void *nothing)
{
    mf_nvrtc_load();
    return nothing;
}

static void close_device(struct gpu *gpu)
{
    if (gpu && gpu->retained)
        cuda.DevicePrimaryCtxRelease(gpu->device);
    mf_free(gpu);
}

static mf_status open_device(int number, struct gpu **opened)
{
    pthread_t loader;
    *opened = NULL;
    pthread_once(&once, load);
    if (*why)
        return mf_fail(MF_ERROR_DEVICE, "%s", why);
    struct gpu *gpu = mf_calloc(sizeof *gpu);
    if (!gpu)
        return MF_ERROR_MEMORY;
    gpu->common.api = &mf_gpu_cuda;
    /* the compiler's library has 100 MB, and is there by the time that the driver has started */
    const int loads = !pthread_create(&loader, NULL, load_compiler, NULL);
    mf_status status = find_device(number, gpu);
    if (!status)
        status = find_limits(gpu);
    if (!status)
        status = take_context(gpu);
    if (loads)
        pthread_join(loader, NULL);
    if (!status)
        status = find_compiler(gpu);
    if (status)
        close_device(gpu);
    else
        *opened = gpu;
    return status;
}

/* ---- Kernels ---- */

/* A kernel may have all shared memory that it does not have already. Where it may not, its launch fails. */
static CUresult allow_shared(const struct gpu_limits *limits, const struct gpu_kernel *kernel)
{
    int own = 0;
    CUresult result = cuda.FuncGetAttribute(&own, FUNCTION_SHARED_BYTES, kernel->function);
    return result ? result
                  : cuda.FuncSetAttribute(kernel->function, FUNCTION_MAX_DYNAMIC_SHARED_BYTES,
                                          (int)limits->shared_most - own);
}

/* In the context. Asking for an attribute makes a driver that loads lazily load now: it could not while a stream is
 * captured. */
static CUresult load_kernel(const struct gpu_limits *limits, const char *binary, struct gpu_kernel *kernel)
{
    CUresult result = cuda.ModuleLoadData(&kernel->module, binary);
    if (result)
        return result;
    result = cuda.ModuleGetFunction(&kernel->function, kernel->module, "modefold");
    if (!result)
        result = cuda.FuncGetAttribute(&kernel->threads_max, FUNCTION_MAX_THREADS_PER_BLOCK, kernel->function);
    if (!result)
        result = cuda.FuncGetAttribute(&kernel->usage.registers, FUNCTION_REGISTERS, kernel->function);
    if (!result)
        result = cuda.FuncGetAttribute(&kernel->usage.stack, FUNCTION_LOCAL_BYTES, kernel->function);
    if (!result)
        result = allow_shared(limits, kernel);
    if (result)
        cuda.ModuleUnload(kernel->module);
    return result;
}

static mf_status memory_failed(const struct gpu *gpu, const char *what, int64_t bytes)
{
    size_t free_bytes = 0, total = 0;
    if (cuda.MemGetInfo(&free_bytes, &total))
        return mf_fail(MF_ERROR_MEMORY, "%s has no room for %s of %lld bytes", gpu->common.limits.name, what,
                       (long long)bytes);
    return mf_fail(MF_ERROR_MEMORY, "%s has no room for %s of %lld bytes: %zu of %zu are free", gpu->common.limits.name,
                   what, (long long)bytes, free_bytes, total);
}

static mf_status load_failed(const struct gpu *gpu, CUresult result, size_t size)
{
    char version[64], text[200];
    if (result == OUT_OF_MEMORY)
        return memory_failed(gpu, "a kernel", (int64_t)size);
    if (result != INVALID_IMAGE && result != NO_BINARY_FOR_GPU && result != INVALID_PTX &&
        result != UNSUPPORTED_PTX_VERSION)
        return failed(gpu, result, "loading a kernel");
    say_result(result, text, sizeof text);
    mf_nvrtc_version(version, sizeof version);
    return mf_fail(MF_ERROR_DEVICE,
                   "the driver, of CUDA %d.%d, cannot load what %s compiled for sm_%d: %s; it may be too old for it",
                   gpu->driver / 1000, gpu->driver % 1000 / 10, version, gpu->common.limits.architecture, text);
}

/* Compiles and loads. With again the cache is not asked, only written. */
static mf_status compile_and_load(const struct gpu *gpu, const char *whole, int again, struct gpu_kernel *kernel,
                                  CUresult *result)
{
    struct gpu_usage usage;
    char *binary;
    size_t size;
    MF_TRY(mf_nvrtc_compile(whole, gpu->common.limits.architecture, again ? &usage : NULL, &binary, &size));
    mf_status status = enter(gpu);
    if (!status) {
        *result = load_kernel(&gpu->common.limits, binary, kernel);
        if (*result)
            status = load_failed(gpu, *result, size);
        leave();
    }
    mf_free(binary);
    return status;
}

static mf_status build(struct gpu *gpu, const char *text, struct gpu_kernel **built)
{
    CUresult result = 0;
    *built = NULL;
    struct gpu_kernel *kernel = mf_calloc(sizeof *kernel);
    char *whole = kernel ? mf_text_join(mf_text_prelude_cu, text) : NULL;
    mf_status status = whole ? compile_and_load(gpu, whole, 0, kernel, &result) : MF_ERROR_MEMORY;
    /* what could not be loaded may have come from the cache, written for a driver that was here before */
    if (status && result && result != OUT_OF_MEMORY && !is_fault(result))
        status = compile_and_load(gpu, whole, 1, kernel, &result);
    mf_free(whole);
    if (status)
        mf_free(kernel);
    else
        *built = kernel;
    return status;
}

static void discard(struct gpu *gpu, struct gpu_kernel *kernel)
{
    if (!kernel)
        return;
    if (!cuda.CtxPushCurrent(gpu->context)) {
        cuda.ModuleUnload(kernel->module);
        leave();
    }
    mf_free(kernel);
}

/* Kernels that wait themselves may come while the one before them ends, so that starting them takes none of the
 * stream's time. Older drivers cannot have that in a graph, older devices not at all. */
static CUresult start(const struct gpu *gpu, const struct gpu_launch *launch, void *stream, void **values)
{
    enum { DRIVER = 12030, ARCHITECTURE = 90 };
    const CUfunction function = launch->kernel->function;
    struct launch_attribute serial = {.id = PROGRAMMATIC_STREAM_SERIALIZATION, .value = 1};
    const struct launch_config config = {{(unsigned)launch->blocks, 1, 1},
                                         {(unsigned)launch->threads, 1, 1},
                                         (unsigned)launch->shared,
                                         stream,
                                         &serial,
                                         1};
    if (launch->follows && cuda.LaunchKernelEx && gpu->driver >= DRIVER &&
        gpu->common.limits.architecture >= ARCHITECTURE)
        return cuda.LaunchKernelEx(&config, function, values, NULL);
    return cuda.LaunchKernel(function, (unsigned)launch->blocks, 1, 1, (unsigned)launch->threads, 1, 1,
                             (unsigned)launch->shared, stream, values, NULL);
}

/* The driver copies the arguments, so nothing here has to outlive the call, and a graph can capture it. */
static mf_status launch(struct gpu *gpu, const struct gpu_launch *launch, void *stream)
{
    const struct gpu_kernel *kernel = launch->kernel;
    void *values[MF_GPU_ARGUMENTS];
    if (launch->argument_count > MF_GPU_ARGUMENTS)
        return mf_fail(MF_ERROR_UNSUPPORTED, "a kernel with %d arguments: the most is %d", launch->argument_count,
                       MF_GPU_ARGUMENTS);
    if (launch->blocks < 0 || launch->blocks > INT_MAX)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%lld blocks in one launch: %s takes %d", (long long)launch->blocks,
                       gpu->common.limits.name, INT_MAX);
    if (launch->threads < 1 || launch->threads > kernel->threads_max)
        return mf_fail(MF_ERROR_UNSUPPORTED, "blocks of %d threads: %s runs this kernel with 1 to %d", launch->threads,
                       gpu->common.limits.name, kernel->threads_max);
    if (!launch->blocks)
        return MF_OK;
    for (int i = 0; i < launch->argument_count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        const void *value = argument->size ? argument->value : &argument->value; /* memory is its pointer */
        memcpy(&values[i], &value, sizeof value);
    }
    const int entered = is_entered(gpu);
    if (!entered)
        MF_TRY(enter(gpu));
    CUresult result = start(gpu, launch, stream, values);
    if (!entered)
        leave();
    return result ? failed(gpu, result, "a kernel's launch") : MF_OK;
}

/* ---- Memory ---- */

static CUdeviceptr pointer_of(const void *memory, int64_t offset)
{
    return (CUdeviceptr)(uintptr_t)memory + (CUdeviceptr)offset;
}

/* Setting memory does not wait for the device, and streams of the user's need not wait for ours. */
static mf_status alloc_zeroed(const struct gpu *gpu, int64_t bytes, CUdeviceptr *memory)
{
    size_t size = bytes > 0 ? (size_t)bytes : 1;
    CUresult result = cuda.MemAlloc(memory, size);
    if (result == OUT_OF_MEMORY)
        return memory_failed(gpu, "memory", bytes);
    if (result)
        return failed(gpu, result, "allocating memory");
    result = cuda.MemsetD8(*memory, 0, size);
    if (!result)
        result = cuda.StreamSynchronize(NULL);
    if (!result)
        return MF_OK;
    cuda.MemFree(*memory);
    return failed(gpu, result, "zeroing memory");
}

static mf_status alloc(struct gpu *gpu, int64_t bytes, void **memory)
{
    CUdeviceptr pointer = 0;
    *memory = NULL;
    MF_TRY(enter(gpu));
    mf_status status = alloc_zeroed(gpu, bytes, &pointer);
    leave();
    if (!status)
        *memory = (void *)(uintptr_t)pointer; /* NOLINT: device pointers travel as void * in DLPack */
    return status;
}

static void release(struct gpu *gpu, void *memory)
{
    if (!memory || cuda.CtxPushCurrent(gpu->context))
        return;
    cuda.MemFree(pointer_of(memory, 0));
    leave();
}

static mf_status copy(struct gpu *gpu, void *memory, int64_t offset, void *host, int64_t bytes, int to_host)
{
    if (bytes <= 0)
        return MF_OK;
    CUdeviceptr pointer = pointer_of(memory, offset);
    MF_TRY(enter(gpu));
    CUresult result =
        to_host ? cuda.MemcpyDtoH(host, pointer, (size_t)bytes) : cuda.MemcpyHtoD(pointer, host, (size_t)bytes);
    if (!result)
        result = cuda.StreamSynchronize(NULL); /* a small copy to the device may return before it is there */
    leave();
    return result ? failed(gpu, result, to_host ? "a copy to the host" : "a copy to the device") : MF_OK;
}

static mf_status wait_for(struct gpu *gpu, void *stream)
{
    MF_TRY(enter(gpu));
    CUresult result = cuda.StreamSynchronize(stream);
    leave();
    return result ? failed(gpu, result, "waiting for a stream") : MF_OK;
}

static mf_status lies_elsewhere(const struct gpu *gpu, const char *what, int number, int device)
{
    char fact[100];
    snprintf(fact, sizeof fact, "lies on CUDA device %d, and the fold is on device %d", device, gpu->device);
    return mf_fail_tensor(what, number, fact);
}

/* Memory that the driver does not know is ordinary memory of the host. */
static mf_status check(struct gpu *gpu, const void *memory, const char *what, int number, uintptr_t *address)
{
    unsigned int type = 0, managed = 0;
    int device = -1;
    CUpointer_attribute attributes[] = {POINTER_MEMORY_TYPE, POINTER_IS_MANAGED, POINTER_DEVICE_ORDINAL};
    void *values[] = {&type, &managed, &device};
    const int entered = is_entered(gpu);
    *address = (uintptr_t)memory;
    if (!entered)
        MF_TRY(enter(gpu));
    CUresult result = cuda.PointerGetAttributes(3, attributes, values, pointer_of(memory, 0));
    if (!entered)
        leave();
    if (is_fault(result))
        return failed(gpu, result, "looking at a pointer");
    if (result || (!type && !managed))
        return mf_fail_tensor(what, number,
                              "points to host memory, which the GPU cannot read; copy it to the device's memory");
    if (type == MEMORY_TYPE_DEVICE && !managed && device != gpu->device)
        return lies_elsewhere(gpu, what, number, device);
    return MF_OK;
}

const struct gpu_api mf_gpu_cuda = {.name = "cuda",
                                    .prelude = mf_text_prelude_cu,
                                    .open = open_device,
                                    .close = close_device,
                                    .build = build,
                                    .discard = discard,
                                    .launch = launch,
                                    .alloc = alloc,
                                    .release = release,
                                    .copy = copy,
                                    .wait = wait_for,
                                    .check = check};
