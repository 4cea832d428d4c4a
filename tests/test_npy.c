/* Array files: .npy headers good and bad built byte by byte, round trips with real NumPy, pictures, and outputs that
 * appear whole or not at all. Needs cli/npy.c, cli/array.c and cli/picture.c. */
#define _DEFAULT_SOURCE
#define _XOPEN_SOURCE 700

#include "check.h"

#include "../cli/array.h"
#include "../cli/npy.h"
#include "../cli/picture.h"
#include "../src/types.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { IMAGE_MAX = 1 << 20, PATH_SIZE = 256 };

static char folder[64], error[1024]; /* ours, removed at the end; of the call just made */

#define LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)

static char *path_of(const char *name)
{
    static char paths[4][PATH_SIZE];
    static int turn;
    char *path = paths[turn++ % 4];
    snprintf(path, PATH_SIZE, "%s/%s", folder, name);
    return path;
}

static int says(const char *wanted)
{
    return CHECK_MSG(strstr(error, wanted) != NULL, "the message is\n  %s\nbut should hold\n  %s", error, wanted);
}

static void write_file(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
}

static size_t read_file(const char *path, unsigned char *bytes, size_t size)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return 0;
    const size_t got = fread(bytes, 1, size, f);
    fclose(f);
    return got;
}

/* A .npy image: preamble of that version, the text as it is, then data_bytes zeros. Returns its size. */
static size_t make_image(unsigned char *image, int version, const char *text, size_t data_bytes)
{
    const size_t preamble = version == 1 ? 10 : 12, length = strlen(text);
    memset(image, 0, preamble + length + data_bytes);
    memcpy(image, "\x93NUMPY", 6);
    image[6] = (unsigned char)version;
    image[8] = (unsigned char)(length & 255);
    image[9] = (unsigned char)(length >> 8);
    memcpy(image + preamble, text, length);
    return preamble + length + data_bytes;
}

/* Parses a copy that ends where an overrun is seen by the sanitizers. */
static int parse(const unsigned char *image, size_t size, struct npy_header *header)
{
    unsigned char *copy = malloc(size ? size : 1);
    memcpy(copy, image, size);
    error[0] = 0;
    const int status = npy_parse(copy, size, header, error, sizeof error);
    free(copy);
    return status;
}

/* ---- Malformed ---- */

#define REST "'fortran_order': False, 'shape': (2,)}"
#define SHAPE "{'descr': '<f4', 'fortran_order': False, 'shape': "
#define LONGS10 "1,1,1,1,1,1,1,1,1,1,"

static const struct {
    const char *text;
    size_t data_bytes;
    const char *message;
} bad_headers[] = {
    {"", 0, "the header ends where the header's '{' is expected"},
    {"[1]", 0, "the header's '{' is expected, found \"[1]\""},
    {"{", 0, "the header ends where a key in quotes or '}' is expected"},
    {"{}", 0, "the header lacks the key 'descr'"},
    {"{,}", 0, "a key in quotes or '}' is expected, found \",}\""},
    {"{descr: '<f4'}", 0, "a key in quotes or '}' is expected, found \"descr: '<f4'}\""},
    {"{'descr", 0, "string \"descr\" is not closed"},
    {"{'de\\x73cr': 1}", 0, "string \"de\" has an escape"},
    {"{'descr': '<f4' " REST, 8, "',' or '}' is expected, found \"'fortran_order': False, "},
    {"{'descr': '<f4',, " REST, 8, "a key in quotes or '}' is expected, found \", 'fortran"},
    {"{'descr': '<f4', 'fortran_order': False}", 0, "the header lacks the key 'shape'"},
    {"{'descr': '<f4', 'shape': (2,)}", 8, "the header lacks the key 'fortran_order'"},
    {"{" REST, 8, "the header lacks the key 'descr'"},
    {"{'descr': '<f4', 'descr': '<f4', " REST, 8, "the header has the key 'descr' twice"},
    {"{'\x1b[31m\xc3\xa9': 1}", 0,
     "the header has the unknown key '?[31m?"
     "?'"},
    {"{'a key that is much too long to be shown': 1}", 0, "unknown key 'a key that is much too l...'"},
    {"{'descr': '<f4', " REST " x", 8, "nothing after '}' is expected, found \"x\""},
    {"{'descr': <f4, " REST, 8, "a string for descr is expected, found \"<f4, "},
    {"{'descr': [('a', '<f4'), ('b', '<i2')], " REST, 8, "descr [('a', '<f4'), ('b', '<i... is a structured type"},
    {"{'descr': ('<f4', (2,)), " REST, 8, "descr ('<f4', (2,)), 'fortran_... is a structured type"},
    {"{'descr': '', " REST, 8, "descr '' does not begin with a byte order"},
    {"{'descr': 'f4', " REST, 8, "descr 'f4' does not begin with a byte order (one of < > | =)"},
    {"{'descr': '|f4', " REST, 8, "descr '|f4' leaves the byte order open"},
    {"{'descr': '<c8', " REST, 16, "descr '<c8' stands for complex numbers, not read here (b1"},
    {"{'descr': '|O', " REST, 16, "descr '|O' stands for Python objects, not read here (b1"},
    {"{'descr': '|S5', " REST, 10, "descr '|S5' stands for byte strings"},
    {"{'descr': '<M8[ns]', " REST, 16, "descr '<M8[ns]' stands for dates"},
    {"{'descr': '<m8[s]', " REST, 16, "descr '<m8[s]' stands for time spans"},
    {"{'descr': '|V4', " REST, 8, "descr '|V4' stands for raw bytes"},
    {"{'descr': '<f16', " REST, 32, "descr '<f16' stands for a float size"},
    {"{'descr': '<i3', " REST, 6, "descr '<i3' stands for an integer size"},
    {"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", 8, "True or False for fortran_order is expected"},
    {"{'descr': '<f4', 'fortran_order': false, 'shape': (2,)}", 8, "fortran_order is expected, found \"false"},
    {SHAPE "2}", 8, "the shape's '(' is expected, found \"2}\""},
    {SHAPE "(2)}", 8, "one length alone is no tuple"},
    {SHAPE "(,)}", 8, "a length or ')' is expected, found \",)}\""},
    {SHAPE "(2,,2)}", 16, "a length or ')' is expected, found \",2)}\""},
    {SHAPE "(2 2)}", 16, "',' or ')' in the shape is expected, found \"2)"},
    {SHAPE "(-1,)}", 8, "a length of at least 0 is expected, found \"-1,)"},
    {SHAPE "(02,)}", 8, "the length 02 in the shape begins with 0"},
    {SHAPE "(9223372036854775808,)}", 8, "the length 9223372036854775808 in the shape needs more than 63 bits"},
    {SHAPE "(4294967296, 4294967296)}", 0, "shape 4294967296 x 4294967296 of f4 is too large to count its bytes"},
    {"{'descr': '<f8', 'fortran_order': True, 'shape': (4611686018427387904,)}", 0, "too large to count its bytes"},
    {SHAPE "(" LONGS10 LONGS10 LONGS10 "1,1,1)}", 4, "the shape has more than 32 lengths"},
    {SHAPE "(10, 100)}", 3000, "header says 4000 bytes of data (shape 10 x 100, f4) but the file has 3000 after it"},
    {SHAPE "(10, 100)}", 4001, "but the file has 4001 after it"},
    {SHAPE "()}", 0, "4 bytes of data (shape (), f4)"},
    {SHAPE "(2305843009213693951,)}", 0, "9223372036854775804 bytes"},
};

static void test_bad_headers(void)
{
    static unsigned char image[8192];
    struct npy_header header;
    for (size_t i = 0; i < sizeof bad_headers / sizeof bad_headers[0]; i++)
        for (int version = 1; version <= 3; version++) {
            const size_t size = make_image(image, version, bad_headers[i].text, bad_headers[i].data_bytes);
            if (CHECK_MSG(parse(image, size, &header) == 1, "accepted: %s", bad_headers[i].text))
                says(bad_headers[i].message);
        }
}

static const struct {
    size_t size;
    const char *bytes, *message;
} bad_preambles[] = {
    {0, "", "it does not begin with \\x93NUMPY"},
    {10, "\x93NUMPZ\1\0\0\0", "it does not begin with \\x93NUMPY"},
    {6, "\x93NUMPY", "the file ends after 6 bytes, inside the first 12"},
    {7, "\x93NUMPY\1", "the file ends after 7 bytes, inside the first 10"},
    {9, "\x93NUMPY\1\0\5", "the file ends after 9 bytes, inside the first 10"},
    {12, "\x93NUMPY\4\0\0\0\0\0", "format version 4.0 is not known"},
    {8, "\x93NUMPY\xff\xff", "format version 255.255 is not known"},
    {10, "\x93NUMPY\1\0\1\0", "the header says it is 1 bytes long but the file has 0 for it"},
    {12, "\x93NUMPY\2\0\xff\xff\xff\xff", "the header says it is 4294967295 bytes long but the file has 0 for it"},
};

static void test_bad_preambles(void)
{
    static unsigned char image[512];
    struct npy_header header;
    for (size_t i = 0; i < sizeof bad_preambles / sizeof bad_preambles[0]; i++)
        if (CHECK(parse((const unsigned char *)bad_preambles[i].bytes, bad_preambles[i].size, &header) == 1))
            says(bad_preambles[i].message);
    /* Every proper beginning of a good file is an error with words. */
    const size_t size = make_image(image, 1, "{'descr': '<i2', " REST "\n", 4);
    for (size_t cut = 0; cut < size; cut++)
        CHECK(parse(image, cut, &header) == 1 && error[0]);
    CHECK(parse(image, size, &header) == 0);
    memset(error, '#', sizeof error); /* a short buffer for the message is filled and closed */
    CHECK(npy_parse(image, 3, &header, error, 12) == 1 && strlen(error) == 11 && error[12] == '#');
}

static const struct {
    const char *text;
    int ndim;
    size_t data_bytes;
} good_headers[] = {
    {"{'descr': '<i2', 'fortran_order': False, 'shape': (2,)}", 1, 4},
    {"{'descr':'<i2','fortran_order':False,'shape':(2,),}\n", 1, 4},
    {" \t{ \"shape\" : ( 2 , 3 , ) , \"fortran_order\" : True , \"descr\" : \"<i2\" , } \n  \n", 2, 12},
    {"{'shape': (3L, 4L), 'fortran_order': False, 'descr': '>f8'}", 2, 96},
    {"{'descr': '=u4', 'fortran_order': False, 'shape': ()}", 0, 4},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}", 1, 0},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (1000000, 0, 1000000)}", 3, 0},
    {"{'descr': '<f4', 'fortran_order': True, 'shape': (" LONGS10 LONGS10 LONGS10 "1,3)}", 32, 12},
};

static void test_good_headers(void)
{
    static unsigned char image[1024];
    struct npy_header header;
    for (size_t i = 0; i < sizeof good_headers / sizeof good_headers[0]; i++)
        for (int version = 1; version <= 3; version++) {
            const size_t size = make_image(image, version, good_headers[i].text, good_headers[i].data_bytes);
            if (!CHECK_MSG(parse(image, size, &header) == 0, "%s: %s", good_headers[i].text, error))
                continue;
            CHECK(header.ndim == good_headers[i].ndim && header.data_bytes == good_headers[i].data_bytes);
            CHECK(header.data_offset == size - good_headers[i].data_bytes);
        }
}

static const struct {
    const char *descr;
    int code, bits;
} descrs[] = {
    {"b1", MF_DL_BOOL, 8},    {"i1", MF_DL_INT, 8},     {"i2", MF_DL_INT, 16},    {"i4", MF_DL_INT, 32},
    {"i8", MF_DL_INT, 64},    {"u1", MF_DL_UINT, 8},    {"u2", MF_DL_UINT, 16},   {"u4", MF_DL_UINT, 32},
    {"u8", MF_DL_UINT, 64},   {"f2", MF_DL_FLOAT, 16},  {"f4", MF_DL_FLOAT, 32},  {"f8", MF_DL_FLOAT, 64},
    {"V2", MF_DL_BFLOAT, 16}, {"V1", MF_DL_F8_E4M3, 8}, {"f1", MF_DL_F8_E5M2, 8},
};
enum { DESCRS = sizeof descrs / sizeof descrs[0] };

static int64_t count_of(const DLTensor *t)
{
    int64_t count = 1;
    for (int d = 0; d < t->ndim; d++)
        count *= t->shape[d];
    return count;
}

/* Where the n-th element in C order lies. */
static const unsigned char *element(const DLTensor *t, int64_t n)
{
    int64_t at = 0;
    for (int d = t->ndim - 1; d >= 0; d--) {
        at += n % t->shape[d] * t->strides[d];
        n /= t->shape[d];
    }
    return (const unsigned char *)t->data + at * (t->dtype.bits / 8);
}

static unsigned char pattern(int64_t n, int byte)
{
    return (unsigned char)(n * 37 + byte * 101 + 5);
}

static bool is_pattern(const DLTensor *t)
{
    bool same = true;
    const int item = t->dtype.bits / 8;
    for (int64_t n = 0; n < count_of(t); n++)
        for (int b = 0; b < item; b++)
            same = same && element(t, n)[b] == pattern(n, b);
    return same;
}

/* A 2 x 3 x 5 file of that type, order of axes and of bytes, with blanks before the data, opened and compared. */
static void check_layout(int which, char order, bool fortran, int version, int blanks)
{
    static unsigned char image[4096];
    char text[256];
    const int item = descrs[which].bits / 8;
    const bool swapped = order == (LITTLE ? '>' : '<');
    snprintf(text, sizeof text, "{'descr': '%c%s', 'fortran_order': %s, 'shape': (2, 3, 5)}%*s", order,
             descrs[which].descr, fortran ? "True" : "False", blanks, "\n");
    const size_t data_bytes = 30 * (size_t)item, size = make_image(image, version, text, data_bytes);
    for (int n = 0; n < 30; n++) {
        const int i = n / 15, j = n / 5 % 3, k = n % 5, place = fortran ? i + 2 * (j + 3 * k) : n;
        for (int b = 0; b < item; b++)
            image[size - data_bytes + (size_t)(place * item + (swapped ? item - 1 - b : b))] = pattern(n, b);
    }
    write_file(path_of("layout.npy"), image, size);
    struct npy npy;
    if (!CHECK_MSG(npy_open(path_of("layout.npy"), &npy, error, sizeof error) == 0, "%s", error))
        return;
    CHECK(npy.tensor.ndim == 3 && npy.shape[0] == 2 && npy.shape[1] == 3 && npy.shape[2] == 5);
    CHECK(npy.tensor.dtype.code == descrs[which].code && npy.tensor.dtype.bits == descrs[which].bits);
    CHECK(npy.strides[0] == (fortran ? 1 : 15) && npy.strides[2] == (fortran ? 6 : 1));
    CHECK((uintptr_t)npy.tensor.data % (size_t)item == 0);
    CHECK_MSG(is_pattern(&npy.tensor), "%s version %d", text, version);
    /* Native and aligned: the tensor is the map of the file, not a copy. */
    CHECK((npy.bytes.size == size) == ((!swapped || item == 1) && (size - data_bytes) % (size_t)item == 0));
    npy_close(&npy);
}

static void test_layouts(void)
{
    for (int which = 0; which < DESCRS; which++)
        for (int i = 0; i < 2 * 2 * 3 * 9; i++) /* every order of axes and bytes, version and alignment */
            check_layout(which, "<>"[i & 1], i & 2, i / 4 % 3 + 1, i / 12 + 1);
    check_layout(0, '|', false, 1, 1);
}

/* Creates a file of that type and shape and fills it with the pattern; commits if told. */
static int create_pattern(const char *path, DLDataType dtype, int ndim, const int64_t *shape, bool commit)
{
    struct npy npy;
    if (npy_create(path, dtype, ndim, shape, &npy, error, sizeof error))
        return 1;
    unsigned char *data = npy.tensor.data;
    const int item = dtype.bits / 8;
    CHECK((uintptr_t)data % 64 == 0);
    for (int64_t n = 0; n < count_of(&npy.tensor); n++)
        for (int b = 0; b < item; b++)
            *data++ = pattern(n, b);
    const int status = commit && npy_commit(&npy, error, sizeof error);
    npy_discard(&npy);
    npy_close(&npy);
    return status;
}

static bool is_shaped(const DLTensor *t, DLDataType dtype, int ndim, const int64_t *shape)
{
    bool same = t->ndim == ndim && t->dtype.code == dtype.code && t->dtype.bits == dtype.bits && t->dtype.lanes == 1;
    for (int d = 0; same && d < ndim; d++)
        same = t->shape[d] == shape[d];
    return same;
}

static bool opens_as_pattern(const char *path, DLDataType dtype, int ndim, const int64_t *shape)
{
    struct npy npy;
    if (npy_open(path, &npy, error, sizeof error))
        return false;
    const bool same = is_shaped(&npy.tensor, dtype, ndim, shape) && is_pattern(&npy.tensor);
    npy_close(&npy);
    return same;
}

static const DLDataType F32 = {MF_DL_FLOAT, 32, 1}, U8 = {MF_DL_UINT, 8, 1};

static void test_round_trips(void)
{
    int64_t shape[NPY_MAX_RANK];
    for (int d = 0; d < NPY_MAX_RANK; d++)
        shape[d] = d % 7 == 3 ? 2 : 1;
    for (int which = 0; which < DESCRS; which++)
        for (int ndim = 0; ndim <= NPY_MAX_RANK; ndim++) {
            const DLDataType dtype = {(uint8_t)descrs[which].code, (uint8_t)descrs[which].bits, 1};
            CHECK_MSG(create_pattern(path_of("round.npy"), dtype, ndim, shape, true) == 0, "%s", error);
            CHECK(opens_as_pattern(path_of("round.npy"), dtype, ndim, shape));
        }
    const int64_t empty[] = {3, 0, 5};
    CHECK(create_pattern(path_of("empty.npy"), F32, 3, empty, true) == 0);
    CHECK(opens_as_pattern(path_of("empty.npy"), F32, 3, empty));
    const int64_t huge[] = {INT64_MAX, INT64_MAX}, negative[] = {2, -1};
    CHECK(create_pattern(path_of("no.npy"), F32, 2, huge, true) && says("too large to count its bytes"));
    CHECK(create_pattern(path_of("no.npy"), U8, 1, huge, true) && says("too large to count its bytes"));
    CHECK(create_pattern(path_of("no.npy"), U8, 1, (int64_t[]){INT64_MAX / 4}, true) && says("no room for"));
    CHECK(create_pattern(path_of("no.npy"), F32, 2, negative, true) && says("shape 2 x -1 has a negative length"));
    CHECK(create_pattern(path_of("no.npy"), F32, 33, shape, true) && says("rank 33, but .npy holds 0 to 32"));
    CHECK(create_pattern(path_of("no.npy"), (DLDataType){5, 64, 1}, 1, shape, true) && says("DLPack code 5, 64 bits"));
    CHECK(create_pattern(path_of("none/no.npy"), F32, 1, shape, true) && says("cannot be created: No such file"));
    CHECK(create_pattern(folder, F32, 1, shape, true) && says("cannot be created: Is a directory"));
    CHECK(access(path_of("no.npy"), F_OK) != 0);
}

static void test_all_or_nothing(void)
{
    const int64_t shape[] = {100, 3};
    char left[64];
    snprintf(left, sizeof left, "up.npy.tmp.%ld", (long)getpid());
    CHECK(create_pattern(path_of("up.npy"), F32, 2, shape, false) == 0);
    CHECK(access(path_of("up.npy"), F_OK) != 0 && access(path_of(left), F_OK) != 0);
    write_file(path_of("old.npy"), "old", 3);
    CHECK(symlink("old.npy", path_of("link.npy")) == 0);
    CHECK(create_pattern(path_of("link.npy"), F32, 2, shape, false) == 0);
    unsigned char kept[8];
    CHECK(read_file(path_of("old.npy"), kept, 8) == 3 && memcmp(kept, "old", 3) == 0);
    CHECK(create_pattern(path_of("link.npy"), F32, 2, shape, true) == 0); /* replaces what the link leads to */
    struct stat info;
    CHECK(lstat(path_of("link.npy"), &info) == 0 && S_ISLNK(info.st_mode));
    CHECK(opens_as_pattern(path_of("old.npy"), F32, 2, shape));
    CHECK(create_pattern("/dev/null", F32, 2, shape, true) == 0); /* written to, not replaced */
    CHECK(stat("/dev/null", &info) == 0 && S_ISCHR(info.st_mode));
    if (access("/dev/full", W_OK) == 0)
        CHECK(create_pattern("/dev/full", F32, 2, shape, true) && says("/dev/full: cannot be written: No space left"));
    /* A temporary of the same name is somebody's: refused, and left there. */
    write_file(path_of(left), "x", 1);
    CHECK(create_pattern(path_of("up.npy"), F32, 2, shape, true) && says("File exists"));
    CHECK(access(path_of(left), F_OK) == 0);
}

static void test_streams(void)
{
    const int64_t shape[] = {300, 1000}; /* more than a pipe holds */
    int ends[2];
    const char *const names[] = {"-", "/dev/stdin"};
    const int saved = dup(STDIN_FILENO);
    for (int i = 0; i < 2; i++) {
        CHECK(pipe(ends) == 0);
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            dup2(ends[1], STDOUT_FILENO);
            close(ends[0]);
            _exit(create_pattern(i == 0 ? "-" : "/dev/stdout", F32, 2, shape, true));
        }
        close(ends[1]);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        CHECK_MSG(opens_as_pattern(names[i], F32, 2, shape), "%s: %s", names[i], error);
        int status = 1;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    dup2(saved, STDIN_FILENO);
    close(saved);
    struct npy npy;
    CHECK(npy_open(path_of("missing.npy"), &npy, error, sizeof error) == 1 && says("cannot be opened: No"));
    CHECK(npy_open(folder, &npy, error, sizeof error) == 1 && says("cannot be read: Is a directory"));
    CHECK(npy_open("/dev/null", &npy, error, sizeof error) == 1 && says("/dev/null: it does not begin with"));
}

static const char script[] =
    "import sys, itertools, numpy as np\n"
    "what, folder = sys.argv[1:]\n"
    "codes = {'b1': (6, 8), 'V2': (4, 16), 'V1': (10, 8), 'f2': (2, 16), 'f4': (2, 32), 'f8': (2, 64)}\n"
    "for s in (1, 2, 4, 8): codes.update({f'i{s}': (0, 8 * s), f'u{s}': (1, 8 * s)})\n"
    "shapes = [(), (1,), (7,), (0,), (3, 0, 2), (3, 4), (2, 3, 5), (1, 1, 6, 1), (2,) * 7, (1,) * 29 + (2, 1, 3)]\n"
    "index = open(folder + '/index', 'a')\n"
    "cases = itertools.product(codes, '<>', 'CF', [(1, 0), (2, 0), (3, 0)], shapes)\n"
    "for number, (t, order, layout, version, shape) in enumerate(cases):\n"
    "    name, size = f'{folder}/{number}', int(np.prod(shape, dtype=int)) * int(t[1])\n"
    "    raw = np.random.default_rng(number).integers(0, 2 if t == 'b1' else 256, size, dtype=np.uint8)\n"
    "    a = np.frombuffer(raw.tobytes(), np.dtype('=' + t)).reshape(shape)\n"
    "    if what == 'write':\n"
    "        b = np.asarray(a if t[0] == 'V' else a.astype(order + t), order=layout)\n"
    "        with open(name + '.npy', 'wb') as f: np.lib.format.write_array(f, b, version=version)\n"
    "        raw.tofile(name + '.raw')\n"
    "        print(number, *codes[t], len(shape), *shape, file=index)\n"
    "        continue\n"
    "    b = np.load(name + '.out.npy')\n"
    "    assert b.shape == shape and b.dtype == a.dtype and b.flags.c_contiguous, (name, b.dtype, b.shape)\n"
    "    assert b.tobytes() == a.tobytes() and np.load(name + '.out.npy', mmap_mode='r').offset % 64 == 0, name\n";

static int run_python(const char *what)
{
    char command[256];
    fflush(NULL);
    snprintf(command, sizeof command, "/usr/bin/python3 %s/script.py %s %s", folder, what, folder);
    return system(command);
}

/* Reads NumPy's file, compares it with the raw bytes in C order, and writes it again for NumPy. */
static void check_numpy_file(int number, DLDataType dtype, int ndim, const int64_t *shape)
{
    static unsigned char raw[4096];
    char name[64];
    struct npy in, out;
    snprintf(name, sizeof name, "%d.raw", number);
    const size_t size = read_file(path_of(name), raw, sizeof raw), item = dtype.bits / 8;
    snprintf(name, sizeof name, "%d.npy", number);
    if (!CHECK_MSG(npy_open(path_of(name), &in, error, sizeof error) == 0, "%s", error))
        return;
    bool same = is_shaped(&in.tensor, dtype, ndim, shape) && (size_t)count_of(&in.tensor) * item == size;
    snprintf(name, sizeof name, "%d.out.npy", number);
    CHECK(npy_create(path_of(name), dtype, ndim, shape, &out, error, sizeof error) == 0);
    for (size_t n = 0; same && n < size / item; n++) {
        same = memcmp(element(&in.tensor, (int64_t)n), raw + n * item, item) == 0;
        memcpy((unsigned char *)out.tensor.data + n * item, element(&in.tensor, (int64_t)n), item);
    }
    CHECK_MSG(same, "NumPy's file %d", number);
    CHECK(npy_commit(&out, error, sizeof error) == 0);
    npy_close(&out);
    npy_close(&in);
}

static void test_numpy(void)
{
    if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
        check_skip("round trip with NumPy", "/usr/bin/python3 has no numpy");
        return;
    }
    write_file(path_of("script.py"), script, sizeof script - 1);
    if (!CHECK(run_python("write") == 0))
        return;
    FILE *index = fopen(path_of("index"), "r");
    int number, code, bits, ndim, files = 0;
    while (index && fscanf(index, "%d %d %d %d", &number, &code, &bits, &ndim) == 4) {
        int64_t shape[NPY_MAX_RANK];
        long long length = 0;
        for (int d = 0; d < ndim && fscanf(index, "%lld", &length) == 1; d++)
            shape[d] = length;
        check_numpy_file(number, (DLDataType){(uint8_t)code, (uint8_t)bits, 1}, ndim, shape);
        files++;
    }
    if (CHECK(index != NULL))
        fclose(index);
    CHECK_MSG(files == 14 * 2 * 2 * 3 * 10, "%d files", files);
    CHECK(run_python("check") == 0);
}

/* ---- Pictures, and the entry for both ---- */

static void test_pictures(void)
{
    struct array array;
    for (int channels = 0; channels <= 4; channels++) { /* 0: no third axis */
        const int64_t shape[] = {5, 7, channels};
        const int ndim = channels ? 3 : 2;
        const char *path = path_of("picture.PNG");
        if (!CHECK_MSG(array_create(path, U8, ndim, shape, &array, error, sizeof error) == 0, "%s", error))
            return;
        unsigned char *pixels = array.tensor->data;
        for (int64_t n = 0; n < count_of(array.tensor); n++)
            pixels[n] = pattern(n, 0);
        CHECK(array_commit(&array, error, sizeof error) == 0);
        array_close(&array);
        if (!CHECK_MSG(array_open(path, &array, error, sizeof error) == 0, "%s", error))
            return;
        CHECK(array.picture && array.tensor->ndim == 3 && array.tensor->shape[0] == 5 && array.tensor->shape[1] == 7);
        CHECK(array.tensor->shape[2] == (channels ? channels : 1) && is_pattern(array.tensor));
        array_close(&array);
    }
    const int64_t wrong[] = {5, 7, 5}, big[] = {40000, 40000};
    CHECK(array_create(path_of("a.png"), F32, 2, big, &array, error, sizeof error) && says("a PNG holds u8, not"));
    CHECK(array_create(path_of("a.png"), U8, 3, wrong, &array, error, sizeof error) && says("the shape is 5 x 7 x 5"));
    CHECK(array_create(path_of("a.png"), U8, 1, wrong, &array, error, sizeof error) && says("but the shape is 5"));
    CHECK(array_create(path_of("a.png"), U8, 2, big, &array, error, sizeof error) && says("PNG files of at most"));
    CHECK(array_create(path_of("a.jpg"), U8, 2, wrong, &array, error, sizeof error) && says("JPEG is only read"));
    unsigned char png[1024];
    const size_t size = read_file(path_of("picture.PNG"), png, sizeof png);
    for (size_t cut = 8; cut + 16 < size; cut += 3) {
        write_file(path_of("cut.png"), png, cut);
        CHECK(array_open(path_of("cut.png"), &array, error, sizeof error) == 1 && says("cut.png: "));
    }
    png[24] = 16; /* bits a sample, in IHDR */
    write_file(path_of("cut.png"), png, size);
    CHECK(array_open(path_of("cut.png"), &array, error, sizeof error) == 1 && says("16 bits a sample"));
    memcpy(png + 16, "\0\0\x4f\xff\0\0\x4f\xff\x08\0", 10); /* gray, and too large */
    write_file(path_of("cut.png"), png, size);
    CHECK(array_open(path_of("cut.png"), &array, error, sizeof error) == 1 && says("the picture is 20479 x 20479"));
}

/* A gray 8 x 8 JPEG: its only coefficient is DC = 0, so every pixel is 128. */
static const unsigned char gray_jpeg[] =
    "\xff\xd8\xff\xdb\0\x43\0\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
    "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
    "\xff\xc0\0\x0b\x08\0\x08\0\x08\1\1\x11\0"
    "\xff\xc4\0\x14\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\xff\xc4\0\x14\x10\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    "\xff\xda\0\x08\1\1\0\0\x3f\0\x3f\xff\xd9";

static void test_formats(void)
{
    struct array array;
    const int64_t shape[] = {2, 3};
    CHECK(array_create(path_of("plain"), F32, 2, shape, &array, error, sizeof error) == 0 && array.npy);
    CHECK(array_commit(&array, error, sizeof error) == 0);
    array_close(&array);
    CHECK(array_open(path_of("plain"), &array, error, sizeof error) == 0 && array.npy && array.tensor->ndim == 2);
    array_close(&array);
    write_file(path_of("gray.jpg"), gray_jpeg, sizeof gray_jpeg - 1);
    if (CHECK_MSG(array_open(path_of("gray.jpg"), &array, error, sizeof error) == 0, "%s", error)) {
        CHECK(array.tensor->shape[0] == 8 && array.tensor->shape[2] == 1);
        CHECK(*element(array.tensor, 0) == 128 && *element(array.tensor, 63) == 128);
        array_close(&array);
    }
    static const struct {
        const char *bytes, *message;
    } others[] = {
        {"PK\3\4rest", "a zip archive (if it is an .npz, unpack"},
        {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
        {"GIF89a", "a GIF picture"},
        {"\xff\xd8\xff", "cannot be decoded: "},
        {"", "but this one is empty"},
        {"\x93NUM", "unknown: it begins with the bytes 93 4e 55 4d"},
        {"\x93NUMPY\1", "the file ends after 7 bytes"},
        {"\xff\xd8\xff\xc4\1\2\3", "a cut or malformed Huffman table or frame header"},
        {"1,2,3\n4,5,6\n", "unknown: it begins with the bytes 31 2c 32 2c 33 0a 34 2c"},
    };
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        write_file(path_of("other"), others[i].bytes, strlen(others[i].bytes));
        CHECK(array_open(path_of("other"), &array, error, sizeof error) == 1 && says(others[i].message));
    }
    array_close(&array);
}

int main(void)
{
    const char *parent = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/test_npy.XXXXXX", parent && strlen(parent) < 40 ? parent : "/tmp");
    if (!CHECK(mkdtemp(folder) != NULL))
        return check_done("test_npy");
    test_bad_headers();
    test_bad_preambles();
    test_good_headers();
    test_layouts();
    test_round_trips();
    test_all_or_nothing();
    test_streams();
    test_pictures();
    test_formats();
    test_numpy();
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK(system(command) == 0);
    return check_done("test_npy");
}
