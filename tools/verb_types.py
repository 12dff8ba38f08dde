#!/usr/bin/env python3
# verb_types.py: the types of the verbs for checkers and editors, made of the functions themselves.
# SPDX-License-Identifier: Apache-2.0
"""tools/verb_types.py SOURCE TARGET: reads the verbs of the package SOURCE (python/tutti) and writes their stubs into the package TARGET.

The signature of a verb stands where its function is. Stubs say more, and most of it follows: `async_op` decides whether a call gives
its result or a Work, and every verb is a method of a group, too. What does not follow is in CASES. The build runs this."""

import ast
import pathlib
import sys
from collections.abc import Iterator

# By stub: the modules whose functions it has.
STUBS = {
    "_calls/verbs": ["_calls/verbs", "_messages/verbs"],
    "_objects/verbs": ["_objects/verbs"],
    "_messages/trees": ["_messages/trees"],
}
METHODS = "_calls/group"
HEADER = """\
# Written by tools/verb_types.py.
from collections.abc import Callable, Sequence
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from tutti import _native
from tutti._calls.type_names import AnyReduction, Reduction, T
from tutti._calls.works import Work
from tutti._messages.messages import Message
from tutti._native import Array, Group, Op, Timeout

"""
# What arguments tell of the result, the first that fits: parameters as they are then, and the type of the result.
_NONE, _EVERY = {"x": "None", "out": "None = None"}, ({}, "T")
_NUMBER = {"x": "complex", "out": "NDArray[Any] | None = None"}
_RECEIVED = [
    ({"like": "T", "out": "None = None"}, "T"), ({"like": "None = None", "out": "T"}, "T"),
    ({"like": "None = None", "out": "None = None"}, "Any"),
]  # fmt: skip
CASES = {
    "broadcast": [(_NONE, "Any"), _EVERY],
    "scatter": [(_NONE, "Any"), _EVERY],
    "all_gather": [(_NUMBER, "NDArray[Any]"), _EVERY],
    "gather": [(_NUMBER, "NDArray[Any] | complex"), _EVERY],
    "recv": _RECEIVED,
    "irecv": [(changed, f"Work[{result}]") for changed, result in _RECEIVED],
}


def functions(tree: ast.Module) -> list[ast.FunctionDef]:
    return [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]


def parameters(function: ast.FunctionDef) -> tuple[dict[str, str], list[str]]:
    """Each as it is written, by name; and the names of those that go by name only."""
    spec = function.args
    defaults = [None] * (len(spec.args) - len(spec.defaults)) + list(spec.defaults) + list(spec.kw_defaults)
    written = {}
    for argument, default in zip([*spec.args, *spec.kwonlyargs], defaults, strict=True):
        kind = "Any" if argument.annotation is None else ast.unparse(argument.annotation)
        written[argument.arg] = kind if default is None else f"{kind} = {ast.unparse(default)}"
    return written, [argument.arg for argument in spec.kwonlyargs]


def variants(written: dict[str, str], result: str) -> Iterator[tuple[dict[str, str], str]]:
    """What async_op makes of a signature."""
    if "async_op" not in written:
        yield written, result
        return
    yield {**written, "async_op": "Literal[False] = False"}, result
    yield {**written, "async_op": "Literal[True]"}, f"Work[{result}]"
    yield {**written, "async_op": "bool"}, f"{result} | Work[{result}]"


def stub(function: ast.FunctionDef, *, is_method: bool) -> Iterator[str]:
    """The declarations of one function."""
    written, by_name = parameters(function)
    if is_method:
        del written["group"]
    result = "Any" if function.returns is None else ast.unparse(function.returns)
    cases = CASES.get(function.name, [({}, result)])
    overloads = [each for changed, result in cases for each in variants({**written, **changed}, result)]
    for own, result in overloads:
        texts = [f"{name}: {text}" for name, text in own.items()]
        first = next((place for place, name in enumerate(own) if name in by_name), None)
        if first is not None:
            texts.insert(first, "*")
        if len(overloads) > 1:
            yield "@overload"
        yield f"def {function.name}({', '.join(['self'] * is_method + texts)}) -> {result}: ..."


def write(file: pathlib.Path, lines: list[str]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(HEADER + "\n".join(lines) + "\n")


def main() -> None:
    source, target = map(pathlib.Path, sys.argv[1:])
    methods = ["class GroupVerbs:", '    """What Group inherits for type checkers; at run time the methods are attached to it."""', ""]
    for name, modules in STUBS.items():
        every = [function for module in modules for function in functions(ast.parse((source / f"{module}.py").read_text()))]
        lines = [line for function in every for line in stub(function, is_method=False)]
        write(target / f"{name}.pyi", lines)
        verbs = [function for function in every if "group" in parameters(function)[0]]
        methods += [f"    {line}" for function in verbs for line in stub(function, is_method=True)]
    write(target / f"{METHODS}.pyi", [*methods, "", "def install() -> None: ..."])


if __name__ == "__main__":
    main()
