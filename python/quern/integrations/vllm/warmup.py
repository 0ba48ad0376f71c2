# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern's kernels among those that vLLM compiles before it serves (its JitWarmupRegistry): a model file of quern's (docs/warm.md), made from vLLM's configuration."""
import json
import os
import tempfile

import torch
from vllm import envs
from vllm.config import get_layers_from_vllm_config
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.warmup.jit_warmup import VllmJitKernel

import quern
from quern.integrations.vllm import _settings

_DTYPES = {torch.bfloat16: "bf16", torch.float16: "f16", torch.float32: "f32"}
_GATED = {"silu": "silu_and_mul", "gelu": "gelu_and_mul", "gelu_pytorch_tanh": "gelu_tanh_and_mul"}
_PAGES = "1..1048576"

# Calls of linear layers, as they are built: {JSON of a call}. vLLM's configuration does not tell their shapes.
LINEAR = set()


def _attention(vllm_config, dtype):
    """Calls of the layers whose attention is quern's, each kind once."""
    kinds = []
    for layer in get_layers_from_vllm_config(vllm_config, Attention).values():
        for impl in layer.impl.get_impl_variants():
            case = impl.case(dtype) if hasattr(impl, "case") else None
            if case is not None and case not in kinds:
                kinds.append(case)
    table = {"page_table.present": 1, "seq_lens.present": 1, "q_indptr.present": 1}
    for case in kinds:
        yield "attention", "attention.paged", {"batch": "batch", "tokens": "tokens", "page_size": "page_size", "pages": "pages", "max_pages": "max_pages", "max_seq_q": "longest",
                                               "causal": 1, **table, **case}
        yield "append", "kv_cache.append_paged", {"tokens": "tokens", "heads_kv": case["heads_kv"], "head_dim": case["head_dim"], "page_size": "page_size", "pages": "pages",
                                                  "k.dtype": case["q.dtype"], "k_cache.dtype": case["k_cache.dtype"], "v_cache.dtype": case["k_cache.dtype"], "slot_mapping.present": 1,
                                                  "slot_mapping.dtype": "i64", "k_scale.present": case["k_scale.present"], "v_scale.present": case["v_scale.present"], "k_scales": 1, "v_scales": 1}


def _norms(vllm_config, word):
    priority = vllm_config.kernel_config.ir_op_priority
    for op, given in (("rms_norm", priority.rms_norm), ("fused_add_rms_norm", priority.fused_add_rms_norm)):
        if "quern" in given:
            hidden = vllm_config.model_config.get_hidden_size()
            yield "norm", f"norm.{op}", {"tokens": "tokens", "hidden": hidden, "x.dtype": word, "weight.dtype": sorted({word, "f32"})}
    if "quern" in priority.rms_norm:
        head_dim = vllm_config.model_config.get_head_size()
        yield "norm of heads", "norm.rms_norm", {"tokens": "rows_of_heads", "hidden": head_dim, "x.dtype": word, "weight.dtype": sorted({word, "f32"})}


def _others(vllm_config, layers, word):
    model, parallel = vllm_config.model_config, vllm_config.parallel_config
    config = model.hf_text_config
    if "activation" in layers and getattr(config, "intermediate_size", None) and getattr(config, "hidden_act", None) in _GATED:
        yield "activation", "activation." + _GATED[config.hidden_act], {"tokens": "tokens", "intermediate": config.intermediate_size // parallel.tensor_parallel_size, "x.dtype": word}
    if "rope" in layers:
        head_dim = model.get_head_size()
        yield "RoPE", "rope.rope", {"tokens": "tokens", "heads_q": model.get_num_attention_heads(parallel), "heads_kv": model.get_num_kv_heads(parallel), "head_dim": head_dim,
                                    "rows": model.max_model_len, "pairs": head_dim // 2, "q.dtype": word, "positions.present": 1, "positions.dtype": "i64", "cos.present": 1,
                                    "sin.present": 1, "cos.dtype": word, "sin.dtype": word}
    if "sampler" in layers:
        for filters in (("top_ks", "top_ps"), ("top_ks",), ("top_ps",)):
            yield "sampling", "sampling.sample", {"rows": "batch", "logits_rows": "batch", "vocab": model.get_vocab_size(), "logits.present": 1, "logits.dtype": [word, "f32"] if word != "f32" else "f32",
                                                  **{f"{name}.present": 1 for name in filters}}
    if "linear" in layers:
        for text in sorted(LINEAR):
            yield json.loads(text)


def model_of(vllm_config):
    """quern's model file of a vLLM configuration whose layers are built, as a dict."""
    scheduler, model = vllm_config.scheduler_config, vllm_config.model_config
    word, layers = _DTYPES[model.dtype], _settings.settings(vllm_config)["layers"]
    tokens = scheduler.max_num_batched_tokens
    batch, block = max(scheduler.max_num_seqs, vllm_config.compilation_config.max_cudagraph_capture_size or 0), vllm_config.cache_config.block_size
    calls = [*_attention(vllm_config, model.dtype), *_norms(vllm_config, word), *_others(vllm_config, layers, word)]
    return {"name": os.path.basename(str(model.model)) or "vllm",
            "geometry": {"max_pages": -(-model.max_model_len // block)},
            "limits": {"tokens": f"1..{max(tokens, batch)}", "batch": f"1..{batch}", "longest": f"1..{tokens}", "rows_of_heads": f"1..{tokens * model.get_num_attention_heads(vllm_config.parallel_config)}",
                       "pages": _PAGES, "page_size": [block], "alignment": [16], "batch_invariant": [int(bool(envs.VLLM_BATCH_INVARIANT))]},
            "calls": [{"does": does, "op": op, "case": case} for does, op, case in calls]}


class Kernels(VllmJitKernel):
    """All of quern's kernels as one of vLLM's. Its key is the model file, whether to freeze, and how many processes compile: the ranks of a machine share its CPUs."""

    def get_warmup_keys(self, vllm_config):
        model, ranks = model_of(vllm_config), vllm_config.parallel_config.local_world_size
        return [(json.dumps(model), _settings.settings(vllm_config)["freeze"], max(1, (os.cpu_count() or 1) // ranks))] if model["calls"] else []

    def compile(self, compile_key):
        """RuntimeError where a call is refused or a kernel does not compile."""
        text, freeze, processes = compile_key
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.json")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            report = quern.warm(path, processes=processes, progress=False)
        wrong = [k for k in report["kernels"] if k["state"] == "failed"] + [s for s in report["skipped"] if s["refused"]]
        if wrong:
            raise RuntimeError(f"quern.integrations.vllm: the warm-up failed, expected every kernel: {wrong[0]}")
        if freeze:
            quern.freeze()


KERNELS = Kernels()
