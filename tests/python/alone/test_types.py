# test_types.py: mypy and pyright, both as strict as they can be, on programs of users.
# SPDX-License-Identifier: Apache-2.0
import ast
import importlib.util
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parents[2] / "python"
sys.path.insert(0, str(PACKAGE))
import tutti  # noqa: E402

FRAMEWORKS = ("torch", "jax", "tensorflow", "keras", "optax")


def checker(name):
    if importlib.util.find_spec(name) is None:
        pytest.skip(os.environ.get("TUTTI_SKIP_TYPES", f"{name} is not installed"))
    return [sys.executable, "-m", name]


def mypy(file, folder):
    """The lines on which mypy finds an error."""
    said = mypy_says(file, folder)
    return {int(found[1]): found[0] for found in re.finditer(rf"^.*{file.name}:(\d+): error: .*$", said, re.MULTILINE)}


def mypy_says(file, folder):
    """What is inside the frameworks does not matter here."""
    skipped = "".join(f"[mypy-{name}.*]\nfollow_imports = skip\nignore_missing_imports = True\n" for name in FRAMEWORKS)
    config = folder / "mypy.ini"
    config.write_text(f"[mypy]\nstrict = True\n[mypy-tutti.*]\nfollow_imports = silent\n{skipped}")
    command = [*checker("mypy"), "--config-file", config, "--cache-dir", folder / "cache", "--no-error-summary", file]
    done = subprocess.run(command, env={**os.environ, "MYPYPATH": str(PACKAGE)}, capture_output=True, text=True, timeout=110)
    assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
    return done.stdout


def pyright(file, folder):
    """The same for pyright."""
    shutil.copy(file, folder)  # it takes no file from outside of its project
    config = {"include": [file.name], "typeCheckingMode": "strict", "extraPaths": [str(PACKAGE)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [*checker("pyright"), "--outputjson", "--pythonpath", sys.executable, "-p", folder / "pyrightconfig.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == 1
    return {found["range"]["start"]["line"] + 1: found["message"] for found in said["generalDiagnostics"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One for all, so that what mypy has read once is read from its cache."""
    return tmp_path_factory.mktemp("types")


@pytest.mark.parametrize("check", [mypy, pyright])
def test_what_people_write_has_types(check, folder):
    assert check(HERE / "typed/uses.py", folder) == {}


def test_every_public_name_has_a_type(folder):
    program = folder / "names.py"
    names = sorted(set(dir(tutti)))
    program.write_text("import tutti\n" + "".join(f"reveal_type(tutti.{name})\n" for name in names))
    assert mypy(program, folder) == {}
    said = mypy_says(program, folder)
    revealed = re.findall(r'Revealed type is "(.*)"', said)
    assert len(revealed) == len(names)
    assert [name for name, kind in zip(names, revealed) if kind in ("Any", "builtins.object")] == []


@pytest.mark.parametrize("check", [mypy, pyright])
def test_mistakes_are_found_before_the_program_runs(check, folder):
    file = HERE / "typed/mistakes.py"
    wrong = {number for number, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# error")}
    assert set(check(file, folder)) == wrong and len(wrong) >= 12


# Stubs say what the functions are: the same parameters, in the same order, with the same defaults.


def stubbed(file, class_name=None):
    """The first overload of every function in a stub, by name."""
    body = ast.parse((PACKAGE / "tutti" / file).read_text()).body
    if class_name is not None:
        body = next(node.body for node in body if isinstance(node, ast.ClassDef) and node.name == class_name)
    overloads = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            overloads.setdefault(node.name, []).append(node)
    return overloads


def parameters_of(node):
    named = [*node.args.posonlyargs, *node.args.args]
    return [a.arg for a in named if a.arg != "self"], [a.arg for a in node.args.kwonlyargs]


def parameters_at_run_time(function):
    every = [p for p in inspect.signature(function).parameters.values() if p.name != "self"]
    return [p.name for p in every if p.kind != p.KEYWORD_ONLY], [p.name for p in every if p.kind == p.KEYWORD_ONLY]


@pytest.mark.parametrize(
    "stub, class_name, owner",
    [("_calls/verbs.pyi", None, tutti), ("_objects/verbs.pyi", None, tutti), ("_calls/group.pyi", "GroupVerbs", tutti.Group)],
    ids=["functions", "objects", "methods"],
)
def test_the_types_of_the_verbs_have_their_parameters(stub, class_name, owner):
    verbs = {name: nodes for name, nodes in stubbed(stub, class_name).items() if name != "install"}
    assert set(verbs) <= {*tutti.verbs(), "verbs"} and len(verbs) >= 4
    for name, nodes in verbs.items():
        positional, by_name = parameters_at_run_time(getattr(owner, name))
        for node in nodes:
            assert parameters_of(node)[0] == positional, name
            assert sorted(parameters_of(node)[1]) == sorted(by_name), name
