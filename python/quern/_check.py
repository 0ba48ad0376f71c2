# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""What public functions take. Each check names the function, the argument, what was got and what was expected, and returns the value as the library
takes it. The library judges what the value means; a value that it could not be handed is judged here.

Nothing but the standard library is imported."""
import contextlib
import math
import numbers
import operator
import os
import re

_LONGEST = 60  # characters of a value that an error repeats


def got(value):
    """A value in the words of an error: "None", "90 (int)", "a list"."""
    kind = type(value)
    if value is None:
        return "None"
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if kind in (bool, int, float, str, bytes, tuple) and len(repr(value)) <= _LONGEST:
        return f"{value!r} ({name})"
    return f"a {name}"


def fail_type(where, name, value, expected):
    raise TypeError(f"{where}: `{name}` is {got(value)}, expected {expected}")


def fail_value(where, name, value, expected):
    raise ValueError(f"{where}: `{name}` is {value}, expected {expected}")


@contextlib.contextmanager
def naming(where, **names):
    """Errors of the library that begin with an argument get the function's name in front. `names`: arguments that the library knows by others."""
    try:
        yield
    except (ValueError, TypeError, RuntimeError) as e:
        text = str(e)
        if not text.startswith("`"):
            raise
        for ours, theirs in names.items():
            text = text.replace(f"`{theirs}`", f"`{ours}`")
        raise type(e)(f"{where}: {text}") from None


def boolean(where, name, value):
    if value is True or value is False:
        return value
    return fail_type(where, name, value, "True or False")


def text(where, name, value, expected):
    """Text that the library can be handed: it has no NUL and is UTF-8."""
    if not isinstance(value, str):
        fail_type(where, name, value, expected)
    try:
        value.encode()
    except UnicodeEncodeError:
        fail_value(where, name, ascii(value), "text that can be written as UTF-8")
    if "\0" in value:
        fail_value(where, name, ascii(value), "text without a NUL character")
    return str(value)


def texts(where, name, values, expected):
    """The same of several, each with its index."""
    return [text(where, f"{name}[{i}]", value, expected) for i, value in enumerate(values)]


def path(where, name, value):
    """The text of a path."""
    if not isinstance(value, (str, os.PathLike)):
        fail_type(where, name, value, "a path: a str or an os.PathLike")
    value = os.fspath(value)
    return text(where, name, os.fsdecode(value) if isinstance(value, bytes) else value, "a path: a str or an os.PathLike")


def integer(where, name, value, least, most, expected="an integer"):
    """Anything that Python counts with: also an integer of NumPy, which an array is not."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        fail_type(where, name, value, expected)
    value = operator.index(value)
    if not least <= value <= most:
        fail_value(where, name, value, f"{least} to {most}")
    return value


def number(where, name, value, expected="a number"):
    """A finite number, also one of NumPy; an array is none."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        fail_type(where, name, value, expected)
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if not math.isfinite(value):
        fail_value(where, name, value, "a finite number")
    return value


def function(where, name, value):
    if not callable(value):
        fail_type(where, name, value, "a function")
    return value


def op_id(where, name, value):
    """The name of an op: itself, or of a function of quern."""
    return text(where, name, getattr(value, "id", value), "an op, as quern.norm.rms_norm, or its name")


def arch_of(where, cc):
    """The arch of a compute capability as the library names it: 90, "90", "9.0", "sm_90a" and (9, 0) are "90" or "sm_90a"."""
    if isinstance(cc, int) and not isinstance(cc, bool):
        cc = str(cc)
    elif isinstance(cc, (tuple, list)) and len(cc) == 2 and all(type(n) is int for n in cc):
        cc = f"{cc[0]}.{cc[1]}"
    words = re.fullmatch(r"(?:sm_)?(\d{2,3}[a-z]?)|(\d{1,2})\.(\d)", cc) if isinstance(cc, str) else None
    if not words:
        raise ValueError(f"{where}: `cc` is {cc!r}, expected a compute capability: 90, '90', '9.0', 'sm_90a' or (9, 0)")
    return words[1] or words[2] + words[3]


def backend(where, value):
    """An object that TVM-FFI has no word for; the library judges the others."""
    if value is not None and not isinstance(value, (str, int, float)):
        fail_type(where, "backend", value, "None or the name of a variant")


_SCALARS = {"f32": "a number", "i32": "an integer", "i64": "an integer", "bool": "True or False"}
_EXACT = (float, int, bool, str, type(None))


def _expected(facts):
    words = facts["words"]
    return " or ".join([", ".join(words[:-1]), words[-1]]) if words else _SCALARS[facts["type"]]


def _attribute(id_, facts, value):
    expected = _expected(facts)
    if isinstance(value, str):
        return str(value)
    if type(value).__name__ in ("bool", "bool_") and hasattr(value, "__bool__") and getattr(value, "shape", ()) == ():  # NumPy's
        return bool(value)
    if isinstance(value, numbers.Integral):
        value = operator.index(value)
        if -2**63 <= value < 2**63:
            return value
        if facts["type"] == "f32":
            return number(id_, facts["name"], value)
        fail_value(id_, facts["name"], value, expected if facts["words"] else "a signed 64-bit integer" if facts["type"] == "i64" else "a 32-bit integer")
    if isinstance(value, numbers.Real):
        return float(value)
    return fail_type(id_, facts["name"], value, expected)


def judged_attributes(op, values):
    """The same for torch's graph, where the library does not see what is wrong with them: Python's own are judged too, words stand for themselves."""
    judged = []
    for facts, value in zip(op.schema.attributes, attributes(op, values)):
        words, kind = facts["words"], facts["type"]
        right = {"f32": (int, float), "bool": bool}.get(kind, int)
        if words and isinstance(value, int) and not isinstance(value, bool) and 0 <= value < len(words):
            value = words[value]
        elif words and value not in words:
            (fail_value if type(value) in (int, str) else fail_type)(op.id, facts["name"], value, _expected(facts))
        elif not words and (not isinstance(value, right) or (kind != "bool" and isinstance(value, bool))):
            fail_type(op.id, facts["name"], value, _expected(facts))
        elif kind == "i32" and not words and not -2**31 <= value < 2**31:
            fail_value(op.id, facts["name"], value, "a 32-bit integer")
        judged.append(value)
    return judged


def attributes(op, values):
    """Attributes of a call as the library takes them. Scalars of NumPy become Python's; what is no scalar is a TypeError. Python's own pass: the library
    judges them."""
    for value in values:
        if type(value) not in _EXACT or (type(value) is int and not -2**63 <= value < 2**63):
            return [v if type(v) in _EXACT and type(v) is not int else _attribute(op.id, facts, v) for facts, v in zip(op.schema.attributes, values)]
    return values
