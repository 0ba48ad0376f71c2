# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""quern mills GPU kernels for LLM serving: quern.norm.rms_norm(x, weight), quern.gemm.dense(a, b), ...

Tensors are of any framework that has DLPack: torch, NumPy, JAX, CuPy. Those of the host run on the emulated device where QN_DEVICE=emu or
device="emu" asks for it. The ops are those of the library's registry, each made from its schema: dir(quern), help(quern.norm.rms_norm).

The library and TVM-FFI are loaded at the first use of an op, not by the import of this package."""
import importlib
import sys
from importlib.machinery import ModuleSpec

_LAZY = {"plan": "_tools", "warm": "_tools", "freeze": "_tools", "frozen": "_tools", "doctor": "_tools", "load": "_tools", "ops": "_tools", "log_level": "_library", "typed": "_tools"}
_MODULES = ("bench", "compat", "plot", "testing", "torch")
__all__ = sorted(_LAZY)


def __getattr__(name):
    if name in _LAZY:
        value = getattr(importlib.import_module("quern." + _LAZY[name]), name)
        globals()[name] = value
        return value
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("quern")
    if name.startswith("_"):
        raise AttributeError(f"module 'quern' has no attribute {name!r}")
    try:
        return importlib.import_module("quern." + name)
    except ModuleNotFoundError as e:
        if e.name != "quern." + name:
            raise
        raise AttributeError(f"module 'quern' has no attribute {name!r}: it has the families {', '.join(_families())}") from None


def __dir__():
    return sorted({*__all__, *_MODULES, *_families()})


def _families():
    from ._tools import ops

    return sorted({op.id.split(".")[0] for op in ops()})


class _FamilyFinder:
    """quern.norm and its like: modules whose members are the ops that the registry has of that family."""

    def find_spec(self, fullname, path=None, target=None):
        package, _, family = fullname.rpartition(".")
        if package != "quern" or family.startswith("_") or family in _MODULES or family not in _families():
            return None
        return ModuleSpec(fullname, self)

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        family = module.__name__.rpartition(".")[2]

        def members():
            from ._tools import ops

            return {op.__name__: op for op in ops() if op.schema.family == family}

        def get(name):
            if name in members():
                return members()[name]
            raise AttributeError(f"module {module.__name__!r} has no op {name!r}: it has {', '.join(sorted(members()))}")

        module.__getattr__, module.__dir__ = get, lambda: sorted(members())
        module.__all__ = sorted(members())
        for name, op in members().items():
            setattr(module, name, op)


sys.meta_path.append(_FamilyFinder())
