# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The quern authors
"""An op's schema, as `quern info OP --json` prints it, in terms of Python: parameters, docstring, type stub.

Nothing but the standard library is imported: the build runs this file to write the stubs (see main())."""
import json
import operator
import os
import struct
import subprocess
import sys

# Behind inputs, attributes and outputs, alike for all ops: name, type, default, meaning.
OPTIONS = [
    ("stream", "Stream", "None", "a CUDA stream or its handle; None: the framework's current one"),
    ("device", "Any", "None", "where it runs, as in QN_DEVICE, the number of a GPU or a torch.device; None: where the tensors lie. Tensors of the host need 'emu', here or in QN_DEVICE"),
    ("backend", "str", "'auto'", "name of a variant, in the place of plan's choice"),
    ("batch_invariant", "bool", "False", "a row's bits do not depend on the other rows"),
    ("pdl", "bool", "False", "the first kernel may start before the stream's previous one ends"),
    ("skip_check", "bool", "False", "skip the requirements that are not shapes, dtypes or strides, and whether what is written shares memory with another tensor"),
    ("workspace", "Optional[T]", "None", "bytes that the call may use, as many as workspace_bytes(..) of this function says; None: the device's pool"),
]
# The same of an op whose kernels call code of the caller's. One with hooks of its own has not the first.
HOOK_OPTIONS = [
    ("hooks", "Any", "None", "text of a struct whose members the kernels call, or the path of a file with it (docs/own_ops.md)"),
    ("hook_params", "Any", "None", "what the hooks read as `at.params`: bytes, an array of NumPy, anything that shows its bytes"),
    ("hook_tensors", "Any", "None", "what they read as `at.tensors[i]`: a list of tensors and None"),
]
PYTHON_TYPES = {"f32": "float", "i32": "int", "i64": "int", "bool": "bool"}


def shortest_f32(value):
    """The shortest decimal that is this f32."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return text
    return repr(value)


def python_type(attribute):
    return "str" if attribute["words"] else PYTHON_TYPES[attribute["type"]]


def default_of(attribute):
    kind, value = attribute["type"], attribute["default"]
    if attribute["words"]:
        return repr(attribute["words"][int(value)])
    if kind == "bool":
        return str(bool(value))
    return str(float(shortest_f32(value))) if kind == "f32" else str(int(value))


def evaluate(formula, value_of):
    """What a formula of an extent comes to, as quern/op/expression.h computes it: numbers, names and operators in postfix order. None where
    value_of(name) is None, or a division does not come out even."""
    stack = []
    for step in formula:
        if isinstance(step, dict):
            step = value_of(step["name"])
            if step is None:
                return None
        if not isinstance(step, str):
            stack.append(step)
            continue
        b, a = stack.pop(), stack.pop()
        if step in ("/", "ceil_div") and (b <= 0 or (step == "/" and a % b != 0)):
            return None
        stack.append(_OPERATORS[step](a, b))
    return stack[0]


_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.floordiv, "ceil_div": lambda a, b: -(-a // b), "min": min, "max": max}


def names_of(extent):
    """The axes and attributes that an extent needs."""
    if extent.get("formula"):
        return [step["name"] for step in extent["formula"] if isinstance(step, dict)]
    return [] if extent["axis"] is None else [extent["axis"]]


class Parameter:
    """One parameter of the Python function: `type` as the stub shows it, `default` as source text or None."""

    def __init__(self, name, type, default=None, keyword_only=False):
        self.name, self.type, self.default, self.keyword_only = name, type, default, keyword_only

    def text(self, typed):
        text = self.name + (f": {self.type}" if typed else "")
        if self.default is None:
            return text
        return text + (" = " if typed else "=") + self.default


class Schema:
    """The facts of one op that its Python function is made of."""

    def __init__(self, facts):
        self.facts = facts
        self.id = facts["op"]
        self.family, self.name = self.id.split(".", 1)
        self.tensors, self.attributes, self.variants = facts["tensors"], facts["attributes"], facts["variants"]
        self.index = {t["name"]: i for i, t in enumerate(self.tensors)}
        self.outputs = [i for i, t in enumerate(self.tensors) if t["role"] == "out"]
        self.updated = [i for i, t in enumerate(self.tensors) if t["role"] == "inout"]
        # What a call returns: what it writes, outputs first.
        self.returned = self.outputs + self.updated
        # Outputs whose dtype the caller may choose.
        self.choosable = [i for i in self.outputs if len(self.tensors[i]["dtypes"]) > 1]
        # Tensors that may require a gradient: outputs too, which a call would take it from.
        integers = {"i32", "i64", "u8", "i8"}
        self.real = [i for i, t in enumerate(self.tensors) if not integers & set(t["dtypes"]) or t["role"] == "out" and set(t["dtypes"]) - integers]
        # Where each axis is read from: (tensor, its rank, dim, factor, offset), in the schema's order.
        self.sources = {}
        for i, t in enumerate(self.tensors):
            for d, e in enumerate(t["axes"] if t["role"] != "out" else ()):
                if e["axis"] is not None and e["divisor"] == 1:
                    self.sources.setdefault(e["axis"], []).append((i, len(t["axes"]), d, e["factor"], e["offset"]))
        # An axis that no tensor but outputs tells is as long as another one.
        self.otherwise = facts.get("axis_otherwise") or {}
        self.attribute_index = {a["name"]: i for i, a in enumerate(self.attributes)}
        # Attributes that are integers: those of Python have no bounds.
        self.integers = [i for i, a in enumerate(self.attributes) if a["type"] in ("i32", "i64")]
        # The ops of its gradients: [{"op": its id, "gradients": {its tensor: the tensor of this op}}].
        self.backward = facts.get("backward") or []
        # Code of the caller's in its kernels: {"own", "points", "params_bytes", "tensors"}; None: it takes none.
        self.hooks = facts.get("hooks")
        self.hook_options = [] if self.hooks is None else HOOK_OPTIONS[1 if self.hooks["own"] else 0:]

    def parameters(self):
        tensors = self.tensors
        inputs = [t for t in tensors if t["role"] != "out"]
        list_ = [Parameter(t["name"], "T") for t in inputs if not t["optional"]]
        # Those that the schema declares behind its outputs came later than the others and stand last: positions of the others stay.
        late = [t["name"] for t in tensors[self.outputs[0]:] if t["role"] != "out" and t["optional"]] if self.outputs else []
        list_ += [Parameter(t["name"], "Optional[T]", "None") for t in inputs if t["optional"] and t["name"] not in late]
        list_ += [Parameter(a["name"], python_type(a), default_of(a)) for a in self.attributes]
        for i in self.outputs:
            list_.append(Parameter(tensors[i]["name"], "Union[T, bool, None]" if tensors[i]["optional"] else "Optional[T]", "None"))
        list_.append(Parameter(*OPTIONS[0][:3]))
        list_ += [Parameter(name, "Optional[T]", "None") for name in late]
        list_ += [Parameter(tensors[i]["name"] + "_dtype", "Any", "None", keyword_only=True) for i in self.choosable]
        return list_ + [Parameter(name, type_, default, keyword_only=True) for name, type_, default, _ in OPTIONS[1:] + self.hook_options]

    def signature(self, typed=False, positional=False):
        """Parameters as source text, without the parentheses: all, or those alone that are no keywords."""
        words, starred = [], False
        for p in self.parameters():
            if positional and p.keyword_only:
                break
            if p.keyword_only and not starred:
                starred = True
                words.append("*")
            words.append(p.text(typed))
        return ", ".join(words)

    def result_type(self):
        sure = [i for i in self.returned if not self.tensors[i]["optional"]]
        if len(self.returned) == 1:
            return "T"
        return f"Tuple[{', '.join(['T'] * len(sure))}]" if len(sure) == len(self.returned) else "Any"

    def dtypes_of(self, name):
        """The dtypes that a tensor, one for hooks, the workspace or NAME_dtype of an output may have."""
        for t in self.hooks["tensors"] if self.hooks else ():
            if t["name"] == name:
                return t["dtypes"]
        at = self.index.get(name, self.index.get(name.removesuffix("_dtype")))
        return ["u8", "e4m3", "e5m2"] if at is None else self.tensors[at]["dtypes"]

    def docstring(self):
        lines = [self.facts["formula"]]
        if self.facts["source"]:
            lines += ["", f"After {self.facts['source']}."]
        lines += ["", "Tensors:"] + [self._tensor_line(t) for t in self.tensors if t["role"] != "out"]
        if self.attributes:
            lines += ["", "Attributes:"] + [f"    {a['name']}: {' | '.join(a['words']) or a['type']}. {a['meaning']}".rstrip(". ") for a in self.attributes]
        lines += ["", "Outputs (None: allocated by the framework of the first tensor):"]
        lines += [self._tensor_line(self.tensors[i]) for i in self.outputs] or ["    none but the tensors that are updated in place"]
        lines += ["", "Options:"]
        lines += [f"    {self.tensors[i]['name']}_dtype: dtype of `{self.tensors[i]['name']}` where it is allocated" for i in self.choosable]
        lines += [f"    {name}: {meaning}" for name, _, _, meaning in OPTIONS + self.hook_options]
        if self.hooks:
            lines += ["", "Points that hooks may have:"] + [f"    QN_DEVICE {p['signature']}" for p in self.hooks["points"]]
        names = ", ".join(self.tensors[i]["name"] for i in self.returned)
        lines += ["", f"Returns {names}" + (" (a tuple; absent outputs are left out)." if len(self.returned) > 1 else ".")]
        if self.backward:
            lines += [f"Gradients (torch): by {' and '.join('quern.' + b['op'] for b in self.backward)}."]
        lines += ["", f"Backends: {', '.join(self.variants)}."]
        lines += ["", "Raises:",
                  "    ValueError: a shape, stride, place or attribute that the schema does not allow, or memory that is written and that two tensors share",
                  "    TypeError: a dtype that it does not allow, or no tensor at all",
                  "    NotImplementedError: no kernel runs this problem on this device",
                  "    RuntimeError: a compile, the device or its driver failed"]
        return "\n".join(lines)

    def _tensor_line(self, t):
        notes = [t["meaning"], t["values"], "optional" if t["optional"] else "", "any strides" if t["strided"] else "", "rows or columns are dense" if t["either_major"] else "",
                 f"may be {t['may_be']} itself" if t["may_be"] else "", "updated in place" if t["role"] == "inout" else ""]
        if t["role"] == "out" and t["optional"]:
            notes.append("True: allocated; None: not computed")
        notes = "; ".join(n for n in notes if n)
        return f"    {t['name']}: [{t['dims'].replace(' ', ', ')}] {' or '.join(t['dtypes'])}" + (f". {notes}" if notes else "")

    def stub(self):
        """The op in a .pyi file."""
        doc = "\n".join("        " + line if line else "" for line in self.docstring().replace("\\", "\\\\").split("\n")).strip()
        return (f"class _{self.name}(Function):\n"
                f"    def __call__(self, {self.signature(typed=True)}) -> {self.result_type()}:\n"
                f'        """{doc}"""\n\n'
                f"{self.name}: _{self.name}\n")


STUB_HEAD = """# Written from the schemas of the ops; not to be edited.
from typing import Any, List, Optional, Tuple, TypeVar, Union

T = TypeVar("T")
Stream = Any

class Function:
    # An op of quern.
    id: str
    backends: List[str]
    def is_backend_supported(self, backend: str, cc: Union[int, str, Tuple[int, int], None] = None) -> bool: ...
    def is_compute_capability_supported(self, cc: Union[int, str, Tuple[int, int]]) -> bool: ...
    def workspace_bytes(self, *arguments: Any, **keywords: Any) -> int: ...
"""


def stubs(schemas):
    """{module: text of its .pyi}: each family, and the package, which has them."""
    texts = {}
    for schema in sorted(schemas, key=lambda s: s.id):
        texts[schema.family] = texts.get(schema.family, STUB_HEAD) + "\n" + schema.stub()
    families = "".join(f"from . import {family} as {family}\n" for family in sorted(texts))
    tools = ", ".join(f"{name} as {name}" for name in ("doctor", "freeze", "frozen", "load", "log_level", "ops", "plan", "typed", "warm"))
    texts["__init__"] = f"from typing import Any\n\n{families}from ._tools import {tools}\n\n__version__: str\n\ndef __getattr__(name: str) -> Any: ...\n"
    return texts


def main(command, folder):
    """Writes FAMILY.pyi for the ops that the quern command knows, and __init__.pyi."""

    def ask(*arguments):
        return json.loads(subprocess.run([command, *arguments, "--json"], capture_output=True, text=True, check=True).stdout)

    schemas = [Schema(ask("info", op["op"])) for op in ask("list")]
    os.makedirs(folder, exist_ok=True)
    for family, text in stubs(schemas).items():
        with open(os.path.join(folder, family + ".pyi"), "w", encoding="utf-8") as f:
            f.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
