/* Solver "bytes" of a GPU: sums of bytes of rows that follow each other (kernels/bytes.cl). */
#include <stdio.h>

#include "form.h"
#include "texts.h"

enum {
    VECTOR_BYTES = 16,
    MOST_THREADS = 512,
    MOST_COLUMNS = 512,    /* the blocks' sums are as many words each, which one block reads */
    AT_A_TIME = 16,        /* blocks' sums that a thread reads together at the end */
    LEAST_BYTES = 1 << 22, /* of fewer the blocks' sums take as long */
    MOST_ROWS = 1 << 23    /* of a block: their sum is below 2^31 */
};

/* Threads that read whole rows together; several times as many where they are few, so that a block's sums meet in fewer
 * steps. */
static int64_t circle_of(int64_t columns)
{
    enum { FEW = 8 };
    int64_t common = VECTOR_BYTES;
    while (columns % common)
        common /= 2;
    int64_t circle = columns / common;
    while (circle < FEW)
        circle *= 2;
    return circle;
}

static int64_t blocks_of(const struct mf_plan *plan, int threads)
{
    enum { BESIDE = 2, ROUNDS = 8 };
    const int64_t vectors = plan->problem.kept_total * plan->problem.reduced_total / VECTOR_BYTES;
    const int most = BESIDE * MF_GPU_LIMITS(plan->device->gpu)->multiprocessors;
    return mf_clamp(vectors / (ROUNDS * threads), 1, most);
}

static int applicable(const struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const struct nest *nest = &problem->memory;
    const int operand = mf_emit_bytes_operand(problem);
    const int threads = mf_gpu_most_threads(plan, MOST_THREADS);
    return operand >= 0 && nest->kept == 1 && nest->reduced == 1 && !nest->window_count && nest->in[operand][0] == 1 &&
           nest->in[operand][1] == nest->size[0] && (nest->size[0] % VECTOR_BYTES || nest->size[0] == VECTOR_BYTES) &&
           nest->size[0] <= MOST_COLUMNS && circle_of(nest->size[0]) <= threads &&
           problem->reduced_total >= LEAST_BYTES / nest->size[0] &&
           problem->reduced_total / blocks_of(plan, threads) < MOST_ROWS;
}

static mf_status make(struct mf_plan *plan)
{
    const struct problem *problem = &plan->problem;
    const int threads = mf_gpu_most_threads(plan, MOST_THREADS);
    const int64_t circle = circle_of(problem->kept_total), groups = threads / circle, blocks = blocks_of(plan, threads);
    const int64_t bytes = problem->kept_total * problem->reduced_total, whole = bytes / VECTOR_BYTES;
    const int64_t each =
        mf_clamp((blocks + AT_A_TIME - 1) / AT_A_TIME, 1, mf_clamp(threads / problem->kept_total, 1, threads));
    struct gpu_choice choice = {
        .kernel = mf_text_bytes_cl,
        .threads = threads,
        .beside = GPU_ROOM / threads,
        .vector = VECTOR_BYTES,
        .vector_loop = 0,
        .flat = 1,
        .reads_once = mf_gpu_reads_once(problem, VECTOR_BYTES, READ_BY_ROWS),
        .blocks = blocks,
        .own = {blocks, circle, groups, bytes % VECTOR_BYTES ? whole % (circle * groups * blocks) : -1, each},
        .workspace_bytes = (blocks * problem->kept_total + 1) * (int64_t)sizeof(uint32_t)};
    mf_text_add(&choice.macros, "#define BATCH 4\n#define AT_A_TIME %d\n", AT_A_TIME);
    snprintf(choice.text, sizeof choice.text, "%lld circles of %lld threads", (long long)groups, (long long)circle);
    return mf_gpu_make(plan, &choice);
}

const struct solver mf_gpu_bytes = {
    "bytes",       "sums of bytes of rows that follow each other", applicable, make, mf_gpu_execute, mf_gpu_print,
    mf_gpu_forget,
};
