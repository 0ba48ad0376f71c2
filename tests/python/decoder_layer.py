# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""A decode step of a small decoder layer of quern's ops, as a CUDA graph captures it, and its reference in double."""
import math

import places
import torch
from products import product

import quern

ROUNDING = 2**-8  # to bf16, relative


class Layer:
    """Every tensor of a step, each allocated once: a graph has their addresses. A tensor for each result, so that all can be judged; of what the next
    op updates in place, a copy."""

    BATCH, HIDDEN, HEADS, HEADS_KV, DIM, INTERMEDIATE, PAGE, PAGES = 4, 512, 8, 2, 64, 1024, 16, 64
    CAPACITY = PAGE * PAGES // BATCH  # tokens of a request

    def __init__(self):
        generator = torch.Generator().manual_seed(7)
        weight = lambda *shape: (torch.randn(*shape, generator=generator) * 0.05).to(torch.bfloat16).to(places.TORCH)  # noqa: E731
        b, width, kv = self.BATCH, self.HEADS * self.DIM, self.HEADS_KV * self.DIM
        self.norms = [torch.randn(self.HIDDEN, generator=generator).to(torch.bfloat16).to(places.TORCH) for _ in range(2)]
        self.w_qkv, self.w_out = weight(width + 2 * kv, self.HIDDEN), weight(self.HIDDEN, width)
        self.w_up, self.w_down = weight(2 * self.INTERMEDIATE, self.HIDDEN), weight(self.HIDDEN, self.INTERMEDIATE)
        empty = lambda *shape, dtype=torch.bfloat16: torch.empty(*shape, dtype=dtype, device=places.TORCH)  # noqa: E731
        self.x, self.residual = empty(b, self.HIDDEN), empty(b, self.HIDDEN)
        self.k_cache, self.v_cache = (empty(self.PAGES, self.PAGE, self.HEADS_KV, self.DIM) for _ in range(2))
        self.requests, self.positions, self.seq_lens = (empty(b, dtype=torch.int32) for _ in range(3))
        self.page_table = empty(b, self.PAGES // b, dtype=torch.int32)
        self.results = {"sum": empty(b, self.HIDDEN), "normed": empty(b, self.HIDDEN), "qkv": empty(b, width + 2 * kv), "rotated": empty(b, width + 2 * kv),
                        "attention": empty(b, width), "projected": empty(b, self.HIDDEN), "normed_mlp": empty(b, self.HIDDEN),
                        "up": empty(b, 2 * self.INTERMEDIATE), "gated": empty(b, self.INTERMEDIATE), "down": empty(b, self.HIDDEN)}
        # The pool of the device cannot allocate while a stream captures.
        self.workspace = empty(64 << 20, dtype=torch.uint8)
        self.set(self.state(7, [3, 40, 100, 255]))

    def inputs(self):
        return [self.x, self.residual, self.k_cache, self.v_cache, self.requests, self.positions, self.seq_lens, self.page_table]

    def written(self):
        return [*self.results.values(), self.residual, self.k_cache, self.v_cache]

    def state(self, seed, positions):
        """Values of inputs() on the host: random ones, and NaN wherever a cache holds nothing yet that the step may read. `positions`: of the
        requests' new tokens; None where there is no request, as in a captured batch that is not full."""
        generator = torch.Generator().manual_seed(seed)
        bf16 = lambda *shape: torch.randn(*shape, generator=generator).to(torch.bfloat16)  # noqa: E731
        x, residual = bf16(self.BATCH, self.HIDDEN), bf16(self.BATCH, self.HIDDEN)
        caches = [bf16(*self.k_cache.shape), bf16(*self.v_cache.shape)]
        table = torch.randperm(self.PAGES, generator=generator).view(self.BATCH, -1)
        at = torch.tensor([p or 0 for p in positions])
        token = torch.arange(self.CAPACITY)
        slots = table[:, token // self.PAGE] * self.PAGE + token % self.PAGE
        for cache in caches:
            cache.view(-1, self.HEADS_KV, self.DIM)[slots[token >= at[:, None]]] = float("nan")
        live = torch.tensor([p is not None for p in positions])
        requests = torch.where(live, torch.arange(self.BATCH), -1)
        return [x, residual, *caches, *(t.to(torch.int32) for t in (requests, at, torch.where(live, at + 1, 0), table))]

    def set(self, state):
        """The inputs, into the memory that a graph knows; results and workspace are poisoned."""
        for tensor in self.results.values():
            tensor.fill_(float("nan"))
        self.workspace.fill_(255)
        for tensor, given in zip(self.inputs(), state):
            tensor.copy_(given)

    def run(self):
        b, width, kv, r = self.BATCH, self.HEADS * self.DIM, self.HEADS_KV * self.DIM, self.results
        quern.norm.fused_add_rms_norm(self.x, self.residual, self.norms[0], out=r["normed"])
        r["sum"].copy_(self.residual)
        quern.gemm.dense(r["normed"], self.w_qkv, out=r["qkv"], workspace=self.workspace)
        r["rotated"].copy_(r["qkv"])
        q, k, v = (t.view(b, -1, self.DIM) for t in r["rotated"].split([width, kv, kv], 1))
        quern.rope.rope_inplace(q, k, self.positions)
        quern.kv_cache.append_paged(k, v, self.k_cache, self.v_cache, self.requests, self.positions, page_table=self.page_table)
        quern.attention.paged(q, self.k_cache, self.v_cache, page_table=self.page_table, seq_lens=self.seq_lens,
                                     out=r["attention"].view(b, -1, self.DIM), workspace=self.workspace)
        quern.gemm.dense(r["attention"], self.w_out, out=r["projected"], workspace=self.workspace)
        quern.norm.fused_add_rms_norm(r["projected"], self.residual, self.norms[1], out=r["normed_mlp"])
        quern.gemm.dense(r["normed_mlp"], self.w_up, out=r["up"], workspace=self.workspace)
        quern.activation.silu_and_mul(r["up"], out=r["gated"])
        quern.gemm.dense(r["gated"], self.w_down, out=r["down"], workspace=self.workspace)


def add_and_norm(x, residual, weight, settle, names):
    """(sum, its norm). The sum is rounded to f32 and, for the residual alone, to bf16; the sum of squares and rsqrt are within 2^-19."""
    total, size = x + residual, 2**-24 * (x.abs() + residual.abs())
    scale = weight / torch.sqrt(total.square().mean(1, keepdim=True) + 1e-6)
    normed = total * scale
    return settle(names[0], total, ROUNDING * total.abs() + size), settle(names[1], normed, (ROUNDING + 2**-19) * normed.abs() + size * scale.abs())


def rotated(heads, positions):
    """(heads turned by their positions, tolerance): pairs (i, i + DIM / 2). One rounding; sines are within 2^-19 of the terms."""
    half = heads.size(-1) // 2
    angle = positions.view(-1, 1, 1) * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    a, b = heads.split(half, -1)
    turned = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], -1)
    return turned, ROUNDING * turned.abs() + 2**-19 * (a.abs() + b.abs()).repeat(1, 1, 2)


def attended(q, k_cache, v_cache, table, lengths):
    """(attention, tolerance): one rounding of each probability and one of the result; logits are within 2^-13 in all."""
    out, magnitude = torch.zeros_like(q), torch.zeros_like(q)
    page_size, group = k_cache.size(1), q.size(1) // k_cache.size(2)
    for b, length in enumerate(lengths.tolist()):
        token = torch.arange(length)
        k, v = (c[table[b, token // page_size], token % page_size].double().repeat_interleave(group, 1) for c in (k_cache, v_cache))
        p = torch.softmax(torch.einsum("hd,jhd->hj", q[b], k) / math.sqrt(q.size(-1)), -1)
        out[b], magnitude[b] = torch.einsum("hj,jhd->hd", p, v), torch.einsum("hj,jhd->hd", p, v.abs())
    return out, ROUNDING * out.abs() + (ROUNDING + 2**-13) * magnitude + 2**-18


def follow(layer, state, settle):
    """The step in double. settle(name, expected, tolerance) has each result, and what it returns is what the results behind it are made of.
    Returns the caches."""
    x, residual, k_cache, v_cache, requests, positions, lengths, table = (t.clone() for t in state)
    weights = lambda name: getattr(layer, name).cpu()  # noqa: E731
    b, width, kv = layer.BATCH, layer.HEADS * layer.DIM, layer.HEADS_KV * layer.DIM
    norms = [w.cpu().double() for w in layer.norms]
    residual, normed = add_and_norm(x.double(), residual.double(), norms[0], settle, ("sum", "normed"))
    qkv = settle("qkv", *product(normed, weights("w_qkv"), torch.bfloat16))
    q, k, v = (t.view(b, -1, layer.DIM) for t in qkv.split([width, kv, kv], 1))
    (q, of_q), (k, of_k) = rotated(q, positions), rotated(k, positions)
    flat = lambda *parts: torch.cat([t.reshape(b, -1) for t in parts], 1)  # noqa: E731
    q, k, v = (t.view(b, -1, layer.DIM) for t in settle("rotated", flat(q, k, v), flat(of_q, of_k, v * 0)).split([width, kv, kv], 1))
    live = requests >= 0
    place = table[requests[live], positions[live] // layer.PAGE], positions[live] % layer.PAGE
    k_cache[place], v_cache[place] = k[live].to(torch.bfloat16), v[live].to(torch.bfloat16)
    attention, tolerance = attended(q, k_cache, v_cache, table, lengths)
    attention = settle("attention", flat(attention), flat(tolerance))
    projected = settle("projected", *product(attention, weights("w_out"), torch.bfloat16))
    _, normed = add_and_norm(projected, residual, norms[1], settle, ("residual", "normed_mlp"))
    up = settle("up", *product(normed, weights("w_up"), torch.bfloat16))
    gate, up = up.split(layer.INTERMEDIATE, 1)
    gated = gate / (1 + torch.exp(-gate)) * up
    gated = settle("gated", gated, (ROUNDING + 2**-18) * gated.abs())
    settle("down", *product(gated, weights("w_down"), torch.bfloat16))
    return k_cache, v_cache


def bits(tensor):
    return tensor.cpu().view(torch.int16)


def judge(layer, state):
    """What a step from `state` left in the layer. Each result against double of the stored results that it is made of, element by element, and the
    caches bit by bit: everything that the step should not write is as it was. Then the ends against the whole step in double, rounded to bf16 where
    the layer rounds. Up to the attention hardly a rounding falls to the other side; it rounds each probability, and from there on those of the seven
    results may be any two: ROUNDING / sqrt(3) each in the mean square, added in quadrature, as the layer passes each on with a gain of about one."""
    stored = {name: t.cpu().double() for name, t in {**layer.results, "residual": layer.residual}.items()}

    def against_stored(name, expected, tolerance):
        worst = ((stored[name] - expected).abs() / (tolerance + 1e-30)).max()
        assert worst <= 1, f"{name}: {worst} times the tolerance"  # NaN is not
        return stored[name]

    for name, expected in zip(("k_cache", "v_cache"), follow(layer, state, against_stored)):
        assert torch.equal(bits(getattr(layer, name)), bits(expected)), name
    mirrored = {}
    follow(layer, state, lambda name, expected, _: mirrored.setdefault(name, expected.to(torch.bfloat16).double()))
    for name in ("down", "residual"):
        error = ((stored[name] - mirrored[name]).norm() / mirrored[name].norm()).item()
        assert error <= ROUNDING * math.sqrt(2 * 7 / 3), f"{name}: relative error {error}"
