/* Windows at their edges: outputs none of whose elements lies inside the tensor, sizes that follow from windows, steps
 * whose products are near 2^63. Every fold runs under every solver that takes it. */
#include "check.h"

#include <math.h>
#include <modefold.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu/window.h"

static mf_device *cpu;

static mf_status fold_with(const char *solver, const char *modes, const char *expression, const DLTensor *in,
                           const DLTensor *out)
{
    const mf_options options = {solver, 0, 0};
    const void *inputs[1] = {in->data};
    void *outputs[1] = {out->data};
    mf_plan *plan;
    mf_status status = mf_plan_create(cpu, modes, expression, in, out, &options, &plan);
    if (status != MF_OK)
        return status;
    status = mf_plan_execute(plan, inputs, outputs, NULL);
    mf_plan_destroy(plan);
    return status;
}

/* The five doubles at `result`, by the library's choice; the other solvers must give the same. */
static int fold_all(const char *modes, const char *expression, const DLTensor *in, const DLTensor *out, double *result)
{
    static const char *const solvers[] = {"reference", "inner", "outer", "pool", "sliding", "few", "framed"};
    double first[5];
    mf_status status = fold_with(NULL, modes, expression, in, out);
    if (!CHECK_MSG(status == MF_OK, "%s %s: %s", modes, expression, mf_error()))
        return 0;
    memcpy(first, result, sizeof first);
    for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
        memset(result, 0x5a, sizeof first);
        status = fold_with(solvers[s], modes, expression, in, out);
        if (status != MF_ERROR_UNSUPPORTED)
            CHECK_MSG(status == MF_OK && !memcmp(first, result, sizeof first), "%s %s: solver %s differs or says %s",
                      modes, expression, solvers[s], mf_status_name(status));
    }
    memcpy(result, first, sizeof first);
    return 1;
}

/* Five outputs over four elements, the first two of which have no element at all: docs/numerics.md, section 3. */
static void test_nothing(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    const struct {
        mf_type type;
        const char *expression;
        double nothing, third; /* of the first two outputs; of the third one, which has element 0, a 3, alone */
    } cases[] = {
        /* clang-format off */
        {MF_F64, "sum(a)", 0, 3}, {MF_F64, "prod(a)", 1, 3}, {MF_F64, "min(a)", inf, 3}, {MF_F64, "max(a)", -inf, 3},
        {MF_F64, "mean(a)", nan, 3}, {MF_F64, "var(a)", nan, 0}, {MF_F64, "std(a,1)", nan, nan},
        {MF_F64, "norm(a)", 0, 3}, {MF_F64, "logsumexp(a)", -inf, 3}, {MF_F64, "any(a)", 0, 1},
        {MF_F64, "all(a)", 1, 1}, {MF_F64, "count(a)", 0, 1}, {MF_F64, "count(1)", 0, 1},
        {MF_F64, "sum(7)", 0, 7}, {MF_F64, "argmin(a)", -1, 2},
        {MF_F64, "argmax(a)", -1, 2}, {MF_F64, "max(a>1)", 0, 1}, {MF_F64, "min(a>1)", 1, 1},
        {MF_F64, "max(f32(a)>1)", 0, 1}, {MF_F64, "min(f32(a)>1)", 1, 1},
        {MF_I8, "min(a)", 127, 3}, {MF_I8, "max(a)", -128, 3}, {MF_I8, "max(a*a)", -128, 9},
        {MF_I8, "min(a); max(a)", 127, 3}, {MF_I8, "mean(a)", nan, 3}, {MF_I8, "sum(a)", 0, 3},
        {MF_I8, "and(a)", -1, 3}, {MF_I8, "argmin(a)", -1, 2}, {MF_I8, "min(a)+1", 128, 4},
        {MF_U8, "min(a)", 255, 3}, {MF_U8, "max(a)", 0, 3}, {MF_U8, "max(a+1000)", 0, 1003},
        {MF_I16, "min(a)", 32767, 3}, {MF_I16, "max(a)", -32768, 3}, {MF_U16, "min(a)", 65535, 3},
        {MF_I32, "min(a)", 2147483647, 3}, {MF_I32, "max(a)", -2147483648.0, 3}, {MF_U32, "min(a)", 4294967295.0, 3},
        {MF_U32, "max(a)", 0, 3}, {MF_I64, "min(a)", 9223372036854775807.0, 3},
        {MF_I64, "max(a)", -9223372036854775808.0, 3}, {MF_U64, "min(a)", 18446744073709551615.0, 3},
        {MF_U64, "max(a)", 0, 3}, {MF_BOOL, "min(a)", 1, 1}, {MF_BOOL, "max(a)", 0, 1}, {MF_BOOL, "sum(a)", 0, 1},
        {MF_I8, "min(i16(a))", 32767, 3}, {MF_U8, "min(a*2)/2", 127.5, 3},
        /* clang-format on */
    };
    const double ones[4] = {3, 3, 3, 3};
    int64_t four = 4, five = 5;
    uint64_t data[4];
    double y[2][5];
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        DLTensor from = mf_tensor(ones, MF_F64, 1, &four), in = mf_tensor(data, cases[c].type, 1, &four);
        DLTensor out[2] = {mf_tensor(y[0], MF_F64, 1, &five), mf_tensor(y[1], MF_F64, 1, &five)};
        CHECK(mf_fold(cpu, "i->i", "a", &from, &in) == MF_OK);
        if (strchr(cases[c].expression, ';')) {
            CHECK(mf_fold(cpu, "(i+j-4)->i with j=3", cases[c].expression, &in, out) == MF_OK);
            CHECK(y[1][0] == -128 && y[1][2] == 3);
        } else if (!fold_all("(i+j-4)->i with j=3", cases[c].expression, &in, out, y[0])) {
            continue;
        }
        for (int i = 0; i < 3; i++) {
            double want = i < 2 ? cases[c].nothing : cases[c].third;
            CHECK_MSG(want != want ? y[0][i] != y[0][i] : y[0][i] == want, "%s of %s: output %d is %g, not %g",
                      cases[c].expression, mf_type_name(in.dtype), i, y[0][i], want);
        }
    }
}

/* Into the operand's own type, and long enough that rows and tiles are cut: nothing but the extremes themselves. */
static void test_nothing_short(void)
{
    int8_t x[300], y[600];
    int64_t from = 300, to = 600;
    DLTensor in = mf_tensor(x, MF_I8, 1, &from), out = mf_tensor(y, MF_I8, 1, &to);
    for (int i = 0; i < 300; i++)
        x[i] = (int8_t)(i % 90 - 45);
    static const char *const solvers[] = {NULL, "reference", "inner"};
    for (int s = 0; s < 3; s++)
        for (int high = 0; high < 2; high++) {
            int wrong = 0;
            CHECK(fold_with(solvers[s], "(i+j-150)->i with j=7", high ? "max(a)" : "min(a)", &in, &out) == MF_OK);
            for (int i = 0; i < 600; i++) {
                int want = high ? -128 : 127;
                for (int p = i - 150; p < i - 143; p++)
                    if (p >= 0 && p < 300 && (high ? x[p] > want : x[p] < want))
                        want = x[p];
                wrong += y[i] != want;
            }
            CHECK_MSG(!wrong, "solver %s: %d outputs of %s differ", solvers[s] ? solvers[s] : "of choice", wrong,
                      high ? "max" : "min");
        }
}

/* ---- steps near 2^63 ---- */

static int64_t random_edge(unsigned *state)
{
    static const int64_t edges[] = {0, 1, 2, 3, INT64_MAX, INT64_MAX / 2, INT64_MAX / 3, INT64_MAX - 4};
    int64_t x = edges[rand_r(state) % 8];
    x = x > INT64_MAX - 4 ? x - (int64_t)(rand_r(state) % 4) : x + (int64_t)(rand_r(state) % 4);
    return rand_r(state) % 2 ? -x : x;
}

/* Which positions take part, against 128-bit arithmetic: random loops, offsets and steps, among them the largest. Only
 * windows whose every value fits in 63 bits, as the plan sees to. */
static void test_valid(void)
{
    unsigned state = 7;
    int tried = 0, wrong = 0;
    struct nest *nest = calloc(1, sizeof *nest);
    for (int n = 0; n < 200000; n++) {
        memset(nest, 0, sizeof *nest);
        nest->kept = (int)(rand_r(&state) % 2);
        nest->reduced = 1 + (int)(rand_r(&state) % 2);
        nest->window_count = 1;
        struct window *w = &nest->window[0];
        __int128 low = w->offset = random_edge(&state), high = low;
        int64_t all = 1;
        for (int l = 0; l < nest->kept + nest->reduced; l++) {
            nest->size[l] = 1 + (int64_t)(rand_r(&state) % 5);
            all *= nest->size[l];
            w->step[l] = rand_r(&state) % 99 ? random_edge(&state) : INT64_MIN;
            __int128 reach = (__int128)w->step[l] * (nest->size[l] - 1);
            *(reach < 0 ? &low : &high) += reach;
        }
        w->extent = random_edge(&state);
        w->extent = w->extent < 0 ? -w->extent : w->extent;
        if (low < INT64_MIN || high > INT64_MAX)
            continue;
        tried++;
        uint8_t valid[125];
        int64_t from = (int64_t)rand_r(&state) % all, at[MAX_LOOPS];
        mf_window_valid(nest, from, all - from, valid);
        for (int64_t f = from; f < all; f++) {
            __int128 index = w->offset;
            int64_t rest = f;
            for (int l = nest->kept + nest->reduced - 1; l >= 0; l--) {
                at[l] = rest % nest->size[l];
                rest /= nest->size[l];
                index += (__int128)w->step[l] * at[l];
            }
            wrong += valid[f - from] != (index >= 0 && index < w->extent);
        }
    }
    CHECK_MSG(!wrong && tried > 20000, "%d positions of %d nests are wrong", wrong, tried);
    free(nest);
}

/* Whole folds of bytes with such steps. */
static void test_huge_steps(void)
{
    static const struct {
        const char *modes;
        double want[5];
    } cases[] = {
        /* clang-format off */
        {"(9223372036854775800u+i)->i with u=2", {1, 2, 3, 4, 0}},
        {"(i-9223372036854775800u)->i with u=2", {1, 2, 3, 4, 0}},
        {"(9223372036854775800-9223372036854775800u+i)->i with u=2", {1, 2, 3, 4, 0}},
        {"(9223372036854775800u+i-9223372036854775799)->i with u=2", {2, 3, 4, 0, 0}},
        {"(1152921504606846976i-1152921504606846976u)->i with u=3", {1, 1, 1, 0, 0}},
        {"(9223372036854775803-4611686018427387901u+i)->i with u=3", {2, 3, 4, 0, 0}},
        /* clang-format on */
    };
    const int8_t x[4] = {1, 2, 3, 4};
    int64_t four = 4, five = 5;
    double y[5];
    DLTensor in = mf_tensor(x, MF_I8, 1, &four), out = mf_tensor(y, MF_F64, 1, &five);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        if (fold_all(cases[c].modes, "sum(a)", &in, &out, y))
            CHECK_MSG(!memcmp(y, cases[c].want, sizeof y), "%s gives %g %g %g %g %g", cases[c].modes, y[0], y[1], y[2],
                      y[3], y[4]);
}

/* Parts of a larger tensor, whose other pages nobody may read: rows 0, 2, 3 and 5 of 4096 bytes, or 0, 1, 8 and 9, and
 * 128 of 1024 channels of f64. A solver that reads them ends this test. */
static void test_gaps(void)
{
    enum { PAGE = 4096, PAGES = 32 };
    static const char *const solvers[] = {NULL, "reference", "inner", "outer", "sliding", "few", "framed"};
    static const struct {
        const char *modes;
        mf_type type;
        int64_t shape[3], strides[3], out[3];
        int out_ndim;
        uint32_t pages; /* that are the part's, a bit each */
    } cases[] = {
        {"hi(w+j)->hw with j=3", MF_F32, {2, 2, 1024}, {2048, 3072, 1}, {2, 1022}, 2, 0x2d},
        {"hi(w+j)->hw with j=64", MF_F32, {2, 2, 1024}, {1024, 8192, 1}, {2, 961}, 2, 0x303},
        {"(h+i)(w+j)c->hwc with h=2,w=4,i=2,j=2", MF_F64, {3, 5, 128}, {5120, 1024, 1}, {2, 4, 128}, 3, 0x55555555},
    };
    char *memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double *out = malloc(2 * 1024 * sizeof *out);
    if (!CHECK(out && memory != MAP_FAILED) || sysconf(_SC_PAGESIZE) != PAGE) {
        check_skip("reads between elements", "pages are not 4096 bytes");
        free(out);
        return;
    }
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        DLTensor in = mf_tensor(memory, cases[c].type, 3, cases[c].shape);
        DLTensor to = mf_tensor(out, cases[c].type, cases[c].out_ndim, cases[c].out);
        in.strides = (int64_t *)(uintptr_t)cases[c].strides;
        for (int page = 0; page < PAGES; page++)
            CHECK(!mprotect(memory + page * PAGE, PAGE, cases[c].pages >> page & 1 ? PROT_READ : PROT_NONE));
        for (size_t s = 0; s < sizeof solvers / sizeof solvers[0]; s++) {
            const mf_status status = fold_with(solvers[s], cases[c].modes, "sum(a)", &in, &to);
            CHECK_MSG(status == MF_OK || (solvers[s] && status == MF_ERROR_UNSUPPORTED), "%s", mf_error());
        }
    }
    munmap(memory, PAGES * PAGE);
    free(out);
}

int main(void)
{
    if (mf_device_open("cpu:2", &cpu) != MF_OK)
        return 1;
    test_nothing();
    test_nothing_short();
    test_valid();
    test_huge_steps();
    test_gaps();
    mf_device_close(cpu);
    return check_done("test_windows");
}
