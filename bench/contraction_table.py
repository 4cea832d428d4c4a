"""Contractions on the CPU, by expression, size, instruction set and threads, as a table in Markdown.

    python3 bench/contraction_table.py build/release/cli/modefold [--sizes 512,1024,2048] [--expressions 'max(a+b);...']
        > bench/results/cpu-contractions.md

A term is one (i, k, j) of 'ik,kj->ij' over normal float32; times are `modefold bench`'s medians. `scaling` is two
threads' speed over one's. For sums of products the last columns are the time of NumPy's product of matrices of that
size, by whatever BLAS it was built with, over modefold's; needs NumPy.
"""
import argparse
import json
import os
import re
import subprocess

ROWS = [("logsumexp(a+b)", "log-certified"), ("logsumexp(a+b)", "log-exact"), ("max(a+b)", None), ("min(a+b)", None),
        ("max(min(a,b))", None), ("sum(a*b)", None), ("sum(a*b)", "direct"), ("sum(a*b)", "openblas")]


def processor():
    with open("/proc/cpuinfo", encoding="ascii") as info:
        return re.search(r"model name\s*: (.*)", info.read()).group(1)


def ours(command, isa, threads, expression, solver, n):
    """Seconds and solver, or none where it does not run so."""
    problem = f"ik,kj->ij | {expression} | a=f32[{n},{n}] b=f32[{n},{n}]"
    arguments = [command, "bench", "--json", "--threads", str(threads), "--seconds", "0.5"]
    done = subprocess.run(arguments + (["--solver", solver] if solver else []) + [problem], capture_output=True,
                          text=True, env=dict(os.environ, MODEFOLD_ISA=isa), check=False)
    if done.returncode:
        return None
    row = json.loads(done.stdout)[0]
    return row["seconds"], row["solver"]


def product(threads, n):
    """Seconds of NumPy's product, in a process of its own: its library reads the number of threads once."""
    text = ("import numpy, time\nr = numpy.random.default_rng(1)\n"
            f"a, b = (r.standard_normal(({n}, {n})).astype('f4') for _ in 'ab')\no = a @ b\nt = []\n"
            "for _ in range(15):\n    s = time.perf_counter()\n    numpy.matmul(a, b, out=o)\n"
            "    t.append(time.perf_counter() - s)\nprint(sorted(t)[7])")
    done = subprocess.run(["/usr/bin/python3", "-c", text], capture_output=True, text=True, check=False,
                          env=dict(os.environ, OPENBLAS_NUM_THREADS=str(threads)))
    return float(done.stdout) if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command")
    parser.add_argument("--sizes", default="512,1024,2048")
    parser.add_argument("--expressions", default=";".join(dict.fromkeys(row[0] for row in ROWS)))
    args = parser.parse_args()
    print(f"# Contractions on the CPU\n\n{processor()}; `bench/contraction_table.py`: 'ik,kj->ij', float32, n x n x n "
          "terms.\n\nBillions of terms a second; scaling: two threads' over one's; NumPy: its product's time over "
          "modefold's.\n\n| expression | solver | instruction set | n | 1 thread | 2 threads | scaling | NumPy, 1 | "
          "NumPy, 2 |\n|---|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
    for expression, wanted in (row for row in ROWS if row[0] in args.expressions.split(";")):
        for isa in ("avx512", "avx2"):
            for n in (int(size) for size in args.sizes.split(",")):
                times = [ours(args.command, isa, threads, expression, wanted, n) for threads in (1, 2)]
                if None in times:
                    continue
                peers = [product(threads, n) if expression == "sum(a*b)" else None for threads in (1, 2)]
                ratio = [f"{peer / mine[0]:.2f}" if peer else "" for peer, mine in zip(peers, times)]
                print(f"| {expression} | {times[0][1]} | {isa} | {n} | {n ** 3 / times[0][0] / 1e9:.2f} | "
                      f"{n ** 3 / times[1][0] / 1e9:.2f} | {times[0][0] / times[1][0]:.2f} | {ratio[0]} | {ratio[1]} |",
                      flush=True)


if __name__ == "__main__":
    main()
