/* modefold run: files in, a fold, files or text out. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "fold_files.h"
#include "npy.h"
#include "options.h"
#include "picture.h"
#include "progress.h"
#include "show.h"
#include "tensor_there.h"

/* Everything one call holds; released at one place. */
struct job {
    const char *set, *dtype, *solver, *device_name;
    int64_t threads;
    int as_written, contract, any_order, json;
    const char *tier_name;
    uint32_t tier;
    struct option_list files, define;
    char *modes;
    const char *expression;
    mf_device *device;
    mf_plan *plan;
    struct operands operands;
    struct results results;
    struct array output_file[MF_MAX_OUTPUTS];
    void *output_memory[MF_MAX_OUTPUTS];
    DLTensor output[MF_MAX_OUTPUTS];
    DLTensor input_there[MF_MAX_INPUTS], output_there[MF_MAX_OUTPUTS]; /* on the device */
    double seconds; /* of the fold; copies to a GPU and back are not counted */
};

static int open_inputs(struct job *job, const struct option_list *arguments)
{
    if (arguments->count < 3)
        return complain(2, "run needs MODES, EXPRESSION and at least one input; 'modefold run --help' has examples");
    job->expression = arguments->item[1];
    if (!(job->modes = modes_with_settings(arguments->item[0], job->set)))
        return 1;
    int status = device_open(job->device_name, job->threads, &job->define, &job->device);
    if (status)
        return status;
    int wants = mf_modes_inputs(job->modes), given = arguments->count - 2;
    if (wants < 0)
        return complain_library();
    if (wants != given)
        return complain(2, "the modes string has %d operand%s and %d file%s given", wants, wants == 1 ? "" : "s", given,
                        given == 1 ? " was" : "s were");
    status = operands_open(arguments->item + 2, given, &job->operands);
    return status ? status
                  : results_infer(job->device, job->modes, job->expression, &job->operands, job->dtype, &job->results);
}

/* Temporary files to remove when the user interrupts. */
static const char *volatile temporaries[MF_MAX_OUTPUTS];

static void on_signal(int number)
{
    for (int k = 0; k < MF_MAX_OUTPUTS; k++)
        if (temporaries[k])
            unlink(temporaries[k]);
    signal(number, SIG_DFL);
    raise(number);
}

static void guard_output(int k, const struct array *array)
{
    temporaries[k] = array->npy       ? array->npy->target.temporary
                     : array->picture ? array->picture->target.temporary
                                      : NULL;
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    signal(SIGHUP, on_signal);
}

static int make_memory(struct job *job, int k)
{
    int64_t bytes = (job->results.dtype[k].bits + 7) / 8;
    for (int d = 0; d < job->results.ndim; d++)
        if (__builtin_mul_overflow(bytes, job->results.shape[d], &bytes))
            return complain(1, "the result has more than 2^63 bytes");
    job->output_memory[k] = calloc(1, bytes ? (size_t)bytes : 1);
    if (!job->output_memory[k])
        return complain(1, "out of memory: the result needs %" PRId64 " bytes", bytes);
    job->output[k] = mf_tensor(job->output_memory[k], MF_F32, job->results.ndim, job->results.shape);
    job->output[k].dtype = job->results.dtype[k];
    return 0;
}

static int make_outputs(struct job *job)
{
    char error[512];
    const struct results *r = &job->results;
    for (int k = 0; job->json && k < job->files.count; k++)
        if (!strcmp(job->files.item[k], "-"))
            return complain(2, "-o - and --json both want the standard output");
    if (job->files.count && job->files.count != r->count)
        return complain(2, "the expression has %d result%s and -o stands %d time%s", r->count, r->count == 1 ? "" : "s",
                        job->files.count, job->files.count == 1 ? "" : "s");
    for (int k = 0; k < r->count; k++) {
        if (!job->files.count) {
            if (make_memory(job, k))
                return 1;
            continue;
        }
        if (array_create(job->files.item[k], r->dtype[k], r->ndim, r->shape, &job->output_file[k], error, sizeof error))
            return complain(1, "%s", error);
        guard_output(k, &job->output_file[k]);
        job->output[k] = *job->output_file[k].tensor;
    }
    return 0;
}

static double bytes_moved(const struct job *job)
{
    double bytes = 0;
    for (int i = 0; i < job->operands.count; i++)
        bytes += tensor_bytes(&job->operands.tensor[i]);
    for (int k = 0; k < job->results.count; k++)
        bytes += tensor_bytes(&job->output[k]);
    return bytes;
}

static mf_status send(struct job *job)
{
    mf_status status = MF_OK;
    for (int i = 0; i < job->operands.count && status == MF_OK; i++)
        status = tensor_send(job->device, &job->operands.tensor[i], 1, &job->input_there[i]);
    for (int k = 0; k < job->results.count && status == MF_OK; k++)
        status = tensor_send(job->device, &job->output[k], 0, &job->output_there[k]);
    return status;
}

static mf_status execute(struct job *job)
{
    double start = seconds_now();
    mf_status status = mf_plan_execute_tensors(job->plan, job->input_there, job->output_there, NULL);
    if (status == MF_OK)
        status = mf_device_wait(job->device, NULL);
    job->seconds = seconds_now() - start;
    return status;
}

static int fold(struct job *job)
{
    const uint32_t order = (job->as_written ? MF_ORDER_AS_WRITTEN : 0) | (job->contract ? MF_ORDER_CONTRACT : 0) |
                           (job->any_order ? MF_ORDER_FREE : 0) | job->tier;
    mf_options options = {job->solver, order, (int)job->threads};
    struct progress progress;
    progress_start(&progress, "folding %.1f GB", bytes_moved(job) * 1e-9);
    mf_status status = send(job);
    if (status == MF_OK)
        status = mf_plan_create(job->device, job->modes, job->expression, job->input_there, job->output_there, &options,
                                &job->plan);
    if (status == MF_OK)
        status = execute(job);
    for (int k = 0; k < job->results.count && status == MF_OK; k++)
        status = tensor_fetch(job->device, &job->output_there[k], &job->output[k]);
    progress_end(&progress);
    return status == MF_OK ? 0 : complain_library();
}

static int commit(struct job *job)
{
    char error[512];
    for (int k = 0; k < job->files.count; k++) {
        temporaries[k] = NULL; /* the commit frees the name */
        if (array_commit(&job->output_file[k], error, sizeof error))
            return complain(1, "%s", error);
    }
    return 0;
}

/* Result number k's part of the expression, without blanks around it. */
static void result_text(const char *expression, int k, const char **from, int *length)
{
    const char *at = expression;
    for (int i = 0; i < k; i++)
        at = strchr(at, ';') + 1;
    at += strspn(at, " \t\n");
    *from = at;
    *length = (int)strcspn(at, ";");
    while (*length && strchr(" \t\n", at[*length - 1]))
        --*length;
}

static void show_results(const struct job *job)
{
    for (int k = 0; k < job->results.count; k++) {
        const char *text;
        int length;
        result_text(job->expression, k, &text, &length);
        if (job->results.count > 1)
            printf("%s%.*s\n", k ? "\n" : "", length, text);
        show_array(stdout, &job->output[k]);
    }
}

/* How many outputs of a log-space product took which way. */
static void show_tiers(const mf_plan *plan)
{
    static const char *const names[] = {"certified", "wide", "exact", "unchecked"};
    int any = 0;
    for (int t = 0; t < 4; t++) {
        const int64_t count = mf_plan_tier_count(plan, (mf_tier)t);
        if (count)
            printf("%s\"%s\": %lld", any++ ? ", " : ", \"tiers\": {", names[t], (long long)count);
    }
    printf("%s", any ? "}" : "");
}

static void show_json(const struct job *job)
{
    double bytes = bytes_moved(job);
    printf("{\"modes\": ");
    show_json_text(stdout, job->modes);
    printf(", \"expression\": ");
    show_json_text(stdout, job->expression);
    printf(", \"device\": ");
    show_json_text(stdout, mf_device_describe(job->device));
    printf(", \"solver\": \"%s\"", mf_plan_solver(job->plan));
    show_tiers(job->plan);
    printf(", \"seconds\": %.9f, \"bytes\": %.0f, \"gb_per_second\": %.3f, \"results\": [", job->seconds, bytes,
           job->seconds > 0 ? bytes * 1e-9 / job->seconds : 0);
    for (int k = 0; k < job->results.count; k++) {
        const char *text;
        int length;
        char *copy;
        result_text(job->expression, k, &text, &length);
        copy = strndup(text, (size_t)length);
        printf("%s{\"expression\": ", k ? ", " : "");
        show_json_text(stdout, copy ? copy : "");
        free(copy);
        printf(", \"shape\": ");
        show_shape(stdout, &job->output[k], 1);
        printf(", \"dtype\": \"%s\", \"file\": ", mf_type_name(job->output[k].dtype));
        if (job->files.count)
            show_json_text(stdout, job->files.item[k]);
        else
            printf("null");
        if (tensor_elements(&job->output[k]) <= SHOW_ELEMENTS) {
            printf(", \"data\": ");
            show_json_array(stdout, &job->output[k]);
        }
        printf("}");
    }
    printf("]}\n");
}

static void release(struct job *job)
{
    for (int k = 0; k < MF_MAX_OUTPUTS; k++)
        temporaries[k] = NULL;
    mf_plan_destroy(job->plan);
    for (int i = 0; i < MF_MAX_INPUTS; i++)
        tensor_forget(job->device, &job->input_there[i]);
    for (int k = 0; k < MF_MAX_OUTPUTS; k++) {
        tensor_forget(job->device, &job->output_there[k]);
        array_close(&job->output_file[k]);
        free(job->output_memory[k]);
    }
    operands_close(&job->operands);
    mf_device_close(job->device);
    free(job->modes);
    free(job);
}

int command_run(int argc, char **argv)
{
    struct option_list arguments = {0};
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return complain(1, "out of memory");
    const struct option_spec specs[] = {
        {"o", OPTION_MANY, &job->files},
        {"output", OPTION_MANY, &job->files},
        {"set", OPTION_TEXT, &job->set},
        {"dtype", OPTION_TEXT, &job->dtype},
        {"threads", OPTION_NUMBER, &job->threads},
        {"solver", OPTION_TEXT, &job->solver},
        {"device", OPTION_TEXT, &job->device_name},
        {"define", OPTION_MANY, &job->define},
        {"order-as-written", OPTION_FLAG, &job->as_written},
        {"order-contract", OPTION_FLAG, &job->contract},
        {"order-free", OPTION_FLAG, &job->any_order},
        {"tier", OPTION_TEXT, &job->tier_name},
        {"json", OPTION_FLAG, &job->json},
        {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &arguments);
    if (!status)
        status = tier_parse(job->tier_name, &job->tier);
    if (!status)
        status = open_inputs(job, &arguments);
    if (!status)
        status = make_outputs(job);
    if (!status)
        status = fold(job);
    if (!status)
        status = commit(job);
    if (!status && job->json)
        show_json(job);
    else if (!status && !job->files.count)
        show_results(job);
    release(job);
    return status;
}
