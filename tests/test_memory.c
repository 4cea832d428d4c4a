/* Allocation failure: every call is repeated with 0, 1, 2 ... allocations allowed until it succeeds. Until then it must
 * answer MF_ERROR_MEMORY, keep nothing (AddressSanitizer looks for leaks) and leave its outputs alone. */
#include "check.h"

#include <modefold.h>

#include "error.h"

static mf_device *cpu;

#define DIMS(...)                                                          \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }

enum { MANY = 200 }; /* more allocations than any call makes */

/* Calls again and again; returns how many allocations the call makes, -1 when it never succeeds. */
static int until_success(mf_status (*call)(void *context), void *context, const char *what)
{
    for (int k = 0; k < MANY; k++) {
        mf_alloc_budget = k;
        mf_status status = call(context);
        mf_alloc_budget = -1;
        if (status == MF_OK)
            return k;
        if (!CHECK_MSG(status == MF_ERROR_MEMORY, "%s with %d allocations: %s (%s)", what, k, mf_status_name(status),
                       mf_error()))
            return -1;
        CHECK_MSG(strstr(mf_error(), "memory") != NULL, "%s with %d allocations says \"%s\"", what, k, mf_error());
    }
    CHECK_MSG(0, "%s still fails after %d allocations", what, MANY);
    return -1;
}

/* ---- devices and operations ---- */

static mf_status open_and_close(void *context)
{
    mf_device *device = (mf_device *)1;
    mf_status status = mf_device_open(context, &device);
    CHECK(status == MF_OK || !device);
    if (status == MF_OK)
        mf_device_close(device);
    return status;
}

static void identity(void *context, int64_t n, void *states)
{
    (void)context;
    memset(states, 0, sizeof(double) * (size_t)n);
}

static void lift(void *context, int64_t n, const void *const *values, void *states)
{
    (void)context;
    memcpy(states, values[0], sizeof(double) * (size_t)n);
}

static void combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right, int64_t right_stride)
{
    (void)context;
    for (int64_t i = 0; i < n; i++) {
        double l, r;
        memcpy(&l, (char *)left + i * left_stride, sizeof l);
        memcpy(&r, (const char *)right + i * right_stride, sizeof r);
        l += r;
        memcpy((char *)left + i * left_stride, &l, sizeof l);
    }
}

static void finish(void *context, int64_t n, const void *states, void *const *results)
{
    (void)context;
    memcpy(results[0], states, sizeof(double) * (size_t)n);
}

static const mf_operation total = {
    .name = "total",
    .input_count = 1,
    .output_count = 1,
    .input_type = MF_F64,
    .output_type = MF_F64,
    .state_size = sizeof(double),
    .identity = identity,
    .lift = lift,
    .combine = combine,
    .finish = finish,
};

static mf_status define(void *context)
{
    return mf_operation_define(context, &total);
}

static const char *const texts[] = {
    "f64 plus(x): identity s = 0; lift s = x; combine s = s1 + s2",
    "ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t; combine p = p1*p2, q = q1*p2 + q2; finish q",
};

static mf_status define_text(void *context)
{
    return mf_operation_define_text(context, texts[1]);
}

static void test_device(void)
{
    CHECK(until_success(open_and_close, "cpu", "opening cpu") > 0);
    CHECK(until_success(open_and_close, "cpu:7", "opening cpu:7") > 0);
    mf_device *device;
    if (!CHECK(mf_device_open("cpu:1", &device) == MF_OK))
        return;
    CHECK(until_success(define, device, "defining an operation") > 0);
    CHECK(mf_operation_define(device, &total) == MF_ERROR_ARGUMENT);
    CHECK(until_success(define_text, device, "defining an operation as text") > 2);
    mf_device_close(device);
}

/* ---- folds ---- */

struct fold {
    const char *modes, *expression, *solver;
    DLTensor in[4], out[4];
    mf_plan *plan;
    const void *inputs[4];
    void *outputs[4];
};

static mf_status create(void *context)
{
    struct fold *fold = context;
    const mf_options options = {fold->solver, 0, 0};
    fold->plan = (mf_plan *)1;
    mf_status status = mf_plan_create(cpu, fold->modes, fold->expression, fold->in, fold->out, &options, &fold->plan);
    CHECK(status == MF_OK || !fold->plan);
    return status;
}

static int touched(const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != 0x5a)
            return 1;
    return 0;
}

static unsigned char results[1 << 16];

static mf_status execute(void *context)
{
    const struct fold *fold = context;
    memset(results, 0x5a, sizeof results);
    mf_status status = mf_plan_execute(fold->plan, fold->inputs, fold->outputs, NULL);
    CHECK_MSG(status == MF_OK || !touched(results, sizeof results), "%s %s wrote before it failed", fold->modes,
              fold->expression);
    return status;
}

static mf_status shape_and_type(void *context)
{
    const struct fold *fold = context;
    int ndim = -7;
    int64_t shape[MF_MAX_RANK];
    DLDataType type = {99, 99, 99};
    mf_status status = mf_fold_shape(fold->modes, mf_modes_inputs("i->"), fold->in, &ndim, shape);
    return status ? status : mf_fold_type(cpu, fold->expression, 1, fold->in, 0, &type);
}

/* A device of its own, so that no earlier call's plan is found. */
static mf_status one_shot(void *context)
{
    const struct fold *fold = context;
    mf_device *device;
    long allowed = mf_alloc_budget;
    mf_alloc_budget = -1;
    mf_status status = mf_device_open("cpu:2", &device);
    if (status == MF_OK)
        status = mf_operation_define(device, &total);
    for (int t = 0; t < 2 && status == MF_OK; t++)
        status = mf_operation_define_text(device, texts[t]);
    mf_alloc_budget = allowed;
    if (status != MF_OK)
        return MF_ERROR_ARGUMENT;
    memset(results, 0x5a, sizeof results);
    status = mf_fold(device, fold->modes, fold->expression, fold->in, fold->out);
    CHECK(status == MF_OK || !touched(results, sizeof results));
    mf_alloc_budget = -1;
    if (status != MF_OK) /* and the device still works */
        CHECK(mf_fold(device, fold->modes, fold->expression, fold->in, fold->out) == MF_OK);
    mf_device_close(device);
    return status;
}

static float *source;
enum { ROWS = 40, COLUMNS = 20000 };

static void test_fold(const char *solver, const char *modes, const char *expression, int reversed)
{
    struct fold fold = {.modes = modes, .expression = expression, .solver = solver};
    static int64_t shape[2], strides[2], kept[1];
    shape[0] = reversed ? COLUMNS : ROWS;
    shape[1] = reversed ? ROWS : COLUMNS;
    strides[0] = shape[1];
    strides[1] = 1;
    fold.in[0] = mf_tensor(source, MF_F32, 2, shape);
    fold.in[0].strides = strides;
    fold.in[1] = mf_tensor(source + ROWS * COLUMNS, MF_F32, 1, kept);
    kept[0] = modes[strlen(modes) - 1] == '>' ? 1 : ROWS;
    int rank = modes[strlen(modes) - 1] == '>' ? 0 : 1;
    for (int k = 0; k < mf_expression_outputs(expression); k++) {
        fold.out[k] = mf_tensor(results + 4096 * k, MF_F64, rank, kept);
        fold.outputs[k] = fold.out[k].data;
    }
    for (int i = 0; i < 2; i++)
        fold.inputs[i] = fold.in[i].data;
    char what[128];
    snprintf(what, sizeof what, "%s: %s %s", solver ? solver : "any solver", modes, expression);
    if (until_success(create, &fold, what) < 0)
        return;
    until_success(execute, &fold, what);
    mf_plan_destroy(fold.plan);
    if (!solver) {
        until_success(one_shot, &fold, what);
        if (mf_modes_inputs(modes) == 1)
            until_success(shape_and_type, &fold, what);
    }
}

static void test_folds(void)
{
    static const char *const solvers[] = {NULL, "inner", "outer"};
    static const char *const expressions[] = {
        "sum(a)",        "mean(a);var(a);max(a);argmax(a)", "logsumexp(a*2)",
        "total(a)",      "sum(exp(a));total(a+1)",          "plus(a);total(a)",
        "affine(a,a*2)",
    };
    for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++)
        for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
            int user = strstr(expressions[e], "total") || strstr(expressions[e], "affine"),
                outer = solvers[s] && !strcmp(solvers[s], "outer");
            if (user && outer)
                continue;
            if (!outer) {
                test_fold(solvers[s], "ij->i", expressions[e], 0);
                test_fold(solvers[s], "ij->", expressions[e], 0);
            }
            test_fold(solvers[s], "ij->j", expressions[e], 1);
        }
    test_fold("inner", "ij,i->i", "leaky(sum(a*b)*b+1)", 0);
    test_fold("outer", "ij,j->j", "leaky(sum(a*b)*b+1)", 1);
}

/* The naive solver and maps, on small tensors: the sizes do not change what they allocate. */
static void test_small_folds(void)
{
    static const struct {
        const char *solver, *modes, *expression;
        int rank;
    } cases[] = {
        {"reference", "ij->i", "sum(a);argmin(a)", 1},
        {"reference", "ij->i", "var(a);total(a)", 1},
        {"reference", "ij->i", "logsumexp(a)", 1},
        {"map", "ij->ij", "exp(a)*2;a>1", 2},
        {"reference", "ij->ij", "a+1", 2},
        {NULL, "ij->ij", "tanh(a)", 2},
        {NULL, "(i+x-1)j->ij with x=3", "max(a)", 2},
        {NULL, "(i+x-1)(j+y-1)->ij with i=64,j=32,x=3,y=3", "argmax(a);var(a)", 2},    /* solver framed */
        {NULL, "(i+x-1)(j+y-1)->ij with i=64,j=32,x=3,y=3", "sum(a);logsumexp(a)", 2}, /* and inner around it */
        {NULL, "ij->", "total(a)*total(a*a)", 0},
        {"reference", "ij->i", "plus(a);affine(a,2)", 1},
    };
    int64_t shape[2] = {64, 32};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct fold fold = {.modes = cases[c].modes, .expression = cases[c].expression, .solver = cases[c].solver};
        fold.in[0] = mf_tensor(source, MF_F32, 2, shape);
        fold.inputs[0] = source;
        for (int k = 0; k < 2; k++) {
            fold.outputs[k] = results + k * 16384;
            fold.out[k] = mf_tensor(fold.outputs[k], MF_F64, cases[c].rank, shape);
        }
        if (until_success(create, &fold, cases[c].modes) < 0)
            continue;
        until_success(execute, &fold, cases[c].modes);
        mf_plan_destroy(fold.plan);
        if (!fold.solver)
            until_success(one_shot, &fold, cases[c].modes);
    }
}

/* A map that is large enough for a thread's buffers on the heap. */
static void test_large_map(void)
{
    struct fold fold = {.modes = "ij,i->ij", .expression = "exp(a)*tanh(b)+sqrt(a)*b"};
    int64_t shape[2] = {ROWS, COLUMNS};
    float *out = malloc(sizeof *out * ROWS * COLUMNS);
    if (!out)
        return;
    fold.in[0] = mf_tensor(source, MF_F32, 2, shape);
    fold.in[1] = mf_tensor(source, MF_F32, 1, shape);
    fold.out[0] = mf_tensor(out, MF_F32, 2, shape);
    fold.inputs[0] = fold.inputs[1] = source;
    fold.outputs[0] = out;
    if (until_success(create, &fold, "a large map") >= 0) {
        until_success(execute, &fold, "a large map");
        mf_plan_destroy(fold.plan);
    }
    free(out);
}

static void test_contractions(void)
{
    static const char *const solvers[] = {"contract",  "contract-arg", "log-certified",
                                          "log-exact", "log-running",  "contract-several"};
    static const char *const expressions[] = {"sum(a*b)",       "argmax(a+b)",    "logsumexp(a+b)",
                                              "logsumexp(a+b)", "logsumexp(a+b)", "max(a+b)-sum(a*b)"};
    for (int c = 0; c < 6; c++) {
        struct fold fold = {.modes = "ik,jk->ij", .expression = expressions[c], .solver = solvers[c]};
        int64_t shape[2] = {ROWS, 500}, kept[2] = {ROWS, ROWS};
        fold.in[0] = fold.in[1] = mf_tensor(source, MF_F32, 2, shape);
        fold.out[0] = mf_tensor(results, MF_F32, 2, kept);
        fold.inputs[0] = fold.inputs[1] = source;
        fold.outputs[0] = results;
        if (until_success(create, &fold, solvers[c]) < 0)
            continue;
        until_success(execute, &fold, solvers[c]);
        mf_plan_destroy(fold.plan);
    }
}

static mf_status create_gradient(void *context)
{
    struct fold *fold = context;
    fold->plan = (mf_plan *)1;
    mf_status status = mf_plan_gradient(cpu, fold->modes, fold->expression, fold->in, &fold->in[2], &fold->in[3],
                                        fold->out, NULL, &fold->plan);
    CHECK(status == MF_OK || !fold->plan);
    return status;
}

/* Both gradients, of which neither may be written when the other cannot be. */
static void test_gradients(void)
{
    static const char *const expressions[] = {"sum(a*b)", "logsumexp(a+b)", "max(a+b)", "mean(a)"};
    static const int64_t shape[2] = {ROWS, 100}, kept[2] = {ROWS, ROWS};
    float *wide = malloc(sizeof *wide * ROWS * 100), *forward = calloc(ROWS * ROWS, sizeof *forward);
    for (int i = 0; wide && i < ROWS * 100; i++) /* far apart: all steps of logsumexp run */
        wide[i] = (float)(i % 100 * 2000);
    for (int c = 0; wide && forward && c < 4; c++) {
        struct fold fold = {.modes = c < 3 ? "ik,jk->ij" : "ik->i", .expression = expressions[c]};
        fold.in[0] = fold.in[1] = mf_tensor(source, MF_F32, 2, shape);
        fold.in[2] = fold.in[3] = mf_tensor(forward, MF_F32, c < 3 ? 2 : 1, kept);
        for (int i = 0; i < 4; i++)
            fold.inputs[i] = i < 2 ? (i ? source : wide) : forward;
        if (c == 3)
            fold.inputs[1] = fold.inputs[2];
        for (int k = 0; k < 2; k++) {
            fold.outputs[k] = results + k * 32768;
            fold.out[k] = mf_tensor(fold.outputs[k], MF_F64, 2, shape);
        }
        if (until_success(create_gradient, &fold, expressions[c]) < 0)
            continue;
        until_success(execute, &fold, expressions[c]);
        mf_plan_destroy(fold.plan);
    }
    free(wide);
    free(forward);
}

static void test_questions(void)
{
    mf_alloc_budget = 0;
    CHECK(mf_modes_inputs("i,j->ij") < 0 && strstr(mf_error(), "memory"));
    CHECK(mf_expression_outputs("a;b") == 2);
    mf_alloc_budget = -1;
}

int main(void)
{
    source = malloc(sizeof *source * (ROWS * COLUMNS + ROWS));
    if (!source || mf_device_open("cpu:2", &cpu) != MF_OK || mf_operation_define(cpu, &total) != MF_OK ||
        mf_operation_define_text(cpu, texts[0]) != MF_OK || mf_operation_define_text(cpu, texts[1]) != MF_OK)
        return 1;
    for (int i = 0; i < ROWS * COLUMNS + ROWS; i++)
        source[i] = (float)(i % 97) / 64.0f;
    test_device();
    test_folds();
    test_small_folds();
    test_large_map();
    test_contractions();
    test_gradients();
    test_questions();
    mf_device_close(cpu);
    free(source);
    return check_done("test_memory");
}
