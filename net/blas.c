/* Convolutions as products of matrices: windows are copied into the rows of a matrix, pixels x terms; a BLAS multiplies
 * it by the weights, terms x filters; a fold brings the product to its plane, with bias and activation. The BLAS is
 * solver openblas on the CPU, which reads the network's weights panel by panel, or solver cublas on CUDA, which gets
 * them as one matrix. All that goes band after band of rows where the matrix would take much memory beside the weights.
 * Cost: beside the product, (1 + channels / filters) * pixels * terms values written and read. */
#include "plan.h"

#include <stdio.h>
#include <string.h>

enum { SUMS_BEGIN = 256 /* as memory of their own does */, LEAST_ALLOWED = 1 << 20 };

struct blas_step {
    mf_plan *copy, *product, *finish;
    void *weights; /* of its own; or null, and the panels are the network's */
    struct view window_view, row_view, weight_view, sum_view, sum_rows, bias;
    int64_t rows, bands;                    /* of all pictures: rows of a band */
    int64_t pixels, terms, filters, groups; /* of a band; terms and filters of a group, in the sums */
    int64_t panels, panel;                  /* of a group: the products' columns */
    int64_t from_step, to_step;             /* bytes from band to band */
    int64_t sums_at;                        /* bytes of scratch memory, which begins with the windows */
};

void mf_blas_forget(mf_net_plan *plan, struct step *step)
{
    struct blas_step *b = step->blas;
    if (!b)
        return;
    mf_plan_destroy(b->copy);
    mf_plan_destroy(b->product);
    mf_plan_destroy(b->finish);
    mf_memory_destroy(plan->device, b->weights);
    mf_free(b);
    step->blas = NULL;
}

/* Weights [group][term][filter] of the panels. */
static mf_status put_weights(mf_net_plan *plan, const struct layer *l, struct blas_step *b)
{
    const int64_t size = b->groups * b->terms * b->filters, bytes = size * (int64_t)sizeof(float);
    float *matrix = mf_alloc((size_t)bytes);
    if (!matrix)
        return MF_ERROR_MEMORY;
    for (int64_t i = 0; i < size; i++) {
        const int64_t filter = i % b->filters, term = i / b->filters % b->terms, group = i / b->filters / b->terms;
        matrix[i] =
            l->weights[((group * l->panels + filter / l->panel) * b->terms + term) * l->panel + filter % l->panel];
    }
    mf_status status = mf_net_memory(plan, bytes, &b->weights);
    if (status == MF_OK)
        status = mf_memory_write(plan->device, b->weights, 0, matrix, bytes);
    mf_free(matrix);
    return status;
}

/* n h w (pixels) x i j c (terms) of a group: rows of the matrix follow each other. */
static mf_status plan_copy(mf_net_plan *plan, const struct layer *l, struct blas_step *b)
{
    const struct plane *from = mf_plane(plan, l->source[0]);
    const int64_t channels = from->c / l->groups;
    const int64_t shape[] = {l->groups, plan->batch, b->rows, l->w, l->size, l->size, channels};
    int64_t stride[VIEW_RANK], total = 1;
    for (int d = VIEW_RANK - 1; d >= 0; total *= shape[d--])
        stride[d] = total;
    mf_view_make(&b->row_view, plan, MF_F32, NULL, 0, VIEW_RANK, shape, stride);
    mf_view_make(
        &b->window_view, plan, from->type, from->memory, from->first - l->before * (from->row + from->pitch), VIEW_RANK,
        shape,
        (int64_t[]){channels, from->image, l->stride * from->row, l->stride * from->pitch, from->row, from->pitch, 1});
    MF_TRY(mf_plan_create(plan->device, "gnhwijc->gnhwijc", "a", &b->window_view.tensor, &b->row_view.tensor,
                          &plan->options, &b->copy));
    b->from_step = b->rows * l->stride * from->row * mf_item_bytes(from->type);
    mf_net_count(plan, b->copy, 1);
    return MF_OK;
}

/* Of a panel. A matrix with one row or column is none to a BLAS. */
static mf_status plan_product(mf_net_plan *plan, const struct layer *l, struct blas_step *b)
{
    const int64_t g = b->groups, m = b->pixels, k = b->terms, n = b->panel, pitch = b->filters;
    const char *const blas = b->weights ? "cublas" : "openblas";
    mf_options options = plan->options;
    options.solver = m > 1 && k > 1 && n > 1 ? blas : NULL;
    mf_view_make(&b->row_view, plan, MF_F32, NULL, 0, 3, (int64_t[]){g, m, k}, (int64_t[]){m * k, k, 1});
    mf_view_make(&b->weight_view, plan, MF_F32, b->weights ? b->weights : l->weights, 0, 3, (int64_t[]){g, k, n},
                 (int64_t[]){k * n, n, 1});
    mf_view_make(&b->sum_rows, plan, MF_F32, NULL, b->sums_at / 4, 3, (int64_t[]){g, m, n},
                 (int64_t[]){m * pitch, pitch, 1});
    const DLTensor in[] = {b->row_view.tensor, b->weight_view.tensor};
    MF_TRY(mf_plan_create(plan->device, "gmk,gkn->gmn", "sum(a*b)", in, &b->sum_rows.tensor, &options, &b->product));
    mf_net_count(plan, b->product, (int)b->panels);
    return MF_OK;
}

/* Groups are apart in the sums, and beside each other in the plane. */
static mf_status plan_finish(mf_net_plan *plan, struct step *step, struct blas_step *b)
{
    const struct layer *l = &plan->net->layer[step->layer];
    const struct plane *to = mf_plane(plan, step->layer);
    const int fused = !(plan->net->flags & MF_NET_UNFUSED);
    const int64_t n = l->c / l->groups, pitch = b->filters, shape[] = {plan->batch, b->rows, l->w, b->groups, n};
    char text[32];
    mf_view_make(&b->sum_view, plan, MF_F32, NULL, b->sums_at / 4, 5, shape,
                 (int64_t[]){b->rows * l->w * pitch, l->w * pitch, pitch, b->pixels * pitch, 1});
    mf_view_make(&b->bias, plan, MF_F32, plan->numbers[step->layer].bias, 0, 2, (int64_t[]){b->groups, n},
                 (int64_t[]){n, 1});
    mf_view_make(&step->out, plan, to->type, to->memory, to->first, 5, shape,
                 (int64_t[]){to->image, to->row, to->pitch, n, 1});
    mf_activation_text(l->activation, "a+b", text, sizeof text);
    const DLTensor in[] = {b->sum_view.tensor, b->bias.tensor};
    MF_TRY(mf_plan_create(plan->device, fused ? "nhwgf,gf->nhwgf" : "nhwgf->nhwgf", fused ? text : "a", in,
                          &step->out.tensor, &plan->options, &b->finish));
    b->to_step = b->rows * to->row * mf_item_bytes(to->type);
    mf_net_count(plan, b->finish, 1);
    return MF_OK;
}

static mf_status run(const mf_net_plan *plan, const struct step *step, void *stream)
{
    const struct blas_step *b = step->blas;
    DLTensor factors[] = {b->row_view.tensor, b->weight_view.tensor}, sums = b->sum_rows.tensor;
    DLTensor in[] = {b->sum_view.tensor, b->bias.tensor};
    DLTensor windows = b->window_view.tensor, out = step->out.tensor;
    const int64_t floats = (int64_t)sizeof(float);
    const uint64_t first_sum = sums.byte_offset;
    factors[0].data = sums.data = in[0].data = plan->scratch;
    for (int64_t band = 0; band < b->bands; band++) {
        MF_TRY(mf_plan_execute_tensors(b->copy, &windows, factors, stream));
        for (int64_t panel = 0; panel < b->panels; panel++) {
            factors[1].byte_offset = (uint64_t)(panel * b->terms * b->panel * floats);
            sums.byte_offset = first_sum + (uint64_t)(panel * b->panel * floats);
            MF_TRY(mf_plan_execute_tensors(b->product, factors, &sums, stream));
        }
        MF_TRY(mf_plan_execute_tensors(b->finish, in, &out, stream));
        windows.byte_offset += (uint64_t)b->from_step;
        out.byte_offset += (uint64_t)b->to_step;
    }
    return MF_OK;
}

/* Bytes that windows and sums may take: an eighth of what the network's weights do, or a megabyte. */
static int64_t allowed_bytes(const mf_net *net)
{
    int64_t numbers = 0;
    for (int l = 0; l < net->layer_count; l++)
        if (net->layer[l].kind == LAYER_CONVOLUTIONAL)
            numbers += mf_layer_columns(&net->layer[l]) * mf_layer_terms(net, &net->layer[l]);
    const int64_t bytes = numbers * (int64_t)sizeof(float) / 8;
    return bytes > LEAST_ALLOWED ? bytes : LEAST_ALLOWED;
}

/* The fewest bands of equal size whose memory is allowed, a row at least. Returns 0 where sizes overflow. */
static int choose_bands(const mf_net_plan *plan, const struct layer *l, struct blas_step *b)
{
    const int64_t allowed = allowed_bytes(plan->net), floats = (int64_t)sizeof(float);
    int64_t row, all;
    if (!mf_mul(plan->batch * l->w, (b->terms + b->filters) * b->groups, &row) || !mf_mul(row, floats * l->h, &all))
        return 0;
    b->bands = 1;
    while (b->bands < l->h && (l->h % b->bands || all / b->bands > allowed))
        b->bands++;
    b->rows = l->h / b->bands;
    b->pixels = plan->batch * b->rows * l->w;
    return b->pixels <= INT32_MAX;
}

mf_status mf_blas_add_conv(mf_net_plan *plan, int layer)
{
    const struct layer *l = &plan->net->layer[layer];
    struct step *step = mf_step_add(plan, layer, STEP_CONV);
    struct blas_step *b = step->blas = mf_calloc(sizeof *b);
    const int64_t floats = (int64_t)sizeof(float);
    const int in_panels = mf_device_kind(plan->device) == kDLCPU;
    if (!b)
        return MF_ERROR_MEMORY;
    b->terms = mf_layer_terms(plan->net, l);
    b->groups = l->groups;
    b->panels = in_panels ? l->panels : 1;
    b->panel = in_panels ? l->panel : l->c / l->groups;
    b->filters = b->panels * b->panel;
    if (!choose_bands(plan, l, b))
        return mf_fail(MF_ERROR_OVERFLOW, "the windows of layer %d are too many for a matrix", layer);
    b->sums_at = mf_up_to(b->pixels * b->terms * b->groups * floats, SUMS_BEGIN);
    mf_net_scratch(plan, b->sums_at / floats + b->pixels * b->filters * b->groups);
    if (!in_panels)
        MF_TRY(put_weights(plan, l, b));
    MF_TRY(plan_copy(plan, l, b));
    MF_TRY(plan_product(plan, l, b));
    MF_TRY(plan_finish(plan, step, b));
    step->run = run;
    snprintf(step->text, sizeof step->text, "%lld products %lld x %lld x %lld over copied windows",
             (long long)(b->bands * b->panels), (long long)b->pixels, (long long)b->panel, (long long)b->terms);
    return MF_OK;
}
