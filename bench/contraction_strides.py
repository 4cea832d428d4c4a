"""Sums of products of strided operands against copies and a BLAS product; two threads against one. Markdown tables.

    /usr/bin/python3 bench/contraction_strides.py build/release/cli/modefold [--sizes 512,1024,2048] [--rounds 5]
                                                  [--threads 1] [--no-scaling]

Layouts: a batch mode of 4 whose elements are neighbours in one operand or in both, and operands of which every second
column is taken. A BLAS cannot read these (but for kbi, whose matrices lie in it row after row): NumPy copies them
(ascontiguousarray), multiplies the copies, and copies the products to where they belong if these are neighbours of each
other too; a large array is given back first, after which glibc keeps the memory of these copies, which is NumPy's best
case. Against that: the solver that modefold chooses, with the contract's bits, and solvers openblas and fused. Plain
matrices, which nobody copies, are there too. All read the same arrays in one process (the library beside the command's
folder, through ctypes), in turns of three runs each, so that other work on the machine and the caches are the same for
all; medians, and the least times, which other work spoils less. Results are compared. Needs a NumPy that is built with
OpenBLAS.
"""
import argparse
import ctypes
import json
import os
import statistics
import subprocess
import sys
import time

from gpu_device import Options, Tensor

BATCH = 4
RUNS = 3
LAYOUTS = [
    # modes, the operands' shapes, what makes them a product's operands, the output's shape
    ("ikb,kjb->ijb", ("nn4", "nn4"), ((2, 0, 1), (2, 0, 1)), "nn4"),
    ("ikb,bkj->bij", ("nn4", "4nn"), ((2, 0, 1), (0, 1, 2)), "4nn"),
    ("kbi,bkj->bij", ("n4n", "4nn"), ((1, 2, 0), (0, 1, 2)), "4nn"),
    ("ik,kj->ij, every second column", ("nm", "nm"), ((0, 1), (0, 1)), "nn"),
    ("ik,kj->ij", ("nn", "nn"), ((0, 1), (0, 1)), "nn"),
]
SCALED = ["sum(a*b)", "max(a+b)", "logsumexp(a+b)"]


def ours(command, problem, threads):
    done = subprocess.run([command, "bench", "--json", "--seconds", "0.2", "--threads", str(threads), problem],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)[0]


class Library:
    def __init__(self, command):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(command)))
        self.library = ctypes.CDLL(os.path.join(folder, "libmodefold.so"))
        self.library.mf_error.restype = ctypes.c_char_p
        self.device = ctypes.c_void_p()
        self.check(self.library.mf_device_open(b"cpu", ctypes.byref(self.device)))

    def check(self, status):
        if status:
            sys.exit(self.library.mf_error().decode())

    def plan(self, modes, arrays, solver, threads):
        """A function that executes the plan on the arrays: operands, then the output."""
        tensors = (Tensor * len(arrays))()
        for tensor, array in zip(tensors, arrays):
            words = ctypes.c_int64 * array.ndim
            tensor.device_type, tensor.ndim, tensor.code, tensor.bits, tensor.lanes = 1, array.ndim, 2, 32, 1
            tensor.shape = words(*array.shape)
            tensor.strides = words(*[stride // array.itemsize for stride in array.strides])
        plan = ctypes.c_void_p()
        options = Options(solver, 0, threads)
        self.check(self.library.mf_plan_create(self.device, modes.encode(), b"sum(a*b)", tensors,
                                               ctypes.byref(tensors[-1]), ctypes.byref(options), ctypes.byref(plan)))
        inputs = (ctypes.c_void_p * 2)(*[array.ctypes.data for array in arrays[:-1]])
        outputs = (ctypes.c_void_p * 1)(arrays[-1].ctypes.data)
        return lambda: self.check(self.library.mf_plan_execute(plan, inputs, outputs, None))


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def strides(args, sizes):
    import numpy
    library = Library(args.command)
    numpy.ones(7 << 20, dtype="f4")
    print(f"Threads: {args.threads}. Times in ms, least times behind the slash.\n\n"
          "| modes | n | modefold | openblas | fused | copies + product | the copies | theirs / modefold | "
          "theirs / openblas | theirs / fused |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for modes, shapes, turns, out_shape in LAYOUTS:
        for n in sizes:
            def array(shape, make):
                return make([{"n": n, "m": 2 * n, "4": BATCH}[letter] for letter in shape])
            rng = numpy.random.default_rng(1)
            memory = [array(shape, lambda size: rng.standard_normal(size, dtype="f4")) for shape in shapes]
            memory = [x[:, ::2] if "m" in shape else x for x, shape in zip(memory, shapes)]
            views = [x.transpose(turn) for x, turn in zip(memory, turns)]
            only = modes.split(", every")[0]
            outs = [array(out_shape, lambda size: numpy.empty(size, dtype="f4")) for _ in "abcd"]
            turned = [out.transpose(2, 0, 1) if only.endswith("b") else out for out in outs]
            copies = []

            def copy_and_multiply():
                start = time.perf_counter()
                operands = [numpy.ascontiguousarray(view) for view in views]
                copies.append(time.perf_counter() - start)
                if only.endswith("b"):
                    numpy.copyto(turned[3], numpy.matmul(*operands))
                else:
                    numpy.matmul(*operands, out=outs[3])

            runs = [library.plan(only, memory + [outs[0]], None, args.threads),
                    library.plan(only, memory + [outs[1]], b"openblas", args.threads),
                    library.plan(only, memory + [outs[2]], b"fused", args.threads), copy_and_multiply]
            copy_and_multiply()
            for run, out in zip(runs, outs):
                run()
                assert numpy.allclose(out, outs[3], rtol=0, atol=1e-3 * n ** 0.5), only
            times = [[], [], [], []]
            for _ in range(args.rounds):
                for run, list_of in zip(runs, times):
                    list_of += [seconds(run) for _ in range(RUNS)]
            middle, least = [statistics.median(t) for t in times], [min(t) for t in times]
            shown = [f"{m * 1e3:.2f} / {t * 1e3:.2f}" for m, t in zip(middle, least)]
            ratios = [f"{middle[3] / middle[i]:.2f} / {least[3] / least[i]:.2f}" for i in range(3)]
            print(f"| {modes} | {n} | {' | '.join(shown)} | {statistics.median(copies) * 1e3:.2f} | "
                  f"{' | '.join(ratios)} |", flush=True)


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
    parser.add_argument("--threads", type=int, default=1, help="of the first table")
    parser.add_argument("--no-scaling", action="store_true", help="the first table only")
    args = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)  # before NumPy is loaded
    sizes = [int(size) for size in args.sizes.split(",")]
    strides(args, sizes)
    if not args.no_scaling:
        scaling(args, sizes)


if __name__ == "__main__":
    main()
