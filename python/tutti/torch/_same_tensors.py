# _same_tensors.py: whether all ranks have the same model: what differs is named, before anything is sent that would not fit.
# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from .. import _native
from .._errors import Mismatch


def check_same_tensors(what: str, tensors: Iterable[tuple[str, torch.Tensor]], group: Any) -> None:
    """Raises Mismatch that names the first parameter or buffer in which this rank differs from rank 0. Collective."""
    lines = [_described(name, tensor) for name, tensor in tensors]
    digest = np.frombuffer(hashlib.blake2b("\n".join(lines).encode(), digest_size=16).digest(), np.uint8)
    digests = np.empty(16 * group.size, np.uint8)
    group.run(_native.Call("all_gather"), digest, digests)
    if (digests.reshape(group.size, 16) == digests[:16]).all():
        return
    who = f"rank {group.rank} of {group.size}"
    theirs = _text_from_root("\n".join(lines), group).split("\n")
    for own, other in zip(lines + ["nothing more"], theirs + ["nothing more"], strict=False):
        if own != other:
            raise Mismatch(f"{who}: {what}: the module has {own!r} where rank 0 has {other!r}")
    raise Mismatch(f"{who}: {what}: the module differs between ranks, elsewhere than here")


def _described(name: str, tensor: torch.Tensor) -> str:
    place = "" if tensor.device.type == "cpu" else f", on {tensor.device.type}"
    return f"{name}: {str(tensor.dtype)[6:]} {tuple(tensor.shape)}{', trained' * tensor.requires_grad}{place}"


def _text_from_root(text: str, group: Any) -> str:
    own = np.frombuffer(text.encode(), np.uint8)
    broadcast = _native.Call("broadcast")
    return group.run_sized(broadcast, own if group.rank == 0 else None).numpy().tobytes().decode()
