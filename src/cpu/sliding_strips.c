/* Solver "sliding", sums and products of floats over windows of many columns and rows: strips of columns go down row by
 * row, and outputs share the parts of their trees. What is added for one output at one place of its tree is added for
 * another one elsewhere, if the elements lie as far from each other: part[y][x] = part a[y][x] o part b[y + r][x + c].
 * Equal parts are found when the plan is made (value numbers: Cocke and Schwartz, *Programming Languages and Their
 * Compilers*, 1970): 11 x 11 elements take 34 additions instead of 120, 31 x 31 take 128 instead of 960. Each part has
 * the few rows of it that others still read, in the nearest caches. */
#include "cpu.h"
#include "sliding.h"

/* ---- Parts ---- */

/* A part whose first element is this one of a window. */
struct placed {
    int part, row, column;
};

struct builder {
    const struct shape *shape;
    struct strips *strips;
    int elements, full;
};

static struct placed element(const struct builder *b, int e)
{
    const struct side *across = &b->shape->across, *down = &b->shape->down;
    return (struct placed){0, (int)(e / across->elements * down->gap),
                           (int)(e % across->elements * across->gap * b->shape->inside)};
}

/* What these are together: a part that is known, or a new one. */
static struct placed together(struct builder *b, const struct placed *x, int count)
{
    struct strips *s = b->strips;
    struct input *const input = s->input + s->inputs;
    b->full = b->full || s->parts == MOST_PARTS || s->inputs + count > MOST_INPUTS;
    if (count == 1 || b->full)
        return x[0];
    for (int k = 0; k < count; k++)
        input[k] = (struct input){(short)x[k].part, (short)(x[k].row - x[0].row), (short)(x[k].column - x[0].column)};
    const size_t bytes = (size_t)count * sizeof *input;
    int p = 1;
    while (p < s->parts && (s->part[p].count != count || memcmp(s->input + s->part[p].first, input, bytes)))
        p++;
    if (p == s->parts) {
        s->part[s->parts++] = (struct part){.first = (short)s->inputs, .count = (short)count};
        s->inputs += count;
    }
    return (struct placed){p, x[0].row, x[0].column};
}

/* A lane's chain: of as many as all lanes have, and one more. */
static struct placed chain(struct builder *b, int lane)
{
    struct placed x[STEPS] = {{0, 0, 0}};
    const int whole = b->elements / LANES;
    int count = 0, e = lane;
    for (; e < b->elements && count < (whole ? whole : 1); e += LANES)
        x[count++] = element(b, e);
    x[0] = together(b, x, count);
    if (!whole || e >= b->elements)
        return x[0];
    x[1] = element(b, e);
    return together(b, x, 2);
}

/* The halving tree of lanes `lane`, lane + apart ... (numerics.md, section 2). */
static struct placed tree(struct builder *b, int lane, int apart)
{
    if (apart == LANES)
        return chain(b, lane);
    struct placed both[2] = {tree(b, lane, 2 * apart)};
    if (lane + apart >= b->elements)
        return both[0];
    both[1] = tree(b, lane + apart, 2 * apart);
    return together(b, both, 2);
}

static short least(int a, int b)
{
    return (short)(a < b ? a : b);
}

static short most(int a, int b)
{
    return (short)(a > b ? a : b);
}

/* Rows and columns of each part, from those of what reads it; and how far back in its rows that is. */
static void find_reach(struct strips *s)
{
    struct part *const root = &s->part[s->parts - 1];
    for (struct part *p = s->part; p < root; p++) {
        p->first_row = p->low = p->oldest = INT16_MAX;
        p->high = p->row = INT16_MIN;
    }
    for (struct part *p = root; p > s->part; p--)
        for (struct input *x = s->input + p->first; x < s->input + p->first + p->count; x++) {
            struct part *of = &s->part[x->part];
            of->first_row = least(of->first_row, p->first_row + x->row);
            of->oldest = least(of->oldest, p->row + x->row);
            of->row = most(of->row, p->row + x->row);
            of->low = least(of->low, p->low + x->column);
            of->high = most(of->high, p->high + x->column);
        }
    for (struct part *p = s->part + 1; p <= root; p++)
        for (struct input *x = s->input + p->first; x < s->input + p->first + p->count; x++) {
            const struct part *of = &s->part[x->part];
            x->row = (short)(of->row - p->row - x->row);
            x->column = (short)(p->low + x->column - of->low);
        }
    for (struct part *p = s->part; p <= root; p++) {
        p->rows = (short)(p->row - p->oldest + 1);
        s->rows += p->rows;
        s->before = most(s->before, p->row - p->first_row);
        s->reach = most(s->reach, p->high - p->low);
    }
}

/* Whether what reads a part, nothing else, begins with it and has room for its inputs too: at most 16, one more, and 7
 * of the tree's levels. */
static int is_beginning(const struct strips *s, int p, const short *uses, const short *firsts)
{
    return uses[p] == 1 && firsts[p] && s->part[p].count <= STEPS / 2;
}

/* The inputs of part p, with those of the part that it begins with if nothing else reads that. */
static int put_inputs(const struct strips *from, int p, const short *uses, const short *firsts, const short *now,
                      struct input *to)
{
    const struct part *const part = &from->part[p];
    int n = 0;
    for (const struct input *x = from->input + part->first; x < from->input + part->first + part->count; x++)
        if (!n && is_beginning(from, x->part, uses, firsts))
            n = put_inputs(from, x->part, uses, firsts, now, to);
        else
            to[n++] = (struct input){now[x->part], x->row, x->column};
    return n;
}

/* Chains of parts become one, which goes through fewer rows. */
static void join_chains(struct strips *s)
{
    const struct strips from = *s;
    short uses[MOST_PARTS] = {0}, firsts[MOST_PARTS] = {0}, now[MOST_PARTS] = {0};
    for (int p = 1; p < from.parts; p++) {
        firsts[from.input[from.part[p].first].part]++;
        for (int k = 0; k < from.part[p].count; k++)
            uses[from.input[from.part[p].first + k].part]++;
    }
    *s = (struct strips){.parts = 1};
    for (int p = 1; p < from.parts; p++) {
        if (is_beginning(&from, p, uses, firsts))
            continue;
        const int count = put_inputs(&from, p, uses, firsts, now, s->input + s->inputs);
        now[p] = (short)s->parts;
        s->part[s->parts++] = (struct part){.first = (short)s->inputs, .count = (short)count};
        s->inputs += count;
    }
}

int mf_sliding_strips(const struct shape *shape, struct strips *strips)
{
    struct builder b = {shape, strips, (int)(shape->across.elements * shape->down.elements), 0};
    *strips = (struct strips){.parts = 1};
    tree(&b, 0, 1);
    if (b.full)
        return 0;
    join_chains(strips);
    find_reach(strips);
    return 1;
}

/* ---- A strip of a worker ---- */

/* Row `row` of the tensor, in the class, with what changes no value where it is not the tensor's. */
static void read_row(const struct sliding_worker *w, int64_t row, char *to)
{
    const struct sliding_plan *data = w->data;
    const struct side *down = &data->shape.down;
    const int64_t size = mf_dtypes[data->value].size, low = w->low, high = w->high;
    const int64_t place = row + down->offset;
    if (low == high || (down->checked && (place < 0 || place >= down->extent))) {
        mf_copy_run(to, w->outside, w->pitch * size, 0);
        return;
    }
    const void *const from = (const void *)mf_sliding_row_at(w, 0, row);
    mf_copy_run(to, w->outside, low * size, 0);
    if (data->first == data->then)
        mf_copy_run(to + low * size, from, (high - low) * size, data->asks ? data->ahead : 0);
    else
        data->first(to + low * size, NULL, &from, 1, high - low, NULL);
    mf_copy_run(to + high * size, w->outside, (w->pitch - high) * size, 0);
}

/* Bytes of rows of n columns of outputs: whole lines. */
static int64_t row_bytes(const struct sliding_plan *data, int64_t n)
{
    return ((n + data->strips.reach) * mf_dtypes[data->value].size + 63) & -64;
}

/* The next row of a part. */
static void make_row(const struct sliding_worker *w, int p, char *const *rows, const int *now, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const struct strips *s = &data->strips;
    const int64_t size = mf_dtypes[data->value].size, bytes = row_bytes(data, n);
    const struct part *part = &s->part[p];
    const void *x[STEPS];
    for (int k = 0; k < part->count; k++) {
        const struct input *input = &s->input[part->first + k];
        int row = now[input->part] - input->row;
        row += row < 0 ? s->part[input->part].rows : 0;
        x[k] = rows[input->part] + row * bytes + input->column * size;
    }
    char *const to = rows[p] + now[p] * bytes;
    n += part->high - part->low;
    if (part->count == 2)
        data->pair(to, x[0], x[1], NULL, n);
    else
        data->then(to, NULL, x, part->count, n, NULL);
}

void mf_sliding_shared(struct sliding_worker *w, int64_t n)
{
    const struct sliding_plan *data = w->data;
    const struct strips *s = &data->strips;
    char *rows[MOST_PARTS];
    const int now[MOST_PARTS] = {0};
    for (int p = 0; p < s->parts; p++)
        rows[p] = w->value + p * row_bytes(data, n);
    if (data->first != data->then) /* shorter elements */
        data->first(rows[0], NULL, (const void *[]){w->rows}, 1, n + s->part[0].high, NULL);
    else
        rows[0] = w->rows;
    for (int p = 1; p < s->parts; p++)
        make_row(w, p, rows, now, n);
    w->result = rows[s->parts - 1];
}

void mf_sliding_strip(struct sliding_worker *w)
{
    const struct strips *s = &w->data->strips;
    const int64_t n = w->pitch - s->part[0].high, bytes = row_bytes(w->data, n);
    char *rows[MOST_PARTS], *memory = w->value;
    int now[MOST_PARTS];
    for (int p = 0; p < s->parts; p++) {
        rows[p] = memory;
        now[p] = -1;
        memory += s->part[p].rows * bytes;
    }
    for (int64_t h = -s->before; h < w->height; h++) {
        for (int p = 0; p < s->parts; p++) {
            const struct part *part = &s->part[p];
            if (h + part->row < part->first_row)
                continue;
            now[p] = now[p] + 1 < part->rows ? now[p] + 1 : 0;
            if (p)
                make_row(w, p, rows, now, n);
            else
                read_row(w, w->row + h + part->row, rows[0] + now[0] * bytes);
        }
        w->result = rows[s->parts - 1]; /* which has one row */
        if (h >= 0)
            mf_sliding_store(w, h);
    }
}
