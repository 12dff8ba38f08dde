# checkpoint.py: checkpoints, written by all ranks together and read by any number of ranks.
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint is a folder::

    checkpoint/
      index.json                            what there is, and which bytes of which file hold it
      data-5f1c…/part-0-of-4.safetensors    what rank 0 of 4 wrote
      data-5f1c…/part-1-of-4.safetensors    …

The files are in the safetensors format, which other tools read: an array is called by its path in the tree, as in
"model/layer.weight"; of one that is split, the file's metadata says which part of the whole it is.
Arrays that are the same on every rank are written once, each by one rank; of arrays that are split, each rank writes
its part. The index is replaced last, in one step: whatever happens before leaves the checkpoint that was there. Every
piece carries a checksum."""
from __future__ import annotations

import dataclasses
import json
import os
import shutil
import uuid
from pathlib import Path
from typing import Any

from . import _native
from ._calls.dispatch import group_or_world
from ._errors import Error, InvalidArgument
from ._objects.verbs import all_gather_object, broadcast_object
from ._training import checkpoint as parts

__all__ = ["Sharded", "load", "save"]

FORMAT = 2
READABLE = (1, FORMAT)  # 1: the same arrays one after the other, without a header


@dataclasses.dataclass(frozen=True, slots=True)
class Sharded:
    """This rank's part of an array that is split over the ranks along `axis`.

    array: the part. total: the length of the whole along `axis`. begin: where the part begins; without it, the parts
    are those of `tutti.model_parallel.scatter`: as even as it goes, in rank order.
    For load(), `array` only says of which kind and dtype the result shall be."""

    array: Any
    total: int
    axis: int = 0
    begin: int | None = None

    def place(self, rank: int, size: int) -> tuple[int, int]:
        """Where this rank's part begins, and its length."""
        if self.begin is not None:
            return self.begin, int(self.array.shape[self.axis])
        sizes = _native.shard_sizes(self.total, size)
        return sum(sizes[:rank]), sizes[rank]


def save(path: str | os.PathLike[str], tree: Any, *, group: _native.Group | None = None) -> None:
    """Writes a tree of arrays, numbers and texts. Collective::

        tutti.checkpoint.save("run/last", {"model": model.state_dict(), "step": step})

    Leaves that are `Sharded` are written in parts, all others by one rank each: they are taken to be the same
    everywhere. Dicts (with texts or whole numbers for keys), lists and tuples may be nested. If any rank fails, all
    raise, and the checkpoint that was there stays.
    """
    members = group_or_world(group)
    folder = Path(path)
    name = broadcast_object(f"data-{uuid.uuid4().hex[:12]}" if members.rank == 0 else None, group=members)
    pieces: Any = None
    structure: Any = None

    def write() -> None:
        nonlocal pieces, structure
        leaves: list[parts.Leaf] = []
        structure = parts.take_apart(tree, leaves, "")
        (folder / name).mkdir(parents=True, exist_ok=True)
        file = folder / name / f"part-{members.rank}-of-{members.size}.safetensors"
        pieces = parts.write_pieces(file, leaves, members.rank, members.size)

    try:
        _together(write, members, f"save {folder}")
        every = all_gather_object(pieces, group=members)

        def finish() -> None:
            if members.rank == 0:
                leaves = parts.merge(every)
                _replace_index(folder, {"format": FORMAT, "data": name, "structure": structure, "leaves": leaves})

        _together(finish, members, f"save {folder}")
    except Error:
        if members.rank == 0:
            shutil.rmtree(folder / name, ignore_errors=True)
        raise
    if members.rank == 0:
        for old in folder.glob("data-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)


def load(path: str | os.PathLike[str], like: Any = None, *, group: _native.Group | None = None) -> Any:
    """Reads a checkpoint, on any number of ranks, whatever number wrote it. Collective only in that all ranks raise if
    one does::

        state = tutti.checkpoint.load("run/last")                                   # whole arrays, as NumPy has them
        state = tutti.checkpoint.load("run/last", like={"model": model.state_dict()})

    like: a tree like the one that was saved, or a part of it: arrays come back as the kind of array they have there,
        and where it has `Sharded`, this rank's part is read and nothing else. Shapes have to agree.
    Raises Error that names the file if a piece is missing or damaged.
    """
    members = group_or_world(group)
    result: Any = None

    def read() -> None:
        nonlocal result
        index = _read_index(Path(path))
        reader = parts.Reader(parts.named_in(Path(path), index.get("data")), index["leaves"])
        result = parts.put_together(index["structure"], reader, like, (members.rank, members.size), "")

    _together(read, members, f"load {path}")
    return result


def _together(work: Any, group: Any, what: str) -> None:
    """Does this rank's part; if it fails anywhere, every rank raises and says where."""
    own: Exception | None = None
    try:
        work()
    except (OSError, Error, ValueError, KeyError) as error:
        own = error
    failures = all_gather_object("" if own is None else f"{type(own).__name__}: {own}", group=group)
    if isinstance(own, Error):
        raise own
    for rank, failure in enumerate(failures):
        if failure:
            raise Error(f"rank {group.rank} of {group.size}: cannot {what}: rank {rank} met {failure}") from own


def _replace_index(folder: Path, index: dict[str, Any]) -> None:
    draft = folder / f"index.json.{index['data']}"
    with draft.open("w", encoding="utf-8") as file:
        json.dump(index, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, folder / "index.json")
    parts.sync_folder(folder)


def _read_index(folder: Path) -> dict[str, Any]:
    try:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidArgument(f"{folder} holds no checkpoint: there is no index.json in it") from None
    except json.JSONDecodeError as error:
        raise InvalidArgument(f"{folder / 'index.json'} is damaged: {error}") from None
    if index.get("format") not in READABLE:
        known = " and ".join(map(str, READABLE))
        raise InvalidArgument(f"{folder} is a checkpoint of format {index.get('format')}; this version reads {known}")
    return index


