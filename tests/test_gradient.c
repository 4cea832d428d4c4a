/* mf_plan_gradient against plain loops over every term in double: reducers, arguments, batches, broadcasts, strides and
 * types. Ties, windows and mistakes are in test_gradient_edges, log-space data in test_gradient_log. */
#include "check.h"

#include <float.h>
#include <math.h>
#include <stddef.h>

#include "modefold.h"
#include "scalar.h"

static mf_device *cpu;
static uint64_t state = 1;

static int64_t random_below(int64_t n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(state >> 33) % n;
}

/* ---- tensors by letters ---- */

enum { MODES_MOST = 6, ELEMENTS_MOST = 1 << 16, TENSORS = 6 };

static int64_t size_of_letter[256];

struct tensor {
    char letters[MODES_MOST + 1];
    mf_type type;
    enum dtype dtype;
    int64_t shape[MODES_MOST], strides[MODES_MOST], base;
    DLTensor tensor;
    _Alignas(16) char memory[ELEMENTS_MOST * 8];
};

static struct tensor tensors[TENSORS];

enum style { PLAIN, TRANSPOSED, REVERSED, PADDED, REPEATED, STYLES };

/* Of the letters' sizes, with strides of some style; the values are whole sixteenths, so that ties happen. */
static struct tensor *make_tensor(int number, const char *letters, mf_type type, enum style style)
{
    struct tensor *t = &tensors[number];
    const int rank = (int)strlen(letters);
    int64_t count = 1;
    memset(t, 0, offsetof(struct tensor, memory));
    strcpy(t->letters, letters);
    t->type = type;
    t->dtype = (enum dtype)mf_dtype_find(mf_dtype(type));
    for (int q = 0; q < rank; q++) {
        const int d = style == TRANSPOSED ? q : rank - 1 - q;
        t->shape[d] = size_of_letter[(unsigned char)letters[d]];
        t->strides[d] = style == REPEATED && !q ? 0 : style == REVERSED ? -count : style == PADDED ? 2 * count : count;
        t->base += t->strides[d] < 0 ? -t->strides[d] * (t->shape[d] - 1) : 0;
        count *= t->shape[d];
    }
    const int64_t item = mf_dtypes[t->dtype].size;
    t->tensor = mf_tensor(t->memory, type, rank, t->shape);
    t->tensor.strides = t->strides;
    t->tensor.byte_offset = (uint64_t)((t->base > 0 ? t->base : 0) * item);
    for (int64_t i = 0; i < 2 * count; i++)
        mf_value_store(t->dtype, CLS_F64, (union value){.f64 = (double)(random_below(65) - 32) / 16},
                       t->memory + i * item);
    return t;
}

static char *element(const struct tensor *t, const int64_t *position)
{
    int64_t at = 0;
    for (int d = 0; t->letters[d]; d++)
        at += t->strides[d] * position[(unsigned char)t->letters[d]];
    return (char *)t->tensor.data + t->tensor.byte_offset + at * mf_dtypes[t->dtype].size;
}

static double get(const struct tensor *t, const int64_t *position)
{
    const union value value = mf_value_load(t->dtype, element(t, position));
    return mf_value_convert(mf_dtypes[t->dtype].cls, CLS_F64, value).f64;
}

/* ---- the formula in double ---- */

struct forward {
    const char *reducer;
    char op; /* 0: one operand */
    const char *letters[2], *output;
    int operands; /* in the modes string */
};

enum { A, B, OUT, GIVEN, GA, GB };
static double exact[2][ELEMENTS_MOST], bound[2][ELEMENTS_MOST];
static char kept[MODES_MOST + 1], reduced[MODES_MOST + 1];

/* The letters of the output; the others in the order of their first appearance. */
static void find_letters(const struct forward *fold)
{
    memset(reduced, 0, sizeof reduced);
    strcpy(kept, fold->output);
    for (int f = 0; f < fold->operands; f++)
        for (const char *c = fold->letters[f]; *c; c++)
            if (!strchr(kept, *c) && !strchr(reduced, *c))
                reduced[strlen(reduced)] = *c;
}

/* The next position of these letters; 0 after the last one. */
static int advance(const char *letters, int64_t *position)
{
    for (int l = (int)strlen(letters) - 1; l >= 0; l--) {
        int64_t *p = &position[(unsigned char)letters[l]];
        if (++*p < size_of_letter[(unsigned char)letters[l]])
            return 1;
        *p = 0;
    }
    return 0;
}

static int64_t flat(const char *letters, const int64_t *position)
{
    int64_t at = 0;
    for (; *letters; letters++)
        at = at * size_of_letter[(unsigned char)*letters] + position[(unsigned char)*letters];
    return at;
}

static double argument(const struct forward *fold, const int64_t *position)
{
    const double x = get(&tensors[A], position), y = fold->op ? get(&tensors[B], position) : 0;
    return fold->op == '*' ? x * y : fold->op == '-' ? x - y : x + y;
}

/* One output's terms: what weighs how much. most: where the first winner is. */
static void add_terms(const struct forward *fold, int64_t *position, double out, int64_t winner, double unit,
                      double terms)
{
    const double d = get(&tensors[GIVEN], position);
    const char kind = fold->reducer[0] == 'm' ? fold->reducer[1] : fold->reducer[0]; /* s, l; e, a, i of m... */
    int64_t number = 0;
    do {
        const double p = kind == 'l'                  ? exp(argument(fold, position) - out)
                         : kind == 'a' || kind == 'i' ? (double)(number == winner)
                         : kind == 'e'                ? 1 / terms
                                                      : 1;
        for (int f = 0; f < 1 + (fold->op != 0); f++) {
            const int64_t at = flat(fold->letters[f], position);
            const double slope = fold->op == '*' ? get(&tensors[!f], position) : fold->op == '-' && f ? -1 : 1;
            if (p != 0 && !(fabs(out) == INFINITY)) {
                exact[f][at] += d * p * slope;
                bound[f][at] += fabs(d * p * slope) * (kind == 'l' ? unit * 200 : unit * 40);
            }
        }
        number++;
    } while (advance(reduced, position));
}

static void compute(const struct forward *fold, double unit)
{
    int64_t position[256] = {0};
    double terms = 1;
    for (const char *c = reduced; *c; c++)
        terms *= (double)size_of_letter[(unsigned char)*c];
    for (int f = 0; f < fold->operands; f++) {
        int64_t count = 1;
        for (const char *c = fold->letters[f]; *c; c++)
            count *= size_of_letter[(unsigned char)*c];
        memset(exact[f], 0, sizeof **exact * (size_t)count);
        memset(bound[f], 0, sizeof **bound * (size_t)count);
    }
    do {
        double most = -INFINITY, sum = 0;
        int64_t number = 0, winner = -1;
        const double sign = !strcmp(fold->reducer, "min") ? -1 : 1;
        do {
            const double x = sign * argument(fold, position);
            if (winner < 0 || x > most) {
                most = x;
                winner = number;
            }
            number++;
        } while (advance(reduced, position));
        do
            sum += exp(argument(fold, position) - most);
        while (advance(reduced, position));
        const double out = !strcmp(fold->reducer, "logsumexp") ? (isinf(most) ? most : most + log(sum)) : sign * most;
        add_terms(fold, position,
                  isinf(out) && strchr("ml", fold->reducer[0]) ? out
                  : isinf(out)                                 ? 0
                                                               : out,
                  winner, unit, terms);
    } while (advance(kept, position));
}

/* ---- one fold ---- */

static void join(const struct forward *fold, char *modes, char *expression)
{
    sprintf(modes, fold->operands > 1 ? "%s,%s->%s" : "%s%s->%s", fold->letters[0],
            fold->operands > 1 ? fold->letters[1] : "", fold->output);
    if (fold->op)
        sprintf(expression, "%s(a%cb)", fold->reducer, fold->op);
    else
        sprintf(expression, "%s(a)", fold->reducer);
}

static mf_status run(const struct forward *fold, const char *solver, int want, int flags)
{
    char modes[32], expression[32];
    const mf_options options = {solver, (uint32_t)flags, 0};
    DLTensor inputs[2] = {tensors[A].tensor, tensors[B].tensor}, gradients[2];
    mf_plan *plan = NULL;
    memset(gradients, 0, sizeof gradients);
    join(fold, modes, expression);
    for (int f = 0; f < 2; f++)
        if (want >> f & 1)
            gradients[f] = tensors[GA + f].tensor;
    mf_status status = mf_fold(cpu, modes, expression, inputs, &tensors[OUT].tensor);
    if (status == MF_OK)
        status = mf_plan_gradient(cpu, modes, expression, inputs, &tensors[OUT].tensor, &tensors[GIVEN].tensor,
                                  gradients, &options, &plan);
    if (status == MF_OK) {
        DLTensor from[4], to[2];
        int n = 0, m = 0;
        for (int i = 0; i < fold->operands; i++)
            from[n++] = inputs[i];
        from[n++] = tensors[OUT].tensor;
        from[n++] = tensors[GIVEN].tensor;
        for (int f = 0; f < 2; f++)
            if (want >> f & 1)
                to[m++] = gradients[f];
        status = mf_plan_execute_tensors(plan, from, to, NULL);
    }
    mf_plan_destroy(plan);
    return status;
}

static void compare(const struct forward *fold, int f, double unit, const char *what)
{
    int64_t position[256] = {0};
    int wrong = 0;
    double worst = 0;
    if (strchr(fold->letters[f], 'z') && !size_of_letter['z']) /* nothing there */
        return;
    do {
        const int64_t at = flat(fold->letters[f], position);
        const double got = get(&tensors[GA + f], position);
        const double error = fabs(got - exact[f][at]);
        const double most = bound[f][at] + unit * fmax(fabs(exact[f][at]), tensors[GA].type == MF_F16 ? 0x1p-14 : 0);
        wrong += !(error <= most);
        worst = fmax(worst, error);
    } while (advance(fold->letters[f], position));
    CHECK_MSG(!wrong, "%s: %d elements of gradient %d are wrong, by up to %g", what, wrong, f, worst);
}

static void test_fold(const struct forward *fold, mf_type type, mf_type gradient_type, enum style style, int inf)
{
    const double unit = type == MF_F64 ? 0x1p-53 : 0x1p-24;
    const double unit_out = gradient_type == MF_F16 ? 0x1p-10 : gradient_type == MF_F64 ? 0x1p-53 : 0x1p-24;
    char modes[32], expression[32], what[128];
    int64_t position[256] = {0};
    join(fold, modes, expression);
    find_letters(fold);
    for (int f = 0; f < fold->operands; f++)
        make_tensor(A + f, fold->letters[f], type, style);
    make_tensor(OUT, fold->output, type, style == REPEATED ? PLAIN : style);
    make_tensor(GIVEN, fold->output, gradient_type, style == REVERSED ? PADDED : style);
    if (inf) /* whole rows of -inf, and some elements */
        do
            if (!position[(unsigned char)fold->letters[0][0]] || !random_below(5))
                mf_value_store(tensors[A].dtype, CLS_F64, (union value){.f64 = -INFINITY},
                               element(&tensors[A], position));
        while (advance(fold->letters[0], position));
    if (size_of_letter['z'] || !strchr(modes, 'z'))
        compute(fold, unit);
    else
        memset(exact, 0, sizeof exact);
    for (int want = 1; want < (fold->op ? 4 : 2); want++)
        for (int s = 0; s < (fold->reducer[0] == 'l' ? 2 : 1); s++) {
            for (int f = 0; f < fold->operands; f++)
                make_tensor(GA + f, fold->letters[f], gradient_type, style == REPEATED ? TRANSPOSED : style);
            snprintf(what, sizeof what, "%s %s %s style %d inf %d want %d solver %d", modes, expression,
                     mf_type_name(mf_dtype(type)), (int)style, inf, want, s);
            if (!CHECK_MSG(run(fold, s ? "gradient-exact" : NULL, want, want == 3 ? MF_ORDER_AS_WRITTEN : 0) == MF_OK,
                           "%s: %s", what, mf_error()))
                continue;
            for (int f = 0; f < 2; f++)
                if (want >> f & 1)
                    compare(fold, f, unit_out, what);
        }
}

static void set_sizes(const char *text)
{
    for (; *text; text += 2 + (text[2] == ' '))
        size_of_letter[(unsigned char)text[0]] = text[1] - '0';
}

static void test_folds(void)
{
    static const char *const reducers[] = {"sum", "mean", "logsumexp", "max", "min"};
    static const char *const forms[][3] = {
        {"ik", "kj", "ij"}, {"bik", "bkj", "bij"}, {"ik", "jk", "ji"}, {"ikl", "kj", "ij"}, {"ik", "kjl", "jil"},
        {"ik", "k", "i"},   {"k", "ik", "i"},      {"ij", "ij", "ij"}, {"i", "j", "ij"},    {"i", "kj", "ij"},
        {"k", "l", ""},     {"kl", "kl", "l"},     {"i", "j", ""},     {"ki", "ib", "b"},
    };
    set_sizes("i7 j9 k8 l3 b2");
    size_of_letter['k'] = 21;
    for (size_t r = 0; r < 5; r++)
        for (size_t c = 0; c < sizeof forms / sizeof forms[0]; c++)
            for (int op = 0; op < 3; op++)
                for (int q = 0; q < 6; q++) {
                    const struct forward fold = {reducers[r], "+-*" [op], { forms[c][0], forms[c][1] }, forms[c][2], 2};
                    static const mf_type types[][2] = {
                        {MF_F32, MF_F32}, {MF_F32, MF_F64}, {MF_F64, MF_F64}, {MF_F64, MF_F32}, {MF_F32, MF_F16}};
                    const int t = q < 2 ? 0 : q - 1, style = (int)random_below(STYLES);
                    /* an infinity in a product is more than these loops know */
                    test_fold(&fold, types[t][0], types[t][1], q ? (enum style)style : PLAIN,
                              op == 0 && q == 1 && strchr("lm", reducers[r][0]) && reducers[r][1] != 'e' &&
                                  reducers[r][1] != 'i');
                }
}

/* One operand, kept modes that it has not, and sizes of 0. */
static void test_single(void)
{
    static const char *const reducers[] = {"sum", "mean", "logsumexp", "max", "min"};
    static const char *const forms[][2] = {{"ik", "i"}, {"ik", "k"}, {"ik", ""}, {"ik", "ki"}, {"kli", "il"}};
    set_sizes("i7 j9 k8 l3 b2");
    for (size_t r = 0; r < 5; r++)
        for (size_t c = 0; c < sizeof forms / sizeof forms[0]; c++)
            for (int style = 0; style < STYLES; style++) {
                const struct forward fold = {reducers[r], 0, {forms[c][0], ""}, forms[c][1], 1};
                test_fold(&fold, MF_F32, MF_F32, (enum style)style, 0);
            }
    for (size_t r = 0; r < 5; r++) {
        const struct forward nothing = {reducers[r], '+', {"iz", "jz"}, "ij", 2},
                             one = {reducers[r], '*', {"iz", "j"}, "ij", 2};
        if (!strcmp(reducers[r], "mean")) /* of nothing, an error */
            continue;
        test_fold(&nothing, MF_F32, MF_F32, PLAIN, 0);
        test_fold(&one, MF_F64, MF_F32, PLAIN, 0);
    }
}

/* Longer sums, with several threads, and outputs that the first products leave for the second. */
static void test_long(void)
{
    size_of_letter['i'] = 65;
    size_of_letter['j'] = 90;
    size_of_letter['k'] = 500;
    const struct forward folds[] = {{"sum", '*', {"ik", "kj"}, "ij", 2},
                                    {"logsumexp", '+', {"ik", "kj"}, "ij", 2},
                                    {"max", '+', {"ik", "kj"}, "ij", 2}};
    for (int c = 0; c < 3; c++)
        for (int style = 0; style < PADDED; style++)
            test_fold(&folds[c], MF_F32, MF_F32, (enum style)style, 0);
}

int main(void)
{
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gradient");
    test_folds();
    test_single();
    test_long();
    mf_device_close(cpu);
    return check_done("test_gradient");
}
