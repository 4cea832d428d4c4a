/* A small pool of threads that sleep until there is work.
 *
 * Not OpenMP: the pool belongs to a device handle, so that a program sees no threads it did not open; it is plain
 * pthreads, which ThreadSanitizer checks; and a second caller at the same time simply works alone instead of
 * waiting. */
#include "cpu.h"

#include <stdlib.h>

struct worker {
    struct threads *pool;
    pthread_t thread;
    int number; /* 1 ...; the caller is worker 0 */
};

struct threads {
    pthread_mutex_t lock, in_use;
    pthread_cond_t work, done;
    int count, started; /* helpers besides the caller */
    struct worker *workers;
    /* the current call, under lock */
    uint64_t round;
    int wanted, running, closing;
    int64_t tasks;
    int64_t next; /* atomic */
    task_fn *task;
    void *context;
};

static void run_tasks(struct threads *pool, task_fn *task, void *context, int64_t tasks, int number)
{
    for (;;) {
        int64_t i = __atomic_fetch_add(&pool->next, 1, __ATOMIC_RELAXED);
        if (i >= tasks)
            return;
        task(context, i, number);
    }
}

static void *worker_main(void *argument)
{
    struct worker *me = argument;
    struct threads *pool = me->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->closing && pool->round == seen)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->closing)
            break;
        seen = pool->round;
        if (me->number >= pool->wanted)
            continue;
        task_fn *task = pool->task;
        void *context = pool->context;
        int64_t tasks = pool->tasks;
        pthread_mutex_unlock(&pool->lock);
        run_tasks(pool, task, context, tasks, me->number);
        pthread_mutex_lock(&pool->lock);
        if (--pool->running == 0)
            pthread_cond_signal(&pool->done);
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
    pool->tasks = count;
    pool->wanted = count_threads;
    pool->running = count_threads - 1;
    __atomic_store_n(&pool->next, 0, __ATOMIC_RELAXED);
    pool->round++;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    run_tasks(pool, task, context, count, 0);
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
    pool->workers = mf_calloc(sizeof *pool->workers * (size_t)count);
    if (!pool->workers) {
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
