/* libFuzzer target for operations given as text. What is accepted must be steps whose nodes come in order, whose leaves
 * are there and which give numbers of the operation's type, and can be evaluated; what is refused must come with a
 * sentence. */
#include <stdlib.h>

#include "scalar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* parts: how many numbers each side of the leaves has. */
static void check_stage(const struct recipe *recipe, const struct stage *stage, int sides, int parts)
{
    union value values[MAX_NODES];
    struct leaves leaves;
    memset(&leaves, 0, sizeof leaves);
    require(stage->count >= 1 && stage->count <= MAX_REDUCER_ARGS && stage->pool.count <= MAX_NODES);
    for (int n = 0; n < stage->pool.count; n++) {
        const struct node *node = &stage->pool.node[n];
        require(node->cls < CLS_COUNT && node->dtype < DT_COUNT && node->op < OP_END);
        require(node->op != OP_OPERAND && node->op != OP_COUNT);
        for (int a = 0; a < 3; a++)
            require(node->arg[a] >= -1 && node->arg[a] < n);
        if (node->op == OP_STATE)
            require(node->index >= 0 && node->index < sides && node->part >= 0 && node->part < parts);
    }
    for (int k = 0; k < stage->count; k++)
        require(stage->root[k] >= 0 && stage->root[k] < stage->pool.count &&
                stage->pool.node[stage->root[k]].cls == mf_dtypes[recipe->type].cls);
    mf_pool_evaluate(&stage->pool, &leaves, values);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct recipe recipe;
    char name[64], *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, bytes, size);
    text[size] = 0;
    if (mf_recipe_parse(text, name, &recipe) == MF_OK) {
        require(recipe.arg_count >= 1 && recipe.arg_count <= MAX_REDUCER_ARGS);
        require(recipe.part_count >= 1 && recipe.part_count <= MAX_REDUCER_ARGS);
        require(recipe.lift.count == recipe.part_count && recipe.combine.count == recipe.part_count);
        check_stage(&recipe, &recipe.lift, 1, recipe.arg_count);
        check_stage(&recipe, &recipe.combine, 2, recipe.part_count);
        check_stage(&recipe, &recipe.finish, 1, recipe.part_count);
    } else {
        require(mf_error()[0] != 0);
    }
    free(text);
    return 0;
}
