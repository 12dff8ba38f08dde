# test_messages.py: messages of unknown size, probes, cancelling, nobody, trees and objects, and messages that fail.
# SPDX-License-Identifier: Apache-2.0
import collections
import dataclasses
import gc

import numpy as np
import pytest

import tutti

Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass
class Layer:
    weight: np.ndarray
    bias: np.ndarray


@pytest.fixture
def ring(rank, size):
    return (rank + 1) % size, (rank - 1) % size


def whole(rank, size):
    """Collectives and messages work: the group is whole."""
    assert tutti.all_reduce(np.ones(3))[0] == size
    sent = tutti.isend(np.array([rank]), dst=(rank + 1) % size, tag=1000)
    assert tutti.recv((rank - 1) % size, tag=1000)[0] == (rank - 1) % size
    sent.wait()


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (4, 0), (2, 3, 4), (1,) * 12, (200_000,)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex128"])
def test_a_message_comes_as_it_was_sent(ring, rank, shape, dtype):
    after, before = ring
    x = np.full(shape, rank + 1, dtype)
    sent = tutti.isend(x, dst=after)
    y = tutti.recv(before)
    sent.wait()
    assert type(y) is np.ndarray and y.shape == shape and y.dtype == x.dtype
    assert (y == np.full(shape, before + 1, dtype)).all()


def test_of_any_rank_and_tag_the_work_tells_what_came(ring, rank):
    after, before = ring
    work = tutti.irecv(tag=None)
    tutti.send(np.arange(4.0), dst=after, tag=7)
    assert work.wait().tolist() == [0, 1, 2, 3]
    assert (work.source, work.tag, work.count) == (before, 7, 4)


def test_out_may_have_more_room(ring):
    after, before = ring
    out = np.full(10, -1.0)
    work = tutti.irecv(before, out=out)
    tutti.send(np.ones(4), dst=after)
    assert work.wait() is out and work.count == 4
    assert out.tolist() == [1] * 4 + [-1] * 6


def test_a_frameworks_array_comes_as_one(ring, rank):
    torch = pytest.importorskip("torch")
    after, before = ring
    sent = tutti.isend(torch.full((2, 3), float(rank)), dst=after)
    y = tutti.recv(before)
    sent.wait()
    assert isinstance(y, torch.Tensor) and y.shape == (2, 3) and (y == before).all()
    sent = tutti.isend(torch.ones(3, dtype=torch.bfloat16), dst=after)
    assert tutti.recv(before, like=np.empty(0)).dtype.name == "bfloat16"
    sent.wait()
    sent = tutti.isend(np.ones(3), dst=after)
    assert isinstance(tutti.recv(before, like=torch.empty(0)), torch.Tensor)
    sent.wait()


def test_jax_and_tensorflow_arrays_come_as_such(ring):
    after, before = ring
    jnp = pytest.importorskip("jax.numpy")
    sent = tutti.isend(jnp.arange(3), dst=after)
    y = tutti.recv(before)
    sent.wait()
    assert isinstance(y, type(jnp.arange(3))) and y.tolist() == [0, 1, 2]
    tf = pytest.importorskip("tensorflow")
    sent = tutti.isend(tf.constant([1.0, 2.0]), dst=after)
    y = tutti.recv(before)
    sent.wait()
    assert isinstance(y, tf.Tensor) and y.numpy().tolist() == [1, 2]


def test_trees_come_as_they_were_sent(ring, rank):
    after, before = ring
    tree = {"w": np.full((2, 3), rank), "b": [np.float32(rank), (np.arange(rank + 1), None)]}
    sent = tutti.isend(tree, dst=after)
    work = tutti.irecv()
    got = work.wait()
    sent.wait()
    assert work.source == before
    assert (got["w"] == before).all() and got["b"][1][0].tolist() == list(range(before + 1)) and got["b"][1][1] is None


def test_trees_with_classes_of_their_own_need_a_pattern(ring, rank, size):
    after, before = ring
    layer = Layer(np.full((2, 2), rank), np.full(2, rank))
    sent = [tutti.isend(layer, dst=after) for _ in range(3)]
    with pytest.raises(tutti.InvalidArgument, match="classes of its own"):
        tutti.recv(before)
    got = tutti.recv(before, like=Layer(np.empty(0), np.empty(0)))
    assert isinstance(got, Layer) and (got.weight == before).all() and got.weight.shape == (2, 2)
    out = Layer(np.zeros((2, 2), int), np.zeros(2, int))
    assert tutti.recv(before, out=out) is out and (out.bias == before).all()
    tutti.wait_all(sent)
    sent = tutti.isend(Point(np.ones(2), np.ones(3)), dst=after)
    with pytest.raises(tutti.Mismatch, match="another structure"):
        tutti.recv(before, like={"x": np.empty(0)})
    sent.wait()
    whole(rank, size)


def test_objects_go_from_one_rank_to_another(ring, rank):
    after, before = ring
    value = {"rank": rank, "names": ["a", "b"], "array": np.arange(3)}
    sent = tutti.send_object(value, dst=after, tag=3, async_op=True)
    got = tutti.recv_object(tag=None)
    sent.wait()
    assert got["rank"] == before and got["names"] == ["a", "b"] and got["array"].tolist() == [0, 1, 2]
    with pytest.raises(tutti.InvalidArgument, match="allow_pickle=True"):
        tutti.send_object(Layer(np.ones(1), np.ones(1)), dst=after)
    sent = tutti.send_object(Layer(np.ones(1), np.ones(1)), dst=after, async_op=True, allow_pickle=True)
    assert isinstance(tutti.recv_object(before, allow_pickle=True), Layer)
    sent.wait()
    sent = tutti.isend(np.ones(2), dst=after)
    with pytest.raises(tutti.InvalidArgument, match="recv takes arrays"):
        tutti.recv_object(before)
    sent.wait()


def test_a_probe_reserves_what_it_finds(ring, rank):
    after, before = ring
    first, second = tutti.isend(np.ones((2, 3)), dst=after, tag=4), tutti.isend(np.zeros(5), dst=after, tag=4)
    message = tutti.probe(tag=None)
    assert (message.source, message.tag, message.count) == (before, 4, 6)
    assert message.shape == (2, 3) and message.dtype == "float64"
    assert "from rank" in repr(message)
    assert tutti.recv(before, tag=4).tolist() == [0] * 5
    assert message.recv().tolist() == [[1] * 3] * 2
    with pytest.raises(tutti.InvalidArgument, match="received before"):
        message.recv()
    tutti.wait_all([first, second])
    sent = tutti.isend(np.arange(3), dst=after)
    tutti.probe(before)  # dropped: it goes back
    gc.collect()
    assert tutti.recv(before).tolist() == [0, 1, 2]
    sent.wait()
    assert tutti.iprobe(tag=77) is None


def test_nobody_sends_and_receives_nothing(rank, size):
    x = np.ones(3)
    tutti.send(x, dst=tutti.nobody)
    tutti.isend(x, dst=tutti.nobody).wait()
    assert tutti.recv(tutti.nobody) is None
    assert tutti.recv(tutti.nobody, out=x) is x and x.tolist() == [1, 1, 1]
    work = tutti.irecv(tutti.nobody)
    assert work.wait() is None and work.source == tutti.nobody and work.count == 0
    assert tutti.sendrecv(x, dst=tutti.nobody, src=tutti.nobody).tolist() == [0, 0, 0]
    assert repr(tutti.nobody) == "tutti.nobody"
    whole(rank, size)


def test_messages_can_be_cancelled(ring, rank, size):
    after, before = ring
    work = tutti.irecv(before, tag=5)
    assert work.cancel() and not work.cancel()
    with pytest.raises(tutti.Aborted, match="was cancelled"):
        work.wait()
    buffer = np.zeros(1)
    tutti.irecv(before, tag=5, out=buffer)  # dropped
    gc.collect()
    tutti.barrier()
    sent = tutti.isend(np.ones(1), dst=after, tag=5)
    assert tutti.recv(before, tag=5)[0] == 1 and buffer[0] == 0
    sent.wait()
    large = tutti.isend(np.ones(1_000_000), dst=after, tag=5)
    large.cancel()
    with pytest.raises(tutti.Aborted, match="was cancelled"):
        large.wait()
    with pytest.raises(tutti.InvalidArgument, match="cannot take it back"):
        tutti.all_reduce(np.ones(1), async_op=True).cancel()
    whole(rank, size)


def test_a_message_that_fails_fails_alone(ring, rank, size):
    after, before = ring
    for x, out in ((np.ones(5), np.zeros(3)), (np.ones(200_000), np.zeros(3)), (np.ones(3), np.zeros(3, int))):
        sent = tutti.isend(x, dst=after, tag=6)
        with pytest.raises(tutti.Mismatch, match=rf"rank {before} sent float64 × {len(x)} with tag 6"):
            tutti.recv(before, tag=6, out=out)
        sent.wait()
        assert not out.any()
        whole(rank, size)
    with pytest.raises(tutti.Timeout, match="any array"):
        tutti.recv(before, tag=61, timeout=0.1)
    with pytest.raises(tutti.Timeout, match="probe"):
        tutti.probe(tag=62, timeout=0.1)
    with pytest.raises(tutti.Timeout):
        tutti.send(np.ones(1_000_000), dst=after, tag=63, timeout=0.1)
    whole(rank, size)
    sent = tutti.isend(np.ones(4), dst=after, tag=6)
    with pytest.raises(tutti.Mismatch, match="float64 × 4"):
        tutti.sendrecv(np.ones(5), dst=tutti.nobody, src=before, tag=6)
    sent.wait()
    whole(rank, size)


def test_wrong_arguments_are_said(size):
    x = np.ones(2)
    for call, text in (
        (lambda: tutti.recv(x), "an array to receive into is out="),
        (lambda: tutti.recv("0"), "src is a rank"),
        (lambda: tutti.send(x, None), "nobody is tutti.nobody"),
        (lambda: tutti.sendrecv(x, None, 0), "nobody is tutti.nobody"),
        (lambda: tutti.send(x, dst=0, tag=-1), "tag -1 is not from 0"),
        (lambda: tutti.isend(x, dst=0, tag=2**31), "tag 2147483648 is not from 0"),
        (lambda: tutti.recv(size), "not in the group"),
        (lambda: tutti.recv(0, like=x, out=x), "not both"),
        (lambda: tutti.probe(tutti.nobody), "sends nothing"),
    ):
        with pytest.raises(tutti.InvalidArgument, match=text):
            call()
