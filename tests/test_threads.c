/* Several threads at once: one plan, one device, many devices; and the same bits from any number of threads. Runs under
 * ThreadSanitizer too. */
#include "check.h"

#include <modefold.h>
#include <pthread.h>

#define DIMS(...)                                                          \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }

enum { THREADS = 8, ROWS = 61, COLUMNS = 9001, ROUNDS = 6 };

static float source[ROWS * COLUMNS];

static float value(int i)
{
    return (float)((int64_t)i * 7919 % 1000003) / 8191.0f - 50.0f;
}

/* Runs body in THREADS threads at once, each with its number; a failed check is counted by its thread's result. */
static void in_threads(void *(*body)(void *), void *each, size_t size, const char *what)
{
    pthread_t thread[THREADS];
    int started[THREADS];
    for (int t = 0; t < THREADS; t++)
        started[t] = !pthread_create(&thread[t], NULL, body, (char *)each + (size_t)t * size);
    for (int t = 0; t < THREADS; t++) {
        void *wrong = NULL;
        if (!CHECK_MSG(started[t], "%s: thread %d does not start", what, t))
            continue;
        pthread_join(thread[t], &wrong);
        CHECK_MSG(!wrong, "%s: thread %d has wrong results", what, t);
    }
}

/* ---- one plan in many threads ---- */

struct executor {
    const mf_plan *plan;
    const void *input;
    const void *want;
    size_t bytes;
};

static void *execute(void *argument)
{
    const struct executor *e = argument;
    char *mine = malloc(e->bytes);
    int wrong = !mine;
    for (int round = 0; round < ROUNDS && !wrong; round++) {
        memset(mine, 0, e->bytes);
        void *outputs[1] = {mine};
        wrong = mf_plan_execute(e->plan, &e->input, outputs, NULL) != MF_OK || memcmp(mine, e->want, e->bytes) != 0;
    }
    free(mine);
    return wrong ? argument : NULL;
}

static void test_one_plan(mf_device *device, const char *modes, const char *expression, size_t outputs)
{
    DLTensor in = mf_tensor(source, MF_F32, DIMS(ROWS, COLUMNS));
    int64_t shape[2] = {outputs == ROWS * COLUMNS || outputs == ROWS ? ROWS : COLUMNS, COLUMNS};
    double *want = malloc(sizeof *want * outputs);
    DLTensor out = mf_tensor(want, MF_F64, outputs == 1 ? 0 : outputs == ROWS * COLUMNS ? 2 : 1, shape);
    mf_plan *plan;
    if (CHECK_MSG(mf_plan_create(device, modes, expression, &in, &out, NULL, &plan) == MF_OK, "%s %s: %s", modes,
                  expression, mf_error())) {
        const void *inputs[1] = {source};
        void *pointers[1] = {want};
        CHECK(mf_plan_execute(plan, inputs, pointers, NULL) == MF_OK);
        struct executor each[THREADS];
        for (int t = 0; t < THREADS; t++)
            each[t] = (struct executor){plan, source, want, sizeof *want * outputs};
        in_threads(execute, each, sizeof each[0], expression);
        mf_plan_destroy(plan);
    }
    free(want);
}

/* ---- one device in many threads: more shapes than the cache of recent plans holds ---- */

struct folder {
    mf_device *device;
    int number;
};

static void *fold(void *argument)
{
    const struct folder *me = argument;
    int wrong = 0;
    for (int round = 0; round < 120; round++) {
        int64_t n = 1 + (round * 7 + me->number) % 50, m = 3 + round % 2;
        double y[4], want = 0;
        DLTensor in = mf_tensor(source, MF_F32, DIMS(n, m)), out = mf_tensor(y, MF_F64, DIMS(m));
        const char *expression = round % 3 ? "sum(f64(a))" : "max(f64(a))";
        wrong += mf_fold(me->device, "ij->j", expression, &in, &out) != MF_OK;
        for (int64_t i = 0; i < n; i++) {
            double x = source[i * m + 1];
            want = i == 0 ? x : round % 3 ? want + x : x > want ? x : want;
        }
        /* the order of the sum is the library's, so it may differ a little from ours */
        wrong += y[1] - want > 1e-9 || want - y[1] > 1e-9;
        DLTensor bad = mf_tensor(y, MF_F64, DIMS(m + 1));
        char fact[32];
        snprintf(fact, sizeof fact, "%lld in the output", (long long)m + 1);
        wrong += mf_fold(me->device, "ij->j", expression, &in, &bad) != MF_ERROR_SHAPE || !strstr(mf_error(), fact);
    }
    return wrong ? argument : NULL;
}

/* ---- devices of their own; operations defined while others fold ---- */

static void identity(void *context, int64_t n, void *states)
{
    (void)context;
    memset(states, 0, 8 * (size_t)n);
}
static void lift(void *context, int64_t n, const void *const *values, void *states)
{
    (void)context;
    memcpy(states, values[0], 8 * (size_t)n);
}
static void combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right, int64_t right_stride)
{
    (void)context;
    for (int64_t i = 0; i < n; i++)
        *(int64_t *)(void *)((char *)left + i * left_stride) +=
            *(const int64_t *)(const void *)((const char *)right + i * right_stride);
}
static void finish(void *context, int64_t n, const void *states, void *const *results)
{
    (void)context;
    memcpy(results[0], states, 8 * (size_t)n);
}

static mf_status define(mf_device *device, const char *name)
{
    mf_operation operation = {.name = name,
                              .input_count = 1,
                              .output_count = 1,
                              .input_type = MF_I64,
                              .output_type = MF_I64,
                              .state_size = 8,
                              .commutative = 1,
                              .identity = identity,
                              .lift = lift,
                              .combine = combine,
                              .finish = finish};
    return mf_operation_define(device, &operation);
}

static void *define_and_fold(void *argument)
{
    const struct folder *me = argument;
    int64_t x[200], y = -1;
    int wrong = 0;
    for (int i = 0; i < 200; i++)
        x[i] = i;
    DLTensor in = mf_tensor(x, MF_I64, DIMS(200)), out = mf_tensor(&y, MF_I64, 0, NULL);
    for (int round = 0; round < 20; round++) {
        char name[32], expression[64];
        DLDataType type;
        snprintf(name, sizeof name, "total_%d_%d", me->number, round);
        snprintf(expression, sizeof expression, "%s(a)", name);
        wrong += define(me->device, name) != MF_OK;
        for (int again = 0; again < 20; again++)
            wrong += mf_fold_type(me->device, expression, 1, &in, 0, &type) != MF_OK;
        wrong += mf_fold(me->device, "i->", expression, &in, &out) != MF_OK || y != 199 * 100;
        wrong += define(me->device, name) != MF_ERROR_ARGUMENT;
    }
    return wrong ? argument : NULL;
}

static void *open_fold_close(void *argument)
{
    const struct folder *me = argument;
    int wrong = 0;
    for (int round = 0; round < 10; round++) {
        char name[16];
        mf_device *device = NULL;
        float y[ROWS], again[ROWS];
        snprintf(name, sizeof name, "cpu:%d", 1 + (me->number + round) % 5);
        DLTensor in = mf_tensor(source, MF_F32, DIMS(ROWS, 500)), out = mf_tensor(y, MF_F32, DIMS(ROWS));
        DLTensor other = mf_tensor(again, MF_F32, DIMS(ROWS));
        wrong += mf_device_open(name, &device) != MF_OK || !strstr(mf_device_describe(device), "cpu");
        if (!device)
            continue;
        wrong += mf_fold(device, "ij->i", "logsumexp(a)", &in, &out) != MF_OK;
        wrong += mf_fold(me->device, "ij->i", "logsumexp(a)", &in, &other) != MF_OK || memcmp(y, again, sizeof y) != 0;
        mf_device_close(device);
    }
    return wrong ? argument : NULL;
}

static void test_devices(mf_device *device)
{
    struct folder each[THREADS];
    for (int t = 0; t < THREADS; t++)
        each[t] = (struct folder){device, t};
    in_threads(fold, each, sizeof each[0], "one device");
    in_threads(define_and_fold, each, sizeof each[0], "operations");
    in_threads(open_fold_close, each, sizeof each[0], "devices");
    for (int i = 0; i < 20; i++) { /* opened and closed without any work */
        mf_device *idle;
        if (CHECK(mf_device_open(i % 2 ? "cpu:16" : "cpu:256", &idle) == MF_OK))
            mf_device_close(idle);
    }
}

/* ---- the same bits from 1, 2, 3 and 7 threads ---- */

static void test_counts(const char *modes, const char *expression, size_t outputs, int options_only, mf_device *shared)
{
    static const int counts[] = {1, 2, 3, 7};
    int64_t shape[2] = {outputs == ROWS ? ROWS : COLUMNS, COLUMNS};
    shape[0] = outputs == ROWS * COLUMNS ? ROWS : shape[0];
    DLTensor in = mf_tensor(source, MF_F32, DIMS(ROWS, COLUMNS));
    float *y[4];
    for (int c = 0; c < 4; c++) {
        char name[16];
        mf_options options = {NULL, 0, counts[c]};
        mf_device *device = shared;
        mf_plan *plan;
        y[c] = calloc(outputs, sizeof *y[c]);
        snprintf(name, sizeof name, "cpu:%d", counts[c]);
        DLTensor out = mf_tensor(y[c], MF_F32, outputs == 1 ? 0 : outputs == ROWS * COLUMNS ? 2 : 1, shape);
        if (!options_only && !CHECK(mf_device_open(name, &device) == MF_OK))
            continue;
        const void *inputs[1] = {source};
        void *pointers[1] = {y[c]};
        if (CHECK(mf_plan_create(device, modes, expression, &in, &out, &options, &plan) == MF_OK)) {
            CHECK(mf_plan_execute(plan, inputs, pointers, NULL) == MF_OK);
            mf_plan_destroy(plan);
        }
        if (!options_only)
            mf_device_close(device);
        CHECK_MSG(!memcmp(y[0], y[c], sizeof *y[c] * outputs), "%s %s: %d threads differ from 1", modes, expression,
                  counts[c]);
    }
    for (int c = 0; c < 4; c++)
        free(y[c]);
}

int main(void)
{
    mf_device *device;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        source[i] = value(i);
    if (mf_device_open("cpu:4", &device) != MF_OK)
        return 1;
    static const char *const reductions[] = {"sum(a)",       "mean(a)",   "var(a)",          "max(a)",
                                             "logsumexp(a)", "argmax(a)", "sum(a*a)+max(a)", "any(a>49)"};
    for (size_t e = 0; e < sizeof reductions / sizeof reductions[0]; e++) {
        test_one_plan(device, "ij->i", reductions[e], ROWS);
        test_one_plan(device, "ij->j", reductions[e], COLUMNS);
        test_one_plan(device, "ij->", reductions[e], 1);
        test_counts("ij->i", reductions[e], ROWS, 0, device);
        test_counts("ij->j", reductions[e], COLUMNS, 0, device);
        test_counts("ij->", reductions[e], 1, 1, device);
        test_counts("ij->", reductions[e], 1, 0, device);
    }
    test_one_plan(device, "ij->ij", "a*2+1", ROWS * COLUMNS);
    test_counts("ij->ij", "sqrt(abs(a))", ROWS * COLUMNS, 0, device);
    test_devices(device);
    mf_device_close(device);
    return check_done("test_threads");
}
