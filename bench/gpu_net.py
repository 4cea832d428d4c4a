#!/usr/bin/env python3
"""A network of darknet's on a GPU: modefold beside PyTorch, and beside what tensor cores give a large product.

    gpu_net.py --library libmodefold.so --cfg NET.cfg --weights NET.weights|random [--batches 1,64] [--device cuda:0]
               [--precisions f32,tf32,f16] [--no-compile] [--out NAME]

Every way is captured in a CUDA graph and replayed, all in turns; times are medians. Pictures are floats in the
GPU's memory, height x width x channels, which PyTorch calls channels_last; its f16 networks take the same floats. Batch
norm is multiplied into PyTorch's weights too. f32 is modefold's three products of TF32, beside PyTorch without TF32;
"of product" is the part of the rate that torch.mm of 8192 x 8192 x 8192 reached after it, of TF32 (a third of it for
modefold's and PyTorch's f32) or f16. Errors are the greatest difference from PyTorch's f32, over its greatest
number. Then a u8 picture in the CPU's memory to boxes there, and the steps, each waited for. Without PyTorch, or on
another device than CUDA's, modefold alone is timed, run after run. --weights random: random ones are made.
NAME.md and NAME.json are written."""
import argparse
import array
import ctypes
import json
import os
import random
import statistics
import struct
import tempfile
import time

from gpu_device import Device, Memory, Tensor

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    torch = None

PRECISIONS = ("f32", "tf32", "f16")
PRODUCT = 8192
HEADER = struct.pack("<iiiq", 0, 2, 0, 0)


# ---- modefold_net.h ----

class NetOptions(ctypes.Structure):
    """mf_net_options."""
    _fields_ = [("way", ctypes.c_int), ("batch", ctypes.c_int64), ("order_contract", ctypes.c_int),
                ("threads", ctypes.c_int), ("direct", ctypes.c_int), ("keep", ctypes.c_int),
                ("precision", ctypes.c_int), ("solver", ctypes.c_char_p)]


class NetLayer(ctypes.Structure):
    """mf_net_layer."""
    _fields_ = [("kind", ctypes.c_char_p), ("line", ctypes.c_int), ("height", ctypes.c_int64),
                ("width", ctypes.c_int64), ("channels", ctypes.c_int64), ("parameters", ctypes.c_int64),
                ("operations", ctypes.c_int64)]


class NetStep(ctypes.Structure):
    """mf_net_step."""
    _fields_ = [("layer", ctypes.c_int), ("kind", ctypes.c_char_p), ("seconds", ctypes.c_double),
                ("description", ctypes.c_char_p)]


class NetBox(ctypes.Structure):
    """mf_net_box."""
    _fields_ = [("label", ctypes.c_int)] + [(name, ctypes.c_float) for name in
                                            ("score", "left", "top", "right", "bottom")]


class Net:
    """flags: mf_net_load's."""

    def __init__(self, device, cfg, weights, flags=0):
        self.device, self.lib, self.handle = device, device.lib, ctypes.c_void_p()
        device.check(self.lib.mf_net_load(cfg.encode(), weights.encode(), flags, ctypes.byref(self.handle)))
        self.layers = []
        for number in range(-1, self.lib.mf_net_layer_count(self.handle)):
            layer = NetLayer()
            device.check(self.lib.mf_net_layer_get(self.handle, number, ctypes.byref(layer)))
            self.layers.append(layer)
        self.input, self.last = self.layers[0], self.layers[-1]
        self.operations = sum(layer.operations for layer in self.layers)

    def shape(self, batch):
        return batch, self.input.height, self.input.width, self.input.channels

    def close(self):
        self.lib.mf_net_destroy(self.handle)


class NetPlan:
    """others: more of mf_net_options."""

    def __init__(self, net, batch, precision, **others):
        self.net, self.device, self.lib, self.batch = net, net.device, net.lib, batch
        self.handle = ctypes.c_void_p()
        options = NetOptions(batch=batch, precision=PRECISIONS.index(precision), **others)
        self.device.check(self.lib.mf_net_plan_create(net.handle, self.device.handle, ctypes.byref(options),
                                                      ctypes.byref(self.handle)))

    def enqueue(self, input, stream=None):
        self.device.check(self.lib.mf_net_plan_enqueue(self.handle, ctypes.byref(input), ctypes.c_void_p(stream)))

    def run(self, input):
        self.device.check(self.lib.mf_net_plan_run(self.handle, ctypes.byref(input)))

    def read(self):
        """The last layer's output, an array of floats."""
        last = self.net.last
        values = array.array("f", bytes(4 * self.batch * last.height * last.width * last.channels))
        self.device.check(self.lib.mf_net_plan_read(self.handle, len(self.net.layers) - 2,
                                                    ctypes.c_void_p(values.buffer_info()[0]),
                                                    ctypes.c_int64(len(values))))
        return values

    def detect(self):
        boxes, count = (NetBox * 100)(), ctypes.c_int64()
        self.device.check(self.lib.mf_net_plan_detect(self.handle, ctypes.c_int64(0), None, boxes, ctypes.c_int64(100),
                                                      ctypes.byref(count)))
        return count.value

    def steps(self, input, runs):
        """Of each step: layer, kind, seconds of a run, solver."""
        self.run(input)
        self.lib.mf_net_plan_measure(self.handle, 1)
        for _ in range(runs):
            self.run(input)
        found = []
        for s in range(self.lib.mf_net_plan_step_count(self.handle)):
            step = NetStep()
            self.device.check(self.lib.mf_net_plan_step(self.handle, s, ctypes.byref(step)))
            text = step.description.decode()
            solver = text.split("solver ")[1].split(":")[0] if "solver " in text else text
            found.append((step.layer, step.kind.decode(), step.seconds / runs, solver))
        self.lib.mf_net_plan_measure(self.handle, 0)
        return found

    def close(self):
        self.lib.mf_net_plan_destroy(self.handle)


def host_tensor(values, shape):
    """Bytes of this process as u8 pictures; on the CPU."""
    t = Tensor(values.buffer_info()[0], 1, 0, len(shape), 1, 8, 1, (ctypes.c_int64 * len(shape))(*shape), None, 0)
    t.keep = values
    return t


# ---- darknet's files ----

def read_cfg(path):
    """[(section, {key: value})]"""
    sections = []
    with open(path) as file:
        for line in file:
            line = line.split("#")[0].strip()
            if line.startswith("["):
                sections.append((line[1:line.index("]")], {}))
            elif "=" in line:
                key, value = line.split("=", 1)
                sections[-1][1][key.strip()] = value.strip()
    return sections


def number(options, key, missing):
    return int(options.get(key, missing))


def convolutions(cfg, net):
    """[(filters, channels of a group, size, whether batch norm)]; net.layers[0] is the input."""
    found = []
    for at, (kind, options) in enumerate(cfg[1:]):
        if kind in ("convolutional", "conv"):
            channels = net[at] // number(options, "groups", 1)
            found.append((number(options, "filters", 1), channels, number(options, "size", 1),
                          number(options, "batch_normalize", 0)))
    return found


def channels_of(cfg):
    """Of the input and each layer's output; only chains are known."""
    found = [number(cfg[0][1], "channels", 3)]
    for kind, options in cfg[1:]:
        if kind not in ("convolutional", "conv", "maxpool", "max", "dropout", "region"):
            raise SystemExit(f"[{kind}] is not among what gpu_net.py compares: convolutional, maxpool, dropout, region")
        found.append(number(options, "filters", 1) if kind.startswith("conv") else found[-1])
    return found


def write_random(cfg, path):
    """Weights whose layers keep their numbers' size: of variance 2 / terms, by the leaky halves."""
    draw = random.Random(1)
    block = [draw.uniform(-1, 1) for _ in range(100003)]

    def values(count, by, middle=0.0):
        part = array.array("f", (middle + by * x for x in block[:count]))
        return (part * (count // len(part) + 1))[:count]

    with open(path, "wb") as file:
        file.write(HEADER)
        for filters, channels, size, normalize in convolutions(cfg, channels_of(cfg)):
            terms = channels * size * size
            file.write(values(filters, 0.1).tobytes())
            if normalize:
                for by, middle in ((0.1, 1), (0.1, 0), (0.1, 1)):  # scales, means, variances
                    file.write(values(filters, by, middle).tobytes())
            file.write(values(filters * terms, (6 / terms) ** 0.5).tobytes())


# ---- PyTorch ----

ACTIVATIONS = {"linear": lambda x: x, "leaky": lambda x: F.leaky_relu(x, 0.1), "relu": lambda x: F.relu(x),
               "logistic": lambda x: torch.sigmoid(x), "tanh": lambda x: torch.tanh(x)}


def pool(x, size, stride, padding):
    """Darknet's: `padding` rows and columns in all, half of them before, that no maximum takes."""
    before = padding // 2
    need = [((n + padding - size) // stride) * stride + size - n - before for n in x.shape[2:]]
    if before or max(need) > 0:
        x = F.pad(x, (before, max(need[1], 0), before, max(need[0], 0)), value=float("-inf"))
    return F.max_pool2d(x, size, stride)


def torch_net(cfg, weights, kind):
    """A function of pictures, batch x channels x height x width floats, in this type; batch norm is in its weights."""
    with open(weights, "rb") as file:
        head = file.read(12)
        major, minor = struct.unpack("<ii", head[:8])
        file.read(8 if 10 * major + minor >= 2 else 4)
        flat = torch.frombuffer(bytearray(file.read()), dtype=torch.float32).double()
    at, layers, shapes = 0, [], iter(convolutions(cfg, channels_of(cfg)))

    def take(count):
        nonlocal at
        at += count
        return flat[at - count:at]

    for name, options in cfg[1:]:
        if name.startswith("conv"):
            filters, channels, size, normalize = next(shapes)
            bias, by = take(filters), torch.ones(filters, dtype=torch.float64)
            if normalize:
                scale, mean, variance = take(filters), take(filters), take(filters)
                by = scale / (variance.sqrt() + 1e-6)
                bias = bias - mean * by
            weight = take(filters * channels * size * size).view(filters, channels, size, size) * by.view(-1, 1, 1, 1)
            pad = size // 2 if number(options, "pad", 0) else number(options, "padding", 0)
            layers.append((weight.to("cuda", kind, memory_format=torch.channels_last), bias.to("cuda", kind),
                           number(options, "stride", 1), pad, number(options, "groups", 1),
                           ACTIVATIONS[options.get("activation", "logistic")]))
        elif name.startswith("max"):
            stride = number(options, "stride", 1)
            size = number(options, "size", stride)
            layers.append((size, stride, number(options, "padding", size - 1)))
    assert at == len(flat)

    def run(x):
        x = x.to(kind)
        for layer in layers:
            if len(layer) == 3:
                x = pool(x, *layer)
            else:
                weight, bias, stride, pad, groups, activation = layer
                x = activation(F.conv2d(x, weight, bias, stride, pad, 1, groups))
        return x.float()
    return run


def allow_tf32(allowed):
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def graphed(run):
    """The call as a CUDA graph, after a warm-up on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    stream.synchronize()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        run()
    return graph


def time_graphs(graphs, turns, replays):
    """Milliseconds of a replay of each, medians of all turns."""
    times = {name: [] for name in graphs}
    for turn in range(-1, turns):
        for name, graph in graphs.items():
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graph.replay()
            start.record()
            for _ in range(replays):
                graph.replay()
            end.record()
            end.synchronize()
            if turn >= 0:
                times[name].append(start.elapsed_time(end) / replays)
    return {name: statistics.median(values) for name, values in times.items()}


def product_graphs():
    """The large products, and their matrices, which have to stay."""
    graphs, matrices = {}, []
    for name, kind in (("tf32", torch.float32), ("f16", torch.float16)):
        allow_tf32(True)
        a, b = (torch.randn(PRODUCT, PRODUCT, device="cuda", dtype=kind) for _ in range(2))
        c = torch.empty_like(a)
        matrices.append((a, b, c))
        graphs["product " + name] = graphed(lambda a=a, b=b, c=c: torch.mm(a, b, out=c))
    return graphs, matrices


class Torch:
    """PyTorch's ways for one batch."""

    def __init__(self, cfg, weights, x, options):
        self.graphs, self.outputs, self.kept = {}, {}, []  # a graph does not keep what it reads
        torch.backends.cudnn.benchmark = True
        for name in options.precisions:
            allow_tf32(name == "tf32")
            run = torch_net(cfg, weights, torch.float16 if name == "f16" else torch.float32)
            self.add("torch " + name, run, x)
            if options.compile:
                torch._dynamo.reset()
                try:
                    self.add("torch.compile " + name, torch.compile(run, mode=options.mode, dynamic=False), x)
                except Exception as error:  # a compiler that is not there is no reason to measure nothing
                    print(f"torch.compile {name}: {str(error).splitlines()[0] if str(error) else error}", flush=True)
        allow_tf32(False)
        self.reference = torch_net(cfg, weights, torch.float32)(x).permute(0, 2, 3, 1).contiguous()

    def add(self, name, run, x):
        def call():
            self.outputs[name] = run(x)
        self.graphs[name] = graphed(call)
        self.kept.append(run)

    def error(self, found):
        return ((found - self.reference).abs().max() / self.reference.abs().max()).item()


# ---- measuring ----

def add_row(rows, name, batch, ms, net, rates, error):
    precision = name.split()[-1]
    rate = rates.get("f16" if precision == "f16" else "tf32")
    flops = net.operations * batch / (1e-3 * ms)
    part = flops / (rate / 3 if precision == "f32" else rate) if rate else None
    rows.append({"way": name, "batch": batch, "ms": ms, "tflops": 1e-12 * flops, "of product": part, "error": error})
    print(f"{name:20s} batch {batch:3d} {ms:9.3f} ms {1e-12 * flops:8.2f} TFLOP/s"
          + (f" {part:5.2f} of the product's" if part else "") + (f"  error {error:.2g}" if error is not None else ""),
          flush=True)


def on_cuda(net, cfg, weights, batch, options, rows, rates):
    """All ways in turns."""
    torch.manual_seed(1)
    x = torch.rand(net.shape(batch), device="cuda").permute(0, 3, 1, 2)  # channels_last
    input = Tensor(x.data_ptr(), 2, 0, 4, 2, 32, 1, (ctypes.c_int64 * 4)(*net.shape(batch)), None, 0)
    peers = Torch(cfg, weights, x, options)
    graphs, plans = {}, {}
    for name in options.precisions:
        plan = plans["modefold " + name] = NetPlan(net, batch, name)
        graphs["modefold " + name] = graphed(lambda p=plan: p.enqueue(input, torch.cuda.current_stream().cuda_stream))
    graphs.update(peers.graphs)
    times = time_graphs(graphs, options.turns, max(1, 20 // batch))
    products, matrices = product_graphs()  # in turns of their own: the GPU may slow down under them
    times.update(time_graphs(products, 10, 1))
    for name in ("tf32", "f16"):
        rates[name] = 2 * PRODUCT ** 3 / (1e-3 * times["product " + name])
    print("products of %d^3: " % PRODUCT + ", ".join(f"{n} {1e-12 * r:.0f} TFLOP/s" for n, r in rates.items()))
    for name, ms in times.items():
        if name in plans:
            found = torch.tensor(plans[name].read(), device="cuda").view(peers.reference.shape)
            add_row(rows, name, batch, ms, net, rates, peers.error(found))
            plans[name].close()
        elif name in peers.outputs:
            found = peers.outputs[name].permute(0, 2, 3, 1)
            add_row(rows, name, batch, ms, net, rates, peers.error(found))
    matrices.clear()


def alone(net, batch, options, rows):
    """modefold on any device, one run after the other."""
    draw = random.Random(1)
    block = array.array("f", (draw.random() for _ in range(10007)))
    pictures = Memory(net.device, "f32", net.shape(batch), block)
    input = pictures.tensor()
    for name in options.precisions:
        plan, times = NetPlan(net, batch, name), []
        for turn in range(-1, options.turns):
            start = time.perf_counter()
            plan.enqueue(input)
            net.device.wait()
            if turn >= 0:
                times.append(1e3 * (time.perf_counter() - start))
        values = plan.read()
        assert all(abs(x) < 1e6 for x in values)
        add_row(rows, "modefold " + name, batch, statistics.median(times), net, {}, None)
        plan.close()
    pictures.close()


def end_to_end(net, options):
    """Milliseconds from a u8 picture in the CPU's memory to boxes there, by precision."""
    draw, found = random.Random(1), {}
    picture = array.array("B", draw.choices(range(256), k=net.input.height * net.input.width * net.input.channels))
    input = host_tensor(picture, net.shape(1))
    for name in options.precisions:
        plan, times, boxes = NetPlan(net, 1, name), [], 0
        for turn in range(-2, options.turns):
            start = time.perf_counter()
            plan.run(input)
            boxes = plan.detect()
            if turn >= 0:
                times.append(1e3 * (time.perf_counter() - start))
        found[name] = statistics.median(times)
        print(f"u8 picture to {boxes} boxes, {name}: {found[name]:.3f} ms", flush=True)
        plan.close()
    return found


def step_tables(net, options):
    """By precision, the steps at the largest batch."""
    batch, found = max(options.batches), {}
    pictures = array.array("B", bytes(range(256))) * (batch * net.input.height * net.input.width
                                                     * net.input.channels // 256 + 1)
    input = host_tensor(pictures, net.shape(batch))
    for name in options.precisions:
        plan = NetPlan(net, batch, name)
        found[name] = [{"layer": layer, "kind": kind, "ms": 1e3 * seconds, "solver": solver,
                        "tflops": 1e-12 * net.layers[layer + 1].operations * batch / seconds if kind == "Conv2D" else 0}
                       for layer, kind, seconds, solver in plan.steps(input, min(options.turns, 10))]
        print(f"steps, {name}, batch {batch}")
        for s in found[name]:
            print(f"{s['layer']:5d} {s['kind']:10s} {s['ms']:9.4f} ms {s['tflops']:8.2f} TFLOP/s  {s['solver']}")
        plan.close()
    return found


def write(options, head, result):
    with open(options.out + ".json", "w") as file:
        json.dump(dict(result, device=head), file, indent=1)
    with open(options.out + ".md", "w") as file:
        file.write(f"# {os.path.basename(options.cfg)} on {head}\n\n`bench/gpu_net.py`, weights: "
                   f"{os.path.basename(options.weights)}. {1e-9 * result['operations']:.2f} GFLOP a picture. "
                   + "".join(f"A product of {PRODUCT}^3, {n}: {1e-12 * r:.0f} TFLOP/s. "
                             for n, r in result["rates"].items())
                   + "\n\n| way | batch | ms | pictures/s | TFLOP/s | of product | error |\n"
                     "|---|---:|---:|---:|---:|---:|---:|\n")
        for r in result["rows"]:
            part = "%.2f" % r["of product"] if r["of product"] else "-"
            error = "%.1e" % r["error"] if r["error"] is not None else "-"
            file.write(f"| {r['way']} | {r['batch']} | {r['ms']:.3f} | {1e3 * r['batch'] / r['ms']:.0f} | "
                       f"{r['tflops']:.1f} | {part} | {error} |\n")
        if result["end to end"]:
            file.write("\nA u8 picture in the CPU's memory to boxes there: "
                       + ", ".join(f"{n} {ms:.3f} ms" for n, ms in result["end to end"].items()) + ".\n")
        for name, steps in result["steps"].items():
            file.write(f"\nSteps, {name}, batch {max(options.batches)}, each waited for:\n\n"
                       "| layer | kind | ms | TFLOP/s | solver |\n|---:|---|---:|---:|---|\n")
            for s in steps:
                file.write(f"| {s['layer']} | {s['kind']} | {s['ms']:.4f} | {s['tflops']:.1f} | {s['solver']} |\n")


def measure(options, folder):
    beside = options.device.startswith("cuda") and torch is not None
    if beside:
        torch.zeros(1, device="cuda")  # its context is the one that modefold works in
        torch.set_grad_enabled(False)
    cfg, weights = read_cfg(options.cfg), options.weights
    if weights == "random":
        weights = os.path.join(folder, "random.weights")
        write_random(cfg, weights)
    device = Device(options.library, options.device)
    net = Net(device, options.cfg, weights)
    head = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}" if beside \
        else device.text
    print(f"{head}; {1e-9 * net.operations:.2f} GFLOP a picture", flush=True)
    result = {"operations": net.operations, "rows": [], "rates": {}}
    for batch in options.batches:
        if beside:
            on_cuda(net, cfg, weights, batch, options, result["rows"], result["rates"])
            torch.cuda.empty_cache()
        else:
            alone(net, batch, options, result["rows"])
    detects = any(layer.kind in (b"region", b"yolo") for layer in net.layers)
    result["end to end"] = end_to_end(net, options) if detects else {}
    result["steps"] = step_tables(net, options)
    if options.out:
        write(options, head, result)
    net.close()
    device.lib.mf_device_close(device.handle)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--cfg", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--batches", default="1,64")
    parser.add_argument("--precisions", default=",".join(PRECISIONS))
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--no-compile", dest="compile", action="store_false")
    parser.add_argument("--mode", default="max-autotune-no-cudagraphs", help="torch.compile's")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    options.batches = [int(b) for b in options.batches.split(",")]
    options.precisions = options.precisions.split(",")
    with tempfile.TemporaryDirectory() as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
