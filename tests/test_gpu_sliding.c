/* The stages of the GPUs' solver "sliding", run here on plain numbers: for windows of many lengths, sums, greatest
 * values, and what the tree of docs/numerics.md (section 2) makes of an operation that tells every order apart. */
#include "../src/gpu/sliding_stages.h"
#include "check.h"

enum { OUTPUTS = 40, GAPS = 3, CELLS = (OUTPUTS + TILE) * GAPS };

static uint64_t cell[SLIDING_SLOTS][CELLS], value[SLIDING_SLOTS + SLIDING_JOINS][CELLS], element[CELLS];

static uint64_t joined(enum sliding_order order, uint64_t a, uint64_t b)
{
    if (order == SLIDING_ANY)
        return a + b;
    if (order == SLIDING_AGAIN)
        return a > b ? a : b;
    a = a * 0x9e3779b97f4a7c15u + b;
    return a ^ a >> 29;
}

/* Cells behind the last one are 0, in which no output may have a part. */
static void run_stage(const struct sliding_stage *stage, enum sliding_order order)
{
    for (int i = 0; i < stage->inputs; i++)
        memcpy(value[i], cell[i], sizeof cell[i]);
    for (int j = 0; j < stage->joins; j++) {
        const struct sliding_join *one = &stage->join[j];
        for (int64_t p = 0; p < CELLS; p++) {
            const int64_t a = p + one->of_a * stage->apart, b = p + one->of_b * stage->apart;
            value[stage->inputs + j][p] =
                joined(order, a < CELLS ? value[one->a][a] : 0, b < CELLS ? value[one->b][b] : 0);
        }
    }
    for (int k = 0; k < stage->outputs; k++)
        memcpy(cell[k], value[stage->out[k]], sizeof cell[k]);
}

/* n elements, `gap` apart. */
static uint64_t expected(enum sliding_order order, const uint64_t *x, int n, int gap)
{
    uint64_t lane[LANES];
    if (order != SLIDING_TREE) {
        uint64_t all = x[0];
        for (int e = 1; e < n; e++)
            all = joined(order, all, x[e * gap]);
        return all;
    }
    for (int l = 0; l < LANES && l < n; l++) {
        lane[l] = x[l * gap];
        for (int e = l + LANES; e < n; e += LANES)
            lane[l] = joined(order, lane[l], x[e * gap]);
    }
    for (int reach = LANES / 2; reach; reach /= 2)
        for (int l = 0; l < reach; l++)
            if (l + reach < n)
                lane[l] = joined(order, lane[l], lane[l + reach]);
    return lane[0];
}

static void check_windows(int n, int gap, enum sliding_order order, int at_once)
{
    struct sliding_stages stages = {0};
    if (!CHECK_MSG(mf_sliding_add(&stages, 0, n, gap, order, at_once), "%d elements have too many stages", n))
        return;
    memcpy(cell[0], element, sizeof element);
    for (int s = 0; s < stages.count; s++) {
        const struct sliding_stage *stage = &stages.stage[s];
        run_stage(stage, order);
        CHECK_MSG(mf_sliding_behind(stage) < 2 * at_once, "%d elements: a stage reads %d behind", n,
                  mf_sliding_behind(stage));
    }
    int wrong = 0;
    for (int p = 0; p < OUTPUTS; p++)
        wrong += cell[0][p] != expected(order, element + p, n, gap);
    CHECK_MSG(!wrong, "%d elements, %d apart, order %d, %d at once: %d of %d outputs differ", n, gap, (int)order,
              at_once, wrong, OUTPUTS);
}

int main(void)
{
    uint64_t random = 1;
    for (int i = 0; i < CELLS; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        element[i] = random >> 8;
    }
    for (int n = 2; n <= TILE; n += n < 140 ? 1 : n < TILE - 130 ? 127 : 13)
        for (int order = SLIDING_TREE; order <= SLIDING_AGAIN; order++) {
            check_windows(n, 1 + n % GAPS, (enum sliding_order)order, 16);
            if (order != SLIDING_TREE)
                check_windows(n, 1 + n % GAPS, (enum sliding_order)order, 32);
        }
    struct sliding_stages none = {0};
    CHECK(!mf_sliding_add(&none, 0, TILE + 1, 1, SLIDING_TREE, 16));
    return check_done("test_gpu_sliding");
}
