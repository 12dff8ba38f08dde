# test_spawn.py: processes from a script: results, errors, deaths, and nothing left.
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "python"))
import tutti  # noqa: E402


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    left = [line for line in pathlib.Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()]
    names = {child: pathlib.Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode() for child in left}
    assert not [name for name in names.values() if "spawn_main" in name], names
    assert not [path for path in os.listdir("/dev/shm") if path.startswith("tutti")]


def place(*words):
    world = tutti.init()
    return (world.rank, world.size, *words)


def fail_on(rank, error):
    world = tutti.init()
    if world.rank == rank:
        raise error
    tutti.barrier(timeout=60)


def die_on(rank):
    world = tutti.init()
    if world.rank == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    tutti.barrier(timeout=60)


def leave_with(status):
    sys.exit(status)


def give_back_something_local():
    class Local(Exception):
        pass

    raise Local("cannot travel")


def wait_for_ever():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(60)


@pytest.mark.parametrize("nprocs", [1, 3])
def test_results_come_by_rank(nprocs):
    results = tutti.spawn(place, nprocs, args=("a", 2.5))
    assert results == [(rank, nprocs, "a", 2.5) for rank in range(nprocs)]


def test_without_init_it_is_a_pool():
    assert tutti.spawn(os.path.join, 2, args=("a", "b")) == ["a/b"] * 2


def test_an_error_is_raised_here_with_its_rank_and_traceback():
    with pytest.raises(ZeroDivisionError, match="on purpose") as error:
        tutti.spawn(fail_on, 3, args=(1, ZeroDivisionError("on purpose")))
    assert any("rank 1 of 3" in note for note in error.value.__notes__)
    assert "in fail_on" in str(error.value.__cause__) and "raise error" in str(error.value.__cause__)


def test_a_tutti_error_keeps_its_fields():
    with pytest.raises(tutti.Mismatch):
        tutti.spawn(fail_on, 2, args=(0, tutti.Mismatch("ranks differ")))


def test_a_killed_rank_is_named():
    with pytest.raises(tutti.PeerLost, match="rank 1 of 2.*SIGKILL") as error:
        tutti.spawn(die_on, 2, args=(1,))
    assert error.value.rank == 1 and "SIGKILL" in error.value.reason and error.value.host


def test_an_exit_status_is_a_failure():
    with pytest.raises(tutti.PeerLost, match="status 3"):
        tutti.spawn(leave_with, 2, args=(3,))
    assert tutti.spawn(leave_with, 2, args=(0,)) == [None, None]


def test_an_error_that_cannot_travel_is_told_in_words():
    with pytest.raises(tutti.Error, match="Local: cannot travel"):
        tutti.spawn(give_back_something_local, 1)


def test_a_timeout_ends_ranks_that_do_not_want_to():
    with pytest.raises(tutti.Timeout, match=r"ranks \[0, 1\] of 2"):
        tutti.spawn(wait_for_ever, 2, timeout=2)


def test_bad_arguments():
    for arguments in [{"nprocs": 0}, {"nprocs": 2, "start_method": "teleport"}]:
        with pytest.raises(tutti.InvalidArgument, match="spawn"):
            tutti.spawn(place, **arguments)


ORPHANS = """
import os, sys, time
import tutti

def work(folder):
    open(f"{folder}/{os.getpid()}", "w").close()
    tutti.init()
    time.sleep(600)

if __name__ == "__main__":
    tutti.spawn(work, 2, args=(sys.argv[1],))
"""


def alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGINT])
def test_ranks_do_not_outlive_the_script(tmp_path, clean_environment, ending):
    program, folder = tmp_path / "main.py", tmp_path / "ranks"
    program.write_text(ORPHANS)
    folder.mkdir()
    script = subprocess.Popen([sys.executable, program, folder], env=clean_environment, stderr=subprocess.PIPE)
    limit = time.monotonic() + 60
    while len(list(folder.iterdir())) < 2:
        assert time.monotonic() < limit and script.poll() is None
        time.sleep(0.05)
    script.send_signal(ending)
    _, said = script.communicate(timeout=30)
    assert script.returncode != 0
    while any(alive(path.name) for path in folder.iterdir()):
        assert time.monotonic() < limit, said
        time.sleep(0.05)


def test_inside_a_launcher(run_ranks, repository):
    program = f"""
import sys
sys.path.insert(0, {str(pathlib.Path(__file__).parent)!r})
import tutti
from test_spawn import place
if __name__ == "__main__":
    assert tutti.init().size == 2
    assert tutti.spawn(place, 2) == [(0, 2), (1, 2)]
    print("done")
"""
    done = run_ranks(2, program)
    assert done.returncode == 0 and done.stdout.count("done") == 2, done.stderr


WITHOUT_CHILD_SIGNALS = """
import os, signal
import tutti

def inherited():
    return tutti.init().rank, signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN

def die():
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    for start_method in ("spawn", "fork"):
        assert tutti.spawn(inherited, 2, start_method=start_method) == [(0, True), (1, True)]
    try:
        tutti.spawn(die, 1)
    except tutti.PeerLost as error:
        print(error.reason)
    pid = os.fork()
    if pid == 0:
        os._exit(3)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        print("SIGCHLD is ignored again")
"""


def test_a_parent_that_ignores_the_end_of_children_is_no_obstacle(tmp_path, clean_environment):
    program = tmp_path / "main.py"
    program.write_text(WITHOUT_CHILD_SIGNALS)
    done = subprocess.run([sys.executable, program], env=clean_environment, capture_output=True, text=True, timeout=60,
                          preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "was killed by signal 9, SIGKILL\nSIGCHLD is ignored again\n"


BEYOND_THE_LIMIT = """
import multiprocessing.popen_fork, os, resource, time  # before this is another user, who may not read the modules
import tutti._process.spawn

if os.getuid() == 0:
    os.setuid(64124)  # the limit does not hold for root, and counts the processes of a user, of whom there are no others

if __name__ == "__main__":
    for limit in (1, 2, 3):
        resource.setrlimit(resource.RLIMIT_NPROC, (limit, 4))
        try:
            tutti._process.spawn.spawn(time.sleep, 2, args=(30,), start_method="fork")  # rank 0 is still there when rank 1 is started
        except tutti.Error as error:
            print(error)
"""


def test_a_limit_on_processes_is_named(tmp_path, clean_environment):
    if os.getuid() != 0:
        pytest.skip("only root can become a user without other processes")
    program = tmp_path / "main.py"
    program.write_text(BEYOND_THE_LIMIT)
    environment = clean_environment | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, program], env=environment, capture_output=True, text=True, timeout=60)
    store, first, second = done.stdout.splitlines()
    assert store.startswith("cannot start a thread to serve the store: Resource temporarily unavailable: the limit on processes")
    assert first.startswith("spawn: rank 0 of 2 could not be started: ") and "`ulimit -u`: 2" in first
    assert second.startswith("spawn: rank 1 of 2 could not be started: ") and "raise it, or start fewer ranks" in second
