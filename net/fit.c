/* Pictures into a network's input: bilinear, pixels counted at their centres. */
#include "net.h"

#include <math.h>

/* Where pixel `to` of `to_size` lies among `size` pixels: between `low` and `high`, `part` of the way. */
struct between {
    int64_t low, high;
    float part;
};

static struct between find(int64_t to, int64_t to_size, int64_t size)
{
    double at = ((double)to + 0.5) * (double)size / (double)to_size - 0.5;
    at = at < 0 ? 0 : at > (double)(size - 1) ? (double)(size - 1) : at;
    const int64_t low = (int64_t)at;
    return (struct between){low, low + 1 < size ? low + 1 : low, (float)(at - (double)low)};
}

static float sample(const DLTensor *picture, const int64_t stride[3], struct between y, struct between x, int64_t c)
{
    const unsigned char *pixel = (const unsigned char *)picture->data + picture->byte_offset + c * stride[2];
    const float top = (float)pixel[y.low * stride[0] + x.low * stride[1]] * (1 - x.part) +
                      (float)pixel[y.low * stride[0] + x.high * stride[1]] * x.part;
    const float bottom = (float)pixel[y.high * stride[0] + x.low * stride[1]] * (1 - x.part) +
                         (float)pixel[y.high * stride[0] + x.high * stride[1]] * x.part;
    return (top * (1 - y.part) + bottom * y.part) / 255;
}

static mf_status check(const DLTensor *picture, int64_t height, int64_t width, const float *to)
{
    if (!picture || !picture->data || !picture->shape || !to || height < 1 || width < 1)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_fit: a pointer is null, or %lld x %lld is no size", (long long)height,
                       (long long)width);
    if (picture->dtype.code != kDLUInt || picture->dtype.bits != 8 || picture->dtype.lanes != 1)
        return mf_fail(MF_ERROR_TYPE, "the picture is of type %s, and only u8 is taken",
                       mf_type_name(picture->dtype) ? mf_type_name(picture->dtype) : "unknown");
    if (picture->ndim != 3 || picture->shape[0] < 1 || picture->shape[1] < 1 || picture->shape[2] < 1 ||
        picture->shape[2] > 4)
        return mf_fail(MF_ERROR_SHAPE, "the picture is no height x width x 1 to 4 channels of at least one pixel");
    return MF_OK;
}

mf_status mf_net_fit(const DLTensor *picture, int letterbox, int64_t height, int64_t width, float *to)
{
    MF_TRY(check(picture, height, width, to));
    const int64_t h = picture->shape[0], w = picture->shape[1], channels = picture->shape[2];
    const int64_t dense[3] = {w * channels, channels, 1};
    const int64_t *stride = picture->strides ? picture->strides : dense;
    int64_t new_h = height, new_w = width;
    if (letterbox && width * h < height * w)
        new_h = h * width / w > 0 ? h * width / w : 1;
    else if (letterbox)
        new_w = w * height / h > 0 ? w * height / h : 1;
    const int64_t top = (height - new_h) / 2, left = (width - new_w) / 2;
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            for (int64_t c = 0; c < 3; c++, to++) {
                const int inside = y >= top && y < top + new_h && x >= left && x < left + new_w;
                *to = inside ? sample(picture, stride, find(y - top, new_h, h), find(x - left, new_w, w),
                                      channels >= 3 ? c : 0)
                             : 0.5f;
            }
    return MF_OK;
}
