/* Solver "openblas": sum(a*b) of floats as a product of matrices by OpenBLAS, opened at run time, where loops and
 * strides are such a product's. Its order of adding is OpenBLAS's own, so it runs only when it is asked for by name.
 *
 * How many threads OpenBLAS uses is one number for the whole process, and its blocks depend on it: executions that
 * want the same number run side by side, others wait. */
#include <pthread.h>
#include <stdio.h>

#include "../gemm.h"
#include "../gpu/runtime.h"
#include "../plan.h"

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

static int applicable(const struct mf_plan *plan)
{
    struct gemm gemm;
    return mf_gemm_find(&plan->problem, &gemm) && gemm.in == gemm.out && (gemm.in == DT_f32 || gemm.in == DT_f64);
}

static mf_status make(struct mf_plan *plan)
{
    pthread_once(&once, load);
    if (*why)
        return mf_fail(MF_ERROR_DEVICE, "%s", why);
    struct gemm *gemm = plan->data = mf_calloc(sizeof *gemm);
    if (!gemm)
        return MF_ERROR_MEMORY;
    mf_gemm_find(&plan->problem, gemm);
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

static mf_status execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct gemm *g = plan->data;
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    const int a_form = g->a_transposed ? TRANSPOSED : AS_IT_IS, b_form = g->b_transposed ? TRANSPOSED : AS_IT_IS;
    const int a_pitch = (int)g->a_pitch, b_pitch = (int)g->b_pitch, c_pitch = (int)g->c_pitch;
    enter(plan->threads);
    for (int64_t i = 0; i < g->batch; i++) {
        const int64_t a = i * g->a_step, b = i * g->b_step, c = i * g->c_step;
        const void *const x = pointers->in[g->a], *const y = pointers->in[g->b];
        void *const z = pointers->out[0];
        if (g->in == DT_f32)
            library.sgemm(BY_COLUMNS, a_form, b_form, m, n, k, 1, (const float *)x + a, a_pitch, (const float *)y + b,
                          b_pitch, 0, (float *)z + c, c_pitch);
        else
            library.dgemm(BY_COLUMNS, a_form, b_form, m, n, k, 1, (const double *)x + a, a_pitch, (const double *)y + b,
                          b_pitch, 0, (double *)z + c, c_pitch);
    }
    pthread_rwlock_unlock(&lock);
    return MF_OK;
}

static void print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct gemm *g = plan->data;
    snprintf(text, size, "%lld product%s of %lld x %lld and %lld x %lld", (long long)g->batch, g->batch == 1 ? "" : "s",
             (long long)g->m, (long long)g->k, (long long)g->k, (long long)g->n);
}

const struct solver mf_solver_openblas = {
    "openblas", "sum(a*b) of floats by OpenBLAS, in its own order", applicable, make, execute, print, NULL,
};
