/* Planes as tensors. */
#include "plan.h"

void mf_view_make(struct view *view, const mf_net_plan *plan, mf_type type, void *memory, int64_t first, int rank,
                  const int64_t *shape, const int64_t *stride)
{
    for (int d = 0; d < rank; d++) {
        view->shape[d] = shape[d];
        view->stride[d] = stride[d];
    }
    view->tensor = mf_tensor(memory, type, rank, view->shape);
    view->tensor.strides = view->stride;
    view->tensor.byte_offset = (uint64_t)(first * mf_item_bytes(type));
    view->tensor.device.device_type = (DLDeviceType)mf_device_kind(plan->device);
}

void mf_view_groups(struct view *view, const mf_net_plan *plan, const struct plane *plane, int64_t pad, int64_t groups,
                    int64_t channels)
{
    const int64_t shape[] = {plan->batch, plane->h + 2 * pad, plane->w + 2 * pad, groups, channels};
    const int64_t stride[] = {plane->image, plane->row, plane->pitch, channels, 1};
    mf_view_make(view, plan, plane->type, plane->memory, plane->first - pad * (plane->row + plane->pitch), 5, shape,
                 stride);
}

void mf_view_plane(struct view *view, const mf_net_plan *plan, const struct plane *plane, int64_t pad)
{
    const int64_t shape[] = {plan->batch, plane->h + 2 * pad, plane->w + 2 * pad, plane->c};
    const int64_t stride[] = {plane->image, plane->row, plane->pitch, 1};
    mf_view_make(view, plan, plane->type, plane->memory, plane->first - pad * (plane->row + plane->pitch), 4, shape,
                 stride);
}
