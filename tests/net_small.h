/* Weights for any network, and small networks with theirs. */
#ifndef MF_TESTS_NET_SMALL_H
#define MF_TESTS_NET_SMALL_H

#include <modefold_net.h>

/* A file of the sources, tests/nets/NAME for instance; from malloc. */
char *net_text(const char *path, size_t *bytes);
/* A .weights file for this .cfg: random numbers of moderate size, the same for the same seed; from malloc, null where
 * the .cfg is wrong. */
void *net_random_weights(const char *cfg, size_t cfg_bytes, unsigned seed, size_t *bytes);
/* The same, and outputs of deep layers are as large as those of the first: weights of variance 2 / terms (He et al.,
 * Delving Deep into Rectifiers, 2015). */
void *net_lively_weights(const char *cfg, size_t cfg_bytes, unsigned seed, size_t *bytes);
/* tests/nets/small.cfg with random weights. */
mf_net *net_small(uint32_t flags);
/* YOLOv2-tiny (version 2: 20 classes) or YOLOv3-tiny (3: 80 classes) for pictures of side x side, a multiple of 32,
 * with lively weights. */
mf_net *net_tiny(int version, int side, uint32_t flags);

#endif
