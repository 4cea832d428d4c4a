#!/usr/bin/env python3
"""Line charts as SVG, panels side by side, for the programs of this folder.

    gpu_chart.py NAME.json ...        draws the charts of a report as NAME.svg or NAME-CHART.svg"""
import json
import math
import sys

COLOURS = ["#c00000", "#2e75b6", "#70ad47", "#7030a0", "#bf9000", "#404040", "#00a0a0", "#e07080"]
WIDTH, HEIGHT, LEFT, TOP = 330, 250, 55, 40


def number(value):
    return f"{value:.3g}"


class Axis:
    """From values to pixels, linear from 0 on or logarithmic."""

    def __init__(self, values, pixels, log):
        self.log, self.pixels = log, pixels
        values = [v for v in values if v is not None and (v > 0 or not log)] or [1]
        self.low, self.high = (min(values), max(values)) if log else (min(0, *values), max(values))
        if self.high <= self.low:
            self.high = self.low * 2 if log else self.low + 1

    def place(self, value):
        if self.log:
            value = max(value, self.low)
            return self.pixels * math.log(value / self.low) / math.log(self.high / self.low)
        return self.pixels * (value - self.low) / (self.high - self.low)

    def ticks(self):
        for i in range(5):
            yield self.low * (self.high / self.low) ** (i / 4) if self.log else self.low + (self.high - self.low) * i / 4


def panel_svg(panel, left, names):
    """panel: title, x and y (labels), series {name: [(x, y)]}, marks [(x, y, text)], log_x, log_y."""
    points = [p for line in panel["series"].values() for p in line] + [m[:2] for m in panel.get("marks", [])]
    x = Axis([p[0] for p in points], WIDTH - 80, panel.get("log_x"))
    y = Axis([p[1] for p in points], HEIGHT, panel.get("log_y"))

    def at(px, py):
        return left + x.place(px), TOP + HEIGHT - y.place(py)
    out = [f'<text x="{left}" y="{TOP - 8}" font-weight="bold">{panel["title"]}</text>',
           f'<text x="{left + WIDTH / 2 - 60}" y="{TOP + HEIGHT + 30}">{panel["x"]}</text>',
           f'<text x="{left - 50}" y="{TOP + HEIGHT + 30}">{panel["y"]}</text>']
    for tick in y.ticks():
        py = TOP + HEIGHT - y.place(tick)
        out.append(f'<line x1="{left}" y1="{py:.1f}" x2="{left + WIDTH - 80}" y2="{py:.1f}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 4}" y="{py + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick in x.ticks():
        out.append(f'<text x="{left + x.place(tick):.1f}" y="{TOP + HEIGHT + 14}" text-anchor="middle">'
                   f'{number(tick)}</text>')
    for name, line in panel["series"].items():
        path = " ".join("%.1f,%.1f" % at(px, py) for px, py in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{COLOURS[names.index(name) % len(COLOURS)]}" '
                   'stroke-width="2"/>')
    for px, py, text in panel.get("marks", []):
        cx, cy = at(px, py)
        out.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="4" fill="none" stroke="black"/>')
        out.append(f'<text x="{cx - 8:.1f}" y="{cy - 6:.1f}" text-anchor="end">{text}</text>')
    return out


def chart(title, panels):
    names = []
    for panel in panels:
        names += [name for name in panel["series"] if name not in names]
    width, height = LEFT + WIDTH * max(len(panels), 2), TOP + HEIGHT + 60 + 16 * ((len(names) + 5) // 6)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
           'font-size="11">', '<rect width="100%" height="100%" fill="white"/>', f'<text x="10" y="16">{title}</text>']
    for i, panel in enumerate(panels):
        out += panel_svg(panel, LEFT + i * WIDTH, names)
    for i, name in enumerate(names):
        px, py = 10 + 120 * (i % 6), TOP + HEIGHT + 52 + 16 * (i // 6)
        out.append(f'<rect x="{px}" y="{py - 5}" width="12" height="4" fill="{COLOURS[i % len(COLOURS)]}"/>')
        out.append(f'<text x="{px + 16}" y="{py}">{name}</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            charts = json.load(file)["charts"]
        for name, what in charts.items():
            with open(path.removesuffix(".json") + (f"-{name}" if name else "") + ".svg", "w", encoding="utf-8") as file:
                file.write(chart(what["title"], what["panels"]))


if __name__ == "__main__":
    main()
