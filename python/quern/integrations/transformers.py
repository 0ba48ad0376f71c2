# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern inside a model of transformers: enable(model), disable(model). What is replaced and what is not: docs/transformers.md.

enable() looks at every module first. One that it does not know is an error, and nothing is replaced then. It sets `forward` of instances and
transformers' attention implementation to "quern"; weights, classes and modules stay as they are."""
import functools
import os
import sys
import types

import torch
from torch import nn
from transformers import activations, masking_utils, modeling_utils
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.utils import can_return_tuple

import quern
import quern.torch  # torch.compile follows the calls

__all__ = ["enable", "disable"]
_ME = "quern.integrations.transformers"
# What classes of transformers' module models.KEY.modeling_KEY begin with.
_FAMILIES = {"llama": "Llama", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma2": "Gemma2", "gemma3": "Gemma3"}
_GATED = {activations.SiLUActivation: quern.activation.silu_and_mul, nn.SiLU: quern.activation.silu_and_mul,
          activations.GELUTanh: quern.activation.gelu_tanh_and_mul, activations.GELUActivation: quern.activation.gelu_and_mul}
_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16"}


def _kept(function):
    """Tensors that many layers and steps share. One is kept for the stream that made it, and none of a graph that is being recorded."""
    remembered = functools.lru_cache(maxsize=32)(lambda stream, *arguments: function(*arguments))

    def call(*arguments):
        if torch.compiler.is_compiling() or (arguments[-1].type == "cuda" and torch.cuda.is_current_stream_capturing()):
            return function(*arguments)
        return remembered(torch.cuda.current_stream(arguments[-1]) if arguments[-1].type == "cuda" else None, *arguments)

    return call


# ---- attention, as transformers calls what is registered


@_kept
def _step(batch, queries, keys, device):
    """The cache of a request is one page of all its keys: page_table, seq_lens, q_indptr."""
    ints = lambda *of: torch.arange(*of, dtype=torch.int32, device=device)  # noqa: E731
    return ints(batch)[:, None], torch.full((batch,), keys, dtype=torch.int32, device=device), ints(batch + 1) * queries if queries > 1 else None


@_kept
def _first_bytes(batch, row, device):
    return torch.arange(batch + 1, dtype=torch.int32, device=device) * row


def _beside(tensor, sizes, make):
    """make(), once for all layers of a step. The result stays with `tensor`, which is of that step alone.
    It must not outlive the step: continuous batching runs its steps in the memory of its graphs, and a replay writes there. A graph that is recorded makes its own."""
    if torch.compiler.is_compiling():
        return make()
    key = (*sizes, tensor.device.type == "cuda" and torch.cuda.is_current_stream_capturing())
    if getattr(tensor, "quern_beside", (None,))[0] != key:
        tensor.quern_beside = (key, make())
    return tensor.quern_beside[1]


def _packed(mask):
    """A mask of bool [batch, 1, queries, keys] as quern's, u8 [batch, 1, 1, bytes]: bit i * keys + j of each request, from a byte of its own."""
    rows = mask.reshape(mask.shape[0], -1)
    rows = nn.functional.pad(rows, (0, -rows.shape[1] % 8)).view(mask.shape[0], 1, 1, -1, 8)
    return (rows * (1 << torch.arange(8, device=mask.device)).to(torch.uint8)).sum(-1, dtype=torch.uint8)


def _bits(mask, batch, queries, keys):
    """`mask` and `mask_indptr` of attention.paged, of what mask() made or of a caller's mask of bool."""
    if mask.dtype == torch.bool:
        if mask.shape not in ((batch, 1, queries, keys), (1, 1, queries, keys)):
            raise ValueError(f"{_ME}: `attention_mask` has shape {list(mask.shape)}, expected {[batch, 1, queries, keys]}, one mask for all heads")
        mask = _packed(mask.expand(batch, 1, queries, keys))
    elif mask.dtype == torch.uint8:
        if mask.shape != (batch, 1, 1, -(-queries * keys // 8)):
            raise ValueError(f"{_ME}: `attention_mask` of uint8 has shape {list(mask.shape)}, expected {[batch, 1, 1, -(-queries * keys // 8)]}, the bits of {queries} queries "
                             f"and {keys} keys as mask() makes them, or torch.bool")
    else:
        raise NotImplementedError(f"{_ME}: `attention_mask` of 4 dims is {mask.dtype}, expected torch.bool: numbers that are added to logits need a hook (docs/own_ops.md)")
    return mask.reshape(-1), _first_bytes(batch, mask.shape[3], mask.device)


def mask(batch_size, q_length, kv_length, q_offset=0, kv_offset=0, attention_mask=None, allow_is_causal_skip=True, **arguments):
    """None where attention.paged needs no mask: causality and a window whose last query stands at the last key, and no padding. Else bits, packed once for all layers."""
    if allow_is_causal_skip and q_offset + q_length == kv_offset + kv_length:
        padding = None if attention_mask is None else attention_mask[:, kv_offset:kv_offset + kv_length]
        # A graph that is traced or recorded serves other masks too
        if padding is None or (not masking_utils.is_tracing(padding) and bool(padding.all())):
            return None
    return _packed(masking_utils.sdpa_mask(batch_size, q_length, kv_length, q_offset, kv_offset, attention_mask=attention_mask,
                                           **{**arguments, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}).expand(batch_size, 1, q_length, kv_length))


def _check_call(module, query, dropout, is_causal, others):
    _check_inference(module, query)
    if dropout:
        raise NotImplementedError(f"{_ME}: dropout is {dropout}, expected 0: attention.paged drops nothing")
    if others.get("output_attentions"):
        raise NotImplementedError(f"{_ME}: output_attentions is asked for, expected False: attention.paged never writes the probabilities to memory")
    if not (getattr(module, "is_causal", True) if is_causal is None else is_causal):
        raise NotImplementedError(f"{_ME}: {type(module).__name__} is not causal, expected causal self-attention")
    for name in ("s_aux", "position_bias", "head_mask"):
        if others.get(name) is not None:
            raise NotImplementedError(f"{_ME}: {type(module).__name__} calls its attention with `{name}`, expected none: it is not passed on to attention.paged")


def attend(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, sliding_window=None, is_causal=None, **others):
    """What is registered as transformers' attention "quern": query [batch, heads_q, queries, head_dim], keys and values [batch, heads_kv, keys, head_dim]."""
    _check_call(module, query, dropout, is_causal, others)
    batch, heads, queries, head_dim = query.shape
    keys = key.shape[2]
    page_table, seq_lens, q_indptr = _step(batch, queries, keys, query.device)
    if attention_mask is None:
        seen = {"causal": True, "window_left": -1 if sliding_window is None else sliding_window - 1}
    else:
        seen = dict(zip(("mask", "mask_indptr"), _bits(attention_mask, batch, queries, keys)))
    out = quern.attention.paged(query.transpose(1, 2).reshape(batch * queries, heads, head_dim), key.transpose(1, 2), value.transpose(1, 2), page_table, seq_lens,
                                q_indptr=q_indptr, sm_scale=scaling or 0.0, soft_cap=softcap or 0.0, max_seq_q=queries, **seen)
    return out.view(batch, queries, heads, head_dim), None


def _page_table(read_index, keys_indptr, max_keys, block_size):
    """The blocks of each request. read_index has the slot of each of its keys, so every block_size-th slot names a block."""
    first = torch.arange(0, max_keys, block_size, dtype=torch.int32, device=read_index.device)
    at = (keys_indptr[:-1, None] + first).clamp(max=read_index.shape[0] - 1)
    return (read_index[at] // block_size).int()


def attend_paged(module, query, key, value, attention_mask, scaling=None, dropout=0.0, softcap=None, sliding_window=None, is_causal=None, *, cache=None, cu_seq_lens_q=None,
                 cu_seq_lens_k=None, max_seqlen_q=0, max_seqlen_k=0, read_index=None, write_index=None, block_table=None, **others):
    """What is registered as transformers' attention "paged|quern", which continuous batching calls: the new tokens of all requests in one row of
    query [1, heads_q, tokens, head_dim], key and value [1, heads_kv, tokens, head_dim], their slots in `cache` in write_index, those of all keys in read_index.

    A layer without a window appends its tokens and reads the cache where it lies. One with a window has a ring of slots, where new tokens
    replace old ones that the step still needs: transformers gathers its keys first. A step without past keys reads no cache."""
    _check_call(module, query, dropout, is_causal, others)
    if cache is None:
        raise ValueError(f"{_ME}: paged|quern is called without a cache, expected a call of generate_batch: set_attn_implementation(\"quern\") is for all others")
    if attention_mask is not None or block_table is not None:
        raise NotImplementedError(f"{_ME}: paged|quern is called with {'a mask' if block_table is None else 'a block table'}, expected read_index and write_index alone")
    group, layer = cache.layer_index_to_group_indices[module.layer_idx]
    if isinstance(cu_seq_lens_k, dict):
        kind = "full_attention" if cache.sliding_windows[module.layer_idx] == 1 else "sliding_attention"
        cu_seq_lens_k, max_seqlen_k = cu_seq_lens_k[kind], max_seqlen_k[kind]
    tokens = query.shape[2]
    q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))
    options = {"causal": True, "window_left": -1 if sliding_window is None else sliding_window - 1, "sm_scale": scaling or 0.0, "soft_cap": softcap or 0.0, "max_seq_q": max_seqlen_q}
    if read_index[group].shape[0] and cache.sliding_windows[module.layer_idx] == 1:
        k_cache, v_cache = (c[layer].view(-1, cache.block_size, *k.shape[1:]) for c in (cache.key_cache, cache.value_cache))
        quern.kv_cache.append_paged(k, v, k_cache, v_cache, slot_mapping=write_index[group])
        table, seq_lens = _beside(read_index[group], (max_seqlen_k, cache.block_size),
                                  lambda: (_page_table(read_index[group], cu_seq_lens_k, max_seqlen_k, cache.block_size), cu_seq_lens_k.diff()))
        out = quern.attention.paged(q, k_cache, v_cache, table, seq_lens, q_indptr=cu_seq_lens_q, max_seq_kv=max_seqlen_k, **options)
    else:
        k, v = cache.update(key_states=key, value_states=value, layer_idx=module.layer_idx, read_index=read_index, write_index=write_index)
        out = quern.attention.ragged(q, k, v, cu_seq_lens_q, cu_seq_lens_k, **options)
    return out.view(1, tokens, *q.shape[1:]), None


modeling_utils.AttentionInterface.register("quern", attend)
modeling_utils.AttentionInterface.register("paged|quern", attend_paged)
masking_utils.AttentionMaskInterface.register("quern", mask)


# ---- what takes the place of forward


def _check_inference(module, *tensors):
    if module.training:
        raise RuntimeError(f"{_ME}: {type(module).__name__} is in training mode, expected model.eval(): the ops have no dropout and attention has no gradients")
    if torch.is_grad_enabled() and any(t.requires_grad for t in tensors):
        raise RuntimeError(f"{_ME}: {type(module).__name__} is called while torch records gradients, expected torch.no_grad() or torch.inference_mode(): attention has none")


def _rows(x):
    return x.reshape(-1, x.shape[-1])


def _linear(self, input, out=None):
    _check_inference(self, input, self.weight)
    return quern.gemm.dense(_rows(input), self.weight, self.bias, out=out).view(*input.shape[:-1], self.out_features)


def _norm(eps, weight_bias):
    def forward(self, hidden_states):
        _check_inference(self, hidden_states, self.weight)
        return quern.norm.rms_norm(_rows(hidden_states), self.weight, eps=eps, weight_bias=weight_bias).view(hidden_states.shape)
    return forward


def _mlp(gated):
    def forward(self, x):
        rows, n = _rows(x), self.gate_proj.out_features
        both = rows.new_empty(rows.shape[0], 2 * n)
        self.gate_proj(rows, out=both[:, :n])
        self.up_proj(rows, out=both[:, n:])
        return self.down_proj(gated(both)).view(x.shape)
    return forward


def _rotary(self, x, *positions, **keywords):
    """The angles are transformers', for it knows how models scale them; but in f32, and only the turning rounds."""
    return type(self).forward(self, x.new_empty(0, dtype=torch.float32), *positions, **keywords)


def _table_rows(tokens, rows, device):
    """The row of cos and sin of each token; requests may share them."""
    return torch.arange(tokens, device=device) % rows


def _attention(soft_cap, eager):
    def forward(self, hidden_states, position_embeddings, attention_mask=None, past_key_values=None, **others):
        shape = hidden_states.shape[:-1]
        q, k, v = (project(hidden_states).view(*shape, -1, self.head_dim) for project in (self.q_proj, self.k_proj, self.v_proj))
        if hasattr(self, "q_norm"):
            q, k = self.q_norm(q), self.k_norm(k)
        cos, sin = (table.reshape(-1, self.head_dim)[:, :self.head_dim // 2] for table in position_embeddings)
        flat_q, flat_k = q.view(-1, *q.shape[2:]), k.view(-1, *k.shape[2:])
        sizes = flat_q.shape[0], cos.shape[0], q.device
        rows = _beside(position_embeddings[0], sizes, lambda: _table_rows(*sizes))
        quern.rope.rope(flat_q, flat_k, rows, cos, sin, q_out=flat_q, k_out=flat_k)
        k, v = k.transpose(1, 2), v.transpose(1, 2)
        if past_key_values is not None:
            k, v = past_key_values.update(k, v, self.layer_idx)
        attend_by = modeling_utils.ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager)
        out, probabilities = attend_by(self, q.transpose(1, 2), k, v, attention_mask, dropout=0.0, scaling=self.scaling,
                                       sliding_window=getattr(self, "sliding_window", None), softcap=soft_cap, **others)
        return self.o_proj(out.reshape(*shape, -1)), probabilities
    return forward


def _capped_logits(original):
    """The forward pass of a language model whose logits have a soft cap."""
    @functools.wraps(original)
    @can_return_tuple
    def forward(self, input_ids=None, attention_mask=None, position_ids=None, past_key_values=None, inputs_embeds=None, labels=None, use_cache=None, logits_to_keep=0,
                **others):
        outputs = self.model(input_ids=input_ids, attention_mask=attention_mask, position_ids=position_ids, past_key_values=past_key_values,
                             inputs_embeds=inputs_embeds, use_cache=use_cache, **others)
        kept = slice(-logits_to_keep, None) if isinstance(logits_to_keep, int) else logits_to_keep
        logits = self.lm_head(outputs.last_hidden_state[:, kept, :])
        rows = _rows(logits)
        quern.elementwise.soft_cap(rows, self.config.final_logit_softcapping, out=rows)
        loss = None if labels is None else self.loss_function(logits, labels, self.vocab_size, **others)
        return CausalLMOutputWithPast(loss=loss, logits=logits, past_key_values=outputs.past_key_values, hidden_states=outputs.hidden_states,
                                      attentions=outputs.attentions)
    return forward


# ---- what takes whose place


class _Refused(Exception):
    """Why a module is not covered."""


@functools.lru_cache(maxsize=None)
def _plan(op, words):
    """What the library itself says of a problem, before anything is replaced."""
    try:
        quern.plan(op, **dict(words))
    except (ValueError, TypeError, NotImplementedError) as error:
        raise _Refused(str(error)) from None


def _plannable(op, **words):
    _plan(op, tuple(words.items()))


def _for_linear(module, dtype):
    _plannable("gemm.dense", m=1, n=module.out_features, k=module.in_features, **{"a.dtype": dtype})
    return _linear


def _for_norm(weight_bias, module, dtype):
    _plannable("norm.rms_norm", tokens=1, hidden=module.weight.shape[0], **{"x.dtype": dtype})
    return _norm(module.eps if hasattr(module, "eps") else module.variance_epsilon, weight_bias)


def _for_mlp(module, dtype):
    gated = _GATED.get(type(module.act_fn))
    if gated is None:
        raise _Refused(f"its activation is {type(module.act_fn).__name__}, expected one of {', '.join(sorted({t.__name__ for t in _GATED}))}")
    return _mlp(gated)


def _for_attention(capped, module, dtype):
    if not module.is_causal or not getattr(module.config, "is_causal", True):
        raise _Refused("it is not causal, expected causal self-attention")
    heads = module.q_proj.out_features // module.head_dim
    _plannable("attention.paged", batch=1, tokens=1, heads_q=heads, heads_kv=heads // module.num_key_value_groups, head_dim=module.head_dim, **{"q.dtype": dtype})
    return _attention(module.attn_logit_softcapping if capped else None, sys.modules[type(module).__module__].eager_attention_forward)


def _for_language_model(module, dtype):
    return _capped_logits(type(module).forward) if getattr(module.config, "final_logit_softcapping", None) is not None else None


def _rules(model):
    """{class of a module: what gives its new forward, or None where that stays}."""
    modeling = type(model).__module__
    prefix = _FAMILIES.get(modeling.rpartition(".modeling_")[2])
    if prefix is None or not modeling.startswith("transformers.models."):
        raise NotImplementedError(f"{_ME}: the model is {type(model).__name__}, expected one of {', '.join(sorted(_FAMILIES.values()))}")
    of = lambda *names: {getattr(sys.modules[modeling], prefix + name, None) for name in names}  # noqa: E731
    keep, gemma = (lambda module, dtype: None), prefix.startswith("Gemma")
    rules = dict.fromkeys({nn.ModuleList, nn.Embedding, *_GATED} | of("DecoderLayer", "TextScaledWordEmbedding", "TextModel" if prefix == "Gemma3" else "Model"), keep)
    rules.update(dict.fromkeys(of("RMSNorm"), functools.partial(_for_norm, float(gemma))))
    rules.update(dict.fromkeys(of("Attention"), functools.partial(_for_attention, prefix == "Gemma2")))
    rules.update(dict.fromkeys(of("MLP"), _for_mlp))
    rules.update(dict.fromkeys(of("RotaryEmbedding"), lambda module, dtype: _rotary))
    rules.update(dict.fromkeys(of("ForCausalLM"), _for_language_model))
    return {nn.Linear: _for_linear, **rules}


def _refuse(name, module, reason):
    raise NotImplementedError(f"{_ME}: `{name or 'the model'}` ({type(module).__name__}): {reason}; nothing is replaced") from None


def _replacements(model, rules):
    """[(module, its new forward)], or an error that names the first module which is not covered."""
    dtype = model.dtype
    if dtype not in _DTYPES:
        raise TypeError(f"{_ME}: the model is {dtype}, expected torch.bfloat16 or torch.float16, which attention.paged takes: model.to(torch.bfloat16); nothing is replaced")
    found = []
    for name, module in model.named_modules():
        if type(module) not in rules:
            _refuse(name, module, f"no rule for it, expected one of {', '.join(sorted(t.__name__ for t in rules if t is not None))}")
        if "forward" in vars(module):
            _refuse(name, module, "its `forward` is replaced already, by accelerate's hooks or by hand")
        for key, parameter in module.named_parameters(recurse=False):
            if type(parameter.data) is not torch.Tensor or parameter.dtype != dtype:
                _refuse(f"{name}.{key}", module, f"it is a {type(parameter.data).__name__} of {parameter.dtype}, expected a dense tensor of {dtype} as the model")
            if parameter.device.type != "cuda" and not (parameter.device.type == "cpu" and os.environ.get("QN_DEVICE", "").startswith("emu")):
                _refuse(f"{name}.{key}", module, f"it lies on {parameter.device}, expected a GPU, or the host with QN_DEVICE=emu")
        try:
            forward = rules[type(module)](module, _DTYPES[dtype])
        except _Refused as why:
            _refuse(name, module, str(why))
        if forward is not None:
            found.append((module, forward))
    return found


def enable(model):
    """Lets quern compute the layers of `model`, a Llama, Qwen2, Qwen3, Gemma 2 or Gemma 3 (text) in bf16 or f16, in eval mode. Returns it.
    NotImplementedError names the first module that is not covered."""
    if "_quern" in vars(model):
        raise ValueError(f"{_ME}: the model is enabled already")
    rules = _rules(model)
    if model.training:
        raise ValueError(f"{_ME}: the model is in training mode, expected model.eval(): the ops have no dropout and attention has no gradients; nothing is replaced")
    if model.config.output_attentions:
        raise NotImplementedError(f"{_ME}: config.output_attentions is True, expected False: attention.paged never writes the probabilities to memory; nothing is replaced")
    found, before = _replacements(model, rules), model.config._attn_implementation
    model.set_attn_implementation("quern")
    for module, forward in found:
        module.forward = types.MethodType(forward, module)
    model._quern = (before, [(module, module.forward) for module, _ in found])
    return model


def disable(model):
    """Takes back what enable() did. Returns the model."""
    if "_quern" not in vars(model):
        raise ValueError(f"{_ME}: the model is not enabled")
    before, replaced = model._quern
    for module, forward in replaced:
        if vars(module).get("forward") != forward:
            raise RuntimeError(f"{_ME}: `forward` of a {type(module).__name__} was replaced after enable(), expected that to be taken back first")
    for module, _ in replaced:
        del module.forward
    model.set_attn_implementation(before)
    del model._quern
    return model
