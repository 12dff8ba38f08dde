# test_tensor_parallel.py: torch modules over several ranks equal the modules they stand for.
# SPDX-License-Identifier: Apache-2.0

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tutti  # noqa: E402
import tutti.torch  # noqa: E402

mp = tutti.model_parallel


@pytest.fixture(autouse=True)
def one_group(world):
    mp.init()
    yield
    mp.destroy()


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-5)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(13, 6)
        self.up = nn.Linear(6, 11)
        self.down = nn.Linear(11, 6, bias=False)
        self.head = nn.Linear(6, 13)

    def forward(self, ids):
        h = self.embed(ids)
        h = h + self.down(torch.tanh(self.up(h)))
        return self.head(h)


def dense_block():
    torch.manual_seed(3)
    return Block()


PLANS = {
    "whole": {"embed": "rows", "up": "columns", "down": "rows", "head": "columns"},
    "split between": {"embed": {"dim": 1}, "up": "columns, split", "down": "rows, split"},
}


@pytest.mark.parametrize("plan", PLANS)
def test_a_parallelized_model_equals_the_dense_one(plan, size):
    model, split = dense_block(), tutti.torch.parallelize(dense_block(), PLANS[plan])
    ids = torch.arange(20).reshape(4, 5) % 13
    expected, found = model(ids), split(ids)
    close(found, expected)
    expected.square().mean().backward()
    found.square().mean().backward()
    whole = tutti.torch.collect_state_dict(split)
    for name, parameter in model.named_parameters():
        close(whole[name], parameter.detach())
    for name, module in split.named_modules():
        for own_name, axis in getattr(module, "split_axes", {}).items():
            grad = mp.gather(getattr(module, own_name).grad, axis, total=module.whole_lengths[own_name])
            close(grad, model.get_parameter(f"{name}.{own_name}").grad)


@pytest.mark.parametrize("dim", (0, 1, -1, None))
def test_a_seed_gives_the_same_layer_on_any_number_of_ranks(dim):
    torch.manual_seed(5)
    linear = nn.Linear(7, 9)
    torch.manual_seed(5)
    parallel = tutti.torch.ParallelLinear(7, 9, dim=dim)
    x = torch.randn(3, 7, generator=torch.Generator().manual_seed(1))
    close(parallel(x), linear(x))


def test_sequence_parallel_layers(rank, size):
    torch.manual_seed(6)
    up, down = nn.Linear(4, 8), nn.Linear(8, 4)
    options = {"sequence_dim": 1}
    parallel_up = tutti.torch.ParallelLinear.from_linear(up, dim=1, **options)
    parallel_down = tutti.torch.ParallelLinear.from_linear(down, dim=0, **options)
    x = torch.randn(2, 7, 4, generator=torch.Generator().manual_seed(2))
    whole = x.clone().requires_grad_()
    expected = down(torch.tanh(up(whole)))
    expected.square().sum().backward()
    own = mp.scatter(x, 1).requires_grad_()
    found = parallel_down(torch.tanh(parallel_up(own)))
    close(mp.gather(found.detach(), 1, total=7), expected.detach())
    found.square().sum().backward()  # each rank has some of the positions: the losses add up
    close(mp.gather(own.grad, 1, total=7), whole.grad)
    close(parallel_down.bias.grad, down.bias.grad)
    close(mp.gather(parallel_up.weight.grad, 0, total=8), up.weight.grad)


def test_parallel_cross_entropy(size):
    logits = torch.randn(6, 10, generator=torch.Generator().manual_seed(0)).requires_grad_()
    targets = torch.tensor([0, 9, 3, -100, 4, 5])
    expected = nn.functional.cross_entropy(logits, targets)
    expected.backward()
    own = mp.scatter(logits.detach(), -1).requires_grad_()
    found = tutti.torch.parallel_cross_entropy(own, targets, classes=10)
    found.backward()
    close(found.detach(), expected.detach())
    close(own.grad, mp.scatter(logits.grad, -1))


def test_states_move_between_numbers_of_ranks(world, rank, size):
    model = dense_block()
    split = tutti.torch.parallelize(dense_block(), PLANS["whole"])
    with torch.no_grad():
        for parameter in split.parameters():
            parameter.mul_(2)
    state = tutti.torch.collect_state_dict(split)
    model.load_state_dict(state)  # on one rank
    ids = torch.arange(13)[None]
    close(split(ids), model(ids))
    halves = world.split(rank % 2)  # fewer ranks, and one
    for fewer in (halves, world.split(rank)):
        moved = tutti.torch.parallelize(dense_block(), PLANS["whole"], group=fewer)
        tutti.torch.load_collected_state_dict(moved, state)
        close(moved(ids), model(ids))
        again = tutti.torch.collect_state_dict(moved)
        assert again.keys() == state.keys() and all(torch.equal(again[name], state[name]) for name in state)
    back = tutti.torch.parallelize(dense_block(), PLANS["whole"])  # and from one rank's state to all
    tutti.torch.load_collected_state_dict(back, again)
    close(back(ids), model(ids))


def test_norms_count_split_parameters_once(size):
    model, split = dense_block(), tutti.torch.parallelize(dense_block(), PLANS["whole"])
    ids = torch.arange(13)[None]
    (model(ids).square().mean() * 50).backward()
    (split(ids).square().mean() * 50).backward()
    expected = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    found = tutti.torch.clip_grad_norm_(split.parameters(), 0.5)
    assert expected > 0.5 and found.item() == pytest.approx(expected.item(), rel=1e-4)
    close(split.head.bias.grad, mp.scatter(model.head.bias.grad, 0))


def test_double_backward(rank, size):
    x = torch.ones(3, requires_grad=True)
    (g,) = torch.autograd.grad(mp.reduce(x**3).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad(g.sum(), x)
    close(gg, 6 * torch.ones(3))


def test_what_cannot_be_split_is_refused():
    with pytest.raises(tutti.InvalidArgument, match="no module"):
        tutti.torch.parallelize(dense_block(), {"nobody": "rows"})
    with pytest.raises(tutti.InvalidArgument, match="none of"):
        tutti.torch.parallelize(dense_block(), {"up": "diagonally"})
    with pytest.raises(tutti.InvalidArgument, match="only Linear"):
        tutti.torch.parallelize(nn.Sequential(nn.Conv1d(1, 1, 1)), {"0": "rows"})
    with pytest.raises(tutti.InvalidArgument, match="dim=3"):
        tutti.torch.ParallelLinear(2, 2, dim=3)
