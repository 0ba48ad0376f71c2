# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Wrong arguments of quern.compat.flashinfer: each parameter refuses an object that nobody knows, by its name, also those that change nothing."""
import inspect
import re

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

pytestmark = pytest.mark.anywhere
BF16 = torch.bfloat16


class Thing:
    """An object of which nobody knows anything."""


def integers(*values):
    return torch.tensor(values, dtype=torch.int32, device=places.TORCH)


def calls(fi):
    """{name: (function, arguments of a right call)}; all other parameters have their defaults."""
    x, row = randn(3, 64, dtype=BF16), randn(64, dtype=BF16)
    heads, probs, cache = randn(3, 2, 32, dtype=BF16), torch.softmax(randn(3, 20), 1), (randn(4, 4, 2, 32, dtype=BF16), randn(4, 4, 2, 32, seed=2, dtype=BF16))
    out, table, workspace = torch.empty(3, 64, dtype=torch.float8_e4m3fn, device=places.TORCH), randn(9, 32), torch.empty(4096, dtype=torch.uint8, device=places.TORCH)
    pages = (integers(0, 1, 2, 3), integers(2, 0, 3), integers(4, 1, 3))
    decode, prefill, ragged = (getattr(fi, f"Batch{name}KVCacheWrapper")(workspace) for name in ("DecodeWithPaged", "PrefillWithPaged", "PrefillWithRagged"))
    sizes = {"num_qo_heads": 2, "num_kv_heads": 2, "page_size": 4, "q_data_type": BF16}
    planned = {"qo_indptr": integers(0, 1, 2, 3), **dict(zip(("paged_kv_indptr", "paged_kv_indices", "paged_kv_last_page_len"), pages)), **sizes, "head_dim_qk": 32}
    decode.plan(*pages, 2, 2, 32, 4, q_data_type=BF16), prefill.plan(**planned)
    ragged_plan = {"qo_indptr": integers(0, 1, 2, 3), "kv_indptr": integers(0, 1, 2, 3), "num_qo_heads": 2, "num_kv_heads": 2, "head_dim_qk": 32, "q_data_type": BF16}
    ragged.plan(**ragged_plan)
    dense = {"query": heads, "kv_cache": cache, "workspace_buffer": workspace, "block_tables": integers(2, 0, 3)[:, None], "seq_lens": integers(4, 1, 3), "kv_layout": "NHD"}
    appended = {"append_key": heads, "append_value": heads, "batch_indices": integers(0, 1, 2), "positions": integers(3, 0, 2), "paged_kv_cache": cache, "kv_indices": pages[1],
                "kv_indptr": pages[0], "kv_last_page_len": pages[2]}
    of = lambda name, **arguments: (getattr(fi, name), arguments)  # noqa: E731
    sampled = {"top_k_sampling_from_probs": {"top_k": 3}, "top_p_sampling_from_probs": {"top_p": 0.5}, "min_p_sampling_from_probs": {"min_p": 0.1}, "sampling_from_probs": {},
               "top_k_top_p_sampling_from_probs": {"top_k": 3, "top_p": 0.5}, "top_k_renorm_probs": {"top_k": 3}, "top_p_renorm_probs": {"top_p": 0.5}}
    return [
        of("rmsnorm", input=x, weight=row), of("gemma_rmsnorm", input=x, weight=row), of("fused_add_rmsnorm", input=x, residual=x.clone(), weight=row),
        of("gemma_fused_add_rmsnorm", input=x, residual=x.clone(), weight=row), of("rmsnorm_quant", out=out, input=x, weight=row, scale=1.0), of("layernorm", input=x, gemma=row.float(), beta=row.float()),
        of("fused_add_rmsnorm_quant", out=out, input=x, residual=x.clone(), weight=row, scale=1.0), of("layernorm_quant", out=out, input=x, gemma=row.float(), beta=row.float(), scale=1.0),
        of("silu_and_mul", input=x), of("gelu_and_mul", input=x), of("gelu_tanh_and_mul", input=x),
        of("apply_rope", q=heads, k=heads.clone(), indptr=integers(0, 3), offsets=integers(0)), of("apply_rope_pos_ids", q=heads, k=heads.clone(), pos_ids=integers(0, 1, 2)),
        of("apply_llama31_rope", q=heads, k=heads.clone(), indptr=integers(0, 3), offsets=integers(0)), of("apply_llama31_rope_pos_ids_inplace", q=heads, k=heads.clone(), pos_ids=integers(0, 1, 2)),
        of("apply_rope_with_cos_sin_cache", positions=integers(0, 1, 2), query=x, key=x.clone(), head_size=32, cos_sin_cache=table),
        (fi.rope.rope_quantize_fp8, dict(q_rope=heads, k_rope=heads, q_nope=heads, k_nope=heads, cos_sin_cache=table, pos_ids=integers(0, 1, 2))),
        of("append_paged_kv_cache", **appended), of("get_batch_indices_positions", append_indptr=integers(0, 2), seq_lens=integers(5), nnz=2),
        of("get_seq_lens", kv_indptr=pages[0], kv_last_page_len=pages[2], page_size=4),
        *(of(name, probs=probs, **more) for name, more in sampled.items()), of("softmax", logits=probs), of("sampling_from_logits", logits=probs), of("top_k_mask_logits", logits=probs, top_k=3),
        of("top_k_top_p_sampling_from_logits", logits=probs, top_k=3, top_p=0.5), of("chain_speculative_sampling", draft_probs=probs[None, :2], draft_token_ids=integers(1, 2)[None], target_probs=probs[None]),
        of("top_k", input=probs, k=3), of("top_k_ragged_transform", input=probs, offsets=integers(0, 1, 2), lengths=integers(9, 8, 7), k=3),
        of("top_k_page_table_transform", input=probs, src_page_table=integers(*range(60)).view(3, 20), lengths=integers(9, 8, 7), k=3), of("packbits", x=probs[0] > 0.1),
        of("segment_packbits", x=probs[0] > 0.1, indptr=integers(0, 20)), of("merge_state", v_a=heads, s_a=randn(3, 2), v_b=heads, s_b=randn(3, 2)),
        of("merge_state_in_place", v=heads.clone(), s=randn(3, 2), v_other=heads, s_other=randn(3, 2)), of("merge_states", v=heads[:, None], s=randn(3, 1, 2)),
        of("mm_bf16", a=x, b=x.mT), (fi.gemm.tinygemm_bf16, dict(input=x, weight=x, out=torch.empty(3, 3, dtype=BF16, device=places.TORCH))),
        of("single_decode_with_kv_cache", q=heads[0], k=heads, v=heads), of("single_prefill_with_kv_cache", q=heads, k=heads, v=heads),
        (decode._plan_impl, dict(zip(("indptr", "indices", "last_page_len"), pages)) | sizes | {"head_dim": 32}), (decode.run, dict(q=heads, paged_kv_cache=cache)),
        (decode.workspace_size, dict(zip(("indptr", "indices", "last_page_len"), pages)) | sizes | {"head_dim": 32}), (prefill.plan, planned), (prefill.workspace_size, planned),
        (prefill.run, dict(q=heads, paged_kv_cache=cache)), (ragged.plan, ragged_plan), (ragged.run, dict(q=heads, k=heads, v=heads)),
        (fi.decode.xqa_batch_decode_with_kv_cache, dict(dense, max_seq_len=4)), (fi.decode.trtllm_batch_decode_with_kv_cache, dict(dense, max_seq_len=4)),
        (fi.prefill.trtllm_batch_context_with_kv_cache, dict(dense, max_q_len=1, max_kv_len=4, bmm1_scale=0.3, bmm2_scale=1.0, batch_size=3, cum_seq_lens_q=integers(0, 1, 2, 3),
                                                             cum_seq_lens_kv=integers(0, 4, 5, 8))),
    ]


def test_every_parameter_refuses_a_thing(fi):
    taken, refused = [], 0
    for function, arguments in calls(fi):
        function(**arguments)
        for p in inspect.signature(function).parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                continue
            try:
                function(**{**arguments, p.name: Thing()})
            except (TypeError, NotImplementedError) as e:
                if not re.match(rf"flashinfer\.[\w.]+: `{p.name}(\[\d\])?` is a \S*Thing", str(e)):
                    taken.append(f"{function.__name__}({p.name}): {e}")
                refused += 1
            except Exception as e:
                taken.append(f"{function.__name__}({p.name}): {type(e).__name__} {e}")
            else:
                taken.append(f"{function.__name__}({p.name})")
    assert not taken, "\n".join(taken)
    assert refused > 400
