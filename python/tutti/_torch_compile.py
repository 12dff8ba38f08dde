# _torch_compile.py: makes the verbs known to torch.compile, when and if it is used.
# SPDX-License-Identifier: Apache-2.0
"""torch's tracer cannot follow the verbs into the native module; tutti.torch.compiling tells it what to put in their
place. Importing the tracer takes seconds, so nobody but torch.compile should: we wait until it does."""
from __future__ import annotations

import importlib.abc
import importlib.util
import sys
import warnings
from types import ModuleType

_TRACER = "torch._dynamo"


class _WhenImported(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Stands before Python's own finders until the tracer is asked for; then lets them load it, and speaks to it."""

    def find_spec(self, name, path=None, target=None):
        if name != _TRACER:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            self._loader, spec.loader = spec.loader, self
        return spec

    def create_module(self, spec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _introduce()


def _introduce() -> None:
    try:
        importlib.import_module("tutti.torch.compiling")
    except Exception as reason:  # torch.compile itself must not suffer
        warnings.warn(f"tutti's verbs cannot be used inside torch.compile with this torch: {reason}", stacklevel=2)


def install() -> None:
    """At the end of `import tutti`."""
    if _TRACER in sys.modules:
        _introduce()
    else:
        sys.meta_path.insert(0, _WhenImported())
