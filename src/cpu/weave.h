/* Pixels and planes: elements of a few tensors that alternate in memory, and each tensor's by themselves. */
#ifndef MF_CPU_WEAVE_H
#define MF_CPU_WEAVE_H

#include "kernels.h"

/* Takes `count` pixels of `parts` elements, which follow each other, apart: element i of all of them to to + i * apart
 * bytes, for all parts. Only the first `used` elements of the last pixel may be read. Returns how many pixels are done,
 * 0 where there is no kernel for them. item: bytes. */
int64_t mf_weave_apart(const struct kernels *k, char *to, int64_t apart, const char *from, int64_t count, int parts,
                       int used, int item);
/* The reverse, from planes `apart` bytes apart; all of a pixel's elements. */
int64_t mf_weave_together(const struct kernels *k, char *to, const char *from, int64_t apart, int64_t count, int parts,
                          int item);

#endif
