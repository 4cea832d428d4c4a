/* Whether strided sets share memory, against marking every byte; and no search may take long. */
#include "check.h"

#include <time.h>

#include "layout.h"

enum { BYTES = 4096, RANK = 4 };

/* Adds 1 to every byte of the set; the greatest count. 0 is in the middle. */
static int mark(unsigned char *bytes, int64_t base, int rank, const int64_t *n, const int64_t *s, int64_t item)
{
    int64_t at[RANK] = {0};
    int most = 0;
    for (int d = 0; d < rank; d++)
        if (!n[d])
            return 0;
    for (;;) {
        int64_t position = BYTES / 2 + base;
        for (int d = 0; d < rank; d++)
            position += at[d] * s[d];
        for (int64_t b = 0; b < item; b++)
            if (++bytes[position + b] > most)
                most = bytes[position + b];
        int d = rank - 1;
        while (d >= 0 && ++at[d] == n[d])
            at[d--] = 0;
        if (d < 0)
            return most;
    }
}

static void random_set(unsigned *state, int *rank, int64_t *n, int64_t *s)
{
    *rank = (int)(rand_r(state) % (RANK + 1));
    for (int d = 0; d < *rank; d++) {
        n[d] = (int64_t)(rand_r(state) % 20) / 3;
        s[d] = (int64_t)(rand_r(state) % 120) - 60;
    }
}

static void test_small(void)
{
    unsigned state = 3;
    int wrong_self = 0, wrong_pair = 0, met = 0;
    unsigned char bytes[BYTES];
    for (int t = 0; t < 60000; t++) {
        int ra, rb;
        int64_t na[RANK], sa[RANK], nb[RANK], sb[RANK], ia = 1 << rand_r(&state) % 4, ib = 1 << rand_r(&state) % 4;
        int64_t base = (int64_t)(rand_r(&state) % 300) - 150;
        random_set(&state, &ra, na, sa);
        random_set(&state, &rb, nb, sb);
        memset(bytes, 0, sizeof bytes);
        int self = mark(bytes, 0, ra, na, sa, ia) > 1;
        wrong_self += mf_set_overlaps_itself(ra, na, sa, ia) != self;
        for (int i = 0; i < BYTES; i++)
            bytes[i] = bytes[i] ? 100 : 0;
        int meet = 0;
        unsigned char other[BYTES] = {0};
        mark(other, base, rb, nb, sb, ib);
        for (int i = 0; i < BYTES; i++)
            meet |= bytes[i] && other[i];
        wrong_pair += mf_sets_meet(0, ra, na, sa, ia, base, rb, nb, sb, ib) != meet;
        met += meet;
    }
    CHECK_MSG(!wrong_self, "%d sets that overlap themselves or not", wrong_self);
    CHECK_MSG(!wrong_pair && met > 5000 && met < 55000, "%d pairs that meet or not (%d do)", wrong_pair, met);
}

/* Strides for which a plain search tries a million positions between two that fit. */
static void test_long_searches(void)
{
    static const struct {
        int64_t n[RANK], s[RANK];
        int rank, self;
    } cases[] = {
        {{8192, 32768, 32768}, {16777218, 8388607, 25165829}, 3, 1},
        {{8192, 16384, 16384}, {134217731, 67108864, 201326591}, 3, 1},
        {{65536, 2048, 32768}, {1073741823, 3221225477, 1073741825}, 3, 1},
        {{4096, 128, 4096, 128}, {12582911, 12582913, 12582912, 17135572}, 4, 1},
        {{1 << 20, 1 << 20}, {((int64_t)1 << 40) + 1, (int64_t)1 << 40}, 2, 0},
    };
    struct timespec from, to;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        CHECK(mf_set_overlaps_itself(cases[c].rank, cases[c].n, cases[c].s, 1) == cases[c].self);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
    CHECK_MSG(seconds < 1, "five searches took %.1f s", seconds);
}

/* Even and odd matrices of a long array, and the same one element closer. */
static void test_between(void)
{
    const int64_t n[3] = {50000, 4, 4}, s[3] = {256, 32, 8}, backwards[3] = {-256, 32, 8};
    CHECK(!mf_sets_meet(0, 3, n, s, 8, 128, 3, n, s, 8) && mf_sets_meet(0, 3, n, s, 8, 120, 3, n, s, 8));
    CHECK(!mf_sets_meet(0, 3, n, s, 8, 128 + 256 * 60000, 3, n, backwards, 8));
    CHECK(mf_sets_meet(0, 3, n, s, 8, 256 * 60000, 3, n, backwards, 8));
}

int main(void)
{
    test_small();
    test_between();
    test_long_searches();
    return check_done("test_overlap");
}
