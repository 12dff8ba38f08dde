# test_training_helpers.py: what is special to JAX and TensorFlow in training.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti


def samples(rank, size):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(10, 3)).astype("f4"), random.normal(size=(10, 1)).astype("f4")
    own = np.array_split(np.arange(10), size)[rank]
    return x, y, x[own], y[own]


@pytest.mark.parametrize("is_compiled", (False, True))
def test_jax_value_and_grad(is_compiled, rank, size):
    import jax
    import jax.numpy as jnp

    import tutti.jax.training as training

    def loss_of(w, x, y):
        return jnp.mean((x @ w - y) ** 2)

    x, y, own_x, own_y = samples(rank, size)
    w = jnp.ones((3, 1))
    expected, slope = jax.value_and_grad(loss_of)(w, x, y)
    function = training.value_and_grad(loss_of)
    if is_compiled:
        function = jax.jit(function)
    found, own = function(w, own_x, own_y, weight=len(own_y))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(own, slope, rtol=1e-4, atol=1e-6)


def test_jax_value_and_grad_with_aux(rank, size):
    import jax.numpy as jnp

    import tutti.jax.training as training

    (loss, aux), grad = training.value_and_grad(lambda w: (w * (rank + 1.0), rank), has_aux=True)(jnp.float32(2))
    assert float(loss) == pytest.approx(size + 1) and aux == rank and float(grad) == pytest.approx((size + 1) / 2)


def test_optax_optimizers_that_average(rank, size):
    import jax.numpy as jnp
    import optax

    import tutti.jax.training as training

    optimizer = training.average_gradients(optax.sgd(1.0))
    params = {"w": jnp.zeros(2)}
    updates, _ = optimizer.update({"w": jnp.full(2, rank + 1.0)}, optimizer.init(params), params)
    np.testing.assert_allclose(updates["w"], -(size + 1) / 2)
    weight = rank + 1
    updates, _ = optimizer.update({"w": jnp.full(2, rank + 1.0)}, optimizer.init(params), params, weight=weight)
    expected = sum((r + 1) ** 2 for r in range(size)) / sum(r + 1 for r in range(size))
    np.testing.assert_allclose(updates["w"], -expected, rtol=1e-6)


def test_tensorflow_tape(rank, size):
    tf = pytest.importorskip("tensorflow")
    import tutti.tensorflow.training as training

    x, y, own_x, own_y = samples(rank, size)
    w, table, unused = tf.Variable(np.ones((3, 1), "f4")), tf.Variable(np.ones((4, 1), "f4")), tf.Variable(1.0)

    def loss_of(x, y):
        return tf.reduce_mean((x @ w - y) ** 2) + tf.reduce_sum(tf.gather(table, [1, 1]))

    with tf.GradientTape() as tape:
        loss = loss_of(x, y)
    expected = tape.gradient(loss, w)
    with training.GradientTape(weight=len(own_y)) as tape:
        loss = loss_of(own_x, own_y)
    found = tape.gradient(loss, {"w": w, "table": table, "unused": unused})
    np.testing.assert_allclose(found["w"], expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["table"], [[0], [2], [0], [0]], rtol=1e-6)
    assert found["unused"] is None


def test_keras(rank, size, caplog):
    keras = pytest.importorskip("keras")
    import tutti.tensorflow.training as training

    def network(seed):
        keras.utils.set_random_seed(seed)
        return keras.Sequential([keras.Input((3,)), keras.layers.Dense(4, activation="tanh"), keras.layers.Dense(1)])

    x, y, _, _ = samples(rank, size)
    x, y = np.tile(x, (6, 1))[:48], np.tile(y, (6, 1))[:48]  # 1, 2, 3 and 4 ranks get parts of the same length
    alone, model = network(0), network(rank)
    alone.compile(keras.optimizers.SGD(0.1), loss="mse", jit_compile=False)
    alone.fit(x, y, batch_size=48, epochs=3, shuffle=False, verbose=0)
    with caplog.at_level("INFO", "tutti"):
        training.compile(model, keras.optimizers.SGD(0.1), loss="mse")
    assert model.jit_compile is False and "jit_compile=False" in caplog.text
    model.fit(x[rank::size], y[rank::size], batch_size=48, epochs=3, shuffle=False, verbose=0)
    for found, expected in zip(model.get_weights(), alone.get_weights()):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(tutti.InvalidArgument, match="jit_compile"):
        training.compile(model, "sgd", loss="mse", jit_compile=True)
    with pytest.raises(tutti.InvalidArgument, match="already"):
        training.averaging(model.optimizer)
