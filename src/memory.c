/* Memory of a device, for programs that have no allocator of their own. */
#include "gpu/gpu.h"
#include "plan.h"

mf_status mf_memory_create(mf_device *device, int64_t bytes, void **memory)
{
    if (!device || !memory || bytes < 0)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_memory_create: %s is null, or %lld bytes is negative",
                       device ? "the result" : "the device", (long long)bytes);
    *memory = NULL;
    if (device->api)
        return device->api->alloc(device->gpu, bytes ? bytes : 1, memory);
    *memory = mf_alloc_aligned(bytes ? (size_t)bytes : 1);
    if (!*memory)
        return MF_ERROR_MEMORY;
    memset(*memory, 0, (size_t)bytes);
    return MF_OK;
}

void mf_memory_destroy(mf_device *device, void *memory)
{
    if (device && device->api)
        device->api->release(device->gpu, memory);
    else
        mf_free(memory);
}

static mf_status check(const mf_device *device, const void *memory, const void *host, int64_t offset, int64_t bytes,
                       const char *name)
{
    if (device && memory && (host || !bytes) && offset >= 0 && bytes >= 0)
        return MF_OK;
    return mf_fail(MF_ERROR_ARGUMENT, "%s: a pointer is null, or offset %lld or size %lld is negative", name,
                   (long long)offset, (long long)bytes);
}

mf_status mf_memory_write(mf_device *device, void *memory, int64_t offset, const void *from, int64_t bytes)
{
    MF_TRY(check(device, memory, from, offset, bytes, "mf_memory_write"));
    if (device->api)
        return device->api->copy(device->gpu, memory, offset, (void *)(uintptr_t)from, bytes, 0);
    if (bytes)
        memcpy((char *)memory + offset, from, (size_t)bytes);
    return MF_OK;
}

mf_status mf_memory_read(mf_device *device, const void *memory, int64_t offset, void *to, int64_t bytes)
{
    MF_TRY(check(device, memory, to, offset, bytes, "mf_memory_read"));
    if (device->api)
        return device->api->copy(device->gpu, (void *)(uintptr_t)memory, offset, to, bytes, 1);
    if (bytes)
        memcpy(to, (const char *)memory + offset, (size_t)bytes);
    return MF_OK;
}

mf_status mf_device_wait(mf_device *device, void *stream)
{
    if (!device)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_device_wait: the device is null");
    return device->api ? device->api->wait(device->gpu, stream) : MF_OK;
}
