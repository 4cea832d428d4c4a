/* A small pool of threads that sleep until there is work.
 *
 * To wake a thread can take longer than the fold itself. So the caller works as soon as it has called for help, and
 * waits only for those who have come by then; and a thread that has done its share looks out for the next call for some
 * microseconds before it sleeps.
 *
 * Not OpenMP: the pool belongs to a device handle, so that a program sees no threads it did not open; it is plain
 * pthreads, which ThreadSanitizer checks; and a second caller at the same time simply works alone instead of
 * waiting. */
#include "cpu.h"

#include <stdlib.h>
#include <unistd.h>

enum { LOOKS = 500 }; /* of one pause instruction each */

struct worker {
    struct threads *pool;
    pthread_t thread;
    int number; /* 1 ...; the caller is worker 0 */
};

/* The tasks of one worker that nobody has taken, on a cache line of its own. */
struct share {
    int64_t next, end; /* next is atomic */
    char rest_of_line[48];
};

struct threads {
    pthread_mutex_t lock, in_use;
    pthread_cond_t work, done;
    int count, started; /* helpers besides the caller */
    struct worker *workers;
    struct share *shares;
    int looks; /* how many times a thread looks before it sleeps */
    /* the current call, changed under lock; round and running are atomic */
    uint64_t round;
    int wanted, running, closing;
    int sharers;
    task_fn *task;
    void *context;
};

/* The worker's own share first, which is the same from call to call and may be in its core's cache; then others'. */
static void run_tasks(struct threads *pool, task_fn *task, void *context, int sharers, int number)
{
    for (int k = 0; k < sharers; k++) {
        struct share *share = &pool->shares[(number + k) % sharers];
        for (;;) {
            int64_t i = __atomic_fetch_add(&share->next, 1, __ATOMIC_RELAXED);
            if (i >= share->end)
                break;
            task(context, i, number);
        }
    }
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Looks out for a round after `seen`, some microseconds long. */
static void look_for_round(const struct threads *pool, uint64_t seen)
{
    for (int i = 0; i < pool->looks && __atomic_load_n(&pool->round, __ATOMIC_RELAXED) == seen; i++)
        relax();
}

static void *worker_main(void *argument)
{
    struct worker *me = argument;
    struct threads *pool = me->pool;
    uint64_t seen = 0;
    for (;;) {
        look_for_round(pool, seen);
        pthread_mutex_lock(&pool->lock);
        while (!pool->closing && (pool->round == seen || me->number >= pool->wanted)) {
            seen = pool->round;
            pthread_cond_wait(&pool->work, &pool->lock);
        }
        if (pool->closing)
            break;
        seen = pool->round;
        __atomic_add_fetch(&pool->running, 1, __ATOMIC_RELAXED);
        task_fn *task = pool->task;
        void *context = pool->context;
        int sharers = pool->sharers;
        pthread_mutex_unlock(&pool->lock);
        run_tasks(pool, task, context, sharers, me->number);
        pthread_mutex_lock(&pool->lock);
        if (__atomic_sub_fetch(&pool->running, 1, __ATOMIC_RELAXED) == 0)
            pthread_cond_signal(&pool->done);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void mf_parallel(struct threads *pool, int count_threads, int64_t count, task_fn *task, void *context)
{
    if (count_threads > pool->started + 1)
        count_threads = pool->started + 1;
    if (count_threads > count)
        count_threads = (int)count;
    if (count_threads < 2 || pthread_mutex_trylock(&pool->in_use)) {
        for (int64_t i = 0; i < count; i++)
            task(context, i, 0);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    pool->task = task;
    pool->context = context;
    pool->wanted = pool->sharers = count_threads;
    for (int64_t w = 0, first = 0; w < count_threads; w++) {
        pool->shares[w].next = first;
        first += count / count_threads + (w < count % count_threads);
        pool->shares[w].end = first;
    }
    __atomic_add_fetch(&pool->round, 1, __ATOMIC_RELAXED);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    run_tasks(pool, task, context, count_threads, 0);
    pthread_mutex_lock(&pool->lock);
    pool->wanted = 0; /* who has not come yet need not come */
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->looks && __atomic_load_n(&pool->running, __ATOMIC_RELAXED); i++)
        relax();
    pthread_mutex_lock(&pool->lock);
    while (pool->running)
        pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->in_use);
}

void mf_threads_destroy(struct threads *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->closing = 1;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->workers[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->done);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->in_use);
    mf_free(pool->workers);
    mf_free(pool->shares);
    mf_free(pool);
}

struct threads *mf_threads_create(int count)
{
    struct threads *pool = mf_calloc(sizeof *pool);
    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->in_use, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->done, NULL);
    pool->count = count - 1;
    pool->looks = sysconf(_SC_NPROCESSORS_ONLN) >= count ? LOOKS : 0;
    pool->workers = mf_calloc(sizeof *pool->workers * (size_t)count);
    pool->shares = mf_alloc_aligned(sizeof *pool->shares * (size_t)count);
    if (!pool->workers || !pool->shares) {
        mf_threads_destroy(pool);
        return NULL;
    }
    /* A thread that cannot be had is not an error: the others do its work. */
    for (int i = 0; i < pool->count; i++) {
        pool->workers[i].pool = pool;
        pool->workers[i].number = i + 1;
        if (pthread_create(&pool->workers[i].thread, NULL, worker_main, &pool->workers[i]))
            break;
        pool->started++;
    }
    return pool;
}
