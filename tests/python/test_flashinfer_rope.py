# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's RoPE, each function called with its exact keywords; results beside torch in double."""
import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

pytestmark = pytest.mark.anywhere
BF16 = torch.bfloat16
INDPTR, OFFSETS = [0, 3, 3, 7], [5, 9, 1000]
POSITIONS = [5, 6, 7, 1000, 1001, 1002, 1003]


def integers(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=places.TORCH)


def angles(positions, rotary_dim, theta=1e4, scale=1.0, llama=None):
    """[tokens, rotary_dim / 2] in double."""
    frequency = theta ** (-torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim) / scale
    if llama:
        factor, low, high, old = llama
        ratio = old * frequency / (2 * math.pi)
        share = ((ratio - low) / (high - low)).clamp(0, 1)
        frequency = (1 - share) * frequency / factor + share * frequency
    return torch.tensor(positions, dtype=torch.float64)[:, None] * frequency


def rotated(x, angle, interleave, part=None):
    """x in double, of which the first 2 * pairs elements of a head are rotated."""
    x, pairs = x.double().cpu().clone(), angle.size(1)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]
    first, second = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2)) if interleave else (slice(0, pairs), slice(pairs, 2 * pairs))
    a, b = x[..., first].clone(), x[..., second].clone()
    x[..., first], x[..., second] = a * cos - b * sin, b * cos + a * sin
    return x


def near(got, expected, of_value=2**-8):
    worst = ((got.double().cpu() - expected).abs() / (of_value * expected.abs() + 4e-3)).max()
    assert got.shape == expected.shape and worst <= 1, f"{worst} times the tolerance"


def check(fi, name, expected_angles, rotary_dim, interleave, **keywords):
    """Both forms of positions, new tensors and in place."""
    for by_ids, inplace in ((True, True), (True, False), (False, True), (False, False)):
        function = getattr(fi, name + ("_pos_ids" if by_ids else "") + ("_inplace" if inplace else ""))
        positions = {"pos_ids": integers(POSITIONS)} if by_ids else {"indptr": integers(INDPTR), "offsets": integers(OFFSETS, torch.int64)}
        q, k = randn(7, 4, 64, dtype=BF16), randn(7, 5, 64, seed=2, dtype=BF16)[:, 1:3]
        want = [rotated(t, expected_angles, interleave) for t in (q, k)]
        result = function(q=q, k=k, **positions, rotary_dim=rotary_dim, interleave=interleave, **keywords)
        if inplace:
            assert result is None
        else:
            assert torch.equal(q, randn(7, 4, 64, dtype=BF16)), "the input stays"
        for got, expected in zip((q, k) if inplace else result, want):
            near(got, expected)


@pytest.mark.parametrize("rotary_dim, interleave", [(None, False), (32, True)])
def test_theta(fi, rotary_dim, interleave):
    check(fi, "apply_rope", angles(POSITIONS, rotary_dim or 64, 5e4, 2.0), rotary_dim, interleave, rope_scale=2.0, rope_theta=5e4)


@pytest.mark.parametrize("rotary_dim, interleave", [(None, True), (32, False)])
def test_llama31(fi, rotary_dim, interleave):
    check(fi, "apply_llama31_rope", angles(POSITIONS, rotary_dim or 64, 5e5, llama=(8, 1, 4, 512)), rotary_dim, interleave, rope_scale=8, rope_theta=5e5, low_freq_factor=1,
          high_freq_factor=4, old_context_len=512)


def table(rotary_dim, rows=1004):
    angle = angles(list(range(rows)), rotary_dim)
    return angle, torch.cat([angle.cos(), angle.sin()], 1).float().to(places.TORCH)


@pytest.mark.parametrize("rotary_dim, is_neox", [(64, True), (32, False)])
def test_table(fi, rotary_dim, is_neox):
    angle, cache = table(rotary_dim)
    q, k = randn(7, 4 * 64, dtype=BF16), randn(7, 200, seed=2, dtype=BF16)[:, 8:136]
    want = [rotated(t.unflatten(1, (-1, 64)), angle[POSITIONS], not is_neox).flatten(1) for t in (q, k)]
    result = fi.apply_rope_with_cos_sin_cache(positions=integers(POSITIONS, torch.int64), query=q, key=k, head_size=64, cos_sin_cache=cache, is_neox=is_neox)
    for got, expected in zip(result, want):
        near(got, expected)
    assert fi.apply_rope_with_cos_sin_cache_inplace(positions=integers(POSITIONS), query=q, key=k, head_size=64, cos_sin_cache=cache, is_neox=is_neox) is None
    for got, expected in zip((q, k), want):
        near(got, expected)
    with pytest.raises(ValueError, match="`query` has 256 columns, expected a multiple of `head_size`, 60"):
        fi.apply_rope_with_cos_sin_cache(integers(POSITIONS), q, k, 60, cache)
    with pytest.raises(TypeError, match="`cos_sin_cache` is float64, expected float32"):
        fi.apply_rope_with_cos_sin_cache(integers(POSITIONS), q, k, 64, cache.double())


@pytest.mark.parametrize("name", ["rope_quantize_fp8", "mla_rope_quantize_fp8"])
def test_quantised(fi, name):
    angle, cache = table(64)
    mla = name.startswith("mla")
    q_rope, q_nope = randn(7, 4, 64, dtype=BF16), randn(7, 4, 32, seed=2, dtype=BF16)
    k_rope, k_nope = (randn(7, 64, seed=3, dtype=BF16), randn(7, 96, seed=4, dtype=BF16)) if mla else (randn(7, 2, 64, seed=3, dtype=BF16), None)
    heads = lambda t: t.unsqueeze(1) if t.dim() == 2 else t  # noqa: E731
    for dtype, eps in ((None, 2**-4), (torch.float8_e5m2, 2**-3)):
        keywords = dict(cos_sin_cache=cache, pos_ids=integers(POSITIONS), is_neox=False, quantize_dtype=dtype, quant_scale_q=4.0, quant_scale_kv=0.5, q_rope_out=None, k_rope_out=None,
                        q_nope_out=None, k_nope_out=None, enable_pdl=False, **({} if mla else {"backend": "cuda"}))
        result = getattr(fi.rope, name)(q_rope=q_rope, k_rope=k_rope, q_nope=q_nope, k_nope=k_nope, **keywords)
        want = (4 * rotated(q_rope, angle[POSITIONS], True), 0.5 * rotated(heads(k_rope), angle[POSITIONS], True), 4 * q_nope.double().cpu(),
                None if k_nope is None else 0.5 * k_nope.double().cpu())
        for got, expected, source in zip(result, want, (q_rope, k_rope, q_nope, k_nope)):
            if source is None:
                assert got is None
                continue
            assert got.dtype == (dtype or torch.float8_e4m3fn) and got.shape == source.shape
            near(heads(got) if source.dim() == 2 else got, heads(expected) if expected.dim() == 2 else expected, of_value=eps)
    out = torch.empty(7, 4, 64, dtype=torch.float8_e4m3fn, device=places.TORCH)
    assert getattr(fi.rope, name)(q_rope, k_rope, q_nope, k_nope, cache, integers(POSITIONS), q_rope_out=out)[0] is out
    assert not hasattr(fi, name)


@pytest.mark.parametrize("layout", ["NHD", "HND", "MLA"])
def test_quantised_append(fi, layout):
    """Places in a cache of FP8: token 3 is of no request, and the rest of the cache stays."""
    angle, table_ = table(64)
    mla, requests, places_ = layout == "MLA", [0, 0, 1, -1, 1, 2, 2], [3, 4, 0, 0, 1, 6, 7]
    indptr, indices = [0, 2, 3, 5], [4, 1, 0, 5, 2]
    q_rope, q_nope = randn(7, 4, 64, dtype=BF16), randn(7, 4, 32, seed=2, dtype=BF16)
    heads = (1,) if mla else (2,)
    k_rope, k_nope = randn(7, *heads, 64, seed=3, dtype=BF16), randn(7, *heads, 32, seed=4, dtype=BF16)
    v = None if mla else randn(7, 2, 96, seed=5, dtype=BF16)
    for dtype, eps in ((torch.float8_e4m3fn, 2**-4), (torch.float8_e5m2, 2**-3)):
        shapes = ((6, 4, 1, 32), (6, 4, 1, 64)) if mla else ((6, 4, 2, 96),) * 2
        caches = [torch.full(shape, 1.5, device=places.TORCH).to(dtype) for shape in shapes]
        given = [c.squeeze(2) for c in caches] if mla else [c.view(torch.uint8).transpose(1, 2).contiguous().view(dtype) if layout == "HND" else c for c in caches]
        squeezed = (lambda t: t.squeeze(1)) if mla else (lambda t: t)
        q_rope_out, q_nope_out = fi.rope.rope_quantize_fp8_append_paged_kv_cache(
            q_rope=q_rope, k_rope=squeezed(k_rope), q_nope=q_nope, k_nope=squeezed(k_nope), v=v, cos_sin_cache=table_, pos_ids=integers(POSITIONS), paged_kv_cache=tuple(given),
            kv_indices=integers(indices), kv_indptr=integers(indptr), batch_indices=integers(requests), positions=integers(places_), is_neox=False, quantize_dtype=dtype, quant_scale_q=4.0,
            quant_scale_kv=0.5, page_size=4, kv_layout="NHD" if mla else layout, q_rope_out=None, q_nope_out=None, enable_pdl=True)
        near(q_rope_out, 4 * rotated(q_rope, angle[POSITIONS], True), of_value=eps), near(q_nope_out, 4 * q_nope.double().cpu(), of_value=eps)
        parts = [0.5 * k_nope.double().cpu(), 0.5 * rotated(k_rope, angle[POSITIONS], True)]
        rows = parts if mla else [torch.cat(parts[::-1], 2), 0.5 * v.double().cpu()]
        for cache, row in zip(given, rows):
            got = (cache.unsqueeze(2) if mla else cache).float().cpu()
            got = got.transpose(1, 2) if layout == "HND" else got
            expected = torch.full(got.shape, 1.5).double()
            for t, (b, position) in enumerate(zip(requests, places_)):
                if b >= 0:
                    expected[indices[indptr[b] + position // 4], position % 4] = row[t]
            assert ((got == 1.5).flatten(2).all(2) == (expected == 1.5).flatten(2).all(2)).all()
            near(got, expected, of_value=eps)
    out = torch.empty(7, 4, 64, dtype=dtype, device=places.TORCH)
    arguments = dict(v=v, cos_sin_cache=table_, pos_ids=integers(POSITIONS), paged_kv_cache=tuple(given), kv_indices=integers(indices), kv_indptr=integers(indptr), batch_indices=integers(requests),
                     positions=integers(places_), page_size=4, kv_layout="NHD" if mla else layout)
    result = fi.rope.rope_quantize_fp8_append_paged_kv_cache(q_rope, squeezed(k_rope), None, squeezed(k_nope), q_rope_out=out, **arguments)
    assert result[0] is out and result[1].shape == (7, 4, 0) and result[1].dtype == dtype
    with pytest.raises(ValueError, match="`page_size` is 16, expected 4"):
        fi.rope.rope_quantize_fp8_append_paged_kv_cache(q_rope, squeezed(k_rope), None, squeezed(k_nope), **{**arguments, "page_size": 16})
    with pytest.raises(ValueError, match="`quant_scale_kv` is 0, expected another number"):
        fi.rope.rope_quantize_fp8_append_paged_kv_cache(q_rope, squeezed(k_rope), None, squeezed(k_nope), **{**arguments, "quant_scale_kv": 0.0})
    with pytest.raises(ValueError, match="`v` is (given|None) beside `k_rope`"):
        fi.rope.rope_quantize_fp8_append_paged_kv_cache(q_rope, squeezed(k_rope), None, squeezed(k_nope), **{**arguments, "v": k_rope if mla else None})
