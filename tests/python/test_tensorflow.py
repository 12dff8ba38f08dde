# test_tensorflow.py: the verbs on TensorFlow's tensors in eager code: what comes back, and what is refused by name.
# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import references as ref
import tutti
from verb_cases import CASES

tf = pytest.importorskip("tensorflow")

DTYPES = [name for name in ref.DTYPES if name not in ("float8_e4m3fn", "float8_e5m2")]


def memory_of(tensor):
    return np.asarray(tensor).ctypes.data


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_verb_gives_what_it_gives_for_numpy(case, world, rank, size):
    x = case.input(rank, size).astype("float32")
    tensor = tf.constant(x)
    result = case.run(tensor, rank, size)
    expected = case.run(x, rank, size)
    assert isinstance(result, tf.Tensor) and result.dtype == tf.float32 and result.shape == expected.shape
    np.testing.assert_array_equal(result.numpy(), expected)
    np.testing.assert_array_equal(tensor.numpy(), x)  # tensors do not change
    assert memory_of(result) != memory_of(tensor)  # in a group of one neither


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype, world, rank, size):
    inputs = [ref.make_input(other, (3, 2), dtype) for other in range(size)]
    tensor = tf.constant(inputs[rank])
    for result, expected in [
        (tutti.all_reduce(tensor), ref.reduced(inputs, "sum")),
        (tutti.all_gather(tensor), np.concatenate(inputs)),
        (tutti.broadcast(tensor, root=size - 1), inputs[-1]),
    ]:
        assert result.dtype == tensor.dtype
        ref.assert_equal(result.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_float8_is_moved(dtype, world, rank, size):
    inputs = [ref.make_input(other, (4,), dtype) for other in range(size)]
    result = tutti.all_gather(tf.constant(inputs[rank]))
    assert result.dtype.name == dtype
    ref.assert_equal(np.asarray(result), np.concatenate(inputs))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1 << 16,)])
def test_shapes_without_and_with_many_elements(shape, world, rank, size):
    result = tutti.all_reduce(tf.fill(shape, float(rank + 1)))
    assert result.shape == shape
    np.testing.assert_array_equal(result.numpy(), np.full(shape, size * (size + 1) / 2, "float32"))


def test_variables_are_read(world, rank, size):
    variable = tf.Variable([1.0, float(rank)])
    result = tutti.all_reduce(variable)
    assert isinstance(result, tf.Tensor)
    np.testing.assert_array_equal(result.numpy(), [size, size * (size - 1) / 2])
    variable.assign(result)


def test_keras_variables_are_read(world, rank, size):
    keras = pytest.importorskip("keras")
    if keras.backend.backend() != "tensorflow":
        pytest.fail("the tests are for Keras on TensorFlow: unset KERAS_BACKEND")
    assert tutti.all_reduce(keras.Variable([1.0, 2.0])).numpy().tolist() == [size, 2 * size]


def test_a_result_goes_on_living_without_its_memory_being_copied(world, rank, size):
    results = [tutti.all_reduce(tf.fill([1000], float(i))) for i in range(50)]
    for i, result in enumerate(results):
        assert memory_of(result) % 64 == 0
        assert result.numpy()[0] == i * size and tf.reduce_sum(result).numpy() == 1000 * i * size


def test_trees_of_tensors(world, rank, size):
    tree = {"w": tf.ones([2, 2]), "b": [tf.Variable([1.0]), tf.constant(3)], "n": None}
    result = tutti.all_reduce(tree)
    assert result["w"].numpy().tolist() == [[size] * 2] * 2
    assert result["b"][0].numpy().tolist() == [size] and int(result["b"][1]) == 3 * size and result["n"] is None


def test_asynchronous_calls(world, rank, size):
    works = [tutti.all_reduce(tf.fill([3], float(i + rank)), async_op=True) for i in range(5)]
    gathered = tutti.all_gather(tf.fill([rank + 1], rank), uneven=True, async_op=True)
    sent = tutti.broadcast(tf.constant([rank]), async_op=True)
    for i, work in enumerate(works):
        assert work.wait(timeout=30).numpy().tolist() == [sum(i + other for other in range(size))] * 3
    assert gathered.wait().numpy().tolist() == [other for other in range(size) for _ in range(other + 1)]
    assert sent.wait().numpy().tolist() == [0]


def test_only_the_root_need_have_a_tensor(world, rank, size):
    result = tutti.broadcast(tf.constant([1.0, 2.0]) if rank == 0 else None)
    np.testing.assert_array_equal(np.asarray(result), [1, 2])
    part = tutti.scatter(tf.range(2 * size) if rank == 0 else None)
    np.testing.assert_array_equal(np.asarray(part), [2 * rank, 2 * rank + 1])


@pytest.mark.ranks(2)
def test_messages(world, rank, size):
    if rank == 0:
        tutti.send(tf.constant([1.5, 2.5]), dst=1)
    if rank == 1:
        got = tutti.recv(0, like=tf.zeros([2]))
        assert isinstance(got, tf.Tensor) and got.numpy().tolist() == [1.5, 2.5]
    if rank < 2:
        with tf.GradientTape() as tape, pytest.raises(tutti.Unsupported, match="sendrecv or permute"):
            x = tf.ones([2])
            tape.watch(x)
            tutti.send(x, dst=1 - rank)
    with pytest.raises(tutti.InvalidArgument, match="like="):
        tutti.recv(out=tf.zeros([2]), src=0)


def test_indexed_slices_are_made_dense_and_it_is_said(world, rank, size):
    slices = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([rank]), dense_shape=tf.constant([size, 2]))
    with pytest.warns(UserWarning, match=f"all_reduce: tf.IndexedSlices were made a dense tensor of {8 * size} bytes"):
        result = tutti.all_reduce(slices)
    assert result.numpy().tolist() == [[1.0, 1.0]] * size


@pytest.mark.parametrize(
    "make, why",
    [
        (lambda: tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0])), "dense_shape"),
        (lambda: tf.ragged.constant([[1], [2, 3]]), "to_tensor"),
        (lambda: tf.sparse.from_dense([[1, 0]]), "tf.sparse.to_dense"),
        (lambda: tf.constant(["text"]), "texts go by the object verbs"),
        (lambda: tf.ones([2]), "take the result instead"),
    ],
    ids=["slices without a shape", "ragged", "sparse", "texts", "out="],
)
def test_what_is_no_dense_tensor_of_numbers_is_refused(make, why, world, rank, size):
    x = make()
    out = tf.ones([2]) if why.startswith("take") else None
    with pytest.raises(tutti.InvalidArgument, match=why):
        tutti.all_reduce(x, out=out)
    assert int(tutti.all_reduce(tf.constant(1))) == size


def test_a_wrong_shape_on_one_rank_raises_everywhere_and_the_group_stays_usable(world, rank, size):
    if size == 1:
        return
    x = tf.ones([size + (1 if rank == 0 else 0)])
    with pytest.raises(tutti.Error):
        tutti.reduce_scatter(x)
    assert int(tutti.all_reduce(tf.constant(1))) == size
