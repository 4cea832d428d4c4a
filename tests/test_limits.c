/* Sizes, strides and window arithmetic near 2^63: MF_ERROR_OVERFLOW (or another status that fits) or a right answer,
 * never undefined behaviour (UBSan watches). */
#include "check.h"

#include <modefold.h>

static mf_device *cpu;
static float memory[64];

#define DIMS(...)                                                          \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]) \
    {                                                                      \
        __VA_ARGS__                                                        \
    }

static const int64_t most = INT64_MAX, least = INT64_MIN, half = (int64_t)1 << 62;

static const char *const solvers[] = {NULL, "map", "inner", "outer", "reference"};

/* Plans under every solver. want < 0: any status will do. Returns whether some solver takes it. */
static int plan_all(int want, const char *modes, const char *expression, const DLTensor *in, const DLTensor *out)
{
    int taken = 0;
    for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
        const mf_options options = {solvers[s], 0, 0};
        mf_plan *plan = NULL;
        mf_status status = mf_plan_create(cpu, modes, expression, in, out, &options, &plan);
        taken += status == MF_OK;
        CHECK((status == MF_OK) == (plan != NULL) && *(status == MF_OK ? mf_plan_describe(plan) : mf_error()));
        if (want >= 0 && status != MF_ERROR_UNSUPPORTED)
            CHECK_MSG((int)status == want, "%s %s: %s (%s)", modes, expression, mf_status_name(status), mf_error());
        mf_plan_destroy(plan);
    }
    return taken;
}

/* ---- tensors of enormous sizes ---- */

static void test_sizes(void)
{
    const int64_t sizes[] = {
        most, most - 1, most - 4096, half, half - 1, (int64_t)1 << 61, (int64_t)1 << 50, (int64_t)1 << 32, 3037000500};
    static const mf_type types[] = {MF_I8, MF_F16, MF_F32, MF_F64};
    static const char *const expressions[] = {"sum(a)", "mean(a)",  "var(a);max(a)", "argmax(a)", "logsumexp(a)",
                                              "any(a)", "count(a)", "sum(a*2+1)",    "a+1",       "a*a-a"};
    int64_t zero[2] = {0, 0};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t t = 0; t < 4; t++) {
            int64_t shape[2] = {sizes[s], sizes[s]};
            DLTensor in = mf_tensor(memory, types[t], 1, shape), row = mf_tensor(memory, MF_F32, 1, shape);
            DLTensor square = mf_tensor(memory, types[t], 2, shape), one = mf_tensor(memory, MF_F32, 0, NULL);
            DLTensor out[2] = {one, one}, rows[2] = {row, row};
            in.strides = square.strides = zero;
            for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++) {
                int map = expressions[e][0] == 'a' && (expressions[e][1] == '+' || expressions[e][1] == '*');
                if (!map)
                    plan_all(-1, "i->", expressions[e], &in, out);
                plan_all(-1, "i->i", expressions[e], &in, rows);
                plan_all(-1, "ij->i", expressions[e], &square, rows);
                plan_all(-1, "ij->ij", expressions[e], &square, (DLTensor[]){square, square});
                plan_all(-1, "i,j->ij", "a+b", (DLTensor[]){in, in}, &square);
            }
        }
}

static void test_products(void)
{
    DLTensor one = mf_tensor(memory, MF_F32, 0, NULL);
    int64_t zero[3] = {0, 0, 0};
    DLTensor cube = mf_tensor(memory, MF_F32, DIMS(half, 2, 1));
    cube.strides = zero;
    plan_all(MF_ERROR_OVERFLOW, "ijk->", "sum(a)", &cube, &one); /* 2^63 */
    plan_all(MF_ERROR_OVERFLOW, "ijk->ij", "a+1", &cube, (DLTensor[]){mf_tensor(memory, MF_F32, DIMS(half, 2))});
    DLTensor dense = mf_tensor(memory, MF_F32, DIMS((int64_t)1 << 31, (int64_t)1 << 32));
    plan_all(MF_ERROR_OVERFLOW, "ij->", "sum(a)", &dense, &one);
    DLTensor bytes = mf_tensor(memory, MF_F64, DIMS((int64_t)1 << 60));
    plan_all(MF_ERROR_OVERFLOW, "i->", "sum(a)", &bytes, &one); /* 2^63 bytes */
    DLTensor none = mf_tensor(NULL, MF_F32, DIMS(0, most, most));
    int64_t shape[MF_MAX_RANK];
    int ndim = 0;
    CHECK(mf_fold_shape("ijk->kj", 1, &none, &ndim, shape) == MF_OK && ndim == 2 && shape[0] == most);
    /* empty whatever the other sizes */
    plan_all(MF_OK, "ijk->", "sum(a)", &none, &one);
    plan_all(MF_OK, "ijk->i", "sum(a)", &none, (DLTensor[]){mf_tensor(memory, MF_F32, DIMS(0))});
    plan_all(MF_OK, "ijk->ijk", "a+1", &none, &none);
    plan_all(MF_OK, "ijk->kij", "sum(a)", &none, (DLTensor[]){mf_tensor(memory, MF_F32, DIMS(most, 0, most))});
    plan_all(MF_ERROR_EMPTY, "ijk->", "mean(a)", &none, &one);
    plan_all(MF_ERROR_OVERFLOW, "ijk->jk", "sum(a)", &none, (DLTensor[]){mf_tensor(memory, MF_F32, DIMS(most, most))});
    DLTensor wide = mf_tensor(NULL, MF_F32, DIMS((int64_t)1 << 40, (int64_t)1 << 40, 0)), row = none;
    row.shape = (int64_t[]){0};
    row.ndim = 1;
    plan_all(MF_OK, "ijk->", "sum(a)", &wide, &one);
    plan_all(MF_OK, "ijk->k", "mean(a);argmax(a)", &wide, (DLTensor[]){row, row});
    plan_all(MF_ERROR_OVERFLOW, "ijk->k", "sum(a)", &none, (DLTensor[]){mf_tensor(memory, MF_F32, DIMS(most))});
    memory[0] = 7;
    CHECK(mf_fold(cpu, "ijk->", "sum(a)", &none, &one) == MF_OK && memory[0] == 0);
    memory[0] = 7;
    CHECK(mf_fold(cpu, "ijk->", "sum(a)", &wide, &one) == MF_OK && memory[0] == 0);
    CHECK(mf_fold(cpu, "ijk->k", "mean(a)", &wide, &row) == MF_OK && memory[0] == 0);
}

/* ---- strides ---- */

static void test_strides(void)
{
    const int64_t strides[] = {most, least, least + 1, half, -half, most / 4, most / 4 + 1, most / 8, -most / 8 - 2};
    static const mf_type types[] = {MF_U8, MF_F32, MF_F64};
    for (size_t s = 0; s < sizeof strides / sizeof strides[0]; s++)
        for (size_t t = 0; t < 3; t++)
            for (int64_t n = 0; n < 4; n++) {
                int64_t shape[2] = {n, n}, two[2] = {strides[s], strides[(s + 3) % 9]};
                DLTensor in = mf_tensor(memory, types[t], 2, shape), out = mf_tensor(memory, types[t], 2, shape);
                DLTensor one = mf_tensor(memory + 32, MF_F32, 0, NULL), plain = mf_tensor(memory, types[t], 2, shape);
                in.strides = out.strides = two;
                int fits = n < 2 ? MF_OK : -1;
                plan_all(fits, "ij->", "sum(a)", &in, &one);
                plan_all(fits, "ij->ij", "a+1", &in, &plain);
                plan_all(fits, "ij->ij", "a+1", &plain, &out);
                plan_all(fits, "ij->ji", "a+1", &out, &out);
                plan_all(-1, "ii->i", "a", &in, (DLTensor[]){mf_tensor(memory, MF_F32, 1, shape)});
                plan_all(-1, "(i+j-1)k->ik with j=3", "max(a)", &in, &plain);
                if (n == 1) { /* the stride of one element says nothing */
                    memory[0] = 5;
                    DLTensor f = mf_tensor(memory, MF_F32, 2, shape), to = mf_tensor(memory + 1, MF_F32, 2, shape);
                    f.strides = to.strides = two;
                    CHECK(mf_fold(cpu, "ij->ij", "a+1", &f, &to) == MF_OK && memory[1] == 6);
                    CHECK(mf_fold(cpu, "ij->ji", "sum(a)+a", &f, &to) == MF_OK && memory[1] == 10);
                }
            }
    /* Two elements half the address space apart: planned, but not executed on such memory. */
    int64_t far[1] = {most / 4};
    DLTensor in = mf_tensor(memory, MF_F32, DIMS(2)), one = mf_tensor(memory, MF_F32, 0, NULL);
    in.strides = far;
    plan_all(-1, "i->", "sum(a)", &in, &one);
    far[0] = half;
    plan_all(MF_ERROR_OVERFLOW, "i->", "sum(a)", &in, &one);
    far[0] = -half;
    plan_all(MF_ERROR_OVERFLOW, "i->", "sum(a)", &in, &one);
}

/* Elements far apart: the overlap check must not overflow, and refuses before anything is read. */
static void test_distances(void)
{
    int64_t strides[1] = {-(most / 16)}, shape[1] = {8};
    DLTensor in = mf_tensor(memory, MF_F32, 1, shape), out = mf_tensor(memory, MF_F32, 1, shape);
    in.strides = strides;
    mf_plan *plan;
    if (mf_plan_create(cpu, "i->i", "a", &in, &out, NULL, &plan) != MF_OK)
        return;
    const void *inputs[1] = {memory};
    void *outputs[1] = {memory};
    CHECK(mf_plan_execute(plan, inputs, outputs, NULL) == MF_ERROR_OVERLAP);
    mf_plan_destroy(plan);
    strides[0] = most / 32;
    CHECK(mf_plan_create(cpu, "i->i", "a", &out, &in, NULL, &plan) == MF_OK);
    CHECK(mf_plan_execute(plan, inputs, outputs, NULL) == MF_ERROR_OVERLAP);
    mf_plan_destroy(plan);
}

/* ---- windows ---- */

static void test_windows(void)
{
    static const struct {
        const char *modes;
        int want; /* -1: any */
    } cases[] = {
        {"(i+j)-> with i=9223372036854775807,j=9223372036854775807", MF_ERROR_OVERFLOW},
        {"(i+j)-> with i=9223372036854775807,j=1", -1},
        {"(i)-> with i=9223372036854775807", -1},
        {"(9223372036854775807i)-> with i=9223372036854775807", MF_ERROR_OVERFLOW},
        {"(9223372036854775807i)-> with i=1", MF_OK},
        {"(9223372036854775807i)-> with i=2", -1},
        {"(9223372036854775807i)-> with i=3", MF_ERROR_OVERFLOW},
        {"(-9223372036854775807i)-> with i=2", -1},
        {"(-9223372036854775807i-1)-> with i=2", -1},
        {"(-9223372036854775807i-2)-> with i=2", MF_ERROR_OVERFLOW},
        {"(i-9223372036854775807)-> with i=1", -1},
        {"(i+9223372036854775807)-> with i=1", -1},
        {"(i+9223372036854775807)-> with i=2", MF_ERROR_OVERFLOW},
        {"(i-9223372036854775807-1)-> with i=2", -1},
        {"(i-9223372036854775807-2)-> with i=2", MF_ERROR_OVERFLOW},
        {"(4611686018427387904i+4611686018427387904j)-> with i=2,j=2", MF_ERROR_OVERFLOW},
        {"(4611686018427387904i-4611686018427387904j)-> with i=2,j=2", -1},
        {"(4611686018427387904i)-> with i=2", -1},
        {"(2305843009213693952i)-> with i=4", -1},
        {"(i+j)-> with i=9223372036854775806,j=2", -1},
        {"(i+j)-> with i=0,j=9223372036854775807", -1},
        {"(9223372036854775807i+9223372036854775807i)-> with i=1", MF_ERROR_OVERFLOW},
        {"(9223372036854775808i)->", MF_ERROR_OVERFLOW},
        {"(i)-> with i=9223372036854775808", MF_ERROR_OVERFLOW},
    };
    static const int64_t extents[] = {4, 1, 0};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t e = 0; e < 3; e++) {
            DLTensor in = mf_tensor(memory, MF_F32, 1, &extents[e]), one = mf_tensor(memory + 8, MF_F32, 0, NULL);
            plan_all(e || cases[c].want == MF_OK ? -1 : cases[c].want, cases[c].modes, "sum(a)", &in, &one);
            in.strides = (int64_t[]){most / 8};
            plan_all(-1, cases[c].modes, "max(a);argmax(a)", &in, (DLTensor[]){one, one});
        }
}

/* Windows of which a part is far outside of the tensor have right answers where they are small. */
static void test_far_windows(void)
{
    for (int i = 0; i < 4; i++)
        memory[i] = (float)(1 << i);
    DLTensor in = mf_tensor(memory, MF_F32, DIMS(4)), one = mf_tensor(memory + 8, MF_F32, 0, NULL);
    static const struct {
        const char *modes;
        float want;
    } cases[] = {
        {"(1000000000000i)-> with i=5", 1},
        {"(1000000000000i+j)-> with i=3,j=2", 3},
        {"(i-1000000000000)-> with i=4", 0},
        {"(i+1000000000000)-> with i=4", 0},
        {"(1000000000000i-1000000000000)-> with i=3", 1},
        {"(3-1000000000000i)-> with i=3", 8},
        {"(1000000i+j-1000000)-> with i=3,j=9", 15},
        {"(2i-3)-> with i=1", 0},
        {"(2i+3)-> with i=1", 8},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        memory[8] = -1;
        mf_status status = mf_fold(cpu, cases[c].modes, "sum(a)", &in, &one);
        CHECK_MSG(status == MF_OK && memory[8] == cases[c].want, "%s: %g, not %g (%s)", cases[c].modes, memory[8],
                  cases[c].want, mf_status_name(status));
    }
}

static void test_inference(void)
{
    static const struct {
        const char *modes;
        int64_t extent, want; /* -1: MF_ERROR_OVERFLOW, -2: MF_ERROR_SHAPE */
    } cases[] = {
        {"(i)->i", INT64_MAX, INT64_MAX},
        {"(i-1)->i", INT64_MAX, -1},
        {"(i-1)->i", INT64_MAX - 1, -1},
        {"(i-1)->i", INT64_MAX - 2, INT64_MAX},
        {"(i-2)->i", INT64_MAX - 4, INT64_MAX},
        {"(2i)->i", INT64_MAX, INT64_MAX / 2 + 1},
        {"(2i+1)->i", INT64_MAX, INT64_MAX / 2},
        {"(i+1)->i", 0, 0},
        {"(i+9223372036854775807)->i", 5, 0},
        {"(i-9223372036854775807)->i", 0, -1},
        {"(i-9223372036854775807-1)->i", 5, -1},
        {"(9223372036854775807i)->i", 5, 1},
        {"(9223372036854775807i)->i", 0, 0},
        {"(i+j)->i with j=9223372036854775807", 5, 0},
        {"(i-j)->i with j=9223372036854775807", 0, INT64_MAX - 1},
        {"(i+j+j)->i with j=9223372036854775807", 5, -1},
        {"(-9223372036854775807i)->i", 5, -2},
        {"(0i)->i", 5, -2},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        int ndim = 0;
        int64_t shape[MF_MAX_RANK] = {0};
        DLTensor in = mf_tensor(NULL, MF_F32, 1, &cases[c].extent);
        mf_status status = mf_fold_shape(cases[c].modes, 1, &in, &ndim, shape);
        mf_status want = cases[c].want == -1 ? MF_ERROR_OVERFLOW : cases[c].want == -2 ? MF_ERROR_SHAPE : MF_OK;
        CHECK_MSG(status == want && (status != MF_OK || shape[0] == cases[c].want), "%s of %lld: %s, %lld (not %lld)",
                  cases[c].modes, (long long)cases[c].extent, mf_status_name(status), (long long)shape[0],
                  (long long)cases[c].want);
    }
}

/* ---- numbers in expressions; long texts ---- */

static void test_expressions(void)
{
    int64_t x = 1, y = 0;
    DLTensor in = mf_tensor(&x, MF_I64, 0, NULL), out = mf_tensor(&y, MF_I64, 0, NULL);
    CHECK(mf_fold(cpu, "->", "a*9223372036854775807", &in, &out) == MF_OK && y == most);
    CHECK(mf_fold(cpu, "->", "-a*9223372036854775807-1", &in, &out) == MF_OK && y == least);
    CHECK(mf_fold(cpu, "->", "a*9223372036854775808", &in, &out) == MF_ERROR_EXPRESSION && y == least);
    CHECK(mf_fold(cpu, "->", "var(a,9223372036854775807)", &in, &out) == MF_OK);
    CHECK(mf_fold(cpu, "->", "a<<9223372036854775807", &in, &out) == MF_OK && y == 0);
    CHECK(mf_fold(cpu, "->", "a+1e999", &in, &out) == MF_OK && y == most);
    CHECK(mf_fold(cpu, "->", "a+1e-999", &in, &out) == MF_OK && y == 1);
}

static char *repeat(const char *first, const char *again, int times, const char *last)
{
    size_t n = strlen(again);
    char *text = malloc(strlen(first) + n * (size_t)times + strlen(last) + 1), *at = text;
    at += sprintf(at, "%s", first);
    for (int i = 0; i < times; i++, at += n)
        memcpy(at, again, n);
    sprintf(at, "%s", last);
    return text;
}

/* Long and deep texts are refused, whatever their length: the stack does not grow with them. */
static void test_long_texts(void)
{
    static const struct {
        const char *first, *again, *last;
        int want[2]; /* for 150 and for 300,000 times; -1: any */
    } cases[] = {
        {"", "(", "a", {MF_ERROR_EXPRESSION, MF_ERROR_EXPRESSION}},
        {"a", "+a", "", {-1, -1}},
        {"a", "+1-a*2", "", {-1, MF_ERROR_EXPRESSION}},
        {"", "-", "a", {MF_OK, MF_ERROR_EXPRESSION}},
        {"", "~", "i32(a)", {MF_OK, MF_ERROR_EXPRESSION}},
        {"a", "**a", "", {-1, MF_ERROR_EXPRESSION}},
        {"a", "**-a", "", {-1, MF_ERROR_EXPRESSION}},
        {"a", ";a", "", {MF_ERROR_EXPRESSION, MF_ERROR_EXPRESSION}},
        {"", "abs(", "a", {MF_ERROR_EXPRESSION, MF_ERROR_EXPRESSION}},
        {"", "max(a,", "a", {MF_ERROR_EXPRESSION, MF_ERROR_EXPRESSION}},
        {"", "x", "(a)", {MF_ERROR_EXPRESSION, MF_ERROR_EXPRESSION}},
        {"a+", "9", "", {MF_ERROR_EXPRESSION, MF_ERROR_EXPRESSION}},
        {"a+0.", "1", "", {MF_OK, MF_OK}},
        {"", " ", "a", {MF_OK, MF_OK}},
    };
    float x = 1, y = 0;
    DLTensor in = mf_tensor(&x, MF_F32, 0, NULL), out = mf_tensor(&y, MF_F32, 0, NULL);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int l = 0; l < 2; l++) {
            char *text = repeat(cases[c].first, cases[c].again, l ? 300000 : 150, cases[c].last);
            mf_status status = mf_fold(cpu, "->", text, &in, &out);
            CHECK_MSG(cases[c].want[l] < 0 || (int)status == cases[c].want[l], "%.20s... : %s", text,
                      mf_status_name(status));
            CHECK(status == MF_OK || strlen(mf_error()) < 500);
            free(text);
        }
    static const char *const modes[][3] = {
        {"", "i", "->"},   {"i", ",i", "->i"}, {"(i", "+i", ")->"}, {"(", "9", "i)->"}, {"i->i with i=1", ",i=1", ""},
        {"", " ", "i->i"}, {"", "(", "i->"},   {"(i", "+1", ")->"}, {"i->", "i", ""},   {"i->i", " with", ""}};
    for (size_t c = 0; c < sizeof modes / sizeof modes[0]; c++) {
        char *text = repeat(modes[c][0], modes[c][1], 300000, modes[c][2]);
        DLTensor many[20];
        int64_t single[1] = {1};
        for (int i = 0; i < 20; i++)
            many[i] = mf_tensor(&x, MF_F32, 1, single);
        mf_status status = mf_fold(cpu, text, "sum(a)", many, &out);
        CHECK_MSG(status == MF_OK || (strlen(mf_error()) > 8 && strlen(mf_error()) < 500), "%.20s", text);
        free(text);
    }
}

int main(void)
{
    if (mf_device_open("cpu:2", &cpu) != MF_OK)
        return 1;
    test_sizes();
    test_products();
    test_strides();
    test_distances();
    test_windows();
    test_far_windows();
    test_inference();
    test_expressions();
    test_long_texts();
    mf_device_close(cpu);
    return check_done("test_limits");
}
