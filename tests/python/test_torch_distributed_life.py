# test_torch_distributed_life.py: process groups of backend "tutti" begin, end and begin again, alone and beside others.
# SPDX-License-Identifier: Apache-2.0
import os
import threading

import pytest

torch = pytest.importorskip("torch")
import torch.distributed as dist  # noqa: E402

import tutti  # noqa: E402
import tutti.torch  # noqa: E402
from torch_groups import default_group, shared_store  # noqa: E402


def total_of_ones(group=None):
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=group)
    return tensor.item()


def test_a_default_group_can_be_made_again_and_again(size):
    for _ in range(3):
        with default_group() as group:
            assert total_of_ones() == size
        with pytest.raises(tutti.Error, match="left the job"):
            group.barrier()


def test_a_store_may_serve_twice(rank, size):
    """torchrun's does: the second world must not find the first one's keys."""
    store, _, _ = shared_store()
    for _ in range(2):
        dist.init_process_group("tutti", store=store, rank=rank, world_size=size)
        assert total_of_ones() == size
        dist.destroy_process_group()


def test_a_group_beside_another_backends_default_group(rank, size):
    with default_group("gloo"):
        group = dist.new_group(backend="tutti")
        assert dist.get_backend(group) == "tutti" and total_of_ones(group) == size and total_of_ones() == size
        with pytest.raises(tutti.InvalidArgument, match="backend tutti"):
            tutti.torch.group_of()
        dist.monitored_barrier()  # gloo's own, still


def test_the_world_of_tutti_and_that_of_torch_are_two(world, rank, size):
    with default_group():
        x = torch.full((3,), float(rank))
        assert tutti.all_reduce(x, group=world).tolist() == tutti.all_reduce(x, group=tutti.torch.group_of()).tolist()


def test_abort_ends_the_calls_of_all_ranks(rank, size):
    with default_group():
        group = dist.new_group()
        if rank == 0:
            group.abort()
        with pytest.raises(tutti.Aborted, match=r"abort\(\) on rank 0"):
            while True:
                dist.barrier(group)
        assert total_of_ones() == size


@pytest.mark.ranks(2)
def test_threads_use_one_group_for_messages(rank, size):
    """A message may be sent while another thread waits for one."""
    with default_group():
        received, after, before = torch.empty(4), (rank + 1) % size, (rank - 1) % size
        receiver = threading.Thread(target=lambda: dist.recv(received, before, tag=2))
        receiver.start()
        dist.send(torch.full((4,), float(rank)), after, tag=2)
        receiver.join(45)
        assert received.tolist() == [before] * 4


@pytest.mark.skipif(
    os.environ.get("TUTTI_TORCH_BACKEND") == "cpp", reason="torch answers for meta tensors before it asks a backend in C++"
)
def test_a_tensor_that_is_not_the_cpus_is_refused(rank, size):
    with default_group(), pytest.raises(tutti.Unsupported, match="meta"):
        dist.all_reduce(torch.ones(3, device="meta"))


def test_lists_of_the_wrong_length_are_refused_and_the_group_stays_usable(rank, size):
    with default_group():
        with pytest.raises(ValueError, match=f"a list of {size} tensors"):
            dist.all_gather([torch.empty(2)] * (size + 1), torch.ones(2))
        with pytest.raises(ValueError, match="3 elements where 2 belong"):
            dist.all_gather([torch.empty(2)] * size, torch.ones(3))
        assert total_of_ones() == size
