/* A problem's line on a GPU's device by a solver, beside the reference. */
#ifndef MF_TESTS_GPU_LINE_H
#define MF_TESTS_GPU_LINE_H

#include "gpu_test.h"
#include "problem.h"

struct gpu_line {
    mf_device *device, *reference;
    const char *excuse; /* MF_ERROR_UNSUPPORTED with these words is skipped */
};

/* Runs the line by its solver there (solver null: the line's own) and by the reference. Nonzero: it ran, and memory is
 * to be freed. */
__attribute__((unused)) static int gpu_line_run(const struct gpu_line *on, const char *text, const char *solver,
                                                struct problem_line *line, struct problem_memory *memory)
{
    char error[512] = "";
    int failed =
        problem_parse(text, line, error, sizeof error) || problem_complete(on->reference, line, error, sizeof error);
    if (!CHECK_MSG(!failed, "%s: %s", text, error) ||
        !CHECK(!problem_memory_make(line, 1, memory, error, sizeof error)))
        return 0;
    CHECK(problem_run(on->reference, line, memory, "reference", 0, 0) == MF_OK);
    problem_memory_expect(memory);
    problem_memory_reset(memory);
    const char *name = solver ? solver : line->solver;
    const mf_status status = problem_run_on_device(on->device, line, memory, name, 0);
    if (status == MF_ERROR_UNSUPPORTED && strstr(mf_error(), on->excuse))
        check_skip(name, mf_error());
    else if (CHECK_MSG(status == MF_OK, "%s, %s: %s", name, text, mf_error()))
        return 1;
    problem_memory_free(memory);
    return 0;
}

/* The reference's bits are expected. */
__attribute__((unused)) static void gpu_line_check(const struct gpu_line *on, const char *text, const char *solver)
{
    static struct problem_line line;
    struct problem_memory memory;
    struct problem_difference difference;
    if (!gpu_line_run(on, text, solver, &line, &memory))
        return;
    CHECK_MSG(!problem_compare(&line, &memory, &difference), "%s, %s: other bits", solver ? solver : line.solver, text);
    problem_memory_free(&memory);
}

/* Whether four warps may multiply together: 16-bit floats, and f32 whose second factor lies along the terms, where a
 * device has instructions for that, which its compiler is asked for. */
__attribute__((unused)) static int gpu_line_may_group(const struct gpu_line *on, const char *text)
{
    static const char product[] = "ik,jk->ij";
    const int64_t shape[2] = {64, 64};
    DLTensor in[2] = {mf_tensor(NULL, MF_F16, 2, shape), mf_tensor(NULL, MF_F16, 2, shape)};
    DLTensor out = mf_tensor(NULL, MF_F32, 2, shape);
    const mf_options options = {.solver = "product:full:128:256"};
    mf_plan *plan = NULL;
    in[0].device.device_type = in[1].device.device_type = out.device.device_type =
        (DLDeviceType)mf_device_kind(on->device);
    const mf_status status = mf_plan_create(on->device, product, "sum(a*b)", in, &out, &options, &plan);
    mf_plan_destroy(plan);
    return status == MF_OK && (!strstr(text, "a=f32") || strstr(text, "jk->") || strstr(text, ",pijc"));
}

#endif
