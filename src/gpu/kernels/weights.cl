/* Moments of lanes are merged by weights that are the same for all rows, or columns: of n elements the first n % (2 d) of
 * the 2 d states at the level that joins l and l + d have one more than the others. So there are two kinds of merges at
 * that level, the first n % d and the others: in the one kind both sides have as many, in the other the left one has one
 * more. EVEN_ELEMENTS: n, where the solver knows it and all lanes have as many, else 0: then all weights are constants. */
#ifndef EVEN_ELEMENTS
#define EVEN_ELEMENTS 0
#endif
enum { LEVELS = 7, SETS = WEIGHT_SETS * 2 * LEVELS };

#if MERGE_WEIGHTS && EVEN_ELEMENTS
#define WEIGHTS_MEMORY const int weights_ = 0;
typedef int weights_type;

static inline void make_weights(weights_type weights_, int n)
{
}

static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    return chain_weights(1, EVEN_ELEMENTS >> (level + 1));
}
#elif MERGE_WEIGHTS
#define WEIGHTS_MEMORY SHARED struct merge_weights weights_[SETS];
typedef SHARED_POINTER struct merge_weights *weights_type;

/* Both kinds of every level, of n elements: 2 i and 2 i + 1 are of the one that joins l and l + 2^i. All threads of a
 * block are to meet before they are used. */
static inline void make_weights(weights_type weights_, int n)
{
    if (THREAD < LEVELS) {
        const int reach = 1 << THREAD, least = n / (2 * reach), more = n % (2 * reach) >= reach;
        weights_[2 * THREAD] = merge_weights_of(least + 1, least + more);
        weights_[2 * THREAD + 1] = merge_weights_of(least + more, least);
    }
}

/* Of the merge of `lane` and the one 2^level behind it. */
static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    return weights_[2 * level + (lane < (n & ((1 << level) - 1)) ? 0 : 1)];
}
#else
#define WEIGHTS_MEMORY const int weights_ = 0;
typedef int weights_type;
struct merge_weights {
    int none;
};

static inline void make_weights(weights_type weights_, int n)
{
}

static inline struct merge_weights level_weights(weights_type weights_, int level, int lane, int n)
{
    const struct merge_weights w = {0};
    return w;
}
#endif
