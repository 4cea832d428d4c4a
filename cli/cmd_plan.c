/* modefold plan: what would run, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "fold_files.h"
#include "options.h"
#include "problem.h"

struct job {
    const char *set, *dtype, *solver, *device_name;
    int64_t threads;
    int as_written, contract, any_order;
    const char *tier_name;
    uint32_t tier;
    char *modes;
    mf_device *device;
};

/* The tensors are meant to be in the device's memory. */
static int describe(const struct job *job, const char *expression, DLTensor *inputs, int input_count, DLTensor *outputs,
                    int output_count)
{
    const uint32_t order = (job->as_written ? MF_ORDER_AS_WRITTEN : 0) | (job->contract ? MF_ORDER_CONTRACT : 0) |
                           (job->any_order ? MF_ORDER_FREE : 0) | job->tier;
    mf_options options = {job->solver, order, (int)job->threads};
    mf_plan *plan;
    for (int i = 0; i < input_count; i++)
        inputs[i].device.device_type = (DLDeviceType)mf_device_kind(job->device);
    for (int k = 0; k < output_count; k++)
        outputs[k].device.device_type = (DLDeviceType)mf_device_kind(job->device);
    if (mf_plan_create(job->device, job->modes, expression, inputs, outputs, &options, &plan) != MF_OK)
        return complain_library();
    puts(mf_plan_describe(plan));
    mf_plan_destroy(plan);
    return 0;
}

/* The inputs are known: row-major outputs of the shape and types that the fold has. */
static int plan_inferred(struct job *job, const char *expression, struct operands *operands)
{
    struct results results;
    DLTensor outputs[MF_MAX_OUTPUTS];
    int status = results_infer(job->device, job->modes, expression, operands, job->dtype, &results);
    for (int k = 0; !status && k < results.count; k++) {
        outputs[k] = mf_tensor(NULL, MF_F32, results.ndim, results.shape);
        outputs[k].dtype = results.dtype[k];
    }
    return status ? status : describe(job, expression, operands->tensor, operands->count, outputs, results.count);
}

/* MODES EXPRESSION a=f32[...] ... */
static int plan_tensors(struct job *job, const struct option_list *arguments)
{
    struct problem_line *line = malloc(sizeof *line);
    int status = line ? problem_of_arguments(job->modes, arguments, line) : complain(1, "out of memory");
    if (!status) {
        struct operands operands = {0};
        DLTensor outputs[MF_MAX_OUTPUTS];
        operands.count = line->input_count;
        for (int i = 0; i < line->input_count; i++)
            operands.tensor[i] = problem_dltensor(&line->tensor[i]);
        for (int k = 0; k < line->output_count; k++)
            outputs[k] = problem_dltensor(&line->tensor[MF_MAX_INPUTS + k]);
        status = line->output_count
                     ? describe(job, line->expression, operands.tensor, operands.count, outputs, line->output_count)
                     : plan_inferred(job, line->expression, &operands);
    }
    free(line);
    return status;
}

static int plan_files(struct job *job, const struct option_list *arguments)
{
    struct operands operands;
    int status = operands_open(arguments->item + 2, arguments->count - 2, &operands);
    if (status)
        return status;
    status = plan_inferred(job, arguments->item[1], &operands);
    operands_close(&operands);
    return status;
}

/* A whole problem in one argument. */
static int plan_problem(struct job *job, const char *text)
{
    struct problem_line *line = malloc(sizeof *line);
    mf_plan *plan = NULL;
    char error[512];
    int status = 0;
    if (!line)
        return complain(1, "out of memory");
    if (problem_parse(text, line, error, sizeof error) || problem_complete(job->device, line, error, sizeof error))
        status = complain(2, "%s", error);
    else if (problem_plan(job->device, line, job->solver, (int)job->threads, &plan) != MF_OK)
        status = complain_library();
    else
        puts(mf_plan_describe(plan));
    mf_plan_destroy(plan);
    free(line);
    return status;
}

int command_plan(int argc, char **argv)
{
    struct job job = {0};
    struct option_list arguments = {0}, define = {0};
    const struct option_spec specs[] = {
        {"set", OPTION_TEXT, &job.set},
        {"dtype", OPTION_TEXT, &job.dtype},
        {"threads", OPTION_NUMBER, &job.threads},
        {"solver", OPTION_TEXT, &job.solver},
        {"device", OPTION_TEXT, &job.device_name},
        {"define", OPTION_MANY, &define},
        {"order-as-written", OPTION_FLAG, &job.as_written},
        {"order-contract", OPTION_FLAG, &job.contract},
        {"order-free", OPTION_FLAG, &job.any_order},
        {"tier", OPTION_TEXT, &job.tier_name},
        {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &arguments);
    if (!status)
        status = tier_parse(job.tier_name, &job.tier);
    if (!status && arguments.count != 1 && arguments.count < 3)
        status =
            complain(2, "plan needs MODES, EXPRESSION and inputs, or one problem; 'modefold plan --help' has examples");
    if (!status)
        status = device_open(job.device_name, job.threads, &define, &job.device);
    if (!status && arguments.count > 1 && !(job.modes = modes_with_settings(arguments.item[0], job.set)))
        status = 1;
    if (!status)
        status = arguments.count == 1                   ? plan_problem(&job, arguments.item[0])
                 : is_written_tensor(arguments.item[2]) ? plan_tensors(&job, &arguments)
                                                        : plan_files(&job, &arguments);
    free(job.modes);
    mf_device_close(job.device);
    return status;
}
