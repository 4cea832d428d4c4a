/* What solvers "few" and "sliding" ask of solver "pool". */
#ifndef MF_CPU_POOL_H
#define MF_CPU_POOL_H

#include "cpu.h"

/* Whether an operand's last elements, a power of two, touch, and so do their columns', which are so many that solver
 * outer's start at each position costs little: max of 2 x 2 of f32[4096,8192] .55 to .63 of the limit on a Zen 4,
 * solver pool .45 to .52, few .30 to .37. Its extremes of integers are faster from half as many on. */
int mf_is_long_pool(const struct problem *problem, int input);

/* Whether pixels have so many channels, and windows so few elements, that solver few is faster than sliding where
 * windows are some pixels apart: max of 3 x 3 by 2 of bf16[3,65,65,256] 0.61 ms for 0.81 on a Xeon of 2023. */
int mf_has_many_channels(enum dtype type, int64_t channels, int64_t elements);

#endif
