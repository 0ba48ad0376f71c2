# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""SGLang's attention backend "quern": each layer's attention is one attention.paged over the token pool's own buffers, at any page size, 1 too. The pool
itself stores K and V."""
from dataclasses import dataclass

import torch
from sglang.srt.configs.model_config import AttentionArch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.mem_cache.layout.paged_view import paged_kv_view
from sglang.srt.mem_cache.memory_pool import KVWriteLoc
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool

import quern
from quern import _workspace

_WHERE = "quern.integrations.sglang"
_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}
_FP8 = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}


@dataclass
class Step:
    """What all layers of a step share. Tables have a row of pages for each request."""

    table: torch.Tensor
    window_table: torch.Tensor | None  # of the pool of layers with a window, where that is another
    window_slots: torch.Tensor | None  # of this step's tokens in it
    seq_lens: torch.Tensor
    q_indptr: torch.Tensor | None
    longest: int
    workspace: torch.Tensor | None = None


class QuernAttention(AttentionBackend):
    """Decode and extend of decoder layers, mixed steps too; CUDA graphs of decode. NotImplementedError for what there is no op for."""

    def __init__(self, model_runner):
        super().__init__()
        config = model_runner.model_config
        if config.attention_arch == AttentionArch.MLA:
            raise NotImplementedError(f"{_WHERE}: the model has latent attention (MLA), expected heads of K and V: quern has no op for it")
        if config.is_encoder_decoder or config.is_local_attention_model:
            raise NotImplementedError(f"{_WHERE}: the model has {'cross' if config.is_encoder_decoder else 'chunked local'} attention, expected decoder layers alone")
        if getattr(model_runner.kv_index_translator, "is_translating", False):
            raise NotImplementedError(f"{_WHERE}: the pool translates its ids (--enable-unified-memory), expected one whose ids are its slots")
        if model_runner.kv_cache_dtype not in (config.dtype, *_FP8) or config.dtype not in _DTYPES:
            raise NotImplementedError(f"{_WHERE}: `kv_cache_dtype` is {model_runner.kv_cache_dtype} and the model {config.dtype}, expected a model in bfloat16 or float16 and a cache of its dtype or of FP8")
        self.device, self.page_size, self.max_context = model_runner.device, model_runner.page_size, config.context_len
        self.requests, self.pool, self.dtype = model_runner.req_to_token_pool, model_runner.token_to_kv_pool, config.dtype
        self.data_type = self.kv_cache_dtype = model_runner.kv_cache_dtype
        self.needs_window_table = isinstance(self.pool, SWAKVPool) and self.pool.swa_layer_nums > 0
        self.heads = config.num_attention_heads // model_runner.tp_size, config.get_num_kv_heads(model_runner.tp_size), config.head_dim
        self._options = {"batch_invariant": True} if model_runner.server_args.enable_deterministic_inference else {}
        self.step, self._graph = None, None

    # ---- a step

    def _tables(self, forward_batch, width, table=None, window_table=None):
        """Pages of the first `width` keys of each request, into the tables that are given: (table, window_table)."""
        slots = self.requests.req_to_token[forward_batch.req_pool_indices, :width]
        windows = self.pool.translate_loc_from_full_to_swa(slots) if self.needs_window_table else None
        results = []
        for of, to in ((slots, table), (windows, window_table)):
            pages = None if of is None else of[:, ::self.page_size] // self.page_size
            if pages is None or to is None:
                results.append(None if pages is None else pages.to(torch.int32))
            else:
                to[:pages.shape[0], :pages.shape[1]] = pages
                results.append(to[:pages.shape[0]])
        return results

    def _width(self, forward_batch):
        """Keys of the longest request, on the host."""
        lengths = forward_batch.seq_lens_cpu
        return self.max_context if lengths is None else max(1, int(lengths.max()))

    def _window_slots(self, forward_batch):
        return self.pool.translate_loc_from_full_to_swa(forward_batch.out_cache_loc) if self.needs_window_table and forward_batch.out_cache_loc is not None else None

    def _refuse(self, forward_batch):
        mode = forward_batch.forward_mode
        if mode.is_target_verify() or mode.is_draft_extend_v2() or mode.is_dllm_extend() or forward_batch.spec_info is not None:
            raise NotImplementedError(f"{_WHERE}: the step is {mode.name}{'' if forward_batch.spec_info is None else ' of speculation'}, expected DECODE, EXTEND or MIXED without drafts")

    def init_forward_metadata(self, forward_batch):
        """Eager steps."""
        if forward_batch.forward_mode.is_idle():
            self.step = None
            return
        self._refuse(forward_batch)
        table, window_table = self._tables(forward_batch, self._width(forward_batch))
        q_indptr, longest = None, 1
        if not forward_batch.forward_mode.is_decode():
            q_indptr = torch.nn.functional.pad(forward_batch.extend_seq_lens.cumsum(0, dtype=torch.int32), (1, 0))
            longest = max(forward_batch.extend_seq_lens_cpu) if forward_batch.extend_seq_lens_cpu is not None else 0
        self.step = Step(table, window_table, self._window_slots(forward_batch), forward_batch.seq_lens, q_indptr, longest)

    # ---- graphs of decode: tensors of one address, which each step writes before its replay

    def init_cuda_graph_state(self, max_bs, max_num_tokens):
        """Buffers and a workspace for every step of up to max_bs requests."""
        heads_q, heads_kv, head_dim = self.heads
        width, cache = -(-self.max_context // self.page_size), _DTYPES.get(self.kv_cache_dtype) or _FP8[self.kv_cache_dtype]
        new = lambda *shape, **of: torch.zeros(*shape, device=self.device, **of)  # noqa: E731
        planned = quern.plan("attention.paged", batch=max_bs, tokens=max_bs, heads_q=heads_q, heads_kv=heads_kv, head_dim=head_dim, page_size=self.page_size, pages=width, max_pages=width,
                             device=str(self.device) if str(self.device).startswith("cuda") else None, batch_invariant=bool(self._options),
                             **{"q.dtype": _DTYPES[self.dtype], "k_cache.dtype": cache, "v_cache.dtype": cache, "page_table.present": True, "seq_lens.present": True})
        self._graph = Step(new(max_bs, width, dtype=torch.int32), new(max_bs, width, dtype=torch.int32) if self.needs_window_table else None,
                           new(max_num_tokens, dtype=torch.int64) if self.needs_window_table else None, new(max_bs, dtype=torch.int32), None, 1,
                           _workspace.empty(planned["workspace"], torch.device(self.device)))

    def get_cuda_graph_seq_len_fill_value(self):
        """Requests that pad a graph have one key: slot 0, the pool's dummy."""
        return 1

    def init_forward_metadata_out_graph(self, forward_batch, in_capture=False):
        """Fills the buffers, before a capture and before each replay."""
        if not forward_batch.forward_mode.is_decode_or_idle():
            raise NotImplementedError(f"{_WHERE}: a graph of {forward_batch.forward_mode.name} is captured, expected DECODE: others run eager")
        self._refuse(forward_batch)
        batch, fixed = forward_batch.batch_size, self._graph
        if fixed is None:
            raise RuntimeError(f"{_WHERE}: init_cuda_graph_state() was not called")
        table, window_table = self._tables(forward_batch, self._width(forward_batch), fixed.table, fixed.window_table)
        fixed.seq_lens[:batch] = forward_batch.seq_lens[:batch]
        slots = self._window_slots(forward_batch)
        if slots is not None:
            fixed.window_slots[:slots.shape[0]] = slots
            slots = fixed.window_slots[:slots.shape[0]]
        self.step = Step(table, window_table, slots, fixed.seq_lens[:batch], None, 1, fixed.workspace)

    # ---- a layer

    def _check(self, layer, others):
        for name, value in others.items():
            if value is not None and value is not False:
                raise NotImplementedError(f"{_WHERE}: layer {layer.layer_id} calls its attention with `{name}`, expected none: it is not passed on to attention.paged")
        if layer.is_cross_attention or layer.use_irope or layer.xai_temperature_len > 0 or layer.pos_encoding_mode != "NONE" or (layer.logit_cap and layer.logit_capping_method != "tanh"):
            raise NotImplementedError(f"{_WHERE}: layer {layer.layer_id} has cross attention, local attention, a temperature by length, positions in its logits or a cap that is not tanh, expected none")
        if layer.qk_head_dim != layer.v_head_dim:
            raise NotImplementedError(f"{_WHERE}: layer {layer.layer_id} has heads of {layer.qk_head_dim} and values of {layer.v_head_dim}, expected one size")

    def _attend(self, q, k, v, layer, forward_batch, save_kv_cache, sinks=None, return_lse=False, **others):
        self._check(layer, others)
        step = self.step
        if save_kv_cache and k is not None:
            self.pool.set_kv_buffer(layer, KVWriteLoc.for_batch(forward_batch, swa_loc=step.window_slots), k, v, layer.k_scale, layer.v_scale)
        caches = [paged_kv_view(buffer, self.page_size, heads, layer.head_dim)
                  for buffer, heads in zip(self.pool.get_kv_buffer(layer.layer_id), (layer.tp_k_head_num, layer.tp_v_head_num))]
        windowed = layer.sliding_window_size is not None and layer.sliding_window_size > -1
        causal = layer.attn_type == AttentionType.DECODER
        window = layer.sliding_window_size if windowed else -1
        options = {"causal": causal, "window_left": window, "window_right": -1 if causal else window, "sm_scale": layer.scaling, "soft_cap": layer.logit_cap or 0.0, "max_seq_q": step.longest,
                   "sink": sinks, **self._options}
        if self.kv_cache_dtype in _FP8 and layer.k_scale is not None:
            shape = step.seq_lens.shape[0], layer.tp_k_head_num
            options.update(k_scale=layer.k_scale.expand(shape), v_scale=layer.v_scale.expand(shape))
        if step.workspace is not None:
            options["workspace"] = step.workspace
        if return_lse or getattr(forward_batch, "mha_return_lse", False):
            options.update(out_lse=True, lse_base="e")
        table = step.window_table if windowed and step.window_table is not None else step.table
        queries = q.reshape(-1, layer.tp_q_head_num, layer.head_dim)
        result = quern.attention.paged(queries, *caches, table, step.seq_lens, q_indptr=step.q_indptr, out=torch.empty_like(queries), **options)
        return result if isinstance(result, tuple) else result.view(q.shape[0], -1)

    def forward_decode(self, q, k, v, layer, forward_batch, save_kv_cache=True, **others):
        """[tokens, heads * head_dim], one token a request. `sinks`: [heads]."""
        return self._attend(q, k, v, layer, forward_batch, save_kv_cache, **others)

    def forward_extend(self, q, k, v, layer, forward_batch, save_kv_cache=True, **others):
        """The same of any number of tokens. return_lse: also the natural logarithm of the sum of exp, [tokens, heads], and the result as [tokens, heads, head_dim]."""
        return self._attend(q, k, v, layer, forward_batch, save_kv_cache, **others)

    def support_triton(self):
        """SGLang's own helpers may be Triton's."""
        return True
