# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""vLLM's draw of a token by top-k and top-p: the two functions that both of its samplers ask are put in the place of those that lead to FlashInfer.

vLLM itself draws where a request has a seed of its own or is greedy, where there is no filter, and where processed log-probabilities are wanted."""
import functools
import sys

import torch
from vllm.v1.sample.ops import topk_topp_sampler

import quern
from quern._counter import counter_of
from quern.integrations.vllm import _settings

_WHERE = "quern.integrations.vllm"
# The second sampler has the functions by name. It is imported later, or was before.
_MODULES = ("vllm.v1.sample.ops.topk_topp_sampler", "vllm.v1.worker.gpu.sample.sampler")
_chosen = False


def _asked(original):
    @functools.wraps(original)
    def flashinfer_sampler_supported():
        """Asked while a sampler is built."""
        global _chosen
        _chosen = _settings.asked("sampler")
        return _chosen or original()
    return flashinfer_sampler_supported


def sample(logits, k, p):
    """Tokens [rows] int32 of logits [rows, vocabulary]: top_k first, then top_p; k, p: [rows] or None. Exactly k tokens survive, equal ones by ascending id."""
    if k is None and p is None:
        raise ValueError(f"{_WHERE}: `k` and `p` are None, expected a filter")
    filters = {"top_ks": None if k is None else k.to(torch.int32), "top_ps": None if p is None else p.to(torch.float32)}
    return quern.sampling.sample(logits, **filters, **counter_of(None, logits.device))


def _sample(original):
    @functools.wraps(original)
    def flashinfer_sample(logits, k, p, generators={}):  # noqa: B006  the signature is vLLM's
        return sample(logits, k, p) if _chosen else original(logits, k, p, generators)
    return flashinfer_sample


def register():
    """Once a process."""
    if hasattr(topk_topp_sampler.flashinfer_sample, "__wrapped__"):
        return
    supported, draw = _asked(topk_topp_sampler.flashinfer_sampler_supported), _sample(topk_topp_sampler.flashinfer_sample)
    for module in (sys.modules[name] for name in _MODULES if name in sys.modules):
        module.flashinfer_sampler_supported, module.flashinfer_sample = supported, draw
