/* Solvers openblas and fused on operands and outputs of any strides: against f64, across blocks, and without memory;
 * fused on every instruction set. openblas is skipped where there is no OpenBLAS. */
#include <float.h>
#include <math.h>

#include "check.h"
#include "error.h"
#include "modefold.h"

enum { SPACE = 1 << 17, LETTERS = 8, MOST_TERMS = 40000, PROBLEMS = 600 };

/* Batch, rows, columns, terms: two modes of each. */
static const char letters[] = "bcihjlkm";

static double a64[SPACE], b64[SPACE], o64[SPACE];
static float a32[SPACE], b32[SPACE], o32[SPACE];
static char written[SPACE];
static uint64_t seed = 1;

static int64_t random_below(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}

/* by letter: 0 where the tensor has not this mode. */
struct tensor {
    int rank, order[LETTERS];
    int64_t shape[LETTERS], strides[LETTERS]; /* as DLPack has them */
    int64_t step[LETTERS], first, span;
};

static void shuffle(int *order, int n)
{
    for (int i = n - 1; i > 0; i--) {
        const int j = (int)random_below(i + 1), t = order[i];
        order[i] = order[j];
        order[j] = t;
    }
}

/* Modes in any order, and in another one in memory, with room between them, backwards or (operands) repeated. */
static int make_tensor(struct tensor *t, const int *has, const int64_t *size, int is_output)
{
    int memory[LETTERS];
    *t = (struct tensor){.span = 1};
    for (int l = 0; l < LETTERS; l++)
        if (has[l])
            t->order[t->rank++] = l;
    memcpy(memory, t->order, sizeof memory);
    if (random_below(2))
        shuffle(t->order, t->rank);
    shuffle(memory, t->rank);
    for (int r = 0; r < t->rank; r++) {
        const int l = memory[r], is_own = letters[l] == 'i' || letters[l] == 'j' || letters[l] == 'k';
        if (!is_output && !is_own && !random_below(8))
            continue; /* repeated */
        const int64_t step = t->span * (random_below(3) ? 1 : 1 + random_below(2)) + (random_below(4) ? 0 : 1);
        t->step[l] = random_below(6) ? step : -step;
        t->first += t->step[l] < 0 ? (size[l] - 1) * step : 0;
        t->span = step * size[l];
    }
    for (int r = 0; r < t->rank; r++) {
        t->shape[r] = size[t->order[r]];
        t->strides[r] = t->step[t->order[r]];
    }
    return t->span <= SPACE;
}

static DLTensor tensor_of(struct tensor *t, int is_double, float *f32, double *f64)
{
    DLTensor d = mf_tensor(is_double ? (void *)(f64 + t->first) : (void *)(f32 + t->first), is_double ? MF_F64 : MF_F32,
                           t->rank, t->shape);
    d.strides = t->strides;
    return d;
}

static char *put_modes(char *to, const struct tensor *t)
{
    for (int r = 0; r < t->rank; r++)
        *to++ = letters[t->order[r]];
    return to;
}

struct random_problem {
    int is_double;
    int64_t size[LETTERS], outputs, terms;
    struct tensor a, b, o;
    char modes[64];
};

static int make_problem(struct random_problem *p)
{
    int has[3][LETTERS] = {{0}};
    p->is_double = (int)random_below(2);
    p->outputs = p->terms = 1;
    for (int l = 0; l < LETTERS; l++) {
        const int always = letters[l] == 'i' || letters[l] == 'j' || letters[l] == 'k';
        const int exists = always || random_below(3) == 0, group = l / 2;
        const int64_t most = random_below(12) ? 12 : 1500;
        p->size[l] = exists ? (always ? 2 : 1) + random_below(most) : 1;
        has[0][l] = exists && group != 2 && (group != 3 || always || random_below(4)); /* terms of one operand only */
        has[1][l] = exists && group != 1;
        has[2][l] = exists && group != 3;
        *(group == 3 ? &p->terms : &p->outputs) *= p->size[l];
    }
    if (p->outputs * p->terms > MOST_TERMS || !make_tensor(&p->a, has[0], p->size, 0) ||
        !make_tensor(&p->b, has[1], p->size, 0) || !make_tensor(&p->o, has[2], p->size, 1))
        return 0;
    char *to = put_modes(p->modes, &p->a);
    *to++ = ',';
    to = put_modes(to, &p->b);
    *to++ = '-';
    *to++ = '>';
    *put_modes(to, &p->o) = 0;
    return 1;
}

/* Offsets of a position of some letters in a, b and o. */
static void place(const struct random_problem *p, int first, int last, int64_t flat, int64_t at[3])
{
    for (int l = last - 1; l >= first; l--) {
        const int64_t digit = flat % p->size[l];
        flat /= p->size[l];
        at[0] += digit * p->a.step[l];
        at[1] += digit * p->b.step[l];
        at[2] += digit * p->o.step[l];
    }
}

/* Within (K + 1) units in the last place of the sum of the terms' magnitudes; nothing else is written. */
static int64_t count_wrong(const struct random_problem *p)
{
    int64_t wrong = 0;
    memset(written, 0, sizeof written);
    for (int64_t o = 0; o < p->outputs; o++) {
        int64_t at[3] = {p->a.first, p->b.first, p->o.first};
        double sum = 0, bound = 0;
        place(p, 0, LETTERS - 2, o, at);
        for (int64_t k = 0; k < p->terms; k++) {
            int64_t here[3] = {at[0], at[1], 0};
            place(p, LETTERS - 2, LETTERS, k, here);
            const double term = a64[here[0]] * b64[here[1]];
            sum += term;
            bound += fabs(term);
        }
        bound *= (double)(p->terms + 1) * (p->is_double ? DBL_EPSILON : (double)FLT_EPSILON);
        wrong += !(fabs((p->is_double ? o64[at[2]] : (double)o32[at[2]]) - sum) <= bound);
        written[at[2]] = 1;
    }
    for (int64_t i = 0; i < SPACE; i++)
        wrong += !written[i] && (p->is_double ? o64[i] : (double)o32[i]) != 77;
    return wrong;
}

static void test_random(mf_device *device, const char *solver, int problems)
{
    for (int i = 0; i < SPACE; i++) {
        a64[i] = a32[i] = (float)random_below(2001) / 1000 - 1;
        b64[i] = b32[i] = (float)random_below(2001) / 1000 - 1;
    }
    for (int done = 0; done < problems;) {
        struct random_problem p;
        if (!make_problem(&p))
            continue;
        const mf_options options = {.solver = solver, .threads = 1 + done % 2};
        for (int i = 0; i < SPACE; i++)
            o64[i] = o32[i] = 77;
        DLTensor in[] = {tensor_of(&p.a, p.is_double, a32, a64), tensor_of(&p.b, p.is_double, b32, b64)};
        DLTensor out = tensor_of(&p.o, p.is_double, o32, o64);
        mf_plan *plan = NULL;
        done++;
        if (!CHECK_MSG(mf_plan_create(device, p.modes, "sum(a*b)", in, &out, &options, &plan) == MF_OK, "%s: %s",
                       p.modes, mf_error()))
            continue;
        CHECK(mf_plan_execute(plan, (const void *[]){in[0].data, in[1].data}, (void *[]){out.data}, NULL) == MF_OK);
        const int64_t wrong = count_wrong(&p);
        CHECK_MSG(wrong == 0, "%s, %s: %lld wrong\n%s", p.modes, p.is_double ? "f64" : "f32", (long long)wrong,
                  mf_plan_describe(plan));
        mf_plan_destroy(plan);
    }
}

/* ---- larger than blocks ---- */

/* Element strides of batch, row (or term) and column (or term). */
struct matrices {
    int64_t batch, row, column;
};

static float *integers(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    for (int64_t i = 0; values && i < count; i++)
        values[i] = (float)(random_below(7) - 3);
    return values;
}

/* Sums of integers are exact, so c x and a (b x) are the same for a vector x of integers. */
static int64_t count_wrong_rows(const int64_t size[4], const float *a, const struct matrices *as, const float *b,
                                const struct matrices *bs, const float *c, const struct matrices *cs)
{
    int64_t wrong = 0;
    double *product = malloc((size_t)size[3] * sizeof *product);
    for (int64_t p = 0; product && p < size[0]; p++) {
        for (int64_t k = 0; k < size[3]; k++) {
            product[k] = 0;
            for (int64_t j = 0; j < size[2]; j++)
                product[k] += (double)b[p * bs->batch + k * bs->row + j * bs->column] * (double)(1 + j * j % 101);
        }
        for (int64_t i = 0; i < size[1]; i++) {
            double sum = 0, expected = 0;
            for (int64_t j = 0; j < size[2]; j++)
                sum += (double)c[p * cs->batch + i * cs->row + j * cs->column] * (double)(1 + j * j % 101);
            for (int64_t k = 0; k < size[3]; k++)
                expected += (double)a[p * as->batch + i * as->row + k * as->column] * product[k];
            wrong += sum != expected;
        }
    }
    free(product);
    return product ? wrong : 1;
}

static void test_blocks(mf_device *device, const char *solver)
{
    enum { B = 3, M = 2100, N = 2080, K = 700 };
    static const struct matrices cases[][3] = {
        {{1, K * B, B}, {1, B, K * B}, {1, N * B, B}},                 /* ikb,jkb->ijb */
        {{1, K * B, B}, {K * N, N, 1}, {M * N, N, 1}},                 /* ikb,bkj->bij */
        {{K * M, K, 1}, {1, N * B, B}, {M * N, 1, M}},                 /* bik,kjb->bji */
        {{K * M, 1, M}, {K * N, 1, K}, {1, B, M * B}},                 /* bki,bjk->jib */
        {{K * M * 2, K * 2, 2}, {K * N * 2, N * 2, 2}, {M * N, N, 1}}, /* every second column */
    };
    const int64_t size[] = {B, M, N, K};
    float *a = integers(2 * B * M * K), *b = integers(2 * B * K * N), *c = malloc(sizeof *c * B * M * N);
    for (size_t i = 0; a && b && c && i < sizeof cases / sizeof *cases; i++) {
        const struct matrices *s = cases[i];
        const mf_options options = {.solver = solver, .threads = 1 + (int)i % 2};
        DLTensor in[] = {mf_tensor(a, MF_F32, 3, (int64_t[]){B, M, K}), mf_tensor(b, MF_F32, 3, (int64_t[]){B, K, N})};
        DLTensor out = mf_tensor(c, MF_F32, 3, (int64_t[]){B, M, N});
        in[0].strides = (int64_t[]){s[0].batch, s[0].row, s[0].column};
        in[1].strides = (int64_t[]){s[1].batch, s[1].row, s[1].column};
        out.strides = (int64_t[]){s[2].batch, s[2].row, s[2].column};
        mf_plan *plan = NULL;
        CHECK(mf_plan_create(device, "bik,bkj->bij", "sum(a*b)", in, &out, &options, &plan) == MF_OK);
        CHECK(mf_plan_execute(plan, (const void *[]){a, b}, (void *[]){c}, NULL) == MF_OK);
        CHECK(strstr(mf_plan_describe(plan), "copied: ") != NULL);
        CHECK_MSG(count_wrong_rows(size, a, &s[0], b, &s[1], c, &s[2]) == 0, "%s, case %d", solver, (int)i);
        mf_plan_destroy(plan);
    }
    free(a);
    free(b);
    free(c);
}

/* An execution that gets no memory says so and writes nothing; the next one works. */
static void test_memory(mf_device *device, const char *solver)
{
    const mf_options options = {.solver = solver};
    DLTensor in[] = {mf_tensor(a32, MF_F32, 2, (int64_t[]){50, 60}), mf_tensor(b32, MF_F32, 2, (int64_t[]){60, 70})};
    DLTensor out = mf_tensor(o32, MF_F32, 2, (int64_t[]){50, 70});
    in[0].strides = (int64_t[]){120, 2};
    mf_plan *plan = NULL;
    int allocations = 0;
    for (;; allocations++) {
        mf_alloc_budget = allocations;
        const mf_status status = mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan);
        mf_alloc_budget = -1;
        if (status == MF_OK || !CHECK(status == MF_ERROR_MEMORY && !plan))
            break;
    }
    CHECK(allocations > 0);
    o32[0] = 77;
    for (int budget = 0; budget < 2; budget++) {
        mf_alloc_budget = budget;
        const mf_status status =
            mf_plan_execute(plan, (const void *[]){in[0].data, in[1].data}, (void *[]){out.data}, NULL);
        mf_alloc_budget = -1;
        CHECK(status == (budget ? MF_OK : MF_ERROR_MEMORY));
        CHECK((o32[0] == 77) == !budget);
    }
    mf_plan_destroy(plan);
}

static void test_solver(mf_device *device, const char *solver)
{
    test_random(device, solver, PROBLEMS);
    test_blocks(device, solver);
    test_memory(device, solver);
}

static void test_openblas(mf_device *device)
{
    const int64_t square[] = {8, 8};
    const DLTensor in[] = {mf_tensor(a32, MF_F32, 2, square), mf_tensor(b32, MF_F32, 2, square)};
    DLTensor out = mf_tensor(o32, MF_F32, 2, square);
    const mf_options options = {.solver = "openblas"};
    mf_plan *plan = NULL;
    const mf_status status = mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan);
    mf_plan_destroy(plan);
    if (status == MF_ERROR_DEVICE)
        check_skip("strided products by OpenBLAS", mf_error());
    else
        test_solver(device, "openblas");
}

/* With MF_ORDER_FREE: large products, and those whose operands solver direct cannot read. */
static void test_choice(mf_device *device)
{
    const struct {
        int64_t n, step;
        const char *solver;
    } cases[] = {{64, 1, "direct"}, {64, 2, "fused"}, {16, 2, "contract"}, {1024, 1, "fused"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int64_t n = cases[i].n, shape[] = {n, n};
        const mf_options options = {.flags = MF_ORDER_FREE};
        DLTensor in[] = {mf_tensor(a32, MF_F32, 2, shape), mf_tensor(b32, MF_F32, 2, shape)};
        DLTensor out = mf_tensor(o32, MF_F32, 2, shape);
        in[1].strides = (int64_t[]){cases[i].step * n, cases[i].step};
        mf_plan *plan = NULL;
        CHECK(mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_OK);
        CHECK_MSG(strcmp(mf_plan_solver(plan), cases[i].solver) == 0, "%s, not %s", mf_plan_solver(plan),
                  cases[i].solver);
        mf_plan_destroy(plan);
    }
}

/* Sums whose terms are negative and underflow are +0. */
static void test_zero(mf_device *device)
{
    const int64_t shape[] = {64, 64};
    const mf_options options = {.solver = "fused"};
    const DLTensor in[] = {mf_tensor(a32, MF_F32, 2, shape), mf_tensor(b32, MF_F32, 2, shape)};
    DLTensor out = mf_tensor(o32, MF_F32, 2, shape);
    mf_plan *plan = NULL;
    int64_t negative = 0;
    for (int i = 0; i < 64 * 64; i++) {
        a32[i] = -1e-30F;
        b32[i] = 1e-30F;
    }
    CHECK(mf_plan_create(device, "ik,kj->ij", "sum(a*b)", in, &out, &options, &plan) == MF_OK);
    CHECK(mf_plan_execute(plan, (const void *[]){a32, b32}, (void *[]){o32}, NULL) == MF_OK);
    for (int i = 0; i < 64 * 64; i++)
        negative += o32[i] != 0 || signbit(o32[i]);
    CHECK(negative == 0);
    mf_plan_destroy(plan);
}

static void test_isas(void)
{
    static const char *const isas[] = {"avx512", "avx2", "sse2", "neon", "scalar"};
    for (size_t i = 0; i < sizeof isas / sizeof isas[0]; i++) {
        mf_device *device;
        setenv("MODEFOLD_ISA", isas[i], 1);
        if (mf_device_open("cpu", &device) != MF_OK) {
            check_skip(isas[i], "this build or processor does not have it");
            continue;
        }
        test_random(device, "fused", PROBLEMS / 4);
        test_zero(device);
        mf_device_close(device);
    }
    unsetenv("MODEFOLD_ISA");
}

int main(void)
{
    mf_device *device;
    if (!CHECK(mf_device_open("cpu", &device) == MF_OK))
        return check_done("test_strided_products");
    test_solver(device, "fused");
    test_openblas(device);
    test_choice(device);
    mf_device_close(device);
    test_isas();
    return check_done("test_strided_products");
}
