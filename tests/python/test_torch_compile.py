# test_torch_compile.py: the verbs inside torch.compile(fullgraph=True): none is lost, none overtakes another.
# SPDX-License-Identifier: Apache-2.0
import collections
import tempfile

import pytest

torch = pytest.importorskip("torch")

import tutti  # noqa: E402
from torch_losses import input_of, loss_of  # noqa: E402

Pair = collections.namedtuple("Pair", "first second")


@pytest.fixture(autouse=True)
def _fresh_tracer():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.fixture
def _own_cache(monkeypatch):
    """Nothing of what inductor compiles is found from earlier, or left for later."""
    with tempfile.TemporaryDirectory() as folder, torch._inductor.config.patch(compile_threads=1):
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", folder)
        yield


@pytest.fixture
def ran(monkeypatch):
    """The texts of all calls that compiled programs run."""
    from tutti.torch import ops

    texts, run = [], ops.run

    def record(call, *args, **options):
        texts.append(call.encode())
        return run(call, *args, **options)

    monkeypatch.setattr(ops, "run", record)
    return texts


def compiled(function, backend="aot_eager", **options):
    return torch.compile(function, fullgraph=True, backend=backend, **options)


VERBS = {
    "all_reduce": (lambda n: (3,), lambda x, n: tutti.all_reduce(x)),
    "all_reduce mean": (lambda n: (3,), lambda x, n: tutti.all_reduce(x, op="mean")),
    "all_reduce premul": (lambda n: (3,), lambda x, n: tutti.all_reduce(x, op=tutti.premul(0.3))),
    "all_reduce max": (lambda n: (4,), lambda x, n: tutti.all_reduce(x, "max")),
    "reduce": (lambda n: (3,), lambda x, n: tutti.reduce(x, n - 1)),
    "reduce max": (lambda n: (3,), lambda x, n: tutti.reduce(x, op="max")),
    "broadcast": (lambda n: (3,), lambda x, n: tutti.broadcast(x, root=n - 1)),
    "all_gather": (lambda n: (2, 2), lambda x, n: tutti.all_gather(x, axis=1)),
    "all_gather stacked": (lambda n: (2,), lambda x, n: tutti.all_gather(x, axis=None)),
    "gather": (lambda n: (3,), lambda x, n: tutti.gather(x, root=n - 1)),
    "reduce_scatter": (lambda n: (2, n), lambda x, n: tutti.reduce_scatter(x, axis=1)),
    "reduce_scatter min": (lambda n: (n, 2), lambda x, n: tutti.reduce_scatter(x, op="min")),
    "scatter": (lambda n: (n, 2), lambda x, n: tutti.scatter(x, root=n - 1, axis=None)),
    "all_to_all": (lambda n: (n, 2), lambda x, n: tutti.all_to_all(x, 0, 1)),
    "scan": (lambda n: (3,), lambda x, n: tutti.scan(x)),
    "exscan": (lambda n: (3,), lambda x, n: tutti.exscan(x)),
    "permute": (lambda n: (3,), lambda x, n: tutti.permute(x, [(0, n - 1)])),
    "sendrecv": (lambda n: (3,), lambda x, n: tutti.sendrecv(x, 0, 0) if n == 1 else tutti.permute(x, [(n - 1, 0)])),
}


def run_all_verbs(inputs, size):
    return {name: function(inputs[name], size) for name, (_, function) in VERBS.items()}


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_every_verb_gives_the_same_as_eager_code_forward_and_backward(rank, size, dynamic):
    found = []
    for run in (run_all_verbs, compiled(run_all_verbs, dynamic=dynamic)):
        inputs = {name: input_of(rank, shape(size)).requires_grad_() for name, (shape, _) in VERBS.items()}
        results = run(inputs, size)
        gradients = torch.autograd.grad(sum(loss_of(y, rank) for y in results.values()), list(inputs.values()))
        found.append((results, dict(zip(inputs, gradients, strict=True))))
    (expected, expected_gradients), (got, got_gradients) = found
    for name in VERBS:
        torch.testing.assert_close(got[name], expected[name], msg=lambda text, name=name: f"{name}: {text}")
        torch.testing.assert_close(
            got_gradients[name], expected_gradients[name], msg=lambda text, name=name: f"gradient of {name}: {text}"
        )


def twenty_calls(inputs, group, rank):
    """Independent of each other; most results are not used, and the others in another order on every other rank."""
    results = [group.all_reduce(x) if i % 2 else group.all_gather(x, axis=None) for i, x in enumerate(inputs)]
    group.all_reduce(inputs[0])
    group.all_reduce(inputs[0])
    return results[::3] if rank % 2 else results[::3][::-1]


def twenty_calls_and_kernels(inputs, group, rank):
    """The same between computations, each of which inductor makes a program of."""
    return [(y * y).sum() for y in twenty_calls([x * 2 for x in inputs], group, rank)]


# Without kernels around the calls inductor needs no C++ compiler, which takes its time.
@pytest.mark.usefixtures("_own_cache")
@pytest.mark.parametrize(
    ("function", "backend"),
    [
        (twenty_calls, "aot_eager"),
        pytest.param(twenty_calls, "inductor", marks=pytest.mark.ranks(at_most=2)),
        pytest.param(twenty_calls_and_kernels, "inductor", marks=pytest.mark.soak),
    ],
)
def test_twenty_independent_calls_with_unused_results_all_run_in_order(world, rank, ran, function, backend):
    inputs = [input_of(rank, (i + 1,)).requires_grad_() for i in range(18)]
    results = compiled(function, backend)(inputs, world, rank)
    forward = list(ran)
    assert forward == [f"all_{'reduce' if i % 2 else 'gather stack=1'}" for i in range(18)] + ["all_reduce"] * 2
    sum(loss_of(y, rank) for y in results).backward()
    assert len(ran) == len(forward) + 6
    copies = [x.detach().clone().requires_grad_() for x in inputs]
    expected = function(copies, world, rank)
    sum(loss_of(y, rank) for y in expected).backward()
    for a, b in zip([*results, *(x.grad for x in inputs)], [*expected, *(x.grad for x in copies)], strict=True):
        torch.testing.assert_close(a, b)


def test_calls_without_gradients_are_kept_too(rank, size, ran):
    def function(x):
        tutti.all_reduce(x, op="product")
        tutti.all_reduce(x, op="product")
        return x + 1

    compiled(function)(torch.ones(2))
    assert ran == ["all_reduce op=product"] * 2


def test_gradients_only_in_backward(rank, size, ran):
    class Copy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return tutti.all_reduce(gradient)

    x = torch.ones(2, requires_grad=True)
    compiled(lambda x: (Copy.apply(x) * 3).sum())(x).backward()
    assert x.grad.tolist() == [3.0 * size] * 2
    assert ran == ["all_reduce"]


def test_trees_and_groups_and_methods(world, rank, size, ran):
    def function(tree, group):
        first = group.all_reduce(tree)
        pair = tutti.all_reduce(Pair(tree["b"], [tree["a"]]), group=group)
        return first, pair, world.all_gather((tree["a"], tree["b"]))

    a, b = input_of(rank, (2,)), input_of(rank, (3,))
    first, pair, gathered = compiled(function)({"b": b, "a": a}, world)
    assert list(first) == ["b", "a"]
    torch.testing.assert_close(first["a"], tutti.all_reduce(a))
    assert type(pair) is Pair
    torch.testing.assert_close(pair.first, first["b"])
    torch.testing.assert_close(gathered[1], tutti.all_gather(b))
    assert ran == ["all_reduce", "all_reduce", "all_gather", "all_gather"]


def test_one_program_serves_many_lengths(rank, size):
    from torch._dynamo.testing import CompileCounterWithBackend

    backend = CompileCounterWithBackend("aot_eager")
    program = compiled(lambda x: tutti.all_gather(tutti.all_reduce(x) * 2), backend, dynamic=True)
    for length in range(2, 9):
        x = input_of(rank, (length, 3))
        torch.testing.assert_close(program(x), tutti.all_gather(tutti.all_reduce(x) * 2))
    assert backend.frame_count == 1


def test_rank_and_size_of_a_group_are_constants_of_the_program(world, rank, size):
    def function(x, group):
        shifted = group.permute(x, [(r, (r + 1) % group.size) for r in range(group.size)])
        return shifted * group.rank

    got = compiled(function)(input_of(rank, (3,)), world)
    torch.testing.assert_close(got, input_of((rank - 1) % size, (3,)) * rank)


REFUSED = {
    "async_op": lambda x: tutti.all_reduce(x, async_op=True).wait(),
    "out=": lambda x: tutti.all_reduce(x, out=x),
    "product": lambda x: tutti.all_reduce(x, op="product"),
    "sizes=": lambda x: tutti.all_gather(x, uneven=True),
    "recv_sizes=": lambda x: tutti.all_to_all(x, split_sizes=[2] + [0] * (tutti.world().size - 1)),
    "every rank passes a tensor": lambda x: tutti.broadcast(None),
    "barrier": lambda x: tutti.barrier() or x,
    "isend": lambda x: tutti.isend(x.detach(), dst=0).wait(),
    "cond": lambda x: torch.cond(x.sum() > 0, lambda x: tutti.all_reduce(x), lambda x: x.clone(), (x,)),
    "checkpoint": lambda x: torch.utils.checkpoint.checkpoint(tutti.all_reduce, x, use_reentrant=False),
    "nosuch": lambda x: tutti.all_reduce(x, op="nosuch"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_compiled_raises_while_tracing(rank, size, ran, what):
    with pytest.raises(Exception, match=what) as caught:
        compiled(REFUSED[what])(torch.ones(2, requires_grad=True))
    assert isinstance(caught.value, tutti.Error) or what in ("cond", "recv_sizes=")
    assert ran == []
    assert tutti.all_reduce(torch.ones(1)).item() == size


@pytest.mark.ranks(at_most=2)
def test_without_fullgraph_it_runs_between_two_programs(rank, size):
    def function(x):
        work = tutti.all_reduce(x * 2, async_op=True)
        return work.wait() + 1

    got = torch.compile(function, backend="aot_eager")(torch.ones(2))
    assert got.tolist() == [2.0 * size + 1] * 2


def test_shapes_that_do_not_fit_raise_while_tracing(rank, size, ran):
    with pytest.raises(Exception, match="reduce_scatter"):
        compiled(lambda x: tutti.reduce_scatter(x, axis=5))(torch.ones(2 * size))
    assert ran == []


@pytest.mark.ranks(at_most=2)
def test_the_operator_keeps_torchs_rules(world, rank, size):
    for text, requires_grad in (("all_reduce", False), ("all_gather", True), ("reduce_scatter op=mean", True)):
        x = input_of(rank, (size, 2)).requires_grad_(requires_grad)
        torch.library.opcheck(torch.ops.tutti.call.default, (x, text, None, world.id, requires_grad))


def test_shapes_of_fake_tensors_are_those_of_real_ones(world, rank, size):
    from torch._subclasses.fake_tensor import FakeTensorMode

    for name, (shape, function) in VERBS.items():
        x = input_of(rank, shape(size))
        with FakeTensorMode() as mode:
            fake = function(mode.from_tensor(x), size)
        real = function(x, size)
        assert (fake.shape, fake.dtype, fake.stride()) == (real.shape, real.dtype, real.stride()), name


def test_a_program_whose_group_is_gone_says_so(world, rank, size):
    group = world.split(color=0)
    text = group.id
    x = torch.ones(2)
    assert torch.ops.tutti.call(x, "all_reduce", None, text, False).tolist() == [size] * 2
    del group
    with pytest.raises(tutti.InvalidArgument, match="closed"):
        torch.ops.tutti.call(x, "all_reduce", None, text, False)


@pytest.mark.ranks(2)
def test_disagreement_on_taking_part_is_a_mismatch_in_forward(world, rank):
    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch):
        compiled(lambda x: group.all_reduce(x))(torch.ones(2, requires_grad=rank != 0))


@pytest.mark.ranks(at_most=2)
def test_compiled_training_steps_learn_like_eager_code(rank, size):
    def train(step):
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for i in range(4):
            x = input_of(rank + 10 * i, (5, 4)).float()
            optimizer.zero_grad()
            step(model, x).backward()
            optimizer.step()
        return [p.detach() for p in model.parameters()]

    def step(model, x):
        hidden = model(x)
        return (tutti.all_reduce(hidden, op="mean") - 1).square().mean() + hidden.square().mean()

    for got, expected in zip(train(compiled(step)), train(step), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)
