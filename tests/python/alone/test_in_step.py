# test_in_step.py: a failure on one rank is a failure of the run, on every rank, and is named.
# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture
def run_tests(tuttirun, repository, tmp_path):
    """Runs the text of a test file on some ranks, with the conftest.py of this folder's parent."""

    def run(ranks, text, *options):
        shutil.copy(repository / "tests/python/conftest.py", tmp_path)
        (tmp_path / "test_sample.py").write_text("import os, pytest\nrank = int(os.environ['RANK'])\n" + text)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (repository / "python", repository / "tests/python")))}
        command = [tuttirun, "-n", ranks, "--timeout", "100s", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                   "-c", repository / "pyproject.toml", "--rootdir", tmp_path, f"--junitxml={tmp_path}/{{rank}}.xml", *options, tmp_path]
        return subprocess.run([str(word) for word in command], cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=130)

    return run


def reports(folder):
    return [path.read_text() for path in sorted(folder.glob("*.xml"))]


def test_tests_that_pass_everywhere_pass(run_tests, tmp_path):
    run = run_tests(3, "def test_fine(): pass\n@pytest.mark.skip(reason='not here')\ndef test_skipped(): assert False\n")
    assert run.returncode == 0, run.stdout + run.stderr
    assert len(reports(tmp_path)) == 3
    assert all('tests="2"' in report and 'skipped="1"' in report for report in reports(tmp_path))


def test_a_failure_on_one_rank_fails_all_and_the_next_test_runs(run_tests, tmp_path):
    run = run_tests(3, "def test_fails(): assert rank != 1, 'one fell over'\ndef test_next(): print('next')\n", "-s")
    assert run.returncode == 1
    assert "[0] failed elsewhere: rank 1: AssertionError: one fell over" in run.stdout
    assert run.stdout.count("next") >= 3, run.stdout
    assert all("rank 1: AssertionError" in report or "one fell over" in report for report in reports(tmp_path))


def test_tests_for_other_sizes_and_long_ones_are_left_out(run_tests, tmp_path):
    marks = ("ranks(3)", "ranks(at_most=1)", "ranks(2)", "ranks(1, 2)", "soak")
    text = "".join(f"@pytest.mark.{mark}\ndef test_{place}(): pass\n" for place, mark in enumerate(marks))
    run = run_tests(2, text)
    assert run.returncode == 0, run.stdout + run.stderr
    assert all('tests="2"' in report and "test_2" in report and "test_3" in report for report in reports(tmp_path))


def test_skipping_on_some_ranks_only_is_a_failure(run_tests):
    run = run_tests(2, "def test_half():\n    if rank == 1: pytest.skip('I would rather not')\n")
    assert run.returncode == 1
    assert "skipped by ranks [1] only" in run.stdout


def test_ranks_that_collect_different_tests_do_not_start(run_tests):
    run = run_tests(2, "def test_both(): print('started')\nif rank == 1:\n    def test_more(): pass\n", "-s")
    assert run.returncode == 1
    assert "has other tests" in run.stdout and "test_more" in run.stdout
    assert "started" not in run.stdout


def test_a_rank_that_cannot_collect_stops_all(run_tests):
    run = run_tests(2, "if rank == 1: raise RuntimeError('not this one')\ndef test_both(): print('started')\n", "-s")
    assert run.returncode == 1
    assert "rank 1 could not collect all tests" in run.stdout
    assert "started" not in run.stdout


def test_a_rank_that_dies_ends_the_run(run_tests):
    run = run_tests(2, "def test_dies():\n    if rank == 1: os._exit(7)\n")
    assert run.returncode == 7
    assert "rank 1 of 2" in run.stderr


def test_a_test_past_its_deadline_shows_where_it_is(run_tests):
    text = "import threading\ndef test_waits():\n    if rank == 1: threading.Event().wait()\n"
    run = run_tests(2, text, "-o", "faulthandler_timeout=2", "-o", "faulthandler_exit_on_timeout=true")
    assert run.returncode == 1
    assert "test_waits" in run.stderr and "most recent call first" in run.stderr


def test_a_rank_that_fails_does_not_leave_the_others_waiting_and_the_run_ends(run_tests):
    text = """
import numpy as np, tutti
def test_half_of_them_calls(world):
    assert rank != 1, "not this rank"
    tutti.all_reduce(np.ones(3))
def test_next(world): print("started")
"""
    run = run_tests(2, text, "-s")
    assert run.returncode == 1
    assert "failed: AssertionError: not this rank" in run.stdout, "what the waiting rank is told"
    assert "the world is broken after" in run.stdout
    assert "started" not in run.stdout
