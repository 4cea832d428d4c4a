/* From a solver's choices to a compiled kernel with its arguments, and its launches. */
#include "launch.h"

#include <stdio.h>

#include "emit_reducers.h"
#include "texts.h"
#include "vocabulary.h"

struct gpu_program {
    struct gpu_program *next;
    struct gpu_kernel *kernel;
    char text[];
};

struct gpu_plan {
    struct gpu_plan *next; /* what is launched after it, with the first one's workspace */
    const struct gpu_kernel *kernel;
    struct gpu_call call; /* instead of a kernel, if call.run is not null */
    struct gpu_slots slots;
    void *workspace, *shape_memory; /* shape_memory: where the shape does not fit among the arguments */
    int64_t bytes;                  /* of both */
    int threads, vector, vector_loop, flat, shape_words;
    int64_t blocks, shared;
    char text[256];
    int64_t shape[GPU_SHAPE_WORDS];
};

/* ---- programs ---- */

static struct gpu_program *find_program(struct gpu_program *list, const char *text)
{
    while (list && strcmp(list->text, text) != 0)
        list = list->next;
    return list;
}

/* Two threads may compile the same one; the second's is dropped. */
mf_status mf_gpu_kernel(struct mf_device *device, const char *text, const struct gpu_kernel **kernel)
{
    pthread_mutex_lock(&device->lock);
    struct gpu_program *found = find_program(device->programs, text);
    pthread_mutex_unlock(&device->lock);
    if (!found) {
        struct gpu_program *made = mf_calloc(sizeof *made + strlen(text) + 1);
        if (!made)
            return MF_ERROR_MEMORY;
        strcpy(made->text, text);
        mf_status status = device->api->build(device->gpu, text, &made->kernel);
        if (status != MF_OK) {
            mf_free(made);
            return status;
        }
        pthread_mutex_lock(&device->lock);
        found = find_program(device->programs, text);
        if (!found) {
            made->next = device->programs;
            device->programs = found = made;
            made = NULL;
        }
        pthread_mutex_unlock(&device->lock);
        if (made) {
            device->api->discard(device->gpu, made->kernel);
            mf_free(made);
        }
    }
    *kernel = found->kernel;
    return MF_OK;
}

int mf_gpu_kernel_count(const struct mf_device *device)
{
    int count = 0;
    for (const struct gpu_program *p = device->programs; p; p = p->next)
        count++;
    return count;
}

void mf_gpu_discard_programs(struct mf_device *device)
{
    while (device->programs) {
        struct gpu_program *next = device->programs->next;
        device->api->discard(device->gpu, device->programs->kernel);
        mf_free(device->programs);
        device->programs = next;
    }
}

/* ---- the shape ---- */

/* Puts words into the shape; a shape that does not fit is noticed by its count. */
static void put(struct gpu_plan *gpu, int64_t word)
{
    if (gpu->shape_words < GPU_SHAPE_WORDS)
        gpu->shape[gpu->shape_words] = word;
    gpu->shape_words++;
}

static void put_all(struct gpu_plan *gpu, const int64_t *words, int count)
{
    for (int i = 0; i < count; i++)
        put(gpu, words[i]);
    if (!count)
        put(gpu, 0);
}

/* v / size = v * magic >> 32 >> shift for v < 2^31: magic = ceil(2^(31+bits) / size) with 2^(bits-1) < size <=
 * 2^bits. */
static void magic_of(int64_t size, int64_t *magic, int64_t *shift)
{
    int bits = 1;
    *magic = *shift = 0;
    if (size < 2 || size > (int64_t)1 << 30)
        return;
    while ((int64_t)1 << bits < size)
        bits++;
    uint64_t power = (uint64_t)1 << (31 + bits);
    *magic = (int64_t)((power + (uint64_t)size - 1) / (uint64_t)size);
    *shift = bits - 1;
}

int64_t mf_gpu_divisor(int64_t size)
{
    int64_t magic, shift;
    magic_of(size, &magic, &shift);
    return magic | shift << 32;
}

/* In the order of struct shape, kernels/shape.cl. */
static void fill_shape(const struct problem *problem, const struct gpu_choice *choice, const void *condition,
                       struct gpu_plan *gpu)
{
    const struct nest *nest = &problem->memory;
    int loops = nest->kept + nest->reduced, windows = problem->program.reducer_count ? nest->window_count : 0;
    int64_t magic[MAX_LOOPS], shift[MAX_LOOPS];
    for (int l = 0; l < loops; l++)
        magic_of(nest->size[l], &magic[l], &shift[l]);
    put(gpu, problem->kept_total);
    put(gpu, problem->reduced_total);
    put_all(gpu, nest->size, loops);
    put_all(gpu, magic, loops);
    put_all(gpu, shift, loops);
    for (int s = 0; s < gpu->slots.count; s++)
        put_all(gpu, nest->in[gpu->slots.input[s]], loops);
    for (int l = 0; l < (loops ? loops : 1) && !gpu->slots.count; l++)
        put(gpu, 0);
    for (int k = 0; k < problem->output_count; k++)
        put_all(gpu, nest->out[k], nest->kept);
    put_all(gpu, nest->index, loops);
    int64_t offset[MAX_WINDOWS] = {0}, extent[MAX_WINDOWS] = {0};
    for (int w = 0; w < windows; w++) {
        offset[w] = nest->window[w].offset;
        extent[w] = nest->window[w].extent;
    }
    put_all(gpu, offset, windows);
    put_all(gpu, extent, windows);
    for (int w = 0; w < windows; w++)
        put_all(gpu, nest->window[w].step, loops);
    for (int l = 0; l < (loops ? loops : 1) && !windows; l++)
        put(gpu, 0);
    put_all(gpu, choice->own, GPU_OWN);
    put(gpu, (int64_t)(intptr_t)condition);
    put(gpu, choice->blocks);
}

/* ---- plans ---- */

static void assemble(const struct problem *problem, const struct gpu_choice *choice, const struct gpu_plan *gpu,
                     int in_memory, int conditional, struct gpu_text *to)
{
    mf_text_add(to,
                "#define THREADS %d\n#define VECTOR %d\n#define SHAPE_IN_MEMORY %d\n#define SHIFTED %d\n"
                "#define READS_ONCE %d\n",
                choice->threads, choice->vector, in_memory, choice->shifted, choice->reads_once);
    if (choice->beside)
        mf_text_add(to, "#define LAUNCH_BOUNDS THREADS, %d\n", choice->beside);
    else
        mf_text_append(to, "#define LAUNCH_BOUNDS THREADS\n");
    if (choice->macros.text)
        mf_text_append(to, choice->macros.text);
    mf_text_append(to, mf_text_reducers_cl);
    mf_emit_program(problem, &gpu->slots, choice->vector, choice->packed, to);
    mf_text_append(to, mf_text_shape_cl);
    mf_text_append(to, conditional ? mf_text_conditional_cu : "");
    mf_emit_after_shape(problem, &gpu->slots, to);
    mf_text_append(to, mf_text_common_cl);
    mf_emit_settle(problem, to);
    if (choice->fold)
        mf_text_append(to, choice->fold);
    if (choice->functions.text)
        mf_text_append(to, choice->functions.text);
    mf_text_append(to, choice->kernel);
    mf_text_append(to, conditional ? mf_text_conditional_cu : "");
}

static mf_status make(struct mf_plan *plan, struct gpu_choice *choice, struct gpu_plan *gpu)
{
    struct mf_device *device = plan->device;
    const struct gpu_limits *limits = MF_GPU_LIMITS(device->gpu);
    const void *condition = device->api == &mf_gpu_cuda ? plan->condition : NULL;
    enum { FEW_BLOCKS = 16 }; /* of a multiprocessor, kernels/conditional.cu */
    mf_emit_slots(&plan->problem, &gpu->slots);
    fill_shape(&plan->problem, choice, condition, gpu);
    if (gpu->shape_words > GPU_SHAPE_WORDS)
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "the fold has %d loops and %d operands, more than a GPU's plan has room for",
                       plan->problem.memory.kept + plan->problem.memory.reduced, gpu->slots.count);
    int64_t shape_bytes = 8 * (int64_t)gpu->shape_words;
    int64_t others = 16 * (gpu->slots.count + plan->problem.output_count) + 64;
    int in_memory = shape_bytes + others > limits->parameters;
    struct gpu_text own = {NULL, 0, 0, 0}, text = {NULL, 0, 0, 0};
    assemble(&plan->problem, choice, gpu, in_memory, condition != NULL, &own);
    if (!own.failed)
        mf_vocabulary_add(own.text, &text);
    mf_status status = own.failed || text.failed || choice->macros.failed || choice->functions.failed
                           ? MF_ERROR_MEMORY
                           : mf_gpu_kernel(device, text.text, &gpu->kernel);
    mf_free(own.text);
    mf_free(text.text);
    MF_TRY(status);
    if (condition && gpu->blocks > FEW_BLOCKS * limits->multiprocessors)
        gpu->blocks = FEW_BLOCKS * limits->multiprocessors;
    gpu->bytes = choice->workspace_bytes + (in_memory ? shape_bytes : 0);
    if (choice->workspace_bytes)
        MF_TRY(device->api->alloc(device->gpu, choice->workspace_bytes, &gpu->workspace));
    if (choice->table)
        MF_TRY(device->api->copy(device->gpu, gpu->workspace, 0, (void *)(uintptr_t)choice->table, choice->table_bytes,
                                 0));
    if (!in_memory)
        return MF_OK;
    MF_TRY(device->api->alloc(device->gpu, shape_bytes, &gpu->shape_memory));
    return device->api->copy(device->gpu, gpu->shape_memory, 0, gpu->shape, shape_bytes, 0);
}

/* Shared memory that nobody uses: so much that only so many blocks have room beside each other, each with up to OWN
 * bytes in use. As much as goes: the multiprocessor's first cache, which shares that memory, is then small. (f32 rows
 * of a tile, two blocks of 90 KB: 2907 GB/s, of 100 KB: 3017, on an H100.) */
static int64_t shared_for(const struct gpu_limits *limits, int most_beside)
{
    enum {
        OF_SYSTEM = 1 << 10 /* of each block; what the largest block leaves of a multiprocessor's */,
        OWN = 2 << 10
    };
    if (!most_beside || limits->shared_most <= limits->shared)
        return 0;
    return (limits->shared_most + OF_SYSTEM) / most_beside - OF_SYSTEM - OWN;
}

static mf_status fill(struct mf_plan *plan, struct gpu_choice *choice, struct gpu_plan *gpu)
{
    mf_status status = MF_ERROR_MEMORY;
    if (gpu) {
        gpu->threads = choice->threads;
        gpu->vector = choice->vector;
        gpu->vector_loop = choice->vector_loop;
        gpu->flat = choice->flat;
        gpu->blocks = choice->blocks;
        gpu->shared =
            choice->shared ? choice->shared : shared_for(MF_GPU_LIMITS(plan->device->gpu), choice->most_beside);
        memcpy(gpu->text, choice->text, sizeof gpu->text);
        status = make(plan, choice, gpu);
    }
    mf_free(choice->macros.text);
    mf_free(choice->functions.text);
    return status;
}

/* A stage after the last one, or the first; null without memory. */
static struct gpu_plan *append_stage(struct mf_plan *plan)
{
    struct gpu_plan *last = plan->data, *stage = mf_calloc(sizeof *stage);
    while (last && last->next)
        last = last->next;
    if (last)
        last->next = stage;
    else
        plan->data = stage;
    return stage;
}

mf_status mf_gpu_make(struct mf_plan *plan, struct gpu_choice *choice)
{
    return fill(plan, choice, append_stage(plan));
}

mf_status mf_gpu_add_call(struct mf_plan *plan, const struct gpu_call *call)
{
    struct gpu_plan *gpu = append_stage(plan);
    if (!gpu) {
        call->forget(call->context);
        return MF_ERROR_MEMORY;
    }
    gpu->call = *call;
    return MF_OK;
}

int64_t mf_gpu_memory(const struct mf_plan *plan)
{
    int64_t bytes = 0;
    for (const struct gpu_plan *stage = plan->data; stage; stage = stage->next)
        bytes += stage->bytes;
    return bytes;
}

mf_status mf_gpu_read_workspace(const struct mf_plan *plan, int64_t offset, void *to, int64_t bytes)
{
    const struct gpu_plan *first = plan->data;
    return plan->device->api->copy(plan->device->gpu, first->workspace, offset, to, bytes, 1);
}

static void release_memory(const struct mf_plan *plan, struct gpu_plan *gpu)
{
    if (gpu->call.run)
        gpu->call.forget(gpu->call.context);
    plan->device->api->release(plan->device->gpu, gpu->workspace);
    plan->device->api->release(plan->device->gpu, gpu->shape_memory);
}

void mf_gpu_forget(struct mf_plan *plan)
{
    struct gpu_plan *gpu = plan->data;
    if (!gpu)
        return;
    release_memory(plan, gpu);
    for (struct gpu_plan *stage = gpu->next, *next; stage; stage = next) {
        next = stage->next;
        release_memory(plan, stage);
        mf_free(stage);
    }
}

static int print_stage(const struct gpu_plan *gpu, char *text, size_t size)
{
    if (gpu->call.run)
        return snprintf(text, size, "%s", gpu->call.what);
    const struct gpu_usage *usage = MF_GPU_USAGE(gpu->kernel);
    int n = snprintf(text, size, "%s: %lld blocks of %d threads", gpu->text, (long long)gpu->blocks, gpu->threads);
    if (usage->registers && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " with %d registers, %d bytes on the stack, %d spilled",
                      usage->registers, usage->stack, usage->spilled);
    return n;
}

void mf_gpu_print(const struct mf_plan *plan, char *text, size_t size)
{
    for (const struct gpu_plan *gpu = plan->data; gpu; gpu = gpu->next) {
        int n = print_stage(gpu, text, size);
        if (n < 0 || (size_t)n + 2 > size)
            return;
        text += n;
        size -= (size_t)n;
        if (gpu->next) {
            *text++ = '\n';
            size--;
        }
    }
}

/* ---- execution ---- */

/* Whether vectors of one tensor may be read or written here: aligned, or one element that is repeated. */
static int is_aligned(const struct nest *nest, const int64_t *stride, int loops, const struct gpu_plan *gpu,
                      enum dtype type, uintptr_t place)
{
    int64_t item = mf_dtypes[type].size, align = item * gpu->vector < 16 ? item * gpu->vector : 16;
    if (gpu->flat)
        return place % (uintptr_t)align == 0;
    if (stride[gpu->vector_loop] == 0)
        return 1;
    if (stride[gpu->vector_loop] != 1 || place % (uintptr_t)align)
        return 0;
    for (int l = 0; l < loops; l++)
        if (l != gpu->vector_loop && nest->size[l] > 1 && stride[l] * item % align)
            return 0;
    return 1;
}

/* Inside the reducers only the map's operands are read in vectors; without a reducer all tensors are. */
static int can_use_vectors(const struct problem *problem, const struct gpu_plan *gpu, const struct pointers *pointers)
{
    const struct nest *nest = &problem->memory;
    int reduces = problem->program.reducer_count > 0, loops = nest->kept + nest->reduced;
    if (gpu->vector_loop < 0 || (!reduces && !gpu->flat && nest->size[gpu->vector_loop] % gpu->vector))
        return 0;
    for (int s = 0; s < gpu->slots.count; s++) {
        int i = gpu->slots.input[s];
        if ((!reduces || problem->map_uses[i]) &&
            !is_aligned(nest, nest->in[i], loops, gpu, problem->in_type[i], pointers->in_place[i]))
            return 0;
    }
    for (int k = 0; k < problem->output_count && !reduces; k++)
        if ((!gpu->flat && nest->out[k][gpu->vector_loop] != 1) ||
            !is_aligned(nest, nest->out[k], nest->kept, gpu, problem->out_type[k], pointers->out_place[k]))
            return 0;
    return 1;
}

static mf_status launch(const struct mf_plan *plan, const struct gpu_plan *gpu, const struct pointers *pointers)
{
    const struct gpu_plan *first = plan->data;
    const struct problem *problem = &plan->problem;
    struct gpu_argument arguments[MF_MAX_INPUTS + MF_MAX_OUTPUTS + 3];
    int64_t bases[MF_MAX_INPUTS + MF_MAX_OUTPUTS + 2];
    int n = 0, b = 0;
    for (int s = 0; s < gpu->slots.count; s++) {
        arguments[n++] = (struct gpu_argument){pointers->in[gpu->slots.input[s]], 0};
        bases[b++] = pointers->in_offset[gpu->slots.input[s]];
    }
    if (!gpu->slots.count)
        bases[b++] = 0;
    for (int k = 0; k < problem->output_count; k++) {
        arguments[n++] = (struct gpu_argument){pointers->out[k], 0};
        bases[b++] = pointers->out_offset[k];
    }
    bases[b++] = gpu->vector > 1 && can_use_vectors(problem, gpu, pointers);
    arguments[n++] = (struct gpu_argument){bases, 8 * (size_t)b};
    arguments[n++] = gpu->shape_memory ? (struct gpu_argument){gpu->shape_memory, 0}
                                       : (struct gpu_argument){gpu->shape, 8 * (size_t)gpu->shape_words};
    arguments[n++] = (struct gpu_argument){first->workspace, 0};
    struct gpu_launch work = {gpu->kernel, gpu->blocks, gpu->threads, n, arguments, gpu->shared, 1};
    return plan->device->api->launch(plan->device->gpu, &work, pointers->stream);
}

mf_status mf_gpu_execute(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct gpu_plan *first = plan->data;
    for (const struct gpu_plan *gpu = first; gpu; gpu = gpu->next)
        MF_TRY(gpu->call.run ? gpu->call.run(plan, gpu->call.context, first->workspace, pointers)
                             : launch(plan, gpu, pointers));
    return MF_OK;
}
