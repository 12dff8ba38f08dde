# _group_names.py: what a group says to a name that it does not have.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

from typing import Any

from ._native import Group


def _unknown(self: Group, name: str) -> Any:
    if name.startswith("_"):  # Python's own questions, which expect no advice
        raise AttributeError(f"'Group' object has no attribute {name!r}")
    from ._hints import group_name_hint

    raise AttributeError(f"a tutti.Group has no {name}" + group_name_hint(name, dir(Group)), name=name, obj=self)


def install() -> None:
    """Only names that are not found come here; those that exist are looked up as before."""
    Group.__getattr__ = _unknown  # type: ignore[attr-defined]
