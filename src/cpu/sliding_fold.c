/* Solver "sliding", one block of outputs: its rows, their fold, and what it comes to. */
#include "cpu.h"
#include "lanes.h"
#include "sliding.h"

enum { LINE = 64 }; /* bytes */

/* What lies inside of place first, first + 1 ... : from low up to high, of count. */
static void clip(const struct side *side, int64_t first, int64_t count, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = count;
    if (!side->checked)
        return;
    first += side->offset;
    *low = first >= 0 ? 0 : first > -count ? -first : count;
    *high = first > side->extent - count ? side->extent - first : count;
    *high = *high > *low ? *high : *low;
}

static int is_inside(const struct side *side, int64_t place)
{
    return !side->checked || (place + side->offset >= 0 && place + side->offset < side->extent);
}

/* The elements at `place` that are inside: low ... high-1. */
static void find_inside(const struct side *side, int64_t place, int64_t *low, int64_t *high)
{
    *low = 0;
    *high = side->elements;
    if (!side->checked)
        return;
    place += side->offset;
    if (place < 0)
        *low = -(place + 1) / side->gap + 1;
    if (place + (side->elements - 1) * side->gap >= side->extent)
        *high = place < side->extent ? (side->extent - 1 - place) / side->gap + 1 : 0;
    *low = *low < *high ? *low : *high;
}

static void chain(chain_fn *fold, char *to, const void *const *x, int64_t count, int64_t n)
{
    for (int64_t k = 0; k < count; k += STEPS)
        fold(to, k ? to : NULL, x + k, (int)(count - k < STEPS ? count - k : STEPS), n, NULL);
}

/* Where row number `row` of position p has its first element inside. */
uintptr_t mf_sliding_row_at(const struct sliding_worker *w, int64_t p, int64_t row)
{
    const struct shape *shape = &w->data->shape;
    const int64_t column = w->column * shape->across.step * shape->inside + w->low;
    const uint64_t at = (uint64_t)w->offset[p] + (uint64_t)row * (uint64_t)shape->row + (uint64_t)column;
    return (uintptr_t)w->pointers->in[w->data->input] + (uintptr_t)at * (uintptr_t)w->item;
}

static void fill(const struct sliding_worker *w, char *row, int64_t low, int64_t high)
{
    if (low < high)
        mf_copy_run(row + low * w->size, w->outside, (high - low) * w->size, 0);
}

/* The ends of all rows that there is room for: they are left alone until rows have other ones. */
static void fill_ends(struct sliding_worker *w)
{
    if (w->pitch == w->filled[0] && w->low == w->filled[1] && w->high == w->filled[2])
        return;
    w->filled[0] = w->pitch;
    w->filled[1] = w->low;
    w->filled[2] = w->high;
    const int64_t bytes = w->pitch * w->size, rows = w->data->rows_most;
    for (int64_t r = 0; r < rows; r++) {
        fill(w, w->rows + r * bytes, 0, w->low);
        fill(w, w->rows + r * bytes, w->high, w->pitch);
    }
}

/* What the window some steps further down is the first to read: processors do not see short rows beside each other
 * coming. (Inlined, for a compiler leaves calls out that do nothing else.) */
static inline __attribute__((always_inline)) void ask_ahead(const struct sliding_worker *w, uintptr_t row)
{
    const struct sliding_plan *data = w->data;
    const uintptr_t bytes = (uintptr_t)((w->high - w->low) * w->item);
    const uintptr_t apart = (uintptr_t)data->shape.row * (uintptr_t)w->item;
    row += (uintptr_t)data->ahead;
    for (int64_t k = 0; k < data->shape.down.step; k++, row += apart)
        for (uintptr_t at = 0; at < bytes; at += LINE)
            __builtin_prefetch((const void *)(row + at), 0, 2);
}

/* Down the columns, from memory to rows. */
static void fold_from_memory(const struct sliding_worker *w)
{
    const struct sliding_plan *data = w->data;
    const struct side *down = &data->shape.down;
    const uintptr_t apart = (uintptr_t)down->gap * (uintptr_t)data->shape.row * (uintptr_t)w->item;
    const void *x[MOST_DOWN];
    char *to = w->rows;
    for (int64_t p = 0; p < w->positions; p++)
        for (int64_t r = 0; r < w->height; r++, to += w->pitch * w->size) {
            int64_t low, high;
            const int64_t row = (w->row + r) * down->step;
            const uintptr_t from = mf_sliding_row_at(w, p, row);
            find_inside(down, row, &low, &high);
            for (int64_t i = low; i < high; i++)
                x[i - low] = (const void *)(from + (uintptr_t)i * apart);
            if (low == high || w->low == w->high) {
                fill(w, to, 0, w->pitch);
                continue;
            }
            if (data->asks)
                ask_ahead(w, from);
            chain(data->first, to + w->low * w->size, x, high - low, w->high - w->low);
        }
}

/* Whether row r of a phase is an output's: those between elements need not be the tensor's. */
static int is_read(const struct sliding_worker *w, int64_t phase, int64_t r)
{
    const struct side *down = &w->data->shape.down;
    int is = down->gap == 1;
    for (int64_t i = 0; i < down->elements && !is; i++) {
        const int64_t row = r - i * down->gap / down->step;
        is = i * down->gap % down->step == phase && row >= 0 && row < w->height;
    }
    return is;
}

/* Rows of all phases, [phase][position][row]: those with one remainder by the step down touch. */
static void copy_rows(const struct sliding_worker *w)
{
    const struct sliding_plan *data = w->data;
    const struct side *down = &data->shape.down;
    const uintptr_t apart = (uintptr_t)down->step * (uintptr_t)data->shape.row * (uintptr_t)w->item;
    char *to = w->rows;
    for (int64_t phase = 0; phase < down->step; phase++)
        for (int64_t p = 0; p < w->positions; p++) {
            const int64_t reach = (down->elements - 1) * down->gap - phase, first = w->row * down->step + phase;
            const int64_t rows = reach < 0 || w->low == w->high ? 0 : w->height + reach / down->step;
            const uintptr_t from = mf_sliding_row_at(w, p, first);
            for (int64_t r = 0; r < w->stride; r++, to += w->pitch * w->size)
                if (r < rows && is_inside(down, first + r * down->step) && is_read(w, phase, r))
                    mf_copy_run(to + w->low * w->size, (const void *)(from + (uintptr_t)r * apart),
                                (w->high - w->low) * w->size, data->asks ? SLIDING_AHEAD : 0);
                else
                    fill(w, to, 0, w->pitch);
        }
}

/* Element i down, in the copied rows. */
static char *find_copied(const struct sliding_worker *w, int64_t i)
{
    const struct side *down = &w->data->shape.down;
    const int64_t phase = i * down->gap % down->step, row = i * down->gap / down->step;
    return w->rows + (phase * w->positions * w->stride + row) * w->pitch * w->size;
}

/* ---- The fold ---- */

/* Down the columns of copied rows, n of them, to the spare values. */
static const char *fold_copied(const struct sliding_worker *w, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const void *x[MOST_DOWN];
    for (int64_t i = 0; i < data->shape.down.elements; i++)
        x[i] = find_copied(w, i);
    char *const to = w->value + data->value_bytes;
    chain(data->first, to, x, data->shape.down.elements, n);
    return to;
}

/* Extremes of many columns: of 2, 4, 8 ... from those before, and in the end of two that overlap. */
static void fold_doubled(struct sliding_worker *w, const char *rows, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const struct side *across = &data->shape.across;
    const int64_t step = across->gap * data->shape.inside, size = mf_dtypes[data->value].size;
    const int64_t all = n + (across->elements - 1) * step;
    char *to = w->value, *other = w->value + data->value_bytes;
    for (int64_t done = 1; done < across->elements;) {
        const int64_t rest = across->elements - done, more = rest < done ? rest : done;
        if (to == rows) { /* which is `other` of the first time */
            char *const kept = to;
            to = other;
            other = kept;
        }
        data->then(to, NULL, (const void *[]){rows, rows + more * step * size}, 2, all - (done + more - 1) * step,
                   NULL);
        rows = to;
        done += more;
    }
    w->result = (char *)rows;
}

/* n columns of all rows, and of what is between them. */
static void fold_any_order(struct sliding_worker *w, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const struct side *across = &data->shape.across;
    const int64_t step = across->gap * data->shape.inside, reach = (across->elements - 1) * step;
    const char *const rows = data->copies ? fold_copied(w, n + reach) : w->rows;
    const void *x[MOST_ACROSS];
    if (data->doubles) {
        fold_doubled(w, rows, n);
        return;
    }
    for (int64_t j = 0; j < across->elements; j++)
        x[j] = rows + j * step * mf_dtypes[data->between].size;
    chain(data->then, w->value, x, across->elements, n);
}

/* Columns by pieces, for an element is in the nearest cache from the first row that reads it to the last one. */
static void fold_tree(struct sliding_worker *w, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const struct side *across = &data->shape.across, *down = &data->shape.down;
    const int64_t size = mf_dtypes[data->value].size;
    const void *x[TREE_ELEMENTS];
    for (int64_t c = 0; c < n; c += TREE_PIECE) {
        for (int64_t i = 0; i < down->elements; i++)
            for (int64_t j = 0; j < across->elements; j++)
                x[i * across->elements + j] = find_copied(w, i) + (c + j * across->gap * data->shape.inside) * w->size;
        const struct lanes lanes = {data->first, data->then, n - c < TREE_PIECE ? n - c : TREE_PIECE,
                                    TREE_PIECE * size};
        mf_fold_lanes(&lanes, x, 0, 1, (int)(down->elements * across->elements), w->value + c * size,
                      w->value + data->value_bytes);
    }
}

/* ---- Outputs ---- */

static int64_t count_inside(const struct side *side, int64_t output)
{
    int64_t low, high;
    find_inside(side, output * side->step, &low, &high);
    return high - low;
}

/* Whether all elements of outputs first ... first + count-1 are. */
static int all_inside(const struct side *side, int64_t first, int64_t count)
{
    return count_inside(side, first) == side->elements && count_inside(side, first + count - 1) == side->elements;
}

/* The counts of rows row ..., or null if they are those of the rows before. */
static const int64_t *find_counts(struct sliding_worker *w, int64_t row, int64_t rows)
{
    const struct side *across = &w->data->shape.across, *down = &w->data->shape.down;
    const int64_t inside = w->data->shape.inside, width = w->width * inside;
    const struct counted now = {w->positions, rows, w->width, all_inside(down, w->row + row, rows) ? -1 : w->row + row,
                                all_inside(across, w->column, w->width) ? -1 : w->column};
    if (!memcmp(&now, &w->counted, sizeof now))
        return NULL;
    w->counted = now;
    for (int64_t c = 0; c < w->width; c++) {
        const int64_t beside = count_inside(across, w->column + c);
        for (int64_t k = 0; k < inside; k++)
            w->counts[c * inside + k] = beside;
    }
    for (int64_t r = rows - 1; r >= 0; r--) {
        const int64_t below = count_inside(down, w->row + row + r);
        for (int64_t c = 0; c < width; c++)
            w->counts[r * width + c] = w->counts[c] * below;
    }
    for (int64_t p = 1; p < w->positions; p++)
        mf_copy_run(w->counts + p * rows * width, w->counts, rows * width * (int64_t)sizeof *w->counts, 0);
    return w->counts;
}

/* The number of the first output of row `row` of the block. */
static int64_t find_output(const struct sliding_worker *w, int64_t row)
{
    const struct shape *shape = &w->data->shape;
    const int64_t outputs = shape->across.outputs;
    return ((w->position * shape->down.outputs + w->row + row) * outputs + w->column) * shape->inside;
}

/* Outputs of some rows of the block, of all its positions. walk: of them in w->result. */
static void store(struct sliding_worker *w, const struct walk *walk, int64_t row, int64_t rows)
{
    const struct sliding_plan *data = w->data;
    const int64_t size = mf_dtypes[data->value].size, width = w->width * data->shape.inside;
    const int64_t n = w->positions * rows * width, o = find_output(w, row);
    const int is_class = mf_is_class_type(data->value);
    char *const results = w->finish.results.part[0][0];
    char *const unused = w->result == w->value ? w->value + data->value_bytes : w->value;
    char *const to = data->is_output ? (char *)w->pointers->out[0] + o * size : is_class ? results : unused;
    mf_walk_gather(walk, (int)size, w->result, row * width, n, to);
    if (data->is_output)
        return;
    if (!is_class)
        w->finish.block.kernels->load[data->value](results, to, n);
    mf_finish_store(&w->finish, o, n, w->counts ? find_counts(w, row, rows) : NULL);
}

void mf_sliding_store(struct sliding_worker *w, int64_t row)
{
    const struct shape *shape = &w->data->shape;
    const int64_t n = w->width * shape->inside;
    if (shape->across.step > 1) {
        struct walk walk;
        mf_walk_make(&walk, 2, (int64_t[]){w->width, shape->inside},
                     (int64_t[]){shape->across.step * shape->inside, 1});
        mf_walk_gather(&walk, (int)mf_dtypes[w->data->value].size, w->result, 0, n, w->finish.results.part[0][0]);
    } else
        w->finish.block.state[0][0] = w->result;
    mf_finish_store(&w->finish, find_output(w, row), n, w->counts ? find_counts(w, row, 1) : NULL);
}

void mf_sliding_block(struct sliding_worker *w)
{
    const struct sliding_plan *data = w->data;
    const struct shape *shape = &data->shape;
    const struct side *across = &shape->across;
    w->stride = w->height + data->halo;
    w->pitch = mf_sliding_row(shape, w->width);
    clip(across, w->column * across->step, w->pitch / shape->inside, &w->low, &w->high);
    w->low *= shape->inside;
    w->high *= shape->inside;
    mf_walk_offsets(&data->walk, w->position, 1, w->positions, w->offset);
    if (data->is_strip) {
        mf_sliding_strip(w);
        return;
    }
    const int64_t reach = (across->elements - 1) * across->gap * shape->inside;
    const int64_t n = ((w->positions - 1) * w->stride + w->height) * w->pitch - reach;
    fill_ends(w);
    w->result = w->value;
    (data->copies ? copy_rows : fold_from_memory)(w);
    if (data->shares)
        mf_sliding_shared(w, n);
    else
        (data->is_tree ? fold_tree : fold_any_order)(w, n);
    struct walk walk;
    mf_walk_make(&walk, 4, (int64_t[]){w->positions, w->height, w->width, shape->inside},
                 (int64_t[]){w->stride * w->pitch, w->pitch, across->step * shape->inside, 1});
    const int64_t at_once = w->width == across->outputs ? w->height : 1;
    for (int64_t r = 0; r < w->height; r += at_once)
        store(w, &walk, r, at_once);
}
