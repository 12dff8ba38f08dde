# test_sandbox.py: system calls that a container's profile refuses are done without, or named.
# SPDX-License-Identifier: Apache-2.0
import platform
import subprocess
import sys
import time

import pytest

NUMBERS = {
    "x86_64": {"memfd_create": 319, "clone3": 435, "eventfd2": 290, "signalfd4": 289},
    "aarch64": {"memfd_create": 279, "clone3": 435, "eventfd2": 19, "signalfd4": 74},
}
PERMISSION, NO_SUCH_CALL = 1, 38

# Refuses one system call, by its number and with the errno it is given, to this process and all it starts; then becomes a program.
SANDBOX = """
import ctypes, os, struct, sys

number, error = int(sys.argv[1]), int(sys.argv[2])
load, equal, give = 0x20, 0x15, 0x06
filters = [(load, 0, 0, 0), (equal, 0, 1, number), (give, 0, 0, 0x00050000 | error), (give, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in filters))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(filters), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
for option in ((38, 1, 0, 0, 0), (22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0)):
    if libc.prctl(*option) != 0:
        sys.exit(f"prctl: {os.strerror(ctypes.get_errno())}")
os.execv(sys.argv[3], sys.argv[3:])
"""

SUM = """
import sys
import numpy as np
import tutti

world = tutti.init(sys.argv[1], timeout=30)
print("sum", tutti.all_reduce(np.full(3, world.rank + 1.0)).tolist())
"""


@pytest.fixture
def run_refused(tmp_path, tuttirun, clean_environment):
    """run_refused(call, error, backend): two ranks of SUM where the system call fails with that error."""
    numbers = NUMBERS.get(platform.machine())
    if numbers is None:
        pytest.skip(f"the numbers of system calls on {platform.machine()} are not known here")

    def run(call, error, backend="auto"):
        for name, text in (("sandbox.py", SANDBOX), ("sum.py", SUM)):
            (tmp_path / name).write_text(text)
        command = [sys.executable, tmp_path / "sandbox.py", numbers[call], error, tuttirun, "-n", 2, "--timeout", "60s", sys.executable,
                   tmp_path / "sum.py", backend]
        return subprocess.run(list(map(str, command)), env=clean_environment, capture_output=True, text=True, timeout=90)

    return run


def test_without_memfd_ranks_go_over_tcp_and_say_why(run_refused):
    done = run_refused("memfd_create", PERMISSION)
    assert done.returncode == 0 and done.stdout.count("sum [3.0, 3.0, 3.0]") == 2, done.stderr
    assert done.stderr.count("do not share memory") == 1 and "memfd_create failed: Operation not permitted" in done.stderr
    assert "seccomp profile" in done.stderr


def test_without_memfd_the_backend_shm_is_refused_by_name(run_refused):
    done = run_refused("memfd_create", PERMISSION, "shm")
    assert done.returncode != 0 and "backend shm: memory cannot be shared" in done.stderr
    assert "memfd_create failed: Operation not permitted" in done.stderr and "seccomp profile" in done.stderr


def test_a_refused_clone3_is_named_and_an_unknown_one_done_without(run_refused):
    refused = run_refused("clone3", PERMISSION)
    assert refused.returncode != 0
    assert "tuttirun: cannot start a thread to serve the store: Operation not permitted: a sandbox refuses clone" in refused.stderr
    assert "seccomp profile" in refused.stderr
    unknown = run_refused("clone3", NO_SUCH_CALL)
    assert unknown.returncode == 0 and unknown.stdout.count("sum [3.0, 3.0, 3.0]") == 2, unknown.stderr


@pytest.mark.parametrize("error", [PERMISSION, NO_SUCH_CALL])
@pytest.mark.parametrize("call", ["eventfd2", "signalfd4"])
def test_a_descriptor_that_is_refused_is_named_at_once(run_refused, call, error):
    began = time.monotonic()
    refused = run_refused(call, error)
    assert refused.returncode == 1 and time.monotonic() - began < 30, refused.stderr
    what = {"eventfd2": "an eventfd", "signalfd4": "a descriptor for signals"}[call]
    assert f"tuttirun: cannot make {what}: " in refused.stderr and "seccomp profile" in refused.stderr
