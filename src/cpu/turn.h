/* Patches of a tensor that lies the other way round. */
#ifndef MF_CPU_TURN_H
#define MF_CPU_TURN_H

#include "weave.h"

/* Row r, column c of the patch to to + r * pitch + c * item. Of columns of at most WEAVE_PARTS elements that follow
 * each other, as many rows are written. */
void mf_turn(const struct kernels *k, char *to, int64_t pitch, struct patch p, int item);

#endif
