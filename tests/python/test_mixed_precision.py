# test_mixed_precision.py: torch.autocast and GradScaler, over split layers and shared-out optimisers.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402

mp = tutti.model_parallel


@pytest.fixture
def one_group(world):
    mp.init()
    yield
    mp.destroy()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dim", [1, 0, None])
def test_parallel_linear_computes_in_the_dtype_of_autocast(dim, bias, dtype, one_group):
    torch.manual_seed(1)
    dense = torch.nn.Linear(6, 7, bias)
    layer = tutti.torch.ParallelLinear.from_linear(dense, dim=dim)
    x = torch.randn(4, 6)
    with torch.autocast("cpu", dtype):
        expected, found = dense(x), layer(x)
    assert found.dtype is expected.dtype is dtype
    torch.testing.assert_close(found, expected, rtol=0.05, atol=0.05)
    found.float().sum().backward()
    assert layer.weight.grad.dtype is torch.float32


def test_sequence_parallel_rows_do_too(one_group, size):
    torch.manual_seed(1)
    layer = tutti.torch.ParallelLinear(6, 7, dim=0, sequence_dim=0)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(torch.randn(2 * size, layer.weight.shape[1])).dtype is torch.bfloat16


def batch_of(rank):
    return torch.randn(6, 4, generator=torch.Generator().manual_seed(10 + rank))


def model_and_batch(rank):
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    x = batch_of(rank)
    return model, x


def parameters_of(model, optimizer):
    if not hasattr(optimizer, "whole_parameters"):
        return [p.detach().clone() for p in model.parameters()]
    with optimizer.whole_parameters():
        return [p.detach().clone() for p in model.parameters()]


def train(stage, rank, size, spoiled_step, spoiled_rank, *, clip=None, explicit_zero=True):
    """Three steps; in one of them one rank's loss is infinite. The parameters, scales and norms after each."""
    model, x = model_and_batch(rank)
    optimizer = tutti.torch.ZeroOptimizer(model, torch.optim.SGD, stage=stage, lr=0.1, momentum=0.9)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=100)
    history = []
    for step in range(3):
        (optimizer if explicit_zero else model).zero_grad()
        loss = model(x).square().mean()
        if step == spoiled_step and rank == spoiled_rank:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        if clip is not None:
            scaler.unscale_(optimizer)
            optimizer.clip_grad_norm_(clip)
        scaler.step(optimizer)
        scaler.update()
        history.append((parameters_of(model, optimizer), scaler.get_scale()))
    return history


def plain(size, skipped, clip=None):
    """The same with all ranks' batches in one process, without the step that is skipped."""
    model, _ = model_and_batch(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    history = []
    for step in range(3):
        optimizer.zero_grad()
        torch.stack([model(batch_of(rank)).square().mean() for rank in range(size)]).mean().backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        if step != skipped:
            optimizer.step()
        history.append([p.detach().clone() for p in model.parameters()])
    return history


@pytest.mark.parametrize("explicit_zero", [True, False], ids=["optimizer.zero_grad", "model.zero_grad"])
@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("stage", [1, 2, 3])
def test_an_infinity_on_one_rank_makes_all_skip_the_step(stage, clip, explicit_zero, rank, size):
    found = train(stage, rank, size, 1, size - 1, clip=clip, explicit_zero=explicit_zero)
    expected = plain(size, 1, clip)
    for (mine, _), theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
    assert [scale for _, scale in found] == [8.0, 4.0, 4.0]


def test_a_scaler_of_a_plain_optimiser_is_torchs_own():
    model, x = model_and_batch(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    before = [p.detach().clone() for p in model.parameters()]
    scaler.scale(model(x).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert np.isfinite(scaler.get_scale())
