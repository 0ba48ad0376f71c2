# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""RoPE of q [tokens, heads_q, head_dim] and k [tokens, heads_kv, head_dim]. Positions are those of `pos_ids`, or count from `offsets` in each request of
`indptr`. Angles are those of rope_theta over rope_scale, or rows of a table [positions, rotary_dim]: cosines, then sines."""
import quern
from quern import _check
from quern.compat.flashinfer._base import call, hint, one_of, tensor, torch
from quern.compat.flashinfer.page import LAYOUTS

_NAMES = {"positions": "pos_ids", "interleaved": "interleave", "scale": "rope_scale", "theta": "rope_theta", "llama31_factor": "rope_scale", "original_max": "old_context_len",
          "q_out": "q", "k_out": "k"}


def _rope(where, q, k, rotary_dim, interleave, rope_theta, inplace, **arguments):
    if "offsets" in arguments and tensor(where, "offsets", arguments["offsets"]).dtype != tensor(where, "indptr", arguments["indptr"]).dtype:
        arguments["offsets"] = arguments["offsets"].to(arguments["indptr"].dtype)
    outputs = {"q_out": q, "k_out": k} if inplace else {}
    result = call(where, quern.rope.rope, _NAMES, q=q, k=k, rotary_dim=0 if rotary_dim is None else rotary_dim, interleaved=interleave, theta=rope_theta, **arguments, **outputs)
    return None if inplace else result


def _llama31(factor, low, high, old):
    return {"llama31_factor": factor, "low_freq_factor": low, "high_freq_factor": high, "original_max": old}


def apply_rope(q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=1e4):
    """(q, k) rotated, new tensors."""
    return _rope("apply_rope", q, k, rotary_dim, interleave, rope_theta, False, indptr=indptr, offsets=offsets, scale=rope_scale)


def apply_rope_inplace(q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=1e4):
    """The same in place."""
    _rope("apply_rope_inplace", q, k, rotary_dim, interleave, rope_theta, True, indptr=indptr, offsets=offsets, scale=rope_scale)


def apply_rope_pos_ids(q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=1e4):
    """(q, k) rotated, new tensors."""
    return _rope("apply_rope_pos_ids", q, k, rotary_dim, interleave, rope_theta, False, positions=pos_ids, scale=rope_scale)


def apply_rope_pos_ids_inplace(q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=1, rope_theta=1e4):
    """The same in place."""
    _rope("apply_rope_pos_ids_inplace", q, k, rotary_dim, interleave, rope_theta, True, positions=pos_ids, scale=rope_scale)


def apply_llama31_rope(q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=5e5, low_freq_factor=1, high_freq_factor=4, old_context_len=8192):
    """(q, k) rotated by Llama 3.1's frequencies, new tensors; rope_scale is their factor."""
    return _rope("apply_llama31_rope", q, k, rotary_dim, interleave, rope_theta, False, indptr=indptr, offsets=offsets,
                 **_llama31(rope_scale, low_freq_factor, high_freq_factor, old_context_len))


def apply_llama31_rope_inplace(q, k, indptr, offsets, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=5e5, low_freq_factor=1, high_freq_factor=4, old_context_len=8192):
    """The same in place."""
    _rope("apply_llama31_rope_inplace", q, k, rotary_dim, interleave, rope_theta, True, indptr=indptr, offsets=offsets,
          **_llama31(rope_scale, low_freq_factor, high_freq_factor, old_context_len))


def apply_llama31_rope_pos_ids(q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=5e5, low_freq_factor=1, high_freq_factor=4, old_context_len=8192):
    """The same of positions, new tensors."""
    return _rope("apply_llama31_rope_pos_ids", q, k, rotary_dim, interleave, rope_theta, False, positions=pos_ids,
                 **_llama31(rope_scale, low_freq_factor, high_freq_factor, old_context_len))


def apply_llama31_rope_pos_ids_inplace(q, k, pos_ids, rotary_dim=None, interleave=False, rope_scale=8, rope_theta=5e5, low_freq_factor=1, high_freq_factor=4, old_context_len=8192):
    """The same in place."""
    _rope("apply_llama31_rope_pos_ids_inplace", q, k, rotary_dim, interleave, rope_theta, True, positions=pos_ids,
          **_llama31(rope_scale, low_freq_factor, high_freq_factor, old_context_len))


def _table(where, cache):
    """(cos, sin), the halves of a table."""
    tensor(where, "cos_sin_cache", cache, 2)
    if cache.dtype != torch.float32:
        raise TypeError(f"flashinfer.{where}: `cos_sin_cache` is {str(cache.dtype)[6:]}, expected float32")
    half = cache.size(1) // 2
    return {"cos": cache[:, :half], "sin": cache[:, half:]}


def _heads(where, name, value, head_size):
    """[tokens, heads * head_size] as [tokens, heads, head_size]."""
    tensor(where, name, value, 2)
    if _check.integer(f"flashinfer.{where}", "head_size", head_size, 1, 2**31 - 1) and value.size(1) % head_size:
        raise ValueError(f"flashinfer.{where}: `{name}` has {value.size(1)} columns, expected a multiple of `head_size`, {head_size}")
    return value.unflatten(1, (-1, head_size))


_OF_TABLE = {"q": "query", "k": "key", "q_out": "query", "k_out": "key", "cos": "cos_sin_cache", "sin": "cos_sin_cache"}


def apply_rope_with_cos_sin_cache(positions, query, key, head_size, cos_sin_cache, is_neox=True):
    """(query, key) [tokens, heads * head_size] rotated, new tensors. is_neox: pairs are (i, i + rotary_dim / 2), else (2 i, 2 i + 1)."""
    where = "apply_rope_with_cos_sin_cache"
    q, k = call(where, quern.rope.rope, _OF_TABLE, q=_heads(where, "query", query, head_size), k=_heads(where, "key", key, head_size), positions=positions,
                interleaved=not _check.boolean(f"flashinfer.{where}", "is_neox", is_neox), **_table(where, cos_sin_cache))
    return q.flatten(1), k.flatten(1)


def apply_rope_with_cos_sin_cache_inplace(positions, query, key, head_size, cos_sin_cache, is_neox=True):
    """The same in place."""
    where = "apply_rope_with_cos_sin_cache_inplace"
    q, k = _heads(where, "query", query, head_size), _heads(where, "key", key, head_size)
    call(where, quern.rope.rope, _OF_TABLE, q=q, k=k, positions=positions, interleaved=not _check.boolean(f"flashinfer.{where}", "is_neox", is_neox), q_out=q, k_out=k, **_table(where, cos_sin_cache))


def _quantise(where, q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox, quantize_dtype, scale_q, scale_k, outs):
    tensor(where, "q_rope", q_rope, 3), tensor(where, "k_rope", k_rope, (2, 3))
    for name, part in (("q_nope", q_nope), ("k_nope", k_nope)):
        if part is not None:
            tensor(where, name, part, (2, 3))
    if quantize_dtype is not None and not isinstance(quantize_dtype, torch.dtype):
        _check.fail_type(f"flashinfer.{where}", "quantize_dtype", quantize_dtype, "a dtype of torch")
    heads = lambda t: t.unsqueeze(1) if isinstance(t, torch.Tensor) and t.dim() == 2 else t  # noqa: E731
    given = [tensor(where, name, t) for name, t in zip(("q_rope_out", "k_rope_out", "q_nope_out", "k_nope_out"), outs) if t is not None]
    scale_q, scale_k = (_check.number(f"flashinfer.{where}", name, scale) for name, scale in (("quant_scale_q", scale_q), ("quant_scale_kv", scale_k)))
    dtype = quantize_dtype or (given[0].dtype if given else torch.float8_e4m3fn)
    sources = (q_rope, k_rope, q_nope, k_nope)
    outs = [None if s is None else torch.empty(s.shape, dtype=dtype, device=s.device) if o is None else o for s, o in zip(sources, outs)]
    for name, out in zip(("q_rope_out", "k_rope_out", "q_nope_out", "k_nope_out"), outs):
        if out is not None and out.dtype != dtype:
            raise TypeError(f"flashinfer.{where}: `{name}` is {str(out.dtype)[6:]}, expected {str(dtype)[6:]}")
    one = lambda scale: torch.full((1,), 1 / scale, dtype=torch.float32, device=q_rope.device)  # noqa: E731
    call(where, quern.rope.rope_quantise_fp8, {"positions": "pos_ids", "cos": "cos_sin_cache", "sin": "cos_sin_cache", "q_scale": "quant_scale_q", "k_scale": "quant_scale_kv"},
         **dict(zip(("q_rope", "k_rope", "q_nope", "k_nope"), map(heads, sources))), **dict(zip(("q_rope_out", "k_rope_out", "q_nope_out", "k_nope_out"), map(heads, outs))),
         positions=pos_ids, interleaved=not _check.boolean(f"flashinfer.{where}", "is_neox", is_neox), q_scale=one(scale_q), k_scale=one(scale_k), **_table(where, cos_sin_cache))
    return tuple(outs)


def rope_quantize_fp8(q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox=True, quantize_dtype=None, quant_scale_q=1.0, quant_scale_kv=1.0, q_rope_out=None,
                      k_rope_out=None, q_nope_out=None, k_nope_out=None, enable_pdl=False, backend="cuda"):
    """(q_rope, k_rope, q_nope, k_nope) in FP8, the first two rotated; each is multiplied by its quant_scale. A part that is None stays None."""
    hint("rope_quantize_fp8", "enable_pdl", enable_pdl)
    one_of("rope_quantize_fp8", "backend", backend, {"cuda": None, "cutile": "quern has no kernels of cuTile"})
    return _quantise("rope_quantize_fp8", q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox, quantize_dtype, quant_scale_q, quant_scale_kv,
                     (q_rope_out, k_rope_out, q_nope_out, k_nope_out))


def mla_rope_quantize_fp8(q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox=True, quantize_dtype=None, quant_scale_q=1.0, quant_scale_kv=1.0, q_rope_out=None,
                          k_rope_out=None, q_nope_out=None, k_nope_out=None, enable_pdl=False):
    """The same where k has one head: [tokens, dim]."""
    hint("mla_rope_quantize_fp8", "enable_pdl", enable_pdl)
    return _quantise("mla_rope_quantize_fp8", q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox, quantize_dtype, quant_scale_q, quant_scale_kv,
                     (q_rope_out, k_rope_out, q_nope_out, k_nope_out))


def rope_quantize_fp8_append_paged_kv_cache(q_rope, k_rope, q_nope, k_nope, v, cos_sin_cache, pos_ids, paged_kv_cache, kv_indices, kv_indptr, batch_indices, positions, is_neox=True,
                                            quantize_dtype=None, quant_scale_q=1.0, quant_scale_kv=1.0, page_size=16, kv_layout="NHD", q_rope_out=None, q_nope_out=None,
                                            enable_pdl=False):
    """(q_rope, q_nope) in FP8, the first rotated, and k and v in FP8 in the cache; each is multiplied by its quant_scale. Heads of k [tokens, heads_kv, dim] are
    k_rope rotated, then k_nope; v [tokens, heads_kv, head_dim]; the cache is (k, v) of head_dim columns in layout NHD or HND. MLA: k_rope and k_nope [tokens, dim], v
    None, and the cache is (that of k_nope, that of k_rope), each [pages, page_size, dim]. A q_nope that is None comes back without columns. Three launches: one
    rotates and rounds, one appends each half of the cache."""
    where = "rope_quantize_fp8_append_paged_kv_cache"
    hint(where, "enable_pdl", enable_pdl)
    one_of(where, "kv_layout", kv_layout, LAYOUTS)
    tensor(where, "q_rope", q_rope, 3), tensor(where, "k_rope", k_rope, (2, 3))
    for name, t in (("q_nope", q_nope), ("k_nope", k_nope), ("v", v), ("q_rope_out", q_rope_out), ("q_nope_out", q_nope_out)):
        if t is not None:
            tensor(where, name, t)
    page_size = _check.integer(f"flashinfer.{where}", "page_size", page_size, 1, 2**31 - 1)
    if not isinstance(paged_kv_cache, (tuple, list)) or len(paged_kv_cache) != 2:
        _check.fail_type(f"flashinfer.{where}", "paged_kv_cache", paged_kv_cache, "a tuple of two tensors")
    mla = k_rope.dim() == 2
    if mla == (v is not None) or (mla and k_nope is None):
        raise ValueError(f"flashinfer.{where}: `v` is {'given' if v is not None else 'None'} beside `k_rope` of {k_rope.dim()} dims, expected it for 3 dims, and k_nope without it for 2")
    caches = [tensor(where, f"paged_kv_cache[{i}]", cache, 3 if mla else 4) for i, cache in enumerate(paged_kv_cache)]
    if not mla and kv_layout == "HND":
        caches = [cache.transpose(1, 2) for cache in caches]
    if caches[0].size(1) != page_size:
        raise ValueError(f"flashinfer.{where}: `page_size` is {page_size}, expected {caches[0].size(1)}, as `paged_kv_cache` has")
    if _check.number(f"flashinfer.{where}", "quant_scale_kv", quant_scale_kv) == 0:
        raise ValueError(f"flashinfer.{where}: `quant_scale_kv` is 0, expected another number: v is divided by its inverse")
    fp8 = caches[0].dtype if quantize_dtype is None else quantize_dtype
    rope, nope = k_rope.size(-1), 0 if k_nope is None else k_nope.size(-1)
    k = torch.empty((*k_rope.shape[:-1], rope + nope), dtype=fp8 if isinstance(fp8, torch.dtype) else None, device=k_rope.device)
    outs = _quantise(where, q_rope, k_rope, q_nope, k_nope, cos_sin_cache, pos_ids, is_neox, fp8, quant_scale_q, quant_scale_kv,
                     (q_rope_out, k[..., :rope], q_nope_out, None if k_nope is None else k[..., rope:]))
    place = {"batch_indices": batch_indices, "positions": positions, "page_indptr": kv_indptr, "page_indices": kv_indices}
    # The op writes k and v of one width and dtype: halves of a row are its k and v.
    parts = (("k_nope", k[..., rope:], caches[0]), ("k_rope", k[..., :rope], caches[1])) if mla else (("k_rope", k, caches[0]), ("v", v, caches[1]))
    for name, row, cache in parts:
        row, cache = (row.unsqueeze(1), cache.unsqueeze(2)) if mla else (row, cache)
        if row.size(-1) != cache.size(-1) or row.size(-1) % 2:
            raise ValueError(f"flashinfer.{where}: `{name}` has {row.size(-1)} columns in all, expected the even number of `paged_kv_cache`, {cache.size(-1)}")
        half = row.size(-1) // 2
        scale = {} if name != "v" else {"k_scale": torch.full((1,), 1 / quant_scale_kv, dtype=torch.float32, device=v.device)}
        call(where, quern.kv_cache.append_paged, {"k": name, "v": name, "k_cache": "paged_kv_cache", "v_cache": "paged_kv_cache", "page_indptr": "kv_indptr", "page_indices": "kv_indices"},
             k=row[..., :half], v=row[..., half:], k_cache=cache[..., :half], v_cache=cache[..., half:], **place, **scale, **({"v_scale": scale["k_scale"]} if scale else {}))
    return outs[0], q_rope.new_empty((*q_rope.shape[:2], 0), dtype=fp8) if q_nope is None else outs[2]
