# test_torch_as_used.py: what real programs do with torch.distributed and with sparse gradients.
# SPDX-License-Identifier: Apache-2.0
import datetime

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import tutti.torch  # noqa: E402
from torch_groups import torch_world  # noqa: E402, F401

pytestmark = [pytest.mark.usefixtures("torch_world"), pytest.mark.filterwarnings("ignore::FutureWarning")]


def trunc_mean(totals, size):
    return torch.tensor(totals).div(size, rounding_mode="trunc")


@pytest.mark.parametrize("async_op", [False, True])
def test_avg_of_integers_divides_towards_zero_in_every_verb(async_op, rank, size):
    """Lightning's Trainer averages counters that are int64."""

    def finish(work):
        if async_op:
            work.wait()

    values = [[7 * r + 1, -7 * r - 1, 3] for r in range(size)]
    totals = [sum(column) for column in zip(*values)]
    x = torch.tensor(values[rank])
    finish(dist.all_reduce(x, dist.ReduceOp.AVG, async_op=async_op))
    assert torch.equal(x, trunc_mean(totals, size))
    y = torch.tensor(values[rank])
    finish(dist.reduce(y, 0, dist.ReduceOp.AVG, async_op=async_op))
    assert torch.equal(y, trunc_mean(totals, size) if rank == 0 else torch.tensor(values[rank]))
    z, every = torch.empty(3, dtype=torch.int64), torch.tensor(values[rank]).repeat(size)
    finish(dist.reduce_scatter_tensor(z, every, dist.ReduceOp.AVG, async_op=async_op))
    assert torch.equal(z, trunc_mean(totals, size))
    strided = torch.tensor([values[rank], values[rank]]).t()[:, 0]
    finish(dist.all_reduce(strided, dist.ReduceOp.AVG, async_op=async_op))
    assert torch.equal(strided, trunc_mean(totals, size))


def test_tuttis_own_mean_of_integers_stays_refused():
    with pytest.raises(tutti.InvalidArgument):
        tutti.all_reduce(torch.ones(2, dtype=torch.int64), op="mean")


def sparse(rank, size, dtype=torch.float32):
    """Rank r has rows r and `size`."""
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]]).to(dtype) * (rank + 1)
    return torch.sparse_coo_tensor([[rank, size]], values, (size + 1, 2), check_invariants=True)


def dense_sum(size, dtype=torch.float32):
    return torch.stack([sparse(r, size, dtype).to_dense() for r in range(size)]).sum(0)


@pytest.mark.parametrize("async_op", [False, True])
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_all_reduce_of_sparse_tensors(op, async_op, rank, size):
    found = tutti.all_reduce(sparse(rank, size), op=op, async_op=async_op)
    found = found.wait() if async_op else found
    assert found.layout is torch.sparse_coo and found.is_coalesced()
    torch.testing.assert_close(found.to_dense(), dense_sum(size) / (size if op == "mean" else 1))


def test_torchs_all_reduce_of_sparse_tensors_averages_too(rank, size):
    tensor = sparse(rank, size)
    dist.all_reduce(tensor, dist.ReduceOp.AVG)
    torch.testing.assert_close(tensor.to_dense(), dense_sum(size) / size)


@pytest.mark.parametrize("weighted", [False, True])
def test_average_takes_gradients_of_embeddings(weighted, rank, size):
    tree = {"table": sparse(rank, size), "bias": torch.full((3,), float(rank))}
    weights = [r + 1 for r in range(size)]
    found = tutti.average(tree, weight=weights[rank] if weighted else None)
    factors = [w / sum(weights) if weighted else 1 / size for w in weights]
    table = sum(sparse(r, size).to_dense() * factors[r] for r in range(size))
    assert found["table"].layout is torch.sparse_coo
    torch.testing.assert_close(found["table"].to_dense(), table)
    torch.testing.assert_close(found["bias"], torch.full((3,), sum(r * f for r, f in enumerate(factors))))


def test_sparse_tensors_are_refused_where_they_have_no_sense(rank, size):
    x = sparse(rank, size)
    with pytest.raises(tutti.Unsupported, match="to_dense"):
        tutti.all_reduce(x, op="max")
    with pytest.raises(tutti.Unsupported, match="use the result"):
        tutti.all_reduce(x, out=x)
    with pytest.raises(tutti.InvalidArgument, match="integers"):
        tutti.all_reduce(sparse(rank, size, torch.int64), op="mean")
    with pytest.raises(tutti.Unsupported, match="to_dense"):
        tutti.all_gather(x)


@pytest.mark.ranks(2)
def test_sparse_tensors_of_different_shapes_are_a_mismatch(world, rank, size):
    group = world.split(color=0)
    x = torch.sparse_coo_tensor([[0]], [1.0], (4 if rank else 5,), check_invariants=True)
    with pytest.raises(tutti.Mismatch):
        group.all_reduce(x, timeout=30)


def local_mode():
    local_tensor = pytest.importorskip("torch.distributed._local_tensor")
    return local_tensor, local_tensor.LocalTensorMode(frozenset(range(dist.get_world_size())))


def test_local_tensors_are_answered_by_their_mode(size):
    """One process plays all ranks: calls are operators that the mode answers, not messages."""
    module, mode = local_mode()

    def local():
        return module.LocalTensor({r: torch.arange(2.0) + r for r in range(size)})

    with mode:
        x = local()
        dist.all_reduce(x)
        y = local()
        dist.broadcast(y, 0, async_op=True).wait()
        z = module.LocalTensor({r: torch.empty(2 * size) for r in range(size)})
        dist.all_gather_into_tensor(z, local())
    total = torch.arange(2.0) * size + sum(range(size))
    for r in range(size):
        torch.testing.assert_close(x._local_tensors[r], total)
        torch.testing.assert_close(y._local_tensors[r], torch.arange(2.0))
        torch.testing.assert_close(z._local_tensors[r], torch.cat([torch.arange(2.0) + s for s in range(size)]))


def test_dtensor_in_local_tensor_mode(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    module, mode = local_mode()
    mesh = init_device_mesh("cpu", (size,))
    if rank != 0:  # the mode plays all ranks, and takes itself for rank 0
        return
    with mode:
        whole = distribute_tensor(torch.arange(4.0 * size), mesh, [Shard(0)])
        found = (whole * 2).full_tensor()
    torch.testing.assert_close(found._local_tensors[size - 1], torch.arange(4.0 * size) * 2)


def test_a_mode_that_counts_collectives_sees_each_of_them_once(rank, size):
    from torch.distributed.tensor.debug import CommDebugMode

    x, parts = torch.full((2,), float(rank)), [torch.empty(2) for _ in range(size)]
    whole, own = torch.empty(2 * size), torch.empty(2)
    with CommDebugMode() as mode:
        dist.all_reduce(x)
        dist.broadcast(x, 0)
        dist.all_gather(parts, x)
        dist.all_gather_into_tensor(whole, x)
        dist.reduce_scatter_tensor(own, whole)
        dist.scatter(own, parts if rank == 0 else None, 0)
        dist.all_to_all_single(torch.empty(size), torch.ones(size))
    ops = torch.ops.c10d
    expected = dict.fromkeys(
        (ops.allreduce_, ops.broadcast_, ops.allgather_, ops._allgather_base_, ops._reduce_scatter_base_, ops.scatter_,
         ops.alltoall_base_), 1
    )
    assert dict(mode.get_comm_counts()) == expected
    assert own.tolist() == whole[:2].tolist() == [sum(range(size))] * 2


@pytest.mark.ranks(at_least=2)
@pytest.mark.filterwarnings("error:Set timeout is now only supported")
def test_the_timeout_of_a_group_is_set_and_told_as_with_torchs_own(rank, size):
    group = dist.new_group(list(range(size)), timeout=datetime.timedelta(seconds=50))
    assert group._get_backend(torch.device("cpu")).options._timeout == datetime.timedelta(seconds=50)
    dist.distributed_c10d._set_pg_timeout(datetime.timedelta(seconds=0.2), group)
    assert group.options._timeout == datetime.timedelta(seconds=0.2)
    if rank == 0:  # alone
        with pytest.raises(tutti.Timeout, match="after 200 ms"):
            dist.all_reduce(torch.ones(1), group=group)
    dist.barrier()
