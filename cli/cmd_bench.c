/* modefold bench: how fast, beside what the machine can do at best in the same run. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_device.h"
#include "commands.h"
#include "fold_files.h"
#include "limit.h"
#include "lists.h"
#include "options.h"
#include "problem.h"
#include "progress.h"
#include "show.h"

enum group { GROUP_reduce, GROUP_broadcast, GROUP_operations, GROUP_turned, GROUP_windows, GROUP_calls, GROUP_COUNT };

static const char *const group_names[GROUP_COUNT] = {"reduce", "broadcast", "operations", "turned", "windows", "calls"};

static const struct row {
    enum group group;
    const char *name, *modes, *expression, *shapes;
} rows[] = {
#define ROW(group, name, modes, expression, shapes) {GROUP_##group, name, modes, expression, shapes},
#include "rows.def"
#undef ROW
};

enum { ROWS = sizeof rows / sizeof rows[0], MOST_RUNS = 1001, FEWEST_RUNS = 7, STANDARD_ELEMENTS = 1 << 25 };

struct job {
    const char *rows, *types, *solver, *limit;
    int64_t threads, elements, bytes;
    double seconds; /* of one row */
    int json, printed, one_shot;
    mf_device *device;
    int device_threads;
    struct progress progress;
    struct problem_line line;
    struct device_times device_times;
    double fold_time[MOST_RUNS], limit_time[MOST_RUNS], ratio[MOST_RUNS];
};

/* What was measured of one problem. */
struct result {
    double fold, limit;   /* medians, seconds; a limit of 0: none was measured */
    double ratio;         /* median of limit / fold of neighbouring runs */
    double read, written; /* bytes */
    double terms;         /* elements that reducers fold, or 0 */
    int runs;
    char solver[32], limit_what[32];
};

static int on_gpu(const struct job *job)
{
    return mf_device_kind(job->device) != kDLCPU;
}

static int is_gpu_copy(const struct job *job)
{
    return on_gpu(job) && !job->one_shot && !strcmp(job->limit, "copy");
}

/* How many elements the reducers fold, of all outputs, as the plan describes itself; 0 where nothing is reduced. */
static double count_terms(const mf_plan *plan)
{
    const char *text = strchr(mf_plan_describe(plan), '\n');
    double terms = 1;
    int count = 0, used = 0;
    long long size;
    if (!text || strncmp(text, "\nkept", 5) != 0)
        return 0;
    for (text += 5; sscanf(text, " %lld%n", &size, &used) == 1; text += used)
        terms *= (double)size;
    for (text += strspn(text, " reduced"); sscanf(text, " %lld%n", &size, &used) == 1; text += used, count++)
        terms *= (double)size;
    return count ? terms : 0;
}

static void count_bytes(const struct problem_line *line, struct result *result)
{
    for (int i = 0; i < line->input_count; i++) {
        DLTensor t = problem_dltensor(&line->tensor[i]);
        result->read += tensor_bytes(&t);
    }
    for (int k = 0; k < line->output_count; k++) {
        DLTensor t = problem_dltensor(&line->tensor[MF_MAX_INPUTS + k]);
        result->written += tensor_bytes(&t);
    }
}

/* One sample: so many executions, or one-shot calls. */
static double run_fold(struct job *job, const mf_plan *plan, const struct problem_memory *memory, int times)
{
    const struct problem_line *line = &job->line;
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    DLTensor inputs[MF_MAX_INPUTS], outputs[MF_MAX_OUTPUTS];
    problem_pointers(line, memory, in, out);
    for (int i = 0; i < line->input_count; i++) {
        inputs[i] = problem_dltensor(&line->tensor[i]);
        memcpy(&inputs[i].data, &in[i], sizeof in[i]);
    }
    for (int k = 0; k < line->output_count; k++) {
        outputs[k] = problem_dltensor(&line->tensor[MF_MAX_INPUTS + k]);
        outputs[k].data = out[k];
    }
    double start = seconds_now();
    for (int i = 0; i < times; i++) {
        mf_status status = job->one_shot ? mf_fold(job->device, line->modes, line->expression, inputs, outputs)
                                         : mf_plan_execute(plan, in, out, NULL);
        if (status != MF_OK)
            return -1;
    }
    return (seconds_now() - start) / times;
}

/* Fold and limit take turns, so that both meet the same machine. */
static int measure(struct job *job, const mf_plan *plan, const struct problem_memory *memory, struct limit *limit,
                   struct result *result)
{
    double once = run_fold(job, plan, memory, 1);
    if (once < 0)
        return complain_library();
    once = run_fold(job, plan, memory, 1);
    int times = once > 2e-3 ? 1 : (int)(2e-3 / (once + 1e-9)) + 1;
    limit_choose(limit);
    double start = seconds_now();
    int n = 0;
    while (n < MOST_RUNS && (n < FEWEST_RUNS || seconds_now() - start < job->seconds)) {
        job->fold_time[n] = run_fold(job, plan, memory, times);
        job->limit_time[n] = limit_run(limit);
        job->ratio[n] = job->limit_time[n] / job->fold_time[n];
        n++;
    }
    result->runs = n;
    result->fold = median_of(job->fold_time, n);
    result->limit = median_of(job->limit_time, n);
    result->ratio = median_of(job->ratio, n);
    snprintf(result->limit_what, sizeof result->limit_what, "%s", limit_what(limit));
    return 0;
}

/* On a GPU: what its memory can do at best is not measured, but with --limit copy what the library's own copy does. */
static int measure_on_gpu(struct job *job, const mf_plan *plan, const struct problem_memory *memory,
                          struct result *result)
{
    struct problem_there there;
    double copy_bytes = is_gpu_copy(job) ? result->read + result->written : 0;
    if (problem_there_make(job->device, &job->line, memory, &there) != MF_OK)
        return complain_library();
    mf_status status =
        device_measure(&job->line, &there, plan, job->one_shot, job->seconds, copy_bytes, &job->device_times);
    problem_there_free(&there);
    if (status != MF_OK)
        return complain_library();
    result->runs = job->device_times.runs;
    result->fold = job->device_times.fold;
    result->limit = job->device_times.copy;
    result->ratio = job->device_times.ratio;
    snprintf(result->limit_what, sizeof result->limit_what, "%s", copy_bytes > 0 ? "own copy" : "-");
    return 0;
}

static int measure_beside_limit(struct job *job, const mf_plan *plan, const struct problem_memory *memory,
                                struct result *result)
{
    double reads = result->read, writes = result->written, all = reads + writes;
    if (strcmp(job->limit, "same") != 0) { /* a plain read, or copy, of as many bytes */
        writes = job->limit[0] == 'r' ? 0 : all / 2;
        reads = all - writes;
    }
    struct limit *limit = limit_open(job->device_threads, (size_t)reads, (size_t)writes);
    if (!limit)
        return complain(1, "out of memory: %.0f bytes are needed once more for the limit", all);
    int status = measure(job, plan, memory, limit, result);
    limit_close(limit);
    return status;
}

static int measure_line(struct job *job, struct result *result)
{
    struct problem_memory memory;
    char error[512];
    mf_plan *plan = NULL;
    memset(result, 0, sizeof *result);
    if (problem_plan(job->device, &job->line, job->solver, 0, &plan) != MF_OK)
        return complain_library();
    if (problem_memory_make(&job->line, 0, &memory, error, sizeof error)) {
        mf_plan_destroy(plan);
        return complain(1, "%s", error);
    }
    count_bytes(&job->line, result);
    result->terms = count_terms(plan);
    snprintf(result->solver, sizeof result->solver, "%s", mf_plan_solver(plan));
    int status =
        on_gpu(job) ? measure_on_gpu(job, plan, &memory, result) : measure_beside_limit(job, plan, &memory, result);
    problem_memory_free(&memory);
    mf_plan_destroy(plan);
    return status;
}

/* ---- output ---- */

static void put_shapes(const struct problem_line *line, char *text, size_t size)
{
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < line->input_count && n < size; i++) {
        n += (size_t)snprintf(text + n, size - n, i ? " (" : "(");
        for (int d = 0; d < line->tensor[i].ndim && n < size; d++)
            n += (size_t)snprintf(text + n, size - n, "%s%" PRId64, d ? "," : "", line->tensor[i].shape[d]);
        if (n < size)
            n += (size_t)snprintf(text + n, size - n, ")");
    }
}

static void put_header(const struct job *job)
{
    if (job->json)
        return;
    printf("%s; medians; GB/s of everything read and written once; %s\n", mf_device_describe(job->device),
           !on_gpu(job)                  ? "the limit is plain loops over as many bytes"
           : !strcmp(job->limit, "copy") ? "own copy is the library's map \"a\" over as many bytes"
                                         : "batches of at least 20 ms, caches as they are");
    printf("%-12s %-7s %-26s %-26s %10s %8s %8s %6s  %-13s %s\n", "row", "type", "modes", "shapes", "time", "GB/s",
           "limit", "ratio", "limit is", "solver");
}

static void put_time(double seconds, char *text, size_t size)
{
    if (seconds < 1e-5)
        snprintf(text, size, "%.0f ns", seconds * 1e9);
    else if (seconds < 1e-3)
        snprintf(text, size, "%.1f us", seconds * 1e6);
    else
        snprintf(text, size, "%.2f ms", seconds * 1e3);
}

static void put_result(struct job *job, const char *name, const struct result *r)
{
    char shapes[128], time[32], text[PROBLEM_TEXT];
    double bytes = r->read + r->written;
    put_shapes(&job->line, shapes, sizeof shapes);
    if (!job->json) {
        put_time(r->fold, time, sizeof time);
        printf("%-12s %-7s %-26s %-26s %10s", name, mf_type_name(job->line.tensor[0].dtype), job->line.modes, shapes,
               time);
        if (job->one_shot) /* a call's own cost: memory has no part in it */
            printf(" %8s %8s %6s  %-13s %s", "-", "-", "-", "-", r->solver);
        else if (r->limit <= 0)
            printf(" %8.2f %8s %6s  %-13s %s", bytes / r->fold * 1e-9, "-", "-", "-", r->solver);
        else
            printf(" %8.2f %8.2f %6.2f  %-13s %s", bytes / r->fold * 1e-9, bytes / r->limit * 1e-9, r->ratio,
                   r->limit_what, r->solver);
        if (r->terms > 0 && job->line.input_count > 1) /* a contraction */
            printf("  %.4g G terms/s", r->terms / r->fold * 1e-9);
        printf("\n");
        fflush(stdout);
        return;
    }
    printf("%s  {\"row\": ", job->printed++ ? ",\n" : "");
    show_json_text(stdout, name);
    printf(", \"type\": \"%s\", \"problem\": ", mf_type_name(job->line.tensor[0].dtype));
    show_json_text(stdout, problem_print(&job->line, text, sizeof text));
    printf(", \"seconds\": %.9f, \"gb_per_second\": %.3f, ", r->fold, bytes / r->fold * 1e-9);
    if (r->limit > 0)
        printf("\"limit_gb_per_second\": %.3f, \"ratio\": %.4f, \"limit\": \"%s\", ", bytes / r->limit * 1e-9, r->ratio,
               r->limit_what);
    else
        printf("\"limit_gb_per_second\": null, \"ratio\": null, \"limit\": null, ");
    if (r->terms > 0)
        printf("\"terms_per_second\": %.4g, ", r->terms / r->fold);
    printf("\"bytes\": %.0f, \"runs\": %d, \"solver\": \"%s\", \"threads\": %d, \"device\": ", bytes, r->runs,
           r->solver, job->device_threads);
    show_json_text(stdout, mf_device_describe(job->device));
    printf("}");
    fflush(stdout);
}

/* ---- rows ---- */

/* A row's shapes as tensors of this type: "2048*,8 16" becomes "a=f32[4096,8] b=f32[16]". */
static void row_tensors(const struct row *row, const char *type, double scale, char *text, size_t size)
{
    char name = 'a';
    size_t n = (size_t)snprintf(text, size, "%c=%s[", name, type);
    for (const char *at = row->shapes; *at && n + 32 < size; at++) {
        if (*at == ' ') {
            n += (size_t)snprintf(text + n, size - n, "] %c=%s[", ++name, type);
        } else if (*at == ',') {
            text[n++] = ',';
        } else {
            char *end;
            double extent = (double)strtoll(at, &end, 10);
            extent = *end == '*' ? extent * scale + 0.5 : extent;
            n += (size_t)snprintf(text + n, size - n, "%.0f", extent < 1 ? 1 : (double)(int64_t)extent);
            at = *end == '*' ? end : end - 1;
        }
    }
    snprintf(text + n, size - n, "]");
}

static int bench_text(struct job *job, const char *name, const char *text)
{
    struct result result;
    char error[512];
    if (problem_parse(text, &job->line, error, sizeof error) ||
        problem_complete(job->device, &job->line, error, sizeof error))
        return complain(2, "%s", error);
    progress_say(&job->progress, "measuring %s", name);
    int status = measure_line(job, &result);
    if (!status) {
        progress_end(&job->progress);
        put_result(job, name, &result);
        progress_start(&job->progress, "measuring");
    }
    return status;
}

static int bench_row(struct job *job, const struct row *row, const char *type)
{
    char tensors[512], text[1024];
    DLDataType dtype;
    if (!list_type_named(type, &dtype))
        return complain(2, "--dtype: there is no type \"%s\"; 'modefold info' lists them", type);
    double elements = job->bytes ? (double)job->bytes * 8 / dtype.bits : (double)job->elements;
    row_tensors(row, type, elements / STANDARD_ELEMENTS, tensors, sizeof tensors);
    snprintf(text, sizeof text, "%s | %s | %s", row->modes, row->expression, tensors);
    job->one_shot = row->group == GROUP_calls;
    return bench_text(job, row->name, text);
}

/* Whether --rows asks for this row: "all", groups, names. */
static int is_wanted(const char *wanted, const struct row *row)
{
    size_t length;
    const char *names[3] = {"all", group_names[row->group], row->name};
    for (const char *at = wanted; *at; at += length + (at[length] == ',')) {
        length = strcspn(at, ",");
        for (int i = 0; i < 3; i++)
            if (strlen(names[i]) == length && !strncmp(names[i], at, length))
                return 1;
    }
    return 0;
}

static int bench_rows(struct job *job)
{
    int status = 0, any = 0;
    for (const char *type = job->types; type && !status;) {
        char name[16];
        const char *comma = strchr(type, ',');
        snprintf(name, sizeof name, "%.*s", (int)(comma ? comma - type : 15), type);
        for (int r = 0; r < ROWS && !status; r++)
            if (is_wanted(job->rows, &rows[r])) {
                any = 1;
                status = bench_row(job, &rows[r], name);
            }
        type = comma ? comma + 1 : NULL;
    }
    if (!status && !any)
        return complain(
            2, "--rows takes all, reduce, broadcast, operations, turned, windows, calls or names of rows, not \"%s\"",
            job->rows);
    return status;
}

static int bench(struct job *job, const struct option_list *problems)
{
    int status = 0;
    put_header(job);
    if (job->json)
        printf("[\n");
    progress_start(&job->progress, "measuring");
    for (int i = 0; i < problems->count && !status; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i + 1);
        status = bench_text(job, name, problems->item[i]);
    }
    if (!problems->count)
        status = bench_rows(job);
    progress_end(&job->progress);
    if (job->json)
        printf("\n]\n");
    return status;
}

int command_bench(int argc, char **argv)
{
    struct option_list problems = {0}, define = {0};
    const char *device = NULL, *limit = NULL;
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return complain(1, "out of memory");
    job->rows = "all";
    job->types = "f32";
    job->seconds = 0.5;
    job->elements = STANDARD_ELEMENTS;
    const struct option_spec specs[] = {
        {"rows", OPTION_TEXT, &job->rows},
        {"dtype", OPTION_TEXT, &job->types},
        {"threads", OPTION_NUMBER, &job->threads},
        {"elements", OPTION_NUMBER, &job->elements},
        {"bytes", OPTION_NUMBER, &job->bytes},
        {"seconds", OPTION_REAL, &job->seconds},
        {"solver", OPTION_TEXT, &job->solver},
        {"device", OPTION_TEXT, &device},
        {"limit", OPTION_TEXT, &limit},
        {"define", OPTION_MANY, &define},
        {"json", OPTION_FLAG, &job->json},
        {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &problems);
    job->limit = limit ? limit : "same";
    if (!status && job->elements > (int64_t)1 << 40)
        status = complain(2, "--elements is more than 2^40");
    if (!status && strcmp(job->limit, "same") != 0 && strcmp(job->limit, "read") != 0 &&
        strcmp(job->limit, "copy") != 0)
        status = complain(2, "--limit takes same, read or copy, not \"%s\"", job->limit);
    if (!status)
        status = device_open(device, job->threads, &define, &job->device);
    if (!status && on_gpu(job) && limit && strcmp(job->limit, "copy") != 0)
        status = complain(2, "on a GPU the only limit is copy, the library's own, not \"%s\"", job->limit);
    if (!status) {
        job->device_threads = 1;
        sscanf(mf_device_describe(job->device), "cpu: %d", &job->device_threads);
        status = bench(job, &problems);
    }
    mf_device_close(job->device);
    free(job);
    return status;
}
