/* mf_plan_gradient at its edges: ties, windows and diagonals by hand, and every mistake that it can be told. */
#include "check.h"

#include <math.h>

#include "modefold.h"

static mf_device *cpu;

/* ---- winners by hand: ties, windows, diagonals ---- */

static mf_status backward(const char *modes, const char *expression, const DLTensor *inputs, int input_count,
                          const DLTensor *out, const DLTensor *given, const DLTensor *gradients)
{
    const void *from[6];
    void *to[4];
    mf_plan *plan = NULL;
    int n = 0;
    mf_status status = mf_fold(cpu, modes, expression, inputs, out);
    if (status == MF_OK)
        status = mf_plan_gradient(cpu, modes, expression, inputs, out, given, gradients, NULL, &plan);
    for (int i = 0; i < input_count; i++) {
        from[i] = inputs[i].data;
        if (gradients[i].dtype.bits)
            to[n++] = gradients[i].data;
    }
    from[input_count] = out->data;
    from[input_count + 1] = given->data;
    if (status == MF_OK)
        status = mf_plan_execute(plan, from, to, NULL);
    mf_plan_destroy(plan);
    return status;
}

static void test_ties(void)
{
    float a[2][3] = {{1, 5, 5}, {2, 2, 2}}, d[2] = {10, 20}, o[2], g[2][3], b[3][2] = {{9, 1}, {5, 5}, {5, 1}},
          gb[3][2];
    const int64_t as[] = {2, 3}, os[] = {2}, bs[] = {3, 2};
    const DLTensor in[2] = {mf_tensor(a, MF_F32, 2, as), mf_tensor(b, MF_F32, 2, bs)},
                   out = mf_tensor(o, MF_F32, 1, os), given = mf_tensor(d, MF_F32, 1, os),
                   to[2] = {mf_tensor(g, MF_F32, 2, as), mf_tensor(gb, MF_F32, 2, bs)};
    static const float expected[2][3] = {{0, 10, 0}, {20, 0, 0}};
    CHECK(backward("ij->i", "max(a)", in, 1, &out, &given, to) == MF_OK && !memcmp(g, expected, sizeof g));
    /* in the order as written, whatever the memory: here the numbers of column i run down */
    static const float columns[3][2] = {{10, 0}, {0, 20}, {0, 0}};
    const DLTensor turned[1] = {mf_tensor(b, MF_F32, 2, bs)}, to_turned[1] = {mf_tensor(gb, MF_F32, 2, bs)};
    CHECK(backward("ji->i", "max(a)", turned, 1, &out, &given, to_turned) == MF_OK && !memcmp(gb, columns, sizeof gb));
    /* a NaN wins; -inf gives nothing, whatever comes back */
    a[0][2] = NAN;
    a[1][0] = a[1][1] = a[1][2] = -INFINITY;
    d[1] = NAN;
    static const float special[2][3] = {{0, 0, 10}, {0, 0, 0}};
    CHECK(backward("ij->i", "max(a)", in, 1, &out, &given, to) == MF_OK && !memcmp(g, special, sizeof g));
    static const float nothing[2][3];
    a[0][0] = a[0][1] = a[0][2] = INFINITY;
    CHECK(backward("ij->i", "min(a*1)", in, 1, &out, &given, to) == MF_ERROR_UNSUPPORTED);
    CHECK(backward("ij->i", "min(a)", in, 1, &out, &given, to) == MF_OK && g[0][0] == 0 && g[1][0] != g[1][0] &&
          !memcmp(g, nothing, sizeof g[0]));
}

/* Max pooling with padding: a window wholly outside sends nothing. And a diagonal. */
static void test_places(void)
{
    float a[5] = {3, 1, 4, 1, 5}, d[4] = {1, 10, 100, 1000}, o[4], g[5];
    const int64_t as[] = {5}, os[] = {4};
    const DLTensor in = mf_tensor(a, MF_F32, 1, as), out = mf_tensor(o, MF_F32, 1, os),
                   given = mf_tensor(d, MF_F32, 1, os), to = mf_tensor(g, MF_F32, 1, as);
    static const float expected[5] = {1, 0, 110, 0, 1000};
    CHECK(backward("(i+u)->i with u=2", "max(a)", &in, 1, &out, &given, &to) == MF_OK &&
          !memcmp(g, expected, sizeof g));
    static const float padded[5] = {100, 0, 1000, 0, 0};
    CHECK(backward("(2i+u-4)->i with u=2", "max(a)", &in, 1, &out, &given, &to) == MF_OK &&
          !memcmp(g, padded, sizeof g));
    float m[2][2] = {{1, 9}, {9, 2}}, one = 0, back = 7, gm[2][2];
    const int64_t ms[] = {2, 2};
    const DLTensor square = mf_tensor(m, MF_F32, 2, ms), scalar = mf_tensor(&one, MF_F32, 0, NULL),
                   seven = mf_tensor(&back, MF_F32, 0, NULL), to_square = mf_tensor(gm, MF_F32, 2, ms);
    static const float diagonal[2][2] = {{0, 0}, {0, 7}};
    CHECK(backward("ii->", "max(a)", &square, 1, &scalar, &seven, &to_square) == MF_OK && one == 2 &&
          !memcmp(gm, diagonal, sizeof gm));
}

/* ---- mistakes ---- */

static float va[12], vb[12], vo[12], vd[12], vga[12], vgb[12];
static const int64_t s34[] = {3, 4}, s43[] = {4, 3}, s33[] = {3, 3};

struct mistake {
    const char *modes, *expression;
    DLTensor in[2], out, given, to[2];
    mf_options options;
};

static struct mistake no_mistake(void)
{
    const struct mistake m = {
        "ik,kj->ij",
        "sum(a*b)",
        {mf_tensor(va, MF_F32, 2, s34), mf_tensor(vb, MF_F32, 2, s43)},
        mf_tensor(vo, MF_F32, 2, s33),
        mf_tensor(vd, MF_F32, 2, s33),
        {mf_tensor(vga, MF_F32, 2, s34), mf_tensor(vgb, MF_F32, 2, s43)},
        {NULL, 0, 0},
    };
    return m;
}

static void expect(const struct mistake *m, mf_status wanted, const char *sentence)
{
    mf_plan *plan = (mf_plan *)1;
    mf_status status =
        mf_plan_gradient(cpu, m->modes, m->expression, m->in, &m->out, &m->given, m->to, &m->options, &plan);
    CHECK_MSG(status == wanted && (!wanted || strstr(mf_error(), sentence)), "%s (%s), not %s (%s)",
              mf_status_name(status), mf_error(), mf_status_name(wanted), sentence);
    CHECK((status == MF_OK) == (plan != NULL));
    mf_plan_destroy(plan);
}

static void test_expressions(void)
{
    static const char *const unknown[] = {"sum(a*b)+1", "sum(a*b*b)", "sum(a*a)",        "prod(a*b)", "sum(a)*sum(b)",
                                          "sum(2*a)",   "var(a*b)",   "sum(a*b);sum(a)", "a*b",       "(sum(a*b))"};
    struct mistake m = no_mistake();
    for (size_t e = 0; e < sizeof unknown / sizeof unknown[0]; e++) {
        m.expression = unknown[e];
        mf_plan *plan;
        mf_status status = mf_plan_gradient(cpu, m.modes, m.expression, m.in, &m.out, &m.given, m.to, NULL, &plan);
        CHECK_MSG(status == MF_ERROR_UNSUPPORTED || (!strcmp(m.expression, "a*b") && status == MF_ERROR_EXPRESSION),
                  "%s: %s", m.expression, mf_error());
    }
    m.expression = " sum ( (a) * b ) ";
    expect(&m, MF_OK, "");
    m.expression = "sum(a*";
    expect(&m, MF_ERROR_EXPRESSION, "expected");
    m = no_mistake();
    m.expression = "sum(a)";
    expect(&m, MF_ERROR_UNSUPPORTED, "does not use operand b, whose gradient is wanted");
    m.to[1].dtype.bits = 0;
    expect(&m, MF_OK, "");
    m.to[0].dtype.bits = 0;
    expect(&m, MF_ERROR_ARGUMENT, "no operand's gradient is wanted");
    m = no_mistake(); /* sums in f64 of more elements than have addresses */
    const int64_t huge[] = {(int64_t)1 << 59}, few[] = {(int64_t)1 << 49};
    m.expression = "max(a)";
    m.in[0] = m.to[0] = mf_tensor(va, MF_F8_E4M3, 1, huge);
    m.in[1].ndim = 0;
    m.modes = "(1024i+u),->i with u=1";
    m.out = m.given = mf_tensor(vo, MF_F32, 1, few);
    m.to[1].dtype.bits = 0;
    expect(&m, MF_ERROR_OVERFLOW, "the gradient's workspace does not fit in 63 bits");
    m = no_mistake();
    m.modes = "ik,kj->i";
    expect(&m, MF_ERROR_SHAPE, "output");
    m = no_mistake();
    m.modes = "i(k+l),kj->ij with l=1";
    expect(&m, MF_ERROR_UNSUPPORTED, "operand a has a window or a mode twice");
    m.modes = "ik,jj->ik";
    m.in[1].shape = (int64_t *)(uintptr_t)s33;
    m.out.shape = m.given.shape = m.in[0].shape;
    m.to[1].shape = m.in[1].shape;
    expect(&m, MF_ERROR_UNSUPPORTED, "operand b has a window or a mode twice");
    m = no_mistake();
    m.modes = "ik,kj,,,,,,,,,,,->ij";
    DLTensor many[13], to[13];
    memset(to, 0, sizeof to);
    for (int i = 0; i < 13; i++)
        many[i] = i < 2 ? m.in[i] : mf_tensor(va, MF_F32, 0, NULL);
    to[0] = m.to[0];
    mf_plan *plan;
    CHECK(mf_plan_gradient(cpu, m.modes, "sum(a*b)", many, &m.out, &m.given, to, NULL, &plan) == MF_ERROR_UNSUPPORTED &&
          strstr(mf_error(), "at most 12 operands and here are 13"));
}

static void test_tensors(void)
{
    static const int64_t none[] = {0, 1};
    struct mistake m = no_mistake();
    m.given.shape = m.in[0].shape;
    expect(&m, MF_ERROR_SHAPE, "dimension 1 of the gradient of the output is 4 and of the output itself 3");
    m = no_mistake();
    m.to[1].ndim = 1;
    expect(&m, MF_ERROR_SHAPE, "the gradient of operand b has 1 dimensions and operand b itself has 2");
    m = no_mistake();
    m.to[0].dtype = mf_dtype(MF_I32);
    expect(&m, MF_ERROR_TYPE, "operand a's is i32");
    m = no_mistake();
    m.given.dtype = mf_dtype(MF_BOOL);
    expect(&m, MF_ERROR_TYPE, "the output's is bool");
    m.given.dtype.bits = 5;
    expect(&m, MF_ERROR_TYPE, "of an unknown type");
    m = no_mistake();
    m.in[0].dtype = m.in[1].dtype = mf_dtype(MF_I32);
    expect(&m, MF_ERROR_TYPE, "of integers here");
    m.in[0].dtype = mf_dtype(MF_F32);
    expect(&m, MF_ERROR_TYPE, "operand b is i32, which has no gradient");
    m.to[1].dtype.bits = 0;
    expect(&m, MF_OK, "");
    m = no_mistake();
    m.to[0].strides = (int64_t *)(uintptr_t)none;
    expect(&m, MF_ERROR_OVERLAP, "the gradient of operand a overlaps itself");
    m = no_mistake();
    m.options.solver = "contract";
    expect(&m, MF_ERROR_ARGUMENT, "there is no solver \"contract\" for gradients");
    m.options.solver = "";
    m.options.flags = 64;
    expect(&m, MF_ERROR_ARGUMENT, "flags 0x40");
    m.options.flags = MF_LOG_EXACT | MF_LOG_FAST;
    expect(&m, MF_ERROR_ARGUMENT, "several tiers");
    m.options.flags = MF_ORDER_AS_WRITTEN;
    m.options.threads = 1;
    expect(&m, MF_OK, "");
}

static void test_null(void)
{
    const struct mistake m = no_mistake();
    mf_plan *plan;
    CHECK(mf_plan_gradient(NULL, m.modes, m.expression, m.in, &m.out, &m.given, m.to, NULL, &plan) ==
          MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, NULL, m.expression, m.in, &m.out, &m.given, m.to, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, m.modes, NULL, m.in, &m.out, &m.given, m.to, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, m.modes, m.expression, NULL, &m.out, &m.given, m.to, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, m.modes, m.expression, m.in, NULL, &m.given, m.to, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, m.modes, m.expression, m.in, &m.out, NULL, m.to, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, m.modes, m.expression, m.in, &m.out, &m.given, NULL, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_gradient(cpu, m.modes, m.expression, m.in, &m.out, &m.given, m.to, NULL, NULL) == MF_ERROR_ARGUMENT);
    CHECK(strstr(mf_error(), "mf_plan_gradient: the result is null"));
}

/* Pointers at execution: null, misaligned, overlapping; the output is read for logsumexp only. */
static void test_pointers(void)
{
    const void *good[4] = {va, vb, vo, vd}, *from[4];
    void *good_to[2] = {vga, vgb}, *to[2];
    for (int log = 0; log < 2; log++) {
        struct mistake m = no_mistake();
        mf_plan *plan = NULL;
        m.expression = log ? "logsumexp(a+b)" : "sum(a*b)";
        CHECK(mf_plan_gradient(cpu, m.modes, m.expression, m.in, &m.out, &m.given, m.to, NULL, &plan) == MF_OK);
        for (int q = 0; q < 14; q++) {
            memcpy(from, good, sizeof from);
            memcpy(to, good_to, sizeof to);
            vga[0] = vgb[0] = 77;
            const void **in = q < 4 ? &from[q] : q < 8 ? &from[q - 4] : NULL;
            void **out = q < 8 ? NULL : &to[q % 2];
            if (in)
                *in = q < 4 ? NULL : (const char *)*in + 1;
            else
                *out = q < 10 ? NULL : q < 12 ? (void *)((char *)*out + 1) : q == 12 ? (void *)vga : (void *)(vb + 1);
            if (q == 12)
                to[1] = vga + 3;
            const mf_status status = mf_plan_execute(plan, from, to, NULL);
            const mf_status wanted = q == 2 && !log ? MF_OK : q < 12 ? MF_ERROR_ARGUMENT : MF_ERROR_OVERLAP;
            CHECK_MSG(status == wanted, "case %d: %s (%s)", q, mf_status_name(status), mf_error());
            CHECK(status == MF_OK || (vga[0] == 77 && vgb[0] == 77));
        }
        mf_plan_destroy(plan);
    }
}

static void test_description(void)
{
    struct mistake m = no_mistake();
    mf_plan *plan = NULL;
    m.expression = "logsumexp(a+b)";
    CHECK(mf_plan_gradient(cpu, m.modes, m.expression, m.in, &m.out, &m.given, m.to, NULL, &plan) == MF_OK);
    CHECK(!strcmp(mf_plan_solver(plan), "gradient"));
    CHECK(strstr(mf_plan_describe(plan), "workspace of") != NULL);
    mf_plan_destroy(plan);
}

int main(void)
{
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gradient_edges");
    test_ties();
    test_places();
    test_expressions();
    test_tensors();
    test_null();
    test_pointers();
    test_description();
    mf_device_close(cpu);
    return check_done("test_gradient_edges");
}
