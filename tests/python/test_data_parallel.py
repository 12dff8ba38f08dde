# test_data_parallel.py: training on many ranks is training on one, with gradients averaged on the way.
# SPDX-License-Identifier: Apache-2.0
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tutti  # noqa: E402
import tutti.torch  # noqa: E402
from tutti.torch import DataParallel  # noqa: E402


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 3))


def data(count=24):
    random = torch.Generator().manual_seed(1)
    return torch.randn(count, 6, generator=random), torch.randn(count, 3, generator=random)


def close(found, expected, rtol=1e-4, atol=1e-6):
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol)


def same_everywhere(module):
    flat = torch.cat([p.detach().reshape(-1) for p in module.parameters()]).numpy()
    every = tutti.all_gather(flat, axis=None)
    assert (every == every[0]).all()


def train(model, optimizer, steps, batch, weigh=None):
    x, y = data()
    losses = []
    for step in range(steps):
        own_x, own_y = batch(x, y, step)
        optimizer.zero_grad()
        if weigh is not None:
            weigh(len(own_x))
        loss = nn.functional.mse_loss(model(own_x), own_y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("bucket_bytes", (1, 600, 1 << 20))
def test_training_equals_one_process(bucket_bytes, rank, size):
    alone, shared = network(), network(seed=rank)  # rank 0's parameters are used
    model = DataParallel(shared, bucket_bytes=bucket_bytes, first_bucket_bytes=bucket_bytes)
    x, y = data()
    train(alone, torch.optim.SGD(alone.parameters(), 0.1, momentum=0.9), 6, lambda x, y, s: (x[:24], y[:24]))
    train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9), 6,
          lambda x, y, s: (np.array_split(x, size)[rank], np.array_split(y, size)[rank]),
          weigh=model.weigh)
    for own, expected in zip(shared.parameters(), alone.parameters()):
        close(own, expected)
    same_everywhere(model)
    assert sum(len(bucket.parameters) for bucket in model.buckets) == 6
    assert len(model.buckets) == {1: 6, 600: 4, 1 << 20: 1}[bucket_bytes] or bucket_bytes == 600


def test_it_gives_the_same_bits_in_every_run(rank, size):
    def once():
        model = DataParallel(network(), bucket_bytes=600, first_bucket_bytes=1)
        train(model, torch.optim.Adam(model.parameters(), 0.01), 4, lambda x, y, s: (x[rank::size], y[rank::size]))
        return torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    assert torch.equal(once(), once())


def test_no_sync_adds_up_and_the_next_backward_averages_all(rank, size):
    alone, model = network(), DataParallel(network())
    x, y = data()
    halves = [(x[:12], y[:12]), (x[12:], y[12:])]
    for whole_x, whole_y in halves:
        nn.functional.mse_loss(alone(whole_x), whole_y).backward()
    own = [(hx[rank::size], hy[rank::size]) for hx, hy in halves]
    with model.no_sync():
        nn.functional.mse_loss(model(own[0][0]), own[0][1]).backward()
    local = [p.grad.clone() for p in model.parameters()]
    nn.functional.mse_loss(model(own[1][0]), own[1][1]).backward()
    if 12 % size == 0:
        for found, expected in zip(model.parameters(), alone.parameters()):
            close(found.grad, expected.grad)
    every = tutti.all_gather(local[0].numpy(), axis=None)
    assert size == 1 or not (every == every[0]).all()  # nothing was averaged within no_sync


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right, self.never = nn.Linear(2, 1), nn.Linear(2, 1), nn.Linear(2, 1)

    def forward(self, x, left):
        return self.left(x) if left else self.right(x)


def test_parameters_that_a_rank_does_not_use_count_as_zero_and_those_nobody_uses_keep_none(rank, size):
    torch.manual_seed(0)
    model = DataParallel(Branches())
    x = torch.ones(1, 2)
    for _ in range(3):
        model.zero_grad()
        model(x, left=rank == 0).sum().backward()
        close(model.module.left.weight.grad, torch.full((1, 2), 1 / size))
        if size > 1:
            close(model.module.right.bias.grad, torch.full((1,), (size - 1) / size))
        assert model.module.never.weight.grad is None


def test_buffers_are_those_of_rank_0(rank, size):
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    model = DataParallel(module)
    for _ in range(3):
        model(torch.randn(4, 2, generator=torch.Generator().manual_seed(rank)) + rank).sum().backward()
    model(torch.zeros(4, 2))
    counts = tutti.all_gather(module[1].num_batches_tracked.numpy().reshape(1))
    assert (counts == 4).all()
    module.train()
    model._prepare()
    means = tutti.all_gather(module[1].running_mean.numpy(), axis=None)
    assert (means == means[0]).all()


def test_mixed_dtypes_and_frozen_parameters(rank, size):
    model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3).double(), nn.Linear(3, 3).bfloat16(), nn.Linear(3, 3)])
    model[3].requires_grad_(False)
    DataParallel(model)
    total = sum(layer(torch.full((1, 3), rank + 1.0, dtype=layer.weight.dtype)).sum().double() for layer in model[:3])
    total.backward()
    mean = (size + 1) / 2
    for layer in model[:3]:
        close(layer.weight.grad.float(), torch.full((3, 3), mean), rtol=1e-2)
    assert model[3].weight.grad is None


def test_ranks_with_different_numbers_of_batches_join(rank, size):
    model = DataParallel(network())
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    x, y = data()
    steps = 2 + 2 * rank
    with model.join():
        for step in range(steps):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x[rank::size]), y[rank::size]).backward()
            optimizer.step()
    same_everywhere(model)
    # What it should be: in step s, the mean over the ranks that have a batch.
    alone = network()
    optimizer = torch.optim.SGD(alone.parameters(), 0.05)
    for step in range(2 + 2 * (size - 1)):
        active = [r for r in range(size) if step < 2 + 2 * r]
        optimizer.zero_grad()
        (sum(nn.functional.mse_loss(alone(x[r::size]), y[r::size]) for r in active) / len(active)).backward()
        optimizer.step()
    for found, expected in zip(model.parameters(), alone.parameters()):
        close(found, expected)
    assert tutti.all_reduce(1) == size


@pytest.mark.parametrize("hook", ("bf16", "fp16", "int8", "powersgd"))
def test_fewer_bits_on_the_wire_train_about_as_well(hook, rank, size):
    if hook == "powersgd":
        from tutti.torch.compression import PowerSgd

        hook = PowerSgd(rank=2, start_step=2)
    plain, narrow = DataParallel(network()), DataParallel(network(), hook=hook, bucket_bytes=600, first_bucket_bytes=1)
    batch = lambda x, y, s: (x[rank::size], y[rank::size])  # noqa: E731
    first = train(plain, torch.optim.SGD(plain.parameters(), 0.2), 40, batch)
    second = train(narrow, torch.optim.SGD(narrow.parameters(), 0.2), 40, batch)
    assert np.mean(second[-5:]) < 0.8 * np.mean(second[:2])
    assert np.mean(second[-5:]) < 1.15 * np.mean(first[-5:]) + 0.02
    same_everywhere(narrow)


def test_error_feedback_gives_the_true_sum_over_time(rank, size):
    layer = nn.Linear(700, 1, bias=False)
    model = DataParallel(layer, hook="int8")
    x = torch.randn(700, generator=torch.Generator().manual_seed(rank)) * 10.0 ** torch.arange(-2, 5).repeat_interleave(100)
    total = torch.zeros(700)
    for _ in range(60):
        model.zero_grad()
        model(x[None]).sum().backward()
        total += layer.weight.grad[0]
    mean = torch.from_numpy(tutti.all_reduce(x.numpy(), op="mean"))
    step = mean.abs().view(7, 100).amax(1).repeat_interleave(100)
    assert ((total / 60 - mean).abs() <= step * 0.05 + 1e-3).float().mean() > 0.9


def test_a_hook_of_ones_own(rank, size):
    seen = []

    def hook(bucket):
        seen.append((bucket.index, len(bucket.parameters), bucket.factor))
        work = tutti.all_reduce(bucket.tensor, op="max", out=bucket.tensor, group=bucket.group, async_op=True)
        return work.wait

    layer = nn.Linear(2, 1, bias=False)
    model = DataParallel(layer, hook=hook)
    model(torch.full((1, 2), float(rank))).sum().backward()
    assert seen == [(0, 1, None)] and layer.weight.grad.tolist() == [[size - 1.0] * 2]
    with pytest.raises(tutti.InvalidArgument, match="hook"):
        DataParallel(nn.Linear(1, 1), hook="zip")


def test_buckets_travel_while_backward_computes():
    layers = [nn.Linear(256, 256) for _ in range(8)]
    model = DataParallel(nn.Sequential(*layers), bucket_bytes=256 * 256 * 4, first_bucket_bytes=1)
    timeline = model.timeline

    def meet(gradient):
        """In the middle of backward: ranks that share a core would else compute one after the other."""
        tutti.barrier()
        deadline = time.monotonic() + 20
        while not timeline.passages[0].is_finished and time.monotonic() < deadline:
            model._look()

    layers[2].register_forward_hook(lambda module, inputs, output: output.register_hook(meet) and None)
    for _ in range(3):
        model.zero_grad()
        model(torch.ones(64, 256)).sum().backward()
    assert len(timeline.passages) >= 8 and all(p.started <= p.finished for p in timeline.passages)
    first = timeline.passages[0]
    assert first.finished < timeline.computed_at and timeline.hidden_bytes >= first.nbytes  # over before backward was
    assert f"{first.finished * 1e3:.2f} ms, under backward" in str(timeline)
    assert timeline.overlapped_bytes > 0.8 * sum(p.nbytes for p in timeline.passages)
    assert [p.bucket for p in timeline.passages] == sorted(p.bucket for p in timeline.passages)
    assert "bucket 0" in str(timeline)


def test_buckets_follow_the_order_of_the_first_step(rank, size):
    class Backwards(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(2, 2), nn.Linear(2, 2)  # registered against the order of use

        def forward(self, x):
            return self.last(self.first(x))

    model = DataParallel(Backwards(), bucket_bytes=1, first_bucket_bytes=1)
    for _ in range(2):
        model(torch.ones(1, 2)).sum().backward()
    names = {id(p): name for name, p in model.module.named_parameters()}
    order = [names[id(bucket.parameters[0])].split(".")[0] for bucket in model.buckets]
    assert order == ["last", "last", "first", "first"]


def test_clipping_by_the_norm_of_all(rank, size):
    model, alone = DataParallel(network()), network()
    x, y = data()
    nn.functional.mse_loss(model(x), y).backward()
    nn.functional.mse_loss(alone(x), y).backward()
    expected = nn.utils.clip_grad_norm_(alone.parameters(), 0.01)
    assert model.clip_grad_norm_(0.01).item() == pytest.approx(expected.item(), rel=1e-5)
    for found, wanted in zip(model.parameters(), alone.parameters()):
        close(found.grad, wanted.grad)


@pytest.mark.ranks(2)
def test_models_that_differ_are_refused_by_name(world, rank, size):
    own = world.split(0)
    odd = nn.Sequential(nn.Linear(2, 2 + (rank == size - 1)))
    with pytest.raises(tutti.Mismatch, match="0.weight|elsewhere"):
        DataParallel(odd, group=own)
    assert tutti.all_reduce(1) == size


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(tutti.InvalidArgument, match="requires a gradient"):
        DataParallel(nn.Linear(1, 1).requires_grad_(False))
    model = DataParallel(nn.Linear(1, 1))
    with pytest.raises(tutti.InvalidArgument, match="less than none"):
        model.weigh(-1)
