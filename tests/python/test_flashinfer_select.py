# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's top-k, bits, merges and products, each called with its exact keywords; results beside torch in double."""
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import judge, poisoned, randn  # noqa: E402

pytestmark = pytest.mark.anywhere
BF16 = torch.bfloat16


def integers(values, dtype=torch.int32):
    return torch.tensor(values, dtype=dtype, device=places.TORCH)


def largest(row, k):
    """Indices of the k largest by descending value, equal ones by ascending index."""
    return sorted(range(len(row)), key=lambda i: (-row[i], i))[:k]


@pytest.mark.parametrize("is_sorted", [True, False])
def test_top_k(fi, is_sorted):
    x = (4 * randn(5, 60)).round()
    for dtype in (torch.float32, BF16):
        values, indices = fi.top_k(input=x.to(dtype), k=9, sorted=is_sorted, deterministic=True, tie_break=fi.TopKTieBreak.SMALL, dsa_graph_safe=True)
        expected = [largest(row, 9) for row in x.tolist()]
        assert indices.dtype == torch.int64 and values.dtype == dtype
        assert indices.tolist() == (expected if is_sorted else [sorted(row) for row in expected])
        assert torch.equal(values, x.to(dtype).gather(1, indices))
    with pytest.raises(NotImplementedError, match="`tie_break` is 2: quern.topk.select takes the lowest indices"):
        fi.top_k(x, 9, tie_break=fi.TopKTieBreak.LARGE)
    with pytest.raises(ValueError, match="`k` is 61, expected 0 to 60"):
        fi.top_k(x, 61)


def test_ragged_transform(fi):
    x, lengths, offsets, starts = (4 * randn(3, 60)).round(), [60, 3, 20], [100, 200, 300], [0, 5, 30]
    for row_starts in (None, starts):
        cut = [min(n, 60 - s) for n, s in zip(lengths, row_starts or [0] * 3)]
        got = fi.top_k_ragged_transform(input=x, offsets=integers(offsets), lengths=integers(cut), k=8, deterministic=False, tie_break=0, dsa_graph_safe=False,
                                        row_starts=None if row_starts is None else integers(row_starts))
        for row, mine, n, offset, start in zip(x.tolist(), got.tolist(), cut, offsets, row_starts or [0] * 3):
            expected = sorted(offset + i for i in largest(row[start:start + n], 8))
            assert mine == expected + [-1] * (8 - len(expected))
        assert got.dtype == torch.int32


def test_page_table_transform(fi):
    x, lengths, table = (4 * randn(3, 60)).round(), [60, 3, 20], torch.randperm(120, generator=torch.Generator().manual_seed(1)).int().view(2, 60).to(places.TORCH)
    for to_batch in (integers([1, 0, 1]), None):
        pages, out, raw = table if to_batch is not None else table[[0, 1, 1]], poisoned(3, 8, dtype=torch.float32).int(), torch.zeros(3, 8, dtype=torch.int32, device=places.TORCH)
        rows = [1, 0, 1] if to_batch is not None else [0, 1, 2]
        got = fi.top_k_page_table_transform(input=x, src_page_table=pages, lengths=integers(lengths), k=8, row_to_batch=to_batch, deterministic=True, tie_break=1, dsa_graph_safe=False,
                                            row_starts=None, page_table_row_starts=None, page_size=1, out=out, out_raw_indices=raw)
        assert got is out
        for i, (row, n) in enumerate(zip(x.tolist(), lengths)):
            best = sorted(largest(row[:n], 8))
            assert raw[i].tolist() == best + [-1] * (8 - len(best)) and got[i].tolist() == [pages[rows[i], j].item() for j in best] + [-1] * (8 - len(best))
    assert torch.equal(fi.top_k_page_table_transform(x, pages, integers(lengths), 8), out)
    with pytest.raises(ValueError, match=r"^flashinfer\.top_k_page_table_transform: `page_size` is 0"):
        fi.top_k_page_table_transform(x, pages, integers(lengths), 8, page_size=0)


@pytest.mark.parametrize("page_size", [1, 4])
def test_page_table_transform_of_parts(fi, page_size):
    """Rows begin within x; the table's first column of a row is told, or for pages of one token the same."""
    x, starts, lengths = (4 * randn(3, 60)).round(), [0, 5, 30], [40, 3, 20]
    table = torch.randperm(360, generator=torch.Generator().manual_seed(2)).int().view(3, 120).to(places.TORCH)
    for firsts in ([7, 0, 2], None):
        if firsts is None and page_size > 1:
            with pytest.raises(ValueError, match="`page_table_row_starts` is absent"):
                fi.top_k_page_table_transform(x, table, integers(lengths), 8, row_starts=integers(starts), page_size=page_size)
            continue
        got = fi.top_k_page_table_transform(x, table, integers(lengths), 8, row_starts=integers(starts), page_table_row_starts=None if firsts is None else integers(firsts), page_size=page_size)
        for i, (row, start, n) in enumerate(zip(x.tolist(), starts, lengths)):
            best = sorted(largest(row[start:start + n], 8))
            first = (starts if firsts is None else firsts)[i]
            assert got[i].tolist() == [table[i, first + j // page_size].item() * page_size + j % page_size for j in best] + [-1] * (8 - len(best))


@pytest.mark.parametrize("order", ["big", "little"])
def test_packbits(fi, order):
    x = randn(77) > 0
    for given in (x, x.to(torch.uint8)):
        assert fi.packbits(x=given, bitorder=order).tolist() == np.packbits(x.cpu().numpy(), bitorder=order).tolist()
    for dtype in (torch.int32, torch.int64):
        indptr = [0, 9, 9, 40, 77]
        packed, ends = fi.segment_packbits(x=x, indptr=integers(indptr, dtype), bitorder=order)
        parts = [np.packbits(x.cpu().numpy()[a:b], bitorder=order) for a, b in zip(indptr, indptr[1:])]
        assert packed.tolist() == np.concatenate(parts).tolist() and ends.tolist() == [0, *np.cumsum([len(p) for p in parts])] and ends.dtype == dtype
    with pytest.raises(ValueError, match=r"^flashinfer\.packbits: `bitorder` is 'middle'"):
        fi.packbits(x, bitorder="middle")


def merged(vs, ss):
    """Of parts at dim 0, in double."""
    s = torch.stack([t.double() for t in ss])
    weight = torch.exp2(s - s.amax(0))
    return (weight[..., None] * torch.stack([t.double() for t in vs])).sum(0) / weight.sum(0)[..., None], s.amax(0) + torch.log2(weight.sum(0))


def same(got, expected, eps):
    assert got.shape == expected.shape and ((got.double() - expected).abs() <= eps * (1 + expected.abs())).all()


@pytest.mark.parametrize("dtype", [BF16, torch.float32])
def test_merges(fi, dtype):
    eps = 2**-8 if dtype == BF16 else 1e-5
    vs, ss = [randn(5, 3, 32, seed=i, dtype=dtype) for i in range(3)], [4 * randn(5, 3, seed=10 + i) for i in range(3)]
    v, s = fi.merge_state(v_a=vs[0], s_a=ss[0], v_b=vs[1], s_b=ss[1])
    assert v.dtype == dtype and s.dtype == torch.float32
    same(v, merged(vs[:2], ss[:2])[0], eps), same(s, merged(vs[:2], ss[:2])[1], 1e-5)
    v, s = fi.merge_states(v=torch.stack(vs, 1), s=torch.stack(ss, 1))
    same(v, merged(vs, ss)[0], eps), same(s, merged(vs, ss)[1], 1e-5)
    for mask in (None, torch.tensor([True, False, True, True, False], device=places.TORCH)):
        v, s = vs[0].clone(), ss[0].clone()
        assert fi.merge_state_in_place(v=v, s=s, v_other=vs[1], s_other=ss[1], mask=mask) is None
        keep = torch.ones(5, dtype=torch.bool, device=places.TORCH) if mask is None else mask
        same(v[keep], merged(vs[:2], ss[:2])[0][keep], eps), same(s[keep], merged(vs[:2], ss[:2])[1][keep], 1e-5)
        assert torch.equal(v[~keep], vs[0][~keep]) and torch.equal(s[~keep], ss[0][~keep])


def test_block_scales(fi):
    from quern.compat import deep_gemm as dg

    x, w = randn(9, 256, dtype=BF16), randn(136, 256, seed=2)
    a, b = dg.per_token_cast_to_fp8(x, use_ue8m0=False), dg.per_block_cast_to_fp8(w, use_ue8m0=False)
    judge(fi.gemm.fp8_blockscale_gemm_sm90(input=a[0], weight=b[0], input_scale=a[1], weight_scale=b[1], out=None, out_dtype=BF16), a, b)
    out = poisoned(9, 136, dtype=BF16)
    assert fi.gemm.fp8_blockscale_gemm_sm90(input=x, weight=b[0], input_scale=None, weight_scale=b[1], out=out) is out
    judge(out, a, b)
    with pytest.raises(ValueError, match="`input_scale` is given, expected None beside an input of 16 bits"):
        fi.gemm.fp8_blockscale_gemm_sm90(x, b[0], a[1], b[1])


def test_products(fi):
    a, b, bias = randn(9, 72, dtype=BF16), randn(24, 72, seed=2, dtype=BF16), randn(24, seed=3, dtype=BF16)
    c = bias.expand(9, 24)
    judge(fi.mm_bf16(a=a, b=b.mT, bias=bias, pdl=False, out=None, out_dtype=BF16, backend="auto"), a, b, c)
    judge(fi.mm_bf16(a, b.mT.contiguous()), a, b)
    out = poisoned(9, 24, dtype=torch.float32)
    assert fi.mm_bf16(a, b.mT, out=out) is out
    judge(out, a, b)
    out = poisoned(9, 24, dtype=BF16)
    assert fi.gemm.tinygemm_bf16(input=a, weight=b, out=out, bias=bias, use_pdl=True) is None
    judge(out, a, b, c)
    with pytest.raises(NotImplementedError, match=r"^flashinfer\.mm_bf16: `backend` is 'tgv': it needs SM100"):
        fi.mm_bf16(a, b.mT, backend="tgv")


def test_dtype_beside_out(fi):
    """One that `out` does not have is an error, as FlashInfer's: nobody's wish is dropped."""
    a, b, groups = randn(8, 128, dtype=BF16), randn(2, 24, 128, seed=2, dtype=BF16), integers([0, 3, 8])
    e4m3, ones = randn(128, 128).to(torch.float8_e4m3fn), torch.ones(1, 1, device=places.TORCH)
    for name, call, shape in (("mm_bf16", lambda **more: fi.mm_bf16(a, b[0].mT, **more), (8, 24)), ("bmm_bf16", lambda **more: fi.bmm_bf16(a[None], b[:1].mT, **more), (1, 8, 24)),
                              ("grouped_mm_bf16", lambda **more: fi.grouped_mm_bf16(a, b, groups, **more), (8, 24)),
                              ("grouped_mm_fp8", lambda **more: fi.grouped_mm_fp8(a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), groups, **more), (8, 24)),
                              ("fp8_blockscale_gemm_sm90", lambda **more: fi.gemm.fp8_blockscale_gemm_sm90(a, e4m3, None, ones, **more), (8, 128))):
        out = poisoned(*shape, dtype=BF16)
        call(out=out, out_dtype=BF16)
        assert torch.equal(out, call()) and torch.equal(out, call(out_dtype=BF16)), name
        with pytest.raises(ValueError, match=rf"^flashinfer\.{name}: `out_dtype` is float32, expected bfloat16, the dtype of `out`, or None"):
            call(out=out, out_dtype=torch.float32)


# {function: words of its kernels that are answered by yes, by no}; None: it has no choice.
CHOICES = {"mm_bf16": ("cudnn cublaslt tinygemm cutile", "cutlass tgv cute-dsl auto cublas"), "bmm_bf16": ("cudnn cutile", "cutlass tgv cake auto cublaslt"),
           "bmm_fp8": ("cublas cudnn", "cutlass cute-dsl auto fa2"), "tinygemm_bf16": None, "grouped_mm_bf16": None, "grouped_mm_fp8": None}


def test_capabilities(fi):
    """What a function says of itself is what it does."""
    a, e4m3, one = randn(2, 8, 128, dtype=BF16), randn(2, 8, 128).to(torch.float8_e4m3fn), torch.ones(1, device=places.TORCH)
    call = {"mm_bf16": lambda **more: fi.mm_bf16(a[0], a[1].mT, **more), "bmm_bf16": lambda **more: fi.bmm_bf16(a, a.mT, **more), "bmm_fp8": lambda **more: fi.bmm_fp8(e4m3, e4m3.mT, one, one, BF16, **more),
            "tinygemm_bf16": lambda **more: fi.gemm.tinygemm_bf16(a[0], a[1], torch.empty(8, 8, dtype=BF16, device=places.TORCH), **more),
            "grouped_mm_bf16": lambda **more: fi.grouped_mm_bf16(a[0], a, integers([0, 3, 8]), **more), "grouped_mm_fp8": lambda **more: fi.grouped_mm_fp8(e4m3[0], e4m3, integers([0, 3, 8]), **more)}
    for name, words in CHOICES.items():
        function = getattr(fi.gemm, name, None) or getattr(fi.grouped_mm, name)
        assert [function.is_compute_capability_supported(cc) for cc in (75, 80, 90, 100)] == [False, True, True, True]
        assert function.has_backend_choices() == (words is not None) and not function.has_backend("auto")
        with pytest.raises(TypeError, match=rf"^flashinfer\.{name}\.is_compute_capability_supported: `cc` is \(9, 0\)"):
            function.is_compute_capability_supported((9, 0))
        first, checked = call[name](), call[name](skip_check=True)
        assert first is None or torch.equal(first, checked)
        with pytest.raises(TypeError, match=rf"^flashinfer\.{name}: `skip_check` is 'no'"):
            call[name](skip_check="no")
        if words is None:
            with pytest.raises(ValueError, match=rf"^flashinfer\.{name}\.is_backend_supported: `backend` is 'cudnn'"):
                function.is_backend_supported("cudnn", 90)
            continue
        for word in words[0].split():
            assert function.is_backend_supported(word) and function.is_backend_supported(word, 90) and function.has_backend(word) and not function.is_backend_supported(word, cc=70)
            call[name](backend=word)
        for word in words[1].split():
            assert not function.is_backend_supported(word) and not function.is_backend_supported(word, 90) and not function.has_backend(word)
            if word != "auto":
                with pytest.raises((NotImplementedError, ValueError), match=rf"^flashinfer\.{name}: `backend` is '{word}'"):
                    call[name](backend=word)


def scaled_judge(d, a, b, scale, blocks=1):
    """d is scale * a @ b.T, as judge() has it; `blocks`: roundings by the scale, one each 128 products."""
    from products import product

    expected, tolerance = product(a, b, d.dtype)
    expected, tolerance = expected * scale, tolerance * scale + 2.0**-23 * blocks * (a.double().abs() @ b.double().abs().mT) * scale
    worst = ((d.double() - expected).abs() / tolerance).max()
    assert worst <= 1, f"{worst} times the tolerance"  # NaN is not


@pytest.mark.parametrize("batch", [1, 3])
def test_batches(fi, batch):
    a, b = randn(batch, 9, 72, dtype=BF16), randn(batch, 24, 72, seed=2, dtype=BF16)
    for dtype in (None, torch.float16, torch.float32):
        for right in (b.mT, b.mT.contiguous()):
            out = fi.bmm_bf16(A=a, B=right, out=None, out_dtype=dtype, backend="auto")
            assert out.dtype == (dtype or BF16) and out.shape == (batch, 9, 24)
            for d, x, y in zip(out, a, b):
                judge(d, x, y)
    out = poisoned(batch, 9, 24, dtype=BF16)
    assert fi.bmm_bf16(a.mT.contiguous().mT, b.mT, out) is out
    for d, x, y in zip(out, a, b):
        judge(d, x, y)
    with pytest.raises(NotImplementedError, match=r"^flashinfer\.bmm_bf16: `backend` is 'tgv': it needs SM100"):
        fi.bmm_bf16(a, b.mT, backend="tgv")
    with pytest.raises(ValueError, match=r"`B` has shape .*, expected \["):
        fi.bmm_bf16(a, b)


@pytest.mark.parametrize("batch", [1, 3])
def test_batches_of_fp8(fi, batch):
    a, b = randn(batch, 9, 160).to(torch.float8_e4m3fn), randn(batch, 24, 160, seed=2).to(torch.float8_e4m3fn)
    number = lambda x: torch.full((1,), x, device=places.TORCH)  # noqa: E731
    for dtype in (BF16, torch.float16):
        out = fi.bmm_fp8(A=a, B=b.mT, A_scale=number(0.5), B_scale=number(3.0), dtype=dtype, out=None, backend="cublas")
        given = poisoned(batch, 9, 24, dtype=dtype)
        assert out.dtype == dtype and fi.bmm_fp8(a, b.mT, number(0.5), number(3.0).squeeze(), dtype, given) is given and torch.equal(given, out)
        for d, x, y in zip(out, a, b):
            scaled_judge(d, x, y, 1.5)
    with pytest.raises(ValueError, match="`B_scale` has 2 elements, expected 1"):
        fi.bmm_fp8(a, b.mT, number(1.0), number(1.0).expand(2), BF16)
    with pytest.raises(TypeError, match="`dtype` is float32, expected bfloat16 or float16"):
        fi.bmm_fp8(a, b.mT, number(1.0), number(1.0), torch.float32)


LENGTHS = [4, 0, 7, 1]


def segments(x, weights, choice, dtype, got):
    """got is each segment of x times its weight [n, k]."""
    at = 0
    for n, i in zip(LENGTHS, choice):
        if n:
            judge(got[at:at + n], x[at:at + n], weights[i])
        at += n
    assert got.dtype == dtype and got.shape == (sum(LENGTHS), weights.size(1))


def test_segments(fi):
    wrapper = fi.SegmentGEMMWrapper(float_workspace_buffer=torch.empty(1 << 20, dtype=torch.int8, device=places.TORCH), backend="auto")
    indptr = [sum(LENGTHS[:i]) for i in range(5)]
    for dtype in (BF16, torch.float16):
        x, weights = randn(12, 72, dtype=dtype), randn(4, 24, 72, seed=2, dtype=dtype)
        for column_major in (True, False):
            given = weights if column_major else weights.mT.contiguous()
            for lengths in ({"seg_lens": integers(LENGTHS, torch.int64), "seg_indptr": None}, {"seg_lens": None, "seg_indptr": integers(indptr)}):
                for choice in (None, [2, 0, 2, 3]):
                    out = poisoned(12, 24, dtype=dtype)
                    got = wrapper.run(x=x, weights=given, batch_size=4, weight_column_major=column_major, out=out, weight_indices=None if choice is None else integers(choice, torch.int64), **lengths)
                    assert got is out
                    segments(x, weights, choice or range(4), dtype, got)
    segments(x, weights, range(4), dtype, wrapper.forward(x, weights, 4, True, seg_lens=integers(LENGTHS)))
    with pytest.raises(ValueError, match="`weights` has 3 matrices, expected 4"):
        wrapper.run(x, weights[:3], 4, True, seg_lens=integers(LENGTHS))
    with pytest.raises(ValueError, match="`seg_lens` and `seg_indptr` are None, expected one"):
        wrapper.run(x, weights, 4, True)


def test_groups(fi):
    indptr = integers([sum(LENGTHS[:i]) for i in range(5)])
    a, b = randn(12, 160, dtype=BF16), randn(4, 24, 160, seed=2, dtype=BF16)
    for dtype in (None, torch.float16, torch.float32):
        segments(a, b, range(4), dtype or BF16, fi.grouped_mm_bf16(a=a, b=b, m_indptr=indptr, out=None, out_dtype=dtype, backend="cudnn", tactic=-1))
    out = poisoned(12, 24, dtype=BF16)
    assert fi.grouped_mm_bf16(a, b, indptr.long(), out) is out
    segments(a, b, range(4), BF16, out)
    a, b, alpha = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn), torch.full((1,), 1.5, device=places.TORCH)
    for scale, dtype in ((alpha, None), (None, torch.float16)):
        got = fi.grouped_mm_fp8(a=a, b=b, m_indptr=indptr, alpha=scale, out=None, out_dtype=dtype, backend="cudnn", tactic=-1)
        assert got.dtype == (dtype or BF16)
        for i, (begin, n) in enumerate(zip(indptr.tolist(), LENGTHS)):
            if n:
                scaled_judge(got[begin:begin + n], a[begin:begin + n], b[i], 1.0 if scale is None else 1.5, 2)
    with pytest.raises(NotImplementedError, match=r"^flashinfer\.grouped_mm_bf16: `tactic` is 3, expected -1"):
        fi.grouped_mm_bf16(a, b, indptr, tactic=3)
    with pytest.raises(ValueError, match="`alpha` has 4 elements, expected 1"):
        fi.grouped_mm_fp8(a, b, indptr, alpha.expand(4))


def test_concat(fi):
    for dtype in (BF16, torch.float8_e4m3fn):
        k = torch.full((5, 3, 72), 9.0, device=places.TORCH).to(dtype)[:, :, :48]
        nope, rope = randn(5, 3, 32).to(dtype), randn(5, 1, 16, seed=2).to(dtype)
        assert fi.concat_ops.concat_mla_k(k=k, k_nope=nope, k_rope=rope) is None
        assert torch.equal(k[..., :32].float(), nope.float()) and all(torch.equal(k[:, h, 32:].float(), rope[:, 0].float()) for h in range(3))
    with pytest.raises(ValueError, match=r"`k_rope` has shape \[5, 1, 16\], expected \[5, 1, 17\]"):
        fi.concat_ops.concat_mla_k(k, nope[..., :31], rope)
    with pytest.raises(TypeError, match="`k_nope` is bfloat16, expected float8_e4m3fn"):
        fi.concat_ops.concat_mla_k(k, nope.to(BF16), rope)
    assert fi.concat_ops.concat_mla_k(k, nope, rope, backend="default") is None
    with pytest.raises(NotImplementedError, match=r"^flashinfer\.concat_mla_k: `backend` is 'cake'"):
        fi.concat_ops.concat_mla_k(k, nope, rope, backend="cake")


@pytest.mark.parametrize("kind", [None, torch.int8])
def test_groups_of_8_bits(fi, kind):
    x = randn(7, 128, dtype=BF16)
    x[2, 32:64] = 0
    largest, dtype = (448.0, torch.float8_e4m3fn) if kind is None else (127.0, torch.int8)
    common = {"group_size": 32, "eps": 1e-4, "dst_dtype": kind, "scale_ue8m0": False, "backend": "cutile"}
    groups = x.double().unflatten(1, (4, 32))
    want = groups.abs().amax(2).clamp(min=1e-4) / largest
    for column_major, aligned, strides in ((False, False, (4, 1)), (True, False, (1, 7)), (True, True, (1, 8))):
        q, scales = fi.quantization.per_token_group_quant_8bit(x=x, column_major_scales=column_major, scale_tma_aligned=aligned, **common)
        assert q.dtype == dtype and scales.dtype == torch.float32 and scales.shape == (7, 4) and scales.stride() == strides
        assert ((scales.double() - want).abs() <= 2**-22 * want).all()
        # A step of the numbers of 8 bits, half of it and the rounding of the product: 2^-4 of an e4m3 and its least step, or 1/2.
        step = (groups / want[..., None]).abs() * 2**-4 + 2**-10 if kind is None else 0.5
        assert ((q.double().unflatten(1, (4, 32)) - groups / want[..., None]).abs() <= step + 1e-4 * largest).all()
    assert q.double().abs().amax() == largest
    q, scales = fi.quantization.per_token_group_quant_8bit(x.view(7, 2, 64), 64)
    assert q.shape == (7, 2, 64) and scales.shape == (7, 2, 1)
    near = (q.double() * scales.double() - x.double().view(7, 2, 64)).abs()
    assert (near <= x.double().view(7, 2, 64).abs() * 2**-4 + 2**-10 * scales).all()
    for change, kind, text in (({"scale_ue8m0": True}, NotImplementedError, "`scale_ue8m0` is True"), ({"scale_tma_aligned": True}, NotImplementedError, "`scale_tma_aligned` is True"),
                               ({"group_size": 48}, ValueError, "`group_size` is 48, expected a divisor of the 128 columns of `x`")):
        with pytest.raises(kind, match=r"^flashinfer\.per_token_group_quant_8bit: " + text):
            fi.quantization.per_token_group_quant_8bit(x, **{**common, **change})
