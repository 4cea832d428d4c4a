"""genbmm's kernels for PyTorch tensors, without its build: its file matmul_cuda_kernel.cu is read where a copy of its
repository (github.com/harvardnlp/genbmm) lies, and its kernels are compiled for this GPU as device functions. Launched
as its C++ launches them: zeroed outputs, blocks of 32 x 32 threads."""
import os

import torch

# What its kernels use of PyTorch's headers.
SHIM = """
namespace torch {
template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; };
template <typename T, int N> struct Row {
    T *p; const int *s;
    __device__ Row<T, N - 1> operator[](int i) const { return {p + (long long)i * s[0], s + 1}; }
};
template <typename T> struct Row<T, 1> {
    T *p; const int *s;
    __device__ T &operator[](int i) const { return p[(long long)i * s[0]]; }
};
template <typename T, int N, template <typename U> class Traits> struct PackedTensorAccessor32 {
    typename Traits<T>::PtrType p; int s[N];
    __device__ Row<T, N - 1> operator[](int i) const { return {p + (long long)i * s[0], s + 1}; }
};
}
"""
WRAPPERS = """
typedef torch::PackedTensorAccessor32<float, 3, torch::RestrictPtrTraits> view;
typedef torch::PackedTensorAccessor32<int, 3, torch::RestrictPtrTraits> int_view;
#define VIEW(p, rows, columns) view{p, {(rows) * (columns), columns, 1}}
extern "C" __global__ void forward(float *a, float *b, float *out, int k, int m, int n)
{
    matmul_cuda_forward_kernel<float>(VIEW(a, m, k), VIEW(b, k, n), VIEW(out, m, n), k, m, n);
}
extern "C" __global__ void forward_max(float *a, float *b, float *out, int *at, int k, int m, int n)
{
    max_cuda_forward_kernel<float>(VIEW(a, m, k), VIEW(b, k, n), VIEW(out, m, n), int_view{at, {m * n, n, 1}}, k, m, n);
}
extern "C" __global__ void backward_a(float *to, float *a, float *b, float *out, float *d, int k, int m, int n)
{
    matmul_cuda_backward_kernel_A<float>(VIEW(to, m, k), VIEW(a, m, k), VIEW(b, k, n), VIEW(out, m, n), VIEW(d, m, n),
                                         k, m, n);
}
extern "C" __global__ void backward_b(float *to, float *a, float *b, float *out, float *d, int k, int m, int n)
{
    matmul_cuda_backward_kernel_B<float>(VIEW(to, k, n), VIEW(a, m, k), VIEW(b, k, n), VIEW(out, m, n), VIEW(d, m, n),
                                         k, m, n);
}
"""


def kernels_text(folder):
    """The kernels alone: they stand in the file's unnamed namespace."""
    with open(os.path.join(folder, "matmul_cuda_kernel.cu"), encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("namespace {"):text.index("} // namespace")] + "}\n"
    return SHIM + text.replace("__global__", "__device__") + WRAPPERS


def launch(kernel, rows, columns, batch, *arguments):
    kernel((rows // 32 + 1, columns // 32 + 1, batch), (32, 32, 1), list(arguments))


class Genbmm:
    """forward(a, b) is out; backward gives both gradients of logsumexp(a+b)."""

    def __init__(self, folder):
        text = kernels_text(folder)
        names = ("forward", "forward_max", "backward_a", "backward_b")
        self.kernel = {name: torch.cuda._compile_kernel(text, name) for name in names}

    def forward(self, a, b, largest):
        batch, m, k, n = *a.shape, b.shape[2]
        out = a.new_zeros(batch, m, n)
        if largest:
            at = torch.zeros(batch, m, n, device="cuda", dtype=torch.int32)
            launch(self.kernel["forward_max"], m, n, batch, a, b, out, at, k, m, n)
        else:
            launch(self.kernel["forward"], m, n, batch, a, b, out, k, m, n)
        return out

    def backward(self, a, b, out, d):
        batch, m, k, n = *a.shape, b.shape[2]
        to_a, to_b = torch.zeros_like(a), torch.zeros_like(b)
        launch(self.kernel["backward_a"], m, k, batch, to_a, a, b, out, d, k, m, n)
        launch(self.kernel["backward_b"], k, n, batch, to_b, a, b, out, d, k, m, n)
        return to_a, to_b
