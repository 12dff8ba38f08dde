# __init__.py: Horovod's names, by framework: ``import tutti.compat.horovod.torch as hvd``.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._errors import Unsupported
from ..._process.spawn import spawn

__all__ = ["run"]


def run(
    func: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, np: int = 1, hosts: str | None = None,
    **options: Any,
) -> list[Any]:
    """Runs `func(*args, **kwargs)` on `np` ranks of this host; gives what they return, by rank. The settings of Horovod's own
    launcher (use_gloo, use_mpi, verbose, …) are taken, and nothing depends on them."""
    if hosts is not None and any(host.partition(":")[0] not in ("localhost", "127.0.0.1") for host in hosts.split(",")):
        raise Unsupported(f"horovod: run() starts ranks on this host only, not on {hosts}; tuttirun -H {hosts} starts a program there")
    return spawn(functools.partial(func, **(kwargs or {})), np, tuple(args))
