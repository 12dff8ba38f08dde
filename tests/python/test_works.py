# test_works.py: calls under way: await, callbacks, with, repr, and waiting for several.
# SPDX-License-Identifier: Apache-2.0
import asyncio
import threading
import time

import kinds
import numpy as np
import pytest

import tutti


def numbers(rank):
    return np.full(3, rank + 1.0)


def total(size):
    return size * (size + 1) / 2


@pytest.mark.parametrize("kind", kinds.ALL)
def test_a_work_can_be_awaited(kind, rank, size):
    async def main():
        return await tutti.all_reduce(kinds.make(kind, numbers(rank)), async_op=True)

    np.testing.assert_allclose(kinds.numbers(asyncio.run(main())), total(size))


def test_other_tasks_run_while_a_work_is_awaited(rank, size):
    steps = []

    async def tick(work):
        while not work.test():
            steps.append(1)
            await asyncio.sleep(0.005)

    async def main():
        if rank == 0:
            await asyncio.sleep(0.1)  # the others wait for it
        work = tutti.all_reduce(numbers(rank), async_op=True)
        result, _ = await asyncio.gather(work, tick(work))
        return result

    assert asyncio.run(main())[0] == total(size)
    assert size == 1 or rank == 0 or steps


def test_a_failure_is_raised_where_the_work_is_awaited(world, rank, size):
    group = world.split(0)

    async def main():
        await group.all_reduce(np.ones(3 + rank), async_op=True)
        await group.barrier(async_op=True)

    if size == 1:
        asyncio.run(main())
    else:
        with pytest.raises(tutti.Mismatch):
            asyncio.run(main())


def test_a_callback_runs_once_after_the_end(rank, size):
    ended, seen = threading.Event(), []

    def note(work):
        seen.append(work.wait()[0])
        ended.set()

    if rank == 0:
        time.sleep(0.05)
    work = tutti.all_reduce(numbers(rank), async_op=True)
    work.add_done_callback(note)
    assert ended.wait(30)
    work.add_done_callback(note)  # it has ended: at once
    assert seen == [total(size)] * 2


def test_a_callback_may_start_calls_and_wait_for_them(world, rank, size):
    other, results = world.split(0), []
    ended = threading.Event()

    def again(work):
        results.append(other.all_reduce(work.wait())[0])
        ended.set()

    tutti.all_reduce(numbers(rank), async_op=True).add_done_callback(again)
    assert ended.wait(30)
    assert results == [size * total(size)]


@pytest.mark.parametrize("kind", ["one", "tree"])
def test_a_callback_and_its_caller_may_wait_for_the_same_work(kind, rank, size):
    seen = []
    for _ in range(20):
        x = numbers(rank)
        work = tutti.all_gather(x if kind == "one" else [x, x], uneven=True, async_op=True)  # whose result is made at the end
        work.add_done_callback(lambda work: seen.append(work.wait()))
        mine = work.wait()
        assert (mine if kind == "one" else mine[1]).sum() == 3 * total(size)
    limit = time.monotonic() + 30
    while len(seen) < 20 and time.monotonic() < limit:
        time.sleep(0.001)
    assert len(seen) == 20


def test_what_a_callback_raises_is_logged_although_its_call_had_ended(caplog):
    work = tutti.barrier(async_op=True)
    work.wait()
    work.add_done_callback(lambda _: 1 / 0)  # whether the call has ended by now is luck, and must make no difference
    assert "division by zero" in caplog.text


def test_what_a_callback_raises_is_logged(caplog, rank):
    ended = threading.Event()

    def fail(work):
        ended.set()
        raise ValueError("of the callback")

    if rank == 0:
        time.sleep(0.05)
    work = tutti.barrier(async_op=True)
    work.add_done_callback(fail)
    assert ended.wait(30)
    limit = time.monotonic() + 10
    while "of the callback" not in caplog.text and time.monotonic() < limit:
        time.sleep(0.01)
    assert "of the callback" in caplog.text


def test_with_waits_at_the_end_of_the_block(rank, size):
    y = np.empty(3)
    with tutti.all_reduce(numbers(rank), out=y, async_op=True) as work:
        assert isinstance(work, tutti.Work)
    assert work.test() and y[0] == total(size)


def test_an_error_leaves_a_with_block_without_waiting(rank):
    with pytest.raises(KeyError):
        with tutti.barrier(async_op=True):
            raise KeyError


@pytest.mark.ranks(at_least=2)
def test_waiting_for_no_time_says_not_yet_and_the_call_goes_on(rank, size):
    if rank == 0:
        tutti.recv(src=1, tag=5)  # rank 1 has looked by then
    work = tutti.all_reduce(numbers(rank), async_op=True)
    if rank == 1:
        with pytest.raises(tutti.Timeout, match="all_reduce #.* has not ended yet; it goes on"):
            work.wait(timeout=0)
        tutti.send(np.ones(1), dst=0, tag=5)
    assert work.wait(timeout=30)[0] == total(size)
    assert work.wait(timeout=0)[0] == total(size)


@pytest.mark.ranks(at_least=2)
def test_a_work_tells_its_call_its_state_and_who_is_missing(rank, size):
    if rank == 0:
        tutti.recv(src=1, tag=6)
    work = tutti.all_reduce(numbers(rank), async_op=True)
    if rank == 1:
        assert "under way, waiting for" in repr(work), repr(work)
        assert size > 2 or "rank 0" in repr(work)
        tutti.send(np.ones(1), dst=0, tag=6)
    work.wait()
    assert repr(work).startswith("<tutti.Work all_reduce #") and repr(work).endswith("(float64 × 3, sum), ended>")


def test_works_of_trees_count_as_works(rank, size):
    work = tutti.all_reduce({"a": numbers(rank), "b": np.ones(2, np.float32)}, async_op=True)
    assert isinstance(work, tutti.Work) and not isinstance(3, tutti.Work)
    assert "all_reduce" in repr(work)
    assert work.wait()["a"][0] == total(size)
    assert repr(work) == "<tutti.Work all_reduce, ended>"


def test_all_are_waited_for_together(rank, size):
    works = [tutti.all_reduce(numbers(rank) + i, async_op=True) for i in range(3)]
    assert [y[0] for y in tutti.wait_all(works, timeout=30)] == [total(size) + i * size for i in range(3)]
    assert tutti.wait_all([]) == []


def test_one_of_several_is_waited_for(rank, size):
    works = {i: tutti.all_reduce(numbers(rank) + i, async_op=True) for i in range(4)}
    works[4] = tutti.all_reduce({"x": numbers(rank) + 4}, async_op=True)
    while works:
        places = list(works)
        index, y = tutti.wait_any(works.values(), timeout=30)
        place = places[index]
        assert (y["x"] if place == 4 else y)[0] == total(size) + place * size
        del works[place]


@pytest.mark.ranks(at_least=2)
def test_waiting_for_one_ends_at_its_deadline(rank):
    work = tutti.irecv(src=1 - rank, tag=9) if rank < 2 else None
    if rank < 2:
        with pytest.raises(tutti.Timeout, match="none of 1 calls has ended"):
            tutti.wait_any([work], timeout=0.02)
    tutti.barrier()
    if rank < 2:
        tutti.send(np.full(1, float(rank)), dst=1 - rank, tag=9)
        assert tutti.wait_any([work])[1][0] == 1 - rank


def test_what_is_no_work_is_refused():
    with pytest.raises(tutti.InvalidArgument, match="ndarray is no work"):
        tutti.wait_all([np.ones(1)])
    with pytest.raises(tutti.InvalidArgument, match="no works"):
        tutti.wait_any([])
