/* OpenBLAS, opened at run time. */
#ifndef MF_CPU_OPENBLAS_H
#define MF_CPU_OPENBLAS_H

/* Whether it can be opened; tried once. */
int mf_openblas_is_there(void);

#endif
