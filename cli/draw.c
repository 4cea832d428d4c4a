/* Boxes and their labels. Letters are stb_easy_font's, which are made of upright rectangles. */
#include "draw.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stb/stb_easy_font.h>

enum { TEXT_BYTES = 80, QUAD_BYTES = 64, QUADS = TEXT_BYTES * 24, LETTER_HEIGHT = 12 };

static int64_t clamp(double value, int64_t most)
{
    return !(value > 0) ? 0 : value >= (double)most ? most : (int64_t)value;
}

/* Pixels from left to right and from top to bottom, the ends left out. */
static void fill(const struct canvas *canvas, double left, double top, double right, double bottom,
                 const unsigned char colour[3])
{
    const int64_t x0 = clamp(left, canvas->width), x1 = clamp(right, canvas->width);
    const int64_t y0 = clamp(top, canvas->height), y1 = clamp(bottom, canvas->height);
    for (int64_t y = y0; y < y1; y++)
        for (int64_t x = x0; x < x1; x++)
            memcpy(canvas->pixels + 3 * (y * canvas->width + x), colour, 3);
}

/* Colours far from each other: hues a golden section apart. */
static void choose_colour(int label, unsigned char colour[3])
{
    const double hue = fmod(0.11 + 0.61803398875 * label, 1) * 6;
    for (int c = 0; c < 3; c++) {
        const double distance = fabs(fmod(hue + 6 - 2 * c, 6) - 3); /* 3 at this colour's own hue */
        colour[c] = (unsigned char)(255 * fmin(1, fmax(0.1, distance - 1)));
    }
}

static void draw_text(const struct canvas *canvas, double x, double y, double scale, char *text)
{
    static const unsigned char black[3] = {0, 0, 0};
    static _Thread_local float vertices[QUADS * QUAD_BYTES / sizeof(float)]; /* x, y, z, colour; four a rectangle */
    const int quads = stb_easy_font_print(0, 0, text, NULL, vertices, sizeof vertices);
    for (int q = 0; q < quads; q++) {
        const float *corner = vertices + (size_t)q * QUAD_BYTES / sizeof(float);
        fill(canvas, x + scale * (double)corner[0], y + scale * (double)corner[1], x + scale * (double)corner[8],
             y + scale * (double)corner[9], black);
    }
}

void draw_box(const struct canvas *canvas, double left, double top, double right, double bottom, int label,
              const char *text)
{
    char shown[TEXT_BYTES];
    unsigned char colour[3];
    const double side = (double)(canvas->height < canvas->width ? canvas->height : canvas->width);
    const double scale = fmax(1, floor(side / 300)), edge = fmax(1, floor(side / 200));
    left = fmax(left, 0);
    top = fmax(top, 0);
    right = fmin(right, (double)canvas->width);
    bottom = fmin(bottom, (double)canvas->height);
    choose_colour(label, colour);
    fill(canvas, left, top, right, top + edge, colour);
    fill(canvas, left, bottom - edge, right, bottom, colour);
    fill(canvas, left, top, left + edge, bottom, colour);
    fill(canvas, right - edge, top, right, bottom, colour);
    snprintf(shown, sizeof shown, "%s", text);
    for (char *c = shown; *c; c++)
        *c = *c < ' ' || *c > '~' ? '?' : *c; /* the letters there are */
    const double bar = scale * LETTER_HEIGHT, width = scale * (stb_easy_font_width(shown) + 4);
    const double y = top >= bar ? top - bar : top;
    fill(canvas, left, y, left + width, y + bar, colour);
    draw_text(canvas, left + 2 * scale, y + 2 * scale, scale, shown);
}
