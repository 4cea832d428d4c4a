/* Do two strided sets of bytes meet?
 *
 * sum of s_i * x_i over both sets (b's strides negated) = distance, 0 <= x_i < n_i, is a bounded linear Diophantine
 * equation: NP-hard in general, small in practice. It is searched largest stride first; what the remaining terms can
 * still reach (their least and greatest sum, and their greatest common divisor) prunes. A search that takes too many
 * steps answers "yes", which refuses a call that might have been fine rather than accept a wrong one.
 * (The same problem: NumPy's solve_may_share_memory.) */
#include "layout.h"

#include <stdlib.h>

enum { MAX_TERMS = 2 * MF_MAX_RANK + 2, MAX_STEPS = 20000 };

struct term {
    int64_t stride, count;
};

struct search {
    struct term term[MAX_TERMS];
    int count, steps;
    __int128 shift;                                   /* of the target */
    __int128 low[MAX_TERMS + 1], high[MAX_TERMS + 1]; /* of terms i ... */
    int64_t gcd[MAX_TERMS + 1];
};

int64_t mf_gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t r = a % b;
        a = b;
        b = r;
    }
    return a < 0 ? -a : a;
}

static int by_stride(const void *a, const void *b)
{
    int64_t x = llabs(((const struct term *)a)->stride), y = llabs(((const struct term *)b)->stride);
    return x > y ? -1 : x < y;
}

/* Terms of the same stride, forwards or backwards, are one: views that lie between each other, as even and odd rows do,
 * have only such, and would be searched row by row. */
static void add_term(struct search *s, int64_t stride, int64_t count)
{
    if (!stride || count < 2)
        return;
    for (int i = 0; i < s->count; i++) {
        struct term *same = &s->term[i];
        if ((same->stride != stride && same->stride != -stride) || same->count > INT64_MAX - count)
            continue;
        s->shift += same->stride == stride ? 0 : (__int128)same->stride * (count - 1);
        same->count += count - 1;
        return;
    }
    s->term[s->count++] = (struct term){stride, count};
}

/* Differences of two positions of a mode of n: from -(n-1) to n-1. */
static int64_t difference_count(int64_t n)
{
    return n > INT64_MAX / 2 ? INT64_MAX : 2 * n - 1;
}

static void finish_terms(struct search *s)
{
    qsort(s->term, (size_t)s->count, sizeof s->term[0], by_stride);
    s->low[s->count] = s->high[s->count] = 0;
    s->gcd[s->count] = 0;
    for (int i = s->count - 1; i >= 0; i--) {
        __int128 reach = (__int128)s->term[i].stride * (s->term[i].count - 1);
        s->low[i] = s->low[i + 1] + (reach < 0 ? reach : 0);
        s->high[i] = s->high[i + 1] + (reach > 0 ? reach : 0);
        s->gcd[i] = mf_gcd(s->term[i].stride, s->gcd[i + 1]);
    }
}

static __int128 divide_up(__int128 a, __int128 b)
{
    return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

static __int128 divide_down(__int128 a, __int128 b)
{
    return -divide_up(-a, b);
}

/* The least x from first on with stride * x = target modulo g, and the period with which others follow: a search need
 * not try every x of a long range. gcd(stride, g) divides target. */
static __int128 first_fitting(int64_t stride, __int128 target, int64_t g, __int128 first, __int128 *period)
{
    *period = 1;
    if (!g)
        return first; /* nothing follows: the range has one x */
    int64_t d = mf_gcd(stride, g), m = g / d;
    __int128 a = (stride / d % m + m) % m, b = m, u = 1, v = 0;
    while (b) { /* Euclid's algorithm: u becomes a's inverse modulo m */
        __int128 q = a / b, t = a - q * b;
        a = b;
        b = t;
        t = u - q * v;
        u = v;
        v = t;
    }
    __int128 x = (target / d % m + m) % m * ((u % m + m) % m) % m;
    *period = m;
    return first + ((x - first) % m + m) % m;
}

/* Whether terms i ... can sum to target. */
static int reachable(struct search *s, int i, __int128 target)
{
    if (target < s->low[i] || target > s->high[i])
        return 0;
    if (i == s->count)
        return 1; /* target is 0 */
    if (target % s->gcd[i])
        return 0;
    if (++s->steps > MAX_STEPS)
        return 1;
    __int128 stride = s->term[i].stride, rest_low = s->low[i + 1], rest_high = s->high[i + 1];
    __int128 size = stride < 0 ? -stride : stride, goal = stride < 0 ? -target : target;
    if (stride < 0) { /* size * x must bring goal into what the others, negated, reach */
        __int128 t = rest_low;
        rest_low = -rest_high;
        rest_high = -t;
    }
    __int128 first = divide_up(goal - rest_high, size), last = divide_down(goal - rest_low, size);
    if (first < 0)
        first = 0;
    if (last > s->term[i].count - 1)
        last = s->term[i].count - 1;
    __int128 period;
    first = first_fitting(s->term[i].stride, target, s->gcd[i + 1], first, &period);
    for (__int128 x = first; x <= last; x += period)
        if (reachable(s, i + 1, target - stride * x))
            return 1;
    return 0;
}

int mf_sets_meet(int64_t base_a, int rank_a, const int64_t *na, const int64_t *sa, int64_t bytes_a, int64_t base_b,
                 int rank_b, const int64_t *nb, const int64_t *sb, int64_t bytes_b)
{
    struct search s;
    s.shift = s.count = s.steps = 0;
    for (int i = 0; i < rank_a; i++) {
        if (!na[i])
            return 0;
        add_term(&s, sa[i], na[i]);
    }
    for (int i = 0; i < rank_b; i++) {
        if (!nb[i])
            return 0;
        add_term(&s, -sb[i], nb[i]);
    }
    add_term(&s, 1, bytes_a);
    add_term(&s, -1, bytes_b);
    finish_terms(&s);
    return reachable(&s, 0, (__int128)base_b - base_a + s.shift);
}

/* Two positions differ by d, -n < d_i < n; by symmetry the first differing mode has d > 0. */
int mf_set_overlaps_itself(int rank, const int64_t *n, const int64_t *stride, int64_t bytes)
{
    for (int i = 0; i < rank; i++)
        if (!n[i])
            return 0;
    for (int lead = 0; lead < rank; lead++) {
        if (n[lead] < 2)
            continue;
        struct search s;
        s.shift = s.count = s.steps = 0;
        __int128 target = -(__int128)stride[lead]; /* d_lead = 1 + x */
        add_term(&s, stride[lead], n[lead] - 1);
        for (int i = lead + 1; i < rank; i++) {
            add_term(&s, stride[i], difference_count(n[i])); /* d_i = x - (n - 1) */
            target += (__int128)stride[i] * (n[i] - 1);
        }
        add_term(&s, 1, 2 * bytes - 1);
        target += bytes - 1;
        finish_terms(&s);
        if (reachable(&s, 0, target + s.shift))
            return 1;
    }
    return 0;
}
