/* libFuzzer target for whole folds: the bytes choose modes, expression, types, shapes and strides. What is accepted and
 * small is executed on memory of exactly the tensors' reach (AddressSanitizer guards its ends) and must have the
 * reference solver's bits; sometimes an output lies over an input, and what is then accepted must give what it gives
 * apart. What is refused must come with a sentence. */
#include <modefold.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan.h"
#include "scalar.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* ---- choices ---- */

static struct {
    const uint8_t *at, *end;
} source;

static int choose(int n)
{
    return source.at < source.end ? *source.at++ % n : 0;
}

struct text {
    char s[1024];
    size_t n;
};

static void add(struct text *text, const char *s)
{
    size_t n = strlen(s);
    if (text->n + n + 1 < sizeof text->s) {
        memcpy(text->s + text->n, s, n + 1);
        text->n += n;
    }
}

static void add_char(struct text *text, char c)
{
    add(text, (const char[2]){c, 0});
}

static void add_number(struct text *text, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof digits, "%lld", (long long)value);
    add(text, digits);
}

enum { LETTERS = 5, INPUTS = 3, OUTPUTS = 3, MOST_BYTES = 1 << 18, MOST_WORK = 60000 };

struct view {
    DLTensor tensor;
    int64_t shape[8], strides[8];
    __int128 low, high; /* bytes from the pointer to the first and past the last */
    size_t bytes;       /* between them; 0 when there is nothing, or too much */
    int fits;
};

static struct {
    struct text modes, expression;
    int input_count, output_count, rank, huge;
    int64_t size[LETTERS];
    int output[LETTERS];
    struct view in[INPUTS], out[OUTPUTS];
} problem;

/* ---- modes ---- */

static int64_t choose_size(void)
{
    static const int64_t small[] = {3,  2,   1,   4,   5,   0,   7,    8,    16,   31,
                                    64, 127, 128, 129, 300, 600, 4095, 4096, 4097, 8200};
    static const int64_t huge[] = {INT64_MAX, INT64_MAX - 1, INT64_MAX / 2, (int64_t)1 << 62, (int64_t)1 << 32, -1, 3};
    if (problem.huge && !choose(3))
        return huge[choose(sizeof huge / sizeof huge[0])];
    return small[choose(choose(3) ? 8 : sizeof small / sizeof small[0])];
}

static int64_t choose_number(int small)
{
    static const int64_t huge[] = {INT64_MAX, INT64_MAX / 2, (int64_t)1 << 62, (int64_t)1 << 31, 1000000007};
    return problem.huge && !choose(4) ? huge[choose(5)] : choose(small);
}

/* A dimension's index, in text and shape. */
static void choose_dimension(struct view *view)
{
    int d = view->tensor.ndim++, letter = choose(LETTERS);
    view->shape[d] = problem.size[letter];
    if (choose(4)) {
        add_char(&problem.modes, (char)('i' + letter));
    } else {
        int parts = 1 + choose(3);
        int64_t last = 0;
        add(&problem.modes, "(");
        for (int p = 0; p < parts; p++) {
            letter = choose(LETTERS);
            int64_t coefficient = choose_number(4);
            int minus = !choose(5);
            add(&problem.modes, minus ? "-" : p ? "+" : "");
            if (coefficient != 1)
                add_number(&problem.modes, coefficient);
            add_char(&problem.modes, (char)('i' + letter));
            last += minus || problem.huge ? 0 : (problem.size[letter] - 1) * coefficient;
        }
        if (choose(2)) {
            add(&problem.modes, choose(3) ? "-" : "+");
            add_number(&problem.modes, choose_number(6));
        }
        add(&problem.modes, ")");
        view->shape[d] = choose(3) && last >= 0 ? last + 1 : choose_size();
    }
    if (!choose(40)) /* a mistake */
        view->shape[d] = 3;
}

static void choose_modes(void)
{
    problem.input_count = 1 + choose(INPUTS);
    for (int l = 0; l < LETTERS; l++)
        problem.size[l] = choose_size();
    for (int i = 0; i < problem.input_count; i++) {
        if (i)
            add(&problem.modes, ",");
        for (int rank = choose(5); rank > 0; rank--)
            choose_dimension(&problem.in[i]);
    }
    add(&problem.modes, "->");
    int used = 0;
    for (int rank = choose(4); rank > 0; rank--) {
        int letter = choose(LETTERS);
        if ((used >> letter & 1) || (!strchr(problem.modes.s, 'i' + letter) && choose(20)))
            continue;
        used |= 1 << letter;
        problem.output[problem.rank++] = letter;
        add_char(&problem.modes, (char)('i' + letter));
    }
    int settings = 0;
    for (int l = 0; l < LETTERS; l++)
        if (strchr(problem.modes.s, 'i' + l) && choose(2)) {
            add(&problem.modes, settings++ ? "," : " with ");
            add_char(&problem.modes, (char)('i' + l));
            add(&problem.modes, "=");
            add_number(&problem.modes, problem.size[l] < 0 ? 0 : problem.size[l]);
        }
}

/* ---- expression ---- */

static const char *const type_names[] = {"f32", "f64", "i32", "u8",  "f16",    "bf16",   "i64", "u64",
                                         "i8",  "i16", "u16", "u32", "f8e4m3", "f8e5m2", "bool"};
static const mf_type types[] = {MF_F32, MF_F64, MF_I32, MF_U8,  MF_F16,     MF_BF16,    MF_I64, MF_U64,
                                MF_I8,  MF_I16, MF_U16, MF_U32, MF_F8_E4M3, MF_F8_E5M2, MF_BOOL};

static void choose_map(int depth);

static void choose_call(const char *name, int args, int depth)
{
    add(&problem.expression, name);
    for (int i = 0; i < args; i++) {
        add(&problem.expression, i ? "," : "(");
        choose_map(depth - 1);
    }
    add(&problem.expression, ")");
}

static void choose_map(int depth)
{
    static const char *const operators[] = {
        "+", "-", "*", "/", "//", "%", "**", "<", "<=", ">", ">=", "==", "!=", "&", "|", "<<", ">>", "^"};
    static const char *const unary[] = {"abs",   "sqrt",     "exp",  "log",   "tanh",  "sigmoid",
                                        "relu",  "floor",    "ceil", "trunc", "round", "popcount",
                                        "isnan", "isfinite", "sign", "leaky", "-",     "~"};
    static const char *const literals[] = {"0", "1", "2", "0.5", "3", "7", "inf", "nan", "1e30", "100"};
    int kind = depth > 0 ? choose(8) : 0;
    if (kind < 3) {
        if (choose(6))
            add_char(&problem.expression, (char)('a' + choose(problem.input_count)));
        else
            add(&problem.expression, literals[choose(10)]);
    } else if (kind < 5) {
        add(&problem.expression, "(");
        choose_map(depth - 1);
        add(&problem.expression, operators[choose(choose(2) ? 3 : 18)]);
        choose_map(depth - 1);
        add(&problem.expression, ")");
    } else if (kind == 5) {
        choose_call(unary[choose(18)], 1, depth);
    } else if (kind == 6) {
        choose_call(type_names[choose(15)], 1, depth);
    } else {
        static const char *const names[] = {"where", "fma", "min", "max", "pow"};
        int which = choose(5);
        choose_call(names[which], which < 2 ? 3 : 2, depth);
    }
}

static void choose_result(int depth)
{
    static const char *const reducers[] = {"sum",       "max",   "min",  "mean",  "var",   "std",    "norm",
                                           "any",       "all",   "and",  "or",    "xor",   "argmin", "argmax",
                                           "logsumexp", "count", "prod", "pairs", "total", "pairs.1"};
    int kind = choose(10);
    if (kind == 0) {
        choose_map(depth);
    } else if (kind == 1 && depth) {
        add(&problem.expression, "(");
        choose_result(depth - 1);
        add(&problem.expression, choose(2) ? "+" : "*");
        choose_result(depth - 1);
        add(&problem.expression, ")");
    } else if (kind == 2 && depth) {
        add(&problem.expression, choose(2) ? "leaky(" : "abs(");
        choose_result(depth - 1);
        add(&problem.expression, ")");
    } else {
        choose_call(reducers[choose(20)], 1, depth);
    }
}

static void choose_expression(void)
{
    int map = !choose(4);
    problem.output_count = 1 + (choose(3) ? 0 : choose(OUTPUTS));
    for (int k = 0; k < problem.output_count; k++) {
        if (k)
            add(&problem.expression, ";");
        if (map)
            choose_map(3);
        else
            choose_result(2);
    }
}

/* ---- tensors ---- */

static void choose_strides(struct view *view)
{
    int64_t next = 1;
    int kind = choose(4), ndim = view->tensor.ndim;
    if (kind == 0)
        return;
    view->tensor.strides = view->strides;
    for (int d = 0; d < ndim; d++)
        view->strides[d] = 0;
    for (int n = 0; n < ndim; n++) { /* row-major or column-major, padded, reversed; then anything */
        int d = kind == 1 ? n : ndim - 1 - n;
        view->strides[d] = next;
        if (__builtin_mul_overflow(next, view->shape[d] > 1 ? view->shape[d] : 1, &next) ||
            __builtin_add_overflow(next, choose(2), &next))
            next = 1;
        if (!choose(4))
            view->strides[d] = -view->strides[d];
        if (kind == 3 && choose(2))
            view->strides[d] = (problem.huge ? choose_number(9) : choose(9)) - 4;
    }
}

/* The bytes between a tensor's first and last element; !fits when they are many. */
static void find_reach(struct view *view)
{
    __int128 item = view->tensor.dtype.bits / 8, next = 1;
    int empty = 0;
    view->low = 0;
    view->high = item;
    view->fits = 1;
    for (int d = view->tensor.ndim - 1; d >= 0; d--) {
        __int128 n = view->shape[d], stride = view->tensor.strides ? view->strides[d] : next;
        __int128 reach = n > 1 ? (n - 1) * stride : 0;
        empty |= n <= 0;
        view->fits = view->fits && reach <= MOST_BYTES && reach >= -MOST_BYTES;
        if (view->fits)
            *(reach < 0 ? &view->low : &view->high) += reach * item;
        next = n <= 0 ? next : next * n > INT64_MAX ? INT64_MAX : next * n;
    }
    if (empty) {
        view->low = view->high = 0;
        view->fits = 1;
    }
    view->bytes = view->fits ? (size_t)(view->high - view->low) : 0;
}

static void choose_tensors(void)
{
    for (int i = 0; i < problem.input_count; i++) {
        struct view *view = &problem.in[i];
        view->tensor = mf_tensor(NULL, types[choose(15)], view->tensor.ndim, view->shape);
        choose_strides(view);
        find_reach(view);
    }
    for (int k = 0; k < problem.output_count; k++) {
        struct view *view = &problem.out[k];
        for (int d = 0; d < problem.rank; d++)
            view->shape[d] = !choose(60) ? 3 : problem.size[problem.output[d]];
        view->tensor = mf_tensor(NULL, types[choose(15)], problem.rank, view->shape);
        choose_strides(view);
        find_reach(view);
    }
}

/* ---- memory ---- */

static unsigned char *blocks[INPUTS + 2 * OUTPUTS];

static unsigned char *allocate(int b, size_t bytes, int fill)
{
    blocks[b] = malloc(bytes ? bytes : 1);
    require(blocks[b] != NULL);
    memset(blocks[b], fill, bytes);
    return blocks[b];
}

/* Small numbers, anything, or plain numbers with NaNs and infinities among them. */
static void fill_input(const struct view *view, unsigned char *memory)
{
    int kind = choose(3);
    uint32_t state = (uint32_t)choose(256);
    size_t item = view->tensor.dtype.bits / 8;
    enum dtype type = (enum dtype)mf_dtype_find(view->tensor.dtype);
    for (size_t at = 0; at < view->bytes; at += item) {
        state = state * 1664525u + 1013904223u;
        static const double special[] = {(double)NAN, -(double)INFINITY, (double)INFINITY, -0.0, 0, 1e-40, 448, 65504};
        double value = (double)(int)(state >> 16 & 0xff) / 8 - 16;
        double whole = (double)(int)(state >> 16 & 15) - 4;
        if (kind == 2) {
            for (size_t b = 0; b < item; b++, state = state * 1664525u + 1013904223u)
                memory[at + b] = (unsigned char)(state >> 24);
            continue;
        }
        double stored = kind == 0 ? whole : state >> 24 < 20 ? special[state >> 8 & 7] : value;
        mf_value_store(type, CLS_F64, (union value){.f64 = stored}, memory + at);
    }
}

/* Whether the outputs' elements are the same in two memories. */
static int same_elements(const struct view *view, const unsigned char *a, const unsigned char *b)
{
    int64_t at[8] = {0}, item = view->tensor.dtype.bits / 8;
    for (;;) {
        int64_t offset = 0, next = 1;
        int d = view->tensor.ndim - 1;
        for (int e = d; e >= 0; e--) {
            offset += at[e] * (view->tensor.strides ? view->strides[e] : next);
            next *= view->shape[e];
        }
        if (memcmp(a + offset * item, b + offset * item, (size_t)item))
            return 0;
        while (d >= 0 && ++at[d] == view->shape[d])
            at[d--] = 0;
        if (d < 0)
            return 1;
    }
}

/* ---- one problem ---- */

static mf_device *device;

static void print_view(const char *what, int number, const struct view *view)
{
    fprintf(stderr, "%s %d %s shape", what, number, mf_type_name(view->tensor.dtype));
    for (int d = 0; d < view->tensor.ndim; d++)
        fprintf(stderr, " %lld", (long long)view->shape[d]);
    fprintf(stderr, view->tensor.strides ? " strides" : " row-major");
    for (int d = 0; view->tensor.strides && d < view->tensor.ndim; d++)
        fprintf(stderr, " %lld", (long long)view->strides[d]);
    fprintf(stderr, "\n");
}

/* With FUZZ_PRINT in the environment: the problem in words, for reports. */
static void print_problem(const char *solver, uint32_t flags, int threads)
{
    fprintf(stderr, "%s  %s  solver %s flags %u threads %d\n", problem.modes.s, problem.expression.s,
            solver ? solver : "any", flags, threads);
    for (int i = 0; i < problem.input_count; i++)
        print_view("input", i, &problem.in[i]);
    for (int k = 0; k < problem.output_count; k++)
        print_view("output", k, &problem.out[k]);
}

static mf_status make(const char *solver, uint32_t flags, int threads, mf_plan **plan)
{
    DLTensor in[INPUTS], out[OUTPUTS];
    mf_options options = {solver, flags, threads};
    for (int i = 0; i < problem.input_count; i++)
        in[i] = problem.in[i].tensor;
    for (int k = 0; k < problem.output_count; k++)
        out[k] = problem.out[k].tensor;
    mf_status status = mf_plan_create(device, problem.modes.s, problem.expression.s, in, out, &options, plan);
    require((status == MF_OK) == (*plan != NULL));
    if (status != MF_OK)
        require(strlen(mf_error()) > 8);
    else
        require(strlen(mf_plan_describe(*plan)) > 8);
    return status;
}

static int is_small(const struct mf_plan *plan)
{
    int64_t work;
    for (int i = 0; i < problem.input_count; i++)
        if (!problem.in[i].fits)
            return 0;
    for (int k = 0; k < problem.output_count; k++)
        if (!problem.out[k].fits)
            return 0;
    return mf_mul(plan->problem.kept_total, plan->problem.reduced_total, &work) && work <= MOST_WORK &&
           plan->problem.kept_total <= MOST_WORK;
}

/* Output 0 over input 0, at a small distance; the rest apart. Refused, nothing changes; accepted, it must give what it
 * gives apart. */
static void run_aliased(const struct mf_plan *plan, const void *const *in, void *const *out, void *const *want)
{
    const struct view *a = &problem.in[0], *o = &problem.out[0];
    int64_t item_a = a->tensor.dtype.bits / 8, item_o = o->tensor.dtype.bits / 8;
    int64_t shift = (choose(2) ? 0 : choose(9) - 4) * (item_a > item_o ? item_a : item_o);
    int64_t low = (int64_t)(a->low < o->low + shift ? a->low : o->low + shift);
    int64_t high = (int64_t)(a->high > o->high + shift ? a->high : o->high + shift);
    size_t bytes = (size_t)(high - low) + 8;
    if (!a->bytes || !o->bytes)
        return;
    unsigned char *arena = calloc(1, bytes), *before = malloc(bytes), *start = arena + (low & 7) - low;
    require(arena && before);
    memcpy(start + (int64_t)a->low, (const char *)in[0] + (int64_t)a->low, a->bytes);
    memcpy(before, arena, bytes);
    const void *inputs[INPUTS];
    void *outputs[OUTPUTS];
    for (int i = 0; i < problem.input_count; i++)
        inputs[i] = i ? in[i] : start;
    for (int k = 0; k < problem.output_count; k++)
        outputs[k] = k ? out[k] : start + shift;
    mf_status status = mf_plan_execute(plan, inputs, outputs, NULL);
    require(status == MF_OK || status == MF_ERROR_OVERLAP);
    if (status != MF_OK)
        require(!memcmp(before, arena, bytes));
    for (int k = 0; status == MF_OK && plan->problem.kept_total && k < problem.output_count; k++)
        require(same_elements(&problem.out[k], outputs[k], want[k]));
    free(arena);
    free(before);
}

static void run(const struct mf_plan *plan, const struct mf_plan *reference)
{
    const void *in[INPUTS];
    void *out[OUTPUTS], *want[OUTPUTS];
    for (int i = 0; i < problem.input_count; i++) {
        const struct view *view = &problem.in[i];
        unsigned char *memory = allocate(i, view->bytes, 0);
        fill_input(view, memory);
        in[i] = memory - (int64_t)view->low;
    }
    for (int k = 0; k < problem.output_count; k++) {
        const struct view *view = &problem.out[k];
        out[k] = allocate(INPUTS + k, view->bytes, 0xa5) - (int64_t)view->low;
        want[k] = allocate(INPUTS + OUTPUTS + k, view->bytes, 0xa5) - (int64_t)view->low;
    }
    mf_status status = mf_plan_execute(plan, in, out, NULL);
    require(status == MF_OK && mf_plan_execute(reference, in, want, NULL) == MF_OK);
    for (int k = 0; k < problem.output_count; k++)
        require(!memcmp(blocks[INPUTS + k], blocks[INPUTS + OUTPUTS + k], problem.out[k].bytes));
    if (!choose(2))
        run_aliased(plan, in, out, want);
    for (int b = 0; b < INPUTS + 2 * OUTPUTS; b++) {
        free(blocks[b]);
        blocks[b] = NULL;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char *const solvers[] = {NULL, NULL, "inner", "outer"};
    mf_plan *plan, *reference;
    source.at = bytes;
    source.end = bytes + size;
    memset(&problem, 0, sizeof problem);
    problem.huge = !choose(8);
    const char *solver = solvers[choose(4)];
    uint32_t flags = choose(4) ? MF_ORDER_CONTRACT : MF_ORDER_AS_WRITTEN;
    int threads = choose(3);
    choose_modes();
    choose_expression();
    choose_tensors();
    if (getenv("FUZZ_PRINT"))
        print_problem(solver, flags, threads);
    if (make(solver, flags, threads, &plan) != MF_OK)
        return 0;
    if (is_small(plan) && make("reference", flags, 0, &reference) == MF_OK) {
        run(plan, reference);
        mf_plan_destroy(reference);
    }
    mf_plan_destroy(plan);
    return 0;
}

/* ---- two users' operations ---- */

static void lift(void *context, int64_t n, const void *const *values, void *states)
{
    (void)context;
    const uint64_t *x = values[0];
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)states + 16 * i, (uint64_t[2]){x[i], 31}, 16);
}

static void identity(void *context, int64_t n, void *states)
{
    (void)context;
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)states + 16 * i, (uint64_t[2]){0, 1}, 16);
}

/* The hash of a sequence and its base's power; with a context, a plain sum. */
static void combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right, int64_t right_stride)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t l[2], r[2];
        memcpy(l, (char *)left + i * left_stride, 16);
        memcpy(r, (const char *)right + i * right_stride, 16);
        l[0] = context ? l[0] + r[0] : l[0] * r[1] + r[0];
        l[1] *= r[1];
        memcpy((char *)left + i * left_stride, l, 16);
    }
}

static void finish(void *context, int64_t n, const void *states, void *const *results)
{
    for (int64_t i = 0; i < n; i++) {
        memcpy((char *)results[0] + 8 * i, (const char *)states + 16 * i, 8);
        if (!context)
            memcpy((char *)results[1] + 8 * i, (const char *)states + 16 * i + 8, 8);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    static int sums;
    mf_operation pairs = {"pairs", 1, 2, MF_U64, MF_U64, 16, 0, identity, lift, combine, finish, NULL};
    mf_operation total = {"total", 1, 1, MF_U64, MF_U64, 16, 1, identity, lift, combine, finish, &sums};
    require(mf_device_open("cpu:2", &device) == MF_OK);
    require(mf_operation_define(device, &pairs) == MF_OK && mf_operation_define(device, &total) == MF_OK);
    return 0;
}
