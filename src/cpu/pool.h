/* What solvers "few" and "sliding" ask of solver "pool". */
#ifndef MF_CPU_POOL_H
#define MF_CPU_POOL_H

#include "cpu.h"

/* Whether an operand's last elements, a power of two, touch, and so do their columns', which are so many that solver
 * outer's start at each position costs little: max of 2 x 2 of f32[4096,8192] .55 to .63 of the limit on a Zen 4,
 * solver pool .45 to .52, few .30 to .37. Its extremes of integers are faster from half as many on. */
int mf_is_long_pool(const struct problem *problem, int input);

#endif
