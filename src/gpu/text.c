/* Growing text. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>

static int make_room(struct gpu_text *to, size_t more)
{
    if (to->failed || to->length + more + 1 <= to->capacity)
        return !to->failed;
    size_t capacity = 2 * (to->length + more) + 4096;
    char *text = mf_alloc(capacity);
    if (!text) {
        to->failed = 1;
        return 0;
    }
    if (to->length)
        memcpy(text, to->text, to->length);
    text[to->length] = 0;
    mf_free(to->text);
    to->text = text;
    to->capacity = capacity;
    return 1;
}

void mf_text_append(struct gpu_text *to, const char *text)
{
    size_t n = strlen(text);
    if (!make_room(to, n))
        return;
    memcpy(to->text + to->length, text, n + 1);
    to->length += n;
}

void mf_text_add(struct gpu_text *to, const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof line, format, list);
    va_end(list);
    mf_text_append(to, line);
}
