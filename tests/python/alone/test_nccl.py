# test_nccl.py: the backend nccl without a GPU: a library that plays the driver and NCCL, on the CPU's memory (tests/support/fake_gpu.hpp).
# SPDX-License-Identifier: Apache-2.0
import pytest

# Arrays of NumPy that say they lie on a GPU.
ARRAYS = """
import os, sys, time
import numpy as np
import tutti


class OnGpu:
    def __init__(self, array):
        self.array = np.ascontiguousarray(array)

    @property
    def __cuda_array_interface__(self):
        pointer = self.array.ctypes.data
        return {"shape": self.array.shape, "typestr": self.array.dtype.str, "data": (pointer, False), "version": 3}

    def __getattr__(self, name):
        return getattr(self.array, name)


def call(verb, x, shape=None, **options):
    "The verb on `x` as an array of a GPU, and on the same array of the CPU."
    out = OnGpu(np.zeros(x.shape if shape is None else shape, x.dtype))
    verb(OnGpu(x), out=out, **options)
    return out.array


world = tutti.init(timeout=30)
rank, size = world.rank, world.size
"""


EVERYTHING = ARRAYS + """
random = np.random.default_rng(rank)
for dtype in (np.float32, np.float64, np.int32, np.uint8, np.complex64, np.int16):
    for op in ("sum", "min", "mean", tutti.premul(0.5)):
        if np.issubdtype(dtype, np.integer) and op not in ("sum", "min") or dtype is np.complex64 and op == "min":
            continue
        for count in (0, 1, 7, 5000):
            x = random.integers(0, 50, count * size).astype(dtype)
            np.testing.assert_array_equal(call(tutti.all_reduce, x, op=op), tutti.all_reduce(x, op=op))
            expected = tutti.reduce(x, root=size - 1, op=op)
            got = call(tutti.reduce, x, root=size - 1, op=op)
            assert rank != size - 1 or np.array_equal(got, expected)
            np.testing.assert_array_equal(call(tutti.reduce_scatter, x, (count,), op=op), tutti.reduce_scatter(x, op=op))
    for count in (0, 3, 5000):
        x = random.integers(0, 50, (count * size, 2)).astype(dtype)
        np.testing.assert_array_equal(call(tutti.broadcast, x, root=1), tutti.broadcast(x, root=1))
        np.testing.assert_array_equal(call(tutti.all_gather, x, (count * size * size, 2)), tutti.all_gather(x))
        np.testing.assert_array_equal(call(tutti.all_to_all, x), tutti.all_to_all(x))
        pairs = [(0, 1)]
        np.testing.assert_array_equal(call(tutti.permute, x, pairs=pairs), tutti.permute(x, pairs))
        np.testing.assert_array_equal(call(tutti.scan, x), tutti.scan(x))
x = OnGpu(np.full(1000, rank + 1.0))
tutti.all_reduce(x, out=x)
assert (x.array == size * (size + 1) / 2).all()
part = tutti.Group([rank for rank in range(size) if rank != 0]) if rank else tutti.Group(range(1, size))
if rank:
    assert call(tutti.all_reduce, np.ones(5), group=part)[0] == size - 1
works = [(x := OnGpu(np.full(100, float(i))), tutti.all_reduce(x, out=x, async_op=True)) for i in range(8)]
for i, (x, work) in enumerate(works):
    work.wait()
    assert x.array[0] == i * size
print("all well")
"""


@pytest.mark.parametrize("backend", ["auto", "nccl"])
def test_every_verb_has_the_result_of_the_cpu(run_ranks, fake_gpu, backend):
    done = run_ranks(3, EVERYTHING, options=["-B", backend], env=fake_gpu)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert done.stdout.count("all well") == 3
    ways = [line for line in done.stderr.splitlines() if "goes by backend nccl" in line]
    assert ways, "no call went by NCCL"
    assert any("scan" in line and "not nccl: NCCL has no prefix" in line for line in done.stderr.splitlines())


SHARED = ARRAYS + """
for _ in range(3):
    assert call(tutti.all_reduce, np.ones(10))[0] == size
asking = tutti.Group(range(size), backend="nccl")
try:
    call(tutti.all_reduce, np.ones(10), group=asking)
    sys.exit("ranks that share a GPU used NCCL")
except tutti.Error as error:
    assert "ranks 0 and 1 share a GPU" in str(error), error
print("refused")
"""


def test_ranks_that_share_a_gpu_go_by_the_backend_cuda_and_are_told_where_they_ask(run_ranks, fake_gpu):
    done = run_ranks(2, SHARED, env={**fake_gpu, "TUTTI_TEST_GPU": "the only one"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert done.stdout.count("refused") == 2


def test_a_job_without_nccl_goes_by_the_backend_cuda(run_ranks, fake_gpu):
    done = run_ranks(2, ARRAYS + "assert call(tutti.all_reduce, np.ones(10))[0] == size", env={**fake_gpu, "TUTTI_NCCL_LIBRARY": "none"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]


LATE = ARRAYS + """
part = tutti.Group(range(size))
x = np.ones(100000)
assert call(tutti.all_reduce, x, group=part)[0] == size
assert call(tutti.all_reduce, x)[0] == size
if rank == 0:
    try:
        call(tutti.all_reduce, x, group=part, timeout=0.5)
        sys.exit("a call that nobody else made came to its end")
    except tutti.Timeout:
        pass
else:
    time.sleep(2)
assert call(tutti.all_reduce, x)[0] == size
print("went on")
"""


def test_a_call_that_a_rank_does_not_make_ends_at_its_deadline(run_ranks, fake_gpu):
    done = run_ranks(2, LATE, env=fake_gpu)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert done.stdout.count("went on") == 2


DIFFERENT = ARRAYS + """
part = tutti.Group(range(size))
x = np.ones(100)
try:
    call(tutti.all_reduce, x[: 50 + rank], group=part)
    sys.exit("arrays of different lengths: no error")
except tutti.Mismatch:
    pass
assert call(tutti.all_reduce, x)[0] == size
alone = tutti.Group([rank])
assert (call(tutti.all_reduce, x, group=alone) == x).all()
assert (call(tutti.all_to_all, x, group=alone) == x).all()
print("named")
"""


def test_calls_that_differ_never_reach_nccl(run_ranks, fake_gpu):
    done = run_ranks(2, DIFFERENT, env=fake_gpu, options=["-B", "nccl"])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert done.stdout.count("named") == 2


KILLED = ARRAYS + """
import signal, threading
x = np.ones(4_000_000)
assert call(tutti.all_reduce, x)[0] == size
if rank == 1:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGKILL)).start()
limit = time.monotonic() + 20
try:
    while time.monotonic() < limit:
        call(tutti.all_reduce, x)
except tutti.PeerLost as error:
    assert error.rank == 1, error
    open(sys.argv[1] + str(rank), "w").close()
"""


def test_the_others_hear_of_a_rank_that_is_killed_in_the_middle_of_a_call(run_ranks, fake_gpu, tmp_path):
    run_ranks(3, KILLED, tmp_path / "heard", env=fake_gpu, options=["--keep-going"])
    assert sorted(path.name for path in tmp_path.glob("heard*")) == ["heard0", "heard2"]


DYING = ARRAYS + """
import subprocess
x = np.ones(500_000)
assert call(tutti.all_reduce, x)[0] == size
if rank == 1:
    # It stops in a call soon: the others see its sockets closed before they, or anyone, can know that it is gone.
    subprocess.Popen(["sh", "-c", f"sleep {sys.argv[2]}; kill -KILL {os.getpid()}"])
begin = time.monotonic()
try:
    while time.monotonic() < begin + 30:
        call(tutti.all_reduce, x, timeout=float(sys.argv[3]))
except tutti.Error as error:
    lost = getattr(error, "rank", None)
    open(sys.argv[1] + str(rank), "w").write(f"{type(error).__name__} {lost}\\n{error}")
"""


def heard(folder):
    return {path.name: path.read_text().split("\n", 1) for path in folder.glob("heard*")}


def test_a_network_error_that_comes_before_the_loss_is_known_is_not_the_cause(run_ranks, fake_gpu, tmp_path):
    run_ranks(3, DYING, tmp_path / "heard", 1.5, 20, env={**fake_gpu, "TUTTI_TEST_NCCL_STOPS": "3"}, options=["--keep-going"])
    errors = heard(tmp_path)
    assert {name: error for name, (error, _) in errors.items()} == {"heard0": "PeerLost 1", "heard2": "PeerLost 1"}, errors


def test_a_network_error_of_which_no_cause_is_found_is_the_text_of_the_deadline(run_ranks, fake_gpu, tmp_path):
    run_ranks(3, DYING, tmp_path / "heard", 5, 1.5, env={**fake_gpu, "TUTTI_TEST_NCCL_STOPS": "3"}, options=["--keep-going"])
    errors = heard(tmp_path)
    assert sorted(errors) == ["heard0", "heard2"], errors
    for error, text in errors.values():
        assert error == "Timeout None", text
        assert "Connection closed by remote peer; the backend cuda" in text, text
        assert "rank 1 did not answer" in text, text


FAILING = ARRAYS + """
x = np.ones(1000)
for _ in range(2):
    assert call(tutti.all_reduce, x)[0] == size
begin = time.monotonic()
try:
    call(tutti.all_reduce, x)
    sys.exit("a call that NCCL gave up came to its end")
except tutti.Aborted as error:
    assert time.monotonic() - begin < 10
    print(f"told: {error}")
"""


def test_nccl_fails_although_everybody_lives(run_ranks, fake_gpu):
    done = run_ranks(3, FAILING, env={**fake_gpu, "TUTTI_TEST_NCCL_FAILS": "3"})
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    told = [line for line in done.stdout.splitlines() if "told: " in line]
    assert len(told) == 3
    for line in told:
        assert "failed on rank 0: NCCL: a call that is under way: remote process exited" in line, line
        text = line.partition(" (called at")[0]
        assert text.endswith("Connection closed by remote peer; the backend cuda (TUTTI_BACKEND=cuda) does without NCCL"), line


MESSAGES = ARRAYS + """
import types

# A library of arrays on GPUs, as Numba is one.
numba = sys.modules["numba"] = types.ModuleType("numba")
numba.cuda = types.SimpleNamespace(to_device=lambda array: DeviceArray(array.copy()))


class DeviceArray(OnGpu):
    __module__ = "numba.cuda"

    def copy_to_host(self):
        return self.array.copy()


right, left = (rank + 1) % size, (rank - 1) % size
x = DeviceArray(np.full((2, 3), float(rank)))
y = tutti.sendrecv(x, dst=right, src=left)
assert type(y) is DeviceArray and (y.array == left).all() and y.shape == (2, 3), y
work = tutti.isend(x, dst=right)
z = tutti.recv(like=x, src=left)
work.wait()
assert type(z) is DeviceArray and (z.array == left).all(), z
for wrong, what in ((lambda: tutti.recv(out=x, src=left), "like="), (lambda: tutti.send(OnGpu(x.array), dst=right), "copy it there first")):
    try:
        wrong()
        sys.exit("not refused")
    except tutti.Unsupported as error:
        assert what in str(error), error
tutti.barrier()
print("exchanged")
"""


def test_messages_of_arrays_on_gpus_go_by_way_of_the_host(run_ranks, fake_gpu):
    done = run_ranks(3, MESSAGES, env=fake_gpu)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-5000:]
    assert done.stdout.count("exchanged") == 3
