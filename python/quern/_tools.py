# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What is not an op: quern.plan, quern.warm, quern.freeze, quern.doctor, quern.load, quern.ops, quern.typed."""
import json
from os import PathLike
from typing import Any, Callable, Dict, Iterable, List, Union

from . import _arrays, _op
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
    library().load(str(path))


def typed(array: Any, dtype: Any) -> _arrays.Typed:
    """An array of NumPy or CuPy whose bytes are of another dtype: typed(bits, "bf16") of a uint16 array, where ml_dtypes is not wanted."""
    return _arrays.Typed(array, dtype)


def plan(op: Union[str, Callable[..., Any]], *words: str, arch: str = "", device: str = "", **parameters: Union[bool, int, float, str]) -> Dict[str, Any]:
    """What a call would launch and why, as a dict: variant, kernels, grid, shared memory, workspace, key, each variant that cannot run it or
    would be slower with its reason. `op` is an op or its name; parameters are those of `quern plan`: tokens=64, or "x.dtype=bf16" as a word. `arch` plans for a
    GPU that is not here ("sm_90a"); else `device`, else the standard one. ValueError for a parameter that the op does not have."""

    def text(value):
        return str(value).lower() if isinstance(value, bool) else str(value)

    words = list(words) + [f"{name}={text(value)}" for name, value in parameters.items()]
    return json.loads(library().plan_json(getattr(op, "id", op), words, arch, device))


def warm(model: Union[str, PathLike] = "", *limits: str, archs: Union[str, Iterable[str]] = (), device: str = "", trace: Union[str, PathLike] = "", processes: int = 0,
         list_only: bool = False, progress: Union[bool, Callable[[str, int, int, float], Any]] = True) -> Dict[str, Any]:
    """Compiles every kernel that serving a model can need into the cache (docs/warm.md), on worker processes that are forked: call it before
    threads compile. `limits` are words as "tokens=1..64", `archs` one name or several, `trace` a folder of QN_TRACE. progress: a bar of tqdm where that is installed, else
    lines to the logger "quern"; or a function of (kernel, done, all, seconds left); False: nothing. Returns the report of `quern warm --json`.
    ValueError for a model or limit that is not known; a kernel that fails to compile is in the report."""
    archs = [archs] if isinstance(archs, str) else archs
    shown = progress if callable(progress) else _Progress() if progress else None
    try:
        return json.loads(library().warm(str(model), list(limits), list(archs), device, str(trace), processes, list_only, shown))
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
    library().freeze(bool(on))


def frozen() -> bool:
    """Whether freeze() or QN_JIT_FROZEN=1 forbids compiles."""
    return library().frozen()


def doctor() -> Dict[str, Any]:
    """What this machine offers, as a dict: devices, compilers, cache, environment, test compiles. The page for a bug report."""
    return json.loads(library().doctor_json())
