# tree.py: lists, tuples, dicts and dataclasses of arrays taken apart, and put together again.
# SPDX-License-Identifier: Apache-2.0
"""A tree is flattened in the order of its sorted keys, so that every rank sees its arrays in the same order whatever
the order in which its dicts were filled. `Flat.text` says the structure in words that are the same on every rank; a
hash of it travels with each call, so that ranks with different trees find out."""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .. import _native, adapters
from .._errors import InvalidArgument

_DEPTH_MAX = 64
_LEAF = object()
_CLOSING = {"{": "}", "(": ")", "<": ">", "*": "*"}


@dataclasses.dataclass(frozen=True, slots=True)
class _Node:
    """One container: how to make it again from its parts."""

    build: Callable[[list], Any]
    parts: tuple  # of _Node, _LEAF, or None for None


@dataclasses.dataclass(frozen=True, slots=True)
class Flat:
    """A tree taken apart: its arrays, where each of them was, and its structure."""

    leaves: list
    paths: list[str]
    text: str
    root: Any

    def rebuild(self, leaves: list) -> Any:
        """The same tree with other leaves."""
        return _build(self.root, iter(leaves))


def _build(node: Any, leaves: Iterator) -> Any:
    if node is _LEAF:
        return next(leaves)
    if node is None:
        return None
    return node.build([_build(part, leaves) for part in node.parts])


def _sorted_items(mapping: Any) -> list[tuple[Any, Any]]:
    items = list(mapping.items())
    try:
        return sorted(items, key=lambda item: item[0])
    except TypeError:  # keys of several types
        return sorted(items, key=lambda item: (type(item[0]).__name__, repr(item[0])))


def _build_dict(like: Any, keys: list, parts: list) -> Any:
    found = dict(zip(keys, parts, strict=True))
    if type(like) is dict:
        return {key: found[key] for key in like}
    try:
        made = copy.copy(like)  # keeps a defaultdict's factory and an OrderedDict's order
        for key, part in found.items():
            made[key] = part
    except Exception:  # proxies that do not let themselves be copied
        return {key: found[key] for key in like}
    return made


def _build_sequence(like: Any, parts: list) -> Any:
    if type(like) is list:
        return parts
    if hasattr(type(like), "_make"):
        return type(like)._make(parts)
    return tuple(parts) if isinstance(like, tuple) else parts  # torch.Size and the like hold numbers only


def _build_dataclass(like: Any, names: list[str], parts: list) -> Any:
    made = copy.copy(like)
    for name, part in zip(names, parts, strict=True):
        object.__setattr__(made, name, part)  # also where it is frozen, and without a second __post_init__
    return made


class _Flattening:
    def __init__(self, verb: str, describe: Callable[[Any, str], str]):
        self.verb = verb
        self.describe = describe
        self.leaves: list = []
        self.paths: list[str] = []
        self.words: list[str] = []

    def take(self, value: Any, path: str, depth: int = 0) -> Any:
        kind = adapters.kind_of(value)
        if kind is adapters.NOTHING:
            self.words.append("-")
            return None
        if kind is not adapters.TREE:
            self.leaves.append(value)
            self.paths.append(path)
            self.words.append(self.describe(value, path))
            return _LEAF
        if depth == _DEPTH_MAX:
            raise InvalidArgument(
                f"{self.verb}: the tree is deeper than {_DEPTH_MAX} at {path[:60]}…; does it contain itself?"
            )
        return self._take_container(value, path, depth + 1)

    def _take_container(self, value: Any, path: str, depth: int) -> _Node:
        if isinstance(value, dict):
            items = _sorted_items(value)
            keys = [key for key, _ in items]
            names = [f"[{key!r}]" for key in keys]
            parts = [part for _, part in items]
            return self._take_parts("{", names, parts, path, depth, functools.partial(_build_dict, value, keys))
        if isinstance(value, (list, tuple)):
            fields = getattr(type(value), "_fields", None)
            names = [f".{name}" for name in fields] if fields else [f"[{i}]" for i in range(len(value))]
            return self._take_parts("(", names, list(value), path, depth, functools.partial(_build_sequence, value))
        if dataclasses.is_dataclass(value):
            fields = [field.name for field in dataclasses.fields(value)]
            parts = [getattr(value, name) for name in fields]
            names = [f".{name}" for name in fields]
            return self._take_parts("<", names, parts, path, depth, functools.partial(_build_dataclass, value, fields))
        return self._take_pytree(value, path, depth)

    def _take_pytree(self, value: Any, path: str, depth: int) -> _Node:
        tree = sys.modules["jax"].tree_util
        parts, definition = tree.tree_flatten(value, is_leaf=lambda part: part is not value)
        names = [f".<{i}>" for i in range(len(parts))]
        return self._take_parts("*", names, parts, path, depth, functools.partial(tree.tree_unflatten, definition))

    def _take_parts(self, mark: str, names: list[str], parts: list, path: str, depth: int, build: Callable) -> _Node:
        self.words.append(mark)
        nodes = []
        for name, part in zip(names, parts, strict=True):
            self.words.append(name)
            nodes.append(self.take(part, path + name, depth))
        self.words.append(_CLOSING[mark])
        return _Node(build, tuple(nodes))


def flatten(value: Any, verb: str, describe: Callable[[Any, str], str] = lambda leaf, path: "x") -> Flat:
    """Takes a tree apart. `describe` says in words what the ranks must agree on for one leaf."""
    flattening = _Flattening(verb, describe)
    root = flattening.take(value, "")
    return Flat(flattening.leaves, flattening.paths, " ".join(flattening.words), root)


@functools.lru_cache(maxsize=4096)
def hash_of(text: str) -> int:
    """A number for a structure, the same in every process; never 0, which means "no tree"."""
    number = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1 | 1
    _native.note_structure(number, text)  # ranks whose trees differ are told in these words
    return number
