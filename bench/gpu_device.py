"""A GPU through libmodefold.so alone: memory, plans, times. For the programs that run on any device, cuda:0 or opencl:0,
with nothing but Python's own library. On sm:90, which only compiles, there is no memory, nothing runs and nothing is
said: kernels get into the cache (MODEFOLD_CACHE), for a GPU elsewhere."""
import array
import ctypes
import json
import math
import re
import time

# DLPack's code and bits, and array's letter; 16-bit and 8-bit floats are kept as their bits
TYPES = {"i8": (0, 8, "b"), "i32": (0, 32, "i"), "i64": (0, 64, "q"), "f16": (2, 16, "H"), "f32": (2, 32, "f"),
         "f64": (2, 64, "d"), "bf16": (4, 16, "H"), "f8e4m3": (10, 8, "B"), "f8e5m2": (12, 8, "B")}

ENOUGH = 0.03  # seconds of a measurement

# a plain read, by CUDA's compiler: the limit
READ = r"""
extern "C" __global__ void read(const float4 *x, float *o, size_t n)
{
    size_t step = (size_t)gridDim.x * blockDim.x, i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    float s = 0;
    for (; i + 3 * step < n; i += 4 * step) {
        float4 a = __ldcs(x + i), b = __ldcs(x + i + step), c = __ldcs(x + i + 2 * step), d = __ldcs(x + i + 3 * step);
        s += (a.x + a.y + a.z + a.w) + (b.x + b.y + b.z + b.w) + (c.x + c.y + c.z + c.w) + (d.x + d.y + d.z + d.w);
    }
    for (; i < n; i += step)
        s += x[i].x + x[i].y + x[i].z + x[i].w;
    if (s == 1234567.0f)
        *o = s;
}"""


class Tensor(ctypes.Structure):
    """DLPack's DLTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


class Options(ctypes.Structure):
    """mf_options."""
    _fields_ = [("solver", ctypes.c_char_p), ("flags", ctypes.c_uint32), ("threads", ctypes.c_int)]


def seconds_of(run, wait, warm, launches):
    """Seconds of one of so many launches after `warm`, or of fewer, where these would take more than ENOUGH."""
    run(0)
    wait()
    start = time.perf_counter()
    run(0)
    wait()
    most = max(int(ENOUGH / max(time.perf_counter() - start, 1e-6)), 4)
    warm, launches = min(warm, most), min(launches, most)
    for i in range(warm):
        run(i)
    wait()
    start = time.perf_counter()
    for i in range(launches):
        run(i)
    wait()
    return (time.perf_counter() - start) / launches


class Memory:
    """A contiguous tensor on the device. block: an array of its letter, written over and over until it is full."""

    def __init__(self, device, kind, shape, block=None):
        self.device, self.kind, self.shape = device, kind, tuple(shape)
        self.count, self.bytes = math.prod(self.shape), math.prod(self.shape) * TYPES[kind][1] // 8
        self.memory = ctypes.c_void_p()
        if device.compiles_only:
            return
        device.check(device.lib.mf_memory_create(device.handle, ctypes.c_int64(self.bytes), ctypes.byref(self.memory)))
        for at in range(0, self.bytes if block else 0, max(len(block or ()) * TYPES[kind][1] // 8, 1)):
            size = min(len(block) * block.itemsize, self.bytes - at)
            device.check(device.lib.mf_memory_write(device.handle, self.memory, ctypes.c_int64(at),
                                                    ctypes.c_void_p(block.buffer_info()[0]), ctypes.c_int64(size)))

    def read(self):
        values = array.array(TYPES[self.kind][2], bytes(0 if self.device.compiles_only else self.bytes))
        if self.device.compiles_only:
            return values
        self.device.check(self.device.lib.mf_memory_read(self.device.handle, self.memory, ctypes.c_int64(0),
                                                         ctypes.c_void_p(values.buffer_info()[0]),
                                                         ctypes.c_int64(self.bytes)))
        return values

    def tensor(self):
        shape = (ctypes.c_int64 * max(len(self.shape), 1))(*self.shape)
        code, bits, _ = TYPES[self.kind]
        t = Tensor(self.memory, self.device.kind, 0, len(self.shape), code, bits, 1, shape, None, 0)
        t.keep = shape
        return t

    def close(self):
        if not self.device.compiles_only:
            self.device.lib.mf_memory_destroy(self.device.handle, self.memory)


class Plan:
    def __init__(self, device, modes, expression, inputs, outputs, solver=None, flags=0):
        self.device, self.handle = device, ctypes.c_void_p()
        tensors = [x.tensor() for x in inputs + outputs]
        ins, outs = (Tensor * len(inputs))(*tensors[:len(inputs)]), (Tensor * len(outputs))(*tensors[len(inputs):])
        options = Options(solver.encode() if solver else None, flags, 0)
        device.check(device.lib.mf_plan_create(device.handle, modes.encode(), expression.encode(), ins, outs,
                                               ctypes.byref(options), ctypes.byref(self.handle)))
        self.ins = (ctypes.c_void_p * len(inputs))(*[x.memory for x in inputs])
        self.outs = (ctypes.c_void_p * len(outputs))(*[x.memory for x in outputs])
        self.solver = device.lib.mf_plan_solver(self.handle).decode()
        self.text = device.lib.mf_plan_describe(self.handle).decode()

    def run(self):
        if not self.device.compiles_only:
            self.device.check(self.device.lib.mf_plan_execute(self.handle, self.ins, self.outs, None))

    def run_at(self, place):
        """The same of the first operand's bytes from there on; CUDA."""
        ins = (ctypes.c_void_p * len(self.ins))(*self.ins)
        ins[0] += place
        self.device.check(self.device.lib.mf_plan_execute(self.handle, ins, self.outs, None))

    def time(self, warm, launches, places=(0,)):
        """Seconds of one of so many launches, one after the other, of the places in turn."""
        if self.device.compiles_only:
            return 1.0
        run = (lambda i: self.run()) if len(places) == 1 else (lambda i: self.run_at(places[i % len(places)]))
        return seconds_of(run, self.device.wait, warm, launches)

    def close(self):
        self.device.lib.mf_plan_destroy(self.handle)


class Device:
    def __init__(self, library, name):
        self.lib = ctypes.CDLL(library)
        for text in ("mf_error", "mf_device_describe", "mf_plan_describe", "mf_plan_solver"):
            getattr(self.lib, text).restype = ctypes.c_char_p
        self.handle, self.name, self.compiles_only = ctypes.c_void_p(), name, name.startswith("sm:")
        self.check(self.lib.mf_device_open(name.encode(), ctypes.byref(self.handle)))
        self.kind = self.lib.mf_device_kind(self.handle)
        self.text = self.lib.mf_device_describe(self.handle).decode()

    def check(self, status):
        if status:
            raise RuntimeError(self.lib.mf_error().decode())

    def wait(self):
        if not self.compiles_only:
            self.check(self.lib.mf_device_wait(self.handle, None))

    def multiprocessors(self):
        """As the library's description says, else 1."""
        found = re.search(r"(\d+) multiprocessors", self.text)
        return int(found.group(1)) if found else 1


class Report:
    """What a program says, to be written as NAME.md, and its charts (gpu_chart.py's), as NAME.json."""

    def __init__(self, device, out):
        self.device, self.out, self.lines, self.charts = device, out, [], {}

    def say(self, text):
        if not self.device.compiles_only:
            print(text, flush=True)
            self.lines.append(text)

    def chart(self, name, title, panels):
        self.charts[name] = {"title": title, "panels": panels}

    def write(self):
        if self.out and not self.device.compiles_only:
            with open(self.out + ".md", "w", encoding="utf-8") as file:
                file.write("\n".join(self.lines) + "\n")
            with open(self.out + ".json", "w", encoding="utf-8") as file:
                json.dump({"device": self.device.text, "charts": self.charts}, file, indent=1)
