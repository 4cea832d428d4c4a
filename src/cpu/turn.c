/* Columns in memory to rows, and pixels to planes: the patches of solver "turned", and of operands that the block
 * evaluator reads the other way round. */
#include "turn.h"

#include <string.h>

enum {
    UNIT = 16, /* bytes */
    LINE = 64,
    AHEAD = 16 /* columns */
};

static inline void turn_rest(char *to, int64_t pitch, const struct patch *p, int64_t row, int64_t column, int64_t count,
                             const int item)
{
    for (int64_t r = row; r < p->rows; r++)
        for (int64_t c = column; c < column + count; c++)
            memcpy(to + r * pitch + c * item, p->from + c * p->stride + r * item, (size_t)item);
}

/* turn_unit_BITS: N vectors of N elements, whose rows become columns, by zipping each one of the first half with the
 * one that is as far into the second, as often as N halves.
 * turn_BITS: row r, column c of the patch to to + r * pitch + c * item. */
#define DEFINE_TURN(BITS, N, LOW, HIGH)                                                                             \
    typedef uint##BITS##_t unit_##BITS __attribute__((vector_size(UNIT)));                                          \
    static inline __attribute__((always_inline)) void turn_unit_##BITS(unit_##BITS *x)                              \
    {                                                                                                               \
        UNROLLED for (int halves = 1; halves < N; halves *= 2)                                                      \
        {                                                                                                           \
            unit_##BITS y[N];                                                                                       \
            UNROLLED for (int i = 0; i < N / 2; i++)                                                                \
            {                                                                                                       \
                y[2 * i] = __builtin_shufflevector(x[i], x[i + N / 2], LOW);                                        \
                y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + N / 2], HIGH);                                   \
            }                                                                                                       \
            memcpy(x, y, sizeof y);                                                                                 \
        }                                                                                                           \
    }                                                                                                               \
                                                                                                                    \
    static void turn_##BITS(char *to, int64_t pitch, const struct patch *p)                                         \
    {                                                                                                               \
        enum { item = BITS / 8 };                                                                                   \
        const int64_t rows = p->rows / N * N, columns = p->columns / N * N;                                         \
        for (int64_t c = 0; c < columns; c += N) {                                                                  \
            for (int64_t ahead = c + AHEAD; ahead < c + AHEAD + N && ahead < p->columns; ahead++)                   \
                for (int64_t b = 0; b < rows * item; b += LINE)                                                     \
                    __builtin_prefetch(p->from + ahead * p->stride + b, 0, 2);                                      \
            for (int64_t r = 0; r < rows; r += N) {                                                                 \
                unit_##BITS x[N];                                                                                   \
                UNROLLED for (int j = 0; j < N; j++) memcpy(&x[j], p->from + (c + j) * p->stride + r * item, UNIT); \
                turn_unit_##BITS(x);                                                                                \
                UNROLLED for (int j = 0; j < N; j++) memcpy(to + (r + j) * pitch + c * item, &x[j], UNIT);          \
            }                                                                                                       \
        }                                                                                                           \
        turn_rest(to, pitch, p, rows, 0, columns, item);                                                            \
        turn_rest(to, pitch, p, 0, columns, p->columns - columns, item);                                            \
    }
#define LIST(...) __VA_ARGS__
#define UNROLLED _Pragma("GCC unroll 16")
DEFINE_TURN(64, 2, LIST(0, 2), LIST(1, 3))
DEFINE_TURN(32, 4, LIST(0, 4, 1, 5), LIST(2, 6, 3, 7))
DEFINE_TURN(16, 8, LIST(0, 8, 1, 9, 2, 10, 3, 11), LIST(4, 12, 5, 13, 6, 14, 7, 15))
DEFINE_TURN(8, 16, LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23),
            LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31))

static void turn_columns(char *to, int64_t pitch, const struct patch *p, int item)
{
    (item == 1 ? turn_8 : item == 2 ? turn_16 : item == 4 ? turn_32 : turn_64)(to, pitch, p);
}

void mf_turn(const struct kernels *k, char *to, int64_t pitch, struct patch p, int item)
{
    const int64_t parts = p.stride / item;
    if (parts >= p.rows && parts <= WEAVE_PARTS) {
        const int64_t done = mf_weave_apart(k, to, pitch, p.from, p.columns, (int)parts, (int)p.rows, item);
        to += done * item;
        p.from += done * p.stride;
        p.columns -= done;
    }
    turn_columns(to, pitch, &p, item);
}
