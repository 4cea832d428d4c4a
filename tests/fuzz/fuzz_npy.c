/* libFuzzer target for the .npy header parser. What it accepts must lie inside the input: every byte of the data range
 * is read, and the far corner of the strides must be the last element. What it refuses must come with a sentence.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_npy.c cli/npy.c cli/array.c cli/picture.c -lm */
#include "../../cli/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(int condition)
{
    if (!condition)
        abort();
}

static void check_accepted(const uint8_t *bytes, size_t size, const struct npy_header *header)
{
    const size_t item = header->dtype.bits / 8;
    require(header->data_offset <= size && header->data_bytes == size - header->data_offset);
    require(item >= 1 && item <= 8 && header->data_bytes % item == 0);
    require(header->ndim >= 0 && header->ndim <= NPY_MAX_RANK);
    volatile uint8_t sum = 0;
    for (size_t i = 0; i < header->data_bytes; i++)
        sum = (uint8_t)(sum + bytes[header->data_offset + i]);
    int64_t count = 1, corner = 0;
    for (int d = 0; d < header->ndim; d++) {
        require(header->shape[d] >= 0 && header->strides[d] >= 1);
        count = header->shape[d] == 0 ? 0 : count * header->shape[d];
    }
    require((uint64_t)count * item == header->data_bytes);
    for (int d = 0; d < header->ndim && count > 0; d++)
        corner += (header->shape[d] - 1) * header->strides[d];
    require(count == 0 || corner == count - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct npy_header header;
    char error[512];
    memset(error, '#', sizeof error);
    if (npy_parse(bytes, size, &header, error, sizeof error) == 0) {
        check_accepted(bytes, size, &header);
        return 0;
    }
    require(memchr(error, 0, sizeof error) != NULL && error[0] != 0);
    for (const char *c = error; *c; c++)
        require(*c >= ' ' && *c < 127);
    return 0;
}
