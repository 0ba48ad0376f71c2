# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What vLLM's configuration says of quern: additional_config={"quern": {"layers": [..], "freeze": True}}."""
import os

from vllm.config import get_current_vllm_config_or_none
from vllm.platforms import current_platform

LAYERS = ("activation", "linear", "rope", "sampler")
_WHERE = "quern.integrations.vllm"
_KEYS = {"layers": (), "freeze": False}


def settings(vllm_config):
    """{"layers": a tuple of LAYERS, "freeze": whether kernels that the warm-up lacks are errors}; ValueError for anything else."""
    given = getattr(vllm_config, "additional_config", None)
    given = given.get("quern", {}) if isinstance(given, dict) else {}
    if not isinstance(given, dict) or not set(given) <= set(_KEYS):
        raise ValueError(f"{_WHERE}: `additional_config['quern']` is {given!r}, expected a dict with {', '.join(_KEYS)}")
    of = {**_KEYS, **given}
    if not isinstance(of["layers"], (list, tuple)) or not set(of["layers"]) <= set(LAYERS):
        raise ValueError(f"{_WHERE}: `additional_config['quern']['layers']` is {of['layers']!r}, expected a list of {', '.join(LAYERS)}")
    if not isinstance(of["freeze"], bool):
        raise ValueError(f"{_WHERE}: `additional_config['quern']['freeze']` is {of['freeze']!r}, expected true or false")
    if of["freeze"] and not vllm_config.kernel_config.enable_jit_warmup:
        raise ValueError(f"{_WHERE}: `additional_config['quern']['freeze']` is true and `kernel_config.enable_jit_warmup` false, expected both: what is frozen was warmed before")
    return {"layers": tuple(of["layers"]), "freeze": of["freeze"]}


def asked(layer):
    """Whether the configuration of the model that is being built wants quern for these layers. False where there is none."""
    vllm_config = get_current_vllm_config_or_none()
    return vllm_config is not None and layer in settings(vllm_config)["layers"] and runs_here()


def runs_here():
    """Whether ops of quern run on vLLM's platform: a GPU, or the host with the emulated device."""
    return current_platform.is_cuda() or (current_platform.is_cpu() and os.environ.get("QN_DEVICE", "").startswith("emu"))
