/* Every status has tests that provoke it; each failing call must say the facts of both sides in one sentence and leave
 * its outputs alone. */
#include "check.h"

#include <ctype.h>
#include <modefold.h>

#include "error.h"

static mf_device *cpu;
static float source[256], target[256];

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

/* "i8 2x3,f32,4": tensors with shape 2 x 3 of i8, rank 0 of f32, 4 of f32 (f32 where no type is written). */
struct tensors {
    DLTensor tensor[24];
    int64_t shape[24][40];
    int count;
};

static mf_type type_named(const char *text)
{
    static const mf_type types[] = {MF_I8,  MF_I16, MF_I32, MF_I64,  MF_U8,   MF_U16,     MF_U32,    MF_U64,
                                    MF_F16, MF_F32, MF_F64, MF_BF16, MF_BOOL, MF_F8_E4M3, MF_F8_E5M2};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        const char *name = mf_type_name(mf_dtype(types[t]));
        if (!strncmp(text, name, strlen(name)))
            return types[t];
    }
    return MF_F32;
}

static void read_tensors(const char *text, void *data, struct tensors *result)
{
    memset(result, 0, sizeof *result);
    for (;;) {
        int n = result->count++, ndim = 0;
        mf_type type = MF_F32;
        if (isalpha((unsigned char)*text)) {
            type = type_named(text);
            text += strcspn(text, " ,");
        }
        while (*text && *text != ',') {
            char *end;
            result->shape[n][ndim++] = strtoll(text + (*text == 'x' || *text == ' '), &end, 10);
            text = end;
        }
        result->tensor[n] = mf_tensor(data, type, ndim, result->shape[n]);
        if (!*text)
            return;
        text++;
    }
}

/* The sentence: one line without control characters, with each of the facts (separated by '|'). */
static void check_sentence(const char *facts, const char *what)
{
    const char *error = mf_error();
    int clean = 1;
    for (const char *c = error; *c; c++)
        clean = clean && (unsigned char)*c >= ' ';
    CHECK_MSG(clean && strlen(error) > 10 && strlen(error) < 500, "%s: the sentence is \"%s\"", what, error);
    while (*facts) {
        size_t n = strcspn(facts, "|");
        char fact[128];
        snprintf(fact, sizeof fact, "%.*s", (int)n, facts);
        CHECK_MSG(strstr(error, fact) != NULL, "%s: \"%s\" does not say \"%s\"", what, error, fact);
        facts += n + (facts[n] == '|');
    }
}

static void check_untouched(const char *what)
{
    int touched = 0;
    for (size_t i = 0; i < sizeof target; i++)
        touched |= ((const unsigned char *)target)[i] != 0x5a;
    CHECK_MSG(!touched, "%s wrote to its output", what);
    memset(target, 0x5a, sizeof target);
}

static void check_fold(mf_status want, const char *modes, const char *expression, const DLTensor *in,
                       const DLTensor *out, const char *facts)
{
    memset(target, 0x5a, sizeof target);
    mf_status status = mf_fold(cpu, modes, expression, in, out);
    if (CHECK_MSG(status == want, "%s %s gives %s (%s), not %s", modes, expression, mf_status_name(status),
                  status ? mf_error() : "", mf_status_name(want)))
        check_sentence(facts, modes);
    check_untouched(modes);
}

/* ---- statuses by modes, expression and shapes ---- */

static const struct {
    mf_status status;
    const char *modes, *expression, *in, *out, *facts;
} cases[] = {
    /* clang-format off */
    {MF_ERROR_MODES, "", "a", "3", "3", "character 1|the end"},
    {MF_ERROR_MODES, "ij", "a", "2x3", "2x3", "character 3|'->'"},
    {MF_ERROR_MODES, "i->j", "a", "3", "3", "mode j|no operand"},
    {MF_ERROR_MODES, "i\n\x1b[1m->i", "a", "3", "3", "character 3|byte 0x1b"},
    {MF_ERROR_EXPRESSION, "i->i", "a\t\r\x7f", "3", "3", "character 3|byte 0x0d"},
    {MF_ERROR_EXPRESSION, "i->i", "", "3", "3", "character 1|the end"},
    {MF_ERROR_EXPRESSION, "i->i", "b", "3", "3", "operand b|1 operand"},
    {MF_ERROR_EXPRESSION, "i->i", "a+", "3", "3", "character 3"},
    {MF_ERROR_EXPRESSION, "i->", "a", "3", "", "mode i|operand a|no reducer"},
    {MF_ERROR_EXPRESSION, "ij->i", "sum(a)+a", "2x3", "2", "operand a|mode j"},
    {MF_ERROR_EXPRESSION, "i->", "sum(max(a))", "3", "", "max|sum"},
    {MF_ERROR_EXPRESSION, "i->", "var(a,-1)", "3", "", "var|degrees of freedom"},
    {MF_ERROR_EXPRESSION, "i->", "sum(a,a)", "3", "", "sum|2"},
    {MF_ERROR_EXPRESSION, "i->i", "nothing(a)", "3", "3", "nothing"},
    {MF_ERROR_SHAPE, "ij,jk->ik", "sum(a*b)", "2x3,4x5", "2x5", "mode j|3 in operand a|4 in operand b"},
    {MF_ERROR_SHAPE, "i->i", "a", "3", "4", "mode i|3 in operand a|4 in the output"},
    {MF_ERROR_SHAPE, "ii->i", "a", "3x4", "3", "mode i|3|4"},
    {MF_ERROR_SHAPE, "ij->i", "sum(a)", "3", "3", "operand a|2 dim|has 1"},
    {MF_ERROR_SHAPE, "i->", "sum(a)", "3x3", "", "operand a|1 dim|has 2"},
    {MF_ERROR_SHAPE, "i->i", "a", "3", "3x3", "output|1 dim|has 2"},
    {MF_ERROR_SHAPE, "i->i", "a;a", "3", "3,4", "mode i|3|4|output 1"},
    {MF_ERROR_SHAPE, "i->i", "a;a", "3", "3,3x1", "output 1|2|1"},
    {MF_ERROR_SHAPE, "i->i", "a", "-3", "3", "dimension 0|operand a|-3"},
    {MF_ERROR_SHAPE, "i->i", "a", "3", "-3", "dimension 0|output|-3"},
    {MF_ERROR_SHAPE, "i->i with i=5", "a", "3", "3", "mode i|5 after \"with\"|3 in operand a"},
    {MF_ERROR_SHAPE, "(i+j)->", "sum(a)", "3", "", "mode i|windows only|with i="},
    {MF_ERROR_SHAPE, "(i+j-1)->ij with j=2", "a", "3", "3x2", "dimension 0|operand a|-1|0 to 2"},
    {MF_ERROR_TYPE, "i->i", "a&1", "3", "3", "and|f32"},
    {MF_ERROR_TYPE, "i->i", "~a", "3", "3", "not|f32"},
    {MF_ERROR_TYPE, "i->", "xor(a)", "3", "", "xor|f32"},
    {MF_ERROR_TYPE, "i->i", "a<<1", "f64 3", "3", "shl|f64"},
    {MF_ERROR_TYPE, "i->", "sum(popcount(a))", "bf16 3", "", "popcount|bf16"},
    {MF_ERROR_EMPTY, "i->", "mean(a)", "0", "", "mean|0 elements|1"},
    {MF_ERROR_EMPTY, "i->", "var(a)", "0", "", "var"},
    {MF_ERROR_EMPTY, "i->", "std(a)", "0", "", "std"},
    {MF_ERROR_EMPTY, "ij->i", "argmax(a)", "3x0", "i64 3", "argmax|0 elements|3"},
    {MF_ERROR_EMPTY, "ij->i", "argmin(a)", "3x0", "i64 3", "argmin"},
    {MF_ERROR_EMPTY, "i->", "min(a)", "i32 0", "i32", "min"},
    {MF_ERROR_EMPTY, "i->", "max(a)", "u8 0", "u8", "max"},
    {MF_ERROR_EMPTY, "i->", "max(a>1)", "0", "bool", "max"},
    {MF_ERROR_EMPTY, "i->", "sum(a);mean(a)", "0", ",", "mean"},
    {MF_ERROR_OVERFLOW, "ij->", "sum(a)", "4294967296x4294967296", "", "reduced modes|2^63"},
    {MF_ERROR_OVERFLOW, "(99999999999999999999i)->i", "a", "3", "3", "character|63 bits"},
    {MF_ERROR_OVERFLOW, "(9223372036854775807i+i)->i", "a", "3", "3", "coefficient"},
    /* clang-format on */
};

static void test_table(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct tensors in, out;
        read_tensors(cases[i].in, source, &in);
        read_tensors(cases[i].out, target, &out);
        check_fold(cases[i].status, cases[i].modes, cases[i].expression, in.tensor, out.tensor, cases[i].facts);
    }
}

/* ---- types ---- */

static void test_types(void)
{
    DLTensor in = mf_tensor(source, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3)), bad = in;
    const DLDataType types[] = {{2, 128, 1}, {0, 4, 1}, {5, 64, 1}, {3, 64, 1}, {2, 32, 4}, {6, 1, 1}, {255, 255, 1}};
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
        char facts[64];
        snprintf(facts, sizeof facts, "code %d|%d bits", types[t].code, types[t].bits);
        bad.dtype = types[t];
        check_fold(MF_ERROR_TYPE, "i->i", "a", &bad, &out, facts);
        DLTensor bad_out = out;
        bad_out.dtype = types[t];
        check_fold(MF_ERROR_TYPE, "i->i", "a", &in, &bad_out, facts);
        CHECK(mf_type_name(types[t]) == NULL);
    }
    DLDataType type;
    CHECK(mf_fold_type(cpu, "a", 1, &bad, 0, &type) == MF_ERROR_TYPE);
    CHECK(mf_fold_type(cpu, "a", 1, &in, 1, &type) == MF_ERROR_ARGUMENT && strstr(mf_error(), "result 1"));
    CHECK(mf_fold_type(cpu, "a", 1, &in, -1, &type) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_type(cpu, "a", 17, &in, 0, &type) == MF_ERROR_ARGUMENT && strstr(mf_error(), "17"));
    CHECK(mf_fold_type(cpu, "a", -1, &in, 0, &type) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_type(cpu, "b", 1, &in, 0, &type) == MF_ERROR_EXPRESSION);
}

/* Memory of a GPU is not read, in a new fold and in one whose plan is kept; memory that it shares with the CPU is. */
static void test_device_types(void)
{
    static const int known[] = {0, 1, 3, 11, 13}, other[] = {2, 4, 7, 8, 10, 14, 255, -1};
    DLTensor in = mf_tensor(source, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3)), far = in;
    for (size_t t = 0; t < sizeof known / sizeof known[0]; t++) {
        far.device.device_type = (DLDeviceType)known[t];
        CHECK_MSG(mf_fold(cpu, "i->i", "a*3", &far, &out) == MF_OK, "type %d: %s", known[t], mf_error());
    }
    for (size_t t = 0; t < sizeof other / sizeof other[0]; t++) {
        char fact[64];
        snprintf(fact, sizeof fact, "device type %d|CPU", other[t]);
        far.device.device_type = (DLDeviceType)other[t];
        check_fold(MF_ERROR_UNSUPPORTED, "i->i", "a*3", &far, &out, fact);
        DLTensor far_out = out;
        far_out.device = far.device;
        check_fold(MF_ERROR_UNSUPPORTED, "i->i", "a*3", &in, &far_out, fact);
    }
}

/* ---- arguments ---- */

static void test_null_arguments(void)
{
    DLTensor in = mf_tensor(source, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3));
    mf_plan *plan = NULL;
    mf_device *device = NULL;
    int ndim;
    int64_t shape[MF_MAX_RANK];
    DLDataType type;
    CHECK(mf_fold(NULL, "i->i", "a", &in, &out) == MF_ERROR_ARGUMENT && strstr(mf_error(), "device"));
    CHECK(mf_fold(cpu, NULL, "a", &in, &out) == MF_ERROR_ARGUMENT && strstr(mf_error(), "modes"));
    CHECK(mf_fold(cpu, "i->i", NULL, &in, &out) == MF_ERROR_ARGUMENT && strstr(mf_error(), "expression"));
    CHECK(mf_fold(cpu, "i->i", "a", NULL, &out) == MF_ERROR_ARGUMENT && strstr(mf_error(), "inputs"));
    CHECK(mf_fold(cpu, "i->i", "a", &in, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "outputs"));
    CHECK(mf_plan_create(NULL, "i->i", "a", &in, &out, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_create(cpu, NULL, "a", &in, &out, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_create(cpu, "i->i", NULL, &in, &out, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_create(cpu, "i->i", "a", NULL, &out, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_create(cpu, "i->i", "a", &in, NULL, NULL, &plan) == MF_ERROR_ARGUMENT);
    CHECK(mf_plan_create(cpu, "i->i", "a", &in, &out, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "result"));
    CHECK(mf_device_open(NULL, &device) == MF_ERROR_ARGUMENT && strstr(mf_error(), "name"));
    CHECK(mf_device_open("cpu", NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "result"));
    CHECK(mf_fold_shape(NULL, 1, &in, &ndim, shape) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_shape("i->i", 1, NULL, &ndim, shape) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_shape("i->i", 1, &in, NULL, shape) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_shape("i->i", 1, &in, &ndim, NULL) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_shape("i->i", 2, &in, &ndim, shape) == MF_ERROR_ARGUMENT && strstr(mf_error(), "1 operands and 2"));
    CHECK(mf_fold_type(NULL, "a", 1, &in, 0, &type) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_type(cpu, NULL, 1, &in, 0, &type) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_type(cpu, "a", 1, NULL, 0, &type) == MF_ERROR_ARGUMENT);
    CHECK(mf_fold_type(cpu, "a", 1, &in, 0, NULL) == MF_ERROR_ARGUMENT);
    CHECK(mf_modes_inputs(NULL) < 0 && mf_expression_outputs(NULL) < 0);
    CHECK(mf_modes_inputs("i,j->") == 2 && mf_expression_outputs("a;b;c") == 3 && mf_modes_inputs("i") < 0);
    CHECK(mf_operation_define(cpu, NULL) == MF_ERROR_ARGUMENT);
    CHECK(mf_operation_define(NULL, &(mf_operation){0}) == MF_ERROR_ARGUMENT);
    mf_device_close(NULL);
    mf_plan_destroy(NULL);
    CHECK(!*mf_device_describe(NULL) && !*mf_plan_describe(NULL) && !*mf_plan_solver(NULL));
}

static void test_null_pointers(void)
{
    DLTensor in = mf_tensor(NULL, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3));
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a", &in, &out, "operand a|null");
    DLTensor two[2] = {mf_tensor(source, MF_F32, DIMS(3)), in};
    check_fold(MF_ERROR_ARGUMENT, "i,i->i", "a+b", two, &out, "operand b|null");
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a", two, &in, "output 0|null");
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a;a", two, (DLTensor[]){out, in}, "output 1|null");
    DLTensor shapeless = mf_tensor(source, MF_F32, 1, NULL), hollow = mf_tensor(target, MF_F32, 1, NULL);
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a", &shapeless, &out, "operand a|null shape");
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a", two, &hollow, "null shape");
    mf_status second = mf_fold(cpu, "i->i", "a;a", two, (DLTensor[]){out, hollow});
    CHECK(second == MF_ERROR_ARGUMENT || second == MF_ERROR_SHAPE);
    two[0].ndim = -1;
    check_fold(MF_ERROR_SHAPE, "i->i", "a", two, &out, "operand a|-1");
    two[0].ndim = 33;
    check_fold(MF_ERROR_SHAPE, "i->i", "a", two, &out, "operand a|33|32");
    two[0].ndim = 1;
    out.ndim = 33;
    check_fold(MF_ERROR_SHAPE, "i->i", "a", two, &out, "output 0|33|32");
    out.ndim = 1;
    mf_plan *plan;
    const void *const inputs[1] = {source};
    void *const outputs[1] = {target};
    memset(target, 0x5a, sizeof target);
    CHECK(mf_plan_execute(NULL, inputs, outputs, NULL) == MF_ERROR_ARGUMENT);
    if (!CHECK(mf_plan_create(cpu, "i->i", "a", two, &out, NULL, &plan) == MF_OK))
        return;
    CHECK(mf_plan_execute(plan, NULL, outputs, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "inputs"));
    CHECK(mf_plan_execute(plan, inputs, NULL, NULL) == MF_ERROR_ARGUMENT && strstr(mf_error(), "outputs"));
    CHECK(mf_plan_execute(plan, inputs, outputs, &plan) == MF_ERROR_ARGUMENT && strstr(mf_error(), "streams"));
    check_untouched("a plan without pointers");
    mf_plan_destroy(plan);
}

static void test_devices(void)
{
    static const char *const names[] = {"",
                                        "c",
                                        "cpux",
                                        "cpu:",
                                        "cpu:0",
                                        "cpu:257",
                                        "cpu:-1",
                                        "cpu:+2",
                                        "cpu: 2",
                                        "cpu:2x",
                                        "cpu:99999999999999999999",
                                        "cuda:x",
                                        "CPU",
                                        "a device of a name longer than that"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        mf_device *device = (mf_device *)1;
        CHECK_MSG(mf_device_open(names[i], &device) == MF_ERROR_ARGUMENT && !device, "device \"%s\" opens", names[i]);
        check_sentence(names[i], names[i]);
    }
    mf_options options = {"fast", 0, 0};
    DLTensor in = mf_tensor(source, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3));
    mf_plan *plan = (mf_plan *)1;
    CHECK(mf_plan_create(cpu, "i->i", "a", &in, &out, &options, &plan) == MF_ERROR_ARGUMENT && !plan);
    check_sentence("fast|map|reference", "solver fast");
    options.solver = "outer";
    CHECK(mf_plan_create(cpu, "i->i", "a", &in, &out, &options, &plan) == MF_ERROR_UNSUPPORTED && !plan);
    check_sentence("outer", "solver outer");
    const mf_options strange[] = {{NULL, 64, 0},
                                  {NULL, MF_ORDER_FREE | MF_ORDER_CONTRACT, 0},
                                  {NULL, MF_LOG_EXACT | MF_LOG_FAST, 0},
                                  {NULL, MF_LOG_CERTIFIED | MF_ORDER_AS_WRITTEN, 0},
                                  {NULL, MF_LOG_FAST | MF_ORDER_CONTRACT, 0},
                                  {NULL, MF_ORDER_AS_WRITTEN | 0x100, 0},
                                  {NULL, 0, -1}};
    for (size_t o = 0; o < sizeof strange / sizeof strange[0]; o++) {
        CHECK(mf_plan_create(cpu, "i->i", "a", &in, &out, &strange[o], &plan) == MF_ERROR_ARGUMENT && !plan);
        check_sentence(o > 1 && o < 5 ? "options|flags|MF_LOG_EXACT" : "options|flags|threads", "strange options");
    }
    setenv("MODEFOLD_ISA", "mmx", 1);
    mf_device *device;
    CHECK(mf_device_open("cpu", &device) == MF_ERROR_ARGUMENT);
    check_sentence("MODEFOLD_ISA|mmx", "MODEFOLD_ISA=mmx");
    unsetenv("MODEFOLD_ISA");
}

/* ---- memory ---- */

static void test_alignment(void)
{
    char *data = (char *)source, *to = (char *)target;
    DLTensor in = mf_tensor(data + 2, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3));
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a", &in, &out, "operand|aligned|4|f32");
    in = mf_tensor(data, MF_F32, DIMS(3));
    out = mf_tensor(to + 1, MF_F32, DIMS(3));
    check_fold(MF_ERROR_ARGUMENT, "i->i", "a", &in, &out, "output 0|aligned|4|f32");
    in.byte_offset = 3;
    check_fold(MF_ERROR_ARGUMENT, "i->", "sum(a)", &in, (DLTensor[]){mf_tensor(target, MF_F32, 0, NULL)}, "aligned");
    in = mf_tensor(data + 4, MF_F64, DIMS(3));
    check_fold(MF_ERROR_ARGUMENT, "i->", "sum(a)", &in, (DLTensor[]){mf_tensor(target, MF_F32, 0, NULL)}, "8|f64");
    in = mf_tensor(data + 1, MF_I8, DIMS(3));
    CHECK(mf_fold(cpu, "i->i", "a", &in, (DLTensor[]){mf_tensor(to + 3, MF_I8, DIMS(3))}) == MF_OK);
    memset(target, 0x5a, sizeof target);
}

/* Inputs and outputs within one buffer. want MF_OK or MF_ERROR_OVERLAP. */
static void check_overlap(mf_status want, const char *modes, const char *expression, const DLTensor *in,
                          const DLTensor *out, const char *what)
{
    memset(target, 0, sizeof target);
    mf_status status = mf_fold(cpu, modes, expression, in, out);
    CHECK_MSG(status == want, "%s: %s, not %s (%s)", what, mf_status_name(status), mf_status_name(want), mf_error());
    if (status == MF_ERROR_OVERLAP)
        check_sentence("overlap", what);
    int touched = 0;
    for (size_t i = 0; i < sizeof target / sizeof target[0]; i++)
        touched |= target[i] != 0;
    CHECK_MSG(status == MF_OK || !touched, "%s wrote to its output", what);
}

static void test_input_overlap(void)
{
    float *t = target;
    DLTensor x = mf_tensor(t, MF_F32, DIMS(8)), next = mf_tensor(t + 1, MF_F32, DIMS(8));
    DLTensor apart = mf_tensor(t + 8, MF_F32, DIMS(8)), even = with_strides(x, STRIDES(2));
    DLTensor odd = with_strides(next, STRIDES(2)), back = with_strides(mf_tensor(t + 7, MF_F32, DIMS(8)), STRIDES(-1));
    check_overlap(MF_OK, "i->i", "a+1", &x, &x, "in place");
    check_overlap(MF_OK, "i->i", "a+1", &x, &apart, "side by side");
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a+1", &x, &next, "shifted by one");
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a+1", &next, &x, "shifted back by one");
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a+1", &x, &back, "reversed in place");
    check_overlap(MF_OK, "i->i", "a+1", &even, &odd, "interleaved columns");
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a+1", &even, &x, "every other element of it");
    DLTensor bytes = mf_tensor(t, MF_I32, DIMS(8)), shorts = mf_tensor(t, MF_F16, DIMS(8));
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a", &x, &bytes, "in place with another type");
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a", &x, &shorts, "in place with a narrower type");
    DLTensor square = mf_tensor(t, MF_F32, DIMS(4, 4)), turned = with_strides(square, STRIDES(1, 4));
    check_overlap(MF_OK, "ij->ij", "a+1", &square, &square, "a square in place");
    check_overlap(MF_ERROR_OVERLAP, "ij->ji", "a+1", &square, &square, "transposed in place");
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a+1", &square, &turned, "onto its transpose");
    check_overlap(MF_OK, "ij->ji", "a+1", &square, &turned, "its transpose, written transposed");
    DLTensor row = mf_tensor(t, MF_F32, DIMS(4)), one = mf_tensor(t + 5, MF_F32, 0, NULL);
    check_overlap(MF_ERROR_OVERLAP, "ij->j", "sum(a)", &square, &row, "a sum over its input");
    check_overlap(MF_ERROR_OVERLAP, "i->", "sum(a)", &x, &one, "a sum into its input");
    DLTensor finish[2] = {mf_tensor(t + 16, MF_F32, DIMS(4, 4)), row};
    check_overlap(MF_OK, "ij,i->i", "sum(a)+b", finish, &row, "a finish operand in place");
    check_overlap(MF_ERROR_OVERLAP, "ij,i->i", "sum(a*b)", finish, &row, "a reducer's operand in place");
    check_overlap(MF_ERROR_OVERLAP, "ij,i->i", "sum(a*b)+b", finish, &row, "both at once");
    DLTensor many[2] = {square, row};
    check_overlap(MF_ERROR_OVERLAP, "ij,j->ij", "a+b", many, &square, "a row added to its own square");
    DLTensor unused[2] = {next, apart};
    check_overlap(MF_OK, "i,i->i", "b+1", unused, &x, "an operand that is not used, shifted by one");
    check_overlap(MF_OK, "i,i->", "sum(b)", unused, &one, "a sum into an operand that is not used");
    check_overlap(MF_ERROR_OVERLAP, "i,i->i", "a+1", unused, &x, "the other one used");
    DLTensor wide[2] = {x, mf_tensor(t + 3, MF_F32, 0, NULL)};
    check_overlap(MF_ERROR_OVERLAP, "i,->i", "a/b", wide, &x, "divided by one of its own elements");
}

static void test_output_overlap(void)
{
    float *t = target;
    DLTensor in = mf_tensor(source, MF_F32, DIMS(4, 4)), scalar = mf_tensor(source, MF_F32, 0, NULL);
    DLTensor square = mf_tensor(t, MF_F32, DIMS(4, 4)), next = mf_tensor(t + 15, MF_F32, DIMS(4, 4));
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a;a", &in, (DLTensor[]){square, square}, "the same output twice");
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a;a", &in, (DLTensor[]){square, next}, "outputs that share an element");
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a", &in, (DLTensor[]){with_strides(square, STRIDES(1, 1))}, "diagonals");
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a", &in, (DLTensor[]){with_strides(square, STRIDES(0, 1))}, "stride 0");
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a", &in, (DLTensor[]){with_strides(square, STRIDES(3, 2))}, "3i+2j");
    check_overlap(MF_ERROR_OVERLAP, "ij->ij", "a", &in, (DLTensor[]){with_strides(square, STRIDES(3, 1))}, "3i+j");
    check_overlap(MF_OK, "ij->ij", "a", &in, (DLTensor[]){with_strides(square, STRIDES(4, 5))}, "4i+5j is one to one");
    check_overlap(MF_OK, "ij->ij", "a", &in, (DLTensor[]){with_strides(square, STRIDES(7, 2))}, "7i+2j is one to one");
    DLTensor left = with_strides(square, STRIDES(8, 1)),
             right = with_strides(mf_tensor(t + 4, MF_F32, DIMS(4, 4)), STRIDES(8, 1));
    check_overlap(MF_OK, "ij->ij", "a;a*2", &in, (DLTensor[]){left, right}, "the halves of one row");
    DLTensor one = with_strides(mf_tensor(t, MF_F32, DIMS(1, 1)), STRIDES(0, 0));
    check_overlap(MF_OK, ",ij->ij", "a", (DLTensor[]){scalar, mf_tensor(source, MF_F32, DIMS(1, 1))}, &one,
                  "one element with strides 0");
    DLTensor small = mf_tensor((char *)t + 2, MF_F16, DIMS(4)),
             row = with_strides(mf_tensor(t, MF_F16, DIMS(4)), STRIDES(2));
    DLTensor four = mf_tensor(source, MF_F32, DIMS(4));
    small.strides = STRIDES(2);
    check_overlap(MF_OK, "i->i", "a;a", &four, (DLTensor[]){row, small}, "interleaved halves");
    row = mf_tensor(t, MF_F32, DIMS(4));
    small = mf_tensor((char *)t + 14, MF_F16, DIMS(4));
    check_overlap(MF_ERROR_OVERLAP, "i->i", "a;a", &four, (DLTensor[]){row, small}, "the last half element");
    small = mf_tensor((char *)t + 16, MF_F16, DIMS(4));
    check_overlap(MF_OK, "i->i", "a;a", &four, (DLTensor[]){row, small}, "just after");
    DLTensor none = mf_tensor(t + 1, MF_F32, DIMS(0));
    check_overlap(MF_OK, "i,j->i", "a+sum(b)", (DLTensor[]){four, none}, &row, "an empty input inside of the output");
}

/* Strings that are wrong say nothing about how many tensors there are: no more than one may be looked at. (In memory of
 * their own, whose ends AddressSanitizer guards.) */
static void test_counts(void)
{
    static const char *const texts[][2] = {{"i->i", "a;"},   {"i->i", ";a"},        {"i->i", "a;;"},
                                           {"i,j", "a"},     {"(i,j)->", "sum(a)"}, {",", "a"},
                                           {"i,i.->i", "a"}, {"i->i", "a;\"b;c\""}};
    DLTensor *in = malloc(sizeof *in), *out = malloc(sizeof *out);
    *in = mf_tensor(source, MF_F32, DIMS(3));
    *out = mf_tensor(target, MF_F32, DIMS(3));
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++)
        check_fold(strcmp(texts[t][0], "i->i") ? MF_ERROR_MODES : MF_ERROR_EXPRESSION, texts[t][0], texts[t][1], in,
                   out, "character");
    free(in);
    free(out);
}

static void test_memory_status(void)
{
    DLTensor in = mf_tensor(source, MF_F32, DIMS(3)), out = mf_tensor(target, MF_F32, DIMS(3));
    mf_alloc_budget = 0;
    check_fold(MF_ERROR_MEMORY, "i->i", "a+7", &in, &out, "memory|bytes");
    mf_alloc_budget = -1;
}

static void test_names(void)
{
    CHECK(!strcmp(mf_status_name(MF_OK), "MF_OK") && !strcmp(mf_status_name(MF_ERROR_ARGUMENT), "MF_ERROR_ARGUMENT"));
    CHECK(!strcmp(mf_status_name(MF_ERROR_OVERFLOW), "MF_ERROR_OVERFLOW"));
    CHECK(!strcmp(mf_status_name(MF_ERROR_UNSUPPORTED), "MF_ERROR_UNSUPPORTED"));
    CHECK(mf_status_name((mf_status)99) != NULL && mf_status_name((mf_status)-1) != NULL);
    CHECK(mf_version() == MF_VERSION_MAJOR * 10000 + MF_VERSION_MINOR * 100 + MF_VERSION_PATCH);
}

int main(void)
{
    CHECK(!*mf_error());
    if (mf_device_open("cpu:2", &cpu) != MF_OK)
        return 1;
    test_table();
    test_types();
    test_device_types();
    test_null_arguments();
    test_null_pointers();
    test_devices();
    test_alignment();
    test_input_overlap();
    test_output_overlap();
    test_counts();
    test_memory_status();
    test_names();
    mf_device_close(cpu);
    return check_done("test_errors");
}
