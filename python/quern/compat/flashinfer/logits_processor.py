# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Pipes of steps from logits to tokens, over flashinfer.sampling's functions:

    pipe = LogitsPipe([Temperature(), Softmax(), TopP(), Sample()])
    ids = pipe(logits, temperature=0.7, top_p=0.9)

Each processor becomes operators by the type of what it gets: logits, probabilities or tokens. Neighbours that one function computes are joined; the joined pipe draws
from the same distribution. What a step needs is a keyword of the call."""
import abc
import enum
from typing import Callable, List, NamedTuple, Tuple

import quern
from quern import _check
from quern.compat.flashinfer import sampling
from quern.compat.flashinfer._base import call, hint, tensor, torch


class TensorType(enum.Enum):
    """What a tensor of a pipe holds."""
    LOGITS = "logits"
    PROBS = "probs"
    INDICES = "indices"


class TaggedTensor:
    """A tensor and what it holds."""

    def __init__(self, data, type):
        if not isinstance(type, TensorType):
            _check.fail_type("flashinfer.TaggedTensor", "type", type, "a TensorType")
        self.data, self.type = tensor("TaggedTensor", "data", data), type

    @classmethod
    def logits(cls, t):
        """Logits."""
        return cls(tensor("TaggedTensor.logits", "t", t), TensorType.LOGITS)

    @classmethod
    def probs(cls, t):
        """Probabilities."""
        return cls(tensor("TaggedTensor.probs", "t", t), TensorType.PROBS)

    @classmethod
    def indices(cls, t):
        """Tokens."""
        return cls(tensor("TaggedTensor.indices", "t", t), TensorType.INDICES)

    def size(self, dim=None):
        """That of the tensor."""
        return self.data.size(dim)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """A function of torch takes the tensor."""
        bare = lambda x: x.data if isinstance(x, cls) else type(x)(map(bare, x)) if type(x) in (list, tuple) else x  # noqa: E731
        return func(*map(bare, args), **{name: bare(x) for name, x in (kwargs or {}).items()})

    shape, device, dtype = (property(lambda self, name=name: getattr(self.data, name)) for name in ("shape", "device", "dtype"))


class CompileError(ValueError):
    """Operators that cannot follow each other. A ValueError, as FlashInfer's LogitsPipe raises."""


class LegalizationError(CompileError):
    """A processor that cannot take what the one before it gives."""


class Op(abc.ABC):
    """A step from a tensor of type IN to one of type OUT. `default_params`: what its processor was told."""
    IN = OUT = None
    takes = None  # the names of its call's keywords; None: unknown

    def __init__(self, **default_params):
        self.default_params = default_params

    @abc.abstractmethod
    def __call__(self, tensor, **kwargs):
        """The next TaggedTensor."""


class ParameterizedOp(Op):
    """A step whose call has keywords: they stand in the place of what its processor was told."""

    def param(self, name, kwargs):
        """The value of a keyword; a ValueError where none was given."""
        value = kwargs[name] if name in kwargs else self.default_params.get(name)
        if value is None:
            raise ValueError(f"flashinfer.LogitsPipe: `{name}` is None, expected a value: {_name(self)} needs it")
        return value


class FusionRule(NamedTuple):
    """Neighbours that one operator computes: where classes of operators, or of the processors they come from, are `pattern` and guard(operators) is true, build(operators)
    takes their place. Of rules that fit, that of the highest prio, and then of the longest pattern, acts."""
    pattern: Tuple[type, ...]
    guard: Callable
    build: Callable
    prio: int = 0


# A function of the operators of a pipe that raises CompileError where they are not valid.
ValidityCheck = Callable[[List[Op]], None]

_RANDOM = ("indices", "generator", "seed", "offset")


def _name(op):
    return type(op).__name__.removeprefix("_")


def _op(name, into, out, takes, run):
    """A class of operators: run(op, tensor, keywords) gives a tensor of type `out`."""
    def apply(self, tensor, **kwargs):
        if tensor.type != into:
            raise ValueError(f"flashinfer.LogitsPipe: {name} got {tensor.type.value}, expected {into.value}")
        return TaggedTensor(run(self, tensor.data, kwargs), out)

    return type("_" + name, (ParameterizedOp,), {"IN": into, "OUT": out, "takes": takes, "__call__": apply, "__doc__": f"{name}: from {into.value} to {out.value}."})


def _random(op, kwargs):
    given = {**op.default_params, **kwargs}
    return {"deterministic": op.default_params.get("deterministic", True), **{name: given[name] for name in _RANDOM if name in given}}


def _scaled(op, logits, kwargs):
    temperature = op.param("temperature", kwargs)
    if isinstance(temperature, torch.Tensor):
        return logits / temperature.reshape(-1, 1)
    return logits / _check.number("flashinfer.LogitsPipe", "temperature", temperature)


def _softmax(op, logits, kwargs):
    return sampling.softmax(logits, op.param("temperature", kwargs) if "temperature" in op.takes else None, op.default_params.get("enable_pdl"))


def _min_p(op, probs, kwargs):
    filters = sampling._parameter("LogitsPipe", "min_p", op.param("min_p", kwargs), probs)
    return call("LogitsPipe", quern.sampling.renorm, {"min_ps": "min_p"}, probs=sampling._f32(probs), **filters)


def _with(function, *names, **options):
    """An operator's run: function(tensor, parameters.., options, and random numbers where it draws)."""
    draws = "sampling" in function
    return lambda op, x, kwargs: getattr(sampling, function)(x, *(op.param(name, kwargs) for name in names), **options, **(_random(op, kwargs) if draws else {}))


_L, _P, _I = TensorType.LOGITS, TensorType.PROBS, TensorType.INDICES
_TemperatureOp = _op("TemperatureOp", _L, _L, ("temperature",), _scaled)
_SoftmaxOp = _op("SoftmaxOp", _L, _P, (), _softmax)
_LogitsTopKOp = _op("LogitsTopKOp", _L, _L, ("top_k",), _with("top_k_mask_logits", "top_k"))
_ProbsTopKOp = _op("ProbsTopKOp", _P, _P, ("top_k",), _with("top_k_renorm_probs", "top_k"))
_TopPOp = _op("TopPOp", _P, _P, ("top_p",), _with("top_p_renorm_probs", "top_p"))
_MinPOp = _op("MinPOp", _P, _P, ("min_p",), _min_p)
_LogitsSampleOp = _op("LogitsSampleOp", _L, _I, _RANDOM, _with("sampling_from_logits"))
_ProbsSampleOp = _op("ProbsSampleOp", _P, _I, _RANDOM, _with("sampling_from_probs"))
_FusedTemperatureSoftmaxOp = _op("FusedTemperatureSoftmaxOp", _L, _P, ("temperature",), _softmax)
_FusedProbsTopKSampleOp = _op("FusedProbsTopKSampleOp", _P, _I, ("top_k", *_RANDOM), _with("top_k_sampling_from_probs", "top_k"))
_FusedProbsTopPSampleOp = _op("FusedProbsTopPSampleOp", _P, _I, ("top_p", *_RANDOM), _with("top_p_sampling_from_probs", "top_p"))
_FusedProbsMinPSampleOp = _op("FusedProbsMinPSampleOp", _P, _I, ("min_p", *_RANDOM), _with("min_p_sampling_from_probs", "min_p"))
_FusedProbsTopKTopPSampleOp = _op("FusedProbsTopKTopPSampleOp", _P, _I, ("top_k", "top_p", *_RANDOM), _with("top_k_top_p_sampling_from_probs", "top_k", "top_p"))
_FusedJointTopKTopPSampleOp = _op("FusedJointTopKTopPSampleOp", _P, _I, ("top_k", "top_p", *_RANDOM),
                                  _with("top_k_top_p_sampling_from_probs", "top_k", "top_p", filter_apply_order="joint"))


def _joined(op_class):
    def build(ops):
        params = {}
        for op in ops:
            params.update({name: value for name, value in op.default_params.items() if name != "joint_topk_topp"})
        return op_class(**params)

    return build


def _is_joint(ops):
    return bool(ops[0].default_params.get("joint_topk_topp"))


# Each keeps the distribution: tokens are drawn in proportion, so that what is left need not be divided by its sum first.
_RULES = (
    FusionRule((_TemperatureOp, _SoftmaxOp), lambda ops: True, _joined(_FusedTemperatureSoftmaxOp), 10),
    FusionRule((_ProbsTopKOp, _TopPOp, _ProbsSampleOp), _is_joint, _joined(_FusedJointTopKTopPSampleOp), 10),
    FusionRule((_ProbsTopKOp, _TopPOp, _ProbsSampleOp), lambda ops: not _is_joint(ops), _joined(_FusedProbsTopKTopPSampleOp), 10),
    FusionRule((_ProbsTopKOp, _ProbsSampleOp), lambda ops: not _is_joint(ops), _joined(_FusedProbsTopKSampleOp), 10),
    FusionRule((_TopPOp, _ProbsSampleOp), lambda ops: True, _joined(_FusedProbsTopPSampleOp), 10),
    FusionRule((_MinPOp, _ProbsSampleOp), lambda ops: True, _joined(_FusedProbsMinPSampleOp), 10),
)


class LogitsProcessor(abc.ABC):
    """A step of a pipe. `params`: what it was told."""

    def __init__(self, **params):
        self.params = params

    @abc.abstractmethod
    def legalize(self, input_type):
        """The operators that do it for what the step before gives; LegalizationError where there are none."""


def _processor(name, ops, text, **defaults):
    """A class of processors whose operator depends on the type of what it gets. `ops`: {that type: the operator}."""
    def legalize(self, input_type):
        if input_type not in ops:
            got = input_type.value if isinstance(input_type, TensorType) else input_type
            raise LegalizationError(f"flashinfer.{name}: `input_type` is {got}, expected {' or '.join(kind.value for kind in ops)}")
        return [ops[input_type](**self.params)]

    return type(name, (LogitsProcessor,), {"legalize": legalize, "__doc__": text, "__module__": __name__, "accepts": tuple(ops)})


class Temperature(_processor("Temperature", {_L: _TemperatureOp}, "")):
    """Logits over a temperature, the keyword `temperature`: a number or a tensor of rows."""


class Softmax(_processor("Softmax", {_L: _SoftmaxOp}, "")):
    """Probabilities of logits, f32."""

    def __init__(self, enable_pdl=None, **params):
        hint("Softmax", "enable_pdl", enable_pdl)
        super().__init__(enable_pdl=enable_pdl, **params)


class TopK(_processor("TopK", {_L: _LogitsTopKOp, _P: _ProbsTopKOp}, "")):
    """The top_k largest and their equals, the keyword `top_k`: -inf or 0 for the others, and probabilities over their sum. joint_topk_topp: a TopP and a Sample follow,
    and TopP looks at the mass of all tokens."""

    def __init__(self, joint_topk_topp=False, **params):
        super().__init__(joint_topk_topp=_check.boolean("flashinfer.TopK", "joint_topk_topp", joint_topk_topp), **params)


class TopP(_processor("TopP", {_P: _TopPOp}, "")):
    """The fewest largest that hold top_p of the mass and their equals, the keyword `top_p`, over their sum."""


class MinP(_processor("MinP", {_P: _MinPOp}, "")):
    """Those of at least min_p of the largest, the keyword `min_p`, over their sum."""


class Sample(_processor("Sample", {_L: _LogitsSampleOp, _P: _ProbsSampleOp}, "")):
    """A token of each row, int32. Keywords `indices`, `generator`, `seed` and `offset` are those of sampling.sampling_from_probs()."""

    def __init__(self, deterministic=True, **params):
        super().__init__(deterministic=_check.boolean("flashinfer.Sample", "deterministic", deterministic), **params)


def _check_types(ops):
    for before, op in zip(ops, ops[1:]):
        if before.OUT == TensorType.INDICES:
            raise CompileError(f"flashinfer.LogitsPipe: {_name(op)} follows {_name(before)}, expected nothing behind tokens")
        if before.OUT != op.IN:
            raise CompileError(f"flashinfer.LogitsPipe: {_name(op)} takes {op.IN.value}, {_name(before)} before it gives {before.OUT.value}")


def _check_softmax(ops):
    if sum(isinstance(op, (_SoftmaxOp, _FusedTemperatureSoftmaxOp)) for op in ops) > 1:
        raise CompileError("flashinfer.LogitsPipe: there are several Softmax, expected one")


def _check_joint(ops):
    for i, op in enumerate(ops):
        if op.default_params.get("joint_topk_topp") and [type(o) for o in ops[i:i + 3]] != [_ProbsTopKOp, _TopPOp, _ProbsSampleOp]:
            raise CompileError("flashinfer.LogitsPipe: `joint_topk_topp` is True, expected that TopK of probabilities, TopP and Sample follow each other")


def _check_custom(where, custom_fusion_rules, custom_validity_checks):
    for name, given, right, words in (("custom_fusion_rules", custom_fusion_rules, lambda x: isinstance(x, FusionRule), "FusionRule"),
                                      ("custom_validity_checks", custom_validity_checks, callable, "functions")):
        if given is not None and not (isinstance(given, (list, tuple)) and all(map(right, given))):
            _check.fail_type(where, name, given, f"a list of {words}")


class LogitsPipe:
    """Processors one behind the other, checked when it is made: each must take what the one before it gives, nothing follows tokens, and there is one Softmax at most."""

    def __init__(self, processors, compile=True, input_type=None, custom_fusion_rules=None, custom_validity_checks=None):
        """input_type: LOGITS or PROBS, needed where the first processor takes both. compile: neighbours are joined. custom_fusion_rules act before quern's;
        custom_validity_checks are called with the list of operators."""
        where = "flashinfer.LogitsPipe"
        if not isinstance(processors, (list, tuple)) or not all(isinstance(p, LogitsProcessor) for p in processors):
            _check.fail_type(where, "processors", processors, "a list of LogitsProcessor")
        if not processors:
            raise ValueError(f"{where}: `processors` is empty, expected one at least")
        if input_type is not None and not isinstance(input_type, TensorType):
            _check.fail_type(where, "input_type", input_type, "a TensorType")
        _check_custom(where, custom_fusion_rules, custom_validity_checks)
        _check.boolean(where, "compile", compile)
        self.processors, self._rules = list(processors), [*(custom_fusion_rules or ()), *_RULES]
        accepts = getattr(processors[0], "accepts", None)
        if input_type is None:
            if accepts is not None and len(accepts) > 1:
                raise LegalizationError(f"{where}: `input_type` is None, expected TensorType.LOGITS or PROBS: {type(processors[0]).__name__} takes both")
            input_type = accepts[0] if accepts else processors[0].legalize(TensorType.LOGITS)[0].IN
        self._initial_type, self.ops = input_type, []
        for processor in self.processors:
            if input_type == TensorType.INDICES:
                raise CompileError(f"{where}: {type(processor).__name__} follows tokens, expected nothing behind them")
            ops = processor.legalize(input_type)
            for op in ops:
                op._of = type(processor)
                unknown = sorted(set(op.default_params) - {"joint_topk_topp", "deterministic", "enable_pdl"} - set(op.takes)) if op.takes is not None else []
                if unknown:
                    raise TypeError(f"{where}: `{unknown[0]}` is no parameter of {type(processor).__name__}, expected {', '.join(op.takes) or 'none'}")
            self.ops += ops
            input_type = ops[-1].OUT if ops else input_type
        self.compiled_ops = None
        for check in (_check_types, _check_softmax, _check_joint, *(custom_validity_checks or ())):
            check(self.ops)
        if compile:
            self.compile()

    @property
    def initial_type(self):
        """What the pipe takes."""
        return self._initial_type

    def compile(self, custom_fusion_rules=None, custom_validity_checks=None):
        """Joins neighbours that one function computes. custom_fusion_rules: in the place of those of the constructor; custom_validity_checks: more of them."""
        _check_custom("flashinfer.LogitsPipe.compile", custom_fusion_rules, custom_validity_checks)
        if custom_fusion_rules is not None:
            self._rules = [*custom_fusion_rules, *_RULES]
        for check in custom_validity_checks or ():
            check(self.ops)
        rules = sorted(self._rules, key=lambda rule: (-rule.prio, -len(rule.pattern)))
        ops, i = list(self.ops), 0
        while i < len(ops):
            for rule in rules:
                window = ops[i:i + len(rule.pattern)]
                fits = len(window) == len(rule.pattern) and all(isinstance(op, kind) or issubclass(getattr(op, "_of", Op), kind) for op, kind in zip(window, rule.pattern))
                if fits and rule.guard(window):
                    ops[i:i + len(window)] = [rule.build(window)]
                    break
            i += 1
        _check_types(ops)
        self.compiled_ops = ops

    def __call__(self, x, **kwargs):
        """What the last step gives for x [rows, vocab], a tensor or a TaggedTensor. Keywords are those of the steps; others are a TypeError."""
        if not isinstance(x, TaggedTensor):
            x = TaggedTensor(tensor("LogitsPipe", "x", x, 2), self._initial_type)
        if x.type != self._initial_type:
            raise ValueError(f"flashinfer.LogitsPipe: `x` is {x.type.value}, expected {self._initial_type.value}")
        ops = self.ops if self.compiled_ops is None else self.compiled_ops
        if any(op.default_params.get("joint_topk_topp") for op in ops):
            raise CompileError("flashinfer.LogitsPipe: `joint_topk_topp` is True, expected a pipe that compile() was called of: its steps are one function")
        if all(op.takes is not None for op in ops):
            unknown = sorted(set(kwargs) - {name for op in ops for name in op.takes})
            if unknown:
                raise TypeError(f"flashinfer.LogitsPipe: `{unknown[0]}` is no keyword of a step, expected {', '.join(sorted({name for op in ops for name in op.takes})) or 'none'}")
        for op in ops:
            x = op(x, **kwargs)
        return x.data

    def __repr__(self):
        chain = lambda names: "[" + " -> ".join(names) + "]"  # noqa: E731
        text = f"LogitsPipe({chain(type(p).__name__ for p in self.processors)}, ops={chain(map(_name, self.ops))}"
        return text + (")" if self.compiled_ops is None else f", compiled_ops={chain(map(_name, self.compiled_ops))})")
