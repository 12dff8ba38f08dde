# when_imported.py: something to do as soon as a framework is imported, which may be never.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importlib.abc brings tempfile, random and others that no small program needs
    from importlib.abc import Loader
    from importlib.machinery import ModuleSpec


class _Finder:
    """Stands before Python's own finders until the module is asked for; then lets them load it, and acts."""

    def __init__(self, name: str, action: Callable[[], object]) -> None:
        self._name = name
        self._action = action
        self._loader: Loader | None = None

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self._name:
            return None
        from importlib.util import find_spec

        sys.meta_path.remove(self)
        spec = find_spec(name)
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        assert self._loader is not None
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        assert self._loader is not None and module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._action()


def when_imported(name: str, action: Callable[[], object]) -> None:
    """Calls `action` after the module has been imported: now, if that is so already."""
    if name in sys.modules:
        action()
    else:
        sys.meta_path.insert(0, _Finder(name, action))
