/* How a processor wants memory to be read: what the kernels of one instruction set do in other ways on one machine than
 * on another. Results do not depend on it. */
#ifndef MF_CPU_HABITS_H
#define MF_CPU_HABITS_H

/* Distances in bytes from what is read to what is asked for; 0: the processor's own prefetchers do better alone. */
struct habits {
    int large_cache;         /* the second cache has 2 MB or more */
    int row, row_soon;       /* rows: into the second cache; whether the nearest one is asked for too */
    int row_busy;            /* rows of which a kernel computes for longer than memory takes: summaries in doubles */
    int stream, stream_soon; /* what lies together: into the second cache, into the nearest one */
    int narrow, narrow_soon; /* the same, of one or two bytes an element */
    int several;             /* rows read together that widen as they are loaded, and those read after them */
    int several_soon;        /* whether into the nearest cache */
    int several_wide;        /* such rows that do not widen; 0: see columns */
    int eight;               /* least bytes of what widens of which they are eight, not four */
    int joined_eight;        /* whether they are where sums are joined with their neighbours' */
    int moments;             /* rows that moments are taken down */
    int beside;              /* eight rows at once, of moments and bytes, into the second cache; 0: as ever */
    int columns;             /* rows that sums are taken down, four at once; less than 0: do not ask */
    int copy, copy_soon;     /* beside stores past the cache */
    int arg;                 /* rows that extremes are found down */
    int touching[2];         /* rows of so many bytes that touch are read as one stream; of elements of two bytes */
    int touching_bytes;      /* and of one */
    int touching_soon;       /* whether that stream is asked for into the nearest cache */
    int touching_least;      /* bytes of such a stream, unless another one goes on where it ends */
};

enum { LIKES_TO_BE_ASKED, HAS_LARGE_CACHE, ASKS_EARLY, FOLLOWS_ALONE, HABITS_COUNT };
extern const struct habits mf_habits_known[HABITS_COUNT];

/* Of the processor that runs: what mf_habits_choose sets when the first CPU device is opened. Only tests set others. */
extern struct habits mf_habits;
extern long mf_cached_bytes; /* that a call touches and leaves in a cache */
void mf_habits_choose(void);

#endif
