/* ASCII, whatever the program's locale: the strings that the library reads mean the same everywhere. */
#ifndef MF_TEXT_H
#define MF_TEXT_H

static inline int mf_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline int mf_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Of names. */
static inline int mf_is_word(char c)
{
    return mf_is_letter(c) || mf_is_digit(c) || c == '_';
}

static inline int mf_is_printable(char c)
{
    return c >= ' ' && c <= '~';
}

#endif
