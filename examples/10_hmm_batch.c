/* The logarithms of the probabilities of many sequences under one hidden Markov model, forward and backward:
 *
 *     alpha'[b, j] = logsumexp over i of (alpha[b, i] + move[i, j]) + emit[b, j]
 *
 * A batch of forward steps is a matrix product in log space. Solver "log-certified" does it with one exp an element
 * where that is safe, and computes again what is not (docs/numerics.md, section 10). Both directions must give the
 * same, and what a plain loop in double gives. One step in a shell:
 *     modefold run --solver log-certified 'bi,ij,bj->bj' 'logsumexp(a+b)+c' alpha.npy move.npy emit.npy -o next.npy */
#include <modefold.h>

#include <math.h>
#include <stdio.h>

enum { SEQUENCES = 48, STATES = 32, STEPS = 100 };

static float move[STATES][STATES], emit[STEPS][SEQUENCES][STATES];
static double exact[STATES];

static double uniform(void)
{
    static unsigned state = 7;
    state = state * 1664525u + 1013904223u;
    return (state / 65536 + 0.5) / 65536;
}

/* Few moves are probable; every fourth is impossible. */
static void make_model(void)
{
    for (int i = 0; i < STATES; i++) {
        double row[STATES], sum = 0;
        for (int j = 0; j < STATES; j++)
            sum += row[j] = (i + j) % 4 == 3 ? 0 : exp(-12 * uniform());
        for (int j = 0; j < STATES; j++)
            move[i][j] = (float)log(row[j] / sum);
    }
    for (int t = 0; t < STEPS; t++)
        for (int b = 0; b < SEQUENCES; b++)
            for (int j = 0; j < STATES; j++)
                emit[t][b][j] = (float)(-15 * uniform());
}

/* total[b] = log of the probability of sequence b. Backward: the same with the moves turned round, from the end. */
static mf_status run(mf_device *cpu, int backward, float total[SEQUENCES])
{
    static float alpha[SEQUENCES][STATES], next[SEQUENCES][STATES];
    const int64_t batch[2] = {SEQUENCES, STATES}, moves[2] = {STATES, STATES};
    const mf_options options = {"log-certified", 0, 0};
    const char *modes = backward ? "bi,ji,bj->bj" : "bi,ij,bj->bj";
    DLTensor in[3] = {mf_tensor(alpha, MF_F32, 2, batch), mf_tensor(move, MF_F32, 2, moves),
                      mf_tensor(emit, MF_F32, 2, batch)};
    DLTensor out = mf_tensor(next, MF_F32, 2, batch), sums = mf_tensor(total, MF_F32, 1, batch);
    mf_plan *plan;
    mf_status status = mf_plan_create(cpu, modes, "logsumexp(a+b)+c", in, &out, &options, &plan);
    memcpy(alpha, emit[backward ? STEPS - 1 : 0], sizeof alpha);
    for (int t = 1; t < STEPS && status == MF_OK; t++) {
        const void *from[3] = {alpha, move, emit[backward ? STEPS - 1 - t : t]};
        void *to[1] = {next};
        status = mf_plan_execute(plan, from, to, NULL);
        memcpy(alpha, next, sizeof alpha);
    }
    mf_plan_destroy(plan);
    return status == MF_OK ? mf_fold(cpu, "bi->b", "logsumexp(a)", in, &sums) : status;
}

static double plainly(int b)
{
    double next[STATES], sum = 0, most = -INFINITY;
    for (int j = 0; j < STATES; j++)
        exact[j] = emit[0][b][j];
    for (int t = 1; t < STEPS; t++) {
        for (int j = 0; j < STATES; j++) {
            double s = 0, top = -INFINITY;
            for (int i = 0; i < STATES; i++)
                top = fmax(top, exact[i] + move[i][j]);
            for (int i = 0; i < STATES; i++)
                s += exp(exact[i] + move[i][j] - top);
            next[j] = top + log(s) + emit[t][b][j];
        }
        memcpy(exact, next, sizeof exact);
    }
    for (int j = 0; j < STATES; j++)
        most = fmax(most, exact[j]);
    for (int j = 0; j < STATES; j++)
        sum += exp(exact[j] - most);
    return most + log(sum);
}

int main(void)
{
    float forward[SEQUENCES], backward[SEQUENCES];
    mf_device *cpu;
    make_model();
    if (mf_device_open("cpu", &cpu) != MF_OK || run(cpu, 0, forward) != MF_OK || run(cpu, 1, backward) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    mf_device_close(cpu);
    double worst = 0;
    for (int b = 0; b < SEQUENCES; b++) {
        double expected = plainly(b);
        worst = fmax(worst, fmax(fabs(forward[b] - expected), fabs(backward[b] - expected)) / fabs(expected));
    }
    printf("%d sequences of %d steps: log-probabilities such as %.3f, forward and backward\n", SEQUENCES, STEPS,
           (double)forward[0]);
    printf("at most %.2g off a loop in double, relatively\n", worst);
    return !(worst < 1e-5);
}
