/* Plan once, execute often: two threads run one plan on many records. Executing changes nothing in the plan. */
#include <modefold.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { RECORDS = 64, CHANNELS = 4, SAMPLES = 5000 };

static float record[RECORDS][CHANNELS][SAMPLES];
static float level[RECORDS][CHANNELS], peak[RECORDS][CHANNELS];

struct half {
    const mf_plan *plan;
    int first, last;
    mf_status status;
};

static void *run(void *argument)
{
    struct half *half = argument;
    for (int r = half->first; r < half->last && half->status == MF_OK; r++) {
        const void *in[1] = {record[r]};
        void *out[2] = {level[r], peak[r]};
        half->status = mf_plan_execute(half->plan, in, out, NULL);
        if (half->status != MF_OK)
            fprintf(stderr, "%s\n", mf_error()); /* the sentence belongs to this thread */
    }
    return NULL;
}

/* The same record by the one-shot call must give the same bits. */
static int agrees(mf_device *cpu, const DLTensor *layout, int r)
{
    float again[2][CHANNELS] = {{0}};
    int64_t shape[1] = {CHANNELS};
    DLTensor in = *layout, out[2] = {mf_tensor(again[0], MF_F32, 1, shape), mf_tensor(again[1], MF_F32, 1, shape)};
    in.data = record[r];
    return mf_fold(cpu, "ct->c", "sqrt(mean(a*a)); max(abs(a))", &in, out) == MF_OK &&
           !memcmp(again[0], level[r], sizeof level[r]) && !memcmp(again[1], peak[r], sizeof peak[r]);
}

int main(void)
{
    int64_t record_shape[2] = {CHANNELS, SAMPLES}, shape[1] = {CHANNELS};
    DLTensor in = mf_tensor(record[0], MF_F32, 2, record_shape);
    DLTensor out[2] = {mf_tensor(level[0], MF_F32, 1, shape), mf_tensor(peak[0], MF_F32, 1, shape)};
    mf_device *cpu;
    mf_plan *plan;
    for (int r = 0; r < RECORDS; r++)
        for (int c = 0; c < CHANNELS; c++)
            for (int t = 0; t < SAMPLES; t++) /* a sawtooth of every record's and channel's own height */
                record[r][c][t] = (float)((r + 1) * (t * (c + 1) % 100 - 50)) / 50;
    if (mf_device_open("cpu", &cpu) != MF_OK ||
        mf_plan_create(cpu, "ct->c", "sqrt(mean(a*a)); max(abs(a))", &in, out, NULL, &plan) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    printf("%s\n", mf_plan_describe(plan));

    pthread_t thread;
    struct half halves[2] = {{plan, 0, RECORDS / 2, MF_OK}, {plan, RECORDS / 2, RECORDS, MF_OK}};
    if (pthread_create(&thread, NULL, run, &halves[0]))
        return 1;
    run(&halves[1]);
    pthread_join(thread, NULL);

    int good = halves[0].status == MF_OK && halves[1].status == MF_OK;
    for (int r = 0; r < RECORDS; r++)
        good = good && agrees(cpu, &in, r);
    printf("record 10, channel 0: level %.2f, peak %.2f\n", level[9][0], peak[9][0]);
    good = good && peak[9][0] == 10;
    mf_plan_destroy(plan);
    mf_device_close(cpu);
    return !good;
}
