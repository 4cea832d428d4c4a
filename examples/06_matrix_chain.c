/* An operation of our own: products of 2 x 2 matrices, strictly in order.
 *
 * Walking down the Stern-Brocot tree of all fractions is a product of L = (1 1; 0 1) and R = (1 0; 1 1); the product
 * (n n'; m m') stands at the fraction (m + m') / (n + n') (Graham, Knuth, Patashnik: Concrete Mathematics, 4.5).
 * Matrix products do not commute, so the operation says commutative = 0 and the library keeps the order, whatever the
 * number of threads. */
#include <modefold.h>

#include <stdio.h>
#include <stdlib.h>

struct matrix {
    uint64_t e[4]; /* row-major */
};

static void product(struct matrix *left, const struct matrix *right)
{
    const struct matrix a = *left, b = *right;
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            left->e[2 * i + j] = a.e[2 * i] * b.e[j] + a.e[2 * i + 1] * b.e[2 + j];
}

/* ---- the four callbacks, on blocks of n states ---- */

static void identity(void *context, int64_t n, void *states)
{
    (void)context;
    for (int64_t i = 0; i < n; i++)
        ((struct matrix *)states)[i] = (struct matrix){{1, 0, 0, 1}};
}

static void lift(void *context, int64_t n, const void *const *values, void *states)
{
    (void)context;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            ((struct matrix *)states)[i].e[k] = ((const uint64_t *)values[k])[i];
}

static void combine(void *context, int64_t n, void *left, int64_t left_stride, const void *right, int64_t right_stride)
{
    (void)context;
    for (int64_t i = 0; i < n; i++) {
        void *l = (char *)left + i * left_stride;
        const void *r = (const char *)right + i * right_stride;
        product(l, r);
    }
}

static void finish(void *context, int64_t n, const void *states, void *const *results)
{
    (void)context;
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < 4; k++)
            ((uint64_t *)results[k])[i] = ((const struct matrix *)states)[i].e[k];
}

static mf_status define(mf_device *cpu)
{
    const mf_operation chain = {
        .name = "chain",
        .input_count = 4,
        .output_count = 4,
        .input_type = MF_U64,
        .output_type = MF_U64,
        .state_size = sizeof(struct matrix),
        .commutative = 0,
        .identity = identity,
        .lift = lift,
        .combine = combine,
        .finish = finish,
    };
    return mf_operation_define(cpu, &chain);
}

/* ---- its use ---- */

/* The product of a row of matrices. Operand k is entry k of every matrix: a view with a stride of 4. */
static mf_status multiply(mf_device *cpu, const struct matrix *matrices, int64_t count, struct matrix *result)
{
    int64_t shape[1] = {count}, stride[1] = {4};
    DLTensor in[4], out[4];
    for (int k = 0; k < 4; k++) {
        in[k] = mf_tensor(&matrices->e[k], MF_U64, 1, shape);
        in[k].strides = stride;
        out[k] = mf_tensor(&result->e[k], MF_U64, 0, shape);
    }
    return mf_fold(cpu, "n,n,n,n->", "chain(a,b,c,d); chain.1(a,b,c,d); chain.2(a,b,c,d); chain.3(a,b,c,d)", in, out);
}

static const struct matrix turn_left = {{1, 1, 0, 1}}, turn_right = {{1, 0, 1, 1}};

int main(void)
{
    enum { LONG = 100000 };
    const char *path = "RRRLLLLLLLRRRRRRRRRRRRRRR";
    struct matrix *steps = malloc(LONG * sizeof *steps), result, wanted = {{1, 0, 0, 1}};
    int64_t length = (int64_t)strlen(path);
    mf_device *cpu;
    if (!steps)
        return 1;
    for (int64_t i = 0; i < LONG; i++)
        steps[i] = path[i % length] == 'L' ? turn_left : turn_right;
    if (mf_device_open("cpu", &cpu) != MF_OK || define(cpu) != MF_OK ||
        multiply(cpu, steps, length, &result) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    uint64_t above = result.e[2] + result.e[3], below = result.e[0] + result.e[1];
    printf("%s leads to %d/%d = %.6f\n", path, (int)above, (int)below, (double)above / (double)below);
    int good = above == 355 && below == 113;

    /* A long chain, modulo 2^64, against a plain loop. */
    if (multiply(cpu, steps, LONG, &result) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    for (int64_t i = 0; i < LONG; i++)
        product(&wanted, &steps[i]);
    good = good && !memcmp(&result, &wanted, sizeof wanted);
    printf("a chain of %d matrices %s the plain loop's product\n", LONG, good ? "has" : "does not have");
    mf_device_close(cpu);
    free(steps);
    return !good;
}
