# test_store.py: the job's key-value store.
# SPDX-License-Identifier: Apache-2.0
import itertools
import signal
import threading
import time

import pytest

import tutti

_number = itertools.count()


@pytest.fixture
def name():
    return f"test_store {next(_number)}: "


def test_what_one_rank_sets_every_rank_reads(name, rank, size):
    store = tutti.store()
    store.set(f"{name}{rank}", bytes([rank, 0, 255]))
    store.wait([f"{name}{other}" for other in range(size)], timeout=30)
    assert [store.get(f"{name}{other}", timeout=30) for other in range(size)] == [bytes([r, 0, 255]) for r in range(size)]
    assert store.try_get(name + "nobody") is None
    tutti.barrier()


def test_counters_and_comparisons_are_atomic(name, rank, size):
    store = tutti.store()
    sums = [store.add(name + "n", 3) for _ in range(50)]
    assert sums == sorted(sums) and all(each % 3 == 0 for each in sums)
    winner = store.compare_set(name + "first", None, str(rank))
    tutti.barrier()
    assert store.get(name + "n") == str(150 * size).encode()
    assert {bytes(w) for w in tutti.all_gather_object(winner)} == {store.get(name + "first")}
    tutti.barrier()
    if rank == 0:
        assert store.remove(name + "first") and not store.remove(name + "first")
    tutti.barrier()


def test_threads_wait_side_by_side_and_calls_go_on(name, rank, size):
    store = tutti.store()
    got = []
    threads = [threading.Thread(target=lambda key=key: got.append(store.get(name + key, timeout=60))) for key in "abc"]
    for thread in threads:
        thread.start()
    for _ in range(20):
        assert tutti.all_reduce(1.0) == size
    if rank == size - 1:
        for key in "cab":
            store.set(name + key, key)
    for thread in threads:
        thread.join()
    assert sorted(got) == [b"a", b"b", b"c"]
    tutti.barrier()


def test_a_wait_ends_at_its_deadline_and_names_the_key(name):
    with pytest.raises(tutti.Timeout, match="never set.*nobody has set it"):
        tutti.store().get(name + "never set", timeout=0.2)
    with pytest.raises(tutti.Timeout, match="never set"):
        tutti.store().wait([name + "never set"] * 2, timeout=0.2)


def test_what_cannot_be_stored_is_refused_by_name(name):
    store = tutti.store()
    with pytest.raises(tutti.InvalidArgument, match="at most 57344"):
        store.set(name, b"x" * 60_000)
    with pytest.raises(tutti.InvalidArgument, match="the value is a int"):
        store.set(name, 3)
    with pytest.raises(tutti.InvalidArgument, match="the key is a int"):
        store.get(3)
    store.set(f"{name}{tutti.rank()}", "text")
    with pytest.raises(tutti.InvalidArgument, match="counter"):
        store.add(f"{name}{tutti.rank()}")


def test_an_alarm_leaves_a_wait(name):
    class Rang(Exception):
        pass

    def ring(*_):
        raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        start = time.monotonic()
        with pytest.raises(Rang):
            tutti.store().get(name + "never", timeout=60)
        assert time.monotonic() - start < 30
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
