/* libFuzzer target for the modes string: the first bytes choose shapes, the others are the text. What is accepted must
 * hang together; what is refused must come with a sentence. */
#include <stdlib.h>

#include "modes.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_refused(mf_status status)
{
    require(status == MF_ERROR_MODES || status == MF_ERROR_SHAPE || status == MF_ERROR_OVERFLOW);
    require(strlen(mf_error()) > 8);
}

static void check_accepted(const struct modes *modes)
{
    uint64_t seen = 0;
    require(modes->input_count >= 1 && modes->input_count <= MF_MAX_INPUTS);
    require(modes->mode_count >= 0 && modes->mode_count <= MF_MAX_MODES);
    require(modes->output_rank >= 0 && modes->output_rank <= MF_MAX_RANK);
    for (int d = 0; d < modes->output_rank; d++) {
        require(modes->output_mode[d] >= 0 && modes->output_mode[d] < modes->mode_count);
        require(!(seen >> modes->output_mode[d] & 1));
        seen |= (uint64_t)1 << modes->output_mode[d];
    }
    for (int i = 0; i < modes->input_count; i++)
        for (int d = 0; d < modes->input[i].rank; d++) {
            const struct mode_term *term = &modes->input[i].term[d];
            require(term->parts >= 1 && term->parts <= MF_MAX_WINDOW);
            for (int p = 0; p < term->parts; p++)
                require(mf_modes_has(modes, i, term->mode[p]));
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const int64_t sizes[8] = {3, 2, 5, 0, 1, INT64_MAX, INT64_MAX / 2, -1};
    static struct modes modes;
    static DLTensor in[MF_MAX_INPUTS];
    static int64_t shape[MF_MAX_INPUTS][MF_MAX_RANK], size_of[MF_MAX_MODES], size_again[MF_MAX_MODES];
    char text[4096];
    if (size < 4 || size - 4 >= sizeof text)
        return 0;
    memcpy(text, bytes + 4, size - 4);
    text[size - 4] = 0;
    mf_status status = mf_modes_parse(text, &modes);
    require((mf_modes_inputs(text) < 0) == (status != MF_OK));
    if (status != MF_OK) {
        check_refused(status);
        return 0;
    }
    check_accepted(&modes);
    for (int i = 0; i < modes.input_count; i++) {
        for (int d = 0; d < modes.input[i].rank; d++) /* one size a letter, so that most agree */
            shape[i][d] = sizes[bytes[modes.input[i].term[d].mode[0] % 4] % (bytes[0] & 128 ? 8 : 5)];
        in[i] = mf_tensor(NULL, MF_F32, modes.input[i].rank, shape[i]);
    }
    int ndim = -1;
    int64_t out[MF_MAX_RANK];
    status = mf_modes_sizes(&modes, in, NULL, size_of);
    require(mf_fold_shape(text, modes.input_count, in, &ndim, out) == status);
    if (status != MF_OK) {
        check_refused(status);
        return 0;
    }
    require(ndim == modes.output_rank);
    for (int m = 0; m < modes.mode_count; m++)
        require(size_of[m] >= 0 && (modes.set_size[m] < 0 || modes.set_size[m] == size_of[m]));
    DLTensor output = mf_tensor(NULL, MF_F32, ndim, out);
    require(mf_modes_sizes(&modes, in, &output, size_again) == MF_OK); /* what it says fits itself */
    require(!memcmp(size_of, size_again, sizeof size_of[0] * (size_t)modes.mode_count));
    return 0;
}
