# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What all attention functions share: FlashInfer's options in the words of quern.attention.paged and quern.attention.ragged."""
import functools
import math

import quern
from quern import _check, _workspace
from quern.compat.flashinfer._base import call, one_of, refuse, restated, tensor, torch
from quern.compat.flashinfer._names import _FP4, _SM100
from quern.compat.flashinfer.page import get_seq_lens, unpack

_ROPE, _ALIBI = "no attention op of quern rotates q and k, apply_rope_pos_ids() and its like do so before", "no attention op of quern has slopes"
_OTHER = "it is a kernel of another library"
# FlashInfer's names of kernels. quern's own are chosen in the place of those that Hopper has.
BACKENDS = {**dict.fromkeys(("auto", "fa2", "fa3")), **dict.fromkeys(("trtllm-gen", "cute-dsl", "cute-dsl-prims", "prims-ts", "cutlass", "cake"), _SM100),
            **dict.fromkeys(("cudnn", "fmha_v2", "xqa"), _OTHER)}
NAMES = {"k_cache": "paged_kv_cache", "v_cache": "paged_kv_cache", "page_indptr": "paged_kv_indptr", "page_indices": "paged_kv_indices", "last_page_len": "paged_kv_last_page_len",
         "q_indptr": "qo_indptr", "mask": "packed_custom_mask", "sink": "sinks", "soft_cap": "logits_soft_cap", "out_lse": "lse", "out_scale": "v_scale", "workspace": "float_workspace_buffer"}


def refuse_variants(where, pos_encoding_mode="NONE", rope_scale=None, rope_theta=None, suffix="", **others):
    """NotImplementedError for what no attention op has. `suffix`: behind the names of the first three."""
    one_of(where, "pos_encoding_mode" + suffix, pos_encoding_mode, {"NONE": None, "ROPE_LLAMA": _ROPE, "ALIBI": _ALIBI})
    refuse(where, "it is of ROPE_LLAMA: " + _ROPE, **{"rope_scale" + suffix: rope_scale, "rope_theta" + suffix: rope_theta})
    reasons = {
        "use_fp16_qk_reduction": "logits are summed in f32", "kv_cache_sf": _FP4, "use_fp16_softmax": "softmax is in f32",
        "skip_softmax_threshold_scale_factor": "every visible key counts", "uses_spcompress": _SM100, "jit_args": "variants are hooks of quern's ops (docs/own_ops.md)",
        "jit_kwargs": "variants are hooks of quern's ops (docs/own_ops.md)", "variant_owns_mask": "variants are hooks of quern's ops (docs/own_ops.md)", "window_right": "decode sees no key behind its own",
        **dict.fromkeys(("prefix_len_ptr", "token_pos_in_items_ptr", "token_pos_in_items_len", "max_item_len_ptr"), "quern has no multi-item scoring; a custom mask says the same"),
        **dict.fromkeys(("v_indptr", "o_indptr"), "v and out have the rows of k and q"), "o_scale": "results are no FP8",
    }
    for name, value in others.items():
        refuse(where, reasons[name], **{name: value})


def dtype_of(where, name, value):
    """A dtype of torch, or its name; None stays."""
    if isinstance(value, str):
        value = getattr(torch, value, value)
    if value is not None and not isinstance(value, torch.dtype):
        _check.fail_type(f"flashinfer.{where}", name, value, "a dtype of torch or its name")
    return value


def scales(where, q, heads_kv, batch, sm_scale, q_scale=None, k_scale=None, v_scale=None, names=None):
    """sm_scale and out_scale, into which numbers go, and tensors of one scale or one a head. `names`: {name here: the caller's}."""
    names = names or {}
    factors, result = {"sm_scale": 1 / math.sqrt(q.size(-1)) if sm_scale is None else _check.number(f"flashinfer.{where}", names.get("sm_scale", "sm_scale"), sm_scale), "out_scale": 1.0}, {}
    for name, value, shape, into in (("q_scale", q_scale, tuple(q.shape[:2]), "sm_scale"), ("k_scale", k_scale, (batch, heads_kv), "sm_scale"), ("v_scale", v_scale, (batch, heads_kv), "out_scale")):
        if isinstance(value, torch.Tensor):
            if value.numel() not in (1, shape[1]):
                raise ValueError(f"flashinfer.{where}: `{names.get(name, name)}` has {value.numel()} elements, expected 1 or one of each head, {shape[1]}")
            result[name] = value.reshape(-1).float().expand(shape)
        elif value is not None:
            factors[into] *= _check.number(f"flashinfer.{where}", names.get(name, name), value)
    if factors["sm_scale"] == 0:
        raise ValueError(f"flashinfer.{where}: `sm_scale` times the scales of q and k is 0, expected another number: quern's ops take 0 for 1 / sqrt(head_dim)")
    return {**factors, **result}


_MASKS = ("custom_mask", "packed_custom_mask")


def _given_mask(where, custom_mask, packed_custom_mask, names):
    """(name, mask, whether it is packed), or None."""
    if custom_mask is None and packed_custom_mask is None:
        return None
    if custom_mask is not None and packed_custom_mask is not None:
        raise ValueError(f"flashinfer.{where}: `{names[0]}` and `{names[1]}` are given, expected one")
    packed = custom_mask is None
    name, given, kind = names[packed], packed_custom_mask if packed else custom_mask, torch.uint8 if packed else torch.bool
    if tensor(where, name, given).dtype != kind:
        raise TypeError(f"flashinfer.{where}: `{name}` is {str(given.dtype)[6:]}, expected {str(kind)[6:]}")
    return name, given.reshape(-1), packed


def _check_mask(where, name, given, expected):
    if expected is not None and given.numel() != expected:
        raise ValueError(f"flashinfer.{where}: `{name}` has {given.numel()} elements, expected {expected}, those of all queries and keys")


def masks(where, custom_mask, packed_custom_mask, bits, counts=None, names=_MASKS):
    """{mask, mask_indptr} for the op, or {}. A mask stands in the place of causality. `bits`: a function that gives the pairs of a query and a key of each
    request. `counts`: (all of them, bytes of all), or Nones where only the device knows; without it the sum is read from the device."""
    mask = _given_mask(where, custom_mask, packed_custom_mask, names)
    if mask is None:
        return {}
    name, given, packed = mask
    each = (bits() + 7) // 8 if packed else bits()
    indptr = torch.cat([each.new_zeros(1), each.cumsum(0)]).int()
    _check_mask(where, name, given, int(indptr[-1]) if counts is None else counts[packed])
    if packed:
        return {"mask": given, "mask_indptr": indptr}
    packed, ends = call(where, quern.quant.segment_packbits, None, x=given.view(torch.uint8), indptr=indptr, bit_order="little")
    return {"mask": packed, "mask_indptr": ends}


def mask_of_one(where, custom_mask, packed_custom_mask, bits, names=_MASKS):
    """The same of one request of so many pairs."""
    mask = _given_mask(where, custom_mask, packed_custom_mask, names)
    if mask is None:
        return {}
    name, given, packed = mask
    _check_mask(where, name, given, (bits + 7) // 8 if packed else bits)
    if not packed:
        given = call(where, quern.quant.packbits, None, x=given.view(torch.uint8), bit_order="little")
    return {"mask": given, "mask_indptr": ends_of((bits + 7) // 8, given.device)}


def soft_cap_of(where, value):
    """None, 0 and less: none."""
    return 0.0 if value is None else max(_check.number(f"flashinfer.{where}", "logits_soft_cap", value), 0.0)


def options_of(where, causal, window_left, logits_soft_cap, sm_scale):
    """The four, looked at."""
    if sm_scale is not None:
        _check.number(f"flashinfer.{where}", "sm_scale", sm_scale)
    return _check.boolean(f"flashinfer.{where}", "causal", causal), _check.integer(f"flashinfer.{where}", "window_left", window_left, -1, 2**31 - 1), soft_cap_of(where, logits_soft_cap), sm_scale


def ends_of(length, device):
    """[0, length] on a device, by one kernel."""
    return torch.arange(2, dtype=torch.int32, device=device) * length


def invariant(where, fixed_split_size, disable_split_kv):
    """Programs ask for bits that do not depend on the batch by a size of splits, or by none: quern's ops have an option for it."""
    _check.boolean(f"flashinfer.{where}", "disable_split_kv", disable_split_kv)
    if fixed_split_size is not None:
        _check.integer(f"flashinfer.{where}", "fixed_split_size", fixed_split_size, -2**31, 2**31 - 1)
    return {"batch_invariant": True} if disable_split_kv or (fixed_split_size is not None and fixed_split_size > 0) else {}


def lse_for(where, q, given, return_lse, lse_base="log2", lse_layout="NH"):
    """(arguments of the op, the tensor to return) of a log-sum-exp."""
    base = one_of(where, "lse_base", lse_base, {"log2": None, "ln": None})
    one_of(where, "lse_layout", lse_layout, {"NH": None, "HN": None})
    if not _check.boolean(f"flashinfer.{where}", "return_lse", return_lse):
        refuse(where, "`return_lse` is False", lse=given)
        return {}, None
    shape = tuple(q.shape[:2]) if lse_layout == "NH" else (q.size(1), q.size(0))
    lse = torch.empty(shape, dtype=torch.float32, device=q.device) if given is None else tensor(where, "lse", given, 2)
    return {"out_lse": lse if lse_layout == "NH" else lse.mT, "lse_base": "two" if base == "log2" else "e"}, lse


def planned_dtypes(where, q_data_type, kv_data_type, data_type):
    """(q_data_type, kv_data_type) where a plan may also have the deprecated data_type: that of keys, and of q where that is not told."""
    data_type = dtype_of(where, "data_type", data_type)
    if data_type is not None:
        kv_data_type = data_type if kv_data_type is None else kv_data_type
        q_data_type = data_type if q_data_type is None or (q_data_type == "float16" and data_type == torch.bfloat16) else q_data_type
    if q_data_type is None:
        _check.fail_type(f"flashinfer.{where}", "q_data_type", None, "a dtype of torch or its name, or `data_type`")
    return q_data_type, kv_data_type


def attend(where, op, q, out, o_dtype, lse, names=NAMES, **arguments):
    """The call; (out, lse), or out alone."""
    out_arguments, returned = lse
    if out is not None:
        if o_dtype is not None and tensor(where, "out", out).dtype != o_dtype:
            raise ValueError(f"flashinfer.{where}: `out` is {str(out.dtype)[6:]}, expected {str(o_dtype)[6:]}, as `o_data_type` says")
        out_arguments = {**out_arguments, "out": out}
    elif o_dtype is not None and o_dtype != q.dtype:
        out_arguments = {**out_arguments, "out_dtype": o_dtype}
    result = call(where, op, names, q=q, **out_arguments, **arguments)
    return result if returned is None else (result[0], returned)


def whole(plan):
    """Decorates a plan(): of one that fails nothing is left but what it copied into a graph's buffers, and the plan before stands."""
    @functools.wraps(plan)
    def plan_or_nothing(self, *arguments, **keywords):
        before = dict(self.__dict__)
        try:
            return plan(self, *arguments, **keywords)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return plan_or_nothing


class Wrapper:
    """What plan() keeps for run(). In graph mode the tables are copied into buffers that stay where they are, and the op's workspace is the caller's."""

    _heads = _head_dim = _page_size = _qo_indptr_buf = None  # until plan()
    _tokens = None  # of q, where plan() knows
    _quick = None  # see _run_plainly; None from plan() to the first run()
    _backends = BACKENDS

    def __init__(self, where, float_workspace_buffer, kv_layout, use_cuda_graph, backend, buffers, **variants):
        self._where = where
        refuse_variants(where, **variants)
        one_of(where, "backend", backend, self._backends)
        one_of(where, "kv_layout", kv_layout, {"NHD": None, "HND": None})
        self._use_cuda_graph, self._kv_layout, self._backend = _check.boolean(f"flashinfer.{where}", "use_cuda_graph", use_cuda_graph), kv_layout, backend
        self.reset_workspace_buffer(float_workspace_buffer, None)
        self._buffers, self._planned = buffers, False
        for name, buffer in buffers.items():
            setattr(self, "_" + name.removesuffix("fer"), buffer)  # `_..._buf`, as SGLang reads them before a plan
            if buffer is not None or (use_cuda_graph and not name.startswith(("custom_mask", "mask_indptr"))):
                tensor(where, name, buffer, 1)

    @property
    def is_cuda_graph_enabled(self):
        return self._use_cuda_graph

    def reset_workspace_buffer(self, float_workspace_buffer, int_workspace_buffer):
        """Another workspace for graphs. quern's ops have no integer workspace."""
        self._float_workspace_buffer = tensor(self._where, "float_workspace_buffer", float_workspace_buffer)
        restated(self._where, (("int_workspace_buffer", int_workspace_buffer),))
        self.device = float_workspace_buffer.device

    def _sizes(self, **sizes):
        """Sizes of a plan by their names, each at least 1."""
        return [_check.integer(f"flashinfer.{self._where}.plan", name, n, 1, 2**31 - 1) for name, n in sizes.items()]

    def _keep(self, name, value, buffer=None):
        """A table of this plan, on the wrapper's device: the buffer of a graph with the new contents, or the tensor."""
        tensor(self._where, name, value, 1)
        if not self._use_cuda_graph:
            return value.to(self.device, non_blocking=True)
        buffer = self._buffers[buffer]
        if value.numel() > buffer.numel() or ("indices" not in name and "mask" not in name and value.numel() != buffer.numel()):
            raise ValueError(f"flashinfer.{self._where}: `{name}` has {value.numel()} elements, its buffer {buffer.numel()}: a graph has one batch size")
        buffer[:value.numel()].copy_(value, non_blocking=True)
        return buffer

    def _lengths_of(self, indptr):
        """Of each request, on the wrapper's device."""
        tensor(self._where, "indptr", indptr, 1)
        return (indptr[1:] - indptr[:-1]).to(self.device)

    def _keep_masks(self, given):
        """Masks of this plan; in graph mode in their buffers."""
        if not given or not self._use_cuda_graph:
            return {name: t.to(self.device) for name, t in given.items()}
        for name, buffer in (("mask", "custom_mask_buf"), ("mask_indptr", "mask_indptr_buf")):
            if self._buffers.get(buffer) is None:
                raise ValueError(f"flashinfer.{self._where}: `{buffer}` is None, expected the buffer of a mask in a graph")
            given[name] = self._keep("mask", given[name], buffer)
        return given

    def _options(self, causal, window_left, logits_soft_cap, sm_scale, q_data_type, kv_data_type, o_data_type, fixed_split_size, disable_split_kv, mask):
        where = f"{self._where}.plan"
        self._causal, self._window_left, self._logits_soft_cap, self._sm_scale = options_of(where, causal, window_left, logits_soft_cap, sm_scale)
        self._q_dtype = dtype_of(self._where, "q_data_type", q_data_type)
        self._kv_dtype = dtype_of(self._where, "kv_data_type", kv_data_type) or self._q_dtype
        self._o_dtype = dtype_of(self._where, "o_data_type", o_data_type)
        self._mask, self._invariant, self._planned, self._quick = mask, invariant(where, fixed_split_size, disable_split_kv), True, None

    def _check_run(self, where, q, k, heads, head_dim, names=("q", "k")):
        """What run() is given must be what plan() was told."""
        if not self._planned:
            raise RuntimeError(f"flashinfer.{where}: plan() was not called")
        for name, got, expected in ((names[0], tensor(where, names[0], q, 3).dtype, self._q_dtype), (names[1], k.dtype, self._kv_dtype)):
            if got != expected:
                raise ValueError(f"flashinfer.{where}: `{name}` is {str(got)[6:]}, expected {str(expected)[6:]}, as plan() was told, or else its default")
        if (q.size(1), q.size(2), k.size(-2)) != (heads[0], head_dim, heads[1]):
            raise ValueError(f"flashinfer.{where}: there are {q.size(1)} query heads, {k.size(-2)} of keys and head_dim {q.size(2)}, expected {heads[0]}, {heads[1]} and {head_dim}, as plan() was told")

    def _workspace(self):
        """The caller's memory, from an aligned address on, for a call that a graph captures."""
        if not self._use_cuda_graph:
            return {}
        return {"workspace": _workspace.aligned(self._float_workspace_buffer)}

    def _shared(self, window_left=None):
        """Arguments of the op that plan() decided. A mask stands in the place of causality."""
        return {"causal": self._causal and not self._mask, "window_left": self._window_left if window_left is None else window_left, "soft_cap": self._logits_soft_cap,
                **self._mask, **self._invariant, **self._workspace()}


    def _run_plainly(self, *arguments):
        """A run() with no option but `out`, 10 us less than the way that looks at each: the result, or None where that way is to be gone, which also words the
        errors."""
        if self._quick is None:
            if not self._planned or self._use_cuda_graph or self._invariant or self._o_dtype not in (None, self._q_dtype):
                return None
            self._quick = self._quick_run()
        return self._quick(self, *arguments)

    def _quick_run(self):
        """_run_plainly() with what plan() alone decides looked up: a function of the wrapper, which it does not hold (a copy has its own tables), and the arguments.
        It compares what the op could not: that plan() was told the same."""
        raise NotImplementedError


class PagedWrapper(Wrapper):
    """The same over pages."""

    def prewarm_paged_kv_stride_variant(self, variant="independent"):
        """Nothing is to be loaded after plan(): strides of k and v, equal or not, are arguments of one kernel."""
        one_of(f"{self._where}.prewarm_paged_kv_stride_variant", "variant", variant, {"independent": None})
        if not self._planned:
            raise RuntimeError(f"flashinfer.{self._where}.prewarm_paged_kv_stride_variant: plan() was not called")

    def _tables(self, tables, buffers):
        """`tables`: indptr, indices and lengths of last pages by their names."""
        self._paged_kv_indptr_buf, self._paged_kv_indices_buf, self._paged_kv_last_page_len_buf = (self._keep(name, t, b) for (name, t), b in zip(tables.items(), buffers))

    @staticmethod
    def _lengths(indptr, last_page_len, page_size):
        """Keys of each request; none of one without pages."""
        return torch.where(indptr[1:] > indptr[:-1], get_seq_lens(indptr, last_page_len, page_size), 0)

    def _run(self, where, q, k, v, q_indptr, out, lse, window_left, sinks, q_scale, k_scale, v_scale, sm_scale=None, suffix="", **options):
        """`sm_scale`, `options`: in the place of what plan() was told. `suffix`: behind the names of q, of the cache and of the scale."""
        cache = "paged_kv_cache" + suffix
        self._check_run(where, q, k, self._heads, self._head_dim, ("q" + suffix, "k" if not suffix else cache))
        if k.size(1) != self._page_size:
            raise ValueError(f"flashinfer.{where}: `{cache}` has pages of {k.size(1)}, expected {self._page_size}, as plan() was told")
        batch = self._paged_kv_indptr_buf.numel() - 1
        names = {**NAMES, "q": "q" + suffix, "k_cache": cache, "v_cache": cache}
        factors = scales(where, q, k.size(2), batch, self._sm_scale if sm_scale is None else sm_scale, q_scale, k_scale, v_scale, {"sm_scale": "sm_scale" + suffix})
        return attend(where, quern.attention.paged, q, out, self._o_dtype, lse, names, k_cache=k, v_cache=v, page_indptr=self._paged_kv_indptr_buf,
                      page_indices=self._paged_kv_indices_buf, last_page_len=self._paged_kv_last_page_len_buf, q_indptr=q_indptr, sink=sinks, **factors,
                      **{**self._shared(window_left), **options})

    def _quick_run(self):
        """For _run_plainly(q, paged_kv_cache, out, tokens). tokens: which q has to have, or None."""
        op, Tensor, q_dtype, kv_dtype, heads, head_dim = quern.attention.paged, torch.Tensor, self._q_dtype, self._kv_dtype, self._heads[0], self._head_dim
        mask, mask_indptr, standard_scale, in_order, o_dtype = self._mask.get("mask"), self._mask.get("mask_indptr"), 1 / math.sqrt(head_dim), self._kv_layout == "NHD", self._o_dtype
        page = (self._page_size, self._heads[1], head_dim) if in_order else (self._heads[1], self._page_size, head_dim)

        def run(self, q, paged_kv_cache, out, tokens):
            if (out is not None and o_dtype is not None and out.dtype is not o_dtype) or type(q) is not Tensor or q.dtype is not q_dtype or q.dim() != 3 or q.shape[1] != heads or q.shape[2] != head_dim or (tokens is not None and q.shape[0] != tokens):
                return None
            if type(paged_kv_cache) is Tensor and paged_kv_cache.dim() == 5 and paged_kv_cache.shape[1] == 2:
                k, v = paged_kv_cache.unbind(1)
            elif type(paged_kv_cache) is tuple and len(paged_kv_cache) == 2 and type(paged_kv_cache[0]) is type(paged_kv_cache[1]) is Tensor:
                k, v = paged_kv_cache
            else:
                return None
            sm_scale = standard_scale if self._sm_scale is None else self._sm_scale
            if k.dtype is not kv_dtype or k.dim() != 4 or v.dim() != 4 or k.shape[1:] != page or sm_scale == 0:
                return None
            if not in_order:
                k, v = k.transpose(1, 2), v.transpose(1, 2)
            try:
                return op(q=q, k_cache=k, v_cache=v, page_indptr=self._paged_kv_indptr_buf, page_indices=self._paged_kv_indices_buf, last_page_len=self._paged_kv_last_page_len_buf,
                          q_indptr=self._qo_indptr_buf, mask=mask, mask_indptr=mask_indptr, out=out, causal=self._causal and mask is None, window_left=self._window_left,
                          soft_cap=self._logits_soft_cap, sm_scale=sm_scale)
            except (ValueError, TypeError, NotImplementedError):
                return None

        return run

    def _capacity(self, indices, buffer):
        """The page indices that run() will see: in graph mode the whole buffer, which the size of the workspace follows."""
        return self._buffers[buffer] if self._use_cuda_graph else indices

    def _workspace_bytes(self, tokens, q_indptr):
        """Bytes of a call of this plan, wherever they begin."""
        heads, kv_heads = self._heads
        q = torch.empty((tokens, heads, self._head_dim), dtype=self._q_dtype, device=self.device)
        cache = torch.empty((1, self._page_size, kv_heads, self._head_dim), dtype=self._kv_dtype, device=self.device)
        shared = {name: value for name, value in self._shared().items() if name != "workspace"}
        out_dtype = {"out_dtype": self._o_dtype} if self._o_dtype not in (None, self._q_dtype) else {}
        size = quern.attention.paged.workspace_bytes(q=q, k_cache=cache, v_cache=cache, page_indptr=self._paged_kv_indptr_buf, page_indices=self._paged_kv_indices_buf,
                                                     last_page_len=self._paged_kv_last_page_len_buf, q_indptr=q_indptr, out_lse=True, **out_dtype, **shared)
        return size + _workspace.ALIGNMENT - 1 if size else 0


def refuse_trtllm(where, o_sf_scale, o_sf_vec_size, o_scale, mask, skip_softmax_threshold_scale_factor, kv_cache_sf, uses_shared_paged_kv_idx, bmm1_scale_log2):
    """NotImplementedError for what the functions over dense tables share, and no op has."""
    refuse(where, _FP4, o_sf_scale=o_sf_scale, o_sf_vec_size=o_sf_vec_size)
    refuse_variants(where, skip_softmax_threshold_scale_factor=skip_softmax_threshold_scale_factor, kv_cache_sf=kv_cache_sf, o_scale=None if o_scale == 1 else o_scale)
    refuse(where, "trees of drafts are masks of the prefill wrappers", mask=mask)
    refuse(where, "`bmm1_scale` may be a tensor", bmm1_scale_log2=bmm1_scale_log2)
    refuse(where, "k and v of a token lie in the same page", uses_shared_paged_kv_idx=None if _check.boolean(f"flashinfer.{where}", "uses_shared_paged_kv_idx", uses_shared_paged_kv_idx) else "False")


def one_sink(where, sinks):
    """The tensor of `sinks`, which may stand alone in a list."""
    if not isinstance(sinks, (tuple, list)):
        return sinks
    if len(sinks) != 1:
        raise ValueError(f"flashinfer.{where}: `sinks` has {len(sinks)} tensors, expected one")
    return sinks[0]


def by_scales(where, q, heads_kv, batch, bmm1_scale, bmm2_scale):
    """What scales() gives for the factor of logits and that of the result, numbers or tensors."""
    by_tensor = isinstance(bmm1_scale, torch.Tensor)
    return scales(where, q, heads_kv, batch, 1.0 if by_tensor else bmm1_scale, bmm1_scale if by_tensor else None, None, bmm2_scale,
                  {"sm_scale": "bmm1_scale", "q_scale": "bmm1_scale", "v_scale": "bmm2_scale"})


def batch_of(where, seq_lens, batch_size):
    """The batch, which the lengths have too."""
    if tensor(where, "seq_lens", seq_lens, 1).numel() != _check.integer(f"flashinfer.{where}", "batch_size", batch_size, 0, 2**31 - 1):
        raise ValueError(f"flashinfer.{where}: `seq_lens` has {seq_lens.numel()} elements, expected `batch_size`, {batch_size}")
    return batch_size


def dense_tables(where, query, kv_cache, block_tables, seq_lens, max_seq_len, bmm1_scale, bmm2_scale, window_left, out, out_dtype, sinks, kv_layout, q_indptr, max_q_len, causal, lse, names):
    """Attention over a dense table of pages. bmm1_scale: the factor of logits; bmm2_scale: that of the result. `names`: {argument of the op: the caller's}."""
    k, v = unpack(where, kv_cache, kv_layout, "kv_cache")
    tensor(where, "query", query, 3), tensor(where, "block_tables", block_tables, 2), tensor(where, "seq_lens", seq_lens, 1)
    factors = by_scales(where, query, k.size(2), seq_lens.numel(), bmm1_scale, bmm2_scale)
    return attend(where, quern.attention.paged, query, out, out_dtype, lse, k_cache=k, v_cache=v, page_table=block_tables, seq_lens=seq_lens, max_seq_kv=max_seq_len, max_seq_q=max_q_len,
                  window_left=window_left, sink=one_sink(where, sinks), q_indptr=q_indptr, causal=causal, names=names, **factors)
