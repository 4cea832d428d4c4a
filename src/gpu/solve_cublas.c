/* Solver "cublas" of a GPU: sum(a*b) of floats as a product of matrices by cuBLAS, where loops and strides are such a
 * product's. Its order of adding is cuBLAS's own, so it runs only when it is asked for by name. "cublas:tf32": of f32
 * only the upper 11 bits count, on tensor cores. */
#include <stdio.h>
#include <string.h>

#include "cublas.h"
#include "form.h"

enum { CUBLAS_BYTES = 8 << 20 }; /* of the device's memory for cuBLAS itself */

static int applicable(const struct mf_plan *plan)
{
    struct gemm gemm;
    return plan->device->api == &mf_gpu_cuda && mf_gemm_find(&plan->problem, &gemm);
}

struct cublas_plan {
    struct cublas *cublas;
    struct gemm gemm;
};

static mf_status run(const struct mf_plan *plan, const void *context, void *workspace, const struct pointers *pointers)
{
    const struct cublas_plan *data = context;
    const int64_t in = mf_dtypes[data->gemm.in].size, out = mf_dtypes[data->gemm.out].size;
    (void)plan;
    (void)workspace;
    const int a = data->gemm.a, b = data->gemm.b;
    return mf_cublas_multiply(data->cublas, &data->gemm, pointers->in[a] + pointers->in_offset[a] * in,
                              pointers->in[b] + pointers->in_offset[b] * in,
                              pointers->out[0] + pointers->out_offset[0] * out, 0, pointers->stream);
}

static void forget(void *context)
{
    struct cublas_plan *data = context;
    mf_cublas_close(data->cublas);
    mf_free(data);
}

static mf_status read_form(struct mf_plan *plan, struct gemm *gemm)
{
    if (!plan->form)
        return MF_OK;
    if (strcmp(plan->form, "tf32") != 0 || gemm->in != DT_f32)
        return mf_fail(MF_ERROR_ARGUMENT, "solver cublas has no form \"%.40s\" for %s; the only one is tf32, for f32",
                       plan->form, mf_dtypes[gemm->in].name);
    gemm->tensor_floats = 1;
    plan->form = NULL;
    return MF_OK;
}

static mf_status make(struct mf_plan *plan)
{
    struct cublas_plan *data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    mf_gemm_find(&plan->problem, &data->gemm);
    mf_status status = read_form(plan, &data->gemm);
    if (status == MF_OK)
        status = mf_cublas_open(plan->device->gpu, CUBLAS_BYTES, &data->cublas);
    if (status != MF_OK) {
        mf_free(data);
        return status;
    }
    const struct gpu_call call = {"one product of matrices by cuBLAS", run, forget, data};
    return mf_gpu_add_call(plan, &call);
}

const struct solver mf_gpu_cublas = {
    "cublas",      "sum(a*b) of floats by cuBLAS, in its own order", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
