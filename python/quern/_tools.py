# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What is not an op: quern.plan, quern.warm, quern.freeze, quern.doctor, quern.load, quern.ops, quern.typed."""
import json
import numbers
from os import PathLike
from typing import Any, Callable, Dict, Iterable, List, Union

from . import _arrays, _check, _op
from ._library import library, log_level, logger  # noqa: F401


class Ops(List[Callable[..., Any]]):
    """A list of ops that prints as `quern list` does: each with its formula."""

    def __repr__(self) -> str:
        width = max((len(op.id) for op in self), default=0)
        return "\n".join(f"{op.id:{width}}  {op.schema.facts['formula']}" for op in self)


def ops() -> Ops:
    """All ops of the registry, those of loaded libraries included, by name: a list, which prints them with their formulas."""
    return Ops(_op.by_id(str(id_)) for id_ in library().ops())


def load(path: Union[str, PathLike]) -> None:
    """Loads a library of ops of your own (docs/own_ops.md); they are then in quern.FAMILY like all others. ValueError where it cannot be."""
    path = _check.path("load", "path", path)
    with _check.naming("load", path="--load"):  # which is the command's name of it
        library().load(path)


def typed(array: Any, dtype: Any) -> _arrays.Typed:
    """An array of NumPy or CuPy whose bytes are of another dtype: typed(bits, "bf16") of a uint16 array, where ml_dtypes is not wanted."""
    return _arrays.Typed(array, dtype)


def plan(op: Union[str, Callable[..., Any]], *words: str, arch: str = "", device: Any = "", **parameters: Union[bool, int, float, str]) -> Dict[str, Any]:
    """What a call would launch and why, as a dict: variant, kernels, grid, shared memory, workspace, key, each variant that cannot run it or
    would be slower with its reason. `op` is an op or its name; parameters are those of `quern plan`: tokens=64, or "x.dtype=bf16" as a word. `arch` plans for a
    GPU that is not here ("sm_90a"); else `device`, as ops take it, else the standard one. ValueError for a parameter that the op does not have,
    TypeError for an argument of another type."""
    id_, given = _check.op_id("plan", "op", op), _check.texts("plan", "words", words, "text, as 'x.dtype=bf16'")
    given += [f"{name}={_word_of(name, value)}" for name, value in parameters.items()]
    arch = _check.text("plan", "arch", arch, "the name of an arch, as 'sm_90a'")
    device = _device_text("plan", device)
    with _check.naming("plan"):
        return json.loads(library().plan_json(id_, given, arch, device))


def _word_of(name, value):
    """A parameter of a case as the command line has it: a number, true or false, or a word."""
    if isinstance(value, str):
        return _check.text("plan", name, value, "a word")
    if type(value).__name__ in ("bool", "bool_"):  # Python's and NumPy's
        return str(bool(value)).lower()
    if isinstance(value, numbers.Integral):
        return str(int(value))
    return repr(_check.number("plan", name, value, "a number, True, False or a word"))


def _device_text(where, device):
    """A device as QN_DEVICE names it, empty: the standard one."""
    return _check.text(where, "device", _op.device_name(where, device) or "", "a name")


def warm(model: Union[str, PathLike] = "", *limits: str, archs: Union[str, Iterable[str]] = (), device: Any = "", trace: Union[str, PathLike] = "", processes: int = 0,
         list_only: bool = False, progress: Union[bool, Callable[[str, int, int, float], Any]] = True) -> Dict[str, Any]:
    """Compiles every kernel that serving a model can need into the cache (docs/warm.md), on worker processes that are forked: call it before
    threads compile. `limits` are words as "tokens=1..64", `archs` one name or several, `trace` a folder of QN_TRACE. progress: a bar of tqdm where that is installed, else
    lines to the logger "quern"; or a function of (kernel, done, all, seconds left); False: nothing. Returns the report of `quern warm --json`.
    ValueError for a model or limit that is not known, TypeError for an argument of another type; a kernel that fails to compile is in the report."""
    if not isinstance(archs, (str, list, tuple, set, frozenset)) and not hasattr(archs, "__iter__"):
        _check.fail_type("warm", "archs", archs, "the name of an arch, or several")
    archs = _check.texts("warm", "archs", [archs] if isinstance(archs, str) else archs, "the name of an arch, as 'sm_90a'")
    given = (_check.path("warm", "model", model), _check.texts("warm", "limits", limits, "text, as 'tokens=1..64'"), archs, _device_text("warm", device),
             _check.path("warm", "trace", trace), _check.integer("warm", "processes", processes, 0, 1024), _check.boolean("warm", "list_only", list_only))
    shown = progress if callable(progress) else _Progress() if _check.boolean("warm", "progress", progress) else None
    try:
        with _check.naming("warm"):
            return json.loads(library().warm(*given, shown))
    finally:
        if isinstance(shown, _Progress):
            shown.close()


class _Progress:
    """A bar, or where there is no tqdm a line of the log for each kernel."""

    def __init__(self):
        try:
            from tqdm import tqdm
        except ImportError:
            tqdm = None
        self._tqdm, self._bar = tqdm, None

    def __call__(self, kernel, done, total, seconds_left):
        if self._tqdm is None:
            logger.info("warm %d/%d %s, %.0f s left", done, total, kernel, seconds_left)
            return
        if self._bar is None:
            self._bar = self._tqdm(total=total, unit="kernel")
        self._bar.set_postfix_str(str(kernel)[:60], refresh=False)
        self._bar.update(done - self._bar.n)

    def close(self):
        if self._bar is not None:
            self._bar.close()


def freeze(on: bool = True) -> None:
    """From now on this process compiles nothing: a call whose kernel is neither loaded nor in the cache is a RuntimeError at once."""
    library().freeze(_check.boolean("freeze", "on", on))


def frozen() -> bool:
    """Whether freeze() or QN_JIT_FROZEN=1 forbids compiles."""
    return library().frozen()


def doctor() -> Dict[str, Any]:
    """What this machine offers, as a dict: devices, compilers, cache, environment, test compiles. The page for a bug report."""
    return json.loads(library().doctor_json())
