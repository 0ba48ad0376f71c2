# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern.integrations.transformers on tiny models of random weights, beside the same models in double.

The yardstick of an error is that of torch's own bf16 (eager attention) against the model in double: quern's is at most twice it."""
import copy
import functools
import os

import pytest

if os.environ.get("QN_TEST_TORCH") != "1":
    pytest.skip("needs torch", allow_module_level=True)

import torch
import transformers
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS

import quern
from quern.integrations.transformers import disable, enable

SIZES = dict(vocab_size=128, hidden_size=96, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=256,
             pad_token_id=0, bos_token_id=None, eos_token_id=None)
WINDOW = 8
# Caps as small as logits are, else nobody would miss them.
FAMILIES = {
    "llama": dict(num_key_value_heads=1, rope_parameters={"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                                                          "original_max_position_embeddings": 16}),
    "qwen2": dict(hidden_size=128, use_sliding_window=True, sliding_window=WINDOW, max_window_layers=1),  # biases of q, k and v; the second layer has a window
    "qwen3": dict(tie_word_embeddings=True),
    "gemma2": dict(sliding_window=WINDOW, query_pre_attn_scalar=48, attn_logit_softcapping=1.5, final_logit_softcapping=2.0),
    "gemma3_text": dict(sliding_window=WINDOW, num_attention_heads=2, num_key_value_heads=1, head_dim=256, query_pre_attn_scalar=256, final_logit_softcapping=2.0,
                        layer_types=["sliding_attention", "full_attention"],
                        rope_parameters={"sliding_attention": {"rope_type": "default", "rope_theta": 100.0}, "full_attention": {"rope_type": "default", "rope_theta": 1e6}}),
}
TOKENS, PADS = 19, 5
every_family = pytest.mark.parametrize("family", FAMILIES)


def build(family, dtype=torch.bfloat16, seed=1, **changes):
    """Weights that keep activations and logits near 1. Built in `dtype`, as from_pretrained does: a model that is converted has rounded frequencies of RoPE."""
    config = transformers.AutoConfig.for_model(family, **{**SIZES, **FAMILIES.get(family, {}), **changes})
    config._attn_implementation = "eager"
    torch.manual_seed(seed)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype).eval()
    with torch.no_grad():
        for key, value in model.named_parameters():
            if "norm" in key:
                value.add_(0.2 * torch.randn(value.shape))
            elif key.endswith("bias"):
                value.copy_(0.2 * torch.randn(value.shape))
            else:
                value.copy_(torch.randn(value.shape) / value.shape[-1] ** 0.5)
    return model


@functools.lru_cache(maxsize=None)
def models(family, dtype=torch.bfloat16):
    """(torch's model, quern's, the same in double)."""
    plain = build(family, dtype)
    exact = copy.deepcopy(plain)
    for parameter in exact.parameters():
        parameter.data = parameter.data.double()
    return plain, enable(copy.deepcopy(plain)), exact


def prompt(batch=2, tokens=TOKENS, seed=14):  # of the seeds to 24 one that lets test_generate compare much
    return torch.randint(1, SIZES["vocab_size"], (batch, tokens), generator=torch.Generator().manual_seed(seed))


def padded(side, batch=3):
    """Requests of 19, 14 and 18 tokens, with pads on one side or on none: (ids, attention_mask, position_ids)."""
    ids, there = prompt(batch), torch.ones(batch, TOKENS, dtype=torch.long)
    if side != "none":
        for b, pads in enumerate((0, PADS, 1)):
            there[b, :pads] = 0
    if side == "right":
        there = there.flip(1)
    return ids * there, there, (there.cumsum(1) - 1).clamp(min=0)


def logits(model, ids, **arguments):
    with torch.no_grad():
        return model(ids, **arguments).logits.double()


def truth_of(family, side, dtype=torch.bfloat16):
    """Logits in double, of each request alone: pads and masks are no part of it."""
    exact = models(family, dtype)[2]
    ids, there, _ = padded(side)
    result = torch.zeros(*ids.shape, SIZES["vocab_size"], dtype=torch.double)
    for b, own in enumerate(there.bool()):
        result[b, own] = logits(exact, ids[b][own][None])[0]
    return result


def errors(result, truth, where=None):
    difference = (result.double() - truth)[slice(None) if where is None else where.bool()]
    return difference.pow(2).mean().sqrt(), difference.abs().max()


def assert_as_right(ours, theirs, truth, where=None):
    """The root of the mean square and the largest error."""
    mine, yardstick = errors(ours, truth, where), errors(theirs, truth, where)
    assert not ours.isnan().any(), "NaN"
    assert mine[0] <= 2 * yardstick[0] and mine[1] <= 2 * yardstick[1], f"errors {mine}, torch's bf16 {yardstick}"


def assert_same(a, b, theirs, truth, where=None):
    """Two results that differ in the order of sums: each rounds as often as torch's."""
    apart, yardstick = (a.double() - b.double())[slice(None) if where is None else where.bool()], errors(theirs, truth, where)
    assert apart.pow(2).mean().sqrt() <= 1.5 * yardstick[0] and apart.abs().max() <= 2 * yardstick[1]


@every_family
@pytest.mark.parametrize("side", ["none", "left", "right"])
def test_logits(family, side):
    plain, ours, _ = models(family)
    ids, there, positions = padded(side)
    arguments = dict(attention_mask=there, position_ids=positions, use_cache=False)
    truth = truth_of(family, side)
    assert truth[there.bool()].std() > 0.3
    assert_as_right(*(logits(m, ids, **arguments) for m in (ours, plain)), truth, there)


@every_family
@pytest.mark.parametrize("side", ["left", "right"])
def test_padded_is_packed(family, side):
    """Each request beside pads, and alone without."""
    plain, ours, exact = models(family)
    ids, there, positions = padded(side)
    together = logits(ours, ids, attention_mask=there, position_ids=positions)
    for b in range(len(ids)):
        own = ids[b][there[b].bool()][None]
        assert_same(together[b][there[b].bool()][None], logits(ours, own), logits(plain, own), logits(exact, own))


@every_family
@pytest.mark.parametrize("cache", ["dynamic", "static"])
@pytest.mark.parametrize("pads", [False, True])
def test_prefill_and_decode(family, cache, pads):
    """A prefill, a second chunk and tokens one by one, beside one prefill of all. The window begins to slide on the way."""
    plain, ours, _ = models(family)
    side = "left" if pads else "none"
    ids, there, positions = padded(side)
    kept = transformers.DynamicCache(config=ours.config) if cache == "dynamic" else transformers.StaticCache(config=ours.config, max_cache_len=32)
    parts, begin = [], 0
    for tokens in (6, 7, 1, 1, 1, 1, 1, 1):
        end = begin + tokens
        parts.append(logits(ours, ids[:, begin:end], attention_mask=there[:, :end] if pads else None, position_ids=positions[:, begin:end], past_key_values=kept))
        begin = end
    arguments = dict(attention_mask=there, position_ids=positions, use_cache=False)
    whole, theirs, truth = *(logits(m, ids, **arguments) for m in (ours, plain)), truth_of(family, side)
    assert begin == TOKENS
    assert_as_right(torch.cat(parts, 1), theirs, truth, there)
    assert_same(torch.cat(parts, 1), whole, theirs, truth, there)


GREEDY = dict(max_new_tokens=8, do_sample=False, return_dict_in_generate=True, output_logits=True)


@functools.lru_cache(maxsize=None)
def answers(family, which=2):
    """What a model, that in double if no other is named, answers to each prompt alone: (new tokens [requests, 8], how far the best logit is above the second, log of
    each new token's probability)."""
    ids, there, _ = padded("left")
    alone = [models(family)[which].generate(ids[b][there[b].bool()][None], **GREEDY) for b in range(len(ids))]
    logits = torch.cat([torch.stack(a.logits, 1) for a in alone]).double()
    best = logits.topk(2).values
    return torch.cat([a.sequences[:, -8:] for a in alone]), best[..., 0] - best[..., 1], logits.log_softmax(-1).max(-1).values


@every_family
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_generate(family, cache):
    """Greedy answers to left-padded prompts, as far as each choice has a margin that errors of bf16 do not reach: beyond the first without one nothing is compared."""
    plain, ours, _ = models(family)
    ids, there, _ = padded("left")
    truth, margins, _ = answers(family)
    certain = (margins > 0.06).cumprod(1).bool()
    assert certain.sum() >= 14
    for model in (ours, plain):
        new = model.generate(ids, attention_mask=there, cache_implementation=cache, **GREEDY).sequences[:, -8:]
        assert torch.equal(new[certain], truth[certain])


def test_f16():
    plain, ours, _ = models("qwen3", torch.float16)
    ids, there, positions = padded("left")
    assert_as_right(*(logits(m, ids, attention_mask=there, position_ids=positions) for m in (ours, plain)), truth_of("qwen3", "left", torch.float16), there)


@pytest.mark.parametrize("family", ["qwen2", "gemma3_text"])
def test_without_a_language_head(family):
    bare = enable(copy.deepcopy(models(family)[0].model))
    ids, there, _ = padded("left")
    arguments = dict(attention_mask=there, output_hidden_states=True)
    with torch.no_grad():
        mine, whole = bare(ids, **arguments), models(family)[1](ids, **arguments)
    assert torch.equal(mine.last_hidden_state, whole.hidden_states[-1]) and len(mine.hidden_states) == 3


@pytest.mark.parametrize("family", ["llama", "gemma2"])
def test_masks_of_the_caller(family):
    """A mask of bool of 4 dims, and sequences in one row that position_ids tells apart."""
    plain, ours, exact = models(family)
    ids = prompt()
    tree = torch.rand(2, 1, TOKENS, TOKENS, generator=torch.Generator().manual_seed(5)) < 0.6
    tree |= torch.eye(TOKENS, dtype=torch.bool)
    added = torch.zeros(tree.shape, dtype=torch.double).masked_fill(~tree, torch.finfo(torch.bfloat16).min)
    assert_as_right(logits(ours, ids, attention_mask=tree), logits(plain, ids, attention_mask=added.bfloat16()), logits(exact, ids, attention_mask=added))
    positions = torch.cat((torch.arange(8), torch.arange(TOKENS - 8)))[None]
    packed = [logits(m, ids, position_ids=positions, use_cache=False) for m in (ours, plain, exact)]
    assert_as_right(*packed)
    assert (packed[2] - logits(exact, ids, use_cache=False)).abs().max() > 0.1  # else the positions say nothing


@every_family
def test_which_ops(family, monkeypatch):
    """Errors do not tell gelu_tanh from gelu, nor a table of angles in f32 from one that was rounded."""
    ours, called, tables = models(family)[1], {}, set()

    def watch(of, name):
        original = getattr(of, name)

        def call(*arguments, **keywords):
            called[name] = called.get(name, 0) + 1
            if name == "rope":
                tables.update(t.dtype for t in arguments[3:5])
            return original(*arguments, **keywords)
        monkeypatch.setattr(of, name, call)

    for of, name in ((quern.norm, "rms_norm"), (quern.rope, "rope"), (quern.attention, "paged"), (quern.gemm, "dense"), (quern.elementwise, "soft_cap")):
        watch(of, name)
    # The MLP has its activation from enable().
    gated = {quern.activation.silu_and_mul: "silu_and_mul", quern.activation.gelu_tanh_and_mul: "gelu_tanh_and_mul"}
    activations = {gated.get(layer.mlp.forward.__func__.__closure__[0].cell_contents) for layer in ours.model.layers}
    logits(ours, prompt())
    gemma, norms_of_q_and_k = family.startswith("gemma"), family in ("qwen3", "gemma3_text")
    expected = {"rms_norm": 2 * (2 + 2 * gemma + 2 * norms_of_q_and_k) + 1, "rope": 2, "paged": 2, "dense": 2 * 7 + 1, **({"soft_cap": 1} if gemma else {})}
    assert called == expected and tables == {torch.float32}
    assert activations == {"gelu_tanh_and_mul" if gemma else "silu_and_mul"}


@every_family
def test_cached_keys(family):
    """Logits depend on distances alone; the first layer's keys also say at which positions they were turned."""
    plain, ours, exact = models(family)
    caches = []
    for model in (ours, plain, exact):
        caches.append(transformers.DynamicCache(config=model.config))
        logits(model, prompt(), past_key_values=caches[-1])
    mine, theirs, truth = (torch.cat((c.layers[0].keys, c.layers[0].values), -1) for c in caches)
    assert mine.dtype == torch.bfloat16
    assert_as_right(mine, theirs, truth)


@every_family
def test_what_runs_in_torch(family):
    """Of 16 bits nothing but the embedding, its factor, sums with the residual, copies into the cache."""
    ours = models(family)[1]
    seen = set()

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            if any(isinstance(a, torch.Tensor) and a.dtype == torch.bfloat16 for a in arguments if not isinstance(a, list)):
                seen.add(function.overloadpacket.__name__)
            return function(*arguments, **(keywords or {}))

    with torch.no_grad(), Seen():
        ours(prompt())
    moves = {"view", "_unsafe_view", "transpose", "slice", "expand", "new_empty", "clone", "detach", "alias", "cat", "reshape", "unsqueeze", "lift_fresh"}
    computing = seen - moves
    assert computing == {"embedding", "add"} | ({"mul"} if family.startswith("gemma") else set())


@pytest.mark.parametrize("family", ["qwen3", "gemma2"])
def test_compiled_decode(family):
    """One graph of a decode step over a static cache, as `generate` compiles it on a GPU."""
    plain, ours, exact = models(family)
    ids = prompt()
    kept = transformers.StaticCache(config=ours.config, max_cache_len=32)
    first = logits(ours, ids[:, :-1], past_key_values=kept)
    torch._dynamo.reset()
    step = torch.compile(ours, fullgraph=True, backend="aot_eager")
    last = logits(step, ids[:, -1:], past_key_values=kept, position_ids=torch.full((1, 1), TOKENS - 1))
    assert_as_right(torch.cat((first, last), 1), *(logits(m, ids) for m in (plain, exact)))


@every_family
@pytest.mark.parametrize("side", ["none", "left"])
def test_compiled_forward(family, side):
    """A padding mask is a tensor of the graph: whether it hides anything is not asked."""
    plain, ours, _ = models(family)
    ids, there, positions = padded(side)
    torch._dynamo.reset()
    forward = torch.compile(ours.forward, fullgraph=True, dynamic=False, backend="aot_eager")
    arguments = dict(attention_mask=there, position_ids=positions, use_cache=False)
    assert_as_right(*(logits(m, ids, **arguments) for m in (forward, plain)), truth_of(family, side), there)


# ---- enable and disable


def state(model):
    """All that enable() may touch: what instances hold beside their modules, and what the configuration says."""
    return [(name, {k: v for k, v in vars(m).items() if k not in ("_modules", "_parameters", "_buffers")}) for name, m in model.named_modules()], \
        model.config.to_dict(), model.config._attn_implementation


@every_family
def test_disable_restores(family):
    model = copy.deepcopy(models(family)[0])
    ids, there, _ = padded("left")
    before, bits = state(model), logits(model, ids, attention_mask=there)
    assert enable(model) is model
    during = logits(model, ids, attention_mask=there)
    assert disable(model) is model
    assert state(model) == before and torch.equal(logits(model, ids, attention_mask=there), bits)
    assert not torch.equal(during, bits)
    enable(model)
    assert torch.equal(logits(model, ids, attention_mask=there), during)


def test_a_copy_is_enabled_too():
    model = copy.deepcopy(models("qwen3")[1])
    assert model.model.norm.forward.__self__ is model.model.norm
    disable(model)
    assert torch.equal(logits(model, prompt()), logits(models("qwen3")[0], prompt()))


def test_a_saved_model_does_not_tell(tmp_path):
    models("gemma2")[1].save_pretrained(tmp_path)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation="eager").eval()
    assert loaded.dtype == torch.bfloat16 and torch.equal(logits(loaded, prompt()), logits(models("gemma2")[0], prompt()))


class Other(nn.Linear):
    pass


def parent(model, path):
    return model.get_submodule(path.rpartition(".")[0])


def put(path, module):
    return lambda model: setattr(parent(model, path), path.rpartition(".")[2], module)


def replaced_forward(model):
    model.model.layers[1].mlp.forward = lambda x: x


def other_dtype(model):
    model.model.layers[0].input_layernorm.float()


REFUSED = {
    "norm": (put("model.layers.1.post_attention_layernorm", nn.LayerNorm(96)), NotImplementedError, r"`model\.layers\.1\.post_attention_layernorm` \(LayerNorm\): no rule for it"),
    "linear": (put("model.layers.1.mlp.up_proj", Other(96, 160)), NotImplementedError, r"`model\.layers\.1\.mlp\.up_proj` \(Other\): no rule for it, expected one of .*Linear"),
    "activation": (put("model.layers.0.mlp.act_fn", nn.ReLU()), NotImplementedError, r"`model\.layers\.0\.mlp` \(Qwen3MLP\): its activation is ReLU, expected one of GELUActivation, GELUTanh"),
    "forward": (replaced_forward, NotImplementedError, r"`model\.layers\.1\.mlp` \(Qwen3MLP\): its `forward` is replaced already"),
    "dtype of one": (other_dtype, NotImplementedError, r"`model\.layers\.0\.input_layernorm\.weight` \(Qwen3RMSNorm\): it is a Tensor of torch\.float32, expected a dense tensor of torch\.bfloat16"),
    "not causal": (lambda m: setattr(m.model.layers[1].self_attn, "is_causal", False), NotImplementedError, r"`model\.layers\.1\.self_attn` \(Qwen3Attention\): it is not causal"),
    "f32": (lambda m: m.float(), TypeError, r"the model is torch\.float32, expected torch\.bfloat16 or torch\.float16, which attention\.paged takes"),
    "training": (lambda m: m.train(), ValueError, r"the model is in training mode, expected model\.eval\(\)"),
    "attentions": (lambda m: setattr(m.config, "output_attentions", True), NotImplementedError, r"config\.output_attentions is True, expected False"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_before_anything_is_replaced(what):
    change, error, text = REFUSED[what]
    model = copy.deepcopy(models("qwen3")[0])
    change(model)
    before = state(model)
    with pytest.raises(error, match=text + r".*; nothing is replaced$"):
        enable(model)
    assert state(model) == before


def test_refused_by_the_library():
    with pytest.raises(NotImplementedError, match=r"`model\.layers\.0\.self_attn` \(LlamaAttention\): attention\.paged: `head_dim` is 24, expected a multiple of 16 from 16 to 256, or 512; nothing"):
        enable(build("llama", head_dim=24))
    with pytest.raises(NotImplementedError, match=r"`model\.layers\.0\.self_attn` \(Gemma3Attention\): it is not causal"):
        enable(build("gemma3_text", use_bidirectional_attention=True))
    with pytest.raises(NotImplementedError, match=r"the model is MixtralForCausalLM, expected one of Gemma2, Gemma3, Llama, Qwen2, Qwen3"):
        enable(build("mixtral", num_local_experts=2))
    with pytest.raises(NotImplementedError, match=r"the model is Linear, expected one of Gemma2, Gemma3"):
        enable(nn.Linear(4, 4))
    with pytest.raises(NotImplementedError, match=r"`the model` \(Qwen3ForSequenceClassification\): no rule for it, expected one of .*Qwen3ForCausalLM"):
        enable(transformers.Qwen3ForSequenceClassification(models("qwen3")[0].config).bfloat16().eval())


def test_host_without_the_emulated_device(no_device):
    model = copy.deepcopy(models("qwen3")[0])
    with pytest.raises(NotImplementedError, match=r"`model\.embed_tokens\.weight` \(Embedding\): it lies on cpu, expected a GPU, or the host with QN_DEVICE=emu"):
        enable(model)


def test_refused_calls():
    ours, ids = models("llama")[1], prompt()
    with pytest.raises(RuntimeError, match=r"LlamaRMSNorm is called while torch records gradients, expected torch\.no_grad\(\)"):
        ours(ids)
    with pytest.raises(NotImplementedError, match="output_attentions is asked for, expected False"):
        logits(ours, ids, output_attentions=True)
    with pytest.raises(NotImplementedError, match="output_attentions is asked for, expected False"):
        ours.generate(ids, max_new_tokens=2, output_attentions=True, return_dict_in_generate=True)
    with pytest.raises(NotImplementedError, match=r"`attention_mask` of 4 dims is torch\.bfloat16, expected torch\.bool"):
        logits(ours, ids, attention_mask=torch.zeros(2, 1, TOKENS, TOKENS, dtype=torch.bfloat16))
    with pytest.raises(ValueError, match=r"`attention_mask` has shape \[2, 4, 19, 19\], expected \[2, 1, 19, 19\], one mask for all heads"):
        logits(ours, ids, attention_mask=torch.ones(2, 4, TOKENS, TOKENS, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"`attention_mask` of uint8 has shape \[2, 1, 19, 19\], expected \[2, 1, 1, 46\], the bits of 19 queries and 19 keys"):
        logits(ours, ids, attention_mask=torch.ones(2, 1, TOKENS, TOKENS, dtype=torch.uint8))
    ours.train()
    try:
        with pytest.raises(RuntimeError, match=r"LlamaRMSNorm is in training mode, expected model\.eval\(\)"):
            logits(ours, ids)
    finally:
        ours.eval()
    with pytest.raises(ValueError, match="the model is enabled already"):
        enable(ours)
    with pytest.raises(ValueError, match="the model is not enabled"):
        disable(models("llama")[0])
    model = enable(copy.deepcopy(models("llama")[0]))
    own, model.model.norm.forward = model.model.norm.forward, lambda x: x
    with pytest.raises(RuntimeError, match="`forward` of a LlamaRMSNorm was replaced after enable"):
        disable(model)
    model.model.norm.forward = own
    disable(model)


def test_another_attention_in_an_enabled_model():
    """The attention implementation is transformers' to choose; eager hands probabilities back."""
    model, ids = enable(copy.deepcopy(models("gemma2")[0])), prompt()
    mine = logits(model, ids)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(ids, output_attentions=True)
    assert out.attentions[1].shape == (2, 4, TOKENS, TOKENS) and not torch.equal(out.logits.double(), mine)
    assert_as_right(out.logits, logits(models("gemma2")[0], ids), logits(models("gemma2")[2], ids))
    disable(model)
    assert model.config._attn_implementation == "eager"


# ---- the comparison finds what is wrong


def without(family, op, name, value):
    """A fault: `op` of the family is called with another value of one argument."""
    def plant(monkeypatch):
        original = getattr(getattr(quern, family), op)
        monkeypatch.setattr(getattr(quern, family), op, lambda *a, **k: original(*a, **{**k, name: value(k[name]) if name in k else value(None)}))
    return plant


def swapped_tables(monkeypatch):
    original = quern.rope.rope
    monkeypatch.setattr(quern.rope, "rope", lambda q, k, rows, cos, sin, **given: original(q, k, rows, sin, cos, **given))


def without_mask(monkeypatch):
    monkeypatch.setitem(ALL_MASK_ATTENTION_FUNCTIONS._global_mapping, "quern", lambda *a, **k: None)


def one_theta(monkeypatch):
    original = transformers.models.gemma3.modeling_gemma3.Gemma3RotaryEmbedding.forward
    monkeypatch.setattr(transformers.models.gemma3.modeling_gemma3.Gemma3RotaryEmbedding, "forward", lambda self, x, positions, layer_type: original(self, x, positions, "full_attention"))


FAULTS = {
    "weight_bias 0": ("gemma3_text", "none", without("norm", "rms_norm", "weight_bias", lambda v: 0.0)),
    "weight_bias 1": ("qwen3", "none", without("norm", "rms_norm", "weight_bias", lambda v: 1.0)),
    "eps": ("llama", "none", without("norm", "rms_norm", "eps", lambda v: 0.05)),
    "no soft cap": ("gemma2", "none", without("attention", "paged", "soft_cap", lambda v: 0.0)),
    "soft cap of logits": ("gemma2", "none", lambda m: m.setattr(quern.elementwise, "soft_cap", lambda *a, **k: None)),
    "no window": ("gemma2", "none", without("attention", "paged", "window_left", lambda v: -1)),
    "window + 1": ("qwen2", "none", without("attention", "paged", "window_left", lambda v: v + 1 if v and v > 0 else -1)),
    "scale": ("gemma2", "none", without("attention", "paged", "sm_scale", lambda v: 0.0)),
    "not causal": ("llama", "none", without("attention", "paged", "causal", lambda v: False)),
    "sin for cos": ("qwen3", "none", swapped_tables),
    "one theta": ("gemma3_text", "none", one_theta),
    "no mask": ("llama", "left", without_mask),
    "no bias": ("qwen2", "none", lambda m: m.setattr(quern.gemm, "dense", (lambda dense: lambda a, b, bias=None, **k: dense(a, b, None, **k))(quern.gemm.dense))),
    "silu for gelu_tanh": ("gemma3_text", "none", None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults(fault, monkeypatch):
    family, side, plant = FAULTS[fault]
    plain, ours, _ = models(family)
    ids, there, positions = padded(side)
    arguments = dict(attention_mask=there, position_ids=positions, use_cache=False)
    theirs, truth = logits(plain, ids, **arguments), truth_of(family, side)
    if plant is None:
        ours = copy.deepcopy(plain)
        for layer in ours.model.layers:
            layer.mlp.act_fn = transformers.activations.ACT2FN["silu"]
        enable(ours)
    else:
        plant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_as_right(logits(ours, ids, **arguments), theirs, truth, there)
