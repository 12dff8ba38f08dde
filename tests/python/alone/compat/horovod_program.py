# horovod_program.py: a program for horovod.torch: training that equals one process with the whole batch, and every function.
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.nn.functional as F
import horovod.torch as hvd

hvd.init()
rank, size = hvd.rank(), hvd.size()
assert size == 2 and hvd.local_rank() == rank and hvd.local_size() == 2 and hvd.cross_size() == 1

# Training: the loss of two ranks with half a batch each is that of one process with all of it.
data, target = torch.randn(32, 4, generator=torch.Generator().manual_seed(1)), torch.arange(32) % 3


def make():
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))


torch.manual_seed(rank)  # other weights on each rank, until they are broadcast
model = make()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
torch.manual_seed(0)
whole = make()
alone = torch.optim.SGD(whole.parameters(), lr=0.1, momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=3)
sampler = torch.utils.data.distributed.DistributedSampler(data, num_replicas=size, rank=rank, shuffle=False)
mine = list(sampler)
for step in range(4):
    optimizer.zero_grad()
    F.cross_entropy(model(data[mine]), target[mine]).backward()
    if step == 3:  # gradients clipped between
        optimizer.synchronize()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 100.0)
        with optimizer.skip_synchronize():
            optimizer.step()
    else:
        optimizer.step()
    scheduler.step()
    alone.zero_grad()
    loss = F.cross_entropy(whole(data), target)
    loss.backward()
    for group in alone.param_groups:
        group["lr"] = 0.1 if step < 3 else 0.01
    alone.step()
for ours, theirs in zip(model.parameters(), whole.parameters()):
    assert torch.allclose(ours, theirs, atol=1e-6)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)  # with momentum in it

# The functions.
x = torch.full((3,), 1.0 + rank)
assert hvd.allreduce(x, name="x").tolist() == [1.5] * 3
assert hvd.allreduce(x, op=hvd.Sum).tolist() == hvd.allreduce(x, average=False).tolist() == [3.0] * 3
assert hvd.allreduce(x, op=hvd.Max, compression=hvd.Compression.fp16).tolist() == [2.0] * 3
assert hvd.allreduce(x, op=hvd.Sum, prescale_factor=2.0, postscale_factor=0.5).tolist() == [3.0] * 3
assert hvd.allreduce(torch.tensor([1 + rank]), op=hvd.Average).tolist() == [1]
in_place = x.clone()
hvd.allreduce_(in_place, op=hvd.Product)
assert in_place.tolist() == [2.0] * 3
handle = hvd.allreduce_async_(in_place, op=hvd.Sum)
assert hvd.synchronize(handle).tolist() == [4.0] * 3 and hvd.poll(handle)
assert [each.tolist() for each in hvd.grouped_allreduce([x, x * 2], op=hvd.Sum)] == [[3.0] * 3, [6.0] * 3]
assert hvd.allgather(torch.arange(rank + 1)).tolist() == [0, 0, 1]
assert hvd.allgather(torch.tensor(float(rank))).tolist() == [0.0, 1.0]
assert hvd.broadcast(x, root_rank=1).tolist() == [2.0] * 3
hvd.broadcast_(in_place.fill_(rank), root_rank=1)
assert in_place.tolist() == [1.0] * 3
rows, received = hvd.alltoall(torch.arange(3) + 10 * rank, splits=[1, 2] if rank == 0 else [2, 1])
assert rows.tolist() == ([0, 10, 11] if rank == 0 else [1, 2, 12]) and received.tolist() == ([1, 2] if rank == 0 else [2, 1])
assert hvd.reducescatter(torch.arange(3.0), op=hvd.Sum).tolist() == ([0.0, 2.0] if rank == 0 else [4.0])
grouped = [hvd.grouped_allreduce_async([x, x * 2], op=hvd.Sum), hvd.grouped_allreduce_async_([x.clone()], op=hvd.Sum)]
assert [[each.tolist() for each in hvd.synchronize(handle)] for handle in grouped] == [[[3.0] * 3, [6.0] * 3], [[3.0] * 3]]
gathered = hvd.grouped_allgather([torch.arange(rank + 1), torch.ones(1)])
assert [each.tolist() for each in gathered] == [[0, 0, 1], [1.0, 1.0]]
assert [len(each) for each in hvd.synchronize(hvd.grouped_allgather_async([torch.arange(rank + 1)]))] == [3]
rows, received = hvd.synchronize(hvd.alltoall_async(torch.arange(3) + 10 * rank, splits=[1, 2] if rank == 0 else [2, 1]))
assert len(rows) == 3 and received.tolist() == ([1, 2] if rank == 0 else [2, 1])
assert hvd.synchronize(hvd.reducescatter_async(torch.arange(4.0), op=hvd.Sum)).tolist() == ([0.0, 2.0] if rank == 0 else [4.0, 6.0])
assert [each.tolist() for each in hvd.grouped_reducescatter([torch.ones(2), torch.ones(2)], op=hvd.Sum)] == [[2.0], [2.0]]
assert [len(each) for each in hvd.synchronize(hvd.grouped_reducescatter_async([torch.ones(2)]))] == [1]
try:
    hvd.join()
except hvd.HorovodInternalError:
    pass
assert hvd.broadcast_object({"epoch": 3} if rank == 0 else None, root_rank=0) == {"epoch": 3}
assert hvd.allgather_object(rank) == [0, 1]
only = hvd.add_process_set([rank])
assert hvd.allreduce(x, op=hvd.Sum, process_set=only).tolist() == x.tolist()
weight = torch.ones(2, requires_grad=True)
hvd.allreduce(weight * (rank + 1), op=hvd.Average).sum().backward()
assert weight.grad.tolist() == [rank + 1.0] * 2, weight.grad
hvd.barrier()
hvd.shutdown()
print("horovod: loss", round(loss.item(), 4))
