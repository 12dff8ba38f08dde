# test_signals.py: Ctrl-C, forks, lost ranks, and use outside of a job.
# SPDX-License-Identifier: Apache-2.0
import re
import signal
import subprocess
import sys
import time

import pytest

WAITING = """
import sys
import numpy as np
import tutti

world = tutti.init(timeout=300)
calls = {
    "all_reduce": lambda: tutti.all_reduce(np.ones(3)),
    "large": lambda: tutti.all_reduce(np.ones(1 << 20)),
    "recv": lambda: tutti.recv(src=1),
    "wait": lambda: tutti.barrier(async_op=True).wait(),
    "tree": lambda: tutti.all_reduce({"a": np.ones(3), "b": np.ones(2, "float32")}),
    "split": lambda: world.split(0),
}
if world.rank == 0:
    print("waiting", flush=True)
    try:
        calls[sys.argv[1]]()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        world.abort("interrupted")
else:
    try:
        tutti.recv(src=0, tag=99)  # never comes
    except tutti.Aborted as error:
        print("aborted:", error, flush=True)
"""


def rank_processes(launcher):
    """The processes whose RANK is 0, below a tuttirun."""
    listing = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout.split()[2:]
    parents = {int(child): int(parent) for child, parent in zip(listing[::2], listing[1::2], strict=True)}
    below = {launcher}
    for _ in range(4):
        below |= {child for child, parent in parents.items() if parent in below}
    found = []
    for process in below - {launcher}:
        try:
            variables = open(f"/proc/{process}/environ").read().split("\0")
        except OSError:
            continue
        if "RANK=0" in variables and "LOCAL_RANK=0" in variables:
            found.append(process)
    return found


@pytest.mark.parametrize("call", ["all_reduce", "large", "recv", "wait", "tree", "split"])
def test_ctrl_c_interrupts_a_blocked_call(tuttirun, tmp_path, clean_environment, call):
    program = tmp_path / "main.py"
    program.write_text(WAITING)
    command = [str(tuttirun), "-n", "2", "--no-prefix", "--timeout", "60s", sys.executable, str(program), call]
    job = subprocess.Popen(command, env=clean_environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert job.stdout.readline() == "waiting\n"
        time.sleep(0.3)  # it may interrupt the call before it waits: that has to work as well
        (rank,) = rank_processes(job.pid)
        signalled = time.monotonic()
        subprocess.run(["kill", "-INT", str(rank)], check=True)
        assert job.stdout.readline() == "interrupted\n"
        assert time.monotonic() - signalled < 10  # a twentieth of a second where the machine is idle
        # Not communicate(), which does not see what readline() has read ahead. --timeout ends it.
        out, err = job.stdout.read(), job.stderr.read()
        assert "aborted:" in out and "interrupted" in out, out + err
    finally:
        job.kill()
        job.communicate()


def test_ctrl_c_while_others_are_late(clean_environment):
    program = "import tutti; print('joining', flush=True); tutti.init()"
    environment = clean_environment | {
        "RANK": "1",
        "WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29555",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "joining\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert "KeyboardInterrupt" in err and process.returncode != 0


FORKED = """
import os, sys
import numpy as np
import tutti

world = tutti.init()
child = os.fork()
if child == 0:
    try:
        tutti.all_reduce(np.ones(1), timeout=5)
    except tutti.InvalidArgument as error:
        print("child:", error, flush=True)
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert tutti.all_reduce(1) == world.size
print("parent goes on", flush=True)
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_forked_child_is_told_and_the_parent_goes_on(run_ranks, ranks):
    done = run_ranks(ranks, FORKED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("fork") >= ranks and done.stdout.count("parent goes on") == ranks


LOST = """
import os, signal
import numpy as np
import tutti

world = tutti.init()
if world.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    while True:
        tutti.all_reduce(np.ones(3))
except tutti.PeerLost as error:
    print("lost", error.rank, bool(error.host), bool(error.reason), flush=True)
"""


def test_a_lost_rank_is_an_exception_with_fields(clean_environment, tmp_path):
    program = tmp_path / "main.py"
    program.write_text(LOST)
    # by hand: a launcher would end the others at once
    environment = clean_environment | {"WORLD_SIZE": "3"}
    method = f"file://{tmp_path}/meeting"
    text = LOST.replace("tutti.init()", f"tutti.init(init_method={method!r}, timeout=60)")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", text],
            env=environment | {"RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(3)
    ]
    outputs = [process.communicate(timeout=90) for process in ranks]
    for rank in (0, 2):
        assert "lost 1 True True" in outputs[rank][0], outputs[rank]


@pytest.mark.parametrize(
    "program, text",
    [
        ("tutti.all_reduce(np.ones(1))", "tutti.init"),
        ("tutti.context()", "tutti.init"),
        ("tutti.world()", "tutti.init"),
        ("tutti.Group([0])", "tutti.init"),
        ("tutti.all_reduce({'a': [1.0]})", "tutti.init"),
        ("tutti.pmap(np.sqrt)(np.ones(3))", "tutti.init"),
        ("tutti.init(); tutti.finalize(); tutti.all_reduce(np.ones(1))", "tutti.init|finalize"),
        ("w = tutti.init(); tutti.finalize(); w.all_reduce(np.ones(1))", "finalize|left"),
    ],
)
def test_use_before_init_and_after_finalize(clean_environment, program, text):
    program = f"import numpy as np, tutti\ntry:\n    {program}\nexcept tutti.InvalidArgument as e:\n    print(e)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_environment, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert re.search(text, done.stdout), done.stdout


def test_a_program_that_forgets_finalize_ends_well(run_ranks):
    done = run_ranks(
        3,
        "import tutti, numpy as np\ntutti.init()\ntutti.all_reduce(np.ones(3), async_op=True)\n"
        "tutti.all_reduce(np.ones(3))",
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
