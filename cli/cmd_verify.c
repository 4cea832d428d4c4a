/* modefold verify: random or given problems, every solver against the reference. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "fold_files.h"
#include "lists.h"
#include "options.h"
#include "progress.h"
#include "random.h"
#include "verify.h"

enum { MOST_REPORTS = 20 };

struct job {
    struct verifier verifier;
    struct progress progress;
    int64_t count, seed;
    double seconds, start;
    long different;
    struct problem_line line;
};

static int out_of_time(const struct job *job)
{
    return job->seconds > 0 && seconds_now() - job->start >= job->seconds;
}

static void check_line(struct job *job)
{
    struct finding finding;
    char text[PROBLEM_TEXT];
    if (!verify_problem(&job->verifier, &job->line, &finding))
        return;
    if (++job->different > MOST_REPORTS)
        return;
    progress_end(&job->progress);
    verify_report(stdout, &job->line, &finding);
    if (finding.kind != FINDING_PROBLEM) {
        problem_print(&job->line, text, sizeof text);
        verify_shrink(&job->verifier, &job->line, &finding, 5);
        char smaller[PROBLEM_TEXT];
        if (strcmp(text, problem_print(&job->line, smaller, sizeof smaller)) != 0) {
            printf("  made smaller:\n");
            verify_report(stdout, &job->line, &finding);
        }
    }
    fflush(stdout);
    progress_start(&job->progress, "verifying");
}

static void check_random(struct job *job)
{
    int64_t count = job->count ? job->count : job->seconds > 0 ? INT64_MAX : 10000;
    for (int64_t i = 0; i < count && !out_of_time(job); i++) {
        random_problem((uint64_t)job->seed, (uint64_t)i, &job->line);
        if (count < INT64_MAX)
            progress_say(&job->progress, "verified %" PRId64 " of %" PRId64 " problems (%" PRId64 " %%)", i, count,
                         i * 100 / count);
        else
            progress_say(&job->progress, "verified %" PRId64 " problems", i);
        check_line(job);
    }
}

/* number: in the file `where`, from 1 on; 0: the text was an argument. */
static int check_text(struct job *job, const char *where, int number, const char *text)
{
    char error[512];
    if (problem_parse(text, &job->line, error, sizeof error) ||
        problem_complete(job->verifier.device[0], &job->line, error, sizeof error))
        return number ? complain(1, "%s, problem %d: %s", where, number, error) : complain(2, "%s", error);
    check_line(job);
    return 0;
}

static int check_file(struct job *job, const char *path)
{
    struct problem_file file;
    char error[512];
    if (problem_file_read(path, &file, error, sizeof error))
        return complain(1, "%s", error);
    int status = 0;
    for (int i = 0; i < file.count && !status && !out_of_time(job); i++) {
        progress_say(&job->progress, "verified %d of %d problems of %s", i, file.count, path);
        status = check_text(job, path, i + 1, file.lines[i]);
    }
    problem_file_free(&file);
    return status;
}

/* Of solvers that run by name only, those whose errors are known. */
static int check_solver(const mf_device *device, const char *opened, const char *name)
{
    int known = !name || !strcmp(name, "automatic"), kind = mf_device_kind(device);
    for (int s = 0; list_solver(kind, s); s++)
        known |= name && list_is_solver(list_solver(kind, s), name);
    if (known || verify_is_by_name(kind, name))
        return known || verify_knows_errors(name, NULL)
                   ? 0
                   : complain(2, "solver \"%s\" adds in an order of its own, and verify has no bound for its errors",
                              name);
    return complain(2, "%s has no solver \"%s\"; 'modefold info' lists them", opened, name);
}

int command_verify(int argc, char **argv)
{
    struct option_list problems = {0}, files = {0}, define = {0};
    const char *device = "cpu";
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return complain(1, "out of memory");
    job->seed = 1;
    const struct option_spec specs[] = {
        {"count", OPTION_NUMBER, &job->count},   {"seed", OPTION_NUMBER, &job->seed},
        {"seconds", OPTION_REAL, &job->seconds}, {"solver", OPTION_TEXT, &job->verifier.solver},
        {"device", OPTION_TEXT, &device},        {"file", OPTION_MANY, &files},
        {"define", OPTION_MANY, &define},        {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &problems);
    if (!status && mf_device_open(device, &job->verifier.device[0]) != MF_OK)
        status = complain_library();
    if (!status)
        status = check_solver(job->verifier.device[0], device, job->verifier.solver);
    if (!status && mf_device_open("cpu", &job->verifier.reference) != MF_OK)
        status = complain_library();
    if (!status && !(status = define_operations(&define, job->verifier.device[0])))
        status = define_operations(&define, job->verifier.reference);
    if (!status) {
        job->verifier.device_count = 1;
        job->start = seconds_now();
        progress_start(&job->progress, "verifying");
        for (int i = 0; i < problems.count && !status; i++)
            status = check_text(job, NULL, 0, problems.item[i]);
        for (int i = 0; i < files.count && !status; i++)
            status = check_file(job, files.item[i]);
        if (!problems.count && !files.count)
            check_random(job);
        progress_end(&job->progress);
        verify_summary(stdout, &job->verifier);
        printf("%s, %ld difference%s, %.1f s, seed %" PRId64 "\n", mf_device_describe(job->verifier.device[0]),
               job->different, job->different == 1 ? "" : "s", seconds_now() - job->start, job->seed);
        if (!status && job->different)
            status = 1;
    }
    mf_device_close(job->verifier.device[0]);
    mf_device_close(job->verifier.reference);
    free(job);
    return status;
}
