/* modefold match: the nearest rows of bit strings, from files into files or text. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <modefold_match.h>

#include "array.h"
#include "commands.h"
#include "fold_files.h"
#include "options.h"
#include "progress.h"
#include "show.h"
#include "tensor_there.h"

enum { QUERIES, TRAIN, QUERY_MASK, TRAIN_MASK, INPUTS };
enum { INDICES, DISTANCES, BEST, OUTPUTS }; /* BEST: the row that passes the tests */

struct job {
    const char *path[INPUTS], *matches_path, *path_of[OUTPUTS], *device_name, *solver;
    int64_t k, threads, difference, max_distance;
    double ratio;
    int cross_check, json;
    mf_device *device;
    struct array input[INPUTS];
    DLTensor here[OUTPUTS], input_there[INPUTS], output_there[OUTPUTS];
    int64_t shape[2];
    int32_t *memory[OUTPUTS], *matches; /* matches: query, row, distance */
    int64_t count;
    double seconds;
};

static int open_inputs(struct job *job, const struct option_list *arguments)
{
    static const char *const names[] = {"QUERIES", "TRAIN", "--query-mask", "--train-mask"};
    char error[512];
    if (arguments->count != 2)
        return complain(2, "match needs QUERIES and TRAIN; 'modefold match --help' has examples");
    if (job->k < 1 || job->k > MF_MATCH_MAX_K)
        return complain(2, "--k takes 1 to %d, not %" PRId64, MF_MATCH_MAX_K, job->k);
    job->path[QUERIES] = arguments->item[0];
    job->path[TRAIN] = arguments->item[1];
    for (int i = 0; i < INPUTS; i++) {
        if (!job->path[i])
            continue;
        if (array_open(job->path[i], &job->input[i], error, sizeof error))
            return complain(1, "%s", error);
        if (i < 2 && job->input[i].tensor->ndim != 2)
            return complain(1, "%s has %d dimensions and %s wants 2: rows of bits", job->path[i],
                            job->input[i].tensor->ndim, names[i]);
    }
    return device_open(job->device_name, job->threads, NULL, &job->device);
}

static int make_outputs(struct job *job)
{
    const int64_t rows = job->input[QUERIES].tensor->shape[0];
    job->shape[0] = rows;
    job->shape[1] = job->k;
    for (int o = 0; o < OUTPUTS; o++) {
        const int64_t columns = o == BEST ? 1 : job->k;
        job->memory[o] = calloc((size_t)rows + 1, (size_t)columns * sizeof(int32_t));
        if (!job->memory[o])
            return complain(1, "out of memory: %" PRId64 " queries", rows);
        job->here[o] = mf_tensor(job->memory[o], MF_I32, o == BEST ? 1 : 2, job->shape);
    }
    job->matches = calloc((size_t)rows + 1, 3 * sizeof *job->matches);
    return job->matches ? 0 : complain(1, "out of memory: %" PRId64 " queries", rows);
}

static mf_status call(struct job *job)
{
    DLTensor *in = job->input_there, *out = job->output_there;
    const mf_match_input input = {.queries = &in[QUERIES],
                                  .train = &in[TRAIN],
                                  .query_mask = job->path[QUERY_MASK] ? &in[QUERY_MASK] : NULL,
                                  .train_mask = job->path[TRAIN_MASK] ? &in[TRAIN_MASK] : NULL};
    const mf_match_output output = {.indices = &out[INDICES], .distances = &out[DISTANCES], .matches = &out[BEST]};
    const uint32_t tests = (job->difference >= 0 ? MF_MATCH_DIFFERENCE : 0) | (job->ratio >= 0 ? MF_MATCH_RATIO : 0) |
                           (job->max_distance >= 0 ? MF_MATCH_MAX_DISTANCE : 0) |
                           (job->cross_check ? MF_MATCH_CROSS_CHECK : 0);
    const mf_match_options options = {.tests = tests,
                                      .difference = job->difference < 0 ? 0 : job->difference,
                                      .max_distance = job->max_distance < 0 ? 0 : job->max_distance,
                                      .ratio = job->ratio < 0 ? 0 : job->ratio,
                                      .solver = job->solver};
    const double start = seconds_now();
    mf_status status = mf_match(job->device, &input, &output, &options, NULL);
    if (status == MF_OK)
        status = mf_device_wait(job->device, NULL);
    job->seconds = seconds_now() - start;
    return status;
}

static int match(struct job *job)
{
    struct progress progress;
    mf_status status = MF_OK;
    progress_start(&progress, "matching");
    for (int i = 0; i < INPUTS && status == MF_OK; i++)
        if (job->path[i])
            status = tensor_send(job->device, job->input[i].tensor, 1, &job->input_there[i]);
    for (int o = 0; o < OUTPUTS && status == MF_OK; o++)
        status = tensor_send(job->device, &job->here[o], 0, &job->output_there[o]);
    if (status == MF_OK)
        status = call(job);
    for (int o = 0; o < OUTPUTS && status == MF_OK; o++)
        status = tensor_fetch(job->device, &job->output_there[o], &job->here[o]);
    progress_end(&progress);
    if (status != MF_OK)
        return complain_library();
    for (int64_t q = 0; q < job->shape[0]; q++)
        if (job->memory[BEST][q] >= 0) {
            int32_t *row = job->matches + 3 * job->count++;
            row[0] = (int32_t)q;
            row[1] = job->memory[BEST][q];
            row[2] = job->memory[DISTANCES][q * job->k];
        }
    return 0;
}

/* Makes the file and puts it in place. */
static int write_file(const char *path, const int32_t *data, int64_t rows, int64_t columns)
{
    char error[512];
    struct array file = {0};
    const int64_t shape[2] = {rows, columns};
    int failed = array_create(path, mf_dtype(MF_I32), 2, shape, &file, error, sizeof error);
    if (!failed) {
        memcpy(file.tensor->data, data, (size_t)(rows * columns) * sizeof *data);
        failed = array_commit(&file, error, sizeof error);
    }
    array_close(&file);
    return failed ? complain(1, "%s", error) : 0;
}

static int write_files(const struct job *job)
{
    int status = 0;
    if (job->matches_path)
        status = write_file(job->matches_path, job->matches, job->count, 3);
    for (int o = 0; o < BEST && !status; o++)
        if (job->path_of[o])
            status = write_file(job->path_of[o], job->memory[o], job->shape[0], job->k);
    return status;
}

static void show(const struct job *job)
{
    const int64_t shape[2] = {job->count, 3}, train = job->input[TRAIN].tensor->shape[0];
    const DLTensor matches = mf_tensor(job->matches, MF_I32, 2, shape);
    if (job->json) {
        printf("{\"queries\": %" PRId64 ", \"train\": %" PRId64 ", \"k\": %" PRId64 ", \"matches\": %" PRId64
               ", \"device\": ",
               job->shape[0], train, job->k, job->count);
        show_json_text(stdout, mf_device_describe(job->device));
        printf(", \"seconds\": %.9f, \"comparisons_per_second\": %.4g", job->seconds,
               job->seconds > 0 ? (double)job->shape[0] * (double)train / job->seconds : 0);
        if (tensor_elements(&matches) <= SHOW_ELEMENTS) {
            printf(", \"data\": ");
            show_json_array(stdout, &matches);
        }
        printf("}\n");
    } else if (!job->matches_path && !job->path_of[INDICES] && !job->path_of[DISTANCES]) {
        show_array(stdout, &matches);
    }
}

static void release(struct job *job)
{
    for (int i = 0; i < INPUTS; i++) {
        tensor_forget(job->device, &job->input_there[i]);
        array_close(&job->input[i]);
    }
    for (int o = 0; o < OUTPUTS; o++) {
        tensor_forget(job->device, &job->output_there[o]);
        free(job->memory[o]);
    }
    free(job->matches);
    mf_device_close(job->device);
    free(job);
}

int command_match(int argc, char **argv)
{
    struct option_list arguments = {0};
    struct job *job = calloc(1, sizeof *job);
    if (!job)
        return complain(1, "out of memory");
    job->k = 2;
    job->difference = job->max_distance = -1;
    job->ratio = -1;
    const struct option_spec specs[] = {
        {"o", OPTION_TEXT, &job->matches_path},
        {"output", OPTION_TEXT, &job->matches_path},
        {"indices", OPTION_TEXT, &job->path_of[INDICES]},
        {"distances", OPTION_TEXT, &job->path_of[DISTANCES]},
        {"k", OPTION_NUMBER, &job->k},
        {"difference", OPTION_NUMBER, &job->difference},
        {"ratio", OPTION_REAL, &job->ratio},
        {"max-distance", OPTION_NUMBER, &job->max_distance},
        {"cross-check", OPTION_FLAG, &job->cross_check},
        {"query-mask", OPTION_TEXT, &job->path[QUERY_MASK]},
        {"train-mask", OPTION_TEXT, &job->path[TRAIN_MASK]},
        {"threads", OPTION_NUMBER, &job->threads},
        {"device", OPTION_TEXT, &job->device_name},
        {"solver", OPTION_TEXT, &job->solver},
        {"json", OPTION_FLAG, &job->json},
        {NULL, OPTION_FLAG, NULL},
    };
    int status = options_parse(argc, argv, specs, &arguments);
    if (!status)
        status = open_inputs(job, &arguments);
    if (!status)
        status = make_outputs(job);
    if (!status)
        status = match(job);
    if (!status)
        status = write_files(job);
    if (!status)
        show(job);
    release(job);
    return status;
}
