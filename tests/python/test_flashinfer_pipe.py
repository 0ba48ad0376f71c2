# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's pipes of sampling steps: what they compute beside torch in double, and which are refused."""
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import places  # noqa: E402
from products import randn  # noqa: E402

pytestmark = pytest.mark.anywhere
ROWS, VOCAB, DRAWS = 3, 12, 500


def softmax(x, keywords):
    return torch.softmax(x, 1)


def temperature(x, keywords):
    t = keywords["temperature"]
    return x / (t.double().cpu()[:, None] if isinstance(t, torch.Tensor) else t)


def by_rank(x):
    """(x by descending value, the place of each in it)."""
    ordered = x.sort(1, descending=True)
    return ordered.values, ordered.indices.argsort(1)


def per_row(value):
    return value.cpu()[:, None] if isinstance(value, torch.Tensor) else value


def top_k_of_logits(x, keywords):
    return torch.where(by_rank(x)[1] < per_row(keywords["top_k"]), x, -torch.inf)


def over_sum(x):
    return x / x.sum(1, keepdim=True)


def top_k(x, keywords):
    return over_sum(torch.where(by_rank(x)[1] < per_row(keywords["top_k"]), x, 0))


def top_p(x, keywords):
    values, rank = by_rank(x)
    before = (values.cumsum(1) - values).gather(1, rank)
    return over_sum(torch.where(before < per_row(keywords["top_p"]) * x.sum(1, keepdim=True), x, 0))


def joint(x, keywords):
    return over_sum(torch.where(top_p(x, keywords) > 0, top_k(x, keywords), 0))


def min_p(x, keywords):
    return over_sum(torch.where(x >= per_row(keywords["min_p"]) * x.amax(1, keepdim=True), x, 0))


def number(values, dtype=torch.float32):
    return torch.tensor(values, dtype=dtype, device=places.TORCH)


PARAMETERS = {"temperature": (0.7, number([0.5, 1.0, 2.0])), "top_k": (5, number([2, 5, 12], torch.int32)), "top_p": (0.6, number([0.3, 0.6, 0.95])), "min_p": (0.2, number([0.05, 0.2, 0.9]))}

# Processors, the type of what a pipe takes, what each does, and the operators that are left when neighbours are joined.
PIPES = [
    (["Temperature", "Softmax"], None, [temperature, softmax], "FusedTemperatureSoftmaxOp"),
    (["Temperature"], None, [temperature], "TemperatureOp"),
    (["TopK"], "LOGITS", [top_k_of_logits], "LogitsTopKOp"),
    (["Temperature", "TopK", "Softmax", "TopP"], None, [temperature, top_k_of_logits, softmax, top_p], "TemperatureOp -> LogitsTopKOp -> SoftmaxOp -> TopPOp"),
    (["Softmax", "TopK", "TopP", "MinP"], None, [softmax, top_k, top_p, min_p], "SoftmaxOp -> ProbsTopKOp -> TopPOp -> MinPOp"),
    (["TopK", "Sample"], "LOGITS", [top_k_of_logits, softmax], "LogitsTopKOp -> LogitsSampleOp"),
    (["Sample"], "PROBS", [], "ProbsSampleOp"),
    (["TopK", "Sample"], "PROBS", [top_k], "FusedProbsTopKSampleOp"),
    (["Temperature", "Softmax", "TopP", "Sample"], None, [temperature, softmax, top_p], "FusedTemperatureSoftmaxOp -> FusedProbsTopPSampleOp"),
    (["Softmax", "MinP", "Sample"], None, [softmax, min_p], "SoftmaxOp -> FusedProbsMinPSampleOp"),
    (["Softmax", "TopK", "TopP", "Sample"], None, [softmax, top_k, top_p], "SoftmaxOp -> FusedProbsTopKTopPSampleOp"),
    (["Softmax", "JOINT", "TopP", "Sample"], None, [softmax, joint], "SoftmaxOp -> FusedJointTopKTopPSampleOp"),
]


@pytest.mark.parametrize("words, kind, steps, joined", PIPES)
def test_pipes(fi, words, kind, steps, joined):
    lp = fi.logits_processor
    logits = 2 * randn(ROWS, VOCAB)
    x = torch.softmax(logits, 1) if kind == "PROBS" else logits
    classes = {name: getattr(lp, name) for name in ("Temperature", "Softmax", "TopK", "TopP", "MinP", "Sample")}
    processors = [lp.TopK(joint_topk_topp=True) if word == "JOINT" else classes[word]() for word in words]
    needed = {step.__name__.removesuffix("_of_logits") for step in steps} | ({"top_k", "top_p"} if joint in steps else set())
    for which, compiled in ((0, True), (1, False)):  # numbers, and tensors of rows
        keywords = {name: PARAMETERS[name][which] for name in PARAMETERS if name in needed}
        expected = x.double().cpu()
        for step in steps:
            expected = step(expected, keywords)
        pipe = lp.LogitsPipe(processors=processors, compile=compiled, input_type=kind and lp.TensorType[kind], custom_fusion_rules=None, custom_validity_checks=None)
        assert pipe.initial_type == lp.TensorType[kind or "LOGITS"]
        if "JOINT" in words:
            pipe.compile()
        assert repr(pipe).endswith(f", compiled_ops=[{joined}])") == (compiled or "JOINT" in words), repr(pipe)
        if "Sample" not in words:
            got = pipe(x, **keywords).double().cpu()
            assert got.shape == expected.shape and torch.equal(got == -torch.inf, expected == -torch.inf) and torch.equal(got == 0, expected == 0)
            finite = expected > -torch.inf
            assert ((got - expected).abs()[finite] <= 1e-5 * (1e-3 + expected.abs()[finite])).all()
            continue
        rows = torch.arange(ROWS, dtype=torch.int32).repeat_interleave(DRAWS).to(places.TORCH)
        tokens = pipe(lp.TaggedTensor(x, pipe.initial_type), indices=rows, seed=7, offset=which, **keywords)
        counts = torch.stack([torch.bincount(t.long().cpu(), minlength=VOCAB) for t in tokens.view(ROWS, DRAWS)]).double()
        assert tokens.dtype == torch.int32 and counts.shape == (ROWS, VOCAB) and (counts[expected == 0] == 0).all()
        # Five standard deviations of each count, and the steps of a whole one.
        assert ((counts - DRAWS * expected).abs() <= 5 * (DRAWS * expected * (1 - expected)).sqrt() + 1).all()


def test_keywords(fi):
    """One seed, one draw; what no step takes, and what one lacks."""
    lp = fi.logits_processor
    logits = 2 * randn(ROWS, VOCAB)
    pipe = lp.LogitsPipe([lp.Temperature(), lp.Softmax(enable_pdl=True), lp.TopP(), lp.Sample(deterministic=True)])
    keywords = {"temperature": 0.7, "top_p": 0.9, "seed": 3, "offset": 4}
    assert torch.equal(pipe(logits, **keywords), pipe(lp.TaggedTensor(logits, lp.TensorType.LOGITS), **keywords))
    assert pipe(logits.bfloat16(), indices=torch.tensor([2, 0], device=places.TORCH), **keywords).shape == (2,)
    with pytest.raises(TypeError, match=r"^flashinfer\.LogitsPipe: `top_k` is no keyword of a step, expected generator, indices, offset, seed, temperature, top_p"):
        pipe(logits, top_k=3, **keywords)
    with pytest.raises(ValueError, match="`top_p` is None, expected a value: FusedProbsTopPSampleOp needs it"):
        pipe(logits, temperature=0.7)
    with pytest.raises(ValueError, match="`x` is probs, expected logits"):
        pipe(lp.TaggedTensor.probs(logits), **keywords)
    tagged = lp.TaggedTensor.indices(logits)
    assert (tagged.type, tagged.shape, tagged.dtype, tagged.device, tagged.size(1), tagged.size()) == (lp.TensorType.INDICES, logits.shape, logits.dtype, logits.device, VOCAB, logits.size())


def test_what_is_refused(fi):
    lp = fi.logits_processor
    for processors, keywords, kind, text in (
        ([lp.TopP()], {"input_type": lp.TensorType.LOGITS}, lp.LegalizationError, r"flashinfer\.TopP: `input_type` is logits, expected probs"),
        ([lp.Temperature(), lp.MinP()], {}, lp.LegalizationError, r"flashinfer\.MinP: `input_type` is logits, expected probs"),
        ([lp.Softmax(), lp.Temperature()], {}, lp.LegalizationError, r"flashinfer\.Temperature: `input_type` is probs, expected logits"),
        ([lp.Softmax(), lp.Softmax()], {}, lp.LegalizationError, r"flashinfer\.Softmax: `input_type` is probs, expected logits"),
        ([lp.Softmax(), lp.Sample(), lp.TopP()], {}, lp.CompileError, "TopP follows tokens, expected nothing behind them"),
        ([lp.TopK()], {}, lp.LegalizationError, "`input_type` is None, expected TensorType.LOGITS or PROBS: TopK takes both"),
        ([lp.Softmax(), lp.TopK(joint_topk_topp=True), lp.Sample()], {}, lp.CompileError, "`joint_topk_topp` is True, expected that TopK of probabilities, TopP and Sample"),
        ([], {}, ValueError, "`processors` is empty"), ([lp.Softmax], {}, TypeError, "`processors` is a list, expected a list of LogitsProcessor"),
        ([lp.Softmax()], {"input_type": "logits"}, TypeError, "`input_type` is 'logits'"), ([lp.Softmax()], {"custom_fusion_rules": [1]}, TypeError, "`custom_fusion_rules` is a list"),
        ([lp.Softmax()], {"custom_validity_checks": [1]}, TypeError, "`custom_validity_checks` is a list"), ([lp.Softmax()], {"compile": 1}, TypeError, "`compile` is 1"),
    ):
        with pytest.raises(kind, match=text):
            lp.LogitsPipe(processors, **keywords)
    assert issubclass(lp.LegalizationError, lp.CompileError) and issubclass(lp.CompileError, ValueError)
    doubles = [lp.LogitsPipe([lp.MinP(), lp.Sample()], compile=joined, input_type=lp.TensorType.PROBS) for joined in (True, False)]
    probs = torch.softmax(randn(ROWS, VOCAB), 1).double()
    assert torch.equal(*(pipe(probs, min_p=0.9999, seed=1, offset=0) for pipe in doubles))
    pipe = lp.LogitsPipe([lp.Softmax(), lp.TopK(joint_topk_topp=True), lp.TopP(), lp.Sample()], compile=False)
    with pytest.raises(lp.CompileError, match=r"expected a pipe that compile\(\) was called of"):
        pipe(randn(ROWS, VOCAB), top_k=3, top_p=0.5)
    with pytest.raises(TypeError, match=r"flashinfer\.TaggedTensor: `type` is 'probs'"):
        lp.TaggedTensor(randn(ROWS, VOCAB), "probs")


def test_own_steps(fi):
    lp = fi.logits_processor

    class Add(lp.LogitsProcessor):
        """Adds a bias that the call is given."""
        def legalize(self, input_type):
            return [AddOp(**self.params)]

    class AddOp(lp.ParameterizedOp):
        IN = OUT = lp.TensorType.LOGITS

        def __call__(self, tensor, **kwargs):
            return lp.TaggedTensor.logits(tensor.data + self.param("bias", kwargs))

    class Both(lp.Op):
        IN, OUT = lp.TensorType.LOGITS, lp.TensorType.PROBS

        def __call__(self, tensor, **kwargs):
            return lp.TaggedTensor.probs(torch.softmax(tensor.data / 3, 1))

    logits, bias = randn(ROWS, VOCAB), randn(VOCAB, seed=2)
    pipe = lp.LogitsPipe([Add(bias=0.0), lp.Softmax()])
    for keywords, added in (({"bias": bias}, bias), ({}, 0.0)):
        assert ((pipe(logits, **keywords).double() - torch.softmax(logits.double() + added, 1)).abs() <= 1e-6).all()
    rule = lp.FusionRule(pattern=(lp.Temperature, lp.Softmax), guard=lambda window: len(window) == 2, build=lambda window: Both(), prio=20)
    seen = []
    checks = [seen.append]
    assert lp.ValidityCheck is not None
    pipe = lp.LogitsPipe([lp.Temperature(), lp.Softmax(), lp.TopK()], custom_fusion_rules=[rule], custom_validity_checks=checks)
    assert [type(op).__name__ for op in seen[0]] == ["_TemperatureOp", "_SoftmaxOp", "_ProbsTopKOp"]
    assert repr(pipe) == "LogitsPipe([Temperature -> Softmax -> TopK], ops=[TemperatureOp -> SoftmaxOp -> ProbsTopKOp], compiled_ops=[Both -> ProbsTopKOp])"
    want = top_k(torch.softmax(logits.double().cpu() / 3, 1), {"top_k": 4})
    assert ((pipe(logits, top_k=4).double().cpu() - want).abs() <= 1e-6).all()
    for step, text in ((lp.Temperature(heat=3), "`heat` is no parameter of Temperature, expected temperature"), (lp.Softmax(temperature=3.0), "`temperature` is no parameter of Softmax, expected none"),
                       (lp.Sample(top_k=3), "`top_k` is no parameter of Sample, expected indices, generator, seed, offset")):
        with pytest.raises(TypeError, match=r"^flashinfer\.LogitsPipe: " + text):
            lp.LogitsPipe([step], input_type=lp.TensorType.LOGITS)
    drawn = lp.LogitsPipe([lp.Softmax(), lp.Sample(seed=5, offset=6)])(logits)
    assert torch.equal(drawn, fi.sampling_from_probs(fi.softmax(logits), seed=5, offset=6)) and not torch.equal(drawn, lp.LogitsPipe([lp.Softmax(), lp.Sample()])(logits, seed=5, offset=7))
    pipe = lp.LogitsPipe([lp.Temperature(), lp.Softmax(), lp.TopK()], compile=False)
    assert pipe.compile(custom_fusion_rules=[rule], custom_validity_checks=checks) is None and len(seen) == 2 and "Both -> ProbsTopKOp" in repr(pipe)
    with pytest.raises(TypeError, match=r"^flashinfer\.LogitsPipe\.compile: `custom_fusion_rules` is "):
        pipe.compile(custom_fusion_rules=3)
    tagged = lp.TaggedTensor.logits(t=logits)
    assert tagged.size() == logits.shape and tagged.size(1) == tagged.size(dim=1) == VOCAB and torch.equal(torch.softmax(tagged, dim=1), torch.softmax(logits, 1))
    assert torch.equal(torch.cat([tagged, logits]), torch.cat([logits, logits])) and torch.equal(torch.stack((logits, tagged)), torch.stack((logits, logits)))
    never = lp.FusionRule((lp.Temperature, lp.Softmax), lambda window: False, lambda window: Both(), 20)
    assert "FusedTemperatureSoftmaxOp" in repr(lp.LogitsPipe([lp.Temperature(), lp.Softmax()], custom_fusion_rules=[never]))

    def refuse(ops):
        raise lp.CompileError("three is too many")

    with pytest.raises(lp.CompileError, match="three is too many"):
        lp.LogitsPipe([lp.Temperature(), lp.Softmax(), lp.TopK()], custom_validity_checks=[refuse])
