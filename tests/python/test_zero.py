# test_zero.py: sharing out state, gradients and parameters changes where they are, not what they are.
# SPDX-License-Identifier: Apache-2.0
import kinds
import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

import tutti  # noqa: E402
import tutti.torch  # noqa: E402
from tutti.torch import ZeroOptimizer  # noqa: E402

OPTIMIZERS = {
    "AdamW": (torch.optim.AdamW, {"lr": 0.01, "weight_decay": 0.1}),
    "SGD": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    "whole": (torch.optim.Adafactor, {"lr": 0.05}),
}


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 17), nn.Tanh(), nn.Linear(17, 9), nn.Tanh(), nn.Linear(9, 2))


def data():
    random = torch.Generator().manual_seed(1)
    return torch.randn(24, 5, generator=random), torch.randn(24, 2, generator=random)


def close(found, expected):
    torch.testing.assert_close(found, expected, rtol=2e-4, atol=2e-6)


def reference(optimizer, options, steps, clip=None):
    model = network()
    opt = optimizer(model.parameters(), **options)
    x, y = data()
    for _ in range(steps):
        opt.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        opt.step()
    return model, opt


def zero_steps(model, opt, steps, rank, size, clip=None):
    x, y = data()
    for _ in range(steps):
        opt.zero_grad()
        # Every rank's mean over its samples; 24 samples do for 1, 2, 3 and 4 ranks alike.
        nn.functional.mse_loss(model(x[rank::size]), y[rank::size]).backward()
        if clip:
            opt.clip_grad_norm_(clip)
        opt.step()


@pytest.mark.parametrize("stage", (1, 2, 3))
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_step_equals_the_plain_optimizer(stage, name, rank, size):
    optimizer, options = OPTIMIZERS[name]
    expected, _ = reference(optimizer, options, 5)
    model = network(seed=rank)
    opt = ZeroOptimizer(model, optimizer, stage=stage, bucket_bytes=300, **options)
    zero_steps(model, opt, 5, rank, size)
    compare(model, opt, expected)


def compare(model, opt, expected):
    from contextlib import nullcontext

    with opt.whole_parameters() if opt.stage == 3 else nullcontext():
        for found, wanted in zip(model.parameters(), expected.parameters()):
            close(found.detach().clone(), wanted.detach())


@pytest.mark.parametrize("stage", (1, 2, 3))
def test_clipping_and_schedules(stage, rank, size):
    expected, _ = reference(torch.optim.AdamW, {"lr": 0.01}, 3, clip=0.05)
    model = network()
    opt = ZeroOptimizer(model, torch.optim.AdamW, stage=stage, lr=0.5)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 0.02)
    zero_steps(model, opt, 3, rank, size, clip=0.05)
    schedule.step()
    compare(model, opt, expected)


@pytest.mark.parametrize("stage", (1, 2, 3))
def test_memory_falls_as_the_stage_says(stage, rank, size):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(4)])
    opt = ZeroOptimizer(model, torch.optim.Adam, stage=stage, lr=1e-3)
    model(torch.ones(2, 64)).sum().backward()
    opt.finish_gradients()
    memory = opt.memory()
    opt.step()
    memory["state"] = opt.memory()["state"]
    whole = 4 * (64 * 64 + 64) * 4
    share = lambda bytes: pytest.approx(bytes / size, abs=512)  # noqa: E731
    assert memory["state"] == share(2 * whole)
    assert memory["gradients"] == (share(whole) if stage > 1 else pytest.approx(whole, abs=512))
    assert memory["parameters"] == (share(whole) if stage > 2 else pytest.approx(whole, abs=512))


@pytest.mark.parametrize("stage", (2, 3))
def test_several_backwards_before_one_step(stage, rank, size):
    x, y = data()
    expected = network()
    plain = torch.optim.SGD(expected.parameters(), lr=0.1)
    for half in (slice(0, 12), slice(12, 24)):
        nn.functional.mse_loss(expected(x[half]), y[half]).backward()
    plain.step()
    model = network()
    opt = ZeroOptimizer(model, torch.optim.SGD, stage=stage, lr=0.1)
    for half in (slice(0, 12), slice(12, 24)):
        nn.functional.mse_loss(model(x[half][rank::size]), y[half][rank::size]).backward()
    opt.step()
    if 12 % size == 0:
        compare(model, opt, expected)


def test_stage_1_over_data_parallel_does_not_average_twice(rank, size):
    expected, _ = reference(torch.optim.AdamW, {"lr": 0.01}, 3)
    model = tutti.torch.DataParallel(network())
    opt = ZeroOptimizer(model.parameters(), torch.optim.AdamW, stage=1, lr=0.01)
    zero_steps(model, opt, 3, rank, size)
    compare(model, opt, expected)


@pytest.mark.parametrize("stage", (1, 2, 3))
@pytest.mark.parametrize("name", ("AdamW", "whole"))
def test_states_go_to_the_plain_optimizer_and_back_to_other_numbers_of_ranks(stage, name, world, rank, size):
    optimizer, options = OPTIMIZERS[name]
    expected, plain = reference(optimizer, options, 4)
    model = network()
    opt = ZeroOptimizer(model, optimizer, stage=stage, bucket_bytes=300, **options)
    zero_steps(model, opt, 2, rank, size)
    state = opt.state_dict()
    from contextlib import nullcontext

    with opt.whole_parameters() if stage == 3 else nullcontext():
        weights = {key: value.clone() for key, value in model.state_dict().items()}
    # On every rank alone, two steps more.
    single = network(seed=9)
    single.load_state_dict(weights)
    alone = ZeroOptimizer(single, optimizer, stage=stage, group=world.split(rank), **options)
    alone.load_state_dict(state)
    zero_steps(single, alone, 2, 0, 1)
    compare(single, alone, expected)
    # And by the plain optimiser.
    other = network(seed=9)
    other.load_state_dict(weights)
    continued = optimizer(other.parameters(), **options)
    continued.load_state_dict(state)
    zero_steps(other, continued, 2, 0, 1)
    for found, wanted in zip(other.parameters(), expected.parameters()):
        close(found, wanted)


def test_param_groups_keep_their_options(rank, size):
    def groups(model):
        return [{"params": model[0].parameters(), "lr": 0.5}, {"params": model[2].parameters()}, {"params": model[4].parameters()}]

    expected, model = network(), network()
    plain = torch.optim.SGD(groups(expected), lr=0.1)
    opt = ZeroOptimizer(groups(model), torch.optim.SGD, stage=2, lr=0.1)
    x, y = data()
    nn.functional.mse_loss(expected(x), y).backward()
    plain.step()
    zero_steps(model, opt, 1, rank, size)
    compare(model, opt, expected)


def test_stage_3_fetches_ahead_and_gives_up(rank, size):
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(4)])
    opt = ZeroOptimizer(model, torch.optim.SGD, stage=3, lr=0.1)
    for _ in range(2):
        model(torch.ones(1, 8)).sum().backward()
        opt.step()
        opt.zero_grad()
    assert [unit.name for unit in opt._order] == ["0", "1", "2", "3"]
    assert all(p.untyped_storage().nbytes() == 0 for p in model.parameters())
    seen = []
    model[1].register_forward_hook(lambda *args: seen.append(opt._order[2].is_coming or opt._order[2].is_whole))
    with torch.no_grad():
        model(torch.ones(1, 8))
    assert seen == [True]
    with pytest.raises(tutti.InvalidArgument, match="module=model"):
        ZeroOptimizer([nn.Parameter(torch.ones(1))], torch.optim.SGD, stage=3, lr=0.1)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("stage", (1, 2, 3))
def test_models_that_differ_are_refused_by_name(stage, world, rank, size):
    odd = nn.Sequential(nn.Linear(2, 3) if rank < size - 1 else nn.Linear(3, 2))
    with pytest.raises(tutti.Mismatch, match="0.weight|elsewhere"):
        ZeroOptimizer(odd, torch.optim.SGD, stage=stage, lr=0.1, group=world.split(0))
    assert tutti.all_reduce(1) == size


def test_what_cannot_be_shared_out_is_refused_by_name():
    parameters = [nn.Parameter(torch.ones(3))]
    with pytest.raises(tutti.Unsupported, match="LBFGS"):
        ZeroOptimizer(parameters, torch.optim.LBFGS)
    with pytest.raises(tutti.InvalidArgument, match="no stage 4"):
        ZeroOptimizer(parameters, torch.optim.SGD, stage=4, lr=0.1)


# NumPy.


@pytest.mark.parametrize("stage", (1, 2))
@pytest.mark.parametrize("dtype", ("f4", "f8"))
@pytest.mark.parametrize("name", ("AdamW", "SGD"))
def test_numpy_optimizers_step_as_torch_does(stage, dtype, name, rank, size):
    random = np.random.default_rng(0)
    params = {"w": random.normal(size=(7, 3)).astype(dtype), "b": random.normal(size=5).astype(dtype)}
    grads = [{k: random.normal(size=v.shape).astype(dtype) for k, v in params.items()} for _ in range(3 * size)]
    theirs = {k: nn.Parameter(torch.from_numpy(v.copy())) for k, v in params.items()}
    options = {"AdamW": {"lr": 0.02, "weight_decay": 0.1}, "SGD": {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.01}}[name]
    plain = getattr(torch.optim, name)(theirs.values(), **options)
    weights = np.arange(1, size + 1)
    own = getattr(tutti.zero, name)(params, stage=stage, **options)
    for step in range(3):
        every = grads[step * size : (step + 1) * size]
        for key, parameter in theirs.items():
            mean = sum(w * g[key].astype("f8") for w, g in zip(weights, every)) / weights.sum()
            parameter.grad = torch.from_numpy(mean.astype(dtype))
        norm = nn.utils.clip_grad_norm_(theirs.values(), 1.0)
        plain.step()
        own.step(every[rank], weight=weights[rank], clip_norm=1.0)
        assert norm > 1
    for key, parameter in theirs.items():
        np.testing.assert_allclose(params[key], parameter.detach().numpy(), rtol=2e-5, atol=2e-6)
    states = {"AdamW": 2, "SGD": 1}[name] * 26 * np.dtype(dtype).itemsize
    assert own.memory()["state"] == pytest.approx(states / size, abs=2 * 8)


def test_numpy_optimizers_refuse_what_they_cannot_step():
    with pytest.raises(tutti.InvalidArgument, match="float32 or"):
        tutti.zero.SGD([np.ones(2, np.int64)])
    with pytest.raises(tutti.InvalidArgument, match="in place"):
        tutti.zero.SGD([np.ones((4, 4))[:, ::2]])
    optimizer = tutti.zero.SGD([np.ones(2)])
    with pytest.raises(tutti.InvalidArgument, match="shapes"):
        optimizer.step([np.ones(3)])


# JAX.


def test_jax_zero_equals_optax(rank, size):
    import jax
    import optax

    import tutti.jax.training as training

    random = np.random.default_rng(0)
    params = {"w": random.normal(size=(7, 3)).astype("f4"), "b": [random.normal(size=5).astype("f4")]}
    start = jax.tree.map(lambda x: kinds.make("jax", x), params)
    grads = [jax.tree.map(lambda x: random.normal(size=x.shape).astype("f4"), params) for _ in range(3 * size)]
    plain = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(0.02))
    shared = training.zero(optax.adamw(0.02), clip_norm=1.0)
    expected, found = start, start
    state, own = plain.init(expected), shared.init(found)
    update = jax.jit(shared.update)
    for step in range(3):
        every = grads[step * size : (step + 1) * size]
        mean = jax.tree.map(lambda *g: sum(g) / size, *every)
        updates, state = plain.update(mean, state, expected)
        expected = optax.apply_updates(expected, updates)
        updates, own = update(jax.tree.map(lambda x: kinds.make("jax", x), every[rank]), own, found)
        found = optax.apply_updates(found, updates)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected)):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
    held = sum(x.size for x in jax.tree.leaves(own) if x.ndim)
    assert held == pytest.approx(2 * 26 / size, abs=2)


@pytest.mark.ranks(2, 2)  # the same on any number
def test_jax_zero_refuses_by_name_what_looks_at_whole_arrays():
    import optax

    import tutti.jax.training as training

    refused = {
        "scale_by_factored_rms": optax.scale_by_factored_rms(),  # of adafactor
        "clip_by_global_norm": optax.chain(optax.clip_by_global_norm(1.0), optax.sgd(0.1)),
        "centralize": optax.chain(optax.centralize(), optax.sgd(0.1)),
    }
    for name, optimizer in refused.items():
        with pytest.raises(tutti.Unsupported, match=f"{name}.*average_gradients"):
            training.zero(optimizer)
    training.zero(optax.sgd(optax.cosine_decay_schedule(0.1, 10), 0.9, nesterov=True))


# TensorFlow.


def keras_network(seed):
    keras = pytest.importorskip("keras")
    keras.utils.set_random_seed(seed)
    return keras.Sequential([keras.Input((3,)), keras.layers.Dense(5, activation="tanh"), keras.layers.Dense(2)])


@pytest.mark.parametrize("name", ["AdamW", "SGD"])
@pytest.mark.parametrize("is_compiled, weighted", [(False, True), (True, False)])
def test_tensorflow_zero_equals_keras(name, is_compiled, weighted, rank, size):
    keras = pytest.importorskip("keras")
    import tensorflow as tf

    options = {"AdamW": {"learning_rate": 0.02}, "SGD": {"learning_rate": 0.1, "momentum": 0.9}}[name]
    plain = getattr(keras.optimizers, name)(**options, global_clipnorm=0.5)
    shared = tutti.tensorflow.zero(getattr(keras.optimizers, name)(**options), clip_norm=0.5)
    expected, found = keras_network(0), keras_network(rank)  # all start with rank 0's
    shared.build(found.trainable_variables)
    random = np.random.default_rng(0)
    weights = [r + 1.0 if weighted else 1.0 for r in range(size)]

    def step(gradients):
        shared.apply(gradients, found.trainable_variables, weight=weights[rank] if weighted else None)

    run = tf.function(step) if is_compiled else step
    for _ in range(3):
        every = [[random.normal(size=v.shape).astype("f4") for v in expected.trainable_variables] for _ in range(size)]
        mean = [np.average(parts, axis=0, weights=weights).astype("f4") for parts in zip(*every, strict=True)]
        plain.apply([tf.constant(g) for g in mean], expected.trainable_variables)
        run([tf.constant(g) for g in every[rank]])
    for mine, theirs in zip(found.get_weights(), expected.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    count = sum(v.size for v in expected.get_weights())
    assert shared.memory()["state"] == pytest.approx({"AdamW": 2, "SGD": 1}[name] * 4 * count / size, abs=8)


def test_tensorflow_zero_in_keras_fit(rank, size):
    keras = pytest.importorskip("keras")
    random = np.random.default_rng(1)
    x, y = random.normal(size=(24, 3)).astype("f4"), random.normal(size=(24, 2)).astype("f4")
    alone, model = keras_network(0), keras_network(rank)
    alone.compile(keras.optimizers.Adam(0.05), loss="mse", jit_compile=False)
    alone.fit(x, y, batch_size=24, epochs=3, shuffle=False, verbose=0)
    tutti.tensorflow.compile(model, tutti.tensorflow.zero(keras.optimizers.Adam(0.05)), loss="mse")
    model.fit(x[rank::size], y[rank::size], batch_size=24, epochs=3, shuffle=False, verbose=0)
    for mine, theirs in zip(model.get_weights(), alone.get_weights(), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-4)


def test_tensorflow_zero_refuses_by_name_what_looks_at_whole_arrays():
    keras = pytest.importorskip("keras")
    with pytest.raises(tutti.Unsupported, match="Adafactor"):
        tutti.tensorflow.zero(keras.optimizers.Adafactor())
    with pytest.raises(tutti.Unsupported, match="global_clipnorm.*clip_norm"):
        tutti.tensorflow.zero(keras.optimizers.SGD(global_clipnorm=1.0))
    with pytest.raises(tutti.InvalidArgument, match="already"):
        tutti.tensorflow.zero(tutti.tensorflow.averaging("sgd"))
