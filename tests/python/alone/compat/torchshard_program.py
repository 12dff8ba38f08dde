# torchshard_program.py: a program for TorchShard: the functions, a split model that learns like a whole one, its state.
# SPDX-License-Identifier: Apache-2.0
import torch
import torch.distributed
import torchshard as ts

torch.distributed.init_process_group(backend="gloo")
assert not ts.distributed.is_initialized()
ts.distributed.init_process_group(group_size=2)
rank, size = ts.distributed.get_rank(), ts.distributed.get_group_size()
assert ts.distributed.is_initialized() and size == ts.distributed.get_world_size() == 2

# The examples of its documentation.
x = torch.arange(48.0).reshape(6, 8)
assert ts.distributed.scatter(x, dim=0).shape == (3, 8) and ts.distributed.scatter(x, dim=1).shape == (6, 4)
assert ts.distributed.gather(x, dim=0).shape == (12, 8) and ts.distributed.gather(x, dim=1).shape == (6, 16)
tensor = torch.arange(2, dtype=torch.int64) + 1 + 2 * rank
ts.distributed.reduce(tensor)
assert tensor.tolist() == [4, 6]
y = torch.ones(3, requires_grad=True)
ts.distributed.copy(y).sum().backward()
assert y.grad.tolist() == [2, 2, 2]
first, second = ts.slice(torch.empty(3, 10), 2, dim=-1)
assert first.shape == second.shape == (3, 5)


def whole_model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Embedding(8, 4), torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 10))


class Split(torch.nn.Module):
    def __init__(self):
        super().__init__()
        whole = whole_model()
        self.embed = ts.nn.ParallelEmbedding.convert_parallel_embedding(whole[0], dim=0)
        self.up = ts.nn.ParallelLinear.convert_parallel_linear(whole[1], dim=-1)
        self.act = torch.nn.Sequential(torch.nn.ReLU(), ts.nn.RegisterParallelDim(dim=-1))
        self.down = ts.nn.ParallelLinear(6, 4, dim=0)
        self.head = ts.nn.ParallelLinear.convert_parallel_linear(whole[3], dim=1)

    def forward(self, x):
        # The head wants the whole activations, and leaves its classes split.
        return self.head(ts.distributed.gather(self.act(self.up(self.embed(x))), dim=-1))


reference, split = whole_model(), Split()
assert split.down(torch.ones(5, 6)).shape == (5, 4)
assert ts.register_ddp_parameters_to_ignore(split) == ["embed.weight", "up.weight", "up.bias", "down.weight", "down.bias", "head.weight", "head.bias"]
assert split.up.weight.shape == (3, 4) and ts.get_parallel_dim(split.up.weight) == -1
tokens, targets = torch.randint(8, (16,)), torch.randint(10, (16,))
criterion = ts.nn.ParallelCrossEntropyLoss()
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (reference, split)]
for step in range(5):
    losses = [torch.nn.functional.cross_entropy(reference(tokens), targets), criterion(split(tokens), targets)]
    for loss, optimizer in zip(losses, optimizers):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert torch.allclose(losses[0], losses[1], atol=1e-5), losses

state = ts.collect_state_dict(split, split.state_dict())
for ours, theirs in (("embed.weight", "0.weight"), ("up.weight", "1.weight"), ("up.bias", "1.bias"), ("head.weight", "3.weight")):
    assert torch.allclose(state[ours], reference.state_dict()[theirs], atol=1e-5), ours
fresh = Split()
fresh.load_state_dict(ts.relocate_state_dict(fresh, state))
assert torch.equal(fresh(tokens), split(tokens))
ts.nn.init.shard_init_helper_(torch.nn.init.constant_, fresh.up.weight, val=0.5)
assert (fresh.up.weight == 0.5).all()
torch.manual_seed(rank)  # what rank 0 makes counts, also for a layer that is not split
for dim in (None, 0, 1):
    layer = ts.nn.ParallelLinear(4, 6, dim=dim)
    ts.nn.init.shard_init_helper_(torch.nn.init.normal_, layer.weight)
    made = ts.distributed.gather(layer.weight.detach(), 1 - dim) if dim is not None else layer.weight.detach()
    assert torch.equal(made, ts.distributed.gather(made, 0)[:6]), dim

# What was converted stays split under DistributedDataParallel, which would make all parts those of rank 0.
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(4, 6), torch.nn.Linear(6, 10)

    def forward(self, x):
        return self.head(torch.relu(self.body(ts.distributed.gather(x, dim=0))))


torch.manual_seed(0)
net = Net()
ts.nn.ParallelLinear.convert_parallel_linear(net, dim=-1)
net.body = torch.nn.Linear(4, 6)
ts.register_ddp_parameters_to_ignore(net)
before = net.head.weight.detach().clone()
net = torch.nn.parallel.DistributedDataParallel(net)
assert torch.equal(net.module.head.weight, before)
assert not torch.equal(before, ts.distributed.gather(before, 0)[:5] if rank else ts.distributed.gather(before, 0)[5:])
ParallelBefore = ts.nn.ParallelLinear.convert_parallel_linear(torch.nn.Sequential(torch.nn.Linear(2, 4)), dim=0)
assert ParallelBefore._ddp_params_and_buffers_to_ignore == ["0.weight", "0.bias"]
assert getattr(ParallelBefore[0].weight, ts._PARALLEL_DIM) == 0
criterion(net(torch.ones(3, 4)), torch.randint(10, (6,))).backward()
ts.distributed.destroy_process_group()
print("torchshard: loss", round(losses[1].item(), 4))
