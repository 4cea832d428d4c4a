#!/usr/bin/env python3
"""modefold bench with NumPy beside every row: a table (Markdown), the figures (JSON) and one picture (SVG).

    bench/table.py [--command build/release/cli/modefold] [--types f32,f64] [--threads 1,2] [--bytes N]
                   [--rows LIST] [--seconds T] [--numpy-runs N] --out bench/results/NAME

Every row is timed by `modefold bench` (medians after a warm-up, in turns with the physical limit) and then by NumPy on an
array of the same shape and type, one thread, in the same minute on the same machine.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import time

import numpy as np

TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64, "i8": np.int8}
REDUCERS = {"sum": np.sum, "min": np.min, "max": np.max, "mean": np.mean, "var": np.var, "any": np.any,
            "argmax": np.argmax}


def parse(problem):
    """A problem line's operand modes, output modes, expression and (type, shape) of each operand; None with windows."""
    modes, expression, tensors = [part.strip() for part in problem.split("|")[:3]]
    if "(" in modes or "with" in modes:
        return None
    inputs, output = modes.split("->")
    operands = []
    for name, kind, shape in re.findall(r"(\w+)=(\w+)\[([\d,]*)\]", tensors):
        if not name.startswith("o"):
            operands.append((kind, tuple(int(n) for n in shape.split(",") if n)))
    return inputs.split(","), output, expression, operands


def numpy_call(problem):
    """A function that does the row's work with NumPy, or None where NumPy has no such call."""
    parsed = parse(problem)
    if parsed is None or any(kind not in TYPES for kind, _ in parsed[3]):
        return None
    inputs, output, expression, operands = parsed
    arrays = [np.ones(shape, TYPES[kind]) for kind, shape in operands]
    if expression == "a+b":
        views = []
        for modes, array in zip(inputs, arrays):
            order = [modes.index(m) for m in output if m in modes]
            index = tuple(slice(None) if m in modes else None for m in output)
            views.append(array.transpose(order)[index])
        out = np.empty(np.broadcast_shapes(*(v.shape for v in views)), arrays[0].dtype)
        return lambda: np.add(views[0], views[1], out=out)
    calls = [REDUCERS.get(name) for name in re.findall(r"(\w+)\(a\)", expression)]
    if len(inputs) != 1 or not calls or None in calls:
        return None
    axes = tuple(i for i, m in enumerate(inputs[0]) if m not in output)
    axis = axes[0] if calls == [np.argmax] and len(axes) == 1 else axes
    return lambda: [call(arrays[0], axis=axis) for call in calls]


def median_seconds(function, runs):
    """Of as many runs; of more where they are short."""
    start = time.perf_counter()
    function()
    first = time.perf_counter() - start
    if first > 2:
        runs = 1  # once more is enough of what takes so long
    times = []
    while len(times) < runs or (sum(times) < 0.2 and len(times) < 1001):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def row_names(wanted):
    """The names of rows and groups of rows, as names of rows."""
    with open(os.path.join(os.path.dirname(__file__), "../cli/rows.def"), encoding="utf-8") as file:
        rows = re.findall(r'^ROW\((\w+), *"([^"]+)"', file.read(), re.MULTILINE)
    return [name for want in wanted.split(",") for group, name in rows if want in (group, name)]


def measure(options):
    """Row by row: modefold with each number of threads, then NumPy."""
    rows = []
    for kind in options.types.split(","):
        for name in row_names(options.rows):
            command = [options.command, "bench", "--json", "--dtype", kind, "--seconds", str(options.seconds),
                       "--rows", name]
            if options.bytes:
                command += ["--bytes", str(options.bytes)]
            for threads in options.threads.split(","):
                result = subprocess.run(command + ["--threads", threads], check=True, capture_output=True, text=True)
                rows += json.loads(result.stdout)
                rows[-1]["numpy_seconds"] = None
            call = numpy_call(rows[-1]["problem"]) if options.numpy_runs else None
            if call:
                seconds = median_seconds(call, options.numpy_runs)
                for row in rows[-len(options.threads.split(",")):]:
                    row["numpy_seconds"] = seconds if row["threads"] == 1 else None
            del call
    return rows


def machine():
    """The processor, its cores and its last cache."""
    def read(path, pattern="(.*)"):
        try:
            with open(path, encoding="utf-8") as file:
                return re.search(pattern, file.read()).group(1).strip()
        except (OSError, AttributeError):
            return "?"
    return (f'{read("/proc/cpuinfo", "model name.*: (.*)")} ({platform.machine()}), {os.cpu_count()} cores, '
            f'L3 {read("/sys/devices/system/cpu/cpu0/cache/index3/size")}')


def markdown(rows, command):
    lines = ["# modefold on a CPU", "", f"`{command}`", "",
             f"{machine()}; NumPy {np.__version__}. GB/s of bytes read and written; "
             "limit: what a plain loop reached on as many bytes, measured in turns with the row; NumPy: one thread.", "",
             "| row | type | threads | solver | GB/s | of the limit | NumPy GB/s | times NumPy |",
             "|---|---|---|---|---|---|---|---|"]
    for r in rows:
        numpy = r["numpy_seconds"]
        beside = f"{r['bytes'] / numpy / 1e9:.2f} | {numpy / r['seconds']:.1f}" if numpy else "- | -"
        ratio = f"{r['ratio']:.2f}" if r.get("ratio") else "-"
        lines.append(f"| {r['row']} | {r['type']} | {r['threads']} | {r['solver']} | {r['gb_per_second']:.2f} | {ratio} | "
                     f"{beside} |")
    return "\n".join(lines) + "\n"


def svg(rows):
    """Bars: each row's share of the limit, modefold's and NumPy's, one thread."""
    shown = [r for r in rows if r["threads"] == 1 and r.get("ratio")]
    height, left, scale = 16 * len(shown) + 60, 190, 360
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + int(1.6 * scale)}" height="{height}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{left}" y="16">share of the physical limit, one thread: modefold (dark), NumPy (light)</text>',
           f'<line x1="{left + scale}" y1="24" x2="{left + scale}" y2="{height - 16}" stroke="#888"/>',
           f'<text x="{left + scale - 4}" y="{height - 4}">limit</text>']
    for i, r in enumerate(shown):
        y = 28 + 16 * i
        share = min(r["ratio"], 1.5)
        out.append(f'<text x="{left - 6}" y="{y + 10}" text-anchor="end">{r["row"]} {r["type"]}</text>')
        out.append(f'<rect x="{left}" y="{y}" width="{share * scale:.1f}" height="7" fill="#1f4e79"/>')
        if r["numpy_seconds"]:
            numpy = min(r["ratio"] * r["seconds"] / r["numpy_seconds"], 1.5)
            out.append(f'<rect x="{left}" y="{y + 7}" width="{numpy * scale:.1f}" height="5" fill="#9dc3e6"/>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--command", default="build/release/cli/modefold")
    parser.add_argument("--types", default="f32,f64,f16,bf16,i8")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rows", default="reduce,broadcast,operations,windows")
    parser.add_argument("--bytes", type=int)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--numpy-runs", type=int, default=5, help="0: without NumPy")
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    rows = measure(options)
    command = "bench/table.py " + " ".join(f"--{k.replace('_', '-')} {v}" for k, v in vars(options).items()
                                           if v is not None and k not in ("out", "command"))
    for ending, text in ((".json", json.dumps(rows, indent=1) + "\n"), (".md", markdown(rows, command)),
                         (".svg", svg(rows))):
        with open(options.out + ending, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
