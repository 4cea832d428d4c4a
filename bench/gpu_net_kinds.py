#!/usr/bin/env python3
"""A network of darknet's on a GPU by kind of layer: the rows and ways of Tandon and Kim, "CS492 Project 3", 2020.

    gpu_net_kinds.py --library libmodefold.so --cfg NET.cfg --weights NET.weights|random [--device cuda:0] [--batch 1]
                     [--precision f32] [--trials 5] [--fused] [--ways NAME,NAME] [--out NAME]

The network is unfused, as the report's graph is: batch norm, bias and activation are steps of their own. The ways to
compute its convolutions:

    library           what modefold chooses by itself
    window            solver window; per layer its cheapest form by the model of the time (the report's dynamic)
    window:inputs     input-stationary where that fits a multiprocessor's memory (IS only)
    window:weights    weight-stationary where that fits (WS only)
    cublas            windows copied into a matrix, a product by cuBLAS; on CUDA only

Where a solver does not apply to a convolution, the library's choice does it; "Conv2D by it" counts. A way that is not
here is left out, with the reason. "End-to-end" is a u8 picture in the CPU's memory to boxes there (or to the last
layer's output where none detects), "DNN inference" the layers alone, pictures in the GPU's memory; both are waited for
once at their end. The kinds' times are sums of steps that are each waited for, which takes a while for each. Milliseconds, means of
the trials after one that does not count. NAME.md and NAME.json are written; on OpenCL tensor cores are emulated, and
times say nothing about them."""
import argparse
import array
import json
import os
import random
import tempfile
import time

from gpu_device import Device, Memory
from gpu_net import PRECISIONS, Net, NetPlan, host_tensor, read_cfg, write_random

UNFUSED, BLAS = 1, 1  # MF_NET_UNFUSED, MF_NET_BLAS
WAYS = ("library", "window", "window:inputs", "window:weights", "cublas")
KINDS = ("Conv2D", "BiasAdd", "BatchNorm", "Activation", "MaxPool2D", "Route", "Shortcut", "Upsample")


def options_of(way, precision):
    """mf_net_options that make the way."""
    if way == "library":
        return {}
    if way == "cublas":
        return {"way": BLAS}
    return {"solver": (way + (":tf32" if precision == "tf32" else "")).encode()}


def mean_ms(run, trials):
    run()
    start = time.perf_counter()
    for _ in range(trials):
        run()
    return 1e3 * (time.perf_counter() - start) / trials


def column(net, way, options, host, there):
    """The way's times by row."""
    plan = NetPlan(net, options.batch, options.precision, **options_of(way, options.precision))
    detects = net.last.kind in (b"region", b"yolo")

    def whole():
        plan.run(host)
        plan.detect() if detects else plan.read()

    def layers():
        plan.enqueue(there)
        net.device.wait()

    try:
        found = {"End-to-end": mean_ms(whole, options.trials), "DNN inference": mean_ms(layers, options.trials)}
        steps = plan.steps(host, options.trials)
    finally:
        plan.close()
    for kind in KINDS:
        if any(step[1] == kind for step in steps):
            found[kind + " summed"] = sum(1e3 * step[2] for step in steps if step[1] == kind)
    convolutions = [step[3] for step in steps if step[1] == "Conv2D"]
    by_it = sum(solver == way.split(":")[0] for solver in convolutions)
    found["Conv2D by it"] = f"{by_it} of {len(convolutions)}" if way.startswith("window") else "all"
    found["steps"] = len(steps)
    found["each"] = [{"layer": layer, "kind": kind, "ms": 1e3 * seconds, "solver": solver}
                     for layer, kind, seconds, solver in steps]
    return found


def table(head, options, columns, missing):
    ways = list(columns)
    rows = [row for row in columns[ways[0]] if row != "each"]
    lines = [f"# {os.path.basename(options.cfg)} by kind of layer on {head}", "",
             f"`bench/gpu_net_kinds.py`, {'fused' if options.fused else 'unfused'}, {options.precision}, batch "
             f"{options.batch}, weights: {os.path.basename(options.weights)}; means of {options.trials} trials.", "",
             "| ms | " + " | ".join(ways) + " |", "|---|" + "---:|" * len(ways)]
    for row in rows:
        values = [columns[way][row] for way in ways]
        lines.append(f"| {row} | " + " | ".join(v if isinstance(v, str) else f"{v:.3f}" if isinstance(v, float)
                                                else str(v) for v in values) + " |")
    lines += [""] + [f"{way} is left out: {reason}" for way, reason in missing.items()]
    return "\n".join(lines).rstrip() + "\n"


def measure(options, folder):
    if options.weights == "random":
        weights = os.path.join(folder, "random.weights")
        write_random(read_cfg(options.cfg), weights)
    else:
        weights = options.weights
    device = Device(options.library, options.device)
    net = Net(device, options.cfg, weights, 0 if options.fused else UNFUSED)
    shape, draw = net.shape(options.batch), random.Random(1)
    host = host_tensor(array.array("B", draw.choices(range(256), k=shape[0] * shape[1] * shape[2] * shape[3])), shape)
    pictures = Memory(device, "f32", shape, array.array("f", (draw.random() for _ in range(10007))))
    columns, missing = {}, {}
    for way in options.ways:
        try:
            columns[way] = column(net, way, options, host, pictures.tensor())
            print(way, {row: value for row, value in columns[way].items() if row != "each"}, flush=True)
        except RuntimeError as error:
            missing[way] = str(error)
    pictures.close()
    net.close()
    if not columns:
        raise SystemExit("no way is here: " + "; ".join(missing.values()))
    text = table(device.text, options, columns, missing)
    print("\n" + text)
    if options.out:
        with open(options.out + ".md", "w") as file:
            file.write(text)
        with open(options.out + ".json", "w") as file:
            json.dump({"device": device.text, "cfg": os.path.basename(options.cfg), "batch": options.batch,
                       "precision": options.precision, "fused": options.fused, "ways": columns, "missing": missing},
                      file, indent=1)
    device.lib.mf_device_close(device.handle)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--cfg", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--precision", default="f32", choices=PRECISIONS)
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    options.ways = options.ways.split(",")
    if unknown := [way for way in options.ways if way not in WAYS]:
        parser.error(f"there is no way {unknown[0]}; there are {', '.join(WAYS)}")
    with tempfile.TemporaryDirectory() as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
