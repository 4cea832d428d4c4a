/* NumPy's .npy files as DLPack tensors.
 *
 * Read: format versions 1.0, 2.0 and 3.0; C and Fortran order (the latter becomes strides); rank 0 to 32; empty arrays.
 * The data must end where the file ends: neither a short file nor bytes left over are accepted.
 *
 *   descr     b1    i1 i2 i4 i8   u1 u2 u4 u8   f2 f4 f8          V2    V1      f1
 *   becomes   bool  i8 .. i64     u8 .. u64     f16 f32 f64       bf16  f8e4m3  f8e5m2
 *
 * The last three are what the package ml_dtypes writes for its bfloat16, float8_e4m3fn and float8_e5m2. 'V2' and 'V1'
 * only say "2 (1) raw bytes", so any other raw type of that size reads as bf16 (f8e4m3) too. Other descrs are errors.
 *
 * Written: version 1.0, C order, data at a multiple of 64 bytes, the machine's byte order; bf16 as '|V2', f8e4m3 as
 * '|V1', f8e5m2 as '<f1' (NumPy loads the first two as raw bytes to be viewed, and has no name for the last).
 *
 * Every function here returns 0, or 1 with a sentence in error. A mapped file that another process cuts short while
 * it is read ends the program with SIGBUS, as for every user of mmap. */
#ifndef MF_CLI_NPY_H
#define MF_CLI_NPY_H

#include "array.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_MAX_RANK = 32 };

/* What a header says, after every check: the data are data_bytes bytes from data_offset on, inside the given bytes. */
struct npy_header {
    DLDataType dtype;
    int ndim;
    bool swapped; /* the data have the other byte order than this machine */
    int64_t shape[NPY_MAX_RANK];
    int64_t strides[NPY_MAX_RANK]; /* in elements */
    size_t data_offset;
    size_t data_bytes;
};

/* Checks and decodes a whole .npy file held in memory; reads nothing outside it and allocates nothing. */
int npy_parse(const void *bytes, size_t size, struct npy_header *out, char *error, size_t error_size);

/* An open array. tensor points into this struct, so it must not be copied or moved. */
struct npy {
    DLTensor tensor;
    int64_t shape[NPY_MAX_RANK];
    int64_t strides[NPY_MAX_RANK];
    struct file_bytes bytes; /* what tensor.data lies in */
    struct file_out target;  /* of npy_create */
};

/* Opens for reading. The data are the mapped file itself where byte order and alignment allow it, else a copy. */
int npy_open(const char *path, struct npy *out, char *error, size_t error_size);

/* The same from bytes already read. Takes them over, on failure too. */
int npy_open_bytes(const char *path, struct file_bytes *bytes, struct npy *out, char *error, size_t error_size);

/* Makes an array of zeros to be filled; nothing is seen at path before npy_commit. */
int npy_create(const char *path, DLDataType dtype, int ndim, const int64_t *shape, struct npy *out, char *error,
               size_t error_size);

/* Puts the created file in place. The tensor stays valid until npy_close, which is needed on failure too. */
int npy_commit(struct npy *npy, char *error, size_t error_size);

/* Gives up a created file; like npy_close. */
void npy_discard(struct npy *npy);

/* Frees everything; a created file not committed is discarded. Fine on a closed or zeroed struct. */
void npy_close(struct npy *npy);

#endif
