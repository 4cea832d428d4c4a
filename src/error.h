/* Statuses with one sentence each, kept per thread; and the allocator every other file uses. */
#ifndef MF_ERROR_H
#define MF_ERROR_H

#include <modefold.h>

/* Records the sentence for this thread and returns status. */
__attribute__((format(printf, 2, 3))) mf_status mf_fail(mf_status status, const char *format, ...);

/* The status of this thread's last mf_fail, for callers of functions that give -1. */
mf_status mf_fail_again(void);

/* Leaves the caller with the callee's status unless it is MF_OK. */
#define MF_TRY(call)                \
    do {                            \
        mf_status mf_try_ = (call); \
        if (mf_try_ != MF_OK)       \
            return mf_try_;         \
    } while (0)

/* malloc that records its failure (null then). Freed with mf_free. Sizes are checked by the caller. */
void *mf_alloc(size_t size);
void *mf_calloc(size_t size);
/* The same, aligned to 64 bytes. */
void *mf_alloc_aligned(size_t size);
void mf_free(void *memory);

/* For tests: when not negative, that many more allocations succeed and all later ones fail. */
extern long mf_alloc_budget;
/* The bytes asked for so far, freed or not. */
extern int64_t mf_alloc_asked;

/* Products and sums of sizes; false when the result does not fit in int64_t. */
static inline int mf_mul(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_mul_overflow(a, b, result);
}
static inline int mf_add(int64_t a, int64_t b, int64_t *result)
{
    return !__builtin_add_overflow(a, b, result);
}

#endif
