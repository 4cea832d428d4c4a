/* The modes string: its grammar, the sizes it gives, and what is wrong with the strings it refuses. Mostly through
 * mf_fold_shape, which parses and finds sizes and does nothing else. */
#include "check.h"

#include <modefold.h>

#include "modes.h"

/* "2x3,4": shapes. The result of mf_fold_shape as text, or the status's name. */
static mf_status shape_of(const char *modes, const char *shapes, char result[256])
{
    DLTensor in[MF_MAX_INPUTS + 2];
    int64_t shape[MF_MAX_INPUTS + 2][MF_MAX_RANK + 1], out[MF_MAX_RANK];
    int count = 0, ndim = -1, n = 0;
    for (const char *at = shapes;; at++) {
        int rank = 0;
        while (*at && *at != ',') {
            char *end;
            shape[count][rank++] = strtoll(at + (*at == 'x'), &end, 10);
            at = end;
        }
        in[count] = mf_tensor(NULL, MF_F32, rank, shape[count]);
        count++;
        if (!*at)
            break;
    }
    mf_status status = mf_fold_shape(modes, count, in, &ndim, out);
    result[0] = 0;
    for (int d = 0; status == MF_OK && d < ndim; d++)
        n += snprintf(result + n, (size_t)(256 - n), d ? "x%lld" : "%lld", (long long)out[d]);
    return status;
}

/* ---- strings that are right ---- */

static void test_shapes(void)
{
    static const struct {
        const char *modes, *shapes, *want;
    } cases[] = {
        /* clang-format off */
        /* DESIGN.md's table */
        {"zyx->y", "2x3x4", "3"}, {"nchw->c", "2x3x4x5", "3"}, {"nchw,c->nchw", "2x3x4x5,3", "2x3x4x5"},
        {"i,j->ij", "2,3", "2x3"}, {"ik,kj->ij", "2x3,3x4", "2x4"}, {"bik,bkj->bij", "5x2x3,5x3x4", "5x2x4"},
        {"qw,tw->qt", "6x2,7x2", "6x7"}, {"(i+j)->i with j=32", "100", "69"},
        {"(2h+i)(2w+j)c->hwc with i=2 , j=2", "8x6x3", "4x3x3"},
        {"(h+i-1)(w+j-1)c,ijco,o,o->hwo", "8x6x3,3x3x3x5,5,5", "8x6x5"},
        /* letters, order, blanks */
        {"ij->ji", "2x3", "3x2"}, {"ij->", "2x3", ""}, {"->", "", ""}, {",->", ",", ""}, {"i,->i", "4,", "4"},
        {",i->i", ",4", "4"}, {"aA->Aa", "2x3", "3x2"}, {" i j , j k -> i k ", "2x3,3x4", "2x4"},
        {"\ti\nj->\tj ", "2x3", "3"}, {"ii->i", "3x3", "3"}, {"iij->ij", "3x3x2", "3x2"}, {"i,i->i", "3,3", "3"},
        {"iji->j", "3x2x3", "2"},
        {"abcdefghijklmnopqrstuvwxyzABCDEF->F", "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1"
         "x1x1x1x1x1x1x1x1x1x9", "9"},
        {"abcdefghijklmnopqrstuvwxyz,ABCDEFGHIJKLMNOPQRSTUVWXYZ->zZ",
         "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x2,"
         "1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x3", "2x3"},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p->p", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,7", "7"},
        /* windows: strides, products, offsets, negative coefficients, sums of the same mode */
        {"(i)->i", "5", "5"}, {"(1i)->i", "5", "5"}, {"(2i)->i", "5", "3"}, {"(2i)->i", "6", "3"},
        {"(3i+1)->i", "7", "2"}, {"(2*i+j)->i with j=2", "6", "3"}, {"( 2 * i + 3 j - 1 )->i with j = 2", "6", "3"},
        {"(i-1)->i", "4", "6"}, {"(i-2)->i", "4", "8"}, {"(i+2)->i", "4", "2"}, {"(i+1+1)->i", "4", "2"},
        {"(1+i+1)->i", "4", "2"}, {"(i+i)->i", "5", "3"}, {"(i+2i)->i", "7", "3"}, {"(3i-i)->i", "5", "3"},
        {"(i-j)->i with j=3", "4", "6"}, {"(-j+i)->i with j=3", "4", "6"}, {"(2i+3j+k)->i with j=2,k=2", "9", "3"},
        {"(i+j+k+l)->i with j=1,k=1,l=1", "4", "4"}, {"(i+j),j->i", "10,3", "8"}, {"(i+j)->ij with j=3", "5", "3x3"},
        {"(i+j)->i with i=4,j=2", "3", "4"}, {"(i+j)->i with j=9", "5", "0"}, {"(2i+j)->i with j=0", "6", "3"},
        {"(i+j)->ji with j=2,i=3", "9", "2x3"}, {"(i+2)->i", "1", "0"}, {"(i+j-1)(k+j-1)->ik with j=3", "4x6", "4x6"},
        {"(i+7)->i with i=3", "2", "3"}, {"(4-i)->i with i=5", "5", "5"}, {"(-i+4)->i with i=5", "5", "5"},
        {"(0i+j)->ij with i=3", "5", "3x5"}, {"(2i+j),(i+k)->jk with i=2", "6,4", "4x3"},
        /* one window gives a mode that another one needs */
        {"(i+j)(i+k)->ijk with j=2", "6x9", "5x2x5"}, {"(i+k)(i+j)->ijk with j=2", "9x6", "5x2x5"},
        {"(S-u)(6u),->S", "1x9,", "2"}, {"(u-S)(6u)(2S),->uS", "9x9x5,", "2x3"}, {"(2S+u)(6u)->S", "10x13", "4"},
        /* settings that say what is known already */
        {"ij->i with i=2", "2x3", "2"}, {"ij->i with i=2,j=3", "2x3", "2"}, {"i->i with i=3,i=3", "3", "3"},
        /* the letters of the word itself */
        {"with->with", "2x3x4x5", "2x3x4x5"}, {"(w+i)th->wth with i=2", "5x3x4", "4x3x4"},
        {"(w+i)th->with with w=4,i=2,t=3,h=4", "5x3x4", "4x2x3x4"}, {"with->with with w=2", "2x3x4x5", "2x3x4x5"},
        /* empty tensors */
        {"ij->ji", "0x3", "3x0"}, {"(i+j)->i with j=2", "0", "0"}, {"(i+j-1)->i with j=1", "0", "2"},
        {"i->i", "0", "0"},
        /* clang-format on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char shape[256];
        mf_status status = shape_of(cases[c].modes, cases[c].shapes, shape);
        CHECK_MSG(status == MF_OK && !strcmp(shape, cases[c].want), "%s of %s gives %s \"%s\", not \"%s\"%s%s",
                  cases[c].modes, cases[c].shapes, mf_status_name(status), shape, cases[c].want, status ? ": " : "",
                  status ? mf_error() : "");
    }
}

/* ---- strings that are wrong ---- */

static void test_mistakes(void)
{
    static const struct {
        const char *modes;
        mf_status status;
        const char *facts[2];
    } cases[] = {
        /* clang-format off */
        {"", MF_ERROR_MODES, {"character 1", "the end"}}, {"ij", MF_ERROR_MODES, {"character 3", "the end"}},
        {"i-", MF_ERROR_MODES, {"character 2", "'-'"}}, {"i->i->i", MF_ERROR_MODES, {"character 5", "'-'"}},
        {"i>j", MF_ERROR_MODES, {"character 2", "'>'"}}, {"i1->i", MF_ERROR_MODES, {"character 2", "'1'"}},
        {"i.->i", MF_ERROR_MODES, {"character 2", "'.'"}}, {"i\x01->i", MF_ERROR_MODES, {"character 2", "byte 0x01"}},
        {"i\xc3\xa9->i", MF_ERROR_MODES, {"character 2", "byte 0xc3"}},
        {"i->1", MF_ERROR_MODES, {"character 4", "'1'"}}, {"i->j", MF_ERROR_MODES, {"mode j", "no operand"}},
        {"i->ii", MF_ERROR_MODES, {"mode i", "twice"}}, {"i->(i)", MF_ERROR_MODES, {"character 4", "'('"}},
        {"i->i,", MF_ERROR_MODES, {"character 5", "','"}}, {"(->i", MF_ERROR_MODES, {"character 3", "'>'"}},
        {"()->", MF_ERROR_MODES, {"character 2", "')'"}}, {"(3)->", MF_ERROR_MODES, {"window", "no mode"}},
        {"(3+4)->", MF_ERROR_MODES, {"window", "no mode"}}, {"(i->i", MF_ERROR_MODES, {"character 4", "'>'"}},
        {"(i+->i", MF_ERROR_MODES, {"character 4", "'-'"}}, {"(i+)->i", MF_ERROR_MODES, {"character 4", "')'"}},
        {"(i j)->i", MF_ERROR_MODES, {"character 4", "'j'"}}, {"(ij)->i", MF_ERROR_MODES, {"character 3", "'j'"}},
        {"((i))->i", MF_ERROR_MODES, {"character 2", "'('"}}, {"(2*)->i", MF_ERROR_MODES, {"character 4", "')'"}},
        {"(2*3)->i", MF_ERROR_MODES, {"character 4", "'3'"}}, {"(i*2)->i", MF_ERROR_MODES, {"character 3", "'*'"}},
        {"(+i)->i", MF_ERROR_MODES, {"character 2", "'+'"}}, {"(--i)->i", MF_ERROR_MODES, {"character 3", "'-'"}},
        {"i)->i", MF_ERROR_MODES, {"character 2", "')'"}},
        {"(i+j+k+l+m)->i", MF_ERROR_MODES, {"more than 4", "character"}},
        {"abcdefghijklmnopqrstuvwxyzABCDEFG->a", MF_ERROR_MODES, {"operand a", "32"}},
        {"a,abcdefghijklmnopqrstuvwxyzABCDEFG->a", MF_ERROR_MODES, {"operand b", "32"}},
        {"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q->", MF_ERROR_MODES, {"more than 16", "operands"}},
        {"abcdefghijklmnopqrstuvwxyz,ABCDEFG->abcdefghijklmnopqrstuvwxyzABCDEFG", MF_ERROR_MODES, {"output", "32"}},
        {"(99999999999999999999i)->i", MF_ERROR_OVERFLOW, {"63 bits", "character"}},
        {"(9223372036854775808i)->i", MF_ERROR_OVERFLOW, {"63 bits", "character"}},
        {"(i+9223372036854775807+1)->i", MF_ERROR_OVERFLOW, {"offset", "63 bits"}},
        {"(9223372036854775807i+i)->i", MF_ERROR_OVERFLOW, {"coefficient", "63 bits"}},
        {"(j-9223372036854775807i-i)->ij", MF_ERROR_OVERFLOW, {"coefficient", "63 bits"}},
        {"i->i with", MF_ERROR_MODES, {"mode w", "no operand"}}, {"i->i with i", MF_ERROR_MODES, {"mode w", NULL}},
        {"i->i with i=", MF_ERROR_MODES, {"a number", "the end"}},
        {"i->i with =3", MF_ERROR_MODES, {"letter", "'='"}}, {"i->i with i=-3", MF_ERROR_MODES, {"a number", "'-'"}},
        {"i->i with i=x", MF_ERROR_MODES, {"a number", "'x'"}},
        {"i->i with i=3,", MF_ERROR_MODES, {"letter", "the end"}},
        {"i->i with i=3 j=2", MF_ERROR_MODES, {"','", "'j'"}}, {"i->i with i=3.5", MF_ERROR_MODES, {"','", "'.'"}},
        {"i->i with j=3", MF_ERROR_MODES, {"mode j", "no operand"}},
        {"i->i with i=3,i=4", MF_ERROR_MODES, {"to 3", "to 4"}}, {"i->i with ii=3", MF_ERROR_MODES, {"'='", "'i'"}},
        {"i->i with i=99999999999999999999", MF_ERROR_OVERFLOW, {"63 bits", "character"}},
        {"i->i i=3", MF_ERROR_MODES, {"mode i", "twice"}}, {"i->i wit i=3", MF_ERROR_MODES, {"mode w", NULL}},
        {"i->iwith i=3", MF_ERROR_MODES, {"mode w", NULL}},
        /* clang-format on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct modes *modes = malloc(sizeof *modes);
        mf_status status = mf_modes_parse(cases[c].modes, modes);
        free(modes);
        if (!CHECK_MSG(status == cases[c].status, "%s is %s", cases[c].modes, mf_status_name(status)))
            continue;
        for (int f = 0; f < 2 && cases[c].facts[f]; f++)
            CHECK_MSG(strstr(mf_error(), cases[c].facts[f]) != NULL, "%s: \"%s\" does not say \"%s\"", cases[c].modes,
                      mf_error(), cases[c].facts[f]);
        CHECK_MSG(mf_modes_inputs(cases[c].modes) < 0, "%s has operands", cases[c].modes);
    }
}

/* ---- sizes that disagree ---- */

static void test_sizes(void)
{
    static const struct {
        const char *modes, *shapes;
        mf_status status;
        const char *facts[2];
    } cases[] = {
        /* clang-format off */
        {"ij,jk->ik", "2x3,4x5", MF_ERROR_SHAPE, {"mode j is 3 in operand a", "4 in operand b"}},
        {"i,i->i", "1,3", MF_ERROR_SHAPE, {"1 in operand a", "3 in operand b"}},
        {"ii->i", "2x3", MF_ERROR_SHAPE, {"2 in operand a", "3 in operand a"}},
        {"i->i with i=4", "3", MF_ERROR_SHAPE, {"4 after \"with\"", "3 in operand a"}},
        {"ij->i", "2", MF_ERROR_SHAPE, {"2 dimensions", "has 1"}},
        {"i->i", "2x2", MF_ERROR_SHAPE, {"1 dim", "has 2"}}, {"->", "2", MF_ERROR_SHAPE, {"0 dimensions", "has 1"}},
        {"i,->i", "2,2", MF_ERROR_SHAPE, {"operand b", "0 dim"}},
        {"i->i", "-2", MF_ERROR_SHAPE, {"dimension 0 of operand a", "-2"}},
        {"(i+j)->i", "5", MF_ERROR_SHAPE, {"mode i", "with i="}},
        {"(i+j)->", "5", MF_ERROR_SHAPE, {"mode i", "windows"}},
        {"(i+j)->i with i=3,j=2", "-1", MF_ERROR_SHAPE, {"operand a", "-1"}},
        {"(-i)->i", "5", MF_ERROR_SHAPE, {"mode i", "steps by -1"}},
        {"(0i)->i", "5", MF_ERROR_SHAPE, {"mode i", "by 0"}}, {"(5-2i)->i", "5", MF_ERROR_SHAPE, {"mode i", "by -2"}},
        {"(i-i)->i", "5", MF_ERROR_SHAPE, {"mode i", "by 0"}},
        {"(i+j)(i+k)->i", "5x5", MF_ERROR_SHAPE, {"mode i", "windows"}},
        {"i->i", "2,2", MF_ERROR_ARGUMENT, {"1 operands", "2 tensors"}},
        {"i,i->i", "2", MF_ERROR_ARGUMENT, {"2 operands", "1 tensors"}},
        /* clang-format on */
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        char shape[256];
        mf_status status = shape_of(cases[c].modes, cases[c].shapes, shape);
        if (!CHECK_MSG(status == cases[c].status, "%s of %s is %s", cases[c].modes, cases[c].shapes,
                       mf_status_name(status)))
            continue;
        for (int f = 0; f < 2; f++)
            CHECK_MSG(strstr(mf_error(), cases[c].facts[f]) != NULL, "%s: \"%s\" does not say \"%s\"", cases[c].modes,
                      mf_error(), cases[c].facts[f]);
    }
}

/* Appends a random window over some of "ijkl" and a random extent. */
static char *random_window(char *text, unsigned *state, int64_t *extent)
{
    int parts = 1 + (int)(rand_r(state) % 5 / 2), first = (int)(rand_r(state) % 4);
    *text++ = '(';
    for (int p = 0; p < parts; p++) {
        int c = (int)(rand_r(state) % 9) - 2;
        text += sprintf(text, "%s%d%c", c < 0 ? "-" : p ? "+" : "", abs(c), "ijkl"[(first + p) % 4]);
    }
    if (rand_r(state) % 2)
        text += sprintf(text, "%+d", (int)(rand_r(state) % 9) - 4);
    *extent = (int64_t)(rand_r(state) % 30);
    return text + sprintf(text, ")");
}

/* The sizes that a fold into an output of mf_fold_shape's shape finds are the ones that mf_fold_shape found, in random
 * strings whose windows give each other's sizes. */
static void test_agreement(void)
{
    unsigned state = 20240607;
    int agreed = 0;
    struct modes *modes = malloc(sizeof *modes);
    for (int n = 0; n < 20000; n++) {
        char text[256], *at = text;
        int64_t extent[4], shape[MF_MAX_RANK], alone[MF_MAX_MODES], with_output[MF_MAX_MODES];
        int rank = 1 + (int)(rand_r(&state) % 4);
        for (int d = 0; d < rank; d++)
            at = random_window(at, &state, &extent[d]);
        at += sprintf(at, "->");
        for (const char *letter = "ijkl"; *letter; letter++)
            if (memchr(text, *letter, (size_t)(at - text)) && rand_r(&state) % 2)
                *at++ = *letter;
        *at = 0;
        DLTensor in = mf_tensor(NULL, MF_F32, rank, extent), out = mf_tensor(NULL, MF_F32, 0, shape);
        if (!CHECK_MSG(mf_modes_parse(text, modes) == MF_OK, "%s: %s", text, mf_error()))
            continue;
        if (mf_modes_sizes(modes, &in, NULL, alone) != MF_OK)
            continue;
        agreed++;
        CHECK(mf_fold_shape(text, 1, &in, &out.ndim, shape) == MF_OK);
        mf_status status = mf_modes_sizes(modes, &in, &out, with_output);
        CHECK_MSG(status == MF_OK && !memcmp(alone, with_output, sizeof *alone * (size_t)modes->mode_count),
                  "%s: with its output, %s", text, status ? mf_error() : "other sizes");
    }
    CHECK_MSG(agreed > 2000, "only %d of the random strings have sizes", agreed);
    free(modes);
}

static void test_counts(void)
{
    CHECK(mf_modes_inputs("->") == 1 && mf_modes_inputs(",->") == 2 && mf_modes_inputs("i,j,k->ijk") == 3);
    CHECK(mf_modes_inputs("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p->") == 16);
    CHECK(mf_modes_inputs("(2h+i)(2w+j)c->hwc with i=2,j=2") == 1);
}

/* What the parser notes of a window. */
static void test_terms(void)
{
    struct modes *modes = malloc(sizeof *modes);
    if (CHECK(mf_modes_parse("x(2h-3*i+7-9+h)y,i->hx with i=5", modes) == MF_OK)) {
        const struct mode_term *term = &modes->input[0].term[1];
        CHECK(modes->input_count == 2 && modes->mode_count == 4 && modes->output_rank == 2);
        CHECK(!memcmp(modes->letter, "xhiy", 4) && modes->set_size[2] == 5 && modes->set_size[0] == -1);
        CHECK(term->parts == 2 && term->offset == -2 && term->coefficient[0] == 3 && term->coefficient[1] == -3);
        CHECK(modes->output_mode[0] == 1 && modes->output_mode[1] == 0);
        CHECK(mf_modes_has(modes, 0, 2) && mf_modes_has(modes, 1, 2) && !mf_modes_has(modes, 1, 0));
    }
    free(modes);
}

int main(void)
{
    test_shapes();
    test_mistakes();
    test_sizes();
    test_agreement();
    test_counts();
    test_terms();
    return check_done("test_modes");
}
