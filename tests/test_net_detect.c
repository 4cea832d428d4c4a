/* Boxes from known outputs, by both rules, counted by hand; pictures fitted into a network's input. */
#include <math.h>

#include <modefold_net.h>

#include "check.h"

enum { SIDE = 4, CELL = 14, CELLS = SIDE * SIDE };

static mf_device *cpu;

/* The network's input is what a detection layer reads: 4 x 4 cells, two boxes, two classes. */
static mf_net_plan *make(const char *layer, mf_net **net)
{
    static const int32_t header[5] = {0, 2, 0, 0, 0};
    char cfg[512];
    mf_net_plan *plan = NULL;
    snprintf(cfg, sizeof cfg, "[net]\nheight=4\nwidth=4\nchannels=14\n%s", layer);
    CHECK_MSG(mf_net_parse(cfg, strlen(cfg), header, sizeof header, 0, net) == MF_OK &&
                  mf_net_plan_create(*net, cpu, NULL, &plan) == MF_OK,
              "%s", mf_error());
    return plan;
}

/* Box b of cell (y, x): its centre in the cell's middle, a size of exp(size) anchors, the object's and classes'
 * numbers before logistic function and softmax. */
static void put(float *values, int y, int x, int b, float size, float object, float first, float second)
{
    float *cell = values + ((y * SIDE + x) * 2 + b) * 7;
    cell[2] = cell[3] = size;
    cell[4] = object;
    cell[5] = first;
    cell[6] = second;
}

static int is_box(const mf_net_box *box, int label, double score, double left, double top, double right, double bottom)
{
    return box->label == label && fabs(score - box->score) < 1e-5 && fabs(left - box->left) < 1e-4 &&
           fabs(top - box->top) < 1e-4 && fabs(right - box->right) < 1e-4 && fabs(bottom - box->bottom) < 1e-4;
}

static double s(double x)
{
    return 1 / (1 + exp(-x));
}

static void check_region(void)
{
    static float values[CELLS * CELL];
    const int64_t shape[3] = {SIDE, SIDE, CELL};
    const DLTensor input = mf_tensor(values, MF_F32, 3, shape);
    const double high = exp(2) / (exp(2) + 1);
    mf_net *net;
    mf_net_plan *plan = make("[region]\nnum=2\nclasses=2\nsoftmax=1\nanchors=1,2, 2,1\n", &net);
    mf_net_box box[8];
    int64_t count = 0;
    for (int i = 0; i < CELLS * 2; i++)
        values[7 * i + 4] = -20;                     /* no object */
    put(values, 1, 2, 0, 0, 3, 2, 0);                /* 1 x 2 cells, the first class */
    put(values, 1, 2, 1, 0, 2, 1, 1);                /* 2 x 1 cells, both classes alike */
    put(values, 3, 0, 0, (float)log(2), 1, 0, 2);    /* 2 x 4 cells, the second class */
    put(values, 2, 0, 0, (float)log(2), 1.1f, 0, 2); /* the same, a cell above, and a little better */
    CHECK(mf_net_plan_run(plan, &input) == MF_OK);
    const mf_net_detecting darknet = {.height = 40, .width = 80};
    CHECK(mf_net_plan_detect(plan, 0, &darknet, box, 8, &count) == MF_OK && count == 4);
    CHECK(is_box(&box[0], 0, s(3) * high, 40, 5, 60, 25));
    CHECK(is_box(&box[1], 1, s((double)1.1f) * high, -10, 5, 30, 45));
    CHECK(is_box(&box[2], 0, s(2) / 2, 30, 10, 70, 20) && is_box(&box[3], 1, s(2) / 2, 30, 10, 70, 20));
    /* the other two boxes overlap by 3 of 5 parts, which is more than 0.45, and less than 0.7 */
    CHECK(mf_net_plan_detect(plan, 0, &(mf_net_detecting){.overlap = 0.7f}, box, 8, &count) == MF_OK && count == 5);
    CHECK(mf_net_plan_detect(plan, 0, &(mf_net_detecting){.threshold = 0.5f}, box, 1, &count) == MF_OK && count == 2);
    /* The course's corners are whole pixels of the 4 x 4 input: (2,0)-(3,2), (1,1)-(3,2), (0,0)-(1,4). The first two
     * share 2 x 2 of 6 + 6 - 4 pixels; the third and the first none. */
    const mf_net_detecting course = {.rules = MF_NET_COURSE};
    CHECK(mf_net_plan_detect(plan, 0, &course, box, 8, &count) == MF_OK && count == 2);
    CHECK(is_box(&box[0], 0, s(3) * high, 2, 0, 3, 2) && is_box(&box[1], 1, s((double)1.1f) * high, 0, 0, 1, 4));
    mf_net_plan_destroy(plan);
    mf_net_destroy(net);
}

static void check_yolo(void)
{
    static float values[CELLS * CELL];
    const int64_t shape[3] = {SIDE, SIDE, CELL};
    const DLTensor input = mf_tensor(values, MF_F32, 3, shape);
    mf_net *net;
    mf_net_plan *plan = make("[yolo]\nnum=3\nclasses=2\nmask=0,2\nanchors=1,1, 9,9, 2,4\n", &net);
    mf_net_box box[8];
    int64_t count = 0;
    for (int i = 0; i < CELLS * 2; i++)
        values[7 * i + 4] = -20;
    put(values, 0, 3, 1, 0, 2, 1, -9); /* 2 x 4 pixels of the network's input */
    CHECK(mf_net_plan_run(plan, &input) == MF_OK);
    CHECK(mf_net_plan_detect(plan, 0, NULL, box, 8, &count) == MF_OK && count == 1);
    CHECK(is_box(&box[0], 0, s(2) * s(1), 2.5, -1.5, 4.5, 2.5));
    /* letterbox: of a picture of 100 x 50, rows 1 and 2 of the input are the picture's */
    const mf_net_detecting wide = {.height = 50, .width = 100, .letterbox = 1};
    CHECK(mf_net_plan_detect(plan, 0, &wide, box, 8, &count) == MF_OK && count == 1);
    CHECK(is_box(&box[0], 0, s(2) * s(1), 62.5, -62.5, 112.5, 37.5));
    mf_net_plan_destroy(plan);
    mf_net_destroy(net);
}

static void check_fit(void)
{
    static const unsigned char grey[2] = {0, 255},
                               colour[2 * 2 * 4] = {10, 20, 30, 0, 40, 50, 60, 0, 70, 80, 90, 0, 99, 98, 97, 0};
    const int64_t row[3] = {1, 2, 1}, square[3] = {2, 2, 4};
    float to[4 * 4 * 3];
    DLTensor picture = mf_tensor(grey, MF_U8, 3, row);
    CHECK(mf_net_fit(&picture, 0, 1, 4, to) == MF_OK);
    CHECK(to[0] == 0 && to[1] == 0 && fabs(to[3] - 0.25) < 1e-6 && fabs(to[6] - 0.75) < 1e-6 && to[11] == 1);
    CHECK(mf_net_fit(&picture, 1, 4, 4, to) == MF_OK); /* 2 x 4 pixels in the middle of 4 x 4 */
    CHECK(to[0] == 0.5f && to[11] == 0.5f && to[12] == 0 && fabs(to[15] - 0.25) < 1e-6 && to[36] == 0.5f);
    picture = mf_tensor(colour, MF_U8, 3, square);
    CHECK(mf_net_fit(&picture, 0, 2, 2, to) == MF_OK);
    for (int i = 0; i < 12; i++)
        CHECK(to[i] == (float)colour[i / 3 * 4 + i % 3] / 255);
}

int main(void)
{
    if (CHECK(mf_device_open("cpu:1", &cpu) == MF_OK)) {
        check_region();
        check_yolo();
        check_fit();
    }
    mf_device_close(cpu);
    return check_done("net_detect");
}
