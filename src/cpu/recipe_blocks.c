/* The callbacks of an operation given as text: a block of states is taken apart into an array for every number, the
 * step's expressions go over the arrays (block.c), and what comes out is put together to states. */
#include "recipe_blocks.h"

struct recipe_blocks {
    const struct recipe *recipe;
    const struct kernels *kernels;
    struct block_plan lift, combine, finish;
};

/* Memory of one call, in the nearest cache; MOST states at once. */
enum { ROOM = 32 << 10, MOST = 512 };

struct call {
    const struct recipe_blocks *blocks;
    const struct stage *stage;
    struct block block;
    int64_t limit;                         /* states at once */
    char *side[2][MAX_REDUCER_ARGS];       /* arrays that states are taken apart into */
    _Alignas(64) char room[ROOM + 64 * 2]; /* the evaluator's, then the arrays */
};

/* sides: how many states, left and right, are taken apart. */
static void begin(struct call *call, const struct recipe_blocks *blocks, const struct stage *stage,
                  const struct block_plan *plan, int sides, int64_t n)
{
    int arrays = plan->buffers + 1 + sides * blocks->recipe->part_count;
    int64_t limit = ROOM / (8 * arrays) & ~7;
    call->blocks = blocks;
    call->stage = stage;
    call->limit = limit > MOST ? MOST : limit;
    call->limit = call->limit > n ? n : call->limit;
    mf_block_start(&call->block, plan, blocks->kernels, call->room, call->limit);
    char *next = call->room + mf_block_memory(plan, call->limit);
    for (int s = 0; s < sides; s++)
        for (int k = 0; k < blocks->recipe->part_count; k++, next += mf_array_bytes(call->limit))
            call->block.state[s][k] = call->side[s][k] = next;
}

/* n numbers of 4 or 8 bytes, those of `from` and `to` that many bytes apart. */
static void copy_apart(size_t size, int64_t n, const char *from, int64_t from_stride, char *to, int64_t to_stride)
{
    if (size == 4)
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride, from + i * from_stride, 4);
    else
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * to_stride, from + i * from_stride, 8);
}

static size_t number_size(const struct call *call)
{
    return (size_t)mf_dtypes[call->blocks->recipe->type].size;
}

static void take_apart(struct call *call, int side, const char *states, int64_t stride, int64_t n)
{
    const size_t size = number_size(call);
    for (int k = 0; k < call->blocks->recipe->part_count; k++)
        copy_apart(size, n, states + (size_t)k * size, stride, call->side[side][k], (int64_t)size);
}

static void put_together(const struct call *call, char *states, int64_t stride, int64_t n)
{
    const size_t size = number_size(call);
    for (int k = 0; k < call->stage->count; k++)
        copy_apart(size, n, call->block.reg[call->stage->root[k]], (int64_t)size, states + (size_t)k * size, stride);
}

static void identity(void *context, int64_t n, void *states)
{
    const struct recipe *recipe = ((const struct recipe_blocks *)context)->recipe;
    const size_t size = (size_t)mf_dtypes[recipe->type].size;
    for (int k = 0; k < recipe->part_count; k++)
        copy_apart(size, n, (const char *)&recipe->identity[k], 0, (char *)states + (size_t)k * size,
                   (int64_t)size * recipe->part_count);
}

static void lift(void *context, int64_t n, const void *const *values, void *states)
{
    const struct recipe_blocks *blocks = context;
    struct call call;
    begin(&call, blocks, &blocks->recipe->lift, &blocks->lift, 0, n);
    const int64_t size = (int64_t)number_size(&call), stride = size * blocks->recipe->part_count;
    for (int64_t i = 0; i < n; i += call.limit) {
        int64_t here = n - i < call.limit ? n - i : call.limit;
        for (int k = 0; k < blocks->recipe->arg_count; k++)
            call.block.state[0][k] = (const char *)values[k] + i * size;
        mf_block_evaluate(&call.block, NULL, 0, here);
        put_together(&call, (char *)states + i * stride, stride, here);
    }
}

static void combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right, int64_t right_stride)
{
    const struct recipe_blocks *blocks = context;
    struct call call;
    begin(&call, blocks, &blocks->recipe->combine, &blocks->combine, 2, n);
    for (int64_t i = 0; i < n; i += call.limit) {
        int64_t here = n - i < call.limit ? n - i : call.limit;
        take_apart(&call, 0, (char *)left + i * left_stride, left_stride, here);
        take_apart(&call, 1, (const char *)right + i * right_stride, right_stride, here);
        mf_block_evaluate(&call.block, NULL, 0, here);
        put_together(&call, (char *)left + i * left_stride, left_stride, here);
    }
}

static void finish(void *context, int64_t n, const void *states, void *const *results)
{
    const struct recipe_blocks *blocks = context;
    struct call call;
    begin(&call, blocks, &blocks->recipe->finish, &blocks->finish, 1, n);
    const int64_t size = (int64_t)number_size(&call), stride = size * blocks->recipe->part_count;
    for (int64_t i = 0; i < n; i += call.limit) {
        int64_t here = n - i < call.limit ? n - i : call.limit;
        take_apart(&call, 0, (const char *)states + i * stride, stride, here);
        mf_block_evaluate(&call.block, NULL, 0, here);
        for (int k = 0; k < call.stage->count; k++)
            memcpy((char *)results[k] + i * size, call.block.reg[call.stage->root[k]], (size_t)(here * size));
    }
}

mf_status mf_recipe_blocks(const struct recipe *recipe, const struct kernels *kernels, mf_operation *is, void **context)
{
    struct recipe_blocks *blocks = mf_calloc(sizeof *blocks);
    if (!blocks)
        return MF_ERROR_MEMORY;
    blocks->recipe = recipe;
    blocks->kernels = kernels;
    mf_block_plan(&blocks->lift, &recipe->lift.pool, recipe->lift.root, recipe->lift.count, NULL);
    mf_block_plan(&blocks->combine, &recipe->combine.pool, recipe->combine.root, recipe->combine.count, NULL);
    mf_block_plan(&blocks->finish, &recipe->finish.pool, recipe->finish.root, recipe->finish.count, NULL);
    is->identity = identity;
    is->lift = lift;
    is->combine = combine;
    is->finish = finish;
    is->context = *context = blocks;
    return MF_OK;
}
