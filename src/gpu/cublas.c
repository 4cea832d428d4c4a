/* Products of matrices by NVIDIA's cuBLAS: libcublas.so, opened at run time where the loader finds it. */
#include "cublas.h"

#include <pthread.h>
#include <stdio.h>

#include "runtime.h"

typedef struct cublasContext *cublasHandle_t;

enum { OPERATION_N = 0, OPERATION_T = 1, DEFAULT_ALGORITHM = -1 };
enum { COMPUTE_32F = 68, COMPUTE_32F_FAST_TF32 = 77, COMPUTE_64F = 70 };

static struct {
#define FUNCTION(name, symbol, arguments) int(*name) arguments;
#include "cublas.def"
#undef FUNCTION
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[256]; /* there is no cuBLAS; "" when there is one */

static void load(void)
{
    static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", NULL};
    static const char *const symbols[] = {
#define FUNCTION(name, symbol, arguments) #symbol,
#include "cublas.def"
#undef FUNCTION
        NULL};
    mf_library_load("cuBLAS, libcublas.so.13 or libcublas.so.12,", files, symbols, &library, why, sizeof why);
}

struct cublas {
    struct gpu *gpu;
    cublasHandle_t handle;
    void *workspace; /* so that it allocates nothing when a stream is captured */
    int64_t bytes;
    pthread_mutex_t lock; /* the handle's stream is state */
};

static mf_status failed(int result, const char *what)
{
    return mf_fail(MF_ERROR_DEVICE, "cuBLAS failed with status %d in %s", result, what);
}

static mf_status make_handle(struct cublas *cublas)
{
    MF_TRY(mf_cuda_enter(cublas->gpu));
    int result = library.Create(&cublas->handle);
    if (!result)
        result = library.SetWorkspace(cublas->handle, cublas->workspace, (size_t)cublas->bytes);
    mf_cuda_leave();
    return result ? failed(result, "making a handle") : MF_OK;
}

mf_status mf_cublas_open(struct gpu *gpu, int64_t bytes, struct cublas **opened)
{
    const struct gpu_api *api = ((const struct gpu_common *)gpu)->api;
    *opened = NULL;
    if (api != &mf_gpu_cuda)
        return mf_fail(MF_ERROR_DEVICE, "cuBLAS is for CUDA's devices, not for %s", api->name);
    pthread_once(&once, load);
    if (*why)
        return mf_fail(MF_ERROR_DEVICE, "%s", why);
    struct cublas *cublas = mf_calloc(sizeof *cublas);
    if (!cublas)
        return MF_ERROR_MEMORY;
    cublas->gpu = gpu;
    cublas->bytes = bytes;
    pthread_mutex_init(&cublas->lock, NULL);
    mf_status status = api->alloc(gpu, bytes, &cublas->workspace);
    if (!status)
        status = make_handle(cublas);
    if (status)
        mf_cublas_close(cublas);
    else
        *opened = cublas;
    return status;
}

void mf_cublas_close(struct cublas *cublas)
{
    if (!cublas)
        return;
    if (cublas->handle && mf_cuda_enter(cublas->gpu) == MF_OK) {
        library.Destroy(cublas->handle);
        mf_cuda_leave();
    }
    mf_gpu_cuda.release(cublas->gpu, cublas->workspace);
    pthread_mutex_destroy(&cublas->lock);
    mf_free(cublas);
}

/* cudaDataType_t */
static int data_type(enum dtype type)
{
    return type == DT_f64 ? 1 : type == DT_f16 ? 2 : type == DT_bf16 ? 14 : 0;
}

mf_status mf_cublas_multiply(struct cublas *cublas, const struct gemm *gemm, const void *a, const void *b, void *c,
                             int add, void *stream)
{
    const double scale[2] = {0, 1};
    const float narrow_scale[2] = {0, 1};
    const int wide = gemm->in == DT_f64;
    const void *alpha = wide ? (const void *)&scale[1] : &narrow_scale[1];
    const void *beta = wide ? (const void *)&scale[add != 0] : &narrow_scale[add != 0];
    MF_TRY(mf_cuda_enter(cublas->gpu));
    pthread_mutex_lock(&cublas->lock);
    int result = library.SetStream(cublas->handle, stream);
    if (!result) /* setting the stream takes the workspace away */
        result = library.SetWorkspace(cublas->handle, cublas->workspace, (size_t)cublas->bytes);
    if (!result)
        result = library.GemmStridedBatchedEx(
            cublas->handle, gemm->a_transposed ? OPERATION_T : OPERATION_N,
            gemm->b_transposed ? OPERATION_T : OPERATION_N, (int)gemm->m, (int)gemm->n, (int)gemm->k, alpha, a,
            data_type(gemm->in), (int)gemm->a_pitch, gemm->a_step, b, data_type(gemm->in), (int)gemm->b_pitch,
            gemm->b_step, beta, c, data_type(gemm->out), (int)gemm->c_pitch, gemm->c_step, (int)gemm->batch,
            wide                  ? COMPUTE_64F
            : gemm->tensor_floats ? COMPUTE_32F_FAST_TF32
                                  : COMPUTE_32F,
            DEFAULT_ALGORITHM);
    pthread_mutex_unlock(&cublas->lock);
    mf_cuda_leave();
    return result ? failed(result, "a product of matrices") : MF_OK;
}
