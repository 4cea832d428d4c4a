/* Columns in memory to rows, and pixels to planes: the patches of solver "turned", and of operands that the block
 * evaluator reads the other way round. */
#include "turn.h"

#include <string.h>

#include "shuffle.h"

#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)

/* Units of 16 bytes, which every instruction set has. */
#define LIST(...) __VA_ARGS__
#define TURN_UNROLLED _Pragma("GCC unroll 16")
#define BITS 64
#define N 2
#define LOW LIST(0, 2)
#define HIGH LIST(1, 3)
#include "turn_item.inc"
#define BITS 32
#define N 4
#define LOW LIST(0, 4, 1, 5)
#define HIGH LIST(2, 6, 3, 7)
#include "turn_item.inc"
#define BITS 16
#define N 8
#define LOW LIST(0, 8, 1, 9, 2, 10, 3, 11)
#define HIGH LIST(4, 12, 5, 13, 6, 14, 7, 15)
#include "turn_item.inc"
#define BITS 8
#define N 16
#define LOW LIST(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define HIGH LIST(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#include "turn_item.inc"

static void turn_elements(char *to, int64_t pitch, const struct patch *p, int item)
{
    for (int64_t r = 0; r < p->rows; r++)
        for (int64_t c = 0; c < p->columns; c++)
            memcpy(to + r * pitch + c * item, p->from + c * p->stride + r * item, (size_t)item);
}

/* By the largest units there are; what they leave over at the end of the rows and of the columns by smaller ones. */
static void turn_columns(const struct kernels *k, char *to, int64_t pitch, const struct patch *p, int item, int smaller)
{
    enum { SIZES = 2 };
    static turn_fn *const every[4] = {turn_8, turn_16, turn_32, turn_64};
    const int size = item == 1 ? 0 : item == 2 ? 1 : item == 4 ? 2 : 3;
    turn_fn *const turn = smaller ? every[size] : k->turn[size];
    if (smaller == SIZES) {
        turn_elements(to, pitch, p, item);
        return;
    }
    const int n = turn ? turn(to, pitch, p) : 0;
    const int64_t rows = n ? p->rows / n * n : 0, columns = n ? p->columns / n * n : 0;
    const struct patch below = {p->from + rows * item, p->stride, p->rows - rows, p->columns};
    const struct patch right = {p->from + columns * p->stride, p->stride, rows, p->columns - columns};
    if (below.rows)
        turn_columns(k, to + rows * pitch, pitch, &below, item, smaller + 1);
    if (right.rows && right.columns)
        turn_columns(k, to + columns * item, pitch, &right, item, smaller + 1);
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
    turn_columns(k, to, pitch, &p, item, 0);
}
