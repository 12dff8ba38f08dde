# test_docstrings.py: what help() shows: every verb tells its parameters and its errors, and its example runs.
# SPDX-License-Identifier: Apache-2.0
import inspect
import re
import textwrap

import numpy as np
import pytest

import tutti

MORE = ["average", "batch_statistics", "empty", "seed", "shard_indices", "batches", "pmap", "store", "wait_all", "wait_any"]
FUNCTIONS = sorted([*tutti.verbs(), *MORE])
COMMON = {"group", "async_op", "timeout", "self"}


def example_of(function):
    found = re.search(r"^Example::\n\n(.*?)(?=^\S|\Z)", inspect.getdoc(function), re.MULTILINE | re.DOTALL)
    return textwrap.dedent(found[1]) if found else None


@pytest.mark.parametrize("name", tutti.verbs())
def test_every_verb_tells_its_parameters_and_errors(name):
    text = inspect.getdoc(getattr(tutti, name))
    for parameter in set(inspect.signature(getattr(tutti, name)).parameters) - COMMON:
        assert re.search(rf"^[a-z_, ]*\b{parameter}\b[a-z_, ]*: ", text, re.MULTILINE), f"{parameter} is not explained"
    assert "Raises " in text


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if example_of(getattr(tutti, name))])
def test_the_example_runs(name, world, rank, size):
    exec(example_of(getattr(tutti, name)), {"tutti": tutti, "np": np, "world": world, "rank": rank, "size": size})


def test_every_verb_has_an_example():
    assert [name for name in tutti.verbs() if not example_of(getattr(tutti, name))] == []


@pytest.mark.parametrize("name", tutti.verbs())
def test_methods_have_the_signature_of_the_function_without_its_group(name):
    function, method = (inspect.signature(getattr(owner, name)) for owner in (tutti, tutti.Group))
    assert [*method.parameters] == ["self", *(parameter for parameter in function.parameters if parameter != "group")]
    assert getattr(tutti.Group, name).__doc__
    assert getattr(tutti.Group, name).__name__ == name
