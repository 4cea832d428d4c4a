/* The loops on several threads, timed. */
#include "limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "limit_loops.h"
#include "progress.h" /* seconds_now */

enum { MOST_THREADS = 256, STEP = 512 };

/* Seconds; shorter runs are repeated, so that waking the threads does not count. */
static const double LONG_ENOUGH = 3e-3;

/* One pass over memory; every thread takes its part of each. */
struct work {
    const char *read_from, *copy_from;
    char *copy_to, *fill_to;
    size_t read_bytes, copy_bytes, fill_bytes;
    int ahead, streaming, repeat;
};

struct limit {
    const struct limit_loops *loops;
    int threads, closing;
    pthread_t helper[MOST_THREADS];
    pthread_barrier_t begin, end;
    struct work work; /* of the run under way */
    struct work own;  /* of limit_run */
    char *from, *to;
    size_t from_size, to_size;
    uint64_t sum; /* so that reading is not optimised away */
};

struct helper {
    struct limit *limit;
    int number;
};

static size_t part_start(size_t bytes, int number, int threads)
{
    return bytes / STEP * (size_t)number / (size_t)threads * STEP;
}

/* Thread number `number`'s part of the work, once. */
static void do_part_once(struct limit *limit, int number)
{
    const struct work *w = &limit->work;
    int n = limit->threads;
    size_t r = part_start(w->read_bytes, number, n), r_end = part_start(w->read_bytes, number + 1, n);
    size_t c = part_start(w->copy_bytes, number, n), c_end = part_start(w->copy_bytes, number + 1, n);
    size_t f = part_start(w->fill_bytes, number, n), f_end = part_start(w->fill_bytes, number + 1, n);
    uint64_t sum = 0;
    if (r_end > r)
        sum = w->ahead ? limit->loops->read_ahead(w->read_from + r, r_end - r)
                       : limit->loops->read(w->read_from + r, r_end - r);
    if (c_end > c && w->streaming)
        limit->loops->copy(w->copy_to + c, w->copy_from + c, c_end - c);
    else if (c_end > c)
        memcpy(w->copy_to + c, w->copy_from + c, c_end - c);
    if (f_end > f && w->streaming)
        limit->loops->fill(w->fill_to + f, f_end - f);
    else if (f_end > f)
        memset(w->fill_to + f, 1, f_end - f);
    __atomic_fetch_add(&limit->sum, sum, __ATOMIC_RELAXED);
}

static void do_part(struct limit *limit, int number)
{
    for (int i = 0; i < limit->work.repeat; i++)
        do_part_once(limit, number);
}

static void *help(void *context)
{
    struct helper helper = *(struct helper *)context;
    free(context);
    for (;;) {
        pthread_barrier_wait(&helper.limit->begin);
        if (helper.limit->closing)
            return NULL;
        do_part(helper.limit, helper.number);
        pthread_barrier_wait(&helper.limit->end);
    }
}

static double timed(struct limit *limit, const struct work *work)
{
    limit->work = *work;
    double start = seconds_now();
    if (limit->threads > 1)
        pthread_barrier_wait(&limit->begin);
    do_part(limit, 0);
    if (limit->threads > 1)
        pthread_barrier_wait(&limit->end);
    return (seconds_now() - start) / work->repeat;
}

/* Touched and in huge pages where the system gives them, like the inputs. */
static char *buffer(size_t size)
{
    void *memory;
    if (posix_memalign(&memory, (size_t)2 << 20, size + STEP))
        return NULL;
    madvise(memory, size + STEP, MADV_HUGEPAGE);
    memset(memory, 1, size + STEP);
    return memory;
}

static int start_threads(struct limit *limit)
{
    pthread_barrier_init(&limit->begin, NULL, (unsigned)limit->threads);
    pthread_barrier_init(&limit->end, NULL, (unsigned)limit->threads);
    for (int i = 1; i < limit->threads; i++) {
        struct helper *helper = malloc(sizeof *helper);
        if (!helper)
            return 1;
        *helper = (struct helper){limit, i};
        if (pthread_create(&limit->helper[i], NULL, help, helper)) {
            free(helper);
            return 1;
        }
    }
    return 0;
}

struct limit *limit_open(int threads, size_t read_bytes, size_t write_bytes)
{
    struct limit *limit = calloc(1, sizeof *limit);
    if (!limit)
        return NULL;
    limit->loops = limit_loops_best();
    limit->threads = threads < 1 ? 1 : threads > MOST_THREADS ? MOST_THREADS : threads;
    limit->from_size = (read_bytes + STEP - 1) / STEP * STEP;
    limit->to_size = (write_bytes + STEP - 1) / STEP * STEP;
    limit->from = buffer(limit->from_size);
    limit->to = buffer(limit->to_size);
    if (!limit->from || !limit->to || start_threads(limit)) {
        free(limit->from); /* limit itself stays: threads that did start wait in it for ever */
        free(limit->to);
        return NULL;
    }
    size_t r = limit->from_size, w = limit->to_size, copied = r < w ? r : w;
    if (100 * w < r) /* what little is written does not count */
        w = copied = 0;
    else if (100 * r < w)
        r = copied = 0;
    limit->own = (struct work){
        limit->from + copied, limit->from, limit->to, limit->to + copied, r - copied, copied, w - copied, 0, 1, 1};
    return limit;
}

void limit_close(struct limit *limit)
{
    if (!limit)
        return;
    limit->closing = 1;
    if (limit->threads > 1)
        pthread_barrier_wait(&limit->begin);
    for (int i = 1; i < limit->threads; i++)
        pthread_join(limit->helper[i], NULL);
    pthread_barrier_destroy(&limit->begin);
    pthread_barrier_destroy(&limit->end);
    free(limit->from);
    free(limit->to);
    free(limit);
}

void limit_choose(struct limit *limit)
{
    double best = 1e300, once = timed(limit, &limit->own);
    limit->own.repeat = once > LONG_ENOUGH ? 1 : (int)(LONG_ENOUGH / (once + 1e-9)) + 1;
    struct work chosen = limit->own;
    for (int variant = 0; variant < 4; variant++) {
        struct work work = limit->own;
        work.ahead = variant & 1;
        work.streaming = variant >> 1;
        for (int again = 0; again < 3; again++) {
            double seconds = timed(limit, &work);
            if (seconds < best) {
                best = seconds;
                chosen = work;
            }
        }
    }
    limit->own = chosen;
}

double limit_run(struct limit *limit)
{
    return timed(limit, &limit->own);
}

const char *limit_what(const struct limit *limit)
{
    const struct work *w = &limit->own;
    return !w->copy_bytes                       ? (w->read_bytes ? "read" : "fill")
           : w->read_bytes > w->copy_bytes / 10 ? "read and copy"
           : w->fill_bytes > w->copy_bytes / 10 ? "copy and fill"
                                                : "copy";
}
