/* A problem's memory: filled, run, compared bit for bit, guards included. */
#include "problem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

/* Under AddressSanitizer even reading a guard is an error. */
#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
static void guard_close(unsigned char *at, size_t size)
{
    __asan_poison_memory_region(at, size);
}
static void guard_open(unsigned char *at, size_t size)
{
    __asan_unpoison_memory_region(at, size);
}
#else
static void guard_close(unsigned char *at, size_t size)
{
    (void)at, (void)size;
}
static void guard_open(unsigned char *at, size_t size)
{
    (void)at, (void)size;
}
#endif

/* The guard's bytes are NaN in every float type, so that what is read there shows. */
enum { GUARD = PROBLEM_GUARD, GUARD_BYTE = 0xff, UNWRITTEN_BYTE = 0xa5 };

static int fail(char *error, size_t error_size, const char *format, ...) __attribute__((format(printf, 3, 4)));
static int fail(char *error, size_t error_size, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, error_size, format, args);
    va_end(args);
    return 1;
}

/* Whether tensor number t exists. */
static int exists(const struct problem_line *line, int t)
{
    return t < MF_MAX_INPUTS ? t < line->input_count : t - MF_MAX_INPUTS < line->output_count;
}

static uint64_t hash_bytes(const unsigned char *bytes, size_t size)
{
    uint64_t hash = size, word;
    size_t i = 0;
    for (; i + 8 <= size; i += 8) {
        memcpy(&word, bytes + i, 8);
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    for (; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Guard, size bytes aligned to 64, guard; null when there is not so much memory. */
static unsigned char *allocate(size_t size)
{
    void *memory;
    size_t all = (size + 2 * GUARD + 63) / 64 * 64, huge = (size_t)2 << 20;
    if (size > SIZE_MAX / 2 || posix_memalign(&memory, all >= huge ? huge : 64, all))
        return NULL;
    if (all >= huge)
        madvise(memory, all, MADV_HUGEPAGE);
    unsigned char *base = (unsigned char *)memory + GUARD;
    memset(memory, GUARD_BYTE, GUARD);
    memset(base + size, GUARD_BYTE, all - GUARD - size);
    return base;
}

static void release(unsigned char *base)
{
    if (base)
        free(base - GUARD);
}

void problem_guards_close(const struct problem_block *block)
{
    guard_close(block->base - GUARD, GUARD);
    guard_close(block->base + block->size, GUARD);
}

void problem_guards_open(const struct problem_block *block)
{
    guard_open(block->base - GUARD, GUARD);
    guard_open(block->base + block->size, GUARD);
}

/* Test data; not exact: after a million elements they come again, which is much faster and enough for timing. */
static void fill(const struct problem_line *line, int t, const struct problem_block *block, int exact)
{
    const struct problem_tensor *tensor = &line->tensor[t];
    int64_t count = (int64_t)block->size / tensor->item, own = exact || count < 1 << 20 ? count : 1 << 20;
    values_fill(block->base, tensor->dtype, own, line->data, values_bits(line->seed, (uint64_t)t));
    for (int64_t done = own; done < count; done += own) {
        int64_t n = count - done < own ? count - done : own;
        memcpy(block->base + done * tensor->item, block->base, (size_t)(n * tensor->item));
    }
}

static int make_block(const struct problem_line *line, int t, size_t size, int exact, int with_copies,
                      struct problem_block *block)
{
    block->size = size;
    block->base = allocate(size);
    if (with_copies) {
        block->start = allocate(size);
        block->expected = allocate(size);
    }
    if (!block->base || (with_copies && (!block->start || !block->expected)))
        return 1;
    if (t < MF_MAX_INPUTS)
        fill(line, t, block, exact);
    else
        memset(block->base, UNWRITTEN_BYTE, size);
    if (with_copies)
        memcpy(block->start, block->base, size);
    return 0;
}

int problem_memory_make(const struct problem_line *line, int for_comparison, struct problem_memory *memory, char *error,
                        size_t error_size)
{
    int64_t bytes[PROBLEM_TENSORS] = {0};
    int written[PROBLEM_TENSORS] = {0};
    memset(memory, 0, sizeof *memory);
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        int64_t need;
        if (!exists(line, t))
            continue;
        const struct problem_tensor *tensor = &line->tensor[t];
        if (__builtin_mul_overflow(problem_extent(tensor), tensor->item, &need))
            return fail(error, error_size, "a tensor's memory has more than 2^63 bytes");
        if (need > bytes[tensor->memory])
            bytes[tensor->memory] = need;
        written[tensor->memory] |= t >= MF_MAX_INPUTS;
    }
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        if (!exists(line, t) || line->tensor[t].memory != t)
            continue;
        struct problem_block *block = &memory->block[t];
        size_t size = (size_t)bytes[t], item = (size_t)line->tensor[t].item;
        size = (size + item - 1) / item * item;
        if (make_block(line, t, size, for_comparison, for_comparison && written[t], block)) {
            problem_memory_free(memory);
            return fail(error, error_size, "out of memory: a tensor needs %zu bytes", size);
        }
        if (for_comparison && !written[t])
            block->hash = hash_bytes(block->base, block->size);
        problem_guards_close(block);
    }
    return 0;
}

void problem_memory_free(struct problem_memory *memory)
{
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        struct problem_block *block = &memory->block[t];
        if (block->base)
            problem_guards_open(block);
        release(block->base);
        release(block->start);
        release(block->expected);
    }
    memset(memory, 0, sizeof *memory);
}

/* With the guards. */
static void copy_block(unsigned char *to, const unsigned char *from, size_t size)
{
    memcpy(to - GUARD, from - GUARD, size + 2 * GUARD);
}

void problem_memory_reset(struct problem_memory *memory)
{
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        struct problem_block *block = &memory->block[t];
        if (!block->start)
            continue;
        problem_guards_open(block);
        copy_block(block->base, block->start, block->size);
        problem_guards_close(block);
    }
}

void problem_memory_expect(struct problem_memory *memory)
{
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        struct problem_block *block = &memory->block[t];
        if (!block->expected)
            continue;
        problem_guards_open(block);
        copy_block(block->expected, block->base, block->size);
        problem_guards_close(block);
    }
}

static int is_guard(const unsigned char *at)
{
    for (int i = 0; i < GUARD; i++)
        if (at[i] != GUARD_BYTE)
            return 0;
    return 1;
}

int problem_inputs_changed(const struct problem_memory *memory)
{
    int changed = 0;
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        const struct problem_block *block = &memory->block[t];
        if (!block->base)
            continue;
        if (block->expected)
            changed |= !is_guard(block->expected - GUARD) || !is_guard(block->expected + block->size);
        else
            changed |= hash_bytes(block->base, block->size) != block->hash;
    }
    return changed;
}

/* ---- running ---- */

DLTensor problem_dltensor(const struct problem_tensor *tensor)
{
    DLTensor made = mf_tensor(NULL, MF_F32, tensor->ndim, tensor->shape);
    const int64_t *strides = tensor->row_major ? NULL : tensor->strides;
    memcpy(&made.strides, &strides, sizeof strides);
    made.dtype = tensor->dtype;
    return made;
}

static void *position_zero(const struct problem_line *line, const struct problem_memory *memory, int t)
{
    const struct problem_tensor *tensor = &line->tensor[t];
    unsigned char *base = memory ? memory->block[tensor->memory].base : NULL;
    return base ? base + tensor->offset * tensor->item : NULL;
}

void problem_pointers(const struct problem_line *line, const struct problem_memory *memory, const void **inputs,
                      void **outputs)
{
    for (int i = 0; i < line->input_count; i++)
        inputs[i] = position_zero(line, memory, i);
    for (int k = 0; k < line->output_count; k++)
        outputs[k] = position_zero(line, memory, MF_MAX_INPUTS + k);
}

static void tensors(const mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                    DLTensor *inputs, DLTensor *outputs)
{
    for (int i = 0; i < line->input_count; i++) {
        inputs[i] = problem_dltensor(&line->tensor[i]);
        inputs[i].data = position_zero(line, memory, i);
        inputs[i].device.device_type = (DLDeviceType)mf_device_kind(device);
    }
    for (int k = 0; k < line->output_count; k++) {
        outputs[k] = problem_dltensor(&line->tensor[MF_MAX_INPUTS + k]);
        outputs[k].data = position_zero(line, memory, MF_MAX_INPUTS + k);
        outputs[k].device.device_type = (DLDeviceType)mf_device_kind(device);
    }
}

mf_status problem_plan(mf_device *device, const struct problem_line *line, const char *solver, int threads,
                       mf_plan **plan)
{
    DLTensor inputs[MF_MAX_INPUTS], outputs[MF_MAX_OUTPUTS];
    mf_status status = problem_define(device, line);
    if (status != MF_OK)
        return status;
    tensors(device, line, NULL, inputs, outputs);
    mf_options options = {solver            ? solver
                          : line->solver[0] ? line->solver
                                            : NULL,
                          line->order, threads ? threads : line->threads};
    return mf_plan_create(device, line->modes, line->expression, inputs, outputs, &options, plan);
}

mf_status problem_run(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                      const char *solver, int threads, int use_fold)
{
    const void *in[MF_MAX_INPUTS];
    void *out[MF_MAX_OUTPUTS];
    if (use_fold) {
        DLTensor inputs[MF_MAX_INPUTS], outputs[MF_MAX_OUTPUTS];
        mf_status defined = problem_define(device, line);
        tensors(device, line, memory, inputs, outputs);
        return defined != MF_OK ? defined : mf_fold(device, line->modes, line->expression, inputs, outputs);
    }
    mf_plan *plan;
    mf_status status = problem_plan(device, line, solver, threads, &plan);
    if (status != MF_OK)
        return status;
    problem_pointers(line, memory, in, out);
    status = mf_plan_execute(plan, in, out, NULL);
    mf_plan_destroy(plan);
    return status;
}

/* ---- comparing ---- */

/* Moves to the next position, the last dimension fastest; 0 after the last. */
static int next_position(const struct problem_tensor *tensor, int64_t *at)
{
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        if (++at[d] < tensor->shape[d])
            return 1;
        at[d] = 0;
    }
    return 0;
}

static int compare_output(const struct problem_line *line, const struct problem_memory *memory, int k,
                          struct problem_difference *difference)
{
    const struct problem_tensor *tensor = &line->tensor[MF_MAX_INPUTS + k];
    const struct problem_block *block = &memory->block[tensor->memory];
    int64_t at[MF_MAX_RANK] = {0};
    difference->count = 0;
    if (!problem_elements(tensor))
        return 0;
    do {
        int64_t element = tensor->offset;
        for (int d = 0; d < tensor->ndim; d++)
            element += at[d] * tensor->strides[d];
        const unsigned char *got = block->base + element * tensor->item;
        const unsigned char *expected = block->expected + element * tensor->item;
        if (!memcmp(got, expected, (size_t)tensor->item))
            continue;
        if (!difference->count++) {
            difference->output = k;
            memcpy(difference->at, at, sizeof at);
            values_print(got, tensor->dtype, difference->got);
            values_print(expected, tensor->dtype, difference->expected);
        }
    } while (next_position(tensor, at));
    return difference->count > 0;
}

/* A difference that lies in no output's element: between elements or in a guard. */
static void compare_bytes(const struct problem_block *block, int t, struct problem_difference *difference)
{
    difference->output = -1;
    difference->tensor = t;
    difference->count = 0;
    for (int64_t i = -GUARD; i < (int64_t)block->size + GUARD; i++) {
        if (block->base[i] == block->expected[i])
            continue;
        if (!difference->count++) {
            difference->byte = i;
            snprintf(difference->got, sizeof difference->got, "0x%02x", block->base[i]);
            snprintf(difference->expected, sizeof difference->expected, "0x%02x", block->expected[i]);
        }
    }
}

static int block_differs(const struct problem_block *block)
{
    return block->expected && memcmp(block->base - GUARD, block->expected - GUARD, block->size + 2 * GUARD) != 0;
}

int problem_compare(const struct problem_line *line, const struct problem_memory *memory,
                    struct problem_difference *difference)
{
    int differs = 0;
    for (int t = 0; t < PROBLEM_TENSORS; t++) {
        const struct problem_block *block = &memory->block[t];
        if (!block->expected)
            continue;
        problem_guards_open(block);
        if (!differs && block_differs(block)) {
            differs = 1;
            int found = 0;
            for (int k = 0; k < line->output_count && !found; k++)
                found = line->tensor[MF_MAX_INPUTS + k].memory == t && compare_output(line, memory, k, difference);
            if (!found)
                compare_bytes(block, t, difference);
        }
        problem_guards_close(block);
    }
    return differs;
}
