# test_tensorflow_gradients.py: tapes around verbs: nested, unused results, sparse gradients, and ranks that disagree.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import tutti

tf = pytest.importorskip("tensorflow")


def gradient_of(function, *xs):
    with tf.GradientTape() as tape:
        for x in xs:
            tape.watch(x)
        value = function(*xs)
    return tape.gradient(value, xs)


WAYS = pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "function"])


@WAYS
def test_a_tape_around_a_function(wrap, world, rank, size):
    x = tf.constant([1.0, 2.0])
    (gradient,) = gradient_of(wrap(lambda x: tf.reduce_sum(tutti.all_reduce(x) * (rank + 1))), x)
    assert gradient.numpy().tolist() == [size * (size + 1) / 2] * 2


@WAYS
def test_independent_calls_go_backwards_in_one_order_however_they_are_used(wrap, world, rank, size):
    """Each rank uses the results in another order and leaves some out; tapes alone would go back as they like."""
    xs = [tf.fill([10 + i], 1.0 + i) for i in range(6)]

    @wrap
    def loss(*xs):
        results = [tutti.all_reduce(x) for x in xs]
        order = np.random.default_rng(rank).permutation(6)
        total = tf.constant(0.0)
        for i in order:
            if i % 2 == rank % 2 or i == 5:
                total = total * 1.0 + tf.reduce_sum(results[i]) * (rank + 1.0)
        return total

    for i, gradient in enumerate(gradient_of(loss, *xs)):
        users = [other for other in range(size) if i % 2 == other % 2 or i == 5]
        assert gradient.numpy().tolist() == [sum(other + 1.0 for other in users)] * (10 + i)


@WAYS
def test_a_rank_that_does_not_use_a_result_ties_it(wrap, world, rank, size):
    x = tf.constant([1.0, 2.0])

    @wrap
    def loss(x):
        y = tutti.all_reduce(x)
        own = tf.reduce_sum(x)
        return tf.reduce_sum(y) if rank == 0 else tutti.tie(own, y)

    (gradient,) = gradient_of(loss, x)
    assert gradient.numpy().tolist() == ([1.0, 1.0] if rank == 0 else [2.0, 2.0])


def test_a_tie_lets_no_infinity_through(world):
    y = tf.constant([np.inf, np.nan])
    with tf.GradientTape() as tape:
        tape.watch(y)
        loss = tutti.tie(tf.constant(1.0), y)
    assert loss.numpy() == 1.0 and tape.gradient(loss, y).numpy().tolist() == [0.0, 0.0]


@WAYS
def test_gradients_through_trees_and_variables(wrap, world, rank, size):
    w, b = tf.Variable([[1.0, 2.0]]), tf.Variable(3.0)

    def loss():
        tree = tutti.all_reduce({"w": w, "b": b}, op="mean")
        return tf.reduce_sum(tree["w"]) * (rank + 1.0) + tree["b"]

    loss = wrap(loss)
    with tf.GradientTape() as tape:
        value = loss()
    dw, db = tape.gradient(value, [w, b])
    np.testing.assert_allclose(dw.numpy(), [[(size + 1) / 2] * 2])
    np.testing.assert_allclose(db.numpy(), 1.0)


@WAYS
def test_sparse_gradients_of_a_result_are_made_dense(wrap, world, rank, size):
    table = tf.ones([4, 2])
    (gradient,) = gradient_of(wrap(lambda t: tf.reduce_sum(tf.gather(tutti.all_reduce(t), [rank % 4, 0]))), table)
    expected = np.zeros([4, 2])
    for other in range(size):
        expected[other % 4] += 1
        expected[0] += 1
    np.testing.assert_array_equal(tf.convert_to_tensor(gradient).numpy(), expected)


@WAYS
def test_second_order(wrap, world, rank, size):
    x = tf.constant([0.5, -1.0])

    @wrap
    def twice(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                value = tf.reduce_sum(tutti.all_reduce(x) ** 3)
            first = inner.gradient(value, x)
            loss = tf.reduce_sum(first**2)
        return first, outer.gradient(loss, x)

    first, second = twice(x)
    s = (
        size * x.numpy()
    )  # every rank has the same x: loss = Σ_r s³, dx = 3 n s², Σ_r dx² has d/dx = n · n · 2 · 3 n s² · 6 s
    np.testing.assert_allclose(first.numpy(), 3 * size * s**2, rtol=1e-5)
    np.testing.assert_allclose(second.numpy(), size * 2 * 3 * size * s**2 * 6 * size * s, rtol=1e-5)


def test_uneven_without_sizes_has_gradients_in_eager_code(world, rank, size):
    x = tf.ones([rank + 1])
    (gradient,) = gradient_of(lambda x: tf.reduce_sum(tutti.all_gather(x, uneven=True)) * 2.0, x)
    assert gradient.numpy().tolist() == [2.0 * size] * (rank + 1)


@WAYS
def test_calls_in_loops_and_branches(wrap, world, rank, size):
    x = tf.constant(2.0)

    @wrap
    def loss(x):
        y = x
        for _ in tf.range(3):
            y = tutti.all_reduce(y, op="mean") * 2.0
        if y > 0:
            y = tutti.all_reduce(y)
        return y * (rank + 1.0)

    (gradient,) = gradient_of(loss, x)
    np.testing.assert_allclose(gradient.numpy(), 8 * size * (size + 1) / 2, rtol=1e-5)


def test_forward_accumulators(world, rank, size):
    x = tf.constant([1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, tf.constant([1.0, float(rank)])) as accumulator:
        y = tutti.all_reduce(x) * 2.0
    assert accumulator.jvp(y).numpy().tolist() == [2.0 * size, size * (size - 1.0)]


def test_persistent_tapes(world, rank, size):
    x = tf.constant([1.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        a = tutti.all_reduce(x)
        b = tutti.all_reduce(x * 2)
    for _ in range(2):
        assert tape.gradient(a, x).numpy().tolist() == [size]
        assert tape.gradient(b, x).numpy().tolist() == [2 * size]


def test_integers_and_stopped_gradients_are_not_recorded(world, rank, size):
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tutti.all_reduce(tf.stop_gradient(x)) + tf.cast(tutti.all_reduce(tf.constant([1])), tf.float32)
    assert tape.gradient(y, x) is None


@pytest.mark.parametrize("op", ["product", "max of scan"])
def test_what_has_no_gradient_is_refused_in_forward(op, world, size):
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(tutti.Unsupported, match="has no gradient"):
            tutti.all_reduce(x, op="product") if op == "product" else tutti.scan(x, op="max")
    assert tutti.all_reduce(x, op="product").numpy()[0] == 1.0
    run = tf.function(lambda x: tutti.all_reduce(x, op="product"))
    assert run(x).numpy()[0] == 1.0
    with pytest.raises(tutti.Unsupported, match="has no gradient"):
        gradient_of(run, x)


def test_asynchronous_calls_under_a_tape_are_refused(world, size):
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(tutti.Unsupported, match="cannot be recorded"):
            tutti.all_reduce(x, async_op=True)
        assert tutti.all_reduce(tf.stop_gradient(x), async_op=True).wait().numpy() == size


@pytest.mark.ranks(2)
@pytest.mark.parametrize("verb", ["all_reduce", "broadcast", "sendrecv"])
def test_ranks_that_disagree_on_taking_part_find_out_in_forward(verb, world, rank, size):
    group = world.split(color=0)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape, pytest.raises(tutti.Mismatch):
        if rank == 0:
            tape.watch(x)
        if verb == "all_reduce":
            tutti.all_reduce(x, group=group)
        elif verb == "sendrecv":
            tutti.sendrecv(x, dst=(rank + 1) % size, src=(rank - 1) % size, group=group)
        else:
            tutti.broadcast(x if rank == 0 else None, group=group)
        tutti.all_reduce(x, group=group)  # a rank whose call had returned learns in its next one


# Functions of a tensor and a group that a tape outside of them may watch.
def plain(x, group):
    return tutti.all_reduce(x, group=group)


def inner_function(x, group):
    return tf.function(lambda x: tutti.all_reduce(x, group=group))(x) * 2.0


def loop(x, group):
    for _ in tf.range(3):
        x = tutti.all_reduce(x, op="mean", group=group)
    return x


def branch(x, group):
    return tf.cond(x[0] > 0.0, lambda: tutti.all_reduce(x, group=group), lambda: x)


def run_function(function, x, *, tape_outside):
    if not tape_outside:
        return function(x)
    return gradient_of(lambda x: tf.reduce_sum(function(x)), x)


@pytest.mark.ranks(2)
@pytest.mark.parametrize("body", [plain, inner_function, loop, branch])
def test_a_tape_outside_of_a_function_on_some_ranks_only_is_noticed_in_forward(body, world, rank, size):
    group = world.split(color=0)
    x = tf.constant([1.0, 2.0])
    function = tutti.tensorflow.function(lambda x: body(x, group))
    for tape_outside in (False, True, False, True):  # whatever they did before, as long as all did it
        run_function(function, x, tape_outside=tape_outside)
    with pytest.raises(tutti.Mismatch, match="gradient|differentiat"):
        with tf.GradientTape() as tape:
            if rank == 0:
                tape.watch(x)
            function(x)


def test_a_tape_inside_of_a_function_and_one_outside_agree(world, rank, size):
    x = tf.constant([1.0, 2.0])
    reduce = tf.function(lambda x: tutti.all_reduce(x))
    inside = tf.function(lambda x: gradient_of(lambda x: tf.reduce_sum(tutti.all_reduce(x)), x))
    (gradient,) = run_function(reduce, x, tape_outside=True) if rank == 0 else inside(x)
    assert gradient.numpy().tolist() == [size, size]
