/* From modes, shapes and strides to canonical loops: size-1 modes dropped, reduced modes in the contract's order,
 * neighbours merged. (FFTW's tensor canonicalisation and NumPy's axis coalescing do the same for their problems.) */
#include "layout.h"

mf_status mf_tensor_layout(const DLTensor *tensor, const char *what, int64_t item, int64_t *stride, int64_t *low,
                           int64_t *high)
{
    int64_t count = 1;
    *low = *high = 0;
    for (int d = 0; d < tensor->ndim; d++)
        if (!tensor->shape[d]) { /* no address at all, so none that does not fit */
            memset(stride, 0, sizeof *stride * (size_t)tensor->ndim);
            return MF_OK;
        }
    for (int d = tensor->ndim - 1; d >= 0; d--) {
        int64_t n = tensor->shape[d], reach;
        stride[d] = tensor->strides ? tensor->strides[d] : count;
        if (n > 1 && (!mf_mul(stride[d], n - 1, &reach) || !mf_mul(reach, item, &reach) ||
                      !mf_add(reach < 0 ? *low : *high, reach, reach < 0 ? low : high)))
            return mf_fail(MF_ERROR_OVERFLOW,
                           "%s: dimension %d of %lld elements with stride %lld does not fit in 63 bits", what, d,
                           (long long)n, (long long)stride[d]);
        if (!tensor->strides && !mf_mul(count, n, &count))
            return mf_fail(MF_ERROR_OVERFLOW, "%s: its shape has more than 2^63 - 1 elements (dimension %d is %lld)",
                           what, d, (long long)n);
    }
    if (!mf_add(*high, item, high) || __builtin_sub_overflow(*high, *low, &count))
        return mf_fail(MF_ERROR_OVERFLOW, "%s reaches over more than 2^63 - 1 bytes", what);
    return MF_OK;
}

/* Adds stride * coefficient of every part of a dimension to the loops' strides. loop[mode] is the mode's loop. */
static mf_status add_dimension(const struct mode_term *term, int64_t stride, const int *loop, int64_t *strides,
                               int64_t *base, int operand)
{
    int64_t shift;
    int fits = mf_mul(stride, term->offset, &shift) && mf_add(*base, shift, base);
    for (int p = 0; fits && p < term->parts; p++) {
        int64_t *to = &strides[loop[term->mode[p]]];
        fits = mf_mul(stride, term->coefficient[p], &shift) && mf_add(*to, shift, to);
    }
    if (fits)
        return MF_OK;
    return mf_fail(MF_ERROR_OVERFLOW, "operand %c: a window's stride does not fit in 63 bits", 'a' + operand);
}

static int uses_operand(const struct pool *pool, int input)
{
    for (int i = 0; i < pool->count; i++)
        if (pool->node[i].op == OP_OPERAND && pool->node[i].index == input)
            return 1;
    return 0;
}

/* Whether a dimension's index can leave its tensor; then it becomes a window that is checked for every element. */
static mf_status add_window(const struct modes *modes, struct problem *problem, int input, int d, int64_t extent,
                            const int64_t *size, const int *loop)
{
    const struct mode_term *term = &modes->input[input].term[d];
    struct nest *nest = &problem->memory;
    int64_t low = term->offset, high = term->offset;
    for (int p = 0; p < term->parts; p++) {
        int64_t n = size[term->mode[p]], reach;
        if (n < 1)
            return MF_OK; /* no element at all */
        if (!mf_mul(n - 1, term->coefficient[p], &reach) ||
            !mf_add(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return mf_fail(MF_ERROR_OVERFLOW, "operand %c: the window of dimension %d does not fit in 63 bits",
                           'a' + input, d);
    }
    if (low >= 0 && high < extent)
        return MF_OK;
    if (problem->finish_uses[input])
        return mf_fail(MF_ERROR_SHAPE,
                       "the window of dimension %d of operand %c runs from %lld to %lld and the tensor from 0 to %lld; "
                       "only inside a reducer may a window leave its tensor",
                       d, 'a' + input, (long long)low, (long long)high, (long long)extent - 1);
    if (!problem->program.reducer_count)
        return MF_OK; /* nobody reads it. In a reduction it counts all the same: the modes say who takes part */
    if (nest->window_count == MAX_WINDOWS)
        return mf_fail(MF_ERROR_UNSUPPORTED, "more than %d windows leave their tensors", MAX_WINDOWS);
    struct window *window = &nest->window[nest->window_count++];
    window->input = input;
    window->offset = term->offset;
    window->extent = extent;
    for (int p = 0; p < term->parts; p++)
        window->step[loop[term->mode[p]]] += term->coefficient[p];
    return MF_OK;
}

/* Kept modes first, as the output has them, then the reduced ones in the order of their first appearance. */
static void number_loops(const struct modes *modes, const int64_t *size, struct nest *nest, int *loop)
{
    for (int m = 0; m < modes->mode_count; m++)
        loop[m] = -1;
    for (int d = 0; d < modes->output_rank; d++)
        loop[modes->output_mode[d]] = d;
    nest->kept = modes->output_rank;
    for (int m = 0; m < modes->mode_count; m++) {
        if (loop[m] < 0)
            loop[m] = nest->kept + nest->reduced++;
        nest->size[loop[m]] = size[m];
    }
}

static mf_status check_use(const struct modes *modes, const struct problem *problem, int input, const int *loop)
{
    if (!problem->finish_uses[input])
        return MF_OK;
    for (int m = 0; m < modes->mode_count; m++)
        if (loop[m] >= modes->output_rank && mf_modes_has(modes, input, m)) {
            if (!problem->program.reducer_count)
                return mf_fail(MF_ERROR_EXPRESSION,
                               "mode %c of operand %c is not in the output and the expression has "
                               "no reducer",
                               modes->letter[m], 'a' + input);
            return mf_fail(MF_ERROR_EXPRESSION,
                           "operand %c stands outside of a reducer and has mode %c, which is not in "
                           "the output",
                           'a' + input, modes->letter[m]);
        }
    return MF_OK;
}

/* Whether every address that a loop's position can give, inside the tensor or (in a window) outside, fits in 63 bits of
 * bytes. */
static mf_status check_addresses(const struct problem *problem, int input)
{
    const struct nest *nest = &problem->memory;
    int64_t low = problem->in_base[input], high = low, item = mf_dtypes[problem->in_type[input]].size, reach;
    int fits = 1;
    for (int l = 0; fits && problem->kept_total && l < nest->kept + nest->reduced; l++)
        if ((l < nest->kept || problem->reduced_total) && nest->size[l] > 1)
            fits = mf_mul(nest->size[l] - 1, nest->in[input][l], &reach) &&
                   mf_add(reach < 0 ? low : high, reach, reach < 0 ? &low : &high);
    if (fits && mf_mul(low, item, &low) && mf_mul(high, item, &high) && !__builtin_sub_overflow(high, low, &reach))
        return MF_OK;
    return mf_fail(MF_ERROR_OVERFLOW, "operand %c: its windows reach over more than 2^63 - 1 bytes", 'a' + input);
}

static mf_status add_inputs(const struct modes *modes, const DLTensor *inputs, const int64_t *size, const int *loop,
                            struct problem *problem)
{
    for (int i = 0; i < modes->input_count; i++) {
        int64_t stride[MF_MAX_RANK];
        char what[16] = "operand a";
        what[8] = (char)('a' + i);
        problem->finish_uses[i] = uses_operand(&problem->program.finish, i);
        problem->map_uses[i] = uses_operand(&problem->program.map, i);
        MF_TRY(check_use(modes, problem, i, loop));
        MF_TRY(mf_tensor_layout(&inputs[i], what, mf_dtypes[problem->in_type[i]].size, stride, &problem->low[i],
                                &problem->high[i]));
        for (int d = 0; d < inputs[i].ndim; d++) {
            MF_TRY(add_dimension(&modes->input[i].term[d], stride[d], loop, problem->memory.in[i], &problem->in_base[i],
                                 i));
            MF_TRY(add_window(modes, problem, i, d, inputs[i].shape[d], size, loop));
        }
        MF_TRY(check_addresses(problem, i));
    }
    return MF_OK;
}

static mf_status add_outputs(const struct modes *modes, const DLTensor *outputs, const int64_t *size,
                             struct problem *problem)
{
    for (int k = 0; k < problem->output_count; k++) {
        int64_t item = mf_dtypes[problem->out_type[k]].size, bytes[MF_MAX_RANK];
        char what[16] = "output 0";
        what[7] = (char)(k < 10 ? '0' + k : 'A' + k - 10);
        if (outputs[k].ndim != modes->output_rank || (outputs[k].ndim && !outputs[k].shape))
            return mf_fail(MF_ERROR_SHAPE, "%s has %d dimensions and the modes string keeps %d modes", what,
                           outputs[k].ndim, modes->output_rank);
        for (int d = 0; d < outputs[k].ndim; d++)
            if (outputs[k].shape[d] != size[modes->output_mode[d]])
                return mf_fail(MF_ERROR_SHAPE, "mode %c is %lld in the operands and %lld in %s",
                               modes->letter[modes->output_mode[d]], (long long)size[modes->output_mode[d]],
                               (long long)outputs[k].shape[d], what);
        int64_t *stride = problem->memory.out[k];
        MF_TRY(mf_tensor_layout(&outputs[k], what, item, stride, &problem->low[MF_MAX_INPUTS + k],
                                &problem->high[MF_MAX_INPUTS + k]));
        for (int d = 0; d < outputs[k].ndim; d++)
            bytes[d] = outputs[k].shape[d] > 1 ? stride[d] * item : 0;
        if (mf_set_overlaps_itself(outputs[k].ndim, outputs[k].shape, bytes, item))
            return mf_fail(MF_ERROR_OVERLAP, "%s overlaps itself: two of its elements share memory", what);
    }
    return MF_OK;
}

/* ---- canonical form ---- */

void mf_nest_copy_loop(struct nest *to, int t, const struct nest *from, int f)
{
    to->size[t] = from->size[f];
    to->index[t] = from->index[f];
    for (int i = 0; i < MF_MAX_INPUTS; i++)
        to->in[i][t] = from->in[i][f];
    for (int k = 0; k < MF_MAX_OUTPUTS; k++)
        to->out[k][t] = from->out[k][f];
    for (int w = 0; w < from->window_count; w++)
        to->window[w].step[t] = from->window[w].step[f];
}

int mf_stride_continues(int64_t outer, int64_t inner, int64_t size)
{
    return (__int128)inner * size == outer;
}

int mf_nest_mergeable(const struct nest *nest, int outer, int inner, int kept)
{
    int64_t n = nest->size[inner];
    int ok = kept || mf_stride_continues(nest->index[outer], nest->index[inner], n);
    for (int i = 0; ok && i < MF_MAX_INPUTS; i++)
        ok = mf_stride_continues(nest->in[i][outer], nest->in[i][inner], n);
    for (int k = 0; ok && kept && k < MF_MAX_OUTPUTS; k++)
        ok = mf_stride_continues(nest->out[k][outer], nest->out[k][inner], n);
    for (int w = 0; ok && w < nest->window_count; w++)
        ok = mf_stride_continues(nest->window[w].step[outer], nest->window[w].step[inner], n);
    return ok;
}

/* Appends loop f of `from` to `to`, into the last loop where it continues it. first: where this kind of loop begins. */
static void append_loop(struct nest *to, int first, int *count, const struct nest *from, int f, int kept)
{
    if (from->size[f] == 1)
        return;
    mf_nest_copy_loop(to, first + *count, from, f);
    if (*count && mf_nest_mergeable(to, first + *count - 1, first + *count, kept)) {
        int64_t outer = to->size[first + *count - 1];
        mf_nest_copy_loop(to, first + *count - 1, to, first + *count);
        to->size[first + *count - 1] *= outer;
    } else {
        ++*count;
    }
}

/* The stride of a loop that decides its place: the first operand's that has one (zero strides say nothing). */
static int64_t deciding_stride(const struct modes *modes, const struct nest *nest, int loop, const int *mode_of_loop)
{
    for (int i = 0; i < modes->input_count; i++)
        if (mf_modes_has(modes, i, mode_of_loop[loop]))
            return nest->in[i][loop];
    return 0;
}

/* Stable insertion sort of loops first ... first+count-1 by decreasing |key|. */
static void sort_loops(int *order, int count, const int64_t *key)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0; j--) {
            int64_t before = key[order[j - 1]], after = key[order[j]];
            uint64_t a = before < 0 ? 0 - (uint64_t)before : (uint64_t)before;
            uint64_t b = after < 0 ? 0 - (uint64_t)after : (uint64_t)after;
            if (a >= b)
                break;
            int t = order[j];
            order[j] = order[j - 1];
            order[j - 1] = t;
        }
}

/* raw, with its loops in the given order, canonical. */
static void canonical(const struct nest *raw, const int *kept_order, const int *reduced_order, struct nest *nest)
{
    memset(nest, 0, sizeof *nest);
    nest->window_count = raw->window_count;
    for (int w = 0; w < raw->window_count; w++) {
        nest->window[w] = raw->window[w];
        memset(nest->window[w].step, 0, sizeof nest->window[w].step);
    }
    for (int i = 0; i < raw->kept; i++)
        append_loop(nest, 0, &nest->kept, raw, kept_order[i], 1);
    for (int i = 0; i < raw->reduced; i++)
        append_loop(nest, nest->kept, &nest->reduced, raw, reduced_order[i], 0);
}

/* A fold has at most this many elements: sizes of temporaries then fit in 63 bits whatever the solver. (Reading them
 * takes a core days.) */
static const int64_t most_elements = (int64_t)1 << 50;

/* The product of loops' sizes, which is 0 if one of them is, whatever the others are; false when it does not fit. */
static int multiply_sizes(const int64_t *size, int count, int64_t *total)
{
    *total = 0;
    for (int l = 0; l < count; l++)
        if (!size[l])
            return 1;
    *total = 1;
    for (int l = 0; l < count; l++)
        if (!mf_mul(*total, size[l], total))
            return 0;
    return 1;
}

static mf_status totals(struct problem *problem, const struct nest *nest)
{
    int64_t all;
    if (!multiply_sizes(nest->size, nest->kept, &problem->kept_total))
        return mf_fail(MF_ERROR_OVERFLOW, "the kept modes have more than 2^63 - 1 elements together");
    int fits = multiply_sizes(nest->size + nest->kept, nest->reduced, &problem->reduced_total);
    if (!problem->kept_total) { /* nothing to compute, of however many elements */
        if (!fits || problem->reduced_total > most_elements)
            problem->reduced_total = 0;
        return MF_OK;
    }
    if (!fits)
        return mf_fail(MF_ERROR_OVERFLOW, "the reduced modes have more than 2^63 - 1 elements together");
    if (!mf_mul(problem->kept_total, problem->reduced_total, &all) || all > most_elements ||
        problem->kept_total > most_elements)
        return mf_fail(MF_ERROR_OVERFLOW, "the fold has %lld x %lld elements and the most is 2^50",
                       (long long)problem->kept_total, (long long)problem->reduced_total);
    return MF_OK;
}

static void make_canonical(const struct modes *modes, const int *loop, int as_written, struct problem *problem,
                           struct nest *raw)
{
    int mode_of_loop[MAX_LOOPS], kept[MAX_LOOPS], written[MAX_LOOPS], memory[MAX_LOOPS];
    int64_t key[MAX_LOOPS], weight = 1;
    for (int m = 0; m < modes->mode_count; m++)
        mode_of_loop[loop[m]] = m;
    for (int l = raw->kept + raw->reduced - 1; l >= raw->kept; l--) {
        raw->index[l] = weight;
        weight *= raw->size[l] ? raw->size[l] : 1;
    }
    for (int l = 0; l < raw->kept + raw->reduced; l++)
        key[l] = l < raw->kept && !problem->program.reducer_count ? raw->out[0][l]
                                                                  : deciding_stride(modes, raw, l, mode_of_loop);
    for (int l = 0; l < raw->kept; l++)
        kept[l] = l;
    for (int l = 0; l < raw->reduced; l++)
        written[l] = memory[l] = raw->kept + l;
    sort_loops(kept, raw->kept, key);
    if (!as_written)
        sort_loops(memory, raw->reduced, key);
    canonical(raw, kept, memory, &problem->memory);
    canonical(raw, kept, written, &problem->written);
}

mf_status mf_problem_make(const struct modes *modes, const DLTensor *inputs, const DLTensor *outputs, int as_written,
                          struct problem *problem)
{
    int64_t size[MF_MAX_MODES];
    int loop[MAX_LOOPS];
    MF_TRY(mf_modes_sizes(modes, inputs, &outputs[0], size));
    struct nest *nest = &problem->memory;
    number_loops(modes, size, nest, loop);
    MF_TRY(totals(problem, nest));
    MF_TRY(add_outputs(modes, outputs, size, problem));
    MF_TRY(add_inputs(modes, inputs, size, loop, problem));
    if (problem->reduced_total == 0 && problem->kept_total > 0 && problem->program.needs_element)
        return mf_fail(MF_ERROR_EMPTY,
                       "%s of no elements has no value (the reduced modes have 0 elements and the output %lld)",
                       problem->program.needs_element, (long long)problem->kept_total);
    struct nest *raw = mf_alloc(sizeof *raw);
    if (!raw)
        return MF_ERROR_MEMORY;
    *raw = *nest;
    if (!problem->kept_total) /* products of the other sizes may not fit, and nothing will be done */
        raw->kept = raw->reduced = 0;
    if (!problem->reduced_total)
        raw->reduced = 0;
    make_canonical(modes, loop, as_written, problem, raw);
    mf_free(raw);
    return MF_OK;
}

int mf_nest_is_as_written(const struct nest *nest)
{
    int64_t weight = 1;
    for (int l = nest->kept + nest->reduced - 1; l >= nest->kept; l--) {
        if (nest->index[l] != weight)
            return 0;
        weight *= nest->size[l];
    }
    return 1;
}

/* ---- overlap at execution ---- */

/* The kept loops of one side in bytes; an input's reduced loops too, so that all it reads is there. */
static int side(const struct problem *problem, int index, int64_t *size, int64_t *stride)
{
    const struct nest *nest = &problem->memory;
    int output = index >= MF_MAX_INPUTS, k = output ? index - MF_MAX_INPUTS : index;
    int loops = output ? nest->kept : nest->kept + nest->reduced;
    int64_t item = output ? mf_dtypes[problem->out_type[k]].size : mf_dtypes[problem->in_type[k]].size;
    for (int l = 0; l < loops; l++) {
        size[l] = nest->size[l];
        stride[l] = (output ? nest->out[k][l] : nest->in[k][l]) * item;
    }
    return loops;
}

/* Input and output are the same memory, type and layout, and the input is read only at the output's own position. */
static int exactly_in_place(const struct problem *problem, int input, int output)
{
    const struct nest *nest = &problem->memory;
    if (problem->in_type[input] != problem->out_type[output] || problem->in_base[input] != 0)
        return 0;
    if (problem->map_uses[input] && nest->reduced)
        return 0;
    for (int l = 0; l < nest->kept; l++)
        if (nest->in[input][l] != nest->out[output][l])
            return 0;
    return 1;
}

static mf_status check_pair(const struct problem *problem, int a, const char *pa, int output, const char *pb)
{
    int b = MF_MAX_INPUTS + output;
    int64_t na[MAX_LOOPS], sa[MAX_LOOPS], nb[MAX_LOOPS], sb[MAX_LOOPS];
    int ranks_a = side(problem, a, na, sa), ranks_b = side(problem, b, nb, sb);
    int a_is_output = a >= MF_MAX_INPUTS;
    if (!a_is_output && pa == pb && exactly_in_place(problem, a, output))
        return MF_OK;
    int64_t item_a =
        a_is_output ? mf_dtypes[problem->out_type[a - MF_MAX_INPUTS]].size : mf_dtypes[problem->in_type[a]].size;
    int64_t shift = a_is_output ? 0 : problem->in_base[a] * item_a;
    int64_t item_b = mf_dtypes[problem->out_type[output]].size;
    if (ranks_a + ranks_b > 2 * MF_MAX_RANK ||
        mf_sets_meet(shift, ranks_a, na, sa, item_a, (int64_t)((uintptr_t)pb - (uintptr_t)pa), ranks_b, nb, sb,
                     item_b)) {
        if (a_is_output)
            return mf_fail(MF_ERROR_OVERLAP, "output %d and output %d overlap in memory", a - MF_MAX_INPUTS, output);
        return mf_fail(MF_ERROR_OVERLAP, "output %d overlaps operand %c in memory without being exactly it", output,
                       'a' + a);
    }
    return MF_OK;
}

int mf_problem_near(const struct problem *problem, int a, const void *pa, int b, const void *pb)
{
    __int128 distance = (intptr_t)((uintptr_t)pb - (uintptr_t)pa);
    return problem->low[a] < problem->high[a] && problem->low[a] < distance + problem->high[b] &&
           distance + problem->low[b] < problem->high[a];
}

mf_status mf_problem_check_overlap(const struct problem *problem, const void *const *inputs, void *const *outputs)
{
    for (int k = 0; k < problem->output_count; k++) {
        for (int i = 0; i < problem->input_count; i++)
            if ((problem->map_uses[i] || problem->finish_uses[i]) &&
                mf_problem_near(problem, i, inputs[i], MF_MAX_INPUTS + k, outputs[k]))
                MF_TRY(check_pair(problem, i, inputs[i], k, outputs[k]));
        for (int j = 0; j < k; j++)
            if (mf_problem_near(problem, MF_MAX_INPUTS + j, outputs[j], MF_MAX_INPUTS + k, outputs[k]))
                MF_TRY(check_pair(problem, MF_MAX_INPUTS + j, outputs[j], k, outputs[k]));
    }
    return MF_OK;
}

int mf_nest_parts_fit(const struct nest *nest, const int64_t *stride, int64_t offset)
{
    __int128 reach = offset < 0 ? -(__int128)offset : offset;
    for (int l = 0; l < nest->kept + nest->reduced; l++)
        reach += (__int128)(stride[l] < 0 ? -(__int128)stride[l] : stride[l]) * nest->size[l];
    return reach < INT64_MAX / 8;
}
