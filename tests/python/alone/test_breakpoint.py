# test_breakpoint.py: the debugger on one rank, under launchers, with and without a terminal.
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import socket
import subprocess
import sys
import time

import pytest

import tutti.attach
from tutti._process.terminal import wait_for_visitor

from terminal import DEBUGGED, Terminal


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "main.py"
    path.write_text(DEBUGGED)
    return path


def launchers(tuttirun):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "2", sys.executable]
    return {
        "tuttirun": [tuttirun, "-n", "2", "--timeout", "90s", sys.executable],
        "torchrun": torchrun,
        "mpirun": mpirun,
    }


@pytest.mark.parametrize("launcher, rank", [("tuttirun", 0), ("tuttirun", 1), ("torchrun", 1), ("mpirun", 0)])
def test_with_a_terminal(tuttirun, program, clean_environment, launcher, rank):
    if launcher == "torchrun":
        pytest.importorskip("torch")
    if launcher == "mpirun" and not shutil.which("mpirun"):
        pytest.skip("there is no mpirun")
    terminal = Terminal([*launchers(tuttirun)[launcher], program, rank], clean_environment)
    terminal.debug(rank)
    assert terminal.close() == 0
    assert all(f"rank {other}: total 2001" in terminal.transcript for other in (0, 1))


def test_the_others_wait_longer_than_any_timeout(tuttirun, tmp_path, clean_environment):
    path = tmp_path / "main.py"
    path.write_text(DEBUGGED.replace("timeout=20", "timeout=2"))
    terminal = Terminal([*launchers(tuttirun)["tuttirun"], path, 1], clean_environment)
    terminal.expect(r"\(Pdb\) ")
    time.sleep(5)  # longer than the timeout of every other call
    terminal.type("c")
    assert terminal.close() == 0
    assert all(f"rank {other}: total 2001" in terminal.transcript for other in (0, 1))


def test_quitting_ends_the_job(tuttirun, program, clean_environment):
    terminal = Terminal([*launchers(tuttirun)["tuttirun"], program, 1], clean_environment)
    terminal.expect(r"\(Pdb\) ")
    terminal.type("q")
    terminal.expect("BdbQuit")
    assert terminal.close() not in (0, None)


def test_without_a_terminal_one_attaches(tuttirun, program, clean_environment):
    command = [str(word) for word in [*launchers(tuttirun)["tuttirun"], program, 1]]
    job = subprocess.Popen(
        command,
        env=clean_environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        line = job.stderr.readline()
        name = re.search(r"rank 1 of 2 on .*python\S* -m tutti.attach (\S+)", line).group(1)
        visit = subprocess.run(
            [sys.executable, "-m", "tutti.attach", name],
            env=clean_environment,
            input="p secret\nc\n",
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert visit.returncode == 0 and "1001" in visit.stdout and "(Pdb) " in visit.stdout, visit
        out, err = job.communicate(timeout=60)
        assert job.returncode == 0 and out.count("total 2001") == 2, err
    finally:
        job.kill()
        job.communicate()


def test_attaching_to_nobody(clean_environment):
    done = subprocess.run(
        [sys.executable, "-m", "tutti.attach", "tutti-0"],
        env=clean_environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and "no rank waits" in done.stderr


def test_a_rank_waits_under_a_name_that_nobody_can_take_beforehand():
    names = []

    def announce(name):
        names.append(name)
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            wait_for_visitor(announce)
    assert names[0] != names[1] and all(re.fullmatch(rf"tutti-{os.getpid()}-[0-9a-f]{{16}}", name) for name in names)


def test_somebody_else_who_listens_is_not_talked_to(monkeypatch):
    with socket.socket(socket.AF_UNIX) as listener:
        name = f"tutti-test-{os.getpid()}"
        listener.bind(f"\0{name}")
        listener.listen(1)
        user = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: user + 1)
        with pytest.raises(PermissionError, match=f"user {user} listens there"):
            tutti.attach.attach(name)
        visitor, _ = listener.accept()
        with visitor:
            assert visitor.recv(1) == b"", "nothing was said"


def test_by_hand(program, clean_environment, tmp_path):
    environment = clean_environment | {"WORLD_SIZE": "2"}
    text = DEBUGGED.replace("timeout=20", f"timeout=60, init_method='file://{tmp_path}/meeting'")
    program.write_text(text)
    one = Terminal([sys.executable, program, 1], environment | {"RANK": "1"})
    other = subprocess.Popen(
        [sys.executable, program, "1"], env=environment | {"RANK": "0"}, stdout=subprocess.PIPE, text=True
    )
    one.expect(r"\(Pdb\) ")
    one.type("p secret")
    one.expect("1001")
    one.type("c")
    assert one.close() == 0 and "rank 1: total 2001" in one.transcript
    out, _ = other.communicate(timeout=60)
    assert "rank 0: total 2001" in out and other.returncode == 0


def test_ranks_that_do_not_exist(run_ranks):
    program = (
        "import tutti\ntutti.init()\ntry:\n    tutti.breakpoint(2)\nexcept tutti.InvalidArgument as e:\n    print(e)"
    )
    done = run_ranks(2, program)
    assert done.stdout.count("no rank 2 in a group of 2") == 2, done.stderr
