# test_objects.py: the verbs for objects: what comes back, what is refused, and a decoder that trusts nothing.
# SPDX-License-Identifier: Apache-2.0
import math
import os
import random
import struct

import ml_dtypes
import numpy as np
import pytest

import tutti
from tutti._objects import encoding
from tutti._objects.decoding import decode
from tutti._objects.encoding import DEPTH_MAX, encode

VALUES = [
    None,
    True,
    False,
    0,
    -1,
    127,
    128,
    -128,
    -129,
    2**63,
    -(2**64),
    3**2000,
    0.0,
    -0.0,
    math.pi,
    math.inf,
    5e-324,
    1 - 2j,
    "",
    "grüße 🎻",
    "\ud800",
    b"",
    b"\x00\xff",
    bytearray(b"abc"),
    [],
    (),
    {},
    set(),
    frozenset(),
    [1, [2, (3, {"a": [None]})]],
    {(1, "a"): {2.5: b"x"}, None: True, frozenset({1}): ()},
    {1, "two", (3,)},
]


def bytes_of(value, **options):
    return memoryview(b"".join(encode(value, **options)))


def same(a, b):
    """Equal in value and in every type inside."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, float):
        return struct.pack("<d", a) == struct.pack("<d", b)
    return a == b


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_come_back_with_their_types(value):
    assert same(decode(bytes_of(value), "rank 0"), value)


ARRAYS = [
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.arange(12).reshape(3, 4)[:, ::2],
    np.asfortranarray(np.ones((2, 3))),
    np.zeros((0, 5), np.int8),
    np.array(7, np.uint16),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.array(["a", "bcd"]),
    np.array([b"a", b""]),
    np.array(["2024-01-01", "NaT"], "M8[D]"),
    np.array([1, 2], ">i4"),
    np.array([1.5, -2], ml_dtypes.bfloat16),
    np.array([1.5, -2], ml_dtypes.float8_e4m3fn),
    np.float32(1.25),
    np.int64(-3),
    np.bool_(True),
    np.str_(""),
    np.datetime64("2024-02-03T04:05"),
    ml_dtypes.bfloat16(1.5),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{type(array).__name__}-{array.dtype}-{array.shape}")
def test_arrays_and_scalars_of_numpy_come_back_with_their_dtype(array):
    back = decode(bytes_of([array]), "rank 0")[0]
    if array.dtype == "<U0":  # NumPy has no such elements in arrays
        assert type(back) is np.str_ and back == ""
    else:
        assert same(back, array)
    if isinstance(back, np.ndarray):
        assert back.flags.writeable and back.flags.c_contiguous


@pytest.mark.parametrize("name", ["torch", "jax", "tensorflow"])
def test_arrays_of_frameworks_come_back_as_such(name, world):
    make = {
        "torch": lambda m: [m.arange(4.0), m.ones(2, 0, dtype=m.bfloat16), m.tensor(3), m.ones(2, requires_grad=True)],
        "jax": lambda m: [m.numpy.arange(4.0), m.numpy.ones(3, m.numpy.bfloat16), m.numpy.asarray(3)],
        "tensorflow": lambda m: [m.range(4.0), m.ones([2, 3], m.bfloat16), m.constant(3), m.constant([True])],
    }[name]
    sent = make(pytest.importorskip(name))
    got = tutti.all_gather_object(sent)
    for objects in got:
        for a, b in zip(objects, sent, strict=True):
            assert type(a).__module__ == type(b).__module__ and a.dtype == b.dtype and tuple(a.shape) == tuple(b.shape)
            assert np.array_equal(to_numpy(a), to_numpy(b))


def to_numpy(array):
    return np.asarray(array.detach().float() if hasattr(array, "detach") else array)


class Own:
    def __eq__(self, other):
        return type(other) is Own


@pytest.mark.parametrize(
    "value, place",
    [
        (Own(), "the object is"),
        ([1, {"a": (2, Own())}], "the object[1]['a'][1]"),
        ({Own: 1}, "the key the object["),
        ([np.array([None])], "the object[0]"),
        ([np.zeros(2, [("a", "i4")])], "the object[0]"),
        (range(3), "of type range"),
        ([os], "module"),
    ],
)
def test_what_has_no_encoding_is_refused_by_its_place(value, place):
    with pytest.raises(tutti.InvalidArgument, match="allow_pickle") as refusal:
        encode(value)
    assert place in str(refusal.value)


def test_an_object_that_contains_itself_is_refused():
    loop = []
    loop.append(loop)
    with pytest.raises(tutti.InvalidArgument, match="contain itself"):
        encode(loop)


def test_pickles_need_permission_on_both_sides():
    data = bytes_of([1, range(3)], allow_pickle=True)
    assert decode(data, "rank 1", allow_pickle=True) == [1, range(3)]
    with pytest.raises(tutti.InvalidArgument, match="rank 1 sent a pickle"):
        decode(data, "rank 1")
    with pytest.raises(tutti.InvalidArgument, match="the object could not be pickled"):
        encode(lambda: None, allow_pickle=True)


def length(count):
    return struct.pack("<Q", count)


@pytest.mark.parametrize(
    "data, why",
    [
        (b"", "needs 1 more bytes"),
        (b"?", "no type"),
        (b"NN", "bytes follow"),
        (b"b" + length(2**63) + b"x", "needs 9223372036854775808 more bytes"),
        (b"s" + length(1) + b"\xff", "not UTF-8"),
        (b"l" + length(2**40) + b"N", "1099511627776 parts"),
        (b"d" + length(1) + b"N", "1 parts"),
        (b"d" + length(1) + b"l" + length(0) + b"N", "unhashable"),
        (b"S" + length(1) + b"l" + length(0), "unhashable"),
        ((b"l" + length(1)) * (DEPTH_MAX + 2) + b"N", "deeper"),
        (b"a" + bytes([3, 1]) + length(2**60) + b"<f8", "more bytes"),
        (b"a" + bytes([3, 2]) + length(2**62) + length(0) + b"<f8", "shape"),
        (b"a" + bytes([3, 2]) + length(2**40) + length(2**40) + b"<f8", "more bytes"),
        (b"a" + bytes([3, 65]) + b"<f8", "65 axes"),
        (b"a" + bytes([2, 0]) + b"|O", "no dtype"),
        (b"a" + bytes([3, 1]) + length(10**9) + b"<U0", "no dtype"),
        (b"a" + bytes([5, 0]) + b"i4,i4" + bytes(8), "no dtype"),
        (b"g" + bytes([3, 1]) + length(1) + b"|b1" + b"\x01", "scalar with 1 axes"),
        (b"x\x09", "no framework"),
        (b"x\x00N", "without an array"),
    ],
)
def test_damaged_bytes_are_refused_before_memory_is_taken(data, why):
    with pytest.raises(tutti.Error, match="rank 5 is damaged at byte") as refusal:
        decode(memoryview(data), "rank 5")
    assert why in str(refusal.value)


def test_random_damage_is_an_error_or_another_object_never_anything_else(seed=20240611):
    draw = random.Random(seed)
    rounds = 200_000 if os.environ.get("TUTTI_SOAK") else 4_000
    originals = [bytes(bytes_of(value)) for value in VALUES + ARRAYS] + [
        bytes(bytes_of([VALUES, ARRAYS, {"k": ARRAYS}]))
    ]
    marks = b"NTFifcsbyltSZdagxp"
    outcomes = {"object": 0, "error": 0}
    for _ in range(rounds):
        data = bytearray(draw.choice(originals))
        for _ in range(draw.randint(1, 4)):
            place = draw.randrange(len(data) + 1)
            way = draw.randrange(5)
            if way == 0 and place < len(data):
                data[place] ^= 1 << draw.randrange(8)
            elif way == 1 and place < len(data):
                data[place] = draw.choice(marks)
            elif way == 2:
                del data[place : place + draw.randint(1, 9)]
            elif way == 3:
                data[place:place] = draw.randbytes(draw.randint(1, 9))
            else:
                data[place : place + 8] = length(draw.choice([0, 1, 2**31, 2**32, 2**63, 2**64 - 1]))
        try:
            value = decode(memoryview(bytes(data)), "rank 1")
        except tutti.Error:
            outcomes["error"] += 1
        else:
            outcomes["object"] += 1
            decode(bytes_of(value), "rank 1")  # what was made can be sent again
    assert min(outcomes.values()) > rounds // 100, outcomes


def test_the_table_of_types_and_the_decoder_know_the_same_marks():
    from tutti._objects import decoding

    written = {
        word
        for line in encoding.__doc__.split("\n")
        if line.startswith("    ")
        for word in line.split()
        if len(word) == 1
    }
    assert {mark.decode() for mark in decoding._READERS} <= written


# On all ranks.


def object_of(rank):
    return {
        "rank": rank,
        "name": "x" * (rank * 1000),
        "data": np.arange(rank * 3, dtype=np.float32),
        "all": list(range(rank)),
    }


@pytest.mark.parametrize("is_async", [False, True])
def test_broadcast_object_gives_everyone_the_roots(world, rank, size, is_async):
    for root in range(size):
        got = tutti.broadcast_object(object_of(root) if rank == root else "ignored", root=root, async_op=is_async)
        assert same(got.wait() if is_async else got, object_of(root))


@pytest.mark.parametrize("is_async", [False, True])
def test_all_gather_object_gives_everyone_all(world, rank, size, is_async):
    got = tutti.all_gather_object(object_of(rank), async_op=is_async)
    assert same(got.wait() if is_async else got, [object_of(other) for other in range(size)])


@pytest.mark.parametrize("is_async", [False, True])
def test_gather_object_gives_the_root_all(world, rank, size, is_async):
    root = size - 1
    got = tutti.gather_object(object_of(rank), root=root, async_op=is_async)
    got = got.wait() if is_async else got
    assert same(got, [object_of(other) for other in range(size)]) if rank == root else got is None


@pytest.mark.parametrize("is_async", [False, True])
def test_scatter_object_gives_each_its_own(world, rank, size, is_async):
    root = size - 1
    values = [object_of(other) for other in range(size)] if rank == root else None
    got = tutti.scatter_object(values, root=root, async_op=is_async)
    assert same(got.wait() if is_async else got, object_of(rank))


def test_the_receiver_gets_an_object_of_its_own(world, rank):
    sent = [np.zeros(3)]
    got = tutti.broadcast_object(sent)
    assert got is not sent and got[0] is not sent[0]
    got[0][:] = 1
    assert sent[0].sum() == 0


def test_objects_in_a_group(world, rank, size):
    group = world.split(color=rank % 2, key=-rank)
    mine = tutti.all_gather_object(rank, group=group)
    assert mine == sorted((other for other in range(size) if other % 2 == rank % 2), reverse=True)


def test_an_object_without_an_encoding_raises_everywhere_and_leaves_the_group_usable(world, rank, size):
    with pytest.raises(
        tutti.InvalidArgument, match=rf"rank {size - 1} of {size}: all_gather_object: the object\['a'\] is of type"
    ):
        tutti.all_gather_object({"a": Own()} if rank == size - 1 else 1)
    with pytest.raises(tutti.InvalidArgument, match=f"rank 0 of {size}: broadcast_object"):
        tutti.broadcast_object(Own() if rank == 0 else None)
    with pytest.raises(tutti.InvalidArgument, match=r"scatter_object: object 0 is of type"):
        tutti.scatter_object([Own()] * size if rank == 0 else None)
    with pytest.raises(tutti.InvalidArgument, match=f"the root gave {size + 1} objects; it takes a list of {size}"):
        tutti.scatter_object([None] * (size + 1) if rank == 0 else None)
    assert tutti.all_gather_object(rank) == list(range(size))


def test_pickled_objects_travel_where_everybody_allows_it(world, rank, size):
    assert tutti.all_gather_object(Own(), allow_pickle=True) == [Own()] * size
    if rank == 0:
        assert tutti.broadcast_object(range(2), allow_pickle=True) == range(2)
    else:
        with pytest.raises(tutti.InvalidArgument, match=f"rank 0 of {size} sent a pickle"):
            tutti.broadcast_object()
    assert tutti.all_gather_object(rank) == list(range(size))


@pytest.mark.ranks(2)
def test_a_rank_that_calls_the_verb_for_arrays_is_noticed(world, rank):
    group = world.split(color=0)
    with pytest.raises(tutti.Error):
        if rank == 0:
            tutti.all_gather(np.zeros(3, np.uint8), uneven=True, group=group)
        else:
            tutti.all_gather_object(3, group=group)
