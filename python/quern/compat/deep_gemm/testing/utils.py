# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
import functools
import os

from quern.compat.deep_gemm._arguments import checked
from quern.compat.deep_gemm._settings import arch_major


def get_arch_major():
    """9 on sm_90a, also where that is emulated."""
    return arch_major()


@checked()
def test_filter(condition):
    """Decorator: the function runs where condition() holds, else its name is printed."""
    def decorate(function):
        @functools.wraps(function)
        def filtered(*arguments, **keywords):
            if condition():
                return function(*arguments, **keywords)
            print(f"{function.__name__}: left out, {condition} does not hold")

        return filtered

    return decorate


test_filter.__test__ = False  # no test, whatever pytest thinks of its name


@checked()
def ignore_env(name, condition):
    """Decorator: the function runs without that environment variable where condition() holds."""
    def decorate(function):
        @functools.wraps(function)
        def without(*arguments, **keywords):
            saved = os.environ.pop(name, None) if condition() else None
            try:
                return function(*arguments, **keywords)
            finally:
                if saved is not None:
                    os.environ[name] = saved

        return without

    return decorate
