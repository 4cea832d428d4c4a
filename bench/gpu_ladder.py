#!/usr/bin/env python3
"""The benchmark of Parker and MacKinnon, Multi-Reduction (section 7), on one GPU, with every form of solver multi as a
rung of a ladder; then sums of short segments by the same forms and by what the library chooses.

    gpu_ladder.py --library libmodefold.so [--device cuda:0] [--out NAME] [--forms naive,double] [--blocks 1,8]
                  [--types i32,f32,f64] [--lengths 16,32] [--bytes N] [--multiprocessors N] [--warm N] [--launches N]
                  [--plan-only sm:90]

All runs of 32 neighbours, (i+j)->i: a block of 256 threads sums 16,384 of them, each from the input array, and 1 to 8
such blocks come to every multiprocessor. A time is that of 64 launches one after the other, by 64, after 16 that are
not counted; of fewer, where these would take long. The library adds integers in 64 bits, so i32 exchanges two words
where the paper's int has one. Every form's results are compared with those of the library's own choice, bit for bit
(with the first number of blocks). NAME.md and NAME.json are written: times and factors over the naive form, beside the
paper's at 8 blocks; gpu_chart.py draws them. --plan-only compiles the kernels for that device into the cache."""
import argparse
import array
import random

from gpu_device import Device, Memory, Plan, Report, TYPES

RUN, BLOCK_RUNS, THREADS = 32, 1 << 14, 256
DISTINCT = 1 << 18  # random numbers, over and over
# The paper's factors at 8 blocks a multiprocessor (section 7: both 32-bit types 1.07 on the GTX 970M, 1.4 to 1.5 on the
# GTX Titan; double a little more than 2.5, and 1.9)
PAPER = {"i32": {"GTX 970M": 1.07, "GTX Titan": 1.4}, "f32": {"GTX 970M": 1.07, "GTX Titan": 1.5},
         "f64": {"GTX 970M": 2.5, "GTX Titan": 1.9}}
FORMS = ["merge", "online", "double", "swap", "shared"]


def rungs(wanted, span, every=(2, 4, 8, 16, 32)):
    """(name, form, outputs merged, sets of these): naive first, then every form with 2, 4 ... outputs merged (for online
    and double that is 2, 3 ... registers); the span's is always among them."""
    yield "naive", "naive", span, 1
    for form in FORMS:
        for values in [v for v in (2, 4, 8, 16, 32) if v <= span and (v in every or v == span)]:
            if form in wanted:
                yield f"{form} {values}", form, values, 2 if form == "double" else 1


def random_block(kind, count, known={}):
    """The same ones for every count of at least DISTINCT."""
    if (kind, count) not in known:
        known[kind, count] = make_random_block(kind, count)
    return known[kind, count]


def make_random_block(kind, count):
    if kind[0] == "i":
        return array.array(TYPES[kind][2], [random.randint(-100, 100) for _ in range(count)])
    if TYPES[kind][1] == 16:  # small integers are the same in every float type, and their sums exact
        bits = {"f16": [0x0000, 0x3c00, 0x4000, 0xbc00], "bf16": [0x0000, 0x3f80, 0x4000, 0xbf80]}[kind]
        return array.array("H", random.choices(bits, k=count))
    return array.array(TYPES[kind][2], [random.gauss(0, 1) for _ in range(count)])


class Ladder:
    def __init__(self, options):
        self.options, self.device, self.factors = options, Device(options.library, options.device), {}
        self.report = Report(self.device, options.out)
        self.say = self.report.say
        self.multiprocessors = options.multiprocessors or self.device.multiprocessors()

    def time(self, modes, x, y, solver, expected):
        """Seconds; None where the form does not go (too much shared memory, say), or its bits are wrong."""
        try:
            plan = Plan(self.device, modes, "sum(a)", [x], [y], solver)
        except RuntimeError as error:
            self.say(f"{solver}: {error}")
            return None
        time = plan.time(self.options.warm, self.options.launches)
        plan.close()
        if expected and y.read().tobytes() != expected:
            self.say(f"{solver}: WRONG BITS")
            return None
        return time

    def runs_of(self, kind, blocks):
        """Times of all rungs with so many blocks a multiprocessor."""
        runs = blocks * self.multiprocessors * BLOCK_RUNS
        x = Memory(self.device, kind, [runs + RUN - 1], random_block(kind, min(runs + RUN - 1, DISTINCT)))
        y = Memory(self.device, "i64" if kind[0] == "i" else kind, [runs])
        own = Plan(self.device, f"(i+j)->i with j={RUN}", "sum(a)", [x], [y])
        times = {f"library ({own.solver})": own.time(self.options.warm, self.options.launches)}
        expected = y.read().tobytes() if blocks == self.options.blocks[0] else None
        own.close()
        for name, form, values, sets in rungs(self.options.forms, RUN):
            passes = BLOCK_RUNS * RUN // (THREADS * values * sets)
            solver = f"multi:{form}:{values}:{RUN}:{passes}"
            times[name] = self.time(f"(i+j)->i with j={RUN}", x, y, solver, expected)
        x.close()
        y.close()
        return times

    def runs(self, kind):
        self.say(f"\n## All runs of 32, {kind}\n\nMilliseconds, and in brackets the factor over naive, by blocks a "
                 "multiprocessor.\n")
        columns = [self.runs_of(kind, blocks) for blocks in self.options.blocks]
        self.say("| form | " + " | ".join(map(str, self.options.blocks)) + " |")
        self.say("|---|" + "---:|" * len(columns))
        for name in columns[0]:
            cells = []
            for times in columns:
                known = times[name] and times["naive"]
                factor = times["naive"] / times[name] if known else None
                self.factors.setdefault((kind, name), []).append(factor)
                cells.append(f"{1e3 * times[name]:.3f} ({factor:.2f})" if known else "-")
            self.say(f"| {name} | " + " | ".join(cells) + " |")
        paper = ", ".join(f"{card} {factor}" for card, factor in PAPER[kind].items())
        self.say(f"\nThe paper's factors at 8 blocks: {paper}.")

    def segments(self, kind):
        """Sums of rows of every short length, by what the library chooses and by every form; the fastest is marked."""
        self.say(f"\n## Sums of short segments, {kind}\n\nGB/s read; the fastest one of a length is bold.\n")
        table, names = {}, []
        for length in self.options.lengths:
            rows = max(self.options.bytes * 8 // TYPES[kind][1] // length, 1)
            x = Memory(self.device, kind, [rows, length], random_block(kind, min(rows * length, DISTINCT)))
            y = Memory(self.device, "i64" if kind[0] == "i" else kind, [rows])
            own = Plan(self.device, "ij->i", "sum(a)", [x], [y])
            times = {"library": own.time(self.options.warm, self.options.launches)}
            expected = y.read().tobytes()
            own.close()
            span = 1
            while span < min(length, 32):
                span *= 2
            for name, form, values, _ in rungs(self.options.forms, span, (2, 8)):
                times[name] = self.time("ij->i", x, y, f"multi:{form}:{values}:{span}", expected)
            table[length] = {name: x.bytes / time * 1e-9 for name, time in times.items() if time}
            names += [name for name in times if name not in names]
            x.close()
            y.close()
        self.say("| form | " + " | ".join(map(str, table)) + " |")
        self.say("|---|" + "---:|" * len(table))
        for name in names:
            cells = [f"{rates[name]:.4g}" if name in rates else "-" for rates in table.values()]
            cells = [f"**{cell}**" if rates.get(name) == max(rates.values()) else cell
                     for cell, rates in zip(cells, table.values())]
            self.say(f"| {name} | " + " | ".join(cells) + " |")

    def chart(self):
        """A panel a type: factors over naive of every form with all 32 outputs merged, and the paper's at 8 blocks."""
        panels = []
        for kind in self.options.types:
            series = {form: [(b, f) for b, f in zip(self.options.blocks, self.factors.get((kind, f"{form} 32"), []))
                             if f] for form in self.options.forms}
            marks = [(8, factor, card) for card, factor in PAPER[kind].items()]
            panels.append({"title": kind, "x": "blocks a multiprocessor", "y": "times", "series": series, "marks": marks})
        self.report.chart("", "All runs of 32: times faster than the naive form (circles: the paper's); "
                          f"{self.device.text}", panels)


def names(text):
    return text.split(",") if text else []


def numbers(text):
    return [int(n) for n in names(text)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--forms", type=names, default=FORMS)
    parser.add_argument("--types", type=names, default=["i32", "f32", "f64"])
    parser.add_argument("--blocks", type=numbers, default=list(range(1, 9)))
    parser.add_argument("--lengths", type=numbers, default=[4, 8, 16, 32, 64, 128, 256, 512])
    parser.add_argument("--segment-types", type=names, default=["f32", "f16", "f64"])
    parser.add_argument("--bytes", type=int, default=1 << 28, help="that the segments' tensor has")
    parser.add_argument("--multiprocessors", type=int, default=0, help="0: what the device says")
    parser.add_argument("--warm", type=int, default=16)
    parser.add_argument("--launches", type=int, default=64)
    parser.add_argument("--out", default="")
    parser.add_argument("--plan-only", metavar="DEVICE")
    options = parser.parse_args()
    options.device = options.plan_only or options.device
    random.seed(1)
    ladder = Ladder(options)
    ladder.say(f"# {ladder.device.text}\n\n`bench/gpu_ladder.py`; {options.launches} launches after {options.warm}")
    for kind in options.types:
        ladder.runs(kind)
    for kind in options.segment_types if options.lengths else []:
        ladder.segments(kind)
    ladder.chart()
    ladder.report.write()


if __name__ == "__main__":
    main()
