# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""vLLM's Attention layer with the backend QUERN, over steps as vLLM's runner describes them, beside attention in double."""
import dataclasses

import pytest
import torch
from exact import assert_near, attention
from vllm.config import CUDAGraphMode, set_current_vllm_config
from vllm.forward_context import set_forward_context
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.attention.cross_attention import create_cross_attention_backend
from vllm.platforms.interface import DeviceCapability
from vllm.v1.attention.backend import AttentionCGSupport, AttentionType, CommonAttentionMetadata
from vllm.v1.kv_cache_interface import FullAttentionSpec, get_kv_quant_mode
from vllm.v1.kv_cache_layout import KVCacheLayout

from quern.integrations.vllm.attention import QuernBackend, QuernBuilder

HOPPER = DeviceCapability(9, 0)
HEADS, HEADS_KV, BLOCK, BLOCKS, LAYERS = 4, 2, 16, 24, 3
FP8 = {"fp8": torch.float8_e4m3fn, "fp8_e4m3": torch.float8_e4m3fn, "fp8_e5m2": torch.float8_e5m2}
# (query tokens, keys with these) of each request
PREFILL, CHUNKED, DECODE, MIXED = [(37, 37), (5, 5)], [(20, 60), (33, 70)], [(1, 50), (1, 1), (1, 33)], [(1, 90), (40, 40), (1, 17), (3, 20), (18, 50)]


def numbers(*shape, seed, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


@dataclasses.dataclass
class Layer:
    """An Attention of vLLM, its cache among those of other layers, and the tables of the requests that it serves."""

    attention: Attention
    builder: QuernBuilder
    cache: torch.Tensor
    config: object
    width: int  # of tables

    def table(self, requests):
        """Blocks of each request, in no order."""
        order = torch.randperm(BLOCKS, generator=torch.Generator().manual_seed(3)).to(torch.int32)
        table, used = torch.full((len(requests), self.width), -1, dtype=torch.int32), 0  # entries of no key are not read
        for b, (_, keys) in enumerate(requests):
            n = -(-keys // BLOCK)
            table[b, :n] = order[used:used + n]
            used += n
        return table


def make(config, layout=KVCacheLayout.LBHNC, head=64, dtype=torch.bfloat16, kv="auto", name="layer", width=8, heads_kv=HEADS_KV, **options):
    cache_config = config.cache_config
    cache_config.cache_dtype = kv
    torch.set_default_dtype(dtype)
    try:
        with set_current_vllm_config(config):
            layer = Attention(HEADS, head, options.pop("scale", head**-0.5), heads_kv, cache_config=cache_config, prefix=name, attn_backend=QuernBackend, **options)
    finally:
        torch.set_default_dtype(torch.float32)
    stored = FP8.get(kv, dtype)
    sizes = (LAYERS, BLOCKS, heads_kv, BLOCK, 2 * head)
    memory = torch.full([sizes[i] for i in layout.value], 0x7F, dtype=torch.uint8).to(torch.float32).fill_(torch.nan).to(stored)  # what is not written is NaN
    cache = memory.permute([layout.value.index(i) for i in range(5)])
    layer.kv_cache = cache[1]
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=heads_kv, head_size=head, dtype=stored, kv_quant_mode=get_kv_quant_mode(kv))
    with set_current_vllm_config(config):
        builder = QuernBuilder(spec, [name], config, torch.device("cpu"), block_table_width=width)
    return Layer(layer, builder, cache, config, width)


@pytest.fixture
def config(engine_config):
    engine_config.compilation_config.static_forward_context.clear()
    return engine_config


def common(layer, requests, slots, padding, causal):
    lengths = torch.tensor([n for n, _ in requests], dtype=torch.int32)
    start = torch.cat((torch.zeros(1, dtype=torch.int32), lengths.cumsum(0).to(torch.int32)))
    seq_lens = torch.tensor([keys for _, keys in requests], dtype=torch.int32)
    return CommonAttentionMetadata(query_start_loc=start, query_start_loc_cpu=start, seq_lens=seq_lens, num_reqs=len(requests), num_actual_tokens=int(start[-1]),
                                   max_query_len=int(lengths.max()), max_seq_len=int(seq_lens.max()), block_table_tensor=layer.table(requests), slot_mapping=slots, causal=causal)


def slots_of(layer, requests, from_key):
    """Slots of the keys from_key(request) on of each request."""
    table = layer.table(requests)
    return torch.cat([table[b, torch.arange(from_key(r), r[1]) // BLOCK].long() * BLOCK + torch.arange(from_key(r), r[1]) % BLOCK for b, r in enumerate(requests)])


def step(layer, requests, seed=1, padding=3, causal=True, dtype=torch.bfloat16):
    """One step of a layer whose requests have their earlier keys in the cache: ([(q, k, v) of each request], out with rows of padding behind)."""
    head, heads_kv = layer.attention.head_size, layer.attention.num_kv_heads
    whole = [tuple(numbers(keys, heads_kv, head, seed=seed + 10 * b + i, dtype=dtype) for i in range(2)) for b, (_, keys) in enumerate(requests)]
    earlier = [(keys - n, keys - n) for n, keys in requests]
    if any(n for n, _ in earlier):  # through the layer's own append
        slots = torch.cat([s for s in slots_of(layer, requests, lambda r: 0).split([k for _, k in requests])])
        old = torch.cat([torch.arange(keys) < keys - n for n, keys in requests])
        layer.attention.impl.do_kv_cache_update(layer.attention, *(torch.cat([w[i] for w in whole])[old] for i in range(2)), layer.attention.kv_cache, slots[old])
    tokens = sum(n for n, _ in requests)
    width = (HEADS + 2 * heads_kv) * head
    qkv = torch.full((tokens + padding, width), torch.nan, dtype=dtype)  # as a QKV projection leaves them: rows that are further apart than their heads
    q, k, v = qkv.split([HEADS * head, heads_kv * head, heads_kv * head], dim=1)
    q[:tokens] = numbers(tokens, HEADS * head, seed=seed + 5, dtype=dtype)
    for to, i in ((k, 0), (v, 1)):
        to[:tokens] = torch.cat([w[i][keys - n:] for w, (n, keys) in zip(whole, requests)]).flatten(1)
    slots = slots_of(layer, requests, lambda r: r[1] - r[0])
    metadata = layer.builder.build(0, common(layer, requests, slots, padding, causal))
    name = layer.attention.layer_name
    with set_forward_context({name: metadata}, layer.config, slot_mapping={name: slots}):
        out = layer.attention(q.clone(), k, v)
    assert out.shape == (tokens + padding, HEADS * head)
    parts, begin = [], 0
    for (n, _), (keys, values) in zip(requests, whole):
        parts.append((q[begin:begin + n].view(n, HEADS, head), keys, values))
        begin += n
    return parts, out[:tokens].view(tokens, HEADS, head)


def check(layer, requests, dtype=torch.bfloat16, causal=True, seed=1, stored=None, scales=None, **options):
    parts, out = step(layer, requests, seed=seed, causal=causal, dtype=dtype)
    begin = 0
    for q, k, v in parts:
        if stored is not None:
            most = torch.finfo(stored).max
            k, v = ((x.float() / s.float()).clamp(-most, most).to(stored).double() * s for x, s in zip((k, v), scales))
        expected, magnitude = attention(q, k, v, layer.attention.impl.scale, causal=causal, **options)
        assert_near(out[begin:begin + len(q)], expected, magnitude, dtype)
        begin += len(q)
    return out


@pytest.mark.parametrize("requests", [PREFILL, CHUNKED, DECODE, MIXED], ids=["prefill", "chunked", "decode", "mixed"])
def test_steps(config, requests):
    check(make(config), requests)


@pytest.mark.parametrize("layout", list(KVCacheLayout), ids=lambda layout: layout.name)
def test_layouts(config, layout):
    """Only this layer's part of the cache is written, and of it the step's slots alone."""
    layer = make(config, layout)
    check(layer, MIXED, seed=20)
    written = torch.zeros(BLOCKS * BLOCK, dtype=torch.bool)
    written[slots_of(layer, MIXED, lambda r: 0)] = True
    there = ~layer.cache.isnan()
    assert not there[0].any() and not there[2].any()
    assert torch.equal(there[1], written.view(BLOCKS, 1, BLOCK, 1).expand(there[1].shape))


@pytest.mark.parametrize("kv", ["fp8", "fp8_e5m2"])
@pytest.mark.parametrize("by_head", [False, True])
def test_fp8_cache(config, kv, by_head):
    layer = make(config, kv=kv)
    k_scale, v_scale = (torch.tensor([0.02, 0.04]), torch.tensor([0.03, 0.01])) if by_head else (torch.tensor(0.02), torch.tensor(0.05))
    layer.attention._k_scale, layer.attention._v_scale = k_scale, v_scale
    scales = [s.double().reshape(-1, 1).expand(HEADS_KV, 1) for s in (k_scale, v_scale)]
    check(layer, MIXED, seed=30, stored=FP8[kv], scales=scales)


@pytest.mark.parametrize("window", [1, 9, 64])
def test_windows(config, window):
    check(make(config, per_layer_sliding_window=window), MIXED, seed=40, left=window - 1)


def test_window_of_a_layer_that_is_not_causal(config):
    check(make(config, per_layer_sliding_window=9), MIXED, seed=41, causal=False, left=8, right=8)


def test_not_causal(config):
    check(make(config), MIXED, seed=42, causal=False)


def test_sinks_and_scale(config):
    sinks = numbers(HEADS, seed=9) + 1
    check(make(config, sinks=sinks, scale=0.3), MIXED, seed=50, sinks=sinks)


def test_soft_cap(config):
    check(make(config, logits_soft_cap=1.5), MIXED, seed=51, cap=1.5)


def test_alibi(config):
    slopes = [0.5, 0.25, 0.125, 0.0625]
    check(make(config, alibi_slopes=slopes), MIXED, seed=52, slopes=slopes)


def test_f16_and_another_head_size(config):
    config.model_config.dtype = torch.float16
    try:
        check(make(config, head=80, dtype=torch.float16), MIXED, dtype=torch.float16, seed=53)
    finally:
        config.model_config.dtype = torch.bfloat16


def test_one_workspace_for_all_graphs(config, monkeypatch):
    """Where full graphs are captured a builder owns the memory of every step, and steps have the bits that they have without."""
    wide = dict(width=64)  # up to 256 keys a request there are no parts to keep
    plain = step(make(config, name="plain", **wide), MIXED)[1]
    monkeypatch.setattr(config.compilation_config, "cudagraph_mode", CUDAGraphMode.FULL)
    layer = make(config, name="captured", **wide)
    assert layer.builder.workspace.numel() > 0 and layer.builder.get_cudagraph_support(config, None) is AttentionCGSupport.ALWAYS
    assert make(config, name="short").builder.workspace is None
    layer.builder.workspace.fill_(255)
    assert torch.equal(step(layer, MIXED)[1], plain)
    for requests in (PREFILL, DECODE, [(1, 128)] * 3, [(1, 1)]):
        check(layer, requests, seed=60)
    short = dataclasses.replace(layer.builder.build(0, common(layer, MIXED, None, 0, True)), workspace=layer.builder.workspace[:64])
    with set_forward_context({"captured": short}, config, slot_mapping={}), pytest.raises(ValueError, match="`workspace`"):
        layer.attention(*(torch.zeros(63, h * 64, dtype=torch.bfloat16) for h in (HEADS, HEADS_KV, HEADS_KV)))


def test_batch_invariance(config, monkeypatch):
    """A request has the same bits alone and among others, where vLLM asks for that."""
    from vllm import envs

    monkeypatch.setattr(envs, "VLLM_BATCH_INVARIANT", True)
    requests = [(1, 17), (1, 270), (2, 40), (1, 3)]  # the second is longer than a chunk, and begins behind an odd number of units of work
    layer = make(config, width=64, heads_kv=1)
    parts, together = step(layer, requests, seed=7)
    begin = 0
    for b, (q, k, v) in enumerate(parts):
        n, keys = requests[b]
        metadata = layer.builder.build(0, common(layer, requests, None, 0, True))
        alone = dataclasses.replace(metadata, query_start_loc=torch.tensor([0, n], dtype=torch.int32), seq_lens=metadata.seq_lens[b:b + 1], block_table=metadata.block_table[b:b + 1])
        out = torch.full_like(q, torch.nan)
        layer.attention.impl.forward(layer.attention, q, k, v, layer.attention.kv_cache, alone, out)
        assert torch.equal(out, together[begin:begin + n])
        begin += n


def test_encoder(config):
    """No cache: every token sees all of its request."""
    layer = make(config, attn_type=AttentionType.ENCODER_ONLY, per_layer_sliding_window=20)
    q, k, v = (numbers(45, h * 64, seed=s) for s, h in ((1, HEADS), (2, HEADS_KV), (3, HEADS_KV)))
    requests = [(30, 30), (12, 12)]
    metadata = layer.builder.build(0, common(layer, requests, None, 0, True))
    with set_forward_context({"layer": metadata}, config, slot_mapping={}):
        out = layer.attention(q, k, v).view(-1, HEADS, 64)
    for begin, end in ((0, 30), (30, 42)):
        expected, magnitude = attention(q[begin:end].view(-1, HEADS, 64), k[begin:end].view(-1, HEADS_KV, 64), v[begin:end].view(-1, HEADS_KV, 64), 0.125, causal=False, left=19, right=19)
        assert_near(out[begin:end], expected, magnitude, torch.bfloat16)


def test_cross_attention(config):
    """Decoder queries over the encoder's keys, which the first step appends."""
    backend, layer = create_cross_attention_backend(QuernBackend), make(config)
    impl = backend.get_impl_cls()(HEADS, 64, 0.125, HEADS_KV, None, None, "auto", None, AttentionType.ENCODER_DECODER)
    with set_current_vllm_config(config):
        builder = backend.get_builder_cls()(layer.builder.kv_cache_spec, ["layer"], config, torch.device("cpu"), block_table_width=8)
    requests, encoder = [(3, 3), (1, 1)], [20, 7]
    lengths = torch.tensor(encoder, dtype=torch.int32)
    given = common(layer, [(n, keys) for (n, _), keys in zip(requests, encoder)], None, 0, True).replace(encoder_seq_lens=lengths, encoder_seq_lens_cpu=lengths.numpy(),
                                                                                                         seq_lens_cpu_upper_bound=torch.tensor([3, 1], dtype=torch.int32))
    metadata = builder.build(0, given)
    q, k, v = numbers(4, HEADS, 64, seed=1), numbers(27, HEADS_KV, 64, seed=2), numbers(27, HEADS_KV, 64, seed=3)
    out = torch.full_like(q, torch.nan)
    impl.forward(layer.attention, q, k, v, layer.attention.kv_cache, metadata, out)
    for (begin, end), (first, last) in (((0, 3), (0, 20)), ((3, 4), (20, 27))):
        expected, magnitude = attention(q[begin:end], k[first:last], v[first:last], 0.125, causal=False)
        assert_near(out[begin:end], expected, magnitude, torch.bfloat16)


def test_block_tables_are_exchanged(config):
    layer = make(config)
    metadata = layer.builder.build(0, common(layer, MIXED, None, 0, True))
    other, slots = torch.zeros(5, 8, dtype=torch.int32), torch.zeros(63, dtype=torch.long)
    updated = layer.builder.update_block_table(metadata, other, slots)
    assert updated.block_table is other and updated.slot_mapping is slots and metadata.block_table is not other and updated.seq_lens is metadata.seq_lens


def test_profiling(config):
    """vLLM measures memory with a pass that has no metadata."""
    layer = make(config)
    with set_forward_context(None, config):
        out = layer.attention(*(torch.ones(4, h * 64, dtype=torch.bfloat16) for h in (HEADS, HEADS_KV, HEADS_KV)))
    assert torch.equal(out, torch.zeros_like(out))


def test_what_the_backend_takes():
    """vLLM asks before it selects; a reason is an empty list or words."""
    asked = dict(head_size=128, dtype=torch.bfloat16, kv_cache_dtype="auto", block_size=16, use_mla=False, has_sink=True, use_sparse=False, use_mm_prefix=False,
                 use_per_head_quant_scales=True, device_capability=HOPPER, attn_type=AttentionType.DECODER, has_sliding_window=True, use_non_causal=True, use_batch_invariant=True)
    assert QuernBackend.validate_configuration(**asked) == []
    for change in (dict(head_size=64), dict(head_size=80), dict(head_size=256), dict(head_size=512), dict(dtype=torch.float16), dict(kv_cache_dtype="fp8"), dict(kv_cache_dtype="fp8_e5m2"),
                   dict(kv_cache_dtype="bfloat16"), dict(block_size=1), dict(device_capability=DeviceCapability(8, 0)), dict(attn_type=AttentionType.ENCODER_ONLY), dict(kv_cache_dtype=None)):
        assert QuernBackend.validate_configuration(**{**asked, **change}) == [], change
    for change, reason in ((dict(head_size=72), "head_size"), (dict(head_size=264), "head_size"), (dict(dtype=torch.float32), "dtype"), (dict(kv_cache_dtype="nvfp4"), "kv_cache_dtype"),
                           (dict(kv_cache_dtype="float16"), "kv_cache_dtype is float16 and the model bfloat16"), (dict(use_mla=True), "MLA"), (dict(use_sparse=True), "sparse"),
                           (dict(use_mm_prefix=True), "multimodal"), (dict(use_dcp=True), "DCP"), (dict(use_pcp=True), "PCP"), (dict(use_rswa=True), "R-SWA"),
                           (dict(device_capability=DeviceCapability(7, 5)), "compute capability")):
        reasons = QuernBackend.validate_configuration(**{**asked, **change})
        assert reasons and any(reason in r for r in reasons), (change, reasons)


def test_what_is_refused(config):
    layer = make(config)
    q, k, v = (torch.zeros(2, h, 64, dtype=torch.bfloat16) for h in (HEADS, HEADS_KV, HEADS_KV))
    impl = layer.attention.impl
    for name in ("output_scale", "output_block_scale"):
        with pytest.raises(NotImplementedError, match=f"`{name}` is given, expected None"):
            impl.forward(layer.attention, q, k, v, layer.attention.kv_cache, None, q, **{name: torch.ones(1)})
    for change, error in ((dict(causal=torch.ones(5, dtype=torch.int32)), "`causal` is a tensor"),):
        with pytest.raises(NotImplementedError, match=error):
            layer.builder.build(0, common(layer, MIXED, None, 0, True).replace(**change))
    with pytest.raises(NotImplementedError, match="`common_prefix_len` is 32, expected 0"):
        layer.builder.build(32, common(layer, MIXED, None, 0, True))
    with pytest.raises(NotImplementedError, match=r"`kv_cache` has shape \[24, 2, 16, 96\], expected \[blocks, 2, block_size, 128\]"):
        impl.do_kv_cache_update(layer.attention, k, v, layer.attention.kv_cache[..., :96], torch.zeros(2, dtype=torch.long))
    for options, error in ((dict(scale=0.0), "`scale` is 0"), (dict(sinks=torch.zeros(3)), r"`sinks` has shape \[3\], expected \[4\]")):
        with pytest.raises(ValueError, match=error):
            make(config, name="wrong", **options)
    with pytest.raises(NotImplementedError, match="`kv_cache_dtype` is fp8_per_token_head"):
        make(config, name="wrong", kv="fp8_per_token_head")
