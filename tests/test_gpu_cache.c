/* The cache of compiled kernels: entries are found whole or not at all, whatever happens to the files, and it never
 * fails. */
#include "cache_folder.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "gpu/gpu.h"

static int finds(const char *compiler, const char *text, const char *binary)
{
    char *found;
    size_t size;
    if (!mf_cache_find(compiler, text, &found, &size))
        return 0;
    int same = size == strlen(binary) && !memcmp(found, binary, size);
    CHECK(same);
    mf_free(found);
    return same;
}

static void test_cache(void)
{
    struct stat about;
    use_cache("cache-alone/nested");
    CHECK(!finds("compiler", "text", ""));
    mf_cache_keep("compiler", "text", "binary", 6);
    CHECK(finds("compiler", "text", "binary") && count_entries("cache-alone/nested") == 1);
    CHECK(!stat("cache-alone", &about) && (about.st_mode & 0777) == 0700);
    CHECK(!finds("compilert", "ext", "") && !finds("compiler", "tex", "") && !finds("compiler", "text ", ""));
    mf_cache_keep("compiler", "text", "newer", 5);
    CHECK(finds("compiler", "text", "newer") && count_entries("cache-alone/nested") == 1);
    mf_cache_keep("compiler", "", "", 0);
    CHECK(finds("compiler", "", "") && count_entries("cache-alone/nested") == 2);
    mf_alloc_budget = 0;
    CHECK(!finds("compiler", "text", "newer"));
    mf_alloc_budget = -1;
}

/* Every byte flipped, every length cut: never found, and replaced. */
static void test_damage(void)
{
    char whole[256], bad[256];
    use_cache("cache-damaged");
    mf_cache_keep("compiler", "text", "binary", 6);
    CHECK(count_entries("cache-damaged") == 1);
    long size = read_entry(whole, sizeof whole);
    CHECK(size == 40 + 8 + 4 + 6);
    for (long i = 0; i < size; i++) {
        memcpy(bad, whole, (size_t)size);
        bad[i] = (char)(bad[i] ^ 0x10);
        write_entry(bad, size);
        CHECK_MSG(!finds("compiler", "text", "binary"), "byte %ld damaged", i);
        write_entry(whole, i);
        CHECK_MSG(!finds("compiler", "text", "binary"), "cut off at %ld", i);
    }
    memcpy(bad, whole, (size_t)size);
    bad[size] = 0;
    write_entry(bad, size + 1);
    CHECK(!finds("compiler", "text", "binary"));
    mf_cache_keep("compiler", "text", "binary", 6);
    CHECK(finds("compiler", "text", "binary") && count_entries("cache-damaged") == 1);
}

static void test_no_cache(void)
{
    static const char *const none[] = {"off", "", "a-file/folder"};
    int file = open("a-file", O_CREAT | O_WRONLY, 0600);
    close(file);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        setenv("MODEFOLD_CACHE", none[i], 1);
        mf_cache_keep("compiler", "text", "binary", 6);
        CHECK(!finds("compiler", "text", "binary"));
    }
    CHECK(access("off", F_OK));
    unlink("a-file");
    if (geteuid()) { /* root may write anywhere */
        use_cache("cache-readonly");
        mkdir("cache-readonly", 0500);
        mf_cache_keep("compiler", "text", "binary", 6);
        CHECK(!finds("compiler", "text", "binary") && !count_entries("cache-readonly"));
        rmdir("cache-readonly");
    }
}

static void test_places(void)
{
    char folder[400], before[300];
    char *home = getenv("HOME");
    snprintf(before, sizeof before, "%s", home ? home : "");
    CHECK(getcwd(folder, 300) != NULL);
    unsetenv("MODEFOLD_CACHE");
    setenv("XDG_CACHE_HOME", folder, 1);
    mf_cache_keep("compiler", "text", "binary", 6);
    CHECK(finds("compiler", "text", "binary") && count_entries("modefold") == 1 && !unlink(entry_name));
    setenv("XDG_CACHE_HOME", "relative", 1);
    setenv("HOME", folder, 1);
    mf_cache_keep("compiler", "text", "binary", 6);
    CHECK(finds("compiler", "text", "binary") && count_entries(".cache/modefold") == 1 && !unlink(entry_name));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK(!finds("compiler", "text", "binary"));
    setenv("HOME", before, 1);
}

/* Writes and reads one entry again and again; whoever else does the same, what is found is whole. */
static void *fill_cache(void *wrong)
{
    char binary[3000], *found;
    size_t size;
    memset(binary, 'x', sizeof binary);
    for (int i = 0; i < 200; i++) {
        mf_cache_keep("compiler", "shared", binary, sizeof binary);
        if (!mf_cache_find("compiler", "shared", &found, &size)) {
            ++*(int *)wrong;
            continue;
        }
        *(int *)wrong += size != sizeof binary || memcmp(found, binary, size);
        mf_free(found);
    }
    return NULL;
}

static void test_cache_together(void)
{
    int wrong[3] = {0}, child_status = 1;
    pthread_t threads[2];
    use_cache("cache-together");
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        fill_cache(&wrong[2]);
        _exit(wrong[2] != 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, fill_cache, &wrong[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(child > 0 && waitpid(child, &child_status, 0) == child && !child_status);
    CHECK_MSG(!wrong[0] && !wrong[1], "%d and %d wrong entries", wrong[0], wrong[1]);
    CHECK(count_entries("cache-together") == 1);
}

int main(void)
{
    test_cache();
    test_damage();
    test_no_cache();
    test_places();
    test_cache_together();
    return check_done("test_gpu_cache");
}
