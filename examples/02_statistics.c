/* Mean, standard deviation and maximum of every channel of a picture, in one pass over its bytes. */
#include <modefold.h>

#include <math.h>
#include <stdio.h>

enum { HEIGHT = 48, WIDTH = 64, CHANNELS = 3 };

static uint8_t picture[HEIGHT][WIDTH][CHANNELS];

/* Red rises to the right, green rises downwards, blue is a chessboard of two shades. */
static void paint(void)
{
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            picture[y][x][0] = (uint8_t)(4 * x);
            picture[y][x][1] = (uint8_t)(5 * y);
            picture[y][x][2] = (x / 8 + y / 8) % 2 ? 200 : 50;
        }
}

/* The same by plain loops, in two passes. */
static int agrees(int channel, double mean, double deviation, int most)
{
    double sum = 0, squares = 0;
    int greatest = 0;
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            sum += picture[y][x][channel];
            greatest = picture[y][x][channel] > greatest ? picture[y][x][channel] : greatest;
        }
    double middle = sum / (HEIGHT * WIDTH);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            squares += (picture[y][x][channel] - middle) * (picture[y][x][channel] - middle);
    return mean == middle && fabs(deviation - sqrt(squares / (HEIGHT * WIDTH))) < 1e-12 * deviation && most == greatest;
}

int main(void)
{
    double mean[CHANNELS] = {0}, deviation[CHANNELS] = {0};
    uint8_t most[CHANNELS] = {0};
    int64_t picture_shape[3] = {HEIGHT, WIDTH, CHANNELS}, shape[1] = {CHANNELS};
    DLTensor in = mf_tensor(picture, MF_U8, 3, picture_shape);
    DLTensor out[3] = {mf_tensor(mean, MF_F64, 1, shape), mf_tensor(deviation, MF_F64, 1, shape),
                       mf_tensor(most, MF_U8, 1, shape)};
    mf_device *cpu;
    paint();
    if (mf_device_open("cpu", &cpu) != MF_OK || mf_fold(cpu, "hwc->c", "mean(a); std(a); max(a)", &in, out) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    mf_device_close(cpu);
    int good = 1;
    for (int c = 0; c < CHANNELS; c++) {
        static const char *const names[CHANNELS] = {"red", "green", "blue"};
        printf("%-5s  mean %6.2f  standard deviation %5.2f  greatest %3d\n", names[c], mean[c], deviation[c], most[c]);
        good = good && agrees(c, mean[c], deviation[c], most[c]);
    }
    return !good;
}
