/* NVIDIA's compiler for CUDA C++ at run time: text to a binary for one architecture. It needs no GPU and no driver.
 *
 * Its functions may be called by several threads at once (NVRTC's documentation, "Thread Safety"), as long as each has
 * a program of its own. */
#include "gpu.h"
#include "runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;
enum { MAX_ARCHITECTURES = 64 };

static struct {
#define FUNCTION(name, arguments) nvrtcResult(*name) arguments;
#include "nvrtc.def"
#undef FUNCTION
} nvrtc;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char why[256]; /* there is no compiler; "" when there is one */
static int major, minor;

static void load(void)
{
    static const char *const symbols[] = {
#define FUNCTION(name, arguments) "nvrtc" #name,
#include "nvrtc.def"
#undef FUNCTION
        NULL};
    const char *home = getenv("CUDA_HOME");
    char chosen[1024] = "";
    int n = home && *home ? snprintf(chosen, sizeof chosen, "%s/lib64/libnvrtc.so", home) : 0;
    int skip = n <= 0 || (size_t)n >= sizeof chosen;
    /* who names a toolkit means it; then what the system finds, newest first */
    const char *const files[] = {chosen,
                                 "libnvrtc.so.13",
                                 "libnvrtc.so.12",
                                 "libnvrtc.so.11.2",
                                 "libnvrtc.so",
                                 "/usr/local/cuda/lib64/libnvrtc.so",
                                 NULL};
    mf_library_load("the CUDA compiler, libnvrtc.so,", files + skip, symbols, &nvrtc, why, sizeof why);
    if (!*why && nvrtc.Version(&major, &minor))
        snprintf(why, sizeof why, "the CUDA compiler, libnvrtc.so, does not tell its version");
}

void mf_nvrtc_load(void)
{
    pthread_once(&once, load);
}

static mf_status need_compiler(void)
{
    mf_nvrtc_load();
    return *why ? mf_fail(MF_ERROR_DEVICE, "%s", why) : MF_OK;
}

mf_status mf_nvrtc_version(char *text, size_t size)
{
    mf_status status = need_compiler();
    if (status)
        snprintf(text, size, "%s", why);
    else
        snprintf(text, size, "NVRTC %d.%d", major, minor);
    return status;
}

/* sm_90a: wgmma is there and nowhere else. */
static int has_warpgroups(int architecture)
{
    return architecture == 90 && major >= 12;
}

int mf_nvrtc_has_warpgroups(int architecture)
{
    return mf_nvrtc_knows(architecture) == MF_OK && has_warpgroups(architecture);
}

mf_status mf_nvrtc_knows(int architecture)
{
    int known[MAX_ARCHITECTURES] = {0}, count = 0;
    MF_TRY(need_compiler());
    if (nvrtc.GetNumSupportedArchs(&count) || count < 1 || count > MAX_ARCHITECTURES || nvrtc.GetSupportedArchs(known))
        return mf_fail(MF_ERROR_DEVICE, "NVRTC %d.%d does not tell which architectures it knows", major, minor);
    for (int i = 0; i < count; i++)
        if (known[i] == architecture)
            return MF_OK;
    return mf_fail(MF_ERROR_UNSUPPORTED, "NVRTC %d.%d does not compile for sm_%d: it knows sm_%d to sm_%d", major,
                   minor, architecture, known[0], known[count - 1]);
}

/* The program's log, from mf_alloc; null without memory. */
static char *program_log(nvrtcProgram program)
{
    size_t size = 0;
    char *log = nvrtc.GetProgramLogSize(program, &size) ? NULL : mf_calloc(size + 1);
    if (log && size && nvrtc.GetProgramLog(program, log))
        *log = 0;
    return log;
}

/* The sum of the numbers before these words in the log. */
static int sum_before(const char *log, const char *words)
{
    int sum = 0;
    for (const char *next = log; (next = strstr(next, words)); next += strlen(words)) {
        const char *number = next;
        while (number > log && number[-1] >= '0' && number[-1] <= '9')
            number--;
        sum += atoi(number);
    }
    return sum;
}

/* The assembler says with -v of the kernel, and then of every function that was not inlined into it:
 *     Function properties for modefold
 *     384 bytes stack frame, 732 bytes spill stores, 828 bytes spill loads
 *     Used 24 registers, used 0 barriers, ...
 *     Function properties for far_step
 *     0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
 * Registers are said of the kernel alone. Where NVRTC has the binary in a cache of its own (a machine with a driver)
 * there is no assembler, and it says nothing: all zeros. */
void mf_nvrtc_read_usage(const char *log, struct gpu_usage *usage)
{
    usage->registers = sum_before(log, " registers");
    usage->stack = sum_before(log, " bytes stack frame");
    usage->spilled = sum_before(log, " bytes spill stores") + sum_before(log, " bytes spill loads");
}

static mf_status read_usage(nvrtcProgram program, struct gpu_usage *usage)
{
    char *log = program_log(program);
    if (!log)
        return MF_ERROR_MEMORY;
    mf_nvrtc_read_usage(log, usage);
    mf_free(log);
    return MF_OK;
}

static mf_status compile_failed(nvrtcProgram program, int architecture)
{
    char line[320];
    char *log = program_log(program);
    if (!log)
        return mf_fail(MF_ERROR_DEVICE, "NVRTC %d.%d cannot compile for sm_%d", major, minor, architecture);
    mf_log_error(log, line, sizeof line);
    mf_free(log);
    return mf_fail(MF_ERROR_DEVICE, "NVRTC %d.%d cannot compile for sm_%d: %s", major, minor, architecture, line);
}

static mf_status take_binary(nvrtcProgram program, char **binary, size_t *size)
{
    if (nvrtc.GetCUBINSize(program, size) || !*size)
        return mf_fail(MF_ERROR_DEVICE, "NVRTC %d.%d gives no binary", major, minor);
    *binary = mf_alloc(*size);
    if (!*binary)
        return MF_ERROR_MEMORY;
    if (!nvrtc.GetCUBIN(program, *binary))
        return MF_OK;
    mf_free(*binary);
    *binary = NULL;
    return mf_fail(MF_ERROR_DEVICE, "NVRTC %d.%d gives no binary", major, minor);
}

static mf_status compile(const char *text, int architecture, int count, const char *const *options,
                         struct gpu_usage *usage, char **binary, size_t *size)
{
    nvrtcProgram program = NULL;
    if (nvrtc.CreateProgram(&program, text, "modefold.cu", 0, NULL, NULL))
        return mf_fail(MF_ERROR_DEVICE, "NVRTC %d.%d cannot begin to compile", major, minor);
    mf_status status = MF_OK;
    if (nvrtc.CompileProgram(program, count, options))
        status = compile_failed(program, architecture);
    if (!status && usage)
        status = read_usage(program, usage);
    if (!status)
        status = take_binary(program, binary, size);
    nvrtc.DestroyProgram(&program);
    return status;
}

/* Compiles; where registers are spilled, again with all registers for one block, and then with less loaded at once too
 * (prelude.cu), and keeps the best. */
static mf_status compile_unspilled(const char *text, int architecture, int count, const char **options,
                                   struct gpu_usage *usage, char **binary, size_t *size)
{
    static const char *const sparing[] = {"-DONE_BLOCK=1", "-DONE_BLOCK=2"};
    MF_TRY(compile(text, architecture, count, options, usage, binary, size));
    for (int i = 0; i < 2 && usage->spilled; i++) {
        struct gpu_usage other;
        char *again;
        size_t again_size;
        options[count] = sparing[i];
        MF_TRY(compile(text, architecture, count + 1, options, &other, &again, &again_size));
        if (other.spilled >= usage->spilled) {
            mf_free(again);
            continue;
        }
        mf_free(*binary);
        *binary = again;
        *size = again_size;
        *usage = other;
    }
    return MF_OK;
}

/* What a kernel takes is an entry of its own, beside the binary's: the binary says nothing of it. ("usage" was the name
 * of entries about a kernel's last function alone.) */
static void usage_key(const char *key, char *name, size_t size)
{
    snprintf(name, size, "takes, %s", key);
}

static int find_usage(const char *key, const char *text, struct gpu_usage *usage)
{
    char name[280], *kept;
    size_t size;
    usage_key(key, name, sizeof name);
    if (!mf_cache_find(name, text, &kept, &size))
        return 0;
    int good = size == sizeof *usage;
    if (good)
        memcpy(usage, kept, sizeof *usage);
    mf_free(kept);
    return good;
}

static void keep_usage(const char *key, const char *text, const struct gpu_usage *usage)
{
    char name[280];
    usage_key(key, name, sizeof name);
    mf_cache_keep(name, text, (const char *)usage, sizeof *usage);
}

/* again: even if the cache has it. */
static mf_status compile_or_find(const char *text, int architecture, int again, struct gpu_usage *usage, char **binary,
                                 size_t *size)
{
    enum { OPTIONS = 9, KEY_OPTIONS = 7 };
    char target[40], key[256];
    struct gpu_usage used;
    /* IEEE 754 as the processor has it: the contract's bits depend on all but the last two */
    const char *options[OPTIONS + 3] = {target,
                                        "--fmad=false",
                                        "--ftz=false",
                                        "--prec-div=true",
                                        "--prec-sqrt=true",
                                        "--std=c++17",
                                        "--device-as-default-execution-space",
                                        "--disable-warnings",  /* nobody reads them, and writing them takes time */
                                        "--ptxas-options=-v"}; /* tells what is used */
    *binary = NULL;
    MF_TRY(mf_nvrtc_knows(architecture));
    snprintf(target, sizeof target, "--gpu-architecture=sm_%d%s", architecture,
             has_warpgroups(architecture) ? "a" : "");
    int length = snprintf(key, sizeof key, "NVRTC %d.%d", major, minor);
    for (int i = 0; i < KEY_OPTIONS; i++)
        length += snprintf(key + length, sizeof key - (size_t)length, " %s", options[i]);
    if (!again && (!usage || find_usage(key, text, usage)) && mf_cache_find(key, text, binary, size))
        return MF_OK;
    int count = OPTIONS;
    if (major * 10 + minor >= 124) /* without textures and the runtime's types, which take 3 ms to read */
        options[count++] = "--minimal";
    if (major >= 13) /* the compiler's own cache would keep what the assembler says from us */
        options[count++] = "--no-cache";
    mf_status status = compile_unspilled(text, architecture, count, options, usage ? usage : &used, binary, size);
    if (status != MF_OK) {
        mf_free(*binary);
        *binary = NULL;
        return status;
    }
    mf_cache_keep(key, text, *binary, *size);
    if (usage && !again)
        keep_usage(key, text, usage);
    return MF_OK;
}

mf_status mf_nvrtc_compile(const char *text, int architecture, struct gpu_usage *usage, char **binary, size_t *size)
{
    return compile_or_find(text, architecture, usage != NULL, usage, binary, size);
}

mf_status mf_nvrtc_usage(const char *text, int architecture, struct gpu_usage *usage)
{
    char *binary;
    size_t size;
    mf_status status = compile_or_find(text, architecture, 0, usage, &binary, &size);
    if (status == MF_OK)
        mf_free(binary);
    return status;
}
