/* Random operands, layouts and types, for random modes (random_modes.c). */
#include <stdio.h>
#include <string.h>

#include "lists.h"
#include "random_sketch.h"

/* ---- operands ---- */

static void add_plain(struct sketch *s, int i, int mode)
{
    if (s->rank[i] == MF_MAX_RANK)
        return;
    s->term[i][s->rank[i]++] = (struct term){1, {mode, 0}, {1, 0}, 0};
    s->has_plain[mode] = 1;
}

static void shuffle_terms(struct sketch *s, int i)
{
    for (int d = s->rank[i] - 1; d > 0; d--) {
        int e = sketch_below(s, d + 1);
        struct term t = s->term[i][d];
        s->term[i][d] = s->term[i][e];
        s->term[i][e] = t;
    }
}

/* Mode 0 is the first operand's own, mode 1 the second's; the others are of both, or of one. */
static void choose_factors(struct sketch *s)
{
    s->operands = 2;
    for (int m = 0; m < s->modes; m++) {
        int of = m < 2 ? m : sketch_percent(s, s->kept[m] ? 30 : 85) ? 2 : sketch_below(s, 2);
        for (int i = 0; i < 2; i++)
            if (of == 2 || of == i)
                add_plain(s, i, m);
    }
    for (int i = 0; i < 2; i++)
        if (sketch_percent(s, 60))
            shuffle_terms(s, i);
}

static void choose_operands(struct sketch *s)
{
    static const int counts[10] = {1, 1, 1, 1, 1, 2, 2, 2, 3, 3};
    if (s->plain) {
        s->operands = 1;
        for (int m = 0; m < s->modes; m++)
            add_plain(s, 0, m);
        return;
    }
    if (s->product) {
        choose_factors(s);
        return;
    }
    int full = s->pair ? 2 : counts[sketch_below(s, 10)],
        extra = s->reduces && sketch_percent(s, 30) ? 1 + sketch_below(s, 2) : 0;
    s->operands = full + extra;
    for (int i = 0; i < s->operands; i++) {
        s->finish_only[i] = i >= full;
        for (int m = 0; m < s->modes; m++)
            if ((!s->finish_only[i] || s->kept[m]) && sketch_percent(s, i ? 60 : 88))
                add_plain(s, i, m);
    }
    for (int m = 0; m < s->modes; m++)
        for (int i = sketch_below(s, full), tries = 0; !s->has_plain[m] && tries < full; i = (i + 1) % full, tries++)
            add_plain(s, i, m);
    int twice = s->modes ? sketch_below(s, s->modes) : 0;
    if (s->modes && s->size[twice] < 300 && sketch_percent(s, 6)) /* a diagonal */
        add_plain(s, sketch_below(s, full), twice);
    for (int i = 0; i < s->operands; i++)
        if (sketch_percent(s, 35))
            shuffle_terms(s, i);
    for (int m = 0; m < s->modes; m++) /* with more than MF_MAX_RANK modes some may be in no operand */
        if (!s->has_plain[m])
            s->size[m] = 1;
}

/* Makes a plain dimension a window with a second mode, which may be one of the fold's or a new, reduced one. */
static void make_window(struct sketch *s, int i, int d)
{
    struct term *t = &s->term[i][d];
    int second = sketch_below(s, s->modes + 1);
    if (second == s->modes || second == t->mode[0] || (s->finish_only[i] && !s->kept[second])) {
        if (!s->reduces || s->finish_only[i] || s->modes + 1 >= SKETCH_MODES)
            return;
        second = s->modes++;
        s->size[second] = 1 + sketch_below(s, 4);
        s->kept[second] = s->has_plain[second] = 0;
    }
    t->parts = 2;
    t->mode[1] = second;
    t->coefficient[0] = sketch_percent(s, 30) ? 1 + sketch_below(s, 3) : 1;
    t->coefficient[1] = sketch_percent(s, 15)   ? -1 - sketch_below(s, 2)
                        : sketch_percent(s, 30) ? 1 + sketch_below(s, 3)
                                                : 1;
    t->offset = sketch_percent(s, 50) ? sketch_below(s, 5) - 3 : 0;
}

/* A window that moves by one element, of as many as kernels double: the folds of neighbours share their elements. */
static void make_moving(struct sketch *s)
{
    struct term *t = &s->term[0][s->rank[0] - 1];
    int second = s->modes++;
    s->size[second] = 2 << sketch_below(s, 7);
    s->kept[second] = s->has_plain[second] = 0;
    t->parts = 2;
    t->mode[1] = second;
    t->coefficient[0] = t->coefficient[1] = 1;
    s->has_plain[t->mode[0]] = 0;
}

/* Windows that touch, or nearly, on up to three dimensions; or that overlap, on up to two. */
static void make_pooling(struct sketch *s)
{
    const int slides = s->pooling == POOLING_SLIDES, last = s->rank[0] - 1 - s->pixels;
    const int most = 1 + sketch_below(s, slides ? 2 : 3);
    for (int d = last; d >= 0 && d > last - most; d--) {
        struct term *t = &s->term[0][d];
        const int second = s->modes++, is_power = d == last && !slides && sketch_percent(s, 70);
        const int least = slides && sketch_percent(s, 8) ? 20 : 1;
        s->size[second] = is_power ? 2 << sketch_below(s, 3) : least + sketch_below(s, slides ? 7 : 5);
        s->kept[second] = s->has_plain[second] = s->has_plain[t->mode[0]] = 0;
        t->parts = 2;
        t->mode[1] = second;
        t->coefficient[0] = slides || sketch_percent(s, 10) ? 1 + sketch_below(s, 3) : (int)s->size[second];
        t->coefficient[1] = slides && sketch_percent(s, 20) ? 1 + sketch_below(s, 3) : 1;
        t->offset = slides ? -sketch_below(s, (int)s->size[second]) : 0;
    }
}

static void choose_windows(struct sketch *s)
{
    if (s->moving)
        make_moving(s);
    if (s->pooling)
        make_pooling(s);
    if (!s->modes || s->plain || s->pair || !sketch_percent(s, s->product ? 8 : 18))
        return;
    for (int n = 1 + sketch_below(s, 2); n > 0; n--) {
        int i = sketch_below(s, s->operands);
        if (s->rank[i])
            make_window(s, i, sketch_below(s, s->rank[i]));
    }
    memset(s->has_plain, 0, sizeof s->has_plain);
    for (int i = 0; i < s->operands; i++)
        for (int d = 0; d < s->rank[i]; d++)
            if (s->term[i][d].parts == 1)
                s->has_plain[s->term[i][d].mode[0]] = 1;
}

/* The extent of a dimension: a plain mode's size; a window's reach, or less where it may be left. */
static int64_t choose_extent(struct sketch *s, int i, struct term *t)
{
    if (t->parts == 1 && t->offset == 0)
        return s->size[t->mode[0]];
    int64_t low = t->offset, high = t->offset;
    for (int p = 0; p < t->parts; p++) {
        int64_t reach = t->coefficient[p] * (s->size[t->mode[p]] - 1);
        *(reach < 0 ? &low : &high) += reach;
    }
    int may_leave = s->reduces && !s->finish_only[i] && s->pooling != POOLING_TOUCHES && sketch_percent(s, 50);
    if (!may_leave) { /* moved inside */
        t->offset -= (int)low;
        return high - low + 1 + (sketch_percent(s, 20) ? sketch_below(s, 3) : 0);
    }
    int64_t extent = high + 1 - sketch_below(s, 4);
    int far =
        sketch_percent(s, 15) ? sketch_below(s, 61) - 30 : 0; /* so far that some outputs have no element inside */
    t->offset += far;
    if (low + far < 0 || extent <= high + far)
        s->checked[i] = 1;
    return extent > 0 ? extent : 1;
}

/* ---- layouts ---- */

/* Row-major, permuted, or anything; overlapping and broadcast strides only where that is allowed. */
static void choose_layout(struct sketch *s, struct problem_tensor *t, int is_output)
{
    int order[MF_MAX_RANK], wild = sketch_percent(s, 35);
    int64_t next = 1;
    problem_set_row_major(t);
    if (sketch_percent(s, s->between || s->pooling ? 75 : 45) || !t->ndim)
        return;
    t->row_major = 0;
    for (int d = 0; d < t->ndim; d++)
        order[d] = t->ndim - 1 - d;
    if (sketch_percent(s, 60))
        sketch_shuffle(s, order, t->ndim);
    for (int i = 0; i < t->ndim; i++) {
        int d = order[i];
        int64_t step = wild && sketch_percent(s, 15) ? 2 + sketch_below(s, 2) : 1, stride = next * step;
        if (!is_output && wild && sketch_percent(s, 8)) {
            t->strides[d] = sketch_percent(s, 60) ? 0 : 1 + sketch_below(s, 3);
            continue;
        }
        if (t->shape[d] > 1)
            next = stride * t->shape[d] + (wild && sketch_percent(s, 20) ? sketch_below(s, 9) : 0);
        t->strides[d] = (wild && sketch_percent(s, 15) ? -1 : 1) * stride;
        if (t->shape[d] == 1 && wild)
            t->strides[d] = sketch_below(s, 1000) - 500;
    }
    problem_least_offset(t, &t->offset);
    if (sketch_percent(s, 35))
        t->offset += sketch_below(s, 10);
    if (problem_extent(t) > 4 * problem_elements(t) + 20000 || problem_extent(t) < 0)
        problem_set_row_major(t);
}

static DLDataType throw_type(struct sketch *s)
{
    int any = sketch_below(s, list_type_count() * 2);
    DLDataType f32 = mf_dtype(MF_F32), f64 = mf_dtype(MF_F64);
    return any < list_type_count() ? list_type(any) : sketch_percent(s, 70) ? f32 : f64;
}

static void set_type(struct problem_tensor *t, DLDataType dtype)
{
    t->dtype = dtype;
    t->item = dtype.bits / 8;
}

static void choose_inputs(struct sketch *s)
{
    DLDataType same =
        s->pair && sketch_percent(s, 50) ? mf_dtype(sketch_percent(s, 50) ? MF_F32 : MF_F64) : throw_type(s);
    static const mf_type narrow[8] = {MF_I8, MF_U8, MF_F16, MF_BF16, MF_I16, MF_U16, MF_I32, MF_U32};
    int mixed = !s->pair && sketch_percent(s, 40);
    if (s->moving && sketch_percent(s, 60)) /* which have ways of their own */
        same = mf_dtype(narrow[sketch_below(s, 4)]);
    if ((s->between || s->pooling) && sketch_percent(s, 50))
        same = mf_dtype(narrow[sketch_below(s, 8)]);
    mixed = mixed && !s->moving;
    for (int i = 0; i < s->operands; i++) {
        struct problem_tensor *t = &s->line->tensor[i];
        set_type(t, mixed ? throw_type(s) : same);
        t->memory = i;
        t->ndim = s->rank[i];
        for (int d = 0; d < t->ndim; d++)
            t->shape[d] = choose_extent(s, i, &s->term[i][d]);
        choose_layout(s, t, 0);
    }
    s->line->input_count = s->operands;
}

static DLDataType throw_output_type(struct sketch *s, enum value_kind kind)
{
    static const mf_type floats[4] = {MF_F32, MF_F32, MF_F64, MF_F16};
    static const mf_type integers[4] = {MF_I64, MF_I32, MF_U8, MF_I64};
    if (s->pair || ((s->between || s->pooling) && sketch_percent(s, 50)))
        return s->line->tensor[0].dtype;
    if (sketch_percent(s, 35))
        return throw_type(s);
    if (sketch_percent(s, 40))
        return s->line->tensor[0].dtype;
    return mf_dtype(kind == KIND_FLOAT   ? floats[sketch_below(s, 4)]
                    : kind == KIND_TRUTH ? MF_BOOL
                                         : integers[sketch_below(s, 4)]);
}

/* The output on operand i's memory, in place: the operand gets an output's layout, the output the operand's strides. */
static int place_on_operand(struct sketch *s, struct problem_tensor *output, int i)
{
    struct problem_tensor *t = &s->line->tensor[i];
    int dimension[SKETCH_MODES];
    if (s->rank[i] != s->output_rank || (s->reduces && !s->finish_only[i]))
        return 0;
    memset(dimension, -1, sizeof dimension);
    for (int d = 0; d < t->ndim; d++) {
        if (s->term[i][d].parts != 1 || dimension[s->term[i][d].mode[0]] >= 0)
            return 0;
        dimension[s->term[i][d].mode[0]] = d;
    }
    choose_layout(s, t, 1);
    for (int d = 0; d < output->ndim; d++) {
        if (dimension[s->output_mode[d]] < 0)
            return 0;
        output->strides[d] = t->strides[dimension[s->output_mode[d]]];
    }
    set_type(output, t->dtype);
    output->row_major = 0;
    output->offset = t->offset;
    output->memory = i;
    return 1;
}

static void choose_output(struct sketch *s, int k, enum value_kind kind)
{
    struct problem_tensor *t = &s->line->tensor[MF_MAX_INPUTS + k];
    set_type(t, throw_output_type(s, kind));
    t->memory = MF_MAX_INPUTS + k;
    t->ndim = s->output_rank;
    for (int d = 0; d < t->ndim; d++)
        t->shape[d] = s->size[s->output_mode[d]];
    if (k == 0 && sketch_percent(s, s->reduces ? 25 : 15) && place_on_operand(s, t, sketch_below(s, s->operands)))
        return;
    choose_layout(s, t, 1);
    const struct problem_tensor *first = &s->line->tensor[MF_MAX_INPUTS];
    if (k == 1 && first->memory == MF_MAX_INPUTS && first->ndim && sketch_percent(s, 10)) { /* two outputs take turns */
        *t = *first;
        t->row_major = 0;
        for (int d = 0; d < t->ndim; d++)
            t->strides[d] *= 2;
        problem_least_offset(t, &t->offset);
        struct problem_tensor *o = &s->line->tensor[MF_MAX_INPUTS];
        *o = *t;
        t->offset++;
    }
}

/* ---- text ---- */

static const char letters[] = "ijklmnxyzpqrstuvwabcdefghoABCDEFGHIJKLMNOPQRSTUVWXYZ";

static size_t print_term(const struct sketch *s, const struct term *t, char *text, size_t size)
{
    size_t n = 0;
    (void)s;
    if (t->parts == 1 && t->offset == 0)
        return (size_t)snprintf(text, size, "%c", letters[t->mode[0]]);
    n += (size_t)snprintf(text, size, "(");
    for (int p = 0; p < t->parts; p++) {
        int c = t->coefficient[p];
        n += (size_t)snprintf(text + n, size - n, "%s", c < 0 ? "-" : p ? "+" : "");
        if (c != 1 && c != -1)
            n += (size_t)snprintf(text + n, size - n, "%d", c < 0 ? -c : c);
        n += (size_t)snprintf(text + n, size - n, "%c", letters[t->mode[p]]);
    }
    if (t->offset)
        n += (size_t)snprintf(text + n, size - n, "%+d", t->offset);
    return n + (size_t)snprintf(text + n, size - n, ")");
}

static void print_modes(const struct sketch *s)
{
    char *text = s->line->modes;
    size_t size = sizeof s->line->modes, n = 0;
    int occurs[SKETCH_MODES] = {0}, settings = 0;
    for (int i = 0; i < s->operands; i++) {
        n += (size_t)snprintf(text + n, size - n, "%s", i ? "," : "");
        for (int d = 0; d < s->rank[i]; d++) {
            n += print_term(s, &s->term[i][d], text + n, size - n);
            for (int p = 0; p < s->term[i][d].parts; p++)
                occurs[s->term[i][d].mode[p]] = 1;
        }
    }
    n += (size_t)snprintf(text + n, size - n, "->");
    for (int d = 0; d < s->output_rank; d++)
        n += (size_t)snprintf(text + n, size - n, "%c", letters[s->output_mode[d]]);
    for (int m = 0; m < s->modes; m++)
        if (occurs[m] && !s->kept[m] && !s->has_plain[m])
            n += (size_t)snprintf(text + n, size - n, "%s%c=%d", settings++ ? "," : " with ", letters[m],
                                  (int)s->size[m]);
}

/* Which operand may stand where in the expression. */
static void describe_operands(const struct sketch *s, struct expr_maker *m)
{
    m->operand_count = s->operands;
    for (int i = 0; i < s->operands; i++) {
        m->operand[i] = expr_kind_of_type(s->line->tensor[i].dtype);
        m->finish_only[i] = s->finish_only[i];
        m->in_finish[i] = !s->checked[i];
        for (int d = 0; d < s->rank[i]; d++)
            for (int p = 0; p < s->term[i][d].parts; p++)
                m->in_finish[i] &= s->kept[s->term[i][d].mode[p]];
    }
}

static void choose_pair(struct sketch *s)
{
    static const char *const forms[] = {"a+b",      "a-b",      "b-a",   "a*b",   "a/b",
                                        "min(a,b)", "max(b,a)", "a+b*2", "a*b+b", "3-b*a"};
    snprintf(s->line->expression, sizeof s->line->expression, "%s", forms[sketch_below(s, 10)]);
    s->line->output_count = 1;
    choose_output(s, 0, KIND_FLOAT);
}

static void choose_product(struct sketch *s)
{
    static const char *const floats[] = {"sum(a*b)",       "max(a+b)",         "min(b+a)",      "max(a-b)",
                                         "min(b-a)",       "max(a*b)",         "min(a*b)",      "sum(abs(a-b))",
                                         "max(abs(b-a))",  "min(max(a,b))",    "max(min(b,a))", "mean(a*b)",
                                         "prod(a*b)",      "sum(a*(b*2))",     "max(-a+b)*2",   "argmax(a+b)",
                                         "logsumexp(a+b)", "sum((a-b)*(a-b))", "sum((a-b)**2)", "sum(a*b)+max(a)"};
    static const char *const integers[] = {"sum(a*b)",  "sum(popcount(a^b))", "any(a&b)",      "or(a&b)",
                                           "and(a|b)",  "xor(a&b)",           "min(max(a,b))", "max(a+b)",
                                           "mean(a*b)", "min(popcount(b^a))", "count(a&b)",    "sum((b-a)*(b-a))"};
    int real = 0;
    for (int i = 0; i < 2; i++)
        real |= expr_kind_of_type(s->line->tensor[i].dtype) != KIND_SIGNED;
    if (real && expr_kind_of_type(s->line->tensor[0].dtype) == expr_kind_of_type(s->line->tensor[1].dtype))
        real = expr_kind_of_type(s->line->tensor[0].dtype) == KIND_FLOAT;
    snprintf(s->line->expression, sizeof s->line->expression, "%s",
             real ? floats[sketch_below(s, sizeof floats / sizeof floats[0])]
                  : integers[sketch_below(s, sizeof integers / sizeof integers[0])]);
    s->line->output_count = 1;
    choose_output(s, 0, real ? KIND_FLOAT : KIND_SIGNED);
}

static void choose_expression(struct sketch *s)
{
    static const int counts[12] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 5};
    struct expr_maker m;
    if (s->pair || s->product) {
        s->pair ? choose_pair(s) : choose_product(s);
        return;
    }
    memset(&m, 0, sizeof m);
    m.dice = &s->dice;
    m.text = s->line->expression;
    m.size = 400;
    m.plain = s->plain;
    describe_operands(s, &m);
    int count = counts[sketch_below(s, 12)];
    s->line->output_count = count;
    for (int k = 0; k < count; k++) {
        if (k)
            m.length += (size_t)snprintf(m.text + m.length, sizeof s->line->expression - m.length, "; ");
        m.size = m.length + 300;
        choose_output(s, k, s->reduces ? expr_make_reduction(&m) : expr_make_map(&m, 1));
    }
    for (int own = 0; own < EXPR_OWNS; own++)
        if (m.own >> own & 1)
            snprintf(s->line->define[s->line->define_count++], sizeof s->line->define[0], "%s", expr_own(own));
}

static void choose_options(struct sketch *s)
{
    static const enum values_kind kinds[12] = {VALUES_normal,  VALUES_normal,   VALUES_normal,   VALUES_normal,
                                               VALUES_uniform, VALUES_integers, VALUES_integers, VALUES_wide,
                                               VALUES_wide,    VALUES_special,  VALUES_special,  VALUES_ties};
    s->line->seed = dice_bits(&s->dice) >> 40;
    s->line->data = sketch_percent(s, 3) ? VALUES_ones : kinds[sketch_below(s, 12)];
    s->line->order = sketch_percent(s, 12) ? MF_ORDER_AS_WRITTEN : 0;
}

/* Two windows on one operand, or a diagonal, can make it larger than is worth while. */
static int is_too_large(const struct problem_line *line)
{
    for (int i = 0; i < line->input_count; i++)
        if (problem_elements(&line->tensor[i]) > 1 << 22)
            return 1;
    return 0;
}

static void sketch_problem(uint64_t seed, struct problem_line *line)
{
    struct sketch s;
    memset(line, 0, sizeof *line);
    memset(&s, 0, sizeof s);
    s.dice.seed = seed;
    s.line = line;
    sketch_modes(&s);
    choose_operands(&s);
    choose_windows(&s);
    choose_inputs(&s);
    print_modes(&s);
    choose_expression(&s);
    choose_options(&s);
}

void random_problem(uint64_t seed, uint64_t number, struct problem_line *line)
{
    uint64_t own = values_bits(seed, number);
    do {
        sketch_problem(own++, line);
    } while (is_too_large(line));
}
