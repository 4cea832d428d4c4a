/* A problem on a GPU: its memories go there with their guards, and come back. */
#include "problem.h"

#include <string.h>

static mf_status send(const struct problem_block *block, mf_device *device, void **there)
{
    int64_t size = (int64_t)block->size + 2 * PROBLEM_GUARD;
    mf_status status = mf_memory_create(device, size, there);
    if (status != MF_OK)
        return status;
    problem_guards_open(block);
    status = mf_memory_write(device, *there, 0, block->base - PROBLEM_GUARD, size);
    problem_guards_close(block);
    return status;
}

/* Operands too: that they were not written is looked at here. */
static mf_status receive(const struct problem_memory *memory, const struct problem_there *there)
{
    mf_status status = mf_device_wait(there->device, NULL);
    for (int t = 0; t < PROBLEM_TENSORS && status == MF_OK; t++) {
        const struct problem_block *block = &memory->block[t];
        if (!block->base)
            continue;
        problem_guards_open(block);
        status = mf_memory_read(there->device, there->memory[t], 0, block->base - PROBLEM_GUARD,
                                (int64_t)block->size + 2 * PROBLEM_GUARD);
        problem_guards_close(block);
    }
    return status;
}

static DLTensor tensor_there(const struct problem_line *line, const struct problem_there *there, int t)
{
    DLTensor tensor = problem_dltensor(&line->tensor[t]);
    tensor.data = there->memory[line->tensor[t].memory];
    tensor.byte_offset = (uint64_t)(PROBLEM_GUARD + line->tensor[t].offset * line->tensor[t].item);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(there->device);
    return tensor;
}

mf_status problem_there_make(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                             struct problem_there *there)
{
    memset(there, 0, sizeof *there);
    there->device = device;
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        mf_status status = memory->block[t].base ? send(&memory->block[t], device, &there->memory[t]) : MF_OK;
        if (status != MF_OK) {
            problem_there_free(there);
            return status;
        }
    }
    for (int i = 0; i < line->input_count; i++)
        there->input[i] = tensor_there(line, there, i);
    for (int k = 0; k < line->output_count; k++)
        there->output[k] = tensor_there(line, there, MF_MAX_INPUTS + k);
    return MF_OK;
}

void problem_there_free(struct problem_there *there)
{
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        mf_memory_destroy(there->device, there->memory[t]);
        there->memory[t] = NULL;
    }
}

static mf_status run(const struct problem_line *line, const struct problem_there *there, const char *solver,
                     int use_fold)
{
    if (use_fold)
        return mf_fold(there->device, line->modes, line->expression, there->input, there->output);
    mf_plan *plan;
    mf_options options = {solver, line->order, 0};
    mf_status status =
        mf_plan_create(there->device, line->modes, line->expression, there->input, there->output, &options, &plan);
    if (status != MF_OK)
        return status;
    status = mf_plan_execute_tensors(plan, there->input, there->output, NULL);
    if (status == MF_OK) /* the plan's memory is in use until then */
        status = mf_device_wait(there->device, NULL);
    mf_plan_destroy(plan);
    return status;
}

mf_status problem_run_on_device(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                                const char *solver, int use_fold)
{
    struct problem_there there;
    mf_status status = problem_there_make(device, line, memory, &there);
    if (status != MF_OK)
        return status;
    status = problem_define(device, line);
    if (status == MF_OK)
        status = run(line, &there, solver, use_fold);
    mf_status received = receive(memory, &there); /* after a refusal too: nothing may have been written */
    problem_there_free(&there);
    return status != MF_OK ? status : received;
}
