#!/usr/bin/env python3
"""Folds of as many bytes in every shape between one wide row and one long column: GB/s by `modefold bench`.

    bench/shapes.py --device cuda:0 --modefold build/release/cli/modefold [--modefold OTHER ...] [--out TABLE]

Rows of the table: widths of the columns (ij->j) or lengths of the rows (ij->i); columns: an expression on a type. With
several programs, such as one from before a change, a cell has a figure of each. A shape that is slow beside its
neighbours is a form that a solver chose badly."""
import argparse
import json
import os
import subprocess
import tempfile

SIZE = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i8": 1, "u8": 1}
WIDTHS = "2,3,4,7,16,24,48,64,100,128,200,256,512,1000,1024,2048,4096,10000,16384,65536,100000,250400,1000000"
FOLDS = "f32:sum,f32:var,f32:argmax,f32:logsumexp,bf16:sum,bf16:var,bf16:argmax,bf16:logsumexp,i8:sum,i8:max,f64:sum"


def problem(modes, fold, width, size):
    kind, reducer = fold.split(":")
    other = max(size // SIZE[kind] // width, 1)
    shape = (other, width)
    return f"{modes} | {reducer}(a) | a={kind}[{shape[0]},{shape[1]}]"


def measure(program, device, problems, seconds):
    """GB/s of each; a GPU's kernels are compiled before, by as many processes as there are cores."""
    bench = [program, "bench", "--device", device, "--threads", "1"]
    with tempfile.TemporaryDirectory() as cache:
        environment = dict(os.environ, MODEFOLD_CACHE=cache)
        cores = 0 if device == "cpu" else min(os.cpu_count() or 1, len(problems))
        warm = [subprocess.Popen(bench + ["--seconds", "0.001"] + problems[i::cores], env=environment,
                                 stdout=subprocess.DEVNULL) for i in range(cores)]
        for process in warm:
            process.wait()
        out = subprocess.run(bench + ["--seconds", str(seconds), "--json"] + problems, env=environment,
                             capture_output=True, text=True, check=True).stdout
    return [(row["gb_per_second"], row["solver"]) for row in json.loads(out)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modefold", action="append", required=True)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--modes", default="ij->j,ij->i")
    parser.add_argument("--folds", default=FOLDS)
    parser.add_argument("--widths", default=WIDTHS)
    parser.add_argument("--bytes", type=int, default=1 << 27)
    parser.add_argument("--seconds", type=float, default=0.03)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    folds, lines = options.folds.split(","), []
    for modes in options.modes.split(","):
        widths = [int(w) for w in options.widths.split(",")]
        problems = [problem(modes, f, w, options.bytes) for w in widths for f in folds]
        figures = [measure(program, options.device, problems, options.seconds) for program in options.modefold]
        lines += ["", "| " + " | ".join([modes] + folds) + " |", "|" + "---:|" * (len(folds) + 1)]
        for i, width in enumerate(widths):
            cells = []
            for k in range(len(folds)):
                at = i * len(folds) + k
                cells.append(" -> ".join(f"{f[at][0]:.0f}" for f in figures) + " " + figures[-1][at][1])
            lines.append("| " + " | ".join([str(width)] + cells) + " |")
    print("\n".join(lines))
    if options.out:
        with open(options.out, "w") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
