#!/usr/bin/env python3
"""The measurements of Navarro et al., GPU Tensor Cores for fast Arithmetic Reductions (figures 3 to 10), on one GPU: solver
tensor-sum in its variants beside the reduction by shuffles (its form plain), what the library does by itself, and CUB.

    gpu_tensor_sum.py --library libmodefold.so [--device cuda:0] [--out NAME] [--cub LIBRARY] [--types f16,bf16]
                      [--sizes 20,24,28] [--figures 3,5,6,tune,7,8,segments] [--warm N] [--launches N] [--distinct N]
                      [--plan-only sm:90]

Figures 3, 5 and 6: recurrence, single pass and split over chains, blocks and tenths, of 2^20 normal numbers; tune: single
pass of the greatest size over chains, blocks and chains of a warp (take the best as --single). Figure 7: run
time, speed-up over plain, and the error of normal and of uniform numbers, by variant; figure 8: run time, billions of
elements a second and errors of single pass, the library's own order and CUB (bench/peer_cub.cu; half and float). On
another GPU than the paper's first this is figures 9 and 10. Then short segments of 16 to 512 elements: the
library's choice, what it chooses where any order will do, tensor cores and multi-reduction; the fastest is bold.

Numbers are --distinct random ones, rounded to the type, over and over; the error is relative to their exact sum
(math.fsum). A time is that of --launches after --warm, one after the other; on CUDA each reads another part of 512 MB,
so that small sizes do not come from the cache. With CuPy there are CUB, and the limit: a plain read of as many bytes,
timed in the same way. NAME.md and NAME.json are written, from which gpu_chart.py draws figures. --plan-only compiles the
kernels for that device into the cache."""
import argparse
import array
import bisect
import ctypes
import math
import random
import struct

from gpu_device import READ, Device, Memory, Plan, Report, TYPES, seconds_of

ORDER_FREE = 4  # MF_ORDER_FREE
ROOM = 512 << 20  # bytes that launches take their parts of
VARIANTS = [("plain", "plain:4:128"), ("single", "single:4:128"), ("recurrence", "recurrence:5:32"),
            ("split", "split:1:128:5")]


# ---- numbers ----

def value_8(code, exponent_bits):
    """An 8-bit float; None where it is no number."""
    mantissa_bits, bias = 7 - exponent_bits, (1 << (exponent_bits - 1)) - 1
    exponent, mantissa = code >> mantissa_bits & ((1 << exponent_bits) - 1), code & ((1 << mantissa_bits) - 1)
    if exponent == (1 << exponent_bits) - 1 and (exponent_bits == 5 or mantissa == (1 << mantissa_bits) - 1):
        return None
    size = math.ldexp(mantissa, 1 - bias - mantissa_bits) if exponent == 0 else \
        math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)
    return -size if code & 128 else size


class Rounding:
    """From a number to a type's bits and what they are worth."""

    def __init__(self, kind):
        self.kind, self.known = kind, []
        if kind in ("f8e4m3", "f8e5m2"):
            values = [(value_8(code, 4 if kind == "f8e4m3" else 5), code) for code in range(256)]
            self.known = sorted(v for v in values if v[0] is not None)

    def __call__(self, x):
        if self.kind == "i8":
            bits = max(-128, min(127, round(32 * x)))
            return bits, bits
        if self.known:
            i = bisect.bisect(self.known, (x, 0))
            value, bits = min(self.known[max(i - 1, 0):i + 1], key=lambda v: abs(v[0] - x))
            return bits, value
        if self.kind == "f16":
            bits = struct.unpack("H", struct.pack("e", x))[0]
            return bits, struct.unpack("e", struct.pack("H", bits))[0]
        word = struct.unpack("I", struct.pack("f", x))[0]
        if self.kind == "f32":
            value = struct.unpack("f", struct.pack("I", word))[0]
            return value, value
        bits = word + 0x7fff + (word >> 16 & 1) >> 16
        return bits, struct.unpack("f", struct.pack("I", bits << 16))[0]


class Numbers:
    """A block of random numbers of a type, and what any count of them over and over adds up to, exactly."""

    def __init__(self, kind, data, distinct):
        draw = random.random if data == "uniform" else lambda: random.gauss(0, 1)
        pairs = [self.rounded(kind)(draw()) for _ in range(distinct)]
        self.block = array.array(TYPES[kind][2], [bits for bits, _ in pairs])
        self.values = [value for _, value in pairs]
        self.whole = math.fsum(self.values)

    @staticmethod
    def rounded(kind, known={}):
        if kind not in known:
            known[kind] = Rounding(kind)
        return known[kind]

    def exact(self, count):
        return math.fsum([self.whole * (count // len(self.values)), *self.values[:count % len(self.values)]])


def percent(got, exact):
    return 100 * abs(got - exact) / abs(exact) if math.isfinite(got) else math.inf


# ---- peers on CUDA, with CuPy ----

class Peers:
    """CUB, and a plain read."""

    def __init__(self, path):
        self.cupy = self.sums = None
        self.held = {}  # numbers, and the device's memory of them
        try:
            import cupy
        except ImportError:
            return
        self.cupy, self.kernel = cupy, cupy.RawKernel(READ, "read")
        self.sums = ctypes.CDLL(path).peer_cub_sums if path else None

    def wait(self):
        self.cupy.cuda.Device().synchronize()

    def read(self, size, options):
        """Seconds of reading so many bytes; None without CuPy."""
        if not self.cupy:
            return None
        x, o = self.cupy.zeros(ROOM // 4, "float32"), self.cupy.zeros(1, "float32")
        blocks, parts = self.cupy.cuda.Device().attributes["MultiProcessorCount"] * 8, max(ROOM // size, 1)

        def run(i):
            part = x[i % parts * (size // 4):]
            self.kernel((blocks,), (256,), (part, o, self.cupy.uint64(size // 16)))
        return seconds_of(run, self.wait, options.warm, options.launches)

    def cub(self, kind, numbers, count, options):
        """Seconds and the sum; None without it."""
        if not self.sums:
            return None
        import numpy
        item, number = TYPES[kind][1] // 8, {"f32": 0, "f16": 2, "bf16": 3}[kind]
        parts = max(ROOM // (count * item), 1)
        need = max(ROOM, count * item)
        if id(numbers) not in self.held or self.held[id(numbers)].size < need:
            block = self.cupy.asarray(numpy.frombuffer(numbers.block.tobytes(), "uint8"))
            self.held[id(numbers)] = self.cupy.tile(block, -(-need // block.size))
        x = self.held[id(numbers)]
        out, size = self.cupy.zeros(8, "uint8"), ctypes.c_size_t()

        def call(temporary, part):
            return self.sums(number, temporary, ctypes.byref(size), ctypes.c_void_p(x.data.ptr + part * count * item),
                             ctypes.c_void_p(out.data.ptr), ctypes.c_int64(1), ctypes.c_int64(count),
                             ctypes.c_void_p(self.cupy.cuda.get_current_stream().ptr))
        if call(None, 0):
            return None
        room = self.cupy.zeros(max(size.value, 1), "uint8")
        temporary = ctypes.c_void_p(room.data.ptr)
        time = seconds_of(lambda i: call(temporary, i % parts), self.wait, options.warm, options.launches)
        call(temporary, 0)
        raw = bytes(out.get())[:item]
        got = struct.unpack("f", raw)[0] if kind == "f32" else struct.unpack("e", raw)[0] if kind == "f16" else \
            struct.unpack("f", b"\0\0" + raw)[0]
        return time, got


# ---- measurements ----

class Bench:
    def __init__(self, options):
        self.options, self.device = options, Device(options.library, options.device)
        self.report = Report(self.device, options.out)
        self.say = self.report.say
        self.peers = None if self.device.compiles_only else Peers(options.cub)
        self.numbers, self.memory = {}, {}

    def limit(self, size):
        """Seconds of a plain read; None where it is not known."""
        return self.peers.read(size, self.options) if self.peers else None

    def table(self, title, columns):
        self.say(f"\n## {title}\n\n| " + " | ".join(columns) + " |\n|---|" + "---:|" * (len(columns) - 1))

    def chart(self, figure, title, panels):
        self.report.chart(f"figure-{figure}", f"{title}; {self.device.text}", panels)

    def numbers_of(self, kind, data):
        if (kind, data) not in self.numbers:
            self.numbers[kind, data] = Numbers(kind, data, self.options.distinct)
        return self.numbers[kind, data]

    def memory_of(self, kind, data):
        """Numbers of this kind over and over; of other types' memory nothing is kept."""
        for other in [key for key in self.memory if key[0] != kind]:
            self.memory.pop(other).close()
            if self.peers:
                self.peers.held.clear()
        if (kind, data) not in self.memory:
            room = ROOM if self.device.name.startswith("cuda") else 0
            count = max(room * 8 // TYPES[kind][1], 1 << max(self.options.sizes + [20]))
            self.memory[kind, data] = Memory(self.device, kind, [count], self.numbers_of(kind, data).block)
        return self.memory[kind, data]

    def sum(self, kind, data, count, solver):
        """Seconds and the sum of so many numbers by this solver, None: the library's choice."""
        size, y = count * TYPES[kind][1] // 8, Memory(self.device, "i64" if kind == "i8" else "f32", [])
        x = self.memory_of(kind, data)
        parts = max(x.bytes // size, 1) if self.device.name.startswith("cuda") and size % 16 == 0 else 1
        x.shape = (count,)
        plan = Plan(self.device, "i->", "sum(a)", [x], [y], solver and "tensor-sum:" + solver)
        plan.run()
        self.device.wait()
        got = 0.0 if self.device.compiles_only else y.read()[0]
        time = plan.time(self.options.warm, self.options.launches, [p * size for p in range(parts)])
        plan.close()
        y.close()
        return time, got

    def sweep(self, figure, form, kind):
        """Figures 3 and 5: microseconds over chains and blocks."""
        count, blocks = 1 << 20, [32, 64, 128, 256, 512, 1024]
        self.table(f"Figure {figure}: {form}, {kind}, 2^20 normal numbers, microseconds",
                   ["chain \\ block", *map(str, blocks)])
        series = {}
        for chain in range(1, 6):
            times = [self.sum(kind, "normal", count, f"{form}:{chain}:{block}")[0] for block in blocks]
            series[f"R = {chain}"] = [(b, 1e6 * t) for b, t in zip(blocks, times)]
            self.say(f"| {chain} | " + " | ".join(f"{1e6 * t:.2f}" for t in times) + " |")
        self.chart(figure, f"Figure {figure}: {form}, {kind}, 2^20 normal numbers",
                   [{"title": form, "x": "threads of a block", "y": "us", "series": series, "log_x": True}])

    def tune(self, kind):
        """Which numbers suit this GPU: single pass of the greatest size, as a part of the limit (without it GB/s)."""
        count, chains = 1 << max(self.options.sizes), [0, 1, 2, 4, 8, 16, 64]
        size = count * TYPES[kind][1] // 8
        limit = self.limit(size)
        self.table(f"Single pass, {kind}, 2^{max(self.options.sizes)}: {'of the limit' if limit else 'GB/s'}",
                   ["chain, block \\ chains of a warp", *(str(c) if c else "all at once" for c in chains)])
        for chain in (1, 2, 4, 5):
            for block in (64, 128, 256, 512, 1024):
                times = [self.sum(kind, "normal", count, f"single:{chain}:{block}:{c}")[0] for c in chains]
                self.say(f"| {chain}, {block} | " +
                         " | ".join(f"{limit / t:.3f}" if limit else f"{1e-9 * size / t:.4g}" for t in times) + " |")

    def split(self, kind):
        """Figure 6: microseconds over the tenths that are products; 0 is plain."""
        count = 1 << 20
        self.table(f"Figure 6: split, {kind}, 2^20 normal numbers", ["tenths by products", "microseconds"])
        points = []
        for tenths in range(11):
            form = f"split:1:128:{tenths}" if tenths else "plain:1:128"
            points.append((tenths, 1e6 * self.sum(kind, "normal", count, form)[0]))
            self.say(f"| {tenths} | {points[-1][1]:.2f} |")
        self.chart(6, f"Figure 6: split, {kind}", [{"title": "split", "x": "tenths by products", "y": "us",
                                                    "series": {"split": points}}])

    def compare(self, figure, kind, ways):
        """Figures 7 and 8: every way over all sizes. ways: name, function of (data, count) -> (seconds, sum) or None."""
        title = f"Figure {figure}: {kind}"
        self.table(title, ["way, elements", "us", "10^9 elements/s", "of the limit", "times plain", "% error, normal",
                           "% error, uniform"])
        panels = [{"title": t, "x": "elements", "y": u, "series": {}, "log_x": True, "log_y": log}
                  for t, u, log in (("run time", "us", True), ("elements a second", "10^9", False),
                                    ("speed-up over plain", "times", False), ("error, normal", "%", True),
                                    ("error, uniform", "%", True))]
        for bits in self.options.sizes:
            count, plain = 1 << bits, None
            limit = self.limit(count * TYPES[kind][1] // 8)
            for name, way in ways:
                normal, uniform = way("normal", count), way("uniform", count)
                if not normal or not uniform:
                    continue
                time, errors = normal[0], []
                for data, got in (("normal", normal[1]), ("uniform", uniform[1])):
                    errors.append(percent(got, self.numbers_of(kind, data).exact(count)))
                plain = plain or time
                row = (1e6 * time, 1e-9 * count / time, plain / time, *errors)
                self.say(f"| {name}, 2^{bits} | {row[0]:.2f} | {row[1]:.1f} | " +
                         (f"{limit / time:.2f}" if limit else "-") + f" | {row[2]:.2f} | {row[3]:.2g} | {row[4]:.2g} |")
                for panel, value in zip(panels, row):
                    if math.isfinite(value):
                        panel["series"].setdefault(name, []).append((count, value))
        self.chart(f"{figure}-{kind}", title, panels)

    def figure_7(self, kind):
        known = [(n, v if n != "single" else "single:" + self.options.single) for n, v in VARIANTS if n != "recurrence" or kind in ("f16", "bf16")]
        self.compare(7, kind, [(name, lambda data, count, v=v: self.sum(kind, data, count, v)) for name, v in known])

    def figure_8(self, kind):
        ways = [("plain", lambda data, count: self.sum(kind, data, count, "plain:4:128")),
                ("single", lambda data, count: self.sum(kind, data, count, "single:" + self.options.single)),
                ("library", lambda data, count: self.sum(kind, data, count, None))]
        if kind in ("f16", "bf16") and self.peers:
            ways.append((f"CUB {kind}",
                         lambda data, count: self.peers.cub(kind, self.numbers_of(kind, data), count, self.options)))
            ways.append(("CUB float", lambda data, count: self.cub_float(kind, data, count)))
        self.compare(8, kind, ways)

    def cub_float(self, kind, data, count):
        """CUB's sum of the same numbers as floats."""
        numbers = self.numbers_of(kind, data)
        if ("float of", kind, data) not in self.numbers:
            wide = Numbers.__new__(Numbers)
            wide.block, wide.values, wide.whole = array.array("f", numbers.values), numbers.values, numbers.whole
            self.numbers["float of", kind, data] = wide
        return self.peers.cub("f32", self.numbers["float of", kind, data], count, self.options)

    def segments(self, kind):
        """Rows of 16 to 512 elements: GB/s read."""
        ways = [("library", None, 0), ("any order", None, ORDER_FREE), ("tensor cores", "tensor-sum:rows", 0),
                ("multi:swap", "multi:swap", 0), ("multi:double", "multi:double", 0), ("multi:merge", "multi:merge", 0)]
        self.table(f"Short segments, {kind}: GB/s", ["elements", *(name for name, *_ in ways)])
        numbers = self.numbers_of(kind, "normal")
        for length in (16, 32, 64, 128, 256, 512):
            rows = max(self.options.bytes * 8 // TYPES[kind][1] // length, 1)
            x = Memory(self.device, kind, [rows, length], numbers.block)
            y = Memory(self.device, "i64" if kind == "i8" else "f32", [rows])
            rates = []
            for _, solver, flags in ways:
                plan = Plan(self.device, "ij->i", "sum(a)", [x], [y], solver, flags)
                rates.append(1e-9 * x.bytes / plan.time(self.options.warm, self.options.launches))
                plan.close()
            cells = [f"**{r:.4g}**" if r == max(rates) else f"{r:.4g}" for r in rates]
            self.say(f"| {length} | " + " | ".join(cells) + " |")
            x.close()
            y.close()


def names(text):
    return text.split(",") if text else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--types", type=names, default=["f16", "bf16", "i8", "f8e4m3", "f8e5m2"])
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in names(text)], default=list(range(12, 29, 2)),
                        help="powers of two")
    parser.add_argument("--figures", type=names, default=["3", "5", "6", "tune", "7", "8", "segments"])
    parser.add_argument("--cub", default="", help="bench/peer_cub.cu, compiled")
    parser.add_argument("--single", default="4:128", help="chain, block and chains of a warp in figures 7 and 8")
    parser.add_argument("--bytes", type=int, default=1 << 28, help="that the segments' tensor has")
    parser.add_argument("--distinct", type=int, default=1 << 18)
    parser.add_argument("--warm", type=int, default=16)
    parser.add_argument("--launches", type=int, default=64)
    parser.add_argument("--out", default="")
    parser.add_argument("--plan-only", metavar="DEVICE")
    options = parser.parse_args()
    options.device = options.plan_only or options.device
    random.seed(1)
    bench = Bench(options)
    bench.say(f"# {bench.device.text}\n\n`bench/gpu_tensor_sum.py`; {options.launches} launches after {options.warm}")
    if "3" in options.figures:
        bench.sweep(3, "recurrence", "f16")
    if "5" in options.figures:
        bench.sweep(5, "single", "f16")
    if "6" in options.figures:
        bench.split("f16")
    if "tune" in options.figures:
        bench.tune("f16")
    for kind in options.types:
        if "7" in options.figures:
            bench.figure_7(kind)
        if "8" in options.figures:
            bench.figure_8(kind)
        if "segments" in options.figures:
            bench.segments(kind)
    bench.report.write()


if __name__ == "__main__":
    main()
