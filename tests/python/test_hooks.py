# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Hooks from Python: code, bytes and tensors that the kernels are handed."""
import ctypes
import struct

import numpy as np
import pytest

import quern

SLOPE = """struct Slope {
  QN_DEVICE f32 logit(f32 x, const HookContext& at) {
    return x - f32(*reinterpret_cast<const float*>(at.params)) * f32(float(at.query_position - at.key_position));
  }
};"""
BIAS = """struct Bias {
  QN_DEVICE f32 logit(f32 x, const HookContext& at) { return x + real_at(at.tensors[1], at.head_q, at.key_position); }
  QN_DEVICE bool visible(const HookContext& at) { return integer_at(at.tensors[0], at.key_position) != 0; }
};"""
LENGTH, HEADS, DIM = 20, 4, 64


def arguments():
    random = np.random.default_rng(3)
    q = random.standard_normal((1, HEADS, DIM)).astype(np.float16)
    k, v = (random.standard_normal((2, 16, 2, DIM)).astype(np.float16) for _ in range(2))
    return q, k, v, np.array([[1, 0]], np.int32), np.array([LENGTH], np.int32)


def expected(bias):
    """`bias` [heads, keys] is added to the logits."""
    q, k, v, table, _ = (a.astype(np.float64) if a.dtype == np.float16 else a for a in arguments())
    keys, values = (np.repeat(cache[table[0]].reshape(32, 2, DIM)[:LENGTH], 2, axis=1) for cache in (k, v))
    p = np.exp(np.einsum("hd,jhd->hj", q[0], keys) / 8 + bias)
    return np.einsum("hj,jhd->hd", p / p.sum(axis=1, keepdims=True), values)


def attention(*, convert=lambda a: a, **options):
    return quern.attention.paged(*(convert(a) for a in arguments()), device="emu", **options)


def is_near(out, bias):
    assert np.abs(np.asarray(out, dtype=np.float64)[0] - expected(bias)).max() < 3e-3


def fails(kind, text, **options):
    with pytest.raises(kind, match=text):
        attention(**options)


DISTANCES = LENGTH - 1 - np.arange(LENGTH)


def test_a_text_and_its_parameters(tmp_path):
    path = tmp_path / "slope.cuh"
    path.write_text(SLOPE)
    is_near(attention(), np.zeros((HEADS, LENGTH)))
    for hooks in (SLOPE, path, str(path)):
        is_near(attention(hooks=hooks, hook_params=struct.pack("f", 0.2)), -0.2 * DISTANCES)
    for params in (np.float32(0.2), np.array([0.2, 5], np.float32), np.array([0.2, 5, 1, 5], np.float32)[::2], ctypes.c_float(0.2), bytearray(struct.pack("f", 0.2)), (ctypes.c_float * 16)(0.2)):
        is_near(attention(hooks=SLOPE, hook_params=params), -0.2 * DISTANCES)
    path.write_text(SLOPE.replace("x -", "x +"))
    is_near(attention(hooks=path, hook_params=np.float32(0.2)), 0.2 * DISTANCES)


def test_workspace_bytes():
    """Hooks are checked as the call would, and do not change what is needed."""
    ask = lambda **options: quern.attention.paged.workspace_bytes(*arguments(), device="emu", **options)
    assert ask(hooks=SLOPE, hook_params=np.float32(1)) == ask()
    with pytest.raises(ValueError, match="`hook_params` is missing"):
        ask(hooks=SLOPE)
    with pytest.raises(ValueError, match="hooks"):
        ask(hooks="nonsense {")


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_tensors(framework):
    convert = (lambda a: a) if framework == "numpy" else pytest.importorskip("torch", reason="needs torch").from_numpy
    random = np.random.default_rng(4)
    bias = random.standard_normal((LENGTH, HEADS)).astype(np.float32)
    seen = np.arange(LENGTH) % 3 != 1
    hidden = np.where(seen, bias.T, -np.inf)
    for table in (bias, bias.astype(np.float16)):
        for mask in (seen.astype(np.uint8), seen.astype(np.int32), seen.astype(np.int64)):
            is_near(attention(convert=convert, hooks=BIAS, hook_tensors=[convert(mask), convert(table).T]), hidden)
    is_near(attention(convert=convert, hooks=BIAS, hook_tensors=(convert(seen.astype(np.uint8)), convert(bias).T, None, None)), hidden)
    out = attention(convert=convert, hooks=BIAS, hook_tensors=[convert(seen.astype(np.uint8)), convert(bias).T], out=convert(np.empty((1, HEADS, DIM), np.float16)))
    is_near(out, hidden)
    is_near(attention(convert=convert), np.zeros((HEADS, LENGTH)))  # a call without hooks beside them


def test_what_is_refused():
    op = r"attention\.paged: "
    fails(ValueError, op + r"`hook_params` is missing, expected at most 64 bytes, which the hooks Slope read", hooks=SLOPE)
    fails(ValueError, op + r"`hook_params` has 68 bytes, expected at most 64 bytes", hooks=SLOPE, hook_params=bytes(68))
    fails(ValueError, op + r"`hook_params` has 2 bytes, expected at least 4, which the hooks Slope read", hooks=SLOPE, hook_params=b"\0\0")
    fails(ValueError, op + r"`hook_params` is given, expected none, as the call has no hooks", hook_params=b"1234")
    fails(TypeError, op + r"`hook_params` is a float, expected bytes, an array of NumPy, or anything that shows its bytes", hooks=SLOPE, hook_params=0.2)
    fails(TypeError, op + r"`hook_params` is a list, expected bytes", hooks=SLOPE, hook_params=[0.2])
    fails(TypeError, op + r"`hooks` is a int, expected the text of a struct, or the path of a file with it", hooks=3)
    fails(ValueError, op + r"`hooks` is '/nowhere/slope\.cuh', expected the text of a struct, or the path of a file with it \(No such file or directory\)", hooks="/nowhere/slope.cuh")
    fails(ValueError, op + r"`hooks` has the member `logits` in Slope, which no kernel calls, expected `logit`", hooks=SLOPE.replace("logit(", "logits("))
    fails(ValueError, op + r"`hooks` has no struct or class, expected the text of one struct with a member that kernels call: `f32 logit", hooks="int x = {};")
    fails(RuntimeError, r"did not compile(.|\n)*hooks:3(.|\n)*nothing_like_it", hooks=SLOPE.replace("at.params", "at.params + at.nothing_like_it"), hook_params=np.float32(1))
    fails(TypeError, op + r"`hook_params` is of float64, which the text of `hooks` does not read, expected f32, or bytes as the struct has them", hooks=SLOPE, hook_params=np.float64(1))
    fails(TypeError, op + r"`hook_params` is of int64, which the text of `hooks` does not read, expected i32, or bytes", hooks=SLOPE, hook_params=np.array([1]))
    mask, bias = np.ones(LENGTH, np.uint8), np.ones((HEADS, LENGTH), np.float32)
    fails(ValueError, op + r"`hook_tensors\[1\]` is missing, expected a tensor, which the hooks Bias read", hooks=BIAS, hook_tensors=[mask])
    fails(ValueError, op + r"`hook_tensors\[0\]` is missing, expected a tensor, which the hooks Bias read", hooks=BIAS)
    fails(ValueError, op + r"`hook_tensors\[0\]` is given, expected none, as the call has no hooks", hook_tensors=[mask])
    fails(TypeError, op + r"`hook_tensors` is a ndarray, expected a list of tensors and None", hooks=BIAS, hook_tensors=mask)
    fails(ValueError, op + r"`hook_tensors\[4\]` is given, expected None: hooks of this op have hook_tensors\[0\], .*hook_tensors\[3\]", hooks=BIAS, hook_tensors=[mask, bias, None, None, bias])
    fails(TypeError, op + r"`hook_tensors\[1\]` is a list, expected a tensor", hooks=BIAS, hook_tensors=[mask, [1.0]])
    fails(TypeError, op + r"`hook_tensors\[1\]` is complex64, expected f32, f16, bf16, i32, i64 or u8", hooks=BIAS, hook_tensors=[mask, bias.astype(np.complex64)])
    fails(TypeError, op + r"`hook_tensors\[1\]` is f64, expected f32, f16, bf16, i32, i64 or u8", hooks=BIAS, hook_tensors=[mask, bias.astype(np.float64)])
    fails(ValueError, op + r"`hook_tensors\[1\]` has 0 dims, expected 1 to 4 dims", hooks=BIAS, hook_tensors=[mask, np.array(1, np.float32)])
    with pytest.raises(TypeError, match="unexpected keyword argument 'hooks'"):
        quern.norm.rms_norm(bias, bias[0], hooks=SLOPE, device="emu")


def test_what_torch_cannot_record():
    torch = pytest.importorskip("torch", reason="needs torch")
    import quern.torch  # noqa: F401

    q, *rest = (torch.from_numpy(a) for a in arguments())
    fails_with = pytest.raises(RuntimeError, match=r"`hooks`, `hook_params` or `hook_tensors` is given, expected torch\.no_grad\(\): nobody knows the gradient of hooks")
    with fails_with:
        quern.attention.paged(q.clone().requires_grad_(), *rest, hooks=SLOPE, hook_params=np.float32(1), device="emu")
    mask, bias = torch.ones(LENGTH, dtype=torch.uint8), torch.ones(HEADS, LENGTH, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"`hook_tensors\[1\]` requires a gradient, which no op computes, expected hook_tensors\[1\]\.detach\(\), or torch\.no_grad\(\)"):
        quern.attention.paged(q, *rest, hooks=BIAS, hook_tensors=[mask, bias], device="emu")
    with torch.no_grad():
        quern.attention.paged(q, *rest, hooks=BIAS, hook_tensors=[mask, bias], device="emu")
    compiled = torch.compile(lambda q: quern.attention.paged(q, *rest, hooks=SLOPE, hook_params=b"1234", device="emu"), fullgraph=True, backend="aot_eager")
    with pytest.raises(Exception, match="is given under torch.compile, expected None: a graph of torch carries no code for kernels"):
        compiled(q)


def test_jax_takes_none():
    jnp = pytest.importorskip("jax.numpy", reason="needs jax")
    with pytest.raises(TypeError, match=r"`hooks`, `hook_params` or `hook_tensors` is given, expected none with JAX"):
        attention(convert=jnp.asarray, hooks=SLOPE, hook_params=np.float32(1))


def test_they_are_documented():
    op = quern.attention.paged
    for words in ("hooks: text of a struct", "hook_params: what", "hook_tensors: what", "QN_DEVICE bool visible(const HookContext& at)"):
        assert words in op.__doc__
    assert "hook" not in quern.norm.rms_norm.__doc__
    stub = op.schema.stub()
    assert "hooks: Any = None, hook_params: Any = None, hook_tensors: Any = None" in stub


# Four hooks of a user's, over requests that prefill and decode in one call, and over one token of each
BLOCKS = "struct Blocks { QN_DEVICE bool visible(const HookContext& at) { return at.key_position / 8 == at.query_position / 8; } };"
CAP = """struct Cap {
  QN_DEVICE f32 logit(f32 x, const HookContext& at) {
    const f32 cap = f32(*reinterpret_cast<const float*>(at.params));
    return cap * accurate_tanh(x / cap);
  }
};"""
PREFIX = """struct Prefix {
  QN_DEVICE i32 prefix(const u8* params) { return *reinterpret_cast<const i32*>(params); }
  QN_DEVICE bool visible(const HookContext& at) { return at.key_position <= at.query_position || at.key_position < prefix(at.params); }
  QN_DEVICE TileVisibility tile(const HookTile& at) {
    if (at.key_last <= at.query_first || at.key_last < prefix(at.params)) return TileVisibility::full;
    return at.key_first > at.query_last && at.key_first >= prefix(at.params) ? TileVisibility::skip : TileVisibility::partial;
  }
};"""
DECAYED = """struct Decayed {
  QN_DEVICE f32 logit(f32 x, const HookContext& at) {
    const i32 ahead = at.key_position - at.query_position;
    return x + real_at(at.tensors[0], at.head_q) / f32(float(1 + max_of(ahead, -ahead)));
  }
};"""
SLOPES = np.array([2, -1, 0.5, 3], np.float32)
# Text, options, and of logits [heads, queries, keys], positions of queries [queries, 1] and of keys [1, keys] what they become
OF_A_USER = {
    "blocks": (BLOCKS, {}, lambda x, query, key: np.where(key // 8 == query // 8, x, -np.inf)),
    "cap": (CAP, {"hook_params": np.float32(0.7)}, lambda x, query, key: 0.7 * np.tanh(x / 0.7)),
    "prefix": (PREFIX, {"hook_params": np.int32(11)}, lambda x, query, key: np.where((key <= query) | (key < 11), x, -np.inf)),
    "decayed": (DECAYED, {"hook_tensors": [SLOPES]}, lambda x, query, key: x + SLOPES[:, None, None] / (1 + abs(key - query))),
}


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("queries", [[1, 1, 1], [25, 1, 90]])  # decode, then two that prefill beside one that decodes
@pytest.mark.parametrize("name", OF_A_USER)
def test_of_a_user(name, queries, framework):
    convert = (lambda a: a) if framework == "numpy" else pytest.importorskip("torch", reason="needs torch").from_numpy
    text, options, meaning = OF_A_USER[name]
    lengths, page, random = [25, 70, 100], 16, np.random.default_rng(7)
    q = random.standard_normal((sum(queries), HEADS, DIM)).astype(np.float16)
    k, v = (random.standard_normal((24, page, 2, DIM)).astype(np.float16) for _ in range(2))
    table = random.permutation(24)[:21].astype(np.int32).reshape(3, 7)
    indptr = np.cumsum([0, *queries]).astype(np.int32)
    more = {"q_indptr": convert(indptr)} if sum(queries) > 3 else {}
    given = {**options, "hook_tensors": [convert(a) for a in options.get("hook_tensors", [])]}
    out = quern.attention.paged(convert(q), convert(k), convert(v), convert(table), convert(np.array(lengths, np.int32)), **more, hooks=text, **given, device="emu")
    for b, length in enumerate(lengths):
        keys, values = (np.repeat(cache[table[b]].reshape(-1, 2, DIM)[:length], 2, axis=1).astype(np.float64) for cache in (k, v))
        own = slice(indptr[b], indptr[b + 1])
        x = meaning(np.einsum("qhd,jhd->hqj", q[own].astype(np.float64), keys) / 8, np.arange(length - queries[b], length)[:, None], np.arange(length)[None])
        p = np.exp(x)
        expected = np.einsum("hqj,jhd->qhd", p / p.sum(axis=2, keepdims=True), values)
        assert np.abs(np.asarray(out, dtype=np.float64)[own] - expected).max() < 4e-3, f"request {b}"
