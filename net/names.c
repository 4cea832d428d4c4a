/* The names of classes: one a line, blanks at its ends left out. */
#include "net.h"

#include <string.h>

enum { NAMES_BYTES = 1 << 24, MOST_NAMES = NET_MAX_SIZE };

struct mf_net_names {
    char *text;
    const char **name;
    int count;
};

void mf_net_names_destroy(mf_net_names *names)
{
    if (!names)
        return;
    mf_free(names->text);
    mf_free(names->name);
    mf_free(names);
}

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Cuts the text into lines; empty ones at its end are none. */
static mf_status cut(struct mf_net_names *names, size_t bytes, const char *file)
{
    size_t lines = 1;
    if (memchr(names->text, 0, bytes))
        return mf_fail(MF_ERROR_FILE, "%.100s has a zero byte, so it is no list of names", file);
    while (bytes && is_blank(names->text[bytes - 1]))
        bytes--;
    names->text[bytes] = 0;
    for (size_t i = 0; i < bytes; i++)
        lines += names->text[i] == '\n';
    if (!bytes || lines > MOST_NAMES)
        return mf_fail(MF_ERROR_FILE, "%.100s has %zu names, and 1 to %d can be read", file, bytes ? lines : 0,
                       MOST_NAMES);
    names->name = mf_alloc(sizeof *names->name * lines);
    if (!names->name)
        return MF_ERROR_MEMORY;
    for (char *line = names->text, *next; line; line = next) {
        next = strchr(line, '\n');
        char *end = next ? next : line + strlen(line);
        if (next)
            next++;
        while (end > line && is_blank(end[-1]))
            end--;
        *end = 0;
        while (is_blank(*line))
            line++;
        names->name[names->count++] = line;
    }
    return MF_OK;
}

static mf_status make(const char *file, const char *text, size_t bytes, mf_net_names **result)
{
    struct mf_net_names *names = mf_calloc(sizeof *names);
    if (!names)
        return MF_ERROR_MEMORY;
    names->text = mf_alloc(bytes + 1);
    mf_status status = names->text ? MF_OK : MF_ERROR_MEMORY;
    if (status == MF_OK) {
        memcpy(names->text, text, bytes);
        status = cut(names, bytes, file);
    }
    if (status == MF_OK)
        *result = names;
    else
        mf_net_names_destroy(names);
    return status;
}

mf_status mf_net_names_parse(const char *text, size_t bytes, mf_net_names **names)
{
    if (!text || !names)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_names_parse: %s is null", text ? "the result" : "the text");
    *names = NULL;
    return make("the list of names", text, bytes, names);
}

mf_status mf_net_names_load(const char *path, mf_net_names **names)
{
    char *text;
    size_t bytes;
    if (!path || !names)
        return mf_fail(MF_ERROR_ARGUMENT, "mf_net_names_load: %s is null", path ? "the result" : "the path");
    *names = NULL;
    MF_TRY(mf_file_read(path, NAMES_BYTES, &text, &bytes));
    mf_status status = make(mf_file_name(path), text, bytes, names);
    mf_free(text);
    return status;
}

int mf_net_names_count(const mf_net_names *names)
{
    return names ? names->count : 0;
}

const char *mf_net_names_get(const mf_net_names *names, int k)
{
    return names && k >= 0 && k < names->count ? names->name[k] : NULL;
}
