/* What only a CUDA device can show: plans in the user's streams and graphs, on memory of the user's own, of more than
 * 2^32 elements, and after its memory has run out. Skips where there is no device. */
#include "cuda_driver.h"
#include "gpu_test.h"

#include <modefold.h>
#include <stdint.h>

static mf_device *device, *cpu;

static DLTensor on_device(CUdeviceptr memory, mf_type type, int rank, const int64_t *shape)
{
    DLTensor t = mf_tensor((void *)(uintptr_t)memory, type, rank, shape); /* NOLINT: pointers travel as void * */
    t.device.device_type = kDLCUDA;
    return t;
}

/* ---- graphs ---- */

enum { ROWS = 300, COLUMNS = 5000, REPLAYS = 5 };
static float values[ROWS * COLUMNS];

static void fill(int round)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)((i * 7919LL + round * 104729LL) % 1000003) / 4096.0f - 100.0f;
}

/* One fold, captured once and replayed on changing values, gives the CPU's bits each time. */
static void replay(const char *modes, const char *expression, int results)
{
    static float want[COLUMNS], got[COLUMNS];
    const int64_t shape[2] = {ROWS, COLUMNS}, count[1] = {results};
    CUdeviceptr in = 0, out = 0;
    CUstream stream = NULL;
    CUgraphExec graph = NULL;
    mf_plan *plan = NULL;
    CHECK(!cu.MemAlloc(&in, sizeof values) && !cu.MemAlloc(&out, sizeof got));
    CHECK(!cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    DLTensor x = on_device(in, MF_F32, 2, shape), y = on_device(out, MF_F32, results > 1, count);
    CHECK_MSG(mf_plan_create(device, modes, expression, &x, &y, NULL, &plan) == MF_OK, "%s", mf_error());
    if (CHECK(plan && cuda_capture_begin(stream))) {
        mf_status status = mf_plan_execute_tensors(plan, &x, &y, stream);
        CHECK_MSG(cuda_capture_end(stream, &graph) && status == MF_OK, "%s: %s", expression, mf_error());
    }
    for (int round = 0; round < REPLAYS && graph; round++) {
        DLTensor here = mf_tensor(values, MF_F32, 2, shape), expected = mf_tensor(want, MF_F32, results > 1, count);
        fill(round);
        CHECK(mf_fold(cpu, modes, expression, &here, &expected) == MF_OK);
        /* a copy may return before it is done, and this stream does not wait for it */
        CHECK(!cu.MemcpyHtoD(in, values, sizeof values) && !cu.StreamSynchronize(NULL));
        CHECK(!cu.GraphLaunch(graph, stream) && !cu.StreamSynchronize(stream) &&
              !cu.MemcpyDtoH(got, out, (size_t)results * sizeof *got));
        CHECK_MSG(!memcmp(got, want, (size_t)results * sizeof *got), "%s %s, replay %d", modes, expression, round);
    }
    mf_plan_destroy(plan);
    if (graph)
        cu.GraphExecDestroy(graph);
    cu.StreamDestroy(stream);
    cu.MemFree(in);
    cu.MemFree(out);
}

/* ---- the user's memory ---- */

static void fold_there(void *in, void *out, const char *what, const float *read)
{
    const int64_t shape[2] = {3, 4};
    DLTensor x = on_device((uintptr_t)in, MF_F32, 2, shape), y = on_device((uintptr_t)out, MF_F32, 1, shape);
    CHECK_MSG(mf_fold(device, "ij->i", "sum(a)", &x, &y) == MF_OK && mf_device_wait(device, NULL) == MF_OK, "%s: %s",
              what, mf_error());
    if (read)
        CHECK_MSG(read[0] == 10 && read[1] == 26 && read[2] == 42, "%s: %g %g %g", what, read[0], read[1], read[2]);
}

static void test_memory_kinds(void)
{
    enum { BYTES = 1024 };
    CUdeviceptr managed = 0;
    void *pinned = NULL;
    float *data;
    CHECK(!cu.MemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL) && !cu.MemHostAlloc(&pinned, BYTES, 0));
    data = (float *)(uintptr_t)managed; /* NOLINT: managed memory is the CPU's too */
    for (int i = 0; data && pinned && i < 12; i++)
        data[i] = ((float *)pinned)[i] = (float)(i + 1);
    fold_there(data, data + 64, "managed memory", data + 64);
    fold_there(pinned, (float *)pinned + 64, "pinned memory", (float *)pinned + 64);
    float here[12] = {0}, there[3] = {7, 7, 7};
    const int64_t shape[2] = {3, 4};
    DLTensor x = on_device((uintptr_t)here, MF_F32, 2, shape), y = on_device((uintptr_t)(data + 64), MF_F32, 1, shape);
    CHECK(mf_fold(device, "ij->i", "sum(a)", &x, &y) == MF_ERROR_ARGUMENT && strstr(mf_error(), "host memory"));
    x = on_device(managed, MF_F32, 2, shape);
    y = on_device((uintptr_t)there, MF_F32, 1, shape);
    CHECK(mf_fold(device, "ij->i", "sum(a)", &x, &y) == MF_ERROR_ARGUMENT && strstr(mf_error(), "output 0"));
    CHECK(there[0] == 7 && there[2] == 7);
    cu.MemFree(managed);
    cu.MemFreeHost(pinned);
}

/* The thread's context is as it was after every kind of call. */
static void test_context(void)
{
    CUcontext mine = NULL, after = NULL;
    CHECK(!cu.CtxGetCurrent(&mine) && mine);
    test_memory_kinds();
    CHECK(!cu.CtxGetCurrent(&after) && after == mine);
    CHECK(!cu.CtxPopCurrent(&mine)); /* without a current context too */
    mf_device *second = NULL;
    void *memory = NULL;
    CHECK_MSG(mf_device_open("cuda:0", &second) == MF_OK && mf_memory_create(second, 100, &memory) == MF_OK, "%s",
              mf_error());
    CHECK(!cu.CtxGetCurrent(&after) && !after);
    mf_memory_destroy(second, memory);
    mf_device_close(second);
    CHECK(!cu.CtxPushCurrent(mine));
}

/* Memory runs out: a sentence with the numbers, and the device goes on. */
static void test_exhaustion(void)
{
    enum { MOST = 64 };
    void *taken[MOST + 1];
    int count = 0;
    size_t free_bytes = 0, total = 0;
    mf_status status = MF_OK;
    CHECK(!cu.MemGetInfo(&free_bytes, &total));
    for (int64_t bytes = (int64_t)free_bytes / 2; count < MOST && bytes > 1 << 20; count++) {
        status = mf_memory_create(device, bytes, &taken[count]);
        if (status != MF_OK)
            bytes /= 2, count--;
    }
    status = mf_memory_create(device, (int64_t)total, &taken[count]);
    CHECK_MSG(status == MF_ERROR_MEMORY && strstr(mf_error(), "are free"), "%s", mf_error());
    /* a plan that wants a workspace where there is none */
    const int64_t shape[2] = {1 << 12, (int64_t)1 << 20}, one[1] = {1 << 12};
    DLTensor x = on_device(256, MF_F32, 2, shape), y = on_device(256, MF_F32, 1, one);
    mf_plan *plan = NULL;
    status = mf_plan_create(device, "ij->i", "var(a); logsumexp(a)", &x, (DLTensor[]){y, y}, NULL, &plan);
    CHECK_MSG(status == MF_OK || status == MF_ERROR_MEMORY, "%s: %s", mf_status_name(status), mf_error());
    mf_plan_destroy(plan);
    while (count > 0)
        mf_memory_destroy(device, taken[--count]);
    test_memory_kinds();
}

/* ---- more than 2^32 elements ---- */

static const int64_t big = ((int64_t)1 << 32) + 12345;

static uint64_t one_result(const char *modes, const char *expression, const DLTensor *x)
{
    uint64_t result = 0;
    void *memory = NULL;
    if (!CHECK(mf_memory_create(device, 8, &memory) == MF_OK))
        return 0;
    DLTensor y = on_device((uintptr_t)memory, MF_U64, 0, NULL);
    CHECK_MSG(mf_fold(device, modes, expression, x, &y) == MF_OK, "%s: %s", expression, mf_error());
    CHECK(mf_memory_read(device, memory, 0, &result, 8) == MF_OK);
    mf_memory_destroy(device, memory);
    return result;
}

static void test_big(void)
{
    static const unsigned char five = 5, nine = 9;
    void *memory = NULL, *copy = NULL;
    if (mf_memory_create(device, big, &memory) != MF_OK || mf_memory_create(device, big, &copy) != MF_OK) {
        check_skip("more than 2^32 elements", mf_error());
        mf_memory_destroy(device, memory);
        return;
    }
    const int64_t shape[1] = {big}, square[2] = {big / 4, 4}, tall[2] = {4, big / 4};
    DLTensor x = on_device((uintptr_t)memory, MF_U8, 1, shape), y = on_device((uintptr_t)copy, MF_U8, 1, shape);
    CHECK(mf_memory_write(device, memory, 17, &five, 1) == MF_OK);
    CHECK(mf_memory_write(device, memory, big - 3, &nine, 1) == MF_OK);
    CHECK(one_result("i->", "sum(a)", &x) == 14);
    CHECK(one_result("i->", "argmax(a)", &x) == (uint64_t)big - 3);
    CHECK(mf_fold(device, "i->i", "a+1", &x, &y) == MF_OK);
    CHECK(one_result("i->", "sum(a)", &y) == (uint64_t)big + 14);
    CHECK(one_result("i->", "max(a)", &y) == 10);
    DLTensor wide = on_device((uintptr_t)copy, MF_U8, 2, tall), narrow = on_device((uintptr_t)copy, MF_U8, 2, square);
    DLTensor part = on_device((uintptr_t)memory, MF_U8, 1, square); /* a quarter of the rows' results, as u8 */
    part.shape = (int64_t *)(uintptr_t)(tall + 1);                  /* NOLINT: DLPack's shape is not const */
    CHECK_MSG(mf_fold(device, "ij->j", "max(a)", &wide, &part) == MF_OK, "%s", mf_error());
    CHECK(one_result("i->", "max(a)", &part) == 10 && one_result("i->", "sum(a)", &part) == (uint64_t)big / 4 + 14);
    part.shape = (int64_t *)(uintptr_t)square; /* NOLINT */
    CHECK_MSG(mf_fold(device, "ij->i", "max(a)", &narrow, &part) == MF_OK, "%s", mf_error());
    CHECK(one_result("i->", "argmax(a)", &part) == (uint64_t)(big - 3) / 4);
    mf_memory_destroy(device, memory);
    mf_memory_destroy(device, copy);
}

int main(void)
{
    gpu_test_environment("cache-cuda");
    if (!cuda_driver_open()) {
        check_skip("a CUDA device", "there is no driver, or no device");
        return check_done("test_gpu_cuda");
    }
    if (!CHECK_MSG(mf_device_open("cuda:0", &device) == MF_OK && mf_device_open("cpu", &cpu) == MF_OK, "%s",
                   mf_error()))
        return check_done("test_gpu_cuda");
    replay("ij->i", "sum(a)", ROWS);
    replay("ij->j", "max(a)", COLUMNS);
    replay("ij->", "logsumexp(a)", 1);
    replay("ij->i", "sum(exp(a*0.01))", ROWS);
    test_context();
    test_big();
    test_exhaustion();
    mf_device_close(cpu);
    mf_device_close(device);
    return check_done("test_gpu_cuda");
}
