# conftest.py: for tests with a process tree of their own, run once: the launcher, and programs started with it.
# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest
from chromium import Browser

# Started in the background by a shell, these tests would have Ctrl-C ignored; programs that they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def repository():
    return REPOSITORY


@pytest.fixture(scope="session")
def tuttirun():
    """The launcher of this checkout, or the one that TUTTI_TUTTIRUN names."""
    path = pathlib.Path(os.environ.get("TUTTI_TUTTIRUN", REPOSITORY / "build/release/src/launch/tuttirun"))
    assert path.exists(), f"{path} is missing: ./dev build"
    return path


@pytest.fixture
def run_ranks(tuttirun, tmp_path):
    """run_ranks(n, program, *arguments, timeout=60, env={}) runs a Python program, given as its text or its path, as n
    ranks, and gives the finished process: returncode, stdout, stderr."""

    def run(ranks, program, *arguments, timeout=60, env=None, options=()):
        if isinstance(program, str):
            path = tmp_path / "program.py"
            path.write_text(program)
        else:
            path = program
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), **(env or {})}
        command = [tuttirun, "-n", str(ranks), "--timeout", f"{timeout}s", *options, sys.executable, path, *arguments]
        return subprocess.run([str(word) for word in command], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout + 30)

    return run


@pytest.fixture
def fake_gpu(repository):
    """The environment of ranks that take a library for CUDA's driver and NCCL, on the CPU's memory (tests/support/fake_gpu.hpp)."""
    path = pathlib.Path(os.environ.get("TUTTI_FAKE_GPU", repository / "build/release/src/cuda/libfake_gpu.so"))
    assert path.exists(), f"{path} is missing: ./dev build"
    return {"TUTTI_CUDA_LIBRARY": str(path), "TUTTI_NCCL_LIBRARY": str(path), "TUTTI_LOG": "debug"}


@pytest.fixture
def tutti_program(repository):
    """tutti_program("where", JOB) runs the tool, and gives the finished process."""
    path = pathlib.Path(os.environ.get("TUTTI_PROGRAM", repository / "build/release/src/cli/tutti"))
    assert path.exists(), f"{path} is missing: ./dev build"

    def run(*words, check=True):
        done = subprocess.run([str(path), *map(str, words)], capture_output=True, text=True, timeout=60)
        assert not check or done.returncode == 0, done.stderr
        return done

    run.path = path
    return run


@pytest.fixture
def job(tuttirun, tmp_path, repository):
    """Starts jobs, and ends what is left of them."""
    started = []

    def start(program, *arguments, options=(), ranks=4, name="program.py", folder=tmp_path):
        (folder / name).write_text(program)
        environment = {**os.environ, "PYTHONPATH": str(repository / "python"), "OMP_NUM_THREADS": "1"}
        words = [tuttirun, "-n", ranks, "--timeout", "100s", *options, sys.executable, name, *arguments]
        process = subprocess.Popen(list(map(str, words)), env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=30)


@pytest.fixture
def browser(tmp_path):
    """Chromium, on a page that is still empty."""
    if reason := os.environ.get("TUTTI_SKIP_CHROMIUM"):
        pytest.skip(reason)
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    one = Browser(tmp_path / "chromium")
    yield one
    one.close()


LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "NODE_", "MASTER_", "TUTTI_", "OMPI_", "PMI", "SLURM_", "TORCHELASTIC_")


@pytest.fixture
def clean_environment(tmp_path):
    """The environment of a shell in which no launcher works, with a place of its own for the user's key."""
    left_out = (*LAUNCHERS, "PYTHONUNBUFFERED")  # which would write lines in two pieces
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return kept | {"PYTHONPATH": str(REPOSITORY / "python"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "OMP_NUM_THREADS": "1"}
