/* YOLOv3-tiny, both of its heads: layers and shapes; outputs and detections of the folds, on the CPU and by OpenCL,
 * beside plain loops; and the boxes of plain loops beside those that this test counts itself. */
#include <math.h>

#include <modefold_net.h>

#include "gpu_test.h"
#include "net_small.h"

enum { SIDE = 96, PICTURE = SIDE * SIDE * 3, LAYERS = 24, HEADS = 2, CLASSES = 80, ANCHORS = 3, BOX = CLASSES + 5 };
enum { ROOM = 6 * 6 * ANCHORS * BOX, MOST_BOXES = 1 << 14 };
static const float threshold = 0.5f;

/* A head's layer, its cells across and its anchors, width and height in pixels of the input. */
static const struct head {
    int layer, cells;
    double anchor[ANCHORS][2];
} heads[HEADS] = {
    {16, 3, {{81, 82}, {135, 169}, {344, 319}}},
    {23, 6, {{10, 14}, {23, 27}, {37, 58}}},
};

static float picture[PICTURE], wanted[HEADS][ROOM];
static mf_net_box wanted_box[MOST_BOXES];
static int64_t wanted_boxes;

static void make_picture(void)
{
    for (int i = 0; i < PICTURE; i++)
        picture[i] = (float)(i * 7919 % 10007) / 10007.0f;
}

/* ---- what the network is ---- */

static void check_layers(const mf_net *net)
{
    static const struct {
        int layer;
        const char *kind;
        int64_t side, channels;
    } expected[] = {{10, "convolutional", 3, 512}, {11, "maxpool", 3, 512},  {12, "convolutional", 3, 1024},
                    {15, "convolutional", 3, 255}, {16, "yolo", 3, 255},     {17, "route", 3, 256},
                    {18, "convolutional", 3, 128}, {19, "upsample", 6, 128}, {20, "route", 6, 384},
                    {21, "convolutional", 6, 256}, {23, "yolo", 6, 255}};
    int64_t parameters = 0;
    CHECK(mf_net_layer_count(net) == LAYERS);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        mf_net_layer info;
        CHECK_MSG(mf_net_layer_get(net, expected[i].layer, &info) == MF_OK && !strcmp(info.kind, expected[i].kind) &&
                      info.height == expected[i].side && info.width == expected[i].side &&
                      info.channels == expected[i].channels,
                  "layer %d is %s %d x %d x %d", expected[i].layer, info.kind, (int)info.height, (int)info.width,
                  (int)info.channels);
    }
    for (int l = 0; l < LAYERS; l++) {
        mf_net_layer info;
        CHECK(mf_net_layer_get(net, l, &info) == MF_OK);
        parameters += info.parameters;
    }
    CHECK_MSG(parameters == 8858734, "%lld numbers", (long long)parameters); /* as in the file of the real weights */
}

/* ---- boxes, by this test ---- */

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* Whether a box is among others: same class, score and corners to a few roundings of the outputs. */
static int is_found(const mf_net_box *box, int64_t boxes, const mf_net_box *one)
{
    const double reach = fabs((double)one->right - one->left) + fabs((double)one->bottom - one->top);
    const double near = 1e-4 * (SIDE + reach);
    for (int64_t b = 0; b < boxes; b++)
        if (box[b].label == one->label && fabs((double)box[b].score - one->score) < 1e-4 &&
            fabs((double)box[b].left - one->left) < near && fabs((double)box[b].right - one->right) < near &&
            fabs((double)box[b].top - one->top) < near && fabs((double)box[b].bottom - one->bottom) < near)
            return 1;
    return 0;
}

/* The boxes of a head's outputs; each has to be among the found ones. Returns how many. */
static int64_t count_boxes(const struct head *head, const float *values, const mf_net_box *box, int64_t boxes)
{
    int64_t count = 0, missing = 0;
    for (int i = 0; i < head->cells * head->cells * ANCHORS; i++) {
        const float *v = values + (int64_t)i * BOX;
        const double *anchor = head->anchor[i % ANCHORS], cell = (double)SIDE / head->cells;
        const double x = (i / ANCHORS % head->cells + logistic((double)v[0])) * cell;
        const double y = (i / ANCHORS / head->cells + logistic((double)v[1])) * cell;
        const double w = exp((double)v[2]) * anchor[0] / 2, h = exp((double)v[3]) * anchor[1] / 2;
        for (int c = 0; c < CLASSES; c++) {
            const double score = logistic((double)v[4]) * logistic((double)v[5 + c]);
            if (score <= (double)threshold)
                continue;
            const mf_net_box one = {c, (float)score, (float)(x - w), (float)(y - h), (float)(x + w), (float)(y + h)};
            count++;
            missing += !is_found(box, boxes, &one);
        }
    }
    CHECK_MSG(!missing, "layer %d: %d of %d boxes are missing", head->layer, (int)missing, (int)count);
    return count;
}

/* Without leaving out those that overlap: they come from both heads. */
static void check_boxes(mf_net_plan *plan)
{
    static mf_net_box box[MOST_BOXES];
    const mf_net_detecting all = {.threshold = threshold, .overlap = 1};
    int64_t boxes = 0, count[HEADS];
    CHECK(mf_net_plan_detect(plan, 0, &all, box, MOST_BOXES, &boxes) == MF_OK && boxes <= MOST_BOXES);
    for (int h = 0; h < HEADS; h++)
        count[h] = count_boxes(&heads[h], wanted[h], box, boxes);
    printf("%d boxes, %d and %d by this test\n", (int)boxes, (int)count[0], (int)count[1]);
    CHECK(count[0] > 0 && count[1] > 0 && boxes == count[0] + count[1]);
}

/* ---- ways to run it ---- */

static mf_net_plan *run(const mf_net *net, mf_device *device, const mf_net_options *options, const char *way)
{
    const int64_t shape[3] = {SIDE, SIDE, 3};
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    mf_net_plan *plan = NULL;
    CHECK_MSG(mf_net_plan_create(net, device, options, &plan) == MF_OK && mf_net_plan_run(plan, &input) == MF_OK,
              "%s: %s", way, mf_error());
    return plan;
}

/* Plain loops: what the others are compared with. */
static void make_wanted(const mf_net *net, mf_device *cpu)
{
    mf_net_plan *plan = run(net, cpu, &(mf_net_options){.way = MF_NET_SCALAR}, "plain loops");
    for (int h = 0; h < HEADS; h++)
        CHECK(mf_net_plan_read(plan, heads[h].layer, wanted[h], ROOM) == MF_OK);
    check_boxes(plan);
    CHECK(mf_net_plan_detect(plan, 0, &(mf_net_detecting){.threshold = threshold}, wanted_box, MOST_BOXES,
                             &wanted_boxes) == MF_OK &&
          wanted_boxes > 0 && wanted_boxes <= MOST_BOXES);
    mf_net_plan_destroy(plan);
}

/* Both heads' outputs, and the boxes that are left of those that overlap. bound: of the greatest output. */
static void check_way(const mf_net *net, const char *device_name, mf_net_options options, double bound, const char *way)
{
    static float found[ROOM];
    static mf_net_box box[MOST_BOXES];
    mf_device *device = NULL;
    int64_t boxes = 0, same = 0;
    if (mf_device_open(device_name, &device) != MF_OK) {
        check_skip(way, mf_error());
        return;
    }
    mf_net_plan *plan = run(net, device, &options, way);
    for (int h = 0; h < HEADS; h++) {
        const int64_t count = (int64_t)heads[h].cells * heads[h].cells * ANCHORS * BOX;
        double error = 0, most = 0;
        CHECK_MSG(mf_net_plan_read(plan, heads[h].layer, found, ROOM) == MF_OK, "%s", mf_error());
        for (int64_t i = 0; i < count; i++) {
            most = fmax(most, fabs((double)wanted[h][i]));
            error = fmax(error, isnan(found[i]) ? 1e9 : fabs((double)found[i] - wanted[h][i]));
        }
        printf("%s, layer %d: %.3g of %.3g\n", way, heads[h].layer, error, most);
        CHECK_MSG(error <= bound * most, "%s, layer %d: differs by %g of %g", way, heads[h].layer, error, most);
    }
    CHECK(mf_net_plan_detect(plan, 0, &(mf_net_detecting){.threshold = threshold}, box, MOST_BOXES, &boxes) == MF_OK);
    for (int64_t b = 0; b < boxes; b++)
        same += is_found(wanted_box, wanted_boxes, &box[b]);
    printf("%s: %d boxes, %d of them as %d by plain loops\n", way, (int)boxes, (int)same, (int)wanted_boxes);
    /* a few of so many scores and overlaps are at their limits */
    CHECK(options.precision != MF_NET_F32 ||
          (100 * same >= 99 * wanted_boxes && 100 * boxes <= 101 * wanted_boxes && boxes > 0));
    mf_net_plan_destroy(plan);
    mf_device_close(device);
}

int main(void)
{
    mf_device *cpu;
    gpu_test_environment("off");
    mf_net *net = net_tiny(3, SIDE, 0);
    if (!CHECK_MSG(net && mf_device_open("cpu", &cpu) == MF_OK, "%s", mf_error()))
        return check_done("net_yolov3");
    make_picture();
    check_layers(net);
    make_wanted(net, cpu);
    check_way(net, "cpu", (mf_net_options){0}, 1e-5, "folds");
    check_way(net, "cpu", (mf_net_options){.order_contract = 1}, 1e-5, "folds in the contract's order");
    check_way(net, "opencl:0", (mf_net_options){0}, 1e-5, "OpenCL");
    check_way(net, "cuda:0", (mf_net_options){0}, 1e-5, "CUDA");
    check_way(net, "cuda:0", (mf_net_options){.precision = MF_NET_TF32}, 0x1p-8, "CUDA, tf32");
    check_way(net, "cuda:0", (mf_net_options){.precision = MF_NET_F16}, 0x1p-8, "CUDA, f16");
    mf_device_close(cpu);
    mf_net_destroy(net);
    return check_done("net_yolov3");
}
