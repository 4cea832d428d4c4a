/* Folds of all runs of n neighbours as sums of shorter runs, which runs share: a value is an array of folds, one for
 * each position, and a join combines two of them, each from some positions further on.
 *
 * In any order: runs of 2, 4, 8 ... by joining those before with themselves. Of many neighbours runs of `a` first,
 * then runs of b of these, a apart, and what is left of n, and so on; if twice the same does no harm, less apart, so
 * that nothing is left. In the contract's order the same is done with its tree: lane l of a run at p is lane 0 of one
 * at p + l, as far as both have as many elements. At each level of the tree there are two kinds of lanes at most, those
 * before some lane and those from it on, since only the last element's lane tells them apart. */
#include "sliding_stages.h"

#include <string.h>

enum { MOST_AT_ONCE = 32, NO_VALUE = -1 };

/* How many elements a value folds. */
static int length_of(const struct sliding_stage *stage, int value)
{
    if (value < stage->inputs)
        return stage->length[value];
    const struct sliding_join *one = &stage->join[value - stage->inputs];
    return length_of(stage, one->a) + length_of(stage, one->b);
}

static struct sliding_stage *add_stage(struct sliding_stages *stages, int is_down, int64_t apart, int inputs)
{
    if (stages->count == SLIDING_STAGES)
        return NULL;
    const struct sliding_stage *before = stages->count ? &stages->stage[stages->count - 1] : NULL;
    struct sliding_stage *stage = &stages->stage[stages->count++];
    *stage = (struct sliding_stage){.apart = apart, .inputs = inputs, .is_down = is_down};
    for (int i = 0; i < inputs; i++)
        stage->length[i] = before ? length_of(before, before->out[i]) : 1;
    return stage;
}

/* The value that joins these; the one that is there already, if it is. */
static int join(struct sliding_stage *stage, int a, int of_a, int b, int of_b)
{
    for (int j = 0; j < stage->joins; j++) {
        const struct sliding_join *known = &stage->join[j];
        if (known->a == a && known->of_a == of_a && known->b == b && known->of_b == of_b)
            return stage->inputs + j;
    }
    stage->join[stage->joins] = (struct sliding_join){a, of_a, b, of_b};
    return stage->inputs + stage->joins++;
}

/* n <= 32 neighbours of a value, in any order. */
static int run_of(struct sliding_stage *stage, int value, int n, enum sliding_order order)
{
    int run = value, length = 1, bit = mf_power_below(n);
    if (order == SLIDING_AGAIN) {
        for (; 2 * length <= n; length *= 2)
            run = join(stage, run, 0, run, length);
        return length < n ? join(stage, run, 0, run, n - length) : run;
    }
    while (bit >>= 1) {
        run = join(stage, run, 0, run, length);
        length *= 2;
        if (n & bit)
            run = join(stage, run, 0, value, length++);
    }
    return run;
}

static int64_t power(int64_t base, int times)
{
    return times ? base * power(base, times - 1) : 1;
}

/* Of runs of n that may have elements twice: runs of how many first, that many of which, `step` apart, end where the
 * run does. */
static void choose_overlap(int n, int *first, int *step)
{
    int best = n;
    for (int length = 2; length < n; length++)
        for (int more = 1; more < best - length; more++)
            if ((n - length) % more == 0 && (n - length) / more <= length) {
                best = length + more;
                *first = length;
                *step = (n - length) / more;
            }
}

static int add_runs(struct sliding_stages *stages, int is_down, int64_t n, int64_t gap, enum sliding_order order,
                    int at_once)
{
    struct sliding_stage *stage;
    int first = (int)n, step = 1, outputs = 1, stage_count = 1;
    if (order == SLIDING_AGAIN && n > at_once) {
        choose_overlap((int)n, &first, &step);
        return add_runs(stages, is_down, first, gap, order, at_once) &&
               add_runs(stages, is_down, (n - first) / step + 1, gap * step, order, at_once);
    }
    for (int64_t most = at_once; most < n; most *= at_once)
        stage_count++;
    if (stage_count > 1)
        for (first = 2; power(first, stage_count) < n;)
            first *= 2;
    for (int64_t left = n, length = 1; left > 1; left /= first, length *= first) {
        const int times = left < 2 * first ? (int)left : first, rest = (int)(left % times);
        if (!(stage = add_stage(stages, is_down, gap * length, outputs)))
            return 0;
        stage->out[0] = run_of(stage, 0, times, order);
        int more = outputs > 1 ? 1 : NO_VALUE; /* the array of what is left */
        if (left / times == 1 && more != NO_VALUE)
            stage->out[0] = join(stage, stage->out[0], 0, more, times);
        else if (rest && more != NO_VALUE)
            more = join(stage, run_of(stage, 0, rest, order), 0, more, rest);
        else if (rest)
            more = run_of(stage, 0, rest, order);
        outputs = left / times == 1 || more == NO_VALUE ? 1 : 2;
        stage->outputs = outputs;
        stage->out[1] = more;
    }
    return 1;
}

/* The chains of lanes of n elements, those before `rest` with one more than the others. Returns how many arrays. */
static int add_chains(struct sliding_stages *stages, int is_down, int64_t n, int64_t gap)
{
    struct sliding_stage *stage = add_stage(stages, is_down, gap * LANES, 1);
    if (!stage)
        return 0;
    const int all = (int)(n / LANES), rest = (int)(n % LANES);
    int value = 0;
    for (int k = 1; k < all; k++)
        value = join(stage, value, 0, 0, k);
    if (rest)
        stage->out[stage->outputs++] = join(stage, value, 0, 0, all);
    stage->out[stage->outputs++] = value;
    return stage->outputs;
}

/* The tree's levels `from`, a half of it ... down to `unit`, over the lanes' values: NO_VALUE is no lane. */
static int add_levels(struct sliding_stages *stages, int is_down, int64_t gap, int from, int unit, int *lane)
{
    int inputs = 0;
    for (int l = 0; l < 2 * from; l++)
        inputs = lane[l] >= inputs ? lane[l] + 1 : inputs;
    struct sliding_stage *stage = add_stage(stages, is_down, gap * unit, inputs);
    if (!stage)
        return 0;
    for (int level = from; level >= unit; level /= 2)
        for (int l = 0; l < level; l++)
            if (lane[l + level] != NO_VALUE)
                lane[l] = join(stage, lane[l], 0, lane[l + level], level / unit);
    for (int l = 0; l < unit; l++) {
        int slot = 0;
        if (lane[l] == NO_VALUE)
            continue;
        while (slot < stage->outputs && stage->out[slot] != lane[l])
            slot++;
        if (slot == SLIDING_SLOTS)
            return 0;
        if (slot == stage->outputs)
            stage->out[stage->outputs++] = lane[l];
        lane[l] = slot;
    }
    return 1;
}

static int add_tree(struct sliding_stages *stages, int is_down, int64_t n, int64_t gap)
{
    const int lanes = n < LANES ? (int)n : LANES;
    int lane[LANES], kinds = 1, from = 1;
    if (n > TILE)
        return 0;
    if (n > LANES)
        kinds = add_chains(stages, is_down, n, gap);
    if (!kinds)
        return 0;
    for (int l = 0; l < LANES; l++)
        lane[l] = l >= lanes ? NO_VALUE : kinds > 1 && l >= n % LANES ? 1 : 0;
    while (2 * from < lanes)
        from *= 2;
    if (from <= MOST_AT_ONCE / 2)
        return add_levels(stages, is_down, gap, from, 1, lane);
    return add_levels(stages, is_down, gap, from, 8, lane) && add_levels(stages, is_down, gap, 4, 1, lane);
}

int mf_sliding_add(struct sliding_stages *stages, int is_down, int64_t n, int64_t gap, enum sliding_order order,
                   int at_once)
{
    return order == SLIDING_TREE ? add_tree(stages, is_down, n, gap)
                                 : add_runs(stages, is_down, n, gap, order, at_once);
}

/* How many cells of each value are needed behind the first ones. */
static void find_needs(const struct sliding_stage *stage, int needs[SLIDING_SLOTS + SLIDING_JOINS])
{
    memset(needs, 0, (SLIDING_SLOTS + SLIDING_JOINS) * sizeof *needs);
    for (int j = stage->joins - 1; j >= 0; j--) {
        const struct sliding_join *one = &stage->join[j];
        const int own = needs[stage->inputs + j];
        needs[one->a] = own + one->of_a > needs[one->a] ? own + one->of_a : needs[one->a];
        needs[one->b] = own + one->of_b > needs[one->b] ? own + one->of_b : needs[one->b];
    }
}

int mf_sliding_behind(const struct sliding_stage *stage)
{
    int needs[SLIDING_SLOTS + SLIDING_JOINS], most = 0;
    find_needs(stage, needs);
    for (int i = 0; i < stage->inputs; i++)
        most = needs[i] > most ? needs[i] : most;
    return most;
}

void mf_sliding_emit(const struct sliding_stage *stage, int apart, int count, int units, struct gpu_text *to)
{
    int needs[SLIDING_SLOTS + SLIDING_JOINS];
    const int alone = units == apart; /* no other unit has cells that one reads */
    find_needs(stage, needs);
    if (alone)
        mf_text_add(to, "NO_UNROLL for (int unit = THREAD; unit < %d; unit += THREADS) { ", units);
    else
        mf_text_add(to, "{ const int here = THREAD < %d, unit = here ? THREAD : 0; ", units);
    for (int i = 0; i < stage->inputs; i++)
        mf_text_add(to, "READ_CELLS(v%d, %d, %d, %d, %d) ", i, i, needs[i], apart, count);
    for (int j = 0; j < stage->joins; j++) {
        const struct sliding_join *one = &stage->join[j];
        const int value = stage->inputs + j;
        mf_text_add(to, "JOIN_CELLS(v%d, %d, v%d, %d, %d, v%d, %d, %d, %d) ", value, needs[value], one->a, one->of_a,
                    length_of(stage, one->a), one->b, one->of_b, length_of(stage, one->b), count);
    }
    if (!alone)
        mf_text_append(to, "BARRIER(); if (here) ");
    mf_text_append(to, "{ ");
    for (int k = 0; k < stage->outputs; k++)
        mf_text_add(to, "WRITE_CELLS(%d, v%d, %d, %d) ", k, stage->out[k], apart, count);
    mf_text_append(to, "} } BARRIER(); ");
}
