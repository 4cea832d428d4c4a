/* What goes before every kernel's text in CUDA C++: the words of src/gpu/kernels. */
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define BLOCK ((long)blockIdx.x)
#define THREAD ((int)threadIdx.x)
#define THREADS ((int)blockDim.x)
