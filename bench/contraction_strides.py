"""Sums of products of strided operands against copies and a BLAS product; two threads against one. Markdown tables.

    /usr/bin/python3 bench/contraction_strides.py build/release/cli/modefold [--sizes 512,1024,2048] [--rounds 5]

Layouts: a batch mode of 4 whose elements are neighbours in one operand or in both, and operands of which every second
column is taken. A BLAS cannot read these: NumPy copies them (ascontiguousarray) and multiplies the copies, on one
thread. Times of modefold and of NumPy are taken in turns, so that other work on the machine meets both; medians, and
the least times, which other work spoils less.
Needs a NumPy that is built with OpenBLAS.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is loaded
import time  # noqa: E402

import numpy  # noqa: E402

BATCH = 4
LAYOUTS = [
    # modes, modefold's tensors, NumPy's (shape in memory, then what makes it a product's operand)
    ("ikb,kjb->ijb", "a=f32[{n},{n},4] b=f32[{n},{n},4] o=f32[{n},{n},4]", (2, 0, 1), (2, 0, 1)),
    ("ikb,bkj->bij", "a=f32[{n},{n},4] b=f32[4,{n},{n}] o=f32[4,{n},{n}]", (2, 0, 1), (0, 1, 2)),
    ("kbi,bkj->bij", "a=f32[{n},4,{n}] b=f32[4,{n},{n}] o=f32[4,{n},{n}]", (1, 2, 0), (0, 1, 2)),
    ("ik,kj->ij, every second column", "a=f32[{n},{n}]:({m},2) b=f32[{n},{n}]:({m},2) o=f32[{n},{n}]", None, None),
]
SCALED = ["sum(a*b)", "max(a+b)", "logsumexp(a+b)"]


def ours(command, problem, threads):
    done = subprocess.run([command, "bench", "--json", "--seconds", "0.2", "--threads", str(threads), problem],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)[0]


def random(shape):
    return numpy.random.default_rng(1).standard_normal(shape, dtype="f4")


def operands(n, a_turn, b_turn):
    if a_turn is None:
        return [random((n, 2 * n))[:, ::2] for _ in "ab"]
    shape = {(2, 0, 1): (n, n, BATCH), (0, 1, 2): (BATCH, n, n), (1, 2, 0): (n, BATCH, n)}
    return [random(shape[turn]).transpose(turn) for turn in (a_turn, b_turn)]


def copy_and_multiply(a, b):
    start = time.perf_counter()
    x, y = numpy.ascontiguousarray(a), numpy.ascontiguousarray(b)
    between = time.perf_counter()
    numpy.matmul(x, y)
    return time.perf_counter() - start, between - start


def strides(args, sizes):
    print("| modes | n | modefold, ms | least | copies + product, ms | least | theirs / ours | of the least | copies |\n"
          "|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for modes, tensors, a_turn, b_turn in LAYOUTS:
        for n in sizes:
            problem = f"{modes.split(', every')[0]} | sum(a*b) | " + tensors.format(n=n, m=2 * n)
            a, b = operands(n, a_turn, b_turn)
            copy_and_multiply(a, b)
            mine, theirs = [], []
            for _ in range(args.rounds):
                mine.append(ours(args.command, problem, 1)["seconds"])
                theirs += [copy_and_multiply(a, b) for _ in range(3)]
            copies = min(t[1] for t in theirs)
            theirs = [t[0] for t in theirs]
            m, t = statistics.median(mine), statistics.median(theirs)
            print(f"| {modes} | {n} | {m * 1e3:.1f} | {min(mine) * 1e3:.1f} | {t * 1e3:.1f} | {min(theirs) * 1e3:.1f} | "
                  f"{t / m:.2f} | {min(theirs) / min(mine):.2f} | {copies * 1e3:.1f} |", flush=True)


def scaling(args, sizes):
    print("\n| expression | solver | n | 1 thread, ms | 2 threads, ms | scaling | of the least |\n"
          "|---|---|---:|---:|---:|---:|---:|")
    for expression in SCALED:
        for n in sizes:
            problem = f"ik,kj->ij | {expression} | a=f32[{n},{n}] b=f32[{n},{n}] o=f32[{n},{n}]"
            times = {1: [], 2: []}
            for _ in range(2 * args.rounds):
                for threads, list_of in times.items():
                    row = ours(args.command, problem, threads)
                    list_of.append(row["seconds"])
            one, two = (statistics.median(times[threads]) for threads in (1, 2))
            print(f"| {expression} | {row['solver']} | {n} | {one * 1e3:.2f} | {two * 1e3:.2f} | {one / two:.2f} | "
                  f"{min(times[1]) / min(times[2]):.2f} |",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("--sizes", default="512,1024,2048")
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sizes = [int(size) for size in args.sizes.split(",")]
    strides(args, sizes)
    scaling(args, sizes)


if __name__ == "__main__":
    main()
