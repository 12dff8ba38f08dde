# test_tensorflow_function.py: verbs inside tf.function: in the program's order, with known shapes, refused under XLA.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti
from verb_cases import CASES

tf = pytest.importorskip("tensorflow")


def run_all(spec_of, rank, size):
    """Every verb in one function. Gives by case: NumPy's result, the function's, and its static shape."""
    inputs = {case.name: case.input(rank, size).astype("float32") for case in CASES}
    shapes = {}

    def run(tensors):
        results = {case.name: case.run(tensors[case.name], rank, size) for case in CASES}
        shapes.update({name: result.shape for name, result in results.items()})
        return results

    specs = {name: tf.TensorSpec(spec_of(x), tf.float32) for name, x in inputs.items()}
    results = tf.function(run, input_signature=[specs])({name: tf.constant(x) for name, x in inputs.items()})
    for case in CASES:
        yield case.name, case.run(inputs[case.name], rank, size), results[case.name].numpy(), shapes[case.name]


def test_every_verb_keeps_its_static_shape(world, rank, size):
    for name, expected, result, shape in run_all(lambda x: x.shape, rank, size):
        np.testing.assert_array_equal(result, expected, err_msg=name)
        assert shape.is_fully_defined() and shape == expected.shape, name


def test_unknown_lengths_stay_unknown_where_they_must(world, rank, size):
    for name, expected, result, shape in run_all(lambda x: [None] * x.ndim, rank, size):
        np.testing.assert_array_equal(result, expected, err_msg=name)
        assert shape.rank == expected.ndim and shape.is_compatible_with(expected.shape), name
        if name == "all_gather stacked":
            assert shape.as_list() == [size, None]
        if name == "all_gather uneven":
            assert shape.as_list() == [sum(range(1, size + 1)), None]


def test_an_unknown_number_of_axes(world, size):
    run = tf.function(lambda x: tutti.all_reduce(x), input_signature=[tf.TensorSpec(None, tf.float32)])
    assert run(tf.ones([2, 3])).numpy().tolist() == [[size] * 3] * 2
    assert run(tf.constant(1.0)).numpy() == size


def test_calls_run_in_the_order_of_the_program(world, rank, size):
    """20 independent calls of different shapes, most of them unused: out of order they would not match."""

    @tf.function
    def run(x):
        kept = []
        for i in range(20):
            y = tutti.all_reduce(tf.fill([100 + i], x + i))
            if i % 4 == 0:
                kept.append(y[0])
        return tf.stack(kept)

    for step in range(5):
        expected = [sum(step + other + i for other in range(size)) for i in range(0, 20, 4)]
        assert run(tf.constant(float(step + rank))).numpy().tolist() == expected


def test_order_across_functions_that_read_variables_branches_and_loops(world, rank, size):
    """What TensorFlow does not order by itself: a function that uses a variable counts for that variable only."""
    variable = tf.Variable(1.0)

    @tf.function
    def inner(x):
        return tutti.all_reduce(tf.fill([7], x * variable))

    @tf.function
    def outer(x):
        total = tf.reduce_sum(inner(x))
        tutti.all_reduce(tf.fill([3], x))
        if x > 0:
            total += tf.reduce_sum(tutti.all_reduce(tf.fill([5], x * variable)))
        else:
            total += tf.reduce_sum(tutti.all_gather(tf.fill([2], x)))
        for i in tf.range(4):
            tutti.all_reduce(tf.fill([11], x * variable))
            total += tf.reduce_sum(tutti.all_reduce(tf.cast(tf.fill([i + 1], i), tf.float32)))
        total += tf.reduce_sum(inner(x)) + tf.reduce_sum(tutti.all_reduce(tf.fill([2], x)))
        return total

    loop = sum((i + 1) * i * size for i in range(4))
    for _ in range(20):
        assert outer(tf.constant(1.0)).numpy() == size * (7 + 5 + 7 + 2) + loop


def test_functions_and_eager_calls_do_not_get_into_each_others_way(world, rank, size):
    run = tf.function(lambda x: tutti.all_reduce(x) + tutti.all_reduce(2 * x))
    for i in range(100):
        a = run(tf.constant([float(i)]))
        b = tutti.all_reduce(np.array([i]))
        c = tutti.all_reduce(tf.constant([i]), async_op=True)
        assert a.numpy()[0] == 3 * i * size and b[0] == i * size and c.wait().numpy()[0] == i * size


def test_two_groups_in_one_function(world, rank, size):
    row = world.split(color=rank % 2)

    @tf.function
    def run(x):
        return tutti.all_reduce(x), tutti.all_reduce(x, group=row), row.all_gather(x, axis=None)

    everybody, mine, gathered = run(tf.constant(1.0))
    assert (everybody.numpy(), mine.numpy()) == (size, row.size) and gathered.shape == [row.size]


def test_dtypes_and_trees(world, rank, size):
    @tf.function
    def run(tree):
        return tutti.all_reduce(tree)

    got = run(
        {"a": tf.ones([2, 2], tf.bfloat16), "b": [tf.constant([3]), tf.constant(1 + 1j)], "c": tf.constant([True])}
    )
    assert got["a"].dtype == tf.bfloat16 and got["a"].shape == [2, 2] and float(got["a"][0, 0]) == size
    assert got["b"][0].numpy().tolist() == [3 * size] and got["b"][1].numpy() == size * (1 + 1j)
    assert got["c"].dtype == tf.bool


def test_a_barrier_is_an_operation_of_the_function(world):
    calls = []

    @tf.function
    def run():
        tutti.tensorflow.barrier()
        calls.append("traced")
        return tf.constant(1)

    for _ in range(3):
        run()
    assert calls == ["traced"]
    tutti.tensorflow.barrier()


def test_variables_and_captured_tensors(world, rank, size):
    variable, captured = tf.Variable([2.0]), tf.constant([3.0])

    @tf.function
    def run():
        variable.assign(tutti.all_reduce(variable))
        return variable + tutti.all_reduce(captured)

    assert run().numpy().tolist() == [5.0 * size]
    assert run().numpy().tolist() == [2.0 * size * size + 3 * size]


def test_keras_models_call_verbs_in_their_training_step(world, rank, size):
    keras = pytest.importorskip("keras")

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x, training=True) - y) ** 2)
            gradients = tutti.all_reduce(tape.gradient(loss, self.trainable_variables), op="mean")
            self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
            return {"loss": loss}

    x = np.full([4, 1], rank + 1.0, "float32")
    kernels = []
    for options in ({"jit_compile": False}, {"run_eagerly": True}):
        model = Model()
        model.compile(optimizer=keras.optimizers.SGD(0.01), **options)
        model.fit(x, 3 * x, epochs=2, batch_size=4, verbose=0)
        kernels.append(float(model.dense.kernel[0, 0]))
    expected = 1.0
    mean_of_squares = np.mean([(other + 1.0) ** 2 for other in range(size)])
    for _ in range(2):
        expected -= 0.01 * 2 * (expected - 3) * mean_of_squares
    np.testing.assert_allclose(kernels, [expected, expected], rtol=1e-5)


# What is refused.


def test_xla_is_refused_by_name_while_tracing(world, size):
    @tf.function(jit_compile=True)
    def run(x):
        return tutti.all_reduce(x)

    with pytest.raises(tutti.Unsupported, match="all_reduce: .*jit_compile=True; leave jit_compile away"):
        run(tf.ones([2]))

    with pytest.raises(tutti.Unsupported, match="jit_compile"):
        tutti.tensorflow.function(lambda x: x, jit_compile=True)
    assert int(tutti.all_reduce(tf.constant(1))) == size


def test_xla_around_a_function_traced_before_names_the_operation(world, size):
    inner = tf.function(lambda x: tutti.all_reduce(x))
    inner(tf.ones([2]))
    outer = tf.function(lambda x: inner(x) + 1, jit_compile=True)
    with pytest.raises((tutti.Unsupported, tf.errors.InvalidArgumentError), match="tutti"):
        outer(tf.ones([2]))
    assert int(tutti.all_reduce(tf.constant(1))) == size


@pytest.mark.parametrize(
    "call, error, why",
    [
        (
            lambda x: tutti.all_reduce(x, async_op=True),
            tutti.Unsupported,
            "async_op=True has no meaning inside tf.function",
        ),
        (lambda x: tutti.all_gather(x, uneven=True), tutti.InvalidArgument, "inside tf.function .* sizes="),
        (lambda x: tutti.all_reduce(x, out=x), tutti.InvalidArgument, "take the result instead"),
        (lambda x: tutti.send(x, dst=0), tutti.Unsupported, "use sendrecv or permute"),
        (lambda x: tutti.all_reduce(tf.as_string(x)), tutti.InvalidArgument, "texts go by the object verbs"),
        (lambda x: tutti.all_gather(x, axis=5), tutti.InvalidArgument, "axis"),
    ],
    ids=["async", "uneven", "out", "send", "texts", "axis"],
)
def test_what_a_function_cannot_do_is_refused_while_tracing(call, error, why, world, size):
    with pytest.raises(error, match=why):
        tf.function(lambda x: call(x))(tf.ones([2]))
    assert int(tutti.all_reduce(tf.constant(1))) == size


def test_graphs_of_version_one_are_refused(world):
    with tf.Graph().as_default(), pytest.raises(tutti.Unsupported, match="tf.compat.v1"):
        tutti.all_reduce(tf.ones([2]))


def test_a_tensor_of_a_function_that_has_ended_is_refused(world, size):
    leaked = []
    tf.function(lambda x: leaked.append(x + 1))(tf.ones([2]))
    with pytest.raises(tutti.InvalidArgument, match="tracing has ended"):
        tutti.all_reduce(leaked[0])


@pytest.mark.ranks(2)
def test_errors_come_out_with_their_words_and_as_themselves(world, rank, size):
    def run(x, group):
        return tutti.all_reduce(x, group=group)

    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch, match="float32") as caught:
        tf.function(lambda x: run(x, group))(tf.ones([2 + rank], tf.float32))
    assert isinstance(caught.value, tf.errors.OpError) and caught.value.error_code is not None
    assert tutti.tensorflow.cause_of(caught.value) is caught.value

    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch), tutti.tensorflow.own_errors():
        tf.function(lambda x: run(x, group))(tf.ones([2 + rank], tf.float32))

    group = world.split(color=0)
    with pytest.raises(tutti.Mismatch):
        tutti.tensorflow.function(lambda x: run(x, group))(tf.ones([2 + rank], tf.float32))
    assert tutti.tensorflow.cause_of(ValueError()) is None


def test_the_decorated_function_is_a_function(world, size):
    class Model:
        @tutti.tensorflow.function(reduce_retracing=True)
        def step(self, x):
            """Doubles."""
            return tutti.all_reduce(x)

    model = Model()
    assert model.step(tf.ones([2])).numpy().tolist() == [size, size]
    assert Model.step.__doc__ == "Doubles."
