/* Windows: 2 x 2 maximum pooling, and a 3 x 3 box blur that pads the border.
 *
 * (2h+i) is a dimension walked in steps of 2 by windows of i; (h+i-1) starts one element before the picture. What lies
 * outside takes no part: at a corner the blur is the mean of 4 elements, along an edge of 6. */
#include <modefold.h>

#include <stdio.h>
#include <stdlib.h>

enum { HEIGHT = 4, WIDTH = 6 };

static float picture[HEIGHT][WIDTH] = {
    {1, 2, 0, 0, 9, 1},
    {3, 4, 0, 5, 1, 1},
    {0, 0, 7, 7, 2, 0},
    {8, 0, 7, 7, 0, 3},
};

/* Folds the picture's windows into result and its shape, which the library works out. */
static void fold(mf_device *cpu, const char *modes, const char *expression, float *result, int64_t shape[2])
{
    int ndim;
    int64_t picture_shape[2] = {HEIGHT, WIDTH}, full_shape[MF_MAX_RANK];
    DLTensor in = mf_tensor(picture, MF_F32, 2, picture_shape);
    mf_status status = mf_fold_shape(modes, 1, &in, &ndim, full_shape);
    if (status == MF_OK && (ndim != 2 || full_shape[0] * full_shape[1] > HEIGHT * WIDTH)) {
        fprintf(stderr, "an unexpected shape\n");
        exit(1);
    }
    if (status == MF_OK) {
        DLTensor out = mf_tensor(result, MF_F32, 2, full_shape);
        shape[0] = full_shape[0];
        shape[1] = full_shape[1];
        status = mf_fold(cpu, modes, expression, &in, &out);
    }
    if (status != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        exit(1);
    }
    printf("%s  %s\n", modes, expression);
    for (int64_t y = 0; y < shape[0]; y++)
        for (int64_t x = 0; x < shape[1]; x++)
            printf("%6.2f%s", result[y * shape[1] + x], x + 1 < shape[1] ? "" : "\n");
}

static float blurred(int y, int x)
{
    float sum = 0;
    int count = 0;
    for (int v = y - 1; v <= y + 1; v++)
        for (int u = x - 1; u <= x + 1; u++)
            if (v >= 0 && v < HEIGHT && u >= 0 && u < WIDTH) {
                sum += picture[v][u];
                count++;
            }
    return sum / (float)count;
}

int main(void)
{
    float pooled[HEIGHT * WIDTH], blur[HEIGHT * WIDTH];
    int64_t pooled_shape[2], blur_shape[2];
    mf_device *cpu;
    if (mf_device_open("cpu", &cpu) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    fold(cpu, "(2h+i)(2w+j)->hw with i=2,j=2", "max(a)", pooled, pooled_shape);
    fold(cpu, "(h+i-1)(w+j-1)->hw with i=3,j=3", "mean(a)", blur, blur_shape);
    mf_device_close(cpu);

    static const float maxima[6] = {4, 5, 9, 8, 7, 3};
    int good = pooled_shape[0] == 2 && pooled_shape[1] == 3 && blur_shape[0] == HEIGHT && blur_shape[1] == WIDTH;
    for (int i = 0; good && i < 6; i++)
        good = pooled[i] == maxima[i];
    for (int y = 0; good && y < HEIGHT; y++)
        for (int x = 0; good && x < WIDTH; x++)
            good = blur[y * WIDTH + x] == blurred(y, x); /* sums of small whole numbers are exact */
    return !good;
}
