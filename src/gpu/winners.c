/* Where max and min send gradients, on a GPU: kernels/winners.cl, once for each operand, after the fold that finds the
 * winners. What a part of the outputs is, and how many blocks share it. */
#include <stdio.h>

#include "../gradient.h"
#include "emit.h"
#include "launch.h"
#include "texts.h"
#include "vocabulary.h"

enum { THREADS = 128, BLOCKS_OF_ONE = 4 /* of a multiprocessor, to be there at once */ };

/* As in kernels/winners.cl. */
enum { RANK = MF_MAX_RANK + 1, REDUCED_MOST = MF_MAX_MODES };
struct winner_loop {
    int64_t size, output, place, given, other, gradient;
};
struct winner_loops {
    int64_t part_rank, own_rank, reduced_rank, place_rank, outputs, places, splits, cut_size, first_place, first_other,
        winner_at, extreme_at, sum_at;
    struct winner_loop part[RANK], own[RANK], reduced[REDUCED_MOST], of_place[RANK];
};
struct winner_bases {
    int64_t given, other, gradient;
};

struct gpu_winners {
    const struct gpu_kernel *kernel;
    int64_t parts;
    struct winner_loops loops;
};

/* ---- parts ---- */

/* The dimension of the operand that is the output's dimension o, as it is and nowhere else; -1 where there is none. */
static int own_dimension(const struct gradient_maker *maker, int f, int o)
{
    const struct mode_list *list = &maker->modes->input[maker->data->argument.operand[f]];
    const int mode = maker->modes->output_mode[o];
    int found = -1, count = 0;
    for (int d = 0; d < list->rank; d++) {
        const struct mode_term *term = &list->term[d];
        for (int p = 0; p < term->parts; p++)
            count += term->mode[p] == mode;
        if (term->parts == 1 && term->mode[0] == mode && term->coefficient[0] == 1 && !term->offset &&
            maker->view[AT_GRADIENT + f].shape[d] == maker->size[mode])
            found = d;
    }
    return count == 1 ? found : -1;
}

/* The parts' loops, the longest first: strides are the gradient's. taken: dimensions of operand and output. */
static void find_parts(const struct gradient_maker *maker, int f, const int64_t *strides, struct winner_loops *loops,
                       int *operand_taken, int *output_taken)
{
    const struct winners *winners = &maker->data->winners;
    int64_t output = 1;
    loops->part[0].size = 1;
    loops->part_rank = 1;
    for (int o = winners->rank - 1; o >= 0; output *= winners->shape[o--]) {
        const int d = own_dimension(maker, f, o);
        if (d < 0)
            continue;
        operand_taken[d] = output_taken[o] = 1;
        struct winner_loop loop = {winners->shape[o], output, 0, winners->given.kept[o], winners->operand[!f].kept[o],
                                   strides[d]};
        if (loop.size > loops->part[0].size) {
            const struct winner_loop shorter = loops->part[0];
            loops->part[0] = loop;
            loop = shorter;
        }
        if (loop.size != 1)
            loops->part[loops->part_rank++] = loop;
    }
    loops->cut_size = loops->part[0].size;
}

/* The longest loop of the parts is cut so that a part has outputs for all threads of a block. */
static void cut_parts(struct winner_loops *loops)
{
    struct winner_loop *part = &loops->part[0], *own = &loops->own[0], *place = &loops->of_place[0];
    int64_t cut = loops->outputs < THREADS ? THREADS / (loops->outputs ? loops->outputs : 1) : 1;
    cut = cut > part->size ? (part->size ? part->size : 1) : cut;
    *own = *place = *part;
    own->size = place->size = cut;
    own->place = loops->places;
    loops->outputs *= cut;
    loops->places *= cut;
    part->size = (part->size + cut - 1) / cut;
    part->output *= cut;
    part->given *= cut;
    part->other *= cut;
    part->gradient *= cut;
}

/* Numbers of a part's places: of the operand's dimensions that are no part's, row-major. */
static void find_places(const struct gradient_maker *maker, int f, const int64_t *strides, const int *operand_taken,
                        struct winner_loops *loops, struct reach *reach)
{
    const struct place_view *gradient = &maker->view[AT_GRADIENT + f];
    int64_t steps[MF_MAX_RANK] = {0};
    struct winner_loop *to = &loops->of_place[1];
    loops->places = 1;
    for (int d = gradient->tensor.ndim - 1; d >= 0; d--)
        if (!operand_taken[d]) {
            steps[d] = loops->places;
            loops->places *= gradient->shape[d];
        }
    for (int d = 0; d < gradient->tensor.ndim; d++)
        if (!operand_taken[d] && gradient->shape[d] != 1)
            *to++ = (struct winner_loop){.size = gradient->shape[d], .gradient = strides[d]};
    loops->place_rank = to - loops->of_place;
    mf_gradient_reach(maker, maker->data->argument.operand[f], steps, reach);
}

static void find_loops(const struct gradient_maker *maker, int f, struct winner_loops *loops)
{
    const struct winners *winners = &maker->data->winners;
    const struct reach *other = &winners->operand[!f];
    struct reach reach = {0};
    int64_t strides[MF_MAX_RANK], output = 1;
    int operand_taken[MF_MAX_RANK] = {0}, output_taken[MF_MAX_RANK] = {0};
    mf_gradient_strides(&maker->view[AT_GRADIENT + f].tensor, 0, strides);
    find_parts(maker, f, strides, loops, operand_taken, output_taken);
    find_places(maker, f, strides, operand_taken, loops, &reach);
    loops->first_place = reach.base;
    loops->first_other = other->base;
    loops->outputs = winners->total ? 1 : 0;
    loops->own_rank = 1;
    for (int o = 0; o < winners->rank; o++)
        output *= winners->shape[o];
    for (int o = 0; o < winners->rank; o++) {
        output /= winners->shape[o] ? winners->shape[o] : 1;
        if (output_taken[o] || winners->shape[o] == 1)
            continue;
        loops->own[loops->own_rank++] =
            (struct winner_loop){winners->shape[o], output, reach.kept[o], winners->given.kept[o], other->kept[o], 0};
        loops->outputs *= winners->shape[o];
    }
    cut_parts(loops);
    for (int r = 0; r < winners->reduced_count; r++)
        loops->reduced[r] = (struct winner_loop){
            .size = winners->reduced_size[r], .place = reach.reduced[r], .other = other->reduced[r]};
    loops->reduced_rank = winners->reduced_count;
}

/* ---- plans ---- */

/* Blocks of a part: as many as the device has room for beside each other, while each has places for its threads. */
static int64_t choose_splits(const struct winner_loops *loops, int64_t parts, int multiprocessors)
{
    const int64_t most = (loops->places + THREADS - 1) / THREADS,
                  room = (int64_t)BLOCKS_OF_ONE * multiprocessors / (parts ? parts : 1),
                  splits = room < most ? room : most;
    return splits > 1 && loops->outputs ? splits : 1;
}

static void write_kernel(const struct gradient *data, int f, enum dtype gradient, struct gpu_text *text)
{
    const struct dtype_info *given = &mf_dtypes[data->given_type], *other = &mf_dtypes[data->operand_type[!f]];
    const int uses_other = data->argument.op == OP_mul;
    mf_text_add(text, "#define THREADS %d\n#define LAUNCH_BOUNDS THREADS\n#define USES_OTHER %d\n#define SIGN %s\n",
                THREADS, uses_other, data->argument.op == OP_sub && f ? "-" : "");
    mf_text_add(text, "#define NOTHING %smf_bits_f32(0x7f800000u)\n", data->kind == GRADIENT_MAX ? "-" : "");
    mf_text_add(text, "typedef %s given_t;\ntypedef %s other_t;\ntypedef %s extreme_t;\ntypedef %s gradient_t;\n",
                mf_emit_storage[data->given_type], uses_other ? mf_emit_storage[data->operand_type[!f]] : "uint8_t",
                data->cls == CLS_F32 ? "float" : "double", mf_emit_storage[gradient]);
    mf_text_add(text, "#define load_given(x) mf_convert_%s_f64(mf_load_%s(x))\n", mf_class_names[given->cls],
                given->name);
    if (uses_other)
        mf_text_add(text, "#define load_other(x) mf_convert_%s_f64(mf_load_%s(x))\n", mf_class_names[other->cls],
                    other->name);
    mf_text_add(text, "#define store_gradient(x) mf_store_%s_f64(x)\n", mf_dtypes[gradient].name);
    mf_text_append(text, mf_text_winners_cl);
}

static mf_status plan_one(struct gradient_maker *maker, int f)
{
    struct gradient *data = maker->data;
    struct mf_device *device = maker->plan->device;
    struct gpu_winners *gpu = data->gpu[f] = mf_calloc(sizeof *gpu);
    struct gpu_text own = {NULL, 0, 0, 0}, text = {NULL, 0, 0, 0};
    if (!gpu)
        return MF_ERROR_MEMORY;
    find_loops(maker, f, &gpu->loops);
    gpu->parts = 1;
    for (int l = 0; l < gpu->loops.part_rank; l++)
        gpu->parts *= gpu->loops.part[l].size;
    gpu->loops.splits = choose_splits(&gpu->loops, gpu->parts, MF_GPU_LIMITS(device->gpu)->multiprocessors);
    MF_TRY(mf_gradient_reserve(maker, SLOT_GRADIENT + (enum slot)f, gpu->parts, gpu->loops.places));
    MF_TRY(mf_gradient_reserve(maker, SLOT_LOOPS + (enum slot)f, sizeof gpu->loops / sizeof(int64_t), 1));
    write_kernel(data, f, maker->plan->problem.out_type[data->output[f]], &own);
    if (!own.failed)
        mf_vocabulary_add(own.text, &text);
    mf_status status = own.failed || text.failed ? MF_ERROR_MEMORY : mf_gpu_kernel(device, text.text, &gpu->kernel);
    mf_free(own.text);
    mf_free(text.text);
    return status;
}

mf_status mf_gpu_winners_plan(struct gradient_maker *maker)
{
    for (int f = 0; f < maker->data->argument.count; f++)
        if (maker->data->wanted[f])
            MF_TRY(plan_one(maker, f));
    return MF_OK;
}

mf_status mf_gpu_winners_place(const struct mf_plan *plan)
{
    struct gradient *data = plan->data;
    const struct mf_device *device = plan->device;
    for (int f = 0; f < data->argument.count; f++) {
        if (!data->wanted[f])
            continue;
        struct winner_loops *loops = &data->gpu[f]->loops;
        loops->winner_at = data->slot_at[SLOT_WEIGHT];
        loops->extreme_at = data->slot_at[SLOT_LEFT];
        loops->sum_at = data->slot_at[SLOT_GRADIENT + f];
        MF_TRY(device->api->copy(device->gpu, data->memory, data->slot_at[SLOT_LOOPS + f], loops, sizeof *loops, 0));
    }
    return MF_OK;
}

void mf_gpu_winners_forget(struct mf_plan *plan)
{
    struct gradient *data = plan->data;
    for (int f = 0; f < FACTORS_MOST; f++)
        mf_free(data->gpu[f]);
}

/* ---- execution ---- */

mf_status mf_gpu_winners_send(const struct mf_plan *plan, const struct pointers *pointers)
{
    const struct gradient *data = plan->data;
    const int given = data->input_count + 1;
    for (int f = 0; f < data->argument.count; f++) {
        const struct gpu_winners *gpu = data->gpu[f];
        const int k = data->output[f], other = data->argument.op == OP_mul ? data->argument.operand[!f] : given;
        if (!data->wanted[f])
            continue;
        const struct winner_bases bases = {pointers->in_offset[given], pointers->in_offset[other],
                                           pointers->out_offset[k]};
        const struct gpu_argument arguments[] = {
            {pointers->in[given], 0}, {pointers->in[other], 0}, {pointers->out[k], 0},
            {&bases, sizeof bases},   {data->memory, 0},        {&data->slot_at[SLOT_LOOPS + f], sizeof(int64_t)}};
        const struct gpu_launch work = {
            gpu->kernel, gpu->loops.places ? gpu->parts * gpu->loops.splits : 0, THREADS, 6, arguments, 0, 1};
        MF_TRY(plan->device->api->launch(plan->device->gpu, &work, pointers->stream));
    }
    return MF_OK;
}

int mf_gpu_winners_print(const struct mf_plan *plan, char *text, size_t size)
{
    const struct gradient *data = plan->data;
    int n = 0;
    for (int f = 0; f < data->argument.count; f++) {
        const struct gpu_winners *gpu = data->gpu[f];
        if (!gpu || n < 0 || (size_t)n >= size)
            continue;
        const struct gpu_usage *usage = MF_GPU_USAGE(gpu->kernel);
        n += snprintf(text + n, size - (size_t)n,
                      "\nwinners of operand %c: %lld parts of %lld outputs and %lld places, %lld blocks each of %d "
                      "threads",
                      'a' + data->argument.operand[f], (long long)gpu->parts, (long long)gpu->loops.outputs,
                      (long long)gpu->loops.places, (long long)gpu->loops.splits, THREADS);
        if (usage->registers && n > 0 && (size_t)n < size)
            n += snprintf(text + n, size - (size_t)n, " with %d registers, %d bytes on the stack, %d spilled",
                          usage->registers, usage->stack, usage->spilled);
    }
    return n;
}
