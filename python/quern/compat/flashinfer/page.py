# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Writing keys and values into a paged cache. A cache is a tuple (k, v) of 4 dims or one tensor of 5 dims whose second is k and v; pages are
[page_size, heads, head_dim] in layout NHD and [heads, page_size, head_dim] in HND. One dim less is a cache of pages of one token."""
import quern
from quern import _check
from quern.compat.flashinfer._base import call, one_of, refusing, tensor, torch
from quern.compat.flashinfer._names import _FP4

LAYOUTS = {"NHD": None, "HND": None}


def unpack(where, cache, kv_layout, name="paged_kv_cache"):
    """(k, v) of a cache as [pages, page_size, heads, head_dim]."""
    one_of(where, "kv_layout", kv_layout, LAYOUTS)
    page_of_one = lambda t: t.unsqueeze(-3 if kv_layout == "NHD" else -2)  # noqa: E731
    if isinstance(cache, (tuple, list)):
        if len(cache) != 2:
            raise ValueError(f"flashinfer.{where}: `{name}` has {len(cache)} tensors, expected 2")
        k, v = (tensor(where, f"{name}[{i}]", t, (3, 4)) for i, t in enumerate(cache))
        k, v = (t if t.dim() == 4 else page_of_one(t) for t in (k, v))
    else:
        cache = cache if tensor(where, name, cache, (4, 5)).dim() == 5 else page_of_one(cache)
        if cache.size(1) != 2:
            raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(cache.shape)}, expected 2 at dim 1: k and v")
        k, v = cache.unbind(1)
    return (k, v) if kv_layout == "NHD" else (k.transpose(1, 2), v.transpose(1, 2))


_NAMES = {"page_indptr": "kv_indptr", "page_indices": "kv_indices", "k": "append_key", "v": "append_value", "k_cache": "paged_kv_cache", "v_cache": "paged_kv_cache"}


def _check_last(where, kv_indptr, kv_last_page_len):
    """FlashInfer's calls have the length of the last page, which the positions make needless. It must fit the table."""
    tensor(where, "kv_indptr", kv_indptr, 1), tensor(where, "kv_last_page_len", kv_last_page_len, 1)
    if kv_last_page_len.numel() != kv_indptr.numel() - 1:
        raise ValueError(f"flashinfer.{where}: `kv_last_page_len` has {kv_last_page_len.numel()} elements, expected those of `kv_indptr` less one, {kv_indptr.numel() - 1}")


def append_paged_kv_cache(append_key, append_value, batch_indices, positions, paged_kv_cache, kv_indices, kv_indptr, kv_last_page_len, kv_layout="NHD"):
    """Writes [tokens, heads, head_dim] to the places that positions have in the pages of their requests. An FP8 cache may stand beside keys of 16 bits:
    they are rounded, with scale 1."""
    where = "append_paged_kv_cache"
    _check_last(where, kv_indptr, kv_last_page_len)
    k, v = unpack(where, paged_kv_cache, kv_layout)
    call(where, quern.kv_cache.append_paged, _NAMES, k=append_key, v=append_value, k_cache=k, v_cache=v, batch_indices=batch_indices, positions=positions,
         page_indptr=kv_indptr, page_indices=kv_indices)


def append_paged_mla_kv_cache(append_ckv, append_kpe, batch_indices, positions, ckv_cache, kpe_cache, kv_indices, kv_indptr, kv_last_page_len):
    """The same of a latent [tokens, dim] and its rotated part, each with a cache [pages, page_size, dim]; one whose cache is None is not written. One call of
    the op for each: halves of a row are its k and v."""
    where = "append_paged_mla_kv_cache"
    _check_last(where, kv_indptr, kv_last_page_len)
    for name, row, cache in (("ckv", append_ckv, ckv_cache), ("kpe", append_kpe, kpe_cache)):
        if cache is None:
            continue
        tensor(where, f"append_{name}", row, 2), tensor(where, f"{name}_cache", cache, 3)
        if row.size(1) != cache.size(2) or row.size(1) % 2:
            raise ValueError(f"flashinfer.{where}: `append_{name}` has {row.size(1)} columns, expected the even number of `{name}_cache`, {cache.size(2)}")
        half = row.size(1) // 2
        call(where, quern.kv_cache.append_paged, {**_NAMES, "k": f"append_{name}", "v": f"append_{name}", "k_cache": f"{name}_cache", "v_cache": f"{name}_cache"},
             k=row[:, None, :half], v=row[:, None, half:], k_cache=cache[:, :, None, :half], v_cache=cache[:, :, None, half:], batch_indices=batch_indices,
             positions=positions, page_indptr=kv_indptr, page_indices=kv_indices)


def get_batch_indices_positions(append_indptr, seq_lens, nnz, batch_indices=None, positions=None):
    """(request, position) of each of nnz tokens, int32; seq_lens count the tokens that are appended. Tokens behind the last request have -1 and 0."""
    where = "get_batch_indices_positions"
    return call(where, quern.kv_cache.batch_indices_positions, {"indptr": "append_indptr"}, indptr=append_indptr, seq_lens=seq_lens, nnz=nnz, batch_indices=batch_indices,
                positions=positions)


def get_seq_lens(kv_indptr, kv_last_page_len, page_size):
    """Keys of each request of a page table. By torch."""
    _check_last("get_seq_lens", kv_indptr, kv_last_page_len)
    _check.integer("flashinfer.get_seq_lens", "page_size", page_size, 1, 2**31 - 1)
    pages = kv_indptr[1:] - kv_indptr[:-1]
    return torch.clamp(pages - 1, min=0) * page_size + kv_last_page_len


nvfp4_quantize_append_paged_kv_cache_with_slot_mapping = refusing("page.nvfp4_quantize_append_paged_kv_cache_with_slot_mapping", _FP4)
