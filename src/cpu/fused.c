/* Solver "fused": sum(a*b) of f32 or f64 as products of matrices by our own tiles, whatever the strides
 * (strided_gemm.c), where any order of terms and one rounding a term will do: by name, or with MF_ORDER_FREE where
 * solver direct does not apply. Error: docs/numerics.md, section 13. */
#include <stdio.h>

#include "fused_gemm.h"

struct fused_plan {
    struct strided_gemm gemm;
    size_t bytes;
    strided_scratch memory;
};

static int applicable(const struct mf_plan *plan)
{
    struct strided_gemm gemm;
    return mf_strided_gemm_find(&plan->problem, 1, &gemm);
}

/* Where solver direct applies it is as fast on what fits the caches, and needs no panels. */
int mf_fused_pays(const struct mf_plan *plan)
{
    enum { LEAST = 32 };
    const double large = 1 << 28;
    struct strided_gemm g;
    return mf_strided_gemm_find(&plan->problem, 1, &g) && g.m >= LEAST && g.n >= LEAST && g.k >= LEAST &&
           ((double)g.m * (double)g.n * (double)g.k >= large || !mf_solver_direct.applicable(plan));
}

static mf_status make(struct mf_plan *plan)
{
    struct fused_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    atomic_init(&data->memory, NULL);
    mf_strided_gemm_find(&plan->problem, 1, &data->gemm);
    data->gemm.bytes = (data->gemm.bytes + 63) / 64 * 64;
    data->bytes = data->gemm.bytes + mf_fused_memory(plan, data->gemm.type);
    return MF_OK;
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    struct fused_plan *data = plan->data;
    char *memory = mf_strided_scratch_take(&data->memory, data->bytes);
    if (!memory)
        return MF_ERROR_MEMORY;
    struct fused_gemm gemm = {plan, memory + data->gemm.bytes};
    mf_strided_gemm_run(plan, &data->gemm, pointers, memory, mf_fused_multiply, &gemm);
    mf_strided_scratch_keep(&data->memory, memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    mf_strided_gemm_print(&((const struct fused_plan *)plan->data)->gemm, text, size);
}

static void forget(struct mf_plan *plan)
{
    struct fused_plan *data = plan->data;
    if (data)
        mf_free(atomic_load(&data->memory));
}

const struct solver mf_solver_fused = {
    "fused", "sum(a*b) of f32 or f64, in any order with fused multiply-adds", applicable, make, execute, print, forget,
};
