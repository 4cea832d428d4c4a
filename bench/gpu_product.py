#!/usr/bin/env python3
"""Products of matrices and convolutions on one CUDA GPU by solver product (and contract, in the contract's order),
beside PyTorch's (cuBLAS, cuDNN), in f32, TF32 and f16.

    gpu_product.py --library libmodefold.so [--out NAME] [--cases mm.1024,conv.13] [--kinds f32,tf32,f16] [--tune]
                   [--plan-only sm:90] [--no-contract]

A time is that of a call in a CUDA graph of up to 20 of them, the median of 20 graphs (5 while tuning): data that fits in the cache stays
there. T is 10^12 operations a second, two for a term. --tune tries every tile and several numbers of parts and shows
the best beside the library's own choice. --plan-only makes the plans on that device, which compiles their kernels, and
stops. NAME.md is written."""
import argparse
import ctypes
import statistics

from gpu_device import Tensor, Options

try:
    import torch
except ImportError:
    torch = None

ORDER_FREE = 4
TILES = {1: [(256, 128), (128, 256), (192, 128), (192, 64), (128, 64), (128, 128), (64, 64), (128, 32), (128, 16),
             (32, 64), (64, 32), (32, 32)],
         3: [(192, 64), (64, 64), (128, 32), (128, 16), (32, 64), (64, 32), (32, 32)]}
PARTS = [1, 2, 3, 4, 6, 8, 12]
BITS = {"f32": 32, "tf32": 32, "f16": 16}


def cases():
    """name: modes, shapes of a, b and the output, multiplications, (batch, side, channels, filters, size) of a conv"""
    for n in (512, 1024, 2048, 4096, 8192):
        yield f"mm.{n}", ("ik,kj->ij", (n, n), (n, n), (n, n), n ** 3, None)
    layers = [(416, 3, 16, 3), (208, 16, 32, 3), (104, 32, 64, 3), (52, 64, 128, 3), (26, 128, 256, 3),
              (13, 256, 512, 3), (13, 512, 1024, 3), (13, 1024, 1024, 3), (13, 1024, 128, 1)]
    for batch in (1, 64):
        for number, (side, c, f, size) in enumerate(layers):
            yield f"conv{number + 1}.{batch}", (
                "n(h+i)(w+j)c,ijcp->nhwp", (batch, side + size - 1, side + size - 1, c), (size, size, c, f),
                (batch, side, side, f), batch * side * side * c * f * size * size, (batch, side, c, f, size))


def row_major(shape):
    strides = [1]
    for n in reversed(shape[1:]):
        strides.insert(0, strides[0] * n)
    return strides


def tensor(shape, bits, memory=0, strides=None, device=2):
    n = len(shape)
    keep = (ctypes.c_int64 * n)(*shape), (ctypes.c_int64 * n)(*(strides or row_major(shape)))
    t = Tensor(memory, device, 0, n, 2, bits, 1, keep[0], keep[1], 0)
    t.keep = keep
    return t


class Modefold:
    def __init__(self, path, device):
        self.lib, self.device = ctypes.CDLL(path), ctypes.c_void_p()
        for text in ("mf_error", "mf_plan_describe"):
            getattr(self.lib, text).restype = ctypes.c_char_p
        self.check(self.lib.mf_device_open(device.encode(), ctypes.byref(self.device)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.mf_error().decode())

    def plan(self, modes, a, b, o, solver, flags):
        plan, options = ctypes.c_void_p(), Options(solver.encode() if solver else None, flags, 0)
        ins = (Tensor * 2)(a, b)
        self.check(self.lib.mf_plan_create(self.device, modes.encode(), b"sum(a*b)", ins, ctypes.byref(o),
                                           ctypes.byref(options), ctypes.byref(plan)))
        return plan

    def text(self, plan):
        return self.lib.mf_plan_describe(plan).decode().splitlines()[-1]


def seconds(run, graphs):
    side = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(side):
        run(side.cuda_stream)
        start.record()
        run(side.cuda_stream)
        end.record()
        end.synchronize()
        calls = max(1, min(20, int(4 / start.elapsed_time(end))))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            for _ in range(calls):
                run(torch.cuda.current_stream().cuda_stream)
        graph.replay()
        times = []
        for _ in range(graphs):
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) / 1000 / calls)
    return statistics.median(times)


def forms(kind, tune, reduced, rows, columns):
    """Of parts only as many as give every multiprocessor a few blocks."""
    name = "tf32" if kind == "tf32" else "full"
    yield f"product:{name}"
    if tune:
        for down, right in TILES[3 if kind == "f32" else 1]:
            for parts in PARTS:
                blocks = -(-rows // down) * -(-columns // right) * parts
                if parts == 1 or (parts * 4 * 64 // (BITS[kind] // 8) <= reduced and blocks <= 1500):
                    yield f"product:{name}:{down}:{right}:{parts}"


def sizes(case):
    """Terms, rows and columns."""
    _, _, b, o, work, _ = case
    columns = o[-1]
    terms = 1
    for n in b[:-1]:
        terms *= n
    return terms, work // terms // columns, columns


def peer(kind, modes, x, y, conv):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = kind == "tf32"
    torch.backends.cudnn.benchmark = True
    if not conv:
        return lambda _: torch.mm(x, y)
    picture = x[:, :, :, :].permute(0, 3, 1, 2)
    filters = y.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
    return lambda _: torch.nn.functional.conv2d(picture, filters)


def measure(options, fold, name, case, kind, say):
    modes, a, b, o, work, conv = case
    bits = BITS[kind]
    dtype = torch.float16 if kind == "f16" else torch.float32
    x = torch.randn(a, device="cuda", dtype=dtype)
    y = torch.randn(b, device="cuda", dtype=dtype) / work ** 0.2
    z = torch.empty(o, device="cuda", dtype=dtype)
    p_in, p_out = (ctypes.c_void_p * 2)(x.data_ptr(), y.data_ptr()), (ctypes.c_void_p * 1)(z.data_ptr())
    tried = list(forms(kind, options.tune, *sizes(case)))

    def time(solver, flags):
        plan = fold.plan(modes, tensor(a, bits, x.data_ptr()), tensor(b, bits, y.data_ptr()),
                         tensor(o, bits, z.data_ptr()), solver, flags)
        try:
            return seconds(lambda s: fold.check(fold.lib.mf_plan_execute(plan, p_in, p_out, ctypes.c_void_p(s))),
                           5 if options.tune else 20), fold.text(plan)
        finally:
            fold.lib.mf_plan_destroy(plan)

    theirs = peer(kind, modes, x, y, conv)
    wanted = theirs(0)
    wanted = wanted.permute(0, 2, 3, 1) if conv else wanted
    their_time = seconds(theirs, 20)
    found = {}
    for form in tried:
        found[form] = time(form, ORDER_FREE)
        if form.count(":") == 1:
            error = ((z.float() - wanted.float()).abs().max() / wanted.float().abs().max()).item()
    own = next(iter(found))
    best = min(found, key=lambda f: found[f][0])
    contract = time(None, 0)[0] if not options.no_contract and kind == "f32" and work < 2 ** 34 else None
    say(f"| {name} | {kind} | {found[own][0] * 1e6:.1f} | {2e-12 * work / found[own][0]:.1f} "
        f"| {their_time * 1e6:.1f} | {2e-12 * work / their_time:.1f} | {their_time / found[own][0]:.2f} | {error:.1e} "
        f"| {contract * 1e6 if contract else 0:.1f} | {found[own][1].split('outputs, ')[-1].split(' of the')[0]} "
        + (f"| {best.split(':', 2)[-1]} {found[best][0] * 1e6:.1f} |" if options.tune else "|"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--out")
    parser.add_argument("--cases")
    parser.add_argument("--kinds", default="f32,tf32,f16")
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--plan-only", metavar="DEVICE")
    parser.add_argument("--no-contract", action="store_true")
    options = parser.parse_args()
    wanted = options.cases.split(",") if options.cases else None
    fold = Modefold(options.library, options.plan_only or "cuda:0")
    lines = []

    def say(text):
        print(text, flush=True)
        lines.append(text)

    if not options.plan_only:
        say(f"# {torch.cuda.get_device_name()}, PyTorch {torch.__version__}\n\n`bench/gpu_product.py"
            f"{' --tune' if options.tune else ''}`; times in microseconds\n")
        say("| case | kind | product | T | PyTorch | T | its time / ours | greatest difference | contract's order | form |"
            + (" best |" if options.tune else ""))
        say("|---|---|---:|---:|---:|---:|---:|---:|---:|---|" + ("---|" if options.tune else ""))
    for name, case in cases():
        if wanted and not any(name.startswith(w) for w in wanted):
            continue
        for kind in options.kinds.split(","):
            if not options.plan_only:
                measure(options, fold, name, case, kind, say)
                continue
            modes, a, b, o, _, _ = case
            for form in forms(kind, options.tune, *sizes(case)):
                fold.lib.mf_plan_destroy(fold.plan(modes, tensor(a, BITS[kind]), tensor(b, BITS[kind]),
                                                   tensor(o, BITS[kind]), form, ORDER_FREE))
    if options.out:
        with open(options.out + ".md", "w", encoding="utf-8") as f:
            f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
