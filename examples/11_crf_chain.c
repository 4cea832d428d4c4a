/* Chains: linear-chain CRFs, hidden Markov models. M[t, i, j] is the log-weight of a step from state i to j at time t:
 *
 *     log Z = log of the sum over all paths of exp(the path's M summed) = a product of matrices over (logsumexp, +)
 *
 * as a tree: neighbours are multiplied in pairs, all pairs of a level in one call, and mf_plan_gradient goes back down.
 * The gradient of log Z by M[t, i, j] is the probability of that step. The same code with max instead of logsumexp
 * finds the most probable path, because gradients of max go to the winners: 1 for every step on it. Checked against
 * the forward, backward and Viterbi recursions in plain loops. In double: log Z is near the number of steps.
 * 11_crf_chain [STEPS [SEQUENCES]] (one sequence of 100,000 steps, then 50 of 1,000). One level in a shell:
 *     modefold run 'stik,stkj->stij' 'logsumexp(a+b)' even.npy odd.npy -o next.npy */
#define _POSIX_C_SOURCE 199309L
#include <modefold.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STATES = 4, CELLS = STATES * STATES, LEVELS = 40 };

/* sequences x count matrices, and the gradients by them. */
struct level {
    int64_t count;
    double *matrix, *gradient;
};

/* All matrices of a level, or (step 2) every other one from `first` on: n of each sequence. */
static DLTensor view(double *matrices, int64_t first, const int64_t *shape, const int64_t *strides)
{
    DLTensor t = mf_tensor(matrices + first * CELLS, MF_F64, 4, shape);
    memcpy(&t.strides, &strides, sizeof strides);
    return t;
}

/* One level up, or back down with the gradients. */
static mf_status multiply(mf_device *cpu, const char *expression, const struct level *below, const struct level *above,
                          int64_t sequences, int back)
{
    const int64_t shape[4] = {sequences, below->count / 2, STATES, STATES};
    const int64_t wide[4] = {below->count * CELLS, 2 * CELLS, STATES, 1};
    const int64_t dense[4] = {above->count * CELLS, CELLS, STATES, 1};
    const DLTensor in[2] = {view(below->matrix, 0, shape, wide), view(below->matrix, 1, shape, wide)};
    const DLTensor to[2] = {view(below->gradient, 0, shape, wide), view(below->gradient, 1, shape, wide)};
    const DLTensor out = view(above->matrix, 0, shape, dense), given = view(above->gradient, 0, shape, dense);
    const void *from[4] = {in[0].data, in[1].data, out.data, given.data};
    void *targets[2] = {to[0].data, to[1].data};
    mf_plan *plan = NULL;
    for (int64_t s = 0; s < sequences && below->count % 2; s++) { /* the last one has no neighbour */
        const int64_t under = ((s + 1) * below->count - 1) * CELLS, over = ((s + 1) * above->count - 1) * CELLS;
        if (back)
            memcpy(below->gradient + under, above->gradient + over, sizeof(double[CELLS]));
        else
            memcpy(above->matrix + over, below->matrix + under, sizeof(double[CELLS]));
    }
    if (!back)
        return mf_fold(cpu, "stik,stkj->stij", expression, in, &out);
    mf_status status = mf_plan_gradient(cpu, "stik,stkj->stij", expression, in, &out, &given, to, NULL, &plan);
    if (status == MF_OK)
        status = mf_plan_execute(plan, from, targets, NULL);
    mf_plan_destroy(plan);
    return status;
}

/* total[s], and the gradient of all totals' sum by the matrices of level 0. */
static mf_status solve(mf_device *cpu, int best, struct level *level, int64_t sequences, double *total)
{
    const char *product = best ? "max(a+b)" : "logsumexp(a+b)", *all = best ? "max(a)" : "logsumexp(a)";
    const double one = 1;
    const int64_t shape[3] = {sequences, STATES, STATES}, zero[1] = {0};
    mf_status status = MF_OK;
    mf_plan *plan = NULL;
    int top = 0;
    for (; level[top].count > 1 && status == MF_OK; top++)
        status = multiply(cpu, product, &level[top], &level[top + 1], sequences, 0);
    const DLTensor last = mf_tensor(level[top].matrix, MF_F64, 3, shape), out = mf_tensor(total, MF_F64, 1, shape);
    const DLTensor to = mf_tensor(level[top].gradient, MF_F64, 3, shape);
    DLTensor ones = mf_tensor(&one, MF_F64, 1, shape);
    ones.strides = (int64_t *)(uintptr_t)zero;
    const void *from[3] = {last.data, total, &one};
    void *target[1] = {to.data};
    if (status == MF_OK && (status = mf_fold(cpu, "sij->s", all, &last, &out)) == MF_OK &&
        (status = mf_plan_gradient(cpu, "sij->s", all, &last, &out, &ones, &to, NULL, &plan)) == MF_OK)
        status = mf_plan_execute(plan, from, target, NULL);
    mf_plan_destroy(plan);
    for (; top > 0 && status == MF_OK; top--)
        status = multiply(cpu, product, &level[top - 1], &level[top], sequences, 1);
    return status;
}

/* ---- plain loops: one sequence of n matrices ---- */

static double join(const double *x, int best)
{
    double most = x[0], sum = 0;
    for (int i = 1; i < STATES; i++)
        most = fmax(most, x[i]);
    for (int i = 0; i < STATES; i++)
        sum += exp(x[i] - most);
    return best ? most : most + log(sum);
}

/* to[j]: all ways over the matrix from[i] + m[i, j], or (back) m[j, i]. */
static void step(const double *from, const double *m, int back, int best, double *to)
{
    double x[STATES];
    for (int j = 0; j < STATES; j++) {
        for (int i = 0; i < STATES; i++)
            x[i] = from[i] + m[back ? j * STATES + i : i * STATES + j];
        to[j] = join(x, best);
    }
}

/* How far a total (relatively) and a gradient are off; room: for (n + 1) x STATES values. */
static double check(const double *m, const double *gradient, int64_t n, double total, int best, double *room)
{
    double beta[STATES] = {0}, previous[STATES], score = 0;
    memset(room, 0, sizeof beta);
    for (int64_t t = 0; t < n; t++)
        step(room + t * STATES, m + t * CELLS, 0, best, room + (t + 1) * STATES);
    const double exact = join(room + n * STATES, best);
    double worst = fabs(total - exact) / fabs(exact);
    for (int64_t t = n - 1, state = -1; t >= 0; t--) {
        int taken = 0;
        for (int c = 0; c < CELLS; c++) {
            const double g = gradient[t * CELLS + c],
                         p = room[t * STATES + c / STATES] + m[t * CELLS + c] + beta[c % STATES];
            if (!best) {
                worst = fmax(worst, fabs(g - exp(p - exact)));
            } else if (g == 1 && (state < 0 || state == c % STATES)) { /* a path, whose steps fit */
                score += m[t * CELLS + c];
                taken += 1 + 16 * (c / STATES);
            } else if (g != 0) {
                worst = INFINITY;
            }
        }
        state = taken / 16;
        worst = best && taken % 16 != 1 ? INFINITY : worst;
        memcpy(previous, beta, sizeof beta);
        step(previous, m + t * CELLS, 1, best, beta);
    }
    return best ? fmax(worst, fabs(score - exact) / fabs(exact)) : worst;
}

static double uniform(void)
{
    static unsigned state = 7;
    state = state * 1664525u + 1013904223u;
    return (state / 65536 + 0.5) / 65536;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run(mf_device *cpu, int64_t steps, int64_t sequences)
{
    struct level level[LEVELS];
    int levels = 0, good = 1;
    double *total = malloc(sizeof *total * (size_t)sequences),
           *room = malloc(sizeof(double[STATES]) * (size_t)(steps + 1));
    for (int64_t n = steps; good && (!levels || level[levels - 1].count > 1); n = (n + 1) / 2, levels++) {
        const size_t bytes = sizeof(double[CELLS]) * (size_t)(n * sequences);
        level[levels] = (struct level){n, malloc(bytes), malloc(bytes)};
        good = total && room && level[levels].matrix && level[levels].gradient;
    }
    for (int64_t c = 0; good && c < sequences * steps * CELLS; c++) /* state 3 cannot follow state 0 */
        level[0].matrix[c] = c % CELLS == STATES - 1 ? -INFINITY : -5 * uniform();
    for (int best = 0; best < 2 && good; best++) {
        double start = seconds(), worst = 0;
        good = solve(cpu, best, level, sequences, total) == MF_OK;
        const double ours = seconds() - start;
        for (int64_t s = 0; s < sequences && good; s++)
            worst = fmax(worst, check(level[0].matrix + s * steps * CELLS, level[0].gradient + s * steps * CELLS, steps,
                                      total[s], best, room));
        printf("%lld x %lld steps: %s %.3f in %.3f s, plain loops %.3f s; at most %.1g off %s\n", (long long)sequences,
               (long long)steps, best ? "best path" : "log Z", total[0], ours, seconds() - start - ours, worst,
               good ? "" : mf_error());
        good &= worst < 1e-8;
    }
    while (levels--) {
        free(level[levels].matrix);
        free(level[levels].gradient);
    }
    free(total);
    free(room);
    return good;
}

int main(int count, char **arguments)
{
    const long steps = count > 1 ? strtol(arguments[1], NULL, 10) : 100000;
    const long sequences = count > 2 ? strtol(arguments[2], NULL, 10) : 1;
    mf_device *cpu;
    if (steps < 1 || sequences < 1 || mf_device_open("cpu", &cpu) != MF_OK)
        return 1;
    const int good = run(cpu, steps, sequences) && (count > 1 || run(cpu, 1000, 50));
    mf_device_close(cpu);
    return !good;
}
