/* modefold detect, by the built command, on the small network and pictures made here. */
#include <unistd.h>

#include "check.h"
#include "command.h"
#include "net_small.h"
#include "picture.h"

static int detect(const char *arguments)
{
    char line[1024];
    snprintf(line, sizeof line, "detect %s", arguments);
    return run(line);
}

static void expect(const char *arguments, int status, const char *part)
{
    const char *text = status ? err_text : out_text;
    int found = detect(arguments);
    CHECK_MSG(found == status && strstr(text, part) && (status || !err_text[0]), "%s: status %d\n%s%sshould say ... %s",
              arguments, found, out_text, err_text, part);
}

/* The network's files, two pictures of other sizes than its input, and names of its classes. */
static int make_files(void)
{
    size_t cfg_bytes, bytes;
    char error[512], *cfg = net_text("tests/nets/small.cfg", &cfg_bytes);
    void *weights = cfg ? net_random_weights(cfg, cfg_bytes, 1, &bytes) : NULL;
    FILE *file = fopen("small.cfg", "wb");
    int good = weights && file && fwrite(cfg, 1, cfg_bytes, file) == cfg_bytes && !fclose(file);
    file = fopen("small.weights", "wb");
    good = good && file && fwrite(weights, 1, bytes, file) == bytes && !fclose(file);
    file = fopen("small.names", "wb");
    good = good && file && fputs("cat\ndog\n", file) >= 0 && !fclose(file);
    for (int p = 0; p < 2 && good; p++) {
        struct picture picture;
        const int64_t shape[3] = {40, p ? 90 : 50, p ? 4 : 1};
        good = !picture_create(p ? "b.png" : "a.png", mf_dtype(MF_U8), 3, shape, &picture, error, sizeof error);
        for (int64_t i = 0; good && i < shape[0] * shape[1] * shape[2]; i++)
            picture.pixels[i] = (unsigned char)(i * 37 % 251);
        good = good && !picture_commit(&picture, error, sizeof error);
        picture_close(&picture);
    }
    free(weights);
    free(cfg);
    return CHECK(good);
}

static void check_drawing(void)
{
    struct picture before, after;
    char error[512];
    int changed = 0;
    expect("small.cfg small.weights a.png b.png --names small.names --threshold 0.2 -o x.png -o y.png", 0,
           "b.png: 90 x 40, ");
    CHECK(strstr(out_text, "a.png: 50 x 40, ") && (strstr(out_text, "\n  cat ") || strstr(out_text, "\n  dog ")));
    if (!CHECK(!picture_open("b.png", &before, error, sizeof error) &&
               !picture_open("y.png", &after, error, sizeof error)))
        return;
    CHECK(after.shape[0] == 40 && after.shape[1] == 90 && after.shape[2] == 3);
    for (int64_t i = 0; i < 40 * 90; i++)
        changed += memcmp(before.pixels + 4 * i, after.pixels + 3 * i, 3) != 0;
    CHECK_MSG(changed > 50 && changed < 40 * 90, "%d pixels were drawn", changed);
    picture_close(&before);
    picture_close(&after);
}

/* Every way that is always here finds as many boxes (their scores nearly agree, so their order may differ). */
static void check_backends(void)
{
    static const char *const options[] = {"", "--backend scalar", "--unfused", "--order-contract", "--threads 1"};
    int first = 0;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        char line[256];
        int boxes = -1;
        snprintf(line, sizeof line, "small.cfg small.weights a.png --threshold 0.35 --letterbox %s", options[i]);
        expect(line, 0, "a.png: 50 x 40, ");
        if (sscanf(out_text, "a.png: 50 x 40, %d boxes", &boxes) == 1 && !i)
            first = boxes;
        CHECK_MSG(boxes == first && boxes > 5, "%s: %d boxes, not %d", options[i], boxes, first);
    }
}

int main(void)
{
    if (!getenv("MODEFOLD_COMMAND") || !make_files()) {
        check_skip("modefold detect", "MODEFOLD_COMMAND is not set");
        return check_done("net_cli");
    }
    check_drawing();
    check_backends();
    expect("small.cfg small.weights a.png --rules course --json", 0,
           "\"picture\": \"a.png\", \"width\": 50, \"height\": 40");
    expect("small.cfg small.weights a.png --json --threshold 0.2 --times --trials 2", 0,
           "\"times\": {\"End-to-end\": ");
    expect("small.cfg small.weights a.png --times --trials 2 --backend simd,scalar", 0, "Conv2D summed");
    CHECK(strstr(out_text, "      simd     scalar\n") && strstr(out_text, "\nMaxPool2D summed "));
    expect("--help", 0, "modefold detect NET.cfg NET.weights PICTURE...");
    expect("small.cfg small.weights", 2, "at least one picture");
    expect("small.cfg small.weights a.png b.png -o x.png", 2, "2 pictures were given and -o stands 1 time");
    expect("small.cfg small.weights a.png --rules mine", 2, "darknet or course, not \"mine\"");
    expect("small.cfg small.weights a.png --backend gpu", 1, "there is no backend \"gpu\"");
    expect("small.cfg small.weights a.png --backend simd,scalar", 2, "with --times only");
    expect("small.cfg small.weights a.png --times --trials 0", 2, "--trials takes 1");
    expect("small.cfg small.weights a.png --precision f16", 0, "a.png: 50 x 40, ");
    expect("small.cfg small.weights a.png --precision f64", 2, "f32, tf32 or f16, not \"f64\"");
    expect("small.cfg small.weights a.png --precision tf32", 1, "precision tf32 is for GPUs, not for cpu");
    expect("small.cfg small.weights a.png --threshold 7", 2, "from 0 to 1");
    expect("small.cfg small.weights missing.png", 1, "missing.png");
    expect("small.weights small.cfg a.png", 1, "small.weights:1: there is a zero byte");
    expect("small.cfg small.names a.png", 1, "small.names has 8 bytes, which are no header");
    expect("small.cfg small.weights a.png --names none.names", 1, "none.names cannot be opened");
    return check_done("net_cli");
}
