#!/usr/bin/env python3
"""Folds on one CUDA GPU: modefold beside the limit of memory, PyTorch and CuPy, every row in one run.

    gpu_table.py --library libmodefold.so [--types f32,f64,f16,bf16,i8] [--rows A.x,seg32] [--compile] [--cub LIBRARY]
                 [--clean] [--out NAME]

Times are medians, with the cache emptied before every repetition: triton.testing.do_bench fills it with zeros, which
the measured kernel then has to write back; with --clean it is filled by reading. The limit moves the row's
bytes: a plain read of 16 bytes a thread where the outputs are under 1 % of the bytes, else PyTorch's copy. The table's
ratio is (bytes read + bytes written) / time over the limit's. --compile also measures torch.compile, which takes
minutes, --cub CUB's sums of contiguous rows (bench/peer_cub.cu; of f16 and bf16 CUB keeps its sums in that type).
NAME.md and NAME.json are written."""
import argparse
import ctypes
import json
import platform
import warnings

import torch
from triton.testing import do_bench

from gpu_device import READ, Tensor

warnings.filterwarnings("ignore")

CODES = {"i8": (0, 8), "i16": (0, 16), "i32": (0, 32), "i64": (0, 64), "u8": (1, 8), "f16": (2, 16), "f32": (2, 32),
         "f64": (2, 64), "bf16": (4, 16), "bool": (6, 8)}
TORCH = {"i8": torch.int8, "i16": torch.int16, "i32": torch.int32, "i64": torch.int64, "u8": torch.uint8,
         "f16": torch.float16, "f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16,
         "bool": torch.bool}
NAMES = {v: k for k, v in TORCH.items()}

MIX = (32, 64, 32, 64, 32)
# name, modes, shapes of the operands, expression, PyTorch's way
SUMS = [
    ("A.x", "zyx->zy", (4096, 8, 4096), (2,)),
    ("A.z", "zyx->yx", (4096, 8, 4096), (0,)),
    ("B.xy", "tzyx->tz", (64, 64, 64, 512), (2, 3)),
    ("B.zt", "tzyx->yx", (64, 64, 64, 512), (0, 1)),
    ("C.xyz", "abcde->ab", (16, 16, 16, 32, 1024), (2, 3, 4)),
    ("C.zts", "abcde->de", (16, 16, 16, 32, 1024), (0, 1, 2)),
    ("mix.024", "abcde->bd", MIX, (0, 2, 4)),
    ("mix.13", "abcde->ace", MIX, (1, 3)),
    ("few.last", "ij->i", (4, 1 << 25), (1,)),
    ("few.first", "ij->j", (1 << 25, 4), (0,)),
    ("tiny.last", "ij->i", (1 << 25, 4), (1,)),
    ("seg32", "ij->i", (1 << 22, 32), (1,)),
    ("all", "i->", (1 << 27,), (0,)),
    ("nchw.bn", "nchw->c", (256, 128, 64, 64), (0, 2, 3)),
    ("small.2M", "ijk->ij", (64, 32, 1024), (2,)),
    ("small.z2M", "ijk->jk", (1024, 32, 64), (0,)),
    ("rows.3", "ij->i", ((1 << 27) // 3, 3), (1,)),
    ("rows.5", "ij->i", ((1 << 27) // 5, 5), (1,)),
    ("rows.7", "ij->i", ((1 << 27) // 7, 7), (1,)),
    ("rows.8", "ij->i", (1 << 24, 8), (1,)),
    ("rows.16", "ij->i", (1 << 23, 16), (1,)),
    ("rows.64", "ij->i", (1 << 21, 64), (1,)),
    ("rows.100", "ij->i", (1 << 20, 100), (1,)),
    ("rows.128", "ij->i", (1 << 20, 128), (1,)),
    ("rows.1000", "ij->i", (1 << 17, 1000), (1,)),
    ("cols.3", "ij->j", ((1 << 27) // 3, 3), (0,)),
    ("cols.5", "ij->j", ((1 << 27) // 5, 5), (0,)),
    ("cols.7", "ij->j", ((1 << 27) // 7, 7), (0,)),
    ("odd.k", "ijk->ij", (4000, 37, 513), (2,)),
    ("odd.j", "ijk->ik", (4000, 37, 513), (1,)),
    ("odd.i", "ijk->jk", (4000, 37, 513), (0,)),
]
OTHERS = [
    ("max.1", "ij->i", "max(a)", lambda x: x.amax(1)),
    ("max.0", "ij->j", "max(a)", lambda x: x.amax(0)),
    ("argmax.1", "ij->i", "argmax(a)", lambda x: x.argmax(1)),
    ("argmax.0", "ij->j", "argmax(a)", lambda x: x.argmax(0)),
    ("logsumexp.1", "ij->i", "logsumexp(a)", lambda x: torch.logsumexp(x, 1)),
    ("logsumexp.0", "ij->j", "logsumexp(a)", lambda x: torch.logsumexp(x, 0)),
    ("var.1", "ij->i", "var(a)", lambda x: torch.var(x, 1, correction=0)),
    ("var.0", "ij->j", "var(a)", lambda x: torch.var(x, 0, correction=0)),
    ("four.1", "ij->i", "sum(a); max(a); mean(a); var(a)", None),
    ("four.all", "ij->", "sum(a); max(a); mean(a); var(a)", None),
    ("norm.1", "ij->i", "norm(a)", lambda x: torch.linalg.vector_norm(x, dim=1)),
    ("prod.1", "ij->i", "prod(a)", lambda x: x.prod(1)),
    ("any.1", "ij->i", "any(a > 3)", lambda x: (x > 3).any(1)),
]
BROADCASTS = [
    ("b.last", "ij,j->ij", (65536, 1024), (1024,), (1024,)),
    ("b.first", "ij,i->ij", (1024, 65536), (1024,), (1024, 1)),
    ("b.few", "ij,i->ij", (100, 1 << 19), (100,), (100, 1)),
    ("b.outer", "i,j->ij", (8192,), (8192,), None),
    ("b.nchw", "nchw,c->nchw", (256, 128, 64, 64), (128,), (128, 1, 1)),
    ("b.mix", "abcde,ace->abcde", MIX, (32, 32, 32), (32, 1, 32, 1, 32)),
    ("b.both", "ace,bd->abcde", (32, 32, 32), (64, 64), None),
    ("b.three", "ij,j->ij", (1 << 25, 3), (3,), (3,)),
    ("b.small", "ij,j->ij", (1024, 1000), (1000,), (1000,)),
]


def tensor(x):
    t = Tensor()
    t.data, t.device_type, t.ndim = x.data_ptr(), 2, x.dim()
    t.code, t.bits = CODES[NAMES[x.dtype]]
    t.lanes = 1
    t.keep = (ctypes.c_int64 * max(x.dim(), 1))(*x.shape), (ctypes.c_int64 * max(x.dim(), 1))(*x.stride())
    t.shape, t.strides = t.keep
    return t


class Options(ctypes.Structure):
    """mf_options."""
    _fields_ = [("solver", ctypes.c_char_p), ("flags", ctypes.c_uint), ("threads", ctypes.c_int)]


class Modefold:
    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.mf_error.restype = ctypes.c_char_p
        self.lib.mf_plan_describe.restype = ctypes.c_char_p
        self.lib.mf_plan_solver.restype = ctypes.c_char_p
        self.device = ctypes.c_void_p()
        self.check(self.lib.mf_device_open(b"cuda:0", ctypes.byref(self.device)))

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.mf_error().decode())

    def plan(self, modes, expression, inputs, outputs, solver=None):
        ins, outs = (Tensor * len(inputs))(*map(tensor, inputs)), (Tensor * len(outputs))(*map(tensor, outputs))
        keep = [tensor(x) for x in inputs + outputs]
        for t, k in zip(list(ins) + list(outs), keep):
            t.shape, t.strides = k.keep
        plan = ctypes.c_void_p()
        options = Options(solver.encode() if solver else None, 0, 0)
        self.check(self.lib.mf_plan_create(self.device, modes.encode(), expression.encode(), ins, outs,
                                           ctypes.byref(options), ctypes.byref(plan)))
        a = (ctypes.c_void_p * len(inputs))(*[x.data_ptr() for x in inputs])
        b = (ctypes.c_void_p * len(outputs))(*[x.data_ptr() for x in outputs])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)

        def run():
            self.check(self.lib.mf_plan_execute(plan, a, b, stream))
        run.solver = self.lib.mf_plan_solver(plan).decode()
        run.text = self.lib.mf_plan_describe(plan).decode()
        run.close = lambda: self.lib.mf_plan_destroy(plan)
        run.keep = keep
        return run


class Cub:
    """CUB's sums of the last axes of a tensor (bench/peer_cub.cu)."""
    TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 3, torch.int8: 4}

    def __init__(self, path):
        self.sums = ctypes.CDLL(path).peer_cub_sums

    def of(self, x, axes):
        """A function that sums the rows, or None where the axes are not the last ones."""
        if tuple(axes) != tuple(range(x.dim() - len(axes), x.dim())):
            return None
        length = 1
        for axis in axes:
            length *= x.shape[axis]
        rows = x.numel() // length
        out = torch.empty(rows, dtype=x.dtype if x.dtype.is_floating_point else torch.int64, device="cuda")
        size = ctypes.c_size_t()
        arguments = (ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), ctypes.c_int64(rows),
                     ctypes.c_int64(length), ctypes.c_void_p(torch.cuda.current_stream().cuda_stream))
        kind = self.TYPES[x.dtype]
        if self.sums(kind, None, ctypes.byref(size), *arguments):
            return None
        room = torch.empty(max(size.value, 1), dtype=torch.uint8, device="cuda")
        temporary = ctypes.c_void_p(room.data_ptr())

        def run():
            if self.sums(kind, temporary, ctypes.byref(size), *arguments):
                raise RuntimeError("CUB fails")
        run.keep = x, out, room
        return run


def median(f, milliseconds):
    return do_bench(f, warmup=milliseconds / 4, rep=milliseconds, return_mode="median") * 1e-3


class Clean:
    """Times with a cache that holds what was read, of something else."""
    REPETITIONS = 21

    def __init__(self):
        self.other = torch.zeros(1 << 26, dtype=torch.float32, device="cuda")
        self.start, self.stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def median(self, f):
        times = []
        for _ in range(self.REPETITIONS):
            self.other.amax()
            self.start.record()
            f()
            self.stop.record()
            self.stop.synchronize()
            times.append(self.start.elapsed_time(self.stop))
        return sorted(times)[self.REPETITIONS // 2] * 1e-3


def random_tensor(shape, dtype):
    if dtype.is_floating_point:
        return torch.randn(shape, dtype=dtype, device="cuda")
    return torch.randint(-100, 100, shape, dtype=dtype, device="cuda")


def result_shape(modes, inputs):
    left, right = modes.split("->")
    size = {}
    for letters, x in zip(left.split(","), inputs):
        size.update(zip(letters, x.shape))
    return [size[m] for m in right]


class Bench:
    def __init__(self, options):
        self.options, self.mf, self.rows = options, Modefold(options.library), []
        try:
            import cupy
            self.cupy, self.read_kernel = cupy, cupy.RawKernel(READ, "read")
        except ImportError:
            self.cupy = None
        self.cub = Cub(options.cub) if options.cub else None
        self.clean = Clean() if options.clean else None

    def median(self, f):
        return self.clean.median(f) if self.clean else median(f, self.options.milliseconds)

    def read_limit(self, size):
        x = torch.empty(size // 4, dtype=torch.float32, device="cuda").normal_()
        o = torch.zeros(1, device="cuda")
        blocks = torch.cuda.get_device_properties(0).multi_processor_count * 8
        stream = self.cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

        def run():
            with stream:
                self.read_kernel((blocks,), (256,), (x.data_ptr(), o.data_ptr(), self.cupy.uint64(size // 16)))
        return size / self.median(run)

    def copy_limit(self, size):
        x = torch.empty(size // 2, dtype=torch.uint8, device="cuda")
        y = torch.empty_like(x)
        return size / self.median(lambda: y.copy_(x))

    def measure(self, name, modes, expression, inputs, out_types, peers):
        shape = result_shape(modes, inputs)
        outputs = [torch.empty(shape, dtype=t, device="cuda") for t in out_types]
        size = sum(x.numel() * x.element_size() for x in inputs)
        written = sum(x.numel() * x.element_size() for x in outputs)
        run = self.mf.plan(modes, expression, inputs, outputs)
        row = {"row": name, "type": NAMES[inputs[0].dtype], "modes": modes, "expression": expression,
               "shapes": [list(x.shape) for x in inputs], "bytes": size + written, "solver": run.solver,
               "plan": run.text}
        limit = self.read_limit(size) if written * 100 < size else self.copy_limit(size + written)
        row["limit"] = limit / 1e9
        row["modefold"] = (size + written) / self.median(run) / 1e9
        row["ratio"] = row["modefold"] / row["limit"]
        for peer, f in peers.items():
            try:
                row[peer] = (size + written) / self.median(f) / 1e9
            except Exception as e:  # a peer that cannot do this row
                row[peer] = None
                row[peer + " says"] = repr(e)[:100]
        run.close()
        self.rows.append(row)
        print(line(row), flush=True)

    def peers(self, f, x):
        found = {}
        if self.options.peers and f:
            found["torch"] = lambda: f(*x)
            if self.options.compile:
                torch._dynamo.reset()
                g = torch.compile(f, dynamic=False)
                g(*x)
                found["torch.compile"] = lambda: g(*x)
        return found

    def sums(self, kind):
        dtype = TORCH[kind]
        for name, modes, shape, axes in SUMS:
            if not self.wanted(name):
                continue
            x = random_tensor(shape, dtype)
            out = dtype if dtype.is_floating_point else torch.int64
            peers = self.peers(lambda t: t.sum(axes), [x])
            if self.options.peers and self.cupy and dtype != torch.bfloat16:
                c = self.cupy.from_dlpack(x)
                stream = self.cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

                def run(c=c, stream=stream):
                    with stream:
                        c.sum(axis=axes)
                peers["cupy"] = run
            cub = self.cub.of(x, axes) if self.cub and self.options.peers else None
            if cub:
                peers["CUB"] = cub
            self.measure(name, modes, "sum(a)", [x], [out], peers)

    def others(self, kind):
        dtype = TORCH[kind]
        x = random_tensor((8192, 16384), dtype)
        for name, modes, expression, f in OTHERS:
            if self.wanted(name):
                types = [dtype] * len(expression.split(";"))
                types = [torch.int64] if "arg" in name else [torch.bool] if "any" in name else types
                self.measure(name, modes, expression, [x], types, self.peers(f, [x]))

    def broadcasts(self, kind):
        dtype = TORCH[kind]
        for name, modes, first, second, view in BROADCASTS:
            if not self.wanted(name):
                continue
            x, y = random_tensor(first, dtype), random_tensor(second, dtype)
            if name == "b.outer":
                u, v = x[:, None], y[None, :]
            elif name == "b.both":
                u, v = x[:, None, :, None, :], y[None, :, None, :, None]
            else:
                u, v = x, y.reshape(view)
            o = torch.empty(torch.broadcast_shapes(u.shape, v.shape), dtype=dtype, device="cuda")
            peers = self.peers(lambda p, q: torch.add(p, q, out=o), [u, v])
            self.measure(name, modes, "a+b", [x, y], [dtype], peers)

    def runs(self):
        x = torch.randn(1 << 24, device="cuda")
        o = torch.empty((1 << 24) - 31, device="cuda")
        run = self.mf.plan("(i+j)->i with j=32", "sum(a)", [x], [o])
        t = self.median(run)
        w = x.as_strided(((1 << 24) - 31, 32), (1, 1))
        u = self.median(lambda: w.sum(1))
        print(f"runs of 32 of 2^24 floats: modefold {o.numel() / t / 1e9:.1f} G/s ({run.solver}), "
              f"torch {o.numel() / u / 1e9:.1f} G/s", flush=True)
        self.rows.append({"row": "runs32", "type": "f32", "modefold runs/s": o.numel() / t,
                          "torch runs/s": o.numel() / u})

    def wanted(self, name):
        return not self.options.rows or name in self.options.rows.split(",")


PEERS = ("torch", "torch.compile", "cupy", "CUB")


def line(row):
    peers = " ".join("%6s" % ("%.0f" % row[p] if row.get(p) else "-") for p in PEERS)
    return (f"{row['row']:12s} {row['type']:5s} {row['solver']:8s} {row['modefold']:7.0f} of {row['limit']:5.0f} GB/s "
            f"{row['ratio']:5.2f} | {peers}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--library", required=True)
    parser.add_argument("--types", default="f32,f64,f16,bf16,i8")
    parser.add_argument("--rows", default="")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--cub", default="")
    parser.add_argument("--clean", action="store_true")
    parser.add_argument("--no-peers", dest="peers", action="store_false")
    parser.add_argument("--milliseconds", type=float, default=40)
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    bench = Bench(options)
    head = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}, {platform.machine()}"
    print(head)
    print(f"{'row':12s} type  solver   modefold    limit      ratio | {' '.join('%6s' % p[-6:] for p in PEERS)}")
    for kind in options.types.split(","):
        bench.sums(kind)
        if kind[0] in "fb":
            bench.others(kind)
        bench.broadcasts(kind)
    if bench.wanted("runs32") and "f32" in options.types.split(","):
        bench.runs()
    if options.out:
        command = f"bench/gpu_table.py --types {options.types}" + (" --compile" if options.compile else "") + \
            (" --clean" if options.clean else "")
        with open(options.out + ".json", "w") as f:
            json.dump({"device": head, "command": command, "rows": bench.rows}, f, indent=1)
        with open(options.out + ".md", "w") as f:
            f.write(f"# {head}\n\n`{command}`; GB/s, bytes read and written once\n\n")
            f.write("| row | type | solver | modefold | limit | ratio | torch | torch.compile | CuPy | CUB |\n")
            f.write("|---|---|---|---:|---:|---:|---:|---:|---:|---:|\n")
            for r in bench.rows:
                if "ratio" in r:
                    peers = " | ".join("%.0f" % r[p] if r.get(p) else "-" for p in PEERS)
                    f.write(f"| {r['row']} | {r['type']} | {r['solver']} | {r['modefold']:.0f} | {r['limit']:.0f} | "
                            f"{r['ratio']:.2f} | {peers} |\n")
                else:
                    f.write(f"\nruns of 32 out of 2^24 floats: {r['modefold runs/s'] / 1e9:.0f} G/s, torch "
                            f"{r['torch runs/s'] / 1e9:.0f} G/s\n")


if __name__ == "__main__":
    main()
