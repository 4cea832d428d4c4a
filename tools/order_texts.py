#!/usr/bin/env python3
"""Writes cmake/text_order.txt: an order of the kernels' texts in which deflate, which looks back 32 KB, makes them
shortest. Run it on a built tree when texts were added, or became very different:

    tools/order_texts.py build/release/texts/texts.c > cmake/text_order.txt

Texts are taken one by one, each time the one that the last 32 KB shorten most; then blocks of them are moved about for
a minute and a half, and a move stays where it shortens the whole. Texts without a place in the list come last.
"""
import random
import re
import sys
import time
import zlib

WINDOW, SECONDS = 32768, 90


def packed(text, before=b""):
    packer = zlib.compressobj(9, zlib.DEFLATED, -15, 9, zlib.Z_DEFAULT_STRATEGY, before[-WINDOW:])
    return len(packer.compress(text) + packer.flush())


def read_texts(path):
    with open(path, encoding="ascii") as file:
        source = file.read()
    stream = bytes(int(x, 16) for x in re.findall(r"0x([0-9a-f]{2})", source.split("mf_packed[] = {")[1]))
    text, texts = zlib.decompressobj(-15).decompress(stream), {}
    for name, size in re.findall(r"\{mf_text_(\w+), (\d+)\}", source):
        texts[re.sub(r"_([a-z]+)$", r".\1", name)], text = text[:int(size)], text[int(size):]
    return texts


def greedy(texts):
    alone = {name: packed(text) for name, text in texts.items()}
    order, left, before = [], set(texts), b""
    while left:
        best = min(sorted(left), key=lambda name: packed(texts[name], before) / alone[name])
        left.remove(best)
        order.append(best)
        before = (before + texts[best])[-WINDOW:]
    return order


def improved(order, texts):
    def size(names):
        return packed(b"".join(texts[name] for name in names))
    random.seed(1)
    least, end = size(order), time.time() + SECONDS
    while time.time() < end:
        at, count = random.randrange(len(order)), random.choice([1, 1, 1, 2, 3, 5])
        rest = order[:at] + order[at + count:]
        to = random.randrange(len(rest) + 1)
        moved = rest[:to] + order[at:at + count] + rest[to:]
        now = size(moved)
        if now <= least:
            order, least = moved, now
    return order, least


def main():
    texts = read_texts(sys.argv[1])
    before = packed(b"".join(texts.values()))
    order, least = improved(greedy(texts), texts)
    print("%d texts: %d bytes -> %d" % (len(texts), before, least), file=sys.stderr)
    print("\n".join(order))


main()
