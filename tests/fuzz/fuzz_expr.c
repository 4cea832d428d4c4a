/* libFuzzer target for expressions: the first bytes choose the operands' types, the others are the text. What is
 * accepted must be a program whose nodes come in order and can be evaluated; what is refused must come with a
 * sentence. */
#include <stdlib.h>

#include "scalar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static struct operation user = {.is = {.name = "mine",
                                       .input_count = 2,
                                       .output_count = 3,
                                       .input_type = MF_F64,
                                       .output_type = MF_I64,
                                       .state_size = 8},
                                .name = "mine"};

static void check_pool(const struct pool *pool, const struct program *program, int inputs, int finish)
{
    require(pool->count >= 0 && pool->count <= MAX_NODES);
    for (int n = 0; n < pool->count; n++) {
        const struct node *node = &pool->node[n];
        require(node->cls < CLS_COUNT && node->dtype < DT_COUNT && node->op < OP_END);
        for (int a = 0; a < 3; a++)
            require(node->arg[a] >= -1 && node->arg[a] < n);
        for (int a = 0; a < 3 && node->op >= OP_FIRST_MAP; a++) /* a map's operands are of its class */
            require(node->arg[a] < 0 || pool->node[node->arg[a]].cls == node->cls);
        if (node->op == OP_OPERAND)
            require(node->index >= 0 && node->index < inputs && node->cls == mf_dtypes[node->dtype].cls);
        if (node->op == OP_STATE || node->op == OP_COUNT)
            require(finish);
        if (node->op == OP_STATE)
            require(node->index >= 0 && node->index < program->reducer_count && node->part >= 0 &&
                    node->part < MAX_REDUCER_ARGS);
    }
}

static void check_program(const struct program *program, int inputs)
{
    check_pool(&program->map, program, inputs, 0);
    check_pool(&program->finish, program, inputs, 1);
    require(program->output_count >= 1 && program->output_count <= MF_MAX_OUTPUTS);
    require(program->reducer_count >= 0 && program->reducer_count <= MAX_REDUCERS);
    for (int k = 0; k < program->output_count; k++)
        require(program->output[k] >= 0 && program->output[k] < program->finish.count);
    for (int r = 0; r < program->reducer_count; r++) {
        const struct reducer *reducer = &program->reducer[r];
        require(reducer->arg_count >= 1 && reducer->arg_count <= MAX_REDUCER_ARGS);
        for (int a = 0; a < reducer->arg_count; a++)
            require(reducer->arg[a] >= 0 && reducer->arg[a] < program->map.count &&
                    program->map.node[reducer->arg[a]].cls == reducer->cls);
    }
}

/* Both pools once, on operands made of the same bytes: UBSan watches the arithmetic. */
static void evaluate(const struct program *program, const enum dtype *types, const uint8_t *bytes)
{
    static struct leaves leaves;
    static union value values[MAX_NODES];
    int64_t element[2];
    memcpy(element, bytes, 4);
    memcpy((char *)element + 4, bytes, 4);
    element[1] = element[0] ^ 1;
    memset(&leaves, 0, sizeof leaves);
    leaves.types = types;
    leaves.count = 3;
    for (int i = 0; i < MF_MAX_INPUTS; i++)
        leaves.operand[i] = &element[i % 2];
    mf_pool_evaluate(&program->map, &leaves, values);
    mf_pool_evaluate(&program->finish, &leaves, values);
    for (int t = 0; t < DT_COUNT; t++) {
        char stored[8];
        int node = program->output[0];
        mf_value_store((enum dtype)t, program->finish.node[node].cls, values[node], stored);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct program program;
    enum dtype types[MF_MAX_INPUTS];
    char text[4096];
    if (size < 5 || size - 5 >= sizeof text)
        return 0;
    int inputs = bytes[0] % 4 == 3 ? MF_MAX_INPUTS : bytes[0] % 4;
    for (int i = 0; i < MF_MAX_INPUTS; i++)
        types[i] = (enum dtype)(bytes[1 + i % 4] % DT_COUNT);
    memcpy(text, bytes + 5, size - 5);
    text[size - 5] = 0;
    mf_status status = mf_expr_parse(text, inputs, types, &user, &program);
    if (status != MF_OK) {
        require(status == MF_ERROR_EXPRESSION || status == MF_ERROR_TYPE);
        require(strlen(mf_error()) > 8);
        return 0;
    }
    check_program(&program, inputs);
    require(mf_expression_outputs(text) == program.output_count);
    evaluate(&program, types, bytes + 1);
    return 0;
}
