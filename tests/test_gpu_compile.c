/* Kernels of the structured problems, compiled by NVRTC for architectures that need not be here: every one compiles,
 * and none spills registers. Then the cache: what planning for sm:90 leaves on disk is what cuda.c finds there. */
#include "cache_folder.h"
#include "gpu_test.h"

#include <pthread.h>

#include "gpu/gpu.h"
#include "lists.h"
#include "problem.h"

struct worker {
    int architecture;
    const struct problem_file *file;
    mf_device *device;
    pthread_t thread;
    int kernels, refused, failed, silent, spilled;
    char failures[4096], spills[8192]; /* for people */
};

static void add_line(char *text, size_t size, const char *line, const char *more)
{
    size_t n = strlen(text);
    snprintf(text + n, size - n, "    %s  %s\n", line, more);
}

/* Checks what the new kernel takes, by the plan's last words. */
static void look_at_usage(struct worker *worker, const char *line, const mf_plan *plan)
{
    int registers = 0, stack = 0, spilled = 0;
    char numbers[100];
    const char *found = strstr(mf_plan_describe(plan), " threads with ");
    worker->kernels++;
    if (!found ||
        sscanf(found, " threads with %d registers, %d bytes on the stack, %d spilled", &registers, &stack, &spilled) !=
            3 ||
        registers < 1) {
        worker->silent++;
        return;
    }
    if (!spilled)
        return;
    worker->spilled++;
    snprintf(numbers, sizeof numbers, "(%s: %d registers, %d bytes on the stack, %d spilled)", mf_plan_solver(plan),
             registers, stack, spilled);
    add_line(worker->spills, sizeof worker->spills, line, numbers);
}

static mf_device *cpu; /* it completes problems that do not name their outputs */

static void *compile_all(void *argument)
{
    struct worker *worker = argument;
    struct problem_line *line = malloc(sizeof *line);
    char error[512];
    for (int i = 0; line && i < worker->file->count; i++) {
        mf_plan *plan = NULL;
        const int before = list_kernel_count(worker->device);
        int wrong = problem_parse(worker->file->lines[i], line, error, sizeof error) ||
                    problem_complete(cpu, line, error, sizeof error);
        mf_status status = wrong ? MF_ERROR_ARGUMENT : problem_plan(worker->device, line, NULL, 0, &plan);
        if (status == MF_ERROR_EMPTY) { /* a mean of nothing */
            worker->refused++;
        } else if (status != MF_OK) {
            worker->failed++;
            add_line(worker->failures, sizeof worker->failures, worker->file->lines[i], wrong ? error : mf_error());
        } else if (before != list_kernel_count(worker->device)) {
            look_at_usage(worker, worker->file->lines[i], plan);
        }
        mf_plan_destroy(plan);
    }
    worker->failed += !line;
    free(line);
    return NULL;
}

/* Whether there is such a worker: its device opens. */
static int open_worker(struct worker *worker, int architecture, const struct problem_file *file)
{
    char name[32], what[64];
    snprintf(name, sizeof name, "sm:%d", architecture);
    worker->architecture = architecture;
    worker->file = file;
    if (mf_device_open(name, &worker->device) == MF_OK)
        return 1;
    snprintf(what, sizeof what, "kernels for %s", name);
    check_skip(what, mf_error()); /* a compiler that is older or newer, or none */
    return 0;
}

/* least: kernels of the file's problems. */
static void test_problems(const char *name, int least)
{
    static const int architectures[] = {80, 90, 100};
    static struct worker workers[3];
    struct problem_file file;
    char error[512];
    int count = 0;
    memset(workers, 0, sizeof workers);
    if (!CHECK(!problem_file_read(source_file(name), &file, error, sizeof error)))
        return;
    for (int i = 0; i < 3; i++)
        count += open_worker(&workers[count], architectures[i], &file);
    for (int i = 0; i < count; i++)
        CHECK(!pthread_create(&workers[i].thread, NULL, compile_all, &workers[i]));
    for (int i = 0; i < count; i++) {
        struct worker *worker = &workers[i];
        pthread_join(worker->thread, NULL);
        printf("sm_%d: %d kernels of %d problems\n", worker->architecture, worker->kernels, file.count);
        CHECK_MSG(!worker->failed, "sm_%d: %d problems do not compile:\n%s", worker->architecture, worker->failed,
                  worker->failures);
        CHECK_MSG(!worker->silent, "sm_%d: %d plans do not tell what they take", worker->architecture, worker->silent);
        CHECK_MSG(!worker->spilled, "sm_%d: %d kernels spill:\n%s", worker->architecture, worker->spilled,
                  worker->spills);
        CHECK_MSG(worker->kernels >= least, "sm_%d: only %d kernels", worker->architecture, worker->kernels);
        CHECK(worker->refused < 3);
        mf_device_close(worker->device);
    }
    problem_file_free(&file);
}

/* Those of log-space products, of which several are in a plan, run by name. */
static void test_logspace(void)
{
    static const char *const devices[] = {"sm:80", "sm:90", "sm:100"};
    static const char *const solvers[] = {"log-certified", "log-exact", "log-two-pass"};
    static const char *const types[] = {"f32", "f64", "f16"}; /* f32 is copied past the registers */
    struct problem_line *line = malloc(sizeof *line);
    char text[256], error[512];
    for (int n = 0; line && n < 27; n++) {
        const char *type = types[n / 9], *solver = solvers[n / 3 % 3];
        mf_device *device;
        mf_plan *plan = NULL;
        int kernels = 0, whole = 0;
        if (mf_device_open(devices[n % 3], &device) != MF_OK) {
            check_skip(devices[n % 3], mf_error());
            continue;
        }
        snprintf(text, sizeof text,
                 "ik,kj->ij | logsumexp(a+b) | a=%s[999,1000] b=%s[1000,1000] o=f32[999,1000]"
                 " | solver=%s",
                 type, type, solver);
        CHECK_MSG(!problem_parse(text, line, error, sizeof error) &&
                      problem_plan(device, line, NULL, 0, &plan) == MF_OK,
                  "%s: %s", text, mf_error());
        for (const char *at = mf_plan_describe(plan); (at = strstr(at, " spilled")); at++, kernels++)
            whole += !strncmp(at - 3, ", 0", 3);
        CHECK_MSG(kernels >= 1 && whole == kernels, "%s for %s: %s", text, devices[n % 3], mf_plan_describe(plan));
        mf_plan_destroy(plan);
        mf_device_close(device);
    }
    free(line);
}

/* What a text takes is found if the cache has it, whole; the plan for sm:90 left it there. */
static void test_usage(const char *text, const char *compiler)
{
    struct gpu_usage first = {0}, found = {0}, forged = {77, 78, 79};
    char key[2100], *binary;
    size_t size;
    snprintf(key, sizeof key, "takes, %.2000s", compiler);
    CHECK(mf_nvrtc_usage(text, 90, &first) == MF_OK && first.registers > 4);
    mf_cache_keep(key, text, (const char *)&forged, sizeof forged);
    CHECK(mf_nvrtc_usage(text, 90, &found) == MF_OK && !memcmp(&found, &forged, sizeof found));
    mf_cache_keep(key, text, "short", 5); /* compiled again */
    CHECK(mf_nvrtc_usage(text, 90, &found) == MF_OK && !memcmp(&found, &first, sizeof found));
    CHECK(mf_cache_find(compiler, text, &binary, &size) && size > 500);
    mf_free(binary);
}

/* The cuda device calls mf_nvrtc_compile with its prelude, the kernel's text and no usage. The text is taken out of the
 * entry that a plan for sm:90 left, and the entry's binary is replaced, to see that this call finds it. */
static void test_key(void)
{
    static char data[1 << 20], key[2000], text[1 << 20];
    struct problem_line *line = malloc(sizeof *line);
    mf_device *device;
    mf_plan *plan;
    char error[512], *binary = NULL;
    uint64_t sizes[2];
    size_t size = 0;
    use_cache("cache-key");
    if (!line || mf_device_open("sm:90", &device) != MF_OK) {
        check_skip("the key of compiled kernels", mf_error());
        free(line);
        return;
    }
    CHECK(!problem_parse("ij->i | sum(a) | a=f32[30,40] o=f32[30]", line, error, sizeof error));
    CHECK(problem_plan(device, line, NULL, 0, &plan) == MF_OK);
    if (CHECK(count_entries("cache-key") == 2) && CHECK(read_entry(data, sizeof data) > 48)) {
        memcpy(sizes, data + 8, sizeof sizes);
        if (CHECK(sizes[0] < sizeof key && sizes[1] < sizeof text && 40 + sizes[0] + sizes[1] < sizeof data)) {
            memcpy(key, data + 40, (size_t)sizes[0]); /* the binary's, or what it takes: of the same text */
            memcpy(text, data + 40 + sizes[0], (size_t)sizes[1]);
        }
        const char *compiler = key + (strncmp(key, "takes, ", 7) ? 0 : 7);
        CHECK(!strncmp(text, mf_gpu_cuda.prelude, strlen(mf_gpu_cuda.prelude)) && strstr(text, "modefold"));
        mf_cache_keep(compiler, text, "forged", 6);
        CHECK(mf_nvrtc_compile(text, 90, NULL, &binary, &size) == MF_OK);
        CHECK(size == 6 && !memcmp(binary, "forged", 6));
        mf_free(binary);
        CHECK(mf_nvrtc_compile(text, 80, NULL, &binary, &size) == MF_OK && size > 500); /* another key */
        mf_free(binary);
        test_usage(text, compiler);
    }
    mf_plan_destroy(plan);
    mf_device_close(device);
    free(line);
}

int main(void)
{
    char version[256];
    gpu_test_environment("off");
    gpu_test_keep_compiled(1);
    if (mf_nvrtc_version(version, sizeof version)) {
        check_skip("kernels for CUDA", version);
        return check_done("test_gpu_compile");
    }
    if (CHECK_MSG(mf_device_open("cpu:1", &cpu) == MF_OK, "%s", mf_error()))
        test_problems("tests/gpu_problems.txt", 61);
    test_problems("tests/gpu_shapes.txt", 20);
    test_logspace();
    mf_device_close(cpu);
    test_key();
    return check_done("test_gpu_compile");
}
