/* The ways to run a network, by name, and the table of their times. */
#ifndef MF_CLI_DETECT_TIMES_H
#define MF_CLI_DETECT_TIMES_H

#include <modefold_net.h>

/* A plan of the network on the device of a backend: scalar, openblas, simd, cublas, cuda or opencl. */
struct net_way {
    const char *backend;
    mf_device *device;
    mf_net_plan *plan;
    double whole, inference; /* seconds of all runs, the network's part of them */
    int runs, pending;       /* runs that count; runs that are yet to be left out, as warming up */
};

/* Exit status 1 after a message. measure: each step's time is wanted, and the first run does not count. */
int net_way_open(struct net_way *way, const mf_net *net, const char *backend, const mf_net_options *options,
                 int measure);
mf_status net_way_run(struct net_way *way, const DLTensor *input);
/* The run before took so long, with what belongs to it. */
void net_way_count(struct net_way *way, double seconds);
void net_way_close(struct net_way *way);

enum { TIME_KINDS = 10, TIME_WAYS = 6 };

/* Mean seconds of a picture, by row and way. */
struct net_times {
    int kinds, ways;
    const char *kind[TIME_KINDS], *way[TIME_WAYS];
    double seconds[TIME_KINDS][TIME_WAYS];
};

/* One more column; exit status 1 after a message. */
int net_times_add(struct net_times *times, const struct net_way *way);
/* A table, or the rest of a JSON object: , "times": ... */
void net_times_show(const struct net_times *times, int json);

#endif
