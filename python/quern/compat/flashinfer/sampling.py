# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Sampling. A filter keeps every token that equals the least one it keeps, as FlashInfer's do: `ties="all"` of quern's ops.

Tokens are drawn by quern's rule (docs/sampling.md), from other random numbers than FlashInfer's: the same seed gives other tokens, of the same
distribution. Every draw is reproducible, so `deterministic` asks for what is there anyway."""
import quern
from quern import _check
from quern._counter import counter_of
from quern.compat.flashinfer._base import call, hint, integers, one_of, tensor, torch

_ORDERS = {"top_k_first": None, "joint": None}
_NAMES = {"temperatures": "temperature", "top_ks": "top_k", "top_ps": "top_p", "min_ps": "min_p"}
_ROW_STEP = 1 << 32  # between the offsets of two rows: further apart than any number of draws


def _parameter(where, name, value, x):
    """{attribute or tensor of the op: value} of a filter that is one number or a tensor of rows."""
    if not isinstance(value, torch.Tensor):
        return {name: _check.integer(f"flashinfer.{where}", name, value, -2**31, 2**31 - 1) if name == "top_k" else _check.number(f"flashinfer.{where}", name, value)}
    value = integers(where, name, value).reshape(-1).int() if name == "top_k" else value.reshape(-1).float()
    return {name + "s": value.expand(x.size(0)).contiguous() if value.numel() == 1 else value}


def _random(where, rows, generator, seed, offset, device, draws=1):
    """Seed and offset of a call for the op. Numbers are used as they are, with the row as a part of the counter; of tensors each row gets its own offset, so
    that one seed for all rows gives each another draw. From a generator: that of a GPU counts on, that of the host gives a number as a seed.
    `draws`: how many offsets from the first the call uses."""
    for name, n in (("seed", seed), ("offset", offset)):
        if n is not None and not isinstance(n, torch.Tensor):
            _check.integer(f"flashinfer.{where}", name, n, -2**63, 2**64 - 1, "an integer or a tensor")
    if (seed is None) != (offset is None):
        raise ValueError(f"flashinfer.{where}: `{'offset' if offset is None else 'seed'}` is None, expected `seed` and `offset` together")
    if generator is not None and not hasattr(generator, "initial_seed"):
        _check.fail_type(f"flashinfer.{where}", "generator", generator, "a generator of torch")
    if seed is None:
        return counter_of(generator, device, draws)
    if not isinstance(seed, torch.Tensor) and not isinstance(offset, torch.Tensor):
        return {name: (n + 2**63) % 2**64 - 2**63 for name, n in (("seed", seed), ("offset", offset))}
    given = []
    for name, n in (("seed", seed), ("offset", offset)):
        n = integers(where, name, n).reshape(-1).to(torch.int64) if isinstance(n, torch.Tensor) else torch.full((1,), (n + 2**63) % 2**64 - 2**63, dtype=torch.int64, device=device)
        if n.numel() not in (1, rows):
            raise ValueError(f"flashinfer.{where}: `{name}` has {n.numel()} elements, expected 1 or {rows}, the rows of the result")
        given.append(n.expand(rows))
    return {"seeds": given[0].contiguous(), "offsets": given[1] + torch.arange(rows, dtype=torch.int64, device=device) * _ROW_STEP}


def _f32(x):
    """Doubles as f32, as FlashInfer converts them; what is no tensor of doubles stays as it is."""
    return x.float() if isinstance(x, torch.Tensor) and x.dtype == torch.float64 else x


def _check_nan(where, name, x, check_nan):
    if _check.boolean(f"flashinfer.{where}", "check_nan", check_nan) and torch.isnan(x).any():
        raise ValueError(f"flashinfer.{where}: `{name}` has a NaN, expected none where `check_nan` asks")


def _sample(where, name, x, indices, deterministic, generator, check_nan, seed, offset, return_valid=False, **filters):
    """Tokens of logits or probs, int32 or the dtype of `indices`; with return_valid also whether each row had a token to draw."""
    x = _f32(tensor(where, name, x, 2))
    _check.boolean(f"flashinfer.{where}", "deterministic", deterministic)
    _check.boolean(f"flashinfer.{where}", "return_valid", return_valid)
    _check_nan(where, name, x, check_nan)
    rows = x.size(0) if indices is None else integers(where, "indices", tensor(where, "indices", indices, 1)).numel()
    valid = torch.empty(rows, dtype=torch.uint8, device=x.device) if return_valid else None
    tokens = torch.empty(rows, dtype=torch.int32, device=x.device)
    call(where, quern.sampling.sample, {"logits": name, "probs": name, **_NAMES}, **{name: x}, out=tokens, indices=None if indices is None else indices.int(), valid=valid,
         ties="all", **_random(where, rows, generator, seed, offset, x.device), **filters)
    tokens = tokens if indices is None else tokens.to(indices.dtype)
    return (tokens, valid.view(torch.bool)) if return_valid else tokens


def softmax(logits, temperature=None, enable_pdl=None):
    """Probabilities of logits over a temperature: None, a number or a tensor of rows. f32. Below 1e-5 the largest has 1."""
    hint("softmax", "enable_pdl", enable_pdl)
    tensor("softmax", "logits", logits, 2)
    filters = {} if temperature is None else _parameter("softmax", "temperature", temperature, logits)
    return call("softmax", quern.sampling.softmax, _NAMES, logits=_f32(logits), **filters)


def sampling_from_logits(logits, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None):
    """A token of each row, or of each row that indices name, in proportion to exp(logit)."""
    return _sample("sampling_from_logits", "logits", logits, indices, deterministic, generator, check_nan, seed, offset)


def sampling_from_probs(probs, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False):
    """The same in proportion to probs. return_valid: (tokens, whether each row had a token to draw)."""
    return _sample("sampling_from_probs", "probs", probs, indices, deterministic, generator, check_nan, seed, offset, return_valid)


def top_p_sampling_from_probs(probs, top_p, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False):
    """The same among the fewest largest that hold top_p of the mass, and their equals. A tensor of top_p, as of top_k and min_p below, has one for each row of
    probs."""
    where = "top_p_sampling_from_probs"
    return _sample(where, "probs", tensor(where, "probs", probs, 2), indices, deterministic, generator, check_nan, seed, offset, return_valid, **_parameter(where, "top_p", top_p, probs))


def top_k_sampling_from_probs(probs, top_k, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False):
    """The same among the top_k largest and their equals."""
    where = "top_k_sampling_from_probs"
    return _sample(where, "probs", tensor(where, "probs", probs, 2), indices, deterministic, generator, check_nan, seed, offset, return_valid, **_parameter(where, "top_k", top_k, probs))


def min_p_sampling_from_probs(probs, min_p, indices=None, deterministic=True, generator=None, check_nan=False, seed=None, offset=None, return_valid=False):
    """The same among those of at least min_p of the largest."""
    where = "min_p_sampling_from_probs"
    return _sample(where, "probs", tensor(where, "probs", probs, 2), indices, deterministic, generator, check_nan, seed, offset, return_valid, **_parameter(where, "min_p", min_p, probs))


def top_k_top_p_sampling_from_logits(logits, top_k, top_p, indices=None, filter_apply_order="top_k_first", deterministic=True, generator=None, check_nan=False, seed=None,
                                     offset=None):
    """The same with both filters. top_k_first: top_p looks at the mass of those that top_k keeps; joint: at all."""
    where = "top_k_top_p_sampling_from_logits"
    order = one_of(where, "filter_apply_order", filter_apply_order, _ORDERS)
    tensor(where, "logits", logits, 2)
    return _sample(where, "logits", logits, indices, deterministic, generator, check_nan, seed, offset, order=order, **_parameter(where, "top_k", top_k, logits),
                   **_parameter(where, "top_p", top_p, logits))


def top_k_top_p_sampling_from_probs(probs, top_k, top_p, indices=None, filter_apply_order="top_k_first", deterministic=True, generator=None, check_nan=False, seed=None, offset=None,
                                    return_valid=False):
    """The same of probs."""
    where = "top_k_top_p_sampling_from_probs"
    order = one_of(where, "filter_apply_order", filter_apply_order, _ORDERS)
    tensor(where, "probs", probs, 2)
    return _sample(where, "probs", probs, indices, deterministic, generator, check_nan, seed, offset, return_valid, order=order, **_parameter(where, "top_k", top_k, probs),
                   **_parameter(where, "top_p", top_p, probs))


def _renorm(where, probs, is_deterministic, **filters):
    _check.boolean(f"flashinfer.{where}", "is_deterministic", is_deterministic)
    return call(where, quern.sampling.renorm, _NAMES, probs=probs, ties="all", **filters)


def top_p_renorm_probs(probs, top_p, is_deterministic=False):
    """Probabilities of those that top_p keeps over their sum, 0 of the others. f32."""
    return _renorm("top_p_renorm_probs", _f32(tensor("top_p_renorm_probs", "probs", probs, 2)), is_deterministic, **_parameter("top_p_renorm_probs", "top_p", top_p, probs))


def top_k_renorm_probs(probs, top_k, is_deterministic=False):
    """The same of those that top_k keeps, in the dtype of probs."""
    return _renorm("top_k_renorm_probs", tensor("top_k_renorm_probs", "probs", probs, 2), is_deterministic, **_parameter("top_k_renorm_probs", "top_k", top_k, probs)).to(probs.dtype)


def top_k_mask_logits(logits, top_k):
    """Logits of the top_k largest and their equals, -inf of the others."""
    where = "top_k_mask_logits"
    return call(where, quern.sampling.mask, _NAMES, logits=tensor(where, "logits", logits, 2), ties="all", **_parameter(where, "top_k", top_k, logits))


top_p_renorm_prob, top_k_renorm_prob = top_p_renorm_probs, top_k_renorm_probs


def chain_speculative_sampling(draft_probs, draft_token_ids, target_probs, maybe_output_accepted_token_num=None, maybe_output_emitted_draft_token_num=None, deterministic=True,
                               generator=None, seed=None, offset=None):
    """(tokens [batch, drafts + 1], accepted, emitted): the drafts that stand, a token behind them, then -1. Counts that are given are added to, so they are int32;
    draft_token_ids are of any integers."""
    where = "chain_speculative_sampling"
    draft_probs, target_probs = (_f32(tensor(where, name, t, 3)) for name, t in (("draft_probs", draft_probs), ("target_probs", target_probs)))
    draft_token_ids = integers(where, "draft_token_ids", tensor(where, "draft_token_ids", draft_token_ids, 2)).int()
    _check.boolean(f"flashinfer.{where}", "deterministic", deterministic)
    batch = target_probs.size(0)
    accepted, emitted = (torch.zeros(batch, dtype=torch.int32, device=target_probs.device) if given is None else given
                         for given in (maybe_output_accepted_token_num, maybe_output_emitted_draft_token_num))
    tokens, *_ = call(where, quern.sampling.verify_chain,
                      {"draft_ids": "draft_token_ids", "accepted": "maybe_output_accepted_token_num", "emitted": "maybe_output_emitted_draft_token_num"},
                      target_probs=target_probs, draft_ids=draft_token_ids, draft_probs=draft_probs, accepted=accepted, emitted=emitted,
                      **_random(where, batch, generator, seed, offset, target_probs.device, target_probs.size(1)))
    return tokens, accepted, emitted
