/* What plans for GPUs take of the device's memory: log-space products, where cuBLAS multiplies (plans for an
 * architecture are as if there was one) and where it does not, keep to three times the operands. */
#include "gpu_test.h"

#include "gpu/launch.h"
#include "lists.h"
#include "problem.h"

enum { CUBLAS_BYTES = 256 << 10 }; /* that it has for itself: src/gpu/solve_log.c */

static mf_device *cpu; /* it completes problems that do not name their outputs */

/* Shapes of square and other products, of many and of few terms; outputs that lie beside each other, and others. */
static const char *const products[] = {
    "ik,kj->ij | logsumexp(a+b) | a=f32[512,512] b=f32[512,512] o=f32[512,512]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[640,640] b=f32[640,640] o=f32[640,640]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[1000,1000] b=f32[1000,1000] o=f32[1000,1000]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[1023,1023] b=f32[1023,1023] o=f32[1023,1023]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[1024,1024] b=f32[1024,1024] o=f32[1024,1024]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[1024,1024] b=f32[1024,1024] o=f32[1024,1024]:(1,1024)",
    "ik,kj->ij | logsumexp(a+b) | a=f32[1024,1024] b=f32[1024,1024] o=f16[1024,1024]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[2048,2048] b=f32[2048,2048] o=f32[2048,2048]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[4096,4096] b=f32[4096,4096] o=f32[4096,4096]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[4096,64] b=f32[64,4096] o=f32[4096,4096]",
    "ik,kj->ij | logsumexp(a+b) | a=f32[4096,64] b=f32[64,4096] o=f32[4096,4096]:(1,4096)",
    "ik,kj->ij | logsumexp(a+b) | a=f32[64,4096] b=f32[4096,4096] o=f32[64,4096]",
    "bik,bkj->bij | logsumexp(a+b) | a=f32[8,256,256] b=f32[8,256,256] o=f32[8,256,256]",
    "bik,bkj->bij | logsumexp(a+b) | a=f32[8,512,512] b=f32[8,512,512] o=f32[8,512,512]",
    "bik,bkj->bij | logsumexp(a+b) | a=f32[8,1024,1024] b=f32[8,1024,1024] o=f32[8,1024,1024]",
    "ik,kj->ij | logsumexp(a+b) | a=f64[1024,1024] b=f64[1024,1024] o=f64[1024,1024]",
    "ik,kj->ij | logsumexp(a+b) | a=f64[1024,1024] b=f64[1024,1024] o=f32[1024,1024]",
};

static void test_products(mf_device *device, const char *solver)
{
    struct problem_line *line = malloc(sizeof *line);
    char text[256], error[512];
    for (size_t p = 0; line && p < sizeof products / sizeof *products; p++) {
        mf_plan *plan = NULL;
        int64_t operands = 0;
        snprintf(text, sizeof text, "%s | solver=%s", products[p], solver);
        if (!CHECK_MSG(!problem_parse(text, line, error, sizeof error) &&
                           !problem_complete(cpu, line, error, sizeof error) &&
                           problem_plan(device, line, NULL, 0, &plan) == MF_OK,
                       "%s: %s", text, mf_error()))
            continue;
        for (int i = 0; i < line->input_count; i++)
            operands += problem_elements(&line->tensor[i]) * line->tensor[i].item;
        const int64_t bytes = mf_gpu_memory(plan) + (strstr(mf_plan_describe(plan), "cuBLAS") ? CUBLAS_BYTES : 0);
        CHECK_MSG(bytes <= 3 * operands, "%s: %lld bytes for operands of %lld, %.4f times as many", text,
                  (long long)bytes, (long long)operands, (double)bytes / (double)operands);
        if (getenv("MODEFOLD_TABLE"))
            printf("%.4f  %s\n", (double)bytes / (double)operands, text);
        mf_plan_destroy(plan);
    }
    free(line);
}

int main(void)
{
    static const char *const names[] = {"sm:90", "opencl:0"};
    gpu_test_environment("off");
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gpu_memory");
    for (int d = 0; d < 2; d++) {
        mf_device *device = NULL;
        if (mf_device_open(names[d], &device) != MF_OK) {
            check_skip(names[d], mf_error());
            continue;
        }
        gpu_test_keep_compiled(d == 0);
        test_products(device, "log-certified");
        test_products(device, "log-exact");
        mf_device_close(device);
    }
    mf_device_close(cpu);
    return check_done("test_gpu_memory");
}
