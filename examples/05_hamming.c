/* The nearest of many bit strings: Hamming distances of all pairs, then the smallest of each row. */
#include <modefold.h>

#include <stdio.h>

enum { QUERIES = 5, STORED = 1000, WORDS = 8 }; /* strings of 512 bits */

static uint64_t stored[STORED][WORDS], query[QUERIES][WORDS];
static int32_t distance[QUERIES][STORED];

static uint64_t random_bits(void)
{
    static uint64_t x = 88172645463325252u; /* Marsaglia's xorshift */
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

/* Query q is stored string number 200 * q + 7 with some of its bits flipped. */
static void fill(void)
{
    for (int t = 0; t < STORED; t++)
        for (int w = 0; w < WORDS; w++)
            stored[t][w] = random_bits();
    for (int q = 0; q < QUERIES; q++) {
        memcpy(query[q], stored[200 * q + 7], sizeof query[q]);
        for (int flips = 0; flips < 20 * (q + 1); flips++) {
            uint64_t bit = random_bits() >> 55;
            query[q][bit / 64] ^= (uint64_t)1 << bit % 64;
        }
    }
}

static int bits_apart(const uint64_t *a, const uint64_t *b)
{
    int count = 0;
    for (int w = 0; w < WORDS; w++)
        for (uint64_t x = a[w] ^ b[w]; x; x &= x - 1)
            count++;
    return count;
}

int main(void)
{
    int64_t nearest[QUERIES] = {0};
    int32_t bits[QUERIES] = {0};
    int64_t query_shape[2] = {QUERIES, WORDS}, stored_shape[2] = {STORED, WORDS}, shape[2] = {QUERIES, STORED};
    DLTensor in[2] = {mf_tensor(query, MF_U64, 2, query_shape), mf_tensor(stored, MF_U64, 2, stored_shape)};
    DLTensor all = mf_tensor(distance, MF_I32, 2, shape);
    DLTensor out[2] = {mf_tensor(nearest, MF_I64, 1, shape), mf_tensor(bits, MF_I32, 1, shape)};
    mf_device *cpu;
    fill();
    if (mf_device_open("cpu", &cpu) != MF_OK || mf_fold(cpu, "qw,tw->qt", "sum(popcount(a^b))", in, &all) != MF_OK ||
        mf_fold(cpu, "qt->q", "argmin(a); min(a)", &all, out) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    mf_device_close(cpu);

    int good = 1;
    for (int q = 0; q < QUERIES; q++) {
        printf("query %d: nearest is string %3d, %2d bits away\n", q, (int)nearest[q], bits[q]);
        good = good && nearest[q] == 200 * q + 7 && bits[q] == bits_apart(query[q], stored[nearest[q]]);
        for (int t = 0; t < STORED; t++)
            good = good && distance[q][t] == bits_apart(query[q], stored[t]);
    }
    return !good;
}
