/* Random modes and their sizes. */
#include "random_sketch.h"

void sketch_shuffle(struct sketch *s, int *items, int count)
{
    for (int i = count - 1; i > 0; i--) {
        int j = sketch_below(s, i + 1), t = items[i];
        items[i] = items[j];
        items[j] = t;
    }
}

static int throw_mode_count(struct sketch *s)
{
    static const int counts[32] = {0, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3,
                                   3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9};
    int count = counts[sketch_below(s, 32)];
    return count == 9 ? 9 + sketch_below(s, 24) : count;
}

static int64_t throw_terms(struct sketch *s)
{
    int t = sketch_below(s, 1000);
    int64_t limit = t < 5 ? (int64_t)1 << 21 : t < 95 ? 200000 : 5000;
    return limit >> (sketch_below(s, 3) * sketch_below(s, 4));
}

/* Sizes with something on either side of every boundary a solver may have. */
static int64_t throw_size(struct sketch *s, int64_t most)
{
    static const int64_t sizes[] = {1,    2,    3,    5,     7,     8,     13,     16,     31,     32,   33,
                                    64,   100,  127,  128,   129,   255,   256,    257,    1000,   4095, 4096,
                                    4097, 8191, 8193, 10000, 12289, 65537, 100003, 524289, 1048577};
    int fitting = 0;
    while (fitting < (int)(sizeof sizes / sizeof sizes[0]) && sizes[fitting] <= most)
        fitting++;
    if (!fitting)
        return 1;
    if (sketch_percent(s, 15)) {
        int64_t any = (int64_t)(dice_bits(&s->dice) >> 40) % most;
        return 1 + any;
    }
    int top = fitting > 5 ? 5 : fitting;
    return sizes[sketch_percent(s, 45) ? fitting - 1 - sketch_below(s, top) : sketch_below(s, fitting)];
}

static int64_t about_root(int64_t n)
{
    int64_t root = 1;
    while (root * root < n)
        root *= 2;
    return root;
}

/* Some rows of a tile or a few, and a last one of any length, which no other choice makes often. */
static void choose_long_rows(struct sketch *s)
{
    enum { TILE_ELEMENTS = 4096 };
    s->modes = 2;
    s->kept[0] = 1;
    s->kept[1] = 0;
    s->size[0] = 1 + sketch_below(s, 9);
    s->size[1] =
        TILE_ELEMENTS * (1 + sketch_below(s, 3)) + sketch_below(s, sketch_percent(s, 50) ? 200 : TILE_ELEMENTS);
}

/* A mode before the last one, which has columns. */
static void choose_between(struct sketch *s)
{
    enum { MOST = 60000 };
    s->between = 1;
    s->modes = 3;
    for (int m = 0; m < 3; m++)
        s->kept[m] = m != 1;
    s->size[0] = 1 + sketch_below(s, 5);
    s->size[1] = 1 + sketch_below(s, sketch_percent(s, 60) ? 9 : 300);
    s->size[2] = 8 + sketch_below(s, sketch_percent(s, 50) ? 100 : 1200);
    const int64_t most = MOST / (s->size[0] * s->size[1]);
    s->size[2] = s->size[2] < most ? s->size[2] : most;
}

/* The outputs of a pooling: planes, or pixels of a few channels. */
static void choose_pooling(struct sketch *s)
{
    s->pooling = sketch_percent(s, 50) ? POOLING_TOUCHES : POOLING_SLIDES;
    s->pixels = sketch_percent(s, 40);
    s->modes = 2 + sketch_below(s, 3);
    for (int m = 0; m < s->modes; m++) {
        const int place = s->modes - 1 - m - s->pixels;
        s->kept[m] = 1;
        s->size[m] = 1 + sketch_below(s, place < 0 ? 40 : place == 0 ? (s->pixels ? 8 : 40) : place == 1 ? 12 : 3);
    }
}

static void choose_plain(struct sketch *s, int way)
{
    if (way < 5)
        choose_long_rows(s);
    else if (way < 18)
        choose_between(s);
    else if (way < 36)
        choose_pooling(s);
}

void sketch_modes(struct sketch *s)
{
    int order[SKETCH_MODES];
    s->reduces = sketch_percent(s, 78);
    s->plain = s->reduces && sketch_percent(s, 35);
    s->pair = !s->reduces && sketch_percent(s, 35);
    s->product = s->reduces && !s->plain && sketch_percent(s, 25);
    s->moving = s->plain && sketch_percent(s, 8);
    s->modes = throw_mode_count(s);
    if (s->product)
        s->modes = 3 + sketch_below(s, 3);
    if (s->moving)
        s->modes = 1 + sketch_below(s, 3);
    int64_t room = s->moving ? 20000 : throw_terms(s);
    for (int m = 0; m < s->modes; m++) {
        order[m] = m;
        s->kept[m] = !s->reduces || sketch_percent(s, 45);
    }
    for (int m = 0; s->moving && m < s->modes; m++)
        s->kept[m] = 1;
    if (s->modes && s->reduces && !s->moving && sketch_percent(s, 85))
        s->kept[sketch_below(s, s->modes)] = 0;
    if (s->product) {
        s->kept[0] = s->kept[1] = 1;
        s->kept[2] = 0;
    }
    sketch_shuffle(s, order, s->modes);
    for (int i = 0; i < s->modes; i++) {
        int m = order[i], crowded = s->modes > 8 || (s->modes > 4 && sketch_percent(s, 40));
        int64_t most = i + 1 < s->modes && sketch_percent(s, 65) ? about_root(room) << sketch_below(s, 3) : room;
        s->size[m] = throw_size(s, crowded && room > 3 ? 3 : most < room ? most : room);
        room /= s->size[m];
    }
    if (s->plain && !s->moving)
        choose_plain(s, sketch_below(s, 100));
    if (s->modes && sketch_percent(s, 2))
        s->size[sketch_below(s, s->modes)] = 0;
    for (int m = 0; m < s->modes; m++)
        if (s->kept[m] && s->output_rank < MF_MAX_RANK)
            s->output_mode[s->output_rank++] = m;
        else
            s->kept[m] = 0;
    if (sketch_percent(s, 40))
        sketch_shuffle(s, s->output_mode, s->output_rank);
    if (!s->reduces) /* more than MF_MAX_RANK modes cannot all be kept */
        s->modes = s->output_rank;
}
