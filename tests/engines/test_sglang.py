# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""SGLang's RadixAttention layers, pools and forward batches with the backend quern, and its layers behind quern's hooks, beside formulas in double.

The model runner is a stand-in: a namespace of what the backend reads. Everything else is SGLang's."""
import importlib.metadata
import logging
import sys
import types

import pytest
import torch
from exact import assert_near, attention
from sglang.srt import plugins
from sglang.srt.arg_groups.choices import ATTENTION_BACKEND_CHOICES
from sglang.srt.configs.model_config import AttentionArch
from sglang.srt.layers import activation, layernorm
from sglang.srt.layers.attention.attention_registry import ATTENTION_BACKENDS
from sglang.srt.layers.radix_attention import AttentionType, RadixAttention
from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding
from sglang.srt.mem_cache.memory_pool import KVWriteLoc, MHATokenToKVPool, ReqToTokenPool
from sglang.srt.mem_cache.swa_memory_pool import SWAKVPool
from sglang.srt.model_executor.forward_batch_info import ForwardBatch, ForwardMode
from sglang.srt.plugins.hook_registry import HookRegistry

import quern
from quern.integrations import sglang as plugin
from quern.integrations.sglang import layers

HEADS, HEADS_KV, HEAD, SLOTS, CONTEXT = 4, 2, 64, 512, 128
DECODE, EXTEND, MIXED = [(1, 50), (1, 1), (1, 33)], [(20, 60), (33, 33), (1, 70)], [(1, 90), (40, 40), (1, 17), (3, 20)]


def numbers(*shape, seed, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def runner(page_size=1, dtype=torch.bfloat16, cache=None, **changes):
    """What QuernAttention reads of a ModelRunner. Slots that nobody wrote hold NaN."""
    pool = changes.pop("pool", None) or MHATokenToKVPool(size=SLOTS, page_size=page_size, dtype=cache or dtype, head_num=HEADS_KV, head_dim=HEAD, layer_num=2, device="cpu", enable_memory_saver=False)
    for buffer in (*getattr(pool, "k_buffer", []), *getattr(pool, "v_buffer", [])):
        buffer.view(torch.uint8).fill_(255)
    config = types.SimpleNamespace(attention_arch=AttentionArch.MHA, is_encoder_decoder=False, is_local_attention_model=False, dtype=dtype, context_len=CONTEXT, num_attention_heads=HEADS,
                                   get_num_kv_heads=lambda tp: HEADS_KV // tp, head_dim=HEAD)
    requests = ReqToTokenPool(size=8, max_context_len=CONTEXT, device="cpu", enable_memory_saver=False)
    of = dict(model_config=config, kv_cache_dtype=cache or dtype, device="cpu", page_size=page_size, req_to_token_pool=requests, token_to_kv_pool=pool, tp_size=1,
              kv_index_translator=types.SimpleNamespace(is_translating=False), server_args=types.SimpleNamespace(enable_deterministic_inference=False))
    for name, value in changes.items():
        (setattr(config, name, value) if hasattr(config, name) else of.update({name: value}))
    return types.SimpleNamespace(**of)


def place(made, requests):
    """Slots of every key, page by page in no order, as SGLang's allocator would write them into the table: [slots of a request]."""
    page = made.page_size
    order, used, slots = torch.randperm(SLOTS // page, generator=torch.Generator().manual_seed(3)) + 1, 0, []  # page 0 is the pool's dummy
    for row, (_, keys) in enumerate(requests):
        pages = order[used:used + -(-keys // page)]
        used += len(pages)
        slots.append((pages[:, None] * page + torch.arange(page)).flatten()[:keys] % (SLOTS + page))
        made.req_to_token_pool.req_to_token[row + 2, :keys] = slots[-1].to(torch.int32)
    return slots


def batch_of(requests, slots, mode):
    lengths, new = torch.tensor([k for _, k in requests]), torch.tensor([n for n, _ in requests])
    extend = {} if mode == ForwardMode.DECODE else dict(extend_seq_lens=new.to(torch.int32), extend_prefix_lens=(lengths - new).to(torch.int32), extend_seq_lens_cpu=new.tolist(),
                                                        extend_prefix_lens_cpu=(lengths - new).tolist())
    return ForwardBatch(forward_mode=mode, batch_size=len(requests), input_ids=torch.zeros(int(new.sum()), dtype=torch.long), req_pool_indices=torch.arange(len(requests)) + 2, seq_lens=lengths,
                        seq_lens_cpu=lengths, out_cache_loc=torch.cat([s[k - n:] for s, (n, k) in zip(slots, requests)]), seq_lens_sum=int(lengths.sum()), **extend)


def filled(made, requests, layer, seed, dtype):
    """Keys and values of whole requests, the earlier ones in the pool."""
    slots = place(made, requests)
    whole = [tuple(numbers(keys, HEADS_KV, HEAD, seed=seed + 10 * b + i, dtype=dtype) for i in range(2)) for b, (_, keys) in enumerate(requests)]
    for (n, keys), s, (k, v) in zip(requests, slots, whole):
        made.token_to_kv_pool.set_kv_buffer(layer, s[:keys - n], k[:keys - n].clone(), v[:keys - n].clone(), layer.k_scale, layer.v_scale)
    return slots, whole


def check(made, requests, mode, layer=None, seed=1, dtype=torch.bfloat16, backend=None, stored=None, more={}, **options):  # noqa: B006
    layer = layer or RadixAttention(HEADS, HEAD, HEAD**-0.5, HEADS_KV, 1)
    backend = backend or ATTENTION_BACKENDS["quern"](made)
    slots, whole = filled(made, requests, layer, seed, dtype)
    batch = batch_of(requests, slots, mode)
    tokens = sum(n for n, _ in requests)
    q = numbers(tokens, HEADS * HEAD, seed=seed + 5, dtype=dtype)
    k, v = (torch.cat([w[i][keys - n:] for w, (n, keys) in zip(whole, requests)]) for i in range(2))
    backend.init_forward_metadata(batch)
    out = backend.forward(q, k.clone(), v.clone(), layer, batch, **more)
    out = out if isinstance(out, tuple) else (out,)
    begin = 0
    for (n, _), (keys, values) in zip(requests, whole):
        if stored is not None:
            keys, values = ((x / layer.k_scale).to(stored).double() * float(layer.k_scale) for x in (keys, values))
        expected, magnitude = attention(q[begin:begin + n].view(n, HEADS, HEAD), keys, values, layer.scaling, **options)
        assert_near(out[0][begin:begin + n].view(n, HEADS, HEAD), expected, magnitude, dtype)
        begin += n
    return batch, out


@pytest.mark.parametrize("page_size", [1, 16])
@pytest.mark.parametrize("mode, requests", [(ForwardMode.DECODE, DECODE), (ForwardMode.EXTEND, EXTEND), (ForwardMode.MIXED, MIXED)], ids=["decode", "extend", "mixed"])
def test_steps(page_size, mode, requests):
    check(runner(page_size), requests, mode)


def test_layer_options():
    sinks = numbers(HEADS, seed=9) + 1
    check(runner(), MIXED, ForwardMode.MIXED, RadixAttention(HEADS, HEAD, 0.3, HEADS_KV, 0, logit_cap=1.5, sliding_window_size=9), left=9, cap=1.5, sinks=sinks, more=dict(sinks=sinks))
    check(runner(dtype=torch.float16), DECODE, ForwardMode.DECODE, dtype=torch.float16)
    check(runner(), EXTEND, ForwardMode.EXTEND, RadixAttention(HEADS, HEAD, 0.125, HEADS_KV, 0, attn_type=AttentionType.ENCODER_ONLY, sliding_window_size=12), causal=False, left=12, right=12)


def test_lse():
    """The natural logarithm of the sum of exp, beside logits in double."""
    made = runner()
    _, (out, lse) = check(made, [(5, 5)], ForwardMode.EXTEND, more=dict(return_lse=True))
    assert out.shape == (5, HEADS, HEAD) and lse.shape == (5, HEADS)
    q, k = numbers(5, HEADS, HEAD, seed=6).double(), numbers(5, HEADS_KV, HEAD, seed=1).double()
    logits = torch.einsum("qhd,khd->qhk", q, k.repeat_interleave(2, 1)) / 8
    logits = logits.masked_fill(torch.arange(5)[None, None] > torch.arange(5)[:, None, None], -torch.inf)
    assert (lse - logits.logsumexp(-1)).abs().max() < 1e-3


@pytest.mark.parametrize("cache", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_fp8_cache(cache):
    layer = RadixAttention(HEADS, HEAD, 0.125, HEADS_KV, 1)
    layer.k_scale = layer.v_scale = torch.tensor(0.05)
    check(runner(cache=cache), MIXED, ForwardMode.MIXED, layer, stored=cache)


def test_pool_of_windows():
    """Layers with a window have a pool and slots of their own."""
    pool = SWAKVPool(size=SLOTS, size_swa=SLOTS, page_size=1, dtype=torch.bfloat16, head_num=HEADS_KV, head_dim=HEAD, swa_attention_layer_ids=[1], full_attention_layer_ids=[0], device="cpu",
                     enable_memory_saver=False, token_to_kv_pool_class=MHATokenToKVPool)
    mapping = torch.cat((torch.zeros(1, dtype=torch.long), torch.randperm(SLOTS, generator=torch.Generator().manual_seed(8)) + 1, torch.tensor([-1])))
    pool.register_mapping(mapping)
    made = runner(pool=pool)
    slots = place(made, MIXED)
    for index, window in ((0, -1), (1, 9)):
        layer = RadixAttention(HEADS, HEAD, 0.125, HEADS_KV, index, sliding_window_size=window)
        whole = [tuple(numbers(keys, HEADS_KV, HEAD, seed=10 * b + i) for i in range(2)) for b, (_, keys) in enumerate(MIXED)]
        for (n, keys), s, (k, v) in zip(MIXED, slots, whole):
            pool.set_kv_buffer(layer, KVWriteLoc(s[:keys - n], mapping[s[:keys - n]]), k[:keys - n], v[:keys - n])
        backend, batch = ATTENTION_BACKENDS["quern"](made), batch_of(MIXED, slots, ForwardMode.MIXED)
        q = numbers(sum(n for n, _ in MIXED), HEADS * HEAD, seed=5)
        k, v = (torch.cat([w[i][keys - n:] for w, (n, keys) in zip(whole, MIXED)]) for i in range(2))
        backend.init_forward_metadata(batch)
        out, begin = backend.forward(q, k, v, layer, batch), 0
        for (n, _), (keys, values) in zip(MIXED, whole):
            expected, magnitude = attention(q[begin:begin + n].view(n, HEADS, HEAD), keys, values, 0.125, left=window)
            assert_near(out[begin:begin + n].view(n, HEADS, HEAD), expected, magnitude, torch.bfloat16)
            begin += n


@pytest.mark.parametrize("page_size", [1, 16])
def test_graph(page_size):
    """A captured step reads buffers of one address: replays are calls of the layer with the tensors of the capture."""
    made = runner(page_size, context_len=1024)
    made.req_to_token_pool = ReqToTokenPool(size=8, max_context_len=1024, device="cpu", enable_memory_saver=False)
    backend, layer = ATTENTION_BACKENDS["quern"](made), RadixAttention(HEADS, HEAD, 0.125, HEADS_KV, 1)
    backend.init_cuda_graph_state(4, 4)
    assert backend.get_cuda_graph_seq_len_fill_value() == 1
    captured = batch_of([(1, 1)] * 4, [torch.zeros(1, dtype=torch.long)] * 4, ForwardMode.DECODE)
    backend.init_forward_metadata_out_graph(captured, in_capture=True)
    step = backend.step
    assert step.workspace is not None
    for requests in (DECODE, [(1, 70), (1, 3), (1, 90)]):
        slots, whole = filled(made, requests, layer, 1, torch.bfloat16)
        padded = requests + [(1, 1)] * (4 - len(requests))
        batch = batch_of(padded, slots + [torch.zeros(1, dtype=torch.long)] * (4 - len(requests)), ForwardMode.DECODE)
        batch.req_pool_indices[len(requests):] = 0
        backend.init_forward_metadata_out_graph(batch)
        backend.step = step  # a replay makes no new one
        k, v = (torch.cat([w[i][-1:] for w in whole] + [numbers(4 - len(requests), HEADS_KV, HEAD, seed=99)]) for i in range(2))
        q = numbers(4, HEADS * HEAD, seed=7)
        out = backend.forward(q, k, v, layer, batch)
        for b, (keys, values) in enumerate(whole):
            expected, magnitude = attention(q[b:b + 1].view(1, HEADS, HEAD), keys, values, 0.125)
            assert_near(out[b:b + 1].view(1, HEADS, HEAD), expected, magnitude, torch.bfloat16)


def test_determinism(monkeypatch):
    """Asked for, each call is told."""
    asked, paged = [], quern.attention.paged
    monkeypatch.setattr(quern.attention, "paged", lambda *a, **k: asked.append(k.get("batch_invariant", False)) or paged(*a, **k))
    for wanted in (False, True):
        check(runner(server_args=types.SimpleNamespace(enable_deterministic_inference=wanted)), DECODE, ForwardMode.DECODE)
    assert asked == [False, True]


def test_idle():
    backend, idle = ATTENTION_BACKENDS["quern"](runner()), types.SimpleNamespace(forward_mode=ForwardMode.IDLE)
    backend.init_forward_metadata(idle)
    assert backend.step is None
    assert backend.forward(torch.zeros(0, HEADS * HEAD), None, None, RadixAttention(HEADS, HEAD, 0.125, HEADS_KV, 0), idle).shape == (0, HEADS * HEAD)


def test_what_is_refused():
    for change, error in ((dict(attention_arch=AttentionArch.MLA), "MLA"), (dict(is_encoder_decoder=True), "cross attention"), (dict(is_local_attention_model=True), "chunked local attention"),
                          (dict(kv_index_translator=types.SimpleNamespace(is_translating=True)), "--enable-unified-memory"), (dict(kv_cache_dtype=torch.uint8), "`kv_cache_dtype` is torch.uint8")):
        with pytest.raises(NotImplementedError, match=error):
            ATTENTION_BACKENDS["quern"](runner(**change))
    made = runner()
    backend, slots = ATTENTION_BACKENDS["quern"](made), place(made, DECODE)
    for mode in (ForwardMode.TARGET_VERIFY, ForwardMode.DRAFT_EXTEND_V2, ForwardMode.DLLM_EXTEND):
        with pytest.raises(NotImplementedError, match=f"the step is {mode.name}, expected DECODE, EXTEND or MIXED"):
            backend.init_forward_metadata(batch_of(DECODE, slots, mode))
    with pytest.raises(RuntimeError, match=r"init_cuda_graph_state\(\) was not called"):
        backend.init_forward_metadata_out_graph(batch_of(DECODE, slots, ForwardMode.DECODE))
    backend.init_cuda_graph_state(4, 4)
    with pytest.raises(NotImplementedError, match="a graph of EXTEND is captured, expected DECODE"):
        backend.init_forward_metadata_out_graph(batch_of(EXTEND, place(made, EXTEND), ForwardMode.EXTEND))
    batch, q = batch_of(DECODE, slots, ForwardMode.DECODE), numbers(3, HEADS * HEAD, seed=1)
    backend.init_forward_metadata(batch)
    for options, more, error in ((dict(v_head_dim=32), {}, "heads of 64 and values of 32"), (dict(use_irope=True), {}, "local attention"), ({}, dict(rel_bias=q), "`rel_bias`"),
                                 (dict(is_cross_attention=True), {}, "cross attention")):
        with pytest.raises(NotImplementedError, match=error):
            backend.forward(q, None, None, RadixAttention(HEADS, HEAD, 0.125, HEADS_KV, 0, **options), batch, **more)


# ---- layers


@pytest.fixture
def used(monkeypatch):
    monkeypatch.setattr(layers, "_used", True)


def rounded_once(got, exact, magnitude):
    assert ((got.double() - exact).abs() <= 2.0**-8 * exact.abs() + 2.0**-20 * magnitude).all()


def test_registered():
    """SGLang loads the plugin, puts the hooks in place, and a second time nothing changes."""
    (point,) = importlib.metadata.entry_points(group=plugins.GENERAL_PLUGINS_GROUP, name="quern")
    assert point.load() is plugin.register
    for _ in range(2):
        plugin.register()
        HookRegistry.apply_hooks()
    assert ATTENTION_BACKEND_CHOICES.count("quern") == 1 and "quern" in ATTENTION_BACKENDS
    for target, hook in layers.HOOKS.items():
        assert [h for _, h, _ in HookRegistry._hooks[target]] == [hook] and target in HookRegistry._patched


@pytest.fixture(scope="module", autouse=True)
def loaded():
    plugins.load_plugins()


@pytest.mark.parametrize("gemma", [False, True])
@pytest.mark.parametrize("shape", [(5, 128), (2, 3, 128)])
def test_norms(used, gemma, shape):
    x, residual, addition = (numbers(*shape, seed=s) for s in (1, 2, 3))
    norm = layernorm.GemmaRMSNorm(128, 1e-5) if gemma else layernorm.RMSNorm(128, 1e-5, weight_dtype=torch.bfloat16)
    norm.weight.data = numbers(128, seed=4)
    exact = lambda t: t / (t.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * (norm.weight.double() + gemma)  # noqa: E731
    rounded_once(norm.forward_cuda(x), exact(x.double()), 16)
    for more in ((), (addition,)):
        total = (x.float() + (residual + addition if more else residual).float()).bfloat16()
        out, written = norm.forward_cuda(x.clone(), residual.clone(), *more)
        assert torch.equal(written, total)
        rounded_once(out, exact(x.double() + (residual + addition if more else residual).double()), 2.0**12)


def test_norms_that_are_sglang_s(used, monkeypatch):
    """Where quern's is not what the layer means, its own function is called."""
    called = []
    monkeypatch.setattr(layers, "_normed", lambda *a: called.append(a))
    x = numbers(4, 64, seed=1)
    original = lambda self, *arguments: "SGLang's"  # noqa: E731
    for options in (dict(var_hidden_size=32), dict(cast_x_before_out_mul=True), dict(fp32_residual=True), dict(weight_dtype=torch.float16)):
        assert layers.rms_norm(original, layernorm.RMSNorm(64, **options), x) == "SGLang's"
    assert layers.rms_norm(original, layernorm.RMSNorm(64, weight_dtype=torch.bfloat16), x, quant_linear=torch.nn.Linear(1, 1)) == "SGLang's"
    assert layers.rms_norm(original, layernorm.RMSNorm(64), x[:0]) == "SGLang's" and called == []


@pytest.mark.parametrize("build, exact", [
    (activation.SiluAndMul, lambda x: x[..., :64] / (1 + (-x[..., :64]).exp()) * x[..., 64:]), (lambda: activation.GeluAndMul("tanh"), lambda x: torch.nn.functional.gelu(x[..., :64], approximate="tanh") * x[..., 64:]),
    (lambda: activation.GeluAndMul("none"), lambda x: torch.nn.functional.gelu(x[..., :64]) * x[..., 64:]), (activation.NewGELU, lambda x: torch.nn.functional.gelu(x, approximate="tanh")),
    (activation.ReLU2, lambda x: x.clamp(min=0)**2)])
def test_activations(used, build, exact):
    for shape in ((7, 128), (2, 3, 128)):
        x = numbers(*shape, seed=1) * 2
        rounded_once(build().forward_cuda(x), exact(x.double()), 16)


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("rotary", [64, 32])
@pytest.mark.parametrize("store", [False, True])
def test_rope(used, neox, rotary, store):
    rope = RotaryEmbedding(64, rotary, 128, 10000, neox, torch.bfloat16)
    positions = torch.tensor([0, 5, 127, 3])
    qkv = numbers(4, 8 * 64, seed=1)
    before, (q, k, v) = qkv.clone(), qkv.split([256, 128, 128], dim=1)
    buffers, fused = [torch.full((9, 2, 64), torch.nan, dtype=torch.bfloat16) for _ in range(2)], None
    slots = torch.tensor([7, 1, 4, 8])
    if store:
        fused = types.SimpleNamespace(value=v, k_buffer=buffers[0].view(9, -1), v_buffer=buffers[1].view(9, -1), cache_loc=slots)
    out = rope.forward_cuda(positions, q, k, fused_set_kv_buffer_arg=fused)
    cos, sin = rope.cos_sin_cache.double()[positions].chunk(2, -1)
    for got, was in zip(out, (before[:, :256], before[:, 256:384])):
        x = was.double().reshape(4, -1, 64)
        first, second = (slice(0, rotary // 2), slice(rotary // 2, rotary)) if neox else (slice(0, rotary, 2), slice(1, rotary, 2))
        exact = x.clone()
        exact[..., first] = x[..., first] * cos[:, None] - x[..., second] * sin[:, None]
        exact[..., second] = x[..., second] * cos[:, None] + x[..., first] * sin[:, None]
        rounded_once(got.reshape(4, -1, 64), exact, 4)
    if store:
        assert torch.equal(buffers[0][slots].flatten(1), k) and torch.equal(buffers[1][slots].flatten(1), v)
        assert buffers[0][[0, 2, 3, 5, 6]].isnan().all()


def test_layers_without_the_backend(monkeypatch):
    """Hooks alone change nothing; the backend, once made, turns them on."""
    monkeypatch.setattr(layers, "_used", False)
    x = numbers(4, 128, seed=1)
    for hook in layers.HOOKS.values():
        assert hook(lambda *arguments: "SGLang's", types.SimpleNamespace(weight=x), x, *([x, x] if hook is layers.rope else [])) == "SGLang's"
    ATTENTION_BACKENDS["quern"](runner())
    assert layers._used


def test_another_sglang(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "quern.integrations.sglang.layers", None)
    monkeypatch.delattr(plugin, "layers")
    with caplog.at_level(logging.ERROR, "quern"):
        plugin.register()
    assert "nothing is registered, this SGLang is not the one that the plugin was made for" in caplog.text
