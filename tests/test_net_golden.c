/* YOLOv2-tiny with its real weights: the outputs of an independent program that adds in double, its statistics of every
 * layer and its detections, on every way that is here. */
#include <math.h>

#include "gpu_test.h"
#include "net_shared.h"

#define CFG "yolov2-tiny-voc.cfg"
#define WEIGHTS "yolov2-tiny-voc_352_288_final.weights"
enum { SIDE = 416, OUTPUTS = 13 * 13 * 125 };
/* Of outputs up to 17.4: of f32, and of weights and layers' outputs of f16 or factors of TF32. */
static const double most_error = 1e-4, most_short_error = 0.02;

struct golden {
    const char *name;
    float *input, *output;
    char text[4096];
};

static int load_golden(const char *name, struct golden *golden)
{
    char file[64];
    golden->name = name;
    snprintf(file, sizeof file, "golden/%s_input_416x416x3_hwc.f32", name);
    golden->input = shared_floats(file, SIDE * SIDE * 3);
    snprintf(file, sizeof file, "golden/%s_out_13x13x125_hwc.f32", name);
    golden->output = shared_floats(file, OUTPUTS);
    snprintf(file, sizeof file, "golden/%s.txt", name);
    FILE *text = fopen(shared_path(file), "rb");
    size_t read = text ? fread(golden->text, 1, sizeof golden->text - 1, text) : 0;
    golden->text[read] = 0;
    if (text)
        fclose(text);
    return CHECK(golden->input && golden->output && read > 100);
}

/* The golden text counts convolutions with the pool behind them: layer of the .cfg for each of its nine. */
static const int layers[9] = {1, 3, 5, 7, 9, 11, 12, 13, 14};

static void check_statistics(mf_net_plan *plan, const mf_net *net, const struct golden *golden, const char *way)
{
    enum { MOST = 208 * 208 * 16 };
    float *values = malloc(sizeof *values * MOST);
    for (int l = 0; values && l < 9; l++) {
        char wanted[32];
        double mean = 0, rms = 0, most = 0, g_mean, g_rms, g_most;
        mf_net_layer info;
        CHECK(mf_net_layer_get(net, layers[l], &info) == MF_OK);
        const int64_t size = info.height * info.width * info.channels;
        CHECK(mf_net_plan_read(plan, layers[l], values, MOST) == MF_OK);
        for (int64_t i = 0; i < size; i++) {
            mean += values[i];
            rms += (double)values[i] * values[i];
            most = fmax(most, fabs((double)values[i]));
        }
        mean /= (double)size;
        rms = sqrt(rms / (double)size);
        snprintf(wanted, sizeof wanted, "layer %d after", l);
        const char *line = strstr(golden->text, wanted), *numbers = line ? strstr(line, "mean ") : NULL;
        int read = numbers ? sscanf(numbers, "mean %lf rms %lf absmax %lf", &g_mean, &g_rms, &g_most) : 0;
        CHECK_MSG(read == 3 && fabs(mean - g_mean) < 1e-5 && fabs(rms - g_rms) < 1e-5 && fabs(most - g_most) < 1e-4,
                  "%s, %s, layer %d: mean %.9g rms %.9g most %.9g", golden->name, way, layers[l], mean, rms, most);
    }
    free(values);
}

static void check_detections(mf_net_plan *plan, const mf_net_names *names, const struct golden *golden, double most,
                             const char *way)
{
    mf_net_box box[50];
    int64_t count = -1, k = 0;
    mf_net_detecting course = {.rules = MF_NET_COURSE};
    CHECK(mf_net_plan_detect(plan, 0, &course, box, 50, &count) == MF_OK);
    for (const char *line = strstr(golden->text, "\ndet "); line; line = strstr(line + 1, "\ndet "), k++) {
        char label[32];
        double score, at[4];
        int read = sscanf(line, "\ndet %31s %lf (%lf,%lf)-(%lf,%lf)", label, &score, &at[0], &at[1], &at[2], &at[3]);
        CHECK_MSG(read == 6 && k < count && !strcmp(label, mf_net_names_get(names, box[k].label)) &&
                      fabs(score - box[k].score) < most && fabs(at[0] - box[k].left) < 1.5 &&
                      fabs(at[1] - box[k].top) < 1.5 && fabs(at[2] - box[k].right) < 1.5 &&
                      fabs(at[3] - box[k].bottom) < 1.5,
                  "%s, %s: %s %f (%g,%g)-(%g,%g)", golden->name, way,
                  k < count ? mf_net_names_get(names, box[k].label) : "nothing", k < count ? (double)box[k].score : 0,
                  k < count ? (double)box[k].left : 0, k < count ? (double)box[k].top : 0,
                  k < count ? (double)box[k].right : 0, k < count ? (double)box[k].bottom : 0);
    }
    CHECK_MSG(k == count && k > 0, "%s, %s: %lld detections, not %lld", golden->name, way, (long long)count,
              (long long)k);
}

static void check_plan(mf_net_plan *plan, const mf_net *net, const mf_net_names *names, const struct golden *golden,
                       const mf_net_options *options, const char *way)
{
    static float output[OUTPUTS];
    const int64_t shape[3] = {SIDE, SIDE, 3};
    DLTensor input = mf_tensor(golden->input, MF_F32, 3, shape);
    const double bound = options->precision ? most_short_error : most_error;
    double most = 0;
    if (!CHECK_MSG(mf_net_plan_run(plan, &input) == MF_OK, "%s: %s", way, mf_error()) ||
        !CHECK(mf_net_plan_read(plan, 15, output, OUTPUTS) == MF_OK))
        return;
    for (int i = 0; i < OUTPUTS; i++)
        most = fmax(most, fabs((double)output[i] - golden->output[i]));
    printf("%s, %s: greatest difference %.3g\n", golden->name, way, most);
    CHECK_MSG(most <= bound, "%s, %s: the greatest difference is %g", golden->name, way, most);
    if (options->keep && !options->precision)
        check_statistics(plan, net, golden, way);
    check_detections(plan, names, golden, options->precision ? 0.01 : 1e-4, way);
}

/* One plan, with all golden pictures; the statistics where it keeps every layer's output. */
static void check_pictures(const char *device_name, const mf_net *net, const mf_net_names *names,
                           const mf_net_options *options, const struct golden *golden, int count, const char *way)
{
    mf_device *device = NULL;
    mf_net_plan *plan = NULL;
    mf_status status = mf_device_open(device_name, &device);
    if (status == MF_OK)
        status = mf_net_plan_create(net, device, options, &plan);
    if (status == MF_ERROR_UNSUPPORTED || status == MF_ERROR_DEVICE)
        check_skip(way, mf_error());
    else
        CHECK_MSG(status == MF_OK, "%s: %s", way, mf_error());
    for (int g = 0; plan && g < count; g++)
        check_plan(plan, net, names, &golden[g], options, way);
    mf_net_plan_destroy(plan);
    mf_device_close(device);
}

/* One way: with every layer's output, and as it is by default, where memory is used again. */
static void check_way(const char *device_name, const mf_net *net, const mf_net_names *names,
                      const mf_net_options *given, const struct golden *golden, int count, const char *way)
{
    mf_net_options options = given ? *given : (mf_net_options){0};
    options.keep = 1;
    check_pictures(device_name, net, names, &options, golden, count, way);
    options.keep = 0;
    if (options.way != MF_NET_SCALAR)
        check_pictures(device_name, net, names, &options, golden, count, way);
}

/* At most 1.3 times the weights and the two largest outputs; by `bytes_of` a number of a plan's. */
static double memory_limit(const mf_net *net, double bytes_of)
{
    int64_t first = 0, second = 0, parameters = 0;
    for (int l = -1; l < mf_net_layer_count(net); l++) {
        mf_net_layer info;
        CHECK(mf_net_layer_get(net, l, &info) == MF_OK);
        const int64_t numbers = info.height * info.width * info.channels;
        second = numbers > first ? first : numbers > second ? numbers : second;
        first = numbers > first ? numbers : first;
        parameters += info.parameters;
    }
    return bytes_of * (1.3 * (double)parameters + (double)(first + second));
}

/* What a plan of batch 1 holds; on the CPU, whose weights are the network's, together with the network. */
static void check_memory(const char *device_name, const mf_net *net, const mf_net_options *options, const char *way)
{
    mf_device *device;
    mf_net_plan *plan;
    if (mf_device_open(device_name, &device) != MF_OK) {
        check_skip(way, mf_error());
        return;
    }
    const int on_cpu = !strcmp(device_name, "cpu");
    const double limit = memory_limit(net, options->precision == MF_NET_F16 ? 2 : 4);
    if (CHECK_MSG(mf_net_plan_create(net, device, options, &plan) == MF_OK, "%s", mf_error())) {
        const double taken = (double)((on_cpu ? mf_net_bytes(net) : 0) + mf_net_plan_bytes(plan));
        printf("memory, %s: %.1f MB of at most %.1f\n", way, taken / 1e6, limit / 1e6);
        CHECK_MSG(taken <= limit && taken > limit / 2, "%s: %.0f bytes, and the limit is %.0f", way, taken, limit);
        mf_net_plan_destroy(plan);
    }
    mf_device_close(device);
}

int main(void)
{
    static struct golden golden[2];
    mf_net *net = NULL, *unfused = NULL;
    mf_net_names *names = NULL;
    gpu_test_environment("off");
    if (!shared_exists(WEIGHTS)) {
        check_skip("the real weights", "../shared/data/yolo is not here");
        return check_done("net_golden");
    }
    CHECK_MSG(mf_net_load(shared_path(CFG), shared_path(WEIGHTS), 0, &net) == MF_OK, "%s", mf_error());
    CHECK_MSG(mf_net_load(shared_path(CFG), shared_path(WEIGHTS), MF_NET_UNFUSED, &unfused) == MF_OK, "%s", mf_error());
    CHECK(mf_net_names_load(shared_path("voc.names"), &names) == MF_OK && mf_net_names_count(names) == 20);
    if (net && unfused && names && load_golden("dog", &golden[0]) && load_golden("dog416", &golden[1])) {
        check_way("cpu", net, names, NULL, golden, 2, "simd");
        check_way("cpu", net, names, &(mf_net_options){.order_contract = 1}, golden, 1, "simd, contract's order");
        check_way("cpu", net, names, &(mf_net_options){.direct = 1}, golden, 2, "simd, without Winograd");
        check_way("cpu", unfused, names, NULL, golden, 1, "simd, unfused");
        check_way("cpu", net, names, &(mf_net_options){.way = MF_NET_BLAS}, golden, 1, "openblas");
        check_way("cpu", net, names, &(mf_net_options){.way = MF_NET_SCALAR}, golden, 1, "scalar");
        check_way("cpu", net, names, &(mf_net_options){.precision = MF_NET_F16}, golden, 2, "simd, f16");
        check_way("cuda:0", net, names, NULL, golden, 2, "cuda");
        check_way("cuda:0", net, names, &(mf_net_options){.precision = MF_NET_TF32}, golden, 2, "cuda, tf32");
        check_way("cuda:0", net, names, &(mf_net_options){.precision = MF_NET_F16}, golden, 2, "cuda, f16");
        check_way("cuda:0", net, names, &(mf_net_options){.way = MF_NET_BLAS}, golden, 2, "cublas");
        if (getenv("MODEFOLD_NET_OPENCL")) /* minutes on PoCL; test_net has OpenCL with a small network */
            check_way("opencl:0", net, names, NULL, golden, 1, "opencl");
        else
            check_skip("opencl", "MODEFOLD_NET_OPENCL is not set");
        check_memory("cpu", net, &(mf_net_options){0}, "simd");
        check_memory("cpu", net, &(mf_net_options){.way = MF_NET_BLAS}, "openblas");
        check_memory("cuda:0", net, &(mf_net_options){0}, "cuda");
        check_memory("cuda:0", net, &(mf_net_options){.precision = MF_NET_TF32}, "cuda, tf32");
        check_memory("cuda:0", net, &(mf_net_options){.precision = MF_NET_F16}, "cuda, f16");
        check_memory("cuda:0", net, &(mf_net_options){.way = MF_NET_BLAS}, "cublas");
    }
    mf_net_names_destroy(names);
    mf_net_destroy(unfused);
    mf_net_destroy(net);
    for (int g = 0; g < 2; g++) {
        free(golden[g].input);
        free(golden[g].output);
    }
    return check_done("net_golden");
}
