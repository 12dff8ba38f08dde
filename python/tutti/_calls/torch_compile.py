# torch_compile.py: makes the verbs known to torch.compile, when and if it is used.
# SPDX-License-Identifier: Apache-2.0
"""torch's tracer cannot follow the verbs into the native module; tutti.torch.compiling tells it what to put in their
place. Importing the tracer takes seconds, so only torch.compile itself should: we wait until it does."""
from __future__ import annotations

import importlib
import warnings

from .._process.when_imported import when_imported


def _introduce() -> None:
    try:
        importlib.import_module("tutti.torch.compiling")
    except Exception as reason:  # torch.compile itself must not suffer
        warnings.warn(f"tutti's verbs cannot be used inside torch.compile with this torch: {reason}", stacklevel=2)


def install() -> None:
    """At the end of `import tutti`."""
    when_imported("torch._dynamo", _introduce)
