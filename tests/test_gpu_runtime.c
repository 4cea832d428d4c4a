/* What src/gpu/gpu.h promises, on the devices that are here: OpenCL's (PoCL is one on every machine) and CUDA's; the
 * CUDA compiler, which needs no GPU; and the cache on disk. */
#include "cache_folder.h"
#include "gpu_test.h"

#include <pthread.h>
#include <sys/stat.h>

#include "gpu/gpu.h"
#include "gpu/runtime.h"
#include "gpu/texts.h"
#include "gpu/vocabulary.h"

/* ---- entries of the cache ---- */

static ino_t entry_inode(void)
{
    struct stat about;
    return stat(entry_name, &about) ? 0 : about.st_ino;
}

/* Puts a wrong binary into the only entry, whose key and checksum are right; whether it could. */
static int forge_entry(const char *folder)
{
    static char data[1 << 20];
    uint64_t sizes[2];
    if (!CHECK(count_entries(folder) == 1))
        return 0;
    long size = read_entry(data, sizeof data - 1);
    memcpy(sizes, data + 8, sizeof sizes);
    if (!CHECK(size > 40 && sizes[0] < 2000 && sizes[0] + sizes[1] + 40 < (uint64_t)size))
        return 0;
    char *compiler = calloc(1, (size_t)sizes[0] + 1), *text = calloc(1, (size_t)sizes[1] + 1);
    memcpy(compiler, data + 40, (size_t)sizes[0]);
    memcpy(text, data + 40 + sizes[0], (size_t)sizes[1]);
    mf_cache_keep(compiler, text, "not a binary", 12);
    free(compiler);
    free(text);
    return CHECK(count_entries(folder) == 1);
}

/* ---- a device ---- */

enum { COUNT = 1000, ROUNDS = 50 };

struct texts {
    const char *good, *bad, *unnamed;
    const char *complaint; /* what is in the sentence about bad */
};

static const struct texts opencl_texts = {
    "kernel void modefold(global int *out, global const int *in, long n, int factor)\n"
    "{ long i = get_global_id(0); if (i < n) out[i] = in[i] * factor + out[i]; }\n",
    "kernel void modefold(global int *out) { *out = undeclared_word; }\n",
    "kernel void other(global int *out) { *out = 1; }\n", "undeclared_word"};

static const struct texts cuda_texts = {
    "extern \"C\" __global__ void modefold(int *out, const int *in, long long n, int factor)\n"
    "{ long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; if (i < n) out[i] = in[i] * factor + out[i]; "
    "}\n",
    "extern \"C\" __global__ void modefold(int *out) { *out = undeclared_word; }\n",
    "extern \"C\" __global__ void other(int *out) { *out = 1; }\n", "undeclared_word"};

/* out = in * factor + 0 on the device, compared. */
static int computes(const struct gpu_api *api, struct gpu *gpu, const struct gpu_kernel *kernel, int factor)
{
    static const int zeros[COUNT];
    int in[COUNT], out[COUNT], right = 0;
    int64_t n = COUNT;
    void *memory[2] = {NULL, NULL};
    for (int i = 0; i < COUNT; i++)
        in[i] = i - 500;
    if (!api->alloc(gpu, sizeof out, &memory[0]) && !api->alloc(gpu, sizeof in + 64, &memory[1])) {
        const struct gpu_argument arguments[] = {
            {memory[0], 0}, {memory[1], 0}, {&n, sizeof n}, {&factor, sizeof(int)}};
        const struct gpu_launch launch = {kernel, (COUNT + 63) / 64, 64, 4, arguments, 0, 0};
        mf_status status = api->copy(gpu, memory[0], 0, out, sizeof out, 1);
        right = !status && !memcmp(out, zeros, sizeof out); /* as it comes from alloc */
        status = api->copy(gpu, memory[1], 0, in, sizeof in, 0) || api->launch(gpu, &launch, NULL) ||
                 api->wait(gpu, NULL) || api->copy(gpu, memory[0], 0, out, sizeof out, 1);
        for (int i = 0; i < COUNT; i++)
            right = right && !status && out[i] == in[i] * factor;
        int part[3] = {0};
        status = api->copy(gpu, memory[0], 40, part, sizeof part, 1);
        right = right && !status && !memcmp(part, out + 10, sizeof part);
    }
    api->release(gpu, memory[0]);
    api->release(gpu, memory[1]);
    return right;
}

static void test_build(const struct gpu_api *api, struct gpu *gpu, const struct texts *texts)
{
    struct gpu_kernel *kernel = NULL;
    setenv("MODEFOLD_CACHE", "off", 1);
    if (CHECK_MSG(api->build(gpu, texts->good, &kernel) == MF_OK, "%s", mf_error()))
        CHECK_MSG(computes(api, gpu, kernel, 7), "%s: %s", api->name, mf_error());
    struct gpu_kernel *bad = NULL;
    CHECK(api->build(gpu, texts->bad, &bad) == MF_ERROR_DEVICE && !bad);
    CHECK_MSG(strstr(mf_error(), "error") && strstr(mf_error(), texts->complaint), "\"%s\"", mf_error());
    CHECK(api->build(gpu, texts->unnamed, &bad) == MF_ERROR_DEVICE && !bad);
    if (kernel)
        CHECK_MSG(computes(api, gpu, kernel, -3), "%s: %s", api->name, mf_error());
    api->discard(gpu, kernel);
    api->discard(gpu, NULL);
    for (int k = 0; k < 10; k++) { /* every allocation fails once */
        mf_alloc_budget = k;
        mf_status status = api->build(gpu, texts->good, &kernel);
        mf_alloc_budget = -1;
        CHECK(status == MF_OK || (status == MF_ERROR_MEMORY && !kernel));
        api->discard(gpu, kernel);
        if (!status)
            break;
    }
}

/* A build that must work, and whether it left the cache's only entry as it was. */
static int build_keeps(const struct gpu_api *api, struct gpu *gpu, const struct texts *texts, const char *folder)
{
    struct gpu_kernel *kernel = NULL;
    ino_t before = entry_inode();
    if (CHECK_MSG(api->build(gpu, texts->good, &kernel) == MF_OK, "%s", mf_error()))
        CHECK_MSG(computes(api, gpu, kernel, 5), "%s: %s", api->name, mf_error());
    api->discard(gpu, kernel);
    return CHECK(count_entries(folder) == 1) && entry_inode() == before;
}

static void test_build_cache(const struct gpu_api *api, struct gpu *gpu, const struct texts *texts)
{
    char folder[32];
    snprintf(folder, sizeof folder, "cache-%s", api->name);
    use_cache(folder);
    entry_name[0] = 0;
    CHECK(!build_keeps(api, gpu, texts, folder)); /* makes it */
    CHECK(build_keeps(api, gpu, texts, folder));  /* uses it */
    write_entry("damaged", 7);
    CHECK(!build_keeps(api, gpu, texts, folder));
    CHECK(build_keeps(api, gpu, texts, folder));
    if (forge_entry(folder))
        CHECK(!build_keeps(api, gpu, texts, folder));
    CHECK(build_keeps(api, gpu, texts, folder));
}

static void test_launch_limits(const struct gpu_api *api, struct gpu *gpu, const struct texts *texts)
{
    struct gpu_kernel *kernel = NULL;
    if (!CHECK(api->build(gpu, texts->good, &kernel) == MF_OK))
        return;
    struct gpu_launch launch = {kernel, 1, 1 << 20, 0, NULL, 0, 0};
    CHECK(api->launch(gpu, &launch, NULL) == MF_ERROR_UNSUPPORTED && strstr(mf_error(), "1048576"));
    launch.threads = 0;
    CHECK(api->launch(gpu, &launch, NULL) == MF_ERROR_UNSUPPORTED);
    launch.threads = 32;
    launch.blocks = INT64_MAX / 2;
    CHECK(api->launch(gpu, &launch, NULL) == MF_ERROR_UNSUPPORTED && strstr(mf_error(), "4611686018427387903"));
    launch.blocks = 0;
    CHECK(api->launch(gpu, &launch, NULL) == MF_OK);
    api->discard(gpu, kernel);
}

static void test_memory(const struct gpu_api *api, struct gpu *gpu)
{
    double host[4] = {0};
    uintptr_t address[3] = {0};
    void *memory[2] = {NULL, NULL}, *none = host;
    CHECK(api->alloc(gpu, (int64_t)1 << 50, &none) == MF_ERROR_MEMORY && !none);
    CHECK_MSG(strstr(mf_error(), "1125899906842624 bytes"), "\"%s\"", mf_error());
    CHECK(api->alloc(gpu, 0, &memory[0]) == MF_OK && api->alloc(gpu, 100, &memory[1]) == MF_OK);
    CHECK(api->check(gpu, memory[0], "operand", 0, &address[0]) == MF_OK);
    CHECK(api->check(gpu, memory[1], "output", 0, &address[1]) == MF_OK);
    CHECK(api->check(gpu, memory[0], "operand", 1, &address[2]) == MF_OK);
    CHECK(address[0] == address[2] && address[0] != address[1]);
    CHECK(api->check(gpu, host, "operand", 2, address) == MF_ERROR_ARGUMENT && strstr(mf_error(), "operand c"));
    CHECK(api->check(gpu, host, "output", 2, address) == MF_ERROR_ARGUMENT && strstr(mf_error(), "output 2"));
    CHECK(api->check(gpu, (char *)host + 1, "operand", 0, address) == MF_ERROR_ARGUMENT);
    CHECK(api->check(gpu, NULL, "operand", 0, address) == MF_ERROR_ARGUMENT);
    api->release(gpu, memory[0]);
    api->release(gpu, memory[1]);
    api->release(gpu, NULL);
}

/* Addresses of OpenCL: 31 other buffers do not change the first one's, and no two are near. */
static void test_addresses(const struct gpu_api *api, struct gpu *gpu)
{
    enum { TENSORS = 32 };
    void *memory[TENSORS] = {0};
    uintptr_t address[TENSORS], again;
    for (int i = 0; i < TENSORS; i++)
        CHECK(api->alloc(gpu, 64, &memory[i]) == MF_OK);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < TENSORS; i++)
            CHECK(api->check(gpu, memory[(i * 7 + round) % TENSORS], "operand", 0, &address[i]) == MF_OK);
        for (int i = 0; i < TENSORS; i++) {
            CHECK(api->check(gpu, memory[(i * 7 + round) % TENSORS], "operand", 0, &again) == MF_OK);
            CHECK(again == address[i]);
            for (int k = 0; k < i; k++)
                CHECK((address[i] > address[k] ? address[i] - address[k] : address[k] - address[i]) >= 64);
        }
        for (int i = round; i < TENSORS; i += 3) {
            api->release(gpu, memory[i]);
            CHECK(api->alloc(gpu, 64, &memory[i]) == MF_OK);
        }
    }
    for (int i = 0; i < TENSORS; i++)
        api->release(gpu, memory[i]);
}

struct worker {
    const struct gpu_api *api;
    struct gpu *gpu;
    struct gpu_kernel *kernel;
    const char *text;
    int factor, wrong;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    for (int i = 0; i < ROUNDS; i++)
        worker->wrong += !computes(worker->api, worker->gpu, worker->kernel, worker->factor + i);
    struct gpu_kernel *own = NULL;
    worker->wrong += worker->api->build(worker->gpu, worker->text, &own) != MF_OK;
    worker->wrong += own && !computes(worker->api, worker->gpu, own, 3);
    worker->api->discard(worker->gpu, own);
    return NULL;
}

static void test_threads(const struct gpu_api *api, struct gpu *gpu, const struct texts *texts)
{
    pthread_t threads[2];
    struct worker workers[2] = {{api, gpu, NULL, texts->good, 100, 0}, {api, gpu, NULL, texts->good, -100, 0}};
    if (!CHECK(api->build(gpu, texts->good, &workers[0].kernel) == MF_OK))
        return;
    workers[1].kernel = workers[0].kernel;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_MSG(!workers[0].wrong && !workers[1].wrong, "%d and %d wrong", workers[0].wrong, workers[1].wrong);
    api->discard(gpu, workers[0].kernel);
}

/* A kernel that writes to address 0. */
static void test_fault(struct gpu *gpu)
{
    const struct gpu_api *api = &mf_gpu_cuda;
    struct gpu_kernel *kernel = NULL;
    int64_t n = COUNT;
    int factor = 1;
    const struct gpu_argument arguments[] = {{NULL, 0}, {NULL, 0}, {&n, sizeof n}, {&factor, sizeof factor}};
    if (!CHECK(api->build(gpu, cuda_texts.good, &kernel) == MF_OK))
        return;
    const struct gpu_launch launch = {kernel, 1, 32, 4, arguments, 0, 0};
    CHECK(api->launch(gpu, &launch, NULL) == MF_OK);
    CHECK(api->wait(gpu, NULL) == MF_ERROR_DEVICE);
    CHECK_MSG(strstr(mf_error(), "illegal memory access"), "\"%s\"", mf_error());
    api->discard(gpu, kernel);
}

static void test_device(const struct gpu_api *api, const struct texts *texts, const char *facts)
{
    struct gpu *gpu = NULL;
    CHECK(api->open(1000, &gpu) == MF_ERROR_DEVICE && !gpu);
    CHECK(api->open(-1, &gpu) == MF_ERROR_DEVICE && !gpu);
    mf_status status = api->open(0, &gpu);
    if (status) {
        CHECK_MSG(status == MF_ERROR_DEVICE && !gpu && strstr(mf_error(), facts), "%s", mf_error());
        check_skip(api->name, mf_error());
        return;
    }
    const struct gpu_limits *limits = MF_GPU_LIMITS(gpu);
    printf("%s: %s; %s; %d x %d threads, %lld bytes shared, %lld of parameters\n", api->name, limits->name,
           limits->compiler, limits->multiprocessors, limits->threads, (long long)limits->shared,
           (long long)limits->parameters);
    CHECK(*limits->name && *limits->compiler && limits->multiprocessors > 0 && limits->threads >= 64);
    CHECK(limits->shared >= 16384 && limits->parameters >= 900);
    test_build(api, gpu, texts);
    test_build_cache(api, gpu, texts);
    test_launch_limits(api, gpu, texts);
    test_memory(api, gpu);
    test_addresses(api, gpu);
    test_threads(api, gpu, texts);
    struct gpu *other = NULL;
    CHECK(api->open(1000, &other) == MF_ERROR_DEVICE && strstr(mf_error(), "device 1000"));
    CHECK(api->open(0, &other) == MF_OK);
    api->close(other);
    test_build(api, gpu, texts); /* closing one handle leaves the other's context */
    if (api == &mf_gpu_cuda)
        test_fault(gpu); /* the last thing that the process does there */
    api->close(gpu);
    api->close(NULL);
}

/* ---- the CUDA compiler ---- */

static void test_nvrtc_cache(const char *text)
{
    char *binary, *again;
    size_t size, again_size;
    struct gpu_usage usage;
    use_cache("cache-nvrtc");
    if (!CHECK(mf_nvrtc_compile(text, 90, NULL, &binary, &size) == MF_OK) || !forge_entry("cache-nvrtc"))
        return;
    CHECK(mf_nvrtc_compile(text, 90, NULL, &again, &again_size) == MF_OK); /* the forged one */
    CHECK(again_size == 12 && !memcmp(again, "not a binary", 12));
    mf_free(again);
    CHECK(mf_nvrtc_compile(text, 90, &usage, &again, &again_size) == MF_OK); /* with usage: compiled and kept */
    CHECK(again_size > 500 && (usage.registers > 4 || !usage.registers));    /* 0: NVRTC had it in its own cache */
    char *kept;
    CHECK(mf_nvrtc_compile(text, 90, NULL, &kept, &size) == MF_OK);
    CHECK(again_size == size && !memcmp(again, kept, size));
    mf_free(kept);
    mf_free(again);
    mf_free(binary);
    CHECK(mf_nvrtc_compile(text, 80, NULL, &binary, &size) == MF_OK); /* the architecture is part of the key */
    CHECK(count_entries("cache-nvrtc") == 2);
    mf_free(binary);
    setenv("MODEFOLD_CACHE", "off", 1);
}

/* An array at indices that only the device knows. */
static const char hungry_text[] =
    "extern \"C\" __global__ void modefold(int *out, const int *in)\n"
    "{ int x[64]; for (int i = 0; i < 64; i++) x[in[i]] = i; *out = x[in[threadIdx.x]]; }\n";

/* More values at once than registers, in a kernel with a function of its own, of which the assembler speaks last. */
static const char spilling_text[] =
    "static __noinline__ __device__ float step(float x, float y) { return x / y; }\n"
    "extern \"C\" __global__ __launch_bounds__(1024, 2) void modefold(float *out, const float *in)\n"
    "{\n"
    "    float x[64];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 64; i++) x[i] = in[i * 1024 + threadIdx.x];\n"
    "    for (int k = 0; k < 9; k++)\n"
    "        _Pragma(\"unroll\") for (int i = 0; i < 64; i++) x[i] = step(x[i], x[(i * 7 + 1) % 64]);\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 64; i++) out[i * 1024 + threadIdx.x] = x[i];\n"
    "}\n";

/* Logs of NVRTC 13.0: of a kernel that spills, of one that does and has three functions, of none. */
static void test_usage_logs(void)
{
    static const struct {
        const char *log;
        struct gpu_usage usage;
    } logs[] = {
        {"ptxas info    : 0 bytes gmem\n"
         "ptxas info    : Compiling entry function 'modefold' for 'sm_80'\n"
         "ptxas info    : Function properties for modefold\n"
         "ptxas         .     280 bytes stack frame, 512 bytes spill stores, 684 bytes spill loads\n"
         "ptxas info    : Used 32 registers, used 0 barriers, 280 bytes cumulative stack size, 368 bytes cmem[0]\n"
         "ptxas info    : Compile time = 107.150 ms\n",
         {32, 280, 1196}},
        {"ptxas info    : 0 bytes gmem\n"
         "ptxas info    : Compiling entry function 'modefold' for 'sm_90a'\n"
         "ptxas info    : Function properties for modefold\n"
         "ptxas         .     40 bytes stack frame, 68 bytes spill stores, 108 bytes spill loads\n"
         "ptxas info    : Used 64 registers, used 1 barriers, 40 bytes cumulative stack size, 8196 bytes smem\n"
         "ptxas info    : Compile time = 409.995 ms\n"
         "ptxas info    : Function properties for _ZN34_INTERNAL_00000000_4_x_cu_modefold10merged_f32Effff\n"
         "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
         "ptxas info    : Function properties for _ZN34_INTERNAL_00000000_4_x_cu_modefold12far_step_f32Eff\n"
         "ptxas         .     0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
         "ptxas info    : Function properties for _ZN34_INTERNAL_00000000_4_x_cu_modefold12far_unit_f32Ef\n"
         "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n",
         {64, 40, 192}},
        {"", {0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof logs / sizeof logs[0]; i++) {
        struct gpu_usage usage = {-1, -1, -1};
        mf_nvrtc_read_usage(logs[i].log, &usage);
        CHECK_MSG(!memcmp(&usage, &logs[i].usage, sizeof usage),
                  "log %zu: %d registers, %d bytes on the stack, %d spilled", i, usage.registers, usage.stack,
                  usage.spilled);
    }
}

static void *compile_here(void *wrong)
{
    char *binary;
    size_t size;
    for (int i = 0; i < 3; i++) {
        *(int *)wrong += mf_nvrtc_compile(cuda_texts.good, 80, NULL, &binary, &size) != MF_OK;
        mf_free(binary);
        *(int *)wrong += mf_nvrtc_compile(cuda_texts.bad, 80, NULL, &binary, &size) != MF_ERROR_DEVICE ||
                         !strstr(mf_error(), "undeclared_word");
    }
    return NULL;
}

static void test_nvrtc(void)
{
    static const int architectures[] = {80, 90, 100};
    char version[64], *binary;
    size_t size;
    struct gpu_usage usage;
    if (mf_nvrtc_version(version, sizeof version)) {
        CHECK(strstr(mf_error(), "libnvrtc"));
        CHECK(mf_nvrtc_compile("", 90, NULL, &binary, &size) == MF_ERROR_DEVICE && !binary);
        check_skip("nvrtc", version);
        return;
    }
    setenv("MODEFOLD_CACHE", "off", 1);
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++) {
        int architecture = architectures[i];
        mf_status status = mf_nvrtc_compile(cuda_texts.good, architecture, &usage, &binary, &size);
        if (status == MF_ERROR_UNSUPPORTED) { /* an older or newer compiler */
            check_skip("nvrtc", mf_error());
            continue;
        }
        if (!CHECK_MSG(status == MF_OK && size > 500, "%s", mf_error()))
            continue;
        printf("nvrtc: %s, sm_%d: %zu bytes, %d registers\n", version, architecture, size, usage.registers);
        CHECK(!memcmp(binary,
                      "\x7f"
                      "ELF",
                      4));
        CHECK(usage.registers > 4 && usage.registers < 64 && !usage.stack && !usage.spilled);
        mf_free(binary);
    }
    if (CHECK(mf_nvrtc_compile(hungry_text, 90, &usage, &binary, &size) == MF_OK))
        CHECK_MSG(usage.stack >= 256, "%d bytes of stack", usage.stack);
    mf_free(binary);
    if (CHECK(mf_nvrtc_compile(spilling_text, 90, &usage, &binary, &size) == MF_OK)) /* 0: as in test_nvrtc_cache */
        CHECK_MSG(usage.spilled >= 64 || !usage.registers, "%d bytes spilled", usage.spilled);
    mf_free(binary);
    CHECK(mf_nvrtc_compile(cuda_texts.bad, 90, NULL, &binary, &size) == MF_ERROR_DEVICE && !binary);
    CHECK_MSG(strstr(mf_error(), "error") && strstr(mf_error(), "undeclared_word"), "\"%s\"", mf_error());
    CHECK(mf_nvrtc_compile(cuda_texts.good, 13, NULL, &binary, &size) == MF_ERROR_UNSUPPORTED && !binary);
    CHECK_MSG(strstr(mf_error(), "sm_13"), "\"%s\"", mf_error());
    test_nvrtc_cache(cuda_texts.good);
    int wrong[2] = {0};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, compile_here, &wrong[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(!wrong[0] && !wrong[1]);
}

/* ---- small parts ---- */

static void test_small(void)
{
    char line[40];
    mf_log_error("\n  note: so\nfile:3: error: no\nfile:4: error: never", line, sizeof line);
    CHECK(!strcmp(line, "file:3: error: no"));
    mf_log_error("only\nlines", line, sizeof line);
    CHECK(!strcmp(line, "only"));
    mf_log_error("", line, sizeof line);
    CHECK(!*line);
    mf_log_error("ERROR", line, sizeof line);
    CHECK(!strcmp(line, "ERROR"));
    CHECK(!strcmp(mf_status_name(MF_ERROR_DEVICE), "MF_ERROR_DEVICE"));
}

/* No spaces round operators that have one on both sides, then none behind commas, semicolons and parentheses. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *from = text; *from;) {
        const size_t n = *from == ' ' ? strspn(from + 1, "-+*/%&|^<>=!?:") : 0;
        if (n && from[n + 1] == ' ') {
            memmove(to, from + 1, n);
            to += n;
            from += n + 2;
        } else {
            *to++ = *from++;
        }
    }
    *to = 0;
    to = text;
    for (const char *from = text; *from;)
        if (strchr(",;)", *from) && from[1] == ' ' && from[2] && from[2] != '"') {
            *to++ = from[0];
            *to++ = from[2];
            from += 3;
        } else {
            *to++ = *from++;
        }
    *to = 0;
}

/* No end of a line between a character of `before` and one of `behind`. */
static void join_lines(char *text, const char *before, const char *behind)
{
    char *to = text;
    for (const char *from = text; *from;)
        if (strchr(before, *from) && from[1] == '\n' && from[2] && strchr(behind, from[2])) {
            *to++ = from[0];
            *to++ = from[2];
            from += 3;
        } else {
            *to++ = *from++;
        }
    *to = 0;
}

/* A text as cmake/embed.cmake leaves it: no lines that include others, no comments, no indentation. In place. */
static void as_embedded(char *text)
{
    char *to = text, *line = text;
    for (const char *from = text; *from;) {
        if (to == line && !strncmp(from, "#include \"", 10)) {
            from += strcspn(from, "\n");
        } else if (from[0] == '/' && from[1] == '*') {
            from = strstr(from, "*/") + 2;
            *to++ = ' ';
        } else if (*from == '\n') {
            while (to > line && to[-1] == ' ')
                to--;
            if (to > line)
                *to++ = '\n';
            line = to;
            from++;
        } else if (*from == ' ' && to == line) {
            from++;
        } else {
            *to++ = *from++;
        }
        if (to == line + 1 && *line == ' ')
            to = line;
    }
    *to = 0;
}

static void test_texts(void)
{
    enum { MOST = 100000 };
    static const struct {
        const char *path, *text;
    } texts[] = {{"gpu/prelude.cu", mf_text_prelude_cu},         {"gpu/prelude.cl", mf_text_prelude_cl},
                 {"vocab/elementary.h", mf_text_elementary_h},   {"vocab/convert.h", mf_text_convert_h},
                 {"vocab/memory.h", mf_text_memory_h},           {"vocab/ops.h", mf_text_ops_h},
                 {"vocab/ops_float.inc", mf_text_ops_float_inc}, {"vocab/ops_int.inc", mf_text_ops_int_inc}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        static char whole[MOST + 1];
        char name[64];
        snprintf(name, sizeof name, "src/%s", texts[i].path);
        const char *path = source_file(name);
        FILE *file = fopen(path, "r");
        if (!CHECK_MSG(file != NULL, "%s", path))
            continue;
        whole[fread(whole, 1, MOST, file)] = 0;
        fclose(file);
        as_embedded(whole);
        squeeze(whole);
        if (!strstr(name, "/vocab/")) {
            join_lines(whole, ")", "{");
            join_lines(whole, ";}", "}");
            join_lines(whole, ",", "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ(");
        }
        CHECK_MSG(*whole && !strcmp(whole, texts[i].text), "%s is embedded wrongly", path);
    }
}

/* Of the vocabulary a text gets what it calls, what that calls, and of a class no more than is asked for. */
static void test_vocabulary(void)
{
    static const char own[] = "mf_mod_f32(x, y) + mf_store_f16_f64(z)\n";
    static const char *const there[] = {"mf_store_f16_f64(", " mf_f64_to_f16(", " mf_f64_round(", "#define BITS 64"};
    static const char *const absent[] = {"mf_store_f16_f32(", "mf_exp_core_f32(", "F2(add)", "F2(floordiv)"};
    struct gpu_text text = {NULL, 0, 0, 0};
    mf_vocabulary_add(own, &text);
    if (CHECK(!text.failed && text.length > sizeof own)) {
        CHECK(!strcmp(text.text + text.length - strlen(own), own));
        for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
            CHECK_MSG(strstr(text.text, there[i]) != NULL, "%s is missing", there[i]);
        for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
            CHECK_MSG(!strstr(text.text, absent[i]), "%s is not called", absent[i]);
        const char *mod = strstr(text.text, "F2(mod)");
        CHECK(mod && !strstr(mod + 1, "F2(mod)"));
    }
    mf_free(text.text);
}

int main(void)
{
    mf_unpack_texts();
    gpu_test_environment("cache-runtime");
    unsetenv("POCL_EXTRA_BUILD_FLAGS"); /* texts of this file call what prelude.cl does not declare */
    test_small();
    test_texts();
    test_vocabulary();
    test_usage_logs();
    test_nvrtc();
    test_device(&mf_gpu_opencl, &opencl_texts, "OpenCL");
    test_device(&mf_gpu_cuda, &cuda_texts, "CUDA");
    return check_done("test_gpu_runtime");
}
