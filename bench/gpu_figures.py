#!/usr/bin/env python3
"""The measurements of Dikbayir et al., Fast multidimensional reduction and broadcast operations on GPU for machine
learning (figures 9 to 14), on the CUDA GPU that is here, in double precision.

    gpu_figures.py --library libmodefold.so [--milliseconds 10] [--out NAME]

Reductions: one fold over all modes, beside an iterative one that reduces a mode at a time into temporary tensors (with
this library's own kernels: what a framework does whose reductions take one mode). Broadcasts: solver map, which takes
any number of modes, beside thread sliding in registers and by way of shared memory. GB/s are bytes read and written
once / time; `of limit` is their ratio to a plain read (or copy) of as many bytes in the same run. NAME.md is written."""
import argparse

import torch

import gpu_table
from gpu_table import Bench, median, random_tensor

M = 1 << 20


def reductions():
    """figure, modes, how elements become a shape, modes to reduce one at a time (the fast one first)"""
    return [
        ("10 A over x", "zyx->zy", lambda n: (n // (8 * 4096), 8, 4096), "x"),
        ("10 A over z", "zyx->yx", lambda n: (4096, 8, n // (8 * 4096)), "z"),
        ("11 B over x, y", "tzyx->tz", lambda n: (n // (64 * 4096), 64, 64, 64), "xy"),
        ("11 B over z, t", "tzyx->yx", lambda n: (64, 64, 64, n // (64 * 4096)), "zt"),
        ("12 C over x, y, z", "stzyx->st", lambda n: (n // (16 * 4096), 16, 16, 16, 16), "xyz"),
        ("12 C over z, t, s", "stzyx->yx", lambda n: (16, 16, 16, 16, n // (16 * 4096)), "zts"),
    ]


def slices():
    """Sides of a slice of figure 9, and the few huge slices that the paper leaves open."""
    sides = [(8, 16), (16, 16), (16, 32), (32, 32), (32, 64), (64, 64), (64, 128), (128, 128), (128, 256), (256, 256),
             (256, 512), (512, 512)]
    return sides + [(4096, 4096), (4096, 8192), (8192, 8192)]


class Figures(Bench):
    def __init__(self, options):
        super().__init__(options)
        self.lines = []

    def say(self, text):
        print(text, flush=True)
        self.lines.append(text)

    def table(self, title, columns):
        self.say(f"\n## {title}\n")
        self.say("| " + " | ".join(columns) + " |")
        self.say("|---|" + "---:|" * (len(columns) - 1))

    def rate(self, run, size):
        return size / median(run, self.options.milliseconds) / 1e9

    def one_fold(self, modes, x):
        out = torch.empty(gpu_table.result_shape(modes, [x]), dtype=x.dtype, device="cuda")
        return self.mf.plan(modes, "sum(a)", [x], [out]), 8 * (x.numel() + out.numel())

    def iterative(self, modes, x, order):
        """One plan a mode; each reads what the one before it wrote."""
        plans, left, y = [], modes.split("->")[0], x
        for mode in order:
            step = f"{left}->{left.replace(mode, '')}"
            out = torch.empty(gpu_table.result_shape(step, [y]), dtype=x.dtype, device="cuda")
            plans.append(self.mf.plan(step, "sum(a)", [y], [out]))
            left, y = step.split("->")[1], out

        def run():
            for plan in plans:
                plan()
        run.close = lambda: [plan.close() for plan in plans]
        return run

    def reduction_row(self, name, modes, x, order):
        run, size = self.one_fold(modes, x)
        other = self.iterative(modes, x, order)
        limit = self.read_limit(size)
        one, two = self.rate(run, size), self.rate(other, size)
        self.say(f"| {name} | {run.solver} | {one:.0f} | {one * 1e9 / limit:.2f} | {two:.0f} | {one / two:.2f} |")
        run.close()
        other.close()

    def figures_10_to_12(self):
        self.table("Figures 10 to 12: reductions of 2 M to 128 M doubles",
                   ["figure, M elements", "solver", "GB/s", "of limit", "iterative", "times faster"])
        for name, modes, shape, order in reductions():
            for n in (2, 4, 8, 16, 32, 64, 128):
                x = random_tensor(shape(n * M), torch.float64)
                self.reduction_row(f"{name}, {n}", modes, x, order)

    def figure_9(self):
        self.table("Figure 9: 64 M doubles in slices, and in few huge ones",
                   ["slice", "solver", "GB/s", "of limit", "iterative", "times faster"])
        for a, b in slices():
            count = 64 * M // (a * b)
            t = 8 if count % 8 == 0 else 1
            x = random_tensor((t, count // t, a, b), torch.float64)
            self.reduction_row(f"{count} of {a}x{b}", "tzyx->tz", x, "xy")

    def figures_13_and_14(self):
        solvers = ("map", "slide", "slide-shared")
        self.table("Figures 13 and 14: vectors of 100 and 1024 doubles onto matrices",
                   ["figure, matrix", *solvers, "map of limit"])
        for figure, length in ((13, 100), (14, 1024)):
            for other in (128, 512, 1024, 4096, 16384, 65536):
                for modes, shape in (("ij,i->ij", (length, other)), ("ij,j->ij", (other, length))):
                    x, y = random_tensor(shape, torch.float64), random_tensor((length,), torch.float64)
                    out = torch.empty_like(x)
                    size = 8 * (2 * x.numel() + length)
                    rates = []
                    for solver in solvers:
                        run = self.mf.plan(modes, "a+b", [x, y], [out], solver)
                        rates.append(self.rate(run, size))
                        run.close()
                    limit = self.copy_limit(size) / 1e9
                    self.say(f"| {figure}, {modes} {shape[0]}x{shape[1]} | " + " | ".join("%.0f" % r for r in rates) +
                             f" | {rates[0] / limit:.2f} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--milliseconds", type=float, default=10)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    figures = Figures(options)
    figures.say(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}\n")
    figures.say(f"`bench/gpu_figures.py --milliseconds {options.milliseconds:g}`; float64, GB/s, medians")
    figures.figure_9()
    figures.figures_10_to_12()
    figures.figures_13_and_14()
    if options.out:
        with open(options.out + ".md", "w") as f:
            f.write("\n".join(figures.lines) + "\n")


if __name__ == "__main__":
    main()
