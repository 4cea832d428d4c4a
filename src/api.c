/* Devices, one-shot calls and questions about a fold. */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>

#include "cpu/cpu.h"
#include "gpu/launch.h"
#include "gpu/texts.h"
#include "text.h"

int mf_version(void)
{
    return MF_VERSION_MAJOR * 10000 + MF_VERSION_MINOR * 100 + MF_VERSION_PATCH;
}

/* ---- recent plans ---- */

/* mf_fold keeps plans by everything that makes them: the strings and each tensor's type, shape and strides. A plan
 * in use by a thread is not freed by another: `users` counts. */
enum { CACHE_PLANS = 32, KEY_WORDS = 512 };

struct cached {
    struct mf_plan *plan;
    int users;
    uint64_t used; /* clock of the last use */
    char *modes, *expression;
    int key_length;
    int64_t key[];
};

struct fold_cache {
    uint64_t clock;
    struct cached *entry[CACHE_PLANS];
};

static int add_key(const DLTensor *tensors, int count, int64_t *key, int n)
{
    for (int i = 0; i < count; i++) {
        const DLTensor *t = &tensors[i];
        if (t->ndim < 0 || t->ndim > MF_MAX_RANK || n + 2 * t->ndim + 2 > KEY_WORDS || (t->ndim && !t->shape))
            return -1;
        key[n++] = t->dtype.code | t->dtype.bits << 8 | (int64_t)t->dtype.lanes << 16 | (int64_t)t->ndim << 32;
        key[n++] = (t->strides != NULL) + 2 * (int64_t)mf_tensor_memory(t);
        for (int d = 0; d < t->ndim; d++)
            key[n++] = t->shape[d];
        for (int d = 0; t->strides && d < t->ndim; d++)
            key[n++] = t->strides[d];
    }
    return n;
}

/* Everything but the strings that makes a plan, in KEY_WORDS words; -1 when it does not fit. The counts are a
 * plan's: those of strings that have not been parsed say nothing about how many tensors there are. */
static int make_key(const struct problem *problem, const DLTensor *inputs, const DLTensor *outputs, int64_t *key)
{
    int n = add_key(inputs, problem->input_count, key, 0);
    return n < 0 ? -1 : add_key(outputs, problem->output_count, key, n);
}

static void free_cached(struct cached *c)
{
    if (!c)
        return;
    mf_plan_destroy(c->plan);
    mf_free(c->modes);
    mf_free(c->expression);
    mf_free(c);
}

static char *copy_text(const char *text)
{
    char *copy = mf_alloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

static struct cached *find_cached(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                                  const DLTensor *outputs)
{
    struct fold_cache *cache = device->cache;
    struct cached *found = NULL;
    int64_t key[KEY_WORDS];
    int n = 0; /* the key is made once, when there is a plan of these strings */
    pthread_mutex_lock(&device->lock);
    for (int i = 0; i < CACHE_PLANS && !found && n >= 0; i++) {
        struct cached *c = cache->entry[i];
        if (!c || strcmp(c->modes, modes) != 0 || strcmp(c->expression, expression) != 0)
            continue;
        if (!n)
            n = make_key(&c->plan->problem, inputs, outputs, key);
        if (n == c->key_length && !memcmp(c->key, key, sizeof *key * (size_t)n)) {
            found = c;
            found->users++;
            found->used = ++cache->clock;
        }
    }
    pthread_mutex_unlock(&device->lock);
    return found;
}

/* Null when memory is out; the plan is then still the caller's. */
static struct cached *make_cached(struct mf_plan *plan, const char *modes, const char *expression, const int64_t *key,
                                  int n)
{
    struct cached *c = mf_calloc(sizeof *c + sizeof *key * (size_t)n);
    if (!c)
        return NULL;
    c->users = 1;
    c->key_length = n;
    memcpy(c->key, key, sizeof *key * (size_t)n);
    c->modes = copy_text(modes);
    c->expression = copy_text(expression);
    if (c->modes && c->expression) {
        c->plan = plan;
        return c;
    }
    free_cached(c);
    return NULL;
}

/* Puts a new plan in the place of the longest unused one that no thread is executing. */
static void keep_cached(mf_device *device, struct cached *c)
{
    struct fold_cache *cache = device->cache;
    struct cached *old = NULL;
    int place = -1;
    pthread_mutex_lock(&device->lock);
    c->users--;
    c->used = ++cache->clock;
    for (int i = 0; i < CACHE_PLANS; i++) {
        const struct cached *e = cache->entry[i];
        if (!e) {
            place = i;
            break;
        }
        if (!e->users && (place < 0 || e->used < cache->entry[place]->used))
            place = i;
    }
    if (place >= 0) {
        old = cache->entry[place];
        cache->entry[place] = c;
    } else {
        old = c;
    }
    pthread_mutex_unlock(&device->lock);
    free_cached(old);
}

static void release_cached(mf_device *device, struct cached *c)
{
    pthread_mutex_lock(&device->lock);
    c->users--;
    pthread_mutex_unlock(&device->lock);
}

mf_status mf_plan_execute_tensors(const mf_plan *plan, const DLTensor *inputs, const DLTensor *outputs, void *stream)
{
    if (!plan || (!inputs && plan->problem.input_count) || !outputs)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_execute_tensors: %s is null",
                       !plan      ? "the plan"
                       : !outputs ? "outputs"
                                  : "inputs");
    if (stream && !plan->device->api)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_plan_execute_tensors: the CPU has no streams and one was given");
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    uint64_t in_bytes[MF_MAX_INPUTS], out_bytes[MF_MAX_OUTPUTS];
    for (int i = 0; i < plan->problem.input_count; i++) {
        in[i] = inputs[i].data;
        in_bytes[i] = in[i] ? inputs[i].byte_offset : 0;
    }
    for (int k = 0; k < plan->problem.output_count; k++) {
        out[k] = outputs[k].data;
        out_bytes[k] = outputs[k].byte_offset;
    }
    struct given given = {in, out, in_bytes, out_bytes, stream};
    return mf_plan_run(plan, &given);
}

/* A fold whose plan is not there yet. */
static mf_status fold_anew(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                           const DLTensor *outputs)
{
    mf_plan *plan;
    int64_t key[KEY_WORDS];
    MF_TRY(mf_plan_create(device, modes, expression, inputs, outputs, NULL, &plan));
    int n = make_key(&plan->problem, inputs, outputs, key);
    struct cached *c = n < 0 ? NULL : make_cached(plan, modes, expression, key, n);
    mf_status status = n >= 0 && !c ? MF_ERROR_MEMORY : mf_plan_execute_tensors(plan, inputs, outputs, NULL);
    if (c)
        keep_cached(device, c);
    else
        mf_plan_destroy(plan);
    return status;
}

mf_status mf_fold(mf_device *device, const char *modes, const char *expression, const DLTensor *inputs,
                  const DLTensor *outputs)
{
    if (!device || !modes || !expression || !inputs || !outputs)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_fold: %s is null",
                       !device       ? "the device"
                       : !modes      ? "the modes string"
                       : !expression ? "the expression"
                       : !inputs     ? "inputs"
                                     : "outputs");
    struct cached *c = find_cached(device, modes, expression, inputs, outputs);
    if (!c)
        return fold_anew(device, modes, expression, inputs, outputs);
    mf_status status = mf_plan_execute_tensors(c->plan, inputs, outputs, NULL);
    release_cached(device, c);
    return status;
}

/* ---- devices ---- */

static mf_status open_cpu(const char *name, struct mf_device *device)
{
    int count = mf_cpu_thread_count();
    if (name[3] == ':') {
        char *end;
        long given = strtol(name + 4, &end, 10);
        if (!mf_is_digit(name[4]) || *end || given < 1 || given > 256)
            return mf_fail(MF_ERROR_ARGUMENT, "device \"%.40s\": the number of threads must be 1 to 256", name);
        count = (int)given;
    }
    snprintf(device->name, sizeof device->name, "%s", name);
    device->thread_count = count;
    MF_TRY(mf_cpu_open(device));
    snprintf(device->description, sizeof device->description, "cpu: %d thread%s, %s", count, count == 1 ? "" : "s",
             mf_cpu_isa_name(device));
    return MF_OK;
}

/* "cuda", "cuda:1", "opencl:0". */
static mf_status open_gpu(const char *name, const struct gpu_api *api, struct mf_device *device)
{
    const char *number = name + strlen(api->name);
    char *end = NULL;
    long n = *number == ':' && mf_is_digit(number[1]) ? strtol(number + 1, &end, 10) : 0;
    if ((*number && (!end || *end)) || n > 255)
        return mf_fail(MF_ERROR_ARGUMENT, "device \"%.40s\": after \"%s:\" comes the device's number, 0 to 255", name,
                       api->name);
    mf_unpack_texts();
    MF_TRY(api->open((int)n, &device->gpu));
    device->api = api;
    device->thread_count = 1;
    snprintf(device->name, sizeof device->name, "%s:%ld", api->name, n);
    snprintf(device->description, sizeof device->description, "%s: %s, %d multiprocessors", device->name,
             MF_GPU_LIMITS(device->gpu)->name, MF_GPU_LIMITS(device->gpu)->multiprocessors);
    return MF_OK;
}

/* Whether the name is this kind of device, with a number or without. */
static int names_kind(const char *name, const char *kind)
{
    size_t n = strlen(kind);
    return !strncmp(name, kind, n) && (!name[n] || name[n] == ':');
}

static mf_status open_named(const char *name, struct mf_device *device)
{
    static const struct gpu_api *const apis[] = {&mf_gpu_cuda, &mf_gpu_opencl, &mf_gpu_arch};
    if (names_kind(name, "cpu"))
        return open_cpu(name, device);
    for (int i = 0; i < 3; i++)
        if (names_kind(name, apis[i]->name))
            return open_gpu(name, apis[i], device);
    if (strcmp(name, "auto") != 0)
        return mf_fail(MF_ERROR_ARGUMENT,
                       "there is no device \"%.40s\"; there are \"cpu\", \"cpu:THREADS\", \"cuda:NUMBER\", "
                       "\"opencl:NUMBER\", \"sm:ARCHITECTURE\" and \"auto\"",
                       name);
    return open_gpu("cuda:0", &mf_gpu_cuda, device) == MF_OK ? MF_OK : open_cpu("cpu", device);
}

mf_status mf_device_open(const char *name, mf_device **result)
{
    if (!name || !result)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_device_open: %s is null", name ? "the result" : "the name");
    *result = NULL;
    struct mf_device *device = mf_calloc(sizeof *device);
    if (!device)
        return MF_ERROR_MEMORY;
    pthread_mutex_init(&device->lock, NULL);
    device->cache = mf_calloc(sizeof *device->cache);
    mf_status status = device->cache ? open_named(name, device) : MF_ERROR_MEMORY;
    if (status != MF_OK) {
        mf_device_close(device);
        return status;
    }
    *result = device;
    return MF_OK;
}

void mf_device_close(mf_device *device)
{
    if (!device)
        return;
    for (int i = 0; device->cache && i < CACHE_PLANS; i++)
        free_cached(device->cache->entry[i]);
    mf_free(device->cache);
    if (device->api) {
        mf_gpu_discard_programs(device);
        device->api->close(device->gpu);
    }
    mf_cpu_close(device);
    mf_operations_forget(device);
    pthread_mutex_destroy(&device->lock);
    mf_free(device);
}

int mf_device_kind(const mf_device *device)
{
    enum { CPU = 1 };
    return device && device->api ? MF_GPU_LIMITS(device->gpu)->dlpack : CPU;
}

const char *mf_device_describe(const mf_device *device)
{
    return device ? device->description : "";
}

/* ---- questions ---- */

static mf_status parse_for(const char *text, int input_count, const DLTensor *inputs, struct modes *modes)
{
    MF_TRY(mf_modes_parse(text, modes));
    if (input_count != modes->input_count)
        return mf_fail(MF_ERROR_ARGUMENT, "modes \"%.100s\" has %d operands and %d tensors were given", text,
                       modes->input_count, input_count);
    for (int i = 0; i < input_count; i++)
        if (inputs[i].ndim < 0 || inputs[i].ndim > MF_MAX_RANK)
            return mf_fail(MF_ERROR_SHAPE, "operand %c has %d dimensions and the most is %d", 'a' + i, inputs[i].ndim,
                           MF_MAX_RANK);
    return MF_OK;
}

mf_status mf_fold_shape(const char *modes, int input_count, const DLTensor *inputs, int *ndim, int64_t *shape)
{
    if (!modes || !inputs || !ndim || !shape)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_fold_shape: an argument is null");
    struct modes *parsed = mf_alloc(sizeof *parsed);
    if (!parsed)
        return MF_ERROR_MEMORY;
    int64_t size[MF_MAX_MODES];
    mf_status status = parse_for(modes, input_count, inputs, parsed);
    if (status == MF_OK)
        status = mf_modes_sizes(parsed, inputs, NULL, size);
    if (status == MF_OK) {
        *ndim = parsed->output_rank;
        for (int d = 0; d < parsed->output_rank; d++)
            shape[d] = size[parsed->output_mode[d]];
    }
    mf_free(parsed);
    return status;
}

mf_status mf_fold_type(mf_device *device, const char *expression, int input_count, const DLTensor *inputs, int k,
                       DLDataType *type)
{
    enum dtype types[MF_MAX_INPUTS];
    if (!device || !expression || !inputs || !type || input_count < 0 || input_count > MF_MAX_INPUTS)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_fold_type: an argument is null or there are %d inputs", input_count);
    for (int i = 0; i < input_count; i++) {
        int t = mf_dtype_find(inputs[i].dtype);
        if (t < 0)
            return mf_fail(MF_ERROR_TYPE,
                           "operand %c has DLPack type code %d with %d bits, which modefold does not have", 'a' + i,
                           inputs[i].dtype.code, inputs[i].dtype.bits);
        types[i] = (enum dtype)t;
    }
    struct program *program = mf_alloc(sizeof *program);
    if (!program)
        return MF_ERROR_MEMORY;
    pthread_mutex_lock(&device->lock);
    const struct operation *operations = device->operations; /* only ever grows at its head */
    pthread_mutex_unlock(&device->lock);
    mf_status status = mf_expr_parse(expression, input_count, types, operations, program);
    if (status == MF_OK && (k < 0 || k >= program->output_count))
        status =
            mf_fail(MF_ERROR_ARGUMENT, "result %d was asked for and the expression has %d", k, program->output_count);
    if (status == MF_OK) {
        const struct dtype_info *info = &mf_dtypes[program->finish.node[program->output[k]].dtype];
        *type = (DLDataType){info->code, info->bits, 1};
    }
    mf_free(program);
    return status;
}
