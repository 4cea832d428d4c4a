/* Sizes of the processor's caches in bytes; 0 or -1 where they are not known. */
#ifndef MF_CPU_CACHES_H
#define MF_CPU_CACHES_H

#include <unistd.h>

#ifdef _SC_LEVEL3_CACHE_SIZE
#define SECOND_CACHE_BYTES sysconf(_SC_LEVEL2_CACHE_SIZE)
#define LAST_CACHE_BYTES sysconf(_SC_LEVEL3_CACHE_SIZE)
#else
#define SECOND_CACHE_BYTES 0
#define LAST_CACHE_BYTES 0
#endif

#endif
