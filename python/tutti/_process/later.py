# later.py: names of a package that are imported when they are first used.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def names_later(
    package: str, homes: Mapping[str, str], listed: Iterable[str] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` for a package. `homes` says which of its modules has each name; a name whose home is
    itself is the module. `listed`: what dir() shows; without it whatever is there."""

    def get(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"{package} has no {name}" + _hint(name, homes if listed is None else listed))
        module = importlib.import_module(f".{home}", package)
        value = module if name == home else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes} if listed is None else listed)

    return get, names


def _hint(name: str, known: Iterable[str]) -> str:
    if name.startswith("_"):  # Python's own questions, which expect no advice
        return ""
    from .._calls.hints import name_hint

    return name_hint(name, known)
