/* What folds mean: small cases computed by hand, NumPy's rules for NaN, infinities and -0, empty and tiny tensors,
 * strides, windows, several results, finish operands, in place. Every case runs under every solver that takes it, and
 * all of them must give the same bits. (The maps are in test_expr.c.) */
#include "check.h"

#include <math.h>
#include <modefold.h>

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
#define F64(...)     \
    (const double[]) \
    {                \
        __VA_ARGS__  \
    }

static DLTensor with_strides(DLTensor tensor, int64_t *strides)
{
    tensor.strides = strides;
    return tensor;
}

/* Runs the fold under solver (null: the library's choice); an inapplicable solver is MF_ERROR_UNSUPPORTED. */
static mf_status fold_with(const char *solver, const char *modes, const char *expression, const DLTensor *in,
                           const DLTensor *out)
{
    const mf_options options = {solver, 0, 0};
    const void *inputs[MF_MAX_INPUTS];
    void *outputs[MF_MAX_OUTPUTS];
    mf_plan *plan;
    mf_status status = mf_plan_create(cpu, modes, expression, in, out, &options, &plan);
    if (status != MF_OK)
        return status;
    for (int i = 0; i < mf_modes_inputs(modes); i++)
        inputs[i] = (const char *)in[i].data + in[i].byte_offset;
    for (int k = 0; k < mf_expression_outputs(expression); k++)
        outputs[k] = (char *)out[k].data + out[k].byte_offset;
    status = mf_plan_execute(plan, inputs, outputs, NULL);
    mf_plan_destroy(plan);
    return status;
}

/* Folds into `bytes` bytes at result with the library's choice of solver, then compares every other solver's bytes. */
static int fold_all(const char *modes, const char *expression, const DLTensor *in, const DLTensor *out, void *result,
                    size_t bytes)
{
    static const char *const solvers[] = {"reference", "inner", "outer", "pool", "sliding", "few", "map"};
    memset(result, 0x5a, bytes);
    mf_status status = fold_with(NULL, modes, expression, in, out);
    if (!CHECK_MSG(status == MF_OK, "%s %s: %s", modes, expression, mf_error()))
        return 0;
    char *first = malloc(bytes + 1);
    memcpy(first, result, bytes);
    for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
        memset(result, 0x5a, bytes);
        status = fold_with(solvers[s], modes, expression, in, out);
        if (status != MF_ERROR_UNSUPPORTED)
            CHECK_MSG(status == MF_OK && !memcmp(first, result, bytes), "%s %s: solver %s differs or says %s", modes,
                      expression, solvers[s], mf_status_name(status));
    }
    memcpy(result, first, bytes);
    free(first);
    return 1;
}

/* Equal, two NaNs are equal, and 0 is not -0. */
static int same(double a, double b)
{
    return a != a ? b != b : a == b && !signbit(a) == !signbit(b);
}

/* expression over n doubles, reduced to one double. */
static double reduce(const char *expression, int64_t n, const double *x)
{
    double y = -77;
    DLTensor in = mf_tensor(x, MF_F64, 1, &n), out = mf_tensor(&y, MF_F64, 0, NULL);
    fold_all("i->", expression, &in, &out, &y, sizeof y);
    return y;
}

/* ---- reducers ---- */

static void test_reducers(void)
{
    static const struct {
        const char *expression;
        int64_t n;
        double x[6], want;
    } cases[] = {
        /* clang-format off */
        {"sum(a)", 5, {1, 2, 3, 4, -20}, -10}, {"prod(a)", 4, {1, 2, 3, -4}, -24}, {"min(a)", 4, {3, -1, 7, 0}, -1},
        {"max(a)", 4, {3, -1, 7, 0}, 7}, {"mean(a)", 4, {1, 2, 3, 6}, 3}, {"var(a)", 4, {1, 3, 5, 7}, 5},
        {"var(a,1)", 3, {1, 3, 8}, 13}, {"std(a)", 4, {0, 0, 4, 4}, 2},
        {"std(a,2)", 6, {1, 1, 1, 5, 5, 5}, 2.449489742783178}, {"norm(a)", 2, {3, 4}, 5},
        {"any(a)", 3, {0, 0, 0}, 0}, {"any(a)", 3, {0, -2, 0}, 1}, {"all(a)", 3, {1, -2, 0}, 0},
        {"all(a)", 3, {1, -2, 3}, 1}, {"count(a)", 5, {1, 0, -2, 0, 4}, 3}, {"argmin(a)", 4, {3, -1, 7, -1}, 1},
        {"argmax(a)", 4, {3, 7, -1, 7}, 1}, {"logsumexp(a)", 2, {5, 5}, 5.693147180559945},
        {"sum(a>2)", 4, {1, 2, 3, 4}, 2}, {"sum(a*a)", 3, {1, 2, 3}, 14}, {"max(abs(a))", 3, {1, -5, 3}, 5},
        {"sum(where(a>0,a,0))", 4, {1, -2, 3, -4}, 4}, {"sum(a)/count(a)", 3, {2, 4, 6}, 4},
        {"max(a)-min(a)", 3, {2, -4, 6}, 10}, {"sqrt(sum(a))", 2, {4, 5}, 3}, {"sum(min(a,2))", 3, {1, 2, 3}, 5},
        {"mean(a)*2+1", 2, {1, 2}, 4}, {"-sum(a)", 2, {1, 2}, -3}, {"var(a)", 1, {5}, 0}, {"argmax(a)", 1, {5}, 0},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double y = reduce(cases[i].expression, cases[i].n, cases[i].x);
        CHECK_MSG(same(y, cases[i].want), "%s case %zu gives %.17g, not %.17g", cases[i].expression, i, y,
                  cases[i].want);
    }
}

/* NaN spreads and wins; infinities follow IEEE; -0 never leaves sum, min or max. */
static void test_special_values(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const struct {
        const char *expression;
        int64_t n;
        double x[4], want;
    } cases[] = {
        /* clang-format off */
        {"sum(a)", 3, {1, nan, 2}, nan}, {"prod(a)", 3, {0, nan, 2}, nan}, {"min(a)", 3, {1, nan, -inf}, nan},
        {"max(a)", 3, {inf, 1, nan}, nan}, {"mean(a)", 3, {1, nan, 2}, nan}, {"var(a)", 3, {1, nan, 2}, nan},
        {"norm(a)", 2, {nan, 2}, nan}, {"argmax(a)", 4, {inf, nan, 3, nan}, 1},
        {"argmin(a)", 4, {-inf, 2, nan, nan}, 2}, {"any(a)", 2, {0, nan}, 1}, {"all(a)", 2, {1, nan}, 1},
        {"count(a)", 3, {nan, 0, 2}, 2}, {"logsumexp(a)", 2, {nan, 0}, nan},
        {"logsumexp(a)", 2, {-inf, -inf}, -inf}, {"logsumexp(a)", 2, {inf, 1}, inf},
        {"logsumexp(a)", 2, {-inf, 1}, 1}, {"logsumexp(a)", 2, {inf, -inf}, inf}, {"logsumexp(a)", 2, {inf, inf}, inf},
        {"logsumexp(a)", 2, {1000, -1000}, 1000}, {"sum(a)", 2, {inf, 1}, inf}, {"sum(a)", 2, {inf, -inf}, nan},
        {"mean(a)", 2, {inf, 1}, inf}, {"var(a)", 2, {inf, 1}, nan}, {"std(a)", 2, {-inf, 1}, nan},
        {"prod(a)", 2, {inf, 0}, nan}, {"max(a)", 2, {-inf, -inf}, -inf}, {"sum(a)", 2, {-0.0, -0.0}, 0},
        {"max(a)", 2, {-0.0, -0.0}, 0}, {"min(a)", 2, {0, -0.0}, 0}, {"argmax(a)", 2, {-0.0, 0}, 0},
        {"argmin(a)", 2, {0, -0.0}, 0}, {"var(a,2)", 2, {1, 3}, inf}, {"var(a,2)", 2, {1, 1}, nan},
        {"var(a,5)", 2, {1, 3}, inf}, {"any(a)", 2, {-0.0, 0}, 0}, {"max(isnan(a))", 2, {1, nan}, 1},
        {"sum(isfinite(a))", 4, {1, nan, inf, -inf}, 1},
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double y = reduce(cases[i].expression, cases[i].n, cases[i].x);
        CHECK_MSG(same(y, cases[i].want), "%s case %zu gives %.17g, not %.17g", cases[i].expression, i, y,
                  cases[i].want);
    }
}

static void test_empty(void)
{
    static const struct {
        const char *expression;
        double want;
    } cases[] = {
        /* clang-format off */
        {"sum(a)", 0}, {"prod(a)", 1}, {"min(a)", (double)INFINITY}, {"max(a)", -(double)INFINITY}, {"norm(a)", 0},
        {"any(a)", 0}, {"all(a)", 1}, {"count(a)", 0}, {"sum(a)+3", 3}, {"and(i8(a))", -1}, {"or(i8(a))", 0},
        {"xor(i8(a))", 0}, {"logsumexp(a)", -(double)INFINITY},
        /* clang-format on */
    };
    const double none[1] = {7};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double y = reduce(cases[i].expression, 0, none);
        CHECK_MSG(same(y, cases[i].want), "empty %s gives %g, not %g", cases[i].expression, y, cases[i].want);
    }
    double y[4] = {9, 9, 9, 9};
    DLTensor in = mf_tensor(NULL, MF_F64, DIMS(3, 0)), out = mf_tensor(y, MF_F64, DIMS(3));
    CHECK(mf_fold(cpu, "ij->i", "sum(a)", &in, &out) == MF_OK && y[0] == 0 && y[2] == 0 && y[3] == 9);
    DLTensor nothing = mf_tensor(NULL, MF_F64, DIMS(0));
    CHECK(mf_fold(cpu, "ij->j", "mean(a)", &in, &nothing) == MF_OK);
    CHECK(mf_fold(cpu, "ij->j", "argmax(a)", &in, &nothing) == MF_OK);
    DLTensor row = mf_tensor(NULL, MF_F64, DIMS(0, 5)), columns = mf_tensor(NULL, MF_F64, DIMS(0));
    CHECK(mf_fold(cpu, "ij->i", "max(a)", &row, &columns) == MF_OK);
    CHECK(mf_fold(cpu, "ij->ij", "a+1", &row, &row) == MF_OK);
}

/* ---- integers ---- */

static int64_t reduce_bytes(const char *expression, mf_type type, const void *x, int64_t n)
{
    int64_t y = -77;
    DLTensor in = mf_tensor(x, type, 1, &n), out = mf_tensor(&y, MF_I64, 0, NULL);
    fold_all("i->", expression, &in, &out, &y, sizeof y);
    return y;
}

static void test_integer_reducers(void)
{
    const uint8_t u[4] = {200, 100, 12, 13}, truth[4] = {0, 1, 2, 255};
    const int8_t s[4] = {-128, 100, 127, -1};
    CHECK(reduce_bytes("sum(a)", MF_U8, u, 4) == 325);
    CHECK(reduce_bytes("prod(a)", MF_U8, u, 4) == 3120000);
    CHECK(reduce_bytes("min(a)", MF_I8, s, 4) == -128);
    CHECK(reduce_bytes("max(a)", MF_I8, s, 4) == 127);
    CHECK(reduce_bytes("sum(a)", MF_I8, s, 4) == 98);
    CHECK(reduce_bytes("and(a)", MF_U8, u, 2) == (200 & 100));
    CHECK(reduce_bytes("or(a)", MF_U8, u, 2) == (200 | 100));
    CHECK(reduce_bytes("xor(a)", MF_U8, u, 3) == (200 ^ 100 ^ 12));
    CHECK(reduce_bytes("argmin(a)", MF_U8, u, 4) == 2);
    CHECK(reduce_bytes("sum(a)", MF_BOOL, truth, 4) == 3);
    CHECK(reduce_bytes("count(a)", MF_BOOL, truth, 4) == 3);
    CHECK(reduce_bytes("all(a)", MF_BOOL, truth + 1, 3) == 1);
    CHECK(reduce_bytes("any(a)", MF_BOOL, truth, 1) == 0);
    CHECK(reduce_bytes("max(a)", MF_BOOL, truth, 4) == 1);
    CHECK(reduce_bytes("xor(a)", MF_BOOL, truth, 4) == 1);
    CHECK(reduce_bytes("sum(popcount(a))", MF_I8, s, 4) == 1 + 3 + 7 + 8);
    CHECK(reduce_bytes("mean(a)*4", MF_U8, u, 4) == 325);
    const uint64_t big[2] = {UINT64_MAX, UINT64_MAX - 1};
    CHECK(reduce_bytes("max(a)", MF_U64, big, 2) == -1 && reduce_bytes("argmin(a)", MF_U64, big, 2) == 1);
    CHECK(reduce_bytes("sum(a)", MF_U64, big, 2) == -3);
}

/* ---- casts and stores ---- */

static int64_t cast(const char *expression, mf_type from, const void *x, mf_type to)
{
    union {
        int8_t i8;
        uint8_t u8;
        int16_t i16;
        int32_t i32;
        int64_t i64;
    } y;
    y.i64 = 0;
    DLTensor in = mf_tensor(x, from, 0, NULL), out = mf_tensor(&y, to, 0, NULL);
    fold_all("->", expression, &in, &out, &y, (size_t)((int)to & 0xff) / 8);
    return to == MF_I8                    ? y.i8
           : to == MF_U8 || to == MF_BOOL ? y.u8
           : to == MF_I16                 ? y.i16
           : to == MF_I32                 ? y.i32
                                          : y.i64;
}

/* From floats: towards zero, saturating, NaN to 0. From integers: wrapping. To bool: not 0. */
static void test_casts(void)
{
    const double x[7] = {3.9, -3.9, 1e30, -1e30, (double)NAN, 300.7, 0.25};
    CHECK(cast("a", MF_F64, &x[0], MF_I8) == 3 && cast("a", MF_F64, &x[1], MF_I8) == -3);
    CHECK(cast("a", MF_F64, &x[2], MF_I8) == 127 && cast("a", MF_F64, &x[3], MF_I8) == -128);
    CHECK(cast("a", MF_F64, &x[4], MF_I8) == 0 && cast("a", MF_F64, &x[4], MF_BOOL) == 1);
    CHECK(cast("a", MF_F64, &x[5], MF_U8) == 255 && cast("a", MF_F64, &x[1], MF_U8) == 0);
    CHECK(cast("a", MF_F64, &x[2], MF_I64) == INT64_MAX && cast("a", MF_F64, &x[3], MF_I64) == INT64_MIN);
    CHECK(cast("a", MF_F64, &x[3], MF_I32) == INT32_MIN && cast("a", MF_F64, &x[6], MF_BOOL) == 1);
    CHECK(cast("u8(a)", MF_F64, &x[5], MF_I64) == 255 && cast("i8(a)+1", MF_F64, &x[2], MF_I64) == 128);
    CHECK(cast("i64(a)", MF_F64, &x[1], MF_I64) == -3 && cast("bool(a)", MF_F64, &x[6], MF_I64) == 1);
    CHECK(cast("i8(floor(a))", MF_F64, &x[1], MF_I64) == -4 && cast("i16(a)", MF_F64, &x[2], MF_I16) == 32767);
    const int64_t n[2] = {300, -1};
    CHECK(cast("a", MF_I64, &n[0], MF_I8) == 44 && cast("a", MF_I64, &n[0], MF_U8) == 44);
    CHECK(cast("u8(a)", MF_I64, &n[1], MF_I64) == 255 && cast("u64(a)", MF_I64, &n[1], MF_I64) == -1);
    CHECK(cast("u32(a)", MF_I64, &n[1], MF_I64) == 4294967295 && cast("a", MF_I64, &n[0], MF_BOOL) == 1);
    CHECK(cast("f32(a)", MF_I64, &(int64_t){16777217}, MF_I64) == 16777216);
    CHECK(cast("f16(a)", MF_I64, &(int64_t){2049}, MF_I64) == 2048 &&
          cast("bf16(a)", MF_I64, &(int64_t){257}, MF_I64) == 256);
    CHECK(cast("f8e4m3(a)", MF_I64, &(int64_t){17}, MF_I64) == 16 &&
          cast("f8e5m2(a)", MF_I64, &(int64_t){9}, MF_I64) == 8);
    const float half = 65520, tie = 1.00048828125f;
    const uint16_t want[2] = {0x7c00, 0x3c00};
    uint16_t y = 0;
    DLTensor in = mf_tensor(&half, MF_F32, 0, NULL), out = mf_tensor(&y, MF_F16, 0, NULL);
    CHECK(mf_fold(cpu, "->", "a", &in, &out) == MF_OK && y == want[0]);
    in = mf_tensor(&tie, MF_F32, 0, NULL);
    CHECK(mf_fold(cpu, "->", "a", &in, &out) == MF_OK && y == want[1]);
}

/* ---- order ---- */

/* argmax numbers as written, whatever the memory: modes as they first appear, the last one fastest. */
static void test_arg_order(void)
{
    const float x[6] = {0, 9, 1, 2, 9, 3}; /* as 2 x 3: x[0][1] = x[1][1] = 9 */
    int64_t y = -1;
    DLTensor out = mf_tensor(&y, MF_I64, 0, NULL), in = mf_tensor(x, MF_F32, DIMS(2, 3));
    fold_all("ij->", "argmax(a)", &in, &out, &y, sizeof y);
    CHECK(y == 1);
    DLTensor t = with_strides(mf_tensor(x, MF_F32, DIMS(3, 2)), STRIDES(1, 3)); /* its transpose: [1][0] and [1][1] */
    fold_all("ji->", "argmax(a)", &t, &out, &y, sizeof y);
    CHECK(y == 2);
    DLTensor back = with_strides(mf_tensor(x + 5, MF_F32, DIMS(6)), STRIDES(-1));
    fold_all("i->", "argmax(a)", &back, &out, &y, sizeof y);
    CHECK(y == 1);
    int64_t row[3] = {0};
    DLTensor rows = mf_tensor(row, MF_I64, DIMS(3));
    fold_all("ij->j", "argmax(a)", &in, &rows, row, sizeof row);
    CHECK(row[0] == 1 && row[1] == 0 && row[2] == 1);
    float many[9000];
    for (int i = 0; i < 9000; i++)
        many[i] = i == 4500 || i == 8999 || i == 4501 ? 2.0f : 1.0f;
    DLTensor longer = mf_tensor(many, MF_F32, DIMS(9000));
    fold_all("i->", "argmax(a)", &longer, &out, &y, sizeof y);
    CHECK(y == 4500);
    fold_all("i->", "argmin(-a)", &longer, &out, &y, sizeof y);
    CHECK(y == 4500);
}

/* The contract itself for a row of 300 floats whose rounding shows the order: lanes of 3, then the halving tree. */
static void test_contract(void)
{
    float x[300], lane[128], y = 0;
    for (int i = 0; i < 300; i++)
        x[i] = 1.0f / (float)(1 + i * i % 97);
    for (int l = 0; l < 128; l++) {
        lane[l] = x[l];
        for (int e = l + 128; e < 300; e += 128)
            lane[l] += x[e];
    }
    for (int half = 64; half; half /= 2)
        for (int l = 0; l < half; l++)
            lane[l] += lane[l + half];
    DLTensor in = mf_tensor(x, MF_F32, DIMS(300)), out = mf_tensor(&y, MF_F32, 0, NULL);
    fold_all("i->", "sum(a)", &in, &out, &y, sizeof y);
    CHECK(y == lane[0]);
}

/* A view has its owner's bits: transposed, padded, reversed outer mode, a batch of them. */
static void test_layouts(void)
{
    enum { N = 37, M = 150 };
    static float x[N][M], t[M][N], wide[N][2 * M];
    float y[4][N] = {{0}};
    for (int i = 0; i < N; i++)
        for (int j = 0; j < M; j++)
            x[i][j] = t[j][i] = wide[i][2 * j] = (float)(i * 7919 + j * 104729 % 1000) / 977.0f;
    DLTensor out[4];
    int64_t rows[1] = {N};
    for (int k = 0; k < 4; k++)
        out[k] = mf_tensor(y[k], MF_F32, 1, rows);
    DLTensor a = mf_tensor(x, MF_F32, DIMS(N, M)), b = mf_tensor(t, MF_F32, DIMS(M, N));
    DLTensor c = with_strides(mf_tensor(wide, MF_F32, DIMS(N, M)), STRIDES(2 * M, 2));
    DLTensor view = with_strides(mf_tensor(x, MF_F32, DIMS(M, N)), STRIDES(1, M));
    static const char *const expressions[] = {"sum(a)", "mean(a)", "var(a)", "logsumexp(a)", "sum(a*a+1)", "prod(a)"};
    for (size_t e = 0; e < sizeof expressions / sizeof expressions[0]; e++) {
        fold_all("ij->i", expressions[e], &a, &out[0], y[0], sizeof y[0]);
        fold_all("ji->i", expressions[e], &b, &out[1], y[1], sizeof y[1]);
        fold_all("ij->i", expressions[e], &c, &out[2], y[2], sizeof y[2]);
        fold_all("ji->i", expressions[e], &view, &out[3], y[3], sizeof y[3]);
        for (int k = 1; k < 4; k++)
            CHECK_MSG(!memcmp(y[0], y[k], sizeof y[0]), "%s: layout %d differs", expressions[e], k);
    }
    float whole[2];
    DLTensor one = mf_tensor(&whole[0], MF_F32, 0, NULL), two = mf_tensor(&whole[1], MF_F32, 0, NULL);
    fold_all("ij->", "sum(a)", &a, &one, &whole[0], sizeof whole[0]);
    fold_all("ji->", "sum(a)", &view, &two, &whole[1], sizeof whole[1]);
    CHECK(whole[0] == whole[1]);
}

/* ---- shapes and strides ---- */

static void test_small_shapes(void)
{
    const float x[3] = {5, 6, 7};
    float y[3] = {0, 0, 0};
    DLTensor scalar = mf_tensor(x, MF_F32, 0, NULL), out = mf_tensor(y, MF_F32, 0, NULL);
    fold_all("->", "a", &scalar, &out, y, 4);
    CHECK(y[0] == 5);
    fold_all("->", "sum(a)", &scalar, &out, y, 4);
    CHECK(y[0] == 5);
    fold_all("->", "max(a)+sum(a*a)", &scalar, &out, y, 4);
    CHECK(y[0] == 30);
    DLTensor ones = mf_tensor(x, MF_F32, DIMS(1, 1, 1)), one = mf_tensor(y, MF_F32, DIMS(1));
    fold_all("ijk->j", "mean(a)", &ones, &one, y, 4);
    CHECK(y[0] == 5);
    DLTensor pair[2] = {mf_tensor(x, MF_F32, DIMS(3)), scalar}, three = mf_tensor(y, MF_F32, DIMS(3));
    fold_all("i,->i", "a*b", pair, &three, y, 12);
    CHECK(y[0] == 25 && y[1] == 30 && y[2] == 35);
    int64_t shape[32];
    for (int d = 0; d < 32; d++)
        shape[d] = d == 20 ? 3 : 1;
    DLTensor deep = mf_tensor(x, MF_F32, 32, shape);
    fold_all("abcdefghijklmnopqrstuvwxyzABCDEF->u", "sum(a)+1", &deep, &three, y, 12);
    CHECK(y[0] == 6 && y[2] == 8);
    fold_all("abcdefghijklmnopqrstuvwxyzABCDEF->", "sum(a)", &deep, &out, y, 4);
    CHECK(y[0] == 18);
}

static void test_strides(void)
{
    const int32_t x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    int32_t y[8] = {0};
    DLTensor out4 = mf_tensor(y, MF_I32, DIMS(4)), out2 = mf_tensor(y, MF_I32, DIMS(2));
    DLTensor back = with_strides(mf_tensor(x + 7, MF_I32, DIMS(4)), STRIDES(-2));
    fold_all("i->i", "a", &back, &out4, y, 16);
    CHECK(y[0] == 7 && y[1] == 5 && y[2] == 3 && y[3] == 1);
    DLTensor still = with_strides(mf_tensor(x + 3, MF_I32, DIMS(4, 2)), STRIDES(0, 1));
    fold_all("ij->j", "sum(a)", &still, &out2, y, 8);
    CHECK(y[0] == 12 && y[1] == 16);
    DLTensor runs = with_strides(mf_tensor(x, MF_I32, DIMS(4, 5)), STRIDES(1, 1));
    fold_all("ij->i", "sum(a)", &runs, &out4, y, 16);
    CHECK(y[0] == 10 && y[1] == 15 && y[2] == 20 && y[3] == 25);
    DLTensor both = with_strides(mf_tensor(x + 7, MF_I32, DIMS(2, 4)), STRIDES(-4, -1));
    fold_all("ij->j", "sum(a)", &both, &out4, y, 16);
    CHECK(y[0] == 10 && y[3] == 4);
    DLTensor spread = with_strides(mf_tensor(y + 7, MF_I32, DIMS(4)), STRIDES(-2));
    DLTensor four = mf_tensor(x, MF_I32, DIMS(4));
    fold_all("i->i", "a+10", &four, &spread, y, sizeof y);
    CHECK(y[7] == 10 && y[5] == 11 && y[3] == 12 && y[1] == 13);
    CHECK(mf_fold(cpu, "i->i", "a+20", &four, &spread) == MF_OK && y[7] == 20);
    DLTensor offset = mf_tensor(x, MF_I32, DIMS(2));
    offset.byte_offset = 12;
    fold_all("i->i", "a", &offset, &out2, y, 8);
    CHECK(y[0] == 3 && y[1] == 4);
    DLTensor square = mf_tensor(x, MF_I32, DIMS(2, 2));
    fold_all("ii->i", "a", &square, &out2, y, 8);
    CHECK(y[0] == 0 && y[1] == 3);
}

/* ---- windows ---- */

/* Elements outside of the tensor take no part: in sum as zeros, in max as -inf, in mean not counted. */
static void test_pooling(void)
{
    const float x[3][4] = {{1, 2, 3, 4}, {5, -6, 7, 8}, {-9, -1, -2, -3}};
    float y[2][2] = {{0}}, z[5] = {0};
    int64_t at[2][2] = {{0}};
    DLTensor in = mf_tensor(x, MF_F32, DIMS(3, 4)), out = mf_tensor(y, MF_F32, DIMS(2, 2));
    DLTensor arg = mf_tensor(at, MF_I64, DIMS(2, 2));
    fold_all("(2h+i)(2w+j)->hw with i=2,j=2", "max(a)", &in, &out, y, sizeof y);
    CHECK(y[0][0] == 5 && y[0][1] == 8 && y[1][0] == -1 && y[1][1] == -2);
    fold_all("(2h+i)(2w+j)->hw with i=2,j=2", "mean(a)", &in, &out, y, sizeof y);
    CHECK(y[0][0] == 0.5f && y[0][1] == 5.5f && y[1][0] == -5 && y[1][1] == -2.5f);
    fold_all("(2h+i)(2w+j)->hw with i=2,j=2", "argmax(a)", &in, &arg, at, sizeof at);
    CHECK(at[0][0] == 2 && at[0][1] == 3 && at[1][0] == 1 && at[1][1] == 0);
    fold_all("(2h+i-1)(2w+j-1)->hw with i=2,j=2", "sum(a)", &in, &out, y, sizeof y);
    CHECK(y[0][0] == 1 && y[0][1] == 5 && y[1][0] == -4 && y[1][1] == -2);
    DLTensor runs = mf_tensor(z, MF_F32, DIMS(5)), row = mf_tensor(x, MF_F32, DIMS(4));
    fold_all("(i+j-1)->i with j=2", "sum(a)", &row, &runs, z, sizeof z);
    CHECK(z[0] == 1 && z[1] == 3 && z[2] == 5 && z[3] == 7 && z[4] == 4);
    fold_all("(i+j-1)->i with j=2", "var(a)", &row, &runs, z, sizeof z);
    CHECK(z[0] == 0 && z[1] == 0.25f && z[3] == 0.25f && z[4] == 0);
    fold_all("(i+j-3)->i with j=2", "max(a)", &row, &runs, z, sizeof z);
    CHECK(z[0] == -(float)INFINITY && z[1] == -(float)INFINITY && z[2] == 1 && z[4] == 3);
    fold_all("(i+j-3)->i with j=2", "any(a)", &row, &runs, z, sizeof z);
    CHECK(z[0] == 0 && z[2] == 1);
    fold_all("(4-i)->i", "sum(a)", &row, &runs, z, sizeof z);
    CHECK(z[0] == 0 && z[1] == 4 && z[4] == 1);
}

/* 3 x 3, one element of padding, two channels in, three out, then a scale, a shift and leaky; small whole numbers, so
 * that every order is exact. */
static void test_convolution(void)
{
    enum { H = 5, W = 6, C = 2, O = 3 };
    float x[H][W][C], k[3][3][C][O], scale[O] = {1, -2, 0.5f}, shift[O] = {3, 0, -1}, y[H][W][O] = {{{0}}};
    float transposed[O][W][H] = {{{0}}};
    for (int i = 0; i < H * W * C; i++)
        x[i / C / W][i / C % W][i % C] = (float)(i * 5 % 13 - 6);
    for (int i = 0; i < 9 * C * O; i++)
        k[i / (3 * C * O)][i / (C * O) % 3][i / O % C][i % O] = (float)(i * 7 % 11 - 5);
    DLTensor in[4] = {mf_tensor(x, MF_F32, DIMS(H, W, C)), mf_tensor(k, MF_F32, DIMS(3, 3, C, O)),
                      mf_tensor(scale, MF_F32, DIMS(O)), mf_tensor(shift, MF_F32, DIMS(O))};
    DLTensor out = mf_tensor(y, MF_F32, DIMS(H, W, O));
    const char *expression = "leaky(sum(a*b)*c+d)";
    fold_all("(h+i-1)(w+j-1)c,ijco,o,o->hwo", expression, in, &out, y, sizeof y);
    DLTensor other = mf_tensor(transposed, MF_F32, DIMS(O, W, H));
    fold_all("(h+i-1)(w+j-1)c,ijco,o,o->owh", expression, in, &other, transposed, sizeof transposed);
    int wrong = 0;
    for (int h = 0; h < H; h++)
        for (int w = 0; w < W; w++)
            for (int o = 0; o < O; o++) {
                float sum = 0;
                for (int t = 0; t < 9 * C; t++) {
                    int r = h + t / C / 3 - 1, s = w + t / C % 3 - 1;
                    if (r >= 0 && r < H && s >= 0 && s < W)
                        sum += x[r][s][t % C] * k[t / C / 3][t / C % 3][t % C][o];
                }
                sum = sum * scale[o] + shift[o];
                wrong += y[h][w][o] != (sum > 0 ? sum : sum * 0.1f) || y[h][w][o] != transposed[o][w][h];
            }
    CHECK_MSG(!wrong, "convolution: %d elements differ", wrong);
}

/* ---- several results, finish operands, in place ---- */

static void test_results(void)
{
    const double x[6] = {1, 2, 3, 4, 5, 9}, scale[2] = {10, 100}, shift[2] = {-1, 1};
    double y[4][2] = {{0}};
    DLTensor in[3] = {mf_tensor(x, MF_F64, DIMS(2, 3)), mf_tensor(scale, MF_F64, DIMS(2)),
                      mf_tensor(shift, MF_F64, DIMS(2))};
    DLTensor out[4];
    int64_t two[1] = {2};
    for (int k = 0; k < 4; k++)
        out[k] = mf_tensor(y[k], MF_F64, 1, two);
    fold_all("ij,i,i->i", "sum(a); max(a); mean(a)*b+c; argmax(a)", in, out, y, sizeof y);
    CHECK(y[0][0] == 6 && y[0][1] == 18 && y[1][0] == 3 && y[1][1] == 9);
    CHECK(y[2][0] == 19 && y[2][1] == 601 && y[3][0] == 2 && y[3][1] == 2);
    fold_all("ij,i,i->i", "leaky(sum(a*b)*c+1)", in, out, y[0], sizeof y[0]);
    CHECK(y[0][0] == -59 * 0.1 && y[0][1] == 1801);
    fold_all("ij,i,i->i", "b; c; b*c; sum(a)-b", in, out, y, sizeof y);
    CHECK(y[0][1] == 100 && y[1][0] == -1 && y[2][1] == 100 && y[3][0] == -4);
}

static void test_products(void)
{
    const double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 2, 1, 0, 3};
    double y[4] = {0};
    int64_t at[4] = {0};
    DLTensor in[2] = {mf_tensor(a, MF_F64, DIMS(2, 3)), mf_tensor(b, MF_F64, DIMS(3, 2))};
    DLTensor out[2] = {mf_tensor(y, MF_F64, DIMS(2, 2)), mf_tensor(at, MF_I64, DIMS(2, 2))};
    fold_all("ik,kj->ij", "sum(a*b)", in, out, y, sizeof y);
    CHECK(y[0] == 5 && y[1] == 11 && y[2] == 14 && y[3] == 23);
    fold_all("ik,kj->ij", "min(a+b)", in, out, y, sizeof y);
    CHECK(y[0] == 2 && y[1] == 1 && y[2] == 5 && y[3] == 4);
    fold_all("ik,kj->ij", "max(a+b); argmax(a+b)", in, out, y, sizeof y);
    CHECK(y[0] == 4 && y[1] == 6 && y[2] == 7 && y[3] == 9);
    CHECK(at[0] == 1 && at[1] == 2 && at[2] == 1 && at[3] == 2);
    const uint8_t q[2][2] = {{0xff, 1}, {0, 3}};
    int64_t d[4] = {0};
    DLTensor bits[2] = {mf_tensor(q, MF_U8, DIMS(2, 2)), mf_tensor(q, MF_U8, DIMS(2, 2))};
    DLTensor distance = mf_tensor(d, MF_I64, DIMS(2, 2));
    fold_all("qw,tw->qt", "sum(popcount(a^b))", bits, &distance, d, sizeof d);
    CHECK(d[0] == 0 && d[1] == 9 && d[2] == 9 && d[3] == 0);
}

static void test_in_place(void)
{
    double x[6] = {1, 2, 3, 4, 5, 6}, c[2] = {10, 20}, other[6];
    DLTensor a = mf_tensor(x, MF_F64, DIMS(2, 3)), o = mf_tensor(other, MF_F64, DIMS(2, 3));
    CHECK(mf_fold(cpu, "ij->ij", "a*2", &a, &a) == MF_OK && x[0] == 2 && x[5] == 12);
    CHECK(mf_fold(cpu, "ij->ij", "a+1; a*10", &a, (DLTensor[]){a, o}) == MF_OK);
    CHECK(x[0] == 3 && x[5] == 13 && other[0] == 20 && other[5] == 120);
    CHECK(mf_fold(cpu, "ij,ij->ij", "b; a", (DLTensor[]){a, o}, (DLTensor[]){a, o}) == MF_OK);
    CHECK(x[0] == 20 && x[5] == 120 && other[0] == 3 && other[5] == 13);
    DLTensor in[2] = {a, mf_tensor(c, MF_F64, DIMS(2))};
    static const char *const solvers[] = {NULL, "reference", "inner", "outer"};
    for (int s = 0; s < 4; s++) {
        c[0] = 1;
        c[1] = 2;
        mf_status status = fold_with(solvers[s], "ij,i->i", "b+max(a)", in, &in[1]);
        CHECK_MSG(status == MF_ERROR_UNSUPPORTED || (c[0] == 1 + 60 && c[1] == 2 + 120), "solver %d: %g %g", s, c[0],
                  c[1]);
    }
    c[0] = 1;
    c[1] = 2;
    DLTensor two[2] = {in[1], mf_tensor(other, MF_F64, DIMS(2))};
    for (int s = 0; s < 4; s++) { /* the second result reads b after the first has been written over it */
        c[0] = 1;
        c[1] = 2;
        mf_status status = fold_with(solvers[s], "ij,i->i", "b+max(a); b*2", in, two);
        CHECK_MSG(status == MF_ERROR_UNSUPPORTED || (c[1] == 122 && other[0] == 2 && other[1] == 4),
                  "solver %d: %g, %g %g", s, c[1], other[0], other[1]);
    }
}

/* 2^25 ones along the slow mode of two columns: a plain float sum would stop at 2^24. */
static void test_large(void)
{
    const int64_t rows = (int64_t)1 << 25;
    const float one = 1;
    float y[2] = {0, 0};
    DLTensor in = with_strides(mf_tensor(&one, MF_F32, 2, (int64_t[]){rows, 2}), STRIDES(0, 0));
    DLTensor out = mf_tensor(y, MF_F32, DIMS(2));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
    check_skip("the sum of 2^25 x 2 ones", "too slow in this build");
    in.shape[0] = 1 << 12;
    CHECK(mf_fold(cpu, "ij->j", "sum(a)", &in, &out) == MF_OK && y[0] == 4096 && y[1] == 4096);
#else
    CHECK(mf_fold(cpu, "ij->j", "sum(a)", &in, &out) == MF_OK && y[0] == (float)rows && y[1] == (float)rows);
    float *x = malloc(sizeof *x * 2 * (size_t)rows);
    if (!x) {
        check_skip("2^25 x 2 ones in memory", "no memory");
        return;
    }
    for (int64_t i = 0; i < 2 * rows; i++)
        x[i] = 1;
    DLTensor owned = mf_tensor(x, MF_F32, 2, in.shape);
    CHECK(mf_fold(cpu, "ij->j", "sum(a)", &owned, &out) == MF_OK && y[0] == (float)rows && y[1] == (float)rows);
    free(x);
#endif
}

int main(void)
{
    if (mf_device_open("cpu:2", &cpu) != MF_OK)
        return 1;
    test_reducers();
    test_special_values();
    test_empty();
    test_integer_reducers();
    test_casts();
    test_arg_order();
    test_contract();
    test_layouts();
    test_small_shapes();
    test_strides();
    test_pooling();
    test_convolution();
    test_results();
    test_products();
    test_in_place();
    test_large();
    mf_device_close(cpu);
    return check_done("test_semantics");
}
