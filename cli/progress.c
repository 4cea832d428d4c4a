/* Progress on a terminal. */
#include "progress.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Wakes each second; the first line comes after two. */
static void *show(void *context)
{
    struct progress *p = context;
    struct timespec wake;
    clock_gettime(CLOCK_REALTIME, &wake);
    wake.tv_sec++;
    pthread_mutex_lock(&p->lock);
    for (; !p->end; wake.tv_sec++) {
        while (!p->end && pthread_cond_timedwait(&p->ended, &p->lock, &wake) == 0)
            ;
        if (p->end || seconds_now() - p->start < 1.9)
            continue;
        fprintf(stderr, "\r%s ... %.0f s\033[K", p->text, seconds_now() - p->start);
        fflush(stderr);
        p->visible = 1;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void progress_start(struct progress *progress, const char *format, ...)
{
    va_list args;
    memset(progress, 0, sizeof *progress);
    va_start(args, format);
    vsnprintf(progress->text, sizeof progress->text, format, args);
    va_end(args);
    progress->start = seconds_now();
    if (!isatty(STDERR_FILENO))
        return;
    pthread_mutex_init(&progress->lock, NULL);
    pthread_cond_init(&progress->ended, NULL);
    progress->shown = pthread_create(&progress->thread, NULL, show, progress) == 0;
}

void progress_say(struct progress *progress, const char *format, ...)
{
    va_list args;
    if (!progress->shown)
        return;
    pthread_mutex_lock(&progress->lock);
    va_start(args, format);
    vsnprintf(progress->text, sizeof progress->text, format, args);
    va_end(args);
    pthread_mutex_unlock(&progress->lock);
}

void progress_end(struct progress *progress)
{
    if (!progress->shown)
        return;
    pthread_mutex_lock(&progress->lock);
    progress->end = 1;
    pthread_cond_signal(&progress->ended);
    pthread_mutex_unlock(&progress->lock);
    pthread_join(progress->thread, NULL);
    if (progress->visible)
        fprintf(stderr, "\r\033[K");
    progress->shown = 0;
}
