/* Ten kinds of data for products in log space: those on which unchecked exponentials are right, and those on which they
 * are wrong. */
#ifndef MF_TESTS_LOGSPACE_DATA_H
#define MF_TESTS_LOGSPACE_DATA_H

#include <math.h>
#include <stdint.h>

enum { ROWS = 61, COLUMNS = 83, TERMS = 300 };

static uint64_t state = 1;

static double uniform(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(double deviation)
{
    return deviation * sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* ---- the ten data sets: a[i][k], b[k][j] ---- */

static double wide(double deviation)
{
    return normal(deviation);
}

/* Squared distances of points on a line, as the logarithms of a Gaussian kernel of this width. */
static double kernel(int left, int right, double width)
{
    double d = (double)left / ROWS - (double)right / TERMS;
    return -d * d / (2 * width * width);
}

static double value(int set, int is_b, int position, int k)
{
    switch (set) {
    case 0:
        return wide(1);
    case 1:
        return wide(10);
    case 2:
        return wide(30);
    case 3:
        return wide(100);
    case 4: /* one step of a chain whose forward values are near -1000 */
        return is_b ? log(uniform() / TERMS) : -1000 + normal(3);
    case 5:
        return is_b ? kernel(position, k, 1e-1) : kernel(position, k, 1e-2);
    case 6:
        return is_b ? kernel(position, k, 1e-1) : kernel(position, k, 1e-3);
    case 7: /* offsets along k that cancel */
        return normal(1) + (is_b ? -1 : 1) * (k % 2 ? 40 : -40);
    case 8: /* where a is great, b is small */
        return normal(1) + (is_b ? 1 : -1) * 200.0 * k / TERMS;
    default: /* causal mask */
        return !is_b && k > position * TERMS / ROWS ? -INFINITY : normal(3);
    }
}

/* Puts x in some places of a row of a, or (a null) of a column of b, or in all of it. */
static void sow(float x, float *a, float *b)
{
    int row = (int)(uniform() * ROWS), column = (int)(uniform() * COLUMNS), whole = uniform() < 0.3;
    for (int k = 0; k < TERMS; k++)
        if (whole || uniform() < 0.02)
            *(a ? &a[row * TERMS + k] : &b[k * COLUMNS + column]) = x;
}

static const char *const set_names[] = {"N(0,1)",           "N(0,10)",     "N(0,30)",     "N(0,100)",
                                        "HMM near -1000",   "kernel 1e-2", "kernel 1e-3", "offsets +-40",
                                        "anti-aligned 200", "causal mask"};
enum { SETS = sizeof set_names / sizeof set_names[0] };

#endif
