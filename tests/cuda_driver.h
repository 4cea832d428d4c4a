/* The few functions of the CUDA driver that programs use which play the user's own code: streams, graphs, events and
 * memory that modefold did not make. cuda_driver_open() is 0 where there is no driver or no device. */
#ifndef MF_TESTS_CUDA_DRIVER_H
#define MF_TESTS_CUDA_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

struct CUmod_st;
struct CUfunc_st;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUevent_st *CUevent;
typedef unsigned long long CUdeviceptr;
enum { CU_STREAM_NON_BLOCKING = 1, CU_CAPTURE_RELAXED = 2, CU_MEM_ATTACH_GLOBAL = 1 };

#define CUDA_DRIVER_FUNCTIONS(X)                                                                                    \
    X(Init, cuInit, (unsigned flags))                                                                               \
    X(DeviceGet, cuDeviceGet, (int *device, int number))                                                            \
    X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (CUcontext * context, int device))                          \
    X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int device))                                          \
    X(CtxPushCurrent, cuCtxPushCurrent_v2, (CUcontext context))                                                     \
    X(CtxPopCurrent, cuCtxPopCurrent_v2, (CUcontext * context))                                                     \
    X(CtxGetCurrent, cuCtxGetCurrent, (CUcontext * context))                                                        \
    X(MemGetInfo, cuMemGetInfo_v2, (size_t * free_bytes, size_t * total))                                           \
    X(MemAlloc, cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes))                                                \
    X(MemAllocManaged, cuMemAllocManaged, (CUdeviceptr * memory, size_t bytes, unsigned flags))                     \
    X(MemFree, cuMemFree_v2, (CUdeviceptr memory))                                                                  \
    X(MemHostAlloc, cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                                  \
    X(MemFreeHost, cuMemFreeHost, (void *memory))                                                                   \
    X(MemcpyHtoD, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t bytes))                                \
    X(MemcpyDtoH, cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t bytes))                                      \
    X(StreamCreate, cuStreamCreate, (CUstream * stream, unsigned flags))                                            \
    X(StreamDestroy, cuStreamDestroy_v2, (CUstream stream))                                                         \
    X(StreamSynchronize, cuStreamSynchronize, (CUstream stream))                                                    \
    X(StreamBeginCapture, cuStreamBeginCapture_v2, (CUstream stream, int mode))                                     \
    X(StreamEndCapture, cuStreamEndCapture, (CUstream stream, CUgraph * graph))                                     \
    X(GraphInstantiate, cuGraphInstantiateWithFlags, (CUgraphExec * executable, CUgraph graph, unsigned long long)) \
    X(GraphLaunch, cuGraphLaunch, (CUgraphExec executable, CUstream stream))                                        \
    X(GraphExecDestroy, cuGraphExecDestroy, (CUgraphExec executable))                                               \
    X(GraphDestroy, cuGraphDestroy, (CUgraph graph))                                                                \
    X(EventCreate, cuEventCreate, (CUevent * event, unsigned flags))                                                \
    X(EventRecord, cuEventRecord, (CUevent event, CUstream stream))                                                 \
    X(EventSynchronize, cuEventSynchronize, (CUevent event))                                                        \
    X(EventElapsedTime, cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                      \
    X(EventDestroy, cuEventDestroy_v2, (CUevent event))                                                             \
    X(ModuleLoadData, cuModuleLoadData, (struct CUmod_st * *module, const void *image))                             \
    X(ModuleGetFunction, cuModuleGetFunction,                                                                       \
      (struct CUfunc_st * *function, struct CUmod_st * module, const char *name))                                   \
    X(LaunchKernel, cuLaunchKernel,                                                                                 \
      (struct CUfunc_st * function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,            \
       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments, void **extra))

static struct {
#define X(name, symbol, arguments) int(*name) arguments;
    CUDA_DRIVER_FUNCTIONS(X)
#undef X
} cu;

/* Opens the driver, and makes the primary context of device 0 the thread's. */
__attribute__((unused)) static int cuda_driver_open(void)
{
    static const char *const symbols[] = {
#define X(name, symbol, arguments) #symbol,
        CUDA_DRIVER_FUNCTIONS(X)
#undef X
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof symbols / sizeof symbols[0]; i++) {
        void *address = dlsym(library, symbols[i]);
        if (!address)
            return 0;
        memcpy((char *)&cu + i * sizeof address, &address, sizeof address);
    }
    int device;
    CUcontext context;
    return library && !cu.Init(0) && !cu.DeviceGet(&device, 0) && !cu.DevicePrimaryCtxRetain(&context, device) &&
           !cu.CtxPushCurrent(context);
}

/* What the stream is given between these two becomes a graph that can be launched. */
__attribute__((unused)) static int cuda_capture_begin(CUstream stream)
{
    return !cu.StreamBeginCapture(stream, CU_CAPTURE_RELAXED);
}

__attribute__((unused)) static int cuda_capture_end(CUstream stream, CUgraphExec *executable)
{
    CUgraph graph = NULL;
    *executable = NULL;
    int done = !cu.StreamEndCapture(stream, &graph) && graph && !cu.GraphInstantiate(executable, graph, 0);
    if (graph)
        cu.GraphDestroy(graph);
    return done;
}

#endif
