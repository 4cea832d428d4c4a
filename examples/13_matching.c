/* Two views of a picture, matched: corners, a binary descriptor of 512 bits for each, mf_match with the difference test
 * and the cross-check, and both views side by side in matches.png with a line for every match. The second view is made
 * from the first by a known turn, so what is right is known too.
 *
 *   13_matching [picture.png or .jpg]       without one: a picture of random discs
 *
 * Corners are those of Shi and Tomasi (Good features to track, 1994). A descriptor's bits are comparisons of smoothed
 * pixels, at places that turn with the corner's direction (Calonder and others, BRIEF, 2010; Rublee and others, ORB,
 * 2011). */
#include <modefold_match.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_WRITE_IMPLEMENTATION
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>

enum { MOST = 600, BITS = 512, REACH = 15, EDGE = 26, DIFFERENCE = 25 };
#define CLOSE 3.0 /* pixels */

struct view {
    int width, height, count;
    float *pixel, *smooth;
    int x[MOST], y[MOST];
    uint64_t bits[MOST][BITS / 64];
};

static uint64_t random_state = 88172645463325252u;

/* 0 to 1; Marsaglia's xorshift. */
static double chance(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (double)(random_state >> 11) / 9007199254740992.0;
}

/* ---- pictures ---- */

static float *new_plane(const struct view *v)
{
    float *plane = calloc((size_t)v->width * (size_t)v->height, sizeof *plane);
    if (!plane)
        exit(1);
    return plane;
}

/* Between pixels; outside it is the edge's. */
static float sample(const struct view *v, const float *plane, double x, double y)
{
    x = fmin(fmax(x, 0), v->width - 1.001);
    y = fmin(fmax(y, 0), v->height - 1.001);
    const int i = (int)x, j = (int)y;
    const double fx = x - i, fy = y - j;
    const float *p = plane + (size_t)j * (size_t)v->width + i;
    return (float)((1 - fy) * ((1 - fx) * p[0] + fx * p[1]) + fy * ((1 - fx) * p[v->width] + fx * p[v->width + 1]));
}

static void draw_discs(struct view *v)
{
    v->width = 640;
    v->height = 480;
    v->pixel = new_plane(v);
    for (int n = 0; n < 900; n++) {
        const double x = chance() * v->width, y = chance() * v->height, r = 4 + 22 * chance(), light = 255 * chance();
        for (int j = (int)fmax(0, y - r); j < fmin(v->height, y + r); j++)
            for (int i = (int)fmax(0, x - r); i < fmin(v->width, x + r); i++)
                if (hypot(i - x, j - y) < r)
                    v->pixel[j * v->width + i] = (float)light;
    }
}

static int read_picture(const char *path, struct view *v)
{
    int channels;
    unsigned char *bytes = stbi_load(path, &v->width, &v->height, &channels, 1);
    if (!bytes || v->width < 4 * EDGE || v->height < 4 * EDGE) {
        printf("%s: %s\n", path, bytes ? "too small" : stbi_failure_reason());
        return 1;
    }
    v->pixel = new_plane(v);
    for (int i = 0; i < v->width * v->height; i++)
        v->pixel[i] = bytes[i];
    stbi_image_free(bytes);
    return 0;
}

/* Where a point of the first view is in the second: turned by 20 degrees around the middle, and smaller. */
static void warp(const struct view *v, double x, double y, double *to_x, double *to_y)
{
    const double turn = 20 * 3.14159265358979 / 180, scale = 0.9, dx = x - v->width / 2.0, dy = y - v->height / 2.0;
    *to_x = v->width / 2.0 + scale * (cos(turn) * dx - sin(turn) * dy) + 11;
    *to_y = v->height / 2.0 + scale * (sin(turn) * dx + cos(turn) * dy) - 7;
}

static void unwarp(const struct view *v, double x, double y, double *to_x, double *to_y)
{
    const double turn = 20 * 3.14159265358979 / 180, scale = 0.9;
    const double dx = (x - 11 - v->width / 2.0) / scale, dy = (y + 7 - v->height / 2.0) / scale;
    *to_x = v->width / 2.0 + cos(turn) * dx + sin(turn) * dy;
    *to_y = v->height / 2.0 - sin(turn) * dx + cos(turn) * dy;
}

/* The second view: darker, and with noise. */
static void see_again(const struct view *first, struct view *second)
{
    second->width = first->width;
    second->height = first->height;
    second->pixel = new_plane(second);
    for (int j = 0; j < first->height; j++)
        for (int i = 0; i < first->width; i++) {
            double x, y;
            unwarp(first, i, j, &x, &y);
            second->pixel[j * first->width + i] =
                (float)(0.8 * sample(first, first->pixel, x, y) + 12 * (chance() - 0.5) + 15);
        }
}

static void smooth(struct view *v)
{
    static const float weight[5] = {1 / 16.f, 4 / 16.f, 6 / 16.f, 4 / 16.f, 1 / 16.f};
    float *across = new_plane(v);
    v->smooth = new_plane(v);
    for (int j = 2; j < v->height - 2; j++)
        for (int i = 2; i < v->width - 2; i++)
            for (int k = 0; k < 5; k++)
                across[j * v->width + i] += weight[k] * v->pixel[j * v->width + i + k - 2];
    for (int j = 4; j < v->height - 4; j++)
        for (int i = 4; i < v->width - 4; i++)
            for (int k = 0; k < 5; k++)
                v->smooth[j * v->width + i] += weight[k] * across[(j + k - 2) * v->width + i];
    free(across);
}

/* ---- corners and descriptors ---- */

/* The smaller eigenvalue of the gradients' second moments around a pixel. */
static float corner(const struct view *v, int x, int y)
{
    float xx = 0, xy = 0, yy = 0;
    for (int j = y - 2; j <= y + 2; j++)
        for (int i = x - 2; i <= x + 2; i++) {
            const float *p = v->smooth + j * v->width + i, dx = p[1] - p[-1], dy = p[v->width] - p[-v->width];
            xx += dx * dx;
            xy += dx * dy;
            yy += dy * dy;
        }
    return (xx + yy) / 2 - sqrtf((xx - yy) * (xx - yy) / 4 + xy * xy);
}

static int is_highest(const struct view *v, const float *score, int x, int y)
{
    const float s = score[y * v->width + x];
    for (int j = y - 4; j <= y + 4; j++)
        for (int i = x - 4; i <= x + 4; i++)
            if (score[j * v->width + i] > s)
                return 0;
    return s > 100;
}

/* The strongest corners, by a threshold that is raised until they fit. */
static void find_corners(struct view *v)
{
    float *score = new_plane(v), limit = 0;
    for (int j = EDGE; j < v->height - EDGE; j++)
        for (int i = EDGE; i < v->width - EDGE; i++)
            score[j * v->width + i] = corner(v, i, j);
    for (v->count = MOST; v->count == MOST; limit = limit * 1.3f + 100) {
        v->count = 0;
        for (int j = EDGE; j < v->height - EDGE && v->count < MOST; j++)
            for (int i = EDGE; i < v->width - EDGE && v->count < MOST; i++)
                if (score[j * v->width + i] > limit && is_highest(v, score, i, j)) {
                    v->x[v->count] = i;
                    v->y[v->count++] = j;
                }
    }
    free(score);
}

/* Bit b: whether the first of two places around the corner is darker. They turn to where its neighbourhood is light. */
static void describe(struct view *v, double (*places)[4])
{
    for (int c = 0; c < v->count; c++) {
        double mx = 0, my = 0;
        for (int j = -REACH; j <= REACH; j++)
            for (int i = -REACH; i <= REACH; i++)
                if (i * i + j * j <= REACH * REACH) {
                    const float p = v->smooth[(v->y[c] + j) * v->width + v->x[c] + i];
                    mx += (float)i * p;
                    my += (float)j * p;
                }
        const double length = hypot(mx, my) + 1e-9, cosine = mx / length, sine = my / length;
        memset(v->bits[c], 0, sizeof v->bits[c]);
        for (int b = 0; b < BITS; b++) {
            float light[2];
            for (int s = 0; s < 2; s++) {
                const double x = places[b][2 * s], y = places[b][2 * s + 1];
                light[s] = sample(v, v->smooth, v->x[c] + cosine * x - sine * y, v->y[c] + sine * x + cosine * y);
            }
            v->bits[c][b / 64] |= (uint64_t)(light[0] < light[1]) << b % 64;
        }
    }
}

/* ---- what is shown ---- */

static void draw_line(unsigned char *to, int width, double x0, double y0, double x1, double y1, int right)
{
    const int steps = (int)fmax(fabs(x1 - x0), fabs(y1 - y0)) + 1;
    for (int s = 0; s <= steps; s++) {
        const int x = (int)(x0 + (x1 - x0) * s / steps), y = (int)(y0 + (y1 - y0) * s / steps);
        unsigned char *pixel = to + 3 * ((size_t)y * (size_t)width + (size_t)x);
        pixel[0] = right ? 40 : 255;
        pixel[1] = right ? 220 : 30;
        pixel[2] = 40;
    }
}

static int is_right(const struct view *v, int q, int t)
{
    double x, y;
    warp(&v[0], v[0].x[q], v[0].y[q], &x, &y);
    return hypot(x - v[1].x[t], y - v[1].y[t]) <= CLOSE;
}

/* Green lines: right ones. */
static int draw_matches(const struct view *v, const int32_t *match, const char *path)
{
    const int width = 2 * v[0].width;
    unsigned char *out = malloc(3 * (size_t)width * (size_t)v[0].height);
    if (!out)
        return 1;
    for (int j = 0; j < v[0].height; j++)
        for (int i = 0; i < width; i++)
            memset(out + 3 * (j * width + i),
                   (int)fminf(fmaxf(v[i / v[0].width].pixel[j * v[0].width + i % v[0].width], 0), 255), 3);
    for (int q = 0; q < v[0].count; q++)
        if (match[q] >= 0)
            draw_line(out, width, v[0].x[q], v[0].y[q], v[1].x[match[q]] + v[0].width, v[1].y[match[q]],
                      is_right(v, q, match[q]));
    const int written = stbi_write_png(path, width, v[0].height, 3, out, 3 * width);
    free(out);
    return !written;
}

int main(int argc, char **argv)
{
    static struct view v[2];
    static double places[BITS][4];
    static int32_t match[MOST];
    mf_device *cpu;
    if (argc > 1 && read_picture(argv[1], &v[0]))
        return 1;
    if (argc <= 1)
        draw_discs(&v[0]);
    see_again(&v[0], &v[1]);
    for (int b = 0; b < BITS; b++)
        for (int i = 0; i < 4; i++) /* two uniform numbers: nearer to the corner more often */
            places[b][i] = (chance() + chance() - 1) * REACH;
    for (int i = 0; i < 2; i++) {
        smooth(&v[i]);
        find_corners(&v[i]);
        describe(&v[i], places);
    }
    const int64_t rows[2][2] = {{v[0].count, BITS / 64}, {v[1].count, BITS / 64}};
    const DLTensor queries = mf_tensor(v[0].bits, MF_U64, 2, rows[0]), train = mf_tensor(v[1].bits, MF_U64, 2, rows[1]),
                   matches = mf_tensor(match, MF_I32, 1, rows[0]);
    const mf_match_input input = {.queries = &queries, .train = &train};
    const mf_match_output output = {.matches = &matches};
    const mf_match_options options = {.tests = MF_MATCH_DIFFERENCE | MF_MATCH_CROSS_CHECK, .difference = DIFFERENCE};
    if (mf_device_open("cpu", &cpu) != MF_OK || mf_match(cpu, &input, &output, &options, NULL) != MF_OK) {
        printf("%s\n", mf_error());
        return 1;
    }
    mf_device_close(cpu);
    int found = 0, right = 0;
    for (int q = 0; q < v[0].count; q++)
        if (match[q] >= 0) {
            found++;
            right += is_right(v, q, match[q]);
        }
    printf("%d and %d corners, %d matches, %d of them right (%.1f %%)\n", v[0].count, v[1].count, found, right,
           found ? 100.0 * right / found : 0);
    const int drawn = !draw_matches(v, match, "matches.png");
    for (int i = 0; i < 2; i++) {
        free(v[i].pixel);
        free(v[i].smooth);
    }
    return drawn && found >= 50 && right >= 0.9 * found ? 0 : 1;
}
