# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention in double of one request, written down from its definition."""
import torch


def attention(q, k, v, scale, causal=True, left=-1, right=-1, cap=0.0, sinks=None, slopes=None):
    """(out [queries, heads, dim], what each element's error is relative to: sum p |v|) of q [queries, heads, dim] over k, v [keys, heads_kv, dim]. The last query stands at the last key."""
    q, k, v = q.double(), k.double(), v.double()
    queries, heads, _ = q.shape
    keys, group = k.shape[0], heads // k.shape[1]
    at, key = torch.arange(queries)[:, None] + keys - queries, torch.arange(keys)[None]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    if causal:
        seen &= key <= at
    if left >= 0:
        seen &= at - key <= left
    if right >= 0:
        seen &= key - at <= right
    out, magnitude = torch.zeros_like(q), torch.zeros_like(q)
    for h in range(heads):
        logits = scale * (q[:, h] @ k[:, h // group].T)
        if cap:
            logits = cap * torch.tanh(logits / cap)
        if slopes is not None:
            logits = logits - slopes[h] * (at - key).abs()
        logits = logits.masked_fill(~seen, -torch.inf)
        if sinks is not None:
            logits = torch.cat((logits, sinks[h].double().expand(queries, 1)), 1)
        p = torch.softmax(logits, 1)[:, :keys]
        out[:, h], magnitude[:, h] = p @ v[:, h // group], p @ v[:, h // group].abs()
    return out, magnitude


def assert_near(got, expected, magnitude, dtype):
    """The result and each probability are rounded once to 16 bits, and logits are sums in f32 (errors of 2^-13 of a probability)."""
    unit = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11}[dtype]
    bound = unit * expected.abs() + (unit + 2.0**-13) * magnitude + 2.0**-18
    wrong = ((got.double() - expected).abs() - bound).max()
    assert not got.isnan().any() and wrong <= 0, f"beyond the bound by {wrong}, the largest of which is {bound.max()}"
