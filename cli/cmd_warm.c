/* modefold warm: compiles kernels for CUDA devices that are elsewhere, into the cache on disk. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "fold_files.h"
#include "lists.h"
#include "options.h"
#include "problem.h"
#include "progress.h"
#include "warm_match.h"

enum { ARCHITECTURES = 16, WORK_TEXT = 256 };

/* What is compiled: problems as text, and calls of mf_match. */
struct work {
    int count, room;
    char **text;
    int matches;
};

/* What compiling one of them gave. */
struct compiled {
    const char *solver;
    int failed, kernels, registers, stack, spilled;
};

struct job {
    const char *architectures, *set;
    struct option_list define;
    int strict;
    struct work work;
    pthread_mutex_t lock; /* for the output, the progress and the counts */
    struct progress progress;
    int kernels, failed, spilled;
};

/* One architecture, on a thread of its own. */
struct worker {
    struct job *job;
    char device_name[32];
    mf_device *device;
    pthread_t thread;
};

/* ---- what to compile ---- */

static int add_work(struct work *work, const char *text)
{
    if (work->count == work->room) {
        int room = work->room ? 2 * work->room : 64;
        char **larger = realloc(work->text, sizeof *larger * (size_t)room);
        if (!larger)
            return complain(1, "out of memory");
        work->text = larger;
        work->room = room;
    }
    char *copy = strdup(text);
    if (!copy)
        return complain(1, "out of memory");
    work->text[work->count++] = copy;
    return 0;
}

/* What most programs begin with: reductions over rows, columns and all, sums with broadcasts, of floats. */
static int add_common(struct work *work)
{
    static const char *const types[] = {"f32", "f64", "f16", "bf16"};
    static const char *const reducers[] = {"sum", "max", "mean", "var", "argmax", "logsumexp"};
    static const char *const shapes[] = {"ij->i | %s(a) | a=%s[65536,1024]", "ij->i | %s(a) | a=%s[1048576,32]",
                                         "ij->j | %s(a) | a=%s[8192,8192]", "i-> | %s(a) | a=%s[67108864]"};
    static const char *const sums[] = {
        "ij,j->ij | a+b | a=%s[8192,8192] b=%s[8192]", "ij,i->ij | a+b | a=%s[8192,8192] b=%s[8192]",
        "i,i->i | a+b | a=%s[67108864] b=%s[67108864]", "nchw,c->nchw | a+b | a=%s[64,64,64,64] b=%s[64]"};
    char text[WORK_TEXT];
    int status = 0;
    for (int t = 0; t < 4; t++) {
        for (int r = 0; r < 6; r++)
            for (int s = 0; s < 4 && !status; s++) {
                snprintf(text, sizeof text, shapes[s], reducers[r], types[t]);
                status = add_work(work, text);
            }
        for (int s = 0; s < 4 && !status; s++) {
            snprintf(text, sizeof text, sums[s], types[t], types[t]);
            status = add_work(work, text);
        }
    }
    return status;
}

static int add_file(struct work *work, const char *path)
{
    struct problem_file file;
    char error[512];
    if (problem_file_read(path, &file, error, sizeof error))
        return complain(1, "%s", error);
    int status = 0;
    for (int i = 0; i < file.count && !status; i++)
        status = add_work(work, file.lines[i]);
    problem_file_free(&file);
    return status;
}

/* MODES EXPRESSION TENSORS. */
static int add_tensors(struct work *work, const char *set, const struct option_list *arguments)
{
    struct problem_line *line = malloc(sizeof *line);
    char text[PROBLEM_TEXT], *modes = modes_with_settings(arguments->item[0], set);
    int status = line && modes ? problem_of_arguments(modes, arguments, line) : 1;
    if (!status)
        status = add_work(work, problem_print(line, text, sizeof text));
    free(modes);
    free(line);
    return status;
}

static int find_work(struct job *job, const struct option_list *arguments, const struct option_list *files)
{
    int status = 0;
    if (arguments->count > 2 && is_written_tensor(arguments->item[2]))
        status = add_tensors(&job->work, job->set, arguments);
    else
        for (int i = 0; i < arguments->count && !status; i++)
            status = add_work(&job->work, arguments->item[i]);
    for (int i = 0; i < files->count && !status; i++)
        status = add_file(&job->work, files->item[i]);
    if (!status && !arguments->count && !files->count) {
        job->work.matches = 1;
        status = add_common(&job->work);
    }
    return status;
}

/* ---- compiling ---- */

/* The numbers at the end of a plan's description. */
static void find_usage(const char *description, struct compiled *c)
{
    const char *found = NULL;
    for (const char *next = description; (next = strstr(next, " with ")); next++)
        found = next;
    if (found)
        sscanf(found, " with %d registers, %d bytes on the stack, %d spilled", &c->registers, &c->stack, &c->spilled);
}

/* With the lock. */
static void report(struct worker *worker, const char *text, const struct compiled *c)
{
    struct job *job = worker->job;
    if (!c->failed && !c->kernels)
        return;
    progress_end(&job->progress);
    if (c->failed) {
        job->failed++;
        complain(1, "%s: %s: %s", worker->device_name, text, mf_error());
    } else {
        job->kernels += c->kernels;
        job->spilled += c->spilled > 0;
        printf("%-7s %-8s %4d registers %5d stack %5d spilled  %s\n", worker->device_name, c->solver, c->registers,
               c->stack, c->spilled, text);
        fflush(stdout);
    }
    progress_start(&job->progress, "compiling");
}

static void compile(struct worker *worker, const char *text, struct problem_line *line)
{
    mf_plan *plan = NULL;
    char error[512];
    struct compiled c = {.kernels = -list_kernel_count(worker->device)};
    int wrong =
        problem_parse(text, line, error, sizeof error) || problem_complete(worker->device, line, error, sizeof error);
    if (!wrong)
        problem_plan(worker->device, line, NULL, 0, &plan);
    c.failed = !plan;
    c.kernels += list_kernel_count(worker->device);
    if (plan) {
        c.solver = mf_plan_solver(plan);
        find_usage(mf_plan_describe(plan), &c);
    }
    pthread_mutex_lock(&worker->job->lock);
    if (wrong) {
        worker->job->failed++;
        complain(2, "%s: %s", text, error);
    } else {
        report(worker, text, &c);
    }
    pthread_mutex_unlock(&worker->job->lock);
    mf_plan_destroy(plan);
}

static void compile_match(struct worker *worker, int number)
{
    struct gpu_usage usage = {0};
    struct compiled c = {.solver = "match", .kernels = -list_kernel_count(worker->device)};
    c.failed = warm_match(worker->device, number, &usage) != MF_OK;
    c.kernels += list_kernel_count(worker->device);
    c.registers = usage.registers;
    c.stack = usage.stack;
    c.spilled = usage.spilled;
    pthread_mutex_lock(&worker->job->lock);
    report(worker, warm_match_name(number), &c);
    pthread_mutex_unlock(&worker->job->lock);
}

static void *compile_all(void *argument)
{
    struct worker *worker = argument;
    struct problem_line *line = malloc(sizeof *line);
    for (int i = 0; i < worker->job->work.count && line; i++)
        compile(worker, worker->job->work.text[i], line);
    for (int i = 0; worker->job->work.matches && warm_match_name(i); i++)
        compile_match(worker, i);
    if (!line) {
        pthread_mutex_lock(&worker->job->lock);
        worker->job->failed++;
        pthread_mutex_unlock(&worker->job->lock);
    }
    free(line);
    return NULL;
}

/* Opens the first of "sm_90,sm_100" (or sm:90, or 90) and moves behind it; 0, or a status after a message. */
static int open_worker(const char **list, struct worker *worker)
{
    const char *at = *list, *comma = strchr(at, ',');
    int length = comma ? (int)(comma - at) : (int)strlen(at);
    if (length > 3 && (!strncmp(at, "sm_", 3) || !strncmp(at, "sm:", 3))) {
        at += 3;
        length -= 3;
    }
    if (length < 1 || length > 3 || (int)strspn(at, "0123456789") != length)
        return complain(2, "--arch takes architectures like sm_90,sm_100, not \"%s\"", worker->job->architectures);
    snprintf(worker->device_name, sizeof worker->device_name, "sm:%.*s", length, at);
    *list = comma ? comma + 1 : NULL;
    return device_open(worker->device_name, 0, &worker->job->define, &worker->device);
}

/* A worker for every architecture. */
static int open_workers(struct job *job, struct worker *workers, int *count)
{
    int status = 0;
    *count = 0;
    for (const char *next = job->architectures; next && !status;) {
        if (*count == ARCHITECTURES)
            return complain(2, "--arch takes %d architectures at most", ARCHITECTURES);
        workers[*count].job = job;
        status = open_worker(&next, &workers[*count]);
        *count += !status;
    }
    return status;
}

/* Says where the kernels are kept; the exit status. */
static int check_folder(const struct job *job)
{
    char folder[4096];
    if (!list_kernel_folder(folder, sizeof folder))
        return complain(job->strict ? 1 : 0, "MODEFOLD_CACHE switches the cache off: the kernels were not kept");
    if (job->kernels && access(folder, W_OK))
        return complain(1, "%s cannot be written: the kernels were not kept", folder);
    printf("kept in %s\n", folder);
    return 0;
}

static void compile_everywhere(struct job *job, struct worker *workers, int count)
{
    int started = 0;
    progress_start(&job->progress, "compiling");
    while (started < count && !pthread_create(&workers[started].thread, NULL, compile_all, &workers[started]))
        started++;
    for (int i = started; i < count; i++) /* there are no more threads */
        compile_all(&workers[i]);
    for (int i = 0; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    progress_end(&job->progress);
}

static int warm(struct job *job)
{
    struct worker workers[ARCHITECTURES] = {{0}};
    int count, status = open_workers(job, workers, &count);
    pthread_mutex_init(&job->lock, NULL);
    if (!status) {
        compile_everywhere(job, workers, count);
        printf("%d kernel%s for %d architecture%s, %d spilled, %d problem%s failed; %s\n", job->kernels,
               job->kernels == 1 ? "" : "s", count, count == 1 ? "" : "s", job->spilled, job->failed,
               job->failed == 1 ? "" : "s", list_cuda_compiler());
        status = check_folder(job);
    }
    for (int i = 0; i < count; i++)
        mf_device_close(workers[i].device);
    pthread_mutex_destroy(&job->lock);
    return status ? status : job->failed || (job->strict && job->spilled);
}

int command_warm(int argc, char **argv)
{
    struct job job = {0};
    struct option_list arguments = {0}, files = {0};
    const struct option_spec specs[] = {
        {"arch", OPTION_TEXT, &job.architectures}, {"file", OPTION_MANY, &files},        {"set", OPTION_TEXT, &job.set},
        {"define", OPTION_MANY, &job.define},      {"strict", OPTION_FLAG, &job.strict}, {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &arguments);
    if (!status && !job.architectures)
        status = complain(2, "warm needs --arch sm_90 or others; 'modefold warm --help' has examples");
    if (!status)
        status = find_work(&job, &arguments, &files);
    if (!status)
        status = warm(&job);
    for (int i = 0; i < job.work.count; i++)
        free(job.work.text[i]);
    free(job.work.text);
    return status;
}
