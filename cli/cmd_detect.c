/* modefold detect: pictures in, boxes out. */
#include <stdlib.h>
#include <string.h>

#include <modefold_net.h>

#include "commands.h"
#include "detect_times.h"
#include "draw.h"
#include "options.h"
#include "picture.h"
#include "progress.h"
#include "show.h"

enum { MOST_BOXES = 1000, ERROR_TEXT = 512 };

/* Everything one call holds; released at one place. */
struct job {
    const char *names_path, *backend, *rules, *precision;
    double threshold, overlap;
    int64_t threads, trials;
    int letterbox, times, json, unfused, contract, bits; /* bits: mf_net_precision */
    int silent;                                          /* boxes were shown already */
    struct option_list arguments, files;
    mf_net *net;
    mf_net_names *names;
    mf_net_layer input;
    struct net_way way;
    float *pixels; /* the network's input */
    mf_net_box box[MOST_BOXES];
    int64_t boxes;
};

static const char *label_of(const struct job *job, int label, char *number, size_t size)
{
    const char *name = mf_net_names_get(job->names, label);
    snprintf(number, size, "%d", label);
    return name ? name : number;
}

static void show_text(const struct job *job, const char *path, const struct picture *picture, double seconds)
{
    printf("%s: %lld x %lld, %lld box%s, %.1f ms\n", path, (long long)picture->shape[1], (long long)picture->shape[0],
           (long long)job->boxes, job->boxes == 1 ? "" : "es", 1e3 * seconds);
    for (int64_t b = 0; b < job->boxes; b++) {
        const mf_net_box *box = &job->box[b];
        char number[16];
        printf("  %-14s %.3f  (%.0f,%.0f)-(%.0f,%.0f)\n", label_of(job, box->label, number, sizeof number),
               (double)box->score, (double)box->left, (double)box->top, (double)box->right, (double)box->bottom);
    }
}

static void show_json(const struct job *job, const char *path, const struct picture *picture, double seconds, int first)
{
    printf("%s\n  {\"picture\": ", first ? "" : ",");
    show_json_text(stdout, path);
    printf(", \"width\": %lld, \"height\": %lld, \"seconds\": %.6g, \"boxes\": [", (long long)picture->shape[1],
           (long long)picture->shape[0], seconds);
    for (int64_t b = 0; b < job->boxes; b++) {
        const mf_net_box *box = &job->box[b];
        char number[16];
        printf("%s\n    {\"label\": ", b ? "," : "");
        show_json_text(stdout, label_of(job, box->label, number, sizeof number));
        printf(", \"class\": %d, \"score\": %.6g, \"box\": [%.6g, %.6g, %.6g, %.6g]}", box->label, (double)box->score,
               (double)box->left, (double)box->top, (double)box->right, (double)box->bottom);
    }
    printf("]}");
}

/* A copy in three channels, with the boxes. */
static int draw(const struct job *job, const struct picture *picture, const char *path)
{
    struct picture out;
    char error[ERROR_TEXT], number[16], text[80];
    const int64_t shape[3] = {picture->shape[0], picture->shape[1], 3}, channels = picture->shape[2];
    if (picture_create(path, mf_dtype(MF_U8), 3, shape, &out, error, sizeof error))
        return complain(1, "%s", error);
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        for (int64_t c = 0; c < 3; c++)
            out.pixels[3 * i + c] = picture->pixels[i * channels + (channels >= 3 ? c : 0)];
    const struct canvas canvas = {out.pixels, shape[0], shape[1]};
    for (int64_t b = job->boxes - 1; b >= 0; b--) { /* the best one on top */
        const mf_net_box *box = &job->box[b];
        snprintf(text, sizeof text, "%.60s %.2f", label_of(job, box->label, number, sizeof number), (double)box->score);
        draw_box(&canvas, (double)box->left, (double)box->top, (double)box->right, (double)box->bottom, box->label,
                 text);
    }
    int status = picture_commit(&out, error, sizeof error) ? complain(1, "%s", error) : 0;
    picture_close(&out);
    return status;
}

/* Fits the picture, runs the network and finds boxes: what "end-to-end" is, but for reading the file. */
static mf_status find_boxes(struct job *job, const struct picture *picture, double *seconds)
{
    const mf_net_detecting detecting = {strcmp(job->rules, "course") ? MF_NET_DARKNET : MF_NET_COURSE,
                                        (float)job->threshold,
                                        (float)job->overlap,
                                        picture->shape[0],
                                        picture->shape[1],
                                        job->letterbox};
    const int64_t shape[3] = {job->input.height, job->input.width, 3};
    const DLTensor input = mf_tensor(job->pixels, MF_F32, 3, shape);
    const double start = seconds_now();
    mf_status status = mf_net_fit(&picture->tensor, job->letterbox, shape[0], shape[1], job->pixels);
    if (status == MF_OK)
        status = net_way_run(&job->way, &input);
    if (status == MF_OK)
        status = mf_net_plan_detect(job->way.plan, 0, &detecting, job->box, MOST_BOXES, &job->boxes);
    job->boxes = job->boxes < MOST_BOXES ? job->boxes : MOST_BOXES;
    *seconds = seconds_now() - start;
    return status;
}

static int detect_one(struct job *job, int number)
{
    const char *path = job->arguments.item[2 + number];
    struct picture picture;
    char error[ERROR_TEXT];
    double seconds = 0;
    if (picture_open(path, &picture, error, sizeof error))
        return complain(1, "%s", error);
    mf_status found = MF_OK;
    for (int64_t t = 0; found == MF_OK && t < (job->times ? job->trials : 1); t++) {
        found = find_boxes(job, &picture, &seconds);
        net_way_count(&job->way, seconds);
    }
    int status = found == MF_OK ? 0 : complain_library();
    if (!status && job->json)
        show_json(job, path, &picture, seconds, number == 0);
    else if (!status && !job->silent)
        show_text(job, path, &picture, seconds);
    if (!status && job->files.count && !job->silent)
        status = draw(job, &picture, job->files.item[number]);
    picture_close(&picture);
    return status;
}

/* All pictures with one way; a picture that fails does not keep the others from being looked at. */
static int detect_all(struct job *job, const char *backend)
{
    const int count = job->arguments.count - 2;
    const mf_net_options options = {
        .order_contract = job->contract, .threads = (int)job->threads, .precision = (mf_net_precision)job->bits};
    struct progress progress;
    int status = 0;
    if (net_way_open(&job->way, job->net, backend, &options, job->times))
        return 1;
    progress_start(&progress, "picture 1 of %d", count);
    for (int i = 0; i < count; i++) {
        progress_say(&progress, "picture %d of %d", i + 1, count);
        status |= detect_one(job, i);
    }
    progress_end(&progress);
    return status;
}

/* Every way of the list, and the table of their times; only the first one's boxes are shown. */
static int detect_ways(struct job *job)
{
    char list[128];
    struct net_times times = {0};
    int status = 0;
    snprintf(list, sizeof list, "%s", job->backend);
    if (job->json)
        printf("{\"pictures\": [");
    for (char *at = list, *next; at && !status; at = next) {
        next = strchr(at, ',');
        if (next)
            *next++ = 0;
        status = detect_all(job, at);
        job->silent = 1;
        if (!status && job->times)
            status = net_times_add(&times, &job->way);
        net_way_close(&job->way);
    }
    if (job->json)
        printf("]");
    if (!status && job->times)
        net_times_show(&times, job->json);
    if (job->json)
        printf("}\n");
    return status;
}

static const char *const precisions[] = {"f32", "tf32", "f16"}; /* by mf_net_precision */

static int check(struct job *job)
{
    while (job->bits < 3 && strcmp(job->precision, precisions[job->bits]) != 0)
        job->bits++;
    if (job->bits == 3)
        return complain(2, "--precision takes f32, tf32 or f16, not \"%s\"", job->precision);
    if (job->arguments.count < 3)
        return complain(2, "detect needs NET.cfg, NET.weights and at least one picture; 'modefold detect --help' has "
                           "examples");
    if (job->files.count && job->files.count != job->arguments.count - 2)
        return complain(2, "%d pictures were given and -o stands %d times", job->arguments.count - 2, job->files.count);
    if (strcmp(job->rules, "darknet") != 0 && strcmp(job->rules, "course") != 0)
        return complain(2, "--rules takes darknet or course, not \"%s\"", job->rules);
    if (strchr(job->backend, ',') && (!job->times || job->json))
        return complain(2, "several backends go with --times only, and not with --json");
    if (job->trials < 1 || job->trials > 1000000 || job->threads > 256)
        return complain(2, "--trials takes 1 to 1000000 and --threads 1 to 256");
    if (job->threshold > 1 || job->overlap > 1)
        return complain(2, "--threshold and --overlap take numbers from 0 to 1");
    return 0;
}

static int detect(struct job *job)
{
    const int has_names = job->names_path != NULL;
    if (mf_net_load(job->arguments.item[0], job->arguments.item[1], job->unfused ? MF_NET_UNFUSED : 0, &job->net) !=
            MF_OK ||
        (has_names && mf_net_names_load(job->names_path, &job->names) != MF_OK) ||
        mf_net_layer_get(job->net, -1, &job->input) != MF_OK)
        return complain_library();
    if (job->input.channels != 3)
        return complain(1, "the network reads pictures of %lld channels, and only 3 can be given",
                        (long long)job->input.channels);
    job->pixels = malloc(sizeof(float) * 3 * (size_t)(job->input.height * job->input.width));
    return job->pixels ? detect_ways(job) : complain(1, "out of memory");
}

int command_detect(int argc, char **argv)
{
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return complain(1, "out of memory");
    job->backend = "simd";
    job->rules = "darknet";
    job->precision = "f32";
    job->trials = 5;
    const struct option_spec specs[] = {
        {"o", OPTION_MANY, &job->files},           {"output", OPTION_MANY, &job->files},
        {"names", OPTION_TEXT, &job->names_path},  {"threshold", OPTION_REAL, &job->threshold},
        {"overlap", OPTION_REAL, &job->overlap},   {"rules", OPTION_TEXT, &job->rules},
        {"backend", OPTION_TEXT, &job->backend},   {"precision", OPTION_TEXT, &job->precision},
        {"threads", OPTION_NUMBER, &job->threads}, {"letterbox", OPTION_FLAG, &job->letterbox},
        {"unfused", OPTION_FLAG, &job->unfused},   {"order-contract", OPTION_FLAG, &job->contract},
        {"times", OPTION_FLAG, &job->times},       {"trials", OPTION_NUMBER, &job->trials},
        {"json", OPTION_FLAG, &job->json},         {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &job->arguments);
    if (!status)
        status = check(job);
    if (!status)
        status = detect(job);
    net_way_close(&job->way);
    mf_net_names_destroy(job->names);
    mf_net_destroy(job->net);
    free(job->pixels);
    free(job);
    return status;
}
