/* Random problems, the same on every machine from a seed. */
#ifndef MF_CLI_RANDOM_H
#define MF_CLI_RANDOM_H

#include "problem.h"

struct dice {
    uint64_t seed, thrown;
};

static inline uint64_t dice_bits(struct dice *d)
{
    return values_bits(d->seed, d->thrown++);
}

/* 0 ... n-1. */
static inline int dice_below(struct dice *d, int n)
{
    return (int)((dice_bits(d) >> 33) % (uint64_t)n);
}

/* True this many times out of 100. */
static inline int dice_percent(struct dice *d, int percent)
{
    return dice_below(d, 100) < percent;
}

/* Problem number `number` of this seed. Most have up to 5,000 terms (products of all mode sizes), a tenth up to
 * 200,000, few up to 2^21. A few are refused by the library, as they should be (means of nothing, say). */
void random_problem(uint64_t seed, uint64_t number, struct problem_line *line);

/* ---- random_expr.c ---- */

/* What is known of an expression's type while it is made up. */
enum value_kind { KIND_TRUTH, KIND_SIGNED, KIND_UNSIGNED, KIND_U64, KIND_FLOAT };

struct expr_maker {
    struct dice *dice;
    int operand_count;
    enum value_kind operand[MF_MAX_INPUTS];
    int in_finish[MF_MAX_INPUTS];   /* has kept modes only and a checked window nowhere: may stand outside a reducer */
    int finish_only[MF_MAX_INPUTS]; /* is kept for the finish part */
    int reducers;                   /* of the result that is being made */
    int plain;                      /* reducers straight on operands */
    int own;                        /* bit k: expr_own(k) was used */
    char *text;
    size_t size, length;
};

enum value_kind expr_kind_of_type(DLDataType dtype);
/* Texts of the operations that are not built in, EXPR_OWNS of them. */
enum { EXPR_OWNS = PROBLEM_DEFINES };
const char *expr_own(int number);
/* Appends one result: a map over the operands, or reducers over them with a finish. */
enum value_kind expr_make_map(struct expr_maker *m, int depth);
enum value_kind expr_make_reduction(struct expr_maker *m);

#endif
