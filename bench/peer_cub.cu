// CUB's sums of contiguous rows, for bench/gpu_table.py --cub: a row is a whole-array reduction or one of segments of
// one length, whichever CUB has for it. Build it where the toolkit is:
//
//   nvcc -O3 -std=c++17 -arch=sm_90 -Xcompiler -fPIC -shared -cudart static bench/peer_cub.cu -o libpeer_cub.so
#include <cstdint>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace {
struct first {
    int64_t length;
    __host__ __device__ int64_t operator()(int64_t row) const { return row * length; }
};

template <typename In, typename Out>
cudaError_t sums(void *temporary, size_t *bytes, const void *in, void *out, int64_t rows, int64_t length,
                 cudaStream_t stream)
{
    const In *x = static_cast<const In *>(in);
    Out *y = static_cast<Out *>(out);
    if (rows == 1)
        return cub::DeviceReduce::Sum(temporary, *bytes, x, y, length, stream);
    auto begins = thrust::make_transform_iterator(thrust::make_counting_iterator<int64_t>(0), first{length});
    return cub::DeviceSegmentedReduce::Sum(temporary, *bytes, x, y, rows, begins, begins + 1, stream);
}
} // namespace

// type: 0 f32, 1 f64, 2 f16, 3 bf16, 4 int8 (summed in int64). temporary null: *bytes becomes what it wants.
extern "C" int peer_cub_sums(int type, void *temporary, size_t *bytes, const void *in, void *out, int64_t rows,
                             int64_t length, void *stream)
{
    cudaStream_t s = static_cast<cudaStream_t>(stream);
    switch (type) {
    case 0: return sums<float, float>(temporary, bytes, in, out, rows, length, s);
    case 1: return sums<double, double>(temporary, bytes, in, out, rows, length, s);
    case 2: return sums<__half, __half>(temporary, bytes, in, out, rows, length, s);
    case 3: return sums<__nv_bfloat16, __nv_bfloat16>(temporary, bytes, in, out, rows, length, s);
    case 4: return sums<int8_t, int64_t>(temporary, bytes, in, out, rows, length, s);
    }
    return -1;
}
