# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Types and texts of errors: each kind of quern::Error is a type of Python, the text is the library's."""
import importlib
import re
import types

import numpy as np
import pytest

import quern

f32 = np.float32


def fails(kind, text, function, *arguments, **keywords):
    with pytest.raises(kind) as caught:
        function(*arguments, **keywords)
    assert type(caught.value) is kind
    assert re.fullmatch(text, str(caught.value)), str(caught.value)


def test_value():
    fails(ValueError, r"norm\.rms_norm: `weight` has shape \[7\], expected hidden=8 at dim 0 \(hidden was set by `x` \[3, 8\]\)",
          quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(7, f32))
    fails(ValueError, r"norm\.rms_norm: `x` has shape \[8\], expected 2 dims \[tokens hidden\]", quern.norm.rms_norm, np.ones(8, f32), np.ones(8, f32))
    fails(ValueError, r"norm\.rms_norm: `x` has 0 dims, expected 2 \[tokens hidden\]", quern.norm.rms_norm, np.array(1, f32), np.ones(8, f32))
    fails(ValueError, r"norm\.rms_norm: `x` is missing, .*", quern.norm.rms_norm, None, None)
    fails(ValueError, r"norm\.rms_norm: `eps` is -1, expected .*", quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32), eps=-1)
    fails(ValueError, r"norm\.rms_norm: `x` has stride 2 at its last dim, expected 1 \(dense rows\)",
          quern.norm.rms_norm, np.ones((3, 16), f32)[:, ::2], np.ones(8, f32))
    fails(ValueError, r"norm\.rms_norm: `x` has strides of \(17, 4\) bytes, expected multiples of the element's 4", quern.norm.rms_norm,
          np.lib.stride_tricks.as_strided(np.ones(99, f32), (3, 2), (17, 4)), np.ones(2, f32))
    fails(ValueError, r"norm\.rms_norm: `backend` is 'swift', expected one of portable", quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32), backend="swift")


def test_outputs_whose_extents_nothing_tells():
    bf16 = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes").bfloat16
    a = np.ones((8, 64), bf16)
    fails(ValueError, r"gemm\.k_grouped: `out` is missing, expected a tensor, or one of `k_indptr`, `k_sizes`, `c`, which tell its `groups`", quern.gemm.k_grouped, a, a)
    fails(ValueError, r"gemm\.k_grouped: `k_indptr` is absent, expected one of k_indptr and k_sizes", quern.gemm.k_grouped, a, a,
          out=np.ones((2, 8, 8), f32))


def test_tensors_without_memory():
    torch = pytest.importorskip("torch", reason="needs torch")
    x, weight = torch.ones(3, 8, device="meta"), torch.ones(8)
    text = r"norm\.rms_norm: `{}` is on torch's meta device, where tensors have no memory, expected one on a GPU or the host"
    for options in ({}, {"device": "emu"}, {"out": torch.empty(3, 8)}):
        fails(ValueError, text.format("x"), quern.norm.rms_norm, x, weight, **options)
        fails(ValueError, text.format("weight"), quern.norm.rms_norm, torch.ones(3, 8), weight.to("meta"), **options)


def test_tensors_of_torch_that_are_more_than_their_memory():
    """A negation that is yet to be made, what vmap maps over, sparse and nested tensors; by every way of a call. A dense tensor that torch._neg_view() makes
    is no imaginary part: where outputs are given it passes for what its memory holds."""
    torch = pytest.importorskip("torch", reason="needs torch")
    weight, norm = torch.ones(8), quern.norm.rms_norm

    def refused(x, text, weight=weight):
        for options in ({}, {"out": torch.empty(3, 8)}, {"batch_invariant": True}):
            fails(ValueError, r"norm\.rms_norm: `(x|weight)` " + text, norm, x, weight, **options)
            fails(ValueError, r"norm\.rms_norm: `(x|weight)` " + text, norm, x, weight.clone().requires_grad_())

    negation = r"stands for the negation of what its memory holds \(torch\.Tensor\.is_neg\(\)\), expected x\.resolve_neg\(\)"
    conjugate = torch.ones(3, 8, dtype=torch.complex64).conj()
    norm(torch.ones(3, 8), weight, out=torch.empty(3, 8))
    refused(conjugate.imag, negation)
    for row in (conjugate.imag[:, :1], conjugate.imag[:1, :1]):
        for options in ({}, {"out": torch.empty(row.shape)}):
            fails(ValueError, r"norm\.rms_norm: `x` " + negation, norm, row, weight[:1], **options)
    fails(ValueError, r"norm\.rms_norm: `x` " + negation, norm, torch._neg_view(torch.ones(3, 8)), weight, batch_invariant=True)
    refused(torch.ones(3, 8).to_sparse(), r"is torch\.sparse_coo, expected a dense tensor: .*")
    refused(torch.nested.nested_tensor([weight, weight]), r"is nested, expected a dense tensor: .*")
    vmapped = r"norm\.rms_norm: `x` is one that torch\.func\.vmap maps over, expected a tensor: ops are not mapped, give them all rows at once"
    for w in (weight, weight.clone().requires_grad_()):
        fails(ValueError, vmapped, torch.func.vmap(lambda x: norm(x, w)), torch.ones(2, 3, 8))
    with torch.no_grad():
        fails(ValueError, vmapped, torch.func.vmap(lambda x: norm(x, weight, out=torch.empty(3, 8))), torch.ones(2, 3, 8))


def test_dtypes_of_outputs():
    """Also where the output is given, and where none is wanted."""
    torch = pytest.importorskip("torch", reason="needs torch")
    ours = {"numpy": lambda a: a, "torch": torch.from_numpy}
    for name, convert in ours.items():
        a = convert(np.ones((4, 64), np.float16))
        for out in (None, convert(np.empty((4, 4), np.float16)), convert(np.empty((4, 4), f32))):
            for _ in range(2):
                fails(TypeError, r"gemm\.dense: `out_dtype` is foo, expected that of `a` or f32", quern.gemm.dense, a, a, out=out, out_dtype="foo")
                if out is not None:
                    own, other = ("f16", "f32") if out.dtype == a.dtype else ("f32", "f16")
                    fails(ValueError, rf"gemm\.dense: `out_dtype` is {other}, expected {own}, that of the `out` that is given, or None", quern.gemm.dense, a, a, out=out, out_dtype=other)
                    assert quern.gemm.dense(a, a, out=out, out_dtype=out.dtype) is out
    compiled = torch.compile(lambda a, out: quern.gemm.dense(a, a, out=out, out_dtype="f32"), fullgraph=True, backend="aot_eager")
    importlib.import_module("quern.torch")
    with pytest.raises(Exception, match=r"gemm\.dense: `out_dtype` is f32, expected f16, that of the `out` that is given, or None"):
        compiled(a, torch.empty(4, 4, dtype=torch.float16))


@pytest.mark.parametrize("out", [None, "given"])
def test_arrays_of_others_have_no_gradient(out):
    """One that torch would lose is an error; what nobody differentiates is taken."""
    torch = pytest.importorskip("torch", reason="needs torch")
    x, weight, ones = torch.ones(3, 64), torch.ones(64), np.ones
    given = {} if out is None else {"out": np.empty((3, 64), f32)}
    text = r"norm\.rms_norm: `{}` requires a gradient and `{}` is a numpy\.ndarray, through which torch records none, expected tensors of torch alone, or torch\.no_grad\(\)"
    fails(RuntimeError, text.format("weight", "x"), quern.norm.rms_norm, ones((3, 64), f32), weight.requires_grad_(), **given)
    fails(RuntimeError, text.format("x", "weight"), quern.norm.rms_norm, x.requires_grad_(), ones(64, f32), **given)
    with torch.no_grad():
        assert quern.norm.rms_norm(ones((3, 64), f32), weight, **given).max() > 0.9
        assert quern.norm.rms_norm(x, ones(64, f32), **given).max() > 0.9


def test_options_of_another_type(monkeypatch):
    """By every way of a call, with the op's name and the option's."""
    torch = pytest.importorskip("torch", reason="needs torch")
    importlib.import_module("quern.torch")
    norm = quern.norm.rms_norm
    for ones in (lambda *shape: np.ones(shape, f32), torch.ones):
        for given in ({}, {"out": ones(3, 8)}, {"batch_invariant": True}):
            call = lambda **options: norm(ones(3, 8), ones(8), **{**given, **options})  # noqa: E731
            for name in ("batch_invariant", "pdl", "skip_check"):
                for value in (0, 1, None, "no"):
                    fails(TypeError, rf"norm\.rms_norm: `{name}` is {value!r}, expected True or False", call, **{name: value})
            fails(TypeError, r"norm\.rms_norm: `backend` is a value of type int, expected None or the name of a variant", call, backend=3)
            fails(ValueError, r"norm\.rms_norm: `backend` is 'swift', expected one of portable", call, backend="swift")
            fails(TypeError, r"norm\.rms_norm: `eps` is a string, expected a number", call, eps="small")
            fails(TypeError, r"norm\.rms_norm: `device` is a float, expected None, a name as in QN_DEVICE .*", call, device=1.5)
            fails(ValueError, r"norm\.rms_norm: `device` is 'foo', expected cuda, cuda:N, emu or emu:ARCH", call, device="foo")
            fails(ValueError, r"norm\.rms_norm: `device` is 'cpu', expected cuda, cuda:N, emu or emu:ARCH", call, device=torch.device("cpu"))
    with monkeypatch.context() as patched:  # this machine has no such GPU, but is asked for it
        asked = []
        patched.setattr(quern._op, "_device", lambda name: asked.append(name) or 0)
        for device in (1, "cuda:1", torch.device("cuda", 1), torch.device("cuda")):
            norm(torch.ones(3, 8), torch.ones(8), device=device)
        assert asked == ["cuda:1", "cuda:1", "cuda:1", "cuda"]


def test_dtypes_that_an_argument_takes():
    torch = pytest.importorskip("torch", reason="needs torch")
    for convert in (lambda a: a, torch.from_numpy):
        x, weight = convert(np.ones((3, 8), f32)), convert(np.ones(8, f32))
        short = convert(np.ones((3, 8), np.int16))
        for out in ({}, {"out": convert(np.ones((3, 8), f32))}):
            fails(TypeError, r"norm\.rms_norm: `x` is int16, expected f32, f16 or bf16", quern.norm.rms_norm, short, weight, **out)
            fails(TypeError, r"norm\.rms_norm: `weight` is int16, expected that of `x` or f32", quern.norm.rms_norm, x, short[0], **out)


def test_which_of_the_e4m3_is_meant():
    """Frameworks have several: the one that is taken is named as they name it."""
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes")
    scale = np.ones((1, 1), f32)
    text = r"gemm\.scaled: `{}` is {}, expected e4m3 \(float8_e4m3fn\) or e5m2 \(float8_e5m2\)"
    right = np.ones((3, 16), ml_dtypes.float8_e4m3fn)
    assert np.all(quern.gemm.scaled(right, scale, right, scale) == 16)
    for other in ("float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4"):
        wrong = np.ones((3, 16), getattr(ml_dtypes, other))
        fails(TypeError, text.format("a", other), quern.gemm.scaled, wrong, scale, right, scale)
        fails(TypeError, text.format("b", other), quern.gemm.scaled, right, scale, wrong, scale)
        fails(TypeError, rf"gemm\.grouped_masked: `b` is {other}, expected that of `a`, e4m3 \(float8_e4m3fn\) or e5m2 \(float8_e5m2\)",
              quern.gemm.grouped_masked, right[None], wrong[None], np.ones(1, np.int32))
        fails(TypeError, rf"typed: `dtype` is {other}, expected one of f32, f16, bf16, e4m3 \(float8_e4m3fn\), .*", quern.typed, right, other)


def test_which_of_the_e4m3_is_meant_by_dlpack():
    """Arrays of a framework that the package does not know: the library looks at the dtype."""
    jnp = pytest.importorskip("jax.numpy", reason="needs jax")

    class Other:
        def __init__(self, array):
            self.array, self.shape, self.dtype = array, array.shape, array.dtype

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    scale, right, wrong = Other(jnp.ones((1, 1))), Other(jnp.ones((3, 16), jnp.float8_e4m3fn)), Other(jnp.ones((3, 16), jnp.float8_e4m3fnuz))
    fails(TypeError, r"gemm\.scaled: `b` is float8_e4m3fnuz, expected e4m3 \(float8_e4m3fn\) or e5m2 \(float8_e5m2\)",
          quern.gemm.scaled, right, scale, wrong, scale, out=np.empty((3, 3), f32))


def test_the_environment_is_named(monkeypatch):
    monkeypatch.setenv("QN_DEVICE", "foo")
    fails(ValueError, r"plan: `QN_DEVICE` is 'foo', expected cuda, cuda:N, emu or emu:ARCH", quern.plan, "norm.rms_norm", "tokens=4")
    fails(ValueError, r"norm\.rms_norm: `x` is on the host, expected .*QN_DEVICE=emu.*", quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32))
    monkeypatch.setenv("QN_DEVICE", "emu:foo")
    fails(ValueError, r"plan: `QN_DEVICE` is 'emu:foo', expected one of sm_80, .*", quern.plan, "norm.rms_norm", "tokens=4")


def test_attributes_with_named_values():
    a, b = np.ones((3, 8), np.float16), np.ones((8, 8), np.float16)
    assert np.all(quern.gemm.dense(a, -b, activation="relu") == 0) and np.all(quern.gemm.dense(a, -b) == -8)
    fails(ValueError, r"gemm\.dense: `activation` is 'tanh', expected none, relu, gelu or silu", quern.gemm.dense, a, b, activation="tanh")
    fails(ValueError, r"gemm\.dense: `activation` is 4, expected none, relu, gelu or silu", quern.gemm.dense, a, b, activation=4)
    fails(TypeError, r"gemm\.dense: `activation` is a value of type float, expected none, relu, gelu or silu", quern.gemm.dense, a, b, activation=1.5)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_what_is_written_shares_no_memory(framework):
    """But an output may be the input that its docstring names, and tensors may be slices of one buffer."""
    ones = np.ones if framework == "numpy" else lambda *a: pytest.importorskip("torch", reason="needs torch").from_numpy(np.ones(*a))
    rms_norm, add_norm = quern.norm.rms_norm, quern.norm.fused_add_rms_norm
    expected = r"expected memory of its own, or `x` itself \(its address, element size and strides\)"
    memory, weight = ones((4, 16), f32), ones(16, f32)
    x = memory[:3]
    for _ in range(2):  # the second time by the shortest way
        assert rms_norm(x, weight, out=x) is x
        fails(ValueError, r"norm\.rms_norm: `out` overlaps `x` in memory, " + expected, rms_norm, x, weight, out=memory[1:])
        fails(ValueError, r"norm\.rms_norm: `out` overlaps `weight` in memory, " + expected, rms_norm, ones((3, 16), f32), memory[3], out=memory[1:])
        fails(ValueError, r"norm\.rms_norm: `out` overlaps `weight` in memory, " + expected, rms_norm, weight.reshape(1, 16), memory[3], out=memory[3:])
        fails(ValueError, r"norm\.fused_add_rms_norm: `residual` overlaps `out` in memory, expected memory of its own", add_norm, ones((4, 16), f32), memory, weight, out=memory)
        fails(ValueError, r"norm\.fused_add_rms_norm: `residual` overlaps `x` in memory, expected memory of its own", add_norm, memory, memory, weight, out=ones((4, 16), f32))
        fails(ValueError, r"norm\.fused_add_rms_norm: `residual` overlaps `x` in memory, expected memory of its own", add_norm, memory, memory, weight)
        rms_norm(memory[:, :8], weight[:8], out=memory[:, 8:])
        rms_norm(memory[::2], weight, out=memory[1::2])
    rms_norm(x, weight, out=memory[1:], skip_check=True)
    assert "may be x itself" in rms_norm.__doc__


def test_read_only_output():
    out = np.ones((3, 8), f32)
    out.flags.writeable = False
    fails(ValueError, r"norm\.rms_norm: `out` is read-only, expected an array that may be written", quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32), out=out)


def test_read_only_input():
    x = np.ones((3, 8), f32)
    x.flags.writeable = False
    assert np.allclose(quern.norm.rms_norm(x, np.ones(8, f32)), 1)


def test_type():
    fails(TypeError, r"norm\.rms_norm: `x` is f64, expected f32, f16 or bf16", quern.norm.rms_norm, np.ones((3, 8)), np.ones(8))
    fails(TypeError, r"norm\.rms_norm: `x` is complex64, expected f32, f16 or bf16", quern.norm.rms_norm, np.ones((3, 8), np.complex64), np.ones(8, f32))
    fails(TypeError, r"norm\.rms_norm: `x` has dtype >f4, expected this machine's byte order", quern.norm.rms_norm, np.ones((3, 8), ">f4"), np.ones(8, f32))
    fails(TypeError, r"norm\.rms_norm: `x` is a list, expected a tensor \(anything that has __dlpack__\)", quern.norm.rms_norm, [1, 2], np.ones(8, f32))
    fails(TypeError, r"norm\.rms_norm: `weight` is a str, expected a tensor .*", quern.norm.rms_norm, np.ones((3, 8), f32), "ones")
    fails(TypeError, r"norm\.rms_norm: `eps` is a string, expected a number", quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32), eps="small")
    fails(TypeError, r"typed: `array` has elements of 4 bytes, expected 2 of bf16", quern.typed, np.ones((3, 8), f32), "bf16")
    fails(TypeError, r"typed: `array` is a list, expected an array of NumPy or CuPy", quern.typed, [1, 2], "bf16")
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilon'"):
        quern.norm.rms_norm(np.ones((3, 8), f32), np.ones(8, f32), epsilon=1)


def test_bare_function_counts_its_arguments():
    fails(TypeError, r"norm\.rms_norm: was called with 0 arguments, expected 9 to 14", quern.norm.rms_norm.op.function)


def test_attributes_have_their_type():
    shapes = {"q": (1, 2, 64), "k_cache": (1, 16, 2, 64), "v_cache": (1, 16, 2, 64)}
    tensors = {n: np.ones(s, np.float16) for n, s in shapes.items()}
    fails(TypeError, r"attention\.paged: `window_left` is a value of type float, expected an integer", quern.attention.paged, **tensors, window_left=1.5)
    fails(ValueError, r"attention\.paged: `window_left` is 4294967296, expected a 32-bit integer", quern.attention.paged, **tensors, window_left=1 << 32)


def test_unsupported():
    a = np.ones((4, 64), np.float16)
    fails(NotImplementedError, r"gemm\.dense: no variant runs this on sm_80 \(warp_specialised_sm90: .*\)", quern.gemm.dense, a, a, backend="warp_specialised_sm90", device="emu:sm_80")


def test_host_tensors_need_the_emulated_device_chosen(no_device):
    x, weight = np.ones((3, 8), f32), np.ones(8, f32)
    fails(ValueError, r"norm\.rms_norm: `x` is on the host, expected a GPU's memory, or that the emulated device is chosen by QN_DEVICE=emu or device=\"emu\"",
          quern.norm.rms_norm, x, weight)
    assert np.allclose(quern.norm.rms_norm(x, weight, device="emu"), 1)


def test_host_tensors_of_torch_need_it_too(no_device):
    torch = pytest.importorskip("torch", reason="needs torch")
    x, weight, out = torch.ones(3, 8), torch.ones(8), torch.zeros(3, 8)
    quern.norm.rms_norm(x, weight, out=out, device="emu")
    for given in ({}, {"out": out.zero_()}):
        fails(ValueError, r"norm\.rms_norm: `x` is on the host, expected a GPU's memory, or .*", quern.norm.rms_norm, x, weight, **given)
    assert (out == 0).all()


def test_host_tensors_have_no_stream():
    fails(ValueError, r"norm\.rms_norm: `stream` is a CUDA stream, but the tensors are on the host, expected None",
          quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32), stream=12345)


def test_runtime(monkeypatch, tmp_path):
    """A kernel that is not there while frozen; the text says how to have it."""
    monkeypatch.setenv("QN_CACHE_DIR", str(tmp_path))
    quern.freeze()
    try:
        assert quern.frozen()
        fails(RuntimeError, r"norm\.rms_norm: .*quern plan --compile norm\.rms_norm .*", quern.norm.rms_norm, np.ones((3, 333), np.float16), np.ones(333, np.float16))
    finally:
        quern.freeze(False)


def test_names():
    with pytest.raises(AttributeError, match="has the families .*norm"):
        quern.nrom
    with pytest.raises(AttributeError, match="has no op 'rms_nrom': it has .*rms_norm"):
        quern.norm.rms_nrom
    with pytest.raises(ImportError):
        importlib.import_module("quern.nrom")
    fails(ValueError, r"plan: `op` is 'rms_norm', .* the nearest is norm\.rms_norm", quern.plan, "rms_norm")


@pytest.mark.parametrize("given", [False, True])
def test_torch_is_told_what_numpy_is(given):
    """Type and text, on the short way of torch's calls too, with outputs allocated and given."""
    torch = pytest.importorskip("torch", reason="needs torch")
    f16 = np.float16
    cases = [
        (quern.norm.rms_norm, (np.ones((3, 8), f32), np.ones(7, f32)), {}, (3, 8)),
        (quern.norm.rms_norm, (np.ones(8, f32), np.ones(8, f32)), {}, (3, 8)),
        (quern.norm.rms_norm, (np.ones((3, 8), f32), np.ones(8, f32)), {"eps": -1}, (3, 8)),
        (quern.norm.rms_norm, (np.ones((3, 8)), np.ones(8)), {}, (3, 8)),
        (quern.norm.rms_norm, (np.ones((3, 8), f32), np.ones(8, f32)), {"eps": "small"}, (3, 8)),
        (quern.norm.rms_norm, (np.ones((3, 8), f32), np.ones(8, f32)), {"backend": "swift"}, (3, 8)),
        (quern.activation.silu_and_mul, (np.ones((3, 9), f32),), {}, (3, 4)),
        (quern.activation.silu_and_mul, (np.ones(8, f32),), {}, (3, 4)),
        (quern.gemm.dense, (np.ones((4, 64), f16), np.ones((4, 63), f16)), {}, (4, 4)),
        (quern.gemm.dense, (np.ones((4, 64), f16), np.ones((4, 64), f16)), {"backend": "warp_specialised_sm90", "device": "emu:sm_80"}, (4, 4)),
    ]
    for op, tensors, keywords, shape in cases:
        seen = []
        for convert in (lambda a: a, torch.from_numpy):
            out = {"out": convert(np.zeros(shape, tensors[0].dtype))} if given else {}
            with pytest.raises(Exception) as caught:
                op(*map(convert, tensors), **keywords, **out)
            seen.append((type(caught.value), str(caught.value)))
        assert seen[0] == seen[1] and seen[0][0] in (ValueError, TypeError, NotImplementedError)


def test_jax():
    """Errors are those of other frameworks, eager and while jit traces."""
    jax = pytest.importorskip("jax", reason="needs jax")
    ones = jax.numpy.ones
    for call in (quern.norm.rms_norm, jax.jit(quern.norm.rms_norm)):
        fails(ValueError, r"norm\.rms_norm: `weight` has shape \[7\], expected hidden=8 .*", call, ones((3, 8)), ones(7))
        fails(ValueError, r"norm\.rms_norm: `x` has shape \[8\], expected 2 dims \[tokens hidden\]", call, ones(8), ones(8))
        fails(ValueError, r"norm\.rms_norm: `x` has 0 dims, expected 2 .*", call, ones(()), ones(8))
        fails(TypeError, r"norm\.rms_norm: `weight` is f16, expected f32 like `x`.*", call, ones((3, 8)), ones(8, "float16"))
        fails(TypeError, r"norm\.rms_norm: `x` is complex64, expected f32, f16 or bf16", call, ones((3, 8), "complex64"), ones(8))
    fails(NotImplementedError, r"gemm\.dense: no variant runs this on sm_80 .*", quern.gemm.dense, ones((4, 64), "bfloat16"), ones((4, 64), "bfloat16"),
          backend="warp_specialised_sm90", device="emu:sm_80")
    fails(TypeError, r"norm\.rms_norm: `stream` is given, expected none: .*", quern.norm.rms_norm, ones((3, 8)), ones(8), stream=0)


def test_jax_needs_the_emulated_device_chosen(no_device):
    jax = pytest.importorskip("jax", reason="needs jax")
    x, weight = jax.numpy.ones((3, 8)), jax.numpy.ones(8)
    fails(ValueError, r"norm\.rms_norm: `x` is on the host, expected .*", quern.norm.rms_norm, x, weight)
    assert (quern.norm.rms_norm(x, weight, device="emu") > 0.99).all()


def test_jax_arrays_of_a_gpu_are_refused_elsewhere(monkeypatch):
    """The text that tensors of torch get; the GPU is made up. While jit traces nobody knows where the arrays lie."""
    jax = pytest.importorskip("jax", reason="needs jax")
    x, weight = jax.numpy.ones((3, 8)), jax.numpy.ones(8)
    text = r"norm\.rms_norm: `device` is on the host, expected cuda:1, where the tensors lie"
    gpu = types.SimpleNamespace(platform="gpu", local_hardware_id=1)
    monkeypatch.setattr(type(x), "devices", lambda array: [gpu])
    fails(ValueError, text, quern.norm.rms_norm, x, weight, device="emu")
    fails(ValueError, text, quern.norm.rms_norm, x[:0], weight, device="emu")
    assert (jax.jit(lambda *a: quern.norm.rms_norm(*a, device="emu"))(x, weight) > 0.99).all()


def test_jax_arrays_cannot_be_written():
    jax = pytest.importorskip("jax", reason="needs jax")
    x, weight = jax.numpy.ones((3, 8), "bfloat16"), jax.numpy.ones(8, "bfloat16")
    text = r"norm\.rms_norm: `out` is given, expected none: arrays of JAX cannot be written, outputs are new ones"
    fails(TypeError, text, quern.norm.rms_norm, x, weight, out=jax.numpy.ones((3, 8), "bfloat16"))
    fails(TypeError, r"norm\.rms_norm: `out` is given, .*", quern.norm.rms_norm, np.ones((3, 8), f32), np.ones(8, f32), out=jax.numpy.ones((3, 8), f32))
