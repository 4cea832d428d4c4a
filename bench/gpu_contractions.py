#!/usr/bin/env python3
"""Contractions over semirings on one CUDA GPU, forward and backward, beside PyTorch's of the same:
(a[:, :, :, None] + b[:, None, :, :]).logsumexp(2), or amax(2).

    gpu_contractions.py --library libmodefold.so [--out NAME] [--peers-most N] [--graphs 20] [--compile] [--genbmm FOLDER]

'bik,bkj->bij', b of n x n matrices of normal numbers. A time is that of a call in a CUDA graph of up to 20 of them, the
median of 20 graphs: data that fits in the cache stays there. T is 10^12 terms a second; a term is one (i, k, j). Forward
and backward are logsumexp's plan and that of its gradients (mf_plan_gradient), or PyTorch's autograd, in one graph.
PyTorch holds all terms in memory, several times; sizes above --peers-most (1024), or those for which it finds no room,
have no time of it. --compile: torch.compile of the same formula too; --genbmm: the kernels of a copy of its repository. Errors are those of every 32nd row, against the formula in float64. NAME.md is written."""
import argparse
import ctypes
import statistics

import torch

from gpu_device import Device, Options, Report, Tensor
from gpu_genbmm import Genbmm

# expression, solver, B, sizes; -: of numbers that are all negative
LARGE = [("max(a+b)", None, 1, (256, 512, 1024, 2048, 4096)), ("min(a+b)", None, 1, (2048, 4096)),
         ("max(a+b) -", None, 1, (2048,)),
         ("logsumexp(a+b)", None, 1, (1024, 2048, 4096)), ("logsumexp(a+b)", None, 8, (64, 128, 256, 512, 1024)),
         ("logsumexp(a+b)", "log-exact", 1, (512, 1024, 2048)), ("max(a+b)", None, 8, (64, 128, 256)),
         ("max(a+b); argmax(a+b)", None, 8, (1024,)), ("sum(a*b)", "contract", 1, (2048,))]
SMALL = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)


def described(x):
    shape, strides = (ctypes.c_int64 * x.dim())(*x.shape), (ctypes.c_int64 * x.dim())(*x.stride())
    code = 2 if x.dtype.is_floating_point else 0
    t = Tensor(x.data_ptr(), 2, 0, x.dim(), code, x.element_size() * 8, 1, shape, strides, 0)
    t.keep = shape, strides
    return t


def pointers(tensors):
    return (ctypes.c_void_p * len(tensors))(*[x.data_ptr() for x in tensors])


class Fold:
    """A plan on PyTorch's memory; gradients: of these inputs, with the output and its gradient behind them."""

    def __init__(self, device, expression, inputs, outputs, solver=None, gradients=False):
        self.device, self.handle = device, ctypes.c_void_p()
        options, modes = Options(solver.encode() if solver else None, 0, 0), b"bik,bkj->bij"
        ins, outs = [described(x) for x in inputs], [described(x) for x in outputs]
        text, to = expression.encode(), ctypes.byref(self.handle)
        if gradients:
            wanted, given = (Tensor * 2)(*outs), (Tensor * 2)(*ins[:2])
            device.check(device.lib.mf_plan_gradient(device.handle, modes, text, given, ctypes.byref(ins[2]),
                                                     ctypes.byref(ins[3]), wanted, ctypes.byref(options), to))
        else:
            device.check(device.lib.mf_plan_create(device.handle, modes, text, (Tensor * 2)(*ins),
                                                   (Tensor * len(outs))(*outs), ctypes.byref(options), to))
        self.ins, self.outs = pointers(inputs), pointers(outputs)
        self.solver = device.lib.mf_plan_solver(self.handle).decode()

    def __call__(self, stream):
        self.device.check(self.device.lib.mf_plan_execute(self.handle, self.ins, self.outs, ctypes.c_void_p(stream)))

    def close(self):
        self.device.lib.mf_plan_destroy(self.handle)


def capture(run, calls):
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        run(side.cuda_stream)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=side):
        for _ in range(calls):
            run(torch.cuda.current_stream().cuda_stream)
    return graph


def seconds(run, graphs):
    """Of a call in a graph."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)

    def once(graph):
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1000

    graph = capture(run, 1)
    once(graph)
    calls = max(1, min(20, int(2e-3 / once(graph))))
    if calls > 1:
        graph = capture(run, calls)
        once(graph)
    return statistics.median(once(graph) for _ in range(graphs)) / calls


def matrices(batch, n, count):
    return [torch.randn(batch, n, n, device="cuda") for _ in range(count)]


def large(device, report, graphs):
    report.say("| expression | B | n | solver | time in us | T |\n|---|---:|---:|---|---:|---:|")
    for expression, solver, batch, sizes in LARGE:
        for n in sizes:
            a, b, o = matrices(batch, n, 3)
            if expression.endswith("-"):
                a, b = -a.abs(), -b.abs()
            outs = [o] + ([torch.empty(batch, n, n, device="cuda", dtype=torch.int64)] if ";" in expression else [])
            fold = Fold(device, expression.rstrip(" -"), [a, b], outs, solver)
            time = seconds(fold, graphs)
            report.say(f"| {expression} | {batch} | {n} | {fold.solver} | {time * 1e6:.1f} | "
                       f"{batch * n ** 3 / time / 1e12:.2f} |")
            fold.close()


def formula(expression, a, b):
    terms = a[:, :, :, None] + b[:, None, :, :]
    return terms.logsumexp(2) if expression.startswith("log") else terms.amax(2)


def pytorch(expression, compiled):
    """out, or both gradients where d is given."""
    torch._dynamo.reset()
    fold = torch.compile(formula, dynamic=False) if compiled else formula

    def run(a, b, d):
        out = fold(expression, a, b)
        return torch.autograd.grad(out, (a, b), d) if d is not None else out

    return run


def genbmm(expression, kernels):
    def run(a, b, d):
        out = kernels.forward(a, b, not expression.startswith("log"))
        return kernels.backward(a, b, out, d) if d is not None else out

    return run


def peer_seconds(run, tensors, ours, graphs):
    """None where it finds no room."""
    a, b, d = (x if x is None else x.clone() for x in tensors)
    a.requires_grad_(d is not None)
    b.requires_grad_(d is not None)
    try:
        theirs = run(a, b, d)
        for x, y in zip(theirs if d is not None else (theirs,), ours):
            assert torch.allclose(x, y, rtol=1e-3, atol=1e-3), "results of a peer differ"
        del theirs
        return seconds(lambda _: run(a, b, d), graphs)
    except torch.OutOfMemoryError:
        return None
    finally:
        torch.cuda.empty_cache()


def small(device, report, options):
    peers = [("PyTorch", options.peers_most, lambda e: pytorch(e, False))]
    if options.compile:
        peers.append(("torch.compile", SMALL[-1], lambda e: pytorch(e, True)))
    if options.genbmm:
        kernels = Genbmm(options.genbmm)
        peers.append(("genbmm", SMALL[-1], lambda e: genbmm(e, kernels)))
    report.say("\n| expression | B | n | time in us | T | " + " | ".join(name for name, _, _ in peers) +
               " | the least of theirs / ours |\n|---|---:|---:|---:|---:|" + "---:|" * (len(peers) + 1))
    for expression, backward in (("max(a+b)", 0), ("logsumexp(a+b)", 0), ("logsumexp(a+b)", 1)):
        for n in SMALL:
            a, b, d, o, ga, gb = matrices(1, n, 6)
            folds = [Fold(device, expression, [a, b], [o])]
            if backward:
                folds.append(Fold(device, expression, [a, b, o, d], [ga, gb], None, True))
            time = seconds(lambda stream, folds=folds: [fold(stream) for fold in folds], options.graphs)
            theirs = [peer_seconds(make(expression), (a, b, d if backward else None), (ga, gb) if backward else (o,),
                                   5 if n > 512 else options.graphs) if n <= most else None for _, most, make in peers]
            for fold in folds:
                fold.close()
            least = min((t for t in theirs if t), default=None)
            report.say(f"| {expression}{', forward and backward' if backward else ''} | 1 | {n} | {time * 1e6:.1f} | "
                       f"{n ** 3 / time / 1e12:.3f} | " + " | ".join(f"{t * 1e6:.1f}" if t else "" for t in theirs) +
                       f" | {f'{least / time:.1f}' if least else ''} |")


def errors(device, report):
    """Greatest differences from the formula in float64: of outputs, and of gradients in sums of their terms' sizes."""
    report.say("\n| solver | n | greatest error | of gradients, relatively |\n|---|---:|---:|---:|")
    for solver in ("log-certified", "log-exact"):
        for n in (256, 1024, 2048):
            a, b, d, o, ga, gb = matrices(1, n, 6)
            folds = [Fold(device, "logsumexp(a+b)", [a, b], [o], solver)]
            folds.append(Fold(device, "logsumexp(a+b)", [a, b, o, d], [ga, gb],
                              "gradient-exact" if solver == "log-exact" else None, True))
            for fold in folds:
                fold(None)
                device.wait()
                fold.close()
            worst, wrong = 0.0, 0.0
            for i in range(0, n, max(n // 32, 1)):
                terms = a[0, i, :, None].double() + b[0].double()
                exact = terms.logsumexp(0)
                worst = max(worst, float((o[0, i] - exact).abs().max()))
                weights = (terms - exact).exp() * d[0, i].double()
                wrong = max(wrong, float(((ga[0, i] - weights.sum(1)).abs() / weights.abs().sum(1)).max()))
            report.say(f"| {solver} | {n} | {worst:.1e} | {wrong:.1e} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out")
    parser.add_argument("--peers-most", type=int, default=1024)
    parser.add_argument("--graphs", type=int, default=20)
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--genbmm")
    options = parser.parse_args()
    torch.zeros(1, device="cuda")
    device = Device(options.library, "cuda:0")
    report = Report(device, None)
    report.say(f"# Contractions on one {torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n"
               f"`bench/gpu_contractions.py`, float32; times in microseconds, in a CUDA graph\n")
    large(device, report, options.graphs)
    small(device, report, options)
    errors(device, report)
    if options.out:
        with open(options.out + ".md", "w", encoding="utf-8") as file:
            file.write("\n".join(report.lines) + "\n")


if __name__ == "__main__":
    main()
