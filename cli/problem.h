/* A problem is a fold written as one line of text: the same line for verify, bench and bug reports.
 *
 *     MODES | EXPRESSION | a=f32[4096,8,4096] b=f32[5,7]:(7,-1)+34 o=f64[8] | seed=7 data=normal
 *
 *   tensors  NAME=TYPE[SHAPE], the operands a, b, c ... and the outputs o, o1, o2 ...; behind it, where wanted,
 *              :(STRIDES)  in elements, any sign, 0 too; without it row-major
 *              +OFFSET     elements from the start of the memory to position 0 (default: the least that is possible)
 *              @NAME       an output lies in the memory of this operand or earlier output
 *   options  seed=N (1)  data=KIND (normal; see values.h)  order=written, order=contract  threads=N  solver=NAME
 *            define="TEXT", an operation given as text (mf_operation_define_text), up to 4 times
 *            The last field may be missing; so may the outputs, where the fold's own are meant.
 *
 * Every function that returns int returns 0, or 1 with a sentence in error. */
#ifndef MF_CLI_PROBLEM_H
#define MF_CLI_PROBLEM_H

#include <modefold.h>

#include "values.h"

enum {
    PROBLEM_TENSORS = MF_MAX_INPUTS + MF_MAX_OUTPUTS,
    PROBLEM_TEXT = 16384,
    PROBLEM_DEFINES = 4,
    PROBLEM_GUARD = 128 /* bytes of a guard: what is aligned stays so */
};

struct problem_tensor {
    DLDataType dtype;
    int item; /* bytes of one element */
    int ndim;
    int64_t shape[MF_MAX_RANK], strides[MF_MAX_RANK];
    int row_major;  /* strides were not written */
    int64_t offset; /* elements from the start of its memory to position 0 */
    int memory;     /* the tensor in whose memory it lies; its own number unless @NAME was written */
};

/* Tensors 0 ... input_count-1 are the operands, MF_MAX_INPUTS ... MF_MAX_INPUTS+output_count-1 the outputs. */
struct problem_line {
    char modes[1024], expression[2048];
    int input_count, output_count;
    struct problem_tensor tensor[PROBLEM_TENSORS];
    uint64_t seed;
    enum values_kind data;
    uint32_t order; /* MF_ORDER_... flags */
    int threads;
    char solver[32]; /* "" where not given */
    int define_count;
    char define[PROBLEM_DEFINES][1024];
};

/* Outputs may be missing altogether; then output_count is 0 and problem_complete is to follow. */
int problem_parse(const char *text, struct problem_line *line, char *error, size_t error_size);
/* Gives a problem without outputs row-major ones, of the shape and (NumPy's) types that the fold has. */
int problem_complete(mf_device *device, struct problem_line *line, char *error, size_t error_size);
/* The line's text, which problem_parse reads back to the same; returns text. */
char *problem_print(const struct problem_line *line, char *text, size_t size);

/* Makes the line's own operations known to the device. */
mf_status problem_define(mf_device *device, const struct problem_line *line);

/* A tensor without data. Its shape and strides point into the problem. */
DLTensor problem_dltensor(const struct problem_tensor *tensor);
/* "a", "o", "o1" ...; name has room for 8. */
char *problem_tensor_name(int number, char *name);
/* Fills strides and offset of a row-major tensor, or the least offset for given strides; 1 when they overflow. */
int problem_set_row_major(struct problem_tensor *tensor);
int problem_least_offset(const struct problem_tensor *tensor, int64_t *offset);
/* How many elements of memory the tensor needs, from the memory's start; -1 when that overflows or leaves the start. */
int64_t problem_extent(const struct problem_tensor *tensor);
int64_t problem_elements(const struct problem_tensor *tensor);

/* The problems of a text file ("-" is the standard input): one a line; blank lines and lines that begin with '#' do
 * not count. lines[i] points into text; both are from malloc. */
struct problem_file {
    char *text, **lines;
    int count;
};
int problem_file_read(const char *path, struct problem_file *file, char *error, size_t error_size);
void problem_file_free(struct problem_file *file);

/* ---- memory ---- */

/* One memory: guard, elements, guard. Outputs' memories also keep what they started with and what they should be. */
struct problem_block {
    unsigned char *base;             /* first byte after the guard; null where this tensor lies in another's memory */
    unsigned char *start, *expected; /* copies with their guards; null where no output lies here */
    size_t size;                     /* bytes between the guards */
    uint64_t hash;                   /* of an input's bytes */
};

struct problem_memory {
    struct problem_block block[PROBLEM_TENSORS];
};

/* Allocates and fills. for_comparison: with start and expected. */
int problem_memory_make(const struct problem_line *line, int for_comparison, struct problem_memory *memory, char *error,
                        size_t error_size);
void problem_memory_free(struct problem_memory *memory);
/* Puts outputs' memories back to what they started with. */
void problem_memory_reset(struct problem_memory *memory);
/* What the outputs' memories hold now is what they should hold. */
void problem_memory_expect(struct problem_memory *memory);
/* Guards are closed to AddressSanitizer but while they are copied. */
void problem_guards_open(const struct problem_block *block);
void problem_guards_close(const struct problem_block *block);
/* The pointers to position 0 of every operand and output. */
void problem_pointers(const struct problem_line *line, const struct problem_memory *memory, const void **inputs,
                      void **outputs);

/* Plans the line's fold. solver null: the line's own, or the library's choice. threads 0: the line's own. */
mf_status problem_plan(mf_device *device, const struct problem_line *line, const char *solver, int threads,
                       mf_plan **plan);
/* Plans and executes. use_fold: by mf_fold, the one-shot call (no solver, no options). */
mf_status problem_run(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                      const char *solver, int threads, int use_fold);

/* The problem's memories on a GPU, and its tensors in them. */
struct problem_there {
    mf_device *device;
    void *memory[PROBLEM_TENSORS];
    DLTensor input[MF_MAX_INPUTS], output[MF_MAX_OUTPUTS];
};
mf_status problem_there_make(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                             struct problem_there *there);
void problem_there_free(struct problem_there *there);
/* As problem_run, there and back. */
mf_status problem_run_on_device(mf_device *device, const struct problem_line *line, const struct problem_memory *memory,
                                const char *solver, int use_fold);

/* Where the outputs' memories differ from what is expected. */
struct problem_difference {
    int output;                 /* number of the output, or -1: outside of every output */
    int64_t at[MF_MAX_RANK];    /* its position */
    int tensor;                 /* output -1: in whose memory */
    int64_t byte;               /* output -1: from the start of that memory */
    int64_t count;              /* differing elements of that output (or bytes) */
    char got[64], expected[64]; /* in hexadecimal and decimal */
};

/* 1 and the first difference, or 0. */
int problem_compare(const struct problem_line *line, const struct problem_memory *memory,
                    struct problem_difference *difference);
/* 1 when an operand (that no output shares memory with) was written, or a guard of the expected outputs. */
int problem_inputs_changed(const struct problem_memory *memory);

#endif
