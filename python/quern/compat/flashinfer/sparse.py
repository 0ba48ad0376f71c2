# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Attention in which a block of queries sees some blocks of keys, by quern.attention.paged: a row of blocks is a request, a block of keys a page. Only blocks
that are seen are read."""
import math

import quern
from quern import _check
from quern.compat.flashinfer._attention import BACKENDS, NAMES, Wrapper, attend, dtype_of, lse_for, masks, options_of, refuse_variants, scales
from quern.compat.flashinfer._base import hint, refuse, tensor, torch


_SM100 = "it is of kernels for SM100, this is for sm_90a"
_BACKENDS = {**BACKENDS, **dict.fromkeys(("vsa_sm100_blk64", "vsa_sm100_blk128", "vsa_sm120_blk64", "cake_cute"), _SM100)}


def _multiple(where, name, size, block_name, block):
    if size % block:
        raise ValueError(f"flashinfer.{where}: `{name}` is {size}, expected a multiple of `{block_name}`, {block}")
    return size // block


class BlockSparseAttentionWrapper(Wrapper):
    """q [M, heads, head_dim] in blocks of R rows, k and v [N, heads_kv, head_dim] in blocks of C; a matrix of blocks in BSR form says which see each other. One
    launch over requests of R query tokens whose pages of C keys are views of k and v: nothing is copied. Small C is slow, as small pages are."""

    _backends = {**_BACKENDS, "cutile": None}

    def __init__(self, float_workspace_buffer, backend="auto"):
        super().__init__("BlockSparseAttentionWrapper", float_workspace_buffer, "NHD", False, backend, {})

    def plan(self, indptr, indices, M, N, R, C, num_qo_heads, num_kv_heads, head_dim, mask=None, packed_mask=None, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False,
             logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, q_data_type="float16", kv_data_type=None, o_data_type="float16", non_blocking=True, block_mask=None, kv_block_lens=None, q2k_indices=None,
             q2k_num=None, kv_splits=None, use_clc=None, q_scale=None, k_scale=None, v_scale=None):
        """indptr [M / R + 1] and indices: the blocks that each row of blocks sees. mask: bool [blocks, R, C], what each of them shows; packed_mask: bits of each
        row of blocks from a byte on, little-endian, in the order of its R queries and the keys of all its blocks. A mask waits for the device. causal: as of
        one request that has the keys of a row's blocks alone: its last query sees up to its last key. With the default o_data_type a result for q of
        bfloat16 is converted to float16, as FlashInfer's is."""
        where = f"{self._where}.plan"
        refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        refuse(where, f"{_SM100}; indptr and indices say the same", block_mask=block_mask, q2k_indices=q2k_indices, q2k_num=q2k_num)
        refuse(where, f"{_SM100}; mask says the same", kv_block_lens=kv_block_lens)
        refuse(where, f"{_SM100}; run() takes scale_q, scale_k and scale_v", q_scale=q_scale, k_scale=k_scale, v_scale=v_scale)
        if use_clc is not None or kv_splits not in (None, 1):
            name, value = ("use_clc", use_clc) if use_clc is not None else ("kv_splits", kv_splits)
            raise NotImplementedError(f"flashinfer.{where}: `{name}` is {_check.got(value)}, expected it left out: {_SM100}")
        hint(where, "non_blocking", non_blocking)
        m, n, r, c, *self._heads, self._head_dim = self._sizes(M=M, N=N, R=R, C=C, num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim)
        rows, self._pages = _multiple(where, "M", m, "R", r), _multiple(where, "N", n, "C", c)
        if tensor(where, "indptr", indptr, 1).numel() != rows + 1:
            raise ValueError(f"flashinfer.{where}: `indptr` has {indptr.numel()} elements, expected {rows + 1}, the rows of blocks and one")
        self._m, self._r, self._c = m, r, c
        self._indptr, self._indices = self._keep("indptr", indptr).int(), self._keep("indices", indices).int()
        self._qo_indptr_buf = torch.arange(rows + 1, dtype=torch.int32, device=self.device) * r
        self._last = torch.full((rows,), c, dtype=torch.int32, device=self.device)
        if mask is not None:
            if tuple(tensor(where, "mask", mask, 3).shape) != (indices.numel(), r, c):
                raise ValueError(f"flashinfer.{where}: `mask` has shape {list(mask.shape)}, expected {[indices.numel(), r, c]}")
            mask = self._by_rows(mask.to(self.device))
        bits = lambda: (self._indptr[1:] - self._indptr[:-1]).long() * (r * c)  # noqa: E731
        if packed_mask is not None:
            packed_mask = tensor(where, "packed_mask", packed_mask, 1).to(self.device)
        self._options(causal, -1, logits_soft_cap, sm_scale, q_data_type, kv_data_type, o_data_type, None, False,
                      masks(where, mask, packed_mask, bits, names=("mask", "packed_mask")))

    begin_forward = plan

    def _by_rows(self, mask):
        """[blocks, R, C] in the order of queries of a row of blocks and then of keys of all its blocks."""
        block = torch.arange(mask.size(0), device=self.device)
        row = torch.searchsorted(self._indptr[1:].contiguous(), block.int(), right=True)
        begin, width = self._indptr[row].long(), (self._indptr[row + 1] - self._indptr[row]).long() * self._c
        at = (begin * self._r * self._c + (block - begin) * self._c)[:, None, None] + torch.arange(self._r, device=self.device)[None, :, None] * width[:, None, None]
        return torch.empty_like(mask).reshape(-1).scatter_(0, (at + torch.arange(self._c, device=self.device)).reshape(-1), mask.reshape(-1))

    def run(self, q, k, v, scale_q=None, scale_k=None, scale_v=None, out=None, lse=None, return_lse=False, enable_pdl=None):
        """Attention [M, heads, head_dim]. scale_q, scale_k, scale_v: tensors of one number a head. A row of blocks that sees none has 0 and LSE -inf."""
        where = f"{self._where}.run"
        hint(where, "enable_pdl", enable_pdl)
        tensor(where, "k", k, 3), tensor(where, "v", v, 3)
        self._check_run(where, q, k, self._heads, self._head_dim)
        for name, t, size in (("q", q, self._m), ("k", k, self._pages * self._c), ("v", v, self._pages * self._c)):
            if t.size(0) != size:
                raise ValueError(f"flashinfer.{where}: `{name}` has {t.size(0)} tokens, expected {size}, as plan() was told")
        dtype = self._o_dtype if out is None else tensor(where, "out", out, 3).dtype
        converted = q.element_size() > 1 and dtype != q.dtype
        result = attend(where, quern.attention.paged, q, None if converted else out, None if converted else dtype, lse_for(where, q, lse, return_lse),
                        {**NAMES, "k_cache": "k", "v_cache": "v", "page_indptr": "indptr", "page_indices": "indices"}, k_cache=k.unflatten(0, (self._pages, self._c)),
                        v_cache=v.unflatten(0, (self._pages, self._c)), page_indptr=self._indptr, page_indices=self._indices, last_page_len=self._last, q_indptr=self._qo_indptr_buf,
                        max_seq_q=self._r, **scales(where, q, k.size(1), self._last.numel(), self._sm_scale, scale_q, scale_k, scale_v,
                                                    {"q_scale": "scale_q", "k_scale": "scale_k", "v_scale": "scale_v"}), **self._shared())
        if not converted:
            return result
        first = result[0] if return_lse else result
        first = first.to(dtype) if out is None else out.copy_(first)
        return (first, result[1]) if return_lse else first

    def forward(self, q, k, v, scale_q=None, scale_k=None, scale_v=None, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, logits_soft_cap=None, sm_scale=None, rope_scale=None,
                rope_theta=None):
        """The old form of run(), with options of its own."""
        refuse_variants(f"{self._where}.forward", pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        *_, self._logits_soft_cap, self._sm_scale = options_of(f"{self._where}.forward", False, -1, logits_soft_cap, sm_scale)
        return self.run(q, k, v, scale_q, scale_k, scale_v)

    def end_forward(self):
        """Nothing is to be ended."""


class VariableBlockSparseAttentionWrapper(Wrapper):
    """The same of blocks of any sizes, of each head of keys its own: q [heads, length_q, head_dim], k and v [heads_kv, length, head_dim]. A head and a row of
    blocks are a request; pages have as many keys as divide all blocks of columns, so that sizes without a common divisor cost a table of one entry a key that is
    seen, and the gathers of pages of one key. k and v are viewed, and copied only where their memory is not dense; q and the result are copied where heads
    share keys."""

    _backends = {**_BACKENDS, "cake": None, "cake_cute": None}

    def __init__(self, float_workspace_buffer, backend="auto"):
        super().__init__("VariableBlockSparseAttentionWrapper", float_workspace_buffer, "HND", False, backend, {})

    def plan(self, block_mask_map, block_row_sz, block_col_sz, num_qo_heads, num_kv_heads, head_dim, causal=False, pos_encoding_mode="NONE", use_fp16_qk_reduction=False,
             logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None, non_blocking=True, q_data_type="float16", kv_data_type=None):
        """block_mask_map: bool [heads_kv, rows, columns], which blocks are seen; block_row_sz [heads_kv, rows] and block_col_sz [heads_kv, columns]: their sizes,
        which add up to the same lengths for every head. All three are read on the host. causal: as BlockSparseAttentionWrapper has it."""
        where = f"{self._where}.plan"
        refuse_variants(where, pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        hint(where, "non_blocking", non_blocking)
        *self._heads, self._head_dim = self._sizes(num_qo_heads=num_qo_heads, num_kv_heads=num_kv_heads, head_dim=head_dim)
        heads_q, heads_kv = self._heads
        _multiple(where, "num_qo_heads", heads_q, "num_kv_heads", heads_kv)
        seen = tensor(where, "block_mask_map", block_mask_map, 3).bool().cpu()
        rows, columns = tensor(where, "block_row_sz", block_row_sz, 2).long().cpu(), tensor(where, "block_col_sz", block_col_sz, 2).long().cpu()
        for name, sizes, count in (("block_row_sz", rows, seen.size(1)), ("block_col_sz", columns, seen.size(2))):
            if tuple(sizes.shape) != (heads_kv, count) or seen.size(0) != heads_kv:
                raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(sizes.shape)} and `block_mask_map` {list(seen.shape)}, expected {heads_kv} heads and as many blocks in both")
            if (sizes < 0).any() or (sizes.sum(1) != sizes[0].sum()).any():
                raise ValueError(f"flashinfer.{where}: `{name}` has sums {sizes.sum(1).tolist()}, expected one length for all heads, of sizes that are not negative")
        self._length_q, self._length = int(rows[0].sum()), int(columns[0].sum())
        self._page_size = math.gcd(*columns.flatten().tolist()) or 1
        pages = columns // self._page_size
        first = pages.flatten().cumsum(0).view_as(pages) - pages  # heads follow each other
        head, row, column = seen.nonzero(as_tuple=True)
        counts, begins = pages[head, column], first[head, column]
        each = torch.arange(int(counts.sum())) - torch.repeat_interleave(counts.cumsum(0) - counts, counts)
        ends_of_sizes = lambda sizes: torch.cat([torch.zeros(1, dtype=torch.int64), sizes.flatten().cumsum(0)]).int()  # noqa: E731
        self._indptr = self._keep("block_mask_map", ends_of_sizes((seen * pages[:, None]).sum(2)))
        self._indices = self._keep("block_mask_map", (torch.repeat_interleave(begins, counts) + each).int())
        self._qo_indptr_buf = self._keep("block_row_sz", ends_of_sizes(rows))
        self._last = torch.full((rows.numel(),), self._page_size, dtype=torch.int32, device=self.device)
        self._longest = int(rows.max()) if rows.numel() else 0
        self._options(causal, -1, logits_soft_cap, sm_scale, q_data_type, kv_data_type, None, None, False, {})

    begin_forward = plan

    def run(self, q, k, v, out=None, lse=None, return_lse=False, enable_pdl=None):
        """Attention [heads, length_q, head_dim]; lse is [heads, length_q]. A row of blocks that sees none has 0 and LSE -inf."""
        where = f"{self._where}.run"
        hint(where, "enable_pdl", enable_pdl)
        if not _check.boolean(f"flashinfer.{where}", "return_lse", return_lse):
            refuse(where, "`return_lse` is False", lse=lse)
        if not self._planned:
            raise RuntimeError(f"flashinfer.{where}: plan() was not called")
        heads_q, heads_kv = self._heads
        group = heads_q // heads_kv
        for name, t, shape, dtype in (("q", q, (heads_q, self._length_q, self._head_dim), self._q_dtype), ("k", k, (heads_kv, self._length, self._head_dim), self._kv_dtype),
                                      ("v", v, (heads_kv, self._length, self._head_dim), self._kv_dtype)):
            if tuple(tensor(where, name, t, 3).shape) != shape or t.dtype != dtype:
                raise ValueError(f"flashinfer.{where}: `{name}` is {str(t.dtype)[6:]} {list(t.shape)}, expected {str(dtype)[6:]} {list(shape)}, as plan() was told")
        for name, t, shape in (("out", out, tuple(q.shape)), ("lse", lse, tuple(q.shape[:2]))):
            if t is not None and tuple(tensor(where, name, t).shape) != shape:
                raise ValueError(f"flashinfer.{where}: `{name}` has shape {list(t.shape)}, expected {list(shape)}")
        pages = lambda t: t.reshape(-1, self._page_size, 1, self._head_dim)  # noqa: E731
        by_head = lambda t: t.unflatten(0, (heads_kv, self._length_q)).transpose(1, 2).flatten(0, 1)  # noqa: E731
        rows = q.unflatten(0, (heads_kv, group)).transpose(1, 2).reshape(heads_kv * self._length_q, group, self._head_dim)
        wanted = {"out_lse": torch.empty(rows.shape[:2], dtype=torch.float32, device=q.device)} if return_lse else {}
        result = attend(where, quern.attention.paged, rows, None, None, (wanted, wanted.get("out_lse")), {**NAMES, "k_cache": "k", "v_cache": "v"}, k_cache=pages(k), v_cache=pages(v),
                        page_indptr=self._indptr, page_indices=self._indices, last_page_len=self._last, q_indptr=self._qo_indptr_buf, max_seq_q=self._longest,
                        **scales(where, rows, 1, self._last.numel(), self._sm_scale), **self._shared())
        results = [by_head(t) if given is None else given.copy_(by_head(t)) for t, given in zip(result if return_lse else (result,), (out, lse))]
        return tuple(results) if return_lse else results[0]

    def forward(self, q, k, v, pos_encoding_mode="NONE", use_fp16_qk_reduction=False, logits_soft_cap=None, sm_scale=None, rope_scale=None, rope_theta=None):
        """The old form of run(), with options of its own."""
        refuse_variants(f"{self._where}.forward", pos_encoding_mode, rope_scale, rope_theta, use_fp16_qk_reduction=use_fp16_qk_reduction)
        *_, self._logits_soft_cap, self._sm_scale = options_of(f"{self._where}.forward", False, -1, logits_soft_cap, sm_scale)
        return self.run(q, k, v)

    def end_forward(self):
        """Nothing is to be ended."""
