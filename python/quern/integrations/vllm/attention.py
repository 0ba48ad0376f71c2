# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""vLLM's attention backend QUERN: a step's append by slots is one kv_cache.append_paged, its attention one attention.paged, whatever requests it mixes.

vLLM's cache of a layer is [blocks, heads_kv, block_size, 2 * head_size] of any strides, K and V of a token side by side."""
import copy
import functools
from dataclasses import dataclass

import torch
from vllm import envs
from vllm.config import get_current_vllm_config_or_none
from vllm.utils.torch_utils import is_quantized_kv_cache
from vllm.v1.attention.backend import AttentionBackend, AttentionCGSupport, AttentionImpl, AttentionMetadataBuilder, AttentionType
from vllm.v1.attention.backends.utils import get_num_attention_heads_from_layers

import quern
from quern import _check, _workspace
from quern.integrations.vllm import _settings, warmup

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}
_FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
_WORDS = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}
_ENCODERS = (AttentionType.ENCODER_ONLY, AttentionType.ENCODER)
_WHERE = "quern.integrations.vllm"


@functools.lru_cache(maxsize=None)
def refusal(head_size, dtype, cache_dtype, arch):
    """Why attention.paged does not run such a problem there, in the library's words; None: it does."""
    try:
        quern.plan("attention.paged", batch=1, tokens=1, heads_q=1, heads_kv=1, head_dim=head_size, page_size=16, pages=1, max_pages=1, arch=arch,
                   **{"q.dtype": dtype, "k_cache.dtype": cache_dtype, "v_cache.dtype": cache_dtype, "page_table.present": True, "seq_lens.present": True})
    except (ValueError, TypeError, NotImplementedError) as error:
        return str(error)
    return None


class QuernBackend(AttentionBackend):
    """What `--attention-backend QUERN` selects."""

    supported_dtypes = list(_DTYPES)
    supported_kv_cache_dtypes = ["auto", "float16", "bfloat16", *_FP8]
    forward_includes_kv_cache_update = False

    @staticmethod
    def get_name():
        return "QUERN"

    @staticmethod
    def get_impl_cls():
        return QuernImpl

    @staticmethod
    def get_builder_cls():
        return QuernBuilder

    @classmethod
    def supports_head_size(cls, head_size):
        return refusal(head_size, "bf16", "bf16", "sm_90a") is None

    @classmethod
    def supports_compute_capability(cls, capability):
        return quern.attention.paged.is_compute_capability_supported((capability.major, capability.minor))

    @classmethod
    def supports_attn_type(cls, attn_type):
        return attn_type in (AttentionType.DECODER, AttentionType.ENCODER_DECODER, *_ENCODERS)

    @classmethod
    def supports_sink(cls):
        return True

    @classmethod
    def supports_sliding_window(cls):
        return True

    @classmethod
    def supports_non_causal(cls):
        return True

    @classmethod
    def supports_batch_invariance(cls):
        return True

    @classmethod
    def supports_per_head_quant_scales(cls):
        return True

    @classmethod
    def supports_combination(cls, head_size, dtype, kv_cache_dtype, block_size, use_mla, has_sink, use_sparse, use_mm_prefix, device_capability):
        """The reason why quern has no kernel for these together, or None."""
        if kv_cache_dtype in ("float16", "bfloat16") and kv_cache_dtype != str(dtype)[6:]:
            return f"kv_cache_dtype is {kv_cache_dtype} and the model {str(dtype)[6:]}, expected a cache of the model's dtype or of FP8"
        if dtype not in _DTYPES or kv_cache_dtype not in (None, *cls.supported_kv_cache_dtypes):
            return None  # supported_dtypes and supported_kv_cache_dtypes say so
        cache = _WORDS[_FP8[kv_cache_dtype]] if kv_cache_dtype in _FP8 else _DTYPES[dtype]
        return refusal(head_size, _DTYPES[dtype], cache, _check.arch_of("attention.paged", (device_capability.major, device_capability.minor)))


@dataclass
class QuernMetadata:
    """A step of a group of layers. Tensors are vLLM's own buffers, which a captured graph reads again at each replay."""

    num_actual_tokens: int
    max_query_len: int
    query_start_loc: torch.Tensor
    seq_lens: torch.Tensor
    block_table: torch.Tensor
    slot_mapping: torch.Tensor
    causal: bool
    workspace: torch.Tensor | None


class QuernBuilder(AttentionMetadataBuilder[QuernMetadata]):
    """Plans nothing on the host: lengths are read on the device, so that one graph serves every step within its shapes."""

    _cudagraph_support = AttentionCGSupport.ALWAYS
    supports_update_block_table = True
    supports_draft_decode_metadata_update = True  # there is nothing to update
    requires_block_table_width = True

    def __init__(self, kv_cache_spec, layer_names, vllm_config, device, block_table_width=None):
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        compilation = vllm_config.compilation_config
        # Attention is captured in full graphs alone. Elsewhere the workspace is the stream's.
        self.workspace = self._fixed_workspace(block_table_width) if compilation.cudagraph_mode.has_full_cudagraphs() else None

    def _fixed_workspace(self, block_table_width):
        """Memory for every step: what a call needs grows with its requests and the width of their table, and is most without a window."""
        config, spec = self.vllm_config, self.kv_cache_spec
        heads_kv = spec.num_kv_heads
        heads_q = get_num_attention_heads_from_layers(config, self.layer_names) or config.model_config.get_num_attention_heads(config.parallel_config)
        batch = max(config.scheduler_config.max_num_seqs, config.compilation_config.max_cudagraph_capture_size or 0)
        width = block_table_width or -(-config.model_config.max_model_len // spec.block_size)
        dtype = _DTYPES[config.model_config.dtype]
        cache = dtype if spec.dtype in _DTYPES else _WORDS[_FP8[config.cache_config.cache_dtype]]
        words = {"q.dtype": dtype, "k_cache.dtype": cache, "v_cache.dtype": cache, "page_table.present": True, "seq_lens.present": True, "q_indptr.present": True,
                 "batch_invariant": bool(envs.VLLM_BATCH_INVARIANT)}
        planned = quern.plan("attention.paged", batch=batch, tokens=max(batch, config.scheduler_config.max_num_batched_tokens), heads_q=heads_q, heads_kv=heads_kv,
                             head_dim=spec.head_size, page_size=spec.block_size, pages=width, max_pages=width, device=device_of(self.device), **words)
        return _workspace.empty(planned["workspace"], self.device)

    def build(self, common_prefix_len, common_attn_metadata, fast_build=False):
        common = common_attn_metadata
        if not isinstance(common.causal, bool):
            raise NotImplementedError(f"{_WHERE}: `causal` is a tensor with a number for each request, expected one bool for all: attention.paged has no causality by request")
        if common_prefix_len:
            raise NotImplementedError(f"{_WHERE}: `common_prefix_len` is {common_prefix_len}, expected 0: a shared prefix is not attended to apart")
        return QuernMetadata(common.num_actual_tokens, common.max_query_len, common.query_start_loc, common.seq_lens, common.block_table_tensor, common.slot_mapping, common.causal, self.workspace)

    def update_block_table(self, metadata, blk_table, slot_mapping):
        updated = copy.copy(metadata)
        updated.block_table, updated.slot_mapping = blk_table, slot_mapping
        return updated

    def update_draft_decode_metadata(self, metadata):
        """Nothing: metadata is vLLM's tensors alone."""


def device_of(device):
    """quern's name of a device of torch; None: that of QN_DEVICE."""
    return str(device) if device.type == "cuda" else None


class QuernImpl(AttentionImpl[QuernMetadata]):
    """Attention of one layer."""

    def __init__(self, num_heads, head_size, scale, num_kv_heads=None, alibi_slopes=None, sliding_window=None, kv_cache_dtype="auto", logits_soft_cap=None,
                 attn_type=AttentionType.DECODER, kv_sharing_target_layer_name=None, sinks=None):
        if scale == 0:
            raise ValueError(f"{_WHERE}: `scale` is 0, expected another number: it would be 1 / sqrt(head_size)")
        if sinks is not None and sinks.shape != (num_heads,):
            raise ValueError(f"{_WHERE}: `sinks` has shape {list(sinks.shape)}, expected {[num_heads]}")
        if is_quantized_kv_cache(kv_cache_dtype) and (kv_cache_dtype not in _FP8 or attn_type in _ENCODERS):
            raise NotImplementedError(f"{_WHERE}: `kv_cache_dtype` is {kv_cache_dtype} of a layer of type {attn_type}, expected one of {', '.join(_FP8)} of a layer with a cache")
        self.num_heads, self.head_size, self.scale, self.num_kv_heads = num_heads, head_size, float(scale), num_kv_heads or num_heads
        self.attn_type, self.kv_cache_dtype, self.kv_sharing_target_layer_name = attn_type, kv_cache_dtype, kv_sharing_target_layer_name
        self.sinks, self.soft_cap, self.window = sinks, logits_soft_cap or 0.0, -1 if sliding_window is None else sliding_window - 1
        self.fp8 = _FP8.get(kv_cache_dtype)
        self._bound = self._halves = None
        self._options = {"batch_invariant": True} if envs.VLLM_BATCH_INVARIANT else {}
        if alibi_slopes is not None:
            self._options.update(hooks="alibi", hook_tensors=[torch.tensor(alibi_slopes, dtype=torch.float32)])
        config = get_current_vllm_config_or_none()
        if config is not None:
            _settings.settings(config)
            warmup.KERNELS.register_warmup()

    def case(self, dtype):
        """Words of warm-up for the layer's calls of attention.paged; `dtype`: the model's."""
        dtype = _DTYPES[dtype]
        cache = _WORDS[self.fp8] if self.fp8 else dtype
        words = {"heads_q": self.num_heads, "heads_kv": self.num_kv_heads, "head_dim": self.head_size, "q.dtype": dtype, "k_cache.dtype": cache, "v_cache.dtype": cache,
                 "sink.present": int(self.sinks is not None), "window_left": self.window, "soft_cap": self.soft_cap, "k_scale.present": int(bool(self.fp8)), "v_scale.present": int(bool(self.fp8))}
        if self.sinks is not None:
            words["sink.dtype"] = {torch.float32: "f32", **_DTYPES}[self.sinks.dtype]
        return words

    def _caches(self, kv_cache):
        """K and V as [blocks, block_size, heads_kv, head_size], views of the layer's cache."""
        if kv_cache is not self._bound:
            if kv_cache.dim() != 4 or kv_cache.shape[1] != self.num_kv_heads or kv_cache.shape[3] != 2 * self.head_size:
                raise NotImplementedError(f"{_WHERE}: `kv_cache` has shape {list(kv_cache.shape)}, expected [blocks, {self.num_kv_heads}, block_size, {2 * self.head_size}]: "
                                          "K and V of one head size, side by side")
            whole = kv_cache.view(self.fp8) if self.fp8 else kv_cache
            self._bound, self._halves = kv_cache, whole.transpose(1, 2).split(self.head_size, dim=-1)
        return self._halves

    def do_kv_cache_update(self, layer, key, value, kv_cache, slot_mapping):
        """Appends a step's keys and values [tokens, heads_kv, head_size]; those behind slot_mapping's are padding."""
        if self.attn_type in _ENCODERS:
            return
        k_cache, v_cache = self._caches(kv_cache)
        tokens = slot_mapping.shape[0]
        scales = {"k_scale": layer._k_scale.reshape(-1), "v_scale": layer._v_scale.reshape(-1)} if self.fp8 else {}
        quern.kv_cache.append_paged(key[:tokens], value[:tokens], k_cache, v_cache, slot_mapping=slot_mapping, **scales)

    def forward(self, layer, query, key, value, kv_cache, attn_metadata, output, output_scale=None, output_block_scale=None):
        """output [tokens, heads, head_size] of query over the cache. Rows behind the step's tokens are left as they are."""
        if output_scale is not None or output_block_scale is not None:
            raise NotImplementedError(f"{_WHERE}: `{'output_scale' if output_scale is not None else 'output_block_scale'}` is given, expected None: attention.paged writes the model's dtype")
        if attn_metadata is None:  # vLLM measures memory
            return output.fill_(0)
        m = attn_metadata
        causal = m.causal and self.attn_type not in _ENCODERS
        seen = {"causal": causal, "window_left": self.window, "window_right": -1 if causal else self.window, "sm_scale": self.scale, "soft_cap": self.soft_cap, "max_seq_q": m.max_query_len}
        if self.attn_type in _ENCODERS:
            quern.attention.ragged(query, key, value, m.query_start_loc, m.query_start_loc, sink=self.sinks, out=output, **seen, **self._options)
            return output
        k_cache, v_cache = self._caches(kv_cache)
        scales = {}
        if self.fp8:
            shape = m.seq_lens.shape[0], self.num_kv_heads
            scales = {"k_scale": layer._k_scale.expand(shape), "v_scale": layer._v_scale.expand(shape)}
        if m.workspace is not None:
            scales["workspace"] = m.workspace
        quern.attention.paged(query, k_cache, v_cache, m.block_table, m.seq_lens, q_indptr=m.query_start_loc, sink=self.sinks, out=output, **seen, **scales, **self._options)
        return output
