# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The batches that attention_peers.py measures: named ones in sections, and steps drawn at random of real models."""
import math
import random
from typing import NamedTuple

import torch

COMPUTE_BOUND = 170  # FLOP a byte: an H200 does 790 TFLOP/s and reads 4.35 TB/s
MOST_CACHE_BYTES, MOST_FLOPS = 12e9, 5e12  # of a random shape
HEADS = [(32, 8), (32, 8), (64, 8), (28, 4), (40, 8), (16, 8), (32, 32), (12, 2), (48, 8), (96, 8), (64, 4), (16, 2)]  # of models with head_dim 128
OTHER_HEADS = {64: [(64, 8), (32, 8), (14, 2), (24, 8)], 256: [(16, 8), (8, 4), (16, 16), (32, 16)]}


class Shape(NamedTuple):
    """One batch. page: tokens of a page, 0: keys are contiguous."""

    section: str
    queries: tuple
    keys: tuple
    heads_q: int
    heads_kv: int
    dim: int = 128
    dim_v: int = 128
    page: int = 16
    causal: bool = True
    kv: str = "bf16"

    @property
    def kv_dtype(self):
        return torch.float8_e4m3fn if self.kv == "e4m3" else torch.bfloat16

    @property
    def group(self):
        return self.heads_q // self.heads_kv

    @property
    def flops(self):
        pairs = sum(n * length - (n * (n - 1) // 2 if self.causal else 0) for n, length in zip(self.queries, self.keys))
        return 2 * (self.dim + self.dim_v) * self.heads_q * pairs

    @property
    def kv_bytes(self):
        return sum(self.keys) * self.heads_kv * (self.dim + self.dim_v) * self.kv_dtype.itemsize

    @property
    def label(self):
        alike = len(set(self.queries)) == len(set(self.keys)) == 1
        batch = f"{len(self.keys)} x" if alike else f"{len(self.keys)} requests,"
        tokens = "" if self.section.startswith("decode") else f" {self.queries[0] if alike else sum(self.queries)} on"
        keys = f"{self.keys[0]}" if alike else f"{sum(self.keys)} keys ({min(self.keys)} to {max(self.keys)})"
        dims = f"d{self.dim}" if self.dim == self.dim_v else f"d{self.dim}/{self.dim_v}"
        form = f"page {self.page}" if self.page else "causal" if self.causal else "full"
        return f"{self.section} {batch}{tokens} {keys}, {self.heads_q}/{self.heads_kv} {dims}, {form}, {self.kv}"

    def rates(self, us):
        """(TFLOP/s, GB/s)."""
        return self.flops / us / 1e6, self.kv_bytes / us / 1e3

    def rate(self, us):
        """That of the two which bounds the shape."""
        tflops, gbps = self.rates(us)
        return f"{tflops:.0f} TFLOP/s" if self.flops > COMPUTE_BOUND * self.kv_bytes else f"{gbps:.0f} GB/s"


def alike(section, batch, queries, keys, heads_q=32, heads_kv=8, **options):
    return Shape(section, (queries,) * batch, (keys,) * batch, heads_q, heads_kv, **options)


def named_shapes(section):
    whole, long_caches = [(16, 1024), (4, 4096), (1, 16384)], [(16, 8192), (4, 32768), (1, 131072)]
    if section == "prefill":
        models = [(32, 8, 128, 128, (False, True)), (32, 8, 64, 64, (False, True)), (16, 4, 256, 256, (False, True)), (16, 16, 192, 128, (True,))]
        return [alike(section, b, n, n, q, kv, dim=d, dim_v=v, page=0, causal=causal) for q, kv, d, v, forms in models for causal in forms for b, n in whole]
    if section == "paged":
        return [alike(section, 4, 4096, 4096, page=page) for page in (1, 16, 64)]
    if section == "chunked":
        return [alike(section, 8, 512, 8192), alike(section, 1, 2048, 65536), *(alike(section, b, 128, n) for b, n in long_caches)]
    if section == "decode":
        bf16 = [(1, 8192), (1, 131072), (16, 1024), (64, 1024), (64, 8192), (64, 8192, 32, 8, 64), (128, 8192), (16, 32768), (64, 8192, 64, 8), (64, 2048, 32, 32), (256, 1024)]
        fp8 = [(1, 8192), (16, 1024), (64, 1024), (64, 8192), (64, 8192, 32, 8, 64), (16, 32768), (16, 32768, 32, 8, 64), (256, 1024), (1, 131072)]
        return [decode(section, kv, *row) for kv, rows in (("bf16", bf16), ("e4m3", fp8)) for row in rows]
    return [alike(section, b, queries, n) for queries in (4, 16, 64) for b, n in long_caches]


def decode(section, kv, batch, length, heads_q=32, heads_kv=8, page=16):
    return alike(section, batch, 1, length, heads_q, heads_kv, page=page, kv=kv)


def log_uniform(rng, least, most):
    return round(math.exp(rng.uniform(math.log(least), math.log(most))))


def model(rng, dims):
    """(heads_q, heads_kv, head_dim) of a real model; head_dim is one of `dims`."""
    dim = rng.choice(dims)
    return (*rng.choice(OTHER_HEADS.get(dim, HEADS)), dim)


def drawn_decode(rng, dims):
    """One query a request; lengths are log-uniform from 64 to a most of the batch."""
    heads_q, heads_kv, dim = model(rng, dims)
    kv, page = rng.choice(["bf16", "bf16", "bf16", "e4m3"]), rng.choice([16, 16, 64, 1])
    batch, most = log_uniform(rng, 1, 256), log_uniform(rng, 1024, 131072)
    keys = tuple(log_uniform(rng, 64, most) for _ in range(batch))
    return Shape("decode-random", (1,) * batch, keys, heads_q, heads_kv, dim, dim, page, True, kv)


def drawn_varlen(rng, dims):
    """A step of an engine: decodes, drafts that are verified, chunks of prompts and whole prompts in one batch."""
    heads_q, heads_kv, dim = model(rng, dims)
    kv, page = rng.choice(["bf16", "bf16", "bf16", "e4m3"]), rng.choice([16, 16, 64, 1])
    requests, kinds = [], ["decode", "decode", "decode", "draft", "chunk", "prompt"]
    for at in range(log_uniform(rng, 2, 96)):
        kind = rng.choice(kinds if at else ["chunk", "prompt"])
        length = log_uniform(rng, 16, 8192 if kind == "prompt" else 32768)
        n = {"decode": 1, "draft": rng.randint(2, 8), "chunk": rng.choice([256, 512, 1024, 2048]), "prompt": length}[kind]
        requests.append((min(n, length), length))
    queries, keys = zip(*requests)
    return Shape("varlen-random", queries, keys, heads_q, heads_kv, dim, dim, page, True, kv)


DRAWN = {"decode-random": drawn_decode, "varlen-random": drawn_varlen}
SECTIONS = ["prefill", "paged", "chunked", "decode", "few"]


def random_shapes(section, seed, count, dims):
    """As many as are asked for, none too large for a short run. The same seed and dims draw the same ones."""
    rng, shapes = random.Random(f"{section} {seed}"), []
    while len(shapes) < count:
        shape = DRAWN[section](rng, dims)
        if shape.kv_bytes <= MOST_CACHE_BYTES and shape.flops <= MOST_FLOPS:
            shapes.append(shape)
    return shapes


def shapes_of(section, seed, count, dims):
    """The batches of a section: those with names, or `count` drawn ones of models whose head_dim is one of `dims`."""
    return random_shapes(section, seed, count, dims) if section in DRAWN else named_shapes(section)
