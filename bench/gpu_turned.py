#!/usr/bin/env python3
"""Transposed copies, pools and vectors from the left on one CUDA GPU: modefold beside PyTorch and a copy.

    gpu_turned.py --library libmodefold.so [--before OTHER.so] [--types f32,bf16,i8]

Medians of triton.testing.do_bench; GB/s, bytes read and written once. --before: another build, measured in turns with the
library. Results are compared with PyTorch's where those are exact."""
import argparse

import torch
import torch.nn.functional as F
from triton.testing import do_bench

from gpu_table import TORCH, Modefold

# modes, shape, PyTorch's order of the modes
TURNED = [
    ("ij->ji", (8192, 16384), (1, 0)),
    ("bij->bji", (128, 1024, 1024), (0, 2, 1)),
    ("ijkl->lkji", (64, 128, 128, 128), (3, 2, 1, 0)),
    ("bchw->bhwc", (128, 64, 128, 128), (0, 2, 3, 1)),
    ("bhwc->bchw", (128, 128, 128, 64), (0, 3, 1, 2)),
    ("ij->ji", (8191, 16383), (1, 0)),
]
# name, modes, expression, sides of the output, PyTorch's way
POOLS = [
    ("max 3x3", "b(h+i)(w+j)->bhw with i=3,j=3", "max(a)", 1022, lambda x: F.max_pool2d(x, 3, 1)),
    ("max 3x3 by 2", "b(2h+i-1)(2w+j-1)->bhw with i=3,j=3,h=512,w=512", "max(a)", 512,
     lambda x: F.max_pool2d(x, 3, 2, 1)),
    ("mean 2x2", "b(2h+i)(2w+j)->bhw with i=2,j=2", "mean(a)", 512, lambda x: F.avg_pool2d(x, 2, 2)),
]


def median(run):
    return do_bench(run, warmup=10, rep=40, return_mode="median")


def row(name, libraries, modes, expression, inputs, out, peer, exact):
    moved = sum(x.numel() * x.element_size() for x in inputs) + out.numel() * out.element_size()
    source = torch.empty(moved // 2, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    figures = ["copy %.0f" % (moved / median(lambda: target.copy_(source)) / 1e6)]
    for label, library in libraries:
        run = library.plan(modes, expression, inputs, [out])
        run()
        torch.cuda.synchronize()
        if exact and not torch.equal(out, peer().reshape(out.shape)):
            raise RuntimeError(f"{name}: {label} differs from PyTorch")
        figures.append("%s %.0f (%s)" % (label, moved / median(run) / 1e6, run.solver))
    figures.append("torch %.0f" % (moved / median(peer) / 1e6))
    print(f"{name:28s} {str(out.dtype)[6:]:10s}", ", ".join(figures), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--before")
    parser.add_argument("--types", default="f32,bf16,i8")
    given = parser.parse_args()
    libraries = [("modefold", Modefold(given.library))]
    if given.before:
        libraries.insert(0, ("before", Modefold(given.before)))
    print(torch.cuda.get_device_name())
    for name in given.types.split(","):
        kind = TORCH[name]
        for modes, shape, order in TURNED:
            x = torch.randint(0, 100, shape, device="cuda").to(kind)
            out = torch.empty([shape[p] for p in order], dtype=kind, device="cuda")
            row(f"{modes} {shape}", libraries, modes, "a", [x], out, lambda: x.permute(order).contiguous(), True)
            del x, out
        if not kind.is_floating_point:
            continue
        x = torch.randint(0, 100, (64, 1024, 1024), device="cuda").to(kind)
        for label, modes, expression, side, peer in POOLS:
            out = torch.empty((64, side, side), dtype=kind, device="cuda")
            row(label, libraries, modes, expression, [x], out, lambda: peer(x[:, None]), expression == "max(a)")
        matrix = torch.randn(32768, 4096, device="cuda").to(kind)
        vector = torch.randn(32768, device="cuda").to(kind)
        out = torch.empty(4096, dtype=kind, device="cuda")
        row("ij,i->j", libraries, "ij,i->j", "sum(a*b)", [matrix, vector], out, lambda: torch.mv(matrix.t(), vector),
            False)


if __name__ == "__main__":
    main()
