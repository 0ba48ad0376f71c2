# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern inside vLLM: a plugin that vLLM finds by its entry point. What is replaced, what is not, and how it was tested: docs/vllm.md.

Installed, it only gives names: the attention backend QUERN, the provider "quern" of vLLM's IR ops. A layer is quern's where the configuration asks for it;
options() is such a configuration, `python -m quern.integrations.vllm` prints it as flags of `vllm serve`."""
import json
import logging

__all__ = ["register", "options", "flags"]
_LAYERS_OF_NORMS = ("rms_norm", "fused_add_rms_norm")
# Words of options(): the layers of _settings, and what has a switch of vLLM's own.
LAYERS = ("activation", "attention", "linear", "norm", "rope", "sampler")


def register():
    """What vLLM calls in each of its processes, any number of times. A vLLM whose classes are elsewhere is an error in the log, and nothing is registered."""
    try:
        from quern.integrations.vllm import layers, linear, sampler
        from vllm.v1.attention.backends.registry import AttentionBackendEnum, register_backend
    except (ImportError, AttributeError) as why:
        logging.getLogger("quern").error("quern.integrations.vllm: nothing is registered, this vLLM is not the one that the plugin was made for (docs/vllm.md): %s", why)
        return
    if "QUERN" not in AttentionBackendEnum.__members__:
        register_backend("QUERN", "quern.integrations.vllm.attention.QuernBackend")
    layers.register()
    linear.register()
    sampler.register()


def options(*layers, freeze=False):
    """Arguments of vllm.LLM and of EngineArgs that let quern compute these layers; without any all of LAYERS. `freeze`: a kernel that the warm-up lacks is
    a RuntimeError in the place of a compile. ValueError for another word."""
    if not set(layers) <= set(LAYERS):
        raise ValueError(f"quern.integrations.vllm: `layers` is {layers}, expected words of {', '.join(LAYERS)}")
    wanted, result = layers or LAYERS, {}
    if "attention" in wanted:
        result["attention_backend"] = "QUERN"
    if "norm" in wanted:
        result["ir_op_priority"] = {op: ["quern"] for op in _LAYERS_OF_NORMS}
    from quern.integrations.vllm.layers import CUSTOM_OPS

    custom_ops = [f"+{name}" for layer in ("activation", "rope") if layer in wanted for name in CUSTOM_OPS[layer]]
    if custom_ops:
        result["compilation_config"] = {"custom_ops": custom_ops}
    result["additional_config"] = {"quern": {"layers": [layer for layer in wanted if layer not in ("attention", "norm")], "freeze": freeze}}
    return result


def flags(*layers, freeze=False):
    """The same as words behind `vllm serve MODEL`."""
    return [word for name, value in options(*layers, freeze=freeze).items() for word in ("--" + name.replace("_", "-"), value if isinstance(value, str) else json.dumps(value))]
