/* Times of folds on a GPU. */
#ifndef MF_CLI_BENCH_DEVICE_H
#define MF_CLI_BENCH_DEVICE_H

#include "problem.h"

enum { DEVICE_RUNS = 1001 };

struct device_times {
    double fold, copy, ratio; /* medians of seconds, and of copy / fold; copy and ratio are 0 where not asked for */
    int runs;
    double fold_time[DEVICE_RUNS], copy_time[DEVICE_RUNS], ratios[DEVICE_RUNS];
};

/* Medians of batches of at least 20 ms, timed by the host: so many executions of the plan (or one-shot calls) in the
 * device's own stream, then waiting for it. With copy_bytes, in turns with the library's own map "a" over as many bytes
 * read and written together. Caches are not emptied in between. */
mf_status device_measure(const struct problem_line *line, const struct problem_there *there, const mf_plan *plan,
                         int one_shot, double seconds, double copy_bytes, struct device_times *times);

double median_of(double *values, int count);

#endif
