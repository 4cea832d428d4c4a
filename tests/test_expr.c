/* Expressions: types by NumPy's promotion rules (compared with NumPy itself where it is installed), precedence,
 * literals, casts, ^, every map on small cases, and what is wrong with the expressions that are refused. */
#include "check.h"

#include <locale.h>
#include <math.h>
#include <modefold.h>

static mf_device *cpu;

#define F64(...)     \
    (const double[]) \
    {                \
        __VA_ARGS__  \
    }

/* ---- types ---- */

enum { TYPES = 15 };
static const mf_type types[TYPES] = {MF_BOOL, MF_I8,  MF_I16, MF_I32, MF_I64,  MF_U8,      MF_U16,    MF_U32,
                                     MF_U64,  MF_F16, MF_F32, MF_F64, MF_BF16, MF_F8_E4M3, MF_F8_E5M2};
enum { NUMPY_TYPES = 12 }; /* the first ones */

static const char *type_of(const char *expression, mf_type a, mf_type b)
{
    DLTensor in[2] = {mf_tensor(NULL, a, 0, NULL), mf_tensor(NULL, b, 0, NULL)};
    DLDataType type;
    return mf_fold_type(cpu, expression, 2, in, 0, &type) == MF_OK ? mf_type_name(type) : "error";
}

/* Expressions and NumPy's for the same; %s is NumPy's name of the first and the second operand's type. */
static const struct {
    const char *ours, *numpy;
} pairs[] = {
    /* clang-format off */
    {"a+b", "a + b"}, {"a*b", "a * b"},
    {"a-b", "np.subtract(a, b) if a.dtype != bool or b.dtype != bool else np.int64([0])"}, {"a/b", "a / b"},
    {"max(a,b)", "np.maximum(a, b)"}, {"min(a,b)", "np.minimum(a, b)"}, {"a<b", "a < b"}, {"a==b", "a == b"},
    {"a!=b", "a != b"}, {"where(a,a,b)", "np.where(a, a, b)"}, {"a&b", "a & b"}, {"a|b", "a | b"},
    {"(a^b)", "a ^ b if a.dtype.kind != 'f' and b.dtype.kind != 'f' else a ** b"},
    {"abs(a)", "np.abs(a)"}, {"a//b", "a // b"}, {"a%b", "a % b"}, {"a**b", "a ** b"}, {"a<<b", "a << b"},
    {"a>>b", "a >> b"}, {"sqrt(a)", "np.sqrt(a)"}, {"exp(a)", "np.exp(a)"},
    {"log(a)", "np.log(a)"}, {"tanh(a)", "np.tanh(a)"}, {"isnan(a)", "np.isnan(a)"}, {"isfinite(a)", "np.isfinite(a)"},
    {"~a", "~a"}, {"floor(a)", "np.floor(a) if a.dtype.kind == 'f' else a"},
    {"ceil(a)", "np.ceil(a) if a.dtype.kind == 'f' else a"}, {"sum(a)", "a.sum()"},
    {"trunc(a)", "np.trunc(a) if a.dtype.kind == 'f' else a"},
    {"round(a)", "np.round(a) if a.dtype.kind == 'f' else a"},
    {"prod(a)", "a.prod()"}, {"max(a)", "a.max()"}, {"min(a)", "a.min()"}, {"mean(a)", "a.mean()"},
    {"var(a)", "a.var()"}, {"std(a)", "a.std()"}, {"any(a)", "a.any()"}, {"all(a)", "a.all()"},
    {"argmax(a)", "a.argmax()"}, {"argmin(a)", "a.argmin()"}, {"count(a)", "np.int64(np.count_nonzero(a))"},
    {"and(a)", "np.bitwise_and.reduce(a)"}, {"or(a)", "np.bitwise_or.reduce(a)"},
    {"xor(a)", "np.bitwise_xor.reduce(a)"}, {"a+1", "a + 1"}, {"a*1.5", "a * 1.5"}, {"a<1", "a < 1"},
    {"sum(a*b)", "(a * b).sum()"}, {"mean(a)+b", "a.mean(keepdims=True) + b"}, {"f32(a)", "a.astype(np.float32)"},
    {"i8(a)+b", "a.astype(np.int8) + b"},
    /* clang-format on */
};

/* What NumPy refuses may have a type here: arithmetic of bool counts 0 and 1. A NumPy before 2.0 looks at a literal's
 * value when it meets an integer; here 1.5 makes f64 of every integer, as in NumPy 2. */
static int differs_on_purpose(const char *ours, const char *a, const char *numpy)
{
    return !strcmp(numpy, "error") || (!strcmp(ours, "a*1.5") && a[0] != 'f');
}

static FILE *numpy_types(void)
{
    FILE *script = fopen("numpy_types.py", "w");
    if (!script)
        return NULL;
    fprintf(script, "import numpy as np, warnings\nwarnings.simplefilter('ignore')\nnp.seterr(all='ignore')\n"
                    "names = 'bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64'.split()\n"
                    "def short(t):\n"
                    "    n = np.dtype(t).name\n"
                    "    return n.replace('uint', 'u').replace('int', 'i').replace('float', 'f')\n"
                    "def ask(f):\n"
                    "    for x in names:\n"
                    "        for y in names:\n"
                    "            try:\n"
                    "                print(short(f(np.ones(1, x), np.ones(1, y)).dtype))\n"
                    "            except TypeError:\n"
                    "                print('error')\n");
    for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++)
        fprintf(script, "ask(lambda a, b: %s)\n", pairs[p].numpy);
    fclose(script);
    return popen("/usr/bin/python3 numpy_types.py 2>&1", "r");
}

static void test_numpy_types(void)
{
    FILE *numpy = numpy_types();
    char theirs[128];
    int compared = 0;
    for (size_t p = 0; numpy && p < sizeof pairs / sizeof pairs[0]; p++)
        for (int a = 0; a < NUMPY_TYPES; a++)
            for (int b = 0; b < NUMPY_TYPES; b++) {
                if (fscanf(numpy, "%127s", theirs) != 1 || strlen(theirs) > 5) {
                    check_skip("comparison with NumPy's types", compared ? "it stopped" : "there is no NumPy");
                    pclose(numpy);
                    return;
                }
                const char *name = mf_type_name(mf_dtype(types[a])), *ours = type_of(pairs[p].ours, types[a], types[b]);
                compared++;
                CHECK_MSG(!strcmp(ours, theirs) || differs_on_purpose(pairs[p].ours, name, theirs),
                          "%s of %s and %s is %s, in NumPy %s", pairs[p].ours, name, mf_type_name(mf_dtype(types[b])),
                          ours, theirs);
            }
    if (numpy)
        pclose(numpy);
    remove("numpy_types.py");
}

/* What NumPy does not know, and what must hold without it. */
static void test_own_types(void)
{
    static const struct {
        const char *expression;
        mf_type a, b;
        const char *want;
    } cases[] = {
        /* clang-format off */
        {"a+b", MF_BF16, MF_BF16, "bf16"}, {"a+b", MF_BF16, MF_F16, "f32"}, {"a+b", MF_BF16, MF_F32, "f32"},
        {"a+b", MF_BF16, MF_I8, "bf16"}, {"a+b", MF_BF16, MF_I16, "f32"}, {"a+b", MF_BF16, MF_I64, "f64"},
        {"a+b", MF_F8_E4M3, MF_F8_E5M2, "f32"}, {"a+b", MF_F8_E4M3, MF_F16, "f16"},
        {"a+b", MF_F8_E5M2, MF_BF16, "bf16"}, {"a+b", MF_F8_E4M3, MF_F8_E4M3, "f8e4m3"},
        {"a*b", MF_F8_E4M3, MF_BOOL, "f8e4m3"}, {"a+b", MF_F8_E4M3, MF_F64, "f64"},
        {"sum(a)", MF_BF16, MF_F32, "bf16"}, {"exp(a)", MF_F8_E5M2, MF_F32, "f8e5m2"},
        {"mean(a)", MF_BF16, MF_F32, "bf16"}, {"a+1", MF_BF16, MF_F32, "bf16"},
        {"a*0.5", MF_F8_E4M3, MF_F32, "f8e4m3"}, {"a<b", MF_BF16, MF_F8_E4M3, "bool"}, {"a+1", MF_U8, MF_F32, "u8"},
        {"a+1", MF_I16, MF_F32, "i16"}, {"a+300", MF_U8, MF_F32, "u8"}, {"a+1.5", MF_I8, MF_F32, "f64"},
        {"a+1", MF_BOOL, MF_F32, "i64"}, {"a+inf", MF_F16, MF_F32, "f16"}, {"1+2", MF_I8, MF_I8, "i64"},
        {"1+2.0", MF_I8, MF_I8, "f64"}, {"2*3+a", MF_I8, MF_I8, "i8"}, {"a*(1+1.0)", MF_F16, MF_I8, "f16"},
        {"1<2", MF_I8, MF_I8, "bool"}, {"where(a>b,1,2)", MF_I8, MF_I8, "i64"}, {"where(a>b,a,2)", MF_I8, MF_I8, "i8"},
        {"where(b,a,0.5)", MF_F32, MF_I8, "f32"}, {"logsumexp(a)", MF_I8, MF_I8, "f64"},
        {"logsumexp(a)", MF_F16, MF_I8, "f16"}, {"norm(a)", MF_I8, MF_I8, "f64"}, {"norm(a)", MF_F16, MF_I8, "f16"},
        {"popcount(a)", MF_I64, MF_I8, "i64"}, {"relu(a)", MF_I8, MF_I8, "i8"}, {"leaky(a)", MF_F32, MF_I8, "f32"},
        {"leaky(a)", MF_I8, MF_I8, "f64"}, {"sigmoid(a)", MF_I8, MF_I8, "f16"}, {"sigmoid(a)", MF_I16, MF_I8, "f32"},
        {"fma(a,a,a)", MF_F16, MF_I8, "f16"}, {"i64(a)", MF_F16, MF_I8, "i64"}, {"bf16(a)+b", MF_I64, MF_F32, "f32"},
        {"bool(a)", MF_F16, MF_I8, "bool"}, {"f8e5m2(a)", MF_F16, MF_I8, "f8e5m2"}, {"a-b", MF_BOOL, MF_BOOL, "i64"},
        {"-a", MF_BOOL, MF_BOOL, "i64"}, {"sign(a)", MF_BOOL, MF_BOOL, "i64"}, {"relu(a)", MF_BOOL, MF_BOOL, "bool"},
        {"popcount(a)", MF_BOOL, MF_BOOL, "i64"}, {"abs(a>b)", MF_F32, MF_F32, "bool"},
        {"fma(a,a,b)", MF_BOOL, MF_BOOL, "f64"}, {"leaky(a)", MF_BOOL, MF_BOOL, "f64"},
        {"sum(a>b)", MF_F32, MF_F32, "i64"}, {"a<<1", MF_U8, MF_U8, "u8"},
        {"a>>b", MF_I8, MF_I16, "i16"}, {"a//b", MF_I8, MF_I8, "i8"}, {"a%b", MF_F16, MF_I8, "f16"},
        {"a**b", MF_I8, MF_I8, "i8"}, {"a//b", MF_U64, MF_I64, "f64"}, {"sum(a)*0.5", MF_I8, MF_I8, "f64"},
        /* clang-format on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const char *ours = type_of(cases[c].expression, cases[c].a, cases[c].b);
        CHECK_MSG(!strcmp(ours, cases[c].want), "%s of %s and %s is %s, not %s", cases[c].expression,
                  mf_type_name(mf_dtype(cases[c].a)), mf_type_name(mf_dtype(cases[c].b)), ours, cases[c].want);
    }
    for (int a = 0; a < TYPES; a++)
        for (int b = 0; b < TYPES; b++) {
            char name[16];
            snprintf(name, sizeof name, "%s", type_of("a+b", types[a], types[b]));
            CHECK_MSG(!strcmp(name, type_of("b+a", types[a], types[b])), "a+b and b+a of %s and %s differ",
                      mf_type_name(mf_dtype(types[a])), mf_type_name(mf_dtype(types[b])));
        }
}

/* ---- maps ---- */

/* Equal, two NaNs are equal, and 0 is not -0. */
static int same(double a, double b)
{
    return a != a ? b != b : a == b && !signbit(a) == !signbit(b);
}

/* Folds with the map solver and with the reference solver: the bytes must be the same. */
static int fold_all(const char *modes, const char *expression, const DLTensor *in, const DLTensor *out, void *result,
                    size_t bytes)
{
    static const char *const solvers[2] = {"map", "reference"};
    char first[64] = {0};
    for (int s = 0; s < 2; s++) {
        const mf_options options = {solvers[s], 0, 0};
        const void *inputs[2] = {in[0].data, in[1].data};
        void *outputs[1] = {result};
        mf_plan *plan;
        mf_status status = mf_plan_create(cpu, modes, expression, in, out, &options, &plan);
        if (!CHECK_MSG(status == MF_OK, "%s: %s", expression, mf_error()))
            return 0;
        memset(result, 0x5a, bytes);
        CHECK(mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK);
        mf_plan_destroy(plan);
        CHECK_MSG(!s || !memcmp(first, result, bytes), "%s: the reference differs", expression);
        memcpy(first, result, bytes);
    }
    return 1;
}

static void check_map(const char *expression, int n, const double *a, const double *b, const double *want)
{
    double y[8] = {0};
    int64_t shape[1] = {n};
    DLTensor in[2] = {mf_tensor(a, MF_F64, 1, shape), mf_tensor(b, MF_F64, 1, shape)};
    DLTensor out = mf_tensor(y, MF_F64, 1, shape);
    if (!fold_all("i,i->i", expression, in, &out, y, sizeof *y * (size_t)n))
        return;
    for (int i = 0; i < n; i++)
        CHECK_MSG(same(y[i], want[i]), "%s of %g and %g gives %.17g, not %.17g", expression, a[i], b[i], y[i], want[i]);
}

static void test_float_maps(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double *a = F64(7, -7, 7, -7, 0, nan, inf, -0.0), *b = F64(2, 2, -2, -2, 0, 1, 2, 1);
    check_map("a+b", 8, a, b, F64(9, -5, 5, -9, 0, nan, inf, 1));
    check_map("a-b", 8, a, b, F64(5, -9, 9, -5, 0, nan, inf, -1));
    check_map("a*b", 8, a, b, F64(14, -14, -14, 14, 0, nan, inf, -0.0));
    check_map("a/b", 8, a, b, F64(3.5, -3.5, -3.5, 3.5, nan, nan, inf, -0.0));
    check_map("a//b", 4, a, b, F64(3, -4, -4, 3));
    check_map("a%b", 4, a, b, F64(1, 1, -1, -1));
    check_map("-a", 8, a, b, F64(-7, 7, -7, 7, -0.0, nan, -inf, 0));
    check_map("abs(a)", 8, a, b, F64(7, 7, 7, 7, 0, nan, inf, 0));
    check_map("sign(a)", 7, a, b, F64(1, -1, 1, -1, 0, nan, 1));
    check_map("min(a,b)", 7, a, b, F64(2, -7, -2, -7, 0, nan, 2));
    check_map("max(a,b)", 7, a, b, F64(7, 2, 7, -2, 0, nan, inf));
    check_map("a<b", 8, a, b, F64(0, 1, 0, 1, 0, 0, 0, 1));
    check_map("a<=b", 8, a, b, F64(0, 1, 0, 1, 1, 0, 0, 1));
    check_map("a>b", 8, a, b, F64(1, 0, 1, 0, 0, 0, 1, 0));
    check_map("a>=b", 8, a, b, F64(1, 0, 1, 0, 1, 0, 1, 0));
    check_map("a==b", 8, a, b, F64(0, 0, 0, 0, 1, 0, 0, 0));
    check_map("a!=b", 8, a, b, F64(1, 1, 1, 1, 0, 1, 1, 1));
    check_map("where(a,b,9)", 8, a, b, F64(2, 2, -2, -2, 9, 1, 2, 9));
    check_map("relu(a)", 8, a, b, F64(7, 0, 7, 0, 0, nan, inf, 0));
    check_map("leaky(a)", 5, a, b, F64(7, -7 * 0.1, 7, -7 * 0.1, 0));
    check_map("leaky(a,0.5)", 5, a, b, F64(7, -3.5, 7, -3.5, 0));
    check_map("isnan(a)", 8, a, b, F64(0, 0, 0, 0, 0, 1, 0, 0));
    check_map("isfinite(a)", 8, a, b, F64(1, 1, 1, 1, 1, 0, 0, 1));
    check_map("fma(a,b,1)", 4, a, b, F64(15, -13, -13, 15));
    check_map("a**b", 4, F64(2, -3, 4, 0), F64(10, 3, 0.5, 0), F64(1024, -27, 2, 1));
    check_map("(a^b)", 2, F64(2, 3), F64(3, 2), F64(8, 9));
    check_map("pow(a,b)", 2, F64(2, 3), F64(3, 2), F64(8, 9));
}

static void test_unary_maps(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const double *a = F64(2.5, -2.5, 3.5, 0.5, -0.5, 7, inf, nan);
    check_map("floor(a)", 8, a, a, F64(2, -3, 3, 0, -1, 7, inf, nan));
    check_map("ceil(a)", 8, a, a, F64(3, -2, 4, 1, -0.0, 7, inf, nan));
    check_map("trunc(a)", 8, a, a, F64(2, -2, 3, 0, -0.0, 7, inf, nan));
    check_map("round(a)", 8, a, a, F64(2, -2, 4, 0, -0.0, 7, inf, nan));
    check_map("sqrt(a)", 5, F64(4, 0, -1, 2.25, inf), a, F64(2, 0, nan, 1.5, inf));
    check_map("exp(a)", 4, F64(0, -inf, inf, nan), a, F64(1, 0, inf, nan));
    check_map("log(a)", 5, F64(1, 0, inf, -1, nan), a, F64(0, -inf, inf, nan, nan));
    check_map("tanh(a)", 4, F64(0, inf, -inf, nan), a, F64(0, 1, -1, nan));
    check_map("sigmoid(a)", 4, F64(0, inf, -inf, nan), a, F64(0.5, 1, 0, nan));
}

static void check_i64(const char *expression, int n, const int64_t *a, const int64_t *b, const int64_t *want)
{
    int64_t y[8] = {0}, shape[1] = {n};
    DLTensor in[2] = {mf_tensor(a, MF_I64, 1, shape), mf_tensor(b, MF_I64, 1, shape)};
    DLTensor out = mf_tensor(y, MF_I64, 1, shape);
    if (!fold_all("i,i->i", expression, in, &out, y, sizeof *y * (size_t)n))
        return;
    for (int i = 0; i < n; i++)
        CHECK_MSG(y[i] == want[i], "%s of %lld and %lld gives %lld, not %lld", expression, (long long)a[i],
                  (long long)b[i], (long long)y[i], (long long)want[i]);
}

#define I64(...)      \
    (const int64_t[]) \
    {                 \
        __VA_ARGS__   \
    }

static void test_integer_maps(void)
{
    const int64_t least = INT64_MIN, most = INT64_MAX;
    const int64_t *a = I64(7, -7, 7, -7, 5, least, most, least), *b = I64(2, 2, -2, -2, 0, -1, 1, 1);
    check_i64("a+b", 8, a, b, I64(9, -5, 5, -9, 5, most, least, least + 1));
    check_i64("a-b", 8, a, b, I64(5, -9, 9, -5, 5, least + 1, most - 1, most));
    check_i64("a*b", 6, a, b, I64(14, -14, -14, 14, 0, least));
    check_i64("a//b", 8, a, b, I64(3, -4, -4, 3, 0, least, most, least));
    check_i64("a%b", 8, a, b, I64(1, 1, -1, -1, 0, 0, 0, 0));
    check_i64("-a", 6, a, b, I64(-7, 7, -7, 7, -5, least));
    check_i64("abs(a)", 6, a, b, I64(7, 7, 7, 7, 5, least));
    check_i64("sign(a)", 6, a, b, I64(1, -1, 1, -1, 1, -1));
    check_i64("a&b", 4, I64(12, -1, 5, 0), I64(10, 7, 2, 9), I64(8, 7, 0, 0));
    check_i64("a|b", 4, I64(12, -1, 5, 0), I64(10, 7, 2, 9), I64(14, -1, 7, 9));
    check_i64("(a^b)", 4, I64(12, -1, 5, 0), I64(10, 7, 2, 9), I64(6, -8, 7, 9));
    check_i64("~a", 3, I64(0, -1, 5), b, I64(-1, 0, -6));
    check_i64("a<<b", 5, I64(1, 1, 3, 1, 1), I64(0, 63, 2, 64, -1), I64(1, least, 12, 0, 0));
    check_i64("a>>b", 5, I64(-8, 8, -1, -5, 5), I64(1, 3, 63, 64, 200), I64(-4, 1, -1, -1, 0));
    check_i64("popcount(a)", 4, I64(0, 255, -1, least), b, I64(0, 8, 64, 1));
    check_i64("a**b", 5, I64(3, 2, -1, -1, 2), I64(4, 63, -3, -2, -1), I64(81, least, -1, 1, 0));
    check_i64("relu(a)", 4, a, b, I64(7, 0, 7, 0));
    check_i64("floor(a)+isnan(a)+isfinite(b)", 2, a, b, I64(8, -6));
}

/* ---- reading ---- */

/* The value for a = 7, b = 2, c = 3 as doubles. */
static mf_status value_of(const char *expression, double *y)
{
    static const double x[3] = {7, 2, 3};
    DLTensor in[3], out = mf_tensor(y, MF_F64, 0, NULL);
    mf_plan *plan;
    for (int i = 0; i < 3; i++)
        in[i] = mf_tensor(&x[i], MF_F64, 0, NULL);
    mf_status status = mf_plan_create(cpu, ",,->", expression, in, &out, NULL, &plan);
    if (status != MF_OK)
        return status;
    status = mf_plan_execute(plan, (const void *[]){x, x + 1, x + 2}, (void *[]){y}, NULL);
    mf_plan_destroy(plan);
    return status;
}

static void test_reading(void)
{
    static const struct {
        const char *expression;
        double want;
    } cases[] = {
        /* clang-format off */
        {"a+b*c", 13}, {"a*b+c", 17}, {"(a+b)*c", 27}, {"a-b-c", 2}, {"a-(b-c)", 8}, {"a/b/c", 7.0 / 2 / 3},
        {"a//b*c", 9}, {"a%b*c", 3}, {"a*b%c", 2}, {"-a+b", -5}, {"-a*b", -14}, {"- -a", 7}, {"+a", 7}, {"+-+a", -7},
        {"a--b", 9}, {"a+-b", 5}, {"b**c**b", 512}, {"(b**c)**b", 64}, {"-b**b", -4}, {"b**-b", 0.25}, {"2**-1", 0},
        {"a*b**c", 56}, {"b**c*a", 56}, {"a<b", 0}, {"a>b", 1}, {"b<=b", 1}, {"a>=b", 1}, {"a==a", 1}, {"a!=a", 0},
        {"a+b<c*c", 0}, {"a<b+9", 1}, {"(a<b)+(b<c)", 1}, {"(a>b)==(c>b)", 1}, {"(b^c)", 8}, {"(b^c)+1", 9},
        {"max((b^c),a)", 8}, {"-(b^c)", -8}, {"b^c", 8}, {"1 + 2", 3}, {"i64(a)|8", 15}, {"i64(a)&3|8", 11},
        {"8|i64(a)&3", 11}, {"1<<i64(b)+1", 8}, {"i64(a)>>1&1", 1}, {"i64(a)&3<<1", 6}, {"(i64(a)^i64(b))", 5},
        {"~i64(a)", -8}, {"-~i64(a)", 8}, {"~-i64(a)", 6}, {"i64(a)&3==3", 1}, {"1", 1}, {"0", 0}, {"007", 7},
        {"1.5", 1.5}, {".5", 0.5}, {"5.", 5}, {"1e3", 1000}, {"1E3", 1000}, {"1e+3", 1000}, {"1.5e-3", 0.0015},
        {"0.1", 0.1}, {"1e400", (double)INFINITY}, {"inf", (double)INFINITY}, {"-inf", -(double)INFINITY},
        {"isnan(nan)", 1}, {"9223372036854775807", 9223372036854775807.0}, {" \t\n a \n+ b ", 9}, {"max( a , b )", 7},
        {"max(a,b)+min(a,b)", 9}, {"where(a>b,b,c)", 2}, {"where(0,b,c)", 3}, {"where(nan,b,c)", 2},
        {"leaky(-a)", -0.7000000000000001}, {"leaky(-a,b)", -14}, {"fma(a,b,c)", 17}, {"pow(b,c)", 8}, {"abs(-a)", 7},
        {"sum(a)", 7}, {"sum(a*b)+c", 17}, {"max(a)", 7}, {"max(max(a,b),c)", 7}, {"max(max(a,b))", 7},
        {"min(max(a,b))+0", 7}, {"max(a,max(b))", 7}, {"var(a)", 0}, {"var(a,0)", 0}, {"sum(max(a,b))", 7}, {"a;", -1},
        {"7//2", 3}, {"-7//2", -4}, {"-7%3", 2}, {"7/2", 3.5}, {"f32(0.1)", (double)0.1f},
        {"f16(0.1)", 0.0999755859375}, {"u8(300)", 44}, {"i8(200)", -56}, {"u8(300.5)", 255}, {"i32(-2.7)", -2},
        {"bool(0.5)", 1}, {"bool(a)+bool(b)", 1}, {"bool(a)*bool(0)", 0}, {"bool(a)-bool(b)", 0},
        {"abs(bool(a))+abs(bool(b))", 1}, {"round(a>b)+9", 10}, {"relu(f32(a)>b)+(a<b)", 1}, {"bool(a)//bool(0)", 0},
        {"bool(a)<<bool(b)", 2}, {"bool(a)**bool(0)", 1}, {"sign(bool(a))+sign(bool(b))", 2},
        {"popcount(i8(-1))", 8}, {"popcount(255)", 8}, {"~u8(a)", 248}, {"u8(u8(a)-u8(9))", 254},
        {"popcount(u8(a)-u8(9))", 7}, {"f16(f16(a)/f16(c))", 2.333984375},
        /* clang-format on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double y = -77;
        mf_status status = value_of(cases[c].expression, &y);
        if (cases[c].want == -1) {
            CHECK_MSG(status == MF_ERROR_EXPRESSION, "%s is read", cases[c].expression);
            continue;
        }
        CHECK_MSG(status == MF_OK && y == cases[c].want, "%s gives %.17g, not %.17g (%s)", cases[c].expression, y,
                  cases[c].want, status ? mf_error() : "");
    }
}

static void test_mistakes(void)
{
    static const struct {
        const char *expression, *fact;
    } cases[] = {
        /* clang-format off */
        {"", "character 1"}, {"   ", "character 4"}, {"a b", "character 3"}, {"a+", "character 3"},
        {"*a", "character 1"}, {"a**", "character 4"}, {"(a", "')'"}, {"a)", "')'"}, {"()", "')'"}, {"a,b", "','"},
        {"a+*b", "'*'"}, {"a<b<c", "chain"}, {"a==b!=c", "chain"}, {"a<(b", "')'"}, {"d", "operand d"},
        {"A", "operand A"}, {"z+a", "operand z"}, {"_", "operand _"}, {"ab", "'('"}, {"foo(a)", "foo"}, {"sum", "'('"},
        {"sum a", "'('"}, {"sum()", "sum"}, {"abs()", "abs takes 1"}, {"abs(a,b)", "abs takes 1 operand and has 2"},
        {"where(a,b)", "where takes 3 operands and has 2"}, {"max(a,b,c)", "max takes 2"}, {"fma(a,b)", "fma takes 3"},
        {"leaky(a,b,c)", "leaky takes 2"}, {"f32(a,b)", "cast f32 takes 1"}, {"f32()", "f32"},
        {"sum(a,b)", "sum takes one operand"}, {"var(a,b)", "degrees of freedom"},
        {"var(a,1.5)", "degrees of freedom"}, {"var(a,1,1)", "var takes"}, {"std(a,-1)", "degrees of freedom"},
        {"sum(sum(a))", "do not nest"}, {"max(sum(a))", "do not nest"}, {"a^b+c", "parentheses"},
        {"a+b^c", "parentheses"}, {"-a^b", "parentheses"}, {"a^b^c", ""}, {"a*b^c", "parentheses"},
        {"a^b*c", "parentheses"}, {"a^b<c", "parentheses"}, {"1e", "character"}, {"1x", "character"},
        {"1.2.3", "character"}, {"0x10", "decimal"}, {"1e5f", "character"}, {"1_000", "character"}, {".", "character"},
        {"9223372036854775808", "63 bits"}, {"a;;b", "character 3"}, {";a", "character 1"}, {"a;", "the end"},
        {"a$", "'$'"}, {"a\x7f", "0x7f"}, {"a\xff", "0xff"}, {"a=b", "'='"}, {"a!b", "'!'"}, {"a&&b", "'&'"},
        {"!a", "'!'"}, {"a?b:c", "'?'"}, {"a[0]", "'['"}, {"\"a\"", "character 1"}, {"sum(a", "')'"},
        {"sum(a,", "the end"}, {"infinity(a)", "infinity"}, {"INF", "'('"}, {"sum.1(a)", "'('"}, {"f32.1(a)", "'('"},
        {"abs(a))", "')'"}, {"a;a;a;a;a;a;a;a;a;a;a;a;a;a;a;a;a", "16"},
        /* clang-format on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double y = -77;
        mf_status status = value_of(cases[c].expression, &y);
        CHECK_MSG(status == MF_ERROR_EXPRESSION && y == -77, "%s: %s", cases[c].expression, mf_status_name(status));
        CHECK_MSG(status == MF_OK || strstr(mf_error(), cases[c].fact), "%s: \"%s\" does not say \"%s\"",
                  cases[c].expression, mf_error(), cases[c].fact);
    }
    static const char *const integers_only[] = {"a&b",         "a|b",    "a<<b",  "a>>b",  "~a",
                                                "popcount(a)", "xor(a)", "or(a)", "and(a)"};
    for (size_t c = 0; c < sizeof integers_only / sizeof integers_only[0]; c++) {
        double y = -77;
        CHECK_MSG(value_of(integers_only[c], &y) == MF_ERROR_TYPE && strstr(mf_error(), "f64") && y == -77, "%s: %s",
                  integers_only[c], mf_error());
    }
}

/* In a program whose locale writes 1,5 an expression's 1.5 is still 1.5, and 1,5 are two operands. */
static void test_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "nl_NL.UTF-8", "es_ES.UTF-8", "pt_BR.UTF-8",
                                        "de_DE.utf8",  "fr_FR.utf8",  "de_DE",       "fr_FR",       "ru_RU.UTF-8"};
    size_t n = 0;
    while (n < sizeof names / sizeof names[0] && !setlocale(LC_ALL, names[n]))
        n++;
    if (n == sizeof names / sizeof names[0] || strcmp(localeconv()->decimal_point, ",") != 0) {
        check_skip("numbers in a locale with a decimal comma", "there is no such locale here");
        return;
    }
    static const struct {
        const char *expression;
        double want;
    } cases[] = {{"1.5", 1.5}, {".25+0", 0.25}, {"1.5e2", 150}, {"max(1,5)", 5}, {"3.", 3}, {"pow(1.5,2)", 2.25}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        double y = -77;
        mf_status status = value_of(cases[c].expression, &y);
        CHECK_MSG(status == MF_OK && y == cases[c].want, "%s in locale %s: %s %g", cases[c].expression, names[n],
                  status ? mf_error() : "", y);
    }
    CHECK(!strcmp(localeconv()->decimal_point, ","));
    setlocale(LC_ALL, "C");
}

static void test_counts(void)
{
    CHECK(mf_expression_outputs("a") == 1 && mf_expression_outputs("a;b ; c") == 3);
    CHECK(mf_expression_outputs("a;a;a;a;a;a;a;a;a;a;a;a;a;a;a;a") == 16);
    CHECK(mf_expression_outputs("a;a;a;a;a;a;a;a;a;a;a;a;a;a;a;a;a") < 0 && strstr(mf_error(), "17"));
}

int main(void)
{
    if (mf_device_open("cpu:1", &cpu) != MF_OK)
        return 1;
    test_numpy_types();
    test_own_types();
    test_float_maps();
    test_unary_maps();
    test_integer_maps();
    test_reading();
    test_mistakes();
    test_locale();
    test_counts();
    mf_device_close(cpu);
    return check_done("test_expr");
}
