/* What goes before every kernel's text in OpenCL C: the words of src/gpu/kernels. */
#pragma OPENCL FP_CONTRACT OFF
#define KERNEL kernel void
#define GLOBAL global
#define BLOCK ((long)get_group_id(0))
#define THREAD ((int)get_local_id(0))
#define THREADS ((int)get_local_size(0))
