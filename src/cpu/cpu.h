/* The CPU device: which instruction set, how many threads, and the work they share. */
#ifndef MF_CPU_H
#define MF_CPU_H

#include "../plan.h"
#include "kernels.h"

/* Whether outputs of so many bytes a position are stored past the caches, where nobody would find them afterwards. */
int mf_stores_past_cache(const struct problem *problem, int64_t bytes);

/* Whether the operands are more than a cache is likely to have. */
int mf_reads_memory(const struct problem *problem);

/* The enum pair of an operation; -1 when it has none. */
int mf_pair_of(enum op op);

/* Cores this process may use, or MODEFOLD_THREADS. */
int mf_cpu_thread_count(void);
/* Fills device->kernels and device->threads. */
mf_status mf_cpu_open(struct mf_device *device);
void mf_cpu_close(struct mf_device *device);
const char *mf_cpu_isa_name(const struct mf_device *device);

/* Runs task(context, i, worker) for i = 0 ... count-1 on up to `threads` threads, worker 0 ... threads-1 (the caller
 * is one of them). Tasks of one call may run in any order and at once. Two calls at once from different threads are
 * fine: the second one runs on its caller alone. */
typedef void task_fn(void *context, int64_t i, int worker);
void mf_parallel(struct threads *threads, int count_threads, int64_t count, task_fn *task, void *context);

/* A pool for count threads, the caller among them; null when memory is out. */
struct threads *mf_threads_create(int count);
void mf_threads_destroy(struct threads *threads);

#endif
