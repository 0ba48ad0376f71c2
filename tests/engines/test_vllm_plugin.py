# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""The plugin as vLLM finds it: entry point, names, configuration, warm-up."""
import importlib.metadata
import json
import logging
import shlex
import sys

import pytest
import torch
from conftest import make_config
from vllm import ir, plugins
from vllm.config import set_current_vllm_config
from vllm.engine.arg_utils import EngineArgs
from vllm.model_executor.kernels import linear as kernels
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.quantization.utils.quant_utils import kFp8Dynamic128Sym, kFp8DynamicTokenSym, kFp8Static128BlockSym, kFp8StaticTokenSym
from vllm.model_executor.warmup.jit_warmup import JitWarmupRegistry
from vllm.platforms import PlatformEnum
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
from vllm.v1.attention.selector import _cached_get_attn_backend, get_attn_backend

import quern
from quern.integrations import vllm as plugin
from quern.integrations.vllm import __main__ as command
from quern.integrations.vllm import attention, linear, warmup


def test_entry_point():
    (point,) = importlib.metadata.entry_points(group=plugins.DEFAULT_PLUGINS_GROUP, name="quern")
    assert point.load() is plugin.register


def test_registered_by_vllm(engine_config):
    """EngineArgs loads plugins; a second time nothing changes."""
    for _ in range(2):
        assert AttentionBackendEnum["QUERN"].get_class() is attention.QuernBackend
        assert "quern" in ir.ops.rms_norm.impls and "quern" in ir.ops.fused_add_rms_norm.impls
        for of, ours in ((kernels._POSSIBLE_FP8_BLOCK_KERNELS, linear.QuernFp8BlockLinear), (kernels._POSSIBLE_FP8_KERNELS, linear.QuernFp8Linear)):
            for platform in (PlatformEnum.CUDA, PlatformEnum.CPU):
                assert of[platform][0] is ours and of[platform].count(ours) == 1
        plugin.register()


def test_selected(engine_config):
    """vLLM's selector takes the class by its path. On a host its platform offers one name, under which quern's stands for this test."""
    register_backend(AttentionBackendEnum.CPU_ATTN, AttentionBackendEnum["QUERN"].get_path())
    _cached_get_attn_backend.cache_clear()
    try:
        with set_current_vllm_config(engine_config):
            assert get_attn_backend(64, torch.bfloat16, "auto") is attention.QuernBackend
    finally:
        AttentionBackendEnum.CPU_ATTN.clear_override()
        _cached_get_attn_backend.cache_clear()


def test_options(engine_config):
    assert engine_config.attention_config.backend is AttentionBackendEnum["QUERN"]
    priority = engine_config.kernel_config.ir_op_priority
    assert priority.rms_norm == priority.fused_add_rms_norm == ["quern", "native"]
    assert {"+silu_and_mul", "+gelu_and_mul", "+rotary_embedding"} < set(engine_config.compilation_config.custom_ops)
    assert plugin.options("attention") == {"attention_backend": "QUERN", "additional_config": {"quern": {"layers": [], "freeze": False}}}
    with pytest.raises(ValueError, match="`layers` is .'moe',., expected words of activation, attention"):
        plugin.options("moe")


def test_flags(model_folder, capsys):
    """The command prints what `vllm serve` reads as the same configuration."""
    assert command.main(["norm", "attention", "linear"]) == 0
    words = shlex.split(capsys.readouterr().out)
    parsed = EngineArgs.from_cli_args(EngineArgs.add_cli_args(FlexibleArgumentParser()).parse_args(["--model", model_folder, *words]))
    assert parsed.attention_backend == "QUERN" and parsed.additional_config == {"quern": {"layers": ["linear"], "freeze": False}}
    assert parsed.ir_op_priority.rms_norm == ["quern"]
    assert command.main(["--freeze", "rope"]) == 0 and '{"layers": ["rope"], "freeze": true}' in capsys.readouterr().out
    assert command.main(["moe"]) == 2 and "expected words of" in capsys.readouterr().err


@pytest.mark.parametrize("given, error", [({"layers": ["norm"]}, "'layers'.. is .'norm'., expected a list of activation, linear, rope, sampler"), ({"layer": []}, "expected a dict with layers, freeze"),
                                          ({"freeze": 1}, "'freeze'.. is 1, expected true or false"), ([], "expected a dict")])
def test_wrong_settings(model_folder, given, error):
    config = make_config(model_folder, additional_config={"quern": given})
    with set_current_vllm_config(config), pytest.raises(ValueError, match=error):
        Attention(4, 64, 0.125, 2, prefix="layer", attn_backend=attention.QuernBackend)


def test_another_vllm(monkeypatch, caplog):
    """A vLLM whose modules are elsewhere goes on without quern, and the log says why."""
    monkeypatch.setitem(sys.modules, "quern.integrations.vllm.layers", None)
    monkeypatch.delattr(plugin, "layers")
    with caplog.at_level(logging.ERROR, "quern"):
        plugin.register()
    assert "nothing is registered, this vLLM is not the one that the plugin was made for" in caplog.text


@pytest.fixture
def built(model_folder):
    """A configuration with layers of quern's, and what they registered for vLLM's warm-up."""
    config = make_config(model_folder, **{**plugin.options(freeze=True)})
    registry = JitWarmupRegistry(config)
    warmup.LINEAR.clear()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with registry.activate(), set_current_vllm_config(config):
            for name, kinds in (("a", {}), ("b", {}), ("c", {"per_layer_sliding_window": 9, "logits_soft_cap": 2.0})):
                Attention(4, 64, 0.125, 2, cache_config=config.cache_config, prefix=name, attn_backend=attention.QuernBackend, **kinds)
            for activation_key, weight_key in ((kFp8Dynamic128Sym, kFp8Static128BlockSym), (kFp8DynamicTokenSym, kFp8StaticTokenSym)):
                kernels.init_fp8_linear_kernel(activation_key, weight_key, torch.bfloat16, torch.bfloat16, (256, 512))
    finally:
        torch.set_default_dtype(torch.float32)
    return config, registry


def test_calls_of_the_warm_up(built, tmp_path):
    """Each kind of layer once, and the library takes every call."""
    config, registry = built
    assert len(registry) == 1
    model = warmup.model_of(config)
    ops = [call["op"] for call in model["calls"]]
    assert ops.count("attention.paged") == 2 and ops.count("gemm.scaled") == 2
    assert set(ops) == {"attention.paged", "kv_cache.append_paged", "norm.rms_norm", "norm.fused_add_rms_norm", "activation.silu_and_mul", "rope.rope", "sampling.sample", "gemm.scaled",
                        "quant.per_token_group", "quant.per_token"}
    path = tmp_path / "model.json"
    path.write_text(json.dumps(model))
    report = quern.warm(path, list_only=True)
    assert report["skipped"] == [] and {k["state"] for k in report["kernels"]} == {"listed"}
    assert {call for k in report["kernels"] for call in k["calls"]} == {call["does"] for call in model["calls"]}


def test_warm_up_and_freeze(built, monkeypatch, tmp_path):
    """vLLM's registry compiles the list; then compiles are errors."""
    config, registry = built
    whole = warmup.model_of(config)
    small = {**whole, "calls": [call for call in whole["calls"] if call["op"] == "activation.silu_and_mul"]}
    monkeypatch.setattr(warmup, "model_of", lambda _: small)
    assert not quern.frozen()
    try:
        registry.warmup()
        assert quern.frozen()
        path = tmp_path / "model.json"
        path.write_text(json.dumps(small))
        assert {k["state"] for k in quern.warm(path, progress=False)["kernels"]} == {"cached"}
    finally:
        quern.freeze(False)


def test_warm_up_that_fails(built, monkeypatch):
    config, registry = built
    whole = warmup.model_of(config)
    wrong = {"does": "attention", "op": "attention.paged", "case": {**whole["calls"][0]["case"], "head_dim": 72}}
    monkeypatch.setattr(warmup, "model_of", lambda _: {**whole, "calls": [wrong]})
    with pytest.raises(RuntimeError, match="the warm-up failed, expected every kernel: .*head_dim"):
        registry.warmup()
    assert not quern.frozen()


def test_freeze_without_a_warm_up(model_folder):
    config = make_config(model_folder, enforce_eager=True, **plugin.options("attention", freeze=True))
    config.kernel_config.enable_jit_warmup = False
    with set_current_vllm_config(config), pytest.raises(ValueError, match="'freeze'.. is true and `kernel_config.enable_jit_warmup` false, expected both"):
        Attention(4, 64, 0.125, 2, prefix="layer", attn_backend=attention.QuernBackend)
