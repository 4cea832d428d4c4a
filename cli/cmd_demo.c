/* modefold demo: ten folds of large arrays, each checked against plain loops and timed beside a plain read or copy. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "demo_checks.h"
#include "fold_files.h"
#include "limit.h"
#include "options.h"
#include "problem.h"
#include "progress.h"
#include "show.h"

static const struct row {
    const char *what, *problem;
    demo_check *check;
} rows[] = {
    {"the sum of everything", "i-> | sum(a) | a=f32[33554432] o=f32[]", check_sum_all},
    {"sums of the rows", "ij->i | sum(a) | a=f32[8192,4096] o=f32[8192]", check_sum_rows},
    {"sums of the columns", "ij->j | sum(a) | a=f32[8192,4096] o=f32[4096]", check_sum_columns},
    {"every second mode", "abcde->bd | sum(a) | a=f32[32,32,32,32,32] o=f32[32,32]", check_sum_interleaved},
    {"two columns of ones", "ij->j | sum(a) | a=f32[33554432,2] o=f32[2] | data=ones", check_ones},
    {"all runs of 32", "(i+j)->i with j=32 | sum(a) | a=f32[16777216] o=f32[16777185]", check_runs},
    {"channel statistics", "nchw->c | mean(a); var(a); max(a) | a=f32[64,128,64,64] o=f32[128] o1=f32[128] o2=f32[128]",
     check_channels},
    {"a row added to all", "ij,j->ij | a+b | a=f32[8192,4096] b=f32[4096] o=f32[8192,4096]", check_add_row},
    {"where the greatest is", "ij->i | argmax(a) | a=f32[8192,4096] o=i64[8192]", check_argmax},
    {"sums of a picture", "hwc->c | sum(a) | a=u8[6000,8000,3] o=u64[3]", check_bytes},
};

enum { ROWS = sizeof rows / sizeof rows[0], RUNS = 9, MOST_ISAS = 5 };

struct demo {
    mf_device *device;
    mf_device *other[MOST_ISAS]; /* one thread, one instruction set each */
    int other_count, threads;
    char other_names[64];
    int64_t checked, wrong, other_bits;
    struct problem_line line;
    struct problem_memory memory;
};

/* A device for every instruction set that this machine has. */
static void open_others(struct demo *demo)
{
    static const char *const names[MOST_ISAS] = {"avx512", "avx2", "sse2", "neon", "scalar"};
    const char *before = getenv("MODEFOLD_ISA");
    char *kept = before ? strdup(before) : NULL;
    for (int i = 0; i < MOST_ISAS; i++) {
        size_t n = strlen(demo->other_names);
        setenv("MODEFOLD_ISA", names[i], 1);
        if (mf_device_open("cpu:1", &demo->other[demo->other_count]) != MF_OK)
            continue;
        demo->other_count++;
        snprintf(demo->other_names + n, sizeof demo->other_names - n, "%s%s", n ? ", " : "", names[i]);
    }
    if (kept)
        setenv("MODEFOLD_ISA", kept, 1);
    else
        unsetenv("MODEFOLD_ISA");
    free(kept);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Medians of the fold's and the limit's times, taken in turns. */
static int time_row(struct demo *demo, struct limit *limit, double *fold_time, double *limit_time)
{
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    double fold[RUNS], plain[RUNS];
    mf_plan *plan;
    if (problem_plan(demo->device, &demo->line, NULL, 0, &plan) != MF_OK)
        return complain_library();
    problem_pointers(&demo->line, &demo->memory, in, out);
    mf_status status = mf_plan_execute(plan, in, out, NULL);
    limit_choose(limit);
    for (int i = 0; i < RUNS && status == MF_OK; i++) {
        double start = seconds_now();
        status = mf_plan_execute(plan, in, out, NULL);
        fold[i] = seconds_now() - start;
        plain[i] = limit_run(limit);
    }
    mf_plan_destroy(plan);
    if (status != MF_OK)
        return complain_library();
    qsort(fold, RUNS, sizeof *fold, by_value);
    qsort(plain, RUNS, sizeof *plain, by_value);
    *fold_time = fold[RUNS / 2];
    *limit_time = plain[RUNS / 2];
    return 0;
}

/* Runs the fold again on one thread with each instruction set; the outputs must not change in a single bit. */
static int same_bits(struct demo *demo)
{
    struct problem_difference difference;
    problem_memory_expect(&demo->memory);
    for (int i = 0; i < demo->other_count; i++) {
        problem_memory_reset(&demo->memory);
        if (problem_run(demo->other[i], &demo->line, &demo->memory, NULL, 0, 0) != MF_OK)
            return 0;
        if (problem_compare(&demo->line, &demo->memory, &difference))
            return 0;
    }
    return 1;
}

static void check_row(struct demo *demo, const struct row *row, struct demo_verdict *verdict)
{
    struct demo_arrays arrays = {{NULL}, {NULL}, demo->line.tensor[0].shape};
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    problem_pointers(&demo->line, &demo->memory, in, out);
    for (int i = 0; i < demo->line.input_count && i < 2; i++)
        arrays.in[i] = in[i];
    for (int k = 0; k < demo->line.output_count && k < 4; k++)
        arrays.out[k] = out[k];
    memset(verdict, 0, sizeof *verdict);
    row->check(&arrays, verdict);
    demo->checked += verdict->checked;
    demo->wrong += verdict->wrong + !verdict->checked;
}

static double total_bytes(const struct problem_line *line, int outputs)
{
    double bytes = 0;
    for (int i = 0; i < (outputs ? line->output_count : line->input_count); i++) {
        DLTensor t = problem_dltensor(&line->tensor[(outputs ? MF_MAX_INPUTS : 0) + i]);
        bytes += tensor_bytes(&t);
    }
    return bytes;
}

static void put_row(const struct demo *demo, const struct row *row, double fold, double plain,
                    const struct demo_verdict *verdict, int same)
{
    char check[64];
    double bytes = total_bytes(&demo->line, 0) + total_bytes(&demo->line, 1);
    if (verdict->wrong || !verdict->checked)
        snprintf(check, sizeof check, "WRONG: %" PRId64 " of %" PRId64, verdict->wrong, verdict->checked);
    else if (verdict->worst > 0)
        snprintf(check, sizeof check, "error %.*f %% of bound", verdict->worst < 0.01 ? 2 : 0, 100 * verdict->worst);
    else
        snprintf(check, sizeof check, "exact");
    printf("%-22s %-18s %-23s %8.2f ms %6.2f %6.2f %6.2f  %-20s %s\n", row->what, demo->line.modes,
           demo->line.expression, fold * 1e3, bytes / fold * 1e-9, bytes / plain * 1e-9, plain / fold, check,
           same ? "same bits" : "OTHER BITS");
    fflush(stdout);
}

static int run_row(struct demo *demo, const struct row *row)
{
    char error[512];
    double fold = 0, plain = 0;
    struct demo_verdict verdict;
    if (problem_parse(row->problem, &demo->line, error, sizeof error) ||
        problem_memory_make(&demo->line, 1, &demo->memory, error, sizeof error))
        return complain(1, "%s", error);
    struct limit *limit =
        limit_open(demo->threads, (size_t)total_bytes(&demo->line, 0), (size_t)total_bytes(&demo->line, 1));
    int status = limit ? time_row(demo, limit, &fold, &plain) : complain(1, "out of memory");
    limit_close(limit);
    if (!status) {
        check_row(demo, row, &verdict);
        int same = same_bits(demo);
        demo->other_bits += !same;
        put_row(demo, row, fold, plain, &verdict, same);
    }
    problem_memory_free(&demo->memory);
    return status;
}

static int run_rows(struct demo *demo)
{
    double start = seconds_now();
    struct progress progress;
    int version = mf_version();
    printf("modefold %d.%d.%d on %s\n", version / 10000, version / 100 % 100, version % 100,
           mf_device_describe(demo->device));
    printf("GB/s counts every byte read or written once; plain is a plain read (or copy) of as many bytes by %d "
           "thread%s\n\n",
           demo->threads, demo->threads == 1 ? "" : "s");
    printf("%-22s %-18s %-23s %11s %6s %6s %6s  %-20s %s\n", "what", "modes", "expression", "time", "GB/s", "plain",
           "ratio", "against plain loops", "elsewhere");
    for (int r = 0; r < ROWS; r++) {
        progress_start(&progress, "%s", rows[r].what);
        int status = run_row(demo, &rows[r]);
        progress_end(&progress);
        if (status)
            return status;
    }
    printf("\nchecked: %d folds, %" PRId64 " results against plain loops in double precision, %" PRId64 " wrong "
           "(bound of a sum: 2^-24 sum|x| for each rounding of docs/numerics.md's order);\n",
           ROWS, demo->checked, demo->wrong);
    printf("         the same bits on %d thread%s and on one with %s: %s; %.0f s in all\n", demo->threads,
           demo->threads == 1 ? "" : "s", demo->other_names, demo->other_bits ? "NO" : "yes", seconds_now() - start);
    return demo->wrong || demo->other_bits;
}

int command_demo(int argc, char **argv)
{
    struct option_list rest = {0};
    int64_t threads = 0;
    struct demo *demo = calloc(1, sizeof *demo);
    if (!demo)
        return complain(1, "out of memory");
    const struct option_spec specs[] = {{"threads", OPTION_NUMBER, &threads}, {NULL, OPTION_FLAG, NULL}};
    int status = options_parse(argc, argv, specs, &rest);
    if (!status && rest.count)
        status = complain(2, "demo takes no \"%s\"", rest.item[0]);
    if (!status)
        status = device_open(NULL, threads, NULL, &demo->device);
    if (!status) {
        demo->threads = 1;
        sscanf(mf_device_describe(demo->device), "cpu: %d", &demo->threads);
        open_others(demo);
        status = run_rows(demo);
    }
    for (int i = 0; i < demo->other_count; i++)
        mf_device_close(demo->other[i]);
    mf_device_close(demo->device);
    free(demo);
    return status;
}
