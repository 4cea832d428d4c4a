/* mf_match: everything about a call that can be wrong; then the device's own code. */
#include "match.h"

#include "expr.h"

enum { TENSORS = 10, FIRST_OUTPUT = 5 };

/* The tensors of a call in one list. */
struct tensor {
    const char *name;
    const DLTensor *t; /* null: not given */
    struct match_rows *rows;
    int64_t low, high; /* the bytes it covers, from its element [0,0] on */
    uintptr_t place;   /* where that is */
};

static void list_tensors(struct match *m, const mf_match_input *in, const mf_match_output *out, struct tensor *list)
{
    const struct tensor all[TENSORS] = {
        {"queries", in->queries, &m->queries, 0, 0, 0},
        {"train", in->train, &m->train, 0, 0, 0},
        {"query_mask", in->query_mask, &m->query_mask, 0, 0, 0},
        {"train_mask", in->train_mask, &m->train_mask, 0, 0, 0},
        {"pair_mask", in->pair_mask, &m->pair_mask, 0, 0, 0},
        {"indices", out->indices, &m->indices, 0, 0, 0},
        {"distances", out->distances, &m->distances, 0, 0, 0},
        {"matches", out->matches, &m->matches, 0, 0, 0},
        {"train_indices", out->train_indices, &m->train_indices, 0, 0, 0},
        {"train_distances", out->train_distances, &m->train_distances, 0, 0, 0},
    };
    memcpy(list, all, sizeof all);
}

/* ---- one tensor ---- */

static int is_mask_type(DLDataType type)
{
    return type.lanes == 1 && type.bits == 8 &&
           (type.code == MF_DL_BOOL || type.code == MF_DL_INT || type.code == MF_DL_UINT);
}

static int is_integer(DLDataType type)
{
    const int bits = type.bits;
    return type.lanes == 1 && (type.code == MF_DL_INT || type.code == MF_DL_UINT) &&
           (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

static int is_i32(DLDataType type)
{
    return type.lanes == 1 && type.code == MF_DL_INT && type.bits == 32;
}

static mf_status check_type(int i, const struct tensor *x)
{
    static const char *const wanted[] = {"an integer type", "bool, u8 or i8", "i32"};
    const int kind = i < 2 ? 0 : i < FIRST_OUTPUT ? 1 : 2;
    const DLDataType type = x->t->dtype;
    const int fits = kind == 0 ? is_integer(type) : kind == 1 ? is_mask_type(type) : is_i32(type);
    return fits ? MF_OK
                : mf_fail(MF_ERROR_TYPE, "mf_match: %s has DLPack type code %d with %d bits and wants %s", x->name,
                          type.code, type.bits, wanted[kind]);
}

/* Elements from row to row and inside a row, of a matrix or a vector. */
static int64_t stride_of(const DLTensor *t, int d)
{
    if (t->strides)
        return t->strides[d];
    return d == 0 && t->ndim == 2 ? t->shape[1] : 1;
}

static int64_t columns_of(const DLTensor *t)
{
    return t->ndim == 2 ? t->shape[1] : 1;
}

/* Elements of a row lie one after the other; vectors and outputs have no gaps. */
static mf_status check_layout(int i, const struct tensor *x)
{
    const DLTensor *t = x->t;
    const int matrix = i < 2 || i == 4 || i == FIRST_OUTPUT || i == FIRST_OUTPUT + 1,
              dense = !matrix || i >= FIRST_OUTPUT;
    if (t->ndim != (matrix ? 2 : 1))
        return mf_fail(MF_ERROR_SHAPE, "mf_match: %s has %d dimensions and wants %d", x->name, t->ndim, matrix ? 2 : 1);
    if (!t->shape)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: the shape of %s is null", x->name);
    for (int d = 0; d < t->ndim; d++)
        if (t->shape[d] < 0 || t->shape[d] > INT32_MAX)
            return mf_fail(MF_ERROR_SHAPE, "mf_match: %s has size %lld, outside of 0 to 2^31 - 1", x->name,
                           (long long)t->shape[d]);
    const int64_t columns = columns_of(t);
    if (columns > 1 && matrix && stride_of(t, 1) != 1)
        return mf_fail(MF_ERROR_SHAPE, "mf_match: a row of %s has stride %lld between its elements and wants 1",
                       x->name, (long long)stride_of(t, 1));
    if (dense && t->shape[0] > 1 && stride_of(t, 0) != columns)
        return mf_fail(MF_ERROR_SHAPE, "mf_match: %s has stride %lld between its rows and wants %lld, no gaps", x->name,
                       (long long)stride_of(t, 0), (long long)columns);
    return MF_OK;
}

/* The rows, and the bytes that they cover, from element [0,0] on. */
static mf_status measure(const struct match *m, int i, struct tensor *x)
{
    const DLTensor *t = x->t;
    const int64_t item = t->dtype.bits / 8, rows = t->shape[0];
    int64_t reach = 0, last = 0, row = 0;
    if (!mf_mul(stride_of(t, 0), item, &x->rows->stride) || !mf_mul(columns_of(t), item, &row) ||
        !mf_mul(x->rows->stride, rows ? rows - 1 : 0, &reach) || !mf_add(reach, row, &last) || reach < -INT64_MAX / 2)
        return mf_fail(MF_ERROR_OVERFLOW, "mf_match: %s covers more than 2^63 bytes", x->name);
    x->rows->offset = t->byte_offset;
    x->low = reach < 0 ? reach : 0;
    x->high = rows ? reach < 0 ? row : last : x->low;
    if (m->device->api && i < 2 && (x->rows->stride % 4 || t->byte_offset % 4))
        return mf_fail(MF_ERROR_ARGUMENT,
                       "mf_match: rows of %s begin at byte %llu, %lld apart; a GPU wants multiples of 4", x->name,
                       (unsigned long long)t->byte_offset, (long long)x->rows->stride);
    return MF_OK;
}

static mf_status check_tensor(const struct match *m, int i, struct tensor *x)
{
    const int memory = mf_tensor_memory(x->t);
    if (!mf_device_reads(m->device, memory))
        return mf_fail(MF_ERROR_UNSUPPORTED, "mf_match: %s is in the memory of DLPack device type %d, not of %s",
                       x->name, memory, m->device->api ? m->device->name : "the CPU");
    MF_TRY(check_type(i, x));
    MF_TRY(check_layout(i, x));
    return measure(m, i, x);
}

/* ---- the tensors together ---- */

static mf_status check_size(const struct tensor *x, int d, int64_t wanted, const char *what)
{
    if (!x->t || x->t->shape[d] == wanted)
        return MF_OK;
    return mf_fail(MF_ERROR_SHAPE, "mf_match: %s has size %lld and there are %lld %s", x->name,
                   (long long)x->t->shape[d], (long long)wanted, what);
}

static mf_status check_rows(struct match *m, const struct tensor *list)
{
    int64_t bits[2];
    for (int i = 0; i < 2; i++)
        bits[i] = list[i].t->shape[1] * list[i].t->dtype.bits;
    if (bits[0] != bits[1])
        return mf_fail(MF_ERROR_SHAPE, "mf_match: a row has %lld bits in queries and %lld in train", (long long)bits[0],
                       (long long)bits[1]);
    if (bits[0] < 32 || bits[0] % 32)
        return mf_fail(MF_ERROR_SHAPE, "mf_match: a row has %lld bits, which is no multiple of 32 from 32 on",
                       (long long)bits[0]);
    if (bits[0] > MF_MATCH_MAX_BITS)
        return mf_fail(MF_ERROR_OVERFLOW, "mf_match: a row has %lld bits and the most is %d", (long long)bits[0],
                       MF_MATCH_MAX_BITS);
    m->words = bits[0] / 32;
    m->query_count = list[0].t->shape[0];
    m->train_count = list[1].t->shape[0];
    static const int side[TENSORS] = {0, 1, 0, 1, 0, 0, 0, 0, 1, 1};
    for (int i = 2; i < TENSORS; i++)
        MF_TRY(
            check_size(&list[i], 0, side[i] ? m->train_count : m->query_count, side[i] ? "rows of train" : "queries"));
    for (int i = FIRST_OUTPUT; i < FIRST_OUTPUT + 2; i++)
        if (list[i].t) {
            const int64_t k = list[i].t->shape[1];
            if (k < 1 || k > MF_MATCH_MAX_K)
                return mf_fail(MF_ERROR_SHAPE, "mf_match: %s has %lld columns, outside of 1 to %d", list[i].name,
                               (long long)k, MF_MATCH_MAX_K);
            if (m->k && m->k != k)
                return mf_fail(MF_ERROR_SHAPE, "mf_match: indices have %d columns and distances %lld", m->k,
                               (long long)k);
            m->k = (int)k;
        }
    return MF_OK;
}

/* The starts of one side: from 0 up to its rows. */
static mf_status check_starts(int64_t pairs, const int64_t *start, int64_t rows, const char *name)
{
    if (!start)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: there are %lld pairs and %s is null", (long long)pairs, name);
    for (int64_t p = 0; p < pairs; p++)
        if (start[p] > start[p + 1])
            return mf_fail(MF_ERROR_ARGUMENT, "mf_match: %s goes from %lld back to %lld", name, (long long)start[p],
                           (long long)start[p + 1]);
    if (start[0] || start[pairs] != rows)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: %s goes from %lld to %lld and there are %lld rows", name,
                       (long long)start[0], (long long)start[pairs], (long long)rows);
    return MF_OK;
}

static mf_status check_pairs(struct match *m, const mf_match_input *in, const struct tensor *mask)
{
    if (in->pairs < 0 || in->pairs > INT32_MAX)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: %lld pairs are outside of 0 to 2^31 - 1", (long long)in->pairs);
    m->whole[0][1] = m->query_count;
    m->whole[1][1] = m->train_count;
    m->pairs = in->pairs ? in->pairs : 1;
    m->query_start = in->pairs ? in->query_start : m->whole[0];
    m->train_start = in->pairs ? in->train_start : m->whole[1];
    MF_TRY(check_starts(m->pairs, m->query_start, m->query_count, "query_start"));
    MF_TRY(check_starts(m->pairs, m->train_start, m->train_count, "train_start"));
    for (int64_t p = 0; mask->t && p < m->pairs; p++)
        if (m->train_start[p + 1] - m->train_start[p] > mask->t->shape[1])
            return mf_fail(MF_ERROR_SHAPE, "mf_match: pair_mask has %lld columns and train set %lld has %lld rows",
                           (long long)mask->t->shape[1], (long long)p,
                           (long long)(m->train_start[p + 1] - m->train_start[p]));
    return MF_OK;
}

/* ---- options ---- */

static mf_status check_options(struct match *m, const mf_match_options *options, int wants_columns)
{
    const uint32_t known = MF_MATCH_DIFFERENCE | MF_MATCH_RATIO | MF_MATCH_MAX_DISTANCE | MF_MATCH_CROSS_CHECK;
    if (options->tests & ~known)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: the tests are 0x%x and the known ones 0x%x", options->tests,
                       known);
    if (options->difference < 0 || options->max_distance < 0 || !(options->ratio >= 0 && options->ratio <= 1))
        return mf_fail(MF_ERROR_ARGUMENT,
                       "mf_match: difference %lld and max_distance %lld must not be negative, ratio %g between 0 and 1",
                       (long long)options->difference, (long long)options->max_distance, options->ratio);
    if (options->threads < 0 || options->workspace_bytes < 0)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: %d threads and %lld bytes of workspace must not be negative",
                       options->threads, (long long)options->workspace_bytes);
    if (options->solver && !m->device->api)
        return mf_fail(MF_ERROR_UNSUPPORTED,
                       "mf_match: solver \"%.40s\" was asked for and the CPU has no choice of them", options->solver);
    m->tests = options->tests;
    m->difference = options->difference;
    m->max_distance = options->max_distance;
    m->ratio = (int64_t)(options->ratio * MATCH_RATIO_ONE + 0.5);
    m->threads = options->threads ? options->threads : m->device->thread_count;
    m->solver = options->solver;
    m->columns = wants_columns || (m->matches_wanted && (m->tests & MF_MATCH_CROSS_CHECK));
    const int tests_keep = !m->matches_wanted ? 0 : m->tests & (MF_MATCH_DIFFERENCE | MF_MATCH_RATIO) ? 2 : 1;
    m->keep = m->k > tests_keep ? m->k : tests_keep;
    return MF_OK;
}

/* ---- places ---- */

/* Where the data are; outputs overlap nothing. */
static mf_status place(const struct match *m, struct tensor *list)
{
    for (int i = 0; i < TENSORS; i++) {
        struct tensor *x = &list[i];
        if (!x->t || x->low == x->high)
            continue;
        x->place = (uintptr_t)x->t->data;
        if (!x->t->data)
            return mf_fail(MF_ERROR_ARGUMENT, "mf_match: the data of %s are null", x->name);
        if (m->device->api)
            MF_TRY(m->device->api->check(m->device->gpu, x->t->data, x->name, 0, &x->place));
        x->place += (uintptr_t)x->rows->offset;
        x->rows->data = m->device->api ? x->t->data : (const char *)x->t->data + x->rows->offset;
        if ((i >= FIRST_OUTPUT || (i < 2 && m->device->api)) && x->place % 4)
            return mf_fail(MF_ERROR_ARGUMENT, "mf_match: %s is not aligned to 4 bytes", x->name);
    }
    for (int o = FIRST_OUTPUT; o < TENSORS; o++)
        for (int i = 0; i < o && list[o].place; i++) {
            const struct tensor *x = &list[o], *y = &list[i];
            if (y->place && x->place + (uintptr_t)x->low < y->place + (uintptr_t)y->high &&
                y->place + (uintptr_t)y->low < x->place + (uintptr_t)x->high)
                return mf_fail(MF_ERROR_OVERLAP, "mf_match: %s overlaps %s", x->name, y->name);
        }
    return MF_OK;
}

/* Everything but the places. */
static mf_status check(mf_device *device, const mf_match_input *in, const mf_match_output *out,
                       const mf_match_options *options, struct match *m, struct tensor *list)
{
    static const mf_match_options none;
    if (!device || !in || !out || !in->queries || !in->train)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: %s is null",
                       !device        ? "the device"
                       : !in          ? "the input"
                       : !out         ? "the output"
                       : !in->queries ? "queries"
                                      : "train");
    memset(m, 0, sizeof *m);
    m->device = device;
    m->matches_wanted = out->matches != NULL;
    list_tensors(m, in, out, list);
    for (int i = 0; i < TENSORS; i++)
        if (list[i].t)
            MF_TRY(check_tensor(m, i, &list[i]));
    MF_TRY(check_rows(m, list));
    MF_TRY(check_pairs(m, in, &list[4]));
    return check_options(m, options ? options : &none, out->train_indices || out->train_distances);
}

mf_status mf_match(mf_device *device, const mf_match_input *input, const mf_match_output *output,
                   const mf_match_options *options, void *stream)
{
    struct match m;
    struct tensor list[TENSORS];
    MF_TRY(check(device, input, output, options, &m, list));
    MF_TRY(place(&m, list));
    if (device->api)
        return mf_match_on_gpu(&m, options ? options->workspace : NULL, options ? options->workspace_bytes : 0, stream);
    if (stream)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match: the CPU has no streams and one was given");
    return mf_match_on_cpu(&m);
}

mf_status mf_match_workspace(mf_device *device, const mf_match_input *input, const mf_match_output *output,
                             const mf_match_options *options, int64_t *bytes)
{
    struct match m;
    struct tensor list[TENSORS];
    if (!bytes)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_match_workspace: the result is null");
    *bytes = 0;
    MF_TRY(check(device, input, output, options, &m, list));
    return device->api ? mf_match_gpu_workspace(&m, bytes) : MF_OK;
}

mf_status mf_match_compile(mf_device *device, const mf_match_input *input, const mf_match_output *output,
                           const mf_match_options *options, struct gpu_usage *usage)
{
    struct match m;
    struct tensor list[TENSORS];
    MF_TRY(check(device, input, output, options, &m, list));
    return mf_match_gpu_compile(&m, usage);
}
