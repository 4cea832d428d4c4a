/* Operations given as text, which run on every device: a linear recurrence in parallel, and what belongs to the
 * greatest element.
 *
 * An account earns a rate and gets a deposit every month, x' = rate x + deposit. Maps of this form make one of the same
 * form when they follow each other, first (p1, q1), then (p2, q2): p2 (p1 x + q1) + q2. So a sequence of them is a
 * product, which need not be taken one month after the other (Blelloch: Prefix sums and their applications, 1990). */
#include <modefold.h>

#include <math.h>
#include <stdio.h>

enum { ACCOUNTS = 3, MONTHS = 600 };

static const char balance[] = "f64 ordered balance(rate, deposit): identity p = 1, q = 0; lift p = rate, q = deposit; "
                              "combine p = p1*p2, q = q1*p2 + q2; finish q";

/* Of equal greatest elements the last one counts: the order matters. */
static const char belongs[] =
    "f64 ordered belongs(key, value): identity k = -inf, v = 0; lift k = key, v = value; "
    "combine later = k2 >= k1, k = where(later, k2, k1), v = where(later, v2, v1); finish v, k";

static double rate[ACCOUNTS][MONTHS], deposit[ACCOUNTS][MONTHS];

static void fill(void)
{
    for (int i = 0; i < ACCOUNTS; i++)
        for (int t = 0; t < MONTHS; t++) {
            rate[i][t] = 1 + 0.004 * (i + 1) + 0.001 * (t * 7 % 5 - 2);
            deposit[i][t] = t % (17 * (i + 1)) ? 10 : 100;
        }
}

int main(void)
{
    double end[ACCOUNTS], at_most[ACCOUNTS], most[ACCOUNTS];
    int64_t in_shape[2] = {ACCOUNTS, MONTHS}, out_shape[1] = {ACCOUNTS};
    DLTensor in[2] = {mf_tensor(rate, MF_F64, 2, in_shape), mf_tensor(deposit, MF_F64, 2, in_shape)};
    DLTensor out[3] = {mf_tensor(end, MF_F64, 1, out_shape), mf_tensor(at_most, MF_F64, 1, out_shape),
                       mf_tensor(most, MF_F64, 1, out_shape)};
    mf_device *cpu;
    int good = 1;
    fill();
    if (mf_device_open("cpu", &cpu) != MF_OK || mf_operation_define_text(cpu, balance) != MF_OK ||
        mf_operation_define_text(cpu, belongs) != MF_OK ||
        mf_fold(cpu, "it,it->i", "balance(a,b); belongs(b,a); belongs.1(b,a)", in, out) != MF_OK) {
        fprintf(stderr, "%s\n", mf_error());
        return 1;
    }
    mf_device_close(cpu);
    for (int i = 0; i < ACCOUNTS; i++) {
        double x = 0, key = -INFINITY, value = 0;
        for (int t = 0; t < MONTHS; t++) {
            x = rate[i][t] * x + deposit[i][t];
            value = deposit[i][t] >= key ? rate[i][t] : value;
            key = fmax(key, deposit[i][t]);
        }
        printf("account %d: %.2f in the end; the rate was %.3f when the deposit was greatest, %.2f\n", i, end[i],
               at_most[i], most[i]);
        good = good && fabs(end[i] - x) < 1e-9 * x && at_most[i] == value && most[i] == key;
    }
    return !good;
}
