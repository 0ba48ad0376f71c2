# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""DeepGEMM's names through sys.modules, each called with its exact keywords; results beside torch in double."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import contiguous, fp8_operands, grouped_operands, judge, poisoned, product, randn  # noqa: E402

import quern  # noqa: E402
import quern.compat.deep_gemm  # noqa: E402

pytestmark = pytest.mark.anywhere
LAYOUTS = {"nt": (False, False), "nn": (False, True), "tn": (True, True), "tt": (True, False)}


def in_memory(tensor, exchanged):
    """[mn, k] as a view of memory that is [k, mn], or as it is."""
    return tensor.mT.contiguous().mT if exchanged else tensor


def shown(tensor, exchanged):
    """What a call with "n" or "t" in its name takes for [mn, k]."""
    return tensor.mT if exchanged else tensor


@pytest.mark.parametrize("mn_major", [False, True])
@pytest.mark.parametrize("prefix", ["bf16_gemm", "cublaslt_gemm"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bf16(dg, layout, prefix, mn_major):
    function = getattr(dg, f"{prefix}_{layout}")
    keywords = {"compiled_dims": "nk"} if prefix == "bf16_gemm" else {}
    a, b = randn(9, 72, dtype=torch.bfloat16), randn(24, 72, seed=2, dtype=torch.bfloat16)
    over_a, over_b = LAYOUTS[layout]
    stored_a, stored_b = in_memory(a, over_a and mn_major), in_memory(b, over_b and mn_major)
    for dtype in (torch.bfloat16, torch.float32):
        c = randn(9, 24, seed=3, dtype=dtype)
        for given, d in ((None, poisoned(9, 24, dtype=dtype)), (c, poisoned(9, 24, dtype=dtype)), ("d", c.clone())):
            assert function(a=shown(stored_a, over_a), b=shown(stored_b, over_b), d=d, c=d if given == "d" else given, **keywords) is None
            judge(d, a, b, None if given is None else c)


@pytest.mark.parametrize("gran_n", [128, 1])
@pytest.mark.parametrize("prefix", ["fp8_gemm", "fp8_fp4_gemm"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_fp8(dg, layout, prefix, gran_n):
    m, n, k = 9, 136, 272
    a, b = fp8_operands(dg, m, n, k, gran_n)
    exchanged = [tuple(shown(t, over) for t in operand) for operand, over in zip((a, b), LAYOUTS[layout])]
    function = getattr(dg, f"{prefix}_{layout}")
    recipes = [{"recipe": None}, {"recipe": (1, gran_n, 128)}, {"recipe": None, "recipe_a": (1, 128), "recipe_b": (gran_n, 128)}]
    for dtype, recipe in zip((torch.bfloat16, torch.float32, torch.bfloat16), recipes):
        c = randn(m, n, seed=3, dtype=dtype)
        for given, d in ((None, poisoned(m, n, dtype=dtype)), (c, poisoned(m, n, dtype=dtype)), ("d", c.clone())):
            assert function(a=exchanged[0], b=exchanged[1], d=d, c=d if given == "d" else given, **recipe, compiled_dims="nk", disable_ue8m0_cast=True) is None
            judge(d, a, b, None if given is None else c)


def test_cublaslt_of_fp8(dg):
    a, b = (randn(n, 64, seed=n).to(torch.float8_e4m3fn) for n in (5, 24))
    d = poisoned(5, 24, dtype=torch.bfloat16)
    dg.cublaslt_gemm_nt(a=a, b=b, d=d, c=None)
    judge(d, a, b)


def test_empty(dg):
    a, b = fp8_operands(dg, 5, 24, 256)
    dg.fp8_gemm_nt((a[0][:0], a[1][:0]), b, poisoned(0, 24, dtype=torch.bfloat16))
    d, c = poisoned(5, 24, dtype=torch.float32), randn(5, 24)
    dg.fp8_gemm_nt(tuple(t[:, :0] for t in a), tuple(t[:, :0] for t in b), d, c=c)
    assert torch.equal(d, c)


SIZES = [100, 0, 128, 1]


def part_of(operand, index):
    return tuple(t[index] for t in operand) if isinstance(operand, tuple) else operand[index]


@pytest.mark.parametrize("psum", [False, True])
@pytest.mark.parametrize("layout", ["nt", "nn"])
@pytest.mark.parametrize("kind", ["bf16", "fp8", "fp8_fp4"])
def test_m_grouped_contiguous(dg, kind, layout, psum):
    alignment = 16 if psum else 128
    dg.set_mk_alignment_for_contiguous_layout(alignment)
    rows, grouped_layout, group_of_row = contiguous(SIZES, alignment, psum)
    a, b, parts = grouped_operands(dg, rows, len(SIZES), 136, 272, kind)
    function = getattr(dg, f"m_grouped_{kind}_gemm_{layout}_contiguous")
    shown_b = b if layout == "nt" else tuple(t.mT for t in b) if isinstance(b, tuple) else b.mT
    recipe = {} if kind == "bf16" else {"recipe": (1, 128, 128), "recipe_a": None, "recipe_b": None, "disable_ue8m0_cast": True}
    last = {"expected_m_for_psum_layout": 64 if psum else None} if layout == "nt" else {}
    for zeros in (True, False):
        d = poisoned(rows, 136, dtype=torch.bfloat16)
        function(a=a, b=shown_b, d=d, grouped_layout=grouped_layout, compiled_dims="nk", use_psum_layout=psum, ensure_zero_padding=zeros, **recipe, **last)
        for group, part in enumerate(parts):
            index = [i for i, g in enumerate(group_of_row) if g == group]
            judge(d[index], part_of(a, index), part)
        behind = rows - alignment if psum and not zeros else rows  # those rows alone stay, of which nothing in the layout speaks
        assert (d[[i for i, g in enumerate(group_of_row[:behind]) if g < 0]] == 0).all() and d[behind:].isnan().all()


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("psum", [False, True])
@pytest.mark.parametrize("kind", ["bf16", "fp8"])
def test_programs_compare_all_rows(dg, kind, psum, zeros):
    """As DeepGEMM's own tests do: rows of a that pad a group are zeros, d is whatever memory held, and each row of it counts."""
    dg.set_mk_alignment_for_contiguous_layout(128)
    rows, layout, group_of_row = contiguous(SIZES, 128, psum)
    rows, group_of_row, layout = rows - 128, group_of_row[:-128], layout if psum else layout[:-128]
    a, b, parts = grouped_operands(dg, rows, len(SIZES), 136, 272, kind)
    (a[0] if isinstance(a, tuple) else a).view(torch.uint8)[[g < 0 for g in group_of_row]] = 0
    expected = torch.zeros(rows, 136, device=places.TORCH)
    for group, part in enumerate(parts):
        index = [i for i, g in enumerate(group_of_row) if g == group]
        expected[index] = product(part_of(a, index), part, torch.bfloat16)[0].float()
    d = poisoned(rows, 136, dtype=torch.bfloat16)
    getattr(dg, f"m_grouped_{kind}_gemm_nt_contiguous")(a, b, d, layout, use_psum_layout=psum, ensure_zero_padding=zeros)
    assert dg.testing.calc_diff(d, expected) < 1e-5


def test_b_that_is_n_major(dg, monkeypatch):
    """The same bits as K-major b, in both layouts of rows, and no copy of it; FP8 of sm_90a has no such b."""
    rows, layout, _ = contiguous(SIZES, 128, False)
    a, b, _ = grouped_operands(dg, rows, len(SIZES), 136, 72, "bf16")
    n_major = b.mT.contiguous()  # [groups, k, n]
    expected, d = poisoned(rows, 136, dtype=torch.bfloat16), poisoned(rows, 136, dtype=torch.bfloat16)
    dg.m_grouped_bf16_gemm_nt_contiguous(a, b, expected, layout)
    taken = []
    for op in ("grouped_contiguous", "grouped_masked"):
        monkeypatch.setattr(quern.gemm, op, lambda *, b, op=getattr(quern.gemm, op), **more: taken.append(b.data_ptr()) or op(b=b, **more))
    for function, shown in ((dg.m_grouped_bf16_gemm_nn_contiguous, n_major), (dg.m_grouped_bf16_gemm_nt_contiguous, n_major.mT)):
        function(a, shown, d.fill_(float("nan")), layout)
        dg.testing.assert_bitwise_equal(d, expected)
    sizes = torch.tensor([40, 0, 7], dtype=torch.int32, device=places.TORCH)
    a, masked = randn(3, 40, 72, dtype=torch.bfloat16), [poisoned(3, 40, 136, dtype=torch.bfloat16) for _ in range(2)]
    for d, shown in zip(masked, (b[:3], n_major[:3].mT)):
        dg.m_grouped_bf16_gemm_nt_masked(a, shown, d, sizes, 16)
    dg.testing.assert_bitwise_equal(*masked)
    assert taken == [n_major.data_ptr(), n_major.data_ptr(), b.data_ptr(), n_major.data_ptr()]


def test_legacy(dg):
    rows, layout, group_of_row = contiguous(SIZES, 128, False)
    a, b, parts = grouped_operands(dg, rows, len(SIZES), 136, 72, "bf16")
    picked = torch.arange(rows, dtype=torch.int32, device=places.TORCH).flip(0)
    picked[3] = -1
    gathered = a[picked.clamp_min(0)] * (picked >= 0).unsqueeze(1)
    for layout_of_b, shown in (("nt", b), ("nn", b.mT.contiguous())):
        for fused in ("", "a_fused_"):
            d, source, mapping = poisoned(rows, 136, dtype=torch.bfloat16), gathered if fused else a, (layout, picked) if fused else layout
            getattr(dg.legacy, f"{fused}m_grouped_bf16_gemm_{layout_of_b}_contiguous_tl")(a, shown, d, mapping)
            for group, part in enumerate(parts):
                index = [i for i, g in enumerate(group_of_row) if g == group]
                judge(d[index], source[index], part)
            assert (d[[i for i, g in enumerate(group_of_row) if g < 0]] == 0).all()
    x, y, c = randn(50, 24, dtype=torch.bfloat16), randn(50, 40, seed=2, dtype=torch.bfloat16), randn(2, 24, 40, seed=3)
    order, starts, ends = (torch.tensor(v, dtype=torch.int32, device=places.TORCH) for v in ([*range(49, -1, -1)], [0, 20], [20, 50]))
    for fused, left, right in (("a", x.flip(0), y), ("b", x, y.flip(0))):
        function = getattr(dg.legacy, f"{fused}_fused_k_grouped_bf16_gemm_tn_contiguous_tl")
        for accumulate in (True, False):
            d = c.clone()
            function(x, y, d, (order, starts, ends), accumulate)
            for g, part in enumerate((slice(0, 20), slice(20, 50))):
                judge(d[g], left[part].T, right[part].T, c[g] if accumulate else None)
        with pytest.raises(ValueError, match=rf"^deep_gemm\.{fused}_fused_k_grouped_bf16_gemm_tn_contiguous_tl: `mappings` has groups of k that begin at \[1, 21\] and end at \[20, 50\], expected 2"):
            function(x, y, c, (order, starts + 1, ends), True)


@pytest.mark.parametrize("kind", ["bf16", "fp8", "fp8_fp4"])
def test_m_grouped_masked(dg, kind):
    groups, most, n, k = 3, 40, 136, 272
    a, b, parts = grouped_operands(dg, groups * most, groups, n, k, kind)
    a = tuple(t.view(groups, most, -1) for t in a) if isinstance(a, tuple) else a.view(groups, most, -1)
    sizes = [40, 0, 7]
    d = poisoned(groups, most, n, dtype=torch.bfloat16)
    recipe = {} if kind == "bf16" else {"recipe": None, "recipe_a": (1, 128), "recipe_b": (128, 128), "disable_ue8m0_cast": False}
    masked_m = torch.tensor(sizes, dtype=torch.int32, device=places.TORCH)
    getattr(dg, f"m_grouped_{kind}_gemm_nt_masked")(a=a, b=b, d=d, masked_m=masked_m, expected_m=16, compiled_dims="nk", **recipe)
    for group, size in enumerate(sizes):
        judge(d[group, :size], part_of(part_of(a, group), slice(size)), parts[group])
        assert d[group, size:].isnan().all()


def test_grouped_operands_that_are_refused(dg):
    a, b, _ = grouped_operands(dg, 128, 1, 24, 128, "bf16")
    d, layout = poisoned(128, 24, dtype=torch.bfloat16), torch.zeros(128, dtype=torch.int32, device=places.TORCH)
    fp8 = dg.per_token_cast_to_fp8(b[0], use_ue8m0=False)
    n_major = fp8[0].view(torch.uint8).T.contiguous().view(fp8[0].dtype).T
    with pytest.raises(NotImplementedError, match=r"deep_gemm\.m_grouped_fp8_gemm_nt_contiguous: `b` has stride 24 along K, expected 1"):
        dg.m_grouped_fp8_gemm_nt_contiguous(dg.per_token_cast_to_fp8(a, use_ue8m0=False), (n_major[None], fp8[1][:1][None]), d, layout)
    with pytest.raises(NotImplementedError, match=r"deep_gemm\.m_grouped_fp8_gemm_nt_masked: `recipe` has a scale for each row of b, expected one for 128"):
        dg.m_grouped_fp8_gemm_nt_masked((a, a), (b, b), d, layout, 1, recipe=(1, 1, 128))
    with pytest.raises(ValueError, match=r"^deep_gemm\.m_grouped_bf16_gemm_nt_contiguous: gemm\.grouped_contiguous: `grouped_layout` has shape \[5\], expected m=128"):
        dg.m_grouped_bf16_gemm_nt_contiguous(a, b, d, layout[:5])
    assert d.isnan().all()


def test_rows_of_no_group():
    """The rows that become zero, of both layouts: [0, 100) and [112, 113) have a group, and up to 144 nothing has."""
    from quern.compat.deep_gemm import _grouped

    quern.compat.deep_gemm.set_mk_alignment_for_contiguous_layout(16)
    expected = [not (row < 100 or row == 112) for row in range(144)]
    ends = torch.tensor([100, 100, 113], dtype=torch.int32)  # the second is empty and ends where it would be without its own padding
    assert _grouped._of_no_group(ends, True, 144, 3).tolist() == expected
    assert _grouped._of_no_group(ends, True, 144, 3, behind=False).tolist() == [e and row < 128 for row, e in enumerate(expected)]
    for none in (-1, 3):  # also a group that is not there
        assert _grouped._of_no_group(torch.tensor([none if e else 0 for e in expected]), False, 144, 3).tolist() == expected
    quern.compat.deep_gemm.set_mk_alignment_for_contiguous_layout(128)


def test_k_grouped_fp8(dg):
    m, n, ks = 9, 24, [128, 0, 256]
    a, b = [[dg.per_token_cast_to_fp8(randn(rows, k, seed=k + rows), use_ue8m0=False) for k in ks] for rows in (m, n)]
    flat = [(torch.cat([t.flatten() for t, _ in parts]), torch.cat([s for _, s in parts], 1)) for parts in (a, b)]
    layout = torch.tensor(ks, dtype=torch.int32, device=places.TORCH)
    c = randn(3, m, n, seed=3)
    for given in (None, c):
        d = poisoned(3, m, n, dtype=torch.float32)
        dg.k_grouped_fp8_gemm_nt_contiguous(a=flat[0], b=flat[1], d=d, ks_cpu=ks, grouped_layout=layout, c=given, recipe=(1, 1, 128), compiled_dims="mn", use_psum_layout=False)
        for group in range(3):
            judge(d[group], a[group], b[group], None if given is None else c[group])
    with pytest.raises(ValueError, match=r"deep_gemm\.k_grouped_fp8_gemm_nt_contiguous: `ks_cpu` is \[128, 256\] and `recipe` \(1, 1, 128\) for 3456 .*, expected multiples of 128"):
        dg.k_grouped_fp8_gemm_nt_contiguous(*flat, d, [128, 256], layout, c)


@pytest.mark.parametrize("ks", ([64, 0, 128], [61, 0, 130]))
def test_k_grouped_bf16(dg, ks):
    m, n = 24, 40
    a, b = randn(sum(ks), m, dtype=torch.bfloat16), randn(sum(ks), n, seed=2, dtype=torch.bfloat16)
    layout, c = torch.tensor(ks, dtype=torch.int32, device=places.TORCH), randn(3, m, n, seed=3)
    d = poisoned(3, m, n, dtype=torch.float32)
    dg.k_grouped_bf16_gemm_tn_contiguous(a=a, b=b, d=d, ks_cpu=ks, grouped_layout=layout, c=c, compiled_dims="mn", use_psum_layout=False)
    for group, (rows_a, rows_b) in enumerate(zip(a.split(ks), b.split(ks))):
        judge(d[group], rows_a.T, rows_b.T, c[group])
    added = c.clone()
    dg.k_grouped_bf16_gemm_tn_contiguous(a, b, added, ks, None, added)
    assert torch.equal(added, d)


def test_k_grouped_is_one_call(dg, monkeypatch):
    calls, k_grouped = [], quern.gemm.k_grouped
    monkeypatch.setattr(quern.gemm, "k_grouped", lambda **arguments: calls.append(1) or k_grouped(**arguments))
    ks, d = [128, 256], torch.empty(2, 16, 24, dtype=torch.float32, device=places.TORCH)
    a, b = (randn(sum(ks), width, dtype=torch.bfloat16) for width in (16, 24))
    dg.k_grouped_bf16_gemm_tn_contiguous(a, b, d, ks, None)
    a, b = (dg.per_token_cast_to_fp8(randn(rows, 128), use_ue8m0=False) for rows in (16, 24))
    dg.k_grouped_fp8_gemm_nt_contiguous((a[0].flatten(), a[1]), (b[0].flatten(), b[1]), d[:1], [128], None)
    assert len(calls) == 2


def test_k_grouped_needs_sizes_on_the_host(dg):
    x = randn(128, 24, dtype=torch.bfloat16)
    for name, operand in (("k_grouped_bf16_gemm_tn_contiguous", x), ("k_grouped_fp8_gemm_nt_contiguous", (x, x))):
        for keywords in ({"ks_cpu": None}, {"ks_cpu": [128], "use_psum_layout": True}):
            with pytest.raises(NotImplementedError, match=rf"deep_gemm\.{name}: `ks_cpu` is .*, expected the groups' sizes on the host"):
                getattr(dg, name)(a=operand, b=operand, d=randn(1, 24, 24), grouped_layout=None, **keywords)
    with pytest.raises(ValueError, match=r"`ks_cpu` is \[64\] for 128 rows"):
        dg.k_grouped_bf16_gemm_tn_contiguous(x, x, randn(1, 24, 24), [64], None)


def test_results_are_written_into_a_tensor(dg):
    """d is DeepGEMM's third argument and no output that is allocated; errors of quern's ops speak of it by this name."""
    x, sizes, layout = randn(128, 128, dtype=torch.bfloat16), torch.tensor([128], dtype=torch.int32, device=places.TORCH), torch.zeros(128, dtype=torch.int32, device=places.TORCH)
    fp8 = dg.per_token_cast_to_fp8(x, use_ue8m0=False)
    groups = lambda operand: tuple(t.unsqueeze(0) for t in operand) if isinstance(operand, tuple) else operand.unsqueeze(0)  # noqa: E731
    blocks = (fp8[0], fp8[1][:1])
    calls = {"bf16_gemm_nt": (x, x), "fp8_gemm_nt": (fp8, fp8), "cublaslt_gemm_nt": (x, x),
             "m_grouped_bf16_gemm_nt_contiguous": (x, groups(x), layout), "m_grouped_fp8_gemm_nt_contiguous": (fp8, groups(blocks), layout),
             "m_grouped_bf16_gemm_nt_masked": (groups(x), groups(x), sizes, 128), "m_grouped_fp8_gemm_nt_masked": (groups(fp8), groups(blocks), sizes, 128),
             "k_grouped_bf16_gemm_tn_contiguous": (x, x, [128], sizes), "k_grouped_fp8_gemm_nt_contiguous": ((fp8[0].flatten(), fp8[1]), (fp8[0].flatten(), fp8[1]), [128], sizes)}
    for name, (a, b, *more) in calls.items():
        for d, what in ((None, "None"), (3, "a int")):
            with pytest.raises(TypeError, match=rf"^deep_gemm\.{'(bf16|cublaslt)_gemm_nt' if name == 'cublaslt_gemm_nt' else name}: `d` is {what}, expected a tensor, which the product is written into"):
                getattr(dg, name)(a, b, d, *more)
    with pytest.raises(ValueError, match=r"^deep_gemm\.bf16_gemm_nt: gemm\.dense: `d` has shape \[128, 7\]"):
        dg.bf16_gemm_nt(x, x, x[:, :7].contiguous())
    with pytest.raises(ValueError, match=r"^deep_gemm\.bf16_gemm_nt: gemm\.dense: `d` overlaps `a` in memory"):
        dg.bf16_gemm_nt(x, x.clone(), x)


def test_operands_that_are_refused(dg):
    a, b = fp8_operands(dg, 9, 136, 256)
    d = poisoned(9, 136, dtype=torch.bfloat16)
    refused = [
        (NotImplementedError, r"`a` is int8, expected float8_e4m3fn: packed FP4 needs SM100", ((a[0].view(torch.int8), a[1]), b, d), {}),
        (NotImplementedError, r"scales of `b` are int32, expected float32: packed UE8M0 needs SM100", (a, (b[0], b[1].int()), d), {}),
        (NotImplementedError, r"`b` has stride 136 along K, expected 1: FP8 that is MN-major needs SM100", (a, (b[0].view(torch.uint8).T.contiguous().view(b[0].dtype).T, b[1]), d), {}),
        (NotImplementedError, r"`recipe` is \(1, 1, 32\), expected \(1, 128, 128\) or \(1, 1, 128\)", (a, b, d), {"recipe": (1, 1, 32)}),
        (NotImplementedError, r"`recipe` is \(\(128, 128\), \(128, 128\)\), expected", (a, b, d), {"recipe_a": (128, 128), "recipe_b": (128, 128)}),
        (ValueError, r"`recipe` is None, `recipe_a` \(1, 128\) and `recipe_b` None, expected `recipe` alone or the other two", (a, b, d), {"recipe_a": (1, 128)}),
        (ValueError, r"scales of `b` have shape \[2, 2\], expected \[136, 2\]", (a, b, d), {"recipe": (1, 1, 128)}),
        (ValueError, r"scales of `a` have shape \[1, 2\], expected \[9, 2\]", ((a[0], a[1][:1]), b, d), {}),
        (TypeError, r"`a` is a Tensor, expected a tensor and its scales, as \(a, scales\)", (a[0], b, d), {}),
    ]
    for kind, text, arguments, keywords in refused:
        with pytest.raises(kind, match=r"^deep_gemm\.fp8_gemm_nt: " + text):
            dg.fp8_gemm_nt(*arguments, **keywords)
    assert d.isnan().all()
    with pytest.raises(ValueError, match=r"^deep_gemm\.fp8_gemm_nt: gemm\.scaled: `b` has shape \[136, 256\]"):
        dg.fp8_gemm_nt((a[0][:, :128], a[1][:, :1]), b, d)
