"""Matching on the CPU, beside OpenCV's BFMatcher in the same run, as a table in Markdown.

    python3 bench/match_table.py build/release/bench/bench_match [queries train] > bench/results/cpu-match.md

Needs NumPy and OpenCV (Debian: python3-opencv), which is a peer here and nothing else.
"""
import re
import subprocess
import sys
import time

import cv2
import numpy as np

program = sys.argv[1]
queries, train = (int(sys.argv[2]), int(sys.argv[3])) if len(sys.argv) > 3 else (10000, 10000)
LINE = re.compile(r"(\S+) +(\d+) threads +(\d+) bits k +(\d+)( both)? +([\d.]+)")


def opencv(threads, bits, rows):
    """Best speed of knnMatch, two neighbours, on the first rows queries."""
    cv2.setNumThreads(threads)
    rng = np.random.default_rng(1)
    q = rng.integers(0, 256, (rows, bits // 8), dtype=np.uint8)
    t = rng.integers(0, 256, (train, bits // 8), dtype=np.uint8)
    matcher, times = cv2.BFMatcher(cv2.NORM_HAMMING), []
    for _ in range(6):
        start = time.perf_counter()
        matcher.knnMatch(q, t, k=2)
        times.append(time.perf_counter() - start)
    return rows * train / min(times[1:]) * 1e-9


def ours(isa):
    rows = queries // 8 if isa == "scalar" else queries  # it takes long
    out = subprocess.run([program, isa, str(rows), str(train)], capture_output=True, text=True, check=True).stdout
    return [m.groups() for m in map(LINE.match, out.splitlines()) if m]


def processor():
    with open("/proc/cpuinfo") as info:
        return next((line.split(":")[1].strip() for line in info if line.startswith("model name")), "unknown")


# In turns, so that a slow moment of the machine meets both.
lines, peer = [], {}
for isa in ("avx512", "avx2", "neon", "scalar"):
    lines += ours(isa)
    for key in ((1, 512), (2, 512), (1, 256)):
        peer.setdefault(key, []).append(opencv(key[0], key[1], min(queries, 1500)))
peer = {key: max(values) for key, values in peer.items()}

print(f"# Matching on the CPU\n\n{processor()}; {queries} x {train} random rows; OpenCV {cv2.__version__}.\n")
print("Comparisons of two rows, 10^9 a second; the best of 15 runs, of OpenCV too. `both`: with the nearest query of every row of train.\n")
print("    python3 bench/match_table.py build/release/bench/bench_match", queries, train, "\n")
print("| instruction set | threads | bits | k | 10^9/s | times OpenCV |\n|---|---|---|---|---|---|")
for isa, threads, bits, k, both, speed in lines:
    other = peer.get((int(threads), int(bits))) if k == "2" and not both else None
    ratio = f"{float(speed) / other:.1f}" if other else ""
    print(f"| {isa} | {threads} | {bits} | {k}{', both' if both else ''} | {speed} | {ratio} |")
for (threads, bits), speed in peer.items():
    print(f"| OpenCV knnMatch | {threads} | {bits} | 2 | {speed:.3f} | 1.0 |")
