/* A line on a terminal's standard error about work that takes more than two seconds. */
#ifndef MF_CLI_PROGRESS_H
#define MF_CLI_PROGRESS_H

#include <pthread.h>

/* Seconds since some fixed moment. */
double seconds_now(void);

/* Shows "TEXT ... 5 s" once a second from a thread of its own until the end. */
struct progress {
    int shown; /* the standard error is a terminal and a thread runs */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    int end, visible;
    char text[160];
    double start;
};

void progress_start(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Another text from now on. */
void progress_say(struct progress *progress, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Stops and wipes the line. */
void progress_end(struct progress *progress);

#endif
