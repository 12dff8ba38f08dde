# test_interrupts.py: a handler that raises leaves a call: what the program gets back, when, and what the others hear.
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

# The signal is pending when the message comes, so that the receive ends before its handler has run.
RECEIVED_MEANWHILE = PROGRAM + """
signal.signal(signal.SIGALRM, handler)
for step, count in enumerate([0, 1, 7, 100_001] * 3):
    if world.rank == 0:
        def interrupt():
            time.sleep(0.02)  # it waits by then, as a rule; any moment has to do
            signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
            tutti.send(np.ones(1), dst=1, tag=5)
        thread = threading.Thread(target=interrupt)
        buffer, again = np.zeros(count), np.zeros(count)
        try:
            thread.start()
            tutti.recv(out=buffer, src=1)
            while True:  # the handler has not run yet
                time.sleep(0.001)
        except Interrupt:
            thread.join()
        buffer.fill(-7)
        tutti.recv(out=again, src=1)
        assert (again == step).all() and (buffer == -7).all(), (step, count)
    else:
        tutti.recv(out=np.ones(1), src=0, tag=5)
        tutti.send(np.full(count, float(step)), dst=0)
assert tutti.all_reduce(1) == world.size
"""

# The others may have seen this rank: it comes back to the same meeting, and nobody notices.
LEFT_INIT = PROGRAM.replace("world = tutti.init(timeout=60)", """
rank = int(os.environ["RANK"])
if rank == 0:
    for _ in range(2):
        begin = time.monotonic()
        assert is_left(lambda: tutti.init(timeout=60))
        assert time.monotonic() - begin < 10 and not tutti.is_initialized()
    child = os.fork()  # it would take its parent's place
    if child == 0:
        try:
            tutti.init(timeout=5)
        except tutti.InvalidArgument as error:
            os._exit(0 if "fork" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    try:
        tutti.init("shm", timeout=60)
    except tutti.InvalidArgument as error:
        assert "interrupted" in str(error), error
    else:
        raise AssertionError("another meeting")
    try:
        tutti.init(timeout=0.5)
    except tutti.RendezvousError as error:
        assert "interrupted" in str(error), error
    else:
        raise AssertionError("the others are not here")
    open(sys.argv[1], "w").close()
else:
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
world = tutti.init(timeout=60)
assert tutti.all_reduce(1) == world.size
""")

MAKING = """
def has_left(name, left):
    if world.rank == 0:
        assert is_left(left)
        tutti.send(np.ones(1), dst=1, tag=5, group=world)
    else:
        tutti.recv(out=np.ones(1), src=0, tag=5, group=world)

def refused(call, text):
    try:
        call()
    except tutti.Aborted as error:
        assert text in str(error), error
    else:
        raise AssertionError("nobody was interrupted")
"""

# The first thing that ranks do in a split is a collective on the group that is split.
LEFT_SPLIT = PROGRAM + MAKING + """
parent = world.split(0)
has_left("split", lambda: parent.split(0))
refused(lambda: [parent.split(0) for _ in range(3)], "rank 0 was interrupted in")
assert tutti.all_reduce(1) == world.size
"""

LEFT_SUBGROUP = PROGRAM + MAKING + """
for ranks in ([0, 1], [1, 0]):
    has_left("subgroup", lambda: world.subgroup(ranks))
    if world.rank == 1:
        refused(lambda: world.subgroup(ranks), "rank 0 was interrupted while it made the group")
    assert world.subgroup(ranks).all_reduce(1) == world.size  # the next one is made
assert tutti.all_reduce(1) == world.size
"""

LEFT_SHRINK = PROGRAM + MAKING + """
parent = world.split(0)
parent.abort("to shrink it")
has_left("shrink", lambda: parent.shrink())
if world.rank == 1:
    refused(lambda: parent.shrink(), "rank 0 was interrupted while it made the group")
assert parent.shrink().all_reduce(1) == world.size
assert tutti.all_reduce(1) == world.size
"""

LEFT_STORE = PROGRAM + MAKING + """
has_left("store", lambda: tutti.store().get("nobody sets it"))
has_left("probe", lambda: tutti.probe(1, tag=3))
has_left("wait_all", lambda: tutti.wait_all([tutti.irecv(out=np.ones(1), src=1, tag=9)]))
half = tutti.prepare("all_reduce", np.ones(3))
if world.rank == 0:
    half.start()
has_left("prepared", half.wait)  # only the waiting ends
if world.rank == 1:
    half.start()
assert (half.wait() == world.size).all()
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
    stop = threading.Timer(0.05, lambda: os.kill(process, signal.SIGSTOP))
    stop.start()
    begin = time.monotonic()
    was_left = is_left(call, 0.4)
    assert time.monotonic() - begin < 10
    stop.join()  # it is stopped before it goes on, however busy the machine is
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

TORCH = PROGRAM.replace("world = tutti.init(timeout=60)", """
import datetime
import torch
import torch.distributed as dist
import tutti.torch

dist.init_process_group("tutti", timeout=datetime.timedelta(seconds=60))
rank = dist.get_rank()
ready = torch.ones(1)

def meet(tag):
    dist.send(ready, 1, tag=tag) if rank == 0 else dist.recv(ready, 0, tag=tag)
""")

TORCH_RECEIVED = TORCH + """
if rank == 0:
    buffer, again = torch.zeros(100_000), torch.zeros(100_000)
    assert is_left(lambda: dist.recv(buffer, 1))
    buffer.fill_(-7)
    meet(5)
    dist.recv(again, 1)
    assert (again == 4).all() and (buffer == -7).all()
    work = dist.irecv(buffer, 1, tag=6)  # the program has this work, and may wait again
    assert is_left(work.wait)
    meet(7)
    work.wait()
    assert (buffer == 5).all()
else:
    meet(5)
    dist.send(torch.full((100_000,), 4.0), 0)
    meet(7)
    dist.send(torch.full((100_000,), 5.0), 0, tag=6)
total = torch.ones(3)
dist.all_reduce(total)
assert (total == 2).all()
"""

TORCH_REDUCED = TORCH + """
groups = [dist.new_group([0, 1]) for _ in range(3)]
strided, halves = torch.zeros(100_000).reshape(2, -1).t(), torch.zeros(7, dtype=torch.int64)
sleeper = threading.Thread(target=time.sleep, args=(600,), daemon=True)

def left(group):  # in one go; through memory of the library's; beside another thread
    if group is groups[0]:
        return lambda: dist.all_reduce(halves, group=group)
    if group is groups[1]:
        return lambda: dist.all_reduce(strided, group=group)
    return lambda: dist.all_reduce(halves, op=dist.ReduceOp.AVG, group=group)

for tag, group in enumerate(groups, 1):
    if group is groups[2]:
        sleeper.start()
    if rank == 0:
        assert is_left(left(group))
    strided.fill_(-7), halves.fill_(-7)
    meet(tag)
    try:
        for _ in range(3):
            dist.all_reduce(torch.ones(3) if group is not groups[1] else torch.ones(100_000), group=group)
    except tutti.Aborted as error:
        assert "rank 0 was interrupted in" in str(error), error
    else:
        raise AssertionError("the group is well")
    assert (strided == -7).all() and (halves == -7).all()
total = torch.ones(3)
dist.all_reduce(total)
assert (total == 2).all()
"""


IN_A_PROFILER = PROGRAM + """
from tutti import _native

def begin(name):
    if name == "all_reduce":
        raise Interrupt
    return name

def end(name):
    if name == "broadcast":
        raise KeyboardInterrupt

_native.watch_ranges(begin, end, always=True)
try:
    tutti.all_reduce(1)
    sys.exit("what the handler raised before the call was lost")
except Interrupt:
    pass
try:
    tutti.broadcast(np.ones(2))
    time.sleep(20)
    sys.exit("an interrupt behind the call was lost")
except KeyboardInterrupt:
    pass
assert tutti.all_gather(world.rank).tolist() == [0, 1]
"""

@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize("program", [TORCH_RECEIVED, TORCH_REDUCED], ids=["recv", "all_reduce"])
def test_torch_distributed_gives_back_what_a_handler_leaves(run_ranks, program, backend):
    pytest.importorskip("torch")
    done = run_ranks(2, program, timeout=100, env={"TUTTI_BACKEND": backend, "OMP_NUM_THREADS": "1"})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize(
    "program",
    [RECEIVED_TREE, RECEIVED_MEANWHILE, REDUCED_TREE, LEFT_FINALIZE, STOPPED_SENDER],
    ids=["recv", "recv_that_ends", "all_reduce", "finalize", "stopped_sender"],
)
def test_a_call_that_a_handler_leaves_gives_back_at_once_what_is_the_callers(run_ranks, program, backend):
    done = run_ranks(2, program, timeout=100, env={"TUTTI_BACKEND": backend})
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("backend", ["auto", "native"])
@pytest.mark.parametrize(
    "program",
    [LEFT_INIT, LEFT_SPLIT, LEFT_SUBGROUP, LEFT_SHRINK, LEFT_STORE],
    ids=["init", "split", "subgroup", "shrink", "store_and_probe"],
)
def test_what_makes_groups_and_waits_for_news_is_left_alike(run_ranks, tmp_path, program, backend):
    done = run_ranks(2, program, tmp_path / "ready", timeout=100, env={"TUTTI_BACKEND": backend})
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_interrupt_in_a_profilers_function_is_not_lost(run_ranks):
    done = run_ranks(2, IN_A_PROFILER, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
