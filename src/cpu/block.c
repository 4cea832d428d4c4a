/* The block evaluator. (Block-wise interpretation of expressions: numexpr, and Kersten and others, "Everything you
 * always wanted to know about compiled and vectorized queries", 2018.) */
#include "block.h"
#include "narrow.h"
#include "turn.h"

/* What the nodes that are used need: a node comes after its arguments. */
static void mark_used(struct block_plan *plan)
{
    for (int i = plan->pool->count; i-- > 0;)
        for (int k = 0; plan->used[i] && k < 3; k++)
            if (plan->pool->node[i].arg[k] >= 0)
                plan->used[plan->pool->node[i].arg[k]] = 1;
}

static int is_short_integer(enum dtype type)
{
    return mf_dtypes[type].cls == CLS_I64 && mf_dtypes[type].size <= 4 && type != DT_bool;
}

/* Integers of up to 32 bits that are wanted as floats only are read as they are. */
static void find_floats(struct block_plan *plan, const int *roots, int root_count)
{
    int others[MAX_NODES] = {0};
    for (int r = 0; r < root_count; r++)
        others[roots[r]] = 1;
    for (int i = 0; i < plan->pool->count; i++) {
        const struct node *node = &plan->pool->node[i];
        for (int k = 0; plan->used[i] && k < 3; k++)
            if (node->arg[k] >= 0 && (node->op != OP_CONVERT || !mf_cls_is_float(node->cls)))
                others[node->arg[k]] = 1;
    }
    for (int i = 0; i < plan->pool->count; i++) {
        const struct node *node = &plan->pool->node[i];
        plan->floats[i] = 0;
        if (!plan->used[i] || node->op != OP_CONVERT || !mf_cls_is_float(node->cls) || others[node->arg[0]])
            continue;
        const struct node *leaf = &plan->pool->node[node->arg[0]];
        if (leaf->op != OP_OPERAND || !is_short_integer(plan->types[leaf->index]))
            continue;
        plan->floats[i] = plan->direct[node->arg[0]] = 1;
    }
}

/* A kernel's call on a block is made in pieces where memory is asked for the next block, a share of it before each:
 * asked for at once it fills the places for lines under way, and the processor waits until there is one for the last of
 * them before it computes anything. On an Emerald Rapids, parts of a plain read or copy: sum((a-b)*(a-b)) of f32 .68 to
 * .75, (a-b)*(a-b) .68 to .82. A share of a few lines only is not worth a call. What an operation that is stored as it
 * is computed (skip) does not ask for is asked for before it. */
static void find_pieces(struct block_plan *plan)
{
    enum { SHARE_BYTES = 512, MOST_PIECES = 4 };
    int bytes = 0;
    plan->calls = 0;
    for (int i = 0; i < plan->pool->count; i++) {
        const struct node *node = &plan->pool->node[i];
        if (plan->used[i] && node->op == OP_OPERAND)
            bytes += mf_dtypes[plan->types[node->index]].size;
        plan->calls += plan->used[i] && (node->op >= OP_FIRST_MAP || (node->op == OP_OPERAND && !plan->direct[i]));
    }
    const int pieces = bytes * BLOCK / SHARE_BYTES / (plan->calls ? plan->calls : 1);
    plan->pieces = pieces < 1 ? 1 : pieces < MOST_PIECES ? pieces : MOST_PIECES;
}

void mf_block_plan(struct block_plan *plan, const struct pool *pool, const int *roots, int root_count,
                   const enum dtype *types)
{
    plan->pool = pool;
    plan->types = types;
    plan->buffers = plan->narrow = 0;
    memset(plan->truths, 0, sizeof plan->truths);
    memset(plan->turning, 0, sizeof plan->turning);
    plan->turned_bytes = 0;
    memset(plan->used, 0, sizeof plan->used);
    for (int r = 0; r < root_count; r++)
        plan->used[roots[r]] = 1;
    mark_used(plan);
    for (int i = 0; i < pool->count; i++) {
        const struct node *node = &pool->node[i];
        int leaf = node->op == OP_STATE || node->op == OP_COUNT;
        plan->direct[i] = node->op == OP_OPERAND && mf_is_class_type(types[node->index]);
        plan->buffer[i] = plan->used[i] && !leaf ? plan->buffers++ : -1;
    }
    find_floats(plan, roots, root_count);
    find_pieces(plan);
}

int64_t mf_block_plan_turned(struct block_plan *plan)
{
    enum { ROW_BYTES = 256, COPY_BYTES = 512 << 10, FEWEST = 16, LINE = 64 };
    int64_t most = 0;
    for (int i = 0; i < plan->pool->count; i++) {
        const struct node *node = &plan->pool->node[i];
        if (!plan->used[i] || node->op != OP_OPERAND)
            continue;
        const struct walk *w = &plan->walk[node->index];
        struct turning *t = &plan->turning[node->index];
        const int last = w->loops - 1, item = mf_dtypes[plan->types[node->index]].size;
        if (!last || w->stride[last - 1] != 1 || w->stride[last] == 0 || w->size[last - 1] < FEWEST ||
            w->size[last] < FEWEST || w->size[last] * w->size[last - 1] * item < COPY_BYTES)
            continue;
        const int64_t fit = COPY_BYTES / item / w->size[last], rows = fit < ROW_BYTES / item ? fit : ROW_BYTES / item;
        if (rows * item < LINE)
            continue;
        t->rows = rows < w->size[last - 1] ? rows : w->size[last - 1];
        t->pitch = ((w->size[last] * item + LINE - 1) / LINE | 1) * LINE;
        t->at = plan->turned_bytes;
        plan->turned_bytes += (size_t)(t->rows * t->pitch);
        most = t->rows * w->size[last] > most ? t->rows * w->size[last] : most;
    }
    return most;
}

/* A buffer a node and one for raw elements. */
static size_t buffer_bytes(const struct block_plan *plan, int64_t limit)
{
    return (size_t)(plan->buffers + 1) * mf_array_bytes(limit);
}

size_t mf_block_memory(const struct block_plan *plan, int64_t limit)
{
    return buffer_bytes(plan, limit) + plan->turned_bytes;
}

static char *buffer_of(const struct block *block, int node)
{
    if (block->redirect[node])
        return block->redirect[node];
    return block->memory + (size_t)(block->plan->buffer[node] + 1) * block->stride;
}

/* size: bytes, the low ones of an integer. A word is filled first. */
static void fill_constant(char *to, int size, union value value, int64_t n)
{
    char word[8];
    for (int at = 0; at < 8; at += size)
        memcpy(word + at, &value, (size_t)size);
    for (int64_t i = 0; i < (n * size + 7) / 8; i++)
        memcpy(to + 8 * i, word, 8);
}

void mf_block_start(struct block *block, const struct block_plan *plan, const struct kernels *kernels, char *memory,
                    int64_t limit)
{
    block->plan = plan;
    block->kernels = kernels;
    block->memory = memory;
    block->stride = mf_array_bytes(limit);
    block->copy_operands = block->fetch_ahead = block->aheads = 0;
    block->skip = -1;
    memset(block->cached, 0, sizeof block->cached);
    memset(block->turned, 0xff, sizeof block->turned);
    memset(block->redirect, 0, sizeof block->redirect[0] * (size_t)plan->pool->count);
    for (int i = 0; i < plan->pool->count; i++) {
        const struct node *node = &plan->pool->node[i];
        if (!plan->used[i] || node->op != OP_CONST)
            continue;
        fill_constant(buffer_of(block, i), plan->narrow ? plan->narrow : (int)mf_cls_size(node->cls), node->value,
                      limit);
        block->reg[i] = buffer_of(block, i);
    }
}

/* Whether the operand's elements at f ... f+n-1 repeat what its buffer holds: the same place in the outer loops, the
 * same phase in the last loop, and either one run or a repetition of it (stride 0). Updates the record. */
static int holds_already(struct block *block, int input, const char *base, int64_t f, int64_t n)
{
    const struct walk *w = &block->plan->walk[input];
    int last = w->loops - 1;
    int64_t run = w->size[last], phase = f ? f % run : 0, offset, *cached = block->cached[input];
    if (!f) {
        offset = 0; /* the same start: the same elements, whatever the loops */
    } else if (w->stride[last] == 0 && (last == 0 || phase + n <= run)) {
        offset = mf_walk_offset(w, f);
        phase = -1; /* one value, any phase */
    } else if (last > 0 && w->stride[last - 1] == 0 &&
               (last == 1 || f % (run * w->size[last - 1]) + n <= run * w->size[last - 1])) {
        offset = mf_walk_offset(w, f - phase);
    } else {
        cached[2] = 0;
        return 0;
    }
    offset = offset * mf_dtypes[block->plan->types[input]].size + (int64_t)(intptr_t)base;
    if (cached[2] >= n && cached[0] == offset && cached[1] == phase)
        return 1;
    cached[0] = offset;
    cached[1] = phase;
    cached[2] = n;
    return 0;
}

/* Whether the node's result is the operand's own memory. */
static int is_direct(const struct block *block, int node)
{
    return block->plan->direct[node] && block->reg[node] != buffer_of(block, node);
}

/* Asks for `count` of the shares that are left. */
static __attribute__((noinline)) void ask_ahead(struct block *block, int count)
{
    for (int k = 0; k < block->aheads; k++) {
        struct ahead *ahead = &block->ahead[k];
        const int64_t bytes = block->shares > count ? (ahead->bytes * count / block->shares + 63) & -64 : ahead->bytes;
        for (int64_t b = 0; b < bytes; b += 64)
            __builtin_prefetch((const void *)(ahead->from + (uintptr_t)b), 0, 2);
        ahead->from += (uintptr_t)bytes;
        ahead->bytes -= bytes;
    }
    block->shares -= count;
}

/* Elements of such a piece of n. */
static int64_t piece_of(const struct block *block, int64_t n)
{
    enum { VECTOR = 64 };
    const int64_t pieces = block->aheads ? block->plan->pieces : 1;
    return pieces > 1 ? (n + pieces * VECTOR - 1) / pieces & -VECTOR : n;
}

static const void *beyond(const void *values, int64_t bytes)
{
    return (const void *)((uintptr_t)values + (uintptr_t)bytes);
}

static void load(struct block *block, enum dtype type, char *to, const void *raw, int64_t n)
{
    const int64_t step = piece_of(block, n), size = (int64_t)mf_cls_size(mf_dtypes[type].cls);
    for (int64_t i = 0; i < n; i += step) {
        ask_ahead(block, 1);
        block->kernels->load[type](to + i * size, beyond(raw, i * mf_dtypes[type].size), n - i < step ? n - i : step);
    }
}

static void map(struct block *block, map_fn *kernel, int64_t size, char *to, const void *const *arg, int64_t n)
{
    const int64_t step = piece_of(block, n);
    for (int64_t i = 0; i < n; i += step) {
        const int64_t at = i * size;
        ask_ahead(block, 1);
        kernel(to + at, beyond(arg[0], at), beyond(arg[1], at), beyond(arg[2], at), n - i < step ? n - i : step);
    }
}

/* Whether the next block of an operand is to be fetched while this one computes: not if the caller's last operation
 * reads it, which does that itself. */
static int fetches_ahead(const struct block *block, int node)
{
    if (!block->fetch_ahead || block->skip < 0)
        return block->fetch_ahead;
    const int *arg = block->plan->pool->node[block->skip].arg;
    return node != arg[0] && node != arg[1];
}

/* mf_walk_gather; what alternates with few neighbours, whose next ones lie beside it, by a kernel. */
static void gather(const struct block *block, const struct walk *w, int item, const char *base, int64_t f, int64_t n,
                   char *to)
{
    const int last = w->loops - 1;
    const int64_t parts = w->size[last];
    if (last && parts <= WEAVE_PARTS && w->stride[last - 1] == 1 && f % parts == 0 &&
        f / parts % w->size[last - 1] + n / parts <= w->size[last - 1]) {
        const char *const from = (const char *)((uintptr_t)base + (uintptr_t)(mf_walk_offset(w, f) * item));
        const int64_t done =
            mf_weave_together(block->kernels, to, from, w->stride[last] * item, n / parts, (int)parts, item) * parts;
        f += done;
        n -= done;
        to += done * item;
    }
    if (n)
        mf_walk_gather(w, item, base, f, n, to);
}

/* Row `row` of the last loop of an operand that is turned, from its copy, which is made where it is another one's. */
static const char *turned_row(struct block *block, int input, const char *base, int64_t row)
{
    const struct turning *t = &block->plan->turning[input];
    const struct walk *w = &block->plan->walk[input];
    const int last = w->loops - 1, item = mf_dtypes[block->plan->types[input]].size;
    const int64_t in_loop = row % w->size[last - 1], place = in_loop % t->rows, first = row - place;
    char *copy = block->memory + (size_t)(block->plan->buffers + 1) * block->stride + t->at;
    if (block->turned[input] != first) {
        const int64_t left = w->size[last - 1] - (in_loop - place);
        const int64_t offset = mf_walk_offset(w, first * w->size[last]) * item;
        const struct patch patch = {(const char *)((uintptr_t)base + (uintptr_t)offset), w->stride[last] * item,
                                    left < t->rows ? left : t->rows, w->size[last]};
        mf_turn(block->kernels, copy, t->pitch, patch, item);
        block->turned[input] = first;
    }
    return copy + place * t->pitch;
}

static const void *load_turned(struct block *block, int i, const char *base, int64_t f, int64_t n)
{
    const struct block_plan *plan = block->plan;
    const int input = plan->pool->node[i].index, item = mf_dtypes[plan->types[input]].size;
    const struct walk *w = &plan->walk[input];
    const int64_t columns = w->size[w->loops - 1];
    char *buffer = buffer_of(block, i), *raw = plan->direct[i] ? buffer : block->memory;
    for (int64_t done = 0, here; done < n; done += here) {
        const int64_t at = (f + done) % columns;
        const char *from = turned_row(block, input, base, (f + done) / columns) + at * item;
        here = n - done < columns - at ? n - done : columns - at;
        if (here == n && plan->direct[i])
            return from;
        memcpy(raw + done * item, from, (size_t)(here * item));
    }
    if (!plan->direct[i])
        block->kernels->load[plan->types[input]](buffer, raw, n);
    return buffer;
}

static const void *load_operand(struct block *block, int i, const char *base, int64_t f, int64_t n)
{
    const struct block_plan *plan = block->plan;
    int input = plan->pool->node[i].index;
    const struct walk *w = &plan->walk[input];
    enum dtype type = plan->types[input];
    int item = mf_dtypes[type].size, contiguous = w->stride[w->loops - 1] == 1 && mf_walk_in_run(w, f, n);
    char *buffer = buffer_of(block, i);
    const void *raw = block->memory;
    if (plan->turning[input].rows)
        return load_turned(block, i, base, f, n);
    if (plan->windows) {
        mf_window_gather(plan->windows, input, item, base, f, n, plan->direct[i] ? buffer : block->memory);
        if (!plan->direct[i])
            block->kernels->load[type](buffer, raw, n);
        return buffer;
    }
    if (contiguous)
        raw = (const char *)((uintptr_t)base + (uintptr_t)(mf_walk_offset(w, f) * item));
    if (contiguous && fetches_ahead(block, i))
        mf_block_ahead(block, beyond(raw, n * item), n * item);
    if (plan->direct[i] && contiguous && !block->copy_operands)
        return raw;
    if (!block->redirect[i] && holds_already(block, input, base, f, n))
        return buffer;
    if (!contiguous)
        gather(block, w, item, base, f, n, plan->direct[i] ? buffer : block->memory);
    else if (plan->direct[i])
        memcpy(buffer, raw, (size_t)n * (size_t)item);
    if (!plan->direct[i])
        load(block, type, buffer, raw, n);
    return buffer;
}

static const void *evaluate_node(struct block *block, int i, const char *const *base, int64_t f, int64_t n)
{
    const struct node *node = &block->plan->pool->node[i];
    const struct kernels *k = block->kernels;
    const void *arg[3] = {NULL, NULL, NULL};
    for (int a = 0; a < 3; a++)
        if (node->arg[a] >= 0)
            arg[a] = block->reg[node->arg[a]];
    enum cls from = node->arg[0] >= 0 ? block->plan->pool->node[node->arg[0]].cls : node->cls;
    if (block->plan->narrow && node->op != OP_OPERAND && node->op != OP_CONST) {
        ask_ahead(block, block->plan->pieces);
        return mf_narrow_node(block, i, buffer_of(block, i), n);
    }
    switch (node->op) {
    case OP_OPERAND:
        return load_operand(block, i, base[node->index], f, n);
    case OP_CONST:
        return block->reg[i];
    case OP_STATE:
        return block->state[node->index][node->part];
    case OP_COUNT:
        return block->count[node->cls];
    case OP_CONVERT:
        if (from == node->cls)
            return arg[0];
        if (block->plan->floats[i]) {
            const enum dtype type = block->plan->types[block->plan->pool->node[node->arg[0]].index];
            k->floats[type][node->cls](buffer_of(block, i), arg[0], n);
            break;
        }
        (block->plan->truths[i] ? k->store[DT_bool][from] : k->convert[from][node->cls])(buffer_of(block, i), arg[0],
                                                                                         n);
        break;
    case OP_CAST:
        k->store[node->dtype][from](block->memory, arg[0], n);
        k->load[node->dtype](buffer_of(block, i), block->memory, n);
        break;
    default:
        map(block, k->map[node->op - OP_FIRST_MAP][node->cls], (int64_t)mf_cls_size(node->cls), buffer_of(block, i),
            arg, n);
        break;
    }
    return buffer_of(block, i);
}

void mf_block_evaluate(struct block *block, const char *const *base, int64_t f, int64_t n)
{
    const struct block_plan *plan = block->plan;
    block->shares = plan->pieces * plan->calls;
    for (int i = 0; i < plan->pool->count; i++)
        if (plan->used[i] && i != block->skip)
            block->reg[i] = evaluate_node(block, i, base, f, n);
    ask_ahead(block, plan->pieces * plan->calls);
    block->aheads = 0;
}

/* The sums of floats that are the only output, of a 16-bit type: x + 0, so that a zero is +0. */
static sums_fn *stores_sums(const struct problem *problem, const struct kernels *kernels)
{
    const struct program *program = &problem->program;
    const struct node *root = &program->finish.node[program->output[0]];
    if (root->op != OP_add || root->cls != CLS_F32 || problem->output_count > 1)
        return NULL;
    const struct node *zero = &program->finish.node[root->arg[1]];
    return zero->op == OP_CONST && zero->value.u64 == 0 ? kernels->sums[problem->out_type[0]] : NULL;
}

/* Whether node is an operand of this type. */
static int is_operand(const struct problem *problem, int node, enum dtype type)
{
    const struct node *leaf = &problem->program.finish.node[node];
    return leaf->op == OP_OPERAND && problem->in_type[leaf->index] == type;
}

void mf_block_plan_outputs(struct block_outputs *outputs, struct block_plan *block, const struct problem *problem,
                           const struct kernels *kernels)
{
    const struct program *program = &problem->program;
    int64_t bytes = mf_dtypes[problem->out_type[0]].size;
    outputs->count = problem->output_count;
    for (int k = 0; k < problem->output_count; k++) {
        outputs->node[k] = program->output[k];
        outputs->type[k] = problem->out_type[k];
        bytes += k > 0 ? mf_dtypes[problem->out_type[k]].size : 0;
    }
    outputs->stream = mf_stores_past_cache(problem, bytes);
    outputs->sums = stores_sums(problem, kernels);
    const struct node *root = &program->finish.node[program->output[0]];
    int pair = mf_pair_of(root->op);
    enum dtype type = problem->out_type[0];
    if (mf_narrow_plan(block, problem, kernels)) {
        outputs->copy = 1;
        outputs->last = problem->output_count == 1 ? mf_narrow_last(block, program->output[0], kernels) : NULL;
        outputs->raw = outputs->last != NULL;
        return;
    }
    const int is_same = problem->output_count == 1 && is_operand(problem, program->output[0], type);
    outputs->copy = is_same && type != DT_bool && !mf_cls_is_float(mf_dtypes[type].cls);
    outputs->copies = is_same ? kernels->copies[type] : NULL;
    if (outputs->copy || outputs->copies)
        block->direct[program->output[0]] = 1;
    if (problem->output_count > 1 || pair < 0 || mf_dtypes[type].cls != root->cls)
        return;
    int is_short = mf_dtypes[type].size < (int)mf_cls_size(root->cls);
    if (is_short && !(is_operand(problem, root->arg[0], type) && is_operand(problem, root->arg[1], type)))
        return;
    outputs->last = kernels->pair[pair][type];
    outputs->raw = is_short && outputs->last;
    for (int a = 0; outputs->raw && a < 2; a++)
        block->direct[root->arg[a]] = 1;
}

static void store(const struct block *block, const struct block_outputs *outputs, int k, char *base, int64_t f,
                  int64_t n, void *spare)
{
    const struct walk *walk = &outputs->walk[k];
    const struct kernels *kernels = block->kernels;
    const enum dtype type = outputs->type[k];
    const void *values = block->reg[outputs->node[k]];
    const enum cls cls = block->plan->pool->node[outputs->node[k]].cls;
    int item = mf_dtypes[type].size;
    if (walk->stride[walk->loops - 1] != 1 || !mf_walk_in_run(walk, f, n)) {
        if (outputs->copies)
            outputs->copies(spare, values, n, 0);
        else if (!outputs->copy)
            kernels->store[type][cls](spare, values, n);
        mf_walk_scatter(walk, item, base, f, n, outputs->copy ? values : spare);
        return;
    }
    char *to = base + mf_walk_offset(walk, f) * item;
    if (outputs->copies) {
        outputs->copies(to, values, n, outputs->stream);
    } else if (outputs->copy && !outputs->stream) {
        memmove(to, values, (size_t)(n * item));
    } else if (outputs->copy) {
        kernels->stream(to, values, n * item);
    } else if (!outputs->stream) {
        kernels->store[type][cls](to, values, n);
    } else if (type == DT_f32 && cls == CLS_F32) {
        kernels->stream_f32(to, values, n);
    } else if (type == DT_f64 && cls == CLS_F64) {
        kernels->stream_f64(to, values, n);
    } else if (mf_is_class_type(type) && !mf_cls_is_float(mf_dtypes[type].cls) && !mf_cls_is_float(cls)) {
        kernels->stream(to, values, n * item);
    } else {
        kernels->store[type][cls](spare, values, n);
        kernels->stream(to, spare, n * item);
    }
}

/* Positions f ... f+n-1 of the only output, whose last operation stores them. */
static void store_last(const struct block *block, const struct block_outputs *outputs, char *to, int64_t n, int stream)
{
    const int *arg = block->plan->pool->node[outputs->node[0]].arg;
    if (outputs->sums) {
        outputs->sums(to, block->reg[arg[0]], n, stream);
        return;
    }
    const struct pair_rows rows = {.rows = 1,
                                   .n = n,
                                   .x_unit = 1,
                                   .y_unit = 1,
                                   .x_once = is_direct(block, arg[0]),
                                   .y_once = is_direct(block, arg[1]),
                                   .past_cache = stream};
    outputs->last(to, block->reg[arg[0]], block->reg[arg[1]], &rows);
}

int mf_outputs_touch_inputs(const struct problem *problem, const struct pointers *pointers)
{
    for (int k = 0; problem->output_count > 1 && k < problem->output_count; k++)
        for (int i = 0; i < problem->input_count; i++)
            if (pointers->out[k] == pointers->in[i])
                return 1;
    return 0;
}

void mf_block_run(struct block *block, const struct block_outputs *outputs, const char *const *base, char *const *to,
                  int64_t f, int64_t n, void *spare)
{
    const struct walk *walk = &outputs->walk[0];
    const int item = mf_dtypes[outputs->type[0]].size;
    int in_row = (outputs->last || outputs->sums) && walk->stride[walk->loops - 1] == 1 && mf_walk_in_run(walk, f, n);
    block->skip = in_row || outputs->raw ? outputs->node[0] : -1;
    mf_block_evaluate(block, base, f, n);
    if (in_row) {
        store_last(block, outputs, to[0] + mf_walk_offset(walk, f) * item, n, outputs->stream);
    } else if (outputs->raw) {
        store_last(block, outputs, spare, n, 0);
        mf_walk_scatter(walk, item, to[0], f, n, spare);
    } else {
        for (int k = 0; k < outputs->count; k++)
            store(block, outputs, k, to[k], f, n, spare);
    }
}
