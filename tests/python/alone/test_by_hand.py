# test_by_hand.py: ranks started in two shells, by environment, address and file.
# SPDX-License-Identifier: Apache-2.0
import socket
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys
import tutti

print("starting", os.environ["RANK"], flush=True)
world = tutti.init(**eval(sys.argv[1]))
print("finished", world.rank, "of", world.size, tutti.all_reduce(10 ** world.rank), flush=True)
"""


@pytest.fixture
def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(environment, rank, options):
    environment = environment | {"RANK": str(rank), "WORLD_SIZE": "2"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, repr(options)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("method", ["environment", "env://", "tcp", "file"])
@pytest.mark.parametrize("first", [0, 1])
def test_two_shells(clean_environment, free_port, tmp_path, method, first):
    environment, options = clean_environment, {"timeout": 60}
    if method == "tcp":
        options["init_method"] = f"tcp://127.0.0.1:{free_port}"
    elif method == "file":
        options["init_method"] = f"file://{tmp_path}/meeting"
    else:
        environment = environment | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port)}
        if method == "env://":
            options["init_method"] = method
    one = start(environment, first, options)
    assert one.stdout.readline() == f"starting {first}\n"  # it waits for the other one
    other = start(environment, 1 - first, options)
    for process, rank in [(one, first), (other, 1 - first)]:
        out, err = process.communicate(timeout=90)
        assert process.returncode == 0, err
        assert f"finished {rank} of 2 11\n" in out


def test_alone_without_any_launcher(clean_environment):
    program = "import tutti; w = tutti.init(); print(w.size, tutti.all_reduce([1, 2.5]), tutti.context().host != '')"
    done = subprocess.run(
        [sys.executable, "-c", program], env=clean_environment, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "1 [1, 2.5] True\n", done.stderr


def test_half_of_what_is_needed_is_named(clean_environment):
    program = "import tutti; tutti.init()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean_environment | {"RANK": "0"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0 and "WORLD_SIZE" in done.stderr and "InvalidArgument" in done.stderr
