/* Merged loops of one tensor and strided copies over them. */
#include "walk.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

void mf_walk_make(struct walk *walk, int loops, const int64_t *size, const int64_t *stride)
{
    walk->loops = 0;
    for (int l = 0; l < loops; l++) {
        int last = walk->loops - 1;
        if (size[l] == 1)
            continue;
        if (last >= 0 && (__int128)stride[l] * size[l] == walk->stride[last]) {
            walk->size[last] *= size[l];
            walk->stride[last] = stride[l];
            continue;
        }
        walk->size[++last] = size[l];
        walk->stride[last] = stride[l];
        walk->loops++;
    }
    if (!walk->loops) {
        walk->loops = 1;
        walk->size[0] = walk->stride[0] = 1;
    }
}

void mf_walk_choose(struct walk *walk, const int64_t *size, const int64_t *stride, int count, const int *loop)
{
    int64_t sizes[MAX_LOOPS], strides[MAX_LOOPS];
    for (int l = 0; l < count; l++) {
        sizes[l] = size[loop[l]];
        strides[l] = stride[loop[l]];
    }
    mf_walk_make(walk, count, sizes, strides);
}

/* A position as one digit a loop. */
struct cursor {
    int64_t offset;
    int64_t at[MAX_LOOPS];
};

static void cursor_set(const struct walk *w, struct cursor *c, int64_t f)
{
    c->offset = 0;
    if (!f) { /* no divisions */
        memset(c->at, 0, sizeof c->at[0] * (size_t)w->loops);
        return;
    }
    for (int l = w->loops - 1; l > 0; l--) {
        int64_t q = f / w->size[l];
        c->at[l] = f - q * w->size[l];
        c->offset += c->at[l] * w->stride[l];
        f = q;
    }
    c->at[0] = f;
    c->offset += f * w->stride[0];
}

/* Moves loop l by steps that stay within it or just reach its end. */
static inline void cursor_skip(const struct walk *w, struct cursor *c, int l, int64_t steps)
{
    c->at[l] += steps;
    c->offset += steps * w->stride[l];
    while (l > 0 && c->at[l] == w->size[l]) {
        c->offset -= w->size[l] * w->stride[l];
        c->at[l--] = 0;
        c->at[l]++;
        c->offset += w->stride[l];
    }
}

int64_t mf_walk_offset(const struct walk *walk, int64_t f)
{
    struct cursor c;
    if (!f)
        return 0;
    cursor_set(walk, &c, f);
    return c.offset;
}

/* The sum of two positions, digit by digit; it is below the walk's end. */
static inline void cursor_add(const struct walk *w, struct cursor *c, const struct cursor *step)
{
    int64_t carry = 0;
    for (int l = w->loops - 1; l >= 0; l--) {
        int64_t at = c->at[l] + step->at[l] + carry;
        carry = l > 0 && at >= w->size[l];
        at -= carry ? w->size[l] : 0;
        c->offset += (at - c->at[l]) * w->stride[l];
        c->at[l] = at;
    }
}

void mf_walk_offsets(const struct walk *walk, int64_t f, int64_t step, int64_t n, int64_t *offset)
{
    struct cursor c, by;
    cursor_set(walk, &c, f);
    offset[0] = c.offset;
    if (n > 1 && walk->loops > 1)
        cursor_set(walk, &by, step);
    for (int64_t k = 1; k < n; k++) {
        if (walk->loops > 1)
            cursor_add(walk, &c, &by);
        else
            c.offset += step * walk->stride[0];
        offset[k] = c.offset;
    }
}

int mf_walk_in_run(const struct walk *walk, int64_t f, int64_t n)
{
    if (walk->loops == 1)
        return 1;
    int64_t size = walk->size[walk->loops - 1];
    return (f ? f % size : 0) + n <= size;
}

int64_t mf_walk_ahead(const struct walk *walk, int item)
{
    enum { AHEAD = 8192, MOST_ROWS = 64 };
    const int last = walk->loops - 1;
    if (!last || walk->stride[last] != 1)
        return 0;
    const int64_t rows = AHEAD / (walk->size[last] * item) + 1;
    return (rows < MOST_ROWS ? rows : MOST_ROWS) * walk->stride[last - 1] * item;
}

void mf_copy_run(void *to, const void *from, int64_t bytes, int64_t ahead)
{
    enum { LINE = 64 };
    int64_t b = 0;
    for (; ahead && b + LINE <= bytes; b += LINE) {
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)(ahead + b)), 0, 2);
        memcpy((char *)to + b, (const char *)from + b, LINE);
    }
    if (ahead && b < bytes)
        __builtin_prefetch((const void *)((uintptr_t)from + (uintptr_t)(ahead + b)), 0, 2);
    if (b && b < bytes) /* a whole line again: a call for what is left costs more than several lines */
        memcpy((char *)to + bytes - LINE, (const char *)from + bytes - LINE, LINE);
    else if (b < bytes)
        memcpy(to, from, (size_t)bytes);
}

/* rows runs of `bytes` bytes, CHUNK to twice as many, apart bytes from each other in memory: two copies of a constant
 * size each. */
#define SHORT_RUNS(CHUNK)                                                                                  \
    static void short_runs_##CHUNK(char *to, const char *from, int64_t rows, int64_t apart, int64_t bytes) \
    {                                                                                                      \
        for (int64_t r = 0; r < rows; r++, to += bytes) {                                                  \
            const char *const run = (const char *)((uintptr_t)from + (uintptr_t)(r * apart));              \
            memcpy(to, run, CHUNK);                                                                        \
            memcpy(to + bytes - CHUNK, run + bytes - CHUNK, CHUNK);                                        \
        }                                                                                                  \
    }
SHORT_RUNS(4)
SHORT_RUNS(8)
SHORT_RUNS(16)
SHORT_RUNS(32)
SHORT_RUNS(64)
#undef SHORT_RUNS

/* Returns 0, and does nothing, where they are too short or too long for that. */
static int copy_short_runs(void *to, const void *from, int64_t rows, int64_t apart, int64_t bytes)
{
    if (bytes < 4 || bytes > 128)
        return 0;
    (bytes <= 8    ? short_runs_4
     : bytes <= 16 ? short_runs_8
     : bytes <= 32 ? short_runs_16
     : bytes <= 64 ? short_runs_32
                   : short_runs_64)(to, from, rows, apart, bytes);
    return 1;
}

#define T uint8_t
#define BITS 8
#include "walk_copy.inc"
#define T uint16_t
#define BITS 16
#include "walk_copy.inc"
#define T uint32_t
#define BITS 32
#include "walk_copy.inc"
#define T uint64_t
#define BITS 64
#include "walk_copy.inc"

void mf_walk_gather(const struct walk *walk, int item, const char *base, int64_t f, int64_t n, void *to)
{
    struct cursor c;
    cursor_set(walk, &c, f);
    switch (item) {
    case 1:
        gather_8(walk, base, &c, n, to);
        break;
    case 2:
        gather_16(walk, base, &c, n, to);
        break;
    case 4:
        gather_32(walk, base, &c, n, to);
        break;
    default:
        gather_64(walk, base, &c, n, to);
        break;
    }
}

void mf_walk_scatter(const struct walk *walk, int item, char *base, int64_t f, int64_t n, const void *from)
{
    struct cursor c;
    cursor_set(walk, &c, f);
    switch (item) {
    case 1:
        scatter_8(walk, base, &c, n, from);
        break;
    case 2:
        scatter_16(walk, base, &c, n, from);
        break;
    case 4:
        scatter_32(walk, base, &c, n, from);
        break;
    default:
        scatter_64(walk, base, &c, n, from);
        break;
    }
}
