/* Operations given as text against callbacks that do the same, bit for bit: ordered and not, one and several reduced
 * modes, windows, empty folds, every solver; and every sentence about a text that is wrong. */
#include "check.h"

#include <math.h>
#include <modefold.h>

static mf_device *cpu;

/* ---- pairs: a text, and callbacks ---- */

/* Callbacks on blocks of a function of one element, one of two states, and one of a state. */
#define CALLBACKS(name, number, parts, results)                                                                   \
    struct name {                                                                                                 \
        number v[parts];                                                                                          \
    };                                                                                                            \
    static struct name name##_neutral(void);                                                                      \
    static struct name name##_of_one(const number *x);                                                            \
    static struct name name##_of_two(struct name a, struct name b);                                               \
    static void name##_results(struct name s, number *y);                                                         \
    static void name##_identity(void *context, int64_t n, void *states)                                           \
    {                                                                                                             \
        (void)context;                                                                                            \
        for (int64_t i = 0; i < n; i++)                                                                           \
            ((struct name *)states)[i] = name##_neutral();                                                        \
    }                                                                                                             \
    static void name##_lift(void *context, int64_t n, const void *const *values, void *states)                    \
    {                                                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                         \
            number x[8] = {0};                                                                                    \
            for (int k = 0; k < *(int *)context; k++)                                                             \
                x[k] = ((const number *)values[k])[i];                                                            \
            ((struct name *)states)[i] = name##_of_one(x);                                                        \
        }                                                                                                         \
    }                                                                                                             \
    static void name##_combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right,      \
                               int64_t right_stride)                                                              \
    {                                                                                                             \
        (void)context;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                         \
            struct name *l = (struct name *)(void *)((char *)left + i * left_stride);                             \
            *l = name##_of_two(*l, *(const struct name *)(const void *)((const char *)right + i * right_stride)); \
        }                                                                                                         \
    }                                                                                                             \
    static void name##_finish(void *context, int64_t n, const void *states, void *const *y)                       \
    {                                                                                                             \
        (void)context;                                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                                         \
            number all[results];                                                                                  \
            name##_results(((const struct name *)states)[i], all);                                                \
            for (int k = 0; k < (results); k++)                                                                   \
                ((number *)y[k])[i] = all[k];                                                                     \
        }                                                                                                         \
    }

/* x -> p x + q, the left map first. */
CALLBACKS(affine, double, 2, 2)
#define AFFINE                                                                                                       \
    "f64 ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t; combine p = p1*p2, q = q1*p2 + q2; finish " \
    "q, p"
static struct affine affine_neutral(void)
{
    return (struct affine){{1, 0}};
}
static struct affine affine_of_one(const double *x)
{
    return (struct affine){{x[0], x[1]}};
}
static struct affine affine_of_two(struct affine a, struct affine b)
{
    return (struct affine){{a.v[0] * b.v[0], a.v[1] * b.v[0] + b.v[1]}};
}
static void affine_results(struct affine s, double *y)
{
    y[0] = s.v[1];
    y[1] = s.v[0];
}

/* 2 x 2 matrices of integers modulo 2^64; without finish. */
CALLBACKS(product, uint64_t, 4, 4)
#define PRODUCT                                                                                                     \
    "ordered u64 product(x, y, z, w): identity a = 1, b = 0, c = 0, d = 1;\n\tlift a = x, b = y, c = z, d = w;\n\t" \
    "combine a = a1*a2 + b1*c2, b = a1*b2 + b1*d2, c = c1*a2 + d1*c2, d = c1*b2 + d1*d2;"
static struct product product_neutral(void)
{
    return (struct product){{1, 0, 0, 1}};
}
static struct product product_of_one(const uint64_t *x)
{
    return (struct product){{x[0], x[1], x[2], x[3]}};
}
static struct product product_of_two(struct product a, struct product b)
{
    return (struct product){{a.v[0] * b.v[0] + a.v[1] * b.v[2], a.v[0] * b.v[1] + a.v[1] * b.v[3],
                             a.v[2] * b.v[0] + a.v[3] * b.v[2], a.v[2] * b.v[1] + a.v[3] * b.v[3]}};
}
static void product_results(struct product s, uint64_t *y)
{
    memcpy(y, s.v, sizeof s.v);
}

/* Welford's numbers, merged as Chan, Golub and LeVeque do; a name of a step's own, and a new value that is used. */
CALLBACKS(spread, float, 3, 2)
#define SPREAD                                                                                                       \
    "spread(x): identity n = 0, m = 0, s = 0; lift n = 1, m = x, s = 0; combine d = m2 - m1, n = n1 + n2, m = m1 + " \
    "d*(n2/max(n,1)), s = s1 + s2 + d*d*(n1*n2/max(n,1)); finish v = s/n, m, sqrt(v)"
static struct spread spread_neutral(void)
{
    return (struct spread){{0, 0, 0}};
}
static struct spread spread_of_one(const float *x)
{
    return (struct spread){{1, x[0], 0}};
}
static struct spread spread_of_two(struct spread a, struct spread b)
{
    float d = b.v[1] - a.v[1], n = a.v[0] + b.v[0], least = n > 1 ? n : 1;
    return (struct spread){{n, a.v[1] + d * (b.v[0] / least), a.v[2] + b.v[2] + d * d * (a.v[0] * b.v[0] / least)}};
}
static void spread_results(struct spread s, float *y)
{
    y[0] = s.v[1];
    y[1] = sqrtf(s.v[2] / s.v[0]);
}

/* The last greatest element and its weight; i64, comparisons as numbers. */
CALLBACKS(peak, int64_t, 2, 1)
#define PEAK                                                                                                         \
    "i64 ordered peak(x, w): identity t = 0 - 100000, u = 7; lift t = x, u = w; combine r = t2 >= t1, t = where(r, " \
    "t2, t1), u = where(r, u2, u1); finish (t*1000 + u) | 1"
static struct peak peak_neutral(void)
{
    return (struct peak){{-100000, 7}};
}
static struct peak peak_of_one(const int64_t *x)
{
    return (struct peak){{x[0], x[1]}};
}
static struct peak peak_of_two(struct peak a, struct peak b)
{
    return b.v[0] >= a.v[0] ? b : a;
}
static void peak_results(struct peak s, int64_t *y)
{
    y[0] = (s.v[0] * 1000 + s.v[1]) | 1;
}

static int counts[] = {1, 2, 4};
#define OPERATION(op, inputs, outputs, type, parts, any_order)                                                    \
    {                                                                                                             \
        .name = #op "_", .input_count = inputs, .output_count = outputs, .input_type = type, .output_type = type, \
        .state_size = sizeof(struct op), .commutative = any_order, .identity = op##_identity, .lift = op##_lift,  \
        .combine = op##_combine, .finish = op##_finish, .context = &counts[(inputs) / 2]                          \
    }

static const struct {
    const char *text;
    mf_operation is;
} pairs[] = {
    {AFFINE, OPERATION(affine, 2, 2, MF_F64, 2, 0)},
    {PRODUCT, OPERATION(product, 4, 4, MF_U64, 4, 0)},
    {SPREAD, OPERATION(spread, 1, 2, MF_F32, 3, 1)},
    {PEAK, OPERATION(peak, 2, 1, MF_I64, 2, 0)},
};

/* ---- comparing ---- */

enum { N = 1 << 15 };
static float a[N], b[N];
static int32_t c[N], d[N];

static void fill(void)
{
    for (int i = 0; i < N; i++) {
        a[i] = 1 + (float)(i * 31 % 97 - 48) / 1024;
        b[i] = (float)(i * 37 % 101) / 3;
        c[i] = i * 29 % 53 - 20;
        d[i] = i % 11;
    }
    a[77] = 0;
    b[99] = -0.0f;
}

/* The expression with the callbacks' names: name( becomes name_(, name.1( name_.1(. */
static void with_callbacks(const char *expression, char *to)
{
    for (const char *at = expression; *at;) {
        size_t skip = 1;
        for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
            size_t n = strlen(pairs[p].is.name) - 1;
            if (!strncmp(at, pairs[p].is.name, n) && (at[n] == '(' || at[n] == '.')) {
                memcpy(to, pairs[p].is.name, n + 1);
                to += n + 1;
                at += skip = n;
                break;
            }
        }
        if (skip == 1)
            *to++ = *at++;
    }
    *to = 0;
}

/* Both, under the reference and the library's own choice, on tensors of this shape: all outputs of type f64. */
static void compare(const char *modes, const char *expression, int rank, const int64_t *shape, const int64_t *strides)
{
    static double y[4][4][4096];
    char callbacks[512];
    int64_t kept[MF_MAX_RANK], bytes = 8;
    int ndim, results = mf_expression_outputs(expression);
    DLTensor in[4] = {mf_tensor(a, MF_F32, rank, shape), mf_tensor(b, MF_F32, rank, shape),
                      mf_tensor(c, MF_I32, rank, shape), mf_tensor(d, MF_I32, rank, shape)};
    int64_t own[MF_MAX_RANK] = {0};
    for (int i = 0; i < rank && strides; i++)
        own[i] = strides[i];
    for (int i = 0; i < 4 && strides; i++)
        in[i].strides = own;
    if (!CHECK_MSG(mf_fold_shape(modes, mf_modes_inputs(modes), in, &ndim, kept) == MF_OK, "%s: %s", modes, mf_error()))
        return;
    for (int i = 0; i < ndim; i++)
        bytes *= kept[i];
    with_callbacks(expression, callbacks);
    for (int run = 0; run < 4; run++) {
        const mf_options options = {run % 2 ? "reference" : NULL, 0, 0};
        DLTensor out[4];
        const void *inputs[4] = {a, b, c, d};
        void *outputs[4];
        mf_plan *plan;
        for (int k = 0; k < results; k++) {
            outputs[k] = y[run][k];
            out[k] = mf_tensor(outputs[k], MF_F64, ndim, kept);
        }
        if (!CHECK_MSG(mf_plan_create(cpu, modes, run < 2 ? expression : callbacks, in, out, &options, &plan) == MF_OK,
                       "%s %s: %s", modes, expression, mf_error()))
            return;
        CHECK_MSG(mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK, "%s", mf_error());
        mf_plan_destroy(plan);
        for (int k = 0; k < results; k++)
            CHECK_MSG(!memcmp(y[0][k], y[run][k], (size_t)bytes), "%s %s, result %d: %.17g and %.17g in run %d", modes,
                      expression, k, y[0][k][0], y[run][k][0], run);
    }
}

static const char *const expressions[] = {
    "affine(a,b); affine.1(a,b)*2",
    "product(c,d,1,c); product.1(c,d,1,c); product.2(c,d,1,c); product.3(c,d,1,c)",
    "spread(b*a); spread.1(a-b)",
    "peak(c,d); sum(a)",
};

static void test_lengths(void)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 127, 128, 129, 1000, 4095, 4096, 4097, 10000, 8192 + 129};
    for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++)
        for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
            compare("i,i,i,i->", expressions[e], 1, &lengths[l], NULL);
}

static void test_modes(void)
{
    const int64_t shape[3] = {23, 11, 19}, turned[3] = {1, 23, 253}, empty[3] = {3, 0, 2}, none[3] = {0, 5, 2};
    for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++) {
        compare("ijk,ijk,ijk,ijk->j", expressions[e], 3, shape, NULL);
        compare("ijk,ijk,ijk,ijk->ik", expressions[e], 3, shape, NULL);
        compare("ijk,ijk,ijk,ijk->j", expressions[e], 3, shape, turned);
        compare("kji,kji,kji,kji->", expressions[e], 3, shape, turned);
        compare("ijk,ijk,ijk,ijk->ki", expressions[e], 3, empty, NULL);
        compare("ijk,ijk,ijk,ijk->ki", expressions[e], 3, none, NULL);
        compare("(2i+j-1)kl,(2i+j-1)kl,(2i+j-1)kl,(2i+j-1)kl->ik with j=5", expressions[e], 3, shape, NULL);
        compare("(i+j-7)(k+l),(i+j-7)(k+l),(i+j-7)(k+l),(i+j-7)(k+l)->ki with j=4,l=3", expressions[e], 2, shape, NULL);
    }
}

/* ---- against what is built in ---- */

/* Every type, numbers that a step converts (a comparison, a quotient, an infinity), a literal of each kind, casts. */
static void test_builtin(void)
{
    static const struct {
        const char *text, *mine, *builtin;
    } cases[] = {
        {"most(x): identity m = -inf; lift m = x; combine m = max(m1, m2); finish m + 0", "most(a)", "max(a)"},
        {"f64 least(x): identity m = inf; lift m = x; combine m = min(m1, m2); finish m + 0", "least(f64(a))",
         "min(f64(a))"},
        {"i64 most64(x): identity m = -inf; lift m = x; combine m = max(m1, m2)", "most64(c)", "max(i64(c))"},
        {"i64 some(x): identity s = 0; lift s = x > 30; combine s = s1 | s2; finish s > 0, s/2", "some(c)",
         "any(i64(c) > 30)"},
        {"u64 bits(x): identity s = 1/2; lift s = x; combine s = s1 ^ s2; finish b = popcount(s), b", "bits(c&d)",
         "popcount(xor(u64(c&d)))"},
        {"i64 halves(x): identity s = 0.9; lift s = x/2; combine s = s1 + s2", "halves(c)", "sum(i64(c/2))"},
        {"plus(x): identity s = 0; lift s = f16(x); combine s = s1 + s2; finish s + 0", "plus(a)", "sum(f32(f16(a)))"},
        {"ordered tops(x): identity s = 0; lift s = u8(x*1.5); combine s = max(s1, s2)", "tops(b)",
         "f32(max(u8(b*1.5)))"},
    };
    const int64_t shape[2] = {300, 100}, strides[2] = {1, 300};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double y[2][300];
        DLTensor in[4] = {mf_tensor(a, MF_F32, 2, shape), mf_tensor(b, MF_F32, 2, shape),
                          mf_tensor(c, MF_I32, 2, shape), mf_tensor(d, MF_I32, 2, shape)};
        int64_t own[2] = {strides[0], strides[1]};
        for (int k = 0; k < 4; k++)
            in[k].strides = own;
        CHECK_MSG(mf_operation_define_text(cpu, cases[i].text) == MF_OK, "%s: %s", cases[i].text, mf_error());
        for (int k = 0; k < 2; k++) {
            DLTensor out = mf_tensor(y[k], MF_F64, 1, shape);
            const char *expression = k ? cases[i].builtin : cases[i].mine;
            CHECK_MSG(mf_fold(cpu, "ij,ij,ij,ij->i", expression, in, &out) == MF_OK, "%s: %s", expression, mf_error());
        }
        CHECK_MSG(!memcmp(y[0], y[1], sizeof y[0]), "%s and %s: %g and %g", cases[i].mine, cases[i].builtin, y[0][0],
                  y[1][0]);
    }
}

/* ---- what is wrong ---- */

static void test_mistakes(void)
{
    static const struct {
        const char *text, *fact;
        mf_status status;
    } cases[] = {
        {"", "expected the operation's name at character 1, found the end", MF_ERROR_EXPRESSION},
        {"f16 two(x): identity p = 0; lift p = x; combine p = p1", "its type is f16", MF_ERROR_TYPE},
        {"two: identity p = 0", "expected '(' at character 4, found ':'", MF_ERROR_EXPRESSION},
        {"two(): identity p = 0", "an argument's name at character 5, found ')'", MF_ERROR_EXPRESSION},
        {"two(x y): identity p = 0", "',' or ')' at character 7, found 'y'", MF_ERROR_EXPRESSION},
        {"two(x,x): identity p = 0", "two \"x\"", MF_ERROR_EXPRESSION},
        {"two(a,b,c,d,e,f,g,h,i): identity p = 0", "more than 8 arguments", MF_ERROR_EXPRESSION},
        {"two(exp): identity p = 0", "\"exp\" is the name of something", MF_ERROR_EXPRESSION},
        {"two(x) identity p = 0", "expected ':'", MF_ERROR_EXPRESSION},
        {"two(x): p = 0", "expected \"identity\" at character 9, found 'p'", MF_ERROR_EXPRESSION},
        {"two(x): identity 7", "expected a name at character 18, found '7'", MF_ERROR_EXPRESSION},
        {"two(x): identity p", "expected '=' at character 19, found the end", MF_ERROR_EXPRESSION},
        {"two(x): identity p = x", "identity uses \"x\" and has numbers only", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0, p = 1", "two \"p\"", MF_ERROR_EXPRESSION},
        {"two(x): identity inf = 0", "\"inf\" is the name", MF_ERROR_EXPRESSION},
        {"two(x): identity a=0, b=0, c=0, d=0, e=0, f=0, g=0, h=0, i=0; lift", "states of more than 8 numbers",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0 lift p = x", "expected ',' or ';'", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; combine p = p1", "expected \"lift\"", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x + y", "lift uses \"y\" and can use x", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0, q = 0; lift p = x; combine p = p1", "identity sets \"q\" and lift does not",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x, p = 2*x; combine p = p1", "lift sets \"p\" twice", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x", "expected ',' or ';' at character 35, found the end",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine q = p1", "identity sets \"p\" and combine does not",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p + p2", "combine uses \"p\" and can use p1, p2",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = sum(p1)", "sum stands inside reducer two",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = affine(p1, p2)", "no operation \"affine\"",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1 & p2", "and works on integers", MF_ERROR_TYPE},
        {"two(x): identity p = 0; lift p = x; combine p = (p1", "expected ')'", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1 p2", "expected ',' or ';'", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1; result p", "expected \"finish\"", MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1; finish q = p", "finish has no result",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1; finish p1", "finish uses \"p1\" and can use p",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1; finish p,p,p,p,p,p,p,p,p", "more than 8 results",
         MF_ERROR_EXPRESSION},
        {"two(x): identity p = 0; lift p = x; combine p = p1; finish p; p", "expected ',' or the end",
         MF_ERROR_EXPRESSION},
        {"t(x): identity p = 0; lift p = x; combine p = p1", "1 to 62 letters", MF_ERROR_ARGUMENT},
        {"sum(x): identity p = 0; lift p = x; combine p = p1", "built-in", MF_ERROR_ARGUMENT},
        {"affine(x): identity p = 0; lift p = x; combine p = p1", "defined already", MF_ERROR_ARGUMENT},
        {"affine_(x): identity p = 0; lift p = x; combine p = p1", "defined already", MF_ERROR_ARGUMENT},
        {"two(\xc3): identity p = 0", "found byte 0xc3", MF_ERROR_EXPRESSION},
        {"a123456789012345678901234567890123456789012345678901234567890123(x): identity p = 0",
         "has more than 62 characters", MF_ERROR_EXPRESSION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        mf_status status = mf_operation_define_text(cpu, cases[i].text);
        CHECK_MSG(status == cases[i].status && strstr(mf_error(), cases[i].fact), "%s: %s \"%s\"", cases[i].text,
                  mf_status_name(status), mf_error());
    }
    CHECK(mf_operation_define_text(NULL, AFFINE) == MF_ERROR_ARGUMENT && strstr(mf_error(), "device"));
    CHECK(mf_operation_define_text(cpu, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "text"));
    CHECK(mf_operation_define_text(cpu, AFFINE) == MF_OK); /* the same once more */
    DLTensor in = mf_tensor(a, MF_F32, 0, NULL), out = mf_tensor(b, MF_F32, 0, NULL);
    CHECK(mf_fold(cpu, "->", "two(a)", &in, &out) == MF_ERROR_EXPRESSION); /* none of them was kept */
}

/* A step may have 64 names, and an expression 256 steps. */
static void test_limits(void)
{
    char text[8192];
    for (int count = 61; count <= 65; count++) {
        int n = snprintf(text, sizeof text, "many%d(x): identity p = 0; lift ", count);
        for (int i = 0; i < count; i++)
            n += snprintf(text + n, sizeof text - (size_t)n, "v%d = x + %d, ", i, i);
        snprintf(text + n, sizeof text - (size_t)n, "p = v3; combine p = p1 + p2");
        mf_status status = mf_operation_define_text(cpu, text);
        CHECK_MSG(count < 63 ? status == MF_OK : status == MF_ERROR_EXPRESSION && strstr(mf_error(), "64 names"),
                  "%d names: %s", count, mf_error());
    }
    int n = snprintf(text, sizeof text, "long_one(x): identity p = 0; lift p = x");
    for (int i = 0; i < 260; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, " + %d", i + 2);
    snprintf(text + n, sizeof text - (size_t)n, "; combine p = p1 + p2");
    CHECK(mf_operation_define_text(cpu, text) == MF_ERROR_EXPRESSION && strstr(mf_error(), "256 steps"));
}

int main(void)
{
    if (mf_device_open("cpu:3", &cpu) != MF_OK)
        return 1;
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
        CHECK_MSG(mf_operation_define(cpu, &pairs[p].is) == MF_OK, "%s", mf_error());
        CHECK_MSG(mf_operation_define_text(cpu, pairs[p].text) == MF_OK, "%s", mf_error());
    }
    fill();
    test_lengths();
    test_modes();
    test_builtin();
    test_mistakes();
    test_limits();
    mf_device_close(cpu);
    return check_done("test_user_text");
}
