/* Parses "(2h+i)(2w+j)c,ijco->hwo with i=2,j=2" and finds the size of every mode.
 *
 *   modes   = operand { ',' operand } '->' { letter } [ 'with' letter '=' size { ',' letter '=' size } ]
 *   operand = { letter | '(' part { ('+'|'-') part } ')' }        part = [number ['*']] letter | number
 *
 * Blanks may stand between any two symbols. */
#include "modes.h"

#include <stdio.h>

#include "text.h"

struct scanner {
    const char *text, *at;
    struct modes *modes;
};

static void skip_blanks(struct scanner *s)
{
    while (*s->at == ' ' || *s->at == '\t' || *s->at == '\n')
        s->at++;
}

/* "'x'", or "the end of the text", for sentences. */
static const char *found(const struct scanner *s, char buffer[16])
{
    if (!*s->at)
        return "the end";
    if (mf_is_printable(*s->at))
        snprintf(buffer, 16, "'%c'", *s->at);
    else
        snprintf(buffer, 16, "byte 0x%02x", (unsigned char)*s->at);
    return buffer;
}

static mf_status unexpected(const struct scanner *s, const char *wanted)
{
    char buffer[16];
    return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": expected %s at character %ld, found %s", s->text, wanted,
                   (long)(s->at - s->text) + 1, found(s, buffer));
}

static int find_mode(const struct modes *modes, char letter)
{
    for (int i = 0; i < modes->mode_count; i++)
        if (modes->letter[i] == letter)
            return i;
    return -1;
}

/* There are 52 letters, so there is always room. */
static int find_or_add_mode(struct modes *modes, char letter)
{
    int mode = find_mode(modes, letter);
    if (mode >= 0)
        return mode;
    modes->letter[modes->mode_count] = letter;
    modes->set_size[modes->mode_count] = -1;
    return modes->mode_count++;
}

static mf_status scan_number(struct scanner *s, int64_t *value)
{
    *value = 0;
    if (!mf_is_digit(*s->at))
        return unexpected(s, "a number");
    for (; mf_is_digit(*s->at); s->at++)
        if (!mf_mul(*value, 10, value) || !mf_add(*value, *s->at - '0', value))
            return mf_fail(MF_ERROR_OVERFLOW, "modes \"%.100s\": the number at character %ld does not fit in 63 bits",
                           s->text, (long)(s->at - s->text) + 1);
    return MF_OK;
}

static mf_status add_part(struct scanner *s, struct mode_term *term, int mode, int64_t coefficient)
{
    for (int i = 0; i < term->parts; i++)
        if (term->mode[i] == mode) {
            if (!mf_add(term->coefficient[i], coefficient, &term->coefficient[i]) || term->coefficient[i] == INT64_MIN)
                return mf_fail(MF_ERROR_OVERFLOW, "modes \"%.100s\": a coefficient does not fit in 63 bits", s->text);
            return MF_OK;
        }
    if (term->parts == MF_MAX_WINDOW)
        return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": a window has more than %d modes at character %ld", s->text,
                       MF_MAX_WINDOW, (long)(s->at - s->text) + 1);
    term->mode[term->parts] = mode;
    term->coefficient[term->parts++] = coefficient;
    return MF_OK;
}

/* [number ['*']] letter, or a number alone, with the sign that stood before it. */
static mf_status scan_part(struct scanner *s, struct mode_term *term, int sign)
{
    int64_t value = 1;
    int has_number = mf_is_digit(*s->at);
    if (has_number) {
        MF_TRY(scan_number(s, &value));
        skip_blanks(s);
        if (*s->at == '*') {
            s->at++;
            skip_blanks(s);
            if (!mf_is_letter(*s->at))
                return unexpected(s, "a mode's letter");
        }
    }
    if (mf_is_letter(*s->at))
        return add_part(s, term, find_or_add_mode(s->modes, *s->at++), sign * value);
    if (!has_number)
        return unexpected(s, "a mode's letter or a number");
    if (!mf_add(term->offset, sign * value, &term->offset))
        return mf_fail(MF_ERROR_OVERFLOW, "modes \"%.100s\": a window's offset does not fit in 63 bits", s->text);
    return MF_OK;
}

static mf_status scan_window(struct scanner *s, struct mode_term *term)
{
    int sign = 1;
    s->at++; /* '(' */
    skip_blanks(s);
    if (*s->at == '-') {
        sign = -1;
        s->at++;
    }
    for (;;) {
        skip_blanks(s);
        MF_TRY(scan_part(s, term, sign));
        skip_blanks(s);
        if (*s->at == ')')
            break;
        if (*s->at != '+' && *s->at != '-')
            return unexpected(s, "'+', '-' or ')'");
        sign = *s->at++ == '+' ? 1 : -1;
    }
    s->at++;
    if (!term->parts)
        return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": the window before character %ld has no mode", s->text,
                       (long)(s->at - s->text) + 1);
    return MF_OK;
}

static mf_status scan_operand(struct scanner *s, struct mode_list *list)
{
    for (skip_blanks(s); *s->at == '(' || mf_is_letter(*s->at); skip_blanks(s)) {
        if (list->rank == MF_MAX_RANK)
            return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": operand %c has more than %d dimensions", s->text,
                           'a' + s->modes->input_count, MF_MAX_RANK);
        struct mode_term *term = &list->term[list->rank++];
        if (*s->at == '(')
            MF_TRY(scan_window(s, term));
        else
            MF_TRY(add_part(s, term, find_or_add_mode(s->modes, *s->at++), 1));
    }
    return MF_OK;
}

static mf_status scan_inputs(struct scanner *s)
{
    for (;;) {
        if (s->modes->input_count == MF_MAX_INPUTS)
            return mf_fail(MF_ERROR_MODES, "modes \"%.100s\" has more than %d operands", s->text, MF_MAX_INPUTS);
        MF_TRY(scan_operand(s, &s->modes->input[s->modes->input_count]));
        s->modes->input_count++;
        if (*s->at != ',')
            break;
        s->at++;
    }
    if (s->at[0] != '-' || s->at[1] != '>')
        return unexpected(s, "a mode, '(', ',' or '->'");
    s->at += 2;
    return MF_OK;
}

/* Where the settings start: the last word "with" before the first '='; else the end of the text. */
static const char *find_with(const char *text)
{
    const char *end = text, *with = NULL;
    while (*end && *end != '=')
        end++;
    if (!*end) /* no '=', no settings */
        return end;
    for (const char *p = text; p + 4 < end; p++)
        if (!memcmp(p, "with", 4) && (p == text || !mf_is_letter(p[-1])) && !mf_is_letter(p[4]))
            with = p;
    return with ? with : end;
}

static mf_status scan_output(struct scanner *s, const char *end)
{
    struct modes *modes = s->modes;
    for (skip_blanks(s); s->at < end && mf_is_letter(*s->at); skip_blanks(s)) {
        int mode = find_mode(modes, *s->at);
        if (mode < 0)
            return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": the output has mode %c, which no operand has", s->text,
                           *s->at);
        for (int i = 0; i < modes->output_rank; i++)
            if (modes->output_mode[i] == mode)
                return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": the output has mode %c twice", s->text, *s->at);
        if (modes->output_rank == MF_MAX_RANK)
            return mf_fail(MF_ERROR_MODES, "modes \"%.100s\": the output has more than %d modes", s->text, MF_MAX_RANK);
        modes->output_mode[modes->output_rank++] = mode;
        s->at++;
    }
    return s->at == end ? MF_OK : unexpected(s, *end == 'w' ? "a mode or 'with'" : "a mode");
}

static mf_status scan_settings(struct scanner *s)
{
    for (s->at += 4;; s->at++) {
        skip_blanks(s);
        if (!mf_is_letter(*s->at))
            return unexpected(s, "a mode's letter");
        int mode = find_mode(s->modes, *s->at);
        if (mode < 0)
            return mf_fail(MF_ERROR_MODES, "modes \"%.100s\" sets mode %c, which no operand has", s->text, *s->at);
        s->at++;
        skip_blanks(s);
        if (*s->at != '=')
            return unexpected(s, "'='");
        s->at++;
        skip_blanks(s);
        int64_t size;
        MF_TRY(scan_number(s, &size));
        int64_t *set = &s->modes->set_size[mode];
        if (*set >= 0 && *set != size)
            return mf_fail(MF_ERROR_MODES, "modes \"%.100s\" sets mode %c to %lld and to %lld", s->text,
                           s->modes->letter[mode], (long long)*set, (long long)size);
        *set = size;
        skip_blanks(s);
        if (*s->at != ',')
            break;
    }
    return *s->at ? unexpected(s, "',' or the end") : MF_OK;
}

mf_status mf_modes_parse(const char *text, struct modes *modes)
{
    memset(modes, 0, sizeof *modes);
    struct scanner s = {text, text, modes};
    MF_TRY(scan_inputs(&s));
    const char *end = find_with(s.at);
    MF_TRY(scan_output(&s, end));
    return *s.at ? scan_settings(&s) : MF_OK;
}

int mf_modes_inputs(const char *modes)
{
    if (!modes) {
        mf_fail(MF_ERROR_ARGUMENT, "the modes string is null");
        return -1;
    }
    struct modes *parsed = mf_alloc(sizeof *parsed);
    if (!parsed)
        return -1;
    int count = mf_modes_parse(modes, parsed) == MF_OK ? parsed->input_count : -1;
    mf_free(parsed);
    return count;
}

int mf_modes_has(const struct modes *modes, int input, int mode)
{
    const struct mode_list *list = &modes->input[input];
    for (int d = 0; d < list->rank; d++)
        for (int p = 0; p < list->term[d].parts; p++)
            if (list->term[d].mode[p] == mode)
                return 1;
    return 0;
}

/* ---- sizes ---- */

static int is_plain(const struct mode_term *term)
{
    return term->parts == 1 && term->coefficient[0] == 1 && term->offset == 0;
}

/* Sets a mode's size or checks that it agrees with what another operand said. who[mode] is that operand's letter. */
static mf_status agree(const struct modes *modes, int mode, int64_t value, char who_now, int64_t *size, char *who)
{
    if (size[mode] < 0) {
        size[mode] = value;
        who[mode] = who_now;
        return MF_OK;
    }
    if (size[mode] == value)
        return MF_OK;
    char before[32], now[32];
    snprintf(before, sizeof before, who[mode] == '=' ? "after \"with\"" : "in operand %c", who[mode]);
    snprintf(now, sizeof now, who_now == '>' ? "in the output" : "in operand %c", who_now);
    return mf_fail(MF_ERROR_SHAPE, "mode %c is %lld %s and %lld %s", modes->letter[mode], (long long)size[mode], before,
                   (long long)value, now);
}

/* The lowest and highest value a window's index takes, its modes of unknown size left out. */
static mf_status window_range(const struct modes *modes, const struct mode_term *term, const int64_t *size,
                              int64_t *low, int64_t *high)
{
    *low = *high = term->offset;
    for (int p = 0; p < term->parts; p++) {
        int64_t last = size[term->mode[p]] - 1, reach, c = term->coefficient[p];
        if (last < 0)
            continue;
        int64_t *end = c < 0 ? low : high;
        if (!mf_mul(last, c, &reach) || !mf_add(*end, reach, end))
            return mf_fail(MF_ERROR_OVERFLOW, "mode %c: a window over %lld steps of %lld does not fit in 63 bits",
                           modes->letter[term->mode[p]], (long long)last, (long long)c);
    }
    return MF_OK;
}

/* A window's one unknown mode of coefficient c > 0: the largest size for which every window starts inside the tensor,
 * padded at the end by as much as the offset pads it at the start. */
static mf_status infer_window(const struct modes *modes, const struct mode_term *term, int64_t extent, int mode,
                              int64_t c, int64_t *size)
{
    int64_t low, high, room;
    MF_TRY(window_range(modes, term, size, &low, &high));
    if (__builtin_sub_overflow(extent, low < 0 ? low : 0, &room) || !mf_add(room, -1, &room) ||
        __builtin_sub_overflow(room, high, &room) || room == INT64_MAX)
        return mf_fail(MF_ERROR_OVERFLOW, "mode %c: its window over %lld elements does not fit in 63 bits",
                       modes->letter[mode], (long long)extent);
    size[mode] = room < 0 ? 0 : room / c + 1;
    return MF_OK;
}

/* The part of the window whose mode alone has no size yet; -1 when there is not exactly one. */
static int unknown_part(const struct mode_term *term, const int64_t *size)
{
    int part = -1;
    for (int p = 0; p < term->parts; p++)
        if (size[term->mode[p]] < 0) {
            if (part >= 0)
                return -1;
            part = p;
        }
    return part;
}

/* Gives sizes to modes that occur in windows only, one unknown a window at a time, until nothing changes. given: the
 * output's sizes (-1: not in it), null without an output. Where a size is given it is taken, but in the turn in which
 * it would have been inferred: so the other modes get the sizes that they have where the output's is inferred too. */
static mf_status infer_windows(const struct modes *modes, const DLTensor *inputs, const int64_t *given, int64_t *size)
{
    for (int again = 1; again;) {
        again = 0;
        for (int i = 0; i < modes->input_count; i++)
            for (int d = 0; d < modes->input[i].rank; d++) {
                const struct mode_term *term = &modes->input[i].term[d];
                int part = unknown_part(term, size), mode = part < 0 ? 0 : term->mode[part];
                if (part < 0 || term->coefficient[part] <= 0)
                    continue;
                if (given && given[mode] >= 0)
                    size[mode] = given[mode];
                else
                    MF_TRY(infer_window(modes, term, inputs[i].shape[d], mode, term->coefficient[part], size));
                again = 1;
            }
    }
    return MF_OK;
}

static mf_status no_size(const struct modes *modes, int mode, const int64_t *size)
{
    char letter = modes->letter[mode];
    for (int i = 0; i < modes->input_count; i++)
        for (int d = 0; d < modes->input[i].rank; d++) {
            const struct mode_term *term = &modes->input[i].term[d];
            int part = unknown_part(term, size);
            if (part >= 0 && term->mode[part] == mode)
                return mf_fail(MF_ERROR_SHAPE, "mode %c steps by %lld in its window, so its size must be given", letter,
                               (long long)term->coefficient[part]);
        }
    return mf_fail(MF_ERROR_SHAPE, "mode %c has no size: it occurs in windows only; add \"with %c=...\"", letter,
                   letter);
}

static mf_status sizes_from_inputs(const struct modes *modes, const DLTensor *inputs, int64_t *size, char *who)
{
    for (int i = 0; i < modes->input_count; i++) {
        const struct mode_list *list = &modes->input[i];
        if (inputs[i].ndim != list->rank)
            return mf_fail(MF_ERROR_SHAPE, "operand %c has %d dimensions in the modes string and its tensor has %d",
                           'a' + i, list->rank, inputs[i].ndim);
        if (list->rank && !inputs[i].shape)
            return mf_fail(MF_ERROR_ARGUMENT, "operand %c has %d dimensions and a null shape", 'a' + i, list->rank);
        for (int d = 0; d < list->rank; d++) {
            if (inputs[i].shape[d] < 0)
                return mf_fail(MF_ERROR_SHAPE, "dimension %d of operand %c has the negative size %lld", d, 'a' + i,
                               (long long)inputs[i].shape[d]);
            if (is_plain(&list->term[d]))
                MF_TRY(agree(modes, list->term[d].mode[0], inputs[i].shape[d], (char)('a' + i), size, who));
        }
    }
    return MF_OK;
}

/* given[mode]: the output's size, -1 where it is not in the output. Sizes that the inputs say must agree. */
static mf_status sizes_from_output(const struct modes *modes, const DLTensor *output, int64_t *size, char *who,
                                   int64_t *given)
{
    for (int m = 0; m < modes->mode_count; m++)
        given[m] = -1;
    if (output->ndim != modes->output_rank)
        return mf_fail(MF_ERROR_SHAPE, "the output has %d dimensions in the modes string and its tensor has %d",
                       modes->output_rank, output->ndim);
    if (output->ndim && !output->shape)
        return mf_fail(MF_ERROR_ARGUMENT, "the output has %d dimensions and a null shape", output->ndim);
    for (int d = 0; d < modes->output_rank; d++) {
        if (output->shape[d] < 0)
            return mf_fail(MF_ERROR_SHAPE, "dimension %d of the output has the negative size %lld", d,
                           (long long)output->shape[d]);
        int mode = modes->output_mode[d];
        given[mode] = output->shape[d];
        if (size[mode] >= 0)
            MF_TRY(agree(modes, mode, given[mode], '>', size, who));
    }
    return MF_OK;
}

mf_status mf_modes_sizes(const struct modes *modes, const DLTensor *inputs, const DLTensor *output, int64_t *size)
{
    char who[MF_MAX_MODES];
    int64_t given[MF_MAX_MODES];
    for (int m = 0; m < modes->mode_count; m++) {
        size[m] = modes->set_size[m];
        who[m] = '=';
    }
    MF_TRY(sizes_from_inputs(modes, inputs, size, who));
    if (output)
        MF_TRY(sizes_from_output(modes, output, size, who, given));
    MF_TRY(infer_windows(modes, inputs, output ? given : NULL, size));
    for (int m = 0; output && m < modes->mode_count; m++) /* what only the output says */
        if (size[m] < 0)
            size[m] = given[m];
    if (output)
        MF_TRY(infer_windows(modes, inputs, given, size));
    for (int m = 0; m < modes->mode_count; m++)
        if (size[m] < 0)
            return no_size(modes, m, size);
    return MF_OK;
}
