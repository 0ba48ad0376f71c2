# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's wrappers of several parts: prefill beside decode, a shared prefix, blocks that see each other. Results beside torch in double."""
import math

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import poisoned, randn  # noqa: E402
from steps import BF16, DIM, E4M3, HEADS, KV_HEADS, LENGTHS, PAGE, Step, ends, integers, masks_of, near, packed, truth, workspace  # noqa: E402

pytestmark = pytest.mark.anywhere
SIZES = {"num_qo_heads": HEADS, "num_kv_heads": KV_HEADS, "head_dim": DIM, "page_size": PAGE}


def shown(t, layout):
    return t if layout == "NHD" else t.transpose(0, 1).contiguous()


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_pod(fi, layout):
    step = Step([1, 1, 1, 1], layout=layout, combined=layout == "HND")
    q, k, v = (randn(n, heads, DIM, seed=seed, dtype=BF16) for n, heads, seed in ((5, HEADS, 5), (9, KV_HEADS, 6), (9, KV_HEADS, 7)))
    other = {"NHD": "HND", "HND": "NHD"}[layout]
    (mask,), masks = masks_of([5], [9]), masks_of([1, 1, 1, 1], LENGTHS)
    wrapper = fi.PODWithPagedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout, use_cuda_graph=False, paged_kv_indptr_buffer=None, paged_kv_indices_buffer=None,
                                            paged_kv_last_page_len_buffer=None, jit_args=None)
    indptr, indices, last = step.tables()
    plan = {"indptr": indptr, "indices": indices, "last_page_len": last, **SIZES, "pos_encoding_mode": "NONE", "q_data_type": BF16, "kv_data_type": None, "data_type": None,
            "rope_scale": None, "rope_theta": None, "non_blocking": True}
    flat = torch.cat([m.flatten() for m in masks]).to(places.TORCH)
    for causal, window, masked in ((True, -1, None), (False, 4, None), (True, -1, "custom"), (False, -1, "packed")):
        wrapper.plan(**plan, window_left=window, sm_scale=0.3)
        given = {"custom_mask_p": mask.to(places.TORCH), "custom_mask_d": flat} if masked == "custom" else {"packed_custom_mask_p": packed([mask]), "packed_custom_mask_d": packed(masks)} \
            if masked else {}
        keywords = {**dict.fromkeys(("custom_mask_p", "packed_custom_mask_p", "custom_mask_d", "packed_custom_mask_d", "rope_scale_p", "rope_theta_p", "rope_scale_d", "rope_theta_d")),
                    **given, "causal_p": causal, "kv_layout_p": other, "pos_encoding_mode_p": "NONE", "sm_scale_p": 0.4, "window_left_p": window, "causal_d": causal,
                    "kv_layout_d": layout, "pos_encoding_mode_d": "NONE", "sm_scale_d": None, "window_left_d": -1, "q_scale": 3.0, "k_scale": 0.5, "v_scale": 2.0,
                    "use_fp16_qk_reduction": False, "enable_pdl": None}
        (out_p, lse_p), (out_d, lse_d) = wrapper.run(q_p=q, k_p=shown(k, other), v_p=shown(v, other), q_d=step.q, paged_kv_cache_d=step.cache, return_lse_p=True, return_lse_d=True, **keywords)
        expected = truth(q, k, v, causal=causal, window_left=window, sm_scale=0.4, mask=mask if masked else None)
        near(out_p, expected[0]), near(lse_p, expected[1], 1e-3)
        expected = step.truth(masks if masked else None, window_left=window, sm_scale=0.45, v_scale=2.0)
        near(out_d, expected[0]), near(lse_d, expected[1], 1e-3)
    out_p, out_d = wrapper.run(q, k, v, step.q, step.cache, sm_scale_d=0.2, window_left_d=2)
    near(out_p, truth(q, k, v)[0]), near(out_d, step.truth(sm_scale=0.2, window_left=2)[0])
    for keywords, kind, text in (({"custom_mask_p": mask.to(places.TORCH)[:, 1:]}, ValueError, "`custom_mask_p` has 40 elements, expected 45"),
                                 ({"packed_custom_mask_d": packed([mask])}, ValueError, "`packed_custom_mask_d` has 6 elements, expected 5"),
                                 ({"kv_layout_d": "HND"}, ValueError, "`kv_layout_d` is 'HND', expected 'NHD'"), ({"rope_theta_p": 1e4}, NotImplementedError, "`rope_theta_p` is 10000.0"),
                                 ({"pos_encoding_mode_d": "ALIBI"}, NotImplementedError, "`pos_encoding_mode_d` is 'ALIBI'")):
        if places.ON_GPU and "packed_custom_mask_d" in keywords or layout == "HND" and "kv_layout_d" in keywords:
            continue
        with pytest.raises(kind, match=r"^flashinfer\.PODWithPagedKVCacheWrapper\.run: " + text):
            wrapper.run(q, k, v, step.q, step.cache, **keywords)
    with pytest.raises(ValueError, match="`q_d` is float16, expected bfloat16"):
        wrapper.run(q, k, v, step.q.half(), step.cache)


def test_pod_of_a_graph(fi):
    """The decode's tables lie in the buffers, and both calls take the caller's workspace."""
    step = Step([1, 1, 1, 1])
    buffers = [torch.zeros_like(step.tables()[0]), torch.zeros(20, dtype=torch.int32, device=places.TORCH), torch.ones_like(step.tables()[2])]
    wrapper = fi.PODWithPagedKVCacheWrapper(workspace(), "NHD", True, *buffers)
    wrapper.plan(*step.tables(), HEADS, KV_HEADS, DIM, PAGE, q_data_type=BF16)
    q, k = randn(5, HEADS, DIM, seed=5, dtype=BF16), randn(9, KV_HEADS, DIM, seed=6, dtype=BF16)
    out_p, out_d = wrapper.run(q, k, k, step.q, step.cache, causal_p=True)
    near(out_p, truth(q, k, k, causal=True)[0]), near(out_d, step.truth()[0])
    assert torch.equal(buffers[0], step.tables()[0]) and torch.equal(buffers[2], step.tables()[2])


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_batch_pod(fi, layout):
    step, decode = Step(layout=layout), Step([1, 1, 1, 1], layout=layout)
    masks = masks_of(step.queries, LENGTHS)
    wrapper = fi.BatchPODWithPagedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout)
    tables = dict(zip(("kv_indptr", "kv_indices", "last_page_len"), step.tables()))
    plan = {"qo_indptr_p": integers(step.qo_indptr), "qo_indptr_d": integers(decode.qo_indptr), **{f"{name}_{part}": t for name, t in tables.items() for part in "pd"}, **SIZES,
            "pos_encoding_mode": "NONE", "kv_data_type": None, "data_type": BF16, "rope_scale": None, "rope_theta": None, "non_blocking": True}
    for causal, window, masked in ((True, 4, None), (True, -1, "custom"), (False, -1, "packed")):
        wrapper.plan(**plan, window_left=window, q_data_type="float16", sm_scale=0.3)
        keywords = {"custom_mask_p": torch.cat([m.flatten() for m in masks]).to(places.TORCH) if masked == "custom" else None, "packed_custom_mask_p": packed(masks) if masked == "packed" else None,
                    "causal_p": causal, "q_scale": 3.0, "k_scale": 0.5, "v_scale": 2.0, "use_fp16_qk_reduction": False, "enable_pdl": None}
        (out_p, lse_p), (out_d, lse_d) = wrapper.run(q_p=step.q, paged_kv_cache_p=step.cache, q_d=decode.q, paged_kv_cache_d=decode.cache, return_lse=True, **keywords)
        expected = step.truth(masks if masked else None, causal=causal, window_left=window, sm_scale=0.45, v_scale=2.0)
        near(out_p, expected[0]), near(lse_p, expected[1], 1e-3)
        expected = decode.truth(window_left=window, sm_scale=0.45, v_scale=2.0)
        near(out_d, expected[0]), near(lse_d, expected[1], 1e-3)
    out_p, out_d = wrapper.run(step.q, step.cache, decode.q, decode.cache)
    near(out_p, step.truth(sm_scale=0.3)[0]), near(out_d, decode.truth(sm_scale=0.3)[0])


@pytest.mark.parametrize("layout", ["NHD", "HND"])
def test_shared_prefix(fi, layout):
    k, v = randn(6, KV_HEADS, DIM, seed=7, dtype=BF16), randn(6, KV_HEADS, DIM, seed=8, dtype=BF16)

    def expected(step, **options):
        parts = [truth(q, torch.cat([k, own_k.to(BF16)]), torch.cat([v, own_v.to(BF16)]), **options)[0] for q, own_k, own_v in map(step.request, range(4))]
        return torch.cat(parts)

    step = Step([1, 1, 1, 1], layout=layout, combined=True)
    decode = fi.BatchDecodeWithSharedPrefixPagedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout)
    indptr, indices, last = step.tables()
    decode.begin_forward(unique_kv_indptr=indptr, unique_kv_indices=indices, unique_kv_last_page_len=last, **SIZES, data_type="bfloat16")
    near(decode.forward(q=step.q, k_shared=shown(k, layout), v_shared=shown(v, layout), unique_kv_cache=step.cache), expected(step))
    step = Step([3, 0, 5, 1], layout=layout)
    prefill = fi.BatchPrefillWithSharedPrefixPagedKVCacheWrapper(float_workspace_buffer=workspace(), kv_layout=layout)
    prefill.begin_forward(qo_indptr=integers(step.qo_indptr), paged_kv_indptr=indptr, paged_kv_indices=indices, paged_kv_last_page_len=last, **SIZES)
    for causal in (True, False):
        got = prefill.forward(q=step.q, k_shared=shown(k, layout), v_shared=shown(v, layout), unique_kv_cache=step.cache, causal=causal, use_fp16_qk_reduction=False, sm_scale=0.3,
                              rope_scale=None, rope_theta=None)
        near(got, expected(step, causal=causal, sm_scale=0.3))
    with pytest.raises(NotImplementedError, match="`rope_theta` is 10000.0"):
        prefill.forward(step.q, k, v, step.cache, rope_theta=1e4)


M, N, R, C = 12, 20, 3, 4
ROWS = [[1, 4], [], [0, 2, 3], [4]]  # blocks that each row of blocks sees
PLAN = {"pos_encoding_mode": "NONE", "use_fp16_qk_reduction": False, "rope_scale": None, "rope_theta": None, "q_data_type": BF16, "kv_data_type": None, "non_blocking": True,
        "block_mask": None}


def test_block_sparse(fi):
    q, k, v = (randn(n, heads, DIM, seed=seed, dtype=BF16) for n, heads, seed in ((M, HEADS, 1), (N, KV_HEADS, 2), (N, KV_HEADS, 3)))
    table = {"indptr": integers(ends([len(row) for row in ROWS])), "indices": integers(sum(ROWS, [])), "M": M, "N": N, "R": R, "C": C, "num_qo_heads": HEADS, "num_kv_heads": KV_HEADS,
             "head_dim": DIM}
    shows = torch.rand(6, R, C, generator=torch.Generator().manual_seed(1)) < 0.5
    shows[1, 1], shows[0, 1] = False, False  # a query that sees nothing

    def expected(causal=False, soft_cap=0.0, sm_scale=None, masked=False, v_scale=1.0):
        parts, at = [], 0
        for i, row in enumerate(ROWS):
            keys = [c * C + j for c in row for j in range(C)]
            mask = torch.cat([shows[at + j] for j in range(len(row))], 1) if masked and row else None
            parts.append(truth(q[i * R:i * R + R], k[keys], v[keys], causal=causal, soft_cap=soft_cap, sm_scale=sm_scale, mask=mask, v_scale=v_scale))
            at += len(row)
        return torch.cat([p[0] for p in parts]), torch.cat([p[1] for p in parts])

    bits = [torch.cat([shows[at + j] for j in range(len(row))], 1) if row else torch.zeros(R, 0) for at, row in zip(ends([len(r) for r in ROWS]), ROWS)]
    wrapper = fi.BlockSparseAttentionWrapper(float_workspace_buffer=workspace(), backend="auto")
    for causal, cap, given in ((False, None, {}), (True, 3.0, {}), (False, None, {"mask": shows.to(places.TORCH)}), (True, None, {"packed_mask": packed(bits)})):
        wrapper.plan(**table, causal=causal, logits_soft_cap=cap, sm_scale=0.4, o_data_type=BF16, **{"mask": None, "packed_mask": None, **given}, **PLAN)
        buffers = {"out": poisoned(M, HEADS, DIM, dtype=BF16), "lse": poisoned(M, HEADS, dtype=torch.float32)}
        out, lse = wrapper.run(q=q, k=k, v=v, scale_q=None, scale_k=None, scale_v=None, return_lse=True, enable_pdl=None, **buffers)
        assert out is buffers["out"] and lse is buffers["lse"]
        want = expected(causal, cap or 0.0, 0.4, bool(given))
        near(out, want[0]), near(lse, want[1], 1e-3)
    assert lse.isinf().sum() == (R + 1) * HEADS, "a row of blocks and a query that see nothing"
    wrapper.plan(**table, q_data_type=BF16)
    out = wrapper.run(q, k, v)
    assert out.dtype == torch.float16, "the default of o_data_type"
    near(out, expected()[0])
    scales = [torch.rand(n, generator=torch.Generator().manual_seed(n)).to(places.TORCH) + 0.5 for n in (HEADS, KV_HEADS, KV_HEADS)]
    q, k, v = (t.to(E4M3) for t in (q, k, v))
    wrapper.plan(**table, q_data_type=E4M3, o_data_type="bfloat16")
    out = wrapper.run(q, k.clone(), v, *scales)
    q, k, v = (t.float() * s[:, None] for t, s in zip((q, k, v), scales))
    near(out, expected()[0], 2**-4)
    for change, text in (({"M": 13}, "`M` is 13, expected a multiple of `R`, 3"), ({"N": 21}, "`N` is 21, expected a multiple of `C`, 4"), ({"M": 15}, "`indptr` has 5 elements, expected 6"),
                         ({"mask": shows[1:].to(places.TORCH)}, r"`mask` has shape \[5, 3, 4\], expected \[6, 3, 4\]"),
                         ({"packed_mask": integers([0], torch.uint8)}, "`packed_mask` has 1 elements, expected 10")):
        with pytest.raises(ValueError, match=text):
            wrapper.plan(**{**table, **change}, q_data_type=BF16)
    for name in ("block_mask", "kv_block_lens", "q2k_indices", "q2k_num", "q_scale", "k_scale", "v_scale"):
        with pytest.raises(NotImplementedError, match=rf"^flashinfer\.BlockSparseAttentionWrapper\.plan: `{name}` is a torch.Tensor"):
            wrapper.plan(**table, **{name: shows})
    for keywords in ({"kv_splits": 2}, {"kv_splits": "auto"}, {"use_clc": False}, {"use_clc": True}):
        with pytest.raises(NotImplementedError, match=rf"`{next(iter(keywords))}` is .*, expected it left out: it is of kernels for SM100"):
            wrapper.plan(**table, **keywords)
    q, k, v = (randn(n, heads, DIM, seed=seed, dtype=BF16) for n, heads, seed in ((M, HEADS, 1), (N, KV_HEADS, 2), (N, KV_HEADS, 3)))
    for word in ("cutile", "fa2"):
        wrapper = fi.BlockSparseAttentionWrapper(workspace(), word)
        wrapper.plan(**table, kv_splits=1, o_data_type=BF16, **PLAN)
        near(wrapper.forward(q=q, k=k, v=v, scale_q=None, scale_k=None, scale_v=None, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, logits_soft_cap=3.0, sm_scale=0.4, rope_scale=None,
                             rope_theta=None), expected(False, 3.0, 0.4)[0])
    for word in ("cake", "vsa_sm100_blk64", "cake_cute"):
        with pytest.raises(NotImplementedError, match=f"`backend` is '{word}': it "):
            fi.BlockSparseAttentionWrapper(workspace(), word)
    with pytest.raises(NotImplementedError, match=r"^flashinfer\.BlockSparseAttentionWrapper\.forward: `pos_encoding_mode` is 'ALIBI'"):
        wrapper.forward(q, k, v, pos_encoding_mode="ALIBI")


@pytest.mark.parametrize("heads_kv, columns", [(HEADS, [[4, 8, 4, 0], [8, 4, 4, 0], [4, 4, 4, 4], [4, 0, 8, 4]]), (KV_HEADS, [[5, 3, 7, 1], [2, 9, 4, 1]])])
def test_variable_blocks(fi, heads_kv, columns):
    """Pages of four keys, and of one; heads that share keys, and not."""
    length_q, length = 11, 16
    rows = [[4, 3, 4], [1, 10, 0], [5, 5, 1], [11, 0, 0]][:heads_kv]
    seen = torch.rand(heads_kv, 3, 4, generator=torch.Generator().manual_seed(3)) < 0.6
    seen[0, 1] = False
    q, k, v = (randn(heads, n, DIM, seed=seed, dtype=BF16) for heads, n, seed in ((HEADS, length_q, 1), (heads_kv, length, 2), (heads_kv, length, 3)))
    table = {"block_mask_map": seen.to(places.TORCH), "block_row_sz": integers(rows), "block_col_sz": integers(columns), "num_qo_heads": HEADS, "num_kv_heads": heads_kv, "head_dim": DIM}
    group = HEADS // heads_kv

    def expected(causal, soft_cap):
        outs, lses = [], []
        for head in range(heads_kv):
            starts, parts = ends(columns[head]), []
            for i, (begin, size) in enumerate(zip(ends(rows[head]), rows[head])):
                keys = [j for c in range(4) if seen[head, i, c] for j in range(starts[c], starts[c + 1])]
                queries = q[head * group:(head + 1) * group, begin:begin + size].transpose(0, 1)
                parts.append(truth(queries, k[head, keys][:, None], v[head, keys][:, None], causal=causal, soft_cap=soft_cap, sm_scale=0.4))
            outs.append(torch.cat([p[0] for p in parts]).transpose(0, 1)), lses.append(torch.cat([p[1] for p in parts]).T)
        return torch.cat(outs), torch.cat(lses)

    wrapper = fi.VariableBlockSparseAttentionWrapper(float_workspace_buffer=workspace(), backend="fa2")
    for causal, cap in ((False, None), (True, 3.0)):
        wrapper.plan(**table, causal=causal, logits_soft_cap=cap, sm_scale=0.4, **{name: value for name, value in PLAN.items() if name != "block_mask"})
        out, lse = wrapper.run(q=q, k=k, v=v, out=None, lse=None, return_lse=True, enable_pdl=None)
        want = expected(causal, cap or 0.0)
        near(out, want[0]), near(lse, want[1], 1e-3)
    assert lse.isinf().any()
    buffers = {"out": poisoned(*out.shape, dtype=BF16), "lse": poisoned(*lse.shape, dtype=torch.float32)}
    again = wrapper.run(q, k, v, return_lse=True, **buffers)
    assert again[0] is buffers["out"] and torch.equal(again[0], out) and torch.equal(again[1], lse)
    assert torch.equal(wrapper.run(q, k, v), out)
    assert wrapper._page_size == (4 if heads_kv == HEADS else 1) and math.prod(wrapper._indices.shape) == (seen * torch.tensor(columns)[:, None]).sum() // wrapper._page_size
    with pytest.raises(ValueError, match=r"`block_row_sz` has sums .*, expected one length for all heads"):
        wrapper.plan(**{**table, "block_row_sz": integers([row[:2] + [row[2] + i] for i, row in enumerate(rows)])})
    with pytest.raises(ValueError, match=rf"`k` is bfloat16 \[{heads_kv}, 15, 32\], expected bfloat16 \[{heads_kv}, 16, 32\]"):
        wrapper.run(q, k[:, 1:], v)
