/* One network in four threads at once, each with a plan of its own, on one device. Runs under ThreadSanitizer too. */
#include <pthread.h>

#include <modefold_net.h>

#include "check.h"
#include "net_small.h"

enum { THREADS = 4, ROUNDS = 5, PICTURE = 26 * 30 * 3, OUTPUT = 14 * 16 * 14 };

struct work {
    const mf_net *net;
    mf_device *device;
    int number, good;
    float output[OUTPUT];
};

static void *body(void *context)
{
    struct work *work = context;
    const int64_t shape[3] = {26, 30, 3};
    float *picture = malloc(sizeof *picture * PICTURE);
    const DLTensor input = mf_tensor(picture, MF_F32, 3, shape);
    mf_net_plan *plan = NULL;
    for (int i = 0; picture && i < PICTURE; i++)
        picture[i] = (float)(i * 31 * (1 + work->number / 2) % 101) / 101; /* two and two have the same */
    work->good = picture && mf_net_plan_create(work->net, work->device, NULL, &plan) == MF_OK;
    for (int r = 0; r < ROUNDS && work->good; r++)
        work->good =
            mf_net_plan_run(plan, &input) == MF_OK && mf_net_plan_read(plan, 17, work->output, OUTPUT) == MF_OK;
    mf_net_plan_destroy(plan);
    free(picture);
    return NULL;
}

int main(void)
{
    static struct work work[THREADS];
    pthread_t thread[THREADS];
    int started[THREADS];
    mf_device *device;
    mf_net *net = net_small(0);
    if (!CHECK_MSG(net && mf_device_open("cpu:2", &device) == MF_OK, "%s", mf_error()))
        return check_done("net_threads");
    for (int t = 0; t < THREADS; t++) {
        work[t] = (struct work){.net = net, .device = device, .number = t};
        started[t] = CHECK(!pthread_create(&thread[t], NULL, body, &work[t]));
    }
    for (int t = 0; t < THREADS; t++)
        if (started[t])
            pthread_join(thread[t], NULL);
    for (int t = 0; t < THREADS; t++)
        CHECK_MSG(work[t].good && !memcmp(work[t].output, work[t / 2 * 2].output, sizeof work[t].output),
                  "thread %d has other outputs than its twin", t);
    CHECK(memcmp(work[0].output, work[2].output, sizeof work[0].output) != 0);
    mf_device_close(device);
    mf_net_destroy(net);
    return check_done("net_threads");
}
