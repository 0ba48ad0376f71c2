# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What install(engine="sglang") adds: modules that hold nothing but the names that SGLang imports where it starts. They are made then and not before, because an
engine that asks whether there is a `flashinfer.fused_moe` takes the module for the kernels."""
import functools
import importlib.machinery
import logging
import sys
import types

from quern.compat.flashinfer import _names
from quern.compat.flashinfer._base import refusing, refusing_class


def _module(package, name):
    """flashinfer.<name>, and those that it lies in."""
    if not name:
        return package
    full = f"flashinfer.{name}"
    if full not in sys.modules:
        parent, _, last = name.rpartition(".")
        module = types.ModuleType(full, "Names that SGLang imports. None of them works.")
        module.__spec__, module.__path__ = importlib.machinery.ModuleSpec(full, None, is_package=True), []
        module.__getattr__ = functools.partial(_names.absent, full)
        setattr(_module(package, parent), last, module)
        sys.modules[full] = module
    return sys.modules[full]


def add(package):
    """Puts the names of the table that are SGLang's into `package`, which is the module flashinfer."""
    for full, what in _names.NAMES.items():
        if isinstance(what, _names.ForSglang):
            module, _, name = full.rpartition(".")
            # A logger whose level SGLang sets. Nothing writes to it.
            value = logging.getLogger("flashinfer.jit") if name == "logger" else (refusing_class if name[0].isupper() else refusing)(full, what.reason)
            vars(_module(package, module)).setdefault(name, value)
