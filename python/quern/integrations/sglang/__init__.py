# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern inside SGLang: a plugin that SGLang finds by its entry point. What is replaced, what is not, and how it was tested: docs/sglang.md.

Installed, it only gives a name: `--attention-backend quern`. Where that is chosen, norms, activations and RoPE are quern's too."""
import logging

__all__ = ["register"]


def register():
    """What SGLang calls in each of its processes. An SGLang whose classes are elsewhere is an error in the log, and nothing is registered."""
    try:
        from quern.integrations.sglang import layers
        from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES, add_attention_backend_choices
        from sglang.srt.layers.attention.attention_registry import register_attention_backend
    except (ImportError, AttributeError) as why:
        logging.getLogger("quern").error("quern.integrations.sglang: nothing is registered, this SGLang is not the one that the plugin was made for (docs/sglang.md): %s", why)
        return

    @register_attention_backend("quern")
    def create(runner):
        from quern.integrations.sglang.attention import QuernAttention

        layers.use()
        return QuernAttention(runner)

    if "quern" not in ATTENTION_BACKEND_CHOICES:
        add_attention_backend_choices(["quern"])
    layers.register()
