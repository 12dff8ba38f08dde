# conftest.py: tests that run inside every rank, in step; the fixtures world, rank and size.
# SPDX-License-Identifier: Apache-2.0
"""`tuttirun -n 3 python -m pytest tests/python/test_verbs.py` runs each test on three ranks at once.

After each test the ranks tell each other how it went: what fails on one rank fails on all, and says on which. If the
world is broken after a failure, the run ends there. No call waits longer than CALL_SECONDS unless the test says so, and
a test that takes longer than faulthandler_timeout (pyproject.toml) ends the run with the stacks of all threads.
"""
import faulthandler
import os
import sys

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

from in_step import InStep, OutOfStep

CALL_SECONDS = float(os.environ.get("TUTTI_TEST_TIMEOUT", 45))

# Read when the frameworks are imported. What is tested runs on CPUs; TensorFlow greets in many lines.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

in_step_key = pytest.StashKey[InStep]()
failure_key = pytest.StashKey[str]()
skipped_key = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    rank = int(os.environ.get("RANK", 0))
    if config.option.xmlpath:  # one report per rank
        config.option.xmlpath = config.option.xmlpath.replace("{rank}", str(rank))
    if rank > 0:  # one rank's progress is enough; failures are shown by all
        config.option.verbose = -2
        config.option.no_header = True
    config.stash[in_step_key] = InStep(answer_seconds=30 + float(config.getini("faulthandler_timeout") or 120))


def pytest_report_header(config):
    return f"ranks: {config.stash[in_step_key].size}"


def pytest_collection_modifyitems(config, items):
    """A test that is not for this run is left out, not skipped: what is skipped counts as missing in CI."""
    size, soak = config.stash[in_step_key].size, bool(os.environ.get("TUTTI_SOAK"))
    wanted = [item for item in items if allows_size(item, size) and (soak or not item.get_closest_marker("soak"))]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(wanted)])
    items[:] = wanted


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    if mark := item.get_closest_marker("deadline"):  # instead of faulthandler_timeout, which pytest has just set
        stderr = item.config.stash[fault_handler_stderr_fd_key]
        faulthandler.dump_traceback_later(mark.args[0], file=stderr, exit=True)


def allows_size(item, size):
    mark = item.get_closest_marker("ranks")
    if mark is None:
        return True
    bounds = dict(zip(("at_least", "at_most"), mark.args)) | mark.kwargs
    return bounds.get("at_least", 1) <= size <= bounds.get("at_most", size)


def pytest_collection_finish(session):
    mine = {"tests": [item.nodeid for item in session.items], "errors": session.testsfailed}
    every = exchange_or_exit(session.config, "the collected tests", mine)
    for rank, said in enumerate(every):
        if said["errors"] and not mine["errors"]:
            pytest.exit(f"rank {rank} could not collect all tests", returncode=1)
        different = sorted(set(said["tests"]) ^ set(mine["tests"]))
        if said["tests"] != mine["tests"]:
            pytest.exit(f"rank {rank} has other tests, or in another order: {', '.join(different[:5])}", returncode=1)


def exchange_or_exit(config, place, words, impatient=None):
    try:
        return config.stash[in_step_key].exchange(place, words, impatient)
    except OutOfStep as reason:
        pytest.exit(f"out of step: {reason}", returncode=1)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash.setdefault(failure_key, last_line(report))
    if report.skipped and not hasattr(report, "wasxfail"):
        item.stash[skipped_key] = True
    if report.when == "teardown":
        compare_outcomes(item, report)
    return report


def last_line(report):
    crash = getattr(report.longrepr, "reprcrash", None)
    return (crash.message if crash else report.longreprtext).strip().split("\n")[0]


def compare_outcomes(item, report):
    """Turns this rank's report into a failure if the test failed elsewhere, or was skipped by some only."""
    faulthandler.cancel_dump_traceback_later()  # the ranks that are late show where they are, not the one that waits
    config, failure = item.config, item.stash.get(failure_key, None)
    impatient = (lambda: abort(f"{item.nodeid} failed: {failure}")) if failure else None
    mine = {"failure": failure, "skipped": item.stash.get(skipped_key, False)}
    every = exchange_or_exit(config, item.nodeid, mine, impatient)
    failures = [f"rank {rank}: {said['failure']}" for rank, said in enumerate(every) if said["failure"]]
    if not failures and len({said["skipped"] for said in every}) > 1:
        skippers = [rank for rank, said in enumerate(every) if said["skipped"]]
        failures.append(f"skipped by ranks {skippers} only; all or none have to")
    if not failures:
        return
    if failure is None:
        report.outcome = "failed"
        report.longrepr = "failed elsewhere: " + "; ".join(failures)
    if config.stash[in_step_key].rank == 0:  # at once: a run that is ended from outside has no summary
        config.get_terminal_writer().line(f"\nFAILED {item.nodeid}: {'; '.join(failures)}")
    broken = [reason for reason in exchange_or_exit(config, f"the world after {item.nodeid}", what_is_broken()) if reason]
    if broken:
        item.session.shouldfail = f"the world is broken after {item.nodeid}: {broken[0]}"


def tutti_or_none():
    tutti = sys.modules.get("tutti")
    return tutti if tutti and tutti.is_initialized() else None


def abort(reason):
    """Ends the calls in which other ranks wait for this one, whose test is over."""
    if tutti := tutti_or_none():
        try:
            tutti.world().abort(reason)
        except tutti.Error:
            pass  # it is broken already


def what_is_broken():
    """After a failure, on all ranks at once: the reason why the world can no longer be used, or None."""
    if tutti := tutti_or_none():
        try:
            tutti.barrier(timeout=CALL_SECONDS)
        except Exception as reason:
            return str(reason)
    return None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    tutti = tutti_or_none()
    if tutti and exitstatus == 0:
        tutti.finalize()


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    if in_step := config.stash.get(in_step_key, None):
        sys.stdout.flush()
        in_step.leave(0)


@pytest.fixture(scope="session")
def world():
    """The group of all ranks of this run. No call of it waits for ever."""
    import tutti

    if tutti.is_initialized():
        return tutti.world()
    return tutti.init(timeout=CALL_SECONDS)


@pytest.fixture
def rank(world):
    return world.rank


@pytest.fixture
def size(world):
    return world.size
