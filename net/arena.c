/* Where layers' outputs lie in memory.
 *
 * A plan without keep has one block of memory, the arena: a plane has its part of it from the step that writes it first
 * to the last that reads it. What a plane's border holds is then others' data. On the CPU it is zeroed each time. On a
 * GPU that is a launch more for a layer, so borders are zero from the beginning there: planes that have one lie where
 * nobody else does, or exactly on planes with the same one. Where outputs would take too much memory so, planes lie as
 * on the CPU, and a fold makes each zero before it is written. */
#include <string.h>

#include "plan.h"

enum { PLACE_BYTES = 256 /* where planes begin, as memory of their own does */ };

/* Of a plane's memory: the layers that write it first and read it last, and its place. */
struct life {
    int first, last;
    int64_t begin, end;
};

static void find_lives(const mf_net_plan *plan, struct life *life)
{
    const mf_net *net = plan->net;
    for (int l = -1; l < net->layer_count; l++)
        life[l + 1] = (struct life){l > 0 && plan->pooled[l - 1] ? l - 1 : l, -1, 0, 0};
    for (int l = 0; l < net->layer_count; l++)
        for (int s = 0; s < net->layer[l].source_count; s++)
            life[mf_plane_owner(net, net->layer[l].source[s]) + 1].last = l;
    for (int l = -1; l < net->layer_count; l++) {
        if (mf_plane(plan, mf_plane_owner(net, l))->result)
            life[mf_plane_owner(net, l) + 1].last = net->layer_count;
    }
}

static int64_t plane_bytes(const mf_net_plan *plan, const struct plane *plane)
{
    return mf_up_to(plane->image * plan->batch * mf_item_bytes(plane->type), PLACE_BYTES);
}

static int in_memory(const mf_net_plan *plan, int layer)
{
    return mf_plane(plan, layer)->owns && !(layer >= 0 ? plan->pooled[layer] : plan->reads_pictures);
}

/* ---- places ---- */

/* Whether the plane has zeros that its steps do not write, and others read: a border, or what fills up its pixels. */
static int has_zeros(const struct plane *plane)
{
    return plane->border || plane->filled < plane->pitch;
}

static int have_same_zeros(const struct plane *a, const struct plane *b)
{
    return a->type == b->type && a->border == b->border && a->pitch == b->pitch && a->filled == b->filled &&
           a->row == b->row && a->image == b->image;
}

static int may_overlap(const mf_net_plan *plan, const struct life *life, int layer, int other)
{
    const struct life *a = &life[layer + 1], *b = &life[other + 1];
    const struct plane *x = mf_plane(plan, layer), *y = mf_plane(plan, other);
    if (b->last >= a->first && a->last >= b->first)
        return 0;
    return plan->refills || (!has_zeros(x) && !has_zeros(y)) || (a->begin == b->begin && have_same_zeros(x, y));
}

/* At `begin`; returns the first plane before this one that is in the way, or the layer itself. */
static int put(const mf_net_plan *plan, struct life *life, int layer, int64_t begin)
{
    struct life *mine = &life[layer + 1];
    mine->begin = begin;
    mine->end = begin + plane_bytes(plan, mf_plane(plan, layer));
    for (int l = -1; l < layer; l++) {
        const struct life *other = &life[l + 1];
        if (in_memory(plan, l) && other->end > mine->begin && mine->end > other->begin &&
            !may_overlap(plan, life, layer, l))
            return l;
    }
    return layer;
}

/* On a plane with the same zeros, else in the first gap that is large enough. */
static void place(const mf_net_plan *plan, struct life *life, int layer)
{
    for (int l = -1; l < layer && !plan->refills; l++)
        if (in_memory(plan, l) && have_same_zeros(mf_plane(plan, l), mf_plane(plan, layer)) &&
            put(plan, life, layer, life[l + 1].begin) == layer)
            return;
    int other = put(plan, life, layer, 0);
    while (other < layer)
        other = put(plan, life, layer, life[other + 1].end);
}

/* Places all planes; returns the bytes that they take. */
static int64_t place_all(const mf_net_plan *plan, struct life *life)
{
    int64_t bytes = 0;
    find_lives(plan, life);
    for (int l = -1; l < plan->net->layer_count; l++)
        if (in_memory(plan, l)) {
            place(plan, life, l);
            bytes = life[l + 1].end > bytes ? life[l + 1].end : bytes;
        }
    return bytes;
}

/* What outputs may take where memory could be saved: the two largest, and a fifth of the weights. docs/networks.md
 * promises 1.3 times the weights; the rest is for what folds and pictures take. */
static int64_t allowed_bytes(const mf_net_plan *plan)
{
    int64_t first = 0, second = 0, weights = 0;
    for (int l = -1; l < plan->net->layer_count; l++) {
        const struct plane *plane = mf_plane(plan, l);
        const int64_t bytes = plane->owns * plane->h * plane->w * plane->c * plan->batch * mf_item_bytes(plane->type);
        second = bytes > first ? first : bytes > second ? bytes : second;
        first = bytes > first ? bytes : first;
        weights += l >= 0 ? mf_weight_bytes(plan, l) : 0;
    }
    return first + second + weights / 5;
}

/* ---- memory ---- */

/* All of a plane, and one zero that is read again and again. */
static void view_all(const mf_net_plan *plan, const struct plane *plane, struct view *from, struct view *to)
{
    const int64_t all = plane->image * plan->batch, none = 0, one = 1;
    mf_view_make(from, plan, plane->type, plan->zero, 0, 1, &all, &none);
    mf_view_make(to, plan, plane->type, plane->memory, plane->first - plane->border * (plane->row + plane->pitch), 1,
                 &all, &one);
}

static mf_status plan_zeros(mf_net_plan *plan, struct plane *plane)
{
    struct view from, to;
    if (!plan->zero)
        MF_TRY(mf_net_memory(plan, GPU_PIECE, &plan->zero));
    view_all(plan, plane, &from, &to);
    MF_TRY(mf_plan_create(plan->device, "e->e", "a", &from.tensor, &to.tensor, &plan->options, &plane->zeros));
    mf_net_count(plan, plane->zeros, 1);
    return MF_OK;
}

static mf_status use_arena(mf_net_plan *plan, const struct life *life, int64_t bytes)
{
    const int folds = plan->refills && mf_device_kind(plan->device) != kDLCPU;
    MF_TRY(mf_net_memory(plan, bytes, &plan->arena));
    for (int l = -1; l < plan->net->layer_count; l++) {
        struct plane *plane = mf_plane(plan, l);
        if (!in_memory(plan, l))
            continue;
        plane->memory = plan->arena;
        plane->first += life[l + 1].begin / mf_item_bytes(plane->type);
        plane->used_again = life[l + 1].last < plan->net->layer_count;
        if (folds && has_zeros(plane))
            MF_TRY(plan_zeros(plan, plane));
    }
    return MF_OK;
}

static mf_status share_memory(mf_net_plan *plan)
{
    struct life *life = mf_calloc(sizeof *life * (size_t)(plan->net->layer_count + 1));
    if (!life)
        return MF_ERROR_MEMORY;
    plan->refills = mf_device_kind(plan->device) == kDLCPU;
    int64_t bytes = place_all(plan, life);
    if (!plan->refills && bytes > allowed_bytes(plan)) {
        plan->refills = 1;
        bytes = place_all(plan, life);
    }
    const mf_status status = use_arena(plan, life, bytes);
    mf_free(life);
    return status;
}

static mf_status own_memory(mf_net_plan *plan)
{
    for (int l = -1; l < plan->net->layer_count; l++) {
        struct plane *plane = mf_plane(plan, l);
        if (in_memory(plan, l))
            MF_TRY(mf_net_memory(plan, plane_bytes(plan, plane), &plane->memory));
    }
    return MF_OK;
}

mf_status mf_arena_make(mf_net_plan *plan)
{
    return plan->shares ? share_memory(plan) : own_memory(plan);
}

void mf_arena_forget(mf_net_plan *plan)
{
    for (int l = -1; plan->planes && l < plan->net->layer_count; l++) {
        const struct plane *plane = mf_plane(plan, l);
        if (!plane->owns)
            continue;
        mf_plan_destroy(plane->zeros);
        if (!plan->shares && plane->memory)
            mf_memory_destroy(plan->device, plane->memory);
    }
    if (plan->zero)
        mf_memory_destroy(plan->device, plan->zero);
    if (plan->arena)
        mf_memory_destroy(plan->device, plan->arena);
}

/* ---- while it runs ---- */

/* The CPU's, by hand: its border alone. */
static void clear_border(const mf_net_plan *plan, const struct plane *plane)
{
    const int64_t item = mf_item_bytes(plane->type), row = plane->row * item, inside = plane->w * plane->pitch * item;
    const int64_t side = plane->border * plane->pitch * item, end = plane->border * row;
    for (int64_t n = 0; n < plan->batch && plane->border; n++) {
        char *pixel = (char *)plane->memory + (plane->first + n * plane->image) * item;
        memset(pixel - end - side, 0, (size_t)end);
        for (int64_t y = 0; y < plane->h; y++) {
            memset(pixel + y * row - side, 0, (size_t)side);
            memset(pixel + y * row + inside, 0, (size_t)side);
        }
        memset(pixel + plane->h * row - side, 0, (size_t)end);
    }
}

mf_status mf_plane_begin(const mf_net_plan *plan, const struct plane *plane, void *stream)
{
    struct view from, to;
    if (plane->owns && plane->zeros) {
        view_all(plan, plane, &from, &to);
        return mf_plan_execute_tensors(plane->zeros, &from.tensor, &to.tensor, stream);
    }
    if (plan->shares && plane->owns && mf_device_kind(plan->device) == kDLCPU)
        clear_border(plan, plane);
    return MF_OK;
}
