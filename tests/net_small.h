/* Weights for any network, and small networks with theirs. */
#ifndef MF_TESTS_NET_SMALL_H
#define MF_TESTS_NET_SMALL_H

#include <modefold_net.h>

/* A file of the sources, tests/nets/NAME for instance; from malloc. */
char *net_text(const char *path, size_t *bytes);
/* A .weights file for this .cfg: random numbers of moderate size, the same for the same seed; from malloc, null where
 * the .cfg is wrong. */
void *net_random_weights(const char *cfg, size_t cfg_bytes, unsigned seed, size_t *bytes);
/* tests/nets/small.cfg with such weights. */
mf_net *net_small(uint32_t flags);

#endif
