# test_jax_examples.py: the programs of examples/jax, on any number of ranks, give what one process computes.
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import pathlib
import sys

import numpy as np
import pytest

import tutti

jax = pytest.importorskip("jax")

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples/jax"


def example(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_waves_are_those_of_one_process(world, rank, size, monkeypatch, capsys):
    water = example("shallow_water")
    monkeypatch.setattr(sys, "argv", ["shallow_water.py", "--steps", "60", "--cells", "24", "--check"])
    water.main()  # compares with one process, and finds water that was made or lost
    printed = capsys.readouterr().out
    assert (rank == 0) == ("60 steps on 24 x 24 cells" in printed)
    moved = np.asarray(water.alone(water.drop(24, 24), 60))
    assert np.abs(moved[1:]).max() > 0.02  # there are waves to compare


def poisson(cells):
    """The five-point operator on the whole grid, as a matrix."""
    line = 2 * np.eye(cells) - np.eye(cells, k=1) - np.eye(cells, k=-1)
    return np.kron(line, np.eye(cells)) + np.kron(np.eye(cells), line)


def test_conjugate_gradients_solve_what_a_direct_solver_solves(world, rank, size):
    cells = 12
    b = np.random.default_rng(7).normal(size=(cells, cells)).astype(np.float32)
    mine = np.array_split(np.arange(cells), size)[rank]
    cg = example("conjugate_gradient")
    x, rounds = cg.solver(rank, size, 1e-6, 500, tutti.sendrecv, tutti.all_reduce)(jax.numpy.asarray(b[mine]))
    expected = np.linalg.solve(poisson(cells), b.ravel().astype(float)).reshape(cells, cells)
    np.testing.assert_allclose(np.asarray(x), expected[mine], atol=1e-4)
    assert 10 < int(rounds) < 100
    assert len(set(tutti.all_gather_object(int(rounds)))) == 1


def test_the_solver_as_a_program(world, rank, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conjugate_gradient.py", "--cells", "24"])
    example("conjugate_gradient").main()  # looks at the residual itself
    assert (rank == 0) == ("24 x 24 cells" in capsys.readouterr().out)
