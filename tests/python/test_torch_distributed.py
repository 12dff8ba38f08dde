# test_torch_distributed.py: torch.distributed's backend "tutti": every verb and every form of it.
# SPDX-License-Identifier: Apache-2.0
import os
import time
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import tutti.torch  # noqa: E402
from torch_groups import torch_world  # noqa: E402, F401
from tutti.torch.process_group.group import _behind  # noqa: E402

# torch 2.13 has new names for some verbs, which older ones do not have yet.
pytestmark = [pytest.mark.usefixtures("torch_world"), pytest.mark.filterwarnings("ignore::FutureWarning")]
Op = dist.ReduceOp
ALL_RANKS_SUM = lambda size: size * (size + 1) // 2  # noqa: E731


def numbers(rank, count=5, dtype=torch.float32):
    """Every rank's own."""
    return (torch.arange(count) + 10 * rank).to(dtype)


def test_the_backend_is_known_by_its_name(rank, size):
    assert dist.is_backend_available("tutti")
    assert dist.get_backend() == "tutti" and dist.group.WORLD._get_backend(torch.device("cpu")).name() == "tutti"
    assert (dist.get_rank(), dist.get_world_size()) == (rank, size)
    assert "tutti" in repr(_behind(dist.group.WORLD)) and dist.group.WORLD.group_name == "0"


REDUCTIONS = {
    "sum": (Op.SUM, lambda rows: rows.sum(0)),
    "mean": (Op.AVG, lambda rows: mean_of(rows)),
    "product": (Op.PRODUCT, lambda rows: rows.prod(0)),
    "min": (Op.MIN, lambda rows: rows.amin(0)),
    "max": (Op.MAX, lambda rows: rows.amax(0)),
    "band": (Op.BAND, lambda rows: fold(torch.bitwise_and, rows)),
    "bor": (Op.BOR, lambda rows: fold(torch.bitwise_or, rows)),
    "bxor": (Op.BXOR, lambda rows: fold(torch.bitwise_xor, rows)),
}


def mean_of(rows):
    if rows.dtype.is_floating_point:
        return rows.to(torch.float64).mean(0).to(rows.dtype)
    return rows.sum(0).to(rows.dtype).div(len(rows), rounding_mode="trunc")  # as NCCL has it


def fold(function, rows):
    result = rows[0].clone()
    for row in rows[1:]:
        result = function(result, row)
    return result


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int32, torch.int64, torch.uint8])
def test_all_reduce_knows_every_reduction(name, dtype, rank, size):
    op, expected = REDUCTIONS[name]
    if name in ("band", "bor", "bxor") and dtype.is_floating_point:
        with pytest.raises(ValueError, match="tutti|float|int|mean|bits"):
            dist.all_reduce(torch.ones(3, dtype=dtype), op)
        return
    rows = torch.stack([(torch.arange(6) + r) % 3 + 1 for r in range(size)]).to(dtype)  # exact in every order, products of 8, too
    tensor = rows[rank].clone()
    dist.all_reduce(tensor, op)
    assert torch.equal(tensor, expected(rows).to(dtype)), (tensor, rows)


def test_premul_sum_multiplies_before_it_adds(rank, size):
    tensor = torch.full((4,), float(rank + 1))
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
    assert torch.equal(tensor, torch.full((4,), 0.5 * ALL_RANKS_SUM(size)))


@pytest.mark.parametrize("form", ["complex", "strided", "empty", "scalar", "half", "many"])
def test_all_reduce_takes_any_dense_tensor(form, rank, size):
    tensor = {
        "complex": torch.full((3,), complex(rank + 1, -1)),
        "strided": torch.full((4, 6), float(rank + 1)).t()[::2],
        "empty": torch.zeros(0, 3),
        "scalar": torch.tensor(float(rank + 1)),
        "half": torch.full((7,), rank + 1, dtype=torch.float16),
        "many": torch.full((300_000,), rank + 1, dtype=torch.int32),
    }[form]
    total = ALL_RANKS_SUM(size)
    expected = torch.full_like(tensor, complex(total, -size) if form == "complex" else total)
    dist.all_reduce(tensor)
    assert torch.equal(tensor, expected)


def test_a_call_is_a_work_with_a_future(rank, size):
    tensor = torch.full((10,), float(rank + 1))
    work = dist.all_reduce(tensor, async_op=True)
    doubled = work.get_future().then(lambda future: future.value()[0] * 2)
    assert work.wait() is True
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.result()[0] is tensor
    assert torch.equal(doubled.wait(), torch.full((10,), 2.0 * ALL_RANKS_SUM(size)))
    assert work.wait(timedelta(seconds=5))


def test_callbacks_of_futures_may_start_calls_and_wait_for_them(rank, size):
    """PowerSGD does: three calls, each in the callback of the one before, and all of it twice at the same time."""
    groups = [dist.new_group() for _ in range(2)]

    def once_more(group):
        return lambda future: dist.all_reduce(future.value()[0], group=group, async_op=True).get_future().wait()

    futures = []
    for group in groups:
        future = dist.all_reduce(torch.ones(4), group=group, async_op=True).get_future()
        futures.append(future.then(once_more(group)).then(once_more(group)))
    for future in futures:
        assert torch.equal(future.wait()[0], torch.full((4,), float(size**3)))


def test_many_calls_run_at_the_same_time(rank, size):
    tensors = [torch.full((1000,), float(rank + number)) for number in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    for number, work in reversed(list(enumerate(works))):
        work.wait()
        assert torch.equal(tensors[number], torch.full((1000,), float(ALL_RANKS_SUM(size) - size + number * size)))


def test_reduce_leaves_the_other_ranks_tensors_alone(rank, size):
    for root in range(size):
        tensor = numbers(rank)
        dist.reduce(tensor, root)
        everything = sum(numbers(r) for r in range(size))
        assert torch.equal(tensor, everything if rank == root else numbers(rank))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.float8_e4m3fnuz, torch.complex64])
def test_broadcast_moves_any_dtype(dtype, rank, size):
    for root in range(size):
        tensor = numbers(rank).to(dtype)
        dist.broadcast(tensor, root)
        assert torch.equal(tensor.view(torch.uint8), numbers(root).to(dtype).view(torch.uint8))


def outputs_for(size, form, counts):
    if form == "adjacent":
        return list(torch.empty(sum(counts)).split(counts))
    return [torch.empty(count, 2)[:, 0] if form == "strided" else torch.empty(count) for count in counts]


@pytest.mark.parametrize("form", ["apart", "adjacent", "strided"])
@pytest.mark.parametrize("is_async", [False, True])
def test_all_gather_fills_lists(form, is_async, rank, size):
    outputs = outputs_for(size, form, [5] * size)
    work = dist.all_gather(outputs, numbers(rank), async_op=is_async)
    if is_async:
        work.wait()
    for r, output in enumerate(outputs):
        assert torch.equal(output, numbers(r))


@pytest.mark.parametrize("form", ["apart", "adjacent"])
def test_all_gather_of_different_lengths(form, rank, size):
    outputs = outputs_for(size, form, [r + 1 for r in range(size)])
    dist.all_gather(outputs, numbers(rank, rank + 1))
    for r, output in enumerate(outputs):
        assert torch.equal(output, numbers(r, r + 1))


def test_all_gather_into_one_tensor(rank, size):
    everything = torch.cat([numbers(r) for r in range(size)])
    joined, stacked = torch.empty(5 * size), torch.empty(size, 5)
    dist.all_gather_into_tensor(joined, numbers(rank))
    dist.all_gather_into_tensor(stacked, numbers(rank))
    assert torch.equal(joined, everything) and torch.equal(stacked, everything.view(size, 5))
    in_place = torch.zeros(5 * size)
    mine = in_place[5 * rank : 5 * rank + 5]
    mine.copy_(numbers(rank))
    dist.all_gather_into_tensor(in_place, mine)
    assert torch.equal(in_place, everything)


def test_gather_and_scatter_by_lists(rank, size):
    for root in range(size):
        outputs = [torch.empty(5) for _ in range(size)] if rank == root else None
        dist.gather(numbers(rank), outputs, root)
        if rank == root:
            assert all(torch.equal(output, numbers(r)) for r, output in enumerate(outputs))
        mine = torch.empty(5)
        dist.scatter(mine, [numbers(r + 7) for r in range(size)] if rank == root else None, root)
        assert torch.equal(mine, numbers(rank + 7))


@pytest.mark.parametrize("counts", ["even", "uneven"])
@pytest.mark.parametrize("op", [Op.SUM, Op.AVG, Op.MAX])
def test_reduce_scatter_of_lists(counts, op, rank, size):
    lengths = [4 + (r if counts == "uneven" else 0) for r in range(size)]
    inputs = [torch.full((length,), float(rank + r)) for r, length in enumerate(lengths)]
    output = torch.empty(lengths[rank])
    dist.reduce_scatter(output, inputs, op)
    all_inputs = torch.tensor([float(r + rank) for r in range(size)])
    expected = {Op.SUM: all_inputs.sum(), Op.AVG: all_inputs.mean(), Op.MAX: all_inputs.max()}[op]
    assert torch.allclose(output, expected.expand(lengths[rank]))


def test_reduce_scatter_of_one_tensor(rank, size):
    output = torch.empty(3)
    dist.reduce_scatter_tensor(output, torch.arange(3.0 * size))
    assert torch.equal(output, size * (torch.arange(3.0) + 3 * rank))


def test_all_to_all_in_all_forms(rank, size):
    pieces = [torch.full((r + 1,), float(10 * rank + r)) for r in range(size)]
    outputs = [torch.empty(rank + 1) for _ in range(size)]
    dist.all_to_all(outputs, pieces)
    assert all(torch.equal(output, torch.full((rank + 1,), float(10 * r + rank))) for r, output in enumerate(outputs))

    even = torch.empty(size, 2)
    dist.all_to_all_single(even, torch.full((size, 2), float(rank)))
    assert torch.equal(even, torch.arange(float(size))[:, None].expand(size, 2))

    rows = torch.cat([piece[:, None].expand(-1, 3) for piece in pieces])
    uneven = torch.empty(size * (rank + 1), 3)
    dist.all_to_all_single(uneven, rows, [rank + 1] * size, [r + 1 for r in range(size)])
    assert torch.equal(uneven[:, 0], torch.cat([torch.full((rank + 1,), float(10 * r + rank)) for r in range(size)]))


def test_coalesced_forms(rank, size):
    tensors = [torch.full((2,), float(rank)), torch.full((3, 2), 2.0 * rank)]
    dist.all_reduce_coalesced(tensors)
    total = float(ALL_RANKS_SUM(size) - size)
    assert torch.equal(tensors[0], torch.full((2,), total)) and torch.equal(tensors[1], torch.full((3, 2), 2 * total))

    mixed = [torch.ones(2), torch.ones(2, dtype=torch.int64)]
    dist.group.WORLD.allreduce_coalesced(mixed).wait()
    assert mixed[0].tolist() == [size] * 2 and mixed[1].tolist() == [size] * 2

    lists = [[torch.empty(2), torch.empty(1, 3)] for _ in range(size)]
    dist.all_gather_coalesced(lists, [torch.full((2,), float(rank)), torch.full((1, 3), -float(rank))])
    assert all(a.tolist() == [r, r] and b.tolist() == [[-r] * 3] for r, (a, b) in enumerate(lists))


def test_the_coalescing_manager(rank, size):
    with dist._coalescing_manager():
        tensors = [torch.ones(3), torch.full((2,), 2.0)]
        for tensor in tensors:
            dist.all_reduce(tensor)
    assert tensors[0].tolist() == [size] * 3 and tensors[1].tolist() == [2 * size] * 2

    gathered, parts = [torch.empty(2 * size), torch.empty(size)], [torch.empty(2), torch.empty(1)]
    with dist._coalescing_manager(async_ops=True) as calls:
        dist.all_gather_into_tensor(gathered[0], torch.full((2,), float(rank)))
        dist.all_gather_into_tensor(gathered[1], torch.full((1,), float(rank)))
    calls.wait()
    with dist._coalescing_manager():
        for part, whole in zip(parts, gathered):
            dist.reduce_scatter_tensor(part, whole)
    assert parts[0].tolist() == [rank * size] * 2 and parts[1].tolist() == [rank * size]


def test_objects(rank, size):
    everything = [{"rank": r, "text": "x" * r} for r in range(size)]
    gathered = [None] * size
    dist.all_gather_object(gathered, everything[rank])
    assert gathered == everything
    at_root = [None] * size if rank == 0 else None
    dist.gather_object(everything[rank], at_root, 0)
    assert rank != 0 or at_root == everything
    told = [everything, "and", 3] if rank == size - 1 else [None] * 3
    dist.broadcast_object_list(told, size - 1)
    assert told == [everything, "and", 3]
    mine = [None]
    dist.scatter_object_list(mine, everything if rank == 0 else None, 0)
    assert mine == [everything[rank]]


@pytest.mark.parametrize("count", [3, 300_000])
def test_messages_around_the_ring(count, rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    received = torch.empty(count)
    sending = dist.isend(torch.full((count,), float(rank)), after, tag=7)
    dist.irecv(received, before, tag=7).wait()
    sending.wait()
    assert torch.equal(received, torch.full((count,), float(before)))


@pytest.mark.ranks(2)
def test_send_and_receive(rank, size):
    if rank == 0:
        dist.send(torch.arange(4.0), 1)
        dist.send(torch.arange(8.0).view(2, 4).t(), 1, tag=3)
        dist.send_object_list([{"a": 1}, "b"], 1)
    elif rank == 1:
        late, early, objects = torch.zeros(4, 2).t().contiguous().t(), torch.empty(4), [None, None]
        assert dist.recv(late, 0, tag=3) == 0  # overtakes what has another tag
        assert dist.recv(early, 0) == 0
        assert torch.equal(early, torch.arange(4.0)) and torch.equal(late, torch.arange(8.0).view(2, 4).t())
        dist.recv_object_list(objects, 0)
        assert objects == [{"a": 1}, "b"]


@pytest.mark.ranks(2)
def test_a_receive_from_anyone_tells_the_source(rank, size):
    if rank != 0:
        dist.send(torch.full((2,), float(rank)), 0, tag=1)
        return
    sources = set()
    for _ in range(size - 1):
        received = torch.empty(2)
        source = dist.recv(received, tag=1)
        assert received.tolist() == [source, source]
        sources.add(source)
    assert sources == set(range(1, size))


def test_a_batch_of_messages(rank, size):
    after, before = (rank + 1) % size, (rank - 1) % size
    received = [torch.empty(3), torch.empty(2, 2)]
    operations = [dist.P2POp(dist.irecv, tensor, before) for tensor in received]
    operations += [dist.P2POp(dist.isend, torch.full_like(tensor, float(rank)), after) for tensor in received]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert all((tensor == before).all() for tensor in received)


def test_barriers(rank, size):
    dist.barrier()
    work = dist.barrier(async_op=True)
    work.wait()
    dist.monitored_barrier(timeout=timedelta(seconds=30))
    dist.monitored_barrier(timeout=30.0, wait_all_ranks=True)


@pytest.mark.ranks(2)
def test_a_monitored_barrier_names_the_missing_and_leaves_the_group_usable(rank, size):
    last = size - 1
    if rank == 0:
        with pytest.raises(RuntimeError, match=f"Ranks {last} failed to pass monitoredBarrier in 200 ms"):
            dist.monitored_barrier(timeout=timedelta(seconds=0.2), wait_all_ranks=True)
    elif rank != last:
        with pytest.raises(RuntimeError, match=f"Rank {rank} successfully reached monitoredBarrier, but"):
            dist.monitored_barrier(timeout=timedelta(seconds=10))
    else:
        _behind(dist.group.WORLD)._barriers += 1  # it was elsewhere
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size


def test_sparse_gradients_are_added(rank, size):
    values = torch.tensor([[1.0, 2.0], [3.0, float(rank)]])
    tensor = torch.sparse_coo_tensor(torch.tensor([[rank, size]]), values, (size + 1, 2), check_invariants=True)
    dist.all_reduce(tensor)
    expected = torch.tensor([[1.0, 2.0]] * size + [[3.0 * size, float(ALL_RANKS_SUM(size) - size)]])
    assert torch.equal(tensor.to_dense(), expected)
    nothing = torch.sparse_coo_tensor(torch.empty(1, 0), torch.empty(0), (4,)) if rank else torch.ones(4).to_sparse()
    dist.all_reduce(nothing)
    assert torch.equal(nothing.to_dense(), torch.ones(4))


def test_tuttis_own_verbs_on_the_same_group(rank, size):
    total = tutti.scan(torch.ones(3), group=tutti.torch.group_of())
    assert total.tolist() == [rank + 1] * 3


def test_the_profiler_sees_the_calls(rank, size):
    with torch.autograd.profiler.profile() as profile:
        dist.all_reduce(torch.ones(3))
        dist.barrier()
    names = {event.name for event in profile.function_events}
    assert {"tutti:all_reduce", "tutti:barrier"} <= names


def test_profiler_events_last_as_long_as_the_calls(rank, size):
    late_seconds = 0.1 if size > 1 else 0
    with torch.autograd.profiler.profile() as profile:
        for start, root in ((dist.all_reduce, {}), (dist.broadcast, {"src": 0}), (dist.reduce, {"dst": min(1, size - 1)})):
            if rank == 0 and size > 1:
                dist.recv(torch.empty(1), 1)  # rank 1 has started its call
                time.sleep(late_seconds)
            work = start(torch.ones(3), async_op=True, **root)
            if rank == 1:
                dist.send(torch.ones(1), 0)
            work.wait()
    lasted = {event.name: event.time_range.elapsed_us() / 1e6 for event in profile.function_events}
    for verb in ("all_reduce", "broadcast", "reduce"):
        # The class in Python ends them once the calls are under way.
        waits = rank == 1 and os.environ.get("TUTTI_TORCH_BACKEND") == "cpp"
        assert lasted[f"tutti:{verb}"] > (late_seconds if waits else 0), lasted


def test_memory_for_fsdp_comes_from_the_group(rank, size):
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    tensor = backend.allocate_tensor(6, dtype=torch.bfloat16, device=torch.device("cpu"))
    tensor.fill_(1)
    dist.all_reduce(tensor)
    assert tensor.tolist() == [size] * 6
