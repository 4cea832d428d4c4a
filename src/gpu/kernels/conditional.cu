/* A kernel of a plan with a condition (struct mf_plan): does nothing if the number there is 0, for which many blocks
 * would take long all the same. So there are few, which do the work of `blocks` of them, one after the other. This text
 * comes twice: before the functions that ask for BLOCK, and after the kernel. */
#ifndef BLOCK_NOW
#define BLOCK_NOW
static __shared__ int64_t block_now;
#undef BLOCK
#define BLOCK block_now
#undef KERNEL
#define KERNEL static inline
#define modefold work_of_block
#if SHAPE_IN_MEMORY
#define WHOLE_PARAMETER const struct shape *whole
#define WHOLE whole
#else
#define WHOLE_PARAMETER const struct shape whole
#define WHOLE (&whole)
#endif
#undef SHAPE_PARAMETER
#define SHAPE_PARAMETER shape_ptr shape_
#undef SHAPE
#define SHAPE shape_
#else
#undef modefold
ENTRY void modefold(POINTERS const struct bases b, WHOLE_PARAMETER, GLOBAL char *workspace)
{
    FOLLOW_STREAM();
    if (!__ldcg((const int64_t *)WHOLE->condition))
        return;
    for (int64_t i = blockIdx.x; i < WHOLE->blocks; i += gridDim.x) {
        BARRIER();
        if (THREAD == 0)
            block_now = i;
        BARRIER();
        work_of_block(POINTER_NAMES b, WHOLE, workspace);
    }
}
#endif
