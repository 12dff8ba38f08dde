# test_examples.py: the same data-parallel program in five ways gives the same losses, on any number of ranks.
# SPDX-License-Identifier: Apache-2.0
import importlib.util
import re
import subprocess

import pytest

LANGUAGES = ("numpy", "torch", "jax", "tensorflow")


def losses_of(output):
    return [float(number) for number in re.findall(r"\[0\] step +\d+ loss ([0-9.]+)", output)]


@pytest.fixture(scope="module")
def one_process(repository, tuttirun):
    """In C++, on one rank: no communication, and so what all the others have to give."""
    return losses_of(run_cpp(repository, tuttirun, 1))


def run_cpp(repository, tuttirun, ranks):
    program = repository / "build/release/examples/data_parallel"
    run = subprocess.run([tuttirun, "-n", str(ranks), "--timeout", "60s", program], stdin=subprocess.DEVNULL, capture_output=True,
                         text=True, timeout=90)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_it_learns(one_process):
    assert len(one_process) == 30
    assert one_process[-1] < one_process[0] / 10


@pytest.mark.parametrize("ranks", [2, 3])
def test_cpp_gives_the_losses_of_one_process(one_process, repository, tuttirun, ranks):
    assert losses_of(run_cpp(repository, tuttirun, ranks)) == pytest.approx(one_process, abs=3e-6)


@pytest.mark.parametrize("language", LANGUAGES)
def test_python_gives_the_losses_of_one_process(one_process, repository, run_ranks, language):
    if importlib.util.find_spec(language) is None:
        pytest.skip(f"{language} is not installed")
    run = run_ranks(2, repository / f"examples/data_parallel/train_{language}.py", timeout=100, env={"TF_CPP_MIN_LOG_LEVEL": "2"})
    assert run.returncode == 0, run.stdout + run.stderr
    assert losses_of(run.stdout) == pytest.approx(one_process, abs=3e-6)
