/* The vocabulary's functions that a kernel needs. A compiler reads all that it is given: the whole of it, some 300
 * functions, took NVRTC as long as all else in the text.
 *
 * How those files are written is relied on: a function begins in column 0 with "static inline", or of one class with
 * F1, F2 or F3 (which call each other by MF_PASTE), and ends on its first line if that has a brace, else at the next
 * brace in column 0. What is no function is taken as it is. */
#include "vocabulary.h"

#include <ctype.h>
#include <stdio.h>

#include "texts.h"

enum { PARTS = 1024, FILES = 12 };

/* A function, or lines between two of them, which have no name and are needed. */
struct part {
    const char *text, *suffix;
    size_t size;
    char name[48];
    int needed;
};

static size_t line_size(const char *line)
{
    const size_t n = strcspn(line, "\n");
    return n + (line[n] == '\n');
}

static int in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether a function begins on this line, and its name; one of F1, F2 and F3 is of the class that the suffix says. */
static int read_name(const char *line, const char *suffix, char *name, size_t size)
{
    if (line[0] == 'F' && isdigit((unsigned char)line[1]) && line[2] == '(') {
        snprintf(name, size, "mf_%.*s_%s", (int)strcspn(line + 3, ")"), line + 3, suffix);
        return 1;
    }
    if (strncmp(line, "static inline ", 14) != 0)
        return 0;
    const char *end = line + strcspn(line, "("), *begin = end;
    while (begin > line && in_word(begin[-1]))
        begin--;
    snprintf(name, size, "%.*s", (int)(end - begin), begin);
    return 1;
}

static size_t function_size(const char *text)
{
    size_t size = line_size(text);
    if (memchr(text, '{', size))
        return size;
    while (text[size] && text[size] != '}')
        size += line_size(text + size);
    return size + line_size(text + size);
}

static int split(const char *text, const char *suffix, struct part *parts, int count)
{
    while (*text) {
        struct part *last = count ? &parts[count - 1] : NULL, part = {text, suffix, line_size(text), "", 1};
        if (count < PARTS - FILES && read_name(text, suffix, part.name, sizeof part.name)) {
            part.size = function_size(text);
            part.needed = 0;
        }
        if (part.needed && last && last->needed && last->text + last->size == text)
            last->size += part.size;
        else
            parts[count++] = part;
        text += part.size;
    }
    return count;
}

/* Whether a word is this function's name, or all of it but the suffix, which MF_PASTE adds. */
static int is_called(const char *word, size_t n, const char *suffix, const char *name)
{
    return !strncmp(name, word, n) && (!name[n] || (word[n - 1] == '_' && *suffix && !strcmp(name + n, suffix)));
}

/* What a text of one class calls is needed, and what that calls. */
static void need(const char *text, size_t size, const char *suffix, struct part *parts, int count)
{
    for (size_t at = 0, n; at < size; at += n) {
        for (n = 0; at + n < size && in_word(text[at + n]);)
            n++;
        for (int i = 0; i < count && n > 3 && !memcmp(text + at, "mf_", 3); i++)
            if (!parts[i].needed && is_called(text + at, n, suffix, parts[i].name)) {
                parts[i].needed = 1;
                need(parts[i].text, parts[i].size, parts[i].suffix, parts, count);
            }
        n += !n;
    }
}

void mf_vocabulary_add(const char *text, struct gpu_text *to)
{
    static const struct {
        const char *text, *suffix;
    } files[FILES] = {{mf_text_elementary_h, ""},   {mf_text_convert_h, ""},        {mf_text_memory_h, ""},
                      {mf_text_ops_h, ""},          {"#define BITS 32\n", ""},      {mf_text_ops_float_inc, "f32"},
                      {"#define BITS 64\n", ""},    {mf_text_ops_float_inc, "f64"}, {"#define SIGNED 1\n", ""},
                      {mf_text_ops_int_inc, "i64"}, {"#define SIGNED 0\n", ""},     {mf_text_ops_int_inc, "u64"}};
    struct part *parts = mf_calloc(PARTS * sizeof *parts);
    int count = 0;
    if (!parts) {
        to->failed = 1;
        return;
    }
    for (int i = 0; i < FILES; i++)
        count = split(files[i].text, files[i].suffix, parts, count);
    need(text, strlen(text), "", parts, count);
    for (int i = 0; i < count; i++)
        if (!*parts[i].name)
            need(parts[i].text, parts[i].size, parts[i].suffix, parts, count);
    for (int i = 0; i < count; i++)
        if (parts[i].needed)
            mf_text_append_some(to, parts[i].text, parts[i].size);
    mf_free(parts);
    mf_text_append(to, text);
}
