/* Solver "openblas": sum(a*b) of f32 or f64 as products of matrices by OpenBLAS, opened at run time, whatever the
 * strides (strided_gemm.c). Its order of adding is OpenBLAS's own, so it runs only when it is asked for by name.
 *
 * How many threads OpenBLAS uses is one number for the whole process, and its blocks depend on it: executions that
 * want the same number run side by side, others wait. */
#include <pthread.h>

#include "../gpu/runtime.h"
#include "strided_gemm.h"

enum { BY_COLUMNS = 102, AS_IT_IS = 111, TRANSPOSED = 112 }; /* cblas.h */

static struct {
    void (*sgemm)(int order, int a_form, int b_form, int m, int n, int k, float alpha, const float *a, int a_pitch,
                  const float *b, int b_pitch, float beta, float *c, int c_pitch);
    void (*dgemm)(int order, int a_form, int b_form, int m, int n, int k, double alpha, const double *a, int a_pitch,
                  const double *b, int b_pitch, double beta, double *c, int c_pitch);
    void (*set_threads)(int threads);
} library;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[256]; /* there is no OpenBLAS; "" when there is one */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static int set_threads; /* under the lock; 0: not yet */

static void load(void)
{
    static const char *const files[] = {"libopenblas.so.0", NULL};
    static const char *const symbols[] = {"cblas_sgemm", "cblas_dgemm", "openblas_set_num_threads", NULL};
    mf_library_load("OpenBLAS, libopenblas.so.0,", files, symbols, &library, why, sizeof why);
}

struct openblas_plan {
    struct strided_gemm gemm;
    strided_scratch memory;
};

static int applicable(const struct mf_plan *plan)
{
    struct strided_gemm gemm;
    return mf_strided_gemm_find(&plan->problem, 0, &gemm);
}

static mf_status make(struct mf_plan *plan)
{
    pthread_once(&once, load);
    if (*why)
        return mf_fail(MF_ERROR_DEVICE, "%s", why);
    struct openblas_plan *data = plan->data = mf_calloc(sizeof *data);
    if (!data)
        return MF_ERROR_MEMORY;
    atomic_init(&data->memory, NULL);
    mf_strided_gemm_find(&plan->problem, 0, &data->gemm);
    return MF_OK;
}

/* Leaves the lock held by those who want this number of threads. */
static void enter(int threads)
{
    for (;;) {
        pthread_rwlock_rdlock(&lock);
        if (set_threads == threads)
            return;
        pthread_rwlock_unlock(&lock);
        pthread_rwlock_wrlock(&lock);
        set_threads = threads;
        library.set_threads(threads);
        pthread_rwlock_unlock(&lock);
    }
}

static void multiply(void *context, enum dtype type, const struct strided_block *x)
{
    (void)context;
    const int a_form = x->transposed[STRIDED_A] ? TRANSPOSED : AS_IT_IS;
    const int b_form = x->transposed[STRIDED_B] ? TRANSPOSED : AS_IT_IS;
    const int *pitch = x->pitch;
    if (type == DT_f32)
        library.sgemm(BY_COLUMNS, a_form, b_form, x->m, x->n, x->k, 1, (const float *)(const void *)x->a,
                      pitch[STRIDED_A], (const float *)(const void *)x->b, pitch[STRIDED_B], (float)x->accumulate,
                      (float *)(void *)x->c, pitch[STRIDED_C]);
    else
        library.dgemm(BY_COLUMNS, a_form, b_form, x->m, x->n, x->k, 1, (const double *)(const void *)x->a,
                      pitch[STRIDED_A], (const double *)(const void *)x->b, pitch[STRIDED_B], x->accumulate,
                      (double *)(void *)x->c, pitch[STRIDED_C]);
}

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    struct openblas_plan *data = plan->data;
    char *memory = data->gemm.bytes ? mf_strided_scratch_take(&data->memory, data->gemm.bytes) : NULL;
    if (data->gemm.bytes && !memory)
        return MF_ERROR_MEMORY;
    enter(plan->threads);
    mf_strided_gemm_run(plan, &data->gemm, pointers, memory, multiply, NULL);
    pthread_rwlock_unlock(&lock);
    mf_strided_scratch_keep(&data->memory, memory);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    mf_strided_gemm_print(&((const struct openblas_plan *)plan->data)->gemm, text, size);
}

static void forget(struct mf_plan *plan)
{
    struct openblas_plan *data = plan->data;
    if (data)
        mf_free(atomic_load(&data->memory));
}

const struct solver mf_solver_openblas = {
    "openblas", "sum(a*b) of f32 or f64, any strides, by OpenBLAS, in its own order", applicable, make, execute, print,
    forget,
};
