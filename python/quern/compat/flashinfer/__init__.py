# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""FlashInfer's public names and keyword arguments over quern's ops, for what they have (docs/flashinfer.md):

    import quern.compat.flashinfer
    quern.compat.flashinfer.install()
    import flashinfer

Tensors are of torch; with QN_DEVICE=emu also those of the host. Names that no op is behind are absent, so that hasattr() and find_spec() say what there is:
the AttributeError has the reason. Those that engines import before they know whether they need them are there, and raise NotImplementedError when called.

The import needs no torch. The name `flashinfer` is taken by install() alone."""
import functools as _functools
import importlib as _importlib
import sys as _sys

from quern import _check
from quern.compat.flashinfer import _names, _sglang

__version__ = "0.7.2"  # the release whose names these are

for _module in _names.MODULES:
    globals()[_module] = _importlib.import_module(f"{__name__}.{_module}")
    globals()[_module].__getattr__ = _functools.partial(_names.absent, f"{__name__}.{_module}")
for _full, _what in _names.NAMES.items():
    if isinstance(_what, (_names.There, _names.Raising)) and _full.rpartition(".")[2] in _names.TOP_LEVEL:
        # A function may have its module's name, as xqa.xqa.
        globals()[_full.rpartition(".")[2]] = getattr(_sys.modules[f"{__name__}.{_full.rpartition('.')[0]}"], _full.rpartition(".")[2])
del _module, _full, _what


def install(engine=None):
    """From now on `import flashinfer` and its submodules give this package. RuntimeError where a program has already imported another `flashinfer`.
    engine="sglang": also the names that SGLang imports where it starts, which raise when called. vLLM asks for modules of theirs to learn what there is, so a process of
    vLLM leaves `engine` out or says "vllm"."""
    if engine is not None and not isinstance(engine, str):
        _check.fail_type("quern.compat.flashinfer.install", "engine", engine, "None, 'vllm' or 'sglang'")
    if engine not in (None, "vllm", "sglang"):
        _check.fail_value("quern.compat.flashinfer.install", "engine", repr(engine), "None, 'vllm' or 'sglang'")
    package = _sys.modules[__name__]
    if _sys.modules.get("flashinfer", package) is not package:
        raise RuntimeError("quern.compat.flashinfer.install: `flashinfer` is imported from another package, expected no import of it before")
    _sys.modules["flashinfer"] = package
    for name in _names.MODULES:
        _sys.modules[f"flashinfer.{name}"] = _sys.modules[f"{__name__}.{name}"]
    if engine == "sglang":
        _sglang.add(package)


def __getattr__(name):
    _names.absent(__name__, name)
