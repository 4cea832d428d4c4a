/* Gradients on a GPU, the argument or "opencl:0": the bits that the CPU gives, term by term or winner by winner; as
 * products, near a loop in double, where all outputs take part, where some are left and where nothing is a number. For
 * sm_90 they compile. */
#include "gpu_test.h"

#include <math.h>
#include <stdlib.h>

#include "modefold.h"

enum { ROWS = 6, COLUMNS = 9, TERMS = 70, A = ROWS * TERMS, B = TERMS * COLUMNS, O = ROWS * COLUMNS };

static const int64_t as[] = {ROWS, TERMS}, bs[] = {TERMS, COLUMNS}, os[] = {ROWS, COLUMNS};
static float a[A], b[B], o[O], d[O], ga[2][A], gb[2][B];
static int64_t certified, exact; /* outputs by tier, of the last run on the GPU */

static void fill(float *x, int n, unsigned state)
{
    for (int i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(int)(state >> 20) / 256 - 8;
    }
}

static void *put(mf_device *device, const float *x, int n)
{
    void *memory = NULL;
    const int64_t bytes = n * (int64_t)sizeof *x;
    CHECK_MSG(mf_memory_create(device, bytes, &memory) == MF_OK &&
                  mf_memory_write(device, memory, 0, x, bytes) == MF_OK,
              "%s", mf_error());
    return memory;
}

static DLTensor on(mf_device *device, const float *x, const int64_t *shape)
{
    DLTensor tensor = mf_tensor(x, MF_F32, 2, shape);
    tensor.device.device_type = (DLDeviceType)mf_device_kind(device);
    return tensor;
}

static mf_status plan_on(mf_device *device, const char *expression, const mf_options *options, mf_plan **plan)
{
    const DLTensor in[2] = {on(device, a, as), on(device, b, bs)}, out = on(device, o, os);
    return mf_plan_gradient(device, "ik,kj->ij", expression, in, &out, &out, in, options, plan);
}

static void run_on_cpu(mf_device *cpu, const char *expression, const char *solver)
{
    const mf_options options = {solver, 0, 0};
    DLTensor in[2] = {mf_tensor(a, MF_F32, 2, as), mf_tensor(b, MF_F32, 2, bs)}, out = mf_tensor(o, MF_F32, 2, os);
    const void *from[] = {a, b, o, d};
    void *to[] = {ga[0], gb[0]};
    mf_plan *plan = NULL;
    CHECK(mf_fold(cpu, "ik,kj->ij", expression, in, &out) == MF_OK);
    CHECK(plan_on(cpu, expression, &options, &plan) == MF_OK && mf_plan_execute(plan, from, to, NULL) == MF_OK);
    mf_plan_destroy(plan);
}

static void run_on_gpu(mf_device *gpu, const char *expression, const char *solver, uint32_t flags)
{
    const mf_options options = {solver, flags, 0};
    mf_plan *plan = NULL;
    void *memory[] = {put(gpu, a, A), put(gpu, b, B),     put(gpu, o, O),
                      put(gpu, d, O), put(gpu, ga[1], A), put(gpu, gb[1], B)};
    CHECK_MSG(plan_on(gpu, expression, &options, &plan) == MF_OK &&
                  mf_plan_execute(plan, (const void *const *)memory, memory + 4, NULL) == MF_OK &&
                  mf_plan_execute(plan, (const void *const *)memory, memory + 4, NULL) == MF_OK, /* nothing is left */
              "%s: %s", expression, mf_error());
    certified = mf_plan_tier_count(plan, MF_TIER_CERTIFIED);
    exact = mf_plan_tier_count(plan, MF_TIER_EXACT);
    CHECK(certified % 2 == 0 && exact % 2 == 0);
    certified /= 2;
    exact /= 2;
    CHECK(mf_memory_read(gpu, memory[4], 0, ga[1], sizeof ga[1]) == MF_OK);
    CHECK(mf_memory_read(gpu, memory[5], 0, gb[1], sizeof gb[1]) == MF_OK);
    mf_plan_destroy(plan);
    for (int m = 0; m < 6; m++)
        mf_memory_destroy(gpu, memory[m]);
}

static void compare(mf_device *cpu, mf_device *gpu, const char *expression, const char *solver, uint32_t flags,
                    const char *on_cpu)
{
    run_on_cpu(cpu, expression, on_cpu);
    run_on_gpu(gpu, expression, solver, flags);
    CHECK_MSG(!memcmp(ga[0], ga[1], sizeof ga[0]) && !memcmp(gb[0], gb[1], sizeof gb[0]), "%s differs", expression);
}

/* Sums of d p and of |d| (p + 2^-44), and whether an element is off by more than 2e-5 of the latter. */
static int is_wrong(double sum, double size, double got)
{
    if (sum != sum || got != got || isinf(size))
        return (sum != sum) != (got != got);
    return !(fabs(got - sum) <= 2e-5 * size);
}

/* logsumexp(a+b) or (a-b) as products: o is what the CPU has left there. */
static int count_wrong(int sign)
{
    static double sum[2][A + B], size[2][A + B];
    int wrong = 0;
    memset(sum, 0, sizeof sum);
    memset(size, 0, sizeof size);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < TERMS; k++)
            for (int j = 0; j < COLUMNS; j++) {
                const int at_a = i * TERMS + k, at_b = k * COLUMNS + j, at = i * COLUMNS + j;
                const double x = (double)a[at_a] + sign * (double)b[at_b];
                const double given = o[at] == -INFINITY ? 0 : (double)d[at];
                const double w = o[at] == -INFINITY ? 0 : given * exp(x - (double)o[at]);
                const double bound = fabs(w) + fabs(given) * 0x1p-44;
                sum[0][at_a] += w;
                size[0][at_a] += bound;
                sum[1][at_b] += sign * w;
                size[1][at_b] += bound;
            }
    for (int e = 0; e < A; e++)
        wrong += is_wrong(sum[0][e], size[0][e], (double)ga[1][e]);
    for (int e = 0; e < B; e++)
        wrong += is_wrong(sum[1][e], size[1][e], (double)gb[1][e]);
    return wrong;
}

static void compare_near(mf_device *cpu, mf_device *gpu, const char *expression, int sign, int left, const char *what)
{
    run_on_cpu(cpu, expression, "gradient-exact");
    run_on_gpu(gpu, expression, "gradient-products", 0);
    const int wrong = count_wrong(sign);
    CHECK_MSG(certified + exact == O && (exact > 0) == left && (certified > 0 || left),
              "%s as products, %s: %d outputs are certified and %d exact", expression, what, (int)certified,
              (int)exact);
    CHECK_MSG(!wrong, "%s as products, %s: %d of %d elements are wrong", expression, what, wrong, A + B);
    run_on_gpu(gpu, expression, NULL, 0);
    const int also_wrong = count_wrong(sign);
    CHECK_MSG(!certified && exact == O && !also_wrong, "%s in one kernel, %s: %d of %d elements are wrong", expression,
              what, also_wrong, A + B);
}

/* The solver that multiplies for them where there is cuBLAS: its one form. */
static void test_cublas(mf_device *gpu)
{
    const DLTensor in[2] = {on(gpu, a, as), on(gpu, b, bs)}, out = on(gpu, o, os);
    mf_options options = {"cublas:tf32", 0, 0};
    mf_plan *plan = NULL;
    CHECK_MSG(mf_plan_create(gpu, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_OK, "%s", mf_error());
    mf_plan_destroy(plan);
    options.solver = "cublas:half";
    CHECK(mf_plan_create(gpu, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_ERROR_ARGUMENT &&
          !strcmp(mf_error(), "solver cublas has no form \"half\" for f32; the only one is tf32, for f32"));
}

static void test_products(mf_device *cpu, mf_device *gpu, int same_order)
{
    if (same_order)
        compare(cpu, gpu, "logsumexp(a+b)", "gradient-products", 0, "gradient");
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, 0, "all outputs take part");
    compare_near(cpu, gpu, "logsumexp(a-b)", -1, 0, "all outputs take part");
    for (int e = 0; e < A; e += 3)
        a[e] *= 12; /* greatest terms that do not lie on each other */
    for (int e = 0; e < B; e += 7)
        b[e] *= 12;
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, 1, "some outputs are left");
    compare_near(cpu, gpu, "logsumexp(a-b)", -1, 1, "some outputs are left");
    for (int k = 0; k < TERMS; k++)
        a[2 * TERMS + k] = -INFINITY; /* outputs that nothing leads to */
    b[5 * COLUMNS + 3] = -INFINITY;
    d[2 * COLUMNS + 1] = NAN;
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, 1, "with outputs of -inf");
    a[4 * TERMS + 7] = NAN;
    b[9 * COLUMNS + 8] = INFINITY;
    d[5 * COLUMNS] = 1e20F;
    compare_near(cpu, gpu, "logsumexp(a+b)", 1, 1, "with NaN and inf");
}

/* ---- winners ---- */

enum { ROOM = 1 << 20, RANK_MOST = 4 };

/* Shapes by modes' letters; x is i + u - 1, y is 2 i + u. spread: elements of a gradient are so far apart. */
struct winners_case {
    const char *modes, *expression, *shape[2], *output;
    mf_type type[2], given, gradient;
    int spread;
};

static int64_t sizes[128];

static int64_t size_of(char letter)
{
    return letter == 'x'   ? sizes['i'] + sizes['u'] - 1
           : letter == 'y' ? 2 * sizes['i'] + sizes['u']
                           : sizes[(int)letter];
}

/* A tensor of random values, of which many are equal; some are what the special cases are about. */
struct held {
    int64_t shape[RANK_MOST], stride[RANK_MOST], count;
    size_t bytes;
    DLTensor tensor;
    char *data;
    void *memory;
};

static unsigned random_state = 7;

static int draw(int below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (int)(((uint64_t)(random_state >> 8) * (unsigned)below) >> 24);
}

static void hold(struct held *held, mf_type type, const char *letters, int spread)
{
    int64_t count = spread;
    held->count = 1;
    held->tensor = mf_tensor(NULL, type, (int)strlen(letters), held->shape);
    held->tensor.strides = held->stride;
    for (int m = 0; letters[m]; m++) { /* spread: columns first, with room between */
        held->shape[m] = size_of(letters[m]);
        held->count *= held->shape[m];
    }
    for (int m = 0; letters[m]; m++) {
        const int at = spread > 1 ? m : held->tensor.ndim - 1 - m;
        held->stride[at] = count;
        count *= held->shape[at];
    }
    held->bytes = (size_t)count * (held->tensor.dtype.bits + 7u) / 8;
    held->data = calloc(held->bytes + 8, 1);
    held->tensor.data = held->data;
}

static void randomize(mf_device *cpu, struct held *held, int special)
{
    static float values[ROOM];
    DLTensor from = held->tensor;
    const char *const copies[] = {"->", "a->a", "ab->ab", "abc->abc", "abcd->abcd"};
    from.dtype = mf_tensor(NULL, MF_F32, 0, NULL).dtype;
    from.data = values;
    from.strides = NULL;
    for (int64_t i = 0; i < held->count; i++) {
        const int odd = special ? draw(40) : 9;
        values[i] = odd == 0 ? NAN : odd == 1 ? -INFINITY : odd == 2 ? INFINITY : (float)(draw(17) - 8) / 4;
    }
    CHECK_MSG(mf_fold(cpu, copies[from.ndim], "a", &from, &held->tensor) == MF_OK, "%s", mf_error());
}

static void *put_bytes(mf_device *device, const struct held *held)
{
    void *memory = NULL;
    CHECK_MSG(mf_memory_create(device, (int64_t)held->bytes + 8, &memory) == MF_OK &&
                  mf_memory_write(device, memory, 0, held->data, (int64_t)held->bytes) == MF_OK,
              "%s", mf_error());
    return memory;
}

/* What both devices make of one case; wanted: bits for the operands. */
static void winners_on(mf_device *device, const struct winners_case *c, struct held *in, struct held *out,
                       struct held *given, struct held *to, int wanted)
{
    const int gpu = mf_device_kind(device) != 1, operands = c->shape[1] ? 2 : 1;
    struct held *all[6] = {&in[0], operands > 1 ? &in[1] : NULL, out, given, &to[0], operands > 1 ? &to[1] : NULL};
    DLTensor inputs[2], gradients[2], shape_of = out->tensor, of_given = given->tensor;
    const void *from[4];
    void *results[2] = {NULL, NULL};
    int n = 0, g = 0;
    mf_plan *plan = NULL;
    for (int t = 0; t < 6; t++)
        if (all[t])
            all[t]->memory = gpu ? put_bytes(device, all[t]) : all[t]->data;
    for (int i = 0; i < operands; i++) {
        inputs[i] = in[i].tensor;
        gradients[i] = to[i].tensor;
        if (!(wanted & 1 << i))
            gradients[i].dtype.bits = 0;
        else
            results[g++] = to[i].memory;
        from[n++] = in[i].memory;
        inputs[i].device.device_type = gradients[i].device.device_type = (DLDeviceType)mf_device_kind(device);
    }
    from[n++] = NULL; /* the output is not read */
    from[n++] = given->memory;
    shape_of.device.device_type = of_given.device.device_type = (DLDeviceType)mf_device_kind(device);
    const mf_status planned =
        mf_plan_gradient(device, c->modes, c->expression, inputs, &shape_of, &of_given, gradients, NULL, &plan);
    CHECK_MSG(planned == MF_OK && mf_plan_execute(plan, from, results, NULL) == MF_OK, "%s %s: %s", c->modes,
              c->expression, mf_error());
    if (planned == MF_OK && gpu) /* twice: nothing is left of the first time */
        CHECK(mf_plan_execute(plan, from, results, NULL) == MF_OK);
    for (int i = 0; gpu && i < operands; i++)
        CHECK(mf_memory_read(device, to[i].memory, 0, to[i].data, (int64_t)to[i].bytes) == MF_OK);
    for (int t = 0; gpu && t < 6; t++)
        if (all[t])
            mf_memory_destroy(device, all[t]->memory);
    mf_plan_destroy(plan);
}

static void compare_winners(mf_device *cpu, mf_device *gpu, const struct winners_case *c, int special, int wanted)
{
    struct held in[2] = {{{0}, {0}, 0, 0, {0}, 0, 0}}, out, given, to[2][2] = {{{{0}, {0}, 0, 0, {0}, 0, 0}}};
    const int operands = c->shape[1] ? 2 : 1;
    hold(&out, c->type[0] == MF_F64 ? MF_F64 : MF_F32, c->output, 1);
    hold(&given, c->given, c->output, c->spread);
    randomize(cpu, &given, 0);
    for (int i = 0; i < operands; i++) {
        hold(&in[i], c->type[i], c->shape[i], i ? 1 : c->spread);
        randomize(cpu, &in[i], special);
        for (int side = 0; side < 2; side++)
            hold(&to[side][i], c->gradient, c->shape[i], c->spread);
    }
    winners_on(cpu, c, in, &out, &given, to[0], wanted);
    winners_on(gpu, c, in, &out, &given, to[1], wanted);
    for (int i = 0; i < operands; i++)
        CHECK_MSG(!memcmp(to[0][i].data, to[1][i].data, to[0][i].bytes),
                  "%s %s: operand %d differs (b %d c %d i %d j %d k %d u %d)", c->modes, c->expression, i,
                  (int)sizes['b'], (int)sizes['c'], (int)sizes['i'], (int)sizes['j'], (int)sizes['k'], (int)sizes['u']);
    free(out.data);
    free(given.data);
    for (int i = 0; i < operands; i++) {
        free(in[i].data);
        free(to[0][i].data);
        free(to[1][i].data);
    }
}

static const struct winners_case winners_cases[] = {
    {"ik,kj->ij", "max(a+b)", {"ik", "kj"}, "ij", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"ik,kj->ij", "min(a-b)", {"ik", "kj"}, "ij", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"bik,bkj->bij", "max(a*b)", {"bik", "bkj"}, "bij", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"bik,kj->bij", "min(a*b)", {"bik", "kj"}, "bij", {MF_F64, MF_F32}, MF_F32, MF_F64, 1},
    {"ki,jk->ji", "max(a*b)", {"ki", "jk"}, "ji", {MF_F16, MF_BF16}, MF_F16, MF_BF16, 2},
    {"ik,jk->ij", "max(a*b)", {"ik", "jk"}, "ij", {MF_F32, MF_I8}, MF_F32, MF_F32, 1},
    {"bik->bi", "max(a)", {"bik", NULL}, "bi", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"bki->bi", "min(a)", {"bki", NULL}, "bi", {MF_F16, MF_F32}, MF_F32, MF_F16, 2},
    {"ik->", "max(a)", {"ik", NULL}, "", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"k,ik->i", "max(a+b)", {"k", "ik"}, "i", {MF_F32, MF_F32}, MF_F64, MF_F32, 1},
    {"ik,j->ij", "min(a*b)", {"ik", "j"}, "ij", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"b(i+u-1)c->bic", "max(a)", {"bxc", NULL}, "bic", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"b(2i+u-1),uj->bij", "max(a+b)", {"by", "uj"}, "bij", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
    {"iik,kj->ji", "max(a-b)", {"iik", "kj"}, "ji", {MF_F32, MF_F32}, MF_F32, MF_F32, 1},
};

/* Every case with some sizes: so few outputs in a part that many are together, and long parts that blocks share. */
static void test_winners(mf_device *cpu, mf_device *gpu)
{
    static const struct {
        char letter;
        int size[4];
    } chosen[] = {{'b', {3, 1, 2, 0}},    {'c', {2, 5, 1, 2}},   {'i', {7, 150, 1, 3}},
                  {'j', {5, 40, 300, 4}}, {'k', {9, 3, 700, 5}}, {'u', {3, 2, 4, 3}}};
    const int cases = sizeof winners_cases / sizeof *winners_cases;
    for (int c = 0; c < cases; c++)
        for (int s = 0; s < 4; s++) {
            struct winners_case one = winners_cases[c];
            char modes[64];
            for (size_t l = 0; l < sizeof chosen / sizeof *chosen; l++)
                sizes[(int)chosen[l].letter] = chosen[l].size[s];
            if (strchr(one.modes, 'u')) {
                snprintf(modes, sizeof modes, "%s with u=%d", one.modes, (int)sizes['u']);
                one.modes = modes;
            }
            compare_winners(cpu, gpu, &one, s == 0, s == 1 || !one.shape[1] || one.type[1] == MF_I8 ? 1 : 3);
        }
}

/* For sm_90, with nothing of it in memory that should be in registers. */
static void test_compiled(void)
{
    mf_device *device = NULL;
    if (mf_device_open("sm:90", &device) != MF_OK) {
        check_skip("gradients for sm_90", mf_error());
        return;
    }
    static const char *const expressions[] = {"max(a+b)", "min(a*b)", "max(a-b)"};
    gpu_test_keep_compiled(1);
    for (size_t e = 0; e < sizeof expressions / sizeof *expressions; e++) {
        mf_plan *plan = NULL;
        const mf_status status = plan_on(device, expressions[e], NULL, &plan);
        const char *text = mf_plan_describe(plan), *winners = strstr(text, "winners of operand b");
        CHECK_MSG(status == MF_OK && winners && strstr(winners, "0 bytes on the stack, 0 spilled"), "%s: %s %s",
                  expressions[e], mf_error(), text);
        mf_plan_destroy(plan);
    }
    const mf_options products = {"gradient-products", 0, 0};
    mf_plan *plan = NULL;
    CHECK_MSG(plan_on(device, "logsumexp(a+b)", &products, &plan) == MF_OK, "%s", mf_error());
    CHECK(mf_plan_tier_count(plan, MF_TIER_EXACT) == 0); /* nothing is executed, nothing is asked */
    mf_plan_destroy(plan);
    gpu_test_keep_compiled(0);
    mf_device_close(device);
}

int main(int argc, char **argv)
{
    const char *const name = argc > 1 ? argv[1] : "opencl:0";
    mf_device *cpu = NULL, *gpu = NULL;
    mf_plan *plan = NULL;
    gpu_test_environment("off");
    fill(a, A, 1);
    fill(b, B, 2);
    fill(d, O, 3);
    if (!CHECK(mf_device_open("cpu", &cpu) == MF_OK))
        return check_done("test_gpu_gradient");
    if (mf_device_open(name, &gpu) != MF_OK) {
        check_skip("gradients on a GPU", mf_error());
    } else {
        const mf_options unknown = {"gradient-guess", 0, 0};
        compare(cpu, gpu, "sum(a*b)", NULL, 0, "gradient-exact");
        CHECK(certified == 0 && exact == 0);
        compare(cpu, gpu, "logsumexp(a+b)", NULL, MF_ORDER_CONTRACT, "gradient-exact");
        compare(cpu, gpu, "logsumexp(a+b)", "gradient-exact", 0, "gradient-exact");
        compare(cpu, gpu, "logsumexp(a+b)", "gradient-products", MF_LOG_EXACT, "gradient-exact");
        CHECK(certified == 0 && exact == O);
        CHECK(plan_on(gpu, "logsumexp(a+b)", &unknown, &plan) == MF_ERROR_ARGUMENT &&
              !strcmp(mf_error(), "there is no solver \"gradient-guess\" for gradients; there are gradient "
                                  "gradient-exact gradient-products"));
        test_winners(cpu, gpu);
        test_products(cpu, gpu, !strncmp(name, "opencl", 6));
        if (!strncmp(name, "cuda", 4))
            test_cublas(gpu);
        mf_device_close(gpu);
    }
    test_compiled();
    mf_device_close(cpu);
    return check_done("test_gpu_gradient");
}
