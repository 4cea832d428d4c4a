/* The shortest program: the sums of a matrix's rows. */
#include <modefold.h>
#include <stdio.h>

int main(void)
{
    float x[2][3] = {{1, 2, 3}, {4, 5, 6}}, y[2];
    int64_t x_shape[2] = {2, 3}, y_shape[1] = {2};
    DLTensor a = mf_tensor(x, MF_F32, 2, x_shape), out = mf_tensor(y, MF_F32, 1, y_shape);
    mf_device *cpu;
    if (mf_device_open("cpu", &cpu) != MF_OK || mf_fold(cpu, "ij->i", "sum(a)", &a, &out) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    printf("sums of the rows: %g and %g\n", y[0], y[1]);
    mf_device_close(cpu);
    return y[0] != 6 || y[1] != 15;
}
