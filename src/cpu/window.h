/* Windows that may leave their tensors: which positions take part, and reading only those. */
#ifndef MF_CPU_WINDOW_H
#define MF_CPU_WINDOW_H

#include "../layout.h"

/* valid[0 ... n-1] = 1 where flat position f ... f+n-1 of all the nest's loops has every window inside its tensor,
 * else 0. */
void mf_window_valid(const struct nest *nest, int64_t f, int64_t n, uint8_t *valid);
/* to[0 ... n-1] = operand `input` at those positions, 0 elsewhere; item is the element's size. */
void mf_window_gather(const struct nest *nest, int input, int item, const char *base, int64_t f, int64_t n, char *to);

#endif
