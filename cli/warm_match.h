/* The calls of mf_match that most programs make, whose kernels modefold warm compiles. */
#ifndef MF_CLI_WARM_MATCH_H
#define MF_CLI_WARM_MATCH_H

#include "../match/match.h"

/* "match, 512 bits, k 2, tensor"; null past the end. */
const char *warm_match_name(int number);
/* Compiles its kernels for the device; the most registers and stack of one, and the spills of all. */
mf_status warm_match(mf_device *device, int number, struct gpu_usage *usage);

#endif
