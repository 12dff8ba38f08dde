# test_digits.py: the digits are learned, with the same loss curve in five ways and on any number of ranks.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

FOLDER = "examples/digits"
# What the bar tells on each line: loss, accuracy, shares of the time.
PROGRESS = r"epoch +\d+/\d+ [█·]+ loss ([\d.]+)  accuracy +([\d.]+) %.* ([\d.]+) % in communication, +([\d.]+) % waiting"
EPOCHS, STEPS = 12, 26


def curve(file):
    found = json.loads(file.read_text())
    return np.array(found["losses"]), found["accuracy"]


def run_python(run_ranks, repository, tmp_path, language, ranks, epochs):
    out = tmp_path / f"{language}-{ranks}.json"
    run = run_ranks(ranks, repository / FOLDER / f"train_{language}.py", "--epochs", str(epochs), "--curve", out, timeout=100,
                    env={"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1"})
    assert run.returncode == 0, run.stdout + run.stderr
    return curve(out)


def run_cpp(repository, tuttirun, tmp_path, ranks, epochs):
    data, out = tmp_path / "digits.bin", tmp_path / f"cpp-{ranks}.json"
    subprocess.run([sys.executable, repository / FOLDER / "digits.py", data], check=True, timeout=60)
    run = subprocess.run([tuttirun, "-n", str(ranks), "--timeout", "60s", repository / "build/release/examples/digits/digits", data,
                          "--epochs", str(epochs), "--curve", out], capture_output=True, text=True, timeout=90)
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(re.findall(PROGRESS, run.stdout)) == epochs, run.stdout
    return curve(out)


@pytest.fixture(scope="module")
def one_process(tuttirun, repository, tmp_path_factory):
    """NumPy on one rank, to the end."""
    out = tmp_path_factory.mktemp("digits") / "curve.json"
    command = [tuttirun, "-n", "1", sys.executable, repository / FOLDER / "train_numpy.py", "--curve", out]
    run = subprocess.run(command, check=True, capture_output=True, text=True, timeout=90,
                         env={**os.environ, "PYTHONPATH": str(repository / "python"), "OMP_NUM_THREADS": "1"})
    lines = re.findall(PROGRESS, run.stdout)
    assert len(lines) == EPOCHS and float(lines[-1][2]) + float(lines[-1][3]) < 50, run.stdout
    return curve(out)


def test_digits_are_learned(one_process):
    losses, accuracy = one_process
    assert accuracy > 0.95 and len(losses) == EPOCHS * STEPS
    assert losses[-STEPS:].mean() < losses[:STEPS].mean() / 8


@pytest.mark.parametrize("ranks", (2, 3, pytest.param(4, marks=pytest.mark.soak)))
def test_more_ranks_give_the_same_curve_and_the_same_bits_again(ranks, one_process, run_ranks, repository, tmp_path):
    is_long = ranks == 3 or "TUTTI_SOAK" in os.environ
    found, accuracy = run_python(run_ranks, repository, tmp_path, "numpy", ranks, EPOCHS if is_long else 4)
    np.testing.assert_allclose(found, one_process[0][: len(found)], rtol=1e-3, atol=2e-6)
    assert accuracy > (0.95 if is_long else 0.9)
    if is_long:
        again, _ = run_python(run_ranks, repository, tmp_path, "numpy", ranks, 2)
        assert (found[: len(again)] == again).all()


@pytest.mark.parametrize("language, ranks", (("torch", 3), ("jax", 2), ("tensorflow", 2)))
def test_other_frameworks_give_the_same_curve(language, ranks, one_process, run_ranks, repository, tmp_path):
    pytest.importorskip(language)
    found, accuracy = run_python(run_ranks, repository, tmp_path, language, ranks, 4)
    np.testing.assert_allclose(found, one_process[0][: len(found)], rtol=1e-3, atol=2e-6)
    assert accuracy > 0.9


@pytest.mark.soak
@pytest.mark.parametrize("ranks", (1, 2, 3, 4))
@pytest.mark.parametrize("language", ("torch", "jax", "tensorflow"))
def test_all_frameworks_on_all_numbers_of_ranks(language, ranks, one_process, run_ranks, repository, tmp_path):
    found, accuracy = run_python(run_ranks, repository, tmp_path, language, ranks, EPOCHS)
    np.testing.assert_allclose(found, one_process[0], rtol=1e-3, atol=2e-6)
    assert accuracy > 0.95
    again, _ = run_python(run_ranks, repository, tmp_path, language, ranks, 2)
    assert (found[: len(again)] == again).all()


@pytest.mark.parametrize("ranks", (1, pytest.param(2, marks=pytest.mark.soak), 3, pytest.param(4, marks=pytest.mark.soak)))
def test_cpp_gives_the_same_curve(ranks, one_process, repository, tuttirun, tmp_path):
    found, accuracy = run_cpp(repository, tuttirun, tmp_path, ranks, EPOCHS)
    np.testing.assert_allclose(found, one_process[0], rtol=1e-3, atol=3e-6)
    assert accuracy > 0.95
    again, _ = run_cpp(repository, tuttirun, tmp_path, ranks, EPOCHS)
    assert (found == again).all()


def test_the_curves_can_be_drawn(one_process, repository, tmp_path):
    for name in ("one process", "two ranks"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"losses": one_process[0].tolist(), "accuracy": 1}))
    command = [sys.executable, repository / FOLDER / "draw.py", tmp_path / "picture.svg", *sorted(tmp_path.glob("*.json"))]
    subprocess.run(command, check=True, timeout=30)
    picture = (tmp_path / "picture.svg").read_text()
    assert picture.count("<polyline") == 2 and "one process" in picture
