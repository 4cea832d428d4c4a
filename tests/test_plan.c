/* Plans: which solver is taken, how to force one, what a plan says of itself, its use on other memory, the environment,
 * and that its temporaries do not grow with the tensors. */
#include "check.h"

#include <modefold.h>

#include "error.h"

static mf_device *cpu;

#define DIMS(...)                                                          \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }
#define STRIDES(...) \
    (int64_t[])      \
    {                \
        __VA_ARGS__  \
    }

static DLTensor with_strides(DLTensor tensor, int64_t *strides)
{
    tensor.strides = strides;
    return tensor;
}

static mf_plan *plan_with(const char *solver, const char *modes, const char *expression, const DLTensor *in,
                          const DLTensor *out)
{
    const mf_options options = {solver, 0, 0};
    mf_plan *plan = NULL;
    mf_status status = mf_plan_create(cpu, modes, expression, in, out, &options, &plan);
    CHECK_MSG(status == MF_OK || status == MF_ERROR_UNSUPPORTED, "%s %s: %s", modes, expression, mf_error());
    return plan;
}

/* ---- solvers ---- */

static void test_solvers(void)
{
    static const char *const names[] = {"map", "inner", "outer", "reference"};
    static const struct {
        const char *modes, *expression;
        int rank, takes[4]; /* 1 must, 0 must not, 2 may */
    } cases[] = {
        {"ij->ij", "a+1", 2, {1, 0, 0, 1}},
        {"ij->ji", "exp(a)", 2, {1, 0, 0, 1}},
        {"ij->i", "sum(a)", 1, {0, 1, 2, 1}},
        {"ij->j", "sum(a)", 1, {0, 1, 1, 1}},
        {"ij->", "max(a)", 0, {0, 1, 2, 1}},
        {"ij->j", "argmax(a)", 1, {0, 1, 2, 1}},
        {"ij->i", "logsumexp(a)", 1, {0, 1, 2, 1}},
        {"ij->j", "var(a);mean(a)", 1, {0, 1, 1, 1}},
        {"(i+k)j->ij with k=3", "sum(a)", 2, {0, 2, 2, 1}},
        {"(i+k-1)j->ij with k=3", "max(a)", 2, {0, 2, 2, 1}},
    };
    float x[16 * 16], y[2][16 * 16];
    memset(x, 0, sizeof x);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int64_t shape[2] = {16, 16}, kept[MF_MAX_RANK];
        int ndim = 0;
        DLTensor in = mf_tensor(x, MF_F32, 2, shape);
        CHECK(mf_fold_shape(cases[c].modes, 1, &in, &ndim, kept) == MF_OK && ndim == cases[c].rank);
        DLTensor out[2] = {mf_tensor(y[0], MF_F32, ndim, kept), mf_tensor(y[1], MF_F32, ndim, kept)};
        for (int s = 0; s < 4; s++) {
            mf_plan *plan = plan_with(names[s], cases[c].modes, cases[c].expression, &in, out);
            CHECK_MSG(cases[c].takes[s] == 2 || (plan != NULL) == cases[c].takes[s], "%s %s: solver %s", cases[c].modes,
                      cases[c].expression, names[s]);
            if (plan)
                CHECK(!strcmp(mf_plan_solver(plan), names[s]));
            else
                CHECK_MSG(strstr(mf_error(), names[s]) != NULL, "%s", mf_error());
            mf_plan_destroy(plan);
        }
        mf_plan *plan = plan_with(NULL, cases[c].modes, cases[c].expression, &in, out);
        CHECK_MSG(plan && strcmp(mf_plan_solver(plan), "reference") != 0, "%s %s is left to the reference",
                  cases[c].modes, cases[c].expression);
        mf_plan_destroy(plan);
    }
}

static void test_description(void)
{
    float x[60], y[12];
    DLTensor in = mf_tensor(x, MF_F32, DIMS(3, 4, 5)), out = mf_tensor(y, MF_F32, DIMS(4));
    mf_plan *plan = plan_with(NULL, "zyx->y", "sum(a)", &in, &out);
    const char *text = mf_plan_describe(plan);
    static const char *const facts[] = {"zyx->y", "sum(a)", "kept 4", "reduced 3 5", "solver ", "cpu: 2 threads"};
    for (size_t f = 0; f < sizeof facts / sizeof facts[0]; f++)
        CHECK_MSG(strstr(text, facts[f]) != NULL, "\"%s\" does not say %s", text, facts[f]);
    CHECK(strstr(text, mf_plan_solver(plan)) != NULL && strlen(text) < 2048);
    mf_plan_destroy(plan);
    char modes[4000] = "i->i", expression[4000] = "a";
    for (int i = 4; i < 3000; i++)
        modes[i] = ' ';
    while (strlen(expression) < 3000)
        strcat(expression, "  ");
    DLTensor row = mf_tensor(x, MF_F32, DIMS(4));
    plan = plan_with(NULL, modes, expression, &row, &out); /* texts longer than a description are cut */
    CHECK(strlen(mf_plan_describe(plan)) < 2048 && strstr(mf_plan_describe(plan), "solver map"));
    mf_plan_destroy(plan);
    int64_t shape[32], strides[32];
    for (int d = 0; d < 32; d++) { /* modes that do not merge: each stride is odd */
        shape[d] = d % 2 ? 1000000007 : 2;
        strides[d] = 0;
        if (d > 8)
            shape[d] = 2;
        strides[d] = 2 * d + 1;
    }
    shape[1] = shape[3] = shape[5] = shape[7] = 3;
    DLTensor deep = with_strides(mf_tensor(x, MF_F32, 32, shape), strides), one = mf_tensor(y, MF_F32, 0, NULL);
    plan = plan_with(NULL, "abcdefghijklmnopqrstuvwxyzABCDEF->", "sum(a)", &deep, &one);
    CHECK(plan && strlen(mf_plan_describe(plan)) < 2048);
    mf_plan_destroy(plan);
}

/* ---- other memory ---- */

static void test_reuse(void)
{
    enum { N = 50, M = 30 };
    static float x[2][N][M], y[2][M], want[M];
    DLTensor in = with_strides(mf_tensor(NULL, MF_F32, DIMS(M, N)), STRIDES(1, M)),
             out = mf_tensor(NULL, MF_F32, DIMS(M));
    mf_plan *plan = plan_with(NULL, "mn->m", "sum(a)", &in, &out); /* data pointers are not looked at */
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < N * M; i++)
            x[k][i / M][i % M] = (float)(i * (k + 3) % 17);
    for (int round = 0; plan && round < 4; round++) {
        const void *inputs[1] = {x[round % 2]};
        void *outputs[1] = {y[round / 2]};
        memset(want, 0, sizeof want);
        for (int i = 0; i < N * M; i++)
            want[i % M] += x[round % 2][i / M][i % M];
        CHECK(mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK && !memcmp(y[round / 2], want, sizeof want));
    }
    const void *crossed[1] = {x[0]};
    void *into[1] = {x[0][1]};
    CHECK(mf_plan_execute(plan, crossed, into, NULL) == MF_ERROR_OVERLAP); /* looked at in every execution */
    void *odd[1] = {(char *)y + 1};
    CHECK(mf_plan_execute(plan, crossed, odd, NULL) == MF_ERROR_ARGUMENT);
    mf_plan_destroy(plan);
}

/* An output in the place of an operand that another output needs too. */
static void test_two_outputs_in_place(void)
{
    enum { N = 3000, M = 8 };
    static const struct {
        const char *solver;
        int64_t by_row, by_column;
    } ways[] = {{"inner", M, 1}, {"outer", 1, N}, {NULL, M, 1}};
    static float x[N * M], b[N], other[N];
    for (int i = 0; i < N * M; i++)
        x[i] = 1;
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
        const DLTensor in[2] = {with_strides(mf_tensor(NULL, MF_F32, DIMS(N, M)),
                                             STRIDES(ways[w].by_row, ways[w].by_column)),
                                mf_tensor(NULL, MF_F32, DIMS(N))},
                       out[2] = {in[1], in[1]};
        mf_plan *plan = plan_with(ways[w].solver, "ij,i->i", "sum(a)+b; b", in, out);
        const void *inputs[2] = {x, b};
        void *outputs[2] = {b, other};
        for (int i = 0; i < N; i++)
            b[i] = (float)i;
        int right = plan && mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK;
        for (int i = 0; right && i < N; i++)
            right = b[i] == (float)(i + M) && other[i] == (float)i;
        CHECK_MSG(right, "solver %s", ways[w].solver ? ways[w].solver : "of its own");
        mf_plan_destroy(plan);
    }
}

/* A plan keeps nothing of what made it. */
static void test_independence(void)
{
    float x[6] = {1, 2, 3, 4, 5, 6}, y[2];
    char *modes = strcpy(malloc(16), "ij->i"), *expression = strcpy(malloc(16), "sum(a)"),
         *solver = strcpy(malloc(16), "inner");
    int64_t *shape = malloc(3 * sizeof *shape), *strides = malloc(2 * sizeof *strides);
    shape[0] = shape[2] = 2;
    shape[1] = strides[0] = 3;
    strides[1] = 1;
    DLTensor *in = malloc(2 * sizeof *in);
    in[0] = with_strides(mf_tensor(x, MF_F32, 2, shape), strides);
    in[1] = mf_tensor(y, MF_F32, 1, shape + 2);
    mf_plan *plan = plan_with(solver, modes, expression, &in[0], &in[1]);
    free(modes);
    free(expression);
    free(solver);
    free(shape);
    free(strides);
    free(in);
    const void *inputs[1] = {x};
    void *outputs[1] = {y};
    CHECK(mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK && y[0] == 6 && y[1] == 15);
    CHECK(strstr(mf_plan_describe(plan), "ij->i") && !strcmp(mf_plan_solver(plan), "inner"));
    mf_plan_destroy(plan);
}

/* mf_fold keeps recent plans: the same call again asks for little memory, many others in between change nothing. */
static void test_recent_plans(void)
{
    float x[100], y[100];
    for (int i = 0; i < 100; i++)
        x[i] = (float)i;
    for (int round = 0; round < 3; round++)
        for (int64_t n = 1; n <= 99; n++) {
            DLTensor in = mf_tensor(x, MF_F32, 1, &n), out = mf_tensor(y, MF_F32, 0, NULL);
            CHECK(mf_fold(cpu, "i->", n % 2 ? "sum(a)" : "max(a)", &in, &out) == MF_OK);
            CHECK(y[0] == (float)(n % 2 ? n * (n - 1) / 2 : n - 1));
            int64_t before = mf_alloc_asked;
            CHECK(mf_fold(cpu, "i->", n % 2 ? "sum(a)" : "max(a)", &in, &out) == MF_OK && mf_alloc_asked == before);
        }
    DLTensor a = mf_tensor(x, MF_F32, DIMS(4)), o = mf_tensor(y, MF_F32, DIMS(4));
    CHECK(mf_fold(cpu, "i->i", "a", &a, &o) == MF_OK && y[1] == 1);
    a.strides = STRIDES(2); /* the same but for the strides, then the type, then the modes */
    CHECK(mf_fold(cpu, "i->i", "a", &a, &o) == MF_OK && y[1] == 2);
    a.dtype = o.dtype = mf_dtype(MF_I32);
    CHECK(mf_fold(cpu, "i->i", "a+1", &a, &o) == MF_OK && !memcmp(y, &(int32_t){1}, 4));
}

/* ---- the choice ---- */

/* Whether folds of f32 are the solver's that is the fastest one. */
static void test_choice(void)
{
    static const struct {
        const char *modes, *expression, *solver;
        int ndim;
        int64_t shape[3];
    } cases[] = {
        {"(2h+i)(2w+j)->hw with i=2,j=2", "max(a)", "outer", 2, {64, 8192}},
        {"(4h+i)(4w+j)->hw with i=4,j=4", "sum(a)", "outer", 2, {64, 8192}},
        {"(2h+i)(2w+j)->hw with i=2,j=2", "max(a)", "pool", 2, {64, 56}},
        {"(2h+i)(2w+j)c->hwc with i=2,j=2", "max(a)", "sliding", 3, {64, 64, 8}},
        {"(2h+i)(2w+j)->hw with i=3,j=3", "max(a)", "sliding", 2, {65, 8193}},
        {"(3w+j)c->wc with j=4", "sum(a)", "sliding", 2, {10000, 4}},
        {"(3w+j)->w with j=4", "sum(a)", "inner", 1, {40000}},
        {"p(2w+j)->pw with j=9", "max(a)", "inner", 2, {400, 101}},
        {"(h+i-1)(w+j-1)->hw with h=64,w=8192,i=3,j=3", "argmax(a)", "framed", 2, {64, 8192}},
        {"(h+i-1)(w+j-1)c->hwc with h=64,w=100,i=3,j=3", "logsumexp(a)", "framed", 3, {64, 100, 3}},
        {"(h+i-1)(w+j-1)->hw with h=64,w=81,i=3,j=3", "max(a)-min(a)", "framed", 2, {64, 81}},
    };
    float *x = calloc(65 * 8193, sizeof *x), *y = calloc(65 * 8193, sizeof *y);
    CHECK(x && y);
    for (size_t c = 0; x && y && c < sizeof cases / sizeof cases[0]; c++) {
        DLTensor in = mf_tensor(x, MF_F32, cases[c].ndim, cases[c].shape);
        int64_t shape[MF_MAX_RANK];
        int ndim = 0;
        CHECK(mf_fold_shape(cases[c].modes, 1, &in, &ndim, shape) == MF_OK);
        DLTensor out = mf_tensor(y, MF_F32, ndim, shape);
        mf_plan *plan = plan_with(NULL, cases[c].modes, cases[c].expression, &in, &out);
        CHECK_MSG(plan && !strcmp(mf_plan_solver(plan), cases[c].solver), "%s %s is left to %s, not to %s",
                  cases[c].modes, cases[c].expression, mf_plan_solver(plan), cases[c].solver);
        mf_plan_destroy(plan);
    }
    free(x);
    free(y);
}

/* ---- the environment ---- */

static void test_environment(void)
{
    float x[12] = {0}, y[4];
    DLTensor in = mf_tensor(x, MF_F32, DIMS(3, 4)), out = mf_tensor(y, MF_F32, DIMS(4));
    setenv("MODEFOLD_SOLVER", "reference", 1);
    mf_plan *plan = plan_with(NULL, "ij->j", "sum(a)", &in, &out);
    CHECK(plan && !strcmp(mf_plan_solver(plan), "reference"));
    mf_plan_destroy(plan);
    plan = plan_with("inner", "ij->j", "sum(a)", &in, &out); /* an option says more than the environment */
    CHECK(plan && !strcmp(mf_plan_solver(plan), "inner"));
    mf_plan_destroy(plan);
    setenv("MODEFOLD_SOLVER", "map", 1);
    CHECK(!plan_with(NULL, "ij->j", "sum(a)", &in, &out) && strstr(mf_error(), "map"));
    setenv("MODEFOLD_SOLVER", "nothing", 1);
    CHECK(mf_plan_create(cpu, "ij->j", "sum(a)", &in, &out, NULL, &plan) == MF_ERROR_ARGUMENT && !plan);
    setenv("MODEFOLD_SOLVER", "", 1);
    plan = plan_with(NULL, "ij->j", "sum(a)", &in, &out);
    CHECK(plan && strcmp(mf_plan_solver(plan), "reference") != 0);
    mf_plan_destroy(plan);
    unsetenv("MODEFOLD_SOLVER");
    setenv("MODEFOLD_THREADS", "3", 1);
    mf_device *device;
    CHECK(mf_device_open("cpu", &device) == MF_OK && strstr(mf_device_describe(device), "cpu: 3 threads"));
    mf_device_close(device);
    CHECK(mf_device_open("cpu:1", &device) == MF_OK && strstr(mf_device_describe(device), "cpu: 1 thread,"));
    mf_device_close(device);
    unsetenv("MODEFOLD_THREADS");
}

/* Every instruction set that this processor has gives the same bits. */
static void test_isas(void)
{
    static const char *const isas[] = {"scalar", "sse2", "avx2", "avx512", "neon"};
    enum { N = 40, M = 700 };
    static float x[N][M];
    float first[4][M], y[4][M];
    int seen = 0;
    for (int i = 0; i < N * M; i++)
        x[i / M][i % M] = (float)(i * 7919 % 10007) / 811.0f - 6.0f;
    for (int i = 0; i < 5; i++) {
        mf_device *device;
        setenv("MODEFOLD_ISA", isas[i], 1);
        if (mf_device_open("cpu:2", &device) != MF_OK) {
            CHECK(strstr(mf_error(), isas[i]) != NULL);
            continue;
        }
        CHECK(strstr(mf_device_describe(device), isas[i]) != NULL);
        DLTensor in = mf_tensor(x, MF_F32, DIMS(N, M)), out[4];
        memset(y, 0, sizeof y);
        int64_t columns[1] = {M}, rows[1] = {N};
        for (int k = 0; k < 4; k++)
            out[k] = mf_tensor(y[k], MF_F32, 1, columns);
        CHECK(mf_fold(device, "ij->j", "sum(a*a);var(a);logsumexp(a);tanh(max(a))", &in, out) == MF_OK);
        for (int k = 0; k < 4; k++)
            out[k] = mf_tensor(&y[k][N], MF_F32, 1, rows);
        CHECK(mf_fold(device, "ij->i", "sum(exp(a));std(a,1);argmin(a);prod(a)", &in, out) == MF_OK);
        if (seen++)
            CHECK_MSG(!memcmp(first, y, sizeof y), "%s differs from %s", isas[i], isas[0]);
        memcpy(first, y, sizeof y);
        mf_device_close(device);
    }
    unsetenv("MODEFOLD_ISA");
    CHECK(seen >= 1);
}

/* ---- temporaries ---- */

/* The bytes one execution asks for. */
static int64_t bytes_asked(const char *solver, const char *modes, const char *expression, const float *x, int64_t rows,
                           int64_t columns, float *y)
{
    int64_t shape[2] = {rows, columns}, kept = modes[4] == 'i' ? rows : modes[4] == 'j' ? columns : 1;
    DLTensor in = mf_tensor(x, MF_F32, 2, shape), out[4];
    const void *inputs[1] = {x};
    void *outputs[4];
    for (int k = 0; k < 4; k++) {
        outputs[k] = y + k * kept;
        out[k] = mf_tensor(outputs[k], MF_F32, modes[4] ? 1 : 0, &kept);
    }
    mf_plan *plan = plan_with(solver, modes, expression, &in, out);
    if (!plan)
        return -1;
    int64_t before = mf_alloc_asked;
    CHECK(mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK);
    int64_t asked = mf_alloc_asked - before;
    mf_plan_destroy(plan);
    return asked;
}

/* From 2^16 to 2^21 elements a column no temporary grows by more than a state (16 bytes, twice that in work) for each
 * 4096 elements and reducer; with more outputs it does not grow at all once there are many. */
static void test_temporaries(void)
{
    enum { MOST = 1 << 21 };
    static const char *const expressions[] = {"sum(a)", "sum(a*2+1)", "mean(a);var(a);max(a)", "argmax(a);sum(a)",
                                              "logsumexp(a)"};
    static const char *const solvers[] = {NULL, "inner", "outer"};
    float *x = calloc(MOST, sizeof *x), *y = calloc(MOST, sizeof *y);
    for (size_t e = 0; x && y && e < sizeof expressions / sizeof expressions[0]; e++)
        for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
            const char *text = expressions[e], *solver = solvers[s];
            int64_t few = bytes_asked(solver, "ij->", text, x, 1, 1 << 16, y);
            int64_t many = bytes_asked(solver, "ij->", text, x, 1, MOST, y);
            int64_t states = 3 * 2 * 2 * 16 * (MOST / 4096);
            CHECK_MSG(few < 0 || many - few <= states, "%s by %s: %lld bytes for 2^16 elements, %lld for 2^21", text,
                      solver ? solver : "any", (long long)few, (long long)many);
            few = bytes_asked(solver, "ij->j", text, x, 1 << 14, 4, y);
            many = bytes_asked(solver, "ij->j", text, x, MOST / 4, 4, y);
            CHECK_MSG(few < 0 || many - few <= 4 * states, "%s down 4 columns by %s: %lld bytes, then %lld", text,
                      solver ? solver : "any", (long long)few, (long long)many);
            few = bytes_asked(solver, "ij->j", text, x, 32, 1 << 14, y);
            many = bytes_asked(solver, "ij->j", text, x, 32, 1 << 16, y);
            CHECK_MSG(few < 0 || many <= few + (1 << 20), "%s of many columns by %s: %lld bytes, then %lld", text,
                      solver ? solver : "any", (long long)few, (long long)many);
            few = bytes_asked(solver, "ij->i", text, x, 1 << 14, 32, y);
            many = bytes_asked(solver, "ij->i", text, x, 1 << 16, 32, y);
            CHECK_MSG(few < 0 || many <= few + (1 << 20), "%s of many rows by %s: %lld bytes, then %lld", text,
                      solver ? solver : "any", (long long)few, (long long)many);
        }
    free(x);
    free(y);
}

int main(void)
{
    if (mf_device_open("cpu:2", &cpu) != MF_OK)
        return 1;
    test_solvers();
    test_description();
    test_reuse();
    test_two_outputs_in_place();
    test_independence();
    test_recent_plans();
    test_choice();
    test_environment();
    test_isas();
    test_temporaries();
    mf_device_close(cpu);
    return check_done("test_plan");
}
