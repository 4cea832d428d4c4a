/* The built command, whose path is in MODEFOLD_COMMAND: its features, its messages, its exit statuses. */
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "gpu_test.h"

static char folder[256];

/* Status 0, this output, no message. */
static void expect(const char *arguments, const char *output)
{
    int status = run(arguments);
    CHECK_MSG(status == 0 && !strcmp(out_text, output) && !err_text[0], "%s: status %d\n%s%sshould print\n%s",
              arguments, status, out_text, err_text, output);
}

static void expect_part(const char *arguments, const char *part)
{
    int status = run(arguments);
    CHECK_MSG(status == 0 && strstr(out_text, part), "%s: status %d\n%s%sshould print ... %s", arguments, status,
              out_text, err_text, part);
}

/* This status, no output, one line that begins with "modefold: " and holds this part. */
static void expect_error(const char *arguments, int wanted, const char *part)
{
    int status = run(arguments);
    size_t lines = 0;
    for (const char *c = err_text; *c; c++)
        lines += *c == '\n';
    CHECK_MSG(status == wanted && !strncmp(err_text, "modefold: ", 10) && lines == 1 && strstr(err_text, part) &&
                  !out_text[0],
              "%s: status %d\n%s%sshould complain ... %s", arguments, status, out_text, err_text, part);
}

static int exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

/* Nothing that the command writes may lie about half-written. */
static void expect_no_leftovers(void)
{
    FILE *list = popen("ls -A | grep -c tmp", "r");
    int count = -1;
    if (list && fscanf(list, "%d", &count) != 1)
        count = -1;
    if (list)
        pclose(list);
    CHECK_MSG(count == 0, "%d temporary files are left", count);
}

/* ---- files ---- */

/* A .npy file of format `version`. */
static void write_npy(const char *path, int version, const char *descr, int fortran, const char *shape,
                      const void *data, size_t size)
{
    char header[256];
    size_t before = version == 1 ? 10 : 12;
    int n = snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr,
                     fortran ? "True" : "False", shape);
    while ((before + (size_t)n + 1) % 64)
        header[n++] = ' ';
    header[n++] = '\n';
    const unsigned char start[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0, (unsigned char)n};
    FILE *file = fopen(path, "wb");
    if (!file)
        abort();
    fwrite(start, 1, before, file);
    fwrite(header, 1, (size_t)n, file);
    fwrite(data, 1, size, file);
    fclose(file);
}

static void write_files(void)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6}, columns[6] = {1, 4, 2, 5, 3, 6}, row[3] = {10, 20, 30};
    static const float odd[4] = {0.5f, 1.0f / 0.0f, -2, 0.0f / 0.0f};
    static const uint16_t bf16[3] = {0x3f80, 0x4000, 0xc040};
    unsigned char swapped[24], picture[4 * 6 * 3];
    int32_t count[2000];
    for (int i = 0; i < 24; i++)
        memcpy(swapped + i, (const char *)x + (i / 4 * 4 + 3 - i % 4), 1);
    for (int i = 0; i < 2000; i++)
        count[i] = i;
    for (int i = 0; i < 72; i++)
        picture[i] = (unsigned char)(i * 3);
    write_npy("x.npy", 1, "<f4", 0, "2, 3", x, sizeof x);
    write_npy("x2.npy", 2, "<f4", 0, "2, 3", x, sizeof x);
    write_npy("x3.npy", 3, "<f4", 0, "2, 3", x, sizeof x);
    write_npy("fortran.npy", 1, "<f4", 1, "2, 3", columns, sizeof columns);
    write_npy("big_endian.npy", 1, ">f4", 0, "2, 3", swapped, sizeof swapped);
    write_npy("row.npy", 1, "<f4", 0, "3,", row, sizeof row);
    write_npy("odd.npy", 1, "<f4", 0, "4,", odd, sizeof odd);
    write_npy("raw.npy", 1, "<u2", 0, "3,", bf16, sizeof bf16);
    write_npy("void.npy", 1, "|V2", 0, "3,", bf16, sizeof bf16);
    write_npy("count.npy", 1, "<i4", 0, "40, 50", count, sizeof count);
    write_npy("empty.npy", 1, "<f4", 0, "0, 3", x, 0);
    write_npy("short.npy", 1, "<f4", 0, "9, 3", x, sizeof x);
    write_npy("picture.npy", 1, "|u1", 0, "4, 6, 3", picture, sizeof picture);
}

/* ---- run ---- */

static void test_run(void)
{
    expect("run 'ij->i' 'sum(a)' x.npy", "[ 6. 15.]\n");
    expect("run 'ij->i' 'sum(a)' x2.npy", "[ 6. 15.]\n");
    expect("run 'ij->i' 'sum(a)' x3.npy", "[ 6. 15.]\n");
    expect("run 'ij->i' 'sum(a)' fortran.npy", "[ 6. 15.]\n");
    expect("run 'ij->i' 'sum(a)' big_endian.npy", "[ 6. 15.]\n");
    expect("run 'ij->' 'sum(a)' x.npy", "21.\n");
    expect("run 'ij->ji' 'a' x.npy", "[[1. 4.]\n [2. 5.]\n [3. 6.]]\n");
    expect("run 'ij->i' 'sum(a); argmax(a)' x.npy", "sum(a)\n[ 6. 15.]\n\nargmax(a)\n[2 2]\n");
    expect("run 'ij,j->ij' 'a+b' x.npy row.npy", "[[11. 22. 33.]\n [14. 25. 36.]]\n");
    expect("run 'ij,kj->ik' 'sum(a*b)' x.npy fortran.npy", "[[14. 32.]\n [32. 77.]]\n");
    expect("run 'i->i' 'a' odd.npy", "[ 0.5  inf -2.   nan]\n");
    expect("run 'ij->i' 'any(a>3)' x.npy", "[False  True]\n");
    expect("run 'ij->j' 'sum(a)' empty.npy", "[0. 0. 0.]\n");
    expect("run 'ij->ij' 'a' empty.npy", "[] of shape (0, 3)\n");
    expect("run 'i->i' 'a' raw.npy:bf16", "[ 1.  2. -3.]\n");
    expect("run 'i->i' 'a' void.npy", "[ 1.  2. -3.]\n");
    expect("run 'i->i' 'a' raw.npy", "[16256 16384 49216]\n");
    expect("run '(i+j)->i' 'sum(a)' row.npy --set j=2", "[30. 50.]\n");
    expect("run '(i+j)->i with j=2' 'sum(a)' row.npy", "[30. 50.]\n");
    expect("run '(i+j+k)->i with j=2' 'sum(a)' row.npy --set k=2", "[80.]\n");
    expect("run '(i+j-1)->i' 'sum(a)' row.npy --set=j=3", "[30. 60. 50.]\n");
    expect("run 'ij->' 'sum(a)' x.npy --dtype i64", "21\n");
    expect("run 'ij->' 'sum(a); max(a)' x.npy --dtype f64,u8", "sum(a)\n21.\n\nmax(a)\n6\n");
    expect("run 'ij->' 'sum(a)' x.npy --threads 1", "21.\n");
    expect("run 'ij->' 'sum(a)' x.npy --threads=2 --solver reference", "21.\n");
    expect("run 'ij->' 'sum(a)' --device cpu:1 -- x.npy", "21.\n");
    expect("run --order-as-written 'ij->' 'sum(a)' fortran.npy", "21.\n");
    expect("run --order-free 'ij->' 'sum(a)' fortran.npy", "21.\n");
    expect_part("run 'ij->ij' 'a' count.npy", "...");
    expect_part("run 'ij->i' 'sum(a)' - <x.npy", "[ 6. 15.]\n");
    expect_no_leftovers();
}

static void test_files(void)
{
    expect("run 'ij->ij' 'a*2' x.npy -o y.npy", "");
    expect("run 'ij->' 'sum(a)' y.npy", "42.\n");
    expect("run 'ij->i' 'sum(a); max(a)' x.npy -o s.npy --output m.npy", "");
    expect("run 'i,i->i' 'a*10+b' s.npy m.npy", "[ 63. 156.]\n");
    expect("run 'ij->ij' 'a*2' y.npy -o y.npy", ""); /* over its own input */
    expect("run 'ij->' 'sum(a)' y.npy", "84.\n");
    expect("run 'hwc->hwc' 'a' picture.npy -o p.png", "");
    expect("run 'hwc,hwc->' 'all(a==b)' p.png picture.npy", "True\n");
    expect("run '(2h+i)(2w+j)c->hwc' 'max(a)' p.png -o half.png --set i=2,j=2", "");
    expect("run 'hwc->' 'count(a>=0)' half.png", "18\n");
    expect("run 'ij->ij' 'a' x.npy --dtype bf16 -o b.npy", "");
    expect("run 'ij->' 'sum(a)' b.npy", "21.\n");
    expect_part("run 'ij->ij' 'a' x.npy -o - | head -c 6 | tail -c 5", "NUMPY");
    expect_no_leftovers();
    /* interrupted: neither the file nor its temporary is left */
    CHECK(system("timeout -s INT 0.3 \"$MODEFOLD_COMMAND\" run 'ij,kl,mn->ikm' 'sum(a*b*c)' count.npy count.npy "
                 "count.npy -o late.npy "
                 "--solver reference 2>/dev/null") != 0);
    CHECK(!exists("late.npy"));
    expect_no_leftovers();
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        check_skip("written files open in NumPy", "/usr/bin/python3 has no numpy");
        return;
    }
    CHECK(!system("/usr/bin/python3 -c \"import numpy as n; assert (n.load('y.npy')==4*n.load('x.npy')).all(); "
                  "assert n.load('m.npy').shape==(2,)\""));
}

static void test_run_errors(void)
{
    expect_error("run", 2, "run needs MODES, EXPRESSION and at least one input");
    expect_error("run 'ij->i' 'sum(a)'", 2, "at least one input");
    expect_error("run 'ij->i' 'sum(a)' x.npy row.npy", 2, "the modes string has 1 operand and 2 files were given");
    expect_error("run 'ij->i' 'sum(a' x.npy", 1, "expected ',' or ')' at character 6");
    expect_error("run 'ij->i' 'sum(z)' x.npy", 1, "uses operand z");
    expect_error("run 'ij>i' 'sum(a)' x.npy", 1, "modes");
    expect_error("run 'i->i' 'a' x.npy", 1, "operand a has 1 dimensions in the modes string and its tensor has 2");
    expect_error("run 'ij,j->ij' 'a+b' x.npy s.npy", 1, "mode j is 3 in operand a and 2 in operand b");
    expect_error("run '(i+j)->i' 'sum(a)' row.npy", 1, "");
    expect_error("run 'ij->i' 'sum(a)' none.npy", 1, "none.npy");
    expect_error("run 'ij->i' 'sum(a)' short.npy", 1, "short.npy");
    expect_error("run 'ij->i' 'sum(a)' out.txt", 1, "out.txt");
    expect_error("run 'i->i' 'a' raw.npy:f32", 1, "16 bits and f32 has 32");
    expect_error("run 'ij->i' 'mean(a)' x.npy -o no/where.npy", 1, "no/where.npy");
    expect_error("run 'ij->i' 'mean(a)' x.npy -o 1.npy -o 2.npy", 2,
                 "the expression has 1 result and -o stands 2 times");
    expect_error("run 'ij->ij' 'a' x.npy -o f.png", 1, "f.png");
    expect_error("run 'ij->j' 'mean(a)' empty.npy -o never.npy", 1, "mean of no elements");
    expect_error("run 'ij->i' 'sum(a)' x.npy --dtype f31", 2, "there is no type \"f31\"");
    expect_error("run 'ij->i' 'sum(a)' x.npy --dtype f32,f64", 2,
                 "--dtype has 2 types and the expression has 1 result");
    expect_error("run 'ij->i' 'sum(a)' x.npy --solver quick", 1, "there is no solver \"quick\"");
    expect_error("run 'ij->i' 'sum(a)' x.npy --solver map", 1, "solver map does not apply");
    expect_error("run 'ij->i' 'sum(a)' x.npy --device gpu", 1, "there is no device \"gpu\"");
    expect_error("run 'ij->i' 'sum(a)' x.npy --threads 1000", 2, "--threads is 1000 and the most is 256");
    expect_error("run 'ij->i' 'sum(a)' x.npy --threads few", 2, "--threads takes a whole number");
    expect_error("run 'ij->i' 'sum(a)' x.npy --speed", 2, "there is no option --speed");
    expect_error("run 'ij->ij' -a x.npy", 2, "there is no option -a");
    expect_error("run 'ij->ij' -a x.npy", 2, "after \"--\"");
    expect_part("run -- 'ij->ij' -a x.npy", "-1");
    expect_part("plan '->' a 'a=f32[]'", "->");
    expect_error("run 'ij->i' 'sum(a)' x.npy --json=1", 2, "--json takes no value");
    expect_error("run 'ij->i' 'sum(a)' x.npy -o", 2, "-o needs a value");
    expect_error("run 'ij->i' 'sum(a)' x.npy --json -o -", 2, "standard output");
    expect_error("run 'ij->i' 'sum(a)' x.npy --set j=4", 1, "mode j is 4 after \"with\" and 3 in operand a");
    CHECK(!exists("1.npy") && !exists("2.npy") && !exists("f.png") && !exists("never.npy"));
    expect_no_leftovers();
    if (access("/dev/full", W_OK) == 0) {
        CHECK(system("\"$MODEFOLD_COMMAND\" info >/dev/full 2>err.txt") != 0);
        read_text("err.txt", err_text);
        CHECK(strstr(err_text, "cannot write the standard output"));
    }
}

/* ---- JSON ---- */

static const char *skip_value(const char *at);

static const char *skip_space(const char *at)
{
    return at + strspn(at, " \n\t\r");
}

static const char *skip_string(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 32)
            return NULL;
        if (*at == '\\')
            at++;
    }
    return at + 1;
}

/* A list or an object. */
static const char *skip_group(const char *at)
{
    char close = *at == '[' ? ']' : '}';
    int object = *at == '{';
    at = skip_space(at + 1);
    if (*at == close)
        return at + 1;
    for (;;) {
        if (object) {
            at = skip_string(at);
            at = at ? skip_space(at) : NULL;
            if (!at || *at++ != ':')
                return NULL;
        }
        at = skip_value(skip_space(at));
        if (!at)
            return NULL;
        at = skip_space(at);
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
        at = skip_space(at);
    }
}

/* Past one JSON value; null when it is none. */
static const char *skip_value(const char *at)
{
    static const char *const words[] = {"true", "false", "null"};
    char *end;
    if (*at == '[' || *at == '{')
        return skip_group(at);
    if (*at == '"')
        return skip_string(at);
    for (int i = 0; i < 3; i++)
        if (!strncmp(at, words[i], strlen(words[i])))
            return at + strlen(words[i]);
    if (*at != '-' && (*at < '0' || *at > '9'))
        return NULL;
    strtod(at, &end);
    return end > at && end[-1] != '.' ? end : NULL;
}

static void expect_json(const char *arguments, const char *part)
{
    int status = run(arguments);
    const char *end = skip_value(skip_space(out_text));
    CHECK_MSG(status == 0 && end && !*skip_space(end) && strstr(out_text, part),
              "%s: status %d\n%s%sshould be JSON with %s", arguments, status, out_text, err_text, part);
}

static void test_json(void)
{
    expect_json("run 'ij->i' 'sum(a)' x.npy --json", "\"data\": [6, 15]");
    expect_json("run 'ij->i' 'sum(a)' x.npy --json", "\"shape\": [2], \"dtype\": \"f32\", \"file\": null");
    expect_json("run 'ij->ij' 'a>2' x.npy --json", "[[false, false, true], [true, true, true]]");
    expect_json("run 'i->i' 'a' odd.npy --json", "[0.5, \"inf\", -2, \"nan\"]");
    expect_json("run 'ij->' 'sum(a)' x.npy --json", "\"data\": 21");
    expect_json("run 'ij->ij' 'a' count.npy --json", "\"solver\": \"map\"");
    expect_json("run 'ij->i' 'sum(a); max(a)' x.npy -o s.npy -o m.npy --json", "\"file\": \"m.npy\"");
    expect_json("run 'ij->ij' 'a' empty.npy --json", "\"data\": []");
    expect_json("bench --json --seconds 0 --elements 4096 --rows seg32,calls --threads 1", "\"row\": \"seg32\"");
    expect_json("bench --json --seconds 0 'i->i | a\t+1 | a=i8[1000]'", "\"ratio\": ");
}

/* ---- the other subcommands ---- */

static void test_plan(void)
{
    expect_part("plan 'zyx->y' 'sum(a)' a=f32[512,8,4096]", "kept 8  reduced 512 4096");
    expect_part("plan 'ij->j' 'sum(a)' 'a=f32[10,20]:(1,10)' 'o=f64[20]'", "solver ");
    expect_part("plan 'ij->i' 'sum(a)' x.npy --solver reference", "solver reference");
    expect_part("plan '(i+j)->i' 'sum(a)' a=f32[100] --set j=3 --dtype f16", "solver ");
    expect_part("plan 'ij->i | sum(a) | a=f32[4,5]'", "reduced 5");
    expect_error("plan 'ij->i' 'sum(a)'", 2, "plan needs MODES, EXPRESSION and inputs, or one problem");
    expect_error("plan 'ij->i' 'sum(a)' a=f32[10", 2, "tensor a");
    expect_error("plan 'ij->i' 'sum(a)' a=f32[10]", 1, "operand a has 2 dimensions");
    expect_error("plan 'ij->i | sum(a)'", 2, "a problem is");
}

static void test_verify_command(void)
{
    expect_part("verify --count 30", "30 problems");
    expect_part("verify --count 20 --seed 5 --device cpu:1", "0 differences");
    expect_part("verify --seconds 0.2", "0 differences");
    expect_part("verify 'ij->i | sum(a) | a=f32[40,50]:(1,40) | data=wide'",
                "1 problem; compared with the reference: ");
    expect_part("verify 'ij->i | sum(a) | a=f32[40,50]' --solver reference", "reference 1");
    expect_part("verify 'i-> | mean(a) | a=f32[0]'", "rightly refused 1");
    CHECK(system("printf '# two\\n\\ni->i | a | a=f32[3]\\ni-> | sum(a) | a=f32[3]\\n' >problems.txt") == 0);
    expect_part("verify --file problems.txt", "2 problems");
    expect_part("verify --file - <problems.txt", "2 problems");
    CHECK(run("verify 'ij->i | sum(a) | a=f99[4]'") == 2 && strstr(err_text, "f99"));
    CHECK(run("verify --file none.txt") == 1 && strstr(err_text, "none.txt"));
    CHECK(run("verify --solver none") == 2 && strstr(err_text, "cpu has no solver \"none\""));
    expect_part("verify --solver log-exact 'ik,kj->ij | logsumexp(a+b) | a=f32[9,40] b=f32[40,11]'",
                "reference: log-exact, by its bound, 1\n");
    expect_part("verify --solver log-two-pass 'ik,kj->ij | logsumexp(a-b) | a=f32[9,40] b=f32[40,11] | data=special'",
                "reference: log-two-pass, by its bound, 1\n");
    expect_part("verify 'ik,kj->ij | logsumexp(a+b) | a=f64[9,40] b=f64[40,11] | solver=log-certified'",
                "reference: solvers by name, by their bounds, 1\n");
    expect_part("verify --solver direct 'ik,kj->ij | sum(a*b) | a=f32[9,40] b=f32[40,64]'",
                "reference: direct, by its bound, 1\n");
    expect_part("verify --solver log-exact 'ij->i | sum(a) | a=f32[4,5]'",
                "1 problem; solver log-exact was compared with the reference in none of them");
    CHECK(run("verify --solver log-fast --count 1") == 2 &&
          strstr(err_text, "solver \"log-fast\" adds in an order of its own, and verify has no bound for its errors"));
    CHECK(run("verify --count -3") == 2 && strstr(err_text, "--count takes a whole number from 0 on"));
    CHECK(system("echo 'i->i | a' >problems.txt") == 0);
    CHECK(run("verify --file problems.txt") == 1 && strstr(err_text, "problems.txt, problem 1: a problem is"));
}

static void test_other(void)
{
    static const char *const names[] = {"run", "plan", "verify", "bench", "demo", "info", "warm", "match"};
    expect_part("info", "\nreducers      sum prod");
    expect_part("info --device cpu:1", "cpu: 1 thread");
    expect_error("info --device none", 1, "there is no device \"none\"");
    expect_error("info now", 2, "info takes no \"now\"");
    expect_part("bench --seconds 0 --elements 8192 --rows small.2M,full", "ratio");
    expect_part("bench --seconds 0 'ij,j->ij | a+b | a=f32[100,100] b=f32[100]'", "(100,100) (100)");
    CHECK(run("bench --rows unknown") == 2 && strstr(err_text, "--rows takes all, reduce"));
    CHECK(run("bench --dtype f1") == 2 && strstr(err_text, "there is no type \"f1\""));
    expect_error("demo fast", 2, "demo takes no \"fast\"");
    expect_part("--version", "modefold 0.");
    expect_part("--help", "modefold run 'ij->i' 'sum(a)' x.npy");
    expect_error("fold", 2, "there is no subcommand \"fold\"");
    CHECK(run("") == 2);
    for (int i = 0; i < 7; i++) {
        char arguments[64], start[64];
        snprintf(arguments, sizeof arguments, "%s --help", names[i]);
        snprintf(start, sizeof start, "modefold %s ", names[i]);
        expect_part(arguments, start);
        snprintf(arguments, sizeof arguments, "help %s", names[i]);
        expect_part(arguments, start);
    }
}

/* ---- operations as text ---- */

#define AFFINE \
    "ordered affine(s, t): identity p = 1, q = 0; lift p = s, q = t; combine p = p1*p2, q = q1*p2+q2; finish q"
#define TOTAL "i64 bits(x): identity s = 0; lift s = x; combine s = s1 | s2"

static void test_define(void)
{
    expect("run 'ij,ij->i' 'affine(a*0+2,b)' x.npy x.npy --define '" AFFINE "'", "[11. 32.]\n");
    expect("run 'ij->' 'affine(2,a); bits(a)' x.npy --define='" AFFINE "' --define '" TOTAL "'",
           "affine(2,a)\n120.\n\nbits(a)\n7\n");
    expect_part("plan 'ij->i' 'affine(2,a)' a=f32[10,20] --define '" AFFINE "'", "solver inner");
    expect_part("plan 'ij->i | affine(2,a) | a=f32[10,20] | define=\"" AFFINE "\" seed=3'", "solver inner");
    expect_part("verify 'ij->i | bits(a|1); affine(2,a) | a=i8[10,20] | define=\"" AFFINE "\" define=\"" TOTAL "\"'",
                "inner 1, automatic choice 1\n");
    expect_part("verify --define '" TOTAL "' 'ij->i | bits(a) | a=i8[10,20]'", "0 differences");
    expect_part("bench --seconds 0 --define '" TOTAL "' 'ij->i | bits(a) | a=i8[10,20]'", "inner");
    expect_error("run 'ij->' 'two(a)' x.npy --define 'two(x): identity p = y'", 2,
                 "--define: operation two: identity uses \"y\" and has numbers only");
    expect_error("plan 'i-> | two(a) | a=f32[3] | define=two'", 2, "option define has no text in \"...\" at \"two\"");
    expect_error("plan 'i-> | two(a) | a=f32[3] | define=\"\"'", 2, "option define has no text");
    expect_error("plan 'i-> | two(a) | a=f32[3] | define=\"two'", 2, "a problem is MODES");
    expect_error("plan 'i-> | two(a) | a=f32[3] | define=\"two\"'", 2, "expected '(' at character 4");
    expect_error("plan 'i-> | a | a=f32[3] | define=\"a\" define=\"a\" define=\"a\" define=\"a\" define=\"a\"'", 2,
                 "up to 4 definitions");
}

/* The tiers of log-space products: by name, and counted. x has no row that fails. */
static void test_tier(void)
{
    expect_part("plan 'ik,kj->ij' 'logsumexp(a+b)' a=f32[8,9] b=f32[9,8] --tier exact", "solver log-exact");
    expect_part("plan 'ik,kj->ij' 'logsumexp(a+b)' a=f32[8,9] b=f32[9,8] --tier fast", "solver log-fast");
    expect_json("run 'ik,jk->ij' 'logsumexp(a+b)' x.npy x.npy --tier certified --json",
                "\"tiers\": {\"certified\": 4}");
    expect_json("run 'ik,jk->ij' 'logsumexp(a+b)' x.npy x.npy --tier exact --json", "\"tiers\": {\"exact\": 4}");
    expect_json("run 'ik,jk->ij' 'logsumexp(a+b)' x.npy x.npy --tier=fast --json", "\"tiers\": {\"unchecked\": 4}");
    expect_error("run 'ik,jk->ij' 'logsumexp(a+b)' x.npy x.npy --tier quick", 2,
                 "there is no tier \"quick\"; there are exact, certified and fast");
    expect_error("plan 'ij->i' 'sum(a)' a=f32[8,9] --tier fast --order-contract", 1, "ask for a tier and an order");
}

/* ---- GPUs ---- */

static void test_gpu(void)
{
    expect_part("info", "\nGPUs          cuda:0");
    expect_part("info", "\non a GPU      turned ");
    if (run("info --device opencl:0")) {
        expect_error("info --device opencl:0", 1, "OpenCL");
        check_skip("the command on opencl:0", err_text);
        return;
    }
    expect("run --device opencl:0 'ij->i' 'sum(a); argmax(a)' x.npy", "sum(a)\n[ 6. 15.]\n\nargmax(a)\n[2 2]\n");
    expect("run --device opencl:0 'ij->i' 'sum(a)' fortran.npy", "[ 6. 15.]\n");
    expect("run --device opencl:0 'ij->i' 'sum(a)' big_endian.npy", "[ 6. 15.]\n");
    expect("run --device opencl:0 'ij->j' 'sum(a)' empty.npy", "[0. 0. 0.]\n");
    expect("run --device opencl:0 'ij->ij' 'a*2' x.npy -o there.npy", "");
    expect("run 'ij->' 'sum(a)' there.npy", "42.\n");
    expect_json("run --device opencl:0 'ij->i' 'sum(a)' x.npy --json", "\"device\": \"opencl:0: ");
    expect_error("run --device opencl:0 'ij->i' 'sum(a)' x.npy --solver outer", 1,
                 "there is no solver \"outer\"; there are turned map ordered contract-near contract contract-arg");
    expect_error("run --device opencl:0 'ij->i' 'sum(a)' x.npy --solver map", 1, "solver map does not apply");
    expect_error("run --device opencl:0 'ij->j' 'mean(a)' empty.npy", 1, "mean of no elements");
    expect_error("run --device opencl:200 'ij->j' 'mean(a)' x.npy", 1, "there is no OpenCL device 200");
    expect_part("plan --device opencl:0 'ij->i' 'sum(a)' a=f32[10,20] o=f32[10]", "solver rows");
    expect_part("plan --device opencl:0 'ij->i' 'sum(a)' x.npy", "solver ");
    expect_part("verify --device opencl:0 'ij->i | sum(a) | a=f32[10,20]'", "automatic choice 1\n");
    expect_part("verify --device opencl:0 --solver rows 'ij->i | sum(a) | a=f32[10,20]'", "reference: rows 1\n");
    expect_part("verify --device opencl:0 --solver log-exact 'ik,kj->ij | logsumexp(a+b) | a=f32[9,40] b=f32[40,11]'",
                "reference: log-exact, by its bound, 1\n");
    expect_error("plan --device opencl:0 --solver log-exact:bad 'ik,kj->ij' 'logsumexp(a+b)' a=f32[9,40] b=f32[40,11]",
                 1, "solver log-exact has no form \"bad\"");
    CHECK(run("verify --device opencl:0 --solver cublas") == 2 && strstr(err_text, "verify has no bound"));
    CHECK(run("verify --device opencl:0 --solver outer") == 2 && strstr(err_text, "opencl:0 has no solver \"outer\""));
    expect_part("bench --device opencl:0 --seconds 0 'ij->i | sum(a) | a=f32[10,20]'", " -      -  -             rows");
    expect_json("bench --device opencl:0 --seconds 0 --json 'ij->i | sum(a) | a=f32[10,20]'", "\"ratio\": null");
    expect_json("bench --device opencl:0 --seconds 0 --json --limit copy 'ij->i | sum(a) | a=f32[10,20]'",
                "\"limit\": \"own copy\"");
    CHECK(run("bench --device opencl:0 --limit read") == 2 && strstr(err_text, "on a GPU the only limit is copy"));
}

static void test_warm(void)
{
    expect_error("warm", 2, "warm needs --arch");
    if (run("info --device sm:90")) {
        expect_error("warm --arch sm_90", 1, "the CUDA compiler, libnvrtc.so, was not found");
        check_skip("modefold warm", err_text);
        return;
    }
    expect_error("warm --arch sm_90,ninety", 2, "--arch takes architectures like sm_90,sm_100");
    expect_error("warm --arch sm_13", 1, "does not compile for sm_13");
    expect_part("warm --arch 90 'ij->i' 'sum(a)' a=f32[30,40]", "1 kernel for 1 architecture, ");
    expect_part("warm --arch sm_90,sm_80 'ij->i | sum(a) | a=f32[30,40]' 'ij->i | sum(a) | a=f32[50,40]'",
                "2 kernels for 2 architectures, ");
    CHECK(system("test $(ls \"$MODEFOLD_CACHE\" | wc -l) -ge 2") == 0);
    CHECK(run("warm --arch sm_90 'ij->i | sum(a | a=f32[3,4]' 'i->i | a | a=f32[3]'") == 1 &&
          strstr(err_text, "expected ','") &&
          strstr(out_text, "1 kernel for 1 architecture, 0 spilled, 1 problem failed"));
    setenv("MODEFOLD_CACHE", "off", 1);
    CHECK(run("warm --strict --arch sm_90 'i->i | a | a=f32[3]'") == 1 && strstr(err_text, "switches the cache off"));
}

static void test_match(void)
{
    static const uint32_t q[3] = {0, 1, 255}, t[4] = {1, 0, 7, 254};
    static const unsigned char mask[4] = {0, 1, 1, 1};
    static const float halves[2] = {0.5f, 0.5f};
    write_npy("q.npy", 1, "<u4", 0, "3, 1", q, sizeof q);
    write_npy("t.npy", 1, "<u4", 0, "4, 1", t, sizeof t);
    write_npy("mask.npy", 1, "|b1", 0, "4,", mask, sizeof mask);
    write_npy("halves.npy", 1, "<f4", 0, "2, 1", halves, sizeof halves);
    expect("match q.npy t.npy", "[[0 1 0]\n [1 0 0]\n [2 3 1]]\n");
    expect("match q.npy t.npy --train-mask mask.npy", "[[0 1 0]\n [1 1 1]\n [2 3 1]]\n");
    expect("match q.npy t.npy --train-mask mask.npy --cross-check", "[[0 1 0]\n [2 3 1]]\n");
    expect("match q.npy t.npy --difference 4", "[[2 3 1]]\n");
    expect("match q.npy t.npy --max-distance 0 --threads 1", "[[0 1 0]\n [1 0 0]]\n");
    expect("match q.npy t.npy --ratio 0.1", "[[0 1 0]\n [1 0 0]]\n");
    expect("match q.npy t.npy -o m.npy --indices i.npy --distances d.npy --k 3", "");
    expect("run 'ij->ij' a m.npy", "[[0 1 0]\n [1 0 0]\n [2 3 1]]\n");
    expect("run 'ij->ij' a i.npy", "[[1 0 2]\n [0 1 2]\n [3 2 0]]\n");
    expect("run 'ij->ij' a d.npy", "[[0 1 3]\n [0 1 2]\n [1 5 7]]\n");
    expect_json("match q.npy t.npy --json", "\"matches\": 3");
    expect_error("match q.npy", 2, "match needs QUERIES and TRAIN");
    expect_error("match q.npy t.npy --k 17", 2, "--k takes 1 to 16, not 17");
    expect_error("match q.npy none.npy", 1, "none.npy");
    expect_error("match q.npy row.npy", 1, "row.npy has 1 dimensions and TRAIN wants 2");
    expect_error("match q.npy halves.npy", 1, "train has DLPack type code 2");
    expect_error("match q.npy t.npy --query-mask mask.npy", 1, "query_mask has size 4 and there are 3 queries");
    expect_error("match q.npy t.npy --solver popc", 1, "the CPU has no choice");
    expect_error("match q.npy t.npy --ratio 2", 1, "ratio 2");
    expect_no_leftovers();
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    if (!getenv("MODEFOLD_COMMAND")) {
        check_skip("test_cli", "MODEFOLD_COMMAND is not set");
        return check_done("test_cli");
    }
    snprintf(folder, sizeof folder, "%s/modefold_cli.XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder) || chdir(folder)) {
        perror(folder);
        return 1;
    }
    gpu_test_environment("kernels");
    write_files();
    test_run();
    test_files();
    test_run_errors();
    test_json();
    test_plan();
    test_verify_command();
    test_other();
    test_define();
    test_tier();
    test_gpu();
    test_warm();
    test_match();
    char line[300];
    snprintf(line, sizeof line, "rm -rf '%s'", folder);
    CHECK(chdir("/") == 0 && system(line) == 0);
    return check_done("test_cli");
}
