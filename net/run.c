/* Running a network's plan: pictures become the plane of layer -1, then step follows step in one stream. */
#include "plan.h"

#include "../src/plan.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- the pictures ---- */

/* A form of pictures: type and strides of batch x height x width x channels, and the fold that takes such ones. */
struct input_form {
    mf_plan *fold;
    DLDataType type;
    int64_t stride[4];
};

/* Of u8 and of f32, row-major, for as long as the plan; others make room for each other. */
enum { OWN_FORMS = 2, FORMS = 4 };

static mf_status check_input(const mf_net_plan *plan, const DLTensor *input, const char *function)
{
    if (!plan || !input || !input->data || !input->shape)
        return mf_fail(MF_ERROR_ARGUMENT, "%s: %s is null", function, !plan ? "the plan" : "the input");
    const mf_net *net = plan->net;
    const int is_float = input->dtype.code == kDLFloat || input->dtype.code == kDLBfloat;
    if (!is_float && !(input->dtype.code == kDLUInt && input->dtype.bits == 8))
        return mf_fail(MF_ERROR_TYPE, "the pictures are of type %s, and only u8 and floats are taken",
                       mf_type_name(input->dtype) ? mf_type_name(input->dtype) : "unknown");
    const int64_t *shape = input->shape + (input->ndim == 4);
    const int64_t batch = input->ndim == 4 ? input->shape[0] : 1;
    if (input->ndim < 3 || input->ndim > 4)
        return mf_fail(MF_ERROR_SHAPE, "the pictures have %d dimensions, not [batch,] height, width, channels",
                       input->ndim);
    if (batch == plan->batch && shape[0] == net->h && shape[1] == net->w && shape[2] == net->c)
        return MF_OK;
    return mf_fail(MF_ERROR_SHAPE,
                   "%lld pictures of %lld x %lld x %lld came and the plan is for %lld of %lld x %lld x "
                   "%lld",
                   (long long)batch, (long long)shape[0], (long long)shape[1], (long long)shape[2],
                   (long long)plan->batch, (long long)net->h, (long long)net->w, (long long)net->c);
}

/* Whether the pictures are where the device reads, or on the CPU where they will be copied. */
static mf_status check_place(const mf_net_plan *plan, const DLTensor *input, int copied)
{
    const int memory = mf_tensor_memory(input);
    if (mf_device_reads(plan->device, memory) || (copied && memory == kDLCPU))
        return MF_OK;
    return mf_fail(MF_ERROR_UNSUPPORTED, "the pictures are in the memory of DLPack device type %d, and %s reads %d%s",
                   memory, mf_device_describe(plan->device), mf_device_kind(plan->device),
                   memory == kDLCPU ? "; mf_net_plan_run copies them there" : "");
}

static void row_major(const int64_t *shape, int64_t *stride)
{
    int64_t items = 1;
    for (int d = 3; d >= 0; items *= shape[d--])
        stride[d] = items;
}

/* The pictures as batch x height x width x channels; the stride of a dimension of one place says nothing. */
static void view_input(struct view *view, const mf_net_plan *plan, const DLTensor *input)
{
    const mf_net *net = plan->net;
    const int64_t shape[] = {plan->batch, net->h, net->w, net->c};
    const int missing = 4 - input->ndim;
    memcpy(view->shape, shape, sizeof shape);
    row_major(shape, view->stride);
    for (int d = missing; input->strides && d < 4; d++)
        if (shape[d] > 1)
            view->stride[d] = input->strides[d - missing];
    view->tensor = *input;
    view->tensor.ndim = 4;
    view->tensor.shape = view->shape;
    view->tensor.strides = view->stride;
}

/* Pictures in the CPU's memory, to a GPU: one copy. */
static mf_status upload(mf_net_plan *plan, struct view *input)
{
    int64_t wanted[4];
    row_major(input->shape, wanted);
    if (memcmp(wanted, input->stride, sizeof wanted) != 0)
        return mf_fail(MF_ERROR_UNSUPPORTED, "pictures that go to %s have to be row-major",
                       mf_device_describe(plan->device));
    const int64_t bytes = wanted[0] * plan->batch * (input->tensor.dtype.bits / 8);
    if (bytes > plan->upload_bytes) {
        if (plan->upload)
            mf_memory_destroy(plan->device, plan->upload);
        plan->bytes -= plan->upload_bytes;
        plan->upload = NULL;
        plan->upload_bytes = 0;
        MF_TRY(mf_net_memory(plan, bytes, &plan->upload));
        plan->upload_bytes = bytes;
    }
    MF_TRY(mf_memory_write(plan->device, plan->upload, 0, (const char *)input->tensor.data + input->tensor.byte_offset,
                           bytes));
    input->tensor.data = plan->upload;
    input->tensor.byte_offset = 0;
    input->tensor.device.device_type = (DLDeviceType)mf_device_kind(plan->device);
    return MF_OK;
}

/* ---- how they become the plane ---- */

enum { COLOURS = 3, OPERANDS = COLOURS + 1 };

/* On a GPU pixels of three channels have more, which are zero: writing whole pixels is faster than a part of each, as
 * memory takes 32 bytes at once. Then channels are operands of their own, and the last operand tells the output's. */
static int writes_pixels(const mf_net_plan *plan)
{
    return !plan->reads_pictures && mf_device_kind(plan->device) != kDLCPU && plan->net->c == COLOURS &&
           mf_plane(plan, -1)->pitch > COLOURS && mf_plane(plan, -1)->pitch <= UINT8_MAX;
}

static mf_status number_channels(mf_net_plan *plan)
{
    uint8_t number[UINT8_MAX];
    const int64_t pitch = mf_plane(plan, -1)->pitch;
    for (int64_t c = 0; c < pitch; c++)
        number[c] = (uint8_t)c;
    MF_TRY(mf_net_memory(plan, pitch, &plan->channels));
    return mf_memory_write(plan->device, plan->channels, 0, number, pitch);
}

/* The fold's operands and output. */
static void view_picture(const mf_net_plan *plan, const struct view *input, struct view *view, DLTensor in[OPERANDS],
                         struct view *to)
{
    const int64_t pitch = mf_plane(plan, -1)->pitch, one = 1;
    mf_view_plane(to, plan, mf_plane(plan, -1), 0);
    in[0] = input->tensor;
    if (!plan->channels)
        return;
    to->shape[3] = pitch;
    for (int c = 0; c < COLOURS; c++) {
        in[c] = input->tensor;
        in[c].ndim = 3;
        in[c].byte_offset += (uint64_t)(c * input->stride[3] * (input->tensor.dtype.bits / 8));
    }
    mf_view_make(view, plan, MF_U8, plan->channels, 0, 1, &pitch, &one);
    in[COLOURS] = view->tensor;
}

static mf_status make_form(mf_net_plan *plan, struct input_form *form, const struct view *input)
{
    DLTensor in[OPERANDS];
    struct view numbers, to;
    struct step step = {.kind = STEP_CONV};
    mf_net_count(plan, form->fold, -1);
    mf_plan_destroy(form->fold);
    form->fold = NULL;
    form->type = input->tensor.dtype;
    memcpy(form->stride, input->stride, sizeof form->stride);
    if (plan->reads_pictures) {
        MF_TRY(mf_step_picture_fold(plan, &step, input));
        form->fold = step.fold;
        return MF_OK;
    }
    view_picture(plan, input, &numbers, in, &to);
    char text[4 * MF_STEP_TEXT];
    snprintf(text, sizeof text, "%s%s",
             plan->channels ? "where(d==0,f32(a),where(d==1,f32(b),where(d==2,f32(c),0)))" : "f32(a)",
             form->type.code == kDLUInt ? "/255" : "");
    mf_rounded_text(plan, mf_plane(plan, -1), text, sizeof text);
    MF_TRY(mf_plan_create(plan->device, plan->channels ? "nhw,nhw,nhw,c->nhwc" : "nhwc->nhwc", text, in, &to.tensor,
                          &plan->options, &form->fold));
    mf_net_count(plan, form->fold, 1);
    return MF_OK;
}

/* Pictures of this type, row-major, in memory that is not there yet. */
static void view_any(struct view *view, const mf_net_plan *plan, mf_type type)
{
    DLTensor given = mf_tensor(NULL, type, 4, NULL);
    given.device.device_type = (DLDeviceType)mf_device_kind(plan->device);
    view_input(view, plan, &given);
}

mf_status mf_net_try_pictures(mf_net_plan *plan)
{
    struct step step = {.kind = STEP_CONV};
    struct view input;
    view_any(&input, plan, MF_F32);
    const mf_status status = mf_step_picture_fold(plan, &step, &input);
    plan->reads_pictures = status == MF_OK;
    mf_net_count(plan, step.fold, -1);
    mf_plan_destroy(step.fold);
    return status == MF_ERROR_UNSUPPORTED ? MF_OK : status;
}

/* The fold for such pictures, which is made where it is not there. */
static mf_status find_form(mf_net_plan *plan, const struct view *input, const mf_plan **fold)
{
    struct input_form *form = plan->form;
    int f = 0;
    while (f < FORMS && !(form[f].fold && !memcmp(&form[f].type, &input->tensor.dtype, sizeof form[f].type) &&
                          !memcmp(form[f].stride, input->stride, sizeof form[f].stride)))
        f++;
    if (f == FORMS) {
        f = plan->next_form;
        plan->next_form = f + 1 < FORMS ? f + 1 : OWN_FORMS;
        MF_TRY(make_form(plan, &form[f], input));
    }
    *fold = form[f].fold;
    return MF_OK;
}

mf_status mf_net_plan_inputs(mf_net_plan *plan)
{
    static const mf_type types[OWN_FORMS] = {MF_U8, MF_F32};
    struct view input;
    plan->form = mf_calloc(sizeof *plan->form * FORMS);
    plan->next_form = OWN_FORMS;
    if (!plan->form)
        return MF_ERROR_MEMORY;
    if (writes_pixels(plan))
        MF_TRY(number_channels(plan));
    for (int f = 0; f < OWN_FORMS; f++) {
        view_any(&input, plan, types[f]);
        MF_TRY(make_form(plan, &plan->form[f], &input));
    }
    return MF_OK;
}

const mf_plan *mf_net_picture_fold(const mf_net_plan *plan)
{
    return plan->form[OWN_FORMS - 1].fold;
}

void mf_net_forget_inputs(mf_net_plan *plan)
{
    for (int f = 0; plan->form && f < FORMS; f++)
        mf_plan_destroy(plan->form[f].fold);
    mf_free(plan->form);
    if (plan->upload)
        mf_memory_destroy(plan->device, plan->upload);
    if (plan->channels)
        mf_memory_destroy(plan->device, plan->channels);
}

mf_status mf_step_run_pictures(const mf_net_plan *plan, const struct step *step, void *stream)
{
    const DLTensor in[STEP_INPUTS] = {plan->picture.tensor, step->in[1].tensor, step->in[2].tensor};
    return mf_plan_execute_tensors(plan->taken, in, &step->out.tensor, stream);
}

/* The pictures become the plane of layer -1, or are there for the first convolution. */
static mf_status take_input(mf_net_plan *plan, const DLTensor *given, void *stream)
{
    struct view input, numbers, to;
    DLTensor in[OPERANDS];
    const mf_plan *fold;
    view_input(&input, plan, given);
    if (mf_device_kind(plan->device) != kDLCPU && mf_tensor_memory(given) == kDLCPU)
        MF_TRY(upload(plan, &input));
    MF_TRY(find_form(plan, &input, &fold));
    if (plan->reads_pictures) {
        plan->taken = fold;
        plan->picture = input;
        plan->picture.tensor.shape = plan->picture.shape;
        plan->picture.tensor.strides = plan->picture.stride;
        return MF_OK;
    }
    MF_TRY(mf_plane_begin(plan, mf_plane(plan, -1), stream));
    view_picture(plan, &input, &numbers, in, &to);
    return mf_plan_execute_tensors(fold, in, &to.tensor, stream);
}

/* ---- the steps ---- */

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static mf_status run_step(mf_net_plan *plan, struct step *step, void *stream)
{
    DLTensor in[STEP_INPUTS];
    if (step->begins)
        MF_TRY(mf_plane_begin(plan, step->begins, stream));
    if (step->run)
        return step->run(plan, step, stream);
    for (int i = 0; i < step->input_count; i++)
        in[i] = step->in[i].tensor;
    return mf_plan_execute_tensors(step->fold, in, &step->out.tensor, stream);
}

mf_status mf_net_plan_enqueue(mf_net_plan *plan, const DLTensor *input, void *stream)
{
    MF_TRY(check_input(plan, input, "mf_net_plan_enqueue"));
    MF_TRY(check_place(plan, input, 0));
    if (stream && mf_device_kind(plan->device) == kDLCPU)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_enqueue: the CPU has no streams and one was given");
    MF_TRY(take_input(plan, input, stream));
    for (int s = 0; s < plan->step_count; s++)
        MF_TRY(run_step(plan, &plan->step[s], stream));
    return MF_OK;
}

mf_status mf_net_plan_run(mf_net_plan *plan, const DLTensor *input)
{
    MF_TRY(check_input(plan, input, "mf_net_plan_run"));
    MF_TRY(check_place(plan, input, 1));
    MF_TRY(take_input(plan, input, NULL));
    if (plan->measure)
        MF_TRY(mf_device_wait(plan->device, NULL));
    for (int s = 0; s < plan->step_count; s++) {
        const double start = plan->measure ? seconds_now() : 0;
        MF_TRY(run_step(plan, &plan->step[s], NULL));
        if (!plan->measure)
            continue;
        MF_TRY(mf_device_wait(plan->device, NULL));
        plan->step[s].seconds += seconds_now() - start;
    }
    return mf_device_wait(plan->device, NULL);
}
