#include "match.h"
mf_status mf_match_on_gpu(const struct match *match, void *workspace, int64_t bytes, void *stream)
{
    (void)match;
    (void)workspace;
    (void)bytes;
    (void)stream;
    return MF_OK;
}
mf_status mf_match_gpu_workspace(const struct match *match, int64_t *bytes)
{
    (void)match;
    *bytes = 0;
    return MF_OK;
}
