# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""On a GPU (QN_DEVICE=cuda): streams, threads, CUDA graphs, places. The cases of the ops are in test_ops.py. The layer also runs elsewhere."""
import threading

import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402

import quern  # noqa: E402

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


class Layer:
    """A decode step of a small decoder layer, all outputs and the workspace given: what a CUDA graph captures."""

    BATCH, HIDDEN, HEADS, HEADS_KV, DIM, INTERMEDIATE, PAGE, PAGES = 4, 512, 8, 2, 64, 1024, 16, 64

    def __init__(self):
        generator = torch.Generator(device=places.TORCH).manual_seed(7)
        bf16 = lambda *shape, scale=1.0: (torch.randn(*shape, generator=generator, device=places.TORCH) * scale).to(torch.bfloat16)  # noqa: E731
        b, width, kv = self.BATCH, self.HEADS * self.DIM, self.HEADS_KV * self.DIM
        self.norm = [bf16(self.HIDDEN) for _ in range(2)]
        self.w_qkv, self.w_out = bf16(width + 2 * kv, self.HIDDEN, scale=0.05), bf16(self.HIDDEN, width, scale=0.05)
        self.w_up, self.w_down = bf16(2 * self.INTERMEDIATE, self.HIDDEN, scale=0.05), bf16(self.HIDDEN, self.INTERMEDIATE, scale=0.05)
        self.x, self.residual = bf16(b, self.HIDDEN), bf16(b, self.HIDDEN)
        self.k_cache, self.v_cache = bf16(self.PAGES, self.PAGE, self.HEADS_KV, self.DIM), bf16(self.PAGES, self.PAGE, self.HEADS_KV, self.DIM)
        self.page_table = torch.randperm(self.PAGES, generator=generator, device=places.TORCH).to(torch.int32).view(b, -1)
        self.requests = torch.arange(b, dtype=torch.int32, device=places.TORCH)
        self.positions = torch.tensor([3, 40, 100, 255], dtype=torch.int32, device=places.TORCH)
        self.seq_lens = self.positions + 1
        empty = lambda *shape: torch.empty(*shape, dtype=torch.bfloat16, device=places.TORCH)  # noqa: E731
        self.normed, self.qkv, self.attention = empty(b, self.HIDDEN), empty(b, width + 2 * kv), empty(b, self.HEADS, self.DIM)
        self.projected, self.up, self.gated, self.down = empty(b, self.HIDDEN), empty(b, 2 * self.INTERMEDIATE), empty(b, self.INTERMEDIATE), empty(b, self.HIDDEN)
        # The pool of the device cannot allocate while a stream captures.
        self.workspace = torch.empty(64 << 20, dtype=torch.uint8, device=places.TORCH)

    def inputs(self):
        return [self.x, self.residual, self.k_cache, self.v_cache, self.positions, self.seq_lens, self.page_table]

    def outputs(self):
        return [self.down, self.residual, self.k_cache, self.v_cache]

    def run(self):
        b, width, kv = self.BATCH, self.HEADS * self.DIM, self.HEADS_KV * self.DIM
        quern.norm.fused_add_rms_norm(self.x, self.residual, self.norm[0], out=self.normed)
        quern.gemm.dense(self.normed, self.w_qkv, out=self.qkv, workspace=self.workspace)
        q, k, v = (t.view(b, -1, self.DIM) for t in self.qkv.split([width, kv, kv], 1))
        quern.rope.rope_inplace(q, k, self.positions)
        quern.kv_cache.append_paged(k, v, self.k_cache, self.v_cache, self.requests, self.positions, page_table=self.page_table)
        quern.attention.decode_paged(q, self.k_cache, self.v_cache, page_table=self.page_table, seq_lens=self.seq_lens, out=self.attention, workspace=self.workspace)
        quern.gemm.dense(self.attention.view(b, -1), self.w_out, out=self.projected, workspace=self.workspace)
        quern.norm.fused_add_rms_norm(self.projected, self.residual, self.norm[1], out=self.normed)
        quern.gemm.dense(self.normed, self.w_up, out=self.up, workspace=self.workspace)
        quern.activation.silu_and_mul(self.up, out=self.gated)
        quern.gemm.dense(self.gated, self.w_down, out=self.down, workspace=self.workspace)


@pytest.mark.gpu
def test_cuda_graph():
    """A captured layer, replayed with other activations, lengths and page tables, gives the bits of eager calls."""
    layer = Layer()
    start = [t.clone() for t in layer.inputs()]
    restore = lambda state: [t.copy_(s) for t, s in zip(layer.inputs(), state)]  # noqa: E731
    layer.run()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        layer.run()
    seen = []
    for turn in range(4):
        generator = torch.Generator(device="cuda").manual_seed(turn)
        state = [s.clone() for s in start]
        state[0].copy_(torch.randn(state[0].shape, generator=generator, device="cuda"))
        state[4].copy_(torch.randint(0, 256, (4,), generator=generator, device="cuda"))
        state[5].copy_(state[4] + 1)
        state[6].copy_(torch.randperm(layer.PAGES, generator=generator, device="cuda").view(4, -1))
        restore(state)
        layer.run()
        eager = [t.clone() for t in layer.outputs()]
        restore(state)
        layer.down.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        for mine, theirs in zip(layer.outputs(), eager):
            assert torch.equal(mine, theirs) and torch.isfinite(mine).all()
        seen.append(eager[0])
    assert not any(torch.equal(seen[0], other) for other in seen[1:])


@pytest.mark.anywhere
def test_layer():
    """What the graph captures: the same bits on every call, and each output is written."""
    layer = Layer()
    start, outputs = [t.clone() for t in layer.inputs()], []
    for _ in range(2):
        [t.copy_(s) for t, s in zip(layer.inputs(), start)]
        layer.down.fill_(float("nan"))
        layer.run()
        outputs.append([t.clone() for t in layer.outputs()])
    for first, second, before in zip(*outputs, [layer.down.new_zeros(()), start[1], start[2], start[3]]):
        assert torch.equal(first, second) and torch.isfinite(first).all() and not torch.equal(first, before.expand_as(first))


@pytest.mark.anywhere
def test_compiled_into_one_graph():
    """torch.compile of the layer's allocating calls, on this device."""
    import quern.torch  # noqa: F401

    torch._dynamo.reset()
    layer = Layer()

    def step(x, residual, weight, w_up, w_down):
        out, residual = quern.norm.fused_add_rms_norm(x, residual, weight)
        return quern.gemm.dense(quern.activation.silu_and_mul(quern.gemm.dense(out, w_up)), w_down) * 2, residual

    arguments = lambda: (layer.x.clone(), layer.residual.clone(), layer.norm[0], layer.w_up, layer.w_down)  # noqa: E731
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
def test_freeze():
    x, weight = torch.ones(3, 77, device="cuda", dtype=torch.float16), torch.ones(77, device="cuda", dtype=torch.float16)
    quern.norm.rms_norm(x, weight)
    quern.freeze()
    try:
        quern.norm.rms_norm(x, weight)
    finally:
        quern.freeze(False)
