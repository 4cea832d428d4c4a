/* The thread's last sentence, and allocations that can be made to fail. */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static _Thread_local char sentence[512];
static _Thread_local mf_status last_status;

long mf_alloc_budget = -1;
int64_t mf_alloc_asked;

mf_status mf_fail(mf_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    /* it may quote what the user wrote, and is one line for a terminal all the same */
    for (char *c = sentence; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    last_status = status;
    return status;
}

mf_status mf_fail_again(void)
{
    return last_status;
}

const char *mf_error(void)
{
    return sentence;
}

const char *mf_status_name(mf_status status)
{
    static const char *const names[] = {
#define STATUS(name) #name,
#include "errors.def"
#undef STATUS
    };
    int i = (int)status;
    return i >= 0 && i < (int)(sizeof names / sizeof names[0]) ? names[i] : "MF_ERROR_UNKNOWN";
}

/* Counts down the test budget; false when this allocation is to fail. */
static int budget_allows(void)
{
    long left = __atomic_load_n(&mf_alloc_budget, __ATOMIC_RELAXED);
    if (left < 0)
        return 1;
    if (left == 0)
        return 0;
    __atomic_store_n(&mf_alloc_budget, left - 1, __ATOMIC_RELAXED);
    return 1;
}

static void *checked(void *memory, size_t size)
{
    __atomic_fetch_add(&mf_alloc_asked, (int64_t)size, __ATOMIC_RELAXED);
    if (!memory)
        mf_fail(MF_ERROR_MEMORY, "out of memory: %zu bytes were asked for", size);
    return memory;
}

void *mf_alloc(size_t size)
{
    return checked(budget_allows() ? malloc(size ? size : 1) : NULL, size);
}

void *mf_calloc(size_t size)
{
    return checked(budget_allows() ? calloc(1, size ? size : 1) : NULL, size);
}

void *mf_alloc_aligned(size_t size)
{
    void *memory = NULL;
    if (!budget_allows() || posix_memalign(&memory, 64, size ? size : 1))
        memory = NULL;
    return checked(memory, size);
}

void mf_free(void *memory)
{
    free(memory);
}
