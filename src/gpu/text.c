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

void mf_text_append_some(struct gpu_text *to, const char *text, size_t size)
{
    if (!make_room(to, size))
        return;
    memcpy(to->text + to->length, text, size);
    to->length += size;
    to->text[to->length] = 0;
}

void mf_text_append(struct gpu_text *to, const char *text)
{
    mf_text_append_some(to, text, strlen(text));
}

void mf_text_add(struct gpu_text *to, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0)
        to->failed = 1;
    else if (make_room(to, (size_t)n)) {
        va_start(list, format);
        vsnprintf(to->text + to->length, (size_t)n + 1, format, list);
        va_end(list);
        to->length += (size_t)n;
    }
}
