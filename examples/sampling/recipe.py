#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What sampling.sample draws, once more, from docs/sampling.md: with fractions and integers of Python, and nothing of quern."""
from fractions import Fraction
from math import ceil

WINDOW, GREEDY = 60, Fraction(float.fromhex("0x1.4f8b58p-17"))  # 1e-5 as f32
LOG2E = [Fraction(float.fromhex(c)) for c in ("0x1.715476p+0", "0x1.4ae0cp-26")]
POWERS = [Fraction(float.fromhex(c)) for c in ("0x1.4bccecp-13", "0x1.5fc2fep-10", "0x1.3b21c6p-7", "0x1.c6ada8p-5", "0x1.ebfbe6p-3", "0x1.62e432p-1", "1")]


def exponent(x):
    """floor(log2(|x|))"""
    e = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return e if abs(x) >= Fraction(2) ** e else e - 1


def f32(x):
    """Rounded to f32: to nearest, ties to even."""
    x = Fraction(x)
    if x == 0:
        return x
    unit = Fraction(2) ** (max(exponent(x), -126) - 23)
    return round(x / unit) * unit


def fma(a, b, c):
    return f32(a * b + c)


def weight(logit, temperature):
    """2^(logit * log2(e) / temperature) as an integer of 24 bits and an exponent: mantissa * 2^(exponent - 23)."""
    high = f32(LOG2E[0] / temperature)
    low = f32(fma(fma(-high, temperature, LOG2E[0]), 1, LOG2E[1]) / temperature)
    x = fma(logit, high, 0)
    if abs(x) >= 1 << 28:
        return 1 << 23, (1 << 29) * (1 if x > 0 else -1)
    whole = round(x)  # of a fraction: to nearest, ties to even
    fraction = fma(logit, low, fma(logit, high, -whole))
    if abs(fraction) > Fraction(1, 2):
        more = round(fraction)
        whole, fraction = whole + more, fma(more, -1, fraction)
    power = POWERS[0]
    for coefficient in POWERS[1:]:
        power = fma(power, fraction, coefficient)
    e = exponent(power)
    return int(power * Fraction(2) ** (23 - e)), whole + e


def philox(counter, key):
    """Philox4x32-10."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def sample(logits, temperature=1, top_k=0, top_p=1, min_p=0, seed=0, offset=0, row=0):
    """The token of a row of finite logits. All numbers are such as f32 holds; row is 0 where seeds are a tensor."""
    order = sorted(range(len(logits)), key=lambda i: (-logits[i], i))
    if temperature < GREEDY:
        return order[0]
    weights = [weight(Fraction(x), Fraction(temperature)) for x in logits]
    top = weights[order[0]][1]
    mass = [m << e - top + WINDOW if e - top + WINDOW >= 0 else 0 for m, e in weights]
    kept = order[:top_k] if 0 < top_k < len(logits) else order
    if top_p < 1:
        share, total, count = max(1, ceil(Fraction(top_p) * sum(mass[i] for i in kept))), 0, 0
        while total < share:
            total, count = total + mass[kept[count]], count + 1
        kept = kept[:count]
    if min_p > 0:
        least = max(1, ceil(Fraction(min_p) * mass[order[0]]))
        kept = [i for i in kept if mass[i] >= least]
    words = philox((offset & 0xFFFFFFFF, offset >> 32, row, 0), (seed & 0xFFFFFFFF, seed >> 32))
    wanted = (words[1] << 32 | words[0]) * sum(mass[i] for i in kept) >> 64
    for i in sorted(kept):
        if wanted < mass[i]:
            return i
        wanted -= mass[i]


if __name__ == "__main__":
    row = [(i * 7919 % 1000 - 500) / 128 for i in range(300)]
    print("plain  ", *(sample(row, seed=42, row=r) for r in range(12)))
    print("filters", *(sample(row, Fraction(float.fromhex("0x1.99999ap-1")), 40, 0.875, 0.0625, seed=1 << 40 | 7, offset=r) for r in range(12)))
