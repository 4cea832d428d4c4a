/* Random modes, sizes and layouts. */
#include "random.h"

#include <stdio.h>
#include <string.h>

#include "lists.h"

enum { SKETCH_MODES = 40 };

/* One dimension of an operand: offset + sum of coefficient * mode. */
struct term {
    int parts, mode[2], coefficient[2], offset;
};

struct sketch {
    struct dice dice;
    struct problem_line *line;
    int reduces; /* the expression has reducers */
    int plain;   /* what most people do: one operand, every mode once, reducers straight on it */
    int moving;  /* of those: all modes are kept, and over the last one's neighbours is reduced */
    int pair;    /* no reducer, one operation on two operands of the output's type */
    int product; /* a reducer over a product of two operands that each have a kept mode of their own */
    int modes;
    int64_t size[SKETCH_MODES];
    int kept[SKETCH_MODES], has_plain[SKETCH_MODES]; /* some operand has it as a plain letter */
    int output_rank, output_mode[MF_MAX_RANK];
    int operands, rank[MF_MAX_INPUTS], finish_only[MF_MAX_INPUTS], checked[MF_MAX_INPUTS];
    struct term term[MF_MAX_INPUTS][MF_MAX_RANK];
};

static int below(struct sketch *s, int n)
{
    return dice_below(&s->dice, n);
}

static int percent(struct sketch *s, int p)
{
    return dice_percent(&s->dice, p);
}

static void shuffle(struct sketch *s, int *items, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int j = below(s, i + 1), t = items[i];
        items[i] = items[j];
        items[j] = t;
    }
}

/* ---- modes and sizes ---- */

static int throw_mode_count(struct sketch *s)
{
    static const int counts[32] = {0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3,
                                   3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9};
    int count = counts[below(s, 32)];
    return count == 9 ? 9 + below(s, 24) : count;
}

static int64_t throw_terms(struct sketch *s)
{
    int t = below(s, 1000);
    int64_t limit = t < 5 ? (int64_t)1 << 21 : t < 95 ? 200000 : 5000;
    return limit >> (below(s, 3) * below(s, 4));
}

/* Sizes with something on either side of every boundary a solver may have. */
static int64_t throw_size(struct sketch *s, int64_t most)
{
    static const int64_t sizes[] = {1,    2,    3,    5,     7,     8,     13,     16,     31,     32,   33,
                                    64,   100,  127,  128,   129,   255,   256,    257,    1000,   4095, 4096,
                                    4097, 8191, 8193, 10000, 12289, 65537, 100003, 524289, 1048577};
    int fitting = 0;
    while (fitting < (int)(sizeof sizes / sizeof sizes[0]) && sizes[fitting] <= most)
        fitting++;
    if (!fitting)
        return 1;
    if (percent(s, 15)) {
        int64_t any = (int64_t)(dice_bits(&s->dice) >> 40) % most;
        return 1 + any;
    }
    int top = fitting > 5 ? 5 : fitting;
    return sizes[percent(s, 45) ? fitting - 1 - below(s, top) : below(s, fitting)];
}

static int64_t about_root(int64_t n)
{
    int64_t root = 1;
    while (root * root < n)
        root *= 2;
    return root;
}

/* Some rows of a tile or a few, and a last one of any length, which no other choice makes often. */
static void choose_long_rows(struct sketch *s)
{
    enum { TILE_ELEMENTS = 4096 };
    s->modes = 2;
    s->kept[0] = 1;
    s->kept[1] = 0;
    s->size[0] = 1 + below(s, 9);
    s->size[1] = TILE_ELEMENTS * (1 + below(s, 3)) + below(s, percent(s, 50) ? 200 : TILE_ELEMENTS);
}

static void choose_modes(struct sketch *s)
{
    int order[SKETCH_MODES];
    s->reduces = percent(s, 78);
    s->plain = s->reduces && percent(s, 35);
    s->pair = !s->reduces && percent(s, 35);
    s->product = s->reduces && !s->plain && percent(s, 25);
    s->moving = s->plain && percent(s, 8);
    s->modes = throw_mode_count(s);
    if (s->product)
        s->modes = 3 + below(s, 3);
    if (s->moving)
        s->modes = 1 + below(s, 3);
    int64_t room = s->moving ? 20000 : throw_terms(s);
    for (int m = 0; m < s->modes; m++) {
        order[m] = m;
        s->kept[m] = !s->reduces || percent(s, 45);
    }
    for (int m = 0; s->moving && m < s->modes; m++)
        s->kept[m] = 1;
    if (s->modes && s->reduces && !s->moving && percent(s, 85))
        s->kept[below(s, s->modes)] = 0;
    if (s->product) {
        s->kept[0] = s->kept[1] = 1;
        s->kept[2] = 0;
    }
    shuffle(s, order, s->modes);
    for (int i = 0; i < s->modes; i++) {
        int m = order[i], crowded = s->modes > 8 || (s->modes > 4 && percent(s, 40));
        int64_t most = i + 1 < s->modes && percent(s, 65) ? about_root(room) << below(s, 3) : room;
        s->size[m] = throw_size(s, crowded && room > 3 ? 3 : most < room ? most : room);
        room /= s->size[m];
    }
    if (s->plain && !s->moving && percent(s, 5))
        choose_long_rows(s);
    if (s->modes && percent(s, 2))
        s->size[below(s, s->modes)] = 0;
    for (int m = 0; m < s->modes; m++)
        if (s->kept[m] && s->output_rank < MF_MAX_RANK)
            s->output_mode[s->output_rank++] = m;
        else
            s->kept[m] = 0;
    if (percent(s, 40))
        shuffle(s, s->output_mode, s->output_rank);
    if (!s->reduces) /* more than MF_MAX_RANK modes cannot all be kept */
        s->modes = s->output_rank;
}

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
        int e = below(s, d + 1);
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
        int of = m < 2 ? m : percent(s, s->kept[m] ? 30 : 85) ? 2 : below(s, 2);
        for (int i = 0; i < 2; i++)
            if (of == 2 || of == i)
                add_plain(s, i, m);
    }
    for (int i = 0; i < 2; i++)
        if (percent(s, 60))
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
    int full = s->pair ? 2 : counts[below(s, 10)], extra = s->reduces && percent(s, 30) ? 1 + below(s, 2) : 0;
    s->operands = full + extra;
    for (int i = 0; i < s->operands; i++) {
        s->finish_only[i] = i >= full;
        for (int m = 0; m < s->modes; m++)
            if ((!s->finish_only[i] || s->kept[m]) && percent(s, i ? 60 : 88))
                add_plain(s, i, m);
    }
    for (int m = 0; m < s->modes; m++)
        for (int i = below(s, full), tries = 0; !s->has_plain[m] && tries < full; i = (i + 1) % full, tries++)
            add_plain(s, i, m);
    int twice = s->modes ? below(s, s->modes) : 0;
    if (s->modes && s->size[twice] < 300 && percent(s, 6)) /* a diagonal */
        add_plain(s, below(s, full), twice);
    for (int i = 0; i < s->operands; i++)
        if (percent(s, 35))
            shuffle_terms(s, i);
    for (int m = 0; m < s->modes; m++) /* with more than MF_MAX_RANK modes some may be in no operand */
        if (!s->has_plain[m])
            s->size[m] = 1;
}

/* Makes a plain dimension a window with a second mode, which may be one of the fold's or a new, reduced one. */
static void make_window(struct sketch *s, int i, int d)
{
    struct term *t = &s->term[i][d];
    int second = below(s, s->modes + 1);
    if (second == s->modes || second == t->mode[0] || (s->finish_only[i] && !s->kept[second])) {
        if (!s->reduces || s->finish_only[i] || s->modes + 1 >= SKETCH_MODES)
            return;
        second = s->modes++;
        s->size[second] = 1 + below(s, 4);
        s->kept[second] = s->has_plain[second] = 0;
    }
    t->parts = 2;
    t->mode[1] = second;
    t->coefficient[0] = percent(s, 30) ? 1 + below(s, 3) : 1;
    t->coefficient[1] = percent(s, 15) ? -1 - below(s, 2) : percent(s, 30) ? 1 + below(s, 3) : 1;
    t->offset = percent(s, 50) ? below(s, 5) - 3 : 0;
}

/* A window that moves by one element, of as many as kernels double: the folds of neighbours share their elements. */
static void make_moving(struct sketch *s)
{
    struct term *t = &s->term[0][s->rank[0] - 1];
    int second = s->modes++;
    s->size[second] = 2 << below(s, 7);
    s->kept[second] = s->has_plain[second] = 0;
    t->parts = 2;
    t->mode[1] = second;
    t->coefficient[0] = t->coefficient[1] = 1;
    s->has_plain[t->mode[0]] = 0;
}

static void choose_windows(struct sketch *s)
{
    if (s->moving)
        make_moving(s);
    if (!s->modes || s->plain || s->pair || !percent(s, s->product ? 8 : 18))
        return;
    for (int n = 1 + below(s, 2); n > 0; n--) {
        int i = below(s, s->operands);
        if (s->rank[i])
            make_window(s, i, below(s, s->rank[i]));
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
    int may_leave = s->reduces && !s->finish_only[i] && percent(s, 50);
    if (!may_leave) { /* moved inside */
        t->offset -= (int)low;
        return high - low + 1 + (percent(s, 20) ? below(s, 3) : 0);
    }
    int64_t extent = high + 1 - below(s, 4);
    int far = percent(s, 15) ? below(s, 61) - 30 : 0; /* so far that some outputs have no element inside */
    t->offset += far;
    if (low + far < 0 || extent <= high + far)
        s->checked[i] = 1;
    return extent > 0 ? extent : 1;
}

/* ---- layouts ---- */

/* Row-major, permuted, or anything; overlapping and broadcast strides only where that is allowed. */
static void choose_layout(struct sketch *s, struct problem_tensor *t, int is_output)
{
    int order[MF_MAX_RANK], wild = percent(s, 35);
    int64_t next = 1;
    problem_set_row_major(t);
    if (percent(s, 45) || !t->ndim)
        return;
    t->row_major = 0;
    for (int d = 0; d < t->ndim; d++)
        order[d] = t->ndim - 1 - d;
    if (percent(s, 60))
        shuffle(s, order, t->ndim);
    for (int i = 0; i < t->ndim; i++) {
        int d = order[i];
        int64_t step = wild && percent(s, 15) ? 2 + below(s, 2) : 1, stride = next * step;
        if (!is_output && wild && percent(s, 8)) {
            t->strides[d] = percent(s, 60) ? 0 : 1 + below(s, 3);
            continue;
        }
        if (t->shape[d] > 1)
            next = stride * t->shape[d] + (wild && percent(s, 20) ? below(s, 9) : 0);
        t->strides[d] = (wild && percent(s, 15) ? -1 : 1) * stride;
        if (t->shape[d] == 1 && wild)
            t->strides[d] = below(s, 1000) - 500;
    }
    problem_least_offset(t, &t->offset);
    if (percent(s, 35))
        t->offset += below(s, 10);
    if (problem_extent(t) > 4 * problem_elements(t) + 20000 || problem_extent(t) < 0)
        problem_set_row_major(t);
}

static DLDataType throw_type(struct sketch *s)
{
    int any = below(s, list_type_count() * 2);
    DLDataType f32 = mf_dtype(MF_F32), f64 = mf_dtype(MF_F64);
    return any < list_type_count() ? list_type(any) : percent(s, 70) ? f32 : f64;
}

static void set_type(struct problem_tensor *t, DLDataType dtype)
{
    t->dtype = dtype;
    t->item = dtype.bits / 8;
}

static void choose_inputs(struct sketch *s)
{
    DLDataType same = s->pair && percent(s, 50) ? mf_dtype(percent(s, 50) ? MF_F32 : MF_F64) : throw_type(s);
    static const mf_type narrow[4] = {MF_I8, MF_U8, MF_F16, MF_BF16};
    int mixed = !s->pair && percent(s, 40);
    if (s->moving && percent(s, 60)) /* which have ways of their own */
        same = mf_dtype(narrow[below(s, 4)]);
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
    if (s->pair)
        return s->line->tensor[0].dtype;
    if (percent(s, 35))
        return throw_type(s);
    if (percent(s, 40))
        return s->line->tensor[0].dtype;
    return mf_dtype(kind == KIND_FLOAT ? floats[below(s, 4)] : kind == KIND_TRUTH ? MF_BOOL : integers[below(s, 4)]);
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
    if (k == 0 && percent(s, s->reduces ? 25 : 15) && place_on_operand(s, t, below(s, s->operands)))
        return;
    choose_layout(s, t, 1);
    const struct problem_tensor *first = &s->line->tensor[MF_MAX_INPUTS];
    if (k == 1 && first->memory == MF_MAX_INPUTS && first->ndim && percent(s, 10)) { /* two outputs take turns */
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
    snprintf(s->line->expression, sizeof s->line->expression, "%s", forms[below(s, 10)]);
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
             real ? floats[below(s, sizeof floats / sizeof floats[0])]
                  : integers[below(s, sizeof integers / sizeof integers[0])]);
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
    int count = counts[below(s, 12)];
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
    s->line->data = percent(s, 3) ? VALUES_ones : kinds[below(s, 12)];
    s->line->order = percent(s, 12) ? MF_ORDER_AS_WRITTEN : 0;
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
    choose_modes(&s);
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
