# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""On a GPU (QN_DEVICE=cuda): streams, threads, CUDA graphs, places. The cases of the ops are in test_ops.py. The layer also runs elsewhere."""
import threading

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from decoder_layer import Layer, bits, judge  # noqa: E402

import quern  # noqa: E402
import quern.testing  # noqa: E402

SLEEP = 200_000_000  # cycles, 0.1 s and more


def gate(stream, weight):
    """A stream that first sleeps and then makes `weight` 3: who is ordered behind it sees 3, who is not sees 1."""
    weight.fill_(1)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(SLEEP)
        weight.fill_(3)


def copy_on(stream, tensor):
    """A copy on the host, made on a stream that waits for no other."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    with torch.cuda.stream(stream):
        host.copy_(tensor, non_blocking=True)
    stream.synchronize()
    return host


@pytest.mark.gpu
def test_current_stream():
    x, weight, out = torch.ones(64, 4096, device="cuda"), torch.ones(4096, device="cuda"), torch.empty(64, 4096, device="cuda")
    stream, other = torch.cuda.Stream(), torch.cuda.Stream()
    calls = {"out given": lambda s: quern.norm.rms_norm(x, weight, out=out, stream=s), "allocated": lambda s: quern.norm.rms_norm(x, weight, stream=s),
             "option": lambda s: quern.norm.rms_norm(x, weight, pdl=True, stream=s)}
    for call in calls.values():  # compiles and allocates, which waits for a device, before anything is ordered
        with torch.cuda.stream(stream):
            held = call(None), call(None)
            copy_on(other, held[0])
            del held
    for name, call in calls.items():
        gate(stream, weight)
        with torch.cuda.stream(stream):
            result = call(None)
            done = torch.cuda.Event()
            done.record()
        assert not done.query(), "the host did not wait"
        stream.synchronize()
        assert torch.allclose(result, torch.full_like(result, 3), rtol=1e-5), name
        # The same on a stream that waits for nobody, to see that the test can fail.
        gate(stream, weight)
        with torch.cuda.stream(stream):
            result = call(other)
            assert torch.allclose(copy_on(other, result), torch.ones(64, 4096), rtol=1e-5), name
        stream.synchronize()


@pytest.mark.gpu
def test_handles_of_streams():
    x, weight = torch.ones(4, 64, device="cuda"), torch.ones(64, device="cuda")
    stream = torch.cuda.Stream()
    for handle in (stream, stream.cuda_stream, 0, torch.cuda.current_stream()):
        assert torch.allclose(quern.norm.rms_norm(x, weight, stream=handle), x, rtol=1e-5)
        torch.cuda.synchronize()


@pytest.mark.gpu
def test_current_stream_of_cupy():
    cupy = pytest.importorskip("cupy", reason="needs CuPy")
    x, out, weight = cupy.ones((64, 4096), "f"), cupy.empty((64, 4096), "f"), torch.ones(4096, device="cuda")
    quern.norm.rms_norm(x, cupy.asarray(weight), out=out)
    stream = cupy.cuda.Stream(non_blocking=True)
    gate(torch.cuda.ExternalStream(stream.ptr), weight)
    with stream:
        quern.norm.rms_norm(x, cupy.asarray(weight), out=out)
    stream.synchronize()
    assert float(abs(out - 3).max()) < 1e-4


@pytest.mark.gpu
def test_two_threads():
    """Each with a stream of its own: results are those of one thread, whatever runs beside."""
    def work(seed, wrong, turns):
        generator = torch.Generator(device="cuda").manual_seed(seed)
        a = torch.randn(64, 512, generator=generator, device="cuda").to(torch.bfloat16)
        weight = torch.randn(512, generator=generator, device="cuda").to(torch.bfloat16)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            normed = quern.norm.rms_norm(a, weight)
            product = quern.gemm.dense(normed, a)
            for _ in range(turns):
                out = torch.empty_like(a)
                quern.norm.rms_norm(a, weight, out=out)
                if not torch.equal(quern.gemm.dense(out, a), product):
                    wrong.append(seed)
            expected = a.double() / torch.sqrt((a.double() ** 2).mean(1, keepdim=True) + 1e-6) * weight.double()
            if not torch.allclose(normed.double(), expected, rtol=2**-8, atol=1e-6):
                wrong.append(-seed)
            stream.synchronize()

    wrong, failed = [], []

    def guarded(seed):
        try:
            work(seed, wrong, 200)
        except Exception as e:  # noqa: BLE001
            failed.append(e)

    threads = [threading.Thread(target=guarded, args=(seed,)) for seed in (1, 2)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed and not wrong


# Positions of the new token of each request: at both ends of a page and of the table, and of three requests where the batch has room for four.
STEPS = [[3, 40, 100, 255], [0, 15, 16, 254], [255, 0, 47, 48], [17, 200, 31, None]]


@pytest.mark.gpu
def test_cuda_graph():
    """A captured layer, replayed with other activations, lengths, caches and page tables: right by a reference in double, and the bits of eager calls."""
    layer = Layer()
    layer.run()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer.run()
    seen = []
    for seed, positions in enumerate(STEPS):
        state = layer.state(seed, positions)
        layer.set(state)
        layer.run()
        eager = [bits(t) for t in layer.written()]
        layer.set(state)
        graph.replay()
        torch.cuda.synchronize()
        judge(layer, state)
        for mine, theirs in zip(layer.written(), eager):
            assert torch.equal(bits(mine), theirs)
        seen.append(bits(layer.results["down"]))
    assert not any(torch.equal(seen[0], other) for other in seen[1:])


@pytest.mark.anywhere
@pytest.mark.parametrize("positions", STEPS)
def test_layer(positions):
    """What the graph captures: right, and the same bits on every call."""
    layer, outputs = Layer(), []
    state = layer.state(1, positions)
    for _ in range(2):
        layer.set(state)
        layer.run()
        outputs.append([bits(t) for t in layer.written()])
    judge(layer, state)
    assert all(torch.equal(first, second) for first, second in zip(*outputs))


@pytest.mark.anywhere
def test_compiled_into_one_graph():
    """torch.compile of the layer's allocating calls, on this device."""
    import quern.torch  # noqa: F401

    torch._dynamo.reset()
    layer = Layer()

    def step(x, residual, weight, w_up, w_down):
        out, residual = quern.norm.fused_add_rms_norm(x, residual, weight)
        return quern.gemm.dense(quern.activation.silu_and_mul(quern.gemm.dense(out, w_up)), w_down) * 2, residual

    arguments = lambda: (layer.x.clone(), layer.residual.clone(), layer.norms[0], layer.w_up, layer.w_down)  # noqa: E731
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    for mine, eager in zip(compiled(*arguments()), step(*arguments())):
        assert torch.equal(mine, eager)


@pytest.mark.gpu
def test_places():
    """Tensors of the host and of a GPU are not mixed up."""
    x, weight = torch.ones(3, 64), torch.ones(64)
    with pytest.raises(ValueError, match=r"norm\.rms_norm: `x` is on the host, expected a GPU's memory, or that the emulated device is chosen"):
        quern.norm.rms_norm(x, weight)
    with pytest.raises(ValueError, match=r"norm\.rms_norm: `weight` is on the host, expected cuda:0 like the tensors before it"):
        quern.norm.rms_norm(x.cuda(), weight)
    with pytest.raises(ValueError, match=r"norm\.rms_norm: `weight` is on cuda:0, expected the host like the tensors before it"):
        quern.norm.rms_norm(x, weight.cuda(), device="emu")
    for out in (None, torch.empty(3, 64, device="cuda")):
        with pytest.raises(ValueError, match=r"norm\.rms_norm: `device` is on .*, expected cuda:0, where the tensors lie"):
            quern.norm.rms_norm(x.cuda(), weight.cuda(), out=out, device="emu")
    with pytest.raises(ValueError, match=r"norm\.rms_norm: `device` is on cuda:0, expected .*, where the tensors lie"):
        quern.norm.rms_norm(x, weight, device="cuda")


@pytest.mark.gpu
def test_places_of_jax():
    jax = pytest.importorskip("jax", reason="needs jax")
    if jax.default_backend() != "gpu":
        pytest.skip("needs a GPU that JAX sees")
    on_host = jax.device_put(jax.numpy.ones((3, 64)), jax.devices("cpu")[0])
    weight = jax.device_put(jax.numpy.ones(64), jax.devices("cpu")[0])
    with pytest.raises(ValueError, match=r"`x` is on the host, expected a GPU's memory"):
        quern.norm.rms_norm(on_host, weight)
    assert (quern.norm.rms_norm(on_host, weight, device="emu") > 0.99).all()
    with pytest.raises(ValueError, match=r"`device` is on .*, expected cuda:0, where the tensors lie"):
        quern.norm.rms_norm(jax.numpy.ones((3, 64)), jax.numpy.ones(64), device="emu")


@pytest.mark.gpu
def test_bench_gpu_time():
    """Anybody's kernels, on torch's current stream, without what launching them takes."""
    small, large = torch.ones(1, device="cuda"), torch.ones(1 << 26, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        quick, slow = quern.testing.bench_gpu_time(lambda: small.add_(1), lambda: large.add_(1), budget_ms=20)
    assert quick.timer == slow.timer == "CUPTI activity"
    assert 0.3 < quick.median_us < 4
    assert slow.min_us > (large.nbytes * 2) / 8e6, "512 MB at 8 TB/s"


@pytest.mark.gpu
def test_freeze():
    x, weight = torch.ones(3, 77, device="cuda", dtype=torch.float16), torch.ones(77, device="cuda", dtype=torch.float16)
    quern.norm.rms_norm(x, weight)
    quern.freeze()
    try:
        quern.norm.rms_norm(x, weight)
    finally:
        quern.freeze(False)
