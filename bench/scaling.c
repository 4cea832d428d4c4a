/* What a second thread gives contractions on the CPU:
 *
 *   bench_scaling [ROUNDS [N]]
 *
 * In each round one execution on a device of one thread, one on a device of two, and, as the most that this machine
 * gives in that moment, two callers at once that each execute all of it on a one-thread device of its own, with
 * operands of its own. A neighbour that takes a core away for a while takes it from all three, so figures are medians
 * of the rounds' quotients: `scaling` is one thread's time over two threads', `machine` two times one thread's over
 * the callers', and the last column the median of their quotients. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <modefold.h>

#include "measure.h"

enum { MOST_ROUNDS = 1001 };

/* One plan with operands of its own. */
struct job {
    mf_device *device;
    mf_plan *plan;
    float *a, *b, *o;
};

/* The second of two callers, and how far they are. */
struct pair {
    const struct job *second;
    int rounds;
    pthread_barrier_t begin;
    atomic_int awake, done;
};

static const struct {
    const char *expression, *solver;
} rows[] = {
    {"max(a+b)", NULL}, {"min(a+b)", NULL}, {"logsumexp(a+b)", NULL}, {"logsumexp(a+b)", "log-exact"},
    {"sum(a*b)", NULL},
};

static float *numbers(int64_t count)
{
    float *x = malloc((size_t)count * sizeof *x);
    uint32_t state = 1;
    for (int64_t i = 0; x && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        x[i] = (float)(state >> 8) * 0x1p-23f - 1;
    }
    return x;
}

static void job_close(struct job *job)
{
    mf_plan_destroy(job->plan);
    mf_device_close(job->device);
    free(job->a);
    free(job->b);
    free(job->o);
}

static int job_open(struct job *job, const char *device, int row, int64_t n)
{
    int64_t shape[] = {n, n};
    *job = (struct job){.a = numbers(n * n), .b = numbers(n * n), .o = numbers(n * n)};
    if (!job->a || !job->b || !job->o || mf_device_open(device, &job->device) != MF_OK)
        return 0;
    DLTensor in[] = {mf_tensor(job->a, MF_F32, 2, shape), mf_tensor(job->b, MF_F32, 2, shape)};
    DLTensor out = mf_tensor(job->o, MF_F32, 2, shape);
    mf_options options = {.solver = rows[row].solver};
    return mf_plan_create(job->device, "ik,kj->ij", rows[row].expression, in, &out, &options, &job->plan) == MF_OK;
}

static double execute(const struct job *job)
{
    const void *in[] = {job->a, job->b};
    void *out[] = {job->o};
    double begun = seconds();
    if (mf_plan_execute(job->plan, in, out, NULL) != MF_OK)
        printf("%s\n", mf_error());
    return seconds() - begun;
}

/* The second caller sleeps on the barrier between its turns; both are awake before their time begins. */
static void both_awake(struct pair *pair, int round)
{
    atomic_fetch_add(&pair->awake, 1);
    while (atomic_load(&pair->awake) < 2 * round)
        ;
}

static void *second_caller(void *of)
{
    struct pair *pair = of;
    for (int round = 1; round <= pair->rounds; round++) {
        pthread_barrier_wait(&pair->begin);
        both_awake(pair, round);
        execute(pair->second);
        atomic_store(&pair->done, round);
    }
    return NULL;
}

static double two_callers(struct pair *pair, const struct job *first, int round)
{
    pthread_barrier_wait(&pair->begin);
    both_awake(pair, round);
    double begun = seconds();
    execute(first);
    while (atomic_load(&pair->done) != round)
        ;
    return seconds() - begun;
}

static void measure(int row, int64_t n, const struct job *one, const struct job *two, const struct job *second,
                    int rounds)
{
    static double ones[MOST_ROUNDS], scaling[MOST_ROUNDS], machine[MOST_ROUNDS], ratio[MOST_ROUNDS];
    struct pair pair = {.second = second, .rounds = rounds};
    pthread_t thread;
    if (pthread_barrier_init(&pair.begin, NULL, 2))
        return;
    if (pthread_create(&thread, NULL, second_caller, &pair)) {
        pthread_barrier_destroy(&pair.begin);
        return;
    }
    for (int warm = 0; warm < 3; warm++)
        execute(one), execute(two);
    for (int i = 0; i < rounds; i++) {
        ones[i] = execute(one);
        double by_two = execute(two), by_callers = two_callers(&pair, one, i + 1);
        scaling[i] = ones[i] / by_two;
        machine[i] = 2 * ones[i] / by_callers;
        ratio[i] = scaling[i] / machine[i];
    }
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&pair.begin);
    double terms = (double)n * (double)n * (double)n * 1e-9;
    printf("| %s | %s | %lld | %.1f | %.2f | %.2f | %.2f |\n", rows[row].expression, mf_plan_solver(one->plan),
           (long long)n, terms / median(ones, rounds), median(scaling, rounds), median(machine, rounds),
           median(ratio, rounds));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const int64_t sizes[] = {512, 1024, 2048};
    int rounds = argc > 1 ? atoi(argv[1]) : 41;
    if (rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "bench_scaling: 1 to %d rounds\n", MOST_ROUNDS);
        return 1;
    }
    printf("| expression | solver | n | one thread, G terms/s | scaling | machine | of the machine's |\n"
           "|---|---|---:|---:|---:|---:|---:|\n");
    for (int row = 0; row < (int)(sizeof rows / sizeof *rows); row++)
        for (int size = 0; size < 3; size++) {
            if (argc > 2 && atoll(argv[2]) != sizes[size])
                continue;
            struct job one, two, second;
            int opened = job_open(&one, "cpu:1", row, sizes[size]) & job_open(&two, "cpu:2", row, sizes[size]) &
                         job_open(&second, "cpu:1", row, sizes[size]);
            if (opened)
                measure(row, sizes[size], &one, &two, &second, rounds);
            else
                printf("%s: %s\n", rows[row].expression, mf_error());
            job_close(&one);
            job_close(&two);
            job_close(&second);
        }
    return 0;
}
