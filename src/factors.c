/* Contractions: which arguments of a reducer are a product of two factors, and whose the loops are. */
#include "factors.h"

#include <string.h>

static int is_constant(const struct pool *pool, int node)
{
    const struct node *n = &pool->node[node];
    if (n->op == OP_OPERAND)
        return 0;
    for (int k = 0; k < 3; k++)
        if (n->arg[k] >= 0 && !is_constant(pool, n->arg[k]))
            return 0;
    return 1;
}

int mf_factors_find(const struct pool *pool, int root, int node[FACTORS])
{
    for (;;) {
        int found[3] = {0}, count = 0;
        for (int k = 0; k < 3; k++) {
            int arg = pool->node[root].arg[k], known = arg < 0 || is_constant(pool, arg);
            for (int f = 0; f < count; f++)
                known |= found[f] == arg;
            if (!known)
                found[count++] = arg;
        }
        if (count == FACTORS)
            memcpy(node, found, FACTORS * sizeof *node);
        if (count != 1)
            return count == FACTORS;
        root = found[0];
    }
}

/* Whether the node's values differ along a kept loop. */
static int varies(const struct problem *problem, int node, int loop)
{
    const struct node *n = &problem->program.map.node[node];
    if (n->op == OP_OPERAND) {
        for (int w = 0; w < problem->memory.window_count; w++)
            if (problem->memory.window[w].input == n->index && problem->memory.window[w].step[loop])
                return 1;
        return problem->memory.in[n->index][loop] != 0;
    }
    for (int a = 0; a < 3; a++)
        if (n->arg[a] >= 0 && varies(problem, n->arg[a], loop))
            return 1;
    return 0;
}

void mf_factors_loops(const struct problem *problem, const int node[FACTORS], struct factor_loops *loops)
{
    memset(loops, 0, sizeof *loops);
    for (int l = 0; l < problem->memory.kept; l++) {
        int x = varies(problem, node[0], l), y = varies(problem, node[1], l);
        int of = x == y ? FACTORS : x ? 0 : 1;
        loops->loop[of][loops->count[of]++] = l;
    }
}

int64_t mf_factors_positions(const struct problem *problem, const struct factor_loops *loops, int list)
{
    int64_t total = 1;
    for (int l = 0; l < loops->count[list]; l++)
        total *= problem->memory.size[loops->loop[list][l]];
    return total;
}

int mf_factors_argument(const struct program *program)
{
    int found = -1;
    for (int r = 0; r < program->reducer_count; r++)
        if (program->reducer[r].kind == RED_ARG)
            found = r;
    for (int r = 0; found >= 0 && r < program->reducer_count; r++)
        if ((program->reducer[r].kind != RED_FOLD && r != found) ||
            program->reducer[r].fold != program->reducer[found].fold ||
            program->reducer[r].arg[0] != program->reducer[found].arg[0])
            return -1;
    return found;
}

int mf_factors_leader(const struct program *program, int r)
{
    const struct reducer *reducer = program->reducer;
    for (int s = 0; s < program->reducer_count && reducer[r].kind == RED_FOLD; s++)
        if (reducer[s].kind == RED_ARG && reducer[s].fold == reducer[r].fold && reducer[s].arg[0] == reducer[r].arg[0])
            return s;
    return r;
}
