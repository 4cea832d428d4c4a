/* Solver multi in every form: random problems on "opencl:0" against the CPU's reference, bit for bit, each in a
 * random form; every form's kernel compiled for sm_90, without spills; and how a form is written.
 *
 * MODEFOLD_MULTI_COUNT says how many random problems (40; PoCL compiles a kernel for each), MODEFOLD_MULTI_SEED
 * which. */
#include "gpu_test.h"
#include "lists.h"
#include "verify.h"

static const char *const forms[] = {"naive", "merge", "online", "double", "swap", "shared"};
enum { FORMS = sizeof forms / sizeof forms[0], MOST_SPAN = 32 };

/* What is folded, of which type; results as the library types them. The last four keep their elements' order. */
static const struct fold {
    const char *expression, *type, *definition;
} folds[] = {
    {"sum(a)", "f32", NULL},
    {"sum(a)", "f64", NULL},
    {"sum(a)", "i32", NULL},
    {"max(a)", "f32", NULL},
    {"max(a)", "i8", NULL},
    {"sum(a*a)", "f16", NULL},
    {"argmin(a)", "f32", NULL},
    {"var(a); max(a)", "f32", NULL},
    {"logsumexp(a)", "f64", NULL},
    {"late(a)", "i32",
     "i64 late(x): identity m = 0 - 1000, n = 0; lift m = x, n = 1; combine m = max(m1, m2), n = where(m1 == m, n1, 0) "
     "+ where(m2 == m, n2, 0); finish n*7 + (m & 3)"},
    {"spread(a)", "f64",
     "f64 spread(x): identity n = 0, m = 0; lift n = 1, m = x; combine n = n1 + n2, m = m1 + (m2 - m1)*(n2/max(n,1)); "
     "finish m"},
    {"affine(a/8, a)", "f32",
     "f32 ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t; combine p = p1*p2, q = q1*p2 + q2; finish q"},
    {"digits(a)", "i16",
     "i64 ordered digits(x): identity v = 0, n = 1; lift v = x, n = 3; combine v = v1*n2 + v2, n = n1*n2; finish v"},
};
enum { FOLDS = sizeof folds / sizeof folds[0], ORDERED = FOLDS - 2 };

static struct verifier verifier;

static uint64_t state = 1;

static int below(int n)
{
    state ^= state << 13; /* Marsaglia's xorshift */
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

/* The number that verifier->ran has of the solver. */
static int number_of(const char *name)
{
    int s = 0;
    while (list_solver(kDLOpenCL, s) && strcmp(list_solver(kDLOpenCL, s), name) != 0)
        s++;
    return s;
}

static void check_line(const char *text)
{
    static struct problem_line line;
    static struct finding finding;
    char error[512] = "";
    int failed = problem_parse(text, &line, error, sizeof error) ||
                 problem_complete(verifier.reference, &line, error, sizeof error);
    if (!CHECK_MSG(!failed, "%s: %s", text, error))
        return;
    const long before = verifier.ran[number_of("multi")];
    if (!CHECK_MSG(verify_problem(&verifier, &line, &finding) == FINDING_NONE, "%s", text)) {
        verify_report(stderr, &line, &finding);
        return;
    }
    CHECK_MSG(verifier.ran[number_of("multi")] == before + 1, "%s did not run", text);
}

static int power_above(int n)
{
    int p = 1;
    while (p < n)
        p *= 2;
    return p;
}

/* Rows, columns, runs of neighbours, and windows that leave their tensor, of random length. */
static void write_problem(const struct fold *fold, int ordered, char *text, size_t size)
{
    static const int most[] = {4, 9, 33, 128};
    int length = 1 + below(most[below(4)]), rows = 1 + below(700), layout = below(4);
    if (!ordered && below(6) == 0)
        length += 128 + below(300);
    const int lanes = power_above(length < 128 ? length : 128), widest = lanes < MOST_SPAN ? lanes : MOST_SPAN;
    int span = widest >> below(3);
    span = span < 1 ? 1 : span < lanes / 16 ? lanes / 16 : span;
    int values = span >> below(4);
    values = values < 1 ? 1 : values > 8 ? 8 : values; /* more take PoCL long: tests/gpu_problems.txt has some */
    char modes[64], shape[64];
    switch (layout) {
    case 0:
        snprintf(modes, sizeof modes, "ij->i");
        snprintf(shape, sizeof shape, "%d,%d", rows, length);
        break;
    case 1:
        snprintf(modes, sizeof modes, "ij->j");
        snprintf(shape, sizeof shape, "%d,%d", length, rows);
        break;
    case 2:
        snprintf(modes, sizeof modes, "(i+j)->i with j=%d", length);
        snprintf(shape, sizeof shape, "%d", rows + length);
        break;
    default:
        snprintf(modes, sizeof modes, "(i+j-2)h->hi with j=%d", length);
        snprintf(shape, sizeof shape, "%d,3", rows + length);
    }
    snprintf(text, size, "%s | %s | a=%s[%s] | seed=%d solver=multi:%s:%d:%d:%d%s%s%s", modes, fold->expression,
             fold->type, shape, 1 + below(1000), forms[below(FORMS)], values, span, 1 + below(3),
             fold->definition ? " define=\"" : "", fold->definition ? fold->definition : "",
             fold->definition ? "\"" : "");
}

static void check_random(void)
{
    const char *count = getenv("MODEFOLD_MULTI_COUNT"), *seed = getenv("MODEFOLD_MULTI_SEED");
    const long problems = count && *count ? strtol(count, NULL, 10) : 40;
    char text[1024];
    state = seed && *seed ? strtoull(seed, NULL, 10) * 2 + 1 : 1;
    CHECK_MSG(number_of("multi") < VERIFY_SOLVERS - 1, "solver %d is multi, and verify counts %d", number_of("multi"),
              VERIFY_SOLVERS - 1);
    for (long i = 0; i < problems; i++) {
        const int f = (int)(i % FOLDS);
        write_problem(&folds[f], f >= ORDERED, text, sizeof text);
        check_line(text);
    }
}

static DLTensor tensor_of(const char *type, int ndim, const int64_t *shape, int kind)
{
    DLTensor t = mf_tensor(NULL, MF_F32, ndim, shape);
    list_type_named(type, &t.dtype);
    t.device.device_type = (DLDeviceType)kind;
    return t;
}

/* Status of a plan by this solver of sums of rows, for any device; "" or what the plan takes. */
static mf_status plan_sum(mf_device *device, const char *solver, const char *type, int64_t length, char *text,
                          size_t size)
{
    const int64_t shape[2] = {100000, length};
    const DLTensor in = tensor_of(type, 2, shape, mf_device_kind(device)),
                   out = tensor_of(type, 1, shape, mf_device_kind(device));
    const mf_options options = {.solver = solver};
    mf_plan *plan = NULL;
    mf_status status = mf_plan_create(device, "ij->i", "sum(a)", &in, &out, &options, &plan);
    snprintf(text, size, "%s", status == MF_OK ? mf_plan_describe(plan) : mf_error());
    mf_plan_destroy(plan);
    return status;
}

/* Every form with every number of outputs, as kernels for CUDA. */
static void check_compiled(void)
{
    mf_device *device;
    char solver[32], text[2048];
    if (mf_device_open("sm:90", &device) != MF_OK) {
        check_skip("every form for sm_90", mf_error());
        return;
    }
    gpu_test_keep_compiled(1);
    for (int f = 0; f < FORMS; f++)
        for (int values = 1; values <= 32; values *= 2)
            for (int wide = 0; wide < 2; wide++) {
                snprintf(solver, sizeof solver, "multi:%s:%d", forms[f], values);
                if (CHECK_MSG(plan_sum(device, solver, wide ? "f64" : "f32", 32, text, sizeof text) == MF_OK, "%s: %s",
                              solver, text))
                    CHECK_MSG(strstr(text, " 0 spilled"), "%s spills:\n%s", solver, text);
            }
    CHECK(plan_sum(device, "multi:swap:0:32", "f32", 4, text, sizeof text) == MF_ERROR_UNSUPPORTED &&
          strstr(text, "of 4 elements spans are from 1 to 4 threads"));
    gpu_test_keep_compiled(0);
    mf_device_close(device);
}

/* What is no form, and what does not go. */
static void check_mistakes(mf_device *device)
{
    static const struct {
        const char *solver;
        mf_status status;
        const char *sentence;
    } tests[] = {
        {"multi:merged", MF_ERROR_ARGUMENT, "solver multi has no form \"merged\""},
        {"multi:", MF_ERROR_ARGUMENT, "solver multi has no form \"\""},
        {"multi:swap: 4", MF_ERROR_ARGUMENT, "solver multi has no form \"swap: 4\""},
        {"multi:swap:3", MF_ERROR_ARGUMENT, "solver multi has no form \"swap:3\""},
        {"multi:swap:4:-8", MF_ERROR_ARGUMENT, "solver multi has no form \"swap:4:-8\""},
        {"multi:swap:4:8:2:1", MF_ERROR_ARGUMENT, "solver multi has no form \"swap:4:8:2:1\""},
        {"multi:swap:4:8:99999", MF_ERROR_ARGUMENT, "solver multi has no form"},
        {"multi:swap:16:8", MF_ERROR_UNSUPPORTED, "cannot fold 16 outputs in a span of 8 threads"},
        {"multi:swap:1:64", MF_ERROR_UNSUPPORTED, "spans are from 2 to 32 threads"},
        {"multi:swap:0:64", MF_ERROR_UNSUPPORTED, "cannot fold 32 outputs in a span of 64 threads"},
        {"multi:swap:1:1", MF_ERROR_UNSUPPORTED, "cannot fold 1 outputs in a span of 1 threads"},
        {"rows:swap", MF_ERROR_ARGUMENT, "solver rows has no forms and \"rows:swap\" asks for one"},
        {"multiple", MF_ERROR_ARGUMENT, "there is no solver \"multiple\""},
    };
    char text[2048];
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        const mf_status status = plan_sum(device, tests[i].solver, "f32", 32, text, sizeof text);
        CHECK_MSG(status == tests[i].status && strstr(text, tests[i].sentence), "%s: status %d, %s", tests[i].solver,
                  (int)status, text);
    }
    CHECK(plan_sum(device, "multi", "f32", 5000, text, sizeof text) == MF_ERROR_UNSUPPORTED); /* more than a tile */
    CHECK(plan_sum(device, "multi", "f32", 32, text, sizeof text) == MF_OK && strstr(text, "form double, 64 outputs"));
}

int main(void)
{
    gpu_test_environment("off");
    check_compiled();
    if (mf_device_open("opencl:0", &verifier.device[0]) != MF_OK) {
        check_skip("every form on opencl:0", mf_error());
        return check_done("test_gpu_multi");
    }
    verifier.device_count = 1;
    if (CHECK_MSG(mf_device_open("cpu", &verifier.reference) == MF_OK, "%s", mf_error())) {
        check_mistakes(verifier.device[0]);
        check_random();
    }
    mf_device_close(verifier.device[0]);
    mf_device_close(verifier.reference);
    return check_done("test_gpu_multi");
}
