/* libFuzzer target for lists of names. */
#include <stdlib.h>
#include <string.h>

#include <modefold_net.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    mf_net_names *names = NULL;
    if (mf_net_names_parse(size ? (const char *)bytes : "", size, &names) != MF_OK) {
        if (names || !mf_error()[0])
            abort();
        return 0;
    }
    size_t length = 0;
    for (int k = 0; k < mf_net_names_count(names); k++)
        length += strlen(mf_net_names_get(names, k));
    if (mf_net_names_count(names) < 1 || length > size || mf_net_names_get(names, mf_net_names_count(names)))
        abort();
    mf_net_names_destroy(names);
    return 0;
}
