/* A random problem that is being made: its modes and sizes (random_modes.c), then the rest (random.c). */
#ifndef MODEFOLD_RANDOM_SKETCH_H
#define MODEFOLD_RANDOM_SKETCH_H

#include "random.h"

enum { SKETCH_MODES = 40 };

/* One dimension of an operand: offset + sum of coefficient * mode. */
struct term {
    int parts, mode[2], coefficient[2], offset;
};

/* Windows that touch, that overlap. */
enum pooling { NO_POOLING, POOLING_TOUCHES, POOLING_SLIDES };

struct sketch {
    struct dice dice;
    struct problem_line *line;
    int reduces;          /* the expression has reducers */
    int plain;            /* what most people do: one operand, every mode once, reducers straight on it */
    int moving;           /* of those: all modes are kept, and over the last one's neighbours is reduced */
    int between;          /* or only the mode before the last one is reduced */
    enum pooling pooling; /* or all are kept, and reduced over windows of the last ones; */
    int pixels;           /* of all but the last one: it is of channels */
    int pair;             /* no reducer, one operation on two operands of the output's type */
    int product;          /* a reducer over a product of two operands that each have a kept mode of their own */
    int modes;
    int64_t size[SKETCH_MODES];
    int kept[SKETCH_MODES], has_plain[SKETCH_MODES]; /* some operand has it as a plain letter */
    int output_rank, output_mode[MF_MAX_RANK];
    int operands, rank[MF_MAX_INPUTS], finish_only[MF_MAX_INPUTS], checked[MF_MAX_INPUTS];
    struct term term[MF_MAX_INPUTS][MF_MAX_RANK];
};

static inline int sketch_below(struct sketch *s, int n)
{
    return dice_below(&s->dice, n);
}

static inline int sketch_percent(struct sketch *s, int p)
{
    return dice_percent(&s->dice, p);
}

void sketch_shuffle(struct sketch *s, int *items, int count);
void sketch_modes(struct sketch *s);

#endif
