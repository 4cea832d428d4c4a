/* From the outputs of [region] and [yolo] layers to boxes. (Redmon and Farhadi, "YOLO9000: Better, Faster, Stronger",
 * 2016, section 2; and "YOLOv3: An Incremental Improvement", 2018, section 2.1.)
 *
 * A cell's channels are boxes x (x, y, w, h, object, classes). With s the logistic function, a box of cell (row, col)
 * has its centre at col + s(x), row + s(y) in cells, the size anchor * exp(w, h), and s(object) times the
 * probability of a class (softmax, or s of each) as the class' score. */
#include "plan.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A box in parts of the network's input. */
struct found {
    float x, y, w, h, score;
    int label;
    int64_t order; /* of equal scores the first */
};

struct finder {
    const mf_net *net;
    mf_net_detecting options;
    struct found *found;
    int64_t count, room;
};

static float logistic(float x)
{
    return 1 / (1 + expf(-x));
}

static mf_status keep(struct finder *f, struct found box)
{
    if (f->count == f->room) {
        const int64_t room = f->room ? 2 * f->room : 64;
        struct found *more = mf_alloc((size_t)room * sizeof *more);
        if (!more)
            return MF_ERROR_MEMORY;
        if (f->count)
            memcpy(more, f->found, (size_t)f->count * sizeof *more);
        mf_free(f->found);
        f->found = more;
        f->room = room;
    }
    box.order = f->count;
    f->found[f->count++] = box;
    return MF_OK;
}

/* Scores of all classes in place, of a box whose object has this probability; returns the best one. */
static int64_t score_classes(const struct layer *l, float object, float *classes)
{
    float most = classes[0], sum = 0;
    int64_t best = 0;
    for (int64_t k = 1; k < l->classes; k++)
        if (classes[k] > most) {
            most = classes[k];
            best = k;
        }
    const int softmax = l->kind == LAYER_REGION && l->softmax;
    for (int64_t k = 0; k < l->classes; k++)
        sum += classes[k] = softmax ? expf(classes[k] - most) : logistic(classes[k]);
    for (int64_t k = 0; k < l->classes; k++)
        classes[k] = object * (softmax ? classes[k] / sum : classes[k]);
    return best;
}

/* One box of one cell: values are its 5 + classes channels, which are changed. */
static mf_status find_in_cell(struct finder *f, const struct layer *l, int64_t y, int64_t x, int64_t b, float *values)
{
    const int cells = l->kind == LAYER_REGION; /* anchors are in cells, else in pixels of the network's input */
    const float object = logistic(values[4]);
    struct found box = {
        .x = ((float)x + logistic(values[0])) / (float)l->w,
        .y = ((float)y + logistic(values[1])) / (float)l->h,
        .w = expf(values[2]) * l->anchor[2 * b] / (float)(cells ? l->w : f->net->w),
        .h = expf(values[3]) * l->anchor[2 * b + 1] / (float)(cells ? l->h : f->net->h),
    };
    if (!(object > f->options.threshold))
        return MF_OK; /* scores are smaller still */
    const int64_t best = score_classes(l, object, values + 5);
    for (int64_t k = 0; k < l->classes; k++) {
        box.score = values[5 + k];
        box.label = (int)k;
        if (box.score > f->options.threshold && (f->options.rules == MF_NET_DARKNET || k == best))
            MF_TRY(keep(f, box));
    }
    return MF_OK;
}

static mf_status find_in_layer(struct finder *f, mf_net_plan *plan, int layer, int64_t item)
{
    const struct layer *l = &plan->net->layer[layer];
    float *values = mf_alloc((size_t)(l->h * l->w * l->c) * sizeof(float)), *cell = values;
    mf_status status = values ? mf_net_read(plan, layer, item, 1, values) : MF_ERROR_MEMORY;
    for (int64_t i = 0; status == MF_OK && i < l->h * l->w * l->boxes; i++, cell += 5 + l->classes)
        status = find_in_cell(f, l, i / l->boxes / l->w, i / l->boxes % l->w, i % l->boxes, cell);
    mf_free(values);
    return status;
}

static int compare(const void *left, const void *right)
{
    const struct found *a = left, *b = right;
    return a->score < b->score ? 1 : a->score > b->score ? -1 : a->order < b->order ? -1 : a->order > b->order;
}

/* ---- overlaps ---- */

static float shared(float a, float a_size, float b, float b_size)
{
    const float left = fmaxf(a - a_size / 2, b - b_size / 2), right = fminf(a + a_size / 2, b + b_size / 2);
    return right > left ? right - left : 0;
}

/* The course's corners: whole pixels of the network's input. */
static void corners(const mf_net *net, const struct found *box, int64_t corner[4])
{
    const float limit = 1e9f, w = (float)net->w, h = (float)net->h;
    const float at[4] = {(box->x - box->w / 2) * w, (box->y - box->h / 2) * h, (box->x + box->w / 2) * w,
                         (box->y + box->h / 2) * h};
    for (int i = 0; i < 4; i++)
        corner[i] = (int64_t)fmaxf(-limit, fminf(limit, at[i]));
}

/* Intersection over union. The course counts pixels with both ends, and lets distances be negative. */
static float overlap(const struct finder *f, const struct found *a, const struct found *b)
{
    if (f->options.rules == MF_NET_DARKNET) {
        const float both = shared(a->x, a->w, b->x, b->w) * shared(a->y, a->h, b->y, b->h);
        return both / (a->w * a->h + b->w * b->h - both);
    }
    int64_t p[4], q[4];
    corners(f->net, a, p);
    corners(f->net, b, q);
    const double w = (double)((p[2] < q[2] ? p[2] : q[2]) - (p[0] > q[0] ? p[0] : q[0]) + 1);
    const double h = (double)((p[3] < q[3] ? p[3] : q[3]) - (p[1] > q[1] ? p[1] : q[1]) + 1);
    const double area_p = (double)(p[2] - p[0] + 1) * (double)(p[3] - p[1] + 1);
    const double area_q = (double)(q[2] - q[0] + 1) * (double)(q[3] - q[1] + 1);
    const double both = w > 0 && h > 0 ? w * h : 0;
    return (float)(both / (area_p + area_q - both));
}

/* Leaves out what overlaps a better one; found is sorted. */
static void thin_out(struct finder *f)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < f->count; i++) {
        int64_t j = 0;
        while (j < kept && !((f->options.rules == MF_NET_COURSE || f->found[j].label == f->found[i].label) &&
                             overlap(f, &f->found[j], &f->found[i]) > f->options.overlap))
            j++;
        if (j == kept)
            f->found[kept++] = f->found[i];
    }
    f->count = kept;
}

/* From parts of the network's input to pixels of the picture. */
static mf_net_box to_picture(const struct finder *f, const struct found *box)
{
    const mf_net *net = f->net;
    const double height = (double)f->options.height, width = (double)f->options.width;
    double part_w = 1, part_h = 1,
           corner[4] = {box->x - box->w / 2, box->y - box->h / 2, box->x + box->w / 2, box->y + box->h / 2};
    int64_t whole[4];
    corners(net, box, whole);
    for (int i = 0; f->options.rules == MF_NET_COURSE && i < 4; i++)
        corner[i] = (double)whole[i] / (double)(i % 2 ? net->h : net->w);
    if (f->options.letterbox && (double)net->w * height < (double)net->h * width)
        part_h = floor(height * (double)net->w / width) / (double)net->h;
    else if (f->options.letterbox)
        part_w = floor(width * (double)net->h / height) / (double)net->w;
    for (int i = 0; i < 4; i++) {
        const double part = i % 2 ? part_h : part_w;
        corner[i] = (corner[i] - (1 - part) / 2) / part * (i % 2 ? height : width);
    }
    return (mf_net_box){box->label, box->score, (float)corner[0], (float)corner[1], (float)corner[2], (float)corner[3]};
}

static mf_status check(const mf_net_plan *plan, int64_t item, const mf_net_detecting *o, const mf_net_box *boxes,
                       int64_t capacity, const int64_t *count)
{
    if (!plan || !count || (!boxes && capacity) || capacity < 0 || item < 0 || item >= plan->batch)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_detect: a pointer is null, or there is no picture %lld of %lld",
                       (long long)item, plan ? (long long)plan->batch : 0);
    if (o && ((int)o->rules < 0 || o->rules > MF_NET_COURSE || !(o->threshold >= 0) || !(o->overlap >= 0) ||
              o->height < 0 || o->width < 0))
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_plan_detect: rules %d are not 0 or 1, or a number is negative",
                       (int)o->rules);
    return MF_OK;
}

static mf_status find_all(struct finder *f, mf_net_plan *plan, int64_t item)
{
    int layers = 0;
    for (int l = 0; l < plan->net->layer_count; l++)
        if (plan->net->layer[l].kind == LAYER_REGION || plan->net->layer[l].kind == LAYER_YOLO) {
            MF_TRY(find_in_layer(f, plan, l, item));
            layers++;
        }
    return layers ? MF_OK
                  : mf_fail(MF_ERROR_UNSUPPORTED, "%.100s has no [region] and no [yolo], so it detects nothing",
                            plan->net->file);
}

mf_status mf_net_plan_detect(mf_net_plan *plan, int64_t item, const mf_net_detecting *options, mf_net_box *boxes,
                             int64_t capacity, int64_t *count)
{
    MF_TRY(check(plan, item, options, boxes, capacity, count));
    struct finder f = {.net = plan->net};
    if (options)
        f.options = *options;
    if (f.options.threshold == 0)
        f.options.threshold = 0.3f;
    if (f.options.overlap == 0)
        f.options.overlap = f.options.rules == MF_NET_COURSE ? 0.3f : 0.45f;
    if (!f.options.height)
        f.options.height = plan->net->h;
    if (!f.options.width)
        f.options.width = plan->net->w;
    mf_status status = find_all(&f, plan, item);
    if (status == MF_OK) {
        if (f.count)
            qsort(f.found, (size_t)f.count, sizeof *f.found, compare);
        thin_out(&f);
        *count = f.count;
        for (int64_t i = 0; i < f.count && i < capacity; i++)
            boxes[i] = to_picture(&f, &f.found[i]);
    }
    mf_free(f.found);
    return status;
}
