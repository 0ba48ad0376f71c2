# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""Loads TVM-FFI and the binding library, once, and connects quern's log with `logging`."""
import atexit
import logging
import os
import threading

from . import _check

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
_lock = threading.Lock()
_module = None
logger = logging.getLogger("quern")
# By quern's LogLevel: warnings, calls and compiles, tensors, statistics.
_LEVELS = {0: logging.WARNING, 1: logging.INFO, 3: logging.DEBUG, 5: logging.DEBUG}


def library():
    """The module of typed functions that quern/ffi/export.cpp states."""
    return _module or _load()


def _load():
    global _module
    with _lock:
        if _module is None:
            import tvm_ffi

            tvm_ffi.register_error("NotImplementedError", NotImplementedError)
            module = tvm_ffi.load_module(os.path.join(_FOLDER, "libquern_ffi.so"))
            _connect_log(module)
            _module = module
    return _module


def _connect_log(module):
    """The log goes to the logger "quern", unless the environment says where. What it holds follows from the logger's level now."""
    if os.environ.get("QN_LOG_LEVEL") or os.environ.get("QN_LOG_DEST"):
        return
    if logger.isEnabledFor(logging.INFO):
        module.log_level(3 if logger.isEnabledFor(logging.DEBUG) else 1)
    module.set_log(lambda level, text: logger.log(_LEVELS.get(level, logging.INFO), "%s", text))
    atexit.register(module.set_log, None)


def log_level(level: int) -> None:
    """What is logged from now on: 0 warnings, 1 also calls and compiles, 3 also their tensors, 5 also what these hold."""
    library().log_level(_check.integer("log_level", "level", level, 0, 5))
