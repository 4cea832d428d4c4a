"""A network of darknet's on the CPU beside OpenCV's DNN module, in turns on the same machine, as a table in Markdown.

    python3 bench/net_table.py build/release/bench/bench_net NET.cfg NET.weights [rounds] > bench/results/cpu-net.md

Needs NumPy and OpenCV (Debian: python3-opencv), which is a peer here and nothing else. Batch 1, the picture in place: a
run is the network's layers alone. OpenCV uses as many threads as there are processors, as bench_net does. After the
rounds, once each: bench_net's other backends, and bench_net_pixels beside it, the way of Tandon and Kim, "CS492 Project
3", 2020.
"""
import os
import re
import statistics
import subprocess
import sys
import time

import cv2
import numpy as np

program, cfg, weights = sys.argv[1:4]
rounds, runs = int(sys.argv[4]) if len(sys.argv) > 4 else 5, 15
THREADS = len(os.sched_getaffinity(0))


def ours(backend="simd", count=runs):
    """Milliseconds of a run, of the direct floor, and the table of layers."""
    command = [program, cfg, weights, str(count), backend]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    run, floor = re.search(r"a run unmeasured ([\d.]+) ms; direct floor ([\d.]+) ms", out).groups()
    return float(run), float(floor), out


def by_kind(table, kind):
    """Milliseconds of all steps of a kind."""
    return sum(float(ms) for ms in re.findall(rf"^ *\d+ {kind} +([\d.]+)", table, re.M))


def pixels():
    """Milliseconds of the convolutions with one product a pixel."""
    out = subprocess.run([program + "_pixels", cfg, weights], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"one product a pixel: ([\d.]+) ms", out).group(1))


def opencv(net, picture):
    net.setInput(picture)
    times = []
    for _ in range(runs + 2):
        start = time.perf_counter()
        net.forward()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times[2:])


def processor():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")


cv2.setNumThreads(THREADS)
peer = cv2.dnn.readNetFromDarknet(cfg, weights)
peer.setPreferableBackend(cv2.dnn.DNN_BACKEND_OPENCV)
size = {key: int(re.search(rf"^{key}\s*=\s*(\d+)", open(cfg).read(), re.M).group(1)) for key in ("width", "height")}
blob = np.random.default_rng(1).random((1, 3, size["height"], size["width"]), dtype=np.float32)
rows = []
for _ in range(rounds):
    run, floor, table = ours()
    rows.append((run, floor, opencv(peer, blob), table))

print(f"# A network on the CPU\n\n{processor()}, {THREADS} threads; OpenCV {cv2.__version__}; "
      f"{os.path.basename(cfg)}, batch 1, {size['width']} x {size['height']}.\n")
print(f"Each round: the median of {runs} runs of bench_net, and of as many forward passes of OpenCV's DNN module after it.\n"
      "The floor is all multiplications and additions at the peak of fused multiply-adds that the round measured.\n")
print(f"    python3 bench/net_table.py build/release/bench/bench_net NET.cfg NET.weights {rounds}\n")
print("| round | modefold ms | OpenCV ms | times OpenCV | floor ms | run / floor |\n|---|---|---|---|---|---|")
for i, (run, floor, other, _) in enumerate(rows):
    print(f"| {i + 1} | {run:.1f} | {other:.1f} | {other / run:.2f} | {floor:.1f} | {run / floor:.2f} |")
best = min(rows)
print(f"\nThe layers in the quickest round; fractions above 1 are Winograd's:\n\n```\n{best[3].strip()}\n```")

print("\nThe ways to compute it, once each, beside the floor of their own minute. A product a pixel: OpenBLAS multiplies one\n"
      "window at a time by the weights.\n")
print("| way | Conv2D summed, ms | the other steps | a run | floor ms | run / floor |\n|---|---|---|---|---|---|")
ways = [("simd", best[3], best[0], best[1])]
for backend, what, count in (("direct", "simd without Winograd", runs), ("unfused", "simd, unfused", runs),
                             ("openblas", "openblas: products of 32 filters", 7), ("scalar", "scalar: plain loops", 3)):
    run, floor, table = ours(backend, count)
    ways.append((what, table, run, floor))
for what, table, run, floor in ways:
    others = by_kind(table, "(?!Conv2D)[A-Z][A-Za-z0-9]+")
    print(f"| {what} | {by_kind(table, 'Conv2D'):.1f} | {others:.1f} | {run:.1f} | {floor:.1f} | {run / floor:.2f} |")
print(f"| OpenBLAS: a product a pixel | {pixels():.1f} | | | | |")
