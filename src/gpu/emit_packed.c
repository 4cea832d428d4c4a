/* Programs whose results are sums, differences and bits of short integers: a word has two or four of them
 * (kernels/packed.cl). They wrap when they are stored, so they may wrap before that too. */
#include "emit.h"
#include "emit_reducers.h"
#include "texts.h"

static const char *packed_name(enum op op)
{
    return op == OP_add   ? "add"
           : op == OP_sub ? "sub"
           : op == OP_and ? "and"
           : op == OP_or  ? "or"
           : op == OP_xor ? "xor"
                          : NULL;
}

static int is_short_integer(enum dtype type, int size)
{
    return !mf_cls_is_float(mf_dtypes[type].cls) && type != DT_bool && mf_dtypes[type].size == size && size < 4;
}

/* Whether all that is used is operands of integers of this size, and what packed.cl has. */
static int is_packed(const struct problem *problem, const char *used, int size)
{
    const struct pool *pool = &problem->program.finish;
    int operations = 0;
    for (int i = 0; i < pool->count; i++) {
        const struct node *node = &pool->node[i];
        if (!used[i])
            continue;
        if (node->op == OP_OPERAND ? !is_short_integer(problem->in_type[node->index], size) : !packed_name(node->op))
            return 0;
        operations += node->op != OP_OPERAND;
    }
    return operations > 0;
}

int mf_emit_packed(const struct problem *problem, const struct gpu_slots *slots, struct gpu_text *to)
{
    const struct pool *pool = &problem->program.finish;
    const int root = problem->program.output[0], size = mf_dtypes[problem->out_type[0]].size;
    char used[MAX_NODES] = {0};
    mf_emit_mark(pool, root, used);
    if (problem->output_count != 1 || !is_short_integer(problem->out_type[0], size) || !is_packed(problem, used, size))
        return 0;
    mf_text_add(to, "#define PACKED %d\n", size);
    mf_text_append(to, mf_text_packed_cl);
    mf_text_append(to, "struct packed {\n");
    for (int s = 0; s < slots->count; s++)
        mf_text_add(to, "    uint32_t x%d;\n", s);
    mf_text_append(to, "};\n\nstatic inline uint32_t packed_output(struct packed r)\n{\n");
    for (int i = 0; i < pool->count; i++) {
        const struct node *node = &pool->node[i];
        if (used[i] && node->op == OP_OPERAND)
            mf_text_add(to, "    const uint32_t w%d = r.x%d;\n", i, slots->of[node->index]);
        else if (used[i])
            mf_text_add(to, "    const uint32_t w%d = packed_%s(w%d, w%d);\n", i, packed_name(node->op), node->arg[0],
                        node->arg[1]);
    }
    mf_text_add(to, "    return w%d;\n}\n", root);
    return 1;
}
