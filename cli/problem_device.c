/* A problem on a GPU: its memories go there, the outputs' come back. */
#include "problem.h"

struct there {
    mf_device *device;
    void *memory[PROBLEM_TENSORS];
};

static mf_status send(const struct problem_memory *memory, struct there *there)
{
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        const struct problem_block *block = &memory->block[t];
        mf_status status = MF_OK;
        if (block->base)
            status = mf_memory_create(there->device, (int64_t)block->size, &there->memory[t]);
        if (status == MF_OK && block->base)
            status = mf_memory_write(there->device, there->memory[t], 0, block->base, (int64_t)block->size);
        if (status != MF_OK)
            return status;
    }
    return MF_OK;
}

/* Operands too: that they were not written is looked at here. */
static mf_status receive(const struct problem_memory *memory, const struct there *there)
{
    mf_status status = mf_device_wait(there->device, NULL);
    for (int t = 0; t < PROBLEM_TENSORS && status == MF_OK; t++) {
        const struct problem_block *block = &memory->block[t];
        if (block->base)
            status = mf_memory_read(there->device, there->memory[t], 0, block->base, (int64_t)block->size);
    }
    return status;
}

static DLTensor tensor_there(const struct problem_line *line, const struct there *there, int t)
{
    DLTensor tensor = problem_dltensor(&line->tensor[t]);
    tensor.data = there->memory[line->tensor[t].memory];
    tensor.byte_offset = (uint64_t)(line->tensor[t].offset * line->tensor[t].item);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(there->device);
    return tensor;
}

static mf_status run(const struct problem_line *line, const struct there *there, const char *solver, int use_fold)
{
    DLTensor inputs[MF_MAX_INPUTS], outputs[MF_MAX_OUTPUTS];
    for (int i = 0; i < line->input_count; i++)
        inputs[i] = tensor_there(line, there, i);
    for (int k = 0; k < line->output_count; k++)
        outputs[k] = tensor_there(line, there, MF_MAX_INPUTS + k);
    if (use_fold)
        return mf_fold(there->device, line->modes, line->expression, inputs, outputs);
    mf_plan *plan;
    mf_options options = {solver, line->as_written ? MF_ORDER_AS_WRITTEN : 0, 0};
    mf_status status = mf_plan_create(there->device, line->modes, line->expression, inputs, outputs, &options, &plan);
    if (status != MF_OK)
        return status;
    status = mf_plan_execute_tensors(plan, inputs, outputs, NULL);
    if (status == MF_OK) /* the plan's memory is in use until then */
        status = mf_device_wait(there->device, NULL);
    mf_plan_destroy(plan);
    return status;
}

mf_status problem_run_on_device(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                                const char *solver, int use_fold)
{
    struct there there = {device, {0}};
    mf_status status = send(memory, &there);
    if (status == MF_OK)
        status = run(line, &there, solver, use_fold);
    if (status == MF_OK)
        status = receive(memory, &there);
    for (int t = 0; t < PROBLEM_TENSORS; t++)
        mf_memory_destroy(device, there.memory[t]);
    return status;
}
