/* Problems on "opencl:0" against the CPU's reference, by the code of `modefold verify`: those of gpu_problems.txt and
 * problems.txt, random ones, and those of gpu_wide.txt as they are computed where there are many multiprocessors.
 *
 * MODEFOLD_GPU_VERIFY_COUNT says how many random ones (150), MODEFOLD_GPU_VERIFY_SEED which (1). Nearly every problem
 * has a kernel of its own, and PoCL compiles one at a time: MODEFOLD_GPU_VERIFY_SHARE=1/2 takes the first of every 2
 * problems and 2/2 the second, so that two processes do all. PoCL finds the kernels of an earlier run in its own cache,
 * if POCL_CACHE_DIR names that run's. MODEFOLD_GPU_VERIFY_EVERY, _FROM: some of the files' problems only. */
#include "gpu_test.h"
#include "random.h"
#include "verify.h"

#include "gpu/gpu.h"
#include "plan.h"

enum {
    USUAL_RANDOM = 150,
    REOPEN = 200 /* a device holds every kernel that it has met: now and then a new one */
};

static struct verifier verifier;
static long part = 1, parts = 1, met;
static int multiprocessors; /* that the device is said to have, or 0: its own */

static long environment_number(const char *name, long otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

static int open_device(void)
{
    mf_device_close(verifier.device[0]);
    if (mf_device_open("opencl:0", &verifier.device[0]) != MF_OK)
        return 0;
    if (multiprocessors)
        ((struct gpu_common *)verifier.device[0]->gpu)->limits.multiprocessors = multiprocessors;
    return 1;
}

static void check_problem(const struct problem_line *line)
{
    struct problem_line *copy = malloc(sizeof *copy);
    struct finding finding;
    if (!copy)
        abort();
    *copy = *line;
    if (++met % REOPEN == 0)
        CHECK_MSG(open_device(), "%s", mf_error());
    int same = verify_problem(&verifier, copy, &finding) == FINDING_NONE;
    CHECK_MSG(same, "a difference:");
    if (!same && check_failed < 5) {
        verify_report(stderr, copy, &finding);
        verify_shrink(&verifier, copy, &finding, 20);
        fprintf(stderr, "  made smaller:\n");
        verify_report(stderr, copy, &finding);
    }
    free(copy);
}

/* Whether this process takes problem number i. */
static int is_ours(long i)
{
    return i % parts == part - 1;
}

/* The files' problems that this run takes: every one, or by MODEFOLD_GPU_VERIFY_EVERY=n those of number k, k + n ...
 * with k the run's own (MODEFOLD_GPU_VERIFY_FROM). Their kernels are the same whatever compiled this program. */
static int is_taken(int i)
{
    const long every = environment_number("MODEFOLD_GPU_VERIFY_EVERY", 1);
    const long from = environment_number("MODEFOLD_GPU_VERIFY_FROM", 0);
    return every < 2 || i / parts % every == from % every;
}

static void check_file(const char *path, int least)
{
    static struct problem_line line;
    struct problem_file file;
    char error[512];
    int failed = problem_file_read(path, &file, error, sizeof error);
    if (!CHECK_MSG(!failed, "%s", failed ? error : ""))
        return;
    CHECK_MSG(file.count >= least, "%s has only %d problems", path, file.count);
    for (int i = 0; i < file.count; i++) {
        if (!is_ours(i) || !is_taken(i))
            continue;
        failed = problem_parse(file.lines[i], &line, error, sizeof error) ||
                 problem_complete(verifier.reference, &line, error, sizeof error);
        if (CHECK_MSG(!failed, "%s: %s", file.lines[i], failed ? error : ""))
            check_problem(&line);
    }
    problem_file_free(&file);
}

static void check_random(void)
{
    static struct problem_line line;
    long count = environment_number("MODEFOLD_GPU_VERIFY_COUNT", USUAL_RANDOM);
    uint64_t seed = (uint64_t)environment_number("MODEFOLD_GPU_VERIFY_SEED", 1);
    for (long i = 0; i < count; i++) {
        if (!is_ours(i))
            continue;
        random_problem(seed, (uint64_t)i, &line);
        check_problem(&line);
    }
}

/* What a driver compiles that does not round quotients and roots of floats itself (prelude.cl). */
static void check_other_quotients(void)
{
    static const char *const lines[] = {
        "ij,j->ij | a/b; sqrt(abs(a)) | a=f32[300,70] b=f32[70] o=f32[300,70] o1=f32[300,70] | data=wide",
        "ij,j->ij | a/b; a//b; a%b | a=f64[30,70] b=f64[70] o=f64[30,70] o1=f64[30,70] o2=f64[30,70] | data=wide",
        "ij,j->ij | a//b; a%b | a=f32[30,70] b=f32[70] o=f32[30,70] o1=f32[30,70]",
        "ij->i | tanh(var(a)); sum(sigmoid(a)); mean(tanh(a)) | a=f32[30,700] o=f32[30] o1=f32[30] o2=f32[30]",
        "ij->j | std(a); norm(a) | a=f16[300,70] o=f32[70] o1=f32[70]"};
    static struct problem_line line;
    mf_device *usual = verifier.device[0];
    const char *options = getenv("MODEFOLD_OPENCL_OPTIONS");
    char more[256], error[512];
    snprintf(more, sizeof more, "%.200s -DQUOTIENTS_BY_F64=1", options ? options : "");
    setenv("MODEFOLD_OPENCL_OPTIONS", more, 1);
    if (CHECK_MSG(mf_device_open("opencl:0", &verifier.device[0]) == MF_OK, "%s", mf_error())) {
        for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
            if (CHECK_MSG(!problem_parse(lines[i], &line, error, sizeof error), "%s", error))
                check_problem(&line);
        mf_device_close(verifier.device[0]);
    }
    verifier.device[0] = usual;
    setenv("MODEFOLD_OPENCL_OPTIONS", options ? options : "", 1);
}

/* Forms are chosen by how many blocks a device has room for: those of a large one, by whatever is here. */
static void check_many_multiprocessors(void)
{
    enum { OF_H100 = 132 };
    multiprocessors = OF_H100;
    if (CHECK_MSG(open_device(), "%s", mf_error()))
        check_file(source_file("tests/gpu_wide.txt"), 20);
    multiprocessors = 0;
    CHECK_MSG(open_device(), "%s", mf_error());
}

/* A wrong bit would be noticed: one expected bit is made wrong. */
static void check_that_it_compares(void)
{
    static struct problem_line line;
    struct problem_memory memory;
    struct problem_difference difference;
    char error[512];
    CHECK(!problem_parse("ij->i | sum(a) | a=f32[3,5] o=f32[3]", &line, error, sizeof error));
    if (!CHECK(!problem_memory_make(&line, 1, &memory, error, sizeof error)))
        return;
    CHECK(problem_run(verifier.reference, &line, &memory, "reference", 0, 0) == MF_OK);
    problem_memory_expect(&memory);
    for (int wrong = 1; wrong >= 0; wrong--) {
        memory.block[MF_MAX_INPUTS].expected[4] ^= 1; /* there, and then back */
        problem_memory_reset(&memory);
        CHECK(problem_run_on_device(verifier.device[0], &line, &memory, NULL, 1) == MF_OK);
        CHECK(problem_compare(&line, &memory, &difference) == wrong);
        CHECK(!wrong || (difference.output == 0 && difference.at[0] == 1 && difference.count == 1));
    }
    problem_memory_free(&memory);
}

int main(void)
{
    const char *share = getenv("MODEFOLD_GPU_VERIFY_SHARE");
    gpu_test_environment("off");
    if (share && *share)
        CHECK(sscanf(share, "%ld/%ld", &part, &parts) == 2 && part >= 1 && part <= parts);
    if (!open_device()) {
        check_skip("every problem on opencl:0", mf_error());
        return check_done("test_gpu_verify");
    }
    verifier.device_count = 1;
    if (!CHECK_MSG(mf_device_open("cpu", &verifier.reference) == MF_OK, "%s", mf_error()))
        return check_done("test_gpu_verify");
    check_that_it_compares();
    if (is_ours(0))
        check_other_quotients();
    check_file(source_file("tests/gpu_problems.txt"), 130);
    check_file(source_file("tests/problems.txt"), 50);
    check_random();
    check_many_multiprocessors();
    verify_summary(stdout, &verifier);
    mf_device_close(verifier.device[0]);
    mf_device_close(verifier.reference);
    return check_done("test_gpu_verify");
}
