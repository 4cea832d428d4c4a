/* What the machine can do at best with so many bytes: plain loops over memory, as wide as the processor has vectors. */
#ifndef MF_CLI_LIMIT_H
#define MF_CLI_LIMIT_H

#include <stddef.h>

struct limit;

/* Threads that wait for work, and two buffers of that many bytes each; null when there is not so much memory. */
struct limit *limit_open(int threads, size_t read_bytes, size_t write_bytes);
void limit_close(struct limit *limit);

/* Finds the fastest of the variants (with and without prefetching; cached and streaming stores) for reading read_bytes
 * and writing write_bytes; later runs use it. */
void limit_choose(struct limit *limit);
/* Reads and writes once: as much as possible by copying, the rest by reading alone or filling alone. Seconds. */
double limit_run(struct limit *limit);
/* "read", "copy", "read and copy" ... */
const char *limit_what(const struct limit *limit);

#endif
