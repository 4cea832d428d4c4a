/* Boxes and their labels, drawn on pictures of u8 with three channels. */
#ifndef MF_CLI_DRAW_H
#define MF_CLI_DRAW_H

#include <stdint.h>

/* Rows of width * 3 bytes, one after the other. */
struct canvas {
    unsigned char *pixels;
    int64_t height, width;
};

/* A frame between these corners, in the colour of number `label`, with text on a bar at its upper edge. What lies
 * outside the picture is left out; thickness and letters grow with the picture. */
void draw_box(const struct canvas *canvas, double left, double top, double right, double bottom, int label,
              const char *text);

#endif
