# test_stubs.py: the types we promise are those of the module.
# SPDX-License-Identifier: Apache-2.0
import ast
import pathlib
import sys

import pytest

PACKAGE = pathlib.Path(__file__).resolve().parents[3] / "python"
sys.path.insert(0, str(PACKAGE))
import tutti  # noqa: E402
from tutti import _native  # noqa: E402

STUB = ast.parse((PACKAGE / "tutti/_native.pyi").read_text())
ALIASES = {"Timeout"}  # only for the types


def names_in(body):
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            yield node.name
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id


def public(names):
    return {name for name in names if not name.startswith("_")}


def test_every_name_of_the_module_has_a_type():
    module = public(vars(_native)) - {"datetime"}
    stub = public(names_in(STUB.body))
    if not hasattr(_native, "jax_handlers"):  # built without jaxlib's headers
        stub -= {name for name in stub if name.startswith("jax_")}
    assert stub - ALIASES == module


CLASSES = [node for node in STUB.body if isinstance(node, ast.ClassDef)]


VERBS = ast.parse((PACKAGE / "tutti/_calls/group.pyi").read_text())


def members_of(node):
    """Also those of the class that only the stubs have: the verbs as methods."""
    inherited = {base.id for base in node.bases}
    bases = [each for each in VERBS.body if isinstance(each, ast.ClassDef) and each.name in inherited]
    return {name for each in [node, *bases] for name in names_in(each.body)}


@pytest.mark.parametrize("node", CLASSES, ids=[node.name for node in CLASSES])
def test_every_member_of_a_class_has_a_type(node):
    assert public(members_of(node)) == public(vars(getattr(_native, node.name)))


def test_what_people_import_is_documented():
    assert (PACKAGE / "tutti/py.typed").exists()
    for name in set(dir(tutti)) - {"jax", "tensorflow", "torch"}:
        assert getattr(tutti, name).__doc__, name
