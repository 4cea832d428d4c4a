/* Tensors of the processor's memory on a device. */
#include "tensor_there.h"

/* The bytes from a tensor's first to behind its last element in memory, and where position 0 lies in them. */
static int64_t extent(const DLTensor *tensor, int64_t *zero)
{
    int64_t item = (tensor->dtype.bits + 7) / 8, low = 0, high = 0, stride = 1;
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        int64_t reach = (tensor->shape[d] - 1) * (tensor->strides ? tensor->strides[d] : stride);
        if (!tensor->shape[d]) {
            *zero = 0;
            return 0;
        }
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
        stride *= tensor->shape[d];
    }
    *zero = -low * item;
    return (high - low + 1) * item;
}

static char *first_byte(const DLTensor *tensor, int64_t zero)
{
    return (char *)tensor->data + tensor->byte_offset - zero;
}

mf_status tensor_send(mf_device *device, const DLTensor *here, int with_data, DLTensor *there)
{
    int64_t zero, bytes = extent(here, &zero);
    *there = *here;
    if (mf_device_kind(device) == kDLCPU)
        return MF_OK;
    there->data = NULL;
    there->byte_offset = (uint64_t)zero;
    there->device.device_type = (DLDeviceType)mf_device_kind(device);
    mf_status status = mf_memory_create(device, bytes, &there->data);
    if (status == MF_OK && with_data && bytes)
        status = mf_memory_write(device, there->data, 0, first_byte(here, zero), bytes);
    if (status != MF_OK)
        tensor_forget(device, there);
    return status;
}

mf_status tensor_fetch(mf_device *device, const DLTensor *there, const DLTensor *here)
{
    int64_t zero, bytes = extent(here, &zero);
    if (mf_device_kind(device) == kDLCPU || !bytes)
        return MF_OK;
    return mf_memory_read(device, there->data, 0, first_byte(here, zero), bytes);
}

void tensor_forget(mf_device *device, DLTensor *there)
{
    if (device && there->data && mf_device_kind(device) != kDLCPU)
        mf_memory_destroy(device, there->data);
    there->data = NULL;
}
