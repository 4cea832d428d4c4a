/* The most probable path through a hidden Markov model (Viterbi 1967), one fold a step:
 *
 *     score'[j] = max over i of (score[i] + move[i][j]) + emit[j],    back[j] = the i that gave the maximum
 *
 * Probabilities are logarithms, so that products are sums. Checked against all paths. */
#include <modefold.h>

#include <math.h>
#include <stdio.h>

enum { STATES = 2, STEPS = 8, PATHS = 256 };

static const char *const state_names[STATES] = {"healthy", "fever"};
static const char *const seen_names[3] = {"normal", "cold", "dizzy"};
static const double start[STATES] = {0.6, 0.4}, move[STATES][STATES] = {{0.7, 0.3}, {0.4, 0.6}};
static const double emit[3][STATES] = {{0.5, 0.1}, {0.4, 0.3}, {0.1, 0.6}};
static const int seen[STEPS] = {0, 1, 2, 2, 0, 0, 1, 2};

/* scores of the last step, and where each state of each step came from. */
static mf_status viterbi(mf_device *cpu, double score[STATES], int64_t back[STEPS][STATES])
{
    double moves[STATES][STATES], emits[STATES], next[STATES];
    int64_t shape[2] = {STATES, STATES};
    for (int i = 0; i < STATES; i++) {
        score[i] = log(start[i]) + log(emit[seen[0]][i]);
        for (int j = 0; j < STATES; j++)
            moves[i][j] = log(move[i][j]);
    }
    DLTensor in[3] = {mf_tensor(score, MF_F64, 1, shape), mf_tensor(moves, MF_F64, 2, shape),
                      mf_tensor(emits, MF_F64, 1, shape)};
    for (int t = 1; t < STEPS; t++) {
        DLTensor out[2] = {mf_tensor(next, MF_F64, 1, shape), mf_tensor(back[t], MF_I64, 1, shape)};
        for (int j = 0; j < STATES; j++)
            emits[j] = log(emit[seen[t]][j]);
        mf_status status = mf_fold(cpu, "i,ij,j->j", "max(a+b) + c; argmax(a+b)", in, out);
        if (status != MF_OK)
            return status;
        memcpy(score, next, sizeof next);
    }
    return MF_OK;
}

/* The logarithm of one path's probability; bit t of path is the state at step t. */
static double path_score(int path)
{
    double sum = log(start[path & 1]) + log(emit[seen[0]][path & 1]);
    for (int t = 1; t < STEPS; t++)
        sum += log(move[path >> (t - 1) & 1][path >> t & 1]) + log(emit[seen[t]][path >> t & 1]);
    return sum;
}

int main(void)
{
    double score[STATES];
    int64_t back[STEPS][STATES];
    mf_device *cpu;
    if (mf_device_open("cpu", &cpu) != MF_OK || viterbi(cpu, score, back) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    mf_device_close(cpu);

    int path = 0;
    int64_t state = score[1] > score[0];
    double best = score[state];
    for (int t = STEPS - 1; t >= 0; t--) {
        path |= (int)state << t;
        state = t ? back[t][state] : state;
    }
    for (int t = 0; t < STEPS; t++)
        printf("seen %-6s  %s\n", seen_names[seen[t]], state_names[path >> t & 1]);
    printf("probability of this path %.3g\n", exp(best));

    int good = fabs(path_score(path) - best) < 1e-12;
    for (int other = 0; other < PATHS; other++)
        good = good && path_score(other) <= best + 1e-12;
    return !good;
}
