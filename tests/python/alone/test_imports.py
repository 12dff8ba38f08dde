# test_imports.py: what an import brings, and what it leaves alone.
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys

import pytest

FRAMEWORKS = ("torch", "jax", "tensorflow")


def says(repository, code):
    """What a fresh Python prints."""
    environment = {**os.environ, "PYTHONPATH": str(repository / "python"), "TF_CPP_MIN_LOG_LEVEL": "2"}
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=100)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_import_star_brings_no_framework_and_rebinds_nothing(repository):
    code = f"""
import builtins, sys
torch = jax = tensorflow = np = "mine"
before = dict(globals())
from tutti import *
assert not set(sys.modules) & set({FRAMEWORKS}), set(sys.modules) & set({FRAMEWORKS})
assert {{name for name in before if globals()[name] is not before[name]}} <= {{"before"}}
hidden = [name for name in globals() if name not in before and hasattr(builtins, name)]
assert not hidden, hidden
print(all_reduce.__name__, average.__name__, Group.__name__)
"""
    assert says(repository, code) == "all_reduce average Group"


@pytest.mark.parametrize(
    "framework, name",
    [("jax", "training.zero"), ("jax", "value_and_grad"), ("tensorflow", "training.averaging"),
     ("tensorflow", "GradientTape"), ("torch", "compression.PowerSgd")],
)
def test_documented_modules_need_no_import_of_their_own(framework, name, repository):
    pytest.importorskip(framework)
    assert says(repository, f"import tutti; print(tutti.{framework}.{name}.__name__)") == name.rpartition(".")[2]


def test_everything_is_listed(repository):
    code = "import tutti; print({'torch', 'breakpoint', 'zero', 'average', 'all_reduce'} - set(dir(tutti)))"
    assert says(repository, code) == "set()"


def test_import_brings_little(repository):
    """What tells is what is loaded, on any machine: import tutti takes a time in proportion to it."""
    code = """
import sys
before = set(sys.modules)
import tutti
brought = {name for name in set(sys.modules) - before}
print(*sorted(brought))
"""
    brought = set(says(repository, code).split())
    heavy = {"array", "ast", "asyncio", "concurrent", "ctypes", "dataclasses", "datetime", "difflib", "dis", "hashlib", "importlib.abc",
             "inspect", "json", "linecache", "logging", "multiprocessing", "numpy", "pathlib", "pickle", "random", "secrets", "shutil",
             "signal", "socket", "subprocess", "tempfile", "traceback"}
    assert not brought & heavy
    ours = {name for name in brought if name.partition(".")[0] == "tutti"}
    assert len(ours) <= 24 and len(brought - ours) <= 40, sorted(brought)


def test_parameters_are_shown_whenever_inspect_is_imported(repository):
    """Signatures wait for the module that reads them; help() of a verb has no **others, that of a method no group."""
    for code in ("import inspect, tutti", "import tutti, inspect"):
        code += "; print(inspect.signature(tutti.probe)); print(inspect.signature(tutti.Group.broadcast_object))"
        function, method = says(repository, code).splitlines()
        assert "others" not in function and "group" in function
        assert method.startswith("(self, /, value") and "group" not in method


def test_what_a_prompt_shows(repository):
    """Completion, help() and the values of a line, as at Python's prompt and in notebooks."""
    code = """
import pydoc
import numpy as np
import tutti
world = tutti.init()
assert "prepare" in dir(tutti) and {"all_gather_object", "empty", "memory"} <= set(dir(world))
assert "all_reduce(self, /, x: 'T'" in pydoc.plain(pydoc.render_doc(tutti.Group))
assert "async_op" in pydoc.render_doc(tutti.Group.recv_object)
tutti.isend(np.ones(2), 0)
for value in (world, tutti.Mesh(x=1), tutti.nobody, tutti.premul(2.0), tutti.store(), tutti.prepare("all_reduce", np.ones(3)),
              world.memory(8), tutti.all_reduce(np.ones(3), async_op=True), tutti.probe(0)):
    print(repr(value))
"""
    shown = says(repository, code).splitlines()
    assert shown[:4] == ["Group(rank 0 of 1, alone)", "tutti.Mesh(x=1)", "tutti.nobody", "Op(premul(2))"]
    assert shown[4:7] == ["<tutti.Store of this job>", "<tutti.PreparedCall all_reduce>", "<tutti.Array uint8 of shape (8,)>"]
    assert shown[7].startswith("<tutti.Work all_reduce") and shown[8].startswith("<tutti.Message float64 of shape (2,)")
