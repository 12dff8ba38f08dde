# test_checkpoint.py: what was saved comes back, on any number of ranks, and never half of it.
# SPDX-License-Identifier: Apache-2.0
import json
import os
import zlib
from pathlib import Path

import kinds
import numpy as np
import pytest

import tutti
from tutti.checkpoint import Sharded, load, save


@pytest.fixture
def folder(rank, tmp_path_factory):
    """One that all ranks see."""
    path = tutti.broadcast_object(str(tmp_path_factory.mktemp("checkpoint")) if rank == 0 else None)
    return Path(path) / "last"


WHOLE = np.arange(35, dtype="f4").reshape(5, 7)


def part(axis, group):
    return np.array_split(WHOLE, group.size, axis)[group.rank]


def tree(group, step=3):
    return {
        "model": {"w": WHOLE * step, "b": [np.arange(4), np.float64(2.5)], "empty": np.zeros((0, 3), "f4")},
        "rows": Sharded(part(0, group), 5),
        "columns": Sharded(part(1, group), 7, axis=1),
        "step": step,
        "note": "né",
        "pair": (None, True),
        5: 1.5,
    }


def check(state, step=3):
    np.testing.assert_array_equal(state["model"]["w"], WHOLE * step)
    np.testing.assert_array_equal(state["model"]["b"][0], np.arange(4))
    assert state["model"]["b"][1] == 2.5 and state["model"]["empty"].shape == (0, 3)
    assert (state["step"], state["note"], state["pair"], state[5]) == (step, "né", (None, True), 1.5)
    assert state["model"]["b"][0].dtype == np.int64


def test_everything_comes_back_whole(folder, world):
    save(folder, tree(world))
    state = load(folder)
    check(state)
    np.testing.assert_array_equal(state["rows"], WHOLE)
    np.testing.assert_array_equal(state["columns"], WHOLE)
    assert len(list(folder.glob("data-*/part-*"))) == world.size


def test_every_rank_reads_its_part_whoever_wrote_it(folder, world, rank, size):
    save(folder, tree(world))
    groups = {"all": world, "alone": world.split(rank)}
    if size > 2:
        groups["fewer"] = world.split(0 if rank < size - 1 else None)
    for group in groups.values():
        if group.rank < 0:
            continue
        like = {"columns": Sharded(part(1, group), 7, axis=1), "rows": Sharded(part(0, group), 5)}
        state = load(folder, like=like, group=group)
        np.testing.assert_array_equal(state["rows"], part(0, group))
        np.testing.assert_array_equal(state["columns"], part(1, group))
    # Written by one, read by all.
    alone = tutti.Group([0])
    if rank == 0:
        save(folder.parent / "single", {"x": Sharded(WHOLE, 5)}, group=alone)
    tutti.barrier()
    found = load(folder.parent / "single", like={"x": Sharded(part(0, world), 5)})
    np.testing.assert_array_equal(found["x"], part(0, world))


@pytest.mark.parametrize("kind", kinds.ALL)
def test_arrays_come_back_as_the_kind_asked_for(kind, folder):
    save(folder, {"x": kinds.make(kind, WHOLE)})
    found = load(folder, like={"x": kinds.make(kind, np.zeros_like(WHOLE))})["x"]
    assert kinds.is_kind(kind, found)
    np.testing.assert_array_equal(kinds.numbers(found), WHOLE)
    np.testing.assert_array_equal(load(folder)["x"], WHOLE)


def test_small_floats(folder):
    torch = pytest.importorskip("torch")
    x = torch.arange(5).bfloat16()
    save(folder, {"x": x})
    assert torch.equal(load(folder, like={"x": x})["x"], x)
    assert load(folder)["x"].astype("f4").tolist() == [0, 1, 2, 3, 4]


def test_other_tools_read_the_files(folder, world, rank):
    safetensors = pytest.importorskip("safetensors.numpy")
    numbers = {name: np.arange(6).reshape(2, 3).astype(name) for name in ("bool", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "c8")}
    save(folder, {**numbers, "pairs": np.arange(3) * (1 + 2j), "rows": Sharded(part(0, world), 5), "scalar": np.float32(3)})
    held = {}
    for number, file in enumerate(sorted(folder.glob("data-*/*.safetensors"))):
        arrays = safetensors.load_file(file)
        np.testing.assert_array_equal(arrays.pop("rows"), np.array_split(WHOLE, world.size)[number])
        assert not held.keys() & arrays.keys()  # each array that is not split is in one file
        held |= arrays
    for name, array in numbers.items():
        np.testing.assert_array_equal(held[name], array, strict=True)
    np.testing.assert_array_equal(held["pairs"] @ [1, 1j], np.arange(3) * (1 + 2j))
    assert held["scalar"] == 3 and held["scalar"].shape == ()
    tutti.barrier()


def test_small_floats_are_named_as_other_tools_know_them(folder):
    torch = pytest.importorskip("torch")
    safetensors = pytest.importorskip("safetensors.torch")
    dtypes = (torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2)
    save(folder, {str(dtype): torch.arange(5).to(dtype) for dtype in dtypes})
    held = {}
    for file in folder.glob("data-*/*.safetensors"):
        held |= safetensors.load_file(file)
    for dtype in dtypes:
        assert held[str(dtype)].dtype == dtype and held[str(dtype)].float().tolist() == [0, 1, 2, 3, 4]
    tutti.barrier()


def test_a_checkpoint_of_the_first_format_is_still_read(folder, rank):
    if rank == 0:
        (folder / "data-0").mkdir(parents=True)
        (folder / "data-0" / "part-0-of-1.bin").write_bytes(WHOLE.tobytes())
        piece = {"file": "part-0-of-1.bin", "offset": 0, "begin": [0, 0], "shape": [5, 7], "crc": zlib.crc32(WHOLE.tobytes())}
        leaves = {"/w": {"dtype": "float32", "shape": [5, 7], "pieces": [piece]}}
        structure = {"dict": [["w", {"leaf": "/w"}]]}
        (folder / "index.json").write_text(json.dumps({"format": 1, "data": "data-0", "structure": structure, "leaves": leaves}))
    tutti.barrier()
    np.testing.assert_array_equal(load(folder)["w"], WHOLE)
    save(folder, {"w": WHOLE + 1})
    np.testing.assert_array_equal(load(folder)["w"], WHOLE + 1)
    tutti.barrier()
    if rank == 0:
        (folder / "index.json").write_text(json.dumps({"format": 3}))
    tutti.barrier()
    with pytest.raises(tutti.InvalidArgument, match="format 3; this version reads 1 and 2"):
        load(folder)


def test_a_new_one_replaces_the_old_one_and_leaves_nothing(folder, world):
    save(folder, tree(world, step=1))
    save(folder, tree(world, step=2))
    check(load(folder), step=2)
    tutti.barrier()
    assert len(list(folder.iterdir())) == 2  # the index and one folder


def test_a_crash_in_the_middle_leaves_the_last_good_one(folder, world, rank, size, monkeypatch):
    save(folder, tree(world, step=1))

    def crash(*args):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        if rank == size - 1:
            patch.setattr(os, "fsync", crash)
        with pytest.raises(tutti.Error, match=f"rank {size - 1} met OSError: no space left"):
            save(folder, tree(world, step=2))
    check(load(folder), step=1)
    save(folder, tree(world, step=3))
    check(load(folder), step=3)


def test_missing_and_damaged_pieces_are_named(folder, world, rank, size):
    save(folder, tree(world))
    index = json.loads((folder / "index.json").read_text())
    piece = index["leaves"]["/rows"]["pieces"][-1]
    file = folder / index["data"] / piece["file"]
    good = file.read_bytes()
    tutti.barrier()
    if rank == 0:
        file.write_bytes(good[: piece["offset"]] + bytes([good[piece["offset"]] ^ 1]) + good[piece["offset"] + 1 :])
    tutti.barrier()
    with pytest.raises(tutti.Error, match="damaged.*/rows"):
        load(folder)
    tutti.barrier()
    if rank == 0:
        file.unlink()
    tutti.barrier()
    with pytest.raises(tutti.Error, match="missing"):
        load(folder)
    with pytest.raises(tutti.InvalidArgument, match="no checkpoint"):
        load(folder / "elsewhere")


def test_what_does_not_fit_is_refused(folder, world, rank, size):
    with pytest.raises(tutti.Error, match="cannot be saved"):
        save(folder, {"x": object()})
    with pytest.raises(tutti.Error, match="key"):
        save(folder, {1.5: 1})
    with pytest.raises(tutti.Error, match="expected"):
        save(folder, {"x": Sharded(WHOLE, 5 * size + 5)})
    save(folder, {"x": WHOLE, "n": 1})
    with pytest.raises(tutti.InvalidArgument, match="no /y"):
        load(folder, like={"y": WHOLE})
    with pytest.raises(tutti.InvalidArgument, match="shape"):
        load(folder, like={"x": WHOLE[:2]})
    with pytest.raises(tutti.InvalidArgument, match="length 5"):
        load(folder, like={"x": Sharded(WHOLE, 6)})


def test_an_optimizer_goes_on_on_another_number_of_ranks(folder, world, rank, size):
    gradients = [np.random.default_rng(i).normal(size=9) for i in range(4)]
    params = [np.ones(9)]
    optimizer = tutti.zero.AdamW(params, lr=0.1)
    for g in gradients[:2]:
        optimizer.step([g])
    save(folder, {"params": params, "optimizer": optimizer.state()})
    alone = world.split(rank)
    again = [np.zeros(9)]
    state = load(folder, like={"params": again}, group=alone)
    again = [state["params"][0].copy()]
    continued = tutti.zero.AdamW(again, lr=0.1, group=alone)
    continued.load(load(folder, like={"optimizer": continued.state()}, group=alone)["optimizer"])
    for g in gradients[2:]:
        optimizer.step([g])
        continued.step([g])
    np.testing.assert_array_equal(params[0], again[0])
