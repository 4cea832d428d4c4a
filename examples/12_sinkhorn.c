/* The cost of moving one distribution of weights to another: Sinkhorn's distance (Cuturi, "Sinkhorn distances", 2013),
 * in log space, where no kernel underflows. With costs C and potentials f, g, all divided by the smoothing epsilon,
 *
 *     f[i] = log p[i] - logsumexp over j of (g[j] - C[i, j])
 *     g[j] = log q[j] - logsumexp over i of (f[i] - C[i, j])
 *
 * until they stand; exp(f[i] + g[j] - C[i, j]) moves from i to j, the distance is the sum of that with C. The moves
 * are also p[i] times a gradient, of the first of these logsumexps by -C[i, j]: here by mf_plan_gradient.
 * Checked against plain loops in double. 12_sinkhorn [POINTS] (300). A half step in a shell:
 *     modefold run 'j,ij,i->i' 'c-logsumexp(a-b)' g.npy costs.npy logp.npy -o f.npy */
#include <modefold.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { STEPS = 200 };

static const double epsilon = 0.01;

/* Weights on a line and their costs, the squared distances. */
static void make_problem(int64_t n, float *log_p, float *log_q, float *cost)
{
    double sum_p = 0, sum_q = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = ((double)i + 0.5) / (double)n;
        sum_p += exp(-50 * (x - 0.2) * (x - 0.2));
        sum_q += exp(-80 * (x - 0.7) * (x - 0.7));
    }
    for (int64_t i = 0; i < n; i++) {
        const double x = ((double)i + 0.5) / (double)n;
        log_p[i] = (float)(-50 * (x - 0.2) * (x - 0.2) - log(sum_p));
        log_q[i] = (float)(-80 * (x - 0.7) * (x - 0.7) - log(sum_q));
        for (int64_t j = 0; j < n; j++)
            cost[i * n + j] = (float)((double)((i - j) * (i - j)) / (double)(n * n) / epsilon);
    }
}

/* Potentials, and the distance by one fold over all pairs. */
static mf_status solve(mf_device *cpu, int64_t n, const float *log_p, const float *log_q, const float *cost, float *f,
                       float *g, double *distance)
{
    const int64_t square[2] = {n, n};
    const DLTensor c = mf_tensor(cost, MF_F32, 2, square), to_f = mf_tensor(f, MF_F32, 1, square),
                   to_g = mf_tensor(g, MF_F32, 1, square), sum = mf_tensor(distance, MF_F64, 0, NULL);
    const DLTensor rows[3] = {to_g, c, mf_tensor(log_p, MF_F32, 1, square)};
    const DLTensor columns[3] = {to_f, c, mf_tensor(log_q, MF_F32, 1, square)}, all[3] = {to_f, to_g, c};
    mf_status status = MF_OK;
    memset(g, 0, sizeof *g * (size_t)n);
    for (int s = 0; s < STEPS && status == MF_OK; s++)
        if ((status = mf_fold(cpu, "j,ij,i->i", "c-logsumexp(a-b)", rows, &to_f)) == MF_OK)
            status = mf_fold(cpu, "i,ij,j->j", "c-logsumexp(a-b)", columns, &to_g);
    return status == MF_OK ? mf_fold(cpu, "i,j,ij->", "sum(exp(a+b-c)*c)", all, &sum) : status;
}

/* What moves from i to j: p[i] times the weight of j in row i's logsumexp, which is its gradient by -C. */
static mf_status find_moves(mf_device *cpu, int64_t n, const float *log_p, const float *cost, const float *g,
                            float *moves)
{
    const int64_t square[2] = {n, n};
    float *out = malloc(sizeof *out * (size_t)n), *given = malloc(sizeof *given * (size_t)n);
    const DLTensor in[2] = {mf_tensor(g, MF_F32, 1, square), mf_tensor(cost, MF_F32, 2, square)};
    const DLTensor o = mf_tensor(out, MF_F32, 1, square), d = mf_tensor(given, MF_F32, 1, square);
    DLTensor to[2] = {mf_tensor(NULL, MF_F32, 0, NULL), mf_tensor(moves, MF_F32, 2, square)};
    mf_plan *plan = NULL;
    mf_status status = out && given ? mf_fold(cpu, "j,ij->i", "logsumexp(a-b)", in, &o) : MF_ERROR_MEMORY;
    to[0].dtype.bits = 0; /* not wanted */
    for (int64_t i = 0; i < n && status == MF_OK; i++)
        given[i] = -expf(log_p[i]);
    if (status == MF_OK)
        status = mf_plan_gradient(cpu, "j,ij->i", "logsumexp(a-b)", in, &o, &d, to, NULL, &plan);
    const void *from[4] = {g, cost, out, given};
    void *target[1] = {moves};
    if (status == MF_OK)
        status = mf_plan_execute(plan, from, target, NULL);
    mf_plan_destroy(plan);
    free(out);
    free(given);
    return status;
}

/* One half step in plain loops: x[i] = w[i] - log of the sum over j of exp(y[j] - C), C at i * next + j * step. */
static void half_step(int64_t n, const float *w, const float *cost, int64_t step, int64_t next, const double *y,
                      double *x)
{
    for (int64_t i = 0; i < n; i++) {
        double most = -INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++)
            most = fmax(most, y[j] - cost[i * next + j * step]);
        for (int64_t j = 0; j < n; j++)
            sum += exp(y[j] - cost[i * next + j * step] - most);
        x[i] = w[i] - most - log(sum);
    }
}

int main(int count, char **arguments)
{
    const long wanted = count > 1 ? strtol(arguments[1], NULL, 10) : 300;
    const int64_t n = wanted > 1 && wanted < 10000 ? wanted : 300;
    const size_t line = sizeof(double) * (size_t)n, square = sizeof(float) * (size_t)(n * n);
    float *log_p = malloc(line), *log_q = malloc(line), *cost = malloc(square), *moves = malloc(square);
    float *f = malloc(line), *g = malloc(line);
    double *x = malloc(line), *y = calloc(1, line), distance = 0, expected = 0, worst = 0, most = 0;
    mf_device *cpu;
    if (!log_p || !log_q || !cost || !moves || !f || !g || !x || !y || mf_device_open("cpu", &cpu) != MF_OK)
        return 1;
    make_problem(n, log_p, log_q, cost);
    int good = solve(cpu, n, log_p, log_q, cost, f, g, &distance) == MF_OK &&
               find_moves(cpu, n, log_p, cost, g, moves) == MF_OK;
    for (int s = 0; s < STEPS && good; s++) {
        half_step(n, log_p, cost, 1, n, y, x);
        half_step(n, log_q, cost, n, 1, x, y);
    }
    for (int64_t i = 0; i < n && good; i++)
        for (int64_t j = 0; j < n; j++) {
            const double p = exp(x[i] + y[j] - cost[i * n + j]);
            expected += p * cost[i * n + j];
            worst = fmax(worst, fabs(p - moves[i * n + j]));
            most = fmax(most, p);
        }
    if (good)
        printf("%lld points: distance %.6f, plain loops %.6f; moves of up to %.2g at most %.1g off\n", (long long)n,
               epsilon * distance, epsilon * expected, most, worst);
    else
        fprintf(stderr, "%s\n", mf_error());
    good = good && fabs(distance - expected) < 1e-4 * expected && worst < 1e-4 * most;
    mf_device_close(cpu);
    free(log_p), free(log_q), free(cost), free(moves), free(f), free(g), free(x), free(y);
    return !good;
}
