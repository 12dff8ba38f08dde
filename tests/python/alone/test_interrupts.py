# test_interrupts.py: a handler that raises leaves a call of a tree, or finalize: what the program gets back, and when.
# SPDX-License-Identifier: Apache-2.0
import pytest

PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import tutti

class Interrupt(Exception):
    pass

def handler(*_):
    raise Interrupt

def is_left(call, after_s=0.1):
    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after_s)
    try:
        call()
    except Interrupt:
        return True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return False

def zeros():
    return {"a": np.zeros(3), "b": np.zeros(2, "float32"), "c": np.zeros(100_000)}

def is_all(tree, value):
    return all((leaf == value).all() for leaf in tree.values())

def fill(tree, value):
    for leaf in tree.values():
        leaf.fill(value)
    return tree

world = tutti.init(timeout=60)
"""

RECEIVED_TREE = PROGRAM + """
if world.rank == 0:
    tree, again = zeros(), zeros()
    assert is_left(lambda: tutti.recv(out=tree, src=1))
    fill(tree, -7)
    tutti.send(np.ones(1), dst=1, tag=5)
    tutti.recv(out=again, src=1)
    assert is_all(again, 4) and is_all(tree, -7), (again, tree)
else:
    tutti.recv(out=np.ones(1), src=0, tag=5)
    tutti.send(fill(zeros(), 4), dst=0)
assert tutti.all_reduce(1) == world.size
"""

REDUCED_TREE = PROGRAM + """
group = world.split(0)
if world.rank == 0:
    tree = zeros()
    assert is_left(lambda: tutti.all_reduce(tree, out=tree, group=group))
    fill(tree, -7)
    tutti.send(np.ones(1), dst=1, tag=5)
else:
    tutti.recv(out=np.ones(1), src=0, tag=5)
    tree = fill(zeros(), -7)
try:
    for _ in range(3):  # a rank may have the result of the call that was left before it hears of that
        tutti.all_reduce(fill(zeros(), 1), group=group)
except tutti.Aborted as error:
    assert "rank 0 was interrupted in" in str(error), error
else:
    raise AssertionError("the group is well")
assert is_all(tree, -7)
assert tutti.all_reduce(1) == world.size
"""

LEFT_FINALIZE = PROGRAM + """
if world.rank == 0:
    tutti.isend(np.ones(1_000_000), dst=1)  # which nobody receives
    begin = time.monotonic()
    assert is_left(tutti.finalize)
    assert time.monotonic() - begin < 30 and not tutti.is_initialized()
    tutti.finalize()  # it has left
else:
    time.sleep(3)  # it is there, and receives nothing
    tutti.finalize()
"""

STOPPED_SENDER = PROGRAM + """
count = 20_000_000
if world.rank == 0:
    process = int(tutti.recv(src=1)[0])
    buffer, again = np.zeros(count), np.zeros(count)
    call = lambda: tutti.recv(out=buffer, src=1, tag=1)
    # Stopped in the middle of its message, as far as that can be arranged from outside; any moment has to do.
    threading.Timer(0.05, lambda: os.kill(process, signal.SIGSTOP)).start()
    begin = time.monotonic()
    was_left = is_left(call, 0.4)
    assert time.monotonic() - begin < 10
    os.kill(process, signal.SIGCONT)
    if was_left:
        buffer.fill(-7)
        tutti.recv(out=again, src=1, tag=1)
        assert (again == 6).all() and (buffer == -7).all()
    else:
        assert (buffer == 6).all()
else:
    tutti.send(np.full(1, float(os.getpid())), dst=0)
    tutti.send(np.full(count, 6.0), dst=0, tag=1)
assert tutti.all_reduce(1) == world.size
"""


@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize(
    "program", [RECEIVED_TREE, REDUCED_TREE, LEFT_FINALIZE, STOPPED_SENDER], ids=["recv", "all_reduce", "finalize", "stopped_sender"]
)
def test_a_call_that_a_handler_leaves_gives_back_at_once_what_is_the_callers(run_ranks, program, backend):
    done = run_ranks(2, program, timeout=100, env={"TUTTI_BACKEND": backend})
    assert done.returncode == 0, done.stdout + done.stderr
