# ranges.py: Tutti's calls as ranges of torch's profiler and of NVTX. (Those of JAX's profiler are made in jax/eager.py.)
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from .. import _native

_TORCH_FLAG = "_is_profiler_enabled"  # of torch.autograd.profiler
_nvtx: tuple[Callable[[str], Any], Callable[[], Any]] | None = None  # push, pop


def watch_torch() -> None:
    """From now on, calls that are made while torch's profiler runs are in what it shows."""
    profiler = sys.modules["torch"].autograd.profiler
    if hasattr(profiler, _TORCH_FLAG):
        _native.watch_ranges(_begin, _end, vars(profiler), _TORCH_FLAG)


def watch_nvtx() -> None:
    """The same for Nsight and others that read NVTX, if one of them has started this process, or TUTTI_NVTX asks for it."""
    global _nvtx
    if not any(os.environ.get(name) for name in ("TUTTI_NVTX", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID")):
        return
    try:
        import nvtx

        _nvtx = nvtx.push_range, nvtx.pop_range
    except ImportError:
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_available():
            return
        _nvtx = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop
    _native.watch_ranges(_begin, _end, always=True)


def _begin(name: str) -> list[Any]:
    opened = []
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch.autograd.profiler, _TORCH_FLAG, False):
        opened.append(torch.autograd.profiler.record_function(f"tutti.{name}"))
        opened[0].__enter__()
    if _nvtx is not None:
        _nvtx[0](f"tutti.{name}")
    return opened


def _end(opened: list[Any]) -> None:
    if _nvtx is not None:
        _nvtx[1]()
    for each in opened:
        each.__exit__(None, None, None)
