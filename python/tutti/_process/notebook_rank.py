# notebook_rank.py: a rank behind a notebook: runs the cells that the kernel sends, in one namespace.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import ast
import io
import linecache
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep

def main(fd: int, rank: int) -> None:
    """Until the kernel says None, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # while no cell runs
    channel = Connection(fd)
    module = ModuleType("__main__")  # what cells define can be pickled by name
    sys.modules["__main__"] = module
    channel.send(_run_in(module.__dict__, "import tutti\nworld = tutti.init()\n", "<start>"))
    try:
        while (cell := channel.recv()) is not None:
            channel.send(_run_in(module.__dict__, *cell) | {"figures": _figures() if rank == 0 else []})
    except (EOFError, OSError):
        return  # the kernel is gone
    module.__dict__["tutti"].finalize()


def _run_in(names: dict[str, Any], source: str, name: str) -> dict[str, Any]:
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)  # for tracebacks
    try:
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            value = _execute(names, source, name)
            data = None if value is None else _shown(value)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.stdout.flush()
            sys.stderr.flush()
        return {"error": None, "value": data, "figures": []}
    except BaseException as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return {"error": _described(error), "value": None, "figures": []}


def _execute(names: dict[str, Any], source: str, name: str) -> Any:
    """Runs a cell; the value of its last line, if that is an expression that does not end with a semicolon."""
    tree = ast.parse(source, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, name, "exec"), names)
    return None if last is None else eval(compile(last, name, "eval"), names)


def _shown(value: Any) -> dict[str, Any]:
    """As IPython would show it: text, and HTML or pictures where the value has them."""
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(value)
    return data or {"text/plain": repr(value)}


def _described(error: BaseException) -> dict[str, str]:
    """The error, with the frames of the cell and of what it called, without Tutti's own."""
    told = traceback.TracebackException.from_exception(error, compact=True)
    told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if not frame.filename.startswith(_PACKAGE)])
    return {"traceback": "".join(told.format()).rstrip(), "summary": "".join(told.format_exception_only()).strip()}


def _figures() -> list[bytes]:
    """The plots that a cell has made, as PNG; they are closed, as in a notebook."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    pictures = []
    for number in pyplot.get_fignums():
        file = io.BytesIO()
        pyplot.figure(number).savefig(file, format="png", bbox_inches="tight")
        pictures.append(file.getvalue())
    pyplot.close("all")
    return pictures
