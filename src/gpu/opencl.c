/* OpenCL 1.2 by libOpenCL.so.1, opened at run time.
 *
 * A device has a context and an in-order queue of its own. Memory is a cl_mem of that context, and a stream is one of
 * its command queues; a program that has neither finds the context with clGetMemObjectInfo(CL_MEM_CONTEXT) of memory
 * that the library gave it. */
#include "gpu.h"
#include "runtime.h"
#include "texts.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The types and numbers of CL/cl.h, which is not needed to build. */
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef intptr_t cl_context_properties;
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;
#define CL_CALLBACK

enum { DEVICE_TYPE_GPU = 1 << 2 };
#define DEVICE_TYPE_ALL ((cl_ulong)0xffffffff)
enum { FP_DENORM = 1 << 0, FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7 };
enum { /* what clGet...Info is asked */
       PLATFORM_VERSION = 0x0901,
       PLATFORM_EXTENSIONS = 0x0904,
       DEVICE_TYPE = 0x1000,
       DEVICE_MAX_COMPUTE_UNITS = 0x1002,
       DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
       DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
       DEVICE_MAX_PARAMETER_SIZE = 0x1017,
       DEVICE_SINGLE_FP_CONFIG = 0x101b,
       DEVICE_GLOBAL_MEM_SIZE = 0x101f,
       DEVICE_LOCAL_MEM_SIZE = 0x1023,
       DEVICE_COMPILER_AVAILABLE = 0x1028,
       DEVICE_NAME = 0x102b,
       DRIVER_VERSION = 0x102d,
       DEVICE_VERSION = 0x102f,
       DEVICE_EXTENSIONS = 0x1030,
       DEVICE_DOUBLE_FP_CONFIG = 0x1032,
       CONTEXT_PLATFORM = 0x1084,
       MEM_CONTEXT = 0x1106,
       MEM_ASSOCIATED_MEMOBJECT = 0x1107,
       MEM_OFFSET = 0x1108,
       DEVICE_SUB_GROUP_SIZES = 0x4108, /* of cl_intel_required_subgroup_size */
       PROGRAM_BINARY_SIZES = 0x1165,
       PROGRAM_BINARIES = 0x1166,
       PROGRAM_BUILD_LOG = 0x1183,
       KERNEL_WORK_GROUP_SIZE = 0x11b0
};
enum { MEM_READ_WRITE = 1 << 0, MAX_PLATFORMS = 32, MAX_DEVICES = 64, PARAMETERS_KEPT = 64 };

enum {
#define RESULT(name, number) name = number,
#include "opencl_results.def"
#undef RESULT
};

struct gpu {
    struct gpu_common common;
    char options[256]; /* of the compiler */
    cl_platform_id platform;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue;
    int dispatched; /* its objects begin with a pointer that all of them share */
    char key[1280]; /* everything that a compiled kernel depends on but its text */
};

struct gpu_kernel {
    struct gpu_usage usage; /* first */
    cl_program program;
    cl_kernel kernel;
    size_t threads_max;
    pthread_mutex_t lock; /* a kernel keeps its arguments from one call to the next */
};

static struct {
#define FUNCTION(result, name, arguments) result(*name) arguments;
#include "opencl.def"
#undef FUNCTION
} cl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[256]; /* there is no OpenCL; "" when there is */

static void load(void)
{
    static const char *const files[] = {"libOpenCL.so.1", NULL};
    static const char *const symbols[] = {
#define FUNCTION(result, name, arguments) "cl" #name,
#include "opencl.def"
#undef FUNCTION
        NULL};
    mf_library_load("OpenCL, libOpenCL.so.1,", files, symbols, &cl, why, sizeof why);
}

/* ---- What went wrong ---- */

static void say_result(cl_int result, char *text, size_t size)
{
    static const struct {
        cl_int result;
        const char *name;
    } names[] = {
#define RESULT(name, number) {number, "CL_" #name},
#include "opencl_results.def"
#undef RESULT
    };
    snprintf(text, size, "OpenCL error %d", result);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].result == result)
            snprintf(text, size, "%s", names[i].name);
}

static mf_status failed(const struct gpu *gpu, cl_int result, const char *what)
{
    char text[64];
    say_result(result, text, sizeof text);
    return mf_fail(MF_ERROR_DEVICE, "%s failed on %s: %s", what, gpu->common.limits.name, text);
}

/* ---- Opening ---- */

/* Facts of a device; zero and "" where it does not know them. */
static cl_ulong device_number(cl_device_id device, cl_uint what, size_t size)
{
    cl_ulong value = 0; /* the smaller types are its beginning: OpenCL's hosts that we know are little-endian */
    return cl.GetDeviceInfo(device, what, size, &value, NULL) ? 0 : value;
}

static void device_text(cl_device_id device, cl_uint what, char *text, size_t size)
{
    char whole[1024] = "";
    if (cl.GetDeviceInfo(device, what, sizeof whole - 1, whole, NULL))
        *whole = 0;
    size_t blanks = strspn(whole, " ");
    snprintf(text, size, "%s", whole + blanks);
    for (size_t n = strlen(text); n && text[n - 1] == ' '; n--)
        text[n - 1] = 0;
}

/* Goes through the devices of all platforms, those that are GPUs or those that are not, to number *left (counted
 * down). */
static int find_among(int gpus, int *left, struct gpu *gpu)
{
    cl_platform_id platforms[MAX_PLATFORMS];
    cl_uint platform_count = 0;
    if (cl.GetPlatformIDs(MAX_PLATFORMS, platforms, &platform_count))
        return 0;
    for (cl_uint p = 0; p < platform_count && p < MAX_PLATFORMS; p++) {
        cl_device_id devices[MAX_DEVICES];
        cl_uint device_count = 0;
        if (cl.GetDeviceIDs(platforms[p], DEVICE_TYPE_ALL, MAX_DEVICES, devices, &device_count))
            continue;
        for (cl_uint d = 0; d < device_count && d < MAX_DEVICES; d++) {
            int is_gpu = (device_number(devices[d], DEVICE_TYPE, sizeof(cl_ulong)) & DEVICE_TYPE_GPU) != 0;
            if (is_gpu != gpus || (*left)--)
                continue;
            gpu->platform = platforms[p];
            gpu->device = devices[d];
            return 1;
        }
    }
    return 0;
}

static mf_status find_device(int number, struct gpu *gpu)
{
    int left = number;
    pthread_once(&once, load);
    if (*why)
        return mf_fail(MF_ERROR_DEVICE, "%s", why);
    if (number >= 0 && (find_among(1, &left, gpu) || find_among(0, &left, gpu)))
        return MF_OK;
    if (number < 0)
        return mf_fail(MF_ERROR_DEVICE, "there is no OpenCL device %d: they are numbered from 0", number);
    return mf_fail(MF_ERROR_DEVICE, "there is no OpenCL device %d: OpenCL sees %d%s", number, number - left,
                   number > left ? ", numbered from 0" : "");
}

/* Whether results can have the contract's bits. */
static mf_status need_arithmetic(const struct gpu *gpu)
{
    const char *name = gpu->common.limits.name;
    char version[128];
    int major = 0, minor = 0;
    device_text(gpu->device, DEVICE_VERSION, version, sizeof version);
    if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2 || major * 10 + minor < 12)
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s has \"%s\", and 1.2 is the oldest", name, version);
    if (!device_number(gpu->device, DEVICE_COMPILER_AVAILABLE, sizeof(cl_uint)))
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s has no OpenCL compiler", name);
    cl_ulong config = device_number(gpu->device, DEVICE_SINGLE_FP_CONFIG, sizeof(cl_ulong));
    if (!(config & FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) && !gpu->common.limits.has_f64)
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "%s neither rounds f32 quotients and square roots correctly nor has f64 to compute them in",
                       name);
    const char *pocl = strstr(gpu->key, "PoCL ");
    if (pocl && atoi(pocl + 5) >= 5)
        return mf_fail(MF_ERROR_DEVICE, "the OpenCL of %s is %.8s, whose nested loops with barriers lose threads", name,
                       pocl);
    if (!(config & FP_DENORM))
        return mf_fail(MF_ERROR_UNSUPPORTED, "%s takes f32 numbers below 2^-126 for 0", name);
    return MF_OK;
}

/* Whether kernels can have sub-groups of a warp, with shuffles, in which threads lie as they are numbered. Sizes that a
 * kernel cannot ask for are left alone: a wider sub-group's order of threads is the driver's own business. */
static int has_sub_groups(const struct gpu *gpu)
{
    enum { MOST_SIZES = 16 };
    size_t sizes[MOST_SIZES] = {0}, bytes = 0;
    char version[128], extensions[8192] = "";
    int major = 0;
    device_text(gpu->device, DEVICE_VERSION, version, sizeof version);
    if (sscanf(version, "OpenCL %d.", &major) != 1 || major < 3 ||
        cl.GetDeviceInfo(gpu->device, DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, NULL) ||
        !strstr(extensions, "cl_khr_subgroup_shuffle") || !strstr(extensions, "cl_intel_required_subgroup_size") ||
        cl.GetDeviceInfo(gpu->device, DEVICE_SUB_GROUP_SIZES, sizeof sizes, sizes, &bytes))
        return 0;
    for (size_t i = 0; i < MOST_SIZES && i < bytes / sizeof sizes[0]; i++)
        if (sizes[i] == 32)
            return 1;
    return 0;
}

/* The options of the compiler; -w because some drivers print warnings on the standard error, and a library does not.
 * MODEFOLD_OPENCL_OPTIONS replaces PoCL's: its optimiser (3.1) makes NaNs of what kernels/contract.cl folds. */
static void choose_options(struct gpu *gpu, const char *platform)
{
    const int is_pocl = strstr(platform, "PoCL") || strstr(platform, "pocl");
    const char *given = getenv("MODEFOLD_OPENCL_OPTIONS"), *more = given ? given : is_pocl ? "-cl-opt-disable" : "";
    int rounds =
        (device_number(gpu->device, DEVICE_SINGLE_FP_CONFIG, sizeof(cl_ulong)) & FP_CORRECTLY_ROUNDED_DIVIDE_SQRT) != 0;
    snprintf(gpu->options, sizeof gpu->options, "-w %s %s %.120s",
             has_sub_groups(gpu) ? "-cl-std=CL3.0 -DSUB_GROUPS=1" : "-cl-std=CL1.2",
             rounds ? "-cl-fp32-correctly-rounded-divide-sqrt" : "-DQUOTIENTS_BY_F64=1", more);
}

static void find_limits(struct gpu *gpu)
{
    struct gpu_limits *limits = &gpu->common.limits;
    char driver[128], version[128], platform[512] = "";
    device_text(gpu->device, DEVICE_NAME, limits->name, sizeof limits->name);
    device_text(gpu->device, DRIVER_VERSION, driver, sizeof driver);
    device_text(gpu->device, DEVICE_VERSION, version, sizeof version);
    if (cl.GetPlatformInfo(gpu->platform, PLATFORM_VERSION, sizeof platform - 1, platform, NULL))
        *platform = 0;
    choose_options(gpu, platform);
    snprintf(gpu->key, sizeof gpu->key, "%s | %s | %s | %s | %s", platform, version, driver, limits->name,
             gpu->options);
    snprintf(limits->compiler, sizeof limits->compiler, "%.60s, driver %.40s", version, driver);
    limits->multiprocessors = (int)device_number(gpu->device, DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));
    /* OpenCL does not tell how many groups are resident; one of the largest size is */
    limits->threads = (int)device_number(gpu->device, DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
    limits->dlpack = 4;
    limits->has_f64 = device_number(gpu->device, DEVICE_DOUBLE_FP_CONFIG, sizeof(cl_ulong)) != 0;
    limits->shared = limits->shared_most = (int64_t)device_number(gpu->device, DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
    limits->parameters =
        (int64_t)device_number(gpu->device, DEVICE_MAX_PARAMETER_SIZE, sizeof(size_t)) - PARAMETERS_KEPT;
}

static mf_status make_context(struct gpu *gpu)
{
    const cl_context_properties properties[] = {CONTEXT_PLATFORM, (cl_context_properties)gpu->platform, 0};
    char extensions[4096] = "";
    cl_int result = 0;
    gpu->context = cl.CreateContext(properties, 1, &gpu->device, NULL, NULL, &result);
    if (!gpu->context)
        return failed(gpu, result, "making an OpenCL context");
    gpu->queue = cl.CreateCommandQueue(gpu->context, gpu->device, 0, &result);
    if (!gpu->queue)
        return failed(gpu, result, "making a command queue");
    if (!cl.GetPlatformInfo(gpu->platform, PLATFORM_EXTENSIONS, sizeof extensions - 1, extensions, NULL))
        gpu->dispatched = strstr(extensions, "cl_khr_icd") != NULL;
    return MF_OK;
}

static void close_device(struct gpu *gpu)
{
    if (!gpu)
        return;
    if (gpu->queue)
        cl.ReleaseCommandQueue(gpu->queue);
    if (gpu->context)
        cl.ReleaseContext(gpu->context);
    mf_free(gpu);
}

static mf_status open_device(int number, struct gpu **opened)
{
    *opened = NULL;
    struct gpu *gpu = mf_calloc(sizeof *gpu);
    if (!gpu)
        return MF_ERROR_MEMORY;
    gpu->common.api = &mf_gpu_opencl;
    mf_status status = find_device(number, gpu);
    if (!status) {
        find_limits(gpu);
        status = need_arithmetic(gpu);
    }
    if (!status)
        status = make_context(gpu);
    if (status)
        close_device(gpu);
    else
        *opened = gpu;
    return status;
}

/* ---- Kernels ---- */

/* The program of these bytes from the cache, built; null when they are not good for this device any more. */
static cl_program program_of_binary(const struct gpu *gpu, const char *binary, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)binary;
    cl_int status = 0, result = 0;
    cl_program program = cl.CreateProgramWithBinary(gpu->context, 1, &gpu->device, &size, &bytes, &status, &result);
    if (!program || (!status && !result && !cl.BuildProgram(program, 1, &gpu->device, gpu->options, NULL, NULL)))
        return program;
    cl.ReleaseProgram(program);
    return NULL;
}

static mf_status compile_failed(const struct gpu *gpu, cl_int result, cl_program program)
{
    char line[320];
    size_t size = 0;
    if (result == OUT_OF_HOST_MEMORY ||
        cl.GetProgramBuildInfo(program, gpu->device, PROGRAM_BUILD_LOG, 0, NULL, &size) || size < 2)
        return failed(gpu, result, "compiling a kernel");
    char *log = mf_calloc(size + 1);
    if (!log)
        return MF_ERROR_MEMORY;
    cl.GetProgramBuildInfo(program, gpu->device, PROGRAM_BUILD_LOG, size, log, NULL);
    mf_log_error(log, line, sizeof line);
    mf_free(log);
    return mf_fail(MF_ERROR_DEVICE, "the OpenCL compiler of %.80s: %s", gpu->common.limits.name, line);
}

static mf_status compile(const struct gpu *gpu, const char *whole, cl_program *compiled)
{
    cl_int result = 0;
    cl_program program = cl.CreateProgramWithSource(gpu->context, 1, &whole, NULL, &result);
    if (!program)
        return failed(gpu, result, "compiling a kernel");
    result = cl.BuildProgram(program, 1, &gpu->device, gpu->options, NULL, NULL);
    if (!result) {
        *compiled = program;
        return MF_OK;
    }
    mf_status status = compile_failed(gpu, result, program);
    cl.ReleaseProgram(program);
    return status;
}

static void keep_binary(const struct gpu *gpu, const char *whole, cl_program program)
{
    size_t size = 0;
    if (!mf_cache_is_on() || cl.GetProgramInfo(program, PROGRAM_BINARY_SIZES, sizeof size, &size, NULL) || !size)
        return;
    char *binary = mf_alloc(size);
    if (binary && !cl.GetProgramInfo(program, PROGRAM_BINARIES, sizeof binary, &binary, NULL))
        mf_cache_keep(gpu->key, whole, binary, size);
    mf_free(binary);
}

/* Makes the function of a built program, which goes with it. */
static cl_int make_kernel(const struct gpu *gpu, cl_program program, struct gpu_kernel *kernel)
{
    cl_int result = 0;
    kernel->program = program;
    kernel->kernel = cl.CreateKernel(program, "modefold", &result);
    if (kernel->kernel)
        result = cl.GetKernelWorkGroupInfo(kernel->kernel, gpu->device, KERNEL_WORK_GROUP_SIZE,
                                           sizeof kernel->threads_max, &kernel->threads_max, NULL);
    if (!result)
        return 0;
    if (kernel->kernel)
        cl.ReleaseKernel(kernel->kernel);
    cl.ReleaseProgram(program);
    return result;
}

/* Whether the cache had this kernel. */
static int take_cached(const struct gpu *gpu, const char *whole, struct gpu_kernel *kernel)
{
    char *binary;
    size_t size;
    if (!mf_cache_find(gpu->key, whole, &binary, &size))
        return 0;
    cl_program program = program_of_binary(gpu, binary, size);
    mf_free(binary);
    return program && !make_kernel(gpu, program, kernel);
}

static mf_status compile_kernel(const struct gpu *gpu, const char *whole, struct gpu_kernel *kernel)
{
    cl_program program = NULL;
    MF_TRY(compile(gpu, whole, &program));
    keep_binary(gpu, whole, program);
    cl_int result = make_kernel(gpu, program, kernel);
    return result ? failed(gpu, result, "making a kernel") : MF_OK;
}

static mf_status build(struct gpu *gpu, const char *text, struct gpu_kernel **built)
{
    *built = NULL;
    struct gpu_kernel *kernel = mf_calloc(sizeof *kernel);
    char *whole = kernel ? mf_text_join(mf_text_prelude_cl, text) : NULL;
    mf_status status = whole ? MF_OK : MF_ERROR_MEMORY;
    if (!status && !take_cached(gpu, whole, kernel))
        status = compile_kernel(gpu, whole, kernel);
    mf_free(whole);
    if (status) {
        mf_free(kernel);
        return status;
    }
    pthread_mutex_init(&kernel->lock, NULL);
    *built = kernel;
    return MF_OK;
}

static void discard(struct gpu *gpu, struct gpu_kernel *kernel)
{
    (void)gpu;
    if (!kernel)
        return;
    cl.ReleaseKernel(kernel->kernel);
    cl.ReleaseProgram(kernel->program);
    pthread_mutex_destroy(&kernel->lock);
    mf_free(kernel);
}

/* With the kernel locked. */
static mf_status set_and_enqueue(const struct gpu *gpu, const struct gpu_launch *launch, cl_command_queue queue)
{
    size_t local = (size_t)launch->threads, global = (size_t)launch->blocks * local;
    cl_kernel kernel = launch->kernel->kernel;
    for (int i = 0; i < launch->argument_count; i++) {
        const struct gpu_argument *argument = &launch->arguments[i];
        cl_int result = argument->size ? cl.SetKernelArg(kernel, (cl_uint)i, argument->size, argument->value)
                                       : cl.SetKernelArg(kernel, (cl_uint)i, sizeof(cl_mem), &argument->value);
        if (result) {
            char what[64];
            snprintf(what, sizeof what, "argument %d of a kernel", i);
            return failed(gpu, result, what);
        }
    }
    cl_int result = cl.EnqueueNDRangeKernel(queue, kernel, 1, NULL, &global, &local, 0, NULL, NULL);
    if (!result)
        result = cl.Flush(queue); /* begin, even if nobody waits for long */
    return result ? failed(gpu, result, "a kernel's launch") : MF_OK;
}

static mf_status launch(struct gpu *gpu, const struct gpu_launch *launch, void *stream)
{
    struct gpu_kernel *kernel = (struct gpu_kernel *)launch->kernel; /* only its lock and its arguments change */
    int64_t threads;
    if (launch->threads < 1 || (size_t)launch->threads > kernel->threads_max)
        return mf_fail(MF_ERROR_UNSUPPORTED, "groups of %d threads: %s runs this kernel with 1 to %zu", launch->threads,
                       gpu->common.limits.name, kernel->threads_max);
    if (launch->blocks < 0 || !mf_mul(launch->blocks, launch->threads, &threads))
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "%lld groups of %d threads in one launch: the threads do not fit in 63 bits",
                       (long long)launch->blocks, launch->threads);
    if (!launch->blocks)
        return MF_OK;
    pthread_mutex_lock(&kernel->lock);
    mf_status status = set_and_enqueue(gpu, launch, stream ? stream : gpu->queue);
    pthread_mutex_unlock(&kernel->lock);
    return status;
}

/* ---- Memory ---- */

static mf_status memory_failed(const struct gpu *gpu, cl_int result, int64_t bytes)
{
    if (result != MEM_OBJECT_ALLOCATION_FAILURE && result != OUT_OF_RESOURCES && result != OUT_OF_HOST_MEMORY &&
        result != INVALID_BUFFER_SIZE)
        return failed(gpu, result, "allocating memory");
    cl_ulong all = device_number(gpu->device, DEVICE_GLOBAL_MEM_SIZE, sizeof(cl_ulong)),
             most = device_number(gpu->device, DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
    return mf_fail(MF_ERROR_MEMORY, "%s has no room for %lld bytes: it has %llu, and %llu at most in one buffer",
                   gpu->common.limits.name, (long long)bytes, (unsigned long long)all, (unsigned long long)most);
}

static mf_status alloc(struct gpu *gpu, int64_t bytes, void **memory)
{
    static const char zeros[16]; /* wide stores where the driver does what it is told */
    size_t size = ((bytes > 0 ? (size_t)bytes : 1) + sizeof zeros - 1) / sizeof zeros * sizeof zeros;
    cl_int result = 0;
    *memory = NULL;
    cl_mem buffer = cl.CreateBuffer(gpu->context, MEM_READ_WRITE, size, NULL, &result);
    if (!buffer)
        return memory_failed(gpu, result, bytes);
    result = cl.EnqueueFillBuffer(gpu->queue, buffer, zeros, sizeof zeros, 0, size, 0, NULL, NULL);
    if (!result)
        result = cl.Finish(gpu->queue);
    if (!result) {
        *memory = buffer;
        return MF_OK;
    }
    cl.ReleaseMemObject(buffer); /* drivers find the memory at its first use only */
    return memory_failed(gpu, result, bytes);
}

static void release(struct gpu *gpu, void *memory)
{
    (void)gpu;
    if (memory)
        cl.ReleaseMemObject(memory);
}

static mf_status copy(struct gpu *gpu, void *memory, int64_t offset, void *host, int64_t bytes, int to_host)
{
    if (bytes <= 0)
        return MF_OK;
    cl_int result =
        to_host ? cl.EnqueueReadBuffer(gpu->queue, memory, 1, (size_t)offset, (size_t)bytes, host, 0, NULL, NULL)
                : cl.EnqueueWriteBuffer(gpu->queue, memory, 1, (size_t)offset, (size_t)bytes, host, 0, NULL, NULL);
    return result ? failed(gpu, result, to_host ? "a copy to the host" : "a copy to the device") : MF_OK;
}

static mf_status wait_for(struct gpu *gpu, void *stream)
{
    cl_int result = cl.Finish(stream ? stream : gpu->queue);
    return result ? failed(gpu, result, "waiting for a command queue") : MF_OK;
}

/* Buffers have no addresses that a host can know. So each gets a room of 2^48 bytes: those that this thread has seen
 * last have a number, and the one seen longest ago gives its number to a new one. A call has 32 tensors at most, so
 * the numbers of those that it has looked at do not change before it ends. */
static uintptr_t artificial_address(cl_mem buffer)
{
    enum { SEEN = 64 };
    static _Thread_local struct {
        cl_mem buffer;
        uint64_t time;
    } seen[SEEN];
    static _Thread_local uint64_t now;
    int oldest = 0, number = -1;
    for (int i = 0; i < SEEN && number < 0; i++) {
        if (seen[i].buffer == buffer)
            number = i;
        if (seen[i].time < seen[oldest].time)
            oldest = i;
    }
    if (number < 0)
        number = oldest;
    seen[number].buffer = buffer;
    seen[number].time = ++now;
    return (uintptr_t)((uint64_t)(number + 1) << 48);
}

/* Whether the pointer can be asked: OpenCL follows any pointer that it is given. Objects of one driver begin with a
 * pointer to the same table (cl_khr_icd), and other memory that begins with it is hard to imagine. */
static int looks_like_object(const struct gpu *gpu, const void *memory)
{
    const void *of_memory, *of_context;
    if (!memory || (uintptr_t)memory % sizeof(void *))
        return 0;
    if (!gpu->dispatched)
        return 1;
    memcpy(&of_memory, memory, sizeof of_memory);
    memcpy(&of_context, gpu->context, sizeof of_context);
    return of_memory == of_context;
}

/* A buffer within a buffer lies in the other's room. */
static mf_status check(struct gpu *gpu, const void *memory, const char *what, int number, uintptr_t *address)
{
    cl_mem buffer = (cl_mem)memory, whole = NULL;
    cl_context context = NULL;
    size_t offset = 0;
    if (!looks_like_object(gpu, memory) || cl.GetMemObjectInfo(buffer, MEM_CONTEXT, sizeof context, &context, NULL))
        return mf_fail_tensor(what, number, "is not an OpenCL buffer of the device's driver; copy it to the device");
    if (context != gpu->context)
        return mf_fail_tensor(what, number, "is an OpenCL buffer of another context than the device's");
    if (cl.GetMemObjectInfo(buffer, MEM_ASSOCIATED_MEMOBJECT, sizeof whole, &whole, NULL) || !whole ||
        cl.GetMemObjectInfo(buffer, MEM_OFFSET, sizeof offset, &offset, NULL)) {
        whole = buffer;
        offset = 0;
    }
    *address = artificial_address(whole) + offset;
    return MF_OK;
}

const struct gpu_api mf_gpu_opencl = {
    "opencl", mf_text_prelude_cl, open_device, close_device, build, discard, launch, alloc, release,
    copy,     wait_for,           check};
