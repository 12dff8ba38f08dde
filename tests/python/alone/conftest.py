# conftest.py: for tests with a process tree of their own, run once: the launcher, and programs started with it.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import subprocess
import sys

import pytest

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


LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "NODE_", "MASTER_", "TUTTI_", "OMPI_", "PMI", "SLURM_", "TORCHELASTIC_")


@pytest.fixture
def clean_environment(tmp_path):
    """The environment of a shell in which no launcher works, with a place of its own for the user's key."""
    left_out = (*LAUNCHERS, "PYTHONUNBUFFERED")  # which would write lines in two pieces
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return kept | {"PYTHONPATH": str(REPOSITORY / "python"), "XDG_CONFIG_HOME": str(tmp_path / "config"), "OMP_NUM_THREADS": "1"}
