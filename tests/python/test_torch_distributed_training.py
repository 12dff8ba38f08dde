# test_torch_distributed_training.py: what is built on torch.distributed, on backend "tutti": groups, meshes, DDP, FSDP.
# SPDX-License-Identifier: Apache-2.0
from datetime import timedelta

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import tutti  # noqa: E402
import tutti.torch  # noqa: E402
from torch_groups import own_group, torch_world  # noqa: E402, F401

pytestmark = [
    pytest.mark.usefixtures("torch_world"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning"),
]
SEED = 5


def make_model():
    torch.manual_seed(SEED)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))


def batches(steps=3, rows=12):
    generator = torch.Generator().manual_seed(SEED)
    draw = lambda width: torch.randn(rows, width, generator=generator)  # noqa: E731
    return [(draw(8), draw(4)) for _ in range(steps)]


def train(model, optimizer, share=slice(None)):
    for inputs, targets in batches():
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs[share]), targets[share]).backward()
        optimizer.step()


def reference():
    """What one process that sees all the data learns."""
    model = make_model()
    train(model, torch.optim.Adam(model.parameters(), lr=0.01))
    return list(model.parameters())


def assert_close(parameters, expected, tolerance=1e-5):
    for mine, right in zip(parameters, expected, strict=True):
        assert torch.allclose(mine, right, atol=tolerance), (mine - right).abs().max()


def share_of(rank, size):
    return slice(rank, None, size)  # 12 rows: equally many for 1, 2, 3 and 4 ranks


@pytest.mark.parametrize(
    "options", [{}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.0005}, {"static_graph": True}]
)
def test_ddp_learns_what_one_process_learns(options, rank, size):
    model = DistributedDataParallel(make_model(), **options)
    train(model, torch.optim.Adam(model.parameters(), lr=0.01), share_of(rank, size))
    assert_close(model.parameters(), reference())


def test_ddp_starts_from_rank_0s_parameters(rank, size):
    torch.manual_seed(100 + rank)
    model = DistributedDataParallel(nn.Linear(3, 2))
    gathered = [torch.empty(2, 3) for _ in range(size)]
    dist.all_gather(gathered, model.module.weight.detach())
    assert all(torch.equal(weight, gathered[0]) for weight in gathered)


def test_ddp_with_parameters_that_some_ranks_do_not_use(rank, size):
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(2, 1), nn.Linear(2, 1)

        def forward(self, x):
            return self.first(x) if rank == 0 else self.second(x)

    model = DistributedDataParallel(Branches(), find_unused_parameters=True)
    model(torch.ones(1, 2)).sum().backward()
    assert torch.allclose(model.module.first.weight.grad, torch.full((1, 2), 1 / size))


def test_ddp_accumulates_without_sync(rank, size):
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    with model.no_sync():
        model(torch.full((1, 2), float(rank))).sum().backward()
    assert model.module.weight.grad.tolist() == [[rank, rank]]
    model(torch.ones(1, 2)).sum().backward()
    mean = (size - 1) / 2
    assert torch.allclose(model.module.weight.grad, torch.full((1, 2), mean + 1))


def test_ddp_with_communication_hooks(rank, size):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    halved = DistributedDataParallel(make_model())
    halved.register_comm_hook(None, default_hooks.fp16_compress_hook)
    train(halved, torch.optim.SGD(halved.parameters(), lr=0.1), share_of(rank, size))
    plain = make_model()
    train(plain, torch.optim.SGD(plain.parameters(), lr=0.1))
    assert_close(halved.parameters(), plain.parameters(), 1e-2)

    # Callbacks that wait for calls of their own.
    squeezed = DistributedDataParallel(make_model())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=4, start_powerSGD_iter=2)
    squeezed.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    for _ in range(2):
        train(squeezed, torch.optim.SGD(squeezed.parameters(), lr=0.1), share_of(rank, size))
    assert all(torch.isfinite(parameter).all() for parameter in squeezed.parameters())


def test_ddp_with_more_batches_on_some_ranks(rank, size):
    model = DistributedDataParallel(nn.Linear(2, 1, bias=False))
    with model.join():
        for _ in range(rank + 1):
            model(torch.ones(1, 2)).sum().backward()
    assert torch.isfinite(model.module.weight.grad).all()


def test_sync_batch_norm_statistics_in_ddp(rank, size):
    model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    model(torch.randn(4, 2) + rank).sum().backward()
    model(torch.randn(4, 2))  # broadcasts rank 0's buffers
    gathered = [torch.empty(2) for _ in range(size)]
    dist.all_gather(gathered, model.module[1].weight.grad)
    assert all(torch.allclose(each, gathered[0]) for each in gathered)


def test_sparse_gradients_in_ddp(rank, size):
    model = DistributedDataParallel(nn.Embedding(6, 2, sparse=True))
    model(torch.tensor([rank, 5])).sum().backward()
    gradient = model.module.weight.grad.to_dense()
    assert torch.allclose(gradient[5], torch.ones(2)) and torch.allclose(gradient[rank], torch.full((2,), 1 / size))


@pytest.mark.parametrize("overlap", [False, True])
def test_zero_redundancy_optimizer(overlap, rank, size):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    model = DistributedDataParallel(make_model())
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.Adam, lr=0.01, parameters_as_bucket_view=overlap
    )
    train(model, optimizer, share_of(rank, size))
    assert_close(model.parameters(), reference())
    optimizer.consolidate_state_dict(to=0)


def test_fsdp2_learns_what_one_process_learns(rank, size):
    from torch.distributed.fsdp import fully_shard

    model = make_model()
    mesh = dist.init_device_mesh("cpu", (size,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    train(model, torch.optim.Adam(model.parameters(), lr=0.01), share_of(rank, size))
    assert_close([parameter.full_tensor() for parameter in model.parameters()], reference())


def test_device_meshes_and_dtensors(rank, size):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = dist.init_device_mesh("cpu", (size // 2, 2) if size % 2 == 0 else (size, 1), mesh_dim_names=("dp", "tp"))
    assert mesh["dp"].size() * mesh["tp"].size() == size
    ones = torch.ones(1)
    dist.all_reduce(ones, group=mesh.get_group("tp"))
    assert ones.item() == mesh["tp"].size()
    whole = torch.arange(48.0).view(8, 6)
    spread = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
    assert torch.equal(spread.full_tensor(), whole)
    assert torch.equal(spread.redistribute(mesh, [Replicate(), Shard(0)]).full_tensor(), whole)
    product = distribute_tensor(whole.t().contiguous(), mesh, [Replicate(), Shard(0)]) @ spread
    assert torch.allclose(product.full_tensor(), whole.t() @ whole)


def test_functional_collectives_and_their_gradients(rank, size):
    import torch.distributed._functional_collectives as functional

    group = dist.group.WORLD
    assert functional.all_reduce(torch.ones(2), "sum", group).tolist() == [size] * 2
    gathered = functional.all_gather_tensor(torch.full((2,), float(rank)), 0, group)
    assert gathered.view(size, 2)[:, 0].tolist() == list(range(size))
    assert functional.reduce_scatter_tensor(torch.ones(size), "sum", 0, group).tolist() == [size]
    exchanged = functional.all_to_all_single(torch.full((size,), float(rank)), None, None, group)
    assert exchanged.tolist() == list(range(size))
    assert functional.broadcast(torch.full((2,), float(rank)), size - 1, group).tolist() == [size - 1] * 2
    parts = functional.all_reduce_coalesced([torch.ones(1), torch.ones(2)], "sum", group)
    assert [part.sum().item() for part in parts] == [size, 2 * size]

    x = torch.full((2,), float(rank), requires_grad=True)
    functional.all_gather_tensor_autograd(x, 0, group).sum().backward()
    assert x.grad.tolist() == [size] * 2


def test_functional_collectives_under_compile(rank, size):
    import torch.distributed._functional_collectives as functional

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(x):
        return functional.all_reduce(x * 2, "sum", dist.group.WORLD) + 1

    assert step(torch.ones(3)).tolist() == [2 * size + 1] * 3


@pytest.mark.ranks(2)
def test_groups_of_some_ranks(rank, size):
    ranks = [0, size - 1]
    group = dist.new_group(ranks)
    total = torch.tensor(float(rank))
    if rank in ranks:
        assert (dist.get_rank(group), dist.get_world_size(group)) == (ranks.index(rank), 2)
        dist.all_reduce(total, group=group)
        assert total.item() == size - 1
        dist.broadcast(total.fill_(rank), size - 1, group=group)  # a rank of the world
        assert total.item() == size - 1
        dist.monitored_barrier(group, timeout=timedelta(seconds=30))
    else:
        assert group is dist.GroupMember.NON_GROUP_MEMBER
    if rank in ranks:
        again = dist.new_group(ranks, use_local_synchronization=True)
        dist.barrier(again)
        part = dist.group.WORLD.split_group(ranks)
        assert part.size() == 2 and part.group_name != ""
        part.allreduce([total]).wait()
        dist.destroy_process_group(again)
        dist.destroy_process_group(group)
    own, everyone = dist.new_subgroups(1)
    assert dist.get_world_size(own) == 1 and len(everyone) == size


@pytest.mark.ranks(2)
def test_what_ranks_do_differently_raises_on_all_of_them(rank, size):
    with own_group(20) as group, pytest.raises(tutti.Error, match="all_reduce|broadcast"):
        if rank == 0:
            dist.broadcast(torch.ones(3), 0, group=group)
        else:
            dist.all_reduce(torch.ones(4), group=group)
        dist.barrier(group)


@pytest.mark.ranks(2)
def test_a_call_that_a_rank_misses_times_out(rank, size):
    with own_group(1) as group:
        if rank == 0:
            with pytest.raises(tutti.Timeout, match="barrier"):
                dist.barrier(group)
        dist.barrier()


@pytest.mark.ranks(2)
def test_waiting_may_end_before_the_call_does(rank, size):
    received = torch.empty(2)
    if rank == 0:
        work = dist.irecv(received, 1, tag=9)
        with pytest.raises(tutti.Timeout):
            work.wait(timedelta(milliseconds=50))
        assert not work.is_completed()
    dist.barrier()
    if rank == 1:
        dist.send(torch.ones(2), 0, tag=9)
    if rank == 0:
        work.wait()
        assert received.tolist() == [1, 1]
