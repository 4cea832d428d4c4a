/* Opens the CPU: the widest instruction set it has (or MODEFOLD_ISA's), and its threads. */
#define _GNU_SOURCE
#include "cpu.h"

#include "contraction_kernels.h"
#include "habits.h"

#include <sched.h>
#include <stdlib.h>

void mf_kernels_scalar(struct kernels *k);
void mf_kernels_sse2(struct kernels *k);
void mf_kernels_avx2(struct kernels *k);
void mf_kernels_avx512(struct kernels *k);
void mf_kernels_neon(struct kernels *k);
void mf_contractions_scalar(struct contraction_kernels *k);
void mf_contractions_sse2(struct contraction_kernels *k);
void mf_contractions_avx2(struct contraction_kernels *k);
void mf_contractions_avx512(struct contraction_kernels *k);
void mf_contractions_neon(struct contraction_kernels *k);

#ifdef MF_HAVE_X86
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); /* every processor with both has F16C */
}
#endif
static int always(void)
{
    return 1;
}

/* Best first. */
static const struct isa {
    const char *name;
    void (*fill)(struct kernels *k);
    void (*fill_contractions)(struct contraction_kernels *k);
    int (*here)(void);
} isas[] = {
#ifdef MF_HAVE_X86
    {"avx512", mf_kernels_avx512, mf_contractions_avx512, has_avx512},
    {"avx2", mf_kernels_avx2, mf_contractions_avx2, has_avx2},
    {"sse2", mf_kernels_sse2, mf_contractions_sse2, always},
#endif
#ifdef MF_HAVE_NEON
    {"neon", mf_kernels_neon, mf_contractions_neon, always},
#endif
    {"scalar", mf_kernels_scalar, mf_contractions_scalar, always},
};
enum { ISAS = sizeof isas / sizeof isas[0] };

static struct kernels tables[ISAS];
static struct contraction_kernels contraction_tables[ISAS];
static pthread_once_t tables_once = PTHREAD_ONCE_INIT;

static void fill_tables(void)
{
    mf_habits_choose();
    for (int i = 0; i < ISAS; i++) {
        isas[i].fill(&tables[i]);
        isas[i].fill_contractions(&contraction_tables[i]);
        tables[i].contractions = &contraction_tables[i];
    }
}

/* What an operand's loops step over, or more where they overlap; as a double, which does not overflow. */
static double operand_bytes(const struct problem *problem, int input)
{
    const struct nest *nest = &problem->memory;
    double bytes = mf_dtypes[problem->in_type[input]].size;
    for (int l = 0; l < nest->kept + nest->reduced; l++)
        bytes *= nest->in[input][l] ? (double)nest->size[l] : 1;
    return bytes;
}

static int touches_more(const struct problem *problem, double outputs)
{
    for (int i = 0; i < problem->input_count; i++)
        outputs += operand_bytes(problem, i);
    return outputs > (double)mf_cached_bytes;
}

int mf_reads_memory(const struct problem *problem)
{
    return touches_more(problem, 0);
}

int mf_stores_past_cache(const struct problem *problem, int64_t bytes)
{
    enum { LEAST = 2 << 20 };
    const double all = (double)problem->kept_total * (double)bytes;
    return all > (double)(mf_cached_bytes < LEAST ? mf_cached_bytes : LEAST) && touches_more(problem, all);
}

int mf_cpu_thread_count(void)
{
    const char *text = getenv("MODEFOLD_THREADS");
    int count = text ? atoi(text) : 0;
    cpu_set_t set;
    if (count < 1 && sched_getaffinity(0, sizeof set, &set) == 0)
        count = CPU_COUNT(&set);
    return count < 1 ? 1 : count > 256 ? 256 : count;
}

static mf_status choose_isa(struct mf_device *device)
{
    const char *wanted = getenv("MODEFOLD_ISA");
    for (int i = 0; i < ISAS; i++) {
        if (wanted && *wanted && strcmp(wanted, isas[i].name) != 0)
            continue;
        if (isas[i].here()) {
            device->kernels = &tables[i];
            return MF_OK;
        }
        if (wanted && *wanted)
            return mf_fail(MF_ERROR_UNSUPPORTED, "MODEFOLD_ISA asks for %s, which this processor does not have",
                           wanted);
    }
    return mf_fail(MF_ERROR_ARGUMENT,
                   "MODEFOLD_ISA asks for \"%.20s\", which this build does not have (its best is %s)", wanted,
                   isas[0].name);
}

mf_status mf_cpu_open(struct mf_device *device)
{
    pthread_once(&tables_once, fill_tables);
    MF_TRY(choose_isa(device));
    device->threads = mf_threads_create(device->thread_count);
    return device->threads ? MF_OK : MF_ERROR_MEMORY;
}

void mf_cpu_close(struct mf_device *device)
{
    mf_threads_destroy(device->threads);
}

const char *mf_cpu_isa_name(const struct mf_device *device)
{
    return device->kernels->name;
}
