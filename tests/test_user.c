/* Users' operations: matrix products, affine maps, hashes of sequences, extremes with their counts; in order and not,
 * over one and several modes, windows and strides, against plain loops, under every solver. */
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

static DLTensor with_strides(DLTensor tensor, int64_t *strides)
{
    tensor.strides = strides;
    return tensor;
}

/* ---- the operations ---- */

/* Every operation below is a function on one pair of states; these make callbacks on blocks of it. */
#define CALLBACKS(name, state)                                                                               \
    static void name##_identity(void *context, int64_t n, void *states)                                      \
    {                                                                                                        \
        (void)context;                                                                                       \
        for (int64_t i = 0; i < n; i++)                                                                      \
            memcpy((char *)states + i * (int64_t)sizeof(state), &name##_neutral, sizeof(state));             \
    }                                                                                                        \
    static void name##_combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right, \
                               int64_t right_stride)                                                         \
    {                                                                                                        \
        (void)context;                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            state l, r;                                                                                      \
            memcpy(&l, (char *)left + i * left_stride, sizeof l);                                            \
            memcpy(&r, (const char *)right + i * right_stride, sizeof r);                                    \
            l = name##_of_two(l, r);                                                                         \
            memcpy((char *)left + i * left_stride, &l, sizeof l);                                            \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_lift(void *context, int64_t n, const void *const *values, void *states)               \
    {                                                                                                        \
        (void)context;                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            state s = name##_of_one(values, i);                                                              \
            memcpy((char *)states + i * (int64_t)sizeof s, &s, sizeof s);                                    \
        }                                                                                                    \
    }                                                                                                        \
    static void name##_finish(void *context, int64_t n, const void *states, void *const *results)            \
    {                                                                                                        \
        (void)context;                                                                                       \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            state s;                                                                                         \
            memcpy(&s, (const char *)states + i * (int64_t)sizeof s, sizeof s);                              \
            name##_results(s, results, i);                                                                   \
        }                                                                                                    \
    }

/* 2 x 2 matrices of integers modulo 2^64. */
struct matrix {
    uint64_t m[4];
};
static const struct matrix product_neutral = {{1, 0, 0, 1}};

static struct matrix product_of_two(struct matrix a, struct matrix b)
{
    return (struct matrix){{a.m[0] * b.m[0] + a.m[1] * b.m[2], a.m[0] * b.m[1] + a.m[1] * b.m[3],
                            a.m[2] * b.m[0] + a.m[3] * b.m[2], a.m[2] * b.m[1] + a.m[3] * b.m[3]}};
}
static struct matrix product_of_one(const void *const *values, int64_t i)
{
    struct matrix s;
    for (int k = 0; k < 4; k++)
        s.m[k] = ((const uint64_t *)values[k])[i];
    return s;
}
static void product_results(struct matrix s, void *const *results, int64_t i)
{
    for (int k = 0; k < 4; k++)
        ((uint64_t *)results[k])[i] = s.m[k];
}
CALLBACKS(product, struct matrix)

/* x -> scale x + shift, first the left map, then the right one; in floats, so that the brackets show. */
struct affine {
    double scale, shift;
};
static const struct affine affine_neutral = {1, 0};

static struct affine affine_of_two(struct affine a, struct affine b)
{
    return (struct affine){a.scale * b.scale, a.shift * b.scale + b.shift};
}
static struct affine affine_of_one(const void *const *values, int64_t i)
{
    return (struct affine){((const double *)values[0])[i], ((const double *)values[1])[i]};
}
static void affine_results(struct affine s, void *const *results, int64_t i)
{
    ((double *)results[0])[i] = s.scale;
    ((double *)results[1])[i] = s.shift;
}
CALLBACKS(affine, struct affine)

/* A sequence's polynomial hash modulo 65521, the power for its length, and the length: 7 bytes of state. */
struct __attribute__((packed)) hash {
    uint32_t value;
    uint16_t power;
    uint8_t length;
};
static const struct hash hash_neutral = {0, 1, 0};

static struct hash hash_of_two(struct hash a, struct hash b)
{
    return (struct hash){(a.value * b.power + b.value) % 65521, (uint16_t)((uint32_t)a.power * b.power % 65521),
                         (uint8_t)(a.length + b.length)};
}
static struct hash hash_of_one(const void *const *values, int64_t i)
{
    return (struct hash){(uint32_t)((const int64_t *)values[0])[i] & 0xff, 257, 1};
}
static void hash_results(struct hash s, void *const *results, int64_t i)
{
    ((int64_t *)results[0])[i] = s.value;
    ((int64_t *)results[1])[i] = s.length;
}
CALLBACKS(hash, struct hash)

/* The maximum and how often it occurs; commutative. */
struct peak {
    float top;
    int32_t count;
};
static const struct peak peak_neutral = {-INFINITY, 0};

static struct peak peak_of_two(struct peak a, struct peak b)
{
    if (a.top == b.top)
        return (struct peak){a.top, a.count + b.count};
    return a.top > b.top ? a : b;
}
static struct peak peak_of_one(const void *const *values, int64_t i)
{
    return (struct peak){((const float *)values[0])[i], 1};
}
static void peak_results(struct peak s, void *const *results, int64_t i)
{
    ((float *)results[0])[i] = s.top;
    ((float *)results[1])[i] = (float)s.count;
}
CALLBACKS(peak, struct peak)

/* The first and the last element, in the largest state there is, whose last byte must stay what it is. */
struct ends {
    int64_t first, last, some;
    char rest[4096 - 24];
};
static const struct ends ends_neutral = {.rest = {[4071] = 77}};

static struct ends ends_of_two(struct ends a, struct ends b)
{
    if (a.rest[4071] != 77 || b.rest[4071] != 77)
        a.first = a.last = -1;
    else if (!a.some)
        return b;
    else if (b.some)
        a.last = b.last;
    return a;
}
static struct ends ends_of_one(const void *const *values, int64_t i)
{
    struct ends s = ends_neutral;
    s.first = s.last = ((const int64_t *)values[0])[i];
    s.some = 1;
    return s;
}
static void ends_results(struct ends s, void *const *results, int64_t i)
{
    ((int64_t *)results[0])[i] = s.first * 1000 + s.last;
}
CALLBACKS(ends, struct ends)

#define OPERATION(op, inputs, outputs, type, state, any_order)                                                    \
    {                                                                                                             \
        .name = #op "_", .input_count = inputs, .output_count = outputs, .input_type = type, .output_type = type, \
        .state_size = sizeof(state), .commutative = any_order, .identity = op##_identity, .lift = op##_lift,      \
        .combine = op##_combine, .finish = op##_finish                                                            \
    }

static const mf_operation operations[] = {
    OPERATION(product, 4, 4, MF_U64, struct matrix, 0), OPERATION(affine, 2, 2, MF_F64, struct affine, 0),
    OPERATION(hash, 1, 2, MF_I64, struct hash, 0),      OPERATION(peak, 1, 2, MF_F32, struct peak, 1),
    OPERATION(ends, 1, 1, MF_I64, struct ends, 0),
};

/* ---- running ---- */

/* Folds under the library's choice of solver and the other ones that apply; all of them must agree. result is `bytes`
 * bytes that the outputs lie in. */
static int fold_all(const char *modes, const char *expression, const DLTensor *in, const DLTensor *out, void *result,
                    size_t bytes)
{
    static const char *const solvers[] = {NULL, "reference", "inner", "outer"};
    char *first = calloc(1, bytes);
    int done = 0;
    for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
        const mf_options options = {solvers[s], 0, 0};
        const void *inputs[MF_MAX_INPUTS] = {0};
        void *outputs[MF_MAX_OUTPUTS] = {0};
        mf_plan *plan;
        mf_status status = mf_plan_create(cpu, modes, expression, in, out, &options, &plan);
        if (status == MF_ERROR_UNSUPPORTED && s)
            continue;
        if (!CHECK_MSG(status == MF_OK, "%s %s: %s", modes, expression, mf_error()))
            break;
        for (int i = 0; i < mf_modes_inputs(modes); i++)
            inputs[i] = in[i].data;
        for (int k = 0; k < mf_expression_outputs(expression); k++)
            outputs[k] = out[k].data;
        memset(result, 0x5a, bytes);
        CHECK_MSG(mf_plan_execute(plan, inputs, outputs, NULL) == MF_OK, "%s: %s", expression, mf_error());
        mf_plan_destroy(plan);
        if (s)
            CHECK_MSG(!memcmp(first, result, bytes), "%s %s: solver %s differs", modes, expression, solvers[s]);
        memcpy(first, result, bytes);
        done = 1;
    }
    free(first);
    return done;
}

enum { N = 5000 };
static int64_t whole[4][N];
static double real[2][N];

static void fill(void)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < N; i++)
            whole[k][i] = (i * 31 + k * 17 + i * i % 7) % 251;
    for (int i = 0; i < N; i++) {
        real[0][i] = 1 + (double)(i % 13 - 6) / 1000;
        real[1][i] = (double)(i * 37 % 101) / 3;
    }
}

/* ---- in order ---- */

static void test_matrices(void)
{
    static const int64_t lengths[] = {1, 2, 3, 127, 128, 129, 4095, 4096, 4097, 5000};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        uint64_t y[4];
        DLTensor in[4], out[4];
        struct matrix want = product_neutral;
        for (int k = 0; k < 4; k++) {
            in[k] = mf_tensor(whole[k], MF_I64, 1, &lengths[l]);
            out[k] = mf_tensor(&y[k], MF_U64, 0, NULL);
        }
        for (int64_t i = 0; i < lengths[l]; i++)
            want = product_of_two(want, (struct matrix){{(uint64_t)whole[0][i], (uint64_t)whole[1][i],
                                                         (uint64_t)whole[2][i], (uint64_t)whole[3][i]}});
        fold_all("i,i,i,i->", "product_(a,b,c,d); product_.1(a,b,c,d); product_.2(a,b,c,d); product_.3(a,b,c,d)", in,
                 out, y, sizeof y);
        CHECK_MSG(!memcmp(y, want.m, sizeof y), "a product of %lld matrices", (long long)lengths[l]);
    }
}

/* The order is that of the modes string whatever the memory: rows before columns, columns before rows, transposed. */
static void test_two_modes(void)
{
    enum { I = 23, J = 19, K = 11 };
    uint64_t y[2][K] = {{0}};
    DLTensor in[4], turned[4];
    DLTensor out[2] = {mf_tensor(y[0], MF_U64, DIMS(K)), mf_tensor(y[1], MF_U64, DIMS(K))};
    int64_t shape[3] = {I, K, J}, back[3] = {J, K, I}, strides[3] = {1, J, K * J};
    for (int k = 0; k < 4; k++) {
        in[k] = mf_tensor(whole[k], MF_I64, 3, shape);
        turned[k] = with_strides(mf_tensor(whole[k], MF_I64, 3, back), strides);
    }
    static const char *const modes[] = {"ikj,ikj,ikj,ikj->k", "jki,jki,jki,jki->k"};
    for (int swap = 0; swap < 2; swap++) {
        const char *expression = "product_.1(a,b,c,d); product_.2(a,b,c,d)+1";
        fold_all(modes[swap], expression, swap ? turned : in, out, y, sizeof y);
        for (int k = 0; k < K; k++) {
            struct matrix want = product_neutral;
            for (int t = 0; t < I * J; t++) {
                int i = swap ? t % I : t / J, j = swap ? t / I : t % J, at = (i * K + k) * J + j;
                want = product_of_two(want, (struct matrix){{(uint64_t)whole[0][at], (uint64_t)whole[1][at],
                                                             (uint64_t)whole[2][at], (uint64_t)whole[3][at]}});
            }
            CHECK_MSG(y[0][k] == want.m[1] && y[1][k] == want.m[2] + 1, "output %d, swapped %d", k, swap);
        }
    }
}

/* The brackets of the contract: neighbours in pairs within 4096, then the tiles in pairs. */
static struct affine affine_tree(int64_t first, int64_t n)
{
    if (n == 1)
        return (struct affine){real[0][first], real[1][first]};
    int64_t half = 1;
    while (half * 2 < n)
        half *= 2;
    return affine_of_two(affine_tree(first, half), affine_tree(first + half, n - half));
}

static void test_affine(void)
{
    static const int64_t lengths[] = {1, 2, 3, 5, 100, 128, 1000, 4096};
    for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
        double y[2];
        DLTensor in[2] = {mf_tensor(real[0], MF_F64, 1, &lengths[l]), mf_tensor(real[1], MF_F64, 1, &lengths[l])};
        DLTensor out[2] = {mf_tensor(&y[0], MF_F64, 0, NULL), mf_tensor(&y[1], MF_F64, 0, NULL)};
        struct affine want = affine_tree(0, lengths[l]);
        fold_all("i,i->", "affine_(a,b); affine_.1(a,b)", in, out, y, sizeof y);
        CHECK_MSG(y[0] == want.scale && y[1] == want.shift, "%lld affine maps: %.17g, not %.17g", (long long)lengths[l],
                  y[1], want.shift);
    }
    double y[2];
    DLTensor in[2] = {mf_tensor(real[0], MF_F64, DIMS(N)), mf_tensor(real[1], MF_F64, DIMS(N))};
    DLTensor out[2] = {mf_tensor(&y[0], MF_F64, 0, NULL), mf_tensor(&y[1], MF_F64, 0, NULL)};
    struct affine want = affine_of_two(affine_tree(0, 4096), affine_tree(4096, N - 4096));
    fold_all("i,i->", "affine_(a,b); affine_.1(a,b)", in, out, y, sizeof y);
    CHECK(y[0] == want.scale && y[1] == want.shift);
}

/* Windows: elements outside of the tensor are the neutral element. */
static void test_hashes(void)
{
    int64_t y[2][40];
    DLTensor in = mf_tensor(whole[0], MF_I64, DIMS(40));
    DLTensor out[2] = {mf_tensor(y[0], MF_I64, DIMS(40)), mf_tensor(y[1], MF_I64, DIMS(40))};
    fold_all("(i+j-2)->i with j=5", "hash_(a); hash_.1(a)", &in, out, y, sizeof y);
    for (int i = 0; i < 40; i++) {
        struct hash want = hash_neutral;
        for (int j = i - 2; j < i + 3; j++)
            if (j >= 0 && j < 40)
                want = hash_of_two(want, (struct hash){(uint32_t)whole[0][j] & 0xff, 257, 1});
        CHECK_MSG(y[0][i] == want.value && y[1][i] == want.length, "the hash at %d", i);
    }
    DLTensor back = with_strides(mf_tensor(&whole[0][39], MF_I64, DIMS(8, 5)), STRIDES(-5, -1));
    DLTensor rows[2] = {mf_tensor(y[0], MF_I64, DIMS(8)), mf_tensor(y[1], MF_I64, DIMS(8))};
    fold_all("ij->i", "hash_(a+1); hash_.1(a)", &back, rows, y, sizeof y);
    struct hash want = hash_neutral;
    for (int j = 39; j > 34; j--)
        want = hash_of_two(want, (struct hash){(uint32_t)(whole[0][j] + 1) & 0xff, 257, 1});
    CHECK(y[0][0] == want.value && y[1][0] == 5);
}

/* ---- others ---- */

static void test_peaks(void)
{
    float x[6][70], y[4][70];
    for (int i = 0; i < 6 * 70; i++)
        x[i / 70][i % 70] = (float)(i * 29 % 7);
    DLTensor in = mf_tensor(x, MF_F32, DIMS(6, 70)), out[4];
    int64_t columns[1] = {70};
    for (int k = 0; k < 4; k++)
        out[k] = mf_tensor(y[k], MF_F32, 1, columns);
    fold_all("ij->j", "peak_(a); peak_.1(a)*2; sum(a); max(a)", &in, out, y, sizeof y);
    for (int j = 0; j < 70; j++) {
        struct peak want = peak_neutral;
        float sum = 0;
        for (int i = 0; i < 6; i++) {
            want = peak_of_two(want, (struct peak){x[i][j], 1});
            sum += x[i][j];
        }
        CHECK(y[0][j] == want.top && y[1][j] == 2 * (float)want.count && y[2][j] == sum && y[3][j] == want.top);
    }
    DLTensor whole_out[2] = {mf_tensor(y[0], MF_F32, 0, NULL), mf_tensor(y[1], MF_F32, 0, NULL)};
    fold_all("ij->", "peak_(a)+sum(a*0); peak_.1(a)", &in, whole_out, y, 4);
    CHECK(y[0][0] == 6 && y[1][0] == 60);
    int64_t at = -1;
    DLTensor ends = mf_tensor(whole[0], MF_I64, DIMS(300)), to = mf_tensor(&at, MF_I64, 0, NULL);
    fold_all("i->", "ends_(a)", &ends, &to, &at, sizeof at);
    CHECK(at == whole[0][0] * 1000 + whole[0][299]);
}

static void test_empty(void)
{
    float y[2] = {7, 7};
    uint64_t m[4] = {9, 9, 9, 9};
    DLTensor none = mf_tensor(NULL, MF_F32, DIMS(0)), four[4] = {none, none, none, none};
    DLTensor out[2] = {mf_tensor(&y[0], MF_F32, 0, NULL), mf_tensor(&y[1], MF_F32, 0, NULL)};
    fold_all("i->", "peak_(a); peak_.1(a)", &none, out, y, sizeof y);
    CHECK(y[0] == -INFINITY && y[1] == 0);
    DLTensor one = mf_tensor(&m[0], MF_U64, 0, NULL);
    fold_all("i,i,i,i->", "product_(a,b,c,d)", four, &one, m, 8);
    CHECK(m[0] == 1 && m[1] == 9);
    fold_all("i,i,i,i->", "product_.1(a,b,c,d)*5+2", four, &one, m, 8);
    CHECK(m[0] == 2);
}

/* ---- definitions that are wrong ---- */

static void check_refused(mf_operation op, mf_status want, const char *fact)
{
    mf_status status = mf_operation_define(cpu, &op);
    CHECK_MSG(status == want && strstr(mf_error(), fact), "\"%s\": %s, \"%s\" without \"%s\"", op.name ? op.name : "",
              mf_status_name(status), mf_error(), fact);
}

static void test_definitions(void)
{
    static const char *const names[] = {
        "sum",        "max",    "where",
        "exp",        "f32",    "bool",
        "inf",        "nan",    "",
        "x",          "1st",    "_x",
        "a b",        "a-b",    "x.1",
        "t\xc3\xbcr", "argmax", "logsumexp",
        "and",        "not(",   "a_name_of_sixty_four_letters_is_longer_than_what_the_library_has"};
    mf_operation op = operations[0];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        op.name = names[i];
        check_refused(op, MF_ERROR_ARGUMENT, *names[i] ? names[i] : "name");
    }
    op.name = NULL;
    check_refused(op, MF_ERROR_ARGUMENT, "name");
    op.name = "product_";
    check_refused(op, MF_ERROR_ARGUMENT, "defined already");
    op.name = "another";
#define REFUSED(field, value, status, fact) \
    do {                                    \
        mf_operation bad = op;              \
        bad.field = value;                  \
        check_refused(bad, status, fact);   \
    } while (0)
    REFUSED(identity, NULL, MF_ERROR_ARGUMENT, "null");
    REFUSED(lift, NULL, MF_ERROR_ARGUMENT, "null");
    REFUSED(combine, NULL, MF_ERROR_ARGUMENT, "null");
    REFUSED(finish, NULL, MF_ERROR_ARGUMENT, "null");
    REFUSED(input_count, 0, MF_ERROR_ARGUMENT, "0 inputs");
    REFUSED(input_count, 9, MF_ERROR_ARGUMENT, "9 inputs");
    REFUSED(output_count, 0, MF_ERROR_ARGUMENT, "0 outputs");
    REFUSED(output_count, -1, MF_ERROR_ARGUMENT, "-1 outputs");
    REFUSED(state_size, 0, MF_ERROR_ARGUMENT, "0 bytes");
    REFUSED(state_size, 4097, MF_ERROR_ARGUMENT, "4097");
    REFUSED(input_type, MF_F16, MF_ERROR_TYPE, "input");
    REFUSED(output_type, MF_I32, MF_ERROR_TYPE, "output");
    REFUSED(input_type, (mf_type)12345, MF_ERROR_TYPE, "input");
}

static void test_calls(void)
{
    static const struct {
        const char *expression, *fact;
    } cases[] = {
        {"product_(a)", "4 operands"},
        {"peak_(a,a)", "1 operand"},
        {"peak_.2(a)", "2 results"},
        {"peak_.x(a)", "a result's number"},
        {"peak_.1", "'('"},
        {"sum(peak_(a))", "do not nest"},
        {"peak_.12(a)", "'('"},
        {"peak_(sum(a))", "do not nest"},
        {"sum.1(a)", "'('"},
        {"nobody_(a)", "nobody_"},
    };
    float x[3] = {1, 2, 3}, y = 7;
    DLTensor in = mf_tensor(x, MF_F32, DIMS(3)), out = mf_tensor(&y, MF_F32, 0, NULL);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        mf_status status = mf_fold(cpu, "i->", cases[c].expression, &in, &out);
        CHECK_MSG(status == MF_ERROR_EXPRESSION && strstr(mf_error(), cases[c].fact) && y == 7, "%s: %s \"%s\"",
                  cases[c].expression, mf_status_name(status), mf_error());
    }
    char name[8] = "mine";
    mf_operation op = operations[3];
    op.name = name;
    CHECK(mf_operation_define(cpu, &op) == MF_OK);
    memcpy(name, "xxxx", 4); /* the name is copied */
    CHECK(mf_fold(cpu, "i->", "mine(a)", &in, &out) == MF_OK && y == 3);
    DLDataType type;
    CHECK(mf_fold_type(cpu, "mine(a)", 1, &in, 0, &type) == MF_OK && type.bits == 32 && type.code == 2);
}

int main(void)
{
    if (mf_device_open("cpu:3", &cpu) != MF_OK)
        return 1;
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        CHECK(mf_operation_define(cpu, &operations[i]) == MF_OK);
    fill();
    test_matrices();
    test_two_modes();
    test_affine();
    test_hashes();
    test_peaks();
    test_empty();
    test_definitions();
    test_calls();
    mf_device_close(cpu);
    return check_done("test_user");
}
