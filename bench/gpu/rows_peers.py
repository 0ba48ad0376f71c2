#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Norms, activations, RoPE, the append to a paged cache, quantisation and gather_rows beside FlashInfer's kernels, torch.compile's of the same formula and quack's norms, where these packages
can be imported; in turns: kernel times by CUPTI, L2 cold, random data. A peer's result is compared with the formula in double before it is timed; what `quern bench` times it compares itself.

Usage: rows_peers.py QUERN [--csv FILE] [--section norm,activation,rope,quant,gather] [--random N] [--seed HEX] [--turns N] [--budget MS]
QUERN is the command. Without --random the shapes of the documents; with it N pairs of a width of a real model and 1 to 65536 tokens, drawn by the seed, for norms, activations and groups of 128.

FlashInfer's norms and quack's take weights in f32 where they want them so; all else is bf16. gather_rows of every fifth token is a row of zeros: a peer gets the first row of the table there, or
makes the zeros. torch.compile is that of its default mode, compiled for each shape. Where over 256 MB move, times stand beside the best copy of as many bytes, as `quern bench` times it."""
import argparse
import math
import random
import statistics
import time

import torch
import torch.nn.functional as F

from kernel_times import TURNS, compile_without_limit, flashinfer_or_none, geomean, kernel_us, must_be_close, quern_bench, spread, stop_at_sigterm, working, write_csv

BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn
EPS, LARGEST = 1e-6, 448.0
CHECKED = 256  # rows that are compared
HEADS, HEADS_KV, HEAD_DIM, PAGE_SIZE, BATCH = 32, 8, 128, 16, 64
THETA, MOST_POSITIONS = 10000.0, 131072
TABLE_ROWS = 128256
SHORT_US, MOST_BEHIND_US, MANY_BYTES = 5.0, 0.5, 256e6
HIDDEN = [896, 1536, 2048, 2560, 2880, 3072, 3584, 4096, 5120, 5376, 6144, 7168, 8192, 12288, 16384]
INTERMEDIATE = [1536, 2048, 2880, 4864, 8960, 9728, 11008, 12288, 14336, 18432, 18944, 21504, 25600, 28672]
MOST_OPERAND_BYTES = 8e9

fi = quack_rmsnorm = None
COMPILED, QUACK, TORCH = "torch.compile", "quack", "torch"


def randn(*shape):
    return torch.randn(*shape, device="cuda", dtype=BF16)


def weight(h):
    return (1 + 0.2 * torch.randn(h, device="cuda")).to(BF16)


def rms(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * w


def by_row(y):
    """FP8 with a scale a row."""
    s = y.abs().amax(-1, keepdim=True).clamp(min=1e-4) / LARGEST
    return (y * (1 / s)).to(E4M3), s


def by_group(y):
    """FP8 with a scale for each 128 columns of a row."""
    q, s = by_row(y.view(y.shape[0], -1, 128))
    return q.view(y.shape), s.view(y.shape[0], -1)


def add_rms_in_place(x, r, w):
    s = x.float() + r.float()
    r.copy_(s.to(r.dtype))
    x.copy_(rms(s, w.float()).to(x.dtype))


def add_rms_by_group(x, r, w):
    s = x.float() + r.float()
    r.copy_(s.to(r.dtype))
    return by_group(rms(s, w.float()))


def halves(x):
    return x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]


def silu_and_mul_f32(x):
    gate, up = halves(x)
    return F.silu(gate.float()) * up.float()


def gelu_and_mul_f32(x):
    gate, up = halves(x)
    return F.gelu(gate.float(), approximate="tanh") * up.float()


def rotated(x, positions):
    half = x.shape[-1] // 2
    exponents = torch.arange(half, device=x.device, dtype=torch.float32) * (-math.log(THETA) / half)
    angle = positions[:, None].float() * exponents.exp()[None]
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x[..., :half].float(), x[..., half:].float()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1).to(x.dtype)


def put(k, v, k_cache, v_cache, table, requests, positions):
    pages, places = table[requests.long(), positions.long() // PAGE_SIZE].long(), positions.long() % PAGE_SIZE
    k_cache[pages, places] = k
    v_cache[pages, places] = v


def rotate_and_put(q, k, v, k_cache, v_cache, table, requests, positions):
    put(rotated(k, positions), v, k_cache, v_cache, table, requests, positions)
    return rotated(q, positions)


def static_fp8(x, s):
    return (x.float() * (1 / s)).clamp(-LARGEST, LARGEST).to(E4M3)


def tensor_fp8(x):
    s = x.abs().amax().float().clamp(min=1e-4) / LARGEST
    return (x.float() * (1 / s)).to(E4M3), s


def rows_or_zeros(table, ids):
    return torch.where((ids < 0)[:, None], 0, table[ids.clamp(min=0)])


_compiled = {}


def compiled(function):
    return _compiled.setdefault(function, torch.compile(function, dynamic=False))


def rms_f32(x, w):
    return rms(x.float(), w.float()).to(x.dtype)


def rms_by_row(x, w):
    return by_row(rms(x.float(), w.float()))


def layer_norm_formula(x, w, b):
    return F.layer_norm(x, x.shape[1:], w, b, EPS)


def silu_formula(x):
    return silu_and_mul_f32(x).to(x.dtype)


def gelu_formula(x):
    return gelu_and_mul_f32(x).to(x.dtype)


def silu_by_group(x):
    return by_group(silu_and_mul_f32(x))


def quant_by_group(x):
    return by_group(x.float())


def widened(q, s):
    """What FP8 of rows, or of groups of them, stands for."""
    s = s if s.ndim == 2 and s.shape[1] > 1 else s.reshape(-1, 1)
    return q.double() * s.double().repeat_interleave(q.shape[1] // s.shape[1], 1)


FP8 = {"rtol": 0.07, "atol": 0.02}  # half of an e4m3's last place is 2^-4 of it

# What makes the calls of a label's peers for a shape: {name: call}. Each looks at the results first.


def peers_of_rms_norm(t, h):
    x, w, y, n = randn(t, h), weight(h), torch.empty(t, h, device="cuda", dtype=BF16), min(t, CHECKED)
    want, wide = rms(x[:n].double(), w.double()), w.float()
    calls = {COMPILED: lambda: compiled(rms_f32)(x, w)}
    if fi:
        calls["FlashInfer"] = lambda: fi.rmsnorm(x, w, eps=EPS, out=y)
    if quack_rmsnorm:
        calls[QUACK] = lambda: first_of(quack_rmsnorm(x, wide, eps=EPS))
    return {name: (call, lambda out: (out[:n], want), {}) for name, call in calls.items()}


def first_of(result):
    return result[0] if isinstance(result, (tuple, list)) else result


def peers_of_rms_by_row(t, h):
    x, w, n = randn(t, h), weight(h), min(t, CHECKED)
    want = rms(x[:n].double(), w.double())
    return {COMPILED: (lambda: compiled(rms_by_row)(x, w), lambda out: (widened(out[0][:n], out[1][:n]), want), FP8)}


def peers_of_fused_add(t, h):
    w, n = weight(h), min(t, CHECKED)
    x, r = randn(t, h), randn(t, h)
    sums = x[:n].double() + r[:n].double()
    want = (rms(sums, w.double()), sums)
    wide = w.float()

    def updating(call):
        """Both tensors that the call updates, from the given values at the first call; later ones go on from there."""
        x_now, r_now = x.clone(), r.clone()

        def run():
            call(x_now, r_now, w)
            return x_now, r_now

        return run

    calls = {COMPILED: updating(compiled(add_rms_in_place))}
    if fi:
        calls["FlashInfer"] = updating(lambda x, r, w: fi.fused_add_rmsnorm(x, r, w, eps=EPS))
    if quack_rmsnorm:
        calls[QUACK] = lambda: tuple(quack_rmsnorm(x, wide, residual=r, eps=EPS)[:2])
    return {name: (call, lambda out: (tuple(o[:n] for o in out), want), {}) for name, call in calls.items()}


def peers_of_fused_add_by_group(t, h):
    x, r, w, n = randn(t, h), randn(t, h), weight(h), min(t, CHECKED)
    want = rms(x[:n].double() + r[:n].double(), w.double())
    return {COMPILED: (lambda: compiled(add_rms_by_group)(x, r, w), lambda out: (widened(out[0][:n], out[1][:n]), want), FP8)}


def peers_of_layer_norm(t, h):
    x, w, b, n = randn(t, h), weight(h), randn(h), min(t, CHECKED)
    want, w32, b32 = F.layer_norm(x[:n].double(), (h,), w.double(), b.double(), EPS), w.float(), b.float()
    calls = {COMPILED: lambda: compiled(layer_norm_formula)(x, w, b), TORCH: lambda: F.layer_norm(x, (h,), w, b, EPS)}
    if fi:
        calls["FlashInfer"] = lambda: fi.layernorm(x, w32, b32, EPS)
    return {name: (call, lambda out: (out[:n], want), {}) for name, call in calls.items()}


def peers_of_activation(formula, double, theirs):
    def peers(t, i):
        x, y, n = randn(t, 2 * i), torch.empty(t, i, device="cuda", dtype=BF16), min(t, CHECKED)
        gate, up = halves(x[:n].double())
        want = double(gate) * up
        calls = {COMPILED: lambda: compiled(formula)(x)}
        if fi:
            calls["FlashInfer"] = lambda: getattr(fi, theirs)(x, out=y)
        return {name: (call, lambda out: (out[:n], want), {}) for name, call in calls.items()}

    return peers


def peers_of_silu_by_group(t, i):
    x, n = randn(t, 2 * i), min(t, CHECKED)
    gate, up = halves(x[:n].double())
    want = F.silu(gate) * up
    return {COMPILED: (lambda: compiled(silu_by_group)(x), lambda out: (widened(out[0][:n], out[1][:n]), want), FP8)}


def double_rotated(x, positions):
    half = x.shape[-1] // 2
    angle = positions[:, None].double() * THETA ** (-torch.arange(half, device=x.device).double() / half)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    a, b = x[..., :half].double(), x[..., half:].double()
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def both_rotated(q, k, positions):
    return rotated(q, positions), rotated(k, positions)


def peers_of_rope(t, _):
    q, k, n = randn(t, HEADS, HEAD_DIM), randn(t, HEADS_KV, HEAD_DIM), min(t, CHECKED)
    positions = torch.randint(0, MOST_POSITIONS, (t,), device="cuda", dtype=torch.int32)
    positions[:n] %= 4096  # fast sines of large angles are coarse: these are what is compared
    want = (double_rotated(q[:n], positions[:n]), double_rotated(k[:n], positions[:n]))
    calls = {COMPILED: lambda: compiled(both_rotated)(q, k, positions)}
    if fi:
        q_now, k_now = q.clone(), k.clone()

        def theirs():
            fi.apply_rope_pos_ids_inplace(q_now, k_now, positions, rope_theta=THETA)
            return q_now, k_now

        calls["FlashInfer"] = theirs
    return {name: (call, lambda out: (tuple(o[:n] for o in out), want), {"rtol": 0.02, "atol": 0.04}) for name, call in calls.items()}


class Places:
    """Tokens dealt out over requests, each at its request's next position; pages in random order."""

    def __init__(self, t):
        requests = torch.randint(0, BATCH, (t,))
        positions, following = torch.empty(t, dtype=torch.int64), torch.randint(0, PAGE_SIZE + 2, (BATCH,))
        for request in range(BATCH):
            mine = (requests == request).nonzero().flatten()
            positions[mine] = following[request] + torch.arange(len(mine))
        self.max_pages = int(positions.max()) // PAGE_SIZE + 1
        pages = torch.randperm(BATCH * self.max_pages + 3)[: BATCH * self.max_pages]
        self.table = pages.view(BATCH, self.max_pages).int().cuda()
        self.indices, self.indptr = self.table.flatten(), (torch.arange(BATCH + 1) * self.max_pages).int().cuda()
        self.last = torch.full((BATCH,), PAGE_SIZE, dtype=torch.int32, device="cuda")
        self.requests, self.positions = requests.int().cuda(), positions.int().cuda()
        self.cache = torch.zeros(BATCH * self.max_pages + 3, 2, PAGE_SIZE, HEADS_KV, HEAD_DIM, device="cuda", dtype=BF16)
        self.k_cache, self.v_cache = torch.zeros_like(self.cache[:, 0]).contiguous(), torch.zeros_like(self.cache[:, 1]).contiguous()

    def there(self, cache, n):
        """The rows of the first n tokens."""
        requests, positions = self.requests[:n].long(), self.positions[:n].long()
        return cache[self.table[requests, positions // PAGE_SIZE].long(), positions % PAGE_SIZE]

    def append(self, k, v):
        fi.append_paged_kv_cache(k, v, self.requests, self.positions, self.cache, self.indices, self.indptr, self.last)


def peers_of_append(t, _):
    k, v, p, n = randn(t, HEADS_KV, HEAD_DIM), randn(t, HEADS_KV, HEAD_DIM), Places(t), min(t, CHECKED)
    want = (k[:n].double(), v[:n].double())

    def by_torch():
        compiled(put)(k, v, p.k_cache, p.v_cache, p.table, p.requests, p.positions)
        return p.k_cache, p.v_cache

    def theirs():
        p.append(k, v)
        return p.cache[:, 0], p.cache[:, 1]

    calls = {COMPILED: by_torch, **({"FlashInfer": theirs} if fi else {})}
    return {name: (call, lambda out: (tuple(p.there(o, n) for o in out), want), {"rtol": 0.0, "atol": 0.0}) for name, call in calls.items()}


def peers_of_rope_append(t, _):
    q, k, v, p, n = randn(t, HEADS, HEAD_DIM), randn(t, HEADS_KV, HEAD_DIM), randn(t, HEADS_KV, HEAD_DIM), Places(t), min(t, CHECKED)
    want = (double_rotated(q[:n], p.positions[:n]), double_rotated(k[:n], p.positions[:n]), v[:n].double())

    def by_torch():
        q_out = compiled(rotate_and_put)(q, k, v, p.k_cache, p.v_cache, p.table, p.requests, p.positions)
        return q_out, p.k_cache, p.v_cache

    calls = {COMPILED: by_torch}
    if fi:
        q_now, k_now = q.clone(), k.clone()

        def theirs():
            fi.apply_rope_pos_ids_inplace(q_now, k_now, p.positions, rope_theta=THETA)
            p.append(k_now, v)
            return q_now, p.cache[:, 0], p.cache[:, 1]

        calls["FlashInfer, two launches"] = theirs
    return {name: (call, lambda out: ((out[0][:n], p.there(out[1], n), p.there(out[2], n)), want), {"rtol": 0.02, "atol": 0.04}) for name, call in calls.items()}


def peers_of_groups(t, k):
    x, n = randn(t, k), min(t, CHECKED)
    want = x[:n].double()
    return {COMPILED: (lambda: compiled(quant_by_group)(x), lambda out: (widened(out[0][:n], out[1][:n]), want), FP8)}


def peers_of_static(t, k):
    x, s, n = randn(t, k), torch.full((), 0.01, device="cuda"), min(t, CHECKED)
    want = x[:n].double().clamp(-LARGEST * 0.01, LARGEST * 0.01)
    return {COMPILED: (lambda: compiled(static_fp8)(x, s), lambda out: (out[:n].double() * 0.01, want), FP8)}


def peers_of_dynamic(t, k):
    x, n = randn(t, k), min(t, CHECKED)
    want = x[:n].double()
    return {COMPILED: (lambda: compiled(tensor_fp8)(x), lambda out: (out[0][:n].double() * out[1].double(), want), FP8)}


def peers_of_gather(t, h):
    table = randn(TABLE_ROWS, h)
    ids = torch.randint(0, TABLE_ROWS, (t,), device="cuda", dtype=torch.int32)
    ids[3::5] = -1
    first, n = ids.clamp(min=0), min(t, CHECKED)
    zeros, plain = rows_or_zeros(table, ids[:n]).double(), table[first[:n]].double()
    exact = {"rtol": 0.0, "atol": 0.0}
    return {COMPILED: (lambda: compiled(rows_or_zeros)(table, ids), lambda out: (out[:n], zeros), exact),
            "torch's embedding": (lambda: F.embedding(first, table), lambda out: (out[:n], plain), exact)}


ROPE_WORDS = ["rotary_dim=0", "interleaved=0", f"theta={THETA:.0f}", "llama31_factor=1"]
CACHE_WORDS = [f"batch={BATCH}", f"heads_kv={HEADS_KV}", f"head_dim={HEAD_DIM}", f"page_size={PAGE_SIZE}"]


class Job:
    """Ops that one `quern bench` times: {op: what makes its peers' calls}, words alike for all, a word of the width and one of the tokens, and those."""

    def __init__(self, section, ops, width_word, width, counts, words=(), form="", count_word="tokens"):
        self.section, self.ops, self.width_word, self.width, self.counts = section, ops, width_word, width, counts
        self.words, self.form, self.count_word = list(words), form, count_word

    def label(self, op):
        return op + self.form

    def all_words(self):
        width = [f"{self.width_word}={self.width}"] if self.width_word else []
        return [f"{self.count_word}={','.join(map(str, self.counts))}", *width, *self.words]


NORMS = {"norm.rms_norm": peers_of_rms_norm, "norm.fused_add_rms_norm": peers_of_fused_add, "norm.layer_norm": peers_of_layer_norm}
ACTIVATIONS = {"activation.silu_and_mul": peers_of_activation(silu_formula, F.silu, "silu_and_mul"),
               "activation.gelu_tanh_and_mul": peers_of_activation(gelu_formula, lambda g: F.gelu(g, approximate="tanh"), "gelu_tanh_and_mul")}
GROUPS = {"quant.per_token_group": peers_of_groups}
ROWS_OF_SCALES = ["mn_major=0"]  # as torch's formula writes them
FUSED, ALONE = "rope.rope_append_paged", ("rope.rope_inplace", "kv_cache.append_paged")


def named_jobs():
    rope_tokens = [1, 64, 256, 4096, 16384]
    return [
        Job("norm", NORMS, "hidden", 4096, [1, 64, 8192, 65536]),
        Job("norm", NORMS, "hidden", 8192, [256, 16384]),
        Job("norm", {"norm.rms_norm": peers_of_rms_by_row}, "hidden", 4096, [1, 64, 16384], ["fp8=3"], ", FP8 by row"),
        Job("norm", {"norm.fused_add_rms_norm": peers_of_fused_add_by_group}, "hidden", 7168, [1, 64, 16384], ["fp8=2"], ", FP8 by 128"),
        Job("activation", ACTIVATIONS, "intermediate", 14336, [1, 64, 4096, 16384]),
        Job("activation", {"activation.silu_and_mul": peers_of_silu_by_group}, "intermediate", 14336, [1, 64, 16384], ["fp8=2"], ", FP8 by 128"),
        Job("rope", {"rope.rope_inplace": peers_of_rope}, None, HEADS, [*rope_tokens, 65536], [f"heads_q={HEADS}", f"heads_kv={HEADS_KV}", f"head_dim={HEAD_DIM}", *ROPE_WORDS, "scale=1", f"positions={MOST_POSITIONS}"]),
        Job("rope", {"kv_cache.append_paged": peers_of_append}, None, HEADS_KV, [*rope_tokens, 65536], CACHE_WORDS),
        Job("rope", {FUSED: peers_of_rope_append}, None, HEADS, rope_tokens, [f"heads_q={HEADS}", *CACHE_WORDS, *ROPE_WORDS]),
        Job("quant", GROUPS, "k", 7168, [1, 64, 4096, 16384], ROWS_OF_SCALES, count_word="m"),
        Job("quant", {"quant.per_tensor": peers_of_static}, "k", 7168, [1, 4096, 16384], ["static_scale.present=1"], ", static scale", "m"),
        Job("quant", {"quant.per_tensor": peers_of_dynamic}, "k", 7168, [1, 1024, 16384], ["static_scale.present=0"], ", own scale", "m"),
        Job("gather", {"elementwise.gather_rows": peers_of_gather}, "hidden", 4096, [1, 64, 4096, 16384], [f"rows={TABLE_ROWS}", "scale=1"])]


def random_jobs(seed, count):
    """Shapes of one kind and width share a job."""
    kinds = {"norm": (NORMS, "hidden", HIDDEN, 8, [], "tokens"), "activation": (ACTIVATIONS, "intermediate", INTERMEDIATE, 6, [], "tokens"), "quant": (GROUPS, "k", [h for h in HIDDEN if h % 128 == 0], 4, ROWS_OF_SCALES, "m")}
    rng, counts, drawn = random.Random(seed), {}, 0
    while drawn < count:
        kind = rng.choice(["norm", "norm", "activation", "quant"])
        width, tokens = rng.choice(kinds[kind][2]), max(1, round(math.exp(rng.uniform(0, math.log(65536)))))
        if tokens in counts.get((kind, width), []) or tokens * width * kinds[kind][3] > MOST_OPERAND_BYTES:
            continue
        counts.setdefault((kind, width), []).append(tokens)
        drawn += 1
    return [Job(kind, kinds[kind][0], kinds[kind][1], width, sorted(tokens), kinds[kind][4], count_word=kinds[kind][5]) for (kind, width), tokens in sorted(counts.items())]


def peer_times(job, op, tokens, compare):
    """{name: Times} of the op's peers, whose results are compared the first time."""
    what = f"{job.label(op)} {tokens} x {job.width}"
    peers = job.ops[op](tokens, job.width)
    calls = {}
    for name, (call, results, bounds) in peers.items():
        compared = []

        def look(call=call, results=results, bounds=bounds, name=name, compared=compared):
            out = call()
            if compare and not compared:
                compared.append(True)
                got, want = results(out)
                must_be_close(got, want, f"{what}: {name}", **bounds)

        if working({name: look}, what):
            calls[name] = call
    return kernel_us(calls)


class Shape:
    """What was measured of one label, number of tokens and width."""

    def __init__(self, label, tokens, width):
        self.label, self.tokens, self.width = label, tokens, width
        self.us, self.kernels, self.bytes, self.copy_us = {}, {}, 0.0, 0.0

    def add(self, by, us, kernels):
        self.us.setdefault(by, []).append(us)
        self.kernels[by] = kernels

    def median(self, by):
        return statistics.median(self.us[by])

    def best(self):
        """The best peer's name and median; quern's own launches beside its fused one are none."""
        peers = [by for by in self.us if not by.startswith("quern")]
        return min(((by, self.median(by)) for by in peers), key=lambda x: x[1], default=(None, math.nan))

    def line(self):
        by, us = self.best()
        text = "  ".join(f"{name} {spread(times)}" for name, times in self.us.items())
        share = f"  of copy {self.copy_us / self.median('quern'):.3f}" if self.bytes > MANY_BYTES and self.copy_us else ""
        beside = f"  {by} / quern {us / self.median('quern'):.3f}" if by else ""
        return f"{self.label} {self.tokens} x {self.width}: {text}{beside}{share}"


def measure(job, shapes, turn):
    for op in job.ops:
        for tokens in job.counts:
            shape = shapes.setdefault((job.label(op), tokens, job.width), Shape(job.label(op), tokens, job.width))
            for by, times in peer_times(job, op, tokens, turn == 0).items():
                shape.add(by, times.median, times.kernels)
                if turn == 0 and by == COMPILED and times.kernels > 2:
                    print(f"{shape.label} {tokens} x {job.width}: torch.compile makes {times.kernels:.0f} kernels", flush=True)
            torch.cuda.empty_cache()


def measure_quern(job, shapes, command, budget):
    for row in quern_bench(command, list(job.ops), job.all_words(), budget):
        shape = shapes[job.label(row["op"]), int(row["words"][job.count_word]), job.width]
        shape.add("quern", float(row["median_us"]), row["kernel"].count("<"))
        shape.bytes, shape.copy_us = float(row["bytes"] or 0), float(row["copy_us"] or 0)


def add_separate_launches(shapes):
    """Beside the fused op: quern's two launches, each as it was timed alone."""
    alone = [{tokens: shape for (label, tokens, _), shape in shapes.items() if label == op} for op in ALONE]
    for (label, tokens, _), shape in shapes.items():
        if label == FUSED and all(tokens in of for of in alone):
            for a, b in zip(alone[0][tokens].us["quern"], alone[1][tokens].us["quern"]):
                shape.add("quern, two launches", a + b, 2)


def print_summary(shapes):
    labels = list(dict.fromkeys(shape.label for shape in shapes))
    for label in labels:
        mine = [s for s in shapes if s.label == label]
        ratios = [(s.best()[1] / s.median("quern"), s) for s in mine if s.best()[0]]
        if ratios:
            least, at = min(ratios, key=lambda r: r[0])
            print(f"{label}: best peer / quern {geomean([r for r, _ in ratios]):.3f} geomean, {least:.3f} least ({at.best()[0]} at {at.tokens} x {at.width}) of {len(ratios)}")
        short = [(s.median("quern") - s.best()[1], s) for s in mine if s.best()[0] and s.best()[1] < SHORT_US]
        if short:
            behind, at = max(short, key=lambda b: b[0])
            print(f"{label}: where the best peer takes under {SHORT_US:.0f} us, quern takes at most {behind:+.2f} us more ({at.tokens} x {at.width}) of {len(short)}: {'within' if behind <= MOST_BEHIND_US else 'MISSES'} {MOST_BEHIND_US} us")
        many = [s for s in mine if s.bytes > MANY_BYTES and s.copy_us]
        if many:
            print(f"{label}: share of the copy's rate where over 256 MB move: quern {geomean([s.copy_us / s.median('quern') for s in many]):.3f} geomean, {min(s.copy_us / s.median('quern') for s in many):.3f} least; "
                  f"best peer {geomean([s.copy_us / s.best()[1] for s in many if s.best()[0]] or [math.nan]):.3f} geomean of {len(many)}")
    for label in [FUSED] if FUSED in labels else []:
        for name in ("quern, two launches", "FlashInfer, two launches"):
            ratios = [s.median(name) / s.median("quern") for s in shapes if s.label == label and name in s.us]
            if ratios:
                print(f"{label}: {name} / quern {geomean(ratios):.3f} geomean, {min(ratios):.3f} least of {len(ratios)}")


def csv_rows(shapes):
    rows = []
    for s in shapes:
        for by, us in s.us.items():
            median = s.median(by)
            rows.append(dict(op=s.label, tokens=s.tokens, width=s.width, by=by, median_us=f"{median:.3f}", min_us=f"{min(us):.3f}", max_us=f"{max(us):.3f}", turns=len(us), kernels=f"{s.kernels[by]:g}",
                             times_quern=f"{median / s.median('quern'):.3f}", bytes=f"{s.bytes:.0f}", gbps=f"{s.bytes / median / 1e3:.0f}", copy_us=f"{s.copy_us:.3f}", share_of_copy=f"{s.copy_us / median:.3f}" if s.copy_us else ""))
    return rows


def main():
    global fi, quack_rmsnorm
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("quern")
    parser.add_argument("--csv")
    parser.add_argument("--section", default="norm,activation,rope,quant,gather")
    parser.add_argument("--seed", default="0")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--budget", type=float, default=20, help="milliseconds of timed runs of a case by `quern bench`")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    fi = flashinfer_or_none()
    try:
        from quack.rmsnorm import rmsnorm_fwd as quack_rmsnorm
    except Exception as e:  # noqa: BLE001  whatever its import needs
        print(f"quack is absent: {type(e).__name__} {(str(e).splitlines() or [''])[0][:160]}")
    compile_without_limit()
    torch.manual_seed(int(options.seed, 16))
    sections = options.section.split(",")
    jobs = [job for job in (random_jobs(int(options.seed, 16), options.random) if options.random else named_jobs()) if job.section in sections]
    shapes = {}
    stop_at_sigterm()
    try:
        for section in dict.fromkeys(job.section for job in jobs):
            start, mine = time.perf_counter(), {}
            for turn in range(options.turns):
                for job in jobs:
                    if job.section == section:
                        measure(job, mine, turn)
                        measure_quern(job, mine, options.quern, options.budget)
            add_separate_launches(mine)
            for shape in mine.values():
                print(shape.line())
            print(f"{section}: {time.perf_counter() - start:.0f} s", flush=True)
            shapes.update(mine)
            write_csv(options.csv, csv_rows(shapes.values()))
    finally:  # of the sections that were measured to their end
        print_summary(list(shapes.values()))


if __name__ == "__main__":
    main()
