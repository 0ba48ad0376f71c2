# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Queries and caches of a step, for the tests of FlashInfer's attention, and what attention is in double."""
import math

import torch

import places
from products import randn

BF16, E4M3 = torch.bfloat16, torch.float8_e4m3fn
HEADS, KV_HEADS, DIM, PAGE = 4, 2, 32, 4
PAGES = [[6, 1, 8, 0], [], [3, 5], [2, 7, 4]]  # of each request: one has no keys
LENGTHS = [14, 0, 7, 9]
QUERIES = [3, 0, 7, 1]  # and no queries


def integers(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=places.TORCH)


def ends(lengths):
    return [sum(lengths[:i]) for i in range(len(lengths) + 1)]


def truth(q, k, v, causal=False, window_left=-1, soft_cap=0.0, sm_scale=None, mask=None, sink=None, v_scale=1.0):
    """(out, log2 of the sum of exp) of one request in double: q [n, heads, dim], k and v [length, heads_kv, dim]. A mask stands in the place of causality."""
    q, k, v = (t.double().cpu() for t in (q, k, v))
    n, length, group = q.size(0), k.size(0), q.size(1) // k.size(1)
    logits = torch.einsum("nhd,lhd->hnl", q, k.repeat_interleave(group, 1)) * (1 / math.sqrt(q.size(2)) if sm_scale is None else sm_scale)
    if soft_cap:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    position, key = torch.arange(length - n, length)[:, None], torch.arange(length)[None]
    visible = torch.ones(n, length, dtype=torch.bool)
    if mask is not None:
        visible &= mask.cpu()
    elif causal:
        visible &= key <= position
    if window_left >= 0:
        visible &= position - key <= window_left
    weights = torch.where(visible, logits, -torch.inf).exp()
    total = weights.sum(-1)
    if sink is not None:
        total = total + sink.double().cpu().exp()[:, None]
    out = torch.einsum("hnl,lhd->nhd", weights / torch.where(total > 0, total, 1)[..., None], v.repeat_interleave(group, 1)) * v_scale
    return out, torch.log2(total).T


def near(got, expected, tolerance=2**-7):
    """Two roundings to bf16: of probabilities and of the result. A log-sum-exp is near 1 % of that."""
    assert got.shape == expected.shape
    got = got.double().cpu()
    assert torch.equal(got.isinf(), expected.isinf())
    error = torch.where(expected.isinf(), 0, got - expected).abs() / (1 + torch.where(expected.isinf(), 0, expected).abs())
    assert error.numel() == 0 or error.max() <= tolerance, f"off by {error.max()}"


class Step:
    """Queries and a cache of a step."""

    def __init__(self, queries=QUERIES, dtype=BF16, kv_dtype=None, layout="NHD", combined=False):
        self.queries, self.layout = queries, layout
        self.q = randn(sum(queries), HEADS, DIM, dtype=dtype)
        cache = randn(9, 2, PAGE, KV_HEADS, DIM, seed=2).to(kv_dtype or dtype)
        self.values = cache.float()
        shown = cache if layout == "NHD" else cache.view(torch.uint8 if cache.element_size() == 1 else torch.int16).transpose(2, 3).contiguous().view(cache.dtype)
        self.cache = shown if combined else (shown[:, 0], shown[:, 1])
        self.indptr, self.indices = ends([len(p) for p in PAGES]), sum(PAGES, [])
        self.last = [(n - 1) % PAGE + 1 if n else 0 for n in LENGTHS]
        self.qo_indptr = ends(queries)

    def tables(self):
        return integers(self.indptr), integers(self.indices), integers(self.last)

    def dense(self):
        width = max(map(len, PAGES))
        return integers([p + [0] * (width - len(p)) for p in PAGES])

    def request(self, b):
        """(q, k, v) of a request."""
        pages = self.values[PAGES[b]] if PAGES[b] else self.values[:0]
        k, v = (pages[:, i].reshape(-1, KV_HEADS, DIM)[:LENGTHS[b]] for i in (0, 1))
        return self.q[self.qo_indptr[b]:self.qo_indptr[b + 1]], k, v

    def truth(self, masks=None, **options):
        parts = [truth(*self.request(b), mask=None if masks is None else masks[b], **options) for b in range(len(PAGES))]
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])


def workspace():
    return torch.empty(1 << 22, dtype=torch.uint8, device=places.TORCH)


def packed(masks):
    """Bits of each request from a byte on, little-endian."""
    data = []
    for mask in masks:
        bits = mask.flatten().int().tolist()
        data += [sum(bit << i for i, bit in enumerate(bits[at:at + 8])) for at in range(0, len(bits), 8)]
    return integers(data, torch.uint8)


def masks_of(queries, lengths):
    """Of each request [queries, keys]; each query sees a key. They break causality."""
    masks = [torch.rand(n, length, generator=torch.Generator().manual_seed(b)) < 0.6 for b, (n, length) in enumerate(zip(queries, lengths))]
    for mask in masks:
        mask[:, -1:] = True
    return masks
