/* Along the last loop a window's index is a linear function, so the positions inside its tensor are one interval a
 * run: it is computed once a run and window, not once an element. */
#include "window.h"

struct runs {
    const struct nest *nest;
    int64_t at[MAX_LOOPS];
    int64_t left;
    /* the current run: `n` positions, of which first ... last-1 take part */
    int64_t n, first, last;
};

static void start(struct runs *r, const struct nest *nest, int64_t f, int64_t n)
{
    r->nest = nest;
    r->left = n;
    r->n = 0;
    for (int l = nest->kept + nest->reduced - 1; l >= 0; l--) {
        r->at[l] = f % nest->size[l];
        f /= nest->size[l];
    }
}

/* Narrows first ... last to where offset + step * t, t = 0 ... n-1, lies in 0 ... extent-1. All of these values fit in
 * 63 bits (layout.c), but not their differences, nor the parts of a sum: those are unsigned. */
static void narrow(struct runs *r, const struct window *window)
{
    int loops = r->nest->kept + r->nest->reduced;
    int64_t step = loops ? window->step[loops - 1] : 0;
    uint64_t low, high, at = (uint64_t)window->offset, extent = (uint64_t)window->extent;
    for (int l = 0; l < loops; l++)
        at += (uint64_t)window->step[l] * (uint64_t)r->at[l];
    int64_t offset = (int64_t)at;
    uint64_t stride = step < 0 ? 0 - (uint64_t)step : (uint64_t)step;
    if (step == 0) {
        low = 0;
        high = offset >= 0 && offset < window->extent ? (uint64_t)r->n : 0;
    } else if (step > 0) { /* smallest t with offset + step t >= 0, smallest with >= extent */
        low = offset >= 0 ? 0 : (0 - at - 1) / stride + 1;
        high = offset >= window->extent ? 0 : (extent - at - 1) / stride + 1;
    } else {
        low = offset < window->extent ? 0 : (at - extent) / stride + 1;
        high = offset < 0 ? 0 : at / stride + 1;
    }
    r->first = low > (uint64_t)r->first ? (int64_t)(low < (uint64_t)r->n ? low : (uint64_t)r->n) : r->first;
    r->last = high < (uint64_t)r->last ? (int64_t)high : r->last;
    if (r->last < r->first)
        r->last = r->first;
}

/* Moves on to the next run; 0 at the end. */
static int next(struct runs *r)
{
    int last = r->nest->kept + r->nest->reduced - 1;
    if (r->n && last < 0)
        r->left -= r->n;
    else if (r->n) {
        r->at[last] += r->n;
        for (int l = last; l > 0 && r->at[l] == r->nest->size[l]; l--) {
            r->at[l] = 0;
            r->at[l - 1]++;
        }
        r->left -= r->n;
    }
    if (!r->left)
        return 0;
    r->n = last < 0 ? 1 : r->nest->size[last] - r->at[last];
    r->n = r->n < r->left ? r->n : r->left;
    r->first = 0;
    r->last = r->n;
    for (int w = 0; w < r->nest->window_count; w++)
        narrow(r, &r->nest->window[w]);
    return 1;
}

void mf_window_valid(const struct nest *nest, int64_t f, int64_t n, uint8_t *valid)
{
    struct runs r;
    for (start(&r, nest, f, n); next(&r); valid += r.n) {
        memset(valid, 0, (size_t)r.n);
        memset(valid + r.first, 1, (size_t)(r.last - r.first));
    }
}

void mf_window_gather(const struct nest *nest, int input, int item, const char *base, int64_t f, int64_t n, char *to)
{
    struct runs r;
    int loops = nest->kept + nest->reduced;
    uint64_t step = loops ? (uint64_t)nest->in[input][loops - 1] : 0;
    for (start(&r, nest, f, n); next(&r); to += r.n * item) {
        uint64_t offset = 0; /* a run may begin far outside of the tensor */
        for (int l = 0; l < loops; l++)
            offset += (uint64_t)nest->in[input][l] * (uint64_t)r.at[l];
        memset(to, 0, (size_t)(r.n * item));
        for (int64_t i = r.first; i < r.last; i++)
            memcpy(to + i * item, (const char *)((uintptr_t)base + (offset + (uint64_t)i * step) * (size_t)item),
                   (size_t)item);
    }
}
